//! Tables for all readers: views, CSV files, the command line and comparisons use the same columns
//! and cells, so that saved tables equal the visible ones.

mod cell;
mod column;

pub use cell::TableCell;
pub use column::{ColumnAggregate, ColumnAlignment, ColumnQuantity, ColumnSubject, TableColumn};

use crate::grouping::RowKeys;
use serde::Serialize;
use std::collections::BTreeSet;
use std::fmt::Write;
use std::sync::Arc;

/// A table of columns and rows.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct DataTable {
    /// The columns, from left to right.
    pub columns: Vec<TableColumn>,
    /// The rows, each with one cell per column.
    pub rows: Vec<Vec<TableCell>>,
    /// True if the table has a row of sums.
    #[serde(skip)]
    pub totals: bool,
    /// The labels that rows can be grouped by; `None` if they name no operations.
    #[serde(skip)]
    pub keys: Option<Arc<RowKeys>>,
}

impl DataTable {
    /// Names of columns for programs, all different: `live_bytes` for `Live (bytes)`.
    pub fn identifiers(&self) -> Vec<String> {
        let mut taken = BTreeSet::new();
        let name = |column: &TableColumn| {
            let name = column.name.map_or_else(|| identifier(&column.head()), str::to_owned);
            unique(name, &mut taken)
        };
        self.columns.iter().map(name).collect()
    }

    /// The same with names of its columns for programs.
    #[must_use]
    pub(crate) fn with_names(mut self, names: &[&'static str]) -> Self {
        debug_assert_eq!(self.columns.len(), names.len(), "a name for each column");
        for (column, name) in self.columns.iter_mut().zip(names) {
            column.name = Some(name);
        }
        self
    }

    /// Creates a table without a row of sums.
    pub fn new(columns: Vec<TableColumn>, rows: Vec<Vec<TableCell>>) -> Self {
        debug_assert!(rows.iter().all(|row| row.len() == columns.len()), "a cell for each column");
        Self { columns, rows, totals: false, keys: None }
    }

    /// The same with a row of sums.
    #[must_use]
    pub fn with_totals(self) -> Self {
        Self { totals: true, ..self }
    }

    /// The same with only the columns whose indices satisfy `wanted`.
    #[must_use]
    pub fn with_columns(self, wanted: impl Fn(usize) -> bool) -> Self {
        let columns: Vec<usize> = (0..self.columns.len()).filter(|at| wanted(*at)).collect();
        let mut rows = Vec::with_capacity(self.rows.len());
        for row in &self.rows {
            rows.push(columns.iter().map(|at| row[*at].clone()).collect());
        }
        let columns = columns.iter().map(|at| self.columns[*at].clone()).collect();
        Self { columns, rows, ..self }
    }

    /// The sum of a column over some rows; `None` if a sum has no meaning.
    pub fn sum_of<'a>(
        &'a self,
        column: usize,
        rows: impl IntoIterator<Item = &'a Vec<TableCell>>,
    ) -> Option<TableCell> {
        let of = self.columns.get(column).filter(|column| column.has_total())?;
        let mut total: Option<TableCell> = None;
        for row in rows {
            total = match (row.get(column)?, total) {
                (TableCell::Missing, sum) => sum,
                (cell, None) if cell.is_summable() || of.quantity == ColumnQuantity::Part => {
                    Some(cell.clone())
                }
                (cell, Some(sum)) => Some(sum.plus(cell)?),
                (_, None) => return None,
            };
        }
        total
    }

    /// The row of sums over all rows; `None` if the table has no such row.
    pub fn totals(&self) -> Option<Vec<TableCell>> {
        if !self.totals || self.rows.is_empty() {
            return None;
        }
        let mut totals: Vec<TableCell> = Vec::with_capacity(self.columns.len());
        for column in 0..self.columns.len() {
            totals.push(match column {
                0 => "Total".into(),
                column => self.sum_of(column, &self.rows).unwrap_or_else(|| "".into()),
            });
        }
        Some(totals)
    }

    /// The table as CSV according to RFC 4180, with plain line ends.
    pub fn csv(&self) -> String {
        let mut text = String::new();
        for line in self.csv_lines() {
            text.push_str(&line);
        }
        text
    }

    /// The lines of [`DataTable::csv`] with their ends, the first with the names of the columns.
    pub fn csv_lines(&self) -> impl Iterator<Item = String> {
        let heads: Vec<String> = self.columns.iter().map(|of| quoted(&of.head())).collect();
        let lines = self.rows.iter().map(|row| {
            let mut line = String::new();
            for (at, cell) in row.iter().enumerate() {
                let end = if at + 1 == row.len() { "\n" } else { "," };
                // Writing to a string cannot fail.
                let _ = write!(line, "{}{end}", quoted(&unexecuted(cell)));
            }
            line
        });
        std::iter::once(heads.join(",") + "\n").chain(lines)
    }
}

/// A table of rows. Each line of the macro is a column, with its kind, its title, the cell of a
/// row, and a description; `all` precedes several columns and their cells.
#[macro_export]
macro_rules! table {
    ($rows:expr, |$row:pat_param| $($kind:ident $title:expr => $cell:expr $(, $about:expr)?;)*) => {{
        let mut columns: Vec<$crate::data_table::TableColumn> = Vec::new();
        $($crate::table_column!(columns, $kind, $title $(, $about)?);)*
        let mut rows = Vec::new();
        for $row in $rows {
            let mut cells: Vec<$crate::data_table::TableCell> = Vec::with_capacity(columns.len());
            $($crate::table_cell!(cells, $kind, $cell);)*
            rows.push(cells);
        }
        $crate::data_table::DataTable::new(columns, rows)
    }};
}

