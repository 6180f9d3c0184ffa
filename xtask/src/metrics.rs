//! The metrics with their targets and ceilings, as a table and as JSON.

use std::fmt::Write;

use serde_json::{Value, json};

use crate::count::CodeCounts;
use crate::imports::ImportGraph;
use crate::names::{shared_names, type_definitions, words};
use crate::source::{ItemKind, SourceTree};

/// Parts with code that is not obvious, so that comments must give reasons. Folders are named
/// without `src`, `crates` and the prefix of crates: `sim/planner` is `src/sim/planner` of the old
/// layout and `crates/tilescope-sim/src/planner` of the workspace.
const HARD_PARTS: [(&str, &[&str]); 6] = [
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
    ("compile", &["sim/compile"]),
    ("run", &["sim/run"]),
    ("pixels", &["gui/paint", "gui/widgets", "gui/views/execution_trace"]),
    ("file", &["report/reader", "report/writer", "report/trace"]),
];

/// The crate, or folder of the old layout, with floors.
const WINDOW: &str = "gui";
/// The crate, or folder of the old layout, whose modules must not import each other in circles.
const SIMULATOR: &str = "sim";
/// Crates and folders whose circles are shown without a target.
const OTHER_ROOMS: [&str; 3] = ["report", "analysis", "cli"];

/// Targets of the metrics by their keys, and ceilings of those that miss their target today. A
/// ceiling is the worst value that `--check` lets pass, in the unit of the metric: lower it when the
/// value gets better, remove it when the target is met.
const LIMITS: [MetricLimit; 19] = [
    MetricLimit::new("shared_type_names", MetricTarget::Below(10.0)),
    MetricLimit::new("single_word_types", MetricTarget::Below(35.0)),
    MetricLimit::new("comments_planner", MetricTarget::Above(2.0)),
    MetricLimit::new("comments_lowering", MetricTarget::Above(2.0)),
    MetricLimit::new("comments_compile", MetricTarget::Above(2.0)),
    MetricLimit::new("comments_run", MetricTarget::Above(2.0)),
    MetricLimit::new("comments_pixels", MetricTarget::Above(2.0)),
    MetricLimit::new("comments_file", MetricTarget::Above(2.0)),
    MetricLimit::new("string_results", MetricTarget::Below(0.2)),
    MetricLimit::new("short_docs", MetricTarget::Below(4.0)),
    MetricLimit::new("assertions", MetricTarget::Above(0.7)).ceiling(0.45),
    MetricLimit::new("question_docs", MetricTarget::AtMost(1.5)),
    MetricLimit::new("noun_closures", MetricTarget::AtMost(2.0)),
    MetricLimit::new("tuple_lets", MetricTarget::AtMost(0.5)),
    MetricLimit::new("bool_matches", MetricTarget::AtMost(0.0)),
    MetricLimit::new("bool_thens", MetricTarget::AtMost(0.5)),
    MetricLimit::new("dialect_phrases", MetricTarget::AtMost(0.0)),
    MetricLimit::new("window_arrows_up", MetricTarget::AtMost(0.0)),
    MetricLimit::new("sim_import_circle", MetricTarget::AtMost(0.0)),
];

/// A figure and its parts.
#[derive(Clone, Copy)]
enum MetricValue {
    /// Part and whole, shown in percent.
    Share(usize, usize),
    /// Count and lines of code, shown as count per 1,000 lines.
    PerKloc(usize, usize),
    Count(usize),
    /// The measured part does not exist. It fails every target, so that renaming a folder cannot
    /// hide its row.
    Nothing,
}

impl MetricValue {
    #[expect(clippy::cast_precision_loss, reason = "counts of code are far below 2^52")]
    fn number(self) -> Option<f64> {
        match self {
            Self::Share(_, 0) | Self::PerKloc(_, 0) => None,
            Self::Share(part, whole) => Some(part as f64 / whole as f64 * 100.0),
            Self::PerKloc(count, lines) => Some(count as f64 / lines as f64 * 1000.0),
            Self::Count(count) => Some(count as f64),
            Self::Nothing => None,
        }
    }

    /// A number in the unit of this value, with this number of decimals.
    fn format(self, number: f64, decimals: usize) -> String {
        match self {
            Self::Share(..) => format!("{number:.decimals$} %"),
            Self::PerKloc(..) => format!("{number:.decimals$} /kloc"),
            Self::Count(_) | Self::Nothing => format!("{number:.0}"),
        }
    }
}

/// The values that a metric aims for.
#[derive(Clone, Copy)]
enum MetricTarget {
    Below(f64),
    AtMost(f64),
    Above(f64),
}

