//! A value per tile on the floor plan of the chips. The chips of a replica are side by side, every
//! tile is a cell, and brightness shows the value. Tiles can be clicked.

use super::heat_scale::HeatScale;
use super::split_texture::TextureOwner;
use super::tile_picker::TileClick;
use super::{ALL_ARROWS, focus_ui, keeps_arrows, node_ui};
use crate::theme::{ColourScheme, ThemePalette, text_size};
use egui::accesskit::Role;
use egui::{
    Color32, ColorImage, FontId, Key, Pos2, Rect, Response, RichText, ScrollArea, Sense, Stroke,
    StrokeKind, TextureHandle, TextureOptions, Ui, WidgetInfo, pos2, vec2,
};
use tilescope_analysis::tile_curves::{ChipFloorPlan, TileCurveUnit};
use tilescope_report::Target;
use tilescope_report::units::{IpuId, TileId, grouped};

/// The space for the name of a chip above it.
const NAME: f32 = 16.0;
/// The gap between two chips.
const GAP: f32 = 10.0;
/// The smallest and largest ratio of a tile's height to its width.
const STRETCH: (f32, f32) = (0.35, 1.4);
/// The smallest area of a chip in points. If more chips than fit at this size are to be shown, they
/// scroll.
const LEAST_AREA: f32 = 400.0;
/// The longer edge of chips that scroll, if there is room.
const SCROLLED_CHIP: f32 = 48.0;

#[derive(Clone, Copy)]
pub(crate) struct FloorPlanValues<'a> {
    /// The name for screen readers.
    pub name: &'a str,
    /// The values, one per tile.
    pub values: &'a [u64],
    /// A key for the values: the version of their data, and the part of it.
    pub generation: (u64, u64),
    /// The colour scale; tiles with 0 have the colour of nothing.
    pub scale: HeatScale,
    pub unit: TileCurveUnit,
}

impl FloorPlanValues<'_> {
    fn colour(&self, palette: &ThemePalette, tile: TileId) -> Color32 {
        match self.values.get(tile.index()).copied().unwrap_or(0) {
            0 => palette.lane,
            value => palette.heat(self.scale.share(value)),
        }
    }
}

/// The key of a texture: the values and their colours.
type FloorPlanTextureKey = ((u64, u64), HeatScale, ColourScheme);

/// The chips that are drawn already.
#[derive(Default)]
pub(crate) struct FloorPlanWidget {
    chips: Option<(FloorPlanTextureKey, TextureOwner, Vec<TextureHandle>)>,
    /// The description of the values, with their key.
    words: ((u64, u64), FloorPlanDescription),
}

/// The description of the values for screen readers.
#[derive(Default)]
struct FloorPlanDescription {
    all: String,
    /// The name and value of every column of tiles, by IPU and column; of whole chips if there are
    /// too many columns.
    parts: Vec<(IpuId, Option<usize>, String, String)>,
}

/// The largest number of columns with a separate node.
const MAX_COLUMNS: usize = 256;

struct FloorPlanLayout {
    plan: ChipFloorPlan,
    rect: Rect,
    per_row: usize,
    chip: egui::Vec2,
}

impl FloorPlanLayout {
    /// The layout whose number of chips per row makes them largest. If they do not fit, it extends
    /// below the rectangle.
    fn of(plan: ChipFloorPlan, rect: Rect) -> Self {
        let columns = plan.columns_per_ipu().max(1) as f32;
        let rows = plan.rows as f32;
        let chips = plan.ipus as usize;
        let size = |per_row: usize| {
            let lines = chips.div_ceil(per_row) as f32;
            let room = vec2(
                (rect.width() - GAP * (per_row - 1) as f32) / per_row as f32,
                (rect.height() - (NAME + GAP) * lines) / lines,
            );
            let cell = vec2(room.x / columns, room.y / rows);
            let width = cell.x.min(cell.y / STRETCH.0);
            let height = cell.y.min(width * STRETCH.1);
            vec2((width * columns).max(1.0), (height * rows).max(1.0))
        };
        let measure_area = |per_row: &usize| {
            let size = size(*per_row);
            size.x * size.y
        };
        let per_row =
            // Among equal sizes, the one with more chips per row wins.
            (1..=chips).max_by(|a, b| measure_area(a).total_cmp(&measure_area(b)).then(a.cmp(b))).unwrap_or(1);
        let chip = size(per_row);
        if chip.x * chip.y < LEAST_AREA {
            return Self::scrolled(plan, rect);
        }
        Self { plan, rect, per_row, chip }
    }

