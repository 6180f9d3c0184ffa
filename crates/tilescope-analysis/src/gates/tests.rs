//! Gates over pairs of reports: known figures, syntax errors, and results.

use super::{Gate, GateViolation, figure_paths, numbers, short_names, summary_values, violations};
use crate::compare::{WorkNormalization, WorkUnit};
use crate::host::{HostEpochSummary, HostSummary, ReplicaWaitSummary};
use crate::summary::summary;
use std::path::Path;
use tilescope_report::Report;
use tilescope_report::units::Cycles;

/// Reports of the repository; the last one was made by hand, with a row in every table.
const SAMPLES: [&str; 4] = [
    "sample_reports/matmul_chain",
    "sample_reports/mnist_pipeline",
    "sample_reports/too_large",
    "tests/data/versions/2.6",
];

fn sample(path: &str) -> Report {
    let repository = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    Report::open(repository.join(path)).expect("the repository has it")
}

fn checked(source: &Report, target: &Report, gates: &[&str]) -> Vec<GateViolation> {
    let gates: Vec<Gate> = gates.iter().map(|gate| gate.parse().expect("is known")).collect();
    let per = WorkNormalization::read(source, target, WorkUnit::Sample).expect("is known");
    violations(&gates, source, target, &per).expect("is known")
}

/// `execution.ipus.*.steps` of `execution.ipus.3.steps`, and so on.
fn pattern(path: &str) -> String {
    let parts: Vec<&str> = path.split('.').collect();
    let part = |at: usize| match parts.get(at.wrapping_sub(1)) {
        Some(&"by_region") => "{region}",
        Some(&"by_category") => "{category}",
        _ if parts[at].parse::<u32>().is_ok() => "*",
        _ => parts[at],
    };
    (0..parts.len()).map(part).collect::<Vec<_>>().join(".")
}

/// A host with epochs, and replicas that wait for each other.
fn host_of_differing_replicas() -> HostSummary {
    let epoch = HostEpochSummary {
        epochs: 1,
        calls: 2,
        samples: 3,
        left_out: 4,
        seconds: 5.0,
        samples_per_second: 6.0,
    };
    let replica = ReplicaWaitSummary {
        first_replica: 0,
        replicas: 1,
        instance: 2,
        loader_cycles: Cycles(3),
        host_cycles: Cycles(4),
        others_cycles: Cycles(5),
        behind_least: Cycles(6),
        behind_most: Cycles(7),
    };
    HostSummary {
        bottleneck: None,
        throughput: Vec::new(),
        call: Vec::new(),
        tensors: Vec::new(),
        epochs: vec![epoch],
        replicas: vec![replica],
    }
}

#[test]
fn every_number_of_a_summary_can_be_gated_and_nothing_else() {
    let mut seen = std::collections::BTreeSet::new();
    let reports = SAMPLES.map(sample);
    for report in &reports {
        let (mut gates, mut above) = (Vec::new(), Vec::new());
        for (path, value) in summary_values(&summary(report).expect("is known")) {
            let gate = format!("{path} > 0");
            assert_eq!(gate.parse::<Gate>().expect("is known").figure(), path);
            if value.as_f64().expect("is a number") > 0.0 {
                above.push(gate.clone());
            }
            gates.push(gate);
            seen.insert(pattern(&path));
        }
        let gates: Vec<&str> = gates.iter().map(String::as_str).collect();
        let violated: Vec<String> =
            checked(report, report, &gates).into_iter().map(|found| found.gate).collect();
        assert_eq!(violated, above);
    }
    // Figures that no report of the repository has.
    let host = serde_json::to_value(host_of_differing_replicas()).expect("is JSON");
    for (path, _) in numbers(host, "host") {
        assert_eq!(format!("{path} > 0").parse::<Gate>().expect("is known").figure(), path);
        seen.insert(pattern(&path));
    }
    let listed: std::collections::BTreeSet<_> = figure_paths().map(str::to_owned).collect();
    assert_eq!(listed, seen, "left: figures of gates; right: numbers of summaries");
    for (short, path) in short_names() {
        assert_eq!(format!("{short} > 0").parse::<Gate>().expect("is known").figure(), path);
    }
}

#[test]
fn gates_accept_earlier_paths() {
    for (earlier, path) in [
        ("target.ipus_alike", "target.identical_ipus"),
        ("host.rates.1.samples_per_second", "host.throughput.1.samples_per_second"),
    ] {
        assert_eq!(format!("{earlier} > 0").parse::<Gate>().expect("is known").figure(), path);
    }
}

