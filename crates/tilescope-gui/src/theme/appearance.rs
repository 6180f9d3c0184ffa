//! What the user chose of how things look, handed down to everything that is painted.
//!
//! It lies in the egui context, of which every window and every picture has its own.

use super::{DARK, DARK_SAFE, LIGHT, LIGHT_SAFE, ThemePalette};
use egui::{Context, Id, Ui};
use tilescope_report::units::NumberFormat;

/// Choices that hold for everything in an egui context.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Appearance {
    /// Whether colours are those that everybody can tell apart.
    pub colour_blind_safe: bool,
    /// How numbers are written.
    pub numbers: NumberFormat,
}

impl Appearance {
    /// Makes it so for everything that is painted in this context from now on.
    pub(crate) fn install(self, context: &Context) {
        context.data_mut(|data| data.insert_temp(Id::NULL, self));
    }

    fn of(context: &Context) -> Self {
        context.data(|data| data.get_temp(Id::NULL)).unwrap_or_default()
    }
}

/// How numbers are written in the window of `ui`.
pub(crate) fn numbers(ui: &Ui) -> NumberFormat {
    Appearance::of(ui.ctx()).numbers
}

/// Which of the palettes things are painted in: a key for images that are kept.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct ColourScheme {
    /// Light on dark.
    pub dark: bool,
    /// Colours that everybody can tell apart, not those that IPU profilers have always shown.
    pub colour_blind_safe: bool,
}

impl ColourScheme {
    /// That of a `Ui`.
    pub(crate) fn of(ui: &Ui) -> Self {
        let colour_blind_safe = Appearance::of(ui.ctx()).colour_blind_safe;
        Self { dark: ui.visuals().dark_mode, colour_blind_safe }
    }

    /// That of what is painted over a whole window.
    pub(crate) fn of_window(context: &Context) -> Self {
        let colour_blind_safe = Appearance::of(context).colour_blind_safe;
        Self { dark: context.global_style().visuals.dark_mode, colour_blind_safe }
    }

    /// The one of four things that goes with it: on a light and on a dark ground, then those that
    /// everybody can tell apart.
    pub(crate) fn choose<T>(self, [light, dark, light_safe, dark_safe]: [T; 4]) -> T {
        match (self.dark, self.colour_blind_safe) {
            (false, false) => light,
            (true, false) => dark,
            (false, true) => light_safe,
            (true, true) => dark_safe,
        }
    }

    /// Its colours.
    pub(crate) fn palette(self) -> &'static ThemePalette {
        self.choose([&LIGHT, &DARK, &LIGHT_SAFE, &DARK_SAFE])
    }
}
