//! Operations of all runs side by side.

use super::{SeriesFacts, SeriesSection};
use crate::block::Block;
use crate::table::HtmlTable;
use tilescope_analysis::data_table::DataTable;
use tilescope_report::units::grouped;

pub(super) const SECTION: SeriesSection =
    SeriesSection { id: "operations", title: "Operations", build };

/// The maximum number of cells of a table with a column for each run.
const MAX_CELLS: usize = 50_000;

fn build(of: &SeriesFacts<'_>) -> Vec<Block> {
    let series = of.series;
    let options = of.options;
    if series.operations.is_empty() {
        return vec![Block::note("No run was executed, so operations have no cycles.")];
    }
    let about = "Operations are aligned by name and operator; their cycles are averaged over the \
                 lanes of a run. Together with idle time and steps without an operation they add up to the run. \
                 The operation that varies the most comes first.";
    let mut blocks = vec![Block::note(about)];
    let narrow = series.operations_where_narrow(options);
    let caption = "Cycles of operations over the runs";
    blocks.push(Block::Table { table: with_total("series/operations", caption, narrow) });
    if series.is_narrow() {
        return blocks;
    }
    let cells = (series.operations.len() + 1) * (series.runs.len() + 1);
    blocks.push(if cells <= MAX_CELLS {
        let caption = "Cycles of operations in every run";
        let all = series.operations_table(options);
        let table = with_total("series/operations-by-run", caption, all).folded();
        Block::Table { table }
    } else {
        Block::note(format!(
            "One column per run would be {} cells; `tilescope series --json` has them.",
            grouped(cells as u64)
        ))
    });
    blocks
}

/// A table whose last row, that of the whole run, stays at the end.
fn with_total(id: &str, caption: &str, mut data: DataTable) -> HtmlTable {
    let total = data.rows.pop();
    let table = HtmlTable::new(id, caption, &data);
    match total {
        Some(total) => table.with_foot(&total),
        None => table,
    }
}
