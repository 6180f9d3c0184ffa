//! `export`: a view of a report as a picture, or one of its tables, without a display.

use super::{CliCommand, CliError, compare, open_report};
use clap::{Arg, ArgAction, ArgMatches};
use std::io::Write;
use std::path::{Path, PathBuf};
use tilescope_analysis::tables::{self, TABLES};
use tilescope_report::atomic_file::write_whole;
use tilescope_report::units::ByteUnits;

/// `tilescope export`
pub(super) const COMMAND: CliCommand = CliCommand { name: "export", arguments, run };

/// Names of the palettes; a build without pictures knows them too, so that it can say that.
const PALETTES: [&str; 2] = ["classic", "colour-blind-safe"];

/// Width and height where the user gives none.
#[cfg(feature = "gui")]
const DEFAULT_SIZE: (u32, u32) = (1600, 900);

const EXAMPLES: &str = "\
Examples:
  tilescope export out --view execution-trace --format png --size 1600x900 -o trace.png
  tilescope export out --view memory --format svg -o memory.svg
  tilescope export out --view memory --format svg --at 'tilescope:?view=memory&select.tiles=[3]'
  tilescope export out --view operations --format csv --table operations -o costs.csv
  tilescope export out --view memory --theme dark --palette colour-blind-safe --units si --text-size 150
  tilescope export before --compare after --view execution-trace -o both.png
  tilescope export before --compare after --view memory --format csv --table variables
  tilescope export --list-views
  tilescope export --list-tables";

fn arguments(command: clap::Command) -> clap::Command {
    let lists = ["list-views", "list-tables"];
    let list = |name: &'static str, help: &'static str| {
        Arg::new(name).long(name).action(ArgAction::SetTrue).help(help)
    };
    command
        .about("Write a view of a report as PNG or SVG, exactly as the window draws it, or one of its tables as CSV")
        .arg(
            Arg::new("report")
                .value_name("REPORT")
                .required_unless_present_any(lists)
                .value_parser(clap::value_parser!(PathBuf))
                .help("Report: a directory that contains profile.pop, or a .pop file"),
        )
        .arg(list("list-views", "List the views"))
        .arg(list("list-tables", "List the tables of all views"))
        .arg(
            Arg::new("view")
                .long("view")
                .value_name("NAME")
                .required_unless_present_any(lists)
                .help("View to write"),
        )
        .arg(
            Arg::new("format")
                .long("format")
                .value_name("FORMAT")
                .value_parser(["png", "svg", "csv"])
                .default_value("png")
                .help("File format"),
        )
        .arg(Arg::new("table").long("table").value_name("NAME").help("Table to write as CSV [default: the first of the view]"))
        .arg(Arg::new("compare").long("compare").value_name("REPORT").value_parser(clap::value_parser!(PathBuf)).help("Second report, shown beside the first"))
        .arg(compare::unit_argument())
        .arg(Arg::new("at").long("at").value_name("LINK").help("Draw the place a copied link points to"))
        .arg(Arg::new("size").long("size").value_name("WxH").help("Size of the picture in pixels [default: 1600x900]"))
        .arg(
            Arg::new("theme")
                .long("theme")
                .value_name("THEME")
                .value_parser(["light", "dark"])
                .default_value("light")
                .help("Theme of the picture"),
        )
        .arg(
            Arg::new("palette")
                .long("palette")
                .value_name("PALETTE")
                .value_parser(PALETTES)
                .default_value(PALETTES[0])
                .help("Colours of the picture"),
        )
        .arg(
            Arg::new("units")
                .long("units")
                .value_name("UNITS")
                .value_parser(ByteUnits::ALL.map(ByteUnits::name))
                .default_value(ByteUnits::default().name())
                .help("Units of byte counts: powers of 1024, powers of 1000, or all digits"),
        )
        .arg(
            Arg::new("text-size")
                .long("text-size")
                .value_name("PERCENT")
                .value_parser(clap::value_parser!(u16).range(50..=300))
                .default_value("100")
                .help("Scale of text and everything else in the picture"),
        )
        .arg(Arg::new("output").short('o').long("output").value_name("FILE").help("File to write [default: VIEW.FORMAT]"))
        .after_help(EXAMPLES)
}

