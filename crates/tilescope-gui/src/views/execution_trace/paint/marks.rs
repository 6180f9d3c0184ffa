//! The ruler and the rows of marks below it.

use super::TracePainter;
use crate::theme::{ThemePalette, mix, text_size};
use crate::views::execution_trace::id;
use crate::views::execution_trace::layout::{HostBarItem, MarkBarItem, MarkRowItem, RulerTick};
use crate::views::execution_trace::scene::ShownMark;
use crate::widgets::{elided_text::elided, node_ui};
use egui::accesskit::Role;
use egui::{Align2, Color32, CornerRadius, FontId, Painter, Rect, Stroke, StrokeKind, pos2, vec2};
use tilescope_analysis::trace::{HostActivity, MarkBlock, MarkRowId, short_turn};
use tilescope_report::units::{Cycles, grouped};
use tilescope_report::{MarkKind, TrainingPass};

/// Narrowest part of the host's row that gets a node.
const LEAST_NODE: f32 = 12.0;
/// Narrowest and lowest room for the words of a mark.
const LEAST_WORDS: f32 = 7.0;
/// Narrowest room for words that are cut off.
const LEAST_CUT_WORDS: f32 = 40.0;
const LEAST_WORDS_HEIGHT: f32 = 11.0;

impl TracePainter<'_> {
    /// Ticks with their cycles, thousands separated, and what they count.
    pub(super) fn ruler(&self, ticks: &[RulerTick]) {
        let (rect, palette) = (self.regions.ruler, self.palette);
        let painter = self.ui.painter().with_clip_rect(rect);
        for tick in ticks {
            let height = if tick.numbered { 7.0 } else { 3.0 };
            let span = rect.bottom() - height..=rect.bottom();
            painter.vline(tick.x, span, Stroke::new(1.0, palette.outline));
            if tick.numbered {
                self.tick_number(&painter, tick);
            }
        }
        painter.hline(rect.x_range(), rect.bottom() - 0.5, Stroke::new(1.0, palette.rule));
        self.row_title(pos2(rect.left() - 10.0, rect.center().y), "Cycles");
    }

    fn tick_number(&self, painter: &Painter, tick: &RulerTick) {
        let (rect, colour) = (self.regions.ruler, self.palette.weak_text);
        let at = pos2(tick.x + 4.0, rect.top() + 3.0);
        let text = tick.cycle.to_string();
        let galley = painter.layout_no_wrap(text, FontId::proportional(text_size::CAPTION), colour);
        // Whole or not at all: a number that is cut off reads as another one.
        if tick.x >= rect.left() - 3.0 && at.x + galley.size().x <= rect.right() {
            painter.galley(at, galley, colour);
        }
    }

    /// The name of a row, left of it.
    fn row_title(&self, at: egui::Pos2, text: &str) {
        let font = FontId::proportional(text_size::CAPTION);
        self.ui.painter().text(at, Align2::RIGHT_CENTER, text, font, self.palette.weak_text);
    }

    /// Rows of marks that concern all IPUs, and the row of the host.
    pub(super) fn common_marks_ui(
        &self,
        rows: &[MarkRowItem<'_>],
        host: Option<&(Rect, Vec<HostBarItem>)>,
    ) {
        for MarkRowItem { kind, row, bars } in rows {
            self.marks_ui(self.regions.marks, *row, bars, (MarkRowId::Common(*kind), None));
            self.row_title(pos2(row.left() - 10.0, row.center().y - 1.0), kind_title(*kind));
        }
        if let Some((row, bars)) = host {
            self.host_ui(*row, bars);
            self.row_title(pos2(row.left() - 10.0, row.center().y - 1.0), "Host");
        }
    }

    /// A row of marks and blocks of marks; those wide enough have words.
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

    /// A mark in the colour of its pass; that colour.
    fn mark_bar(&self, painter: &Painter, bar: &MarkBarItem<'_>, id: MarkRowId) -> Color32 {
        let colour = mark_colour(self.palette, &bar.shown.block, id);
        painter.rect_filled(bar.rect, CornerRadius::same(2), colour);
        colour
    }

    /// A block of marks: from the foot up the shares of its passes, and what is left is between
    /// them. The colour behind its words.
    fn mark_block(&self, painter: &Painter, bar: &MarkBarItem<'_>, id: MarkRowId) -> Color32 {
        let (rect, block) = (bar.rect, &bar.shown.block);
        let length = block.range.length().max(block.passes.total()).max(Cycles(1)).as_f64();
        painter.rect_filled(rect, CornerRadius::same(2), self.palette.lane);
        let passes = [Some(TrainingPass::Forward), Some(TrainingPass::Backward)];
        let passes = passes.into_iter().chain([Some(TrainingPass::Update), None]);
        let (mut foot, mut middle) = (rect.bottom(), self.palette.lane);
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
        let font = || FontId::proportional(text_size::CAPTION);
        let fits = |words: &String| {
            painter.layout_no_wrap(words.clone(), font(), ink).size().x <= room.width()
        };
        let ways = wordings(shown, id);
        let cut = ways.first().filter(|_| room.width() >= LEAST_CUT_WORDS);
        if let Some(words) = ways.iter().find(|words| fits(words)).or(cut) {
            let text = elided(painter, words, font(), ink, room.width());
            let at = pos2(room.left(), room.center().y - text.size().y / 2.0);
            painter.galley(at, text, ink);
        }
        let node =
            self.ui.scope_id().with(("mark", id, replica, shown.block.first, shown.block.count));
        let cycles = || format!("{} cycles", shown.block.range.length());
        let words = || (ways.first().cloned().unwrap_or_default(), cycles());
        node_ui(self.ui, node, room.intersect(clip), Role::Cell, words);
    }

    /// The chosen mark, and where it begins and ends on the lanes.
    pub(super) fn chosen_mark(&self, rect: Rect) {
        let lanes = self.regions.lanes;
        let stroke = Stroke::new(2.0, self.palette.selection);
        let painter = self.ui.painter_at(lanes.union(self.regions.marks));
        painter.rect_stroke(rect, CornerRadius::same(2), stroke, StrokeKind::Inside);
        let line = Stroke::new(1.0, self.palette.selection.gamma_multiply(0.6));
        for x in [rect.left(), rect.right()] {
            self.painter.vline(x, lanes.y_range(), line);
        }
    }

    fn host_ui(&self, row: Rect, bars: &[HostBarItem]) {
        let painter = self.ui.painter_at(row);
        for HostBarItem { rect, range, activity } in bars {
            painter.rect_filled(*rect, 0.0, host_colour(self.palette, *activity));
            if rect.width() >= LEAST_NODE {
                let node = id(self.ui, "host").with(range.start);
                let value = || format!("{} cycles", range.length());
                let words = || (host_words(*activity).to_owned(), value());
                node_ui(self.ui, node, rect.intersect(row), Role::Cell, words);
            }
        }
    }
}

