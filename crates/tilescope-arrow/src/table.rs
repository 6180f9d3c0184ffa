//! Any table of a report, by name.

use crate::metadata::of_report;
use crate::records::SelectedRecords;
use crate::views;
use arrow_array::RecordBatch;
use arrow_schema::{ArrowError, SchemaRef};
use std::sync::Arc;
use tilescope_analysis::grouping::{GroupKey, GroupingError};
use tilescope_analysis::records::{RecordError, RowFilter, RowSelection};
use tilescope_analysis::tables::{self, NamedTable};
use tilescope_report::{Report, ReportError};

/// An iterator over batches.
pub type BatchIterator = Box<dyn Iterator<Item = Result<RecordBatch, ArrowError>> + Send>;

/// The reason why a table could not be read.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TableError {
    /// There is no table with this name.
    #[error("unknown table {name:?}{}; known: {}", nearest(name), known_names())]
    Unknown {
        /// The requested name.
        name: String,
    },
    /// The table cannot be filtered in this way.
    #[error("rows of the table {table:?} are not selected by {}; {}", filter.name(), known_filters(filters))]
    Selection {
        /// The table.
        table: String,
        /// The requested filter.
        filter: RowFilter,
        /// The filters that it supports.
        filters: &'static [RowFilter],
    },
    /// A range ends before it begins.
    #[error("cycles end before they begin: ({start}, {end})")]
    Backwards {
        /// The first cycle.
        start: u64,
        /// The cycle after the last.
        end: u64,
    },
    /// Its rows cannot be grouped.
    #[error(transparent)]
    Grouping(GroupingError),
    /// The report cannot be read.
    #[error(transparent)]
    Report(#[from] ReportError),
    /// Arrow refuses our data: a bug.
    #[error(transparent)]
    Arrow(#[from] ArrowError),
}

impl From<GroupingError> for TableError {
    fn from(error: GroupingError) -> Self {
        match error {
            GroupingError::Report(error) => Self::Report(error),
            error => Self::Grouping(error),
        }
    }
}

impl From<RecordError> for TableError {
    fn from(error: RecordError) -> Self {
        match error {
            RecordError::Report(error) => Self::Report(error),
            error => Self::Arrow(ArrowError::ComputeError(error.to_string())),
        }
    }
}

/// `, did you mean …?` if a known name is similar.
fn nearest(name: &str) -> String {
    let measure_likeness = |known: &String| strsim::normalized_damerau_levenshtein(name, known);
    let best = tables::names().max_by(|a, b| measure_likeness(a).total_cmp(&measure_likeness(b)));
    let best = best.filter(|best| measure_likeness(best) >= 0.6);
    best.map_or_else(String::new, |best| format!(", did you mean {best:?}?"))
}

fn known_names() -> String {
    let names: Vec<String> = tables::listed().into_iter().map(|table| table.name).collect();
    names.join(", ")
}

fn known_filters(filters: &[RowFilter]) -> String {
    let names: Vec<&str> = filters.iter().map(|filter| filter.name()).collect();
    match names.as_slice() {
        [] => "it is always written whole".to_owned(),
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

/// A table of a report.
pub enum ArrowTable {
    /// A table in memory.
    Whole(RecordBatch),
    /// Rows that are read batch by batch, and their number.
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
/// The name is unknown, the table does not support the selection, or a part of the file cannot be
/// read.
pub fn read_table(
    report: &Arc<Report>,
    name: &str,
    selection: &RowSelection,
) -> Result<ArrowTable, TableError> {
    if let Some((start, end)) = selection.cycles.filter(|(start, end)| end < start) {
        return Err(TableError::Backwards { start, end });
    }
    let Ok(found) = tables::find(name) else {
        return Err(TableError::Unknown { name: name.to_owned() });
    };
    let record = match found {
        NamedTable::Record(record) => Some(record),
        NamedTable::OfTopic(table) => table.record,
    };
    let filters = record.and_then(|record| record.filters).unwrap_or_default();
    if let Some(filter) = selection.filters().find(|filter| !filters.contains(filter)) {
        return Err(TableError::Selection { table: name.to_owned(), filter, filters });
    }
    let table = match (found, record) {
        (NamedTable::OfTopic(table), None) => (table.read)(report)?,
        (NamedTable::Record(record), _) | (_, Some(record)) => {
            if let Some(table) = record.read_whole(report, selection)? {
                table
            } else {
                let records = SelectedRecords::new(record, report, selection);
                return match records.long_count()? {
                    Some(count) => Ok(ArrowTable::Long(Arc::new(records), count)),
                    None => Ok(ArrowTable::Whole(records.whole()?)),
                };
            }
        }
    };
    let batch = views::batch(&table)?;
    let schema = batch.schema().as_ref().clone().with_metadata(of_report(report, name));
    Ok(ArrowTable::Whole(batch.with_schema(Arc::new(schema))?))
}

/// The rows of a table in groups.
///
/// # Errors
/// An unknown name, a table whose rows name no operations, parts of the file that cannot be read.
pub fn read_groups(
    report: &Arc<Report>,
    name: &str,
    key: GroupKey,
) -> Result<ArrowTable, TableError> {
    match tables::find(name) {
        Ok(NamedTable::OfTopic(table)) => {
            Ok(ArrowTable::Whole(views::batch(&table.grouped(report, key)?)?))
        }
        Ok(NamedTable::Record(_)) => Err(GroupingError::NoGroups { table: name.to_owned() }.into()),
        Err(_) => Err(TableError::Unknown { name: name.to_owned() }),
    }
}
