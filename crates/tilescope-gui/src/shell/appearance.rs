//! Preferences of how everything looks, put into effect.

use crate::model::preferences::{AppearancePrefs, PaletteChoice, TEXT_PERCENT, ThemeChoice};
use crate::theme;
use tilescope_report::units::set_byte_units;

impl ThemeChoice {
    /// What egui calls it.
    pub(crate) fn preference(self) -> egui::ThemePreference {
        match self {
            Self::System => egui::ThemePreference::System,
            Self::Light => egui::ThemePreference::Light,
            Self::Dark => egui::ThemePreference::Dark,
        }
    }
}

impl AppearancePrefs {
    /// Makes it so, for everything that is painted from now on.
    pub fn apply(self, context: &egui::Context) {
        self.apply_to_process();
        theme::install_styles(context);
        context.set_zoom_factor(zoom_factor(self.text_percent));
    }

    /// Chooses what is the same for all windows and pictures of the process: units and colours.
    pub fn apply_to_process(self) {
        set_byte_units(self.units);
        theme::set_process_palette(self.palette == PaletteChoice::ColourBlindSafe);
    }
}

/// Pixels per point where text has so many percent.
pub(crate) fn zoom_factor(text_percent: u16) -> f32 {
    f32::from(text_percent.clamp(*TEXT_PERCENT.start(), *TEXT_PERCENT.end())) / 100.0
}
