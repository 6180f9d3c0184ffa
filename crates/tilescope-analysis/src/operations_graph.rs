//! The model as a graph: operations, and which reads whose results.
//!
//! Nodes are laid out in layers: a node stands one layer below the lowest node it reads, so every
//! arrow points down. Each IPU is a lane of its own; within a layer of a lane, nodes come by where
//! those they read stand (the barycentre rule of Sugiyama, Tagawa and Toda, 1981), which keeps most
//! arrows short.
//! O((nodes + edges) x sweeps).

use super::operations::{OpRow, OperationLayer, operations};
use std::collections::BTreeMap;
use tilescope_report::units::IpuId;
use tilescope_report::{Report, ReportError, ReportPart, TrainingPass};

/// Passes over all layers that put nodes in order.
const SWEEPS: usize = 4;

/// An operation, or several of one block shown as one.
#[derive(Clone, Debug, PartialEq)]
pub struct OpGraphNode {
    /// The operations, as places in [`OpGraph::rows`].
    pub operations: Vec<usize>,
    /// The text of its box.
    pub title: String,
    /// More words in its box.
    pub about: String,
    /// Forward, backward or update.
    pub pass: Option<TrainingPass>,
    /// IPU of the replica.
    pub ipu: Option<IpuId>,
    /// Block of the model.
    pub block: String,
    /// Layer, counted from the top.
    pub layer: usize,
    /// Place of its middle from the left, in widths of a node.
    pub x: f64,
}

/// The nodes of one IPU.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct OpGraphLane {
    /// The IPU; `None` where that is not known.
    pub ipu: Option<IpuId>,
    /// Left edge, in widths of a node.
    pub left: f64,
    /// Number of nodes beside each other.
    pub width: f64,
}

/// An arrow between two nodes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct OpGraphEdge {
    /// Node whose results are read.
    pub from: usize,
    /// Node that reads them.
    pub to: usize,
}

/// Nodes and arrows, laid out.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct OpGraph {
    /// Costs of each operation.
    pub rows: Vec<OpRow>,
    pub nodes: Vec<OpGraphNode>,
    /// The arrows, without repetition.
    pub edges: Vec<OpGraphEdge>,
    pub layers: usize,
    /// The IPUs, from the left.
    pub lanes: Vec<OpGraphLane>,
}

impl OpGraph {
    /// Width, in widths of a node.
    pub fn width(&self) -> f64 {
        self.lanes.last().map_or(0.0, |lane| lane.left + lane.width)
    }
}

/// The options that decide which graph is laid out.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct OpGraphKey {
    /// Passes beside the forward one.
    pub backward: bool,
    pub update: bool,
    /// Blocks whose operations are shown one by one, by name; `None` shows all of them so.
    pub open: Option<Vec<String>>,
}

/// The graph of a report; `None` where it was not recorded who reads what.
///
/// # Errors
/// Parts of the file that cannot be read.
pub fn graph(report: &Report, key: &OpGraphKey) -> Result<Option<OpGraph>, ReportError> {
    if !report.has(ReportPart::OperationInputs) {
        return Ok(None);
    }
    let rows = operations(report, OperationLayer::Model)?;
    let known = report.operations()?;
    let inputs: Vec<Vec<usize>> = known
        .iter()
        .map(|operation| operation.inputs.iter().map(|input| input.index()).collect())
        .collect();
    Ok(Some(laid_out(rows, &inputs, key)))
}

fn is_shown(row: &OpRow, key: &OpGraphKey) -> bool {
    match row.pass {
        Some(TrainingPass::Forward) | None => true,
        Some(TrainingPass::Backward) => key.backward,
        Some(TrainingPass::Update) => key.update,
    }
}

/// Makes nodes of operations and lays them out.
fn laid_out(rows: Vec<OpRow>, inputs: &[Vec<usize>], key: &OpGraphKey) -> OpGraph {
    let mut nodes: Vec<OpGraphNode> = Vec::new();
    let mut node_of: Vec<Option<usize>> = vec![None; rows.len()];
    let mut folded: BTreeMap<(String, Option<TrainingPass>, Option<IpuId>), usize> =
        BTreeMap::new();
    for (index, row) in rows.iter().enumerate().filter(|(_, row)| is_shown(row, key)) {
        let block = block_of(row);
        let open = key.open.as_ref().is_none_or(|open| open.iter().any(|known| known == block));
        let place = if open || block.is_empty() {
            nodes.len()
        } else {
            *folded.entry((block.to_owned(), row.pass, row.ipu)).or_insert(nodes.len())
        };
        if place == nodes.len() {
            nodes.push(node(row));
        }
        nodes[place].operations.push(index);
        node_of[index] = Some(place);
    }
    for ((block, _, _), place) in &folded {
        let count = nodes[*place].operations.len();
        // One operation needs no other name.
        if count == 1 {
            continue;
        }
        nodes[*place].title = block.clone();
        nodes[*place].about = format!("{count} operations");
    }
    let edges = edges(&node_of, inputs);
    let mut graph = OpGraph { rows, nodes, edges, layers: 0, lanes: Vec::new() };
    put_in_layers(&mut graph);
    put_in_order(&mut graph);
    graph
}

