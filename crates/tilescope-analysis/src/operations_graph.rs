//! The model as a graph of operations, with edges from results to their readers.
//!
//! Each IPU is a separate band. Within it the forward pass goes down, the backward pass goes up
//! beside it, with each node at the level of its stored activations, and weight updates are beside
//! that. A band that is too tall for its width continues in the next column, and a large number of
//! bands is split into several lines.

pub use super::graph_layout::LayoutPoint;
use super::graph_layout::{GraphLayout, LayoutInput, LayoutLane, lay_out};
use super::operations::{OpRow, OperationLayer, operations};
use std::collections::BTreeMap;
use tilescope_report::units::IpuId;
use tilescope_report::{Report, ReportError, ReportPart, TrainingPass};

/// An operation, or several operations of one block as one node.
#[derive(Clone, Debug, PartialEq)]
pub struct OpGraphNode {
    /// The operations, as indices in [`OpGraph::rows`].
    pub operations: Vec<usize>,
    /// The text of its box.
    pub title: String,
    /// The second line of text in its box.
    pub about: String,
    /// Forward, backward or update.
    pub pass: Option<TrainingPass>,
    /// IPU of the replica.
    pub ipu: Option<IpuId>,
    /// Block of the model.
    pub block: String,
    /// Row, counted from the top.
    pub layer: usize,
    /// Position of its centre from the left, in node widths.
    pub x: f64,
}

/// The nodes of one IPU.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct OpGraphLane {
    /// The IPU; `None` if it is not known.
    pub ipu: Option<IpuId>,
    /// Left edge, in node widths.
    pub left: f64,
    /// Number of nodes side by side.
    pub width: f64,
    /// First row, and number of rows.
    pub top: usize,
    pub rows: usize,
}

/// An arrow between two nodes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct OpGraphEdge {
    /// The node with the results.
    pub from: usize,
    /// The node that reads them.
    pub to: usize,
}

/// Nodes and arrows with their layout.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct OpGraph {
    /// Costs of each operation.
    pub rows: Vec<OpRow>,
    pub nodes: Vec<OpGraphNode>,
    /// The arrows, without repetition.
    pub edges: Vec<OpGraphEdge>,
    /// The bends of each arrow, for its way around nodes.
    pub bends: Vec<Vec<LayoutPoint>>,
    /// Number of rows of nodes.
    pub layers: usize,
    /// The IPUs, from the left.
    pub lanes: Vec<OpGraphLane>,
}

impl OpGraph {
    /// Width, in node widths.
    pub fn width(&self) -> f64 {
        self.lanes.iter().map(|lane| lane.left + lane.width).fold(0.0, f64::max)
    }
}

/// The options that determine the graph.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct OpGraphKey {
    /// True to show the backward pass and weight updates beside the forward pass.
    pub backward: bool,
    pub update: bool,
    /// Names of the blocks whose operations are shown individually; `None` for all blocks.
    pub open: Option<Vec<String>>,
}

/// The graph of a report; `None` if the inputs of operations were not recorded.
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

/// Creates the nodes of operations and computes their layout.
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
        // A single operation keeps its name.
        if count == 1 {
            continue;
        }
        nodes[*place].title = block.clone();
        nodes[*place].about = format!("{count} operations");
    }
    let edges = edges(&node_of, inputs);
    let mut graph = OpGraph { rows, nodes, edges, ..OpGraph::default() };
    put_in_place(&mut graph);
    graph
}

/// The name that operations are folded by: the block, or without a block, as for stashes, the first
/// part of the path.
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

