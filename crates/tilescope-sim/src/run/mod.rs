//! The run of a compiled program: a clock per IPU, joined by syncs.
//!
//! Programs are static and the tiles of an IPU move in lock-step, so no event engine is needed. A
//! step takes the time of its slowest tile, a sync waits for the last IPU, and the steps are
//! emitted in program order.

mod clocks;
mod copies;
mod dry_run;
mod host;
mod leaf_costs;
mod phase_loads;
mod side_by_side;
mod step_sequences;
mod trial;

use dry_run::input_bytes;
pub use dry_run::{DryRunSummary, HostCallInputs, dry_run, host_call_inputs};
pub(crate) use dry_run::{retimed_cycles, run_cycles};
pub use host::loader_seconds;
pub(crate) use trial::{length_of_run, shortened};

use crate::compile::{CompiledProgram, FragmentItem, HostStreamCopy, StageFragment, pass_name};
use crate::schedule::{ScheduleSlot, StageTurn, WeightUpdateTiming};
use crate::specification::{DataLoaderMode, OutputMode, OverlapIo, Spec};
use clocks::{IpuClocks, TileGroup};
use host::{AlikeReplicas, HostTimeline, WaitTotals, loader_seconds_of};
use leaf_costs::LeafCostTable;
use std::collections::BTreeSet;
use step_sequences::StepSequenceCache;
use tilescope_report::units::{
    CycleRange, Cycles, Hertz, IpuId, ProgramId, ReplicaClassId, StepId,
};
use tilescope_report::{ExecutionStep, MarkKind, TraceMark, TrainingPass};

/// A receiver of the executed steps in program order, and of each mark after its last step.
pub trait StepSink {
    /// The error of taking a step.
    type Error;

    /// True if each step matters. If false, steps that one IPU runs alone are only counted, by
    /// [`StepSink::count_steps`].
    const RECORDS_EACH_STEP: bool = true;

    /// Counts `steps` steps of one IPU and one class of replicas that are not passed to
    /// [`StepSink::step`].
    fn count_steps(&mut self, steps: u64) {
        let _ = steps;
    }

    /// Takes the next step.
    ///
    /// # Errors
    /// Returns an error of the sink, which stops the run.
    fn step(&mut self, step: &ExecutionStep) -> Result<(), Self::Error>;

    /// Records that the next step of the tiles `waiting` of an IPU waits for the work of its tiles
    /// `awaited` so far, on all replicas. Both are numbers of sub-lanes in a trace.
    fn wait_for_tiles(&mut self, ipu: IpuId, waiting: u8, awaited: u8) {
        let _ = (ipu, waiting, awaited);
    }

    /// Takes a mark of the first class of replicas.
    ///
    /// # Errors
    /// Returns an error of the sink, which stops the run.
    fn mark(&mut self, mark: &TraceMark) -> Result<(), Self::Error>;

    /// Takes a mark of an IPU of another class of replicas.
    ///
    /// # Errors
    /// Returns an error of the sink, which stops the run.
    fn mark_of_class(
        &mut self,
        class: ReplicaClassId,
        mark: &TraceMark,
    ) -> Result<(), Self::Error> {
        let _ = (class, mark);
        Ok(())
    }

    /// Takes the share of the run that is done, from 0 to 1.
    fn progress(&mut self, share: f64) {
        let _ = share;
    }
}

/// Runs the program once, as one host call does.
///
/// # Errors
/// Returns the first error of the sink.
pub fn run<S: StepSink>(
    compiled: &CompiledProgram,
    spec: &Spec,
    dry_run_summary: &DryRunSummary,
    sink: &mut S,
) -> Result<(), S::Error> {
    let source = SampleSource::Host(&dry_run_summary.samples_ready);
    run_from(compiled, spec, LeafCostTable::new(compiled), source, sink).map(|_| ())
}

/// The source of the samples of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum SampleSource<'a> {
    /// The host, which has the samples ready after these cycles, for each class of replicas.
    Host(&'a [Cycles]),
    /// The IPUs. No input or output of the model is copied from or to the host.
    Ipu,
}

/// The length of a run, in cycles.
#[derive(Clone, Debug)]
struct RunLength {
    /// Cycles until the last replica is done.
    whole: Cycles,
    /// Cycles of the control copies at the start.
    handshake: Cycles,
    /// The waits of the classes of replicas.
    waits: Vec<WaitTotals>,
    /// Programs whose steps end on all replicas at once, if these differ.
    joins: BTreeSet<ProgramId>,
}

