//! What the program says about the ONNX file of a model.

use super::spec_keys::SpecQueries;
use super::spec_text::{dim_name, model_file};
use crate::widgets::background_query::{BackgroundQuery, BackgroundWorkers, QueryState};
use egui::Context;
use serde::Deserialize;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use tilescope_report::units::grouped;

/// The key of the samples of a micro-batch, whatever the file calls that dimension.
pub(super) const BATCH: &str = "model.batch_size";

/// More dimensions than that are no model that anybody would fill in.
const MOST_SYMBOLS: usize = 200;

/// An ONNX file, as far as it is known: figures need a value for every dimension.
#[derive(Clone, Debug, PartialEq, Deserialize)]
pub(crate) struct ModelFile {
    pub opset: u32,
    /// Name and version of the exporter.
    pub producer: String,
    /// Tells the file from others, whatever their weights.
    pub content_hash: String,
    /// Nodes as written.
    pub nodes: u64,
    pub inputs: Vec<ModelTensor>,
    /// With all their dimensions.
    pub outputs: Option<Vec<ModelTensor>>,
    /// Dimensions that the file leaves open.
    pub symbols: Vec<ModelSymbol>,
    /// Whether the file says itself what training makes small.
    pub has_loss: Option<bool>,
    /// IPUs that its annotations ask for.
    pub annotated_ipus: Option<u32>,
    /// Stages that its annotations cut it into.
    pub annotated_stages: Option<usize>,
    /// Weights and biases, in elements.
    pub parameters: Option<u64>,
    /// Multiply-accumulates of a forward pass.
    pub macs: Option<u64>,
    pub ops: Vec<ModelOp>,
}

/// An input or output.
#[derive(Clone, Debug, PartialEq, Deserialize)]
pub(crate) struct ModelTensor {
    pub name: String,
    #[serde(rename = "type")]
    pub element: String,
    pub dims: Vec<ModelDim>,
}

/// A dimension with its size, or with its name.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(untagged)]
pub(crate) enum ModelDim {
    Size(u64),
    Symbol(String),
}

/// A dimension that the file leaves open.
#[derive(Clone, Debug, PartialEq, Deserialize)]
pub(crate) struct ModelSymbol {
    pub name: String,
    /// Whether it is dimension 0 of all inputs.
    pub is_batch: bool,
    pub places: Vec<SymbolPlace>,
    /// A size to begin with, guessed by name and place.
    pub suggested: u64,
}

/// Where a dimension is.
#[derive(Clone, Debug, PartialEq, Deserialize)]
pub(crate) struct SymbolPlace {
    pub input: String,
    /// Counted from 0.
    pub axis: usize,
}

/// An operator of the file.
#[derive(Clone, Debug, PartialEq, Deserialize)]
pub(crate) struct ModelOp {
    pub op: String,
    pub count: u64,
    /// `modelled`, `composed`, `folded` or `unknown`.
    pub state: String,
    /// The first node, of an operator that is not modelled.
    pub node: Option<String>,
}

impl ModelFile {
    /// What a key is where a spec of this file leaves it out, as TOML; `None` where the file does
    /// not decide.
    pub(crate) fn default_of(&self, key: &str) -> Option<String> {
        match key {
            BATCH => self.fixed_batch().map(|batch| batch.to_string()),
            "model.training" => self.has_loss.map(|has_loss| has_loss.to_string()),
            "target.ipus" => self.annotated_ipus.map(|ipus| ipus.to_string()),
            "options.auto_stage" => Some("\"balanced\"".to_owned()),
            _ => None,
        }
    }

    /// Samples of a micro-batch, where the file does not leave them open.
    pub(crate) fn fixed_batch(&self) -> Option<u64> {
        match self.inputs.iter().find_map(|input| input.dims.first())? {
            ModelDim::Size(size) => Some(*size),
            ModelDim::Symbol(_) => None,
        }
    }

    /// Why nobody could say all that the file leaves open.
    pub(crate) fn too_open(&self) -> Option<String> {
        let count = self.symbols.len();
        let words = || {
            let count = grouped(count as u64);
            format!("It has {count} symbolic dimensions: export it with fixed sizes.")
        };
        (count > MOST_SYMBOLS).then(words)
    }

    /// The dimension that is the batch, if the file leaves it open.
    pub(crate) fn batch_symbol(&self) -> Option<&ModelSymbol> {
        self.symbols.iter().find(|symbol| symbol.is_batch)
    }

    /// Operators that are not modelled. Before all dimensions have a value that is not known: what
    /// will be folded looks as if it were not.
    pub(crate) fn unknown_ops(&self) -> impl Iterator<Item = &ModelOp> {
        self.ops.iter().filter(|op| op.state == "unknown" && self.macs.is_some())
    }
}

/// So many nodes, in words.
pub(crate) fn nodes_in_words(count: u64) -> String {
    if count == 1 { "1 node".to_owned() } else { format!("{} nodes", grouped(count)) }
}

/// A file, and values of its dimensions by key, as TOML.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ModelQuestion {
    pub file: PathBuf,
    /// None: what the file says without them.
    pub sizes: BTreeMap<String, String>,
}

/// The file of the model that a spec names.
#[derive(Default)]
pub(crate) struct ModelFileQueries {
    /// What does not depend on sizes: a wrong size does not hide what could be changed.
    written: BackgroundQuery<ModelQuestion, ModelFile>,
    /// With the sizes of the spec.
    sized: BackgroundQuery<ModelQuestion, ModelFile>,
}

/// What is known of a file.
pub(crate) struct ModelFileAnswers {
    pub path: PathBuf,
    /// What the file says by itself.
    pub written: QueryState<ModelFile>,
    /// With the sizes of the spec: figures, outputs, what becomes of operators.
    pub sized: QueryState<ModelFile>,
}

impl ModelFileQueries {
    /// Asks about the file that a spec names; `None` where it names none.
    pub(crate) fn ask(
        &mut self,
        context: &Context,
        workers: &BackgroundWorkers,
        (values, base): (&BTreeMap<String, String>, &Path),
        queries: SpecQueries,
    ) -> Option<ModelFileAnswers> {
        let path = model_file(values, base)?;
        let is_size = |key: &str| key == BATCH || dim_name(key).is_some();
        let sizes = values.iter().filter(|(key, _)| is_size(key));
        let sizes = sizes.map(|(key, value)| (key.clone(), value.clone())).collect();
        let plain = ModelQuestion { file: path.clone(), sizes: BTreeMap::new() };
        let sized = ModelQuestion { file: path.clone(), sizes };
        let ask = |query: &mut BackgroundQuery<_, _>, question: &ModelQuestion| {
            query.ask_newest(context, workers, question, queries.model)
        };
        Some(ModelFileAnswers {
            path,
            written: ask(&mut self.written, &plain).fresh_only(),
            sized: ask(&mut self.sized, &sized),
        })
    }

    /// Asks once more: the file may have changed.
    pub(crate) fn forget(&mut self) {
        *self = Self::default();
    }
}
