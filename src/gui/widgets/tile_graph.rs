//! A graph over tiles: values that stand on each other, as steps. The strip above it shows all
//! tiles; a click chooses one.

use super::axis::{Axis, Limits, tick_step};
use super::legend_ui;
use super::overview::{Grip, overview_ui};
use super::tile_picker::pick;
use super::tiled::{Pieces, Tiled};
use crate::analysis::tiles::{Curve, Curves, Layer, Order, Piece, Unit, pieces};
use crate::gui::theme::{Palette, mix};
use crate::gui::views::ViewContext;
use crate::units::{Bytes, CycleRange, grouped};
use egui::accesskit::Role;
use egui::{
    ColorImage, CursorIcon, Rect, Response, RichText, Sense, Stroke, Ui, WidgetInfo, pos2, vec2,
};
use egui_plot::{FilledArea, GridInput, GridMark, HLine, Line, Plot, PlotBounds, PlotUi, VLine};
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// Height of the strip above the graph.
const STRIP: f32 = 34.0;
/// Height of the legend below it.
const LEGEND: f32 = 26.0;
/// Room for the names of byte values.
const AXIS_WIDTH: f32 = 74.0;

/// What is shown, and how.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Look {
    /// Name for readers of the accessibility tree.
    pub name: &'static str,
    /// What the only curve is called.
    pub total: &'static str,
    /// In which order tiles stand.
    pub order: Order,
    /// One place per IPU.
    pub per_ipu: bool,
    /// Whether the line of a tile's capacity is shown.
    pub max_memory: bool,
}

/// What is zoomed to, and what is drawn already.
#[derive(Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Graph {
    axis: Option<Axis>,
    limits: Option<Limits>,
    #[serde(skip)]
    grip: Option<Grip>,
    #[serde(skip)]
    strip: Option<(usize, usize, bool, Tiled)>,
    /// Where the curve lay in the last frame; the strip lies above it.
    #[serde(skip)]
    frame: Option<Rect>,
}

impl Graph {
    /// Shows all tiles again.
    pub fn reset(&mut self) {
        self.axis = None;
    }

    /// Shows the graph.
    pub fn ui(
        &mut self,
        ui: &mut Ui,
        context: &mut ViewContext<'_>,
        curves: &Arc<Curves>,
        look: Look,
    ) {
        let area = ui.available_rect_before_wrap().shrink2(vec2(10.0, 0.0));
        let frame = self.frame.unwrap_or_else(|| area.with_min_x(area.left() + AXIS_WIDTH));
        let width = frame.width().max(20.0);
        let limits = Limits { range: CycleRange::new(0, curves.places.max(1) as u64), width };
        self.keep_axis(limits);
        let strip = Rect::from_min_size(pos2(frame.left(), area.top() + 10.0), vec2(width, STRIP));
        self.strip_ui(ui, curves, strip, limits);
        let mut axis = self.axis.unwrap_or_else(|| Axis::fitting_exactly(limits.range, width));
        ui.add_space(STRIP + 14.0);
        let height = (ui.available_height() - LEGEND - 6.0).max(40.0);
        let window = axis.window(width);
        let top = top_of(curves, look, window);
        let response = ui
            .scope(|ui| {
                ui.spacing_mut().item_spacing.y = 0.0;
                self.plot_ui(ui, context, curves, look, (axis, width), top, height)
            })
            .inner;
        self.pointer_ui(ui, context, curves, look, &mut axis, limits, &response);
        ui.horizontal(|ui| {
            ui.add_space(AXIS_WIDTH + 10.0);
            self.legend_ui(ui, curves, look);
        });
    }

    fn keep_axis(&mut self, limits: Limits) {
        let same = self
            .limits
            .is_some_and(|old| old.range == limits.range && (old.width - limits.width).abs() < 0.5);
        self.axis = match (self.axis, self.limits) {
            (Some(axis), _) if same => Some(axis),
            (Some(axis), Some(old)) if old.range == limits.range => {
                let window = axis.window(old.width).intersection(limits.range);
                Some(Axis::fitting_exactly(window, limits.width))
            }
            _ => Some(Axis::fitting_exactly(limits.range, limits.width)),
        };
        self.limits = Some(limits);
    }

