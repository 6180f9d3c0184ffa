//! Rows that are in memory, all of them.

use super::{FoundRows, RecordError, RecordRows};
use rusqlite::types::ValueRef;

/// A cell of a row by its column.
type Cell<R> = for<'a> fn(&'a R, usize) -> ValueRef<'a>;

struct KeptRows<R> {
    rows: std::vec::IntoIter<R>,
    row: Option<R>,
    cell: Cell<R>,
}

/// Rows with what their cells are.
pub(super) fn kept<R: Send + 'static>(rows: Vec<R>, cell: Cell<R>) -> FoundRows {
    Ok(Box::new(KeptRows { rows: rows.into_iter(), row: None, cell }))
}

impl<R: Send> RecordRows for KeptRows<R> {
    fn advance(&mut self) -> Result<bool, RecordError> {
        self.row = self.rows.next();
        Ok(self.row.is_some())
    }

    fn value(&self, column: usize) -> ValueRef<'_> {
        self.row.as_ref().map_or(ValueRef::Null, |row| (self.cell)(row, column))
    }

    fn count(&self) -> Option<u64> {
        Some(self.rows.len() as u64)
    }
}
