//! The schedule of an iteration in the usual form of pipeline diagrams: the micro-batch of each
//! stage in each slot, and the number of micro-batches in the stage's stash.
//!
//! All data comes from the marks of the run; the size of a stash comes from its variables.

use crate::label_conventions::forward_program;
use crate::trace::{marks, stage_name};
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use tilescope_report::units::{CycleRange, Cycles, IpuId, ProgramId, StepId};
use tilescope_report::{DataPlace, MarkKind, Report, ReportError, TraceMark, TrainingPass};

/// The largest number of slots of an iteration that is laid out.
const MOST_SLOTS: usize = 1 << 20;
/// The largest number of stages and updates that are read to find all stages: in a pipeline of 64
/// stages, those of its first hundred slots.
const MOST_FIRST_TURNS: usize = 1 << 14;
/// Slots to read before the requested ones: a number per stage, and a constant. In every schedule,
/// a stage completes both passes within this number of slots.
const SLOTS_BEFORE: (usize, usize) = (4, 16);

/// The reason for a missing schedule.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NoSchedule {
    #[error("The report has no schedule: it does not record marks of stages.")]
    NoStages,
    #[error("The report has no marks of slots: its program does not work in slots.")]
    NoSlots,
    #[error("The iteration has more slots than are laid out.")]
    TooManySlots,
}

/// The kind of a column of the schedule.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ScheduleColumnKind {
    Slot,
    /// The weight updates after all slots.
    Update,
}

/// A slot of the iteration, or the weight update at its end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ScheduleColumn {
    pub kind: ScheduleColumnKind,
    /// Number of the slot within the iteration; for an update, number of the iteration.
    pub number: u64,
    pub range: CycleRange,
    steps: Range<StepId>,
}

/// A phase of the pipeline.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SchedulePhase {
    /// `ramp-up`, `main`, `ramp-down`
    pub label: String,
    /// Indices of its columns.
    pub columns: Range<usize>,
}

/// A stage on its IPU.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ScheduleStage {
    pub ipu: IpuId,
    pub name: String,
    /// Number of micro-batches in its stashes; `None` without stashes.
    pub depth: Option<u64>,
    has_backward: bool,
}

impl ScheduleStage {
    /// True if it stores activations until a backward pass.
    pub fn goes_back(&self) -> bool {
        self.has_backward
    }
}

/// The columns, phases and stages of an iteration's schedule.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IterationSchedule {
    /// Number of the iteration in the run.
    pub iteration: u64,
    pub range: CycleRange,
    pub columns: Vec<ScheduleColumn>,
    pub phases: Vec<SchedulePhase>,
    /// The stages, in the order in which they start to work.
    pub stages: Vec<ScheduleStage>,
}

impl IterationSchedule {
    /// The phase of a column.
    pub fn phase_of(&self, column: usize) -> Option<&SchedulePhase> {
        self.phases.iter().find(|phase| phase.columns.contains(&column))
    }

    /// The column that contains a cycle, or the last one before it.
    pub fn column_at(&self, cycle: Cycles) -> usize {
        let behind = self.columns.partition_point(|column| column.range.start <= cycle);
        behind.saturating_sub(1)
    }
}

/// One pass of a stage for a micro-batch, or its weight update.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ScheduleTurn {
    /// Index of its stage.
    pub stage: usize,
    /// Index of its column.
    pub column: usize,
    pub pass: TrainingPass,
    /// Number of the micro-batch within the run; for an update, number of the iteration.
    pub number: u64,
    pub range: CycleRange,
}

/// The work of stages in some columns.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ScheduleCells {
    /// Indices of the columns.
    pub columns: Range<usize>,
    /// Turns by stage, then in their order of execution.
    pub turns: Vec<ScheduleTurn>,
    /// The largest number of micro-batches whose activations each stage stores in each column,
    /// stage by stage.
    held: Vec<Option<u64>>,
}

