//! Signals: what is half done and what is only for a while is removed before the program ends.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, LazyLock};
use tilescope_report::atomic_file::exit_without_leftovers;

/// Whether the user wants the program to end.
static INTERRUPTED: LazyLock<Arc<AtomicBool>> = LazyLock::new(Arc::default);
/// Whether somebody looks at that, and ends by itself.
static IS_WATCHED: AtomicBool = AtomicBool::new(false);

/// From here on a first interruption is only noted, for whoever asks; a second one ends the program
/// at once.
pub(super) fn watch() {
    IS_WATCHED.store(true, Ordering::Relaxed);
}

/// Whether there was an interruption.
pub(super) fn is_interrupted() -> bool {
    INTERRUPTED.load(Ordering::Relaxed)
}

/// The same for those who look by themselves.
pub(super) fn flag() -> Arc<AtomicBool> {
    INTERRUPTED.clone()
}

/// Has signals end the program without leftovers, and errors of the system end it in words.
pub(super) fn end_cleanly() {
    // Where the system gives no handler, an interruption ends the program as it always did.
    let _ = ctrlc::set_handler(on_interruption);
    #[cfg(unix)]
    {
        use signal_hook::consts::{SIGABRT, SIGXFSZ};
        // Writing beyond `ulimit -f` fails like a full disk, instead of ending the program.
        let _ = signal_hook::flag::register(SIGXFSZ, Arc::default());
        // Rust says in words that memory is short, and aborts.
        let always = Arc::new(AtomicBool::new(true));
        let _ = signal_hook::flag::register_conditional_shutdown(SIGABRT, 1, always);
    }
}

fn on_interruption() {
    let is_first = !INTERRUPTED.swap(true, Ordering::Relaxed);
    if is_first && IS_WATCHED.load(Ordering::Relaxed) {
        return;
    }
    // As a shell has it for a program that was interrupted.
    exit_without_leftovers(130);
}
