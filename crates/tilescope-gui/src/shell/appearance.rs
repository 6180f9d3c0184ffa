//! Preferences of how everything looks, put into effect.

use crate::model::preferences::{AppearancePrefs, PaletteChoice, TEXT_PERCENT, ThemeChoice};
use crate::theme::Appearance;

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
    /// Makes it so for everything that is painted in a window or picture from now on.
    pub fn apply(self, context: &egui::Context) {
        self.hand_down(context);
        context.set_zoom_factor(zoom_factor(self.text_percent));
    }

    /// Hands colours and the format of numbers down to what paints them. Text size is not among
    /// them: zooming changes it too.
    pub(crate) fn hand_down(self, context: &egui::Context) {
        let colour_blind_safe = self.palette == PaletteChoice::ColourBlindSafe;
        Appearance { colour_blind_safe, numbers: self.numbers() }.install(context);
    }
}

/// Pixels per point where text has so many percent.
pub(crate) fn zoom_factor(text_percent: u16) -> f32 {
    f32::from(text_percent.clamp(*TEXT_PERCENT.start(), *TEXT_PERCENT.end())) / 100.0
}
