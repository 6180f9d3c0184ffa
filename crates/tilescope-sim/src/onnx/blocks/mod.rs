//! The blocks of an imported model, which stages consist of: annotated stages, the numbered modules
//! of a list, or ranges of nodes between narrow places.

mod annotated;
mod cost;
mod modules;
mod narrow;
mod phase_parts;
mod visits;

pub use annotated::AnnotationKind;

use super::options::BlockChoice;
use crate::graph::{AnnotatedStage, GraphError, ImportProblem};
use std::collections::HashMap;
use tilescope_onnx::{OnnxGraph, OnnxNode, ValueSource};
use tilescope_report::units::IpuId;

/// The largest number of blocks of a model. No spec has more stages.
const MOST_BLOCKS: usize = 256;

/// The attribute of nodes that names their IPU.
const IPU: &str = "__ipu_number";

/// Blocks in the order of the data, and the block of each node.
#[derive(Clone, Debug)]
pub(super) struct NodeBlocks {
    pub names: Vec<String>,
    pub of_node: Vec<usize>,
    /// The stages that annotations assign the blocks to. Empty without annotations.
    pub stages: Vec<AnnotatedStage>,
}

impl NodeBlocks {
    /// Makes blocks that are stages.
    fn of_stages(stages: Vec<AnnotatedStage>, of_node: Vec<usize>) -> Self {
        let names = stages.iter().map(|stage| stage.block.clone()).collect();
        Self { names, of_node, stages }
    }

    /// Removes the blocks without nodes.
    fn remove_empty(&mut self) {
        let mut numbers: Vec<Option<usize>> = vec![None; self.names.len()];
        for block in &self.of_node {
            numbers[*block] = Some(0);
        }
        let mut kept = Vec::new();
        for (number, name) in numbers.iter_mut().zip(std::mem::take(&mut self.names)) {
            if number.is_some() {
                *number = Some(kept.len());
                kept.push(name);
            }
        }
        self.names = kept;
        for block in &mut self.of_node {
            *block = numbers[*block].unwrap_or(0);
        }
    }
}

/// Finds the blocks of a file.
///
/// # Errors
/// Returns an error if annotations contradict each other, or if the file has no blocks of the
/// chosen kind.
pub(super) fn of_nodes(file: &OnnxGraph, choice: BlockChoice) -> Result<NodeBlocks, GraphError> {
    Ok(with_whole_repeats(file, chosen(file, choice)?))
}

fn chosen(file: &OnnxGraph, choice: BlockChoice) -> Result<NodeBlocks, GraphError> {
    let mut found = None;
    if matches!(choice, BlockChoice::Auto | BlockChoice::Annotated) {
        found = annotated::find(file)?;
    }
    if found.is_none() && matches!(choice, BlockChoice::Auto | BlockChoice::Modules) {
        found = modules::find(file);
    }
    match (found, choice) {
        (Some(found), _) => Ok(found),
        (None, BlockChoice::Annotated) => {
            Err(GraphError::new("model.blocks", ImportProblem::NoAnnotations))
        }
        (None, BlockChoice::Modules) => {
            Err(GraphError::new("model.blocks", ImportProblem::NoModules))
        }
        (None, BlockChoice::Auto | BlockChoice::Nodes) => Ok(narrow::find(file)),
    }
}

/// The stages that the annotations of a file request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AnnotatedStages {
    pub kind: AnnotationKind,
    pub stages: usize,
    /// The number of stages after consecutive stages on one IPU are merged.
    pub merged: usize,
    /// IPUs of a replica.
    pub ipus: u32,
}

