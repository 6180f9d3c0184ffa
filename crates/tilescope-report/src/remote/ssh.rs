//! The user's own `ssh` as a pipe: what it is started with, and what it means when it ends.

use super::address::RemoteAddress;
use super::messages::FrameError;
use crate::database::lock;
use crate::error::ReportError;
use std::io::{self, Read, Write};
use std::process::{Child, ChildStderr, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::{Arc, Mutex, PoisonError, RwLock};
use std::time::{Duration, Instant};

/// How `ssh` is used, for all connections of the program.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RemoteSettings {
    /// The program to run on the far side, as its shell finds it; none means the one that the
    /// environment variable `TILESCOPE_REMOTE_PROGRAM` names, or else `tilescope`.
    pub program: Option<String>,
    /// The `ssh` to run; none means the one that `TILESCOPE_SSH` names, or else `ssh`.
    pub ssh: Option<String>,
    /// Whether nobody sits at the terminal: passwords are asked for in a window, if there is a
    /// program for that (`SSH_ASKPASS`), or not at all.
    pub without_terminal: bool,
}

static SETTINGS: RwLock<RemoteSettings> =
    RwLock::new(RemoteSettings { program: None, ssh: None, without_terminal: false });

impl RemoteSettings {
    /// Those in effect.
    pub fn current() -> Self {
        SETTINGS.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Puts them into effect for connections from now on.
    pub fn set(self) {
        *SETTINGS.write().unwrap_or_else(PoisonError::into_inner) = self;
    }

    fn program(&self) -> String {
        named(&self.program, "TILESCOPE_REMOTE_PROGRAM", "tilescope")
    }

    fn ssh(&self) -> String {
        named(&self.ssh, "TILESCOPE_SSH", "ssh")
    }
}

fn named(set: &Option<String>, variable: &str, default: &str) -> String {
    let set = set.clone().or_else(|| std::env::var(variable).ok());
    set.filter(|name| !name.trim().is_empty()).unwrap_or_else(|| default.to_owned())
}

/// A pipe to somebody who answers.
pub(super) struct Transport {
    pub(super) input: Box<dyn Read + Send>,
    pub(super) output: Box<dyn Write + Send>,
    /// Ends it.
    pub(super) end: Box<dyn FnOnce() + Send>,
    /// Why it ended, in words, given whether anything was understood and what was wrong.
    pub(super) explain: Box<dyn FnOnce(bool, Option<FrameError>) -> String + Send>,
}

/// Seconds between two signs of life, and how many may be missing: a network that is gone is noticed.
const ALIVE: [&str; 4] = ["-o", "ServerAliveInterval=15", "-o", "ServerAliveCountMax=4"];
/// Bytes of what `ssh` complains about that are told.
const MAX_COMPLAINT: usize = 2048;
/// Time that a program whose pipe has ended is given to end.
const PATIENCE: Duration = Duration::from_secs(3);

/// Starts `ssh`, and tilescope on the far side.
pub(super) fn connect(
    address: &RemoteAddress,
    settings: &RemoteSettings,
) -> Result<Transport, ReportError> {
    let SshProcess { child, stdin: output, stdout: input, stderr } =
        start(address, settings, &["serve", "--stdio"])?;
    let program = settings.program();
    let complaint = Arc::<Mutex<Vec<u8>>>::default();
    let heard = complaint.clone();
    let listen = move || listen_to(stderr, MAX_COMPLAINT, &heard);
    std::thread::Builder::new()
        .name("ssh".to_owned())
        .spawn(listen)
        .map_err(|error| address.failed(format!("no thread to read what ssh says: {error}")))?;
    let child = Arc::new(Mutex::new(child));
    let (ended, host) = (child.clone(), address.host().into_owned());
    Ok(Transport {
        input: Box::new(input),
        output: Box::new(output),
        end: Box::new(move || {
            let mut child = lock(&child);
            // It may have ended by itself.
            let _ = child.kill();
            let _ = child.wait();
        }),
        explain: Box::new(move |has_greeted, problem| {
            let code = wait_for_end(&ended);
            let complaint = String::from_utf8_lossy(&lock(&complaint)).into_owned();
            explanation(&host, &program, has_greeted, code, &complaint, problem.as_ref())
        }),
    })
}

/// `ssh` while it runs, with its pipes.
pub(super) struct SshProcess {
    pub(super) child: Child,
    pub(super) stdin: ChildStdin,
    pub(super) stdout: ChildStdout,
    pub(super) stderr: ChildStderr,
}

/// Starts `ssh`, and tilescope with these words on the far side.
pub(super) fn start(
    address: &RemoteAddress,
    settings: &RemoteSettings,
    words: &[&str],
) -> Result<SshProcess, ReportError> {
    let (ssh, program) = (settings.ssh(), settings.program());
    let words = std::iter::once(program.as_str()).chain(words.iter().copied()).map(quoted);
    let words: Vec<String> =
        words.collect::<Result<_, _>>().map_err(|problem| address.failed(problem))?;
    let mut command = Command::new(&ssh);
    command.arg("-T").args(ALIVE);
    if settings.without_terminal {
        if std::env::var_os("SSH_ASKPASS").is_some() {
            command.env("SSH_ASKPASS_REQUIRE", "force");
        } else {
            command.args(["-o", "BatchMode=yes"]);
        }
    }
    command.args(address.ssh_arguments()).arg(words.join(" "));
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().map_err(|error| {
        address.failed(match error.kind() {
            io::ErrorKind::NotFound => format!(
                "there is no {ssh} on this machine: reports on other machines are read through it; \
                 install OpenSSH's client, or name another one in TILESCOPE_SSH"
            ),
            _ => format!("{ssh} cannot be started: {error}"),
        })
    })?;
    match (child.stdin.take(), child.stdout.take(), child.stderr.take()) {
        (Some(stdin), Some(stdout), Some(stderr)) => {
            Ok(SshProcess { child, stdin, stdout, stderr })
        }
        _ => Err(address.failed(format!("{ssh} has no pipes"))),
    }
}

/// A word as the shell on the far side reads it; a path may begin in the home directory.
fn quoted(word: &str) -> Result<String, String> {
    if word.chars().any(char::is_control) {
        return Err(format!("nothing on the far side can be called {word:?}"));
    }
    let quote = |text: &str| format!("'{}'", text.replace('\'', "'\\''"));
    Ok(match word.strip_prefix("~/") {
        // The shell puts the home directory there, unless that is quoted too.
        Some(rest) => format!("~/{}", quote(rest)),
        None => quote(word),
    })
}

/// Keeps the last bytes, so many at most, of what `ssh` complains about.
fn listen_to(mut stderr: ChildStderr, most: usize, heard: &Mutex<Vec<u8>>) {
    let mut buffer = [0; 1024];
    while let Ok(count @ 1..) = stderr.read(&mut buffer) {
        let mut heard = lock(heard);
        heard.extend_from_slice(buffer.get(..count).unwrap_or_default());
        let surplus = heard.len().saturating_sub(most);
        heard.drain(..surplus);
    }
}

/// The last that is said before the end, so many bytes at most.
pub(super) fn last_words(stderr: ChildStderr, most: usize) -> String {
    let heard = Mutex::default();
    listen_to(stderr, most, &heard);
    String::from_utf8_lossy(&lock(&heard)).into_owned()
}

/// What it means that a command did not run on the far side.
pub(super) fn explain_start(
    address: &RemoteAddress,
    settings: &RemoteSettings,
    code: Option<i32>,
    complaint: &str,
) -> String {
    explanation(&address.host(), &settings.program(), false, code, complaint, None)
}

/// The exit code of a program whose pipe has ended; `None` if it was ended or does not end.
fn wait_for_end(child: &Mutex<Child>) -> Option<i32> {
    let start = Instant::now();
    while start.elapsed() < PATIENCE {
        if let Ok(Some(status)) = lock(child).try_wait() {
            // What it said last may still be in the pipe.
            std::thread::sleep(Duration::from_millis(30));
            return status.code();
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    None
}

/// What it means that the pipe has ended, and what to do.
fn explanation(
    host: &str,
    program: &str,
    has_greeted: bool,
    code: Option<i32>,
    complaint: &str,
    problem: Option<&FrameError>,
) -> String {
    // It ends lines as terminals do.
    let complaint = complaint.replace('\r', "");
    let complaint = complaint.trim();
    let contains = |words: &str| complaint.contains(words);
    let what = match (has_greeted, code) {
        (true, _) => match problem {
            Some(problem @ (FrameError::NotUnderstood | FrameError::TooLong(_))) => {
                format!("what came from {host} makes no sense ({problem})")
            }
            _ => format!("the connection to {host} was lost; open the report again to reconnect"),
        },
        (false, Some(127)) => format!(
            "there is no {program} on {host}: install it there, or say where it is with \
             --remote-program or TILESCOPE_REMOTE_PROGRAM"
        ),
        (false, Some(126)) => format!("{program} cannot be run on {host}"),
        (false, Some(2)) => format!(
            "{program} on {host} does not know `serve`: it is older than this one; update it there"
        ),
        (false, Some(255)) if contains("Host key verification failed") => format!(
            "ssh does not trust the key of {host}: connect once with `ssh {host}` in a terminal, and \
             compare the key"
        ),
        (false, Some(255)) if contains("Permission denied") => format!(
            "{host} does not let you in: try `ssh {host}` in a terminal, and add your key to the agent"
        ),
        (false, Some(255)) => format!("ssh could not connect to {host}"),
        (false, _) if matches!(problem, Some(FrameError::NotUnderstood)) => {
            format!("what answers on {host} is no tilescope")
        }
        (false, _) => format!("{program} on {host} ended before it said anything"),
    };
    if complaint.is_empty() { what } else { format!("{what}; ssh says: {complaint}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn programs_are_quoted_for_the_shell() {
        let cases = [
            ("tilescope", "'tilescope'"),
            ("/opt/my tools/tilescope", "'/opt/my tools/tilescope'"),
            ("~/bin/it's; rm -rf $HOME", "~/'bin/it'\\''s; rm -rf $HOME'"),
        ];
        for (program, expected) in cases {
            assert_eq!(quoted(program).as_deref(), Ok(expected));
        }
        assert!(quoted("a\nb").is_err());
    }

    #[test]
    fn every_end_is_explained() {
        let say = |greeted, code, complaint: &str| {
            explanation("pod16", "tilescope", greeted, code, complaint, Some(&FrameError::CutOff))
        };
        let cases = [
            (say(false, Some(127), "bash: tilescope: not found"), "there is no tilescope on pod16"),
            (say(false, Some(2), "error: …"), "does not know `serve`"),
            (say(false, Some(255), "Host key verification failed."), "does not trust the key"),
            (say(false, Some(255), "me@pod16: Permission denied (publickey)."), "let you in"),
            (say(false, Some(255), "Connection refused"), "could not connect to pod16"),
            (say(true, Some(255), "Connection reset by peer"), "connection to pod16 was lost"),
            (say(false, None, ""), "ended before it said anything"),
        ];
        for (text, expected) in cases {
            assert!(text.contains(expected), "{text}");
        }
        assert!(say(false, Some(255), "Connection refused\r\n").ends_with("Connection refused"));
        assert!(!say(false, Some(255), "failed\r\nclosed\r\n").contains('\r'));
    }
}
