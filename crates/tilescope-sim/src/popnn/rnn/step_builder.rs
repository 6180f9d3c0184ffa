//! Builder of one step of a recurrent layer.

use super::{RnnParams, push};
use crate::cost_constants::TRANSPOSED_BLOCK_ROWS;
use crate::poplar::exchange::{self, TileMessages};
use crate::poplar::tile_runs;
use crate::poplar::work::OperationWork;
use crate::popnn::NonLinearityType;
use crate::popops::elementwise::{
    self, BinaryOpType, ElementwiseExtent, ElementwiseOp, FusedExpression, UnaryOpType, cycles,
};
use crate::popops::relayout::{COPY_SPEED, on_tile_copies};
use crate::popops::transpose::{TransposeMatrices, transpose};
use crate::shape::DType;
use crate::targets::IpuTarget;
use tilescope_report::units::{Bytes, Cycles, Elements, TileRange, TileRuns};

/// Phases of one step, in order.
pub(crate) struct RnnStepBuilder<'a> {
    machine: &'a IpuTarget,
    layer: RnnParams,
    /// Elements on each tile of a tensor of the state's size.
    state: TileRuns<Elements>,
    work: OperationWork,
}

impl<'a> RnnStepBuilder<'a> {
    pub(crate) fn new(machine: &'a IpuTarget, layer: RnnParams, state: TileRuns<Elements>) -> Self {
        Self { machine, layer, state, work: OperationWork::default() }
    }

    pub(crate) fn finish(self) -> OperationWork {
        self.work
    }

    fn dtype(&self) -> DType {
        self.layer.dtype
    }

    fn units(&self, count: u64) -> TileRuns<Elements> {
        self.state.map(|elements| *elements * count)
    }

    /// Slices this step's part from a sequence. `elements` is the part on each tile.
    pub(crate) fn slice(&mut self, what: &str, elements: &TileRuns<Elements>) {
        self.dynamic(&format!("{what}/dynamicSlice"), "DynamicSlice1D", elements);
    }

    /// Writes this step's part of a sequence.
    pub(crate) fn update(&mut self, what: &str, elements: &TileRuns<Elements>) {
        self.dynamic(&format!("{what}/dynamicUpdate"), "DynamicUpdateSlice1D", elements);
    }

    /// Adds a dynamic slice or update. Every tile counts the steps itself (Rnn.cpp: the loop
    /// counter is replicated).
    fn dynamic(&mut self, name: &str, kind: &str, elements: &TileRuns<Elements>) {
        let dtype = self.dtype();
        let vertex = format!("popops::{kind}<{}>", dtype.poplar_name());
        let phase = elementwise::phase(name, vertex, 3, elements, |count| {
            cycles::dynamic_slice(dtype, *count, 1)
        });
        push(&mut self.work, phase);
    }

    /// Appends the phases of a product.
    pub(crate) fn append(&mut self, product: OperationWork) {
        self.work.append(product);
    }

    /// Copies `elements` of each tile to the same tile.
    pub(crate) fn copy_on_tile(&mut self, what: &str, elements: &TileRuns<Elements>) {
        let cycles = elements.map(|count| COPY_SPEED.cycles_for(*count * self.dtype().bytes()));
        push(&mut self.work, on_tile_copies(what, "poplar_rt::Memcpy64Bit", &cycles));
    }

    /// Copies one tensor of the state's size.
    pub(crate) fn keep_unit(&mut self, what: &str) {
        let state = self.state.clone();
        self.copy_on_tile(what, &state);
    }

    /// Moves a product's result to the tiles of `elements`, after a transposition in groups that
    /// makes the state's dimension innermost. `more` bytes are moved in the same exchange.
    pub(crate) fn gather(
        &mut self,
        what: &str,
        elements: &TileRuns<Elements>,
        more: &TileRuns<Bytes>,
    ) {
        let dtype = self.dtype();
        let vertex = format!("poplar_rt::Transpose<{}>", dtype.poplar_name());
        let name = format!("{what}/Transpose");
        let rows = self.layer.batch.min(TRANSPOSED_BLOCK_ROWS.count());
        let phase = elementwise::phase(&name, vertex, 2, elements, |count| {
            let matrices = TransposeMatrices { count: 1, rows, columns: count.0.div_ceil(rows) };
            transpose(dtype, matrices)
        });
        push(&mut self.work, phase);
        let bytes = tile_runs::add_per_tile(&elements.map(|count| *count * dtype.bytes()), more);
        let speed = self.machine.exchange_speed();
        let tiles = self.machine.tiles;
        self.work.push_some(exchange::phase(
            what,
            &bytes,
            &bytes,
            TileMessages::each_way(2),
            tiles,
            speed,
        ));
    }

