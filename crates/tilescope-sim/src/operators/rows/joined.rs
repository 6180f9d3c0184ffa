//! Operators whose first operand consists of several tensors: rows of an IPU and those beside them.
//!
//! Poplar joins such tensors without moving anything. A concatenation is a view, and the exchange
//! of the operation that reads it takes each element from its place. So nothing is copied to join
//! rows, and no joined tensor is kept for the backward pass. The gradient of the joined rows is one
//! tensor. The part that belongs to rows of other IPUs is copied out of it and sent back.

use super::halo::SplitRowsOp;
use crate::operators::{
    ConcatOp, GradientBuilder, GradientResult, GraphError, GraphProblem, LoweringContext,
    LoweringProblem, LoweringResult, NodeOperands, OperationSink, Operator, OperatorKey,
    PlannedCost, PlannedSizes, ShapeError,
};
use crate::poplar::tile_runs;
use crate::poputil::tensor_layout::TensorLayout;
use crate::shape::{BlockId, Tensor, TensorId, TensorInfo, TensorRole};
use std::sync::Arc;
use tilescope_report::units::TileRuns;

/// An operator that reads rows from several tensors. Its operands are the first piece, the other
/// operands of the operator, and then the other pieces, which follow the first one row by row.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct JoinedRowsOp {
    operator: OperatorKey,
    axis: usize,
    pieces: usize,
    /// The piece that belongs to the IPU itself.
    own: Option<usize>,
}

impl JoinedRowsOp {
    /// Applies `operator` to `pieces` pieces of rows along `axis`. Piece `own` belongs to the IPU
    /// itself.
    pub(crate) fn new(
        operator: &Arc<dyn Operator>,
        axis: usize,
        pieces: usize,
        own: Option<usize>,
    ) -> Self {
        debug_assert!(pieces > 0 && own.is_none_or(|own| own < pieces), "{own:?} of {pieces}");
        Self { operator: OperatorKey::new(operator), axis, pieces, own }
    }

    /// The operands, in which `pieces` replace the first operand of the operator.
    pub(crate) fn operands(pieces: &[TensorId], others: &[TensorId]) -> Vec<TensorId> {
        pieces[..1].iter().chain(others).chain(&pieces[1..]).copied().collect()
    }

    fn inner(&self) -> &dyn Operator {
        self.operator.operator()
    }

