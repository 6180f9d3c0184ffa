//! Which memory each tensor lives in, on which IPU and for how long.

use crate::report::Pass;
use crate::sim::graph::{Graph, NodeId, Role, TensorId};
use crate::sim::ops::Reuse;
use crate::sim::schedule::Placement;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

/// The memory of a tensor on one IPU in one part of the program. A tensor kept for the backward
/// pass of a pipeline has two: the stash is filled from one and emptied into the other.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Home {
    /// The tensor that owns the memory; views and in-place results share it.
    pub tensor: TensorId,
    /// IPU of the replica.
    pub ipu: u32,
    /// Whether this is the copy restored for the backward pass.
    pub restored: bool,
}

/// A copy of activations or gradients between IPUs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Boundary {
    /// The tensor.
    pub tensor: TensorId,
    /// Stage that makes it.
    pub from_stage: usize,
    /// Stage that reads it.
    pub to_stage: usize,
    /// Pass in which it is made.
    pub from_pass: PassKey,
}

/// [`Pass`] of a boundary; forward first.
pub type PassKey = Pass;

/// Facts about tensors that follow from graph and placement alone.
#[derive(Debug)]
pub struct Tensors {
    root: Vec<TensorId>,
    producer: Vec<Option<NodeId>>,
    stashed: BTreeSet<(TensorId, usize)>,
    boundaries: BTreeSet<Boundary>,
}

impl Tensors {
    /// Works out sharing, boundaries and stashes. `stash_depth` says how many micro-batches of a
    /// stage are in flight; with one, nothing needs to be stashed.
    pub fn new(graph: &Graph, placement: &Placement, stash_depth: impl Fn(usize) -> u64) -> Self {
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
        let mut tensors =
            Self { root, producer, stashed: BTreeSet::new(), boundaries: BTreeSet::new() };
        tensors.find_boundaries(graph, placement);
        tensors.find_stashes(graph, placement, stash_depth);
        tensors
    }

    /// The tensor whose memory this one uses.
    pub fn root(&self, tensor: TensorId) -> TensorId {
        self.root[tensor.0]
    }

    /// Copies between stages.
    pub fn boundaries(&self) -> impl Iterator<Item = &Boundary> {
        self.boundaries.iter()
    }

    /// Tensors that a stage keeps from its forward to its backward pass in a stash.
    pub fn stashed(&self, stage: usize) -> impl Iterator<Item = TensorId> {
        self.stashed.iter().filter(move |(_, at)| *at == stage).map(|(tensor, _)| *tensor)
    }

    /// Where a node of `stage` in `pass` finds a tensor.
    pub fn home(&self, tensor: TensorId, stage: usize, ipu: u32, pass: Pass) -> Home {
        let tensor = self.root(tensor);
        let restored = pass == Pass::Backward && self.stashed.contains(&(tensor, stage));
        Home { tensor, ipu, restored }
    }

    fn find_boundaries(&mut self, graph: &Graph, placement: &Placement) {
        for node in &graph.nodes {
            let stage = placement.stage(node.block);
            for input in &node.inputs {
                let Some(producer) = self.producer[input.0] else { continue };
                let maker = &graph.nodes[producer.0];
                let from_stage = placement.stage(maker.block);
                // What a stage received for its forward pass is still there for its backward pass.
                if from_stage != stage {
                    let tensor = self.root(*input);
                    let from_pass = maker.pass;
                    self.boundaries.insert(Boundary {
                        tensor,
                        from_stage,
                        to_stage: stage,
                        from_pass,
                    });
                }
            }
        }
    }

    fn find_stashes(&mut self, graph: &Graph, placement: &Placement, depth: impl Fn(usize) -> u64) {
        for node in graph.nodes.iter().filter(|node| node.pass == Pass::Backward) {
            let stage = placement.stage(node.block);
            if depth(stage) <= 1 {
                continue;
            }
            for input in &node.inputs {
                let tensor = self.root(*input);
                let made_forward = match self.producer[input.0] {
                    Some(producer) => graph.nodes[producer.0].pass == Pass::Forward,
                    None => graph.tensor(tensor).role == Role::Input,
                };
                if made_forward {
                    self.stashed.insert((tensor, stage));
                }
            }
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

/// Liveness steps each home is used in.
#[derive(Debug, Default)]
pub struct Lifetimes {
    spans: BTreeMap<Home, Range<u32>>,
}

impl Lifetimes {
    /// Extends the life of `home` to cover `steps`.
    pub fn touch(&mut self, home: Home, steps: Range<u32>) {
        let span = self.spans.entry(home).or_insert_with(|| steps.clone());
        *span = span.start.min(steps.start)..span.end.max(steps.end);
    }

    /// All homes with their lives, in order.
    pub fn iter(&self) -> impl Iterator<Item = (&Home, &Range<u32>)> {
        self.spans.iter()
    }
}
