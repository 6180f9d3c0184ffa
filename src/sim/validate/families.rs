//! The kinds of operations a file may have: parameters of each, and what a benchmark tool runs for
//! it (poplibs tools/).

use super::config::{Config, Problem};
use super::{products, recurrent, tensors};
use crate::sim::lower::alone::Program;
use crate::sim::targets::Chip;

/// A kind of operation.
#[derive(Debug)]
pub struct Family {
    /// Name in a file.
    pub name: &'static str,
    /// What is run.
    pub about: &'static str,
    /// Parameters it knows.
    pub keys: &'static [&'static str],
    /// The program of one operation.
    pub(super) program: fn(&Config, &'static Chip) -> Result<Program, Problem>,
}

/// Every kind of operation.
pub const FAMILIES: &[Family] = &[
    Family {
        name: "gemm",
        about: "C += A[m,k] x B[k,n]",
        keys: &["m", "k", "n", "data-type", "partials-type", "tiles-per-ipu"],
        program: products::gemm,
    },
    Family {
        name: "fc",
        about: "fully connected layer: forward, backward, weight update",
        keys: &[
            "batch-size",
            "input-size",
            "output-size",
            "num-groups",
            "data-type",
            "partials-type",
            "bias",
            "tiles-per-ipu",
        ],
        program: products::fully_connected,
    },
    Family {
        name: "conv",
        about: "convolution: forward, backward, weight update",
        keys: &[
            "field",
            "kernel-size",
            "input-channels",
            "output-channels",
            "conv-groups",
            "batch-size",
            "stride",
            "kernel-dilation",
            "padding",
            "padding-lower",
            "padding-upper",
            "data-type",
            "partials-type",
            "bias",
            "tiles-per-ipu",
        ],
        program: products::convolution,
    },
    Family {
        name: "pooling",
        about: "pooling: forward and backward",
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
            "tiles-per-ipu",
        ],
        program: tensors::pooling,
    },
    Family {
        name: "reduction",
        about: "reduction of some dimensions",
        keys: &[
            "shape",
            "dims",
            "operation",
            "type",
            "data-type",
            "scale",
            "update",
            "tiles-per-ipu",
        ],
        program: tensors::reduction,
    },
    Family {
        name: "embedding",
        about: "gather of rows of a table, then their update",
        keys: &["shape", "num-indices", "data-type", "tiles-per-ipu"],
        program: tensors::embedding,
    },
    Family {
        name: "lstm",
        about: "LSTM layer: forward pass, or all passes",
        keys: RECURRENT_KEYS,
        program: recurrent::lstm,
    },
    Family {
        name: "gru",
        about: "GRU layer: forward pass, or all passes",
        keys: RECURRENT_KEYS,
        program: recurrent::gru,
    },
];

const RECURRENT_KEYS: &[&str] = &[
    "batch-size",
    "sequence-size",
    "input-size",
    "output-size",
    "data-type",
    "partials-type",
    "phase",
    "cell-order",
    "tiles-per-ipu",
];

impl Family {
    /// The family of that name.
    pub fn find(name: &str) -> Option<&'static Self> {
        FAMILIES.iter().find(|family| family.name == name)
    }

    /// The program of one row.
    pub(super) fn build(&self, config: &Config, chip: &'static Chip) -> Result<Program, Problem> {
        let unknown = config.keys().find(|key| !self.keys.contains(key));
        if let Some(key) = unknown {
            return Err(Problem::Refused(format!(
                "{}: parameter {key} is not simulated",
                self.name
            )));
        }
        (self.program)(config, chip)
    }
}
