//! Queries on one lane.

// Blobs come from untrusted files.
#![cfg_attr(not(test), warn(clippy::indexing_slicing))]

use super::answers::{LaneInfo, LaneStep, StepTotals};
use super::chunk::{CHUNK_STEPS, decode_details};
use super::exchange_order::ExchangeFollowing;
use super::lane_pieces::{HeldChunk, Piece, hit_range};
use super::place_in_piece;
use super::program_totals::{
    ProgramStepSums, ProgramStepTotals, ProgramTotals, SEGMENT_STEPS, StepCounter,
    segment_level_count, steps_per_segment,
};
use super::pyramid::{self, BLOCK_NODES, FAN_OUT, LEAF_STEPS, PyramidNode};
use super::step_record::{StepRecord, StepRecordDetails};
use super::store::TraceStore;
use crate::error::ReportError;
use crate::limits::MAX_STEPS;
use crate::model::{StepActivity, StepOnIpu};
use crate::units::{CycleRange, Cycles, StepId};
use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;

/// The number of chunks that are passed one by one before a search through the pyramid.
const MOST_CHUNKS_AHEAD: u32 = 4;

/// An activity, a length in cycles, and the number of its steps up to that length.
pub type StepLengths = (StepActivity, u64, u64);

/// One lane of a trace.
///
/// A step *touches* a window if they share a cycle; a step of no cycles counts as one cycle long
/// for that purpose only.
#[derive(Clone, Copy)]
pub struct TraceLane<'a> {
    pub(super) store: &'a TraceStore,
    info: LaneInfo,
}

impl<'a> TraceLane<'a> {
    pub(super) fn new(store: &'a TraceStore, info: LaneInfo) -> Self {
        Self { store, info }
    }

    /// The position and length of the lane.
    pub fn info(&self) -> LaneInfo {
        self.info
    }

    /// The busy steps before the exchanges of the lane, in the order of their first executions.
    /// `None` in files before version 2.10, and for short lanes, whose steps can be read instead.
    ///
    /// # Errors
    /// A part of the file cannot be read.
    pub fn exchange_order(&self) -> Result<Option<Vec<ExchangeFollowing>>, ReportError> {
        self.store.exchange_order(self.info)
    }

    /// Sums over `window`: cycles and balances of the part of each step inside it, bytes and number
    /// of the steps that touch it. O(log steps).
    pub fn totals(&self, window: CycleRange) -> Result<StepTotals, ReportError> {
        if window.is_empty() || !window.overlaps(self.reach()) {
            return Ok(StepTotals::default());
        }
        // A last step of no cycles counts one cycle beyond the range of the lane.
        let lane = self.reach();
        if window.start <= lane.start && lane.end <= window.end {
            return self.sum(0..self.info().steps);
        }
        let touching = self.touching(window)?;
        let mut totals = StepTotals::default();
        let Some(last) = touching.end.checked_sub(1).filter(|last| *last >= touching.start) else {
            return Ok(totals);
        };
        // Only the first and the last step can extend beyond the window.
        totals.add(&self.clipped(touching.start, window)?);
        if last > touching.start {
            totals.add(&self.sum(touching.start + 1..last)?);
            totals.add(&self.clipped(last, window)?);
        }
        Ok(totals)
    }

    /// Sums over all steps of the lane, from at most 16 nodes.
    pub fn all_totals(&self) -> Result<StepTotals, ReportError> {
        self.sum(0..self.info().steps)
    }

    /// Totals by program and kind over the steps at `positions` (see [`TraceLane::touching`]),
    /// ordered by program and kind: exact for any number of steps.
    pub fn program_totals(
        &self,
        positions: Range<u64>,
    ) -> Result<Vec<ProgramStepTotals>, ReportError> {
        Ok(self.sum_programs(&self.on_lane(&positions))?.into_totals())
    }

    /// The number of steps at `positions` by activity and length, with the lengths that totals by
    /// program distinguish; ordered by activity and length.
    ///
    /// # Errors
    /// A part of the file cannot be read.
    pub fn step_lengths(&self, positions: Range<u64>) -> Result<Vec<StepLengths>, ReportError> {
        let totals = self.sum_programs(&self.on_lane(&positions))?;
        let lengths = totals.iter().flat_map(|totals| {
            let lengths = totals.lengths.iter();
            lengths.map(|(lengths, steps)| ((totals.activity(), *lengths.end()), steps))
        });
        let mut counted = BTreeMap::new();
        for (key, steps) in lengths {
            *counted.entry(key).or_insert(0) += steps;
        }
        Ok(counted
            .into_iter()
            .map(|((activity, length), steps)| (activity, length, steps))
            .collect())
    }

