"""``popart``: enumerations, session options, a graph builder, and sessions that simulate its graphs.

Sessions compute no results: anchors keep zeros. Options become keys of a spec as those of
``poptorch.Options._Popart`` do.
"""

from __future__ import annotations

import pathlib
import shutil
import tempfile
import weakref

import numpy

from .. import _log, _options, _popart_names, _simulation
from .._errors import Error
from . import refusal
from .popart_builder import Builder, TensorInfo  # noqa: F401
from .popart_enums import (  # noqa: F401
    AccumulateOuterFragmentSchedule,
    BatchSerializationBatchSchedule,
    RecomputationType,
    ReductionType,
    ReplicatedTensorSharding,
    SubgraphCopyingStrategy,
    SyncPattern,
    SyntheticDataMode,
    TensorStorage,
    VirtualGraphMode,
)

__getattr__ = refusal("popart")

# Tensors whose location is a session option, and their names in a spec.
_LOCATIONS = {
    "activationTensorLocationSettings": "activations",
    "weightTensorLocationSettings": "weights",
    "optimizerStateTensorLocationSettings": "optimizer_state",
    "accumulatorTensorLocationSettings": "accumulators",
}
# Options that `_spec_of` reads itself, or that have no effect alone.
_OWN = {
    "enableReplicatedGraphs",
    "replicatedGraphCount",
    "enableDistributedReplicatedGraphs",
    "globalReplicationFactor",
    "globalReplicaOffset",
    "enableGradientAccumulation",
    "accumulationFactor",
    "enablePipelining",
    "virtualGraphMode",
    "tensorLocationSettingsOverride",
}


def versionString() -> str:
    """The version of this interface."""
    return "3.4.0"


class TensorLocation:
    """Location of tensors: on the chip or not, whole or sharded over the replicas."""

    def __init__(
        self,
        storage=TensorStorage.OnChip,
        replicatedTensorSharding=ReplicatedTensorSharding.Off,
    ) -> None:
        self.storage = storage
        self.replicatedTensorSharding = replicatedTensorSharding


class TensorLocationSettings:
    """Location of tensors of a kind."""

    def __init__(self, location=None) -> None:
        self.location = location or TensorLocation()


class SessionOptions:
    """Options by name. Unknown options are refused."""

    def __init__(self) -> None:
        for name in _LOCATIONS:
            object.__setattr__(self, name, TensorLocationSettings())

    def __setattr__(self, name: str, value) -> None:
        known = name in _LOCATIONS or name in _OWN or _popart_names.is_option(name)
        if name.startswith("_") or not known:
            near = _popart_names.nearest(name)
            hint = f"; did you mean {near!r}?" if near else ""
            raise AttributeError(f"PopART has no session option {name!r}{hint}")
        object.__setattr__(self, name, value)

    def __getattr__(self, name: str):
        # Unset options are off, and unset tables are empty.
        if name in _popart_names.CONTAINERS and not name.startswith("_"):
            object.__setattr__(self, name, {})
            return self.__dict__[name]
        if name in _OWN or _popart_names.is_option(name):
            return False
        raise AttributeError(f"PopART has no session option {name!r}")


class AnchorReturnType:
    """The micro-batches that return a tensor: ``ALL``, ``FINAL``, ``SUM`` or ``EVERYN`` with a
    number."""

    def __init__(self, mode: str, period: int = 1) -> None:
        words = {"ALL": "all", "FINAL": "final", "SUM": "sum", "EVERYN": "every_n"}
        if mode.upper() not in words:
            raise Error(f"an anchor returns {', '.join(words)}, not {mode!r}")
        self.mode, self.period = words[mode.upper()], period


class DataFlow:
    """Device iterations of a host call, and the tensors it returns."""

    def __init__(self, batchesPerStep: int, anchors, default=None) -> None:
        default = default or AnchorReturnType("ALL")
        self.iterations = batchesPerStep
        is_table = isinstance(anchors, dict)
        self.anchors = anchors if is_table else {name: default for name in anchors}


class Device:
    """A simulated device."""

    def __init__(self, ipus: int, kind: str, pattern) -> None:
        self.numIpus, self.kind, self.pattern = ipus, kind, pattern

    def attach(self) -> bool:
        """Returns True: simulated devices are always free."""
        return True

    def detach(self) -> None:
        """Does nothing: no device is held."""