    /// Splits the operands into the pieces of rows and the others.
    fn pieces_of<'a, T>(&self, operands: &'a [T]) -> (Vec<&'a T>, &'a [T]) {
        let others = 1..(operands.len() + 1).saturating_sub(self.pieces).max(1);
        let pieces = operands.iter().take(1).chain(&operands[others.end..]).collect();
        (pieces, &operands[others])
    }

    /// The types of the operator's own operands.
    fn inner_types(&self, inputs: &[TensorInfo]) -> Result<Vec<TensorInfo>, ShapeError> {
        if inputs.len() < self.pieces {
            return Err(ShapeError::PieceCount(self.pieces));
        }
        let (pieces, others) = self.pieces_of(inputs);
        let pieces: Vec<TensorInfo> = pieces.into_iter().cloned().collect();
        let joined = ConcatOp { axis: self.axis }.infer(&pieces)?;
        Ok([&joined[..], others].concat())
    }

    /// The layout of the joined rows: each piece in its place.
    fn joined_layout(
        &self,
        lowering: &LoweringContext,
        pieces: &[&TensorId],
        joined: &TensorInfo,
    ) -> Option<TensorLayout> {
        let layouts: Option<Vec<&TensorLayout>> =
            pieces.iter().map(|piece| lowering.layout(**piece)).collect();
        let layouts = layouts?;
        let elements = layouts
            .iter()
            .fold(TileRuns::empty(), |sum, piece| tile_runs::add_per_tile(&sum, &piece.elements));
        let own = self.own.unwrap_or(0);
        let shape = &lowering.tensor_type(*pieces[own]).shape;
        let order = layouts[own].order.resized(shape, &joined.shape);
        Some(TensorLayout { elements, order })
    }

    /// Calls `ask` with the operator's view of the joined rows. Layouts that it sets stay in the
    /// context of `ask`. Its operands and results have their positions as numbers.
    fn on_joined<T>(
        &self,
        lowering: &LoweringContext,
        node: &NodeOperands,
        ask: impl FnOnce(&mut LoweringContext, &NodeOperands) -> T,
    ) -> Option<T> {
        let types: Vec<TensorInfo> =
            node.inputs.iter().map(|input| lowering.tensor_type(*input).clone()).collect();
        let types = self.inner_types(&types).ok()?;
        let (pieces, others) = self.pieces_of(node.inputs);
        let rest: Vec<TensorId> = others.iter().chain(node.outputs).copied().collect();
        let block = BlockId(0);
        let name = String::new();
        let joined = Tensor { name, ty: types[0].clone(), role: TensorRole::Activation, block };
        let known = rest.iter().map(|tensor| lowering.tensors[tensor.0].clone());
        let tensors: Vec<Tensor> = std::iter::once(joined).chain(known).collect();
        let LoweringContext { machine, training, planning, plans, .. } = *lowering;
        let mut inner = LoweringContext::new(&tensors, machine, training, planning, plans);
        let layouts = std::iter::once(self.joined_layout(lowering, &pieces, &types[0]))
            .chain(rest.iter().map(|tensor| lowering.layout(*tensor).cloned()));
        for (place, layout) in layouts.enumerate() {
            if let Some(layout) = layout {
                inner.set_layout(TensorId(place), layout);
            }
        }
        let places: Vec<TensorId> = (0..tensors.len()).map(TensorId).collect();
        let (inputs, outputs) = places.split_at(1 + others.len());
        Some(ask(&mut inner, &NodeOperands { inputs, outputs, ..*node }))
    }
}

