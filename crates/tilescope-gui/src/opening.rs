//! Opening a report on a thread, and asking for a path in the system's dialog on another.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, TryRecvError, channel};
use std::time::{Duration, Instant};
use tilescope_report::{ProgramOutcome, Report, ReportError, Target};

/// A report and what every view needs to know of it.
#[derive(Clone)]
pub struct OpenReport {
    /// As the user named it.
    pub path: PathBuf,
    pub report: Arc<Report>,
    pub target: Arc<Target>,
    /// ProgramOutcome of the program.
    pub outcome: ProgramOutcome,
}

impl OpenReport {
    /// Opens a report, and reads what is shown of it at once.
    pub fn read(path: &Path) -> Result<Self, ReportError> {
        let report = Report::open(path)?;
        let target = report.target()?;
        let outcome = report.outcome()?;
        Ok(Self { path: path.to_owned(), report: Arc::new(report), target, outcome })
    }

    /// Where it is, whichever directory a window is started in.
    pub(crate) fn absolute_path(&self) -> PathBuf {
        std::path::absolute(&self.path).unwrap_or_else(|_| self.path.clone())
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

/// The system has no thread for work beside the window.
#[derive(Debug, thiserror::Error)]
#[error("No thread for this: {0}")]
pub(crate) struct PendingStartError(io::Error);

/// Work on a thread of its own, with a result some time.
pub struct BackgroundTask<T> {
    since: Instant,
    receiver: Receiver<T>,
}

impl<T: Send + 'static> BackgroundTask<T> {
    /// Starts `work`; the window is painted again when it is done.
    pub(crate) fn start(
        name: &str,
        context: &egui::Context,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Result<Self, PendingStartError> {
        let (sender, receiver) = channel();
        let context = context.clone();
        std::thread::Builder::new()
            .name(name.to_owned())
            .spawn(move || {
                // Nobody listens any more if the user was faster.
                let _ = sender.send(work());
                context.request_repaint();
            })
            .map_err(PendingStartError)?;
        Ok(Self { since: Instant::now(), receiver })
    }

    /// The result, once; `Err` if the worker panicked.
    pub(crate) fn poll(&self) -> Option<Result<T, ()>> {
        match self.receiver.try_recv() {
            Ok(result) => Some(Ok(result)),
            Err(TryRecvError::Empty) => None,
            Err(TryRecvError::Disconnected) => Some(Err(())),
        }
    }

    /// Waits so long for the result, where that is more important than the next frame.
    pub(crate) fn wait(&self, time: Duration) -> Option<Result<T, ()>> {
        match self.receiver.recv_timeout(time) {
            Ok(result) => Some(Ok(result)),
            Err(RecvTimeoutError::Timeout) => None,
            Err(RecvTimeoutError::Disconnected) => Some(Err(())),
        }
    }

    /// For how long it has been at work.
    pub(crate) fn elapsed(&self) -> Duration {
        self.since.elapsed()
    }
}

/// A report that comes with the program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SampleReport {
    pub name: String,
    pub path: PathBuf,
}

/// The reports in `sample_reports` beside the executable, or where it was built.
pub(crate) fn demos() -> Vec<SampleReport> {
    let beside = std::env::current_exe().ok().and_then(|exe| exe.parent().map(Path::to_owned));
    let places = beside
        .into_iter()
        .flat_map(|directory| {
            [directory.join("sample_reports"), directory.join("../share/tilescope/sample_reports")]
        })
        .chain([PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../../sample_reports"))]);
    places.map(|place| demos_in(&place)).find(|demos| !demos.is_empty()).unwrap_or_default()
}

fn demos_in(place: &Path) -> Vec<SampleReport> {
    let Ok(entries) = std::fs::read_dir(place) else { return Vec::new() };
    let mut demos: Vec<SampleReport> = entries
        .flatten()
        .filter(|entry| entry.path().join(tilescope_report::REPORT_FILE).is_file())
        .map(|entry| SampleReport {
            name: entry.file_name().to_string_lossy().into_owned(),
            path: entry.path(),
        })
        .collect();
    demos.sort_by(|a, b| a.name.cmp(&b.name));
    demos
}

/// Where simulated reports go.
pub(crate) fn simulated_report_directory(spec: &str) -> PathBuf {
    data_directory().join("simulated").join(spec)
}

/// The program's part of the user's data directory, or else of the temporary one.
pub(crate) fn data_directory() -> PathBuf {
    let set = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty());
    let base = set("XDG_DATA_HOME")
        .map(PathBuf::from)
        .filter(|path| path.is_absolute())
        .or_else(|| set("HOME").map(|home| PathBuf::from(home).join(".local/share")))
        .unwrap_or_else(std::env::temp_dir);
    base.join("tilescope")
}
