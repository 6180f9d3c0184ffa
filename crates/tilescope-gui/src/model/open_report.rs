//! A report that is open.

use crate::model::navigation::notes_name;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use tilescope_analysis::imported_model::imported_model;
use tilescope_report::remote::{absolute_path, is_remote};
use tilescope_report::{ProgramOutcome, Report, ReportError, ReportOrigin, Target, TargetKind};

/// A report and what every view needs to know of it.
#[derive(Clone)]
pub struct OpenReport {
    /// As the user named it.
    pub path: PathBuf,
    /// The report.
    pub report: Arc<Report>,
    /// Its machine.
    pub target: Arc<Target>,
    /// How far the program got.
    pub outcome: ProgramOutcome,
    /// What rests on operators of an imported model that are not modelled, in words, if there are
    /// any.
    pub unmodelled: Option<String>,
    /// The file of bookmarks beside a report on another machine, if there is one, or why it cannot be
    /// read.
    pub(crate) notes_there: Result<Option<String>, String>,
}

impl OpenReport {
    /// Opens a report, and reads what is shown of it at once.
    pub fn read(path: &Path) -> Result<Self, ReportError> {
        Self::read_watched(path, &mut |_| {}, &AtomicBool::new(false))
    }

    /// The same where that may take long: `progress` is told what it waits for, `cancel` ends it.
    pub(crate) fn read_watched(
        path: &Path,
        progress: &mut dyn FnMut(&str),
        cancel: &AtomicBool,
    ) -> Result<Self, ReportError> {
        Self::of(path.to_owned(), Report::open_watched(path, progress, cancel)?)
    }

    /// A report that was opened under a path, with what is shown of it at once.
    ///
    /// # Errors
    /// Parts of the file that cannot be read.
    pub fn of(path: PathBuf, report: Report) -> Result<Self, ReportError> {
        let target = report.target()?;
        let outcome = report.outcome()?;
        let unmodelled = imported_model(&report)?.and_then(|model| model.unmodelled_words());
        let notes = || report.sidecar_text(&notes_name(report.path()).to_string_lossy());
        let notes_there = if is_remote(report.path()) { notes() } else { Ok(None) };
        let notes_there = notes_there.map_err(|error| error.to_string());
        let report = Arc::new(report);
        Ok(Self { path, report, target, outcome, unmodelled, notes_there })
    }

    /// Its machine, and how far the program got: `4 IPUs · Mk2 model`.
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

    /// Where it is, whichever directory a window is started in.
    pub(crate) fn absolute_path(&self) -> PathBuf {
        absolute_path(&self.path)
    }

    /// A short name: that of its directory, or of the file if it has a name of its own.
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
