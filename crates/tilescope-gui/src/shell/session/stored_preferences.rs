//! Preferences together with the file that keeps them.

use crate::model::message::StatusMessage;
use crate::model::preferences::{AppearancePrefs, ThemeChoice, UserPreferences};
use crate::shell::preferences_file::PreferencesFile;
use egui::Context;

/// Preferences as they are in this window, and where they are kept.
pub(crate) struct StoredPreferences {
    current: UserPreferences,
    file: PreferencesFile,
}

impl StoredPreferences {
    /// Preferences that are kept nowhere.
    pub(super) fn in_memory() -> Self {
        let (file, current) = PreferencesFile::in_memory();
        Self { current, file }
    }

    /// Those of the user, and a message if they could not be understood.
    pub(super) fn of_user() -> (Self, Option<StatusMessage>) {
        let (file, current, message) = PreferencesFile::open();
        (Self { current, file }, message.map(StatusMessage::warning))
    }

    pub(super) fn current(&self) -> &UserPreferences {
        &self.current
    }

    /// The preferences, to change them; the file follows with the next [`save`](Self::save).
    pub(super) fn current_mut(&mut self) -> &mut UserPreferences {
        &mut self.current
    }

    /// Shows a theme from now on.
    pub(super) fn set_theme(&mut self, context: &Context, theme: ThemeChoice) {
        self.current.theme = theme;
        context.set_theme(theme.preference());
    }

    /// Shows everything in this way from now on. What is painted already has to be made again.
    pub(super) fn set_look(&mut self, context: &Context, look: AppearancePrefs) {
        self.current.look = look;
        look.apply(context);
    }

    /// Goes back to those of a first start.
    pub(super) fn reset(&mut self, context: &Context) {
        self.current.reset();
        self.set_theme(context, self.current.theme);
        self.set_look(context, self.current.look);
    }

    /// Keeps what has changed; a message if something is to be told.
    pub(super) fn save(&mut self, context: &Context) -> Option<StatusMessage> {
        self.file.save(context, &self.current).map(StatusMessage::warning)
    }

    /// Keeps what is not kept yet, before the window is gone.
    pub(super) fn finish(&mut self, context: &Context) {
        // Nobody is there any more to be told.
        let _ = self.file.finish(context, &self.current);
    }
}
