//! The schedule of an iteration in the form of pipeline diagrams: a row for each stage, a column
//! for each slot, and in each cell the micro-batches that the stage works on.
//!
//! Only the visible cells are read and painted, for any number of slots.

mod layout;
mod paint;

use super::events::TraceEvent;
use super::settings::TraceSettings;
use crate::theme::ThemePalette;
use crate::views::ViewContext;
use crate::views::cycle_axis::cycles_on_screen;
use crate::widgets::background_query::{BackgroundQuery, Versioned};
use crate::widgets::query_state::QueryTexts;
use crate::widgets::{ALL_ARROWS, empty_state_ui, focus_ui, keeps_arrows};
use egui::accesskit::Role;
use egui::{Id, Key, Rect, Response, RichText, ScrollArea, Sense, Ui, WidgetInfo, vec2};
use layout::{ScheduleCell, ScheduleLayout};
use paint::SchedulePainter;
use std::ops::Range;
use tilescope_analysis::pipeline_schedule::{
    IterationSchedule, NoSchedule, ScheduleCells, ScheduleColumnKind, pipeline_schedule,
    schedule_cells,
};
use tilescope_report::units::{CycleRange, Cycles, grouped};

/// The columns that are read together; scrolling within them needs no query.
const BLOCK: usize = 64;

type ScheduleAnswer = Result<IterationSchedule, NoSchedule>;

/// The tab of the schedule.
#[derive(Default)]
pub(super) struct SchedulePanel {
    schedule: BackgroundQuery<Cycles, ScheduleAnswer>,
    cells: BackgroundQuery<(u64, Range<usize>), ScheduleCells>,
    /// The cycle whose iteration was requested.
    asked: Option<Cycles>,
    /// The middle of the trace at the last update.
    followed: Option<Cycles>,
    /// The cell selected by keys.
    at: Option<ScheduleCell>,
    /// True if the schedule receives the keys.
    pub has_focus: bool,
}

impl SchedulePanel {
    /// Shows the schedule of the iteration in the middle of the trace. Returns the events of the
    /// user.
    pub(super) fn ui(
        &mut self,
        ui: &mut Ui,
        context: &ViewContext<'_>,
        settings: &TraceSettings,
    ) -> Option<TraceEvent> {
        self.has_focus = false;
        let (axis, limits) = settings.shown()?;
        let window = cycles_on_screen(axis, limits.width);
        let middle = window.start + window.length() / 2;
        let latest = self.schedule.latest().map(|answer| &**answer);
        let known = latest.and_then(|answer| answer.as_ref().ok());
        let inside =
            known.is_some_and(|known| known.range.start <= middle && middle < known.range.end);
        let asked = self.asked.filter(|_| inside).unwrap_or(middle);
        self.asked = Some(asked);
        let texts = QueryTexts { waiting: "Reading…", failed: "The schedule cannot be read" };
        let answer = context
            .ask(ui, &mut self.schedule, &asked, |report, cycle| pipeline_schedule(report, *cycle));
        answer.show(ui, texts, |ui, answer| match answer.as_ref() {
            Ok(schedule) => {
                self.schedule_ui(ui, context, (schedule, answer.version()), (settings, window))
            }
            Err(reason) => {
                empty_state_ui(ui, "No schedule", &reason.to_string());
                None
            }
        })?
    }

