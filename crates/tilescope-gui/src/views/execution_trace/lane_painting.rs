//! Painting the lanes: images, names, marks, what is chosen.

use super::bar_colours::colour;
use super::bsp_raster;
use super::lane_layout::{
    DIMMED_SHARE, GUTTER, IpuLaneLayout, IpuLanesOnScreen, LEAST_LABEL, TraceViewLayout,
};
use super::ruler::{MARK_HEIGHT, marks_ui};
use super::scene::{LoadedTrace, TraceScene};
use super::selected_bar::{self, SelectedBar};
use super::{ExecutionTraceView, id};
use crate::model::command::SelectedStep;
use crate::theme::{ThemePalette, mix, text_size};
use crate::views::ViewContext;
use crate::views::cycle_axis::cycles_on_screen;
use crate::widgets::pan_zoom_axis::PanZoomAxis;
use crate::widgets::{elided_text::elided, focus_ui, node_ui, region_ui};
use egui::accesskit::Role;
use egui::{
    Align2, Color32, CornerRadius, FontId, Painter, Rect, Response, Shape, Stroke, StrokeKind, Ui,
    pos2, vec2,
};
use tilescope_analysis::trace::LaneItem;
use tilescope_report::MarkKind;
use tilescope_report::units::{CycleRange, Cycles, grouped};

/// The look of bars beneath their names.
#[derive(Clone, Copy)]
struct TraceBarStyle {
    /// Shaded by tile balance.
    shade_balance: bool,
    /// Covered, because another bar is chosen.
    dimmed: bool,
}

struct SelectedBarPosition<'a> {
    ipu: u32,
    sub_lane: u8,
    row: u32,
    range: CycleRange,
    full_height: bool,
    item: Option<&'a LaneItem>,
}

