//! Cycles by program over parts of lanes.

// Steps come from untrusted files.
#![cfg_attr(not(test), warn(clippy::indexing_slicing))]

use super::super::answers::{LaneInfo, PerActivity};
use super::super::lane::TraceLane;
use super::super::lane_pieces::HeldChunk;
use super::super::program_totals::SEGMENT_STEPS;
use super::super::recent_places::RecentPlaces;
use super::super::step_record::{StepClass, StepRecord};
use super::walk::LanePlaces;
use crate::database::{ReportDatabase, SelectQuery};
use crate::error::ReportError;
use crate::limits::{MAX_CYCLES, MAX_STEPS};
use crate::model::{ProgramKind, StepActivity, StreamEndpoint};
use crate::row_writer::RowWriter;
use crate::units::{CycleRange, Cycles, ProgramId};
use foldhash::HashMap;
use rusqlite::params;
use std::cmp::Reverse;

/// Steps of a program on a lane, as far as they are on the critical path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PathProgram {
    /// Position of the lane.
    pub lane: usize,
    /// The program; `None` for steps without one.
    pub program: Option<ProgramId>,
    class: StepClass,
    pub steps: u64,
    /// Cycles on the path.
    pub cycles: Cycles,
    /// Position on the lane of a representative step: the longest one, if steps were visited one by
    /// one.
    pub position: u64,
    /// Cycles of that step.
    longest: Cycles,
}

impl PathProgram {
    /// The kind of its steps.
    pub fn kind(&self) -> ProgramKind {
        self.class.kind()
    }

    /// The activity of its steps.
    pub fn activity(&self) -> StepActivity {
        self.class.activity()
    }
}

impl PathProgram {
    /// True if it can belong to a lane with `of` steps.
    fn is_sane(&self, of: u64) -> bool {
        let Self { steps, cycles, position, longest, .. } = *self;
        steps <= MAX_STEPS && position < of && longest <= cycles && cycles <= MAX_CYCLES
    }

    /// The sort key of the sums of a path.
    fn key(&self) -> (usize, Option<ProgramId>, u64) {
        (self.lane, self.program, self.class.code())
    }
}

/// Rows of `trace_path_programs`.
impl PathProgram {
    /// Writes the sums of a path over these lanes.
    pub(in crate::trace) fn insert_all(
        all: &[Self],
        lanes: &[LaneInfo],
        rows: &RowWriter,
    ) -> Result<(), ReportError> {
        for (id, sum) in (0i64..).zip(all) {
            let lane = lanes.get(sum.lane).map(|info| info.number().number());
            let Self { class, program, steps, cycles, position, longest, .. } = *sum;
            let program = program.map(|program| program.0);
            let kind = class.kind().name();
            let stream = class.stream().name();
            let [steps, cycles, position, longest] =
                [steps, cycles.0, position, longest.0].map(|number| number as i64);
            rows.insert(
                "trace_path_programs",
                params![id, lane, program, kind, stream, steps, cycles, position, longest],
            )?;
        }
        Ok(())
    }

    /// All rows with sums that can belong to these lanes, in order.
    pub(in crate::trace) fn read_all(
        db: &ReportDatabase,
        lanes: &[LaneInfo],
        places: &LanePlaces,
    ) -> Result<Vec<Self>, ReportError> {
        let columns =
            ["lane", "program", "type", "stream", "steps", "cycles", "position", "longest_cycles"];
        let select = SelectQuery::all("trace_path_programs", &columns).clauses("ORDER BY id");
        let rows = db.list(select, |cells| {
            let lane = *places.get(&cells.small(0)?)?;
            let kind = cells.named(2, |name| Some(ProgramKind::from_name(name)))?;
            let class = StepClass::new(kind, cells.named(3, StreamEndpoint::from_name)?);
            let steps = cells.count(4, MAX_STEPS)?;
            let cycles = cells.count(5, MAX_CYCLES)?;
            let position = cells.count(6, MAX_STEPS)?;
            let longest = cells.count(7, MAX_CYCLES)?;
            let program = cells.small(1).map(ProgramId);
            let sum = Self { lane, program, class, steps, cycles, position, longest };
            Some(sum).filter(|sum| lanes.get(lane).is_some_and(|info| sum.is_sane(info.steps)))
        })?;
        let mut all: Vec<Self> = rows.into_iter().flatten().collect();
        all.sort_by_key(Self::key);
        Ok(all)
    }
}

/// True if sums by program are equal, apart from the steps that they show.
pub(super) fn are_same_sums(these: &[PathProgram], those: &[PathProgram]) -> bool {
    let get_figures = |sum: &PathProgram| (sum.key(), sum.steps, sum.cycles);
    these.iter().map(get_figures).eq(those.iter().map(get_figures))
}

/// Sums the cycles of steps by program.
#[derive(Default)]
pub(super) struct ProgramCycleCounter {
    sums: Vec<PathProgram>,
    places: HashMap<(usize, Option<ProgramId>, StepClass), usize>,
    recent: RecentPlaces,
    /// The chunk at the end of the last range of each lane: the next range mostly begins in the
    /// same chunk.
    held: Vec<Option<HeldChunk>>,
}

/// The steps of a lane in a range.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct CountedRange {
    /// Their cycles inside the range.
    pub(super) cycles: PerActivity<Cycles>,
    /// The position of the last of them.
    pub(super) last: Option<u64>,
}

