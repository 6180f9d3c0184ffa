//! Runs a compiled program: a clock per IPU, joined by syncs.
//!
//! Programs are static and tiles of an IPU move in lock-step, so no event engine is needed: a step
//! costs its slowest tile, a sync waits for the last IPU, and the steps come out in program order.

mod clocks;
mod copies;
mod host;
mod sums;

pub use host::loader_seconds;

use crate::compile::{Compiled, Fragment, HostCopy, Item, LeafCost, pass_name};
use crate::schedule::{Slot, Turn, Update};
use crate::spec::{Loader, OutputMode, OverlapIo, Spec};
use clocks::Clocks;
use host::Host;
use std::collections::BTreeSet;
use sums::Sums;
use tilescope_report::units::{CycleRange, ProgramId, StepId};
use tilescope_report::{TraceMark, MarkKind, TrainingPass, ExecutionStep, StepOnIpu};

/// Takes the executed steps in program order, and the marks once their last step is out.
pub trait Sink {
    /// What can go wrong while taking a step.
    type Error;

    /// Whether each step matters. Where it does not, steps that one IPU does on its own are only
    /// counted, by [`Sink::skip`].
    const EACH_STEP: bool = true;

    /// Hears of `steps` steps of one IPU each that it does not get to see.
    fn skip(&mut self, steps: u64) {
        let _ = steps;
    }

    /// Takes the next step.
    ///
    /// # Errors
    /// Whatever the sink reports; the run stops.
    fn step(&mut self, step: &ExecutionStep) -> Result<(), Self::Error>;

    /// Takes a mark.
    ///
    /// # Errors
    /// Whatever the sink reports; the run stops.
    fn mark(&mut self, mark: &TraceMark) -> Result<(), Self::Error>;

    /// Hears how much of the run is done, 0 to 1.
    fn progress(&mut self, share: f64) {
        let _ = share;
    }
}

/// What a run will be like.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rehearsal {
    /// Bars of the trace: one per step and IPU that takes part.
    pub bars: u64,
    /// Cycles until the samples of the call are there.
    pub samples_ready: u64,
}

/// Runs the program once, as one host call does.
///
/// # Errors
/// The first error of the sink.
pub fn run<S: Sink>(
    compiled: &Compiled,
    spec: &Spec,
    rehearsal: &Rehearsal,
    sink: &mut S,
) -> Result<(), S::Error> {
    run_from(compiled, spec, rehearsal.samples_ready, sink).map(|_| ())
}

/// Runs the program without keeping its steps: how many there are, and how long the loader makes a
/// call wait.
pub fn rehearse(compiled: &Compiled, spec: &Spec) -> Rehearsal {
    struct Counter(u64);
    impl Sink for Counter {
        type Error = std::convert::Infallible;

        const EACH_STEP: bool = false;

        fn skip(&mut self, steps: u64) {
            self.0 += steps;
        }

        fn step(&mut self, step: &ExecutionStep) -> Result<(), Self::Error> {
            self.0 += step.ipus.len() as u64;
            Ok(())
        }

        fn mark(&mut self, _: &TraceMark) -> Result<(), Self::Error> {
            Ok(())
        }
    }
    let mut counter = Counter(0);
    let cycles = match run_from(compiled, spec, 0, &mut counter) {
        Ok(cycles) => cycles,
        Err(never) => match never {},
    };
    let clock = spec.target.chip.clock_hz as f64;
    let (samples, bytes) = call_size(compiled, spec);
    let load = loader_seconds(spec, samples, bytes);
    let wait = host::wait_for_loader(&spec.options.host, cycles as f64 / clock, load);
    Rehearsal { bars: counter.0, samples_ready: (wait * clock).round() as u64 }
}

/// Samples of a host call, and the bytes of its inputs over all replicas.
pub fn call_size(compiled: &Compiled, spec: &Spec) -> (u64, u64) {
    let options = &spec.options;
    let micro_batches = options.gradient_accumulation
        * options.device_iterations
        * u64::from(options.replication_factor);
    let bytes: u64 = compiled.host_inputs.iter().map(|copy| copy.bytes_in).sum();
    (micro_batches * spec.model.batch_size, micro_batches * bytes)
}

