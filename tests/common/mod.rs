//! Helpers of all tests: reports that are simulated once, and runs of the program.

#![allow(dead_code, unused_imports, reason = "each test binary uses a part of this")]

use std::convert::Infallible;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::LazyLock;
use tilescope_report::units::Cycles;
use tilescope_report::{ExecutionStep, MarkKind, Report, TraceMark};
use tilescope_sim::compile;
use tilescope_sim::compile::CompiledProgram;
use tilescope_sim::run::{StepSink, dry_run, run};
use tilescope_sim::specification::{Spec, SpecSource};
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

/// Overrides of a spec, one a word, of the table `[options]` unless a word names another.
pub(crate) fn sets(words: &str) -> Vec<String> {
    let full = |word: &str| match word.split('.').next() {
        Some("model" | "options" | "target") => word.to_owned(),
        _ => format!("options.{word}"),
    };
    words.split_whitespace().map(full).collect()
}

/// The reason why a spec is refused when it is read or compiled.
pub(crate) fn refusal(name: &str, overrides: &[&str]) -> String {
    let overrides: Vec<String> = overrides.iter().map(ToString::to_string).collect();
    let source = SpecSource::find(name, &overrides).expect("a spec");
    match Spec::build(&source) {
        Err(error) => error.to_string(),
        Ok(spec) => compile(&spec).expect_err("is refused").to_string(),
    }
}

/// Steps and marks of a run.
#[derive(Default)]
pub(crate) struct RecordedRun {
    pub(crate) steps: Vec<ExecutionStep>,
    pub(crate) marks: Vec<TraceMark>,
}

impl StepSink for RecordedRun {
    type Error = Infallible;

    fn step(&mut self, step: &ExecutionStep) -> Result<(), Infallible> {
        self.steps.push(step.clone());
        Ok(())
    }

    fn mark(&mut self, mark: &TraceMark) -> Result<(), Infallible> {
        self.marks.push(mark.clone());
        Ok(())
    }
}

impl RecordedRun {
    /// Runs a program in memory.
    pub(crate) fn of(compiled: &CompiledProgram, spec: &Spec) -> Self {
        let mut recorded = Self::default();
        let Ok(()) = run(compiled, spec, &dry_run(compiled, spec), &mut recorded);
        recorded
    }

    pub(crate) fn of_kind(&self, kind: MarkKind) -> impl Iterator<Item = &TraceMark> {
        self.marks.iter().filter(move |mark| mark.kind == kind)
    }

    /// The end of the last step.
    pub(crate) fn end(&self) -> Cycles {
        let ends = self.steps.iter().flat_map(|step| &step.ipus).map(|on_ipu| on_ipu.to_max);
        ends.max().unwrap_or_default()
    }
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

/// The program, run by a shell that sets limits first: `ulimit -v 1000000`.
#[cfg(unix)]
pub(crate) fn limited_tilescope(limits: &str) -> Command {
    let mut command = Command::new("sh");
    let line = format!("{limits}; exec \"$@\"");
    command.args(["-c", &line, "sh", env!("CARGO_BIN_EXE_tilescope")]);
    command
}

/// The directory of a sample report.
pub(crate) fn sample(name: &str) -> String {
    format!("{}/sample_reports/{name}", env!("CARGO_MANIFEST_DIR"))
}

/// What a command printed on stdout.
pub(crate) fn stdout(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// What a command printed on stderr.
pub(crate) fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// Sends a signal to a process; false if it cannot be sent. The shell does it: `kill` is a part of
/// every POSIX shell, but no program of a bare system.
pub(crate) fn signal(name: &str, process: &str) -> bool {
    let command = format!("kill -{name} {process}");
    Command::new("sh").args(["-c", &command]).status().expect("a shell").success()
}
