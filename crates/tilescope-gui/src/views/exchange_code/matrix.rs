//! The matrix of senders and receivers: rows send, columns receive.

use crate::action::Wish;
use crate::command::Command;
use crate::theme::Palette;
use crate::views::ViewContext;
use crate::widgets::axis::{Axis, Limits, tick_step};
use crate::widgets::heat::{log_share, scale_ui};
use crate::widgets::query_state::QueryTexts;
use crate::widgets::tiled::{Pieces, Tiled};
use crate::widgets::{focus_ui, missing_ui, node_ui};
use crate::worker::{BackgroundQuery, Versioned};
use egui::accesskit::Role;
use egui::{
    Align2, Color32, ColorImage, CursorIcon, FontId, Rect, Response, RichText, Sense, Stroke,
    StrokeKind, Ui, Vec2, WidgetInfo, pos2, vec2,
};
use serde::{Deserialize, Serialize};
use tilescope_analysis::exchange_code::{Flows, Link, Matrix, MatrixKey, MatrixPart, matrix};
use tilescope_report::units::{CycleRange, ProgramId, TileRange, exact_bytes, grouped, percent};

/// Room for tile numbers left of the matrix and above it.
const LEFT: f32 = 74.0;
const TOP: f32 = 38.0;
/// Room for the colour scale below.
const FOOT: f32 = 30.0;
/// Most cells along a side.
const MOST: usize = 512;

/// What is zoomed to, and what is drawn already.
#[derive(Default, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct MatrixView {
    axes: Option<[Axis; 2]>,
    size: [f32; 2],
    /// The program that was zoomed to.
    #[serde(skip)]
    program: Option<ProgramId>,
    #[serde(skip)]
    cells: BackgroundQuery<MatrixKey, Matrix>,
    /// The matrix that was drawn, by its version, and whether in dark colours.
    #[serde(skip)]
    texture: Option<((u64, bool), Tiled)>,
    /// The same matrix in words: senders and receivers, what they move, and their tiles.
    #[serde(skip)]
    words: Vec<(String, String, MatrixPart)>,
}

/// Most parts of the matrix along each side that readers of the screen are told about.
const TOLD: usize = 12;

impl MatrixView {
    /// Shows all tiles again.
    pub(crate) fn reset(&mut self) {
        self.axes = None;
    }

    /// Shows the matrix.
    pub(crate) fn ui(
        &mut self,
        ui: &mut Ui,
        context: &mut ViewContext<'_>,
        flows: &Versioned<Flows>,
        link: Option<Link>,
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
        let key = MatrixKey {
            senders: tiles(y, down),
            receivers: tiles(x, across),
            cells: [frame.width(), frame.height()].map(|side| ((side * ppp) as usize).min(MOST)),
            link,
            program,
        };
        let shared = flows.clone();
        let question = move |key: &MatrixKey| matrix(&shared, key);
        let found = self.cells.compute(ui.ctx(), context.workers, &key, question);
        let palette = Palette::of(ui.visuals());
        let painter = ui.painter_at(frame);
        painter.rect_filled(frame, 0.0, palette.lane);
        let texts = QueryTexts {
            waiting: "Adding up who sends to whom…",
            failed: "Exchanges cannot be added up",
        };
        let inner = &mut ui.new_child(egui::UiBuilder::new().max_rect(frame));
        let Some(found) = found.show(inner, texts, |_, found| found.clone()) else { return };
        if found.total == 0.0 && answers(&found, key) && self.axes_show_all(flows, frame) {
            let inner = &mut ui.new_child(egui::UiBuilder::new().max_rect(frame));
            return missing_ui(inner, "Nothing moves", "No tile sends to another one here.");
        }
        self.texture_of(ui, &found, palette);
        let drawn = image_rect(&found, frame, x, y);
        if let Some((_, texture)) = &self.texture {
            texture.paint(&painter, drawn);
        }
        chips_ui(ui, context, frame, x, y);
        numbers_ui(ui, frame, x, y);
        selection_ui(ui, context, frame, x, y);
        let response = ui.interact(frame, ui.scope_id().with("matrix"), Sense::click_and_drag());
        let value = format!("{} B in view", grouped(found.total.round() as u64));
        response.widget_info(|| WidgetInfo::labeled(Role::Canvas, true, "Who sends to whom"));
        ui.ctx().accesskit_node_builder(response.id, |node| node.set_value(value));
        for (at, (name, bytes, part)) in self.words.iter().enumerate() {
            let rect = part_rect(part, frame, x, y).intersect(frame);
            let told = || (name.clone(), bytes.clone());
            node_ui(ui, response.id.with(at), rect, Role::Cell, told);
        }
        focus_ui(ui, &response, frame);
        self.pointer_ui(ui, context, &response, &found, drawn, (frame, [across, down]));
        self.foot_ui(ui, &found, Rect::from_min_max(frame.left_bottom(), area.max));
    }

