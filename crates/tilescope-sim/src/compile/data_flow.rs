//! The buffers that programs read and write, recorded while the programs are made. `verify` follows
//! them through a run.

use super::fragment_items::{FragmentItem, first_leaf, last_leaf};
use super::program_plan::ProgramPlan;
use super::tensor_analysis::{StageBoundary, TensorBuffer, TensorBufferKind};
use crate::graph::GraphNode;
use crate::shape::{TensorId, TensorRole};
use crate::specification::DataLoaderMode;
use std::collections::BTreeMap;
use tilescope_report::units::{DataBufferId, DataFlowId, IpuId, ProgramId};
use tilescope_report::{
    DataAccess, DataAccessKind, DataBuffer, DataFlows, DataPlace, TrainingPass,
};

/// The identity of a buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum BufferKey {
    /// The memory of a tensor on the tiles.
    Tensor(TensorBuffer),
    /// The copy of a tensor that a stage keeps for its backward passes.
    Stash { tensor: TensorId, stage: usize },
    /// A persistent tensor in streaming memory.
    Remote { tensor: TensorId, ipu: IpuId },
    /// The input that the host sends to a stage.
    HostInput { tensor: TensorId, stage: usize },
    /// The output that a stage sends to the host.
    HostOutput { tensor: TensorId, stage: usize },
    /// The copy of an input or an output of a stage on the I/O tiles.
    IoTiles { tensor: TensorId, stage: usize },
    /// The sum of an output over the micro-batches.
    OutputSum { tensor: TensorId, ipu: IpuId },
}

/// Collects buffers and their accesses.
pub(super) struct DataFlowRecorder<'a> {
    plan: &'a ProgramPlan<'a>,
    known: BTreeMap<BufferKey, DataBufferId>,
    flows: DataFlows,
    next_flow: u32,
}

impl<'a> DataFlowRecorder<'a> {
    pub(super) fn new(plan: &'a ProgramPlan<'a>) -> Self {
        Self { plan, known: BTreeMap::new(), flows: DataFlows::default(), next_flow: 0 }
    }

    pub(super) fn into_flows(self) -> DataFlows {
        self.flows
    }

    fn begin_flow(&mut self) -> DataFlowId {
        self.next_flow += 1;
        DataFlowId(self.next_flow - 1)
    }

    fn add(&mut self, flow: DataFlowId, program: ProgramId, key: BufferKey, kind: DataAccessKind) {
        let access = DataAccess { flow, program, buffer: self.buffer(key), kind };
        if !self.flows.accesses.ends_with(&[access]) {
            self.flows.accesses.push(access);
        }
    }

    /// Records that `items` read some buffers when they begin, and have written others when they
    /// end.
    pub(super) fn note(
        &mut self,
        items: &[FragmentItem],
        read: &[BufferKey],
        written: &[BufferKey],
    ) {
        if let (Some(first), Some(last)) = (first_leaf(items), last_leaf(items)) {
            self.note_between(first, last, read, written);
        }
    }

    /// Records that program `first` reads some buffers, and that `last` writes others.
    pub(super) fn note_between(
        &mut self,
        first: ProgramId,
        last: ProgramId,
        read: &[BufferKey],
        written: &[BufferKey],
    ) {
        let flow = self.begin_flow();
        let sides = [(first, read, DataAccessKind::Read), (last, written, DataAccessKind::Write)];
        for (program, keys, kind) in sides {
            let mut keys = keys.to_vec();
            // Several operands can be views of one tensor, whose memory is read once.
            keys.sort_unstable();
            keys.dedup();
            for key in keys {
                self.add(flow, program, key, kind);
            }
        }
    }

    /// Records that the memory of `freed` can be reused when `items` end. Nothing is recorded if
    /// they end with a loop, because its last program runs again.
    pub(super) fn note_free(&mut self, items: &[FragmentItem], freed: &[BufferKey]) {
        if let Some(FragmentItem::Loop { .. }) = items.last() {
            return;
        }
        let Some(last) = last_leaf(items) else { return };
        let flow = self.begin_flow();
        for key in freed {
            self.add(flow, last, *key, DataAccessKind::Free);
        }
    }

