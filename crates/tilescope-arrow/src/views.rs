//! Tables of views: one type for each column, by the cells it has.

use arrow_array::{ArrayRef, Float64Array, Int64Array, RecordBatch, StringArray, UInt64Array};
use arrow_schema::ArrowError;
use std::sync::Arc;
use tilescope_analysis::data_table::{DataTable, TableCell};
use tilescope_analysis::tables::all;

/// Names of all tables of views, `memory/tiles`, each with what it holds.
pub(crate) fn names() -> impl Iterator<Item = (String, &'static str)> {
    all().map(|table| (table.path(), table.about))
}

/// Columns and cells of a table of a view as Arrow has them.
///
/// # Errors
/// Columns of different lengths: a bug of ours.
pub fn batch(table: &DataTable) -> Result<RecordBatch, ArrowError> {
    let columns = table.identifiers().into_iter().enumerate().map(|(at, name)| {
        let cells: Vec<&TableCell> = table.rows.iter().filter_map(|row| row.get(at)).collect();
        (name, array(&cells), true)
    });
    RecordBatch::try_from_iter_with_nullable(columns)
}

/// Whole numbers where all are, texts where any is one, else real numbers.
fn array(cells: &[&TableCell]) -> ArrayRef {
    let some = |cell: &&TableCell| !matches!(cell, TableCell::Missing);
    let mut known = cells.iter().copied().filter(some).peekable();
    if known.peek().is_none() || known.clone().any(|cell| matches!(cell, TableCell::Text(_))) {
        let text = |cell: &&TableCell| some(cell).then(|| cell.plain());
        return Arc::new(StringArray::from_iter(cells.iter().map(text)));
    }
    if let Some(values) = whole(cells, unsigned) {
        return Arc::new(UInt64Array::from(values));
    }
    if let Some(values) = whole(cells, signed) {
        return Arc::new(Int64Array::from(values));
    }
    Arc::new(Float64Array::from_iter(cells.iter().map(|cell| cell.number())))
}

/// All cells as whole numbers, if they are.
fn whole<T>(cells: &[&TableCell], read: fn(&TableCell) -> Option<T>) -> Option<Vec<Option<T>>> {
    let cell = |cell: &&TableCell| match cell {
        TableCell::Missing => Some(None),
        cell => read(cell).map(Some),
    };
    cells.iter().map(cell).collect()
}

fn unsigned(cell: &TableCell) -> Option<u64> {
    match cell {
        TableCell::Bytes(bytes) => Some(bytes.0),
        TableCell::Count(value) | TableCell::Id(value) => Some(*value),
        TableCell::Tile(tile) => Some(tile.0.into()),
        _ => None,
    }
}

fn signed(cell: &TableCell) -> Option<i64> {
    match cell {
        TableCell::Change { change, .. } => i64::try_from(*change).ok(),
        cell => unsigned(cell).and_then(|value| i64::try_from(value).ok()),
    }
}
