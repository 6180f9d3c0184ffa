//! Constants of the cost model that are fitted or assumed.

/// Cycles of one internal exchange before data moves: sync and set-up. Fitted on Poplar IPU Model
/// op benchmarks (tests/data/poplar_ipumodel_ops.csv).
pub const EXCHANGE_START_CYCLES: u64 = 370;

/// The part of [`EXCHANGE_START_CYCLES`] that a trace shows as internal sync: the matmul
/// tutorial's trace has about 100 cycles between steps.
pub const INTERNAL_SYNC_CYCLES: u64 = 100;

/// Cycles of one compute set besides its vertices. Fitted as above.
pub const COMPUTE_SET_CYCLES: u64 = 59;

/// Cycles per byte of on-tile arranging of rearranged data. Fitted as above.
pub const ARRANGE_CYCLES_PER_BYTE: f64 = 0.216;

/// Cycles of on-tile copies before the first byte moves: what the reductions whose results are
/// written out of order take longer (tests/data/poplar_ipumodel_ops.csv).
pub const ON_TILE_COPY_CYCLES: u64 = 200;

/// Cycles each of many short messages takes its receiver besides its words. Fitted on the
/// reductions of the same file.
pub const MESSAGE_CYCLES: u64 = 5;

/// Bytes of a tile on an IPU Model besides tensors, temporaries and vertices. Read off the memory of
/// the reductions of the same file.
pub const MODEL_TILE_BYTES: u64 = 14;

/// Bytes that the first tile has more: where the program keeps its own variables. From the fullest
/// tiles of the same rows.
pub const MODEL_FIRST_TILE_BYTES: u64 = 96;
