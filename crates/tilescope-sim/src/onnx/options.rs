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
        /// ONNX file of the model, relative to the spec; takes the place of a name
        path as "onnx": String = String::new(), written "" => {
            shows_in: "Summary; Operations: the file's names",
            poptorch: "torch.onnx.export",
            popart: "Builder(modelProtoOrFilename)",
        }
        /// Digest of the file, as the report has it that the spec is from: a note tells when the
        /// file has changed since
        digest as "onnx_digest": String = String::new(), written "" => {
            shows_in: "Summary: a note",
        }
        /// Loss that training makes small; auto takes the loss node of the file or an output that is
        /// one number, and does not train a model that has neither
        loss: LossChoice = LossChoice::Auto => {
            shows_in: "Operations: `loss`; Execution trace: backward passes",
            popart: "loss of popart.TrainingSession",
        }
        /// Output that the loss reads, where there are several
        loss_output: String = String::new(), written "" => {
            shows_in: "Operations: operands of `loss`",
        }
        /// Regular expressions; parameters whose names they match are not trained
        frozen: Vec<String> = Vec::new(), written "[]" => {
            shows_in: "Operations: no weight update; Memory",
            poptorch: "requires_grad_(False)",
        }
        /// Whether the nodes that exporters write for layer norms, GELU, SiLU and linear layers with a
        /// bias become one operation; none lowers node by node
        fuse: FuseChoice = FuseChoice::Auto => {
            shows_in: "Operations; Summary: what was joined",
            popart: "SessionOptions.patterns",
        }
        /// Estimate an operator that is not modelled as one pass over its operands
        allow_unknown: bool = false => {
            shows_in: "Insights; Summary: a note with its share",
            poptorch: "poptorch.custom_op",
        }
        /// Most results of an operator that has as many as data say, NonZero, NonMaxSuppression,
        /// Compress or Unique; 0 refuses such operators
        max_results: u64 = 0 => {
            shows_in: "Operations: shapes behind such an operator",
        }
        /// What the blocks are that stages are made of
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
