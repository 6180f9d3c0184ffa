//! Shared parts of queries to this program as a child process: waiting for its end, and bounded
//! answers.

use crate::views::what_if::spec_keys::Cancelled;
use std::io::{self, Read};
use std::process::{Child, ExitStatus};
use std::sync::atomic::Ordering;
use std::time::Duration;

/// The largest accepted answer: a file that names millions of inputs is not a model.
const MAX_ANSWER_BYTES: u64 = 1 << 26;

/// The interval between checks for cancellation.
const PERIOD: Duration = Duration::from_millis(10);

/// Waits for the end of a child, or kills it once it is cancelled.
///
/// # Errors
/// Returns an error if the child cannot be queried or killed.
pub(crate) fn wait_or_kill(child: &mut Child, cancelled: &Cancelled) -> io::Result<ExitStatus> {
    loop {
        if let Some(status) = child.try_wait()? {
            return Ok(status);
        }
        if cancelled.load(Ordering::SeqCst) {
            child.kill()?;
            return child.wait();
        }
        std::thread::sleep(PERIOD);
    }
}

/// Reads all that a child writes to a pipe.
///
/// # Errors
/// Returns an error if the pipe breaks or the answer is too long.
pub(crate) fn read_answer(pipe: Option<impl Read>) -> io::Result<Vec<u8>> {
    let mut answer = Vec::new();
    let Some(mut pipe) = pipe else { return Ok(answer) };
    let length = pipe.by_ref().take(MAX_ANSWER_BYTES).read_to_end(&mut answer)?;
    // Drain the pipe anyway, so that the child can end.
    let more = io::copy(&mut pipe, &mut io::sink())?;
    if more > 0 {
        let problem = format!("the answer has {} bytes", length as u64 + more);
        return Err(io::Error::other(problem));
    }
    Ok(answer)
}
