//! Copies of a run: with the host, beside compute where I/O tiles do them, and between IPUs.

use super::{ProgramRunner, RunPosition, StepSink, cycles_of};
use crate::compile::{
    CompiledProgram, HostStreamCopy, InterIpuFlow, LeafProgramCost, StageCopyGroup,
};
use crate::spec::OverlapIo;
use crate::targets::IpuLink;
use std::collections::BTreeMap;
use tilescope_report::units::{Bytes, Cycles, IpuId, ProgramId};
use tilescope_report::{HostCallPart, MarkKind};

impl<'a, S: StepSink> ProgramRunner<'a, S> {
    /// A sync of some IPUs that takes `extra` cycles longer than its signal.
    pub(super) fn external_sync(
        &mut self,
        program: ProgramId,
        ipus: &[IpuId],
        extra: Cycles,
    ) -> Result<(), S::Error> {
        let tiles = self.compiled.compilation.target.tiles_per_ipu;
        let cycles = self.compiled.system.external_sync_cycles + extra;
        let waits = self.clocks.sync_ipus(ipus, cycles, tiles);
        self.emit(program, waits)
    }

    /// A sync of the I/O tiles of some IPUs, while their compute tiles work.
    fn external_io_sync(&mut self, program: ProgramId, ipus: &[IpuId]) -> Result<(), S::Error> {
        let tiles = self.compiled.compilation.target.io_tiles_per_ipu;
        let cycles = self.compiled.system.external_sync_cycles;
        let waits = self.clocks.sync_io_tiles(ipus, cycles, tiles);
        self.emit(program, waits)
    }

    /// What the host does before the program runs: all IPUs wait for it.
    pub(super) fn call_begins(&mut self) -> Result<(), S::Error> {
        let host = &self.spec.options.host;
        let clock = self.spec.target.chip.clock;
        let framework = cycles_of(host.seconds_per_framework_call, clock);
        let launch = cycles_of(host.seconds_per_launch, clock);
        self.wait_for_host(HostCallPart::Loader, self.host.samples_ready())?;
        self.wait_for_host(HostCallPart::Framework, framework)?;
        self.wait_for_host(HostCallPart::Launch, launch)?;
        self.host.launched(self.clocks.latest());
        Ok(())
    }

    /// The host hands the results back.
    pub(super) fn call_ends(&mut self) -> Result<(), S::Error> {
        let seconds = self.spec.options.host.seconds_per_return;
        let cycles = cycles_of(seconds, self.spec.target.chip.clock);
        self.wait_for_host(HostCallPart::Results, cycles)
    }

    fn wait_for_host(&mut self, part: HostCallPart, cycles: Cycles) -> Result<(), S::Error> {
        match self.compiled.parts.host_call.get(&part) {
            Some(program) if !cycles.is_zero() => {
                let tiles = self.compiled.compilation.target.tiles_per_ipu;
                let all = self.all_ipus.clone();
                let waits = self.clocks.sync_ipus(&all, cycles, tiles);
                self.emit(*program, waits)
            }
            _ => Ok(()),
        }
    }

    /// A copy before the program starts: the host is ready.
    pub(super) fn control_copy(&mut self, copy: &HostStreamCopy) -> Result<(), S::Error> {
        self.stream(copy, HostCopyLane::Compute, Cycles::ZERO)
    }

    /// Brings a micro-batch to the compute tiles, unless the I/O tiles have it already. `synced` are
    /// IPUs whose rows of the same field come at the same time: it is one copy, with one sync.
    pub(super) fn input(
        &mut self,
        copy: &HostStreamCopy,
        synced: &mut Vec<IpuId>,
    ) -> Result<(), S::Error> {
        if !self.prefetched.remove(&copy.programs[1]) {
            let lane = match self.lane() {
                HostCopyLane::Compute if synced.contains(&copy.ipu) => HostCopyLane::ComputeJoined,
                lane => lane,
            };
            self.copy_from_host(copy, lane)?;
            if self.compiled.schedule.parallel_stages().is_some() {
                synced.extend(self.compiled.sync_groups.host_sync_group(copy.ipu));
            }
        }
        self.wait_for_io(copy.ipu)?;
        self.items(&copy.tile_items)
    }

    /// Starts to load the next micro-batch on the I/O tiles.
    pub(super) fn prefetch_input(&mut self, copy: &HostStreamCopy) -> Result<(), S::Error> {
        self.clocks.sync_io_to_compute(copy.ipu);
        self.copy_from_host(copy, HostCopyLane::IoOverlapped)?;
        self.prefetched.insert(copy.programs[1]);
        Ok(())
    }

