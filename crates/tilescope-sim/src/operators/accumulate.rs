//! The addition of a gradient to its accumulator, once per micro-batch.

use super::{
    LoweringContext, LoweringResult, NodeOperands, Operator, ShapeError, expect_operands,
    expect_same,
};
use crate::popops::elementwise;
use crate::shape::TensorInfo;

/// `accumulator += gradient`, with an optional scale.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct AccumulateOp {
    /// True if the accumulator is scaled first.
    pub scaled: bool,
}

impl Operator for AccumulateOp {
    fn kind(&self) -> &'static str {
        "accumulate"
    }

    fn infer(&self, inputs: &[TensorInfo]) -> Result<Vec<TensorInfo>, ShapeError> {
        expect_operands(inputs, 2)?;
        expect_same(&inputs[0], &inputs[1])?;
        Ok(Vec::new())
    }

    fn flops(&self, inputs: &[TensorInfo], _: &[TensorInfo]) -> u64 {
        2 * inputs[0].elements().0
    }

    fn lower(&self, lowering: &mut LoweringContext, node: &NodeOperands) -> LoweringResult {
        let [accumulator, gradient] = [node.inputs[0], node.inputs[1]];
        let dtype = lowering.tensor_type(accumulator).dtype;
        if lowering.layout(accumulator).is_none() {
            // The accumulator has the layout of its gradient, so that adding moves nothing.
            let layout = lowering.layout_or_linear(gradient);
            lowering.set_layout(accumulator, layout);
        }
        let layout = lowering.layout_or_linear(accumulator);
        let mut work = lowering.regroup_tensor(gradient, &layout, "AddToAccl");
        let add = if self.scaled { elementwise::axpby } else { elementwise::scaled_add };
        work.push(add("AddToAccl", dtype, &layout.elements));
        Ok(work.into())
    }
}
