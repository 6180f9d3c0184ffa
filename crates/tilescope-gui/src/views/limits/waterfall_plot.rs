//! The waterfall: from the peak down to what a run achieves, every loss by its name.

use crate::theme::fonts::strong;
use crate::theme::{ThemePalette, spacing, text_size};
use crate::widgets::fixed_plot::fixed_plot;
use crate::widgets::plot_axis::{titled_x_axis, y_axis_for};
use crate::widgets::{focus_ui, node_ui};
use egui::accesskit::Role;
use egui::{Align2, Frame, Margin, Rect, Response, RichText, Ui, WidgetInfo};
use egui_plot::{Bar, BarChart, GridMark, PlotPoint, PlotTransform, Text};
use tilescope_analysis::limits::{RunLimits, WaterfallCycles, WaterfallStep};
use tilescope_report::units::{Cycles, IpuId, fine_percent, grouped, percent};

/// Where numbers begin behind their bars, and how much room is kept for them.
const NUMBER_GAP: f64 = 0.012;
const NUMBER_ROOM: f64 = 0.28;
/// Height of a bar; rows are one apart.
const BAR_HEIGHT: f64 = 0.72;

/// A row of the plot.
struct WaterfallRow {
    /// `None` for the peak.
    step: Option<WaterfallStep>,
    cycles: Cycles,
    /// Shares of the peak where its bar begins and ends.
    from: f64,
    to: f64,
}

impl WaterfallRow {
    fn title(&self) -> &'static str {
        self.step.map_or("Peak", WaterfallStep::title)
    }
}

/// The peak, what is lost on the way down, and what is left.
fn rows(cycles: &WaterfallCycles) -> Vec<WaterfallRow> {
    let total = cycles.total();
    let mut rows = vec![WaterfallRow { step: None, cycles: total, from: 0.0, to: 1.0 }];
    let mut left = 1.0;
    for (step, amount) in cycles.iter() {
        let share = cycles.share(step);
        if step == WaterfallStep::Achieved {
            rows.push(WaterfallRow { step: Some(step), cycles: amount, from: 0.0, to: share });
        } else if amount > Cycles(0) {
            let from = (left - share).max(0.0);
            rows.push(WaterfallRow { step: Some(step), cycles: amount, from, to: left });
            left = from;
        }
    }
    rows
}

