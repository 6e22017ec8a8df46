"""clang-format 14 leaves every C and C++ file as it is. Exit 77 (skipped) where that version is not installed."""

import shutil
import subprocess
import sys

import tree

VERSION = "14."


def find_clang_format() -> str | None:
    for program in ("clang-format-14", "clang-format"):
        if shutil.which(program):
            told = subprocess.run([program, "--version"], capture_output=True, text=True, check=False).stdout
            if f"version {VERSION}" in told:
                return program
    return None


def main() -> None:
    top = tree.root()
    program = find_clang_format()
    if program is None:
        print("SKIP: clang-format 14 is not installed (package clang-format of Debian 12)")
        sys.exit(77)
    names = [str(name) for name in tree.code_files(top, "src", "include", "tests", "examples")]
    findings = []
    for start in range(0, len(names), 50):
        run = subprocess.run([program, "--dry-run", "--ferror-limit=0", *names[start:start + 50]], cwd=top,
                             capture_output=True, text=True, check=False)
        findings += [line for line in run.stderr.splitlines() if "-Wclang-format-violations" in line]
        if run.returncode != 0 and not findings:
            findings.append(run.stderr.strip())
    first_of_file = {line.split(":")[0]: line.replace("code should be clang-formatted", f"run {program} -i on the file")
                     for line in reversed(findings)}
    tree.finish(sorted(first_of_file.values()))


if __name__ == "__main__":
    main()
