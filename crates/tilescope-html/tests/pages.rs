//! Invariants of pages, over reports of all kinds.

#![allow(clippy::unwrap_used, reason = "a test may fail")]

use base64::Engine;
use scraper::{ElementRef, Html, Selector};
use serde_json::Value;
use sha2::{Digest, Sha256};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use tilescope_analysis::compare::{ComparedReports, ReportAlignment, WorkUnit, overview};
use tilescope_analysis::data_table::DataTable;
use tilescope_analysis::gates::named_figure;
use tilescope_analysis::series::{
    FigureChoice, ReportSeries, RunFigures, RunLength, SeriesBuilder, SeriesFigure,
    SeriesOperation, SeriesOptions, SeriesRun, UnreadReport,
};
use tilescope_analysis::summary::{RunWork, summary};
use tilescope_analysis::tables::named;
use tilescope_fixtures::ReportBuilder;
use tilescope_html::{ComparedPage, HtmlPageError, PageReport, SeriesPage, page, series_page};
use tilescope_report::units::NumberFormat;
use tilescope_report::{ProgramKind, Report};

const MAX_BYTES: usize = 3 << 20;
/// The same for the largest series, with 20 figures.
const MAX_SERIES_BYTES: usize = 6 << 20;

fn sample(name: &str) -> Report {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    Report::open(root.join("sample_reports").join(name)).unwrap()
}

/// A hand-made report, in a directory that lasts as long as the report.
fn made(builder: &ReportBuilder) -> (tempfile::TempDir, Report) {
    let directory = tempfile::tempdir().unwrap();
    let path: PathBuf = builder.write(directory.path()).unwrap();
    let report = Report::open(path).unwrap();
    (directory, report)
}

fn only_compiled() -> ReportBuilder {
    let mut report = ReportBuilder::new(2, 8);
    let work = report.compute("a/conv/Convolve", 500);
    report.root(ProgramKind::Sequence, "main", &[work]);
    report
}

/// Names that would end a script, a picture or an attribute, change the direction of writing, or
/// fill the page.
const HOSTILE: [&str; 5] = [
    "</script><script>alert(1)</script>",
    "<img src=x onerror=alert(1)>\"'><svg/onload=alert(1)>",
    "a\u{1b}[2Jb\u{0}c\u{202e}d",
    "{{ title }}{% for x in y %}<!--",
    "]]></style><style>*{display:none}",
];

fn hostile() -> ReportBuilder {
    let mut report = ReportBuilder::new(2, 8);
    let long = "x".repeat(10 << 20);
    let mut names: Vec<&str> = HOSTILE.to_vec();
    names.push(&long);
    let programs: Vec<_> = names.iter().map(|name| report.compute(name, 500)).collect();
    report.root(ProgramKind::Sequence, "</title></script>", &programs);
    let mut at = 0;
    for program in programs {
        report.run(program, at..at + 500);
        at += 500;
    }
    report
}

fn page_of(report: &Report, name: &str) -> String {
    page(PageReport { report, name }, None).unwrap()
}

fn all<'a>(document: &'a Html, selector: &str) -> Vec<ElementRef<'a>> {
    let selector = Selector::parse(selector).unwrap();
    document.select(&selector).collect()
}

fn text(element: ElementRef<'_>) -> String {
    element.text().collect()
}

fn the<'a>(document: &'a Html, selector: &str) -> ElementRef<'a> {
    let found = all(document, selector);
    assert_eq!(found.len(), 1, "{selector}");
    found[0]
}

/// Checks the invariants of every page.
fn check(name: &str, page: &str) -> Html {
    check_of(name, page, MAX_BYTES)
}

