//! Records as virtual tables in SQLite.

use crate::records::{BoundColumns, RecordReader, RecordRows, RecordTable, RowBounds};
use rusqlite::types::ValueRef;
use std::sync::Arc;
use tilescope_vtab::{
    ColumnBounds, RowEstimate, VirtualColumn, VirtualRows, VirtualTable, VirtualTableError,
};

/// The records of one report.
pub(super) struct BoundRecords {
    pub(super) table: &'static RecordTable,
    pub(super) reader: Arc<RecordReader>,
}

impl VirtualTable for BoundRecords {
    fn columns(&self) -> &'static [VirtualColumn] {
        self.table.columns()
    }

    fn order(&self) -> &'static [usize] {
        self.table.order()
    }

    fn groups(&self, columns: &[usize], wanted: &dyn Fn(usize) -> bool) -> bool {
        self.table.groups(columns, wanted)
    }

    fn estimate(&self, bounded: &[usize], fixed: &[usize]) -> RowEstimate {
        self.table.estimate(&self.reader, BoundColumns { bounded, fixed })
    }

    fn rows(
        &self,
        columns: &ColumnBounds,
        wanted: &dyn Fn(usize) -> bool,
    ) -> Result<Box<dyn VirtualRows>, VirtualTableError> {
        let bounds = RowBounds { columns, selection: None };
        Ok(Box::new(BoundRows(self.table.rows(&self.reader, &bounds, wanted)?)))
    }
}

struct BoundRows(Box<dyn RecordRows>);

impl VirtualRows for BoundRows {
    fn advance(&mut self) -> Result<bool, VirtualTableError> {
        Ok(self.0.advance()?)
    }

    fn value(&self, column: usize) -> ValueRef<'_> {
        self.0.value(column)
    }

    fn rowid(&self) -> Result<Option<i64>, VirtualTableError> {
        if self.0.stands_for_several() {
            return Err("grouped steps have no rowid: select the column id".into());
        }
        Ok(self.0.rowid())
    }
}
