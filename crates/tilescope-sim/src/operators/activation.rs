//! Activation functions that popnn has vertices for: ReLU, sigmoid, tanh, GELU.

use super::{
    GradientBuilder, GraphError, LoweredOperation, LoweringContext, LoweringError, NodeOperands,
    Operator, OutputAlias, RowWindow, ShapeError, expect_operands, expect_same, infer_elementwise,
};
use crate::popnn::NonLinearityType;
use crate::shape::{TensorId, TensorInfo};

/// An activation function of every element.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct ActivationOp(pub NonLinearityType);

impl ActivationOp {
    /// max(x, 0)
    pub(crate) const RELU: Self = Self(NonLinearityType::Relu);
    /// Gaussian error linear unit, by the hyperbolic tangent.
    pub(crate) const GELU: Self = Self(NonLinearityType::Gelu);
    pub(crate) const TANH: Self = Self(NonLinearityType::Tanh);
}

impl Operator for ActivationOp {
    fn kind(&self) -> &'static str {
        self.0.kind()
    }

    fn infer(&self, inputs: &[TensorInfo]) -> Result<Vec<TensorInfo>, ShapeError> {
        infer_elementwise(inputs)
    }

    fn flops(&self, _: &[TensorInfo], outputs: &[TensorInfo]) -> u64 {
        outputs[0].elements().0
    }

    fn differentiate(
        &self,
        backward: &mut GradientBuilder,
    ) -> Result<Vec<Option<TensorId>>, GraphError> {
        let gradient = backward.gradient()?;
        // popnn needs the input of GELU, the output of all others.
        let known = match self.0 {
            NonLinearityType::Gelu => backward.node.inputs[0],
            _ => backward.node.outputs[0],
        };
        let operator = ActivationGradOp(self.0);
        Ok(vec![Some(backward.apply("grad", operator, &[known, gradient])?)])
    }

    fn row_window(&self, _: &[TensorInfo]) -> Option<RowWindow> {
        Some(RowWindow::POINTWISE)
    }

    fn lower(
        &self,
        lowering: &mut LoweringContext,
        node: &NodeOperands,
    ) -> Result<LoweredOperation, LoweringError> {
        Ok(lowering.lower_elementwise(node, |dtype, elements| self.0.phase(dtype, elements)))
    }

    fn output_alias(&self) -> OutputAlias {
        OutputAlias::InPlace(0)
    }
}

/// Gradient of an activation function.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct ActivationGradOp(NonLinearityType);

impl Operator for ActivationGradOp {
    fn kind(&self) -> &'static str {
        self.0.gradient_kind()
    }

    fn infer(&self, inputs: &[TensorInfo]) -> Result<Vec<TensorInfo>, ShapeError> {
        expect_operands(inputs, 2)?;
        expect_same(&inputs[0], &inputs[1])?;
        Ok(vec![inputs[0].clone()])
    }

    fn flops(&self, _: &[TensorInfo], outputs: &[TensorInfo]) -> u64 {
        outputs[0].elements().0
    }

    fn lower(
        &self,
        lowering: &mut LoweringContext,
        node: &NodeOperands,
    ) -> Result<LoweredOperation, LoweringError> {
        let dtype = lowering.tensor_type(node.inputs[0]).dtype;
        let layout = lowering.layout_or_linear(node.inputs[0]);
        let mut work = lowering.relayout_tensor(node.inputs[1], &layout, "NonLinearityGrad");
        work.push(self.0.backward_phase(dtype, &layout.elements));
        lowering.set_layout(node.outputs[0], layout);
        Ok(work.into())
    }
}