/// What an operation is folded with: its block, or where it has none, as stashes do, the first
/// name of its path.
fn block_of(row: &OpRow) -> &str {
    match row.name.split_once('/') {
        Some((first, _)) if row.block.is_empty() => first,
        _ => &row.block,
    }
}

fn node(row: &OpRow) -> OpGraphNode {
    OpGraphNode {
        operations: Vec::new(),
        title: row.name.clone(),
        about: row.kind.clone(),
        pass: row.pass,
        ipu: row.ipu,
        block: block_of(row).to_owned(),
        layer: 0,
        x: 0.0,
    }
}

/// Arrows between different nodes that are shown. What is not shown in between is passed through.
fn edges(node_of: &[Option<usize>], inputs: &[Vec<usize>]) -> Vec<OpGraphEdge> {
    // Nodes an operation's results come from: itself, or what a hidden one read.
    let mut sources: Vec<Vec<usize>> = Vec::with_capacity(inputs.len());
    let mut edges = Vec::new();
    for (index, read) in inputs.iter().enumerate() {
        let mut from: Vec<usize> =
            read.iter().filter_map(|input| sources.get(*input)).flatten().copied().collect();
        from.sort_unstable();
        from.dedup();
        match node_of.get(index).copied().flatten() {
            Some(to) => {
                let arrows = from.into_iter().filter(|from| *from != to);
                edges.extend(arrows.map(|from| OpGraphEdge { from, to }));
                sources.push(vec![to]);
            }
            None => sources.push(from),
        }
    }
    edges.sort_unstable();
    edges.dedup();
    edges
}

/// Each node below the lowest it reads. Blocks shown as one may read each other; an arrow that
/// would lead up again is not followed.
fn put_in_layers(graph: &mut OpGraph) {
    let first = |node: &OpGraphNode| node.operations.first().copied().unwrap_or(0);
    let mut order: Vec<usize> = (0..graph.nodes.len()).collect();
    order.sort_by_key(|node| first(&graph.nodes[*node]));
    let mut rank = vec![0; graph.nodes.len()];
    for (place, node) in order.iter().enumerate() {
        rank[*node] = place;
    }
    let mut below: Vec<Vec<usize>> = vec![Vec::new(); graph.nodes.len()];
    for edge in graph.edges.iter().filter(|edge| rank[edge.from] < rank[edge.to]) {
        below[edge.from].push(edge.to);
    }
    for node in order {
        let next = graph.nodes[node].layer + 1;
        for to in &below[node] {
            graph.nodes[*to].layer = graph.nodes[*to].layer.max(next);
        }
    }
    graph.layers = graph.nodes.iter().map(|node| node.layer + 1).max().unwrap_or(0);
}

/// Nodes of one layer and lane, from the left.
type OpGraphCells = BTreeMap<(usize, Option<IpuId>), Vec<usize>>;

fn put_in_order(graph: &mut OpGraph) {
    let mut cells = OpGraphCells::new();
    for (index, node) in graph.nodes.iter().enumerate() {
        cells.entry((node.layer, node.ipu)).or_default().push(index);
    }
    put_lanes(graph, &cells);
    let mut above: Vec<Vec<usize>> = vec![Vec::new(); graph.nodes.len()];
    let mut below: Vec<Vec<usize>> = vec![Vec::new(); graph.nodes.len()];
    for edge in &graph.edges {
        above[edge.to].push(edge.from);
        below[edge.from].push(edge.to);
    }
    for (at, nodes) in &cells {
        spread(graph, at.1, nodes);
    }
    for sweep in 0..SWEEPS {
        let (down, near) = if sweep % 2 == 0 { (true, &above) } else { (false, &below) };
        let mut order: Vec<(usize, Option<IpuId>)> = cells.keys().copied().collect();
        if !down {
            order.reverse();
        }
        for at in order {
            let Some(nodes) = cells.get_mut(&at) else { continue };
            let mut wanted: Vec<(f64, usize)> =
                nodes.iter().map(|node| (barycentre(graph, &near[*node], *node), *node)).collect();
            wanted.sort_by(|(a, n), (b, m)| a.total_cmp(b).then(n.cmp(m)));
            *nodes = wanted.into_iter().map(|(_, node)| node).collect();
            spread(graph, at.1, nodes);
        }
    }
}

