//! The marks on and beside the picture of a tile's memory.

use super::raster::AddressWindow;
use crate::theme::{ThemePalette, numbers, spacing, text_size};
use crate::widgets::elided_text::elided;
use crate::widgets::pan_zoom_axis::{AxisRange, PanZoomAxis, tick_step};
use crate::widgets::{focus_ui, legend_ui as legend_entry_ui, node_ui};
use egui::accesskit::Role;
use egui::{
    Align2, FontId, Painter, Rect, Response, Stroke, StrokeKind, Ui, WidgetInfo, pos2, vec2,
};
use std::collections::BTreeMap;
use tilescope_analysis::bank_map::PlacedVariable;
use tilescope_analysis::liveness::{AddressTimeline, FreeMemory};
use tilescope_report::MemoryCategory;
use tilescope_report::units::{Bytes, VariableId, exact_bytes, grouped};

/// The smallest part of the picture with a label.
const LEAST_LABEL: [f32; 2] = [72.0, 14.0];
/// The smallest height of a free block with an outline.
const LEAST_BLOCK: f32 = 3.0;
/// The smallest height of a free block that shows its bytes.
const LEAST_BLOCK_LABEL: f32 = 14.0;

/// The layout of this frame.
pub(super) struct AddressLayout {
    pub frame: Rect,
    /// The column of one step.
    pub column: Rect,
    pub steps: PanZoomAxis,
    pub addresses: PanZoomAxis,
}

impl AddressLayout {
    fn x(&self, step: u64) -> f32 {
        self.frame.left() + self.steps.x_from_position(step)
    }

    fn y(&self, address: u64) -> f32 {
        self.frame.bottom() - self.addresses.x_from_position(address)
    }

    /// The visible part of the memory.
    pub(super) fn window(&self) -> AddressWindow {
        AddressWindow {
            steps: self.steps.window(self.frame.width()),
            addresses: self.addresses.window(self.frame.height()),
        }
    }

    /// The rectangle of a part of the memory.
    pub(super) fn rect_of(&self, window: AddressWindow) -> Rect {
        let AddressWindow { steps, addresses } = window;
        Rect::from_min_max(
            pos2(self.x(steps.start), self.y(addresses.end)),
            pos2(self.x(steps.end), self.y(addresses.start)),
        )
    }

    /// The visible rectangle of a variable.
    fn variable(&self, timeline: &AddressTimeline, placed: &PlacedVariable) -> Rect {
        let life = timeline.life(placed);
        let rect = self.rect_of(AddressWindow {
            steps: AxisRange::new(life.start.into(), life.end.into()),
            addresses: AxisRange::new(placed.addresses.start.0, placed.addresses.end.0),
        });
        rect.intersect(self.frame.expand(2.0))
    }
}

/// Paints axes, ends of memory, the step, labels, and the outline of the selected variable.
pub(super) fn marks_ui(
    ui: &Ui,
    layout: &AddressLayout,
    timeline: &AddressTimeline,
    step: u32,
    (chosen, palette): (Option<VariableId>, &ThemePalette),
) {
    let inside = ui.painter_at(layout.frame);
    let painter = ui.painter();
    names(&inside, layout, timeline, palette);
    let ends = [(timeline.interleaved, palette.accent), (timeline.capacity, palette.max_memory)];
    for (address, colour) in ends.into_iter().filter(|(address, _)| *address > Bytes::ZERO) {
        for rect in [layout.frame, layout.column] {
            let line = Stroke::new(1.5, colour);
            ui.painter_at(rect).hline(rect.x_range(), layout.y(address.0), line);
        }
    }
    let from = layout.x(step.into());
    let to = layout.x(u64::from(step) + 1);
    let line = Stroke::new(1.5, palette.selection);
    if to - from > 3.0 {
        let band = Rect::from_x_y_ranges(from..=to, layout.frame.y_range());
        inside.rect_stroke(band, 0.0, line, StrokeKind::Inside);
    } else {
        inside.vline((from + to) / 2.0, layout.frame.y_range(), line);
    }
    let own = timeline.placed.iter().filter(|placed| Some(placed.id) == chosen);
    for rect in own.map(|placed| layout.variable(timeline, placed)).filter(|of| of.is_positive()) {
        inside.rect_stroke(rect, 0.0, Stroke::new(2.0, palette.selection), StrokeKind::Inside);
    }
    let outline = Stroke::new(1.0, palette.outline);
    for rect in [layout.frame, layout.column] {
        painter.rect_stroke(rect, 0.0, outline, StrokeKind::Outside);
    }
    addresses_ui(ui, layout, palette);
    steps_ui(ui, layout, palette);
}

