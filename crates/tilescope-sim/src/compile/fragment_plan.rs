//! The plan of the work of a stage in a pass: its nodes, the nodes that it recomputes, and the
//! tensors that it loads from streaming memory, either before the pass or when a node first reads
//! them.
//!
//! PopART's phases define this for each kind of tensor (`ExecutionPhaseIOSchedule`). A preloaded
//! tensor arrives while the previous phase works. A tensor that is loaded on demand takes no memory
//! until then. Outside phases a load has no priority of its own, and the scheduler, which minimises
//! liveness, places it before its first reader
//! (willow/src/transforms/streamingmemoryopinserter.cpp, setLoadingOpPhaseAndPriority): everything
//! is loaded on demand. Tensors in an on-chip stash are restored before the pass.

use super::program_plan::ProgramPlan;
use super::tensor_analysis::{RecomputeGroup, RecomputeNodes, TensorBuffer, TensorBufferKind};
use crate::graph::{GraphNode, GraphNodeId};
use crate::schedule::WeightUpdateTiming;
use crate::shape::{TensorId, TensorRole};
use crate::specification::{ExecutionPhaseIoSchedule, ExecutionPhaseSchedule};
use std::collections::{BTreeMap, BTreeSet};
use tilescope_report::TrainingPass;

/// The work of a stage in a pass.
pub(super) struct FragmentPlan {
    pub stage: usize,
    pub pass: TrainingPass,
    /// Persistent tensors that are loaded before the pass.
    pub loads: Vec<TensorId>,
    /// Optimiser state that the pass loads before its first node.
    pub state_loads: Vec<TensorId>,
    /// Activations that are restored before the pass.
    pub restores: Vec<TensorId>,
    /// Forward or backward nodes, in execution order.
    pub nodes: Vec<NodePlan>,
}

/// A node of a fragment.
pub(super) struct NodePlan {
    pub id: GraphNodeId,
    /// True if the backward pass recomputes this forward node.
    pub again: bool,
    /// The copies around the node. `None` if there are none, as for most nodes.
    copies: Option<Box<NodeCopies>>,
}

/// The copies before and after a node.
#[derive(PartialEq)]
pub(super) struct NodeCopies {
    /// Weights that are loaded for the node.
    pub loads: Vec<TensorId>,
    /// Activations that are restored for the node.
    pub restores: Vec<TensorId>,
    /// Weights that are gathered from all replicas for the node.
    pub gathers: Vec<TensorBuffer>,
    /// Accumulators that are loaded for the node.
    pub accumulators: Vec<TensorId>,
    /// Weights, gathered or loaded, that no later node reads.
    pub given_up: Vec<TensorBuffer>,
    /// Accumulators that no later node adds to.
    pub stores: Vec<TensorId>,
}

/// No copies around a node.
static NO_COPIES: NodeCopies = NodeCopies {
    loads: Vec::new(),
    restores: Vec::new(),
    gathers: Vec::new(),
    accumulators: Vec::new(),
    given_up: Vec::new(),
    stores: Vec::new(),
};

impl NodePlan {
    /// The copies before and after the node.
    pub(super) fn copies(&self) -> &NodeCopies {
        self.copies.as_deref().unwrap_or(&NO_COPIES)
    }
}

impl FragmentPlan {
    /// The fragments of a pass by stage.
    pub(super) fn of_pass(plan: &ProgramPlan, pass: TrainingPass) -> Vec<Self> {
        (0..plan.placement.stages.len()).map(|stage| Self::new(plan, stage, pass)).collect()
    }

