"""tests/totals.py counts cases as GoogleTest, pytest and unittest print them, and loses no failure."""

import sys
import tempfile
import unittest
import xml.etree.ElementTree as ElementTree
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import totals  # noqa: E402

GOOGLETEST = """[==========] Running 3 tests from 1 test suite.
[ RUN      ] Kv.Set
[       OK ] Kv.Set (0 ms)
[ RUN      ] Kv.Slow
kv_test.cpp:12: Skipped
no second address

[  SKIPPED ] Kv.Slow (1 ms)
[ RUN      ] Kv.Get
kv_test.cpp:20: Failure
[  FAILED  ] Kv.Get (0 ms)
[==========] 3 tests from 1 test suite ran. (1 ms total)
[  PASSED  ] 1 test.
[  SKIPPED ] 1 test, listed below:
[  SKIPPED ] Kv.Slow
[  FAILED  ] 1 test, listed below:
[  FAILED  ] Kv.Get

 1 FAILED TEST
"""
PYTEST = """collected 6 items
=========================== short test summary info ============================
SKIPPED [2] test_two.py:9: needs a second host
FAILED test_two.py::test_a - AssertionError
ERROR test_two.py::test_b - OSError
=============== 1 failed, 2 passed, 2 skipped, 1 error in 0.53s ================
"""
UNITTEST = """test_a (x.T.test_a) ... ok
test_b (x.T.test_b) ... skipped 'no compiler'
test_c (x.T.test_c) ... FAIL
Ran 3 tests in 0.001s

FAILED (failures=1, skipped=1)
"""


def case(status: str, output: str = "", skipped: str | None = None) -> ElementTree.Element:
    element = ElementTree.Element("testcase", name="t", status=status)
    if skipped is not None:
        ElementTree.SubElement(element, "skipped", message=skipped)
    ElementTree.SubElement(element, "system-out").text = output
    return element


class Outcomes(unittest.TestCase):
    def check(self, element: ElementTree.Element, passed: int, failed: int, skips: list[str]) -> None:
        outcome = totals.outcome_of(element)
        self.assertEqual((outcome.passed, outcome.failed, outcome.skips), (passed, failed, skips))

    def test_frameworks(self):
        self.check(case("fail", GOOGLETEST), 1, 1, ["Kv.Slow: no second address"])
        self.check(case("fail", PYTEST), 2, 2, ["test_two.py:9: needs a second host"] * 2)
        self.check(case("fail", UNITTEST), 1, 1, ["no compiler"])

    def test_quiet_pytest(self):
        self.check(case("run", "...\n3 passed in 0.01s\n"), 3, 0, [])
        self.check(case("run", "== 2 passed, 1 deselected, 1 xfailed in 61.01s (0:01:01) ==\n"), 2, 0,
                   ["no reason given"])

    def test_plain_programs(self):
        self.check(case("run", "fine\n"), 1, 0, [])
        self.check(case("fail", "bad\n"), 0, 1, [])
        self.check(case("notrun", "one\nSKIP: no compiler\n", "SKIP_RETURN_CODE=77"), 0, 0, ["SKIP: no compiler"])

    def test_a_crash_after_passes_is_a_failure(self):
        self.check(case("fail", "3 passed in 0.01s\nSegmentation fault\n"), 3, 1, [])

    def test_a_program_that_is_missing_is_a_failure(self):
        self.check(case("notrun", "", "Unable to find executable"), 0, 1, [])


class Sums(unittest.TestCase):
    def total(self, strict: bool) -> tuple[int, int, int]:
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name)
            suite = ElementTree.Element("testsuite")
            suite.append(case("run", "2 passed, 1 skipped in 0.1s\n"))
            (folder / "a.xml").write_bytes(ElementTree.tostring(suite))
            gpu = case("notrun", "SKIP: no GPU", "SKIP_RETURN_CODE=77")
            suite[:] = [gpu]
            (folder / "b.xml").write_bytes(ElementTree.tostring(suite))
            (folder / "b.json").write_text('{"tests": [{"name": "t", "properties": '
                                           '[{"name": "LABELS", "value": ["interop", "gpu"]}]}]}', encoding="utf-8")
            (folder / "extra.txt").write_text("passed bench/startup\nfailed build tsan\n", encoding="utf-8")
            sum_, _ = totals.add_up(folder, strict)
            return sum_.passed, sum_.failed, len(sum_.skips)

    def test_sums(self):
        self.assertEqual(self.total(strict=False), (3, 1, 2))

    def test_strict_spares_gpu_tests_only(self):
        self.assertEqual(self.total(strict=True), (3, 2, 1))

    def test_a_run_without_tests_is_a_failure(self):
        with tempfile.TemporaryDirectory() as name:
            (Path(name) / "a.xml").write_text("<testsuite/>", encoding="utf-8")
            sum_, lines = totals.add_up(Path(name), strict=False)
            self.assertEqual((sum_.failed, lines), (1, ["FAILED  a: no tests were found"]))


if __name__ == "__main__":
    unittest.main(verbosity=2)