    /// The layout of chips with square tiles in as many lines as they need.
    fn scrolled(plan: ChipFloorPlan, rect: Rect) -> Self {
        let tiles = vec2(plan.columns_per_ipu().max(1) as f32, plan.rows.max(1) as f32);
        let chip = tiles * (SCROLLED_CHIP.min(rect.width()) / tiles.max_elem()).max(0.0);
        let chip = chip.max(vec2(1.0, 1.0));
        let per_row = ((rect.width() + GAP) / (chip.x + GAP)).floor().max(1.0) as usize;
        Self { plan, rect, per_row, chip }
    }

    /// The height of all lines.
    fn height(&self) -> f32 {
        let lines = (self.plan.ipus as usize).div_ceil(self.per_row) as f32;
        lines * (self.chip.y + NAME + GAP)
    }

    fn chip(&self, ipu: IpuId) -> Rect {
        let ipu = ipu.index();
        let column = (ipu % self.per_row) as f32;
        let line = (ipu / self.per_row) as f32;
        let corner = self.rect.min
            + vec2(column * (self.chip.x + GAP), line * (self.chip.y + GAP + NAME) + NAME);
        Rect::from_min_size(corner, self.chip)
    }

    fn tile(&self, tile: TileId) -> Rect {
        let (column, row) = self.plan.cell(tile);
        let columns = self.plan.columns_per_ipu();
        // The floor plan leaves a column without tiles between two chips.
        let chip = self.chip(IpuId::from_index(column / (columns + 1)));
        let cell = vec2(chip.width() / columns as f32, chip.height() / self.plan.rows as f32);
        let column = column % (columns + 1);
        Rect::from_min_size(chip.min + vec2(column as f32 * cell.x, row as f32 * cell.y), cell)
    }

    fn tile_at(&self, at: Pos2) -> Option<TileId> {
        let columns = self.plan.columns_per_ipu();
        (0..self.plan.ipus).map(IpuId).find_map(|ipu| {
            let chip = self.chip(ipu);
            let share = (at - chip.min) / chip.size();
            // `contains` includes the right and lower edge, where the cell would be one too far.
            let inside = chip.contains(at) && share.x < 1.0 && share.y < 1.0;
            let column = (share.x * columns as f32) as usize;
            let row = (share.y * self.plan.rows as f32) as usize;
            if !inside {
                return None;
            }
            self.plan.tile_at(ipu.index() * (columns + 1) + column, row)
        })
    }
}

impl FloorPlanDescription {
    fn of(shown: FloorPlanValues<'_>, plan: ChipFloorPlan) -> Self {
        let used = shown.values.iter().filter(|value| **value > 0).count();
        let most = shown.values.iter().max().copied().unwrap_or(0);
        let all = format!("{} tiles, at most {}", grouped(used as u64), shown.unit.exact(most));
        let columns = plan.columns_per_ipu();
        // Each column of a chip is a node for screen readers, unless there are too many columns.
        let apart = columns * plan.ipus as usize <= MAX_COLUMNS;
        let mut parts = Vec::new();
        for ipu in (0..plan.ipus).map(IpuId) {
            for part in 0..if apart { columns } else { 1 } {
                let held = if apart { part..part + 1 } else { 0..columns };
                let first = ipu.index() * (columns + 1);
                let cells = held.flat_map(|column| (0..plan.rows).map(move |row| (column, row)));
                let tiles: Vec<TileId> = cells
                    .filter_map(|(column, row)| plan.tile_at(first + column, row as usize))
                    .collect();
                let values =
                    || tiles.iter().filter_map(|tile| shown.values.get(tile.index()).copied());
                let (Some(low), Some(high)) = (tiles.iter().min(), tiles.iter().max()) else {
                    continue;
                };
                let low = grouped((*low).into());
                let high = grouped((*high).into());
                let name = format!("IPU {ipu}, tiles {low} - {high}");
                let sum = values().sum();
                let most = values().max().unwrap_or(0);
                let value =
                    format!("{} in all, at most {}", shown.unit.exact(sum), shown.unit.exact(most));
                parts.push((ipu, apart.then_some(part), name, value));
            }
        }
        Self { all, parts }
    }
}

impl FloorPlanWidget {
    /// Shows the chips of a machine in all of `ui`, with the selected tiles. Returns the clicked
    /// tile.
    pub(crate) fn ui(
        &mut self,
        ui: &mut Ui,
        on: (&Target, &[TileId]),
        shown: FloorPlanValues<'_>,
    ) -> Option<TileClick> {
        let room = ui.available_rect_before_wrap().shrink2(vec2(12.0, 4.0));
        let places = FloorPlanLayout::of(ChipFloorPlan::from_target(on.0), room);
        let height = places.height();
        if height <= room.height() + 1.0 {
            return self.chips_ui(ui, on, shown, places);
        }
        let scroll = ScrollArea::vertical().id_salt("chips").auto_shrink(false);
        let shown = scroll.show(ui, |ui| {
            let corner = ui.max_rect().min + vec2(12.0, 4.0);
            let rect = Rect::from_min_size(corner, vec2(room.width(), height));
            self.chips_ui(ui, on, shown, FloorPlanLayout { rect, ..places })
        });
        shown.inner
    }

