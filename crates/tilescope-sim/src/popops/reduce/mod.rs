//! Reductions over any dimensions of a tensor that is already on the tiles.
//!
//! The method is that of poplibs (lib/popops/reduction). Each tile first reduces its own elements.
//! If results are spread over many tiles, further stages exchange partial results, spread over the
//! IPU. The last stage computes the results on few tiles. The vertices of a tile depend on the
//! order of the elements in its memory.

mod compute_sets;
mod cycles;
mod intermediate_partials;
mod introspection;
mod memory_stretches;
mod operation;
mod reduction_task;
mod region_reduction;
mod region_splits;
mod stages;
mod worker_assignment;

pub use cycles::ReductionSpecialisation;
#[cfg(test)]
pub(crate) use introspection::pieces;
pub(crate) use introspection::{ColumnPiece, ReduceDim, collapse, column_count};
pub(crate) use memory_stretches::{MemoryStretchShape, stretches};
pub use operation::ReduceOperation;

use super::elementwise;
use crate::poplar::work::OperationWork;
use crate::poputil::tensor_layout::ElementOrder;
use crate::shape::DType;
use crate::targets::BytesPerCycle;
use tilescope_report::units::{Elements, TileRuns};

/// Operands and result of a reduction.
#[derive(Clone, Debug)]
pub(crate) struct ReductionRequest<'a> {
    /// Debug name, such as `bias/Reduce`.
    pub name: &'a str,
    /// Operation that combines elements.
    pub operation: ReduceOperation,
    /// Dimensions in memory order.
    pub dims: &'a [ReduceDim],
    /// Elements of the input on each tile: consecutive stretches of its memory in tile order.
    pub input: &'a TileRuns<Elements>,
    /// Element type of the input.
    pub dtype: DType,
    /// Element type of the result.
    pub output: DType,
    /// Use of the result.
    pub result: ReduceResultUse,
    /// Elements of the result on each tile. `None` distributes the result from tile 0. Results that
    /// need no exchange stay on the tiles that compute them.
    pub output_mapping: Option<&'a TileRuns<Elements>>,
    /// Number of tiles of the IPU.
    pub tiles: u32,
    /// Exchange speed of a tile.
    pub speed: BytesPerCycle,
}

/// Use of the values that a reduction computes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct ReduceResultUse {
    /// True if they are added to existing values.
    pub update: bool,
    /// True if they are multiplied by a factor first.
    pub scaled: bool,
}

impl ReduceResultUse {
    pub(crate) const PLAIN: Self = Self { update: false, scaled: false };
}

/// Error of a reduction that is impossible.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ReduceError {
    #[error("a dimension of size 0 cannot be reduced")]
    Empty,
    /// There are more elements than can be counted.
    #[error("the product of the dimensions overflows")]
    TooLarge,
    /// The number of elements in the layout differs from that of the shape.
    #[error("the tiles hold {} elements, the shape has {}", .held.0, .expected.0)]
    Mismatch {
        /// Elements on the tiles.
        held: Elements,
        /// Elements of the shape.
        expected: Elements,
    },
}

/// Returns the dimensions of a tensor in memory order. A short group is padded to a whole one.
/// Adjacent axes that are both reduced, or both kept, count as one, so that views of an axis of
/// memory are one axis again.
pub(crate) fn dims(shape: &[u64], order: &ElementOrder, reduced: &[usize]) -> Vec<ReduceDim> {
    let mut axes = Vec::new();
    for (axis, size) in shape.iter().enumerate() {
        axes.push(ReduceDim { size: *size, reduced: reduced.contains(&axis) });
    }
    let joined = introspection::collapse(&axes);
    let sizes: Vec<u64> = joined.iter().map(|dim| dim.size).collect();
    let mut dims = Vec::new();
    for dim in order.axis_dims(&sizes) {
        dims.push(ReduceDim { size: dim.size, reduced: joined[dim.axis].reduced });
    }
    dims
}

/// Number of different columns with elements on each tile.
pub(crate) fn columns_on_tiles(dims: &[ReduceDim], input: &TileRuns<Elements>) -> TileRuns<u64> {
    memory_stretches::columns_on_tiles(&introspection::collapse(dims), input)
}

/// Adds the phases of a reduction to `work` and returns the result's elements per tile.
///
/// # Errors
///
/// Fails if the dimensions are empty, overflow, or do not fit the layout.
pub(crate) fn add(
    work: &mut OperationWork,
    reduction: &ReductionRequest,
) -> Result<TileRuns<Elements>, ReduceError> {
    let elements = reduction
        .dims
        .iter()
        .try_fold(1u64, |count, dim| count.checked_mul(dim.size))
        .map(Elements)
        .ok_or(ReduceError::TooLarge)?;
    let held = reduction.input.total();
    if elements.is_zero() {
        return Err(ReduceError::Empty);
    }
    if held != elements {
        return Err(ReduceError::Mismatch { held, expected: elements });
    }
    let dims = introspection::collapse(reduction.dims);
    // Only dimensions of size one are reduced, so elements stay in place, but may change their
    // type.
    if dims.iter().all(|dim| !dim.reduced) {
        let name = format!("{}/ReduceCast", reduction.name);
        let input = reduction.input;
        work.push(match reduction.result {
            ReduceResultUse::PLAIN => {
                elementwise::cast(&name, reduction.dtype, reduction.output, input)
            }
            _ => elementwise::scaled_add(&name, reduction.output, input),
        });
        return Ok(input.clone());
    }
    Ok(stages::ReductionStages::new(reduction, &dims).lower(work))
}

#[cfg(test)]
mod tests;
