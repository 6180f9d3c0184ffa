//! Runs a compiled program: a clock per IPU, joined by syncs.
//!
//! Programs are static and tiles of an IPU move in lock-step, so no event engine is needed: a step
//! costs its slowest tile, a sync waits for the last IPU, and the steps come out in program order.

mod clocks;

use crate::report::{Mark, MarkKind, Pass, Step, StepOnIpu};
use crate::sim::compile::{Compiled, Fragment, HostCopy, Item, LeafCost, LinkCopy, pass_name};
use crate::sim::schedule::{Slot, Turn, Update};
use crate::sim::spec::OutputMode;
use crate::units::{CycleRange, ProgramId, StepId};
use clocks::Clocks;

/// Takes the executed steps in program order, and the marks once their last step is out.
pub trait Sink {
    /// What can go wrong while taking a step.
    type Error;

    /// Takes the next step.
    ///
    /// # Errors
    /// Whatever the sink reports; the run stops.
    fn step(&mut self, step: &Step) -> Result<(), Self::Error>;

    /// Takes a mark.
    ///
    /// # Errors
    /// Whatever the sink reports; the run stops.
    fn mark(&mut self, mark: &Mark) -> Result<(), Self::Error>;

    /// Hears how much of the run is done, 0 to 1.
    fn progress(&mut self, share: f64) {
        let _ = share;
    }
}

/// Runs the program once, as one host call does.
///
/// # Errors
/// The first error of the sink.
pub fn run<S: Sink>(
    compiled: &Compiled,
    output_mode: OutputMode,
    sink: &mut S,
) -> Result<(), S::Error> {
    let ipus = compiled.compilation.target.ipus_per_replica;
    let mut runner = Runner { compiled, output_mode, sink, clocks: Clocks::new(ipus), next: 0 };
    let start = runner.here();
    runner.prologue()?;
    runner.iterations()?;
    runner.mark(MarkKind::Run, "Engine::run #0", None, 0, &start)
}

/// Bars the trace of a run will have: one per step and IPU that takes part.
pub fn count_bars(compiled: &Compiled, output_mode: OutputMode) -> u64 {
    struct Counter(u64);
    impl Sink for Counter {
        type Error = std::convert::Infallible;

        fn step(&mut self, step: &Step) -> Result<(), Self::Error> {
            self.0 += step.ipus.len() as u64;
            Ok(())
        }

        fn mark(&mut self, _: &Mark) -> Result<(), Self::Error> {
            Ok(())
        }
    }
    let mut counter = Counter(0);
    match run(compiled, output_mode, &mut counter) {
        Ok(()) => counter.0,
        Err(never) => match never {},
    }
}

/// A place in the run: the next step, and the time on one IPU or the latest on all.
#[derive(Clone, Copy)]
struct Place {
    step: u64,
    cycle: u64,
}

struct Runner<'a, S> {
    compiled: &'a Compiled,
    output_mode: OutputMode,
    sink: &'a mut S,
    clocks: Clocks,
    next: u64,
}

