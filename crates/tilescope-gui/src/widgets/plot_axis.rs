//! Axes of plots.

use egui::{TextStyle, Ui, WidgetText};
use egui_plot::AxisHints;

/// What `egui_plot` leaves on both sides of the words of a vertical axis.
const WORDS_MARGIN: f32 = 8.0;

/// Height of a title, in lines of text: itself, and the gap that `egui_plot` leaves beside it.
const TITLE_LINES: f32 = 1.25;

/// An axis along the bottom with a title. It takes the room of its numbers even while there are none:
/// `egui_plot` gives an axis the room of the frame before, so that numbers which come and go with the
/// width of the plot would move it in every frame.
pub(crate) fn titled_x_axis<'a>(ui: &Ui, title: impl Into<WidgetText>) -> AxisHints<'a> {
    let line = ui.text_style_height(&TextStyle::Body);
    AxisHints::new_x().label(title).min_thickness((line * (1.0 + TITLE_LINES)).ceil())
}

/// A vertical axis, with a title unless that is empty, that has room for these words from its first
/// frame on.
pub(crate) fn y_axis_for<'a>(
    ui: &Ui,
    title: &str,
    words: impl IntoIterator<Item = String>,
) -> AxisHints<'a> {
    let line = ui.text_style_height(&TextStyle::Body);
    let beside = if title.is_empty() { 0.0 } else { line * TITLE_LINES };
    let thickness = (width_of_words(ui, words) + beside).ceil();
    AxisHints::new_y().label(title).min_thickness(thickness)
}

/// The width of a vertical axis with these words and without a title.
fn width_of_words(ui: &Ui, words: impl IntoIterator<Item = String>) -> f32 {
    let font = TextStyle::Body.resolve(ui.style());
    let colour = ui.visuals().text_color();
    let mut widest: f32 = 0.0;
    for words in words {
        widest = widest.max(ui.painter().layout_no_wrap(words, font.clone(), colour).size().x);
    }
    widest + WORDS_MARGIN
}
