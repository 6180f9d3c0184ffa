//! Domain sharding: splits fields and images by rows over the IPUs of a replica.
//!
//! Each IPU holds some rows of every tensor and computes its rows of every result. If a window also
//! reads adjacent rows, the halo, these come from the neighbours before the operation. All IPUs
//! work on the same step at once, so one exchange serves them all. A step ends where an operation
//! needs a halo or sums over all rows. The first IPU alone runs operations that need all rows, such
//! as global pooling.
//!
//! A split graph is trained like any other. The gradient of a halo goes back to the IPU that owns
//! the rows and is added there. Steps of the backward pass are those of the forward pass in
//! reverse, so one exchange again serves all IPUs. Every IPU has its own copy of the weights, and
//! the gradients of a copy cover only its rows. They are summed over the IPUs before the update.

use super::{GraphBuilder, GraphError, GraphNode, GraphProblem, ModelGraph};
use crate::operators::{
    GatherRowsOp, JoinedRowsOp, OperationSink, Operator, RowWindow, SliceOp, SumsOverRows,
};
use crate::shape::{BlockId, Tensor, TensorId, TensorInfo, TensorRole};
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::sync::Arc;

/// Location of the rows of a tensor.
#[derive(Clone, Debug)]
enum RowPlacement {
    /// All rows on the first IPU.
    Whole(TensorId),
    /// All rows on every IPU that reads them: weights, and tensors that depend only on weights.
    Copies,
    /// Some rows on each IPU.
    Split { axis: usize, parts: Vec<RowPart> },
}

/// Rows of a tensor on one IPU.
#[derive(Clone, Debug)]
struct RowPart {
    tensor: TensorId,
    rows: Range<u64>,
}

/// State of splitting a graph.
struct RowSplitter<'a> {
    graph: &'a ModelGraph,
    builder: GraphBuilder,
    shards: usize,
    /// Location of the rows of each tensor of the original graph, and the step that makes it.
    placed: BTreeMap<TensorId, (RowPlacement, usize)>,
    /// The node of the original graph that makes each tensor.
    makers: BTreeMap<TensorId, &'a GraphNode>,
    /// Copies of tensors on each IPU.
    copies: BTreeMap<(TensorId, usize), TensorId>,
    /// Tensors that the first IPU has gathered, with the gathered tensor and the step of the
    /// gathering.
    gathered: BTreeMap<TensorId, (TensorId, usize)>,
    /// Step and IPU of each block created so far.
    blocks: Vec<(usize, usize)>,
    /// Halos sent so far, by tensor, sending IPU and rows.
    halos: BTreeMap<(TensorId, usize, u64, u64), TensorId>,
}

/// The pieces of an operand's rows that an IPU reads.
struct ReadRows {
    pieces: Vec<TensorId>,
    /// Index of the piece that the IPU owns.
    own: Option<usize>,
}

impl ModelGraph {
    /// Returns true if an operation reads an input by windows of rows and the input has enough rows
    /// for `shards` IPUs.
    pub(crate) fn has_rows_for(&self, shards: u32) -> bool {
        // The IPUs would exchange rows in every iteration.
        if !self.repeats.is_empty() {
            return false;
        }
        self.tensors.iter().zip(self.field_axes()).any(|(tensor, axis)| {
            let rows = axis.and_then(|axis| tensor.ty.shape.get(axis));
            tensor.role == TensorRole::Input && rows.is_some_and(|rows| *rows >= u64::from(shards))
        })
    }

    /// For each tensor, the axis of its rows if an operation reads it by windows of rows.
    fn field_axes(&self) -> impl Iterator<Item = Option<usize>> {
        let mut axes = vec![None; self.tensors.len()];
        for node in &self.nodes {
            let window = node.operator.row_window(&self.types(&node.inputs));
            let axis = window.filter(|window| !window.is_pointwise()).and_then(|of| of.axis);
            if let (Some(axis), Some(input)) = (axis, node.inputs.first()) {
                axes[input.0] = Some(axis);
            }
        }
        axes.into_iter()
    }

