//! The lanes: where they lie, how they are painted, what the pointer does on them.

use super::chosen::{self, ChosenBar};
use super::colours::colour;
use super::ruler::{self, MARK_HEIGHT, marks_ui, paint_ruler};
use super::scene::{COMMON_MARKS, IpuLanes, Prepared, Scene, SceneKey, rows_of};
use super::{ExecutionTrace, ask_scene, grouping, id, padded, zoomed_to};
use crate::analysis::trace::{Item, Kind, LaneItems, Style};
use crate::gui::command::{ChosenStep, Command};
use crate::gui::theme::{Palette, mix};
use crate::gui::views::ViewContext;
use crate::gui::widgets::axis::{Axis, Limits};
use crate::gui::widgets::overview::{self, overview_ui};
use crate::gui::widgets::tiled::Tiled;
use crate::gui::widgets::{elided::elided, focus_ui, region_ui};
use crate::gui::worker::Asked;
use crate::report::MarkKind;
use crate::units::{Cycles, grouped};
use egui::accesskit::Role;
use egui::{
    Align2, Color32, CornerRadius, CursorIcon, FontId, Painter, PointerButton, Pos2, Rect,
    Response, RichText, Sense, Shape, Stroke, StrokeKind, Ui, WidgetInfo, pos2, vec2,
};
use std::sync::Arc;

/// Width of the names left of the lanes.
const GUTTER: f32 = 84.0;
/// Least height of a row of the flame.
const FLAME_ROW: f32 = 19.0;
/// Most height of a row of the flame, where there is room.
const TALL_FLAME_ROW: f32 = 26.0;
/// Height of the only row of the flat view.
const FLAT_ROW: f32 = 34.0;
/// Space between the groups of tiles of an IPU, where the dashed line lies.
const SUB_LANE_GAP: f32 = 7.0;
/// Space between IPUs.
const IPU_GAP: f32 = 8.0;
/// Narrowest bar with a name on it.
const LEAST_LABEL: f32 = 26.0;
/// How near the pointer must be to a narrow bar.
const REACH: f32 = 3.0;
/// How much of a bar is covered while another one is chosen.
const VEIL: f32 = 0.55;
/// Width of the scroll bar.
const SCROLL_BAR: f32 = 10.0;

/// Where everything lies on the screen.
struct Places {
    overview: Rect,
    ruler: Rect,
    marks: Rect,
    lanes: Rect,
}

/// Where one IPU lies, in points from the top of all lanes.
struct Block<'a> {
    lanes: &'a IpuLanes,
    rows: Vec<u32>,
    top: f64,
    /// Height of the row of stages above the bars.
    marks: f32,
    row_height: f32,
}

impl Block<'_> {
    fn height(&self) -> f32 {
        let rows: u32 = self.rows.iter().sum();
        let gaps = SUB_LANE_GAP * self.rows.len().saturating_sub(1) as f32;
        self.marks + rows as f32 * self.row_height + gaps
    }

    /// First point of a group of tiles below the top of the bars.
    fn sub_lane_top(&self, index: usize) -> f32 {
        let above: u32 = self.rows[..index].iter().sum();
        above as f32 * self.row_height + SUB_LANE_GAP * index as f32
    }

    /// The group of tiles and the row at a height below the top of the bars.
    fn row_at(&self, y: f32) -> Option<(usize, u32)> {
        self.rows.iter().enumerate().find_map(|(index, rows)| {
            let inside = y - self.sub_lane_top(index);
            let row = (inside / self.row_height).floor();
            (row >= 0.0 && row < *rows as f32).then_some((index, row as u32))
        })
    }
}

/// How bars look beneath their names.
#[derive(Clone, Copy)]
struct Looks {
    /// Shaded by tile balance.
    balance: bool,
    /// Covered, because another bar is chosen.
    veiled: bool,
}

/// What the pointer is over.
struct Hit<'a> {
    ipu: u32,
    lane: &'a LaneItems,
    item: &'a Item,
    rect: Rect,
}

impl ExecutionTrace {
    /// Left edge of the lanes.
    pub(super) fn lanes_left(&self, ui: &Ui) -> f32 {
        ui.max_rect().left() + GUTTER
    }

