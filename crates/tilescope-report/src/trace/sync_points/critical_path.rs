//! Queries on the critical path.

// Points come from untrusted files.
#![cfg_attr(not(test), warn(clippy::indexing_slicing))]

use super::super::answers::{LaneInfo, LaneSpan, LaneStep, PerActivity, StepTotals};
use super::super::lane::TraceLane;
use super::super::lane_number::LaneNumber;
use super::super::store::TraceStore;
use super::overlap::BesideCompute;
use super::path_file;
use super::path_index::{BlockDetails, BlockState, LaneSlack, PathIndex, PathLead, StretchGroup};
use super::point::SyncPoint;
use super::program_cycles::{PathProgram, ProgramCycleCounter};
use super::walk::{FoundStretch, PathHop};
use crate::error::ReportError;
use crate::model::StepActivity;
use crate::row_writer::RowWriter;
use crate::units::{CycleRange, Cycles, ProgramId, ReplicaIpu};
use std::ops::Range;
use std::sync::Arc;
use std::thread::ScopedJoinHandle;

/// The maximum number of threads that read steps of the path, each with a decoded chunk of every
/// lane.
const MOST_THREADS: usize = 8;

/// The longest chain of steps of a run, each waiting for the previous one: from the first cycle to
/// the last, without a gap. At a join it continues on the lane that arrived last, or on the first
/// of several that arrived at once.
///
/// Positions of lanes are those of [`CriticalPath::lane_infos`].
#[derive(Clone)]
pub struct CriticalPath {
    pub(super) store: Arc<TraceStore>,
    pub(super) index: Arc<PathIndex>,
}

/// Consecutive steps of one lane that are on the critical path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PathStretch {
    /// Position of the lane.
    pub lane: usize,
    /// Cycles of the path; steps at its ends may extend beyond them.
    pub range: CycleRange,
    /// Sums over its steps. Cycles of the range without a step are not included.
    pub totals: StepTotals,
    /// The hop by which the path reaches it; `None` for the first stretch.
    pub hop: Option<PathHop>,
}

/// A span of the path to draw.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PathSpan {
    /// Steps of one lane, drawn as on the lane. A step at the end of a stretch is cut to the path.
    OfLane { lane: usize, range: CycleRange, span: LaneSpan },
    /// Stretches narrower than a pixel.
    Stretches {
        range: CycleRange,
        stretches: u64,
        totals: StepTotals,
        /// Their lane, if all are on one.
        lane: Option<usize>,
    },
}

/// Steps of a program on a lane beside compute tiles.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BesideProgram {
    /// Position of the lane.
    pub lane: usize,
    /// The program; `None` for steps without one.
    pub program: Option<ProgramId>,
    /// The activity of its steps.
    pub activity: StepActivity,
    /// Cycles during which the compute tiles of the IPU work; `None` if that is not known of all
    /// steps.
    pub hidden: Option<Cycles>,
}

impl PathSpan {
    /// The cycles from its start to its end.
    pub fn range(&self) -> CycleRange {
        match self {
            Self::OfLane { range, .. } | Self::Stretches { range, .. } => *range,
        }
    }

    /// Number of steps in it.
    pub fn steps(&self) -> u64 {
        match self {
            Self::OfLane { span, .. } => span.steps(),
            Self::Stretches { totals, .. } => totals.steps,
        }
    }
}

impl CriticalPath {
    pub(in super::super) fn new(store: Arc<TraceStore>, index: Arc<PathIndex>) -> Self {
        Self { store, index }
    }

    /// All lanes that it may use, of every class of replicas.
    pub fn lane_infos(&self) -> &[LaneInfo] {
        &self.store.lanes
    }

    /// The position of a lane.
    pub fn position_of(&self, at: ReplicaIpu, sub_lane: u8) -> Option<usize> {
        self.lane_position(LaneNumber::new(at.class, at.ipu, sub_lane).number())
    }

