//! Answers to questions in SQL as Parquet files, written as rows come.
//!
//! SQLite gives each value a type, a file each column one. A column has the type that the report
//! declares for it (by SQLite's rule of affinity, where that is a type of values), joined with those of
//! its values: whole and real numbers are real numbers, everything else does not mix. What the first
//! rows do not say yet may turn out later; then the question is asked again, with what is known.

use crate::files::{ArrowFileError, parquet_writer};
use crate::text_dictionary::{TextDictionary, by_key};
use arrow_array::{ArrayRef, BinaryArray, Float64Array, Int32Array, Int64Array, RecordBatch};
use arrow_schema::{ArrowError, DataType, Field, Schema, SchemaRef};
use parquet::arrow::ArrowWriter;
use std::io::{self, Write};
use std::sync::Arc;
use tilescope_analysis::sql::{self, RowSink, SqlError, SqlQuestion, SqlSummary, SqlValue};
use tilescope_report::Report;
use tilescope_report::units::grouped;

/// Rows of a batch, and bytes of their values; the first one decides what columns are.
const BATCH_ROWS: usize = 1 << 14;
const BATCH_BYTES: usize = 8 << 20;

/// What the values of a column are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum AnswerColumnKind {
    Integer,
    Real,
    Text,
    Blob,
}

impl AnswerColumnKind {
    /// What a declared type holds, as SQLite reads it: by the words in it. Of other declarations, such
    /// as `NUMERIC` and `BOOLEAN`, the values decide.
    fn declared(declaration: &str) -> Option<Self> {
        let declaration = declaration.to_ascii_uppercase();
        let has = |words: &[&str]| words.iter().any(|word| declaration.contains(word));
        match () {
            () if has(&["INT"]) => Some(Self::Integer),
            () if has(&["CHAR", "CLOB", "TEXT"]) => Some(Self::Text),
            () if has(&["BLOB"]) => Some(Self::Blob),
            () if has(&["REAL", "FLOA", "DOUB"]) => Some(Self::Real),
            () => None,
        }
    }

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

    fn data_type(self) -> DataType {
        match self {
            Self::Integer => DataType::Int64,
            Self::Real => DataType::Float64,
            Self::Text => DataType::Dictionary(Box::new(DataType::Int32), Box::new(DataType::Utf8)),
            Self::Blob => DataType::Binary,
        }
    }
}

/// What is known of the columns of an answer.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AnswerColumnKinds(Vec<Option<AnswerColumnKind>>);

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
    declared: Vec<Option<AnswerColumnKind>>,
    /// What the values were so far.
    kinds: Vec<Option<AnswerColumnKind>>,
    held: Vec<Vec<SqlValue>>,
    held_bytes: usize,
    /// Rows before those that are held.
    done: u64,
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
    kinds: Vec<AnswerColumnKind>,
}

/// Where nothing is declared and no row has a value.
const OF_NOTHING: AnswerColumnKind = AnswerColumnKind::Text;

impl<W: Write + Send> RowSink for AnswerRows<W> {
    fn declared(&mut self, types: &[Option<String>]) -> io::Result<()> {
        let kind = |of: &Option<String>| AnswerColumnKind::declared(of.as_deref()?);
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
            let Some(found) = AnswerColumnKind::of(value) else { continue };
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
        let columns: Result<Vec<ArrayRef>, AnswerFileError> = (file.kinds.iter().enumerate())
            .map(|(at, kind)| {
                array(*kind, held.iter().map(|row| &row[at])).map_err(|error| match error {
                    ArrayError::Inexact { row, value } => AnswerFileError::Inexact {
                        column: self.names[at].clone(),
                        row: self.done + row as u64 + 1,
                        value,
                    },
                    ArrayError::Arrow(error) => AnswerFileError::Write(error.to_string()),
                })
            })
            .collect();
        let failed = |error: &dyn std::fmt::Display| AnswerFileError::Write(error.to_string());
        let batch = RecordBatch::try_new(file.schema.clone(), columns?);
        file.writer
            .write(&batch.map_err(|error| failed(&error))?)
            .map_err(|error| failed(&error))?;
        self.done += held.len() as u64;
        Ok(())
    }