/// Shows the waterfall of an IPU, or of all of them.
pub(super) fn waterfall_ui(
    ui: &mut Ui,
    cycles: &WaterfallCycles,
    run: &RunLimits,
    ipu: Option<IpuId>,
) {
    let palette = ThemePalette::for_ui(ui);
    let rows = match run.unknown {
        None => rows(cycles),
        // Nobody knows what is achieved: no row says that it is nothing.
        Some(_) => {
            let known = rows(cycles).into_iter();
            known.filter(|row| row.step != Some(WaterfallStep::Achieved)).collect()
        }
    };
    let margin = Margin::symmetric(spacing::M as i8, spacing::XS as i8);
    Frame::new().inner_margin(margin).show(ui, |ui| {
        ui.horizontal_wrapped(|ui| {
            let whose = ipu.map_or_else(|| "all IPUs".to_owned(), |ipu| format!("IPU {ipu}"));
            let (words, why) = match run.unknown {
                None => {
                    let share = cycles.share(WaterfallStep::Achieved);
                    (format!("{} of the peak of {whose}", fine_percent(share)), "")
                }
                Some(unknown) => {
                    (format!("Utilisation of {whose} is not known."), unknown.sentence())
                }
            };
            ui.label(strong(words).size(text_size::SMALL));
            ui.label(RichText::new(why).size(text_size::SMALL).color(palette.weak_text));
        })
    });
    let last = rows.len() as f64 - 1.0;
    let titles: Vec<&'static str> = rows.iter().map(WaterfallRow::title).collect();
    let names = move |mark: GridMark| {
        let at = mark.value.round();
        let is_row = (mark.value - at).abs() < 1e-6 && at >= 0.0;
        let title = is_row.then(|| titles.get(at as usize)).flatten();
        title.map_or_else(String::new, |title| (*title).to_owned())
    };
    let x_axis = titled_x_axis(ui, "Share of the cycles of the run x IPUs")
        .formatter(|mark, _| whole_percent(mark.value));
    let words = rows.iter().map(|row| row.title().to_owned());
    let y_axis = y_axis_for(ui, "", words).formatter(move |mark, _| names(mark));
    let every = |step: f64, until: f64| -> Vec<GridMark> {
        let count = (until / step).round() as usize;
        (0..=count).map(|at| GridMark { value: at as f64 * step, step_size: step }).collect()
    };
    let bounds = [(0.0, 1.0 + NUMBER_ROOM), (-0.7, last + 0.7)];
    let plot = fixed_plot("waterfall", bounds, palette)
        .custom_x_axes(vec![x_axis.tick_label_color(palette.weak_text)])
        .custom_y_axes(vec![y_axis.tick_label_color(palette.text)])
        .x_grid_spacer(move |_| every(0.25, 1.0))
        .y_grid_spacer(move |_| every(1.0, last))
        .show_grid([true, false])
        .invert_y(true)
        // Other steps, other rows: the bounds of the last frame are no longer those.
        .reset();
    let shown = plot.show(ui, |plot| {
        let bar = |(at, row): (usize, &WaterfallRow)| {
            let colour = row.step.map_or(palette.outline, |step| palette.waterfall(step));
            Bar::new(at as f64, row.to - row.from)
                .base_offset(row.from)
                .width(BAR_HEIGHT)
                .fill(colour)
                // A loss of less than a pixel is still seen.
                .stroke((1.0, colour))
        };
        let bars = rows.iter().enumerate().map(bar).collect();
        plot.bar_chart(BarChart::new("", bars).horizontal().allow_hover(false));
        // Without room for them, numbers would lie on each other; they are in the table and on hover.
        let row_height = plot.transform().dpos_dvalue_y().abs();
        let has_room = row_height >= f64::from(text_size::SMALL) + 2.0;
        for (at, row) in rows.iter().enumerate().filter(|_| has_room) {
            let place = PlotPoint::new(row.to + NUMBER_GAP, at as f64);
            let words = RichText::new(fine_percent(row.to - row.from)).size(text_size::SMALL);
            plot.text(
                Text::new("", place, words)
                    .color(palette.text)
                    .anchor(Align2::LEFT_CENTER)
                    .allow_hover(false),
            );
        }
    });
    let response = shown.response;
    describe_ui(ui, &rows, &response, &shown.transform);
    let pointed = response.hover_pos().map(|at| shown.transform.value_from_position(at).y.round());
    let pointed = pointed.filter(|at| *at >= 0.0).and_then(|at| rows.get(at as usize));
    if let Some(row) = pointed {
        response.on_hover_ui_at_pointer(|ui| {
            ui.label(strong(row.title()));
            let share = fine_percent(row.to - row.from);
            ui.label(format!("{} IPU-cycles, {share}", grouped(row.cycles.0)));
            let about = row.step.map_or(
                "All tiles compute at the peak of the matrix engine for the whole run, each \
                 operation at that of its data type",
                WaterfallStep::about,
            );
            ui.label(RichText::new(about).color(ThemePalette::for_ui(ui).weak_text));
        });
    }
}

/// The plot for readers of the accessibility tree, bar by bar, and the outline of the focus.
fn describe_ui(ui: &Ui, rows: &[WaterfallRow], response: &Response, transform: &PlotTransform) {
    response.widget_info(|| WidgetInfo::labeled(Role::Canvas, true, "Waterfall"));
    let words =
        rows.iter().map(|row| format!("{} {}", row.title(), fine_percent(row.to - row.from)));
    let value = words.collect::<Vec<_>>().join(", ");
    ui.ctx().accesskit_node_builder(response.id, |node| node.set_value(value));
    focus_ui(ui, response, *transform.frame());
    for (at, row) in rows.iter().enumerate() {
        let corner = |share: f64, side: f64| {
            let place = PlotPoint::new(share, at as f64 + side * BAR_HEIGHT / 2.0);
            transform.position_from_point(&place)
        };
        let rect = Rect::from_two_pos(corner(row.from, -1.0), corner(row.to, 1.0));
        node_ui(ui, response.id.with(("bar", at)), rect, Role::GraphicsObject, || {
            (row.title().to_owned(), fine_percent(row.to - row.from))
        });
    }
}

/// A mark of the axis of shares.
fn whole_percent(share: f64) -> String {
    let text = percent(share);
    text.replace(".0 %", " %")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bars_hang_from_the_peak_down_to_what_is_achieved() {
        let mut cycles = WaterfallCycles::default();
        cycles[WaterfallStep::SyncAndStart] = Cycles(50);
        cycles[WaterfallStep::BelowPeak] = Cycles(30);
        cycles[WaterfallStep::Achieved] = Cycles(20);
        let rows = rows(&cycles);
        let bars: Vec<_> = rows.iter().map(|row| (row.title(), row.from, row.to)).collect();
        let (first, rest) = bars.split_first().unwrap();
        assert_eq!(*first, ("Peak", 0.0, 1.0));
        let [sync, below, achieved] = rest else { panic!("{rest:?}") };
        assert_eq!((sync.0, sync.2), ("Sync and start", 1.0));
        assert!((below.1 - achieved.2).abs() < 1e-12, "the last loss ends at what is left");
    }
}
