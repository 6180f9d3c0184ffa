//! The fitted constants of lowering: what published formulas do not say.
//!
//! `docs/model.md` lists them all. The first six but for the internal sync were fitted together, by least
//! absolute relative error, on the cycles of the gemm,
//! fc and conv rows of Poplar's IPU Model op benchmarks (`tests/data/poplar_ipumodel_ops.csv`),
//! with the phases that lowering makes of them. They are shared by all operations and chips.
//! `tests/headless/validate.rs` states the errors that remain.

use tilescope_report::units::{Bytes, Cycles};

/// Cycles to start an exchange phase, sync included. Added once per phase by the run.
/// Fitted on Poplar IPU Model op benchmarks, `tests/data/poplar_ipumodel_ops.csv`.
pub const EXCHANGE_START_CYCLES: Cycles = Cycles(320);

/// The part of [`EXCHANGE_START_CYCLES`] that a trace shows as internal sync: the trace of
/// Poplar's matmul tutorial has about 100 cycles between steps.
pub(crate) const INTERNAL_SYNC_CYCLES: Cycles = Cycles(100);

/// Cycles to start a compute set, sync included. Added once per compute set by the run.
/// Fitted on Poplar IPU Model op benchmarks, `tests/data/poplar_ipumodel_ops.csv`.
pub(crate) const COMPUTE_START_CYCLES: Cycles = Cycles(80);

/// Cycles to arrange broadcast weights on the tile, per cycle of their exchange at 4 bytes
/// per cycle. Fitted on Poplar IPU Model op benchmarks, `tests/data/poplar_ipumodel_ops.csv`.
pub(crate) const WEIGHT_REARRANGE_CYCLES_PER_EXCHANGE_CYCLE: f64 = 0.241;

/// Cycles per byte of rearranged data whose elements are smaller than a word, for exchanges
/// move words. Fitted on Poplar IPU Model op benchmarks, `tests/data/poplar_ipumodel_ops.csv`; of
/// floats the best fit is 0.
pub(crate) const SUBWORD_REARRANGE_CYCLES_PER_BYTE: f64 = 0.262;

/// Cycles per byte of the input of kernels larger than one, spent gathering it on the tile.
/// Fitted on Poplar IPU Model op benchmarks, `tests/data/poplar_ipumodel_ops.csv`.
pub(crate) const KERNEL_GATHER_CYCLES_PER_BYTE: f64 = 0.068;

/// Cycles per piece gathered where groups of channels do not divide the channels. Fitted on
/// Poplar IPU Model op benchmarks, `tests/data/poplar_ipumodel_ops.csv`.
pub(crate) const RAGGED_PIECE_COPY_CYCLES: f64 = 13.5;

/// Bytes of code that copies rearranged operands into place, where code is compiled: the copies of
/// several widths that Poplar's compiler makes besides the vertices of poplibs. Fitted on the
/// Inception convolutions with kernels of one of the same file.
pub(crate) const REARRANGING_CODE_BYTES: Bytes = Bytes(1_400);

/// Cycles of on-tile copies before the first byte moves: what the reductions whose results are
/// written out of order take longer (tests/data/poplar_ipumodel_ops.csv).
pub(crate) const ON_TILE_COPY_CYCLES: Cycles = Cycles(200);

/// Cycles of a worker that pools besides those of the published formula, which is younger than the
/// rows: from the plans the rows took.
pub(crate) const POOL_WORKER_CYCLES: Cycles = Cycles(22);

/// Cycles to copy a half that no neighbour goes with: words are read and written for it, by one
/// worker. Fitted on the pooling of single channels of the same file.
pub(crate) const HALF_COPY_CYCLES: Cycles = Cycles(10);

/// Cycles each of many short messages takes its receiver besides its words. Fitted on the
/// reductions of the same file.
pub(crate) const MESSAGE_CYCLES: Cycles = Cycles(5);

/// Bytes of a tile on an IPU Model besides tensors, temporaries and vertices. Read off the memory of
/// the reductions of the same file.
pub(crate) const MODEL_TILE_BYTES: Bytes = Bytes(14);

/// Bytes that the first tile has more: where the program keeps its own variables. From the fullest
/// tiles of the same rows.
pub(crate) const MODEL_FIRST_TILE_BYTES: Bytes = Bytes(96);

/// Cycles a worker takes for one more operation on a vector inside an expression that has a vertex
/// of its own: arithmetic and a load. Assumed; the generated code is not public.
pub(crate) const EXPRESSION_VECTOR_CYCLES: Cycles = Cycles(2);