impl MetricTarget {
    fn is_met(self, number: f64) -> bool {
        match self {
            Self::Below(limit) => number < limit,
            Self::AtMost(limit) => number <= limit,
            Self::Above(limit) => number > limit,
        }
    }
}

/// The target and the ceiling of one metric.
#[derive(Clone, Copy)]
struct MetricLimit {
    key: &'static str,
    target: MetricTarget,
    /// The worst value that passes while the target is missed; none if the target must be met.
    ceiling: Option<f64>,
}

impl MetricLimit {
    const fn new(key: &'static str, target: MetricTarget) -> Self {
        Self { key, target, ceiling: None }
    }

    const fn ceiling(self, worst: f64) -> Self {
        Self { ceiling: Some(worst), ..self }
    }

    fn judge(&self, number: f64) -> Verdict {
        if self.target.is_met(number) {
            return Verdict::Met;
        }
        let holds = match (self.target, self.ceiling) {
            (_, None) => false,
            (MetricTarget::Above(_), Some(worst)) => number >= worst,
            (MetricTarget::Below(_) | MetricTarget::AtMost(_), Some(worst)) => number <= worst,
        };
        if holds { Verdict::Missed } else { Verdict::Worse }
    }
}

/// A value compared with its target and ceiling.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Verdict {
    Met,
    /// The target is missed and the ceiling holds.
    Missed,
    /// Worse than the ceiling, or than the target if there is no ceiling.
    Worse,
}

