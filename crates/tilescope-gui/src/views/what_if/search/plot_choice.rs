//! Points of plots that are pointed at, clicked and ringed.

use super::found::{all_changes_words, figures_words};
use crate::theme::ThemePalette;
use crate::widgets::plot_marker::RADIUS;
use egui::accesskit::Role;
use egui::{Response, WidgetInfo};
use egui_plot::{MarkerShape, PlotPoint, PlotResponse, PlotUi, Points};
use tilescope_experiments::point::Point;

/// How near the pointer has to come to a point.
const REACH: f32 = 14.0;

/// Where a point is drawn, and its place among all points.
pub(super) type PlacedPoint = ([f64; 2], usize);

/// The points of a page, which of them is chosen, and the one that was clicked.
pub(super) struct PlotChoice<'a> {
    pub point: &'a dyn Fn(usize) -> Option<&'a Point>,
    pub chosen: Option<usize>,
    pub clicked: Option<usize>,
}

impl PlotChoice<'_> {
    /// Rings the chosen point, wherever it is drawn.
    pub(super) fn ring(
        &self,
        palette: &ThemePalette,
        plot: &mut PlotUi<'_>,
        drawn: &[PlacedPoint],
    ) {
        let own = drawn.iter().filter(|(_, place)| Some(*place) == self.chosen);
        let ring = Points::new("", own.map(|(at, _)| *at).collect::<Vec<_>>());
        plot.points(
            ring.shape(MarkerShape::Circle)
                .filled(false)
                .radius(RADIUS + 4.0)
                .color(palette.text)
                .allow_hover(false),
        );
    }

    /// Says which point is pointed at, and takes a click on it; all points are in the table too.
    pub(super) fn take(&mut self, shown: &PlotResponse<()>, name: &str, drawn: &[PlacedPoint]) {
        let label = format!("{name}; the table has all points");
        shown.response.widget_info(|| WidgetInfo::labeled(Role::Image, true, &label));
        let Some(pointed) = nearest(shown, drawn) else { return };
        if let Some(point) = (self.point)(pointed) {
            hover_ui(&shown.response, point);
        }
        if shown.response.clicked() {
            self.clicked = Some(pointed);
        }
    }
}

fn nearest(shown: &PlotResponse<()>, drawn: &[PlacedPoint]) -> Option<usize> {
    let pointer = shown.response.hover_pos()?;
    let distance = |at: [f64; 2]| {
        let place = shown.transform.position_from_point(&PlotPoint::new(at[0], at[1]));
        place.distance(pointer)
    };
    let near = drawn.iter().map(|(at, place)| (distance(*at), *place));
    let near = near.filter(|(distance, _)| *distance <= REACH);
    near.min_by(|one, other| one.0.total_cmp(&other.0)).map(|(_, place)| place)
}

fn hover_ui(response: &Response, point: &Point) {
    response.clone().on_hover_ui_at_pointer(|ui| {
        ui.label(all_changes_words(point));
        ui.label(figures_words(point));
    });
}
