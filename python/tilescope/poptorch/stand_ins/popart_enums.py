"""PopART's enumerations that public scripts name (popart/sessionoptions.hpp, tensorlocation.hpp)."""

import enum

from ..enums import ReductionType, SyncPattern  # noqa: F401

AccumulateOuterFragmentSchedule = enum.IntEnum(
    "AccumulateOuterFragmentSchedule",
    ["Scheduler", "Serial", "OverlapCycleOptimized", "OverlapMemoryOptimized"],
    start=0,
)
BatchSerializationBatchSchedule = enum.IntEnum(
    "BatchSerializationBatchSchedule",
    ["Scheduler", "Isomorphic", "OverlapOnIo", "OverlapOnCompute"],
    start=0,
)
# `None` cannot be a name in Python; PopART's module has the others.
RecomputationType = enum.IntEnum(
    "RecomputationType", ["NoRecompute", "Standard", "NormOnly", "Pipeline", "RecomputeAll"], start=0
)
ReplicatedTensorSharding = enum.IntEnum("ReplicatedTensorSharding", ["Off", "On"], start=0)
SubgraphCopyingStrategy = enum.IntEnum(
    "SubgraphCopyingStrategy", ["OnEnterAndExit", "JustInTime"], start=0
)
SyntheticDataMode = enum.IntEnum("SyntheticDataMode", ["Off", "Zeros", "RandomNormal"], start=0)
TensorStorage = enum.IntEnum("TensorStorage", ["OnChip", "OffChip"], start=0)
VirtualGraphMode = enum.IntEnum(
    "VirtualGraphMode", ["Off", "Manual", "Auto", "ExecutionPhases"], start=0
)
