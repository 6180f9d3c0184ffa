//! Activation functions for which popnn has vertices: ReLU, sigmoid, tanh, GELU and Swish.

use super::{
    GradientBuilder, GraphError, LoweringContext, LoweringResult, NodeOperands, Operator,
    Pointwise, ShapeError, expect_operands, expect_same,
};
use crate::poplar::work::WorkPhase;
use crate::popnn::NonLinearityType;
use crate::shape::{DType, TensorId, TensorInfo};
use tilescope_report::units::{Elements, TileRuns};

/// An activation function of every element.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ActivationOp(pub(crate) NonLinearityType);

impl ActivationOp {
    /// The rectified linear unit, `max(x, 0)`.
    pub(crate) const RELU: Self = Self(NonLinearityType::Relu);
    /// The Gaussian error linear unit by the hyperbolic tangent.
    pub(crate) const GELU: Self = Self(NonLinearityType::Gelu);
    pub(crate) const TANH: Self = Self(NonLinearityType::Tanh);
    /// The sigmoid, `1 / (1 + e^-x)`.
    pub(crate) const SIGMOID: Self = Self(NonLinearityType::Sigmoid);
    /// The gradient of GELU by the error function. Its forward pass is an operation of popops.
    pub(crate) const GELU_ERF: Self = Self(NonLinearityType::GeluErf);
    /// The Swish function, `x / (1 + e^-x)`, also called SiLU.
    pub const SWISH: Self = Self(NonLinearityType::Swish);

    /// Adds the gradient of the operand `x`, from the result `y` and its gradient.
    pub(crate) fn gradient_of(
        self,
        backward: &mut GradientBuilder,
        [x, y]: [TensorId; 2],
        gradient: TensorId,
    ) -> Result<TensorId, GraphError> {
        // popnn needs the input of functions that are not injective, and the output of all others.
        let known = if self.0.gradient_needs_input() { x } else { y };
        backward.apply("grad", ActivationGradOp(self.0), &[known, gradient])
    }
}

impl Pointwise for ActivationOp {
    fn name(&self) -> &'static str {
        self.0.kind()
    }

    fn input_gradient(
        &self,
        backward: &mut GradientBuilder,
        dy: TensorId,
    ) -> Result<Option<TensorId>, GraphError> {
        let of = [backward.node.inputs[0], backward.node.outputs[0]];
        self.gradient_of(backward, of, dy).map(Some)
    }

    fn phase(&self, dtype: DType, elements: &TileRuns<Elements>) -> WorkPhase {
        self.0.phase(dtype, elements)
    }
}

/// The gradient of an activation function.
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

    fn lower(&self, lowering: &mut LoweringContext, node: &NodeOperands) -> LoweringResult {
        let dtype = lowering.tensor_type(node.inputs[0]).dtype;
        let layout = lowering.layout_or_linear(node.inputs[0]);
        let mut work = lowering.relayout_tensor(node.inputs[1], &layout, "NonLinearityGrad");
        work.push(self.0.backward_phase(dtype, &layout.elements));
        lowering.set_layout(node.outputs[0], layout);
        Ok(work.into())
    }
}