    fn copy_from_host(
        &mut self,
        copy: &HostStreamCopy,
        lane: HostCopyLane,
    ) -> Result<(), S::Error> {
        let stream = copy.programs[1];
        let transfer = self.compiled.system.host_cycles(copy.bytes_in);
        let ready = self.host.fill_next_buffer(stream, copy.bytes_in, transfer);
        let first = self.next_step;
        self.stream(copy, lane, ready)?;
        if let Some((micro_batch, busy)) = self.host.callback(stream) {
            let stage = &self.compiled.placement.stages[copy.stage].name;
            let label = format!("{stage} callback {micro_batch}");
            let start = RunPosition { step: first, cycle: busy.start };
            self.emit_mark(MarkKind::Callback, &label, None, None, micro_batch, &start, busy.end)?;
        }
        self.host.buffer_emptied(stream, self.now(copy.ipu, lane));
        Ok(())
    }

    fn copy_to_host(&mut self, copy: &HostStreamCopy, lane: HostCopyLane) -> Result<(), S::Error> {
        let stream = copy.programs[1];
        self.stream(copy, lane, self.host.result_buffer_free(stream))?;
        let transfer = self.compiled.system.host_cycles(copy.bytes_out);
        let begun = self.now(copy.ipu, lane).saturating_sub(transfer);
        self.host.result_written(stream, copy.bytes_out, begun);
        Ok(())
    }

    /// The time on the tiles of an IPU that do a host copy.
    fn now(&self, ipu: IpuId, lane: HostCopyLane) -> Cycles {
        match lane {
            HostCopyLane::Compute | HostCopyLane::ComputeJoined => self.clocks.at(ipu),
            HostCopyLane::Io | HostCopyLane::IoOverlapped => self.clocks.io_at(ipu),
        }
    }

    /// Sends results to the host, or hands them to the I/O tiles, which send them while the
    /// compute tiles work on.
    pub(super) fn output(&mut self, copy: &'a HostStreamCopy) -> Result<(), S::Error> {
        match self.spec.options.overlap_io {
            OverlapIo::None => {
                self.items(&copy.tile_items)?;
                self.copy_to_host(copy, self.lane())?;
                self.wait_for_io(copy.ipu)
            }
            OverlapIo::InnerLoop | OverlapIo::Loops => {
                self.wait_for_io(copy.ipu)?;
                self.items(&copy.tile_items)?;
                self.unsent.push(copy);
                Ok(())
            }
        }
    }

    /// Sends the results that lie on the I/O tiles.
    pub(super) fn send_outputs(&mut self) -> Result<(), S::Error> {
        for copy in std::mem::take(&mut self.unsent) {
            self.clocks.sync_io_to_compute(copy.ipu);
            self.copy_to_host(copy, HostCopyLane::IoOverlapped)?;
        }
        Ok(())
    }

    /// The compute tiles of all IPUs wait for their I/O tiles.
    pub(super) fn wait_for_all_io(&mut self) -> Result<(), S::Error> {
        let ipus = self.compiled.compilation.target.ipus_per_replica;
        (0..ipus).map(IpuId).try_for_each(|ipu| self.wait_for_io(ipu))
    }

    /// The lane of a host copy that nothing overlaps with.
    fn lane(&self) -> HostCopyLane {
        if self.spec.options.num_io_tiles > 0 { HostCopyLane::Io } else { HostCopyLane::Compute }
    }

    /// A copy of the I/O tiles, which begins when the compute tiles are here.
    pub(super) fn io_stream(
        &mut self,
        sync: ProgramId,
        steps: &[ProgramId],
        ipu: IpuId,
    ) -> Result<(), S::Error> {
        self.clocks.sync_io_to_compute(ipu);
        let group = self.compiled.sync_groups.host_sync_group(ipu);
        self.external_io_sync(sync, group)?;
        for program in steps {
            let on_io = self.clocks.run_io_step(self.costs.cost_of(*program));
            self.emit(*program, [on_io])?;
        }
        Ok(())
    }

    /// The compute tiles of an IPU wait for its I/O tiles.
    pub(super) fn wait_for_io(&mut self, ipu: IpuId) -> Result<(), S::Error> {
        let behind = self.clocks.io_at(ipu).saturating_sub(self.clocks.at(ipu));
        if behind.is_zero() {
            return Ok(());
        }
        let tiles = self.compiled.compilation.target.compute_tiles_per_ipu();
        let cost = crate::compile::whole_ipu_cost(ipu, behind, tiles);
        let waiting = self.clocks.run_step(&cost);
        self.emit(self.compiled.parts.io_syncs[ipu.index()], [waiting])
    }

