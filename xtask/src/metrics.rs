//! The metrics with their targets, as a table and as JSON.

use std::fmt::Write;

use serde_json::{Value, json};

use crate::count::CodeCounts;
use crate::imports::ImportGraph;
use crate::names::{shared_names, type_definitions, words};
use crate::source::{ItemKind, SourceTree};

/// Where the code is not obvious, so that comments have to say why. Folders are named without
/// `src`, `crates` and the prefix of crates: `sim/planner` is `src/sim/planner` of the old layout
/// and `crates/tilescope-sim/src/planner` of the workspace.
const HARD_PARTS: [(&str, &[&str]); 4] = [
    (
        "planner",
        &[
            "sim/poplin/planner",
            "sim/poplin/estimate",
            "sim/poplin/canonical",
            "sim/poplin/params",
            "sim/poplin/index_ranges",
        ],
    ),
    (
        "lowering",
        &[
            "sim/poplar",
            "sim/poputil",
            "sim/popops",
            "sim/poplin/conv",
            "sim/popnn",
            "sim/custom",
            "sim/graph_lowering",
        ],
    ),
    ("pixels", &["gui/paint", "gui/widgets", "gui/views/execution_trace"]),
    ("file", &["report/reader", "report/writer", "report/trace"]),
];

/// The crate, or folder of the old layout, that is built in floors.
const WINDOW: &str = "gui";
/// The crate, or folder of the old layout, whose modules must not import each other in circles.
const SIMULATOR: &str = "sim";
/// Crates and folders whose circles are shown without a target.
const OTHER_ROOMS: [&str; 3] = ["report", "analysis", "cli"];

/// A figure with what it was made of.
#[derive(Clone, Copy)]
enum MetricValue {
    /// Part and whole, shown in percent.
    Share(usize, usize),
    /// Count and lines of code, shown as count per 1,000 lines.
    PerKloc(usize, usize),
    Count(usize),
    /// What was to be measured does not exist. Misses every target, or renaming a folder would
    /// turn its row green.
    Nothing,
}

impl MetricValue {
    #[expect(clippy::cast_precision_loss, reason = "counts of code are far below 2^52")]
    fn number(self) -> Option<f64> {
        let ratio = |part: usize, whole: usize| (whole > 0).then(|| part as f64 / whole as f64);
        match self {
            Self::Share(part, whole) => ratio(part, whole).map(|share| share * 100.0),
            Self::PerKloc(count, lines) => ratio(count, lines).map(|share| share * 1000.0),
            Self::Count(count) => Some(count as f64),
            Self::Nothing => None,
        }
    }

    /// A number in the unit of this value, with so many decimals.
    fn format(self, number: f64, decimals: usize) -> String {
        match self {
            Self::Share(..) => format!("{number:.decimals$} %"),
            Self::PerKloc(..) => format!("{number:.decimals$} /kloc"),
            Self::Count(_) | Self::Nothing => format!("{number:.0}"),
        }
    }
}

/// What a value has to be.
#[derive(Clone, Copy)]
enum MetricTarget {
    Below(f64),
    Above(f64),
    Zero,
}

/// One row of the table.
struct StyleMetric {
    /// Its name in JSON.
    key: String,
    title: String,
    value: MetricValue,
    target: Option<MetricTarget>,
    /// The counts behind the value.
    detail: String,
    /// Places, for `--list`.
    places: Vec<String>,
}

impl StyleMetric {
    fn new(key: impl Into<String>, title: impl Into<String>, value: MetricValue) -> Self {
        let detail = match value {
            MetricValue::Share(part, whole) => format!("{part} of {whole}"),
            MetricValue::PerKloc(count, lines) => format!("{count} in {lines} lines"),
            MetricValue::Count(_) | MetricValue::Nothing => String::new(),
        };
        let (key, title) = (key.into(), title.into());
        Self { key, title, value, target: None, detail, places: Vec::new() }
    }

    fn target(self, target: MetricTarget) -> Self {
        Self { target: Some(target), ..self }
    }

    fn detail(mut self, detail: &str) -> Self {
        self.detail.push_str(detail);
        self
    }

    fn places(self, places: Vec<String>) -> Self {
        Self { places, ..self }
    }

    /// Whether the target is met; none without a target.
    fn passes(&self) -> Option<bool> {
        let target = self.target?;
        let Some(number) = self.value.number() else { return Some(false) };
        Some(match target {
            MetricTarget::Below(limit) => number < limit,
            MetricTarget::Above(limit) => number > limit,
            MetricTarget::Zero => number == 0.0,
        })
    }

