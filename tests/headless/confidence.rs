//! The certainty of figures of a simulated run.

use crate::common::{report, stderr, stdout, tilescope};
use tempfile::TempDir;
use tilescope_analysis::compare::{ComparedReports, ReportAlignment, WorkUnit, overview};
use tilescope_analysis::confidence::{Confidence, Distinction};
use tilescope_analysis::summary::summary;
use tilescope_fixtures::ReportBuilder;
use tilescope_report::units::NumberFormat;
use tilescope_report::{CostBasis, Report};
use tilescope_sim::error_bands::PublishedResiduals;
use tilescope_test_tiers::skipped_in_the_fast_tier;

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
        let Confidence { shares, cycles, samples_per_second, .. } = confidence(&report);
        let cycles = cycles.expect("a band");
        let total: f64 = shares.iter().map(|(_, share)| share).sum();
        assert!((total - 1.0).abs() < 1e-9, "{name}: {total}");
        let run = summary(&report).expect("summary").execution.expect("a run");
        let whole = run.total_cycles.as_f64();
        assert!(cycles.low() < 0.93 * whole && 1.07 * whole < cycles.high(), "{name}: {cycles:?}");
        assert!(0.2 * whole < cycles.low() && cycles.high() < 4.0 * whole, "{name}: {cycles:?}");
        if let (Some(rate), Some(band)) = (run.samples_per_second, samples_per_second) {
            assert!((band.low() * cycles.high() / (rate * whole) - 1.0).abs() < 1e-9, "{name}");
        }
    }
}

#[test]
fn shares_show_the_basis_of_cycles() {
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
        let basis = operation.cost_basis;
        let band = bands.iter().find(|band| {
            band.kind.as_deref() == Some(&operation.kind)
                && basis.is_none_or(|basis| basis == band.basis)
        });
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
    // In the opposite direction it is the reciprocal; random draws at the edge of a band may be
    // reordered.
    assert!(((1.0 + change.low) * (1.0 + back.high) - 1.0).abs() < 1e-3, "{change:?} {back:?}");
}

#[test]
fn a_small_difference_is_not_distinguishable() {
    let (source, _one) = report(CHAIN, &[]);
    let (target, _two) = report(CHAIN, &["model.k=504"]);
    let (unclear, verdict) = distinction(&source, &target);
    assert!(!unclear.expect("both say").distinguishable, "{verdict}");
    assert!(verdict.contains("Not significant"), "{verdict}");
}

#[test]
fn summary_and_compare_print_confidence_in_text_and_json() {
    let directory = TempDir::new().expect("directory");
    let out = directory.path().join("out").to_string_lossy().into_owned();
    let simulated = tilescope(&["simulate", CHAIN, "-o", &out]);
    assert!(simulated.status.success(), "{}", stderr(&simulated));
    let text = stdout(&tilescope(&["summary", &out]));
    assert!(text.contains("Confidence") && text.contains("(90 % interval)"), "{text}");
    let json = stdout(&tilescope(&["summary", &out, "--json"]));
    let json: serde_json::Value = serde_json::from_str(&json).expect("JSON");
    let expected = stdout(&simulated);
    assert!(expected.contains("expected") && expected.contains("90 % interval"), "{expected}");
    for band in [&json["confidence"]["cycles"], &json["memory"]["fullest_tile"]] {
        let end = |name: &str| band[name].as_f64().expect("an end of a band");
        assert!(end("low") < end("value") && end("value") < end("high"), "{band}");
    }
    assert_eq!(json["memory"]["fit"], "fits");
    assert!(json["confidence"]["shares"]["measured"].as_f64().expect("a share") > 0.5);
    let compared = stdout(&tilescope(&["compare", &out, &out, "--json"]));
    let compared: serde_json::Value = serde_json::from_str(&compared).expect("JSON");
    assert!(compared["distinction"].is_null(), "{compared}");
}

