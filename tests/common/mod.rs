//! Helpers of all tests: reports that are simulated once, and runs of the program.

#![allow(dead_code, unused_imports, reason = "each test binary uses a part of this")]

use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::LazyLock;
use tilescope_report::Report;
use tilescope_sim::spec::Spec;
pub(crate) use tilescope_test_support::operations::{
    OperationCliff, encoder, encoder_operations, encoder_spec, layer_cost, layer_cycles, lowered,
    node_cycles, node_works, operation_cliffs,
};
use tilescope_test_support::reports::ReportStore;
pub(crate) use tilescope_test_support::reports::spec;

/// The reports that tests share.
static REPORTS: LazyLock<ReportStore> =
    LazyLock::new(|| ReportStore::new(env!("CARGO_TARGET_TMPDIR")));

/// Writes the report of a spec into `directory` and gives the report file.
pub(crate) fn report_file(spec: &Spec, directory: &Path) -> PathBuf {
    REPORTS.write(spec, directory)
}

/// Opens the report of a spec; the directory must outlive it.
pub(crate) fn report(name: &str, overrides: &[&str]) -> (Report, tempfile::TempDir) {
    REPORTS.open(&spec(name, overrides))
}

/// Runs the program without a display.
pub(crate) fn tilescope(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_tilescope"))
        .args(arguments)
        .env_remove("DISPLAY")
        .env_remove("WAYLAND_DISPLAY")
        .env_remove("WAYLAND_SOCKET")
        .output()
        .expect("the program starts")
}

/// What a command printed on stdout.
pub(crate) fn stdout(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// What a command printed on stderr.
pub(crate) fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}
