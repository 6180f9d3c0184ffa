//! Activation functions that popnn has vertices for: ReLU, sigmoid, tanh, GELU.

use super::{Operator, Reuse, expect_operands, expect_same};
use crate::graph::{Backward, GraphError, Node, TensorId, TensorType};
use crate::lower::elementwise::NonLinearity;
use crate::lower::{LowerError, Lowering, work::Work};

/// An activation function of every element.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Activation(pub NonLinearity);

impl Activation {
    /// max(x, 0)
    pub(crate) const RELU: Self = Self(NonLinearity::Relu);
    /// Gaussian error linear unit, by the hyperbolic tangent.
    pub(crate) const GELU: Self = Self(NonLinearity::Gelu);
    pub(crate) const TANH: Self = Self(NonLinearity::Tanh);
}

impl Operator for Activation {
    fn kind(&self) -> &'static str {
        self.0.kind()
    }

    fn infer(&self, inputs: &[TensorType]) -> Result<Vec<TensorType>, String> {
        expect_operands(inputs, 1)?;
        Ok(vec![inputs[0].clone()])
    }

    fn flops(&self, _: &[TensorType], outputs: &[TensorType]) -> u64 {
        outputs[0].elements()
    }

    fn differentiate(&self, backward: &mut Backward) -> Result<Vec<Option<TensorId>>, GraphError> {
        let gradient = backward.gradient()?;
        // popnn needs the input of GELU, the output of all others.
        let known = match self.0 {
            NonLinearity::Gelu => backward.node.inputs[0],
            _ => backward.node.outputs[0],
        };
        let operator = ActivationGradient(self.0);
        Ok(vec![Some(backward.apply("grad", operator, &[known, gradient])?)])
    }

    fn lower(&self, lowering: &mut Lowering, node: &Node) -> Result<Work, LowerError> {
        let dtype = lowering.ty(node.inputs[0]).dtype;
        let layout = lowering.layout_or_linear(node.inputs[0]);
        let mut work = Work::default();
        work.push(self.0.phase(dtype, &layout.elements));
        lowering.lay_out(node.outputs[0], layout);
        Ok(work)
    }

    fn reuses(&self) -> Reuse {
        Reuse::InPlace(0)
    }
}

/// Gradient of an activation function.
#[derive(Clone, Copy, Debug)]
struct ActivationGradient(NonLinearity);

impl Operator for ActivationGradient {
    fn kind(&self) -> &'static str {
        self.0.gradient_kind()
    }

    fn infer(&self, inputs: &[TensorType]) -> Result<Vec<TensorType>, String> {
        expect_operands(inputs, 2)?;
        expect_same(&inputs[0], &inputs[1])?;
        Ok(vec![inputs[0].clone()])
    }

    fn flops(&self, _: &[TensorType], outputs: &[TensorType]) -> u64 {
        outputs[0].elements()
    }

    fn lower(&self, lowering: &mut Lowering, node: &Node) -> Result<Work, LowerError> {
        let dtype = lowering.ty(node.inputs[0]).dtype;
        let layout = lowering.layout_or_linear(node.inputs[0]);
        let mut work = lowering.bring(node.inputs[1], &layout, "NonLinearityGrad");
        work.push(self.0.backward_phase(dtype, &layout.elements));
        lowering.lay_out(node.outputs[0], layout);
        Ok(work)
    }
}
