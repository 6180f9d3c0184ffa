//! What is chosen in the trace: a step, which every tab knows, or a bar that stands for several.

use super::scene::{Prepared, Scene};
use crate::model::command::ChosenStep;
use serde::{Deserialize, Serialize};
use tilescope_analysis::trace::{Item, Kind, Labels};
use tilescope_report::Activity;
use tilescope_report::units::{CycleRange, Cycles, grouped, percent};

/// A bar that stands for several steps.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct ChosenBar {
    /// IPU of the replica.
    pub ipu: u32,
    /// Its group of tiles.
    pub sub_lane: u8,
    /// Row of the bar.
    pub row: u32,
    /// The cycles it covers.
    pub range: CycleRange,
    /// Its full name.
    pub title: String,
    /// What is known of it.
    pub rows: Vec<(String, String)>,
}

impl ChosenBar {
    /// Describes a bar.
    pub(crate) fn of(
        item: &Item,
        prepared: &Prepared,
        (ipu, sub_lane): (u32, u8),
        window: CycleRange,
    ) -> Self {
        let Item { range, row, .. } = *item;
        let mut rows = rows(item, prepared.balance);
        let hint = match item.kind {
            Kind::Step(_) | Kind::Parent(..) => "the bars below it",
            Kind::Operation(..) => "switch off Group executions to see them",
            Kind::Syncs(_) => "switch off Group syncs to see them",
            Kind::Bucket(..) => "zoom in to see them",
        };
        rows.push(("Single steps".to_owned(), hint.to_owned()));
        // What lies outside of the window was not read.
        if range.start <= window.start || window.end <= range.end {
            rows.push(("Part".to_owned(), "goes on beyond what is shown: zoom out".to_owned()));
        }
        Self { ipu, sub_lane, row, range, title: title(item, &prepared.labels), rows }
    }
}

/// The full name of a bar.
pub(crate) fn title(item: &Item, labels: &Labels) -> String {
    match &item.kind {
        Kind::Step(step) => {
            let name = step.program.and_then(|program| labels.program_name(program));
            match name.filter(|name| !name.is_empty()) {
                Some(name) => format!("{} ({name})", step.kind.name()),
                None => step.kind.name().to_owned(),
            }
        }
        Kind::Operation(node, _) | Kind::Parent(node, _) => labels.node_path(*node),
        Kind::Syncs(_) => "Syncs".to_owned(),
        Kind::Bucket(..) => format!("{} steps", grouped(item.steps())),
    }
}

/// Names and values about a bar of several steps.
fn rows(item: &Item, balance: bool) -> Vec<(String, String)> {
    let range = item.range;
    let span =
        format!("{} : {} - {}", Cycles(range.length()), Cycles(range.start), Cycles(range.end));
    let mut rows = vec![("Cycles".to_owned(), span), ("Steps".to_owned(), grouped(item.steps()))];
    if let Some(balance) = item.tile_balance().filter(|_| balance) {
        rows.push(("Tile balance".to_owned(), percent(balance)));
    }
    if let Kind::Bucket(totals, _) = &item.kind {
        let length = range.length().max(1) as f64;
        for (activity, cycles) in totals.cycles.iter().filter(|(_, cycles)| *cycles > 0) {
            let share = percent(cycles as f64 / length);
            rows.push((activity_title(activity).to_owned(), share));
        }
    }
    rows
}

/// Words for an activity.
pub(crate) fn activity_title(activity: Activity) -> &'static str {
    match activity {
        Activity::Compute => "Compute",
        Activity::InternalExchange => "Internal exchange",
        Activity::GlobalExchange => "Global exchange",
        Activity::Host => "Host copies",
        Activity::RemoteBuffer => "Remote buffers",
        Activity::Sync => "Sync",
        Activity::Other => "Other",
    }
}

/// The bar of a scene that shows a step: itself, or what it is a part of.
pub(crate) fn find<'a>(scene: &'a Scene, step: &ChosenStep) -> Option<&'a Item> {
    let ipu = scene.ipus.iter().find(|ipu| ipu.ipu == step.ipu)?;
    let lane = ipu.lanes.iter().find(|lane| lane.sub_lane == step.sub_lane)?;
    let holds = |item: &&Item| {
        let first = item.first_position();
        !matches!(item.kind, Kind::Parent(..))
            && first <= step.position
            && step.position < first + item.steps()
    };
    lane.items.iter().find(holds)
}
