//! The trace for other viewers.

use super::super::exported_file::{ExportProgress, ExportedFile};
use super::super::plain_output::stderr;
use crate::cli::command::{CliError, open_report};
use crate::cli::error::JobError;
use crate::cli::{interrupt, selection};
use clap::ArgMatches;
use std::io::Write;
use std::path::Path;
use tilescope_export::{
    NanosecondClock, TraceExportError, TraceFormat, TraceSelection, write_trace,
};
use tilescope_report::{Report, ReportPart};

/// Writes a trace of Perfetto.
pub(super) fn perfetto(matches: &ArgMatches, file: &Path) -> Result<(), CliError> {
    write(matches, file, TraceFormat::Perfetto)
}

/// Writes a trace of Chrome.
pub(super) fn chrome(matches: &ArgMatches, file: &Path) -> Result<(), CliError> {
    write(matches, file, TraceFormat::Chrome)
}

fn write(matches: &ArgMatches, file: &Path, format: TraceFormat) -> Result<(), CliError> {
    let report = open_report(matches)?;
    let mut progress = ExportProgress::new();
    prepare(&report)?;
    let target = report.target()?;
    let selection = TraceSelection {
        ipus: selection::ipus(matches, &target)?,
        window: selection::window(matches, &report)?,
    };
    if report.has(ReportPart::Execution) && !NanosecondClock::new(target.clock).is_known() {
        let note = "the report does not record the clock: a nanosecond in the trace is a cycle";
        let _ = writeln!(stderr(), "note: {note}");
    }
    let steps = report.trace()?.map_or(0, |trace| trace.classes().map(|of| of.bars()).sum());
    let mut output = ExportedFile::create(file)?.within(&report, steps);
    let written = write_trace(&report, &selection, format, &mut output, &mut |done, all| {
        progress.at(done, all)
    });
    drop(progress);
    match written {
        Ok(_) => output.finish(),
        Err(TraceExportError::Write(error)) => Err(output.error(error)),
        Err(error) => Err(JobError::Other(error.into()).into()),
    }
}

/// Builds the index of a foreign file, which may take long.
pub(super) fn prepare(report: &Report) -> Result<(), CliError> {
    report.prepare_trace(&mut |_| {}, &interrupt::flag())?;
    Ok(())
}
