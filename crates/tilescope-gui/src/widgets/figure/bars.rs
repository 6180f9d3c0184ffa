//! Horizontal bars, each with its name before it and its number after it. Bars with a subject are
//! buttons that the keyboard can reach.

use super::{MOST_NODES, shade_of};
use crate::theme::fonts::strong;
use crate::theme::{ThemePalette, text_size};
use crate::widgets::elided_text::elided;
use crate::widgets::{focus_ui, neighbour, node_ui};
use egui::accesskit::Role;
use egui::{
    Align2, CornerRadius, FontId, Rect, Response, Sense, Stroke, Ui, WidgetInfo, pos2, vec2,
};
use tilescope_analysis::figures::{Figure, FigureBar};

/// The height of a row.
const ROW: f32 = 22.0;
/// The smallest height of a row with readable text.
const LEAST_ROW: f32 = 15.0;
/// The largest width of names.
const NAMES: f32 = 260.0;
/// The largest share of the width for names.
const NAMES_SHARE: f32 = 0.45;
/// The width of numbers of bars without an axis.
const NUMBERS: f32 = 54.0;
/// The width of notes.
const NOTES: f32 = 250.0;
/// The width from which notes are shown.
const WITH_NOTES: f32 = 640.0;
/// The gap between the parts of a row.
const GAP: f32 = 8.0;
/// The space for ticks and the title below them.
const FOOT: f32 = 38.0;
/// The distance between two ticks, in points.
const TICKS: f32 = 90.0;

/// The height at which all rows are readable.
pub(super) fn height_of(figure: &Figure, bars: usize) -> f32 {
    foot_of(figure) + ROW * bars as f32
}

fn foot_of(figure: &Figure) -> f32 {
    if figure.x.is_drawn() { FOOT } else { 0.0 }
}

/// The horizontal positions of names, bars and notes, and the height of a row.
struct BarLayout {
    area: Rect,
    names: f32,
    row: f32,
    bounds: (f64, f64),
    notes: Option<f32>,
}

impl BarLayout {
    fn new(ui: &Ui, rect: Rect, figure: &Figure) -> Self {
        let bars = &figure.marks.bars;
        let find_widest = |words: &dyn Fn(&FigureBar) -> &str| {
            let mut widest: f32 = 0.0;
            for bar in bars {
                let font = FontId::proportional(text_size::SMALL);
                let words =
                    ui.painter().layout_no_wrap(words(bar).to_owned(), font, Default::default());
                widest = widest.max(words.size().x);
            }
            widest
        };
        let most = NAMES.min(rect.width() * NAMES_SHARE);
        // Bars without numbers along the axis are compared with those of other figures, so they
        // begin at the same position.
        let (names, numbers) = if figure.x.is_drawn() {
            ((find_widest(&|bar| &bar.name) + 1.0).min(most), find_widest(&|bar| &bar.value))
        } else {
            (most, NUMBERS)
        };
        let with_notes = rect.width() >= WITH_NOTES && bars.iter().any(|bar| !bar.note.is_empty());
        let notes = if with_notes { Some(rect.right() - NOTES) } else { None };
        let left = rect.left() + names + GAP;
        let right = notes.unwrap_or(rect.right()) - numbers - 2.0 * GAP;
        let area = Rect::from_x_y_ranges(
            left..=right.max(left + 1.0),
            rect.top()..=rect.bottom() - foot_of(figure),
        );
        let row = area.height() / bars.len() as f32;
        Self { area, names, row, bounds: figure.bounds(0), notes }
    }

    fn x(&self, value: f64) -> f32 {
        let share = (value - self.bounds.0) / (self.bounds.1 - self.bounds.0);
        self.area.left() + share as f32 * self.area.width()
    }

    /// The rectangle of a bar from its smallest to its largest value.
    fn bar(&self, bar: &FigureBar, row: usize) -> Rect {
        let ends = bar.parts.iter().flat_map(|part| [part.from, part.to]);
        let (low, high) = ends.fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), value| {
            (low.min(value), high.max(value))
        });
        let top = self.area.top() + self.row * row as f32;
        let (low, high) = if low <= high { (low, high) } else { (0.0, 0.0) };
        let room = self.row * 0.14;
        Rect::from_x_y_ranges(self.x(low)..=self.x(high), top + room..=top + self.row - room)
    }
}

