"""Reports of programs on Graphcore IPUs, and a simulator that makes them.

>>> import tilescope as ts
>>> report = ts.simulate("mnist_pipeline")          # or a spec.toml, a dict, an ONNX file
>>> report.summary()["execution"]["total_cycles"]
>>> report.table("operations/operations").to_pandas()

`open` reads a report; `simulate` and `sweep` start the program that comes with this package, so
that interrupting them ends the simulation and its memory is not yours.
"""

from ._report import Comparison, Picture, Report, Violation, open
from ._table import Table
from ._tilescope import QueryError, ReportError

__all__ = [
    "Comparison",
    "Picture",
    "QueryError",
    "Report",
    "ReportError",
    "SimulationError",
    "SpecError",
    "Table",
    "Violation",
    "open",
    "simulate",
    "sweep",
]

# Starting programs takes modules that reading does not need: they are imported with their first use.
_LAZY = {
    "SimulationError": "_program",
    "SpecError": "_program",
    "simulate": "_simulate",
    "sweep": "_sweep",
}


def __getattr__(name):
    if name in _LAZY:
        from importlib import import_module

        return getattr(import_module(f"{__name__}.{_LAZY[name]}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__():
    return sorted([*globals(), *_LAZY])
