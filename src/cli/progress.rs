//! Progress on stderr: a bar on a terminal, a line per percent for a parent process that asks.

use indicatif::{ProgressBar, ProgressStyle};
use serde::Serialize;
use std::io::{IsTerminal, Write};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// Environment variable that asks for machine-readable progress: `progress 42` lines on stderr.
pub(super) const LINES_VARIABLE: &str = "TILESCOPE_PROGRESS";

/// Least time between two lines with what was found.
const FOUND_PERIOD: Duration = Duration::from_millis(250);

/// What is found is told for at most one part in so many of the time.
const FOUND_SHARE: u32 = 20;

/// Shows how far a job is, until it is dropped.
pub(super) enum ProgressReporter {
    /// A bar.
    Bar(ProgressBar),
    /// One line per whole percent: the last one that was written.
    Lines(AtomicU64),
    /// Nothing: stderr is a file or a pipe.
    Silent,
}

impl ProgressReporter {
    /// The way that suits stderr; `job` says what is done: "simulating".
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

    /// Says that `share` of the job is done.
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

/// Tells a parent process that asks for lines what a search has found so far: `found {…}` on stderr,
/// the JSON that it prints in the end.
pub(super) struct FoundReporter {
    /// Not before this; nothing where no parent asks.
    next: Mutex<Option<Instant>>,
}

impl FoundReporter {
    /// Whoever asks for lines of progress is told.
    pub(super) fn new() -> Self {
        let is_asked = std::env::var_os(LINES_VARIABLE).is_some();
        Self { next: Mutex::new(if is_asked { Some(Instant::now()) } else { None }) }
    }

    /// Says what was found, unless that was said just now.
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