/// The labels of variables that are large enough.
fn names(
    inside: &Painter,
    layout: &AddressLayout,
    timeline: &AddressTimeline,
    palette: &ThemePalette,
) {
    for placed in &timeline.placed {
        let rect = layout.variable(timeline, placed).intersect(layout.frame);
        if rect.width() < LEAST_LABEL[0] || rect.height() < LEAST_LABEL[1] {
            continue;
        }
        let ink = palette.label_text_on(super::raster::colour(placed, palette));
        let font = FontId::proportional(text_size::CAPTION);
        let text = elided(inside, &placed.name, font, ink, rect.width() - 8.0);
        let at = pos2(rect.left() + 4.0, rect.center().y - text.size().y / 2.0);
        inside.galley(at, text, ink);
    }
}

fn addresses_ui(ui: &Ui, layout: &AddressLayout, palette: &ThemePalette) {
    let step = tick_step(layout.addresses.scale(), 44.0).next_power_of_two();
    let window = layout.window().addresses;
    let format = numbers(ui);
    let mut address = window.start.div_ceil(step) * step;
    while address <= window.end {
        let y = layout.y(address);
        if layout.frame.y_range().contains(y) {
            let left = layout.frame.left();
            ui.painter().hline(left - 4.0..=left, y, Stroke::new(1.0, palette.outline));
            let font = FontId::proportional(text_size::CAPTION);
            let text = format.bytes(address);
            let at = pos2(left - 6.0, y);
            ui.painter().text(at, Align2::RIGHT_CENTER, text, font, palette.weak_text);
        }
        address += step;
    }
}

fn steps_ui(ui: &Ui, layout: &AddressLayout, palette: &ThemePalette) {
    let step = tick_step(layout.steps.scale(), 70.0);
    let window = layout.window().steps;
    let bottom = layout.frame.bottom();
    let mut place = window.start.div_ceil(step) * step;
    while place <= window.end {
        let x = layout.x(place);
        if layout.frame.x_range().contains(x) {
            ui.painter().vline(x, bottom..=bottom + 4.0, Stroke::new(1.0, palette.outline));
            let font = FontId::proportional(text_size::CAPTION);
            let at = pos2(x, bottom + 5.0);
            let align =
                if x - layout.frame.left() < 8.0 { Align2::LEFT_TOP } else { Align2::CENTER_TOP };
            ui.painter().text(at, align, grouped(place), font, palette.weak_text);
        }
        place += step;
    }
}

/// The free blocks of the step beside the picture, outlined, with their bytes.
pub(super) fn column_ui(
    ui: &Ui,
    layout: &AddressLayout,
    timeline: &AddressTimeline,
    (step, free): (u32, &FreeMemory),
) {
    let palette = ThemePalette::for_ui(ui);
    let format = numbers(ui);
    let painter = ui.painter_at(layout.column);
    let largest = free.largest().map(|block| block.addresses.clone());
    for block in &free.blocks {
        let top = layout.y(block.addresses.end.0);
        let bottom = layout.y(block.addresses.start.0);
        let rect = Rect::from_x_y_ranges(layout.column.x_range(), top..=bottom);
        if rect.height() < LEAST_BLOCK || !rect.intersects(layout.column) {
            continue;
        }
        let is_largest = Some(&block.addresses) == largest.as_ref();
        let colour = if is_largest { palette.accent } else { palette.outline };
        painter.rect(
            rect.shrink(0.5),
            0.0,
            palette.page,
            Stroke::new(1.0, colour),
            StrokeKind::Inside,
        );
        if rect.intersect(layout.column).height() >= LEAST_BLOCK_LABEL {
            let font = FontId::proportional(text_size::CAPTION);
            let ink = if is_largest { palette.accent } else { palette.weak_text };
            let text =
                elided(&painter, &format.bytes(block.bytes().0), font, ink, rect.width() - 4.0);
            painter.galley(rect.intersect(layout.column).center() - text.size() / 2.0, text, ink);
        }
    }
    let font = FontId::proportional(text_size::CAPTION);
    let name = if timeline.peak() == Some(step) { "Peak" } else { "Step" };
    let text = format!("{name} {}", grouped(step.into()));
    let at = pos2(layout.column.center().x, layout.frame.bottom() + 5.0);
    ui.painter().text(at, Align2::CENTER_TOP, text, font, palette.weak_text);
}

