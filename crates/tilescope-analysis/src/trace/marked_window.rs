//! Marks of a window of a run, with the window: they give shares and paces of it, and what the run has
//! of them is said to be extrapolated.

use super::repeated_marks::RepeatedMarkFinder;
use super::run_share::{RunShare, Share, ShareWindow, WholeRun};
use crate::label_conventions::is_ramp;
use crate::view_location::ViewLocation;
use tilescope_report::units::{CycleRange, Cycles, IpuId};
use tilescope_report::{MarkFilter, MarkKind, Report, ReportError, TraceMark, TrainingPass};

/// Marks of a kind that are read, give or take those of an iteration.
pub(crate) const MOST_MARKS: u64 = 1 << 16;

/// A part of a run in which all marks of a kind were read.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct MarkedPart {
    cycles: CycleRange,
    /// How many times the run has what the part has once.
    times: f64,
    run: WholeRun,
}

impl ShareWindow for MarkedPart {
    fn cycles(self) -> Cycles {
        self.cycles.length()
    }
}

impl Share<MarkedPart> {
    /// The same of the run: it has as many times more of it as it has more iterations.
    pub(crate) fn of_run(self) -> RunShare {
        let MarkedPart { times, run, .. } = self.window();
        self.scaled(times, run)
    }
}

/// Cycles from one mark to the next, in the mean: the same over any window.
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
        is_ramp(self.mark)
    }

    /// Its cycles, as a share of its window.
    pub(crate) fn length(self) -> Share<MarkedPart> {
        Share::new(self.mark.cycles.length().as_f64(), self.part)
    }

    pub(crate) fn is_longer_than(self, other: Self) -> bool {
        self.mark.cycles.length() > other.mark.cycles.length()
    }

    /// Whether they are at the same time.
    pub(crate) fn is_beside(self, other: Self) -> bool {
        self.mark.cycles.overlaps(other.mark.cycles)
    }

    pub(crate) fn overlaps(self, cycles: CycleRange) -> bool {
        self.mark.cycles.overlaps(cycles)
    }

    /// Where the trace shows it.
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
    /// By start.
    marks: Vec<TraceMark>,
    part: MarkedPart,
}

