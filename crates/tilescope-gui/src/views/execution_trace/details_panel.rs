//! The panel below the lanes: summary of the window, details of the selection, statistics.

use super::scene::LoadedTrace;
use super::{ExecutionTraceView, TraceDetailsTab, details_tables};
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
use tilescope_report::units::CycleRange;

impl ExecutionTraceView {
    /// Tabs, and what is behind the chosen one if the panel is open.
    pub(super) fn tables_ui(
        &mut self,
        ui: &mut Ui,
        context: &ViewContext<'_>,
        prepared: &Versioned<LoadedTrace>,
        open: &mut bool,
    ) {
        let before = self.tab;
        let tabs = [
            (TraceDetailsTab::Summary, "Summary"),
            (TraceDetailsTab::Details, "Details"),
            (TraceDetailsTab::Statistics, "Statistics"),
        ];
        tabs_row_ui(ui, |ui| {
            let none = self.bar.is_none() && context.selection.step.is_none();
            let waits =
                |tab| (none && tab == TraceDetailsTab::Details).then_some("Select a step first");
            waiting_tabs_ui(ui, &tabs, &mut self.tab, waits);
        });
        if !*open {
            *open = self.tab != before;
            return;
        }
        ui.add_space(spacing::XXS);
        match self.tab {
            TraceDetailsTab::Summary => self.summary_ui(ui, context, prepared),
            TraceDetailsTab::Details => self.details_ui(ui, context),
            TraceDetailsTab::Statistics => self.statistics_ui(ui, context, prepared),
        }
    }

    fn summary_ui(
        &mut self,
        ui: &mut Ui,
        context: &ViewContext<'_>,
        prepared: &Versioned<LoadedTrace>,
    ) {
        let (Some(axis), Some(limits)) = (self.axis, self.limits) else { return };
        // Beside a longer run, there is more on the screen than this one.
        let window = cycles_on_screen(axis, limits.width).intersection(prepared.range);
        let ipus = self.shown_ipus(prepared);
        let shared = prepared.clone();
        let question = move |(window, ipus): &(CycleRange, Vec<u32>)| {
            window_summary(&shared.trace, *window, ipus)
        };
        let texts =
            QueryTexts { waiting: "Adding up…", failed: "The summary cannot be computed" };
        let summary = self.summary.ask(ui.ctx(), context.workers, &(window, ipus), question);
        summary.show(ui, texts, |ui, summary| {
            let bytes = context.opened.report.has(tilescope_report::ReportPart::StepBytes);
            let known = details_tables::RecordedTraceColumns { bytes, balance: prepared.balance };
            let table = columns::ipus(&summary.ipus, &context.opened.report);
            details_tables::summary_ui(ui, summary, &table, &context.opened.target, known);
        });
    }
}
