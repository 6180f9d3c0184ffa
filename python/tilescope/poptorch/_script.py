"""Makes ``import poptorch`` return this module, in one process."""

import importlib
import importlib.machinery
import pathlib
import runpy
import sys

# Lightning's packages.
LIGHTNING = ("lightning.pytorch", "pytorch_lightning")
_NAME = "poptorch"
_PARTS = ("autocasting", "enums", "ops", "optim", "profiling")


def install() -> None:
    """Makes ``import poptorch`` return this module, in this process."""
    package = importlib.import_module("tilescope.poptorch")
    sys.modules[_NAME] = package
    for part in _PARTS:
        sys.modules[f"{_NAME}.{part}"] = importlib.import_module(f"tilescope.poptorch.{part}")
    sys.modules[f"{_NAME}.options"] = importlib.import_module("tilescope.poptorch._options")
    # Where PopTorch has its errors.
    sys.modules[f"{_NAME}.poptorch_core"] = importlib.import_module("tilescope.poptorch._errors")
    importlib.import_module("tilescope.poptorch.stand_ins").install()
    watch_lightning()


class _LightningFinder:
    """Finds Lightning's packages as Python does, and adds their IPU classes when they are
    imported."""

    @staticmethod
    def find_spec(name, path=None, target=None):
        """The module as Python finds it, with a loader that adds classes."""
        if name not in LIGHTNING:
            return None
        spec = importlib.machinery.PathFinder.find_spec(name, path, target)
        if spec is None:
            return None
        execute = spec.loader.exec_module

        def execute_and_stand_in(module) -> None:
            execute(module)
            _stand_in(module)

        spec.loader.exec_module = execute_and_stand_in
        return spec


def watch_lightning() -> None:
    """Adds the IPU classes to Lightning's packages, now or when they are imported."""
    if _LightningFinder not in sys.meta_path:
        sys.meta_path.insert(0, _LightningFinder)
    for name in LIGHTNING:
        if name in sys.modules:
            _stand_in(sys.modules[name])


def _stand_in(package) -> None:
    # Imported only where Lightning is: it takes seconds.
    importlib.import_module("tilescope.poptorch.lightning").stand_in(package)


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
