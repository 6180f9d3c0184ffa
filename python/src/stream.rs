//! Record batches for external readers. A panic must not unwind into their C code, which would end
//! the interpreter.

use arrow_array::{RecordBatch, RecordBatchReader};
use arrow_schema::{ArrowError, SchemaRef};
use std::panic::{AssertUnwindSafe, catch_unwind};
use tilescope_arrow::BatchIterator;

/// A reader that turns panics into errors.
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
        // The state after a panic is never used again.
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
