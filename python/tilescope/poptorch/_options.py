"""``poptorch.Options``: the options of a script, in the form of PopTorch and as keys of a spec."""

import copy
import json
import os

import torch

from . import _engine_names, _spec_keys, enums
from . import _option_groups as groups
from ._errors import ConfigFileError, Error
from ._strategy import ExecutionStrategy, PipelinedExecution


class Options(groups.Group):
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
        self._popart = groups.Popart(self)
        self._training = groups.Training(
            self,
            gradient_accumulation=1,
            accumulation_and_replication_reduction_type=enums.ReductionType.Mean,
            mean_reduction_strategy=enums.MeanReductionStrategy.Post,
            automatic_loss_scaling=False,
        )
        self._precision = groups.Precision(self, autocast_enabled=True, partials_type=None)
        self._tensor_locations = groups.TensorLocations(self)
        self._distributed = groups.Distributed(self, num_processes=1, process_id=0)
        self._jit = groups.Jit(self, trace_model=False)
        self.from_json(os.environ.get("POPTORCH_DEFAULT_OPTIONS", "{}"))
        # Wrong names are errors now, not at compilation.
        _engine_names.environment()

    # The groups.

    @property
    def Training(self) -> groups.Training:
        """Options of training."""
        return self._training

    @property
    def Precision(self) -> groups.Precision:
        """Options of precision."""
        return self._precision

    @property
    def TensorLocations(self) -> groups.TensorLocations:
        """Locations of tensors."""
        return self._tensor_locations

    @property
    def Distributed(self) -> groups.Distributed:
        """Processes of ``poprun``."""
        return self._distributed

    @property
    def Jit(self) -> groups.Jit:
        """Tracing."""
        return self._jit

    @property
    def _Popart(self) -> groups.Popart:
        """PopART's session options."""
        return self._popart

    # Options with a key in specs.

    def deviceIterations(self, device_iterations: int) -> "Options":
        """Weight updates, or inference passes, per call."""
        self._spec("poptorch.Options.deviceIterations", device_iterations)
        return self._set(device_iterations=int(device_iterations))

    def replicationFactor(self, replication_factor: int) -> "Options":
        """Number of replicas."""
        self._spec("poptorch.Options.replicationFactor", replication_factor)
        return self._set(replication_factor=int(replication_factor))

    def syncPattern(self, sync_pattern) -> "Options":
        """The IPUs that a sync stops."""
        self._spec("poptorch.Options.syncPattern", sync_pattern)
        return self._set(sync_pattern=sync_pattern)

    def outputMode(self, output_mode, output_return_period=None) -> "Options":
        """The micro-batches that return their results."""
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
        """The name of ``outputMode`` before PopTorch 2.3."""
        return self.outputMode(anchor_mode, anchor_return_period)

    def setExecutionStrategy(self, strategy: ExecutionStrategy) -> "Options":
        """The execution strategy of the stages."""
        if not isinstance(strategy, ExecutionStrategy):
            raise Error(f"expected an execution strategy, not {strategy!r}")
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
        """Generates samples on the IPU instead of copying them from the host."""
        if enabled:
            self._spec_path("options.host.loader", "synthetic")
        else:
            self._spec_keys.pop("options.host.loader", None)
        return self

    def useIpuModel(self, use_model: bool) -> "Options":
        """Simulates Poplar's IPU Model instead of hardware."""
        self._target_type = "ipu_model" if use_model else "ipu"
        return self

    def useOfflineIpuTarget(self, ipu_version: int = 2) -> "Options":
        """The simulated IPU version: 1, 2, or 21 for Bow."""
        chips = {1: "mk1", 2: "mk2", 21: "bow"}
        if ipu_version not in chips:
            raise Error(f"IPU version {ipu_version} is unknown: it is 1, 2 or 21")
        self._target = chips[ipu_version]
        return self

    # Options that need no key.

    def autoRoundNumIPUs(self, auto_round_num_ipus: bool = True) -> "Options":
        """Rounds the number of IPUs up to that of a partition; reports note the reserved IPUs."""
        return self._set(auto_round_num_ipus=auto_round_num_ipus)

    def connectionType(self, connection_type) -> "Options":
        """Time at which the device is attached."""
        return self._set(connection_type=connection_type)

    def randomSeed(self, random_seed: int) -> "Options":
        """Seeds torch."""
        torch.manual_seed(random_seed)
        return self._set(random_seed=random_seed)

    def modelName(self, name: str) -> "Options":
        """Name of the report's directory; ``training`` or ``inference`` without one."""
        return self._set(model_name=name)

    def enableProfiling(self, profile_dir=None) -> "Options":
        """Writes reports to ``profile_dir``, or to the directory in ``POPLAR_ENGINE_OPTIONS``."""
        self._popart.setEngineOptions(
            {"autoReport.directory": profile_dir or ".", "autoReport.all": "true"}
        )
        return self

    def logDir(self, log_dir: str) -> "Options":
        """Directory of logs; the simulator writes none."""
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
        """Logs cycle counts; :meth:`PoplarExecutor.cycleCount` always has them."""
        return self

    def maxRepeatLogs(self, max_lines) -> "Options":
        """Repeated log lines."""
        return self

    def useIpuId(self, ipu_id: int) -> "Options":
        """The device to attach to; simulated devices are identical."""
        return self

    def disableModuleNamescope(self) -> "Options":
        """Module names in operations; torch's export keeps them."""
        return self

    def sourceLocationExcludes(self, excludes) -> "Options":
        """Source files that debug information leaves out."""
        return self

    def appendToLocationExcludes(self, *excludes: str) -> "Options":
        """Source files that debug information leaves out."""
        return self

    # Options that are not modelled.

    def enableStableNorm(self, enabled: bool) -> "Options":
        """Norms with the slower, stable algorithm."""
        if enabled:
            self._not_modelled("enableStableNorm")
        return self

    def broadcastBuffers(self, broadcast_buffers: bool = True) -> "Options":
        """Sharing of buffers between replicas."""
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

    # All options.

    def defaultOutputMode(self) -> bool:
        """True if no output mode was set."""
        return self.output_mode == enums.OutputMode.Default

    def loadFromFile(self, filepath: str) -> "Options":
        """Reads options from a file with one setter per line: ``deviceIterations(10)``."""
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
        """Returns an independent copy."""
        return copy.deepcopy(self)

    def toDict(self) -> dict:
        """All options, and the corresponding keys of a spec."""
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
        """Sets the key of a spec that is known elsewhere as ``name``."""
        key = _spec_keys.key_of(name)
        found = None if key is None else _spec_keys.value_for(key, value)
        if found is None:
            self._not_modelled(name.removeprefix("poptorch.Options."))
        else:
            self._spec_keys[key["path"]] = found

    def _spec_quietly(self, name: str, value) -> None:
        """The same, without a message if no key corresponds to ``name``."""
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
            raise ConfigFileError(f"{place}: {line!r} is not an option: {error}") from error

    def _apply_json(self, group, values: dict) -> None:
        for name, value in values.items():
            member = getattr(group, name, None)
            if isinstance(member, groups.Group) and isinstance(value, dict):
                self._apply_json(member, value)
            elif callable(member):
                member(_enum_value(value))
            else:
                raise Error(f"POPTORCH_DEFAULT_OPTIONS: unknown option {name!r}")


def _enum_value(value):
    """The value of a name such as ``"poptorch.OutputMode.All"``."""
    if isinstance(value, str) and value.startswith("poptorch."):
        kind, _, name = value.removeprefix("poptorch.").partition(".")
        return getattr(getattr(enums, kind), name)
    return value
