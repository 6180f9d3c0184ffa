//! The loops of the model whose bodies exist once.
//!
//! All iterations run the same steps on the same variables, so a body is added to the program once.
//! Tensors that were made before a loop stay until its end.

use super::fragment_items::FragmentItem;
use super::fragment_plan::NodePlan;
use super::program_builder::ProgramBuilder;
use crate::graph::{GraphNode, ModelGraph, RepeatId};
use crate::poplar::work::{OperationWork, OperationWorkItem};
use crate::shape::TensorId;
use std::collections::BTreeSet;
use std::ops::Range;
use tilescope_report::TrainingPass;
use tilescope_report::units::IpuId;

impl ProgramBuilder<'_> {
    /// Splits nodes into those of each repeat directly inside `outer` and single ones.
    pub(super) fn split_by_repeat<'n>(
        &self,
        nodes: &'n [NodePlan],
        outer: Option<RepeatId>,
    ) -> Vec<(Option<RepeatId>, &'n [NodePlan])> {
        let graph = self.plan.graph;
        let find_repeat = |node: &NodePlan| graph.repeat_inside(outer, &graph.nodes[node.id.0]);
        let mut parts = Vec::new();
        for together in nodes.chunk_by(|node, next| {
            let repeat = find_repeat(node);
            repeat.is_some() && repeat == find_repeat(next)
        }) {
            parts.push((find_repeat(&together[0]), together));
        }
        parts
    }

    /// Adds the nodes of a repeat as a loop.
    pub(super) fn repeat(
        &mut self,
        repeat: RepeatId,
        nodes: &[NodePlan],
        (stage, pass): (usize, TrainingPass),
        ipu: IpuId,
    ) -> Vec<FragmentItem> {
        let graph = self.plan.graph;
        debug_assert!(
            nodes.iter().all(|node| {
                graph.repeats_around(graph.nodes[node.id.0].repeat).any(|of| of == repeat)
            }),
            "all nodes are in the repeat"
        );
        // A call of outlined code neither enters nor leaves a loop.
        self.tables.bind_arguments(ipu);
        let first = self.tables.next_step();
        let mut works = 0;
        for node in nodes {
            let has_work = !self.plan.lowered_nodes[node.id.0].work.items.is_empty();
            if has_work && !self.is_done_already(&graph.nodes[node.id.0], stage, ipu) {
                works += 1;
            }
        }
        let mut items = Vec::new();
        if works > 1 {
            let times = graph.repeats[repeat.0].trips;
            let mut body = Vec::new();
            for (inner, together) in self.split_by_repeat(nodes, Some(repeat)) {
                body.extend(match inner {
                    None => {
                        self.bind_persistent_operands(&together[0], ipu);
                        self.node(&together[0], stage, ipu, &[])
                    }
                    Some(inner) => self.repeat(inner, together, (stage, pass), ipu),
                });
            }
            items.push(FragmentItem::Loop { times, body });
        } else {
            // The loops become a part of the only work. Otherwise equal works outside of them would
            // share a function that contains the loops.
            for node in nodes {
                let loops = trips_within(graph, &graph.nodes[node.id.0], repeat);
                items.extend(self.node(node, stage, ipu, &loops));
            }
        }
        self.tables.bind_arguments(ipu);
        self.keep_during_repeat(nodes, first..self.tables.next_step(), (stage, pass), ipu);
        items
    }

    /// Keeps tensors that were made before a repeat until its last iteration.
    fn keep_during_repeat(
        &mut self,
        nodes: &[NodePlan],
        steps: Range<u32>,
        (stage, pass): (usize, TrainingPass),
        ipu: IpuId,
    ) {
        if steps.is_empty() {
            return;
        }
        let plan = self.plan;
        let mut used = Vec::new();
        let mut made = BTreeSet::new();
        for planned in nodes {
            let GraphNode { inputs, outputs, .. } = &plan.graph.nodes[planned.id.0];
            used.extend(inputs.iter().chain(outputs).copied());
            made.extend(outputs.iter().copied());
        }
        let buffers =
            used.iter().flat_map(|of: &TensorId| plan.tensors.buffers(*of, stage, ipu, pass));
        for buffer in buffers.filter(|buffer| !made.contains(&buffer.tensor)) {
            self.variables.lifetimes.keep_during(buffer, steps.clone());
        }
    }

    /// Returns true if a node only copies a tensor to the memory that it is in.
    fn is_done_already(&self, node: &GraphNode, stage: usize, ipu: IpuId) -> bool {
        let Some(place) = node.operator.copied_operand() else { return false };
        let tensors = &self.plan.tensors;
        let [from, to] = [node.inputs[place], node.outputs[0]];
        tensors.buffers(from, stage, ipu, node.pass).eq(tensors.buffers(to, stage, ipu, node.pass))
    }

    /// Returns the work of a node if it differs from its lowered work: none if nothing is left to
    /// copy, and the work in loops if there are any.
    pub(super) fn work_of_node(
        &self,
        node: &GraphNode,
        work: &OperationWork,
        (stage, ipu): (usize, IpuId),
        loops: &[u64],
    ) -> Option<OperationWork> {
        if self.is_done_already(node, stage, ipu) {
            return Some(OperationWork::default());
        }
        if loops.is_empty() || work.items.is_empty() {
            return None;
        }
        let mut work = work.clone();
        for times in loops {
            let body = std::mem::take(&mut work.items);
            work.items.push(OperationWorkItem::Loop { times: *times, body });
        }
        Some(work)
    }
}

/// The numbers of iterations of the repeats around a node up to `outermost`, from the inside.
fn trips_within(graph: &ModelGraph, node: &GraphNode, outermost: RepeatId) -> Vec<u64> {
    let mut trips = Vec::new();
    for repeat in graph.repeats_around(node.repeat) {
        trips.push(graph.repeats[repeat.0].trips);
        if repeat == outermost {
            break;
        }
    }
    trips
}