fn run(matches: &ArgMatches, output: &mut dyn Write) -> Result<(), CliError> {
    if matches.get_flag("list-tables") {
        for table in TABLES {
            writeln!(output, "{:16} {:14} {}", table.view, table.name, table.about)?;
        }
        return Ok(());
    }
    let text = |name: &str| matches.get_one::<String>(name).map(String::as_str);
    let format = text("format").unwrap_or("png");
    if format == "csv" && !matches.get_flag("list-views") {
        let view = text("view").unwrap_or("");
        let file = text("output").map_or_else(|| format!("{view}.csv"), str::to_string);
        keep_reports(&file)?;
        if let Some(target) = matches.get_one::<PathBuf>("compare") {
            let target = (target.as_path(), compare::unit_of(matches));
            let rows = compare::rows(&open_report(matches)?, target, view, text("table"))?;
            write_whole(file.as_ref(), rows.csv().as_bytes())?;
            return Ok(writeln!(output, "{file}")?);
        }
        let table = tables::named(view, text("table"))
            .map_err(|error| CliError::Usage(error.to_string()))?;
        let report = open_report(matches)?;
        let rows = (table.read)(&report).map_err(|error| CliError::Failed(error.to_string()))?;
        write_whole(file.as_ref(), rows.csv().as_bytes())?;
        writeln!(output, "{file}")?;
        return Ok(());
    }
    if text("table").is_some() {
        return Err(CliError::Usage("--table needs --format csv".to_owned()));
    }
    picture(matches, output)
}

/// Refuses to write a picture or a table over a report.
fn keep_reports(file: &str) -> Result<(), CliError> {
    if Path::new(file).extension().is_some_and(|ending| ending == "pop") {
        let problem = "would be a picture or a table under the name of a report; choose a name that \
                       ends in .png, .svg or .csv";
        return Err(CliError::Usage(format!("{file} {problem}")));
    }
    Ok(())
}

#[cfg(not(feature = "gui"))]
fn picture(_: &ArgMatches, _: &mut dyn Write) -> Result<(), CliError> {
    let problem =
        "this build cannot draw pictures (it lacks the cargo feature \"gui\"); --format csv works";
    Err(CliError::Usage(problem.to_string()))
}

#[cfg(feature = "gui")]
fn picture(matches: &ArgMatches, output: &mut dyn Write) -> Result<(), CliError> {
    use tilescope_gui as gui;
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
    let (format, ending) = match text("format") {
        Some("svg") => (gui::PictureFormat::Svg, "svg"),
        _ => (gui::PictureFormat::Png, "png"),
    };
    let file = text("output").map_or_else(|| format!("{view}.{ending}"), str::to_string);
    keep_reports(&file)?;
    let theme = if text("theme") == Some("dark") { gui::Theme::Dark } else { gui::Theme::Light };
    let export = gui::PictureOptions {
        view,
        compare: matches.get_one::<PathBuf>("compare").map(PathBuf::as_path),
        at: text("at"),
        size,
        look: look(matches),
        theme,
        format,
    };
    gui::export(super::path_of(matches, "report"), &export, file.as_ref())
        .map_err(|error| CliError::Failed(error.to_string()))?;
    writeln!(output, "{file}")?;
    Ok(())
}

/// Units, colours and text size that the user asks for.
#[cfg(feature = "gui")]
fn look(matches: &ArgMatches) -> tilescope_gui::AppearancePrefs {
    use tilescope_gui::{AppearancePrefs, PaletteChoice};
    let named = |name: &str| matches.get_one::<String>(name).map_or("", String::as_str);
    let (units, palette) = (named("units"), named("palette"));
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
#[cfg(feature = "gui")]
fn parse_size(text: &str) -> Result<(u32, u32), CliError> {
    let size = text.split_once('x').and_then(|(w, h)| Some((w.parse().ok()?, h.parse().ok()?)));
    match size {
        Some((width @ 64..=16_384, height @ 64..=16_384)) => Ok((width, height)),
        _ => Err(CliError::Usage(format!(
            "expected a size such as 1600x900 (64 to 16384 pixels), not {text:?}"
        ))),
    }
}

#[cfg(all(test, feature = "gui"))]
mod tests {
    use super::*;
    use tilescope_gui::{PaletteChoice, TEXT_PERCENT};

    #[test]
    fn every_look_of_the_window_has_a_name_here() {
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
