"""Test lines per source line, by room: printed for people; below 1.0 in core, wire or in all is a failure.

Blank lines don't count. Transcripts and the simulator belong to core, fuzz targets to wire.
"""

from pathlib import Path

import tree

GOALS = {"core": 1.5, "wire": 1.5}   # every other room and the whole: 1.0
FLOOR = 1.0
ENFORCED = ("core", "wire", "all")
TEST_SUFFIXES = tree.CODE_SUFFIXES | {".py", ".txt"}


def room_of_test(name: Path) -> str:
    folder = name.parts[1]
    if folder == "unit" and len(name.parts) > 3:
        return name.parts[2]
    return {"scenario": "core", "sim": "core", "fuzz": "wire"}.get(folder, "")


def count(top: Path) -> dict[str, list[int]]:
    """Room -> [source lines, test lines]; "all" is the sum, with the tests that belong to no single room."""
    totals: dict[str, list[int]] = {"all": [0, 0]}
    for name in tree.files(top):
        lines = None
        if name.parts[0] in ("src", "include") and name.suffix in tree.CODE_SUFFIXES:
            room, column = ("worker" if name.parts[0] == "include" else name.parts[1]), 0
        elif (name.parts[0] == "tests" and len(name.parts) > 2 and name.suffix in TEST_SUFFIXES
              and name.name != "CMakeLists.txt" and name.parts[1] not in ("lint", "bench")):
            room, column = room_of_test(name), 1
        else:
            continue
        lines = sum(1 for line in tree.read(top, name).splitlines() if line.strip())
        totals["all"][column] += lines
        if room and not room.endswith(".cpp"):
            totals.setdefault(room, [0, 0])[column] += lines
    return totals


def main() -> None:
    findings = []
    print(f"{'room':10} {'source':>7} {'tests':>7} {'ratio':>6}  goal")
    for room, (source, tests) in sorted(count(tree.root()).items(), key=lambda item: (item[0] == "all", item[0])):
        ratio = tests / source if source else float("inf")
        goal = GOALS.get(room, 1.0)
        print(f"{room:10} {source:7} {tests:7} {ratio:6.2f}  {goal}{'' if ratio >= goal else '  below its goal'}")
        if room in ENFORCED and ratio < FLOOR:
            findings.append(f"{room}: {ratio:.2f} test lines per source line, at least {FLOOR}")
    tree.finish(findings)


if __name__ == "__main__":
    main()
