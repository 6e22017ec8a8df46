"""Who may include whom: the table of rooms in docs/DESIGN.md, as data.

A new dependency between rooms is a decision: change the table here and in docs/DESIGN.md together.
"""

import re
from dataclasses import dataclass, field
from fnmatch import fnmatch
from pathlib import Path

import tree

# Headers of the operating system; `base`, `wire`, `plan` and `core` are pure and use none of them.
POSIX = re.compile(r"(sys|netinet|arpa|net|linux|asm)/.+|(unistd|fcntl|poll|pthread|signal|sched|dirent|netdb|ifaddrs|"
                   r"pwd|grp|termios|dlfcn|spawn|syslog|wait|sysexits)\.h")
THIRD_PARTY = re.compile(r"(asio|CLI|spdlog|fmt|nlohmann|yaml-cpp|tl|gloo|nccl|cuda|gtest|gmock|benchmark|curl|"
                         r"openssl|hwloc)(/|\.h)|nccl\.h|asio\.hpp")


@dataclass
class Room:
    rooms: set[str] = field(default_factory=set)        # folders whose headers may be included, its own is implied
    headers: set[str] = field(default_factory=set)      # single headers of other rooms
    posix: bool = False
    libraries: set[str] = field(default_factory=set)    # "asio", or "nlohmann@files" for some files, "@*1" for any one


ROOMS = {
    "base": Room(libraries={"tl"}),
    "wire": Room({"base"}, libraries={"nlohmann@agent_message*", "nlohmann@etcd*"}),
    "plan": Room({"base"}),
    "core": Room({"base", "wire", "plan"}),
    "os": Room({"base"}, posix=True),
    "net": Room({"base", "wire", "core"}, {"os/fd.hpp", "os/clock.hpp"}, posix=True,
                libraries={"asio"}),
    "run": Room({"base", "wire", "plan", "core", "os", "net"}, posix=True,
                libraries={"nlohmann@event_log.cpp", "nlohmann@report*.cpp", "nlohmann@error_file.cpp"}),
    "cli": Room({"base", "plan"}, libraries={"CLI@*1"}),
    "worker": Room({"ddlaunch", "base", "wire"}, {"os/fd.hpp"}, posix=True),
    "modules": Room(headers={"net/http_abi.hpp"}, posix=True, libraries={"curl@etcd_http.cpp"}),
    "main.cpp": Room({"base", "cli", "plan", "run", "net", "os"}),
    "ddlaunch": Room(libraries={"nccl@nccl.hpp", "cuda@nccl.hpp", "gloo@gloo.hpp"}),
}

# The core is told the time and draws no numbers; a log line there would be an effect nobody sees.
IMPURE = re.compile(r"\b(steady_clock|system_clock|high_resolution_clock|random_device|clock_gettime|gettimeofday|"
                    r"rand|srand|getenv|printf|fprintf)\b|\bstd::(cout|cerr|clog|time)\b")
PURE_ROOMS = {"core", "wire"}

INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]*([<"])([^>"]+)[>"]', re.MULTILINE)


def room_of(name: Path) -> str | None:
    if name.parts[:2] == ("include", "ddlaunch"):
        return "ddlaunch"
    if name.parts[0] == "src" and len(name.parts) > 1:
        return name.parts[1]
    return None


def library_of(header: str) -> str | None:
    found = THIRD_PARTY.match(header)
    return re.split(r"[/.]", header)[0] if found else None


def library_allowed(room: Room, library: str, name: Path, users: dict[str, set[Path]]) -> bool:
    for entry in room.libraries:
        known, _, where = entry.partition("@")
        if known == library and where == "*1":
            users.setdefault(f"{name.parts[1]}: {library}", set()).add(name)
            return True
        if known == library and fnmatch(name.name, where or "*"):
            return True
    return False


def check_include(name: Path, room_name: str, header: str, ours: bool, users: dict[str, set[Path]]) -> str | None:
    room = ROOMS[room_name]
    library = None if ours else library_of(header)
    if library:
        return None if library_allowed(room, library, name, users) else f"{room_name} must not use {library}"
    if not ours and POSIX.fullmatch(header):
        return None if room.posix else f"{room_name} is free of the operating system"
    folder, slash, _ = header.partition("/")
    if not slash:
        return "write the room: \"room/file.hpp\"" if ours else None  # <vector>, <stdint.h>
    if folder == room_name or folder in room.rooms or header in room.headers:
        return None
    if folder in ROOMS:
        return f"{room_name} must not include {folder}"
    return f"unknown library: add it to tests/lint/include_rules.py if {room_name} may use it"


def main() -> None:
    top = tree.root()
    findings: list[str] = []
    users: dict[str, set[Path]] = {}
    for name in tree.code_files(top, "src", "include"):
        room_name, text = room_of(name), tree.read(top, name)
        if room_name not in ROOMS:
            findings.append(f"{name}:1: no such room in the table of docs/DESIGN.md")
            continue
        for match in INCLUDE.finditer(text):
            problem = check_include(name, room_name, match.group(2), match.group(1) == '"', users)
            if problem:
                findings.append(f"{name}:{tree.line_of(text, match.start())}: {match.group(2)}: {problem}")
        if room_name in PURE_ROOMS:
            code = tree.bare(text)
            findings += [f"{name}:{tree.line_of(code, hit.start())}: {hit.group(0)}: {room_name} decides from values "
                         f"only" for hit in IMPURE.finditer(code)]
    findings += [f"{what} is used in {len(names)} files, keep it in one: {', '.join(map(str, sorted(names)))}"
                 for what, names in users.items() if len(names) > 1]
    tree.finish(findings)


if __name__ == "__main__":
    main()
