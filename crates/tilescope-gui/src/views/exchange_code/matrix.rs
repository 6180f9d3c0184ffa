//! The matrix of senders and receivers: rows send, columns receive.

use crate::model::command::{AppCommand, ViewAction};
use crate::theme::{ColourScheme, ThemePalette, numbers, spacing, text_size};
use crate::views::ViewContext;
use crate::widgets::background_query::{BackgroundQuery, Versioned};
use crate::widgets::heat_scale::{HeatScale, scale_ui};
use crate::widgets::pan_zoom_axis::{AxisLimits, AxisRange, PanZoomAxis, tick_step};
use crate::widgets::query_state::QueryTexts;
use crate::widgets::split_texture::{SplitImage, SplitTexture};
use crate::widgets::{empty_state_ui, focus_ui, node_ui};
use egui::accesskit::Role;
use egui::{
    Align2, Color32, ColorImage, CursorIcon, FontId, Rect, Response, RichText, Sense, Stroke,
    StrokeKind, Ui, Vec2, WidgetInfo, pos2, vec2,
};
use serde::{Deserialize, Serialize};
use tilescope_analysis::exchange_code::{
    ExchangeFlows, ExchangeLink, ExchangeMatrix, ExchangeMatrixKey, ExchangeMatrixPart, matrix,
};
use tilescope_report::units::{IpuId, ProgramId, TileId, TileRange, exact_bytes, grouped, percent};

/// The space for tile numbers left of the matrix.
const LEFT: f32 = 74.0;
/// The space for tile numbers above the matrix.
const TOP: f32 = 38.0;
/// The space for the colour scale below the matrix.
const FOOT: f32 = 30.0;
/// The largest number of cells along a side.
const MAX_CELLS_PER_SIDE: usize = 512;

/// The zoom state and the current texture.
#[derive(Default, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct ExchangeMatrixPanel {
    axes: Option<[PanZoomAxis; 2]>,
    size: [f32; 2],
    /// The program that the matrix was zoomed to.
    #[serde(skip)]
    program: Option<ProgramId>,
    #[serde(skip)]
    cells: BackgroundQuery<ExchangeMatrixKey, ExchangeMatrix>,
    /// The texture, with the version of its matrix and its colours as key.
    #[serde(skip)]
    texture: Option<((u64, HeatScale, ColourScheme), SplitTexture)>,
    /// The scale of the visible amounts in the last frame.
    #[serde(skip)]
    heat_scale: Option<HeatScale>,
    /// The matrix as text: senders and receivers, their amounts, and their tiles.
    #[serde(skip)]
    words: Vec<(String, String, ExchangeMatrixPart)>,
}

/// The largest number of parts along each side that are exposed to screen readers.
const MAX_ACCESSIBLE_PARTS: usize = 12;

impl ExchangeMatrixPanel {
    /// Shows all tiles again.
    pub(crate) fn reset(&mut self) {
        self.axes = None;
    }

    pub(crate) fn heat_scale(&self) -> Option<HeatScale> {
        self.heat_scale
    }

