//! A command of tilescope on the machine of a report, run by the user's own `ssh`: its answer is copied
//! and not the report.

// Everything here reads bytes that anybody may have sent.
#![cfg_attr(not(test), warn(clippy::indexing_slicing))]

use super::address::RemoteAddress;
use super::far_shell::{LOOK, piece_channel, read_pieces};
use super::ssh::{self, RemoteSettings, SshProcess};
use crate::error::ReportError;
use std::io::{self, Write};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError};

/// Bytes of what a command says that are told: a question of SQL is marked where it is wrong.
const MAX_SAID: usize = 16 << 10;

/// Why a command on another machine ended without its result.
#[derive(Debug, thiserror::Error)]
pub enum RemoteCommandError {
    /// The machine cannot be reached.
    #[error(transparent)]
    Unreachable(#[from] ReportError),
    /// It has no tilescope.
    #[error(transparent)]
    NoProgram(ReportError),
    /// It ended with this exit code, after it had said this.
    #[error("it ended with exit code {code}: {said}")]
    Ended { code: i32, said: String },
    /// What it wrote could not be written here.
    #[error(transparent)]
    Output(#[from] io::Error),
    /// The user had enough.
    #[error("cancelled")]
    Cancelled,
}

/// Runs `tilescope` with these words where a report is, hands it `input`, and writes what it writes
/// to `output`. Gives what it said beside that, warnings and hints. Setting `cancel` ends it.
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
        // A command that ends early reads no more: what it says is what counts.
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
            // It may have ended by itself.
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
