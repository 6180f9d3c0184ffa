//! Answers to questions in SQL as Parquet files, written as rows come.
//!
//! SQLite gives each value a type, a file each column one. A column has the type that the report
//! declares for it (by SQLite's rule of affinity, where that is a type of values), joined with those of
//! its values: whole and real numbers are real numbers, everything else does not mix. What the first
//! rows do not say yet may turn out later; then the question is asked again, with what is known.

use crate::column::{ColumnBuilder, ColumnKind};
use crate::files::{ArrowFileError, parquet_writer};
use crate::metadata::of_report;
use arrow_array::RecordBatch;
use arrow_schema::{Field, Schema, SchemaRef};
use parquet::arrow::ArrowWriter;
use std::collections::HashMap;
use std::io::{self, Write};
use std::sync::Arc;
use tilescope_analysis::records::ValueRef;
use tilescope_analysis::sql::{self, RowSink, SqlError, SqlQuestion, SqlSummary, SqlValue};
use tilescope_report::Report;
use tilescope_report::units::grouped;

/// Rows of a batch, and bytes of their values; the first one decides what columns are.
const BATCH_ROWS: usize = 1 << 14;
const BATCH_BYTES: usize = 8 << 20;

impl ColumnKind {
    fn of(value: &SqlValue) -> Option<Self> {
        match value {
            SqlValue::Null => None,
            SqlValue::Integer(_) => Some(Self::Integer),
            SqlValue::Real(_) => Some(Self::Real),
            SqlValue::Text(_) => Some(Self::Text),
            SqlValue::Blob(_) => Some(Self::Blob),
        }
    }

    /// What holds both, if anything does.
    fn joined(self, other: Self) -> Option<Self> {
        match (self, other) {
            (one, other) if one == other => Some(one),
            (Self::Integer, Self::Real) | (Self::Real, Self::Integer) => Some(Self::Real),
            _ => None,
        }
    }

    fn words(self) -> &'static str {
        match self {
            Self::Integer => "whole numbers",
            Self::Real => "real numbers",
            Self::Text => "text",
            Self::Blob => "blobs",
        }
    }
}

/// What is known of the columns of an answer.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AnswerColumnKinds(Vec<Option<ColumnKind>>);

/// Why an answer is no file.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum AnswerFileError {
    #[error(transparent)]
    Sql(#[from] SqlError),
    /// A column turned out to be something else than it was written as: what is written is void, and
    /// the question has to be asked again with what is known now.
    #[error("the types of the columns are known only now")]
    Again(AnswerColumnKinds),
    /// Values of a column that no type of a file holds.
    #[error(
        "column {column:?} is of {kind}, and row {} of the answer has {found} there: a column of a \
         Parquet file has one type; CAST({} AS TEXT) gives it one",
        grouped(*row), quoted(column)
    )]
    Mixed { column: String, row: u64, kind: &'static str, found: &'static str },
    /// A whole number that a real number does not hold exactly, in a column with real ones.
    #[error(
        "column {column:?} is of real numbers, and row {} of the answer has {value} there, which none \
         of them is exactly; CAST({} AS TEXT) keeps it",
        grouped(*row), quoted(column)
    )]
    Inexact { column: String, row: u64, value: i64 },
    /// The file cannot be written.
    #[error("{0}")]
    Write(String),
}

/// A name as SQL has it.
fn quoted(name: &str) -> String {
    format!("\"{}\"", name.replace('"', "\"\""))
}

/// Answers a question with a Parquet file. It begins with what is known of the columns.
///
/// # Errors
/// Those of the question and of the output, values that no column holds, and
/// [`AnswerFileError::Again`].
pub fn write_answer(
    report: &Arc<Report>,
    question: &SqlQuestion,
    known: AnswerColumnKinds,
    output: impl Write + Send,
) -> Result<SqlSummary, AnswerFileError> {
    let mut rows = AnswerRows {
        names: Vec::new(),
        declared: Vec::new(),
        kinds: known.0,
        held: Vec::new(),
        held_bytes: 0,
        done: 0,
        metadata: of_report(report, ""),
        output: Some(output),
        file: None,
        problem: None,
    };
    let answered = sql::run(report, question, &mut rows);
    match rows.problem {
        Some(problem) => Err(problem),
        None => Ok(answered?),
    }
}

/// Rows on their way into a file.
struct AnswerRows<W: Write + Send> {
    names: Vec<String>,
    declared: Vec<Option<ColumnKind>>,
    /// What the values were so far.
    kinds: Vec<Option<ColumnKind>>,
    held: Vec<Vec<SqlValue>>,
    held_bytes: usize,
    /// Rows before those that are held.
    done: u64,
    /// What the file says of the report.
    metadata: HashMap<String, String>,
    /// Until it is a file.
    output: Option<W>,
    file: Option<AnswerFile<W>>,
    /// Why there are no more rows.
    problem: Option<AnswerFileError>,
}

/// A file, and what its columns are.
struct AnswerFile<W: Write + Send> {
    writer: ArrowWriter<W>,
    schema: SchemaRef,
    kinds: Vec<ColumnKind>,
}

/// Where nothing is declared and no row has a value.
const OF_NOTHING: ColumnKind = ColumnKind::Text;

