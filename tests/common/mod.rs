//! Reports for tests, simulated once.

#![allow(dead_code, reason = "each test binary uses a part of this")]

use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use tilescope::report::Report;
use tilescope::sim::simulate;
use tilescope::sim::spec::{Spec, SpecSource};

/// A spec by name or file, with overrides.
pub fn spec(name: &str, overrides: &[&str]) -> Spec {
    let overrides: Vec<String> = overrides.iter().map(|text| text.to_string()).collect();
    let source = SpecSource::find(name, &overrides).expect("spec exists");
    Spec::build(&source).expect("spec is sane")
}

/// Simulates a spec into `directory` and gives the report file.
pub fn report_file(spec: &Spec, directory: &Path) -> PathBuf {
    simulate(spec, directory, |_| ()).expect("simulates")
}

/// Simulates a spec and opens the report; the directory must outlive it.
pub fn report(name: &str, overrides: &[&str]) -> (Report, tempfile::TempDir) {
    let directory = tempfile::tempdir().expect("temporary directory");
    let file = report_file(&spec(name, overrides), directory.path());
    (Report::open(&file).expect("opens"), directory)
}

/// Runs the program without a display.
pub fn tilescope(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_tilescope"))
        .args(arguments)
        .env_remove("DISPLAY")
        .env_remove("WAYLAND_DISPLAY")
        .env_remove("WAYLAND_SOCKET")
        .output()
        .expect("the program starts")
}

/// What a command printed on stdout.
pub fn stdout(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// What a command printed on stderr.
pub fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}