#[doc(hidden)]
#[macro_export]
macro_rules! table_column {
    ($columns:ident, all, $all:expr) => {
        $columns.extend($all)
    };
    ($columns:ident, $kind:ident, $title:expr $(, $about:expr)?) => {
        $columns.extend([$crate::data_table::TableColumn::$kind($title)$(.about($about))?])
    };
}

#[doc(hidden)]
#[macro_export]
macro_rules! table_cell {
    ($cells:ident, all, $all:expr) => {
        $cells.extend($all.into_iter().map($crate::data_table::TableCell::from))
    };
    ($cells:ident, share, $cell:expr) => {
        $cells.extend([Option::<f64>::from($cell).map($crate::data_table::TableCell::Share).into()])
    };
    ($cells:ident, part, $cell:expr) => {
        $crate::table_cell!($cells, share, $cell)
    };
    ($cells:ident, $kind:ident, $cell:expr) => {
        $cells.extend([$crate::data_table::TableCell::from($cell)])
    };
}

/// The text of a cell that a spreadsheet shows unevaluated.
fn unexecuted(cell: &TableCell) -> String {
    match cell {
        TableCell::Text(text) => without_formula(text),
        cell => cell.plain(),
    }
}

/// Prefixes a text that begins like a formula with an apostrophe, so that spreadsheets do not
/// evaluate names from a file.
fn without_formula(text: &str) -> String {
    let begins_like_one = text.starts_with(['=', '+', '-', '@', '\t', '\r']);
    if begins_like_one { format!("'{text}") } else { text.to_owned() }
}

/// A foreign text as a cell of a CSV file: no spreadsheet takes it for a formula, and no terminal
/// that prints the file obeys it.
pub(crate) fn quoted_for_csv(text: &str) -> String {
    quoted(&without_formula(text))
}

/// The text in quotes if it contains a comma, a quote or a line end. Control characters other than
/// line ends and tabs are escaped, as in all output of commands.
fn quoted(text: &str) -> String {
    if text.contains(is_spelled_out) {
        let mut plain = String::with_capacity(text.len());
        for letter in text.chars() {
            if is_spelled_out(letter) {
                plain.push_str(&format!("\\u{:04x}", u32::from(letter)));
            } else {
                plain.push(letter);
            }
        }
        return quoted(&plain);
    }
    if text.contains([',', '"', '\n', '\r']) {
        format!("\"{}\"", text.replace('"', "\"\""))
    } else {
        text.to_owned()
    }
}

/// True for control characters other than line ends and tabs.
fn is_spelled_out(letter: char) -> bool {
    letter.is_control() && !matches!(letter, '\n' | '\r' | '\t')
}

/// The head of a column as a name in Python: `live_bytes` for `Live (bytes)`.
fn identifier(head: &str) -> String {
    let mut name = String::new();
    for letter in head.to_lowercase().chars() {
        match letter {
            letter if letter.is_alphanumeric() => name.push(letter),
            '%' => name.push_str("percent"),
            _ if !name.is_empty() && !name.ends_with('_') => name.push('_'),
            _ => {}
        }
    }
    name.trim_end_matches('_').to_owned()
}

/// The name, made different from those of all other columns.
fn unique(name: String, taken: &mut BTreeSet<String>) -> String {
    let name = if name.is_empty() { "column".to_owned() } else { name };
    let numbered = (2..).map(|number| format!("{name}_{number}"));
    let free = std::iter::once(name.clone()).chain(numbered).find(|name| !taken.contains(name));
    let free = free.unwrap_or(name);
    taken.insert(free.clone());
    free
}

#[cfg(test)]
mod tests {
    use super::*;
    use tilescope_report::units::Bytes;

    #[test]
    fn values_are_quoted_only_where_they_must_be() {
        let columns = vec![TableColumn::text("Name"), TableColumn::bytes("Size")];
        let rows = vec![
            vec!["a,b \"c\"".into(), TableCell::Bytes(Bytes(7_000))],
            vec!["plain".into(), TableCell::Missing],
            vec![TableCell::Share(0.25), TableCell::Count(1)],
        ];
        let formula: TableCell = "=HYPERLINK(\"x\")".into();
        let names = DataTable::new(
            vec![TableColumn::text("Name"), TableColumn::number("Change")],
            vec![vec![formula, TableCell::RealChange(-1.5)]],
        );
        assert_eq!(names.csv(), "name,change\n\"'=HYPERLINK(\"\"x\"\")\",-1.5\n");
        let csv = "name,size (bytes)\n\"a,b \"\"c\"\"\",7000\nplain,\n0.25,1\n";
        assert_eq!(DataTable::new(columns, rows).csv(), csv);
    }

    #[test]
    fn control_characters_are_escaped() {
        assert_eq!(
            quoted("a\u{1b}]52;c\u{7}\0\u{9b}b\tc"),
            "a\\u001b]52;c\\u0007\\u0000\\u009bb\tc"
        );
        assert_eq!(quoted("two\nlines"), "\"two\nlines\"");
    }
}
