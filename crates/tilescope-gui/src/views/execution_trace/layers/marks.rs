//! The layer of marks: the rows above the lanes, and the stages of each IPU.

use super::TracePainter;
use crate::theme::fonts::strong;
use crate::theme::{ThemePalette, text_size};
use crate::views::execution_trace::layout::{MARK_HEIGHT, TraceLayout};
use crate::views::execution_trace::loaded_trace::LoadedTrace;
use crate::views::execution_trace::scene::{TraceScene, TraceSceneKey};
use crate::widgets::{elided_text::elided, node_ui};
use egui::accesskit::Role;
use egui::{
    Color32, CornerRadius, FontId, Painter, Pos2, Rect, Response, Stroke, StrokeKind, Ui, pos2,
    vec2,
};
use serde::{Deserialize, Serialize};
use tilescope_analysis::trace::{MarkBlock, MarkPlace, MarkRowId, short_turn};
use tilescope_report::units::{CycleRange, Cycles, grouped};
use tilescope_report::{MarkKind, Report, ReportError, TrainingPass};

/// The distance at which the pointer hits a narrow mark.
const HIT_TOLERANCE: f32 = 2.0;
/// The smallest width for the text of a mark.
const LEAST_WORDS: f32 = 7.0;
/// The smallest width for text that is cut off.
const LEAST_CUT_WORDS: f32 = 40.0;
/// The smallest height for the text of a mark.
const LEAST_WORDS_HEIGHT: f32 = 11.0;

/// A visible mark, or several that are too narrow to be drawn separately.
#[derive(Clone, Debug)]
pub(crate) struct ShownMark {
    pub block: MarkBlock,
    /// `B1 forward`, `16 iterations`
    pub words: String,
}

/// Some consecutive marks of a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct SelectedMark {
    pub row: MarkRowId,
    /// The index of the first one in the row.
    pub first: u64,
    /// The number of marks.
    pub count: u64,
    /// The cycles that they cover.
    pub range: CycleRange,
}

impl SelectedMark {
    pub(crate) fn from_block(row: MarkRowId, block: &MarkBlock) -> Self {
        Self { row, first: block.first, count: block.count, range: block.range }
    }

    pub(crate) fn from_place(row: MarkRowId, place: &MarkPlace) -> Self {
        Self { row, first: place.first, count: 1, range: place.range }
    }
}

/// Reads the marks of a row, as many as fit; empty before the marks are read.
pub(crate) fn read(
    report: &Report,
    prepared: &LoadedTrace,
    key: &TraceSceneKey,
    id: MarkRowId,
) -> Result<Vec<ShownMark>, ReportError> {
    let Some(rows) = prepared.known_marks().filter(|_| key.marks_known) else {
        return Ok(Vec::new());
    };
    let cycles_per_point = key.window.length().as_f64() / key.points.max(1) as f64;
    let blocks = rows.shown(report, id, key.window, cycles_per_point)?;
    Ok(blocks.into_iter().map(|block| ShownMark { words: rows.words(id, &block), block }).collect())
}

/// A visible mark or block of marks.
#[derive(Clone, Copy, Debug)]
pub(crate) struct MarkBarItem<'a> {
    pub rect: Rect,
    pub shown: &'a ShownMark,
}

/// The visible marks of a row; those narrower than a point are merged.
pub(super) fn bars<'a>(
    layout: &TraceLayout<'_>,
    row: Rect,
    marks: &'a [ShownMark],
) -> Vec<MarkBarItem<'a>> {
    let mut behind = f32::MIN;
    let mut bars = Vec::new();
    for shown in marks {
        let CycleRange { start, end } = shown.block.range;
        let left = layout.x(start);
        let right = layout.x(end);
        // While a wider window is read, the marks on the screen are narrower than intended.
        if right < row.left() || left > row.right() || right <= behind {
            continue;
        }
        // Cut slightly outside the row, whose clip hides the rounded corners of the cut.
        let from = left.max(row.left() - 4.0).max(behind);
        let gap = if right - left > 4.0 { 1.0 } else { 0.0 };
        let to = (right - gap).max(from + 1.0).min(row.right() + 4.0);
        // A narrow mark always has its own point; the next one begins after it.
        behind = if right - left > 2.0 { right } else { from + 1.0 };
        let rect = Rect::from_min_max(pos2(from, row.top()), pos2(to, row.bottom() - 2.0));
        bars.push(MarkBarItem { rect, shown });
    }
    bars
}

