"""Lightning's IPU support on the simulator, which Lightning 2.1 removed.

>>> import tilescope.poptorch.lightning
>>> trainer = Trainer(accelerator="ipu", devices=8, strategy=IPUStrategy(device_iterations=32))
>>> trainer = Trainer(ipus=8, plugins=IPUPlugin(device_iterations=32))  # as it was written once

Works with Lightning 2, as ``lightning`` or as ``pytorch_lightning``: ``IPUAccelerator``,
``IPUStrategy`` and ``IPUPlugin`` stand in the modules of each where Lightning had them. The
classes of this module are for the package that is already imported, otherwise for an installed
one. ``devices`` are replicas; ``accumulate_grad_batches`` and ``precision`` of the trainer
become keys of a spec. As on IPUs, ``self.log`` does nothing in the steps, there is one
optimiser, and gradients are not clipped.
"""

from __future__ import annotations

import contextlib
import functools
import importlib
import importlib.util
import sys
import types

import torch
from torch.utils import _pytree as pytree

from . import DataLoader, Options, _log, _script, inferenceModel, trainingModel
from ._errors import Error


def _lightning():
    """Lightning's package: the imported one, otherwise an installed one."""
    for name in _script.LIGHTNING:
        if name in sys.modules:
            return sys.modules[name]
    for name in _script.LIGHTNING:
        if importlib.util.find_spec(name.split(".")[0]) is not None:
            return importlib.import_module(name)
    raise ImportError("tilescope.poptorch.lightning needs Lightning 2: pip install lightning")


# Names of precisions in Lightning, and in specs.
_PRECISIONS = {"32-true": "float32", "16-mixed": "mixed", "16-true": "float16"}
# The step that a model runs, by the stage of the trainer.
_STEPS = {
    "train": "training_step",
    "sanity_check": "validation_step",
    "validate": "validation_step",
    "test": "test_step",
    "predict": "predict_step",
}


class _Accelerator:
    """``Trainer(accelerator="ipu", devices=8)``: eight replicas of simulated IPUs."""

    def setup_device(self, device: torch.device) -> None:
        """Does nothing: results come from the CPU."""

    def teardown(self) -> None:
        """Does nothing: no device is held."""

    @staticmethod
    def parse_devices(devices) -> int:
        """The requested number of replicas."""
        if isinstance(devices, bool) or not str(devices).isdigit() or int(devices) < 1:
            raise Error(f"devices are a number of replicas from 1, not {devices!r}")
        return int(devices)

    @staticmethod
    def get_parallel_devices(devices) -> list:
        """The device that results come from, once for each replica."""
        return [torch.device("cpu")] * int(devices)

    @staticmethod
    def auto_device_count() -> int:
        """One replica by default."""
        return 1

    @staticmethod
    def is_available() -> bool:
        """True: simulated IPUs are always available."""
        return True

    @staticmethod
    def name() -> str:
        """The name for ``accelerator=``."""
        return "ipu"


class _Precision:
    """Leaves backward passes and weight updates to the model on the IPUs."""

    def __init__(self, precision: str = "32-true") -> None:
        super().__init__()
        self.precision = precision

    def backward(self, tensor, model, optimizer, *args, **kwargs) -> None:
        """Does nothing: the call of the model has run it."""

    def optimizer_step(self, optimizer, model, closure, **kwargs):
        """Does nothing: the call of the model has run it."""
        return self._wrap_closure(model, optimizer, closure)

    def clip_gradients(self, optimizer, clip_val=0.0, gradient_clip_algorithm=None) -> None:
        """Does nothing: gradients never reach the host."""
        if clip_val:
            raise Error("IPUs do not clip gradients: set max_grad_norm of an optimiser of poptorch")


