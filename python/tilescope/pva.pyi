"""libpva's object model over reports of tilescope.

Everything that a report did not record is an ``AttributeError``.
"""

import enum
import os
from collections.abc import Iterator
from types import ModuleType
from typing import Any, Generic, TypeVar, overload

_T = TypeVar("_T")

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

class _List(Generic[_T]):
    def __len__(self) -> int: ...
    @overload
    def __getitem__(self, key: int) -> _T: ...
    @overload
    def __getitem__(self, key: slice) -> _List[_T]: ...
    def __iter__(self) -> Iterator[_T]: ...

class _TileValues:
    """A whole number for each tile of the replica; NumPy reads it without a copy."""

    def __len__(self) -> int: ...
    @overload
    def __getitem__(self, key: int) -> int: ...
    @overload
    def __getitem__(self, key: slice) -> list[int]: ...
    def __iter__(self) -> Iterator[int]: ...
    @property
    def __array_interface__(self) -> dict[str, Any]: ...

class _ReportVersion:
    major: int
    minor: int
    point: int
    isUnstableFormat: bool

class _PoplarVersion:
    string: str
    major: int
    minor: int
    point: int
    packageHash: str

class InstrumentationSettings:
    class Level(enum.Enum):
        Off = ...
        Vertex = ...
        Tile = ...
        Ipu = ...
        Device = ...
        Unknown = ...
        def __call__(self) -> InstrumentationSettings.Level: ...

    compute: Level
    externalExchange: Level

class Report:
    version: _ReportVersion
    poplarVersion: _PoplarVersion
    instrumentationSettings: InstrumentationSettings
    compilation: CompilationReport
    execution: ExecutionReport

class CompilationReport:
    target: Target
    graph: Graph
    ipus: _List[IPU]
    tiles: _List[Tile]
    computeSets: _List[ComputeSet]
    programs: _List[Program]
    livenessProgramSteps: _List[LivenessProgramStep]
    alwaysLiveVariables: _List[Variable]
    loweredVariables: _LoweredVariables
    def alwaysLiveVariablesForTile(self, tile: int) -> _List[Variable]: ...

class Target:
    class Type(enum.Enum):
        Ipu = ...
        IpuModel = ...
        Cpu = ...
        Unknown = ...

    type: Type
    architecture: IPU.Architecture
    numIPUs: int
    numTiles: int
    tilesPerIpu: int
    bytesPerTile: int
    bytesPerIPU: int
    totalMemory: int
    clockFrequency: int
    numReplicas: int
    ipusPerReplica: int
    tilesPerReplica: int
    memoryPerReplica: int

class Graph:
    numComputeSets: int
    numVertices: int
    numEdges: int
    numVars: int

class IPU:
    class Architecture(enum.Enum):
        Ipu1 = ...
        Ipu2 = ...
        Ipu21 = ...
        Unknown = ...

    tiles: _List[Tile]

class Tile:
    memory: _TileMemory

class _UsedBytes:
    includingGaps: int
    excludingGaps: int

class _TileMemory:
    total: _UsedBytes
    nonInterleaved: _UsedBytes
    interleaved: _UsedBytes
    overflowed: _UsedBytes
    alwaysLiveBytes: int
    notAlwaysLiveBytes: int
    category: _MemoryCategories
    vertices: _List[_TileVertex]

class _MemoryCategories:
    """An attribute for each category; ``dir`` lists them."""

    def __getattr__(self, name: str) -> _CategoryBytes: ...

class _CategoryBytes:
    total: int
    nonInterleaved: _CategoryRegion
    interleaved: _CategoryRegion
    overflowed: _CategoryRegion

class _CategoryRegion:
    nonOverlapped: int
    overlapped: int

class _TileVertex:
    type: VertexType
    codeBytes: int

class VertexType:
    name: str
    size: int

class _VertexInstances:
    type: VertexType
    countByTile: _TileValues
    estimatedCycles: int

class ComputeSet:
    _id: int
    name: str
    vertices: _List[_VertexInstances]
    cyclesByTile: _TileValues
    estimatedCyclesByTile: _TileValues