/// Checks the same, with another limit on the size.
fn check_of(name: &str, page: &str, most: usize) -> Html {
    assert!(page.len() < most, "{name}: {} bytes", page.len());
    let document = Html::parse_document(page);
    assert_eq!(document.errors.len(), 0, "{name}: {:?}", document.errors);
    let policy = the(&document, "meta[http-equiv=Content-Security-Policy]");
    let policy = policy.attr("content").unwrap();
    assert!(policy.starts_with("default-src 'none'; "), "{policy}");
    for element in ["script:not([type])", "style"] {
        let digest = Sha256::digest(text(the(&document, element)).as_bytes());
        let digest = base64::engine::general_purpose::STANDARD.encode(digest);
        assert!(policy.contains(&format!("'sha256-{digest}'")), "{name}: {element} is allowed");
    }
    assert!(!policy.contains("unsafe"), "{policy}");
    let mut ids = BTreeSet::new();
    for element in document.root_element().descendants().filter_map(ElementRef::wrap) {
        for (attribute, value) in element.value().attrs() {
            assert!(!attribute.starts_with("on") && attribute != "style", "{name}: {attribute}");
            match attribute {
                "href" | "src" | "xlink:href" => assert!(
                    value.starts_with('#') || value.starts_with("data:image/png;base64,"),
                    "{name}: {value:.80}"
                ),
                "id" => assert!(ids.insert(value.to_owned()), "{name}: twice {value}"),
                _ => {}
            }
        }
    }
    for link in all(&document, "a[href]") {
        assert!(ids.contains(&link.attr("href").unwrap()[1..]), "{name}: {}", link.html());
    }
    for picture in all(&document, "svg") {
        let hidden = picture.attr("aria-hidden") == Some("true");
        let named = picture.attr("role") == Some("img")
            && picture.attr("aria-label").is_some_and(|label| !label.is_empty());
        assert!(hidden || named, "{name}: a picture says what it shows");
    }
    for figure in all(&document, "figure") {
        let caption = Selector::parse("figcaption").unwrap();
        assert!(figure.select(&caption).any(|caption| !text(caption).is_empty()), "{name}");
    }
    for table in all(&document, "table") {
        let caption = Selector::parse("caption").unwrap();
        assert!(table.select(&caption).any(|caption| !text(caption).is_empty()), "{name}");
    }
    let readable = |letter: char| !letter.is_control() || letter == '\n';
    assert!(page.chars().all(readable), "{name}: no orders to a terminal");
    document
}

/// The texts of all rows of a table, including those in the script of the page.
fn rows(document: &Html, id: &str) -> Vec<Vec<String>> {
    let scripts: Value = serde_json::from_str(&text(the(document, "script#rows"))).unwrap();
    if let Some(rows) = scripts[id].as_array() {
        let cell = |cell: &Value| match cell {
            Value::Null => "—".to_owned(),
            Value::Number(number) => tilescope_report::units::grouped(number.as_u64().unwrap()),
            // The text of a shortened number comes before its value and all its digits.
            Value::Array(parts) => parts[0].as_str().unwrap().to_owned(),
            cell => cell.as_str().unwrap().to_owned(),
        };
        let row = |row: &Value| row.as_array().unwrap().iter().map(cell).collect();
        let all: Vec<Vec<String>> = rows.iter().map(row).collect();
        let first = shown_rows(document, id);
        assert_eq!(first, all[..first.len()], "{id}: the text of the page has the first ones");
        return all;
    }
    shown_rows(document, id)
}

fn shown_rows(document: &Html, id: &str) -> Vec<Vec<String>> {
    let cells = Selector::parse("th, td").unwrap();
    let lines = all(document, &format!("[data-table='{id}'] tbody tr"));
    lines.into_iter().map(|line| line.select(&cells).map(text).collect()).collect()
}

fn texts(table: &DataTable) -> Vec<Vec<String>> {
    let row =
        |row: &Vec<_>| row.iter().map(tilescope_analysis::data_table::TableCell::text).collect();
    table.rows.iter().map(row).collect()
}

/// Tables of views that a page shows unchanged.
const TABLES: [(&str, &str); 9] = [
    ("summary", "figures"),
    ("summary", "options"),
    ("execution-trace", "ipus"),
    ("execution-trace", "schedule"),
    ("execution-trace", "critical-path"),
    ("execution-trace", "slack"),
    ("limits", "operations"),
    ("liveness", "peak"),
    ("liveness", "always-live"),
];

