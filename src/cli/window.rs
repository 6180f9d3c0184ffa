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
    let run = tilescope_gui::run(report, compare, at);
    Ok(run.map_err(|error| super::error::JobError::Other(error.into()))?)
}

/// Says that there is no app in this build.
#[cfg(not(feature = "gui"))]
pub(super) fn open(_: Option<&Path>, _: Option<&Path>, _: Option<&str>) -> Result<(), CliError> {
    let instead = "try tilescope --headless -o out, or tilescope --help";
    Err(super::error::UsageError::NotBuilt { lacks: "has no desktop app", feature: "gui", instead }
        .into())
}