/// Arrows between different visible nodes, passing through hidden ones.
fn edges(node_of: &[Option<usize>], inputs: &[Vec<usize>]) -> Vec<OpGraphEdge> {
    // Nodes that an operation's results come from: itself, or the inputs of a hidden operation.
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

/// The position of a pass within the band of an IPU.
fn pass_place(pass: Option<TrainingPass>) -> usize {
    match pass {
        Some(TrainingPass::Forward) | None => 0,
        Some(TrainingPass::Backward) => 1,
        Some(TrainingPass::Update) => 2,
    }
}

/// Assigns rows and positions to nodes: a band for each IPU, with a downward lane for the forward
/// pass, an upward one for the backward pass, and one for the weight updates.
fn put_in_place(graph: &mut OpGraph) {
    let keys: Vec<(Option<IpuId>, usize)> =
        graph.nodes.iter().map(|node| (node.ipu, pass_place(node.pass))).collect();
    let mut kinds = keys.clone();
    kinds.sort_unstable();
    kinds.dedup();
    let mut ipus: Vec<Option<IpuId>> = kinds.iter().map(|(ipu, _)| *ipu).collect();
    ipus.dedup();
    let mut lanes = Vec::new();
    for (ipu, pass) in &kinds {
        let band = ipus.binary_search(ipu).unwrap_or_default();
        lanes.push(LayoutLane { band, goes_up: *pass == 1 });
    }
    let lane_of: Vec<usize> =
        keys.iter().map(|key| kinds.binary_search(key).unwrap_or_default()).collect();
    let edges: Vec<(usize, usize)> = graph.edges.iter().map(|edge| (edge.from, edge.to)).collect();
    let layout = lay_out(&LayoutInput { lanes: &lanes, lane_of: &lane_of, edges: &edges });
    let places = BandPlaces::new(&layout);
    for (node, (at, lane)) in graph.nodes.iter_mut().zip(layout.nodes.iter().zip(&lane_of)) {
        let point = places.place(*at, lanes.get(*lane).map_or(0, |lane| lane.band));
        (node.x, node.layer) = (point.x, point.row);
    }
    graph.bends = Vec::with_capacity(layout.bends.len());
    for (bends, (from, _)) in layout.bends.iter().zip(&edges) {
        let band = lanes.get(lane_of[*from]).map_or(0, |lane| lane.band);
        graph.bends.push(bends.iter().map(|at| places.place(*at, band)).collect());
    }
    graph.layers = places.all_rows;
    graph.lanes = ipus.into_iter().enumerate().map(|(band, ipu)| places.lane(ipu, band)).collect();
}

/// Aspect ratio of a graph that fills a window, and that of the area of a node.
const ASPECT: f64 = 1.8;
const PLACE_ASPECT: f64 = 2.5;

/// The placement of bands in a window: a band that is too tall for its width continues at the top
/// of its next column, and a row of bands that is too wide continues in the next line.
struct BandPlaces {
    /// Columns of each band.
    columns: usize,
    /// Rows of a column.
    rows: usize,
    /// Left edge and width of each band before placement.
    before: Vec<(f64, f64)>,
    /// Left edge and top row of each band.
    now: Vec<(f64, usize)>,
    /// Rows of all lines of bands.
    all_rows: usize,
}

impl BandPlaces {
    fn new(layout: &GraphLayout) -> Self {
        let width: f64 = layout.bands.iter().map(|(_, width)| width).sum();
        // The aspect ratio of the graph, divided by that of a window.
        let shape = width.max(1.0) * PLACE_ASPECT / (ASPECT * layout.rows.max(1) as f64);
        // A column has at least a few rows.
        let columns = shape.recip().sqrt().round() as usize;
        let columns = columns.clamp(1, layout.rows.div_ceil(4).max(1));
        let rows = layout.rows.div_ceil(columns);
        let count = layout.bands.len();
        let lines = (shape.sqrt().round() as usize).clamp(1, count.max(1));
        let per_line = count.div_ceil(lines).max(1);
        let mut now = Vec::with_capacity(count);
        for (line, bands) in layout.bands.chunks(per_line).enumerate() {
            let mut at = 0.0;
            for (_, width) in bands {
                // Each line has space above it for the names of its bands.
                now.push((at, line * (rows + 1)));
                at += width * columns as f64;
            }
        }
        let lines = count.div_ceil(per_line);
        let all_rows = (lines * (rows + 1)).saturating_sub(1);
        Self { columns, rows, before: layout.bands.clone(), now, all_rows }
    }

    fn place(&self, at: LayoutPoint, band: usize) -> LayoutPoint {
        let (before, width) = self.before.get(band).copied().unwrap_or_default();
        let (left, top) = self.now.get(band).copied().unwrap_or_default();
        let rows = self.rows.max(1);
        LayoutPoint {
            x: at.x - before + left + width * (at.row / rows) as f64,
            row: top + at.row % rows,
        }
    }

    fn lane(&self, ipu: Option<IpuId>, band: usize) -> OpGraphLane {
        let (_, width) = self.before.get(band).copied().unwrap_or_default();
        let (left, top) = self.now.get(band).copied().unwrap_or_default();
        OpGraphLane { ipu, left, width: width * self.columns as f64, top, rows: self.rows }
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
    fn the_forward_pass_goes_down_and_the_backward_pass_up_beside_it() {
        let (rows, inputs) = model();
        let key = OpGraphKey { backward: true, update: true, open: None };
        let graph = laid_out(rows, &inputs, &key);
        assert_eq!(graph.nodes.len(), 6);
        assert_eq!(graph.edges.len(), 8);
        let rows: Vec<usize> = graph.nodes.iter().map(|node| node.layer).collect();
        assert_eq!(rows[..5], [0, 1, 2, 2, 0]);
        assert!(graph.nodes[3].x > graph.nodes[2].x, "backward stands to the right");
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
        // A block of a single operation keeps that operation's name.
        assert_eq!(names, ["B1", "c", "c/bwd", "a/bwd"]);
        assert_eq!(graph.nodes[0].operations, [0, 1]);
        let all: usize = graph.nodes.iter().map(|node| node.operations.len()).sum();
        assert_eq!(all, 5);
    }
}