/// Runs the program and returns the length of the run.
fn run_from<S: StepSink>(
    compiled: &CompiledProgram,
    spec: &Spec,
    costs: LeafCostTable,
    source: SampleSource<'_>,
    sink: &mut S,
) -> Result<RunLength, S::Error> {
    let ipus = compiled.compilation.target.ipus_per_replica;
    let input_bytes = input_bytes(compiled);
    let parts = &compiled.parts;
    let groups = AlikeReplicas::of(spec);
    let at_once = vec![Cycles::ZERO; groups.len()];
    let (samples_ready, inputs, outputs): (_, &[HostStreamCopy], &[HostStreamCopy]) = match source {
        SampleSource::Host(ready) => (ready, &parts.host_inputs, &parts.host_outputs),
        SampleSource::Ipu => (&at_once[..], &[], &[]),
    };
    let hosts = groups.iter().zip(samples_ready);
    let hosts = hosts.map(|(of, ready)| HostTimeline::new(spec, of, input_bytes, *ready)).collect();
    let mut runner = ProgramRunner {
        compiled,
        spec,
        sink,
        costs,
        sums: StepSequenceCache::default(),
        step: ExecutionStep::new(ProgramId(0), Vec::new()),
        joins: BTreeSet::new(),
        span: None,
        clocks: IpuClocks::new(ipus, groups.len()),
        hosts,
        inputs,
        outputs,
        prefetched: BTreeSet::new(),
        unsent: Vec::new(),
        all_ipus: (0..ipus).map(IpuId).collect(),
        meeting_passes: meeting_passes(compiled),
        next_step: StepId(0),
    };
    let start = runner.position();
    runner.call_begins()?;
    let handshake = runner.prologue()?;
    runner.iterations()?;
    runner.call_ends()?;
    runner.mark(MarkKind::Run, "Engine::run #0", None, 0, &start)?;
    runner.loader(&start)?;
    let whole = runner.clocks.latest_of_classes().into_iter().max().unwrap_or_default();
    Ok(RunLength { whole, handshake, waits: runner.clocks.waits(), joins: runner.joins })
}

/// Converts seconds to the nearest whole number of cycles of `clock`.
fn cycles_of(seconds: f64, clock: Hertz) -> Cycles {
    Cycles::from_f64((seconds * clock.0 as f64).round())
}

/// A position in the run: the next step, and the time on one IPU or the latest on all.
#[derive(Clone, Copy)]
struct RunPosition {
    step: StepId,
    cycle: Cycles,
}

/// The description of a mark.
struct MarkWords<'a> {
    kind: MarkKind,
    label: &'a str,
    /// The IPU of the mark. `None` for all IPUs.
    ipu: Option<IpuId>,
    pass: Option<TrainingPass>,
    index: u64,
}

impl<'a> MarkWords<'a> {
    fn of_loader(label: &'a str, index: u64) -> Self {
        Self { kind: MarkKind::Loader, label, ipu: None, pass: None, index }
    }
}

/// The start of a fragment.
struct FragmentStart {
    step: StepId,
    first: FragmentStartCycles,
    /// The start on the other classes of replicas.
    others: Vec<FragmentStartCycles>,
}

/// The times of the tiles of an IPU at the start of a fragment.
#[derive(Clone, Copy)]
struct FragmentStartCycles {
    compute: Cycles,
    io: Cycles,
}

impl FragmentStartCycles {
    const ZERO: Self = Self { compute: Cycles::ZERO, io: Cycles::ZERO };
}

struct ProgramRunner<'a, S> {
    compiled: &'a CompiledProgram,
    spec: &'a Spec,
    sink: &'a mut S,
    costs: LeafCostTable,
    sums: StepSequenceCache,
    /// The step that is passed to the sink. It is reused, so that steps allocate no memory.
    step: ExecutionStep,
    /// Programs at which differing replicas have met.
    joins: BTreeSet<ProgramId>,
    /// The range from the first to the last cycle of the steps of this slot.
    span: Option<CycleRange>,
    clocks: IpuClocks,
    /// The host of each class of replicas, in the order of the clocks.
    hosts: Vec<HostTimeline>,
    /// Copies of samples from the host, and of results to it.
    inputs: &'a [HostStreamCopy],
    outputs: &'a [HostStreamCopy],
    /// Copies from the host whose next micro-batch is already on the I/O tiles.
    prefetched: BTreeSet<ProgramId>,
    /// Copies to the host whose results are on the I/O tiles.
    unsent: Vec<&'a HostStreamCopy>,
    all_ipus: Vec<IpuId>,
    /// Passes of stages in which IPUs exchange data with others.
    meeting_passes: Vec<(usize, TrainingPass)>,
    next_step: StepId,
}

