//! The memory map: the variables of a tile by address. Always-live variables are at the top. Below
//! it are variables that share addresses over time, packed into rows without overlap.

use crate::theme::fonts::strong;
use crate::theme::{ThemePalette, numbers, spacing, text_size};
use crate::views::ViewContext;
use crate::widgets::background_query::BackgroundQuery;
use crate::widgets::elided_text::elided;
use crate::widgets::pan_zoom_axis::{AxisLimits, AxisRange, PanZoomAxis, tick_step};
use crate::widgets::query_state::QueryTexts;
use crate::widgets::{SIDE_ARROWS, focus_ui, hint_ui, keeps_arrows, node_ui};
use egui::accesskit::Role;
use egui::{
    Align2, Color32, CursorIcon, FontId, Key, Mesh, Pos2, Rect, Response, RichText, Sense, Shape,
    Stroke, StrokeKind, Ui, WidgetInfo, pos2, vec2,
};
use serde::{Deserialize, Serialize};
use tilescope_analysis::bank_map::{BankMap, PlacedVariable, bank_map};
use tilescope_analysis::memory::fullest_tile;
use tilescope_report::units::{Bytes, TileId, VariableId, exact_bytes, grouped};

/// The smallest and largest height of a row.
const ROW: (f32, f32) = (9.0, 22.0);
/// The space for addresses above the rows.
const RULER: f32 = 20.0;
/// The smallest width of a part with a label.
const LEAST_LABEL: f32 = 34.0;
/// The margin beside the map.
const SIDE: f32 = spacing::L;

/// The state of the map.
#[derive(Default, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct MemoryMapPanel {
    #[serde(skip)]
    map: BackgroundQuery<Option<TileId>, BankMap>,
    axis: Option<PanZoomAxis>,
    limits: Option<(Bytes, f32)>,
    scroll: f32,
}

/// The layout of the memory map in this frame.
struct MemoryMapLayout {
    rect: Rect,
    axis: PanZoomAxis,
    row: f32,
    scroll: f32,
}

impl MemoryMapLayout {
    fn part(&self, placed: &PlacedVariable) -> Rect {
        let x = |address: u64| {
            let x = self.rect.left() + self.axis.x_from_position(address);
            x.clamp(self.rect.left() - 4.0, self.rect.right() + 4.0)
        };
        let left = x(placed.addresses.start.0);
        let right = x(placed.addresses.end.0);
        let top = self.rect.top() + placed.row as f32 * self.row - self.scroll;
        Rect::from_min_max(pos2(left, top), pos2(right.max(left + 1.0), top + self.row - 1.0))
    }

    fn at<'a>(&self, map: &'a BankMap, at: Pos2) -> Option<&'a PlacedVariable> {
        if !self.rect.contains(at) {
            return None;
        }
        let row = ((at.y - self.rect.top() + self.scroll) / self.row) as u32;
        let own = map.placed.iter().filter(|part| part.row == row);
        let measure_distance = |part: &&PlacedVariable| {
            let rect = self.part(part);
            (rect.left() - at.x).max(at.x - rect.right()).max(0.0)
        };
        let near = own.min_by(|a, b| measure_distance(a).total_cmp(&measure_distance(b)));
        near.filter(|part| measure_distance(part) <= 2.0)
    }
}

impl MemoryMapPanel {
    /// Shows the last selected tile, or the fullest one. Returns the clicked variable.
    pub(crate) fn ui(
        &mut self,
        ui: &mut Ui,
        context: &ViewContext<'_>,
        chosen: &[VariableId],
    ) -> Option<VariableId> {
        let tile = context.selection.tiles.last().copied();
        let texts = QueryTexts { waiting: "Reading…", failed: "The memory map cannot be read" };
        let map = context.ask(ui, &mut self.map, &tile, |report, tile| {
            bank_map(report, tile.map_or_else(|| fullest_tile(report), Ok)?)
        });
        map.show(ui, texts, |ui, map| self.tile_ui(ui, context, map, chosen)).flatten()
    }

