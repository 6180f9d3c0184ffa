//! Text that is cut to a width, with a point of omission where something is missing.

use egui::text::{LayoutJob, TextFormat, TextWrapping};
use egui::{Color32, FontId, Galley, Painter};
use std::sync::Arc;

/// Lays `text` out in one line of at most `width` points.
pub fn elided(
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
