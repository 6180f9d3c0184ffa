//! The bars of a lane, with their contents and labels.

use super::program_labels::{NameTreeNodeId, ProgramLabels};
use std::cmp::Reverse;
use std::ops::RangeInclusive;
use tilescope_report::StepActivity;
use tilescope_report::trace::{LaneSpan, LaneStep, PerActivity, StepTotals};
use tilescope_report::units::{CycleRange, Cycles, ProgramId, ReplicaIpu, StepId};

/// The kind of a bar.
#[derive(Clone, Debug, PartialEq)]
pub enum LaneItemKind {
    Step(LaneStep),
    /// Several steps of one operation.
    Operation(NameTreeNodeId, StepGroupTotals),
    Syncs(StepGroupTotals),
    /// Everything below one part of a name.
    Parent(NameTreeNodeId, StepGroupTotals),
    /// Steps narrower than a pixel.
    Bucket(StepTotals, u64),
}

/// Consecutive steps of a lane.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct StepGroupTotals {
    pub steps: u64,
    /// Position of the first one on the lane.
    pub first: u64,
    /// Sum of tile balance times cycles.
    weighted_balance: f64,
    /// Cycles by activity.
    cycles: PerActivity<Cycles>,
    /// The length and the activity of the longest step.
    longest: (Cycles, StepActivity),
}

impl StepGroupTotals {
    pub(super) fn from_span(span: &LaneSpan) -> Self {
        let length = span.range().length();
        let mut cycles = PerActivity::default();
        match span {
            LaneSpan::Step(step) => cycles[step.activity] = length,
            LaneSpan::Bucket(bucket) => cycles = bucket.totals.cycles,
        }
        Self {
            steps: span.steps(),
            first: position(span),
            weighted_balance: balance(span) * length.as_f64(),
            cycles,
            longest: (span.range().length(), activity(span)),
        }
    }

    pub(super) fn add(&mut self, later: &Self) {
        self.steps += later.steps;
        self.weighted_balance += later.weighted_balance;
        self.cycles.add(&later.cycles);
        if later.longest.0 > self.longest.0 {
            self.longest = later.longest;
        }
    }

    /// The activity of the longest step.
    pub fn activity(&self) -> StepActivity {
        self.longest.1
    }

    /// Mean tile balance over the steps, 0 to 1.
    pub(crate) fn tile_balance(&self) -> f64 {
        let cycles = self.cycles.total().as_f64();
        if cycles > 0.0 { self.weighted_balance / cycles } else { 0.0 }
    }

    /// The cycles of each activity.
    pub fn cycles(&self) -> &PerActivity<Cycles> {
        &self.cycles
    }
}

/// A bar of the execution trace.
#[derive(Clone, Debug, PartialEq)]
pub struct LaneItem {
    /// The cycles it covers.
    pub range: CycleRange,
    /// Its row, from the top.
    pub row: u32,
    /// True if it extends down to the last row.
    pub full_height: bool,
    pub kind: LaneItemKind,
}

impl LaneItem {
    /// Number of steps of the bar.
    pub fn steps(&self) -> u64 {
        match &self.kind {
            LaneItemKind::Step(_) => 1,
            LaneItemKind::Operation(_, several)
            | LaneItemKind::Syncs(several)
            | LaneItemKind::Parent(_, several) => several.steps,
            LaneItemKind::Bucket(totals, _) => totals.steps,
        }
    }

    /// Position of its first step on the lane.
    pub fn first_position(&self) -> u64 {
        match &self.kind {
            LaneItemKind::Step(step) => step.position,
            LaneItemKind::Operation(_, several)
            | LaneItemKind::Syncs(several)
            | LaneItemKind::Parent(_, several) => several.first,
            LaneItemKind::Bucket(_, first) => *first,
        }
    }

