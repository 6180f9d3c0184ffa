//! max(x, 0).

use super::{Operator, Reuse, expect_operands, expect_same};
use crate::sim::graph::{Backward, GraphError, Node, TensorId, TensorType};
use crate::sim::lower::elementwise::NonLinearity;
use crate::sim::lower::{LowerError, Lowering, work::Work};

/// The rectifier.
#[derive(Clone, Copy, Debug)]
pub struct Relu;

impl Operator for Relu {
    fn kind(&self) -> &'static str {
        "relu"
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
        let output = backward.node.outputs[0];
        Ok(vec![Some(backward.apply("grad", ReluGradient, &[output, gradient])?)])
    }

    fn lower(&self, lowering: &mut Lowering, node: &Node) -> Result<Work, LowerError> {
        let dtype = lowering.ty(node.inputs[0]).dtype;
        let layout = lowering.layout_or_linear(node.inputs[0]);
        let mut work = Work::default();
        work.push(NonLinearity::Relu.phase(dtype, &layout.elements));
        lowering.lay_out(node.outputs[0], layout);
        Ok(work)
    }

    fn reuses(&self) -> Reuse {
        Reuse::InPlace(0)
    }
}

/// Gradient of the rectifier from its output.
#[derive(Clone, Copy, Debug)]
struct ReluGradient;

impl Operator for ReluGradient {
    fn kind(&self) -> &'static str {
        "relu_grad"
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
        work.push(NonLinearity::Relu.backward_phase(dtype, &layout.elements));
        lowering.lay_out(node.outputs[0], layout);
        Ok(work)
    }
}
