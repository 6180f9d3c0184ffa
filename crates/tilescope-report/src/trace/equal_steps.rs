//! Visits the steps of a lane in groups of equal ones.

// Steps come from untrusted files.
#![cfg_attr(not(test), warn(clippy::indexing_slicing))]

use super::chunk::{CHUNK_STEPS, StepTally};
use super::lane::TraceLane;
use super::length_groups::LengthGroup;
use super::program_totals::{
    ProgramStepTotals, SEGMENT_STEPS, TotalsKey, segment_level_count, steps_per_segment,
};
use super::pyramid::FAN_OUT;
use super::step_record::{StepClass, StepRecord};
use crate::error::ReportError;
use crate::model::ProgramKind;
use crate::units::{Bytes, Cycles, ProgramId};

/// Steps of a program that take the same time and move the same bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct EqualSteps {
    /// The program; `None` for steps without one.
    pub program: Option<ProgramId>,
    pub(super) class: StepClass,
    /// The length of each.
    pub cycles: Cycles,
    /// Bytes that each moves: the larger of received and sent bytes.
    pub bytes_moved: Bytes,
    /// Number of steps.
    pub times: u64,
}

impl EqualSteps {
    /// A single step.
    pub(super) fn of(record: &StepRecord) -> Self {
        Self {
            program: record.program,
            class: record.class,
            cycles: record.range.length(),
            bytes_moved: record.bytes_in.max(record.bytes_out),
            times: 1,
        }
    }

    /// The kind of the steps.
    pub fn kind(&self) -> ProgramKind {
        self.class.kind()
    }
}

/// Visits the steps of a lane in groups: see [`TraceLane::visit_steps`].
pub trait StepVisitor {
    /// Visits all steps of a program at once. Returns `false` to get them in smaller groups.
    fn take_totals(&mut self, totals: &ProgramStepTotals) -> bool;

    /// Visits the steps of a program that it refused, by length. Returns `false` to get them in
    /// smaller groups.
    fn take_lengths(&mut self, totals: &ProgramStepTotals, groups: &[LengthGroup]) -> bool;

    /// Visits equal steps, in any order.
    fn take_steps(&mut self, steps: &EqualSteps);
}

impl TraceLane<'_> {
    /// Passes all steps to `visitor`, in the largest groups that it takes: totals of a program over
    /// many steps, sums of these by length, totals over fewer steps if it refuses both, and finally
    /// step by step.
    pub fn visit_steps(&self, visitor: &mut dyn StepVisitor) -> Result<(), ReportError> {
        let all = self.info().steps;
        if !self.store.has_totals() {
            return self.for_each_record(0..all, |_, record| {
                visitor.take_steps(&EqualSteps::of(record));
            });
        }
        let top = segment_level_count(all) - 1;
        for at in 0..all.div_ceil(steps_per_segment(top)) {
            self.visit_segment(top, at, &|_| true, visitor)?;
        }
        Ok(())
    }

    /// Passes the steps of a segment to `visitor`, for the programs that are `open`.
    fn visit_segment(
        &self,
        level: u32,
        at: u64,
        open: &dyn Fn(TotalsKey) -> bool,
        visitor: &mut dyn StepVisitor,
    ) -> Result<(), ReportError> {
        let segment = self.store.segment(self.info(), level, at)?;
        let mut refused: Vec<TotalsKey> = Vec::new();
        for totals in segment.iter().filter(|totals| open(totals.key())) {
            if !visitor.take_totals(totals) {
                refused.push(totals.key());
            }
        }
        if !refused.is_empty() && self.store.has_lengths() {
            let groups = self.store.length_groups(self.info(), (level, at), &segment)?;
            let mut entries = segment.iter().zip(&groups);
            refused.retain(|key| {
                // Refused totals are in the order of the segment.
                let entry = entries.find(|(totals, _)| totals.key() == *key);
                entry.is_none_or(|(totals, groups)| !visitor.take_lengths(totals, groups.groups()))
            });
        }
        if refused.is_empty() {
            return Ok(());
        }
        // Searched for every step: they are few, and a search among them is cheaper than a hash.
        refused.sort_unstable();
        let is_refused = |key: TotalsKey| refused.binary_search(&key).is_ok();
        let all = self.info().steps;
        if level == 0 {
            return self.visit_equal_steps(at, &mut |steps| {
                if is_refused((steps.program, steps.class)) {
                    visitor.take_steps(steps);
                }
            });
        }
        let below = all.div_ceil(steps_per_segment(level - 1));
        for child in at * FAN_OUT..((at + 1) * FAN_OUT).min(below) {
            // The depth is bounded by the number of levels, at most six.
            self.visit_segment(level - 1, child, &is_refused, visitor)?;
        }
        Ok(())
    }

    /// Passes the steps of a segment of level 0 to `each`, equal ones together.
    fn visit_equal_steps(
        &self,
        at: u64,
        each: &mut dyn FnMut(&EqualSteps),
    ) -> Result<(), ReportError> {
        let chunk_steps = CHUNK_STEPS as u64;
        let positions = at * SEGMENT_STEPS..((at + 1) * SEGMENT_STEPS).min(self.info().steps);
        // Segments of tests are shorter than a chunk.
        if !SEGMENT_STEPS.is_multiple_of(chunk_steps) {
            return self.for_each_record(positions, |_, record| each(&EqualSteps::of(record)));
        }
        let expected = self.store.expectations(self.info())?;
        let mut tally = StepTally::new(&expected);
        for chunk in positions.start / chunk_steps..positions.end.div_ceil(chunk_steps) {
            self.store
                .decode_chunk(self.info(), chunk, |blob, count, _| tally.add(blob, count, each))?;
        }
        tally.finish(each).ok_or_else(|| self.store.contradiction(self.info()))
    }
}
