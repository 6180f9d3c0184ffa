//! Live variables, step by step of the compiled program.

use super::{PageFacts, SectionEntry};
use crate::block::Block;
use crate::svg::figure::{block, columns_words};
use tilescope_analysis::liveness::{LivenessScope, curve};
use tilescope_analysis::program_tree;
use tilescope_analysis::topics::liveness_figure;
use tilescope_report::ReportError;
use tilescope_report::units::{exact_bytes, grouped};

pub(super) const SECTION: SectionEntry = SectionEntry { id: "liveness", title: "Liveness", build };

const NOT_RECORDED: &str = "The report does not record the lifetimes of variables.";

fn build(facts: &PageFacts<'_>) -> Result<Vec<Block>, ReportError> {
    let curve = curve(facts.report, LivenessScope::Whole)?.filter(|curve| !curve.others.is_empty());
    let Some(curve) = curve else { return Ok(vec![Block::note(NOT_RECORDED)]) };
    let peak = curve.peak().unwrap_or(0);
    let programs = facts.report.programs()?;
    let program = curve.programs.get(peak).and_then(|id| programs.get(*id));
    let name = program.map_or_else(String::new, |program| {
        format!(", {}", crate::names::shown(&program_tree::label(program)))
    });
    let figure = liveness_figure(&curve);
    let caption = format!(
        "Bytes live at each of {} steps, on all tiles of a replica. {} are always live; the peak \
         is at step {}{name}: {}.{}",
        grouped(curve.others.len() as u64),
        exact_bytes(curve.always.0),
        grouped(peak as u64),
        exact_bytes(curve.total(peak).0),
        columns_words(&figure, "steps"),
    );
    let mut blocks = vec![block(&figure, &caption)];
    for name in ["peak", "always-live"] {
        let table = facts.table("liveness", name)?;
        if table.count > 0 {
            blocks.push(Block::Table { table: table.folded() });
        }
    }
    Ok(blocks)
}
