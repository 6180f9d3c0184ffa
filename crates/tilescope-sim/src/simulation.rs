//! From a spec to a report on disk.

use super::compile::{self, CompileError};
use super::run::{self, StepSink};
use super::spec::Spec;
use std::path::{Path, PathBuf};
use tilescope_report::{
    ExecutionStep, Recorder, ReportError, ReportMeta, ReportWriter, StepLayout, TraceMark,
};

/// Why a simulation left no report.
#[derive(Debug, thiserror::Error)]
pub enum SimulateError {
    /// The spec cannot be compiled.
    #[error(transparent)]
    Compile(#[from] CompileError),
    /// The report cannot be written.
    #[error(transparent)]
    Report(#[from] ReportError),
}

/// Compiles and runs `spec`, and writes the report to `directory`; returns the file's path.
///
/// A program that does not fit in memory is compiled but not run: its report has no execution.
/// `progress` hears the share that is done, from one thread at a time.
///
/// # Errors
/// [`SimulateError`]; nothing is left behind then, and an older report stays as it was.
pub fn simulate(
    spec: &Spec,
    directory: &Path,
    mut progress: impl FnMut(f64) + Send,
) -> Result<PathBuf, SimulateError> {
    progress(0.0);
    let compiled = compile::compile(spec)?;
    let meta = ReportMeta {
        generator: format!("tilescope {}", env!("CARGO_PKG_VERSION")),
        spec: Some(spec.text.clone()),
    };
    let mut writer = ReportWriter::create(directory, &meta)?;
    if compiled.tiles_out_of_memory() == 0 {
        let dry_run_summary = run::dry_run(&compiled, spec);
        let layout = StepLayout::for_bars(dry_run_summary.trace_bars);
        writer.record(&compiled.compilation, layout, |recorder| {
            let mut sink = RecorderSink { recorder, progress: &mut progress };
            run::run(&compiled, spec, &dry_run_summary, &mut sink)
        })?;
    } else {
        writer.compilation(&compiled.compilation)?;
    }
    let path = writer.finish()?;
    progress(1.0);
    Ok(path)
}

/// Hands steps and marks to the report.
struct RecorderSink<'a> {
    recorder: &'a mut Recorder,
    progress: &'a mut (dyn FnMut(f64) + Send),
}

impl StepSink for RecorderSink<'_> {
    type Error = ReportError;

    fn step(&mut self, step: &ExecutionStep) -> Result<(), ReportError> {
        self.recorder.step(step)
    }

    fn mark(&mut self, mark: &TraceMark) -> Result<(), ReportError> {
        self.recorder.mark(mark)
    }

    fn progress(&mut self, share: f64) {
        (self.progress)(share);
    }
}
