//! Tables that are made whole: one type for each column, by its cells and what is declared of it.

use crate::column::{ColumnBuilder, ColumnKind};
use crate::metadata::field;
use arrow_array::RecordBatch;
use arrow_schema::{ArrowError, Schema};
use std::sync::Arc;
use tilescope_analysis::data_table::{DataTable, TableColumn};
use tilescope_analysis::records::{ValueRef, cell_value};

/// Columns and cells of a table as Arrow has them.
///
/// # Errors
/// Columns of different lengths: a bug of ours.
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
            // A column of real numbers has some that are whole.
            let _ = builder.push(value);
        }
        let column = &table.columns[at];
        let unit = column.unit.unwrap_or(column.quantity.unit());
        fields.push(field(name, kind.data_type(), unit, column.about));
        columns.push(builder.finish()?);
    }
    RecordBatch::try_new(Arc::new(Schema::new(fields)), columns)
}

/// Texts where any cell is one, real numbers where any is, else whole ones; the quantity of the column
/// where no row has a value.
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
