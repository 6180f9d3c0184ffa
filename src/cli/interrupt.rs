//! Signals: unfinished and temporary files are removed before the program ends.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, LazyLock};
use tilescope_report::atomic_file::exit_without_leftovers;

/// True after the user has interrupted the program.
static INTERRUPTED: LazyLock<Arc<AtomicBool>> = LazyLock::new(Arc::default);
/// True if the running command checks the flag and ends by itself.
static IS_WATCHED: AtomicBool = AtomicBool::new(false);

/// From here on, a first interrupt only sets the flag; a second one ends the program at once.
pub(super) fn watch() {
    IS_WATCHED.store(true, Ordering::Relaxed);
}

/// True if there was an interrupt.
pub(super) fn is_interrupted() -> bool {
    INTERRUPTED.load(Ordering::Relaxed)
}

/// The flag, for code that checks it directly.
pub(super) fn flag() -> Arc<AtomicBool> {
    INTERRUPTED.clone()
}

/// Makes signals end the program without leftovers, and turns system errors into messages.
pub(super) fn end_cleanly() {
    // If the system refuses the handler, an interrupt ends the program as usual.
    let _ = ctrlc::set_handler(on_interruption);
    #[cfg(unix)]
    {
        use signal_hook::consts::{SIGABRT, SIGXFSZ};
        // Writing beyond `ulimit -f` fails like a full disk instead of ending the program.
        let _ = signal_hook::flag::register(SIGXFSZ, Arc::default());
        // Rust reports that memory is short, and aborts.
        let always = Arc::new(AtomicBool::new(true));
        let _ = signal_hook::flag::register_conditional_shutdown(SIGABRT, 1, always);
    }
}

fn on_interruption() {
    let is_first = !INTERRUPTED.swap(true, Ordering::Relaxed);
    if is_first && IS_WATCHED.load(Ordering::Relaxed) {
        return;
    }
    // The exit code of shells for an interrupted program.
    exit_without_leftovers(130);
}
