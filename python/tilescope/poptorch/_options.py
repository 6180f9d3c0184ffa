"""``poptorch.Options``: what scripts set, kept as PopTorch keeps it, and as keys of a spec."""

import copy
import json
import os

import torch

from . import _log, _popart_names, _spec_keys, enums
from ._errors import ConfigFileError, Error
from ._strategy import ExecutionStrategy, PipelinedExecution

# PopART's enumerations, which scripts set as numbers through `_Popart.set`
# (popart/sessionoptions.hpp).
_POPART_ENUMS = {
    "autoRecomputation": ("none", "auto", "auto", "pipeline", "auto"),
    "accumulateOuterFragmentSettings.schedule": (
        "serial",
        "serial",
        "overlap_cycle_optimized",
        "overlap_memory_optimized",
    ),
}
# Those whose PopTorch or PopART name is not one word of the key's description.
_POPART_NAMES = {
    "autoRecomputation": "options.recomputation",
    "accumulateOuterFragmentSettings.schedule": "options.accumulate_outer_schedule",
    "partialsTypeMatMuls": "options.partials_type",
    "convolutionOptions.partialsType": "options.partials_type",
    "matmulOptions.partialsType": "options.partials_type",
    "convolutionOptions.use128BitConvUnitLoad": "options.use_128bit_conv_unit_load",
    "matmulOptions.use128BitConvUnitLoad": "options.use_128bit_conv_unit_load",
    "replicatedCollectivesSettings.mergeAllReduceCollectives": "options.merge_collectives",
    "replicatedCollectivesSettings.mergeReduceScatterCollectives": "options.merge_collectives",
    "replicatedCollectivesSettings.mergeAllGatherCollectives": "options.merge_collectives",
}
# What has no effect on a program's time and memory: silence is no omission.
_NO_EFFECT = {
    "instrumentWithHardwareCycleCounter",
    "rearrangeAnchorsOnHost",
    "rearrangeStreamsOnHost",
    "saveInitializersToFile",
    "patterns_level",
    "engineOptions",
    "logDir",
}


class _Group:
    """A group of options: values by name, and setters that return the group."""

    def __init__(self, owner: "Options | None", **values) -> None:
        object.__setattr__(self, "_owner", owner)
        object.__setattr__(self, "_values", values)

    def __getattr__(self, name: str):
        values = object.__getattribute__(self, "__dict__").get("_values", {})
        if name in values:
            return values[name]
        raise AttributeError(f"{type(self).__name__} has no option {name!r}")

    def __setattr__(self, name: str, value) -> None:
        if name.startswith("_"):
            object.__setattr__(self, name, value)
        elif name in self._values:
            self._set(**{name: value})
        else:
            raise AttributeError(f"{type(self).__name__} has no option {name!r}")

    def _set(self, **values):
        root = self._owner if self._owner is not None else self
        if getattr(root, "_frozen", False):
            raise AttributeError(
                "Can't modify frozen Options: they belong to a model or loader; "
                "change a clone() of them"
            )
        self._values.update(values)
        return self

    def _not_modelled(self, name: str) -> None:
        root = self._owner if self._owner is not None else self
        root._missing.setdefault(name)

    def exists(self, option: str) -> bool:
        """Whether there is an option of that name."""
        return option in self._values

    def toDict(self) -> dict:
        """The options by name."""
        return dict(self._values)


class Attribute:
    """Attributes of the operations made in its scope: ``Attribute(__outline=...)``.

    They change how PopART compiles, not what is computed; none of them is modelled.
    """

    def __init__(self, **kwargs) -> None:
        self._names = sorted(kwargs)

    def __enter__(self):
        _log.debug(f"attributes {', '.join(self._names)} are not modelled")
        return self

    def __exit__(self, *_) -> None:
        return None


