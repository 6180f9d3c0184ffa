//! The remote tab of the home screen: the address of a report, and the result of opening it.

use crate::model::command::{AppCommand, CommandQueue};
use crate::model::preferences::{RemotePrefs, UserPreferences};
use crate::theme::{ThemePalette, spacing, text_size};
use crate::widgets::error_ui;
use egui::{Button, Key, Label, Margin, RichText, TextEdit, Ui, vec2};
use std::path::{Path, PathBuf};
use tilescope_report::remote::{RemoteAddress, is_remote};

/// The text typed into the remote tab.
#[derive(Default)]
pub(crate) struct RemoteForm {
    /// `None` until the tab is shown; then it starts with the last address.
    typed: Option<RemotePrefs>,
    /// The last report that failed to open, and the error.
    failed: Option<(PathBuf, String)>,
}

/// The number of listed reports on other machines.
const MAX_RECENT: usize = 6;

impl RemoteForm {
    /// Records why a report on another machine could not be opened.
    pub(crate) fn tell_failure(&mut self, path: PathBuf, why: String) {
        self.failed = Some((path, why));
    }

    /// Clears the last failure.
    pub(crate) fn clear_failure(&mut self) {
        self.failed = None;
    }

    /// The form, the last failure, and earlier reports.
    pub(crate) fn ui(&mut self, ui: &mut Ui, prefs: &UserPreferences, commands: &CommandQueue) {
        let palette = ThemePalette::for_ui(ui);
        ui.add_space(spacing::S);
        let typed = self.typed.get_or_insert_with(|| prefs.remote.clone());
        let mut entered = false;
        for (label, hint, text) in [
            ("Host", "user@host, or a name of ~/.ssh/config", &mut typed.host),
            ("Path on the host", "/data/out or ~/out", &mut typed.path),
        ] {
            ui.label(RichText::new(label).weak().size(text_size::CAPTION));
            let edit = TextEdit::singleline(text)
                .hint_text(RichText::new(hint).weak())
                .desired_width(ui.available_width() - 18.0)
                .margin(Margin::symmetric(8, 5));
            let edit = ui.add(edit).accessible_name(label);
            entered |= edit.lost_focus() && ui.input(|input| input.key_pressed(Key::Enter));
            ui.add_space(spacing::XXS);
        }
        let address = typed.address();
        let is_begun = !typed.host.trim().is_empty() && !typed.path.trim().is_empty();
        ui.add_space(spacing::XXS);
        let button = Button::new("Connect").min_size(vec2(90.0, 0.0));
        entered |= ui.add_enabled(address.is_ok(), button).clicked();
        if let (Err(error), true) = (&address, is_begun) {
            error_ui(ui, error.to_string());
        }
        if entered && address.is_ok() {
            commands.push(AppCommand::OpenRemote(typed.clone()));
        }
        if let Some((path, why)) = &self.failed {
            ui.add_space(spacing::S);
            ui.add(Label::new(RichText::new(why).color(palette.error)).wrap().selectable(true));
            if ui.button("Try again").clicked() {
                commands.push(AppCommand::Open(path.clone()));
            }
        }
        recent_ui(ui, prefs, commands);
        ui.add_space(spacing::XS);
        let words = "Your ssh copies the report to the cache of this machine. The host does not \
                     need tilescope.";
        let words = RichText::new(words).weak().size(text_size::CAPTION);
        ui.add(Label::new(words).wrap());
    }
}

/// The reports on other machines that were open before.
fn recent_ui(ui: &mut Ui, prefs: &UserPreferences, commands: &CommandQueue) {
    let recent = prefs.recent.iter().map(|recent| recent.path.as_path());
    for path in recent.filter(|path| is_remote(path)).take(MAX_RECENT) {
        let Some(text) = entry(path) else { continue };
        let button = Button::new(text).frame(false).truncate();
        if ui.add(button).on_hover_text(path.display().to_string()).clicked() {
            commands.push(AppCommand::Open(path.to_owned()));
        }
    }
}

/// `out on pod16`
fn entry(path: &Path) -> Option<String> {
    let address = RemoteAddress::of_path(path).ok().flatten()?;
    let file = Path::new(address.path());
    let named = file.file_name().filter(|name| *name != tilescope_report::REPORT_FILE);
    let name = named.or(file.parent().and_then(Path::file_name)).unwrap_or(file.as_os_str());
    Some(format!("{} on {}", name.to_string_lossy(), address.host()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_name_report_and_host() {
        let named = |path: &str| entry(Path::new(path));
        assert_eq!(
            named("ssh://me@pod16/data/out/profile.pop").as_deref(),
            Some("out on me@pod16")
        );
        assert_eq!(named("ssh://pod16/data/my.pop").as_deref(), Some("my.pop on pod16"));
        assert_eq!(named("/data/out"), None);
    }
}
