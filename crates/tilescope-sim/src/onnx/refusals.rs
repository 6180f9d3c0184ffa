//! Nodes of a file that cannot be built. The list is complete, so that a listing of a file agrees
//! with its simulation.

use super::importer::Importer;
use super::node_import::NodeImport;
use super::{FuseChoice, ImportOptions, ImportSettings, build};
use tilescope_onnx::OnnxGraph;

/// The nodes whose operator is modelled, but not with these operands or attributes, each with the
/// reason.
#[must_use]
pub fn refused_nodes(graph: &OnnxGraph) -> Vec<(usize, String)> {
    let options =
        ImportOptions { allow_unknown: true, fuse: FuseChoice::None, ..ImportOptions::default() };
    let settings = ImportSettings { options: &options, types: None, training: false };
    let mut refused = Vec::new();
    let Ok(mut importer) = Importer::new(graph, &settings) else { return refused };
    for (at, node) in graph.nodes.iter().enumerate() {
        let mut import = NodeImport { importer: &mut importer, node };
        let Some(builder) = build::find(node) else {
            // Readers of its results are checked with their shapes.
            let _ = build::build_unknown(&mut import);
            continue;
        };
        if let Err(error) = (builder.build)(&mut import) {
            refused.push((at, error.to_string()));
            let _ = build::build_unknown(&mut import);
        }
    }
    refused
}
