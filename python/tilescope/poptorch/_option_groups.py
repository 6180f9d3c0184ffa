"""Groups of PopTorch's options: ``Options.Training``, ``Options.Precision`` and the like."""

from __future__ import annotations

import os

import torch

from . import _engine_names, _log, _popart_names, enums
from ._errors import Error
from .autocasting import Policy

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
# Options whose PopTorch or PopART name is not a single word in the description of a key.
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
# Options without an effect on time and memory, which need no message.
_NO_EFFECT = {
    "instrumentWithHardwareCycleCounter",
    "rearrangeAnchorsOnHost",
    "rearrangeStreamsOnHost",
    "saveInitializersToFile",
    "patterns_level",
    "logDir",
}


class Group:
    """A group of options: values by name, and setters that return the group."""

    def __init__(self, owner: "Group | None", **values) -> None:
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
        """True if an option has this name."""
        return option in self._values

    def toDict(self) -> dict:
        """The options by name."""
        return dict(self._values)


class Attribute:
    """Attributes of the operations made in its scope: ``Attribute(__outline=...)``.

    They affect PopART's compilation, not the results; none of them is modelled.
    """

    def __init__(self, **kwargs) -> None:
        self._names = sorted(kwargs)

    def __enter__(self):
        _log.debug(f"attributes {', '.join(self._names)} are not modelled")
        return self

    def __exit__(self, *_) -> None:
        return None


class TensorLocationSettings(Group):
    """Location of tensors of a kind: tile memory or streaming memory, whole or sharded."""

    def __init__(self, **kwargs) -> None:
        super().__init__(None)
        for name, value in kwargs.items():
            getattr(self, name)(value)

    def useOnChipStorage(self, use: bool = True):
        """Keeps the tensors in tile memory."""
        return self._set(on_chip=use)

    def useReplicatedTensorSharding(self, use: bool = True):
        """Shards the tensors over the replicas."""
        return self._set(replicated_tensor_sharding=use)

    def useIOTilesToLoad(self, use: bool = True):
        """Makes I/O tiles load the tensors."""
        return self._set(use_io_tiles=use or self._values.get("use_io_tiles", False))

    def useIOTilesToStore(self, use: bool = True):
        """Makes I/O tiles store the tensors."""
        return self._set(use_io_tiles=use or self._values.get("use_io_tiles", False))

    def minElementsForOffChip(self, min_elements: int):
        """Minimum number of elements for a tensor to be offloaded."""
        return self._set(min_elements_for_off_chip=min_elements)

    def minElementsForReplicatedTensorSharding(self, min_elements: int):
        """Minimum number of elements for a tensor to be sharded."""
        return self._set(min_elements_for_rts=min_elements)


class TensorLocations(Group):
    """``Options.TensorLocations``."""

    def numIOTiles(self, num_tiles: int):
        """Tiles of each IPU that are reserved for input and output."""
        self._set(num_io_tiles=num_tiles)
        self._owner._spec("poptorch.Options.TensorLocations.numIOTiles", num_tiles)
        return self

    def setActivationLocation(self, location: TensorLocationSettings):
        """Location of stashed activations."""
        return self._place("activations", location)

    def setWeightLocation(self, location: TensorLocationSettings):
        """Location of weights."""
        return self._place("weights", location)

    def setOptimizerLocation(self, location: TensorLocationSettings):
        """Location of optimiser state."""
        return self._place("optimizer_state", location)

    def setAccumulatorLocation(self, location: TensorLocationSettings):
        """Location of gradient accumulators."""
        return self._place("accumulators", location)

    def _place(self, kind: str, location: TensorLocationSettings):
        if not isinstance(location, TensorLocationSettings):
            raise Error(f"a location is a poptorch.TensorLocationSettings, not {location!r}")
        self._set(**{kind: location})
        for name, value in location.toDict().items():
            self._owner._spec_path(f"options.location.{kind}.{name}", value)
        return self


