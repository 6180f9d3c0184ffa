//! The import of an ONNX graph as a model. Every node becomes operators of the simulator, with the
//! names of the file.
//!
//! `build` has a builder for each operator of ONNX, `fuse` joins nodes that exporters wrote for one
//! operator, `blocks` finds the blocks that stages consist of, and `loss` finds the loss of
//! training.

mod annotations;
mod batch;
mod blocks;
mod build;
mod fuse;
mod importer;
mod input_settings;
mod leaves;
mod loss;
mod node_import;
mod notes;
mod options;
mod refusals;
#[cfg(test)]
mod tests;

pub use batch::FileBatch;
pub use blocks::{AnnotatedStages, AnnotationKind};
pub use build::{OpState, op_state};
pub use options::is_import_key;
pub(crate) use options::{
    BRANCH_PREFIX, BlockChoice, DIM_PREFIX, FuseChoice, ImportOptions, LoopChoice, LossChoice,
    TRIPS_PREFIX, is_of_file,
};
pub use refusals::refused_nodes;

use crate::graph::{GraphError, ModelGraph};
use crate::shape::DType;
use annotations::Annotations;
use importer::Importer;
use std::sync::{Arc, OnceLock};
use tilescope_onnx::{DimValues, OnnxFile, OnnxGraph};
use tilescope_report::ImportedModel;

/// The graph of a file, with a value for every dimension.
#[derive(Clone, Debug)]
pub struct ImportedFile {
    pub graph: Arc<OnnxGraph>,
    /// The values of what the file leaves open.
    pub dims: DimValues,
    /// The graph of one compute batch, if the micro-batch is processed in several.
    pub compute_batch: Option<Arc<OnnxGraph>>,
    /// Samples of a micro-batch.
    pub batch: FileBatch,
    /// Digest of the file at the time of the report that the spec comes from, if the file has
    /// changed since.
    pub changed_from: Option<String>,
    /// The stages that its annotations request.
    pub annotated: Option<AnnotatedStages>,
    /// The number of its blocks, once they have been counted.
    blocks: OnceLock<usize>,
    /// True if the file contains a loss that depends on weights.
    pub has_loss: bool,
    /// Path and properties of the file, without the translation of its nodes.
    pub identity: ImportedModel,
}

impl ImportedFile {
    /// Reads the properties of a file that a spec needs.
    pub(crate) fn new(path: &str, file: &OnnxFile, dims: &DimValues, graph: OnnxGraph) -> Self {
        let batch = FileBatch::of(file, &graph);
        let has_loss = has_loss(&graph);
        let annotated = blocks::annotated_stages(&graph);
        let identity = ImportedModel {
            path: path.to_string(),
            digest: file.content_hash.clone(),
            opset: file.opset,
            producer: file.producer.clone(),
            nodes: file.node_count as u64,
            folded: graph.folded.clone(),
            ..ImportedModel::default()
        };
        Self {
            graph: Arc::new(graph),
            dims: dims.clone(),
            compute_batch: None,
            batch,
            annotated,
            blocks: OnceLock::new(),
            has_loss,
            identity,
            changed_from: None,
        }
    }

    /// The number of blocks that a choice finds. It is 1 if the choice finds none, which is an
    /// error when the model is built.
    pub(crate) fn blocks(&self, choice: BlockChoice) -> usize {
        *self.blocks.get_or_init(|| {
            blocks::of_nodes(&self.graph, choice).map_or(1, |blocks| blocks.names.len())
        })
    }
}

/// True if a file contains a loss that depends on weights.
pub fn has_loss(graph: &OnnxGraph) -> bool {
    loss::of_file(graph).is_some_and(|loss| loss::weights_lead_to(graph, loss))
}

/// The stages and IPUs that the annotations of a file request, if any.
pub fn annotated_stages(graph: &OnnxGraph) -> Option<AnnotatedStages> {
    blocks::annotated_stages(graph)
}

/// The settings of an import.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ImportSettings<'a> {
    pub options: &'a ImportOptions,
    /// Floating point types of computation and of weights. `None` if they are those of the file.
    pub types: Option<(DType, DType)>,
    /// True if the model has a backward pass.
    pub training: bool,
}

/// Builds the forward graph of a file for one micro-batch, or for a compute batch of it.
///
/// # Errors
/// Returns an error for unknown operators, each with its node, and for operands or attributes that
/// an operator does not support.
pub(crate) fn import(
    file: &ImportedFile,
    settings: &ImportSettings,
) -> Result<ModelGraph, GraphError> {
    let graph = file.compute_batch.as_ref().unwrap_or(&file.graph);
    let annotations = Annotations::of(graph)?;
    let joined = match settings.options.fuse {
        FuseChoice::Auto => fuse::fused(graph, &annotations),
        FuseChoice::None => fuse::unfused(graph, &annotations),
    };
    let mut importer = Importer::new(&joined.graph, settings)?;
    let unknown = importer.unknown_operators(&joined.origins);
    importer.check_known(&unknown)?;
    importer.build_nodes(&joined.origins)?;
    let ignored = importer.follow_metadata(annotations.ignored)?;
    let fused = joined.fused.clone();
    let imported = ImportedModel { fused, unknown, ignored, ..file.identity.clone() };
    importer.add_notes();
    importer.graph.set_imported(Some(Arc::new(imported)));
    importer.end()
}
