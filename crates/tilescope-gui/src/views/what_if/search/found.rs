//! What `tilescope sweep` and `tilescope tune` say: points, each a changed spec and what came of it.

use super::sweep_plots::SweepScene;
use serde::Deserialize;
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use tilescope_analysis::data_table::{DataTable, TableCell, TableColumn};
use tilescope_analysis::insights::SpecChanges;
use tilescope_report::units::{Bytes, NumberFormat, grouped, seconds};

/// What the program says of a sweep, or of a file of results.
#[derive(Clone, Debug, PartialEq, Deserialize)]
pub(crate) struct SweepAnswer {
    pub spec: String,
    /// The keys that the spec sets, as TOML.
    #[serde(default)]
    pub text: String,
    /// Paths of the keys that vary.
    pub keys: Vec<String>,
    pub points: Vec<FoundPoint>,
    /// What a guided search made of them, where they are of a file of one.
    #[serde(default)]
    pub search: Option<Box<TuneAnswer>>,
}

/// What the program says of a guided search.
#[derive(Clone, Debug, PartialEq, Deserialize)]
pub(crate) struct TuneAnswer {
    pub spec: String,
    /// The keys that the spec sets, as TOML; empty while the search goes on.
    #[serde(default)]
    pub text: String,
    /// Points of its file that are neither on the path nor dead ends.
    #[serde(default)]
    pub others: usize,
    pub objective: String,
    pub base: FoundPoint,
    /// The command that writes the report of the spec as it is.
    #[serde(default)]
    pub simulate: String,
    pub path: Vec<FoundStep>,
    pub dead_ends: Vec<FoundDeadEnd>,
}

/// A changed spec and what came of it; what is not known is nothing.
#[derive(Clone, Debug, PartialEq, Deserialize)]
pub(crate) struct FoundPoint {
    pub changes: SpecChanges,
    /// `fits`, `does_not_fit`, `refused` or `died`
    pub outcome: String,
    /// Why it was refused or died.
    #[serde(default)]
    pub problem: Option<String>,
    pub seconds_per_sample: Option<f64>,
    pub seconds: Option<f64>,
    /// Bytes of the fullest tile.
    pub memory: Option<f64>,
    pub ipus: Option<u64>,
    #[serde(default)]
    pub joules_per_million_samples: Option<f64>,
    #[serde(default)]
    pub cost_per_million_samples: Option<f64>,
    /// Whether none beats it in time, memory and IPUs at once.
    #[serde(default)]
    pub pareto_front: bool,
}

/// A step of the path of a search.
#[derive(Clone, Debug, PartialEq, Deserialize)]
pub(crate) struct FoundStep {
    pub change: BTreeMap<String, Value>,
    pub reasons: Vec<StepReason>,
    pub gain: Option<f64>,
    pub point: FoundPoint,
    /// The command that compares it with the step before.
    #[serde(default)]
    pub compare: String,
    /// The command that writes its report for that.
    #[serde(default)]
    pub simulate: String,
}

#[derive(Clone, Debug, PartialEq, Deserialize)]
pub(crate) struct StepReason {
    pub sentence: String,
}

/// A change that was tried in vain.
#[derive(Clone, Debug, PartialEq, Deserialize)]
pub(crate) struct FoundDeadEnd {
    pub change: BTreeMap<String, Value>,
    pub after_step: usize,
    pub point: FoundPoint,
}

impl FoundPoint {
    /// `1.61 us a sample, fullest tile 211 KiB, 4 IPUs`, or why it has no figures.
    pub(super) fn figures_words(&self) -> String {
        if let Some(problem) = &self.problem {
            return format!("{}: {problem}", self.outcome_words());
        }
        let time = match self.seconds_per_sample {
            Some(time) => format!("{} a sample", seconds(time)),
            None => self.outcome_words(),
        };
        let memory = self.memory.unwrap_or(0.0).max(0.0) as u64;
        let memory = NumberFormat::default().bytes(memory);
        let ipus = match self.ipus {
            Some(1) => "1 IPU".to_owned(),
            ipus => format!("{} IPUs", grouped(ipus.unwrap_or(0))),
        };
        format!("{time}, fullest tile {memory}, {ipus}")
    }

