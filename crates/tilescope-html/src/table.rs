//! Tables of a page: sortable by the reader, complete in the page's data, with the first rows in
//! its text.

use crate::names::{escaped, shown};
use crate::svg::Px;
use minijinja::Value;
use serde::Serialize;
use std::fmt::Write;
use tilescope_analysis::data_table::{ColumnAlignment, DataTable, TableCell};
use tilescope_report::units::grouped;

/// Number of rows in the text of the page; the reader can expand the others.
const FIRST_ROWS: usize = 12;
/// Tables with up to this number of rows are in the text completely.
const WHOLE_ROWS: usize = 24;
/// The maximum number of rows of a table in a page; the command line has all of them.
pub(crate) const MAX_ROWS: usize = 2_000;
/// The largest integer that JavaScript represents exactly.
const MAX_SCRIPT_NUMBER: u64 = 1 << 53;

/// A table of a page.
#[derive(Serialize)]
pub(crate) struct HtmlTable {
    /// Its name among the tables of the page.
    pub id: String,
    pub caption: String,
    pub columns: Vec<HtmlColumn>,
    /// Rows in the text of the page, each as elements for its cells.
    rows: Vec<Value>,
    /// The row of sums over all rows, in the same form.
    totals: Option<Value>,
    /// All rows, if the text has only the first of them.
    #[serde(skip)]
    all: Option<Vec<Vec<TableCell>>>,
    /// Number of rows in the page.
    pub count: usize,
    /// True if it is collapsed initially.
    pub folded: bool,
    /// A note about rows that are not in the page; empty if all are.
    pub left_out: String,
    pub count_text: String,
    pub first: usize,
}

#[derive(Serialize)]
pub(crate) struct HtmlColumn {
    pub title: String,
    pub about: String,
    pub numeric: bool,
    /// True if sorting by a difference ignores its sign.
    pub by_size: bool,
}

/// A coloured part of a bar, as shares of its whole length.
#[derive(Clone, Copy, Debug)]
pub(crate) struct BarPart {
    pub from: f64,
    pub to: f64,
    pub colour: &'static str,
}

impl HtmlTable {
    /// A table in the usual form.
    pub(crate) fn new(id: impl Into<String>, caption: impl Into<String>, data: &DataTable) -> Self {
        Self::with_bars(id, caption, data, |_| Vec::new(), "")
    }

    /// A table with a bar in each row, in a column of this title at the end.
    pub(crate) fn with_bars(
        id: impl Into<String>,
        caption: impl Into<String>,
        data: &DataTable,
        bars: impl Fn(usize) -> Vec<BarPart>,
        bar_title: &str,
    ) -> Self {
        let make_column =
            |(at, of): (usize, &tilescope_analysis::data_table::TableColumn)| HtmlColumn {
                title: match of.unit {
                    Some(unit) if !of.title.is_empty() => format!("{} ({unit})", shown(&of.title)),
                    _ => shown(&of.title),
                },
                about: of.about.to_owned(),
                numeric: of.alignment == ColumnAlignment::Right,
                by_size: data.rows.iter().any(|row| is_change(&row[at])),
            };
        let mut columns: Vec<HtmlColumn> =
            data.columns.iter().enumerate().map(make_column).collect();
        let count = data.rows.len().min(MAX_ROWS);
        let has_bars = !bar_title.is_empty();
        let whole = has_bars || count <= WHOLE_ROWS;
        let in_text = if whole { count } else { FIRST_ROWS };
        let rows = data
            .rows
            .iter()
            .take(in_text)
            .enumerate()
            .map(|(at, row)| {
                let mut text = cells_of(row, &columns);
                if has_bars {
                    let _ = write!(text, "<td class=\"bar\">{}</td>", bar(&bars(at)));
                }
                Value::from_safe_string(text)
            })
            .collect();
        let totals = data.totals().map(|sums| {
            let bar = if has_bars { "<td></td>" } else { "" };
            Value::from_safe_string(format!("{}{bar}", cells_of(&sums, &columns)))
        });
        if has_bars {
            let title = bar_title.to_owned();
            columns.push(HtmlColumn {
                title,
                about: String::new(),
                numeric: false,
                by_size: false,
            });
        }
        let left_out = match data.rows.len() - count {
            0 => String::new(),
            more => format!(
                "{} more rows are left out of this page; sums are over all of them.",
                grouped(more as u64)
            ),
        };
        let all = if !whole { Some(data.rows.iter().take(count).cloned().collect()) } else { None };
        Self {
            id: id.into(),
            caption: caption.into(),
            columns,
            rows,
            totals,
            all,
            count,
            folded: false,
            left_out,
            count_text: grouped(count as u64),
            first: in_text,
        }
    }

