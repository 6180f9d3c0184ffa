//! The points of a sweep as a table, CSV and JSON.

use crate::cli::CliError;
use crate::cli::search::{Condition, FIGURES, Point, SearchedSpec, is_on_front};
use serde_json::{Value, json};
use std::cmp::Ordering;
use std::collections::BTreeSet;
use std::io::Write;
use tilescope_analysis::data_table::{DataTable, TableCell, TableColumn};
use tilescope_report::units::{Bytes, NumberFormat, grouped, seconds};

/// Points of one spec.
pub(super) struct SweepTable {
    /// As the user names it.
    pub spec: String,
    /// The keys that it sets, as TOML.
    pub text: String,
    /// Paths of the keys that vary.
    pub keys: Vec<String>,
    pub points: Vec<Point>,
    /// What a guided search made of them, as it says it.
    pub search: Option<Value>,
}

impl SweepTable {
    /// Points of any keys, in the order of their values.
    pub(super) fn of_any(spec: SearchedSpec, points: Vec<Point>) -> Self {
        let keys: BTreeSet<&String> =
            points.iter().flat_map(|point| point.changes.keys()).collect();
        let keys: Vec<String> = keys.into_iter().cloned().collect();
        let mut points = points;
        points.sort_by(|a, b| {
            let orders = keys.iter().map(|key| value_order(a.changes.get(key), b.changes.get(key)));
            orders.fold(Ordering::Equal, Ordering::then)
        });
        Self { spec: spec.name, text: spec.text, keys, points, search: None }
    }

    /// The points that meet the conditions; what has no figures is there to say why.
    pub(super) fn filtered(mut self, conditions: &[Condition]) -> Self {
        self.points.retain(|point| {
            conditions.iter().all(|condition| {
                let of_keys = condition.of_keys(|path| point.changes.get(path));
                of_keys.or(condition.of_figures(point)) != Some(false)
            })
        });
        self
    }

    /// All that is known of each point, with whole paths of keys.
    pub(super) fn csv(&self) -> String {
        let keys = self.keys.iter().map(TableColumn::text);
        let figures = FIGURES.iter().map(|figure| TableColumn::number(figure.name));
        let rest = ["outcome", "pareto_front", "problem"].map(TableColumn::text);
        let front = is_on_front(self.points.iter());
        let row = |(point, on_front): (&Point, bool)| {
            let json = point.json();
            let keys =
                self.keys.iter().map(|key| TableCell::from(value_text(point.changes.get(key))));
            let figures = FIGURES.iter().map(|figure| match &json[figure.name] {
                Value::Number(number) => match number.as_u64() {
                    Some(whole) => TableCell::Count(whole),
                    None => number.as_f64().map(TableCell::Real).into(),
                },
                _ => TableCell::Missing,
            });
            let words = [point.outcome_words(), if on_front { "yes" } else { "" }, point.problem()];
            keys.chain(figures).chain(words.map(TableCell::from)).collect()
        };
        let rows = self.points.iter().zip(front).map(row).collect();
        DataTable::new(keys.chain(figures).chain(rest).collect(), rows).csv()
    }

    /// `{spec, text, keys, points}`, and `search` where a guided search found them
    pub(super) fn json(&self) -> Value {
        let front = is_on_front(self.points.iter());
        let point = |(point, on_front): (&Point, bool)| {
            let mut json = point.json();
            json.insert("pareto_front".to_owned(), json!(on_front));
            Value::Object(json)
        };
        let points: Vec<Value> = self.points.iter().zip(front).map(point).collect();
        let mut json =
            json!({ "spec": self.spec, "text": self.text, "keys": self.keys, "points": points });
        if let Some(search) = &self.search {
            json["search"] = search.clone();
        }
        json
    }

    /// A line for each point.
    pub(super) fn print(&self, output: &mut dyn Write) -> Result<(), CliError> {
        if self.points.is_empty() {
            return Ok(writeln!(output, "No point meets the conditions.")?);
        }
        let mut heads: Vec<String> = self.keys.iter().map(|key| self.short(key)).collect();
        heads.extend(["time/sample", "samples/s", "memory", "IPUs", "front"].map(str::to_owned));
        heads.push(String::new());
        let front = is_on_front(self.points.iter());
        let rows: Vec<Vec<String>> =
            self.points.iter().zip(front).map(|(point, front)| self.line(point, front)).collect();
        let width = |column: usize| {
            let cells = rows.iter().chain([&heads]).map(|row| row[column].chars().count());
            cells.max().unwrap_or(0)
        };
        let widths: Vec<usize> = (0..heads.len()).map(width).collect();
        for row in [&heads].into_iter().chain(&rows) {
            let cells = row.iter().zip(&widths).enumerate().map(|(at, (cell, width))| {
                if at + 1 == row.len() { cell.clone() } else { format!("{cell:>width$}  ") }
            });
            writeln!(output, "{}", cells.collect::<String>().trim_end())?;
        }
        Ok(())
    }

    fn line(&self, point: &Point, on_front: bool) -> Vec<String> {
        let mut line: Vec<String> =
            self.keys.iter().map(|key| value_text(point.changes.get(key))).collect();
        let figures = point.figures();
        let time = figures.and_then(|figures| figures.seconds_per_sample());
        let dash = || "-".to_owned();
        line.push(time.map_or_else(dash, seconds));
        line.push(time.map_or_else(dash, |time| grouped((1.0 / time) as u64)));
        let memory = |bytes: Bytes| NumberFormat::default().bytes(bytes.0);
        line.push(figures.map_or_else(dash, |figures| memory(figures.fullest_tile_bytes)));
        line.push(figures.map_or_else(dash, |figures| figures.ipus.to_string()));
        line.push(if on_front { "*".to_owned() } else { String::new() });
        line.push(match (point.fits(), point.problem()) {
            (true, _) => String::new(),
            (false, "") => "does not fit in memory".to_owned(),
            (false, problem) => format!("{}: {problem}", point.outcome_words()),
        });
        line
    }

    /// The last part of a path, where no other key ends in it.
    fn short(&self, path: &str) -> String {
        let last = |path: &str| path.rsplit('.').next().unwrap_or(path).to_owned();
        let alike = self.keys.iter().filter(|other| last(other) == last(path)).count();
        if alike > 1 { path.to_owned() } else { last(path) }
    }
}

/// A value of a key as it is written in a spec, words without quotes.
pub(super) fn value_text(value: Option<&Value>) -> String {
    match value {
        None => String::new(),
        Some(Value::String(word)) => word.clone(),
        Some(value) => value.to_string(),
    }
}

fn value_order(a: Option<&Value>, b: Option<&Value>) -> Ordering {
    match (a.and_then(Value::as_f64), b.and_then(Value::as_f64)) {
        (Some(a), Some(b)) => a.total_cmp(&b),
        _ => value_text(a).cmp(&value_text(b)),
    }
}
