//! Reductions over some axes of a tensor, and the results of reductions applied to the rows they
//! came from.

use super::broadcast::{BroadcastForm, BroadcastOperation};
use super::elementwise::BinaryOpType;
use super::reduce::{
    self, ReduceDim, ReduceError, ReduceOperation, ReduceResultUse, ReductionRequest,
};
use crate::poplar::exchange::{self, TileMessages};
use crate::poplar::work::{OperationWork, TemporaryVariable};
use crate::poputil::tensor_layout::{ElementOrder, TensorLayout};
use crate::shape::{DType, TensorInfo};
use crate::targets::IpuTarget;
use tilescope_report::MemoryCategory;
use tilescope_report::units::{Elements, TileRuns};

/// A tensor on the tiles, seen as rows along some axes: one value belongs to each row.
pub(crate) struct TensorRows {
    /// Element type of the tensor.
    pub dtype: DType,
    /// How the tensor lies.
    pub layout: TensorLayout,
    dims: Vec<ReduceDim>,
    /// Elements on each tile, groups whole and padded as the dimensions are.
    elements: TileRuns<Elements>,
    /// The same for reductions, whose results have no padding.
    reduced: (Vec<ReduceDim>, TileRuns<Elements>),
    /// Rows that each tile holds elements of.
    rows_on_tile: TileRuns<u64>,
    /// Where one value for each row goes, if that is decided beforehand.
    result_mapping: Option<TileRuns<Elements>>,
    /// What becomes of the values of a reduction.
    result_use: ReduceResultUse,
}

impl TensorRows {
    /// Rows of a tensor that run along `axes`.
    pub(crate) fn new(ty: &TensorInfo, layout: TensorLayout, axes: &[usize]) -> Self {
        let dims = reduce::dims(&ty.shape, &layout.order, axes);
        let mut elements = layout.whole_groups();
        let held: u64 = dims.iter().map(|dim| dim.size).product();
        if Elements(held) != elements.total() {
            // Groups end inside the axes, so that the shape is without padding.
            elements = layout.elements.clone();
        }
        let rows_on_tile = reduce::columns_on_tiles(&dims, &elements);
        let linear = reduce::dims(&ty.shape, &ElementOrder::Linear, axes);
        // Results have no padding: what groups would add to them is left out with the groups.
        let reduced = if reduce::column_count(&dims) > reduce::column_count(&linear) {
            (linear, layout.elements.clone())
        } else {
            (dims.clone(), elements.clone())
        };
        Self {
            dtype: ty.dtype,
            layout,
            dims,
            elements,
            reduced,
            rows_on_tile,
            result_mapping: None,
            result_use: ReduceResultUse::PLAIN,
        }
    }

    /// The same rows, whose reductions leave their values so.
    pub(crate) fn with_result_mapping(self, values: TensorLayout) -> Self {
        Self { result_mapping: Some(values.elements), ..self }
    }

    /// The same rows, whose reductions use their values so.
    pub(crate) fn with_result(self, result: ReduceResultUse) -> Self {
        Self { result_use: result, ..self }
    }

    /// Where one value for each row goes, if that is decided beforehand.
    pub(crate) fn result_layout(&self) -> Option<TensorLayout> {
        self.result_mapping
            .clone()
            .map(|elements| TensorLayout { elements, order: ElementOrder::Linear })
    }

    /// Adds a reduction of each row to one value of type `output`; returns how the values lie.
    pub(crate) fn reduce(
        &self,
        machine: &IpuTarget,
        work: &mut OperationWork,
        name: &str,
        operation: ReduceOperation,
        output: DType,
    ) -> Result<TensorLayout, ReduceError> {
        let reduction = ReductionRequest {
            name,
            operation,
            dims: &self.reduced.0,
            input: &self.reduced.1,
            dtype: self.dtype,
            output,
            result: self.result_use,
            output_mapping: self.result_mapping.as_ref(),
            tiles: machine.tiles,
            speed: machine.exchange_speed(),
        };
        let elements = reduce::add(work, &reduction)?;
        Ok(TensorLayout { elements, order: ElementOrder::Linear })
    }

    /// Adds the operation of every row with its value, in place: the values are sent to the tiles
    /// of their rows first.
    pub(crate) fn apply_broadcast(
        &self,
        machine: &IpuTarget,
        work: &mut OperationWork,
        name: &str,
        operation: BinaryOpType,
        values: &TensorLayout,
    ) {
        let in_place = BroadcastForm { operation, dtype: self.dtype, in_place: true };
        self.apply_broadcast_form(machine, work, name, in_place, values);
    }

    /// The same with results of their own.
    pub(crate) fn apply_broadcast_apart(
        &self,
        machine: &IpuTarget,
        work: &mut OperationWork,
        name: &str,
        operation: BinaryOpType,
        values: &TensorLayout,
    ) {
        let apart = BroadcastForm { operation, dtype: self.dtype, in_place: false };
        self.apply_broadcast_form(machine, work, name, apart, values);
    }

    fn apply_broadcast_form(
        &self,
        machine: &IpuTarget,
        work: &mut OperationWork,
        name: &str,
        form: BroadcastForm,
        values: &TensorLayout,
    ) {
        self.exchange_row_values(machine, work, name, values);
        let dims = reduce::collapse(&self.dims);
        let broadcast = BroadcastOperation::new(form, &dims, &self.elements);
        if let Some(copies) = broadcast.copies(name) {
            let start = work.phases().len();
            work.push(copies);
            work.temporaries.push(TemporaryVariable::anywhere(
                format!("{name}/rearranged"),
                MemoryCategory::Rearrangement,
                broadcast.copied_bytes(),
                start..start + 2,
            ));
        }
        work.push(broadcast.compute(name));
    }

    /// Sends each value to the tiles that hold elements of its row.
    fn exchange_row_values(
        &self,
        machine: &IpuTarget,
        work: &mut OperationWork,
        name: &str,
        values: &TensorLayout,
    ) {
        let bytes = self.dtype.bytes();
        let needed = self.rows_on_tile.map(|rows| *rows * bytes);
        let start = work.phases().len();
        let (tiles, speed) = (machine.tiles, machine.exchange_speed());
        let sent = values.bytes(bytes);
        work.push_some(exchange::phase(
            name,
            &needed,
            &sent,
            TileMessages::each_way(2),
            tiles,
            speed,
        ));
        work.temporaries.push(TemporaryVariable::anywhere(
            format!("{name}/broadcast"),
            MemoryCategory::Message,
            needed,
            start..work.phases().len() + 1,
        ));
    }
}
