//! The critical path covers every kind of run, and its statements about a program hold when the
//! program is changed.

use crate::common::{self, stderr, stdout, tilescope};
use crate::report_support::foreign::Foreign;
use crate::report_support::*;
use proptest::prelude::*;
use serde_json::Value;
use std::path::Path;
use tempfile::tempdir;
use tilescope_analysis::compare::{ComparisonRow, WorkUnit, comparison, differences};
use tilescope_analysis::critical_path::{
    MECHANISMS, PathKind, WhyChain, exposure, ipu_slacks, path_totals, why, why_run,
};
use tilescope_analysis::data_table::TableCell;
use tilescope_analysis::summary::summary;
use tilescope_report::trace::{CriticalPath, PathSpan, PathStretch, Trace};
use tilescope_report::units::*;
use tilescope_report::*;
use tilescope_test_tiers::cases;

/// Checks the invariants of any path.
fn check(trace: &Trace, path: &CriticalPath) {
    let all = path.stretches_in(path.range(), usize::MAX).unwrap();
    assert_eq!(all.len() as u64, path.stretch_count());
    let alike = path.lane_infos().iter().all(|lane| lane.class == ReplicaClassId(0));
    let shown = path.range().intersection(trace.range());
    assert_eq!(shown, trace.range(), "it covers replica 0, and others that may end later");
    assert!(!alike || shown == path.range());
    if path.range().is_empty() {
        return;
    }
    assert_eq!(all[0].range.start, path.range().start);
    assert_eq!(all.last().unwrap().range.end, path.range().end);
    for pair in all.windows(2) {
        assert_eq!(pair[0].range.end, pair[1].range.start, "no gap, no overlap");
    }
    // A window may extend beyond the run.
    let beyond = CycleRange::new(Cycles::ZERO, Cycles(u64::MAX));
    assert_eq!(path.stretches_in(beyond, usize::MAX).unwrap().len(), all.len());
    let of_lanes: Cycles = path.lanes().iter().map(|lane| lane.path_cycles).sum();
    assert_eq!(of_lanes, path.range().length());
    let programs = path.programs().unwrap();
    let of_programs: Cycles = programs.iter().map(|program| program.cycles).sum();
    assert_eq!(of_programs, path.totals().cycles.total());
    assert!(of_programs <= path.range().length());
    assert_eq!(*programs, path.programs_in(path.range()).unwrap(), "those of the file");
    for stretch in all.iter().step_by(all.len().div_ceil(50)) {
        check_stretch(path, stretch);
    }
    check_windows(path, &all);
}

fn check_stretch(path: &CriticalPath, stretch: &PathStretch) {
    let lane = path.lane_at(stretch.lane).unwrap();
    let inside = lane.touching(stretch.range).unwrap();
    for position in [inside.start, inside.end - 1] {
        let step = lane.step(position).unwrap().unwrap();
        let slack = path.slack(stretch.lane, position).unwrap();
        let is_inside = step.range.end <= stretch.range.end && !step.range.is_empty();
        assert!(!is_inside || slack == Some(Cycles::ZERO), "{slack:?} of {step:?}");
        let found = path.stretch_of(stretch.lane, &step).unwrap();
        assert!(step.range.is_empty() || found.is_some(), "{step:?} is on {stretch:?}");
    }
    assert_eq!(path.stretch_at(stretch.range.start).unwrap().as_ref(), Some(stretch));
}

/// Checks that windows contain their part of the whole, at any zoom.
fn check_windows(path: &CriticalPath, all: &[PathStretch]) {
    let CycleRange { start, end } = path.range();
    let length = end - start;
    for (from, to) in [(0, 1), (0, 3), (1, 3), (2, 3), (5, 17)] {
        let at = |part: u64, of: u64| start + length * part / of;
        let of = if to == 17 { 17 } else { 3 };
        let window = if to == 1 { path.range() } else { CycleRange::new(at(from, of), at(to, of)) };
        let totals = path.totals_in(window).unwrap();
        let programs = path.programs_in(window).unwrap();
        let cycles: Cycles = programs.iter().map(|program| program.cycles).sum();
        assert_eq!(totals.cycles.total(), cycles, "{window:?}");
        let touching = all.iter().filter(|stretch| stretch.range.overlaps(window)).count();
        assert_eq!(path.stretches_in(window, usize::MAX).unwrap().len(), touching);
        for pixels in [1, 7, 400] {
            let spans = path.spans(window, pixels).unwrap();
            assert!(spans.len() <= 6 * pixels as usize + 6);
            let mut before = Cycles::ZERO;
            for span in &spans {
                assert!(span.range().start >= before, "spans do not overlap: {span:?}");
                before = span.range().end;
            }
            let covered = |span: &PathSpan| span.range().intersection(window).length();
            let covered: Cycles = spans.iter().map(covered).sum();
            assert!(covered >= totals.cycles.total(), "spans cover the steps: {window:?}");
        }
    }
}

