//! Marks of a window of a run, together with the window. They give shares and paces of the window;
//! figures of the whole run are extrapolated and labelled as such.

use super::repeated_marks::RepeatedMarkFinder;
use super::run_share::{RunShare, Share, ShareWindow, WholeRun};
use crate::view_location::ViewLocation;
use tilescope_report::units::{CycleRange, Cycles, IpuId};
use tilescope_report::{
    MarkFilter, MarkKind, PhaseRanges, Report, ReportError, TraceMark, TrainingPass, is_ramp,
};

/// The approximate number of marks of a kind to read, up to those of an iteration.
pub(crate) const MOST_MARKS: u64 = 1 << 14;

/// The number of phases that are searched for the first one that is not a ramp: a pipeline has one
/// ramp before it.
const MOST_PHASES: usize = 16;

/// A part of a run in which all marks of a kind were read.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct MarkedPart {
    cycles: CycleRange,
    /// Ratio of the run to the part.
    times: f64,
    run: WholeRun,
}

impl ShareWindow for MarkedPart {
    fn cycles(self) -> Cycles {
        self.cycles.length()
    }
}

impl Share<MarkedPart> {
    /// The extrapolated share of the run, by the ratio of iterations.
    pub(crate) fn of_run(self) -> RunShare {
        let MarkedPart { times, run, .. } = self.window();
        self.scaled(times, run)
    }
}

/// Mean cycles from one mark to the next, the same over any window.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct MarkPace(f64);

/// A mark of a window.
#[derive(Clone, Copy, Debug)]
pub(crate) struct WindowMark<'a> {
    mark: &'a TraceMark,
    part: MarkedPart,
}

impl<'a> WindowMark<'a> {
    pub(crate) fn label(self) -> &'a str {
        &self.mark.label
    }

    pub(crate) fn ipu(self) -> Option<IpuId> {
        self.mark.ipu
    }

    pub(crate) fn pass(self) -> Option<TrainingPass> {
        self.mark.pass
    }

    pub(crate) fn is_ramp(self) -> bool {
        is_ramp(&self.mark.label)
    }

    /// Its cycles, as a share of its window.
    pub(crate) fn length(self) -> Share<MarkedPart> {
        Share::new(self.mark.cycles.length().as_f64(), self.part)
    }

    pub(crate) fn is_longer_than(self, other: Self) -> bool {
        self.mark.cycles.length() > other.mark.cycles.length()
    }

    pub(crate) fn overlaps(self, cycles: CycleRange) -> bool {
        self.mark.cycles.overlaps(cycles)
    }

    /// Its location in the trace.
    pub(crate) fn place(self) -> ViewLocation {
        ViewLocation {
            ipu: self.mark.ipu,
            cycles: Some(self.mark.cycles),
            ..ViewLocation::view("execution-trace")
        }
    }
}

/// All marks of a kind that begin in a part of a run.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct MarkedWindow {
    /// The marks, by start.
    marks: Vec<TraceMark>,
    part: MarkedPart,
}

