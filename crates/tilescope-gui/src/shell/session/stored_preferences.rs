//! The preferences and the file that stores them.

use crate::model::message::StatusMessage;
use crate::model::preferences::{AppearancePrefs, ThemeChoice, UserPreferences};
use crate::shell::preferences_file::PreferencesFile;
use egui::Context;

/// The preferences of this window, and their file.
pub(crate) struct StoredPreferences {
    current: UserPreferences,
    file: PreferencesFile,
}

impl StoredPreferences {
    /// Preferences that are not stored.
    pub(super) fn in_memory() -> Self {
        let (file, current) = PreferencesFile::in_memory();
        Self { current, file }
    }

    /// The user's preferences, and a message if the file is invalid.
    pub(super) fn of_user() -> (Self, Option<StatusMessage>) {
        let (file, current, message) = PreferencesFile::open();
        (Self { current, file }, message.map(StatusMessage::warning))
    }

    pub(super) fn current(&self) -> &UserPreferences {
        &self.current
    }

    /// The preferences, for changes. The next [`save`](Self::save) writes them.
    pub(super) fn current_mut(&mut self) -> &mut UserPreferences {
        &mut self.current
    }

    /// Applies a theme.
    pub(super) fn set_theme(&mut self, context: &Context, theme: ThemeChoice) {
        self.current.theme = theme;
        context.set_theme(theme.preference());
    }

    /// Applies an appearance. Everything painted before must be painted again.
    pub(super) fn set_look(&mut self, context: &Context, look: AppearancePrefs) {
        self.current.look = look;
        look.apply(context);
    }

    /// Restores the defaults.
    pub(super) fn reset(&mut self, context: &Context) {
        self.current.reset();
        self.set_theme(context, self.current.theme);
        self.set_look(context, self.current.look);
    }

    /// Saves changes. Returns a message for the user, if any.
    pub(super) fn save(&mut self, context: &Context) -> Option<StatusMessage> {
        self.file.save(context, &self.current).map(StatusMessage::warning)
    }

    /// Saves everything unsaved before the window closes.
    pub(super) fn finish(&mut self, context: &Context) {
        // The window is closed; the message has no reader.
        let _ = self.file.finish(context, &self.current);
    }
}