/// The stages and IPUs that the annotations of a file request, if any.
pub(super) fn annotated_stages(file: &OnnxGraph) -> Option<AnnotatedStages> {
    let kind = annotated::kind(file)?;
    // The simulation of the file reports contradictions.
    let found = annotated::find(file).ok().flatten();
    let stages = found.map_or_else(Vec::new, |found| found.stages);
    let ipus: Vec<Option<IpuId>> = stages.iter().map(|stage| stage.annotation.ipu()).collect();
    let of_stages = ipus.iter().flatten().map(|ipu| ipu.0).max();
    let highest = of_stages.or_else(|| annotated::highest_ipu(file)).unwrap_or(0);
    let merged = match kind {
        AnnotationKind::Stages => ipus.chunk_by(PartialEq::eq).count(),
        AnnotationKind::Phases | AnnotationKind::Ipus => stages.len(),
    };
    let ipus = highest.saturating_add(1);
    let ipus = match kind {
        // Even phases have the same number of IPUs as odd ones.
        AnnotationKind::Phases => ipus.saturating_add(ipus % 2),
        AnnotationKind::Stages | AnnotationKind::Ipus => ipus,
    };
    Some(AnnotatedStages { kind, stages: stages.len().max(1), merged: merged.max(1), ipus })
}

/// Moves all nodes of a repeat to the last of their blocks, and the nodes that read results of later
/// blocks to these blocks.
fn with_whole_repeats(file: &OnnxGraph, mut blocks: NodeBlocks) -> NodeBlocks {
    if file.repeats.is_empty() {
        return blocks;
    }
    let mut at = 0;
    for nodes in file.nodes.chunk_by(|node, next| are_in_one_repeat(file, [node, next])) {
        let end = at + nodes.len();
        let read = nodes.iter().flat_map(|node| producers(file, node));
        let read = read.filter(|maker| *maker < at).map(|maker| blocks.of_node[maker]);
        let block = read.chain(blocks.of_node[at..end].iter().copied()).max().unwrap_or(0);
        blocks.of_node[at..end].fill(block);
        at = end;
    }
    if blocks.stages.is_empty() {
        blocks.remove_empty();
    }
    blocks
}

/// True if both nodes are in the same outermost repeat.
fn are_in_one_repeat(file: &OnnxGraph, nodes: [&OnnxNode; 2]) -> bool {
    let [one, other] = nodes.map(|node| file.repeats_around(node).last());
    one.is_some() && one == other
}

/// The nodes that make the inputs of a node.
fn producers<'a>(file: &'a OnnxGraph, node: &'a OnnxNode) -> impl Iterator<Item = usize> + 'a {
    node.inputs.iter().flatten().filter_map(|input| match file.value(*input).source {
        ValueSource::Node(maker) => Some(maker),
        _ => None,
    })
}

/// Numbers blocks in the order in which data reach them. `own` holds the block of some nodes. Other
/// nodes join the block that they read from, or, before all blocks, the first block that reads
/// them. No node comes before the nodes that it reads.
fn in_data_order(file: &OnnxGraph, own: &[Option<String>]) -> NodeBlocks {
    let mut names: Vec<String> = Vec::new();
    let mut numbers: HashMap<&str, usize> = HashMap::new();
    let mut of_node: Vec<Option<usize>> = Vec::with_capacity(own.len());
    for (node, own) in file.nodes.iter().zip(own) {
        let number = own.as_ref().map(|own| {
            *numbers.entry(own).or_insert_with(|| {
                names.push(own.clone());
                names.len() - 1
            })
        });
        let read = producers(file, node).filter_map(|maker| of_node[maker]);
        of_node.push(read.chain(number).max());
    }
    // Nodes that lead to blocks join the first block that reads them.
    let leads: Vec<bool> = of_node.iter().map(Option::is_none).collect();
    for at in (0..of_node.len()).rev() {
        let reader = of_node[at].unwrap_or(0);
        for maker in producers(file, &file.nodes[at]).filter(|maker| leads[*maker]) {
            let first = of_node[maker].map_or(reader, |first| first.min(reader));
            of_node[maker] = Some(first);
        }
    }
    let of_node = of_node.into_iter().map(|block| block.unwrap_or(0)).collect();
    NodeBlocks { names, of_node, stages: Vec::new() }
}
