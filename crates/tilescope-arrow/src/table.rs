//! Any table of a report, by name.

use crate::records::RECORDS;
use crate::row_selection::{RowFilter, RowSelection};
use crate::steps::StepTable;
use crate::views;
use arrow_array::RecordBatch;
use arrow_schema::{ArrowError, SchemaRef};
use std::sync::Arc;
use tilescope_report::{Report, ReportError};

/// Batches one after the other.
pub type BatchIterator = Box<dyn Iterator<Item = Result<RecordBatch, ArrowError>> + Send>;

/// The name of the table of executed steps.
const STEPS: &str = "steps";

/// Short names that are understood, with those they stand for.
const SHORT_NAMES: [(&str, &str); 1] = [("tiles", "memory_by_tile")];

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

/// `, did you mean …?` where a name is near.
fn nearest(name: &str) -> String {
    let likeness = |known: &String| strsim::normalized_damerau_levenshtein(name, known);
    let best = names().into_iter().max_by(|a, b| likeness(a).total_cmp(&likeness(b)));
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

/// A table that can be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TableListing {
    /// Its name: `steps`, or `memory/tiles` of a view.
    pub name: String,
    /// What a row is.
    pub about: &'static str,
    /// By what its rows can be selected.
    pub filters: &'static [RowFilter],
}

/// Every table: steps, the other records, and those of views.
pub fn tables() -> Vec<TableListing> {
    let steps = TableListing {
        name: STEPS.to_owned(),
        about: "Executed steps, one row for each IPU",
        filters: &[RowFilter::Cycles, RowFilter::Ipus],
    };
    let records = RECORDS.iter().map(|records| TableListing {
        name: records.name.to_owned(),
        about: records.about,
        filters: records.filters,
    });
    let views = views::names().map(|(name, about)| TableListing { name, about, filters: &[] });
    std::iter::once(steps).chain(records).chain(views).collect()
}

/// A table of a report.
pub enum ArrowTable {
    /// In memory.
    Whole(RecordBatch),
    /// Executed steps, decoded batch by batch.
    Steps(Arc<StepTable>),
}

impl ArrowTable {
    /// Columns and their types.
    pub fn schema(&self) -> SchemaRef {
        match self {
            Self::Whole(batch) => batch.schema(),
            Self::Steps(_) => StepTable::schema(),
        }
    }

    /// Number of rows.
    pub fn rows(&self) -> u64 {
        match self {
            Self::Whole(batch) => batch.num_rows() as u64,
            Self::Steps(table) => table.rows(),
        }
    }

    /// The rows, batch by batch.
    pub fn batches(&self) -> BatchIterator {
        match self {
            Self::Whole(batch) => Box::new(std::iter::once(Ok(batch.clone()))),
            Self::Steps(table) => table.batches(),
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
    if name == STEPS {
        refuse_others(&[RowFilter::Cycles, RowFilter::Ipus])?;
        return Ok(ArrowTable::Steps(Arc::new(StepTable::select(report.clone(), selection)?)));
    }
    if let Some(records) = RECORDS.iter().find(|records| records.name == name) {
        refuse_others(records.filters)?;
        return Ok(ArrowTable::Whole((records.read)(report, selection)?));
    }
    let Some(table) = views::find(name) else {
        return Err(TableError::Unknown { name: name.to_owned() });
    };
    refuse_others(&[])?;
    Ok(ArrowTable::Whole(views::batch(&(table.read)(report)?)?))
}