#[test]
fn pages_agree_with_reports() {
    for name in ["mnist_pipeline", "matmul_chain", "too_large"] {
        let report = sample(name);
        let page = page_of(&report, name);
        let document = check(name, &page);
        let embedded: Value =
            serde_json::from_str(&text(the(&document, "script#summary-json"))).unwrap();
        assert_eq!(embedded, serde_json::to_value(summary(&report).unwrap()).unwrap(), "{name}");
        for (view, table) in TABLES {
            let id = format!("{view}/{table}");
            if all(&document, &format!("[data-table='{id}']")).is_empty() {
                continue;
            }
            let data = (named(view, Some(table)).unwrap().read)(&report).unwrap();
            assert_eq!(rows(&document, &id), texts(&data), "{name}: {id}");
        }
        assert_eq!(page, page_of(&sample(name), name), "{name}: the same bytes");
    }
}

#[test]
fn absent_parts_are_mentioned() {
    let (_directory, report) = made(&only_compiled());
    let document = check("compiled", &page_of(&report, "compiled"));
    for section in ["execution-trace", "critical-path", "limits"] {
        let note = the(&document, &format!("section#{section} .note"));
        assert!(text(note).contains("no executed steps"), "{section}");
        assert!(all(&document, &format!("section#{section} svg")).is_empty(), "{section}");
    }
    let sections = all(&document, "main > section");
    let empty = sections.iter().find(|section| text(**section).trim().lines().count() < 2);
    assert!(empty.is_none(), "every section has something to say");
}

#[test]
fn names_from_files_are_escaped() {
    let (_directory, report) = made(&hostile());
    let name = "</title><script>alert(2)</script>";
    let page = page_of(&report, name);
    let document = check("hostile", &page);
    assert_eq!(all(&document, "script").len(), 3, "rows, summary, and the one that runs");
    assert!(all(&document, "img").is_empty());
    assert_eq!(text(the(&document, "head > title")), "script>", "behind the last slash");
    assert!(text(the(&document, "header")).contains(name));
    for section in all(&document, "main > section") {
        let elements = section.descendants().filter_map(ElementRef::wrap);
        let names: BTreeSet<&str> = elements.map(|element| element.value().name()).collect();
        assert!(!names.contains("style") && !names.contains("script"), "{names:?}");
    }
    assert!(page.contains("&lt;img src"), "the name is there as text");
    assert!(!page.contains('\u{202e}'), "no order to write from the right");
}

#[test]
fn changes_come_first_and_agree_with_the_comparison() {
    let (source, target) = (sample("mnist_pipeline"), sample("matmul_chain"));
    let alignment = ReportAlignment::without_links(&source, &target).unwrap();
    let (numbers, unit) = (NumberFormat::default(), WorkUnit::default());
    let sides =
        ComparedReports { source: &source, target: &target, alignment: &alignment, numbers, unit };
    let gates = [("cycles > +2%".to_owned(), Some("it grew <b>".to_owned()))];
    let compared = ComparedPage { sides, source: "before", gates: &gates };
    let page = page(PageReport { report: &target, name: "after" }, Some(compared)).unwrap();
    let document = check("compared", &page);
    let first = all(&document, "main > section")[0];
    assert_eq!(first.attr("id"), Some("what-changed"));
    let found = overview(&sides).unwrap();
    assert!(text(first).contains(&found.verdict));
    for table in &found.tables {
        let mut shown = rows(&document, &format!("compare/{}", table.name()));
        let data = texts(&table.data().with_columns(|column| column < 5));
        // A bar may follow the figures.
        shown.iter_mut().for_each(|row| row.truncate(5));
        assert_eq!(shown, data, "{}", table.title);
    }
    assert_eq!(rows(&document, "compare/gates")[0][1], "✗ violated");
}

/// A series of reports under names.
fn series(reports: &[(&str, &Report)], choice: &FigureChoice) -> ReportSeries {
    let mut series = SeriesBuilder::default();
    for (name, report) in reports {
        series.add(RunFigures::read(name, report, choice).unwrap());
    }
    series.finish()
}

fn page_of_series(series: &ReportSeries, baseline: usize) -> String {
    let options = SeriesOptions { baseline, ..SeriesOptions::default() };
    series_page(SeriesPage { series, options, name: "nightly" }).unwrap()
}

/// The tooltips of the marks of the plots, plot by plot.
fn marks(document: &Html) -> Vec<Vec<String>> {
    let title = Selector::parse("circle > title, polygon > title").unwrap();
    let plots = all(document, "section#figures figure svg[role=img]");
    plots.into_iter().map(|plot| plot.select(&title).map(text).collect()).collect()
}