    pub(super) fn lanes_ui(
        &mut self,
        ui: &mut Ui,
        context: &mut ViewContext<'_>,
        prepared: &Arc<Prepared>,
    ) {
        let area = ui.available_rect_before_wrap();
        ui.allocate_rect(area, Sense::hover());
        let prefs = context.prefs.trace;
        let common = COMMON_MARKS.iter().filter(|kind| prepared.mark_kinds.contains(kind)).count();
        let mark_rows = if prefs.marks { common } else { 0 };
        let places = places(area, mark_rows);
        let limits = Limits { range: prepared.range, width: places.lanes.width() };
        self.keep_axis(limits);
        let palette = Palette::of(ui.visuals());
        self.strip_ui(ui, context, prepared, places.overview, limits);
        let axis = self.axis.unwrap_or_else(|| Axis::fitting(limits.range, limits.width));
        paint_ruler(ui.painter(), places.ruler, axis, palette);
        let gutter = pos2(area.left() + GUTTER - 10.0, places.ruler.center().y);
        let font = FontId::proportional(11.0);
        ui.painter().text(gutter, Align2::RIGHT_CENTER, "Cycles", font, palette.weak_text);

        let shown = self.shown_ipus(prepared);
        let blocks = blocks(prepared, &shown, prefs.style, prefs.marks, places.lanes.height());
        let total = blocks.last().map_or(0.0, |block| block.top + f64::from(block.height()));
        self.scroll = self.scroll.clamp(0.0, (total - f64::from(places.lanes.height())).max(0.0));
        self.ask(ui, context, prepared, &blocks, &places, limits);
        let response = lanes_response(ui, places.lanes);
        self.paint(ui, context, prepared, &blocks, &places, axis, &response);
        self.pointer_ui(ui, context, prepared, &blocks, &places, limits, &response);
        self.scroll_bar_ui(ui, places.lanes, total);
    }

    /// Sets the axis up, or fits it to a window of another size.
    fn keep_axis(&mut self, limits: Limits) {
        let resized = self.limits.is_some_and(|old| (old.width - limits.width).abs() > 0.5);
        self.axis = match (self.axis, self.limits) {
            (Some(axis), Some(old)) if resized => {
                let window = axis.window(old.width);
                Some(Axis::fitting_exactly(window, limits.width).kept(limits))
            }
            (axis, _) => axis.or_else(|| Some(Axis::fitting(limits.range, limits.width))),
        };
        self.limits = Some(limits);
    }

    fn strip_ui(
        &mut self,
        ui: &mut Ui,
        context: &ViewContext<'_>,
        prepared: &Arc<Prepared>,
        rect: Rect,
        limits: Limits,
    ) {
        let ppp = ui.pixels_per_point();
        let count = prepared.ipus.len().max(1);
        let row_height = ((rect.height() * ppp) as usize / count).max(2);
        let key = ((rect.width() * ppp).max(1.0) as usize, row_height, ui.visuals().dark_mode);
        let shared = prepared.clone();
        let question = move |(width, row, dark): &(usize, usize, bool)| {
            super::scene::overview(&shared, (*width, *row), *dark).map_err(|e| e.to_string())
        };
        let known = self.overview_texture.as_ref().is_some_and(|(drawn, _)| *drawn == key);
        if let Asked::Fresh(Ok(image)) =
            self.overview.ask(ui.ctx(), context.workers, &key, question)
            && !known
        {
            self.overview_texture = Some((key, Tiled::new(ui.ctx(), "trace overview", image)));
        }
        let image = self.overview_texture.as_ref().map(|(_, texture)| texture);
        let axis = self.axis.unwrap_or_else(|| Axis::fitting(limits.range, limits.width));
        if let Some(moved) = overview_ui(ui, rect, image, axis, limits, &mut self.grip) {
            self.axis = Some(moved);
        }
    }

