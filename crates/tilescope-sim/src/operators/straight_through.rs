//! The substitute for the gradient of numbers of few bits while a model learns to be quantised.

use super::{
    GradientBuilder, GradientResult, LoweredOperation, LoweringContext, LoweringResult,
    NodeOperands, Operator, OutputAlias, RowWindow, ShapeError, expect_operands,
};
use crate::shape::{DType, TensorInfo};

/// The first operand, which is the rounded second operand. Its gradient passes to the second
/// operand where the third one, a truth value, states that it was within the range of the few bits.
/// Elsewhere it is zero (torch aten/src/ATen/native/quantized/FakeQuantPerTensorAffine.cpp).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct StraightThroughOp;

impl Operator for StraightThroughOp {
    fn kind(&self) -> &'static str {
        "straight_through"
    }

    fn infer(&self, inputs: &[TensorInfo]) -> Result<Vec<TensorInfo>, ShapeError> {
        expect_operands(inputs, 3)?;
        let [made, of, within] = [&inputs[0], &inputs[1], &inputs[2]];
        if made == of && within.dtype == DType::Bool && within.shape == made.shape {
            return Ok(vec![made.clone()]);
        }
        Err(ShapeError::StraightThrough(Box::new([made, within, of].map(TensorInfo::clone))))
    }

    fn differentiate(&self, backward: &mut GradientBuilder) -> GradientResult {
        let dy = backward.gradient()?;
        let within = backward.node.inputs[2];
        Ok(vec![None, Some(backward.apply_mask("grad", dy, within)?), None])
    }

    fn row_window(&self, _: &[TensorInfo]) -> Option<RowWindow> {
        Some(RowWindow::POINTWISE)
    }

    fn lower(&self, lowering: &mut LoweringContext, node: &NodeOperands) -> LoweringResult {
        let layout = lowering.layout_or_linear(node.inputs[0]);
        lowering.set_layout(node.outputs[0], layout);
        Ok(LoweredOperation::default())
    }

    fn output_alias(&self) -> OutputAlias {
        OutputAlias::View(0)
    }
}
