//! The panel below the lanes: the summary of the window, the details of the selection, and
//! statistics.

use super::loaded_trace::LoadedTrace;
use super::queries::TraceQueries;
use super::settings::{TraceDetailsTab, TraceSettings};
use super::step_details::details_ui;
use super::step_statistics::step_statistics_ui;
use super::{details_tables, events::TraceEvent, places, replica_row};
use crate::model::view_id::ViewId;
use crate::theme::spacing;
use crate::views::ViewContext;
use crate::views::cycle_axis::cycles_on_screen;
use crate::widgets::background_query::Versioned;
use crate::widgets::bottom_panel::tabs_row_ui;
use crate::widgets::query_state::QueryTexts;
use crate::widgets::waiting_tabs_ui;
use egui::Ui;
use tilescope_analysis::tables::execution_trace as columns;
use tilescope_analysis::trace::window_summary;
use tilescope_report::units::{ReplicaClassId, ReplicaIpu};

/// Shows the tabs, and the selected one if the panel is open. Returns the user's choice.
pub(super) fn tables_ui(
    ui: &mut Ui,
    context: &ViewContext<'_>,
    prepared: &Versioned<LoadedTrace>,
    (settings, queries): (&TraceSettings, &mut TraceQueries),
    open: &mut bool,
) -> Vec<TraceEvent> {
    // Half of a window is too narrow for all tabs, and even more so for a schedule. A table below
    // both halves compares the paths.
    let beside = context.pane.is_some();
    let shown = match settings.tab {
        TraceDetailsTab::Schedule | TraceDetailsTab::Path | TraceDetailsTab::Tiles if beside => {
            TraceDetailsTab::Summary
        }
        TraceDetailsTab::Samples if beside || !prepared.measured => TraceDetailsTab::Summary,
        tab => tab,
    };
    let mut tab = shown;
    let tabs = [
        (TraceDetailsTab::Summary, "Summary"),
        (TraceDetailsTab::Details, "Details"),
        (TraceDetailsTab::Statistics, "Statistics"),
        (TraceDetailsTab::Path, "Critical path"),
        (TraceDetailsTab::Schedule, "Schedule"),
        (TraceDetailsTab::Tiles, "Tiles"),
        (TraceDetailsTab::Samples, "Samples"),
    ];
    tabs_row_ui(ui, |ui| {
        let chosen = settings.bar.is_some() || settings.mark.is_some();
        let none =
            !chosen && context.selection.step.is_none() && places::repeated(prepared).is_empty();
        let waits =
            |tab| (none && tab == TraceDetailsTab::Details).then_some("Select a step first");
        // Only measured tiles have samples.
        let all = tabs.len() - usize::from(!prepared.measured);
        let tabs = &tabs[..if beside { 3 } else { all }];
        waiting_tabs_ui(ui, ViewId::ExecutionTrace.name(), tabs, &mut tab, waits);
    });
    let mut chosen = Vec::new();
    if tab != shown {
        chosen.push(TraceEvent::ShowTab(tab));
    }
    if !*open {
        *open = !chosen.is_empty();
        return chosen;
    }
    ui.add_space(spacing::XXS);
    match tab {
        TraceDetailsTab::Summary => summary_ui(ui, context, prepared, settings, queries),
        TraceDetailsTab::Details => {
            chosen.extend(details_ui(ui, context, prepared, (settings, queries)));
        }
        TraceDetailsTab::Path => {
            chosen.extend(queries.path_tables.ui(ui, context, prepared, settings));
        }
        TraceDetailsTab::Schedule => {
            chosen.extend(queries.schedule.ui(ui, context, settings));
        }
        TraceDetailsTab::Tiles => {
            chosen.extend(queries.tiles.ui(ui, context, prepared, settings));
        }
        TraceDetailsTab::Samples => queries.samples.ui(ui, context),
        TraceDetailsTab::Statistics => step_statistics_ui(ui, context, prepared, settings, queries),
    }
    chosen
}

fn summary_ui(
    ui: &mut Ui,
    context: &ViewContext<'_>,
    prepared: &Versioned<LoadedTrace>,
    settings: &TraceSettings,
    queries: &mut TraceQueries,
) {
    let Some((axis, limits)) = settings.shown() else { return };
    // Beside a longer run, the window extends past the end of this one.
    let window = cycles_on_screen(axis, limits.width).intersection(prepared.range);
    // Replicas that differ are listed one below the other, like their lanes.
    let unfolded = replica_row::unfolded(context, prepared).len() > 1;
    let classes = if unfolded { prepared.classes.classes.len().max(1) } else { 1 };
    let shown = settings.shown_ipus(prepared);
    let mut ipus = Vec::new();
    for class in (0..classes).map(ReplicaClassId::from_index) {
        ipus.extend(shown.iter().map(|ipu| ReplicaIpu { class, ipu: *ipu }));
    }
    let shared = prepared.clone();
    let texts = QueryTexts { waiting: "Adding up…", failed: "The summary cannot be computed" };
    let summary =
        queries.summary.ask(ui.ctx(), context.workers, &(window, ipus), move |(window, ipus)| {
            window_summary(&shared.trace, *window, ipus)
        });
    summary.show(ui, texts, |ui, summary| {
        let bytes = context.opened.report.has(tilescope_report::ReportPart::StepBytes);
        let known = details_tables::RecordedTraceColumns { bytes, balance: prepared.balance };
        let table = columns::ipus(&summary.ipus, &prepared.classes, &context.opened.report);
        let typical = places::typical_words(prepared, window);
        let target = &context.opened.target;
        details_tables::summary_ui(ui, summary, &table, target, known, typical.as_deref());
    });
}
