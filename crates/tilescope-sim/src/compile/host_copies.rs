//! Copies between the host and an IPU.

use super::data_flow::{BufferKey, first_leaf, last_leaf};
use super::fragments::{ProgramBuilder, UnplacedVariable};
use super::program_tables::{FragmentItem, ProgramTables};
use super::streamed_tensors::{StreamedTensor, is_floating};
use super::tensor_analysis::TensorBuffer;
use super::transfers::{external_sync, io_mapping};
use crate::graph::{GraphNode, InputExchange};
use crate::poplar::code_bytes;
use crate::poplar::work::{MemoryConstraint, OperationWork, OperationWorkItem, WorkPhase};
use crate::popops::elementwise::{self, BinaryOpType, ElementwiseOp};
use crate::shape::{TensorId, TensorRole};
use crate::spec::{DataLoaderMode, OutputMode, OverlapIo};
use tilescope_report::units::{Bytes, IpuId, ProgramId, TileRuns};
use tilescope_report::{MemoryCategory, ProgramKind, ProgramNode, TileTraffic, TrainingPass};

/// Which tiles do a copy with the host, and what it may happen beside.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HostRoute {
    /// The I/O tiles, not those that compute.
    pub io_tiles: bool,
    /// The compute that it overlaps with.
    pub overlap: OverlapIo,
}

impl HostRoute {
    /// By the compute tiles, when it is needed.
    const PLAIN: Self = Self { io_tiles: false, overlap: OverlapIo::None };
}

/// A copy between the host and one IPU.
#[derive(Clone, Debug)]
pub struct HostStreamCopy {
    /// Stage on that IPU.
    pub stage: usize,
    /// IPU of the replica.
    pub ipu: IpuId,
    /// The sync before it; exchanges that are merged share one.
    pub sync: ProgramId,
    /// The step of the handshake before the transfer.
    pub begin: ProgramId,
    /// The step of the transfer, by which copies are told apart.
    pub transfer: ProgramId,
    /// The step that ends it.
    pub end: ProgramId,
    /// Bytes to the IPU.
    pub bytes_in: Bytes,
    /// Bytes from the IPU.
    pub bytes_out: Bytes,
    /// Tiles that take part.
    pub active_tiles: u32,
    /// Which tiles copy, and when.
    pub route: HostRoute,
    /// What it brings or sends for each micro-batch; none for copies that control the run.
    pub tensor: Option<StreamedTensor>,
    /// What the compute tiles do with it: behind a copy from the host, before one to the host.
    pub tile_items: Vec<FragmentItem>,
    /// Adds a result to the sum that is sent at the end.
    pub sum_items: Vec<FragmentItem>,
}

impl HostStreamCopy {
    /// Its programs in their order.
    pub(crate) fn programs(&self) -> [ProgramId; 4] {
        [self.sync, self.begin, self.transfer, self.end]
    }
}

/// An output that is ready to be sent.
struct PreparedOutput {
    tensor: TensorId,
    buffer: TensorBuffer,
    /// Liveness step of the first thing that was done with it.
    first: u32,
    /// Bytes on the tiles that send it.
    leaving: TileRuns<Bytes>,
    on_tiles: Vec<FragmentItem>,
    sum: Vec<FragmentItem>,
}

