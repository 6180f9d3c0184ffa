//! The matmul chain against the profile of Graphcore's matmul tutorial on a Mk2 (graphcore/tutorials,
//! tutorial 4): float 800x500 by 500x400, then by 400x200. Single operations are in
//! `tests/validate.rs`.

mod common;

use rusqlite::{Connection, OpenFlags};
use tilescope::analysis::summary::{Summary, summary};
use tilescope::report::Report;

/// A step's program and its cycles.
type Step = (String, f64);

fn simulated() -> (Summary, Vec<Step>) {
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

/// Cycles of the steps whose name holds one of these.
fn cycles(steps: &[Step], names: &[&str]) -> f64 {
    let named = |step: &&Step| names.iter().any(|name| step.0.contains(name));
    steps.iter().filter(named).map(|(_, cycles)| cycles).sum()
}

/// Refuses what is further from the profile than so many percent.
fn within(what: &str, simulated: f64, profiled: f64, percent: f64) {
    println!("{what}: {simulated}, profiled {profiled}");
    assert!((simulated / profiled - 1.0).abs() * 100.0 < percent, "{what}: {simulated}");
}

#[test]
fn the_chain_is_what_the_profile_shows() {
    let (summary, steps) = simulated();
    assert_eq!(summary.graph.compute_sets, Some(9));
    within("vertices", summary.graph.vertices.expect("counted") as f64, 16_877.0, 5.0);
    within("edges", summary.graph.edges.expect("counted") as f64, 77_137.0, 5.0);

    let memory = &summary.memory;
    within("excluding gaps", memory.total_excluding_gaps as f64, 59_894_241.0, 1.0);
    within("including gaps", memory.total_including_gaps as f64, 307_309_104.0, 1.0);
    assert_eq!(memory.by_region["interleaved"], 8_960_000);
    assert_eq!(memory.by_category["constant"], 99_000);

    let execution = summary.execution.expect("it ran");
    within("cycles", execution.total_cycles as f64, 34_655.0, 5.0);
    within("Convolve", cycles(&steps, &["m4/Conv_1/Convolve"]), 15_240.0, 10.0);
    within("Reduce0", cycles(&steps, &["m4/Conv_1/Reduce0"]), 3_430.0, 10.0);
}
