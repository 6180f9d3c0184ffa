//! A series as text.

use crate::cli::command::CliError;
use std::io::Write;
use tilescope_analysis::data_table::{ColumnAlignment, DataTable};
use tilescope_analysis::series::{ReportSeries, SeriesTelling};

/// Widest cell that moves the cells behind it to the right.
const CELL_WIDTH: usize = 56;

/// Prints all tables; that of operations has up to `limit` rows and its total.
pub(super) fn print(
    series: &ReportSeries,
    telling: SeriesTelling,
    limit: usize,
    output: &mut dyn Write,
) -> Result<(), CliError> {
    for note in series.notes(telling.unit) {
        writeln!(output, "{note}")?;
    }
    for (title, table, note) in series.page(telling, limit) {
        writeln!(output, "\n{title}")?;
        match table.rows.is_empty() {
            true => writeln!(output, "  none")?,
            false => print_table(&table, output)?,
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

fn print_table(table: &DataTable, output: &mut dyn Write) -> Result<(), CliError> {
    let mut lines = vec![table.columns.iter().map(|column| column.title.clone()).collect()];
    lines.extend(table.rows.iter().map(|row| row.iter().map(|cell| cell.text()).collect()));
    let width = |column: usize| {
        let widths = lines.iter().map(|line: &Vec<String>| line[column].chars().count());
        widths.max().unwrap_or(0).min(CELL_WIDTH)
    };
    let widths: Vec<usize> = (0..table.columns.len()).map(width).collect();
    for line in &lines {
        let cells =
            line.iter().zip(&table.columns).zip(&widths).map(
                |((cell, column), width)| match column.alignment {
                    ColumnAlignment::Left => format!("  {cell:width$}"),
                    ColumnAlignment::Right => format!("  {cell:>width$}"),
                },
            );
        writeln!(output, "{}", cells.collect::<String>().trim_end())?;
    }
    Ok(())
}
