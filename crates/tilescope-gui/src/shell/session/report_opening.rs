//! Reports that are being opened.

use crate::model::message::StatusMessage;
use crate::model::navigation::ReportLink;
use crate::model::open_report::OpenReport;
use crate::shell::report_choice::ReportChoice;
use crate::widgets::background_task::{BackgroundTask, PendingStartError};
use egui::Context;
use std::path::{Path, PathBuf};
use std::time::Duration;
use tilescope_report::ReportError;

type PendingReport = BackgroundTask<Result<OpenReport, ReportError>>;
type PendingComparison = BackgroundTask<Result<(OpenReport, OpenReport), ReportError>>;

/// A report that is being read, two that are to be compared, and where to go then. Of what is asked
/// for while something is being read, the latest counts.
#[derive(Default)]
pub(crate) struct ReportOpening {
    one: Option<(PathBuf, PendingReport)>,
    /// The path of the source, and both reports.
    two: Option<(PathBuf, PendingComparison)>,
    /// The link that is followed once its report is open.
    link: Option<ReportLink>,
}

/// What was opened.
pub(crate) struct OpenedReports {
    pub report: OpenReport,
    /// The report it is to be compared with.
    pub target: Option<OpenReport>,
    /// The link that led there.
    pub link: Option<ReportLink>,
}

/// Why nothing was opened.
pub(crate) enum OpeningProblem {
    /// In words.
    Told(StatusMessage),
    /// The directory holds several reports.
    Several(ReportChoice),
}

impl OpeningProblem {
    fn told(words: impl Into<String>) -> Self {
        Self::Told(StatusMessage::error(words.into()))
    }
}

impl From<ReportError> for OpeningProblem {
    fn from(error: ReportError) -> Self {
        match error {
            ReportError::SeveralReports { names, path } => {
                Self::Several(ReportChoice { directory: path, names })
            }
            error => Self::told(error.to_string()),
        }
    }
}

impl ReportOpening {
    /// Starts to read a report.
    ///
    /// # Errors
    /// There is no thread for it.
    pub(super) fn start(
        &mut self,
        context: &Context,
        path: PathBuf,
    ) -> Result<(), PendingStartError> {
        let asked = path.clone();
        let pending = BackgroundTask::start("open", context, move || OpenReport::read(&asked))?;
        self.one = Some((path, pending));
        Ok(())
    }

    /// Starts to read two reports, to compare them.
    ///
    /// # Errors
    /// There is no thread for it.
    pub(super) fn start_two(
        &mut self,
        context: &Context,
        source: PathBuf,
        target: PathBuf,
    ) -> Result<(), PendingStartError> {
        let path = source.clone();
        let pending = BackgroundTask::start("open two", context, move || {
            Ok((OpenReport::read(&source)?, OpenReport::read(&target)?))
        })?;
        self.two = Some((path, pending));
        Ok(())
    }

    /// Has a link followed, or none, once what is being read is open.
    pub(super) fn follow_later(&mut self, link: Option<ReportLink>) {
        self.link = link;
    }

    /// What has been read since it was last asked for, or why it could not be.
    pub(super) fn poll(&mut self) -> Option<Result<OpenedReports, OpeningProblem>> {
        self.poll_one().or_else(|| self.poll_two())
    }

    fn poll_one(&mut self) -> Option<Result<OpenedReports, OpeningProblem>> {
        let read = self.one.as_ref().and_then(|(_, pending)| pending.poll())?;
        self.one = None;
        Some(match read {
            Ok(Ok(report)) => Ok(OpenedReports { report, target: None, link: self.link.take() }),
            Ok(Err(error)) => Err(error.into()),
            Err(()) => Err(OpeningProblem::told("Opening the report failed.")),
        })
    }

    fn poll_two(&mut self) -> Option<Result<OpenedReports, OpeningProblem>> {
        let read = self.two.as_ref().and_then(|(_, pending)| pending.poll())?;
        self.two = None;
        Some(match read {
            Ok(Ok((report, target))) => {
                Ok(OpenedReports { report, target: Some(target), link: self.link.take() })
            }
            // One answer would not say what to do with the other report.
            Ok(Err(error)) => Err(OpeningProblem::told(error.to_string())),
            Err(()) => Err(OpeningProblem::told("Opening the reports failed.")),
        })
    }

    /// Opens nothing. The threads go on until they are done; nobody listens any more.
    pub(super) fn cancel(&mut self) {
        self.one = None;
        self.two = None;
    }

    /// For how long something is being read.
    pub(crate) fn elapsed(&self) -> Option<Duration> {
        let two = self.two.as_ref().map(|(_, pending)| pending.elapsed());
        self.one.as_ref().map(|(_, pending)| pending.elapsed()).or(two)
    }

    /// The path that is being read.
    pub(crate) fn path(&self) -> Option<&Path> {
        let two = self.two.as_ref().map(|(source, _)| source.as_path());
        self.one.as_ref().map(|(path, _)| path.as_path()).or(two)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Instant;

    /// What comes of it, as it would in some later frame.
    fn poll_until_done(opening: &mut ReportOpening) -> Result<OpenedReports, OpeningProblem> {
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
    fn what_cannot_be_opened_is_told_once() {
        let mut opening = ReportOpening::default();
        opening.start(&Context::default(), PathBuf::from("/nowhere/at/all")).unwrap();
        assert_eq!(opening.path(), Some(Path::new("/nowhere/at/all")));
        let Err(OpeningProblem::Told(message)) = poll_until_done(&mut opening) else {
            panic!("there is no report")
        };
        assert!(message.text.contains("/nowhere/at/all"), "{}", message.text);
        assert!(opening.path().is_none() && opening.poll().is_none());
    }

    #[test]
    fn nobody_listens_after_cancelling() {
        let mut opening = ReportOpening::default();
        let nowhere = || PathBuf::from("/nowhere/at/all");
        opening.start_two(&Context::default(), nowhere(), nowhere()).unwrap();
        assert!(opening.elapsed().is_some());
        opening.cancel();
        assert!(opening.elapsed().is_none() && opening.poll().is_none());
    }
}
