//! Machines that cannot be bought: constants changed by a spec, their effects, and their labels
//! everywhere.

use crate::common::{self, spec, stderr, stdout, tilescope};
use serde_json::Value;
use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use tilescope_report::Report;
use tilescope_report::units::Cycles;
use tilescope_sim::specification::keys::{KEYS, SpecKeyType};
use tilescope_sim::specification::{Spec, SpecSource};
use tilescope_sim::{MOST_RECORDS, ProgramFigures, Simulation, simulate};
use tilescope_test_tiers::up_to;

const TABLE: &str = "target.machine.";

/// Keys of the table `[target.machine]`.
fn keys() -> Vec<&'static str> {
    KEYS.iter().map(|key| &*key.path).filter(|path| path.starts_with(TABLE)).collect()
}

/// A program whose figures depend on a constant.
fn program_for(key: &str) -> (&'static str, Vec<&'static str>) {
    match key.trim_start_matches(TABLE) {
        "remote_bytes_per_second" => ("offload", vec![]),
        // The collectives of replicas use both directions.
        "link_ladder_bytes_per_second" => {
            ("mnist_pipeline", vec!["options.device_iterations=2", "options.replication_factor=4"])
        }
        // 128 replicas of one IPU fill two racks.
        "link_gateway_bytes_per_second" => {
            let replicas = ["options.replication_factor=128", "options.stages=[]"];
            (
                "mnist_pipeline",
                [&["target.ipus=1", "options.device_iterations=1"], &replicas[..]].concat(),
            )
        }
        _ => ("mnist_pipeline", vec!["options.device_iterations=2"]),
    }
}

fn figures(spec: &Spec) -> ProgramFigures {
    Simulation::compile(spec, MOST_RECORDS).expect("it compiles").figures()
}

/// The effective value of a key.
fn value(spec: &Spec, key: &str) -> String {
    let found = spec.effective_values.iter().find(|(path, _)| path == key);
    found.unwrap_or_else(|| panic!("{key} has a value")).1.clone()
}

/// Twice the value of a key.
fn doubled(spec: &Spec, key: &str) -> String {
    match value(spec, key) {
        whole if whole.parse::<u64>().is_ok() => (2 * whole.parse::<u64>().unwrap()).to_string(),
        real => format!("{:?}", 2.0 * real.parse::<f64>().expect("a number")),
    }
}

fn with(name: &str, overrides: &[&str], more: &[String]) -> Spec {
    let all: Vec<&str> = overrides.iter().copied().chain(more.iter().map(String::as_str)).collect();
    spec(name, &all)
}

fn refusal(name: &str, overrides: &[&str]) -> String {
    let overrides: Vec<String> = overrides.iter().map(|text| (*text).to_owned()).collect();
    let source = SpecSource::find(name, &overrides).expect("it exists");
    Spec::build(&source).err().map(|error| error.to_string()).unwrap_or_default()
}

#[test]
fn every_constant_changes_something() {
    assert_eq!(keys().len(), 13, "{:?}", keys());
    let mut bases = BTreeMap::new();
    for key in keys() {
        let (name, overrides) = program_for(key);
        let real = spec(name, &overrides);
        assert_eq!(real.machine_changes, []);
        let changed = with(name, &overrides, &[format!("{key}={}", doubled(&real, key))]);
        assert!(changed.machine_changes.iter().any(|of| key.ends_with(&of.key)), "{key}");
        let before = bases.entry((name, overrides.clone())).or_insert_with(|| figures(&real));
        let after = figures(&changed);
        let clock = |spec: &Spec| {
            let hertz = value(spec, "target.machine.clock_hz");
            hertz.parse::<f64>().expect("a number")
        };
        let seconds = |of: &ProgramFigures, spec: &Spec| {
            of.cycles.map(|cycles| cycles.as_f64() / clock(spec))
        };
        let same_time = seconds(before, &real) == seconds(&after, &changed);
        assert!(!same_time || before.fullest_tile != after.fullest_tile, "{key}");
    }
}

/// A value that the machine has already is no change, down to the last byte of the report.
#[test]
fn equal_constants_give_equal_bytes() {
    for name in ["matmul_chain", "offload"] {
        let real = spec(name, &[]);
        let same: Vec<String> =
            keys().iter().map(|key| format!("{key}={}", value(&real, key))).collect();
        let mut same = with(name, &[], &same);
        assert_eq!(same.machine_changes, []);
        assert_eq!(same.effective_values, real.effective_values);
        // A report keeps the text of its spec, which differs.
        same.text.clone_from(&real.text);
        let bytes = |spec: &Spec| {
            let directory = tempfile::tempdir().expect("directory");
            // Not from the store of reports, which would give equal specs one file.
            fs::read(simulate(spec, directory.path(), |_| ()).expect("simulates"))
                .expect("a report")
        };
        assert!(bytes(&same) == bytes(&real), "{name}");
    }
}

