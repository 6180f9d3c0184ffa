//! The layer of the user's marks and measurements, above the lanes.

use super::TracePainter;
use crate::theme::text_size;
use crate::views::execution_trace::layout::TraceLayout;
use crate::views::execution_trace::step_statistics::length_text;
use egui::{Align2, CornerRadius, FontId, Painter, Rangef, Rect, Stroke, StrokeKind, pos2, vec2};
use tilescope_report::units::{CycleRange, Cycles};

/// The positions of the starts and ends of the user's marks.
pub(super) fn lines(layout: &TraceLayout<'_>, marks: &[CycleRange]) -> Vec<f32> {
    marks.iter().flat_map(|mark| [mark.start, mark.end]).map(|cycle| layout.x(cycle)).collect()
}

/// The range between the user's marks.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct MeasureItem {
    /// The visible part from the first to the last mark.
    pub x: Rangef,
    pub range: CycleRange,
}

/// The measurement between marks, if a part of it is visible.
pub(crate) fn measure(layout: &TraceLayout<'_>, marked: Option<CycleRange>) -> Option<MeasureItem> {
    let range = marked?;
    let area = layout.regions.timeline();
    let left = layout.x(range.start).max(area.left());
    let right = layout.x(range.end).min(area.right());
    if left < right { Some(MeasureItem { x: Rangef::new(left, right), range }) } else { None }
}

/// The range from a cycle to the pointer, at least one point wide.
pub(crate) fn drawn_range(
    layout: &TraceLayout<'_>,
    from: i64,
    pointer_x: f32,
) -> (Rect, CycleRange) {
    let range = cycles_between(from, layout.cycle_at(pointer_x).max(0));
    let left = layout.x(range.start);
    let right = layout.x(range.end);
    let lanes = layout.regions.lanes;
    let rect = Rect::from_min_max(
        pos2(left, lanes.top()),
        // A new range has no width yet.
        pos2(right.max(left + 1.0), lanes.bottom()),
    );
    (rect, range)
}

/// The cycles between two positions of an axis, cut off at cycle 0.
pub(crate) fn cycles_between(a: i64, b: i64) -> CycleRange {
    CycleRange::new(cycle_at(a.min(b)), cycle_at(a.max(b)))
}

fn cycle_at(place: i64) -> Cycles {
    Cycles(place.max(0) as u64)
}

impl TracePainter<'_> {
    /// The range being drawn, with its length.
    pub(crate) fn drawn_range(&self, (rect, range): (Rect, CycleRange)) {
        let palette = self.palette;
        self.painter.rect_filled(rect, 0.0, palette.accent.gamma_multiply(0.18));
        let stroke = Stroke::new(1.0, palette.accent);
        self.painter.rect_stroke(rect, 0.0, stroke, StrokeKind::Inside);
        let text = format!("{} cycles", range.length());
        let font = FontId::proportional(text_size::SMALL);
        let galley = self.painter.layout_no_wrap(text, font, palette.text);
        let at =
            pos2(rect.center().x - galley.size().x / 2.0, self.layout.regions.lanes.top() + 8.0);
        let ground = Rect::from_min_size(at, galley.size()).expand2(vec2(6.0, 3.0));
        self.painter.rect_filled(ground, CornerRadius::same(4), palette.page);
        self.painter.galley(at, galley, palette.text);
    }

    /// Paints marks as lines, and the range between them as a measurement.
    pub(crate) fn user_marks(&self) {
        let area = self.layout.regions.timeline();
        let painter = self.ui.painter_at(area);
        for x in lines(self.layout, &self.settings.marks) {
            painter.vline(x, area.y_range(), Stroke::new(1.0, self.palette.accent));
        }
        if let Some(measure) = measure(self.layout, self.settings.marked_range()) {
            self.measure(&painter, measure);
        }
    }

    fn measure(&self, painter: &Painter, MeasureItem { x, range }: MeasureItem) {
        let ruler = self.layout.regions.ruler;
        let palette = self.palette;
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