class TensorLocationSettings(_Group):
    """Where tensors of a kind live: tile memory or streaming memory, whole or split."""

    def __init__(self, **kwargs) -> None:
        super().__init__(None)
        for name, value in kwargs.items():
            getattr(self, name)(value)

    def useOnChipStorage(self, use: bool = True):
        """Keep them in tile memory."""
        return self._set(on_chip=use)

    def useReplicatedTensorSharding(self, use: bool = True):
        """Split them over the replicas."""
        return self._set(replicated_tensor_sharding=use)

    def useIOTilesToLoad(self, use: bool = True):
        """Let I/O tiles load them."""
        return self._set(use_io_tiles=use or self._values.get("use_io_tiles", False))

    def useIOTilesToStore(self, use: bool = True):
        """Let I/O tiles store them."""
        return self._set(use_io_tiles=use or self._values.get("use_io_tiles", False))

    def minElementsForOffChip(self, min_elements: int):
        """Fewest elements of a tensor that leaves the chip."""
        return self._set(min_elements_for_off_chip=min_elements)

    def minElementsForReplicatedTensorSharding(self, min_elements: int):
        """Fewest elements of a tensor that is split."""
        return self._set(min_elements_for_rts=min_elements)


class _TensorLocations(_Group):
    """``Options.TensorLocations``."""

    def numIOTiles(self, num_tiles: int):
        """Tiles of each IPU that are set aside for input and output."""
        self._set(num_io_tiles=num_tiles)
        self._owner._spec("poptorch.Options.TensorLocations.numIOTiles", num_tiles)
        return self

    def setActivationLocation(self, location: TensorLocationSettings):
        """Where stashed activations live."""
        return self._place("activations", location)

    def setWeightLocation(self, location: TensorLocationSettings):
        """Where weights live."""
        return self._place("weights", location)

    def setOptimizerLocation(self, location: TensorLocationSettings):
        """Where optimiser state lives."""
        return self._place("optimizer_state", location)

    def setAccumulatorLocation(self, location: TensorLocationSettings):
        """Where gradient accumulators live."""
        return self._place("accumulators", location)

    def _place(self, kind: str, location: TensorLocationSettings):
        if not isinstance(location, TensorLocationSettings):
            raise Error(f"a location is a poptorch.TensorLocationSettings, not {location!r}")
        self._set(**{kind: location})
        for name, value in location.toDict().items():
            self._owner._spec_path(f"options.location.{kind}.{name}", value)
        return self


class _Precision(_Group):
    """``Options.Precision``."""

    def enableStochasticRounding(self, enabled: bool):
        """Round to half at random."""
        self._owner._spec("enableStochasticRounding", enabled)
        return self._set(stochastic_rounding=enabled)

    def setPartialsType(self, dtype: torch.dtype):
        """Element type of partial sums."""
        if dtype not in (torch.float16, torch.float32, torch.half, torch.float):
            raise Error(f"partial sums are torch.float16 or torch.float32, not {dtype}")
        self._owner._spec("partialsType", dtype)
        return self._set(partials_type=dtype)

    def enableFloatingPointExceptions(self, enabled: bool):
        """Checks that cost no cycles."""
        return self._set(floating_point_exceptions=enabled)

    def halfFloatCasting(self, behaviour):
        """How half and single precision meet: as the exported model says."""
        return self._set(half_float_casting=behaviour)

    def runningStatisticsAlwaysFloat(self, value: bool):
        """Running statistics in single precision: as the exported model says."""
        return self._set(running_statistics_always_float=value)

    @property
    def autocast(self):
        """Kept for scripts that switch it off."""
        return self

    def autocastEnabled(self, enabled: bool):
        """Automatic casts; the exported model has those that torch makes."""
        return self._set(autocast_enabled=enabled)


