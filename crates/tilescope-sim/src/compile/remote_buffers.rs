//! Tensors in streaming memory: loaded when they are used, stored when they have changed.

use super::data_flow::BufferKey;
use super::fragments::ProgramBuilder;
use super::program_tables::{FragmentItem, LeafProgramCost};
use super::tensor_analysis::{TensorBuffer, TensorBufferKind};
use super::transfers::{external_sync, io_mapping};
use crate::cost_constants::{REMOTE_BEGIN_CYCLES, REMOTE_END_CYCLES};
use crate::poplar::work::{OperationWork, OperationWorkItem};
use crate::poplar::{code_bytes, exchange};
use crate::shape::{TensorId, TensorRole};
use tilescope_report::units::{Bytes, Cycles, IpuId, ProgramId, TileRuns};
use tilescope_report::{
    MemoryCategory, ProgramKind, ProgramNode, StreamEndpoint, TileTraffic, TrainingPass,
};

/// What one copy between an IPU and streaming memory moves.
#[derive(Clone, Debug)]
pub(super) struct RemoteTransfer {
    /// The tensor.
    pub name: String,
    /// Bytes on each tile.
    pub bytes: TileRuns<Bytes>,
    pub from: BufferKey,
    pub to: BufferKey,
}

impl ProgramBuilder<'_> {
    /// Copies between an IPU and streaming memory that follow each other: one exchange where that is
    /// allowed, with a sync and a begin, the transfers, and an end. Where the I/O tiles do the
    /// copying, each is an exchange of its own, and there is one between the tiles besides.
    pub(super) fn remote_copies(
        &mut self,
        ipu: IpuId,
        copies: &[RemoteTransfer],
        load: bool,
        use_io_tiles: bool,
    ) -> Vec<FragmentItem> {
        let mut items = Vec::new();
        if use_io_tiles {
            for copy in copies {
                items.extend(self.copy_through_io_tiles(ipu, copy, load));
            }
            return items;
        }
        let most = if self.spec.options.merge_exchange { copies.len().max(1) } else { 1 };
        for merged in copies.chunks(most) {
            items.extend(self.remote_stream(ipu, merged, load));
        }
        items
    }

    /// A copy by the I/O tiles. Compute tiles wait for what is loaded, and work on while it is stored.
    fn copy_through_io_tiles(
        &mut self,
        ipu: IpuId,
        copy: &RemoteTransfer,
        load: bool,
    ) -> Vec<FragmentItem> {
        let io_tiles = self.spec.options.num_io_tiles;
        let mapping = io_mapping(self.lowering.tiles, io_tiles, copy.bytes.total());
        let on_io = RemoteTransfer { bytes: mapping.clone(), ..copy.clone() };
        let mut items = Vec::new();
        let wait = FragmentItem::WaitForIo(ipu);
        if load {
            let (sync, steps) = self.remote_exchange(ipu, std::slice::from_ref(&on_io), load);
            items.extend([FragmentItem::IoStream { sync, steps, ipu }, wait]);
            items.extend(self.inter_tileset_copy(&copy.name, ipu, &mapping, &copy.bytes));
        } else {
            items.push(wait);
            items.extend(self.inter_tileset_copy(&copy.name, ipu, &copy.bytes, &mapping));
            let (sync, steps) = self.remote_exchange(ipu, std::slice::from_ref(&on_io), load);
            items.push(FragmentItem::IoStream { sync, steps, ipu });
        }
        self.note_flow(&items, &[copy.from], &[copy.to]);
        items
    }

    /// An exchange between compute tiles and I/O tiles.
    pub(super) fn inter_tileset_copy(
        &mut self,
        name: &str,
        ipu: IpuId,
        from: &TileRuns<Bytes>,
        to: &TileRuns<Bytes>,
    ) -> Vec<FragmentItem> {
        let tiles = self.tables.tiles_per_ipu;
        let speed = self.lowering.exchange_speed();
        let phase = exchange::relayout("interTilesetCopy", from, to, false, tiles, speed);
        let items = phase.into_iter().map(OperationWorkItem::Phase).collect();
        let work = OperationWork { items, temporaries: Vec::new() };
        self.tables.work(None, name, ipu, &work).items
    }

    /// Transfers of one exchange by the compute tiles.
    fn remote_stream(
        &mut self,
        ipu: IpuId,
        copies: &[RemoteTransfer],
        load: bool,
    ) -> Vec<FragmentItem> {
        if copies.is_empty() {
            return Vec::new();
        }
        let (program, steps) = self.remote_exchange(ipu, copies, load);
        for (copy, step) in copies.iter().zip(&steps[1..]) {
            // A transfer by itself is there when the exchange is over.
            let last = if copies.len() == 1 { steps[steps.len() - 1] } else { *step };
            self.note_flow_between(*step, last, &[copy.from], &[copy.to]);
        }
        let sync = FragmentItem::HostSync { program, ipu };
        [sync].into_iter().chain(steps.into_iter().map(FragmentItem::Leaf)).collect()
    }

    /// The sync of an exchange, and its steps: a begin, each transfer, an end.
    fn remote_exchange(
        &mut self,
        ipu: IpuId,
        copies: &[RemoteTransfer],
        load: bool,
    ) -> (ProgramId, Vec<ProgramId>) {
        debug_assert!(!copies.is_empty(), "an exchange moves something");
        let sync = external_sync(&mut self.tables);
        let (begin, end) = (ProgramKind::StreamCopyBegin, ProgramKind::StreamCopyEnd);
        let mut steps =
            vec![self.remote_step(begin, ipu, &copies[0], load, REMOTE_BEGIN_CYCLES.cycles())];
        for copy in copies {
            let rate = self.system.remote_bytes_per_cycle;
            let cycles = Cycles::from_f64((copy.bytes.total().as_f64() / rate).ceil());
            steps.push(self.remote_step(ProgramKind::StreamCopyMid, ipu, copy, load, cycles));
        }
        let last = &copies[copies.len() - 1];
        steps.push(self.remote_step(end, ipu, last, load, REMOTE_END_CYCLES.cycles()));
        (sync, steps)
    }

    /// A step of an exchange with streaming memory; data move in the middle of it.
    fn remote_step(
        &mut self,
        kind: ProgramKind,
        ipu: IpuId,
        copy: &RemoteTransfer,
        load: bool,
        cycles: Cycles,
    ) -> ProgramId {
        let RemoteTransfer { name, bytes, .. } = copy;
        let name = format!("{name}/{}", if load { "remoteLoad" } else { "remoteStore" });
        let moves = kind == ProgramKind::StreamCopyMid;
        let moved = |here: bool| if moves && here { bytes.total() } else { Bytes::ZERO };
        let cost = LeafProgramCost {
            bytes_in: moved(load),
            bytes_out: moved(!load),
            ..super::program_tables::whole_ipu_cost(ipu, cycles, bytes.tile_count())
        };
        let stream = StreamEndpoint::RemoteBuffer;
        let program = ProgramNode { ipu: Some(ipu), stream, ..ProgramNode::new(kind, &name) };
        let id = self.tables.push_leaf_with_cost(program, cost, bytes);
        if moves {
            self.remote_traffic(id, ipu, bytes, load);
        }
        id
    }

    /// Notes what the tiles send to or receive from streaming memory, and its code.
    fn remote_traffic(
        &mut self,
        program: ProgramId,
        ipu: IpuId,
        bytes: &TileRuns<Bytes>,
        load: bool,
    ) {
        let target = self.tables.kind;
        // Equal copies share code: their buffers are rows of one, found by an offset.
        let known = self.tables.code_exists_or_insert(ipu, &format!("{load} {bytes:?}"));
        let traffic = bytes.map(|bytes| {
            let (bytes_in, bytes_out) =
                if load { (*bytes, Bytes::ZERO) } else { (Bytes::ZERO, *bytes) };
            let mut tile = TileTraffic { bytes_in, bytes_out, ..TileTraffic::default() };
            tile.code_bytes =
                if known { Bytes::ZERO } else { code_bytes::host_code_bytes(&tile, target) };
            tile
        });
        self.tables.traffic(program, ipu, traffic, MemoryCategory::HostExchangeCode);
    }

    /// Copies kept tensors from or to streaming memory, and keeps them alive meanwhile.
    pub(super) fn remote_tensor_copies(
        &mut self,
        tensors: &[TensorId],
        ipu: IpuId,
        load: bool,
    ) -> Vec<FragmentItem> {
        let uses_io_tiles = |tensor: &TensorId| {
            let location = self.location(self.graph.tensor(*tensor).role);
            location.is_some_and(|location| location.use_io_tiles)
        };
        let mut items = Vec::new();
        let runs: Vec<(bool, &[TensorId])> = tensors
            .chunk_by(|a, b| uses_io_tiles(a) == uses_io_tiles(b))
            .map(|run| (uses_io_tiles(&run[0]), run))
            .collect();
        for (io, run) in runs {
            let first = self.tables.next_step();
            let copies: Vec<RemoteTransfer> =
                run.iter().map(|tensor| self.kept_tensor_transfer(*tensor, ipu, load)).collect();
            let copied = self.remote_copies(ipu, &copies, load, io);
            for tensor in run {
                let buffer =
                    TensorBuffer { tensor: *tensor, ipu, part: TensorBufferKind::Original };
                self.lifetimes.extend_to(buffer, first..self.tables.next_step());
                if !load {
                    self.note_free(&copied, &[BufferKey::Tensor(buffer)]);
                }
            }
            items.extend(copied);
        }
        items
    }

    fn kept_tensor_transfer(&mut self, tensor: TensorId, ipu: IpuId, load: bool) -> RemoteTransfer {
        let part = TensorBufferKind::Original;
        let on_tiles = BufferKey::Tensor(TensorBuffer { tensor, ipu, part });
        let remote = BufferKey::Remote { tensor, ipu };
        let (from, to) = if load { (remote, on_tiles) } else { (on_tiles, remote) };
        let name = self.graph.tensor(tensor).name.clone();
        RemoteTransfer { name, bytes: self.bytes(tensor), from, to }
    }

    /// Whether a tensor is a constant of the program, as PopART makes the initialised tensors of an
    /// inference (willow/src/ir.cpp, registerInputTensors).
    pub(super) fn is_constant(&self, role: TensorRole) -> bool {
        self.spec.options.constant_weights && role == TensorRole::Parameter
    }

    /// Code of the programs that bring kept tensors from the host before the first run, and what
    /// training changed back after the last one. What lives in streaming memory is there already,
    /// and constants come with the program.
    pub(super) fn upload_code(&mut self) {
        let target = self.tables.kind;
        let graph = self.graph;
        let tensor_buffers: Vec<TensorBuffer> =
            self.lifetimes.iter().map(|(tensor_buffer, ..)| tensor_buffer).collect();
        for tensor_buffer in tensor_buffers {
            let role = graph.tensor(tensor_buffer.tensor).role;
            if self.is_constant(role)
                || !matches!(role, TensorRole::Parameter | TensorRole::OptimizerState)
                || self.is_off_chip(tensor_buffer.tensor)
            {
                continue;
            }
            for (range, bytes) in
                self.bytes(tensor_buffer.tensor).shifted(self.offset(tensor_buffer.ipu)).iter()
            {
                let bytes_out = if self.spec.model.training { *bytes } else { Bytes::ZERO };
                let tile = TileTraffic { bytes_in: *bytes, bytes_out, ..TileTraffic::default() };
                let code_bytes = code_bytes::host_code_bytes(&tile, target);
                for tile in range.iter() {
                    self.tables.code.add(MemoryCategory::HostExchangeCode, tile, code_bytes);
                }
            }
        }
    }

    /// Off-chip weights that a stage reads in a pass.
    fn weights(&self, stage: usize, pass: TrainingPass) -> Vec<TensorId> {
        let mine = self.graph.nodes.iter().filter(|node| {
            let again = pass == TrainingPass::Backward && node.pass == TrainingPass::Forward;
            self.placement.runs(stage, node.block)
                && (node.pass == pass || again && !self.tensors.recompute_nodes(stage).is_empty())
        });
        let mut found: Vec<TensorId> = mine
            .flat_map(|node| node.inputs.iter().copied())
            .filter(|tensor| self.graph.tensor(*tensor).role == TensorRole::Parameter)
            .filter(|tensor| self.is_off_chip(*tensor))
            .collect();
        found.sort_unstable();
        found.dedup();
        found
    }

    /// Off-chip weights that a stage has to load for a pass: what its forward pass loaded is still
    /// there where it goes back at once.
    pub(super) fn loaded_weights(&self, stage: usize, pass: TrainingPass) -> Vec<TensorId> {
        let mut weights = self.weights(stage, pass);
        if pass == TrainingPass::Backward && self.tensors.goes_back_at_once(stage) {
            let there = self.weights(stage, TrainingPass::Forward);
            weights.retain(|weight| !there.contains(weight));
        }
        for earlier in self.placement.earlier_steps(stage, pass) {
            let there = self.weights(earlier, pass);
            weights.retain(|weight| !there.contains(weight));
        }
        weights
    }

    /// Weights from streaming memory stay until the pass is over, or the one that follows at once, and
    /// over all steps of a phase that read them.
    pub(super) fn release_remote_weights(
        &mut self,
        stage: usize,
        pass: TrainingPass,
        items: &[FragmentItem],
    ) {
        if pass == TrainingPass::Update {
            return;
        }
        let ipu = self.ipu(stage);
        let end = self.tables.next_step();
        let mut weights = self.weights(stage, pass);
        if self.tensors.goes_back_at_once(stage) {
            match pass {
                TrainingPass::Forward if self.spec.model.training => {
                    let later = self.weights(stage, TrainingPass::Backward);
                    weights.retain(|weight| !later.contains(weight));
                }
                _ => {}
            }
        }
        for later in self.placement.later_steps(stage, pass) {
            let still_read = self.weights(later, pass);
            weights.retain(|weight| !still_read.contains(weight));
        }
        for tensor in weights {
            let tensor_buffer = TensorBuffer { tensor, ipu, part: TensorBufferKind::Original };
            self.lifetimes.keep_over(tensor_buffer, end.saturating_sub(1)..end);
            self.note_free(items, &[BufferKey::Tensor(tensor_buffer)]);
        }
    }
}
