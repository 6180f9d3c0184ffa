"""PopTorch's enumerations, with its names and values."""

import enum


class MeanReductionStrategy(enum.IntEnum):
    """Time at which averaged gradients are divided."""

    Running = 0
    Post = 1
    PostAndLoss = 2


class DataLoaderMode(enum.IntEnum):
    """Place where the loader prepares samples."""

    Sync = 0
    Async = 1
    AsyncRebatched = 2


class SharingStrategy(enum.IntEnum):
    """Transfer of the data set of an asynchronous loader to its worker."""

    SharedMemory = 0
    FileSystem = 1
    Fork = 2
    ForkServer = 3


class OutputMode(enum.IntEnum):
    """The micro-batches that return their results."""

    Final = 0
    EveryN = 1
    All = 2
    Sum = 3
    Default = 4


# Its name before PopTorch 2.3.
AnchorMode = OutputMode


class ConnectionType(enum.IntEnum):
    """Time at which the device is attached."""

    Always = 0
    OnDemand = 1
    Never = 2


class HalfFloatCastingBehavior(enum.IntEnum):
    """Casts between half and single precision."""

    FloatDowncastToHalf = 0
    HalfUpcastToFloat = 1
    Default = 2


class ReductionType(enum.IntEnum):
    """Reduction of losses and gradients."""

    Sum = 0
    Mean = 1
    NoReduction = 2


class SyncPattern(enum.IntEnum):
    """The IPUs that a sync stops."""

    Full = 0
    SinglePipeline = 1
    ReplicaAndLadder = 2


class MatMulSerializationMode(enum.Enum):
    """The dimension along which a product is computed in parts."""

    InputChannels = "input_channels"
    ReducingDim = "reducing_dim"
    OutputChannels = "output_channels"
    Disabled = "none"


class Liveness(enum.IntEnum):
    """Time at which tensors leave the chip in phased execution."""

    AlwaysLive = 0
    OffChipAfterFwd = 1
    OffChipAfterFwdNoOverlap = 2
    OffChipAfterEachPhase = 3


class OverlapMode(enum.Enum):
    """Overlap of host copies with compute."""

    NoOverlap = "no_overlap"
    OverlapAccumulationLoop = "overlap_accumulation_loop"
    OverlapDeviceIterationLoop = "overlap_device_iteration_loop"


class AutoStage(enum.IntEnum):
    """Assignment of blocks to stages without explicit stages."""

    SameAsIpu = 0
    AutoIncrement = 1


class MultiConvPlanType(enum.IntEnum):
    """Plan of several convolutions: side by side or sequential."""

    Parallel = 0
    Serial = 1


class CommGroupType(enum.IntEnum):
    """The replicas that share a tensor."""

    All = 0
    Consecutive = 1
    Orthogonal = 2
    NoGrouping = 3


class VariableRetrievalMode(enum.IntEnum):
    """The replicas that a variable is read from."""

    OnePerGroup = 0
    AllReplicas = 2