class DeviceManager:
    """Provides simulated devices."""

    def acquireAvailableDevice(self, numIpus: int = 1, *_, pattern=SyncPattern.Full, **__) -> Device:
        """IPUs."""
        return Device(int(numIpus), "ipu", pattern)

    def createIpuModelDevice(self, options: dict) -> Device:
        """An IPU Model."""
        return Device(int(options.get("numIPUs", 1)), "ipu_model", SyncPattern.Full)

    def createOfflineIPUDevice(self, options: dict) -> Device:
        """Simulated IPUs without hardware."""
        return Device(int(options.get("numIPUs", 1)), "ipu", SyncPattern.Full)

    def __getattr__(self, name: str):
        raise AttributeError(f"popart.DeviceManager.{name} is not modelled")


class _Optimizer:
    def __init__(self, options=None, *_, **__) -> None:
        self.options = options if isinstance(options, dict) else {}

    def insertSpecific(self, tensor: str, options: dict) -> None:
        """Sets values for one tensor; its update costs the same as the others."""

    @property
    def kind(self) -> str:
        """The name of the optimiser in a spec."""
        momentum, _ = self.options.get("defaultMomentum", (0.0, True))
        return "sgd_momentum" if momentum else "sgd"


class SGD(_Optimizer):
    """Stochastic gradient descent."""


class ConstSGD(_Optimizer):
    """Stochastic gradient descent with constant values."""


class Adam(_Optimizer):
    """Adam."""

    kind = "adam"


class PyStepIO:
    """Samples and anchors of a host call."""

    def __init__(self, inputs: dict, outputs: dict) -> None:
        self.inputs, self.outputs = inputs, outputs