impl<S: Sink> Runner<'_, S> {
    fn here(&self) -> Place {
        Place { step: self.next, cycle: self.clocks.latest() }
    }

    /// Ends a mark that began at `start` and concerns all IPUs.
    fn mark(
        &mut self,
        kind: MarkKind,
        label: &str,
        pass: Option<Pass>,
        index: u64,
        start: &Place,
    ) -> Result<(), S::Error> {
        let here = self.here();
        self.emit_mark(kind, label, None, pass, index, start, here.cycle)
    }

    #[expect(clippy::too_many_arguments, reason = "the fields of a mark")]
    fn emit_mark(
        &mut self,
        kind: MarkKind,
        label: &str,
        ipu: Option<u32>,
        pass: Option<Pass>,
        index: u64,
        start: &Place,
        end_cycle: u64,
    ) -> Result<(), S::Error> {
        if self.next == start.step {
            return Ok(());
        }
        self.sink.mark(&Mark {
            kind,
            label: label.to_string(),
            ipu,
            pass,
            index,
            steps: StepId(start.step)..StepId(self.next),
            cycles: CycleRange::new(start.cycle, end_cycle),
        })
    }

    fn emit(&mut self, program: ProgramId, ipus: Vec<StepOnIpu>) -> Result<(), S::Error> {
        self.next += 1;
        self.sink.step(&Step { program, ipus })
    }

    fn prologue(&mut self) -> Result<(), S::Error> {
        let compiled = self.compiled;
        for copy in &compiled.prologue.copies {
            self.host_copy(copy)?;
        }
        self.items(&compiled.prologue.broadcast)
    }

    fn iterations(&mut self) -> Result<(), S::Error> {
        let schedule = &self.compiled.schedule;
        for iteration in 0..schedule.iterations {
            let start = self.here();
            let mut phase_start = start;
            for (index, slot) in schedule.slots.iter().enumerate() {
                let slot_start = self.here();
                self.slot(slot, iteration)?;
                self.mark(
                    MarkKind::Slot,
                    &format!("slot {index}"),
                    None,
                    index as u64,
                    &slot_start,
                )?;
                let ends =
                    schedule.slots.get(index + 1).is_none_or(|next| next.phase != slot.phase);
                if ends {
                    self.mark(MarkKind::Phase, slot.phase.name(), None, iteration, &phase_start)?;
                    phase_start = self.here();
                }
                let done = iteration as f64 + (index + 1) as f64 / schedule.slots.len() as f64;
                self.sink.progress(done / schedule.iterations as f64);
            }
            if schedule.update == Update::PerIteration {
                self.updates(iteration)?;
            }
            self.mark(
                MarkKind::Iteration,
                &format!("iteration {iteration}"),
                None,
                iteration,
                &start,
            )?;
        }
        Ok(())
    }

    fn updates(&mut self, iteration: u64) -> Result<(), S::Error> {
        for stage in 0..self.compiled.placement.stages.len() {
            self.update(stage, iteration)?;
        }
        Ok(())
    }

    fn update(&mut self, stage: usize, index: u64) -> Result<(), S::Error> {
        match self.compiled.fragment(stage, Pass::Update) {
            Some(fragment) => self.fragment(fragment, MarkKind::Update, index),
            None => Ok(()),
        }
    }

    fn slot(&mut self, slot: &Slot, iteration: u64) -> Result<(), S::Error> {
        let compiled = self.compiled;
        let forward = |copy: &&HostCopy| {
            slot.turns.iter().find(|turn| turn.stage == copy.stage && turn.pass == Pass::Forward)
        };
        for copy in compiled.host_inputs.iter().filter(|copy| forward(copy).is_some()) {
            self.host_copy(copy)?;
        }
        for turn in &slot.turns {
            self.turn(turn, iteration)?;
        }
        for copy in &compiled.host_outputs {
            if forward(&copy).is_some_and(|turn| self.sends_output(turn, iteration)) {
                self.host_copy(copy)?;
            }
        }
        for copy in compiled.link_copies.iter().filter(|_| slot.copies) {
            let works = |stage, pass| {
                slot.turns.iter().any(|turn| (turn.stage, turn.pass) == (stage, pass))
            };
            if copy.after.is_none_or(|(stage, pass)| works(stage, pass)) {
                self.link_copy(copy)?;
            }
        }
        Ok(())
    }

    /// Whether the results of this turn's micro-batch go to the host.
    fn sends_output(&self, turn: &Turn, iteration: u64) -> bool {
        let schedule = &self.compiled.schedule;
        match self.output_mode {
            OutputMode::All => true,
            OutputMode::Final => {
                iteration + 1 == schedule.iterations
                    && turn.micro_batch + 1 == schedule.micro_batches
            }
        }
    }

    fn turn(&mut self, turn: &Turn, iteration: u64) -> Result<(), S::Error> {
        let schedule = &self.compiled.schedule;
        let batch = iteration * schedule.micro_batches + turn.micro_batch;
        if let Some(fragment) = self.compiled.fragment(turn.stage, turn.pass) {
            self.fragment(fragment, MarkKind::Stage, batch)?;
        }
        if turn.pass == Pass::Backward && schedule.update == Update::PerMicroBatch {
            self.update(turn.stage, batch)?;
        }
        Ok(())
    }

    fn fragment(
        &mut self,
        fragment: &Fragment,
        kind: MarkKind,
        index: u64,
    ) -> Result<(), S::Error> {
        let ipu = fragment.ipu;
        let start = Place { step: self.next, cycle: self.clocks.at(ipu) };
        self.items(&fragment.items)?;
        let name = &self.compiled.placement.stages[fragment.stage].name;
        let label = format!("{name} {}", pass_name(fragment.pass));
        let end = self.clocks.at(ipu);
        self.emit_mark(kind, &label, Some(ipu), Some(fragment.pass), index, &start, end)
    }

    fn items(&mut self, items: &[Item]) -> Result<(), S::Error> {
        for item in items {
            match item {
                Item::Leaf(program) => {
                    let cost = self.compiled.costs.get(program);
                    let cost = *cost.unwrap_or_else(|| panic!("program {program:?} has no cost"));
                    let on_ipu = self.clocks.spend(&cost);
                    self.emit(*program, vec![on_ipu])?;
                }
                Item::Loop { times, body } => {
                    for _ in 0..*times {
                        self.items(body)?;
                    }
                }
            }
        }
        Ok(())
    }

    fn external_sync(&mut self, program: ProgramId) -> Result<(), S::Error> {
        let tiles = self.compiled.compilation.target.tiles_per_ipu;
        let waits = self.clocks.join(self.compiled.system.external_sync_cycles, tiles);
        self.emit(program, waits)
    }

    fn host_copy(&mut self, copy: &HostCopy) -> Result<(), S::Error> {
        let [sync, begin, mid, end] = copy.programs;
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
        let steps = [
            (begin, cost(system.stream_begin_cycles, 0, 0)),
            (mid, cost(transfer, copy.bytes_in, copy.bytes_out)),
            (end, cost(system.stream_end_cycles, 0, 0)),
        ];
        self.external_sync(sync)?;
        for (program, cost) in steps {
            let on_ipu = self.clocks.spend(&cost);
            self.emit(program, vec![on_ipu])?;
        }
        Ok(())
    }

    fn link_copy(&mut self, copy: &LinkCopy) -> Result<(), S::Error> {
        let [sync, exchange] = copy.programs;
        self.external_sync(sync)?;
        let costs = link_costs(copy, self.compiled);
        let ipus = costs.iter().map(|cost| self.clocks.spend(cost)).collect();
        self.emit(exchange, ipus)
    }
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

#[cfg(test)]
mod tests;
