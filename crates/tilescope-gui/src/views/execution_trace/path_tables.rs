//! The tables of the visible part of the critical path, and of the slack of every IPU.

use super::events::TraceEvent;
use super::loaded_trace::LoadedTrace;
use super::settings::TraceSettings;
use crate::views::ViewContext;
use crate::views::cycle_axis::cycles_on_screen;
use crate::widgets::background_query::{BackgroundQuery, Versioned};
use crate::widgets::query_state::QueryTexts;
use crate::widgets::table::TableState;
use crate::widgets::{empty_state_ui, hint_ui};
use egui::{Ui, vec2};
use std::sync::Arc;
use tilescope_analysis::critical_path::{PathTotals, ipu_slacks, path_totals};
use tilescope_analysis::data_table::DataTable;
use tilescope_analysis::tables::critical_path as columns;
use tilescope_report::units::CycleRange;
use tilescope_report::{Report, ReportError};

/// The width from which both tables are side by side.
const BESIDE: f32 = 900.0;

/// The path in a window, and the slack of the run.
struct PathTables {
    totals: PathTotals,
    path: Arc<DataTable>,
    slack: Arc<DataTable>,
}

/// The tab of the critical path.
pub(super) struct PathTablesPanel {
    found: BackgroundQuery<CycleRange, PathTables>,
    path: TableState,
    slack: TableState,
}

impl Default for PathTablesPanel {
    fn default() -> Self {
        let path = TableState::as_given();
        let slack = TableState::as_given();
        Self { found: BackgroundQuery::default(), path, slack }
    }
}

impl PathTablesPanel {
    /// Shows the part of the path in the visible cycles. Returns the selected step, if a row was
    /// clicked.
    pub(super) fn ui(
        &mut self,
        ui: &mut Ui,
        context: &ViewContext<'_>,
        prepared: &LoadedTrace,
        settings: &TraceSettings,
    ) -> Option<TraceEvent> {
        if prepared.known_path().is_none() {
            let hint = "Switch on Critical path in the toolbar to compute it.";
            hint_ui(ui, hint);
            return None;
        }
        let (axis, limits) = settings.shown()?;
        let window = cycles_on_screen(axis, limits.width).intersection(prepared.range);
        let texts = QueryTexts { waiting: "Adding up…", failed: "The path cannot be read" };
        let found = context
            .ask(ui, &mut self.found, &window, |report, window| path_tables(report, *window));
        let path = &mut self.path;
        let slack = &mut self.slack;
        found.show(ui, texts, |ui, found| {
            if found.totals.rows.is_empty() {
                empty_state_ui(ui, "No critical path", "No step runs in these cycles.");
                return None;
            }
            both_ui(
                ui,
                |ui| path_ui(ui, context, found, path),
                |ui| slack_ui(ui, context, found, slack),
            )
        })?
    }
}

/// Two tables, side by side or one below the other.
fn both_ui<T>(
    ui: &mut Ui,
    first: impl FnOnce(&mut Ui) -> Option<T>,
    second: impl FnOnce(&mut Ui),
) -> Option<T> {
    if ui.available_width() < BESIDE {
        let size = vec2(ui.available_width(), ui.available_height() / 2.0);
        let found = ui.allocate_ui(size, first).inner;
        second(ui);
        return found;
    }
    ui.columns_const(|[left, right]| {
        second(right);
        first(left)
    })
}

fn path_ui(
    ui: &mut Ui,
    context: &ViewContext<'_>,
    found: &Versioned<PathTables>,
    state: &mut TableState,
) -> Option<TraceEvent> {
    let hint = "Filter the path";
    let chosen = ui.push_id("path rows", |ui| {
        state.choose_ui(ui, context.workers, &found.path, found.version(), hint, &[])
    });
    let row = found.totals.rows.get(chosen.inner?)?;
    let (lane, position) = row.longest;
    if row.steps > 0 { Some(TraceEvent::GoToPosition { lane, position }) } else { None }
}

fn slack_ui(
    ui: &mut Ui,
    context: &ViewContext<'_>,
    found: &Versioned<PathTables>,
    state: &mut TableState,
) {
    ui.push_id("slack", |ui| {
        let hint = "Filter IPUs";
        state.ui(ui, context.workers, &found.slack, found.version(), hint);
    });
}

fn path_tables(report: &Report, window: CycleRange) -> Result<PathTables, ReportError> {
    let totals = path_totals(report, Some(window))?.unwrap_or_default();
    let path = Arc::new(columns::path_table(&totals).with_keys(report)?);
    let slack = Arc::new(columns::slack_table(&ipu_slacks(report)?));
    Ok(PathTables { totals, path, slack })
}
