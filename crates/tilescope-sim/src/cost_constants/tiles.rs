//! Cycles and messages of tiles.
//!
//! "All planned rows" are the gemm, fc and conv rows of Poplar's IPU Model op benchmarks,
//! `tests/data/poplar_ipumodel_ops.csv`. The six constants fitted on them were fitted together, by
//! least absolute relative error of cycles, with the phases that lowering creates for the rows. All
//! operations and chips share them. `tests/headless/validate.rs` states the remaining errors.

use super::ConstantUnit::{Count, Cycles, Ratio};
use super::cost_constants;

cost_constants! { TILE_CONSTANTS:
    /// Start of an exchange, including its sync; the run adds it once per phase
    EXCHANGE_START_CYCLES = 320.0, Cycles, Fitted {
        source: "cycles of all planned rows",
        serves: "every exchange",
    }

    /// Part of the start of an exchange that a trace shows as internal sync
    INTERNAL_SYNC_CYCLES = 100.0, Cycles, Measured {
        source: "trace of Graphcore's matmul tutorial",
        serves: "which part of an exchange traces show as sync",
    }

    /// Start of a compute set, including its sync; the run adds it once per compute set
    COMPUTE_START_CYCLES = 80.0, Cycles, Fitted {
        source: "cycles of all planned rows",
        serves: "every compute set",
    }

    /// Rearrangement of broadcast weights on the tile, per exchanged word
    WEIGHT_REARRANGE_CYCLES_PER_WORD = 0.241, Ratio("cycles/word"), Fitted {
        source: "cycles of all planned rows",
        serves: "matrix products, convolutions",
    }

    /// Rearrangement of data with elements smaller than a word, because exchanges move words; for float32 the best fit is 0
    SUBWORD_REARRANGE_CYCLES_PER_BYTE = 0.262, Ratio("cycles/byte"), Fitted {
        source: "cycles of all planned rows",
        serves: "planned operations, layout changes, stencils",
    }

    /// Gathering of the input of kernels larger than one on the tile
    KERNEL_GATHER_CYCLES_PER_BYTE = 0.068, Ratio("cycles/byte"), Fitted {
        source: "cycles of all planned rows",
        serves: "convolutions with kernels larger than one",
    }

    /// Cycles to gather one piece if channel groups do not divide the channels
    RAGGED_PIECE_COPY_CYCLES = 13.5, Ratio("cycles"), Fitted {
        source: "cycles of all planned rows",
        serves: "planned operations with odd sizes, stencils",
    }

    /// Start of on-tile copies, before the first byte moves
    ON_TILE_COPY_CYCLES = 200.0, Cycles, Fitted {
        source: "reduction rows whose results are written out of order",
        serves: "layout changes, reductions",
    }

    /// Pooling worker, beyond the published formula, which is newer than the rows
    POOL_WORKER_CYCLES = 22.0, Cycles, Fitted {
        source: "plans of the pooling rows",
        serves: "pooling",
    }

    /// Cost of each of many short messages for its receiver, excluding its words
    MESSAGE_CYCLES = 5.0, Cycles, Fitted {
        source: "reduction rows",
        serves: "exchanges of many short messages",
    }

    /// Rows of the blocks in which results of recurrent steps are transposed: samples stored together
    TRANSPOSED_BLOCK_ROWS = 8.0, Count("rows"), Assumed {
        source: "the layout is not public",
        serves: "recurrent layers",
    }

    /// Messages that a tile receives, and sends, when data moves to another mapping in the same order
    RELAYOUT_MESSAGES = 4.0, Count("messages"), Assumed {
        source: "guessed from the exchange code of published profiles",
        serves: "internal exchange code",
    }

    /// Messages when the order changes too
    TRANSPOSING_MESSAGES = 16.0, Count("messages"), Assumed {
        source: "guessed from the exchange code of published profiles",
        serves: "internal exchange code",
    }
}
