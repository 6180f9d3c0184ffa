//! What goes over the pipe between a report's reader and the machine that has it.
//!
//! Both sides send frames: four bytes of length, a byte for the kind, and so many bytes less one.
//! Requests and most answers are JSON; rows are packed cells, column after column and compressed
//! where that is shorter. No length is believed before it was compared with what the receiver takes.

// Everything here reads bytes that anybody may have sent.
#![cfg_attr(not(test), warn(clippy::indexing_slicing))]

use crate::codec::{self, VarintReader, write_varint};
use crate::error::ReportError;
use crate::limits::MAX_VALUE_BYTES;
use crate::trace::LaneQuestion;
use rusqlite::types::ValueRef;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::io::{self, Read, Write};
use std::path::Path;

/// Version of what is said over the pipe. Raise it when an older side would misunderstand.
pub(super) const PROTOCOL: u32 = 1;
/// What the far side says first; whatever a login script prints before it is passed over.
pub(super) const MAGIC: &[u8] = b"\0tilescope serve\n";
/// Most bytes that are passed over.
pub(super) const MAX_NOISE: usize = 64 << 10;
/// Longest frame of a request.
pub(super) const MAX_REQUEST: usize = 64 << 10;
/// Longest frame of an answer, and longest rows in it once they are unpacked: two of the largest
/// values that a file may have.
pub(super) const MAX_ANSWER: usize = 2 * MAX_VALUE_BYTES as usize + (1 << 20);
/// Columns of a table that are asked for at a time.
pub(super) const MAX_COLUMNS: usize = 64;
/// Pieces of rows that are sent before word comes that they were taken: as many as are on their way
/// over a slow link.
pub(super) const PIECES_AHEAD: u32 = 16;
/// Bytes of rows from which on they are sent.
pub(super) const PIECE_BYTES: usize = 256 << 10;

/// Which of the databases of a report is asked: what follows from a foreign file or from one of an
/// older version is in files of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub(crate) enum DatabaseKind {
    /// The report itself.
    Report,
    /// The trace index.
    Trace,
    /// Sync points, where they are not with the rest.
    SyncPoints,
}

impl DatabaseKind {
    pub(super) const ALL: [Self; 3] = [Self::Report, Self::Trace, Self::SyncPoints];
}

/// The first words of each side.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Greeting {
    /// Version of the program.
    pub(super) tilescope: String,
    pub(super) protocol: u32,
    /// Major and minor version of the newest format that it reads.
    pub(super) format: (i32, i32),
}

impl Greeting {
    pub(super) fn own() -> Self {
        Self {
            tilescope: env!("CARGO_PKG_VERSION").to_owned(),
            protocol: PROTOCOL,
            format: crate::schema::FORMAT,
        }
    }
}

/// A request, and the number that its answers have.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Request {
    pub(super) id: u64,
    pub(super) ask: Ask,
}

/// What is asked.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum Ask {
    /// Opens the report at a path: the first request, and there is one.
    Open { path: String },
    /// Rows of a table.
    Rows(RowsRequest),
    /// A number over the rows of a table.
    Number { database: DatabaseKind, table: String, number: TableNumber },
    /// The same of several lanes of the trace, by their numbers: a row with a blob for each.
    Lanes { lanes: Vec<u32>, question: LaneQuestion },
    /// More rows of the request with this number.
    More,
    /// No more of the request with this number.
    Stop,
    /// Makes the trace ready.
    PrepareTrace,
    /// Makes sync points ready; if they only need to be made where that is known, nothing is made.
    PrepareSyncPoints { only_known: bool },
    /// Whether the trace can be shown at once.
    TraceState,
    /// Checks the laws of the report; of its tables and a short trace only, if asked on the side.
    Verify { apart: bool },
    /// A text that lies beside the report.
    SidecarText { name: String },
    /// The files beside the report, and when it was changed.
    Files,
}

/// Which rows of which table. Nothing of it is SQL that is run as it comes: the far side reads the
/// clauses, and writes down what it has understood.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub(super) struct RowsRequest {
    pub(super) database: DatabaseKind,
    pub(super) table: String,
    pub(super) columns: Vec<String>,
    pub(super) clauses: String,
    pub(super) params: Vec<i64>,
    /// So many rows are enough.
    pub(super) most: Option<u64>,
}

