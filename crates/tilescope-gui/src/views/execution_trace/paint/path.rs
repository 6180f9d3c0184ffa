//! The lane of the critical path, and its hops from lane to lane.

use super::bands::text_on_bar;
use super::{TracePainter, VEIL};
use crate::theme::text_size;
use crate::views::execution_trace::bar_colours::colour;
use crate::views::execution_trace::id;
use crate::views::execution_trace::layout::{
    BarLabelItem, HopItem, PathBand, PathItem, veiled_parts,
};
use crate::views::execution_trace::share_graph;
use crate::widgets::{node_ui, region_ui};
use egui::accesskit::Role;
use egui::{Align2, FontId, Rangef, Rect, Shape, Stroke, Vec2, pos2, vec2};

/// Length of the head of a hop's arrow.
const HEAD: f32 = 6.0;

impl TracePainter<'_> {
    /// Paints the lane of the path; `waiting` stands where it is not there.
    pub(super) fn path_ui(&self, item: &PathItem<'_>, waiting: &str) {
        let row = item.row;
        let painter = self.ui.painter_at(row);
        painter.rect_filled(row, 0.0, self.palette.lane);
        let gutter = Rect::from_x_y_ranges(self.regions.gutter().x_range(), row.y_range());
        let font = FontId::new(text_size::SMALL, crate::theme::fonts::strong_family());
        let at = pos2(gutter.right() - 10.0, row.center().y);
        self.ui.painter().text(at, Align2::RIGHT_CENTER, "Critical path", font, self.palette.text);
        let about = item.scene.as_ref().map_or(waiting, |scene| scene.about.as_str());
        region_ui(self.ui, id(self.ui, "critical path"), gutter, Role::Row, "Critical path", about);
        match &item.scene {
            Some(scene) => self.path_band(row, scene),
            None => {
                let font = FontId::proportional(text_size::CAPTION);
                let at = pos2(row.left() + 6.0, row.center().y);
                painter.text(at, Align2::LEFT_CENTER, waiting, font, self.palette.weak_text);
            }
        }
    }

    fn path_band(&self, row: Rect, scene: &PathBand<'_>) {
        let painter = self.ui.painter_at(row);
        if let Some(texture) = self.textures.of_path() {
            let (left, right) = scene.image;
            let rect = Rect::from_min_max(pos2(left, row.top()), pos2(right, row.bottom()));
            texture.paint(&painter, rect);
        }
        // Where it goes to another lane; the lanes below say which.
        let line = Stroke::new(1.0, self.palette.page);
        for x in &scene.hops {
            painter.vline(*x, row.y_range(), line);
        }
        for label in &scene.labels {
            self.path_label_ui(row, label);
        }
        if !scene.shares.is_empty() {
            let words = || {
                ("Shares of the critical path".to_owned(), share_graph::all_words(&scene.shares))
            };
            node_ui(self.ui, id(self.ui, "path shares"), row, Role::Image, words);
        }
    }

    fn path_label_ui(&self, row: Rect, label: &BarLabelItem<'_>) {
        let BarLabelItem { rect, item, text, .. } = label;
        let full = colour(self.palette, &self.prepared.labels, item);
        let bright = !self.shade_balance || item.tile_balance().is_none_or(|share| share > 0.5);
        let ground = if bright { full } else { self.palette.dimmed(full) };
        let painter = self.ui.painter_at(row);
        text_on_bar(&painter, (self.palette, *rect, row.height()), text, ground);
        let node = id(self.ui, "path bar").with(item.range.start);
        let cycles = || format!("{} cycles", item.range.length());
        node_ui(self.ui, node, rect.intersect(row), Role::Cell, || (text.clone(), cycles()));
    }

    /// Veils what an IPU does that is not on the path.
    pub(super) fn veil_beside_path(&self, lit: &[(Rect, Vec<Rangef>)]) {
        let veil = self.palette.lane.gamma_multiply(VEIL);
        for (area, parts) in lit {
            for part in veiled_parts(*area, parts) {
                self.painter.rect_filled(part, 0.0, veil);
            }
        }
    }

    /// Arrows from the lane where the path was to the one it goes on, also for readers of the tree.
    pub(super) fn hops_ui(&self, hops: &[HopItem]) {
        let stroke = Stroke::new(1.5, self.palette.selection);
        for HopItem { from, to, mark } in hops {
            let down = if to.y >= from.y { 1.0 } else { -1.0 };
            let neck = *to - vec2(0.0, HEAD * down);
            self.painter.line_segment([*from, neck], stroke);
            self.painter.circle_filled(*from, 2.0, self.palette.selection);
            let side = Vec2::new(HEAD * 0.5, 0.0);
            let head = vec![*to, neck - side, neck + side];
            self.painter.add(Shape::convex_polygon(head, self.palette.selection, Stroke::NONE));
            let node = id(self.ui, "hop").with((mark.at, mark.from));
            let rect = Rect::from_two_pos(*from, *to).expand(2.0).intersect(self.regions.lanes);
            let words = || {
                let [from, to] = [mark.from, mark.to].map(|(at, _)| self.prepared.ipu_words(at));
                let name = format!("Critical path goes from {from} to {to}");
                (name, format!("at cycle {}", mark.at))
            };
            node_ui(self.ui, node, rect, Role::GraphicsObject, words);
        }
    }
}
