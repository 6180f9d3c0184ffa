//! Sum of two tensors of one shape, in place: where gradients of several uses meet.

use super::{Operator, Reuse, expect_operands, expect_same};
use crate::sim::graph::{Backward, GraphError, Node, TensorId, TensorType};
use crate::sim::lower::elementwise::{self, Binary};
use crate::sim::lower::{LowerError, Lowering, work::Work};

/// `a + b`
#[derive(Clone, Copy, Debug)]
pub struct Add;

impl Operator for Add {
    fn kind(&self) -> &'static str {
        "add"
    }

    fn infer(&self, inputs: &[TensorType]) -> Result<Vec<TensorType>, String> {
        expect_operands(inputs, 2)?;
        expect_same(&inputs[0], &inputs[1])?;
        Ok(vec![inputs[0].clone()])
    }

    fn flops(&self, _: &[TensorType], outputs: &[TensorType]) -> u64 {
        outputs[0].elements()
    }

    fn differentiate(&self, backward: &mut Backward) -> Result<Vec<Option<TensorId>>, GraphError> {
        let gradient = backward.gradient()?;
        Ok(vec![Some(gradient), Some(gradient)])
    }

    fn lower(&self, lowering: &mut Lowering, node: &Node) -> Result<Work, LowerError> {
        let dtype = lowering.ty(node.inputs[0]).dtype;
        let layout = lowering.layout_or_linear(node.inputs[0]);
        let mut work = lowering.bring(node.inputs[1], &layout, "Op/Add");
        work.push(elementwise::binary_in_place("Op/Add", Binary::Add, dtype, &layout.elements));
        lowering.lay_out(node.outputs[0], layout);
        Ok(work)
    }

    fn reuses(&self) -> Reuse {
        Reuse::InPlace(0)
    }
}
