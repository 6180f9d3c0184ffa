//! A tensor with a constant around it (ONNX Pad, popops `pad`). Reflected and repeated edges are
//! [`super::TakeOp`].

use super::{
    GradientBuilder, GradientResult, LoweringContext, LoweringResult, NodeOperands, Operator,
    ShapeError, SliceOp, expect_operands,
};
use crate::popops::{elementwise, relayout};
use crate::poputil::tensor_layout::TensorLayout;
use crate::shape::TensorInfo;

/// Elements of one value before and after those of the operand, along each axis. The value has no
/// effect on the work.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct PadOp {
    /// The number of elements before the first one of each axis.
    pub before: Vec<u64>,
    /// The number of elements after the last one of each axis.
    pub behind: Vec<u64>,
}

impl PadOp {
    /// The layout of the operand within a padded tensor of `shape` and layout `whole`.
    fn inner(&self, shape: &[u64], whole: &TensorLayout) -> TensorLayout {
        let mut shape = shape.to_vec();
        let mut inner = whole.clone();
        for (axis, (before, behind)) in self.before.iter().zip(&self.behind).enumerate() {
            let range = *before..shape[axis] - behind;
            inner = inner.slice(&shape, axis, range.clone());
            shape[axis] = range.end - range.start;
        }
        inner
    }
}

impl Operator for PadOp {
    fn kind(&self) -> &'static str {
        "pad"
    }

    fn infer(&self, inputs: &[TensorInfo]) -> Result<Vec<TensorInfo>, ShapeError> {
        expect_operands(inputs, 1)?;
        let rank = inputs[0].shape.len();
        let refuse = || ShapeError::Padding(inputs[0].clone());
        if self.before.len() != rank || self.behind.len() != rank {
            return Err(refuse());
        }
        let sizes = inputs[0].shape.iter().zip(self.before.iter().zip(&self.behind));
        let padded = sizes.map(|(size, (before, behind))| {
            size.checked_add(*before).and_then(|sum| sum.checked_add(*behind))
        });
        let shape: Option<Vec<u64>> = padded.collect();
        Ok(vec![TensorInfo::new(shape.ok_or_else(refuse)?, inputs[0].dtype)])
    }

    fn differentiate(&self, backward: &mut GradientBuilder) -> GradientResult {
        let mut gradient = backward.gradient()?;
        let shape = backward.input_type(0).shape;
        for (axis, size) in shape.into_iter().enumerate() {
            if self.before[axis] + self.behind[axis] > 0 {
                let range = self.before[axis]..self.before[axis] + size;
                let part = format!("grad/axis{axis}");
                gradient = backward.apply(&part, SliceOp { axis, range }, &[gradient])?;
            }
        }
        Ok(vec![Some(gradient)])
    }

    fn lower(&self, lowering: &mut LoweringContext, node: &NodeOperands) -> LoweringResult {
        let output = lowering.tensor_type(node.outputs[0]).clone();
        let whole = lowering.layout_or_linear(node.outputs[0]);
        let inner = self.inner(&output.shape, &whole);
        let mut work = lowering.relayout_tensor(node.inputs[0], &inner, "Pad");
        let innermost = lowering.tensor_type(node.inputs[0]).shape.last().copied().unwrap_or(1);
        work.push(relayout::copy("Pad", output.dtype, &inner.elements, innermost));
        let padding = whole.elements.zip(&inner.elements, |all, kept| all - kept.min(all));
        if !padding.total().is_zero() {
            work.push(elementwise::fill("Pad/padding", output.dtype, &padding));
        }
        Ok(work.into())
    }
}
