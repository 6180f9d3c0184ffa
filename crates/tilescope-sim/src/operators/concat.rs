//! Tensors joined along one axis, by copies on the tiles they lie on.

use super::{
    GradientBuilder, GradientResult, LoweringContext, LoweringResult, NodeOperands, Operator,
    RowWindow, ShapeError, SplitOp,
};
use crate::poplar::tile_runs;
use crate::poplar::work::OperationWork;
use crate::popops::relayout;
use crate::poputil::tensor_layout::TensorLayout;
use crate::shape::{TensorInfo, gcd};
use tilescope_report::units::TileRuns;

/// The operands one after the other along `axis`.
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

    fn row_window(&self, inputs: &[TensorInfo]) -> Option<RowWindow> {
        // Rows of a field lie behind the channels.
        let joins_channels = self.axis == 1 && inputs.iter().all(|ty| ty.shape.len() > 2);
        joins_channels.then_some(RowWindow { axis: Some(2), ..RowWindow::POINTWISE })
    }

    fn lower(&self, lowering: &mut LoweringContext, node: &NodeOperands) -> LoweringResult {
        let dtype = lowering.tensor_type(node.outputs[0]).dtype;
        let parts: Vec<TensorLayout> =
            node.inputs.iter().map(|part| lowering.layout_or_linear(*part)).collect();
        let elements = parts
            .iter()
            .fold(TileRuns::empty(), |sum, part| tile_runs::add_per_tile(&sum, &part.elements));
        let all = &lowering.tensor_type(node.outputs[0]).shape;
        let order = parts[0].order.resized(&lowering.tensor_type(node.inputs[0]).shape, all);
        let mut piece = 0;
        for (part, layout) in node.inputs.iter().zip(&parts) {
            let shape = &lowering.tensor_type(*part).shape;
            piece = gcd(piece, order.run_along(all, self.axis, shape[self.axis]));
            let own = layout.order.resized(shape, all);
            if own != order {
                // A part in another order is copied in what both have together.
                piece = gcd(piece, order.common_run(&own, all));
            }
        }
        let mut work = OperationWork::default();
        work.push(relayout::copy("Concat", dtype, &elements, piece));
        lowering.set_layout(node.outputs[0], TensorLayout { elements, order });
        Ok(work.into())
    }
}
