//! The tables of every topic: columns and cells are declared once here, for all readers. [`find`]
//! and [`listed`] include the [records](crate::records).

pub mod critical_path;
pub mod exchange_code;
pub mod execution_trace;
pub mod host;
pub mod limits;
pub mod liveness;
pub mod memory;
pub mod operations;
mod report_tables;
pub mod tile_mapping;
pub mod tile_samples;

pub use report_tables::TABLES;

use crate::data_table::{DataTable, TableColumn};
use crate::grouping::{GroupKey, GroupingError};
use crate::records::{RECORDS, RecordTable, RowFilter};
use tilescope_report::units::{TileId, grouped};
use tilescope_report::{Report, ReportError};

/// A table that a report can provide.
#[derive(Debug)]
pub struct ReportTable {
    /// Name of its view.
    pub view: &'static str,
    /// Its name within the view.
    pub name: &'static str,
    pub about: &'static str,
    /// True if its view shows it as a table; others show its figures as graphs, trees or cards.
    pub on_screen: bool,
    /// The record with the same rows, which has a different name in SQL and files.
    pub record: Option<&'static RecordTable>,
    /// Reads the table.
    pub read: fn(&Report) -> Result<DataTable, ReportError>,
}

impl ReportTable {
    /// Its name among the tables of all views: `memory/variables`.
    #[must_use]
    pub fn path(&self) -> String {
        format!("{}/{}", self.view, self.name)
    }

    /// The table with what its rows can be grouped by.
    ///
    /// # Errors
    /// Parts of the file that cannot be read.
    pub fn keyed(&self, report: &Report) -> Result<DataTable, ReportError> {
        (self.read)(report)?.with_keys(report)
    }

    /// Its rows in groups.
    ///
    /// # Errors
    /// A table whose rows name no operations, and parts of the file that cannot be read.
    pub fn grouped(&self, report: &Report, key: GroupKey) -> Result<DataTable, GroupingError> {
        let groups = self.keyed(report)?.grouped_by(key);
        groups.ok_or_else(|| GroupingError::NoGroups { table: self.path() })
    }
}

/// Error for a table that a view does not have.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum UnknownTableError {
    /// The view has no table of this name.
    #[error("the view {view:?} has no table {name:?}; known: {}", known.join(", "))]
    NotInView {
        /// Name of the view.
        view: String,
        /// The requested name.
        name: String,
        /// Names of its tables.
        known: Vec<&'static str>,
    },
    /// The view has no tables.
    #[error("the view {view:?} has no tables")]
    NoneInView {
        /// Name of the view.
        view: String,
    },
}

/// Every table of a topic, in the order of topics.
pub fn all() -> impl Iterator<Item = &'static ReportTable> {
    TABLES.iter()
}

/// Short names, with the full names they stand for.
const SHORT_NAMES: [(&str, &str); 5] = [
    ("steps", "steps_between"),
    ("tiles", "memory_by_tile"),
    ("liveness", "liveness_steps"),
    ("compute_sets", "compute_set_totals"),
    ("exchanges", "exchange_totals"),
];

/// An entry in a list of tables.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TableListing {
    /// Its name: `marks`, or `memory/tiles` for a table of a topic.
    pub name: String,
    /// The meaning of a row.
    pub about: &'static str,
    /// Properties to select its rows by.
    pub filters: &'static [RowFilter],
}

/// All tables for files, Python and agents: records, then those of topics.
pub fn listed() -> Vec<TableListing> {
    let mut found = Vec::new();
    for table in RECORDS {
        if let Some(filters) = table.filters {
            found.push(TableListing { name: table.name.to_owned(), about: table.about, filters });
        }
    }
    for table in all() {
        let filters = table.record.and_then(|record| record.filters).unwrap_or_default();
        found.push(TableListing { name: table.path(), about: table.about, filters });
    }
    found
}

/// A table of [`listed`].
#[derive(Clone, Copy)]
pub enum NamedTable {
    Record(&'static RecordTable),
    OfTopic(&'static ReportTable),
}

/// The table with a name, a short name or a path.
///
/// # Errors
/// No such table; the error lists the known ones.
pub fn find(name: &str) -> Result<NamedTable, UnknownTableError> {
    let whole_name = SHORT_NAMES.iter().find(|(short, _)| *short == name);
    let name = whole_name.map_or(name, |(_, whole)| whole);
    let record = RECORDS.iter().find(|table| table.name == name && table.filters.is_some());
    if let Some(record) = record {
        return Ok(NamedTable::Record(record));
    }
    at_path(name).map(NamedTable::OfTopic)
}

/// The names that [`find`] accepts.
pub fn names() -> impl Iterator<Item = String> {
    let short = SHORT_NAMES.iter().map(|(short, _)| (*short).to_owned());
    listed().into_iter().map(|table| table.name).chain(short)
}

/// The tables of a view or a topic, the most important first.
pub fn of_view(view: &str) -> impl Iterator<Item = &'static ReportTable> + use<'_> {
    all().filter(move |table| table.view == view)
}

/// The table with this name, or the first one of the view.
///
/// # Errors
/// No such table; the error lists those of the view.
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

/// The table at a path, `memory/variables`, or the first one of the view for `memory`.
///
/// # Errors
/// No such table; the error lists those of the view.
pub fn at_path(path: &str) -> Result<&'static ReportTable, UnknownTableError> {
    let (view, name) = path.split_once('/').map_or((path, None), |(view, of)| (view, Some(of)));
    named(view, name)
}

/// Columns of bytes: one for each tile, or one with this title for all tiles.
fn tile_columns(tiles: &[TileId], title: &str) -> Vec<TableColumn> {
    if tiles.is_empty() {
        return vec![TableColumn::bytes(title)];
    }
    let mut columns = Vec::new();
    for tile in tiles {
        columns.push(TableColumn::bytes(format!("Tile {}", grouped((*tile).into()))));
    }
    columns
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_unique_within_a_view() {
        for (at, table) in TABLES.iter().enumerate() {
            let same = |other: &ReportTable| other.view == table.view && other.name == table.name;
            assert!(!TABLES[..at].iter().any(same), "{} {}", table.view, table.name);
        }
        assert!(named("memory", Some("nonsense")).unwrap_err().to_string().contains("variables"));
    }

    #[test]
    fn every_listed_name_is_found() {
        for name in names() {
            assert!(find(&name).is_ok(), "{name}");
        }
        let known = |name: &str| RECORDS.iter().any(|record| record.name == name);
        assert!(SHORT_NAMES.iter().all(|(_, name)| known(name)));
        assert!(all().filter_map(|table| table.record).all(|record| known(record.name)));
        assert!(matches!(find("tiles"), Ok(NamedTable::Record(_))));
        assert!(find("nonsense").is_err());
    }
}