    pub(crate) fn ui(
        &mut self,
        ui: &mut Ui,
        context: &ViewContext<'_>,
        flows: &Versioned<ExchangeFlows>,
        link: Option<ExchangeLink>,
        program: Option<ProgramId>,
    ) {
        let area = ui.available_rect_before_wrap().shrink2(vec2(10.0, 0.0));
        ui.allocate_rect(area, Sense::hover());
        let corner = pos2(area.left() + LEFT, area.top() + TOP);
        let frame = Rect::from_min_max(corner, area.max - vec2(4.0, FOOT)).translate(Vec2::ZERO);
        let frame = frame.union(Rect::from_min_size(corner, Vec2::splat(24.0)));
        let [across, down] = limits(flows.tiles, frame);
        self.keep_axes(frame, [across, down]);
        if self.program != program {
            self.program = program;
            self.zoom_to(program.and_then(|program| flows.tiles_of(program)), [across, down]);
        }
        let Some([x, y]) = self.axes else { return };
        let ppp = ui.pixels_per_point();
        let key = ExchangeMatrixKey {
            senders: tiles(y, down),
            receivers: tiles(x, across),
            cells: [frame.width(), frame.height()]
                .map(|side| ((side * ppp) as usize).min(MAX_CELLS_PER_SIDE)),
            link,
            program,
        };
        let shared = flows.clone();
        let found =
            self.cells.compute(ui.ctx(), context.workers, &key, move |key| matrix(&shared, key));
        let palette = ThemePalette::for_ui(ui);
        let painter = ui.painter_at(frame);
        painter.rect_filled(frame, 0.0, palette.lane);
        let texts = QueryTexts {
            waiting: "Adding up the traffic…",
            failed: "The totals of exchanges cannot be computed",
        };
        let inner = &mut ui.new_child(egui::UiBuilder::new().max_rect(frame));
        let Some(found) = found.show(inner, texts, |_, found| found.clone()) else { return };
        if found.total == 0.0 && answers(&found, key) && self.axes_show_all(flows, frame) {
            let inner = &mut ui.new_child(egui::UiBuilder::new().max_rect(frame));
            return empty_state_ui(inner, "No traffic", "No tile sends data to another tile here.");
        }
        let own = HeatScale::from_zero(found.max.round() as u64, true);
        self.heat_scale = Some(own);
        let scale = context.shared_scale(own);
        self.texture_of(ui, &found, (scale, palette));
        let drawn = image_rect(&found, frame, x, y);
        if found.known < 1.0 {
            // The hatch shows through cells that only may contain traffic.
            hatch_ui(&painter, frame, palette.weak_text);
        }
        if let Some((_, texture)) = &self.texture {
            texture.paint(&painter, drawn);
        }
        chips_ui(ui, context, frame, x, y);
        numbers_ui(ui, frame, x, y);
        selection_ui(ui, context, frame, x, y);
        let response = ui.interact(frame, ui.scope_id().with("matrix"), Sense::click_and_drag());
        let value = format!(
            "{} B in view; sender and receiver known for {}",
            grouped(found.total.round() as u64),
            percent(found.known)
        );
        response.widget_info(|| WidgetInfo::labeled(Role::Canvas, true, "Traffic matrix"));
        ui.ctx().accesskit_node_builder(response.id, |node| node.set_value(value));
        for (at, (name, bytes, part)) in self.words.iter().enumerate() {
            let rect = part_rect(part, frame, x, y).intersect(frame);
            node_ui(ui, response.id.with(at), rect, Role::Cell, || (name.clone(), bytes.clone()));
        }
        focus_ui(ui, &response, frame);
        self.pointer_ui(ui, context, &response, &found, drawn, (frame, [across, down]));
        self.foot_ui(ui, &found, scale, Rect::from_min_max(frame.left_bottom(), area.max));
    }

    /// Zooms to some tiles, or to all of them.
    fn zoom_to(&mut self, tiles: Option<TileRange>, limits: [AxisLimits; 2]) {
        self.axes = Some(limits.map(|limits| {
            let part = tiles.map(axis_range_of_tiles);
            PanZoomAxis::fitting_exactly(part.unwrap_or(limits.range), limits.width)
        }));
    }

    fn axes_show_all(&self, flows: &ExchangeFlows, frame: Rect) -> bool {
        let [across, down] = limits(flows.tiles, frame);
        self.axes.is_some_and(|[x, y]| {
            tiles(x, across).count() == flows.tiles && tiles(y, down).count() == flows.tiles
        })
    }

    fn keep_axes(&mut self, frame: Rect, limits: [AxisLimits; 2]) {
        let old = self.size;
        let resized = (Vec2::from(old) - frame.size()).abs().max_elem() > 0.5;
        self.size = frame.size().into();
        let fresh = limits.map(|limits| PanZoomAxis::fitting_exactly(limits.range, limits.width));
        self.axes = Some(self.axes.map_or(fresh, |axes| {
            let refit = |at: usize| {
                let window = axes[at].window(old[at]).intersection(limits[at].range);
                PanZoomAxis::fitting_exactly(window, limits[at].width)
            };
            if resized { [refit(0), refit(1)] } else { axes }
        }));
    }

    fn texture_of(
        &mut self,
        ui: &Ui,
        found: &Versioned<ExchangeMatrix>,
        (scale, palette): (HeatScale, &ThemePalette),
    ) {
        let id = (found.version(), scale, ColourScheme::of(ui));
        if self.texture.as_ref().is_none_or(|(known, _)| *known != id) {
            let pieces = SplitImage::cut(image(found, scale, palette));
            self.texture = Some((id, SplitTexture::new(ui.ctx(), "traffic matrix", &pieces)));
            self.words =
                found.parts(MAX_ACCESSIBLE_PARTS).into_iter().map(part_description).collect();
        }
    }

