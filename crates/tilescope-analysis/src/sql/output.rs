//! Answers as text for people, as CSV and as JSON, written row by row.

use super::{RowSink, SqlValue};
use crate::data_table::quoted_for_csv;
use std::fmt::Write as _;
use std::io::{self, Write};

/// The number of rows that determine the widths of columns.
const MEASURED_ROWS: usize = 200;
/// The number of characters shown of a cell.
const SHOWN_LETTERS: usize = 100;

/// A table as text: a header, then rows below it.
pub struct TextRows<'w> {
    output: &'w mut dyn Write,
    names: Vec<String>,
    /// The first rows, until there are enough to determine widths.
    held: Vec<Vec<(String, bool)>>,
    widths: Option<Vec<usize>>,
    any: bool,
}

impl<'w> TextRows<'w> {
    pub fn new(output: &'w mut dyn Write) -> Self {
        Self { output, names: Vec::new(), held: Vec::new(), widths: None, any: false }
    }

    /// Writes the header and the rows held so far.
    fn begin(&mut self) -> io::Result<()> {
        let held = std::mem::take(&mut self.held);
        let mut heads = Vec::new();
        let mut widths = Vec::new();
        for (at, name) in self.names.iter().enumerate() {
            let mut cells = held.iter().filter_map(|row| row.get(at)).peekable();
            // Headers are aligned like their cells.
            let is_number = cells.peek().is_some_and(|(_, is_number)| *is_number);
            let widest = cells.map(|(cell, _)| cell.chars().count()).max().unwrap_or(0);
            widths.push(widest.max(name.chars().count()));
            heads.push((plain(name), is_number));
        }
        self.write(&heads, &widths)?;
        held.iter().try_for_each(|row| self.write(row, &widths))?;
        self.widths = Some(widths);
        Ok(())
    }

    fn write(&mut self, row: &[(String, bool)], widths: &[usize]) -> io::Result<()> {
        let mut line = String::new();
        for ((cell, is_number), &width) in row.iter().zip(widths) {
            if !line.is_empty() {
                line.push_str("  ");
            }
            // Writing to a string cannot fail.
            let _ = if *is_number {
                write!(line, "{cell:>width$}")
            } else {
                write!(line, "{cell:width$}")
            };
        }
        writeln!(self.output, "{}", line.trim_end())
    }
}

impl RowSink for TextRows<'_> {
    fn columns(&mut self, names: &[String]) -> io::Result<()> {
        self.names = names.to_vec();
        Ok(())
    }

    fn row(&mut self, values: &[SqlValue]) -> io::Result<()> {
        self.any = true;
        let cells = values.iter().map(cell).collect::<Vec<_>>();
        match self.widths.take() {
            Some(widths) => {
                self.write(&cells, &widths)?;
                self.widths = Some(widths);
            }
            None => {
                self.held.push(cells);
                if self.held.len() >= MEASURED_ROWS {
                    self.begin()?;
                }
            }
        }
        Ok(())
    }

    fn end(&mut self) -> io::Result<()> {
        if self.widths.is_none() {
            self.begin()?;
        }
        if !self.any {
            writeln!(self.output, "(no rows)")?;
        }
        Ok(())
    }
}

/// The text of a cell, and true if it is a number.
fn cell(value: &SqlValue) -> (String, bool) {
    match value {
        SqlValue::Null => ("—".to_owned(), false),
        SqlValue::Integer(value) => (value.to_string(), true),
        SqlValue::Real(value) => (real(*value), true),
        SqlValue::Text(text) => (plain(text), false),
        SqlValue::Blob(bytes) => (format!("({} bytes)", bytes.len()), false),
    }
}

fn real(value: f64) -> String {
    // Enough digits for a share or a mean of cycles.
    if value.abs() >= 1e15 || (value != 0.0 && value.abs() < 1e-4) {
        format!("{value:e}")
    } else {
        let text = format!("{value:.6}");
        text.trim_end_matches('0').trim_end_matches('.').to_owned()
    }
}

/// A text on one line, shortened if it is long.
fn plain(text: &str) -> String {
    let mut letters = text.chars().map(|letter| if letter.is_control() { ' ' } else { letter });
    let mut shown: String = letters.by_ref().take(SHOWN_LETTERS).collect();
    if letters.next().is_some() {
        shown.push('…');
    }
    shown
}

/// A table in CSV according to RFC 4180, with plain line ends.
pub struct CsvRows<'w> {
    output: &'w mut dyn Write,
}

impl<'w> CsvRows<'w> {
    pub fn new(output: &'w mut dyn Write) -> Self {
        Self { output }
    }

    fn write(&mut self, cells: impl Iterator<Item = String>) -> io::Result<()> {
        let line: Vec<String> = cells.collect();
        writeln!(self.output, "{}", line.join(","))
    }
}

impl RowSink for CsvRows<'_> {
    fn columns(&mut self, names: &[String]) -> io::Result<()> {
        self.write(names.iter().map(|name| quoted_for_csv(name)))
    }

    fn row(&mut self, values: &[SqlValue]) -> io::Result<()> {
        self.write(values.iter().map(|value| match value {
            SqlValue::Null => String::new(),
            SqlValue::Integer(value) => value.to_string(),
            SqlValue::Real(value) => value.to_string(),
            SqlValue::Text(text) => quoted_for_csv(text),
            SqlValue::Blob(bytes) => hex(bytes),
        }))
    }
}

/// A JSON list of objects, one per line.
pub struct JsonRows<'w> {
    output: &'w mut dyn Write,
    /// Keys as JSON strings.
    keys: Vec<String>,
    any: bool,
}

impl<'w> JsonRows<'w> {
    pub fn new(output: &'w mut dyn Write) -> Self {
        Self { output, keys: Vec::new(), any: false }
    }
}

impl RowSink for JsonRows<'_> {
    fn columns(&mut self, names: &[String]) -> io::Result<()> {
        self.keys = names.iter().map(|name| json_text(name)).collect();
        write!(self.output, "[")
    }

    fn row(&mut self, values: &[SqlValue]) -> io::Result<()> {
        let mut line = String::from(if self.any { ",\n{" } else { "\n{" });
        self.any = true;
        for (at, (key, value)) in self.keys.iter().zip(values).enumerate() {
            let comma = if at > 0 { ", " } else { "" };
            let value = match value {
                // JSON has no infinity; every parser reads this number as one.
                SqlValue::Real(f64::INFINITY) => "9e999".to_owned(),
                SqlValue::Real(f64::NEG_INFINITY) => "-9e999".to_owned(),
                value => json_value(value).to_string(),
            };
            // Writing to a string cannot fail.
            let _ = write!(line, "{comma}{key}: {value}");
        }
        line.push('}');
        self.output.write_all(line.as_bytes())
    }

    fn end(&mut self) -> io::Result<()> {
        writeln!(self.output, "{}]", if self.any { "\n" } else { "" })
    }
}

fn json_text(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}

/// A value in JSON: blobs as hexadecimal digits, infinities as null.
pub fn json_value(value: &SqlValue) -> serde_json::Value {
    match value {
        SqlValue::Null => serde_json::Value::Null,
        SqlValue::Integer(value) => (*value).into(),
        SqlValue::Real(value) => (*value).into(),
        SqlValue::Text(text) => text.as_str().into(),
        SqlValue::Blob(bytes) => hex(bytes).into(),
    }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::with_capacity(bytes.len() * 2), |mut text, byte| {
        // Writing to a string cannot fail.
        let _ = write!(text, "{byte:02x}");
        text
    })
}
