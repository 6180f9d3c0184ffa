"""What tests share: small reports, and a word about libraries that are not there."""

from __future__ import annotations

import atexit
import importlib.util
import tempfile
import unittest
from functools import cache
from pathlib import Path

import tilescope as ts

REPOSITORY = Path(__file__).resolve().parents[2]
SAMPLES = REPOSITORY / "sample_reports"

# A spec that simulates in a moment.
SMALL = {
    "model": {"name": "matmul_chain", "m": 64, "k": 64, "n": 64, "p": 64, "training": False},
    "target": {"name": "mk2", "type": "ipu_model"},
}


def needs(*libraries: str):
    """Skips a test where a library is not installed, and says which."""
    missing = [name for name in libraries if importlib.util.find_spec(name) is None]
    return unittest.skipIf(missing, f"not installed: {', '.join(missing)}")


@cache
def sample(name: str) -> ts.Report:
    """A report that comes with the repository."""
    return ts.open(SAMPLES / name)


@cache
def scratch() -> Path:
    """A directory that goes with the tests."""
    directory = tempfile.TemporaryDirectory(prefix="tilescope-tests-")
    atexit.register(directory.cleanup)
    return Path(directory.name)
