//! Which columns of the table of operations are shown.

use tilescope_analysis::data_table::DataTable;
use tilescope_analysis::tables::operations::{COLUMNS, OperationColumn};

/// Whether a column is shown, given the keys of those that were switched.
pub(crate) fn is_shown(known: &OperationColumn, switched: &[String]) -> bool {
    known.shown != switched.iter().any(|key| key == known.key)
}

/// The table of this name with all of its columns, as the view has it.
#[cfg(test)]
pub(in crate::views) fn seen(report: &tilescope_report::Report, name: &str) -> DataTable {
    use tilescope_analysis::operations::{OperationLayer, operations};
    let layer = match name {
        "operations" => OperationLayer::Model,
        "library-calls" => OperationLayer::Library,
        _ => OperationLayer::Program,
    };
    let hidden = COLUMNS.iter().filter(|known| !known.shown);
    let switched: Vec<String> = hidden.map(|known| known.key.to_owned()).collect();
    let found = operations(report, layer).unwrap();
    shown(tilescope_analysis::tables::operations::operations(&found, report, layer), &switched)
}

/// A table of operations without the columns that are not shown; the name is always first.
pub(crate) fn shown(table: DataTable, switched: &[String]) -> DataTable {
    table.with_columns(|at| match at.checked_sub(1).and_then(|at| COLUMNS.get(at)) {
        Some(known) => is_shown(known, switched),
        None => true,
    })
}
