//! The cycle ruler and the rows of marks below it.

use super::scene::TraceMarkRow;
use crate::theme::{ThemePalette, text_size};
use crate::widgets::pan_zoom_axis::{PanZoomAxis, tick_step};
use crate::widgets::{elided_text::elided, node_ui};
use egui::accesskit::Role;
use egui::{Color32, CornerRadius, FontId, Painter, Rect, Stroke, Ui, pos2, vec2};
use tilescope_report::units::Cycles;
use tilescope_report::{MarkKind, TraceMark, TrainingPass};

/// Height of the ruler.
pub(crate) const HEIGHT: f32 = 24.0;
/// Height of a row of marks.
pub(crate) const MARK_HEIGHT: f32 = 18.0;

/// Ticks with their cycles, thousands separated.
pub(crate) fn paint_ruler(
    painter: &Painter,
    rect: Rect,
    axis: PanZoomAxis,
    palette: &ThemePalette,
) {
    let painter = painter.with_clip_rect(rect);
    let step = tick_step(axis.scale(), 120.0);
    let minor = if step >= 5 { step / 5 } else { step };
    let first = axis.position_from_x(0.0).max(0) as u64 / minor * minor;
    let last = axis.position_from_x(rect.width()).max(0) as u64;
    let font = FontId::proportional(text_size::CAPTION);
    let mut cycle = first;
    while cycle <= last {
        let x = rect.left() + axis.x_from_position(cycle);
        let major = cycle.is_multiple_of(step);
        let height = if major { 7.0 } else { 3.0 };
        let span = rect.bottom() - height..=rect.bottom();
        painter.vline(x, span, Stroke::new(1.0, palette.outline));
        if major {
            let at = pos2(x + 4.0, rect.top() + 3.0);
            let text = Cycles(cycle).to_string();
            let galley = painter.layout_no_wrap(text, font.clone(), palette.weak_text);
            if x >= rect.left() - 3.0 && at.x + galley.size().x <= rect.right() {
                painter.galley(at, galley, palette.weak_text);
            }
        }
        let Some(next) = cycle.checked_add(minor) else { break };
        cycle = next;
    }
    painter.hline(rect.x_range(), rect.bottom() - 0.5, Stroke::new(1.0, palette.rule));
}

/// The colour of a mark.
pub(crate) fn mark_colour(palette: &ThemePalette, mark: &TraceMark) -> Color32 {
    match (mark.kind, mark.pass) {
        (MarkKind::Run, _) => palette.run,
        (MarkKind::Update, _) | (_, Some(TrainingPass::Update)) => palette.update,
        (_, Some(TrainingPass::Forward)) => palette.forward,
        (_, Some(TrainingPass::Backward)) => palette.backward,
        (_, None) => palette.mark,
    }
}

/// A row of marks; marks too narrow for words are bars, narrower ones run together.
pub(crate) fn marks_ui(ui: &Ui, clip: Rect, rect: Rect, axis: PanZoomAxis, row: &TraceMarkRow) {
    let palette = ThemePalette::for_ui(ui);
    let painter = ui.painter_at(rect.intersect(clip));
    let mut behind = f32::MIN;
    for mark in &row.marks {
        let left = rect.left() + axis.x_from_position(mark.cycles.start.0);
        let right = rect.left() + axis.x_from_position(mark.cycles.end.0);
        if right < rect.left() || left > rect.right() || right <= behind {
            continue;
        }
        let from = left.max(rect.left() - 4.0).max(behind);
        let gap = if right - left > 4.0 { 1.0 } else { 0.0 };
        let to = (right - gap).max(from + 1.0).min(rect.right() + 4.0);
        behind = if right - left > 2.0 { right } else { from + 1.0 };
        let bar = Rect::from_min_max(pos2(from, rect.top()), pos2(to, rect.bottom() - 2.0));
        let colour = mark_colour(palette, mark);
        painter.rect_filled(bar, CornerRadius::same(2), colour);
        let room = bar.intersect(rect).shrink2(vec2(4.0, 0.0));
        if room.width() > 14.0 {
            let ink = palette.label_text_on(colour);
            let text = elided(
                &painter,
                &mark.label,
                FontId::proportional(text_size::CAPTION),
                ink,
                room.width(),
            );
            let at = pos2(room.left(), room.center().y - text.size().y / 2.0);
            painter.galley(at, text, ink);
            let id =
                ui.scope_id().with((mark.kind.name(), mark.ipu, mark.index, mark.cycles.start));
            let cycles = || format!("{} cycles", mark.cycles.length());
            let words = || (mark.label.clone(), cycles());
            node_ui(ui, id, room.intersect(clip), Role::Cell, words);
        }
    }
    if row.more {
        let text = "more marks than fit here: zoom in";
        let font = FontId::proportional(text_size::CAPTION);
        let galley = elided(&painter, text, font, palette.text, rect.width());
        let at = pos2(rect.right() - galley.size().x - 6.0, rect.top() + 1.0);
        let ground = Rect::from_min_size(at, galley.size()).expand2(vec2(4.0, 0.0));
        painter.rect_filled(ground, CornerRadius::same(3), palette.page);
        painter.galley(at, galley, palette.text);
    }
}