/// The tooltip of a run; runs without a value come first.
fn mark_of<'m>(marks: &'m [String], run: &str) -> &'m str {
    let start = format!("{run}: ");
    let mut of_run = marks.iter().filter(|mark| mark.starts_with(&start));
    let mark = of_run.next().unwrap_or_else(|| panic!("{run}: {marks:?}"));
    assert!(of_run.next().is_none(), "{run}: {marks:?}");
    mark
}

#[test]
fn pages_of_series_agree_with_the_series() {
    let reports = ["matmul_chain", "mnist_pipeline", "too_large"].map(sample);
    let [chain, pipeline, large] = &reports;
    let runs = [("v8", chain), ("v9", chain), ("v10", pipeline), ("v11", pipeline), ("v12", large)];
    let series = series(&runs, &FigureChoice::first());
    let page = page_of_series(&series, 1);
    let document = check("series", &page);
    let options = SeriesOptions { baseline: 1, ..SeriesOptions::default() };
    assert_eq!(rows(&document, "series/runs"), texts(&series.runs_table(options)));
    assert_eq!(rows(&document, "series/changes"), texts(&series.changes_table(options)));
    let operations = texts(&series.operations_table(options));
    let (total, each) = operations.split_last().unwrap();
    assert_eq!(rows(&document, "series/operations"), each);
    let cells = Selector::parse("th, td").unwrap();
    let foot = the(&document, "[data-table='series/operations'] tfoot tr");
    assert_eq!(foot.select(&cells).map(text).collect::<Vec<_>>(), *total);
    // A mark for each run in each plot, with its name and value.
    let marks = marks(&document);
    assert_eq!(marks.len(), series.figures.len());
    for (figure, marks) in series.figures.iter().zip(&marks) {
        assert_eq!(marks.len(), runs.len());
        for (run, (name, _)) in runs.iter().enumerate() {
            let mark = mark_of(marks, name);
            let value = series.value_of_run(figure, run, options.unit);
            let value = value.map_or("no value".to_owned(), |of| figure.figure.quantity().text(of));
            assert!(mark.starts_with(&format!("{name}: {value}")), "{mark}: {value}");
        }
        let has_baseline = series.value_of_run(figure, 1, options.unit).is_some();
        let mark = mark_of(marks, "v9");
        assert_eq!(mark.ends_with(", the baseline"), has_baseline, "{mark}");
    }
    let cycles = series.figures.iter().position(|of| of.figure.path() == "execution.total_cycles");
    let large = mark_of(&marks[cycles.unwrap()], "v12");
    assert!(large.contains("does not fit in memory"), "{large}");
    // Each change in words, the largest first.
    let words: Vec<String> =
        all(&document, "section#change-points .sentences li").into_iter().map(text).collect();
    assert_eq!(words.len(), series.changes_table(options).rows.len());
    let memory =
        series.figures.iter().find(|of| of.figure.path() == "memory.total_excluding_gaps").unwrap();
    let before = series.value_of_run(memory, 3, options.unit).unwrap();
    let after = series.value_of_run(memory, 4, options.unit).unwrap();
    let percent = (after - before) / before * 100.0;
    let rise = format!("memory.total_excluding_gaps rises by {percent:.2} % at v12, from ");
    assert!(words[0].starts_with(&rise), "{rise}: {}", words[0]);
    assert!(words.iter().any(|words| words.contains(" at v10, from ")), "{words:?}");
    // Changes are lines between runs, and the baseline is a horizontal line.
    assert!(page.contains("class=\"s-warning guide") && page.contains("class=\"s-text guide"));
    assert_eq!(page, page_of_series(&series, 1), "the same bytes");
}

