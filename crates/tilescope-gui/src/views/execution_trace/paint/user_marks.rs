//! What the user marks and measures, above the lanes.

use super::TracePainter;
use crate::theme::text_size;
use crate::views::execution_trace::layout::{DrawnRangeItem, MeasureItem, TraceRenderItems};
use crate::views::execution_trace::step_statistics::length_text;
use egui::{Align2, CornerRadius, FontId, Painter, Rect, Stroke, StrokeKind, pos2, vec2};

impl TracePainter<'_> {
    /// The range that is being drawn, with its length.
    pub(crate) fn drawn_range(&self, drawn: DrawnRangeItem) {
        let (DrawnRangeItem { rect, range }, palette) = (drawn, self.palette);
        self.painter.rect_filled(rect, 0.0, palette.accent.gamma_multiply(0.18));
        let stroke = Stroke::new(1.0, palette.accent);
        self.painter.rect_stroke(rect, 0.0, stroke, StrokeKind::Inside);
        let text = format!("{} cycles", range.length());
        let font = FontId::proportional(text_size::SMALL);
        let galley = self.painter.layout_no_wrap(text, font, palette.text);
        let at = pos2(rect.center().x - galley.size().x / 2.0, self.regions.lanes.top() + 8.0);
        let ground = Rect::from_min_size(at, galley.size()).expand2(vec2(6.0, 3.0));
        self.painter.rect_filled(ground, CornerRadius::same(4), palette.page);
        self.painter.galley(at, galley, palette.text);
    }

    /// Marks as lines, and the range between them as a measure.
    pub(crate) fn user_marks(&self, items: &TraceRenderItems<'_>) {
        let area = self.regions.timeline();
        let painter = self.ui.painter_at(area);
        for x in &items.marks {
            painter.vline(*x, area.y_range(), Stroke::new(1.0, self.palette.accent));
        }
        if let Some(measure) = items.measure {
            self.measure(&painter, measure);
        }
    }

    fn measure(&self, painter: &Painter, MeasureItem { x, range }: MeasureItem) {
        let (ruler, palette) = (self.regions.ruler, self.palette);
        painter.hline(x, ruler.bottom() - 3.0, Stroke::new(2.0, palette.accent));
        let font = FontId::proportional(text_size::CAPTION);
        let galley = painter.layout_no_wrap(length_text(range, self.clock), font, palette.text);
        let middle = pos2((x.min + x.max) / 2.0, ruler.center().y);
        let ground =
            Align2::CENTER_CENTER.anchor_size(middle, galley.size()).expand2(vec2(4.0, 1.0));
        painter.rect_filled(ground, 3.0, palette.page);
        painter.galley(ground.min + vec2(4.0, 1.0), galley, palette.text);
    }
}
