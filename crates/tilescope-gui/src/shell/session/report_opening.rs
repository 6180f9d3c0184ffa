//! Reports being opened.

use crate::model::message::StatusMessage;
use crate::model::navigation::ReportLink;
use crate::model::open_report::OpenReport;
use crate::shell::report_choice::ReportChoice;
use crate::widgets::background_task::{BackgroundTask, PendingStartError};
use egui::Context;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tilescope_analysis::series::find_reports;
use tilescope_report::ReportError;

type PendingReport = BackgroundTask<Result<ReadPath, ReportError>>;
type PendingComparison = BackgroundTask<Result<(OpenReport, OpenReport), ReportError>>;

/// The contents of a path.
enum ReadPath {
    Report(Box<OpenReport>),
    /// A directory without a report, but with several further below.
    Folder,
}

impl ReadPath {
    fn read(path: &Path, watch: &OpeningWatch, context: &Context) -> Result<Self, ReportError> {
        match watch.read(path, context) {
            Ok(report) => Ok(Self::Report(Box::new(report))),
            Err(ReportError::NoReportInDirectory { .. })
                if find_reports(path, true).is_ok_and(|found| found.len() > 1) =>
            {
                Ok(Self::Folder)
            }
            Err(error) => Err(error),
        }
    }
}

/// The result of opening a path.
pub(crate) enum OpeningOutcome {
    Opened(Box<OpenedReports>),
    /// A directory of several reports; the user has to choose one.
    Several(ReportChoice),
    /// A directory with reports further below.
    Folder(PathBuf),
    Failed(StatusMessage),
}

/// The report being read, or the two of a comparison, and the place to go to afterwards. A later
/// request replaces an earlier one.
#[derive(Default)]
pub(crate) struct ReportOpening {
    one: Option<(PathBuf, PendingReport)>,
    /// The path of the source, and both pending reports.
    two: Option<(PathBuf, PendingComparison)>,
    /// The link to follow once its report is open.
    link: Option<ReportLink>,
    watch: OpeningWatch,
}

/// The state shared by the opening thread and the window.
#[derive(Clone, Default)]
struct OpeningWatch {
    /// A description of the current step.
    step: Arc<Mutex<String>>,
    cancel: Arc<AtomicBool>,
}

impl OpeningWatch {
    fn read(&self, path: &Path, context: &Context) -> Result<OpenReport, ReportError> {
        let mut tell = |step: &str| {
            step.clone_into(&mut self.step.lock().unwrap_or_else(PoisonError::into_inner));
            context.request_repaint();
        };
        OpenReport::read_watched(path, &mut tell, &self.cancel)
    }
}

/// The reports that were opened.
pub(crate) struct OpenedReports {
    pub report: OpenReport,
    /// The report to compare with, if any.
    pub target: Option<OpenReport>,
    /// The link that led to the report.
    pub link: Option<ReportLink>,
}

impl ReportOpening {
    /// Starts to read a report.
    ///
    /// # Errors
    /// Returns an error if no thread can be started.
    pub(super) fn start(
        &mut self,
        context: &Context,
        path: PathBuf,
    ) -> Result<(), PendingStartError> {
        let asked = path.clone();
        let watch = self.restart_watch();
        let painted = context.clone();
        let pending = BackgroundTask::start("open", context, move || {
            ReadPath::read(&asked, &watch, &painted)
        })?;
        self.one = Some((path, pending));
        Ok(())
    }

    /// Starts to read two reports for a comparison.
    ///
    /// # Errors
    /// Returns an error if no thread can be started.
    pub(super) fn start_two(
        &mut self,
        context: &Context,
        source: PathBuf,
        target: PathBuf,
    ) -> Result<(), PendingStartError> {
        let path = source.clone();
        let watch = self.restart_watch();
        let painted = context.clone();
        let pending = BackgroundTask::start("open two", context, move || {
            Ok((watch.read(&source, &painted)?, watch.read(&target, &painted)?))
        })?;
        self.two = Some((path, pending));
        Ok(())
    }

    /// Cancels the current read and creates the shared state of the next one.
    fn restart_watch(&mut self) -> OpeningWatch {
        self.watch.cancel.store(true, Ordering::Relaxed);
        self.watch = OpeningWatch::default();
        self.watch.clone()
    }

