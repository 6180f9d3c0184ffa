//! The costs of every operation.

use super::{PageFacts, SectionEntry};
use crate::block::Block;
use crate::table::HtmlTable;
use tilescope_analysis::operations::{OperationLayer, operations};
use tilescope_analysis::tables::operations::{COLUMNS, operations as table};
use tilescope_report::{ReportError, ReportPart};

pub(super) const SECTION: SectionEntry =
    SectionEntry { id: "operations", title: "Operations", build };

/// Columns beside those that the desktop app shows by default.
const MORE: [&str; 3] = ["executions", "code", "vertices"];

fn build(facts: &PageFacts<'_>) -> Result<Vec<Block>, ReportError> {
    let layer = if facts.report.has(ReportPart::Operations) {
        OperationLayer::Model
    } else {
        OperationLayer::Library
    };
    let mut blocks = Vec::new();
    if layer == OperationLayer::Library {
        let text = "The report has no operations of the model: these are the library calls that its \
                    programs are named after.";
        blocks.push(Block::note(text));
    }
    let rows = operations(facts.report, layer)?;
    if rows.is_empty() {
        return Ok(vec![Block::note("The report has neither operations nor named programs.")]);
    }
    let mut data = table(&rows, facts.report, layer);
    // Sorted by elapsed cycles, the most first.
    if let Some(at) = COLUMNS.iter().position(|column| column.key == "elapsed") {
        data.rows.sort_by(|a, b| b[at + 1].compare(&a[at + 1]));
    }
    // A column that was not recorded would only have dashes.
    let is_recorded = |at: usize| {
        data.rows.iter().any(|row| row[at] != tilescope_analysis::data_table::TableCell::Missing)
    };
    let shown =
        data.clone().with_columns(|at| match at.checked_sub(1).and_then(|at| COLUMNS.get(at)) {
            None => at == 0,
            Some(column) => (column.shown || MORE.contains(&column.key)) && is_recorded(at),
        });
    let caption = match layer {
        OperationLayer::Model => "Cost of every operation of the model",
        _ => "Cost of every library call",
    };
    blocks.push(Block::Table { table: HtmlTable::new("operations", caption, &shown) });
    Ok(blocks)
}
