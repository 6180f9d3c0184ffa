//! Copies between the host and an IPU.

use super::data_flow::BufferKey;
use super::fragment_items::{FragmentItem, first_leaf, last_leaf};
use super::program_builder::ProgramBuilder;
use super::program_tables::ProgramTables;
use super::streamed_tensors::{HostRoute, StreamedTensor, is_floating};
use super::tensor_analysis::TensorBuffer;
use crate::poplar::work::{OperationWork, WorkPhase};
use crate::popops::elementwise::{self, BinaryOpType, ElementwiseOp};
use crate::shape::{TensorId, TensorRole};
use crate::specification::{DataLoaderMode, OutputMode};
use tilescope_report::units::{Bytes, IpuId, ProgramId, TileRuns};
use tilescope_report::{ProgramKind, ProgramNode, TrainingPass};

/// A copy between the host and one IPU.
#[derive(Clone, Debug)]
pub struct HostStreamCopy {
    /// The stage on that IPU.
    pub stage: usize,
    /// The IPU of the replica.
    pub ipu: IpuId,
    /// The sync before the copy. Merged exchanges share one.
    pub sync: ProgramId,
    /// The step of the handshake before the transfer.
    pub begin: ProgramId,
    /// The step of the transfer, which identifies the copy.
    pub transfer: ProgramId,
    /// The step that ends the copy.
    pub end: ProgramId,
    /// Bytes that the IPU receives.
    pub bytes_in: Bytes,
    /// Bytes that the IPU sends.
    pub bytes_out: Bytes,
    /// The number of tiles that take part.
    pub active_tiles: u32,
    /// The tiles that copy, and the time at which they do.
    pub route: HostRoute,
    /// The tensor that the copy transfers for each micro-batch. `None` for copies that control the
    /// run.
    pub tensor: Option<StreamedTensor>,
    /// The work of the compute tiles: after a copy from the host, before a copy to the host.
    pub tile_items: Vec<FragmentItem>,
    /// The steps that add a result to the sum that is sent at the end.
    pub sum_items: Vec<FragmentItem>,
}

impl HostStreamCopy {
    /// The four programs of the copy, in order.
    pub(crate) fn programs(&self) -> [ProgramId; 4] {
        [self.sync, self.begin, self.transfer, self.end]
    }
}

/// An output that is ready to be sent.
struct PreparedOutput {
    tensor: TensorId,
    buffers: Vec<TensorBuffer>,
    /// Liveness step of the first work on the output.
    first: u32,
    /// Bytes on the tiles that send the output.
    leaving: TileRuns<Bytes>,
    on_tiles: Vec<FragmentItem>,
    sum: Vec<FragmentItem>,
}