    fn strip_ui(&mut self, ui: &mut Ui, curves: &Arc<Curves>, rect: Rect, limits: Limits) {
        let ppp = ui.pixels_per_point();
        let size = ((rect.width() * ppp) as usize, Arc::as_ptr(curves) as usize);
        let dark = ui.visuals().dark_mode;
        let known = self
            .strip
            .as_ref()
            .is_some_and(|(w, id, d, _)| (*w, *id, *d) == (size.0, size.1, dark));
        if !known {
            let palette = Palette::of(ui.visuals());
            let image = silhouette(curves, size.0.max(1), (rect.height() * ppp) as usize, palette);
            let texture = Tiled::new(ui.ctx(), "overview of tiles", &Pieces::cut(image));
            self.strip = Some((size.0, size.1, dark, texture));
        }
        let image = self.strip.as_ref().map(|(_, _, _, texture)| texture);
        let axis = self.axis.unwrap_or_else(|| Axis::fitting_exactly(limits.range, limits.width));
        if let Some(moved) = overview_ui(ui, rect, image, axis, limits, &mut self.grip) {
            self.axis = Some(moved);
        }
    }

    #[expect(clippy::too_many_arguments, reason = "a frame's worth of places")]
    fn plot_ui(
        &mut self,
        ui: &mut Ui,
        context: &ViewContext<'_>,
        curves: &Curves,
        look: Look,
        (axis, width): (Axis, f32),
        top: f64,
        height: f32,
    ) -> Response {
        let palette = Palette::of(ui.visuals());
        let start = axis.start();
        let bounds =
            PlotBounds::from_min_max([start, 0.0], [start + f64::from(width) * axis.scale(), top]);
        let step = tick_step(axis.scale(), 90.0);
        let (order, unit) = (look.order, curves.unit);
        let title = match (look.per_ipu, order) {
            (true, _) => "IPUs",
            (false, Order::Software) => "Tiles (software order)",
            (false, Order::Hardware) => "Tiles (hardware order)",
        };
        let plot = Plot::new(look.name)
            .height(height)
            .width(ui.available_width() - 14.0)
            .allow_zoom(false)
            .allow_drag(false)
            .allow_scroll(false)
            .allow_boxed_zoom(false)
            .allow_double_click_reset(false)
            .allow_axis_zoom_drag(false)
            .show_x(false)
            .show_y(false)
            .show_background(false)
            .y_axis_min_width(AXIS_WIDTH)
            .x_axis_label(RichText::new(title).color(palette.weak_text).size(11.5))
            .grid_color(palette.rule)
            .x_grid_spacer(move |input| x_marks(input, step))
            .y_grid_spacer(move |input| y_marks(input, unit))
            .x_axis_formatter(move |mark, _| match order {
                _ if mark.value < 0.0 => String::new(),
                _ => grouped(mark.value.round() as u64),
            })
            .y_axis_formatter(move |mark, _| unit.short(mark.value.max(0.0).round() as u64))
            .sense(Sense::click_and_drag());
        let chosen = &context.selection.tiles;
        let shown = plot.show(ui, |plot| {
            plot.set_plot_bounds(bounds);
            let from = start.max(0.0) as usize;
            let to = (start + f64::from(width) * axis.scale()).ceil().max(0.0) as usize;
            add_layers(plot, curves, palette, look, (from, to), width as usize);
            add_selection(plot, curves, palette, chosen, look);
            if look.max_memory && curves.capacity > 0 && curves.capacity as f64 <= top * 1.001 {
                let line = HLine::new("Max memory", curves.capacity as f64);
                plot.hline(line.stroke(Stroke::new(1.5, palette.max_memory)));
            }
        });
        self.frame = Some(*shown.transform.frame());
        let response = shown.response;
        let value = format!("at most {}", curves.unit.exact(curves.max));
        response.widget_info(|| WidgetInfo::labeled(Role::Canvas, true, look.name));
        ui.ctx().accesskit_node_builder(response.id, |node| node.set_value(value));
        response
    }

