//! No finding contradicts a table of its report: every share, number of cycles and number of bytes
//! in a sentence is computed again from the tables that users query.

mod forms;

use crate::common;
use forms::{CITED, CitedSentence, PARTS, RULES_OF_FULLEST, USE_OF_FULLEST};
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use tilescope_analysis::data_table::TableCell;
use tilescope_analysis::insights::{InsightFinding, InsightVerdict, RULES, insights};
use tilescope_analysis::sql::{RowSink, SqlQuestion, SqlValue, run};
use tilescope_analysis::tables::named;
use tilescope_report::units::NumberFormat;
use tilescope_report::{ProgramKind, Report, StreamEndpoint};
use tilescope_sim::specification::BUNDLED_SPECS;
use tilescope_test_tiers::slow_tests;

/// The parts of a sentence at the names of a form, if the sentence begins with the form.
fn parts<'s>(sentence: &'s str, form: &str) -> Option<BTreeMap<String, &'s str>> {
    let mut found = BTreeMap::new();
    let (literal, mut form) = form.split_once('{').unwrap_or((form, ""));
    let mut rest = sentence.strip_prefix(literal)?;
    while let Some((name, after)) = form.split_once('}') {
        let (literal, next) = after.split_once('{').unwrap_or((after, ""));
        let end = match literal {
            "" => rest.trim_end_matches('.').len(),
            _ => rest.find(literal)?,
        };
        found.insert(name.to_owned(), &rest[..end]);
        rest = &rest[end + literal.len()..];
        form = next;
    }
    Some(found)
}

/// A figure as a number: `12.3 %` is 0.123, `1.50 KiB` is 1,536.
fn number(text: &str) -> Option<f64> {
    let (figure, unit) = text.split_once(' ').unwrap_or((text, ""));
    let figure: f64 = figure.replace(',', "").parse().ok()?;
    let unit = match unit {
        "" | "B" => 1.0,
        "%" => 0.01,
        "KiB" => f64::from(1u32 << 10),
        "MiB" => f64::from(1u32 << 20),
        "GiB" => f64::from(1u32 << 30),
        _ => return None,
    };
    Some(figure * unit)
}

/// The first value of an answer.
struct FirstValue(Option<SqlValue>);

impl RowSink for FirstValue {
    fn columns(&mut self, _: &[String]) -> std::io::Result<()> {
        Ok(())
    }

    fn row(&mut self, values: &[SqlValue]) -> std::io::Result<()> {
        if self.0.is_none() {
            self.0 = values.first().cloned();
        }
        Ok(())
    }
}

/// The findings of a report, and what they contradict.
struct CitedReport<'r> {
    report: &'r Arc<Report>,
    name: &'r str,
    contradictions: Vec<String>,
}

impl CitedReport<'_> {
    fn ask(&self, sql: &str) -> SqlValue {
        let mut first = FirstValue(None);
        let answered = run(self.report, &SqlQuestion::new(sql), &mut first);
        assert!(answered.is_ok(), "{}: {answered:?}: {sql}", self.name);
        first.0.unwrap_or(SqlValue::Null)
    }

    /// Compares the figures of a finding with the answers of a form's queries. Returns the number
    /// of shares that the form names, if the sentence has this form.
    fn compare(&mut self, finding: &InsightFinding, form: &CitedSentence) -> Option<usize> {
        let parts = parts(&finding.sentence, form.form)?;
        for (name, sql) in form.figures {
            let cited = parts[*name];
            let answer = self.ask(&query(sql, &parts, finding));
            let agrees = match &answer {
                SqlValue::Text(text) => text == cited,
                SqlValue::Integer(value) => shows(cited, *value as f64),
                SqlValue::Real(value) => shows(cited, *value),
                SqlValue::Null | SqlValue::Blob(_) => false,
            };
            if !agrees {
                let line = format!("{}: {name} is {answer:?}: {}", self.name, finding.sentence);
                self.contradictions.push(line);
            }
        }
        Some(parts.values().filter(|part| part.ends_with('%')).count())
    }

    fn check(&mut self, finding: &InsightFinding) {
        let own = CITED.iter().filter(|form| form.rule == finding.rule);
        let of_fullest = RULES_OF_FULLEST.contains(&finding.rule).then_some(&USE_OF_FULLEST);
        let found: Vec<usize> =
            own.chain(of_fullest).filter_map(|form| self.compare(finding, form)).collect();
        let shares = finding.sentence.matches('%').count();
        if finding.rule == "micro_batch" {
            return self.check_fixed_cost(finding);
        }
        if found.is_empty() || found.iter().sum::<usize>() < shares {
            self.contradictions
                .push(format!("nothing checks {}: {}", finding.rule, finding.sentence));
        }
    }

    /// Compares the share of handshakes and syncs with the tables of the critical path.
    fn check_fixed_cost(&mut self, finding: &InsightFinding) {
        let path = self.report.critical_path().expect("reads").expect("a run");
        let nodes = self.report.executed_program_nodes().expect("reads");
        let mut fixed = 0.0;
        for of in path.programs().expect("reads").iter() {
            let node = of.program.and_then(|program| nodes.get(program));
            let is_of_host = node.is_some_and(|node| node.stream == StreamEndpoint::Host);
            if is_fixed_cost(of.kind(), is_of_host) {
                fixed += of.cycles.as_f64();
            }
        }
        let share = fixed / path.range().length().as_f64();
        let cited = finding.sentence.split_once(" of the critical path").expect("a share").0;
        if !shows(cited, share) {
            self.contradictions.push(format!("{}: {share}: {}", self.name, finding.sentence));
        }
    }

    /// Compares the opening sentence with the table of waits.
    fn check_lead(&mut self, lead: &str) {
        let Some(parts) = parts(lead, "IPU {ipu} sets the pace: {share} of the critical path")
        else {
            return;
        };
        let slack = named("execution-trace", Some("slack")).expect("a table");
        let rows = (slack.read)(self.report).expect("reads");
        let column = |title: &str| {
            let at = rows.columns.iter().position(|column| column.title == title);
            at.unwrap_or_else(|| panic!("no column {title}"))
        };
        let (ipus, shares) = (column("IPU"), column("Share"));
        let mut share = 0.0;
        for row in &rows.rows {
            let (TableCell::Id(ipu), TableCell::Share(own)) = (&row[ipus], &row[shares]) else {
                panic!("{row:?}");
            };
            if ipu.to_string() == parts["ipu"] {
                share += own;
            }
        }
        if !shows(parts["share"], share) {
            self.contradictions.push(format!("{}: {share}: {lead}", self.name));
        }
    }
}

