//! The selection in the trace: a step shared by all tabs, or a bar that stands for several steps.

use super::layers::marks::ShownMark;
use super::loaded_trace::LoadedTrace;
use super::scene::TraceScene;
use crate::model::command::SelectedStep;
use serde::{Deserialize, Serialize};
use tilescope_analysis::trace::{LaneItem, LaneItemKind, ProgramLabels, stage_name};
use tilescope_report::units::{CycleRange, Cycles, ReplicaIpu, grouped, percent};

/// A bar that stands for several steps.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct SelectedBar {
    /// The IPU and its replicas.
    #[serde(rename = "ipu")]
    pub at: ReplicaIpu,
    /// The tile group of the bar.
    pub sub_lane: u8,
    /// The row of the bar.
    pub row: u32,
    /// The cycles that it covers.
    pub range: CycleRange,
    pub title: String,
    /// The names and values of its properties.
    pub rows: Vec<(String, String)>,
    /// The longest step of a group, which explains most of its length.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub longest: Option<SelectedStep>,
}

impl SelectedBar {
    pub(crate) fn from_item(
        item: &LaneItem,
        prepared: &LoadedTrace,
        (at, sub_lane): (ReplicaIpu, u8),
        window: CycleRange,
        stage: Option<&ShownMark>,
    ) -> Self {
        let LaneItem { range, row, .. } = *item;
        let mut rows = rows(item, prepared.balance);
        if let Some(stage) = stage {
            let pass = stage.block.pass();
            let number = stage.block.numbers.0;
            let mut add_row = |name: &str, value: String| rows.push((name.to_owned(), value));
            add_row("Stage", stage_name(&stage.words, pass).to_owned());
            pass.iter().for_each(|pass| add_row("Pass", pass.name().to_owned()));
            add_row("Micro-batch", grouped(number));
        }
        let hint = match item.kind {
            LaneItemKind::Step(_) | LaneItemKind::Parent(..) => "are the bars below",
            LaneItemKind::Operation(..) => "switch off Group executions to see them",
            LaneItemKind::Syncs(_) => "switch off Group syncs to see them",
            LaneItemKind::Bucket(..) => "zoom in to see them",
        };
        rows.push(("Steps of it".to_owned(), hint.to_owned()));
        // Steps outside the window were not read.
        if range.start <= window.start || window.end <= range.end {
            rows.push((
                "Part".to_owned(),
                "continues outside the visible range: zoom out".to_owned(),
            ));
        }
        let longest = match item.kind {
            LaneItemKind::Syncs(_) | LaneItemKind::Operation(..) => {
                // A file that cannot be read shows its error where steps are read.
                let lane = prepared.trace.lane_at(at, sub_lane);
                lane.and_then(|lane| lane.longest_in(range).ok().flatten())
            }
            LaneItemKind::Step(_) | LaneItemKind::Parent(..) | LaneItemKind::Bucket(..) => None,
        };
        if let Some(step) = &longest {
            let words = format!("{} cycles, step {}", step.range.length(), step.step);
            rows.push(("Longest step".to_owned(), words));
        }
        let longest =
            longest.map(|of| SelectedStep { at, sub_lane, position: of.position, step: of.step });
        let title = title(item, &prepared.labels);
        Self { at, sub_lane, row, range, title, rows, longest }
    }
}

/// The full name of a bar.
pub(crate) fn title(item: &LaneItem, labels: &ProgramLabels) -> String {
    match &item.kind {
        LaneItemKind::Step(step) => {
            let name = step.program.and_then(|program| labels.program_name(program));
            match name.filter(|name| !name.is_empty()) {
                Some(name) => format!("{} ({name})", step.kind.name()),
                None => step.kind.name().to_owned(),
            }
        }
        LaneItemKind::Operation(node, _) | LaneItemKind::Parent(node, _) => labels.node_path(*node),
        LaneItemKind::Syncs(_) => "Syncs".to_owned(),
        LaneItemKind::Bucket(..) => format!("{} steps", grouped(item.steps())),
    }
}

/// The properties of a bar of several steps.
fn rows(item: &LaneItem, balance: bool) -> Vec<(String, String)> {
    let range = item.range;
    let span = format!("{} : {} - {}", range.length(), range.start, range.end);
    let mut rows = vec![("Cycles".to_owned(), span), ("Steps".to_owned(), grouped(item.steps()))];
    if let Some(balance) = item.tile_balance().filter(|_| balance) {
        rows.push(("Tile balance".to_owned(), percent(balance)));
    }
    if let LaneItemKind::Bucket(totals, _) = &item.kind {
        let length = range.length().max(Cycles(1)).as_f64();
        for (activity, cycles) in totals.cycles.iter().filter(|(_, cycles)| *cycles > Cycles::ZERO)
        {
            let share = percent(cycles.as_f64() / length);
            rows.push((activity.title().to_owned(), share));
        }
    }
    rows
}

/// The bar of a scene that shows a step: the step itself, or a group that contains it.
pub(crate) fn find<'a>(scene: &'a TraceScene, step: &SelectedStep) -> Option<&'a LaneItem> {
    let ipu = scene.ipus.iter().find(|ipu| ipu.at == step.at)?;
    let lane = ipu.lanes.iter().find(|lane| lane.sub_lane == step.sub_lane)?;
    lane.items.iter().find(|item| {
        let first = item.first_position();
        !matches!(item.kind, LaneItemKind::Parent(..))
            && first <= step.position
            && step.position < first + item.steps()
    })
}