impl CountedRange {
    fn add(&mut self, activity: StepActivity, cycles: Cycles) {
        let sum = &mut self.cycles[activity];
        *sum = Cycles::saturating_add(*sum, cycles);
    }
}

impl ProgramCycleCounter {
    /// Adds the steps of a lane in a range; steps at its ends count with the part inside it.
    pub(super) fn add(
        &mut self,
        lane: usize,
        of: TraceLane<'_>,
        range: CycleRange,
    ) -> Result<CountedRange, ReportError> {
        let mut counted = CountedRange::default();
        if self.held.len() <= lane {
            self.held.resize(lane + 1, None);
        }
        let held = self.held.get_mut(lane).and_then(Option::take);
        let mut held = held.map(|chunk| of.chunk_towards(chunk, range.start)).transpose()?;
        if let Some((first, steps)) = held.as_mut().and_then(|chunk| chunk.touching(range)) {
            for (at, record) in (first..).zip(steps) {
                self.step(lane, at, record, range, &mut counted);
            }
            counted.last =
                (first + steps.len() as u64).checked_sub(1).filter(|_| !steps.is_empty());
            self.hold(lane, held);
            return Ok(counted);
        }
        let positions = match held.as_ref().and_then(|chunk| chunk.first_touching(range)) {
            Some(first) => of.touching_from(first, range)?,
            None => of.touching(range)?,
        };
        if let Some(last) = positions.end.checked_sub(1).filter(|_| !positions.is_empty()) {
            self.hold(lane, Some(of.held_chunk(last)?));
            counted.last = Some(last);
        }
        let first = positions.start;
        let end = positions.end;
        // The sums of whole segments are stored in the file.
        let inner = (first + 1).next_multiple_of(SEGMENT_STEPS)
            ..end.saturating_sub(1) / SEGMENT_STEPS * SEGMENT_STEPS;
        let mut count_steps = |counter: &mut Self, positions| {
            of.for_each_record(positions, |at, record| {
                counter.step(lane, at, record, range, &mut counted);
            })
        };
        if inner.is_empty() {
            count_steps(self, positions)?;
            return Ok(counted);
        }
        count_steps(self, first..inner.start)?;
        count_steps(self, inner.end..end)?;
        for totals in of.program_totals(inner)? {
            let place = self.place(lane, totals.program, totals.class(), totals.first_position);
            self.add_to(place, totals.steps, totals.cycles);
            counted.add(totals.activity(), totals.cycles);
        }
        Ok(counted)
    }

    fn hold(&mut self, lane: usize, chunk: Option<HeldChunk>) {
        if let Some(held) = self.held.get_mut(lane) {
            *held = chunk;
        }
    }

    /// Adds the part of a step inside a range.
    fn step(
        &mut self,
        lane: usize,
        position: u64,
        record: &StepRecord,
        range: CycleRange,
        counted: &mut CountedRange,
    ) {
        let StepRecord { program, class, .. } = *record;
        let place = self.place(lane, program, class, position);
        let cycles = record.range.intersection(range).length();
        counted.add(class.activity(), cycles);
        let Some(sum) = self.sums.get_mut(place) else { return };
        debug_assert_eq!((sum.lane, sum.program), (lane, program), "a sum is of one program");
        sum.steps += 1;
        sum.cycles = sum.cycles.saturating_add(cycles);
        if cycles > sum.longest {
            (sum.longest, sum.position) = (cycles, position);
        }
    }

    fn place(
        &mut self,
        lane: usize,
        program: Option<ProgramId>,
        class: StepClass,
        position: u64,
    ) -> usize {
        let Self { sums, places, recent, .. } = self;
        let key = (lane, program, class);
        let fresh = sums.len();
        let place = recent.find(
            program,
            |at| sums.get(at).is_some_and(|sum| (sum.lane, sum.program, sum.class) == key),
            || Some(*places.entry(key).or_insert(fresh)),
        );
        let place = place.unwrap_or(fresh);
        if place == fresh {
            let steps = 0;
            let cycles = Cycles::ZERO;
            let longest = Cycles::ZERO;
            sums.push(PathProgram { lane, program, class, steps, cycles, position, longest });
        }
        place
    }

    fn add_to(&mut self, place: usize, steps: u64, cycles: Cycles) {
        if let Some(sum) = self.sums.get_mut(place) {
            sum.steps += steps;
            sum.cycles = sum.cycles.saturating_add(cycles);
        }
    }

    /// Adds the counts of other steps.
    pub(super) fn merge(&mut self, other: Self) {
        for PathProgram { lane, program, class, steps, cycles, position, longest } in other.sums {
            let place = self.place(lane, program, class, position);
            self.add_to(place, steps, cycles);
            if let Some(sum) = self.sums.get_mut(place) {
                // The first one among equals, independent of the thread that counted it.
                let best = (sum.longest, Reverse(sum.position)).max((longest, Reverse(position)));
                (sum.longest, sum.position) = (best.0, best.1.0);
            }
        }
    }

    /// All sums, by lane, program and kind.
    pub(super) fn finish(mut self) -> Vec<PathProgram> {
        self.sums.sort_unstable_by_key(PathProgram::key);
        self.sums
    }
}
