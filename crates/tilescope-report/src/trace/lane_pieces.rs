//! Decoded pieces of a lane, which stay decoded while they are in use, and a walk over its steps.

// Steps come from untrusted files.
#![cfg_attr(not(test), warn(clippy::indexing_slicing))]

use super::answers::{LaneInfo, LaneStep};
use super::chunk::CHUNK_STEPS;
use super::lane::TraceLane;
use super::place_in_piece;
use super::step_record::StepRecord;
use crate::error::ReportError;
use crate::units::{CycleRange, Cycles};
use std::sync::Arc;

/// Iterates over the steps of a lane, with one decoded chunk at a time.
pub(crate) struct LaneStepCursor<'a> {
    lane: TraceLane<'a>,
    position: u64,
    chunk: Option<Piece<StepRecord>>,
}

impl<'a> LaneStepCursor<'a> {
    /// A cursor before the first step of `lane`.
    pub(crate) fn new(lane: TraceLane<'a>) -> Self {
        Self { lane, position: 0, chunk: None }
    }

    /// The lane of this cursor.
    pub(crate) fn lane(&self) -> LaneInfo {
        self.lane.info()
    }

    /// Number of steps returned so far.
    pub(crate) fn position(&self) -> u64 {
        self.position
    }

    /// The next step; `None` after the last.
    pub(crate) fn next_step(&mut self) -> Result<Option<LaneStep>, ReportError> {
        if self.position >= self.lane.info().steps {
            return Ok(None);
        }
        let chunk = match self.chunk.take() {
            Some(chunk) if self.position < chunk.first + CHUNK_STEPS as u64 => chunk,
            _ => self.lane.chunk_of(self.position)?,
        };
        let record = chunk.items.get(place_in_piece(self.position, chunk.first)).copied();
        self.chunk = Some(chunk);
        let record = record.ok_or_else(|| self.lane.store.contradiction(self.lane.info()))?;
        self.position += 1;
        Ok(Some(LaneStep::new(self.position - 1, &record)))
    }
}

/// A decoded chunk or block of nodes, and the position of its first item. It stays decoded while it
/// is in use.
#[derive(Clone)]
pub(super) struct Piece<T> {
    /// Its position on the lane.
    pub(super) first: u64,
    pub(super) items: Arc<Vec<T>>,
}

/// Consecutive steps of a lane, decoded. Windows mostly follow each other, so that each search
/// begins where the last one ended.
#[derive(Clone)]
pub(super) struct HeldChunk {
    pub(super) piece: Piece<StepRecord>,
    /// Index of the last step that was found.
    near: usize,
}

impl HeldChunk {
    pub(super) fn new(piece: Piece<StepRecord>) -> Self {
        Self { piece, near: 0 }
    }

    /// The steps that touch `window`, with the position of the first, as [`TraceLane::touching`]
    /// finds them; `None` if some may be outside of the chunk.
    pub(super) fn touching(&mut self, window: CycleRange) -> Option<(u64, &[StepRecord])> {
        let steps = &self.piece.items;
        // A step of no cycles before the chunk touches a window that begins with the chunk.
        let begins_before = steps.first()?.range.start < window.start;
        if window.is_empty() || !begins_before || steps.last()?.range.start < window.end {
            return None;
        }
        let first = self.count_before(window);
        let end = partition_point_near(steps, first, |step| step.range.start < window.end);
        self.near = end.saturating_sub(1);
        Some((self.piece.first + first as u64, self.piece.items.get(first..end.max(first))?))
    }

    /// The position of the first step that touches `window`, if it is in the chunk.
    pub(super) fn first_touching(&self, window: CycleRange) -> Option<u64> {
        let steps = &self.piece.items;
        let begins_before = steps.first()?.range.start < window.start;
        let first = self.count_before(window);
        if begins_before && first < steps.len() {
            Some(self.piece.first + first as u64)
        } else {
            None
        }
    }

    /// Number of steps of the chunk before those that touch `window`.
    fn count_before(&self, window: CycleRange) -> usize {
        let is_before = |step: &StepRecord| hit_range(step.range).end <= window.start;
        partition_point_near(&self.piece.items, self.near, is_before)
    }
}

/// The number of items at the start of a sorted list for which `holds` is true, searched from an
/// index on with growing strides: a binary search would read items all over the list.
pub(crate) fn partition_point_near<T>(
    items: &[T],
    near: usize,
    holds: impl Fn(&T) -> bool,
) -> usize {
    if !items.get(near).is_some_and(&holds) {
        let before = items.get(..near).unwrap_or(items);
        return before.partition_point(holds);
    }
    let mut known = near;
    let mut stride = 1;
    while items.get(known + stride).is_some_and(&holds) {
        known += stride;
        stride *= 2;
    }
    let rest = items.get(known + 1..items.len().min(known + stride)).unwrap_or_default();
    known + 1 + rest.partition_point(holds)
}

/// The cycles at which a window touches a step.
pub(super) fn hit_range(range: CycleRange) -> CycleRange {
    CycleRange::new(range.start, range.end.max(range.start + Cycles(1)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use tilescope_test_tiers::cases;

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(cases(250)))]
        #[test]
        fn a_search_from_an_index_finds_what_a_search_of_the_list_finds(
            mut items in prop::collection::vec(0u32..50, 0..80),
            near in 0usize..90,
            limit in 0u32..52,
        ) {
            items.sort_unstable();
            let found = partition_point_near(&items, near, |item| *item < limit);
            prop_assert_eq!(found, items.partition_point(|item| *item < limit));
        }
    }
}
