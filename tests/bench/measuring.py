"""Medians, bootstrap intervals and the table that both benchmarks print."""
import os
import random
import statistics
import sys
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests" / "integration"))
from harness.environment import clean_environment  # noqa: E402,F401

RESAMPLES = 2000


def launcher():
    path = Path(os.environ.get("DDLAUNCH_BIN") or ROOT / "build" / "ddlaunch")
    if not os.access(path, os.X_OK):
        sys.exit(f"{path} is not built; set DDLAUNCH_BIN")
    return str(path)


def quantile(values, q):
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(q * len(ordered)))]


def interval(statistic, *samples):
    """The 95 % bootstrap interval of statistic(*samples). Seeded: the same samples give the same interval."""
    generator = random.Random(1)
    drawn = sorted(statistic(*[generator.choices(sample, k=len(sample)) for sample in samples])
                   for _ in range(RESAMPLES))
    return drawn[int(0.025 * RESAMPLES)], drawn[int(0.975 * RESAMPLES)]


def ratio_of_medians(upper, lower):
    return statistics.median(upper) / statistics.median(lower)


@dataclass
class Row:
    """One goal. It is missed only when the whole interval lies on the wrong side of it."""

    what: str
    value: float
    low: float
    high: float
    goal: float
    at_most: bool
    unit: str = ""

    @property
    def missed(self):
        return self.low > self.goal if self.at_most else self.high < self.goal

    def cells(self):
        word = "at most" if self.at_most else "at least"
        return [self.what, f"{self.value:.2f}{self.unit}", f"{self.low:.2f} to {self.high:.2f}",
                f"{word} {self.goal:g}{self.unit}", "MISSED" if self.missed else "met"]


def print_rows(rows):
    table = [["what", "measured", "95 % interval", "goal", ""], *[row.cells() for row in rows]]
    widths = [max(len(line[column]) for line in table) for column in range(5)]
    for line in table:
        print("  ".join(cell.ljust(width) for cell, width in zip(line, widths)).rstrip())


def finish(rows, notes=()):
    print_rows(rows)
    for note in notes:
        print(note)
    missed = [row.what for row in rows if row.missed]
    print(f"goals missed: {', '.join(missed)}" if missed else f"all {len(rows)} goals met")
    sys.exit(1 if missed else 0)