impl<'a, S: StepSink> ProgramRunner<'a, S> {
    fn position(&self) -> RunPosition {
        RunPosition { step: self.next_step, cycle: self.clocks.latest() }
    }

    /// Ends a mark that began at `start` and applies to all IPUs.
    fn mark(
        &mut self,
        kind: MarkKind,
        label: &str,
        pass: Option<TrainingPass>,
        index: u64,
        start: &RunPosition,
    ) -> Result<(), S::Error> {
        let end = self.position().cycle;
        self.emit_mark(MarkWords { kind, label, ipu: None, pass, index }, start, end)
    }

    /// Ends the mark of a slot. If I/O tiles still make a copy of an earlier slot, its steps begin,
    /// and may end, before all clocks have passed that time.
    fn slot_mark(&mut self, index: usize, mut start: RunPosition) -> Result<(), S::Error> {
        let Some(span) = self.span else { return Ok(()) };
        debug_assert!(span.start <= span.end, "steps end after they begin");
        start.cycle = start.cycle.min(span.start);
        let label = format!("slot {index}");
        let index = index as u64;
        let words = MarkWords { kind: MarkKind::Slot, label: &label, ipu: None, pass: None, index };
        self.emit_mark(words, &start, span.end)
    }

    /// Emits a mark that began at `start`, unless no step was made since.
    fn emit_mark(
        &mut self,
        words: MarkWords<'_>,
        start: &RunPosition,
        end_cycle: Cycles,
    ) -> Result<(), S::Error> {
        debug_assert!(
            start.step <= self.next_step && start.cycle <= end_cycle,
            "a mark runs forwards"
        );
        if self.next_step == start.step {
            return Ok(());
        }
        let MarkWords { kind, label, ipu, pass, index } = words;
        self.sink.mark(&TraceMark {
            kind,
            label: label.to_owned(),
            ipu,
            pass,
            index,
            steps: start.step..self.next_step,
            cycles: CycleRange::new(start.cycle, end_cycle),
        })
    }

    /// Begins the next step, to which its parts are then added.
    fn begin(&mut self, program: ProgramId) {
        self.step.program = program;
        self.step.ipus.clear();
        self.step.other_replicas.clear();
    }

    /// Passes the current step with all its parts to the sink.
    fn emit(&mut self) -> Result<(), S::Error> {
        self.next_step += 1;
        self.step.other_replicas.sort_by_key(|(class, on)| (*class, on.ipu));
        debug_assert!(self.step.parts().next().is_some(), "every step runs somewhere");
        for on_ipu in &self.step.ipus {
            let span = self.span.get_or_insert(CycleRange::new(on_ipu.from_min, on_ipu.to_max));
            span.start = span.start.min(on_ipu.from_min);
            span.end = span.end.max(on_ipu.to_max);
        }
        debug_assert!(
            self.step.parts().all(|(_, on)| on.from_min <= on.from_max && on.to_min <= on.to_max),
            "the first tile starts and ends no later than the last"
        );
        self.sink.step(&self.step)
    }

    /// Adds the marks of the loader for this call, and for later calls during it.
    fn loader(&mut self, start: &RunPosition) -> Result<(), S::Error> {
        let ahead = match self.spec.options.host.loader {
            DataLoaderMode::None | DataLoaderMode::Synthetic => return Ok(()),
            DataLoaderMode::Sync => false,
            DataLoaderMode::Async | DataLoaderMode::AsyncRebatched => true,
        };
        let HostCallInputs { samples, bytes } = host_call_inputs(self.compiled, self.spec);
        let seconds = loader_seconds_of(self.spec, self.hosts[0].replicas(), samples, bytes);
        let cycles = cycles_of(seconds, self.spec.target.chip.clock);
        let ready = self.hosts[0].samples_ready();
        // The loader may work beyond the end of the call, but a mark ends with the run.
        let end = self.clocks.latest().min(ready + cycles);
        if !ready.is_zero() {
            let words = MarkWords::of_loader("this call", 0);
            self.emit_mark(words, start, ready)?;
        }
        if ahead && end > ready {
            let start = RunPosition { cycle: ready, ..*start };
            self.emit_mark(MarkWords::of_loader("a later call", 1), &start, end)?;
        }
        Ok(())
    }

