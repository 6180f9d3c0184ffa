//! Tables that are built whole: the type of each column follows from its cells and its declaration.

use crate::column::{ColumnBuilder, ColumnKind};
use crate::metadata::field;
use arrow_array::RecordBatch;
use arrow_schema::{ArrowError, Schema};
use std::sync::Arc;
use tilescope_analysis::data_table::{DataTable, TableColumn};
use tilescope_analysis::records::{ValueRef, cell_value};

/// Columns and cells of a table in the form of Arrow.
///
/// # Errors
/// The columns have different lengths: a bug.
pub fn batch(table: &DataTable) -> Result<RecordBatch, ArrowError> {
    let mut fields = Vec::new();
    let mut columns = Vec::new();
    for (at, name) in table.identifiers().into_iter().enumerate() {
        let kind = kind(&table.columns[at], at, table);
        let mut builder = ColumnBuilder::new(kind);
        for row in &table.rows {
            let plain;
            let mut value = cell_value(row, at);
            if kind == ColumnKind::Text && !matches!(value, ValueRef::Null | ValueRef::Text(_)) {
                plain = row[at].plain();
                value = ValueRef::Text(plain.as_bytes());
            }
            // Some values of a column of real numbers may be integers.
            let _ = builder.push(value);
        }
        let column = &table.columns[at];
        let unit = column.unit.unwrap_or(column.quantity.unit());
        fields.push(field(name, kind.data_type(), unit, column.about));
        columns.push(builder.finish()?);
    }
    RecordBatch::try_new(Arc::new(Schema::new(fields)), columns)
}

/// Text if any cell is a string, real if any is a real number, otherwise integer; the quantity of
/// the column if no row has a value.
fn kind(column: &TableColumn, at: usize, table: &DataTable) -> ColumnKind {
    let declared = ColumnKind::of_column(column.quantity.declaration());
    let mut found = None;
    for row in &table.rows {
        match cell_value(row, at) {
            ValueRef::Null | ValueRef::Blob(_) => {}
            ValueRef::Text(_) => return ColumnKind::Text,
            ValueRef::Real(_) => found = Some(ColumnKind::Real),
            ValueRef::Integer(_) if declared == ColumnKind::Real => found = Some(declared),
            ValueRef::Integer(_) => found = found.or(Some(ColumnKind::Integer)),
        }
    }
    found.unwrap_or(declared)
}