/// The error of a prediction of a whole program does not cancel between two programs, but does
/// between two runs of one.
#[test]
fn two_programs_are_distinguished_only_beyond_the_errors_of_each() {
    let (source, _one) = report(CHAIN, &[]);
    let (larger, _two) = report(CHAIN, &["model.m=1600"]);
    let (other, _three) = report("prearrange", &[]);
    let width = |found: &Distinction| (1.0 + found.change.high) / (1.0 + found.change.low);
    let same = distinction(&source, &larger).0.expect("both say");
    let (different, verdict) = distinction(&source, &other);
    let different = different.expect("both say");
    assert!(same.one_program && !different.one_program, "{verdict}");
    assert!(width(&different) > 1.25 && width(&different) > width(&same), "{different:?} {same:?}");
    assert!(verdict.contains("two different programs"), "{verdict}");
    let absolute = confidence(&source).cycles.expect("a band");
    let of_difference = width(&same);
    assert!(absolute.high() / absolute.low() > of_difference, "{absolute:?} {same:?}");
}

/// A program is as uncertain as its host while it waits for it.
#[test]
fn the_band_is_wider_for_less_certain_parts() {
    let width = |report: &Report| {
        let cycles = confidence(report).cycles.expect("a band");
        cycles.high() / cycles.low()
    };
    let [quick, slow] = ["plain", "poptorch"].map(|framework| {
        let framework = format!("options.host.framework={framework}");
        let changes = ["options.device_iterations=1", "options.host.loader=synthetic", &framework];
        let (report, _directory) = report("data_loading", &changes);
        width(&report)
    });
    assert!(slow > 1.5 * quick, "{slow} {quick}");
}

#[test]
fn a_window_over_the_whole_field_was_not_measured() {
    let (report, _directory) = report("resnet50_inference_c600", &["model.batch_size=1"]);
    let operations = report.operations().expect("operations");
    let basis = |kind: &str| {
        let operation = operations.iter().find(|operation| operation.kind == kind);
        operation.unwrap_or_else(|| panic!("no {kind}")).cost_basis
    };
    assert_eq!(basis("max_pool"), None, "windows of 3 x 3");
    assert_eq!(basis("average_pool"), Some(CostBasis::Formula), "windows of 7 x 7");
    assert_eq!(basis("relu"), None, "nothing of the kind was measured");
}

/// Near the limit of memory the model is not certain, and its answers show that.
#[test]
fn near_the_limit_a_program_fits_uncertainly() {
    let directory = TempDir::new().expect("directory");
    let out = directory.path().join("out").to_string_lossy().into_owned();
    let sizes = ["--set", "model.m=1700", "--set", "model.k=4600", "--set", "model.n=2000"];
    let simulated = tilescope(&[&["simulate", "too_large", "-o", &out], &sizes[..]].concat());
    let (report, printed) = (Report::open(&out).expect("opens"), stdout(&simulated));
    let memory = summary(&report).expect("summary").memory.expect("memory");
    let limit = report.target().expect("target").bytes_per_tile.as_f64();
    let tile = memory.fullest_tile.expect("a band");
    assert!(tile.holds(limit), "{tile:?}");
    assert!(memory.fit.is_uncertain() && printed.contains(memory.fit.words()), "{printed}");
    let text = stdout(&tilescope(&["summary", &out]));
    assert!(text.contains("Fullest tile, expected") && text.contains("uncertain"), "{text}");
    let json = stdout(&tilescope(&["summary", &out, "--json"]));
    let json: serde_json::Value = serde_json::from_str(&json).expect("JSON");
    assert!(json["memory"]["fit"].as_str().expect("words").ends_with("_uncertain"), "{json}");
}

const PUBLISHED: &str = "crates/tilescope-sim/src/error_bands/published.csv";

/// The residuals behind bands of whole programs are those that `reproduce` finds.
#[test]
fn bands_agree_with_residuals_of_reproduce() {
    if skipped_in_the_fast_tier() {
        return;
    }
    let found = tilescope(&["reproduce", "--json"]);
    let rows: serde_json::Value = serde_json::from_str(&stdout(&found)).expect("JSON");
    let rows = rows.as_array().expect("a list");
    let lines = rows.iter().filter_map(|row| row["residual"]["line"].as_str());
    let mut text: Vec<&str> = vec![PublishedResiduals::HEAD];
    text.extend(lines);
    let text = format!("{}\n", text.join("\n"));
    let path = format!("{}/{PUBLISHED}", env!("CARGO_MANIFEST_DIR"));
    if std::env::var_os("UPDATE_DOCS").is_some() {
        return std::fs::write(path, text).expect("writing residuals");
    }
    let update = "UPDATE_DOCS=1 TILESCOPE_SLOW_TESTS=1 cargo test --test headless bands_are, twice";
    assert_eq!(text, std::fs::read_to_string(path).expect("residuals"), "{update}");
}
