//! A comparison as Markdown, for the text of a pull request.

use super::comparison_table::{ComparisonRow, ComparisonTable};
use super::overview::ComparisonOverview;
use crate::data_table::TableCell;
use crate::gates::GateViolation;
use crate::markdown::escaped;
use std::fmt::Write;

/// The page of changes as GitHub's Markdown: the verdict in a sentence and the gates, then folded
/// tables. Tables have up to `limit` rows, and state the number of other rows.
pub fn markdown<'a>(
    page: &ComparisonOverview,
    gates: impl Iterator<Item = (&'a str, Option<&'a GateViolation>)>,
    limit: usize,
) -> String {
    let (result, rest) = first_sentence(&page.verdict);
    let mut text = format!("**{}**", escaped(result));
    if !rest.is_empty() {
        let _ = write!(text, " {}", escaped(rest));
    }
    text.push('\n');
    push_gates(&mut text, gates);
    if let Some(note) = &page.normalization.note {
        let _ = write!(text, "\n{}\n", escaped(note));
    }
    for table in &page.tables {
        push_table(&mut text, table, page.sides, limit);
    }
    text
}

/// A text after its first sentence, and what follows.
fn first_sentence(text: &str) -> (&str, &str) {
    for (at, _) in text.match_indices(". ") {
        let rest = &text[at + 2..];
        // A dot after an abbreviation is followed by a lower-case letter or a number.
        if rest.starts_with(char::is_uppercase) {
            return (&text[..=at], rest);
        }
    }
    (text, "")
}

/// Gates, each with why it is violated where it is. Nothing without gates.
fn push_gates<'a>(
    text: &mut String,
    gates: impl Iterator<Item = (&'a str, Option<&'a GateViolation>)>,
) {
    let mut is_first = true;
    for (gate, violation) in gates {
        if is_first {
            text.push_str("\n| Gate | |\n|---|---|\n");
            is_first = false;
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
}

fn push_table(
    text: &mut String,
    table: &ComparisonTable,
    [source, target]: [&str; 2],
    limit: usize,
) {
    let heading = escaped(&table.heading());
    let summary = table.total.as_ref().map_or_else(String::new, ComparisonRow::change_text);
    let summary = if summary.is_empty() { summary } else { format!(": {summary}") };
    let title = format!("{}{summary}", table.title);
    // The title is a word of ours and numbers: a line of HTML has no escapes of Markdown, which is
    // read again after an empty line.
    let _ = write!(text, "\n<details><summary>{title}</summary>\n\n");
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
    text.push_str("\n</details>\n");
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sentences_end_where_the_next_one_begins() {
        let cases = [
            ("It is faster. Memory is the same.", "It is faster.", "Memory is the same."),
            ("1.5 % fewer, 3 vs. 4.5 us.", "1.5 % fewer, 3 vs. 4.5 us.", ""),
            ("", "", ""),
        ];
        for (text, first, rest) in cases {
            assert_eq!(first_sentence(text), (first, rest));
        }
    }
}