fn checked(report: &Report) -> CriticalPath {
    let path = report.critical_path().unwrap().expect("a run has a path");
    check(&report.trace().unwrap().unwrap(), &path);
    path
}

proptest! {
    #![proptest_config(ProptestConfig { cases: cases(60), ..ProptestConfig::default() })]

    #[test]
    fn every_run_has_a_path(seed in any::<u64>(), steps in 1u64..400) {
        let (directory, made) = (tempdir().unwrap(), random_report(seed, steps));
        made.write(directory.path()).unwrap();
        let report = Report::open(directory.path()).unwrap();
        if report.trace().unwrap().is_some() {
            checked(&report);
        }
    }
}

/// Small programs of all kinds: on one IPU and several, with I/O tiles, phases, replicas, a slow
/// host.
const PROGRAMS: [(&str, &[&str]); 7] = [
    ("mnist_pipeline", &["options.device_iterations=2"]),
    ("io_overlap", &[]),
    ("data_loading", &["options.device_iterations=5"]),
    ("prefetch", &["options.device_iterations=5"]),
    ("offload", &[]),
    ("adder", &[]),
    ("image_blur", &[]),
];

/// Checks the invariants of the path of a simulated run, including that nothing of the run is left
/// out.
pub(crate) fn check_simulated(report: &Report) {
    let path = checked(report);
    assert_eq!(path.totals().cycles.total(), path.range().length());
    check_sums(report);
}

/// Checks that analyses of a path add up, for any report.
fn check_sums(report: &Report) {
    let totals = path_totals(report, None).unwrap().expect("a run");
    let cycles: Cycles = totals.rows.iter().map(|row| row.cycles).sum();
    assert_eq!(cycles, totals.cycles, "rows are all of the path");
    let shares: f64 = totals.rows.iter().map(|row| row.share).sum();
    assert!((shares - 1.0).abs() < 1e-9, "{shares}");
    let slacks = ipu_slacks(report).unwrap();
    assert_eq!(slacks.iter().map(|of| of.path_cycles).sum::<Cycles>(), totals.cycles);
    let run = summary(report).unwrap().execution.expect("a run");
    let on_path: Cycles = run.critical_path.iter().map(|of| of.on_path).sum();
    let idle: Cycles =
        totals.rows.iter().filter(|row| row.kind == PathKind::Idle).map(|row| row.cycles).sum();
    assert_eq!(on_path + idle, totals.cycles);
    for of in &run.critical_path {
        if let (Some(exposed), Some(hidden)) = (of.exposed, of.hidden) {
            assert_eq!(exposed + hidden, of.cycles, "{of:?}");
        }
    }
    // If replicas differ, the path may be on others than the one with these cycles.
    let alike = !report.replica_classes().unwrap().differ();
    for (program, of) in exposure(report).unwrap().expect("the path is known") {
        assert!(!alike || of.on_path <= of.cycles, "{program:?}: {of:?}");
        assert!(of.hidden.is_none_or(|hidden| hidden <= of.cycles), "{program:?}: {of:?}");
    }
}

/// See also `totals`, over all bundled specs, and `causality`, over all executions.
#[test]
fn every_simulated_program_has_a_path_that_verifies() {
    for (name, set) in PROGRAMS {
        let (report, _directory) = common::report(name, set);
        check_simulated(&report);
        assert_eq!(report.verify().unwrap(), [], "{name}");
    }
}