    /// Asks for the scene that is on the screen, unless it is on its way.
    fn ask(
        &mut self,
        ui: &Ui,
        context: &ViewContext<'_>,
        prepared: &Arc<Prepared>,
        blocks: &[Block<'_>],
        places: &Places,
        limits: Limits,
    ) {
        let Some(axis) = self.axis else { return };
        let ppp = ui.pixels_per_point();
        let window = axis.window(limits.width);
        let cycles_per_pixel = axis.scale() / f64::from(ppp);
        let fits = |wanted: crate::units::CycleRange| {
            let inside = wanted.start <= window.start && window.end <= wanted.end;
            let length = padded(window, limits).length() as f64;
            inside && (wanted.length() as f64 / length - 1.0).abs() < 0.02
        };
        let wanted = self.wanted.filter(|wanted| fits(*wanted));
        let wanted = wanted.unwrap_or_else(|| padded(window, limits));
        self.wanted = Some(wanted);
        let prefs = context.prefs.trace;
        let on_screen = |block: &&Block<'_>| {
            let top = (block.top - self.scroll) as f32;
            top < places.lanes.height() + 200.0 && top + block.height() > -200.0
        };
        let row_height = blocks.first().map_or(FLAME_ROW, |block| block.row_height);
        let key = SceneKey {
            window: wanted,
            width: ((wanted.length() as f64 / cycles_per_pixel).ceil() as usize).clamp(1, 32_768),
            ipus: blocks.iter().filter(on_screen).map(|block| block.lanes.ipu).collect(),
            style: prefs.style,
            grouping: grouping(&prefs),
            tile_balance: prefs.tile_balance,
            marks: prefs.marks,
            filter: self.filter.trim().to_lowercase(),
            dark: ui.visuals().dark_mode,
            row_height: (row_height * ppp).round() as usize,
            gap: (SUB_LANE_GAP * ppp).round() as usize,
        };
        let question = ask_scene(context.opened.report.clone(), prepared.clone());
        let asked = self.scene.ask(ui.ctx(), context.workers, &key, question);
        if let Some(Ok(scene)) = asked.answer()
            && self.textures.as_ref().is_none_or(|(id, _)| *id != scene.id)
        {
            let images = scene.ipus.iter();
            let textures = images.map(|ipu| Tiled::new(ui.ctx(), "lanes", &ipu.image)).collect();
            self.textures = Some((scene.id, textures));
        }
    }