class _Step(torch.nn.Module):
    """One step of a Lightning module as a model."""

    def __init__(self, module, step: str) -> None:
        super().__init__()
        self.module = module
        self._step = step

    def forward(self, *args, **kwargs):
        if _is_half(self.module):
            args, kwargs = pytree.tree_map(_to_half, (args, kwargs))
        with _unlogged(self.module):
            return getattr(self.module, self._step)(*args, **kwargs)


def _is_half(module) -> bool:
    """True if a module was converted with ``half()``."""
    types = {weight.dtype for weight in module.parameters() if weight.is_floating_point()}
    return types == {torch.float16}


def _to_half(value):
    """Casts samples to half precision, as Lightning did for IPUs with ``precision=16``."""
    is_real = isinstance(value, torch.Tensor) and value.is_floating_point()
    return value.half() if is_real else value


@contextlib.contextmanager
def _unlogged(module):
    """Runs its body without ``self.log``, which cannot be in a program for IPUs."""
    names = ("log", "log_dict")
    for name in names:
        object.__setattr__(module, name, lambda *_, **__: None)
    try:
        yield
    finally:
        for name in names:
            module.__dict__.pop(name, None)


class _Strategy:
    """Trains and runs on simulated IPUs.

    ``training_opts`` and ``inference_opts`` are ``poptorch.Options`` that replace those from the
    trainer's arguments. ``autoreport_dir`` is the directory of reports, with ``training`` and
    ``inference`` below it.
    """

    strategy_name = "ipu_strategy"
    # The class of the package for precision, set by `stand_in`.
    _precision_type = None

    def __init__(
        self,
        accelerator=None,
        device_iterations: int = 1,
        autoreport: bool = False,
        autoreport_dir=None,
        parallel_devices=None,
        checkpoint_io=None,
        precision_plugin=None,
        training_opts: Options | None = None,
        inference_opts: Options | None = None,
        **_kwargs,
    ) -> None:
        super().__init__("cpu", accelerator, checkpoint_io, None)
        self.parallel_devices = parallel_devices
        self.device_iterations = device_iterations
        self._given = {True: training_opts, False: inference_opts}
        self._made = {}
        self._models = {}
        self._accumulation = None
        self._own_precision = self._precision_type()
        if precision_plugin is not None:
            self.precision_plugin = precision_plugin
        self._profile_dir = str(autoreport_dir or ".") if autoreport or autoreport_dir else None

    # Devices.

    @property
    def precision_plugin(self):
        """The trainer's precision, for the simulation; the CPU computes in the types of the
        model."""
        return self._own_precision

    @precision_plugin.setter
    def precision_plugin(self, plugin) -> None:
        name = "32-true" if plugin is None else str(plugin.precision)
        if name not in _PRECISIONS:
            raise Error(f"IPUs compute with {', '.join(_PRECISIONS)}, not {name}")
        self._own_precision = self._precision_type(name)

    def model_to_device(self) -> None:
        """The model stays where it is."""

    def reduce(self, tensor, *args, **kwargs):
        """The mean over micro-batches, where a call returns several."""
        return tensor.mean() if isinstance(tensor, torch.Tensor) and tensor.dim() else tensor

    # Models and steps.

    def setup(self, trainer) -> None:
        """Leaves accumulation to the IPUs, which accumulate gradients during a call."""
        self._accumulation = trainer.accumulate_grad_batches
        trainer.accumulate_grad_batches = 1
        self._models = {}
        super().setup(trainer)
        if len(self.optimizers) > 1:
            raise Error("IPUs support one optimiser")

    def options(self, training: bool) -> Options:
        """Options of PopTorch for a stage: the given ones, otherwise those of the trainer."""
        if training not in self._made:
            options = self._options_of_trainer(training)
            given = self._given[training]
            if given is not None:
                _tell_differences(given, options)
                options = given.clone()
            precision = _PRECISIONS[self._own_precision.precision]
            precision = "as_is" if _is_half(self.lightning_module) else precision
            options._spec_path("model.precision", precision)
            if self._profile_dir is not None:
                options.enableProfiling(self._profile_dir)
            self._made[training] = options
        return self._made[training]

    def _options_of_trainer(self, training: bool) -> Options:
        options = Options()
        options.deviceIterations(self.device_iterations)
        options.replicationFactor(len(self.parallel_devices or [0]))
        if training:
            accumulation = self._accumulation or self.lightning_module.trainer.accumulate_grad_batches
            options.Training.gradientAccumulation(accumulation)
        return options

    def process_dataloader(self, dataloader):
        """Converts a loader of torch to one of PopTorch, for the samples of a call."""
        if isinstance(dataloader, DataLoader) or not isinstance(
            dataloader, torch.utils.data.DataLoader
        ):
            return dataloader
        common = dict(
            num_workers=dataloader.num_workers,
            collate_fn=dataloader.collate_fn,
            persistent_workers=dataloader.persistent_workers,
            worker_init_fn=dataloader.worker_init_fn,
            generator=dataloader.generator,
        )
        options = self.options(self._stage() == "train")
        if dataloader.batch_size is None and dataloader.batch_sampler is None:
            raise Error("a DataLoader without batches: programs for IPUs have one batch size")
        if dataloader.batch_size is None:
            sampler = dataloader.batch_sampler
            return DataLoader(options, dataloader.dataset, batch_sampler=sampler, **common)
        if not isinstance(dataloader.dataset, torch.utils.data.IterableDataset):
            common["sampler"] = dataloader.sampler
        # Programs for IPUs have fixed shapes, so samples that do not fill a call are left out.
        return DataLoader(
            options, dataloader.dataset, batch_size=dataloader.batch_size, drop_last=True, **common
        )

    def batch_to_device(self, batch, device=None, dataloader_idx: int = 0):
        """Batches stay where they are."""
        return batch

    def training_step(self, *args, **kwargs):
        """Forward and backward passes and weight updates of a call."""
        return self._run(*args, **kwargs)

    def validation_step(self, *args, **kwargs):
        """Forward passes of a call."""
        return self._run(*args, **kwargs)

    test_step = predict_step = validation_step

    def _run(self, *args, **kwargs):
        step = _STEPS[self._stage()]
        if step not in self._models:
            self._models[step] = self._make(step)
        results = self._models[step](*args, **kwargs)
        if step != "training_step":
            return results
        if isinstance(results, dict):
            return {**results, "loss": self.reduce(results["loss"])}
        return self.reduce(results)

    def _make(self, step: str):
        # Messages name the user's class.
        kind = type(type(self.lightning_module).__name__, (_Step,), {})
        model = kind(self.lightning_module, step)
        if step == "training_step":
            return trainingModel(model, self.options(True), self.optimizers[0])
        return inferenceModel(model, self.options(False))

    def _stage(self) -> str:
        return self.lightning_module.trainer.state.stage.value

    @property
    def reports(self) -> dict:
        """Reports of the simulations so far, by step: ``training_step``, ``validation_step``, …"""
        return {step: model.report for step, model in self._models.items() if model.isCompiled()}

    def teardown(self) -> None:
        """Restores the settings of the trainer."""
        module = self.lightning_module
        if module is not None and self._accumulation is not None:
            module.trainer.accumulate_grad_batches = self._accumulation
        for model in self._models.values():
            model.destroy()
        super().teardown()