    /// Its changes and figures.
    pub(super) fn words(&self) -> String {
        format!("{}: {}", self.changes_words(), self.figures_words())
    }

    /// Its changes; something also where there are none.
    pub(super) fn changes_words(&self) -> String {
        match changes_words(self.changes.iter()) {
            none if none.is_empty() => "the spec as it is".to_owned(),
            words => words,
        }
    }

    fn outcome_words(&self) -> String {
        match self.outcome.as_str() {
            "does_not_fit" => "does not fit in memory".to_owned(),
            other => other.to_owned(),
        }
    }

    /// Cells of what came of it: time and rate, memory, IPUs, words.
    fn cells(&self) -> Vec<TableCell> {
        let real = |value: Option<f64>| TableCell::from(value.map(TableCell::Real));
        let bytes = self.memory.map(|bytes| TableCell::Bytes(Bytes(bytes.max(0.0) as u64)));
        let outcome = match (&self.problem, self.outcome.as_str()) {
            (Some(problem), _) => format!("{}: {problem}", self.outcome_words()),
            (None, "fits") if self.pareto_front => "on the Pareto front".to_owned(),
            (None, "fits") => String::new(),
            (None, _) => self.outcome_words(),
        };
        vec![
            real(self.seconds_per_sample.map(|time| time * 1e6)),
            self.seconds_per_sample.map(|time| TableCell::Count((1.0 / time) as u64)).into(),
            bytes.into(),
            self.ipus.map(TableCell::Count).into(),
            outcome.into(),
        ]
    }
}

/// Heads above the cells of what came of a point.
fn figure_columns() -> Vec<TableColumn> {
    vec![
        TableColumn::number("Time/sample (us)"),
        TableColumn::number("Samples/s"),
        TableColumn::bytes("Memory").about("What the fullest tile needs."),
        TableColumn::number("IPUs"),
        TableColumn::text("Outcome"),
    ]
}

/// `num_io_tiles 32, overlap_io loops`
pub(super) fn changes_words<'a>(changes: impl Iterator<Item = (&'a String, &'a Value)>) -> String {
    let words = changes.map(|(path, value)| format!("{} {}", last_name(path), value_words(value)));
    words.collect::<Vec<_>>().join(", ")
}

/// `num_io_tiles` of `options.num_io_tiles`.
pub(super) fn last_name(path: &str) -> &str {
    path.rsplit('.').next().unwrap_or(path)
}

