//! Copies of a run: with the host, beside compute where I/O tiles do them, and between IPUs.

use super::{Place, Runner, Sink};
use crate::compile::{Compiled, HostCopy, LeafCost, LinkCopy};
use crate::spec::OverlapIo;
use tilescope_report::MarkKind;
use tilescope_report::units::ProgramId;

impl<S: Sink> Runner<'_, S> {
    /// A sync of some IPUs that takes `extra` cycles longer than its signal.
    pub(super) fn external_sync(
        &mut self,
        program: ProgramId,
        ipus: &[u32],
        extra: u64,
    ) -> Result<(), S::Error> {
        let tiles = self.compiled.compilation.target.tiles_per_ipu;
        let cycles = self.compiled.system.external_sync_cycles + extra;
        let waits = self.clocks.join(ipus, cycles, tiles);
        self.emit(program, waits)
    }

    /// The framework on the host holds an iteration up.
    pub(super) fn hold_iteration(&mut self) -> Result<(), S::Error> {
        let options = &self.spec.options;
        // A pipeline that runs on over all device iterations is held up once, for all of them.
        let times = options.device_iterations / self.compiled.schedule.iterations;
        let seconds = options.host.seconds_per_iteration * times as f64;
        let cycles = (seconds * self.spec.target.chip.clock_hz as f64).round() as u64;
        if cycles == 0 {
            return Ok(());
        }
        let all = self.all.clone();
        self.external_sync(self.compiled.iteration_sync, &all, cycles)
    }

    /// A copy before the program starts: the host is ready.
    pub(super) fn control_copy(&mut self, copy: &HostCopy) -> Result<(), S::Error> {
        self.stream(copy, Lane::Compute, 0)
    }

    /// Brings a micro-batch to the compute tiles, unless the I/O tiles have it already.
    pub(super) fn input(&mut self, copy: &HostCopy) -> Result<(), S::Error> {
        if !self.loaded.remove(&copy.programs[1]) {
            self.copy_from_host(copy, self.lane())?;
        }
        self.wait_for_io(copy.ipu)?;
        self.items(&copy.on_tiles)
    }

    /// Starts to load the next micro-batch on the I/O tiles.
    pub(super) fn load_ahead(&mut self, copy: &HostCopy) -> Result<(), S::Error> {
        self.clocks.io_follows(copy.ipu);
        self.copy_from_host(copy, Lane::IoBeside)?;
        self.loaded.insert(copy.programs[1]);
        Ok(())
    }

    fn copy_from_host(&mut self, copy: &HostCopy, lane: Lane) -> Result<(), S::Error> {
        let stream = copy.programs[1];
        let filled = self.host.filled(stream, copy.bytes_in);
        let first = self.next;
        self.stream(copy, lane, filled)?;
        if let Some((micro_batch, busy)) = self.host.callback(stream) {
            let stage = &self.compiled.placement.stages[copy.stage].name;
            let label = format!("{stage} callback {micro_batch}");
            let start = Place { step: first, cycle: busy.start };
            self.emit_mark(MarkKind::Callback, &label, None, None, micro_batch, &start, busy.end)?;
        }
        let at = match lane {
            Lane::Compute => self.clocks.at(copy.ipu),
            Lane::Io | Lane::IoBeside => self.clocks.io_at(copy.ipu),
        };
        self.host.emptied(stream, at);
        Ok(())
    }

    /// Sends results to the host.
    pub(super) fn output(&mut self, copy: &HostCopy) -> Result<(), S::Error> {
        self.items(&copy.on_tiles)?;
        match self.spec.options.overlap_io {
            OverlapIo::None => {
                self.stream(copy, self.lane(), 0)?;
                self.wait_for_io(copy.ipu)
            }
            OverlapIo::InnerLoop | OverlapIo::Loops => {
                self.clocks.io_follows(copy.ipu);
                self.stream(copy, Lane::IoBeside, 0)
            }
        }
    }

    /// The lane of a host copy that nothing overlaps with.
    fn lane(&self) -> Lane {
        if self.spec.options.num_io_tiles > 0 { Lane::Io } else { Lane::Compute }
    }

    /// The compute tiles of an IPU wait for its I/O tiles.
    fn wait_for_io(&mut self, ipu: u32) -> Result<(), S::Error> {
        let behind = self.clocks.io_at(ipu).saturating_sub(self.clocks.at(ipu));
        if behind == 0 {
            return Ok(());
        }
        let tiles = self.compiled.compilation.target.compute_tiles_per_ipu();
        let cost = crate::compile::whole_ipu(ipu, behind, tiles);
        let waiting = self.clocks.spend(&cost);
        self.emit(self.compiled.io_syncs[ipu as usize], [waiting])
    }

    /// The steps of a stream copy. It cannot begin before cycle `filled`.
    fn stream(&mut self, copy: &HostCopy, lane: Lane, filled: u64) -> Result<(), S::Error> {
        let [sync, begin, mid, end] = copy.programs;
        if lane != Lane::IoBeside {
            let ipus = self.compiled.sync_groups.with_host(copy.ipu);
            self.external_sync(sync, ipus, 0)?;
            self.clocks.io_follows(copy.ipu);
        }
        let now = match lane {
            Lane::Compute => self.clocks.at(copy.ipu),
            Lane::Io | Lane::IoBeside => self.clocks.io_at(copy.ipu),
        };
        let system = &self.compiled.system;
        let cost = |cycles: u64, bytes_in: u64, bytes_out: u64| LeafCost {
            ipu: copy.ipu,
            cycles,
            shortest: cycles,
            active_tiles: copy.active_tiles,
            balance: 1.0,
            bytes_in,
            bytes_out,
        };
        let transfer = system.host_cycles(copy.bytes_in + copy.bytes_out);
        let waiting = system.stream_begin_cycles.max(filled.saturating_sub(now));
        let steps = [
            (begin, cost(waiting, 0, 0)),
            (mid, cost(transfer, copy.bytes_in, copy.bytes_out)),
            (end, cost(system.stream_end_cycles, 0, 0)),
        ];
        for (program, cost) in steps {
            let on_ipu = match lane {
                Lane::Compute => self.clocks.spend(&cost),
                Lane::Io | Lane::IoBeside => self.clocks.spend_io(&cost),
            };
            self.emit(program, [on_ipu])?;
        }
        Ok(())
    }

    pub(super) fn link_copy(&mut self, copy: &LinkCopy) -> Result<(), S::Error> {
        if let Some([sync, exchange]) = copy.exchange {
            let all = self.all.clone();
            self.external_sync(sync, &all, 0)?;
            let costs = link_costs(copy, self.compiled);
            let ipus: Vec<_> = costs.iter().map(|cost| self.clocks.spend(cost)).collect();
            self.emit(exchange, ipus)?;
        }
        self.items(&copy.local)
    }
}