    pub(super) fn new(plan: &ProgramPlan, stage: usize, pass: TrainingPass) -> Self {
        let node_ids = node_ids(plan, stage, pass);
        let released = released_weights(plan, stage, pass);
        let mut last_reads: BTreeMap<TensorBuffer, usize> = BTreeMap::new();
        let mut last_sums: BTreeMap<TensorId, usize> = BTreeMap::new();
        for (position, (id, _)) in node_ids.iter().enumerate() {
            let node = &plan.graph.nodes[id.0];
            for buffer in gathered_operands(plan, node, stage, pass) {
                last_reads.insert(buffer, position);
            }
            for tensor in off_chip_weights(plan, node) {
                // A weight that stays for a later pass or an update is not given up here.
                if released.contains(&tensor) {
                    last_reads.insert(TensorBuffer::original(tensor, plan.ipu(stage)), position);
                }
            }
            let accumulators = off_chip_accumulators(plan, node);
            last_sums.extend(accumulators.into_iter().map(|tensor| (tensor, position)));
        }
        let settings = plan.spec.options.execution_phase_settings;
        let mut accumulators: BTreeSet<TensorId> = last_sums.keys().copied().collect();
        let mut weights = loaded_weights(plan, stage, pass);
        let mut loads = Vec::new();
        if preloads(plan, settings.weight_io_schedule) {
            loads.extend(std::mem::take(&mut weights));
        }
        if preloads(plan, settings.accumulator_io_schedule) {
            loads.extend(std::mem::take(&mut accumulators));
        }
        let mut restores = Vec::new();
        let mut state_loads = Vec::new();
        let mut activations = BTreeSet::new();
        if pass == TrainingPass::Backward {
            loads.extend(preloaded_state(plan, stage));
            // Clustered loads precede all work of the phase, so the first step loads for all steps.
            if plan.placement.earlier_steps(stage, pass).is_empty() {
                for step in plan.placement.steps_of_ipu(stage) {
                    state_loads.extend(clustered_state(plan, step));
                }
            }
            for tensor in plan.tensors.stashed(stage) {
                let on_chip = !plan.schedule.phased && !plan.stashes_off_chip(tensor);
                if on_chip || preloads(plan, settings.activation_io_schedule) {
                    restores.push(tensor);
                } else {
                    activations.insert(tensor);
                }
            }
        }
        let mut missing: BTreeSet<TensorBuffer> = last_reads.keys().copied().collect();
        let mut given_up: BTreeMap<usize, Vec<TensorBuffer>> = BTreeMap::new();
        for (buffer, position) in last_reads {
            given_up.entry(position).or_default().push(buffer);
        }
        let mut nodes = Vec::new();
        for (position, (id, again)) in node_ids.into_iter().enumerate() {
            let node = &plan.graph.nodes[id.0];
            let inputs = node.inputs.iter();
            let owners: BTreeSet<TensorId> =
                inputs.flat_map(|input| plan.tensors.owners(*input)).copied().collect();
            let read = gathered_operands(plan, node, stage, pass);
            let sums = off_chip_accumulators(plan, node);
            // The first node that needs a tensor loads it. Later nodes find it on the chip.
            let wanted = sums.iter().copied().filter(|tensor| accumulators.remove(tensor));
            let copies = NodeCopies {
                loads: owners.iter().copied().filter(|owner| weights.remove(owner)).collect(),
                restores: owners.into_iter().filter(|owner| activations.remove(owner)).collect(),
                accumulators: wanted.collect(),
                stores: sums.into_iter().filter(|of| last_sums[of] == position).collect(),
                given_up: given_up.remove(&position).unwrap_or_default(),
                gathers: read.into_iter().filter(|buffer| missing.remove(buffer)).collect(),
            };
            let copies = if copies == NO_COPIES { None } else { Some(Box::new(copies)) };
            nodes.push(NodePlan { id, again, copies });
        }
        Self { stage, pass, loads, state_loads, restores, nodes }
    }
}

/// Returns the nodes that a stage runs in a pass, in execution order. The flag is true for a
/// recomputed node.
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
        // The backward pass reaches the last group first. Groups that it skips are due as well.
        let due = again.split_off(&RecomputeGroup::of(node));
        nodes.extend(due.into_values().rev().flatten().map(|node| (node, true)));
        nodes.push((GraphNodeId(index), false));
    }
    nodes
}

fn off_chip_accumulators(plan: &ProgramPlan, node: &GraphNode) -> Vec<TensorId> {
    let mut inputs = node.inputs.clone();
    inputs.retain(|id| plan.role(*id) == TensorRole::Accumulator && plan.is_off_chip(*id));
    inputs
}

/// The gathered weights that a node reads.
fn gathered_operands(
    plan: &ProgramPlan,
    node: &GraphNode,
    stage: usize,
    pass: TrainingPass,
) -> BTreeSet<TensorBuffer> {
    let inputs = node.inputs.iter();
    let buffers = inputs.flat_map(|of| plan.tensors.buffers(*of, stage, plan.ipu(stage), pass));
    buffers.filter(|of| matches!(of.part, TensorBufferKind::Gathered(..))).collect()
}

/// Returns true if a phase loads tensors of this kind before it begins.
fn preloads(plan: &ProgramPlan, schedule: ExecutionPhaseIoSchedule) -> bool {
    plan.schedule.phased && schedule == ExecutionPhaseIoSchedule::Preload
}

/// Returns the off-chip operands of one role of the updates that a stage makes after its backward
/// pass.
fn off_chip_operands(plan: &ProgramPlan, stage: usize, role: TensorRole) -> BTreeSet<TensorId> {
    if plan.schedule.update != WeightUpdateTiming::PerPhase {
        return BTreeSet::new();
    }
    let nodes = plan.update_nodes(stage);
    let operands = nodes.iter().flat_map(|(_, node)| &node.inputs).copied();
    operands.filter(|tensor| plan.role(*tensor) == role && plan.is_off_chip(*tensor)).collect()
}

