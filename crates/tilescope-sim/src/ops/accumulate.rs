//! Adds a gradient to its accumulator: once per micro-batch.

use super::{Operator, ShapeError, expect_operands, expect_same};
use crate::graph::{Node, TensorType};
use crate::lower::elementwise;
use crate::lower::{LowerError, Lowering, work::Work};

/// `accumulator += gradient`
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Accumulate {
    /// Whether the accumulator is scaled first.
    pub scaled: bool,
}

impl Operator for Accumulate {
    fn kind(&self) -> &'static str {
        "accumulate"
    }

    fn infer(&self, inputs: &[TensorType]) -> Result<Vec<TensorType>, ShapeError> {
        expect_operands(inputs, 2)?;
        expect_same(&inputs[0], &inputs[1])?;
        Ok(Vec::new())
    }

    fn flops(&self, inputs: &[TensorType], _: &[TensorType]) -> u64 {
        2 * inputs[0].elements()
    }

    fn lower(&self, lowering: &mut Lowering, node: &Node) -> Result<Work, LowerError> {
        let [accumulator, gradient] = [node.inputs[0], node.inputs[1]];
        let dtype = lowering.ty(accumulator).dtype;
        if lowering.layout(accumulator).is_none() {
            // The accumulator lies as its gradient arrives, so that adding moves nothing.
            let layout = lowering.layout_or_linear(gradient);
            lowering.lay_out(accumulator, layout);
        }
        let layout = lowering.layout_or_linear(accumulator);
        let mut work = lowering.bring(gradient, &layout, "AddToAccl");
        let add = if self.scaled { elementwise::axpby } else { elementwise::scaled_add };
        work.push(add("AddToAccl", dtype, &layout.elements));
        Ok(work)
    }
}
