//! The lanes of an IPU: its names, images, marks and the names on its bars.

use super::{TracePainter, VEIL};
use crate::theme::{ThemePalette, mix, spacing, text_size};
use crate::views::execution_trace::bar_colours::colour;
use crate::views::execution_trace::layout::{
    BarLabelItem, IpuBand, SceneBand, ShareLineItem, TraceRenderItems,
};
use crate::views::execution_trace::share_graph::{self, TimeShare};
use crate::views::execution_trace::{id, link_strip};
use crate::widgets::{elided_text::elided, node_ui, region_ui};
use egui::accesskit::Role;
use egui::{
    Align2, Color32, CornerRadius, FontId, Painter, Pos2, Rect, Shape, Stroke, Vec2, pos2, vec2,
};
use tilescope_analysis::trace::MarkRowId;
use tilescope_report::units::{grouped, percent};

/// Narrowest room for the name of a bar.
const LEAST_WORDS: f32 = 16.0;
/// Height of the name of an IPU.
const NAME_HEIGHT: f32 = text_size::SMALL + spacing::XS;
/// Edge of the square that shows the colour of a share.
const SHARE_SQUARE: f32 = 6.0;

impl TracePainter<'_> {
    /// Paints an IPU.
    pub(super) fn band_ui(&self, band: &IpuBand<'_>, items: &TraceRenderItems<'_>) {
        self.gutter_ui(band);
        let lines = band.scene.iter().flat_map(|scene| &scene.share_lines);
        lines.for_each(|line| self.share_line(line));
        self.painter.rect_filled(band.bars.union(band.links), 0.0, self.palette.lane);
        // What is not read yet is an empty lane; the page would look like the end of the IPUs.
        let Some(scene) = &band.scene else { return };
        self.images(band, scene);
        self.tiles_ui(band);
        self.links_ui(band, scene);
        self.separators(band);
        if let Some((row, bars)) = &scene.stages {
            let id = (MarkRowId::Ipu(band.at), band.replica);
            self.marks_ui(self.regions.lanes, *row, bars, id);
        }
        if let Some(lit) = &band.lit {
            let stages = scene.stages.as_ref().map(|(row, _)| *row);
            self.veil_others(band, stages, lit);
        }
        if let Some(lit) = &band.on_path {
            self.veil_beside_path(lit);
        }
        // The veil covers all bars; the chosen ones are painted again on top of it.
        if items.veiled {
            let veil = self.palette.lane.gamma_multiply(VEIL);
            self.painter.rect_filled(band.bars, 0.0, veil);
        }
        for label in &scene.labels {
            self.bar_label_ui(band, label, items);
        }
        if !scene.shares.is_empty() {
            self.shares_ui(band, &scene.shares);
        }
    }

    /// A share and its colour, left of the lane.
    fn share_line(&self, line: &ShareLineItem) {
        let gutter = self.regions.gutter();
        let (painter, palette) = (self.ui.painter_at(gutter), self.palette);
        let font = FontId::proportional(text_size::CAPTION);
        let text = share_graph::short_words(line.share);
        let room = line.at.x - gutter.left();
        let galley = elided(&painter, &text, font, palette.weak_text, room);
        let words = Rect::from_min_size(line.at - vec2(galley.size().x, 0.0), galley.size());
        painter.galley(words.min, galley, palette.weak_text);
        let square = Rect::from_center_size(
            pos2((line.at.x + gutter.right()) / 2.0, words.center().y),
            Vec2::splat(SHARE_SQUARE),
        );
        let colour = share_graph::colour(palette, line.share);
        painter.rect_filled(square, CornerRadius::same(1), colour);
    }

    /// What a graph of shares shows, for readers of the tree.
    fn shares_ui(&self, band: &IpuBand<'_>, shares: &[TimeShare]) {
        let visible = band.bars.intersect(self.regions.lanes);
        if visible.is_positive() {
            let words = || (format!("Shares of {}", band.name()), share_graph::all_words(shares));
            node_ui(
                self.ui,
                id(self.ui, "shares").with((band.replica, band.at)),
                visible,
                Role::Image,
                words,
            );
        }
    }

    fn gutter_ui(&self, band: &IpuBand<'_>) {
        let gutter = self.regions.gutter();
        // Names of lanes that are scrolled halfway out would stand beside the ruler.
        let painter = self.ui.painter_at(gutter);
        let name = band.name();
        let font = FontId::new(text_size::SMALL, crate::theme::fonts::strong_family());
        if let Some(at) = band.name_at {
            painter.text(at, Align2::RIGHT_TOP, &name, font, self.palette.text);
        }
        for (at, text) in &band.groups {
            let small = FontId::proportional(text_size::CAPTION);
            painter.text(*at, Align2::RIGHT_TOP, text, small, self.palette.weak_text);
        }
        let (lane, visible) =
            (id(self.ui, "lane").with((band.replica, band.at)), band.gutter.intersect(gutter));
        let value = format!("{} steps", grouped(band.steps));
        region_ui(self.ui, lane, visible, Role::Row, &name, &value);
    }

    fn images(&self, band: &IpuBand<'_>, scene: &SceneBand<'_>) {
        let (left, right) = scene.image;
        let textures = self.textures.of_lanes(scene.index);
        for (texture, on) in textures.iter().zip([band.bars, band.tiles, band.links]) {
            // All of the scene's window, wider than the screen: the clip of the lanes cuts it.
            let rect = Rect::from_min_max(pos2(left, on.top()), pos2(right, on.bottom()));
            texture.iter().for_each(|texture| texture.paint(&self.painter, rect));
        }
    }

    /// The line above the raster of tiles, and its name for readers of the tree.
    fn tiles_ui(&self, band: &IpuBand<'_>) {
        let rect = band.tiles;
        if rect.height() <= 0.0 {
            return;
        }
        let line = Stroke::new(1.0, self.palette.page);
        self.painter.hline(rect.x_range(), rect.top(), line);
        let visible = rect.intersect(self.regions.lanes);
        if visible.is_positive() {
            let (tiles, name) = (
                id(self.ui, "tiles").with((band.replica, band.at)),
                format!("Tiles of {}", band.name()),
            );
            region_ui(self.ui, tiles, visible, Role::Image, &name, "one row per tile");
        }
    }

    /// The lines of the strip of links, what they carry on the screen, and its name for readers of
    /// the tree.
    fn links_ui(&self, band: &IpuBand<'_>, scene: &SceneBand<'_>) {
        let (rect, gutter) = (band.links, self.regions.gutter());
        let Some(((carried, cycles), limit)) = scene.links.zip(self.prepared.known_link_limit())
        else {
            return;
        };
        let [edge, middle] = [self.palette.page, self.palette.outline];
        self.painter.hline(rect.x_range(), rect.top(), Stroke::new(1.0, edge));
        self.painter.hline(rect.x_range(), rect.center().y, Stroke::new(1.0, middle));
        let painter = self.ui.painter_at(gutter);
        let shares = link_strip::shares(carried, cycles, limit);
        let font = FontId::proportional(text_size::CAPTION);
        for (side, share) in shares.into_iter().enumerate() {
            let y = rect.center().y + [-0.25, 0.25][side] * rect.height();
            let text = format!("{} {}", ["sent", "received"][side], percent(share));
            let room = gutter.width() - 10.0;
            let galley = elided(&painter, &text, font.clone(), self.palette.weak_text, room);
            let at = pos2(gutter.right() - 10.0 - galley.size().x, y - galley.size().y / 2.0);
            // In low lanes the name of the IPU reaches down to here: it comes first.
            let words = at.y..=at.y + galley.size().y;
            let meets = |name: Pos2| name.y < *words.end() && *words.start() < name.y + NAME_HEIGHT;
            if band.name_at.is_some_and(meets) {
                continue;
            }
            painter.galley(at, galley, self.palette.weak_text);
            let colour = link_strip::colours(self.palette)[side];
            let square = pos2(gutter.right() - 5.0, y);
            let square = Rect::from_center_size(square, Vec2::splat(SHARE_SQUARE));
            painter.rect_filled(square, CornerRadius::same(1), colour);
        }
        let visible = rect.intersect(self.regions.lanes);
        if visible.is_positive() {
            let links = id(self.ui, "links").with((band.replica, band.at));
            let words = link_strip::words(carried, cycles, limit);
            region_ui(
                self.ui,
                links,
                visible,
                Role::Image,
                &format!("Links of {}", band.name()),
                &words,
            );
        }
    }

    fn separators(&self, band: &IpuBand<'_>) {
        for y in &band.separators {
            let line = [pos2(band.bars.left(), *y), pos2(band.bars.right(), *y)];
            let stroke = Stroke::new(1.0, self.palette.weak_text);
            self.painter.extend(Shape::dashed_line(&line, stroke, 5.0, 4.0));
        }
    }

    /// The name on a bar, for eyes and for readers of the tree.
    fn bar_label_ui(
        &self,
        band: &IpuBand<'_>,
        label: &BarLabelItem<'_>,
        items: &TraceRenderItems<'_>,
    ) {
        let BarLabelItem { sub_lane, rect, item, text } = label;
        let full = colour(self.palette, &self.prepared.labels, item);
        // The letters lie in the upper or the lower part of the bar.
        let bright = !self.shade_balance || item.tile_balance().is_none_or(|share| share > 0.5);
        let ground = if bright && !items.filtered { full } else { self.palette.dimmed(full) };
        // The ink is chosen for what is seen behind it, and that includes the veil.
        let veiled = items.veiled || band.is_unlit(*rect);
        let ground = mix(ground, self.palette.lane, if veiled { VEIL } else { 0.0 });
        self.bar_text(*rect, band.row_height, text, ground);
        let visible = rect.intersect(self.regions.lanes);
        if visible.is_positive() {
            let part = ((band.replica, band.at, *sub_lane), item.row, item.first_position());
            let bar = id(self.ui, "bar").with(part);
            let cycles = || format!("{} cycles", item.range.length());
            node_ui(self.ui, bar, visible, Role::Cell, || (text.clone(), cycles()));
        }
    }

    /// Writes on a bar, in its first row, where there is room.
    pub(super) fn bar_text(&self, rect: Rect, row_height: f32, text: &str, ground: Color32) {
        text_on_bar(&self.painter, (self.palette, rect, row_height), text, ground);
    }
}

/// Writes on a bar, in its first row, where there is room in what the painter may paint on.
pub(super) fn text_on_bar(
    painter: &Painter,
    (palette, rect, row_height): (&ThemePalette, Rect, f32),
    text: &str,
    ground: Color32,
) {
    // From the visible part on: the name of a bar that begins left of the screen can be read.
    let room = rect.intersect(painter.clip_rect()).shrink2(vec2(4.0, 0.0));
    if room.width() < LEAST_WORDS {
        return;
    }
    let ink = palette.label_text_on(ground);
    let font = FontId::proportional(text_size::CAPTION);
    let galley = elided(painter, text, font, ink, room.width());
    let row = Rect::from_min_size(rect.min, vec2(rect.width(), row_height - 1.0));
    let at = pos2(room.left(), row.center().y - galley.size().y / 2.0);
    painter.galley(at, galley, ink);
}