impl ExecutionTraceView {
    #[expect(clippy::too_many_arguments, reason = "a frame's worth of places")]
    pub(super) fn paint(
        &self,
        ui: &Ui,
        context: &ViewContext<'_>,
        prepared: &LoadedTrace,
        blocks: &[IpuLaneLayout<'_>],
        places: &TraceViewLayout,
        axis: PanZoomAxis,
        response: &Response,
    ) {
        let palette = ThemePalette::for_ui(ui);
        let painter = ui.painter_at(places.lanes);
        let scene = self.scene.latest().map(|scene| &**scene);
        if let Some(error) = self.scene.latest_error() {
            let font = FontId::proportional(text_size::BODY);
            let at = places.lanes.center();
            painter.text(at, Align2::CENTER_CENTER, error, font, palette.error);
        }
        let chosen = self.chosen_place(context, scene);
        let gutter = Rect::from_min_max(
            pos2(places.lanes.left() - GUTTER, places.lanes.top()),
            places.lanes.left_bottom(),
        );
        for block in blocks {
            let top = places.lanes.top() + (block.top - self.scroll) as f32;
            // Blocks out of sight cost nothing, however many IPUs there are.
            if top > places.lanes.bottom() || top + block.height() < places.lanes.top() {
                continue;
            }
            let ipu =
                scene.and_then(|scene| scene.ipus.iter().position(|i| i.ipu == block.lanes.ipu));
            self.gutter_ui(ui, gutter, block, top);
            let band = IpuLanesOnScreen { palette, axis, places, block, top };
            band.ground(&painter);
            let (Some(scene), Some(index)) = (scene, ipu) else { continue };
            if let Some((_, textures)) = &self.textures
                && let Some(textures) = textures.get(index)
            {
                // The image belongs to the window of its scene; drawn at that window's place it may
                // be stale, but it is never in the wrong place while a new one is on its way.
                for (texture, on) in textures.iter().zip([band.bars(), band.tiles()]) {
                    let rect = band.image_rect(scene, on);
                    texture.iter().for_each(|texture| texture.paint(&painter, rect));
                }
            }
            band.tiles_ui(ui, &painter);
            band.separators(&painter);
            if block.marks > 0.0 {
                let row = Rect::from_min_size(
                    pos2(places.lanes.left(), top),
                    vec2(places.lanes.width(), block.marks),
                );
                marks_ui(ui, places.lanes, row, axis, &scene.ipus[index].marks);
            }
            // The veil covers all bars; the chosen ones are painted again on top of it.
            if chosen.is_some() {
                let veil = palette.lane.gamma_multiply(DIMMED_SHARE);
                painter.rect_filled(band.bars(), 0.0, veil);
            }
            let looks = TraceBarStyle {
                shade_balance: context.prefs.trace.tile_balance,
                dimmed: chosen.is_some(),
            };
            band.labels_ui(ui, &painter, prepared, scene, index, looks);
        }
        if let Some(scene) = scene {
            self.common_marks(ui, places, axis, scene);
            let step = context.selection.step.map(|step| step.step);
            self.arrows_ui(ui, scene, blocks, (places, axis), step);
            // The chosen step comes last, so that its outline lies over those of its companions.
            let also = self.also.iter().filter_map(|step| step_bar_position(scene, step));
            for chosen in also.chain(chosen) {
                self.paint_chosen(&painter, prepared, blocks, places, axis, &chosen, palette);
            }
        }
        self.paint_range(ui, &painter, places, axis, palette);
        focus_ui(ui, response, places.lanes);
    }

    fn common_marks(
        &self,
        ui: &Ui,
        places: &TraceViewLayout,
        axis: PanZoomAxis,
        scene: &TraceScene,
    ) {
        let palette = ThemePalette::for_ui(ui);
        let row_rect = |index: usize| {
            let top = places.marks.top() + index as f32 * MARK_HEIGHT;
            let corner = pos2(places.marks.left(), top);
            Rect::from_min_size(corner, vec2(places.marks.width(), MARK_HEIGHT))
        };
        let title = |rect: Rect, text: &str| {
            let at = pos2(rect.left() - 10.0, rect.center().y - 1.0);
            let font = FontId::proportional(text_size::CAPTION);
            ui.painter().text(at, Align2::RIGHT_CENTER, text, font, palette.weak_text);
        };
        for (index, (kind, row)) in scene.marks.iter().enumerate() {
            let rect = row_rect(index);
            marks_ui(ui, places.marks, rect, axis, row);
            title(rect, kind_title(*kind));
        }
        if !scene.host.is_empty() {
            let rect = row_rect(scene.marks.len());
            self.host_ui(ui, rect, axis, scene);
            title(rect, "Host");
        }
    }

    fn gutter_ui(&self, ui: &Ui, gutter: Rect, block: &IpuLaneLayout<'_>, top: f32) {
        let palette = ThemePalette::for_ui(ui);
        let painter = ui.painter_at(gutter);
        let name = format!("IPU {}", block.lanes.ipu);
        let rect =
            Rect::from_min_size(pos2(gutter.left(), top), vec2(gutter.width(), block.height()));
        let font = FontId::new(text_size::SMALL, crate::theme::fonts::strong_family());
        // The name stays on the screen as long as a part of its lanes does.
        let y = (top + 2.0).max(gutter.top() + 2.0).min(rect.bottom() - 18.0);
        let at = pos2(gutter.right() - 10.0, y);
        painter.text(at, Align2::RIGHT_TOP, &name, font, palette.text);
        for (index, sub_lane) in block.lanes.sub_lanes.iter().enumerate().skip(1) {
            let top = top + block.marks + block.sub_lane_top(index);
            let small = FontId::proportional(text_size::CAPTION);
            let at = pos2(gutter.right() - 10.0, top + 3.0);
            let text =
                if *sub_lane == 1 { "I/O tiles".to_owned() } else { format!("tiles {sub_lane}") };
            painter.text(at, Align2::RIGHT_TOP, text, small, palette.weak_text);
        }
        let value = format!("{} steps", grouped(block.lanes.steps));
        region_ui(
            ui,
            id(ui, "lane").with(block.lanes.ipu),
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
        scene: Option<&'a TraceScene>,
    ) -> Option<SelectedBarPosition<'a>> {
        if let Some(bar) = &self.bar {
            let SelectedBar { ipu, sub_lane, row, range, .. } = *bar;
            let shown = scene.and_then(|scene| scene.ipus.iter().find(|shown| shown.ipu == ipu));
            let lane = shown.and_then(|ipu| ipu.lanes.iter().find(|l| l.sub_lane == sub_lane));
            // Items have no ids: within a lane, row and start identify one.
            let own = |item: &&LaneItem| item.row == row && item.range.start == range.start;
            let item = lane.and_then(|lane| lane.items.iter().find(own));
            let full_height = item.is_some_and(|item| item.full_height);
            return Some(SelectedBarPosition { ipu, sub_lane, row, range, full_height, item });
        }
        step_bar_position(scene?, &context.selection.step?)
    }

    #[expect(clippy::too_many_arguments, reason = "a frame's worth of places")]
    fn paint_chosen(
        &self,
        painter: &Painter,
        prepared: &LoadedTrace,
        blocks: &[IpuLaneLayout<'_>],
        places: &TraceViewLayout,
        axis: PanZoomAxis,
        chosen: &SelectedBarPosition<'_>,
        palette: &'static ThemePalette,
    ) {
        let Some(block) = blocks.iter().find(|block| block.lanes.ipu == chosen.ipu) else { return };
        let Some(index) = block.lanes.sub_lanes.iter().position(|s| *s == chosen.sub_lane) else {
            return;
        };
        let top = places.lanes.top() + (block.top - self.scroll) as f32;
        let band = IpuLanesOnScreen { palette, axis, places, block, top };
        let rect = band.item_rect(index, chosen.row, chosen.range, chosen.full_height);
        if let Some(item) = chosen.item {
            let fill = colour(palette, &prepared.labels, item);
            painter.rect_filled(rect, 0.0, fill);
            // The fill hid the label, so it is written again.
            if rect.width() >= LEAST_LABEL {
                band.label(painter, rect, &item.text(&prepared.labels), fill);
            }
        }
        let stroke = Stroke::new(2.0, palette.selection);
        if block.tiles > 0.0 {
            let rows = Rect::from_x_y_ranges(rect.x_range(), band.tiles().y_range());
            let shapes =
                chosen.item.and_then(|item| bsp_raster::outline(prepared, item, chosen.ipu, rows));
            match shapes {
                Some(lines) => {
                    lines.into_iter().for_each(|line| {
                        painter.add(Shape::closed_line(line, stroke));
                    });
                }
                None => drop(painter.rect_stroke(rows, 0.0, stroke, StrokeKind::Inside)),
            }
        }
        painter.rect_stroke(rect.expand(1.0), CornerRadius::same(1), stroke, StrokeKind::Outside);
    }

    fn paint_range(
        &self,
        ui: &Ui,
        painter: &Painter,
        places: &TraceViewLayout,
        axis: PanZoomAxis,
        palette: &ThemePalette,
    ) {
        let (Some(from), Some(pointer)) =
            (self.range_from, ui.input(|input| input.pointer.latest_pos()))
        else {
            return;
        };
        let to = axis.position_from_x(pointer.x - places.lanes.left()).max(0);
        let (start, end) = (from.min(to).max(0) as u64, from.max(to).max(0) as u64);
        let left = places.lanes.left() + axis.x_from_position(start);
        let right = places.lanes.left() + axis.x_from_position(end);
        let rect = Rect::from_min_max(
            pos2(left, places.lanes.top()),
            // A range that was just begun has no width yet.
            pos2(right.max(left + 1.0), places.lanes.bottom()),
        );
        painter.rect_filled(rect, 0.0, palette.accent.gamma_multiply(0.18));
        let stroke = Stroke::new(1.0, palette.accent);
        painter.rect_stroke(rect, 0.0, stroke, StrokeKind::Inside);
        let text = format!("{} cycles", Cycles(end - start));
        let font = FontId::proportional(text_size::SMALL);
        let galley = painter.layout_no_wrap(text, font, palette.text);
        let at = pos2(rect.center().x - galley.size().x / 2.0, places.lanes.top() + 8.0);
        let ground = Rect::from_min_size(at, galley.size()).expand2(vec2(6.0, 3.0));
        painter.rect_filled(ground, CornerRadius::same(4), palette.page);
        painter.galley(at, galley, palette.text);
    }
}

impl IpuLanesOnScreen<'_> {
    /// Names on the bars that are wide enough, for eyes and for readers of the tree.
    fn labels_ui(
        &self,
        ui: &Ui,
        painter: &Painter,
        prepared: &LoadedTrace,
        scene: &TraceScene,
        index: usize,
        looks: TraceBarStyle,
    ) {
        let ipu = &scene.ipus[index];
        let window = cycles_on_screen(self.axis, self.places.lanes.width());
        for (sub_lane, (lane, wide)) in ipu.lanes.iter().zip(&ipu.labelled_bars).enumerate() {
            let wide = wide
                .iter()
                .filter_map(|at| lane.items.get(*at as usize))
                .filter(|item| item.range.start < window.end && item.range.end > window.start);
            for item in wide {
                let rect = self.item_rect(sub_lane, item.row, item.range, item.full_height);
                if rect.width() < LEAST_LABEL {
                    continue;
                }
                let text = item.text(&prepared.labels);
                let full = colour(self.palette, &prepared.labels, item);
                // The letters lie in the upper or the lower part of the bar.
                let bright =
                    !looks.shade_balance || item.tile_balance().is_none_or(|share| share > 0.5);
                let filtered = !scene.key.filter.is_empty();
                let ground = if bright && !filtered { full } else { self.palette.dimmed(full) };
                let veil = if looks.dimmed { DIMMED_SHARE } else { 0.0 };
                let ground = mix(ground, self.palette.lane, veil);
                self.label(painter, rect, &text, ground);
                let visible = rect.intersect(self.places.lanes);
                if visible.is_positive() {
                    self.bar_node_ui(ui, (ipu.ipu, lane.sub_lane), item, visible, &text);
                }
            }
        }
    }

    /// The line above the raster of tiles, and its name for readers of the tree.
    fn tiles_ui(&self, ui: &Ui, painter: &Painter) {
        let rect = self.tiles();
        if rect.height() <= 0.0 {
            return;
        }
        let line = Stroke::new(1.0, self.palette.page);
        painter.hline(rect.x_range(), rect.top(), line);
        let ipu = self.block.lanes.ipu;
        let name = format!("Tiles of IPU {ipu}");
        let visible = rect.intersect(self.places.lanes);
        if visible.is_positive() {
            region_ui(
                ui,
                id(ui, "tiles").with(ipu),
                visible,
                Role::Image,
                &name,
                "one row per tile",
            );
        }
    }

    fn bar_node_ui(&self, ui: &Ui, lane: (u32, u8), item: &LaneItem, rect: Rect, text: &str) {
        let bar = id(ui, "bar").with((lane, item.row, item.first_position()));
        let cycles = || format!("{} cycles", item.range.length());
        node_ui(ui, bar, rect, Role::Cell, || (text.to_owned(), cycles()));
    }

    fn label(&self, painter: &Painter, rect: Rect, text: &str, ground: Color32) {
        let room = rect.intersect(self.places.lanes).shrink2(vec2(4.0, 0.0));
        if room.width() < LEAST_LABEL - 10.0 {
            return;
        }
        let ink = self.palette.label_text_on(ground);
        let galley =
            elided(painter, text, FontId::proportional(text_size::CAPTION), ink, room.width());
        let row = Rect::from_min_size(rect.min, vec2(rect.width(), self.block.row_height - 1.0));
        let at = pos2(room.left(), row.center().y - galley.size().y / 2.0);
        painter.galley(at, galley, ink);
    }
}

fn kind_title(kind: MarkKind) -> &'static str {
    match kind {
        MarkKind::Run => "Runs",
        MarkKind::Iteration => "Iterations",
        MarkKind::Phase => "Phases",
        MarkKind::Slot => "Slots",
        MarkKind::Stage => "Stages",
        MarkKind::Update => "Updates",
        MarkKind::Loader => "Host loader",
        MarkKind::Callback => "Host callbacks",
    }
}

/// The bar of a step and its place among the lanes.
fn step_bar_position<'a>(
    scene: &'a TraceScene,
    step: &SelectedStep,
) -> Option<SelectedBarPosition<'a>> {
    let item = selected_bar::find(scene, step)?;
    let (row, range, full_height) = (item.row, item.range, item.full_height);
    let SelectedStep { ipu, sub_lane, .. } = *step;
    Some(SelectedBarPosition { ipu, sub_lane, row, range, full_height, item: Some(item) })
}