/// Runs the program and returns the cycle at which it ends.
fn run_from<S: Sink>(
    compiled: &Compiled,
    spec: &Spec,
    samples_ready: u64,
    sink: &mut S,
) -> Result<u64, S::Error> {
    let ipus = compiled.compilation.target.ipus_per_replica;
    let input_bytes = compiled.host_inputs.iter().map(|copy| copy.bytes_in).sum();
    let mut runner = Runner {
        compiled,
        spec,
        sink,
        costs: Costs::new(compiled),
        sums: Sums::default(),
        step: ExecutionStep { program: ProgramId(0), ipus: Vec::new() },
        clocks: Clocks::new(ipus),
        host: Host::new(spec, input_bytes, samples_ready),
        loaded: BTreeSet::new(),
        all: (0..ipus).collect(),
        next: 0,
    };
    let start = runner.here();
    runner.prologue()?;
    runner.iterations()?;
    runner.mark(MarkKind::Run, "Engine::run #0", None, 0, &start)?;
    runner.loader(&start)?;
    Ok(runner.clocks.latest())
}

/// What leaf programs cost, by their number.
struct Costs(Vec<Option<LeafCost>>);

impl Costs {
    fn new(compiled: &Compiled) -> Self {
        let mut costs = vec![None; compiled.compilation.programs.len()];
        for (program, cost) in &compiled.costs {
            costs[program.index()] = Some(*cost);
        }
        Self(costs)
    }

    fn of(&self, program: ProgramId) -> &LeafCost {
        let cost = self.0.get(program.index()).and_then(Option::as_ref);
        cost.unwrap_or_else(|| panic!("program {program:?} has no cost"))
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
    spec: &'a Spec,
    sink: &'a mut S,
    costs: Costs,
    sums: Sums,
    /// The step being handed over; kept, so that steps take no memory from the heap.
    step: ExecutionStep,
    clocks: Clocks,
    host: Host,
    /// Copies from the host whose next micro-batch is on the I/O tiles already.
    loaded: BTreeSet<ProgramId>,
    all: Vec<u32>,
    next: u64,
}

impl<'a, S: Sink> Runner<'a, S> {
    fn here(&self) -> Place {
        Place { step: self.next, cycle: self.clocks.latest() }
    }

    /// Ends a mark that began at `start` and concerns all IPUs.
    fn mark(
        &mut self,
        kind: MarkKind,
        label: &str,
        pass: Option<TrainingPass>,
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
        pass: Option<TrainingPass>,
        index: u64,
        start: &Place,
        end_cycle: u64,
    ) -> Result<(), S::Error> {
        if self.next == start.step {
            return Ok(());
        }
        self.sink.mark(&TraceMark {
            kind,
            label: label.to_string(),
            ipu,
            pass,
            index,
            steps: StepId(start.step)..StepId(self.next),
            cycles: CycleRange::new(start.cycle, end_cycle),
        })
    }

    fn emit(
        &mut self,
        program: ProgramId,
        ipus: impl IntoIterator<Item = StepOnIpu>,
    ) -> Result<(), S::Error> {
        self.next += 1;
        self.step.program = program;
        self.step.ipus.clear();
        self.step.ipus.extend(ipus);
        self.sink.step(&self.step)
    }

    /// What the loader of this call, and of those behind it, does meanwhile.
    fn loader(&mut self, start: &Place) -> Result<(), S::Error> {
        let ahead = match self.spec.options.host.loader {
            Loader::None | Loader::Synthetic => return Ok(()),
            Loader::Sync => false,
            Loader::Async => true,
        };
        let (samples, bytes) = call_size(self.compiled, self.spec);
        let seconds = loader_seconds(self.spec, samples, bytes);
        let cycles = (seconds * self.spec.target.chip.clock_hz as f64).round() as u64;
        let ready = self.host.samples_ready();
        let end = self.clocks.latest().min(ready + cycles);
        if ready > 0 {
            self.emit_mark(MarkKind::Loader, "this call", None, None, 0, start, ready)?;
        }
        if ahead && end > ready {
            let start = Place { cycle: ready, ..*start };
            self.emit_mark(MarkKind::Loader, "a later call", None, None, 1, &start, end)?;
        }
        Ok(())
    }

