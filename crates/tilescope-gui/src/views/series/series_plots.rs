//! Figures over the runs of a series: a line each, with a mark where it changes for good.

use crate::theme::{ThemePalette, spacing, text_size};
use crate::widgets::fixed_plot::fixed_plot;
use crate::widgets::plot_axis::y_axis_for;
use crate::widgets::plot_marker::{OUTLINE, RADIUS};
use egui::accesskit::Role;
use egui::{Align2, Label, RichText, Ui, Vec2, WidgetInfo, vec2};
use egui_plot::{
    AxisHints, GridMark, Line, LineStyle, MarkerShape, PlotPoint, PlotResponse, Points, Text, VLine,
};
use tilescope_analysis::gates::GateQuantity;
use tilescope_analysis::series::{ReportSeries, SeriesFigure, SeriesTelling};
use tilescope_report::units::grouped_real;

/// Largest and least width of a plot, and its height.
const SIZE: Vec2 = vec2(520.0, 190.0);
const LEAST_WIDTH: f32 = 360.0;

/// Runs up to which each has a mark of its own.
const MARKED_RUNS: usize = 120;

/// Room above and below the values, as a share of what is between them.
const EDGE: f64 = 0.15;

/// Where a figure changes for good.
struct ShownChange {
    /// Between two runs.
    at: f64,
    words: String,
    confirmed: bool,
}

/// A figure over the runs.
pub(super) struct FigurePlot {
    title: String,
    quantity: GateQuantity,
    names: Vec<String>,
    /// Runs that have it, with their values.
    points: Vec<[f64; 2]>,
    changes: Vec<ShownChange>,
}

impl FigurePlot {
    pub(super) fn new(series: &ReportSeries, of: &SeriesFigure, telling: SeriesTelling) -> Self {
        let point = |run| Some([run as f64, series.told(of, run, telling.unit)?]);
        let changes = series.trend(of, telling).changes.into_iter().map(|change| {
            let share = change.share.map(|share| format!("{:+.1} %", share * 100.0));
            ShownChange {
                at: (change.previous + change.run) as f64 / 2.0,
                words: share.unwrap_or_else(|| "new".to_owned()),
                confirmed: change.confirmed,
            }
        });
        Self {
            title: of.title(series, telling),
            quantity: of.figure.quantity(),
            names: series.runs.iter().map(|run| run.name.clone()).collect(),
            points: (0..series.runs.len()).filter_map(point).collect(),
            changes: changes.collect(),
        }
    }

    /// Scale and name of the unit of the axis.
    fn unit(&self, largest: f64) -> (f64, &'static str) {
        let units: &[(f64, &str)] = match self.quantity {
            GateQuantity::Bytes => {
                &[(1_073_741_824.0, "GiB"), (1_048_576.0, "MiB"), (1024.0, "KiB")]
            }
            GateQuantity::Share => &[(0.01, "%")],
            GateQuantity::Seconds => &[(1.0, "s"), (1e-3, "ms"), (1e-6, "us"), (1e-9, "ns")],
            _ => &[(1e9, "G"), (1e6, "M"), (1e3, "k")],
        };
        let found = units.iter().find(|(scale, _)| largest >= *scale || *scale == 0.01);
        found.copied().unwrap_or((1.0, ""))
    }

    fn bounds(&self, scale: f64) -> [(f64, f64); 2] {
        let values = self.points.iter().map(|point| point[1] / scale);
        let ends = (f64::INFINITY, f64::NEG_INFINITY);
        let (low, high) = values.fold(ends, |(low, high), of| (low.min(of), high.max(of)));
        let (low, high) = if low <= high { (low, high) } else { (0.0, 1.0) };
        let room = match high > low {
            true => (high - low) * EDGE,
            false => high.abs().max(1.0) * EDGE,
        };
        let last = self.names.len().saturating_sub(1) as f64;
        [(-0.5, last + 0.5), (low - room, high + room)]
    }
}

/// The plots, two beside each other where there is room; the run that was clicked.
pub(super) fn plots_ui(ui: &mut Ui, plots: &[FigurePlot], chosen: Option<usize>) -> Option<usize> {
    let (width, gap) = (ui.available_width(), ui.spacing().item_spacing.x);
    let half = (width - gap) / 2.0;
    let (columns, width) = match half >= LEAST_WIDTH {
        true => (2, half.min(SIZE.x)),
        false => (1, width.min(SIZE.x)),
    };
    let mut clicked = None;
    for row in plots.chunks(columns) {
        ui.horizontal_top(|ui| {
            for plot in row {
                ui.vertical(|ui| {
                    ui.set_width(width);
                    let picked = plot_ui(ui, plot, vec2(width, SIZE.y), chosen);
                    clicked = clicked.or(picked);
                });
            }
        });
        ui.add_space(spacing::XS);
    }
    clicked
}

