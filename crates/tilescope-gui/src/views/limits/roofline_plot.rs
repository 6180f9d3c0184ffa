//! The roofline: operations as points below what engines and interfaces of an IPU allow.

use super::LimitsData;
use super::class_marker::legend_ui;
use super::roof_labels::label_roofs;
use crate::theme::{ThemePalette, fonts::strong, spacing};
use crate::widgets::log_plot::{decade_label, decade_marks, log_position};
use crate::widgets::plot_axis::{titled_x_axis, y_axis_for};
use crate::widgets::plot_marker::{OUTLINE, RADIUS, marker_shape};
use crate::widgets::{focus_ui, node_ui};
use egui::accesskit::Role;
use egui::{EventFilter, Frame, Key, Margin, Pos2, Rect, Response, RichText, Ui, WidgetInfo, vec2};
use egui_plot::{
    AxisHints, GridInput, GridMark, Line, MarkerShape, Plot, PlotPoint, PlotTransform, Points,
    VLine,
};
use std::collections::BTreeSet;
use tilescope_analysis::figures::Marker;
use tilescope_analysis::limits::{CycleClass, LimitsRow, Machine, Roof, RoofKind, RooflinePoint};
use tilescope_report::MachineInterface;
use tilescope_report::units::{IpuId, fine_percent, grouped, with_prefix};

/// How near the pointer has to come to a point.
const REACH: f32 = 14.0;
/// Points that readers of the accessibility tree find on the plot; all of them are in the table.
const MAX_NODES: usize = 200;
/// Decades between the plot's edge and what is in it.
const EDGE: f64 = 0.5;
/// Share of the width that points have which move nothing.
const STRIP: f64 = 0.06;
/// Most points that words at roofs keep clear of: those that waste most.
const MOST_CLEAR: usize = 400;

/// An operation where it is drawn: logarithms of FLOPs per byte and FLOPs per second or cycle.
struct PlottedPoint {
    at: [f64; 2],
    row: usize,
    class: CycleClass,
}

/// What is drawn, in the units of the axes.
pub(super) struct RooflineScene<'a> {
    found: &'a LimitsData,
    /// Cycles per second; 1 where the clock is not known, so that figures are per cycle.
    clock: f64,
    points: Vec<PlottedPoint>,
    x: (f64, f64),
    y: (f64, f64),
    /// Where points end that move something, if others move nothing: those stand in a strip beside.
    strip: Option<f64>,
}

impl<'a> RooflineScene<'a> {
    fn new(found: &'a LimitsData) -> Self {
        let clock = found.limits.machine.clock.map_or(1.0, |clock| clock.0 as f64);
        let (points, unit) = (Vec::new(), (0.0, 1.0));
        let mut scene = Self { found, clock, points, x: unit, y: unit, strip: None };
        scene.find_bounds();
        let nothing_moved = scene.nothing_moved().unwrap_or(scene.x.1);
        let point = |point: &RooflinePoint| {
            let row = found.limits.rows.get(point.row)?;
            let x = match point.flops_per_byte.is_finite() {
                true => log_position(point.flops_per_byte),
                false => nothing_moved,
            };
            let y = log_position(point.flops_per_cycle * clock);
            let class = row.limits.bound()?;
            Some(PlottedPoint { at: [x, y], row: point.row, class })
        };
        scene.points = found.roofline.points.iter().filter_map(point).collect();
        scene
    }