impl ScheduleCells {
    /// The turns of a stage in a column.
    pub fn turns_in(&self, stage: usize, column: usize) -> &[ScheduleTurn] {
        let at = (stage, column);
        let from = self.turns.partition_point(|turn| (turn.stage, turn.column) < at);
        let to = self.turns.partition_point(|turn| (turn.stage, turn.column) <= at);
        &self.turns[from..to]
    }

    /// The largest number of micro-batches in a column that have completed the forward but not the
    /// backward pass of a stage. `None` for a stage without a backward pass, or if the marks do not
    /// determine it.
    pub fn held(&self, stage: usize, column: usize) -> Option<u64> {
        let at = column.checked_sub(self.columns.start)?;
        let inside = at < self.columns.len();
        *self.held.get(stage * self.columns.len() + at).filter(|_| inside)?
    }
}

/// The columns, phases and stages of the iteration that contains a cycle, or of the first iteration
/// if none does.
///
/// # Errors
/// Parts of the file that cannot be read.
pub fn pipeline_schedule(
    report: &Report,
    cycle: Cycles,
) -> Result<Result<IterationSchedule, NoSchedule>, ReportError> {
    let at = CycleRange::new(cycle, cycle.saturating_add(Cycles(1)));
    let iteration = match marks(report, MarkKind::Iteration, Some(at), 1)?.pop() {
        Some(mark) => Some(mark),
        None => marks(report, MarkKind::Iteration, None, 1)?.pop(),
    };
    // Without marks of iterations, the whole run is one.
    let range = iteration.as_ref().map(|mark| mark.cycles);
    let number = iteration.as_ref().map_or(0, |mark| mark.index);
    let belongs = |mark: &TraceMark| match &iteration {
        Some(iteration) => iteration.steps.contains(&mark.steps.start),
        None => true,
    };
    let mut slots = marks(report, MarkKind::Slot, range, MOST_SLOTS + 1)?;
    slots.retain(belongs);
    if slots.is_empty() {
        return Ok(Err(NoSchedule::NoSlots));
    }
    if slots.len() > MOST_SLOTS {
        return Ok(Err(NoSchedule::TooManySlots));
    }
    let mut columns: Vec<ScheduleColumn> =
        slots.into_iter().map(|mark| column(ScheduleColumnKind::Slot, mark)).collect();
    let last = columns.last().map_or(StepId(0), |column| column.steps.end);
    let updates = marks(report, MarkKind::Update, range, MOST_FIRST_TURNS)?.into_iter();
    let behind = updates.filter(|mark| belongs(mark) && mark.steps.start >= last);
    if let Some(update) = behind.reduce(union) {
        columns.push(column(ScheduleColumnKind::Update, TraceMark { index: number, ..update }));
    }
    let mut phases = Vec::new();
    for mark in marks(report, MarkKind::Phase, range, usize::MAX)? {
        if belongs(&mark) {
            let first = columns.partition_point(|column| column.steps.start < mark.steps.start);
            let end = columns.partition_point(|column| column.steps.start < mark.steps.end);
            phases.push(SchedulePhase { label: mark.label, columns: first..end });
        }
    }
    let whole = columns.iter().map(|column| column.range).reduce(CycleRange::union);
    let range = range.or(whole).unwrap_or_default();
    let stages = stages(report, &columns)?;
    Ok(if stages.is_empty() {
        Err(NoSchedule::NoStages)
    } else {
        Ok(IterationSchedule { iteration: number, range, columns, phases, stages })
    })
}