    fn chips_ui(
        &mut self,
        ui: &mut Ui,
        (target, chosen): (&Target, &[TileId]),
        shown: FloorPlanValues<'_>,
        places: FloorPlanLayout,
    ) -> Option<TileClick> {
        let plan = places.plan;
        let rect = places.rect;
        let response = ui.allocate_rect(rect, Sense::click());
        let palette = ThemePalette::for_ui(ui);
        self.draw(ui, plan, shown, palette);
        let painter = ui.painter_at(rect.expand(2.0));
        let visible = painter.clip_rect();
        let (_, _, chips) = self.chips.as_ref()?;
        let whole = Rect::from_min_max(pos2(0.0, 0.0), pos2(1.0, 1.0));
        for (ipu, texture) in IpuId(0).onwards().zip(chips) {
            let chip = places.chip(ipu);
            if !visible.intersects(chip.expand(NAME)) {
                continue;
            }
            painter.image(texture.id(), chip, whole, Color32::WHITE);
            let line = Stroke::new(1.0, palette.outline);
            painter.rect_stroke(chip, 0.0, line, StrokeKind::Outside);
            let name = if chip.width() > 36.0 { format!("IPU {ipu}") } else { ipu.to_string() };
            let font = FontId::proportional(text_size::CAPTION);
            let at = chip.left_top() - vec2(0.0, 3.0);
            let name = painter.layout_no_wrap(name, font, palette.weak_text);
            // Names of narrow chips would overlap; pointing at a tile shows its IPU.
            if name.size().x < chip.width() + GAP {
                let at = at - vec2(0.0, name.size().y);
                painter.galley(at, name, palette.weak_text);
            }
        }
        let stroke = Stroke::new(2.0, palette.selection);
        let exists = |tile: &&TileId| target.has_tile(**tile);
        for tile in chosen.iter().filter(exists) {
            painter.rect_stroke(places.tile(*tile), 0.0, stroke, StrokeKind::Outside);
        }
        self.name_ui(ui, &response, shown, &places);
        focus_ui(ui, &response, rect);
        let hovered = response.hover_pos().and_then(|at| places.tile_at(at));
        if let Some(tile) = hovered {
            let line = Stroke::new(1.0, palette.text);
            painter.rect_stroke(places.tile(tile), 0.0, line, StrokeKind::Outside);
            tile_ui(&response, target, shown, tile);
        }
        let by_key = arrows(ui, &response, plan, chosen.last());
        if let Some(TileClick { tile, .. }) = by_key {
            ui.scroll_to_rect(places.tile(tile), None);
        }
        let add = ui.input(|input| input.modifiers.shift || input.modifiers.command);
        if response.clicked()
            && let Some(at) = response.interact_pointer_pos()
            && let Some(tile) = places.tile_at(at)
        {
            return Some(TileClick { tile, add });
        }
        by_key
    }

    /// The nodes for screen readers. The counts cover all tiles and are made once per map.
    fn name_ui(
        &mut self,
        ui: &Ui,
        response: &Response,
        shown: FloorPlanValues<'_>,
        places: &FloorPlanLayout,
    ) {
        if self.words.0 != shown.generation || self.words.1.all.is_empty() {
            self.words = (shown.generation, FloorPlanDescription::of(shown, places.plan));
        }
        let words = &self.words.1;
        response.widget_info(|| WidgetInfo::labeled(Role::Canvas, true, shown.name));
        ui.ctx().accesskit_node_builder(response.id, |node| node.set_value(words.all.as_str()));
        for (ipu, column, name, value) in &words.parts {
            let chip = places.chip(*ipu);
            if !ui.clip_rect().intersects(chip) {
                continue;
            }
            let width = chip.width() / places.plan.columns_per_ipu().max(1) as f32;
            let rect = match column {
                Some(column) => Rect::from_min_size(
                    chip.min + vec2(*column as f32 * width, 0.0),
                    vec2(width, chip.height()),
                ),
                None => chip,
            };
            node_ui(ui, response.id.with((ipu, column)), rect, Role::Cell, || {
                (name.clone(), value.clone())
            });
        }
    }