/// A number over the rows of a table.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum TableNumber {
    /// How many there are.
    Rows,
    /// The highest value of a column.
    Highest(String),
    /// The highest value of a column from 0 to another.
    HighestWithin(String, i64),
    /// How many values of a column differ.
    Distinct(String),
}

impl TableNumber {
    /// The column that it is of.
    pub(crate) fn column(&self) -> Option<&str> {
        match self {
            Self::Rows => None,
            Self::Highest(column) | Self::HighestWithin(column, _) | Self::Distinct(column) => {
                Some(column)
            }
        }
    }

    /// The same for SQLite; the column is one that the table has.
    pub(crate) fn expression(&self) -> String {
        let quoted = |column: &str| format!("\"{}\"", column.replace('"', "\"\""));
        match self {
            // `count(*)` is one instruction, which nothing can end in a file whose pages point at
            // each other; a sum goes from row to row.
            Self::Rows => "total(1)".to_owned(),
            Self::Highest(column) => format!("max({})", quoted(column)),
            Self::HighestWithin(column, most) => {
                let column = quoted(column);
                format!("max({column}) FILTER (WHERE {column} BETWEEN 0 AND {most})")
            }
            Self::Distinct(column) => format!("count(DISTINCT {})", quoted(column)),
        }
    }
}

/// What is answered to a request.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Answer {
    pub(super) id: u64,
    pub(super) said: Said,
}

#[derive(Debug, Serialize, Deserialize)]
pub(super) enum Said {
    /// The first words of the far side, to no request.
    Greeting(Greeting),
    Opened(Box<OpenedReport>),
    Number(Option<i64>),
    /// A share from 0 to 1 of work that goes on.
    Progress(f64),
    /// What there is now, if anything, and everything that was odd so far.
    Prepared {
        database: Option<DatabaseFacts>,
        warnings: Vec<String>,
    },
    TraceState(crate::reader::TraceState),
    Violations {
        found: Vec<(String, String)>,
        warnings: Vec<String>,
    },
    Text(Option<String>),
    Files(FileFacts),
    Failed(Failure),
}

/// What is known of a report once it is open.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct OpenedReport {
    /// Path of the file there.
    pub(crate) path: String,
    pub(crate) database: DatabaseFacts,
    pub(crate) warnings: Vec<String>,
    pub(crate) files: FileFacts,
}

/// Files of a report.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct FileFacts {
    /// When the report was changed, in nanoseconds since 1970.
    pub(crate) modified: Option<u64>,
    /// Files beside it that are there: name, bytes and when they were changed.
    pub(crate) sidecars: Vec<(String, u64, Option<u64>)>,
}

/// What is known of a database without asking it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct DatabaseFacts {
    pub(crate) bytes: u64,
    pub(crate) tables: BTreeMap<String, TableFacts>,
    /// Whether tables and columns hold anything, as far as that was looked at.
    pub(crate) filled: BTreeMap<String, bool>,
    pub(crate) application_id: i64,
    pub(crate) user_version: i64,
}

/// What is known of a table.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct TableFacts {
    pub(crate) columns: Vec<String>,
    pub(crate) has_rowid: bool,
    /// How many rows a small table has, which come with what is known of the database.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) rows: Option<u64>,
}

/// An error, apart from the path that it is about.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Failure {
    NotFound,
    NoReportInDirectory(String),
    NotAReport(String),
    Truncated(u64, u64),
    UnknownFormat(String),
    Replaced,
    Damaged(String),
    Read(String),
    Write(String),
    DiskFull,
    Cancelled,
    /// The request makes no sense: what sent it is no tilescope of this version.
    Refused(String),
}

