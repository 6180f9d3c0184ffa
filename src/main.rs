//! The `tilescope` program: arguments in, exit code out.

use std::process::ExitCode;

fn main() -> ExitCode {
    tilescope::cli::run(std::env::args_os())
}
