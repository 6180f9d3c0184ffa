"""``IPUConfig`` of optimum-graphcore: the ``ipu_config.json`` of the Hugging Face hub as options.

>>> config = IPUConfig.from_pretrained("bert-base-ipu/ipu_config.json", pod="pod16")
>>> poptorch.trainingModel(model, config.to_options())
>>> tilescope.simulate("model.onnx", set=config.keys())
"""

import json
import pathlib

import torch

from . import _log, _simulation, enums
from ._errors import Error
from ._options import Options
from ._option_groups import TensorLocationSettings
from ._strategy import PipelinedExecution, ShardedExecution

_DEFAULTS = {
    "replication_factor": 1,
    "gradient_accumulation_steps": 1,
    "device_iterations": 1,
    "layers_per_ipu": [-1],
    "ipus_per_replica": None,
    "matmul_proportion": 0.2,
    "optimizer_state_offchip": False,
    "replicated_tensor_sharding": False,
    "enable_half_partials": True,
    "output_mode": "final",
    "auto_loss_scaling": False,
    "seed": None,
    "explicit_ir_inference": False,
}
# Options that can have separate values for inference.
_OF_INFERENCE = (
    "replication_factor",
    "device_iterations",
    "layers_per_ipu",
    "ipus_per_replica",
    "matmul_proportion",
)
# Changes that optimum makes to the model itself; models from elsewhere do not have them.
_OF_MODELS = (
    "recompute_checkpoint_every_layer",
    "embedding_serialization_factor",
    "projection_serialization_factor",
    "serialized_embedding_splits_per_ipu",
    "serialized_projection_splits_per_ipu",
    "parallelize_kwargs",
)
_NO_EFFECT = (
    "enable_half_first_order_momentum",
    "executable_cache_dir",
    "execute_encoder_on_cpu_for_generation",
    "optimum_version",
    "profile_dir",
    "sharded_execution_for_inference",
    "transformers_version",
    "use_popdist",
)


class IPUConfig:
    """Options with the names of optimum; unknown names are refused."""

    def __init__(self, pod: str = "default", **values) -> None:
        known = {*_DEFAULTS, *_OF_MODELS, *_NO_EFFECT}
        known.update(f"inference_{name}" for name in (*_OF_INFERENCE, *_OF_MODELS))
        unknown = sorted(set(values) - known)
        if unknown:
            raise Error(f"an IPUConfig has no {', '.join(unknown)}")
        self._values = {name: _of_pod(name, value, pod) for name, value in values.items()}

    @classmethod
    def from_dict(cls, values: dict, pod: str = "default") -> "IPUConfig":
        """A configuration from a table."""
        return cls(pod, **values)

    @classmethod
    def from_pretrained(cls, place, pod: str = "default") -> "IPUConfig":
        """A configuration from a file, or the ``ipu_config.json`` of a directory. `pod` chooses among
        values for several systems: ``pod4``, ``pod16``."""
        path = pathlib.Path(place)
        path = path / "ipu_config.json" if path.is_dir() else path
        if not path.is_file():
            raise Error(f"{path} is not a file: get it with huggingface_hub.hf_hub_download")
        return cls(pod, **json.loads(path.read_text(encoding="utf-8")))

    def __getattr__(self, name: str):
        if name in _DEFAULTS:
            return self._value(name, False)
        raise AttributeError(name)

    def _value(self, name: str, for_inference: bool):
        if for_inference and name in _OF_INFERENCE:
            own = self._values.get(f"inference_{name}")
            if own is not None or name in ("replication_factor", "device_iterations"):
                return 1 if own is None else own
        given = self._values.get(name)
        return _DEFAULTS[name] if given is None else given

    def ipus(self, for_inference: bool = False) -> int:
        """IPUs of a replica."""
        layers = self._values.get("inference_layers_per_ipu")
        own = self._values.get("inference_ipus_per_replica")
        if for_inference and (own or layers):
            return own or len(layers)
        return self.ipus_per_replica or len(self.layers_per_ipu)

    def to_options(self, for_inference: bool = False) -> Options:
        """Options of PopTorch, as optimum sets them."""
        options = Options()
        options.replicationFactor(self._value("replication_factor", for_inference))
        options.deviceIterations(self._value("device_iterations", for_inference))
        if not for_inference:
            options.Training.gradientAccumulation(self.gradient_accumulation_steps)
            options.Training.setAutomaticLossScaling(self.auto_loss_scaling)
        mode = "all" if for_inference else self.output_mode
        options.outputMode(enums.OutputMode[mode.capitalize()])
        if self.seed is not None:
            options.randomSeed(self.seed)
        sharded = self.replicated_tensor_sharding and options.replication_factor > 1
        options.TensorLocations.setOptimizerLocation(
            TensorLocationSettings()
            .useOnChipStorage(not self.optimizer_state_offchip)
            .useReplicatedTensorSharding(sharded)
        )
        strategy = ShardedExecution if for_inference else PipelinedExecution
        options.setExecutionStrategy(strategy(enums.AutoStage.AutoIncrement))
        options.setAvailableMemoryProportion(
            {f"IPU{ipu}": share for ipu, share in enumerate(self._shares(for_inference))}
        )
        options.Precision.enableStochasticRounding(not for_inference)
        if self.enable_half_partials:
            options.Precision.setPartialsType(torch.float16)
        options._Popart.set("accumulateOuterFragmentSettings.schedule", 3)
        options._Popart.setEngineOptions({"target.syncReplicasIndependently": "true"})
        return options

    def _shares(self, for_inference: bool) -> list:
        given, ipus = self._value("matmul_proportion", for_inference), self.ipus(for_inference)
        if isinstance(given, (int, float)):
            return [float(given)] * ipus
        if len(given) != ipus:
            raise Error(f"matmul_proportion has {len(given)} values for {ipus} IPUs")
        return given

    def keys(self, for_inference: bool = False) -> dict:
        """Keys of a spec, for models that already have the changes optimum makes."""
        options, ipus = self.to_options(for_inference), self.ipus(for_inference)
        left = [name for name in _OF_MODELS if self._values.get(name) not in (None, False, 0, 1, {})]
        if left:
            _log.say(f"IPUConfig: changes of the model are left out: {', '.join(left)}")
        keys = {"target.ipus": ipus, "model.training": not for_inference}
        keys.update(_simulation._engine_keys(options))
        keys.update(options._spec_keys)
        keys.update(_simulation._memory_share(options, ipus))
        if ipus > 1:
            keys["options.execution"] = options._strategy.execution
        return keys


def _of_pod(name: str, value, pod: str):
    """The value for a system, if a table has one per system."""
    is_table = isinstance(value, dict) and "default" in value
    if not is_table:
        return value
    if pod not in value:
        raise Error(f"{name} is for {', '.join(value)}, not {pod!r}")
    return value[pod]