#[test]
fn reports_of_other_tools_have_a_path_that_verifies() {
    let directory = tempdir().unwrap();
    for (name, steps) in [("few", 100), ("many", 5_000)] {
        let file = directory.path().join(format!("{name}.pop"));
        Foreign { steps, ..Foreign::default() }.write(&file);
        let report = Report::open(&file).unwrap();
        checked(&report);
        check_sums(&report);
        let violations = report.verify().unwrap();
        let of_path = |of: &&InvariantViolation| of.law == "path_is_of_the_run";
        assert_eq!(violations.iter().find(of_path), None);
    }
}

/// A report of a version without recorded waits has the same path.
#[test]
fn older_reports_have_the_same_path() {
    let sample = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/versions/2.3-columns");
    // The path would be cached from an earlier run of the tests.
    let report = Report::open_with_cache(sample.join(REPORT_FILE), None).unwrap();
    assert!(report.known_critical_path().unwrap().is_none(), "no view waits for it");
    assert!(exposure(&report).unwrap().is_none());
    checked(&report);
    check_sums(&report);
}

/// Sums in a file that contradict its path are reported, and are not shown.
#[test]
fn incomplete_sums_are_not_used() {
    let programs = |report: &Report| {
        let path = report.critical_path().unwrap().expect("a run has a path");
        path.programs().unwrap()
    };
    let (report, directory) = common::report("mnist_pipeline", &["options.device_iterations=2"]);
    let whole = programs(&report);
    drop(report);
    let file = directory.path().join(REPORT_FILE);
    for change in [
        "DELETE FROM trace_path_programs WHERE id = (SELECT max(id) FROM trace_path_programs)",
        "UPDATE trace_path_programs SET lane = 7777 WHERE id = 0",
        "UPDATE trace_path_programs SET cycles = cycles + 1 WHERE id = 0",
        "UPDATE trace_path_programs SET cycles = 9223372036854775807",
    ] {
        let broken = directory.path().join("broken.pop");
        std::fs::copy(&file, &broken).unwrap();
        let db = rusqlite::Connection::open(&broken).unwrap();
        db.execute_batch(&format!("{change}; DELETE FROM checksums")).unwrap();
        drop(db);
        let report = Report::open_with_cache(&broken, None).unwrap();
        assert_eq!(programs(&report), whole, "{change}");
        let findings = report.verify().unwrap();
        assert!(findings.iter().any(|of| of.text.contains("trace_path_programs")), "{change}");
    }
}

/// The chain of the step of a program with the longest wait.
fn longest_wait(report: &Report, name: &str) -> WhyChain {
    let (trace, programs) = (report.trace().unwrap().unwrap(), report.programs().unwrap());
    let mut best: Option<(Cycles, StepId, IpuId, u8)> = None;
    for (at, info) in trace.lanes().iter().enumerate() {
        let lane = trace.lane(at).unwrap();
        for position in 0..info.steps {
            let step = lane.step(position).unwrap().unwrap();
            let program = step.program.and_then(|id| programs.get(id));
            let cycles = step.range.length();
            let fits = program.is_some_and(|program| program.name == name);
            if fits && best.is_none_or(|(most, ..)| cycles > most) {
                best = Some((cycles, step.step, info.ipu, info.sub_lane));
            }
        }
    }
    let (_, step, ipu, sub_lane) = best.expect("a step of the program");
    why(report, step, ReplicaIpu::from(ipu), sub_lane, NumberFormat::default())
        .unwrap()
        .expect("an answer")
}

#[test]
fn a_wait_is_explained_down_to_its_options() {
    let (report, _directory) = common::report("mnist_pipeline", &["options.device_iterations=2"]);
    let chain = longest_wait(&report, "External");
    assert!(chain.links.len() >= 2, "{}", chain.sentence());
    assert!(chain.links[0].text.contains(" waits for IPU "), "{}", chain.sentence());
    assert!(!chain.options.is_empty(), "{}", chain.sentence());
    for link in &chain.links {
        let place = link.place.expect("each leads somewhere");
        let step = report.step(place.step).unwrap().expect("to a step of the report");
        assert!(step.ipus.iter().any(|on| on.ipu == place.at.ipu));
    }
    // The loader is waited for in the most frequent step of a data loading program.
    let (report, _directory) = common::report("data_loading", &["options.device_iterations=5"]);
    let chains = why_run(&report, 3, NumberFormat::default()).unwrap();
    let of_host = |chain: &WhyChain| chain.options.iter().any(|key| key.contains("host"));
    assert!(chains.iter().any(of_host), "{chains:?}");
}

