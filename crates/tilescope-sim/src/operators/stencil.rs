//! A stencil, which computes each cell of a field from its neighbours. Cells outside the field are
//! zero.

use super::{
    FieldEdges, LoweringContext, LoweringError, LoweringResult, NodeOperands, Operator, RowWindow,
    ShapeError, expect_operands,
};
use crate::custom::stencil::{ReceivedRows, StencilField, StencilNeighbourhood};
use crate::poplar::work::OperationWork;
use crate::popops::elementwise;
use crate::shape::{TensorId, TensorInfo};
use std::ops::Range;
use std::sync::Arc;
use tilescope_report::units::{Bytes, TileRuns};

/// One sweep over a field `[height, width, channels]`. On a part of a field, the rows above and
/// below that other IPUs sent are separate operands, in that order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct StencilOp {
    pub neighbours: StencilNeighbourhood,
    /// True if an operand is the row above.
    pub above: bool,
    /// True if an operand is the row below.
    pub below: bool,
}

/// The field of a tensor type.
fn field(ty: &TensorInfo) -> Result<StencilField, ShapeError> {
    let [height, width, channels] = ty.shape[..] else {
        return Err(ShapeError::Operand {
            expected: "a field of rows, columns and channels",
            found: ty.clone(),
        });
    };
    Ok(StencilField { height, width, channels, dtype: ty.dtype })
}

impl StencilOp {
    /// Makes a sweep over a whole field.
    pub fn over_field(neighbours: StencilNeighbourhood) -> Self {
        Self { neighbours, above: false, below: false }
    }
}

impl Operator for StencilOp {
    fn kind(&self) -> &'static str {
        "stencil"
    }

    fn infer(&self, inputs: &[TensorInfo]) -> Result<Vec<TensorInfo>, ShapeError> {
        expect_operands(inputs, 1 + usize::from(self.above) + usize::from(self.below))?;
        field(&inputs[0])?;
        let row =
            TensorInfo { shape: [&[1], &inputs[0].shape[1..]].concat(), dtype: inputs[0].dtype };
        match inputs[1..].iter().find(|other| **other != row) {
            Some(other) => Err(ShapeError::Row { row: other.clone(), field: inputs[0].clone() }),
            None => Ok(vec![inputs[0].clone()]),
        }
    }

    fn flops(&self, _: &[TensorInfo], outputs: &[TensorInfo]) -> u64 {
        2 * self.neighbours.points() * outputs[0].elements().0
    }

    fn row_window(&self, _: &[TensorInfo]) -> Option<RowWindow> {
        Some(RowWindow { axis: Some(0), kernel: 3, stride: 1, before: 1, behind: 1 })
    }

    fn on_rows(&self, edges: FieldEdges) -> Option<Arc<dyn Operator>> {
        // An edge without zeros has a row of another IPU beside it.
        Some(Arc::new(Self { above: edges.before == 0, below: edges.behind == 0, ..*self }))
    }

    fn halo_rows(&self, _: usize, rows: Range<u64>) -> Arc<dyn Operator> {
        Arc::new(StencilRowOp { is_first: rows.start == 0 })
    }

    fn takes_halo_apart(&self) -> bool {
        true
    }

    fn lower(&self, lowering: &mut LoweringContext, node: &NodeOperands) -> LoweringResult {
        let (field, mut work) = placed_field(lowering, node)?;
        let mut rows = node.inputs[1..].iter().map(|row| row_bytes(lowering, *row));
        let above = if self.above { rows.next() } else { None };
        let below = if self.below { rows.next() } else { None };
        let received = ReceivedRows { above, below };
        let tiles = lowering.tiles;
        let speed = lowering.exchange_speed();
        work.append(field.sweep(self.neighbours, &received, tiles, speed));
        lowering.set_layout(node.outputs[0], field.layout(lowering.tiles));
        Ok(work.into())
    }
}

/// Returns the field of the first operand, and the steps that move it to its place.
fn placed_field(
    lowering: &mut LoweringContext,
    node: &NodeOperands,
) -> Result<(StencilField, OperationWork), LoweringError> {
    let field = field(lowering.tensor_type(node.inputs[0])).map_err(|error| node.error(error))?;
    let layout = field.layout(lowering.tiles);
    let work = lowering.place_or_relayout(node.inputs[0], layout, "Field");
    Ok((field, work))
}

/// Bytes of a row on each tile.
fn row_bytes(lowering: &mut LoweringContext, row: TensorId) -> TileRuns<Bytes> {
    let element_bytes = lowering.tensor_type(row).dtype.bytes();
    lowering.layout_or_linear(row).bytes(element_bytes)
}

/// The first or the last row of a field, which another IPU reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct StencilRowOp {
    is_first: bool,
}

impl Operator for StencilRowOp {
    fn kind(&self) -> &'static str {
        "halo_rows"
    }

    fn infer(&self, inputs: &[TensorInfo]) -> Result<Vec<TensorInfo>, ShapeError> {
        expect_operands(inputs, 1)?;
        let StencilField { width, channels, dtype, .. } = field(&inputs[0])?;
        Ok(vec![TensorInfo::new([1, width, channels], dtype)])
    }

    fn lower(&self, lowering: &mut LoweringContext, node: &NodeOperands) -> LoweringResult {
        let (field, mut work) = placed_field(lowering, node)?;
        let row = field.edge_row_layout(self.is_first, lowering.tiles);
        work.push(elementwise::cast("Halo/OnTileCopy", field.dtype, field.dtype, &row.elements));
        lowering.set_layout(node.outputs[0], row);
        Ok(work.into())
    }
}
