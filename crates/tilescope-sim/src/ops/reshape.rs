//! Another shape for the same elements: a view, no work.

use super::{Operator, Reuse, expect_operands};
use crate::graph::{Backward, GraphError, Node, TensorId, TensorType};
use crate::lower::{LowerError, Lowering, work::Work};

/// A tensor of the given shape with the elements of the operand, in order.
#[derive(Clone, Debug)]
pub struct Reshape {
    pub shape: Vec<u64>,
}

impl Operator for Reshape {
    fn kind(&self) -> &'static str {
        "reshape"
    }

    fn infer(&self, inputs: &[TensorType]) -> Result<Vec<TensorType>, String> {
        expect_operands(inputs, 1)?;
        let output = TensorType::new(self.shape.clone(), inputs[0].dtype);
        if output.elements() != inputs[0].elements() {
            return Err(format!("{} cannot be seen as {output}", inputs[0]));
        }
        Ok(vec![output])
    }

    fn flops(&self, _: &[TensorType], _: &[TensorType]) -> u64 {
        0
    }

    fn differentiate(&self, backward: &mut Backward) -> Result<Vec<Option<TensorId>>, GraphError> {
        let gradient = backward.gradient()?;
        let shape = backward.input_type(0).shape;
        Ok(vec![Some(backward.apply("grad", Reshape { shape }, &[gradient])?)])
    }

    fn lower(&self, lowering: &mut Lowering, node: &Node) -> Result<Work, LowerError> {
        let mut layout = lowering.layout_or_linear(node.inputs[0]);
        layout.order = layout.order.reshaped(&lowering.ty(node.inputs[0]).shape, &self.shape);
        lowering.lay_out(node.outputs[0], layout);
        Ok(Work::default())
    }

    fn reuses(&self) -> Reuse {
        Reuse::View(0)
    }
}