class Program:
    class Type(enum.Enum):
        OnTileExecute = ...
        OnEveryTileSwitch = ...
        DoExchange = ...
        GlobalExchange = ...
        StreamCopyBegin = ...
        StreamCopyMid = ...
        StreamCopyEnd = ...
        Sync = ...
        SyncAns = ...
        Sans = ...
        Sequence = ...
        Repeat = ...
        Call = ...
        Block = ...
        WriteUndef = ...
        Unknown = ...

    _id: int
    name: str
    type: Type
    children: _List[Program]
    computeset: ComputeSet
    vars: _List[LoweredVariable]
    controlCodeByTile: _TileValues
    codeBytesByTile: _TileValues
    estimatedCyclesByTile: _TileValues
    def accept(self, visitor: ProgramVisitor) -> None: ...

class ProgramVisitor:
    """Base of visitors: ``program.accept(visitor)`` calls the method for the program's type."""

    def visitOnTileExecute(self, program: Program) -> None: ...
    def visitOnEveryTileSwitch(self, program: Program) -> None: ...
    def visitDoExchange(self, program: Program) -> None: ...
    def visitGlobalExchange(self, program: Program) -> None: ...
    def visitStreamCopyBegin(self, program: Program) -> None: ...
    def visitStreamCopyMid(self, program: Program) -> None: ...
    def visitStreamCopyEnd(self, program: Program) -> None: ...
    def visitSync(self, program: Program) -> None: ...
    def visitSyncAns(self, program: Program) -> None: ...
    def visitSans(self, program: Program) -> None: ...
    def visitSequence(self, program: Program) -> None: ...
    def visitRepeat(self, program: Program) -> None: ...
    def visitCall(self, program: Program) -> None: ...
    def visitBlock(self, program: Program) -> None: ...
    def visitWriteUndef(self, program: Program) -> None: ...
    def visitUnknown(self, program: Program) -> None: ...

class LivenessProgramStep:
    program: Program
    notAlwaysLiveMemory: _LivenessMemory
    def notAlwaysLiveMemoryForIpu(self, ipu: int) -> _LivenessMemory: ...
    def notAlwaysLiveMemoryForTile(self, tile: int) -> _LivenessMemory: ...

class _LivenessMemory:
    bytes: int
    variables: _List[Variable]

class Variable:
    _id: int
    name: str
    size: int

class _LoweredVariables:
    allBriefVars: _List[LoweredVariable]
    def forTile(self, tile: int) -> _List[LoweredVariable]: ...

class LoweredVariable:
    _id: int
    id: int
    name: str
    bytes: int
    tileId: int
    alwaysLive: bool
    equivalenceClass: _EquivalenceClass
    hasUnloweredVar: bool
    unloweredVar: Variable

class _EquivalenceClass:
    id: int
    steps: _List[_StepInterval]

class _StepInterval:
    start: int
    end: int

class ExecutionReport:
    totalCycles: _TotalCycles
    runs: _List[Run]
    steps: _List[Step]

class _TotalCycles:
    total: int

class Run:
    name: str
    steps: _List[Step]
    microseconds: _Microseconds

class _Microseconds:
    start: int
    end: int

class Step:
    program: Program
    computeSets: _List[ComputeSet]
    cyclesByTile: _TileValues
    ipus: _List[_StepOnIpu]

class _StepOnIpu:
    cycles: int
    activeCycles: _ActiveCycles
    allCycles: _ActiveCycles
    activeTileBalance: float
    tileBalance: float
    dataIn: int
    dataOut: int

class _ActiveCycles:
    cyclesFrom: _CycleInterval
    cyclesTo: _CycleInterval

class _CycleInterval:
    min: int
    max: int

class OperationAnalysis:
    def __init__(self, report: Report) -> None: ...
    operations: _List[Operation]

class Operation:
    name: str
    debugContext: DebugContext
    replacedDebugContext: _List[DebugContext]
    vars: _List[LoweredVariable]
    firstStepIndex: int
    lastStepIndex: int
    def programs(self) -> _List[Program]: ...

class DebugContext:
    id: int
    name: str
    parents: _List[DebugContext]
    layer: str
    json: str

def openReport(
    profile: str | os.PathLike[str], debug: str | os.PathLike[str] | None = None
) -> Report: ...
def openTrace(file: str | os.PathLike[str]) -> Any: ...
def install() -> ModuleType: ...

pva_core: ModuleType