class _Training(_Group):
    """``Options.Training``."""

    def gradientAccumulation(self, gradient_accumulation: int):
        """Micro-batches of a weight update."""
        self._owner._spec("poptorch.Options.Training.gradientAccumulation", gradient_accumulation)
        return self._set(gradient_accumulation=int(gradient_accumulation))

    def accumulationAndReplicationReductionType(self, reduction_type):
        """Whether gradients are added up or averaged."""
        if reduction_type not in (enums.ReductionType.Mean, enums.ReductionType.Sum):
            raise ValueError("the reduction is poptorch.ReductionType.Mean or .Sum")
        return self._set(accumulation_and_replication_reduction_type=reduction_type)

    def setMeanAccumulationAndReplicationReductionStrategy(self, strategy):
        """When gradients are divided."""
        return self._set(mean_reduction_strategy=strategy)

    def setAutomaticLossScaling(self, enabled: bool):
        """Automatic loss scaling: its statistics of gradients are not modelled."""
        if enabled:
            self._not_modelled("Training.setAutomaticLossScaling")
        return self._set(automatic_loss_scaling=enabled)

    def setConvolutionDithering(self, enabled: bool):
        """Let each convolution begin at a tile of its own."""
        self._owner._spec("enableConvDithering", enabled)
        return self._set(convolution_dithering=enabled)


class _Popart(_Group):
    """``Options._Popart``: PopART's session options by name."""

    @property
    def options(self) -> dict:
        """What was set."""
        return self._values

    def set(self, key: str, value):
        """Sets PopART's session option ``key``; one that PopART does not have is refused at once."""
        if key not in _POPART_NAMES and not _popart_names.is_option(key):
            near = _popart_names.nearest(key)
            hint = f"; did you mean {near!r}?" if near else ""
            raise Error(f"PopART has no session option {key!r}{hint}")
        self._set(**{key: value})
        if key in _NO_EFFECT or value in (False, None):
            # What is switched off is off here too, unless a key of a spec turns it off.
            if key not in _NO_EFFECT:
                self._owner._spec_quietly(key, value)
            return self
        if isinstance(value, dict):
            # Options of libraries are texts.
            for name, item in value.items():
                self.set(f"{key}.{name}", {"true": True, "false": False}.get(item, item))
            return self
        if key == "syntheticDataMode":
            self._owner.enableSyntheticData(value != 0)
            return self
        if key in _POPART_ENUMS:
            choices = _POPART_ENUMS[key]
            if not isinstance(value, int) or not 0 <= int(value) < len(choices):
                raise Error(f"{key} is a number from 0 to {len(choices) - 1}, not {value!r}")
            value = choices[int(value)]
        if key in _POPART_NAMES:
            self._owner._spec_path(_POPART_NAMES[key], value)
        else:
            self._owner._spec(key, value)
        return self

    def setEngineOptions(self, engine_options: dict):
        """Poplar's engine options; ``autoReport.directory`` is where reports go."""
        merged = dict(self._values.get("engineOptions", {}))
        merged.update(engine_options)
        return self._set(engineOptions=merged)

    def setPatterns(self, patterns: dict, level: int = 2):
        """PopART's patterns; which of them run is not modelled."""
        if patterns:
            self._not_modelled("_Popart.setPatterns")
        return self._set(patterns=patterns, patterns_level=level)


class _Distributed(_Group):
    """``Options.Distributed``: one process here stands for all of ``poprun``'s."""

    def disable(self):
        """One process."""
        return self._set(num_processes=1, process_id=0)

    def configureProcessId(self, process_id: int, num_processes: int):
        """Which of how many processes this is."""
        self._owner._spec_path("options.num_instances", num_processes)
        return self._set(num_processes=num_processes, process_id=process_id)

    def setEnvVarNames(self, var_num_processes: str, var_process_id: str):
        """Reads the process from environment variables."""
        count = int(os.environ.get(var_num_processes, "1"))
        return self.configureProcessId(int(os.environ.get(var_process_id, "0")), count)

    @property
    def processId(self) -> int:
        """Which process this is."""
        return self._values["process_id"]

    @property
    def numProcesses(self) -> int:
        """How many processes there are."""
        return self._values["num_processes"]


class _Jit(_Group):
    """``Options.Jit``."""

    def traceModel(self, trace_model: bool):
        """Whether PopTorch traces or dispatches; models are exported here either way."""
        return self._set(trace_model=trace_model)


