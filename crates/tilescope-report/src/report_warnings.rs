//! Warnings about a report, for users.

use std::sync::{Mutex, MutexGuard, PoisonError};

/// Locks a mutex even if a thread panicked with it: all guarded data here are replaced whole and
/// remain sound.
pub(super) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The cause of a warning.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum WarningReason {
    /// The file is damaged, incomplete or of another version.
    File,
    /// A limit of this reader; the file is sound.
    Reader,
}

/// Warnings about a file, without duplicates.
#[derive(Default)]
pub(super) struct ReportWarnings(Mutex<Vec<(WarningReason, String)>>);

impl ReportWarnings {
    const MOST: usize = 100;

    /// Adds a warning about a defect of the file.
    pub(super) fn add(&self, text: impl Into<String>) {
        self.insert(WarningReason::File, text.into());
    }

    /// Adds a warning about a sound file that this reader does not show completely.
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

    /// The warnings about defects of the file.
    pub(super) fn of_the_file(&self) -> Vec<String> {
        let known = lock(&self.0);
        let of_file = known.iter().filter(|(reason, _)| *reason == WarningReason::File);
        of_file.map(|(_, text)| text.clone()).collect()
    }
}
