//! Which memory each tensor lives in, on which IPU and for how long.

use crate::graph::{BlockId, Graph, NodeId, Role, TensorId};
use crate::lower::work::Place;
use crate::ops::Reuse;
use crate::schedule::{Copying, Placement};
use crate::spec::Recomputation;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use tilescope_report::Pass;

/// Which of a tensor's memories on an IPU is meant.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Part {
    /// Where it is made, or kept.
    Made,
    /// What a stage was sent by another.
    Received(usize),
    /// What a stage's backward pass took from the stash, or computed again.
    Restored(usize),
}

/// The memory of a tensor on one IPU in one part of the program.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Home {
    /// The tensor that owns the memory; views and in-place results share it.
    pub tensor: TensorId,
    /// IPU of the replica.
    pub ipu: u32,
    /// Which of its memories there.
    pub part: Part,
}

/// A copy of activations or gradients from stage to stage.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Boundary {
    pub tensor: TensorId,
    /// Stage that sends it.
    pub from_stage: usize,
    /// Stage that receives it.
    pub to_stage: usize,
    /// Pass in which it is made.
    pub from_pass: Pass,
}

/// Forward nodes that the backward pass runs again, by the block before whose backward nodes they
/// run.
pub(crate) type Again = BTreeMap<BlockId, Vec<NodeId>>;

/// What decides how tensors are kept and copied.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Keeping<'a> {
    /// Micro-batches each stage keeps for its backward pass; with one, nothing is stashed.
    pub stash_depths: &'a [u64],
    /// When copies between stages are made.
    pub copying: Copying,
    /// What the backward pass computes again.
    pub recomputation: Recomputation,
    /// Whether activations wait for the backward pass in streaming memory.
    pub activations_off_chip: bool,
}

/// Facts about tensors that follow from graph and placement alone.
#[derive(Debug)]
pub(crate) struct Tensors {
    root: Vec<TensorId>,
    producer: Vec<Option<NodeId>>,
    stashed: BTreeSet<(TensorId, usize)>,
    recomputed: BTreeSet<(TensorId, usize)>,
    again: Vec<Again>,
    received: BTreeSet<(TensorId, usize)>,
    boundaries: BTreeSet<Boundary>,
}

impl Tensors {
    /// Works out sharing, boundaries, stashes and what is computed again.
    pub(crate) fn new(graph: &Graph, placement: &Placement, keeping: &Keeping) -> Self {
        let mut producer = vec![None; graph.tensors.len()];
        let mut readers = vec![0usize; graph.tensors.len()];
        for (index, node) in graph.nodes.iter().enumerate() {
            for output in &node.outputs {
                producer[output.0] = Some(NodeId(index));
            }
            for input in &node.inputs {
                readers[input.0] += 1;
            }
        }
        for output in &graph.outputs {
            readers[output.0] += 1;
        }
        let root = share(graph, placement, &readers);
        let mut tensors = Self {
            root,
            producer,
            stashed: BTreeSet::new(),
            recomputed: BTreeSet::new(),
            again: vec![Again::new(); placement.stages.len()],
            received: BTreeSet::new(),
            boundaries: BTreeSet::new(),
        };
        tensors.find_boundaries(graph, placement, keeping.copying);
        for stage in 0..placement.stages.len() {
            tensors.find_kept(graph, placement, keeping, stage);
        }
        tensors
    }

    /// The tensor whose memory this one uses.
    pub(crate) fn root(&self, tensor: TensorId) -> TensorId {
        self.root[tensor.0]
    }

    pub(crate) fn boundaries(&self) -> impl Iterator<Item = &Boundary> {
        self.boundaries.iter()
    }

    /// Tensors that a stage keeps from its forward to its backward pass in a stash.
    pub(crate) fn stashed(&self, stage: usize) -> impl Iterator<Item = TensorId> {
        self.stashed.iter().filter(move |(_, at)| *at == stage).map(|(tensor, _)| *tensor)
    }

