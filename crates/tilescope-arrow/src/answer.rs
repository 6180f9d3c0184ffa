//! Writes answers to SQL queries as Parquet files while their rows arrive.
//!
//! SQLite gives each value a type, a file each column. The type of a column combines the one that
//! the report declares for it (by SQLite's affinity rules, if it is a type of values) with those of
//! its values: integers and real numbers combine to real numbers; no other types do. The first rows
//! may not determine a type that later rows need. In that case the query is repeated with the types
//! found so far.

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

/// Rows of a batch, and bytes of their values. The first batch determines the types of columns.
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

    /// The type that can represent both, if there is one.
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

/// The known types of the columns of an answer.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AnswerColumnKinds(Vec<Option<ColumnKind>>);

/// The reason why an answer was not written.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum AnswerFileError {
    #[error(transparent)]
    Sql(#[from] SqlError),
    /// A column turned out to need another type than it was written with. The output is void, and
    /// the query must be repeated with these types.
    #[error("the types of the columns are known only now")]
    Again(AnswerColumnKinds),
    /// Values of a column that share no type of a file.
    #[error(
        "column {column:?} holds {kind}, but row {} of the answer has {found}: a column of a Parquet \
         file has one type; CAST({} AS TEXT) gives it one",
        grouped(*row), quoted(column)
    )]
    Mixed { column: String, row: u64, kind: &'static str, found: &'static str },
    /// An integer that a real number cannot represent exactly, in a column of real numbers.
    #[error(
        "column {column:?} holds real numbers, but row {} of the answer has {value}, which no real \
         number represents exactly; CAST({} AS TEXT) keeps it",
        grouped(*row), quoted(column)
    )]
    Inexact { column: String, row: u64, value: i64 },
    /// The file cannot be written.
    #[error("{0}")]
    Write(String),
}

/// An identifier quoted for SQL.
fn quoted(name: &str) -> String {
    format!("\"{}\"", name.replace('"', "\"\""))
}

/// Writes the answer to a query as a Parquet file, starting from the known types of its columns.
///
/// # Errors
/// Those of the query and of the output, values that no column can have, and
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

/// Collects rows and writes them to a file.
struct AnswerRows<W: Write + Send> {
    names: Vec<String>,
    declared: Vec<Option<ColumnKind>>,
    /// Types of the values so far.
    kinds: Vec<Option<ColumnKind>>,
    held: Vec<Vec<SqlValue>>,
    held_bytes: usize,
    /// Number of rows before the collected ones.
    done: u64,
    /// Metadata of the file about the report.
    metadata: HashMap<String, String>,
    /// The output, until the file is started.
    output: Option<W>,
    file: Option<AnswerFile<W>>,
    /// The reason why no more rows are accepted.
    problem: Option<AnswerFileError>,
}

/// A file, with the types of its columns.
struct AnswerFile<W: Write + Send> {
    writer: ArrowWriter<W>,
    schema: SchemaRef,
    kinds: Vec<ColumnKind>,
}

/// The type of a column without a declaration and values.
const OF_NOTHING: ColumnKind = ColumnKind::Text;

impl<W: Write + Send> RowSink for AnswerRows<W> {
    fn declared(&mut self, types: &[Option<String>]) -> io::Result<()> {
        self.declared = types.iter().map(|of| ColumnKind::declared(of.as_deref()?)).collect();
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
    /// Stores an error for the caller and ends the query.
    fn noted(&mut self, done: Result<(), AnswerFileError>) -> io::Result<()> {
        done.map_err(|problem| {
            self.problem = Some(problem);
            io::Error::other("the answer cannot be written to a file")
        })
    }

    fn take(&mut self, values: &[SqlValue]) -> Result<(), AnswerFileError> {
        let row = self.done + self.held.len() as u64 + 1;
        for (at, value) in values.iter().enumerate() {
            let Some(found) = ColumnKind::of(value) else { continue };
            let known = self.kinds[at].unwrap_or(found);
            let Some(joined) = known.joined(found) else {
                let kind = known.words();
                let found = found.words();
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
        if self.held.len() >= BATCH_ROWS || self.held_bytes >= BATCH_BYTES {
            self.write()
        } else {
            Ok(())
        }
    }

    /// Writes the collected rows.
    fn write(&mut self) -> Result<(), AnswerFileError> {
        if let Some(output) = self.output.take() {
            self.file = Some(self.begin(output)?);
        }
        let held = std::mem::take(&mut self.held);
        self.held_bytes = 0;
        let Some(file) = &mut self.file else { return Ok(()) };
        let to_error = |error: &dyn std::fmt::Display| AnswerFileError::Write(error.to_string());
        let mut columns = Vec::new();
        for (at, kind) in file.kinds.iter().enumerate() {
            let mut builder = ColumnBuilder::new(*kind);
            for (row, values) in (self.done + 1..).zip(&held) {
                builder.push(ValueRef::from(&values[at])).map_err(|value| {
                    AnswerFileError::Inexact { column: self.names[at].clone(), row, value }
                })?;
            }
            columns.push(builder.finish().map_err(|error| to_error(&error))?);
        }
        let batch = RecordBatch::try_new(file.schema.clone(), columns);
        file.writer
            .write(&batch.map_err(|error| to_error(&error))?)
            .map_err(|error| to_error(&error))?;
        self.done += held.len() as u64;
        Ok(())
    }

    /// Starts the file: from here on the types of columns are fixed.
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
    fn kinds_combine_in_any_order() {
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
