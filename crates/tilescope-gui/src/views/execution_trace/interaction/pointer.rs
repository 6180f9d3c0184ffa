//! The pointer on the lanes: it hovers over bars, selects them, pans, zooms and draws ranges.

use crate::model::command::SelectedStep;
use crate::model::preferences::TraceDragMode;
use crate::theme::ThemePalette;
use crate::views::cycle_axis::axis_range_of_cycles;
use crate::views::execution_trace::events::TraceEvent;
use crate::views::execution_trace::layers::lanes::{LaneHit, LaneHitTarget};
use crate::views::execution_trace::layers::links::{self, LinkHit};
use crate::views::execution_trace::layers::marks::{self, MarkHit, SelectedMark, ShownMark};
use crate::views::execution_trace::layers::path::{PathHit, PathHitTarget};
use crate::views::execution_trace::layers::user_marks::{cycles_between, drawn_range};
use crate::views::execution_trace::layout::TraceLayout;
use crate::views::execution_trace::loaded_trace::LoadedTrace;
use crate::views::execution_trace::scene::scene_window;
use crate::views::execution_trace::selected_bar::{self, SelectedBar};
use crate::views::execution_trace::share_graph::column_tooltip_ui;
use crate::widgets::pan_zoom_axis::{AxisLimits, PanZoomAxis};
use egui::{CursorIcon, PointerButton, Rect, Response, RichText, Stroke, StrokeKind, Ui, Vec2};
use tilescope_analysis::critical_path::StepOnPath;
use tilescope_analysis::trace::{LaneItem, LaneItemKind};
use tilescope_report::units::{CycleRange, grouped};

/// The zoom per point of the wheel, as a power of e.
const WHEEL_ZOOM: f64 = 0.006;

/// The objects under the pointer in a frame.
pub(crate) struct LanePointerInput<'a> {
    pub layout: &'a TraceLayout<'a>,
    pub limits: AxisLimits,
    /// The response of the lanes.
    pub response: &'a Response,
    /// The bar or column below the pointer, if any.
    pub hit: Option<LaneHit<'a>>,
    /// The part of the critical path lane below the pointer.
    pub path: Option<PathHit<'a>>,
    /// The critical path data of the step below the pointer, once it is known.
    pub about: Option<StepOnPath>,
    /// The column below the pointer in a strip of links, and the capacity of the links.
    pub links: Option<(LinkHit, f64)>,
    /// The mark below the pointer, if any.
    pub mark: Option<MarkHit<'a>>,
    /// The stage that covers all of the bar below the pointer, on the same tiles.
    pub stage: Option<&'a ShownMark>,
    /// The selected mark, if any.
    pub chosen_mark: Option<SelectedMark>,
    /// The cycles of the selection.
    pub chosen: Option<CycleRange>,
    pub prepared: &'a LoadedTrace,
    pub drag_mode: TraceDragMode,
}

/// The state of the pointer on the lanes.
#[derive(Default)]
pub(crate) struct LanePointer {
    /// The first cycle of a range being drawn.
    range_from: Option<i64>,
}

impl LanePointer {
    /// The range being drawn, if any.
    pub(crate) fn drawn_range(
        &self,
        ui: &Ui,
        layout: &TraceLayout<'_>,
    ) -> Option<(Rect, CycleRange)> {
        let pointer = ui.input(|input| input.pointer.latest_pos())?;
        self.range_from.map(|from| drawn_range(layout, from, pointer.x))
    }

    /// The events of the pointer in this frame.
    pub(crate) fn events(&mut self, ui: &Ui, input: &LanePointerInput<'_>) -> Vec<TraceEvent> {
        let mut events = Vec::new();
        // egui reports the second click as a click too: with Shift it would deselect the step.
        if input.response.double_clicked() {
            events.extend(double_click(input));
        } else if input.response.clicked() && !ui.input(|input| input.pointer.primary_clicked()) {
            // Enter, because the lanes have the focus.
            events.extend(input.chosen.map(TraceEvent::ZoomToOrOut));
        } else if input.response.clicked() {
            events.extend(click(ui, input));
            // A stage works on a micro-batch: show the rest of its work too.
            let stage = input.mark.and_then(|mark| mark.bar.shown.block.micro_batch());
            events.extend(stage.map(|number| TraceEvent::FollowMicroBatch(Some(number))));
        }
        self.drag(ui, input, &mut events);
        wheel(ui, input, &mut events);
        events
    }

