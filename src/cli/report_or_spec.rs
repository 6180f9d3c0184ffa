//! Arguments for a report, or for a spec that is simulated to get one.

use super::command::{CliError, open_path};
use super::simulate;
use crate::cli::error::UsageError;
use std::num::NonZeroUsize;
use std::path::Path;
use tilescope_analysis::insights::SpecChanges;
use tilescope_experiments::trial::TrialRunner;
use tilescope_report::remote::is_remote;
use tilescope_report::{PROFILE_READERS, REPORT_FILE, Report};
use tilescope_sim::specification::SpecSource;

/// True if a path refers to a report: anything else is the name or file of a spec.
pub(super) fn is_report(path: &Path) -> bool {
    let files = PROFILE_READERS.iter().map(|reader| reader.file_name).chain([REPORT_FILE]);
    let mut endings = files.filter_map(|file| Path::new(file).extension());
    is_remote(path) || path.is_dir() || endings.any(|ending| path.extension() == Some(ending))
}

/// Opens a report, or simulates a spec with `overrides` into `directory` and opens the result.
///
/// # Errors
/// The report cannot be read, the spec is refused, or there are overrides for a report.
pub(super) fn open_or_simulate(
    path: &Path,
    overrides: &[String],
    directory: &Path,
) -> Result<Report, CliError> {
    if is_report(path) && !overrides.is_empty() {
        return Err(
            UsageError::Request("--set changes a spec and cannot be used with a report").into()
        );
    }
    match path.to_str() {
        Some(name) if !is_report(path) => {
            let source = SpecSource::find(name, overrides)?;
            let spec = simulate::build(&source)?;
            if spec.needs_own_process() {
                let runner = TrialRunner::new(name, overrides.to_vec(), NonZeroUsize::MIN)?;
                return open_path(&runner.report(&SpecChanges::new(), directory)?);
            }
            let simulated = tilescope_sim::simulate(&spec, directory, |_| ());
            open_path(&simulated?)
        }
        _ => open_path(path),
    }
}
