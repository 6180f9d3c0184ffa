//! Options for the conversion of an ONNX file to a model: keys of `[model]` that only imported
//! models have.

use crate::spec_keys::{SpecTable, TablePlace, spec_table, spec_words};
use std::sync::LazyLock;

spec_words! {
    /// The loss that training minimises.
    pub enum LossChoice {
        /// The loss of the file: a loss node, or an output that is one number.
        Auto = "auto",
        /// No loss: the model is not trained.
        None = "none",
        /// Softmax cross-entropy of an output against class labels.
        CrossEntropy = "cross_entropy",
        /// Negative log-likelihood of log-probabilities.
        Nll = "nll",
        /// Mean squared difference from targets.
        Mse = "mse",
        /// Mean absolute difference from targets.
        L1 = "l1",
        /// An output as the loss.
        Identity = "identity",
    }
}

spec_words! {
    /// The treatment of nodes that exporters wrote for one operator.
    pub enum FuseChoice {
        /// Known patterns become one operator.
        Auto = "auto",
        /// Every node stays separate, as PopART runs a file.
        None = "none",
    }
}

spec_words! {
    /// The treatment of loops of a file.
    pub enum LoopChoice {
        /// A loop whose iterations are alike is a repeat, with one copy of its body.
        Repeat = "repeat",
        /// The nodes of each iteration follow those of the one before.
        Unroll = "unroll",
    }
}

spec_words! {
    /// The source of the blocks of an imported model.
    pub enum BlockChoice {
        /// Annotated stages if there are any, otherwise modules, otherwise nodes.
        Auto = "auto",
        /// A block for each annotated stage.
        Annotated = "annotated",
        /// The numbered modules of the list that performs most of the work.
        Modules = "modules",
        /// Ranges of nodes between places that one tensor crosses.
        Nodes = "nodes",
    }
}

spec_table! {
    /// Options for the import of a file.
    #[derive(Clone, Debug)]
    pub struct ImportOptions {
        /// ONNX file of the model, relative to the spec; replaces `model.name`
        path as "onnx": String = String::new(), written "" => {
            shows_in: "Summary; Operations: the file's names",
            poptorch: "torch.onnx.export",
            popart: "Builder(modelProtoOrFilename)",
        }
        /// Digest of the ONNX file when the report was made; a note is added if the file has
        /// changed
        digest as "onnx_digest": String = String::new(), written "" => {
            shows_in: "Summary: a note",
        }
        /// Loss that training minimises. auto uses the loss node of the file or a scalar output; a
        /// model with neither is not trained
        loss: LossChoice = LossChoice::Auto => {
            shows_in: "Operations: `loss`; Execution trace: backward passes",
            popart: "loss of popart.TrainingSession",
        }
        /// Output that the loss reads; required if the file has several
        loss_output: String = String::new(), written "" => {
            shows_in: "Operations: operands of `loss`",
        }
        /// Regular expressions for names of parameters that are not trained
        frozen: Vec<String> = Vec::new(), written "[]" => {
            shows_in: "Operations: no weight update; Memory",
            poptorch: "requires_grad_(False)",
        }
        /// Fuse the nodes that exporters write for layer norms, GELU, SiLU and linear layers with a
        /// bias into one operation; none lowers each node separately
        fuse: FuseChoice = FuseChoice::Auto => {
            shows_in: "Operations; Summary: fused nodes",
            popart: "SessionOptions.patterns",
        }
        /// Estimate operators that are not modelled as one pass over their operands, instead of
        /// rejecting them
        allow_unknown: bool = false => {
            shows_in: "Insights; Summary: a note with its share",
            poptorch: "poptorch.custom_op",
        }
        /// Maximum number of results of operators whose output size depends on data (NonZero,
        /// NonMaxSuppression, Compress, Unique); 0 rejects such operators
        max_results: u64 = 0 => {
            shows_in: "Operations: shapes after such an operator",
        }
        /// Treatment of Loop and Scan nodes: repeat keeps one copy of a body whose iterations are
        /// alike, unroll gives every iteration operations of its own. A trained model always unrolls
        loops: LoopChoice = LoopChoice::Repeat => {
            shows_in: "Operations; Program tree: Repeat",
        }
        /// Source of the blocks that are assigned to stages
        blocks: BlockChoice = BlockChoice::Auto => {
            shows_in: "Operations; Execution trace: names of stages",
            poptorch: "poptorch.Block / BeginBlock",
        }
    }
}

/// The prefix of the paths of values for symbolic dimensions of the file.
pub(crate) const DIM_PREFIX: &str = "model.dim.";

/// The prefix of the paths of choices for branches that depend on data.
pub(crate) const BRANCH_PREFIX: &str = "model.branch.";

/// The prefix of the paths of trip counts for loops that depend on data.
pub(crate) const TRIPS_PREFIX: &str = "model.trips.";

/// True if a key sets a value that a file leaves open under its own name.
pub(crate) fn is_of_file(path: &str) -> bool {
    [DIM_PREFIX, BRANCH_PREFIX, TRIPS_PREFIX].iter().any(|prefix| path.starts_with(prefix))
}

/// True if a key only applies to imported models.
pub fn is_import_key(path: &str) -> bool {
    static PATHS: LazyLock<Vec<String>> = LazyLock::new(|| {
        let mut keys = Vec::new();
        ImportOptions::declare(&TablePlace { prefix: "model", words: &[] }, &mut keys);
        keys.into_iter().map(|key| key.path.into_owned()).collect()
    });
    PATHS.iter().any(|known| known == path)
}
