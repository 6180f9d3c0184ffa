//! The critical path in the summary: its activities and IPUs, exposed and hidden cycles, slack.

use super::SummaryPageData;
use crate::theme::fonts::strong;
use egui::{Align, Grid, Label, Layout, RichText, Ui, vec2};
use tilescope_analysis::critical_path::{
    ActivityExposure, EXPOSED, HIDDEN, IPU_SLACK, IpuSlack, LEAD, ON_PATH, WAITS,
};
use tilescope_analysis::summary::ExecutionSummary;
use tilescope_report::units::{Cycles, percent};

/// The largest number of lanes with a line of their own; those with most of the path are shown.
const MAX_LANES: usize = 16;

/// The reason that there is nothing to show.
const NOT_RUN: &str = "The program was not run, so there is no critical path.";
const NOT_KNOWN: &str = "Open Execution trace once: it computes the critical path of this report \
                         and stores it.";

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
    grid_ui(ui, &LANE_HEADS, lanes(run).into_iter().map(lane_cells));
    if run.slack.len() > MAX_LANES {
        let rest = run.slack.len() - MAX_LANES;
        ui.label(text(&format!(
            "{rest} more IPUs have less of the path. Execution trace > Critical path lists all."
        )));
    }
}

/// The visible lanes, in their own order.
fn lanes(run: &ExecutionSummary) -> Vec<&IpuSlack> {
    let mut places: Vec<usize> = (0..run.slack.len()).collect();
    places.sort_by_key(|at| std::cmp::Reverse(run.slack[*at].path_cycles));
    places.truncate(MAX_LANES);
    places.sort_unstable();
    places.into_iter().map(|at| &run.slack[at]).collect()
}

fn kind_cells(of: &ActivityExposure) -> Vec<String> {
    let known =
        |cycles: Option<Cycles>| cycles.map_or_else(|| "not known".to_owned(), |of| of.to_string());
    let name = of.kind.title().to_owned();
    vec![name, on_path(of.on_path, of.path_share), known(of.exposed), known(of.hidden)]
}

fn lane_cells(of: &IpuSlack) -> Vec<String> {
    let slack = Cycles::from_f64(of.slack.round()).to_string();
    let path = on_path(of.path_cycles, of.path_share);
    vec![of.title.clone(), path, of.waits.to_string(), slack, of.lead.to_string()]
}

fn on_path(cycles: Cycles, share: f64) -> String {
    format!("{cycles} ({} of the path)", percent(share))
}

/// A grid with names on the left and figures right-aligned in their columns.
fn grid_ui(ui: &mut Ui, heads: &[Head], rows: impl Iterator<Item = Vec<String>>) {
    let grid = Grid::new(("critical path", heads.len())).num_columns(heads.len() + 1);
    grid.min_row_height(18.0).spacing(vec2(18.0, 6.0)).show(ui, |ui| {
        for (title, about) in heads {
            right_ui(ui, strong(*title), about);
        }
        // The last column takes the remaining width: an empty one keeps the figures together.
        ui.label("");
        ui.end_row();
        for cells in rows {
            for (column, cell) in cells.iter().enumerate() {
                match column {
                    0 => drop(ui.weak(cell)),
                    _ => right_ui(ui, RichText::new(cell), ""),
                }
            }
            ui.end_row();
        }
    });
}

fn right_ui(ui: &mut Ui, text: RichText, about: &str) {
    ui.with_layout(Layout::right_to_left(Align::Center), |ui| {
        let shown = ui.add(Label::new(text).extend().selectable(true));
        if !about.is_empty() {
            shown.on_hover_text(about);
        }
    });
}