    /// The same table, collapsed until the reader opens it.
    pub(crate) fn folded(self) -> Self {
        Self { folded: true, ..self }
    }

    /// The same table with a last row that is not sorted with the others.
    pub(crate) fn with_foot(self, row: &[TableCell]) -> Self {
        let cells = cells_of(row, &self.columns);
        Self { totals: Some(Value::from_safe_string(cells)), ..self }
    }

    /// All rows for the script of the page: numbers in the program's notation, and texts.
    pub(crate) fn script_rows(&self) -> Option<serde_json::Value> {
        let rows = self.all.as_ref()?.iter();
        Some(rows.map(|row| row.iter().map(script_cell).collect::<Vec<_>>()).collect())
    }
}

fn is_change(cell: &TableCell) -> bool {
    cell.is_change()
}

/// A cell for the script of the page, which groups the digits of numbers itself.
fn script_cell(cell: &TableCell) -> serde_json::Value {
    match cell {
        // Missing everywhere in long columns of large tables.
        TableCell::Missing => serde_json::Value::Null,
        cell if is_shortened(cell) => {
            serde_json::json!([shown(&cell.text()), cell.number(), shown(&cell.exact())])
        }
        TableCell::Count(count) if *count < MAX_SCRIPT_NUMBER => (*count).into(),
        cell => shown(&cell.text()).into(),
    }
}

/// Returns true if a number is shown with fewer digits than it has.
fn is_shortened(cell: &TableCell) -> bool {
    !cell.is_name() && cell.text() != cell.exact()
}

/// The cells of a row as elements.
fn cells_of(row: &[TableCell], columns: &[HtmlColumn]) -> String {
    let mut text = String::new();
    for (at, (cell, column)) in row.iter().zip(columns).enumerate() {
        let value = escaped(&shown(&cell.text()));
        let mut class = String::from(if column.numeric { " class=\"n\"" } else { "" });
        if is_shortened(cell) {
            let exact = escaped(&shown(&cell.exact()));
            let _ = write!(class, " data-v=\"{}\" title=\"{exact}\"", cell.plain());
        }
        let _ = match at {
            0 => write!(text, "<th scope=\"row\"{class}>{value}</th>"),
            _ => write!(text, "<td{class}>{value}</td>"),
        };
    }
    text
}

/// A bar that fills its cell.
fn bar(parts: &[BarPart]) -> String {
    let mut text = String::from(
        "<svg class=\"share\" aria-hidden=\"true\" viewBox=\"0 0 1000 10\" preserveAspectRatio=\"none\">",
    );
    for BarPart { from, to, colour } in parts {
        let from = from.clamp(0.0, 1.0) * 1e3;
        let to = to.clamp(0.0, 1.0) * 1e3;
        let x = Px(from);
        let width = Px((to - from).max(1.0));
        let _ = write!(
            text,
            "<rect class=\"f-{colour}\" x=\"{x}\" y=\"0\" width=\"{width}\" height=\"10\"/>"
        );
    }
    text.push_str("</svg>");
    text
}

/// Bar parts stacked from left to right.
pub(crate) fn stacked(shares: impl IntoIterator<Item = (&'static str, f64)>) -> Vec<BarPart> {
    let mut from = 0.0;
    shares
        .into_iter()
        .filter(|(_, share)| *share > 0.0)
        .map(|(colour, share)| {
            let start = from;
            from += share;
            BarPart { from: start, to: from, colour }
        })
        .collect()
}
