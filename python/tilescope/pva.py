"""libpva's object model over reports of tilescope.

Scripts with ``import pva`` run unchanged: ``python -m tilescope.pva SCRIPT [ARGUMENT ...]`` runs
one with this module as its ``pva``, and :func:`install` does the same in a running interpreter.
The package itself installs no ``pva`` and leaves that of a Poplar SDK alone.
"""

import enum
import os
import runpy
import sys

from ._tilescope import _pva

__all__ = [
    "CompilationReport",
    "ComputeSet",
    "IPU",
    "Operation",
    "OperationAnalysis",
    "Program",
    "ProgramVisitor",
    "Report",
    "Target",
    "install",
    "openReport",
    "openTrace",
]

CompilationReport = _pva.CompilationReport
ComputeSet = _pva.ComputeSet
DebugContext = _pva.DebugContext
ExecutionReport = _pva.ExecutionReport
Graph = _pva.Graph
InstrumentationSettings = _pva.InstrumentationSettings
IPU = _pva.IPU
LivenessProgramStep = _pva.LivenessProgramStep
LoweredVariable = _pva.LoweredVariable
Operation = _pva.Operation
OperationAnalysis = _pva.OperationAnalysis
Program = _pva.Program
Report = _pva.Report
Run = _pva.Run
Step = _pva.Step
Target = _pva.Target
Tile = _pva.Tile
Variable = _pva.Variable
VertexType = _pva.VertexType
openReport = _pva.openReport


class _ProgramType(enum.Enum):
    """Types of programs."""

    OnTileExecute = enum.auto()
    OnEveryTileSwitch = enum.auto()
    DoExchange = enum.auto()
    GlobalExchange = enum.auto()
    StreamCopyBegin = enum.auto()
    StreamCopyMid = enum.auto()
    StreamCopyEnd = enum.auto()
    Sync = enum.auto()
    SyncAns = enum.auto()
    Sans = enum.auto()
    Sequence = enum.auto()
    Repeat = enum.auto()
    Call = enum.auto()
    Block = enum.auto()
    WriteUndef = enum.auto()
    Unknown = enum.auto()


class _TargetType(enum.Enum):
    """Kinds of targets."""

    Ipu = enum.auto()
    IpuModel = enum.auto()
    Cpu = enum.auto()
    Unknown = enum.auto()


class _Architecture(enum.Enum):
    """Generations of IPUs."""

    Ipu1 = enum.auto()
    Ipu2 = enum.auto()
    Ipu21 = enum.auto()
    Unknown = enum.auto()


class _InstrumentationLevel(enum.Enum):
    """The recorded cycles. A value returned by a method can also be called, as in C++."""

    Off = enum.auto()
    Vertex = enum.auto()
    Tile = enum.auto()
    Ipu = enum.auto()
    Device = enum.auto()
    Unknown = enum.auto()

    def __call__(self):
        return self


for _class, _name, _enum in (
    (Program, "Type", _ProgramType),
    (Target, "Type", _TargetType),
    (IPU, "Architecture", _Architecture),
    (InstrumentationSettings, "Level", _InstrumentationLevel),
):
    _enum.__name__ = _name
    _enum.__qualname__ = f"{_class.__name__}.{_name}"
    setattr(_class, _name, _enum)


class ProgramVisitor:
    """Base of visitors: ``program.accept(visitor)`` calls the method for the program's type.

    It visits only that program, not its children.
    """


def _visit_nothing(self, program):
    """Does nothing; for subclasses to override."""


for _member in _ProgramType:
    setattr(ProgramVisitor, f"visit{_member.name}", _visit_nothing)


def openTrace(file):  # libpva's spelling
    """Raises an error: tilescope does not read ``.pvti`` files of the PopVision System Analyser."""
    raise NotImplementedError(
        f"{file}: tilescope does not read .pvti files of the System Analyser; the host activity "
        "of a run is in the report itself, see `tilescope.open`"
    )


def install():
    """Makes ``import pva`` return this module in this interpreter."""
    sys.modules["pva"] = sys.modules[__name__]
    return sys.modules[__name__]


pva_core = sys.modules[__name__]


def _main():
    """Runs a script with this module as its ``pva``."""
    if len(sys.argv) < 2:
        sys.exit("usage: python -m tilescope.pva SCRIPT [ARGUMENT ...]")
    # Run as a script this file is `__main__`: scripts get the module that the extension knows.
    import tilescope.pva

    tilescope.pva.install()
    sys.argv = sys.argv[1:]
    sys.path[0] = os.path.dirname(os.path.abspath(sys.argv[0]))
    runpy.run_path(sys.argv[0], run_name="__main__")


if __name__ == "__main__":
    _main()
