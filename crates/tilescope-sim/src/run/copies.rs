//! Copies of a run: with the host, by I/O tiles during compute, and between IPUs.

use super::MarkWords;
use super::clocks::{SyncReach, TileGroup};
use super::host::HostTimeline;
use super::{ProgramRunner, RunPosition, StepSink, cycles_of};
use crate::compile::{
    CompiledProgram, HostExchange, HostStreamCopy, LeafProgramCost, StageCopyGroup, host_exchanges,
    whole_ipu_cost,
};
use crate::specification::OverlapIo;
use crate::targets::IpuLink;
use std::collections::BTreeMap;
use tilescope_report::units::{Bytes, Cycles, IpuId, ProgramId, StepId};
use tilescope_report::{HostCallPart, MarkKind};

impl<'a, S: StepSink> ProgramRunner<'a, S> {
    /// Syncs some IPUs of all replicas before some of them exchange data.
    pub(super) fn replica_sync(
        &mut self,
        program: ProgramId,
        ipus: &[IpuId],
    ) -> Result<(), S::Error> {
        self.compute_sync(program, ipus, SyncReach::AllReplicas)
    }

    /// Syncs with the host or streaming memory. The sync joins all replicas, unless each syncs
    /// independently.
    pub(super) fn host_sync(&mut self, program: ProgramId, ipus: &[IpuId]) -> Result<(), S::Error> {
        self.compute_sync(program, ipus, self.host_reach())
    }

    /// Syncs all tiles of some IPUs.
    fn compute_sync(
        &mut self,
        program: ProgramId,
        ipus: &[IpuId],
        reach: SyncReach,
    ) -> Result<(), S::Error> {
        let tiles = self.compiled.compilation.target.tiles_per_ipu;
        let cycles = self.compiled.system.external_sync_cycles;
        self.sync(program, ipus, (TileGroup::Compute, tiles), cycles, reach)
    }

    fn host_reach(&self) -> SyncReach {
        if self.spec.options.sync_replicas_independently {
            SyncReach::Replica
        } else {
            SyncReach::AllReplicas
        }
    }

    /// Syncs the I/O tiles of some IPUs while their compute tiles work.
    fn external_io_sync(&mut self, program: ProgramId, ipus: &[IpuId]) -> Result<(), S::Error> {
        let tiles = self.compiled.compilation.target.io_tiles_per_ipu;
        let cycles = self.compiled.system.external_sync_cycles;
        let reach = self.host_reach();
        self.sync(program, ipus, (TileGroup::Io, tiles), cycles, reach)
    }

    /// Syncs some tiles of some IPUs, of each replica separately or of all of them.
    fn sync(
        &mut self,
        program: ProgramId,
        ipus: &[IpuId],
        tiles: (TileGroup, u32),
        cycles: Cycles,
        reach: SyncReach,
    ) -> Result<(), S::Error> {
        // `verify` expects replicas to leave these programs together.
        if reach == SyncReach::AllReplicas {
            self.note_meeting(program);
        }
        self.begin(program);
        self.clocks.sync(ipus, tiles, cycles, reach, &mut self.step);
        self.emit()
    }

    /// Adds the work of the host before the program runs, which all IPUs wait for.
    pub(super) fn call_begins(&mut self) -> Result<(), S::Error> {
        let host = &self.spec.options.host;
        let clock = self.spec.target.chip.clock;
        let framework = cycles_of(host.seconds_per_framework_call, clock);
        let launch = cycles_of(host.seconds_per_launch, clock);
        let ready: Vec<Cycles> = self.hosts.iter().map(HostTimeline::samples_ready).collect();
        for (class, ready) in ready.iter().enumerate() {
            self.clocks.waits_mut(class).loader += *ready;
        }
        // Loader, framework and launch follow each other: none of them overlaps with the next.
        let framework = vec![framework; ready.len()];
        let launch = vec![launch; ready.len()];
        self.wait_for_host(HostCallPart::Loader, &ready, SyncReach::Replica)?;
        self.wait_for_host(HostCallPart::Framework, &framework, SyncReach::Replica)?;
        self.wait_for_host(HostCallPart::Launch, &launch, SyncReach::Replica)?;
        for (host, now) in self.hosts.iter_mut().zip(self.clocks.latest_of_classes()) {
            host.launched(now);
        }
        Ok(())
    }

