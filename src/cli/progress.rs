//! Progress on stderr: a bar on a terminal, a line per percent for a parent process that asks.

use indicatif::{ProgressBar, ProgressStyle};
use std::io::{IsTerminal, Write};

/// Environment variable that asks for machine-readable progress: `progress 42` lines on stderr.
pub(super) const LINES_VARIABLE: &str = "TILESCOPE_PROGRESS";

/// Shows how far a job is.
pub(super) enum ProgressReporter {
    /// A bar.
    Bar(ProgressBar),
    /// One line per whole percent.
    Lines(Option<u64>),
    /// Nothing: stderr is a file or a pipe.
    Silent,
}

impl ProgressReporter {
    /// The way that suits stderr; `job` says what is done: "simulating".
    pub(super) fn new(job: &'static str) -> Self {
        if std::env::var_os(LINES_VARIABLE).is_some() {
            return Self::Lines(None);
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
    pub(super) fn at(&mut self, share: f64) {
        let percent = (share * 100.0) as u64;
        match self {
            Self::Bar(bar) => bar.set_position(percent),
            Self::Lines(last) => {
                if *last != Some(percent) {
                    *last = Some(percent);
                    let _ = writeln!(std::io::stderr(), "progress {percent}");
                }
            }
            Self::Silent => {}
        }
    }

    /// Removes the bar.
    pub(super) fn finish(&self) {
        if let Self::Bar(bar) = self {
            bar.finish_and_clear();
        }
    }
}
