//! The program's description of the ONNX file of a model.

use super::spec_keys::SpecQueries;
use super::spec_text::{dim_name, model_file};
use crate::widgets::background_query::{BackgroundQuery, BackgroundWorkers, QueryState};
use egui::Context;
use serde::Deserialize;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use tilescope_report::units::grouped;

/// The key for the samples of a micro-batch, regardless of the name of that dimension in the file.
pub(super) const BATCH: &str = "model.batch_size";

/// The largest number of open dimensions that a form can show.
const MOST_SYMBOLS: usize = 200;

/// The description of an ONNX file. Its figures need a value for every dimension.
#[derive(Clone, Debug, PartialEq, Deserialize)]
pub(crate) struct ModelFile {
    pub opset: u32,
    /// The name and version of the exporter.
    pub producer: String,
    /// A hash that identifies the file, independent of its weights.
    pub content_hash: String,
    /// The number of nodes as written.
    pub nodes: u64,
    pub inputs: Vec<ModelTensor>,
    /// The outputs with all their dimensions.
    pub outputs: Option<Vec<ModelTensor>>,
    /// The dimensions that the file leaves open.
    pub symbols: Vec<ModelSymbol>,
    /// True if the file contains its own loss.
    pub has_loss: Option<bool>,
    /// The number of IPUs that its annotations use.
    pub annotated_ipus: Option<u32>,
    /// The number of stages that its annotations define.
    pub annotated_stages: Option<usize>,
    /// The weights and biases, in elements.
    pub parameters: Option<u64>,
    /// The multiply-accumulates of a forward pass.
    pub macs: Option<u64>,
    pub ops: Vec<ModelOp>,
}

/// An input or output of the model.
#[derive(Clone, Debug, PartialEq, Deserialize)]
pub(crate) struct ModelTensor {
    pub name: String,
    #[serde(rename = "type")]
    pub element: String,
    pub dims: Vec<ModelDim>,
}

/// A dimension, by its size or its name.
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
    /// True if it is dimension 0 of all inputs.
    pub is_batch: bool,
    pub places: Vec<SymbolPlace>,
    /// A default size, guessed from the name and place.
    pub suggested: u64,
}

/// The place of a dimension.
#[derive(Clone, Debug, PartialEq, Deserialize)]
pub(crate) struct SymbolPlace {
    pub input: String,
    /// The index of the axis, from 0.
    pub axis: usize,
}

/// An operator of the file.
#[derive(Clone, Debug, PartialEq, Deserialize)]
pub(crate) struct ModelOp {
    pub op: String,
    pub count: u64,
    /// `modelled`, `composed`, `folded` or `unknown`.
    pub state: String,
    /// The first node of an operator that is not modelled.
    pub node: Option<String>,
}

impl ModelFile {
    /// The default of a key that a spec of this file omits, as TOML; `None` if it does not depend
    /// on the file.
    pub(crate) fn default_of(&self, key: &str) -> Option<String> {
        match key {
            BATCH => self.fixed_batch().map(|batch| batch.to_string()),
            "model.training" => self.has_loss.map(|has_loss| has_loss.to_string()),
            "target.ipus" => self.annotated_ipus.map(|ipus| ipus.to_string()),
            "options.auto_stage" => Some("\"balanced\"".to_owned()),
            _ => None,
        }
    }

    /// The samples of a micro-batch, if the file fixes them.
    pub(crate) fn fixed_batch(&self) -> Option<u64> {
        match self.inputs.iter().find_map(|input| input.dims.first())? {
            ModelDim::Size(size) => Some(*size),
            ModelDim::Symbol(_) => None,
        }
    }

    /// The reason that the file has too many open dimensions, if so.
    pub(crate) fn too_open(&self) -> Option<String> {
        let count = self.symbols.len();
        let words = || {
            let count = grouped(count as u64);
            format!("It has {count} symbolic dimensions: export it with fixed sizes.")
        };
        (count > MOST_SYMBOLS).then(words)
    }

    /// The batch dimension, if the file leaves it open.
    pub(crate) fn batch_symbol(&self) -> Option<&ModelSymbol> {
        self.symbols.iter().find(|symbol| symbol.is_batch)
    }

    /// The operators that are not modelled. The result is exact only once all dimensions have a
    /// value, because operators that will be folded look unmodelled before.
    pub(crate) fn unknown_ops(&self) -> impl Iterator<Item = &ModelOp> {
        self.ops.iter().filter(|op| op.state == "unknown" && self.macs.is_some())
    }
}

/// A number of nodes as text.
pub(crate) fn nodes_in_words(count: u64) -> String {
    if count == 1 { "1 node".to_owned() } else { format!("{} nodes", grouped(count)) }
}

/// A file, and the values of its dimensions by key, as TOML.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ModelQuestion {
    pub file: PathBuf,
    /// The sizes of dimensions; empty for the file alone.
    pub sizes: BTreeMap<String, String>,
}

/// The queries about the model file that a spec names.
#[derive(Default)]
pub(crate) struct ModelFileQueries {
    /// The answer without sizes, so that a wrong size does not hide the dimensions.
    written: BackgroundQuery<ModelQuestion, ModelFile>,
    /// The answer with the sizes of the spec.
    sized: BackgroundQuery<ModelQuestion, ModelFile>,
}

/// The answers about a model file.
pub(crate) struct ModelFileAnswers {
    pub path: PathBuf,
    /// The description of the file alone.
    pub written: QueryState<ModelFile>,
    /// The description with the sizes of the spec: figures, outputs, treatment of operators.
    pub sized: QueryState<ModelFile>,
}

impl ModelFileQueries {
    /// Queries the file that a spec names; `None` if it names none.
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

    /// Discards the answers, because the file may have changed.
    pub(crate) fn forget(&mut self) {
        *self = Self::default();
    }
}
