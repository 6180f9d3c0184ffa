//! A comparison as Markdown, for the text of a pull request.

use super::comparison_table::{ComparisonRow, ComparisonTable};
use super::overview::ComparisonOverview;
use crate::data_table::TableCell;
use crate::gates::GateViolation;
use crate::markdown::escaped;
use std::fmt::Write;

/// The overview as GitHub Markdown. Tables have up to `limit` rows, and a note of the number left
/// out.
pub fn markdown(page: &ComparisonOverview, limit: usize) -> String {
    let mut text = format!("**{}**\n", escaped(&page.verdict));
    if let Some(note) = &page.normalization.note {
        let _ = write!(text, "\n{}\n", escaped(note));
    }
    for table in &page.tables {
        push_table(&mut text, table, page.sides, limit);
    }
    text
}

/// Gates to append to such a page, each violated one with its reason. Empty without gates.
pub fn gates_markdown<'a>(
    gates: impl Iterator<Item = (&'a str, Option<&'a GateViolation>)>,
) -> String {
    let mut text = String::new();
    for (gate, violation) in gates {
        if text.is_empty() {
            text.push_str("\n#### Gates\n\n| Gate | |\n|---|---|\n");
        }
        let (mark, why) = match violation {
            None => ("passed", ""),
            Some(violation) => {
                // The sentence repeats the gate at its start.
                let why = violation.sentence.strip_prefix(gate).unwrap_or(&violation.sentence);
                ("**violated**", why)
            }
        };
        let _ = writeln!(text, "| {} | {mark}{} |", escaped(gate), escaped(why));
    }
    text
}

fn push_table(
    text: &mut String,
    table: &ComparisonTable,
    [source, target]: [&str; 2],
    limit: usize,
) {
    let heading = escaped(&table.heading());
    let _ = write!(text, "\n#### {}\n\n", escaped(table.title));
    let _ = writeln!(text, "| {heading} | {source} | {target} | Change |\n|---|---:|---:|---:|");
    for row in table.rows.iter().take(limit) {
        let indent = "&nbsp;&nbsp;".repeat(row.depth as usize);
        push_row(text, row, &format!("{indent}{}", escaped(&row.name)));
    }
    let hidden = table.rows.len().saturating_sub(limit);
    if hidden > 0 {
        let _ = writeln!(text, "| … {hidden} more | | | |");
    }
    if let Some(total) = &table.total {
        push_row(text, total, &format!("**{}**", escaped(&total.name)));
    }
}

fn push_row(text: &mut String, row: &ComparisonRow, name: &str) {
    let cell =
        |side: Option<TableCell>| side.map_or_else(|| "—".to_owned(), |of| escaped(&of.text()));
    let (source, target) = row.values();
    let source = cell(source);
    let target = cell(target);
    let change = escaped(&row.change_text());
    let _ = writeln!(text, "| {name} | {source} | {target} | {change} |");
}
