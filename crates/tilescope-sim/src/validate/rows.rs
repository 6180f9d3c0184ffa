//! The reader of a file of measured operations.

use super::config::{ConfigTextError, RowConfig};
use super::families::{FAMILIES, OperationFamily};
use crate::targets::{CHIPS, Chip, find_chip};
use tilescope_report::units::{Bytes, Cycles};

#[derive(Clone, Debug)]
pub(crate) struct MeasuredRow {
    /// The line of the file, from 1.
    pub line: usize,
    pub name: String,
    /// The kind of operation.
    pub family: &'static OperationFamily,
    pub config: RowConfig,
    pub chip: &'static Chip,
    pub cycles: Cycles,
    /// Always-live bytes of all tiles, and the peak of the others on each tile, if measured.
    pub memory_bytes: Option<Bytes>,
    /// The highest address in use on any tile, if measured.
    pub max_tile: Option<Bytes>,
}

/// The error of an invalid line.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("line {line}: {problem}")]
pub struct RowError {
    /// The line of the file, from 1.
    pub line: usize,
    /// The problem of the line.
    pub problem: String,
}

/// The errors in the text of a file, independent of its costs.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
enum RowTextError {
    #[error("the file is empty; columns {}", COLUMNS.join(", "))]
    EmptyFile,
    #[error("the file has no rows")]
    NoRows,
    #[error("column {0} is missing")]
    MissingColumn(&'static str),
    #[error("{column} is missing: the row has {fields} fields and needs at least {needed}")]
    MissingField { column: &'static str, fields: usize, needed: usize },
    #[error("unknown family {name:?}; known: {}", known_families())]
    UnknownFamily { name: String },
    #[error("unknown target {name:?}; rows are measured on real chips; known: {}", known_targets())]
    UnknownTarget { name: String },
    #[error("{column}: expected a whole number above 0, found {text:?}")]
    NotMeasured { column: &'static str, text: String },
    #[error("a quote is not closed")]
    OpenQuote,
    #[error(transparent)]
    RowConfig(#[from] ConfigTextError),
}

fn known_families() -> String {
    FAMILIES.iter().map(|family| family.name).collect::<Vec<_>>().join(", ")
}

fn known_targets() -> String {
    CHIPS.iter().map(|chip| chip.name).collect::<Vec<_>>().join(", ")
}

const COLUMNS: [&str; 7] = [
    "name",
    "family",
    "config",
    "target",
    "cycles",
    "memory_bytes",
    "max_tile_bytes_including_gaps",
];

/// Reads all rows. Empty lines and comments are skipped.
///
/// # Errors
/// Returns an error for the first invalid line, and for files without rows.
pub(crate) fn read_rows(text: &str) -> Result<Vec<MeasuredRow>, RowError> {
    let numbered = (1..).zip(text.lines());
    let mut lines = numbered.filter(|(_, line)| !line.trim().is_empty() && !line.starts_with('#'));
    let at = |line: usize| move |error: RowTextError| RowError { line, problem: error.to_string() };
    let (first, header) = lines.next().ok_or_else(|| at(1)(RowTextError::EmptyFile))?;
    let places = columns(header).map_err(at(first))?;
    let rows: Result<Vec<MeasuredRow>, RowError> =
        lines.map(|(line, text)| row(line, text, places).map_err(at(line))).collect();
    match rows {
        Ok(rows) if rows.is_empty() => Err(at(first)(RowTextError::NoRows)),
        rows => rows,
    }
}

/// The position of each of [`COLUMNS`].
fn columns(header: &str) -> Result<[usize; COLUMNS.len()], RowTextError> {
    let names = fields(header)?;
    let mut places = [0; COLUMNS.len()];
    for (place, column) in places.iter_mut().zip(COLUMNS) {
        let found = names.iter().position(|name| name.trim() == column);
        *place = found.ok_or(RowTextError::MissingColumn(column))?;
    }
    Ok(places)
}

fn row(
    line: usize,
    text: &str,
    places: [usize; COLUMNS.len()],
) -> Result<MeasuredRow, RowTextError> {
    let fields = fields(text)?;
    let mut found = [""; COLUMNS.len()];
    for ((found, place), column) in found.iter_mut().zip(places).zip(COLUMNS) {
        let field = fields.get(place).ok_or(RowTextError::MissingField {
            column,
            fields: fields.len(),
            needed: place + 1,
        })?;
        *found = field.trim();
    }
    let [name, family, config, target, cycles, memory, fullest] = found;
    Ok(MeasuredRow {
        line,
        name: name.to_string(),
        family: OperationFamily::find(family)
            .ok_or_else(|| RowTextError::UnknownFamily { name: family.to_owned() })?,
        config: RowConfig::parse(config)?,
        chip: find_chip(target)
            .ok_or_else(|| RowTextError::UnknownTarget { name: target.to_owned() })?,
        cycles: Cycles(measured("cycles", cycles)?),
        memory_bytes: measured_bytes("memory_bytes", memory)?,
        max_tile: measured_bytes("max_tile_bytes_including_gaps", fullest)?,
    })
}

/// Parses a measured number. It must be above 0, because errors are shares of it.
fn measured(column: &'static str, text: &str) -> Result<u64, RowTextError> {
    text.parse()
        .ok()
        .filter(|number| *number > 0)
        .ok_or_else(|| RowTextError::NotMeasured { column, text: text.to_owned() })
}

/// Parses bytes that may not have been measured.
fn measured_bytes(column: &'static str, text: &str) -> Result<Option<Bytes>, RowTextError> {
    if text.is_empty() {
        return Ok(None);
    }
    measured(column, text).map(|bytes| Some(Bytes(bytes)))
}

/// Splits a line into fields at commas. Quotes protect commas.
fn fields(line: &str) -> Result<Vec<String>, RowTextError> {
    let mut fields = vec![String::new()];
    let mut quoted = false;
    for letter in line.chars() {
        match letter {
            '"' => quoted = !quoted,
            ',' if !quoted => fields.push(String::new()),
            _ => {
                if let Some(field) = fields.last_mut() {
                    field.push(letter);
                }
            }
        }
    }
    if quoted { Err(RowTextError::OpenQuote) } else { Ok(fields) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quotes_protect_commas() {
        assert_eq!(
            fields("a,\"b=1,2 c=3\",d"),
            Ok(vec!["a".into(), "b=1,2 c=3".into(), "d".into()])
        );
        assert!(fields("a,\"b").is_err());
    }
}
