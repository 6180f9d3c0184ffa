"""PopART's builder of ONNX graphs."""

import contextlib

import numpy

from .._errors import Error

# Attributes of nodes by the method of the builder that sets them.
_MARKS = {
    "pipelineStage": "__pipeline_stage",
    "virtualGraph": "__ipu_number",
    "recomputeOutputInBackwardPass": "__recompute_output_in_backward_pass",
    "setAvailableMemoryProportion": "__available_memory",
}


class TensorInfo:
    """Type and shape of a tensor."""

    def __init__(self, dtype, shape) -> None:
        names = {"FLOAT": "float32", "DOUBLE": "float64"}
        if isinstance(dtype, str):
            dtype = names.get(dtype.upper(), dtype.lower())
        self.dtype, self.dims = numpy.dtype(dtype), list(shape)

    def shape(self) -> list:
        """The shape."""
        return self.dims


class Builder:
    """Builds a graph node by node; names of tensors are strings."""

    def __init__(self, opsets=None) -> None:
        import onnx

        self._onnx = onnx.helper
        # The first version with losses of ONNX; attributes are those of PopART's version 11.
        self._opset = 12
        self._nodes, self._inputs, self._outputs, self._weights = [], [], [], []
        self._domains = {"": self._opset}
        self._marks, self._scope, self._count = {}, [], 0
        self.aiOnnx = self.aiOnnxOpset10 = self.aiOnnxOpset11 = _Onnx(self)
        self.aiGraphcore = self.aiGraphcoreOpset1 = _Graphcore(self)

    # Tensors.

    def addInputTensor(self, info, shape=None, debugContext=None) -> str:
        """Samples: a `TensorInfo`, or type and shape, and a name."""
        if not isinstance(info, TensorInfo):
            info, shape = TensorInfo(info, shape), None
        name = debugContext or shape or self._name("input")
        kind = self._onnx.np_dtype_to_tensor_dtype(info.dtype)
        self._inputs.append(self._onnx.make_tensor_value_info(name, kind, info.dims))
        return name

    def addInitializedInputTensor(self, value, debugContext=None) -> str:
        """A weight."""
        import onnx

        name = debugContext or self._name("weight")
        self._weights.append(onnx.numpy_helper.from_array(numpy.asarray(value), name))
        return name

    def addOutputTensor(self, tensor: str) -> None:
        """A result of the graph."""
        self._outputs.append(tensor)

    # Nodes.

    def customOp(self, opName, opVersion, domain, inputs, attributes=None, numOutputs=1, name=None) -> list:
        """Adds a custom operator, whose cost is unknown."""
        self._domains[domain] = opVersion
        return self.node(opName, inputs, attributes or {}, domain, numOutputs)

    def node(self, kind: str, inputs, attributes: dict, domain: str = "", outputs: int = 1) -> list:
        """Adds a node. Returns the names of its results."""
        name = self._name(kind)
        names = [name if number == 0 else f"{name}:{number}" for number in range(outputs)]
        node = self._onnx.make_node(kind, list(inputs), names, name=name, domain=domain, **attributes)
        for mark, value in self._marks.items():
            node.attribute.append(self._onnx.make_attribute(mark, value))
        self._nodes.append(node)
        return names

    def _name(self, kind: str) -> str:
        self._count += 1
        return "/".join([*self._scope, f"{kind}_{self._count}"])

    # Marks.

    @contextlib.contextmanager
    def nameScope(self, name: str):
        """A name scope for the nodes of its body."""
        self._scope.append(name)
        try:
            yield
        finally:
            self._scope.pop()

    def __getattr__(self, name: str):
        if name not in _MARKS:
            raise AttributeError(f"popart.Builder.{name} is not modelled")
        return lambda *arguments: self._mark(_MARKS[name], *arguments)

    def _mark(self, mark: str, *arguments):
        """Marks the node of a tensor, or of several; without one, the nodes of a scope."""
        if len(arguments) == 1:
            return self._scope_of(mark, arguments[0])
        tensors, value = arguments
        tensors = {tensors} if isinstance(tensors, str) else set(tensors)
        found = [node for node in self._nodes if tensors & set(node.output)]
        if not found:
            raise Error(f"no node of the builder computes {', '.join(sorted(tensors))}")
        for node in found:
            node.attribute.append(self._onnx.make_attribute(mark, value))
        return None

    @contextlib.contextmanager
    def _scope_of(self, mark: str, value):
        before = dict(self._marks)
        self._marks[mark] = value
        try:
            yield
        finally:
            self._marks = before

    # The file.

    def getModelProto(self) -> bytes:
        """The graph as an ONNX file."""
        import onnx

        for node in self._nodes:
            _place(node, self._onnx)
        graph = self._onnx.make_graph(self._nodes, "popart", self._inputs, [], self._weights)
        opsets = [self._onnx.make_opsetid(domain, version) for domain, version in self._domains.items()]
        model = self._onnx.make_model(graph, opset_imports=opsets)
        inferred = onnx.shape_inference.infer_shapes(model)
        known = {value.name: value for value in inferred.graph.value_info}
        for name in self._outputs:
            # Shapes after unknown operators are unknown.
            model.graph.output.append(known.get(name) or self._onnx.make_empty_tensor_value_info(name))
        return model.SerializeToString()


