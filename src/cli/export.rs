//! `export`: a view of a report as a picture, drawn without a display.

use super::{CliError, Command};
use clap::{Arg, ArgAction, ArgMatches};
use std::io::Write;

/// `tilescope export`
pub const COMMAND: Command = Command { name: "export", arguments, run };

/// Width and height where the user gives none.
#[cfg(feature = "gui")]
const DEFAULT_SIZE: (u32, u32) = (1600, 900);

fn arguments(command: clap::Command) -> clap::Command {
    command
        .about("Draw a view of a report, same pixels as the window; no display is needed")
        .arg(
            Arg::new("report")
                .value_name("REPORT")
                .required_unless_present("list-views")
                .help("A directory with a profile.pop, or a .pop file"),
        )
        .arg(Arg::new("list-views").long("list-views").action(ArgAction::SetTrue).help("List the views"))
        .arg(Arg::new("view").long("view").value_name("NAME").required_unless_present("list-views").help("The view to draw"))
        .arg(Arg::new("format").long("format").value_name("FORMAT").value_parser(["png"]).default_value("png").help("Kind of picture"))
        .arg(Arg::new("size").long("size").value_name("WxH").help("Size in pixels [default: 1600x900]"))
        .arg(Arg::new("theme").long("theme").value_name("THEME").value_parser(["light", "dark"]).default_value("light").help("Colours"))
        .arg(Arg::new("output").short('o').long("output").value_name("FILE").help("File to write [default: VIEW.png]"))
        .after_help(
            "Examples:\n  tilescope export out --view execution-trace --format png --size 1600x900 -o trace.png\n  \
             tilescope export --list-views",
        )
}

#[cfg(not(feature = "gui"))]
fn run(_: &ArgMatches, _: &mut dyn Write) -> Result<(), CliError> {
    let problem = "this build draws no pictures (cargo feature \"gui\")";
    Err(CliError::Usage(problem.to_string()))
}

#[cfg(feature = "gui")]
fn run(matches: &ArgMatches, output: &mut dyn Write) -> Result<(), CliError> {
    use crate::gui;
    if matches.get_flag("list-views") {
        for view in gui::view_names() {
            writeln!(output, "{view}")?;
        }
        return Ok(());
    }
    let text = |name: &str| matches.get_one::<String>(name).map(String::as_str);
    let view = text("view").unwrap_or("");
    if !gui::view_names().contains(&view) {
        let known = gui::view_names().join(", ");
        return Err(CliError::Usage(format!("there is no view {view:?}; known: {known}")));
    }
    let size = text("size").map_or(Ok(DEFAULT_SIZE), parse_size)?;
    let file = text("output").map_or_else(|| format!("{view}.png"), str::to_string);
    let theme = if text("theme") == Some("dark") { gui::Theme::Dark } else { gui::Theme::Light };
    gui::export_png(text("report").unwrap_or("").as_ref(), view, size, theme, file.as_ref())
        .map_err(|error| CliError::Failed(error.to_string()))?;
    writeln!(output, "{file}")?;
    Ok(())
}

/// Reads `1600x900`.
#[cfg(feature = "gui")]
fn parse_size(text: &str) -> Result<(u32, u32), CliError> {
    let size = text.split_once('x').and_then(|(w, h)| Some((w.parse().ok()?, h.parse().ok()?)));
    match size {
        Some((width @ 64..=16_384, height @ 64..=16_384)) => Ok((width, height)),
        _ => Err(CliError::Usage(format!(
            "a size such as 1600x900 is expected (64 to 16384 pixels), not {text:?}"
        ))),
    }
}
