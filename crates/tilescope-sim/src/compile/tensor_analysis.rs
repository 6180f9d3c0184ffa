//! The memory, the IPU and the lifetime of each tensor.

use crate::graph::{
    GraphNode, GraphNodeId, MemoryOwners, ModelGraph, NodeRecomputation, OutputLocation,
};
use crate::operators::{LoweringContext, OutputAlias};
use crate::poplar::work::MemoryConstraint;
use crate::schedule::{StageCopyTiming, StagePlacement};
use crate::shape::{BlockId, TensorId, TensorRole};
use crate::specification::RecomputationType;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use tilescope_report::TrainingPass;
use tilescope_report::units::IpuId;

/// The kind of a tensor's memory on an IPU.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum TensorBufferKind {
    /// The memory in which the tensor is made or kept.
    Original,
    /// The copy that a stage received from another.
    Received(usize),
    /// The copy that the backward pass of a stage took from the stash, or recomputed.
    Restored(usize),
    /// Sharded weights, gathered for a stage while it works.
    Gathered(usize, TrainingPass),
}

/// The memory of a tensor on one IPU in one part of the program.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct TensorBuffer {
    /// The tensor that owns the memory. Views and in-place results share it.
    pub tensor: TensorId,
    /// IPU of the replica.
    pub ipu: IpuId,
    /// The kind of memory.
    pub part: TensorBufferKind,
}

impl TensorBuffer {
    /// The memory in which a tensor is made or kept on an IPU.
    pub(crate) fn original(tensor: TensorId, ipu: IpuId) -> Self {
        Self { tensor, ipu, part: TensorBufferKind::Original }
    }
}

/// A copy of activations or gradients from stage to stage.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct StageBoundary {
    pub tensor: TensorId,
    /// The stage that sends the tensor.
    pub from_stage: usize,
    /// The stage that receives the tensor.
    pub to_stage: usize,
    /// The pass that makes the tensor.
    pub from_pass: TrainingPass,
}

/// Backward nodes before which forward nodes run again: the nodes of a block on a compute batch.
/// The backward pass reaches the last group first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct RecomputeGroup {
    pub compute_batch: usize,
    pub block: BlockId,
}

impl RecomputeGroup {
    /// The group of a node.
    pub(crate) fn of(node: &GraphNode) -> Self {
        Self { compute_batch: node.compute_batch, block: node.block }
    }
}

/// Forward nodes that the backward pass recomputes.
pub(crate) type RecomputeNodes = BTreeMap<RecomputeGroup, Vec<GraphNodeId>>;

/// The settings that determine how tensors are kept and copied.
#[derive(Clone, Copy, Debug)]
pub(crate) struct StashPolicy<'a> {
    /// The number of micro-batches that each stage keeps for its backward pass. With one, nothing
    /// is stashed.
    pub stash_depths: &'a [u64],
    /// The time of copies between stages.
    pub copying: StageCopyTiming,
    /// The nodes that the backward pass recomputes.
    pub recomputation: RecomputationType,
    /// True if the stages are those of a pipeline with more than one, in any schedule.
    pub is_pipeline: bool,
    /// True if activations are kept in streaming memory until the backward pass, unless their
    /// operation states otherwise.
    pub activations_off_chip: bool,
    /// True if one stage works at a time, so that the last one starts its backward pass
    /// immediately.
    pub one_by_one: bool,
    /// Weights that are sharded over replicas.
    pub shared_weights: &'a BTreeSet<TensorId>,
}

/// Facts about tensors that follow from the graph, its placement, and the layouts of tensors.
#[derive(Debug)]
pub(crate) struct TensorAnalysis {
    owners: MemoryOwners,
    producer: Vec<Option<GraphNodeId>>,
    stashed: BTreeSet<(TensorId, usize)>,
    recomputed: BTreeSet<(TensorId, usize)>,
    again: Vec<RecomputeNodes>,
    received: BTreeSet<(TensorId, usize)>,
    boundaries: BTreeSet<StageBoundary>,
    /// The location until the backward pass of the tensors for which the model states one.
    locations: BTreeMap<TensorId, OutputLocation>,
    /// The last stages, if one stage works at a time.
    goes_back_at_once: Range<usize>,
    shared_weights: BTreeSet<TensorId>,
}

