//! The user's choices of appearance, passed to all painting code.
//!
//! They are stored in the egui context; every window and every picture has its own.

use super::{DARK, DARK_SAFE, LIGHT, LIGHT_SAFE, ThemePalette};
use egui::{Context, Id, Ui};
use tilescope_report::units::NumberFormat;

/// The choices for everything in an egui context.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Appearance {
    /// True for the palette that people with any colour vision can distinguish.
    pub colour_blind_safe: bool,
    /// The format of numbers.
    pub numbers: NumberFormat,
}

impl Appearance {
    /// Applies the choices to everything painted in this context from now on.
    pub(crate) fn install(self, context: &Context) {
        context.data_mut(|data| data.insert_temp(Id::NULL, self));
    }

    fn of(context: &Context) -> Self {
        context.data(|data| data.get_temp(Id::NULL)).unwrap_or_default()
    }
}

/// The format of numbers in the window of `ui`.
pub(crate) fn numbers(ui: &Ui) -> NumberFormat {
    Appearance::of(ui.ctx()).numbers
}

/// The choice of palette; also the key of cached images.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct ColourScheme {
    /// True for light on dark.
    pub dark: bool,
    /// True for colours that people with any colour vision can distinguish, false for the usual
    /// colours of IPU profilers.
    pub colour_blind_safe: bool,
}

impl ColourScheme {
    /// The scheme of a `Ui`.
    pub(crate) fn of(ui: &Ui) -> Self {
        let colour_blind_safe = Appearance::of(ui.ctx()).colour_blind_safe;
        Self { dark: ui.visuals().dark_mode, colour_blind_safe }
    }

    /// The scheme for painting over a whole window.
    pub(crate) fn of_window(context: &Context) -> Self {
        let colour_blind_safe = Appearance::of(context).colour_blind_safe;
        Self { dark: context.global_style().visuals.dark_mode, colour_blind_safe }
    }

    /// Chooses one of four values: light and dark, then light and dark with distinguishable
    /// colours.
    pub(crate) fn choose<T>(self, [light, dark, light_safe, dark_safe]: [T; 4]) -> T {
        match (self.dark, self.colour_blind_safe) {
            (false, false) => light,
            (true, false) => dark,
            (false, true) => light_safe,
            (true, true) => dark_safe,
        }
    }

    /// The palette of the scheme.
    pub(crate) fn palette(self) -> &'static ThemePalette {
        self.choose([&LIGHT, &DARK, &LIGHT_SAFE, &DARK_SAFE])
    }
}
