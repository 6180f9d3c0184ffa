//! Opens the desktop app, if it is part of the build.

use super::command::CliError;
use std::path::Path;

/// Opens the app on a report, at a place given by a link, on a comparison of two, or on its home
/// screen.
#[cfg(feature = "gui")]
pub(super) fn open(
    report: Option<&Path>,
    compare: Option<&Path>,
    at: Option<&str>,
) -> Result<(), CliError> {
    let run = tilescope_gui::run(report, compare, at);
    Ok(run.map_err(|error| super::error::JobError::Other(error.into()))?)
}

/// The error of a build without the app.
#[cfg(not(feature = "gui"))]
pub(super) fn open(_: Option<&Path>, _: Option<&Path>, _: Option<&str>) -> Result<(), CliError> {
    let instead = "try tilescope --headless -o out, or tilescope --help";
    Err(super::error::UsageError::NotBuilt { lacks: "has no desktop app", feature: "gui", instead }
        .into())
}
