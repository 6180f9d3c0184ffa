//! Running sums over the steps of one lane: nodes of the pyramid and totals by program.
//!
//! The writer of an index stores the pieces; the check of an index compares them with the stored
//! ones.

// Steps come from untrusted files.
#![cfg_attr(not(test), warn(clippy::indexing_slicing))]

use super::exchange_order::{ExchangeOrder, LONG_LANE};
use super::program_totals::{ProgramTotals, SEGMENT_STEPS, StepCounter, segment_level_count};
use super::pyramid::{self, BLOCK_NODES, FAN_OUT, LEAF_STEPS, PyramidNode};
use super::step_record::StepRecord;
use crate::units::CycleRange;

/// A complete piece of the sums.
pub(super) enum LaneSumPiece {
    /// A block of nodes of a level.
    Nodes { level: u32, block: u64, nodes: Vec<PyramidNode> },
    /// A segment of totals by program of a level.
    Totals { level: u32, at: u64, totals: ProgramTotals },
    /// The busy steps before exchanges, of a long lane.
    ExchangeOrder(Vec<u8>),
}

/// Nodes of one level: the complete ones of the current block, and the current node.
#[derive(Default)]
struct PyramidLevelBuilder {
    completed_blocks: u64,
    finished: Vec<PyramidNode>,
    filling: Option<PyramidNode>,
    children: u64,
}

impl PyramidLevelBuilder {
    /// Adds steps that fit into the current node. Returns the node if they complete it.
    fn take_steps(&mut self, records: &[StepRecord]) -> Option<PyramidNode> {
        let (first, rest) = records.split_first()?;
        let mut node = match self.filling.take() {
            Some(mut node) => {
                node.add_step(first);
                node
            }
            None => PyramidNode::from_record(first),
        };
        rest.iter().for_each(|record| node.add_step(record));
        self.filling = Some(node);
        self.children += records.len() as u64;
        if self.children == LEAF_STEPS { self.complete() } else { None }
    }

    /// Adds a child. Returns the node that it completes, if any.
    fn take(&mut self, child: &PyramidNode) -> Option<PyramidNode> {
        match &mut self.filling {
            Some(node) => node.add(child),
            None => self.filling = Some(*child),
        }
        self.children += 1;
        if self.children == FAN_OUT { self.complete() } else { None }
    }

    fn complete(&mut self) -> Option<PyramidNode> {
        self.children = 0;
        let node = self.filling.take()?;
        self.finished.push(node);
        Some(node)
    }
}

/// Totals by program of one level: the current segment.
#[derive(Default)]
struct SegmentLevelBuilder {
    completed: u64,
    filling: ProgramTotals,
    children: u64,
}

/// The sums of one lane. In memory are one block of nodes and one segment per level.
#[derive(Default)]
pub(super) struct LaneSums {
    steps: u64,
    range: Option<CycleRange>,
    levels: Vec<PyramidLevelBuilder>,
    /// Steps of the current lowest segment.
    counter: StepCounter,
    segments: Vec<SegmentLevelBuilder>,
    exchanges: ExchangeOrder,
}

impl LaneSums {
    /// Number of steps added so far.
    pub(super) fn steps(&self) -> u64 {
        self.steps
    }

    /// The cycles from the start of the first step to the end of the last.
    pub(super) fn range(&self) -> CycleRange {
        self.range.unwrap_or_default()
    }

    /// Adds a step, which must not start before the end of [`LaneSums::range`]. Complete pieces go
    /// to `pieces`.
    pub(super) fn push(&mut self, record: &StepRecord, pieces: &mut Vec<LaneSumPiece>) {
        self.push_all(std::slice::from_ref(record), pieces);
    }

