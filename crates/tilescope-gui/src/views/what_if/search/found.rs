//! The answers of `tilescope sweep` and `tilescope tune`: points, each with its spec changes and
//! results.

use super::sweep_plots::SweepScene;
use serde_json::Value;
use std::collections::BTreeSet;
use std::sync::Arc;
use tilescope_analysis::data_table::{DataTable, TableCell, TableColumn};
use tilescope_analysis::insights::SpecChanges;
use tilescope_analysis::table;
use tilescope_experiments::answers::{
    SweepAnswer, SweepPoint, TuneAnswer, TuneStepAnswer, value_text,
};
use tilescope_experiments::point::{Point, PointFigure};
use tilescope_experiments::results_file::changes_text;
use tilescope_report::units::{NumberFormat, seconds};

/// `1.61 µs per sample, fullest tile 211 KiB, 4 IPUs`, or why a point has no figures.
pub(super) fn figures_words(point: &Point) -> String {
    match point.problem() {
        "" => point.figures_text(),
        problem => format!("{}: {problem}", point.outcome_words()),
    }
}

/// Describes the changes and figures of a point.
pub(super) fn point_words(point: &Point) -> String {
    format!("{}: {}", all_changes_words(point), figures_words(point))
}

/// Describes the changes of a point, even if there are none.
pub(super) fn all_changes_words(point: &Point) -> String {
    match changes_words(point.changes.iter()) {
        none if none.is_empty() => "the unchanged spec".to_owned(),
        words => words,
    }
}

/// A table of points: the given columns of text, then the results of each point.
fn points_table(words: Vec<TableColumn>, points: Vec<(Vec<TableCell>, &Point, bool)>) -> DataTable {
    let bytes = |bytes: f64| NumberFormat::default().bytes(bytes as u64);
    let rate = |time: f64| (1.0 / time) as u64;
    table! { points, |(cells, point, pareto_front)|
        all words => cells;
        number "Time/sample" => point.seconds_per_sample().map(TableCell::Seconds);
        text "Time between" => ends(point, "seconds_per_sample", seconds), NINE_OF_TEN;
        number "Samples/s" => point.seconds_per_sample().map(rate);
        bytes "Memory" => point.figures().map(|figures| figures.fullest_tile_bytes),
            "Memory that the fullest tile needs.";
        text "Memory between" => ends(point, "memory", bytes), NINE_OF_TEN;
        number "IPUs" => point.figures().map(|figures| u64::from(figures.ipus));
        text "Outcome" => outcome(point, pareto_front);
    }
}

fn outcome(point: &Point, pareto_front: bool) -> String {
    match point.problem() {
        "" if pareto_front => "on the Pareto front".to_owned(),
        "" if point.fits() => String::new(),
        "" => "does not fit in memory".to_owned(),
        problem => format!("{}: {problem}", point.outcome_words()),
    }
}

/// The meaning of the bounds of a figure.
const NINE_OF_TEN: &str = "90 % interval; empty if unknown.";

/// The bounds of a figure of a point.
fn ends(point: &Point, figure: &str, text: impl Fn(f64) -> String) -> Option<String> {
    let figure = PointFigure::named(figure);
    let band = figure.zip(point.figures()).and_then(|(figure, of)| figure.expected(of));
    band.map(|band| band.ends(text))
}

/// `num_io_tiles 32, overlap_io loops`
pub(super) fn changes_words<'a>(changes: impl Iterator<Item = (&'a String, &'a Value)>) -> String {
    let words =
        changes.map(|(path, value)| format!("{} {}", last_name(path), value_text(Some(value))));
    words.collect::<Vec<_>>().join(", ")
}

/// The last part of a key: `num_io_tiles` of `options.num_io_tiles`.
pub(super) fn last_name(path: &str) -> &str {
    path.rsplit('.').next().unwrap_or(path)
}

fn sweep_table(answer: &SweepAnswer) -> DataTable {
    let mut columns = vec![TableColumn::text("Point")];
    for key in &answer.keys {
        let values = answer.points.iter().filter_map(|found| found.point.changes.get(key));
        let are_numbers = values.into_iter().all(Value::is_number);
        columns.push(if are_numbers {
            TableColumn::number(last_name(key))
        } else {
            TableColumn::text(last_name(key))
        });
    }
    let mut rows = Vec::new();
    for SweepPoint { point, pareto_front } in &answer.points {
        // The name of a row: the value of a key alone would say nothing.
        let mut row = vec![TableCell::Text(all_changes_words(point))];
        row.extend(answer.keys.iter().map(|key| value_cell(point.changes.get(key))));
        rows.push((row, point, *pareto_front));
    }
    points_table(columns, rows)
}