/// The outline of the object under the pointer.
pub(super) fn hovered_ui(
    ui: &Ui,
    layout: &AddressLayout,
    timeline: &AddressTimeline,
    found: Option<&PlacedVariable>,
) {
    let Some(placed) = found else { return };
    let rect = layout.variable(timeline, placed);
    let stroke = Stroke::new(1.5, ThemePalette::for_ui(ui).text);
    ui.painter_at(layout.frame).rect_stroke(rect, 0.0, stroke, StrokeKind::Outside);
}

/// The picture, its largest variables and its free blocks, for screen readers.
pub(super) fn nodes_ui(
    ui: &Ui,
    layout: &AddressLayout,
    timeline: &AddressTimeline,
    (response, step): (&Response, u32),
) {
    let name = format!("Memory by address of tile {}", grouped(timeline.tile.into()));
    response.widget_info(|| WidgetInfo::labeled(Role::Canvas, true, &name));
    let value = format!(
        "{} variables over {} steps",
        grouped(timeline.placed.len() as u64),
        grouped(timeline.steps().into())
    );
    ui.ctx().accesskit_node_builder(response.id, |node| node.set_value(value));
    focus_ui(ui, response, layout.frame);
    for (place, placed) in timeline.live_in(step..step + 1) {
        let rect = layout.variable(timeline, placed).intersect(layout.frame);
        if rect.width() < LEAST_LABEL[0] || rect.height() < LEAST_LABEL[1] {
            continue;
        }
        let bytes = placed.addresses.end - placed.addresses.start;
        node_ui(ui, response.id.with(("variable", place)), rect, Role::Cell, || {
            let start = exact_bytes(placed.addresses.start.0);
            (placed.name.clone(), format!("{} at {start}", exact_bytes(bytes.0)))
        });
    }
    for (place, block) in timeline.free_in(step..step + 1).blocks.iter().enumerate() {
        let top = layout.y(block.addresses.end.0);
        let bottom = layout.y(block.addresses.start.0);
        let rect = Rect::from_x_y_ranges(layout.column.x_range(), top..=bottom);
        if rect.height() < LEAST_BLOCK_LABEL {
            continue;
        }
        node_ui(ui, response.id.with(("free", place)), rect, Role::Cell, || {
            let start = exact_bytes(block.addresses.start.0);
            ("Free block".to_owned(), format!("{} at {start}", exact_bytes(block.bytes().0)))
        });
    }
}

/// The colours of the categories on the tile, most bytes first, and of the lines.
pub(super) fn legend_ui(ui: &mut Ui, rect: Rect, timeline: &AddressTimeline) {
    let palette = ThemePalette::for_ui(ui);
    let mut bytes: BTreeMap<MemoryCategory, Bytes> = BTreeMap::new();
    for placed in &timeline.placed {
        let of = bytes.entry(placed.category).or_default();
        *of = of.saturating_add(placed.addresses.end - placed.addresses.start);
    }
    let mut categories: Vec<(MemoryCategory, Bytes)> = bytes.into_iter().collect();
    categories.sort_by_key(|(category, bytes)| (std::cmp::Reverse(*bytes), *category));
    let rect = rect.shrink2(vec2(spacing::L, 0.0));
    ui.scope_builder(egui::UiBuilder::new().max_rect(rect), |ui| {
        ui.spacing_mut().item_spacing.x = spacing::S;
        egui::ScrollArea::horizontal().id_salt("categories").auto_shrink(false).show(ui, |ui| {
            ui.horizontal(|ui| {
                legend_entry_ui(ui, palette.lane, "Free");
                for (category, _) in categories {
                    ui.add_space(spacing::XS);
                    legend_entry_ui(ui, palette.category(category), category.title());
                }
                ui.add_space(spacing::XS);
                legend_entry_ui(ui, palette.accent, "Interleaved from here");
                legend_entry_ui(ui, palette.max_memory, "End of memory");
            });
        });
    });
}
