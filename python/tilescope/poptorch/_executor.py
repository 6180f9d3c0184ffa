"""``poptorch.trainingModel`` and ``inferenceModel``: simulate once, then run on the CPU."""

import copy
import datetime
import os
import pathlib
import shutil
import tempfile
import time
import weakref

import torch
from torch.utils import _pytree as pytree

from . import _dataloader, _export, _log, _simulation, enums, optim
from ._errors import Error
from ._options import Options

# PopART's name for the gradient of a weight.
_GRADIENT = "Gradient___"
# Parts of a host call in which no program runs.
_AROUND_THE_PROGRAM = ("loader", "framework", "launch", "return")
_running = 0


def running() -> bool:
    """True while the forward pass of a model runs on the CPU instead of IPUs."""
    return _running > 0


def trainingModel(model, options=None, optimizer=None) -> "PoplarExecutor":
    """Wraps a model for training: each call runs forward and backward passes and weight updates."""
    return PoplarExecutor(model, options, True, optimizer)


def inferenceModel(model, options=None) -> "PoplarExecutor":
    """Wraps a model for inference: each call runs forward passes."""
    return PoplarExecutor(model, options, False, None)


class PoplarExecutor:
    """A model on simulated IPUs; the CPU computes its results."""

    def __init__(self, model, options, training: bool, optimizer) -> None:
        if isinstance(model, PoplarExecutor):
            model = model._user_model
        if options is not None and not isinstance(options, Options):
            raise Error(f"options are poptorch.Options, not {type(options).__name__}")
        if options is not None:
            options._freeze()
        self._options = options.clone() if options is not None else Options()
        accumulation = self._options.Training.gradient_accumulation
        if not training and accumulation != 1:
            raise Error(
                f"gradientAccumulation is {accumulation} in options of an inference model: set it "
                "to 1, and deviceIterations to the number of batches of a call"
            )
        if self._options.defaultOutputMode():
            mode = enums.OutputMode.Final if training else enums.OutputMode.All
            self._options._values["output_mode"] = mode
        # As in PopTorch, weights and layers are shared, but not the mode.
        self._user_model = model
        self._model = copy.copy(model)
        self._training = training
        if training and optimizer is None:
            optimizer = optim.SGD(model.parameters(), lr=0.01)
        self._optimizer = optimizer
        self._exported = None
        self._report = None
        self._summary = None
        self._compilation_time = None
        self._attached = False
        self._told = False
        if training:
            _wrap(model, self)
        self._add_replica_grouping()

    # The model behind it.

    def __getattr__(self, name: str):
        if name.startswith("_"):
            raise AttributeError(name)
        return getattr(self._user_model, name)

    @property
    def model(self):
        """The user's model."""
        return self._user_model

    @property
    def options(self) -> Options:
        """The options of the model."""
        return self._options

    def __repr__(self) -> str:
        return f"PoplarExecutor({self._model!r})"

    def train(self, mode: bool = True):
        """Switches the mode of the model, as in torch."""
        self._model.train(mode)
        return self

    def eval(self):
        """Switches the mode of the model, as in torch."""
        return self.train(False)

    # Methods of PopTorch's executor.

    def compile(self, *args, **kwargs) -> None:
        """Exports and simulates the model for these arguments."""
        if not self.isCompiled():
            self._compile(args, kwargs)

    def isCompiled(self) -> bool:
        """True if the model was simulated."""
        return self._exported is not None

    @property
    def _executable(self):
        """Exists for scripts that check whether the model was compiled."""
        return self._exported

    @property
    def report(self):
        """The :class:`tilescope.Report` of the simulation; None before the first call."""
        return self._report

    @property
    def compilationTime(self):
        """Duration of export and simulation; None before the first call."""
        return self._compilation_time

    @property
    def rng_state(self) -> list:
        """State of the CPU's random number generator, which the model uses."""
        return torch.get_rng_state().tolist()

    @rng_state.setter
    def rng_state(self, state: list) -> None:
        torch.set_rng_state(torch.tensor(state, dtype=torch.uint8))

    def cycleCount(self) -> int:
        """Simulated cycles of the program of a call, without the time of the host around it."""
        self._need_report()
        cycles = self._summary.get("execution", {}).get("total_cycles")
        if cycles is None:
            raise Error("the program does not fit in tile memory, so it has no cycles")
        parts = (self._summary.get("host") or {}).get("call", [])
        around = sum(part["share"] for part in parts if part["part"] in _AROUND_THE_PROGRAM)
        return round(cycles * (1.0 - around))

    def getPerfCounters(self):
        """Raises an error: host counters are not simulated; the steps of the report replace
        them."""
        raise Error("getPerfCounters is not modelled: the report shows when data is copied")

    def getLatency(self):
        """Raises an error: latencies are not simulated; the marks of the report replace them."""
        raise Error("latencies are not modelled: the report shows when data is copied")

    getHostIpuLatency = getComputeLatency = getIpuHostLatency = getLatency

    def getTensorNames(self) -> list:
        """Names for ``Options.anchorTensor``: weights and their gradients."""
        names = [name for name, _ in self._model.named_parameters()]
        gradients = [f"{_GRADIENT}{name}" for name in names] if self._training else []
        return [*names, *gradients]

    def getAnchoredTensor(self, short_name: str):
        """A tensor of ``Options.anchorTensor``, with its value after the last call."""
        anchored = self._options.anchored_tensors
        if short_name not in anchored:
            raise Error(f"{short_name!r} is not anchored: {', '.join(anchored) or 'nothing is'}")
        name = anchored[short_name]
        weight = dict(self._model.named_parameters()).get(name.removeprefix(_GRADIENT))
        if weight is None or (name.startswith(_GRADIENT) and weight.grad is None):
            raise Error(f"tensor {name!r} is unknown on the CPU: getTensorNames() lists all")
        return (weight.grad if name.startswith(_GRADIENT) else weight).detach().clone()

    def setOptimizer(self, optimizer) -> None:
        """Replaces the optimiser; missing state is taken from the previous one."""
        if self._optimizer is not None and type(optimizer) is type(self._optimizer):
            for weight, state in self._optimizer.state.items():
                optimizer.state.setdefault(weight, state)
        self._optimizer = optimizer

    def copyWeightsToHost(self) -> None:
        """Does nothing: weights are on the host."""

    def copyWeightsToDevice(self) -> None:
        """Does nothing: weights are on the host."""

    def copyWeightsToHostIfNeeded(self) -> bool:
        """Does nothing: weights are on the host."""
        return False

    def copyNamedBuffersToDevice(self) -> None:
        """Does nothing: buffers are on the host."""

    def isAttachedToDevice(self) -> bool:
        """True if the model ran since it was detached."""
        return self._attached

    def attachToDevice(self) -> None:
        """Attaches to the simulated device."""
        self._attached = True

    def detachFromDevice(self) -> None:
        """Detaches from the simulated device."""
        self._attached = False

    def destroy(self) -> None:
        """Ends the model."""
        self._attached = False
        unwrapModelIfNecessary(self._user_model)

    def compileAndExport(self, *_, **__) -> None:
        """Raises an error: the simulator has no code for IPUs to export."""
        raise Error("compileAndExport: a simulated program has no executable to export")

    def save(self, *_, **__) -> None:
        """Raises an error: the simulator has no code for IPUs to save."""
        raise Error("save: a simulated program has no executable to save")

    def loadExecutable(self, filename: str) -> None:
        """Raises an error: simulated programs have no executables."""
        raise Error(f"loadExecutable: {filename} is code for IPUs, which the simulator cannot run")

    # A call.

    def __call__(self, *args, **kwargs):
        if self._options.connection_type == enums.ConnectionType.Never:
            raise Error("the options say ConnectionType.Never: use compile(...) instead of a call")
        if not self.isCompiled():
            self._compile(args, kwargs)
        self._attached = True
        batches, update = self._micro_batches(args, kwargs)
        begin = time.perf_counter()
        results = self._execute(batches, update)
        samples = len(batches) * first_dimension(*batches[0])
        self._tell_rates(samples / (time.perf_counter() - begin), len(batches))
        return results

    def _compile(self, args, kwargs) -> None:
        batches, _ = self._micro_batches(args, kwargs)
        first_args, first_kwargs = batches[0]
        samples = first_dimension(first_args, first_kwargs)
        target = _simulation.report_directory(self._options, self._training)
        kept = "" if target is None else f", report in {target}"
        if target is None:
            target = pathlib.Path(tempfile.mkdtemp(prefix="tilescope-"))
            weakref.finalize(self, shutil.rmtree, target, ignore_errors=True)
        begin = time.perf_counter()
        self._exported = _export.export(
            self._model, first_args, first_kwargs, self._options._strategy, self._training, target
        )
        exported = time.perf_counter()
        spec = _simulation.spec_of(
            self._exported,
            self._options,
            self._optimizer,
            _dataloader.last_used,
            samples,
            self._training,
        )
        self._report = _simulation.run(spec, target)
        self._summary = self._report.summary()
        ended = time.perf_counter()
        self._compilation_time = datetime.timedelta(seconds=ended - begin)
        _log.say(
            f"{self._kind()}: exported in {exported - begin:.1f} s, "
            f"simulated in {ended - exported:.1f} s{kept}"
        )

    def _add_replica_grouping(self) -> None:
        """Adds PopTorch's ``replicaGrouping`` to weights. Different values per replica cost
        nothing; the smaller all-reduce is not modelled."""

        def grouping(*_) -> None:
            self._options._missing.setdefault("replicaGrouping")

        for weight in self._model.parameters():
            weight.replicaGrouping = grouping

    def _kind(self) -> str:
        return f"{'training' if self._training else 'inference'} of {type(self._model).__name__}"

    def _need_report(self) -> None:
        if self._summary is None:
            raise Error("the model was not compiled: call it once before")

    def _micro_batches(self, args, kwargs) -> tuple:
        """The arguments of each micro-batch, and the number of micro-batches per weight update."""
        options = self._options
        update = options.replication_factor // options.input_group_size
        if self._training:
            update *= options.Training.gradient_accumulation
        count = options.device_iterations * update
        leaves, structure = pytree.tree_flatten((args, kwargs))
        parts = [_split(leaf, count, index) for index, leaf in enumerate(leaves)]
        batches = [pytree.tree_unflatten(list(part), structure) for part in zip(*parts)]
        if not batches:
            batches = [(args, kwargs)] * count
        return batches, update

    def _execute(self, batches: list, update: int):
        """Runs the micro-batches. Returns the results selected by the output mode."""
        mode = _execution()
        if mode == "none":
            results = [self._zeros()] * len(batches)
        elif mode == "one":
            results = self._run(batches[:1], 1) * len(batches)
        else:
            results = self._run(batches, update)
        leaves = [self._combine(column) for column in zip(*results)]
        return pytree.tree_unflatten(leaves, self._exported.structure)

    def _zeros(self) -> list:
        return [torch.zeros(value.shape, dtype=value.dtype) for value in self._exported.outputs]

    def _run(self, batches: list, update: int) -> list:
        """Runs each micro-batch. Returns the leaves of the results."""
        global _running
        _running += 1
        try:
            with torch.set_grad_enabled(self._training):
                return self._train(batches, update) if self._training else self._infer(batches)
        finally:
            _running -= 1

    def _infer(self, batches: list) -> list:
        return [_leaves(self._model(*args, **kwargs)) for args, kwargs in batches]

    def _train(self, batches: list, update: int) -> list:
        results = []
        mean = self._options.Training.accumulation_and_replication_reduction_type
        share = 1 / update if mean == enums.ReductionType.Mean else 1.0
        for begin in range(0, len(batches), update):
            self._optimizer.zero_grad()
            for args, kwargs in batches[begin : begin + update]:
                leaves = _leaves(self._model(*args, **kwargs))
                loss = leaves[self._exported.loss_index]
                if loss.requires_grad:
                    (loss.sum() * share).backward()
                results.append([leaf.detach() for leaf in leaves])
            self._clip()
            self._optimizer.step()
        return results

    def _clip(self) -> None:
        limit = getattr(self._optimizer, "max_grad_norm", float("inf"))
        if limit != float("inf"):
            torch.nn.utils.clip_grad_norm_(self._model.parameters(), limit)

    def _combine(self, column: tuple):
        """Combines an output of all micro-batches according to the output mode."""
        options = self._options
        mode, period = options.output_mode, options.output_return_period
        if mode == enums.OutputMode.Sum:
            return torch.stack(column).sum(dim=0)
        if mode == enums.OutputMode.EveryN:
            column = column[period - 1 :: period]
        elif mode == enums.OutputMode.Final:
            column = column[-options.replication_factor :]
        if column[0].dim() == 0:
            return column[0] if len(column) == 1 else torch.stack(column)
        return torch.cat(column)

    def _tell_rates(self, own: float, micro_batches: int) -> None:
        """Prints the simulated throughput and ``own``, the throughput of this call on the CPU,
        once."""
        if self._told:
            return
        self._told = True
        execution = self._summary.get("execution") or {}
        rate = execution.get("samples_per_second")
        if rate is None:
            memory = self._summary.get("memory", {})
            tiles = memory.get("out_of_memory_tiles")
            _log.say(
                f"{self._kind()}: does not fit: {tiles} tiles exceed their memory; see the report"
            )
        else:
            _log.say(
                f"{self._kind()}: {rate:,.0f} samples per second simulated on "
                f"{self._summary['target']['num_ipus']} IPUs; {_own_rate(own, micro_batches)}"
            )
        missing = [*self._options._missing, *self._exported.missing]
        if missing:
            _log.say(f"{self._kind()}: not modelled: {', '.join(dict.fromkeys(missing))}")


