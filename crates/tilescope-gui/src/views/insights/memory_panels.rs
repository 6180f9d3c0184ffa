//! The panels about memory: does the program fit, which tiles are worst, how full are the others.

use crate::model::command::AppCommand;
use crate::model::preferences::MemoryPrefs;
use crate::model::view_id::ViewId;
use crate::theme::fonts::strong;
use crate::theme::{ThemePalette, numbers, spacing, text_size};
use crate::views::ViewContext;
use crate::views::memory::TileFullness;
use egui::accesskit::Role;
use egui::{
    Align2, CornerRadius, FontId, Frame, Margin, Rect, RichText, Sense, Stroke, StrokeKind, Ui,
    WidgetInfo, pos2, vec2,
};
use tilescope_analysis::insights::{FullestTile, TileMemoryBin, TileMemoryOverview};
use tilescope_report::units::{Bytes, exact_bytes, grouped, percent};

/// The height of a panel.
const HEIGHT: f32 = 138.0;
/// Narrower panels go below each other.
const LEAST_WIDTH: f32 = 300.0;
/// The width from which all panels are side by side.
pub(crate) const ALL_BESIDE: f32 = 3.0 * LEAST_WIDTH;

/// Shows the panels, side by side or one below the other.
pub(crate) fn memory_ui(ui: &mut Ui, context: &ViewContext<'_>, picture: &TileMemoryOverview) {
    let columns = ((ui.available_width() / LEAST_WIDTH) as usize).clamp(1, 3);
    let gap = spacing::L;
    let width = (ui.available_width() - gap * (columns as f32 - 1.0)) / columns as f32;
    let panels = [0usize, 1, 2];
    for row in panels.chunks(columns) {
        ui.horizontal(|ui| {
            ui.spacing_mut().item_spacing.x = gap;
            for panel in row {
                let (title, hint) = [
                    ("Memory in use", "Bytes used over all tiles, excluding gaps."),
                    ("Fullest tiles", "Bytes below the last used address of a tile."),
                    ("Tiles by memory", "Number of tiles by bytes used, including gaps."),
                ][*panel];
                panel_ui(ui, width, title, hint, |ui| match panel {
                    0 => verdict_ui(ui, picture),
                    1 => worst_ui(ui, context, picture),
                    _ => histogram_ui(ui, picture),
                });
            }
        });
        ui.add_space(spacing::M);
    }
}

fn panel_ui(ui: &mut Ui, width: f32, title: &str, hint: &str, contents: impl FnOnce(&mut Ui)) {
    let palette = ThemePalette::for_ui(ui);
    let frame = Frame::new()
        .stroke(Stroke::new(1.0, palette.rule))
        .corner_radius(CornerRadius::same(8))
        .inner_margin(Margin::symmetric(12, 8));
    frame.show(ui, |ui| {
        ui.set_width(width - 26.0);
        ui.set_height(HEIGHT);
        ui.vertical(|ui| {
            ui.spacing_mut().item_spacing = vec2(spacing::M, spacing::XS);
            let text = RichText::new(title).weak().size(text_size::SMALL);
            ui.label(text).on_hover_text(hint);
            contents(ui);
        });
    });
}

fn verdict_ui(ui: &mut Ui, picture: &TileMemoryOverview) {
    let palette = ThemePalette::for_ui(ui);
    if picture.capacity == Bytes::ZERO || picture.used == Bytes::ZERO {
        let text = "This report does not record memory use and capacity.";
        ui.weak(text);
        return;
    }
    let share = picture.used.as_f64() / picture.capacity.as_f64();
    let fullest = picture.worst.iter().map(|tile| tile.bytes).max().unwrap_or(Bytes::ZERO);
    let free = picture.tile_capacity.saturating_sub(fullest);
    let fullness = if picture.overfull > 0 {
        TileFullness::Exceeds
    } else {
        TileFullness::of(fullest, picture.tile_capacity)
    };
    let words = match fullness {
        TileFullness::Exceeds => "Out of memory".to_owned(),
        TileFullness::NearlyFull => {
            format!("Fits, {} free on the fullest tile", numbers(ui).bytes(free.0))
        }
        TileFullness::Fits => "Fits in memory".to_owned(),
    };
    ui.label(strong(words).size(text_size::HEADING).color(fullness.colour(palette)));
    let (rect, response) = ui.allocate_exact_size(vec2(ui.available_width(), 14.0), Sense::hover());
    response.widget_info(|| WidgetInfo::labeled(Role::Meter, true, "Memory in use"));
    ui.ctx().accesskit_node_builder(response.id, |node| node.set_value(percent(share)));
    ui.painter().rect_filled(rect, CornerRadius::same(3), palette.lane);
    let filled =
        Rect::from_min_size(rect.min, vec2(rect.width() * share.min(1.0) as f32, rect.height()));
    ui.painter().rect_filled(filled, CornerRadius::same(3), palette.memory_line);
    let [used, capacity] = [picture.used, picture.capacity].map(|value| numbers(ui).bytes(value.0));
    let text = format!("{used} of {capacity} ({})", percent(share));
    ui.label(text).on_hover_text(exact_bytes(picture.used.0));
    if picture.overfull > 0 {
        let text = format!("{} tiles exceed their memory", grouped(picture.overfull));
        ui.label(RichText::new(text).color(palette.error));
    }
    let text = "Figures are per replica.";
    ui.label(RichText::new(text).weak().size(text_size::CAPTION));
}