class _Session:
    def __init__(
        self,
        fnModel,
        dataFlow: DataFlow,
        deviceInfo: Device,
        *,
        inputShapeInfo=None,
        userOptions: SessionOptions | None = None,
        patterns=None,
        loss=None,
        optimizer=None,
        name=None,
    ) -> None:
        import onnx

        if inputShapeInfo is not None:
            raise Error("inputShapeInfo is not modelled: inputs of the builder have their shapes")
        self._patterns = patterns
        is_path = isinstance(fnModel, (str, pathlib.Path))
        self._model = onnx.load(fnModel) if is_path else onnx.load_from_string(fnModel)
        self._flow, self._device = dataFlow, deviceInfo
        self._options = userOptions or SessionOptions()
        self._loss, self._optimizer = loss, optimizer
        self.report = None

    def prepareDevice(self) -> None:
        """Simulates the graph."""
        keys, engine = self._keys()
        directory = _simulation.report_directory(engine, self._loss is not None)
        if directory is None:
            directory = pathlib.Path(tempfile.mkdtemp(prefix="tilescope-"))
            weakref.finalize(self, shutil.rmtree, directory, ignore_errors=True)
        directory.mkdir(parents=True, exist_ok=True)
        path = directory / "model.onnx"
        self._add_outputs()
        path.write_bytes(self._model.SerializeToString())
        keys["model.onnx"] = str(path.resolve())
        own = sorted({f"{node.domain}.{node.op_type}" for node in self._model.graph.node if node.domain})
        if own:
            keys["model.allow_unknown"] = True
            engine._missing.setdefault(f"{', '.join(own)} (cost unknown)")
        keys.update(_simulation._engine_keys(engine))
        keys = _simulation.without_idle_sharding(keys)
        self.report = _simulation.run(_simulation.nested(keys), directory)
        rate = (self.report.summary().get("execution") or {}).get("samples_per_second")
        told = "does not fit" if rate is None else f"{rate:,.0f} samples per second simulated"
        _log.say(f"popart session: {told}, report in {directory}; anchors keep zeros")
        if engine._missing:
            _log.say(f"popart session: not modelled: {', '.join(engine._missing)}")

    def initAnchorArrays(self) -> dict:
        """Creates anchors of zeros."""
        import onnx

        arrays = {}
        for value in self._model.graph.output:
            if value.name in self._flow.anchors:
                kind = value.type.tensor_type
                shape = [dimension.dim_value or 1 for dimension in kind.shape.dim]
                dtype = onnx.helper.tensor_dtype_to_np_dtype(kind.elem_type or 1)
                arrays[value.name] = numpy.zeros(self._repeats(value.name) + shape, dtype)
        return arrays

    def _repeats(self, anchor: str) -> list:
        """Dimensions of an anchor before those of the tensor, by its return type."""
        options = self._options
        local = self._local_replicas
        repeats = [local]
        if self._flow.anchors[anchor].mode == "all":
            updates = options.accumulationFactor if options.enableGradientAccumulation else 1
            repeats = [self._flow.iterations, updates, local]
        return [count for count in repeats if count > 1]

    def run(self, stepio: PyStepIO, *_) -> None:
        """A host call, which is already simulated."""
        if self.report is None:
            raise Error("call prepareDevice() before run(...)")

    def weightsFromHost(self) -> None:
        """Does nothing: weights are on the host."""

    weightsToHost = weightsFromHost

    def __getattr__(self, name: str):
        raise AttributeError(f"popart.{type(self).__name__}.{name} is not modelled")

    def _add_outputs(self) -> None:
        """Makes anchors and the loss outputs of the file."""
        import onnx

        graph = self._model.graph
        wanted = [*self._flow.anchors, *([self._loss] if self._loss else [])]
        outputs = {value.name for value in graph.output}
        inferred = onnx.shape_inference.infer_shapes(self._model).graph.value_info
        known = {value.name: value for value in inferred}
        for name in dict.fromkeys(wanted):
            if name not in outputs and name in known:
                graph.output.append(known[name])

    def _keys(self) -> tuple:
        """Keys of a spec, and options of PopTorch for settings without a key."""
        options, engine = self._options, _options.Options()
        for name, value in vars(options).items():
            if name not in _OWN and name not in _LOCATIONS:
                engine._Popart.set(name, value)
        keys = {
            "model.training": self._loss is not None,
            "target.name": engine._target,
            "target.type": self._device.kind,
            "options.device_iterations": self._flow.iterations,
            "options.host.framework": "popart",
        }
        engine.syncPattern(self._device.pattern)
        anchors = list(self._flow.anchors.values())
        if anchors:
            keys["options.output_mode"] = anchors[0].mode
            if anchors[0].mode == "every_n":
                keys["options.output_return_period"] = anchors[0].period
        keys.update(self._replicas())
        if options.enableGradientAccumulation:
            keys["options.gradient_accumulation"] = options.accumulationFactor
        keys.update(self._places())
        if self._loss is not None:
            keys["model.loss"], keys["model.loss_output"] = "identity", self._loss
            keys["model.optimizer"] = self._optimizer.kind
        for name, kind in _LOCATIONS.items():
            location = getattr(options, name).location
            if location.storage == TensorStorage.OffChip:
                keys[f"options.location.{kind}.on_chip"] = False
            if location.replicatedTensorSharding == ReplicatedTensorSharding.On:
                keys[f"options.location.{kind}.replicated_tensor_sharding"] = True
        if self._patterns is not None:
            engine._missing.setdefault("patterns")
        if options.tensorLocationSettingsOverride:
            engine._missing.setdefault("tensorLocationSettingsOverride")
        return {**keys, **engine._spec_keys}, engine

    @property
    def _local_replicas(self) -> int:
        options = self._options
        return options.replicatedGraphCount if options.enableReplicatedGraphs else 1

    def _replicas(self) -> dict:
        """Local replicas, and those of all processes."""
        options = self._options
        local = self._local_replicas
        total = options.globalReplicationFactor if options.enableDistributedReplicatedGraphs else local
        if total % local or total < local:
            raise Error(f"globalReplicationFactor {total} is not a multiple of {local} replicas")
        keys = {"options.replication_factor": total}
        if total > local:
            keys["options.num_instances"] = total // local
        return keys

    def _places(self) -> dict:
        """IPUs of the graph, and the execution strategy of its stages."""
        places = [
            {place.name: place.i for place in node.attribute if place.name.startswith("__")}
            for node in self._model.graph.node
        ]
        ipus = 1 + max((place.get("__ipu_number", 0) for place in places), default=0)
        if ipus * self._local_replicas > self._device.numIpus:
            raise Error(
                f"the graph needs {ipus} IPUs for each of {self._local_replicas} replicas; the "
                f"device has {self._device.numIpus}"
            )
        keys = {"target.ipus": ipus}
        if ipus > 1 or any("__pipeline_stage" in place for place in places):
            keys["options.execution"] = "pipelined" if self._options.enablePipelining else "sharded"
        return keys


class InferenceSession(_Session):
    """Forward passes of a graph."""


class TrainingSession(_Session):
    """Forward and backward passes of a graph, and updates of its weights."""

    def __init__(self, fnModel, dataFlow, loss, optimizer, deviceInfo, **others) -> None:
        super().__init__(fnModel, dataFlow, deviceInfo, loss=loss, optimizer=optimizer, **others)