pub(super) fn bars_ui(ui: &mut Ui, figure: &Figure) -> (Response, Rect, Option<usize>) {
    let bars = &figure.marks.bars;
    let palette = ThemePalette::for_ui(ui);
    let (rect, response) = ui.allocate_exact_size(ui.available_size(), Sense::click());
    let rect = rect.shrink2(vec2(GAP / 2.0, 0.0));
    let layout = BarLayout::new(ui, rect, figure);
    ticks_ui(ui, figure, &layout);
    let mut clicked = None;
    let mut focused = None;
    let mut rows = Vec::new();
    let pointer = response.hover_pos().map(|at| (at.y - rect.top()) / layout.row);
    // If rows are too low for text, only some of them have it.
    let each = (LEAST_ROW / layout.row).ceil().max(1.0) as usize;
    for (place, bar) in bars.iter().enumerate() {
        let drawn = layout.bar(bar, place);
        let row = Rect::from_x_y_ranges(rect.x_range(), drawn.y_range()).expand2(vec2(0.0, 1.0));
        let id = response.id.with(("bar", place));
        if let Some(of) = bar.id {
            let row_response = ui.interact(row, id, Sense::click());
            row_response
                .widget_info(|| WidgetInfo::labeled(Role::Button, ui.is_enabled(), label_of(bar)));
            if row_response.hovered() {
                ui.painter().rect_filled(row, CornerRadius::same(4), palette.hover);
            }
            focus_ui(ui, &row_response, row);
            focused = neighbour(&row_response, place, bars.len()).or(focused);
            if row_response.clicked() {
                clicked = Some(of);
            }
            rows.push(Some(row_response.on_hover_ui_at_pointer(|ui| words_ui(ui, figure, bar))));
        } else {
            rows.push(None);
            if pointer.is_some_and(|at| at >= 0.0 && at as usize == place) {
                response.clone().on_hover_ui_at_pointer(|ui| words_ui(ui, figure, bar));
            }
            if place < MOST_NODES {
                node_ui(ui, id, drawn, Role::GraphicsObject, || (label_of(bar), bar.value.clone()));
            }
        }
        bar_ui(ui, figure, bar, (&layout, drawn), place % each == 0);
    }
    let row = focused.and_then(|place| rows.get(place));
    if let Some(row) = row.and_then(Option::as_ref) {
        row.request_focus();
    }
    (response, rect, clicked)
}

/// The complete description of a bar, for screen readers.
fn label_of(bar: &FigureBar) -> String {
    let about = if bar.about.is_empty() { "" } else { ", " };
    format!("{}: {}{about}{}", bar.name, bar.value, bar.about)
}

fn bar_ui(
    ui: &Ui,
    figure: &Figure,
    bar: &FigureBar,
    (layout, drawn): (&BarLayout, Rect),
    with_words: bool,
) {
    let palette = ThemePalette::for_ui(ui);
    let painter = ui.painter();
    for part in &bar.parts {
        // A part of less than a pixel stays visible.
        let to = layout.x(part.to).max(layout.x(part.from) + f32::from(part.from < part.to));
        let rect = Rect::from_x_y_ranges(layout.x(part.from)..=to, drawn.y_range());
        painter.rect_filled(
            Rect::from_two_pos(rect.min, rect.max),
            0.0,
            shade_of(figure, part.series, palette),
        );
    }
    if !with_words {
        return;
    }
    let font = FontId::proportional(text_size::SMALL);
    let middle = drawn.center().y;
    let name = elided(painter, &bar.name, font.clone(), palette.text, layout.names);
    let left = layout.area.left() - GAP - name.size().x;
    painter.galley(pos2(left, middle - name.size().y / 2.0), name, palette.text);
    let end = pos2(drawn.right() + GAP / 2.0, middle);
    painter.text(end, Align2::LEFT_CENTER, &bar.value, font, palette.text);
    if let Some(left) = layout.notes {
        let font = FontId::proportional(text_size::CAPTION);
        let note = elided(painter, &bar.note, font, palette.weak_text, NOTES - GAP);
        painter.galley(pos2(left, middle - note.size().y / 2.0), note, palette.weak_text);
    }
}

/// Lines at round numbers, with their labels and the title below; only the line of 0 if numbers are
/// not drawn.
fn ticks_ui(ui: &Ui, figure: &Figure, layout: &BarLayout) {
    let palette = ThemePalette::for_ui(ui);
    let area = layout.area;
    if !figure.x.is_drawn() {
        let line = Stroke::new(1.0, palette.outline);
        ui.painter().vline(layout.x(0.0), area.y_range(), line);
        return;
    }
    let font = FontId::proportional(text_size::SMALL);
    for tick in figure.x.ticks(layout.bounds, (area.width() / TICKS).max(2.0) as usize) {
        let x = layout.x(tick.value);
        ui.painter().vline(x, area.y_range(), Stroke::new(1.0, palette.rule));
        let at = pos2(x, area.bottom() + 3.0);
        ui.painter().text(at, Align2::CENTER_TOP, tick.label, font.clone(), palette.weak_text);
    }
    let at = pos2(area.center().x, area.bottom() + FOOT);
    ui.painter().text(at, Align2::CENTER_BOTTOM, &figure.x.title, font, palette.text);
}

fn words_ui(ui: &mut Ui, figure: &Figure, bar: &FigureBar) {
    ui.label(strong(&bar.name));
    if bar.parts.len() > 1 {
        for part in &bar.parts {
            let name = figure.series.get(part.series).map_or("", |series| &series.name);
            let amount = figure.x.unit.text(part.to - part.from);
            ui.label(format!("{name}: {amount}"));
        }
    }
    if bar.about.is_empty() {
        ui.label(&bar.value);
    } else {
        ui.weak(&bar.about);
    }
}
