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
