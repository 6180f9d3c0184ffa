//! Tensors joined along one axis: a view of them, or copies on the tiles that hold them.

use super::{
    GradientBuilder, GradientResult, LoweredOperation, LoweringContext, LoweringResult,
    NodeOperands, Operator, OutputAlias, RowWindow, ShapeError, SplitOp, Unwinding,
};
use crate::poplar::tile_runs;
use crate::poplar::work::OperationWork;
use crate::popops::relayout;
use crate::poputil::tensor_layout::TensorLayout;
use crate::shape::{TensorInfo, gcd};
use std::sync::Arc;
use tilescope_report::units::TileRuns;

/// The operands, one after the other along `axis`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct ConcatOp {
    pub axis: usize,
}

impl Operator for ConcatOp {
    fn kind(&self) -> &'static str {
        "concat"
    }

    fn infer(&self, inputs: &[TensorInfo]) -> Result<Vec<TensorInfo>, ShapeError> {
        let Some(first) = inputs.first().filter(|ty| self.axis < ty.shape.len()) else {
            return Err(ShapeError::NothingToJoin(self.axis));
        };
        let mut whole = first.clone();
        for part in &inputs[1..] {
            let mut expected = first.clone();
            let size = part.shape.get(self.axis).copied().unwrap_or(0);
            expected.shape[self.axis] = size;
            if *part != expected {
                return Err(ShapeError::Join {
                    first: first.clone(),
                    part: part.clone(),
                    axis: self.axis,
                });
            }
            let sum = whole.shape[self.axis].checked_add(size);
            whole.shape[self.axis] = sum.ok_or(ShapeError::TooLarge)?;
        }
        Ok(vec![whole])
    }

    fn differentiate(&self, backward: &mut GradientBuilder) -> GradientResult {
        let gradient = backward.gradient()?;
        let inputs = 0..backward.node.inputs.len();
        let sizes = inputs.map(|input| backward.input_type(input).shape[self.axis]).collect();
        let parts = backward.apply_all("grad", SplitOp { axis: self.axis, sizes }, &[gradient])?;
        Ok(parts.into_iter().map(Some).collect())
    }

    fn unwinding(&self, inputs: &[TensorInfo], input: usize) -> Unwinding {
        let axis = self.axis;
        let start = inputs[..input].iter().map(|part| part.shape[axis]).sum();
        Unwinding::Stretch { axis, range: start..start + inputs[input].shape[axis] }
    }

    fn row_window(&self, inputs: &[TensorInfo]) -> Option<RowWindow> {
        // Rows of a field come after the channels.
        let joins_channels = self.axis == 1 && inputs.iter().all(|ty| ty.shape.len() > 2);
        if !joins_channels {
            return None;
        }
        Some(RowWindow { axis: Some(2), ..RowWindow::POINTWISE })
    }

    fn view_of_parts(&self) -> Option<Arc<dyn Operator>> {
        Some(Arc::new(ConcatViewOp(*self)))
    }

    fn lower(&self, lowering: &mut LoweringContext, node: &NodeOperands) -> LoweringResult {
        let layout = self.joined(lowering, node);
        let dtype = lowering.tensor_type(node.outputs[0]).dtype;
        let all = &lowering.tensor_type(node.outputs[0]).shape;
        let mut piece = 0;
        for part in node.inputs {
            let shape = &lowering.tensor_type(*part).shape;
            piece = gcd(piece, layout.order.run_along(all, self.axis, shape[self.axis]));
            let own = lowering.layout_or_linear(*part).order.resized(shape, all);
            if own != layout.order {
                // A part in another order is copied in runs that both orders have in common.
                piece = gcd(piece, layout.order.common_run(&own, all));
            }
        }
        let mut work = OperationWork::default();
        work.push(relayout::copy("Concat", dtype, &layout.elements, piece));
        lowering.set_layout(node.outputs[0], layout);
        Ok(work.into())
    }
}

impl ConcatOp {
    /// The layout of the operands one after the other, each in its place.
    fn joined(self, lowering: &mut LoweringContext, node: &NodeOperands) -> TensorLayout {
        let mut elements = TileRuns::empty();
        let mut largest = node.inputs[0];
        for part in node.inputs {
            let layout = lowering.layout_or_linear(*part);
            elements = tile_runs::add_per_tile(&elements, &layout.elements);
            let [size, most] = [*part, largest].map(|of| lowering.tensor_type(of).elements());
            if size > most {
                largest = *part;
            }
        }
        // Parts in other orders are counted as if they were in the order of the largest one.
        let order = lowering.layout_or_linear(largest).order;
        let [shape, all] =
            [largest, node.outputs[0]].map(|tensor| &lowering.tensor_type(tensor).shape);
        TensorLayout { elements, order: order.resized(shape, all) }
    }
}

/// The concatenation as a view of its operands (popart willow/src/op/concat.cpp, ConcatInplace).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct ConcatViewOp(pub ConcatOp);

impl Operator for ConcatViewOp {
    fn kind(&self) -> &'static str {
        self.0.kind()
    }

    fn infer(&self, inputs: &[TensorInfo]) -> Result<Vec<TensorInfo>, ShapeError> {
        self.0.infer(inputs)
    }

    fn unwinding(&self, inputs: &[TensorInfo], input: usize) -> Unwinding {
        self.0.unwinding(inputs, input)
    }

    fn lower(&self, lowering: &mut LoweringContext, node: &NodeOperands) -> LoweringResult {
        let layout = self.0.joined(lowering, node);
        lowering.set_layout(node.outputs[0], layout);
        Ok(LoweredOperation::default())
    }

    fn output_alias(&self) -> OutputAlias {
        OutputAlias::ViewOfAll
    }
}
