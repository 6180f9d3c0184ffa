"""Modules of the Poplar SDK, and two that its scripts import, as far as public scripts use them.

:func:`install` makes their imports work. Names that a stand-in lacks raise an error.
"""

import importlib
import importlib.util
import sys

from .. import _executor, ops

# Modules of the SDK are replaced even if it is installed, because they need IPUs.
_SDK = ("popart", "popdist", "popdist.poptorch", "libpvti")
_OTHERS = ("examples_utils", "horovod", "horovod.torch")


def install() -> None:
    """Makes imports of these modules return the stand-ins, in this process."""
    import torch

    others = [name for name in _OTHERS if importlib.util.find_spec(name.split(".")[0]) is None]
    for name in (*_SDK, *others):
        sys.modules[name] = importlib.import_module(f"{__name__}.{name}")
    # Private parts of PopTorch that public scripts import.
    package = sys.modules["poptorch"]
    package._impl = package._poplar_executor = _executor
    for name in ("_impl", "_poplar_executor"):
        sys.modules[f"poptorch.{name}"] = _executor
    torch.ops.poptorch = ops.TorchOperations()


def refusal(module: str):
    """A ``__getattr__`` for a module: names what the stand-in lacks."""

    def __getattr__(name: str):
        raise AttributeError(f"{module}.{name} is not modelled: tilescope has a part of {module} only")

    return __getattr__
