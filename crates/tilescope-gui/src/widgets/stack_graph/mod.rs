//! A graph of stacked values by place: bytes over program steps or tiles, cycles over tiles.
//!
//! Place `n` covers the axis from `n` to `n + 1`, and its label is below its middle. A column of
//! pixels that covers several places shows the largest of them.

mod paint;
mod values;

pub(crate) use values::{StackLayer, StackedValues};

use super::overview_strip::{OverviewDrag, overview_ui};
use super::pan_zoom_axis::{AxisLimits, AxisRange, PanZoomAxis, count_drag};
use super::split_texture::{SplitImage, SplitTexture};
use super::{focus_ui, legend_ui, node_ui};
use crate::theme::{ColourScheme, ThemePalette, numbers, spacing, text_size};
use crate::widgets::background_query::Versioned;
use crate::widgets::{SIDE_ARROWS, keeps_arrows};
use egui::accesskit::Role;
use egui::{
    Color32, CursorIcon, Key, Pos2, Rect, Response, RichText, Sense, TextStyle, Ui, WidgetInfo,
    pos2, vec2,
};
use paint::{paint, silhouette};
use serde::ser::SerializeStruct;
use serde::{Deserialize, Serialize, Serializer};
use std::ops::Range;
use tilescope_analysis::tile_curves::TileCurveUnit;

/// The height of the strip above the graph.
const STRIP: f32 = 30.0;
/// The height of the legend below it.
const LEGEND: f32 = 24.0;
/// The width of the labels of values.
const AXIS_WIDTH: f32 = 74.0;
/// The space for the numbers and the title below the graph.
const FOOT: f32 = 36.0;
/// The number of visible places from which it is written in small letters.
const LONG_COUNT: u64 = 1_000_000;
/// The largest number of places that have separate nodes for screen readers.
const MAX_NODES: usize = 256;
/// The approximate number of nodes if neighbours share them.
const SHARED_NODES: usize = 64;

/// The appearance of a graph and its marks.
pub(crate) struct StackGraphInput<'a> {
    /// The name for screen readers.
    pub name: &'a str,
    /// The title of the horizontal axis: `Program steps`.
    pub axis: &'a str,
    /// The name of a place: `Step 7`.
    pub label: &'a dyn Fn(usize) -> String,
    pub unit: TileCurveUnit,
    /// The colours, one per layer.
    pub colours: &'a [Color32],
    /// The selected places.
    pub chosen: &'a [usize],
    /// Ranges of places with names.
    pub spans: &'a [(Range<usize>, String)],
    /// Places with text beside them.
    pub annotations: &'a [GraphAnnotation],
    pub levels: &'a [GraphLevelLine],
    /// A value that the axis always includes.
    pub least_top: u64,
    /// The places that stay bright while the others are veiled; `None` veils nothing.
    pub matching: Option<&'a MatchedPlaces>,
}

/// A point of the graph with text beside it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct GraphAnnotation {
    pub place: usize,
    pub value: u64,
    pub words: String,
}

/// A horizontal line across the graph.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct GraphLevelLine {
    pub value: u64,
    /// The meaning of the line.
    pub name: &'static str,
    pub colour: Color32,
}

/// Returns true if a line at `capacity` is near values with the maximum `most`. A line far above
/// them would only flatten the graph.
pub(crate) fn is_near(capacity: u64, most: u64) -> bool {
    most.saturating_mul(5) > capacity.saturating_mul(2)
}

/// The matching places, counted so that any range can be tested in constant time.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct MatchedPlaces {
    /// The number of matches before each place.
    before: Vec<u32>,
}

impl MatchedPlaces {
    /// Counts matches, given for each place in order if it matches.
    pub(crate) fn new(places: impl Iterator<Item = bool>) -> Self {
        let mut before = vec![0];
        let mut count = 0;
        for matches in places {
            count += u32::from(matches);
            before.push(count);
        }
        Self { before }
    }

    pub(crate) fn count(&self) -> u32 {
        self.before.last().copied().unwrap_or(0)
    }

    /// Returns true if any of the places matches.
    fn any(&self, places: Range<usize>) -> bool {
        let count = |place: usize| self.before.get(place).copied().unwrap_or(self.count());
        count(places.start) < count(places.end)
    }

    /// The first match after a place, or the first of all.
    pub(crate) fn next(&self, after: Option<usize>) -> Option<usize> {
        let from = after.map_or(0, |place| place + 1);
        let known = self.before.get(from).copied().unwrap_or(self.count());
        // A match is the place at which the count increases.
        let nth = if known < self.count() { known } else { 0 };
        let place = self.before.partition_point(|count| *count <= nth);
        // No underflow: `before` starts with 0, which is never above `nth`.
        if self.count() > 0 { Some(place - 1) } else { None }
    }
}

