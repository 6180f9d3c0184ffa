//! Metadata of Arrow files and streams: the unit and the description of each column, and the report
//! that the table was read from.

use arrow_schema::{DataType, Field};
use std::collections::HashMap;
use tilescope_report::Report;

/// Units that state only that a value is a number.
const PLAIN: [&str; 4] = ["", "id", "number", "count"];

/// A column with the unit of its numbers and its description, if known.
pub(crate) fn field(name: impl Into<String>, kind: DataType, unit: &str, about: &str) -> Field {
    let mut metadata = HashMap::new();
    if !PLAIN.contains(&unit) {
        metadata.insert("unit".to_owned(), unit.to_owned());
    }
    if !about.is_empty() {
        metadata.insert("about".to_owned(), about.to_owned());
    }
    Field::new(name, kind, true).with_metadata(metadata)
}

/// The origin of a table: the version of the report's format, its generator, and the table.
pub(crate) fn of_report(report: &Report, table: &str) -> HashMap<String, String> {
    let mut metadata = HashMap::new();
    for key in ["format", "generator"] {
        if let Some(value) = report.meta().get(key) {
            metadata.insert(format!("tilescope.{key}"), value.clone());
        }
    }
    if !table.is_empty() {
        metadata.insert("tilescope.table".to_owned(), table.to_owned());
    }
    metadata
}