impl Failure {
    /// The error as the far side met it, without its path there.
    pub(super) fn of(error: &ReportError) -> Self {
        match error {
            ReportError::NotFound { .. } => Self::NotFound,
            ReportError::NoReportInDirectory { found, .. } => {
                Self::NoReportInDirectory(found.clone())
            }
            ReportError::NotAReport { found, .. } => Self::NotAReport(found.clone()),
            ReportError::Truncated { size, expected, .. } => Self::Truncated(*size, *expected),
            ReportError::UnknownFormat { format, .. } => Self::UnknownFormat(format.clone()),
            ReportError::Replaced { .. } => Self::Replaced,
            ReportError::Damaged { problem, .. } => Self::Damaged(problem.clone()),
            ReportError::Read { source, .. } => Self::Read(source.to_string()),
            ReportError::Write { problem, .. } => Self::Write(problem.clone()),
            ReportError::DiskFull { .. } => Self::DiskFull,
            ReportError::Cancelled => Self::Cancelled,
            other => Self::Refused(other.to_string()),
        }
    }

    /// The same error here, about `path`.
    pub(super) fn error(self, path: &Path) -> ReportError {
        let path = path.to_owned();
        match self {
            Self::NotFound => ReportError::NotFound { path },
            Self::NoReportInDirectory(found) => ReportError::NoReportInDirectory { found, path },
            Self::NotAReport(found) => ReportError::NotAReport { found, path },
            Self::Truncated(size, expected) => ReportError::Truncated { size, expected, path },
            Self::UnknownFormat(format) => ReportError::UnknownFormat { format, path },
            Self::Replaced => ReportError::Replaced { path },
            Self::Damaged(problem) => ReportError::Damaged { problem, path },
            Self::Read(problem) => ReportError::Read { source: io::Error::other(problem), path },
            Self::Write(problem) => ReportError::Write { problem, path },
            Self::DiskFull => ReportError::DiskFull { path },
            Self::Cancelled => ReportError::Cancelled,
            Self::Refused(problem) => ReportError::Remote { problem, path },
        }
    }
}

/// Why a frame could not be read or understood.
#[derive(Debug, thiserror::Error)]
pub(super) enum FrameError {
    #[error("it ended in the middle of a message")]
    CutOff,
    #[error("a message of {0} B, more than is taken")]
    TooLong(u64),
    #[error("a message that cannot be understood")]
    NotUnderstood,
    #[error(transparent)]
    Io(#[from] io::Error),
}

/// Kinds of frames.
const JSON: u8 = b'J';
const ROWS: u8 = b'R';

/// A frame that was read.
#[derive(Debug)]
pub(super) enum Frame<T> {
    Words(T),
    Rows(RowsPiece),
}

/// Some of the rows of a request.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct RowsPiece {
    pub(super) id: u64,
    /// Whether these are the last ones.
    pub(super) is_last: bool,
    /// Cells of a row; 0 where rows of several tables lie behind each other.
    pub(super) width: usize,
    /// Their cells, row after row.
    pub(super) cells: Vec<u8>,
}

/// Reads a frame of at most `limit` bytes; `None` where the input ends between two frames.
pub(super) fn read_frame<T: for<'a> Deserialize<'a>>(
    input: &mut impl Read,
    limit: usize,
) -> Result<Option<Frame<T>>, FrameError> {
    let mut head = [0; 4];
    let mut have = 0;
    while have < head.len() {
        match input.read(head.get_mut(have..).unwrap_or_default()) {
            Ok(0) if have == 0 => return Ok(None),
            Ok(0) => return Err(FrameError::CutOff),
            Ok(count) => have += count,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error.into()),
        }
    }
    let length = u32::from_le_bytes(head);
    if length == 0 || length as usize > limit {
        return Err(FrameError::TooLong(length.into()));
    }
    let mut body = Vec::new();
    // Room grows with what comes: a length alone costs nothing.
    input.take(length.into()).read_to_end(&mut body)?;
    if body.len() < length as usize {
        return Err(FrameError::CutOff);
    }
    let (kind, rest) = body.split_first().ok_or(FrameError::CutOff)?;
    match *kind {
        JSON => {
            let words = serde_json::from_slice(rest).map_err(|_| FrameError::NotUnderstood)?;
            Ok(Some(Frame::Words(words)))
        }
        ROWS => Ok(Some(Frame::Rows(read_rows(rest).ok_or(FrameError::NotUnderstood)?))),
        _ => Err(FrameError::NotUnderstood),
    }
}

