//! The ruler and the rows of marks below it.

use super::TracePainter;
use crate::theme::{ThemePalette, mix, text_size};
use crate::views::execution_trace::id;
use crate::views::execution_trace::layout::{HostBarItem, MarkBarItem, MarkRowItem, RulerTick};
use crate::widgets::{elided_text::elided, node_ui};
use egui::accesskit::Role;
use egui::{Align2, Color32, CornerRadius, FontId, Painter, Rect, Stroke, pos2, vec2};
use tilescope_analysis::trace::HostActivity;
use tilescope_report::{MarkKind, TraceMark, TrainingPass};

/// Narrowest part of the host's row that gets a node.
const LEAST_NODE: f32 = 12.0;
/// Narrowest room for the words of a mark.
const LEAST_WORDS: f32 = 14.0;

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
        for MarkRowItem { kind, row, bars, more } in rows {
            self.marks_ui(self.regions.marks, *row, bars, *more);
            self.row_title(pos2(row.left() - 10.0, row.center().y - 1.0), kind_title(*kind));
        }
        if let Some((row, bars)) = host {
            self.host_ui(*row, bars);
            self.row_title(pos2(row.left() - 10.0, row.center().y - 1.0), "Host");
        }
    }

    /// A row of marks; those wide enough have words.
    pub(super) fn marks_ui(&self, clip: Rect, row: Rect, bars: &[MarkBarItem<'_>], more: bool) {
        // Rows of stages scroll with their IPU: without the clip they would cover the ruler.
        let painter = self.ui.painter_at(row.intersect(clip));
        for MarkBarItem { rect, mark } in bars {
            let colour = mark_colour(self.palette, mark);
            painter.rect_filled(*rect, CornerRadius::same(2), colour);
            let room = rect.intersect(row).shrink2(vec2(4.0, 0.0));
            if room.width() > LEAST_WORDS {
                self.mark_words_ui(&painter, room, (clip, mark), colour);
            }
        }
        if more {
            self.more_marks(&painter, row);
        }
    }

    fn mark_words_ui(
        &self,
        painter: &Painter,
        room: Rect,
        (clip, mark): (Rect, &TraceMark),
        ground: Color32,
    ) {
        let ink = self.palette.label_text_on(ground);
        let text = elided(
            painter,
            &mark.label,
            FontId::proportional(text_size::CAPTION),
            ink,
            room.width(),
        );
        let at = pos2(room.left(), room.center().y - text.size().y / 2.0);
        painter.galley(at, text, ink);
        let part = (mark.kind.name(), mark.ipu, mark.index, mark.cycles.start);
        let node = self.ui.scope_id().with(part);
        let cycles = || format!("{} cycles", mark.cycles.length());
        let words = || (mark.label.clone(), cycles());
        node_ui(self.ui, node, room.intersect(clip), Role::Cell, words);
    }

    fn more_marks(&self, painter: &Painter, row: Rect) {
        let (font, palette) = (FontId::proportional(text_size::CAPTION), self.palette);
        let text = "more marks than fit here: zoom in";
        let galley = elided(painter, text, font, palette.text, row.width());
        let at = pos2(row.right() - galley.size().x - 6.0, row.top() + 1.0);
        // Too many marks lie thick and in any colour: the words need a ground of their own.
        let ground = Rect::from_min_size(at, galley.size()).expand2(vec2(4.0, 0.0));
        painter.rect_filled(ground, CornerRadius::same(3), palette.page);
        painter.galley(at, galley, palette.text);
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

/// The colour of a mark.
fn mark_colour(palette: &ThemePalette, mark: &TraceMark) -> Color32 {
    match (mark.kind, mark.pass) {
        (MarkKind::Run, _) => palette.run,
        (MarkKind::Update, _) | (_, Some(TrainingPass::Update)) => palette.update,
        (_, Some(TrainingPass::Forward)) => palette.forward,
        (_, Some(TrainingPass::Backward)) => palette.backward,
        (_, None) => palette.mark,
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