impl MarkedWindow {
    /// The marks, by start.
    pub(crate) fn iter(&self) -> impl Iterator<Item = WindowMark<'_>> {
        self.marks.iter().map(|mark| WindowMark { mark, part: self.part })
    }

    /// A share of zero.
    pub(crate) fn nothing(&self) -> Share<MarkedPart> {
        Share::new(0.0, self.part)
    }

    /// The share of the window with at least one mark.
    pub(crate) fn union(&self) -> Share<MarkedPart> {
        let end = self.part.cycles.end;
        let own = covered(self.marks.iter().map(|mark| mark.cycles));
        let inside = own.iter().map(|range| range.end.min(end).saturating_sub(range.start));
        Share::new(inside.sum::<Cycles>().as_f64(), self.part)
    }

    /// The share of `each` marks at `pace` for every mark that satisfies `holds`.
    pub(crate) fn at_pace(
        &self,
        pace: MarkPace,
        each: f64,
        holds: impl Fn(WindowMark<'_>) -> bool,
    ) -> Share<MarkedPart> {
        let count = self.iter().filter(|mark| holds(*mark)).count();
        Share::new(pace.0 * each * count as f64, self.part)
    }

    /// The number of marks in the run that satisfy `holds`.
    pub(crate) fn count_of_run(&self, holds: impl Fn(WindowMark<'_>) -> bool) -> f64 {
        self.iter().filter(|mark| holds(*mark)).count() as f64 * self.part.times
    }

    /// The pace of the marks within other ranges; `None` without such marks. The work of one mark
    /// may continue beside the next, so marks overlap: the cost of each is the time from one start
    /// to the next.
    pub(crate) fn pace_within(&self, others: &[CycleRange]) -> Option<MarkPace> {
        let whole = covered(others.iter().copied());
        let mut cycles = 0.0;
        let mut count = 0.0;
        for mark in self.marks.iter().filter(|mark| overlaps_any(&whole, mark.cycles)) {
            cycles += mark.cycles.length().as_f64();
            count += 1.0;
        }
        if count == 0.0 {
            return None;
        }
        let mean = cycles / count;
        let before = |cycle| self.marks.partition_point(|mark| mark.cycles.start < cycle);
        let mut between = 0.0;
        let mut count = 0.0;
        for other in others {
            if let [first, .., last] = &self.marks[before(other.start)..before(other.end)] {
                between += (last.cycles.start - first.cycles.start).as_f64();
                count += (before(other.end) - before(other.start) - 1) as f64;
            }
        }
        Some(MarkPace(if count == 0.0 { mean } else { mean.min(between / count) }))
    }

    /// The marks that overlap one that satisfies `holds`.
    pub(crate) fn beside(
        &self,
        holds: impl Fn(WindowMark<'_>) -> bool,
    ) -> impl Iterator<Item = WindowMark<'_>> {
        let whole = covered(self.ranges(holds).into_iter());
        self.iter().filter(move |mark| overlaps_any(&whole, mark.mark.cycles))
    }

    /// The cycles of the marks that satisfy `holds`.
    pub(crate) fn ranges(&self, holds: impl Fn(WindowMark<'_>) -> bool) -> Vec<CycleRange> {
        self.iter().filter(|mark| holds(*mark)).map(|of| of.mark.cycles).collect()
    }
}

/// True if cycles overlap one of the ranges, which are sorted by start and do not overlap.
fn overlaps_any(ranges: &[CycleRange], cycles: CycleRange) -> bool {
    let before = ranges.partition_point(|range| range.start < cycles.end);
    before.checked_sub(1).is_some_and(|at| ranges[at].overlaps(cycles))
}

/// The union of ranges that are sorted by start.
fn covered(ranges: impl Iterator<Item = CycleRange>) -> Vec<CycleRange> {
    let mut all: Vec<CycleRange> = Vec::new();
    for range in ranges {
        match all.last_mut().filter(|last| range.start <= last.end) {
            Some(last) => last.end = last.end.max(range.end),
            None => all.push(range),
        }
    }
    all
}

/// Marks of the kinds that describe the progress of a run, each with its window.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct RunMarks {
    pub(crate) phases: MarkedWindow,
    pub(crate) slots: MarkedWindow,
    pub(crate) stages: MarkedWindow,
    pub(crate) updates: MarkedWindow,
}

impl RunMarks {
    /// Reads the marks of a run, for each kind all of them or about `most`.
    ///
    /// # Errors
    /// Parts of the file that cannot be read.
    pub(crate) fn read(report: &Report, run: CycleRange, most: u64) -> Result<Self, ReportError> {
        let reader = RunMarksReader { report, run, most: most.max(1) };
        Ok(Self {
            phases: reader.read(MarkKind::Phase, MarkKind::Phase)?,
            // In the same window: a slot is typical together with its stages.
            slots: reader.read(MarkKind::Slot, MarkKind::Stage)?,
            stages: reader.read(MarkKind::Stage, MarkKind::Slot)?,
            updates: reader.read(MarkKind::Update, MarkKind::Update)?,
        })
    }

    /// A slot of median length among those of a full pipeline.
    pub(crate) fn typical_slot(&self) -> Option<CycleRange> {
        let first = self.phases.iter().next();
        let full = first.map(|_| self.phases.ranges(|phase| !phase.is_ramp()));
        let mut slots = RepeatedMarkFinder::new(MarkKind::Slot, full.map(PhaseRanges::new));
        for (place, mark) in (0..).zip(&self.slots.marks) {
            slots.push(mark, place);
        }
        slots.finish().map(|slots| slots.period.range)
    }
}

/// Reads windows of marks. If a kind has too many, the window is that of the first iterations, or
/// else slots, or else the first marks themselves.
struct RunMarksReader<'a> {
    report: &'a Report,
    run: CycleRange,
    most: u64,
}

