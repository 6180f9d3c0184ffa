//! Tensors in streaming memory, which are loaded before their use and stored after a change.

use super::data_flow::BufferKey;
use super::fragment_items::{FragmentItem, first_leaf, last_leaf};
use super::program_builder::ProgramBuilder;
use super::program_tables::whole_ipu_cost;
use super::tensor_analysis::TensorBuffer;
use crate::cost_constants::{REMOTE_BEGIN_CYCLES, REMOTE_END_CYCLES};
use crate::poplar::exchange::{self, OrderChange};
use crate::poplar::work::OperationWork;
use crate::shape::TensorId;
use std::slice::from_ref;
use tilescope_report::units::{Bytes, Cycles, IpuId, ProgramId, TileRuns};
use tilescope_report::{ProgramKind, ProgramNode, StreamEndpoint};

/// The data that one copy between an IPU and streaming memory moves.
#[derive(Clone, Debug)]
pub(super) struct RemoteTransfer {
    /// The name of the tensor.
    pub name: String,
    /// Bytes on each tile.
    pub bytes: TileRuns<Bytes>,
    pub from: BufferKey,
    pub to: BufferKey,
}

/// Copies into the I/O tiles, as one exchange, that the compute tiles do not wait for yet.
pub(super) struct IoTileFetch {
    tensors: Vec<TensorId>,
    copies: Vec<RemoteTransfer>,
    pub stream: FragmentItem,
}