/// The turns of the stages in some of the columns. Reads only the marks of these columns and of a
/// few before.
///
/// # Errors
/// Parts of the file that cannot be read.
pub fn schedule_cells(
    report: &Report,
    schedule: &IterationSchedule,
    wanted: Range<usize>,
) -> Result<ScheduleCells, ReportError> {
    let IterationSchedule { columns, stages, .. } = schedule;
    let end = wanted.end.min(columns.len());
    let wanted = wanted.start.min(end)..end;
    let (per_stage, on_top) = SLOTS_BEFORE;
    let from = wanted.start.saturating_sub(per_stage * stages.len() + on_top);
    let Some(read) = columns.get(from..end).filter(|read| !read.is_empty()) else {
        return Ok(ScheduleCells::default());
    };
    let mut turns = Vec::new();
    for kind in [MarkKind::Stage, MarkKind::Update] {
        let found = marks(report, kind, Some(window(read)), usize::MAX)?;
        turns.extend(found.iter().filter_map(|mark| turn(schedule, from, end, mark)));
    }
    turns.sort_by_key(|turn: &ScheduleTurn| (turn.stage, turn.column, turn.range.start));
    let mut held = Vec::with_capacity(stages.len() * wanted.len());
    for (place, stage) in stages.iter().enumerate() {
        let own = turns.iter().filter(|turn| turn.stage == place);
        held.extend(held_by(stage, own, from, &wanted));
    }
    turns.retain(|turn| wanted.contains(&turn.column));
    Ok(ScheduleCells { columns: wanted, turns, held })
}

fn column(kind: ScheduleColumnKind, mark: TraceMark) -> ScheduleColumn {
    ScheduleColumn { kind, number: mark.index, range: mark.cycles, steps: mark.steps }
}

fn union(one: TraceMark, other: TraceMark) -> TraceMark {
    let steps = one.steps.start.min(other.steps.start)..one.steps.end.max(other.steps.end);
    TraceMark { cycles: one.cycles.union(other.cycles), steps, ..one }
}

/// The cycles that contain the turns of some columns. A slot begins with its last IPU: the first
/// IPU may be a slot ahead.
fn window(columns: &[ScheduleColumn]) -> CycleRange {
    let first = &columns[0].range;
    let last = &columns[columns.len() - 1].range;
    let start = first.start.saturating_sub(first.length());
    CycleRange::new(start, last.end.max(start + Cycles(1)))
}

fn turn(
    schedule: &IterationSchedule,
    from: usize,
    end: usize,
    mark: &TraceMark,
) -> Option<ScheduleTurn> {
    let pass = mark.pass?;
    let columns = &schedule.columns;
    let behind = columns.partition_point(|column| column.steps.start <= mark.steps.start);
    let column = behind.checked_sub(1).filter(|at| (from..end).contains(at))?;
    // Skips marks between two slots, or after the last one.
    columns.get(column).filter(|column| mark.steps.start < column.steps.end)?;
    let name = stage_name(&mark.label, Some(pass));
    let mut stages = schedule.stages.iter();
    let stage = stages.position(|stage| Some(stage.ipu) == mark.ipu && stage.name == name)?;
    Some(ScheduleTurn { stage, column, pass, number: mark.index, range: mark.cycles })
}

/// The stages that work in the first columns.
fn stages(report: &Report, columns: &[ScheduleColumn]) -> Result<Vec<ScheduleStage>, ReportError> {
    let depths = stash_depths(report)?;
    let mut stages: Vec<ScheduleStage> = Vec::new();
    for mark in marks(report, MarkKind::Stage, Some(window(columns)), MOST_FIRST_TURNS)? {
        let (Some(ipu), Some(pass)) = (mark.ipu, mark.pass) else { continue };
        let name = stage_name(&mark.label, Some(pass));
        let known = stages.iter().position(|stage| stage.ipu == ipu && stage.name == name);
        let place = known.unwrap_or_else(|| {
            let depth = depths.get(name).copied();
            let name = name.to_owned();
            stages.push(ScheduleStage { ipu, name, depth, has_backward: false });
            stages.len() - 1
        });
        stages[place].has_backward |= pass == TrainingPass::Backward;
    }
    Ok(stages)
}

