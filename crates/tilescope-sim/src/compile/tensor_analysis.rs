//! Which memory each tensor lives in, on which IPU and for how long.

use crate::graph::{GraphNode, GraphNodeId, ModelGraph, NodeRecomputation, OutputLocation};
use crate::operators::LoweringContext;
use crate::poplar::work::MemoryConstraint;
use crate::schedule::{StageCopyTiming, StagePlacement};
use crate::shape::{BlockId, TensorId, TensorRole};
use crate::specification::RecomputationType;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use tilescope_report::TrainingPass;
use tilescope_report::units::IpuId;

/// Which of a tensor's memories on an IPU is meant.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum TensorBufferKind {
    /// Where it is made, or kept.
    Original,
    /// What a stage was sent by another.
    Received(usize),
    /// What a stage's backward pass took from the stash, or computed again.
    Restored(usize),
    /// Weights that the replicas share out, as a stage has them while it works.
    Gathered(usize, TrainingPass),
}

/// The memory of a tensor on one IPU in one part of the program.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct TensorBuffer {
    /// The tensor that owns the memory; views and in-place results share it.
    pub tensor: TensorId,
    /// IPU of the replica.
    pub ipu: IpuId,
    /// Which of its memories there.
    pub part: TensorBufferKind,
}

impl TensorBuffer {
    /// The memory in which a tensor is made, or kept, on an IPU.
    pub(crate) fn original(tensor: TensorId, ipu: IpuId) -> Self {
        Self { tensor, ipu, part: TensorBufferKind::Original }
    }
}

/// A copy of activations or gradients from stage to stage.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct StageBoundary {
    pub tensor: TensorId,
    /// Stage that sends it.
    pub from_stage: usize,
    /// Stage that receives it.
    pub to_stage: usize,
    /// Pass in which it is made.
    pub from_pass: TrainingPass,
}

/// Backward nodes before which forward nodes run again: those of a block, on a compute batch. The
/// backward pass meets the last of them first.
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

/// Forward nodes that the backward pass runs again.
pub(crate) type RecomputeNodes = BTreeMap<RecomputeGroup, Vec<GraphNodeId>>;

/// What decides how tensors are kept and copied.
#[derive(Clone, Copy, Debug)]
pub(crate) struct StashPolicy<'a> {
    /// Micro-batches each stage keeps for its backward pass; with one, nothing is stashed.
    pub stash_depths: &'a [u64],
    /// When copies between stages are made.
    pub copying: StageCopyTiming,
    /// What the backward pass computes again.
    pub recomputation: RecomputationType,
    /// Whether activations wait for the backward pass in streaming memory, unless their operation
    /// says otherwise.
    pub activations_off_chip: bool,
    /// Whether one stage works at a time: the last one goes back at once.
    pub one_by_one: bool,
    /// Weights of which each replica keeps a share.
    pub shared_weights: &'a BTreeSet<TensorId>,
}

/// Facts about tensors that follow from the graph, its placement, and how tensors lie.
#[derive(Debug)]
pub(crate) struct TensorAnalysis {
    root: Vec<TensorId>,
    producer: Vec<Option<GraphNodeId>>,
    stashed: BTreeSet<(TensorId, usize)>,
    recomputed: BTreeSet<(TensorId, usize)>,
    again: Vec<RecomputeNodes>,
    received: BTreeSet<(TensorId, usize)>,
    boundaries: BTreeSet<StageBoundary>,
    /// Where tensors wait for the backward pass of which the model says that.
    locations: BTreeMap<TensorId, OutputLocation>,
    /// The last stages, where one works at a time.
    goes_back_at_once: Range<usize>,
    shared_weights: BTreeSet<TensorId>,
}

