//! Domain sharding: fields and images are split by rows over the IPUs of a replica.
//!
//! Each IPU holds some rows of every tensor and makes its rows of every result. Rows beside its own
//! that a window reads, the halo, come from its neighbours before the operation. All IPUs work on
//! the same step at once, so that one exchange serves them all: a step ends where an operation
//! needs a halo. What needs all rows, such as a global pooling, is done by the first IPU alone.

use super::{GraphBuilder, GraphError, GraphNode, ModelGraph};
use crate::operators::{ConcatOp, OperationSink, Operator, RowWindow, SliceOp};
use crate::shape::{BlockId, Tensor, TensorId, TensorInfo, TensorRole};
use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;

/// Where the rows of a tensor are.
#[derive(Clone, Debug)]
enum RowPlacement {
    /// All on the first IPU.
    Whole(TensorId),
    /// All on every IPU: weights, and what follows from them alone.
    Copies(Vec<TensorId>),
    /// Some on each IPU.
    Split { axis: usize, parts: Vec<RowPart> },
}

/// Rows of a tensor on one IPU.
#[derive(Clone, Debug)]
struct RowPart {
    tensor: TensorId,
    rows: Range<u64>,
}

/// A graph while it is split.
struct RowSplitter {
    builder: GraphBuilder,
    shards: usize,
    /// By tensor of the graph before: its rows, and the step that makes it.
    placed: BTreeMap<TensorId, (RowPlacement, usize)>,
    /// Step and IPU of each block so far.
    blocks: Vec<(usize, usize)>,
    /// Halos that were sent: what of, from which IPU, and which rows.
    halos: BTreeMap<(TensorId, usize, u64, u64), TensorId>,
}

impl ModelGraph {
    /// Whether an input is a field of so many rows, which an operation reads by windows, that
    /// `shards` IPUs can share it.
    pub(crate) fn has_rows_for(&self, shards: u32) -> bool {
        let is_shared = |(tensor, axis): (&Tensor, Option<usize>)| {
            let rows = axis.and_then(|axis| tensor.ty.shape.get(axis));
            tensor.role == TensorRole::Input && rows.is_some_and(|rows| *rows >= u64::from(shards))
        };
        self.tensors.iter().zip(self.field_axes()).any(is_shared)
    }

    /// For each tensor, the axis of its rows if an operation reads it by windows of rows.
    fn field_axes(&self) -> impl Iterator<Item = Option<usize>> {
        let mut axes = vec![None; self.tensors.len()];
        for node in &self.nodes {
            let window = node.operator.row_window(&self.types(&node.inputs));
            let axis = window.and_then(|window| window.axis);
            if let (Some(axis), Some(input)) = (axis, node.inputs.first()) {
                axes[input.0] = Some(axis);
            }
        }
        axes.into_iter()
    }

    /// Splits fields by rows over `shards` IPUs. Blocks of the result are steps, each with a part
    /// for every IPU.
    ///
    /// # Errors
    /// Operators that refuse their part of a field.
    pub(crate) fn split_rows(self, shards: u32) -> Result<ModelGraph, GraphError> {
        let mut splitter = RowSplitter {
            builder: GraphBuilder::new(),
            shards: shards as usize,
            placed: BTreeMap::new(),
            blocks: Vec::new(),
            halos: BTreeMap::new(),
        };
        let made: Vec<TensorId> = self.nodes.iter().flat_map(|node| node.outputs.clone()).collect();
        let axes: Vec<Option<usize>> = self.field_axes().collect();
        for (index, axis) in axes.into_iter().enumerate() {
            let id = TensorId(index);
            if !made.contains(&id) {
                splitter.place_source(&self, id, axis);
            }
        }
        for node in &self.nodes {
            splitter.builder.set_origin(node.source.clone(), node.options);
            splitter.add_node(node, &self.types(&node.inputs))?;
        }
        for output in &self.outputs {
            let tensors = match &splitter.placed[output].0 {
                RowPlacement::Whole(tensor) => vec![*tensor],
                RowPlacement::Copies(copies) => copies[..1].to_vec(),
                RowPlacement::Split { parts, .. } => parts.iter().map(|part| part.tensor).collect(),
            };
            tensors.into_iter().for_each(|tensor| splitter.builder.output(tensor));
        }
        Ok(ModelGraph { imported: self.imported, notes: self.notes, ..splitter.finish() })
    }
}

impl RowSplitter {
    /// What follows is done by an IPU in a step.
    fn enter(&mut self, step: usize, shard: usize) {
        if !self.blocks.contains(&(step, shard)) {
            self.blocks.push((step, shard));
        }
        self.builder.block(&block_name(step, shard));
    }