/// The user's interaction with the graph.
pub(crate) struct StackGraphResponse {
    /// The response of the graph, for call-outs.
    pub response: Response,
    /// The place under the pointer.
    pub hovered: Option<usize>,
    /// The clicked place, and true if it is added to the selected ones.
    pub clicked: Option<(usize, bool)>,
}

/// The zoom state of the graph.
#[derive(Clone, Default, Deserialize)]
#[serde(default)]
pub(crate) struct StackGraph {
    axis: Option<PanZoomAxis>,
    limits: Option<AxisLimits>,
    /// The highest value of the last frame.
    #[serde(skip)]
    highest: Option<u64>,
    #[serde(skip)]
    grip: Option<OverviewDrag>,
    #[serde(skip)]
    strip: Option<(usize, u64, ColourScheme, SplitTexture)>,
}

impl Serialize for StackGraph {
    /// A graph that shows all places serializes the same before and after it is drawn.
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let limits = self.limits.filter(|_| !self.is_whole());
        let mut kept = serializer.serialize_struct("StackGraph", 2)?;
        kept.serialize_field("axis", &self.axis)?;
        kept.serialize_field("limits", &limits)?;
        kept.end()
    }
}

/// The layout of this frame.
struct StackGraphLayout<'a> {
    stack: &'a StackedValues,
    frame: Rect,
    axis: PanZoomAxis,
    top: f64,
}

impl StackGraphLayout<'_> {
    fn x(&self, place: usize) -> f32 {
        self.frame.left() + self.axis.x_from_position(place as u64)
    }

    fn y(&self, value: u64) -> f32 {
        let share = (value as f64 / self.top).min(1.0) as f32;
        self.frame.bottom() - share * self.frame.height()
    }

    fn place(&self, at: Pos2) -> Option<usize> {
        let place = self.axis.position_from_x(at.x - self.frame.left());
        let place = usize::try_from(place).ok()?;
        if self.frame.contains(at) && place < self.stack.places() { Some(place) } else { None }
    }

    fn window(&self) -> Range<usize> {
        let window = self.axis.window(self.frame.width());
        // The axis shows a small margin after the last place.
        let end = (window.end as usize).min(self.stack.places());
        (window.start as usize).min(end)..end
    }
}

impl StackGraph {
    /// Shows all places again.
    pub(crate) fn reset(&mut self) {
        self.axis = None;
    }

    /// The highest value of the last frame, including the lines across the graph.
    pub(crate) fn highest(&self) -> Option<u64> {
        self.highest
    }

    /// Returns true if all places are visible.
    pub(crate) fn is_whole(&self) -> bool {
        self.axis.is_none()
    }

    /// Shows the graph in the available space.
    pub(crate) fn ui(
        &mut self,
        ui: &mut Ui,
        stack: &Versioned<StackedValues>,
        look: &StackGraphInput<'_>,
    ) -> StackGraphResponse {
        let area = ui.available_rect_before_wrap();
        let (area, _) = ui.allocate_exact_size(area.size(), Sense::hover());
        let left = area.left() + AXIS_WIDTH;
        let width = (area.right() - 14.0 - left).max(20.0);
        let strip = Rect::from_min_size(pos2(left, area.top() + 8.0), vec2(width, STRIP));
        let bottom = (area.bottom() - LEGEND - FOOT).max(strip.bottom() + 30.0);
        let frame =
            Rect::from_min_max(pos2(left, strip.bottom() + 8.0), pos2(left + width, bottom));
        let limits = AxisLimits { range: axis_range_of_places(stack.places()), width };
        self.keep_axis(limits);
        // Before the graph, which then shows changes of strip and count in the same frame.
        self.strip_ui(ui, stack, strip, limits);
        let beside = Rect::from_x_y_ranges(area.left() + 6.0..=left - 6.0, strip.y_range());
        self.count_ui(ui, beside, limits, look.axis);
        let axis = self.axis.unwrap_or_else(|| PanZoomAxis::fitting_exactly(limits.range, width));
        let mut places = StackGraphLayout { stack, frame, axis, top: 1.0 };
        let levels = look.levels.iter().map(|level| level.value);
        let highest = levels.fold(stack.highest(places.window()), u64::max);
        self.highest = Some(highest);
        // Only visible values set the scale, so that zooming in makes small values readable.
        places.top = highest.max(look.least_top).max(1) as f64 * 1.08;
        let response = ui.interact(frame, ui.scope_id().with(look.name), Sense::click_and_drag());
        paint(ui, &places, look);
        let (hovered, clicked) = self.pointer_ui(ui, &places, look, limits, &response);
        nodes_ui(ui, &places, look, &response);
        let foot = Rect::from_min_max(pos2(left, frame.bottom() + FOOT), area.max);
        legends_ui(ui, foot, stack, look);
        StackGraphResponse { response, hovered, clicked }
    }

