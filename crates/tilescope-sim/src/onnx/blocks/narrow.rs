//! Blocks from narrow places: positions between nodes that only one tensor crosses.

use super::{MOST_BLOCKS, NodeBlocks, cost};
use tilescope_onnx::{OnnxGraph, ValueSource};

/// Makes a block for each range between narrow places. Small ones join the one before.
pub(super) fn find(file: &OnnxGraph) -> NodeBlocks {
    let count = file.nodes.len();
    let mut last_reader: Vec<usize> = (0..count).collect();
    for (at, node) in file.nodes.iter().enumerate() {
        for input in node.inputs.iter().flatten() {
            if let ValueSource::Node(maker) = file.value(*input).source {
                last_reader[maker] = last_reader[maker].max(at);
            }
        }
    }
    // A tensor crosses all positions from its maker to its last reader.
    let mut changes = vec![0i64; count + 1];
    for (maker, last) in last_reader.iter().enumerate() {
        changes[maker] += 1;
        changes[*last] -= 1;
    }
    let costs: Vec<u64> = file.nodes.iter().map(|node| cost::of_node(file, node)).collect();
    let least = costs.iter().sum::<u64>() / MOST_BLOCKS as u64;
    let mut blocks = NodeBlocks { names: Vec::new(), of_node: Vec::new(), stages: Vec::new() };
    let mut crossing = 0;
    let mut size = 0;
    let mut begins = true;
    for (at, node) in file.nodes.iter().enumerate() {
        if begins && blocks.names.len() < MOST_BLOCKS {
            blocks.names.push(node.path());
            size = 0;
        }
        blocks.of_node.push(blocks.names.len().saturating_sub(1));
        crossing += changes[at];
        size += costs[at];
        begins = crossing == 1 && size > least;
    }
    blocks
}