    /// Splits fields by rows over `shards` IPUs. Blocks of the result are steps, each with one part
    /// for every IPU.
    ///
    /// # Errors
    ///
    /// Those of operators that reject their part of a field.
    pub(crate) fn split_rows(&self, shards: u32) -> Result<ModelGraph, GraphError> {
        let makers =
            self.nodes.iter().flat_map(|node| node.outputs.iter().map(move |of| (*of, node)));
        let mut splitter = RowSplitter {
            graph: self,
            builder: GraphBuilder::new(),
            shards: shards as usize,
            placed: BTreeMap::new(),
            makers: makers.collect(),
            copies: BTreeMap::new(),
            gathered: BTreeMap::new(),
            blocks: Vec::new(),
            halos: BTreeMap::new(),
        };
        let axes: Vec<Option<usize>> = self.field_axes().collect();
        for (index, axis) in axes.into_iter().enumerate() {
            let id = TensorId(index);
            if !splitter.makers.contains_key(&id) {
                splitter.place_source(id, axis);
            }
        }
        for node in &self.nodes {
            splitter.add_node(node)?;
        }
        for (of_graph, is_loss) in [(&self.outputs, false), (&self.losses, true)] {
            for tensor in of_graph {
                for part in splitter.all_of(*tensor)? {
                    if is_loss {
                        splitter.builder.loss(part);
                    } else {
                        splitter.builder.output(part);
                    }
                }
            }
        }
        let imported = self.imported.clone();
        let notes = self.notes.clone();
        Ok(ModelGraph { imported, notes, ..splitter.finish() })
    }
}

impl<'a> RowSplitter<'a> {
    /// Assigns the nodes and tensors that follow to an IPU in a step.
    fn enter(&mut self, step: usize, shard: usize) {
        if !self.blocks.contains(&(step, shard)) {
            self.blocks.push((step, shard));
        }
        self.builder.block(&block_name(step, shard));
    }

    /// Places a tensor that no operation makes. Inputs that are fields are split between the IPUs.
    fn place_source(&mut self, id: TensorId, axis: Option<usize>) {
        let tensor = self.graph.tensor(id);
        let parts = axis.and_then(|axis| Some((axis, self.even_rows(tensor.ty.shape[axis])?)));
        let placement = match (tensor.role, parts) {
            (TensorRole::Input, Some((axis, rows))) => {
                let mut parts = Vec::new();
                for (shard, rows) in rows.into_iter().enumerate() {
                    let mut ty = tensor.ty.clone();
                    ty.shape[axis] = rows.end - rows.start;
                    let part = self.add_source(tensor, ty, shard);
                    self.keep_settings(id, part);
                    parts.push(RowPart { tensor: part, rows });
                }
                RowPlacement::Split { axis, parts }
            }
            (TensorRole::Input, None) => {
                self.enter(0, 0);
                let whole = self.builder.tensor(&tensor.name, tensor.ty.clone(), tensor.role);
                self.keep_settings(id, whole);
                RowPlacement::Whole(whole)
            }
            _ => RowPlacement::Copies,
        };
        self.placed.insert(id, (placement, 0));
    }

    /// Copies the input settings of a tensor of the model to a part of it.
    fn keep_settings(&mut self, of: TensorId, part: TensorId) {
        if let Some(settings) = self.graph.input_settings.get(&of) {
            self.builder.set_input_settings(part, *settings);
        }
    }

    /// Adds one IPU's part of a tensor that no operation makes.
    fn add_source(&mut self, tensor: &Tensor, ty: TensorInfo, shard: usize) -> TensorId {
        self.enter(0, shard);
        self.builder.tensor(&shard_name(shard, &tensor.name), ty, tensor.role)
    }

    /// Rows of each IPU, as even as possible. `None` if there are fewer rows than IPUs.
    fn even_rows(&self, rows: u64) -> Option<Vec<Range<u64>>> {
        let shards = self.shards as u64;
        if rows < shards {
            return None;
        }
        Some((0..shards).map(|shard| shard * rows / shards..(shard + 1) * rows / shards).collect())
    }

