//! Application of the preferences of appearance.

use crate::model::preferences::{AppearancePrefs, PaletteChoice, TEXT_PERCENT, ThemeChoice};
use crate::theme::Appearance;

impl ThemeChoice {
    /// The equivalent choice of egui.
    pub(crate) fn preference(self) -> egui::ThemePreference {
        match self {
            Self::System => egui::ThemePreference::System,
            Self::Light => egui::ThemePreference::Light,
            Self::Dark => egui::ThemePreference::Dark,
        }
    }
}

impl AppearancePrefs {
    /// Applies the appearance to everything painted in a window or picture from now on.
    pub fn apply(self, context: &egui::Context) {
        self.hand_down(context);
        context.set_zoom_factor(zoom_factor(self.text_percent));
    }

    /// Passes colours and the format of numbers to the painting code. Text size is not included
    /// because zooming changes it too.
    pub(crate) fn hand_down(self, context: &egui::Context) {
        let colour_blind_safe = self.palette == PaletteChoice::ColourBlindSafe;
        Appearance { colour_blind_safe, numbers: self.numbers() }.install(context);
    }
}

/// The pixels per point for a text size in percent.
pub(crate) fn zoom_factor(text_percent: u16) -> f32 {
    f32::from(text_percent.clamp(*TEXT_PERCENT.start(), *TEXT_PERCENT.end())) / 100.0
}