impl<W: Write + Send> RowSink for AnswerRows<W> {
    fn declared(&mut self, types: &[Option<String>]) -> io::Result<()> {
        let kind = |of: &Option<String>| ColumnKind::declared(of.as_deref()?);
        self.declared = types.iter().map(kind).collect();
        Ok(())
    }

    fn columns(&mut self, names: &[String]) -> io::Result<()> {
        self.names = names.to_vec();
        self.declared.resize(names.len(), None);
        if self.kinds.len() != names.len() {
            self.kinds.clone_from(&self.declared);
        }
        Ok(())
    }

    fn row(&mut self, values: &[SqlValue]) -> io::Result<()> {
        let taken = self.take(values);
        self.noted(taken)
    }

    fn end(&mut self) -> io::Result<()> {
        let ended = self.finish();
        self.noted(ended)
    }
}

impl<W: Write + Send> AnswerRows<W> {
    /// Keeps a problem for whoever asked, and ends the question.
    fn noted(&mut self, done: Result<(), AnswerFileError>) -> io::Result<()> {
        done.map_err(|problem| {
            self.problem = Some(problem);
            io::Error::other("the answer is no file")
        })
    }

    fn take(&mut self, values: &[SqlValue]) -> Result<(), AnswerFileError> {
        let row = self.done + self.held.len() as u64 + 1;
        for (at, value) in values.iter().enumerate() {
            let Some(found) = ColumnKind::of(value) else { continue };
            let known = self.kinds[at].unwrap_or(found);
            let Some(joined) = known.joined(found) else {
                let (kind, found) = (known.words(), found.words());
                return Err(AnswerFileError::Mixed {
                    column: self.names[at].clone(),
                    row,
                    kind,
                    found,
                });
            };
            self.kinds[at] = Some(joined);
            self.held_bytes += match value {
                SqlValue::Text(text) => text.len(),
                SqlValue::Blob(bytes) => bytes.len(),
                _ => 0,
            };
        }
        if let Some(file) = &self.file {
            let is_written_so =
                |(kind, written): (&Option<_>, &_)| kind.is_none_or(|of| of == *written);
            if !self.kinds.iter().zip(&file.kinds).all(is_written_so) {
                return Err(AnswerFileError::Again(AnswerColumnKinds(self.kinds.clone())));
            }
        }
        self.held.push(values.to_vec());
        match self.held.len() >= BATCH_ROWS || self.held_bytes >= BATCH_BYTES {
            true => self.write(),
            false => Ok(()),
        }
    }

    /// Writes the rows that are held.
    fn write(&mut self) -> Result<(), AnswerFileError> {
        if let Some(output) = self.output.take() {
            self.file = Some(self.begin(output)?);
        }
        let held = std::mem::take(&mut self.held);
        self.held_bytes = 0;
        let Some(file) = &mut self.file else { return Ok(()) };
        let failed = |error: &dyn std::fmt::Display| AnswerFileError::Write(error.to_string());
        let mut columns = Vec::new();
        for (at, kind) in file.kinds.iter().enumerate() {
            let mut builder = ColumnBuilder::new(*kind);
            for (row, values) in (self.done + 1..).zip(&held) {
                builder.push(ValueRef::from(&values[at])).map_err(|value| {
                    AnswerFileError::Inexact { column: self.names[at].clone(), row, value }
                })?;
            }
            columns.push(builder.finish().map_err(|error| failed(&error))?);
        }
        let batch = RecordBatch::try_new(file.schema.clone(), columns);
        file.writer
            .write(&batch.map_err(|error| failed(&error))?)
            .map_err(|error| failed(&error))?;
        self.done += held.len() as u64;
        Ok(())
    }

    /// Begins the file: from here on columns are what they are.
    fn begin(&self, output: W) -> Result<AnswerFile<W>, AnswerFileError> {
        let kinds: Vec<ColumnKind> =
            self.kinds.iter().map(|kind| kind.unwrap_or(OF_NOTHING)).collect();
        let columns = self.names.iter().zip(&kinds);
        let field = |(name, kind): (&String, &ColumnKind)| Field::new(name, kind.data_type(), true);
        let fields: Vec<Field> = columns.map(field).collect();
        let schema = Arc::new(Schema::new_with_metadata(fields, self.metadata.clone()));
        let writer = parquet_writer(output, &schema)
            .map_err(|error: ArrowFileError| AnswerFileError::Write(error.to_string()))?;
        Ok(AnswerFile { writer, schema, kinds })
    }

    fn finish(&mut self) -> Result<(), AnswerFileError> {
        self.write()?;
        let Some(file) = self.file.take() else { return Ok(()) };
        file.writer.close().map_err(|error| AnswerFileError::Write(error.to_string()))?;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ColumnKind::{Blob, Integer, Real, Text};

    #[test]
    fn kinds_join_whichever_comes_first() {
        let kinds = [Integer, Real, Text, Blob];
        for one in kinds {
            assert_eq!(one.joined(one), Some(one));
            for other in kinds {
                assert_eq!(one.joined(other), other.joined(one));
            }
        }
        assert_eq!(Integer.joined(Real), Some(Real));
        assert_eq!(Integer.joined(Text), None);
    }
}