    fn tile_ui(
        &mut self,
        ui: &mut Ui,
        context: &ViewContext<'_>,
        map: &BankMap,
        chosen: &[VariableId],
    ) -> Option<VariableId> {
        if map.placed.is_empty() {
            hint_ui(ui, &format!("No variable is on tile {}.", grouped(map.tile.into())));
            return None;
        }
        if map.placed.len() > 1 && map.placed.iter().all(|part| part.addresses.start == Bytes::ZERO)
        {
            hint_ui(ui, "This report does not record the addresses of variables.");
            return None;
        }
        self.map_ui(ui, context, map, chosen)
    }

    fn map_ui(
        &mut self,
        ui: &mut Ui,
        context: &ViewContext<'_>,
        map: &BankMap,
        chosen: &[VariableId],
    ) -> Option<VariableId> {
        head_ui(ui, context, map);
        let area = ui.available_rect_before_wrap().shrink2(vec2(SIDE, 0.0));
        let rect = area.with_min_y((area.top() + RULER).min(area.bottom() - 10.0));
        let last = map.placed.iter().map(|part| part.addresses.end).max().unwrap_or(Bytes::ZERO);
        let end = last.max(map.capacity).max(Bytes(1));
        let limits =
            AxisLimits { range: axis_range_of_addresses(end), width: rect.width().max(20.0) };
        if self.limits != Some((end, limits.width)) {
            self.limits = Some((end, limits.width));
            self.axis = None;
        }
        // The initial range ends at the highest variable; zooming out shows all memory.
        let used = axis_range_of_addresses((last + last / 16).clamp(Bytes(1), end));
        let axis = self.axis.unwrap_or_else(|| PanZoomAxis::fitting_exactly(used, limits.width));
        let row = (rect.height() / map.rows.max(1) as f32).floor().clamp(ROW.0, ROW.1);
        let most = (map.rows as f32 * row - rect.height()).max(0.0);
        self.scroll = self.scroll.clamp(0.0, most);
        let places = MemoryMapLayout { rect, axis, row, scroll: self.scroll };
        let response = ui.allocate_rect(area, Sense::click_and_drag());
        let name = format!("Memory map of tile {}", grouped(map.tile.into()));
        response.widget_info(|| WidgetInfo::labeled(Role::Canvas, true, &name));
        ui.ctx().accesskit_node_builder(response.id, |node| {
            node.set_value(format!("{} variables in {} rows", map.placed.len(), map.rows))
        });
        paint(ui, map, &places, chosen);
        focus_ui(ui, &response, area);
        self.pointer_ui(ui, &places, limits, &response);
        if let Some(next) = arrows(ui, &response, map, chosen) {
            return Some(next);
        }
        let part = response.hover_pos().and_then(|at| places.at(map, at))?;
        let stroke = Stroke::new(1.5, ThemePalette::for_ui(ui).text);
        let frame = places.part(part);
        ui.painter_at(rect).rect_stroke(frame, 0.0, stroke, StrokeKind::Outside);
        call_out_ui(&response, part);
        if response.clicked() { Some(part.id) } else { None }
    }

    fn pointer_ui(
        &mut self,
        ui: &Ui,
        places: &MemoryMapLayout,
        limits: AxisLimits,
        response: &Response,
    ) {
        if response.double_clicked() {
            self.axis = None;
            return;
        }
        let mut moved = places.axis;
        if response.dragged() {
            ui.ctx().set_cursor_icon(CursorIcon::Grabbing);
            moved = moved.panned(response.drag_delta().x);
            self.scroll -= response.drag_delta().y;
        }
        if let Some(at) = response.hover_pos() {
            let (delta, zoom, alt) =
                ui.input(|i| (i.smooth_scroll_delta(), i.zoom_delta(), i.modifiers.alt));
            if alt {
                self.scroll -= delta.y;
            } else {
                let factor = f64::from(zoom) * (f64::from(delta.y) * 0.006).exp();
                if factor != 1.0 {
                    moved = moved.zoomed(factor, at.x - places.rect.left(), limits);
                }
                if delta.x != 0.0 {
                    moved = moved.panned(delta.x);
                }
            }
        }
        if moved != places.axis {
            self.axis = Some(moved.clamped_to(limits));
        }
    }
}

