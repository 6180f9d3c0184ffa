//! Every run with its figures.

use super::{SeriesFacts, SeriesSection};
use crate::block::Block;
use crate::table::HtmlTable;

pub(super) const SECTION: SeriesSection = SeriesSection { id: "runs", title: "Runs", build };

fn build(of: &SeriesFacts<'_>) -> Vec<Block> {
    let data = of.series.runs_table(of.options);
    let caption = "Figures of every run, and their changes from the baseline";
    vec![Block::Table { table: HtmlTable::new("series/runs", caption, &data) }]
}
