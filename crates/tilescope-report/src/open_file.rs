//! Opening a database connection to a file, after checks that it is a complete report.

use super::error::ReportError;
use rusqlite::{Connection, ErrorCode, OpenFlags};
use std::fs::{self, File, Metadata};
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::time::UNIX_EPOCH;

/// Name of the report file in its directory.
pub const REPORT_FILE: &str = "profile.pop";

/// The number of bytes of a path above which SQLite may refuse it: it allows 4,096 with its own
/// suffixes.
const LONG_PATH: usize = 3_500;

/// First bytes of every SQLite file, and so of every report.
pub(super) const MAGIC: &[u8] = b"SQLite format 3\0";

/// The first bytes of files that users mistake for reports.
const OTHER_FILE_SIGNATURES: [(&[u8], &str); 12] = [
    (b"\xff\xd8\xff", "this is a JPEG picture"),
    (b"\x89PNG", "this is a PNG picture"),
    (b"GIF8", "this is a GIF picture"),
    (b"%PDF", "this is a PDF document"),
    (b"PK\x03\x04", "this is a ZIP archive"),
    (b"\x1f\x8b", "this is gzip-compressed: unpack it first"),
    (b"\x28\xb5\x2f\xfd", "this is zstd-compressed: unpack it first"),
    (b"\x7fELF", "this is an ELF program"),
    (b"!<arch>", "this is an archive of tile programs (archive.a)"),
    (b"version https://git-lfs", "this is a Git LFS pointer: fetch the file itself"),
    (b"{", "this is JSON, perhaps a report of an SDK before 2.0"),
    (b"[", "this is JSON, perhaps a report of an SDK before 2.0"),
];

/// Checks that `path` is a complete SQLite file. Returns its size in bytes.
pub(super) fn check(path: &Path) -> Result<u64, ReportError> {
    let to_error = |e| ReportError::reading(e, path);
    let refuse = |found: &str| {
        Err(ReportError::NotAReport { found: found.to_owned(), path: path.to_owned() })
    };
    let found = fs::metadata(path).map_err(to_error)?;
    if !found.is_file() {
        return refuse("this is not a regular file");
    }
    let size = found.len();
    let mut head = Vec::new();
    File::open(path).map_err(to_error)?.take(100).read_to_end(&mut head).map_err(to_error)?;
    if head.is_empty() {
        return refuse("this file is empty");
    }
    if !head.starts_with(MAGIC) {
        let known = OTHER_FILE_SIGNATURES.iter().find(|(first, _)| head.starts_with(first));
        return refuse(known.map_or("this is not an SQLite file", |(_, what)| what));
    }
    if head.len() < 100 {
        return Err(ReportError::Truncated { size, expected: 512, path: path.to_owned() });
    }
    let expected = promised_size(&head);
    // While there is a write-ahead log beside the file, the file itself may lag behind.
    if size < expected && !has_content(&with_suffix(path, "-wal")) {
        return Err(ReportError::Truncated { size, expected, path: path.to_owned() });
    }
    Ok(size)
}

/// Size in bytes according to the header of an SQLite file; 0 if it does not state one.
fn promised_size(head: &[u8]) -> u64 {
    let read_word =
        |at: usize| u32::from_be_bytes([head[at], head[at + 1], head[at + 2], head[at + 3]]);
    let page = match u16::from_be_bytes([head[16], head[17]]) {
        1 => 65_536,
        bytes => u64::from(bytes),
    };
    // The page count is valid only if the counter at 92 agrees with the one at 24.
    if read_word(24) == read_word(92) { page * u64::from(read_word(28)) } else { 0 }
}

/// `path` with something appended to its file name.
pub(super) fn with_suffix(path: &Path, suffix: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(suffix);
    PathBuf::from(name)
}

/// True if the file found under a name is the open one. On systems that give files no numbers, true
/// if there is any.
pub(super) fn is_same_file(open: &File, named: io::Result<Metadata>) -> bool {
    let Ok(open) = open.metadata() else { return false };
    let Ok(named) = named else { return false };
    number(&open) == number(&named)
}

/// The number of a file, unique while the file is open.
#[cfg(unix)]
fn number(found: &Metadata) -> Option<(u64, u64)> {
    use std::os::unix::fs::MetadataExt;
    Some((found.dev(), found.ino()))
}

#[cfg(not(unix))]
fn number(_: &Metadata) -> Option<(u64, u64)> {
    None
}

/// A text that differs between report files, and between versions of one file.
pub(crate) fn file_version(path: &Path) -> Result<String, ReportError> {
    let whole = fs::canonicalize(path).map_err(|e| ReportError::reading(e, path))?;
    let found = fs::metadata(&whole).map_err(|e| ReportError::reading(e, path))?;
    let log = fs::metadata(with_suffix(&whole, "-wal")).ok();
    let log = log.map_or(String::new(), |log| version(&log));
    // The log is part of the key: in WAL mode a report may change while its main file does not.
    Ok(format!("{}\n{}\n{log}", whole.display(), version(&found)))
}

fn version(found: &Metadata) -> String {
    let changed = found.modified().ok().and_then(|time| time.duration_since(UNIX_EPOCH).ok());
    format!("{} {}", found.len(), changed.unwrap_or_default().as_nanos())
}

fn has_content(path: &Path) -> bool {
    fs::metadata(path).is_ok_and(|found| found.len() > 0)
}

/// Opens a report file without changing it or any file beside it. Also returns a warning if the
/// content read may be older than the last write.
pub(super) fn connect(path: &Path) -> Result<(Connection, Option<String>), ReportError> {
    let to_error = |error: rusqlite::Error| {
        let bytes = path.as_os_str().len();
        let cannot_open = error.sqlite_error_code() == Some(ErrorCode::CannotOpen);
        if cannot_open && bytes > LONG_PATH {
            return ReportError::LongPath { bytes, path: path.to_owned() };
        }
        ReportError::sqlite_reading(&error, "header", path)
    };
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY
        | OpenFlags::SQLITE_OPEN_URI
        | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    if has_content(&with_suffix(path, "-wal")) && cfg!(unix) {
        // Without locks and with a single connection, SQLite keeps the log's index in memory and
        // touches no file.
        let uri = uri(path, "mode=ro&vfs=unix-none");
        let connection = Connection::open_with_flags(uri, flags).map_err(to_error)?;
        connection
            .query_row("PRAGMA locking_mode = EXCLUSIVE", [], |_| Ok(()))
            .map_err(to_error)?;
        let warning = "the file has a write-ahead log: a program may still be writing to it";
        return Ok((connection, Some(warning.to_owned())));
    }
    let connection =
        Connection::open_with_flags(uri(path, "immutable=1"), flags).map_err(to_error)?;
    if !has_content(&with_suffix(path, "-journal")) {
        return Ok((connection, None));
    }
    let warning = "the file has a journal: it was not closed properly, and parts may be wrong";
    Ok((connection, Some(warning.to_owned())))
}

/// `path` as a URI with SQLite's `options`.
fn uri(path: &Path, options: &str) -> String {
    let mut uri = String::from("file:");
    for &byte in path.as_os_str().as_encoded_bytes() {
        match byte {
            b'/' | b'.' | b'-' | b'_' | b':' | b'\\' => uri.push(byte as char),
            _ if byte.is_ascii_alphanumeric() => uri.push(byte as char),
            _ => uri.push_str(&format!("%{byte:02x}")),
        }
    }
    format!("{uri}?{options}")
}
