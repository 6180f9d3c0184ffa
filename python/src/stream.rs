//! Record batches for readers outside: a panic must not run into their C code, which would end the
//! whole interpreter.

use arrow_array::{RecordBatch, RecordBatchReader};
use arrow_schema::{ArrowError, SchemaRef};
use std::panic::{AssertUnwindSafe, catch_unwind};
use tilescope_arrow::BatchIterator;

/// A reader whose panics are errors.
pub(crate) struct GuardedReader {
    schema: SchemaRef,
    batches: BatchIterator,
    broken: bool,
}

impl GuardedReader {
    pub(crate) fn new(schema: SchemaRef, batches: BatchIterator) -> Self {
        Self { schema, batches, broken: false }
    }
}

impl Iterator for GuardedReader {
    type Item = Result<RecordBatch, ArrowError>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.broken {
            return None;
        }
        // What a panic left half-way is never looked at again.
        catch_unwind(AssertUnwindSafe(|| self.batches.next())).unwrap_or_else(|_| {
            self.broken = true;
            let problem = "reading panicked; please report this with the file";
            Some(Err(ArrowError::ComputeError(problem.to_owned())))
        })
    }
}

impl RecordBatchReader for GuardedReader {
    fn schema(&self) -> SchemaRef {
        self.schema.clone()
    }
}
