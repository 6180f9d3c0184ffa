//! Copies of a run: with the host, beside compute where I/O tiles do them, and between IPUs.

use super::{ProgramRunner, RunPosition, StepSink, cycles_of};
use crate::compile::{
    CompiledProgram, HostStreamCopy, InterIpuFlow, LeafProgramCost, StageCopyGroup,
};
use crate::spec::OverlapIo;
use tilescope_report::MarkKind;
use tilescope_report::units::{Bytes, Cycles, IpuId, ProgramId};

impl<S: StepSink> ProgramRunner<'_, S> {
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

    /// The framework on the host holds an iteration up.
    pub(super) fn framework_overhead(&mut self) -> Result<(), S::Error> {
        let options = &self.spec.options;
        // A pipeline that runs on over all device iterations is held up once, for all of them.
        let times = options.device_iterations / self.compiled.schedule.iterations;
        let seconds = options.host.seconds_per_iteration * times as f64;
        let cycles = cycles_of(seconds, self.spec.target.chip.clock);
        if cycles.is_zero() {
            return Ok(());
        }
        let all = self.all_ipus.clone();
        self.external_sync(self.compiled.parts.iteration_sync, &all, cycles)
    }

    /// A copy before the program starts: the host is ready.
    pub(super) fn control_copy(&mut self, copy: &HostStreamCopy) -> Result<(), S::Error> {
        self.stream(copy, HostCopyLane::Compute, Cycles::ZERO)
    }

    /// Brings a micro-batch to the compute tiles, unless the I/O tiles have it already.
    pub(super) fn input(&mut self, copy: &HostStreamCopy) -> Result<(), S::Error> {
        if !self.prefetched.remove(&copy.programs[1]) {
            self.copy_from_host(copy, self.lane())?;
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
        let filled = self.host.fill_next_buffer(stream, copy.bytes_in);
        let first = self.next_step;
        self.stream(copy, lane, filled)?;
        if let Some((micro_batch, busy)) = self.host.callback(stream) {
            let stage = &self.compiled.placement.stages[copy.stage].name;
            let label = format!("{stage} callback {micro_batch}");
            let start = RunPosition { step: first, cycle: busy.start };
            self.emit_mark(MarkKind::Callback, &label, None, None, micro_batch, &start, busy.end)?;
        }
        let at = match lane {
            HostCopyLane::Compute => self.clocks.at(copy.ipu),
            HostCopyLane::Io | HostCopyLane::IoOverlapped => self.clocks.io_at(copy.ipu),
        };
        self.host.buffer_emptied(stream, at);
        Ok(())
    }

    /// Sends results to the host.
    pub(super) fn output(&mut self, copy: &HostStreamCopy) -> Result<(), S::Error> {
        self.items(&copy.tile_items)?;
        match self.spec.options.overlap_io {
            OverlapIo::None => {
                self.stream(copy, self.lane(), Cycles::ZERO)?;
                self.wait_for_io(copy.ipu)
            }
            OverlapIo::InnerLoop | OverlapIo::Loops => {
                self.clocks.sync_io_to_compute(copy.ipu);
                self.stream(copy, HostCopyLane::IoOverlapped, Cycles::ZERO)
            }
        }
    }

    /// The lane of a host copy that nothing overlaps with.
    fn lane(&self) -> HostCopyLane {
        if self.spec.options.num_io_tiles > 0 { HostCopyLane::Io } else { HostCopyLane::Compute }
    }

    /// The compute tiles of an IPU wait for its I/O tiles.
    fn wait_for_io(&mut self, ipu: IpuId) -> Result<(), S::Error> {
        let behind = self.clocks.io_at(ipu).saturating_sub(self.clocks.at(ipu));
        if behind.is_zero() {
            return Ok(());
        }
        let tiles = self.compiled.compilation.target.compute_tiles_per_ipu();
        let cost = crate::compile::whole_ipu_cost(ipu, behind, tiles);
        let waiting = self.clocks.run_step(&cost);
        self.emit(self.compiled.parts.io_syncs[ipu.index()], [waiting])
    }

    /// The steps of a stream copy. It cannot begin before cycle `filled`.
    fn stream(
        &mut self,
        copy: &HostStreamCopy,
        lane: HostCopyLane,
        filled: Cycles,
    ) -> Result<(), S::Error> {
        let [sync, begin, mid, end] = copy.programs;
        if lane != HostCopyLane::IoOverlapped {
            let ipus = self.compiled.sync_groups.host_sync_group(copy.ipu);
            self.external_sync(sync, ipus, Cycles::ZERO)?;
            self.clocks.sync_io_to_compute(copy.ipu);
        }
        let now = match lane {
            HostCopyLane::Compute => self.clocks.at(copy.ipu),
            HostCopyLane::Io | HostCopyLane::IoOverlapped => self.clocks.io_at(copy.ipu),
        };
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
        let waiting = system.stream_begin_cycles.max(filled.saturating_sub(now));
        let steps = [
            (begin, cost(waiting, Bytes::ZERO, Bytes::ZERO)),
            (mid, cost(transfer, copy.bytes_in, copy.bytes_out)),
            (end, cost(system.stream_end_cycles, Bytes::ZERO, Bytes::ZERO)),
        ];
        for (program, cost) in steps {
            let on_ipu = match lane {
                HostCopyLane::Compute => self.clocks.run_step(&cost),
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
    /// The I/O tiles, while the compute tiles wait.
    Io,
    /// The I/O tiles, while the compute tiles work.
    IoOverlapped,
}

/// What a copy between IPUs costs each of them: links to different IPUs work side by side.
fn link_costs(copy: &StageCopyGroup, compiled: &CompiledProgram) -> Vec<LeafProgramCost> {
    let mut links: Vec<InterIpuFlow> = Vec::new();
    for flow in &copy.flows {
        match links.iter_mut().find(|link| (link.from, link.to) == (flow.from, flow.to)) {
            Some(link) => link.bytes += flow.bytes,
            None => links.push(*flow),
        }
    }
    let cost = |ipu: IpuId| {
        let mine = links.iter().filter(|link| link.from == ipu || link.to == ipu);
        let cycles =
            mine.map(|link| compiled.system.link_cycles(link.from, link.to, link.bytes)).max()?;
        let total = |count: fn(&InterIpuFlow, IpuId) -> bool| {
            links.iter().filter(|link| count(link, ipu)).map(|link| link.bytes).sum()
        };
        Some(LeafProgramCost {
            ipu,
            cycles,
            fastest_tile_cycles: cycles,
            active_tiles: copy.active_tiles.get(ipu.index()).copied().unwrap_or(0),
            tile_balance: 1.0,
            bytes_in: total(|link, ipu| link.to == ipu),
            bytes_out: total(|link, ipu| link.from == ipu),
        })
    };
    (0..compiled.compilation.target.ipus_per_replica).map(IpuId).filter_map(cost).collect()
}