    /// The part of these positions that is on the lane.
    pub(super) fn on_lane(&self, positions: &Range<u64>) -> Range<u64> {
        let end = positions.end.min(self.info().steps);
        positions.start.min(end)..end
    }

    /// Totals by program over the steps at `positions`, which are on the lane.
    pub(super) fn sum_programs(
        &self,
        positions: &Range<u64>,
    ) -> Result<ProgramTotals, ReportError> {
        let levels =
            if self.store.has_totals() { segment_level_count(self.info().steps) } else { 0 };
        let all = self.info().steps;
        let end = positions.end;
        let mut sum = ProgramTotals::default();
        let mut position = positions.start;
        while position < end {
            let find_end = |level: u32| (position + steps_per_segment(level)).min(all);
            let fits = |level: &u32| {
                position.is_multiple_of(steps_per_segment(*level)) && find_end(*level) <= end
            };
            // The largest segment that fits saves the most decoding.
            match (0..levels).rev().find(fits) {
                Some(level) => {
                    let at = position / steps_per_segment(level);
                    sum.add(self.store.segment(self.info, level, at)?.as_ref());
                    position = find_end(level);
                }
                None => {
                    // Single steps are read only up to the next segment, whose sums are stored.
                    let stop = (position + 1).next_multiple_of(SEGMENT_STEPS).min(end);
                    let mut counter = StepCounter::default();
                    let steps = position..stop;
                    self.for_each_record(steps, |at, record| counter.add_step(at, record))?;
                    sum.add(&counter.take());
                    position = stop;
                }
            }
        }
        Ok(sum)
    }

    /// Sums by program and kind over all steps of the lane, ordered by program and kind.
    pub fn program_sums(&self) -> Result<Arc<Vec<ProgramStepSums>>, ReportError> {
        self.store.lane_sums(self.info, || self.read_program_sums())
    }

    fn read_program_sums(&self) -> Result<Vec<ProgramStepSums>, ReportError> {
        let all = self.info().steps;
        if !self.store.has_totals() {
            return Ok(self.program_totals(0..all)?.iter().map(ProgramStepSums::from).collect());
        }
        let top = segment_level_count(all) - 1;
        let read = |at| self.store.read_segment(self.info, (top, at), ProgramStepSums::decode);
        // At most 16, of a few thousand programs each.
        let parts: Vec<Vec<ProgramStepSums>> =
            (0..all.div_ceil(steps_per_segment(top))).map(read).collect::<Result<_, _>>()?;
        Ok(ProgramStepSums::joined(parts))
    }

    pub(super) fn for_each_record(
        &self,
        positions: Range<u64>,
        mut each: impl FnMut(u64, &StepRecord),
    ) -> Result<(), ReportError> {
        let mut position = positions.start;
        while position < positions.end {
            let stop = end_of_chunk(position).min(positions.end);
            let chunk = self.chunk_of(position)?;
            let part = self.part(&chunk, position..stop)?;
            (position..).zip(part).for_each(|(at, record)| each(at, record));
            position = stop;
        }
        Ok(())
    }

    /// The step that runs at `cycle`, if there is one.
    pub fn step_at(&self, cycle: Cycles) -> Result<Option<LaneStep>, ReportError> {
        let step = self.step(self.first_behind(cycle)?)?;
        Ok(step.filter(|step| step.range.start <= cycle))
    }

    /// The step at a position on the lane, counted from 0.
    pub fn step(&self, position: u64) -> Result<Option<LaneStep>, ReportError> {
        if position >= self.info().steps {
            return Ok(None);
        }
        self.record(position).map(|record| Some(LaneStep::new(position, &record)))
    }

    /// The step after the one at `position`.
    pub fn next(&self, position: u64) -> Result<Option<LaneStep>, ReportError> {
        position.checked_add(1).map_or(Ok(None), |next| self.step(next))
    }

    /// The step before the one at `position`.
    pub fn previous(&self, position: u64) -> Result<Option<LaneStep>, ReportError> {
        position.checked_sub(1).map_or(Ok(None), |previous| self.step(previous))
    }