    #[expect(clippy::too_many_arguments, reason = "a frame's worth of places")]
    fn pointer_ui(
        &mut self,
        ui: &Ui,
        context: &mut ViewContext<'_>,
        curves: &Curves,
        look: Look,
        axis: &mut Axis,
        limits: Limits,
        response: &Response,
    ) {
        let Some(frame) = self.frame else { return };
        let place = |x: f32| {
            let place = axis.cycle_from_x(x - frame.left());
            usize::try_from(place).ok().filter(|place| *place < curves.places)
        };
        let hovered = response.hover_pos().filter(|at| frame.contains(*at));
        if let Some((at, place)) = hovered.and_then(|at| Some((at, place(at.x)?)))
            && !response.dragged()
        {
            call_out_ui(ui, response, curves, look, context, place);
            let line = Stroke::new(1.0, Palette::of(ui.visuals()).weak_text);
            ui.painter().vline(at.x, frame.y_range(), line);
        }
        if response.double_clicked() {
            self.axis = None;
            return;
        }
        if response.clicked()
            && !look.per_ipu
            && let Some(place) = response.interact_pointer_pos().and_then(|at| place(at.x))
        {
            let tile = curves.tile_at(place);
            let add = ui.input(|input| input.modifiers.shift || input.modifiers.command);
            pick(context, tile, add);
        }
        let mut moved = *axis;
        if response.dragged() {
            ui.ctx().set_cursor_icon(CursorIcon::Grabbing);
            moved = moved.panned(response.drag_delta().x);
        }
        if let Some(at) = hovered {
            let (delta, zoom) = ui.input(|input| (input.smooth_scroll_delta(), input.zoom_delta()));
            let factor = f64::from(zoom) * (f64::from(delta.y) * 0.006).exp();
            if factor != 1.0 {
                moved = moved.zoomed(factor, at.x - frame.left(), limits);
            }
            if delta.x != 0.0 {
                moved = moved.panned(delta.x);
            }
        }
        if moved != *axis {
            self.axis = Some(clamped(moved, limits));
        }
    }

    fn legend_ui(&self, ui: &mut Ui, curves: &Curves, look: Look) {
        let palette = Palette::of(ui.visuals());
        ui.spacing_mut().item_spacing.x = 6.0;
        egui::ScrollArea::horizontal().id_salt("legend").auto_shrink(false).show(ui, |ui| {
            ui.horizontal(|ui| {
                for curve in &curves.layers {
                    legend_ui(ui, palette.layer(curve.layer), layer_title(curve.layer, look));
                    ui.add_space(8.0);
                }
                if look.max_memory && curves.capacity > 0 {
                    legend_ui(ui, palette.max_memory, "Max memory");
                    let text = Bytes(curves.capacity).to_string();
                    ui.label(RichText::new(text).size(12.0).color(palette.weak_text));
                }
            });
        });
    }
}

fn layer_title(layer: Layer, look: Look) -> &'static str {
    if layer == Layer::Total { look.total } else { layer.title() }
}

/// Stays within the tiles, edge to edge.
fn clamped(axis: Axis, limits: Limits) -> Axis {
    let window = axis.window(limits.width);
    if window.length() >= limits.range.length() {
        return Axis::fitting_exactly(limits.range, limits.width);
    }
    axis.kept(limits)
}

/// Where the vertical axis ends: a little above the curve, or above the capacity if that is shown
/// and not much higher.
fn top_of(curves: &Curves, look: Look, window: CycleRange) -> f64 {
    let (from, to) = (window.start as usize, window.end as usize);
    let all = pieces(curves, curves.layers.len(), from, to, 2_000);
    let highest = all.iter().map(|piece| piece.max).max().unwrap_or(0).max(1);
    let wanted = if look.max_memory { highest.max(curves.capacity) } else { highest };
    wanted as f64 * 1.08
}

fn x_marks(input: GridInput, step: u64) -> Vec<GridMark> {
    let (from, to) = input.bounds;
    let first = (from.max(0.0) / step as f64).ceil() as u64;
    let mark = |index: u64| GridMark { value: (index * step) as f64, step_size: step as f64 };
    (first..).map(mark).take_while(|mark| mark.value <= to).take(400).collect()
}

/// Powers of two for bytes (8 KiB, 16 KiB, ...), round numbers for everything else.
fn y_marks(input: GridInput, unit: Unit) -> Vec<GridMark> {
    let (_, to) = input.bounds;
    let least = (to / 7.0).max(1.0);
    let step = match unit {
        Unit::Bytes => 2f64.powf(least.log2().ceil()),
        Unit::Count => tick_step(least, 1.0) as f64,
    };
    (0..16)
        .map(|index| GridMark { value: f64::from(index) * step, step_size: step })
        .take_while(|mark| mark.value <= to)
        .collect()
}

/// Two points per piece: its left and its right end.
fn steps(found: &[Piece], value: impl Fn(&Piece) -> u64) -> (Vec<f64>, Vec<f64>) {
    let xs = found.iter().flat_map(|piece| [piece.first as f64, piece.end as f64]).collect();
    let ys = found.iter().flat_map(|piece| [value(piece) as f64; 2]).collect();
    (xs, ys)
}