    fn pointer_ui(
        &mut self,
        ui: &Ui,
        context: &ViewContext<'_>,
        response: &Response,
        found: &ExchangeMatrix,
        drawn: Rect,
        (frame, limits): (Rect, [AxisLimits; 2]),
    ) {
        let Some([x, y]) = self.axes else { return };
        let [columns, rows] = found.key.cells;
        let find_cell = |at: egui::Pos2| {
            let share = (at - drawn.min) / drawn.size();
            let inside = drawn.contains(at) && frame.contains(at);
            if inside {
                Some((cell_of_share(share.x, columns), cell_of_share(share.y, rows)))
            } else {
                None
            }
        };
        if let Some((column, row)) = response.hover_pos().and_then(find_cell)
            && !response.dragged()
        {
            cell_ui(response, found, column, row);
        }
        if response.double_clicked() {
            return self.reset();
        }
        if response.clicked()
            && let Some((column, row)) = response.interact_pointer_pos().and_then(find_cell)
        {
            let (senders, receivers) = found.tiles(column, row);
            let mut chosen = vec![senders.first];
            if receivers.first != senders.first {
                chosen.push(receivers.first);
            }
            context.commands.push(AppCommand::SelectTiles(chosen));
        }
        let mut moved = [x, y];
        if response.dragged() {
            let delta = response.drag_delta();
            ui.ctx().set_cursor_icon(CursorIcon::Grabbing);
            moved = [x.panned(delta.x), y.panned(delta.y)];
        }
        let (factor, at, pan) = movement(ui, response, frame, context.actions);
        if factor != 1.0 {
            moved = [
                moved[0].zoomed(factor, at.x - frame.left(), limits[0]),
                moved[1].zoomed(factor, at.y - frame.top(), limits[1]),
            ];
        }
        if pan != Vec2::ZERO {
            moved = [moved[0].panned(pan.x), moved[1].panned(pan.y)];
        }
        if moved != [x, y] {
            let keep_inside = |at: usize| inside(moved[at], limits[at]);
            self.axes = Some([keep_inside(0), keep_inside(1)]);
        }
    }

    fn foot_ui(&self, ui: &mut Ui, found: &ExchangeMatrix, scale: HeatScale, rect: Rect) {
        let mut ui = ui.new_child(
            egui::UiBuilder::new()
                .max_rect(rect.shrink2(vec2(0.0, 4.0)))
                .layout(egui::Layout::left_to_right(egui::Align::Center)),
        );
        let palette = ThemePalette::for_ui(&ui);
        if scale.most() > 0 {
            scale_ui(&mut ui, "1 B", &exact_bytes(scale.most()));
            ui.add_space(spacing::M);
        }
        if found.known < 1.0 {
            let (swatch, _) = ui.allocate_exact_size(vec2(22.0, 12.0), Sense::hover());
            ui.painter().rect_filled(swatch, 0.0, palette.lane);
            hatch_ui(&ui.painter_at(swatch), swatch, palette.weak_text);
            let text = format!("Estimated for {} of the bytes", percent(1.0 - found.known));
            ui.label(RichText::new(text).size(text_size::SMALL)).on_hover_text(ASSUMED);
            ui.add_space(spacing::M);
        }
        let text = format!(
            "{} in view, each exchange once; sender and receiver known for {}",
            numbers(&ui).bytes(found.total.round() as u64),
            percent(found.known)
        );
        let label = egui::Label::new(RichText::new(text).size(text_size::SMALL).weak());
        ui.add(label.truncate()).on_hover_text(ASSUMED);
    }
}

fn cell_of_share(share: f32, cells: usize) -> usize {
    ((share * cells as f32) as usize).min(cells - 1)
}

/// The explanation of recorded and assumed traffic.
const ASSUMED: &str = "The bytes that each tile sends and receives are recorded. Colours show \
                       copies between IPUs and moves that keep the order of the data: their sender \
                       and receiver are recorded. Hatching shows where the data of other exchanges \
                       may go; the amount is assumed:\nbytes received x bytes this sender delivers \
                       / bytes all senders deliver.";

/// The distance between the lines of a hatch, in points.
const HATCH: f32 = 7.0;

/// Hatches a rectangle with lines that rise to the right.
fn hatch_ui(painter: &egui::Painter, rect: Rect, colour: Color32) {
    let stroke = Stroke::new(1.0, colour.gamma_multiply(0.55));
    let lines = ((rect.width() + rect.height()) / HATCH).ceil() as u32;
    for line in 0..lines {
        let left = rect.left() - rect.height() + line as f32 * HATCH;
        let ends = [pos2(left, rect.bottom()), pos2(left + rect.height(), rect.top())];
        painter.line_segment(ends, stroke);
    }
}

/// Returns true if a matrix answers this key. It may have fewer cells than requested.
fn answers(found: &ExchangeMatrix, key: ExchangeMatrixKey) -> bool {
    ExchangeMatrixKey { cells: key.cells, ..found.key } == key
}

