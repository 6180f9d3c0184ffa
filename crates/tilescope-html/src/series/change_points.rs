//! Lasting changes and drifts of figures, and runs that stand out.

use super::{SeriesFacts, SeriesSection};
use crate::block::{Block, Sentence};
use crate::names::prose;
use crate::table::HtmlTable;
use tilescope_analysis::series::{ChangePoint, SeriesFigure};
use tilescope_report::units::{fine_percent, grouped};

pub(super) const SECTION: SeriesSection =
    SeriesSection { id: "change-points", title: "Change points", build };

/// The maximum number of changes described in words; the table has all of them.
const MAX_SENTENCES: usize = 20;

fn build(of: &SeriesFacts<'_>) -> Vec<Block> {
    let series = of.series;
    let options = of.options;
    let mut changes: Vec<(&SeriesFigure, &ChangePoint)> = Vec::new();
    for (figure, trend) in of.figures() {
        changes.extend(trend.changes.iter().map(|change| (figure, change)));
    }
    let mut blocks = Vec::new();
    if changes.is_empty() {
        let percent = fine_percent(options.threshold);
        let text = format!("No figure changes permanently by at least {percent}.");
        blocks.push(Block::note(text));
    }
    let count = changes.len();
    // The largest changes come first; a change from zero is the largest of all.
    let get_size = |change: &ChangePoint| change.share.map_or(f64::INFINITY, f64::abs);
    changes.sort_by(|a, b| get_size(b.1).total_cmp(&get_size(a.1)));
    let sentences: Vec<Sentence> = changes
        .iter()
        .take(MAX_SENTENCES)
        .map(|(figure, change)| Sentence {
            subject: figure.title(series, options),
            text: format!("{}.", prose(&series.change_words(figure, change))),
        })
        .collect();
    if !sentences.is_empty() {
        blocks.push(Block::Sentences { sentences });
    }
    if count > MAX_SENTENCES {
        let all = grouped(count as u64);
        let text = format!("These are the largest {MAX_SENTENCES} of {all}; the table has all.");
        blocks.push(Block::note(text));
    }
    let tables = [
        ("series/changes", "Permanent changes", series.changes_table(options)),
        ("series/drifts", "Slow drifts", series.drifts_table(options)),
        ("series/outliers", "Outliers", series.outliers_table(options)),
    ];
    for (id, caption, data) in tables {
        if !data.rows.is_empty() {
            blocks.push(Block::Table { table: HtmlTable::new(id, caption, &data) });
        }
    }
    blocks
}