    fn keep_axis(&mut self, limits: AxisLimits) {
        // Another number of places means another graph, for which the old axis is meaningless.
        let known = self.limits.filter(|old| old.range == limits.range);
        self.axis = match (self.axis, known) {
            (Some(axis), Some(old)) if (old.width - limits.width).abs() < 0.5 => Some(axis),
            (Some(axis), Some(old)) => {
                let window = axis.window(old.width).intersection(limits.range);
                Some(PanZoomAxis::fitting_exactly(window, limits.width))
            }
            _ => None,
        };
        self.limits = Some(limits);
    }

    fn strip_ui(
        &mut self,
        ui: &mut Ui,
        stack: &Versioned<StackedValues>,
        rect: Rect,
        limits: AxisLimits,
    ) {
        let pixels = ui.pixels_per_point();
        let key = ((rect.width() * pixels) as usize, stack.version());
        let colours = ColourScheme::of(ui);
        let known = self
            .strip
            .as_ref()
            .is_some_and(|(w, id, c, _)| (*w, *id, *c) == (key.0, key.1, colours));
        if !known {
            let palette = ThemePalette::for_ui(ui);
            let size = [key.0.max(1), ((rect.height() * pixels) as usize).max(1)];
            let image = SplitImage::cut(silhouette(stack, size, palette));
            self.strip = Some((
                key.0,
                key.1,
                colours,
                SplitTexture::new(ui.ctx(), "stack overview", &image),
            ));
        }
        let image = self.strip.as_ref().map(|(_, _, _, texture)| (texture, limits.range));
        let axis =
            self.axis.unwrap_or_else(|| PanZoomAxis::fitting_exactly(limits.range, limits.width));
        if let Some(moved) = overview_ui(ui, rect, image, axis, limits, &mut self.grip) {
            self.axis = Some(moved);
        }
    }

    /// The number of visible places.
    fn count_ui(&mut self, ui: &mut Ui, rect: Rect, limits: AxisLimits, places: &str) {
        let axis =
            self.axis.unwrap_or_else(|| PanZoomAxis::fitting_exactly(limits.range, limits.width));
        let mut count = axis.count(limits);
        let name = format!("{places} on the screen");
        let is_long = count >= LONG_COUNT;
        let shown = ui.scope(|ui| {
            if is_long {
                // Seven digits must fit beside the strip.
                ui.style_mut().drag_value_text_style = TextStyle::Small;
                ui.spacing_mut().button_padding.x = spacing::XXS;
            }
            ui.put(rect.shrink2(vec2(0.0, 3.0)), count_drag(&mut count, limits))
        });
        let shown = shown.inner.accessible_name(&name);
        if shown.on_hover_text(format!("{name}: drag or type a number")).changed() {
            let whole = count >= limits.range.length();
            self.axis = if !whole { Some(axis.with_visible_count(count, limits)) } else { None };
        }
    }

    fn pointer_ui(
        &mut self,
        ui: &Ui,
        places: &StackGraphLayout<'_>,
        look: &StackGraphInput<'_>,
        limits: AxisLimits,
        response: &Response,
    ) -> (Option<usize>, Option<(usize, bool)>) {
        let mut hovered = None;
        let mut clicked = None;
        let at = response.hover_pos().filter(|at| places.frame.contains(*at));
        if !response.dragged() {
            hovered = at.and_then(|at| places.place(at));
        }
        if response.double_clicked() {
            self.axis = None;
            return (hovered, clicked);
        }
        if response.clicked() {
            let place = response.interact_pointer_pos().and_then(|at| places.place(at));
            let add = ui.input(|input| input.modifiers.shift || input.modifiers.command);
            clicked = place.map(|place| (place, add));
        }
        if let Some(place) = arrows(ui, response, look.chosen, places.stack.places()) {
            clicked = Some(place);
        }
        let mut moved = places.axis;
        if response.dragged() {
            ui.ctx().set_cursor_icon(CursorIcon::Grabbing);
            moved = moved.panned(response.drag_delta().x);
        }
        if let Some(at) = at {
            let (delta, zoom) = ui.input(|input| (input.smooth_scroll_delta(), input.zoom_delta()));
            let factor = f64::from(zoom) * (f64::from(delta.y) * 0.006).exp();
            if factor != 1.0 {
                moved = moved.zoomed(factor, at.x - places.frame.left(), limits);
            }
            if delta.x != 0.0 {
                moved = moved.panned(delta.x);
            }
        }
        if moved != places.axis {
            // `None` stands for all places: all of them stay visible in a wider window.
            let whole = moved.window(limits.width).length() >= limits.range.length();
            self.axis = if !whole { Some(moved.clamped_to(limits)) } else { None };
        }
        (hovered, clicked)
    }
}

