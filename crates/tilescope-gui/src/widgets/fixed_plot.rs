//! A plot that shows what it shows: nothing moves it, and nothing follows the pointer.

use crate::theme::ThemePalette;
use egui_plot::Plot;

/// An empty plot of `[x, y]` from the first to the second number of each.
pub(crate) fn fixed_plot<'a>(
    name: &str,
    [(left, right), (bottom, top)]: [(f64, f64); 2],
    palette: &ThemePalette,
) -> Plot<'a> {
    Plot::new(name.to_owned())
        .grid_color(palette.rule)
        .default_x_bounds(left, right)
        .default_y_bounds(bottom, top)
        .show_crosshair(false)
        .show_x(false)
        .show_y(false)
        .allow_zoom(false)
        .allow_drag(false)
        .allow_scroll(false)
        .allow_boxed_zoom(false)
        .allow_double_click_reset(false)
        .label_formatter(|_| None)
}