fn worst_ui(ui: &mut Ui, context: &ViewContext<'_>, picture: &TileMemoryOverview) {
    let most = picture.worst.iter().map(|tile| tile.bytes).max().unwrap_or(Bytes::ZERO);
    if most == Bytes::ZERO {
        let text = "Memory per tile was not recorded.";
        ui.weak(text);
        return;
    }
    let top = most.max(picture.tile_capacity).max(Bytes(1));
    ui.spacing_mut().item_spacing.y = spacing::XXS;
    for worst in &picture.worst {
        if worst_tile_ui(ui, worst, top, picture.tile_capacity) {
            // Tiles are ranked with their gaps: the graph must include them too.
            let prefs = MemoryPrefs { include_gaps: true, ..context.prefs.memory };
            context.commands.push(AppCommand::SetMemoryPrefs(prefs));
            context.commands.push(AppCommand::SelectTiles(vec![worst.tile]));
            context.commands.push(AppCommand::ShowView(ViewId::Memory));
        }
    }
}

/// Shows one bar. Returns true if it was clicked.
fn worst_tile_ui(ui: &mut Ui, worst: &FullestTile, top: Bytes, capacity: Bytes) -> bool {
    let palette = ThemePalette::for_ui(ui);
    let (rect, response) = ui.allocate_exact_size(vec2(ui.available_width(), 21.0), Sense::click());
    let name = format!("Tile {} (IPU {})", grouped(worst.tile.into()), worst.ipu);
    let value = numbers(ui).bytes(worst.bytes.0);
    response.widget_info(|| WidgetInfo::labeled(Role::Button, true, &name));
    ui.ctx().accesskit_node_builder(response.id, |node| node.set_value(value.clone()));
    let painter = ui.painter_at(rect);
    if response.hovered() {
        painter.rect_filled(rect, CornerRadius::same(3), palette.hover);
    }
    crate::widgets::focus_ui(ui, &response, rect);
    let font = FontId::proportional(text_size::SMALL);
    painter.text(rect.left_center(), Align2::LEFT_CENTER, &name, font.clone(), palette.text);
    let left = rect.left() + 122.0;
    let room = (rect.right() - 64.0 - left).max(10.0);
    let share = worst.bytes.0 as f32 / top.0 as f32;
    let ground = Rect::from_min_size(pos2(left, rect.top() + 4.0), vec2(room, 13.0));
    painter.rect_filled(ground, CornerRadius::same(2), palette.lane);
    let bar = Rect::from_min_size(ground.min, vec2(room * share, 13.0));
    let colour = TileFullness::of(worst.bytes, capacity).bar_colour(palette);
    painter.rect_filled(bar, CornerRadius::same(2), colour);
    if capacity > Bytes::ZERO {
        let x = ground.left() + room * (capacity.0 as f32 / top.0 as f32).min(1.0);
        painter.vline(x - 0.5, ground.y_range(), Stroke::new(1.5, palette.max_memory));
    }
    painter.text(rect.right_center(), Align2::RIGHT_CENTER, &value, font, palette.text);
    let hint = format!("{}, including gaps; click to see its contents", exact_bytes(worst.bytes.0));
    response.on_hover_text(hint).clicked()
}

fn histogram_ui(ui: &mut Ui, picture: &TileMemoryOverview) {
    let palette = ThemePalette::for_ui(ui);
    let most = picture.histogram.iter().map(|bucket| bucket.tiles).max().unwrap_or(0);
    if most == 0 {
        let text = "Memory per tile was not recorded.";
        ui.weak(text);
        return;
    }
    let size = vec2(ui.available_width(), (ui.available_height() - 18.0).max(40.0));
    let (rect, _) = ui.allocate_exact_size(size, Sense::hover());
    let width = rect.width() / picture.histogram.len() as f32;
    for (index, bucket) in picture.histogram.iter().enumerate() {
        let left = rect.left() + width * index as f32;
        let place = Rect::from_min_size(pos2(left, rect.top()), vec2(width, rect.height()));
        bucket_ui(ui, bucket, place, most, index);
    }
    let line = Stroke::new(1.0, palette.outline);
    ui.painter().hline(rect.x_range(), rect.bottom(), line);
    let font = FontId::proportional(text_size::CAPTION);
    let last = picture.histogram.last().map_or(Bytes::ZERO, |bucket| bucket.to);
    for (at, align, text) in [
        (rect.left_bottom(), Align2::LEFT_TOP, "0 B".to_owned()),
        (rect.right_bottom(), Align2::RIGHT_TOP, numbers(ui).bytes(last.0)),
    ] {
        ui.painter().text(at + vec2(0.0, 3.0), align, text, font.clone(), palette.weak_text);
    }
}

fn bucket_ui(ui: &Ui, bucket: &TileMemoryBin, place: Rect, most: u64, index: usize) {
    let palette = ThemePalette::for_ui(ui);
    let ends = [bucket.from, bucket.to].map(|end| numbers(ui).bytes(end.0));
    let range = ends.join(" to ");
    let tiles = format!("{} tiles", grouped(bucket.tiles));
    let id = ui.scope_id().with(("bucket", index));
    let response = ui.interact(place, id, Sense::hover());
    response.widget_info(|| WidgetInfo::labeled(Role::GraphicsObject, true, &range));
    ui.ctx().accesskit_node_builder(id, |node| node.set_value(tiles.clone()));
    let share = bucket.tiles as f32 / most as f32;
    // A small number of tiles must stay visible beside a large one.
    let height = if bucket.tiles == 0 { 0.0 } else { (place.height() * share).max(2.0) };
    let bar = Rect::from_min_max(pos2(place.left() + 1.0, place.bottom() - height), place.max);
    ui.painter().rect_filled(bar, 1.0, palette.memory_line);
    if response.hovered() {
        let stroke = Stroke::new(1.0, palette.outline);
        ui.painter().rect_stroke(place, 0.0, stroke, StrokeKind::Inside);
    }
    response.on_hover_text(format!("{tiles} use {range}"));
}