/// One row of the table.
struct StyleMetric {
    /// Its name in JSON.
    key: String,
    title: String,
    value: MetricValue,
    limit: Option<MetricLimit>,
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
        let key = key.into();
        let limit = LIMITS.iter().find(|limit| limit.key == key).copied();
        Self { key, title: title.into(), value, limit, detail, places: Vec::new() }
    }

    fn detail(mut self, detail: &str) -> Self {
        self.detail.push_str(detail);
        self
    }

    fn places(self, places: Vec<String>) -> Self {
        Self { places, ..self }
    }

    /// None without a target.
    fn verdict(&self) -> Option<Verdict> {
        let limit = self.limit?;
        match self.value.number() {
            Some(number) => Some(limit.judge(number)),
            None => Some(Verdict::Worse),
        }
    }

    /// Value, target, ceiling and verdict as the table shows them.
    fn shown(&self) -> [String; 4] {
        let decimals = if matches!(self.value, MetricValue::PerKloc(..)) { 2 } else { 1 };
        let value = match self.value.number() {
            Some(number) => self.value.format(number, decimals),
            None => "-".to_owned(),
        };
        let Some(limit) = self.limit else { return [value, "".into(), "".into(), "".into()] };
        let target = match limit.target {
            MetricTarget::AtMost(0.0) => "0".to_owned(),
            MetricTarget::AtMost(number) => format!("<= {}", self.value.format(number, 1)),
            MetricTarget::Below(number) => format!("< {}", self.value.format(number, 1)),
            MetricTarget::Above(number) => format!("> {}", self.value.format(number, 1)),
        };
        let ceiling = match limit.ceiling {
            Some(worst) => self.value.format(worst, decimals),
            None => String::new(),
        };
        let verdict = match self.verdict() {
            Some(Verdict::Met) => "pass",
            Some(Verdict::Missed) => "miss",
            Some(Verdict::Worse) => "WORSE",
            None => "",
        };
        [value, target, ceiling, verdict.to_owned()]
    }

    fn json(&self) -> Value {
        let [shown, target, ..] = self.shown();
        json!({
            "key": self.key, "title": self.title, "value": self.value.number(), "shown": shown,
            "target": self.limit.map(|_| target),
            "ceiling": self.limit.and_then(|limit| limit.ceiling),
            "met": self.verdict().map(|verdict| verdict == Verdict::Met),
            "pass": self.verdict().map(|verdict| verdict != Verdict::Worse),
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
            metrics.push(comment_metric(part, counts));
        }
        metrics.extend(code_metrics(&all));
        metrics.extend(dialect_metrics(&all));
        metrics.extend(import_metrics(&ImportGraph::of_files(&tree.files)));
        metrics.extend(context(&all));
        Self { metrics, unreadable: tree.unreadable.clone() }
    }

    /// True if every file was read and every metric meets its target or holds its ceiling.
    pub(crate) fn passes(&self) -> bool {
        let is_worse = |row: &StyleMetric| row.verdict() == Some(Verdict::Worse);
        self.unreadable.is_empty() && !self.metrics.iter().any(is_worse)
    }

    pub(crate) fn json(&self) -> Value {
        let metrics: Vec<Value> = self.metrics.iter().map(StyleMetric::json).collect();
        json!({ "pass": self.passes(), "metrics": metrics, "unreadable": self.unreadable })
    }

    /// The table; with `list`, the places behind each row below it.
    pub(crate) fn text(&self, list: bool) -> String {
        let head = ["metric", "value", "target", "ceiling", "", "counted"];
        let mut rows = vec![head.map(str::to_owned)];
        for metric in &self.metrics {
            let [value, target, ceiling, verdict] = metric.shown();
            let title = metric.title.clone();
            rows.push([title, value, target, ceiling, verdict, metric.detail.clone()]);
        }
        let mut widths = [0; 6];
        for row in &rows {
            for (width, cell) in widths.iter_mut().zip(row) {
                *width = (*width).max(cell.chars().count());
            }
        }
        let [title, value, target, ceiling, verdict, _] = widths;
        let mut text = String::new();
        for [a, b, c, d, e, f] in &rows {
            let line =
                format!("{a:title$}  {b:>value$}  {c:>target$}  {d:>ceiling$}  {e:verdict$}  {f}");
            text.push_str(line.trim_end());
            text.push('\n');
        }
        for row in self.metrics.iter().filter(|row| list && !row.places.is_empty()) {
            // Writing to a string cannot fail.
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
    // Structs and enums alone, for comparison with figures of November 2026.
    let iter_data = || definitions.iter().filter(|found| found.kind == ItemKind::StructOrEnum);
    let data_sharing = sharing(&shared_names(iter_data()));
    let data_total = iter_data().count();
    let single: Vec<String> = definitions
        .iter()
        .filter(|definition| words(&definition.name) <= 1)
        .map(|definition| format!("{}  {}", definition.place, definition.name))
        .collect();
    let share = MetricValue::Share(sharing(&shared), definitions.len());
    let single_share = MetricValue::Share(single.len(), definitions.len());
    [
        StyleMetric::new("shared_type_names", "type definitions sharing their name", share)
            .detail(&format!("; structs and enums alone {data_sharing} of {data_total}"))
            .places(
                shared
                    .iter()
                    .map(|(name, places)| {
                        format!("{name} x{}: {}", places.len(), places.join(", "))
                    })
                    .collect(),
            ),
        StyleMetric::new("single_word_types", "type names of a single word", single_share)
            .places(single),
    ]
}

fn comment_metric(part: &str, counts: &CodeCounts) -> StyleMetric {
    let (value, detail) = match counts.lines {
        0 => (MetricValue::Nothing, "no such folder: HARD_PARTS in xtask names another"),
        lines => (MetricValue::Share(counts.comments, lines), " lines"),
    };
    let key = format!("comments_{part}");
    let title = format!("inline comments, {part}");
    StyleMetric::new(key, title, value).detail(detail)
}

fn code_metrics(all: &CodeCounts) -> [StyleMetric; 4] {
    let short = MetricValue::Share(all.short_docs.len(), all.doc_blocks);
    let string_results = MetricValue::PerKloc(all.string_results.len(), all.lines);
    let assertions = MetricValue::PerKloc(all.assertions, all.lines);
    let undocumented = MetricValue::Count(all.undocumented.len());
    [
        StyleMetric::new("string_results", "Result<_, String>", string_results)
            .places(all.string_results.clone()),
        StyleMetric::new("short_docs", "doc comments of three words or fewer", short)
            .places(all.short_docs.clone()),
        StyleMetric::new("assertions", "assertions in product code", assertions),
        StyleMetric::new("undocumented_public", "public items without docs", undocumented)
            .detail(&format!("of {} public items", all.public_items))
            .places(all.undocumented.clone()),
    ]
}

fn dialect_metrics(all: &CodeCounts) -> [StyleMetric; 6] {
    let found = &all.dialect;
    let questions = MetricValue::Share(found.question_docs.len(), found.docs);
    let closures = MetricValue::PerKloc(found.noun_closures.len(), all.lines);
    let tuples = MetricValue::PerKloc(found.tuple_lets.len(), all.lines);
    let matches = MetricValue::Count(found.bool_matches.len());
    let thens = MetricValue::PerKloc(found.bool_thens.len(), all.lines);
    let phrases = MetricValue::Count(found.phrases.len());
    [
        StyleMetric::new("question_docs", "doc comments from What, Which, Whether", questions)
            .places(found.question_docs.clone()),
        StyleMetric::new("noun_closures", "closures bound to nouns", closures)
            .places(found.noun_closures.clone()),
        StyleMetric::new("tuple_lets", "let (a, b) = (x, y)", tuples)
            .places(found.tuple_lets.clone()),
        StyleMetric::new("bool_matches", "matches on a boolean", matches)
            .places(found.bool_matches.clone()),
        StyleMetric::new("bool_thens", ".then(|| …) and .then_some(…)", thens)
            .places(found.bool_thens.clone()),
        StyleMetric::new("dialect_phrases", "odd phrases in comments and strings", phrases)
            .places(found.phrases.clone()),
    ]
}

fn import_metrics(graph: &ImportGraph) -> Vec<StyleMetric> {
    let arrows = graph.arrows_up(WINDOW);
    let value = if graph.has_floors(WINDOW) {
        MetricValue::Count(arrows.len())
    } else {
        MetricValue::Nothing
    };
    let title = format!("{WINDOW}: arrows up between floors");
    let floors = StyleMetric::new("window_arrows_up", title, value)
        .detail("pairs of a module and a folder it may not import")
        .places(arrows);
    let mut metrics = vec![floors, circle_metric(graph, WINDOW), circle_metric(graph, SIMULATOR)];
    metrics.extend(OTHER_ROOMS.iter().map(|room| circle_metric(graph, room)));
    metrics
}

/// The number of modules in the largest circle of a room; 0 without a circle.
fn circle_metric(graph: &ImportGraph, room: &str) -> StyleMetric {
    let circles = graph.circles(room);
    let value = if graph.has_room(room) {
        MetricValue::Count(circles.first().map_or(0, Vec::len))
    } else {
        MetricValue::Nothing
    };
    let shown: Vec<String> = circles.iter().map(|circle| circle.join(" ")).collect();
    let title = format!("{room}: modules in the largest circle");
    StyleMetric::new(format!("{room}_import_circle"), title, value)
        .detail(&shown.join("; "))
        .places(circles.iter().flat_map(|circle| graph.arrows_in(room, circle)).collect())
}

/// Figures without a target that show the size of the measured code.
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

    fn judge(value: MetricValue, limit: MetricLimit) -> Option<Verdict> {
        let metric = StyleMetric { limit: Some(limit), ..StyleMetric::new("k", "t", value) };
        metric.verdict()
    }

    #[test]
    fn values_on_the_border_of_below_and_above_miss() {
        let below = MetricLimit::new("k", MetricTarget::Below(10.0));
        let above = MetricLimit::new("k", MetricTarget::Above(2.0));
        let zero = MetricLimit::new("k", MetricTarget::AtMost(0.0));
        assert_eq!(judge(MetricValue::Share(99, 1000), below), Some(Verdict::Met));
        assert_eq!(judge(MetricValue::Share(10, 100), below), Some(Verdict::Worse));
        assert_eq!(judge(MetricValue::PerKloc(21, 10_000), above), Some(Verdict::Met));
        assert_eq!(judge(MetricValue::PerKloc(20, 10_000), above), Some(Verdict::Worse));
        assert_eq!(judge(MetricValue::Count(0), zero), Some(Verdict::Met));
        assert_eq!(judge(MetricValue::Count(1), zero), Some(Verdict::Worse));
    }

    #[test]
    fn values_between_target_and_ceiling_pass_and_worse_ones_do_not() {
        let few = MetricLimit::new("k", MetricTarget::AtMost(2.0)).ceiling(5.0);
        let values = [2, 3, 5, 6].map(|count| judge(MetricValue::Count(count), few));
        let [met, missed, worse] =
            [Verdict::Met, Verdict::Missed, Verdict::Worse].map(Option::Some);
        assert_eq!(values, [met, missed, missed, worse]);
        let many = MetricLimit::new("k", MetricTarget::Above(5.0)).ceiling(3.0);
        let values = [6, 5, 3, 2].map(|count| judge(MetricValue::Count(count), many));
        assert_eq!(values, [met, missed, missed, worse]);
    }

    #[test]
    fn nothing_measured_is_worse_than_any_ceiling() {
        let limit = MetricLimit::new("k", MetricTarget::Below(10.0)).ceiling(90.0);
        assert_eq!(judge(MetricValue::Nothing, limit), Some(Verdict::Worse));
        assert_eq!(judge(MetricValue::Share(0, 0), limit), Some(Verdict::Worse));
        assert_eq!(StyleMetric::new("k", "t", MetricValue::Nothing).verdict(), None);
    }

    #[test]
    fn every_limit_is_of_a_metric_and_its_ceiling_misses_the_target() {
        let report = StyleReport::measure(&SourceTree::default());
        for limit in LIMITS {
            assert!(report.metrics.iter().any(|row| row.key == limit.key), "{}", limit.key);
            assert!(
                !limit.ceiling.is_some_and(|worst| limit.target.is_met(worst)),
                "{}",
                limit.key
            );
        }
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
    fn a_window_without_floors_does_not_pass() {
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
        assert!(report.text(false).contains("WORSE") && !report.text(false).contains("sim/a.rs:1"));
        assert!(report.text(true).contains("sim/a.rs:1") && report.text(true).contains("x.rs: no"));
        assert_eq!(report.json()["pass"], false);
    }
}