fn read_rows(body: &[u8]) -> Option<RowsPiece> {
    let mut reader = VarintReader::new(body);
    let (id, flags) = (reader.take()?, reader.take()?);
    let width = usize::try_from(reader.take()?).ok().filter(|width| *width <= MAX_COLUMNS)?;
    (flags <= LAST | COMPRESSED | COLUMNS).then_some(())?;
    let mut cells = reader.bytes(reader.left())?.to_vec();
    if flags & COMPRESSED != 0 {
        cells = codec::unpack(&cells, MAX_ANSWER)?;
    }
    if flags & COLUMNS != 0 {
        cells = from_columns(&cells, width)?;
    }
    Some(RowsPiece { id, is_last: flags & LAST != 0, width, cells })
}

const LAST: u64 = 1;
const COMPRESSED: u64 = 2;
const COLUMNS: u64 = 4;

/// Cells that lie row after row, column after column: the length of each column, and its cells, of
/// which integers are differences to the one before. What is alike lies together then, and packs to
/// half. `None` where they are no such rows.
fn to_columns(cells: &[u8], width: usize) -> Option<Vec<u8>> {
    let mut columns = vec![(Vec::new(), 0); width];
    let mut cells = CellReader::new(cells);
    while !cells.is_done() {
        for (column, before) in &mut columns {
            write_cell_after(column, cells.take()?, before);
        }
    }
    let mut all = Vec::new();
    for (column, _) in &columns {
        write_varint(&mut all, column.len() as u64);
        all.extend_from_slice(column);
    }
    Some(all)
}

/// The cells row after row again.
fn from_columns(all: &[u8], width: usize) -> Option<Vec<u8>> {
    let mut rest = VarintReader::new(all);
    let mut columns = Vec::with_capacity(width);
    for _ in 0..width {
        let length = usize::try_from(rest.take()?).ok()?;
        columns.push((VarintReader::new(rest.bytes(length)?), 0));
    }
    let mut cells = Vec::new();
    while columns.first().is_some_and(|(column, _)| !column.is_done()) {
        for (column, before) in &mut columns {
            let value = take_cell(column, before)?;
            write_cell(&mut cells, value);
        }
        // Numbers are longer than their differences.
        (cells.len() <= MAX_ANSWER).then_some(())?;
    }
    let are_done = columns.iter().all(|(column, _)| column.is_done());
    (rest.is_done() && are_done).then_some(cells)
}

/// Writes words as a frame; gives its bytes.
pub(super) fn write_words(output: &mut impl Write, words: &impl Serialize) -> io::Result<u64> {
    let mut body = vec![JSON];
    serde_json::to_writer(&mut body, words)?;
    write_frame(output, &body)
}

/// Writes rows as a frame.
pub(super) fn write_rows(output: &mut impl Write, rows: &RowsPiece) -> io::Result<u64> {
    let columns = (rows.width > 0).then(|| to_columns(&rows.cells, rows.width)).flatten();
    let cells = columns.as_ref().unwrap_or(&rows.cells);
    let packed = codec::pack(cells);
    let is_shorter = packed.len() < cells.len();
    let flag = |holds, flag| if holds { flag } else { 0 };
    let flags =
        flag(rows.is_last, LAST) | flag(is_shorter, COMPRESSED) | flag(columns.is_some(), COLUMNS);
    let mut body = vec![ROWS];
    write_varint(&mut body, rows.id);
    write_varint(&mut body, flags);
    write_varint(&mut body, rows.width as u64);
    body.extend_from_slice(if is_shorter { &packed } else { cells });
    write_frame(output, &body)
}

/// Answers as frames whose rows are not compressed, for tests that change them; whatever follows what
/// is no frame is left away.
pub(super) fn plain_frames(mut answers: &[u8]) -> Vec<Vec<u8>> {
    let mut frames = Vec::new();
    loop {
        let mut frame = Vec::new();
        // Writing to memory cannot fail.
        let _ = match read_frame::<serde_json::Value>(&mut answers, MAX_ANSWER) {
            Ok(Some(Frame::Words(words))) => write_words(&mut frame, &words),
            Ok(Some(Frame::Rows(RowsPiece { id, is_last, width, cells }))) => {
                let mut body = vec![ROWS];
                write_varint(&mut body, id);
                write_varint(&mut body, if is_last { LAST } else { 0 });
                write_varint(&mut body, width as u64);
                body.extend(cells);
                write_frame(&mut frame, &body)
            }
            Ok(None) | Err(_) => return frames,
        };
        frames.push(frame);
    }
}

