//! Tables as GitHub Markdown, with special characters in names escaped.

use crate::data_table::{ColumnAlignment, DataTable};

/// A Markdown table with a line for each row.
pub(crate) fn markdown_table(table: &DataTable) -> String {
    let mut text = String::new();
    let heads = table.columns.iter().map(|column| escaped(&column.title));
    let line = |cells: Vec<String>| format!("| {} |\n", cells.join(" | "));
    text.push_str(&line(heads.collect()));
    for column in &table.columns {
        let rule = match column.alignment {
            ColumnAlignment::Left => "|---",
            ColumnAlignment::Right => "|---:",
        };
        text.push_str(rule);
    }
    text.push_str("|\n");
    for row in &table.rows {
        text.push_str(&line(row.iter().map(|cell| escaped(&cell.text())).collect()));
    }
    text
}

/// Text with Markdown characters escaped: names come from files.
pub(crate) fn escaped(text: &str) -> String {
    let mut safe = String::with_capacity(text.len());
    for letter in text.chars() {
        match letter {
            letter if letter.is_control() => safe.push(' '),
            '\\' | '`' | '*' | '_' | '{' | '}' | '[' | ']' | '<' | '>' | '|' | '~' | '#' | '&'
            | '$' | '@' | '!' => {
                safe.push('\\');
                safe.push(letter);
            }
            letter => safe.push(letter),
        }
    }
    safe
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_escaped_in_their_cells() {
        let hostile = "a|b\n| c | <script>`*_";
        assert_eq!(escaped(hostile), "a\\|b \\| c \\| \\<script\\>\\`\\*\\_");
    }
}
