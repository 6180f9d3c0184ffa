//! The bars of a lane: what each stands for, and what it says.

use super::labels::{Labels, NodeId};
use tilescope_report::Activity;
use tilescope_report::trace::{LaneStep, Span, Totals};
use tilescope_report::units::{CycleRange, ProgramId, StepId};

/// The kinds of bar.
#[derive(Clone, Debug, PartialEq)]
pub enum Kind {
    Step(LaneStep),
    /// Several steps of one operation.
    Operation(NodeId, Several),
    Syncs(Several),
    /// Everything below one part of a name.
    Parent(NodeId, Several),
    /// Steps narrower than a pixel.
    Bucket(Totals, u64),
}

/// Consecutive steps of a lane.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Several {
    pub steps: u64,
    /// Position of the first one on the lane.
    pub first: u64,
    /// Sum of tile balance times cycles.
    weighted_balance: f64,
    cycles: f64,
    /// What the longest of them spends its time on, and how long that is.
    longest: (u64, Activity),
}

impl Several {
    pub(super) fn of(span: &Span) -> Self {
        let cycles = span.range().length() as f64;
        Self {
            steps: span.steps(),
            first: position(span),
            weighted_balance: balance(span) * cycles,
            cycles,
            longest: (span.range().length(), activity(span)),
        }
    }

    pub(super) fn add(&mut self, later: &Self) {
        self.steps += later.steps;
        self.weighted_balance += later.weighted_balance;
        self.cycles += later.cycles;
        if later.longest.0 > self.longest.0 {
            self.longest = later.longest;
        }
    }

    /// What the longest of the steps spends its time on.
    pub fn activity(&self) -> Activity {
        self.longest.1
    }

    /// Mean tile balance over the steps, 0 to 1.
    pub(crate) fn tile_balance(&self) -> f64 {
        if self.cycles > 0.0 { self.weighted_balance / self.cycles } else { 0.0 }
    }
}

/// A bar of the execution trace.
#[derive(Clone, Debug, PartialEq)]
pub struct Item {
    /// The cycles it covers.
    pub range: CycleRange,
    /// Row it lies in, from the top.
    pub row: u32,
    /// Whether it reaches down to the last row.
    pub full_height: bool,
    pub kind: Kind,
}

impl Item {
    /// Number of steps it stands for.
    pub fn steps(&self) -> u64 {
        match &self.kind {
            Kind::Step(_) => 1,
            Kind::Operation(_, several) | Kind::Syncs(several) | Kind::Parent(_, several) => {
                several.steps
            }
            Kind::Bucket(totals, _) => totals.steps,
        }
    }

    /// Position of its first step on the lane.
    pub fn first_position(&self) -> u64 {
        match &self.kind {
            Kind::Step(step) => step.position,
            Kind::Operation(_, several) | Kind::Syncs(several) | Kind::Parent(_, several) => {
                several.first
            }
            Kind::Bucket(_, first) => *first,
        }
    }

    /// Share of the tiles' time that is used, 0 to 1; parents show none.
    pub fn tile_balance(&self) -> Option<f64> {
        match &self.kind {
            Kind::Step(step) => Some(step.tile_balance.share()),
            Kind::Operation(_, several) | Kind::Syncs(several) => Some(several.tile_balance()),
            Kind::Parent(..) => None,
            Kind::Bucket(totals, _) => totals.tile_balance(&Activity::ALL),
        }
    }

    /// The program a step ran, or that of the longest step of a bucket.
    pub fn program(&self) -> Option<ProgramId> {
        match &self.kind {
            Kind::Step(step) => step.program,
            Kind::Bucket(totals, _) => totals.longest.and_then(|longest| longest.program),
            Kind::Operation(..) | Kind::Syncs(_) | Kind::Parent(..) => None,
        }
    }

    /// The step, where the bar is just one.
    pub fn step(&self) -> Option<StepId> {
        match &self.kind {
            Kind::Step(step) => Some(step.step),
            _ => None,
        }
    }

    /// The label of the bar.
    pub fn text(&self, labels: &Labels) -> String {
        let program = |program: Option<ProgramId>| program.and_then(|id| labels.get(id));
        match &self.kind {
            Kind::Step(step) => program(step.program)
                .map_or_else(|| step.kind.name().to_owned(), |label| label.leaf.clone()),
            Kind::Operation(node, _) | Kind::Parent(node, _) => labels.node_name(*node).to_owned(),
            Kind::Syncs(several) => {
                let kind = if self.full_height { "External" } else { "Internal" };
                match several.steps {
                    1 => format!("{kind} sync"),
                    steps => format!("{kind} sync × {}", tilescope_report::units::grouped(steps)),
                }
            }
            Kind::Bucket(totals, _) => {
                format!("{} steps", tilescope_report::units::grouped(totals.steps))
            }
        }
    }
}

/// The bars of one lane.
#[derive(Clone, Debug, PartialEq)]
pub struct LaneItems {
    /// IPU of the replica.
    pub ipu: u32,
    /// Its group of tiles.
    pub sub_lane: u8,
    /// Bars, by row and then by start.
    pub items: Vec<Item>,
}

impl LaneItems {
    /// The bar of `row` that covers `cycle`; bars that reach down count in every row.
    pub fn hit(&self, row: u32, cycle: u64, slack: u64) -> Option<&Item> {
        let own = |item: &&Item| item.row == row || item.full_height;
        let near = |item: &&Item| {
            item.range.start <= cycle.saturating_add(slack)
                && cycle < item.range.end.max(item.range.start + 1).saturating_add(slack)
        };
        let distance = |item: &&Item| {
            let middle = item.range.start + item.range.length() / 2;
            let inside = item.range.start <= cycle && cycle < item.range.end;
            (!inside, middle.abs_diff(cycle))
        };
        self.items.iter().filter(own).filter(near).min_by_key(distance)
    }
}

fn position(span: &Span) -> u64 {
    match span {
        Span::Step(step) => step.position,
        Span::Bucket(bucket) => bucket.first_position,
    }
}

fn balance(span: &Span) -> f64 {
    match span {
        Span::Step(step) => step.tile_balance.share(),
        Span::Bucket(bucket) => bucket.totals.tile_balance(&Activity::ALL).unwrap_or(0.0),
    }
}

fn activity(span: &Span) -> Activity {
    match span {
        Span::Step(step) => step.activity,
        Span::Bucket(bucket) => bucket.totals.dominant().unwrap_or(Activity::Other),
    }
}