    /// Everything that is a point, the highest roof, and where the roofs meet that points are below.
    fn find_bounds(&mut self) {
        let (points, roofs) = (&self.found.roofline.points, &self.found.roofline.roofs);
        let top = roofs.iter().filter(|roof| matches!(roof.kind, RoofKind::Engine(_)));
        let top = top.map(|roof| roof.per_cycle).fold(1.0, f64::max);
        let ridges = roofs.iter().filter_map(|roof| match roof.kind {
            RoofKind::Interface(own) if self.is_used(own) => Some(top / roof.per_cycle),
            _ => None,
        });
        let intensities = points.iter().map(|point| point.flops_per_byte);
        let xs: Vec<f64> = intensities.filter(|x| x.is_finite()).chain(ridges).collect();
        let bounds = |values: &mut dyn Iterator<Item = f64>| {
            let found = values.map(log_position).fold(None, |found: Option<(f64, f64)>, value| {
                Some(found.map_or((value, value), |(low, high)| (low.min(value), high.max(value))))
            });
            found.map_or((0.0, 1.0), |(low, high)| (low - EDGE, high + EDGE))
        };
        self.x = bounds(&mut xs.into_iter());
        if points.iter().any(|point| point.flops_per_byte.is_infinite()) {
            self.strip = Some(self.x.1);
            self.x.1 += (self.x.1 - self.x.0) * STRIP;
        }
        let heights = points.iter().map(|point| point.flops_per_cycle * self.clock);
        self.y = bounds(&mut heights.chain([top * self.clock]));
    }

    /// Whether a point lies below the roof of an interface; that of the exchange is always shown.
    fn is_used(&self, interface: MachineInterface) -> bool {
        let mut points = self.found.roofline.points.iter();
        interface == MachineInterface::TileSend
            || points.any(|point| point.interface == Some(interface))
    }

    /// Where points stand that move nothing.
    fn nothing_moved(&self) -> Option<f64> {
        self.strip.map(|left| (left + self.x.1) / 2.0)
    }

    /// Every roof.
    pub(super) fn roofs(&self) -> &'a [Roof] {
        &self.found.roofline.roofs
    }

    fn unit(&self) -> &'static str {
        if self.found.limits.machine.clock.is_some() { "FLOP/s" } else { "FLOPs per cycle" }
    }

    /// Words at a roof.
    pub(super) fn roof_words(&self, roof: &Roof) -> String {
        let per_second = self.found.limits.machine.clock.is_some();
        let unit = match (roof.kind, per_second) {
            (RoofKind::Engine(_), _) => self.unit(),
            (RoofKind::Interface(_), true) => "B/s",
            (RoofKind::Interface(_), false) => "B per cycle",
        };
        format!("{} {}", roof.title, with_prefix(roof.per_cycle * self.clock, unit))
    }

    /// Height of the highest engine.
    fn top(&self) -> f64 {
        let engines = self.found.roofline.roofs.iter();
        let engines = engines.filter(|roof| matches!(roof.kind, RoofKind::Engine(_)));
        log_position(engines.map(|roof| roof.per_cycle).fold(1.0, f64::max) * self.clock)
    }

    /// A roof from the left edge, or from the bottom, to where the highest engine ends it.
    fn roof_line(&self, roof: &Roof, (left, right): (f64, f64)) -> [[f64; 2]; 2] {
        let height = |x: f64| log_position(roof.flops_per_cycle(10f64.powf(x)) * self.clock);
        match roof.kind {
            RoofKind::Engine(_) => [[left, height(left)], [right, height(right)]],
            RoofKind::Interface(_) => {
                let ridge = self.top() - height(0.0);
                [[left.min(ridge), height(left.min(ridge))], [ridge, self.top()]]
            }
        }
    }

    /// The same on the screen, the lower end first.
    pub(super) fn roof_on_screen(&self, roof: &Roof, transform: &PlotTransform) -> [Pos2; 2] {
        let bounds = transform.bounds();
        let ends = self.roof_line(roof, (bounds.min()[0], bounds.max()[0]));
        ends.map(|at| screen(transform, at))
    }
}