impl TensorAnalysis {
    /// Works out sharing, boundaries, stashes and what is computed again.
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
        let root = alias_roots(graph, placement, lowering);
        let mut tensors = Self {
            root,
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

    /// The tensor whose memory this one uses.
    pub(crate) fn root(&self, tensor: TensorId) -> TensorId {
        self.root[tensor.0]
    }

    /// Where a tensor waits for the backward pass, if the model says that.
    pub(crate) fn stated_location(&self, tensor: TensorId) -> Option<OutputLocation> {
        self.locations.get(&self.root(tensor)).copied()
    }

    fn find_locations(&mut self, graph: &ModelGraph) {
        for node in graph.nodes.iter().filter(|node| node.pass == TrainingPass::Forward) {
            if let Some(location) = node.options.output_location {
                let roots = node.outputs.iter().map(|output| self.root[output.0]);
                self.locations.extend(roots.map(|root| (root, location)));
            }
        }
    }

    pub(crate) fn boundaries(&self) -> impl Iterator<Item = &StageBoundary> {
        self.boundaries.iter()
    }

    /// Tensors that a stage keeps from its forward to its backward pass in a stash.
    pub(crate) fn stashed(&self, stage: usize) -> impl Iterator<Item = TensorId> {
        self.stashed.iter().filter(move |(_, at)| *at == stage).map(|(tensor, _)| *tensor)
    }

    /// Whether nothing comes between the forward and the backward pass of a stage: what the one
    /// leaves on the chip, the other finds there.
    pub(crate) fn goes_back_at_once(&self, stage: usize) -> bool {
        self.goes_back_at_once.contains(&stage)
    }

    /// Forward nodes that the backward pass of a stage runs again.
    pub(crate) fn recompute_nodes(&self, stage: usize) -> &RecomputeNodes {
        &self.again[stage]
    }

    /// Where a node of `stage` in `pass` finds a tensor.
    pub(crate) fn buffer(
        &self,
        tensor: TensorId,
        stage: usize,
        ipu: IpuId,
        pass: TrainingPass,
    ) -> TensorBuffer {
        let tensor = self.root(tensor);
        let key = (tensor, stage);
        let restored = pass == TrainingPass::Backward
            && (self.stashed.contains(&key) || self.recomputed.contains(&key));
        let part = if restored {
            TensorBufferKind::Restored(stage)
        } else if pass != TrainingPass::Update && self.shared_weights.contains(&tensor) {
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
                let (block, pass) = match self.producer[input.0] {
                    Some(producer) => {
                        let builder = &graph.nodes[producer.0];
                        (builder.block, builder.pass)
                    }
                    // The host sends an input to those who read it first.
                    None if graph.tensor(*input).role == TensorRole::Input => {
                        (graph.tensor(*input).block, TrainingPass::Forward)
                    }
                    None => continue,
                };
                let from = placement.nearest_stage(block, stage);
                let has_it = pass == TrainingPass::Forward
                    && self.producer[input.0].is_none()
                    && placement.work_together(from, stage);
                // What a stage received for its forward pass is still there for its backward pass.
                if from != stage && !has_it {
                    let tensor = self.root(*input);
                    self.add_boundary(placement, tensor, (from, stage), pass, copying);
                }
            }
        }
    }

    /// A copy from stage to stage. In a pipeline it goes through the stages between them, as
    /// PopART's contiguation makes it, for the stage that reads it works that many slots later.
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
            // Without a pipeline nobody overwrites what lies on the same IPU.
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

    /// What a stage keeps for its backward pass, and what it computes again.
    fn find_stashed(
        &mut self,
        graph: &ModelGraph,
        placement: &StagePlacement,
        keeping: &StashPolicy,
        stage: usize,
    ) {
        let depth = keeping.stash_depths.get(stage).copied().unwrap_or(1);
        let mine = |node: &&GraphNode| placement.runs(stage, node.block);
        let backward =
            graph.nodes.iter().filter(|node| node.pass == TrainingPass::Backward).filter(mine);
        let mut needed: BTreeMap<TensorId, BTreeSet<RecomputeGroup>> = BTreeMap::new();
        for node in backward {
            for input in
                node.inputs.iter().filter(|input| self.is_forward_activation(graph, **input))
            {
                needed.entry(*input).or_default().insert(RecomputeGroup::of(node));
            }
        }
        let computes_again = match keeping.recomputation {
            RecomputationType::None => RecomputedNodes::Marked,
            // The last stage of a pipeline goes back at once: its activations are still there.
            RecomputationType::Pipeline if depth > 1 || !keeping.copying.is_pipelined() => {
                RecomputedNodes::OfStage
            }
            RecomputationType::Pipeline => RecomputedNodes::Marked,
            RecomputationType::Auto | RecomputationType::Checkpoints => RecomputedNodes::OfBlock,
        };
        let kept = self.find_recompute_nodes(graph, placement, stage, computes_again, &needed);
        // Nothing is stored just to be loaded again: nobody needs the place in between.
        let off_chip = |tensor: &TensorId| {
            let stated = self.stated_location(*tensor).map(|location| !location.on_chip);
            stated.unwrap_or(keeping.activations_off_chip) && !self.goes_back_at_once(stage)
        };
        let waiting: Vec<TensorId> =
            kept.into_iter().filter(|tensor| depth > 1 || off_chip(tensor)).collect();
        self.stashed.extend(waiting.into_iter().map(|tensor| (tensor, stage)));
    }

