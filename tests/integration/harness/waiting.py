"""Waiting for something with a deadline, never for a fixed time."""
import os
import time

# Sanitized builds and loaded machines are slower by this factor; every deadline is multiplied by it.
TIME_SCALE = float(os.environ.get("DDLAUNCH_TIME_SCALE", "1"))


def wait_until(condition, what, seconds=10.0):
    """Returns the condition's first true value; fails the test naming `what` when there is none in time."""
    deadline = time.monotonic() + seconds * TIME_SCALE
    while True:
        value = condition()
        if value:
            return value
        if time.monotonic() > deadline:
            raise AssertionError(f"not within {seconds * TIME_SCALE:.1f} s: {what}")
        time.sleep(0.005)


def stays_true(condition, what, seconds):
    """Checks a thing that must not change for a while (a process that has to survive, a port that stays shut)."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        assert condition(), f"changed within {seconds} s: {what}"
        time.sleep(0.02)
