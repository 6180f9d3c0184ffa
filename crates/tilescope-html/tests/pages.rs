//! Laws of pages, over reports of all kinds.

#![allow(clippy::unwrap_used, reason = "a test may fail")]

use base64::Engine;
use scraper::{ElementRef, Html, Selector};
use serde_json::Value;
use sha2::{Digest, Sha256};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use tilescope_analysis::compare::{ComparedReports, ReportAlignment, WorkUnit, overview};
use tilescope_analysis::data_table::DataTable;
use tilescope_analysis::summary::summary;
use tilescope_analysis::tables::named;
use tilescope_fixtures::ReportBuilder;
use tilescope_html::{ComparedPage, PageReport, page};
use tilescope_report::units::NumberFormat;
use tilescope_report::{ProgramKind, Report};

const MAX_BYTES: usize = 3 << 20;

fn sample(name: &str) -> Report {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    Report::open(root.join("sample_reports").join(name)).unwrap()
}

/// A report made by hand, in a directory that lasts as long as it does.
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

/// Names that would end a script, a picture or an attribute, turn the direction of writing, or fill
/// the page.
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

/// What holds of every page.
fn check(name: &str, page: &str) -> Html {
    assert!(page.len() < MAX_BYTES, "{name}: {} bytes", page.len());
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

/// The texts of all rows of a table, those that the script of the page has among them.
fn rows(document: &Html, id: &str) -> Vec<Vec<String>> {
    let scripts: Value = serde_json::from_str(&text(the(document, "script#rows"))).unwrap();
    if let Some(rows) = scripts[id].as_array() {
        let cell = |cell: &Value| match cell {
            Value::Null => "—".to_owned(),
            Value::Number(number) => tilescope_report::units::grouped(number.as_u64().unwrap()),
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

/// Tables of views that a page shows as they are.
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
fn pages_say_what_reports_say() {
    for name in ["mnist_pipeline", "matmul_chain", "too_large"] {
        let report = sample(name);
        let page = page_of(&report, name);
        let document = check(name, &page);
        let told: Value =
            serde_json::from_str(&text(the(&document, "script#summary-json"))).unwrap();
        assert_eq!(told, serde_json::to_value(summary(&report).unwrap()).unwrap(), "{name}");
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
fn parts_that_are_absent_are_said_to_be() {
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
fn names_of_strangers_stay_text() {
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
fn what_changed_comes_first_and_is_what_the_comparison_says() {
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
        // A bar may stand behind the figures.
        shown.iter_mut().for_each(|row| row.truncate(5));
        assert_eq!(shown, data, "{}", table.title);
    }
    assert_eq!(rows(&document, "compare/gates")[0][1], "✗ violated");
}
