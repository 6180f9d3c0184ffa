//! Bars that are chosen: in full colour and with an outline, also around their tiles.

use super::TracePainter;
use crate::views::execution_trace::bar_colours::colour;
use crate::views::execution_trace::bsp_raster;
use crate::views::execution_trace::layout::ChosenBarItem;
use egui::{CornerRadius, Rect, Shape, Stroke, StrokeKind};

impl TracePainter<'_> {
    /// Paints a chosen bar again, above the veil.
    pub(super) fn chosen_bar(&self, chosen: &ChosenBarItem<'_>) {
        let rect = chosen.rect;
        if let Some(item) = chosen.item.filter(|_| chosen.filled) {
            let fill = colour(self.palette, &self.prepared.labels, item);
            self.painter.rect_filled(rect, 0.0, fill);
            // The fill hid the label, so it is written again.
            if chosen.labelled {
                let text = item.text(&self.prepared.labels);
                self.bar_text(rect, chosen.row_height, &text, fill);
            }
        }
        let stroke = Stroke::new(2.0, self.palette.selection);
        if let Some(tiles) = chosen.tiles {
            self.tiles_outline(chosen, tiles, stroke);
        }
        // Around the bar: on a bar one point wide, the outline would hide its colour.
        let rect = rect.expand(1.0);
        self.painter.rect_stroke(rect, CornerRadius::same(1), stroke, StrokeKind::Outside);
    }

    /// The tiles that work in it; all of them where that is not known.
    fn tiles_outline(&self, chosen: &ChosenBarItem<'_>, tiles: Rect, stroke: Stroke) {
        let outline = |item| bsp_raster::outline(self.prepared, item, chosen.at.ipu, tiles);
        match chosen.item.and_then(outline) {
            Some(lines) => {
                let shapes = lines.into_iter().map(|line| Shape::closed_line(line, stroke));
                self.painter.extend(shapes);
            }
            None => drop(self.painter.rect_stroke(tiles, 0.0, stroke, StrokeKind::Inside)),
        }
    }
}