impl TracePainter<'_> {
    /// Paints the rows of marks of all IPUs.
    pub(super) fn common_marks_ui(&self, scene: &TraceScene) {
        for (index, (kind, marks)) in scene.marks.iter().enumerate() {
            let row = self.layout.mark_row(index);
            let id = (MarkRowId::Common(*kind), None);
            self.marks_ui(self.layout.regions.marks, row, &bars(self.layout, row, marks), id);
            self.row_title(row, kind_title(*kind));
        }
    }

    /// Paints a row of marks and blocks of marks. Those wide enough have text.
    pub(super) fn marks_ui(
        &self,
        clip: Rect,
        row: Rect,
        bars: &[MarkBarItem<'_>],
        (id, replica): (MarkRowId, Option<u32>),
    ) {
        // Rows of stages scroll with their IPU: without the clip they would cover the ruler.
        let painter = self.ui.painter_at(row.intersect(clip));
        for bar in bars {
            let ground = match bar.shown.block.count {
                1 => self.mark_bar(&painter, bar, id),
                _ => self.mark_block(&painter, bar, id),
            };
            let room = bar.rect.intersect(row).shrink2(vec2(3.0, 0.0));
            if room.width() > LEAST_WORDS && room.height() > LEAST_WORDS_HEIGHT {
                self.mark_words_ui(&painter, (room, clip), bar.shown, (id, replica, ground));
            }
        }
    }

    /// Paints a mark in the colour of its pass. Returns that colour.
    fn mark_bar(&self, painter: &Painter, bar: &MarkBarItem<'_>, id: MarkRowId) -> Color32 {
        let colour = mark_colour(self.palette, &bar.shown.block, id);
        painter.rect_filled(bar.rect, CornerRadius::same(2), colour);
        colour
    }

    /// Paints a block of marks: the shares of its passes from the bottom up, and the remainder
    /// between them. Returns the colour behind its text.
    fn mark_block(&self, painter: &Painter, bar: &MarkBarItem<'_>, id: MarkRowId) -> Color32 {
        let rect = bar.rect;
        let block = &bar.shown.block;
        let length = block.range.length().max(block.passes.total()).max(Cycles(1)).as_f64();
        painter.rect_filled(rect, CornerRadius::same(2), self.palette.lane);
        let passes = [Some(TrainingPass::Forward), Some(TrainingPass::Backward)];
        let passes = passes.into_iter().chain([Some(TrainingPass::Update), None]);
        let mut foot = rect.bottom();
        let mut middle = self.palette.lane;
        for pass in passes {
            let cycles = block.passes.of(pass);
            let height = (cycles.as_f64() / length) as f32 * rect.height();
            let part = Rect::from_x_y_ranges(rect.x_range(), foot - height..=foot);
            let colour = pass_colour(self.palette, pass, id);
            painter.rect_filled(part, 0.0, colour);
            if part.y_range().contains(rect.center().y) {
                middle = colour;
            }
            foot -= height;
        }
        let line = Stroke::new(1.0, self.palette.outline);
        painter.rect_stroke(rect, CornerRadius::same(2), line, StrokeKind::Inside);
        middle
    }

    fn mark_words_ui(
        &self,
        painter: &Painter,
        (room, clip): (Rect, Rect),
        shown: &ShownMark,
        (id, replica, ground): (MarkRowId, Option<u32>, Color32),
    ) {
        let ink = self.palette.label_text_on(ground);
        let font = FontId::proportional(text_size::CAPTION);
        let fits = |words: &String| {
            let galley = painter.layout_no_wrap(words.clone(), font.clone(), ink);
            galley.size().x <= room.width()
        };
        let ways = wordings(shown, id);
        let cut = ways.first().filter(|_| room.width() >= LEAST_CUT_WORDS);
        if let Some(words) = ways.iter().find(|words| fits(words)).or(cut) {
            let text = elided(painter, words, font.clone(), ink, room.width());
            let at = pos2(room.left(), room.center().y - text.size().y / 2.0);
            painter.galley(at, text, ink);
        }
        let node =
            self.ui.scope_id().with(("mark", id, replica, shown.block.first, shown.block.count));
        node_ui(self.ui, node, room.intersect(clip), Role::Cell, || {
            (
                ways.first().cloned().unwrap_or_default(),
                format!("{} cycles", shown.block.range.length()),
            )
        });
    }

    /// Paints the selected mark, and its start and end on the lanes.
    pub(super) fn chosen_mark(&self, scene: &TraceScene) {
        let chosen = self.settings.mark.as_ref();
        let Some(rect) = chosen.and_then(|mark| chosen_mark(self.layout, scene, mark)) else {
            return;
        };
        let lanes = self.layout.regions.lanes;
        let stroke = Stroke::new(2.0, self.palette.selection);
        let painter = self.ui.painter_at(lanes.union(self.layout.regions.marks));
        painter.rect_stroke(rect, CornerRadius::same(2), stroke, StrokeKind::Inside);
        let line = Stroke::new(1.0, self.palette.selection.gamma_multiply(0.6));
        for x in [rect.left(), rect.right()] {
            self.painter.vline(x, lanes.y_range(), line);
        }
    }
}