/// Every option that an explanation names is a key of specs.
#[test]
fn options_of_mechanisms_are_keys_of_specs() {
    let json = stdout(&tilescope(&["specs", "--keys", "--json"]));
    let keys: Vec<Value> = serde_json::from_str(&json).unwrap();
    let known: Vec<&str> = keys.iter().filter_map(|key| key["path"].as_str()).collect();
    for entry in MECHANISMS {
        for option in entry.options {
            assert!(known.contains(option), "{option} of {}", entry.name);
        }
    }
}

#[test]
fn why_prints_the_path_and_shares_add_up() {
    let (report, directory) = common::report("io_overlap", &[]);
    let path = directory.path().to_string_lossy().into_owned();
    let json: Value = serde_json::from_str(&stdout(&tilescope(&["why", &path, "--json"]))).unwrap();
    let rows = json["path"].as_array().unwrap();
    let shares: f64 = rows.iter().map(|row| row["share"].as_f64().unwrap()).sum();
    let cycles: u64 = rows.iter().map(|row| row["cycles"].as_u64().unwrap()).sum();
    assert!((shares - 1.0).abs() < 1e-9, "{shares}");
    assert_eq!(json["cycles"].as_u64(), Some(cycles));
    assert_eq!(cycles, report.trace().unwrap().unwrap().range().length().0);
    for row in rows {
        assert!(row["kind"].is_string() && row["ipu"].is_u64(), "{row}");
    }
    assert_eq!(
        json["slack"].as_array().unwrap().len(),
        report.trace().unwrap().unwrap().lanes().len()
    );
    let text = stdout(&tilescope(&["why", &path]));
    assert!(text.contains("Critical path: ") && text.contains("set by options."), "{text}");
    let text = stdout(&tilescope(&["why", &path, "--at", "0"]));
    assert!(text.starts_with("Step 0 on IPU 0: "), "{text}");
    for (at, words) in [
        ("x", "expects the number"),
        ("0:0:0:0", "expects the number"),
        ("99999999", "step 99999999 does not exist"),
        ("0:7", "did not run"),
        ("0:0:9", "replica 9 does not exist"),
    ] {
        let failed = tilescope(&["why", &path, "--at", at]);
        assert!(!failed.status.success() && stderr(&failed).contains(words), "{}", stderr(&failed));
    }
}

#[test]
fn a_program_that_was_not_run_has_no_path() {
    let (report, directory) = common::report("too_large", &[]);
    assert!(report.critical_path().unwrap().is_none());
    assert!(path_totals(&report, None).unwrap().is_none());
    let failed = tilescope(&["why", &directory.path().to_string_lossy()]);
    assert!(stderr(&failed).contains("no executed steps"), "{}", stderr(&failed));
}

/// Changes of the path explain the whole difference of two runs.
#[test]
fn changes_of_the_path_explain_the_difference() {
    let (source, _one) = common::report("mnist_pipeline", &["options.device_iterations=2"]);
    let set = ["options.device_iterations=2", "options.output_mode=\"final\""];
    let (target, _other) = common::report("mnist_pipeline", &set);
    let trace = comparison("execution-trace").unwrap();
    let tables = differences(&source, &target, trace, WorkUnit::default()).unwrap();
    let cycles = |report: &Report| report.trace().unwrap().unwrap().range().length().0;
    for title in ["Critical path", "IPU path"] {
        let table = tables.iter().find(|table| table.title == title).expect(title);
        let sum = |side: fn(&ComparisonRow) -> &Option<TableCell>| -> f64 {
            table.rows.iter().filter_map(|row| side(row).as_ref()?.number()).sum()
        };
        assert_eq!(sum(|row| &row.source) as u64, cycles(&source));
        assert_eq!(sum(|row| &row.target) as u64, cycles(&target));
    }
}