def _execution() -> str:
    """The micro-batches that run on the CPU: ``one`` of a call, ``all`` or ``none``."""
    mode = os.environ.get("TILESCOPE_EXECUTE", "one")
    if mode not in ("all", "one", "none"):
        raise Error(f"TILESCOPE_EXECUTE is all, one or none, not {mode!r}")
    return mode


def _own_rate(own: float, micro_batches: int) -> str:
    """A text on how the CPU computes the results of a call."""
    mode = _execution()
    if mode == "none":
        return "results are zeros"
    if mode == "one" and micro_batches > 1:
        return (
            f"one of the {micro_batches} micro-batches of a call runs on this CPU and represents "
            "all: TILESCOPE_EXECUTE=all runs all"
        )
    return f"{own:,.0f} on this CPU, which is what the script's own clock sees"


def _split(leaf, count: int, index: int) -> list:
    """Splits a tensor by micro-batch; other values are the same for all."""
    if not isinstance(leaf, torch.Tensor):
        return [leaf] * count
    if leaf.dim() == 0 or leaf.shape[0] % count:
        size = "no dimension" if leaf.dim() == 0 else f"{leaf.shape[0]} samples"
        raise Error(
            f"input {index} has {size}, which is not a multiple of the {count} micro-batches of a "
            "call (deviceIterations x gradientAccumulation x replicationFactor)"
        )
    return list(leaf.chunk(count)) if count > 1 else [leaf]


