//! Statistics of the lengths of steps, between the user's marks or in the visible range.

use super::loaded_trace::LoadedTrace;
use super::queries::TraceQueries;
use super::settings::TraceSettings;
use crate::theme::spacing;
use crate::views::ViewContext;
use crate::views::cycle_axis::cycles_on_screen;
use crate::views::search_panel::statistics_ui;
use crate::widgets::query_state::QueryTexts;
use egui::{ScrollArea, Ui};
use tilescope_analysis::distribution::ValueStatistics;
use tilescope_analysis::statistics::step_lengths;
use tilescope_report::units::{CycleRange, Hertz, IpuId, seconds};

/// The query key of statistics: a window and IPUs.
pub(crate) type TraceStatisticsKey = (CycleRange, Vec<IpuId>);
/// Shows the statistics of the steps between the marks, or of the visible ones.
pub(super) fn step_statistics_ui(
    ui: &mut Ui,
    context: &ViewContext<'_>,
    prepared: &LoadedTrace,
    settings: &TraceSettings,
    queries: &mut TraceQueries,
) {
    let Some((axis, limits)) = settings.shown() else { return };
    let marked = settings.marked_range();
    let window =
        marked.unwrap_or_else(|| cycles_on_screen(axis, limits.width).intersection(prepared.range));
    let key = (window, settings.shown_ipus(prepared));
    let texts = QueryTexts { waiting: "Counting steps…", failed: "The steps cannot be read" };
    let statistics = context.ask(ui, &mut queries.statistics, &key, |report, (window, ipus)| {
        Ok(step_lengths(report, *window, ipus)?.statistics())
    });
    let what = if marked.is_some() { "between the marks" } else { "on the screen" };
    let of = if prepared.classes.differ() { " of replica 0" } else { "" };
    let length = length_text(window, context.opened.target.clock);
    statistics.show(ui, texts, |ui, statistics| {
        lengths_ui(ui, &format!("{what}{of}: {length}"), **statistics)
    });
}

fn lengths_ui(ui: &mut Ui, which: &str, statistics: ValueStatistics) {
    ScrollArea::vertical().auto_shrink(false).show(ui, |ui| {
        ui.add_space(spacing::XS);
        let text = format!(
            "Lengths in cycles of the steps {which}. M marks the selection, Shift+M adds a mark."
        );
        ui.weak(text);
        statistics_ui(ui, &statistics, false);
    });
}

/// A number of cycles, and their duration if the clock is known.
pub(super) fn length_text(range: CycleRange, clock: Hertz) -> String {
    let time = range.length().seconds_at(clock);
    let time = if time > 0.0 { format!(" = {}", seconds(time)) } else { String::new() };
    format!("{} cycles{time}", range.length())
}