/// The number of micro-batches in the stashes that each stage writes in its forward pass.
fn stash_depths(report: &Report) -> Result<BTreeMap<String, u64>, ReportError> {
    let flows = report.data_flows()?;
    let mut entries: BTreeMap<ProgramId, u64> = BTreeMap::new();
    for access in &flows.accesses {
        let Some(buffer) = flows.buffers.get(access.buffer.index()) else { continue };
        if matches!(buffer.place, DataPlace::Stash | DataPlace::RemoteStash) {
            let depth = entries.entry(access.program).or_default();
            *depth = buffer.entries.max(*depth);
        }
    }
    let mut depths = BTreeMap::new();
    if entries.is_empty() {
        return Ok(depths);
    }
    let programs = report.programs()?;
    for (_, program) in programs.iter() {
        let Some(stage) = forward_program(&program.name) else { continue };
        let mut open = program.children.clone();
        let mut seen = BTreeSet::new();
        while let Some(id) = open.pop() {
            // A damaged tree may have cycles.
            if !seen.insert(id) {
                continue;
            }
            if let Some(depth) = entries.get(&id) {
                let known: &mut u64 = depths.entry(stage.to_owned()).or_default();
                *known = (*known).max(*depth);
            }
            open.extend(programs.get(id).into_iter().flat_map(|child| &child.children));
        }
    }
    Ok(depths)
}

/// The largest number of micro-batches that a stage holds in each wanted column, from its turns
/// since column `from`. The order is first in, first out, so the stage holds all micro-batches
/// between the last one that completed the forward pass and the last one that completed the
/// backward pass.
fn held_by<'a>(
    stage: &ScheduleStage,
    turns: impl Iterator<Item = &'a ScheduleTurn>,
    from: usize,
    wanted: &Range<usize>,
) -> Vec<Option<u64>> {
    let mut fifo = Fifo { known: stage.has_backward, begins: from == 0, ..Fifo::default() };
    let mut turns = turns.peekable();
    let mut held = Vec::with_capacity(wanted.len());
    for column in from..wanted.end {
        let mut most = fifo.held();
        while let Some(turn) = turns.next_if(|turn| turn.column == column) {
            fifo.take(turn);
            most = fifo.held().map(|held| held.max(most.unwrap_or(0)));
        }
        if column >= wanted.start {
            held.push(most);
        }
    }
    held
}

/// The micro-batches that have completed the forward but not the backward pass of a stage.
#[derive(Default)]
struct Fifo {
    /// True if all marks so far return micro-batches in order of arrival, as a stash does.
    known: bool,
    /// True if there were no earlier turns.
    begins: bool,
    first_in: Option<u64>,
    last_in: Option<u64>,
    last_out: Option<u64>,
}

impl Fifo {
    fn take(&mut self, turn: &ScheduleTurn) {
        let last = match turn.pass {
            TrainingPass::Forward => {
                self.first_in = self.first_in.or(Some(turn.number));
                &mut self.last_in
            }
            TrainingPass::Backward => &mut self.last_out,
            TrainingPass::Update => return,
        };
        self.known &= last.is_none_or(|last| turn.number == last + 1);
        *last = Some(turn.number);
    }