    /// This lane's part of an executed step, if it took part. O(log steps).
    pub fn find(&self, step: StepId) -> Result<Option<LaneStep>, ReportError> {
        // Ids never descend along a lane, so the wanted step is the last one not above the id, or
        // missing.
        let position =
            self.partition_point(|node| node.first_step <= step, |record| record.step <= step)?;
        match position.checked_sub(1) {
            Some(position) => Ok(self.step(position)?.filter(|found| found.step == step)),
            None => Ok(None),
        }
    }

    /// This lane's part of an executed step, if it took part, and at most `next` steps after it.
    ///
    /// # Errors
    /// A part of the file cannot be read.
    pub fn find_with_next(&self, step: StepId, next: u32) -> Result<Vec<LaneStep>, ReportError> {
        let Some(found) = self.find(step)? else { return Ok(Vec::new()) };
        let behind = found.position.saturating_add(u64::from(next) + 1).min(self.info().steps);
        self.steps_at(found.position..behind)
    }

    /// The longest step in a window; steps at its edges count with the part inside it. Found by
    /// bisection: sums give its length but not its position.
    ///
    /// # Errors
    /// A part of the file cannot be read.
    pub fn longest_in(&self, mut window: CycleRange) -> Result<Option<LaneStep>, ReportError> {
        let measure_longest = |window| -> Result<Option<Cycles>, ReportError> {
            Ok(self.totals(window)?.longest.map(|longest| longest.cycles))
        };
        // A lane whose steps all have no cycles has no longest step.
        let longest = measure_longest(window)?.filter(|cycles| !cycles.is_zero());
        let Some(longest) = longest else { return Ok(None) };
        loop {
            // Each half costs O(log steps), so the whole search takes O(log cycles x log steps).
            let middle = window.start + window.length() / 2;
            let left = CycleRange::new(window.start, middle);
            let right = CycleRange::new(middle, window.end);
            if window.length() <= Cycles(1) {
                return self.step_at(window.start);
            }
            window = if measure_longest(left)? == Some(longest) {
                left
            } else if measure_longest(right)? == Some(longest) {
                right
            } else {
                // The middle is inside it.
                return self.step_at(middle);
            };
        }
    }

    /// Passes the steps at `positions` (see [`TraceLane::touching`]) to `visit`, each with the
    /// details that rows would have; `None` in reports with rows of steps. For a single pass over a
    /// run: nothing stays decoded.
    ///
    /// # Errors
    /// A part of the file cannot be read.
    pub fn visit_each_step(
        &self,
        positions: Range<u64>,
        mut visit: impl FnMut(LaneStep, Option<StepOnIpu>),
    ) -> Result<(), ReportError> {
        let LaneInfo { ipu, sub_lane, .. } = self.info();
        self.visit_chunks(positions, |chunk, positions| {
            let mut details = Vec::new();
            // Reports with rows of steps have their details there, not in chunks.
            if self.store.has_details(self.info) {
                let number = chunk.first / CHUNK_STEPS as u64;
                details = self.store.decode_details(self.info, number, |blob, expected| {
                    decode_details(blob, &chunk.items, expected)
                })?;
            }
            // Details cover the whole chunk, also if only a part of it is wanted.
            let skipped = place_in_piece(positions.start, chunk.first);
            let mut details = details.iter().skip(skipped);
            for (at, record) in (positions.start..).zip(self.part(chunk, positions)?) {
                let of_rows = details.next().map(|of| of.on_ipu(ipu, sub_lane, record));
                visit(LaneStep::new(at, record), of_rows);
            }
            Ok(())
        })
    }

    /// Passes the steps at `positions` to `visit` without their details, which need not be decoded
    /// then. Nothing stays decoded.
    ///
    /// # Errors
    /// A part of the file cannot be read.
    pub fn visit_records(
        &self,
        positions: Range<u64>,
        mut visit: impl FnMut(LaneStep),
    ) -> Result<(), ReportError> {
        self.visit_chunks(positions, |chunk, positions| {
            let records = (positions.start..).zip(self.part(chunk, positions)?);
            records.for_each(|(at, record)| visit(LaneStep::new(at, record)));
            Ok(())
        })
    }