    fn schedule_ui(
        &mut self,
        ui: &mut Ui,
        context: &ViewContext<'_>,
        (schedule, version): (&IterationSchedule, u64),
        (settings, window): (&TraceSettings, CycleRange),
    ) -> Option<TraceEvent> {
        head_ui(ui, schedule);
        let area = ui.available_rect_before_wrap();
        let size = layout::sizes(schedule, area.width());
        let middle = window.start + window.length() / 2;
        let scroll = ScrollArea::both().auto_shrink(false).id_salt("schedule");
        let shown = scroll.show_viewport(ui, |ui, viewport| {
            ui.set_min_size(size.all(schedule));
            let layout = ScheduleLayout::new(schedule, size, viewport, ui.clip_rect());
            let moved = self.followed.replace(middle) != Some(middle);
            let target = schedule.column_at(middle);
            if moved && !layout.shows(target) {
                ui.scroll_to_rect(layout.column(target), Some(egui::Align::Center));
            }
            let columns = layout.columns();
            let key = (version, block_around(&columns, schedule.columns.len()));
            let cells = self.ask_cells(ui, context, schedule, &key);
            let painter = SchedulePainter {
                ui,
                palette: ThemePalette::for_ui(ui),
                schedule,
                cells: cells.as_deref(),
                layout: &layout,
                window,
                followed: settings.micro_batch,
            };
            painter.paint(self.at);
            let response = ui.interact(layout.area, id(ui), Sense::click());
            self.respond(ui, &layout, (schedule, cells.as_deref()), &response)
        });
        shown.inner
    }

    fn ask_cells(
        &mut self,
        ui: &Ui,
        context: &ViewContext<'_>,
        schedule: &IterationSchedule,
        key: &(u64, Range<usize>),
    ) -> Option<Versioned<ScheduleCells>> {
        let schedule = schedule.clone();
        context.ask(ui, &mut self.cells, key, move |report, (_, columns)| {
            schedule_cells(report, &schedule, columns.clone())
        });
        self.cells.latest().cloned()
    }

    /// The events of pointer and keys.
    fn respond(
        &mut self,
        ui: &Ui,
        layout: &ScheduleLayout,
        (schedule, cells): (&IterationSchedule, Option<&ScheduleCells>),
        response: &Response,
    ) -> Option<TraceEvent> {
        let chosen = self.at.map(|at| words(schedule, cells, at).join(", "));
        response.widget_info(|| WidgetInfo::labeled(Role::Canvas, true, "Schedule"));
        let value = chosen.unwrap_or_else(|| about(schedule));
        ui.ctx().accesskit_node_builder(response.id, |node| node.set_value(value));
        focus_ui(ui, response, layout.area);
        self.has_focus = response.has_focus();
        if let Some(moved) = arrows(ui, response, schedule, self.at) {
            self.at = Some(moved);
            if !layout.shows(moved.column) {
                ui.scroll_to_rect(layout.column(moved.column), None);
            }
        }
        let name = response.hover_pos().and_then(|at| layout.name_at(at));
        if let Some(stage) = name.and_then(|stage| schedule.stages.get(stage)) {
            response.clone().on_hover_text_at_pointer(&stage.name);
        }
        let under = response.hover_pos().and_then(|at| layout.cell_at(schedule, cells, at));
        if let Some(cell) = under {
            response.clone().on_hover_ui_at_pointer(|ui| {
                for (place, line) in words(schedule, cells, cell).into_iter().enumerate() {
                    let text = match place {
                        0 => crate::theme::fonts::strong(line),
                        _ => RichText::new(line).weak(),
                    };
                    ui.label(text);
                }
            });
        }
        if !response.clicked() {
            return None;
        }
        let by_pointer = ui.input(|input| input.pointer.primary_clicked());
        let cell = if by_pointer { under } else { self.at };
        self.at = cell;
        cell.and_then(|cell| go_to(schedule, cells, cell))
    }
}

fn id(ui: &Ui) -> Id {
    ui.scope_id().with("schedule")
}

/// The whole blocks that contain a range of columns.
fn block_around(columns: &Range<usize>, count: usize) -> Range<usize> {
    let end = columns.end.div_ceil(BLOCK) * BLOCK;
    columns.start / BLOCK * BLOCK..end.min(count)
}

/// The sentence above the schedule.
fn head_ui(ui: &mut Ui, schedule: &IterationSchedule) {
    ui.horizontal(|ui| {
        ui.add_space(crate::theme::spacing::L);
        let text = format!("{}. Click on a cell to see it in the trace.", about(schedule));
        ui.add(egui::Label::new(RichText::new(text).weak()).truncate());
    });
}