    /// The lane at a position.
    pub fn lane_at(&self, position: usize) -> Option<TraceLane<'_>> {
        self.lane(position).ok()
    }

    /// The run that it covers.
    pub fn range(&self) -> CycleRange {
        self.index.range
    }

    /// Sums over all its steps. Cycles of the run without a step are not included.
    pub fn totals(&self) -> &StepTotals {
        &self.index.totals
    }

    /// Number of its stretches.
    pub fn stretch_count(&self) -> u64 {
        self.index.stretches
    }

    /// Slack, waits and lead of each lane, and its cycles on the path.
    pub fn lanes(&self) -> &[LaneSlack] {
        &self.index.lanes
    }

    /// The waits of the path for a lane, by the program of the shared step. At the end of the run
    /// and between tiles of an IPU there is no such program.
    pub fn leads(&self) -> impl Iterator<Item = (usize, Option<ProgramId>, PathLead)> {
        self.index.leads.iter().map(|((lane, program), lead)| (*lane, *program, *lead))
    }

    /// The spans to draw of `window` on `pixels` pixels, in order, like [`TraceLane::spans`]: at
    /// most `6 * pixels + 6` spans.
    pub fn spans(&self, window: CycleRange, pixels: u32) -> Result<Vec<PathSpan>, ReportError> {
        // At least one cycle, because positions are divided by it.
        let pixel = window.length().div_ceil(u64::from(pixels.max(1))).max(Cycles(1));
        let mut sources = SpanSourceCollector { window, pixel, done: Vec::new(), narrow: None };
        for group in self.groups_in(window) {
            // A group narrower than a pixel has its sums; its stretches need not be decoded.
            if group.range.length() < pixel {
                sources.add_narrow(*group);
                continue;
            }
            self.visit_stretches(group.range.intersection(window), &mut |stretch| {
                sources.add(stretch);
                Ok(())
            })?;
        }
        sources.close();
        let spans = self.spans_of(&sources.done, pixel)?;
        debug_assert!(spans.len() <= 6 * pixels as usize + 6, "a screen of spans");
        Ok(spans)
    }

    /// The spans of these sources.
    fn spans_of(
        &self,
        sources: &[PathSpanSource],
        pixel: Cycles,
    ) -> Result<Vec<PathSpan>, ReportError> {
        let count_pixels = |range: CycleRange| {
            u32::try_from(range.length().0.div_ceil(pixel.0.max(1))).unwrap_or(u32::MAX)
        };
        let mut spans = Vec::with_capacity(sources.len());
        for source in sources {
            match *source {
                PathSpanSource::OfLane { lane, range, inside } => {
                    for span in self.lane(lane)?.spans(inside, count_pixels(inside))? {
                        // The lane returns whole steps, but the path may leave the lane in the
                        // middle of one.
                        let range = span.range().intersection(range);
                        spans.push(PathSpan::OfLane { lane, range, span });
                    }
                }
                PathSpanSource::Narrow(StretchGroup { range, totals, stretches, lane }) => {
                    spans.push(PathSpan::Stretches { range, stretches, totals, lane });
                }
            }
        }
        Ok(spans)
    }

    /// Sums over `window`, like [`TraceLane::totals`] for a lane.
    pub fn totals_in(&self, window: CycleRange) -> Result<StepTotals, ReportError> {
        let mut totals = StepTotals::default();
        for group in self.groups_in(window) {
            if group.range.intersection(window) == group.range {
                totals.add(&group.totals);
                continue;
            }
            self.visit_stretches(group.range.intersection(window), &mut |stretch| {
                let inside = stretch.range.intersection(window);
                // Stored sums are those of whole stretches; only the two at the edges are summed
                // again.
                let own = if inside == stretch.range {
                    stretch.totals
                } else {
                    self.lane(stretch.lane)?.totals(inside)?
                };
                totals.add(&own);
                Ok(())
            })?;
        }
        Ok(totals)
    }

    /// Sums by lane, program and kind over the steps of the path in `window`; steps at its ends
    /// count with the cycles inside it. Decodes all steps of the path in the window.
    pub fn programs_in(&self, window: CycleRange) -> Result<Vec<PathProgram>, ReportError> {
        let mut counter = ProgramCycleCounter::default();
        self.visit_first(window, &mut |stretch| self.count(&mut counter, stretch, window))?;
        self.count_blocks(window)?.into_iter().for_each(|other| counter.merge(other));
        Ok(counter.finish())
    }

    /// Counts the blocks of a window, with threads that each take a share of every block, because
    /// some blocks have most of the run. Not in a pool: a thread that waits in one may pick up work
    /// that waits for this.
    fn count_blocks(&self, window: CycleRange) -> Result<Vec<ProgramCycleCounter>, ReportError> {
        let threads = std::thread::available_parallelism().map_or(1, usize::from).min(MOST_THREADS);
        let count_share = |thread: usize| {
            let mut counter = ProgramCycleCounter::default();
            for block in self.blocks_in(window) {
                let details = self.details(block)?;
                let find_bound = |shares| details.stretches.len() * shares / threads;
                let share = details.stretches.get(find_bound(thread)..find_bound(thread + 1));
                within(share.unwrap_or_default(), window)
                    .try_for_each(|stretch| self.count(&mut counter, stretch, window))?;
            }
            Ok(counter)
        };
        std::thread::scope(|scope| {
            let counting: Vec<_> =
                (0..threads).map(|thread| scope.spawn(move || count_share(thread))).collect();
            let ended = counting.into_iter().map(ScopedJoinHandle::join);
            ended
                .map(|part| part.unwrap_or_else(|panic| std::panic::resume_unwind(panic)))
                .collect()
        })
    }

    fn count(
        &self,
        counter: &mut ProgramCycleCounter,
        PathStretch { lane, range, .. }: PathStretch,
        window: CycleRange,
    ) -> Result<(), ReportError> {
        counter.add(lane, self.lane(lane)?, range.intersection(window)).map(drop)
    }

    /// The same over the stretches that led to a place, see [`CriticalPath::path_to`].
    pub fn programs_of(&self, stretches: &[PathStretch]) -> Result<Vec<PathProgram>, ReportError> {
        let mut counter = ProgramCycleCounter::default();
        for stretch in stretches {
            self.count(&mut counter, *stretch, stretch.range)?;
        }
        Ok(counter.finish())
    }

    /// The same over the whole path: stored in reports since version 2.8, computed once for others.
    pub fn programs(&self) -> Result<Arc<Vec<PathProgram>>, ReportError> {
        self.store.path_programs(|| {
            // Files of older versions store no sums, and those of a damaged file do not add up.
            let stored = self.store.stored_path_programs()?;
            if self.is_whole(&stored) { Ok(stored) } else { self.programs_in(self.range()) }
        })
    }

    /// True if the sums by program add up to those of the path.
    fn is_whole(&self, programs: &[PathProgram]) -> bool {
        let mut cycles = PerActivity::default();
        for sum in programs {
            let own = &mut cycles[sum.activity()];
            *own = Cycles::saturating_add(*own, sum.cycles);
        }
        cycles == self.totals().cycles
    }

    /// The first `limit` stretches that touch `window`.
    pub fn stretches_in(
        &self,
        window: CycleRange,
        limit: usize,
    ) -> Result<Vec<PathStretch>, ReportError> {
        let mut found = Vec::new();
        // Nothing is read beyond the limit: each block has a few thousand stretches.
        let mut window = window.intersection(self.range());
        while found.len() < limit && !window.is_empty() {
            let end = self.end_of_block(window.start).min(window.end).max(window.start + Cycles(1));
            self.visit_stretches(CycleRange::new(window.start, end), &mut |stretch| {
                // A stretch across the border of two blocks is visited once for each.
                if found.last() != Some(&stretch) && found.len() < limit {
                    found.push(stretch);
                }
                Ok(())
            })?;
            window = CycleRange::new(end, window.end);
        }
        Ok(found)
    }

    /// The number of stretches that touch `window`.
    pub fn stretch_count_in(&self, window: CycleRange) -> Result<u64, ReportError> {
        let mut count = 0;
        for group in self.groups_in(window) {
            // A single stretch touches the window because its group does.
            if group.stretches == 1 || group.range.intersection(window) == group.range {
                count += group.stretches;
                continue;
            }
            self.visit_stretches(group.range.intersection(window), &mut |_| {
                count += 1;
                Ok(())
            })?;
        }
        Ok(count)
    }

    /// The stretch at a cycle of the run.
    pub fn stretch_at(&self, cycle: Cycles) -> Result<Option<PathStretch>, ReportError> {
        let window = CycleRange::new(cycle, cycle.saturating_add(Cycles(1)));
        Ok(self.stretches_in(window, 1)?.pop())
    }

    /// The stretch that contains a step of a lane.
    pub fn stretch_of(
        &self,
        lane: usize,
        step: &LaneStep,
    ) -> Result<Option<PathStretch>, ReportError> {
        let CycleRange { start, end } = step.range;
        // A step of no cycles is on the path if its neighbours are.
        let window =
            CycleRange::new(start.saturating_sub(Cycles(1)), end.saturating_add(Cycles(1)));
        let mut found = None;
        self.visit_stretches(window, &mut |stretch| {
            let inside = stretch.range.intersection(step.range);
            let holds = if step.range.is_empty() {
                stretch.range.start <= start && start <= stretch.range.end
            } else {
                !inside.is_empty()
            };
            if holds && stretch.lane == lane && found.is_none() {
                found = Some(stretch);
            }
            Ok(())
        })?;
        Ok(found)
    }

    /// The cycles by which a step at a position of a lane could end later without delaying the end
    /// of the run. Unless another step is known to wait for it, none is assumed to.
    pub fn slack(&self, lane: usize, position: u64) -> Result<Option<Cycles>, ReportError> {
        let Some(block) = self.block_of(lane, position) else { return Ok(None) };
        Ok(self.details(block)?.slack(lane, position))
    }

    /// The step of the path after a given one, with the position of its lane.
    pub fn next(
        &self,
        lane: usize,
        step: &LaneStep,
    ) -> Result<Option<(usize, LaneStep)>, ReportError> {
        let Some(stretch) = self.stretch_of(lane, step)? else { return Ok(None) };
        let next = self.lane(lane)?.next(step.position)?;
        if let Some(next) = next.filter(|next| next.range.start < stretch.range.end) {
            return Ok(Some((lane, next)));
        }
        // Stretches follow each other without gaps, so the next one begins where this one ends.
        let Some(stretch) = self.stretch_at(stretch.range.end)? else { return Ok(None) };
        let own = self.lane(stretch.lane)?;
        let first = own.touching(stretch.range)?.start;
        Ok(own.step(first)?.map(|step| (stretch.lane, step)))
    }

    /// The step of the path before a given one, with the position of its lane.
    pub fn previous(
        &self,
        lane: usize,
        step: &LaneStep,
    ) -> Result<Option<(usize, LaneStep)>, ReportError> {
        let Some(stretch) = self.stretch_of(lane, step)? else { return Ok(None) };
        let before = self.lane(lane)?.previous(step.position)?;
        if let Some(before) = before.filter(|before| before.range.end > stretch.range.start) {
            return Ok(Some((lane, before)));
        }
        let Some(cycle) = stretch.range.start.checked_sub(Cycles(1)) else { return Ok(None) };
        let Some(stretch) = self.stretch_at(cycle)? else { return Ok(None) };
        let own = self.lane(stretch.lane)?;
        let last = own.touching(stretch.range)?.end.checked_sub(1);
        let step = last.map(|last| own.step(last)).transpose()?.flatten();
        Ok(step.map(|step| (stretch.lane, step)))
    }

    /// The step of the path at a cycle, with the position of its lane; if none runs then, the next
    /// one.
    pub fn step_at(&self, cycle: Cycles) -> Result<Option<(usize, LaneStep)>, ReportError> {
        let Some(stretch) = self.stretch_at(cycle)? else { return Ok(None) };
        let own = self.lane(stretch.lane)?;
        let rest = CycleRange::new(cycle, stretch.range.end);
        let step = own.step(own.touching(rest)?.start)?;
        Ok(step.map(|step| (stretch.lane, step)))
    }

    /// Programs of lanes beside compute tiles, with the time in which they overlap work of those.
    pub fn beside_compute(&self) -> Result<Vec<BesideProgram>, ReportError> {
        let found = self.store.beside_compute()?.into_iter();
        Ok(found
            .filter_map(|sum| {
                let lane = self.lane_position(sum.lane)?;
                let BesideCompute { program, class, hidden, .. } = sum;
                Some(BesideProgram { lane, program, activity: class.activity(), hidden })
            })
            .collect())
    }

    /// Writes the index, so that a reader can skip the walk over all sync points.
    pub(crate) fn write_index(&self, rows: &RowWriter) -> Result<(), ReportError> {
        path_file::insert(&self.index, rows)
    }

    /// Writes the sums of programs over the path.
    pub(crate) fn write_programs(
        &self,
        programs: &[PathProgram],
        rows: &RowWriter,
    ) -> Result<(), ReportError> {
        PathProgram::insert_all(programs, &self.store.lanes, rows)
    }

    /// The number of a lane in files.
    pub(super) fn lane_number(&self, lane: usize) -> Option<u32> {
        self.store.lanes.get(lane).map(|info| info.number().number())
    }

    /// The position of the lane with a number.
    pub(super) fn lane_position(&self, number: u32) -> Option<usize> {
        // Lanes are sorted by it.
        self.store.lanes.binary_search_by_key(&number, |info| info.number().number()).ok()
    }

    /// Number of blocks of sync points that it is derived from.
    pub(crate) fn block_count(&self) -> usize {
        self.index.blocks.len()
    }

    /// The block with the slack of the step at a position of a lane.
    pub(super) fn block_of(&self, lane: usize, position: u64) -> Option<usize> {
        let get_limit = |limits: &[u64]| limits.get(lane).copied().unwrap_or(0);
        let block = self.index.blocks.partition_point(|block| get_limit(&block.limits) <= position);
        if block < self.index.blocks.len() { Some(block) } else { None }
    }

    /// True if a block has the slack of the step at a position of a lane.
    pub(super) fn is_in_block(&self, block: usize, lane: usize, position: u64) -> bool {
        let blocks = &self.index.blocks;
        let get_limit = |block: &BlockState| block.limits.get(lane).copied().unwrap_or(0);
        let before =
            block.checked_sub(1).and_then(|before| blocks.get(before)).map_or(0, get_limit);
        before <= position && blocks.get(block).is_some_and(|own| position < get_limit(own))
    }

    pub(super) fn points(&self, block: usize) -> Result<Vec<SyncPoint>, ReportError> {
        self.store.sync_points(block as u64)
    }

    /// Position of the last step of a lane that begins before a cycle.
    pub(super) fn last_before(
        &self,
        lane: usize,
        cycle: Cycles,
    ) -> Result<Option<u64>, ReportError> {
        let before = CycleRange::new(Cycles::ZERO, cycle);
        Ok(self.lane(lane)?.touching(before)?.end.checked_sub(1))
    }

    pub(super) fn lane(&self, lane: usize) -> Result<TraceLane<'_>, ReportError> {
        let info: Option<&LaneInfo> = self.store.lanes.get(lane);
        let info = info.ok_or_else(|| self.store.path_contradiction())?;
        Ok(TraceLane::new(&self.store, *info))
    }

    pub(super) fn details(&self, block: usize) -> Result<Arc<BlockDetails>, ReportError> {
        self.store.path_block(&self.index, block)
    }

    /// Groups of stretches that share a cycle with a window.
    fn groups_in(&self, window: CycleRange) -> &[StretchGroup] {
        let groups = &self.index.groups;
        let first = groups.partition_point(|group| group.range.end <= window.start);
        let end = groups.partition_point(|group| group.range.start < window.end);
        groups.get(first..end).unwrap_or_default()
    }

    /// The end of the stretches that begin in the same block as the one at a cycle.
    fn end_of_block(&self, cycle: Cycles) -> Cycles {
        let blocks = &self.index.blocks;
        let next = blocks.get(blocks.partition_point(|block| block.from <= cycle));
        next.map_or(self.index.range.end, |block| block.from)
    }

    /// Passes the stretches that share a cycle with a window to `each`, in order.
    fn visit_stretches(
        &self,
        window: CycleRange,
        each: &mut dyn FnMut(PathStretch) -> Result<(), ReportError>,
    ) -> Result<(), ReportError> {
        self.visit_first(window, each)?;
        for block in self.blocks_in(window) {
            within(&self.details(block)?.stretches, window).try_for_each(&mut *each)?;
        }
        Ok(())
    }

    /// The same for the stretches before all blocks.
    fn visit_first(
        &self,
        window: CycleRange,
        each: &mut dyn FnMut(PathStretch) -> Result<(), ReportError>,
    ) -> Result<(), ReportError> {
        within(self.index.first.as_slice(), window).try_for_each(each)
    }

    /// Blocks of the stretches that share a cycle with a window.
    fn blocks_in(&self, window: CycleRange) -> Range<usize> {
        let blocks = &self.index.blocks;
        // The stretch at the start of the window may begin in an earlier block.
        let first = blocks.partition_point(|block| block.from <= window.start).saturating_sub(1);
        first..blocks.partition_point(|block| block.from < window.end).max(first)
    }
}