    /// Runs the agreement of host and IPUs on the program to run. Returns its cycles.
    fn prologue(&mut self) -> Result<Cycles, S::Error> {
        let compiled = self.compiled;
        // The copies tell the IPUs the program to run. The broadcast to tiles depends on the IPUs
        // alone, so it does not count as a handshake with the host.
        let start = self.clocks.latest();
        for copy in &compiled.parts.prologue.copies {
            self.control_copy(copy)?;
        }
        let agreed = self.clocks.latest();
        self.items(&compiled.parts.prologue.broadcast)?;
        Ok(agreed - start)
    }

    fn iterations(&mut self) -> Result<(), S::Error> {
        let schedule = &self.compiled.schedule;
        for iteration in 0..schedule.iterations {
            let start = self.position();
            let mut phase_start = start;
            for (index, slot) in schedule.slots.iter().enumerate() {
                let slot_start = self.position();
                self.span = None;
                let phases = schedule.phases_at(index);
                if let Some((this, _)) = &phases
                    && index == 0
                {
                    // No earlier phase of this iteration could hide the loads of the first one.
                    self.prefetch_by_io_tiles(&schedule.slots[this.clone()])?;
                    self.prefetch_remote_loads(&schedule.slots[this.clone()])?;
                }
                if let Some((this, Some(next))) = &phases
                    && this.start == index
                {
                    self.prefetch_beside(this, next)?;
                }
                self.slot(slot, index, iteration)?;
                if let Some((this, Some(next))) = &phases
                    && this.end == index + 1
                {
                    self.prefetch_before_updates(this, next)?;
                }
                self.updates_of_stages(&schedule.updates_behind(index), iteration)?;
                if let Some((this, Some(next))) = &phases
                    && this.end == index + 1
                {
                    self.prefetch_behind(this, next)?;
                }
                self.slot_mark(index, slot_start)?;
                // Slots of a phase of the pipeline follow each other and share one mark.
                let ends =
                    schedule.slots.get(index + 1).is_none_or(|next| next.phase != slot.phase);
                if ends {
                    self.mark(MarkKind::Phase, slot.phase.name(), None, iteration, &phase_start)?;
                    phase_start = self.position();
                }
                let done = iteration as f64 + (index + 1) as f64 / schedule.slots.len() as f64;
                self.sink.progress(done / schedule.iterations as f64);
            }
            // Only overlap across loops may keep copies open while the next iteration begins.
            let is_last = iteration + 1 == schedule.iterations;
            if is_last || self.spec.options.overlap_io != OverlapIo::Loops {
                self.send_outputs()?;
                self.wait_for_all_io()?;
            }
            if schedule.update == WeightUpdateTiming::PerIteration {
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

    /// The copies that the I/O tiles may begin while the slot with this index works: each copy of
    /// the next slot that overlaps with it.
    fn inputs_beside(&self, index: usize, iteration: u64) -> Vec<&'a HostStreamCopy> {
        let compiled: &'a CompiledProgram = self.compiled;
        let schedule = &compiled.schedule;
        let next = schedule.slots.get(index + 1);
        let repeats = iteration + 1 < schedule.iterations;
        self.inputs
            .iter()
            .filter(|copy| {
                let slot = match copy.route.overlap {
                    OverlapIo::None => None,
                    OverlapIo::InnerLoop => next,
                    // After the last slot, the samples are those of the next iteration.
                    OverlapIo::Loops if repeats => next.or(schedule.slots.first()),
                    OverlapIo::Loops => next,
                };
                slot.is_some_and(|slot| forward(slot, copy).is_some())
            })
            .collect()
    }

    fn slot(&mut self, slot: &ScheduleSlot, index: usize, iteration: u64) -> Result<(), S::Error> {
        let compiled: &'a CompiledProgram = self.compiled;
        self.inputs(&self.inputs_of(slot))?;
        // The I/O tiles have passed on their data, so they can fetch and send while others compute.
        self.prefetch_inputs(&self.inputs_beside(index, iteration))?;
        self.send_outputs()?;
        let schedule = &compiled.schedule;
        // IPUs that meet must be stepped together: one after the other would let the first pass a
        // sync before the others reach it.
        let meet = schedule.phased || schedule.parallel_stages().is_some() || self.meet(slot);
        if meet {
            self.turns_side_by_side(slot, iteration)?;
        } else {
            for turn in &slot.turns {
                self.turn(turn, iteration)?;
            }
        }
        let mut sent = Vec::new();
        for copy in self.outputs {
            if let Some(turn) = forward(slot, copy) {
                // Results are summed in every micro-batch, even if only the last sum is returned.
                self.items(&copy.sum_items)?;
                if self.sends_output(turn, iteration) {
                    sent.push(copy);
                }
            }
        }
        self.send_or_hand_over(&sent)?;
        if !slot.stage_copies_follow {
            return Ok(());
        }
        for copy in &compiled.parts.link_copies {
            // A copy without passes belongs to the end of each slot, such as those of a pipeline.
            let follows =
                slot.turns.iter().any(|turn| copy.after.contains(&(turn.stage, turn.pass)));
            if copy.after.is_empty() || follows {
                self.link_copy(copy)?;
            }
        }
        Ok(())
    }

    /// The copies of the samples that a slot works on.
    fn inputs_of(&self, slot: &ScheduleSlot) -> Vec<&'a HostStreamCopy> {
        self.inputs.iter().filter(|copy| forward(slot, copy).is_some()).collect()
    }

    /// True if the results of this turn's micro-batch go to the host.
    fn sends_output(&self, turn: &StageTurn, iteration: u64) -> bool {
        let schedule = &self.compiled.schedule;
        let batch = iteration * schedule.micro_batches + turn.micro_batch;
        match self.spec.output_mode() {
            OutputMode::Default | OutputMode::All => true,
            // Both return one value per host call.
            OutputMode::Final | OutputMode::Sum => {
                batch + 1 == schedule.iterations * schedule.micro_batches
            }
            OutputMode::EveryN => {
                (batch + 1).is_multiple_of(self.spec.options.output_return_period)
            }
        }
    }

    fn turn(&mut self, turn: &StageTurn, iteration: u64) -> Result<(), S::Error> {
        let schedule = &self.compiled.schedule;
        let batch = iteration * schedule.micro_batches + turn.micro_batch;
        if let Some(fragment) = self.compiled.parts.fragment(turn.stage, turn.pass) {
            self.fragment(fragment, MarkKind::Stage, batch)?;
        }
        match self.update_behind(turn) {
            Some(update) => self.fragment(update, MarkKind::Update, batch),
            None => Ok(()),
        }
    }

    /// The update after a turn, if gradients are not accumulated.
    fn update_behind(&self, turn: &StageTurn) -> Option<&'a StageFragment> {
        let compiled: &'a CompiledProgram = self.compiled;
        if turn.pass != TrainingPass::Backward
            || compiled.schedule.update != WeightUpdateTiming::PerMicroBatch
        {
            return None;
        }
        compiled.parts.fragment(turn.stage, TrainingPass::Update)
    }