fn add_layers(
    plot: &mut PlotUi<'_>,
    curves: &Curves,
    palette: &Palette,
    look: Look,
    (from, to): (usize, usize),
    width: usize,
) {
    let mut below: Option<Vec<f64>> = None;
    for (index, curve) in curves.layers.iter().enumerate() {
        let found = pieces(curves, index + 1, from, to, width.max(1));
        let (xs, ys) = steps(&found, |piece| piece.max);
        let colour = palette.layer(curve.layer);
        let ground = below.take().unwrap_or_else(|| vec![0.0; ys.len()]);
        let single = matches!(curves.layers[..], [Curve { layer: Layer::Total, .. }]);
        let fill = if single { palette.memory_fill } else { mix(colour, palette.page, 0.25) };
        let title = layer_title(curve.layer, look);
        plot.add(FilledArea::new(title, &xs, &ground, &ys).fill_color(fill).allow_hover(false));
        let points: Vec<[f64; 2]> = xs.iter().zip(&ys).map(|(x, y)| [*x, *y]).collect();
        let line = if single { colour } else { mix(colour, palette.text, 0.15) };
        // Lines of dense steps would run together.
        let dense = to.saturating_sub(from) * 3 > width;
        let stroke = Stroke::new(if single && !dense { 1.5 } else { 1.0 }, line);
        plot.line(Line::new(title, points).stroke(stroke).allow_hover(false));
        below = Some(ys);
    }
}

fn add_selection(
    plot: &mut PlotUi<'_>,
    curves: &Curves,
    palette: &Palette,
    chosen: &[u32],
    look: Look,
) {
    if look.per_ipu {
        return;
    }
    for place in chosen.iter().filter_map(|tile| curves.place_of(*tile)) {
        let line = VLine::new("selected tile", place as f64 + 0.5);
        plot.vline(line.stroke(Stroke::new(1.5, palette.selection)).allow_hover(false));
    }
}

fn call_out_ui(
    _: &Ui,
    response: &Response,
    curves: &Curves,
    look: Look,
    context: &ViewContext<'_>,
    place: usize,
) {
    let per_ipu = context.opened.target.tiles_per_ipu.max(1);
    let title = if look.per_ipu {
        format!("IPU {place}")
    } else {
        let tile = curves.tile_at(place);
        match context.opened.target.ipus_per_replica {
            0 | 1 => format!("Tile {}", grouped(tile.into())),
            _ => format!("Tile {} (IPU {})", grouped(tile.into()), tile / per_ipu),
        }
    };
    response.clone().on_hover_ui_at_pointer(|ui| {
        let palette = Palette::of(ui.visuals());
        ui.label(crate::gui::fonts::strong(title));
        egui::Grid::new("call-out").num_columns(3).spacing(vec2(8.0, 3.0)).show(ui, |ui| {
            for curve in curves.layers.iter().rev() {
                let value = curve.values.get(place).copied().unwrap_or(0);
                if value == 0 && curves.layers.len() > 3 {
                    continue;
                }
                let (dot, _) = ui.allocate_exact_size(vec2(10.0, 10.0), Sense::hover());
                ui.painter().rect_filled(dot, 2.0, palette.layer(curve.layer));
                ui.label(layer_title(curve.layer, look));
                ui.label(curves.unit.exact(value));
                ui.end_row();
            }
            if curves.layers.len() > 1 {
                ui.label("");
                ui.label("Total");
                ui.label(curves.unit.exact(curves.total(place)));
                ui.end_row();
            }
        });
        let total = curves.total(place);
        if curves.capacity > 0 {
            let share = total as f64 / curves.capacity as f64;
            let over = total > curves.capacity;
            let text = format!("{} of {}", crate::units::percent(share), Bytes(curves.capacity));
            let colour = if over { palette.error } else { palette.weak_text };
            ui.label(RichText::new(text).color(colour));
        }
    });
}

/// All tiles as a grey shape.
fn silhouette(curves: &Curves, width: usize, height: usize, palette: &Palette) -> ColorImage {
    let height = height.max(1);
    let mut image = ColorImage::filled([width, height], palette.raised);
    let top = curves.max.max(1) as f64 * 1.06;
    let places = curves.places.max(1);
    let found = pieces(curves, curves.layers.len(), 0, places, width);
    let column = |place: usize| place * width / places;
    for piece in found {
        let (from, to) = (column(piece.first), column(piece.end).max(column(piece.first) + 1));
        let filled = ((piece.max as f64 / top) * height as f64).round() as usize;
        let lower = ((piece.min as f64 / top) * height as f64).round() as usize;
        for y in 0..filled.min(height) {
            // Where neighbours differ within a pixel, the difference is paler.
            let share = if y < lower { 0.0 } else { 0.5 };
            let colour = mix(palette.outline, palette.raised, share);
            let start = (height - 1 - y) * width;
            image.pixels[start + from.min(width)..start + to.min(width)].fill(colour);
        }
    }
    image
}
