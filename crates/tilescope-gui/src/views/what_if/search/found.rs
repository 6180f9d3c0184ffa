//! What `tilescope sweep` and `tilescope tune` say: points, each a changed spec and what came of it.

use super::sweep_plots::SweepScene;
use serde_json::Value;
use std::collections::BTreeSet;
use std::sync::Arc;
use tilescope_analysis::data_table::{DataTable, TableCell, TableColumn};
use tilescope_analysis::insights::SpecChanges;
use tilescope_experiments::answers::{
    SweepAnswer, SweepPoint, TuneAnswer, TuneStepAnswer, value_text,
};
use tilescope_experiments::point::{Point, PointFigure};
use tilescope_experiments::results_file::changes_text;
use tilescope_report::units::{NumberFormat, seconds};

/// `1.61 us a sample, fullest tile 211 KiB, 4 IPUs`, or why a point has no figures.
pub(super) fn figures_words(point: &Point) -> String {
    match point.problem() {
        "" => point.figures_text(),
        problem => format!("{}: {problem}", point.outcome_words()),
    }
}

/// Changes and figures of a point.
pub(super) fn point_words(point: &Point) -> String {
    format!("{}: {}", all_changes_words(point), figures_words(point))
}

/// Changes of a point, in words also where there are none.
pub(super) fn all_changes_words(point: &Point) -> String {
    match changes_words(point.changes.iter()) {
        none if none.is_empty() => "the spec as it is".to_owned(),
        words => words,
    }
}

/// Cells of what came of a point: time and rate, memory, IPUs, words.
fn cells(point: &Point, pareto_front: bool) -> Vec<TableCell> {
    let time = point.seconds_per_sample();
    let figures = point.figures();
    let outcome = match point.problem() {
        "" if pareto_front => "on the Pareto front".to_owned(),
        "" if point.fits() => String::new(),
        "" => "does not fit in memory".to_owned(),
        problem => format!("{}: {problem}", point.outcome_words()),
    };
    vec![
        time.map(|time| TableCell::Real(time * 1e6)).into(),
        ends_cell(point, "seconds_per_sample", seconds),
        time.map(|time| TableCell::Count((1.0 / time) as u64)).into(),
        figures.map(|figures| TableCell::Bytes(figures.fullest_tile_bytes)).into(),
        ends_cell(point, "memory", |bytes| NumberFormat::default().bytes(bytes as u64)),
        figures.map(|figures| TableCell::Count(figures.ipus.into())).into(),
        outcome.into(),
    ]
}

/// The meaning of the bounds of a figure.
const NINE_OF_TEN: &str = "Bounds of nine cases in ten; empty where they are not known.";

/// Bounds of a figure of a point.
fn ends_cell(point: &Point, figure: &str, text: impl Fn(f64) -> String) -> TableCell {
    let figure = PointFigure::named(figure);
    let band = figure.zip(point.figures()).and_then(|(figure, of)| figure.expected(of));
    band.map(|band| TableCell::Text(band.ends(text))).into()
}

/// Heads above the cells of what came of a point.
fn figure_columns() -> Vec<TableColumn> {
    vec![
        TableColumn::number("Time/sample (us)"),
        TableColumn::text("Time between").about(NINE_OF_TEN),
        TableColumn::number("Samples/s"),
        TableColumn::bytes("Memory").about("What the fullest tile needs."),
        TableColumn::text("Memory between").about(NINE_OF_TEN),
        TableColumn::number("IPUs"),
        TableColumn::text("Outcome"),
    ]
}

/// `num_io_tiles 32, overlap_io loops`
pub(super) fn changes_words<'a>(changes: impl Iterator<Item = (&'a String, &'a Value)>) -> String {
    let words =
        changes.map(|(path, value)| format!("{} {}", last_name(path), value_text(Some(value))));
    words.collect::<Vec<_>>().join(", ")
}

/// `num_io_tiles` of `options.num_io_tiles`.
pub(super) fn last_name(path: &str) -> &str {
    path.rsplit('.').next().unwrap_or(path)
}

fn sweep_table(answer: &SweepAnswer) -> DataTable {
    let mut columns = vec![TableColumn::text("Point")];
    for key in &answer.keys {
        let values = answer.points.iter().filter_map(|found| found.point.changes.get(key));
        let are_numbers = values.into_iter().all(Value::is_number);
        columns.push(match are_numbers {
            true => TableColumn::number(last_name(key)),
            false => TableColumn::text(last_name(key)),
        });
    }
    columns.extend(figure_columns());
    let mut rows = Vec::new();
    for SweepPoint { point, pareto_front } in &answer.points {
        // The name of a row: a value of a key alone says nothing.
        let mut row = vec![TableCell::Text(all_changes_words(point))];
        row.extend(answer.keys.iter().map(|key| value_cell(point.changes.get(key))));
        row.extend(cells(point, *pareto_front));
        rows.push(row);
    }
    DataTable::new(columns, rows)
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
    let mut columns = vec![TableColumn::text("Step"), TableColumn::text("Change")];
    columns.extend(figure_columns());
    let mut rows = Vec::new();
    let mut add = |step: String, change: String, point: &Point| {
        let mut row = vec![TableCell::Text(step), TableCell::Text(change)];
        row.extend(cells(point, false));
        rows.push(row);
    };
    add("Begin".to_owned(), "the spec as it is".to_owned(), &answer.base);
    for (number, TuneStepAnswer { step, .. }) in (1..).zip(&answer.path) {
        add(format!("Step {number}"), changes_words(step.moved.changes.iter()), &step.point);
    }
    for end in &answer.dead_ends {
        let step = format!("In vain after {}", end.after);
        add(step, changes_words(end.moved.changes.iter()), &end.point);
    }
    DataTable::new(columns, rows)
}

/// What a search has found.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum SearchAnswer {
    Sweep(SweepAnswer),
    Tune {
        answer: Box<TuneAnswer>,
        /// The keys that the spec sets, as TOML; empty while the search goes on.
        text: String,
        /// Points of its file that are neither on the path nor dead ends.
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

    /// The keys that the spec sets, as TOML, where that is said.
    pub(super) fn text(&self) -> &str {
        match self {
            Self::Sweep(answer) => &answer.text,
            Self::Tune { text, .. } => text,
        }
    }

    /// All points, in the order of the table.
    fn points(&self) -> Box<dyn Iterator<Item = &Point> + '_> {
        match self {
            Self::Sweep(answer) => Box::new(answer.points.iter().map(|found| &found.point)),
            Self::Tune { answer, .. } => Box::new(answer.points()),
        }
    }
}

/// What a search has found so far, ready to be shown.
pub(crate) struct FoundPoints {
    pub answer: SearchAnswer,
    pub(super) table: Arc<DataTable>,
    /// The plots of a sweep, where something fits.
    pub(super) scene: Option<SweepScene>,
}

impl FoundPoints {
    /// Takes its time for many points: not for the UI thread.
    pub(crate) fn new(answer: SearchAnswer) -> Self {
        let (table, scene) = match &answer {
            SearchAnswer::Sweep(answer) => (sweep_table(answer), SweepScene::new(answer)),
            SearchAnswer::Tune { answer, .. } => (tune_table(answer), None),
        };
        Self { answer, table: Arc::new(table), scene }
    }

    /// A point, in the order of the table.
    pub(super) fn point(&self, at: usize) -> Option<&Point> {
        self.answer.points().nth(at)
    }

    /// The place of the point with these changes.
    pub(super) fn place_of(&self, changes: &SpecChanges) -> Option<usize> {
        self.answer.points().position(|point| point.changes == *changes)
    }
}
