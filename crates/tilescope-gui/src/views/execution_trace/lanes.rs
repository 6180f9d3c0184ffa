//! The lanes: what is on the screen, and what has to be read for it.

use super::lane_layout::{
    FLAME_ROW, GUTTER, IpuLaneLayout, SCROLL_BAR, SUB_LANE_GAP, TraceViewLayout, ipu_lane_layouts,
    trace_view_layout,
};
use super::ruler::paint_ruler;
use super::scene::{COMMON_MARKS, IpuLaneScene, LoadedTrace, TraceSceneKey};
use super::{ExecutionTraceView, ask_scene, grouping, id, scene_window};
use crate::theme::{ColourScheme, ThemePalette, text_size};
use crate::views::ViewContext;
use crate::views::cycle_axis::{axis_range_of_cycles, limits_of_cycles};
use crate::widgets::background_query::QueryState;
use crate::widgets::background_query::Versioned;
use crate::widgets::overview_strip::{self, overview_ui};
use crate::widgets::pan_zoom_axis::{AxisLimits, PanZoomAxis};
use crate::widgets::split_texture::{SplitImage, SplitTexture};
use egui::accesskit::Role;
use egui::{Align2, CornerRadius, FontId, Rect, Response, Sense, Ui, WidgetInfo, pos2, vec2};

impl ExecutionTraceView {
    /// Left edge of the lanes.
    pub(super) fn lanes_left(&self, ui: &Ui) -> f32 {
        ui.max_rect().left() + GUTTER
    }

    pub(super) fn lanes_ui(
        &mut self,
        ui: &mut Ui,
        context: &ViewContext<'_>,
        prepared: &Versioned<LoadedTrace>,
    ) {
        let area = ui.available_rect_before_wrap();
        ui.allocate_rect(area, Sense::hover());
        let prefs = context.prefs.trace;
        let common = COMMON_MARKS.iter().filter(|kind| prepared.mark_kinds.contains(kind)).count();
        let mark_rows = if prefs.marks { common + usize::from(prepared.host) } else { 0 };
        let places = trace_view_layout(area, mark_rows);
        self.run = Some(prepared.range);
        // Where there is little room, lanes reach out of it.
        self.lanes = Some(places.lanes.union(places.ruler).intersect(area));
        let range = self.reach.map_or(prepared.range, |reach| reach.union(prepared.range));
        let limits = limits_of_cycles(range, places.lanes.width());
        self.keep_axis(limits);
        let palette = ThemePalette::for_ui(ui);
        self.strip_ui(ui, context, prepared, places.overview, limits);
        let axis = self.axis.unwrap_or_else(|| PanZoomAxis::fitting(limits.range, limits.width));
        paint_ruler(ui.painter(), places.ruler, axis, palette);
        let gutter = pos2(area.left() + GUTTER - 10.0, places.ruler.center().y);
        let font = FontId::proportional(text_size::CAPTION);
        ui.painter().text(gutter, Align2::RIGHT_CENTER, "Cycles", font, palette.weak_text);

        let shown = self.shown_ipus(prepared);
        let tiles = if prefs.tiles { f32::from(prefs.tiles_height) } else { 0.0 };
        let room = places.lanes.height();
        let blocks = ipu_lane_layouts(prepared, &shown, prefs.style, prefs.marks, tiles, room);
        let total = blocks.last().map_or(0.0, |block| block.top + f64::from(block.height()));
        self.scroll = self.scroll.clamp(0.0, (total - f64::from(places.lanes.height())).max(0.0));
        self.ask(ui, context, prepared, &blocks, &places, limits);
        let response = lanes_response(ui, places.lanes);
        self.paint(ui, context, prepared, &blocks, &places, axis, &response);
        self.paint_marks(ui, context, &places, axis);
        self.pointer_ui(ui, context, prepared, &blocks, &places, limits, &response);
        self.scroll_bar_ui(ui, places.lanes, total);
    }

    /// Sets the axis up, or fits it to a window of another size.
    fn keep_axis(&mut self, limits: AxisLimits) {
        // Layout jitters by fractions of a point; refitting for that would let the axis drift.
        let resized = self.limits.is_some_and(|old| (old.width - limits.width).abs() > 0.5);
        self.axis = match (self.axis, self.limits) {
            (Some(axis), Some(old)) if resized => {
                let window = axis.window(old.width);
                Some(PanZoomAxis::fitting_exactly(window, limits.width).clamped_to(limits))
            }
            (axis, _) => axis.or_else(|| Some(PanZoomAxis::fitting(limits.range, limits.width))),
        };
        self.limits = Some(limits);
    }

