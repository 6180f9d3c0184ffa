//! The view that an operator has of the graph while it is differentiated.

use super::{BinaryOp, CastOp, GraphError, GraphProblem, NodeOperands, Operator};
use crate::shape::{TensorId, TensorInfo};
use std::sync::Arc;

/// A graph that operations can be added to.
pub trait OperationSink {
    /// The type of a tensor of the graph.
    fn tensor_type(&self, tensor: TensorId) -> &TensorInfo;

    /// Adds a tensor with known values, which stays on the device with a linear layout.
    fn constant(&mut self, name: &str, ty: TensorInfo) -> TensorId;

    /// Applies an operator. Its outputs are named after the operation.
    ///
    /// # Errors
    /// Returns the operator's error for operands that do not fit, and an error for tensors that are
    /// too large.
    fn add(
        &mut self,
        name: &str,
        operator: Arc<dyn Operator>,
        inputs: &[TensorId],
    ) -> Result<Vec<TensorId>, GraphError>;
}

/// The view that an operator has while it is differentiated.
pub struct GradientBuilder<'a> {
    /// The forward node.
    pub node: NodeOperands<'a>,
    /// Gradients of its outputs. `None` for outputs that the loss does not depend on.
    pub output_gradients: &'a [Option<TensorId>],
    /// For each input, true if it depends on a parameter. Other gradients are not needed.
    pub(crate) wanted: &'a [bool],
    /// The graph that gradient operations are added to.
    pub(crate) graph: &'a mut dyn OperationSink,
}

impl GradientBuilder<'_> {
    /// The gradient of the only output.
    ///
    /// # Errors
    /// Returns an error if the loss does not depend on the node, which is a defect of the model.
    pub(crate) fn gradient(&self) -> Result<TensorId, GraphError> {
        let gradient = self.output_gradients.first().copied().flatten();
        gradient.ok_or_else(|| GraphError::new(self.node.name, GraphProblem::OutsideLoss))
    }

    /// The error of an operator of this kind that cannot be differentiated.
    pub(crate) fn no_gradient_error(&self, operator: &'static str) -> GraphError {
        let problem = GraphProblem::NoGradient { operator, of_file: false };
        GraphError::new(self.node.name, problem)
    }

    /// True if the gradient of this input is needed.
    pub(crate) fn needs_input_gradient(&self, input: usize) -> bool {
        self.wanted[input]
    }

    /// The type of a tensor of the graph.
    pub(crate) fn tensor_type(&self, tensor: TensorId) -> &TensorInfo {
        self.graph.tensor_type(tensor)
    }

    /// The type of an input.
    pub(crate) fn input_type(&self, input: usize) -> TensorInfo {
        self.graph.tensor_type(self.node.inputs[input]).clone()
    }

    /// Zeros with the shape of an output, which stay on the device.
    pub(crate) fn zeros(&mut self, part: &str, output: usize) -> TensorId {
        let ty = self.graph.tensor_type(self.node.outputs[output]).clone();
        self.graph.constant(&format!("{}/{part}", self.node.name), ty)
    }

    /// Applies a gradient operator. `part` is appended to the forward node's name.
    ///
    /// # Errors
    /// Returns the errors of [`OperationSink::add`].
    pub(crate) fn apply(
        &mut self,
        part: &str,
        operator: impl Operator + 'static,
        inputs: &[TensorId],
    ) -> Result<TensorId, GraphError> {
        Ok(self.apply_all(part, operator, inputs)?[0])
    }

    /// Adds a gradient that is zero wherever `mask` is false: the product with the mask as numbers,
    /// as in PopART (popart willow/src/popx/op/wherex.cpp, clipx.cpp).
    ///
    /// # Errors
    /// Returns the errors of [`OperationSink::add`].
    pub(crate) fn apply_mask(
        &mut self,
        part: &str,
        gradient: TensorId,
        mask: TensorId,
    ) -> Result<TensorId, GraphError> {
        let to = self.tensor_type(gradient).dtype;
        let numbers = self.apply(&format!("{part}/cast"), CastOp { to }, &[mask])?;
        self.apply(part, BinaryOp::MULTIPLY, &[gradient, numbers])
    }

    /// Applies a gradient operator with several outputs.
    ///
    /// # Errors
    /// Returns the errors of [`OperationSink::add`].
    pub(crate) fn apply_all(
        &mut self,
        part: &str,
        operator: impl Operator + 'static,
        inputs: &[TensorId],
    ) -> Result<Vec<TensorId>, GraphError> {
        self.graph.add(&format!("{}/{part}", self.node.name), Arc::new(operator), inputs)
    }
}