/// Words for a mark, the longest first: those of them are shown that fit.
fn wordings(shown: &ShownMark, id: MarkRowId) -> Vec<String> {
    let block = &shown.block;
    let number = block.numbers.0;
    match (block.count, block.pass(), id) {
        // As in pictures of pipelines: pass and micro-batch.
        (1, Some(pass), MarkRowId::Ipu(_)) if block.updates == 0 => {
            vec![format!("{}, micro-batch {number}", shown.words), short_turn(pass, number)]
        }
        // `ramp-up` is no number: nothing shorter stands for it.
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

/// Colours of the host's row.
pub(crate) fn host_colour(palette: &ThemePalette, work: HostActivity) -> Color32 {
    match work {
        HostActivity::WaitingForHost => mix(palette.stream_begin, palette.text, 0.2),
        HostActivity::Mixed => mix(palette.stream_begin, palette.stream_mid, 0.5),
        HostActivity::Transferring => palette.stream_mid,
    }
}

/// What a part of the host's row means.
pub(crate) fn host_words(work: HostActivity) -> &'static str {
    match work {
        HostActivity::WaitingForHost => "Host row, low: an IPU waits for the host",
        HostActivity::Mixed => "Host row, half: copies narrower than a pixel",
        HostActivity::Transferring => "Host row, high: data from or to the host moves",
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
