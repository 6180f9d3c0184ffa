//! A comparison of two reports: the changes, and the gates.

use super::{PageFacts, SectionEntry};
use crate::block::Block;
use crate::names::prose;
use crate::table::{BarPart, HtmlTable};
use tilescope_analysis::compare::{ComparisonRow, ComparisonTable, overview};
use tilescope_analysis::data_table::{DataTable, TableColumn};
use tilescope_report::ReportError;

pub(super) const SECTION: SectionEntry =
    SectionEntry { id: "what-changed", title: "What changed", build };

fn build(facts: &PageFacts<'_>) -> Result<Vec<Block>, ReportError> {
    let Some(compared) = &facts.compared else { return Ok(Vec::new()) };
    let page = overview(&compared.sides)?;
    let mut blocks = vec![Block::Facts {
        rows: vec![
            crate::block::Fact::new("Source", compared.source),
            crate::block::Fact::new("Target", facts.name),
        ],
    }];
    blocks.push(Block::note(prose(&page.verdict)));
    blocks.extend(page.normalization.note.iter().map(|note| Block::note(prose(note))));
    blocks.extend(gates(compared.gates));
    for table in &page.tables {
        blocks.push(Block::Table { table: differences(table) });
    }
    Ok(blocks)
}

/// Gates, with the reasons for violations.
fn gates(gates: &[(String, Option<String>)]) -> Option<Block> {
    if gates.is_empty() {
        return None;
    }
    let columns = ["Gate", "State", "Why"].map(TableColumn::text).to_vec();
    let row = |(gate, why): &(String, Option<String>)| {
        let state = if why.is_some() { "✗ violated" } else { "✓ passed" };
        vec![gate.as_str().into(), state.into(), why.as_deref().unwrap_or("").into()]
    };
    let data = DataTable::new(columns, gates.iter().map(row).collect());
    let caption = "Gates: conditions that must not be true of the target";
    Some(Block::Table { table: HtmlTable::new("compare/gates", caption, &data) })
}

/// A table of differences, each with a bar of its share of the source; increases point right.
fn differences(table: &ComparisonTable) -> HtmlTable {
    let id = format!("compare/{}", table.name());
    // Figures of the whole run would leave no space for bars; the command line has them.
    let data = table.data().with_columns(|column| column < 5);
    let shares: Vec<Option<f64>> = table.rows.iter().map(ComparisonRow::share).collect();
    let most = shares.iter().flatten().fold(0.0_f64, |most, share| most.max(share.abs()));
    if most == 0.0 {
        return HtmlTable::new(id, table.title, &data);
    }
    // A change of several times the source would make all others invisible.
    let most = most.min(1.0);
    let bar = |at: usize| {
        let share = shares.get(at).copied().flatten().unwrap_or(0.0);
        let half = (share / most).clamp(-1.0, 1.0) / 2.0;
        let (from, to) = if half < 0.0 { (0.5 + half, 0.5) } else { (0.5, 0.5 + half) };
        let middle = BarPart { from: 0.499, to: 0.5, colour: "outline" };
        match share {
            0.0 => vec![middle],
            _ => vec![BarPart { from, to, colour: "accent" }, middle],
        }
    };
    HtmlTable::with_bars(id, table.title, &data, bar, "Less · more")
}
