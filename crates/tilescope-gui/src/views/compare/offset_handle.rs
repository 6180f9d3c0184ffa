//! The handle on the lanes of the target. It marks the start of the target's run, and dragging it
//! along the time axis shifts the target against the source.

use crate::theme::ThemePalette;
use crate::views::VisibleTimeline;
use crate::widgets::{SIDE_ARROWS, focus_ui, keeps_arrows};
use egui::accesskit::{Action, Role};
use egui::{
    CornerRadius, CursorIcon, Key, Rect, Response, Sense, Shape, Stroke, StrokeKind, Ui,
    WidgetInfo, pos2, vec2,
};
use tilescope_report::units::grouped;

/// The width and height of the draggable tab, in points.
const HANDLE_SIZE: (f32, f32) = (18.0, 20.0);
/// The height of the tab above the lanes, in points.
const OUTSIDE: f32 = 9.0;
/// The points that an arrow key moves; ten times the distance with Shift.
const STEP: f64 = 4.0;

const HINT: &str = "Drag to shift the target in time.\n\
                    Keyboard: arrow keys, larger steps with Shift, Home for no offset.";

/// The state of the handle.
#[derive(Default)]
pub(crate) struct OffsetHandle {
    /// The pointer position at the start of the drag, and the offset at that time.
    drag_start: Option<(f32, i64)>,
    focused: bool,
}

impl OffsetHandle {
    /// Returns true if the arrow keys move the handle.
    pub(crate) fn has_focus(&self) -> bool {
        self.focused
    }

    /// Shows the handle over a pane. Returns the new offset if it was moved.
    pub(crate) fn ui(
        &mut self,
        ui: &Ui,
        pane: Rect,
        target: VisibleTimeline,
        offset: i64,
    ) -> Option<i64> {
        let VisibleTimeline { axis, lanes, run, .. } = target;
        let start = lanes.left() + axis.x_from_position(run.start.0);
        let line = start.clamp(lanes.left(), lanes.right().max(lanes.left()));
        let left = (line - HANDLE_SIZE.0).max(lanes.left() - OUTSIDE);
        let tab =
            Rect::from_min_size(pos2(left, lanes.top() - 2.0), vec2(HANDLE_SIZE.0, HANDLE_SIZE.1));
        let response = ui.interact(tab, ui.scope_id().with("time offset"), Sense::click_and_drag());
        let words = offset_words(offset);
        response
            .widget_info(|| WidgetInfo::labeled(Role::Slider, true, "Time offset of the target"));
        ui.ctx().accesskit_node_builder(response.id, |node| {
            node.set_value(words.clone());
            node.set_numeric_value(offset as f64);
            node.add_action(Action::Increment);
            node.add_action(Action::Decrement);
        });
        let painter_ui = ui.painter().with_clip_rect(pane);
        let palette = ThemePalette::for_ui(ui);
        let held = response.dragged() || response.hovered() || response.has_focus();
        let colour = if held { palette.accent } else { palette.weak_text };
        let rule = Stroke::new(if held { 2.0 } else { 1.0 }, colour);
        // Outside the visible range there is no line to show.
        if line == start {
            painter_ui.vline(line, tab.bottom()..=lanes.bottom(), rule);
        }
        paint_tab(&painter_ui, tab, rule, palette);
        focus_ui(ui, &response, tab.expand(2.0));
        self.focused = response.has_focus();
        if response.clicked() {
            response.request_focus();
        }
        let moved = self.moved(ui, &response, axis.scale(), offset);
        if held {
            ui.ctx().set_cursor_icon(CursorIcon::ResizeHorizontal);
            response.on_hover_text(format!("{words}\n{HINT}"));
        }
        moved.filter(|moved| *moved != offset)
    }

    fn moved(&mut self, ui: &Ui, response: &Response, scale: f64, offset: i64) -> Option<i64> {
        if response.drag_started() {
            // From the position of the press: a drag is recognized only some points later.
            let origin = ui.input(|input| input.pointer.press_origin());
            self.drag_start = origin.map(|at| (at.x, offset));
        }
        if response.drag_stopped() {
            self.drag_start = None;
        }
        if let (true, Some((from, before)), Some(at)) =
            (response.dragged(), self.drag_start, response.interact_pointer_pos())
        {
            return Some(shifted(before, f64::from(at.x - from), scale));
        }
        let steps = keys(ui, response)?;
        Some(if steps == 0.0 { 0 } else { shifted(offset, steps * STEP, scale) })
    }
}

/// The offset after moving the target to the right by this many points. Any move changes it, at
/// every zoom level.
fn shifted(offset: i64, points: f64, cycles_per_point: f64) -> i64 {
    let cycles = (points * cycles_per_point).round();
    let least = if points == 0.0 { 0.0 } else { points.signum() };
    let cycles = if cycles == 0.0 { least } else { cycles };
    offset.saturating_sub(cycles as i64)
}

/// The steps to the right requested by keys and screen readers; 0 resets the offset.
fn keys(ui: &Ui, response: &Response) -> Option<f64> {
    let requests = ui.input(|input| {
        let increments = input.num_accesskit_action_requests(response.id, Action::Increment);
        let decrements = input.num_accesskit_action_requests(response.id, Action::Decrement);
        // A larger offset shows later cycles of the target, which moves to the left.
        decrements as f64 - increments as f64
    });
    if requests != 0.0 {
        return Some(requests);
    }
    if !keeps_arrows(response, SIDE_ARROWS) {
        return None;
    }
    ui.input(|input| {
        let far = if input.modifiers.shift { 10.0 } else { 1.0 };
        let right = input.num_presses(Key::ArrowRight) as f64;
        let left = input.num_presses(Key::ArrowLeft) as f64;
        let steps = (right - left) * far;
        if steps != 0.0 {
            Some(steps)
        } else if input.key_pressed(Key::Home) {
            Some(0.0)
        } else {
            None
        }
    })
}

fn offset_words(offset: i64) -> String {
    match offset {
        0 => "no offset".to_owned(),
        _ => {
            let sign = if offset > 0 { '+' } else { '-' };
            format!("{sign}{} cycles", grouped(offset.unsigned_abs()))
        }
    }
}

/// A tab with an arrow on either side.
fn paint_tab(painter: &egui::Painter, tab: Rect, line: Stroke, palette: &ThemePalette) {
    painter.rect(tab, CornerRadius::same(4), palette.page, line, StrokeKind::Inside);
    let middle = tab.center();
    let pen = Stroke::new(1.5, line.color);
    for side in [-1.0, 1.0] {
        let at = |x: f32, y: f32| middle + vec2(side * x, y);
        painter.add(Shape::line(vec![at(2.5, -4.0), at(6.0, 0.0), at(2.5, 4.0)], pen));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn moving_to_the_right_and_back_changes_nothing() {
        for scale in [0.025, 0.7, 1.0, 123.4, 1e7] {
            for points in [1.0, 4.0, 40.0, 333.0] {
                let there = shifted(17, points, scale);
                assert!(there < 17, "{scale} {points}");
                assert_eq!(shifted(there, -points, scale), 17, "{scale} {points}");
            }
            assert_eq!(shifted(17, 0.0, scale), 17);
        }
    }

    #[test]
    fn the_text_of_an_offset_has_a_direction() {
        assert_eq!(offset_words(0), "no offset");
        assert_eq!(offset_words(1234), "+1,234 cycles");
        assert_eq!(offset_words(-1234), "-1,234 cycles");
    }
}
