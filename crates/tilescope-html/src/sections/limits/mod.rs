//! The efficiency of the program: from the peak down to the achieved rate, and operations below the
//! machine's limits.

use super::{NOT_RUN, PageFacts, SectionEntry};
use crate::block::Block;
use crate::names::prose;
use crate::svg::figure::{block, colour};
use crate::table::{BarPart, HtmlTable};
use tilescope_analysis::limits::{RunLimits, UnknownUtilisation, roofline};
use tilescope_analysis::tables::limits::{operations, waterfall};
use tilescope_analysis::topics::{roofline_figure, waterfall_figure};
use tilescope_report::ReportError;
use tilescope_report::units::{fine_percent, grouped};

pub(super) const SECTION: SectionEntry = SectionEntry { id: "limits", title: "Limits", build };

fn build(facts: &PageFacts<'_>) -> Result<Vec<Block>, ReportError> {
    let Some(run) = &facts.limits.run else { return Ok(vec![Block::note(NOT_RUN)]) };
    let words = match (run.utilisation(), run.unknown) {
        (Some(share), _) => format!(
            "The run achieves {} of the peak of all its IPUs. Each row below is a loss, in cycles \
             of the run × IPUs.",
            fine_percent(share)
        ),
        (None, reason) => {
            let reason = reason.map_or("", UnknownUtilisation::sentence);
            format!("The utilisation of the peak is unknown. {reason}")
        }
    };
    let mut blocks = vec![Block::note(prose(&words)), Block::Table { table: waterfall_table(run) }];
    blocks.push(Block::heading("Roofline"));
    let found = roofline(&facts.limits.machine, &facts.limits.rows, None);
    let caption = format!(
        "{} operations below what an IPU allows: height is compute speed, and position to the \
         right is FLOPs per byte over the limiting interface",
        grouped(found.points.len() as u64)
    );
    blocks.push(block(&roofline_figure(&facts.limits, &found), &caption));
    blocks.push(Block::heading("Operations and their lower bounds"));
    let caption = "Lower bound of every operation, most wasted cycles first";
    let table = HtmlTable::new("limits/operations", caption, &operations(&facts.limits.rows));
    blocks.push(Block::Table { table });
    Ok(blocks)
}

/// The losses from the peak down, each row with a bar below that of the previous row.
fn waterfall_table(run: &RunLimits) -> HtmlTable {
    let figure = waterfall_figure(&run.all, None);
    // The table has no row of the peak.
    let make_bar = |at: usize| {
        let parts = figure.marks.bars.get(at + 1).map_or(&[][..], |row| &row.parts);
        parts
            .iter()
            .map(|part| BarPart {
                from: part.from,
                to: part.to,
                colour: colour(figure.series[part.series].shade),
            })
            .collect::<Vec<_>>()
    };
    let data = waterfall(&run.all);
    // The contents of each step are in its text; the column would leave no space for bars.
    let data = data.with_columns(|column| column < 3);
    HtmlTable::with_bars(
        "limits/waterfall",
        "From the peak down",
        &data,
        make_bar,
        "0 to 100 % of the peak",
    )
}
