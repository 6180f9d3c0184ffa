//! The critical path in the summary: its activities and IPUs, exposed and hidden cycles, slack.

use super::SummaryPageData;
use crate::theme::fonts::strong;
use egui::accesskit::Role;
use egui::{Align, Grid, Label, Layout, Response, RichText, ScrollArea, Ui, WidgetInfo, vec2};
use tilescope_analysis::critical_path::{
    ActivityExposure, EXPOSED, HIDDEN, IPU_SLACK, IpuSlack, LEAD, ON_PATH, WAITS,
};
use tilescope_analysis::summary::ExecutionSummary;
use tilescope_report::units::{Cycles, percent, short_count};

/// The largest number of lanes with a separate line; those with most of the path are shown.
const MAX_LANES: usize = 16;

/// The reason for an empty panel.
const NOT_RUN: &str = "The program did not run, so it has no critical path.";
const NOT_KNOWN: &str = "Open Execution trace once to compute and store the critical path of this \
                         report.";

/// The title of a figure, and its meaning.
type Head = (&'static str, &'static str);

const KIND_HEADS: [Head; 4] =
    [("", ""), ("On the path", ON_PATH), ("Exposed", EXPOSED), ("Hidden", HIDDEN)];
const LANE_HEADS: [Head; 5] =
    [("", ""), ("On the path", ON_PATH), ("Waits", WAITS), ("Slack", IPU_SLACK), ("Lead", LEAD)];

pub(super) fn critical_path_ui(ui: &mut Ui, facts: &SummaryPageData) {
    let text = |text: &str| RichText::new(text).weak();
    let Some(run) = &facts.summary.execution else {
        ui.label(text(NOT_RUN));
        return;
    };
    if run.critical_path.is_empty() {
        ui.label(text(NOT_KNOWN));
        return;
    }
    grid_ui(ui, &KIND_HEADS, run.critical_path.iter().map(kind_cells));
    ui.separator();
    // Names of replicas that differ may need more than the width of the column.
    ScrollArea::horizontal().id_salt("lanes").show(ui, |ui| {
        grid_ui(ui, &LANE_HEADS, lanes(run).into_iter().map(lane_cells));
    });
    if run.slack.len() > MAX_LANES {
        let rest = run.slack.len() - MAX_LANES;
        ui.label(text(&format!(
            "{rest} more IPUs have less of the path. Execution trace > Critical path lists all."
        )));
    }
}

/// The visible lanes: all of them in their own order, or those with most of the path.
fn lanes(run: &ExecutionSummary) -> Vec<&IpuSlack> {
    let mut places: Vec<usize> = (0..run.slack.len()).collect();
    places.sort_by_key(|at| std::cmp::Reverse(run.slack[*at].path_cycles));
    if places.len() <= MAX_LANES {
        places.sort_unstable();
    }
    places.truncate(MAX_LANES);
    places.into_iter().map(|at| &run.slack[at]).collect()
}

/// A cell as displayed, and with all digits.
struct PathCell {
    shown: String,
    exact: String,
}

impl PathCell {
    fn words(words: &str) -> Self {
        Self { shown: words.to_owned(), exact: words.to_owned() }
    }

    fn cycles(cycles: Cycles) -> Self {
        Self { shown: short_count(cycles.0), exact: cycles.to_string() }
    }

    /// Cycles with their share of the path, in a table whose head says so.
    fn part_of_path(cycles: Cycles, share: f64) -> Self {
        let shown = format!("{} ({})", short_count(cycles.0), percent(share));
        Self { shown, ..Self::on_path(cycles, share) }
    }

    fn on_path(cycles: Cycles, share: f64) -> Self {
        let Self { shown, exact } = Self::cycles(cycles);
        let share = percent(share);
        Self {
            shown: format!("{shown} ({share} of the path)"),
            exact: format!("{exact} ({share} of the path)"),
        }
    }
}

fn kind_cells(of: &ActivityExposure) -> Vec<PathCell> {
    let known = |cycles: Option<Cycles>| {
        cycles.map_or_else(|| PathCell::words("unknown"), PathCell::cycles)
    };
    let path = PathCell::on_path(of.on_path, of.path_share);
    vec![PathCell::words(of.kind.title()), path, known(of.exposed), known(of.hidden)]
}

fn lane_cells(of: &IpuSlack) -> Vec<PathCell> {
    vec![
        PathCell::words(&of.title),
        PathCell::part_of_path(of.path_cycles, of.path_share),
        PathCell::cycles(of.waits),
        PathCell::cycles(Cycles::from_f64(of.slack.round())),
        PathCell::cycles(of.lead),
    ]
}

/// Names on the left, figures flush right in their columns.
fn grid_ui(ui: &mut Ui, heads: &[Head], rows: impl Iterator<Item = Vec<PathCell>>) {
    let grid = Grid::new(("critical path", heads.len())).num_columns(heads.len() + 1);
    grid.min_row_height(18.0).spacing(vec2(18.0, 6.0)).show(ui, |ui| {
        for (title, about) in heads {
            drop(right_ui(ui, strong(*title), about));
        }
        // The last column takes the remaining width: an empty one keeps the figures together.
        ui.label("");
        ui.end_row();
        for cells in rows {
            for (column, cell) in cells.iter().enumerate() {
                match column {
                    0 => drop(ui.weak(&cell.shown)),
                    _ => {
                        let exact = &cell.exact;
                        let hint = if *exact == cell.shown { "" } else { exact };
                        let shown = right_ui(ui, RichText::new(&cell.shown), hint);
                        shown.widget_info(|| WidgetInfo::labeled(Role::Label, true, exact));
                    }
                }
            }
            ui.end_row();
        }
    });
}

fn right_ui(ui: &mut Ui, text: RichText, about: &str) -> Response {
    let layout = Layout::right_to_left(Align::Center);
    let shown = ui.with_layout(layout, |ui| ui.add(Label::new(text).extend().selectable(true)));
    if about.is_empty() { shown.inner } else { shown.inner.on_hover_text(about) }
}
