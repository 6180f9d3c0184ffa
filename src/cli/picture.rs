//! Pictures of the results of commands, in builds that can draw.

use super::command::CliError;
use crate::cli::error::UsageError;
use tilescope_experiments::answers::{SensitivityAnswer, SweepAnswer, TuneAnswer};

/// The subject of a picture.
#[derive(Clone, Copy)]
#[cfg_attr(not(feature = "gui"), expect(dead_code, reason = "this build draws nothing"))]
pub(super) enum FoundPicture<'a> {
    Sensitivity(&'a SensitivityAnswer),
    Sweep(&'a SweepAnswer),
    Tune(&'a TuneAnswer),
}

/// Refuses files that cannot be pictures, before any simulation.
#[cfg(not(feature = "gui"))]
pub(super) fn check(_: &str) -> Result<(), CliError> {
    let lacks = "cannot draw pictures";
    Err(UsageError::NotBuilt { lacks, feature: "gui", instead: "JSON works" }.into())
}

/// Draws a result into a file.
#[cfg(not(feature = "gui"))]
pub(super) fn write(_: FoundPicture<'_>, file: &str) -> Result<(), CliError> {
    check(file)
}

/// Refuses files that cannot be pictures, before any simulation.
#[cfg(feature = "gui")]
pub(super) fn check(file: &str) -> Result<(), CliError> {
    format(file).map(|_| ())
}

/// The format of a picture by its name.
#[cfg(feature = "gui")]
fn format(file: &str) -> Result<tilescope_gui::PictureFormat, CliError> {
    use tilescope_gui::PictureFormat;
    match std::path::Path::new(file).extension().and_then(|ending| ending.to_str()) {
        Some("png") => Ok(PictureFormat::Png),
        Some("svg") => Ok(PictureFormat::Svg),
        _ => {
            let problem = "the name of a picture must end in .png or .svg";
            Err(UsageError::FileProblem { file: file.into(), problem }.into())
        }
    }
}

/// Draws a result into a file.
#[cfg(feature = "gui")]
pub(super) fn write(found: FoundPicture<'_>, file: &str) -> Result<(), CliError> {
    let drawn = match found {
        FoundPicture::Sensitivity(found) => {
            tilescope_gui::sensitivity_picture(found, format(file)?)
        }
        FoundPicture::Sweep(found) => tilescope_gui::sweep_picture(found, format(file)?),
        FoundPicture::Tune(found) => tilescope_gui::tune_picture(found, format(file)?),
    };
    let bytes = drawn.map_err(|error| crate::cli::error::JobError::Other(error.into()))?;
    super::output_file::write(file.as_ref(), &bytes)
}
