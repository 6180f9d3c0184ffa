//! The work of one stage in one pass, added to the program according to its plan.

use super::data_flow::BufferKey;
use super::fragment_items::FragmentItem;
use super::fragment_plan::{FragmentPlan, NodePlan};
use super::program_builder::ProgramBuilder;
use super::transfers::StageCopyGroup;
use crate::schedule::WeightUpdateTiming;
use crate::shape::TensorId;
use std::collections::BTreeMap;
use tilescope_report::TrainingPass;
use tilescope_report::units::IpuId;

/// The work of one stage in one pass.
#[derive(Clone, Debug)]
pub struct StageFragment {
    pub stage: usize,
    /// Forward, backward or update.
    pub pass: TrainingPass,
    /// The IPU of the replica that runs the work.
    pub ipu: IpuId,
    /// Loads from streaming memory before the work can start, in phases that load early.
    pub remote_loads: Vec<FragmentItem>,
    /// The I/O tile copies among those loads, if phases follow each other on the same IPUs.
    pub io_loads: Vec<FragmentItem>,
    pub items: Vec<FragmentItem>,
}

/// The work of all stages in a pass, and the copies between stages that follow it.
#[derive(Debug, Default)]
pub(super) struct PassFragments {
    pub fragments: Vec<StageFragment>,
    pub link_copies: Vec<StageCopyGroup>,
}

impl PassFragments {
    /// Appends the fragments and copies of a later pass.
    pub(super) fn extend(&mut self, later: Self) {
        self.fragments.extend(later.fragments);
        self.link_copies.extend(later.link_copies);
    }
}

