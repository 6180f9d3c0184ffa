//! What a stage fetches from streaming memory in a pass, and when: before the pass, or when an
//! operation reads it first.
//!
//! PopART's phases say so for each kind of tensor (`ExecutionPhaseIOSchedule`): what is preloaded
//! comes while the phase before works, what is loaded on demand takes no memory until then
//! (willow/src/transforms/streamingmemoryopinserter.cpp). Outside of phases weights and stashed
//! activations come before the pass, and accumulators on demand.

use super::fragments::ProgramBuilder;
use super::program_tables::FragmentItem;
use crate::graph::GraphNode;
use crate::shape::{TensorId, TensorRole};
use crate::spec::ExecutionPhaseIoSchedule;
use std::collections::{BTreeMap, BTreeSet};
use tilescope_report::TrainingPass;
use tilescope_report::units::IpuId;

/// What a pass of a stage fetches.
#[derive(Default)]
pub(super) struct FragmentLoads {
    /// Steps before the pass.
    pub early: Vec<FragmentItem>,
    /// Weights that are loaded when they are read.
    weights: BTreeSet<TensorId>,
    /// Activations that are.
    activations: BTreeSet<TensorId>,
    /// Accumulators that are.
    accumulators: BTreeSet<TensorId>,
    /// For each accumulator in streaming memory, the last node that adds to it.
    last_sums: BTreeMap<TensorId, usize>,
}

impl ProgramBuilder<'_> {
    /// Whether tensors are loaded before a pass: phases may wait until they are read.
    fn is_preloaded(&self, schedule: ExecutionPhaseIoSchedule) -> bool {
        !self.schedule.phased || schedule == ExecutionPhaseIoSchedule::Preload
    }

    /// Loads what is fetched before these nodes, a pass of a stage; notes what is fetched later.
    pub(super) fn fragment_loads(
        &mut self,
        (stage, pass): (usize, TrainingPass),
        nodes: &[&GraphNode],
    ) -> FragmentLoads {
        let settings = self.spec.options.execution_phase_settings;
        let mut loads = FragmentLoads::default();
        for (position, node) in nodes.iter().enumerate() {
            let accumulators = self.off_chip_accumulators(node);
            loads.last_sums.extend(accumulators.into_iter().map(|tensor| (tensor, position)));
        }
        let mut kept = match pass {
            TrainingPass::Update => Vec::new(),
            _ => self.loaded_weights(stage, pass),
        };
        if !self.is_preloaded(settings.weight_io_schedule) {
            loads.weights.extend(std::mem::take(&mut kept));
        }
        let accumulators = loads.last_sums.keys().copied();
        if self.schedule.phased && self.is_preloaded(settings.accumulator_io_schedule) {
            kept.extend(accumulators);
        } else {
            loads.accumulators.extend(accumulators);
        }
        loads.early = self.remote_tensor_copies(&kept, self.ipu(stage), true);
        if pass == TrainingPass::Backward {
            let stashed: Vec<TensorId> = self.tensors.stashed(stage).collect();
            if self.is_preloaded(settings.activation_io_schedule) {
                loads.early.extend(self.restore(&stashed, stage));
            } else {
                loads.activations.extend(stashed);
            }
        }
        loads
    }

    /// Loads the weights and activations that a node is the first to read.
    pub(super) fn load_for_node(
        &mut self,
        loads: &mut FragmentLoads,
        node: &GraphNode,
        stage: usize,
    ) -> Vec<FragmentItem> {
        let read = |tensor: &&TensorId| loads.weights.contains(tensor);
        let weights: BTreeSet<TensorId> = node.inputs.iter().filter(read).copied().collect();
        let roots = node.inputs.iter().map(|input| self.tensors.root(*input));
        let activations: BTreeSet<TensorId> =
            roots.filter(|root| loads.activations.contains(root)).collect();
        loads.weights.retain(|tensor| !weights.contains(tensor));
        loads.activations.retain(|tensor| !activations.contains(tensor));
        let weights: Vec<TensorId> = weights.into_iter().collect();
        let activations: Vec<TensorId> = activations.into_iter().collect();
        let mut items = self.remote_tensor_copies(&weights, self.ipu(stage), true);
        items.extend(self.restore(&activations, stage));
        items
    }

    /// Loads the accumulators that a node is the first to add to.
    pub(super) fn load_accumulators(
        &mut self,
        loads: &mut FragmentLoads,
        node: &GraphNode,
        ipu: IpuId,
    ) -> Vec<FragmentItem> {
        let mut wanted = self.off_chip_accumulators(node);
        wanted.retain(|tensor| loads.accumulators.remove(tensor));
        self.remote_tensor_copies(&wanted, ipu, true)
    }

    /// Stores the accumulators that the node at a position of the pass is the last to add to.
    pub(super) fn store_accumulators(
        &mut self,
        loads: &FragmentLoads,
        (position, node): (usize, &GraphNode),
        ipu: IpuId,
    ) -> Vec<FragmentItem> {
        let mut done = self.off_chip_accumulators(node);
        done.retain(|tensor| loads.last_sums.get(tensor) == Some(&position));
        self.remote_tensor_copies(&done, ipu, false)
    }

    fn off_chip_accumulators(&self, node: &GraphNode) -> Vec<TensorId> {
        let is_accumulator =
            |tensor: &TensorId| self.graph.tensor(*tensor).role == TensorRole::Accumulator;
        let inputs = node.inputs.iter().copied();
        inputs.filter(|tensor| is_accumulator(tensor) && self.is_off_chip(*tensor)).collect()
    }
}