impl TensorAnalysis {
    /// Determines shared memory, boundaries, stashes and recomputed nodes.
    pub(crate) fn new(
        graph: &ModelGraph,
        lowering: &LoweringContext,
        placement: &StagePlacement,
        keeping: &StashPolicy,
    ) -> Self {
        let mut producer = vec![None; graph.tensors.len()];
        for (index, node) in graph.nodes.iter().enumerate() {
            for output in &node.outputs {
                producer[output.0] = Some(GraphNodeId(index));
            }
        }
        let mut tensors = Self {
            owners: memory_owners(graph, placement, lowering),
            producer,
            stashed: BTreeSet::new(),
            recomputed: BTreeSet::new(),
            again: vec![RecomputeNodes::new(); placement.stages.len()],
            received: BTreeSet::new(),
            boundaries: BTreeSet::new(),
            locations: BTreeMap::new(),
            goes_back_at_once: match placement.together().last() {
                Some(last) if keeping.one_by_one => last.clone(),
                _ => 0..0,
            },
            shared_weights: keeping.shared_weights.clone(),
        };
        tensors.find_locations(graph);
        tensors.find_boundaries(graph, placement, keeping.copying);
        for stage in 0..placement.stages.len() {
            tensors.find_stashed(graph, placement, keeping, stage);
        }
        tensors
    }

    /// The tensors whose memory this one uses: several for a view of several tensors.
    pub(crate) fn owners(&self, tensor: TensorId) -> &[TensorId] {
        self.owners.of(tensor)
    }

    /// The location of a tensor until the backward pass, if the model states one.
    pub(crate) fn stated_location(&self, tensor: TensorId) -> Option<OutputLocation> {
        self.owners(tensor).iter().find_map(|owner| self.locations.get(owner)).copied()
    }

    fn find_locations(&mut self, graph: &ModelGraph) {
        for node in graph.nodes.iter().filter(|node| node.pass == TrainingPass::Forward) {
            if let Some(location) = node.options.output_location {
                let owners = node.outputs.iter().flat_map(|output| self.owners.of(*output));
                self.locations.extend(owners.map(|owner| (*owner, location)));
            }
        }
    }

    pub(crate) fn boundaries(&self) -> impl Iterator<Item = &StageBoundary> {
        self.boundaries.iter()
    }

    /// The tensors that a stage stashes from its forward to its backward pass.
    pub(crate) fn stashed(&self, stage: usize) -> impl Iterator<Item = TensorId> {
        self.stashed.iter().filter(move |(_, at)| *at == stage).map(|(tensor, _)| *tensor)
    }

    /// True if the backward pass of a stage follows its forward pass immediately, so that it finds
    /// the results of the forward pass on the chip.
    pub(crate) fn goes_back_at_once(&self, stage: usize) -> bool {
        self.goes_back_at_once.contains(&stage)
    }

    /// Forward nodes that the backward pass of a stage recomputes.
    pub(crate) fn recompute_nodes(&self, stage: usize) -> &RecomputeNodes {
        &self.again[stage]
    }

    /// The memory in which a node of `stage` in `pass` finds a tensor: several buffers for a view
    /// of several tensors.
    pub(crate) fn buffers(
        &self,
        tensor: TensorId,
        stage: usize,
        ipu: IpuId,
        pass: TrainingPass,
    ) -> impl Iterator<Item = TensorBuffer> + Clone {
        let owners = self.owners(tensor).iter();
        owners.map(move |owner| self.owner_buffer(*owner, stage, ipu, pass))
    }

