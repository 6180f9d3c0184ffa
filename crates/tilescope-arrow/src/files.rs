//! Parquet and Arrow files, written while batches arrive: in memory are a few batches and the
//! unfinished row group, for a table of any length.

use crate::table::BatchIterator;
use arrow_array::RecordBatch;
use arrow_ipc::writer::FileWriter;
use arrow_schema::{ArrowError, DataType, SchemaRef};
use parquet::arrow::ArrowWriter;
use parquet::basic::{Compression, Encoding};
use parquet::errors::ParquetError;
use parquet::file::metadata::KeyValue;
use parquet::file::properties::WriterProperties;
use parquet::schema::types::ColumnPath;
use std::io::Write;
use tilescope_report::ReportError;

/// Rows of a row group: enough to compress well, few enough that a reader can skip most of a long
/// run.
const ROW_GROUP_ROWS: usize = 1 << 17;
/// Bytes of a row group, which stays in memory until it is complete.
const ROW_GROUP_BYTES: usize = 64 << 20;

/// Bytes of the texts of a row group. Without a dictionary, each row has a copy of its text: long
/// names in an untrusted file would turn a few megabytes into batches of gigabytes.
const MOST_DICTIONARY_BYTES: usize = 1 << 30;

/// Columns that ascend along a lane: their differences are small, and few values are repeated.
const RISING: [&str; 3] = ["step_id", "from_cycle", "to_cycle"];

/// A file format for tables.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ArrowFileFormat {
    /// Apache Parquet, compressed.
    Parquet,
    /// The file format of Arrow IPC, also known as Feather 2.
    Arrow,
}

/// The reason why a file could not be written.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ArrowFileError {
    /// The exported data cannot be read.
    #[error(transparent)]
    Report(#[from] ReportError),
    /// The caller cancelled the export.
    #[error("cancelled")]
    Cancelled,
    /// The file cannot be written.
    #[error("{0}")]
    Write(String),
}

impl From<ArrowError> for ArrowFileError {
    fn from(error: ArrowError) -> Self {
        match error {
            ArrowError::ExternalError(source) => match source.downcast::<ReportError>() {
                Ok(error) => Self::Report(*error),
                Err(other) => Self::Write(other.to_string()),
            },
            error => Self::Write(error.to_string()),
        }
    }
}

impl From<ParquetError> for ArrowFileError {
    fn from(error: ParquetError) -> Self {
        Self::Write(error.to_string())
    }
}

/// Writes batches as a file. `on_rows` receives the number of rows written, and returns whether to
/// continue.
///
/// # Errors
/// A batch cannot be read, the output cannot be written, or [`ArrowFileError::Cancelled`].
pub fn write_batches(
    schema: &SchemaRef,
    batches: BatchIterator,
    format: ArrowFileFormat,
    output: impl Write + Send,
    on_rows: &mut dyn FnMut(u64) -> bool,
) -> Result<(), ArrowFileError> {
    match format {
        ArrowFileFormat::Parquet => {
            let mut file = parquet_writer(output, schema)?;
            for_each_batch(batches, on_rows, |batch| Ok(file.write(batch)?))?;
            file.close()?;
        }
        ArrowFileFormat::Arrow => {
            let mut file = FileWriter::try_new_buffered(output, schema)?;
            for_each_batch(batches, on_rows, |batch| Ok(file.write(batch)?))?;
            file.finish()?;
        }
    }
    Ok(())
}

/// A writer for a Parquet file.
pub(crate) fn parquet_writer<W: Write + Send>(
    output: W,
    schema: &SchemaRef,
) -> Result<ArrowWriter<W>, ArrowFileError> {
    Ok(ArrowWriter::try_new(output, schema.clone(), Some(parquet_properties(schema)))?)
}

fn for_each_batch(
    batches: BatchIterator,
    on_rows: &mut dyn FnMut(u64) -> bool,
    mut write: impl FnMut(&RecordBatch) -> Result<(), ArrowFileError>,
) -> Result<(), ArrowFileError> {
    let mut rows = 0;
    for batch in batches {
        let batch = batch?;
        write(&batch)?;
        rows += batch.num_rows() as u64;
        if !on_rows(rows) {
            return Err(ArrowFileError::Cancelled);
        }
    }
    Ok(())
}

fn parquet_properties(schema: &SchemaRef) -> WriterProperties {
    let created_by = concat!("tilescope ", env!("CARGO_PKG_VERSION"));
    let mut properties = WriterProperties::builder()
        .set_created_by(created_by.to_owned())
        .set_compression(Compression::SNAPPY)
        .set_max_row_group_row_count(Some(ROW_GROUP_ROWS))
        .set_max_row_group_bytes(Some(ROW_GROUP_BYTES));
    // Readers that know no Arrow find it there.
    let mut pairs: Vec<KeyValue> = schema
        .metadata()
        .iter()
        .map(|(key, value)| KeyValue::new(key.clone(), value.clone()))
        .collect();
    pairs.sort_by(|a, b| a.key.cmp(&b.key));
    if !pairs.is_empty() {
        properties = properties.set_key_value_metadata(Some(pairs));
    }
    for field in schema.fields() {
        let name = field.name().as_str();
        let column = ColumnPath::from(name);
        properties = match field.data_type() {
            DataType::Utf8 | DataType::Dictionary(..) => {
                properties.set_column_dictionary_page_size_limit(column, MOST_DICTIONARY_BYTES)
            }
            DataType::Int64 if RISING.contains(&name) => properties
                .set_column_dictionary_enabled(column.clone(), false)
                .set_column_encoding(column, Encoding::DELTA_BINARY_PACKED),
            _ => properties,
        };
    }
    properties.build()
}