    /// Forward nodes that the backward pass of a stage runs again.
    pub(crate) fn again(&self, stage: usize) -> &Again {
        &self.again[stage]
    }

    /// Where a node of `stage` in `pass` finds a tensor.
    pub(crate) fn home(&self, tensor: TensorId, stage: usize, ipu: u32, pass: Pass) -> Home {
        let tensor = self.root(tensor);
        let key = (tensor, stage);
        let restored = pass == Pass::Backward
            && (self.stashed.contains(&key) || self.recomputed.contains(&key));
        let part = if restored {
            Part::Restored(stage)
        } else if self.received.contains(&key) {
            Part::Received(stage)
        } else {
            Part::Made
        };
        Home { tensor, ipu, part }
    }

    fn find_boundaries(&mut self, graph: &Graph, placement: &Placement, copying: Copying) {
        for node in &graph.nodes {
            let stage = placement.stage(node.block);
            for input in &node.inputs {
                let Some(producer) = self.producer[input.0] else { continue };
                let maker = &graph.nodes[producer.0];
                let from = placement.stage(maker.block);
                // What a stage received for its forward pass is still there for its backward pass.
                if from != stage {
                    let tensor = self.root(*input);
                    self.add_boundary(placement, tensor, (from, stage), maker.pass, copying);
                }
            }
        }
    }