fn value_cell(value: Option<&Value>) -> TableCell {
    let Some(value) = value else { return TableCell::Missing };
    match (value.as_u64(), value.as_f64()) {
        (Some(whole), _) => TableCell::Count(whole),
        (None, Some(real)) => TableCell::Real(real),
        (None, None) => TableCell::Text(value_text(Some(value))),
    }
}

fn tune_table(answer: &TuneAnswer) -> DataTable {
    let words = |step: String, change: String| vec![TableCell::Text(step), TableCell::Text(change)];
    let begin = words("Begin".to_owned(), "the unchanged spec".to_owned());
    let mut rows = vec![(begin, &answer.base, false)];
    for (number, TuneStepAnswer { step, .. }) in (1..).zip(&answer.path) {
        let words = words(format!("Step {number}"), changes_words(step.moved.changes.iter()));
        rows.push((words, &step.point, false));
    }
    for end in &answer.dead_ends {
        let step = format!("No gain after {}", end.after);
        rows.push((words(step, changes_words(end.moved.changes.iter())), &end.point, false));
    }
    points_table(vec![TableColumn::text("Step"), TableColumn::text("Change")], rows)
}

/// The results of a search.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum SearchAnswer {
    Sweep(SweepAnswer),
    Tune {
        answer: Box<TuneAnswer>,
        /// The keys that the spec sets, as TOML; empty while the search is running.
        text: String,
        /// The number of points in its file that are neither on the path nor dead ends.
        others: usize,
    },
}

impl SearchAnswer {
    /// The answer of a guided search.
    pub(crate) fn tune(answer: TuneAnswer) -> Self {
        Self::Tune { answer: Box::new(answer), text: String::new(), others: 0 }
    }

    /// The contents of a file of results: the path of a guided search, or points.
    pub(crate) fn of_file(mut answer: SweepAnswer) -> Self {
        let Some(search) = answer.search.take() else { return Self::Sweep(answer) };
        let shown: BTreeSet<String> =
            search.points().map(|point| changes_text(&point.changes)).collect();
        let is_other = |found: &&SweepPoint| !shown.contains(&changes_text(&found.point.changes));
        let others = answer.points.iter().filter(is_other).count();
        Self::Tune { answer: search, text: answer.text, others }
    }

    /// The keys that the spec sets, as TOML, if known.
    pub(super) fn text(&self) -> &str {
        match self {
            Self::Sweep(answer) => &answer.text,
            Self::Tune { text, .. } => text,
        }
    }

    /// All points, in table order.
    fn points(&self) -> Box<dyn Iterator<Item = &Point> + '_> {
        match self {
            Self::Sweep(answer) => Box::new(answer.points.iter().map(|found| &found.point)),
            Self::Tune { answer, .. } => Box::new(answer.points()),
        }
    }
}

/// The results of a search so far, ready to be shown.
pub(crate) struct FoundPoints {
    pub answer: SearchAnswer,
    pub(super) table: Arc<DataTable>,
    /// The plots of a sweep; `None` if no point fits.
    pub(super) scene: Option<SweepScene>,
}

impl FoundPoints {
    /// Prepares the results. Slow for many points, so not for the UI thread.
    pub(crate) fn new(answer: SearchAnswer) -> Self {
        let (table, scene) = match &answer {
            SearchAnswer::Sweep(answer) => (sweep_table(answer), SweepScene::new(answer)),
            SearchAnswer::Tune { answer, .. } => (tune_table(answer), None),
        };
        Self { answer, table: Arc::new(table), scene }
    }

    /// A point by its index in the table.
    pub(super) fn point(&self, at: usize) -> Option<&Point> {
        self.answer.points().nth(at)
    }

    /// The index of the point with these changes.
    pub(super) fn place_of(&self, changes: &SpecChanges) -> Option<usize> {
        self.answer.points().position(|point| point.changes == *changes)
    }
}
