//! Tables as lines of text, with aligned columns.

use tilescope_analysis::data_table::{ColumnAlignment, DataTable, TableCell};

/// Heads and rows of a table; cells wider than `widest` push those after them to the right.
pub(super) fn table_lines(table: &DataTable, widest: usize) -> Vec<String> {
    let mut lines = vec![table.columns.iter().map(|column| column.title.clone()).collect()];
    lines.extend(table.rows.iter().map(|row| row.iter().map(TableCell::text).collect()));
    let alignments: Vec<ColumnAlignment> =
        table.columns.iter().map(|column| column.alignment).collect();
    aligned(&lines, &alignments, widest)
}

/// Lines of cells, each column as wide as its widest cell.
pub(super) fn aligned(
    lines: &[Vec<String>],
    alignments: &[ColumnAlignment],
    widest: usize,
) -> Vec<String> {
    let measure_column = |column: usize| {
        let widths = lines.iter().map(|line| line[column].chars().count());
        widths.max().unwrap_or(0).min(widest)
    };
    let widths: Vec<usize> = (0..alignments.len()).map(measure_column).collect();
    let mut texts = Vec::new();
    for line in lines {
        let cells = line.iter().zip(alignments).zip(&widths);
        let cells: Vec<String> = cells
            .map(|((cell, alignment), width)| match alignment {
                ColumnAlignment::Left => format!("{cell:width$}"),
                ColumnAlignment::Right => format!("{cell:>width$}"),
            })
            .collect();
        texts.push(cells.join("  ").trim_end().to_owned());
    }
    texts
}