/// Shows the roofline; the row of the point that was clicked, or that a key has led to.
pub(super) fn roofline_ui(
    ui: &mut Ui,
    found: &LimitsData,
    chosen: Option<usize>,
    (ipu, reset): (Option<IpuId>, bool),
) -> Option<usize> {
    let scene = RooflineScene::new(found);
    ui.add_space(spacing::XS);
    ui.horizontal(|ui| {
        ui.add_space(spacing::L);
        legend_ui(ui, &counted(&scene.points));
    });
    let palette = ThemePalette::for_ui(ui);
    let axes = |axis: AxisHints<'static>| axis.tick_label_color(palette.weak_text);
    let nothing_moved = scene.nothing_moved();
    let x_label = match nothing_moved {
        Some(_) => "FLOPs per byte (∞: no bytes moved)",
        None => "FLOPs per byte",
    };
    let x_axis = axes(titled_x_axis(ui, x_label).formatter(move |mark, range| {
        let room = (range.end() - range.start()) * STRIP;
        match nothing_moved {
            Some(place) if mark.value == place => "∞".to_owned(),
            Some(place) if mark.value + room > place => String::new(),
            _ => decade_label(mark),
        }
    }));
    let strip = scene.strip;
    let x_marks = move |input: GridInput| {
        let marks = decade_marks(input).into_iter();
        let marks = marks.filter(|mark| strip.is_none_or(|left| mark.value < left));
        let beside = nothing_moved.map(|value| GridMark { value, step_size: 1.0 });
        marks.chain(beside).collect()
    };
    let decades = scene.y.0.ceil() as i32..=scene.y.1.floor() as i32;
    let rates =
        decades.map(|decade| decade_label(GridMark { value: f64::from(decade), step_size: 1.0 }));
    let y_label = format!("{} of an IPU", scene.unit());
    let y_axis = axes(y_axis_for(ui, &y_label, rates).formatter(|mark, _| decade_label(mark)));
    let mut plot = Plot::new(("roofline", ipu))
        .custom_x_axes(vec![x_axis])
        .custom_y_axes(vec![y_axis])
        .x_grid_spacer(x_marks)
        .y_grid_spacer(decade_marks)
        .default_x_bounds(scene.x.0, scene.x.1)
        .default_y_bounds(scene.y.0, scene.y.1)
        .grid_color(palette.rule)
        .show_crosshair(false)
        .show_x(false)
        .show_y(false)
        .allow_boxed_zoom(false)
        .allow_axis_zoom_drag(false)
        .label_formatter(|_| None);
    if reset {
        plot = plot.reset();
    }
    let margin = Frame::new().inner_margin(Margin { left: spacing::S as i8, ..Margin::ZERO });
    let mut clear = Vec::new();
    let shown = margin
        .show(ui, |ui| {
            plot.show(ui, |plot| {
                let bounds = plot.plot_bounds();
                let frame = *plot.transform().frame();
                if let Some(left) = scene.strip {
                    plot.vline(
                        VLine::new("", left).color(palette.outline).width(1.0).allow_hover(false),
                    );
                }
                for roof in scene.roofs() {
                    let strong = matches!(roof.kind, RoofKind::Engine(_))
                        || matches!(roof.kind, RoofKind::Interface(own) if scene.is_used(own));
                    let colour = if strong { palette.weak_text } else { palette.outline };
                    let ends = scene.roof_line(roof, (bounds.min()[0], bounds.max()[0]));
                    let width = if strong { 1.5 } else { 1.0 };
                    let line =
                        Line::new("", ends.to_vec()).color(colour).width(width).allow_hover(false);
                    plot.line(line);
                }
                // A cell is a pixel: more points on it could not be told apart.
                let pixel = [
                    bounds.width() / f64::from(frame.width().max(1.0)),
                    bounds.height() / f64::from(frame.height().max(1.0)),
                ];
                let most = 2 * frame.width().max(1.0) as usize;
                let drawn = thinned(&scene.points, pixel, most);
                clear.extend(drawn.iter().take(MOST_CLEAR).map(|place| scene.points[*place].at));
                for class in CycleClass::ALL {
                    let own = drawn.iter().map(|place| &scene.points[*place]);
                    let own: Vec<[f64; 2]> =
                        own.filter(|point| point.class == class).map(|point| point.at).collect();
                    let layers = [
                        (RADIUS + OUTLINE, palette.weak_text),
                        (RADIUS, palette.cycle_class(class)),
                    ];
                    for (radius, colour) in layers {
                        let points = Points::new("", own.clone())
                            .shape(marker_shape(Marker::of_class(class)));
                        plot.points(points.radius(radius).color(colour).allow_hover(false));
                    }
                }
                if let Some(point) = scene.points.iter().find(|point| Some(point.row) == chosen) {
                    plot.points(
                        Points::new("", vec![point.at])
                            .shape(MarkerShape::Circle)
                            .filled(false)
                            .radius(RADIUS + 4.0)
                            .color(palette.selection)
                            .allow_hover(false),
                    );
                }
            })
        })
        .inner;
    let clear: Vec<Pos2> = clear.into_iter().map(|at| screen(&shown.transform, at)).collect();
    label_roofs(ui, &scene, &shown.transform, &clear);
    describe_ui(ui, &scene, &shown.response, &shown.transform);
    let rows = &found.limits.rows;
    let pointed = shown.response.hover_pos().and_then(|at| nearest(&scene, &shown.transform, at));
    if let Some(row) = pointed.and_then(|row| rows.get(row)) {
        let near =
            shown.response.hover_pos().map_or(0, |at| count_near(&scene, &shown.transform, at));
        hover_ui(&shown.response, row, &found.limits.machine, near);
    }
    let clicked = pointed.filter(|_| shown.response.clicked());
    clicked.or_else(|| stepped(&shown.response, &scene, chosen))
}

