//! Quantities, ids and ranges of the IPU world, and the only code that prints them.
//!
//! Cycles, bytes, tiles and steps are all integers here, and mixing them up is *the* bug of this
//! field, so each has a type. Ranges are half-open. Values carried per tile are stored as
//! [`TileRuns`]: neighbouring tiles with the same value share one entry, because a planned
//! operation gives the same work to nearly all tiles.

mod format;
mod ids;
mod quantity;
mod range;
mod tile_runs;
mod timestamp;

pub use format::{
    ByteUnits, NumberFormat, binary_bytes, exact_bytes, exact_real, fine_percent, grouped,
    grouped_real, grouped_wide, percent, percentage_points, seconds, short_count, short_cycles,
    with_prefix,
};
pub use ids::{
    ComputeSetId, DataBufferId, DataFlowId, IpuId, OperationId, ProgramId, ReplicaClassId,
    ReplicaIpu, StepId, TileId, VariableId, VertexTypeId,
};
pub use quantity::{Bytes, Cycles, Elements, Hertz, Quantity};
pub use range::{CycleRange, TileRange};
pub use tile_runs::TileRuns;
pub use timestamp::format_timestamp;