    /// Value, target and verdict as the table shows them.
    fn shown(&self) -> [String; 3] {
        let decimals = if matches!(self.value, MetricValue::PerKloc(..)) { 2 } else { 1 };
        let value = self.value.number();
        let value = value.map_or("-".to_owned(), |number| self.value.format(number, decimals));
        let target = match self.target {
            None => String::new(),
            Some(MetricTarget::Zero) => "0".to_owned(),
            Some(MetricTarget::Below(limit)) => format!("< {}", self.value.format(limit, 1)),
            Some(MetricTarget::Above(limit)) => format!("> {}", self.value.format(limit, 1)),
        };
        let verdict = self.passes().map_or("", |met| if met { "pass" } else { "MISS" });
        [value, target, verdict.to_owned()]
    }

    fn json(&self) -> Value {
        let [shown, target, _] = self.shown();
        json!({
            "key": self.key, "title": self.title, "value": self.value.number(), "shown": shown,
            "target": self.target.map(|_| target), "pass": self.passes(),
            "detail": self.detail, "places": self.places,
        })
    }
}

/// Everything measured in one run.
pub(crate) struct StyleReport {
    metrics: Vec<StyleMetric>,
    unreadable: Vec<String>,
}

impl StyleReport {
    pub(crate) fn measure(tree: &SourceTree) -> Self {
        let mut all = CodeCounts::default();
        let mut parts: Vec<CodeCounts> = HARD_PARTS.iter().map(|_| CodeCounts::default()).collect();
        for file in &tree.files {
            let counts = CodeCounts::of_file(file);
            for (part, (_, folders)) in parts.iter_mut().zip(HARD_PARTS) {
                if folders.iter().any(|folder| file.is_below(folder)) {
                    part.add(counts.clone());
                }
            }
            all.add(counts);
        }
        let mut metrics = Vec::from(name_metrics(tree));
        metrics.push(comment_metric("all", &all));
        for ((part, _), counts) in HARD_PARTS.iter().zip(&parts) {
            metrics.push(comment_metric(part, counts).target(MetricTarget::Above(2.0)));
        }
        metrics.extend(code_metrics(&all));
        metrics.extend(import_metrics(&ImportGraph::of_files(&tree.files)));
        metrics.extend(context(&all));
        Self { metrics, unreadable: tree.unreadable.clone() }
    }

    /// Whether every target is met and every file was read.
    pub(crate) fn passes(&self) -> bool {
        self.unreadable.is_empty() && self.metrics.iter().all(|row| row.passes() != Some(false))
    }

    pub(crate) fn json(&self) -> Value {
        let metrics: Vec<Value> = self.metrics.iter().map(StyleMetric::json).collect();
        json!({ "pass": self.passes(), "metrics": metrics, "unreadable": self.unreadable })
    }

    /// The table; with `list`, the places behind each row below it.
    pub(crate) fn text(&self, list: bool) -> String {
        let head = ["metric", "value", "target", "", "counted"].map(str::to_owned);
        let cells = |row: &StyleMetric| {
            let [value, target, verdict] = row.shown();
            [row.title.clone(), value, target, verdict, row.detail.clone()]
        };
        let rows: Vec<[String; 5]> =
            std::iter::once(head).chain(self.metrics.iter().map(cells)).collect();
        let width = |column: usize| {
            rows.iter().map(|row| row[column].chars().count()).max().unwrap_or_default()
        };
        let [title, value, target, verdict] = [0, 1, 2, 3].map(width);
        let mut text = String::new();
        for [a, b, c, d, e] in &rows {
            let line = format!("{a:title$}  {b:>value$}  {c:>target$}  {d:verdict$}  {e}");
            text.push_str(line.trim_end());
            text.push('\n');
        }
        for row in self.metrics.iter().filter(|row| list && !row.places.is_empty()) {
            // Writing to a text cannot fail.
            let _written = write!(text, "\n{} ({})\n  ", row.title, row.places.len());
            text.push_str(&row.places.join("\n  "));
            text.push('\n');
        }
        for file in &self.unreadable {
            let _written = writeln!(text, "not read: {file}");
        }
        text
    }
}