class Options(_Group):
    """The options of a model: ``poptorch.Options``."""

    def __init__(self) -> None:
        super().__init__(
            None,
            replication_factor=1,
            input_group_size=1,
            device_iterations=1,
            output_mode=enums.OutputMode.Default,
            output_return_period=1,
            connection_type=enums.ConnectionType.Always,
            sync_pattern=enums.SyncPattern.Full,
            auto_round_num_ipus=False,
            anchored_tensors={},
            available_memory_proportion={},
            log_dir=".",
            model_name=None,
            random_seed=None,
        )
        self._frozen = False
        self._missing = {}
        self._spec_keys = {}
        self._strategy = PipelinedExecution()
        self._target = os.environ.get("TILESCOPE_TARGET", "mk2")
        self._target_type = "ipu"
        self._popart = _Popart(self)
        self._training = _Training(
            self,
            gradient_accumulation=1,
            accumulation_and_replication_reduction_type=enums.ReductionType.Mean,
            mean_reduction_strategy=enums.MeanReductionStrategy.Post,
            automatic_loss_scaling=False,
        )
        self._precision = _Precision(self, autocast_enabled=True, partials_type=None)
        self._tensor_locations = _TensorLocations(self)
        self._distributed = _Distributed(self, num_processes=1, process_id=0)
        self._jit = _Jit(self, trace_model=False)
        self.from_json(os.environ.get("POPTORCH_DEFAULT_OPTIONS", "{}"))

    # The groups.

    @property
    def Training(self) -> _Training:
        """Options of training."""
        return self._training

    @property
    def Precision(self) -> _Precision:
        """Options of precision."""
        return self._precision

    @property
    def TensorLocations(self) -> _TensorLocations:
        """Where tensors live."""
        return self._tensor_locations

    @property
    def Distributed(self) -> _Distributed:
        """Processes of ``poprun``."""
        return self._distributed

    @property
    def Jit(self) -> _Jit:
        """Tracing."""
        return self._jit

    @property
    def _Popart(self) -> _Popart:
        """PopART's session options."""
        return self._popart

    # What becomes a key of a spec.

    def deviceIterations(self, device_iterations: int) -> "Options":
        """Weight updates, or passes, of one call."""
        self._spec("poptorch.Options.deviceIterations", device_iterations)
        return self._set(device_iterations=int(device_iterations))

    def replicationFactor(self, replication_factor: int) -> "Options":
        """Copies of the program that work side by side."""
        self._spec("poptorch.Options.replicationFactor", replication_factor)
        return self._set(replication_factor=int(replication_factor))

    def syncPattern(self, sync_pattern) -> "Options":
        """Which IPUs a sync stops."""
        self._spec("poptorch.Options.syncPattern", sync_pattern)
        return self._set(sync_pattern=sync_pattern)

    def outputMode(self, output_mode, output_return_period=None) -> "Options":
        """Which micro-batches return their results."""
        if not isinstance(output_mode, enums.OutputMode):
            raise Error(f"an output mode is a poptorch.OutputMode, not {output_mode!r}")
        period = output_return_period or 1
        if output_mode == enums.OutputMode.EveryN and not output_return_period:
            raise Error("OutputMode.EveryN needs an output_return_period above 0")
        self._spec("poptorch.OutputMode", output_mode)
        self._spec_keys.pop("options.output_return_period", None)
        if output_mode == enums.OutputMode.EveryN:
            self._spec_path("options.output_return_period", period)
        return self._set(output_mode=output_mode, output_return_period=period)

    def anchorMode(self, anchor_mode, anchor_return_period=None) -> "Options":
        """What ``outputMode`` was called before PopTorch 2.3."""
        return self.outputMode(anchor_mode, anchor_return_period)

    def setExecutionStrategy(self, strategy: ExecutionStrategy) -> "Options":
        """How stages share the IPUs."""
        if not isinstance(strategy, ExecutionStrategy):
            raise Error(f"an execution strategy is needed, not {strategy!r}")
        self._set()
        self._strategy = strategy
        return self

    def setAvailableMemoryProportion(self, available_memory_proportion: dict) -> "Options":
        """Share of a tile for temporaries, by IPU: ``{"IPU0": 0.5}``."""
        by_ipu = {}
        for name, share in available_memory_proportion.items():
            if not (name.startswith("IPU") and name[3:].isdigit()):
                raise Error(f'keys are names such as "IPU0", not {name!r}')
            by_ipu[int(name[3:])] = float(share)
        return self._set(available_memory_proportion=by_ipu)

    def enableSyntheticData(self, enabled: bool) -> "Options":
        """Make samples on the IPU instead of copying them from the host."""
        if enabled:
            self._spec_path("options.host.loader", "synthetic")
        else:
            self._spec_keys.pop("options.host.loader", None)
        return self

    def useIpuModel(self, use_model: bool) -> "Options":
        """Simulate Poplar's IPU Model in place of hardware."""
        self._target_type = "ipu_model" if use_model else "ipu"
        return self

    def useOfflineIpuTarget(self, ipu_version: int = 2) -> "Options":
        """The IPU version that is simulated: 1, 2, or 21 for Bow."""
        chips = {1: "mk1", 2: "mk2", 21: "bow"}
        if ipu_version not in chips:
            raise Error(f"IPU version {ipu_version} is unknown: it is 1, 2 or 21")
        self._target = chips[ipu_version]
        return self

    # What needs no key.

    def autoRoundNumIPUs(self, auto_round_num_ipus: bool = True) -> "Options":
        """Rounds IPUs up to what a partition has; reports say what is reserved."""
        return self._set(auto_round_num_ipus=auto_round_num_ipus)

    def connectionType(self, connection_type) -> "Options":
        """When the device is attached to."""
        return self._set(connection_type=connection_type)

    def randomSeed(self, random_seed: int) -> "Options":
        """Seeds torch."""
        torch.manual_seed(random_seed)
        return self._set(random_seed=random_seed)

    def modelName(self, name: str) -> "Options":
        """Name of the report's directory; ``training`` or ``inference`` without one."""
        return self._set(model_name=name)

    def enableProfiling(self, profile_dir=None) -> "Options":
        """Writes reports to ``profile_dir``, or where ``POPLAR_ENGINE_OPTIONS`` says."""
        self._popart.setEngineOptions(
            {"autoReport.directory": profile_dir or ".", "autoReport.all": "true"}
        )
        return self

    def logDir(self, log_dir: str) -> "Options":
        """Directory of logs: none are written."""
        return self._set(log_dir=log_dir)

    def enableExecutableCaching(self, path) -> "Options":
        """Executables are not cached: simulating takes seconds."""
        return self

    def showCompilationProgressBar(self, show: bool = True) -> "Options":
        """Progress of compilation."""
        return self

    def relaxOptimizerAttributesChecks(self, relax: bool = True) -> "Options":
        """Checks of optimiser attributes: the CPU's optimiser accepts all."""
        return self

    def logCycleCount(self, log_cycle_count: bool) -> "Options":
        """Cycles are known either way: :meth:`PoplarExecutor.cycleCount`."""
        return self

    def maxRepeatLogs(self, max_lines) -> "Options":
        """Repeated log lines."""
        return self

    def useIpuId(self, ipu_id: int) -> "Options":
        """The device that is attached to: simulated ones are alike."""
        return self

    def disableModuleNamescope(self) -> "Options":
        """Names of modules in operations: torch's export keeps them."""
        return self

    def sourceLocationExcludes(self, excludes) -> "Options":
        """Source files that debug information leaves out."""
        return self

    def appendToLocationExcludes(self, *excludes: str) -> "Options":
        """Source files that debug information leaves out."""
        return self

    # What is not modelled.

    def enableStableNorm(self, enabled: bool) -> "Options":
        """Norms computed the slower, stable way."""
        if enabled:
            self._not_modelled("enableStableNorm")
        return self

    def broadcastBuffers(self, broadcast_buffers: bool = True) -> "Options":
        """Whether replicas share buffers."""
        if broadcast_buffers:
            self._not_modelled("broadcastBuffers")
        return self

    def anchorTensor(self, short_name: str, long_name: str, *_, **__) -> "Options":
        """Returns an inner tensor to the host; the copy is not simulated."""
        self._not_modelled("anchorTensor")
        anchored = {**self.anchored_tensors, short_name: long_name}
        return self._set(anchored_tensors=anchored)

    def inputReplicaGrouping(self, input_group_size: int, input_group_type) -> "Options":
        """Groups of replicas that read the same samples."""
        if self.replication_factor % input_group_size:
            raise ValueError("input_group_size must be a factor of the replication factor")
        if input_group_size > 1:
            self._not_modelled("inputReplicaGrouping")
        return self._set(input_group_size=input_group_size)

    def updatableNamedBuffers(self, buffers) -> "Options":
        """Buffers that can be written from the host."""
        if buffers:
            self._not_modelled("updatableNamedBuffers")
        return self

    # All of them.

    def defaultOutputMode(self) -> bool:
        """Whether no output mode was chosen."""
        return self.output_mode == enums.OutputMode.Default

    def loadFromFile(self, filepath: str) -> "Options":
        """Reads options from a file with a setter a line: ``deviceIterations(10)``."""
        with open(filepath, encoding="utf-8") as file:
            lines = [line.split("#")[0].strip() for line in file]
        for number, line in enumerate(lines, 1):
            if line:
                self._apply_line(line, f"{filepath}:{number}")
        return self

    def from_json(self, string: str) -> "Options":
        """Sets options from JSON: ``{"deviceIterations": 10, "Training": {...}}``."""
        self._apply_json(self, json.loads(string or "{}"))
        return self

    def clone(self) -> "Options":
        """A copy that can be changed."""
        return copy.deepcopy(self)

    def toDict(self) -> dict:
        """All options, and the keys of a spec they stand for."""
        return {**self._values, **self._training.toDict(), "spec": dict(self._spec_keys)}

    def __deepcopy__(self, memo):
        twin = type(self).__new__(type(self))
        memo[id(self)] = twin
        for name, value in self.__dict__.items():
            shared = name == "_strategy"
            object.__setattr__(twin, name, value if shared else copy.deepcopy(value, memo))
        object.__setattr__(twin, "_frozen", False)
        return twin

    def __repr__(self) -> str:
        return f"Options({', '.join(f'{key}={value!r}' for key, value in self.toDict().items())})"

    def _freeze(self) -> None:
        object.__setattr__(self, "_frozen", True)

    def _spec(self, name: str, value) -> None:
        """Sets the key that is known elsewhere as ``name``."""
        key = _spec_keys.key_of(name)
        found = None if key is None else _spec_keys.value_for(key, value)
        if found is None:
            self._not_modelled(name.removeprefix("poptorch.Options."))
        else:
            self._spec_keys[key["path"]] = found

    def _spec_quietly(self, name: str, value) -> None:
        """The same, for what need not be told where there is no such key."""
        key = _spec_keys.key_of(name)
        found = None if key is None else _spec_keys.value_for(key, value)
        if found is not None:
            self._spec_keys[key["path"]] = found

    def _spec_path(self, path: str, value) -> None:
        """Sets the key at ``path``."""
        key = _spec_keys.declaration(path)
        found = None if key is None else _spec_keys.value_for(key, value)
        if found is None:
            self._not_modelled(f"{path} = {value!r}")
        else:
            self._spec_keys[path] = found

    def _apply_line(self, line: str, place: str) -> None:
        namespace = {name: getattr(enums, name) for name in dir(enums)}
        namespace.update(poptorch=enums, torch=torch, options=self)
        try:
            eval(f"options.{line}", {"__builtins__": {}}, namespace)
        except Exception as error:
            raise ConfigFileError(f"{place}: {line!r} is no option: {error}") from error

    def _apply_json(self, group, values: dict) -> None:
        for name, value in values.items():
            member = getattr(group, name, None)
            if isinstance(member, _Group) and isinstance(value, dict):
                self._apply_json(member, value)
            elif callable(member):
                member(_enum_value(value))
            else:
                raise Error(f"POPTORCH_DEFAULT_OPTIONS: there is no option {name!r}")


def _enum_value(value):
    """``"poptorch.OutputMode.All"`` as the value it names."""
    if isinstance(value, str) and value.startswith("poptorch."):
        kind, _, name = value.removeprefix("poptorch.").partition(".")
        return getattr(getattr(enums, kind), name)
    return value