    /// Adds the return of the results by the host, after the last replica has finished.
    pub(super) fn call_ends(&mut self) -> Result<(), S::Error> {
        let seconds = self.spec.options.host.seconds_per_return;
        let cycles = cycles_of(seconds, self.spec.target.chip.clock);
        let cycles = vec![cycles; self.clocks.classes()];
        self.wait_for_host(HostCallPart::Results, &cycles, SyncReach::AllReplicas)
    }

    /// Makes all IPUs wait for the host, which takes `cycles` for each class of replicas.
    fn wait_for_host(
        &mut self,
        part: HostCallPart,
        cycles: &[Cycles],
        reach: SyncReach,
    ) -> Result<(), S::Error> {
        let differ = cycles.len() > 1;
        match self.compiled.parts.host_call.get(&part) {
            Some(program) if differ || cycles.iter().any(|cycles| !cycles.is_zero()) => {
                let tiles = self.compiled.compilation.target.tiles_per_ipu;
                let all = self.all_ipus.clone();
                let tiles = (TileGroup::Compute, tiles);
                self.begin(*program);
                self.clocks.sync_unequal(&all, tiles, cycles, reach, &mut self.step);
                // Classes of replicas that do not wait have no step.
                self.step.ipus.retain(|on| on.from_max < on.to_max);
                self.step.other_replicas.retain(|(_, on)| on.from_max < on.to_max);
                if self.step.parts().next().is_none() { Ok(()) } else { self.emit() }
            }
            _ => Ok(()),
        }
    }

    /// Runs a copy before the program starts. The host is ready for it.
    pub(super) fn control_copy(&mut self, copy: &HostStreamCopy) -> Result<(), S::Error> {
        let exchange = HostExchange::of(copy);
        self.sync_for_host(&exchange, HostCopyLane::Compute, &mut Vec::new())?;
        let ready = vec![Cycles::ZERO; self.hosts.len()];
        self.stream(&exchange, HostCopyLane::Compute, &ready).map(|_| ())
    }

    /// Copies micro-batches to the compute tiles, unless the I/O tiles already hold them.
    pub(super) fn inputs(&mut self, copies: &[&HostStreamCopy]) -> Result<(), S::Error> {
        // Copies through I/O tiles wait for other tiles, so the two kinds have separate exchanges.
        for alike in copies.chunk_by(|a, b| a.route.io_tiles == b.route.io_tiles) {
            self.inputs_alike(alike)?;
        }
        Ok(())
    }

    /// Copies inputs that all arrive through the same tiles.
    fn inputs_alike(&mut self, copies: &[&HostStreamCopy]) -> Result<(), S::Error> {
        let merge = self.spec.options.merge_exchange;
        for group in host_exchanges(copies.iter().copied(), merge) {
            let together: Vec<&HostStreamCopy> =
                group.iter().flat_map(HostExchange::copies).collect();
            let mut fresh = together.clone();
            fresh.retain(|copy| !self.prefetched.contains(&copy.transfer));
            // Copies that were prefetched leave gaps in the group; the rest still shares its syncs.
            for group in host_exchanges(fresh, true) {
                let lane = HostCopyLane::of(&group);
                self.copy_from_host(&group, lane)?;
            }
            for copy in &together {
                self.prefetched.remove(&copy.transfer);
                // The data must be on the I/O tiles before the compute tiles fetch them.
                if copy.route.io_tiles {
                    self.wait_for_io(copy.ipu)?;
                }
                self.items(&copy.tile_items)?;
            }
        }
        Ok(())
    }

    /// Starts to load the next micro-batches on the I/O tiles.
    pub(super) fn prefetch_inputs(&mut self, copies: &[&HostStreamCopy]) -> Result<(), S::Error> {
        let merge = self.spec.options.merge_exchange;
        for group in host_exchanges(copies.iter().copied(), merge) {
            for exchange in &group {
                self.io_waits_for_compute(exchange.ipu());
            }
            self.copy_from_host(&group, HostCopyLane::IoOverlapped)?;
        }
        self.prefetched.extend(copies.iter().map(|copy| copy.transfer));
        Ok(())
    }