    /// A copy from stage to stage. In a pipeline it goes through the stages between them, as
    /// PopART's contiguation makes it, for the stage that reads it works that many slots later.
    fn add_boundary(
        &mut self,
        placement: &Placement,
        tensor: TensorId,
        (from, to): (usize, usize),
        from_pass: Pass,
        copying: Copying,
    ) {
        let mut at = from;
        while at != to {
            let next = match copying {
                Copying::AfterEachPass => to,
                _ if at < to => at + 1,
                _ => at - 1,
            };
            let same_ipu = placement.stages[at].ipu == placement.stages[next].ipu;
            // Without a pipeline nobody overwrites what lies on the same IPU.
            if copying != Copying::AfterEachPass || !same_ipu {
                self.received.insert((tensor, next));
                self.boundaries.insert(Boundary {
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
    fn find_kept(&mut self, graph: &Graph, placement: &Placement, keeping: &Keeping, stage: usize) {
        let depth = keeping.stash_depths.get(stage).copied().unwrap_or(1);
        let mine = |node: &&crate::graph::Node| placement.stage(node.block) == stage;
        let backward = graph.nodes.iter().filter(|node| node.pass == Pass::Backward).filter(mine);
        let mut needed: BTreeMap<TensorId, BTreeSet<BlockId>> = BTreeMap::new();
        for node in backward {
            for input in node.inputs.iter().filter(|input| self.made_forward(graph, **input)) {
                needed.entry(*input).or_default().insert(node.block);
            }
        }
        let recompute = match keeping.recomputation {
            Recomputation::None => false,
            // The last stage of a pipeline goes back at once: its activations are still there.
            Recomputation::Pipeline => depth > 1 || keeping.copying == Copying::AfterEachPass,
            Recomputation::Auto | Recomputation::Checkpoints => true,
        };
        let mut kept: BTreeSet<TensorId> = needed.keys().map(|tensor| self.root(*tensor)).collect();
        if recompute {
            let whole_stage = keeping.recomputation == Recomputation::Pipeline;
            kept = self.find_again(graph, placement, stage, whole_stage, &needed);
        }
        if depth > 1 || keeping.activations_off_chip {
            self.stashed.extend(kept.into_iter().map(|tensor| (tensor, stage)));
        }
    }

    /// Walks back from what the backward pass needs to checkpoints; notes the nodes on the way and
    /// returns the checkpoints.
    fn find_again(
        &mut self,
        graph: &Graph,
        placement: &Placement,
        stage: usize,
        whole_stage: bool,
        needed: &BTreeMap<TensorId, BTreeSet<BlockId>>,
    ) -> BTreeSet<TensorId> {
        let mut kept = BTreeSet::new();
        let mut nodes: BTreeSet<(BlockId, NodeId)> = BTreeSet::new();
        let last =
            (0..graph.blocks.len()).map(BlockId).rfind(|block| placement.stage(*block) == stage);
        let mut open: Vec<(TensorId, BlockId)> = needed
            .iter()
            .flat_map(|(tensor, blocks)| blocks.iter().map(|block| (*tensor, *block)))
            .collect();
        while let Some((tensor, block)) = open.pop() {
            let producer = self.producer[tensor.0].filter(|producer| {
                let node = &graph.nodes[producer.0];
                placement.stage(node.block) == stage && (whole_stage || node.block == block)
            });
            let Some(producer) = producer else {
                if self.made_forward(graph, tensor) {
                    kept.insert(self.root(tensor));
                }
                continue;
            };
            let group = if whole_stage { last.unwrap_or(block) } else { block };
            if nodes.insert((group, producer)) {
                let inputs = &graph.nodes[producer.0].inputs;
                open.extend(inputs.iter().map(|input| (*input, block)));
            }
        }
        for (group, node) in nodes {
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
    fn made_forward(&self, graph: &Graph, tensor: TensorId) -> bool {
        match self.producer[tensor.0] {
            Some(producer) => graph.nodes[producer.0].pass == Pass::Forward,
            None => graph.tensor(self.root(tensor)).role == Role::Input,
        }
    }
}

/// Lets views and in-place results use the memory of their operand.
fn share(graph: &Graph, placement: &Placement, readers: &[usize]) -> Vec<TensorId> {
    let mut root: Vec<TensorId> = (0..graph.tensors.len()).map(TensorId).collect();
    // Whether a tensor's memory may be overwritten by its only reader.
    let mut alone: Vec<bool> = graph
        .tensors
        .iter()
        .zip(readers)
        .map(|(tensor, readers)| tensor.role == Role::Activation && *readers == 1)
        .collect();
    for node in &graph.nodes {
        let (input, outputs, always) = match node.operator.reuses() {
            Reuse::Nothing => continue,
            Reuse::View(input) => (node.inputs[input], &node.outputs[..], true),
            Reuse::InPlace(input) => (node.inputs[input], &node.outputs[..1], false),
        };
        let stage = |block| placement.stage(block);
        let here = stage(graph.tensor(input).block) == stage(node.block);
        if here && (always || alone[input.0]) {
            for output in outputs {
                root[output.0] = root[input.0];
                alone[output.0] &= alone[input.0];
            }
        }
    }
    root
}

/// Liveness steps each home is used in, and what vertices need of its place.
#[derive(Debug, Default)]
pub(crate) struct Lifetimes {
    spans: BTreeMap<Home, Range<u32>>,
    places: BTreeMap<Home, Place>,
}

impl Lifetimes {
    /// Extends the life of `home` to cover `steps`.
    pub(crate) fn touch(&mut self, home: Home, steps: Range<u32>) {
        let span = self.spans.entry(home).or_insert_with(|| steps.clone());
        *span = span.start.min(steps.start)..span.end.max(steps.end);
    }

    /// Notes what vertices that use `home` need of its place; the strictest wish counts.
    pub(crate) fn place(&mut self, home: Home, place: Place) {
        if place != Place::Any {
            let known = self.places.entry(home).or_default();
            *known = place.max(*known);
        }
    }

    /// All homes with their lives and places, in order.
    pub(super) fn iter(&self) -> impl Iterator<Item = (Home, Range<u32>, Place)> {
        let place = |home: &Home| self.places.get(home).copied().unwrap_or_default();
        self.spans.iter().map(move |(home, span)| (*home, span.clone(), place(home)))
    }
}
