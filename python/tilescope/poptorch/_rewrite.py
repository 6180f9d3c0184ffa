"""Rewrites sequences of tensors in models exported by torch, which importers do not support."""

import math


def split_without_sequences(model) -> None:
    """Replaces ``SplitToSequence`` and the ``SequenceAt`` after it, which torch exports for
    ``split``, ``chunk`` and similar functions, by ``Split``."""
    for node in list(model.graph):
        if node.op_type == "SplitToSequence" and node.domain == "":
            _rewrite(model.graph, node)


def _rewrite(graph, node) -> None:
    import onnx_ir as ir

    source, parts = node.inputs[0], [use.node for use in node.outputs[0].uses()]
    indices = [_constant(part.inputs[1]) for part in parts if part.op_type == "SequenceAt"]
    sizes = _sizes(node)
    if sizes is None or len(indices) != len(parts) or None in indices:
        return
    axis = node.attributes["axis"].as_int() if "axis" in node.attributes else 0
    name = node.outputs[0].name
    lengths = ir.Value(name=f"{name}_sizes", const_value=ir.tensor(sizes, ir.DataType.INT64))
    lengths.shape, lengths.type = ir.Shape([len(sizes)]), ir.TensorType(ir.DataType.INT64)
    graph.register_initializer(lengths)
    split = ir.Node(
        "",
        "Split",
        inputs=[source, lengths],
        attributes=[ir.AttrInt64("axis", axis)],
        num_outputs=len(sizes),
        name=node.name,
    )
    # Marks of blocks and stages are looked up by the node of torch.
    split.meta.update(node.meta)
    split.metadata_props.update(node.metadata_props)
    graph.insert_before(node, split)
    for number, value in enumerate(split.outputs):
        value.name = f"{name}_part{number}"
        value.type = source.type
        shape = list(source.shape)
        shape[axis] = sizes[number]
        value.shape = ir.Shape(shape)
    for part, index in zip(parts, indices):
        _replace(graph, part.outputs[0], split.outputs[index])
        graph.remove(part, safe=True)
    graph.remove(node, safe=True)


def _replace(graph, old, new) -> None:
    for user, place in list(old.uses()):
        user.replace_input_with(place, new)
    for place, value in enumerate(graph.outputs):
        if value is old:
            new.name = old.name
            graph.outputs[place] = new


def _constant(value):
    """The constant integer or list of integers of a value; None if it is computed."""
    producer = value.producer() if value is not None else None
    tensor = value.const_value if value is not None else None
    if producer is not None and producer.op_type == "Constant" and "value" in producer.attributes:
        tensor = producer.attributes["value"].as_tensor()
    return None if tensor is None else tensor.numpy().tolist()


def _sizes(node):
    """Lengths of the parts; None if unknown."""
    shape = node.inputs[0].shape
    axis = node.attributes["axis"].as_int() if "axis" in node.attributes else 0
    if shape is None or not isinstance(shape[axis], int) or len(node.inputs) < 2:
        return None
    given = _constant(node.inputs[1])
    if isinstance(given, list):
        return given
    if not isinstance(given, int) or given < 1:
        return None
    count = math.ceil(shape[axis] / given)
    return [min(given, shape[axis] - given * part) for part in range(count)]
