//! A series as text.

use crate::cli::command::CliError;
use crate::cli::text_table::table_lines;
use std::io::Write;
use tilescope_analysis::series::{ReportSeries, SeriesOptions};

/// Width of the widest cell before the cells after it are pushed to the right.
const CELL_WIDTH: usize = 56;

/// Prints all tables; the table of operations has up to `limit` rows and its total.
pub(super) fn print(
    series: &ReportSeries,
    options: SeriesOptions,
    limit: usize,
    output: &mut dyn Write,
) -> Result<(), CliError> {
    for note in series.notes(options.unit) {
        writeln!(output, "{note}")?;
    }
    for (title, table, note) in series.page(options, limit) {
        writeln!(output, "\n{title}")?;
        if table.rows.is_empty() {
            writeln!(output, "  none")?
        } else {
            for line in table_lines(&table, CELL_WIDTH) {
                writeln!(output, "  {line}")?;
            }
        }
        if let Some(note) = note {
            writeln!(output, "  {note}")?;
        }
    }
    for unread in &series.unread {
        writeln!(output, "\nNot read: {}: {}", unread.name, unread.problem)?;
    }
    Ok(())
}