def _tell_differences(given: Options, of_trainer: Options) -> None:
    """Warns about settings of the trainer that options override."""
    for name, taken, said in [
        ("replicas", given.replication_factor, of_trainer.replication_factor),
        (
            "accumulated micro-batches",
            given.Training.gradient_accumulation,
            of_trainer.Training.gradient_accumulation,
        ),
    ]:
        if said not in (1, taken):
            _log.warning(f"{name}: {taken} from the options, not from the trainer: {said}")


_stand_ins = {}


def stand_in(package) -> types.SimpleNamespace:
    """Adds the IPU classes to the modules of a Lightning package, and makes its ``Trainer`` accept
    the arguments of versions before 2. Returns the classes."""
    name = package.__name__
    if name in _stand_ins:
        return _stand_ins[name]
    accelerators = importlib.import_module(f"{name}.accelerators")
    strategies = importlib.import_module(f"{name}.strategies")
    plugins = importlib.import_module(f"{name}.plugins")

    class IPUAccelerator(_Accelerator, accelerators.Accelerator):
        __doc__ = _Accelerator.__doc__

    class IPUPrecision(_Precision, plugins.Precision):
        __doc__ = _Precision.__doc__

    class IPUStrategy(_Strategy, strategies.SingleDeviceStrategy):
        __doc__ = _Strategy.__doc__
        _precision_type = IPUPrecision

    accelerators.IPUAccelerator = IPUAccelerator
    strategies.IPUStrategy = IPUStrategy
    # Its name in Lightning before version 1.7.
    plugins.IPUPlugin = IPUStrategy
    accelerators.AcceleratorRegistry.register(
        "ipu", IPUAccelerator, description="Simulated IPUs", override=True
    )
    strategies.StrategyRegistry.register(
        "ipu_strategy", IPUStrategy, description="Simulated IPUs", override=True
    )
    classes = types.SimpleNamespace(accelerator=IPUAccelerator, strategy=IPUStrategy)
    _wrap_trainer(package.Trainer, classes)
    _log.debug(f"{name} {package.__version__} knows the accelerator ipu")
    _stand_ins[name] = classes
    return classes


