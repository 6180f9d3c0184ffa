//! Consecutive marks of a row that are counted as one.

use crate::model::{MarkKind, TraceMark, TrainingPass};
use crate::units::{CycleRange, Cycles, ReplicaClassId, ReplicaIpu};
use serde::{Deserialize, Serialize};

/// A row of marks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum MarkRowId {
    /// Marks of a kind that belong to no single IPU.
    Common(MarkKind),
    /// Stages and weight updates of an IPU.
    Ipu(ReplicaIpu),
}

impl MarkRowId {
    /// The kinds of marks in the row. Among marks that start together, the first kind is first.
    pub fn kinds(self) -> &'static [MarkKind] {
        match self {
            Self::Common(kind) => {
                let place = MarkKind::ALL.iter().position(|known| *known == kind);
                place.map_or(&[], |at| &MarkKind::ALL[at..=at])
            }
            Self::Ipu(_) => &[MarkKind::Stage, MarkKind::Update],
        }
    }

    /// The IPU of the row; `None` for a common row.
    pub fn ipu(self) -> Option<ReplicaIpu> {
        match self {
            Self::Common(_) => None,
            Self::Ipu(at) => Some(at),
        }
    }

    /// The replicas that the marks belong to.
    pub fn class(self) -> ReplicaClassId {
        self.ipu().unwrap_or_default().class
    }
}

/// Cycles by pass, and those without a pass.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PassCycles {
    pub(super) passes: [Cycles; TrainingPass::ALL.len()],
    pub(super) other: Cycles,
}

impl PassCycles {
    /// The cycles of a pass, or those without a pass.
    pub fn of(&self, pass: Option<TrainingPass>) -> Cycles {
        pass.map_or(self.other, |pass| self.passes[pass as usize])
    }

    /// The sum of all cycles.
    pub fn total(&self) -> Cycles {
        self.iter().fold(self.other, |sum, (_, cycles)| sum.saturating_add(cycles))
    }

    /// The cycles of each pass, in the order in which the passes run.
    pub fn iter(&self) -> impl Iterator<Item = (TrainingPass, Cycles)> {
        TrainingPass::ALL.into_iter().zip(self.passes)
    }

    fn single(pass: Option<TrainingPass>, cycles: Cycles) -> Self {
        let mut all = Self::default();
        match pass {
            Some(pass) => all.passes[pass as usize] = cycles,
            None => all.other = cycles,
        }
        all
    }

    fn add(&mut self, other: &Self) {
        for (sum, cycles) in self.passes.iter_mut().zip(other.passes) {
            *sum = sum.saturating_add(cycles);
        }
        self.other = self.other.saturating_add(other.other);
    }
}

/// Consecutive marks of a row, or a single one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MarkBlock {
    /// The cycles from the start of the first mark to the end of the last one.
    pub range: CycleRange,
    /// Index of the first mark in its row.
    pub first: u64,
    /// Number of marks.
    pub count: u64,
    /// Number of weight updates among them.
    pub updates: u64,
    /// Cycles of the marks, by pass. Fewer than those of the range if there are gaps.
    pub passes: PassCycles,
    pub shortest: Cycles,
    pub longest: Cycles,
    /// Numbers of the first and the last mark: micro-batch of a stage, index of an iteration.
    pub numbers: (u64, u64),
    /// Lowest and highest micro-batch of the stages among the marks.
    pub(super) micro_batches: Option<(u64, u64)>,
    /// The label of a single mark, as a number assigned by its reader.
    pub label: u32,
}

impl MarkBlock {
    /// The block of a single mark.
    pub fn single(mark: &TraceMark, first: u64, label: u32) -> Self {
        let cycles = mark.cycles.length();
        Self {
            range: mark.cycles,
            first,
            count: 1,
            updates: u64::from(mark.kind == MarkKind::Update),
            passes: PassCycles::single(mark.pass, cycles),
            shortest: cycles,
            longest: cycles,
            numbers: (mark.index, mark.index),
            micro_batches: (mark.kind == MarkKind::Stage).then_some((mark.index, mark.index)),
            label,
        }
    }

    /// The pass of a single mark, if it has one.
    pub fn pass(&self) -> Option<TrainingPass> {
        let mut passes = self.passes.iter().filter(|(_, cycles)| !cycles.is_zero());
        passes.next().map(|(pass, _)| pass).filter(|_| self.count == 1)
    }

    /// Merges the next block into this one.
    pub fn add(&mut self, next: &Self) {
        self.range = self.range.union(next.range);
        self.count = self.count.saturating_add(next.count);
        self.updates = self.updates.saturating_add(next.updates);
        self.passes.add(&next.passes);
        self.shortest = self.shortest.min(next.shortest);
        self.longest = self.longest.max(next.longest);
        self.numbers.1 = next.numbers.1;
        self.micro_batches = match (self.micro_batches, next.micro_batches) {
            (Some((low, high)), Some((from, to))) => Some((low.min(from), high.max(to))),
            (own, other) => own.or(other),
        };
    }

    /// Merges consecutive blocks into one; `None` for an empty list.
    pub fn joined(blocks: &[Self]) -> Option<Self> {
        let (first, rest) = blocks.split_first()?;
        let mut all = *first;
        for block in rest {
            all.add(block);
        }
        Some(all)
    }

    /// The range from the earliest possible end of the first mark to the end of the last one.
    pub fn ends(&self) -> CycleRange {
        CycleRange::new(self.range.start.saturating_add(self.shortest), self.range.end)
    }

    /// The micro-batch of a single stage.
    pub fn micro_batch(&self) -> Option<u64> {
        self.micro_batches.filter(|_| self.count == 1).map(|(number, _)| number)
    }

    /// The highest micro-batch of its stages.
    pub fn last_micro_batch(&self) -> Option<u64> {
        self.micro_batches.map(|(_, high)| high)
    }

    /// True if stages of a micro-batch may be among its marks.
    pub fn may_hold(&self, micro_batch: u64) -> bool {
        self.micro_batches.is_some_and(|(low, high)| low <= micro_batch && micro_batch <= high)
    }
}
