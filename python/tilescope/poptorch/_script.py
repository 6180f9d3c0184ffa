"""Puts this module where ``import poptorch`` finds it, for one process."""

import importlib
import pathlib
import runpy
import sys

_NAME = "poptorch"
_PARTS = ("enums", "ops", "optim", "profiling")


def install() -> None:
    """Answers ``import poptorch`` with this module, in this process."""
    package = importlib.import_module("tilescope.poptorch")
    sys.modules[_NAME] = package
    for part in _PARTS:
        sys.modules[f"{_NAME}.{part}"] = importlib.import_module(f"tilescope.poptorch.{part}")
    sys.modules[f"{_NAME}.options"] = importlib.import_module("tilescope.poptorch._options")
    # Where PopTorch has its errors.
    sys.modules[f"{_NAME}.poptorch_core"] = importlib.import_module("tilescope.poptorch._errors")


def run(arguments: list) -> None:
    """Runs a script with its arguments, or a module after ``-m``."""
    install()
    if arguments[0] == "-m":
        sys.argv = arguments[1:]
        runpy.run_module(arguments[1], run_name="__main__", alter_sys=True)
        return
    sys.argv = arguments
    sys.path.insert(0, str(pathlib.Path(arguments[0]).resolve().parent))
    runpy.run_path(arguments[0], run_name="__main__")