    fn prologue(&mut self) -> Result<(), S::Error> {
        let compiled = self.compiled;
        for copy in &compiled.prologue.copies {
            self.control_copy(copy)?;
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
                if schedule.phased {
                    if index == 0 {
                        self.fetch_ahead(slot)?;
                    }
                    if let Some(next) = schedule.slots.get(index + 1) {
                        self.fetch_ahead(next)?;
                    }
                }
                let next = self.next_slot(index, iteration);
                self.slot(slot, next, iteration)?;
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
            self.hold_iteration()?;
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
        match self.compiled.fragment(stage, TrainingPass::Update) {
            Some(fragment) => self.fragment(fragment, MarkKind::Update, index),
            None => Ok(()),
        }
    }

    /// The slot behind this one, if the host's next micro-batch may come while this one works.
    fn next_slot(&self, index: usize, iteration: u64) -> Option<&'a Slot> {
        let compiled: &'a Compiled = self.compiled;
        let schedule = &compiled.schedule;
        let next = schedule.slots.get(index + 1);
        match self.spec.options.overlap_io {
            OverlapIo::None => None,
            OverlapIo::InnerLoop => next,
            OverlapIo::Loops if iteration + 1 < schedule.iterations => {
                next.or(schedule.slots.first())
            }
            OverlapIo::Loops => next,
        }
    }

    /// The slot whose streaming memory is fetched while this one works: the one behind it.
    fn fetch_ahead(&mut self, slot: &Slot) -> Result<(), S::Error> {
        let compiled = self.compiled;
        for turn in &slot.turns {
            if let Some(fragment) = compiled.fragment(turn.stage, turn.pass) {
                self.items(&fragment.loads)?;
            }
        }
        Ok(())
    }

    fn slot(&mut self, slot: &Slot, next: Option<&Slot>, iteration: u64) -> Result<(), S::Error> {
        let compiled = self.compiled;
        for copy in compiled.host_inputs.iter().filter(|copy| forward(slot, copy).is_some()) {
            self.input(copy)?;
        }
        if let Some(next) = next {
            for copy in compiled.host_inputs.iter().filter(|copy| forward(next, copy).is_some()) {
                self.load_ahead(copy)?;
            }
        }
        for turn in &slot.turns {
            self.turn(turn, iteration)?;
        }
        for copy in &compiled.host_outputs {
            if let Some(turn) = forward(slot, copy) {
                self.items(&copy.sum)?;
                if self.sends_output(turn, iteration) {
                    self.output(copy)?;
                }
            }
        }
        for copy in compiled.link_copies.iter().filter(|_| slot.copies) {
            let works = |(stage, pass): &(usize, TrainingPass)| {
                slot.turns.iter().any(|turn| (turn.stage, turn.pass) == (*stage, *pass))
            };
            if copy.after.is_empty() || copy.after.iter().any(works) {
                self.link_copy(copy)?;
            }
        }
        Ok(())
    }

    /// Whether the results of this turn's micro-batch go to the host.
    fn sends_output(&self, turn: &Turn, iteration: u64) -> bool {
        let schedule = &self.compiled.schedule;
        let batch = iteration * schedule.micro_batches + turn.micro_batch;
        match self.spec.options.output_mode {
            OutputMode::All => true,
            OutputMode::Final | OutputMode::Sum => {
                batch + 1 == schedule.iterations * schedule.micro_batches
            }
            OutputMode::EveryN => {
                (batch + 1).is_multiple_of(self.spec.options.output_return_period)
            }
        }
    }

    fn turn(&mut self, turn: &Turn, iteration: u64) -> Result<(), S::Error> {
        let schedule = &self.compiled.schedule;
        let batch = iteration * schedule.micro_batches + turn.micro_batch;
        if let Some(fragment) = self.compiled.fragment(turn.stage, turn.pass) {
            self.fragment(fragment, MarkKind::Stage, batch)?;
        }
        if turn.pass == TrainingPass::Backward && schedule.update == Update::PerMicroBatch {
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
        if !S::EACH_STEP
            && let Some(sum) = self.sums.of(items, &self.costs)
        {
            self.clocks.pass(sum.ipu, sum.cycles);
            self.next += sum.steps;
            self.sink.skip(sum.steps);
            return Ok(());
        }
        for item in items {
            match item {
                Item::Leaf(program) => {
                    let on_ipu = self.clocks.spend(self.costs.of(*program));
                    self.emit(*program, [on_ipu])?;
                }
                Item::HostSync { program, ipu } => {
                    let ipus = self.compiled.sync_groups.with_host(*ipu);
                    self.external_sync(*program, ipus, 0)?;
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
}

/// The turn of a slot that a host copy belongs to.
fn forward<'a>(slot: &'a Slot, copy: &HostCopy) -> Option<&'a Turn> {
    slot.turns.iter().find(|turn| turn.stage == copy.stage && turn.pass == TrainingPass::Forward)
}

#[cfg(test)]
mod tests;
