//! Text that is cut to a width, with a point of omission where something is missing.

use egui::text::{LayoutJob, TextFormat, TextWrapping};
use egui::{Color32, FontId, Galley, Painter};
use std::sync::Arc;

/// Share of the room that the beginning of a text gets when its middle is left out.
const HEAD_SHARE: f32 = 0.4;

/// Lays `text` out in one line of at most `width` points.
pub(crate) fn elided(
    painter: &Painter,
    text: &str,
    font: FontId,
    colour: Color32,
    width: f32,
) -> Arc<Galley> {
    // Names have up to hundreds of letters; more than fit need not be looked at.
    let most = (width / 3.0) as usize + 8;
    let shortened: String = text.chars().take(most).collect();
    let mut job = LayoutJob::single_section(shortened, TextFormat::simple(font, colour));
    job.wrap = TextWrapping {
        max_width: width,
        max_rows: 1,
        break_anywhere: true,
        overflow_character: Some('…'),
    };
    painter.layout_job(job)
}

/// `text` with its middle left out, so that one line of it is at most `width` points wide; `None`
/// if all of it fits.
pub(crate) fn without_middle(
    painter: &Painter,
    text: &str,
    font: FontId,
    colour: Color32,
    width: f32,
) -> Option<String> {
    let all = painter.layout_no_wrap(text.to_owned(), font.clone(), colour);
    if all.size().x <= width {
        return None;
    }
    let dots = painter.layout_no_wrap("…".to_owned(), font, colour).size().x;
    let room = (width - dots).max(0.0);
    let ends: Vec<f32> =
        all.rows.iter().flat_map(|row| &row.glyphs).map(|glyph| glyph.max_x()).collect();
    // The end tells more than the beginning.
    let head = ends.iter().take_while(|end| **end <= room * HEAD_SHARE).count();
    let used = head.checked_sub(1).and_then(|last| ends.get(last)).copied().unwrap_or(0.0);
    let from = all.size().x - (room - used);
    let tail = ends.iter().rev().take_while(|end| **end > from).count().saturating_sub(1);
    let letters = text.chars().count();
    let head: String = text.chars().take(head).collect();
    let tail: String = text.chars().skip(letters.saturating_sub(tail)).collect();
    Some(format!("{head}…{tail}"))
}
