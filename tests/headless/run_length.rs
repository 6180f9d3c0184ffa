//! Shares do not depend on the length of a run: the same program with more device iterations has
//! the same shares in the same order, except for work once per call. Facts from the marks of a part
//! of a run equal those from all of its marks.

use crate::common;
use crate::common::{stderr, stdout, tilescope};
use proptest::prelude::*;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use tilescope_analysis::data_table::{DataTable, TableCell};
use tilescope_analysis::insights::{InsightFacts, InsightFinding, ranked};
use tilescope_analysis::summary::summary;
use tilescope_analysis::tables::all;
use tilescope_report::Report;
use tilescope_report::units::NumberFormat;
use tilescope_test_tiers::{long_cases, skipped_in_the_fast_tier, up_to};

/// Specs with runs of any length, sizes that divide nothing, and iterations of a short and of a
/// longer run: programs that fill a pipeline once per call have more.
const SPECS: [(&str, &str, u64, u64); 9] = [
    ("mnist_pipeline", "model.batch_size=7 gradient_accumulation=13", 3, 20),
    ("io_overlap", "", 20, 80),
    ("mnist_pipeline", "target.ipus=8 replication_factor=2 gradient_accumulation=9", 5, 25),
    ("mnist_pipeline", "", 10, 60),
    ("mnist_pipeline", "gradient_accumulation=11 pipeline_schedule=interleaved", 4, 30),
    ("mnist_pipeline", "gradient_accumulation=1 model.batch_size=9", 60, 300),
    ("mnist_pipeline", "model.training=false gradient_accumulation=1 model.batch_size=33", 60, 300),
    ("offload", "gradient_accumulation=5", 4, 20),
    ("prefetch", "model.batch_size=5", 30, 120),
];

/// The rounding of percentages.
const ROUNDING: f64 = 0.0011;

/// A report of a spec with this number of device iterations.
fn run_of(name: &str, sets: &str, iterations: u64) -> (Report, tempfile::TempDir) {
    let mut overrides = common::sets(sets);
    overrides.push(format!("options.device_iterations={iterations}"));
    let overrides: Vec<&str> = overrides.iter().map(String::as_str).collect();
    common::report(name, &overrides)
}

fn cycles(report: &Report) -> f64 {
    report.trace().expect("reads").expect("a run").range().length().as_f64()
}

/// Shares by their subject.
type Shares = BTreeMap<String, Vec<f64>>;

/// The percentages in each piece of a text that has words, by the text without its numbers, except
/// numbers in names and of IPUs.
fn shares_in<'a>(pieces: impl Iterator<Item = &'a str>) -> Shares {
    let mut found = Shares::new();
    for piece in pieces {
        // Bounds of predictions are no shares, and the balance of tiles concerns single steps.
        let is_other = piece.contains(" to +") || piece.contains("tile balance");
        if is_other || !piece.contains(" %") {
            continue;
        }
        let (mut shape, mut shares, mut number) = (String::new(), Vec::new(), String::new());
        let mut letters = piece.trim().chars().peekable();
        while let Some(letter) = letters.next() {
            let in_name = shape
                .ends_with(|last: char| last.is_alphabetic() || "_-/".contains(last))
                || shape.ends_with("IPU ");
            let digit = letter.is_ascii_digit() && (!in_name || !number.is_empty());
            if digit || (!number.is_empty() && ".,".contains(letter)) {
                number.push(letter);
                continue;
            }
            if !number.is_empty() {
                shape.push('#');
                if letter == ' ' && letters.peek() == Some(&'%') {
                    shares.push(number.replace(',', "").parse::<f64>().expect("a number") / 100.0);
                }
                number.clear();
            }
            // Columns are as wide as their numbers.
            if letter != ' ' || !shape.ends_with(' ') {
                shape.push(letter);
            }
        }
        if shape.contains(char::is_alphabetic) {
            found.entry(shape).or_default().extend(shares);
        }
    }
    found
}

/// The shares of a table by the text of their rows.
fn shares_of_table(path: &str, table: &DataTable, found: &mut Shares) {
    for row in &table.rows {
        let words = row.iter().filter(|cell| matches!(cell, TableCell::Text(_) | TableCell::Id(_)));
        let key = words.map(TableCell::text).collect::<Vec<_>>().join(" ");
        for (column, cell) in table.columns.iter().zip(row) {
            if let TableCell::Share(share) = cell {
                found.entry(format!("{path} {key} {}", column.title)).or_default().push(*share);
            }
        }
    }
}

/// The numbers of a JSON document that are shares according to their names.
fn shares_of_json(path: &str, value: &serde_json::Value, found: &mut Shares) {
    match value {
        serde_json::Value::Object(parts) => {
            for (name, part) in parts {
                shares_of_json(&format!("{path}.{name}"), part, found);
            }
        }
        serde_json::Value::Array(parts) => {
            for (at, part) in parts.iter().enumerate() {
                shares_of_json(&format!("{path}[{at}]"), part, found);
            }
        }
        serde_json::Value::Number(number) => {
            let names = ["share", "proportions", "balance", "utilisation"];
            if names.iter().any(|name| path.contains(name)) {
                found.entry(path.to_owned()).or_default().extend(number.as_f64());
            }
        }
        _ => {}
    }
}

/// The subject of a finding.
fn subject(finding: &InsightFinding) -> String {
    let place = &finding.place;
    let formula = &finding.formula[..finding.formula.len().min(30)];
    format!("{} {formula} {:?} {:?}", finding.rule, place.program, place.operation)
}

fn findings(report: &Report, most_marks: u64) -> Vec<InsightFinding> {
    let facts = InsightFacts::gather_of(report, NumberFormat::default(), most_marks);
    ranked(&facts.expect("reads"))
}