    /// A tensor that no operation makes: inputs that are fields come to each IPU in parts.
    fn place_source(&mut self, graph: &ModelGraph, id: TensorId, axis: Option<usize>) {
        let tensor = graph.tensor(id);
        let is_input = tensor.role == TensorRole::Input;
        let parts = axis.and_then(|axis| Some((axis, self.even_rows(tensor.ty.shape[axis])?)));
        let placement = match parts.filter(|_| is_input) {
            Some((axis, rows)) => {
                let mut parts = Vec::new();
                for (shard, rows) in rows.into_iter().enumerate() {
                    self.enter(0, shard);
                    let mut ty = tensor.ty.clone();
                    ty.shape[axis] = rows.end - rows.start;
                    let name = shard_name(shard, &tensor.name);
                    let tensor = self.builder.tensor(&name, ty, tensor.role);
                    parts.push(RowPart { tensor, rows });
                }
                RowPlacement::Split { axis, parts }
            }
            None => {
                self.enter(0, 0);
                let whole = self.builder.tensor(&tensor.name, tensor.ty.clone(), tensor.role);
                match is_input {
                    true => RowPlacement::Whole(whole),
                    false => RowPlacement::Copies(vec![whole; self.shards]),
                }
            }
        };
        self.placed.insert(id, (placement, 0));
    }

    /// Rows of each IPU, as even as they can be; none where there are fewer rows than IPUs.
    fn even_rows(&self, rows: u64) -> Option<Vec<Range<u64>>> {
        let shards = self.shards as u64;
        let part = |shard: u64| shard * rows / shards..(shard + 1) * rows / shards;
        (rows >= shards).then(|| (0..shards).map(part).collect())
    }

    fn add_node(&mut self, node: &GraphNode, types: &[TensorInfo]) -> Result<(), GraphError> {
        let is_copy = |of: &TensorId| matches!(self.placed[of].0, RowPlacement::Copies(_));
        if node.inputs.iter().all(is_copy) {
            return self.add_copies(node);
        }
        let split = node.inputs.iter().find_map(|input| match &self.placed[input].0 {
            RowPlacement::Split { axis, parts } => Some((*axis, parts.clone())),
            RowPlacement::Whole(_) | RowPlacement::Copies(_) => None,
        });
        if let (Some(window), Some((axis, parts))) = (node.operator.row_window(types), split)
            && window.axis.is_none_or(|of| of == axis)
            && let Some(rows) = self.rows_of_results(&window, &parts)
        {
            return self.add_by_rows(node, window, (axis, &parts), rows);
        }
        self.add_whole(node)
    }

    /// Rows of its results that each IPU makes; none where there are too few for all.
    fn rows_of_results(&self, window: &RowWindow, parts: &[RowPart]) -> Option<Vec<Range<u64>>> {
        if window.is_pointwise() {
            return Some(parts.iter().map(|part| part.rows.clone()).collect());
        }
        self.even_rows(window.results(parts.last()?.rows.end))
    }

    /// An operation on weights alone, which every IPU does.
    fn add_copies(&mut self, node: &GraphNode) -> Result<(), GraphError> {
        let mut copies = vec![Vec::new(); node.outputs.len()];
        for shard in 0..self.shards {
            let operands: Vec<TensorId> =
                node.inputs.iter().filter_map(|input| self.placed[input].0.on(shard)).collect();
            self.enter(0, shard);
            let (name, operator) = (shard_name(shard, &node.name), Arc::clone(&node.operator));
            let made = self.builder.add(&name, operator, &operands)?;
            copies.iter_mut().zip(made).for_each(|(copies, made)| copies.push(made));
        }
        for (output, copies) in node.outputs.iter().zip(copies) {
            self.placed.insert(*output, (RowPlacement::Copies(copies), 0));
        }
        Ok(())
    }

    /// Latest step that makes an operand.
    fn operand_step(&self, node: &GraphNode) -> usize {
        node.inputs.iter().map(|input| self.placed[input].1).max().unwrap_or(0)
    }

    /// An operation that needs all rows: the first IPU gets those of the others.
    fn add_whole(&mut self, node: &GraphNode) -> Result<(), GraphError> {
        let mut step = self.operand_step(node);
        let mut gathered = Vec::new();
        for input in &node.inputs {
            if let RowPlacement::Split { axis, parts } = self.placed[input].0.clone() {
                step = step.max(self.placed[input].1 + 1);
                gathered.push((*input, axis, parts));
            }
        }
        self.enter(step, 0);
        for (input, axis, parts) in gathered {
            let parts: Vec<TensorId> = parts.into_iter().map(|part| part.tensor).collect();
            let name = format!("{}/gatherRows", node.name);
            let whole = self.builder.apply(&name, ConcatOp { axis }, &parts)?;
            self.placed.insert(input, (RowPlacement::Whole(whole), step));
        }
        let operands: Vec<TensorId> =
            node.inputs.iter().filter_map(|input| self.placed[input].0.on(0)).collect();
        let made = self.builder.add(&node.name, Arc::clone(&node.operator), &operands)?;
        for (output, made) in node.outputs.iter().zip(made) {
            self.placed.insert(*output, (RowPlacement::Whole(made), step));
        }
        Ok(())
    }