#[test]
fn impossible_constants_are_refused() {
    let of_times = ["internal_sync_cycles", "external_sync_cycles", "host_handshake_seconds"];
    for key in keys() {
        for bad in ["0", "-1", "nan", "inf", "1e30", "\"much\"", "true", "[4]"] {
            if bad == "0" && of_times.iter().any(|of| key.ends_with(of)) {
                continue;
            }
            let said = refusal("matmul_chain", &[&format!("{key}={bad}")]);
            assert!(said.contains(key) && said.contains("expected"), "{key}={bad}: {said}");
        }
        let key = KEYS.iter().find(|known| known.path == key).expect("a key");
        let bounded = matches!(
            key.value_type,
            SpecKeyType::Integer(..) | SpecKeyType::RealFrom(..) | SpecKeyType::RealAbove(..)
        );
        assert!(bounded, "{}", key.path);
    }
    let cases: &[(&[&str], &str)] = &[
        (&["target.machine.tiles=1"], "from 64 to 16384"),
        (&["target.machine.tiles=1000000"], "from 64 to 16384"),
        (
            &["target.machine.tiles=1500"],
            "whole columns of 64; the nearest numbers are 1,472 and 1,536",
        ),
        (&["target.machine.tiles=16384", "target.ipus=256"], "exceed the 2,097,152 tiles"),
        (&["target.machine.bytes_per_tile=700000"], "the nearest sizes are 688,128 and 704,512"),
        (&["target.machine.interleaved_offset=16385"], "not a multiple of the memory element size"),
        (&["target.machine.interleaved_offset=638976"], "a tile has 638,976 bytes"),
        (
            &["target.machine.host_bytes_per_second=1e9", "options.host.bytes_per_second=1e9"],
            "options.host.bytes_per_second",
        ),
        (&["target.machine.tiles=64", "options.num_io_tiles=64"], "leave no compute tiles"),
        (&["target.machine.workers=12"], "unknown key"),
        (&["target.power_watts=-1"], "target.power_watts"),
        (&["target.price_per_hour=nan"], "target.price_per_hour"),
        (&["target.currency=\"EURO\""], "did you mean"),
    ];
    for (overrides, words) in cases {
        let said = refusal("matmul_chain", overrides);
        assert!(said.contains(words), "{overrides:?}: {said}");
    }
}

/// If only the memory of a tile is changed, interleaved memory keeps its share of it.
#[test]
fn interleaved_memory_keeps_its_share() {
    let offset = |bytes: u64| {
        let spec = spec("matmul_chain", &[&format!("target.machine.bytes_per_tile={bytes}")]);
        value(&spec, "target.machine.interleaved_offset")
    };
    assert_eq!(offset(624 * 1024), (208 * 1024).to_string());
    assert_eq!(offset(2 * 624 * 1024), (416 * 1024).to_string());
    assert_eq!(offset(64 * 1024), (16 * 1024).to_string());
}

/// A machine with more of something is not slower. Exceptions come from other choices of planner or
/// schedule, and cost little.
#[test]
fn faster_is_never_slower() {
    /// The largest loss from plans that are chosen by estimates.
    const TOLERANCE: f64 = 0.01;
    let faster = [
        ("target.machine.exchange_bytes_per_cycle", 2.0),
        ("target.machine.clock_hz", 2.0),
        ("target.machine.link_pair_bytes_per_second", 2.0),
        ("target.machine.link_ladder_bytes_per_second", 2.0),
        ("target.machine.remote_bytes_per_second", 2.0),
        ("target.machine.host_bytes_per_second", 2.0),
        ("target.machine.host_handshake_seconds", 0.5),
        ("target.machine.external_sync_cycles", 0.5),
        ("target.machine.internal_sync_cycles", 0.5),
    ];
    let specs = ["matmul_chain", "io_overlap", "dense_layer", "mnist_pipeline", "offload"];
    for name in specs.into_iter().take(up_to(2)) {
        let real = spec(name, &[]);
        let seconds = |spec: &Spec| {
            let clock = value(spec, "target.machine.clock_hz").parse::<f64>().expect("a number");
            figures(spec).cycles.expect("it fits").as_f64() / clock
        };
        let before = seconds(&real);
        for (key, factor) in faster {
            let number = value(&real, key);
            let changed = match number.parse::<u64>() {
                Ok(whole) => ((whole as f64 * factor).round() as u64).to_string(),
                Err(_) => format!("{:?}", number.parse::<f64>().expect("a number") * factor),
            };
            let after = seconds(&with(name, &[], &[format!("{key}={changed}")]));
            let slower = after / before - 1.0;
            assert!(slower <= TOLERANCE, "{name}, {key}={changed}: {:.2} %", 100.0 * slower);
        }
    }
}

