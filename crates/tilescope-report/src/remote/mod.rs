//! Reports on other machines: the user's own `ssh` copies them into the cache directory of this one.
//!
//! | file | content |
//! |---|---|
//! | `address` | `ssh://[user@]host[:port]/path` |
//! | `ssh` | starts `ssh`, and explains how it ended |
//! | `far_shell` | a POSIX shell on the other machine: lines and bytes, with a limit on silence |
//! | `copy` | copies a report and the files beside it, resumes, verifies |
//! | `command` | a command of tilescope that runs on the other machine |
//!
//! The other machine needs a POSIX shell. It needs tilescope only for `command`.

mod address;
mod command;
mod copy;
mod far_shell;
mod ssh;

pub use address::{RemoteAddress, RemoteAddressError, absolute_path, is_remote};
pub use command::{RemoteCommandError, run_there};
pub(crate) use copy::{RemoteFile, copy_report};
pub use ssh::RemoteSettings;
