//! A POSIX shell on another machine: it runs commands, and their output is read as lines and bytes.

// All code here reads bytes from untrusted machines.
#![cfg_attr(not(test), warn(clippy::indexing_slicing))]

use super::address::RemoteAddress;
use super::ssh::{self, RemoteSettings, SshProcess};
use crate::error::ReportError;
use std::io::{Read, Write};
use std::process::{Child, ChildStdin, ChildStdout};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// Bytes of output read at a time, and the number of such pieces that may be queued.
const PIECE_BYTES: usize = 64 << 10;
const PIECES_WAITING: usize = 16;
/// Time between two checks of the cancel flag.
pub(super) const LOOK: Duration = Duration::from_millis(50);
/// The longest line of an answer. Paths have up to 4 KiB.
const MAX_LINE_BYTES: usize = 8 << 10;
/// The maximum number of bytes of greetings of login scripts that are skipped.
const MAX_NOISE_BYTES: usize = 64 << 10;
/// The maximum number of bytes of error messages of `ssh` that are kept.
const MAX_COMPLAINT: usize = 2 << 10;
/// The time in which `ssh` must exit after its pipe has ended.
const PATIENCE: Duration = Duration::from_secs(3);
/// The time for a login, during which the user may have to type a password.
const LOGIN: Duration = Duration::from_secs(180);

/// The line with which a shell begins its answers: login scripts may print before it.
const GREETING: &str = "tilescope-copy 1";

/// A shell on another machine, connected through `ssh`. Dropping it ends `ssh`.
pub(super) struct FarShell<'a> {
    address: &'a RemoteAddress,
    child: Child,
    /// `None` once the connection has ended.
    stdin: Option<ChildStdin>,
    pieces: Receiver<Vec<u8>>,
    complaint: Option<JoinHandle<String>>,
    /// Bytes that have arrived; those from `taken` on are unread.
    arrived: Vec<u8>,
    taken: usize,
    has_answered: bool,
    silence: Duration,
    cancel: &'a AtomicBool,
}

impl<'a> FarShell<'a> {
    /// Connects, and waits for the first answer of the shell. Setting `cancel` ends every wait with
    /// [`ReportError::Cancelled`].
    ///
    /// # Errors
    /// [`ReportError::Remote`], with the reason, if no shell answers.
    pub(super) fn connect(
        address: &'a RemoteAddress,
        settings: &RemoteSettings,
        cancel: &'a AtomicBool,
    ) -> Result<Self, ReportError> {
        // Login shells of any kind accept this; the input after it is for `sh`.
        let SshProcess { child, stdin, stdout, stderr } = ssh::start(address, settings, "exec sh")?;
        let (sender, pieces) = piece_channel();
        std::thread::spawn(move || read_pieces(stdout, &sender));
        let complaint = std::thread::spawn(move || ssh::last_words(stderr, MAX_COMPLAINT));
        let mut shell = Self {
            address,
            child,
            stdin: Some(stdin),
            pieces,
            complaint: Some(complaint),
            arrived: Vec::new(),
            taken: 0,
            has_answered: false,
            silence: LOGIN,
            cancel,
        };
        shell.run(&format!("LC_ALL=C; export LC_ALL; printf '\\n{GREETING}\\n'\n"))?;
        let mut noise = 0;
        loop {
            let line = shell.line()?;
            if line == GREETING {
                break;
            }
            noise += line.len() + 1;
            if noise > MAX_NOISE_BYTES {
                return Err(shell.no_shell());
            }
        }
        shell.has_answered = true;
        shell.silence = RemoteSettings::silence();
        Ok(shell)
    }

    /// Sends commands to the shell.
    pub(super) fn run(&mut self, commands: &str) -> Result<(), ReportError> {
        let Some(stdin) = &mut self.stdin else { return Err(self.lost()) };
        match stdin.write_all(commands.as_bytes()).and_then(|()| stdin.flush()) {
            Ok(()) => Ok(()),
            // The earlier output shows more.
            Err(_) => Err(self.lost()),
        }
    }

