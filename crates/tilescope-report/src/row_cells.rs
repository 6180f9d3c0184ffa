//! Queries for rows of a report, and their cells. A value of the wrong type, or one larger than a
//! report allows, counts as missing.

// All code here reads bytes from untrusted files.
#![cfg_attr(not(test), warn(clippy::indexing_slicing))]

use super::limits::MAX_NAME_BYTES;
use super::packed_columns::UnpackedRows;
use super::report_warnings::ReportWarnings;
use super::units::Quantity;
use rusqlite::Row;
use rusqlite::types::ValueRef;
use std::cell::Cell;

/// A query for rows of a table. Columns that the table does not have read as NULL.
#[derive(Clone, Copy)]
pub(super) struct SelectQuery<'a> {
    pub(super) table: &'a str,
    pub(super) columns: &'a [&'a str],
    /// `WHERE`, `ORDER BY` and `LIMIT`, over columns that are known to exist.
    pub(super) clauses: &'a str,
    pub(super) params: &'a [i64],
}

impl<'a> SelectQuery<'a> {
    /// All rows, in the order of the file.
    pub(super) const fn all(table: &'a str, columns: &'a [&'a str]) -> Self {
        Self { table, columns, clauses: "", params: &[] }
    }

    pub(super) const fn clauses(self, rest: &'a str) -> Self {
        Self { clauses: rest, ..self }
    }

    pub(super) const fn params(self, params: &'a [i64]) -> Self {
        Self { params, ..self }
    }
}

/// An integer, whatever type it was stored as.
pub(super) fn integer(value: ValueRef) -> Option<i64> {
    match value {
        ValueRef::Integer(value) => Some(value),
        #[expect(clippy::cast_possible_truncation, reason = "whole, and below 2^53")]
        ValueRef::Real(value) if value.fract() == 0.0 && value.abs() < 9e15 => Some(value as i64),
        ValueRef::Text(text) => std::str::from_utf8(text).ok()?.trim().parse().ok(),
        _ => None,
    }
}

/// The source of the cells of a row.
pub(super) enum RowSource<'a> {
    Sqlite(&'a Row<'a>),
    Packed(&'a UnpackedRows, usize),
}

/// One row. Every getter returns `None` for NULL and, with a warning, for invalid values.
pub(super) struct RowCells<'a> {
    row: RowSource<'a>,
    select: &'a SelectQuery<'a>,
    warnings: &'a ReportWarnings,
    handed: Cell<usize>,
}

impl<'a> RowCells<'a> {
    pub(super) fn new(
        row: RowSource<'a>,
        select: &'a SelectQuery<'a>,
        warnings: &'a ReportWarnings,
    ) -> Self {
        Self { row, select, warnings, handed: Cell::new(0) }
    }

    /// Bytes of text that the row has returned so far.
    pub(super) fn bytes_handed(&self) -> usize {
        self.handed.get()
    }

    /// All columns in order, unchecked.
    pub(super) fn values(&self) -> impl Iterator<Item = ValueRef<'_>> {
        (0..self.select.columns.len()).map(|column| self.value(column))
    }

    fn value(&self, column: usize) -> ValueRef<'_> {
        match &self.row {
            RowSource::Sqlite(row) => row.get_ref(column).unwrap_or(ValueRef::Null),
            RowSource::Packed(rows, row) => rows.value(column, *row),
        }
    }

    fn reject_value<T>(&self, column: usize) -> Option<T> {
        let table = self.select.table;
        let column = self.select.columns.get(column).unwrap_or(&"?");
        self.warnings.add(format!("{table}.{column} holds invalid values; they are left out"));
        None
    }

    /// Any integer.
    pub(super) fn int(&self, column: usize) -> Option<i64> {
        match self.value(column) {
            ValueRef::Null => None,
            value => integer(value).or_else(|| self.reject_value(column)),
        }
    }

    /// A number or an amount from 0 to `most`.
    pub(super) fn count<Q: Quantity>(&self, column: usize, most: Q) -> Option<Q> {
        let value = self.int(column)?;
        let value = u64::try_from(value).ok().map(Q::from_number).filter(|value| *value <= most);
        value.or_else(|| self.reject_value(column))
    }

    /// An id or another small number.
    pub(super) fn small(&self, column: usize) -> Option<u32> {
        self.small_up_to(column, u32::MAX - 1)
    }

    /// A small number from 0 to `most`.
    pub(super) fn small_up_to(&self, column: usize, most: u32) -> Option<u32> {
        u32::try_from(self.count(column, u64::from(most))?).ok()
    }

    /// A finite number.
    pub(super) fn real(&self, column: usize) -> Option<f64> {
        match self.value(column) {
            ValueRef::Null => None,
            ValueRef::Real(value) if value.is_finite() => Some(value),
            ValueRef::Integer(value) => Some(value as f64),
            _ => self.reject_value(column),
        }
    }

    /// A text; cut at the length limit of names.
    pub(super) fn text(&self, column: usize) -> Option<String> {
        self.text_within(column, MAX_NAME_BYTES)
    }

    /// Parses a string as the name of a value.
    pub(super) fn named<T>(&self, column: usize, value: impl Fn(&str) -> Option<T>) -> Option<T> {
        match self.value(column) {
            // Parsed in place, without a copy.
            ValueRef::Text(name) => value(std::str::from_utf8(name).ok()?),
            _ => value(&self.text(column)?),
        }
    }

    /// A text of any length up to the largest value a file may have.
    pub(super) fn long_text(&self, column: usize) -> Option<String> {
        self.text_within(column, usize::MAX)
    }

    /// A text; other types are refused even if they could be converted to one.
    pub(super) fn text_only(&self, column: usize) -> Option<String> {
        if !matches!(self.value(column), ValueRef::Text(_)) {
            return None;
        }
        self.text(column)
    }

    fn text_within(&self, column: usize, most: usize) -> Option<String> {
        match self.value(column) {
            ValueRef::Null => None,
            ValueRef::Text(bytes) => {
                let cut = bytes.get(..most).unwrap_or(bytes);
                if cut.len() < bytes.len() {
                    self.reject_value::<()>(column);
                }
                self.handed.set(self.handed.get() + cut.len());
                Some(String::from_utf8_lossy(cut).into_owned())
            }
            ValueRef::Integer(value) => Some(value.to_string()),
            _ => self.reject_value(column),
        }
    }

    pub(super) fn blob(&self, column: usize) -> Option<&[u8]> {
        match self.value(column) {
            ValueRef::Blob(bytes) => Some(bytes),
            ValueRef::Null => None,
            _ => self.reject_value(column),
        }
    }
}