fn limits(count: u32, frame: Rect) -> [AxisLimits; 2] {
    let range = axis_range_of_tiles(TileRange::first_tiles(count.max(1)));
    [frame.width(), frame.height()].map(|width| AxisLimits { range, width })
}

fn axis_range_of_tiles(tiles: TileRange) -> AxisRange {
    AxisRange::new(tiles.first.into(), tiles.end.into())
}

/// The visible tiles along an axis.
fn tiles(axis: PanZoomAxis, limits: AxisLimits) -> TileRange {
    let window = axis.window(limits.width - 0.01).intersection(limits.range);
    TileRange::new(TileId(window.start as u32), TileId(window.end as u32))
}

/// The axis moved so that it stays within the tiles.
fn inside(axis: PanZoomAxis, limits: AxisLimits) -> PanZoomAxis {
    let window = axis.window(limits.width);
    if window.length() > limits.range.length() {
        return PanZoomAxis::fitting_exactly(limits.range, limits.width);
    }
    let left = axis.start().min(limits.range.end as f64 - axis.scale() * f64::from(limits.width));
    let moved = axis.start() - left.max(0.0);
    axis.panned((moved / axis.scale()) as f32)
}

/// The zoom factor, its fixed point, and the pan, from wheel and keys.
fn movement(
    ui: &Ui,
    response: &Response,
    frame: Rect,
    actions: &[ViewAction],
) -> (f64, egui::Pos2, Vec2) {
    let mut factor = 1.0;
    let mut pan = Vec2::ZERO;
    let mut at = frame.center();
    if let Some(pointer) = response.hover_pos() {
        let (delta, zoom) = ui.input(|input| (input.smooth_scroll_delta(), input.zoom_delta()));
        factor *= f64::from(zoom) * (f64::from(delta.y) * 0.006).exp();
        pan.x += delta.x;
        at = pointer;
    }
    let step = frame.size() * 0.08;
    for action in actions {
        match action {
            ViewAction::ZoomIn => factor *= 1.3,
            ViewAction::ZoomOut => factor /= 1.3,
            ViewAction::PanLeft => pan.x += step.x,
            ViewAction::PanRight => pan.x -= step.x,
            ViewAction::PanUp => pan.y += step.y,
            ViewAction::PanDown => pan.y -= step.y,
            _ => {}
        }
    }
    (factor, at, pan)
}

/// Colours the known traffic. Cells with assumed traffic only stay transparent, so that the hatch
/// below is visible.
fn image(found: &ExchangeMatrix, scale: HeatScale, palette: &ThemePalette) -> ColorImage {
    let mut pixels = Vec::new();
    for (bytes, known) in found.bytes.iter().zip(&found.known_bytes) {
        pixels.push(if *known > 0.0 {
            palette.heat(scale.share(known.round() as u64))
        } else if *bytes > 0.0 {
            Color32::TRANSPARENT
        } else {
            palette.lane
        });
    }
    ColorImage::new(found.key.cells, pixels)
}

/// Formats bytes, and the share of them whose sender or receiver is assumed.
fn bytes_words(bytes: f64, known: f64) -> String {
    match (bytes.round(), known.round()) {
        (all, known) if all <= known => whole_bytes(bytes),
        (_, known) if known > 0.0 => {
            format!("{} ({} known)", whole_bytes(bytes), whole_bytes(known))
        }
        _ => format!("{}, assumed", whole_bytes(bytes)),
    }
}

fn whole_bytes(bytes: f64) -> String {
    exact_bytes(bytes.round() as u64)
}

/// The name and value of a part of the matrix.
fn part_description(part: ExchangeMatrixPart) -> (String, String, ExchangeMatrixPart) {
    let name = format!("from {} to {}", range_text(part.senders), range_text(part.receivers));
    (name, bytes_words(part.bytes, part.known), part)
}

fn image_rect(found: &ExchangeMatrix, frame: Rect, x: PanZoomAxis, y: PanZoomAxis) -> Rect {
    let ExchangeMatrixKey { senders, receivers, .. } = found.key;
    let whole = ExchangeMatrixPart { senders, receivers, bytes: found.total, known: 0.0 };
    part_rect(&whole, frame, x, y)
}

fn part_rect(part: &ExchangeMatrixPart, frame: Rect, x: PanZoomAxis, y: PanZoomAxis) -> Rect {
    let ExchangeMatrixPart { senders, receivers, .. } = part;
    let to_x = |tile: TileId| frame.left() + x.x_from_position(tile.0.into());
    let to_y = |tile: TileId| frame.top() + y.x_from_position(tile.0.into());
    Rect::from_min_max(
        pos2(to_x(receivers.first), to_y(senders.first)),
        pos2(to_x(receivers.end), to_y(senders.end)),
    )
}

