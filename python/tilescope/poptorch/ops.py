"""Blocks, and the operations that PopTorch adds to torch's."""

import functools

import torch

from . import _log, _trace, enums
from ._errors import Error


def isRunningOnIpu() -> bool:
    """True in the forward pass of a model for IPUs."""
    from ._executor import running

    return _trace.current is not None or running()


class Block:
    """The operations of its scope are one block: ``with poptorch.Block("encoder"):``."""

    def __init__(self, user_id=None, ipu_id=None) -> None:
        self._user_id = user_id
        self._ipu_id = ipu_id
        self._before = None

    @staticmethod
    def useAutoId() -> None:
        """Names blocks without a name from 0, at the start of a forward pass."""
        if _trace.current is not None:
            _trace.current.strategy.restart_auto_blocks()

    @staticmethod
    def start(user_id=None, ipu_id=None) -> None:
        """Begins a block that lasts until the next."""
        if _trace.current is not None:
            _trace.begin_block(user_id, ipu_id)

    def __enter__(self):
        if _trace.current is not None:
            self._before = _trace.begin_block(self._user_id, self._ipu_id)
        return self

    def __exit__(self, *_) -> None:
        if _trace.current is not None and self._before is not None:
            _trace.end_block(self._before)
            self._before = None


class _BlockHook:
    """Begins a block when a module is called."""

    def __init__(self, user_id, ipu_id) -> None:
        self._user_id = user_id
        self._ipu_id = ipu_id

    def __call__(self, module, inputs) -> None:
        Block.start(self._user_id, self._ipu_id)

    def __repr__(self) -> str:
        return f"BeginBlock(user_id={self._user_id}, ipu_id={self._ipu_id})"


def BeginBlock(layer_to_call, user_id=None, ipu_id=None):
    """Begins a block whenever ``layer_to_call``, a module or function, is called."""
    if not isinstance(layer_to_call, torch.nn.Module):
        if not callable(layer_to_call):
            raise Error(f"expected a module or function, not {layer_to_call!r}")

        @functools.wraps(layer_to_call)
        def function(*args, **kwargs):
            Block.start(user_id, ipu_id)
            return layer_to_call(*args, **kwargs)

        return function
    if any(isinstance(hook, _BlockHook) for hook in layer_to_call._forward_pre_hooks.values()):
        raise Error("module has already been assigned to a block")
    layer_to_call.register_forward_pre_hook(_BlockHook(user_id, ipu_id))
    return layer_to_call


def removeBlocks(module: torch.nn.Module) -> None:
    """Removes all :func:`BeginBlock` from a module and its submodules."""
    for part in module.modules():
        for name, hook in list(part._forward_pre_hooks.items()):
            if isinstance(hook, _BlockHook):
                del part._forward_pre_hooks[name]


def BlockFunction(user_id=None, ipu_id=None):
    """A decorator that makes the operations of a function a block."""

    def decorator(function):
        @functools.wraps(function)
        def wrapper(*args, **kwargs):
            with Block(user_id, ipu_id):
                return function(*args, **kwargs)

        return wrapper

    return decorator


def identity_loss(x: torch.Tensor, reduction: str) -> torch.Tensor:
    """Marks a tensor as the loss, reduced by ``mean``, ``sum`` or ``none``."""
    reductions = {"mean": torch.mean, "sum": torch.sum, "none": torch.clone}
    if reduction not in reductions:
        raise Error(f'the reduction is "mean", "sum" or "none", not {reduction!r}')
    if _trace.current is None:
        return reductions[reduction](x)
    with _trace.marked(loss=True):
        return reductions[reduction](x)


def recomputationCheckpoint(*tensors):
    """Keeps tensors for the backward pass instead of computing them again."""
    if len(tensors) == 1 and isinstance(tensors[0], (tuple, list)):
        kept = recomputationCheckpoint(*tensors[0])
        return type(tensors[0])(kept if isinstance(kept, tuple) else (kept,))
    for tensor in tensors:
        if not isinstance(tensor, torch.Tensor):
            raise ValueError("All inputs must be tensors")
    out = tuple(_trace.identity(tensor, checkpoint=True) for tensor in tensors)
    return out[0] if len(out) == 1 else out


def serializedMatMul(lhs, rhs, mode, factor: int = 0, keep_precision: bool = False):
    """A product that is computed in ``factor`` parts along one dimension."""
    if not isinstance(mode, enums.MatMulSerializationMode):
        raise Error(f"a mode is a poptorch.MatMulSerializationMode, not {mode!r}")
    if _trace.current is None:
        return torch.matmul(lhs, rhs)
    with _trace.marked(serialize=(mode.value, int(factor))):
        return torch.matmul(lhs, rhs)


def set_available_memory(tensor: torch.Tensor, available_memory_proportion: float):
    """Share of a tile that temporaries of the operation that computes ``tensor`` may fill."""
    if not isinstance(tensor, torch.Tensor):
        raise Error(f"expected a tensor, not {type(tensor).__name__}")
    if not 0 <= available_memory_proportion <= 1:
        raise Error(f"a proportion is from 0 to 1, not {available_memory_proportion}")
    return _trace.identity(tensor, available_memory=float(available_memory_proportion))


