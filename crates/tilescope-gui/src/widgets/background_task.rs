//! Work on a separate thread that yields one result: opening, saving, the system's dialogs.

use std::io;
use std::sync::mpsc::{Receiver, RecvTimeoutError, TryRecvError, channel};
use std::time::{Duration, Instant};

/// An error if the system cannot start another thread.
#[derive(Debug, thiserror::Error)]
#[error("Cannot start a thread for this: {0}")]
pub(crate) struct PendingStartError(io::Error);

/// Work on a separate thread that yields a result later.
pub(crate) struct BackgroundTask<T> {
    since: Instant,
    receiver: Receiver<T>,
}

impl<T: Send + 'static> BackgroundTask<T> {
    /// Starts `work`. The window is repainted when it is done.
    pub(crate) fn start(
        name: &str,
        context: &egui::Context,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Result<Self, PendingStartError> {
        let (sender, receiver) = channel();
        let context = context.clone();
        std::thread::Builder::new()
            .name(name.to_owned())
            .spawn(move || {
                // The receiver is gone if the user cancelled.
                let _ = sender.send(work());
                context.request_repaint();
            })
            .map_err(PendingStartError)?;
        Ok(Self { since: Instant::now(), receiver })
    }

    /// Returns the result once; `Err` if the worker panicked.
    pub(crate) fn poll(&self) -> Option<Result<T, ()>> {
        match self.receiver.try_recv() {
            Ok(result) => Some(Ok(result)),
            Err(TryRecvError::Empty) => None,
            Err(TryRecvError::Disconnected) => Some(Err(())),
        }
    }

    /// Waits this long for the result, if it matters more than the next frame.
    pub(crate) fn wait(&self, time: Duration) -> Option<Result<T, ()>> {
        match self.receiver.recv_timeout(time) {
            Ok(result) => Some(Ok(result)),
            Err(RecvTimeoutError::Timeout) => None,
            Err(RecvTimeoutError::Disconnected) => Some(Err(())),
        }
    }

    /// The time since the start of the work.
    pub(crate) fn elapsed(&self) -> Duration {
        self.since.elapsed()
    }
}