/// The possible texts of a mark, the longest first. The first one that fits is shown.
fn wordings(shown: &ShownMark, id: MarkRowId) -> Vec<String> {
    let block = &shown.block;
    let number = block.numbers.0;
    match (block.count, block.pass(), id) {
        // As in diagrams of pipelines: pass and micro-batch.
        (1, Some(pass), MarkRowId::Ipu(_)) if block.updates == 0 => {
            vec![format!("{}, micro-batch {number}", shown.words), short_turn(pass, number)]
        }
        // `ramp-up` is not a number and has no shorter form.
        (1, ..) if !shown.words.ends_with(&number.to_string()) => vec![shown.words.clone()],
        (1, ..) => vec![shown.words.clone(), number.to_string()],
        (count, ..) => vec![shown.words.clone(), grouped(count)],
    }
}

/// The colour of a mark.
fn mark_colour(palette: &ThemePalette, block: &MarkBlock, id: MarkRowId) -> Color32 {
    match id {
        MarkRowId::Common(MarkKind::Run) => palette.run,
        MarkRowId::Ipu(_) if block.updates > 0 => palette.update,
        _ => pass_colour(palette, block.pass(), id),
    }
}

fn pass_colour(palette: &ThemePalette, pass: Option<TrainingPass>, id: MarkRowId) -> Color32 {
    match (pass, id) {
        (Some(TrainingPass::Forward), _) => palette.forward,
        (Some(TrainingPass::Backward), _) => palette.backward,
        (Some(TrainingPass::Update), _) => palette.update,
        (None, MarkRowId::Common(MarkKind::Run)) => palette.run,
        (None, _) => palette.mark,
    }
}

fn kind_title(kind: MarkKind) -> &'static str {
    match kind {
        MarkKind::Run => "Host calls",
        MarkKind::Iteration => "Iterations",
        MarkKind::Phase => "Phases",
        MarkKind::Slot => "Slots",
        MarkKind::Stage => "Stages",
        MarkKind::Update => "Updates",
        MarkKind::Loader => "Host loader",
        MarkKind::Callback => "Host callbacks",
    }
}

