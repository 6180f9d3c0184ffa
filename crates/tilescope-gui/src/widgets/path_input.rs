//! A box to type the path of a report into, with what begins like it below.

use crate::widgets::background_query::{BackgroundQuery, BackgroundWorkers};
use egui::{Button, Key, Margin, RichText, TextEdit, Ui};
use std::path::{Path, PathBuf};

/// Most paths that are offered.
const MAX_COMPLETIONS: usize = 8;

/// What is typed, and what begins like it.
#[derive(Default)]
pub(crate) struct PathInput {
    pub text: String,
    completions: BackgroundQuery<String, Vec<PathBuf>>,
}

impl PathInput {
    /// Shows the box; the path that was entered.
    pub(crate) fn ui(&mut self, ui: &mut Ui, workers: &BackgroundWorkers) -> Option<PathBuf> {
        let palette = crate::theme::ThemePalette::for_ui(ui);
        let mut entered = None;
        ui.horizontal(|ui| {
            let edit = TextEdit::singleline(&mut self.text)
                .hint_text(
                    RichText::new("Path of a directory or .pop file").color(palette.weak_text),
                )
                .desired_width(ui.available_width() - 76.0)
                .margin(Margin::symmetric(8, 5));
            let typed = ui.add(edit).accessible_name("Path of a report");
            let enter = typed.lost_focus() && ui.input(|input| input.key_pressed(Key::Enter));
            let path = self.text.trim();
            let clicked = ui.add_enabled(!path.is_empty(), Button::new("Open")).clicked();
            if (enter || clicked) && !path.is_empty() {
                entered = Some(PathBuf::from(path));
            }
        });
        entered.or_else(|| self.offered_ui(ui, workers))
    }

    /// Reports and directories that begin with what is typed. A directory is gone into, a report
    /// is opened.
    fn offered_ui(&mut self, ui: &mut Ui, workers: &BackgroundWorkers) -> Option<PathBuf> {
        if self.text.trim().is_empty() {
            return None;
        }
        let question = |typed: &String| beginning_with(typed.trim());
        let asked = self.completions.compute(ui.ctx(), workers, &self.text, question);
        let offered = asked.answer()?;
        let mut opened = None;
        for path in offered.iter() {
            let report = is_report(path);
            let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
            let words = if report { name } else { format!("{name}/") };
            if ui.add(Button::new(words).frame(false).truncate()).clicked() {
                if report {
                    opened = Some(path.clone());
                } else {
                    self.text = format!("{}/", path.display());
                }
            }
        }
        opened
    }
}

/// Whether a path ends as a report's does; whether it is one shows when it is opened.
fn is_report(path: &Path) -> bool {
    path.extension().is_some_and(|end| end == "pop")
}

/// Directories and report files whose path begins with `typed`, in the order of their names.
#[expect(clippy::disallowed_methods, reason = "names of one directory, when a key is typed")]
fn beginning_with(typed: &str) -> Vec<PathBuf> {
    let path = Path::new(typed);
    let (directory, start) = match typed.ends_with('/') {
        true => (path, String::new()),
        false => {
            let start = path.file_name().map(|name| name.to_string_lossy().into_owned());
            (path.parent().unwrap_or(Path::new("")), start.unwrap_or_default())
        }
    };
    let place = if directory.as_os_str().is_empty() { Path::new(".") } else { directory };
    let Ok(entries) = std::fs::read_dir(place) else { return Vec::new() };
    let names = entries.flatten().map(|entry| entry.file_name());
    let wanted = |name: &std::ffi::OsString| {
        let name = name.to_string_lossy();
        name.starts_with(&start) && (!name.starts_with('.') || start.starts_with('.'))
    };
    let mut found: Vec<PathBuf> = names.filter(wanted).map(|name| directory.join(name)).collect();
    found.sort();
    let mut shown = found.into_iter().filter(|path| is_report(path) || path.is_dir());
    shown.by_ref().take(MAX_COMPLETIONS).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn directories_and_reports_that_begin_alike_are_offered() {
        let base = tempfile::tempdir().unwrap();
        for name in ["report_a", "report_b", "other", ".hidden"] {
            std::fs::create_dir(base.path().join(name)).unwrap();
        }
        std::fs::write(base.path().join("report.pop"), "").unwrap();
        std::fs::write(base.path().join("report.txt"), "").unwrap();
        let offered = |typed: &str| {
            let found = beginning_with(&format!("{}/{typed}", base.path().display()));
            let name = |path: &PathBuf| path.file_name().unwrap().to_string_lossy().into_owned();
            found.iter().map(name).collect::<Vec<_>>()
        };
        assert_eq!(offered("rep"), ["report.pop", "report_a", "report_b"]);
        assert_eq!(offered("").len(), 4);
        assert_eq!(offered(".h"), [".hidden"]);
        assert!(offered("nothing").is_empty() && beginning_with("/no/such/place/x").is_empty());
    }
}
