//! Figures of analyses: bars, and layers, lines and points on the axes of `egui_plot`.

mod bars;
mod guide_names;
mod plot;

use super::focus_ui;
use super::plot_marker::marker_label_ui;
use crate::theme::{ThemePalette, spacing};
use egui::accesskit::Role;
use egui::{Color32, Response, Ui, WidgetInfo, vec2};
use tilescope_analysis::figures::{Figure, Marker, Shade};

/// The largest number of accessibility nodes; a table lists the other marks.
const MOST_NODES: usize = 200;

/// The display options of a figure.
#[derive(Clone, Copy, Default)]
pub(crate) struct FigureLook<'a> {
    /// The subject whose points are highlighted with a ring.
    pub chosen: Option<usize>,
    /// The heights of a line through the selected point, at 0, 1, 2, …
    pub path: &'a [f64],
    /// True if points can be selected by a click or with arrow keys.
    pub chooses: bool,
    /// True if the axes can be panned and zoomed.
    pub zooms: bool,
    /// True to reset the zoom.
    pub reset: bool,
}

/// The colour of a shade.
fn colour(palette: &ThemePalette, shade: Shade) -> Color32 {
    match shade {
        Shade::Whole => palette.outline,
        Shade::Plain => palette.balance,
        Shade::Text => palette.text,
        Shade::Weak => palette.weak_text,
        Shade::Selection => palette.selection,
        Shade::Good => palette.good,
        Shade::Warning => palette.warning,
        Shade::Error => palette.error,
        Shade::Capacity => palette.max_memory,
        Shade::Nth(place) => palette.categorical_colour(place.into()),
        Shade::Class(class) => palette.cycle_class(class),
        Shade::Waterfall(step) => palette.waterfall(step),
        Shade::Activity(activity) => palette.activity(activity),
        Shade::Layer(layer) => palette.layer(layer),
    }
}

fn shade_of(figure: &Figure, series: usize, palette: &ThemePalette) -> Color32 {
    figure.series.get(series).map_or(palette.other, |series| colour(palette, series.shade))
}

/// The height of a figure if there is enough space.
pub(crate) fn height_of(figure: &Figure) -> f32 {
    match figure.marks.bars.len() {
        0 => 260.0,
        bars => bars::height_of(figure, bars),
    }
}

/// Draws a figure into all of `ui`, with its legend above it. Returns the subject of the mark that
/// was clicked or reached by a key.
pub(crate) fn figure_ui(ui: &mut Ui, figure: &Figure, look: FigureLook<'_>) -> Option<usize> {
    legend_ui(ui, figure);
    let (response, frame, clicked) = if figure.marks.bars.is_empty() {
        plot::plot_ui(ui, figure, look)
    } else {
        bars::bars_ui(ui, figure)
    };
    describe_ui(ui, figure, &response);
    focus_ui(ui, &response, frame);
    clicked
}

fn describe_ui(ui: &Ui, figure: &Figure, response: &Response) {
    response.widget_info(|| WidgetInfo::labeled(Role::Canvas, true, &figure.title));
    ui.ctx().accesskit_node_builder(response.id, |node| node.set_value(figure.words()));
}

/// The names of series with their colours and markers.
fn legend_ui(ui: &mut Ui, figure: &Figure) {
    let palette = ThemePalette::for_ui(ui);
    let legend = figure.legend();
    if legend.is_empty() {
        return;
    }
    let has_markers = !figure.marks.points.is_empty();
    ui.horizontal_wrapped(|ui| {
        ui.spacing_mut().item_spacing = vec2(spacing::M, 0.0);
        for series in legend {
            let marker = if has_markers { series.marker } else { Marker::Square };
            let colour = colour(palette, series.shade);
            let response = marker_label_ui(ui, marker, colour, &series.name);
            if !series.about.is_empty() {
                response.on_hover_text(&series.about);
            }
        }
    });
}