impl RunMarksReader<'_> {
    /// The marks of a kind, in a window that is also the one of another kind.
    fn read(&self, kind: MarkKind, with: MarkKind) -> Result<MarkedWindow, ReportError> {
        let run = WholeRun::of(self.run.length());
        let count = self.report.mark_count(kind)?.max(self.report.mark_count(with)?);
        if count <= self.most {
            let marks = marks(self.report, kind, None, usize::MAX)?;
            let part = MarkedPart { cycles: self.run, times: 1.0, run };
            return Ok(MarkedWindow { marks, part });
        }
        let periods = [MarkKind::Iteration, MarkKind::Slot, kind];
        let Some(first) = FirstPeriods::with(self.report, &periods, count, self.most)? else {
            let part = MarkedPart { cycles: self.run, times: 0.0, run };
            return Ok(MarkedWindow { marks: Vec::new(), part });
        };
        let FirstPeriods { cycles, count, all, .. } = first;
        let mut marks = marks(self.report, kind, Some(cycles), usize::MAX)?;
        marks.retain(|mark| cycles.start <= mark.cycles.start);
        let part = MarkedPart { cycles, times: all as f64 / count as f64, run };
        Ok(MarkedWindow { marks, part })
    }
}

/// The first periods of a run, and their cycles.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FirstPeriods {
    /// The kind of a period: an iteration, or a slot.
    pub kind: MarkKind,
    /// The number of these periods, and of all periods of the run.
    pub count: u64,
    pub all: u64,
    pub cycles: CycleRange,
}

impl FirstPeriods {
    /// The number of first periods that contain about `most` of the `marks` marks of the run, for
    /// the first kind of period that is short enough. Slots are those of a full pipeline.
    ///
    /// # Errors
    /// Parts of the file that cannot be read.
    fn with(
        report: &Report,
        periods: &[MarkKind],
        marks: u64,
        most: u64,
    ) -> Result<Option<Self>, ReportError> {
        for kind in periods.iter().copied() {
            let all = report.mark_count(kind)?;
            let count = u128::from(all) * u128::from(most) / u128::from(marks.max(1));
            let count = u64::try_from(count).unwrap_or(u64::MAX);
            if count == 0 {
                continue;
            }
            let from = match kind {
                MarkKind::Slot => first_of_full_pipeline(report)?,
                _ => None,
            };
            let window = from.map(|from| CycleRange::new(from, Cycles::MAX));
            // The start of the next period is the end of the last one.
            let limit = usize::try_from(count).unwrap_or(usize::MAX).saturating_add(1);
            let mut found = self::marks(report, kind, window, limit)?;
            found.retain(|mark| from.is_none_or(|from| from <= mark.cycles.start));
            let Some((next, these)) = found.split_last() else { continue };
            let Some(first) = these.first() else { continue };
            let cycles = CycleRange::new(first.cycles.start, next.cycles.start);
            if !cycles.is_empty() {
                return Ok(Some(Self { kind, count: these.len() as u64, all, cycles }));
            }
        }
        Ok(None)
    }

    /// The first periods of a run with too many marks of all kinds to read; `None` if no period is
    /// short enough.
    ///
    /// # Errors
    /// Parts of the file that cannot be read.
    pub fn of_run(report: &Report, most: u64) -> Result<Option<Self>, ReportError> {
        let mut all = 0;
        for kind in MarkKind::ALL {
            all += report.mark_count(kind)?;
        }
        Self::with(report, &[MarkKind::Iteration, MarkKind::Slot], all, most)
    }
}

/// The start of the first phase with a full pipeline.
fn first_of_full_pipeline(report: &Report) -> Result<Option<Cycles>, ReportError> {
    let phases = marks(report, MarkKind::Phase, None, MOST_PHASES)?;
    Ok(phases.iter().find(|phase| !is_ramp(&phase.label)).map(|phase| phase.cycles.start))
}