fn write_frame(output: &mut impl Write, body: &[u8]) -> io::Result<u64> {
    let length = u32::try_from(body.len()).map_err(io::Error::other)?;
    output.write_all(&length.to_le_bytes())?;
    output.write_all(body)?;
    output.flush()?;
    Ok(u64::from(length) + 4)
}

const NULL: u8 = 0;
const INTEGER: u8 = 1;
const REAL: u8 = 2;
const TEXT: u8 = 3;
const BLOB: u8 = 4;

/// Appends a cell.
pub(super) fn write_cell(cells: &mut Vec<u8>, value: ValueRef) {
    write_cell_after(cells, value, &mut 0);
}

/// Appends a cell, an integer as the difference to the one `before`.
fn write_cell_after(cells: &mut Vec<u8>, value: ValueRef, before: &mut u64) {
    let (kind, bytes) = match value {
        ValueRef::Null => return cells.push(NULL),
        ValueRef::Integer(value) => {
            cells.push(INTEGER);
            let before = std::mem::replace(before, value as u64);
            return write_varint(cells, codec::difference(value as u64, before));
        }
        ValueRef::Real(value) => {
            cells.push(REAL);
            return cells.extend_from_slice(&value.to_le_bytes());
        }
        ValueRef::Text(bytes) => (TEXT, bytes),
        ValueRef::Blob(bytes) => (BLOB, bytes),
    };
    cells.push(kind);
    write_varint(cells, bytes.len() as u64);
    cells.extend_from_slice(bytes);
}

/// The next cell, an integer as it follows the one `before`.
fn take_cell<'a>(cells: &mut VarintReader<'a>, before: &mut u64) -> Option<ValueRef<'a>> {
    let kind = *cells.bytes(1)?.first()?;
    Some(match kind {
        NULL => ValueRef::Null,
        INTEGER => {
            *before = codec::apply_zigzag_difference(cells.take()?, *before);
            ValueRef::Integer(i64::from_ne_bytes(before.to_ne_bytes()))
        }
        REAL => ValueRef::Real(f64::from_le_bytes(cells.bytes(8)?.try_into().ok()?)),
        TEXT | BLOB => {
            let length = usize::try_from(cells.take()?).ok()?;
            let bytes = cells.bytes(length)?;
            if kind == TEXT { ValueRef::Text(bytes) } else { ValueRef::Blob(bytes) }
        }
        _ => return None,
    })
}

/// Reads cells one after the other; `None` where they end or make no sense.
#[derive(Clone, Copy)]
pub(super) struct CellReader<'a>(VarintReader<'a>);

impl<'a> CellReader<'a> {
    pub(super) fn new(cells: &'a [u8]) -> Self {
        Self(VarintReader::new(cells))
    }

    pub(super) fn is_done(&self) -> bool {
        self.0.is_done()
    }

    pub(super) fn take(&mut self) -> Option<ValueRef<'a>> {
        take_cell(&mut self.0, &mut 0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use rusqlite::types::Value;
    use std::path::PathBuf;
    use tilescope_test_tiers::cases;

    fn value() -> impl Strategy<Value = Value> {
        prop_oneof![
            Just(Value::Null),
            any::<i64>().prop_map(Value::Integer),
            any::<f64>().prop_filter("equal to itself", |v| !v.is_nan()).prop_map(Value::Real),
            any::<String>().prop_map(Value::Text),
            any::<Vec<u8>>().prop_map(Value::Blob),
        ]
    }

    fn frames(bytes: &[u8]) -> Result<Vec<Frame<Request>>, FrameError> {
        let mut rest = bytes;
        let mut found = Vec::new();
        while let Some(frame) = read_frame(&mut rest, MAX_REQUEST)? {
            found.push(frame);
        }
        Ok(found)
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(cases(250)))]
        #[test]
        fn rows_come_back(
            values in proptest::collection::vec(value(), 0..60),
            id in any::<u64>(),
            is_last in any::<bool>(),
            width in 0usize..6,
        ) {
            let mut cells = Vec::new();
            values.iter().for_each(|value| write_cell(&mut cells, value.into()));
            let rows = RowsPiece { id, is_last, width, cells };
            let mut bytes = Vec::new();
            let written = write_rows(&mut bytes, &rows).unwrap();
            prop_assert_eq!(written, bytes.len() as u64);
            let Ok(Some(Frame::<Request>::Rows(read))) = read_frame(&mut &bytes[..], MAX_ANSWER)
            else { panic!("rows") };
            prop_assert_eq!(&read, &rows);
            let mut cells = CellReader::new(&read.cells);
            for value in &values {
                prop_assert_eq!(cells.take(), Some(ValueRef::from(value)));
            }
            prop_assert!(cells.is_done() && cells.take().is_none());
        }

