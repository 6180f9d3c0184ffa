//! Painting of the schedule, and its nodes for screen readers.

use super::in_row;
use super::layout::{ScheduleCell, ScheduleLayout};
use crate::theme::{ThemePalette, mix, text_size};
use crate::widgets::elided_text::elided;
use crate::widgets::node_ui;
use egui::accesskit::Role;
use egui::{Align2, Color32, CornerRadius, FontId, Painter, Rect, Stroke, StrokeKind, Ui, pos2};
use tilescope_analysis::pipeline_schedule::{
    IterationSchedule, ScheduleCells, ScheduleColumnKind, ScheduleStage, ScheduleTurn,
};
use tilescope_analysis::trace::short_turn;
use tilescope_report::TrainingPass;
use tilescope_report::units::{CycleRange, grouped};

/// The share of the lane's colour in turns of other micro-batches while one is followed.
const UNLIT: f32 = 0.7;

/// The inputs for painting the schedule.
pub(super) struct SchedulePainter<'a> {
    pub ui: &'a Ui,
    pub palette: &'static ThemePalette,
    pub schedule: &'a IterationSchedule,
    /// The cells that have been read.
    pub cells: Option<&'a ScheduleCells>,
    pub layout: &'a ScheduleLayout,
    /// The visible cycles of the trace.
    pub window: CycleRange,
    /// The followed micro-batch, if any.
    pub followed: Option<u64>,
}

