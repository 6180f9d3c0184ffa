"""Exports a module to an ONNX file without weights, with PopART's attributes on its nodes."""

from __future__ import annotations

import dataclasses
import logging
import math
import pathlib
import re
import traceback
from collections.abc import Mapping

import torch
from torch.utils import _pytree as pytree

from . import _trace
from ._errors import Error, NoLossError
from ._rewrite import split_without_sequences

# Operations of torch that are losses.
_LOSSES = {
    "binary_cross_entropy",
    "binary_cross_entropy_with_logits",
    "cosine_embedding_loss",
    "cross_entropy_loss",
    "ctc_loss",
    "hinge_embedding_loss",
    "huber_loss",
    "kl_div",
    "l1_loss",
    "margin_ranking_loss",
    "mse_loss",
    "multi_margin_loss",
    "nll_loss",
    "nll_loss_nd",
    "nll_loss2d",
    "poisson_nll_loss",
    "smooth_l1_loss",
    "soft_margin_loss",
    "triplet_margin_loss",
}
# Losses that the importer finds in the file itself.
_ONNX_LOSSES = {"SoftmaxCrossEntropyLoss", "NegativeLogLikelihoodLoss"}
# Constants from which the importer may compute shapes; it never reads larger ones, the weights.
_WHOLE_NUMBERS = 1 << 16
_REAL_NUMBERS = 4


@dataclasses.dataclass
class Exported:
    """An exported model, and the record of its forward pass."""

    path: pathlib.Path
    blocks: dict
    loss_output: str | None
    loss_index: int | None
    outputs: list
    structure: object
    overlap: object
    missing: dict


def export(model, args, kwargs, strategy, training: bool, directory: pathlib.Path) -> Exported:
    """Exports one micro-batch of a model.

    Raises :class:`Error` with torch's reason if torch cannot export the model.
    """
    with _trace.exporting(strategy) as trace:
        hooks = [
            model.register_forward_pre_hook(trace.restart, prepend=True),
            model.register_forward_hook(_know_results),
        ]
        # Prints a message for each operator of torchvision if that is not installed.
        registry = logging.getLogger("torch.onnx._internal.exporter._registration")
        level = registry.level
        registry.setLevel(logging.ERROR)
        try:
            program = torch.export.export(model, args, kwargs, strict=False)
            onnx = torch.onnx.export(program, dynamo=True, optimize=False, verbose=False)
        except Error:
            raise
        except Exception as error:
            reason = _reason(error)
            if "data-dependent" in reason:
                reason += (
                    "\nA model for IPUs is a static graph: Python that looks at values of tensors, or "
                    "changes what is computed from call to call, cannot be in it."
                )
            raise Error(f"torch cannot export {type(model).__name__}: {reason}") from error
        finally:
            registry.setLevel(level)
            for hook in hooks:
                hook.remove()
    split_without_sequences(onnx.model)
    outputs = _output_nodes(program)
    blocks = _annotate(onnx.model, trace)
    loss_index = _loss_index(outputs) if training else None
    loss_output = None
    if loss_index is not None:
        value = onnx.model.graph.outputs[loss_index]
        producer = value.producer()
        if producer is None or producer.op_type not in _ONNX_LOSSES:
            loss_output = value.name
    path = directory / "model.onnx"
    _save_without_weights(onnx.model, path, set(program.graph_signature.parameters))
    values = [node.meta["val"] for node in outputs]
    return Exported(
        path,
        blocks,
        loss_output,
        loss_index,
        values,
        program.call_spec.out_spec,
        trace.overlap,
        trace.missing,
    )


def _know_results(_, __, results) -> None:
    """Registers result types that are tables or dataclasses with torch, such as ``ModelOutput`` of
    transformers."""
    kind = type(results)
    is_table = isinstance(results, Mapping) or dataclasses.is_dataclass(results)
    if not is_table or kind in pytree.SUPPORTED_NODES:
        return

    def flatten(value):
        table = value if isinstance(value, Mapping) else vars(value)
        given = {key: item for key, item in table.items() if item is not None}
        return list(given.values()), list(given)

    def unflatten(values, keys):
        return kind(**dict(zip(keys, values)))

    name = f"{kind.__module__}.{kind.__qualname__}"
    pytree.register_pytree_node(kind, flatten, unflatten, serialized_type_name=name)