    /// Passes every chunk with steps at `positions` to `visit`, with its part of the positions,
    /// without caching it.
    fn visit_chunks(
        &self,
        positions: Range<u64>,
        mut visit: impl FnMut(&Piece<StepRecord>, Range<u64>) -> Result<(), ReportError>,
    ) -> Result<(), ReportError> {
        let end = positions.end.min(self.info().steps);
        let mut position = positions.start;
        while position < end {
            let number = position / CHUNK_STEPS as u64;
            let stop = end_of_chunk(position).min(end);
            let items = Arc::new(self.store.read_chunk(self.info, number)?);
            visit(&Piece { first: number * CHUNK_STEPS as u64, items }, position..stop)?;
            position = stop;
        }
        Ok(())
    }

    /// The steps that touch `window`, the first `limit` of them.
    pub fn steps_in(&self, window: CycleRange, limit: usize) -> Result<Vec<LaneStep>, ReportError> {
        let touching = self.touching(window)?;
        let end = touching.end.min(touching.start.saturating_add(limit as u64));
        self.steps_at(touching.start..end)
    }

    /// Positions of the steps with ids in `ids`. O(log steps).
    ///
    /// # Errors
    /// A part of the file cannot be read.
    pub fn positions_of(&self, ids: &Range<StepId>) -> Result<Range<u64>, ReportError> {
        let count_before = |id: StepId| {
            self.partition_point(|node| node.first_step < id, |record| record.step < id)
        };
        if self.info().steps == 0 {
            return Ok(0..0);
        }
        // No search if the ids begin before the lane or end after all ids.
        let first = if ids.start == StepId(0) { 0 } else { count_before(ids.start)? };
        let end = match ids.end {
            StepId(id) if id >= MAX_STEPS => self.info().steps,
            id => count_before(id)?,
        };
        Ok(first..end.max(first))
    }

    /// The steps at `positions`, up to the end of the lane.
    ///
    /// # Errors
    /// A part of the file cannot be read.
    pub fn steps_at(&self, positions: Range<u64>) -> Result<Vec<LaneStep>, ReportError> {
        let end = positions.end.min(self.info().steps);
        let mut steps = Vec::new();
        let mut position = positions.start;
        while position < end {
            let stop = end_of_chunk(position).min(end);
            let chunk = self.chunk_of(position)?;
            let records = self.part(&chunk, position..stop)?;
            steps.extend((position..).zip(records).map(|(at, record)| LaneStep::new(at, record)));
            position = stop;
        }
        Ok(steps)
    }

    /// The steps at `positions`, up to the end of the lane, each with the details that rows would
    /// have; `None` in reports with rows of steps.
    ///
    /// # Errors
    /// A part of the file cannot be read.
    pub fn rows_at(
        &self,
        positions: Range<u64>,
    ) -> Result<Vec<(LaneStep, Option<StepOnIpu>)>, ReportError> {
        let steps = self.steps_at(positions)?;
        if !self.store.has_details(self.info) {
            return Ok(steps.into_iter().map(|step| (step, None)).collect());
        }
        let LaneInfo { ipu, sub_lane, .. } = self.info();
        let mut rows = Vec::with_capacity(steps.len());
        // Details are stored by chunk, so steps of different chunks need different pieces.
        for part in steps.chunk_by(|a, b| end_of_chunk(a.position) == end_of_chunk(b.position)) {
            let Some(first) = part.first() else { continue };
            let positions = first.position..first.position + part.len() as u64;
            let chunk = self.chunk_of(first.position)?;
            let records = self.part(&chunk, positions.clone())?;
            let details = self.details_of(first.position)?;
            let details = self.part(&details, positions)?;
            let pairs = part.iter().zip(records).zip(details);
            rows.extend(pairs.map(|((step, record), details)| {
                (*step, Some(details.on_ipu(ipu, sub_lane, record)))
            }));
        }
        Ok(rows)
    }

    /// The first `limit` steps with ids in `ids`, in terms of the model. Only for traces with all
    /// details of steps.
    pub(crate) fn full_steps(
        &self,
        ids: Range<StepId>,
        limit: usize,
    ) -> Result<Vec<(LaneStep, StepOnIpu)>, ReportError> {
        let LaneInfo { ipu, sub_lane, steps, .. } = self.info();
        let mut position = self.partition_point(
            |node| node.first_step < ids.start,
            |record| record.step < ids.start,
        )?;
        let mut found = Vec::new();
        while position < steps && found.len() < limit {
            // A chunk at a time: a small limit must not decode a long range of ids.
            let rest = position..end_of_chunk(position).min(steps);
            let chunk = self.chunk_of(position)?;
            let details = self.details_of(position)?;
            let records = self.part(&chunk, rest.clone())?;
            for (record, details) in records.iter().zip(self.part(&details, rest)?) {
                if record.step >= ids.end || found.len() == limit {
                    return Ok(found);
                }
                let step = LaneStep::new(position, record);
                found.push((step, details.on_ipu(ipu, sub_lane, record)));
                position += 1;
            }
        }
        Ok(found)
    }