        #[test]
        fn any_bytes_are_frames_or_refused(bytes in any::<Vec<u8>>()) {
            let _ = frames(&bytes);
            let mut cells = CellReader::new(&bytes);
            while cells.take().is_some() {}
            for width in 0..4 {
                let _ = from_columns(&bytes, width);
            }
        }

        #[test]
        fn what_is_changed_or_cut_off_is_read_or_refused(
            at in any::<prop::sample::Index>(),
            with in any::<u8>(),
            cut in any::<bool>(),
        ) {
            let mut bytes = Vec::new();
            let ask = Ask::Number {
                database: DatabaseKind::Trace,
                table: "trace_lanes".to_owned(),
                number: TableNumber::HighestWithin("lane".to_owned(), 5),
            };
            write_words(&mut bytes, &Request { id: 7, ask }).unwrap();
            let cells = vec![NULL; 100];
            write_rows(&mut bytes, &RowsPiece { id: 1, is_last: false, width: 4, cells }).unwrap();
            let at = at.index(bytes.len());
            if cut {
                bytes.truncate(at);
                let whole = frames(&bytes).is_ok();
                prop_assert!(!whole || at == 0 || frames(&bytes).is_ok_and(|f| f.len() == 1));
            } else {
                bytes[at] = with;
                let _ = frames(&bytes);
            }
        }
    }

    #[test]
    fn lengths_are_compared_before_there_is_room_for_them() {
        let endless = io::repeat(0xff);
        let refused = read_frame::<Request>(&mut endless.take(1 << 40), MAX_REQUEST);
        assert!(matches!(refused, Err(FrameError::TooLong(_))), "{refused:?}");
        // A length that is allowed, and nothing behind it.
        let mut short: &[u8] = &(MAX_REQUEST as u32).to_le_bytes();
        assert!(matches!(read_frame::<Request>(&mut short, MAX_REQUEST), Err(FrameError::CutOff)));
    }

    #[test]
    fn rows_that_unpack_to_too_much_are_refused() {
        let bomb = codec::pack(&vec![0; MAX_ANSWER + 1]);
        let mut body = vec![1, COMPRESSED as u8, 0];
        body.extend_from_slice(&bomb);
        assert!(bomb.len() < 1 << 20 && read_rows(&body).is_none());
        // One large number, and as many differences of nothing, each of which is as large again.
        let mut column = Vec::new();
        write_cell(&mut column, ValueRef::Integer(i64::MIN));
        column.extend(std::iter::repeat_n([INTEGER, 0], MAX_ANSWER / 4).flatten());
        let mut columns = Vec::new();
        write_varint(&mut columns, column.len() as u64);
        columns.extend(column);
        let mut body = vec![1, (COMPRESSED | COLUMNS) as u8, 1];
        body.extend(codec::pack(&columns));
        assert!(body.len() < 1 << 20 && read_rows(&body).is_none());
    }

    #[test]
    fn columns_of_different_lengths_are_refused() {
        assert_eq!(from_columns(&[2, NULL, NULL, 1, NULL], 2), None);
        assert_eq!(from_columns(&[1, NULL, 1, NULL, 9], 2), None);
        assert_eq!(from_columns(&[1, NULL, 1, NULL], 2), Some(vec![NULL, NULL]));
    }

    #[test]
    fn errors_come_over_with_the_path_they_have_here() {
        let there = ReportError::Truncated { size: 5, expected: 9, path: PathBuf::from("/there") };
        let here = Failure::of(&there).error(Path::new("ssh://pod16/there"));
        assert_eq!(here.to_string(), there.to_string().replace("/there", "ssh://pod16/there"));
    }
}