/// Stretches that share a cycle with a window.
fn within(
    stretches: &[FoundStretch],
    window: CycleRange,
) -> impl Iterator<Item = PathStretch> + use<'_> {
    let in_window = stretches.iter().filter(move |found| found.range.overlaps(window));
    in_window.map(|&FoundStretch { lane, range, totals, hop }| PathStretch {
        lane,
        range,
        totals,
        hop,
    })
}

/// The source of the spans of a part of the path.
#[expect(clippy::large_enum_variant, reason = "a few thousand at most, mostly narrow")]
enum PathSpanSource {
    /// A stretch at least as wide as a pixel, and its part inside the window.
    OfLane {
        lane: usize,
        range: CycleRange,
        inside: CycleRange,
    },
    Narrow(StretchGroup),
}

/// Sources of the spans of a window, collected from left to right.
struct SpanSourceCollector {
    window: CycleRange,
    /// Cycles per pixel.
    pixel: Cycles,
    done: Vec<PathSpanSource>,
    /// The narrow stretches of a pixel, with the number of that pixel.
    narrow: Option<(u64, StretchGroup)>,
}

impl SpanSourceCollector {
    fn add(&mut self, stretch: PathStretch) {
        let PathStretch { lane, range, totals, .. } = stretch;
        if range.length() < self.pixel {
            self.add_narrow(StretchGroup { range, totals, stretches: 1, lane: Some(lane) });
            return;
        }
        self.close();
        let inside = range.intersection(self.window);
        self.done.push(PathSpanSource::OfLane { lane, range, inside });
    }

    fn add_narrow(&mut self, group: StretchGroup) {
        // A narrow stretch may cross the border of a pixel; it is drawn once, where it begins.
        let pixel = group.range.start.saturating_sub(self.window.start) / self.pixel;
        match &mut self.narrow {
            Some((at, narrow)) if *at == pixel => *narrow = narrow.followed_by(&group),
            _ => {
                self.close();
                self.narrow = Some((pixel, group));
            }
        }
    }

    fn close(&mut self) {
        self.done.extend(self.narrow.take().map(|(_, group)| PathSpanSource::Narrow(group)));
    }
}
