"""Every header compiles alone; those of include/ as C++17 (and `.h` ones as C99 too), the others as C++20.

Compilers come from CXX and CC (CTest passes those of the build). A header for a library that is not installed is named
and left out.
"""

import os
import re
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import tree

WARNINGS = ["-Wall", "-Wextra", "-Wpedantic", "-Werror"]
# A header that exists to adapt a library needs that library.
OPTIONAL = {"gloo.hpp": "gloo/context.h", "nccl.hpp": "nccl.h"}


def compile_alone(top: Path, name: Path, language: str, standard: str) -> str | None:
    compiler = os.environ.get("CC" if language == "c" else "CXX") or ("gcc" if language == "c" else "g++")
    include = name.relative_to(name.parts[0])
    run = subprocess.run([compiler, "-x", language, f"-std={standard}", *WARNINGS, "-fsyntax-only",
                          f"-I{top / 'include'}", f"-I{top / 'src'}", "-"],
                         input=f'#include "{include}"\n#include "{include}"\n', capture_output=True, text=True,
                         check=False)
    if run.returncode == 0:
        return None
    errors = re.findall(r"^.*error:.*$", run.stderr, re.MULTILINE) or run.stderr.splitlines() or ["failed"]
    return f"{name}:1: does not compile alone as {standard}: {errors[0]}"


def has_header(header: str) -> bool:
    compiler = os.environ.get("CXX") or "g++"
    probe = subprocess.run([compiler, "-x", "c++", "-fsyntax-only", "-"], input=f"#include <{header}>\n",
                           capture_output=True, text=True, check=False)
    return probe.returncode == 0


def main() -> None:
    top = tree.root()
    jobs = []
    for name in tree.code_files(top, "src", "include"):
        needed = OPTIONAL.get(name.name) if name.parts[0] == "include" else None
        if name.suffix not in {".hpp", ".h"}:
            continue
        if needed and not has_header(needed):
            print(f"{name}: left out, {needed} is not installed")
            continue
        jobs.append((name, "c++", "c++17" if name.parts[0] == "include" else "c++20"))
        if name.suffix == ".h":
            jobs.append((name, "c", "c99"))
    with ThreadPoolExecutor(max_workers=os.cpu_count() or 1) as pool:
        findings = [finding for finding in pool.map(lambda job: compile_alone(top, *job), jobs) if finding]
    print(f"{len(jobs)} compilations")
    tree.finish(findings)


if __name__ == "__main__":
    sys.exit(main())