def _wrap_trainer(trainer, classes) -> None:
    begin = trainer.__init__

    @functools.wraps(begin)
    def __init__(self, *args, ipus=None, **arguments):
        _translate(arguments, ipus, classes)
        begin(self, *args, **arguments)
        # Another strategy would start processes on this CPU and simulate nothing.
        on_ipus = isinstance(self.accelerator, classes.accelerator)
        if on_ipus != isinstance(self.strategy, classes.strategy):
            raise Error(
                "IPUs and IPUStrategy belong together: this trainer has "
                f"{type(self.accelerator).__name__} with {type(self.strategy).__name__}"
            )

    trainer.__init__ = __init__


def _translate(arguments: dict, ipus, classes) -> None:
    """Translates the former arguments ``ipus=`` and ``plugins=IPUPlugin(...)`` to the current ones,
    and selects the strategy for IPUs."""
    plugins = arguments.get("plugins") or []
    plugins = list(plugins) if isinstance(plugins, (list, tuple)) else [plugins]
    for plugin in plugins:
        if isinstance(plugin, classes.strategy):
            if arguments.get("strategy", "auto") != "auto":
                raise Error("a trainer has one strategy: IPUPlugin is one too")
            arguments["strategy"] = plugin
    if plugins:
        others = [plugin for plugin in plugins if not isinstance(plugin, classes.strategy)]
        arguments["plugins"] = others or None
    strategy = arguments.get("strategy", "auto")
    accelerator = arguments.get("accelerator", "auto")
    if isinstance(accelerator, classes.accelerator):
        accelerator = "ipu"
    if ipus is not None:
        if accelerator not in ("auto", "ipu"):
            raise Error(f"ipus={ipus} needs accelerator 'ipu', not {accelerator!r}")
        if arguments.setdefault("devices", ipus) != ipus:
            raise Error(f"ipus={ipus} and devices={arguments['devices']} are the same argument")
        accelerator = "ipu"
    chosen = isinstance(strategy, classes.strategy) or strategy == _Strategy.strategy_name
    if chosen and accelerator == "auto":
        accelerator = "ipu"
    if accelerator == "ipu" and strategy == "auto":
        arguments["strategy"] = classes.strategy()
    arguments["accelerator"] = accelerator


_own = stand_in(_lightning())
_script.watch_lightning()
IPUAccelerator = _own.accelerator
IPUStrategy = IPUPlugin = _own.strategy