def set_overlap_for_input(input_tensors, mode):
    """Copies inputs from the host beside compute."""
    return _overlap(input_tensors, mode)


def set_overlap_for_output(output_tensors, mode):
    """Copies outputs to the host beside compute."""
    return _overlap(output_tensors, mode)


def _overlap(tensors, mode):
    if not isinstance(mode, enums.OverlapMode):
        raise Error(f"a mode is a poptorch.OverlapMode, not {mode!r}")
    if _trace.current is not None and mode != enums.OverlapMode.NoOverlap:
        _trace.current.overlap = mode
    return tensors


def nop(tensor: torch.Tensor) -> torch.Tensor:
    """The tensor, through an operation that does nothing."""
    return _trace.identity(tensor)


def ipu_print_tensor(tensor, title: str = "", *_, **__):
    """Prints a tensor while the model runs on the CPU."""
    if _trace.current is None:
        print(f"{title or 'tensor'}: {tensor}")
    return tensor


def for_loop(count: int, body, inputs: list) -> list:
    """Runs ``body`` on its own results ``count`` times; exported as ``count`` copies."""
    if not isinstance(inputs, list):
        raise ValueError("poptorch.for_loop expects a list of tensors")
    values = [tensor.clone() for tensor in inputs]
    for _ in range(count):
        out = body(*values)
        values = list(out) if isinstance(out, (list, tuple)) else [out]
    return values


def cond(condition, then_body, then_inps: list, else_body, else_inps: list) -> list:
    """Runs one of two bodies; both are exported, because a program for IPUs has both."""
    if _trace.current is None:
        out = then_body(*then_inps) if bool(condition) else else_body(*else_inps)
        return list(out) if isinstance(out, (list, tuple)) else [out]
    _trace.current.missing.setdefault("poptorch.cond (both branches run)")
    branches = [then_body(*then_inps), else_body(*else_inps)]
    then, other = (list(b) if isinstance(b, (list, tuple)) else [b] for b in branches)
    return [torch.where(condition, a, b) for a, b in zip(then, other)]


def dynamic_slice(tensor, dim: int, start, size: int, step: int):
    """A slice whose start is a tensor."""
    index = torch.arange(0, size, step, device=tensor.device) + start
    return torch.index_select(tensor, dim, index.to(torch.long))


def dynamic_update(input, src, dim: int, start, size: int):
    """Writes ``src`` into a slice of ``input`` whose start is a tensor."""
    index = (torch.arange(size, device=input.device) + start).to(torch.long)
    return torch.index_copy(input, dim, index, src)


def custom_op(inputs, name: str, domain: str, domain_version: int, example_outputs, attributes=None):
    """A custom operator. Its cost is estimated as a pass over its operands, because its code is
    unknown; on the CPU its results are ``example_outputs``."""
    if _trace.current is not None:
        _trace.current.missing.setdefault(f"custom_op {domain}.{name} (cost unknown)")
        return list(
            torch.onnx.ops.symbolic_multi_out(
                f"{domain}::{name}",
                list(inputs),
                dict(attributes or {}),
                dtypes=[example.dtype for example in example_outputs],
                shapes=[example.shape for example in example_outputs],
                version=domain_version,
            )
        )
    return [example.clone() for example in example_outputs]


class CPU:
    """Runs a function on the host in the middle of a program: the round trip is not modelled."""

    def __init__(self, layer_to_call, ID: str) -> None:
        self._layer = layer_to_call
        self._id = ID

    def __call__(self, *args, **kwargs):
        if _trace.current is not None:
            _trace.current.missing.setdefault(f"poptorch.CPU {self._id} (runs on the IPU)")
        return self._layer(*args, **kwargs)


class MultiConv:
    """Convolutions that could run side by side; the simulator runs them sequentially."""

    def __getattr__(self, name: str):
        if name.startswith("__"):
            raise AttributeError(name)
        return lambda *_, **__: self

    def __enter__(self):
        if _trace.current is not None:
            _trace.current.missing.setdefault("MultiConv (convolutions run one by one)")
        return self

    def __exit__(self, *_) -> None:
        return None


class NameScope:
    """A name for the operations of its scope; modules name them in exports."""

    def __init__(self, name: str) -> None:
        self.name = name

    def __enter__(self):
        _log.debug(f"name scope {self.name}")
        return self

    def __exit__(self, *_) -> None:
        return None


class TorchOperations:
    """``torch.ops.poptorch``: operators of PopTorch that scripts call without its functions."""

    @staticmethod
    def push_name_scope(name: str) -> None:
        """Begins a name scope of operations; in exports, modules name operations."""
        _log.debug(f"name scope {name}")

    @staticmethod
    def pop_name_scope() -> None:
        """Ends a name scope of operations."""

    @staticmethod
    def internal_cast(tensor: torch.Tensor, dtype: str) -> torch.Tensor:
        """``tensor`` in another type, by PopART's name."""
        types = {"FLOAT": torch.float32, "FLOAT16": torch.float16, "INT32": torch.int32}
        if dtype not in types:
            raise Error(f"internal_cast: types are {', '.join(types)}, not {dtype!r}")
        return tensor.to(types[dtype])

    def __getattr__(self, name: str):
        raise AttributeError(f"torch.ops.poptorch.{name} is not modelled")
