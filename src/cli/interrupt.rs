//! Ctrl-C, and being asked to end: what is half done and what is only for a while is removed first.

use super::command::CliError;
use crate::cli::error::JobError;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, LazyLock, Mutex, Once, PoisonError};

/// Whether the user wants the program to end.
static INTERRUPTED: LazyLock<Arc<AtomicBool>> = LazyLock::new(Arc::default);
/// Whether somebody looks at that, and ends by itself.
static IS_WATCHED: AtomicBool = AtomicBool::new(false);
/// Directories that go with the program.
static DIRECTORIES: Mutex<Vec<PathBuf>> = Mutex::new(Vec::new());

/// From here on a first interruption is only noted, for whoever asks; a second one ends the program
/// at once.
pub(super) fn watch() {
    IS_WATCHED.store(true, Ordering::Relaxed);
    handle();
}

/// Whether there was an interruption.
pub(super) fn is_interrupted() -> bool {
    INTERRUPTED.load(Ordering::Relaxed)
}

/// The same for those who look by themselves.
pub(super) fn flag() -> Arc<AtomicBool> {
    INTERRUPTED.clone()
}

/// A directory that is gone with this, and also where an interruption ends the program.
pub(super) struct TemporaryDirectory(PathBuf);

impl TemporaryDirectory {
    /// Makes one.
    ///
    /// # Errors
    /// No place for it.
    pub(super) fn new() -> Result<Self, CliError> {
        // Held until it is in the list: an interruption in between would leave it.
        let mut directories = directories();
        handle();
        let failed = |error| JobError::Read { what: "no directory for temporary files", error };
        let made = tempfile::Builder::new().prefix("tilescope-").tempdir().map_err(failed)?.keep();
        directories.push(made.clone());
        Ok(Self(made))
    }

    pub(super) fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for TemporaryDirectory {
    fn drop(&mut self) {
        // Held until it is gone: an interruption in between would leave a part.
        let mut directories = directories();
        // What cannot be removed stays; there is nobody to tell.
        let _ = std::fs::remove_dir_all(&self.0);
        directories.retain(|directory| *directory != self.0);
    }
}

fn directories() -> std::sync::MutexGuard<'static, Vec<PathBuf>> {
    DIRECTORIES.lock().unwrap_or_else(PoisonError::into_inner)
}

fn handle() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        // Where the system gives no handler, an interruption ends the program as it always did.
        let _ = ctrlc::set_handler(on_interruption);
    });
}

fn on_interruption() {
    let is_first = !INTERRUPTED.swap(true, Ordering::Relaxed);
    if is_first && IS_WATCHED.load(Ordering::Relaxed) {
        return;
    }
    // Held to the end: nobody makes another one.
    let directories = directories();
    for directory in directories.iter() {
        let _ = std::fs::remove_dir_all(directory);
    }
    // As a shell has it for a program that was interrupted.
    std::process::exit(130);
}
