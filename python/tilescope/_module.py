"""Modules of torch, exported for a simulation."""

from __future__ import annotations

from collections.abc import Mapping
from difflib import get_close_matches
from pathlib import Path
from typing import Any

import torch

from . import poptorch
from ._program import SimulationError
from ._simulate import Wishes
from .poptorch import _export, _simulation
from .poptorch._errors import NoLossError
from .poptorch._executor import first_dimension
from .poptorch._strategy import ExecutionStrategy


class _WithLoss(torch.nn.Module):
    """A model followed by a loss of its result and its last input."""

    def __init__(self, model: torch.nn.Module, loss: Any) -> None:
        super().__init__()
        self.model = model
        # A submodule, if it is a module: its weights belong to the model.
        self.loss = loss

    def forward(self, *inputs: Any) -> Any:
        result = self.model(*inputs[:-1])
        return result, self.loss(result, inputs[-1])


def exported(
    model: torch.nn.Module, inputs: Any, wishes: Wishes, directory: Path
) -> tuple[dict[str, Any], list[str]]:
    """Exports a module as `model.onnx`. Returns its spec, and the list of features that are not
    modelled."""
    arguments, keywords = _arguments(inputs)
    training = bool(wishes.loss is not None if wishes.training is None else wishes.training)
    own_loss = not isinstance(wishes.loss, str)
    if own_loss and wishes.loss is not None and not callable(wishes.loss):
        raise TypeError(f"a loss is a name or a function, not {type(wishes.loss).__name__}")
    prefix = ""
    if callable(wishes.loss):
        if len(arguments) < 2 or keywords:
            raise TypeError("a loss reads the last input: pass the inputs as a tuple, labels last")
        model, prefix = _WithLoss(model, wishes.loss), "model."
    strategy = _strategy(wishes)
    hooks, names = _begin_blocks(model, prefix, strategy)
    directory.mkdir(parents=True, exist_ok=True)
    try:
        result = _export.export(
            model, arguments, keywords, strategy, training and own_loss, directory
        )
    except NoLossError as error:
        raise SimulationError(
            "the model returns no loss: pass `loss`, a name or a function of its result and its last "
            "input, or a module whose result is a loss of torch.nn"
        ) from error
    except poptorch.Error as error:
        raise SimulationError(str(error)) from error
    finally:
        for hook in hooks:
            hook.remove()
    _check_blocks(strategy, result.blocks, names)
    keys: dict[str, Any] = {
        "model.onnx": str(result.path.resolve()),
        "model.batch_size": first_dimension(arguments, keywords),
    }
    if len({stage for stage, _ in result.blocks.values()}) > 1:
        keys["target.ipus"] = 1 + max(ipu for _, ipu in result.blocks.values())
    if result.loss_output is not None:
        keys.update({"model.loss": "identity", "model.loss_output": result.loss_output})
    keys.update(Wishes(**{**vars(wishes), "loss": None, "stages": None, "training": training}).keys())
    if not own_loss:
        keys["model.loss"] = wishes.loss
    if wishes.stages == "balanced":
        keys["options.auto_stage"] = "balanced"
    missing = [f"not modelled: {', '.join(result.missing)}"] if result.missing else []
    return _simulation.nested(keys), missing


def _arguments(inputs: Any) -> tuple[tuple[Any, ...], dict[str, Any]]:
    if isinstance(inputs, torch.Tensor):
        return (inputs,), {}
    if isinstance(inputs, Mapping):
        return (), dict(inputs)
    if isinstance(inputs, (tuple, list)):
        return tuple(inputs), {}
    raise TypeError(
        "a module needs the inputs of one micro-batch: a tensor, a tuple of them, or a dict of "
        f"keywords, not {type(inputs).__name__}"
    )


def _strategy(wishes: Wishes) -> ExecutionStrategy:
    """The stages in the form of PopTorch; without stages, the blocks of the model determine
    them."""
    if wishes.stages is None or wishes.stages == "balanced":
        return poptorch.PipelinedExecution(poptorch.AutoStage.AutoIncrement)
    stages = [poptorch.Stage(*blocks).ipu(ipu) for blocks, ipu in wishes.stage_list()]
    return poptorch.PipelinedExecution(*stages)


def _begin_blocks(
    model: torch.nn.Module, prefix: str, strategy: ExecutionStrategy
) -> tuple[list[Any], list[str]]:
    """Makes submodules that are stages begin their blocks. Returns the hooks and all names."""
    modules = {
        name.removeprefix(prefix): of for name, of in model.named_modules() if name not in ("", "model")
    }
    hooks = []
    for block in strategy.blocks():
        if block in modules:

            def begin(*_: Any, block: str = block) -> None:
                poptorch.Block.start(block)

            hooks.append(modules[block].register_forward_pre_hook(begin))
    return hooks, list(modules)


def _check_blocks(strategy: ExecutionStrategy, met: Mapping[str, Any], modules: list[str]) -> None:
    for block in strategy.blocks():
        if block not in met:
            near = get_close_matches(block, [*modules, *met], 1)
            hint = f"; did you mean {near[0]!r}?" if near else ""
            raise ValueError(f"the model runs no block {block!r}{hint}")