    #[expect(clippy::too_many_arguments, reason = "a frame's worth of places")]
    fn paint(
        &self,
        ui: &Ui,
        context: &ViewContext<'_>,
        prepared: &Prepared,
        blocks: &[Block<'_>],
        places: &Places,
        axis: Axis,
        response: &Response,
    ) {
        let palette = Palette::of(ui.visuals());
        let painter = ui.painter_at(places.lanes);
        let scene = match self.scene.latest() {
            Some(Ok(scene)) => Some(scene),
            Some(Err(problem)) => {
                let font = FontId::proportional(13.0);
                let at = places.lanes.center();
                painter.text(at, Align2::CENTER_CENTER, problem, font, palette.error);
                None
            }
            None => None,
        };
        let chosen = self.chosen_place(context, scene);
        let gutter = Rect::from_min_max(
            pos2(places.lanes.left() - GUTTER, places.lanes.top()),
            places.lanes.left_bottom(),
        );
        for block in blocks {
            let top = places.lanes.top() + (block.top - self.scroll) as f32;
            if top > places.lanes.bottom() || top + block.height() < places.lanes.top() {
                continue;
            }
            let ipu =
                scene.and_then(|scene| scene.ipus.iter().position(|i| i.ipu == block.lanes.ipu));
            self.gutter_ui(ui, gutter, block, top);
            let band = Band { palette, axis, places, block, top };
            band.ground(&painter);
            let (Some(scene), Some(index)) = (scene, ipu) else { continue };
            if let Some((_, textures)) = &self.textures
                && let Some(texture) = textures.get(index)
            {
                texture.paint(&painter, band.image_rect(scene));
            }
            band.separators(&painter);
            if block.marks > 0.0 {
                let row = Rect::from_min_size(
                    pos2(places.lanes.left(), top),
                    vec2(places.lanes.width(), block.marks),
                );
                marks_ui(ui, places.lanes, row, axis, &scene.ipus[index].marks);
            }
            if chosen.is_some() {
                let veil = palette.lane.gamma_multiply(VEIL);
                painter.rect_filled(band.bars(), 0.0, veil);
            }
            let looks =
                Looks { balance: context.prefs.trace.tile_balance, veiled: chosen.is_some() };
            band.labels_ui(ui, &painter, prepared, scene, index, looks);
        }
        if let Some(scene) = scene {
            self.common_marks(ui, places, axis, scene);
            if let Some(chosen) = &chosen {
                self.paint_chosen(&painter, prepared, blocks, places, axis, chosen, palette);
            }
        }
        self.paint_range(ui, &painter, places, axis, palette);
        focus_ui(ui, response, places.lanes);
    }

    fn common_marks(&self, ui: &Ui, places: &Places, axis: Axis, scene: &Scene) {
        let palette = Palette::of(ui.visuals());
        for (index, (kind, row)) in scene.marks.iter().enumerate() {
            let top = places.marks.top() + index as f32 * MARK_HEIGHT;
            let rect = Rect::from_min_size(
                pos2(places.marks.left(), top),
                vec2(places.marks.width(), MARK_HEIGHT),
            );
            marks_ui(ui, places.marks, rect, axis, row);
            let at = pos2(rect.left() - 10.0, rect.center().y - 1.0);
            let font = FontId::proportional(11.0);
            ui.painter().text(at, Align2::RIGHT_CENTER, kind_title(*kind), font, palette.weak_text);
        }
    }

    fn gutter_ui(&self, ui: &Ui, gutter: Rect, block: &Block<'_>, top: f32) {
        let palette = Palette::of(ui.visuals());
        let painter = ui.painter_at(gutter);
        let name = format!("IPU {}", block.lanes.ipu);
        let rect =
            Rect::from_min_size(pos2(gutter.left(), top), vec2(gutter.width(), block.height()));
        let font = FontId::new(12.0, crate::gui::fonts::strong_family());
        // The name stays on the screen as long as a part of its lanes does.
        let y = (top + 2.0).max(gutter.top() + 2.0).min(rect.bottom() - 18.0);
        let at = pos2(gutter.right() - 10.0, y);
        painter.text(at, Align2::RIGHT_TOP, &name, font, palette.text);
        for (index, sub_lane) in block.lanes.sub_lanes.iter().enumerate().skip(1) {
            let top = top + block.marks + block.sub_lane_top(index);
            let small = FontId::proportional(10.5);
            let at = pos2(gutter.right() - 10.0, top + 3.0);
            let text =
                if *sub_lane == 1 { "I/O tiles".to_owned() } else { format!("tiles {sub_lane}") };
            painter.text(at, Align2::RIGHT_TOP, text, small, palette.weak_text);
        }
        let value = format!("{} steps", grouped(block.lanes.steps));
        region_ui(
            ui,
            id("lane").with(block.lanes.ipu),
            rect.intersect(gutter),
            Role::Row,
            &name,
            &value,
        );
    }

    /// The chosen bar and its place among the lanes.
    fn chosen_place<'a>(
        &self,
        context: &ViewContext<'_>,
        scene: Option<&'a Scene>,
    ) -> Option<Chosen<'a>> {
        if let Some(bar) = &self.bar {
            let ChosenBar { ipu, sub_lane, row, range, .. } = *bar;
            let shown = scene.and_then(|scene| scene.ipus.iter().find(|shown| shown.ipu == ipu));
            let lane = shown.and_then(|ipu| ipu.lanes.iter().find(|l| l.sub_lane == sub_lane));
            let own = |item: &&Item| item.row == row && item.range.start == range.start;
            let item = lane.and_then(|lane| lane.items.iter().find(own));
            let full_height = item.is_some_and(|item| item.full_height);
            return Some(Chosen { ipu, sub_lane, row, range, full_height, item });
        }
        let step = context.selection.step?;
        let item = chosen::find(scene?, &step)?;
        Some(Chosen {
            ipu: step.ipu,
            sub_lane: step.sub_lane,
            row: item.row,
            range: item.range,
            full_height: item.full_height,
            item: Some(item),
        })
    }

    #[expect(clippy::too_many_arguments, reason = "a frame's worth of places")]
    fn paint_chosen(
        &self,
        painter: &Painter,
        prepared: &Prepared,
        blocks: &[Block<'_>],
        places: &Places,
        axis: Axis,
        chosen: &Chosen<'_>,
        palette: &'static Palette,
    ) {
        let Some(block) = blocks.iter().find(|block| block.lanes.ipu == chosen.ipu) else { return };
        let Some(index) = block.lanes.sub_lanes.iter().position(|s| *s == chosen.sub_lane) else {
            return;
        };
        let top = places.lanes.top() + (block.top - self.scroll) as f32;
        let band = Band { palette, axis, places, block, top };
        let rect = band.item_rect(index, chosen.row, chosen.range, chosen.full_height);
        if let Some(item) = chosen.item {
            let fill = colour(palette, &prepared.labels, item);
            painter.rect_filled(rect, 0.0, fill);
            if rect.width() >= LEAST_LABEL {
                band.label(painter, rect, &item.text(&prepared.labels), fill);
            }
        }
        let stroke = Stroke::new(2.0, palette.selection);
        painter.rect_stroke(rect.expand(1.0), CornerRadius::same(1), stroke, StrokeKind::Outside);
    }

    fn paint_range(
        &self,
        ui: &Ui,
        painter: &Painter,
        places: &Places,
        axis: Axis,
        palette: &Palette,
    ) {
        let (Some(from), Some(pointer)) =
            (self.range_from, ui.input(|input| input.pointer.latest_pos()))
        else {
            return;
        };
        let to = axis.cycle_from_x(pointer.x - places.lanes.left()).max(0);
        let (start, end) = (from.min(to).max(0) as u64, from.max(to).max(0) as u64);
        let left = places.lanes.left() + axis.x_from_cycle(start);
        let right = places.lanes.left() + axis.x_from_cycle(end);
        let rect = Rect::from_min_max(
            pos2(left, places.lanes.top()),
            pos2(right.max(left + 1.0), places.lanes.bottom()),
        );
        painter.rect_filled(rect, 0.0, palette.accent.gamma_multiply(0.18));
        let stroke = Stroke::new(1.0, palette.accent);
        painter.rect_stroke(rect, 0.0, stroke, StrokeKind::Inside);
        let text = format!("{} cycles", Cycles(end - start));
        let font = FontId::proportional(12.0);
        let galley = painter.layout_no_wrap(text, font, palette.text);
        let at = pos2(rect.center().x - galley.size().x / 2.0, places.lanes.top() + 8.0);
        let ground = Rect::from_min_size(at, galley.size()).expand2(vec2(6.0, 3.0));
        painter.rect_filled(ground, CornerRadius::same(4), palette.page);
        painter.galley(at, galley, palette.text);
    }

    #[expect(clippy::too_many_arguments, reason = "a frame's worth of places")]
    fn pointer_ui(
        &mut self,
        ui: &Ui,
        context: &mut ViewContext<'_>,
        prepared: &Arc<Prepared>,
        blocks: &[Block<'_>],
        places: &Places,
        limits: Limits,
        response: &Response,
    ) {
        let Some(axis) = self.axis else { return };
        let hit = response.hover_pos().and_then(|at| self.hit(at, blocks, places, axis));
        if let Some(hit) = &hit
            && !response.dragged()
        {
            let palette = Palette::of(ui.visuals());
            let stroke = Stroke::new(1.0, palette.text);
            ui.painter_at(places.lanes).rect_stroke(hit.rect, 0.0, stroke, StrokeKind::Outside);
            tooltip_ui(response, hit, prepared);
        }
        if response.double_clicked() {
            if let Some(hit) = &hit {
                self.axis = Some(zoomed_to(hit.item.range, limits));
            }
        } else if response.clicked() {
            let window = self.wanted.unwrap_or(limits.range);
            let chosen = hit.map(|hit| choose(&hit, prepared, window));
            self.choose(context, chosen);
        }
        self.drag(ui, places, axis, limits, response);
        self.wheel(ui, places, axis, limits, response);
    }

    fn choose(&mut self, context: &mut ViewContext<'_>, chosen: Option<Choice>) {
        self.bar = None;
        match chosen {
            Some(Choice::Step(step)) => {
                self.tab = super::Tab::Details;
                context.commands.push(Command::SelectStep(Some(step)));
            }
            Some(Choice::Bar(bar)) => {
                self.tab = super::Tab::Details;
                self.bar = Some(bar);
                self.seen_step = None;
                context.commands.push(Command::SelectStep(None));
            }
            None => context.commands.push(Command::SelectStep(None)),
        }
    }

    fn drag(&mut self, ui: &Ui, places: &Places, axis: Axis, limits: Limits, response: &Response) {
        let shift = ui.input(|input| input.modifiers.shift);
        if response.drag_started_by(PointerButton::Primary)
            && shift
            && let Some(start) = ui.input(|input| input.pointer.press_origin())
        {
            self.range_from = Some(axis.cycle_from_x(start.x - places.lanes.left()));
        }
        if let Some(from) = self.range_from {
            ui.ctx().set_cursor_icon(CursorIcon::Crosshair);
            if response.drag_stopped()
                && let Some(end) = response.interact_pointer_pos()
            {
                let to = axis.cycle_from_x(end.x - places.lanes.left());
                let (start, end) = (from.min(to).max(0) as u64, from.max(to).max(0) as u64);
                self.range_from = None;
                if end > start {
                    let range = crate::units::CycleRange::new(start, end);
                    self.axis = Some(Axis::fitting_exactly(range, limits.width).kept(limits));
                }
            } else if !response.dragged() {
                self.range_from = None;
            }
        } else if response.dragged() {
            let delta = response.drag_delta();
            ui.ctx().set_cursor_icon(CursorIcon::Grabbing);
            self.axis = Some(axis.panned(delta.x).kept(limits));
            self.scroll -= f64::from(delta.y);
        }
    }

    fn wheel(&mut self, ui: &Ui, places: &Places, axis: Axis, limits: Limits, response: &Response) {
        let Some(at) = response.hover_pos() else { return };
        let (delta, zoom, alt) =
            ui.input(|i| (i.smooth_scroll_delta(), i.zoom_delta(), i.modifiers.alt));
        if alt {
            self.scroll -= f64::from(delta.y + delta.x);
            return;
        }
        let factor = f64::from(zoom) * (f64::from(delta.y) * 0.006).exp();
        let x = at.x - places.lanes.left();
        let mut moved = axis;
        if factor != 1.0 {
            moved = moved.zoomed(factor, x, limits);
        }
        if delta.x != 0.0 {
            moved = moved.panned(delta.x);
        }
        if moved != axis {
            self.axis = Some(moved.kept(limits));
        }
    }

    fn hit<'a>(
        &'a self,
        at: Pos2,
        blocks: &[Block<'_>],
        places: &Places,
        axis: Axis,
    ) -> Option<Hit<'a>> {
        let scene = self.scene.latest()?.as_ref().ok()?;
        let y = f64::from(at.y - places.lanes.top()) + self.scroll;
        let inside =
            |block: &&Block<'_>| block.top <= y && y < block.top + f64::from(block.height());
        let block = blocks.iter().find(inside)?;
        let (index, row) = block.row_at((y - block.top) as f32 - block.marks)?;
        let ipu = scene.ipus.iter().find(|ipu| ipu.ipu == block.lanes.ipu)?;
        let lane = ipu.lanes.get(index)?;
        let cycle = axis.cycle_from_x(at.x - places.lanes.left());
        let cycle = u64::try_from(cycle).ok()?;
        let slack = (axis.scale() * f64::from(REACH)) as u64;
        let item = lane.hit(row, cycle, slack)?;
        let top = places.lanes.top() + (block.top - self.scroll) as f32;
        let palette = &crate::gui::theme::LIGHT;
        let band = Band { palette, axis, places, block, top };
        let rect = band.item_rect(index, item.row, item.range, item.full_height);
        Some(Hit { ipu: ipu.ipu, lane, item, rect })
    }

    fn scroll_bar_ui(&mut self, ui: &Ui, lanes: Rect, total: f64) {
        let shown = f64::from(lanes.height());
        if total <= shown {
            return;
        }
        let palette = Palette::of(ui.visuals());
        let track = Rect::from_min_max(
            pos2(lanes.right() + 2.0, lanes.top()),
            pos2(lanes.right() + SCROLL_BAR, lanes.bottom()),
        );
        let height = ((shown / total) as f32 * track.height()).max(24.0);
        let free = f64::from(track.height() - height);
        let share = self.scroll / (total - shown);
        let top = track.top() + (share * free) as f32;
        let handle = Rect::from_min_size(pos2(track.left(), top), vec2(track.width(), height));
        let response = ui.interact(track, id("scroll"), Sense::drag());
        response.widget_info(|| WidgetInfo::labeled(Role::ScrollBar, true, "Scroll lanes"));
        if response.dragged() {
            self.scroll += f64::from(response.drag_delta().y) / free.max(1.0) * (total - shown);
        }
        let colour = if response.hovered() { palette.weak_text } else { palette.outline };
        ui.painter().rect_filled(handle, CornerRadius::same(4), colour);
    }
}