class Precision(Group):
    """``Options.Precision``."""

    def enableStochasticRounding(self, enabled: bool):
        """Rounds to half stochastically."""
        self._owner._spec("enableStochasticRounding", enabled)
        return self._set(stochastic_rounding=enabled)

    def setPartialsType(self, dtype: torch.dtype):
        """Element type of partial sums."""
        if dtype not in (torch.float16, torch.float32, torch.half, torch.float):
            raise Error(f"partial sums are torch.float16 or torch.float32, not {dtype}")
        self._owner._spec("partialsType", dtype)
        return self._set(partials_type=dtype)

    def enableFloatingPointExceptions(self, enabled: bool):
        """Enables exceptions, which cost no cycles."""
        return self._set(floating_point_exceptions=enabled)

    def halfFloatCasting(self, behaviour):
        """Casts between half and single precision; the exported model determines them."""
        return self._set(half_float_casting=behaviour)

    def runningStatisticsAlwaysFloat(self, value: bool):
        """Running statistics in single precision; the exported model determines them."""
        return self._set(running_statistics_always_float=value)

    @property
    def autocast(self):
        """Exists for scripts that switch it off."""
        return self

    def autocastEnabled(self, enabled: bool):
        """Automatic casts; the exported model has the casts that torch inserts."""
        return self._set(autocast_enabled=enabled)

    def autocastPolicy(self, policy: Policy):
        """Policy of automatic casts; the exported model determines them."""
        if not isinstance(policy, Policy):
            raise Error(f"a policy is a poptorch.autocasting.Policy, not {type(policy).__name__}")
        self._not_modelled("Precision.autocastPolicy")
        return self._set(autocast_policy=policy)


class Training(Group):
    """``Options.Training``."""

    def gradientAccumulation(self, gradient_accumulation: int):
        """Number of micro-batches per weight update."""
        self._owner._spec("poptorch.Options.Training.gradientAccumulation", gradient_accumulation)
        return self._set(gradient_accumulation=int(gradient_accumulation))

    def accumulationAndReplicationReductionType(self, reduction_type):
        """Sum or mean of gradients."""
        if reduction_type not in (enums.ReductionType.Mean, enums.ReductionType.Sum):
            raise ValueError("the reduction is poptorch.ReductionType.Mean or .Sum")
        return self._set(accumulation_and_replication_reduction_type=reduction_type)

    def setMeanAccumulationAndReplicationReductionStrategy(self, strategy):
        """Time at which gradients are divided."""
        return self._set(mean_reduction_strategy=strategy)

    def setAutomaticLossScaling(self, enabled: bool):
        """Automatic loss scaling: its statistics of gradients are not modelled."""
        if enabled:
            self._not_modelled("Training.setAutomaticLossScaling")
        return self._set(automatic_loss_scaling=enabled)

    def setConvolutionDithering(self, enabled: bool):
        """Starts each convolution on a different tile."""
        self._owner._spec("enableConvDithering", enabled)
        return self._set(convolution_dithering=enabled)


class Popart(Group):
    """``Options._Popart``: PopART's session options by name."""

    @property
    def options(self) -> dict:
        """The options that were set."""
        return self._values

    def set(self, key: str, value):
        """Sets PopART's session option ``key``. Refuses an unknown option."""
        if key not in _POPART_NAMES and not _popart_names.is_option(key):
            near = _popart_names.nearest(key)
            hint = f"; did you mean {near!r}?" if near else ""
            raise Error(f"PopART has no session option {key!r}{hint}")
        if key == "engineOptions":
            return self.setEngineOptions(value)
        self._set(**{key: value})
        if key in _NO_EFFECT or value in (False, None):
            # Features that are off here are off in the simulator, unless a key of a spec sets them.
            if key not in _NO_EFFECT:
                self._owner._spec_quietly(key, value)
            return self
        if isinstance(value, dict):
            # Options of libraries are strings.
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
        """Poplar's engine options; ``autoReport.directory`` is the directory of reports."""
        merged = dict(self._values.get("engineOptions", {}))
        merged.update(_engine_names.check(engine_options))
        return self._set(engineOptions=merged)

    def setPatterns(self, patterns: dict, level: int = 2):
        """PopART's patterns, which are not modelled."""
        if patterns:
            self._not_modelled("_Popart.setPatterns")
        return self._set(patterns=patterns, patterns_level=level)


class Distributed(Group):
    """``Options.Distributed``: this process simulates all processes of ``poprun``."""

    def disable(self):
        """One process."""
        return self._set(num_processes=1, process_id=0)

    def configureProcessId(self, process_id: int, num_processes: int):
        """Index of this process, and the number of processes."""
        self._owner._spec_path("options.num_instances", num_processes)
        return self._set(num_processes=num_processes, process_id=process_id)

    def setEnvVarNames(self, var_num_processes: str, var_process_id: str):
        """Reads the process from environment variables."""
        count = int(os.environ.get(var_num_processes, "1"))
        return self.configureProcessId(int(os.environ.get(var_process_id, "0")), count)

    @property
    def processId(self) -> int:
        """Index of this process."""
        return self._values["process_id"]

    @property
    def numProcesses(self) -> int:
        """Number of processes."""
        return self._values["num_processes"]


class Jit(Group):
    """``Options.Jit``."""

    def traceModel(self, trace_model: bool):
        """Tracing or dispatching in PopTorch; the simulator exports models either way."""
        return self._set(trace_model=trace_model)
