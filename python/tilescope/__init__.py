"""Reports of programs on Graphcore IPUs, and a simulator that writes them.

>>> import tilescope as ts
>>> report = ts.simulate("mnist_pipeline")          # or a spec.toml, a dict, an ONNX file
>>> report.summary()["execution"]["total_cycles"]
>>> report.table("operations/operations").to_pandas()

`open` reads a report. `simulate` and `sweep` start the program of this package as a separate
process: an interrupt ends the simulation, and its memory is released when it ends.
"""

from ._report import Comparison, Picture, Report, Violation, open
from ._table import Table
from ._tilescope import QueryError, ReportError

__all__ = [
    "COMMANDS",
    "Comparison",
    "Picture",
    "Plot",
    "QueryError",
    "Report",
    "ReportError",
    "SimulationError",
    "SpecError",
    "Table",
    "Violation",
    "__version__",
    "bisect",
    "convert",
    "keys",
    "model",
    "onnx",
    "open",
    "reproduce",
    "sensitivity",
    "series",
    "simulate",
    "specs",
    "sweep",
    "tune",
    "validate",
]

# Modules for starting programs are imported on first use, because reading does not need them.
_LAZY = {
    "Plot": "_plot",
    "SimulationError": "_program",
    "SpecError": "_program",
    "simulate": "_simulate",
    "sweep": "_sweep",
    **dict.fromkeys(
        (
            "COMMANDS",
            "bisect",
            "convert",
            "keys",
            "model",
            "onnx",
            "reproduce",
            "sensitivity",
            "series",
            "specs",
            "tune",
            "validate",
        ),
        "_commands",
    ),
}


def __getattr__(name):
    if name == "__version__":
        from importlib.metadata import version

        return version("tilescope")
    if name in _LAZY:
        from importlib import import_module

        return getattr(import_module(f"{__name__}.{_LAZY[name]}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__():
    return sorted([*globals(), *_LAZY])