    /// Records a copy between stages, which `first` begins and `last` ends.
    pub(super) fn note_stage_copy(
        &mut self,
        boundary: &StageBoundary,
        first: ProgramId,
        last: ProgramId,
    ) {
        let [sent, received] = self.plan.boundary_buffers(boundary).map(BufferKey::Tensor);
        let flow = self.begin_flow();
        self.add(flow, first, sent, DataAccessKind::Send);
        self.add(flow, last, received, DataAccessKind::Receive);
    }

    /// Records the buffers that the steps of a graph node read and write.
    pub(super) fn note_node(
        &mut self,
        node: &GraphNode,
        items: &[FragmentItem],
        (stage, pass): (usize, TrainingPass),
        ipu: IpuId,
    ) {
        let plan = self.plan;
        let keys = |tensor: &TensorId| {
            plan.tensors.buffers(*tensor, stage, ipu, pass).map(BufferKey::Tensor)
        };
        let overwritten = node.operator.overwritten_operand();
        let inputs = node.inputs.iter().enumerate();
        let inputs = inputs.filter(|(place, _)| Some(*place) != overwritten);
        let read: Vec<BufferKey> = inputs.flat_map(|(_, input)| keys(input)).collect();
        let mut written: Vec<BufferKey> = node.outputs.iter().flat_map(keys).collect();
        if node.outputs.is_empty() {
            // A node without results changes persistent tensors.
            let persistent = node.inputs.iter().filter(|of| plan.role(**of).is_persistent());
            written.extend(persistent.flat_map(keys));
        }
        self.note(items, &read, &written);
    }

    fn buffer(&mut self, key: BufferKey) -> DataBufferId {
        if let Some(known) = self.known.get(&key) {
            return *known;
        }
        let id = DataBufferId::from_index(self.flows.buffers.len());
        self.flows.buffers.push(self.describe_buffer(key));
        self.known.insert(key, id);
        id
    }

    fn describe_buffer(&self, key: BufferKey) -> DataBuffer {
        let plan = self.plan;
        let (tensor, ipu, suffix, place) = match key {
            BufferKey::Tensor(TensorBuffer { tensor, ipu, part }) => {
                let suffix = match part {
                    TensorBufferKind::Original => "",
                    TensorBufferKind::Received(_) => "/received",
                    TensorBufferKind::Restored(_) => "/restored",
                    TensorBufferKind::Gathered(..) => "/gathered",
                };
                (tensor, ipu, suffix, DataPlace::Tiles)
            }
            BufferKey::Stash { tensor, stage } => {
                let place = if plan.stashes_off_chip(tensor) {
                    DataPlace::RemoteStash
                } else {
                    DataPlace::Stash
                };
                (tensor, plan.ipu(stage), "/stash", place)
            }
            BufferKey::Remote { tensor, ipu } => (tensor, ipu, "", DataPlace::RemoteBuffer),
            BufferKey::HostInput { tensor, stage } | BufferKey::HostOutput { tensor, stage } => {
                (tensor, plan.ipu(stage), "", DataPlace::Host)
            }
            BufferKey::IoTiles { tensor, stage } => {
                (tensor, plan.ipu(stage), "/buffer", DataPlace::Tiles)
            }
            BufferKey::OutputSum { tensor, ipu } => (tensor, ipu, "/sum", DataPlace::Tiles),
        };
        // A stash has an entry for each micro-batch between its two passes.
        let entries = match key {
            BufferKey::Stash { stage, .. } => plan.schedule.stash_depths[stage],
            _ => 1,
        };
        let original =
            matches!(key, BufferKey::Tensor(TensorBuffer { part: TensorBufferKind::Original, .. }));
        let role = plan.role(tensor);
        // No copy brings synthetic inputs, so they are on the chip before the run.
        let synthetic =
            role == TensorRole::Input && plan.spec.options.host.loader == DataLoaderMode::Synthetic;
        let kept = role.is_persistent() || synthetic;
        // The first access to these buffers is a read: by a load, by an addition to the sum, or by
        // a copy from the host.
        let filled = match key {
            BufferKey::Remote { .. } | BufferKey::OutputSum { .. } => true,
            BufferKey::HostInput { .. } => true,
            _ => original && kept && !plan.is_off_chip(tensor),
        };
        DataBuffer {
            name: format!("{}{suffix}", plan.name(tensor)),
            place,
            ipu,
            entries,
            persistent: kept || matches!(key, BufferKey::OutputSum { .. }),
            filled,
        }
    }
}
