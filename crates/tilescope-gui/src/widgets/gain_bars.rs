//! Bars of what changes gain or lose, below each other: a tornado graph. Each is a row that the
//! keyboard and screen readers reach; bars of what is gained go to the right of a common line, and
//! bars of what is lost to the left.

use super::elided_text::elided;
use super::{focus_ui, neighbour};
use crate::theme::{ThemePalette, text_size};
use egui::accesskit::Role;
use egui::{CornerRadius, FontId, Pos2, Rect, Sense, Stroke, Ui, WidgetInfo, pos2, vec2};

/// Height of a row.
const ROW: f32 = 20.0;

/// Room for the number behind a bar.
const NUMBER: f32 = 62.0;

/// Widest room for titles.
const TITLES: f32 = 260.0;

/// A bar.
pub(crate) struct GainBar {
    pub title: String,
    /// By which share the run gets longer: below 0 where something is gained. `None` where there is
    /// nothing to compare.
    pub change: Option<f64>,
    /// What stands behind the number where there is room.
    pub note: String,
    /// All there is to say, for hovering and for screen readers.
    pub words: String,
    /// What a click does; `None` for a bar that is only looked at.
    pub on_click: Option<&'static str>,
}

impl GainBar {
    /// `-2.0 %`; a dash where there is nothing to compare.
    pub(crate) fn number(&self) -> String {
        match self.change {
            None => "—".to_owned(),
            // No minus in front of what reads as 0.
            Some(change) if change.abs() < 0.0005 => "0.0 %".to_owned(),
            Some(change) => format!("{:+.1} %", 100.0 * change),
        }
    }
}

/// The most that any bar gains and loses. Graphs that stand on one page share it, so that equal lengths
/// are equal gains.
#[derive(Clone, Copy)]
pub(crate) struct GainRange {
    gained: f32,
    lost: f32,
}

impl GainRange {
    /// Of these changes.
    #[expect(clippy::cast_possible_truncation, reason = "positions on a screen")]
    pub(crate) fn of(changes: impl Iterator<Item = Option<f64>>) -> Self {
        let widest =
            |(gained, lost): (f64, f64), change: f64| (gained.max(-change), lost.max(change));
        let (gained, lost) = changes.flatten().fold((0.0, 0.0), widest);
        Self { gained: gained as f32, lost: lost as f32 }
    }
}

/// Width from which on notes are shown, and the room they get.
const WITH_NOTES: f32 = 640.0;
const NOTES: f32 = 250.0;

/// Where titles end, where bars begin and end, where the line of no change is, and where notes begin.
struct GainBarColumns {
    titles_end: f32,
    /// The right end of numbers.
    numbers_end: f32,
    bars: (f32, f32),
    zero: f32,
    /// Points of a change of 1.
    scale: f32,
}

impl GainBarColumns {
    fn new(room: Rect, bars: &[GainBar], range: GainRange) -> Self {
        let titles_end = room.left() + (room.width() * 0.45).min(TITLES);
        let left = titles_end + 8.0;
        let noted = room.width() >= WITH_NOTES && bars.iter().any(|bar| !bar.note.is_empty());
        let numbers_end = room.right() - if noted { NOTES } else { 0.0 };
        let right = (numbers_end - NUMBER).max(left + 1.0);
        let spread = range.gained + range.lost;
        let scale = if spread > 0.0 { (right - left) / spread } else { 0.0 };
        let zero = left + range.lost * scale;
        Self { titles_end, numbers_end, bars: (left, right), zero, scale }
    }
}