/// The axis of a graph of this many places; one place wide if there are none.
fn axis_range_of_places(places: usize) -> AxisRange {
    AxisRange::new(0, places.max(1) as u64)
}

/// The place that an arrow key moves to from the last selected one.
fn arrows(ui: &Ui, response: &Response, chosen: &[usize], places: usize) -> Option<(usize, bool)> {
    if places == 0 || !keeps_arrows(response, SIDE_ARROWS) {
        return None;
    }
    let (left, right, add) = ui.input(|input| {
        let is_pressed = |key| input.key_pressed(key);
        (is_pressed(Key::ArrowLeft), is_pressed(Key::ArrowRight), input.modifiers.shift)
    });
    let from = chosen.last().copied();
    let place = match (left, right) {
        (true, false) => from.map_or(places - 1, |place| place.saturating_sub(1)),
        (false, true) => from.map_or(0, |place| (place + 1).min(places - 1)),
        _ => return None,
    };
    Some((place, add))
}

/// The graph and its places for screen readers.
fn nodes_ui(
    ui: &Ui,
    places: &StackGraphLayout<'_>,
    look: &StackGraphInput<'_>,
    response: &Response,
) {
    let stack = places.stack;
    let value = format!("at most {}", look.unit.exact(stack.highest(0..stack.places())));
    response.widget_info(|| WidgetInfo::labeled(Role::Canvas, true, look.name));
    ui.ctx().accesskit_node_builder(response.id, |node| node.set_value(value));
    focus_ui(ui, response, places.frame);
    let top = Rect::from_min_size(places.frame.min, vec2(1.0, 1.0));
    node_ui(ui, response.id.with("top"), top, Role::Meter, || {
        ("Top of the axis".to_owned(), look.unit.exact(places.top as u64))
    });
    let window = places.window();
    // If there are too many places, neighbours share a node.
    let shared = if window.len() > MAX_NODES { window.len().div_ceil(SHARED_NODES) } else { 1 };
    for first in window.clone().step_by(shared) {
        let end = (first + shared).min(window.end);
        let rect = Rect::from_x_y_ranges(places.x(first)..=places.x(end), places.frame.y_range());
        let describe = || match end - first {
            1 => ((look.label)(first), look.unit.exact(stack.total(first))),
            _ => (
                format!("{} to {}", (look.label)(first), (look.label)(end - 1)),
                format!("at most {}", look.unit.exact(stack.highest(first..end))),
            ),
        };
        node_ui(ui, response.id.with(first), rect, Role::GraphicsObject, describe);
    }
}

fn legends_ui(ui: &mut Ui, rect: Rect, stack: &StackedValues, look: &StackGraphInput<'_>) {
    ui.scope_builder(egui::UiBuilder::new().max_rect(rect), |ui| {
        ui.spacing_mut().item_spacing.x = spacing::S;
        egui::ScrollArea::horizontal().id_salt("legend").auto_shrink(false).show(ui, |ui| {
            ui.horizontal(|ui| {
                for (title, colour) in stack.titles().iter().zip(look.colours) {
                    legend_ui(ui, *colour, title);
                    ui.add_space(spacing::M);
                }
                for GraphLevelLine { value, name, colour } in look.levels {
                    legend_ui(ui, *colour, name);
                    let text = look.unit.short(*value, numbers(ui));
                    ui.label(RichText::new(text).size(text_size::SMALL).weak());
                }
            });
        });
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn matches_are_visited_in_order() {
        let places = [false, true, false, true, true, false];
        let matching = MatchedPlaces::new(places.into_iter());
        assert_eq!(matching.count(), 3);
        assert_eq!(matching.next(None), Some(1));
        assert_eq!(matching.next(Some(1)), Some(3));
        assert_eq!(matching.next(Some(3)), Some(4));
        assert_eq!(matching.next(Some(4)), Some(1), "and again from the front");
        assert!(matching.any(0..2) && !matching.any(2..3) && !matching.any(5..9));
        assert_eq!(MatchedPlaces::new([false].into_iter()).next(None), None);
    }
}
