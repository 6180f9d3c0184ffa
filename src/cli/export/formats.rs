//! The formats of `export`, and the options of each.

use crate::cli::command::CliError;
use crate::cli::error::UsageError;
use clap::ArgMatches;
use clap::parser::ValueSource;
use std::path::Path;

/// A file format.
pub(super) struct ExportFormat {
    /// The name on the command line.
    pub(super) name: &'static str,
    /// The extension of its files.
    pub(super) ending: &'static str,
    /// Options beyond REPORT, `--format` and `--output` that affect the output.
    pub(super) options: &'static [&'static str],
    /// True if it exports a view, which must be given.
    pub(super) is_of_view: bool,
    /// True if it exports only the trace.
    pub(super) is_trace: bool,
    /// Writes a file.
    pub(super) write: fn(&ArgMatches, &Path) -> Result<(), CliError>,
}

/// Options of pictures.
const OF_PICTURES: &[&str] =
    &["view", "compare", "at", "size", "theme", "palette", "units", "text-size"];
/// Options of CSV files.
const OF_CSV: &[&str] = &["view", "table", "compare", "per", "group-by"];
/// Options of JSON files.
const OF_JSON: &[&str] = &["view"];
/// Options of Parquet and Arrow files.
const OF_TABLE_FILES: &[&str] = &["view", "table", "range", "ipus", "tiles", "group-by"];
/// Options of traces.
const OF_TRACES: &[&str] = &["range", "ipus"];

const fn of_view(
    name: &'static str,
    options: &'static [&'static str],
    write: fn(&ArgMatches, &Path) -> Result<(), CliError>,
) -> ExportFormat {
    ExportFormat { name, ending: name, options, is_of_view: true, is_trace: false, write }
}

const fn of_table(name: &'static str) -> ExportFormat {
    ExportFormat {
        name,
        ending: name,
        options: OF_TABLE_FILES,
        is_of_view: false,
        is_trace: false,
        write: super::table_file,
    }
}

const fn of_trace(
    name: &'static str,
    ending: &'static str,
    write: fn(&ArgMatches, &Path) -> Result<(), CliError>,
) -> ExportFormat {
    ExportFormat { name, ending, options: OF_TRACES, is_of_view: false, is_trace: true, write }
}

/// All formats.
pub(super) const FORMATS: [ExportFormat; 8] = [
    of_view("png", OF_PICTURES, super::draw),
    of_view("svg", OF_PICTURES, super::draw),
    of_view("csv", OF_CSV, super::csv),
    of_view("json", OF_JSON, super::topic_json),
    of_table("parquet"),
    of_table("arrow"),
    of_trace("perfetto", "perfetto-trace", super::trace_file::perfetto),
    of_trace("chrome-trace", "json", super::trace_file::chrome),
];

/// Options that only some formats accept.
const SOME_TAKE: [&str; 14] = [
    "view",
    "table",
    "compare",
    "per",
    "at",
    "size",
    "theme",
    "palette",
    "units",
    "text-size",
    "range",
    "ipus",
    "tiles",
    "group-by",
];

/// The format selected by the user, after a check of its options.
pub(super) fn chosen(matches: &ArgMatches) -> Result<&'static ExportFormat, CliError> {
    static ALL: [ExportFormat; 8] = FORMATS;
    let name = matches.get_one::<String>("format").map_or("", String::as_str);
    let Some(format) = ALL.iter().find(|format| format.name == name) else {
        return Err(UsageError::unknown("format", name, "").into());
    };
    let is_given = |option: &&str| {
        matches.value_source(option).is_some_and(|source| source != ValueSource::DefaultValue)
    };
    let is_refused = |option: &&str| is_given(option) && !format.options.contains(option);
    if let Some(option) = SOME_TAKE.iter().find(|option| is_refused(option)) {
        let takers: Vec<&str> =
            ALL.iter().filter(|of| of.options.contains(option)).map(|of| of.name).collect();
        let takers = takers.join(", ");
        return Err(UsageError::OtherFormat { option, format: format.name, takers }.into());
    }
    if format.is_of_view && !is_given(&"view") {
        return Err(UsageError::NoView(format.name).into());
    }
    Ok(format)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_option_is_known_and_taken_by_some_format() {
        let command = super::super::arguments(clap::Command::new("export"));
        for option in SOME_TAKE {
            assert!(
                command.get_arguments().any(|argument| argument.get_id() == option),
                "{option}"
            );
            assert!(FORMATS.iter().any(|format| format.options.contains(&option)), "{option}");
        }
        let known = FORMATS.iter().flat_map(|format| format.options);
        assert!(known.into_iter().all(|option| SOME_TAKE.contains(option)));
        let common = ["report", "format", "output", "list-views", "list-tables", "help"];
        for argument in command.get_arguments() {
            let id = argument.get_id().as_str();
            assert!(common.contains(&id) || SOME_TAKE.contains(&id), "{id}");
        }
    }
}
