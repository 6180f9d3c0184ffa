//! Compares the matmul chain with the profile of Graphcore's matmul tutorial on a Mk2
//! (graphcore/tutorials, tutorial 4): float 800x500 by 500x400, then by 400x200. Single operations
//! are in `tests/headless/validate.rs`.

use crate::common;
use rusqlite::{Connection, OpenFlags};
use tilescope_analysis::liveness::{LivenessCurve, LivenessScope, curve};
use tilescope_analysis::summary::{ReportSummary, summary};
use tilescope_report::Report;
use tilescope_report::units::Bytes;

/// A step's program and its cycles.
type Step = (String, f64);

fn simulated() -> (ReportSummary, Vec<Step>) {
    let directory = tempfile::tempdir().expect("a directory");
    let file = common::report_file(&common::spec("matmul_chain", &[]), directory.path());
    let report = Report::open(&file).expect("opens");
    let db = Connection::open_with_flags(&file, OpenFlags::SQLITE_OPEN_READ_ONLY).expect("SQLite");
    let sql = "SELECT p.name, u.cycles FROM steps s JOIN steps_by_ipu u ON u.step_id = s.id
               JOIN programs p ON p.id = s.program WHERE s.type <> 'Sync' ORDER BY s.id";
    let mut statement = db.prepare(sql).expect(sql);
    let steps = statement.query_map([], |row| Ok((row.get(0)?, row.get(1)?))).expect(sql);
    (summary(&report).expect("a summary"), steps.collect::<Result<_, _>>().expect("steps"))
}

/// Cycles of the steps whose name contains one of these.
fn cycles(steps: &[Step], names: &[&str]) -> f64 {
    let named = |step: &&Step| names.iter().any(|name| step.0.contains(name));
    steps.iter().filter(named).map(|(_, cycles)| cycles).sum()
}

/// Fails if a value differs from the profile by more than `percent` percent.
fn within(what: &str, simulated: f64, profiled: f64, percent: f64) {
    println!("{what}: {simulated}, profiled {profiled}");
    assert!((simulated / profiled - 1.0).abs() * 100.0 < percent, "{what}: {simulated}");
}

#[test]
fn the_chain_agrees_with_the_profile() {
    let (summary, steps) = simulated();
    assert_eq!(summary.graph.compute_sets, Some(9));
    within("vertices", summary.graph.vertices.unwrap() as f64, 16_877.0, 5.0);
    within("edges", summary.graph.edges.unwrap() as f64, 77_137.0, 5.0);

    let memory = summary.memory.as_ref().expect("recorded");
    within("excluding gaps", memory.total_excluding_gaps.as_f64(), 59_894_241.0, 1.0);
    within("including gaps", memory.total_including_gaps.as_f64(), 307_309_104.0, 1.0);
    assert_eq!(memory.by_region["interleaved"], Bytes(8_960_000));
    assert_eq!(memory.by_category["constant"], Bytes(99_000));

    // Always-live memory, by kind; the guide prints kilobytes of 1024 bytes.
    for (category, kilobytes) in [
        ("vertexInstanceState", 271.0),
        ("vertexFieldData", 222.0),
        ("instrumentationResults", 66.0),
        ("hostExchangePacketHeader", 12.1),
        ("constant", 49.2 + 47.5),
    ] {
        within(category, memory.by_category[category].as_f64(), kilobytes * 1024.0, 5.0);
    }
    assert_eq!(memory.by_category["controlId"], Bytes(8));

    let execution = summary.execution.expect("it ran");
    within("cycles", execution.total_cycles.as_f64(), 34_655.0, 5.0);
    within("Convolve", cycles(&steps, &["m4/Conv_1/Convolve"]), 15_240.0, 10.0);
    within("Reduce0", cycles(&steps, &["m4/Conv_1/Reduce0"]), 3_430.0, 10.0);
}

/// Bytes live at each step, including always-live ones.
fn live(overrides: &[&str]) -> (Report, LivenessCurve, tempfile::TempDir) {
    let (report, directory) = common::report("matmul_chain", overrides);
    let curve = curve(&report, LivenessScope::Whole).expect("reads").expect("recorded");
    (report, curve, directory)
}

/// Mebibytes live while the program of this name runs.
fn mebibytes(report: &Report, curve: &LivenessCurve, name: &str) -> f64 {
    let programs = report.programs().expect("reads");
    let is_it = |program| programs.get(program).is_some_and(|node| node.name == name);
    let step = curve.programs.iter().position(|program| is_it(*program)).expect(name);
    curve.total(step).as_f64() / f64::from(1 << 20)
}

#[test]
fn liveness_agrees_with_the_profile() {
    let (report, curve, _directory) = live(&[]);
    let at = |name: &str| mebibytes(&report, &curve, name);
    within("always live", curve.always.as_f64() / f64::from(1 << 20), 3.2, 5.0);
    within("plateau", at("cs2_m4/Conv_1/Convolve/ExchangePre"), 48.5, 1.0);
    within("plateau's end", at("m4/Conv_1/Convolve/PreArrange-0"), 48.5, 2.0);
    within("peak", at("m4/Conv_1/Convolve"), 56.0, 1.0);
    within("second hump", at("m5/Conv_1/Convolve"), 27.5, 2.0);
    let peak = curve.peak().expect("steps");
    assert_eq!(curve.total(peak).as_f64() / f64::from(1 << 20), at("m4/Conv_1/Convolve"));
}

/// The chain in that comparison: 1600x700 by 700x400.
#[test]
fn the_larger_chain_agrees_with_the_comparison() {
    let (_report, curve, _directory) = live(&["model.m=1600", "model.k=700"]);
    let peak = curve.total(curve.peak().expect("steps"));
    within("peak", peak.as_f64() / f64::from(1 << 20), 94.5, 2.0);
}
