from harness.fixtures import *  # noqa: F401,F403  (pytest finds fixtures by name)
from harness.fixtures import register_markers


def pytest_configure(config):
    register_markers(config)