    /// Begins the file: from here on columns are what they are.
    fn begin(&self, output: W) -> Result<AnswerFile<W>, AnswerFileError> {
        let kinds: Vec<AnswerColumnKind> =
            self.kinds.iter().map(|kind| kind.unwrap_or(OF_NOTHING)).collect();
        let columns = self.names.iter().zip(&kinds);
        let field =
            |(name, kind): (&String, &AnswerColumnKind)| Field::new(name, kind.data_type(), true);
        let schema = Arc::new(Schema::new(columns.map(field).collect::<Vec<Field>>()));
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

/// Why values are no array.
enum ArrayError {
    /// A whole number among real ones, by its row.
    Inexact {
        row: usize,
        value: i64,
    },
    Arrow(ArrowError),
}

/// Values of a kind, or missing.
fn array<'a>(
    kind: AnswerColumnKind,
    values: impl ExactSizeIterator<Item = &'a SqlValue>,
) -> Result<ArrayRef, ArrayError> {
    Ok(match kind {
        AnswerColumnKind::Integer => {
            Arc::new(Int64Array::from_iter(values.map(|value| match value {
                SqlValue::Integer(value) => Some(*value),
                _ => None,
            })))
        }
        AnswerColumnKind::Real => {
            let real = |(row, value): (usize, &SqlValue)| match value {
                SqlValue::Real(value) => Ok(Some(*value)),
                SqlValue::Integer(value) => {
                    exact(*value).map(Some).ok_or(ArrayError::Inexact { row, value: *value })
                }
                _ => Ok(None),
            };
            let reals: Result<Vec<Option<f64>>, ArrayError> =
                values.enumerate().map(real).collect();
            Arc::new(Float64Array::from(reals?))
        }
        AnswerColumnKind::Text => {
            let mut texts = TextDictionary::default();
            let keys: Int32Array = values
                .map(|value| match value {
                    SqlValue::Text(text) => Some(texts.key(text)),
                    _ => None,
                })
                .collect();
            by_key(keys, &texts.values()).map_err(ArrayError::Arrow)?
        }
        AnswerColumnKind::Blob => {
            Arc::new(BinaryArray::from_iter(values.map(|value| match value {
                SqlValue::Blob(bytes) => Some(bytes.as_slice()),
                _ => None,
            })))
        }
    })
}

/// A whole number as a real one, if that is the same.
fn exact(value: i64) -> Option<f64> {
    let size = value.unsigned_abs();
    let digits = u64::BITS.saturating_sub(size.leading_zeros() + size.trailing_zeros());
    (digits <= f64::MANTISSA_DIGITS).then_some(value as f64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use AnswerColumnKind::{Blob, Integer, Real, Text};

    #[test]
    fn declarations_are_read_as_sqlite_reads_them() {
        let cases = [
            ("INTEGER", Some(Integer)),
            ("bigint unsigned", Some(Integer)),
            ("FLOATING POINT", Some(Integer)),
            ("VARCHAR(20)", Some(Text)),
            ("double precision", Some(Real)),
            ("blob", Some(Blob)),
            ("NUMERIC", None),
            ("", None),
        ];
        for (declaration, kind) in cases {
            assert_eq!(AnswerColumnKind::declared(declaration), kind, "{declaration}");
        }
    }

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

    #[test]
    fn whole_numbers_are_real_ones_where_nothing_is_lost() {
        assert_eq!(exact(-(1 << 53)), Some(-9_007_199_254_740_992.0));
        assert_eq!(exact((1 << 53) + 1), None);
        assert_eq!(exact(i64::MIN), Some(-9_223_372_036_854_775_808.0));
        assert_eq!(exact(i64::MAX), None);
    }
}
