//! Opens the desktop app, where it was built in.

use super::command::CliError;
use std::path::Path;

/// Opens the app on a report, at a place in it that a link leads to, on two of them compared, or on
/// its home screen.
#[cfg(feature = "gui")]
pub(super) fn open(
    report: Option<&Path>,
    compare: Option<&Path>,
    at: Option<&str>,
) -> Result<(), CliError> {
    tilescope_gui::run(report, compare, at).map_err(|error| CliError::Failed(error.to_string()))
}

/// Says that there is no app in this build.
#[cfg(not(feature = "gui"))]
pub(super) fn open(_: Option<&Path>, _: Option<&Path>, _: Option<&str>) -> Result<(), CliError> {
    let problem = "this build has no desktop app (it lacks the cargo feature \"gui\"); \
                   try tilescope --headless -o out, or tilescope --help";
    Err(CliError::Usage(problem.to_string()))
}
