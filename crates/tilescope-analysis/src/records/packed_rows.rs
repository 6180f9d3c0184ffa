//! Rows of tables that reports store as compressed columns, read chunk by chunk.

use super::{RecordError, RecordReader, RecordRows};
use rusqlite::types::ValueRef;
use std::sync::Arc;
use tilescope_report::{Report, ReportError};

/// A row that is unpacked from a chunk.
pub(super) trait PackedRow: Send + Sized {
    /// Rows that are packed together.
    type Chunk: Send;

    fn unpack(report: &Report, chunk: &Self::Chunk) -> Result<Vec<Self>, ReportError>;

    fn value(&self, column: usize) -> ValueRef<'_>;

    fn rowid(&self) -> Option<i64> {
        None
    }
}

/// The rows of some chunks.
pub(super) struct PackedRows<R: PackedRow> {
    run: Arc<RecordReader>,
    chunks: std::vec::IntoIter<R::Chunk>,
    rows: std::vec::IntoIter<R>,
    row: Option<R>,
}

impl<R: PackedRow> PackedRows<R> {
    pub(super) fn of(run: &Arc<RecordReader>, chunks: Vec<R::Chunk>) -> Self {
        let rows = Vec::new().into_iter();
        Self { run: run.clone(), chunks: chunks.into_iter(), rows, row: None }
    }
}

impl<R: PackedRow> RecordRows for PackedRows<R> {
    fn advance(&mut self) -> Result<bool, RecordError> {
        loop {
            self.row = self.rows.next();
            if self.row.is_some() {
                return Ok(true);
            }
            let Some(chunk) = self.chunks.next() else { return Ok(false) };
            self.rows = R::unpack(&self.run.report, &chunk)?.into_iter();
            self.run.check_time(self.rows.len())?;
        }
    }

    fn value(&self, column: usize) -> ValueRef<'_> {
        self.row.as_ref().map_or(ValueRef::Null, |row| row.value(column))
    }

    fn rowid(&self) -> Option<i64> {
        self.row.as_ref().and_then(R::rowid)
    }
}
