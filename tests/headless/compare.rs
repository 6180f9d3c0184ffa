//! Invariants of comparisons of two reports, over all pairs of several kinds of reports.

use crate::common;
use crate::report_support::foreign::Foreign;
use crate::report_support::random_report;
use std::path::Path;
use std::sync::OnceLock;
use tempfile::TempDir;
use tilescope_analysis::compare::{
    COMPARISONS, ComparedReports, ComparisonOverview, ComparisonRow, ComparisonTable,
    ReportAlignment, StepChangeKind, WorkUnit, drift, overview,
};
use tilescope_analysis::data_table::TableCell;
use tilescope_fixtures::ReportBuilder;
use tilescope_report::trace::TraceLane;
use tilescope_report::units::{Cycles, IpuId, NumberFormat};
use tilescope_report::{ExecutionStep, MarkKind, ProgramKind, Report};
use tilescope_test_tiers::{pairs_of_entries, slow_tests, up_to};

/// Writes one kind of report into a directory.
type Write = fn(&Path);

/// A loop with `turns` iterations; `more` adds another operation to each.
fn looped(turns: u64, more: bool, compute: u64) -> ReportBuilder {
    let mut report = ReportBuilder::new(2, 8);
    let exchange = report.exchange("cs0_a/conv/Convolve/ExchangePre", 8);
    let work = report.compute("a/conv/Convolve", 500);
    let relu = more.then(|| report.compute("a/relu/NonLinearity", 70));
    let sync = report.program(ProgramKind::Sync, "Internal");
    let update = report.compute("a/update", 50);
    let body: Vec<_> = [exchange, work].into_iter().chain(relu).chain([sync]).collect();
    let mut all = body.clone();
    all.push(update);
    report.root(ProgramKind::Sequence, "main", &all);
    let mut at = 0;
    let mut run = |report: &mut ReportBuilder, program, cycles: u64| {
        let ipus = [IpuId(0), IpuId(1)].map(|ipu| report.bar(ipu, at..at + cycles)).to_vec();
        report.steps.push(ExecutionStep::new(program, ipus));
        at += cycles + 3;
    };
    for _ in 0..turns {
        run(&mut report, exchange, 100);
        run(&mut report, work, compute);
        if let Some(relu) = relu {
            run(&mut report, relu, 70);
        }
        run(&mut report, sync, 10);
    }
    run(&mut report, update, 50);
    report.mark(MarkKind::Run, "Engine::run #0", 0..report.steps.len() as u64);
    report
}

const KINDS: &[(&str, Write)] = &[
    ("mnist", |path| simulate("mnist_pipeline", &["options.device_iterations=1"], path)),
    ("mnist, twice the accumulation", |path| {
        let set = ["options.device_iterations=1", "options.gradient_accumulation=20"];
        simulate("mnist_pipeline", &set, path);
    }),
    ("mnist, replicas", |path| {
        let set = ["options.device_iterations=1", "target.ipus=8", "options.replication_factor=2"];
        simulate("mnist_pipeline", &set, path);
    }),
    ("matmul chain", |path| simulate("matmul_chain", &[], path)),
    ("does not fit", |path| simulate("too_large", &[], path)),
    ("foreign", |path| {
        std::fs::create_dir_all(path).expect("makes a directory");
        Foreign::default().write(&path.join("profile.pop"));
    }),
    ("loop of 10", |path| drop(looped(10, false, 500).write(path).expect("writes"))),
    ("loop of 25, one operation more", |path| {
        drop(looped(25, true, 450).write(path).expect("writes"));
    }),
    ("anything", |path| drop(random_report(3, 200).write(path).expect("writes"))),
    ("anything else", |path| drop(random_report(4, 300).write(path).expect("writes"))),
];

fn simulate(spec: &str, overrides: &[&str], path: &Path) {
    common::report_file(&common::spec(spec, overrides), path);
}

