//! Runs a command of tilescope on the machine of a report, through the user's own `ssh`. Only its
//! answer is copied, not the report.

// All code here reads bytes from untrusted machines.
#![cfg_attr(not(test), warn(clippy::indexing_slicing))]

use super::address::RemoteAddress;
use super::far_shell::{LOOK, piece_channel, read_pieces};
use super::ssh::{self, RemoteSettings, SshProcess};
use crate::error::ReportError;
use std::io::{self, Write};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError};

/// Bytes of a command's messages that are kept: an SQL error marks its place in the query.
const MAX_SAID: usize = 16 << 10;

/// The reason why a command on another machine ended without a result.
#[derive(Debug, thiserror::Error)]
pub enum RemoteCommandError {
    /// The machine cannot be reached.
    #[error(transparent)]
    Unreachable(#[from] ReportError),
    /// It has no tilescope.
    #[error(transparent)]
    NoProgram(ReportError),
    /// The command ended with this exit code, after these messages.
    #[error("it ended with exit code {code}: {said}")]
    Ended { code: i32, said: String },
    /// Its output could not be written here.
    #[error(transparent)]
    Output(#[from] io::Error),
    /// The user cancelled.
    #[error("cancelled")]
    Cancelled,
}

/// Runs `tilescope` with these arguments on the machine of a report, with `input` as its input, and
/// writes its output to `output`. Returns its other messages, warnings and hints. Setting `cancel`
/// aborts it.
///
/// # Errors
/// See [`RemoteCommandError`].
pub fn run_there(
    address: &RemoteAddress,
    words: &[&str],
    input: &str,
    output: &mut dyn Write,
    cancel: &AtomicBool,
) -> Result<String, RemoteCommandError> {
    let settings = RemoteSettings::current();
    let line = ssh::command_line(address, &settings, words)?;
    let SshProcess { mut child, stdin, stdout, stderr } = ssh::start(address, &settings, &line)?;
    let written = std::thread::scope(|scope| {
        // A command that ends early reads no more; its messages give the reason.
        scope.spawn(move || {
            let mut stdin = stdin;
            let _ = stdin.write_all(input.as_bytes());
        });
        let said = scope.spawn(move || ssh::last_words(stderr, MAX_SAID));
        let (sender, pieces) = piece_channel();
        scope.spawn(move || read_pieces(stdout, &sender));
        let written = write_pieces(&pieces, output, cancel);
        drop(pieces);
        if written.is_err() {
            // It may have exited already.
            let _ = child.kill();
        }
        let said = said.join().unwrap_or_default();
        written.map(|()| said)
    });
    let status = child.wait().map_err(|error| address.failed(error.to_string()))?;
    let said = written?;
    match status.code() {
        Some(0) => Ok(said),
        Some(code @ (1..126 | 128..255)) => Err(RemoteCommandError::Ended { code, said }),
        code => {
            let program = settings.program();
            let problem = ssh::explanation(&address.host(), Some(&program), code, &said);
            let error = address.failed(problem);
            Err(match code {
                Some(127 | 126) => RemoteCommandError::NoProgram(error),
                _ => RemoteCommandError::Unreachable(error),
            })
        }
    }
}

fn write_pieces(
    pieces: &Receiver<Vec<u8>>,
    output: &mut dyn Write,
    cancel: &AtomicBool,
) -> Result<(), RemoteCommandError> {
    loop {
        match pieces.recv_timeout(LOOK) {
            Ok(piece) => output.write_all(&piece)?,
            Err(RecvTimeoutError::Disconnected) => return Ok(()),
            Err(RecvTimeoutError::Timeout) => {}
        }
        if cancel.load(Ordering::Relaxed) {
            return Err(RemoteCommandError::Cancelled);
        }
    }
}
