//! A range of one axis: a view.

use super::{
    GradientBuilder, GradientResult, LoweredOperation, LoweringContext, LoweringResult,
    NodeOperands, Operator, OutputAlias, ShapeError, expect_operands,
};
use crate::popops::{elementwise, relayout};
use crate::shape::{TensorInfo, gcd};
use std::ops::Range;

/// The elements whose index along `axis` is in `range`.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct SliceOp {
    pub axis: usize,
    pub range: Range<u64>,
}

impl Operator for SliceOp {
    fn kind(&self) -> &'static str {
        "slice"
    }

    fn infer(&self, inputs: &[TensorInfo]) -> Result<Vec<TensorInfo>, ShapeError> {
        expect_operands(inputs, 1)?;
        let mut ty = inputs[0].clone();
        let size = ty.shape.get_mut(self.axis);
        match size {
            Some(size) if self.range.start < self.range.end && self.range.end <= *size => {
                *size = self.range.end - self.range.start;
                Ok(vec![ty])
            }
            _ => Err(ShapeError::Slice { range: self.range.clone(), axis: self.axis, ty }),
        }
    }

    fn differentiate(&self, backward: &mut GradientBuilder) -> GradientResult {
        let gradient = backward.gradient()?;
        let pad = SliceGradOp { slice: self.clone(), ty: backward.input_type(0) };
        Ok(vec![Some(backward.apply("grad", pad, &[gradient])?)])
    }

    fn lower(&self, lowering: &mut LoweringContext, node: &NodeOperands) -> LoweringResult {
        let shape = &lowering.tensor_type(node.inputs[0]).shape;
        let layout = lowering.layout_or_linear(node.inputs[0]);
        lowering.set_layout(node.outputs[0], layout.slice(shape, self.axis, self.range.clone()));
        Ok(LoweredOperation::default())
    }

    fn output_alias(&self) -> OutputAlias {
        OutputAlias::View(0)
    }
}

/// The gradient of a slice in its place, with zeros around it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct SliceGradOp {
    slice: SliceOp,
    ty: TensorInfo,
}

impl Operator for SliceGradOp {
    fn kind(&self) -> &'static str {
        "slice_grad"
    }

    fn infer(&self, inputs: &[TensorInfo]) -> Result<Vec<TensorInfo>, ShapeError> {
        expect_operands(inputs, 1)?;
        Ok(vec![self.ty.clone()])
    }

    fn lower(&self, lowering: &mut LoweringContext, node: &NodeOperands) -> LoweringResult {
        let dtype = self.ty.dtype;
        let whole = lowering.layout_or_linear(node.outputs[0]);
        let place = whole.slice(&self.ty.shape, self.slice.axis, self.slice.range.clone());
        let mut work = lowering.relayout_tensor(node.inputs[0], &place, "SliceGrad");
        let axis = self.slice.axis;
        let range = &self.slice.range;
        let size = gcd(range.start, range.end);
        let piece = whole.order.run_along(&self.ty.shape, axis, size);
        work.push(relayout::copy("SliceGrad", dtype, &place.elements, piece));
        let zeros = whole.elements.zip(&place.elements, |all, kept| all - kept.min(all));
        work.push(elementwise::fill("SliceGrad/zero", dtype, &zeros));
        Ok(work.into())
    }
}