/// The mark under the pointer.
#[derive(Clone, Copy, Debug)]
pub(crate) struct MarkHit<'a> {
    pub row: MarkRowId,
    pub bar: MarkBarItem<'a>,
}

impl MarkHit<'_> {
    /// The mark or block in the form used for selections.
    pub(crate) fn selected(&self) -> SelectedMark {
        SelectedMark::from_block(self.row, &self.bar.shown.block)
    }
}

/// The mark at a screen position, or very near to it.
pub(crate) fn hit<'a>(
    layout: &TraceLayout<'_>,
    scene: &'a TraceScene,
    at: Pos2,
) -> Option<MarkHit<'a>> {
    let (row, bars) = if layout.regions.marks.contains(at) {
        let index = ((at.y - layout.regions.marks.top()) / MARK_HEIGHT) as usize;
        let (kind, marks) = scene.marks.get(index)?;
        (MarkRowId::Common(*kind), bars(layout, layout.mark_row(index), marks))
    } else {
        let (at, row) = layout.stage_row_at(at)?;
        let shown = scene.ipus.iter().find(|shown| shown.at == at)?;
        (MarkRowId::Ipu(at), bars(layout, row, &shown.marks))
    };
    let distance =
        |bar: &MarkBarItem<'_>| bar.rect.distance_to_pos(pos2(at.x, bar.rect.center().y));
    let near = bars.into_iter().filter(|bar| distance(bar) <= HIT_TOLERANCE);
    let bar = near.min_by(|a, b| distance(a).total_cmp(&distance(b)))?;
    Some(MarkHit { row, bar })
}

/// The row of the selected mark, and its visible part.
fn chosen_mark(
    layout: &TraceLayout<'_>,
    scene: &TraceScene,
    chosen: &SelectedMark,
) -> Option<Rect> {
    let row = match chosen.row {
        MarkRowId::Common(kind) => {
            let index = scene.marks.iter().position(|(known, _)| *known == kind)?;
            layout.mark_row(index)
        }
        MarkRowId::Ipu(at) => layout.stage_row(layout.block_of(at)?)?,
    };
    // Ends far outside the screen would lose precision in 32 bits.
    let left = layout.x(chosen.range.start).max(row.left() - 20.0);
    let right = layout.x(chosen.range.end).min(row.right() + 20.0);
    if right < row.left() || left > row.right() {
        return None;
    }
    let corner = pos2(right.max(left + 1.0), row.bottom() - 2.0);
    Some(Rect::from_min_max(pos2(left, row.top()), corner))
}

/// Outlines the mark under the pointer and describes it.
pub(crate) fn hover_ui(ui: &Ui, layout: &TraceLayout<'_>, response: &Response, mark: &MarkHit<'_>) {
    let regions = layout.regions;
    let stroke = Stroke::new(1.0, ThemePalette::for_ui(ui).text);
    let painter = ui.painter_at(regions.lanes.union(regions.marks));
    painter.rect_stroke(mark.bar.rect, 0.0, stroke, StrokeKind::Inside);
    let shown = mark.bar.shown;
    response.clone().on_hover_ui_at_pointer(|ui| {
        ui.set_max_width(420.0);
        ui.label(strong(shown.words.chars().take(240).collect::<String>()));
        let CycleRange { start, end } = shown.block.range;
        let length = shown.block.range.length();
        ui.weak(format!("{length} cycles: {start} - {end}"));
        let (first, last) = shown.block.numbers;
        let words = match shown.block.count {
            1 if shown.block.micro_batch().is_some() => {
                format!("{}; click to follow it", micro_batch_words(shown))
            }
            1 => return,
            _ => format!("numbers {first} to {last}; click to zoom in"),
        };
        ui.weak(words);
    });
}

/// `micro-batch 3`
pub(crate) fn micro_batch_words(stage: &ShownMark) -> String {
    format!("micro-batch {}", grouped(stage.block.numbers.0))
}
