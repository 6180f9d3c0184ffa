//! Reading a file of measured operations.

use super::config::Config;
use super::families::{FAMILIES, Family};
use crate::lower::alone::Cost;
use crate::targets::{CHIPS, Chip, chip};

#[derive(Clone, Debug)]
pub(crate) struct Row {
    /// Line of the file, from 1.
    pub line: usize,
    pub name: String,
    /// What kind of operation it is.
    pub family: &'static Family,
    pub config: Config,
    pub chip: &'static Chip,
    pub measured: Cost,
}

/// A line that cannot be understood.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("line {line}: {problem}")]
pub struct RowError {
    /// Line of the file, from 1.
    pub line: usize,
    /// What is wrong with it.
    pub problem: String,
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

/// Reads all rows; empty lines are left out.
///
/// # Errors
/// The first line that is broken, and files without rows.
pub(crate) fn read(text: &str) -> Result<Vec<Row>, RowError> {
    let numbered = (1..).zip(text.lines());
    let mut lines = numbered.filter(|(_, line)| !line.trim().is_empty());
    let at = |line: usize| move |problem: String| RowError { line, problem };
    let (first, header) = lines
        .next()
        .ok_or_else(|| at(1)(format!("the file is empty; columns {}", COLUMNS.join(", "))))?;
    let places = columns(header).map_err(at(first))?;
    let rows: Result<Vec<Row>, RowError> =
        lines.map(|(line, text)| row(line, text, places).map_err(at(line))).collect();
    match rows {
        Ok(rows) if rows.is_empty() => Err(at(first)("the file has no rows".to_string())),
        rows => rows,
    }
}

/// Where each of [`COLUMNS`] is.
fn columns(header: &str) -> Result<[usize; COLUMNS.len()], String> {
    let names = fields(header)?;
    let mut places = [0; COLUMNS.len()];
    for (place, column) in places.iter_mut().zip(COLUMNS) {
        let found = names.iter().position(|name| name.trim() == column);
        *place = found.ok_or_else(|| format!("column {column} is missing"))?;
    }
    Ok(places)
}

fn row(line: usize, text: &str, places: [usize; COLUMNS.len()]) -> Result<Row, String> {
    let fields = fields(text)?;
    let mut found = [""; COLUMNS.len()];
    for ((found, place), column) in found.iter_mut().zip(places).zip(COLUMNS) {
        let field = fields.get(place).ok_or_else(|| {
            format!("{column} is missing: {} fields of at least {}", fields.len(), place + 1)
        })?;
        *found = field.trim();
    }
    let [name, family, config, target, cycles, memory, fullest] = found;
    let chips: Vec<&str> = CHIPS.iter().map(|chip| chip.name).collect();
    Ok(Row {
        line,
        name: name.to_string(),
        family: Family::find(family).ok_or_else(|| {
            let known: Vec<&str> = FAMILIES.iter().map(|family| family.name).collect();
            format!("unknown family {family:?}; known are {}", known.join(", "))
        })?,
        config: Config::parse(config)?,
        chip: chip(target)
            .ok_or_else(|| format!("unknown target {target:?}; known are {}", chips.join(", ")))?,
        measured: Cost {
            cycles: measured("cycles", cycles)?,
            memory_bytes: measured("memory_bytes", memory)?,
            fullest_tile_bytes: measured("max_tile_bytes_including_gaps", fullest)?,
        },
    })
}

/// A measured number: errors are shares of it, so it is above 0.
fn measured(column: &str, text: &str) -> Result<u64, String> {
    text.parse()
        .ok()
        .filter(|number| *number > 0)
        .ok_or_else(|| format!("{column}: expected a whole number above 0, found {text:?}"))
}

/// Fields of a line, separated by commas; quotes protect commas.
fn fields(line: &str) -> Result<Vec<String>, String> {
    let mut fields = vec![String::new()];
    let mut quoted = false;
    for letter in line.chars() {
        match letter {
            '"' => quoted = !quoted,
            ',' if !quoted => fields.push(String::new()),
            _ => fields.last_mut().into_iter().for_each(|field| field.push(letter)),
        }
    }
    if quoted { Err("a quote is not closed".to_string()) } else { Ok(fields) }
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
