//! Axes for plots.

use egui::{TextStyle, Ui, WidgetText};
use egui_plot::AxisHints;

/// The margin of `egui_plot` on both sides of the labels of a vertical axis.
const WORDS_MARGIN: f32 = 8.0;

/// The height of a title in lines of text: the title itself, and the gap that `egui_plot` leaves
/// beside it.
const TITLE_LINES: f32 = 1.25;

/// An axis along the bottom with a title. It reserves the height of its numbers even while there
/// are none: `egui_plot` uses the size of the previous frame, so numbers that come and go with the
/// width of the plot would move it in every frame.
pub(crate) fn titled_x_axis<'a>(ui: &Ui, title: impl Into<WidgetText>) -> AxisHints<'a> {
    let line = ui.text_style_height(&TextStyle::Body);
    AxisHints::new_x().label(title).min_thickness((line * (1.0 + TITLE_LINES)).ceil())
}

/// A vertical axis that has space for these labels from its first frame on, with a title unless
/// that is empty.
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

/// The width of a vertical axis with these labels and without a title.
fn width_of_words(ui: &Ui, words: impl IntoIterator<Item = String>) -> f32 {
    let font = TextStyle::Body.resolve(ui.style());
    let colour = ui.visuals().text_color();
    let mut widest: f32 = 0.0;
    for words in words {
        widest = widest.max(ui.painter().layout_no_wrap(words, font.clone(), colour).size().x);
    }
    widest + WORDS_MARGIN
}