    /// The memory in which a node of `stage` in `pass` finds a tensor that owns its memory.
    pub(crate) fn owner_buffer(
        &self,
        tensor: TensorId,
        stage: usize,
        ipu: IpuId,
        pass: TrainingPass,
    ) -> TensorBuffer {
        let key = (tensor, stage);
        let restored = pass == TrainingPass::Backward
            && (self.stashed.contains(&key) || self.recomputed.contains(&key));
        let part = if restored {
            TensorBufferKind::Restored(stage)
        } else if pass != TrainingPass::Update && self.shared_weights.contains(&tensor) {
            // An update works on the share of the weights, so only the other passes gather them.
            TensorBufferKind::Gathered(stage, pass)
        } else if self.received.contains(&key) {
            TensorBufferKind::Received(stage)
        } else {
            TensorBufferKind::Original
        };
        TensorBuffer { tensor, ipu, part }
    }

    fn find_boundaries(
        &mut self,
        graph: &ModelGraph,
        placement: &StagePlacement,
        copying: StageCopyTiming,
    ) {
        let readers = graph
            .nodes
            .iter()
            .flat_map(|node| placement.stages_of(node.block).map(move |stage| (node, stage)));
        for (node, stage) in readers {
            for input in &node.inputs {
                for owner in self.owners(*input).to_vec() {
                    // Each stage that reads a view receives the viewed tensor from the stage that
                    // computed it. A weight has no such stage, so its view is sent.
                    let made = self.origin(graph, owner).or_else(|| self.origin(graph, *input));
                    let Some((block, pass)) = made else { continue };
                    let from = placement.nearest_stage(block, stage);
                    let has_it = graph.tensor(owner).role == TensorRole::Input
                        && placement.work_together(from, stage);
                    // A tensor that a stage received for its forward pass is still there for its
                    // backward pass.
                    if from != stage && !has_it {
                        self.add_boundary(placement, owner, (from, stage), pass, copying);
                    }
                }
            }
        }
    }

    /// The block and the pass in which a tensor is made, or in which the host sends it. The host
    /// sends an input to the stages that read it first. `None` for tensors that are there before
    /// the first pass.
    fn origin(&self, graph: &ModelGraph, tensor: TensorId) -> Option<(BlockId, TrainingPass)> {
        if let Some(producer) = self.producer[tensor.0] {
            let builder = &graph.nodes[producer.0];
            return Some((builder.block, builder.pass));
        }
        let made = graph.tensor(tensor);
        if made.role == TensorRole::Input {
            return Some((made.block, TrainingPass::Forward));
        }
        None
    }

    /// Adds a copy from stage to stage. In a pipeline it passes through the stages in between, as
    /// PopART's contiguation makes it, because the stage that reads it works that many slots later.
    fn add_boundary(
        &mut self,
        placement: &StagePlacement,
        tensor: TensorId,
        (from, to): (usize, usize),
        from_pass: TrainingPass,
        copying: StageCopyTiming,
    ) {
        let mut at = from;
        while at != to {
            let next = if !copying.is_pipelined() {
                to
            } else if at < to {
                at + 1
            } else {
                at - 1
            };
            let same_ipu = placement.stages[at].ipu == placement.stages[next].ipu;
            // Without a pipeline nothing overwrites a tensor on the same IPU.
            if copying.is_pipelined() || !same_ipu {
                self.received.insert((tensor, next));
                self.boundaries.insert(StageBoundary {
                    tensor,
                    from_stage: at,
                    to_stage: next,
                    from_pass,
                });
            }
            at = next;
        }
    }

