//! The contents of a series, and the state of its last run.

use super::{SeriesFacts, SeriesSection};
use crate::block::{Block, Card, Fact};
use crate::names::{prose, shown};
use crate::sections::counted;
use crate::table::HtmlTable;
use tilescope_analysis::data_table::{DataTable, TableColumn};
use tilescope_analysis::series::SeriesFigure;
use tilescope_report::units::{fine_percent, grouped};

pub(super) const SECTION: SeriesSection = SeriesSection { id: "summary", title: "Summary", build };

/// Number of figures of the last run on cards.
const MAX_CARDS: usize = 5;
/// The maximum number of notes in a list; more notes become a table.
const MAX_NOTES: usize = 5;

fn build(of: &SeriesFacts<'_>) -> Vec<Block> {
    let series = of.series;
    let options = of.options;
    let mut blocks = Vec::new();
    if let Some(last) = series.runs.len().checked_sub(1) {
        let figures = series.figures.iter().take(MAX_CARDS);
        blocks.push(Block::heading(format!("The last run, {}", shown(&series.runs[last].name))));
        blocks.push(Block::Cards { cards: figures.map(|figure| card(of, figure, last)).collect() });
    }
    blocks.push(Block::Facts { rows: facts(of) });
    let notes = series.notes(options.unit);
    if notes.len() <= MAX_NOTES {
        blocks.extend(notes.iter().map(|text| Block::note(prose(text))))
    } else {
        let rows = notes.into_iter().map(|note| vec![note.into()]).collect();
        let data = DataTable::new(vec![TableColumn::text("Note")], rows);
        let caption = "Notes about the runs";
        let table = HtmlTable::new("series/notes", caption, &data).folded();
        blocks.push(Block::Table { table });
    }
    blocks.extend(unread(of));
    blocks
}

/// A figure of the last run, with its distance from the baseline.
fn card(of: &SeriesFacts<'_>, figure: &SeriesFigure, run: usize) -> Card {
    let series = of.series;
    let options = of.options;
    let value = series.value_of_run(figure, run, options.unit);
    let share = series.share(figure, run, options);
    let width = series.expected(figure, run, options.unit);
    let width = width.map_or_else(String::new, |band| format!("{}, ", band.width_words()));
    let about = match (run == options.baseline, share) {
        (true, _) => "is the baseline".to_owned(),
        (false, Some(share)) => format!("{:+.2} % from {}", share * 100.0, shown(of.baseline())),
        (false, None) => format!("no percentage of {}", shown(of.baseline())),
    };
    Card {
        title: figure.title(series, options),
        value: value.map_or_else(|| "—".to_owned(), |value| figure.figure.quantity().text(value)),
        about: if value.is_some() {
            width + &about
        } else {
            "the run does not have this figure".to_owned()
        },
        formula: String::new(),
        bad: false,
    }
}

fn facts(of: &SeriesFacts<'_>) -> Vec<Fact> {
    let series = of.series;
    let options = of.options;
    let mut targets: Vec<&str> = series.runs.iter().map(|run| run.target.as_str()).collect();
    targets.sort_unstable();
    targets.dedup();
    let changes: usize = of.trends.iter().map(|trend| trend.changes.len()).sum();
    vec![
        Fact::new("Runs", grouped(series.runs.len() as u64)),
        Fact::new("Baseline", of.baseline()),
        Fact::new("Target", targets.join(", ")),
        Fact::new("Figures are shown per", series.unit(options.unit).name()),
        Fact::new("Smallest reported change", fine_percent(options.threshold)),
        Fact::new("Change points", grouped(changes as u64)),
    ]
}

/// Reports that could not be read, with the reasons.
fn unread(of: &SeriesFacts<'_>) -> Option<Block> {
    let unread = &of.series.unread;
    if unread.is_empty() {
        return None;
    }
    let columns = ["Report", "Problem"].map(TableColumn::text).to_vec();
    let rows = unread.iter().map(|of| vec![of.name.as_str().into(), of.problem.as_str().into()]);
    let data = DataTable::new(columns, rows.collect());
    let verb = if unread.len() == 1 { "is" } else { "are" };
    let caption = format!("{} {verb} left out", counted(unread.len() as u64, "report"));
    Some(Block::Table { table: HtmlTable::new("series/unread", caption, &data) })
}