/// Returns the optimiser state that a phase loads before it begins. If gradients are accumulated,
/// the updates follow the phases, and PopART loads state on demand regardless of the setting
/// (willow/src/transforms/streamingmemoryopinserter.cpp, setLoadingOpPhaseAndPriority).
fn preloaded_state(plan: &ProgramPlan, stage: usize) -> BTreeSet<TensorId> {
    let settings = plan.spec.options.execution_phase_settings;
    if !preloads(plan, settings.optimizer_state_io_schedule) {
        return BTreeSet::new();
    }
    off_chip_operands(plan, stage, TensorRole::OptimizerState)
}

/// Returns the optimiser state that is loaded on demand, but before all other work of a phase:
/// clustered loads have the highest priority (streamingmemoryopinserter.cpp, setPriority,
/// BatchClusteredIO). Weights, accumulators and activations that are loaded on demand have no
/// priority, regardless of the setting.
fn clustered_state(plan: &ProgramPlan, stage: usize) -> BTreeSet<TensorId> {
    let settings = plan.spec.options.execution_phase_settings;
    if settings.schedule != ExecutionPhaseSchedule::BatchClusteredIo
        || preloads(plan, settings.optimizer_state_io_schedule)
    {
        return BTreeSet::new();
    }
    off_chip_operands(plan, stage, TensorRole::OptimizerState)
}

/// Returns the off-chip tensors that are on the chip when a stage makes its updates, because the
/// backward pass of the phase loaded them.
pub(super) fn loaded_for_update(plan: &ProgramPlan, stage: usize) -> BTreeSet<TensorId> {
    if plan.schedule.update != WeightUpdateTiming::PerPhase {
        return BTreeSet::new();
    }
    let mut loaded = preloaded_state(plan, stage);
    loaded.extend(clustered_state(plan, stage));
    for step in plan.placement.steps_of_ipu(stage) {
        loaded.extend(weights(plan, step, TrainingPass::Backward));
    }
    loaded
}

/// Returns the off-chip weights that a stage has on the chip for a pass: those that it reads and,
/// if a phase loads everything first, those that it updates after the pass.
fn weights(plan: &ProgramPlan, stage: usize, pass: TrainingPass) -> BTreeSet<TensorId> {
    // Recomputed nodes also read weights that no backward node reads, such as biases.
    let again = pass == TrainingPass::Backward && !plan.tensors.recompute_nodes(stage).is_empty();
    let mine = plan.graph.nodes.iter().filter(|node| {
        plan.placement.runs(stage, node.block)
            && (node.pass == pass || again && node.pass == TrainingPass::Forward)
    });
    let mut weights: BTreeSet<TensorId> =
        mine.flat_map(|node| off_chip_weights(plan, node)).collect();
    let settings = plan.spec.options.execution_phase_settings;
    if pass == TrainingPass::Backward && preloads(plan, settings.weight_io_schedule) {
        weights.extend(off_chip_operands(plan, stage, TensorRole::Parameter));
    }
    weights
}

/// Returns the weights in streaming memory that a node reads, including through views.
fn off_chip_weights(plan: &ProgramPlan, node: &GraphNode) -> BTreeSet<TensorId> {
    let owners = node.inputs.iter().flat_map(|input| plan.tensors.owners(*input)).copied();
    owners
        .filter(|tensor| plan.role(*tensor) == TensorRole::Parameter && plan.is_off_chip(*tensor))
        .collect()
}

/// Returns the off-chip weights that a stage must load for a pass. If the stage starts its backward
/// pass immediately, the weights that its forward pass loaded are still on the chip.
fn loaded_weights(plan: &ProgramPlan, stage: usize, pass: TrainingPass) -> BTreeSet<TensorId> {
    if pass == TrainingPass::Update {
        return BTreeSet::new();
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

/// Returns the off-chip weights that a pass releases. The others stay for the pass that follows
/// immediately, for later steps of a phase that read them, and for its updates.
fn released_weights(plan: &ProgramPlan, stage: usize, pass: TrainingPass) -> BTreeSet<TensorId> {
    if pass == TrainingPass::Update {
        return BTreeSet::new();
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
    if pass == TrainingPass::Backward {
        for step in plan.placement.steps_of_ipu(stage) {
            still_read.extend(off_chip_operands(plan, step, TensorRole::Parameter));
        }
    }
    weights(plan, stage, pass).difference(&still_read).copied().collect()
}
