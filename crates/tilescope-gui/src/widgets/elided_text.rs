//! Text that is shortened to a width, with an ellipsis for the omitted part.

use egui::text::{LayoutJob, TextFormat, TextWrapping};
use egui::{Color32, FontId, Galley, Painter};
use std::sync::Arc;

/// The share of the width for the beginning of a string whose middle is omitted.
const HEAD_SHARE: f32 = 0.4;

/// A name of at most this many characters.
pub(crate) fn shortened(name: &str, letters: usize) -> String {
    if name.chars().count() > letters {
        return name.chars().take(letters.saturating_sub(1)).chain(['…']).collect();
    }
    name.to_owned()
}

/// Lays out `text` in one line of at most `width` points.
pub(crate) fn elided(
    painter: &Painter,
    text: &str,
    font: FontId,
    colour: Color32,
    width: f32,
) -> Arc<Galley> {
    // Names have up to hundreds of characters; those that cannot fit are not measured.
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

/// Omits the middle of `text` so that it fits on one line of at most `width` points. Returns `None`
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
    // The end is more informative than the beginning.
    let head = ends.iter().take_while(|end| **end <= room * HEAD_SHARE).count();
    let used = head.checked_sub(1).and_then(|last| ends.get(last)).copied().unwrap_or(0.0);
    let from = all.size().x - (room - used);
    let tail = ends.iter().rev().take_while(|end| **end > from).count().saturating_sub(1);
    let letters = text.chars().count();
    let head: String = text.chars().take(head).collect();
    let tail: String = text.chars().skip(letters.saturating_sub(tail)).collect();
    Some(format!("{head}…{tail}"))
}

/// Omits the middle of one of several texts below each other. The part that distinguishes it from
/// the others is kept, with as much of its beginning as fits.
pub(crate) fn with_difference(
    painter: &Painter,
    text: &str,
    others: &[&str],
    (font, colour): (FontId, Color32),
    width: f32,
) -> Option<String> {
    let measure =
        |text: &str| painter.layout_no_wrap(text.to_owned(), font.clone(), colour).size().x;
    if measure(text) <= width {
        return None;
    }
    let tail: String = text.chars().skip(difference(text, others)).collect();
    let room = width - measure(&tail) - measure("…");
    if tail.is_empty() || room < 0.0 {
        return without_middle(painter, text, font, colour, width);
    }
    let mut head = String::new();
    for letter in text.chars() {
        head.push(letter);
        if measure(&head) > room {
            head.pop();
            break;
        }
    }
    Some(format!("{head}…{tail}"))
}

/// The number of characters that a string shares with the most similar of the others, up to the end
/// of a part of its name.
fn difference(text: &str, others: &[&str]) -> usize {
    let mut most = 0;
    for other in others.iter().filter(|other| **other != text) {
        let shared = text.chars().zip(other.chars()).take_while(|(a, b)| a == b).count();
        most = most.max(shared);
    }
    let parts = text.chars().take(most).collect::<Vec<char>>();
    let ends = parts.iter().rposition(|letter| !letter.is_alphanumeric());
    ends.unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_shared_start_of_texts_is_measured() {
        let texts = ["layer3+layer4/fwd", "layer3+layer4/bwd", "layer9/fwd"];
        let tail = |at: usize| &texts[at][difference(texts[at], &texts)..];
        assert_eq!([tail(0), tail(1)], ["/fwd", "/bwd"]);
        assert_eq!(tail(2), "layer9/fwd");
        assert_eq!(difference("a", &["a"]), 0);
    }

    #[test]
    fn the_difference_is_shown_at_any_width() {
        let context = egui::Context::default();
        let mut shown = Vec::new();
        let mut output = context.run_ui(egui::RawInput::default(), |ui| {
            let font = FontId::proportional(13.0);
            for text in ["layer10+layer11+layer12/fwd", "layer10+layer11+layer12/bwd"] {
                let others = ["layer10+layer11+layer12/fwd", "layer10+layer11+layer12/bwd"];
                let look = (font.clone(), Color32::BLACK);
                shown.extend(with_difference(ui.painter(), text, &others, look, 90.0));
            }
        });
        output.textures_delta.clear();
        assert!(shown.len() >= 2 && shown[0].ends_with("…/fwd"), "{shown:?}");
        assert!(shown[1].ends_with("…/bwd") && shown[1].starts_with("layer"), "{shown:?}");
    }
}