    /// The next line of the answer, without its end.
    ///
    /// # Errors
    /// The line has more than 8 KiB or is not UTF-8; also the errors of [`FarShell::bytes`].
    pub(super) fn line(&mut self) -> Result<String, ReportError> {
        loop {
            let rest = self.arrived.get(self.taken..).unwrap_or_default();
            if let Some(end) = rest.iter().position(|byte| *byte == b'\n') {
                let line = String::from_utf8_lossy(rest.get(..end).unwrap_or_default());
                let line = line.into_owned();
                self.taken += end + 1;
                return Ok(line);
            }
            if self.has_answered && rest.len() > MAX_LINE_BYTES {
                return Err(self.not_understood("an endless line"));
            }
            if rest.len() > MAX_NOISE_BYTES {
                return Err(self.no_shell());
            }
            self.wait()?;
        }
    }

    /// The next bytes of the answer: at least one, and at most `most`.
    ///
    /// # Errors
    /// The connection ends or falls silent, or [`ReportError::Cancelled`].
    pub(super) fn bytes(&mut self, most: u64) -> Result<&[u8], ReportError> {
        if self.taken == self.arrived.len() {
            self.wait()?;
        }
        let left = self.arrived.len() - self.taken;
        let count = usize::try_from(most).unwrap_or(usize::MAX).min(left);
        let start = self.taken;
        self.taken += count;
        Ok(self.arrived.get(start..start + count).unwrap_or_default())
    }

    /// Waits for the next piece of output.
    fn wait(&mut self) -> Result<(), ReportError> {
        let start = Instant::now();
        loop {
            if self.cancel.load(Ordering::Relaxed) {
                return Err(ReportError::Cancelled);
            }
            match self.pieces.recv_timeout(LOOK.min(self.silence)) {
                Ok(piece) => {
                    self.arrived.drain(..self.taken);
                    self.taken = 0;
                    self.arrived.extend(piece);
                    return Ok(());
                }
                Err(RecvTimeoutError::Disconnected) => return Err(self.lost()),
                Err(RecvTimeoutError::Timeout) if start.elapsed() >= self.silence => {
                    let host = self.address.host();
                    let seconds = self.silence.as_secs_f64();
                    let problem = format!(
                        "{host} has sent nothing for {seconds} s, so the copy was stopped; open \
                         the report again to continue it"
                    );
                    return Err(self.address.failed(problem));
                }
                Err(RecvTimeoutError::Timeout) => {}
            }
        }
    }

    /// The error of a machine that prints endlessly before a shell answers.
    fn no_shell(&self) -> ReportError {
        self.address.failed(ssh::explanation(&self.address.host(), None, None, ""))
    }

    /// The error for an answer that is not from this shell.
    pub(super) fn not_understood(&self, answer: &str) -> ReportError {
        let host = self.address.host();
        self.address.failed(format!("{host} sent an unexpected answer: {answer}"))
    }

    /// The error of a lost connection.
    fn lost(&mut self) -> ReportError {
        let code = self.exit_code();
        let complaint = self.complaint.take().and_then(|reader| reader.join().ok());
        let complaint = complaint.unwrap_or_default();
        let host = self.address.host();
        if !self.has_answered {
            return self.address.failed(ssh::explanation(&host, None, code, &complaint));
        }
        let problem = format!(
            "the connection to {host} was lost; open the report again to continue the copy"
        );
        let complaint = complaint.trim();
        self.address.failed(if complaint.is_empty() {
            problem
        } else {
            format!("{problem}; ssh says: {complaint}")
        })
    }
}

impl FarShell<'_> {
    /// The exit code of `ssh` after its pipe has ended; `None` if it does not exit by itself.
    fn exit_code(&mut self) -> Option<i32> {
        self.stdin = None;
        let start = Instant::now();
        while start.elapsed() < PATIENCE {
            if let Ok(Some(status)) = self.child.try_wait() {
                return status.code();
            }
            std::thread::sleep(Duration::from_millis(10));
        }
        let _ = self.child.kill();
        None
    }
}

impl Drop for FarShell<'_> {
    fn drop(&mut self) {
        // It may have exited already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Passes on pieces of a stream until it ends or the receiver is gone.
pub(super) fn read_pieces(mut output: ChildStdout, sender: &SyncSender<Vec<u8>>) {
    let mut piece = vec![0; PIECE_BYTES];
    while let Ok(count @ 1..) = output.read(&mut piece) {
        if sender.send(piece.get(..count).unwrap_or_default().to_vec()).is_err() {
            return;
        }
    }
}

/// A channel for the pieces of a stream.
pub(super) fn piece_channel() -> (SyncSender<Vec<u8>>, Receiver<Vec<u8>>) {
    sync_channel(PIECES_WAITING)
}
