//! Ctrl-C, and being asked to end, while something is written: what is half done is removed first.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, LazyLock};

/// Whether the user wants the program to end.
static INTERRUPTED: LazyLock<Arc<AtomicBool>> = LazyLock::new(Arc::default);

/// From here on a first interruption is only noted, for whoever asks; a second one ends the program
/// at once.
pub(super) fn watch() {
    let note = || {
        if INTERRUPTED.swap(true, Ordering::Relaxed) {
            // As a shell has it for a program that was interrupted.
            std::process::exit(130);
        }
    };
    // Where the system gives no handler, an interruption ends the program as it always did.
    let _ = ctrlc::set_handler(note);
}

/// Whether there was an interruption.
pub(super) fn is_interrupted() -> bool {
    INTERRUPTED.load(Ordering::Relaxed)
}

/// The same for those who look by themselves.
pub(super) fn flag() -> Arc<AtomicBool> {
    INTERRUPTED.clone()
}
