//! The key figures, in a size that matches their importance.

use super::SummaryPageData;
use crate::model::open_report::OpenReport;
use crate::theme::{ThemePalette, numbers, spacing, text_size};
use crate::widgets::elided_text::elided;
use egui::accesskit::Role;
use egui::{Color32, CornerRadius, FontId, Galley, Sense, Stroke, Ui, Vec2, WidgetInfo, vec2};
use std::sync::Arc;
use tilescope_analysis::headline::{HeadlineFigure, headline_figures};

/// The width below which figures are in rows of two.
const ONE_ROW: f32 = 640.0;
/// The largest width of a figure if there are few.
const WIDEST: f32 = 420.0;
/// The height of a figure with one line of explanation.
const HEIGHT: f32 = 78.0;
/// The height of a second line.
const SECOND_LINE: f32 = 14.0;
/// The margin at the left and right of a figure.
const MARGIN: f32 = 14.0;
const GAP: f32 = spacing::L;

/// Shows the key figures side by side.
pub(crate) fn headline_ui(ui: &mut Ui, opened: &OpenReport, facts: &SummaryPageData) {
    let summary = &facts.summary;
    let target = &opened.target;
    facts_ui(ui, &headline_figures(summary, opened.outcome, target, numbers(ui)));
}

/// Shows facts side by side, in rows of two if the page is narrow.
pub(crate) fn facts_ui(ui: &mut Ui, cards: &[HeadlineFigure]) {
    let columns = if ui.available_width() > ONE_ROW { cards.len() } else { 2 };
    let width = (ui.available_width() - GAP * (columns as f32 - 1.0)) / columns.max(1) as f32;
    let width = if cards.len() < 3 { width.min(WIDEST) } else { width };
    let is_long = cards.iter().any(|card| explanation(ui, card, width).rows.len() > 1);
    let size = vec2(width, if is_long { HEIGHT + SECOND_LINE } else { HEIGHT });
    for row in cards.chunks(columns) {
        ui.horizontal(|ui| {
            ui.spacing_mut().item_spacing.x = GAP;
            row.iter().for_each(|card| card_ui(ui, size, card));
        });
        ui.add_space(spacing::S);
    }
}

/// A figure in one line, as large as fits.
fn whole(ui: &Ui, value: &str, colour: Color32, room: f32) -> Arc<Galley> {
    let sizes = [text_size::HEADING, text_size::SUBHEADING, text_size::BODY, text_size::SMALL];
    let lay_out = |size| ui.painter().layout_no_wrap(value.to_owned(), strong_font(size), colour);
    let fitting = sizes.into_iter().map(lay_out).find(|line| line.size().x <= room);
    fitting.unwrap_or_else(|| {
        elided(ui.painter(), value, strong_font(text_size::CAPTION), colour, room)
    })
}

/// The explanation of a figure in a card of this width, in at most two lines.
fn explanation(ui: &Ui, card: &HeadlineFigure, width: f32) -> Arc<Galley> {
    let colour = ThemePalette::for_ui(ui).weak_text;
    let font = FontId::proportional(text_size::CAPTION);
    let room = width - 2.0 * MARGIN;
    // A number stays beside its sign at the end of a line.
    let about = card.about.replace(" %", "\u{a0}%");
    let lines = ui.painter().layout(about, font.clone(), colour, room);
    if lines.rows.len() > 2 { elided(ui.painter(), &card.about, font, colour, room) } else { lines }
}

fn strong_font(size: f32) -> FontId {
    FontId::new(size, crate::theme::fonts::strong_family())
}

fn card_ui(ui: &mut Ui, size: Vec2, card: &HeadlineFigure) {
    let HeadlineFigure { title, value, exact, bad, .. } = card;
    let palette = ThemePalette::for_ui(ui);
    let (rect, response) = ui.allocate_exact_size(size, Sense::hover());
    let exactly = if exact.is_empty() { String::new() } else { format!(" ({exact})") };
    let label = format!("{title}: {value}{exactly}");
    response.widget_info(|| WidgetInfo::labeled(Role::Label, true, &label));
    let stroke = Stroke::new(1.0, if *bad { palette.error } else { palette.rule });
    let corner = CornerRadius::same(8);
    ui.painter().rect(rect, corner, palette.raised, stroke, egui::StrokeKind::Inside);
    let inner = rect.shrink2(vec2(MARGIN, 10.0));
    let room = inner.width();
    let elide = |text: &str, font: FontId, colour| elided(ui.painter(), text, font, colour, room);
    let name = elide(title, FontId::proportional(text_size::SMALL), palette.weak_text);
    ui.painter().galley(inner.min, name, palette.weak_text);
    let colour = if *bad { palette.error } else { palette.text };
    let figure = whole(ui, value, colour, room);
    ui.painter().galley(inner.min + vec2(0.0, 16.0), figure, colour);
    let words = explanation(ui, card, size.x);
    ui.painter().galley(inner.min + vec2(0.0, 42.0), words, palette.weak_text);
    let hint = card.hint();
    if !hint.is_empty() {
        response.on_hover_text(hint);
    }
}