/// Where a node would stand in the middle of its neighbours.
fn barycentre(graph: &OpGraph, near: &[usize], node: usize) -> f64 {
    let sum: f64 = near.iter().map(|other| graph.nodes[*other].x).sum();
    if near.is_empty() { graph.nodes[node].x } else { sum / near.len() as f64 }
}

/// A lane for each IPU, as wide as its widest layer.
fn put_lanes(graph: &mut OpGraph, cells: &OpGraphCells) {
    let mut widths: BTreeMap<Option<IpuId>, usize> = BTreeMap::new();
    for ((_, ipu), nodes) in cells {
        let width = widths.entry(*ipu).or_default();
        *width = (*width).max(nodes.len());
    }
    let mut left = 0.0;
    for (ipu, width) in widths {
        graph.lanes.push(OpGraphLane { ipu, left, width: width as f64 });
        left += width as f64;
    }
}

/// Puts nodes of a layer into the middle of their lane, side by side.
fn spread(graph: &mut OpGraph, ipu: Option<IpuId>, nodes: &[usize]) {
    let Some(lane) = graph.lanes.iter().find(|lane| lane.ipu == ipu).copied() else { return };
    let left = lane.left + (lane.width - nodes.len() as f64) / 2.0 + 0.5;
    for (place, node) in nodes.iter().enumerate() {
        graph.nodes[*node].x = left + place as f64;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(name: &str, block: &str, pass: TrainingPass) -> OpRow {
        let (name, block) = (name.to_owned(), block.to_owned());
        OpRow { name, block, pass: Some(pass), ..OpRow::default() }
    }

    fn model() -> (Vec<OpRow>, Vec<Vec<usize>>) {
        let rows = vec![
            row("a", "B1", TrainingPass::Forward),
            row("b", "B1", TrainingPass::Forward),
            row("c", "B2", TrainingPass::Forward),
            row("c/bwd", "B2", TrainingPass::Backward),
            row("a/bwd", "B1", TrainingPass::Backward),
            row("update", "B1", TrainingPass::Update),
        ];
        (rows, vec![vec![], vec![0], vec![0, 1], vec![2, 1], vec![3, 0], vec![4]])
    }

    #[test]
    fn arrows_point_down() {
        let (rows, inputs) = model();
        let key = OpGraphKey { backward: true, update: true, open: None };
        let graph = laid_out(rows, &inputs, &key);
        assert_eq!(graph.nodes.len(), 6);
        assert_eq!(graph.edges.len(), 8);
        for edge in &graph.edges {
            assert!(graph.nodes[edge.from].layer < graph.nodes[edge.to].layer, "{edge:?}");
        }
        let place = |node: &OpGraphNode| (node.layer, (node.x * 2.0) as u64);
        let mut places: Vec<_> = graph.nodes.iter().map(place).collect();
        places.sort_unstable();
        places.dedup();
        assert_eq!(places.len(), graph.nodes.len(), "no two nodes lie on each other");
    }

    #[test]
    fn hidden_passes_are_passed_through() {
        let (rows, inputs) = model();
        let key = OpGraphKey { backward: false, update: true, open: None };
        let graph = laid_out(rows, &inputs, &key);
        let names: Vec<_> = graph.nodes.iter().map(|node| node.title.as_str()).collect();
        assert_eq!(names, ["a", "b", "c", "update"]);
        let to_update: Vec<_> =
            graph.edges.iter().filter(|edge| edge.to == 3).map(|edge| edge.from).collect();
        assert_eq!(to_update, [0, 1, 2]);
    }

    #[test]
    fn a_folded_block_is_one_node_per_pass_and_ipu() {
        let (rows, inputs) = model();
        let key = OpGraphKey { backward: true, update: false, open: Some(vec!["B2".to_owned()]) };
        let graph = laid_out(rows, &inputs, &key);
        let names: Vec<_> = graph.nodes.iter().map(|node| node.title.as_str()).collect();
        // A block of one operation keeps the name of that.
        assert_eq!(names, ["B1", "c", "c/bwd", "a/bwd"]);
        assert_eq!(graph.nodes[0].operations, [0, 1]);
        let all: usize = graph.nodes.iter().map(|node| node.operations.len()).sum();
        assert_eq!(all, 5);
    }
}