/// The first marks of a kind, or those that share a cycle with a window.
///
/// # Errors
/// Parts of the file that cannot be read.
pub(crate) fn marks(
    report: &Report,
    kind: MarkKind,
    window: Option<CycleRange>,
    limit: usize,
) -> Result<Vec<TraceMark>, ReportError> {
    report.marks(&MarkFilter { kind: Some(kind), ipu: None, window, limit })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use tilescope_fixtures::ReportBuilder;
    use tilescope_report::units::StepId;
    use tilescope_test_tiers::cases;

    fn window_of(ranges: &[CycleRange]) -> MarkedWindow {
        let mark = |cycles: &CycleRange| TraceMark {
            kind: MarkKind::Slot,
            label: String::new(),
            ipu: None,
            pass: None,
            index: 0,
            steps: StepId(0)..StepId(0),
            cycles: *cycles,
        };
        let cycles = CycleRange::new(Cycles::ZERO, Cycles(100_000));
        let part = MarkedPart { cycles, times: 1.0, run: WholeRun::of(cycles.length()) };
        MarkedWindow { marks: ranges.iter().map(mark).collect(), part }
    }

    /// Ranges with given gaps and lengths; gaps count from the start of the previous range, or from
    /// its end.
    fn ranges(apart: &[(u64, u64)], at_end: bool) -> Vec<CycleRange> {
        let mut start = 0;
        let mut found = Vec::new();
        for (gap, length) in apart {
            start += gap;
            found.push(CycleRange::new(Cycles(start), Cycles(start + length)));
            start += if at_end { *length } else { 0 };
        }
        found
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(cases(250)))]
        #[test]
        fn paces_and_unions_are_those_of_each_mark_against_each_other(
            marks in prop::collection::vec((0..60u64, 0..90u64), 1..80),
            others in prop::collection::vec((0..200u64, 1..600u64), 0..12),
        ) {
            let marks = ranges(&marks, false);
            let others = ranges(&others, true);
            let window = window_of(&marks);
            let inside: Vec<Cycles> = marks
                .iter()
                .filter(|mark| others.iter().any(|other| other.overlaps(**mark)))
                .map(|mark| mark.length())
                .collect();
            let mut pauses = Vec::new();
            for other in &others {
                let own = marks.iter().map(|mark| mark.start);
                let own: Vec<Cycles> =
                    own.filter(|start| other.start <= *start && *start < other.end).collect();
                pauses.extend(own.windows(2).map(|pair| (pair[1] - pair[0]).as_f64()));
            }
            let mean = |values: &[f64]| values.iter().sum::<f64>() / values.len() as f64;
            let lengths: Vec<f64> = inside.iter().map(|length| length.as_f64()).collect();
            let wanted = match (lengths.is_empty(), pauses.is_empty()) {
                (true, _) => None,
                (false, true) => Some(mean(&lengths)),
                (false, false) => Some(mean(&lengths).min(mean(&pauses))),
            };
            let found = window.pace_within(&others).map(|pace| pace.0);
            prop_assert_eq!(found.is_some(), wanted.is_some());
            let apart = found.zip(wanted).map_or(0.0, |(found, wanted)| (found - wanted).abs());
            prop_assert!(apart < 1e-6, "{found:?} {wanted:?}");
            let covered = (0..6_000).filter(|at| {
                marks.iter().any(|mark| mark.start.0 <= *at && *at < mark.end.0)
            });
            prop_assert_eq!(window.union().cycles(), Cycles(covered.count() as u64));
        }
    }

    #[test]
    fn parts_are_extrapolated_by_iterations() {
        let mut builder = ReportBuilder::new(1, 4);
        let (work, update) = (builder.compute("a", 10), builder.compute("b", 10));
        let mut at = 100;
        for step in (0..400).step_by(2) {
            builder.run(work, at..at + 30).run(update, at + 30..at + 40);
            builder.mark(MarkKind::Update, "update", step + 1..step + 2);
            builder.mark(MarkKind::Iteration, "iteration", step..step + 2);
            at += 50;
        }
        let directory = tempfile::tempdir().unwrap();
        let report = Report::open(builder.write(directory.path()).unwrap()).unwrap();
        let run = report.trace().unwrap().unwrap().range();
        for most in [1, 7, 199, 200] {
            let updates = RunMarks::read(&report, run, most).unwrap().updates;
            assert_eq!(updates.iter().count() as u64, most);
            assert_eq!(updates.union().of_run().cycles(), Cycles(2_000), "{most}");
            assert!((updates.count_of_run(|_| true) - 200.0).abs() < 1e-9, "{most}");
            let share = 2_000.0 / run.length().as_f64();
            assert!((updates.union().of_run().value() - share).abs() < 1e-12);
        }
        let first = FirstPeriods::of_run(&report, 20).unwrap().unwrap();
        assert_eq!((first.kind, first.count, first.all), (MarkKind::Iteration, 10, 200));
        assert_eq!(first.cycles, CycleRange::new(Cycles(100), Cycles(600)));
    }
}