/// A chosen bar.
struct Chosen<'a> {
    ipu: u32,
    sub_lane: u8,
    row: u32,
    range: crate::units::CycleRange,
    full_height: bool,
    item: Option<&'a Item>,
}

/// What a click chose.
enum Choice {
    Step(ChosenStep),
    Bar(ChosenBar),
}

fn choose(hit: &Hit<'_>, prepared: &Prepared, window: crate::units::CycleRange) -> Choice {
    let (ipu, sub_lane) = (hit.ipu, hit.lane.sub_lane);
    match hit.item.step() {
        Some(step) => {
            let position = hit.item.first_position();
            Choice::Step(ChosenStep { ipu, sub_lane, position, step })
        }
        None => Choice::Bar(ChosenBar::of(hit.item, &prepared.labels, (ipu, sub_lane), window)),
    }
}

fn tooltip_ui(response: &Response, hit: &Hit<'_>, prepared: &Prepared) {
    response.clone().on_hover_ui_at_pointer(|ui| {
        ui.set_max_width(420.0);
        let palette = Palette::of(ui.visuals());
        let title: String = chosen::title(hit.item, &prepared.labels).chars().take(240).collect();
        ui.label(crate::gui::fonts::strong(title));
        let length = Cycles(hit.item.range.length());
        let mut text = format!("{length} cycles");
        if let Some(balance) = hit.item.tile_balance() {
            text.push_str(&format!(", tile balance {}", crate::units::percent(balance)));
        }
        if hit.item.steps() > 1 && !matches!(hit.item.kind, Kind::Bucket(..)) {
            text.push_str(&format!(", {} steps", grouped(hit.item.steps())));
        }
        ui.label(RichText::new(text).color(palette.weak_text));
    });
}