/// A value, words without quotes.
pub(super) fn value_words(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

impl SweepAnswer {
    /// The values of a key, each once, in their order.
    pub(super) fn values_of(&self, key: &str) -> Vec<Value> {
        let mut values: Vec<Value> = Vec::new();
        for value in self.points.iter().filter_map(|point| point.changes.get(key)) {
            if !values.contains(value) {
                values.push(value.clone());
            }
        }
        if values.iter().all(Value::is_number) {
            let number = |value: &Value| value.as_f64().unwrap_or(0.0);
            values.sort_by(|a, b| number(a).total_cmp(&number(b)));
        }
        values
    }

    fn table(&self) -> DataTable {
        let value = |value: Option<&Value>| match value {
            None => TableCell::Missing,
            Some(value) => match (value.as_u64(), value.as_f64()) {
                (Some(whole), _) => TableCell::Count(whole),
                (None, Some(real)) => TableCell::Real(real),
                (None, None) => TableCell::Text(value_words(value)),
            },
        };
        let head = |key: &String| {
            let is_number =
                |point: &FoundPoint| point.changes.get(key).is_none_or(Value::is_number);
            match self.points.iter().all(is_number) {
                true => TableColumn::number(last_name(key)),
                false => TableColumn::text(last_name(key)),
            }
        };
        let row = |point: &FoundPoint| {
            let keys = self.keys.iter().map(|key| value(point.changes.get(key)));
            // What a row is called: a value of a key alone would say nothing.
            let name = TableCell::Text(point.changes_words());
            std::iter::once(name).chain(keys).chain(point.cells()).collect()
        };
        let name = std::iter::once(TableColumn::text("Point"));
        let columns = name.chain(self.keys.iter().map(head)).chain(figure_columns()).collect();
        DataTable::new(columns, self.points.iter().map(row).collect())
    }
}

impl TuneAnswer {
    /// Every point: the spec as it is, those of the path, dead ends.
    pub(super) fn points(&self) -> impl Iterator<Item = &FoundPoint> {
        let path = self.path.iter().map(|step| &step.point);
        let ends = self.dead_ends.iter().map(|end| &end.point);
        std::iter::once(&self.base).chain(path).chain(ends)
    }

    fn table(&self) -> DataTable {
        let base = ("Begin".to_owned(), "the spec as it is".to_owned());
        let path = (1..).zip(&self.path);
        let path = path
            .map(|(number, step)| (format!("Step {number}"), changes_words(step.change.iter())));
        let ends = self.dead_ends.iter();
        let ends = ends.map(|end| {
            (format!("In vain after {}", end.after_step), changes_words(end.change.iter()))
        });
        let words = std::iter::once(base).chain(path).chain(ends);
        let row = |((step, change), point): ((String, String), &FoundPoint)| {
            let words = [step, change].map(TableCell::Text);
            words.into_iter().chain(point.cells()).collect()
        };
        let words_columns = [TableColumn::text("Step"), TableColumn::text("Change")];
        let columns = words_columns.into_iter().chain(figure_columns()).collect();
        DataTable::new(columns, words.zip(self.points()).map(row).collect())
    }
}

/// What a search has found.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum SearchAnswer {
    Sweep(SweepAnswer),
    Tune(Box<TuneAnswer>),
}

impl SearchAnswer {
    /// What is in a file of results: the path of a guided search, or points.
    pub(crate) fn of_file(mut answer: SweepAnswer) -> Self {
        let Some(mut search) = answer.search.take() else { return Self::Sweep(answer) };
        let key = |point: &FoundPoint| json!(point.changes).to_string();
        let shown: BTreeSet<String> = search.points().map(key).collect();
        search.others = answer.points.iter().filter(|point| !shown.contains(&key(point))).count();
        search.text = answer.text;
        Self::Tune(search)
    }

    /// The keys that the spec sets, as TOML, where that is said.
    pub(super) fn text(&self) -> &str {
        match self {
            Self::Sweep(answer) => &answer.text,
            Self::Tune(answer) => &answer.text,
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
        let table = Arc::new(match &answer {
            SearchAnswer::Sweep(answer) => answer.table(),
            SearchAnswer::Tune(answer) => answer.table(),
        });
        let scene = match &answer {
            SearchAnswer::Sweep(answer) => SweepScene::new(answer),
            SearchAnswer::Tune(_) => None,
        };
        Self { answer, table, scene }
    }

    /// A point, in the order of the table.
    pub(super) fn point(&self, at: usize) -> Option<&FoundPoint> {
        match &self.answer {
            SearchAnswer::Sweep(answer) => answer.points.get(at),
            SearchAnswer::Tune(answer) => answer.points().nth(at),
        }
    }

    /// Where the point with these changes is.
    pub(super) fn place_of(&self, changes: &SpecChanges) -> Option<usize> {
        let is_it = |point: &FoundPoint| point.changes == *changes;
        match &self.answer {
            SearchAnswer::Sweep(answer) => answer.points.iter().position(is_it),
            SearchAnswer::Tune(answer) => answer.points().position(is_it),
        }
    }
}