/// Points of each class that has any.
fn counted(points: &[PlottedPoint]) -> Vec<(CycleClass, usize)> {
    let count = |class| points.iter().filter(|point| point.class == class).count();
    let counts = CycleClass::ALL.into_iter().map(|class| (class, count(class)));
    counts.filter(|(_, count)| *count > 0).collect()
}

/// The first points of each cell; of larger cells, where they are too many. The order of points is
/// that of what they waste, so that the ones which waste most are drawn.
fn thinned(points: &[PlottedPoint], mut cell: [f64; 2], most: usize) -> Vec<usize> {
    loop {
        let mut taken = BTreeSet::new();
        let place = |point: &PlottedPoint| {
            let [x, y] = [0, 1].map(|axis| (point.at[axis] / cell[axis].max(1e-9)).floor() as i64);
            (x, y, point.class)
        };
        let drawn: Vec<usize> =
            (0..points.len()).filter(|at| taken.insert(place(&points[*at]))).collect();
        if drawn.len() <= most {
            return drawn;
        }
        cell = cell.map(|side| side.max(1e-9) * 2.0);
    }
}

fn screen(transform: &PlotTransform, at: [f64; 2]) -> Pos2 {
    transform.position_from_point(&PlotPoint::new(at[0], at[1]))
}

/// The row of the point next to a place on the screen.
fn nearest(scene: &RooflineScene, transform: &PlotTransform, at: Pos2) -> Option<usize> {
    let distances =
        scene.points.iter().map(|point| (screen(transform, point.at).distance(at), point));
    let near = distances.filter(|(distance, _)| *distance <= REACH);
    near.min_by(|one, other| one.0.total_cmp(&other.0)).map(|(_, point)| point.row)
}

/// Points that lie as one at the place of the nearest one.
fn count_near(scene: &RooflineScene, transform: &PlotTransform, at: Pos2) -> usize {
    let Some(row) = nearest(scene, transform, at) else { return 0 };
    let Some(own) = scene.points.iter().find(|point| point.row == row) else { return 0 };
    let place = screen(transform, own.at);
    let same = |point: &&PlottedPoint| screen(transform, point.at).distance(place) < 1.0;
    scene.points.iter().filter(same).count()
}

