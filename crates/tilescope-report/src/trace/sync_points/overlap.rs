//! Computes the overlap of tiles beside the compute tiles of an IPU with the work of those, step by
//! step.

// Steps come from untrusted files.
#![cfg_attr(not(test), warn(clippy::indexing_slicing))]

use super::super::step_record::{StepClass, StepRecord};
use crate::units::{CycleRange, Cycles, ProgramId};
use std::collections::{BTreeMap, VecDeque};

/// The maximum number of busy periods of the compute tiles of an IPU that are kept for later steps
/// of other tiles. In a simulated run, those steps come before the compute tiles continue.
const MAX_KEPT: usize = 1 << 12;

/// Steps of a program on a lane beside compute tiles.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct BesideCompute {
    /// The number of the lane.
    pub(crate) lane: u32,
    pub(crate) program: Option<ProgramId>,
    pub(crate) class: StepClass,
    /// Cycles during which the compute tiles of the IPU work; `None` if that is not known of all
    /// steps.
    pub(crate) hidden: Option<Cycles>,
}

/// A lane, a program, and the code of its activity.
type BesideKey = (u32, Option<ProgramId>, u64);

/// The state of one IPU.
#[derive(Debug)]
pub(super) struct IpuOverlap {
    /// Busy periods of its compute tiles that are kept.
    busy: VecDeque<CycleRange>,
    /// The range of cycles in which their busy periods are known.
    known_from: Cycles,
    known_to: Cycles,
    /// Steps of other tiles that end later than that range.
    open: Vec<(BesideKey, CycleRange)>,
    /// End of the last step of each lane of other tiles.
    ends: BTreeMap<u32, Cycles>,
    hidden: BTreeMap<BesideKey, Option<Cycles>>,
}

impl IpuOverlap {
    /// The state of an IPU after this last busy period of its compute tiles.
    pub(super) fn behind(last: CycleRange) -> Self {
        Self {
            busy: VecDeque::from([last]),
            known_from: last.start,
            known_to: last.end,
            open: Vec::new(),
            ends: BTreeMap::new(),
            hidden: BTreeMap::new(),
        }
    }

    /// Adds a step of a lane, given by sub-lane and number. A step that `waits` does not count as
    /// work.
    pub(super) fn push(&mut self, sub_lane: u8, lane: u32, record: &StepRecord, waits: bool) {
        if sub_lane == 0 {
            return self.compute(record.range, waits);
        }
        self.ends.insert(lane, record.range.end);
        if waits {
            return;
        }
        let key = (lane, record.program, record.class.code());
        let sum = self.hidden.entry(key).or_insert(Some(Cycles::ZERO));
        if record.range.start < self.known_from {
            *sum = None;
        } else if record.range.end > self.known_to {
            self.open.push((key, record.range));
        } else {
            self.add(key, record.range);
        }
    }

    /// The sums of all programs.
    pub(super) fn finish(mut self) -> impl Iterator<Item = BesideCompute> {
        self.known_to = Cycles::MAX;
        self.close();
        self.hidden.into_iter().filter_map(|((lane, program, class), hidden)| {
            Some(BesideCompute { lane, program, class: StepClass::from_code(class)?, hidden })
        })
    }

    fn compute(&mut self, range: CycleRange, waits: bool) {
        self.known_to = range.end;
        if !waits {
            match self.busy.back_mut() {
                Some(last) if last.end == range.start => last.end = range.end,
                _ => self.busy.push_back(range),
            }
        }
        if self.open.iter().any(|(_, open)| open.end <= range.end) {
            self.close();
        }
        if self.busy.len() > MAX_KEPT {
            self.forget();
        }
    }

    /// Adds up the steps of other tiles that have ended.
    fn close(&mut self) {
        let mut open = std::mem::take(&mut self.open);
        open.retain(|(key, range)| {
            let is_over = range.end <= self.known_to;
            if is_over {
                self.add(*key, *range);
            }
            !is_over
        });
        self.open = open;
    }

    fn add(&mut self, key: BesideKey, range: CycleRange) {
        let first = self.busy.partition_point(|busy| busy.end <= range.start);
        let within = self.busy.range(first..).take_while(|busy| busy.start < range.end);
        let hidden: Cycles = within.map(|busy| busy.intersection(range).length()).sum();
        if let Some(Some(sum)) = self.hidden.get_mut(&key) {
            *sum = sum.saturating_add(hidden);
        }
    }

    /// Drops periods that no open or expected step needs. A lane that was idle for long is expected
    /// to resume no earlier than in the newer half.
    fn forget(&mut self) {
        let count_before = |at: Cycles| self.busy.partition_point(|busy| busy.end <= at);
        let needed = self.ends.values().copied().min().map_or(0, count_before);
        let open = self.open.iter().map(|(_, range)| count_before(range.start)).min();
        let first = needed.max(self.busy.len() / 2).min(open.unwrap_or(usize::MAX));
        let forgotten = first.checked_sub(1).and_then(|last| self.busy.get(last));
        self.known_from = forgotten.map_or(self.known_from, |busy| busy.end);
        self.busy.drain(..first);
    }
}
