//! Progress on stderr: a bar on a terminal, a line per percent for a parent process that requests
//! it.

use indicatif::{ProgressBar, ProgressStyle};
use serde::Serialize;
use std::io::{IsTerminal, Write};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// Environment variable that requests machine-readable progress: `progress 42` lines on stderr.
pub(super) const LINES_VARIABLE: &str = "TILESCOPE_PROGRESS";

/// The minimum time between two lines with results.
const FOUND_PERIOD: Duration = Duration::from_millis(250);

/// The factor by which the pause after a report exceeds the time that the report took.
const FOUND_SHARE: u32 = 20;

/// Shows the progress of a job, until it is dropped.
pub(super) enum ProgressReporter {
    /// A progress bar.
    Bar(ProgressBar),
    /// One line per whole percent: the last one written.
    Lines(AtomicU64),
    /// No progress: stderr is a file or a pipe.
    Silent,
}

impl ProgressReporter {
    /// The kind that suits stderr; `job` names the work: "simulating".
    pub(super) fn new(job: &'static str) -> Self {
        if std::env::var_os(LINES_VARIABLE).is_some() {
            return Self::Lines(AtomicU64::new(u64::MAX));
        }
        if !std::io::stderr().is_terminal() {
            return Self::Silent;
        }
        let style = ProgressStyle::with_template("{msg} [{bar:40}] {percent} %, {eta} left");
        let bar = ProgressBar::new(100).with_message(job);
        Self::Bar(match style {
            Ok(style) => bar.with_style(style.progress_chars("=> ")),
            Err(_) => bar,
        })
    }

    /// Shows that `share` of the job is done.
    pub(super) fn at(&self, share: f64) {
        let percent = (share * 100.0) as u64;
        match self {
            Self::Bar(bar) => bar.set_position(percent),
            Self::Lines(last) => {
                if last.swap(percent, Ordering::Relaxed) != percent {
                    let _ = writeln!(std::io::stderr(), "progress {percent}");
                }
            }
            Self::Silent => {}
        }
    }

    /// Removes the bar from the screen, as dropping does.
    pub(super) fn clear(&self) {
        if let Self::Bar(bar) = self {
            bar.finish_and_clear();
        }
    }
}

impl Drop for ProgressReporter {
    fn drop(&mut self) {
        self.clear();
    }
}

/// Reports the results of a search so far to a parent process that requests lines: `found {…}` on
/// stderr, with the same JSON as the final output.
pub(super) struct FoundReporter {
    /// The earliest time of the next report; `None` without a parent that requests it.
    next: Mutex<Option<Instant>>,
}

impl FoundReporter {
    /// Reports only if lines of progress are requested.
    pub(super) fn new() -> Self {
        let is_asked = std::env::var_os(LINES_VARIABLE).is_some();
        Self { next: Mutex::new(if is_asked { Some(Instant::now()) } else { None }) }
    }

    /// Reports the results, unless the last report was just now.
    pub(super) fn tell<T: Serialize>(&self, found: impl FnOnce() -> T) {
        let Ok(mut next) = self.next.lock() else { return };
        let began = Instant::now();
        if next.is_none_or(|next| began < next) {
            return;
        }
        if let Ok(found) = serde_json::to_value(found()) {
            let _ = writeln!(std::io::stderr(), "found {found}");
        }
        *next = Some(Instant::now() + FOUND_PERIOD.max(began.elapsed() * FOUND_SHARE));
    }
}
