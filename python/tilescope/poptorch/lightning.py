"""Lightning's IPU options on the simulator.

>>> from tilescope.poptorch.lightning import IPUStrategy
>>> trainer = Trainer(accelerator="ipu", devices=8, strategy=IPUStrategy(device_iterations=32))

Works with Lightning 2, as ``lightning`` or as ``pytorch_lightning``: whichever is imported already,
else whichever is installed. Options are those of Lightning's ``IPUPlugin`` and ``IPUStrategy``, which
Lightning 2.1 removed. ``devices`` are replicas; ``accumulate_grad_batches`` and ``precision`` of the
trainer become keys of a spec. As on IPUs, ``self.log`` does nothing in the steps, there is one
optimiser, and gradients are not clipped.
"""

import contextlib
import importlib
import importlib.util
import sys

import torch

from . import DataLoader, Options, _log, inferenceModel, trainingModel
from ._errors import Error


def _lightning():
    """Lightning's package: the one that was imported, else one that is installed."""
    names = ("lightning.pytorch", "pytorch_lightning")
    for name in names:
        if name in sys.modules:
            return sys.modules[name]
    for name in names:
        if importlib.util.find_spec(name.split(".")[0]) is not None:
            return importlib.import_module(name)
    raise ImportError("tilescope.poptorch.lightning needs Lightning 2: pip install lightning")


_pl = _lightning()
_precision = importlib.import_module(f"{_pl.__name__}.plugins.precision")
_strategies = importlib.import_module(f"{_pl.__name__}.strategies")
_accelerators = importlib.import_module(f"{_pl.__name__}.accelerators")

# Lightning's words for precisions, and those of specs.
_PRECISIONS = {"32-true": "float32", "16-mixed": "mixed", "16-true": "float16"}
# The step that a model runs, by the stage of the trainer.
_STEPS = {
    "train": "training_step",
    "sanity_check": "validation_step",
    "validate": "validation_step",
    "test": "test_step",
    "predict": "predict_step",
}


class IPUAccelerator(_accelerators.Accelerator):
    """``Trainer(accelerator="ipu", devices=8)``: eight replicas of simulated IPUs."""

    def setup_device(self, device: torch.device) -> None:
        """Results come from the CPU."""

    def teardown(self) -> None:
        """Nothing is held."""

    @staticmethod
    def parse_devices(devices) -> int:
        """How many replicas are asked for."""
        if isinstance(devices, bool) or not str(devices).isdigit() or int(devices) < 1:
            raise Error(f"devices are a number of replicas from 1, not {devices!r}")
        return int(devices)

    @staticmethod
    def get_parallel_devices(devices) -> list:
        """The device that results come from, once for each replica."""
        return [torch.device("cpu")] * int(devices)

    @staticmethod
    def auto_device_count() -> int:
        """One replica where none are asked for."""
        return 1

    @staticmethod
    def is_available() -> bool:
        """Simulated IPUs always are."""
        return True

    @staticmethod
    def name() -> str:
        """What ``accelerator=`` calls it."""
        return "ipu"


class IPUPrecision(_precision.Precision):
    """Leaves backward passes and weight updates to the model on the IPUs."""

    def __init__(self, precision: str = "32-true") -> None:
        self.precision = precision

    def backward(self, tensor, model, optimizer, *args, **kwargs) -> None:
        """The call of the model has run it."""

    def optimizer_step(self, optimizer, model, closure, **kwargs):
        """The call of the model has run it."""
        return self._wrap_closure(model, optimizer, closure)

    def clip_gradients(self, optimizer, clip_val=0.0, gradient_clip_algorithm=None) -> None:
        """Gradients never reach the host."""
        if clip_val:
            raise Error("IPUs clip no gradients: give the optimiser of poptorch max_grad_norm")


class _Step(torch.nn.Module):
    """One step of a Lightning module as a model."""

    def __init__(self, module, step: str) -> None:
        super().__init__()
        self.module = module
        self._step = step

    def forward(self, *args, **kwargs):
        with _unlogged(self.module):
            return getattr(self.module, self._step)(*args, **kwargs)


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


class IPUStrategy(_strategies.SingleDeviceStrategy):
    """Trains and runs on simulated IPUs.

    ``training_opts`` and ``inference_opts`` are ``poptorch.Options`` in place of those that the
    trainer's arguments make. ``autoreport_dir`` is where reports go, below it ``training`` and
    ``inference``.
    """

    strategy_name = "ipu_strategy"

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
        self._own_precision = IPUPrecision()
        if precision_plugin is not None:
            self.precision_plugin = precision_plugin
        self._profile_dir = str(autoreport_dir or ".") if autoreport or autoreport_dir else None

    # Where it runs.

    @property
    def precision_plugin(self):
        """The trainer's precision: the simulation's, since the CPU computes as the model says."""
        return self._own_precision

    @precision_plugin.setter
    def precision_plugin(self, plugin) -> None:
        name = "32-true" if plugin is None else str(plugin.precision)
        if name not in _PRECISIONS:
            raise Error(f"IPUs compute with {', '.join(_PRECISIONS)}, not {name}")
        self._own_precision = IPUPrecision(name)

    def model_to_device(self) -> None:
        """The model stays where it is."""

    def reduce(self, tensor, *args, **kwargs):
        """The mean over micro-batches, where a call returns several."""
        return tensor.mean() if isinstance(tensor, torch.Tensor) and tensor.dim() else tensor

    # What it runs.

    def setup(self, trainer) -> None:
        """Leaves accumulation to the IPUs, which add up gradients inside a call."""
        self._accumulation = trainer.accumulate_grad_batches
        trainer.accumulate_grad_batches = 1
        self._models = {}
        super().setup(trainer)
        if len(self.optimizers) > 1:
            raise Error("IPUs support one optimiser")

    def options(self, training: bool) -> Options:
        """Options of PopTorch for a stage: those that were given, else what the trainer says."""
        if training not in self._made:
            given = self._given[training]
            options = self._options_of_trainer(training) if given is None else given.clone()
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
        options._spec_path("model.precision", _PRECISIONS[self._own_precision.precision])
        return options

    def process_dataloader(self, dataloader):
        """A loader of torch as one of PopTorch, for the samples of a call."""
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
        # Programs for IPUs have one shape: what does not fill a call is left out.
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
        # What is told of it has the name of the user's class.
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
        """Gives the trainer its own settings back."""
        module = self.lightning_module
        if module is not None and self._accumulation is not None:
            module.trainer.accumulate_grad_batches = self._accumulation
        for model in self._models.values():
            model.destroy()
        super().teardown()


# What Lightning called it before version 1.7.
IPUPlugin = IPUStrategy


def register() -> None:
    """Lets ``Trainer`` know ``accelerator="ipu"`` and ``strategy="ipu_strategy"``."""
    accelerators = _accelerators.AcceleratorRegistry
    if "ipu" not in accelerators.available_accelerators():
        accelerators.register("ipu", IPUAccelerator, description="Simulated IPUs")
    registry = _strategies.StrategyRegistry
    if "ipu_strategy" not in registry.available_strategies():
        registry.register("ipu_strategy", IPUStrategy, description="Simulated IPUs")
    _log.debug(f"{_pl.__name__} {_pl.__version__} knows the accelerator ipu")


register()