fn range_text(tiles: TileRange) -> String {
    match tiles.count() {
        1 => format!("tile {}", grouped(tiles.first.into())),
        _ => format!("tiles {} - {}", grouped(tiles.first.into()), grouped((tiles.end - 1).into())),
    }
}

fn cell_ui(response: &Response, found: &ExchangeMatrix, column: usize, row: usize) {
    let (senders, receivers) = found.tiles(column, row);
    let bytes = bytes_words(found.get(column, row), found.known_in(column, row));
    response.clone().on_hover_ui_at_pointer(|ui| {
        ui.label(crate::theme::fonts::strong(&bytes));
        let text = format!("from {} to {}", range_text(senders), range_text(receivers));
        ui.weak(text);
    });
}

fn chips_ui(ui: &Ui, context: &ViewContext<'_>, frame: Rect, x: PanZoomAxis, y: PanZoomAxis) {
    let target = &context.opened.target;
    let painter = ui.painter_at(frame);
    let line = Stroke::new(1.0, ThemePalette::for_ui(ui).weak_text);
    for ipu in (1..target.ipus_per_replica).map(IpuId) {
        let tile = target.tiles_of_ipu(ipu).first.into();
        painter.vline(frame.left() + x.x_from_position(tile), frame.y_range(), line);
        painter.hline(frame.x_range(), frame.top() + y.x_from_position(tile), line);
    }
}

/// The tile numbers along both sides.
fn numbers_ui(ui: &Ui, frame: Rect, x: PanZoomAxis, y: PanZoomAxis) {
    let palette = ThemePalette::for_ui(ui);
    let font = FontId::proportional(text_size::CAPTION);
    let painter = ui.painter();
    let paint_title = |at, align, text: &str| {
        painter.text(at, align, text, font.clone(), palette.weak_text);
    };
    paint_title(pos2(frame.left(), frame.top() - 36.0), Align2::LEFT_TOP, "Receiving tile");
    paint_title(pos2(frame.left() - 8.0, frame.top() - 36.0), Align2::RIGHT_TOP, "Sending tile");
    for tile in labelled_tiles(x, frame.width(), 70.0) {
        let at = pos2(frame.left() + x.x_from_position(tile), frame.top() - 4.0);
        if at.x <= frame.right() - 10.0 {
            painter.text(at, Align2::LEFT_BOTTOM, grouped(tile), font.clone(), palette.text);
        }
        painter.vline(at.x, frame.top() - 4.0..=frame.top(), Stroke::new(1.0, palette.outline));
    }
    for tile in labelled_tiles(y, frame.height(), 30.0) {
        let at = pos2(frame.left() - 8.0, frame.top() + y.x_from_position(tile));
        if at.y <= frame.bottom() - 4.0 {
            painter.text(at, Align2::RIGHT_TOP, grouped(tile), font.clone(), palette.text);
        }
        painter.hline(frame.left() - 6.0..=frame.left(), at.y, Stroke::new(1.0, palette.outline));
    }
}

fn labelled_tiles(axis: PanZoomAxis, length: f32, apart: f32) -> impl Iterator<Item = u64> {
    let step = tick_step(axis.scale(), apart);
    let window = axis.window(length);
    let first = window.start.div_ceil(step);
    (first..).map(move |i| i * step).take_while(move |tile| *tile < window.end).take(400)
}

/// Highlights the rows and columns of the selected tiles.
fn selection_ui(ui: &Ui, context: &ViewContext<'_>, frame: Rect, x: PanZoomAxis, y: PanZoomAxis) {
    let painter = ui.painter_at(frame);
    let stroke = Stroke::new(1.0, ThemePalette::for_ui(ui).selection);
    for tile in &context.selection.tiles {
        let first = u64::from(*tile);
        let end = u64::from(*tile) + 1;
        let column = Rect::from_x_y_ranges(
            frame.left() + x.x_from_position(first)..=frame.left() + x.x_from_position(end),
            frame.top() - 2.0..=frame.bottom() + 2.0,
        );
        let row = Rect::from_x_y_ranges(
            frame.left() - 2.0..=frame.right() + 2.0,
            frame.top() + y.x_from_position(first)..=frame.top() + y.x_from_position(end),
        );
        for band in [column, row] {
            painter.rect_stroke(band, 0.0, stroke, StrokeKind::Outside);
        }
    }
}
