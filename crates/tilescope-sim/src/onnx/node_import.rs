//! A node of the file while it is built, with its operands, attributes and results.

use super::importer::Importer;
use crate::graph::GraphError;
use crate::operators::{
    BinaryOp, CastOp, ImportProblem, OperationSink, Operator, RepeatOp, ReshapeOp, ScalarOp,
    ScaleOp, TransposeOp,
};
use crate::popops::elementwise::BinaryOpType;
use crate::shape::{DType, TensorId, TensorInfo, TensorRole};
use tilescope_onnx::{OnnxError, OnnxNode, OnnxValue, ValueId, ValueSource};

/// A node and the graph that it is built into.
pub(super) struct NodeImport<'i, 'a> {
    pub importer: &'i mut Importer<'a>,
    pub node: &'a OnnxNode,
}

impl<'a> NodeImport<'_, 'a> {
    /// The error for a node that cannot be built.
    pub(super) fn refuse(&self, problem: ImportProblem) -> GraphError {
        GraphError::new(format!("{} ({})", self.node.path(), self.node.op), problem)
    }

    /// The value of an input, unless it is omitted or has no elements.
    pub(super) fn value(&self, input: usize) -> Option<ValueId> {
        let value = self.node.inputs.get(input).copied().flatten();
        value.filter(|value| self.importer.value(*value).elements() > 0)
    }

    /// The value of a required input.
    pub(super) fn required(&self, input: usize) -> Result<ValueId, GraphError> {
        self.value(input).ok_or_else(|| self.refuse(ImportProblem::MissingInput(input)))
    }

    /// The description of an input in the file.
    pub(super) fn of_file(&self, input: usize) -> Result<&'a OnnxValue, GraphError> {
        Ok(self.importer.value(self.required(input)?))
    }

    /// The tensor of a required input.
    pub(super) fn input(&mut self, input: usize) -> Result<TensorId, GraphError> {
        let value = self.required(input)?;
        self.importer.tensor(value)
    }

    /// The tensor of an optional input.
    pub(super) fn optional(&mut self, input: usize) -> Result<Option<TensorId>, GraphError> {
        self.value(input).map(|value| self.importer.tensor(value)).transpose()
    }

    /// True if an input is a weight that nothing else reads, so that it may have the layout that
    /// this node needs.
    pub(super) fn is_own_weight(&self, input: usize) -> bool {
        let Some(value) = self.value(input) else { return false };
        let made = self.importer.tensors[value.index()].is_some();
        let source = self.importer.value(value).source;
        source == ValueSource::Initializer && !made && self.importer.readers[value.index()] == 1
    }

    /// True if training needs the gradient of an input.
    pub(super) fn is_trained(&self, input: usize) -> bool {
        self.value(input)
            .is_some_and(|value| self.importer.trained.get(value.index()) == Some(&true))
    }

    /// The type of a tensor.
    pub(super) fn ty(&self, tensor: TensorId) -> TensorInfo {
        self.importer.ty(tensor).clone()
    }

    /// The shape of a tensor.
    pub(super) fn shape(&self, tensor: TensorId) -> Vec<u64> {
        self.importer.ty(tensor).shape.clone()
    }

    /// The shape of an output.
    pub(super) fn output_dims(&self, output: usize) -> Result<Vec<u64>, GraphError> {
        let value = self.node.outputs.get(output).copied().flatten();
        let value = value.ok_or_else(|| self.refuse(ImportProblem::MissingOutput(output)))?;
        Ok(self.importer.value(value).dims.clone())
    }

    /// The element type of an output on the device.
    pub(super) fn output_type(&self, output: usize) -> Option<DType> {
        let value = self.node.outputs.get(output).copied().flatten()?;
        Some(self.importer.dtype(self.importer.value(value).element))
    }

    /// True if anything reads an output.
    pub(super) fn has_output(&self, output: usize) -> bool {
        let value = self.node.outputs.get(output).copied().flatten();
        value.is_some_and(|value| self.importer.readers[value.index()] > 0)
    }

    /// The known integers of an input.
    pub(super) fn known_ints(&self, input: usize) -> Option<Vec<i64>> {
        let value = self.node.inputs.get(input).copied().flatten()?;
        self.importer.value(value).content.as_ref()?.ints()
    }

    /// The known single element of an input.
    pub(super) fn known_scalar(&self, input: usize) -> Option<f64> {
        let value = self.node.inputs.get(input).copied().flatten()?;
        self.importer.value(value).content.as_ref()?.scalar()
    }

    fn attribute<T>(&self, read: Result<T, OnnxError>) -> Result<T, GraphError> {
        read.map_err(|error| self.refuse(error.into()))
    }

    /// An integer attribute, or its default.
    pub(super) fn int(&self, name: &str, default: i64) -> Result<i64, GraphError> {
        Ok(self.attribute(self.node.attributes.int(name))?.unwrap_or(default))
    }

    /// A number attribute, or its default.
    pub(super) fn float(&self, name: &str, default: f64) -> Result<f64, GraphError> {
        Ok(self.attribute(self.node.attributes.float(name))?.unwrap_or(default))
    }

    /// A list of integers, if the attribute is present.
    pub(super) fn ints(&self, name: &str) -> Result<Option<Vec<i64>>, GraphError> {
        Ok(self.attribute(self.node.attributes.ints(name))?.map(<[i64]>::to_vec))
    }

    /// Sizes along the dimensions of a field, or `default` for each.
    pub(super) fn sizes(
        &self,
        name: &str,
        count: usize,
        default: u64,
    ) -> Result<Vec<u64>, GraphError> {
        let Some(values) = self.ints(name)? else { return Ok(vec![default; count]) };
        let sizes: Option<Vec<u64>> = values.iter().map(|size| u64::try_from(*size).ok()).collect();
        let sizes = sizes.filter(|sizes| sizes.len() == count);
        let name = name.to_owned();
        sizes.ok_or_else(|| self.refuse(ImportProblem::Sizes { name, values, count }))
    }

    /// A count attribute, 1 by default.
    pub(super) fn count(&self, name: &str) -> Result<u64, GraphError> {
        let value = self.int(name, 1)?;
        let name = name.to_owned();
        u64::try_from(value).map_err(|_| self.refuse(ImportProblem::Count { name, value }))
    }

    /// A text attribute, or its default.
    pub(super) fn text(&self, name: &str, default: &str) -> Result<String, GraphError> {
        Ok(self.attribute(self.node.attributes.text(name))?.unwrap_or(default).to_string())
    }

    /// Integers that are an attribute in earlier opsets and an input in later ones.
    pub(super) fn ints_or_input(
        &self,
        name: &str,
        input: usize,
    ) -> Result<Option<Vec<i64>>, GraphError> {
        if let Some(ints) = self.ints(name)? {
            return Ok(Some(ints));
        }
        match self.value(input) {
            None => Ok(None),
            Some(_) => {
                let known = self.known_ints(input).map(Some);
                known.ok_or_else(|| self.refuse(ImportProblem::NotConstant(name.to_owned())))
            }
        }
    }

    /// Converts an axis to one counted from the front.
    pub(super) fn axis(&self, axis: i64, rank: usize) -> Result<usize, GraphError> {
        let size = i64::try_from(rank).unwrap_or(i64::MAX);
        let from_front = if axis < 0 { axis + size } else { axis };
        let found = usize::try_from(from_front).ok().filter(|axis| *axis < rank);
        found.ok_or_else(|| self.refuse(ImportProblem::NoAxis { axis, rank }))
    }

    /// Applies an operator with one result. A non-empty `part` is appended to the node's name.
    pub(super) fn apply(
        &mut self,
        part: &str,
        operator: impl Operator + 'static,
        inputs: &[TensorId],
    ) -> Result<TensorId, GraphError> {
        Ok(self.apply_all(part, operator, inputs)?[0])
    }

    /// Applies an operator with several results.
    pub(super) fn apply_all(
        &mut self,
        part: &str,
        operator: impl Operator + 'static,
        inputs: &[TensorId],
    ) -> Result<Vec<TensorId>, GraphError> {
        let name = self.name(part);
        self.importer.graph.apply_all(&name, operator, inputs)
    }

    /// Adds several operators under one name.
    pub(super) fn compose(
        &mut self,
        part: &str,
        build: impl FnOnce(&mut dyn OperationSink, &str) -> Result<TensorId, GraphError>,
    ) -> Result<TensorId, GraphError> {
        let name = self.name(part);
        build(&mut self.importer.graph, &name)
    }

    /// A unique name of the node. A non-empty `part` is appended to it.
    fn name(&mut self, part: &str) -> String {
        let node = self.node.path();
        match part {
            "" => self.importer.unique(&node),
            part => self.importer.unique(&format!("{node}/{part}")),
        }
    }

    /// Reshapes the elements, if the shape differs.
    pub(super) fn reshape(
        &mut self,
        part: &str,
        x: TensorId,
        shape: &[u64],
    ) -> Result<TensorId, GraphError> {
        if self.importer.ty(x).shape == shape {
            return Ok(x);
        }
        self.apply(part, ReshapeOp { shape: shape.to_vec() }, &[x])
    }

    /// Reorders the axes.
    pub(super) fn transpose(
        &mut self,
        part: &str,
        x: TensorId,
        permutation: Vec<usize>,
    ) -> Result<TensorId, GraphError> {
        if permutation.iter().copied().eq(0..permutation.len()) {
            return Ok(x);
        }
        self.apply(part, TransposeOp { permutation }, &[x])
    }

    /// Casts the elements to another type, if it differs.
    pub(super) fn cast(
        &mut self,
        part: &str,
        x: TensorId,
        to: DType,
    ) -> Result<TensorId, GraphError> {
        if self.importer.ty(x).dtype == to { Ok(x) } else { self.apply(part, CastOp { to }, &[x]) }
    }

    /// Repeats a tensor along dimensions of size 1 and missing outer ones.
    pub(super) fn expand(
        &mut self,
        part: &str,
        x: TensorId,
        shape: &[u64],
    ) -> Result<TensorId, GraphError> {
        let ty = self.ty(x);
        if ty.shape == shape {
            return Ok(x);
        }
        let missing = shape.len().saturating_sub(ty.shape.len());
        let mut axes = Vec::new();
        let mut kept = Vec::new();
        for (axis, size) in shape.iter().enumerate() {
            if axis < missing || ty.shape[axis - missing] != *size {
                axes.push(axis);
            } else {
                kept.push(*size);
            }
        }
        let x = self.reshape(&format!("{part}/values"), x, &kept)?;
        if axes.is_empty() {
            return Ok(x);
        }
        self.apply(part, RepeatOp { ty: TensorInfo::new(shape, ty.dtype), axes }, &[x])
    }

    /// Applies an element-wise operation to two operands, which numpy's rules bring to one shape.
    pub(super) fn binary(
        &mut self,
        part: &str,
        operation: BinaryOpType,
        operands: [TensorId; 2],
    ) -> Result<TensorId, GraphError> {
        self.apply(part, BinaryOp(operation), &operands)
    }

    /// Applies an element-wise operation with a constant as the second operand.
    pub(super) fn with_scalar(
        &mut self,
        part: &str,
        operation: BinaryOpType,
        x: TensorId,
        value: f64,
    ) -> Result<TensorId, GraphError> {
        self.apply(part, ScalarOp::new(operation, value), &[x])
    }

    /// Adds a constant of the program that the file need not name.
    pub(super) fn resident(&mut self, part: &str, ty: TensorInfo) -> TensorId {
        let name = self.name(part);
        self.importer.graph.tensor(&name, ty, TensorRole::Resident)
    }

    /// Multiplies a tensor by a constant.
    pub(super) fn scale(
        &mut self,
        part: &str,
        x: TensorId,
        by: f64,
    ) -> Result<TensorId, GraphError> {
        if by == 1.0 { Ok(x) } else { self.apply(part, ScaleOp::by(by), &[x]) }
    }

    /// Names a loss as the first output. It keeps the shape that the loss operation makes and that
    /// training starts from: one element, regardless of its shape in the file.
    pub(super) fn set_loss(&mut self, loss: TensorId) {
        if let Some(value) = self.node.outputs.first().copied().flatten() {
            let name = &self.importer.value(value).name;
            self.importer.name_result(loss, name);
            self.importer.tensors[value.index()] = Some(loss);
        }
    }

    /// Names `tensor` as the output at this position.
    pub(super) fn set(&mut self, output: usize, tensor: TensorId) -> Result<(), GraphError> {
        let Some(value) = self.node.outputs.get(output).copied().flatten() else { return Ok(()) };
        let of_file = self.importer.value(value);
        let tensor = self.reshape("shape", tensor, &of_file.dims)?;
        let tensor = self.cast("type", tensor, self.importer.dtype(of_file.element))?;
        self.importer.name_result(tensor, &of_file.name);
        self.importer.tensors[value.index()] = Some(tensor);
        Ok(())
    }
}