    /// Used share of the tiles' time, 0 to 1; `None` for parents.
    pub fn tile_balance(&self) -> Option<f64> {
        match &self.kind {
            LaneItemKind::Step(step) => Some(step.tile_balance.share()),
            LaneItemKind::Operation(_, several) | LaneItemKind::Syncs(several) => {
                Some(several.tile_balance())
            }
            LaneItemKind::Parent(..) => None,
            LaneItemKind::Bucket(totals, _) => totals.tile_balance(&StepActivity::ALL),
        }
    }

    /// The program of a step, or of the longest step of a bucket.
    pub fn program(&self) -> Option<ProgramId> {
        match &self.kind {
            LaneItemKind::Step(step) => step.program,
            LaneItemKind::Bucket(totals, _) => totals.longest.and_then(|longest| longest.program),
            LaneItemKind::Operation(..) | LaneItemKind::Syncs(_) | LaneItemKind::Parent(..) => None,
        }
    }

    /// The step, if the bar is a single one.
    pub fn step(&self) -> Option<StepId> {
        match &self.kind {
            LaneItemKind::Step(step) => Some(step.step),
            _ => None,
        }
    }

    /// The label of the bar.
    pub fn text(&self, labels: &ProgramLabels) -> String {
        match &self.kind {
            LaneItemKind::Step(step) => match step.program.and_then(|id| labels.get(id)) {
                Some(label) => label.leaf.clone(),
                None => step.kind.name().to_owned(),
            },
            LaneItemKind::Operation(node, _) | LaneItemKind::Parent(node, _) => {
                labels.node_name(*node).to_owned()
            }
            LaneItemKind::Syncs(several) => {
                let kind = if self.full_height { "External" } else { "Internal" };
                match several.steps {
                    1 => format!("{kind} sync"),
                    steps => format!("{kind} sync × {}", tilescope_report::units::grouped(steps)),
                }
            }
            LaneItemKind::Bucket(totals, _) => {
                format!("{} steps", tilescope_report::units::grouped(totals.steps))
            }
        }
    }
}

/// The bars of one lane.
#[derive(Clone, Debug, PartialEq)]
pub struct LaneItemList {
    /// The IPU, and the class of its replicas.
    pub at: ReplicaIpu,
    /// The group of tiles of the lane.
    pub sub_lane: u8,
    /// Bars, by row and then by start.
    pub items: Vec<LaneItem>,
}

impl LaneItemList {
    /// The bar in one of `rows` that covers `cycle`, the lowest one; bars of full height count in
    /// every row.
    pub fn hit(
        &self,
        rows: RangeInclusive<u32>,
        cycle: Cycles,
        slack: Cycles,
    ) -> Option<&LaneItem> {
        let in_row = self.items.iter().filter(|item| rows.contains(&item.row) || item.full_height);
        let near = in_row.filter(|item| {
            item.range.start <= cycle.saturating_add(slack)
                && cycle < item.range.end.max(item.range.start + Cycles(1)).saturating_add(slack)
        });
        near.min_by_key(|item| {
            let middle = item.range.start + item.range.length() / 2;
            let inside = item.range.start <= cycle && cycle < item.range.end;
            (!inside, Reverse(item.row), middle.abs_diff(cycle))
        })
    }
}

fn position(span: &LaneSpan) -> u64 {
    match span {
        LaneSpan::Step(step) => step.position,
        LaneSpan::Bucket(bucket) => bucket.first_position,
    }
}

fn balance(span: &LaneSpan) -> f64 {
    match span {
        LaneSpan::Step(step) => step.tile_balance.share(),
        LaneSpan::Bucket(bucket) => bucket.totals.tile_balance(&StepActivity::ALL).unwrap_or(0.0),
    }
}

fn activity(span: &LaneSpan) -> StepActivity {
    match span {
        LaneSpan::Step(step) => step.activity,
        LaneSpan::Bucket(bucket) => bucket.totals.dominant().unwrap_or(StepActivity::Other),
    }
}