def _reason(error: BaseException) -> str:
    """The first line of the cause of an error, and the line of the model."""
    while error.__cause__ is not None:
        error = error.__cause__
    text = str(error).strip()
    line = next(iter(text.splitlines()), type(error).__name__)
    # For an exported operation, torch adds the line it came from.
    places = re.findall(r'File "([^"]+)", line (\d+), in', text)
    places += [(frame.filename, frame.lineno) for frame in traceback.extract_tb(error.__traceback__)]
    inside = (str(pathlib.Path(torch.__file__).parent), str(pathlib.Path(__file__).parent))
    own = [place for place in places if not place[0].startswith((*inside, "<"))]
    return f"{line} ({own[-1][0]}:{own[-1][1]})" if own else line


def _output_nodes(program) -> list:
    """The nodes of the model's results, without updated buffers."""
    names = {
        spec.arg.name
        for spec in program.graph_signature.output_specs
        if spec.kind == torch.export.graph_signature.OutputKind.USER_OUTPUT
        and hasattr(spec.arg, "name")
    }
    leaves, _ = pytree.tree_flatten(next(n for n in program.graph.nodes if n.op == "output").args)
    return [leaf for leaf in leaves if getattr(leaf, "name", None) in names]


def _loss_index(outputs: list):
    """The index of the loss among the outputs: a marked one or that of a torch loss, otherwise the
    last scalar."""

    def is_loss(node) -> bool:
        if _trace.marks_of(node).get("loss"):
            return True
        name = getattr(node.target, "__name__", "").split(".")[0]
        return name in _LOSSES

    def is_number(node) -> bool:
        value = node.meta.get("val")
        return isinstance(value, torch.Tensor) and value.dim() == 0 and value.is_floating_point()

    for holds in (is_loss, is_number):
        found = [index for index, node in enumerate(outputs) if holds(node)]
        if found:
            return found[-1]
    raise NoLossError(
        "the model returns no loss: return the result of a loss of torch.nn, or mark one with "
        "poptorch.identity_loss(x, reduction)"
    )


def _annotate(model, trace) -> dict:
    """Writes blocks and marks as PopART's attributes. Returns the blocks: name to stage, IPU."""
    stages = {}
    nodes = list(model.graph)
    for node in nodes:
        marks = _trace.marks_of(node.meta.get("node"))
        if "block" in marks:
            stages.setdefault(_order(marks), None)
    rank = {order: index for index, order in enumerate(sorted(stages))}
    blocks = {}
    for node in nodes:
        marks = _trace.marks_of(node.meta.get("node"))
        _write_marks(node, marks, rank)
        if "block" in marks:
            blocks.setdefault(marks["block"], (rank[_order(marks)], marks["ipu"]))
    return blocks


def _order(marks: dict) -> tuple:
    """The sort key of stages: stages of one phase run side by side."""
    return (marks["phase"], marks["stage"] if marks["phase"] < 0 else 0)


def _write_marks(node, marks: dict, rank: dict) -> None:
    import onnx_ir as ir

    def put(target, name: str, value) -> None:
        kinds = {int: ir.AttributeType.INT, float: ir.AttributeType.FLOAT, str: ir.AttributeType.STRING}
        target.attributes[name] = ir.Attr(name, kinds[type(value)], value)

    if "block" in marks:
        node.metadata_props["tilescope.block"] = marks["block"]
        put(node, "__ipu_number", int(marks["ipu"]))
        if marks["phase"] >= 0:
            put(node, "__execution_phase", int(marks["phase"]))
        else:
            put(node, "__pipeline_stage", rank[_order(marks)])
    if marks.get("checkpoint"):
        put(node, "__recompute_output_in_backward_pass", 1)
    if "available_memory" in marks and node.inputs:
        producer = node.inputs[0].producer() if node.inputs[0] is not None else None
        if producer is not None:
            put(producer, "__available_memory", marks["available_memory"])
    if "serialize" in marks and node.op_type in ("MatMul", "Gemm"):
        mode, factor = marks["serialize"]
        put(node, "__serialize_matmul_mode", mode)
        put(node, "__serialize_matmul_factor", factor)


def _save_without_weights(model, path: pathlib.Path, parameters: set) -> None:
    """Writes the graph. Weights are names, types and shapes without a file, which also
    distinguishes scalar `parameters` from literals."""
    import onnx_ir as ir

    for value in model.graph.initializers.values():
        tensor = value.const_value
        if tensor is None:
            continue
        size = math.prod(tensor.shape.numpy()) if tensor.shape else 1
        limit = _WHOLE_NUMBERS if tensor.dtype.is_integer() or tensor.dtype == ir.DataType.BOOL else _REAL_NUMBERS
        if size > limit or (size == 1 and value.name in parameters):
            value.const_value = ir.ExternalTensor(
                "weights.bin", 0, tensor.nbytes, tensor.dtype, shape=tensor.shape, name=value.name
            )
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(ir.serde.serialize_model(model).SerializeToString())