    /// Runs exchanges that share their syncs.
    fn copy_from_host(
        &mut self,
        group: &[HostExchange],
        lane: HostCopyLane,
    ) -> Result<(), S::Error> {
        let mut synced = Vec::new();
        for exchange in group {
            let mut ready = vec![Cycles::ZERO; self.hosts.len()];
            // Cycles from the first transfer of the exchange to the end of each.
            let mut fetched = Cycles::ZERO;
            for copy in exchange.copies() {
                fetched += self.compiled.system.host_cycles(copy.bytes_in);
                let stream = copy.transfer;
                for (host, ready) in self.hosts.iter_mut().zip(&mut ready) {
                    *ready = host.fill_next_buffer(stream, copy.bytes_in, fetched).max(*ready);
                }
            }
            let first = self.next_step;
            self.sync_for_host(exchange, lane, &mut synced)?;
            self.stream(exchange, lane, &ready)?;
            // The host refills a buffer once its data have left, not when the copy ends elsewhere.
            let emptied: Vec<Cycles> =
                self.clocks.of_classes(exchange.ipu(), lane.tiles()).collect();
            for copy in exchange.copies() {
                self.callback_mark(copy, first)?;
                for (host, at) in self.hosts.iter_mut().zip(&emptied) {
                    host.buffer_emptied(copy.transfer, *at);
                }
            }
        }
        Ok(())
    }

    fn callback_mark(&mut self, copy: &HostStreamCopy, first: StepId) -> Result<(), S::Error> {
        let Some((micro_batch, busy)) = self.hosts[0].callback(copy.transfer) else {
            return Ok(());
        };
        let stage = &self.compiled.placement.stages[copy.stage].name;
        let label = format!("{stage} callback {micro_batch}");
        let start = RunPosition { step: first, cycle: busy.start };
        let kind = MarkKind::Callback;
        let index = micro_batch;
        let words = MarkWords { kind, label: &label, ipu: None, pass: None, index };
        self.emit_mark(words, &start, busy.end)
    }

    fn copy_to_host(&mut self, group: &[HostExchange], lane: HostCopyLane) -> Result<(), S::Error> {
        let mut synced = Vec::new();
        for exchange in group {
            // The copy begins when the host has read the previous results from all its buffers.
            let mut free = Vec::new();
            for host in &self.hosts {
                let buffers = exchange.copies().map(|copy| host.result_buffer_free(copy.transfer));
                free.push(buffers.max().unwrap_or_default());
            }
            self.sync_for_host(exchange, lane, &mut synced)?;
            let begun = self.stream(exchange, lane, &free)?;
            let mut sent = Cycles::ZERO;
            for copy in exchange.copies() {
                for (host, begun) in self.hosts.iter_mut().zip(&begun) {
                    host.result_written(copy.transfer, copy.bytes_out, *begun + sent);
                }
                sent += self.compiled.system.host_cycles(copy.bytes_out);
            }
        }
        Ok(())
    }

