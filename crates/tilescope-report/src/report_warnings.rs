//! Warnings about a report, for people.

use std::sync::{Mutex, MutexGuard, PoisonError};

/// Locks; what a panicking thread left behind is still sound, for all guarded data here is
/// replaced whole.
pub(super) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Where the reason for a warning lies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum WarningReason {
    /// In the file, which is damaged, incomplete or of another version.
    File,
    /// In the limits of this reader: the file is sound.
    Reader,
}

/// Warnings about a file, each of them once.
#[derive(Default)]
pub(super) struct ReportWarnings(Mutex<Vec<(WarningReason, String)>>);

impl ReportWarnings {
    const MOST: usize = 100;

    /// Adds a warning of what is wrong with the file.
    pub(super) fn add(&self, text: impl Into<String>) {
        self.insert(WarningReason::File, text.into());
    }

    /// Adds a warning of a sound file that this reader does not show as a whole.
    pub(super) fn add_limit(&self, text: impl Into<String>) {
        self.insert(WarningReason::Reader, text.into());
    }

    fn insert(&self, reason: WarningReason, text: String) {
        let mut known = lock(&self.0);
        if known.len() < Self::MOST && known.iter().all(|(_, found)| *found != text) {
            known.push((reason, text));
        }
    }

    pub(super) fn all(&self) -> Vec<String> {
        lock(&self.0).iter().map(|(_, text)| text.clone()).collect()
    }

    /// Warnings of what is wrong with the file.
    pub(super) fn of_the_file(&self) -> Vec<String> {
        let known = lock(&self.0);
        let of_file = known.iter().filter(|(reason, _)| *reason == WarningReason::File);
        of_file.map(|(_, text)| text.clone()).collect()
    }
}