    /// Adds consecutive steps. A step must not start before the end of the previous one. Complete
    /// pieces go to `pieces`.
    pub(super) fn push_all(&mut self, records: &[StepRecord], pieces: &mut Vec<LaneSumPiece>) {
        let mut rest = records;
        while let Some(first) = rest.first() {
            // A full segment is completed only when more steps follow, because the levels depend on
            // that.
            let in_segment = self.steps % SEGMENT_STEPS;
            if self.steps > 0 && in_segment == 0 {
                self.complete_segment(0, pieces);
            }
            if self.segments.is_empty() {
                self.segments.push(SegmentLevelBuilder::default());
                self.levels.push(PyramidLevelBuilder::default());
            }
            let room = (SEGMENT_STEPS - in_segment).min(LEAF_STEPS - self.steps % LEAF_STEPS);
            let fitting = usize::try_from(room).unwrap_or(usize::MAX).min(rest.len());
            let (own, later) = rest.split_at(fitting);
            rest = later;
            debug_assert!(first.range.start >= self.range().end, "steps do not overlap");
            let last = own.last().unwrap_or(first);
            let start = self.range.map_or(first.range.start, |range| range.start);
            self.range = Some(CycleRange::new(start, last.range.end));
            for (position, record) in (self.steps..).zip(own) {
                self.counter.add_step(position, record);
            }
            self.exchanges.push_all(own);
            self.steps += own.len() as u64;
            if let Some(node) = self.levels.first_mut().and_then(|lowest| lowest.take_steps(own)) {
                self.propagate_node(1, &node, pieces);
            }
        }
    }

    /// Completes the rest.
    pub(super) fn finish(mut self, pieces: &mut Vec<LaneSumPiece>) {
        // Bottom up: completing a level passes its last node to the level above.
        for level in 0..self.levels.len() {
            if let Some(node) = self.levels.get_mut(level).and_then(PyramidLevelBuilder::complete) {
                self.propagate_node(level + 1, &node, pieces);
            }
        }
        debug_assert!(
            self.levels.is_empty() == (self.steps == 0),
            "a lane with steps has a pyramid, an empty one has none"
        );
        let top = pyramid::level_count(self.steps) as usize;
        for level in 0..top.min(self.levels.len()) {
            self.complete_block(level, pieces);
        }
        if self.steps >= LONG_LANE {
            pieces.extend(self.exchanges.encode().map(LaneSumPiece::ExchangeOrder));
        }
        if self.steps > 0 {
            // Each level receives the last segment of the level below before its own is complete.
            (0..segment_level_count(self.steps))
                .for_each(|at| self.complete_segment(at as usize, pieces));
        }
    }

    /// Passes a node to the level above its own, and further up while nodes fill up.
    fn propagate_node(
        &mut self,
        level: usize,
        child: &PyramidNode,
        pieces: &mut Vec<LaneSumPiece>,
    ) {
        // Only the current block stays in memory, for any number of steps.
        if self.levels.get(level - 1).is_some_and(|below| below.finished.len() == BLOCK_NODES) {
            self.complete_block(level - 1, pieces);
        }
        if self.levels.len() == level {
            self.levels.push(PyramidLevelBuilder::default());
        }
        if let Some(node) = self.levels.get_mut(level).and_then(|above| above.take(child)) {
            self.propagate_node(level + 1, &node, pieces);
        }
    }

    /// Completes the current segment of a level, and adds it to the level above.
    #[expect(
        clippy::cast_possible_truncation,
        reason = "a lane has six levels of segments at most"
    )]
    fn complete_segment(&mut self, level: usize, pieces: &mut Vec<LaneSumPiece>) {
        if let Some(lowest) = self.segments.first_mut().filter(|_| level == 0) {
            lowest.filling = self.counter.take();
        }
        if self.segments.len() == level + 1 {
            self.segments.push(SegmentLevelBuilder::default());
        }
        if self.segments.get(level + 1).is_some_and(|above| above.children == FAN_OUT) {
            self.complete_segment(level + 1, pieces);
        }
        let levels = self.segments.get_mut(level..).and_then(<[_]>::first_chunk_mut);
        let Some([own, above]) = levels else { return };
        let totals = std::mem::take(&mut own.filling);
        let at = own.completed;
        (own.completed, own.children) = (at + 1, 0);
        above.filling.add(&totals);
        above.children += 1;
        pieces.push(LaneSumPiece::Totals { level: level as u32, at, totals });
    }

    #[expect(clippy::cast_possible_truncation, reason = "a lane has ten levels at most")]
    fn complete_block(&mut self, level: usize, pieces: &mut Vec<LaneSumPiece>) {
        let pending = self.levels.get_mut(level).filter(|pending| !pending.finished.is_empty());
        if let Some(pending) = pending {
            let nodes = std::mem::take(&mut pending.finished);
            let level = level as u32 + 1;
            let block = pending.completed_blocks;
            pieces.push(LaneSumPiece::Nodes { level, block, nodes });
            pending.completed_blocks += 1;
        }
    }
}
