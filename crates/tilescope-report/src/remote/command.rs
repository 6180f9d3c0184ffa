//! A command of tilescope on the machine of a report, for what is worked out there and nowhere else.
//!
//! It is run by the user's own `ssh` as the user's own command: what `serve` refuses stays refused.

// Everything here reads bytes that anybody may have sent.
#![cfg_attr(not(test), warn(clippy::indexing_slicing))]

use super::address::RemoteAddress;
use super::messages::MAGIC;
use super::ssh::{self, RemoteSettings, SshProcess};
use crate::error::ReportError;
use std::io::{self, Read, Write};
use std::process::ChildStdout;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, sync_channel};
use std::time::Duration;

/// Bytes of output that are read at a time, and pieces of it that may wait.
const PIECE_BYTES: usize = 64 << 10;
const PIECES_WAITING: usize = 16;
/// How often it is looked whether the user has had enough.
const LOOK: Duration = Duration::from_millis(50);
/// Bytes of what a command says that are told: a question of SQL is marked where it is wrong.
const MAX_SAID: usize = 16 << 10;

/// Why a command on another machine ended without its result.
#[derive(Debug, thiserror::Error)]
pub enum RemoteCommandError {
    /// The machine cannot be reached, or it has no tilescope.
    #[error(transparent)]
    Unreachable(#[from] ReportError),
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
    let SshProcess { mut child, stdin, stdout, stderr } = ssh::start(address, &settings, words)?;
    let written = std::thread::scope(|scope| {
        // A command that ends early reads no more: what it says is what counts.
        scope.spawn(move || {
            let mut stdin = stdin;
            let _ = stdin.write_all(input.as_bytes());
        });
        let said = scope.spawn(move || ssh::last_words(stderr, MAX_SAID));
        let (sender, pieces) = sync_channel(PIECES_WAITING);
        scope.spawn(move || read_pieces(stdout, |piece| sender.send(piece).is_ok()));
        let written = write_pieces(address, &pieces, output, cancel);
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
        Some(code @ (1..=125 | 128..=254)) => Err(RemoteCommandError::Ended { code, said }),
        code => Err(address.failed(ssh::explain_start(address, &settings, code, &said)).into()),
    }
}

/// Reads until the end, or until nobody takes what is read.
fn read_pieces(mut output: ChildStdout, take: impl Fn(Vec<u8>) -> bool) {
    let mut piece = vec![0; PIECE_BYTES];
    while let Ok(count @ 1..) = output.read(&mut piece) {
        if !take(piece.get(..count).unwrap_or_default().to_vec()) {
            return;
        }
    }
}

fn write_pieces(
    address: &RemoteAddress,
    pieces: &Receiver<Vec<u8>>,
    output: &mut dyn Write,
    cancel: &AtomicBool,
) -> Result<(), RemoteCommandError> {
    let mut is_first = true;
    loop {
        match pieces.recv_timeout(LOOK) {
            Ok(piece) if std::mem::take(&mut is_first) && piece.starts_with(MAGIC) => {
                let problem = "the key lets nothing but `serve` run there (authorized_keys)";
                return Err(address.failed(problem.to_owned()).into());
            }
            Ok(piece) => output.write_all(&piece)?,
            Err(RecvTimeoutError::Disconnected) => return Ok(()),
            Err(RecvTimeoutError::Timeout) => {}
        }
        if cancel.load(Ordering::Relaxed) {
            return Err(RemoteCommandError::Cancelled);
        }
    }
}