impl Operator for JoinedRowsOp {
    fn kind(&self) -> &'static str {
        self.inner().kind()
    }

    fn infer(&self, inputs: &[TensorInfo]) -> Result<Vec<TensorInfo>, ShapeError> {
        self.inner().infer(&self.inner_types(inputs)?)
    }

    fn flops(&self, inputs: &[TensorInfo], outputs: &[TensorInfo]) -> u64 {
        self.inner_types(inputs).map_or(0, |inputs| self.inner().flops(&inputs, outputs))
    }

    fn differentiate(&self, backward: &mut GradientBuilder) -> GradientResult {
        let types: Vec<TensorInfo> =
            (0..backward.node.inputs.len()).map(|input| backward.input_type(input)).collect();
        let name = backward.node.name;
        let joined = self.inner_types(&types).map_err(|error| GraphError::new(name, error))?;
        let (pieces, others) = self.pieces_of(backward.node.inputs);
        let pieces: Vec<TensorId> = pieces.into_iter().copied().collect();
        let (wanted_pieces, wanted_others) = self.pieces_of(backward.wanted);
        let wanted: Vec<bool> = std::iter::once(wanted_pieces.into_iter().any(|wanted| *wanted))
            .chain(wanted_others.iter().copied())
            .collect();
        let inputs = [&[JOINED], others].concat();
        let mut sink =
            JoinedRowsSink { rows: self, pieces: &pieces, ty: &joined[0], graph: backward.graph };
        let mut inner = GradientBuilder {
            node: NodeOperands { inputs: &inputs, ..backward.node },
            output_gradients: backward.output_gradients,
            wanted: &wanted,
            graph: &mut sink,
        };
        let mut gradients = self.inner().differentiate(&mut inner)?;
        let of_rows = gradients.first().copied().flatten();
        let of_pieces = match of_rows {
            None => vec![None; self.pieces],
            Some(gradient) => {
                let (types, _) = self.pieces_of(&types);
                let rows = types.into_iter().map(|ty| ty.shape[self.axis]).collect();
                let split = SplitRowsOp { axis: self.axis, rows, own: self.own };
                let parts = backward.apply_all("grad/rows", split, &[gradient])?;
                parts.into_iter().map(Some).collect()
            }
        };
        gradients.splice(..1, of_pieces[..1].iter().copied());
        gradients.extend(&of_pieces[1..]);
        Ok(gradients)
    }

    fn is_planned(&self) -> bool {
        self.inner().is_planned()
    }

    fn create_operands(
        &self,
        lowering: &LoweringContext,
        node: &NodeOperands,
    ) -> Vec<Option<TensorLayout>> {
        let created =
            self.on_joined(lowering, node, |inner, node| self.inner().create_operands(inner, node));
        // Each piece is only a part of the rows.
        let mut created = created.unwrap_or_default();
        if let Some(rows) = created.first_mut() {
            *rows = None;
        }
        created
    }

    fn planned_cost(
        &self,
        lowering: &LoweringContext,
        node: &NodeOperands,
        sizes: PlannedSizes,
    ) -> Option<PlannedCost> {
        self.on_joined(lowering, node, |inner, node| self.inner().planned_cost(inner, node, sizes))?
    }

    fn serial_parts(&self, lowering: &LoweringContext, node: &NodeOperands) -> u64 {
        let parts =
            self.on_joined(lowering, node, |inner, node| self.inner().serial_parts(inner, node));
        parts.unwrap_or(1)
    }

    fn lower(&self, lowering: &mut LoweringContext, node: &NodeOperands) -> LoweringResult {
        let (pieces, others) = self.pieces_of(node.inputs);
        for piece in &pieces {
            lowering.layout_or_linear(**piece);
        }
        let rest: Vec<TensorId> = others.iter().chain(node.outputs).copied().collect();
        let lowered = self.on_joined(lowering, node, |inner, node| {
            let lowered = self.inner().lower(inner, node)?;
            let layouts: Vec<Option<TensorLayout>> =
                (1..=rest.len()).map(|place| inner.layout(TensorId(place)).cloned()).collect();
            Ok((lowered, layouts))
        });
        let (mut lowered, layouts) =
            lowered.ok_or_else(|| node.error(LoweringProblem::NotJoined))??;
        for (tensor, layout) in rest.into_iter().zip(layouts) {
            if let Some(layout) = layout {
                lowering.set_layout(tensor, layout);
            }
        }
        // All pieces are read as long as the joined rows are.
        let until = &mut lowered.liveness.inputs_until;
        let of_rows = until.first().copied().flatten();
        until.resize(1 + others.len(), None);
        until.extend(vec![of_rows; self.pieces - 1]);
        Ok(lowered)
    }
}

/// A placeholder for the joined rows while the operator is differentiated, not a tensor of a graph.
const JOINED: TensorId = TensorId(usize::MAX);

/// Receives the gradient operations of an operator on joined rows. Operations that read the rows
/// read the pieces instead.
struct JoinedRowsSink<'a> {
    rows: &'a JoinedRowsOp,
    pieces: &'a [TensorId],
    ty: &'a TensorInfo,
    graph: &'a mut dyn OperationSink,
}

impl OperationSink for JoinedRowsSink<'_> {
    fn tensor_type(&self, tensor: TensorId) -> &TensorInfo {
        if tensor == JOINED { self.ty } else { self.graph.tensor_type(tensor) }
    }

    fn constant(&mut self, name: &str, ty: TensorInfo) -> TensorId {
        self.graph.constant(name, ty)
    }

    fn add(
        &mut self,
        name: &str,
        operator: Arc<dyn Operator>,
        inputs: &[TensorId],
    ) -> Result<Vec<TensorId>, GraphError> {
        match inputs {
            [JOINED, others @ ..] if !others.contains(&JOINED) => {
                let JoinedRowsOp { axis, pieces, own, .. } = *self.rows;
                let operator = JoinedRowsOp::new(&operator, axis, pieces, own);
                let operands = JoinedRowsOp::operands(self.pieces, others);
                self.graph.add(name, Arc::new(operator), &operands)
            }
            _ if inputs.contains(&JOINED) => {
                Err(GraphError::new(name, GraphProblem::JoinedOperand))
            }
            _ => self.graph.add(name, operator, inputs),
        }
    }
}