def first_dimension(args, kwargs) -> int:
    """Samples of a micro-batch: the first dimension of the first tensor with dimensions."""
    leaves, _ = pytree.tree_flatten((args, kwargs))
    sizes = [leaf.shape[0] for leaf in leaves if isinstance(leaf, torch.Tensor) and leaf.dim()]
    return sizes[0] if sizes else 1


def _leaves(results) -> list:
    leaves, _ = pytree.tree_flatten(results)
    return [leaf for leaf in leaves if isinstance(leaf, torch.Tensor)]


# Executors of models that have, or had, PopTorch's methods.
_executors = weakref.WeakKeyDictionary()


def _wrap(model, executor: PoplarExecutor) -> None:
    """Adds PopTorch's methods to the user's model."""
    parent = _executors[model] = weakref.ref(executor)

    def destroy() -> None:
        if parent() is not None:
            parent().destroy()

    object.__setattr__(model, "copyWeightsToHostIfNeeded", lambda: False)
    object.__setattr__(model, "destroy", destroy)


def unwrapModelIfNecessary(model) -> None:
    """Removes PopTorch's methods from a model, so that it can be pickled."""
    for name in ("copyWeightsToHostIfNeeded", "destroy"):
        model.__dict__.pop(name, None)


def rewrapModelIfNecessary(model) -> None:
    """Adds PopTorch's methods to a model again."""
    executor = _executors[model]() if model in _executors else None
    if executor is not None:
        _wrap(model, executor)