/// The bars; the place of the one that was clicked.
pub(crate) fn gain_bars_ui(ui: &mut Ui, bars: &[GainBar], range: GainRange) -> Option<usize> {
    let room = Rect::from_min_size(ui.cursor().min, vec2(ui.available_width(), ROW));
    let columns = GainBarColumns::new(room, bars, range);
    let (mut clicked, mut focused) = (None, None);
    let mut rows = Vec::with_capacity(bars.len());
    ui.scope(|ui| {
        ui.spacing_mut().item_spacing.y = 0.0;
        for (place, bar) in bars.iter().enumerate() {
            let (sense, role) = match bar.on_click {
                Some(_) => (Sense::click(), Role::Button),
                None => (Sense::focusable_noninteractive(), Role::ListItem),
            };
            let (rect, response) = ui.allocate_exact_size(vec2(ui.available_width(), ROW), sense);
            let label = format!("{}: {}, {}", bar.title, bar.number(), bar.words);
            response.widget_info(|| WidgetInfo::labeled(role, ui.is_enabled(), &label));
            if response.hovered() && bar.on_click.is_some() {
                let hover = ThemePalette::for_ui(ui).hover;
                ui.painter().rect_filled(rect, CornerRadius::same(4), hover);
            }
            bar_ui(ui, rect, &columns, bar);
            focus_ui(ui, &response, rect);
            focused = neighbour(&response, place, bars.len()).or(focused);
            if response.clicked() {
                clicked = Some(place);
            }
            let hint = bar.on_click.map(|does| format!("\nClick: {does}")).unwrap_or_default();
            rows.push(response.on_hover_text(format!("{}\n{}{hint}", bar.title, bar.words)));
        }
    });
    if let Some(row) = focused.and_then(|place| rows.get(place)) {
        row.request_focus();
    }
    let bottom = ui.cursor().top();
    let rule = Stroke::new(1.0, ThemePalette::for_ui(ui).outline);
    ui.painter().vline(columns.zero, room.top()..=bottom, rule);
    clicked
}

#[expect(clippy::cast_possible_truncation, reason = "positions on a screen")]
fn bar_ui(ui: &Ui, rect: Rect, columns: &GainBarColumns, bar: &GainBar) {
    let palette = ThemePalette::for_ui(ui);
    let font = FontId::proportional(text_size::SMALL);
    let middle = |galley: &egui::Galley| rect.center().y - galley.size().y / 2.0;
    let width = columns.titles_end - rect.left();
    let title = elided(ui.painter(), &bar.title, font.clone(), palette.text, width);
    ui.painter().galley(pos2(rect.left(), middle(&title)), title, palette.text);
    let change = bar.change.unwrap_or(0.0) as f32;
    let end = (columns.zero - change * columns.scale).clamp(columns.bars.0, columns.bars.1);
    let colour = if change <= 0.0 { palette.good } else { palette.warning };
    let corners: [Pos2; 2] = [
        pos2(columns.zero.min(end), rect.top() + 4.0),
        pos2(columns.zero.max(end), rect.bottom() - 4.0),
    ];
    ui.painter().rect_filled(Rect::from_min_max(corners[0], corners[1]), 1.0, colour);
    let number = ui.painter().layout_no_wrap(bar.number(), font, palette.text);
    let at = pos2(columns.numbers_end - number.size().x, middle(&number));
    ui.painter().galley(at, number, palette.text);
    let notes = columns.numbers_end + 16.0;
    if notes < rect.right() {
        let room = rect.right() - notes;
        let font = FontId::proportional(text_size::CAPTION);
        let note = elided(ui.painter(), &bar.note, font, palette.weak_text, room);
        ui.painter().galley(pos2(notes, middle(&note)), note, palette.weak_text);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bar(change: f64) -> GainBar {
        let [title, note, words] = Default::default();
        GainBar { title, change: Some(change), note, words, on_click: None }
    }

    #[test]
    fn bars_fill_the_room_and_share_a_line() {
        let room = Rect::from_min_size(pos2(0.0, 0.0), vec2(1000.0, ROW));
        let columns = |bars: &[GainBar]| {
            GainBarColumns::new(room, bars, GainRange::of(bars.iter().map(|bar| bar.change)))
        };
        let only_gains = columns(&[bar(-0.5), bar(0.0)]);
        assert_eq!(only_gains.zero, only_gains.bars.0);
        assert_eq!(only_gains.zero + 0.5 * only_gains.scale, only_gains.bars.1);
        let both = columns(&[bar(-0.3), bar(0.1)]);
        assert!((both.zero - 0.1 * both.scale - both.bars.0).abs() < 1e-3);
        assert!((both.zero + 0.3 * both.scale - both.bars.1).abs() < 1e-3);
        // Notes take of the room of bars.
        let noted = GainBar { note: "4 to 8".to_owned(), ..bar(-0.5) };
        let noted = columns(&[noted]);
        assert_eq!(noted.bars.1 + NOTES, only_gains.bars.1);
        let none = columns(&[bar(0.0)]);
        assert!(none.zero.is_finite() && none.zero == none.bars.0);
    }

    #[test]
    fn numbers_have_a_sign_unless_they_are_none() {
        let numbers = [-0.176, 0.0, 0.0004, 0.021].map(|change| bar(change).number());
        assert_eq!(numbers, ["-17.6 %", "0.0 %", "0.0 %", "+2.1 %"]);
        assert_eq!(GainBar { change: None, ..bar(0.0) }.number(), "—");
    }
}