def _place(node, helper) -> None:
    """A stage without an IPU is on the IPU of its number, as `VirtualGraphMode.Auto` has it."""
    marks = {attribute.name: attribute.i for attribute in node.attribute}
    if "__pipeline_stage" in marks and "__ipu_number" not in marks:
        node.attribute.append(helper.make_attribute("__ipu_number", marks["__pipeline_stage"]))


class _Onnx:
    """Operators of ONNX with PopART's names: `matmul`, `averagepool`."""

    def __init__(self, builder: Builder) -> None:
        self._builder = builder

    def constant(self, value, debugContext=None) -> str:
        """A constant."""
        import onnx

        tensor = onnx.numpy_helper.from_array(numpy.asarray(value))
        return self._builder.node("Constant", [], {"value": tensor})[0]

    def __getattr__(self, name: str):
        import onnx

        schemas = {
            schema.name.lower(): schema
            for schema in onnx.defs.get_all_schemas()
            if schema.domain == ""
        }
        if name not in schemas:
            raise AttributeError(f"ONNX has no operator {name!r}")
        schema = schemas[name]

        def operator(inputs, *others, num_outputs=None, debugContext=None, **attributes):
            if others:
                raise Error(f"{name}: write attributes by name, as in {name}([x], axis=1)")
            count = num_outputs or schema.min_output
            names = self._builder.node(schema.name, inputs, attributes, outputs=count)
            return names[0] if count == 1 else names

        return operator


class _Graphcore:
    """PopART's own losses and functions, built from ONNX operators."""

    def __init__(self, builder: Builder) -> None:
        self._builder = builder

    def identityloss(self, inputs, reduction=1, debugContext=None) -> str:
        """The loss itself, reduced: 0 adds up, 1 takes the mean, 2 does nothing."""
        kinds = ("ReduceSum", "ReduceMean", "Identity")
        attributes = {} if int(reduction) == 2 else {"keepdims": 0}
        return self._builder.node(kinds[int(reduction)], inputs, attributes)[0]

    def l1loss(self, inputs, scale, reduction=1, debugContext=None) -> str:
        """Scaled absolute values, reduced."""
        builder = self._builder
        (absolute,) = builder.node("Abs", inputs, {})
        factor = builder.aiOnnx.constant(numpy.array(scale, numpy.float32))
        return self.identityloss(builder.node("Mul", [absolute, factor], {}), reduction)

    def nllloss(self, inputs, reduction=1, ignoreIndex=None, debugContext=None) -> str:
        """Negative logarithms of the probabilities of labels."""
        builder = self._builder
        probabilities, labels = inputs
        (logarithms,) = builder.node("Log", [probabilities], {})
        words = ("sum", "mean", "none")
        attributes = {"reduction": words[int(reduction)]}
        if ignoreIndex is not None:
            attributes["ignore_index"] = ignoreIndex
        return builder.node("NegativeLogLikelihoodLoss", [logarithms, labels], attributes)[0]

    def __getattr__(self, name: str):
        raise AttributeError(f"popart.Builder.aiGraphcore.{name} is not modelled")