    /// Walks back from what the backward pass needs to checkpoints; notes the nodes on the way and
    /// returns the checkpoints.
    fn find_recompute_nodes(
        &mut self,
        graph: &ModelGraph,
        placement: &StagePlacement,
        stage: usize,
        computes_again: RecomputedNodes,
        needed: &BTreeMap<TensorId, BTreeSet<RecomputeGroup>>,
    ) -> BTreeSet<TensorId> {
        let mut kept = BTreeSet::new();
        // Each with the group before whose backward nodes it runs, the first that needs it.
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
                    kept.insert(self.root(tensor));
                }
                continue;
            };
            let block = match computes_again {
                RecomputedNodes::OfStage => last.unwrap_or(wanted_by.block),
                RecomputedNodes::OfBlock | RecomputedNodes::Marked => wanted_by.block,
            };
            let group = RecomputeGroup { block, ..wanted_by };
            if nodes.get(&producer).is_none_or(|known| *known < group) {
                nodes.insert(producer, group);
                let inputs = &graph.nodes[producer.0].inputs;
                open.extend(inputs.iter().map(|input| (*input, wanted_by)));
            }
        }
        for (node, group) in nodes {
            let outputs = &graph.nodes[node.0].outputs;
            for root in outputs.iter().map(|output| self.root[output.0]) {
                if !kept.contains(&root) {
                    self.recomputed.insert((root, stage));
                }
            }
            self.again[stage].entry(group).or_default().push(node);
        }
        kept
    }

    /// Whether a tensor comes from the forward pass of a micro-batch.
    fn is_forward_activation(&self, graph: &ModelGraph, tensor: TensorId) -> bool {
        match self.producer[tensor.0] {
            Some(producer) => graph.nodes[producer.0].pass == TrainingPass::Forward,
            None => graph.tensor(self.root(tensor)).role == TensorRole::Input,
        }
    }
}

/// Which forward nodes the backward pass of a stage runs again, as long as nothing else is said of
/// them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum RecomputedNodes {
    /// Those that the model marks.
    Marked,
    /// Those of the block whose backward nodes need them.
    OfBlock,
    /// All of the stage.
    OfStage,
}

impl RecomputedNodes {
    /// Whether it runs a node again for backward nodes of `block`.
    fn holds(self, node: &GraphNode, block: BlockId) -> bool {
        let marked = match node.options.recomputation {
            Some(NodeRecomputation::Checkpoint) => return false,
            Some(NodeRecomputation::Recompute) => true,
            None => false,
        };
        node.pass == TrainingPass::Forward
            && match self {
                Self::Marked => marked,
                Self::OfBlock => marked || node.block == block,
                Self::OfStage => true,
            }
    }
}

/// Lets views and in-place results use the memory of their operand.
fn alias_roots(
    graph: &ModelGraph,
    placement: &StagePlacement,
    lowering: &LoweringContext,
) -> Vec<TensorId> {
    let mut root: Vec<TensorId> = (0..graph.tensors.len()).map(TensorId).collect();
    // Whether a tensor's memory may be overwritten by its only reader.
    let mut alone = graph.read_once();
    for node in &graph.nodes {
        let alias = node.operator.output_alias();
        let Some((inputs, outputs, always)) = alias.shared_memory(&node.operands()) else {
            continue;
        };
        for input in inputs {
            let [made, used] =
                [graph.tensor(*input).block, node.block].map(|of| placement.stage(of));
            let ipu = |stage: usize| placement.stages[stage].ipu;
            // Steps of IPUs that share rows are stages that follow each other.
            let here = made == used || graph.row_shards > 1 && ipu(made) == ipu(used);
            // A view of what another stage sent is one of what was received.
            // What has another shape or type than the operand, or lies elsewhere, cannot overwrite it.
            let fits = |output: &TensorId| {
                graph.tensor(*output).ty == graph.tensor(*input).ty
                    && lowering.layout_number(*output) == lowering.layout_number(*input)
            };
            if always || here && alone[input.0] && outputs.iter().all(fits) {
                for output in outputs {
                    root[output.0] = root[input.0];
                    alone[output.0] &= alone[input.0];
                }
                break;
            }
        }
    }
    root
}

