//! Tries the advice of `tilescope insights --prove`: its claims and measurements, over many specs.

use crate::common::{stderr, stdout, tilescope};
use serde_json::Value;
use std::collections::BTreeSet;
use std::sync::Mutex;
use tilescope_analysis::insights::RULES;
use tilescope_sim::specification::keys::KEYS;
use tilescope_test_tiers::{skipped_in_the_fast_tier, slow_tests};

/// A spec and its changes.
type ProvenSpec = (&'static str, &'static [&'static str]);

/// Unchanged specs for the fast tier.
const FAST_SPECS: [&str; 4] = ["dense_layer", "io_overlap", "prefetch", "too_large"];

/// Bundled specs with quick simulations, and programs that spend their time differently.
const SPECS: &[ProvenSpec] = &[
    ("mnist_pipeline", &[]),
    ("io_overlap", &[]),
    ("data_loading", &[]),
    ("dense_layer", &[]),
    ("prefetch", &[]),
    ("heat_stencil", &[]),
    ("image_blur", &[]),
    ("mat_vec", &[]),
    ("matmul_chain", &[]),
    ("offload", &["options.replication_factor=4"]),
    ("mnist_pipeline", &["options.recomputation=pipeline"]),
    (
        "mnist_pipeline",
        &[
            "options.location.optimizer_state.on_chip=false",
            "options.location.accumulators.on_chip=false",
            "options.gradient_accumulation=9",
        ],
    ),
    ("mnist_pipeline", &["options.gradient_accumulation=40", "model.precision=mixed"]),
    ("mnist_pipeline", &["options.pipeline_schedule=sequential"]),
    ("mnist_pipeline", &["options.execution=sharded"]),
    ("mnist_pipeline", &["target.ipus=2", "options.stages=[[\"B1\", \"B2\", \"B3\"], [\"B4\"]]"]),
    ("io_overlap", &["options.available_memory_proportion=0.05"]),
    (
        "mnist_pipeline",
        &[
            "model.batch_size=80",
            "options.input_type=uint8",
            "options.num_io_tiles=32",
            "options.overlap_io=loops",
        ],
    ),
];

/// Programs that do not fit, or only just do.
const FULL_SPECS: &[ProvenSpec] = &[
    ("too_large", &[]),
    ("mnist_pipeline", &["model.batch_size=2000"]),
    ("mnist_pipeline", &["model.batch_size=4000"]),
    (
        "offload",
        &[
            "model.width=5120",
            "model.classes=5120",
            "options.location.optimizer_state.on_chip=true",
            "options.replication_factor=4",
        ],
    ),
    ("resnet50_inference_c600", &["model.precision=float32", "model.batch_size=48"]),
    (
        "resnet50_inference_c600",
        &["model.precision=float32", "model.batch_size=48", "options.enable_outlining=false"],
    ),
];

/// Keys, or tables of keys, that no rule proposes, with the reasons.
fn not_proposed() -> impl Iterator<Item = (&'static str, &'static str)> {
    let lines = include_str!("../data/not_proposed.txt").lines();
    lines.map(|line| line.split_once(" | ").expect("a key and a reason"))
}

/// Keys that are changed one at a time, in the syntax of `sweep`: the other words of options, other
/// numbers.
const SINGLE_CHANGES: &[&str] = &[
    "model.precision=float32,mixed,float16",
    "options.accumulate_outer_schedule=serial,overlap_cycle_optimized,overlap_memory_optimized",
    "options.available_memory_proportion=0.3,0.9",
    "options.input_type=model,uint8",
    "options.merge_exchange=true,false",
    "options.output_mode=all,final",
    "options.partials_type=float32,float16",
    "options.pipeline_schedule=grouped,interleaved,sequential",
    "options.prefetch_depth=1,3,6",
    "options.recomputation=none,pipeline",
    "options.sync_pattern=full,single_pipeline,replica_and_ladder",
];

/// A proposal that was tried.
struct Tried {
    spec: String,
    rule: String,
    changes: String,
    /// True if it aims to save memory, not time.
    saves_memory: bool,
    /// The bound on its gain, as a share of the time, or of the memory of the fullest tile.
    claim: f64,
    /// Its gain in the same unit; `None` if it was not simulated to the end.
    gain: Option<f64>,
    /// The change of the time per sample; `None` if there is nothing to compare.
    time: Option<f64>,
    outcome: String,
}

fn changes_text(finding: &Value) -> String {
    let changes = finding["changes"].as_object().expect("an object of keys and values");
    let changes = changes.iter().map(|(key, value)| format!("{key} = {value}"));
    changes.collect::<Vec<_>>().join(", ")
}

/// Tries the proposals of a spec, in the order of the output.
fn proven(proven: &ProvenSpec) -> Vec<Tried> {
    let (spec, changed) = proven;
    let arguments = [arguments(proven), vec!["--prove"]].concat();
    let output = tilescope(&arguments);
    assert!(output.status.success(), "{arguments:?}: {}", stderr(&output));
    let found: Vec<Value> = serde_json::from_str(&stdout(&output)).expect("a list");
    let name = [&[*spec], *changed].concat().join(" ");
    let tried = |finding: &Value| {
        let measured = finding.get("measured")?;
        let saves_memory = finding["subject"] == "memory";
        let (time, memory) = (measured["time"].as_f64(), measured["memory"].as_f64());
        let grown = if saves_memory { memory } else { time };
        Some(Tried {
            spec: name.clone(),
            rule: finding["rule"].as_str()?.to_owned(),
            changes: changes_text(finding),
            saves_memory,
            claim: finding["gain"]["share"].as_f64()?,
            gain: grown.map(|grown| -grown),
            time,
            outcome: measured["outcome"].as_str()?.to_owned(),
        })
    };
    found.iter().filter_map(tried).collect()
}

/// Ranks of values: 0 for the least; equal ones share their mean rank.
fn ranks(values: &[f64]) -> Vec<f64> {
    let below = |value: f64| values.iter().filter(|other| **other < value).count() as f64;
    let equal = |value: f64| values.iter().filter(|other| **other == value).count() as f64;
    values.iter().map(|value| below(*value) + (equal(*value) - 1.0) / 2.0).collect()
}

/// The agreement of the orders of two lists: Spearman's rank correlation.
fn rank_correlation(a: &[f64], b: &[f64]) -> f64 {
    let (a, b) = (ranks(a), ranks(b));
    let mean = (a.len() as f64 - 1.0) / 2.0;
    let product = |a: &[f64], b: &[f64]| -> f64 {
        a.iter().zip(b).map(|(a, b)| (a - mean) * (b - mean)).sum()
    };
    product(&a, &b) / (product(&a, &a) * product(&b, &b)).sqrt()
}

fn percent(share: f64) -> String {
    format!("{:.1} %", 100.0 * share).replace("-0.0 %", "0.0 %")
}

/// The table about time in `docs/insights.md`.
fn table_of_time(all: &[Tried]) -> String {
    let mut lines = vec![
        "| spec | rule | changes | upper bound | measured |".to_owned(),
        "|---|---|---|---|---|".to_owned(),
    ];
    lines.extend(all.iter().map(|tried| {
        let gain = tried.gain.map_or_else(|| tried.outcome.replace('_', " "), percent);
        let (spec, rule, changes) = (&tried.spec, &tried.rule, &tried.changes);
        format!("| {spec} | {rule} | `{changes}` | {} | {gain} |", percent(tried.claim))
    }));
    lines.join("\n")
}

/// The table about memory in `docs/insights.md`.
fn table_of_memory(all: &[Tried]) -> String {
    let mut lines = vec![
        "| spec | rule | changes | upper bound | measured | fits | time per sample |".to_owned(),
        "|---|---|---|---|---|---|---|".to_owned(),
    ];
    lines.extend(all.iter().map(|tried| {
        let saved = tried.gain.map_or_else(|| tried.outcome.replace('_', " "), percent);
        let fits = match tried.outcome.as_str() {
            "now_fits" => "now",
            "does_not_fit" => "no",
            _ => "as before",
        };
        let time = tried.time.map_or("-".to_owned(), |time| format!("{:+.1} %", 100.0 * time));
        let (spec, rule, changes) = (&tried.spec, &tried.rule, &tried.changes);
        let claim = percent(tried.claim);
        format!("| {spec} | {rule} | `{changes}` | {claim} | {saved} | {fits} | {time} |")
    }));
    lines.join("\n")
}

/// The table of all keys in `docs/insights.md`.
fn table_of_keys() -> String {
    let mut lines = vec!["| key | rules |".to_owned(), "|---|---|".to_owned()];
    for key in KEYS.iter() {
        let rules = RULES.iter().filter(|rule| rule.keys.contains(&&*key.path));
        let rules: Vec<&str> = rules.map(|rule| rule.name).collect();
        if !rules.is_empty() {
            lines.push(format!("| `{}` | {} |", key.path, rules.join(", ")));
        }
    }
    lines.extend(not_proposed().map(|(key, reason)| {
        if KEYS.iter().any(|of| of.path == key) {
            format!("| `{key}` | none: {reason} |")
        } else {
            format!("| all others of `[{key}]` | none: {reason} |")
        }
    }));
    lines.join("\n")
}

/// The number of gains within 0.5 and 1.1 of their claims, the number of all proposals that ran, and
/// the rank correlation of claims and gains.
fn near_their_claims(all: &[Tried]) -> (usize, usize, f64) {
    let shown: Vec<(f64, f64)> =
        all.iter().filter_map(|tried| Some((tried.claim, tried.gain?))).collect();
    let close = shown.iter().filter(|(claim, gain)| (0.5..=1.1).contains(&(gain / claim))).count();
    let (claims, gains): (Vec<f64>, Vec<f64>) = shown.iter().copied().unzip();
    (close, shown.len(), rank_correlation(&claims, &gains))
}

/// The arguments of `insights` for a spec, without `--prove`.
fn arguments((spec, changed): &ProvenSpec) -> Vec<&'static str> {
    let mut arguments = vec!["insights", *spec, "--json"];
    arguments.extend(changed.iter().flat_map(|change| ["--set", *change]));
    arguments
}

/// Checks that the first proposal for a program that fits gains time, as listed before anything is
/// tried.
fn first_proposal_gains(spec: &ProvenSpec, all: &[Tried]) {
    let output = tilescope(&arguments(spec));
    assert!(output.status.success(), "{}", stderr(&output));
    let found: Vec<Value> = serde_json::from_str(&stdout(&output)).expect("a list");
    let name = [&[spec.0], spec.1].concat().join(" ");
    let of_time = found.iter().filter(|finding| finding["subject"] == "time");
    let Some(first) = of_time.into_iter().find(|finding| finding["changes"].is_object()) else {
        return;
    };
    let rule = first["rule"].as_str().expect("a name");
    let changes = changes_text(first);
    let mut tried = all
        .iter()
        .filter(|tried| tried.spec == name && tried.rule == rule && tried.changes == changes);
    let gain = tried.next().and_then(|tried| tried.gain);
    assert!(gain.is_some_and(|gain| gain >= 0.005), "{name}: {rule}: {changes} gains {gain:?}");
}

#[test]
fn advice_holds_when_it_is_tried() {
    let is_fast = |(spec, changes): &&ProvenSpec| changes.is_empty() && FAST_SPECS.contains(spec);
    let specs = SPECS.iter().chain(FULL_SPECS).filter(|spec| slow_tests() || is_fast(spec));
    let all: Vec<Tried> = specs.flat_map(proven).collect();
    // A bound must hold, up to rounding of cycles.
    for Tried { spec, rule, changes, claim, gain, .. } in &all {
        assert!(
            gain.is_none_or(|gain| gain <= claim + 0.001),
            "{spec}, {rule}: {changes} gains {gain:?}, at most {claim}"
        );
    }
    if !slow_tests() {
        return documented_among_others(all);
    }
    let rules: BTreeSet<&str> = all.iter().map(|tried| tried.rule.as_str()).collect();
    for rule in RULES.iter().filter(|rule| !rule.keys.is_empty()) {
        assert!(rules.contains(rule.name), "nothing that {} proposes was tried", rule.name);
    }
    for spec in SPECS {
        first_proposal_gains(spec, &all);
    }
    let (of_memory, of_time): (Vec<Tried>, Vec<Tried>) =
        all.into_iter().partition(|tried| tried.saves_memory);
    let (close, shown, correlation) = near_their_claims(&of_time);
    assert!(close * 100 >= shown * 80, "{close} of {shown} gain nearly their upper bound");
    assert!(correlation > 0.8, "rank correlation {correlation}");
    // Claims about memory ignore the planner's use of the freed space.
    let (close, shown, correlation) = near_their_claims(&of_memory);
    assert!(shown * 10 >= of_memory.len() * 9, "{shown} of {} save memory", of_memory.len());
    assert!(close * 10 >= shown * 7, "{close} of {shown} save nearly their upper bound");
    assert!(correlation > 0.7, "rank correlation {correlation}");
    documented("proposals that were tried", &table_of_time(&of_time));
    documented("proposals that save memory", &table_of_memory(&of_memory));
}

/// Checks that the measured gains of some programs are those of `docs/insights.md`.
fn documented_among_others(tried: Vec<Tried>) {
    let document = std::fs::read_to_string(document()).expect("docs/insights.md");
    let (of_memory, of_time): (Vec<Tried>, Vec<Tried>) =
        tried.into_iter().partition(|tried| tried.saves_memory);
    assert!(!of_memory.is_empty() && !of_time.is_empty());
    for row in table_of_time(&of_time).lines().chain(table_of_memory(&of_memory).lines()) {
        assert!(document.lines().any(|line| line == row), "docs/insights.md: {UPDATE}: {row}");
    }
}

/// Every key is proposed by a rule or has a reason why not.
#[test]
fn every_key_is_proposed_or_has_a_reason() {
    let proposed: BTreeSet<&str> = RULES.iter().flat_map(|rule| rule.keys).copied().collect();
    let is_of = |path: &str, table: &str| {
        path.strip_prefix(table).is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
    };
    let left: Vec<&str> =
        KEYS.iter().map(|key| &*key.path).filter(|path| !proposed.contains(path)).collect();
    for path in &left {
        let reason = not_proposed().find(|(table, _)| is_of(path, table));
        assert!(reason.is_some(), "no rule proposes {path}, and there is no reason why");
    }
    for (table, _) in not_proposed() {
        assert!(left.iter().any(|path| is_of(path, table)), "nothing is left of {table}");
    }
    for path in proposed {
        assert!(KEYS.iter().any(|key| key.path == path), "{path} is no key");
    }
    documented("keys and their rules", &table_of_keys());
}

/// The command that regenerates the tables of the document.
const UPDATE: &str =
    "UPDATE_DOCS=1 TILESCOPE_SLOW_TESTS=1 cargo test --test headless proven_insights";

fn document() -> std::path::PathBuf {
    std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/insights.md")
}

/// Tests run in parallel: each inserts its tables into the output of the others.
static DOCUMENT: Mutex<()> = Mutex::new(());

/// Checks that `docs/insights.md` has this table at its place.
fn documented(place: &str, table: &str) {
    let _alone = DOCUMENT.lock();
    const END: &str = "\n<!-- end -->";
    let begin = format!("<!-- {place} -->\n");
    let path = document();
    let text = std::fs::read_to_string(&path).expect("docs/insights.md");
    let (before, rest) = text.split_once(&begin).expect("a place for the table");
    let (_, after) = rest.split_once(END).expect("an end of the table");
    let expected = format!("{before}{begin}{table}{END}{after}");
    if std::env::var_os("UPDATE_DOCS").is_some() {
        return std::fs::write(&path, expected).expect("writing docs/insights.md");
    }
    assert!(text == expected, "docs/insights.md differs: {UPDATE}");
}

#[test]
fn proposals_that_cannot_be_tried_are_reported() {
    let report = crate::common::tilescope(&["insights", "no such spec", "--prove"]);
    assert_eq!(report.status.code(), Some(2), "{}", stderr(&report));
    let directory = tempfile::tempdir().expect("directory");
    tilescope_fixtures::ReportBuilder::new(1, 4).write(directory.path()).expect("writes");
    let path = directory.path().to_string_lossy().into_owned();
    let foreign = tilescope(&["insights", &path, "--prove"]);
    assert_eq!(foreign.status.code(), Some(2));
    assert!(stderr(&foreign).contains("no spec to change"), "{}", stderr(&foreign));
    let both = tilescope(&["insights", &path, "--set", "model.batch_size=2"]);
    assert!(stderr(&both).contains("--set changes a spec"), "{}", stderr(&both));
}

/// A printed change is accepted by `--set`, and has the stated gain.
#[test]
fn a_proposal_can_be_followed_by_hand() {
    let figures = |arguments: &[&str]| -> Value {
        let output = tilescope(&[&["simulate", "prefetch", "--figures"], arguments].concat());
        assert!(output.status.success(), "{}", stderr(&output));
        serde_json::from_str(&stdout(&output)).expect("figures")
    };
    let of_sample = |figures: &Value| {
        figures["seconds"].as_f64().expect("it runs")
            / figures["samples"].as_f64().expect("samples")
    };
    let base = of_sample(&figures(&[]));
    for tried in proven(&("prefetch", &[])) {
        let Some(gain) = tried.gain else { continue };
        let sets: Vec<String> =
            tried.changes.split(", ").map(|change| change.replace(" = ", "=")).collect();
        let arguments: Vec<&str> = sets.iter().flat_map(|set| ["--set", set]).collect();
        let now = of_sample(&figures(&arguments));
        assert!((1.0 - now / base - gain).abs() < 1e-9, "{}: {}", tried.rule, tried.changes);
    }
}

/// The interval of a measured gain is around it, and narrower than that of a time: the errors that both
/// simulations share cancel.
#[test]
fn measured_gains_have_an_interval() {
    let output = tilescope(&["insights", "prefetch", "--prove", "--json"]);
    assert!(output.status.success(), "{}", stderr(&output));
    let found: Vec<Value> = serde_json::from_str(&stdout(&output)).expect("a list");
    let ran = found.iter().map(|finding| &finding["measured"]);
    let ran: Vec<&Value> = ran.filter(|measured| measured["outcome"] == "ran").collect();
    assert!(!ran.is_empty());
    for measured in ran {
        let time = measured["time"].as_f64().expect("a change");
        let [low, high] =
            ["low", "high"].map(|end| measured["interval"][end].as_f64().expect("an end"));
        assert!(low - 0.02 <= time && time <= high + 0.02, "{measured}");
        assert!(high - low < 0.2, "{measured}");
    }
}

/// The least time per sample of a sweep over one key; `None` if the spec has no such key, or no
/// point of it runs.
fn best_of_sweep(spec: &str, varied: &str) -> Option<f64> {
    let output = tilescope(&["sweep", spec, "--vary", varied, "--format", "json"]);
    let found: Value = serde_json::from_str(&stdout(&output)).ok()?;
    let points = found["points"].as_array().expect("points");
    points.iter().filter_map(|point| point["seconds_per_sample"].as_f64()).reduce(f64::min)
}

/// Seconds per sample of an unchanged spec.
fn time_per_sample(spec: &str) -> f64 {
    let output = tilescope(&["simulate", spec, "--figures"]);
    let figures: Value = serde_json::from_str(&stdout(&output)).expect("figures");
    let number = |name: &str| figures[name].as_f64().expect("a number");
    number("seconds") / number("samples")
}

#[test]
fn the_best_single_change_is_proposed() {
    if skipped_in_the_fast_tier() {
        return;
    }
    // Twice and half of the value in the spec.
    let specs = [
        (
            "mnist_pipeline",
            [
                "model.batch_size=20,80",
                "options.device_iterations=5,20",
                "options.gradient_accumulation=5,20",
            ],
        ),
        (
            "data_loading",
            [
                "model.batch_size=8,32",
                "options.device_iterations=25,100",
                "options.gradient_accumulation=1,2",
            ],
        ),
    ];
    for (spec, numbers) in specs {
        let bundled = time_per_sample(spec);
        let all = SINGLE_CHANGES.iter().chain(&numbers);
        let best = all.filter_map(|varied| best_of_sweep(spec, varied));
        let best = best.reduce(f64::min).expect("something runs");
        let gains = proven(&(spec, &[])).into_iter().filter_map(|tried| tried.gain);
        let proposed = bundled * (1.0 - gains.reduce(f64::max).expect("something was proposed"));
        assert!(proposed <= 1.05 * best, "{spec}: {bundled} s, proposed {proposed}, best {best}");
    }
}

/// The proof of a program that does not fit begins with the smallest change that makes it fit, and goes
/// on with one that is certain to.
#[test]
fn changes_that_make_a_program_fit_are_proposed() {
    let output = tilescope(&["insights", "too_large", "--prove", "--json"]);
    assert!(output.status.success(), "{}", stderr(&output));
    let found: Vec<Value> = serde_json::from_str(&stdout(&output)).expect("a list");
    let keys = |finding: &Value| -> Vec<String> {
        finding["changes"].as_object().expect("changes").keys().cloned().collect()
    };
    let fits = |finding: &&Value| finding["measured"]["outcome"] == "now_fits";
    let fitting: Vec<&Value> = found.iter().take_while(fits).collect();
    assert_eq!(keys(fitting[0]), ["model.precision", "target.name"]);
    let is_certain =
        |finding: &Value| !finding["sentence"].as_str().expect("words").contains("uncertain");
    assert!(!is_certain(fitting[0]), "619 of 624 KiB");
    assert!(fitting[1..].iter().all(|finding| is_certain(finding)) && fitting.len() > 1);
    for finding in fitting {
        assert!(!finding["cost"].as_str().expect("words").is_empty());
    }
}
