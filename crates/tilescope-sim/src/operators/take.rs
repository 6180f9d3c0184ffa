//! Elements at given positions of one axis: slices with a step, reversed axes, images enlarged by
//! repetition, reflected edges (Poplar's `slice`, `subSample`, `reverse`, `upsample` and `concat`
//! of slices, then a copy).

use super::{
    GradientBuilder, GradientResult, LoweredOperation, LoweringContext, LoweringResult,
    NodeOperands, Operator, OutputAlias, ShapeError, expect_operands,
};
use crate::poplar::work::OperationWork;
use crate::popops::elementwise::{self, BinaryOpType, ElementwiseOp};
use crate::popops::relayout;
use crate::poputil::tensor_layout::TensorLayout;
use crate::shape::TensorInfo;

/// The elements with the first of `indices` along `axis`, then those with the second, and so on.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct TakeOp {
    /// The axis that the indices apply to.
    pub axis: usize,
    /// The source index of each element of the result.
    pub indices: Vec<u64>,
}

impl TakeOp {
    /// Takes `count` elements from `start` on, at a distance of `step`. A negative step takes them
    /// backwards.
    pub fn stepped(axis: usize, start: u64, step: i64, count: u64) -> Self {
        let distances = (0..count).map(|place| step.saturating_mul(place.cast_signed()));
        let indices = distances.map(|distance| start.saturating_add_signed(distance));
        Self { axis, indices: indices.collect() }
    }

    /// True if elements keep their order and each occurs at most once, so that they can stay on
    /// their tiles.
    fn is_selection(&self) -> bool {
        self.indices.windows(2).all(|pair| pair[0] < pair[1])
    }

    /// True if it takes elements at equal distances, which is a view (popart
    /// willow/src/op/subsample.cpp, SubsampleInplace).
    fn is_subsample(&self) -> bool {
        let mut steps = self.indices.windows(2).map(|pair| pair[1].saturating_sub(pair[0]));
        let first = steps.next().unwrap_or(1);
        first > 0 && steps.all(|step| step == first)
    }

    /// The length of the shortest run of consecutive indices. Elements of a run stay neighbours.
    fn shortest_run(&self) -> u64 {
        let runs = self.indices.chunk_by(|one, next| one.checked_add(1) == Some(*next));
        runs.map(|run| run.len() as u64).min().unwrap_or(1)
    }

    /// The number of elements that stay together in the copy.
    fn piece(&self, ty: &TensorInfo, layout: &TensorLayout) -> u64 {
        layout.order.run_along(&ty.shape, self.axis, self.shortest_run())
    }

    /// The layout of the taken elements if they stay in place.
    fn selected(&self, ty: &TensorInfo, layout: &TensorLayout) -> TensorLayout {
        layout.pick(&ty.shape, self.axis, &self.indices)
    }
}

impl Operator for TakeOp {
    fn kind(&self) -> &'static str {
        "take"
    }

    fn infer(&self, inputs: &[TensorInfo]) -> Result<Vec<TensorInfo>, ShapeError> {
        expect_operands(inputs, 1)?;
        let mut ty = inputs[0].clone();
        let size = ty.shape.get_mut(self.axis);
        match (size, self.indices.iter().max()) {
            (Some(size), Some(last)) if last < size => {
                *size = self.indices.len() as u64;
                Ok(vec![ty])
            }
            _ => Err(ShapeError::Taken { axis: self.axis, ty: inputs[0].clone() }),
        }
    }

    fn differentiate(&self, backward: &mut GradientBuilder) -> GradientResult {
        let gradient = backward.gradient()?;
        let operator = TakeGradOp { take: self.clone(), ty: backward.input_type(0) };
        Ok(vec![Some(backward.apply("grad", operator, &[gradient])?)])
    }

    fn lower(&self, lowering: &mut LoweringContext, node: &NodeOperands) -> LoweringResult {
        let ty = lowering.tensor_type(node.inputs[0]).clone();
        let held = lowering.layout_or_linear(node.inputs[0]);
        if self.is_subsample() {
            lowering.set_layout(node.outputs[0], self.selected(&ty, &held));
            return Ok(LoweredOperation::default());
        }
        let piece = self.piece(&ty, &held);
        let mut work = OperationWork::default();
        let layout = if self.is_selection() {
            self.selected(&ty, &held)
        } else {
            let output = lowering.tensor_type(node.outputs[0]);
            let spread =
                TensorLayout::linear(output.elements(), output.dtype.bytes(), lowering.tiles);
            lowering.exchange_copies(&mut work, (&ty, &held), &spread, "Take");
            spread
        };
        work.push(relayout::copy("Take", ty.dtype, &layout.elements, piece));
        lowering.set_layout(node.outputs[0], layout);
        Ok(work.into())
    }

    fn output_alias(&self) -> OutputAlias {
        if self.is_subsample() { OutputAlias::View(0) } else { OutputAlias::NoAlias }
    }
}