    fn drag(&mut self, ui: &Ui, input: &LanePointerInput<'_>, events: &mut Vec<TraceEvent>) {
        let LanePointerInput { layout, limits, response, drag_mode, .. } = *input;
        let selects = (drag_mode == TraceDragMode::Selects) != ui.input(|i| i.modifiers.shift);
        if response.drag_started_by(PointerButton::Primary)
            && selects
            && let Some(start) = ui.input(|input| input.pointer.press_origin())
        {
            // The position of the press: egui distinguishes a drag from a click only some points
            // later. It is kept as a cycle, since the wheel may zoom while the range is drawn.
            self.range_from = Some(layout.cycle_at(start.x));
        }
        if let Some(from) = self.range_from {
            ui.ctx().set_cursor_icon(CursorIcon::Crosshair);
            events.extend(self.drawn(input, from));
        } else if response.dragged() {
            let delta = response.drag_delta();
            ui.ctx().set_cursor_icon(CursorIcon::Grabbing);
            events.push(TraceEvent::ShowAxis(layout.axis.panned(delta.x).clamped_to(limits)));
            events.push(TraceEvent::ScrollBy(-f64::from(delta.y)));
        }
    }

    /// Returns the event that shows the range drawn from a cycle, once the button is released.
    fn drawn(&mut self, input: &LanePointerInput<'_>, from: i64) -> Option<TraceEvent> {
        let LanePointerInput { layout, limits, response, .. } = *input;
        if response.dragged() && !response.drag_stopped() {
            return None;
        }
        self.range_from = None;
        let end = response.interact_pointer_pos().filter(|_| response.drag_stopped())?;
        let range = cycles_between(from, layout.cycle_at(end.x));
        let axis = PanZoomAxis::fitting_exactly(axis_range_of_cycles(range), limits.width);
        if !range.is_empty() { Some(TraceEvent::ShowAxis(axis.clamped_to(limits))) } else { None }
    }
}

/// Handles the wheel: it zooms and pans; with Alt it scrolls.
fn wheel(ui: &Ui, input: &LanePointerInput<'_>, events: &mut Vec<TraceEvent>) {
    let LanePointerInput { layout, limits, response, .. } = *input;
    let Some(at) = response.hover_pos() else { return };
    let (delta, zoom, alt): (Vec2, f32, bool) =
        ui.input(|i| (i.smooth_scroll_delta(), i.zoom_delta(), i.modifiers.alt));
    if alt {
        events.push(TraceEvent::ScrollBy(-f64::from(delta.y + delta.x)));
        return;
    }
    // A power: turning the wheel back restores the zoom, in however many frames egui smooths the
    // turn.
    let factor = f64::from(zoom) * (f64::from(delta.y) * WHEEL_ZOOM).exp();
    let mut moved = layout.axis;
    if factor != 1.0 {
        moved = moved.zoomed(factor, at.x - layout.regions.lanes.left(), limits);
    }
    if delta.x != 0.0 {
        moved = moved.panned(delta.x);
    }
    if moved != layout.axis {
        events.push(TraceEvent::ShowAxis(moved.clamped_to(limits)));
    }
}

/// A double click zooms to the clicked object.
fn double_click(input: &LanePointerInput<'_>) -> Option<TraceEvent> {
    // The first click on a block of marks already zoomed to it: the object below the pointer is now
    // a different one.
    let went = input.chosen_mark.filter(|mark| mark.count > 1);
    let on_path = input.path.as_ref().map(|hit| hit.range);
    let range = match (&input.mark, input.hit.as_ref().map(|hit| hit.range).or(on_path)) {
        (Some(mark), _) => went.map_or(mark.bar.shown.block.range, |block| block.range),
        (None, Some(range)) => range,
        (None, None) => return None,
    };
    Some(TraceEvent::ZoomTo(range))
}

/// A click selects the object below the pointer; with Shift or Ctrl it adds to the selection. A
/// column of shares cannot be selected.
fn click(ui: &Ui, input: &LanePointerInput<'_>) -> Option<TraceEvent> {
    if let Some(mark) = input.mark.map(|mark| mark.selected()) {
        return Some(match mark.count {
            1 => TraceEvent::ChooseMark(mark),
            // Zooming in shows the marks of the block.
            _ => TraceEvent::GoToMark(mark),
        });
    }
    let add = ui.input(|input| input.modifiers.shift || input.modifiers.command);
    if let Some(hit) = &input.path {
        // A bar of several steps, possibly of several lanes, cannot be selected.
        let PathHitTarget::Bar(item, Some((at, sub_lane))) = hit.target else { return None };
        let position = item.first_position();
        let step = item.step()?;
        let step = SelectedStep { at, sub_lane, position, step };
        return Some(TraceEvent::ChooseStep { step, add });
    }
    let Some(hit) = &input.hit else { return Some(TraceEvent::ChooseNothing) };
    let LaneHitTarget::Bar(item) = hit.target else { return None };
    let at = hit.at;
    let sub_lane = hit.sub_lane;
    Some(match item.step() {
        Some(step) => {
            let position = item.first_position();
            TraceEvent::ChooseStep { step: SelectedStep { at, sub_lane, position, step }, add }
        }
        None => {
            // A bar of several steps has no number by which it could be found again, so its text is
            // stored.
            let window = scene_window(input.layout.axis, input.limits.width);
            let lane = (at, sub_lane);
            let bar = SelectedBar::from_item(item, input.prepared, lane, window, input.stage);
            TraceEvent::ChooseBar(bar)
        }
    })
}

