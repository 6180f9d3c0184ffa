//! Error messages for invalid queries, with the position and a suggestion.

use super::SqlError;
use crate::marked_text::marked;
use crate::records::RECORDS;
use crate::tables::{self, ReportTable};
use rusqlite::{Connection, Error, ErrorCode};
use std::ops::Range;

/// The number of characters of a line that are shown around a position.
const SHOWN_LETTERS: usize = 72;
/// The largest number of names that are compared with an unknown one.
const MAX_NAMES: usize = 20_000;

/// Codes of errors with files that only are temporary ones: no directory for them, and writing.
const TEMPORARY_FILES: [i32; 2] =
    [rusqlite::ffi::SQLITE_IOERR_GETTEMPPATH, rusqlite::ffi::SQLITE_IOERR_WRITE];

/// Converts an error of SQLite to an error about the query.
pub(super) fn of(error: Error, sql: &str, connection: &Connection) -> SqlError {
    match error {
        Error::SqlInputError { msg, .. } if msg.starts_with("not authorized") => {
            SqlError::Question(denied(&msg))
        }
        Error::SqlInputError { msg, offset, .. } => {
            let at = usize::try_from(offset).ok().and_then(|at| place_of_word(sql, at));
            SqlError::Question(explained(&msg, sql, at, connection))
        }
        Error::MultipleStatement => SqlError::Question(
            "only one statement is allowed: there is text after the first ;".to_owned(),
        ),
        Error::SqliteFailure(failure, message) => {
            let message = message.unwrap_or_else(|| failure.to_string());
            match failure.code {
                ErrorCode::OutOfMemory => SqlError::TooMuchMemory,
                ErrorCode::TooBig => SqlError::TooLarge,
                // Nothing else is written or created.
                ErrorCode::DiskFull | ErrorCode::CannotOpen => SqlError::NoDisk(message),
                ErrorCode::SystemIoFailure if TEMPORARY_FILES.contains(&failure.extended_code) => {
                    SqlError::NoDisk(message)
                }
                ErrorCode::AuthorizationForStatementDenied => SqlError::Question(denied(&message)),
                ErrorCode::Unknown => {
                    SqlError::Question(explained(&message, sql, None, connection))
                }
                _ => SqlError::Failed(message),
            }
        }
        error => SqlError::Failed(error.to_string()),
    }
}

/// The message for a query that would change something.
pub(super) fn denied(message: &str) -> String {
    format!("queries are read-only ({message})")
}

/// The message with a suggestion, and with marks below the position.
fn explained(
    message: &str,
    sql: &str,
    at: Option<Range<usize>>,
    connection: &Connection,
) -> String {
    let unknown = ["no such column: ", "no such table: ", "no such function: "]
        .iter()
        .find_map(|start| Some((*start, message.strip_prefix(start)?)));
    let Some((what, full_name)) = unknown else {
        let unquoted = tables::all().map(ReportTable::path).find(|path| is_unquoted(sql, path));
        return match unquoted.filter(|_| message.starts_with("near \"/\"")) {
            Some(path) => shown(&format!("{message}; did you mean \"{path}\"?"), sql, at),
            None => shown(message, sql, at),
        };
    };
    // The sentence of a view follows its name.
    let name = full_name.split(": ").next().unwrap_or(full_name);
    let name = name.rsplit('.').next().unwrap_or(name);
    let at = at.or_else(|| place_of_name(sql, name));
    let known = match what {
        "no such column: " => column_names(connection, sql),
        "no such table: " => table_names(connection),
        _ => function_names(connection),
    };
    let known = known.unwrap_or_default();
    let message = match nearest(name, &known) {
        Some(near) => format!("{message}; did you mean {near}?"),
        None => message.to_owned(),
    };
    shown(&message, sql, at)
}

/// True if a query has the path of a table without the required quotes.
fn is_unquoted(sql: &str, path: &str) -> bool {
    let sql = sql.to_lowercase();
    sql.contains(path) && !sql.contains(&format!("\"{path}\""))
}

/// The known name most similar to a given one, if any is similar.
fn nearest<'n>(name: &str, known: &'n [String]) -> Option<&'n str> {
    let name = name.to_lowercase();
    let mut nearest = None;
    let mut most = 0.6;
    for other in known {
        let likeness = strsim::normalized_damerau_levenshtein(&name, &other.to_lowercase());
        // Of equally similar names, the last one is chosen.
        if likeness >= most {
            nearest = Some(other.as_str());
            most = likeness;
        }
    }
    nearest
}