/// Checks that findings have the same subjects, gains and order, except among equals.
fn same_findings(of: &str, one: &[InsightFinding], other: &[InsightFinding], most: f64) {
    let gain = |finding: &InsightFinding| finding.gain.share().unwrap_or(0.0);
    let places: BTreeMap<String, usize> =
        other.iter().enumerate().map(|(at, finding)| (subject(finding), at)).collect();
    let names = |found: &[InsightFinding]| found.iter().map(subject).collect::<BTreeSet<String>>();
    assert_eq!(names(one), names(other), "{of}");
    for (at, finding) in one.iter().enumerate() {
        let name = subject(finding);
        let place = *places.get(&name).unwrap_or_else(|| panic!("{of}: {name} in one only"));
        let (own, known) = (gain(finding), gain(&other[place]));
        assert!((own - known).abs() <= most, "{of}: {name} gains {own} or {known}");
        for after in &one[at + 1..] {
            let behind = places[&subject(after)] > place;
            assert!(behind || own - gain(after) <= 2.0 * most, "{of}: the order of {name}");
        }
    }
    let words = |found: &[InsightFinding]| {
        let texts: Vec<String> = found.iter().map(|finding| finding.sentence.clone()).collect();
        shares_in(texts.iter().map(String::as_str))
    };
    same_shares(of, &words(one), &words(other), most + ROUNDING);
}

fn same_shares(of: &str, one: &Shares, other: &Shares, most: f64) {
    for (name, own) in one {
        let Some(known) = other.get(name) else { continue };
        // Of several rows with one name, those that round to zero may be left out.
        if own.len() != known.len() {
            let apart = (own.iter().sum::<f64>() - known.iter().sum::<f64>()).abs();
            let most = most * own.len().max(known.len()) as f64;
            assert!(apart <= most, "{of}: {name}: {own:?} or {known:?}, within {most}");
            continue;
        }
        for (own, known) in own.iter().zip(known) {
            assert!((own - known).abs() <= most, "{of}: {name}: {own} or {known}, within {most}");
        }
    }
    let common = one.keys().filter(|name| other.contains_key(*name)).count();
    assert!(common * 10 >= one.len() * 9, "{of}: {common} of {} are in both", one.len());
}

/// Every share in any answer about a report.
fn all_shares(report: &Report, directory: &Path, with_page: bool) -> Shares {
    let mut found = Shares::new();
    for table in all() {
        let rows = (table.read)(report).expect("reads");
        shares_of_table(&table.path(), &rows, &mut found);
    }
    let json = serde_json::to_value(summary(report).expect("reads")).expect("serialises");
    shares_of_json("summary", &json, &mut found);
    let path = directory.to_str().expect("a path");
    let run = |arguments: &[&str]| {
        let output = tilescope(arguments);
        assert!(output.status.success(), "{}", stderr(&output));
        stdout(&output)
    };
    for command in [&["summary", path][..], &["why", path, "--limit", "1000"]] {
        found.extend(shares_in(run(command).lines()));
    }
    if with_page {
        let file = directory.join("page.html");
        run(&["report", path, "-o", file.to_str().expect("a path")]);
        let text = std::fs::read_to_string(&file).expect("a page");
        let pieces = text.split('<').filter_map(|piece| piece.split_once('>'));
        found.extend(shares_in(pieces.map(|(_, words)| words)));
    }
    found
}

fn lengths_agree(name: &str, sets: &str, (few, many): (u64, u64), with_page: bool) {
    let of = format!("{name} {sets} {few} {many}");
    let (short, short_directory) = run_of(name, sets, few);
    let (long, long_directory) = run_of(name, sets, many);
    let each = (cycles(&long) - cycles(&short)) / (many - few) as f64;
    // Work once per call is a smaller share of a longer one, and all others are larger. Filling and
    // draining a pipeline counts twice: it takes the place of slots with another mix.
    let once = (cycles(&short) - each * few as f64).abs() / cycles(&short);
    assert!(once < 0.3, "{of}: {once} of the shorter run come once");
    let most = 2.0 * once + 1e-3;
    same_findings(&of, &findings(&short, u64::MAX), &findings(&long, 1 << 16), most);
    let shares = |report: &Report, directory: &tempfile::TempDir| {
        all_shares(report, directory.path(), with_page)
    };
    let (one, other) = (shares(&short, &short_directory), shares(&long, &long_directory));
    same_shares(&of, &one, &other, most + ROUNDING);
}

#[test]
fn shares_do_not_depend_on_the_length_of_a_run() {
    for (at, (name, sets, few, many)) in SPECS.into_iter().enumerate().take(up_to(3)) {
        lengths_agree(name, sets, (few, many), at == 0);
    }
}

#[test]
fn shares_do_not_depend_on_the_length_of_a_long_run() {
    if skipped_in_the_fast_tier() {
        return;
    }
    for (name, sets, few, many) in SPECS {
        lengths_agree(name, sets, (10 * few, 10 * many), true);
    }
    lengths_agree("mnist_pipeline", "", (10, 30_000), true);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(long_cases(60)))]
    #[test]
    fn facts_from_a_part_of_the_marks_equal_those_from_all(
        spec in 0..SPECS.len(),
        iterations in 20u64..70,
        most_marks in 400u64..2_000,
    ) {
        let (name, sets, ..) = SPECS[spec];
        let (report, _directory) = run_of(name, sets, iterations);
        let of = format!("{name} {sets} {iterations} {most_marks}");
        let whole = findings(&report, u64::MAX);
        same_findings(&of, &findings(&report, most_marks), &whole, 0.01);
    }
}
