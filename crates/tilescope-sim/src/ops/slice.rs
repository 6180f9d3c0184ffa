//! A stretch of one axis: a view.

use super::{Operator, Reuse, expect_operands};
use crate::graph::{Backward, GraphError, Node, TensorId, TensorType};
use crate::lower::elementwise;
use crate::lower::{LowerError, Lowering, work::Work};
use std::ops::Range;

/// The elements whose index along `axis` is in `range`.
#[derive(Clone, Debug)]
pub(crate) struct Slice {
    pub axis: usize,
    pub range: Range<u64>,
}

impl Operator for Slice {
    fn kind(&self) -> &'static str {
        "slice"
    }

    fn infer(&self, inputs: &[TensorType]) -> Result<Vec<TensorType>, String> {
        expect_operands(inputs, 1)?;
        let mut ty = inputs[0].clone();
        let size = ty.shape.get_mut(self.axis);
        match size {
            Some(size) if self.range.start < self.range.end && self.range.end <= *size => {
                *size = self.range.end - self.range.start;
                Ok(vec![ty])
            }
            _ => Err(format!("{:?} is no part of axis {} of {ty}", self.range, self.axis)),
        }
    }

    fn flops(&self, _: &[TensorType], _: &[TensorType]) -> u64 {
        0
    }

    fn differentiate(&self, backward: &mut Backward) -> Result<Vec<Option<TensorId>>, GraphError> {
        let gradient = backward.gradient()?;
        let pad = SliceGradient { slice: self.clone(), ty: backward.input_type(0) };
        Ok(vec![Some(backward.apply("grad", pad, &[gradient])?)])
    }

    fn lower(&self, lowering: &mut Lowering, node: &Node) -> Result<Work, LowerError> {
        let shape = &lowering.ty(node.inputs[0]).shape;
        let layout = lowering.layout_or_linear(node.inputs[0]);
        lowering.lay_out(node.outputs[0], layout.slice(shape, self.axis, self.range.clone()));
        Ok(Work::default())
    }

    fn reuses(&self) -> Reuse {
        Reuse::View(0)
    }
}

/// The gradient of a slice in its place, zeros around it.
#[derive(Clone, Debug)]
struct SliceGradient {
    slice: Slice,
    ty: TensorType,
}

impl Operator for SliceGradient {
    fn kind(&self) -> &'static str {
        "slice_grad"
    }

    fn infer(&self, inputs: &[TensorType]) -> Result<Vec<TensorType>, String> {
        expect_operands(inputs, 1)?;
        Ok(vec![self.ty.clone()])
    }

    fn flops(&self, _: &[TensorType], _: &[TensorType]) -> u64 {
        0
    }

    fn lower(&self, lowering: &mut Lowering, node: &Node) -> Result<Work, LowerError> {
        let dtype = self.ty.dtype;
        let whole = lowering.layout_or_linear(node.outputs[0]);
        let place = whole.slice(&self.ty.shape, self.slice.axis, self.slice.range.clone());
        let mut work = lowering.bring(node.inputs[0], &place, "SliceGrad");
        work.push(elementwise::cast("SliceGrad/OnTileCopy", dtype, dtype, &place.elements));
        let zeros = whole.elements.zip(&place.elements, |all, kept| all - kept.min(all));
        work.push(elementwise::fill("SliceGrad/zero", dtype, &zeros));
        Ok(work)
    }
}