fn names(connection: &Connection, sql: &str) -> rusqlite::Result<Vec<String>> {
    let mut statement = connection.prepare(sql)?;
    let rows = statement.query_map([], |row| row.get(0))?;
    rows.take(MAX_NAMES).collect()
}

fn table_names(connection: &Connection) -> rusqlite::Result<Vec<String>> {
    let mut found = names(connection, "SELECT name FROM pragma_table_list")?;
    let own = RECORDS.iter().filter(|table| table.is_own());
    found.extend(own.map(|table| table.name.to_owned()));
    found.extend(tables::all().map(ReportTable::path));
    Ok(found)
}

/// Columns of the tables that a query names, or of all tables if it names none.
fn column_names(connection: &Connection, sql: &str) -> rusqlite::Result<Vec<String>> {
    let sql = sql.to_lowercase();
    let words: Vec<&str> = sql.split(|letter: char| !is_of_word(letter)).collect();
    let tables = table_names(connection)?;
    let mut named: Vec<&String> = Vec::new();
    for name in &tables {
        let lower = name.to_lowercase();
        if words.contains(&lower.as_str()) || sql.contains(&format!("\"{lower}\"")) {
            named.push(name);
        }
    }
    let asked: Vec<&String> = if named.is_empty() { tables.iter().collect() } else { named };
    let mut statement = connection.prepare("SELECT name FROM pragma_table_xinfo(?1)")?;
    let mut found = Vec::new();
    for table in asked {
        let rows = statement.query_map([table], |row| row.get(0))?;
        // A view that cannot be read has no columns.
        found.extend(rows.filter_map(Result::ok));
        if let Some(own) = RECORDS.iter().find(|own| own.name == table) {
            found.extend(own.columns().iter().map(|column| column.name.to_owned()));
        }
        if found.len() > MAX_NAMES {
            break;
        }
    }
    Ok(found)
}

fn function_names(connection: &Connection) -> rusqlite::Result<Vec<String>> {
    names(connection, "SELECT DISTINCT name FROM pragma_function_list")
}

fn is_of_word(letter: char) -> bool {
    letter.is_alphanumeric() || letter == '_'
}

/// The character range of the word that begins at a byte.
fn place_of_word(sql: &str, byte: usize) -> Option<Range<usize>> {
    let (before, rest) = sql.split_at_checked(byte)?;
    let start = before.chars().count();
    // Includes all of `s.cyclez`.
    let length = rest.chars().take_while(|letter| is_of_word(*letter) || *letter == '.').count();
    Some(start..start + length.max(1))
}

/// The character range of the first occurrence of a name as a word.
fn place_of_name(sql: &str, name: &str) -> Option<Range<usize>> {
    for (start, (at, _)) in sql.char_indices().enumerate() {
        let (before, rest) = sql.split_at(at);
        if !rest.get(..name.len()).is_some_and(|word| word.eq_ignore_ascii_case(name)) {
            continue;
        }
        let begins = !before.chars().next_back().is_some_and(is_of_word);
        let ends = !rest[name.len()..].chars().next().is_some_and(is_of_word);
        if begins && ends {
            return Some(start..start + name.chars().count());
        }
    }
    None
}

/// A message above the line of the query in question, with marks below the position.
fn shown(message: &str, sql: &str, at: Option<Range<usize>>) -> String {
    let Some(at) = at else { return message.to_owned() };
    let letters: Vec<char> = sql.chars().collect();
    let start = at.start.min(letters.len());
    let before = &letters[..start];
    let line_start = before.iter().rposition(|letter| *letter == '\n').map_or(0, |at| at + 1);
    let number = before.iter().filter(|letter| **letter == '\n').count() + 1;
    let line: Vec<char> =
        letters[line_start..].iter().take_while(|c| **c != '\n').copied().collect();
    // A long line is shortened around the position.
    let column = start - line_start;
    let from = column.saturating_sub(SHOWN_LETTERS / 2);
    let to = line.len().min(from + SHOWN_LETTERS);
    let cut: String = line[from.min(to)..to].iter().collect();
    let marks = column - from..(column - from + at.len()).min((to - from).max(column - from + 1));
    let message = if letters.contains(&'\n') {
        format!("line {number}: {message}")
    } else {
        message.to_owned()
    };
    marked(&message, &cut, &marks)
}