#[test]
fn hostile_names_stay_text_in_series() {
    let (_directory, report) = made(&hostile());
    let long = "x".repeat(10 << 20);
    let mut runs: Vec<(&str, &Report)> = HOSTILE.iter().map(|name| (*name, &report)).collect();
    runs.push((&long, &report));
    let mut series = series(&runs, &FigureChoice::first());
    series.unread.push(UnreadReport { name: HOSTILE[0].to_owned(), problem: long.clone() });
    let name = "</title><script>alert(2)</script>";
    let of = SeriesPage { series: &series, options: SeriesOptions::default(), name };
    let page = series_page(of).unwrap();
    let document = check("hostile series", &page);
    assert_eq!(all(&document, "script").len(), 2, "rows, and the one that runs");
    assert!(all(&document, "img").is_empty());
    assert!(text(the(&document, "header")).contains(name));
    for section in all(&document, "main > section") {
        let elements = section.descendants().filter_map(ElementRef::wrap);
        let names: BTreeSet<&str> = elements.map(|element| element.value().name()).collect();
        assert!(!names.contains("style") && !names.contains("script"), "{names:?}");
    }
    assert!(page.contains("&lt;img src") && !page.contains('\u{202e}'));
}

/// A series of `runs` runs, with figures that go up and down, and once up for good.
fn large_series(runs: usize, paths: &[&str], operations: usize) -> ReportSeries {
    let value = |run: usize, at: usize| {
        let wave = (run * 7919 + at * 104_729) % 1000;
        (1_000_000 + 100 * wave + if run >= runs / 2 { 400_000 } else { 0 }) as u64
    };
    let work = RunWork { runs: 1, updates: None, samples: Some(7) };
    let run = |at: usize| SeriesRun {
        name: format!("nightly/2026-11-25/build-{at}/training"),
        path: PathBuf::from("profile.pop"),
        target: "mk2 x 4".to_owned(),
        work,
        not_executed: None,
    };
    let figure = |(at, path): (usize, &&str)| SeriesFigure {
        figure: named_figure(path).unwrap(),
        values: (0..runs).map(|run| Some(value(run, at).into())).collect(),
        expected: Vec::new(),
    };
    let operation = |at: usize| SeriesOperation {
        name: format!("encoder/layer{at}/attention/self/query/MatMul"),
        kind: "matmul".to_owned(),
        cycles: (0..runs).map(|run| Some(value(run, at))).collect(),
    };
    ReportSeries {
        runs: (0..runs).map(run).collect(),
        unread: Vec::new(),
        figures: paths.iter().enumerate().map(figure).collect(),
        operations: (0..operations).map(operation).collect(),
        lengths: vec![Some(RunLength { cycles: 1_000_000_000, lanes: 4 }); runs],
    }
}

/// Twenty figures, most of which grow with the work of a run.
fn paths() -> Vec<String> {
    let ipus = (0..18).map(|ipu| format!("execution.ipus.{ipu}.steps"));
    ["execution.total_cycles".to_owned(), "memory.always_live".to_owned()]
        .into_iter()
        .chain(ipus)
        .collect()
}

#[test]
fn pages_of_long_series_are_bounded() {
    let paths = paths();
    let paths: Vec<&str> = paths.iter().map(String::as_str).collect();
    let series = large_series(1000, &paths, 500);
    let page = page_of_series(&series, 0);
    let document = check_of("1,000 runs", &page, MAX_SERIES_BYTES);
    let marked = marks(&document);
    assert_eq!(marked.len(), 20);
    assert!(marked.iter().all(|marks| marks.len() == 1000), "a mark for each run");
    assert_eq!(rows(&document, "series/runs").len(), 1000);
    assert!(all(&document, "[data-table='series/operations-by-run']").is_empty());
    assert!(page.contains("`tilescope series --json` has them"));
    // The longest series: lines are complete, and only points that the text mentions are marked.
    let page = page_of_series(&large_series(10_000, &paths, 10), 0);
    let document = check_of("10,000 runs", &page, MAX_SERIES_BYTES);
    assert!(marks(&document).iter().all(|marks| (4..1000).contains(&marks.len())));
    // Nothing is left out silently.
    let many: Vec<String> = (0..41).map(|ipu| format!("execution.ipus.{ipu}.steps")).collect();
    let many: Vec<&str> = many.iter().map(String::as_str).collect();
    let series = large_series(3, &many, 1);
    let of = SeriesPage { series: &series, options: SeriesOptions::default(), name: "" };
    let refused = series_page(of);
    assert!(matches!(refused, Err(HtmlPageError::TooManyFigures { count: 41, most: 40 })));
}
