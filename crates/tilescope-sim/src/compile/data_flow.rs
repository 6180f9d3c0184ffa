//! What the programs read and write, noted while they are made: `verify` follows it through a run.

use super::fragments::ProgramBuilder;
use super::program_tables::FragmentItem;
use super::tensor_analysis::{StageBoundary, TensorBuffer, TensorBufferKind};
use crate::graph::GraphNode;
use crate::shape::{TensorId, TensorRole};
use crate::spec::DataLoaderMode;
use std::collections::BTreeMap;
use tilescope_report::units::{DataBufferId, DataFlowId, IpuId, ProgramId};
use tilescope_report::{
    DataAccess, DataAccessKind, DataBuffer, DataFlows, DataPlace, TrainingPass,
};

/// What tells buffers apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum BufferKey {
    /// The memory of a tensor on the tiles.
    Tensor(TensorBuffer),
    /// What a stage keeps of a tensor for its backward passes.
    Stash { tensor: TensorId, stage: usize },
    /// A kept tensor in streaming memory.
    Remote { tensor: TensorId, ipu: IpuId },
    /// What the host sends to a stage.
    HostInput { tensor: TensorId, stage: usize },
    /// What the host is sent of a stage.
    HostOutput { tensor: TensorId, stage: usize },
    /// What the I/O tiles hold of an input or an output of a stage.
    IoTiles { tensor: TensorId, stage: usize },
    /// The sum of an output over the micro-batches.
    OutputSum { tensor: TensorId, ipu: IpuId },
}

/// Collects buffers and accesses.
#[derive(Debug, Default)]
pub(crate) struct DataFlowRecorder {
    known: BTreeMap<BufferKey, DataBufferId>,
    flows: DataFlows,
    next_flow: u32,
}

impl DataFlowRecorder {
    pub(crate) fn into_flows(self) -> DataFlows {
        self.flows
    }

    fn begin_flow(&mut self) -> DataFlowId {
        self.next_flow += 1;
        DataFlowId(self.next_flow - 1)
    }

    fn add(
        &mut self,
        flow: DataFlowId,
        program: ProgramId,
        buffer: DataBufferId,
        kind: DataAccessKind,
    ) {
        let access = DataAccess { flow, program, buffer, kind };
        if !self.flows.accesses.ends_with(&[access]) {
            self.flows.accesses.push(access);
        }
    }
}