    /// Positions of the steps that touch `window`.
    pub fn touching(&self, window: CycleRange) -> Result<Range<u64>, ReportError> {
        let lane = self.reach();
        if window.is_empty() || !window.overlaps(lane) {
            return Ok(0..0);
        }
        // No search if a window extends beyond the lane.
        let first = if window.start <= lane.start { 0 } else { self.first_behind(window.start)? };
        let end = if window.end >= lane.end {
            self.info().steps
        } else {
            self.partition_point(|n| n.range.start < window.end, |r| r.range.start < window.end)?
        };
        Ok(first..end.max(first))
    }

    /// The same, given the first of them.
    pub(super) fn touching_from(
        &self,
        first: u64,
        window: CycleRange,
    ) -> Result<Range<u64>, ReportError> {
        // Mostly the next chunk has the end.
        let last_chunk = end_of_chunk(first);
        if last_chunk < self.info().steps {
            let next = self.chunk_of(last_chunk)?;
            let begins = |record: &StepRecord| record.range.start < window.end;
            let (Some(start), Some(end)) = (next.items.first(), next.items.last()) else {
                return self.touching(window);
            };
            if begins(start) && !begins(end) {
                let end = last_chunk + next.items.partition_point(begins) as u64;
                return Ok(first..end);
            }
        }
        self.touching(window)
    }

    /// The cycles at which the lane has a step: its last step may have no cycles, at the very end.
    fn reach(&self) -> CycleRange {
        CycleRange::new(self.info().range.start, self.info().range.end + Cycles(1))
    }

    pub(super) fn levels(&self) -> u32 {
        pyramid::level_count(self.info().steps)
    }

    /// Position of the first step that ends after `cycle`: it runs at `cycle`, or is the next one.
    fn first_behind(&self, cycle: Cycles) -> Result<u64, ReportError> {
        // Steps before a node that starts before `cycle` have ended by then; steps that start at
        // `cycle` or later have not.
        self.partition_point(
            |node| node.range.start < cycle,
            |record| hit_range(record.range).end <= cycle,
        )
    }

    /// Number of steps for which `holds` is true, given that it is true up to some step and false
    /// from there on. `begun` is true for a node only if `holds` is true for all steps before it,
    /// and false only if `holds` is false for all its steps.
    fn partition_point(
        &self,
        begun: impl Fn(&PyramidNode) -> bool,
        holds: impl Fn(&StepRecord) -> bool,
    ) -> Result<u64, ReportError> {
        // All nodes of the top level: at most 16, so the search reads one block per level.
        let mut within = 0..pyramid::node_count(self.info().steps, self.levels());
        for level in (1..=self.levels()).rev() {
            let block = self.block_of(level, within.start)?;
            let nodes = self.part(&block, within.clone())?;
            let holding = nodes.partition_point(&begun) as u64;
            let Some(last) = (within.start + holding).checked_sub(1).filter(|_| holding > 0) else {
                // No node has begun, so `holds` is false from the first step of this range on.
                return Ok(within.start * pyramid::steps_per_node(level));
            };
            let children = if level == 1 { LEAF_STEPS } else { FAN_OUT };
            // The last node of a level may have fewer children than the others.
            let below = self.count_below(level);
            within = last * children..((last + 1) * children).min(below);
        }
        let chunk = self.chunk_of(within.start)?;
        let records = self.part(&chunk, within.clone())?;
        Ok(within.start + records.partition_point(holds) as u64)
    }

    /// Number of nodes of the level below `level`, or of steps.
    fn count_below(&self, level: u32) -> u64 {
        match level {
            1 => self.info().steps,
            _ => pyramid::node_count(self.info().steps, level - 1),
        }
    }

    /// The block that holds a node of `level`.
    pub(super) fn block_of(
        &self,
        level: u32,
        node: u64,
    ) -> Result<Piece<PyramidNode>, ReportError> {
        let block = node / BLOCK_NODES as u64;
        let items = self.store.nodes(self.info, level, block)?;
        Ok(Piece { first: block * BLOCK_NODES as u64, items })
    }