/// Which tiles of an IPU do a host copy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Lane {
    Compute,
    /// The I/O tiles, while the compute tiles wait.
    Io,
    /// The I/O tiles, while the compute tiles work.
    IoBeside,
}

/// What a copy between IPUs costs each of them: links to different IPUs work side by side.
fn link_costs(copy: &LinkCopy, compiled: &Compiled) -> Vec<LeafCost> {
    let mut links: Vec<(u32, u32, u64)> = Vec::new();
    for (from, to, bytes) in &copy.flows {
        match links.iter_mut().find(|link| (link.0, link.1) == (*from, *to)) {
            Some(link) => link.2 += bytes,
            None => links.push((*from, *to, *bytes)),
        }
    }
    let cost = |ipu: u32| {
        let mine = links.iter().filter(|(from, to, _)| *from == ipu || *to == ipu);
        let cycles =
            mine.map(|(from, to, bytes)| compiled.system.link_cycles(*from, *to, *bytes)).max()?;
        let total = |count: fn(&(u32, u32, u64), u32) -> bool| {
            links.iter().filter(|link| count(link, ipu)).map(|link| link.2).sum()
        };
        Some(LeafCost {
            ipu,
            cycles,
            shortest: cycles,
            active_tiles: copy.active_tiles.get(ipu as usize).copied().unwrap_or(0),
            balance: 1.0,
            bytes_in: total(|link, ipu| link.1 == ipu),
            bytes_out: total(|link, ipu| link.0 == ipu),
        })
    };
    (0..compiled.compilation.target.ipus_per_replica).filter_map(cost).collect()
}
