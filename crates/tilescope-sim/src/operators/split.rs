//! Parts of a tensor along one axis: views.

use super::{
    ConcatOp, GradientBuilder, GradientResult, LoweredOperation, LoweringContext, LoweringResult,
    NodeOperands, Operator, OutputAlias, ShapeError, expect_operands,
};
use crate::shape::{TensorId, TensorInfo};

/// The parts of a tensor cut along `axis`, one output each.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct SplitOp {
    pub axis: usize,
    /// The sizes of the parts along the axis, which add up to the whole.
    pub sizes: Vec<u64>,
}

impl SplitOp {
    pub(crate) fn even(axis: usize, parts: usize, size: u64) -> Self {
        Self { axis, sizes: vec![size; parts] }
    }
}

impl Operator for SplitOp {
    fn kind(&self) -> &'static str {
        "split"
    }

    fn infer(&self, inputs: &[TensorInfo]) -> Result<Vec<TensorInfo>, ShapeError> {
        expect_operands(inputs, 1)?;
        let ty = &inputs[0];
        let total = self.sizes.iter().try_fold(0u64, |sum, size| sum.checked_add(*size));
        if ty.shape.get(self.axis).copied() != total {
            return Err(ShapeError::SplitSizes {
                sizes: self.sizes.clone(),
                axis: self.axis,
                ty: ty.clone(),
            });
        }
        let mut parts = vec![ty.clone(); self.sizes.len()];
        for (part, size) in parts.iter_mut().zip(&self.sizes) {
            part.shape[self.axis] = *size;
        }
        Ok(parts)
    }

    fn differentiate(&self, backward: &mut GradientBuilder) -> GradientResult {
        let parts: Vec<TensorId> = (0..backward.node.outputs.len())
            .map(|part| {
                let known = backward.output_gradients.get(part).copied().flatten();
                // The gradient of a part that the loss does not depend on is zero.
                known.unwrap_or_else(|| backward.zeros(&format!("grad/zeros{part}"), part))
            })
            .collect();
        Ok(vec![Some(backward.apply("grad", ConcatOp { axis: self.axis }, &parts)?)])
    }

    fn lower(&self, lowering: &mut LoweringContext, node: &NodeOperands) -> LoweringResult {
        let shape = lowering.tensor_type(node.inputs[0]).shape.clone();
        let layout = lowering.layout_or_linear(node.inputs[0]);
        let mut start = 0;
        for (output, size) in node.outputs.iter().zip(&self.sizes) {
            lowering.set_layout(*output, layout.slice(&shape, self.axis, start..start + size));
            start += size;
        }
        Ok(LoweredOperation::default())
    }

    fn output_alias(&self) -> OutputAlias {
        OutputAlias::View(0)
    }
}
