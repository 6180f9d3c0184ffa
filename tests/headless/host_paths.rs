//! Paths by which a host calls programs: the publications about them, and their effect on a run.

use crate::common::{report, spec};
use std::collections::BTreeMap;
use tilescope_analysis::confidence::Banded;
use tilescope_analysis::insights::{InsightFinding, insights};
use tilescope_analysis::summary::{ExecutionSummary, summary};
use tilescope_report::Report;
use tilescope_report::units::NumberFormat;
use tilescope_sim::cost_constants::{HOST_PATHS, TutorialRate};

fn execution(report: &Report) -> ExecutionSummary {
    summary(report).expect("summary").execution.expect("executed")
}

/// The run of the data-loading tutorial for a rate printed in an edition.
fn tutorial(path: &str, rate: &TutorialRate) -> Report {
    let loader = if rate.synthetic { "synthetic" } else { "async" };
    let overrides = [
        format!("options.host.framework={path}"),
        format!("options.replication_factor={}", rate.replicas),
        format!("options.host.loader={loader}"),
    ];
    let overrides = overrides.each_ref().map(String::as_str);
    report("data_loading", &overrides).0
}

fn band_of_rate(report: &Report) -> Banded {
    let confidence = summary(report).expect("summary").confidence.expect("bands");
    confidence.samples_per_second.expect("a rate")
}

/// The invariant of the table: every printed rate is inside the band of its run.
#[test]
fn bands_hold_every_edition_of_the_tutorial() {
    let mut held = 0;
    for path in HOST_PATHS {
        for rate in path.figures.iter().flat_map(|figure| figure.rates) {
            let band = band_of_rate(&tutorial(path.name, rate));
            assert!(band.holds(rate.samples_per_second), "{}: {rate:?} {band:?}", path.name);
            held += 1;
        }
    }
    assert!(held >= 12, "{held} rates");
}

/// The table leaves the same part of a call unexplained as its publication leaves beside the
/// program.
#[test]
fn unexplained_times_agree_with_the_editions() {
    for path in HOST_PATHS {
        for figure in path.figures {
            let of_one = figure.rates.iter().find(|rate| rate.synthetic && rate.replicas == 1);
            let Some(rate) = of_one else { continue };
            let simulated = execution(&tutorial(path.name, rate));
            let program = simulated.seconds - path.call_seconds;
            let samples = simulated.samples.expect("samples") as f64;
            let left = samples / rate.samples_per_second - program;
            let off = left / figure.seconds - 1.0;
            assert!(off.abs() < 0.05, "{}: {left} s of {rate:?}", figure.source);
        }
    }
}

/// Figures that `reproduce` prints are equal to those in the table of host paths.
#[test]
fn the_table_has_the_reproduced_figures() {
    let text = include_str!("../../assets/published_figures.toml");
    let file: toml::Table = text.parse().expect("TOML");
    let figures = file["figure"].as_array().expect("figures");
    let published: BTreeMap<&str, f64> = figures
        .iter()
        .filter_map(|figure| {
            let value = &figure["published"];
            let value = value.as_float().or_else(|| Some(value.as_integer()? as f64))?;
            Some((figure["id"].as_str()?, value))
        })
        .collect();
    let path = HOST_PATHS.iter().find(|path| path.name == "poptorch").expect("a row");
    let of_default = path.figures.iter().find(|figure| figure.seconds == path.call_seconds);
    for rate in of_default.expect("the default is an edition").rates {
        let kind = if rate.synthetic { "synthetic" } else { "real" };
        let id = format!("loading_{kind}_{}", rate.replicas);
        assert_eq!(published.get(&*id), Some(&rate.samples_per_second), "{id}");
    }
}

/// Times given by the user are more certain than those of a framework whose releases differ.
#[test]
fn a_given_time_has_a_narrower_band() {
    let width = |changes: &[&str]| {
        let changes = [changes, &["options.host.loader=synthetic"]].concat();
        let band = band_of_rate(&report("data_loading", &changes).0);
        band.high() / band.low()
    };
    let (of_path, own) = (width(&[]), width(&["options.host.seconds_per_framework_call=23.73e-3"]));
    assert!(of_path > 1.3 * own, "{of_path} {own}");
}

const MNIST: [&str; 2] = ["options.host.framework=poptorch", "options.device_iterations=1"];

/// The field's most common advice, on a program of its most common framework.
#[test]
fn more_iterations_per_call_are_proposed_and_help() {
    let (before, _one) = report("mnist_pipeline", &MNIST);
    let found = insights(&before, NumberFormat::default()).expect("findings");
    let first: &InsightFinding = found.first().expect("advice");
    assert_eq!(first.rule, "host_call");
    let proposal = first.proposal.as_ref().expect("a change");
    let changes: Vec<String> =
        proposal.changes.iter().map(|(key, value)| format!("{key}={value}")).collect();
    assert!(changes.iter().any(|change| change.starts_with("options.device_iterations=")));
    let changed: Vec<&str> =
        MNIST[..1].iter().copied().chain(changes.iter().map(String::as_str)).collect();
    let (after, _two) = report("mnist_pipeline", &changed);
    let rates = [before, after].map(|report| execution(&report).samples_per_second);
    assert!(rates[1] > rates[0].map(|rate| 4.0 * rate), "{changes:?}: {rates:?}");
}

#[test]
fn explicit_settings_override_defaults_of_a_framework() {
    for path in HOST_PATHS {
        let framework = format!("options.host.framework={}", path.name);
        let seconds = |changes: &[&str]| {
            let spec = spec("mnist_pipeline", &[&[&*framework], changes].concat());
            let of_key = |(key, value): &(String, String)| {
                (key == "options.host.seconds_per_framework_call")
                    .then(|| value.parse::<f64>().expect("a number"))
            };
            spec.effective_values.iter().find_map(of_key)
        };
        assert_eq!(seconds(&[]), Some(path.call_seconds), "{}", path.name);
        let own = "options.host.seconds_per_framework_call=1e-4";
        assert_eq!(seconds(&[own]), Some(1e-4), "{}", path.name);
        // The host of an IPU Model answers at once.
        assert_eq!(seconds(&["target.type=ipu_model"]), Some(0.0), "{}", path.name);
    }
}