    fn strip_ui(
        &mut self,
        ui: &mut Ui,
        context: &ViewContext<'_>,
        prepared: &Versioned<LoadedTrace>,
        rect: Rect,
        limits: AxisLimits,
    ) {
        let ppp = ui.pixels_per_point();
        let count = prepared.ipus.len().max(1);
        // A row needs one row of pixels of its own beside the separator.
        let row_height = ((rect.height() * ppp) as usize / count).max(2);
        let key = ((rect.width() * ppp).max(1.0) as usize, row_height, ColourScheme::of(ui));
        let shared = prepared.clone();
        let question = move |(width, row, colours): &(usize, usize, ColourScheme)| {
            super::scene::overview(&shared, (*width, *row), *colours)
        };
        let known = self.overview_texture.as_ref().is_some_and(|(drawn, _)| *drawn == key);
        if let QueryState::Fresh(image) =
            self.overview.ask(ui.ctx(), context.workers, &key, question)
            // Uploading a texture is dear: only once per image, not once per frame.
            && !known
        {
            self.overview_texture =
                Some((key, SplitTexture::new(ui.ctx(), "trace overview", &image)));
        }
        let image = self
            .overview_texture
            .as_ref()
            .map(|(_, texture)| (texture, axis_range_of_cycles(prepared.range)));
        let axis = self.axis.unwrap_or_else(|| PanZoomAxis::fitting(limits.range, limits.width));
        if let Some(moved) = overview_ui(ui, rect, image, axis, limits, &mut self.grip) {
            self.axis = Some(moved);
        }
        self.strip_has_focus = ui.memory(|memory| memory.has_focus(overview_strip::id(ui)));
    }

    /// Asks for the scene that is on the screen, unless it is on its way.
    fn ask(
        &mut self,
        ui: &Ui,
        context: &ViewContext<'_>,
        prepared: &Versioned<LoadedTrace>,
        blocks: &[IpuLaneLayout<'_>],
        places: &TraceViewLayout,
        limits: AxisLimits,
    ) {
        let Some(axis) = self.axis else { return };
        let ppp = ui.pixels_per_point();
        let cycles_per_pixel = axis.scale() / f64::from(ppp);
        // More cycles than are on the screen, so that panning does not wait for every frame.
        let wanted = scene_window(axis, limits.width);
        let prefs = context.prefs.trace;
        let on_screen = |block: &&IpuLaneLayout<'_>| {
            let top = (block.top - self.scroll) as f32;
            // IPUs just outside are read too, so that scrolling does not uncover empty lanes.
            top < places.lanes.height() + 200.0 && top + block.height() > -200.0
        };
        let row_height = blocks.first().map_or(FLAME_ROW, |block| block.row_height);
        let key = TraceSceneKey {
            window: wanted,
            // Bounds the memory of an image, whatever the zoom and the width of the window.
            width: ((wanted.length().as_f64() / cycles_per_pixel).ceil() as usize).clamp(1, 32_768),
            ipus: blocks.iter().filter(on_screen).map(|block| block.lanes.ipu).collect(),
            style: prefs.style,
            grouping: grouping(&prefs),
            tile_balance: prefs.tile_balance,
            marks: prefs.marks,
            arrows: prefs.arrows,
            chosen: context.selection.step.map(|step| step.step),
            filter: self.filter.trim().to_lowercase(),
            colours: ColourScheme::of(ui),
            // Images are made in physical pixels: in points, dense screens would scale them up.
            row_height: (row_height * ppp).round() as usize,
            gap: (SUB_LANE_GAP * ppp).round() as usize,
            tiles: if prefs.tiles { (f32::from(prefs.tiles_height) * ppp) as usize } else { 0 },
        };
        let question = ask_scene(context.opened.report.clone(), prepared.clone());
        let asked = self.scene.ask(ui.ctx(), context.workers, &key, question);
        if let Some(scene) = asked.answer()
            && self.textures.as_ref().is_none_or(|(version, _)| *version != scene.version())
        {
            let texture = |image: &SplitImage| SplitTexture::new(ui.ctx(), "lanes", image);
            let both =
                |ipu: &IpuLaneScene| [Some(&ipu.image), ipu.tiles.as_ref()].map(|i| i.map(texture));
            let textures = scene.ipus.iter().map(both).collect();
            self.textures = Some((scene.version(), textures));
        }
    }

    fn scroll_bar_ui(&mut self, ui: &Ui, lanes: Rect, total: f64) {
        let shown = f64::from(lanes.height());
        if total <= shown {
            return;
        }
        let palette = ThemePalette::for_ui(ui);
        let track = Rect::from_min_max(
            pos2(lanes.right() + 2.0, lanes.top()),
            pos2(lanes.right() + SCROLL_BAR, lanes.bottom()),
        );
        // A handle for thousands of lanes would be too small to be taken.
        let height = ((shown / total) as f32 * track.height()).max(24.0);
        let free = f64::from(track.height() - height);
        let share = self.scroll / (total - shown);
        let top = track.top() + (share * free) as f32;
        let handle = Rect::from_min_size(pos2(track.left(), top), vec2(track.width(), height));
        let response = ui.interact(track, id(ui, "scroll"), Sense::drag());
        response.widget_info(|| WidgetInfo::labeled(Role::ScrollBar, true, "Scroll lanes"));
        if response.dragged() {
            self.scroll += f64::from(response.drag_delta().y) / free.max(1.0) * (total - shown);
        }
        let colour = if response.hovered() { palette.weak_text } else { palette.outline };
        ui.painter().rect_filled(handle, CornerRadius::same(4), colour);
    }
}

fn lanes_response(ui: &Ui, rect: Rect) -> Response {
    let response = ui.interact(rect, id(ui, "lanes"), Sense::click_and_drag());
    response.widget_info(|| WidgetInfo::labeled(Role::Canvas, true, "Lanes"));
    response
}
