//! Warnings about a report, for people.

use std::sync::{Mutex, MutexGuard, PoisonError};

/// Locks; what a panicking thread left behind is still sound, for all guarded data here is
/// replaced whole.
pub(super) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Warnings about a file, each of them once.
#[derive(Default)]
pub(super) struct ReportWarnings(Mutex<Vec<String>>);

impl ReportWarnings {
    const MOST: usize = 100;

    pub(super) fn add(&self, text: impl Into<String>) {
        let (text, mut known) = (text.into(), lock(&self.0));
        if known.len() < Self::MOST && !known.contains(&text) {
            known.push(text);
        }
    }

    pub(super) fn all(&self) -> Vec<String> {
        lock(&self.0).clone()
    }
}
