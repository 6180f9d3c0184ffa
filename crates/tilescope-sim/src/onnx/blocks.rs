//! The blocks of an imported model, which stages are made of.

use super::options::BlockChoice;
use crate::graph::GraphError;
use tilescope_onnx::OnnxGraph;

/// Blocks in the order of the data, and the one of each node.
#[derive(Clone, Debug)]
pub(super) struct NodeBlocks {
    pub names: Vec<String>,
    pub of_node: Vec<usize>,
}

/// The blocks of a file.
pub(super) fn of_nodes(file: &OnnxGraph, choice: BlockChoice) -> Result<NodeBlocks, GraphError> {
    let _ = choice;
    Ok(NodeBlocks { names: vec!["model".to_string()], of_node: vec![0; file.nodes.len()] })
}
