//! Values repeated along new axes, such as a class token for every sample, or the gradient of a
//! sum.

use super::{
    GradientBuilder, GradientResult, LoweringContext, LoweringResult, NodeOperands, Operator,
    ReduceOp, ShapeError, expect_operands,
};
use crate::poplar::work::OperationWork;
use crate::popops::reduce::ReduceOperation;
use crate::shape::TensorInfo;

/// Each value of the operand, repeated along the axes that the operand does not have.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct RepeatOp {
    pub ty: TensorInfo,
    /// The axes of `ty` that the operand does not have.
    pub axes: Vec<usize>,
}

impl Operator for RepeatOp {
    fn kind(&self) -> &'static str {
        "repeat"
    }

    fn infer(&self, inputs: &[TensorInfo]) -> Result<Vec<TensorInfo>, ShapeError> {
        expect_operands(inputs, 1)?;
        let axes = self.ty.shape.iter().enumerate();
        let kept = axes.filter(|(axis, _)| !self.axes.contains(axis)).map(|(_, size)| *size);
        let kept = TensorInfo::new(kept.collect::<Vec<_>>(), self.ty.dtype);
        if kept != inputs[0] {
            return Err(ShapeError::Repeat { from: inputs[0].clone(), to: self.ty.clone() });
        }
        Ok(vec![self.ty.clone()])
    }

    fn differentiate(&self, backward: &mut GradientBuilder) -> GradientResult {
        let gradient = backward.gradient()?;
        let sum = ReduceOp::new(ReduceOperation::Add, self.axes.clone());
        Ok(vec![Some(backward.apply("grad", sum, &[gradient])?)])
    }

    fn lower(&self, lowering: &mut LoweringContext, node: &NodeOperands) -> LoweringResult {
        let layout = lowering.layout_or_linear(node.outputs[0]);
        let mut work = OperationWork::default();
        let to = (&self.ty, &layout);
        lowering.repeat_along(&mut work, node.inputs[0], to, &self.axes, "Repeat");
        Ok(work.into())
    }
}
