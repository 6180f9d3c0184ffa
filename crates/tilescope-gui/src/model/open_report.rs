//! An open report.

use crate::model::navigation::notes_name;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use tilescope_analysis::imported_model::imported_model;
use tilescope_report::remote::{absolute_path, is_remote};
use tilescope_report::{ProgramOutcome, Report, ReportError, ReportOrigin, Target, TargetKind};

/// A report and the data that every view needs about it.
#[derive(Clone)]
pub struct OpenReport {
    /// The path as the user gave it.
    pub path: PathBuf,
    /// The report itself.
    pub report: Arc<Report>,
    /// The machine that the report is for.
    pub target: Arc<Target>,
    /// The outcome of the program.
    pub outcome: ProgramOutcome,
    /// A warning about figures that depend on unmodelled operators of an imported model, if any.
    pub unmodelled: Option<String>,
    /// The text of the bookmark file beside a report on another machine, if there is one, or the
    /// error from reading it.
    pub(crate) notes_there: Result<Option<String>, String>,
}

impl OpenReport {
    /// Opens a report and reads the data that is shown immediately.
    pub fn read(path: &Path) -> Result<Self, ReportError> {
        Self::read_watched(path, &mut |_| {}, &AtomicBool::new(false))
    }

    /// Opens a report like [`Self::read`]. `progress` receives the state of slow steps, and
    /// `cancel` ends them.
    pub(crate) fn read_watched(
        path: &Path,
        progress: &mut dyn FnMut(&str),
        cancel: &AtomicBool,
    ) -> Result<Self, ReportError> {
        Self::of(path.to_owned(), Report::open_watched(path, progress, cancel)?)
    }

    /// Wraps a report that was opened under a path, and reads the data that is shown immediately.
    ///
    /// # Errors
    /// Returns an error if parts of the file cannot be read.
    pub fn of(path: PathBuf, report: Report) -> Result<Self, ReportError> {
        let target = report.target()?;
        let outcome = report.outcome()?;
        let unmodelled = imported_model(&report)?.and_then(|model| model.unmodelled_words());
        let notes_there = if is_remote(report.path()) {
            report.sidecar_text(&notes_name(report.path()).to_string_lossy())
        } else {
            Ok(None)
        };
        let notes_there = notes_there.map_err(|error| error.to_string());
        let report = Arc::new(report);
        Ok(Self { path, report, target, outcome, unmodelled, notes_there })
    }

    /// The machine and, unless the program was executed, its outcome: `4 IPUs · Mk2 model`.
    pub(crate) fn machine(&self) -> String {
        let target = &self.target;
        let ipus = match target.num_ipus {
            0 => "IPUs unknown".to_owned(),
            1 => "1 IPU".to_owned(),
            count => format!("{count} IPUs"),
        };
        let architecture =
            if target.architecture.is_empty() { "unknown" } else { &target.architecture };
        let model = if target.kind == TargetKind::IpuModel { " model" } else { "" };
        let state = match self.outcome {
            ProgramOutcome::Executed => "",
            ProgramOutcome::CompiledOnly => " · compiled only",
            ProgramOutcome::OutOfMemory { .. } => " · out of memory",
        };
        let changed = if target.is_changed() { " changed" } else { "" };
        let calibrated = if target.is_calibrated() { " calibrated" } else { "" };
        match self.report.origin() {
            ReportOrigin::Foreign if target.architecture.is_empty() => format!("{ipus}{state}"),
            _ => format!("{ipus} · {architecture}{model}{changed}{calibrated}{state}"),
        }
    }

    /// The absolute path, independent of the working directory of a window.
    pub(crate) fn absolute_path(&self) -> PathBuf {
        absolute_path(&self.path)
    }

    /// A short name: the name of the directory, or of the file if it is not called `profile.pop`.
    pub fn name(&self) -> String {
        let path = self.absolute_path();
        let file = path.file_name().map(|name| name.to_string_lossy().into_owned());
        match file {
            Some(name) if name != tilescope_report::REPORT_FILE => name,
            _ => path
                .parent()
                .and_then(Path::file_name)
                .map_or_else(|| "report".to_owned(), |name| name.to_string_lossy().into_owned()),
        }
    }
}
