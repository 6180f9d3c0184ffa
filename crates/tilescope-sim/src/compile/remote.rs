//! Tensors in streaming memory: loaded when they are used, stored when they have changed.

use super::fragments::Maker;
use super::tables::{Item, LeafCost, leaf};
use super::tensors::{Home, Part};
use super::transfers::{external_sync, io_mapping};
use crate::graph::Node;
use crate::poplar::work::{Work, WorkItem};
use crate::poplar::{code, exchange};
use crate::shape::{Role, TensorId};
use tilescope_report::units::TileRuns;
use tilescope_report::{Category, Pass, Program, ProgramKind, StreamEnd, TileTraffic};

/// Cycles before and after the transfer of a copy that no callback on the host answers: the
/// shortest StreamCopyBegin and StreamCopyEnd of Graphcore's lightweight-profiling tutorial.
const REMOTE_CYCLES: (u64, u64) = (155, 87);

impl Maker<'_> {
    /// A copy between an IPU and a remote buffer: sync, begin, transfer, end; and an exchange where
    /// the I/O tiles do the copying.
    pub(super) fn remote_copy(
        &mut self,
        name: &str,
        ipu: u32,
        bytes: &TileRuns<u64>,
        load: bool,
        use_io_tiles: bool,
    ) -> Vec<Item> {
        let total = bytes.total();
        if !use_io_tiles {
            return self.remote_stream(name, ipu, bytes, load);
        }
        let mapping = io_mapping(self.lowering.tiles, self.spec.options.num_io_tiles, total);
        let mut items =
            if load { self.remote_stream(name, ipu, &mapping, load) } else { Vec::new() };
        let (from, to) = if load { (&mapping, bytes) } else { (bytes, &mapping) };
        items.extend(self.hand_over(name, ipu, from, to));
        if !load {
            items.extend(self.remote_stream(name, ipu, &mapping, load));
        }
        items
    }

    /// An exchange between compute tiles and I/O tiles.
    pub(super) fn hand_over(
        &mut self,
        name: &str,
        ipu: u32,
        from: &TileRuns<u64>,
        to: &TileRuns<u64>,
    ) -> Vec<Item> {
        let tiles = self.tables.tiles_per_ipu;
        let speed = self.lowering.exchange_speed();
        let phase = exchange::relayout("interTilesetCopy", from, to, false, tiles, speed);
        let items = phase.into_iter().map(WorkItem::Phase).collect();
        let work = Work { items, temporaries: Vec::new() };
        self.tables.work(None, name, ipu, &work).items
    }

    fn remote_stream(
        &mut self,
        name: &str,
        ipu: u32,
        bytes: &TileRuns<u64>,
        load: bool,
    ) -> Vec<Item> {
        let name = format!("{name}/{}", if load { "remoteLoad" } else { "remoteStore" });
        let total = bytes.total();
        let tiles = bytes.tile_count() as u32;
        let (bytes_in, bytes_out) = if load { (total, 0) } else { (0, total) };
        let cost = |cycles: u64, bytes_in: u64, bytes_out: u64| LeafCost {
            ipu,
            cycles,
            shortest: cycles,
            active_tiles: tiles,
            balance: 1.0,
            bytes_in,
            bytes_out,
        };
        let sync = external_sync(&mut self.tables);
        let transfer = (total as f64 / self.system.remote_bytes_per_cycle).ceil() as u64;
        let steps = [
            (ProgramKind::StreamCopyBegin, cost(REMOTE_CYCLES.0, 0, 0)),
            (ProgramKind::StreamCopyMid, cost(transfer, bytes_in, bytes_out)),
            (ProgramKind::StreamCopyEnd, cost(REMOTE_CYCLES.1, 0, 0)),
        ];
        let mut items = vec![Item::HostSync { program: sync, ipu }];
        for (kind, cost) in steps {
            let stream = StreamEnd::RemoteBuffer;
            let program = Program { name: name.clone(), ipu: Some(ipu), stream, ..leaf(kind) };
            let id = self.tables.costed(program, cost, bytes);
            if kind == ProgramKind::StreamCopyMid {
                let target = self.tables.kind;
                // Equal copies share code: their buffers are rows of one, found by an offset.
                let known = self.tables.has_code(ipu, &format!("{load} {bytes:?}"));
                let traffic = bytes.map(|bytes| {
                    let (bytes_in, bytes_out) = if load { (*bytes, 0) } else { (0, *bytes) };
                    let mut tile = TileTraffic { bytes_in, bytes_out, ..TileTraffic::default() };
                    tile.code_bytes = if known { 0 } else { code::host_code_bytes(&tile, target) };
                    tile
                });
                self.tables.traffic(id, ipu, traffic, Category::HostExchangeCode);
            }
            items.push(Item::Leaf(id));
        }
        items
    }

    /// Copies a kept tensor from or to streaming memory, and keeps it alive meanwhile.
    pub(super) fn kept_copy(&mut self, tensor: TensorId, ipu: u32, load: bool) -> Vec<Item> {
        let name = self.graph.tensor(tensor).name.clone();
        let bytes = self.bytes(tensor);
        let io = self.location(self.graph.tensor(tensor).role);
        let io = io.is_some_and(|location| location.use_io_tiles);
        let first = self.tables.next_step();
        let items = self.remote_copy(&name, ipu, &bytes, load, io);
        let home = Home { tensor, ipu, part: Part::Made };
        self.lifetimes.touch(home, first..self.tables.next_step());
        items
    }

    /// Loads the accumulator of a node before it adds to it, or stores it afterwards.
    pub(super) fn accumulator_copy(&mut self, node: &Node, ipu: u32, load: bool) -> Vec<Item> {
        let accumulators = node.inputs.iter().copied().filter(|tensor| {
            self.graph.tensor(*tensor).role == Role::Accumulator && self.is_off_chip(*tensor)
        });
        let found: Vec<TensorId> = accumulators.collect();
        found.into_iter().flat_map(|tensor| self.kept_copy(tensor, ipu, load)).collect()
    }

    /// Code of the programs that bring kept tensors from the host before the first run, and what
    /// training changed back after the last one. What lives in streaming memory is there already.
    pub(super) fn upload_code(&mut self) {
        let target = self.tables.kind;
        let graph = self.graph;
        let homes: Vec<Home> = self.lifetimes.iter().map(|(home, ..)| home).collect();
        for home in homes {
            let role = graph.tensor(home.tensor).role;
            if !matches!(role, Role::Parameter | Role::State) || self.is_off_chip(home.tensor) {
                continue;
            }
            for (range, bytes) in self.bytes(home.tensor).shifted(self.offset(home.ipu)).iter() {
                let bytes_out = if self.spec.model.training { *bytes } else { 0 };
                let tile = TileTraffic { bytes_in: *bytes, bytes_out, ..TileTraffic::default() };
                let code_bytes = code::host_code_bytes(&tile, target);
                for tile in range.first..range.end {
                    self.tables.code.add(Category::HostExchangeCode, tile, code_bytes);
                }
            }
        }
    }

    /// Off-chip weights that a stage reads in a pass.
    fn weights(&self, stage: usize, pass: Pass) -> Vec<TensorId> {
        let mine = self.graph.nodes.iter().filter(|node| {
            let again = pass == Pass::Backward && node.pass == Pass::Forward;
            self.placement.stage(node.block) == stage
                && (node.pass == pass || again && !self.tensors.again(stage).is_empty())
        });
        let mut found: Vec<TensorId> = mine
            .flat_map(|node| node.inputs.iter().copied())
            .filter(|tensor| self.graph.tensor(*tensor).role == Role::Parameter)
            .filter(|tensor| self.is_off_chip(*tensor))
            .collect();
        found.sort_unstable();
        found.dedup();
        found
    }

    /// Loads the weights that live in streaming memory, before a stage's forward or backward pass.
    pub(super) fn load_weights(&mut self, stage: usize, pass: Pass) -> Vec<Item> {
        if pass == Pass::Update {
            return Vec::new();
        }
        let ipu = self.ipu(stage);
        let weights = self.weights(stage, pass);
        weights.into_iter().flat_map(|tensor| self.kept_copy(tensor, ipu, true)).collect()
    }

    /// Weights from streaming memory stay until the pass is over.
    pub(super) fn end_of_weights(&mut self, stage: usize, pass: Pass) {
        if pass == Pass::Update {
            return;
        }
        let ipu = self.ipu(stage);
        let end = self.tables.next_step();
        for tensor in self.weights(stage, pass) {
            let home = Home { tensor, ipu, part: Part::Made };
            self.lifetimes.touch(home, end.saturating_sub(1)..end);
        }
    }
}