    /// Shows some tiles, or all of them.
    fn zoom_to(&mut self, tiles: Option<TileRange>, limits: [Limits; 2]) {
        self.axes = Some(limits.map(|limits| {
            let part = tiles.map(|t| CycleRange::new(t.first.into(), t.end.into()));
            Axis::fitting_exactly(part.unwrap_or(limits.range), limits.width)
        }));
    }

    fn axes_show_all(&self, flows: &Flows, frame: Rect) -> bool {
        let [across, down] = limits(flows.tiles, frame);
        self.axes.is_some_and(|[x, y]| {
            tiles(x, across).count() == flows.tiles && tiles(y, down).count() == flows.tiles
        })
    }

    fn keep_axes(&mut self, frame: Rect, limits: [Limits; 2]) {
        let old = self.size;
        let resized = (Vec2::from(old) - frame.size()).abs().max_elem() > 0.5;
        self.size = frame.size().into();
        let fresh = limits.map(|limits| Axis::fitting_exactly(limits.range, limits.width));
        let kept = |axes: [Axis; 2]| {
            let refit = |at: usize| {
                let window = axes[at].window(old[at]).intersection(limits[at].range);
                Axis::fitting_exactly(window, limits[at].width)
            };
            if resized { [refit(0), refit(1)] } else { axes }
        };
        self.axes = Some(self.axes.map_or(fresh, kept));
    }

    fn texture_of(&mut self, ui: &Ui, found: &Versioned<Matrix>, palette: &Palette) {
        let id = (found.version(), ui.visuals().dark_mode);
        if self.texture.as_ref().is_none_or(|(known, _)| *known != id) {
            let pieces = Pieces::cut(image(found, palette));
            self.texture = Some((id, Tiled::new(ui.ctx(), "who sends to whom", &pieces)));
            self.words = found.parts(TOLD).into_iter().map(in_words).collect();
        }
    }

    fn pointer_ui(
        &mut self,
        ui: &Ui,
        context: &mut ViewContext<'_>,
        response: &Response,
        found: &Matrix,
        drawn: Rect,
        (frame, limits): (Rect, [Limits; 2]),
    ) {
        let Some([x, y]) = self.axes else { return };
        let [columns, rows] = found.key.cells;
        let cell = |at: egui::Pos2| {
            let share = (at - drawn.min) / drawn.size();
            let inside = drawn.contains(at) && frame.contains(at);
            let place = |share: f32, cells: usize| ((share * cells as f32) as usize).min(cells - 1);
            inside.then(|| (place(share.x, columns), place(share.y, rows)))
        };
        if let Some((column, row)) = response.hover_pos().and_then(cell)
            && !response.dragged()
        {
            cell_ui(response, found, column, row);
        }
        if response.double_clicked() {
            return self.reset();
        }
        if response.clicked()
            && let Some((column, row)) = response.interact_pointer_pos().and_then(cell)
        {
            let (senders, receivers) = found.tiles(column, row);
            let mut chosen = vec![senders.first];
            chosen.extend((receivers.first != senders.first).then_some(receivers.first));
            context.commands.push(Command::SelectTiles(chosen));
        }
        let mut moved = [x, y];
        if response.dragged() {
            let delta = response.drag_delta();
            ui.ctx().set_cursor_icon(CursorIcon::Grabbing);
            moved = [x.panned(delta.x), y.panned(delta.y)];
        }
        let (factor, at, pan) = movement(ui, response, frame, context.wishes);
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
            let kept = |at: usize| inside(moved[at], limits[at]);
            self.axes = Some([kept(0), kept(1)]);
        }
    }

    fn foot_ui(&self, ui: &mut Ui, found: &Matrix, rect: Rect) {
        let mut ui = ui.new_child(
            egui::UiBuilder::new()
                .max_rect(rect.shrink2(vec2(0.0, 4.0)))
                .layout(egui::Layout::left_to_right(egui::Align::Center)),
        );
        let palette = Palette::of(ui.visuals());
        scale_ui(&mut ui, "1 B", &exact_bytes(found.max.round() as u64));
        ui.add_space(10.0);
        let text = format!(
            "{} in view, each exchange once; sender and receiver known for {}",
            tilescope_report::units::Bytes(found.total.round() as u64),
            percent(found.known)
        );
        let label = egui::Label::new(RichText::new(text).size(12.0).color(palette.weak_text));
        ui.add(label.truncate()).on_hover_text(
            "Bytes that each tile sends and receives are recorded. Which sender serves which \
             receiver is recorded for copies between IPUs and for moves that keep the order of \
             the data. In other exchanges a receiver gets from each sender:\n\
             bytes received x bytes this sender delivers / bytes all senders deliver.",
        );
    }
}

