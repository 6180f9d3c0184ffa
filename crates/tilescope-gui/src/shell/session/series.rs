//! Series of reports, and the baseline for newly opened reports.

use super::AppSession;
use crate::model::message::StatusMessage;
use egui::Context;
use std::path::{Path, PathBuf};
use tilescope_report::{REPORT_FILE, holds_report};

impl AppSession {
    /// The baseline with which newly opened reports are compared.
    pub fn pinned_baseline(&self) -> Option<&Path> {
        self.baseline.as_deref()
    }

    /// Sets or clears the baseline for reports opened from now on.
    pub(super) fn pin_baseline(&mut self, path: Option<PathBuf>) {
        let words = match &path {
            Some(path) => format!(
                "{} is the baseline: reports opened from now on are compared with it.",
                run_name(path)
            ),
            None => "Reports opened from now on are not compared.".to_owned(),
        };
        self.baseline = path.map(|path| report_file(&path));
        self.messages.push(StatusMessage::done(words));
    }

    /// The baseline for a report, unless the report is the baseline itself.
    pub(crate) fn baseline_for(&self, path: &Path) -> Option<PathBuf> {
        let baseline = self.baseline.as_ref()?;
        if path.is_dir() && !holds_report(path) {
            // A directory of several reports is shown as a series.
            return None;
        }
        if *baseline != report_file(path) { Some(baseline.clone()) } else { None }
    }

    /// Shows a series of reports: those in a directory, or several given ones.
    pub(super) fn show_series(&mut self, context: &Context, paths: Vec<PathBuf>) {
        if !paths.is_empty() {
            self.dialogs.show_series(paths).read_again(context);
        }
    }

    /// The reports of all tabs without duplicates, in order. The source of a comparison precedes
    /// its target.
    pub(crate) fn open_reports(&self) -> Vec<PathBuf> {
        let mut paths: Vec<PathBuf> = Vec::new();
        for page in self.workspace.tabs() {
            let (source, target) = page.paths();
            for path in [Some(source), target].into_iter().flatten() {
                if !paths.contains(&path) {
                    paths.push(path);
                }
            }
        }
        paths
    }
}

/// The absolute path of the file of a report given by its file or directory.
fn report_file(path: &Path) -> PathBuf {
    let path = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
    let inside = path.join(REPORT_FILE);
    if inside.is_file() { inside } else { path }
}

/// The name of a report's run.
fn run_name(path: &Path) -> String {
    let named = match path.file_name() {
        Some(name) if name == REPORT_FILE => path.parent().and_then(Path::file_name).or(Some(name)),
        name => name,
    };
    named.unwrap_or(path.as_os_str()).to_string_lossy().into_owned()
}