/// The variable that an arrow key moves to: the next one by row and address, or the previous one.
fn arrows(
    ui: &Ui,
    response: &Response,
    map: &BankMap,
    chosen: &[VariableId],
) -> Option<VariableId> {
    if !keeps_arrows(response, SIDE_ARROWS) {
        return None;
    }
    let (left, right) =
        ui.input(|input| (input.key_pressed(Key::ArrowLeft), input.key_pressed(Key::ArrowRight)));
    let at = chosen.last().and_then(|id| map.placed.iter().position(|part| part.id == *id));
    let place = match (left, right) {
        (true, false) => at.map_or(map.placed.len() - 1, |at| at.saturating_sub(1)),
        (false, true) => at.map_or(0, |at| (at + 1).min(map.placed.len() - 1)),
        _ => return None,
    };
    Some(map.placed[place].id)
}

/// The number of the tile, and its fill level.
fn head_ui(ui: &mut Ui, context: &ViewContext<'_>, map: &BankMap) {
    let palette = ThemePalette::for_ui(ui);
    let numbers = numbers(ui);
    ui.horizontal_wrapped(|ui| {
        ui.add_space(SIDE);
        let which = if context.selection.tiles.is_empty() {
            "the fullest tile; select another one to see its map"
        } else {
            "the last tile selected"
        };
        ui.label(strong(format!("Tile {}", grouped(map.tile.into()))));
        ui.weak(which);
        let banks = map.capacity.0.checked_div(map.bank.0).unwrap_or(0);
        let text = format!(
            "{} in {} banks of {}; interleaved from {}",
            numbers.bytes(map.capacity.0),
            grouped(banks),
            numbers.bytes(map.bank.0),
            numbers.bytes(map.interleaved.0),
        );
        ui.weak(text).on_hover_text(
            "Code is fetched from non-interleaved memory only. In interleaved memory two banks \
             are read at once, 128 bits a cycle.",
        );
        if map.truncated {
            let text = "Not all variables are shown.";
            ui.label(RichText::new(text).color(palette.warning));
        }
    });
}

fn paint(ui: &Ui, map: &BankMap, places: &MemoryMapLayout, chosen: &[VariableId]) {
    let palette = ThemePalette::for_ui(ui);
    let rect = places.rect;
    let painter = ui.painter_at(rect.with_min_y(rect.top() - RULER));
    let inside = ui.painter_at(rect);
    inside.rect_filled(rect, 0.0, palette.lane);
    let x = |address: u64| rect.left() + places.axis.x_from_position(address);
    ground(&inside, map, places, palette, x);
    let mut mesh = Mesh::default();
    let mut labels: Vec<(&PlacedVariable, Rect, Color32)> = Vec::new();
    for part in &map.placed {
        let own = places.part(part);
        if !own.intersects(rect) {
            continue;
        }
        let colour = palette.category(part.category);
        mesh.add_colored_rect(own, colour);
        if own.width() >= LEAST_LABEL && own.height() >= ROW.0 {
            labels.push((part, own, colour));
        }
    }
    inside.add(Shape::mesh(mesh));
    for (part, own, colour) in labels {
        let room = own.intersect(rect).shrink2(vec2(3.0, 0.0));
        let id = ui.scope_id().with(("part", part.id.0));
        node_ui(ui, id, own.intersect(rect), Role::Cell, || {
            (
                part.name.clone(),
                format!("{} at {}", exact_bytes(bytes(part)), exact_bytes(start(part))),
            )
        });
        if room.width() < LEAST_LABEL - 8.0 || own.height() < 13.0 {
            continue;
        }
        let ink = palette.label_text_on(colour);
        let text = elided(
            &inside,
            &part.name,
            FontId::proportional(text_size::CAPTION),
            ink,
            room.width(),
        );
        let at = pos2(room.left(), own.center().y - text.size().y / 2.0);
        inside.galley(at, text, ink);
    }
    let stroke = Stroke::new(2.0, palette.selection);
    for part in map.placed.iter().filter(|part| chosen.contains(&part.id)) {
        inside.rect_stroke(places.part(part), 0.0, stroke, StrokeKind::Outside);
    }
    let step = address_step(places.axis);
    let window = places.axis.window(rect.width());
    let mut address = window.start.div_ceil(step) * step;
    while address <= window.end {
        painter.vline(x(address), rect.top() - 4.0..=rect.top(), Stroke::new(1.0, palette.outline));
        let at = pos2(x(address), rect.top() - 5.0);
        let align = if x(address) - rect.left() < 20.0 {
            Align2::LEFT_BOTTOM
        } else {
            Align2::CENTER_BOTTOM
        };
        let font = FontId::proportional(text_size::CAPTION);
        let text = numbers(ui).bytes(address);
        let galley = painter.layout_no_wrap(text, font, palette.weak_text);
        let place = align.anchor_size(at, galley.size());
        if place.right() <= rect.right() {
            painter.galley(place.min, galley, palette.weak_text);
        }
        address += step;
    }
}