#[test]
fn more_memory_never_makes_a_program_not_fit() {
    let specs = ["too_large", "io_overlap", "dense_layer", "mnist_pipeline", "offload"];
    for name in specs.into_iter().take(up_to(2)) {
        let mut fitted = false;
        for elements in [39, 48, 60, 78, 156] {
            let bytes = format!("target.machine.bytes_per_tile={}", elements * 16 * 1024);
            let spec = spec(name, &[&bytes]);
            let fits = figures(&spec).cycles.is_some();
            assert!(fits || !fitted, "{name} does not fit in {bytes}");
            fitted |= fits;
        }
    }
}

/// Every tile of a larger chip is in the report, and the floor plan has whole columns.
#[test]
fn reports_hold_tiles_of_any_chip() {
    for tiles in [64, 2944] {
        let key = format!("target.machine.tiles={tiles}");
        let (report, _directory) = common::report("matmul_chain", &[&key]);
        let target = report.target().expect("target");
        assert_eq!((target.tiles_per_ipu, target.tiles_per_column), (tiles, 64));
        assert_eq!(target.machine_name(), format!("mk2, changed: tiles {}", grouped(tiles)));
        assert_eq!(report.verify().expect("verified"), []);
    }
}

fn grouped(number: u32) -> String {
    tilescope_report::units::grouped(number.into())
}

/// Extremes of every range either run or are refused with a reason.
#[test]
fn ends_of_ranges_are_simulated_or_refused() {
    for key in keys() {
        let known = KEYS.iter().find(|known| known.path == key).expect("a key");
        let (least, most) = match known.value_type {
            SpecKeyType::Integer(least, most) => (least.to_string(), most.to_string()),
            SpecKeyType::RealFrom(least, most) => (format!("{least:?}"), format!("{most:?}")),
            _ => panic!("{key} has bounds"),
        };
        for end in [least, most] {
            let overrides = [format!("{key}={end}"), "target.ipus=2".to_owned()];
            let source = SpecSource::find("matmul_chain", &overrides).expect("it exists");
            let spec = match Spec::build(&source) {
                Ok(spec) => spec,
                Err(error) => {
                    assert!(error.to_string().contains(TABLE), "{error}");
                    continue;
                }
            };
            let directory = tempfile::tempdir().expect("directory");
            let written = simulate(&spec, directory.path(), |_| ());
            let report =
                Report::open(written.unwrap_or_else(|error| panic!("{key}={end}: {error}")));
            let report = report.expect("opens");
            assert!(report.target().expect("target").is_changed(), "{key}={end}");
            assert_eq!(report.verify().expect("verified"), [], "{key}={end}");
        }
    }
}

fn json(arguments: &[&str]) -> Value {
    let output = tilescope(arguments);
    assert!(output.status.success(), "{}", stderr(&output));
    serde_json::from_str(&stdout(&output)).expect("JSON")
}

#[test]
fn every_place_labels_a_changed_machine() {
    let directory = tempfile::tempdir().expect("directory");
    let place = |name: &str| directory.path().join(name).to_string_lossy().into_owned();
    let (real, changed) = (place("real"), place("changed"));
    assert!(tilescope(&["simulate", "matmul_chain", "-o", &real]).status.success());
    let set = "target.machine.exchange_bytes_per_cycle=16";
    let simulated = tilescope(&["simulate", "matmul_chain", "-o", &changed, "--set", set]);
    let words = "mk2, changed: exchange 16 B/cycle";
    for text in [
        stdout(&simulated),
        stdout(&tilescope(&["summary", &changed])),
        stdout(&tilescope(&["compare", &real, &changed])),
    ] {
        assert!(text.contains(words), "{text}");
    }
    assert!(stdout(&simulated).contains("The machine is not a real one"));
    let summary = json(&["summary", &changed, "--json"]);
    assert_eq!(summary["target"]["machine"], words);
    let changes = summary["target"]["machine_changes"].as_array().expect("a list");
    assert_eq!(changes.len(), 1);
    let change = &changes[0];
    assert_eq!(change["key"], "exchange_bytes_per_cycle");
    assert_eq!((change["inherited"].as_f64(), change["value"].as_f64()), (Some(4.0), Some(16.0)));
    assert_eq!(summary["confidence"], Value::Null, "errors of real machines say nothing of it");
    let summary = json(&["summary", &real, "--json"]);
    assert_eq!(summary["target"]["machine"], "mk2");
    assert_eq!(summary["target"]["machine_changes"], serde_json::json!([]));
    assert!(summary["confidence"].is_object());
}