    /// Sends results to the host, or passes them to the I/O tiles, which send them while the
    /// compute tiles continue.
    pub(super) fn send_or_hand_over(
        &mut self,
        copies: &[&'a HostStreamCopy],
    ) -> Result<(), S::Error> {
        let overlaps = self.spec.options.overlap_io != OverlapIo::None;
        let merge = self.spec.options.merge_exchange;
        for group in host_exchanges(copies.iter().copied(), merge) {
            for copy in group.iter().flat_map(HostExchange::copies) {
                // The previous results must have left the I/O tiles.
                if overlaps {
                    self.wait_for_io(copy.ipu)?;
                }
                self.items(&copy.tile_items)?;
            }
            if overlaps {
                self.unsent.extend(group.iter().flat_map(HostExchange::copies));
            } else {
                let lane = HostCopyLane::of(&group);
                self.copy_to_host(&group, lane)?;
                for exchange in &group {
                    self.wait_for_io(exchange.ipu())?;
                }
            }
        }
        Ok(())
    }

    /// Sends the results that are on the I/O tiles.
    pub(super) fn send_outputs(&mut self) -> Result<(), S::Error> {
        let unsent = std::mem::take(&mut self.unsent);
        for group in host_exchanges(unsent, self.spec.options.merge_exchange) {
            for exchange in &group {
                self.io_waits_for_compute(exchange.ipu());
            }
            self.copy_to_host(&group, HostCopyLane::IoOverlapped)?;
        }
        Ok(())
    }

    /// Makes the compute tiles of all IPUs wait for their I/O tiles.
    pub(super) fn wait_for_all_io(&mut self) -> Result<(), S::Error> {
        let ipus = self.compiled.compilation.target.ipus_per_replica;
        for ipu in (0..ipus).map(IpuId) {
            self.wait_for_io(ipu)?;
        }
        Ok(())
    }

    /// Runs a copy of the I/O tiles, which begins at the current time of the compute tiles.
    pub(super) fn io_stream(
        &mut self,
        sync: ProgramId,
        steps: &[ProgramId],
        ipu: IpuId,
    ) -> Result<(), S::Error> {
        self.io_waits_for_compute(ipu);
        let group = self.compiled.sync_groups.host_sync_group(ipu);
        self.external_io_sync(sync, group)?;
        for program in steps {
            self.begin(*program);
            self.clocks.run_on(self.costs.cost_of(*program), TileGroup::Io, &mut self.step);
            self.emit()?;
        }
        Ok(())
    }

    /// Delays the I/O tiles of an IPU to the current time of its compute tiles.
    pub(super) fn io_waits_for_compute(&mut self, ipu: IpuId) {
        self.clocks.sync_io_to_compute(ipu);
        self.sink.wait_for_tiles(ipu, TileGroup::Io as u8, TileGroup::Compute as u8);
    }

    /// Makes the compute tiles of an IPU wait for its I/O tiles.
    pub(super) fn wait_for_io(&mut self, ipu: IpuId) -> Result<(), S::Error> {
        self.sink.wait_for_tiles(ipu, TileGroup::Compute as u8, TileGroup::Io as u8);
        let tiles = self.compiled.compilation.target.compute_tiles_per_ipu();
        self.begin(self.compiled.parts.io_syncs[ipu.index()]);
        self.clocks.sync_compute_to_io(ipu, tiles, &mut self.step);
        if self.step.parts().next().is_none() { Ok(()) } else { self.emit() }
    }

    /// Syncs before an exchange with the host, unless its IPU is in `synced` because of a
    /// simultaneous exchange.
    fn sync_for_host(
        &mut self,
        exchange: &HostExchange,
        lane: HostCopyLane,
        synced: &mut Vec<IpuId>,
    ) -> Result<(), S::Error> {
        let ipu = exchange.ipu();
        let group = self.compiled.sync_groups.host_sync_group(ipu);
        if !synced.contains(&ipu) {
            match lane {
                HostCopyLane::IoOverlapped => self.external_io_sync(exchange.sync(), group)?,
                HostCopyLane::Compute | HostCopyLane::Io => {
                    self.host_sync(exchange.sync(), group)?;
                }
            }
            synced.extend(group);
        }
        if lane == HostCopyLane::Io {
            self.io_waits_for_compute(ipu);
        }
        Ok(())
    }

    /// Runs the steps of an exchange whose buffers are ready at the cycles in `ready`, for each
    /// class of replicas. Returns the start of its first transfer for each.
    fn stream(
        &mut self,
        exchange: &HostExchange,
        lane: HostCopyLane,
        ready: &[Cycles],
    ) -> Result<Vec<Cycles>, S::Error> {
        let system = &self.compiled.system;
        let first = exchange.first();
        let last = exchange.last();
        let mut costs = Vec::new();
        for copy in exchange.copies() {
            let cycles = system.host_cycles(copy.bytes_in + copy.bytes_out);
            let mut cost = whole_ipu_cost(copy.ipu, cycles, copy.active_tiles);
            cost.bytes_in = copy.bytes_in;
            cost.bytes_out = copy.bytes_out;
            costs.push(cost);
        }
        // One acknowledgement ends all transfers of the exchange.
        costs.push(whole_ipu_cost(last.ipu, system.stream_end_cycles, last.active_tiles));
        let waiting = self.begin_cycles(exchange.ipu(), lane, ready);
        let begin = whole_ipu_cost(first.ipu, waiting[0], first.active_tiles);
        let steps = exchange.steps();
        if self.host_reach() == SyncReach::AllReplicas {
            self.note_meeting(steps[0]);
        }
        self.begin(steps[0]);
        self.clocks.run_unequal(&begin, lane.tiles(), &waiting, &mut self.step);
        self.emit()?;
        let begun = self.clocks.of_classes(exchange.ipu(), lane.tiles()).collect();
        for (program, cost) in steps[1..].iter().zip(costs) {
            self.begin(*program);
            self.clocks.run_on(&cost, lane.tiles(), &mut self.step);
            self.emit()?;
        }
        Ok(begun)
    }

    /// Cycles of StreamCopyBegin for each class of replicas: at least the handshake, and until the
    /// buffers are ready. If the replicas sync with the host together, the buffers of all of them
    /// must be ready.
    fn begin_cycles(&mut self, ipu: IpuId, lane: HostCopyLane, ready: &[Cycles]) -> Vec<Cycles> {
        let handshake = self.compiled.system.stream_begin_cycles;
        let together = self.host_reach() == SyncReach::AllReplicas;
        let now: Vec<Cycles> = self.clocks.of_classes(ipu, lane.tiles()).collect();
        let until = now.iter().zip(ready).map(|(now, own)| (*now + handshake).max(*own));
        let until: Vec<Cycles> = until.collect();
        let first = until.iter().copied().min().unwrap_or_default();
        let latest = until.iter().copied().max().unwrap_or_default();
        let mut cycles = Vec::new();
        for (class, (now, own)) in now.into_iter().zip(until).enumerate() {
            let waits = self.clocks.waits_mut(class);
            waits.host += own - now - handshake;
            // Replicas that sync together leave when the last of them has its data.
            if together {
                waits.met(own - first, latest - own);
                cycles.push(latest - now);
            } else {
                cycles.push(own - now);
            }
        }
        cycles
    }

    pub(super) fn link_copy(&mut self, copy: &StageCopyGroup) -> Result<(), S::Error> {
        if let Some([sync, exchange]) = copy.exchange {
            let all = self.all_ipus.clone();
            self.compute_sync(sync, &all, SyncReach::Replica)?;
            self.begin(exchange);
            for cost in link_costs(copy, self.compiled) {
                self.clocks.run_on(&cost, TileGroup::Compute, &mut self.step);
            }
            self.emit()?;
        }
        self.items(&copy.local)
    }
}

/// The tiles of an IPU that make a host copy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum HostCopyLane {
    Compute,
    /// The I/O tiles, while the compute tiles wait.
    Io,
    /// The I/O tiles, while the compute tiles work.
    IoOverlapped,
}