/// Whether a matrix answers this key: it may have fewer cells than were asked for.
fn answers(found: &Matrix, key: MatrixKey) -> bool {
    MatrixKey { cells: key.cells, ..found.key } == key
}

fn limits(count: u32, frame: Rect) -> [Limits; 2] {
    let range = CycleRange::new(0, u64::from(count.max(1)));
    [frame.width(), frame.height()].map(|width| Limits { range, width })
}

/// Tiles in sight along an axis.
fn tiles(axis: Axis, limits: Limits) -> TileRange {
    let window = axis.window(limits.width - 0.01).intersection(limits.range);
    TileRange::new(window.start as u32, window.end as u32)
}

/// Stays within the tiles, edge to edge.
fn inside(axis: Axis, limits: Limits) -> Axis {
    let window = axis.window(limits.width);
    if window.length() > limits.range.length() {
        return Axis::fitting_exactly(limits.range, limits.width);
    }
    let left = axis.start().min(limits.range.end as f64 - axis.scale() * f64::from(limits.width));
    let moved = axis.start() - left.max(0.0);
    axis.panned((moved / axis.scale()) as f32)
}

/// Zoom factor, the place that stays, and pan, from wheel and keys.
fn movement(ui: &Ui, response: &Response, frame: Rect, wishes: &[Wish]) -> (f64, egui::Pos2, Vec2) {
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
    for wish in wishes {
        match wish {
            Wish::Closer => factor *= 1.3,
            Wish::Farther => factor /= 1.3,
            Wish::Left => pan.x += step.x,
            Wish::Right => pan.x -= step.x,
            Wish::Up => pan.y += step.y,
            Wish::Down => pan.y -= step.y,
            _ => {}
        }
    }
    (factor, at, pan)
}

fn image(found: &Matrix, palette: &Palette) -> ColorImage {
    let pixel = |bytes: &f64| match *bytes {
        bytes if bytes <= 0.0 => palette.lane,
        bytes => palette.heat(log_share(bytes, found.max)),
    };
    let pixels: Vec<Color32> = found.bytes.iter().map(pixel).collect();
    ColorImage::new(found.key.cells, pixels)
}

/// Name and value of a part of the matrix.
fn in_words(part: MatrixPart) -> (String, String, MatrixPart) {
    let name = format!("from {} to {}", range_text(part.senders), range_text(part.receivers));
    (name, exact_bytes(part.bytes.round() as u64), part)
}

fn image_rect(found: &Matrix, frame: Rect, x: Axis, y: Axis) -> Rect {
    let MatrixKey { senders, receivers, .. } = found.key;
    part_rect(&MatrixPart { senders, receivers, bytes: found.total }, frame, x, y)
}

fn part_rect(part: &MatrixPart, frame: Rect, x: Axis, y: Axis) -> Rect {
    let MatrixPart { senders, receivers, .. } = part;
    let across = |tile: u32| frame.left() + x.x_from_cycle(tile.into());
    let down = |tile: u32| frame.top() + y.x_from_cycle(tile.into());
    Rect::from_min_max(
        pos2(across(receivers.first), down(senders.first)),
        pos2(across(receivers.end), down(senders.end)),
    )
}