/// The gradient: each element is added at the position that it was taken from, with zeros
/// elsewhere.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct TakeGradOp {
    take: TakeOp,
    ty: TensorInfo,
}

impl Operator for TakeGradOp {
    fn kind(&self) -> &'static str {
        "take_grad"
    }

    fn infer(&self, inputs: &[TensorInfo]) -> Result<Vec<TensorInfo>, ShapeError> {
        expect_operands(inputs, 1)?;
        Ok(vec![self.ty.clone()])
    }

    fn flops(&self, inputs: &[TensorInfo], _: &[TensorInfo]) -> u64 {
        if self.take.is_selection() { 0 } else { inputs[0].elements().0 }
    }

    /// PopART adds one slice of the gradient after the other (popart
    /// willow/src/popx/op/{tilex,resizex}.cpp). Here all slices of a position are added in one
    /// compute set.
    fn lower(&self, lowering: &mut LoweringContext, node: &NodeOperands) -> LoweringResult {
        let dtype = self.ty.dtype;
        let whole = lowering.layout_or_linear(node.outputs[0]);
        let place = self.take.selected(&self.ty, &whole);
        let mut work = OperationWork::default();
        if self.take.is_selection() {
            work.append(lowering.relayout_tensor(node.inputs[0], &place, "TakeGrad"));
            let piece = self.take.piece(&self.ty, &whole);
            work.push(relayout::copy("TakeGrad", dtype, &place.elements, piece));
            let zeros = whole.elements.zip(&place.elements, |all, kept| all - kept.min(all));
            work.push(elementwise::fill("TakeGrad/zero", dtype, &zeros));
        } else {
            work.push(elementwise::fill("TakeGrad/zero", dtype, &whole.elements));
            let from = lowering.layout_or_linear(node.inputs[0]);
            let gradient = lowering.tensor_type(node.inputs[0]).clone();
            lowering.exchange_copies(&mut work, (&gradient, &from), &place, "TakeGrad");
            let add = BinaryOpType::Add;
            work.push(elementwise::in_place(
                "TakeGrad/Add",
                ElementwiseOp::Binary(add),
                dtype,
                &place.elements,
            ));
        }
        Ok(work.into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::shape::DType;

    #[test]
    fn steps_run_both_ways() {
        assert_eq!(TakeOp::stepped(0, 1, 2, 3).indices, [1, 3, 5]);
        assert_eq!(TakeOp::stepped(0, 5, -2, 3).indices, [5, 3, 1]);
        assert_eq!(TakeOp::stepped(0, 2, 1, 3).shortest_run(), 3);
        assert!(!TakeOp { axis: 0, indices: vec![0, 0, 1] }.is_selection());
        let ty = TensorInfo::new([4, 3], DType::Half);
        assert!(TakeOp { axis: 0, indices: vec![4] }.infer(&[ty]).is_err());
    }
}
