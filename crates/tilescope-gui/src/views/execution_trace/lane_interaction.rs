//! Pointer interaction on the lanes.

use super::lane_layout::{HIT_TOLERANCE, IpuLaneLayout, IpuLanesOnScreen, TraceViewLayout};
use super::scene::LoadedTrace;
use super::selected_bar::{self, SelectedBar};
use super::{ExecutionTraceView, TraceDetailsTab, scene_window, zoomed_to};
use crate::model::command::{AppCommand, SelectedStep};
use crate::model::preferences::TraceDragMode;
use crate::theme::{LIGHT, ThemePalette};
use crate::views::ViewContext;
use crate::views::cycle_axis::axis_range_of_cycles;
use crate::widgets::background_query::Versioned;
use crate::widgets::pan_zoom_axis::{AxisLimits, PanZoomAxis};
use egui::{CursorIcon, PointerButton, Pos2, Rect, Response, RichText, Stroke, StrokeKind, Ui};
use tilescope_analysis::trace::{LaneItem, LaneItemKind, LaneItemList};
use tilescope_report::units::{CycleRange, Cycles, grouped};

/// The bar or lane under the pointer.
struct LaneHit<'a> {
    ipu: u32,
    lane: &'a LaneItemList,
    item: &'a LaneItem,
    rect: Rect,
}

/// The result of a click.
enum LaneClickTarget {
    Step(SelectedStep),
    Bar(SelectedBar),
}

impl ExecutionTraceView {
    #[expect(clippy::too_many_arguments, reason = "a frame's worth of places")]
    pub(super) fn pointer_ui(
        &mut self,
        ui: &Ui,
        context: &ViewContext<'_>,
        prepared: &Versioned<LoadedTrace>,
        blocks: &[IpuLaneLayout<'_>],
        places: &TraceViewLayout,
        limits: AxisLimits,
        response: &Response,
    ) {
        let Some(axis) = self.axis else { return };
        let hit = response.hover_pos().and_then(|at| self.hit(at, blocks, places, axis));
        if let Some(hit) = &hit
            && !response.dragged()
        {
            let palette = ThemePalette::for_ui(ui);
            let stroke = Stroke::new(1.0, palette.text);
            ui.painter_at(places.lanes).rect_stroke(hit.rect, 0.0, stroke, StrokeKind::Outside);
            tooltip_ui(response, hit, prepared);
        }
        if response.double_clicked() {
            if let Some(hit) = &hit {
                self.axis = Some(zoomed_to(hit.item.range, limits));
            }
        } else if response.clicked() {
            let window = scene_window(axis, limits.width);
            let chosen = hit.map(|hit| choose(&hit, prepared, window));
            let add = ui.input(|input| input.modifiers.shift || input.modifiers.command);
            self.choose(context, chosen, add);
        }
        self.drag(ui, places, axis, limits, response);
        self.wheel(ui, places, axis, limits, response);
    }

    fn choose(&mut self, context: &ViewContext<'_>, chosen: Option<LaneClickTarget>, add: bool) {
        self.bar = None;
        match chosen {
            Some(LaneClickTarget::Step(step)) => self.select_step(context, step, add),
            Some(LaneClickTarget::Bar(bar)) => {
                self.tab = TraceDetailsTab::Details;
                self.bar = Some(bar);
                self.also.clear();
                self.seen_step = None;
                context.commands.push(AppCommand::SelectStep(None));
            }
            None => {
                self.also.clear();
                context.commands.push(AppCommand::SelectStep(None));
            }
        }
    }

    fn drag(
        &mut self,
        ui: &Ui,
        places: &TraceViewLayout,
        axis: PanZoomAxis,
        limits: AxisLimits,
        response: &Response,
    ) {
        let selects =
            (self.drag == TraceDragMode::Selects) != ui.input(|input| input.modifiers.shift);
        if response.drag_started_by(PointerButton::Primary)
            && selects
            && let Some(start) = ui.input(|input| input.pointer.press_origin())
        {
            self.range_from = Some(axis.position_from_x(start.x - places.lanes.left()));
        }
        if let Some(from) = self.range_from {
            ui.ctx().set_cursor_icon(CursorIcon::Crosshair);
            if response.drag_stopped()
                && let Some(end) = response.interact_pointer_pos()
            {
                let to = axis.position_from_x(end.x - places.lanes.left());
                let (start, end) = (from.min(to).max(0) as u64, from.max(to).max(0) as u64);
                self.range_from = None;
                if end > start {
                    let range = axis_range_of_cycles(CycleRange::new(Cycles(start), Cycles(end)));
                    self.axis =
                        Some(PanZoomAxis::fitting_exactly(range, limits.width).clamped_to(limits));
                }
            } else if !response.dragged() {
                self.range_from = None;
            }
        } else if response.dragged() {
            let delta = response.drag_delta();
            ui.ctx().set_cursor_icon(CursorIcon::Grabbing);
            self.axis = Some(axis.panned(delta.x).clamped_to(limits));
            self.scroll -= f64::from(delta.y);
        }
    }

    fn wheel(
        &mut self,
        ui: &Ui,
        places: &TraceViewLayout,
        axis: PanZoomAxis,
        limits: AxisLimits,
        response: &Response,
    ) {
        let Some(at) = response.hover_pos() else { return };
        let (delta, zoom, alt) =
            ui.input(|i| (i.smooth_scroll_delta(), i.zoom_delta(), i.modifiers.alt));
        if alt {
            self.scroll -= f64::from(delta.y + delta.x);
            return;
        }
        let factor = f64::from(zoom) * (f64::from(delta.y) * 0.006).exp();
        let x = at.x - places.lanes.left();
        let mut moved = axis;
        if factor != 1.0 {
            moved = moved.zoomed(factor, x, limits);
        }
        if delta.x != 0.0 {
            moved = moved.panned(delta.x);
        }
        if moved != axis {
            self.axis = Some(moved.clamped_to(limits));
        }
    }

    fn hit<'a>(
        &'a self,
        at: Pos2,
        blocks: &[IpuLaneLayout<'_>],
        places: &TraceViewLayout,
        axis: PanZoomAxis,
    ) -> Option<LaneHit<'a>> {
        let scene = self.scene.latest()?;
        let y = f64::from(at.y - places.lanes.top()) + self.scroll;
        let inside = |block: &&IpuLaneLayout<'_>| {
            block.top <= y && y < block.top + f64::from(block.height())
        };
        let block = blocks.iter().find(inside)?;
        let (index, row) = block.row_at((y - block.top) as f32 - block.marks)?;
        let ipu = scene.ipus.iter().find(|ipu| ipu.ipu == block.lanes.ipu)?;
        let lane = ipu.lanes.get(index)?;
        let cycle = axis.position_from_x(at.x - places.lanes.left());
        let cycle = u64::try_from(cycle).ok()?;
        let slack = (axis.scale() * f64::from(HIT_TOLERANCE)) as u64;
        let item = lane.hit(row, Cycles(cycle), Cycles(slack))?;
        let top = places.lanes.top() + (block.top - self.scroll) as f32;
        let palette = &LIGHT;
        let band = IpuLanesOnScreen { palette, axis, places, block, top };
        let rect = band.item_rect(index, item.row, item.range, item.full_height);
        Some(LaneHit { ipu: ipu.ipu, lane, item, rect })
    }
}

