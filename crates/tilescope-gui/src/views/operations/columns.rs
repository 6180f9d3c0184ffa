//! The visible columns of the operations table.

use tilescope_analysis::data_table::DataTable;
use tilescope_analysis::tables::operations::{COLUMNS, OperationColumn};

/// Returns true if a column is visible, given the keys of toggled columns.
pub(crate) fn is_shown(known: &OperationColumn, switched: &[String]) -> bool {
    known.shown != switched.iter().any(|key| key == known.key)
}

/// The table of this name with all of its columns, as the view shows it.
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

/// Removes the hidden columns from a table of operations. The name is always first.
pub(crate) fn shown(table: DataTable, switched: &[String]) -> DataTable {
    table.with_columns(|at| match at.checked_sub(1).and_then(|at| COLUMNS.get(at)) {
        Some(known) => is_shown(known, switched),
        None => true,
    })
}