impl ProgramBuilder<'_> {
    /// Adds the copies from the host to a stage.
    pub(crate) fn host_inputs(&mut self, stage: usize) -> Vec<HostStreamCopy> {
        let graph = self.plan.graph;
        if self.plan.spec.options.host.loader == DataLoaderMode::Synthetic {
            return Vec::new();
        }
        let inputs: Vec<TensorId> = graph
            .with_role(TensorRole::Input)
            .filter(|tensor| self.plan.is_fed(stage, *tensor))
            .collect();
        let most = self.merged_copies(inputs.len());
        // All copies of an exchange use the same tiles at the same time, so routes do not mix.
        let alike = inputs.chunk_by(|a, b| self.plan.input_route(*a) == self.plan.input_route(*b));
        let runs: Vec<&[TensorId]> = alike.flat_map(|run| run.chunks(most)).collect();
        runs.into_iter().flat_map(|run| self.host_inputs_of(run, stage)).collect()
    }

    /// The number of neighbouring copies that form one exchange.
    pub(super) fn merged_copies(&self, copies: usize) -> usize {
        if self.plan.spec.options.merge_exchange { copies.max(1) } else { 1 }
    }

    /// Adds the copies of a stage's outputs to the host.
    pub(crate) fn host_outputs(&mut self, stage: usize) -> Vec<HostStreamCopy> {
        let graph = self.plan.graph;
        if self.plan.spec.options.host.loader == DataLoaderMode::Synthetic {
            return Vec::new();
        }
        let outputs: Vec<TensorId> = graph
            .outputs
            .iter()
            .copied()
            .filter(|tensor| self.plan.is_returned(*tensor))
            .filter(|tensor| self.plan.placement.stage(graph.tensor(*tensor).block) == stage)
            .collect();
        let most = self.merged_copies(outputs.len());
        outputs.chunks(most).flat_map(|run| self.host_outputs_of(run, stage)).collect()
    }

    /// Adds copies from the host that form one exchange, and the work of the tiles after it.
    fn host_inputs_of(&mut self, tensors: &[TensorId], stage: usize) -> Vec<HostStreamCopy> {
        let ipu = self.plan.ipu(stage);
        let first = self.tables.next_step();
        let arriving: Vec<(String, TileRuns<Bytes>)> = tensors
            .iter()
            .map(|tensor| {
                let landed = self.landed(*tensor);
                let route = self.plan.input_route(*tensor);
                ("copyFromHost".to_string(), self.on_io_tiles(route, &landed).unwrap_or(landed))
            })
            .collect();
        let route =
            tensors.first().map_or(HostRoute::PLAIN, |tensor| self.plan.input_route(*tensor));
        let mut copies = stream_copies(&mut self.tables, stage, ipu, &arriving, true);
        for copy in &mut copies {
            copy.route = route;
        }
        for (copy, tensor) in copies.iter_mut().zip(tensors) {
            self.arrange_input(copy, *tensor, first);
        }
        copies
    }

    /// Bytes of an input on each tile, in the type that is transferred.
    fn landed(&self, tensor: TensorId) -> TileRuns<Bytes> {
        let wire = self.plan.input_element_type(tensor);
        let elements = self.plan.elements(tensor);
        elements.map(|count| *count * wire.bytes())
    }

    /// The same bytes laid out on the I/O tiles, if the route uses them.
    fn on_io_tiles(&self, route: HostRoute, bytes: &TileRuns<Bytes>) -> Option<TileRuns<Bytes>> {
        if !route.io_tiles {
            return None;
        }
        Some(self.plan.io_mapping(bytes.total()))
    }

    /// Converts, scales and moves an input to its place in the model, after the exchange that began
    /// at liveness step `first`.
    fn arrange_input(&mut self, copy: &mut HostStreamCopy, tensor: TensorId, first: u32) {
        let stage = copy.stage;
        let ipu = copy.ipu;
        let plan = self.plan;
        let wire = plan.input_element_type(tensor);
        let own = plan.dtype(tensor);
        let elements = plan.elements(tensor);
        let landed = self.landed(tensor);
        copy.tensor = Some(plan.streamed(tensor, wire));
        let name = plan.name(tensor);
        if let Some(mapping) = self.on_io_tiles(copy.route, &landed) {
            copy.tile_items.extend(self.inter_tileset_copy(name, ipu, &mapping, &landed));
            // I/O tiles may fill the buffer beside any compute step, so it is always live.
            self.keep_buffer(name, ipu, &mapping, None);
        }
        let mut phases: Vec<WorkPhase> = Vec::new();
        if wire != own {
            phases.push(elementwise::cast("Cast", wire, own, elements));
        }
        // The cast comes first, because mean and scale apply to values in the type of the model.
        if self.plan.spec.options.normalise_on_ipu && is_floating(own) {
            for (part, operation) in
                [("mean", BinaryOpType::Subtract), ("scale", BinaryOpType::Multiply)]
            {
                let name = format!("normalise/{part}");
                let operator = ElementwiseOp::Scalar(operation);
                phases.push(elementwise::in_place(&name, operator, own, elements));
            }
        }
        let work = OperationWork::of_phases(phases);
        copy.tile_items.extend(self.tables.work(None, name, ipu, &work).items);
        let end = self.tables.next_step();
        if wire != own {
            // The data arrive in another type than that of the tensor, so they need memory of their
            // own until the cast.
            self.keep_buffer(name, ipu, &landed, Some(first..end));
        }
        let tensor_buffer =
            self.plan.tensors.owner_buffer(tensor, stage, ipu, TrainingPass::Forward);
        self.variables.lifetimes.extend_to(tensor_buffer, first..end);
        let host = BufferKey::HostInput { tensor, stage };
        self.note_host_input(copy, host, BufferKey::Tensor(tensor_buffer));
    }

    /// Records the data of a copy from the host: to the I/O tiles if the route uses them, and from
    /// there to the compute tiles.
    fn note_host_input(&mut self, copy: &HostStreamCopy, host: BufferKey, tensor: BufferKey) {
        let mid = copy.transfer;
        match host {
            BufferKey::HostInput { tensor: id, stage } if copy.route.io_tiles => {
                let io = BufferKey::IoTiles { tensor: id, stage };
                self.flows.note_between(mid, mid, &[host], &[io]);
                self.flows.note(&copy.tile_items, &[io], &[tensor]);
            }
            _ => {
                let last = last_leaf(&copy.tile_items).unwrap_or(mid);
                self.flows.note_between(mid, last, &[host], &[tensor]);
            }
        }
    }

    /// Adds copies to the host that form one exchange, and the work of the tiles before it.
    fn host_outputs_of(&mut self, tensors: &[TensorId], stage: usize) -> Vec<HostStreamCopy> {
        let ipu = self.plan.ipu(stage);
        let prepared: Vec<PreparedOutput> =
            tensors.iter().map(|tensor| self.prepare_output(*tensor, stage)).collect();
        let leaving: Vec<(String, TileRuns<Bytes>)> = prepared
            .iter()
            .map(|output| {
                let name = self.plan.name(output.tensor);
                (format!("{name}/copyToHost"), output.leaving.clone())
            })
            .collect();
        let route = self.plan.common_route();
        let mut copies = stream_copies(&mut self.tables, stage, ipu, &leaving, false);
        for copy in &mut copies {
            copy.route = route;
        }
        for (copy, output) in copies.iter_mut().zip(prepared) {
            let wire = self.plan.output_element_type(output.tensor);
            copy.tensor = Some(self.plan.streamed(output.tensor, wire));
            self.note_host_output(copy, &output);
            for buffer in &output.buffers {
                let end = self.tables.next_step();
                self.variables.lifetimes.extend_to(*buffer, output.first..end);
            }
            (copy.tile_items, copy.sum_items) = (output.on_tiles, output.sum);
        }
        copies
    }

    /// Adds the work that prepares an output before it is sent.
    fn prepare_output(&mut self, tensor: TensorId, stage: usize) -> PreparedOutput {
        let ipu = self.plan.ipu(stage);
        let plan = self.plan;
        let wire = plan.output_element_type(tensor);
        let own = plan.dtype(tensor);
        let name = plan.name(tensor);
        let elements = plan.elements(tensor);
        let bytes = elements.map(|count| *count * wire.bytes());
        let first = self.tables.next_step();
        let buffers: Vec<TensorBuffer> =
            plan.tensors.buffers(tensor, stage, ipu, TrainingPass::Forward).collect();
        let sum = self.sum_of_outputs(tensor, ipu, &buffers);
        let mut on_tiles = Vec::new();
        if wire != own {
            let phase = elementwise::cast("Cast", own, wire, elements);
            let work = OperationWork::of_phase(phase);
            on_tiles = self.tables.work(None, name, ipu, &work).items;
            self.keep_buffer(&format!("{name}/cast"), ipu, &bytes, None);
        }
        let mut leaving = bytes.clone();
        if let Some(mapping) = self.on_io_tiles(self.plan.common_route(), &bytes) {
            on_tiles.extend(self.inter_tileset_copy(name, ipu, &bytes, &mapping));
            self.keep_buffer(name, ipu, &mapping, None);
            leaving = mapping;
        }
        PreparedOutput { tensor, buffers, first, leaving, on_tiles, sum }
    }

    /// Records the data of a copy to the host, which leaves from the I/O tiles if the route uses
    /// them.
    fn note_host_output(&mut self, copy: &HostStreamCopy, output: &PreparedOutput) {
        let PreparedOutput { tensor, buffers, on_tiles, sum, .. } = output;
        let tensor = *tensor;
        let stage = copy.stage;
        let mid = copy.transfer;
        let sent: Vec<BufferKey> = if sum.is_empty() {
            buffers.iter().copied().map(BufferKey::Tensor).collect()
        } else {
            vec![BufferKey::OutputSum { tensor, ipu: copy.ipu }]
        };
        let host = BufferKey::HostOutput { tensor, stage };
        if copy.route.io_tiles {
            let io = BufferKey::IoTiles { tensor, stage };
            self.flows.note(on_tiles, &sent, &[io]);
            self.flows.note_between(mid, mid, &[io], &[host]);
        } else {
            let start = first_leaf(on_tiles).unwrap_or(mid);
            self.flows.note_between(start, mid, &sent, &[host]);
        }
    }

    /// Adds a result to its sum on the IPU, if only sums are sent.
    fn sum_of_outputs(
        &mut self,
        tensor: TensorId,
        ipu: IpuId,
        made: &[TensorBuffer],
    ) -> Vec<FragmentItem> {
        if self.plan.spec.output_mode() != OutputMode::Sum {
            return Vec::new();
        }
        let name = self.plan.name(tensor);
        let (dtype, elements) = self.plan.values(tensor);
        let operator = ElementwiseOp::Binary(BinaryOpType::Add);
        let work =
            OperationWork::of_phase(elementwise::in_place("sum/Add", operator, dtype, elements));
        let bytes = self.plan.bytes(tensor);
        self.keep_buffer(&format!("{name}/sum"), ipu, &bytes, None);
        let items = self.tables.work(None, name, ipu, &work).items;
        let sum = BufferKey::OutputSum { tensor, ipu };
        let made = made.iter().copied().map(BufferKey::Tensor);
        let read: Vec<BufferKey> = made.chain([sum]).collect();
        self.flows.note(&items, &read, &[sum]);
        items
    }

    /// Adds a buffer that belongs to a copy. It is live during some steps, or always.
    fn keep_buffer(
        &mut self,
        name: &str,
        ipu: IpuId,
        bytes: &TileRuns<Bytes>,
        lifetime: Option<std::ops::Range<u32>>,
    ) {
        let name = (format!("{name}/buffer"), String::new());
        self.variables.add(name, None, lifetime, ipu, bytes);
    }
}

