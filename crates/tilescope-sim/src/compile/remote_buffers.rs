//! Tensors in streaming memory: loaded when they are used, stored when they have changed.

use super::data_flow::BufferKey;
use super::fragments::ProgramBuilder;
use super::program_tables::{FragmentItem, LeafProgramCost};
use super::tensor_analysis::{TensorBuffer, TensorBufferKind};
use super::transfers::{external_sync, io_mapping};
use crate::graph::GraphNode;
use crate::poplar::work::{OperationWork, OperationWorkItem};
use crate::poplar::{code_bytes, exchange};
use crate::shape::{TensorId, TensorRole};
use tilescope_report::units::{Bytes, Cycles, IpuId, TileRuns};
use tilescope_report::{
    MemoryCategory, ProgramKind, ProgramNode, StreamEndpoint, TileTraffic, TrainingPass,
};

/// Cycles before the transfer of a copy that no callback on the host answers: the shortest
/// StreamCopyBegin of Graphcore's lightweight-profiling tutorial.
const REMOTE_BEGIN_CYCLES: Cycles = Cycles(155);

/// Cycles after it: the shortest StreamCopyEnd there.
const REMOTE_END_CYCLES: Cycles = Cycles(87);

impl ProgramBuilder<'_> {
    /// A copy between an IPU and a remote buffer: sync, begin, transfer, end; and an exchange where
    /// the I/O tiles do the copying.
    pub(super) fn remote_copy(
        &mut self,
        name: &str,
        ipu: IpuId,
        bytes: &TileRuns<Bytes>,
        load: bool,
        use_io_tiles: bool,
    ) -> Vec<FragmentItem> {
        let total = bytes.total();
        if !use_io_tiles {
            return self.remote_stream(name, ipu, bytes, load);
        }
        let mapping = io_mapping(self.lowering.tiles, self.spec.options.num_io_tiles, total);
        let mut items =
            if load { self.remote_stream(name, ipu, &mapping, load) } else { Vec::new() };
        let (from, to) = if load { (&mapping, bytes) } else { (bytes, &mapping) };
        items.extend(self.inter_tileset_copy(name, ipu, from, to));
        if !load {
            items.extend(self.remote_stream(name, ipu, &mapping, load));
        }
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

    fn remote_stream(
        &mut self,
        name: &str,
        ipu: IpuId,
        bytes: &TileRuns<Bytes>,
        load: bool,
    ) -> Vec<FragmentItem> {
        let name = format!("{name}/{}", if load { "remoteLoad" } else { "remoteStore" });
        let total = bytes.total();
        let tiles = bytes.tile_count();
        let (bytes_in, bytes_out) = if load { (total, Bytes::ZERO) } else { (Bytes::ZERO, total) };
        let cost = |cycles: Cycles, bytes_in: Bytes, bytes_out: Bytes| LeafProgramCost {
            ipu,
            cycles,
            fastest_tile_cycles: cycles,
            active_tiles: tiles,
            tile_balance: 1.0,
            bytes_in,
            bytes_out,
        };
        let sync = external_sync(&mut self.tables);
        let transfer =
            Cycles::from_f64((total.as_f64() / self.system.remote_bytes_per_cycle).ceil());
        let steps = [
            (ProgramKind::StreamCopyBegin, cost(REMOTE_BEGIN_CYCLES, Bytes::ZERO, Bytes::ZERO)),
            (ProgramKind::StreamCopyMid, cost(transfer, bytes_in, bytes_out)),
            (ProgramKind::StreamCopyEnd, cost(REMOTE_END_CYCLES, Bytes::ZERO, Bytes::ZERO)),
        ];
        let mut items = vec![FragmentItem::HostSync { program: sync, ipu }];
        for (kind, cost) in steps {
            let stream = StreamEndpoint::RemoteBuffer;
            let program = ProgramNode { ipu: Some(ipu), stream, ..ProgramNode::new(kind, &name) };
            let id = self.tables.push_leaf_with_cost(program, cost, bytes);
            if kind == ProgramKind::StreamCopyMid {
                let target = self.tables.kind;
                // Equal copies share code: their buffers are rows of one, found by an offset.
                let known = self.tables.code_exists_or_insert(ipu, &format!("{load} {bytes:?}"));
                let traffic = bytes.map(|bytes| {
                    let (bytes_in, bytes_out) =
                        if load { (*bytes, Bytes::ZERO) } else { (Bytes::ZERO, *bytes) };
                    let mut tile = TileTraffic { bytes_in, bytes_out, ..TileTraffic::default() };
                    tile.code_bytes = if known {
                        Bytes::ZERO
                    } else {
                        code_bytes::host_code_bytes(&tile, target)
                    };
                    tile
                });
                self.tables.traffic(id, ipu, traffic, MemoryCategory::HostExchangeCode);
            }
            items.push(FragmentItem::Leaf(id));
        }
        items
    }

    /// Copies a kept tensor from or to streaming memory, and keeps it alive meanwhile.
    pub(super) fn remote_tensor_copy(
        &mut self,
        tensor: TensorId,
        ipu: IpuId,
        load: bool,
    ) -> Vec<FragmentItem> {
        let name = self.graph.tensor(tensor).name.clone();
        let bytes = self.bytes(tensor);
        let io = self.location(self.graph.tensor(tensor).role);
        let io = io.is_some_and(|location| location.use_io_tiles);
        let first = self.tables.next_step();
        let items = self.remote_copy(&name, ipu, &bytes, load, io);
        let tensor_buffer = TensorBuffer { tensor, ipu, part: TensorBufferKind::Original };
        self.lifetimes.extend_to(tensor_buffer, first..self.tables.next_step());
        let (on_tiles, remote) =
            (BufferKey::Tensor(tensor_buffer), BufferKey::Remote { tensor, ipu });
        if load {
            self.note_flow(&items, &[remote], &[on_tiles]);
        } else {
            self.note_flow(&items, &[on_tiles], &[remote]);
            self.note_free(&items, &[on_tiles]);
        }
        items
    }

    /// Loads the accumulator of a node before it adds to it, or stores it afterwards.
    pub(super) fn accumulator_copy(
        &mut self,
        node: &GraphNode,
        ipu: IpuId,
        load: bool,
    ) -> Vec<FragmentItem> {
        let accumulators = node.inputs.iter().copied().filter(|tensor| {
            self.graph.tensor(*tensor).role == TensorRole::Accumulator && self.is_off_chip(*tensor)
        });
        let found: Vec<TensorId> = accumulators.collect();
        found.into_iter().flat_map(|tensor| self.remote_tensor_copy(tensor, ipu, load)).collect()
    }

    /// Code of the programs that bring kept tensors from the host before the first run, and what
    /// training changed back after the last one. What lives in streaming memory is there already.
    pub(super) fn upload_code(&mut self) {
        let target = self.tables.kind;
        let graph = self.graph;
        let tensor_buffers: Vec<TensorBuffer> =
            self.lifetimes.iter().map(|(tensor_buffer, ..)| tensor_buffer).collect();
        for tensor_buffer in tensor_buffers {
            let role = graph.tensor(tensor_buffer.tensor).role;
            if !matches!(role, TensorRole::Parameter | TensorRole::OptimizerState)
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
            self.placement.stage(node.block) == stage
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
    fn loaded_weights(&self, stage: usize, pass: TrainingPass) -> Vec<TensorId> {
        let mut weights = self.weights(stage, pass);
        if pass == TrainingPass::Backward && self.tensors.goes_back_at_once(stage) {
            let there = self.weights(stage, TrainingPass::Forward);
            weights.retain(|weight| !there.contains(weight));
        }
        weights
    }

    /// Loads the weights that live in streaming memory, before a stage's forward or backward pass.
    pub(super) fn load_weights(&mut self, stage: usize, pass: TrainingPass) -> Vec<FragmentItem> {
        if pass == TrainingPass::Update {
            return Vec::new();
        }
        let (ipu, weights) = (self.ipu(stage), self.loaded_weights(stage, pass));
        weights.into_iter().flat_map(|tensor| self.remote_tensor_copy(tensor, ipu, true)).collect()
    }

    /// Weights from streaming memory stay until the pass is over, or the one that follows at once.
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
        for tensor in weights {
            let tensor_buffer = TensorBuffer { tensor, ipu, part: TensorBufferKind::Original };
            self.lifetimes.extend_to(tensor_buffer, end.saturating_sub(1)..end);
            self.note_free(items, &[BufferKey::Tensor(tensor_buffer)]);
        }
    }
}