impl SchedulePainter<'_> {
    /// Paints the visible part, with an outline around the cell selected by keys.
    pub(super) fn paint(&self, chosen: Option<ScheduleCell>) {
        let painter = self.ui.painter_at(self.layout.cells());
        for stage in self.layout.stages() {
            painter.rect_filled(self.layout.row(stage), 0.0, self.palette.lane);
            for column in self.layout.columns() {
                self.cell_ui(&painter, stage, column);
            }
        }
        self.phase_borders(&painter);
        if let Some(ScheduleCell { stage: Some(stage), column, .. }) = chosen {
            let cell = self.layout.cell(stage, column);
            let stroke = Stroke::new(2.0, self.palette.selection);
            painter.rect_stroke(cell, CornerRadius::same(2), stroke, StrokeKind::Inside);
        }
        self.names_ui();
        self.heads_ui();
    }

    fn cell_ui(&self, painter: &Painter, stage: usize, column: usize) {
        let Some(cells) = self.cells.filter(|cells| cells.columns.contains(&column)) else {
            return;
        };
        let of = &self.schedule.stages[stage];
        let turns = cells.turns_in(stage, column);
        let held = cells.held(stage, column);
        let cell = self.layout.cell(stage, column);
        for (place, turn) in turns.iter().enumerate() {
            let rect = self.layout.turn(cell, place, turns.len());
            self.turn_ui(painter, rect, turn);
            let visible = rect.intersect(self.layout.cells());
            if visible.is_positive() {
                let node = self.ui.scope_id().with(("turn", stage, column, place));
                let held = held.map_or(String::new(), |held| held_words(held, of.depth));
                node_ui(self.ui, node, visible, Role::Cell, || (turn_words(of, turn), held));
            }
        }
        if let Some(held) = held {
            self.stash(painter, self.layout.stash(stage, column), held, of.depth);
        }
    }

    fn turn_ui(&self, painter: &Painter, rect: Rect, turn: &ScheduleTurn) {
        let own = match turn.pass {
            TrainingPass::Forward => self.palette.forward,
            TrainingPass::Backward => self.palette.backward,
            TrainingPass::Update => self.palette.update,
        };
        let is_update = turn.pass == TrainingPass::Update;
        let unlit = self.followed.is_some_and(|number| is_update || turn.number != number);
        let colour = if unlit { mix(own, self.palette.lane, UNLIT) } else { own };
        painter.rect_filled(rect, CornerRadius::same(2), colour);
        let text = if is_update { "update".to_owned() } else { short_turn(turn.pass, turn.number) };
        let ink = self.palette.label_text_on(colour);
        let font = FontId::proportional(text_size::CAPTION);
        let room = in_row(rect, 2.0);
        let galley = elided(painter, &text, font, ink, room.width());
        painter.galley(room.center() - galley.size() / 2.0, galley, ink);
    }

    /// The fill level of a stage's stash: a bar, and the number on it.
    fn stash(&self, painter: &Painter, rect: Rect, held: u64, depth: Option<u64>) {
        let ground = mix(self.palette.lane, self.palette.text, 0.08);
        let full = mix(self.palette.lane, self.palette.forward, 0.45);
        if let Some(depth) = depth.filter(|depth| *depth > 0) {
            painter.rect_filled(rect, 0.0, ground);
            let share = (held as f32 / depth as f32).min(1.0);
            let filled = Rect::from_min_size(rect.min, rect.size() * egui::vec2(share, 1.0));
            painter.rect_filled(filled, 0.0, full);
        }
        let text = match depth {
            Some(depth) => format!("{} / {}", grouped(held), grouped(depth)),
            None => grouped(held),
        };
        let font = FontId::proportional(text_size::SIGN);
        painter.text(rect.center(), Align2::CENTER_CENTER, text, font, self.palette.text);
    }

    fn phase_borders(&self, painter: &Painter) {
        let stroke = Stroke::new(1.0, self.palette.outline);
        for phase in self.schedule.phases.iter().filter(|phase| phase.columns.start > 0) {
            let x = self.layout.x(phase.columns.start) - 1.0;
            painter.vline(x, self.layout.cells().y_range(), stroke);
        }
    }

    fn names_ui(&self) {
        let gutter = self.layout.gutter();
        self.ui.painter().rect_filled(gutter, 0.0, self.palette.page);
        let painter = self.ui.painter_at(gutter);
        for place in self.layout.stages() {
            let row = self.layout.row(place);
            let stage = &self.schedule.stages[place];
            let left = gutter.left() + crate::theme::spacing::L;
            let room = gutter.right() - left - 8.0;
            let font = FontId::new(text_size::SMALL, crate::theme::fonts::strong_family());
            let name = format!("IPU {}  {}", stage.ipu, stage.name);
            let galley = elided(&painter, &name, font, self.palette.text, room);
            painter.galley(pos2(left, row.top() + 3.0), galley, self.palette.text);
            if let Some(depth) = stage.depth {
                let text = format!("Stash of {}", grouped(depth));
                let at = pos2(left, row.bottom());
                let font = FontId::proportional(text_size::CAPTION);
                painter.text(at, Align2::LEFT_BOTTOM, text, font, self.palette.weak_text);
            }
            let visible = Rect::from_x_y_ranges(gutter.x_range(), row.y_range()).intersect(gutter);
            if visible.is_positive() {
                let node = self.ui.scope_id().with(("stage", place));
                node_ui(self.ui, node, visible, Role::Row, || {
                    (name.clone(), stage.depth.map_or(String::new(), |d| format!("Stash of {d}")))
                });
            }
        }
    }

    fn heads_ui(&self) {
        let phases = self.layout.head(0);
        let slots = self.layout.head(1);
        let whole = phases.union(slots).with_min_x(self.layout.area.left());
        self.ui.painter().rect_filled(whole, 0.0, self.palette.page);
        let painter = self.ui.painter_at(phases);
        for phase in &self.schedule.phases {
            let left = self.layout.x(phase.columns.start);
            let right = self.layout.x(phase.columns.end) - 2.0;
            let rect = Rect::from_x_y_ranges(left..=right, phases.y_range()).intersect(phases);
            if rect.is_positive() {
                self.phase_ui(&painter, rect, &phase.label);
            }
        }
        let painter = self.ui.painter_at(slots);
        for place in self.layout.columns() {
            let column = &self.schedule.columns[place];
            let own = Rect::from_x_y_ranges(self.layout.column(place).x_range(), slots.y_range());
            let text = match column.kind {
                ScheduleColumnKind::Slot => grouped(column.number),
                ScheduleColumnKind::Update => "update".to_owned(),
            };
            let font = FontId::proportional(text_size::CAPTION);
            painter.text(own.center(), Align2::CENTER_CENTER, text, font, self.palette.weak_text);
            // The part that the trace shows.
            if column.range.overlaps(self.window) {
                let line = Stroke::new(2.0, self.palette.accent);
                painter.hline(own.left()..=own.right() - 2.0, own.bottom() - 1.0, line);
            }
        }
        let left = pos2(slots.left() - 8.0, slots.center().y);
        let font = FontId::proportional(text_size::CAPTION);
        let ink: Color32 = self.palette.weak_text;
        self.ui.painter().text(left, Align2::RIGHT_CENTER, "Slot", font, ink);
    }

    fn phase_ui(&self, painter: &Painter, rect: Rect, label: &str) {
        let ground = mix(self.palette.page, self.palette.mark, 0.35);
        painter.rect_filled(rect.shrink2(egui::vec2(0.0, 1.0)), CornerRadius::same(2), ground);
        let ink = self.palette.label_text_on(ground);
        let font = FontId::proportional(text_size::CAPTION);
        let galley = elided(painter, label, font, ink, rect.width() - 8.0);
        painter.galley(
            pos2(rect.left() + 4.0, rect.center().y - galley.size().y / 2.0),
            galley,
            ink,
        );
    }
}

/// `B1 forward, micro-batch 3`
pub(super) fn turn_words(stage: &ScheduleStage, turn: &ScheduleTurn) -> String {
    let number = grouped(turn.number);
    match turn.pass {
        TrainingPass::Update => format!("{} update", stage.name),
        pass => format!("{} {}, micro-batch {number}", stage.name, pass.name()),
    }
}

/// `keeps activations of up to 3 micro-batches; its stash holds 7`
pub(super) fn held_words(held: u64, depth: Option<u64>) -> String {
    let several = if held == 1 { "" } else { "es" };
    let kept = format!("keeps activations of up to {} micro-batch{several}", grouped(held));
    match depth {
        Some(depth) => format!("{kept}; its stash holds {}", grouped(depth)),
        None => kept,
    }
}