impl ProgramBuilder<'_> {
    /// The copies from the host that feed a stage.
    pub(crate) fn host_inputs(&mut self, stage: usize) -> Vec<HostStreamCopy> {
        let graph = self.graph;
        if self.spec.options.host.loader == DataLoaderMode::Synthetic {
            return Vec::new();
        }
        let inputs: Vec<TensorId> = graph
            .with_role(TensorRole::Input)
            .filter(|tensor| self.is_fed(stage, *tensor))
            .collect();
        let most = self.merged_copies(inputs.len());
        let alike = inputs.chunk_by(|a, b| self.input_route(*a) == self.input_route(*b));
        let runs: Vec<&[TensorId]> = alike.flat_map(|run| run.chunks(most)).collect();
        runs.into_iter().flat_map(|run| self.host_inputs_of(run, stage)).collect()
    }

    /// Whether the host sends an input to a stage: to those that run its block, and to those that
    /// read it at the same time. Others get it from them.
    fn is_fed(&self, stage: usize, input: TensorId) -> bool {
        let block = self.graph.tensor(input).block;
        if self.placement.runs(stage, block) {
            return true;
        }
        let reads = |node: &GraphNode| {
            node.inputs.contains(&input) && self.placement.runs(stage, node.block)
        };
        self.placement.work_together(stage, self.placement.stage(block))
            && self.graph.nodes.iter().any(reads)
    }

    /// How copies come that the model says nothing of, and how results go.
    fn common_route(&self) -> HostRoute {
        let options = &self.spec.options;
        HostRoute { io_tiles: options.num_io_tiles > 0, overlap: options.overlap_io }
    }

    /// How an input comes.
    fn input_route(&self, tensor: TensorId) -> HostRoute {
        let common = self.common_route();
        let Some(stated) = self.graph.input_settings.get(&tensor) else { return common };
        let overlap = match stated.exchange {
            None => common.overlap,
            Some(InputExchange::JustInTime) => OverlapIo::None,
            Some(InputExchange::OverlapInnerLoop) => OverlapIo::InnerLoop,
            Some(InputExchange::OverlapLoops | InputExchange::OverlapStep) => OverlapIo::Loops,
        };
        // Without I/O tiles nobody could do it, and nobody else could do it beside compute.
        let io_tiles = common.io_tiles && stated.io_tiles.unwrap_or(true);
        HostRoute { io_tiles, overlap: if io_tiles { overlap } else { OverlapIo::None } }
    }

    /// How many of some neighbouring copies are one exchange.
    fn merged_copies(&self, copies: usize) -> usize {
        if self.spec.options.merge_exchange { copies.max(1) } else { 1 }
    }

    /// The copies to the host of what a stage makes.
    pub(crate) fn host_outputs(&mut self, stage: usize) -> Vec<HostStreamCopy> {
        let graph = self.graph;
        if self.spec.options.host.loader == DataLoaderMode::Synthetic {
            return Vec::new();
        }
        let outputs: Vec<TensorId> = graph
            .outputs
            .iter()
            .copied()
            .filter(|tensor| self.is_returned(*tensor))
            .filter(|tensor| self.placement.stage(graph.tensor(*tensor).block) == stage)
            .collect();
        let most = self.merged_copies(outputs.len());
        outputs.chunks(most).flat_map(|run| self.host_outputs_of(run, stage)).collect()
    }

    /// Copies from the host that are one exchange, and what the tiles do behind it.
    fn host_inputs_of(&mut self, tensors: &[TensorId], stage: usize) -> Vec<HostStreamCopy> {
        let ipu = self.ipu(stage);
        let first = self.tables.next_step();
        let arriving: Vec<(String, TileRuns<Bytes>)> = tensors
            .iter()
            .map(|tensor| {
                let landed = self.landed(*tensor);
                let route = self.input_route(*tensor);
                ("copyFromHost".to_string(), self.on_io_tiles(route, &landed).unwrap_or(landed))
            })
            .collect();
        let route = tensors.first().map_or(HostRoute::PLAIN, |tensor| self.input_route(*tensor));
        let mut copies = stream_copies(&mut self.tables, stage, ipu, &arriving, true);
        copies.iter_mut().for_each(|copy| copy.route = route);
        for (copy, tensor) in copies.iter_mut().zip(tensors) {
            self.arrange_input(copy, *tensor, first);
        }
        copies
    }

    /// Bytes of an input on each tile, in the type in which it crosses.
    fn landed(&mut self, tensor: TensorId) -> TileRuns<Bytes> {
        let wire = self.input_element_type(tensor);
        let elements = self.lowering.layout_or_linear(tensor).elements;
        elements.map(|count| *count * wire.bytes())
    }

    /// The same bytes on the I/O tiles, where those copy.
    fn on_io_tiles(&self, route: HostRoute, bytes: &TileRuns<Bytes>) -> Option<TileRuns<Bytes>> {
        let io_tiles = self.spec.options.num_io_tiles;
        route.io_tiles.then(|| io_mapping(self.lowering.tiles, io_tiles, bytes.total()))
    }

    /// Brings an input to where the model wants it, in its type and scaled, once the exchange is over
    /// that began at liveness step `first`.
    fn arrange_input(&mut self, copy: &mut HostStreamCopy, tensor: TensorId, first: u32) {
        let (stage, ipu) = (copy.stage, copy.ipu);
        let (wire, own) =
            (self.input_element_type(tensor), self.lowering.tensor_type(tensor).dtype);
        let elements = self.lowering.layout_or_linear(tensor).elements;
        let landed = self.landed(tensor);
        copy.tensor = self.streamed(tensor, wire);
        let name = self.graph.tensor(tensor).name.clone();
        if let Some(mapping) = self.on_io_tiles(copy.route, &landed) {
            copy.tile_items.extend(self.inter_tileset_copy(&name, ipu, &mapping, &landed));
            self.keep_buffer(&name, ipu, &mapping, None);
        }
        let mut phases: Vec<WorkPhase> = Vec::new();
        if wire != own {
            phases.push(elementwise::cast("Cast", wire, own, &elements));
        }
        if self.spec.options.normalise_on_ipu && is_floating(own) {
            for (part, operation) in
                [("mean", BinaryOpType::Subtract), ("scale", BinaryOpType::Multiply)]
            {
                let name = format!("normalise/{part}");
                phases.push(elementwise::in_place(
                    &name,
                    ElementwiseOp::Scalar(operation),
                    own,
                    &elements,
                ));
            }
        }
        let work = OperationWork {
            items: phases.into_iter().map(OperationWorkItem::Phase).collect(),
            temporaries: Vec::new(),
        };
        copy.tile_items.extend(self.tables.work(None, &name, ipu, &work).items);
        let end = self.tables.next_step();
        if wire != own {
            self.keep_buffer(&name, ipu, &landed, Some(first..end));
        }
        let tensor_buffer = self.tensors.buffer(tensor, stage, ipu, TrainingPass::Forward);
        self.lifetimes.extend_to(tensor_buffer, first..end);
        let host = BufferKey::HostInput { tensor, stage };
        self.note_host_input(copy, host, BufferKey::Tensor(tensor_buffer));
    }

    /// Notes what a copy from the host brings: to the I/O tiles, where there are some, and from
    /// there to the compute tiles.
    fn note_host_input(&mut self, copy: &HostStreamCopy, host: BufferKey, tensor: BufferKey) {
        let mid = copy.transfer;
        match host {
            BufferKey::HostInput { tensor: id, stage } if copy.route.io_tiles => {
                let io = BufferKey::IoTiles { tensor: id, stage };
                self.note_flow_between(mid, mid, &[host], &[io]);
                self.note_flow(&copy.tile_items, &[io], &[tensor]);
            }
            _ => {
                let last = last_leaf(&copy.tile_items).unwrap_or(mid);
                self.note_flow_between(mid, last, &[host], &[tensor]);
            }
        }
    }

    /// Copies to the host that are one exchange, and what the tiles do before it.
    fn host_outputs_of(&mut self, tensors: &[TensorId], stage: usize) -> Vec<HostStreamCopy> {
        let ipu = self.ipu(stage);
        let prepared: Vec<PreparedOutput> =
            tensors.iter().map(|tensor| self.prepare_output(*tensor, stage)).collect();
        let leaving: Vec<(String, TileRuns<Bytes>)> = prepared
            .iter()
            .map(|output| {
                let name = &self.graph.tensor(output.tensor).name;
                (format!("{name}/copyToHost"), output.leaving.clone())
            })
            .collect();
        let route = self.common_route();
        let mut copies = stream_copies(&mut self.tables, stage, ipu, &leaving, false);
        copies.iter_mut().for_each(|copy| copy.route = route);
        for (copy, output) in copies.iter_mut().zip(prepared) {
            copy.tensor = self.streamed(output.tensor, self.output_element_type(output.tensor));
            self.note_host_output(copy, &output);
            self.lifetimes.extend_to(output.buffer, output.first..self.tables.next_step());
            (copy.tile_items, copy.sum_items) = (output.on_tiles, output.sum);
        }
        copies
    }

    /// What the tiles do with an output before it is sent.
    fn prepare_output(&mut self, tensor: TensorId, stage: usize) -> PreparedOutput {
        let ipu = self.ipu(stage);
        let (wire, own) =
            (self.output_element_type(tensor), self.lowering.tensor_type(tensor).dtype);
        let elements = self.lowering.layout_or_linear(tensor).elements;
        let bytes = elements.map(|count| *count * wire.bytes());
        let name = self.graph.tensor(tensor).name.clone();
        let first = self.tables.next_step();
        let buffer = self.tensors.buffer(tensor, stage, ipu, TrainingPass::Forward);
        let sum = self.sum_of_outputs(tensor, ipu, BufferKey::Tensor(buffer));
        let mut on_tiles = Vec::new();
        if wire != own {
            let phase = elementwise::cast("Cast", own, wire, &elements);
            let items = vec![OperationWorkItem::Phase(phase)];
            let work = OperationWork { items, temporaries: Vec::new() };
            on_tiles = self.tables.work(None, &name, ipu, &work).items;
            self.keep_buffer(&format!("{name}/cast"), ipu, &bytes, None);
        }
        let mut leaving = bytes.clone();
        if let Some(mapping) = self.on_io_tiles(self.common_route(), &bytes) {
            on_tiles.extend(self.inter_tileset_copy(&name, ipu, &bytes, &mapping));
            self.keep_buffer(&name, ipu, &mapping, None);
            leaving = mapping;
        }
        PreparedOutput { tensor, buffer, first, leaving, on_tiles, sum }
    }

    /// Notes what a copy to the host takes: from the I/O tiles, where there are some.
    fn note_host_output(&mut self, copy: &HostStreamCopy, output: &PreparedOutput) {
        let PreparedOutput { tensor, buffer, on_tiles, sum, .. } = output;
        let (tensor, stage, mid) = (*tensor, copy.stage, copy.transfer);
        let sent = match sum.is_empty() {
            true => BufferKey::Tensor(*buffer),
            false => BufferKey::OutputSum { tensor, ipu: copy.ipu },
        };
        let host = BufferKey::HostOutput { tensor, stage };
        if copy.route.io_tiles {
            let io = BufferKey::IoTiles { tensor, stage };
            self.note_flow(on_tiles, &[sent], &[io]);
            self.note_flow_between(mid, mid, &[io], &[host]);
        } else {
            let start = first_leaf(on_tiles).unwrap_or(mid);
            self.note_flow_between(start, mid, &[sent], &[host]);
        }
    }

    /// Adds a result to its sum on the IPU, where only sums are sent.
    fn sum_of_outputs(
        &mut self,
        tensor: TensorId,
        ipu: IpuId,
        made: BufferKey,
    ) -> Vec<FragmentItem> {
        if self.spec.output_mode() != OutputMode::Sum {
            return Vec::new();
        }
        let name = self.graph.tensor(tensor).name.clone();
        let dtype = self.lowering.tensor_type(tensor).dtype;
        let elements = self.lowering.layout_or_linear(tensor).elements;
        let phase = elementwise::in_place(
            "sum/Add",
            ElementwiseOp::Binary(BinaryOpType::Add),
            dtype,
            &elements,
        );
        let work =
            OperationWork { items: vec![OperationWorkItem::Phase(phase)], temporaries: Vec::new() };
        let bytes = self.bytes(tensor);
        self.keep_buffer(&format!("{name}/sum"), ipu, &bytes, None);
        let items = self.tables.work(None, &name, ipu, &work).items;
        let sum = BufferKey::OutputSum { tensor, ipu };
        self.note_flow(&items, &[made, sum], &[sum]);
        items
    }

    /// A buffer that belongs to a copy, live for some steps or always.
    fn keep_buffer(
        &mut self,
        name: &str,
        ipu: IpuId,
        bytes: &TileRuns<Bytes>,
        lifetime: Option<std::ops::Range<u32>>,
    ) {
        self.unplaced_variables.push(UnplacedVariable {
            name: format!("{name}/buffer"),
            category: MemoryCategory::Variable,
            operation: None,
            shape: String::new(),
            lifetime,
            place: MemoryConstraint::Any,
            bytes: bytes.shifted(self.offset(ipu)),
        });
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

/// Adds copies between the host and one IPU that are one exchange: they share their sync, a begin
/// that has the name of the first and an end that has the name of the last.
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
    let sync = external_sync(tables);
    let step = |tables: &mut ProgramTables, kind, name: &str| {
        tables.push_leaf(ProgramNode { ipu: Some(ipu), ..ProgramNode::new(kind, name) })
    };
    let begin = step(tables, ProgramKind::StreamCopyBegin, first);
    let mids: Vec<ProgramId> = copies
        .iter()
        .map(|(name, bytes)| {
            let mid = step(tables, ProgramKind::StreamCopyMid, name);
            stream_traffic(tables, mid, ipu, bytes, to_ipu);
            mid
        })
        .collect();
    let end = step(tables, ProgramKind::StreamCopyEnd, last);
    let copy = |((_, bytes), mid): (&(String, TileRuns<Bytes>), ProgramId)| {
        let total = bytes.total();
        HostStreamCopy {
            stage,
            ipu,
            sync,
            begin,
            transfer: mid,
            end,
            bytes_in: if to_ipu { total } else { Bytes::ZERO },
            bytes_out: if to_ipu { Bytes::ZERO } else { total },
            active_tiles: bytes.tile_count(),
            route: HostRoute::PLAIN,
            tensor: None,
            tile_items: Vec::new(),
            sum_items: Vec::new(),
        }
    };
    copies.iter().zip(mids).map(copy).collect()
}

/// Notes what the tiles send to the host or receive from it, and its code.
fn stream_traffic(
    tables: &mut ProgramTables,
    program: ProgramId,
    ipu: IpuId,
    bytes: &TileRuns<Bytes>,
    to_ipu: bool,
) {
    let kind = tables.kind;
    let tiles = bytes.map(|bytes| {
        let (bytes_in, bytes_out) =
            if to_ipu { (*bytes, Bytes::ZERO) } else { (Bytes::ZERO, *bytes) };
        // What comes from the host was sent by no tile, what goes there is received by none.
        let mut tile = TileTraffic { bytes_in, bytes_out, ..TileTraffic::default() };
        tile.code_bytes = code_bytes::host_code_bytes(&tile, kind);
        tile
    });
    tables.traffic(program, ipu, tiles, MemoryCategory::HostExchangeCode);
}
