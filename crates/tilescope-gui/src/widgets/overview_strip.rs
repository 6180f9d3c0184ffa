//! The overview strip above the lanes: the whole run, with the visible part marked.

use super::pan_zoom_axis::{AxisLimits, AxisRange, PanZoomAxis};
use super::split_texture::SplitTexture;
use super::{ALL_ARROWS, focus_ui, keeps_arrows};
use crate::theme::ThemePalette;
use egui::accesskit::Role;
use egui::{
    Color32, CornerRadius, CursorIcon, Id, Key, Rect, Response, Sense, Stroke, StrokeKind, Ui,
    WidgetInfo, pos2, vec2,
};
use tilescope_report::units::grouped;

/// The height of the strip.
pub(crate) const HEIGHT: f32 = 46.0;
/// The distance at which the pointer can grab a handle.
const REACH: f32 = 7.0;

/// The zoom factor of a key press.
const KEY_ZOOM: f32 = 1.3;
/// The share of the window that a key press moves it by.
const KEY_PAN: f32 = 0.08;

/// The dragged part of the strip.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum OverviewDrag {
    Left,
    Right,
    /// The window between the handles.
    Window,
}

/// The id of the strip in a part of the window.
pub(crate) fn id(ui: &Ui) -> Id {
    ui.scope_id().with("overview")
}

/// Shows the strip with an image of a part of it or of all. Returns the new window if the user
/// moved it.
pub(crate) fn overview_ui(
    ui: &mut Ui,
    rect: Rect,
    image: Option<(&SplitTexture, AxisRange)>,
    axis: PanZoomAxis,
    limits: AxisLimits,
    grip: &mut Option<OverviewDrag>,
) -> Option<PanZoomAxis> {
    let palette = ThemePalette::for_ui(ui);
    let painter = ui.painter_at(rect);
    painter.rect_filled(rect, CornerRadius::same(3), palette.lane);
    let whole = PanZoomAxis::fitting_exactly(limits.range, rect.width());
    if let Some((image, range)) = image {
        // Beside a longer run, a run takes only its part of the strip.
        let [left, right] =
            [range.start, range.end].map(|edge| rect.left() + whole.x_from_position(edge));
        image.paint(&painter, Rect::from_x_y_ranges(left..=right, rect.y_range()));
    }
    let window = axis.window(limits.width).intersection(limits.range);
    let left = (rect.left() + whole.x_from_position(window.start)).clamp(rect.left(), rect.right());
    // Handles never leave the strip and never cross, or they could not be grabbed again.
    let right = (rect.left() + whole.x_from_position(window.end)).clamp(left, rect.right());
    // A window of a pixel stays visible and can be grabbed.
    let right = right.max(left + 2.0);
    shade(&painter, rect, left, right, palette);
    let response = ui.interact(rect, id(ui), Sense::click_and_drag());
    let text = format!("{} - {}", grouped(window.start), grouped(window.end));
    response.widget_info(|| WidgetInfo::labeled(Role::Slider, true, "Overview of the run"));
    ui.ctx().accesskit_node_builder(response.id, |node| node.set_value(text));
    focus_ui(ui, &response, rect);
    if let Some(moved) = keys(ui, &response, axis, limits) {
        return Some(moved);
    }
    let pick_handle = |x: f32| {
        let pick = if (x - left).abs() <= REACH && (x - left).abs() <= (x - right).abs() {
            OverviewDrag::Left
        } else if (x - right).abs() <= REACH {
            OverviewDrag::Right
        } else {
            OverviewDrag::Window
        };
        // In a narrow window, dragging the middle moves it.
        let middle = (left + right) / 2.0;
        if right - left < 2.0 * REACH && (x - middle).abs() < 2.0 {
            OverviewDrag::Window
        } else {
            pick
        }
    };
    if let Some(at) = response.hover_pos() {
        let cursor = match grip.unwrap_or(pick_handle(at.x)) {
            OverviewDrag::Left | OverviewDrag::Right => CursorIcon::ResizeHorizontal,
            OverviewDrag::Window => CursorIcon::Grab,
        };
        ui.ctx().set_cursor_icon(cursor);
    }
    let pointer = response.interact_pointer_pos()?;
    let to_position = |x: f32| whole.position_from_x(x - rect.left()).max(0) as u64;
    if response.drag_started() || (grip.is_none() && response.dragged()) {
        *grip = Some(pick_handle(pointer.x - response.drag_delta().x));
    }
    let moved = match *grip {
        Some(OverviewDrag::Left) if response.dragged() => {
            AxisRange::new(to_position(pointer.x).min(window.end.saturating_sub(1)), window.end)
        }
        Some(OverviewDrag::Right) if response.dragged() => {
            AxisRange::new(window.start, to_position(pointer.x).max(window.start + 1))
        }
        Some(OverviewDrag::Window) if response.dragged() => {
            let distance = f64::from(response.drag_delta().x) * whole.scale();
            return Some(axis.panned(-(distance / axis.scale()) as f32).clamped_to(limits));
        }
        _ if response.clicked() => {
            let middle = axis.x_from_position(to_position(pointer.x)) - limits.width / 2.0;
            return Some(axis.panned(-middle).clamped_to(limits));
        }
        _ => {
            *grip = None;
            return None;
        }
    };
    Some(PanZoomAxis::fitting_exactly(moved, limits.width))
}

/// The window after a key while the strip has the focus: left and right arrows move it, up and down
/// make it narrower and wider.
fn keys(
    ui: &Ui,
    response: &Response,
    axis: PanZoomAxis,
    limits: AxisLimits,
) -> Option<PanZoomAxis> {
    if !keeps_arrows(response, ALL_ARROWS) {
        return None;
    }
    let (right, up) = ui.input(|input| {
        let count_presses = |key| input.num_presses(key) as f32;
        (
            count_presses(Key::ArrowRight) - count_presses(Key::ArrowLeft),
            count_presses(Key::ArrowUp) - count_presses(Key::ArrowDown),
        )
    });
    if right == 0.0 && up == 0.0 {
        return None;
    }
    let factor = f64::from(KEY_ZOOM.powf(up));
    let zoomed = axis.zoomed(factor, limits.width / 2.0, limits);
    Some(zoomed.panned(-right * limits.width * KEY_PAN).clamped_to(limits))
}

fn shade(painter: &egui::Painter, rect: Rect, left: f32, right: f32, palette: &ThemePalette) {
    let [r, g, b, _] = palette.shade.to_array();
    let veil = Color32::from_rgba_unmultiplied(r, g, b, 150);
    let before = Rect::from_min_max(rect.min, pos2(left, rect.bottom()));
    let behind = Rect::from_min_max(pos2(right, rect.top()), rect.max);
    painter.rect_filled(before, 0.0, veil);
    painter.rect_filled(behind, 0.0, veil);
    let window = Rect::from_min_max(pos2(left, rect.top()), pos2(right, rect.bottom()));
    let line = Stroke::new(1.0, palette.accent);
    painter.rect_stroke(window, 0.0, line, StrokeKind::Inside);
    for x in [left, right] {
        let handle = Rect::from_center_size(pos2(x, rect.center().y), vec2(6.0, 22.0));
        let handle = handle.translate(vec2(
            (rect.left() - handle.left()).max(0.0) - (handle.right() - rect.right()).max(0.0),
            0.0,
        ));
        painter.rect(handle, CornerRadius::same(3), palette.page, line, StrokeKind::Inside);
    }
}