impl ProgramBuilder<'_> {
    /// Notes that `items` read some buffers when they begin, and have written others when they end.
    pub(super) fn note_flow(
        &mut self,
        items: &[FragmentItem],
        read: &[BufferKey],
        written: &[BufferKey],
    ) {
        if let (Some(first), Some(last)) = (first_leaf(items), last_leaf(items)) {
            self.note_flow_between(first, last, read, written);
        }
    }

    /// Notes that program `first` reads some buffers, and `last` writes others.
    pub(super) fn note_flow_between(
        &mut self,
        first: ProgramId,
        last: ProgramId,
        read: &[BufferKey],
        written: &[BufferKey],
    ) {
        let flow = self.data_flows.begin_flow();
        let sides = [(first, read, DataAccessKind::Read), (last, written, DataAccessKind::Write)];
        for (program, keys, kind) in sides {
            let mut keys = keys.to_vec();
            keys.sort_unstable();
            keys.dedup();
            for key in keys {
                let buffer = self.data_buffer(key);
                self.data_flows.add(flow, program, buffer, kind);
            }
        }
    }

    /// Notes that the memory of `freed` is given to others when `items` end.
    pub(super) fn note_free(&mut self, items: &[FragmentItem], freed: &[BufferKey]) {
        let Some(last) = last_leaf(items) else { return };
        let flow = self.data_flows.begin_flow();
        for key in freed {
            let buffer = self.data_buffer(*key);
            self.data_flows.add(flow, last, buffer, DataAccessKind::Free);
        }
    }

    /// Notes a copy between stages, which `first` begins and `last` ends.
    pub(super) fn note_stage_copy(
        &mut self,
        boundary: &StageBoundary,
        first: ProgramId,
        last: ProgramId,
    ) {
        let [sent, received] = self.boundary_buffers(boundary).map(BufferKey::Tensor);
        let flow = self.data_flows.begin_flow();
        let sent = self.data_buffer(sent);
        self.data_flows.add(flow, first, sent, DataAccessKind::Send);
        let received = self.data_buffer(received);
        self.data_flows.add(flow, last, received, DataAccessKind::Receive);
    }

    /// Notes what the steps of a node of the graph read and write.
    pub(super) fn note_node(
        &mut self,
        node: &GraphNode,
        items: &[FragmentItem],
        (stage, pass): (usize, TrainingPass),
        ipu: IpuId,
    ) {
        let key =
            |tensor: &TensorId| BufferKey::Tensor(self.tensors.buffer(*tensor, stage, ipu, pass));
        let read: Vec<BufferKey> = node.inputs.iter().map(key).collect();
        let mut written: Vec<BufferKey> = node.outputs.iter().map(key).collect();
        if node.outputs.is_empty() {
            // A node without results changes what is kept.
            let kept = |tensor: &&TensorId| self.graph.tensor(**tensor).role.is_persistent();
            written.extend(node.inputs.iter().filter(kept).map(key));
        }
        self.note_flow(items, &read, &written);
    }

    fn data_buffer(&mut self, key: BufferKey) -> DataBufferId {
        if let Some(known) = self.data_flows.known.get(&key) {
            return *known;
        }
        let buffer = self.describe_buffer(key);
        let id = DataBufferId::from_index(self.data_flows.flows.buffers.len());
        self.data_flows.flows.buffers.push(buffer);
        self.data_flows.known.insert(key, id);
        id
    }

    fn describe_buffer(&self, key: BufferKey) -> DataBuffer {
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
                let place = if self.stashes_off_chip(tensor) {
                    DataPlace::RemoteStash
                } else {
                    DataPlace::Stash
                };
                (tensor, self.ipu(stage), "/stash", place)
            }
            BufferKey::Remote { tensor, ipu } => (tensor, ipu, "", DataPlace::RemoteBuffer),
            BufferKey::HostInput { tensor, stage } | BufferKey::HostOutput { tensor, stage } => {
                (tensor, self.ipu(stage), "", DataPlace::Host)
            }
            BufferKey::IoTiles { tensor, stage } => {
                (tensor, self.ipu(stage), "/buffer", DataPlace::Tiles)
            }
            BufferKey::OutputSum { tensor, ipu } => (tensor, ipu, "/sum", DataPlace::Tiles),
        };
        let entries = match key {
            BufferKey::Stash { stage, .. } => self.schedule.stash_depths[stage],
            _ => 1,
        };
        let original =
            matches!(key, BufferKey::Tensor(TensorBuffer { part: TensorBufferKind::Original, .. }));
        let role = self.graph.tensor(tensor).role;
        let synthetic =
            role == TensorRole::Input && self.spec.options.host.loader == DataLoaderMode::Synthetic;
        let kept = role.is_persistent() || synthetic;
        let filled = match key {
            BufferKey::Remote { .. } | BufferKey::OutputSum { .. } => true,
            BufferKey::HostInput { .. } => true,
            _ => original && kept && !self.is_off_chip(tensor),
        };
        DataBuffer {
            name: format!("{}{suffix}", self.graph.tensor(tensor).name),
            place,
            ipu,
            entries,
            persistent: kept || matches!(key, BufferKey::OutputSum { .. }),
            filled,
        }
    }
}

/// The first program of a sequence that is no sync with the host.
pub(super) fn first_leaf(items: &[FragmentItem]) -> Option<ProgramId> {
    items.iter().find_map(|item| match item {
        FragmentItem::Leaf(program) => Some(*program),
        FragmentItem::IoStream { steps, .. } => steps.first().copied(),
        FragmentItem::Loop { body, .. } => first_leaf(body),
        FragmentItem::HostSync { .. } | FragmentItem::WaitForIo(_) => None,
    })
}

/// The last program of a sequence that is no sync with the host.
pub(super) fn last_leaf(items: &[FragmentItem]) -> Option<ProgramId> {
    items.iter().rev().find_map(|item| match item {
        FragmentItem::Leaf(program) => Some(*program),
        FragmentItem::IoStream { steps, .. } => steps.last().copied(),
        FragmentItem::Loop { body, .. } => last_leaf(body),
        FragmentItem::HostSync { .. } | FragmentItem::WaitForIo(_) => None,
    })
}
