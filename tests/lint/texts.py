"""Words that must not be committed: work notes, and absolute paths of somebody's machine."""

import re
from pathlib import Path

import tree

NOTES = re.compile(r"\b(TO" + r"DO|FIX" + r"ME|XX" + r"X)\b")
MACHINE_PATH = re.compile(r"(?<![\w.$}/:-])/(home|root|work|Users|mnt|scratch)/[\w.-]+")
EXEMPT = {Path("LICENSE")}


def main() -> None:
    top = tree.root()
    findings = []
    for name in tree.files(top):
        if name in EXEMPT or name.suffix not in tree.TEXT_SUFFIXES:
            continue
        for number, line in enumerate(tree.read(top, name).splitlines(), 1):
            for pattern, advice in ((NOTES, "finish it or file an issue"), (MACHINE_PATH, "a path of one machine")):
                hit = pattern.search(line)
                if hit:
                    findings.append(f"{name}:{number}: {hit.group(0)}: {advice}")
    tree.finish(findings)


if __name__ == "__main__":
    main()