fn choose(hit: &LaneHit<'_>, prepared: &LoadedTrace, window: CycleRange) -> LaneClickTarget {
    let (ipu, sub_lane) = (hit.ipu, hit.lane.sub_lane);
    match hit.item.step() {
        Some(step) => {
            let position = hit.item.first_position();
            LaneClickTarget::Step(SelectedStep { ipu, sub_lane, position, step })
        }
        None => LaneClickTarget::Bar(SelectedBar::from_item(
            hit.item,
            prepared,
            (ipu, sub_lane),
            window,
        )),
    }
}

fn tooltip_ui(response: &Response, hit: &LaneHit<'_>, prepared: &LoadedTrace) {
    response.clone().on_hover_ui_at_pointer(|ui| {
        ui.set_max_width(420.0);
        let palette = ThemePalette::for_ui(ui);
        let title: String =
            selected_bar::title(hit.item, &prepared.labels).chars().take(240).collect();
        ui.label(crate::theme::fonts::strong(title));
        let length = hit.item.range.length();
        let mut text = format!("{length} cycles");
        if let Some(balance) = hit.item.tile_balance().filter(|_| prepared.balance) {
            text.push_str(&format!(", tile balance {}", tilescope_report::units::percent(balance)));
        }
        if hit.item.steps() > 1 && !matches!(hit.item.kind, LaneItemKind::Bucket(..)) {
            text.push_str(&format!(", {} steps", grouped(hit.item.steps())));
        }
        ui.label(RichText::new(text).color(palette.weak_text));
    });
}