    fn held(&self) -> Option<u64> {
        match (self.first_in, self.last_in, self.last_out) {
            _ if !self.known => None,
            (_, Some(last_in), Some(last_out)) => last_in.checked_sub(last_out),
            (Some(first), Some(last), None) if self.begins => Some(last - first + 1),
            (None, None, None) if self.begins => Some(0),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tilescope_fixtures::ReportBuilder;

    /// A grouped pipeline of `stages` stages, one per IPU, with `micro_batches` micro-batches; each
    /// pass takes ten cycles of a slot.
    fn pipeline(stages: u64, micro_batches: u64, iterations: u64) -> (tempfile::TempDir, Report) {
        let mut report = ReportBuilder::new(stages as u32, 4);
        let work = report.compute("work", 10);
        let slots = micro_batches + 2 * (stages - 1);
        let mut at = 0;
        for iteration in 0..iterations {
            let begin = at;
            let first = report.steps.len() as u64;
            for slot in 0..slots {
                let start = at;
                let slot_first = report.steps.len() as u64;
                for stage in 0..stages {
                    let passes = [
                        (slot.checked_sub(stage), TrainingPass::Forward),
                        (slot.checked_sub(2 * (stages - 1) - stage), TrainingPass::Backward),
                    ];
                    for ((batch, pass), from) in passes.into_iter().zip([at, at + 10]) {
                        let Some(batch) = batch.filter(|batch| *batch < micro_batches) else {
                            continue;
                        };
                        let ipu = IpuId(stage as u32);
                        report.run_on(work, ipu, from..from + 10);
                        let steps = report.steps.len() as u64;
                        report.marks.push(TraceMark {
                            kind: MarkKind::Stage,
                            label: format!("s{stage} {}", pass.name()),
                            ipu: Some(ipu),
                            pass: Some(pass),
                            index: iteration * micro_batches + batch,
                            steps: StepId(steps - 1)..StepId(steps),
                            cycles: CycleRange::new(Cycles(from), Cycles(from + 10)),
                        });
                    }
                }
                at += 20;
                let own = (slot_first, start, at);
                all_ipus(&mut report, MarkKind::Slot, slot, own);
            }
            all_ipus(&mut report, MarkKind::Iteration, iteration, (first, begin, at));
        }
        let directory = tempfile::tempdir().unwrap();
        let report = Report::open(report.write(directory.path()).unwrap()).unwrap();
        (directory, report)
    }

    fn all_ipus(
        report: &mut ReportBuilder,
        kind: MarkKind,
        index: u64,
        (first, start, end): (u64, u64, u64),
    ) {
        report.marks.push(TraceMark {
            kind,
            label: format!("{} {index}", kind.name()),
            ipu: None,
            pass: None,
            index,
            steps: StepId(first)..StepId(report.steps.len() as u64),
            cycles: CycleRange::new(Cycles(start), Cycles(end)),
        });
    }

    #[test]
    fn every_micro_batch_goes_once_forward_and_once_back_through_each_stage() {
        let (_directory, report) = pipeline(4, 30, 3);
        let schedule = pipeline_schedule(&report, Cycles(36 * 20 + 5)).unwrap().unwrap();
        assert_eq!((schedule.iteration, schedule.columns.len()), (1, 36));
        let cells = schedule_cells(&report, &schedule, 0..36).unwrap();
        for stage in 0..4 {
            for pass in [TrainingPass::Forward, TrainingPass::Backward] {
                let own = cells.turns.iter().filter(|t| t.stage == stage && t.pass == pass);
                let numbers: Vec<u64> = own.map(|turn| turn.number).collect();
                assert_eq!(numbers, (30..60).collect::<Vec<u64>>(), "{stage} {pass:?}");
            }
            // The number of forward passes before the first backward pass: 2 (later stages) + 1.
            let most = (0..36).filter_map(|column| cells.held(stage, column)).max();
            assert_eq!(most, Some(2 * (3 - stage as u64) + 1));
            assert_eq!(cells.held(stage, 35), Some(u64::from(stage == 0)));
        }
    }

    #[test]
    fn parts_of_a_schedule_agree_with_the_whole() {
        let (_directory, report) = pipeline(3, 90, 2);
        let schedule = pipeline_schedule(&report, Cycles(0)).unwrap().unwrap();
        let count = schedule.columns.len();
        let whole = schedule_cells(&report, &schedule, 0..count).unwrap();
        for from in 0..count {
            let part = schedule_cells(&report, &schedule, from..from + 5).unwrap();
            for column in part.columns.clone() {
                for stage in 0..3 {
                    assert_eq!(part.turns_in(stage, column), whole.turns_in(stage, column));
                    assert_eq!(part.held(stage, column), whole.held(stage, column));
                }
            }
        }
    }

    #[test]
    fn reports_without_marks_have_a_reason_for_no_schedule() {
        let mut report = ReportBuilder::new(1, 4);
        let work = report.compute("work", 10);
        report.run(work, 0..10);
        let directory = tempfile::tempdir().unwrap();
        let report = Report::open(report.write(directory.path()).unwrap()).unwrap();
        assert_eq!(pipeline_schedule(&report, Cycles(0)).unwrap(), Err(NoSchedule::NoSlots));
    }
}