    fn draw(
        &mut self,
        ui: &Ui,
        plan: ChipFloorPlan,
        shown: FloorPlanValues<'_>,
        palette: &ThemePalette,
    ) {
        let key = (shown.generation, shown.scale, ColourScheme::of(ui));
        if self.chips.as_ref().is_some_and(|(drawn, owner, _)| *drawn == key && owner.is(ui.ctx()))
        {
            return;
        }
        let options = TextureOptions {
            magnification: egui::TextureFilter::Nearest,
            // Enlarged, a tile is a sharp square; reduced, tiles are averaged instead of left out.
            ..TextureOptions::LINEAR
        };
        let mut chips = Vec::new();
        for ipu in (0..plan.ipus).map(IpuId) {
            let image = image(plan, ipu, shown, palette);
            chips.push(ui.ctx().load_texture("floor plan", image, options));
        }
        self.chips = Some((key, TextureOwner::of(ui.ctx()), chips));
    }
}

/// The tile that an arrow key moves to from the last selected one, and true if it is added.
fn arrows(
    ui: &Ui,
    response: &Response,
    plan: ChipFloorPlan,
    last: Option<&TileId>,
) -> Option<TileClick> {
    if !keeps_arrows(response, ALL_ARROWS) {
        return None;
    }
    let (right, down, add) = ui.input(|input| {
        let count_presses = |key| i64::from(input.key_pressed(key));
        (
            count_presses(Key::ArrowRight) - count_presses(Key::ArrowLeft),
            count_presses(Key::ArrowDown) - count_presses(Key::ArrowUp),
            input.modifiers.shift,
        )
    });
    if (right, down) == (0, 0) {
        return None;
    }
    let Some(last) = last else { return Some(TileClick { tile: TileId(0), add }) };
    let (column, row) = plan.cell(*last);
    let row = usize::try_from(row as i64 + down).ok()?;
    // Chips have a column without tiles between them.
    let columns = [right, 2 * right].map(|by| usize::try_from(column as i64 + by));
    let mut tiles = columns.iter().flatten().filter_map(|column| plan.tile_at(*column, row));
    tiles.next().map(|tile| TileClick { tile, add })
}

fn image(
    plan: ChipFloorPlan,
    ipu: IpuId,
    shown: FloorPlanValues<'_>,
    palette: &ThemePalette,
) -> ColorImage {
    let columns = plan.columns_per_ipu();
    let rows = plan.rows as usize;
    let first = ipu.index() * (columns + 1);
    let mut pixels = Vec::new();
    for row in 0..rows {
        for column in 0..columns {
            pixels.push(match plan.tile_at(first + column, row) {
                Some(tile) => shown.colour(palette, tile),
                None => palette.page,
            });
        }
    }
    ColorImage::new([columns, rows], pixels)
}

fn tile_ui(response: &Response, target: &Target, shown: FloorPlanValues<'_>, tile: TileId) {
    let value = shown.values.get(tile.index()).copied().unwrap_or(0);
    response.clone().on_hover_ui_at_pointer(|ui| {
        let name = match target.ipus_per_replica {
            0 | 1 => format!("Tile {}", grouped(tile.into())),
            _ => format!("Tile {} (IPU {})", grouped(tile.into()), target.ipu_of_tile(tile)),
        };
        ui.label(crate::theme::fonts::strong(name));
        let text = RichText::new(shown.unit.exact(value));
        ui.label(text.weak());
    });
}

#[cfg(test)]
mod tests {
    use super::*;
    use tilescope_fixtures::ReportBuilder;
    use tilescope_report::units::TileRange;

    #[test]
    fn every_tile_is_hit_where_it_is_drawn() {
        for (ipus, tiles) in [(1, 1472), (4, 64), (7, 100)] {
            let target = ReportBuilder::new(ipus, tiles).parts.target;
            let rect = Rect::from_min_size(pos2(30.0, 20.0), vec2(900.0, 500.0));
            let places = FloorPlanLayout::of(ChipFloorPlan::from_target(&target), rect);
            for tile in TileRange::first_tiles(ipus * tiles).iter() {
                let cell = places.tile(tile);
                assert!(rect.contains_rect(cell.shrink(0.01)), "{tile} {cell:?}");
                assert_eq!(places.tile_at(cell.center()), Some(tile));
            }
        }
    }

    #[test]
    fn chips_stay_large_enough_to_see() {
        for ipus in [1, 3, 17, 64, 65, 256, 1000, 1024] {
            let target = ReportBuilder::new(ipus, 1472).parts.target;
            for size in [vec2(780.0, 320.0), vec2(1900.0, 900.0), vec2(200.0, 90.0)] {
                let rect = Rect::from_min_size(pos2(30.0, 20.0), size);
                let places = FloorPlanLayout::of(ChipFloorPlan::from_target(&target), rect);
                let chip = places.chip;
                assert!(chip.x * chip.y >= LEAST_AREA, "{ipus} chips of {chip:?}");
                let last = places.chip(IpuId(ipus - 1));
                let all = Rect::from_min_size(rect.min, vec2(size.x, places.height()));
                assert!(all.expand(0.01).contains_rect(last), "{ipus} chips end at {last:?}");
            }
        }
    }
}