/// `Iteration 3: 16 slots, 4 stages`
fn about(schedule: &IterationSchedule) -> String {
    let columns = schedule.columns.iter();
    let slots = columns.filter(|column| column.kind == ScheduleColumnKind::Slot).count() as u64;
    let stages = schedule.stages.len() as u64;
    let iteration = grouped(schedule.iteration);
    format!("Iteration {iteration}: {}, {}", counted(slots, "slot"), counted(stages, "stage"))
}

fn counted(count: u64, word: &str) -> String {
    format!("{} {word}{}", grouped(count), if count == 1 { "" } else { "s" })
}

/// Describes a cell, line by line; the first line names it.
fn words(
    schedule: &IterationSchedule,
    cells: Option<&ScheduleCells>,
    cell: ScheduleCell,
) -> Vec<String> {
    let Some(column) = schedule.columns.get(cell.column) else { return Vec::new() };
    let place = match column.kind {
        ScheduleColumnKind::Slot => {
            let phase = schedule.phase_of(cell.column);
            let phase = phase.map_or(String::new(), |phase| format!(", {}", phase.label));
            format!("Slot {}{phase}", grouped(column.number))
        }
        ScheduleColumnKind::Update => "Weight update".to_owned(),
    };
    let CycleRange { start, end } = column.range;
    let stage = cell.stage.and_then(|place| Some((place, schedule.stages.get(place)?)));
    let Some((at, stage)) = stage else {
        let cycles = format!("{} cycles: {start} - {end}", column.range.length());
        return vec![place, cycles];
    };
    let mut lines = Vec::new();
    match cell.turn.and_then(|turn| cells?.turns_in(at, cell.column).get(turn)) {
        Some(turn) => {
            lines.push(paint::turn_words(stage, turn));
            let CycleRange { start, end } = turn.range;
            lines.push(format!(
                "IPU {}, {} cycles: {start} - {end}",
                stage.ipu,
                turn.range.length()
            ));
        }
        None => lines.push(format!("{} on IPU {} is idle", stage.name, stage.ipu)),
    }
    lines.push(place);
    if let Some(held) = cells.and_then(|cells| cells.held(at, cell.column)) {
        lines.push(paint::held_words(held, stage.depth));
    }
    lines
}

/// The event that shows the slot of a cell in the trace and marks the cycles of the cell.
fn go_to(
    schedule: &IterationSchedule,
    cells: Option<&ScheduleCells>,
    cell: ScheduleCell,
) -> Option<TraceEvent> {
    let column = schedule.columns.get(cell.column)?.range;
    let turns = cell.stage.map(|stage| cells.map_or(&[][..], |c| c.turns_in(stage, cell.column)));
    let turn = cell.turn.and_then(|turn| turns?.get(turn)).map(|turn| turn.range);
    let mark = turn.unwrap_or(column);
    Some(TraceEvent::MarkAndZoom { mark, zoom: column.union(mark) })
}

/// The cell that an arrow key moves to.
fn arrows(
    ui: &Ui,
    response: &Response,
    schedule: &IterationSchedule,
    at: Option<ScheduleCell>,
) -> Option<ScheduleCell> {
    if !keeps_arrows(response, ALL_ARROWS) {
        return None;
    }
    let is_pressed = |key| ui.input(|input| input.key_pressed(key));
    let last_column = schedule.columns.len() - 1;
    let last_stage = schedule.stages.len() - 1;
    let mut cell = at.unwrap_or(ScheduleCell { stage: Some(0), column: 0, turn: Some(0) });
    let stage = cell.stage.unwrap_or(0);
    if is_pressed(Key::ArrowRight) {
        cell.column = if at.is_some() { (cell.column + 1).min(last_column) } else { 0 };
    } else if is_pressed(Key::ArrowLeft) {
        cell.column = cell.column.saturating_sub(1);
    } else if is_pressed(Key::ArrowDown) {
        cell.stage = Some((stage + 1).min(last_stage));
    } else if is_pressed(Key::ArrowUp) {
        cell.stage = Some(stage.saturating_sub(1));
    } else {
        return None;
    }
    cell.turn = Some(0);
    Some(cell)
}

/// The rectangle for vertically centred text in a row.
fn in_row(rect: Rect, margin: f32) -> Rect {
    rect.shrink2(vec2(margin, 0.0))
}