    fn add_node(&mut self, node: &'a GraphNode) -> Result<(), GraphError> {
        self.builder.set_origin(node.source.clone(), node.options);
        if node.inputs.iter().all(|input| matches!(self.placed[input].0, RowPlacement::Copies)) {
            // Each IPU that reads the result computes it itself.
            let copies = node.outputs.iter().map(|output| (*output, (RowPlacement::Copies, 0)));
            self.placed.extend(copies);
            return Ok(());
        }
        let types = self.graph.types(&node.inputs);
        let split = node.inputs.iter().find_map(|input| match &self.placed[input].0 {
            RowPlacement::Split { axis, parts } => Some((*axis, parts.clone())),
            RowPlacement::Whole(_) | RowPlacement::Copies => None,
        });
        let Some((axis, parts)) = split else { return self.add_whole(node) };
        if let Some(window) = node.operator.row_window(&types)
            && window.axis.is_none_or(|of| of == axis)
            && let Some(rows) = self.rows_of_results(&window, &parts)
        {
            return self.add_by_rows(node, window, (axis, &parts), rows);
        }
        let of_first = node.inputs.first().map(|input| &self.placed[input].0);
        let is_first = matches!(of_first, Some(RowPlacement::Split { .. }));
        match node.operator.sums_over_rows(&types) {
            Some(over) if over.axis == axis && is_first => self.add_by_sums(node, &over, &parts),
            _ => self.add_whole(node),
        }
    }

    /// Rows of the results that each IPU makes. `None` if there are too few for all.
    fn rows_of_results(&self, window: &RowWindow, parts: &[RowPart]) -> Option<Vec<Range<u64>>> {
        if window.is_pointwise() {
            return Some(parts.iter().map(|part| part.rows.clone()).collect());
        }
        self.even_rows(window.results(parts.last()?.rows.end))
    }

    /// Returns an IPU's copy of a tensor that depends only on weights, made for a step that reads
    /// it.
    fn copy_on(&mut self, id: TensorId, step: usize, shard: usize) -> Result<TensorId, GraphError> {
        if let Some(known) = self.copies.get(&(id, shard)) {
            return Ok(*known);
        }
        let Some(maker) = self.makers.get(&id).copied() else {
            let tensor = self.graph.tensor(id);
            let copy = self.add_source(tensor, tensor.ty.clone(), shard);
            self.copies.insert((id, shard), copy);
            return Ok(copy);
        };
        let mut operands = Vec::new();
        for input in &maker.inputs {
            operands.push(self.copy_on(*input, step, shard)?);
        }
        self.enter(step, shard);
        let name = shard_name(shard, &maker.name);
        let operator = Arc::clone(&maker.operator);
        let made = self.builder.add(&name, operator, &operands)?;
        let copies = maker.outputs.iter().zip(made).map(|(of, copy)| ((*of, shard), copy));
        self.copies.extend(copies);
        Ok(self.copies[&(id, shard)])
    }

    /// Returns all parts of a tensor, regardless of their placement.
    fn all_of(&mut self, id: TensorId) -> Result<Vec<TensorId>, GraphError> {
        Ok(match self.placed[&id].0.clone() {
            RowPlacement::Whole(tensor) => vec![tensor],
            RowPlacement::Copies => vec![self.copy_on(id, 0, 0)?],
            RowPlacement::Split { parts, .. } => parts.iter().map(|part| part.tensor).collect(),
        })
    }

    /// Adds an operation that needs all rows. The first IPU receives those of the others.
    fn add_whole(&mut self, node: &GraphNode) -> Result<(), GraphError> {
        let mut step = 0;
        for input in &node.inputs {
            let (placement, made_in) = &self.placed[input];
            let behind = match placement {
                RowPlacement::Split { .. } => {
                    self.gathered.get(input).map_or(made_in + 1, |(_, step)| *step)
                }
                RowPlacement::Whole(_) | RowPlacement::Copies => *made_in,
            };
            step = step.max(behind);
        }
        let mut operands = Vec::new();
        for input in &node.inputs {
            operands.push(match self.placed[input].0.clone() {
                RowPlacement::Whole(tensor) => tensor,
                RowPlacement::Copies => self.copy_on(*input, step, 0)?,
                RowPlacement::Split { axis, parts } => {
                    self.gather(*input, (axis, &parts), node, step)?
                }
            });
        }
        self.enter(step, 0);
        let made = self.builder.add(&node.name, Arc::clone(&node.operator), &operands)?;
        for (output, made) in node.outputs.iter().zip(made) {
            self.placed.insert(*output, (RowPlacement::Whole(made), step));
        }
        Ok(())
    }

