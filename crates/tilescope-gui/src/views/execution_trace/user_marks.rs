//! Measuring: marks of the user, the range between them, and statistics of the steps in it.

use super::lane_layout::TraceViewLayout;
use super::scene::LoadedTrace;
use super::{ExecutionTraceView, StepDetailReport};
use crate::theme::{ThemePalette, spacing, text_size};
use crate::views::ViewContext;
use crate::views::cycle_axis::cycles_on_screen;
use crate::views::search_panel::statistics_ui;
use crate::widgets::background_query::Versioned;
use crate::widgets::pan_zoom_axis::PanZoomAxis;
use crate::widgets::query_state::QueryTexts;
use egui::{Align2, FontId, RichText, ScrollArea, Stroke, Ui, pos2, vec2};
use tilescope_analysis::statistics::{ValueStatistics, step_lengths};
use tilescope_report::ReportError;
use tilescope_report::units::{CycleRange, Cycles, grouped, seconds};

/// The query key of statistics: a window and IPUs.
pub(crate) type TraceStatisticsKey = (CycleRange, Vec<u32>);
/// Statistics, and whether every step was looked at.
pub(crate) type TraceStatisticsAnswer = (ValueStatistics, bool);

impl ExecutionTraceView {
    /// Marks what is chosen, or the cycle under the pointer; beside other marks, or instead.
    pub(super) fn mark(&mut self, context: &ViewContext<'_>, under: Option<u64>, keep: bool) {
        if !keep {
            self.marks.clear();
        }
        let point = |cycle| CycleRange::new(Cycles(cycle), Cycles(cycle));
        self.marks.extend(self.chosen_range(context).or(under.map(point)));
    }

    /// The cycles of what is chosen.
    pub(super) fn chosen_range(&self, context: &ViewContext<'_>) -> Option<CycleRange> {
        self.bar.as_ref().map(|bar| bar.range).or_else(|| {
            let details: &StepDetailReport = self.details.latest()?.last()?;
            context.selection.step.filter(|step| step.step == details.step)?;
            Some(details.range)
        })
    }

    /// From the start of the first mark to the end of the last one.
    pub(super) fn marked_range(&self) -> Option<CycleRange> {
        let range = self.marks.iter().copied().reduce(CycleRange::union);
        range.filter(|range| !range.is_empty())
    }

    /// Marks as lines, and the range between them as a measure.
    pub(super) fn paint_marks(
        &self,
        ui: &Ui,
        context: &ViewContext<'_>,
        places: &TraceViewLayout,
        axis: PanZoomAxis,
    ) {
        let palette = ThemePalette::for_ui(ui);
        let area = places.lanes.union(places.ruler);
        let painter = ui.painter_at(area);
        let x = |cycle: u64| places.lanes.left() + axis.x_from_position(cycle);
        for mark in &self.marks {
            for cycle in [mark.start, mark.end] {
                painter.vline(x(cycle.0), area.y_range(), Stroke::new(1.0, palette.accent));
            }
        }
        let Some(range) = self.marked_range() else { return };
        let (left, right) = (x(range.start.0).max(area.left()), x(range.end.0).min(area.right()));
        if left >= right {
            return;
        }
        let y = places.ruler.bottom() - 3.0;
        painter.hline(left..=right, y, Stroke::new(2.0, palette.accent));
        let words = length_text(range, context);
        let font = FontId::proportional(text_size::CAPTION);
        let galley = painter.layout_no_wrap(words, font, palette.text);
        let middle = pos2((left + right) / 2.0, places.ruler.center().y);
        let ground =
            Align2::CENTER_CENTER.anchor_size(middle, galley.size()).expand2(vec2(4.0, 1.0));
        painter.rect_filled(ground, 3.0, palette.page);
        painter.galley(ground.min + vec2(4.0, 1.0), galley, palette.text);
    }

    /// Statistics of the steps between the marks, or of those on the screen.
    pub(super) fn statistics_ui(
        &mut self,
        ui: &mut Ui,
        context: &ViewContext<'_>,
        prepared: &Versioned<LoadedTrace>,
    ) {
        let (Some(axis), Some(limits)) = (self.axis, self.limits) else { return };
        let shown = cycles_on_screen(axis, limits.width).intersection(prepared.range);
        let window = self.marked_range().unwrap_or(shown);
        let key = (window, self.shown_ipus(prepared));
        let report = context.opened.report.clone();
        let question = move |(window, ipus): &TraceStatisticsKey| {
            let (mut lengths, complete) = step_lengths(&report, *window, ipus)?;
            Ok::<TraceStatisticsAnswer, ReportError>((
                ValueStatistics::from_values(&mut lengths),
                complete,
            ))
        };
        let marked = self.marked_range().is_some();
        let texts = QueryTexts { waiting: "Counting steps…", failed: "The steps cannot be read" };
        let measured = self.measured.ask(ui.ctx(), context.workers, &key, question);
        measured.show(ui, texts, |ui, measured| {
            let (statistics, complete) = **measured;
            ScrollArea::vertical().auto_shrink(false).show(ui, |ui| {
                ui.add_space(spacing::XS);
                let what = if marked { "between the marks" } else { "on the screen" };
                let text = format!(
                    "Lengths in cycles of the steps {what}: {}. M marks the selection, Shift+M adds a mark.",
                    length_text(window, context)
                );
                ui.label(
                    RichText::new(text).color(ThemePalette::for_ui(ui).weak_text),
                );
                statistics_ui(ui, &statistics, false);
                if !complete {
                    ui.label("Only the first steps of this long trace were counted.");
                }
            });
        });
    }
}

fn length_text(range: CycleRange, context: &ViewContext<'_>) -> String {
    let cycles = range.length();
    let time = cycles.seconds_at(context.opened.target.clock);
    let time = if time > 0.0 { format!(" = {}", seconds(time)) } else { String::new() };
    format!("{} cycles{time}", grouped(range.length().0))
}
