//! The plan of the work of a stage in a pass: its nodes, what it computes again, and what it fetches
//! from streaming memory before the pass or when a node reads it first.
//!
//! PopART's phases say so for each kind of tensor (`ExecutionPhaseIOSchedule`): what is preloaded
//! comes while the phase before works, what is loaded on demand takes no memory until then
//! (willow/src/transforms/streamingmemoryopinserter.cpp). Outside of phases weights and stashed
//! activations come before the pass, and accumulators on demand.

use super::program_plan::ProgramPlan;
use super::tensor_analysis::{RecomputeGroup, RecomputeNodes, TensorBuffer, TensorBufferKind};
use crate::graph::{GraphNode, GraphNodeId};
use crate::shape::{TensorId, TensorRole};
use crate::spec::ExecutionPhaseIoSchedule;
use std::collections::{BTreeMap, BTreeSet};
use tilescope_report::TrainingPass;

/// The work of a stage in a pass.
pub(super) struct FragmentPlan {
    pub stage: usize,
    pub pass: TrainingPass,
    /// Kept tensors that are loaded before the pass.
    pub loads: Vec<TensorId>,
    /// Activations that are restored before the pass.
    pub restores: Vec<TensorId>,
    /// Forward or backward nodes in their order.
    pub nodes: Vec<NodePlan>,
    /// Weights in streaming memory that nobody reads any more behind the pass.
    pub released: Vec<TensorId>,
}

/// A node of a fragment with what is done before and behind it.
pub(super) struct NodePlan {
    pub id: GraphNodeId,
    /// True if the backward pass runs a forward node once more.
    pub again: bool,
    /// Weights that are loaded for it.
    pub loads: Vec<TensorId>,
    /// Activations that are restored for it.
    pub restores: Vec<TensorId>,
    /// Weights that are gathered for it from all replicas.
    pub gathers: Vec<TensorBuffer>,
    /// Accumulators that are loaded for it.
    pub accumulators: Vec<TensorId>,
    /// Gathered weights that no later node reads.
    pub given_up: Vec<TensorBuffer>,
    /// Accumulators that no later node adds to.
    pub stores: Vec<TensorId>,
}

impl FragmentPlan {
    /// The fragments of a pass by stage.
    pub(super) fn of_pass(plan: &ProgramPlan, pass: TrainingPass) -> Vec<Self> {
        (0..plan.placement.stages.len()).map(|stage| Self::new(plan, stage, pass)).collect()
    }

    fn new(plan: &ProgramPlan, stage: usize, pass: TrainingPass) -> Self {
        let node_ids = node_ids(plan, stage, pass);
        let mut last_reads: BTreeMap<TensorBuffer, usize> = BTreeMap::new();
        let mut last_sums: BTreeMap<TensorId, usize> = BTreeMap::new();
        for (position, (id, _)) in node_ids.iter().enumerate() {
            let node = &plan.graph.nodes[id.0];
            let gathered = gathered_operands(plan, node, stage, pass);
            last_reads.extend(gathered.into_iter().map(|buffer| (buffer, position)));
            let accumulators = off_chip_accumulators(plan, node);
            last_sums.extend(accumulators.into_iter().map(|tensor| (tensor, position)));
        }
        let settings = plan.spec.options.execution_phase_settings;
        let is_preloaded = |schedule: ExecutionPhaseIoSchedule| {
            !plan.schedule.phased || schedule == ExecutionPhaseIoSchedule::Preload
        };
        let mut loads = loaded_weights(plan, stage, pass);
        let mut restores: Vec<TensorId> = match pass {
            TrainingPass::Backward => plan.tensors.stashed(stage).collect(),
            _ => Vec::new(),
        };
        let (mut weights, mut activations) = (BTreeSet::new(), BTreeSet::new());
        let mut accumulators: BTreeSet<TensorId> = last_sums.keys().copied().collect();
        if !is_preloaded(settings.weight_io_schedule) {
            weights.extend(std::mem::take(&mut loads));
        }
        if plan.schedule.phased && is_preloaded(settings.accumulator_io_schedule) {
            loads.extend(std::mem::take(&mut accumulators));
        }
        if !is_preloaded(settings.activation_io_schedule) {
            activations.extend(std::mem::take(&mut restores));
        }
        let mut missing: BTreeSet<TensorBuffer> = last_reads.keys().copied().collect();
        let mut nodes = Vec::new();
        for (position, (id, again)) in node_ids.into_iter().enumerate() {
            let node = &plan.graph.nodes[id.0];
            let inputs: BTreeSet<TensorId> = node.inputs.iter().copied().collect();
            let roots: BTreeSet<TensorId> =
                node.inputs.iter().map(|input| plan.tensors.root(*input)).collect();
            let read = gathered_operands(plan, node, stage, pass);
            let sums = off_chip_accumulators(plan, node);
            let wanted = sums.iter().copied().filter(|tensor| accumulators.remove(tensor));
            let is_last_read = |buffer: &TensorBuffer| last_reads[buffer] == position;
            nodes.push(NodePlan {
                id,
                again,
                loads: inputs.into_iter().filter(|tensor| weights.remove(tensor)).collect(),
                restores: roots.into_iter().filter(|root| activations.remove(root)).collect(),
                accumulators: wanted.collect(),
                stores: sums.into_iter().filter(|of| last_sums[of] == position).collect(),
                given_up: read.iter().copied().filter(is_last_read).collect(),
                gathers: read.into_iter().filter(|buffer| missing.remove(buffer)).collect(),
            });
        }
        Self { stage, pass, loads, restores, nodes, released: released_weights(plan, stage, pass) }
    }
}