impl ProgramBuilder<'_> {
    /// Adds a pass of all stages in execution order, each with the copies and updates that follow
    /// it.
    pub(super) fn fragments(&mut self, pass: TrainingPass) -> PassFragments {
        let plan = self.plan;
        let fragments = FragmentPlan::of_pass(plan, pass);
        let mut later_loads: BTreeMap<usize, Vec<FragmentItem>> = BTreeMap::new();
        let mut order = plan.placement.together().to_vec();
        if pass == TrainingPass::Backward {
            order.reverse();
        }
        let mut made = PassFragments::default();
        for together in order {
            let mut stages: Vec<usize> = together.clone().collect();
            if pass == TrainingPass::Backward {
                stages.reverse();
            }
            for stage in &stages {
                let loads = match later_loads.remove(stage) {
                    Some(loads) => loads,
                    None => {
                        // The loads of the later steps of an IPU in a phase come with those of the
                        // first step.
                        let loads = self.early_loads(&fragments[*stage]);
                        for later in plan.placement.later_steps(*stage, pass) {
                            later_loads.insert(later, self.early_loads(&fragments[later]));
                        }
                        loads
                    }
                };
                made.fragments.push(self.fragment(&fragments[*stage], loads));
            }
            made.link_copies.extend(self.link_copies_behind(&together, pass));
            // PopART gives copies to other phases a higher priority than updates (`setPriority`).
            let updates = pass == TrainingPass::Backward
                && plan.schedule.update == WeightUpdateTiming::PerPhase;
            stages.retain(|stage| updates && plan.placement.later_steps(*stage, pass).is_empty());
            for stage in stages {
                made.fragments.extend(self.updates_of_phase(stage));
            }
        }
        made
    }

    /// Adds the updates of an IPU in a phase, where `stage` is the last of the phase in the
    /// backward pass.
    fn updates_of_phase(&mut self, stage: usize) -> Vec<StageFragment> {
        let mut made = Vec::new();
        for stage in self.plan.placement.steps_of_ipu(stage) {
            let update = FragmentPlan::new(self.plan, stage, TrainingPass::Update);
            made.push(self.fragment(&update, Vec::new()));
        }
        made
    }

    /// Adds the loads that a fragment needs before it begins.
    fn early_loads(&mut self, fragment: &FragmentPlan) -> Vec<FragmentItem> {
        let ipu = self.plan.ipu(fragment.stage);
        let mut loads = self.remote_tensor_copies(&fragment.loads, ipu, true);
        loads.extend(self.restore(&fragment.restores, fragment.stage));
        loads
    }

    /// Adds the work of one stage in one pass after `loads`.
    fn fragment(&mut self, fragment: &FragmentPlan, loads: Vec<FragmentItem>) -> StageFragment {
        let FragmentPlan { stage, pass, nodes, .. } = fragment;
        let stage = *stage;
        let pass = *pass;
        let ipu = self.plan.ipu(stage);
        let mut items = loads;
        let mut remote_loads = Vec::new();
        let mut io_loads = Vec::new();
        // The previous phase works at the same time.
        if self.plan.schedule.phased {
            remote_loads = std::mem::take(&mut items);
        }
        // With one set of IPUs, only the I/O tiles can load while the phase before works.
        if self.plan.spec.options.execution_phase_settings.stages == 1 {
            (io_loads, remote_loads) = remote_loads
                .into_iter()
                .partition(|item| matches!(item, FragmentItem::IoStream { .. }));
        }
        let (on_io, direct): (Vec<TensorId>, Vec<TensorId>) = fragment
            .state_loads
            .iter()
            .copied()
            .partition(|tensor| self.plan.uses_io_tiles(*tensor));
        // Compute tiles wait for their own loads. I/O tiles load while the nodes run.
        items.extend(self.remote_tensor_copies(&direct, ipu, true));
        let fetched = self.fetch_by_io_tiles(&on_io, ipu);
        items.extend(fetched.iter().map(|fetch| fetch.stream.clone()));
        items.extend(self.nodes_and_copies(nodes, (stage, pass), ipu));
        items.extend(self.take_over_from_io_tiles(&fetched, ipu));
        if pass == TrainingPass::Update {
            items.extend(self.updates(stage, ipu));
        }
        if pass == TrainingPass::Forward {
            items.extend(self.stash(stage));
        }
        StageFragment { stage, pass, ipu, remote_loads, io_loads, items }
    }

    /// Adds nodes in order, with loads before them and stores after them. The nodes of a repeat
    /// become a loop, with all loads before it.
    fn nodes_and_copies(
        &mut self,
        nodes: &[NodePlan],
        (stage, pass): (usize, TrainingPass),
        ipu: IpuId,
    ) -> Vec<FragmentItem> {
        let mut items = Vec::new();
        for (repeat, together) in self.split_by_repeat(nodes, None) {
            for node in together {
                let copies = node.copies();
                items.extend(self.remote_tensor_copies(&copies.loads, ipu, true));
                items.extend(self.restore(&copies.restores, stage));
                for whole in &copies.gathers {
                    items.extend(self.gather_weights(*whole, pass));
                }
            }
            let done = match repeat {
                None => {
                    self.bind_persistent_operands(&together[0], ipu);
                    let sums = &together[0].copies().accumulators;
                    items.extend(self.remote_tensor_copies(sums, ipu, true));
                    self.node(&together[0], stage, ipu, &[])
                }
                Some(repeat) => self.repeat(repeat, together, (stage, pass), ipu),
            };
            for node in together {
                let given_up: Vec<BufferKey> =
                    node.copies().given_up.iter().copied().map(BufferKey::Tensor).collect();
                self.flows.note_free(&done, &given_up);
            }
            items.extend(done);
            for node in together {
                items.extend(self.remote_tensor_copies(&node.copies().stores, ipu, false));
            }
        }
        items
    }

    /// PopART binds persistent tensors to a call just before it (`JustInTime`).
    pub(super) fn bind_persistent_operands(&mut self, node: &NodePlan, ipu: IpuId) {
        let plan = self.plan;
        let of_graph = &plan.graph.nodes[node.id.0];
        let mut operands = of_graph.inputs.iter().chain(&of_graph.outputs);
        if operands.any(|tensor| plan.role(*tensor).is_persistent()) {
            self.tables.bind_arguments(ipu);
        }
    }

    /// Adds the steps of one node, in loops with these numbers of iterations from the inside, and
    /// records the tensors that they keep alive.
    pub(super) fn node(
        &mut self,
        planned: &NodePlan,
        stage: usize,
        ipu: IpuId,
        loops: &[u64],
    ) -> Vec<FragmentItem> {
        let plan = self.plan;
        let node = &plan.graph.nodes[planned.id.0];
        let lowered = &plan.lowered_nodes[planned.id.0];
        let (pass, name) = if planned.again {
            (TrainingPass::Backward, format!("{}/recompute", node.name))
        } else {
            (node.pass, node.name.clone())
        };
        let operation =
            self.operations.add_node(node, &name, (stage, pass), ipu, lowered.plan.clone());
        let first = self.tables.next_step();
        let (scatter, share) = self.scatter_gradient(node, operation, ipu).unzip();
        let mut items: Vec<FragmentItem> = scatter.unwrap_or_default();
        let work = share.as_ref().unwrap_or(&lowered.work);
        let looped = self.work_of_node(node, work, (stage, ipu), loops);
        let work = looped.as_ref().unwrap_or(work);
        let mut emitted = self.tables.work(Some(operation), &name, ipu, work);
        items.append(&mut emitted.items);
        items.extend(self.shard_collective(node, operation, ipu));
        let end = self.tables.next_step();
        self.flows.note_node(node, &items, (stage, pass), ipu);
        if first == end {
            return items;
        }
        let lives = &lowered.liveness;
        let steps = &emitted.steps;
        for (tensor, live) in node.inputs.iter().zip(lives.input_phases(steps.len())) {
            let is_read_to_the_end = live.end == 0 || live.end >= steps.len();
            let until = if is_read_to_the_end { end } else { steps[live.end - 1] + 1 };
            for buffer in plan.tensors.buffers(*tensor, stage, ipu, pass) {
                self.variables.lifetimes.extend_to(buffer, first..until);
                self.variables.lifetimes.require_place(buffer, lives.input_constraint);
            }
        }
        for (tensor, live) in node.outputs.iter().zip(lives.output_phases(steps.len())) {
            let from = steps.get(live.start).copied().unwrap_or(first);
            for buffer in plan.tensors.buffers(*tensor, stage, ipu, pass) {
                self.variables.lifetimes.extend_to(buffer, from..end);
                self.variables.lifetimes.require_place(buffer, lives.output_constraint);
            }
        }
        self.variables.add_of_work((work, &emitted), operation, &name, ipu);
        items
    }
}

/// Returns the name of a pass in texts.
pub(crate) fn pass_name(pass: TrainingPass) -> &'static str {
    match pass {
        TrainingPass::Forward => "forward",
        TrainingPass::Backward => "backward",
        TrainingPass::Update => "update",
    }
}
