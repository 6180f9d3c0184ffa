//! Records of a report as batches, with the rows and columns of SQL.

use crate::column::{ColumnBuilder, ColumnKind};
use crate::metadata::{field, of_report};
use crate::table::TableError;
use arrow_array::RecordBatch;
use arrow_schema::{ArrowError, Field, Schema, SchemaRef};
use std::sync::Arc;
use tilescope_analysis::records::{RecordError, RecordRows, RecordTable, RowSelection};
use tilescope_report::Report;

/// Rows of a batch of a table that is not read whole.
const BATCH_ROWS: usize = 1 << 16;

/// The selected rows of a table, read on demand.
pub struct SelectedRecords {
    table: &'static RecordTable,
    report: Arc<Report>,
    selection: RowSelection,
}

impl SelectedRecords {
    pub(crate) fn new(
        table: &'static RecordTable,
        report: &Arc<Report>,
        selection: &RowSelection,
    ) -> Self {
        Self { table, report: report.clone(), selection: selection.clone() }
    }

    /// Columns and their types.
    pub fn schema(&self) -> SchemaRef {
        let fields = self.table.row_columns().map(|(_, column)| {
            let kind = ColumnKind::of_column(column.declaration).data_type();
            field(column.name, kind, column.unit, column.about)
        });
        let metadata = of_report(&self.report, self.table.name);
        Arc::new(Schema::new_with_metadata(fields.collect::<Vec<Field>>(), metadata))
    }

    /// Number of rows of a table that is not read whole.
    ///
    /// # Errors
    /// A part of the file cannot be read.
    pub(crate) fn long_count(&self) -> Result<Option<u64>, TableError> {
        if !self.table.is_long() {
            return Ok(None);
        }
        Ok(self.table.read(&self.report, &self.selection)?.count())
    }

    /// The rows in batches.
    pub(crate) fn batches(&self) -> Result<RecordBatches, TableError> {
        self.batches_of(BATCH_ROWS)
    }

    /// All rows as one batch.
    pub(crate) fn whole(&self) -> Result<RecordBatch, TableError> {
        let batch = self.batches_of(usize::MAX)?.next();
        Ok(batch.unwrap_or_else(|| Ok(RecordBatch::new_empty(self.schema())))?)
    }

    fn batches_of(&self, batch_rows: usize) -> Result<RecordBatches, TableError> {
        let mut builders = Vec::new();
        // Arrow files have one dictionary for all batches: polars cannot read growing ones.
        let known = self.table.known_texts(&self.report)?;
        for (at, column) in self.table.row_columns() {
            let mut builder = ColumnBuilder::new(ColumnKind::of_column(column.declaration));
            for (_, texts) in known.iter().filter(|(name, _)| *name == column.name) {
                builder.know(texts);
            }
            builders.push((at, builder));
        }
        let rows = self.table.read(&self.report, &self.selection)?;
        Ok(RecordBatches { rows: Some(rows), schema: self.schema(), builders, batch_rows })
    }
}

/// Rows of a table, batch by batch.
pub(crate) struct RecordBatches {
    /// The remaining rows; `None` after the last.
    rows: Option<Box<dyn RecordRows>>,
    schema: SchemaRef,
    /// Builders, with the indices of their columns.
    builders: Vec<(usize, ColumnBuilder)>,
    batch_rows: usize,
}

impl RecordBatches {
    fn read(&mut self) -> Result<Option<RecordBatch>, ArrowError> {
        let Some(rows) = &mut self.rows else { return Ok(None) };
        let mut count = 0;
        while count < self.batch_rows {
            let more = rows.advance().map_err(|error| match error {
                RecordError::Report(error) => ArrowError::ExternalError(Box::new(error)),
                error => ArrowError::ComputeError(error.to_string()),
            })?;
            if !more {
                self.rows = None;
                break;
            }
            for (at, builder) in &mut self.builders {
                // A column of a table has values of one type.
                let _ = match rows.text_id(*at) {
                    Some(id) => builder.push_shared(id, || rows.value(*at)),
                    None => builder.push(rows.value(*at)),
                };
            }
            count += 1;
        }
        if count == 0 {
            return Ok(None);
        }
        let columns = self.builders.iter_mut().map(|(_, builder)| builder.finish());
        let columns = columns.collect::<Result<Vec<_>, ArrowError>>()?;
        Ok(Some(RecordBatch::try_new(self.schema.clone(), columns)?))
    }
}

impl Iterator for RecordBatches {
    type Item = Result<RecordBatch, ArrowError>;

    fn next(&mut self) -> Option<Self::Item> {
        let batch = self.read().transpose();
        if let Some(Err(_)) = batch {
            self.rows = None;
        }
        batch
    }
}
