"""What the lint programs share: which files there are, C++ text without comments and literals, and how to report.

Each program is one CTest: it prints one line per finding, `path:line: what is wrong and what to do`, and exits 1 when
there was any. Only the Python standard library is used. The root of the tree is the first argument (for the selftest),
else the repository this file lies in.
"""

import re
import subprocess
import sys
from pathlib import Path

CODE_SUFFIXES = {".cpp", ".hpp", ".c", ".h"}
TEXT_SUFFIXES = CODE_SUFFIXES | {".py", ".sh", ".md", ".txt", ".toml", ".json", ".cmake", ".yml", ".yaml", ".in", ""}


def root() -> Path:
    return Path(sys.argv[1]).resolve() if len(sys.argv) > 1 else Path(__file__).resolve().parents[2]


def files(top: Path) -> list[Path]:
    """Files of the project, relative to top: what git tracks or would track, else everything outside build folders."""
    try:
        listed = subprocess.run(["git", "-C", str(top), "ls-files", "-coz", "--exclude-standard"],
                                capture_output=True, check=True).stdout.decode().split("\0")
        names = [Path(name) for name in listed if name]
    except (OSError, subprocess.CalledProcessError):
        names = [path.relative_to(top) for path in top.rglob("*") if path.is_file()]
        names = [name for name in names if not re.match(r"(build|\.)", name.parts[0]) and "__pycache__" not in name.parts]
    return sorted(name for name in set(names) if (top / name).is_file())


def code_files(top: Path, *folders: str) -> list[Path]:
    return [name for name in files(top) if name.suffix in CODE_SUFFIXES and name.parts[0] in folders]


def read(top: Path, name: Path) -> str:
    return (top / name).read_text(encoding="utf-8", errors="replace")


_NOT_CODE = re.compile(
    r'//[^\n]*|/\*.*?\*/'                          # comments
    r'|R"(?P<tag>[^()\s\\]{0,16})\(.*?\)(?P=tag)"'  # raw literals
    r'|"(?:\\.|[^"\\\n])*"'                        # texts
    r"|(?<![0-9a-fA-F])'(?:\\.|[^'\\\n])+'",       # characters, but not digit separators
    re.DOTALL)


def bare(text: str) -> str:
    """The code with comments, literals and preprocessor lines blanked out; line numbers stay."""
    def blank(match: re.Match) -> str:
        return re.sub(r"[^\n]", " ", match.group(0))

    text = _NOT_CODE.sub(blank, text)
    return re.sub(r"^[ \t]*#(?:[^\n]*\\\n)*[^\n]*", blank, text, flags=re.MULTILINE)


def line_of(text: str, offset: int) -> int:
    return text.count("\n", 0, offset) + 1


def finish(findings: list[str]) -> None:
    for finding in findings:
        print(finding)
    print(f"{len(findings)} findings" if findings else "clean")
    sys.exit(1 if findings else 0)
