//! An ONNX graph as a model: every node becomes operators of the simulator, under the names that
//! the file has.
//!
//! `build` has a builder for each operator of ONNX, `fuse` joins nodes that exporters wrote for one
//! operator, `blocks` finds the blocks that stages are made of, `loss` what is trained.

mod blocks;
mod build;
mod fuse;
mod importer;
mod leaves;
mod loss;
mod node_import;
mod options;

pub use build::{OpState, op_state};
pub use options::is_import_key;
pub(crate) use options::{DIM_PREFIX, FuseChoice, ImportOptions, LossChoice};

use crate::graph::{GraphError, ModelGraph};
use crate::shape::DType;
use importer::Importer;
use std::sync::Arc;
use tilescope_onnx::OnnxGraph;

/// The graph of a file, with a value for every dimension.
#[derive(Clone, Debug)]
pub struct ImportedFile {
    pub graph: Arc<OnnxGraph>,
    /// Samples of a micro-batch: dimension 0 of the inputs.
    pub batch: u64,
    /// IPUs that its annotations ask for.
    pub annotated_ipus: Option<u32>,
    /// Whether the file itself says what training makes small.
    pub has_loss: bool,
}

impl ImportedFile {
    /// What a spec asks of a file.
    pub(crate) fn new(graph: OnnxGraph) -> Self {
        let first_dims = graph.inputs.iter().filter_map(|input| graph.value(*input).dims.first());
        let batch = first_dims.copied().next().unwrap_or(1).max(1);
        let has_loss = loss::of_file(&graph).is_some();
        let annotated_ipus = blocks::annotated_ipus(&graph);
        Self { graph: Arc::new(graph), batch, annotated_ipus, has_loss }
    }
}

/// Whether a file itself says what training makes small.
pub fn has_loss(graph: &OnnxGraph) -> bool {
    loss::of_file(graph).is_some()
}

/// IPUs that the annotations of a file ask for.
pub fn annotated_ipus(graph: &OnnxGraph) -> Option<u32> {
    blocks::annotated_ipus(graph)
}

/// Stages that the annotations of a file cut it into.
pub fn annotated_stages(graph: &OnnxGraph) -> Option<usize> {
    blocks::annotated_stages(graph)
}

/// How a file is imported.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ImportSettings<'a> {
    pub options: &'a ImportOptions,
    /// Floating point types of what is computed and of weights, where not those of the file.
    pub types: Option<(DType, DType)>,
    /// Whether there will be a backward pass.
    pub training: bool,
}

/// The forward graph of a file for one micro-batch.
///
/// # Errors
/// Operators that are not modelled, each with its node, and operands or attributes that an
/// operator does not take.
pub(crate) fn import(
    file: &OnnxGraph,
    settings: &ImportSettings,
) -> Result<ModelGraph, GraphError> {
    let fused = match settings.options.fuse {
        FuseChoice::Auto => Some(fuse::fused(file)),
        FuseChoice::None => None,
    };
    let file = fused.as_ref().unwrap_or(file);
    let mut importer = Importer::new(file, settings)?;
    importer.check_known()?;
    importer.build_nodes()?;
    importer.end()
}