fn plot_ui(ui: &mut Ui, of: &FigurePlot, size: Vec2, chosen: Option<usize>) -> Option<usize> {
    let palette = ThemePalette::for_ui(ui);
    let largest = of.points.iter().map(|point| point[1].abs()).fold(0.0, f64::max);
    let (scale, unit) = of.unit(largest);
    let unit = if unit.is_empty() { String::new() } else { format!(" in {unit}") };
    let title = format!("{}{unit}", of.title);
    ui.add(Label::new(RichText::new(&title).size(text_size::SMALL)).truncate());
    if of.points.is_empty() {
        ui.label(RichText::new("No run has this figure.").color(palette.weak_text));
        return None;
    }
    let bounds = of.bounds(scale);
    let names = of.names.clone();
    let x_axis = AxisHints::new_x().formatter(move |mark: GridMark, _| {
        let name = names.get(mark.value.round().max(0.0) as usize).map_or("", String::as_str);
        short(name)
    });
    let digits = [bounds[1].0, bounds[1].1].map(grouped_real);
    let y_axis = y_axis_for(ui, "", digits).tick_label_color(palette.weak_text);
    let count = of.names.len();
    let every = move |_| marks(count, size.x);
    let points = || of.points.iter().map(|at| [at[0], at[1] / scale]).collect::<Vec<_>>();
    let shown = fixed_plot(&format!("{title} {bounds:?}"), bounds, palette)
        .width(size.x)
        .height(size.y)
        .x_grid_spacer(every)
        .custom_x_axes(vec![x_axis.tick_label_color(palette.weak_text)])
        .custom_y_axes(vec![y_axis])
        .show(ui, |plot| {
            for change in &of.changes {
                let style = match change.confirmed {
                    true => LineStyle::Solid,
                    false => LineStyle::dashed_loose(),
                };
                let line = VLine::new("", change.at).color(palette.warning).style(style);
                plot.vline(line.width(1.5).allow_hover(false));
                let at = PlotPoint::new(change.at, bounds[1].1);
                let words = RichText::new(format!(" {}", change.words)).size(text_size::SMALL);
                let text = Text::new("", at, words).color(palette.text).anchor(Align2::LEFT_TOP);
                plot.text(text.allow_hover(false));
            }
            let colour = palette.categorical_colour(0);
            plot.line(Line::new("", points()).color(colour).width(1.5).allow_hover(false));
            if count <= MARKED_RUNS {
                for (radius, colour) in [(RADIUS + OUTLINE, palette.weak_text), (RADIUS, colour)] {
                    let marks = Points::new("", points()).shape(MarkerShape::Circle);
                    plot.points(marks.radius(radius).color(colour).allow_hover(false));
                }
            }
            let own = of.points.iter().filter(|at| chosen.is_some_and(|run| at[0] == run as f64));
            let own: Vec<[f64; 2]> = own.map(|at| [at[0], at[1] / scale]).collect();
            let ring = Points::new("", own).shape(MarkerShape::Circle).filled(false);
            plot.points(ring.radius(RADIUS + 4.0).color(palette.text).allow_hover(false));
        });
    let label = format!("{title} over runs; the table has all values");
    shown.response.widget_info(|| WidgetInfo::labeled(Role::Image, true, &label));
    let run = pointed(&shown, of)?;
    shown.response.clone().on_hover_ui_at_pointer(|ui| {
        ui.label(&of.names[run]);
        let value = of.points.iter().find(|at| at[0] == run as f64).map(|at| at[1]);
        ui.label(value.map_or_else(|| "no value".to_owned(), |value| of.quantity.text(value)));
    });
    shown.response.clicked().then_some(run)
}

/// The run below the pointer.
fn pointed(shown: &PlotResponse<()>, of: &FigurePlot) -> Option<usize> {
    let place = shown.transform.value_from_position(shown.response.hover_pos()?).x.round();
    let last = of.names.len().checked_sub(1)?;
    Some(place.clamp(0.0, last as f64) as usize)
}

/// Runs whose names have room below a plot of this width.
fn marks(count: usize, width: f32) -> Vec<GridMark> {
    let room = (width / 76.0).max(1.0) as usize;
    let step = count.div_ceil(room).max(1);
    let mark = |run: usize| GridMark { value: run as f64, step_size: step as f64 };
    (0..count).step_by(step).map(mark).collect()
}

/// The end of a long name, which tells runs apart.
fn short(name: &str) -> String {
    let count = name.chars().count();
    match count > 10 {
        true => format!("…{}", name.chars().skip(count - 9).collect::<String>()),
        false => name.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_have_room_below_a_plot() {
        let places = |count, width| -> Vec<f64> {
            marks(count, width).iter().map(|mark| mark.value).collect()
        };
        assert_eq!(places(3, 400.0), [0.0, 1.0, 2.0]);
        assert_eq!(places(100, 400.0), [0.0, 20.0, 40.0, 60.0, 80.0]);
        assert!(places(0, 400.0).is_empty());
        assert_eq!(short("nightly/2026-11-25"), "…026-11-25");
        assert_eq!(short("v10"), "v10");
    }
}