impl ProgramBuilder<'_> {
    /// Begins to load persistent tensors into the I/O tiles.
    pub(super) fn fetch_by_io_tiles(
        &mut self,
        tensors: &[TensorId],
        ipu: IpuId,
    ) -> Vec<IoTileFetch> {
        let mut fetched = Vec::new();
        for merged in tensors.chunks(self.merged_copies(tensors.len())) {
            let copies: Vec<RemoteTransfer> =
                merged.iter().map(|of| self.kept_tensor_transfer(*of, ipu, true)).collect();
            let stream = self.io_stream(ipu, &copies, true);
            fetched.push(IoTileFetch { tensors: merged.to_vec(), copies, stream });
        }
        fetched
    }

    /// Moves the tensors that the I/O tiles have loaded to the compute tiles, which hold them from
    /// then on.
    pub(super) fn take_over_from_io_tiles(
        &mut self,
        fetched: &[IoTileFetch],
        ipu: IpuId,
    ) -> Vec<FragmentItem> {
        let mut items = Vec::new();
        if !fetched.is_empty() {
            items.push(FragmentItem::WaitForIo(ipu));
        }
        for IoTileFetch { tensors, copies, stream } in fetched {
            for (tensor, copy) in tensors.iter().zip(copies) {
                let first = self.tables.next_step();
                items.extend(self.bring_from_io_tiles(copy, stream, ipu));
                let buffer = TensorBuffer::original(*tensor, ipu);
                // Until the hand-over the data take memory of the I/O tiles only.
                self.variables.lifetimes.begin_loaded(buffer, first);
                self.variables.lifetimes.extend_to(buffer, first..self.tables.next_step());
            }
        }
        items
    }

    /// Adds consecutive copies between an IPU and streaming memory. If merging is allowed, they
    /// form one exchange with a sync, a begin, the transfers, and an end. If the I/O tiles copy,
    /// each has another exchange, between the tiles.
    pub(super) fn remote_copies(
        &mut self,
        ipu: IpuId,
        copies: &[RemoteTransfer],
        load: bool,
        use_io_tiles: bool,
    ) -> Vec<FragmentItem> {
        let mut items = Vec::new();
        for merged in copies.chunks(self.merged_copies(copies.len())) {
            if use_io_tiles {
                items.extend(self.copy_through_io_tiles(ipu, merged, load));
            } else {
                items.extend(self.remote_stream(ipu, merged, load));
            }
        }
        items
    }

    /// Adds an exchange of the I/O tiles. Compute tiles wait for a load, and continue during a
    /// store.
    fn copy_through_io_tiles(
        &mut self,
        ipu: IpuId,
        copies: &[RemoteTransfer],
        load: bool,
    ) -> Vec<FragmentItem> {
        let wait = FragmentItem::WaitForIo(ipu);
        if load {
            let stream = self.io_stream(ipu, copies, load);
            let mut items = vec![stream.clone(), wait];
            for copy in copies {
                items.extend(self.bring_from_io_tiles(copy, &stream, ipu));
            }
            return items;
        }
        // A hand-over needs I/O tiles that have finished their previous copy.
        let mut items = vec![wait];
        let mut passed_on = Vec::new();
        for copy in copies {
            let mapping = self.plan.io_mapping(copy.bytes.total());
            let passing = self.inter_tileset_copy(&copy.name, ipu, &copy.bytes, &mapping);
            passed_on.push(first_leaf(&passing));
            items.extend(passing);
        }
        let stream = self.io_stream(ipu, copies, load);
        for (copy, first) in copies.iter().zip(passed_on) {
            let begin = first.or(first_leaf(from_ref(&stream)));
            if let Some((begin, end)) = begin.zip(last_leaf(from_ref(&stream))) {
                self.flows.note_between(begin, end, &[copy.from], &[copy.to]);
            }
        }
        items.push(stream);
        items
    }

    /// Moves a tensor that the I/O tiles load in `stream` to the compute tiles.
    fn bring_from_io_tiles(
        &mut self,
        copy: &RemoteTransfer,
        stream: &FragmentItem,
        ipu: IpuId,
    ) -> Vec<FragmentItem> {
        let mapping = self.plan.io_mapping(copy.bytes.total());
        let brought = self.inter_tileset_copy(&copy.name, ipu, &mapping, &copy.bytes);
        let stream = from_ref(stream);
        let end = last_leaf(&brought).or(last_leaf(stream));
        if let Some((begin, end)) = first_leaf(stream).zip(end) {
            self.flows.note_between(begin, end, &[copy.from], &[copy.to]);
        }
        brought
    }

    /// Adds an exchange between the I/O tiles and streaming memory.
    fn io_stream(&mut self, ipu: IpuId, copies: &[RemoteTransfer], load: bool) -> FragmentItem {
        let mut on_io = copies.to_vec();
        for copy in &mut on_io {
            copy.bytes = self.plan.io_mapping(copy.bytes.total());
        }
        let (sync, steps) = self.remote_exchange(ipu, &on_io, load);
        FragmentItem::IoStream { sync, steps, ipu }
    }

    /// Adds an exchange between compute tiles and I/O tiles.
    pub(super) fn inter_tileset_copy(
        &mut self,
        name: &str,
        ipu: IpuId,
        from: &TileRuns<Bytes>,
        to: &TileRuns<Bytes>,
    ) -> Vec<FragmentItem> {
        let tiles = self.tables.tiles_per_ipu;
        let speed = self.plan.lowering.exchange_speed();
        let phase =
            exchange::relayout("interTilesetCopy", from, to, OrderChange::None, tiles, speed);
        self.tables.work(None, name, ipu, &OperationWork::of_phases(phase)).items
    }

    /// Adds the transfers of one exchange by the compute tiles.
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
            // The data of a single transfer have arrived when the exchange is over.
            let last = if copies.len() == 1 { steps[steps.len() - 1] } else { *step };
            self.flows.note_between(*step, last, &[copy.from], &[copy.to]);
        }
        let sync = FragmentItem::HostSync { program, ipu };
        [sync].into_iter().chain(steps.into_iter().map(FragmentItem::Leaf)).collect()
    }

    /// Adds the sync of an exchange and its steps: a begin, each transfer, and an end.
    fn remote_exchange(
        &mut self,
        ipu: IpuId,
        copies: &[RemoteTransfer],
        load: bool,
    ) -> (ProgramId, Vec<ProgramId>) {
        debug_assert!(!copies.is_empty(), "an exchange moves something");
        let sync = self.tables.external_sync();
        let begin = ProgramKind::StreamCopyBegin;
        let end = ProgramKind::StreamCopyEnd;
        let mut steps =
            vec![self.remote_step(begin, ipu, &copies[0], load, REMOTE_BEGIN_CYCLES.cycles())];
        for copy in copies {
            let rate = self.plan.system.remote_bytes_per_cycle;
            let cycles = Cycles::from_f64((copy.bytes.total().as_f64() / rate).ceil());
            steps.push(self.remote_step(ProgramKind::StreamCopyMid, ipu, copy, load, cycles));
        }
        let last = &copies[copies.len() - 1];
        steps.push(self.remote_step(end, ipu, last, load, REMOTE_END_CYCLES.cycles()));
        (sync, steps)
    }

    /// Adds a step of an exchange with streaming memory. Data move in the middle of the exchange.
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
        let mut cost = whole_ipu_cost(ipu, cycles, bytes.tile_count());
        if kind == ProgramKind::StreamCopyMid {
            let moved = if load { &mut cost.bytes_in } else { &mut cost.bytes_out };
            *moved = bytes.total();
        }
        let stream = StreamEndpoint::RemoteBuffer;
        let program = ProgramNode { ipu: Some(ipu), stream, ..ProgramNode::new(kind, &name) };
        let id = self.tables.push_leaf_with_cost(program, cost, bytes);
        if kind == ProgramKind::StreamCopyMid {
            // Equal copies share code: their buffers are rows of one buffer, addressed by an
            // offset.
            let known = self.tables.code_exists_or_insert(ipu, &format!("{load} {bytes:?}"));
            self.tables.host_traffic(id, ipu, bytes, load, known);
        }
        id
    }

    /// Copies persistent tensors from or to streaming memory. Each is live from its load to its
    /// store, or to its last use if nothing changes it.
    pub(super) fn remote_tensor_copies(
        &mut self,
        tensors: &[TensorId],
        ipu: IpuId,
        load: bool,
    ) -> Vec<FragmentItem> {
        let plan = self.plan;
        let mut items = Vec::new();
        // Either the I/O tiles or the compute tiles make an exchange, so it ends where they change.
        for run in tensors.chunk_by(|a, b| plan.uses_io_tiles(*a) == plan.uses_io_tiles(*b)) {
            let first = self.tables.next_step();
            let copies: Vec<RemoteTransfer> =
                run.iter().map(|tensor| self.kept_tensor_transfer(*tensor, ipu, load)).collect();
            let copied = self.remote_copies(ipu, &copies, load, plan.uses_io_tiles(run[0]));
            for tensor in run {
                let buffer = TensorBuffer::original(*tensor, ipu);
                if load {
                    self.variables.lifetimes.begin_loaded(buffer, first);
                }
                self.variables.lifetimes.extend_to(buffer, first..self.tables.next_step());
                // The last reader frees a tensor that nothing changes (`NodePlan::given_up`).
                if !load {
                    self.flows.note_free(&copied, &[BufferKey::Tensor(buffer)]);
                }
            }
            items.extend(copied);
        }
        items
    }

    fn kept_tensor_transfer(&self, tensor: TensorId, ipu: IpuId, load: bool) -> RemoteTransfer {
        let on_tiles = BufferKey::Tensor(TensorBuffer::original(tensor, ipu));
        let remote = BufferKey::Remote { tensor, ipu };
        let (from, to) = if load { (remote, on_tiles) } else { (on_tiles, remote) };
        let name = self.plan.name(tensor).to_owned();
        RemoteTransfer { name, bytes: self.plan.bytes(tensor), from, to }
    }
}