/// One IPU on the screen.
struct Band<'a> {
    palette: &'static Palette,
    axis: Axis,
    places: &'a Places,
    block: &'a Block<'a>,
    top: f32,
}

impl Band<'_> {
    /// All bars of the IPU.
    fn bars(&self) -> Rect {
        let lanes = self.places.lanes;
        Rect::from_min_max(
            pos2(lanes.left(), self.top + self.block.marks),
            pos2(lanes.right(), self.top + self.block.height()),
        )
    }

    fn ground(&self, painter: &Painter) {
        painter.rect_filled(self.bars(), 0.0, self.palette.lane);
    }

    fn image_rect(&self, scene: &Scene) -> Rect {
        let left = self.places.lanes.left() + self.axis.x_from_cycle(scene.key.window.start);
        let right = self.places.lanes.left() + self.axis.x_from_cycle(scene.key.window.end);
        let bars = self.bars();
        Rect::from_min_max(pos2(left, bars.top()), pos2(right, bars.bottom()))
    }

    fn separators(&self, painter: &Painter) {
        let bars = self.bars();
        for index in 1..self.block.rows.len() {
            let y = bars.top() + self.block.sub_lane_top(index) - SUB_LANE_GAP / 2.0;
            let line = [pos2(bars.left(), y), pos2(bars.right(), y)];
            let stroke = Stroke::new(1.0, self.palette.weak_text);
            painter.extend(Shape::dashed_line(&line, stroke, 5.0, 4.0));
        }
    }

    fn item_rect(
        &self,
        sub_lane: usize,
        row: u32,
        range: crate::units::CycleRange,
        full_height: bool,
    ) -> Rect {
        let rows = self.block.rows.get(sub_lane).copied().unwrap_or(1);
        let row = row.min(rows.saturating_sub(1));
        let count = if full_height { rows - row } else { 1 };
        let lanes = self.places.lanes;
        let left = lanes.left() + self.axis.x_from_cycle(range.start);
        let right = lanes.left() + self.axis.x_from_cycle(range.end);
        let height = self.block.row_height;
        let top = self.bars().top() + self.block.sub_lane_top(sub_lane) + row as f32 * height;
        // Ends far outside would lose their digits in 32 bits.
        let (left, right) = (left.max(lanes.left() - 20.0), right.min(lanes.right() + 20.0));
        Rect::from_min_max(
            pos2(left, top),
            pos2(right.max(left + 1.0), top + count as f32 * height - 1.0),
        )
    }

    /// Names on the bars that are wide enough, for eyes and for readers of the tree.
    fn labels_ui(
        &self,
        ui: &Ui,
        painter: &Painter,
        prepared: &Prepared,
        scene: &Scene,
        index: usize,
        looks: Looks,
    ) {
        let ipu = &scene.ipus[index];
        let least = (self.axis.scale() * f64::from(LEAST_LABEL)) as u64;
        let window = self.axis.window(self.places.lanes.width());
        for (sub_lane, lane) in ipu.lanes.iter().enumerate() {
            let wide = lane.items.iter().filter(|item| {
                item.range.length() >= least.max(1)
                    && item.range.start < window.end
                    && item.range.end > window.start
            });
            for item in wide {
                let rect = self.item_rect(sub_lane, item.row, item.range, item.full_height);
                if rect.width() < LEAST_LABEL {
                    continue;
                }
                let text = item.text(&prepared.labels);
                let full = colour(self.palette, &prepared.labels, item);
                // The letters lie in the upper or the lower part of the bar.
                let bright = !looks.balance || item.tile_balance().is_none_or(|share| share > 0.5);
                let filtered = !scene.key.filter.is_empty();
                let ground = if bright && !filtered { full } else { self.palette.dimmed(full) };
                let veil = if looks.veiled { VEIL } else { 0.0 };
                let ground = mix(ground, self.palette.lane, veil);
                self.label(painter, rect, &text, ground);
                let visible = rect.intersect(self.places.lanes);
                if visible.is_positive() {
                    self.bar_node_ui(ui, (ipu.ipu, lane.sub_lane), item, visible, &text);
                }
            }
        }
    }

    fn bar_node_ui(&self, ui: &Ui, lane: (u32, u8), item: &Item, rect: Rect, text: &str) {
        let bar = id("bar").with((lane, item.row, item.first_position()));
        let value = format!("{} cycles", Cycles(item.range.length()));
        region_ui(ui, bar, rect, Role::Cell, text, &value);
    }

    fn label(&self, painter: &Painter, rect: Rect, text: &str, ground: Color32) {
        let room = rect.intersect(self.places.lanes).shrink2(vec2(4.0, 0.0));
        if room.width() < LEAST_LABEL - 10.0 {
            return;
        }
        let ink = self.palette.ink_on(ground);
        let galley = elided(painter, text, FontId::proportional(11.0), ink, room.width());
        let row = Rect::from_min_size(rect.min, vec2(rect.width(), self.block.row_height - 1.0));
        let at = pos2(room.left(), row.center().y - galley.size().y / 2.0);
        painter.galley(at, galley, ink);
    }
}