/// Adds the sync and the three steps of a copy between the host and one IPU.
pub(crate) fn stream_copy(
    tables: &mut ProgramTables,
    name: &str,
    stage: usize,
    ipu: IpuId,
    bytes: &TileRuns<Bytes>,
    to_ipu: bool,
) -> HostStreamCopy {
    let copies = [(name.to_string(), bytes.clone())];
    let mut made = stream_copies(tables, stage, ipu, &copies, to_ipu);
    made.pop().expect("a copy for each name")
}

/// Adds copies between the host and one IPU that form one exchange. They share their sync, a begin
/// with the name of the first copy, and an end with the name of the last.
fn stream_copies(
    tables: &mut ProgramTables,
    stage: usize,
    ipu: IpuId,
    copies: &[(String, TileRuns<Bytes>)],
    to_ipu: bool,
) -> Vec<HostStreamCopy> {
    let (Some((first, _)), Some((last, _))) = (copies.first(), copies.last()) else {
        return Vec::new();
    };
    let sync = tables.external_sync();
    let step = |tables: &mut ProgramTables, kind, name: &str| {
        tables.push_leaf(ProgramNode { ipu: Some(ipu), ..ProgramNode::new(kind, name) })
    };
    let begin = step(tables, ProgramKind::StreamCopyBegin, first);
    let mids: Vec<ProgramId> = copies
        .iter()
        .map(|(name, bytes)| {
            let mid = step(tables, ProgramKind::StreamCopyMid, name);
            tables.host_traffic(mid, ipu, bytes, to_ipu, false);
            mid
        })
        .collect();
    let end = step(tables, ProgramKind::StreamCopyEnd, last);
    let mut made = Vec::new();
    for ((_, bytes), transfer) in copies.iter().zip(mids) {
        let total = bytes.total();
        made.push(HostStreamCopy {
            stage,
            ipu,
            sync,
            begin,
            transfer,
            end,
            bytes_in: if to_ipu { total } else { Bytes::ZERO },
            bytes_out: if to_ipu { Bytes::ZERO } else { total },
            active_tiles: bytes.tile_count(),
            route: HostRoute::PLAIN,
            tensor: None,
            tile_items: Vec::new(),
            sum_items: Vec::new(),
        });
    }
    made
}
