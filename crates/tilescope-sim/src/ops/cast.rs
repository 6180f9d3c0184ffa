//! A change of element type.

use super::{Operator, expect_operands};
use crate::graph::{Backward, DType, GraphError, Node, TensorId, TensorType};
use crate::lower::elementwise;
use crate::lower::{LowerError, Lowering, work::Work};

/// The operand in another element type.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Cast {
    pub to: DType,
}

impl Operator for Cast {
    fn kind(&self) -> &'static str {
        "cast"
    }

    fn infer(&self, inputs: &[TensorType]) -> Result<Vec<TensorType>, String> {
        expect_operands(inputs, 1)?;
        Ok(vec![TensorType::new(inputs[0].shape.clone(), self.to)])
    }

    fn flops(&self, _: &[TensorType], _: &[TensorType]) -> u64 {
        0
    }

    fn differentiate(&self, backward: &mut Backward) -> Result<Vec<Option<TensorId>>, GraphError> {
        let gradient = backward.gradient()?;
        let to = backward.input_type(0).dtype;
        Ok(vec![Some(backward.apply("grad", Self { to }, &[gradient])?)])
    }

    fn lower(&self, lowering: &mut Lowering, node: &Node) -> Result<Work, LowerError> {
        let from = lowering.ty(node.inputs[0]).dtype;
        // What is cast for a planned operation lies as that wants it.
        if let (None, Some(planned)) =
            (lowering.layout(node.inputs[0]), lowering.layout(node.outputs[0]))
        {
            let planned = planned.clone();
            lowering.lay_out(node.inputs[0], planned);
        }
        let layout = lowering.layout_or_linear(node.inputs[0]);
        let mut work = Work::default();
        work.push(elementwise::cast("Cast", from, self.to, &layout.elements));
        lowering.lay_out(node.outputs[0], layout);
        Ok(work)
    }
}