/// Every kind of report, written and opened once.
fn reports() -> &'static [(&'static str, Report)] {
    static REPORTS: OnceLock<(Vec<(&'static str, Report)>, TempDir)> = OnceLock::new();
    let write = || {
        let directory = tempfile::tempdir().expect("temporary directory");
        let open = |(index, (name, write)): (usize, &(&'static str, Write))| {
            let path = directory.path().join(index.to_string());
            write(&path);
            (*name, Report::open(&path).expect("opens"))
        };
        let reports = KINDS.iter().enumerate().map(open).collect();
        (reports, directory)
    };
    &REPORTS.get_or_init(write).0
}

/// Passes the comparison of two reports, with figures of the run per `unit`, to a closure.
fn with_sides<T>(
    source: &Report,
    target: &Report,
    unit: WorkUnit,
    ask: impl Fn(&ComparedReports<'_>) -> T,
) -> T {
    let alignment = &ReportAlignment::read(source, target).expect("aligns");
    let numbers = NumberFormat::default();
    ask(&ComparedReports { source, target, alignment, numbers, unit })
}

fn tables(source: &Report, target: &Report) -> Vec<Vec<ComparisonTable>> {
    with_sides(source, target, WorkUnit::default(), |sides| {
        COMPARISONS.iter().map(|one| (one.tables)(sides).expect("compares")).collect()
    })
}

fn page(source: &Report, target: &Report, unit: WorkUnit) -> ComparisonOverview {
    with_sides(source, target, unit, |sides| overview(sides).expect("compares"))
}

fn named<'a>(tables: &'a [ComparisonTable], title: &str) -> Option<&'a ComparisonTable> {
    tables.iter().find(|table| table.title == title)
}

/// A row without the parts that depend on the choice of the source.
fn turned(row: &ComparisonRow) -> String {
    let row = row.clone().swapped();
    format!("{} {:?} {:?}", row.name, row.source, row.target)
}

#[test]
fn a_report_does_not_differ_from_itself() {
    let reports = reports();
    for (name, report) in reports {
        for table in tables(report, report).iter().flatten() {
            for row in table.rows.iter().chain(&table.total) {
                assert!(row.is_same(), "{name}: {}: {row:?}", table.title);
                assert!(row.change().is_none_or(|change| change == 0.0), "{name}: {row:?}");
            }
        }
        let alignment = ReportAlignment::read(report, report).expect("aligns");
        for lane in alignment.steps.iter().flat_map(|steps| &steps.lanes) {
            assert_eq!(lane.source, lane.target);
            assert_eq!(Some(lane.matched()), lane.source.map(|info| info.steps));
        }
    }
}

/// Rows as text, in an order that does not depend on the choice of the source.
fn rows(found: &[Vec<ComparisonTable>], word: impl Fn(&ComparisonRow) -> String) -> Vec<String> {
    let all = found.iter().flatten().flat_map(|table| table.rows.iter().chain(&table.total));
    let mut rows: Vec<String> = all.map(word).collect();
    rows.sort_unstable();
    rows
}

/// Checks that the differences of rows add up to that of the total.
fn adds_up(found: &[Vec<ComparisonTable>], words: &str) {
    for table in found.iter().flatten() {
        let Some(total) = &table.total else { continue };
        let sum: i128 = table.rows.iter().filter_map(ComparisonRow::whole_change).sum();
        assert_eq!(Some(sum), total.whole_change(), "{words}: {}", table.title);
    }
}

#[test]
fn swapping_source_and_target_negates_every_difference() {
    let reports = reports();
    for (a, b) in pairs_of_entries(reports.len()) {
        let ((a_name, a), (b_name, b)) = (&reports[a], &reports[b]);
        let words = format!("{a_name} / {b_name}");
        let (there, back) = (tables(a, b), tables(b, a));
        adds_up(&there, &words);
        adds_up(&back, &words);
        let plain = |row: &ComparisonRow| format!("{} {:?} {:?}", row.name, row.source, row.target);
        let (there, back) = (rows(&there, plain), rows(&back, turned));
        for (there, back) in there.iter().zip(&back) {
            assert_eq!(there, back, "{words}");
        }
        assert_eq!(there.len(), back.len(), "{words}");
    }
}

/// For any division of a lane into stretches, their gains and losses add up to those of the target.
#[test]
fn changes_along_a_lane_add_up_to_the_difference_of_the_lanes() {
    let reports = reports();
    let mut lanes = 0;
    for (a_name, a) in reports {
        for (b_name, b) in reports {
            let steps = ReportAlignment::read(a, b).expect("aligns").steps;
            let traces = a.trace().expect("reads").zip(b.trace().expect("reads"));
            let (Some(steps), Some((source, target))) = (steps, traces) else { continue };
            for pair in &steps.lanes {
                let (Some(of_source), Some(of_target)) = (pair.source, pair.target) else {
                    continue;
                };
                let one = source.lane_of(of_source.ipu, of_source.sub_lane).expect("there");
                let other = target.lane_of(of_target.ipu, of_target.sub_lane).expect("there");
                let all = |lane: &TraceLane<'_>| {
                    let totals = lane.totals(lane.info().range).expect("reads");
                    totals.cycles.total().0 as i64
                };
                let difference = all(&other) - all(&one);
                for pieces in [1, 7, 240] {
                    let range = of_source.range;
                    let drifts = drift(pair, &one, Some(&other), range, pieces).expect("reads");
                    let sum: i64 = drifts.iter().map(|drift| drift.change).sum();
                    assert_eq!(sum, difference, "{a_name} / {b_name}: {of_source:?}, {pieces}");
                    // Each step of the source is counted once, and so is each common step.
                    let steps: u64 = drifts.iter().map(|drift| drift.steps).sum();
                    assert_eq!(steps, one.info().steps, "{a_name} / {b_name}: {of_source:?}");
                    let matched: u64 = drifts.iter().map(|drift| drift.matched).sum();
                    let aligned: u64 = pair.runs.iter().map(|run| run.count).sum();
                    assert_eq!(matched, aligned, "{a_name} / {b_name}: {of_source:?}");
                }
                lanes += 1;
            }
        }
    }
    assert!(lanes > 20, "{lanes}");
}

#[test]
fn shares_are_of_the_source_and_the_largest_change_comes_first() {
    let reports = reports();
    let value = |cell: &Option<TableCell>| cell.as_ref().map_or(Some(0.0), TableCell::number);
    let mut sorted = 0;
    for table in tables(&reports[0].1, &reports[1].1).iter().flatten() {
        for row in &table.rows {
            let (source, target) = row.values();
            let (Some(source), Some(target)) = (value(&source), value(&target)) else {
                assert_eq!(row.share(), None, "{row:?}");
                continue;
            };
            let Some(share) = row.share() else {
                assert!(source == 0.0 && target != 0.0, "{row:?}");
                continue;
            };
            let again = source + share * source.abs();
            assert!((again - target).abs() <= 1e-9 * target.abs().max(1.0), "{row:?}");
        }
        let size = |row: &ComparisonRow| row.change().map_or(0.0, f64::abs);
        sorted += usize::from(table.rows.iter().map(size).is_sorted_by(|a, b| a >= b));
    }
    assert!(sorted > 10, "{sorted} tables begin with what changed most");
}

/// Figures are those of whole runs, for any number of aligned steps.
#[test]
fn figures_do_not_need_links() {
    let reports = reports();
    for pair in reports.windows(2) {
        let (source, target) = (&pair[0].1, &pair[1].1);
        let alignment = &ReportAlignment::without_links(source, target).expect("aligns");
        let (numbers, unit) = (NumberFormat::default(), WorkUnit::default());
        let sides = ComparedReports { source, target, alignment, numbers, unit };
        let found: Vec<Vec<ComparisonTable>> =
            COMPARISONS.iter().map(|one| (one.tables)(&sides).expect("compares")).collect();
        let words = |found: &[Vec<ComparisonTable>]| {
            rows(found, |row| format!("{} {:?} {:?}", row.name, row.source, row.target))
        };
        assert_eq!(words(&found), words(&tables(source, target)), "{} / {}", pair[0].0, pair[1].0);
    }
}

#[test]
fn inserted_steps_and_turns_leave_the_others_aligned() {
    let (source, target) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    looped(10, false, 500).write(source.path()).expect("writes");
    looped(25, true, 450).write(target.path()).expect("writes");
    let (source, target) =
        (Report::open(source.path()).expect("opens"), Report::open(target.path()).expect("opens"));
    let steps = ReportAlignment::read(&source, &target).expect("aligns").steps.expect("both ran");
    // All steps of the shorter run are found in the longer one.
    for lane in &steps.lanes {
        assert_eq!(Some(lane.matched()), lane.source.map(|info| info.steps));
    }
    let change = |name: &str| {
        let mut found = steps.changes.iter().filter(|change| change.name.contains(name));
        let change = found.next().expect("listed");
        assert!(found.next().is_none(), "{name} is listed twice");
        change
    };
    assert_eq!(change("a/conv/Convolve (OnTile").cycles(), 2 * (25 * 450 - 10 * 500));
    assert_eq!(change("a/relu").source.steps, 0);
    assert_eq!(change("a/relu").target.steps, 50);
    assert_eq!(change("a/update").cycles(), 0);
    // Links lead to executions of the program on both sides.
    let spot = change("a/conv/Convolve (OnTile");
    assert_eq!(spot.source.spot.expect("linked").step.range.length(), Cycles(500));
    assert_eq!(spot.target.spot.expect("linked").step.range.length(), Cycles(450));
    assert_eq!(
        steps.changes.iter().filter(|change| change.what == StepChangeKind::Idle).count(),
        1
    );
}

#[test]
fn positions_map_there_and_back() {
    let reports = reports();
    let steps = ReportAlignment::read(&reports[0].1, &reports[1].1).expect("aligns").steps;
    for lane in &steps.expect("both ran").lanes {
        let mut found = 0;
        for position in 0..lane.source.map_or(0, |info| info.steps) {
            if let Some(there) = lane.to_target(position) {
                assert_eq!(lane.to_source(there), Some(position));
                found += 1;
            }
        }
        assert_eq!(found, lane.matched());
    }
}

#[test]
fn twice_the_accumulation_is_recognized() {
    let reports = reports();
    let (source, target) = (&reports[0].1, &reports[1].1);
    let found = page(source, target, WorkUnit::Sample);
    let set = named(&found.tables, "Set differently").expect("specs are in the files");
    let names: Vec<&str> = set.rows.iter().map(|row| row.name.as_str()).collect();
    assert_eq!(names, ["options.gradient_accumulation"]);
    assert_eq!(set.rows[0].target, Some(TableCell::Count(20)));
}

/// Twice the work takes longer, but is not slower per sample.
#[test]
fn twice_the_work_is_not_slower() {
    let reports = reports();
    let (source, target) = (&reports[0].1, &reports[1].1);
    let cycles = |unit| {
        let found = page(source, target, unit);
        assert_eq!(found.normalization.note, None);
        let result = named(&found.tables, "Result").expect("listed");
        let cycles = result.rows.iter().find(|row| row.name.starts_with("Cycles"));
        (cycles.expect("both ran").clone(), found.verdict)
    };
    let (per_run, verdict) = cycles(WorkUnit::Run);
    assert!(per_run.share().expect("a share") > 0.3, "{per_run:?}");
    assert!(verdict.contains("more cycles"), "{verdict}");
    let (per_sample, verdict) = cycles(WorkUnit::Sample);
    let share = per_sample.share().expect("a share");
    assert!((-0.5..0.0).contains(&share), "{per_sample:?}");
    assert!(verdict.contains("fewer cycles per sample"), "{verdict}");
    // The figures of the whole run are kept, and the unit has a name.
    let json = serde_json::to_value(&per_sample).expect("JSON");
    assert_eq!(json["per"], "per sample");
    let whole = |cell: &Option<TableCell>| serde_json::to_value(cell).expect("JSON");
    assert_eq!(json["source_run"], whole(&per_run.source));
    assert_eq!(json["target_run"], whole(&per_run.target));
    let samples = |report: &Report| report.batching().expect("reads").expect("known");
    let divided =
        json["source_run"].as_f64().expect("cycles") / samples(source).samples_per_call() as f64;
    assert_eq!(json["source"].as_f64(), Some(divided));
    let per_update = cycles(WorkUnit::Update).0;
    assert!(per_update.share().expect("a share") > 0.3, "one update works on twice as much");
}

#[test]
fn reports_without_an_amount_of_work_are_compared_per_run() {
    let reports = reports();
    let report = |name: &str| &reports.iter().find(|(known, _)| *known == name).expect("known").1;
    let (simulated, foreign) = (report("mnist"), report("foreign"));
    for (source, target, words) in [
        (simulated, foreign, "the target does not record the number of samples"),
        (foreign, simulated, "the source does not record the number of samples"),
        (foreign, foreign, "both reports do not record the number of samples"),
    ] {
        let found = page(source, target, WorkUnit::Sample).normalization;
        assert_eq!((found.asked, found.unit), (WorkUnit::Sample, WorkUnit::Run));
        let note = found.note.expect("a note");
        assert!(note.contains(words), "{note}");
    }
}

/// Activities, operations and steps explain the whole difference, for any unit of figures.
#[test]
fn explanations_add_up_to_the_difference() {
    let reports = reports();
    let mut explained = 0;
    for (index, (a_name, a)) in reports.iter().enumerate() {
        // Each report with itself and the next one; in the slow tier, with all.
        for (b_name, b) in reports[index..].iter().take(up_to(2)) {
            let alignment = &ReportAlignment::read(a, b).expect("aligns");
            let numbers = NumberFormat::default();
            for unit in WorkUnit::ALL {
                let words = format!("{a_name} / {b_name}: {unit:?}");
                let sides = ComparedReports { source: a, target: b, alignment, numbers, unit };
                let found = overview(&sides).expect("compares");
                let result = named(&found.tables, "Result").expect("listed");
                let cycles = result.rows.iter().find(|row| row.name.starts_with("Cycles"));
                for title in ["Activities", "Operations", "Slower and faster"] {
                    let Some(table) = named(&found.tables, title) else { continue };
                    let total = table.total.as_ref().expect("a total");
                    let cycles = cycles.expect("both ran").change().expect("cycles");
                    let near = |value: f64| (value - cycles).abs() <= 1e-9 * cycles.abs().max(1.0);
                    assert!(near(total.change().expect("cycles")), "{words}, {title}: {total:?}");
                    let sum: f64 = table.rows.iter().filter_map(ComparisonRow::change).sum();
                    let most = table.rows.iter().filter_map(ComparisonRow::change);
                    let most: f64 = most.map(f64::abs).sum();
                    assert!(
                        (sum - cycles).abs() <= 1e-9 * most.max(1.0),
                        "{words}, {title}: {sum}"
                    );
                    assert!(table.rows.len() <= 14, "{words}, {title}");
                    explained += 1;
                }
                if std::ptr::eq(a, b) {
                    let titles = found.tables.iter().map(|table| table.title);
                    let news = ["Set differently", "New findings", "Resolved findings"];
                    assert!(titles.into_iter().all(|title| !news.contains(&title)), "{words}");
                }
            }
        }
    }
    assert!(explained > if slow_tests() { 150 } else { 50 }, "{explained}");
}