    /// The steps of a stream copy, whose buffer is ready at cycle `ready`.
    fn stream(
        &mut self,
        copy: &HostStreamCopy,
        lane: HostCopyLane,
        ready: Cycles,
    ) -> Result<(), S::Error> {
        let [sync, begin, mid, end] = copy.programs;
        let ipus = self.compiled.sync_groups.host_sync_group(copy.ipu);
        match lane {
            HostCopyLane::ComputeJoined => {}
            HostCopyLane::IoOverlapped => self.external_io_sync(sync, ipus)?,
            HostCopyLane::Compute | HostCopyLane::Io => {
                self.external_sync(sync, ipus, Cycles::ZERO)?;
                self.clocks.sync_io_to_compute(copy.ipu);
            }
        }
        let now = self.now(copy.ipu, lane);
        let system = &self.compiled.system;
        let cost = |cycles: Cycles, bytes_in: Bytes, bytes_out: Bytes| LeafProgramCost {
            ipu: copy.ipu,
            cycles,
            fastest_tile_cycles: cycles,
            active_tiles: copy.active_tiles,
            tile_balance: 1.0,
            bytes_in,
            bytes_out,
        };
        let transfer = system.host_cycles(copy.bytes_in + copy.bytes_out);
        let waiting = system.stream_begin_cycles.max(ready.saturating_sub(now));
        let steps = [
            (begin, cost(waiting, Bytes::ZERO, Bytes::ZERO)),
            (mid, cost(transfer, copy.bytes_in, copy.bytes_out)),
            (end, cost(system.stream_end_cycles, Bytes::ZERO, Bytes::ZERO)),
        ];
        for (program, cost) in steps {
            let on_ipu = match lane {
                HostCopyLane::Compute | HostCopyLane::ComputeJoined => self.clocks.run_step(&cost),
                HostCopyLane::Io | HostCopyLane::IoOverlapped => self.clocks.run_io_step(&cost),
            };
            self.emit(program, [on_ipu])?;
        }
        Ok(())
    }

    pub(super) fn link_copy(&mut self, copy: &StageCopyGroup) -> Result<(), S::Error> {
        if let Some([sync, exchange]) = copy.exchange {
            let all = self.all_ipus.clone();
            self.external_sync(sync, &all, Cycles::ZERO)?;
            let costs = link_costs(copy, self.compiled);
            let ipus: Vec<_> = costs.iter().map(|cost| self.clocks.run_step(cost)).collect();
            self.emit(exchange, ipus)?;
        }
        self.items(&copy.local)
    }
}

/// Which tiles of an IPU do a host copy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum HostCopyLane {
    Compute,
    /// The compute tiles, behind the sync of another copy.
    ComputeJoined,
    /// The I/O tiles, while the compute tiles wait.
    Io,
    /// The I/O tiles, while the compute tiles work.
    IoOverlapped,
}

/// What a copy between IPUs costs each of them: as long as the busiest link takes of those that its
/// data go over.
fn link_costs(copy: &StageCopyGroup, compiled: &CompiledProgram) -> Vec<LeafProgramCost> {
    let mut bytes_over: BTreeMap<IpuLink, Bytes> = BTreeMap::new();
    for flow in &copy.flows {
        for link in IpuLink::path(flow.from, flow.to) {
            *bytes_over.entry(link).or_default() += flow.bytes;
        }
    }
    let cycles_of = |flow: &InterIpuFlow| {
        let links = IpuLink::path(flow.from, flow.to).into_iter();
        links.map(|link| compiled.system.link_cycles(link, bytes_over[&link])).max()
    };
    let cost = |ipu: IpuId| {
        let mine = copy.flows.iter().filter(|flow| flow.from == ipu || flow.to == ipu);
        let cycles = mine.filter_map(cycles_of).max()?;
        let total = |is_counted: fn(&InterIpuFlow, IpuId) -> bool| {
            copy.flows.iter().filter(|flow| is_counted(flow, ipu)).map(|flow| flow.bytes).sum()
        };
        Some(LeafProgramCost {
            ipu,
            cycles,
            fastest_tile_cycles: cycles,
            active_tiles: copy.active_tiles.get(ipu.index()).copied().unwrap_or(0),
            tile_balance: 1.0,
            bytes_in: total(|flow, ipu| flow.to == ipu),
            bytes_out: total(|flow, ipu| flow.from == ipu),
        })
    };
    (0..compiled.compilation.target.ipus_per_replica).map(IpuId).filter_map(cost).collect()
}
