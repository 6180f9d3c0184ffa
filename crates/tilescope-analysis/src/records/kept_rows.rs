//! Rows in memory: all of a table, or a page.

use super::{FoundRows, ReadPage, RecordError, RecordReader, RecordRows, RowSelection, cell_value};
use crate::data_table::TableCell;
use rusqlite::types::ValueRef;
use std::sync::Arc;

/// The number of rows in memory at once for a table with pages.
const PAGE: usize = 1 << 16;

/// A cell of a row by its column.
type Cell<R> = for<'a> fn(&'a R, usize) -> ValueRef<'a>;

struct KeptRows<R> {
    rows: std::vec::IntoIter<R>,
    row: Option<R>,
    cell: Cell<R>,
}

/// Creates rows from a list and the function that reads their cells.
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

/// Rows that are read page by page.
pub(super) struct PagedRows {
    reader: Arc<RecordReader>,
    selection: RowSelection,
    read: ReadPage,
    /// The remaining rows of the page.
    page: std::vec::IntoIter<Vec<TableCell>>,
    row: Option<Vec<TableCell>>,
    /// The id of the last row of the page; `None` before the first page.
    after: Option<u64>,
    is_through: bool,
}

impl PagedRows {
    pub(super) fn new(
        reader: &Arc<RecordReader>,
        selection: Option<&RowSelection>,
        read: ReadPage,
    ) -> Self {
        Self {
            reader: reader.clone(),
            selection: selection.cloned().unwrap_or_default(),
            read,
            page: Vec::new().into_iter(),
            row: None,
            after: None,
            is_through: false,
        }
    }
}

impl RecordRows for PagedRows {
    fn advance(&mut self) -> Result<bool, RecordError> {
        self.row = self.page.next();
        while self.row.is_none() && !self.is_through {
            let page = (self.read)(&self.reader.report, &self.selection, self.after, PAGE)?;
            let last = page.rows.last().and_then(|row| row.first()).and_then(TableCell::whole);
            self.after = last.and_then(|id| u64::try_from(id).ok());
            self.is_through = self.after.is_none();
            self.page = page.rows.into_iter();
            self.row = self.page.next();
        }
        Ok(self.row.is_some())
    }

    fn value(&self, column: usize) -> ValueRef<'_> {
        self.row.as_ref().map_or(ValueRef::Null, |row| cell_value(row, column))
    }
}