fn lanes_response(ui: &Ui, rect: Rect) -> Response {
    let response = ui.interact(rect, id("lanes"), Sense::click_and_drag());
    response.widget_info(|| WidgetInfo::labeled(Role::Canvas, true, "Lanes"));
    response
}

fn places(area: Rect, mark_rows: usize) -> Places {
    let left = area.left() + GUTTER;
    let right = area.right() - SCROLL_BAR - 4.0;
    let strip = |top: f32, height: f32| {
        Rect::from_min_max(pos2(left, top), pos2(right.max(left + 20.0), top + height))
    };
    let overview = strip(area.top() + 10.0, overview::HEIGHT);
    let ruler = strip(overview.bottom() + 2.0, ruler::HEIGHT);
    let marks = strip(ruler.bottom() + 3.0, mark_rows as f32 * MARK_HEIGHT);
    let lanes = strip(marks.bottom() + 3.0, (area.bottom() - marks.bottom() - 5.0).max(10.0));
    Places { overview, ruler, marks, lanes }
}

fn blocks<'a>(
    prepared: &'a Prepared,
    shown: &[u32],
    style: Style,
    marks: bool,
    room: f32,
) -> Vec<Block<'a>> {
    let staged = [MarkKind::Stage, MarkKind::Update];
    let has_stages = staged.iter().any(|kind| prepared.mark_kinds.contains(kind));
    let marks = if marks && has_stages { MARK_HEIGHT } else { 0.0 };
    let shown = || prepared.ipus.iter().filter(|lanes| shown.contains(&lanes.ipu));
    let rows: u32 = shown().flat_map(|lanes| rows_of(lanes, style)).sum();
    let fixed: f32 = shown()
        .map(|lanes| marks + IPU_GAP + SUB_LANE_GAP * (lanes.sub_lanes.len() - 1) as f32)
        .sum();
    // Whole points: rows of the image must not run out of step with those on the screen.
    let fitting = ((room - fixed) / rows.max(1) as f32).floor();
    let row_height = match style {
        Style::Flame => fitting.clamp(FLAME_ROW, TALL_FLAME_ROW),
        Style::Flat => FLAT_ROW,
    };
    let mut top = 0.0;
    let mut blocks = Vec::new();
    for lanes in shown() {
        let block = Block { lanes, rows: rows_of(lanes, style), top, marks, row_height };
        top += f64::from(block.height() + IPU_GAP);
        blocks.push(block);
    }
    blocks
}

fn kind_title(kind: MarkKind) -> &'static str {
    match kind {
        MarkKind::Run => "Runs",
        MarkKind::Iteration => "Iterations",
        MarkKind::Phase => "Phases",
        MarkKind::Slot => "Slots",
        MarkKind::Stage => "Stages",
        MarkKind::Update => "Updates",
    }
}
