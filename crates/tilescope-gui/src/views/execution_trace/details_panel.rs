//! The panel below the lanes: summary of the window, details of the selection, statistics.

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
use tilescope_report::units::{CycleRange, ReplicaClassId, ReplicaIpu};

/// Tabs, and what is behind the chosen one if the panel is open; what was chosen of them.
pub(super) fn tables_ui(
    ui: &mut Ui,
    context: &ViewContext<'_>,
    prepared: &Versioned<LoadedTrace>,
    (settings, queries): (&TraceSettings, &mut TraceQueries),
    open: &mut bool,
) -> Vec<TraceEvent> {
    // Half of a window has no room for all tabs, and less for a schedule; how paths differ is in a
    // table below both.
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
        // Only tiles that were measured have samples.
        let all = tabs.len() - usize::from(!prepared.measured);
        let tabs = &tabs[..if beside { 3 } else { all }];
        waiting_tabs_ui(ui, ViewId::ExecutionTrace.name(), tabs, &mut tab, waits);
    });
    let mut chosen: Vec<TraceEvent> =
        (tab != shown).then_some(TraceEvent::ShowTab(tab)).into_iter().collect();
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
    // Beside a longer run, there is more on the screen than this one.
    let window = cycles_on_screen(axis, limits.width).intersection(prepared.range);
    // Replicas that differ stand below each other, as their lanes do.
    let unfolded = replica_row::unfolded(context, prepared) > 1;
    let classes = if unfolded { prepared.classes.classes.len().max(1) } else { 1 };
    let shown = settings.shown_ipus(prepared);
    let of = |class| shown.iter().map(move |ipu| ReplicaIpu { class, ipu: *ipu });
    let ipus: Vec<ReplicaIpu> = (0..classes).map(ReplicaClassId::from_index).flat_map(of).collect();
    let shared = prepared.clone();
    let question = move |(window, ipus): &(CycleRange, Vec<ReplicaIpu>)| {
        window_summary(&shared.trace, *window, ipus)
    };
    let texts = QueryTexts { waiting: "Adding up…", failed: "The summary cannot be computed" };
    let summary = queries.summary.ask(ui.ctx(), context.workers, &(window, ipus), question);
    summary.show(ui, texts, |ui, summary| {
        let bytes = context.opened.report.has(tilescope_report::ReportPart::StepBytes);
        let known = details_tables::RecordedTraceColumns { bytes, balance: prepared.balance };
        let table = columns::ipus(&summary.ipus, &prepared.classes, &context.opened.report);
        let typical = places::typical_words(prepared, window);
        let target = &context.opened.target;
        details_tables::summary_ui(ui, summary, &table, target, known, typical.as_deref());
    });
}