/// One of the lives of a buffer.
#[derive(Clone, Debug)]
pub(super) struct BufferLife {
    /// The step that loads it from streaming memory; `None` if it is made or kept on the chip.
    pub loaded: Option<u32>,
    /// Liveness steps from its first to its last use.
    pub span: Range<u32>,
    /// Steps whose programs use it, in no order.
    uses: Vec<Range<u32>>,
}

impl BufferLife {
    /// Steps whose programs use it: in order, and apart from each other.
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

/// The lives of each buffer, and what vertices need of its place.
///
/// A buffer that waits in streaming memory between its uses has a life for each time it is loaded,
/// and takes no tile memory in between.
#[derive(Debug, Default)]
pub(crate) struct BufferLifetimes {
    lives: BTreeMap<TensorBuffer, Vec<BufferLife>>,
    places: BTreeMap<TensorBuffer, MemoryConstraint>,
}

impl BufferLifetimes {
    /// Begins a life of `tensor_buffer` with the copy from streaming memory at `step`. Steps before
    /// it belong to the lives before.
    pub(crate) fn begin_loaded(&mut self, tensor_buffer: TensorBuffer, step: u32) {
        let life = BufferLife { loaded: Some(step), span: step..step, uses: Vec::new() };
        self.lives.entry(tensor_buffer).or_default().push(life);
    }

    /// Extends a life of `tensor_buffer` to cover `steps`, whose programs use it.
    pub(crate) fn extend_to(&mut self, tensor_buffer: TensorBuffer, steps: Range<u32>) {
        let life = self.life_at(tensor_buffer, &steps);
        let steps = steps.start.max(life.loaded.unwrap_or(0))..steps.end;
        life.span = life.span.start.min(steps.start)..life.span.end.max(steps.end);
        if steps.is_empty() {
            return;
        }
        match life.uses.last_mut() {
            Some(last) if last.start <= steps.start && steps.start <= last.end => {
                last.end = last.end.max(steps.end);
            }
            _ => life.uses.push(steps),
        }
    }

    /// Makes `tensor_buffer`, which no program loads, live at every step.
    pub(crate) fn keep_always(&mut self, tensor_buffer: TensorBuffer) {
        self.life_at(tensor_buffer, &(0..0)).span = 0..u32::MAX;
    }

    /// The life that `steps` belong to: the last one loaded before they end.
    fn life_at(&mut self, tensor_buffer: TensorBuffer, steps: &Range<u32>) -> &mut BufferLife {
        let lives = self.lives.entry(tensor_buffer).or_default();
        if lives.is_empty() {
            lives.push(BufferLife { loaded: None, span: steps.clone(), uses: Vec::new() });
        }
        let later = lives.iter().rev().take_while(|life| life.loaded >= Some(steps.end)).count();
        let at = (lives.len() - later).saturating_sub(1);
        &mut lives[at]
    }

    /// Notes what vertices that use `tensor_buffer` need of its place; the strictest demand counts.
    pub(crate) fn require_place(&mut self, tensor_buffer: TensorBuffer, place: MemoryConstraint) {
        if place != MemoryConstraint::Any {
            let known = self.places.entry(tensor_buffer).or_default();
            *known = place.max(*known);
        }
    }

    /// All buffers with their lives, in order.
    pub(super) fn iter(&self) -> impl Iterator<Item = (TensorBuffer, &[BufferLife])> {
        self.lives.iter().map(|(tensor_buffer, lives)| (*tensor_buffer, lives.as_slice()))
    }

    /// The strictest demand on the place of a buffer.
    pub(super) fn place(&self, tensor_buffer: TensorBuffer) -> MemoryConstraint {
        self.places.get(&tensor_buffer).copied().unwrap_or_default()
    }
}