/// Energy and cost are those of the published machine, of the user's own figures, or absent.
#[test]
fn energy_and_cost_are_whole_or_absent() {
    let directory = tempfile::tempdir().expect("directory");
    let summary = |name: &str, set: &[&str]| {
        let out = directory.path().join(name);
        common::report_file(&spec("mnist_pipeline", set), &out);
        json(&["summary", &out.to_string_lossy(), "--json"])
    };
    let published = summary("published", &[]);
    let (seconds, samples) = (
        published["execution"]["seconds"].as_f64().expect("seconds"),
        published["execution"]["samples"].as_f64().expect("samples"),
    );
    let energy = &published["energy"];
    // Four IPUs are one IPU-M2000, with one host server.
    assert_eq!(energy["watts"], 1_100.0 + 900.0);
    assert_eq!(energy["parts"].as_array().map(Vec::len), Some(2));
    assert_eq!(energy["assumed"], true);
    let joules = energy["joules_per_million_samples"].as_f64().expect("joules");
    assert!((joules - 2_000.0 * seconds / samples * 1e6).abs() < 1e-9 * joules);
    let cost = &published["cost"];
    let per_hour = 32_450.0 / 26_280.0;
    let money = cost["per_million_samples"].as_f64().expect("money");
    assert!((money - per_hour * seconds / 3600.0 / samples * 1e6).abs() < 1e-9 * money);
    assert_eq!(cost["currency"], "USD");

    let given = summary(
        "given",
        &[
            "target.power_watts=500",
            "target.price_per_hour=3.5",
            "target.currency=EUR",
            "target.machine.tiles=2944",
        ],
    );
    assert_eq!(
        (&given["energy"]["watts"], &given["energy"]["assumed"]),
        (&500.0.into(), &false.into())
    );
    assert_eq!(given["energy"]["parts"][0]["basis"], "given");
    assert_eq!(
        (&given["cost"]["per_hour"], &given["cost"]["currency"]),
        (&3.5.into(), &"EUR".into())
    );

    for (name, set) in [
        ("changed", &["target.machine.tiles=2944"][..]),
        ("model", &["target.type=ipu_model"]),
        ("mk1", &["target.name=mk1", "options.device_iterations=1"]),
    ] {
        let absent = summary(name, set);
        assert_eq!((&absent["energy"], &absent["cost"]), (&Value::Null, &Value::Null), "{name}");
    }
}

/// Per million samples, and never as a difference of unknown values or of different currencies.
#[test]
fn energy_and_cost_are_compared_only_in_equal_units() {
    let directory = tempfile::tempdir().expect("directory");
    let place = |name: &str| directory.path().join(name).to_string_lossy().into_owned();
    let make = |name: &str, set: &[&str]| {
        let out = place(name);
        common::report_file(&spec("mnist_pipeline", set), Path::new(&out));
        out
    };
    let ours = make("ours", &[]);
    let longer = make("longer", &["options.device_iterations=40"]);
    let euro = make("euro", &["target.price_per_hour=2", "target.currency=EUR"]);
    let changed = make("changed", &["target.machine.clock_hz=2e9"]);
    let row = |other: &str, name: &str| {
        let compared = json(&["compare", &ours, other, "--json"]);
        let tables = compared["overview"].as_array().expect("tables");
        let rows = tables.iter().flat_map(|table| table["rows"].as_array().expect("rows"));
        let found = rows.into_iter().find(|row| row["name"] == name);
        found.unwrap_or_else(|| panic!("{name} in {compared}")).clone()
    };
    let joules = row(&longer, "Joules per million samples");
    let change = joules["diff"].as_f64().expect("a difference");
    assert!(change < 0.0, "a longer run shares its start: {joules}");
    assert_eq!(row(&euro, "Cost per million samples")["diff"], Value::Null);
    assert_eq!(row(&changed, "Joules per million samples")["diff"], Value::Null);
}

#[test]
fn rows_of_other_machines_are_not_validated() {
    let directory = tempfile::tempdir().expect("directory");
    let file = directory.path().join("rows.csv");
    let text = "name,family,config,target,cycles,memory_bytes,max_tile_bytes_including_gaps\n\
                a,gemm,m=64 k=64 n=64,\"mk2, changed: exchange 16 B/cycle\",1,1,1\n";
    fs::write(&file, text).expect("written");
    let output = tilescope(&["validate", &file.to_string_lossy()]);
    assert_eq!(output.status.code(), Some(2));
    let said = stderr(&output);
    assert!(said.contains("measured on real chips") && said.contains("mk1, mk2, bow"), "{said}");
}

#[test]
fn a_run_in_no_time_is_still_a_run() {
    let fast = spec("matmul_chain", &["target.machine.clock_hz=1e11"]);
    assert!(figures(&fast).cycles > Some(Cycles::ZERO));
}
