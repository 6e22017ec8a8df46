"""Adds up the ctest runs of tests/run: prints failures and skips with their reasons, then the closing line.

Counted are test cases: where a test's output has the summary of GoogleTest, pytest or unittest its cases count one by
one, so that a case skipped inside a passing program is seen; any other program counts as one. With --strict a skip is a
failure, except in tests labelled gpu. Reads NAME.xml (JUnit by ctest), NAME.json (labels) and extra.txt (lines
"passed|failed what") of one folder. Exit status 0 when nothing failed and something passed.
"""

import argparse
import json
import re
import sys
import xml.etree.ElementTree as ElementTree
from dataclasses import dataclass, field
from pathlib import Path


@dataclass
class Outcome:
    passed: int = 0
    failed: int = 0
    skips: list[str] = field(default_factory=list)  # one reason per skipped case


def _number(pattern: str, text: str) -> int:
    return sum(int(found) for found in re.findall(pattern, text, re.MULTILINE))


def _googletest(output: str) -> Outcome | None:
    if not re.search(r"^\[==========\] \d+ tests? from \d+ test \w+ ran", output, re.MULTILINE):
        return None
    reasons = re.findall(r": Skipped\n(.*)\n", output)
    names = re.findall(r"^\[  SKIPPED \] (\S+) \(\d+ ms\)", output, re.MULTILINE)
    reasons += ["no reason given"] * (len(names) - len(reasons))
    return Outcome(_number(r"^\[  PASSED  \] (\d+) test", output),
                   _number(r"^\[  FAILED  \] (\d+) tests?, listed below", output),
                   [f"{name}: {reason}" for name, reason in zip(names, reasons)])


def _pytest(output: str) -> Outcome | None:
    summaries = re.findall(r"^=*[ ]?((?:\d+ [a-z]+(?:, )?)+) in [\d.]+s.*$", output, re.MULTILINE)
    if not summaries:
        return None
    counts = {word: int(number) for number, word in re.findall(r"(\d+) ([a-z]+)", summaries[-1])}
    skips = []
    for times, reason in re.findall(r"^SKIPPED \[(\d+)\] (.*)$", output, re.MULTILINE):
        skips += [reason] * int(times)
    skips += re.findall(r"^XFAIL (.*)$", output, re.MULTILINE)
    skipped = counts.get("skipped", 0) + counts.get("xfailed", 0)
    skips = (skips + ["no reason given"] * skipped)[:skipped]
    return Outcome(counts.get("passed", 0),
                   counts.get("failed", 0) + counts.get("error", 0) + counts.get("errors", 0), skips)


def _unittest(output: str) -> Outcome | None:
    ran = re.search(r"^Ran (\d+) tests? in ", output, re.MULTILINE)
    ended = re.search(r"^(OK|FAILED)(?: \((.*)\))?$", output, re.MULTILINE)
    if not ran or not ended:
        return None
    counts = {word: int(number) for word, number in re.findall(r"([a-z]+)=(\d+)", ended.group(2) or "")}
    failed = counts.get("failures", 0) + counts.get("errors", 0)
    skips = re.findall(r"\.\.\. skipped ['\"](.*)['\"]$", output, re.MULTILINE)
    skips = (skips + ["no reason given"] * counts.get("skipped", 0))[:counts.get("skipped", 0)]
    return Outcome(int(ran.group(1)) - failed - len(skips), failed, skips)


def outcome_of(case: ElementTree.Element) -> Outcome:
    output = case.findtext("system-out") or ""
    status = case.get("status")
    skipped = case.find("skipped")
    why_not_run = (skipped.get("message") if skipped is not None else "") or ""
    if status == "notrun" and not why_not_run.startswith("SKIP_"):
        return Outcome(failed=1)  # the program is missing or what it depends on failed
    inner = _googletest(output) or _pytest(output) or _unittest(output)
    if status in ("notrun", "disabled"):
        if inner and inner.skips:
            return inner
        lines = [line for line in output.splitlines() if line.strip()]
        return Outcome(skips=[lines[-1].strip() if lines else why_not_run or status])
    result = inner or Outcome(passed=1 if status == "run" else 0)
    if status == "fail" and result.failed == 0:
        result.failed = 1  # a crash or a timeout
    return result


def labels_of(path: Path) -> dict[str, set[str]]:
    try:
        tests = json.loads(path.read_text(encoding="utf-8"))["tests"]
    except (OSError, ValueError, KeyError):
        return {}
    return {test["name"]: {label for item in test.get("properties", []) if item["name"] == "LABELS"
                           for label in item["value"]} for test in tests}


def add_up(folder: Path, strict: bool) -> tuple[Outcome, list[str]]:
    total, lines = Outcome(), []
    for path in sorted(folder.glob("*.xml")):
        labels = labels_of(path.with_suffix(".json"))
        cases = list(ElementTree.parse(path).getroot().iter("testcase"))
        if not cases:  # a build that registers nothing must not look like one that passed
            total.failed += 1
            lines.append(f"FAILED  {path.stem}: no tests were found")
        for case in cases:
            name, outcome = case.get("name", "?"), outcome_of(case)
            counts_as_failure = strict and "gpu" not in labels.get(name, set())
            if outcome.failed:
                lines.append(f"FAILED  {path.stem}: {name}")
            lines += [f"{'SKIPPED, which counts as a failure here' if counts_as_failure else 'SKIPPED'}  "
                      f"{path.stem}: {name}: {reason}" for reason in outcome.skips]
            total.passed += outcome.passed
            total.failed += outcome.failed + (len(outcome.skips) if counts_as_failure else 0)
            total.skips += [] if counts_as_failure else outcome.skips
    extra = folder / "extra.txt"
    for line in extra.read_text(encoding="utf-8").splitlines() if extra.exists() else []:
        verdict, _, what = line.partition(" ")
        if verdict == "passed":
            total.passed += 1
        else:
            total.failed += 1
            lines.append(f"FAILED  {what}")
    return total, lines


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--strict", action="store_true")
    parser.add_argument("folder", type=Path)
    arguments = parser.parse_args()
    total, lines = add_up(arguments.folder, arguments.strict)
    for line in lines:
        print(line)
    print(f"{total.passed} passed, {total.failed} failed, {len(total.skips)} skipped")
    return 0 if total.failed == 0 and total.passed > 0 else 1


if __name__ == "__main__":
    sys.exit(main())
