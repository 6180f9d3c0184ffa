//! Rows that IPUs send each other for a result, and the gradients that they send back.

use crate::operators::{
    ConcatOp, GradientBuilder, GradientResult, LoweringContext, LoweringResult, NodeOperands,
    Operator, OutputAlias, ShapeError, SliceOp, expect_operands, expect_same,
};
use crate::poplar::work::OperationWork;
use crate::popops::elementwise::{self, BinaryOpType, ElementwiseOp};
use crate::shape::{TensorId, TensorInfo};
use std::sync::Arc;

/// Rows of a tensor that other IPUs read, copied to the buffer that they are sent from.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct HaloRowsOp {
    pub rows: SliceOp,
}

impl Operator for HaloRowsOp {
    fn kind(&self) -> &'static str {
        "halo_rows"
    }

    fn infer(&self, inputs: &[TensorInfo]) -> Result<Vec<TensorInfo>, ShapeError> {
        self.rows.infer(inputs)
    }

    fn differentiate(&self, backward: &mut GradientBuilder) -> GradientResult {
        self.rows.differentiate(backward)
    }

    fn gradient_addition(&self) -> Option<Arc<dyn Operator>> {
        Some(Arc::new(AddRowsOp { rows: self.rows.clone() }))
    }

    fn lower(&self, lowering: &mut LoweringContext, node: &NodeOperands) -> LoweringResult {
        let mut work = OperationWork::default();
        copy_rows(lowering, &mut work, node, node.outputs[0], &self.rows);
        Ok(work.into())
    }
}

/// Adds the copy of some rows of a node's first operand to the buffer that they are sent from.
fn copy_rows(
    lowering: &mut LoweringContext,
    work: &mut OperationWork,
    node: &NodeOperands,
    to: TensorId,
    SliceOp { axis, range }: &SliceOp,
) {
    let ty = lowering.tensor_type(node.inputs[0]);
    let whole = lowering.layout_or_linear(node.inputs[0]);
    let rows = whole.slice(&ty.shape, *axis, range.clone());
    work.push(elementwise::cast("Halo/OnTileCopy", ty.dtype, ty.dtype, &rows.elements));
    lowering.set_layout(to, rows);
}

/// A gradient, with those of other IPUs added to some of its rows.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct AddRowsOp {
    rows: SliceOp,
}

impl Operator for AddRowsOp {
    fn kind(&self) -> &'static str {
        "add_halo_rows"
    }

    fn infer(&self, inputs: &[TensorInfo]) -> Result<Vec<TensorInfo>, ShapeError> {
        expect_operands(inputs, 2)?;
        expect_same(&self.rows.infer(&inputs[..1])?[0], &inputs[1])?;
        Ok(vec![inputs[0].clone()])
    }

    fn flops(&self, inputs: &[TensorInfo], _: &[TensorInfo]) -> u64 {
        inputs[1].elements().0
    }

    fn lower(&self, lowering: &mut LoweringContext, node: &NodeOperands) -> LoweringResult {
        let ty = lowering.tensor_type(node.inputs[0]);
        let whole = lowering.layout_or_linear(node.inputs[0]);
        let rows = whole.slice(&ty.shape, self.rows.axis, self.rows.range.clone());
        let mut work = lowering.relayout_tensor(node.inputs[1], &rows, "AddHalo");
        let add = BinaryOpType::Add;
        work.push(elementwise::in_place(
            "AddHalo",
            ElementwiseOp::Binary(add),
            ty.dtype,
            &rows.elements,
        ));
        lowering.set_layout(node.outputs[0], whole);
        Ok(work.into())
    }

    fn output_alias(&self) -> OutputAlias {
        OutputAlias::InPlace(0)
    }
}

/// The pieces of rows that several IPUs sent, or that are returned to them. The own piece stays in
/// place. The pieces of other IPUs are copied.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct SplitRowsOp {
    pub axis: usize,
    /// The number of rows of each piece, in order.
    pub rows: Vec<u64>,
    /// The piece that stays in place.
    pub own: Option<usize>,
}

impl SplitRowsOp {
    fn piece(&self, piece: usize) -> SliceOp {
        let start: u64 = self.rows[..piece].iter().sum();
        SliceOp { axis: self.axis, range: start..start + self.rows[piece] }
    }
}

impl Operator for SplitRowsOp {
    fn kind(&self) -> &'static str {
        "split_rows"
    }

    fn infer(&self, inputs: &[TensorInfo]) -> Result<Vec<TensorInfo>, ShapeError> {
        let pieces = 0..self.rows.len();
        pieces.map(|piece| Ok(self.piece(piece).infer(inputs)?.remove(0))).collect()
    }

    fn lower(&self, lowering: &mut LoweringContext, node: &NodeOperands) -> LoweringResult {
        let mut work = OperationWork::default();
        for (piece, output) in node.outputs.iter().enumerate() {
            let rows = self.piece(piece);
            if self.own == Some(piece) {
                let shape = &lowering.tensor_type(node.inputs[0]).shape;
                let whole = lowering.layout_or_linear(node.inputs[0]);
                lowering.set_layout(*output, whole.slice(shape, self.axis, rows.range));
            } else {
                copy_rows(lowering, &mut work, node, *output, &rows);
            }
        }
        Ok(work.into())
    }

    fn output_alias(&self) -> OutputAlias {
        self.own.map_or(OutputAlias::NoAlias, |output| OutputAlias::PartView { input: 0, output })
    }
}

/// The rows of all IPUs, gathered on the first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct GatherRowsOp {
    pub axis: usize,
}

impl Operator for GatherRowsOp {
    fn kind(&self) -> &'static str {
        "gather_rows"
    }

    fn infer(&self, inputs: &[TensorInfo]) -> Result<Vec<TensorInfo>, ShapeError> {
        ConcatOp { axis: self.axis }.infer(inputs)
    }

    fn differentiate(&self, backward: &mut GradientBuilder) -> GradientResult {
        let gradient = backward.gradient()?;
        let pieces = 0..backward.node.inputs.len();
        let rows = pieces.map(|piece| backward.input_type(piece).shape[self.axis]).collect();
        let scatter = SplitRowsOp { axis: self.axis, rows, own: Some(0) };
        let parts = backward.apply_all("grad", scatter, &[gradient])?;
        Ok(parts.into_iter().map(Some).collect())
    }

    fn lower(&self, lowering: &mut LoweringContext, node: &NodeOperands) -> LoweringResult {
        ConcatOp { axis: self.axis }.lower(lowering, node)
    }
}
