//! Reductions over some axes of a tensor, and elementwise operations of rows with their reduced
//! values.

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

/// Tensor on the tiles as rows along some axes, with one value for each row.
pub(crate) struct TensorRows {
    /// Element type of the tensor.
    pub dtype: DType,
    /// Layout of the tensor.
    pub layout: TensorLayout,
    dims: Vec<ReduceDim>,
    /// Elements on each tile, with whole and padded groups as in the dimensions.
    elements: TileRuns<Elements>,
    /// Dimensions and elements for reductions, whose results have no padding.
    reduced: (Vec<ReduceDim>, TileRuns<Elements>),
    /// Number of rows with elements on each tile.
    rows_on_tile: TileRuns<u64>,
    /// Distribution of the values of rows, if predetermined.
    result_mapping: Option<TileRuns<Elements>>,
    /// Use of the values of a reduction.
    result_use: ReduceResultUse,
}

/// Dimensions of a tensor in memory order, and its elements on each tile, which are as many: with
/// the padding of its groups if memory has it, without groups if groups and axes do not match.
fn dims_on_tiles(
    ty: &TensorInfo,
    layout: &TensorLayout,
    axes: &[usize],
    linear: &[ReduceDim],
) -> (Vec<ReduceDim>, TileRuns<Elements>) {
    let whole = layout.whole_groups();
    for order in [&layout.order, &layout.order.ungrouped()] {
        let dims = reduce::dims(&ty.shape, order, axes);
        let held = Elements(dims.iter().map(|dim| dim.size).product());
        if whole.total() == held {
            return (dims, whole);
        }
        if layout.elements.total() == held {
            return (dims, layout.elements.clone());
        }
    }
    (linear.to_vec(), layout.elements.clone())
}

impl TensorRows {
    /// Creates the rows of a tensor along `axes`.
    pub(crate) fn new(ty: &TensorInfo, layout: TensorLayout, axes: &[usize]) -> Self {
        let linear = reduce::dims(&ty.shape, &ElementOrder::Linear, axes);
        let (dims, elements) = dims_on_tiles(ty, &layout, axes, &linear);
        let rows_on_tile = reduce::columns_on_tiles(&dims, &elements);
        // Results have no padding. Groups that would add padding to them are omitted.
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

    /// Returns the same rows with a given layout of the values.
    pub(crate) fn with_result_mapping(self, values: TensorLayout) -> Self {
        Self { result_mapping: Some(values.elements), ..self }
    }

    /// Returns the same rows with a given use of the values.
    pub(crate) fn with_result(self, result: ReduceResultUse) -> Self {
        Self { result_use: result, ..self }
    }

    /// Layout of the values of rows, if predetermined.
    pub(crate) fn result_layout(&self) -> Option<TensorLayout> {
        self.result_mapping
            .clone()
            .map(|elements| TensorLayout { elements, order: ElementOrder::Linear })
    }

    /// Adds a reduction of each row to one value of type `output`. Returns the layout of the
    /// values.
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

    /// Adds the in-place operation of every row with its value. The values are first sent to the
    /// tiles of their rows.
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

    /// As [`Self::apply_broadcast`], with separate results.
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
        let tiles = machine.tiles;
        let speed = machine.exchange_speed();
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::targets::MK2;
    use proptest::prelude::*;
    use tilescope_report::units::Bytes;

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(300))]
        /// Every layout can be reduced, also one whose groups are longer than an axis or end inside
        /// it, as in a concatenation.
        #[test]
        fn tensors_in_groups_of_any_length_can_be_reduced(
            [rows, columns] in [1u64..60, 1u64..60],
            [made_rows, group] in [1u64..60, 1u64..60],
            grouped_axis in 0usize..3,
            reduced_axis in 0usize..2,
        ) {
            let machine = IpuTarget::all_tiles_of(MK2);
            let ty = TensorInfo::new([rows, columns], DType::Half);
            // The order of a tensor with other rows, resized: in groups, or column by column.
            let made = match grouped_axis {
                2 => ElementOrder::Linear.permuted(&[columns, made_rows], &[1, 0]),
                axis => ElementOrder::grouped(&[made_rows, columns], axis, group),
            };
            let order = made.resized(&[made_rows, columns], &[rows, columns]);
            let elements = TensorLayout::linear(ty.elements(), Bytes(2), machine.tiles).elements;
            let laid_out = TensorRows::new(&ty, TensorLayout { elements, order }, &[reduced_axis]);
            let mut work = OperationWork::default();
            let made =
                laid_out.reduce(&machine, &mut work, "Op", ReduceOperation::Add, DType::Half);
            let values = made.expect("a reduction").elements.total();
            prop_assert_eq!(values, Elements([columns, rows][reduced_axis]));
        }
    }
}