fn name_metrics(tree: &SourceTree) -> [StyleMetric; 2] {
    let definitions: Vec<_> = tree.files.iter().flat_map(type_definitions).collect();
    let shared = shared_names(&definitions);
    let sharing = |names: &[(&str, Vec<&str>)]| -> usize {
        names.iter().map(|(_, places)| places.len()).sum()
    };
    let places_of_name = |(name, places): &(&str, Vec<&str>)| {
        format!("{name} x{}: {}", places.len(), places.join(", "))
    };
    // What the figures of November 2026 counted, kept so that they can be compared.
    let data = || definitions.iter().filter(|found| found.kind == ItemKind::StructOrEnum);
    let (data_sharing, data_total) = (sharing(&shared_names(data())), data().count());
    let single: Vec<String> = definitions
        .iter()
        .filter(|definition| words(&definition.name) <= 1)
        .map(|definition| format!("{}  {}", definition.place, definition.name))
        .collect();
    let share = MetricValue::Share(sharing(&shared), definitions.len());
    let single_share = MetricValue::Share(single.len(), definitions.len());
    [
        StyleMetric::new("shared_type_names", "type definitions sharing their name", share)
            .target(MetricTarget::Below(10.0))
            .detail(&format!("; structs and enums alone {data_sharing} of {data_total}"))
            .places(shared.iter().map(places_of_name).collect()),
        StyleMetric::new("single_word_types", "type names of a single word", single_share)
            .target(MetricTarget::Below(35.0))
            .places(single),
    ]
}

fn comment_metric(part: &str, counts: &CodeCounts) -> StyleMetric {
    let (value, detail) = match counts.lines {
        0 => (MetricValue::Nothing, "no such folder: HARD_PARTS in xtask names another"),
        lines => (MetricValue::Share(counts.comments, lines), " lines"),
    };
    let (key, title) = (format!("comments_{part}"), format!("inline comments, {part}"));
    StyleMetric::new(key, title, value).detail(detail)
}

fn code_metrics(all: &CodeCounts) -> [StyleMetric; 4] {
    let short = MetricValue::Share(all.short_docs.len(), all.doc_blocks);
    let string_results = MetricValue::PerKloc(all.string_results.len(), all.lines);
    let assertions = MetricValue::PerKloc(all.assertions, all.lines);
    let undocumented = MetricValue::Count(all.undocumented.len());
    [
        StyleMetric::new("string_results", "Result<_, String>", string_results)
            .target(MetricTarget::Below(0.2))
            .places(all.string_results.clone()),
        StyleMetric::new("short_docs", "doc comments of three words or fewer", short)
            .target(MetricTarget::Below(4.0))
            .places(all.short_docs.clone()),
        StyleMetric::new("assertions", "assertions in product code", assertions)
            .target(MetricTarget::Above(0.7)),
        StyleMetric::new("undocumented_public", "public items without docs", undocumented)
            .detail(&format!("of {} public items", all.public_items))
            .places(all.undocumented.clone()),
    ]
}

fn import_metrics(graph: &ImportGraph) -> Vec<StyleMetric> {
    let window = circle_metric(graph, WINDOW);
    let mut metrics = if graph.has_floors(WINDOW) {
        let arrows = graph.arrows_up(WINDOW);
        let title = format!("{WINDOW}: arrows up between floors");
        let row = StyleMetric::new("window_arrows_up", title, MetricValue::Count(arrows.len()))
            .target(MetricTarget::Zero)
            .detail("pairs of a module and a folder it may not import")
            .places(arrows);
        vec![row, window]
    } else {
        vec![window.target(MetricTarget::Zero)]
    };
    metrics.push(circle_metric(graph, SIMULATOR).target(MetricTarget::Zero));
    metrics.extend(OTHER_ROOMS.iter().map(|room| circle_metric(graph, room)));
    metrics
}

/// How many modules the largest circle of a room has, 0 without a circle.
fn circle_metric(graph: &ImportGraph, room: &str) -> StyleMetric {
    let circles = graph.circles(room);
    let value = match graph.has_room(room) {
        true => MetricValue::Count(circles.first().map_or(0, Vec::len)),
        false => MetricValue::Nothing,
    };
    let shown: Vec<String> = circles.iter().map(|circle| circle.join(" ")).collect();
    let title = format!("{room}: modules in the largest circle");
    StyleMetric::new(format!("{room}_import_circle"), title, value)
        .detail(&shown.join("; "))
        .places(circles.iter().flat_map(|circle| graph.arrows_in(room, circle)).collect())
}