    /// Returns all rows of a tensor on the first IPU.
    fn gather(
        &mut self,
        id: TensorId,
        (axis, parts): (usize, &[RowPart]),
        node: &GraphNode,
        step: usize,
    ) -> Result<TensorId, GraphError> {
        if let Some((whole, _)) = self.gathered.get(&id) {
            return Ok(*whole);
        }
        self.enter(step, 0);
        let parts: Vec<TensorId> = parts.iter().map(|part| part.tensor).collect();
        let name = format!("{}/gatherRows", node.name);
        let whole = self.builder.apply(&name, GatherRowsOp { axis }, &parts)?;
        self.gathered.insert(id, (whole, step));
        Ok(whole)
    }

    /// Adds an operation in which each row follows from some rows of its operands.
    fn add_by_rows(
        &mut self,
        node: &GraphNode,
        window: RowWindow,
        (axis, sources): (usize, &[RowPart]),
        rows: Vec<Range<u64>>,
    ) -> Result<(), GraphError> {
        let in_rows = sources.last().map_or(0, |part| part.rows.end);
        let needed: Vec<_> = rows.iter().map(|rows| window.operand_rows(rows, in_rows)).collect();
        let needs_halo = needed
            .iter()
            .zip(sources)
            .any(|((needed, _), own)| needed.start < own.rows.start || needed.end > own.rows.end);
        let step = self.step_behind(node, needs_halo);
        let all = needed.iter().map(|(needed, _)| needed.clone()).collect::<Vec<_>>();
        self.send_halos(node, axis, &all)?;
        let mut made: Vec<Vec<RowPart>> = vec![Vec::new(); node.outputs.len()];
        for (shard, (rows, (needed, edges))) in rows.into_iter().zip(needed).enumerate() {
            let operator = node.operator.on_rows(edges);
            let operator = operator.unwrap_or_else(|| Arc::clone(&node.operator));
            let reads = RowReader { node, axis, shard, needed, in_rows, step };
            let (operator, operands) = self.with_operands(&reads, &window, operator)?;
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

    /// Returns the step in which a node can run by rows: after its operands, and after the exchange
    /// that follows them if others need them.
    fn step_behind(&self, node: &GraphNode, needs_halo: bool) -> usize {
        let mut earliest = 0;
        for input in &node.inputs {
            let after_input = match &self.placed[input] {
                (RowPlacement::Split { .. }, step) => step + usize::from(needs_halo),
                (RowPlacement::Whole(_), step) => step + 1,
                (RowPlacement::Copies, _) => 0,
            };
            earliest = earliest.max(after_input);
        }
        earliest
    }

    /// Copies the rows that each IPU needs from others at the sending IPU, all of them before any
    /// operation reads them. In the backward pass they come back last, when the gradient to which
    /// they are added exists.
    fn send_halos(
        &mut self,
        node: &GraphNode,
        axis: usize,
        needed: &[Range<u64>],
    ) -> Result<(), GraphError> {
        for input in &node.inputs {
            let (RowPlacement::Split { parts, .. }, made_in) = self.placed[input].clone() else {
                continue;
            };
            for (shard, needed) in needed.iter().enumerate() {
                for (from, part) in parts.iter().enumerate().filter(|(from, _)| *from != shard) {
                    if let Some(rows) = part.rows_within(needed) {
                        self.enter(made_in, from);
                        self.halo(node, part.tensor, axis, from, rows)?;
                    }
                }
            }
        }
        Ok(())
    }

    /// Returns rows that one IPU sends to others.
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

    /// Returns an operator and its operands on one IPU: its rows of each operand, with the halo.
    fn with_operands(
        &mut self,
        reads: &RowReader,
        window: &RowWindow,
        operator: Arc<dyn Operator>,
    ) -> Result<(Arc<dyn Operator>, Vec<TensorId>), GraphError> {
        let mut first = None;
        let mut operands = Vec::new();
        for (place, input) in reads.node.inputs.iter().enumerate() {
            let placement = self.placed[input].0.clone();
            let tensor = match placement {
                RowPlacement::Split { parts, .. } => {
                    let read = self.read_rows(reads, &parts)?;
                    if reads.node.operator.takes_halo_apart() {
                        operands.extend(read.own_first());
                        continue;
                    }
                    match read.pieces[..] {
                        [only] => only,
                        [before, ..] if place == 0 => {
                            first = Some(read);
                            before
                        }
                        _ => return Err(GraphError::new(&reads.node.name, GraphProblem::Halo)),
                    }
                }
                RowPlacement::Whole(tensor) => self.rows_of_whole(reads, window, *input, tensor)?,
                RowPlacement::Copies => {
                    let copy = self.copy_on(*input, reads.step, reads.shard)?;
                    self.rows_of_whole(reads, window, *input, copy)?
                }
            };
            operands.push(tensor);
        }
        let Some(ReadRows { pieces, own }) = first else { return Ok((operator, operands)) };
        let joined = JoinedRowsOp::new(&operator, reads.axis, pieces.len(), own);
        Ok((Arc::new(joined), JoinedRowsOp::operands(&pieces, &operands[1..])))
    }

    /// Returns the rows of an operand that an IPU reads, piece by piece in the order of rows.
    fn read_rows(&mut self, reads: &RowReader, parts: &[RowPart]) -> Result<ReadRows, GraphError> {
        let mut read = ReadRows { pieces: Vec::new(), own: None };
        for (from, part) in parts.iter().enumerate() {
            let Some(rows) = part.rows_within(&reads.needed) else { continue };
            if from != reads.shard {
                let sent = self.halo(reads.node, part.tensor, reads.axis, from, rows)?;
                read.pieces.push(sent);
                continue;
            }
            read.own = Some(read.pieces.len());
            let piece = if rows == (0..part.rows.end - part.rows.start) {
                part.tensor
            } else {
                self.slice(reads, part.tensor, reads.axis, rows)?
            };
            read.pieces.push(piece);
        }
        Ok(read)
    }

    fn slice(
        &mut self,
        reads: &RowReader,
        tensor: TensorId,
        axis: usize,
        range: Range<u64>,
    ) -> Result<TensorId, GraphError> {
        self.enter(reads.step, reads.shard);
        let name = format!("{}/rows", shard_name(reads.shard, &reads.node.name));
        self.builder.apply(&name, SliceOp { axis, range }, &[tensor])
    }

    /// Returns the part that an IPU reads of an operand that it holds as a whole. If each row of
    /// the result follows from the same row of the operand, it reads only those rows.
    fn rows_of_whole(
        &mut self,
        reads: &RowReader,
        window: &RowWindow,
        id: TensorId,
        tensor: TensorId,
    ) -> Result<TensorId, GraphError> {
        let shape = &self.graph.tensor(id).ty.shape;
        let inputs = reads.node.inputs.iter();
        let largest_rank =
            inputs.map(|input| self.graph.tensor(*input).ty.shape.len()).max().unwrap_or(0);
        // Operands with fewer axes are broadcast along the first axes of the result.
        let axis = (reads.axis + shape.len()).checked_sub(largest_rank);
        let rows = axis.and_then(|axis| shape.get(axis).copied());
        match axis.zip(rows) {
            Some((axis, rows)) if window.is_pointwise() && rows == reads.in_rows && rows > 1 => {
                self.slice(reads, tensor, axis, reads.needed.clone())
            }
            _ => Ok(tensor),
        }
    }

    /// Adds an operation whose rows follow from the same rows of its first operand and from sums
    /// over all of them.
    fn add_by_sums(
        &mut self,
        node: &GraphNode,
        over: &SumsOverRows,
        parts: &[RowPart],
    ) -> Result<(), GraphError> {
        let made_in = self.placed[&node.inputs[0]].1;
        let mut sums = Vec::new();
        for (shard, part) in parts.iter().enumerate() {
            self.enter(made_in, shard);
            let name = format!("{}/sums", shard_name(shard, &node.name));
            sums.push(self.builder.add(&name, Arc::clone(&over.sums), &[part.tensor])?[0]);
        }
        let step = self.step_behind(node, true);
        let mut made: Vec<Vec<TensorId>> = Vec::new();
        for (shard, part) in parts.iter().enumerate() {
            let mut operands = vec![part.tensor];
            for input in &node.inputs[1..] {
                operands.push(match self.placed[input].0.clone() {
                    RowPlacement::Copies => self.copy_on(*input, step, shard)?,
                    RowPlacement::Whole(tensor) => tensor,
                    RowPlacement::Split { parts, .. } => parts[shard].tensor,
                });
            }
            operands.extend(&sums);
            self.enter(step, shard);
            let name = shard_name(shard, &node.name);
            let operator = Arc::clone(&over.results);
            made.push(self.builder.add(&name, operator, &operands)?);
        }
        let parts = parts
            .iter()
            .zip(&made)
            .map(|(part, made)| RowPart { tensor: made[0], rows: part.rows.clone() })
            .collect();
        let split = RowPlacement::Split { axis: over.axis, parts };
        self.placed.insert(node.outputs[0], (split, step));
        // Every IPU has computed the same values from the sums.
        for (output, of_first) in node.outputs.iter().zip(&made[0]).skip(1) {
            self.placed.insert(*output, (RowPlacement::Whole(*of_first), step));
        }
        Ok(())
    }

    /// Returns the graph with its blocks in the order of steps, one for each IPU.
    fn finish(self) -> ModelGraph {
        let Self { builder, shards, blocks, copies, .. } = self;
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
        let mut weights = BTreeSet::new();
        for ((id, _), copy) in &copies {
            let on_all_ipus = (0..shards).all(|shard| copies.contains_key(&(*id, shard)));
            if on_all_ipus && graph.tensor(*copy).role == TensorRole::Parameter {
                weights.insert(*copy);
            }
        }
        debug_assert!(weights.len().is_multiple_of(shards), "each IPU has a copy of each");
        graph.copied_weights = weights;
        graph
    }
}

/// Part of a node that one IPU computes, and the rows that it computes.
struct RowReader<'a> {
    node: &'a GraphNode,
    axis: usize,
    shard: usize,
    /// Rows that it needs of operands, which have `in_rows` rows.
    needed: Range<u64>,
    in_rows: u64,
    step: usize,
}

impl ReadRows {
    /// Returns its own rows, followed by the rows above and below.
    fn own_first(self) -> Vec<TensorId> {
        let mut pieces = self.pieces;
        if let Some(own) = self.own {
            pieces[..=own].rotate_right(1);
        }
        pieces
    }
}

impl RowPart {
    /// Returns the rows that are among `needed`, counted from the first row of this part.
    fn rows_within(&self, needed: &Range<u64>) -> Option<Range<u64>> {
        let start = self.rows.start.max(needed.start);
        let end = self.rows.end.min(needed.end);
        if start < end { Some(start - self.rows.start..end - self.rows.start) } else { None }
    }
}

fn shard_name(shard: usize, name: &str) -> String {
    format!("shard{shard}/{name}")
}

/// Returns the name of a tensor that IPUs share, without the prefix of the part.
pub(crate) fn name_on_all_shards(name: &str) -> &str {
    let part = name.strip_prefix("shard").and_then(|rest| rest.split_once('/'));
    part.filter(|(shard, _)| shard.parse::<usize>().is_ok()).map_or(name, |(_, name)| name)
}

fn block_name(step: usize, shard: usize) -> String {
    format!("step{step}/shard{shard}")
}