    /// Determines the tensors that a stage keeps for its backward pass, and the nodes that it
    /// recomputes.
    fn find_stashed(
        &mut self,
        graph: &ModelGraph,
        placement: &StagePlacement,
        keeping: &StashPolicy,
        stage: usize,
    ) {
        let depth = keeping.stash_depths.get(stage).copied().unwrap_or(1);
        let backward = graph
            .nodes
            .iter()
            .filter(|node| node.pass == TrainingPass::Backward)
            .filter(|node| placement.runs(stage, node.block));
        let mut needed: BTreeMap<TensorId, BTreeSet<RecomputeGroup>> = BTreeMap::new();
        for node in backward {
            for input in
                node.inputs.iter().filter(|input| self.is_forward_activation(graph, **input))
            {
                needed.entry(*input).or_default().insert(RecomputeGroup::of(node));
            }
        }
        // The last stage of a pipeline keeps what follows its last checkpoint, because its backward
        // pass needs that first (`setFinalFwdStageRecomputation` in popart
        // willow/src/transforms/pipeline.cpp, `GetRecomputationCluster` in graphcore/tensorflow
        // driver/passes/pipeline_recomputation.cc).
        let is_last = keeping.is_pipeline && stage + 1 == placement.stages.len();
        let blocks = (0..graph.blocks.len()).map(BlockId);
        let last_block = blocks.rev().find(|block| placement.runs(stage, *block));
        let computes_again = match keeping.recomputation {
            RecomputationType::None => RecomputedNodes::Marked,
            RecomputationType::Pipeline if is_last => RecomputedNodes::Marked,
            RecomputationType::Pipeline if depth > 1 || !keeping.copying.is_pipelined() => {
                RecomputedNodes::OfStage
            }
            // A stage with a single micro-batch in flight still has its activations.
            RecomputationType::Pipeline => RecomputedNodes::Marked,
            RecomputationType::Auto | RecomputationType::Checkpoints => {
                RecomputedNodes::OfBlock { except: last_block.filter(|_| is_last) }
            }
        };
        let kept = self.find_recompute_nodes(graph, placement, stage, computes_again, &needed);
        // A tensor is not stored only to be loaded again immediately: its memory is not needed in
        // between.
        let mut waiting: Vec<TensorId> = kept.into_iter().collect();
        waiting.retain(|tensor| {
            let stated = self.stated_location(*tensor).map(|location| !location.on_chip);
            let off_chip = stated.unwrap_or(keeping.activations_off_chip);
            depth > 1 || off_chip && !self.goes_back_at_once(stage)
        });
        self.stashed.extend(waiting.into_iter().map(|tensor| (tensor, stage)));
    }

    /// Walks back from the tensors that the backward pass needs to checkpoints. Records the nodes
    /// on the way and returns the checkpoints.
    fn find_recompute_nodes(
        &mut self,
        graph: &ModelGraph,
        placement: &StagePlacement,
        stage: usize,
        computes_again: RecomputedNodes,
        needed: &BTreeMap<TensorId, BTreeSet<RecomputeGroup>>,
    ) -> BTreeSet<TensorId> {
        let mut kept = BTreeSet::new();
        // Each node with the group that runs it before its backward nodes: the first group that
        // needs it.
        let mut nodes: BTreeMap<GraphNodeId, RecomputeGroup> = BTreeMap::new();
        let last =
            (0..graph.blocks.len()).map(BlockId).rfind(|block| placement.runs(stage, *block));
        let mut open: Vec<(TensorId, RecomputeGroup)> = needed
            .iter()
            .flat_map(|(tensor, groups)| groups.iter().map(|group| (*tensor, *group)))
            .collect();
        while let Some((tensor, wanted_by)) = open.pop() {
            let producer = self.producer[tensor.0].filter(|producer| {
                let node = &graph.nodes[producer.0];
                placement.runs(stage, node.block) && computes_again.holds(node, wanted_by.block)
            });
            let Some(producer) = producer else {
                if self.is_forward_activation(graph, tensor) {
                    kept.extend(self.owners(tensor));
                }
                continue;
            };
            let block = match computes_again {
                // The backward pass reaches the last block first and needs the stage by then.
                RecomputedNodes::OfStage => last.unwrap_or(wanted_by.block),
                RecomputedNodes::OfBlock { .. } | RecomputedNodes::Marked => wanted_by.block,
            };
            let group = RecomputeGroup { block, ..wanted_by };
            // The backward pass begins with the greatest group, so the greatest one runs the node.
            if nodes.get(&producer).is_none_or(|known| *known < group) {
                nodes.insert(producer, group);
                let inputs = &graph.nodes[producer.0].inputs;
                open.extend(inputs.iter().map(|input| (*input, wanted_by)));
            }
        }
        for (node, group) in nodes {
            let outputs = &graph.nodes[node.0].outputs;
            for owner in outputs.iter().flat_map(|output| self.owners.of(*output)) {
                // A weight that a recomputed node views stays where it is.
                if self.producer[owner.0].is_some() && !kept.contains(owner) {
                    self.recomputed.insert((*owner, stage));
                }
            }
            self.again[stage].entry(group).or_default().push(node);
        }
        kept
    }