    /// Moves units from their product, and adds the bias of each to all samples.
    pub(crate) fn gather_units(&mut self, what: &str, units: u64) {
        let elements = self.units(units);
        let bias = elements.map(|count| *count * self.layer.dtype.bytes());
        self.gather(what, &elements, &bias);
        self.in_place("AddBias", BinaryOpType::Add, units);
    }

    /// Adds a binary operation on `units` tensors of the state's size. Each is a variable of its
    /// own.
    pub(crate) fn binary(&mut self, what: &str, operation: BinaryOpType, units: u64) {
        self.arithmetic(what, operation, units, false);
    }

    /// As [`Self::binary`], overwriting the first operand.
    pub(crate) fn in_place(&mut self, what: &str, operation: BinaryOpType, units: u64) {
        self.arithmetic(what, operation, units, true);
    }

    fn arithmetic(&mut self, what: &str, operation: BinaryOpType, units: u64, in_place: bool) {
        let dtype = self.dtype();
        // Units are separate variables, so several of them need a vertex for scattered regions.
        let form = match (units, in_place) {
            (1, false) => "BinaryOp1DSupervisor",
            (1, true) => "BinaryOp1DInPlaceSupervisor",
            (_, false) => "BinaryOp2D",
            (_, true) => "BinaryOp2DInPlace",
        };
        let op = operation.name();
        let ty = dtype.poplar_name();
        let vertex = format!("popops::{form}<popops::expr::BinaryOpType::{op},{ty}>");
        let edges = if in_place { 2 } else { 3 };
        let phase = elementwise::phase(what, vertex, edges, &self.state, |elements| {
            let extent = ElementwiseExtent { elements: *elements * units, stretches: units };
            cycles::binary(operation, dtype, extent, in_place)
        });
        push(&mut self.work, phase);
    }

    /// Adds a unary operation on one tensor of the state's size.
    pub(crate) fn unary(&mut self, what: &str, operation: UnaryOpType) {
        let phase = elementwise::apart(
            what,
            ElementwiseOp::Unary(operation),
            self.layer.dtype,
            &self.state,
        );
        push(&mut self.work, phase);
    }

    /// Adds non-linearities of several units in one compute set. Their vertices run one after the
    /// other.
    pub(crate) fn gates(&mut self, what: &str, gates: &[(NonLinearityType, u64)]) {
        self.together(what, gates, NonLinearityType::cycles);
    }

    pub(crate) fn gate_gradients(&mut self, what: &str, gates: &[(NonLinearityType, u64)]) {
        self.together(what, gates, NonLinearityType::backward_cycles);
    }

    fn together(
        &mut self,
        what: &str,
        gates: &[(NonLinearityType, u64)],
        cycles: fn(NonLinearityType, DType, Elements) -> Cycles,
    ) {
        let dtype = self.dtype();
        let vertex = format!(
            "popnn::NonLinearitySupervisor<{},popnn::NonLinearityType::{}>",
            dtype.poplar_name(),
            gates.first().map_or("SIGMOID", |(gate, _)| gate.name())
        );
        let phase = elementwise::phase(what, vertex, 1, &self.state, |elements| {
            gates.iter().map(|(gate, units)| cycles(*gate, dtype, *elements * *units)).sum()
        });
        push(&mut self.work, phase);
    }

    /// Adds an elementwise expression computed by one dedicated vertex.
    pub(crate) fn expression(&mut self, what: &str, expression: FusedExpression, in_place: bool) {
        let values = (self.dtype(), &self.state);
        let phase = elementwise::fused(what, expression, values, in_place);
        push(&mut self.work, phase);
    }

    pub(crate) fn count(&mut self) {
        let one = TileRuns::uniform(TileRange::first_tiles(1), Elements(1));
        let phase = elementwise::in_place(
            "seqIdxIncr",
            ElementwiseOp::Binary(BinaryOpType::Add),
            DType::Int,
            &one,
        );
        push(&mut self.work, phase);
    }
}
