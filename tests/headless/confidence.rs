//! How sure the figures of a simulated run are.

use crate::common::{report, stderr, stdout, tilescope};
use tempfile::TempDir;
use tilescope_analysis::compare::{ComparedReports, ReportAlignment, WorkUnit, overview};
use tilescope_analysis::confidence::{Confidence, Distinction};
use tilescope_analysis::summary::summary;
use tilescope_fixtures::ReportBuilder;
use tilescope_report::units::NumberFormat;
use tilescope_report::{CostBasis, Report};

fn confidence(report: &Report) -> Confidence {
    summary(report).expect("summary").confidence.expect("a simulated report says how sure it is")
}

fn distinction(source: &Report, target: &Report) -> (Option<Distinction>, String) {
    let alignment = ReportAlignment::without_links(source, target).expect("aligned");
    let (numbers, unit) = (NumberFormat::default(), WorkUnit::Sample);
    let sides = ComparedReports { source, target, alignment: &alignment, numbers, unit };
    let page = overview(&sides).expect("a page");
    (page.distinction, page.verdict)
}

const CHAIN: &str = "matmul_chain";

#[test]
fn shares_add_up_and_the_band_is_around_the_figure() {
    for name in ["matmul_chain", "heat_stencil", "offload", "io_overlap"] {
        let (report, _directory) = report(name, &[]);
        let Confidence { shares, cycles, samples_per_second } = confidence(&report);
        let total: f64 = shares.iter().map(|(_, share)| share).sum();
        assert!((total - 1.0).abs() < 1e-9, "{name}: {total}");
        let run = summary(&report).expect("summary").execution.expect("a run");
        let whole = run.total_cycles.as_f64();
        assert!(0.6 * whole < cycles.low && cycles.low < cycles.high, "{name}: {cycles:?}");
        assert!(whole < cycles.high && cycles.high < 1.5 * whole, "{name}: {cycles:?}");
        if let (Some(rate), Some(band)) = (run.samples_per_second, samples_per_second) {
            assert!((band.low * cycles.high / (rate * whole) - 1.0).abs() < 1e-9, "{name}");
        }
    }
}

#[test]
fn shares_say_what_the_cycles_rest_on() {
    let share = |name: &str| confidence(&report(name, &[]).0).shares;
    assert!(share(CHAIN).measured > 0.6, "{:?}", share(CHAIN));
    assert!(share("heat_stencil").assumptions > 0.0, "{:?}", share("heat_stencil"));
    assert!(share("offload").host_and_links > 0.3, "{:?}", share("offload"));
}

#[test]
fn every_kind_of_operation_has_a_band() {
    let (report, _directory) = report("io_overlap", &[]);
    let bands = report.error_bands().expect("bands");
    for operation in report.operations().expect("operations").iter() {
        let band = bands.iter().find(|band| band.kind.as_deref() == Some(&operation.kind));
        let band = band.unwrap_or_else(|| panic!("{} has no band", operation.kind));
        assert!(band.cycles.low < 1.0 && band.cycles.high > 1.0, "{band:?}");
        assert_eq!(band.rows > 0, band.basis == CostBasis::Measured, "{band:?}");
    }
}

#[test]
fn a_report_that_predicts_nothing_has_no_band() {
    let directory = TempDir::new().expect("directory");
    let mut report = ReportBuilder::new(1, 4);
    let work = report.compute("work", 10);
    let file = report.run(work, 0..10).write(directory.path()).expect("a report");
    let report = Report::open(&file).expect("opens");
    assert_eq!(summary(&report).expect("summary").confidence, None);
    let printed = tilescope(&["summary", &directory.path().to_string_lossy()]);
    assert!(!stdout(&printed).contains("Confidence"), "{}", stderr(&printed));
}

#[test]
fn errors_that_two_runs_have_in_common_cancel() {
    let (source, _one) = report(CHAIN, &[]);
    let (larger, _two) = report(CHAIN, &["model.m=1600"]);
    let (clear, verdict) = distinction(&source, &larger);
    assert!(clear.expect("both say").distinguishable, "{verdict}");
    assert_eq!(distinction(&source, &source).0, None, "equal runs differ by nothing");
    let change = clear.expect("both say").change;
    let back = distinction(&larger, &source).0.expect("both say").change;
    // The other way round it is the reciprocal; draws on the edge of a band may change places.
    assert!(((1.0 + change.low) * (1.0 + back.high) - 1.0).abs() < 1e-3, "{change:?} {back:?}");
}

#[test]
fn a_small_difference_is_not_distinguishable() {
    let (source, _one) = report(CHAIN, &[]);
    let (target, _two) = report(CHAIN, &["model.k=504"]);
    let (unclear, verdict) = distinction(&source, &target);
    assert!(!unclear.expect("both say").distinguishable, "{verdict}");
    assert!(verdict.contains("not distinguishable"), "{verdict}");
}

#[test]
fn summary_and_compare_say_it_in_text_and_json() {
    let directory = TempDir::new().expect("directory");
    let out = directory.path().join("out").to_string_lossy().into_owned();
    let simulated = tilescope(&["simulate", CHAIN, "-o", &out]);
    assert!(simulated.status.success(), "{}", stderr(&simulated));
    let text = stdout(&tilescope(&["summary", &out]));
    assert!(text.contains("Confidence") && text.contains("in nine of ten cases"), "{text}");
    let json = stdout(&tilescope(&["summary", &out, "--json"]));
    let json: serde_json::Value = serde_json::from_str(&json).expect("JSON");
    assert!(json["confidence"]["shares"]["measured"].as_f64().expect("a share") > 0.5);
    let compared = stdout(&tilescope(&["compare", &out, &out, "--json"]));
    let compared: serde_json::Value = serde_json::from_str(&compared).expect("JSON");
    assert!(compared["distinction"].is_null(), "{compared}");
}