    /// True if a tensor comes from the forward pass of a micro-batch.
    fn is_forward_activation(&self, graph: &ModelGraph, tensor: TensorId) -> bool {
        match self.producer[tensor.0] {
            Some(producer) => graph.nodes[producer.0].pass == TrainingPass::Forward,
            None => graph.tensor(tensor).role == TensorRole::Input,
        }
    }
}

/// The forward nodes that the backward pass of a stage recomputes, unless the node itself states
/// otherwise.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum RecomputedNodes {
    /// The nodes that the model marks.
    Marked,
    /// The nodes of the block whose backward nodes need them, except for one block.
    OfBlock { except: Option<BlockId> },
    /// All nodes of the stage.
    OfStage,
}

impl RecomputedNodes {
    /// True if a node is recomputed for backward nodes of `block`.
    fn holds(self, node: &GraphNode, block: BlockId) -> bool {
        let marked = match node.options.recomputation {
            Some(NodeRecomputation::Checkpoint) => return false,
            Some(NodeRecomputation::Recompute) => true,
            None => false,
        };
        node.pass == TrainingPass::Forward
            && match self {
                Self::Marked => marked,
                Self::OfBlock { except } => marked || node.block == block && except != Some(block),
                Self::OfStage => true,
            }
    }
}

/// Lets views and in-place results use the memory of their operand.
fn memory_owners(
    graph: &ModelGraph,
    placement: &StagePlacement,
    lowering: &LoweringContext,
) -> MemoryOwners {
    let mut owners = MemoryOwners::new(graph.tensors.len());
    // True for tensors that have a single reader, which may overwrite them.
    let mut alone = graph.read_once();
    for node in &graph.nodes {
        let alias = node.operator.output_alias();
        let Some((inputs, outputs, always)) = alias.shared_memory(&node.operands()) else {
            continue;
        };
        // A view of a tensor that another stage sent is a view of the received copy.
        if always {
            // Overwriting a view overwrites its operands, so their other readers count as well.
            let is_alone = inputs.iter().all(|input| alone[input.0]);
            for output in outputs {
                owners.share(*output, inputs);
                alone[output.0] &= is_alone;
            }
            continue;
        }
        for input in inputs {
            let used = placement.stage(node.block);
            // A result does not overwrite the copy that a stage received of a tensor.
            let here = owners.of(*input).iter().all(|owner| {
                let made = placement.stage(graph.tensor(*owner).block);
                let same_ipu = placement.stages[made].ipu == placement.stages[used].ipu;
                // Steps of IPUs that share rows are consecutive stages.
                made == used || graph.row_shards > 1 && same_ipu
            });
            // A result with another shape, type or layout than the operand cannot overwrite it.
            let fit = outputs.iter().all(|output| {
                graph.tensor(*output).ty == graph.tensor(*input).ty
                    && lowering.layout_number(*output) == lowering.layout_number(*input)
            });
            let is_free = alone[input.0] || matches!(alias, OutputAlias::ViewIfAlike(_));
            if here && is_free && fit {
                for output in outputs {
                    owners.share(*output, &[*input]);
                    alone[output.0] &= alone[input.0];
                }
                break;
            }
        }
    }
    owners
}

/// One of the lifetimes of a buffer.
#[derive(Clone, Debug)]
pub(super) struct BufferLife {
    /// The step that loads the buffer from streaming memory. `None` if it is made or kept on the
    /// chip.
    pub loaded: Option<u32>,
    /// Liveness steps from the first to the last use.
    pub span: Range<u32>,
    /// Steps whose programs use the buffer, unordered.
    uses: Vec<Range<u32>>,
}