/// Banks as stripes if they are wide enough, and the ends of non-interleaved memory and of all
/// memory.
fn ground(
    painter: &egui::Painter,
    map: &BankMap,
    places: &MemoryMapLayout,
    palette: &ThemePalette,
    x: impl Fn(u64) -> f32,
) {
    let rect = places.rect;
    let window = places.axis.window(rect.width());
    if map.bank > Bytes::ZERO && map.bank.as_f64() / places.axis.scale() >= 6.0 {
        let last = window.end.min(map.capacity.0) / map.bank.0;
        for bank in (window.start / map.bank.0..=last).filter(|bank| bank % 2 == 1) {
            let left = x(bank * map.bank.0);
            let right = x((bank + 1) * map.bank.0);
            let stripe = Rect::from_x_y_ranges(left..=right, rect.y_range());
            painter.rect_filled(stripe, 0.0, palette.stripe);
        }
    }
    for (address, colour) in [(map.interleaved, palette.accent), (map.capacity, palette.max_memory)]
    {
        if address > Bytes::ZERO {
            painter.vline(x(address.0), rect.y_range(), Stroke::new(1.5, colour));
        }
    }
}

/// The axis over the addresses below `end`.
fn axis_range_of_addresses(end: Bytes) -> AxisRange {
    AxisRange::new(0, end.0)
}

/// The distance between labelled addresses, a power of two.
fn address_step(axis: PanZoomAxis) -> u64 {
    tick_step(axis.scale(), 60.0).next_power_of_two()
}

fn bytes(part: &PlacedVariable) -> u64 {
    (part.addresses.end - part.addresses.start).0
}

fn start(part: &PlacedVariable) -> u64 {
    part.addresses.start.0
}

fn call_out_ui(response: &Response, part: &PlacedVariable) {
    response.clone().on_hover_ui_at_pointer(|ui| {
        ui.set_max_width(420.0);
        let name: String = part.name.chars().take(240).collect();
        ui.label(strong(name));
        ui.label(part.category.title());
        let last = part.addresses.end - Bytes(1);
        let place = format!(
            "{} at {} - {}",
            exact_bytes(bytes(part)),
            grouped(start(part)),
            grouped(last.0)
        );
        ui.label(place);
        let life = match &part.lifetime {
            None => "always live".to_owned(),
            Some(life) => {
                let last = life.end.saturating_sub(1);
                format!("live in steps {} - {}", grouped(life.start.into()), grouped(last.into()))
            }
        };
        ui.weak(life);
    });
}