    /// True if IPUs exchange data with other replicas during a slot. The other IPUs sync with them
    /// before it.
    fn meet(&self, slot: &ScheduleSlot) -> bool {
        slot.turns.iter().any(|turn| {
            let meets_in_update = self.meeting_passes.contains(&(turn.stage, TrainingPass::Update));
            self.meeting_passes.contains(&(turn.stage, turn.pass))
                || meets_in_update && self.update_behind(turn).is_some()
        })
    }

    fn fragment(
        &mut self,
        fragment: &StageFragment,
        kind: MarkKind,
        index: u64,
    ) -> Result<(), S::Error> {
        let start = self.fragment_start(fragment.ipu);
        self.items(&fragment.items)?;
        self.fragment_mark(fragment, kind, index, &start)
    }

    fn fragment_start(&self, ipu: IpuId) -> FragmentStart {
        let mut classes = self.fragment_cycles(ipu);
        let first = classes.next().unwrap_or(FragmentStartCycles::ZERO);
        FragmentStart { step: self.next_step, first, others: classes.collect() }
    }

    /// The times of the tiles of an IPU, for each class of replicas.
    fn fragment_cycles(&self, ipu: IpuId) -> impl Iterator<Item = FragmentStartCycles> {
        let [compute, io] =
            [TileGroup::Compute, TileGroup::Io].map(|tiles| self.clocks.of_classes(ipu, tiles));
        compute.zip(io).map(|(compute, io)| FragmentStartCycles { compute, io })
    }

