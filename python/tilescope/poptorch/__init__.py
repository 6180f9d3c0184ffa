"""PopTorch's interface on the simulator: scripts for IPUs run without IPUs.

``python -m tilescope.poptorch script.py`` runs a script with ``import poptorch`` answered by this
module; ``import tilescope.poptorch as poptorch`` does the same in new code. The first call of a
model exports it with :mod:`torch.export`, simulates it, and leaves ``profile.pop`` where Poplar
would. Then the model runs on the CPU, so the script continues with real numbers.

Environment variables:

``TILESCOPE_EXECUTE``
    ``one`` (default) runs one micro-batch of each call, in training with an update of the weights,
    and repeats its results; ``all`` runs every micro-batch; ``none`` runs nothing and returns zeros.
``TILESCOPE_TARGET``
    The system to simulate, as in ``target.name`` of a spec. Default: ``mk2``.
"""

try:
    import torch as _torch  # noqa: F401
except ImportError as error:
    raise ImportError(
        "tilescope.poptorch needs torch (2.9 or newer) and onnxscript: pip install torch onnxscript"
    ) from error

from . import autocasting, optim, profiling
from ._dataloader import AsynchronousDataAccessor, DataLoader
from ._errors import ConfigFileError, Error, RecoverableError, UnrecoverableError
from ._executor import PoplarExecutor, inferenceModel, trainingModel
from ._option_groups import Attribute, TensorLocationSettings
from ._options import Options
from ._script import install
from ._strategy import (
    ParallelPhasedExecution,
    Phase,
    PhasedExecution,
    PipelinedExecution,
    SerialPhasedExecution,
    ShardedExecution,
    Stage,
)
from .enums import (
    AnchorMode,
    AutoStage,
    CommGroupType,
    ConnectionType,
    DataLoaderMode,
    HalfFloatCastingBehavior,
    Liveness,
    MatMulSerializationMode,
    MeanReductionStrategy,
    MultiConvPlanType,
    OutputMode,
    OverlapMode,
    ReductionType,
    SharingStrategy,
    SyncPattern,
    VariableRetrievalMode,
)
from .ops import (
    CPU,
    BeginBlock,
    Block,
    BlockFunction,
    MultiConv,
    NameScope,
    cond,
    custom_op,
    dynamic_slice,
    dynamic_update,
    for_loop,
    identity_loss,
    ipu_print_tensor,
    isRunningOnIpu,
    nop,
    recomputationCheckpoint,
    removeBlocks,
    serializedMatMul,
    set_available_memory,
    set_overlap_for_input,
    set_overlap_for_output,
)

__version__ = "3.4.0"  # The PopTorch whose interface this is.


def ipuHardwareIsAvailable(num_ipus: int = 1) -> bool:
    """True: simulated IPUs are always available."""
    return num_ipus >= 0


def ipuHardwareVersion() -> int:
    """The simulated IPU version: 2 for Mk2."""
    return 2


def load(filename, *_, **__):
    """Raises an error: a file of ``save`` has code for IPUs, which the simulator cannot run."""
    raise Error(f"load: {filename} is code for IPUs, which the simulator cannot run")


def setLogLevel(level) -> None:
    """Sets the level of printed messages: TRACE, DEBUG, INFO, WARN, ERR, OFF or 0 to 6."""
    from ._log import set_level

    set_level(level)