fn range_text(tiles: TileRange) -> String {
    match tiles.count() {
        1 => format!("tile {}", grouped(tiles.first.into())),
        _ => format!("tiles {} - {}", grouped(tiles.first.into()), grouped((tiles.end - 1).into())),
    }
}

fn cell_ui(response: &Response, found: &Matrix, column: usize, row: usize) {
    let (senders, receivers) = found.tiles(column, row);
    let bytes = found.get(column, row);
    response.clone().on_hover_ui_at_pointer(|ui| {
        ui.label(crate::fonts::strong(exact_bytes(bytes.round() as u64)));
        let text = format!("from {} to {}", range_text(senders), range_text(receivers));
        ui.label(RichText::new(text).color(Palette::of(ui.visuals()).weak_text));
    });
}

/// Lines between chips.
fn chips_ui(ui: &Ui, context: &ViewContext<'_>, frame: Rect, x: Axis, y: Axis) {
    let target = &context.opened.target;
    let painter = ui.painter_at(frame);
    let line = Stroke::new(1.0, Palette::of(ui.visuals()).weak_text);
    for ipu in 1..target.ipus_per_replica {
        let tile = u64::from(ipu) * u64::from(target.tiles_per_ipu);
        painter.vline(frame.left() + x.x_from_cycle(tile), frame.y_range(), line);
        painter.hline(frame.x_range(), frame.top() + y.x_from_cycle(tile), line);
    }
}

/// Tile numbers along both sides.
fn numbers_ui(ui: &Ui, frame: Rect, x: Axis, y: Axis) {
    let palette = Palette::of(ui.visuals());
    let font = FontId::proportional(11.0);
    let painter = ui.painter();
    let title = |at, align, text: &str| {
        painter.text(at, align, text, font.clone(), palette.weak_text);
    };
    title(pos2(frame.left(), frame.top() - 36.0), Align2::LEFT_TOP, "Receiving tile");
    title(pos2(frame.left() - 8.0, frame.top() - 36.0), Align2::RIGHT_TOP, "Sending tile");
    let ticks = |axis: Axis, length: f32, apart: f32| {
        let step = tick_step(axis.scale(), apart);
        let window = axis.window(length);
        let first = window.start.div_ceil(step);
        (first..).map(move |i| i * step).take_while(move |tile| *tile < window.end).take(400)
    };
    for tile in ticks(x, frame.width(), 70.0) {
        let at = pos2(frame.left() + x.x_from_cycle(tile), frame.top() - 4.0);
        if at.x <= frame.right() - 10.0 {
            painter.text(at, Align2::LEFT_BOTTOM, grouped(tile), font.clone(), palette.text);
        }
        painter.vline(at.x, frame.top() - 4.0..=frame.top(), Stroke::new(1.0, palette.outline));
    }
    for tile in ticks(y, frame.height(), 30.0) {
        let at = pos2(frame.left() - 8.0, frame.top() + y.x_from_cycle(tile));
        if at.y <= frame.bottom() - 4.0 {
            painter.text(at, Align2::RIGHT_TOP, grouped(tile), font.clone(), palette.text);
        }
        painter.hline(frame.left() - 6.0..=frame.left(), at.y, Stroke::new(1.0, palette.outline));
    }
}

/// Rows and columns of the tiles that are chosen.
fn selection_ui(ui: &Ui, context: &ViewContext<'_>, frame: Rect, x: Axis, y: Axis) {
    let painter = ui.painter_at(frame);
    let stroke = Stroke::new(1.0, Palette::of(ui.visuals()).selection);
    for tile in &context.selection.tiles {
        let (first, end) = (u64::from(*tile), u64::from(*tile) + 1);
        let column = Rect::from_x_y_ranges(
            frame.left() + x.x_from_cycle(first)..=frame.left() + x.x_from_cycle(end),
            frame.top() - 2.0..=frame.bottom() + 2.0,
        );
        let row = Rect::from_x_y_ranges(
            frame.left() - 2.0..=frame.right() + 2.0,
            frame.top() + y.x_from_cycle(first)..=frame.top() + y.x_from_cycle(end),
        );
        for band in [column, row] {
            painter.rect_stroke(band, 0.0, stroke, StrokeKind::Outside);
        }
    }
}
