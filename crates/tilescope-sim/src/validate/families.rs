//! The kinds of operations that a file may contain: the parameters of each, and the program that a
//! benchmark tool runs for it (poplibs tools/).

use super::case::OpBenchmarkCase;
use super::config::{RowConfig, RowProblem};
use super::{matmul_conv, passes, pool_reduce_embedding, rnn, vertex};
use crate::targets::Chip;
use tilescope_report::units::Cycles;

/// A kind of operation.
#[derive(Debug)]
pub struct OperationFamily {
    /// The name in a file.
    pub name: &'static str,
    pub about: &'static str,
    pub keys: &'static [&'static str],
    /// True if its passes can be run separately.
    pub has_passes: bool,
    pub(super) measured: MeasuredPart,
}

/// The part of a program that a row of a family measures.
#[derive(Debug)]
pub(super) enum MeasuredPart {
    /// An operation: the function makes the graph of one row.
    Operation(fn(&RowConfig, &'static Chip) -> Result<OpBenchmarkCase, RowProblem>),
    /// A vertex of each tile: the function returns its cycles. Nothing is planned, laid out or
    /// exchanged.
    Vertex(fn(&RowConfig, &'static Chip) -> Result<Cycles, RowProblem>),
}

/// All families of operations.
pub const FAMILIES: &[OperationFamily] = &[
    OperationFamily {
        name: "gemm",
        about: "C = beta C + alpha A[m,k] x B[k,n]",
        keys: &[
            "m",
            "k",
            "n",
            "alpha",
            "beta",
            "data-type",
            "partials-type",
            "available-memory-proportion",
        ],
        has_passes: false,
        measured: MeasuredPart::Operation(matmul_conv::gemm),
    },
    OperationFamily {
        name: "fc",
        about: "fully connected layer: forward, backward, weight update, or one of them",
        keys: &[
            "batch-size",
            "input-size",
            "output-size",
            "num-groups",
            "data-type",
            "partials-type",
            "available-memory-proportion",
            "bias",
        ],
        has_passes: true,
        measured: MeasuredPart::Operation(matmul_conv::fully_connected),
    },
    OperationFamily {
        name: "conv",
        about: "convolution: forward, backward, weight update, or one of them",
        keys: &[
            "field",
            "kernel-size",
            "input-channels",
            "output-channels",
            "conv-groups",
            "batch-size",
            "stride",
            "in-dilation",
            "kernel-dilation",
            "padding",
            "padding-lower",
            "padding-upper",
            "truncation",
            "truncation-lower",
            "truncation-upper",
            "kernel-padding",
            "kernel-padding-lower",
            "kernel-padding-upper",
            "kernel-truncation",
            "kernel-truncation-lower",
            "kernel-truncation-upper",
            "output-padding",
            "output-padding-lower",
            "output-padding-upper",
            "output-truncation",
            "output-truncation-lower",
            "output-truncation-upper",
            "flip-input",
            "flip-kernel",
            "data-type",
            "input-type",
            "output-type",
            "partials-type",
            "available-memory-proportion",
            "bias",
        ],
        has_passes: true,
        measured: MeasuredPart::Operation(matmul_conv::convolution),
    },
    OperationFamily {
        name: "pooling",
        about: "pooling: forward and backward, or one of them",
        keys: &[
            "field",
            "kernel",
            "channels",
            "batch-size",
            "stride",
            "padding",
            "padding-lower",
            "padding-upper",
            "fwd-chans-per-group",
            "pooling-type",
            "data-type",
        ],
        has_passes: true,
        measured: MeasuredPart::Operation(pool_reduce_embedding::pooling),
    },
    OperationFamily {
        name: "reduction",
        about: "reduction of some dimensions",
        keys: &["shape", "dims", "operation", "type", "data-type", "scale", "update"],
        has_passes: false,
        measured: MeasuredPart::Operation(pool_reduce_embedding::reduction),
    },
    OperationFamily {
        name: "embedding",
        about: "gather of rows of a table, then their update, or one of them",
        keys: &["shape", "num-indices", "data-type"],
        has_passes: true,
        measured: MeasuredPart::Operation(pool_reduce_embedding::embedding),
    },
    OperationFamily {
        name: "lstm",
        about: "LSTM layer: forward pass, one of the others, or all",
        keys: RECURRENT_KEYS,
        has_passes: true,
        measured: MeasuredPart::Operation(rnn::lstm),
    },
    OperationFamily {
        name: "gru",
        about: "GRU layer: forward pass, one of the others, or all",
        keys: RECURRENT_KEYS,
        has_passes: true,
        measured: MeasuredPart::Operation(rnn::gru),
    },
    OperationFamily {
        name: "vertex",
        about: "a single vertex on a tile, by its Poplar type name",
        keys: &["vertex", "rows", "in-channels", "out-channels", "conv-groups"],
        has_passes: false,
        measured: MeasuredPart::Vertex(vertex::cycles),
    },
];

/// Parameters of every family: the tiles to use, and parameters that only affect what a tool prints
/// or checks.
const COMMON_KEYS: [&str; 4] = ["tiles-per-ipu", "ignore-data", "report-plan", "tolerance"];

const RECURRENT_KEYS: &[&str] = &[
    "batch-size",
    "sequence-size",
    "input-size",
    "output-size",
    "data-type",
    "partials-type",
    "available-memory-proportion",
    "cell-order",
];

impl OperationFamily {
    /// The family with this name.
    pub(crate) fn find(name: &str) -> Option<&'static Self> {
        FAMILIES.iter().find(|family| family.name == name)
    }

    /// Rejects parameters that the family does not have.
    pub(super) fn check_keys(&self, config: &RowConfig) -> Result<(), RowProblem> {
        for key in config.keys() {
            let is_known = COMMON_KEYS.contains(&key)
                || self.keys.contains(&key)
                || self.has_passes && passes::PASS_KEYS.contains(&key);
            if !is_known {
                let problem = format!("{}: parameter {key} is not supported", self.name);
                return Err(RowProblem::Unsupported(problem));
            }
        }
        Ok(())
    }
}