/// The row that an arrow key leads to, from the left to the right.
fn stepped(response: &Response, scene: &RooflineScene, chosen: Option<usize>) -> Option<usize> {
    if !response.has_focus() {
        return None;
    }
    let filter =
        EventFilter { vertical_arrows: true, horizontal_arrows: true, ..EventFilter::default() };
    response.ctx.memory_mut(|memory| memory.set_focus_lock_filter(response.id, filter));
    let pressed = |keys: [Key; 2]| {
        response.ctx.input(|input| keys.into_iter().any(|key| input.key_pressed(key)))
    };
    let forward = pressed([Key::ArrowRight, Key::ArrowUp]);
    let back = pressed([Key::ArrowLeft, Key::ArrowDown]);
    if forward == back {
        return None;
    }
    let mut order: Vec<&PlottedPoint> = scene.points.iter().collect();
    order.sort_by(|one, other| {
        let by_place = one.at[0].total_cmp(&other.at[0]).then(one.at[1].total_cmp(&other.at[1]));
        by_place.then(one.row.cmp(&other.row))
    });
    let current = order.iter().position(|point| Some(point.row) == chosen);
    let next = match current {
        None => 0,
        Some(at) if forward => at + 1,
        Some(at) => at.checked_sub(1)?,
    };
    order.get(next).map(|point| point.row)
}

/// The plot for readers of the accessibility tree, and the outline of the focus.
fn describe_ui(ui: &Ui, scene: &RooflineScene, response: &Response, transform: &PlotTransform) {
    response.widget_info(|| WidgetInfo::labeled(Role::Canvas, true, "Roofline"));
    let value = format!(
        "{} operations as points, {} roofs; the table Roofline has them all",
        scene.points.len(),
        scene.found.roofline.roofs.len(),
    );
    ui.ctx().accesskit_node_builder(response.id, |node| node.set_value(value));
    focus_ui(ui, response, *transform.frame());
    for point in scene.points.iter().take(MAX_NODES) {
        let Some(row) = scene.found.limits.rows.get(point.row) else { continue };
        let rect = Rect::from_center_size(screen(transform, point.at), vec2(RADIUS, RADIUS) * 2.0);
        let id = response.id.with(("point", point.row));
        node_ui(ui, id, rect, Role::GraphicsObject, || {
            let machine = &scene.found.limits.machine;
            (row.name.clone(), figures(row, machine).join(", "))
        });
    }
}

/// Figures of an operation, a few words each.
fn figures(row: &LimitsRow, machine: &Machine) -> Vec<String> {
    let limits = &row.limits;
    let mut lines = vec![format!("{} cycles", grouped(limits.total().0))];
    if let Some(wasted) = limits.wasted() {
        lines.push(format!("{} of them wasted", grouped(wasted.0)));
    }
    if let Some(share) = limits.of_peak {
        lines.push(format!("{} of the peak of its engine", fine_percent(share)));
    }
    if let Some(rate) = limits.flops_per_cycle() {
        let (rate, unit) = match machine.clock {
            Some(clock) => (rate * clock.0 as f64, "FLOP/s"),
            None => (rate, "FLOPs per cycle"),
        };
        lines.push(with_prefix(rate, unit));
    }
    if let Some(class) = limits.bound() {
        lines.push(format!("most of it {}", class.title().to_lowercase()));
    }
    lines
}

fn hover_ui(response: &Response, row: &LimitsRow, machine: &Machine, same: usize) {
    response.clone().on_hover_ui_at_pointer(|ui| {
        let palette = ThemePalette::for_ui(ui);
        ui.label(strong(row.name.chars().take(200).collect::<String>()));
        let weak = |text: String| RichText::new(text).color(palette.weak_text);
        let on = row.ipu.map_or_else(String::new, |ipu| format!(" on IPU {ipu}"));
        ui.label(weak(format!("{}{on}", row.kind)));
        figures(row, machine).into_iter().for_each(|line| drop(ui.label(line)));
        if same > 1 {
            ui.label(weak(format!("and {} more operations here", grouped(same as u64 - 1))));
        }
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn points_on_one_pixel_are_drawn_once_and_never_too_many() {
        let point =
            |x: f64, row: usize| PlottedPoint { at: [x, 0.0], row, class: CycleClass::Compute };
        let points: Vec<PlottedPoint> = (0..1000).map(|at| point(at as f64 / 10.0, at)).collect();
        assert_eq!(thinned(&points, [1.0, 1.0], 1000).len(), 100);
        let few = thinned(&points, [1.0, 1.0], 30);
        assert!(few.len() <= 30 && few[0] == 0, "{few:?}");
    }
}