/// True for steps whose cycles do not depend on the samples: syncs, and handshakes with the host.
fn is_fixed_cost(kind: ProgramKind, is_of_host: bool) -> bool {
    match kind {
        ProgramKind::Sync => true,
        ProgramKind::StreamCopyBegin | ProgramKind::StreamCopyEnd => is_of_host,
        _ => false,
    }
}

/// True if a figure of a sentence is a value, rounded.
fn shows(cited: &str, value: f64) -> bool {
    let Some(shown) = number(cited) else { return false };
    if cited.ends_with('%') {
        // Shares of rounded bytes deviate more.
        return (shown - value).abs() <= 0.00051 + 0.005 * value.abs();
    }
    let is_rounded = cited.ends_with("iB");
    (shown - value).abs() <= if is_rounded { 0.006 * value.abs() } else { 1.0 }
}

/// A query with the parts of a sentence and the place of its finding.
fn query(sql: &str, parts: &BTreeMap<String, &str>, finding: &InsightFinding) -> String {
    let mut sql = sql.to_owned();
    for (name, part) in PARTS {
        sql = sql.replace(name, part);
    }
    for (name, part) in parts {
        let value = number(part).map_or_else(|| part.replace('\'', "''"), |of| of.to_string());
        sql = sql.replace(&format!("{{{name}}}"), &value);
    }
    let place = &finding.place;
    let ids = [
        ("{program}", place.program.map(|id| id.index())),
        ("{operation}", place.operation.map(|id| id.index())),
        ("{variable}", place.variable.map(|id| id.index())),
    ];
    for (name, id) in ids {
        sql = sql.replace(name, &id.map_or_else(|| "NULL".to_owned(), |id| id.to_string()));
    }
    sql
}

/// The contradictions between the findings of a report and its tables.
fn contradictions(report: Report, name: &str) -> Vec<String> {
    let report = Arc::new(report);
    let numbers = NumberFormat::default();
    let mut cited = CitedReport { report: &report, name, contradictions: Vec::new() };
    for finding in insights(&report, numbers).expect("reads") {
        cited.check(&finding);
    }
    cited.check_lead(&InsightVerdict::read(&report, numbers).expect("reads").lead);
    cited.contradictions
}

/// Programs for the fast tier: they simulate quickly, and together most rules apply to them.
const FAST: [&str; 5] = [
    "prefetch",
    "offload",
    "tests/data/specs/replicas_io_tiles.toml",
    "tests/data/onnx/bert_separate_products.onnx",
    "tests/data/onnx/phases_one_ipu.onnx",
];

/// Files that leave something open, and what is set for them.
const OPEN: [(&str, &[&str]); 4] = [
    ("bert_base.onnx", &["model.dim.sequence=128"]),
    ("deconv_1d.onnx", &["model.dim.frames=64"]),
    ("if_on_input.onnx", &["model.branch.if=then"]),
    ("past_symbolic.onnx", &["model.dim.past_sequence_length=16", "model.dim.sequence_length=4"]),
];

/// Specs and files below `tests/data`, and bundled specs of few IPUs.
fn programs() -> Vec<String> {
    if !slow_tests() {
        return FAST.map(str::to_owned).to_vec();
    }
    let mut programs: Vec<String> = BUNDLED_SPECS
        .iter()
        .map(|spec| spec.name.to_owned())
        .filter(|name| name != "bert_large_pod256")
        .collect();
    for directory in ["tests/data/specs", "tests/data/onnx"] {
        let full = Path::new(env!("CARGO_MANIFEST_DIR")).join(directory);
        for file in std::fs::read_dir(full).expect("a directory") {
            let file = file.expect("a file").file_name().to_string_lossy().into_owned();
            if file.ends_with(".onnx") || file.ends_with(".toml") {
                programs.push(format!("{directory}/{file}"));
            }
        }
    }
    programs
}

#[test]
fn findings_contradict_no_table() {
    let mut wrong = Vec::new();
    for sample in ["matmul_chain", "mnist_pipeline", "too_large"] {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("sample_reports").join(sample);
        wrong.extend(contradictions(Report::open(&path).expect("opens"), sample));
    }
    for program in programs() {
        let open = OPEN.iter().find(|(file, _)| program.ends_with(file));
        let (report, _directory) = common::report(&program, open.map_or(&[], |(_, sets)| *sets));
        wrong.extend(contradictions(report, &program));
    }
    assert!(wrong.is_empty(), "{} contradictions:\n{}", wrong.len(), wrong.join("\n"));
}

#[test]
fn figures_of_every_rule_are_compared_with_a_table() {
    for rule in RULES {
        let is_checked = CITED.iter().any(|form| form.rule == rule.name)
            || RULES_OF_FULLEST.contains(&rule.name)
            || rule.name == "micro_batch";
        assert!(is_checked, "nothing compares the figures of {}", rule.name);
    }
}
