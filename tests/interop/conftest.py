import os
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "integration"))

from harness.fixtures import *  # noqa: E402,F401,F403  (pytest finds fixtures by name)
from harness.fixtures import ROOT, register_markers  # noqa: E402


def pytest_configure(config):
    register_markers(config)


def torch_version(python):
    import subprocess
    asked = subprocess.run([python, "-c", "import torch; print(torch.__version__)"], capture_output=True, text=True,
                           check=False)
    return asked.stdout.strip() if asked.returncode == 0 else ""


@pytest.fixture(scope="session", params=["distribution", "2.13"])
def torch_python(request):
    """A Python with PyTorch: the distribution's package (1.13), and 2.13 from a virtual environment
    (TORCH213_PYTHON, else .venvs/torch213)."""
    if request.param == "distribution":
        python, missing = "/usr/bin/python3", "package python3-torch"
    else:
        python = os.environ.get("TORCH213_PYTHON") or str(ROOT / ".venvs" / "torch213" / "bin" / "python")
        missing = "set TORCH213_PYTHON, or run tests/run --full"
    version = torch_version(python) if os.access(python, os.X_OK) else ""
    if not version or (request.param == "2.13" and not version.startswith("2.13")):
        pytest.skip(f"no PyTorch {request.param} for {python} ({missing})")
    return python