    /// The chunk with a step, for callers that read adjacent parts of a lane.
    pub(super) fn held_chunk(&self, position: u64) -> Result<HeldChunk, ReportError> {
        self.chunk_of(position).map(HeldChunk::new)
    }

    /// The chunk with the steps at a cycle, if it is near this one; another one otherwise.
    pub(super) fn chunk_towards(
        &self,
        mut chunk: HeldChunk,
        cycle: Cycles,
    ) -> Result<HeldChunk, ReportError> {
        // Neighbouring chunks are tried first. If the cycle is further away, the caller's search
        // from the root decodes less than a walk.
        for _ in 0..MOST_CHUNKS_AHEAD {
            let next = end_of_chunk(chunk.piece.first);
            let is_behind = chunk.piece.items.last().is_some_and(|last| last.range.end <= cycle);
            if !is_behind || next >= self.info().steps {
                break;
            }
            chunk = self.held_chunk(next)?;
        }
        Ok(chunk)
    }

    /// The chunk with a step.
    pub(super) fn chunk_of(&self, position: u64) -> Result<Piece<StepRecord>, ReportError> {
        let chunk = position / CHUNK_STEPS as u64;
        let items = self.store.chunk(self.info, chunk)?;
        Ok(Piece { first: chunk * CHUNK_STEPS as u64, items })
    }

    /// The details of the steps of the chunk with a step.
    fn details_of(&self, position: u64) -> Result<Piece<StepRecordDetails>, ReportError> {
        let chunk = position / CHUNK_STEPS as u64;
        let items = self.store.details(self.info, chunk)?;
        Ok(Piece { first: chunk * CHUNK_STEPS as u64, items })
    }

    /// The part of a piece at `positions`, which must not extend beyond it. Pieces are stored
    /// separately: those of a damaged file may disagree.
    pub(super) fn part<'p, T>(
        &self,
        piece: &'p Piece<T>,
        positions: Range<u64>,
    ) -> Result<&'p [T], ReportError> {
        let find_place = |position| place_in_piece(position, piece.first);
        let part = piece.items.get(find_place(positions.start)..find_place(positions.end));
        part.ok_or_else(|| self.store.contradiction(self.info))
    }

    fn record(&self, position: u64) -> Result<StepRecord, ReportError> {
        let chunk = self.chunk_of(position)?;
        let record = chunk.items.get(place_in_piece(position, chunk.first));
        record.copied().ok_or_else(|| self.store.contradiction(self.info))
    }

    /// The sums of one step; only its part inside `window` counts.
    fn clipped(&self, position: u64, window: CycleRange) -> Result<StepTotals, ReportError> {
        let mut record = self.record(position)?;
        // Bytes are not divided: a step that is cut counts with all its bytes.
        record.range = record.range.intersection(window);
        Ok(StepTotals::from_record(&record))
    }

    /// Sums over whole steps: from the highest nodes that fit, and from steps and low nodes at the
    /// ends.
    fn sum(&self, positions: Range<u64>) -> Result<StepTotals, ReportError> {
        let all = self.info().steps;
        let mut totals = StepTotals::default();
        let mut position = positions.start;
        while position < positions.end {
            // The last node of a level ends with the lane.
            let find_end = |level: u32| (position + pyramid::steps_per_node(level)).min(all);
            let fits = |level: &u32| {
                position.is_multiple_of(pyramid::steps_per_node(*level))
                    && find_end(*level) <= positions.end
            };
            match (1..=self.levels()).rev().find(fits) {
                Some(level) => {
                    let at = position / pyramid::steps_per_node(level);
                    let block = self.block_of(level, at)?;
                    let nodes = self.part(&block, at..at + 1)?;
                    nodes.iter().for_each(|node| totals.add(&node.totals));
                    position = find_end(level);
                }
                None => {
                    let stop = (position + 1).next_multiple_of(LEAF_STEPS).min(positions.end);
                    let chunk = self.chunk_of(position)?;
                    let records = self.part(&chunk, position..stop)?;
                    records.iter().for_each(|record| totals.add_step(record));
                    position = stop;
                }
            }
        }
        Ok(totals)
    }
}

/// The end of the chunk with a step.
fn end_of_chunk(position: u64) -> u64 {
    (position + 1).next_multiple_of(CHUNK_STEPS as u64)
}
