//! The tables of every view as names, columns and rows: what is saved as CSV.

mod report_tables;

pub use report_tables::TABLES;

use std::fmt::Write;
use tilescope_report::{Report, ReportError};

/// One value of a table.
#[derive(Clone, Debug, PartialEq)]
pub enum TableCell {
    Text(String),
    /// A whole number, in the unit that the head of its column names.
    Number(u64),
    /// A share or another fraction.
    Fraction(f64),
    Missing,
}

impl From<u64> for TableCell {
    fn from(value: u64) -> Self {
        Self::Number(value)
    }
}

impl From<u32> for TableCell {
    fn from(value: u32) -> Self {
        Self::Number(value.into())
    }
}

impl From<usize> for TableCell {
    fn from(value: usize) -> Self {
        Self::Number(value as u64)
    }
}

impl From<f64> for TableCell {
    fn from(value: f64) -> Self {
        Self::Fraction(value)
    }
}

impl From<&str> for TableCell {
    fn from(text: &str) -> Self {
        Self::Text(text.to_owned())
    }
}

impl From<String> for TableCell {
    fn from(text: String) -> Self {
        Self::Text(text)
    }
}

impl<T: Into<Self>> From<Option<T>> for TableCell {
    fn from(value: Option<T>) -> Self {
        value.map_or(Self::Missing, Into::into)
    }
}

/// Column titles and rows of a table.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct TableRows {
    /// Heads of columns, with units.
    pub columns: Vec<&'static str>,
    /// Rows, each as long as there are columns.
    pub rows: Vec<Vec<TableCell>>,
}

/// A table that a report can give.
#[derive(Debug)]
pub struct ReportTable {
    /// Name of the view it belongs to.
    pub view: &'static str,
    /// Its name within the view.
    pub name: &'static str,
    pub about: &'static str,
    pub read: fn(&Report) -> Result<TableRows, ReportError>,
}

/// A table that a view does not have.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum UnknownTableError {
    /// Not this one.
    #[error("the view {view:?} has no table {name:?}; it has: {}", known.join(", "))]
    NotInView {
        /// Name of the view.
        view: String,
        /// What was asked for.
        name: String,
        /// Names of its tables.
        known: Vec<&'static str>,
    },
    /// None at all.
    #[error("the view {view:?} has no tables")]
    NoneInView {
        /// Name of the view.
        view: String,
    },
}

/// The tables of a view, the most important first.
pub fn of_view(view: &str) -> impl Iterator<Item = &'static ReportTable> {
    TABLES.iter().filter(move |table| table.view == view)
}

/// The table of this name, or the first one of the view; what there is if there is no such table.
///
/// # Errors
/// What the view has instead.
pub fn named(view: &str, name: Option<&str>) -> Result<&'static ReportTable, UnknownTableError> {
    let found = of_view(view).find(|table| name.is_none_or(|name| name == table.name));
    found.ok_or_else(|| {
        let known: Vec<&str> = of_view(view).map(|table| table.name).collect();
        let view = view.to_owned();
        match name {
            Some(name) if !known.is_empty() => {
                UnknownTableError::NotInView { view, name: name.to_owned(), known }
            }
            _ => UnknownTableError::NoneInView { view },
        }
    })
}

impl TableRows {
    /// As RFC 4180 writes tables, with plain line ends.
    pub fn csv(&self) -> String {
        let mut text = self.columns.iter().map(|head| quoted(head)).collect::<Vec<_>>().join(",");
        text.push('\n');
        for row in &self.rows {
            for (at, cell) in row.iter().enumerate() {
                if at > 0 {
                    text.push(',');
                }
                // Writing into a text cannot fail.
                let _ = match cell {
                    TableCell::Text(words) => write!(text, "{}", quoted(words)),
                    TableCell::Number(value) => write!(text, "{value}"),
                    TableCell::Fraction(value) => write!(text, "{value}"),
                    TableCell::Missing => Ok(()),
                };
            }
            text.push('\n');
        }
        text
    }
}

/// Text in quotes where a comma, a quote or a line end makes that necessary.
fn quoted(text: &str) -> String {
    if text.contains([',', '"', '\n', '\r']) {
        format!("\"{}\"", text.replace('"', "\"\""))
    } else {
        text.to_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_quoted_only_where_they_must_be() {
        let rows = TableRows {
            columns: vec!["name", "bytes"],
            rows: vec![
                vec!["a,b \"c\"".into(), 7u64.into()],
                vec!["plain".into(), TableCell::Missing],
                vec![0.25.into(), 1u32.into()],
            ],
        };
        let csv = "name,bytes\n\"a,b \"\"c\"\"\",7\nplain,\n0.25,1\n";
        assert_eq!(rows.csv(), csv);
    }

    #[test]
    fn names_are_unique_within_a_view() {
        for (at, table) in TABLES.iter().enumerate() {
            let same = |other: &ReportTable| other.view == table.view && other.name == table.name;
            assert!(!TABLES[..at].iter().any(same), "{} {}", table.view, table.name);
        }
        assert!(named("memory", Some("nonsense")).unwrap_err().to_string().contains("variables"));
    }
}
