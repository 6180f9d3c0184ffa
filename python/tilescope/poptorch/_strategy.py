"""Stages, phases and execution strategies."""

from . import enums
from ._errors import Error


class Stage:
    """Blocks that run on one IPU, one after the other."""

    def __init__(self, *block_ids: str) -> None:
        for block in block_ids:
            if not isinstance(block, str):
                raise Error(f"the name of a block is a string, not {block!r}")
        self._blocks = list(block_ids)
        self._stage_id = -1
        self._phase_id = -1
        self._ipu = None

    @property
    def blocks(self) -> list:
        """Names of its blocks."""
        return self._blocks

    def ipu(self, ipu: int) -> "Stage":
        """The IPU of the stage."""
        self._ipu = int(ipu)
        return self


class Phase:
    """Stages that run side by side, in phased execution."""

    def __init__(self, *stages) -> None:
        given = all(isinstance(stage, Stage) for stage in stages)
        self.stages = list(stages) if given else [Stage(*stages)]

    def stage(self, index: int) -> Stage:
        """One of its stages."""
        return self.stages[index]

    def ipus(self, *ipus: int) -> None:
        """The IPUs of its stages, in order."""
        if len(ipus) != len(self.stages):
            raise Error(f"a phase of {len(self.stages)} stages was given {len(ipus)} IPUs")
        for stage, ipu in zip(self.stages, ipus):
            stage.ipu(ipu)


class ExecutionStrategy:
    """The stage of each block; blocks query it during the forward pass."""

    execution = "pipelined"

    def __init__(self) -> None:
        self._block_map = {}
        self._auto_stage = None
        self._phases = []
        self.restart()

    def restart(self) -> None:
        """Clears the recorded blocks at the start of a forward pass."""
        self._met = {}
        self._next_auto_block = 0
        self._next_stage = 1

    def stage(self, block_id: str) -> Stage:
        """The stage of a block."""
        if block_id not in self._block_map:
            raise Error(f"unknown block {block_id!r}")
        return self._block_map[block_id]

    def blocks(self) -> list:
        """Names of the blocks that have stages, in order."""
        return list(self._block_map)

    def auto_block(self) -> str:
        """The name of the next block without one."""
        name = str(self._next_auto_block)
        self._next_auto_block += 1
        return name

    def restart_auto_blocks(self) -> None:
        """Names blocks from 0 again."""
        self._next_auto_block = 0

    def place(self, block_id: str, ipu_id) -> dict:
        """Name, stage, phase and IPU of a block that begins."""
        stage = self._stage_of(block_id, ipu_id)
        ipu = stage._ipu if stage._ipu is not None else ipu_id
        if ipu is None:
            ipu = max(stage._stage_id, 0)
        return {
            "block": block_id,
            "stage": stage._stage_id,
            "phase": stage._phase_id,
            "ipu": ipu,
        }

    def _stage_of(self, block_id: str, ipu_id) -> Stage:
        if self._block_map:
            if block_id not in self._block_map:
                known = ", ".join(self._block_map)
                raise Error(f"block {block_id!r} is in no stage; the stages have {known}")
            return self._block_map[block_id]
        if block_id not in self._met:
            stage = Stage(block_id)
            if self._auto_stage == enums.AutoStage.SameAsIpu:
                if ipu_id is None:
                    raise Error(
                        f"block {block_id!r} has no IPU: AutoStage.SameAsIpu needs one for each; "
                        "name the stages in the strategy, or use AutoStage.AutoIncrement"
                    )
                stage._stage_id = ipu_id
            else:
                stage._stage_id = self._next_stage
                self._next_stage += 1
            self._met[block_id] = stage
        return self._met[block_id]

    def _add(self, stage: Stage) -> None:
        for block in stage.blocks:
            if block in self._block_map:
                raise Error(f"block {block!r} is in more than one stage")
            self._block_map[block] = stage


class PipelinedExecution(ExecutionStrategy):
    """Stages work on several micro-batches at once."""

    def __init__(self, *args) -> None:
        super().__init__()
        if len(args) == 1 and isinstance(args[0], enums.AutoStage):
            self._auto_stage = args[0]
            return
        self._auto_stage = enums.AutoStage.SameAsIpu
        for number, arg in enumerate(args):
            blocks = [arg] if isinstance(arg, str) else arg
            stage = arg if isinstance(arg, Stage) else Stage(*blocks)
            stage._stage_id = number
            self._add(stage)


class ShardedExecution(PipelinedExecution):
    """Stages work one after the other."""

    execution = "sharded"


class PhasedExecution(ExecutionStrategy):
    """Phases whose weights come from streaming memory."""

    execution = "phased"

    def __init__(self, *phases) -> None:
        super().__init__()
        if len(phases) == 1 and isinstance(phases[0], (list, tuple)) and phases[0]:
            if isinstance(phases[0][0], (Phase, list, tuple)):
                phases = tuple(phases[0])
        if not phases:
            raise Error("phased execution requires phases; none are chosen automatically")
        for number, arg in enumerate(phases):
            members = arg if isinstance(arg, (list, tuple)) else [arg]
            phase = arg if isinstance(arg, Phase) else Phase(*members)
            self._phases.append(phase)
            for stage in phase.stages:
                stage._phase_id = number
                stage._stage_id = number
                self._add(stage)

    def phase(self, phase: int) -> Phase:
        """One of the phases."""
        return self._phases[phase]

    def useSeparateBackwardPhase(self, use: bool = True):
        """Exists for scripts; the backward pass of the last phase always follows it."""
        return self


class ParallelPhasedExecution(PhasedExecution):
    """Phases alternate between two sets of IPUs."""

    def sendTensorsOffChipAfterFwd(self, off_chip: bool = True):
        """Exists for scripts; tensors of phases are in streaming memory."""
        return self


class SerialPhasedExecution(PhasedExecution):
    """Phases run on one set of IPUs."""

    def setTensorsLiveness(self, liveness):
        """Exists for scripts; tensors of phases are in streaming memory."""
        return self