impl HostCopyLane {
    /// The lane of exchanges without overlap.
    fn of(group: &[HostExchange]) -> Self {
        let io_tiles = group.first().is_some_and(|exchange| exchange.first().route.io_tiles);
        if io_tiles { Self::Io } else { Self::Compute }
    }

    /// The tiles that copy.
    fn tiles(self) -> TileGroup {
        match self {
            Self::Compute => TileGroup::Compute,
            Self::Io | Self::IoOverlapped => TileGroup::Io,
        }
    }
}

/// The cost of a copy between IPUs for each of them: the time of the busiest link that its data
/// use.
fn link_costs(copy: &StageCopyGroup, compiled: &CompiledProgram) -> Vec<LeafProgramCost> {
    let mut bytes_over: BTreeMap<IpuLink, Bytes> = BTreeMap::new();
    // Flows of several pairs of IPUs share the links between them, so bytes add up by link.
    for flow in &copy.flows {
        for link in IpuLink::path(flow.from, flow.to) {
            *bytes_over.entry(link).or_default() += flow.bytes;
        }
    }
    let mut costs = Vec::new();
    for ipu in (0..compiled.compilation.target.ipus_per_replica).map(IpuId) {
        let mut bytes_in = Bytes::ZERO;
        let mut bytes_out = Bytes::ZERO;
        let mut longest = None;
        for flow in &copy.flows {
            if flow.from != ipu && flow.to != ipu {
                continue;
            }
            if flow.to == ipu {
                bytes_in += flow.bytes;
            }
            if flow.from == ipu {
                bytes_out += flow.bytes;
            }
            for link in IpuLink::path(flow.from, flow.to) {
                longest = longest.max(Some(compiled.system.link_cycles(link, bytes_over[&link])));
            }
        }
        // An IPU that neither sends nor receives has no step of the copy.
        let Some(cycles) = longest else { continue };
        costs.push(LeafProgramCost {
            ipu,
            cycles,
            fastest_tile_cycles: cycles,
            active_tiles: copy.active_tiles.get(ipu.index()).copied().unwrap_or(0),
            tile_balance: 1.0,
            bytes_in,
            bytes_out,
        });
    }
    costs
}
