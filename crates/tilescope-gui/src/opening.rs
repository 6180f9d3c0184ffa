//! Opening a report on a thread, and asking for a path in the system's dialog on another.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, TryRecvError, channel};
use std::time::{Duration, Instant};
use tilescope_report::{Outcome, Report, Target};

/// A report and what every view needs to know of it.
#[derive(Clone)]
pub struct Opened {
    /// As the user named it.
    pub path: PathBuf,
    pub report: Arc<Report>,
    pub target: Arc<Target>,
    /// Outcome of the program.
    pub outcome: Outcome,
}

impl Opened {
    /// Opens a report, in words for people if that fails.
    pub fn read(path: &Path) -> Result<Self, String> {
        let report = Report::open(path).map_err(|error| error.to_string())?;
        let target = report.target().map_err(|error| error.to_string())?;
        let outcome = report.outcome().map_err(|error| error.to_string())?;
        Ok(Self { path: path.to_owned(), report: Arc::new(report), target, outcome })
    }

    /// Where it is, whichever directory a window is started in.
    pub(crate) fn place(&self) -> PathBuf {
        std::path::absolute(&self.path).unwrap_or_else(|_| self.path.clone())
    }

    /// A short name: that of its directory, or of the file if it has a name of its own.
    pub fn name(&self) -> String {
        let path = self.place();
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

/// Work on a thread of its own, with a result some time.
pub struct Pending<T> {
    since: Instant,
    receiver: Receiver<T>,
}

impl<T: Send + 'static> Pending<T> {
    /// Starts `work`; the window is painted again when it is done.
    pub(crate) fn start(
        name: &str,
        context: &egui::Context,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Result<Self, String> {
        let (sender, receiver) = channel();
        let context = context.clone();
        std::thread::Builder::new()
            .name(name.to_owned())
            .spawn(move || {
                // Nobody listens any more if the user was faster.
                let _ = sender.send(work());
                context.request_repaint();
            })
            .map_err(|error| format!("Cannot start a thread: {error}"))?;
        Ok(Self { since: Instant::now(), receiver })
    }

    /// The result, once; `Err` if the worker panicked.
    pub(crate) fn take(&self) -> Option<Result<T, ()>> {
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
pub struct Demo {
    pub name: String,
    pub path: PathBuf,
}

/// The reports in `sample_reports` beside the executable, or where it was built.
pub(crate) fn demos() -> Vec<Demo> {
    let beside = std::env::current_exe().ok().and_then(|exe| exe.parent().map(Path::to_owned));
    let places = beside
        .into_iter()
        .flat_map(|directory| {
            [directory.join("sample_reports"), directory.join("../share/tilescope/sample_reports")]
        })
        .chain([PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../../sample_reports"))]);
    places.map(|place| demos_in(&place)).find(|demos| !demos.is_empty()).unwrap_or_default()
}

fn demos_in(place: &Path) -> Vec<Demo> {
    let Ok(entries) = std::fs::read_dir(place) else { return Vec::new() };
    let mut demos: Vec<Demo> = entries
        .flatten()
        .filter(|entry| entry.path().join(tilescope_report::REPORT_FILE).is_file())
        .map(|entry| Demo {
            name: entry.file_name().to_string_lossy().into_owned(),
            path: entry.path(),
        })
        .collect();
    demos.sort_by(|a, b| a.name.cmp(&b.name));
    demos
}

/// Directory of simulated reports.
pub(crate) fn simulated(spec: &str) -> PathBuf {
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
