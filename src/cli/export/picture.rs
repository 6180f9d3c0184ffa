//! Views as pictures.

use crate::cli::command::{CliError, path_of};
use crate::cli::error::{JobError, UsageError};
use clap::ArgMatches;
use std::io::Write;
use std::path::Path;
use std::path::PathBuf;
use tilescope_gui::{self as gui, AppearancePrefs, PaletteChoice};
use tilescope_report::units::ByteUnits;

/// Default width and height.
const DEFAULT_SIZE: (u32, u32) = (1600, 900);

/// Lists the views.
pub(super) fn list_views(_: &ArgMatches, output: &mut dyn Write) -> Result<(), CliError> {
    for view in gui::view_names() {
        writeln!(output, "{view}")?;
    }
    Ok(())
}

/// Draws a view.
pub(super) fn draw(matches: &ArgMatches, file: &Path) -> Result<(), CliError> {
    let get_text = |name: &str| matches.get_one::<String>(name).map(String::as_str);
    let view = get_text("view").unwrap_or("");
    if !gui::view_names().contains(&view) {
        let hint = format!("; known: {}", gui::view_names().join(", "));
        return Err(UsageError::unknown("view", view, hint).into());
    }
    let size = get_text("size").map_or(Ok(DEFAULT_SIZE), parse_size)?;
    let format = match get_text("format") {
        Some("svg") => gui::PictureFormat::Svg,
        _ => gui::PictureFormat::Png,
    };
    let theme =
        if get_text("theme") == Some("dark") { gui::Theme::Dark } else { gui::Theme::Light };
    let export = gui::PictureOptions {
        view,
        compare: matches.get_one::<PathBuf>("compare").map(PathBuf::as_path),
        at: get_text("at"),
        size,
        look: look(matches),
        theme,
        format,
    };
    let written = gui::export(path_of(matches, "report"), &export, file);
    Ok(written.map_err(|error| JobError::Other(error.into()))?)
}

/// Units, colours and text size selected by the user.
fn look(matches: &ArgMatches) -> AppearancePrefs {
    let get_name = |name: &str| matches.get_one::<String>(name).map_or("", String::as_str);
    let units = get_name("units");
    let palette = get_name("palette");
    AppearancePrefs {
        units: ByteUnits::ALL.into_iter().find(|one| one.name() == units).unwrap_or_default(),
        palette: PaletteChoice::ALL
            .into_iter()
            .find(|one| one.name() == palette)
            .unwrap_or_default(),
        text_percent: matches.get_one::<u16>("text-size").copied().unwrap_or(100),
        ..AppearancePrefs::default()
    }
}

/// Reads `1600x900`.
fn parse_size(text: &str) -> Result<(u32, u32), CliError> {
    let size = text.split_once('x').and_then(|(w, h)| Some((w.parse().ok()?, h.parse().ok()?)));
    match size {
        Some((width @ 64..=16_384, height @ 64..=16_384)) => Ok((width, height)),
        _ => {
            let expects = "a size such as 1600x900 (64 to 16384 pixels)";
            Err(UsageError::Expects { expects, found: text.to_owned() }.into())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::{PALETTES, arguments};
    use super::*;
    use tilescope_gui::TEXT_PERCENT;

    #[test]
    fn every_palette_of_the_window_has_a_name_here() {
        assert_eq!(PaletteChoice::ALL.map(PaletteChoice::name), PALETTES);
        let command = arguments(clap::Command::new("export"));
        for percent in [*TEXT_PERCENT.start(), *TEXT_PERCENT.end()] {
            let words = ["export", "out", "--view", "memory", "--text-size", &percent.to_string()];
            assert_eq!(look(&command.clone().get_matches_from(words)).text_percent, percent);
        }
        for units in ByteUnits::ALL {
            let words = ["export", "out", "--view", "memory", "--units", units.name()];
            assert_eq!(look(&command.clone().get_matches_from(words)).units, units);
        }
    }
}