    /// A description of the current step; empty while the disk is read.
    pub(crate) fn step(&self) -> String {
        self.watch.step.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Sets the link to follow once the report is open, or clears it.
    pub(super) fn follow_later(&mut self, link: Option<ReportLink>) {
        self.link = link;
    }

    /// Returns the report if it was read since the last call, or the error.
    pub(super) fn poll(&mut self) -> Option<OpeningOutcome> {
        self.poll_one().or_else(|| self.poll_two())
    }

    fn poll_one(&mut self) -> Option<OpeningOutcome> {
        let read = self.one.as_ref().and_then(|(_, pending)| pending.poll())?;
        let (path, _) = self.one.take()?;
        Some(match read {
            Ok(Ok(ReadPath::Report(report))) => {
                let link = self.link.take();
                let opened = OpenedReports { report: *report, target: None, link };
                OpeningOutcome::Opened(Box::new(opened))
            }
            Ok(Ok(ReadPath::Folder)) => OpeningOutcome::Folder(path),
            Ok(Err(ReportError::SeveralReports { names, path })) => {
                OpeningOutcome::Several(ReportChoice { directory: path, names })
            }
            Ok(Err(error)) => OpeningOutcome::Failed(StatusMessage::error(error.to_string())),
            Err(()) => OpeningOutcome::Failed(StatusMessage::error("Opening the report failed.")),
        })
    }

    fn poll_two(&mut self) -> Option<OpeningOutcome> {
        let read = self.two.as_ref().and_then(|(_, pending)| pending.poll())?;
        self.two = None;
        Some(match read {
            Ok(Ok((report, target))) => {
                let target = Some(target);
                let link = self.link.take();
                OpeningOutcome::Opened(Box::new(OpenedReports { report, target, link }))
            }
            // One outcome could not describe both the error and the other report.
            Ok(Err(error)) => OpeningOutcome::Failed(StatusMessage::error(error.to_string())),
            Err(()) => OpeningOutcome::Failed(StatusMessage::error("Opening the reports failed.")),
        })
    }

    /// Cancels the opening. Connections to other machines are closed. Threads that read local files
    /// run to their end, and their results are dropped.
    pub(super) fn cancel(&mut self) {
        self.watch.cancel.store(true, Ordering::Relaxed);
        self.one = None;
        self.two = None;
    }

    /// The time since the opening began.
    pub(crate) fn elapsed(&self) -> Option<Duration> {
        let two = self.two.as_ref().map(|(_, pending)| pending.elapsed());
        self.one.as_ref().map(|(_, pending)| pending.elapsed()).or(two)
    }

    /// The path being read.
    pub(crate) fn path(&self) -> Option<&Path> {
        let two = self.two.as_ref().map(|(source, _)| source.as_path());
        self.one.as_ref().map(|(path, _)| path.as_path()).or(two)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Instant;

    /// Polls until the outcome is available, as later frames would.
    fn poll_until_done(opening: &mut ReportOpening) -> OpeningOutcome {
        let start = Instant::now();
        while start.elapsed() < Duration::from_secs(20) {
            if let Some(result) = opening.poll() {
                return result;
            }
            std::thread::sleep(Duration::from_millis(2));
        }
        panic!("reading never ends");
    }

    #[test]
    fn a_failure_to_open_is_reported_once() {
        let mut opening = ReportOpening::default();
        opening.start(&Context::default(), PathBuf::from("/nowhere/at/all")).unwrap();
        assert_eq!(opening.path(), Some(Path::new("/nowhere/at/all")));
        let OpeningOutcome::Failed(message) = poll_until_done(&mut opening) else {
            panic!("there is no report")
        };
        assert!(message.text.contains("/nowhere/at/all"), "{}", message.text);
        assert!(opening.path().is_none() && opening.poll().is_none());
    }

    #[test]
    fn results_are_dropped_after_cancelling() {
        let mut opening = ReportOpening::default();
        let nowhere = || PathBuf::from("/nowhere/at/all");
        opening.start_two(&Context::default(), nowhere(), nowhere()).unwrap();
        assert!(opening.elapsed().is_some());
        opening.cancel();
        assert!(opening.elapsed().is_none() && opening.poll().is_none());
    }
}