    /// An operation each of whose rows follows from some rows of its operands.
    fn add_by_rows(
        &mut self,
        node: &GraphNode,
        window: RowWindow,
        (axis, sources): (usize, &[RowPart]),
        rows: Vec<Range<u64>>,
    ) -> Result<(), GraphError> {
        let in_rows = sources.last().map_or(0, |part| part.rows.end);
        let needs_halo = rows.iter().zip(sources).any(|(rows, own)| {
            let (needed, _) = window.operand_rows(rows, in_rows);
            needed.start < own.rows.start || needed.end > own.rows.end
        });
        let step = self.operand_step(node) + usize::from(needs_halo);
        let mut made: Vec<Vec<RowPart>> = vec![Vec::new(); node.outputs.len()];
        for (shard, rows) in rows.into_iter().enumerate() {
            let (needed, edges) = window.operand_rows(&rows, in_rows);
            let operands = self.operands_of(node, axis, shard, &needed, step)?;
            let on_rows = node.operator.on_rows(edges);
            let operator = on_rows.unwrap_or_else(|| Arc::clone(&node.operator));
            self.enter(step, shard);
            let outputs = self.builder.add(&shard_name(shard, &node.name), operator, &operands)?;
            for (made, tensor) in made.iter_mut().zip(outputs) {
                made.push(RowPart { tensor, rows: rows.clone() });
            }
        }
        for (output, parts) in node.outputs.iter().zip(made) {
            self.placed.insert(*output, (RowPlacement::Split { axis, parts }, step));
        }
        Ok(())
    }

    /// What an IPU works on: its rows of each operand, with the halo.
    fn operands_of(
        &mut self,
        node: &GraphNode,
        axis: usize,
        shard: usize,
        needed: &Range<u64>,
        step: usize,
    ) -> Result<Vec<TensorId>, GraphError> {
        let mut operands = Vec::new();
        for input in &node.inputs {
            let (placement, made_in) = self.placed[input].clone();
            let parts = match placement {
                RowPlacement::Split { parts, .. } => parts,
                other => {
                    operands.extend(other.on(shard));
                    continue;
                }
            };
            let mut pieces = Vec::new();
            for (from, part) in parts.iter().enumerate() {
                let rows = part.rows.start.max(needed.start)..part.rows.end.min(needed.end);
                if rows.start >= rows.end {
                    continue;
                }
                let local = rows.start - part.rows.start..rows.end - part.rows.start;
                pieces.push(if from != shard {
                    self.enter(made_in, from);
                    self.halo(node, part.tensor, axis, from, local)?
                } else if rows == part.rows {
                    part.tensor
                } else {
                    self.enter(step, shard);
                    let name = format!("{}/rows", shard_name(shard, &node.name));
                    self.builder.apply(&name, SliceOp { axis, range: local }, &[part.tensor])?
                });
            }
            if node.operator.takes_halo_apart() {
                // Its own rows come first, then what lies above and below.
                let own = pieces.iter().position(|piece| *piece == parts[shard].tensor);
                if let Some(own) = own {
                    pieces[..=own].rotate_right(1);
                }
                operands.extend(pieces);
            } else if let [only] = pieces[..] {
                operands.push(only);
            } else {
                self.enter(step, shard);
                let name = format!("{}/halo", shard_name(shard, &node.name));
                operands.push(self.builder.apply(&name, ConcatOp { axis }, &pieces)?);
            }
        }
        Ok(operands)
    }

    /// Rows that one IPU sends others.
    fn halo(
        &mut self,
        node: &GraphNode,
        tensor: TensorId,
        axis: usize,
        from: usize,
        rows: Range<u64>,
    ) -> Result<TensorId, GraphError> {
        let key = (tensor, from, rows.start, rows.end);
        if let Some(sent) = self.halos.get(&key) {
            return Ok(*sent);
        }
        let name = format!("{}/haloRows{}", shard_name(from, &node.name), rows.start);
        let operator: Arc<dyn Operator> = node.operator.halo_rows(axis, rows);
        let sent = self.builder.add(&name, operator, &[tensor])?[0];
        self.halos.insert(key, sent);
        Ok(sent)
    }

    /// The graph with its blocks in the order of steps, one for each IPU.
    fn finish(self) -> ModelGraph {
        let Self { builder, shards, blocks, .. } = self;
        let mut graph = builder.finish();
        let steps = blocks.iter().map(|(step, _)| step + 1).max().unwrap_or(0);
        let place = |block: BlockId| {
            let (step, shard) = blocks[block.0];
            BlockId(step * shards + shard)
        };
        graph.nodes.iter_mut().for_each(|node| node.block = place(node.block));
        graph.tensors.iter_mut().for_each(|tensor| tensor.block = place(tensor.block));
        let all = (0..steps).flat_map(|step| (0..shards).map(move |shard| block_name(step, shard)));
        graph.blocks = all.collect();
        graph.row_shards = shards;
        graph
    }
}

impl RowPlacement {
    /// The tensor that an IPU reads; none of one that is split.
    fn on(&self, shard: usize) -> Option<TensorId> {
        match self {
            Self::Whole(tensor) => Some(*tensor),
            Self::Copies(copies) => copies.get(shard).copied(),
            Self::Split { .. } => None,
        }
    }
}

fn shard_name(shard: usize, name: &str) -> String {
    format!("shard{shard}/{name}")
}

fn block_name(step: usize, shard: usize) -> String {
    format!("step{step}/shard{shard}")
}