impl MarkedWindow {
    /// The marks, by start.
    pub(crate) fn iter(&self) -> impl Iterator<Item = WindowMark<'_>> {
        self.marks.iter().map(|mark| WindowMark { mark, part: self.part })
    }

    /// Nothing of the window.
    pub(crate) fn nothing(&self) -> Share<MarkedPart> {
        Share::new(0.0, self.part)
    }

    /// What at least one mark takes.
    pub(crate) fn union(&self) -> Share<MarkedPart> {
        let end = self.part.cycles.end;
        let own = covered(self.marks.iter().map(|mark| mark.cycles));
        let inside = own.iter().map(|range| range.end.min(end).saturating_sub(range.start));
        Share::new(inside.sum::<Cycles>().as_f64(), self.part)
    }

    /// What marks at `pace` take of the window, so many for each mark that `holds` is true of.
    pub(crate) fn at_pace(
        &self,
        pace: MarkPace,
        each: f64,
        holds: impl Fn(WindowMark<'_>) -> bool,
    ) -> Share<MarkedPart> {
        let count = self.iter().filter(|mark| holds(*mark)).count();
        Share::new(pace.0 * each * count as f64, self.part)
    }

    /// How many marks the run has that `holds` is true of.
    pub(crate) fn count_of_run(&self, holds: impl Fn(WindowMark<'_>) -> bool) -> f64 {
        self.iter().filter(|mark| holds(*mark)).count() as f64 * self.part.times
    }

    /// The pace of the marks within others; none where none are. Where what one mark does goes on beside
    /// the next, they overlap: what each costs is the time from one start to the next.
    pub(crate) fn pace_within(&self, others: &[CycleRange]) -> Option<MarkPace> {
        let whole = covered(others.iter().copied());
        let is_inside = |mark: &&TraceMark| {
            let before = whole.partition_point(|range| range.start < mark.cycles.end);
            before.checked_sub(1).is_some_and(|at| whole[at].overlaps(mark.cycles))
        };
        let (mut cycles, mut count) = (0.0, 0.0);
        for mark in self.marks.iter().filter(is_inside) {
            cycles += mark.cycles.length().as_f64();
            count += 1.0;
        }
        if count == 0.0 {
            return None;
        }
        let mean = cycles / count;
        let before = |cycle| self.marks.partition_point(|mark| mark.cycles.start < cycle);
        let (mut between, mut count) = (0.0, 0.0);
        for other in others {
            if let [first, .., last] = &self.marks[before(other.start)..before(other.end)] {
                between += (last.cycles.start - first.cycles.start).as_f64();
                count += (before(other.end) - before(other.start) - 1) as f64;
            }
        }
        Some(MarkPace(if count == 0.0 { mean } else { mean.min(between / count) }))
    }

    /// The cycles of the marks that `holds` is true of.
    pub(crate) fn ranges(&self, holds: impl Fn(WindowMark<'_>) -> bool) -> Vec<CycleRange> {
        self.iter().filter(|mark| holds(*mark)).map(|of| of.mark.cycles).collect()
    }
}

/// Cycles that are in at least one range, of ranges by start.
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

/// Marks of the kinds that say how a run goes on, each with its window.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct RunMarks {
    pub(crate) phases: MarkedWindow,
    pub(crate) slots: MarkedWindow,
    pub(crate) stages: MarkedWindow,
    pub(crate) updates: MarkedWindow,
}

impl RunMarks {
    /// Reads those of a run, of each kind all of them or about `most`.
    ///
    /// # Errors
    /// Parts of the file that cannot be read.
    pub(crate) fn read(report: &Report, run: CycleRange, most: u64) -> Result<Self, ReportError> {
        let reader = RunMarksReader { report, run, most: most.max(1) };
        Ok(Self {
            phases: reader.read(MarkKind::Phase)?,
            slots: reader.read(MarkKind::Slot)?,
            stages: reader.read(MarkKind::Stage)?,
            updates: reader.read(MarkKind::Update)?,
        })
    }

    /// A slot of median length among those of a full pipeline.
    pub(crate) fn typical_slot(&self) -> Option<CycleRange> {
        let has_phases = self.phases.iter().next().is_some();
        let full = has_phases.then(|| self.phases.ranges(|phase| !phase.is_ramp()));
        let mut slots = RepeatedMarkFinder::new(MarkKind::Slot, full);
        for (place, mark) in (0..).zip(&self.slots.marks) {
            slots.push(mark, place);
        }
        slots.finish().map(|slots| slots.typical.range)
    }
}

/// Reads windows of marks.
struct RunMarksReader<'a> {
    report: &'a Report,
    run: CycleRange,
    most: u64,
}

impl RunMarksReader<'_> {
    /// All marks of a kind, or those of the first periods of the run: whole iterations, else slots,
    /// or else marks of the kind itself.
    fn read(&self, kind: MarkKind) -> Result<MarkedWindow, ReportError> {
        let run = WholeRun::of(self.run.length());
        let count = self.report.mark_count(kind)?;
        if count <= self.most {
            let marks = self.marks(kind, None, usize::MAX)?;
            let part = MarkedPart { cycles: self.run, times: 1.0, run };
            return Ok(MarkedWindow { marks, part });
        }
        for period in [MarkKind::Iteration, MarkKind::Slot, kind] {
            let periods = self.report.mark_count(period)?;
            // As many of them as have about `most` marks of the kind.
            let wanted = u128::from(periods) * u128::from(self.most) / u128::from(count);
            let wanted = wanted as usize;
            if wanted == 0 {
                continue;
            }
            // The next one tells where the last of these ends.
            let mut found = self.marks(period, None, wanted + 1)?;
            let next = (found.len() > wanted).then(|| found.pop()).flatten();
            let (Some(first), Some(next)) = (found.first(), next) else { continue };
            let cycles = CycleRange::new(first.cycles.start, next.cycles.start);
            if cycles.is_empty() {
                continue;
            }
            let mut marks = self.marks(kind, Some(cycles), usize::MAX)?;
            marks.retain(|mark| cycles.start <= mark.cycles.start);
            let times = periods as f64 / found.len() as f64;
            return Ok(MarkedWindow { marks, part: MarkedPart { cycles, times, run } });
        }
        let part = MarkedPart { cycles: self.run, times: 0.0, run };
        Ok(MarkedWindow { marks: Vec::new(), part })
    }

    fn marks(
        &self,
        kind: MarkKind,
        window: Option<CycleRange>,
        limit: usize,
    ) -> Result<Vec<TraceMark>, ReportError> {
        self.report.marks(&MarkFilter { kind: Some(kind), ipu: None, window, limit })
    }
}