/// The nodes that a stage runs in a pass, in their order, and whether it runs them again.
fn node_ids(plan: &ProgramPlan, stage: usize, pass: TrainingPass) -> Vec<(GraphNodeId, bool)> {
    let mut again = match pass {
        TrainingPass::Forward => RecomputeNodes::new(),
        TrainingPass::Backward => plan.tensors.recompute_nodes(stage).clone(),
        TrainingPass::Update => return Vec::new(),
    };
    let mut nodes = Vec::new();
    for (index, node) in plan.graph.nodes.iter().enumerate() {
        if node.pass != pass || !plan.placement.runs(stage, node.block) {
            continue;
        }
        // The backward pass meets the last group first; what it skips is due as well.
        let due = again.split_off(&RecomputeGroup::of(node));
        nodes.extend(due.into_values().rev().flatten().map(|node| (node, true)));
        nodes.push((GraphNodeId(index), false));
    }
    nodes
}

fn off_chip_accumulators(plan: &ProgramPlan, node: &GraphNode) -> Vec<TensorId> {
    let is_accumulator = |tensor: &TensorId| plan.role(*tensor) == TensorRole::Accumulator;
    let inputs = node.inputs.iter().copied();
    inputs.filter(|tensor| is_accumulator(tensor) && plan.is_off_chip(*tensor)).collect()
}

/// The gathered weights that a node reads.
fn gathered_operands(
    plan: &ProgramPlan,
    node: &GraphNode,
    stage: usize,
    pass: TrainingPass,
) -> BTreeSet<TensorBuffer> {
    let inputs = node.inputs.iter();
    let buffers = inputs.map(|of| plan.tensors.buffer(*of, stage, plan.ipu(stage), pass));
    buffers.filter(|of| matches!(of.part, TensorBufferKind::Gathered(..))).collect()
}

/// Off-chip weights that a stage reads in a pass.
fn weights(plan: &ProgramPlan, stage: usize, pass: TrainingPass) -> BTreeSet<TensorId> {
    let again = pass == TrainingPass::Backward && !plan.tensors.recompute_nodes(stage).is_empty();
    let mine = plan.graph.nodes.iter().filter(|node| {
        plan.placement.runs(stage, node.block)
            && (node.pass == pass || again && node.pass == TrainingPass::Forward)
    });
    let inputs = mine.flat_map(|node| node.inputs.iter().copied());
    inputs
        .filter(|tensor| plan.role(*tensor) == TensorRole::Parameter && plan.is_off_chip(*tensor))
        .collect()
}

/// Off-chip weights that a stage has to load for a pass: what its forward pass loaded is still
/// there where it goes back at once.
fn loaded_weights(plan: &ProgramPlan, stage: usize, pass: TrainingPass) -> Vec<TensorId> {
    if pass == TrainingPass::Update {
        return Vec::new();
    }
    let mut there = BTreeSet::new();
    if pass == TrainingPass::Backward && plan.tensors.goes_back_at_once(stage) {
        there.extend(weights(plan, stage, TrainingPass::Forward));
    }
    for earlier in plan.placement.earlier_steps(stage, pass) {
        there.extend(weights(plan, earlier, pass));
    }
    weights(plan, stage, pass).difference(&there).copied().collect()
}

/// Weights from streaming memory that are given up behind a pass: they stay until the one that
/// follows at once is over, and over all steps of a phase that read them.
fn released_weights(plan: &ProgramPlan, stage: usize, pass: TrainingPass) -> Vec<TensorId> {
    if pass == TrainingPass::Update {
        return Vec::new();
    }
    let mut still_read = BTreeSet::new();
    if pass == TrainingPass::Forward
        && plan.spec.model.training
        && plan.tensors.goes_back_at_once(stage)
    {
        still_read.extend(weights(plan, stage, TrainingPass::Backward));
    }
    for later in plan.placement.later_steps(stage, pass) {
        still_read.extend(weights(plan, later, pass));
    }
    weights(plan, stage, pass).difference(&still_read).copied().collect()
}