#[test]
fn a_report_compared_with_itself_passes_every_gate_on_changes() {
    const LIMITS: [&str; 5] = ["> +0%", "< -0%", "> +0", "< -0", ">= +0.01%"];
    let mut gates = Vec::new();
    for path in figure_paths() {
        let path = path.replace('*', "0").replace("{region}", "overflowed");
        let path = path.replace("{category}", "vertexCode");
        gates.extend(LIMITS.map(|limit| format!("{path} {limit}")));
    }
    let gates: Vec<&str> = gates.iter().map(String::as_str).collect();
    for report in SAMPLES.map(sample) {
        assert_eq!(checked(&report, &report, &gates), []);
    }
}

#[test]
fn changes_are_per_unit_of_work_and_values_are_those_of_the_summary() {
    let (small, large) = (sample(SAMPLES[0]), sample(SAMPLES[1]));
    let gates = [
        "cycles > +2%",
        "cycles < +2%",
        "memory > +1 B",
        "memory.max_tile_including_gaps > 600 KiB",
        "memory.max_tile_including_gaps < 0.6 GiB",
        "execution.ipus.0.proportions.compute > 101%",
    ];
    let found = checked(&small, &large, &gates);
    let violated: Vec<&str> = found.iter().map(|violation| violation.gate.as_str()).collect();
    assert_eq!(
        violated,
        ["cycles > +2%", "memory > +1 B", "memory.max_tile_including_gaps < 0.6 GiB"]
    );
    let [cycles, memory, ..] = &found[..] else { panic!("three gates are violated") };
    assert!(cycles.sentence.starts_with("cycles > +2%: it grew by "), "{}", cycles.sentence);
    assert!(memory.source < memory.target);
    // In the other direction, the other gate is violated.
    let back = checked(&large, &small, &gates);
    assert_eq!(back[0].gate, "cycles < +2%");
}

#[test]
fn missing_figures_violate_gates() {
    let (ran, did_not) = (sample(SAMPLES[0]), sample(SAMPLES[2]));
    let sentence = |source, target, gate: &str| {
        checked(source, target, &[gate]).pop().map(|violation| violation.sentence)
    };
    let said = sentence(&ran, &did_not, "cycles > +2%").expect("is known");
    let expected = "cycles > +2%: the target has no execution.total_cycles: it was not executed";
    assert_eq!(said, expected);
    assert!(
        sentence(&did_not, &ran, "cycles > +2%").expect("is known").contains("the source has no")
    );
    assert!(
        sentence(&ran, &did_not, "cycles > 1").expect("is known").contains("the target has no")
    );
    assert_eq!(sentence(&did_not, &did_not, "cycles > +2%"), None);
    assert_eq!(sentence(&ran, &ran, "memory.by_category.message > +1%"), None);
}

#[test]
fn syntax_errors_in_gates_are_marked() {
    let cases = [
        ("", 0..0, "expected a figure"),
        ("> 3", 0..0, "expected a figure"),
        ("execution.totl_cycles > +2%", 0..21, "did you mean \"execution.total_cycles\"?"),
        ("max_tile_including_gap > 1", 0..22, "\"memory.max_tile_including_gaps\""),
        ("memory.by_category.vertexCod > 1", 0..28, "\"memory.by_category.vertexCode\""),
        ("execution.ipus.3.stepz > 1", 0..22, "\"execution.ipus.3.steps\""),
        ("cycles", 6..6, "expected >, >=, <, <= or =="),
        ("cycles =< 2", 7..9, "expected >, >=, <, <= or =="),
        ("cycles > ", 9..9, "expected a number"),
        ("cycles > +-2%", 9..11, "one sign"),
        ("cycles > 1.2.3", 9..14, "expected a number"),
        ("cycles > 2%", 10..11, "needs a sign"),
        ("cycles > 2 KiB", 11..14, "in cycles (cycles, k, M, G)"),
        ("memory > 2 cycles", 11..17, "in bytes"),
        ("memory > +2% more", 13..17, "unexpected text"),
        ("memory > 1 ms", 11..13, "unknown unit"),
        ("ᛞ\u{0} > 1", 0..1, "unknown figure"),
    ];
    for (text, at, words) in cases {
        let error = text.parse::<Gate>().expect_err("is no gate");
        assert_eq!(error.at, at, "{text:?}: {error}");
        assert!(error.problem.contains(words), "{text:?}: {error}");
        let lines: Vec<String> = error.to_string().lines().map(str::to_owned).collect();
        assert_eq!(lines.len(), 3, "{error}");
        assert_eq!(lines[2].find('^'), Some(2 + at.start), "{error}");
    }
    let long = "cycles > 1".to_owned() + &" ".repeat(100_000);
    assert!(long.parse::<Gate>().is_err());
}