/// Figures without a target that say how large the code is that the others are about.
fn context(all: &CodeCounts) -> [StyleMetric; 3] {
    let mut lengths = all.function_lengths.clone();
    lengths.sort_unstable();
    let last = lengths.len().saturating_sub(1);
    let [median, p90, max] = [50, 90, 100].map(|percent| {
        lengths.get((lengths.len() * percent / 100).min(last)).copied().unwrap_or_default()
    });
    let unwraps = MetricValue::PerKloc(all.unwraps, all.lines);
    [
        StyleMetric::new("lines", "lines of product code", MetricValue::Count(all.lines))
            .detail(&format!("in {} files, beside {} lines of tests", all.files, all.test_lines)),
        StyleMetric::new("function_length", "lines of a function", MetricValue::Count(median))
            .detail(&format!("median of {}; p90 {p90}, max {max}", lengths.len())),
        StyleMetric::new("unwraps", "unwrap and expect", unwraps),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::source::parsed;

    fn passes(value: MetricValue, target: MetricTarget) -> Option<bool> {
        StyleMetric::new("k", "t", value).target(target).passes()
    }

    #[test]
    fn a_value_on_the_border_misses_and_nothing_measured_misses() {
        let [below, above] = [MetricTarget::Below(10.0), MetricTarget::Above(2.0)];
        assert_eq!(passes(MetricValue::Share(99, 1000), below), Some(true));
        assert_eq!(passes(MetricValue::Share(10, 100), below), Some(false));
        assert_eq!(passes(MetricValue::PerKloc(21, 10_000), above), Some(true));
        assert_eq!(passes(MetricValue::PerKloc(20, 10_000), above), Some(false));
        assert_eq!(passes(MetricValue::Count(0), MetricTarget::Zero), Some(true));
        assert_eq!(passes(MetricValue::Count(1), MetricTarget::Zero), Some(false));
        assert_eq!(passes(MetricValue::Nothing, MetricTarget::Zero), Some(false));
        assert_eq!(passes(MetricValue::Share(0, 0), below), Some(false));
        assert_eq!(StyleMetric::new("k", "t", MetricValue::Nothing).passes(), None);
    }

    fn value(tree: &SourceTree, key: &str) -> Option<f64> {
        let report = StyleReport::measure(tree);
        report.metrics.iter().find(|row| row.key == key).and_then(|row| row.value.number())
    }

    #[test]
    fn shares_are_of_product_code_and_parts_of_their_folders() {
        let files = vec![
            parsed("sim::poplin::planner::search", "// why\nstruct Tab;\n"),
            parsed("gui::tabs", "struct Tab;\nstruct TabStrip;\nfn f() {}\nfn g() {}\n"),
        ];
        let tree = SourceTree { files, unreadable: Vec::new() };
        assert_eq!(value(&tree, "comments_planner"), Some(50.0));
        assert_eq!(value(&tree, "comments_file"), None);
        assert_eq!(value(&tree, "comments_all").map(f64::round), Some(17.0));
        assert_eq!(value(&tree, "shared_type_names").map(f64::round), Some(67.0));
        assert_eq!(value(&tree, "single_word_types").map(f64::round), Some(67.0));
        assert_eq!(value(&tree, "sim_import_circle"), Some(0.0));
    }

    #[test]
    fn the_window_is_held_to_its_floors_once_it_has_them() {
        let mut files = vec![parsed("gui::views", "use super::shell::App;")];
        files.push(parsed("gui::shell", "use super::views; pub struct App;"));
        let mut tree = SourceTree { files, unreadable: Vec::new() };
        assert_eq!(value(&tree, "window_arrows_up"), None);
        assert_eq!(value(&tree, "gui_import_circle"), Some(2.0));
        tree.files.extend(["gui::model", "gui::widgets"].map(|name| parsed(name, "fn f() {}")));
        assert_eq!(value(&tree, "window_arrows_up"), Some(1.0));
    }

    #[test]
    fn the_table_says_what_is_missed_and_lists_places_only_when_asked() {
        let files = vec![parsed("sim::a", "fn f() -> Result<u8, String> { x }\n")];
        let tree = SourceTree { files, unreadable: vec!["x.rs: no".to_owned()] };
        let report = StyleReport::measure(&tree);
        assert!(!report.passes());
        assert!(report.text(false).contains("MISS") && !report.text(false).contains("sim/a.rs:1"));
        assert!(report.text(true).contains("sim/a.rs:1") && report.text(true).contains("x.rs: no"));
        assert_eq!(report.json()["pass"], false);
    }
}
