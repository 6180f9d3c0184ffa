//! A line for each figure over the runs.

use super::{SeriesFacts, SeriesSection};
use crate::block::Block;
use crate::svg::figure::block;
use tilescope_report::units::{fine_percent, grouped};

pub(super) const SECTION: SeriesSection = SeriesSection { id: "figures", title: "Figures", build };

/// The maximum number of points, over all plots, with a tooltip.
const MAX_POINTS: usize = 20_000;
/// The maximum number of remarks below a plot; the tables have all of them.
const MAX_WORDS: usize = 4;

fn build(of: &SeriesFacts<'_>) -> Vec<Block> {
    let series = of.series;
    let options = of.options;
    let count = series.figures.len();
    let each_is_shown = count * series.runs.len() <= MAX_POINTS;
    let mut blocks = Vec::new();
    if !each_is_shown {
        let all = grouped((count * series.runs.len()) as u64);
        let text = format!(
            "Lines connect all {all} runs. Points mark the runs that are named below: the \
             baseline, both ends, changes and outliers."
        );
        blocks.push(Block::note(text));
    }
    for (figure, trend) in of.figures() {
        let most = if !each_is_shown { Some(MAX_POINTS / count) } else { None };
        let drawn = series.line_figure(figure, trend, options, most);
        blocks.push(Block::heading(figure.words(series, options)));
        if drawn.marks.lines.is_empty() {
            blocks.push(Block::note("No run has this figure."));
            continue;
        }
        let words = series.trend_words(figure, trend, options);
        blocks.push(block(&drawn, &caption(&words, options.threshold)));
    }
    if blocks.is_empty() {
        blocks.push(Block::note("None of these figures is in any of the runs."));
    }
    blocks
}

fn caption(words: &[String], threshold: f64) -> String {
    let shown: Vec<&str> = words.iter().take(MAX_WORDS).map(String::as_str).collect();
    let more = words.len().saturating_sub(MAX_WORDS);
    match (shown.is_empty(), more) {
        (true, _) => format!("No figure changes by {} or more.", fine_percent(threshold)),
        (false, 0) => format!("It {}.", shown.join("; it ")),
        (false, more) => format!("It {}; and {} more.", shown.join("; it "), grouped(more as u64)),
    }
}
