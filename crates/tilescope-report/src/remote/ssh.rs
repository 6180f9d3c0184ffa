//! Runs the user's own `ssh` as a child process: its arguments, and an explanation of its exit.

use super::address::RemoteAddress;
use crate::error::ReportError;
use std::io::{self, Read};
use std::path::PathBuf;
use std::process::{Child, ChildStderr, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::{PoisonError, RwLock};
use std::time::Duration;

/// The settings for all connections to other machines.
#[derive(Clone, Debug, Default)]
pub struct RemoteSettings {
    /// The program to run on the remote machine, as its shell finds it. `None` means the one in the
    /// environment variable `TILESCOPE_REMOTE_PROGRAM`, or else `tilescope`.
    pub program: Option<String>,
    /// The `ssh` to run; `None` means the one in `TILESCOPE_SSH`, or else `ssh`.
    pub ssh: Option<String>,
    /// True if there is no terminal for a password prompt. `ssh` then runs the program in
    /// `SSH_ASKPASS`, or fails.
    pub without_terminal: bool,
    /// The directory of copies; `None` means the user's cache directory.
    pub copies: Option<PathBuf>,
    /// Receives the progress of copies without a separate observer, and an empty text at their
    /// end.
    pub progress: Option<fn(&str)>,
}

static SETTINGS: RwLock<RemoteSettings> = RwLock::new(RemoteSettings {
    program: None,
    ssh: None,
    without_terminal: false,
    copies: None,
    progress: None,
});

/// The silence after which a connection is given up, by default.
const SILENCE: Duration = Duration::from_secs(60);

impl RemoteSettings {
    /// The settings in effect.
    pub fn current() -> Self {
        SETTINGS.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Makes these the settings of later connections.
    pub fn set(self) {
        *SETTINGS.write().unwrap_or_else(PoisonError::into_inner) = self;
    }

    pub(super) fn program(&self) -> String {
        named(&self.program, "TILESCOPE_REMOTE_PROGRAM", "tilescope")
    }

    fn ssh(&self) -> String {
        named(&self.ssh, "TILESCOPE_SSH", "ssh")
    }

    /// The silence after which an established connection is given up: the environment variable
    /// `TILESCOPE_REMOTE_SILENCE`, in seconds, or else a minute.
    pub(super) fn silence() -> Duration {
        let set = std::env::var("TILESCOPE_REMOTE_SILENCE").ok();
        let seconds = set.and_then(|text| text.trim().parse().ok());
        seconds.and_then(|seconds| Duration::try_from_secs_f64(seconds).ok()).unwrap_or(SILENCE)
    }
}

fn named(set: &Option<String>, variable: &str, default: &str) -> String {
    let set = set.clone().or_else(|| std::env::var(variable).ok());
    set.filter(|name| !name.trim().is_empty()).unwrap_or_else(|| default.to_owned())
}

/// A lost network is noticed after 60 s: four keep-alive messages, 15 s apart, may be missing.
const ALIVE: [&str; 4] = ["-o", "ServerAliveInterval=15", "-o", "ServerAliveCountMax=4"];

/// A running `ssh`, with its pipes.
pub(super) struct SshProcess {
    pub(super) child: Child,
    pub(super) stdin: ChildStdin,
    pub(super) stdout: ChildStdout,
    pub(super) stderr: ChildStderr,
}

/// Starts `ssh`, with `command` in the login shell of the remote machine.
pub(super) fn start(
    address: &RemoteAddress,
    settings: &RemoteSettings,
    command: &str,
) -> Result<SshProcess, ReportError> {
    let ssh = settings.ssh();
    let mut process = Command::new(&ssh);
    // Compressed: tables of a report shrink to a third.
    process.args(["-T", "-C"]).args(ALIVE);
    if settings.without_terminal {
        if std::env::var_os("SSH_ASKPASS").is_some() {
            process.env("SSH_ASKPASS_REQUIRE", "force");
        } else {
            process.args(["-o", "BatchMode=yes"]);
        }
    }
    process.args(address.ssh_arguments()).arg(command);
    process.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = process.spawn().map_err(|error| {
        address.failed(match error.kind() {
            io::ErrorKind::NotFound => format!(
                "cannot find {ssh}, which copies reports from other machines: install OpenSSH's \
                 client, or name another one in TILESCOPE_SSH"
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

/// The command line of tilescope with these arguments on the remote machine.
pub(super) fn command_line(
    address: &RemoteAddress,
    settings: &RemoteSettings,
    words: &[&str],
) -> Result<String, ReportError> {
    let mut line = quoted(&settings.program()).map_err(|problem| address.failed(problem))?;
    for word in words {
        line.push(' ');
        line.push_str(&quoted(word).map_err(|problem| address.failed(problem))?);
    }
    Ok(line)
}

/// A word quoted for the remote shell; a path may begin in the home directory.
pub(super) fn quoted(word: &str) -> Result<String, String> {
    if word.chars().any(char::is_control) {
        return Err(format!("{word:?} is not a valid name on the other machine"));
    }
    let quote = |text: &str| format!("'{}'", text.replace('\'', "'\\''"));
    Ok(match word.strip_prefix("~/") {
        // The shell only expands the home directory if that is not quoted.
        Some(rest) => format!("~/{}", quote(rest)),
        None => quote(word),
    })
}

/// The last text before the end of a stream, at most `most` bytes.
pub(super) fn last_words(mut stderr: ChildStderr, most: usize) -> String {
    let mut buffer = [0; 1024];
    let mut received = Vec::new();
    while let Ok(count @ 1..) = stderr.read(&mut buffer) {
        received.extend_from_slice(buffer.get(..count).unwrap_or_default());
        let surplus = received.len().saturating_sub(most);
        received.drain(..surplus);
    }
    String::from_utf8_lossy(&received).into_owned()
}

/// Explains why `ssh` exited before the remote machine answered. `program` is the program that was
/// to run there; `None` means a shell.
pub(super) fn explanation(
    host: &str,
    program: Option<&str>,
    code: Option<i32>,
    complaint: &str,
) -> String {
    // `ssh` ends lines with a carriage return, as for terminals.
    let complaint = complaint.replace('\r', "");
    let complaint = complaint.trim();
    let problem = match (program, code) {
        (_, Some(255)) if complaint.contains("Host key verification failed") => format!(
            "ssh does not trust the key of {host}: connect once with `ssh {host}` in a terminal, and \
             compare the key"
        ),
        (_, Some(255)) if complaint.contains("Permission denied") => format!(
            "{host} denied access: try `ssh {host}` in a terminal, and add your key to the agent"
        ),
        (_, Some(255)) => format!("ssh could not connect to {host}"),
        (Some(program), Some(127)) => format!(
            "cannot find {program} on {host}: install it there, or set its path with \
             --remote-program or TILESCOPE_REMOTE_PROGRAM"
        ),
        (Some(program), Some(126)) => format!("{program} cannot be run on {host}"),
        (Some(program), _) => format!("{program} on {host} ended before it answered"),
        (None, _) => format!("no POSIX shell answers on {host}"),
    };
    if complaint.is_empty() { problem } else { format!("{problem}; ssh says: {complaint}") }
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
    fn every_exit_is_explained() {
        let program = Some("tilescope");
        let cases = [
            (program, Some(127), "bash: tilescope: not found", "cannot find tilescope on pod16"),
            (None, Some(255), "Host key verification failed.", "does not trust the key"),
            (None, Some(255), "me@pod16: Permission denied (publickey).", "denied access"),
            (None, Some(255), "Connection refused", "could not connect to pod16"),
            (None, Some(1), "'exec' is not recognized", "no POSIX shell answers on pod16"),
            (program, None, "", "ended before it answered"),
        ];
        for (program, code, complaint, expected) in cases {
            let text = explanation("pod16", program, code, complaint);
            assert!(text.contains(expected), "{text}");
        }
        let text = explanation("pod16", None, Some(255), "failed\r\nclosed\r\n");
        assert!(text.ends_with("ssh says: failed\nclosed"), "{text:?}");
    }
}