    /// Ends the mark of a fragment at the time at which its IPU has finished, including its I/O
    /// tiles if they had work.
    fn fragment_mark(
        &mut self,
        fragment: &StageFragment,
        kind: MarkKind,
        index: u64,
        start: &FragmentStart,
    ) -> Result<(), S::Error> {
        if self.next_step == start.step {
            return Ok(());
        }
        let name = &self.compiled.placement.stages[fragment.stage].name;
        let mut mark = TraceMark {
            kind,
            label: format!("{name} {}", pass_name(fragment.pass)),
            ipu: Some(fragment.ipu),
            pass: Some(fragment.pass),
            index,
            steps: start.step..self.next_step,
            cycles: CycleRange::default(),
        };
        let starts = std::iter::once(&start.first).chain(&start.others);
        let ends: Vec<FragmentStartCycles> = self.fragment_cycles(fragment.ipu).collect();
        for (class, (start, now)) in starts.zip(ends).enumerate() {
            // I/O tiles without work in the fragment may be ahead, because of an earlier copy.
            let end = if now.io == start.io { now.compute } else { now.compute.max(now.io) };
            mark.cycles = CycleRange::new(start.compute, end);
            match class {
                0 => self.sink.mark(&mark)?,
                _ => self.sink.mark_of_class(ReplicaClassId::from_index(class), &mark)?,
            }
        }
        Ok(())
    }

    /// Records that all replicas leave the steps of a program at once, if they differ.
    fn note_meeting(&mut self, program: ProgramId) {
        if self.clocks.classes() > 1 {
            self.joins.insert(program);
        }
    }

    fn items(&mut self, items: &[FragmentItem]) -> Result<(), S::Error> {
        if !S::RECORDS_EACH_STEP
            && let Some(sum) = self.sums.cost_of_sequence(items, &self.costs)
        {
            // A sink that only counts needs no single steps: an IPU alone takes the sum of them.
            self.clocks.advance(sum.ipu, sum.cycles);
            self.next_step += sum.steps;
            self.sink.count_steps(sum.steps * self.clocks.classes() as u64);
            return Ok(());
        }
        for item in items {
            match item {
                FragmentItem::Leaf(program) => {
                    self.begin(*program);
                    let cost = self.costs.cost_of(*program);
                    self.clocks.run_on(cost, TileGroup::Compute, &mut self.step);
                    self.emit()?;
                }
                FragmentItem::HostSync { program, ipu } => {
                    // The sync pattern decides which other IPUs wait for this one's host copy.
                    let ipus = self.compiled.sync_groups.host_sync_group(*ipu);
                    self.host_sync(*program, ipus)?;
                }
                FragmentItem::SetSync { program, ipu }
                | FragmentItem::ReplicaSync { program, ipu } => {
                    // A copy to other replicas is preceded by a sync of its whole group.
                    let ipus = self.compiled.sync_groups.copy_sync_group(&[*ipu]);
                    self.replica_sync(*program, ipus)?;
                }
                FragmentItem::IoStream { sync, steps, ipu } => {
                    self.io_stream(*sync, steps, *ipu)?;
                }
                FragmentItem::WaitForIo(ipu) => self.wait_for_io(*ipu)?,
                FragmentItem::Loop { times, body } => {
                    for _ in 0..*times {
                        self.items(body)?;
                    }
                }
            }
        }
        Ok(())
    }
}

/// Passes of stages in which IPUs exchange data with others.
fn meeting_passes(compiled: &CompiledProgram) -> Vec<(usize, TrainingPass)> {
    let meeting = compiled.parts.fragments.iter().filter(|of| of.items.iter().any(joins_copies));
    meeting.map(|of| (of.stage, of.pass)).collect()
}

/// True if an item is a sync before a copy between IPUs, or contains one.
fn joins_copies(item: &FragmentItem) -> bool {
    match item {
        FragmentItem::SetSync { .. } | FragmentItem::ReplicaSync { .. } => true,
        FragmentItem::Loop { body, .. } => body.iter().any(joins_copies),
        _ => false,
    }
}

/// The turn of a slot that a host copy belongs to.
fn forward<'a>(slot: &'a ScheduleSlot, copy: &HostStreamCopy) -> Option<&'a StageTurn> {
    slot.turns.iter().find(|turn| turn.stage == copy.stage && turn.pass == TrainingPass::Forward)
}

#[cfg(test)]
mod tests;
