//! Any table of a report, by name.

use crate::records::SelectedRecords;
use crate::views;
use arrow_array::RecordBatch;
use arrow_schema::{ArrowError, SchemaRef};
use std::sync::Arc;
use tilescope_analysis::records::{RECORDS, RecordError, RowFilter, RowSelection};
use tilescope_analysis::tables::at_path;
use tilescope_report::{Report, ReportError};

/// Batches one after the other.
pub type BatchIterator = Box<dyn Iterator<Item = Result<RecordBatch, ArrowError>> + Send>;

/// Short names that are understood, with those they stand for.
const SHORT_NAMES: [(&str, &str); 5] = [
    ("steps", "steps_between"),
    ("tiles", "memory_by_tile"),
    ("liveness", "liveness_steps"),
    ("compute_sets", "compute_set_totals"),
    ("exchanges", "exchange_totals"),
];

/// Why a table could not be made.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TableError {
    /// There is no table of the name.
    #[error("there is no table {name:?}{}; known: {}", nearest(name), names().join(", "))]
    Unknown {
        /// What was asked for.
        name: String,
    },
    /// The rows of a table cannot be selected so.
    #[error("rows of the table {table:?} are not selected by {}; {}", filter.name(), known_filters(filters))]
    Selection {
        /// The table.
        table: String,
        /// What it was asked to go by.
        filter: RowFilter,
        /// What it goes by.
        filters: &'static [RowFilter],
    },
    /// A range ends before it begins.
    #[error("cycles end before they begin: ({start}, {end})")]
    Backwards {
        /// The first cycle.
        start: u64,
        /// The cycle behind the last.
        end: u64,
    },
    /// The report cannot be read.
    #[error(transparent)]
    Report(#[from] ReportError),
    /// Arrow refuses what was made: a bug of ours.
    #[error(transparent)]
    Arrow(#[from] ArrowError),
}

impl From<RecordError> for TableError {
    fn from(error: RecordError) -> Self {
        match error {
            RecordError::Report(error) => Self::Report(error),
            error => Self::Arrow(ArrowError::ComputeError(error.to_string())),
        }
    }
}

/// `, did you mean …?` where a name is near.
fn nearest(name: &str) -> String {
    let likeness = |known: &String| strsim::normalized_damerau_levenshtein(name, known);
    let short = SHORT_NAMES.iter().map(|(short, _)| (*short).to_owned());
    let best = names().into_iter().chain(short).max_by(|a, b| likeness(a).total_cmp(&likeness(b)));
    let best = best.filter(|best| likeness(best) >= 0.6);
    best.map_or_else(String::new, |best| format!(", did you mean {best:?}?"))
}

fn names() -> Vec<String> {
    tables().into_iter().map(|table| table.name).collect()
}

fn known_filters(filters: &[RowFilter]) -> String {
    let names: Vec<&str> = filters.iter().map(|filter| filter.name()).collect();
    match names.as_slice() {
        [] => "it is written whole".to_owned(),
        names => format!("it takes {}", names.join(", ")),
    }
}

impl From<TableError> for ArrowError {
    fn from(error: TableError) -> Self {
        match error {
            TableError::Report(error) => Self::ExternalError(Box::new(error)),
            TableError::Arrow(error) => error,
            error => Self::ComputeError(error.to_string()),
        }
    }
}

/// A table that can be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TableListing {
    /// Its name: `marks`, or `memory/tiles` of a view.
    pub name: String,
    /// What a row is.
    pub about: &'static str,
    /// By what its rows can be selected.
    pub filters: &'static [RowFilter],
}

/// Every table: records, then those of views.
pub fn tables() -> Vec<TableListing> {
    let mut found = Vec::new();
    for table in RECORDS {
        if let Some(filters) = table.filters {
            found.push(TableListing { name: table.name.to_owned(), about: table.about, filters });
        }
    }
    found.extend(views::names().map(|(name, about)| TableListing { name, about, filters: &[] }));
    found
}

/// A table of a report.
pub enum ArrowTable {
    /// In memory.
    Whole(RecordBatch),
    /// Rows that are read batch by batch, and how many there are.
    Long(Arc<SelectedRecords>, u64),
}

impl ArrowTable {
    /// Columns and their types.
    pub fn schema(&self) -> SchemaRef {
        match self {
            Self::Whole(batch) => batch.schema(),
            Self::Long(records, _) => records.schema(),
        }
    }

    /// Number of rows.
    pub fn rows(&self) -> u64 {
        match self {
            Self::Whole(batch) => batch.num_rows() as u64,
            Self::Long(_, rows) => *rows,
        }
    }

    /// The rows, batch by batch.
    pub fn batches(&self) -> BatchIterator {
        match self {
            Self::Whole(batch) => Box::new(std::iter::once(Ok(batch.clone()))),
            Self::Long(records, _) => match records.batches() {
                Ok(batches) => Box::new(batches),
                Err(error) => Box::new(std::iter::once(Err(error.into()))),
            },
        }
    }
}

/// The selected rows of a table.
///
/// # Errors
/// An unknown name, a selection that the table does not take, parts of the file that cannot be read.
pub fn read_table(
    report: &Arc<Report>,
    name: &str,
    selection: &RowSelection,
) -> Result<ArrowTable, TableError> {
    if let Some((start, end)) = selection.cycles.filter(|(start, end)| end < start) {
        return Err(TableError::Backwards { start, end });
    }
    let whole_name = SHORT_NAMES.iter().find(|(short, _)| *short == name);
    let name = whole_name.map_or(name, |(_, whole)| whole);
    let refuse_others = |filters: &'static [RowFilter]| {
        let refused = selection.filters().find(|filter| !filters.contains(filter));
        let table = || name.to_owned();
        refused
            .map_or(Ok(()), |filter| Err(TableError::Selection { table: table(), filter, filters }))
    };
    let record = RECORDS.iter().find(|table| table.name == name);
    if let Some((table, filters)) = record.and_then(|table| Some((table, table.filters?))) {
        refuse_others(filters)?;
        let records = SelectedRecords::new(table, report, selection);
        return match records.long_count()? {
            Some(count) => Ok(ArrowTable::Long(Arc::new(records), count)),
            None => Ok(ArrowTable::Whole(records.whole()?)),
        };
    }
    let Ok(table) = at_path(name) else {
        return Err(TableError::Unknown { name: name.to_owned() });
    };
    refuse_others(&[])?;
    Ok(ArrowTable::Whole(views::batch(&(table.read)(report)?)?))
}
