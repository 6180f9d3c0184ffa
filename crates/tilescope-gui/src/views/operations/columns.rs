//! Which columns of the table of operations are shown.

use tilescope_analysis::data_table::DataTable;
use tilescope_analysis::tables::operations::{COLUMNS, OperationColumn};

/// Whether a column is shown, given the keys of those that were switched.
pub(crate) fn is_shown(known: &OperationColumn, switched: &[String]) -> bool {
    known.shown != switched.iter().any(|key| key == known.key)
}

/// A table of operations without the columns that are not shown; the name is always first.
pub(crate) fn shown(table: DataTable, switched: &[String]) -> DataTable {
    table.with_columns(|at| match at.checked_sub(1).and_then(|at| COLUMNS.get(at)) {
        Some(known) => is_shown(known, switched),
        None => true,
    })
}