/// Outlines the bar or column under the pointer and describes it.
pub(crate) fn hover_ui(ui: &Ui, input: &LanePointerInput<'_>) {
    if let Some(mark) = input.mark.filter(|_| !input.response.dragged()) {
        return marks::hover_ui(ui, input.layout, input.response, &mark);
    }
    if let Some(hit) = input.path.as_ref().filter(|_| !input.response.dragged()) {
        return path_hover_ui(ui, input, hit);
    }
    if let Some((hit, limit)) = input.links.as_ref().filter(|_| !input.response.dragged()) {
        input.response.clone().on_hover_ui_at_pointer(|ui| {
            ui.set_max_width(420.0);
            links::column_tooltip_ui(ui, hit.column, hit.range, *limit);
        });
        return;
    }
    let Some(hit) = input.hit.as_ref().filter(|_| !input.response.dragged()) else { return };
    let stroke = Stroke::new(1.0, ThemePalette::for_ui(ui).text);
    let painter = ui.painter_at(input.layout.regions.lanes);
    painter.rect_stroke(hit.rect, 0.0, stroke, StrokeKind::Outside);
    input.response.clone().on_hover_ui_at_pointer(|ui| {
        ui.set_max_width(420.0);
        match hit.target {
            LaneHitTarget::Bar(item) => {
                bar_tooltip_ui(ui, item, input.prepared);
                if input.prepared.classes.differ() {
                    let words = RichText::new(input.prepared.ipu_words(hit.at));
                    ui.label(words.weak());
                }
                if let Some(stage) = input.stage {
                    let words = format!("{}, {}", stage.words, marks::micro_batch_words(stage));
                    ui.weak(words);
                }
                slack_ui(ui, input.about);
            }
            LaneHitTarget::Column(column) => column_tooltip_ui(ui, column, hit.range),
        }
    });
}

/// Outlines and describes the part of the critical path under the pointer.
fn path_hover_ui(ui: &Ui, input: &LanePointerInput<'_>, hit: &PathHit<'_>) {
    let stroke = Stroke::new(1.0, ThemePalette::for_ui(ui).text);
    let painter = ui.painter_at(input.layout.regions.path);
    painter.rect_stroke(hit.rect, 0.0, stroke, StrokeKind::Inside);
    input.response.clone().on_hover_ui_at_pointer(|ui| {
        ui.set_max_width(420.0);
        match hit.target {
            PathHitTarget::Bar(item, lane) => {
                bar_tooltip_ui(ui, item, input.prepared);
                let lane = match lane {
                    Some((at, sub_lane)) => {
                        let tiles = if sub_lane > 0 { "the I/O tiles of " } else { "" };
                        format!("Critical path on {tiles}{}", input.prepared.ipu_words(at))
                    }
                    None => "Critical path on several IPUs".to_owned(),
                };
                ui.weak(lane);
            }
            PathHitTarget::Column(column) => column_tooltip_ui(ui, column, hit.range),
        }
    });
}

/// The slack of a step: the delay that would not lengthen the run.
fn slack_ui(ui: &mut Ui, about: Option<StepOnPath>) {
    let Some(about) = about else { return };
    let words = match (about.is_on_path, about.slack) {
        (true, _) => "On the critical path".to_owned(),
        (false, Some(slack)) => format!("Slack {slack} cycles"),
        (false, None) => return,
    };
    ui.weak(words);
}

fn bar_tooltip_ui(ui: &mut Ui, item: &LaneItem, prepared: &LoadedTrace) {
    let title: String = selected_bar::title(item, &prepared.labels).chars().take(240).collect();
    ui.label(crate::theme::fonts::strong(title));
    let length = item.range.length();
    let mut text = format!("{length} cycles");
    if let Some(balance) = item.tile_balance().filter(|_| prepared.balance) {
        text.push_str(&format!(", tile balance {}", tilescope_report::units::percent(balance)));
    }
    if item.steps() > 1 && !matches!(item.kind, LaneItemKind::Bucket(..)) {
        text.push_str(&format!(", {} steps", grouped(item.steps())));
    }
    ui.weak(text);
}