impl BufferLife {
    /// Steps whose programs use the buffer, ordered and disjoint.
    pub(super) fn uses(&self) -> Vec<Range<u32>> {
        let mut uses = self.uses.clone();
        uses.sort_by_key(|steps| steps.start);
        let mut joined: Vec<Range<u32>> = Vec::new();
        for steps in uses {
            match joined.last_mut().filter(|last| steps.start <= last.end) {
                Some(last) => last.end = last.end.max(steps.end),
                None => joined.push(steps),
            }
        }
        joined
    }
}

/// The lifetimes of each buffer, and the demands of vertices on its place.
///
/// A buffer that is in streaming memory between its uses has a lifetime for each load, and takes no
/// tile memory in between.
#[derive(Debug, Default)]
pub(crate) struct BufferLifetimes {
    lives: BTreeMap<TensorBuffer, Vec<BufferLife>>,
    places: BTreeMap<TensorBuffer, MemoryConstraint>,
}

impl BufferLifetimes {
    /// Begins a lifetime of `tensor_buffer` with the copy from streaming memory at `step`. Earlier
    /// steps belong to the previous lifetimes.
    pub(crate) fn begin_loaded(&mut self, tensor_buffer: TensorBuffer, step: u32) {
        let life = BufferLife { loaded: Some(step), span: step..step, uses: Vec::new() };
        self.lives.entry(tensor_buffer).or_default().push(life);
    }

    /// Extends a lifetime of `tensor_buffer` to cover `steps`, whose programs use it.
    pub(crate) fn extend_to(&mut self, tensor_buffer: TensorBuffer, steps: Range<u32>) {
        let life = self.life_at(tensor_buffer, &steps);
        let steps = steps.start.max(life.loaded.unwrap_or(0))..steps.end;
        life.span = life.span.start.min(steps.start)..life.span.end.max(steps.end);
        if steps.is_empty() {
            return;
        }
        // Most uses come in program order, so joining them at once keeps the list short.
        match life.uses.last_mut() {
            Some(last) if last.start <= steps.start && steps.start <= last.end => {
                last.end = last.end.max(steps.end);
            }
            _ => life.uses.push(steps),
        }
    }

    /// Extends a lifetime of `tensor_buffer` to cover `steps`, which need not use it.
    pub(crate) fn keep_during(&mut self, tensor_buffer: TensorBuffer, steps: Range<u32>) {
        let life = self.life_at(tensor_buffer, &steps);
        let start = steps.start.max(life.loaded.unwrap_or(0));
        life.span = life.span.start.min(start)..life.span.end.max(steps.end);
    }

    /// Makes `tensor_buffer`, which no program loads, live at every step.
    pub(crate) fn keep_always(&mut self, tensor_buffer: TensorBuffer) {
        self.life_at(tensor_buffer, &(0..0)).span = 0..u32::MAX;
    }

    /// The lifetime that `steps` belong to: the last one loaded before they end.
    fn life_at(&mut self, tensor_buffer: TensorBuffer, steps: &Range<u32>) -> &mut BufferLife {
        let lives = self.lives.entry(tensor_buffer).or_default();
        if lives.is_empty() {
            lives.push(BufferLife { loaded: None, span: steps.clone(), uses: Vec::new() });
        }
        let later = lives.iter().rev().take_while(|life| life.loaded >= Some(steps.end)).count();
        let at = (lives.len() - later).saturating_sub(1);
        &mut lives[at]
    }

    /// Records the demand on the place of `tensor_buffer` by vertices that use it. The strictest
    /// demand counts.
    pub(crate) fn require_place(&mut self, tensor_buffer: TensorBuffer, place: MemoryConstraint) {
        if place != MemoryConstraint::Any {
            let known = self.places.entry(tensor_buffer).or_default();
            *known = place.max(*known);
        }
    }

    /// All buffers with their lifetimes, in order.
    pub(super) fn iter(&self) -> impl Iterator<Item = (TensorBuffer, &[BufferLife])> {
        self.lives.iter().map(|(tensor_buffer, lives)| (*tensor_buffer, lives.as_slice()))
    }

    /// The strictest demand on the place of a buffer.
    pub(super) fn place(&self, tensor_buffer: TensorBuffer) -> MemoryConstraint {
        self.places.get(&tensor_buffer).copied().unwrap_or_default()
    }
}
