//! Replicas: their waits, and copies with the host that are one exchange.

use crate::common::{self, RecordedRun};
use crate::critical_path::check_simulated;
use proptest::prelude::*;
use rusqlite::Connection;
use std::collections::BTreeMap;
use tilescope_analysis::host::{held_up, host};
use tilescope_analysis::replica_classes::sentence;
use tilescope_analysis::replica_rings::replica_links;
use tilescope_analysis::replicas::replicas;
use tilescope_report::units::{Bytes, Cycles, ReplicaClassId, ReplicaIpu};
use tilescope_report::{
    HostDataSource, HostReport, MarkFilter, MarkKind, ProgramKind, ReplicaWait, Report, RingLinks,
    RingOrder, StepActivity, StreamEndpoint,
};
use tilescope_sim::compile;
use tilescope_sim::run::{dry_run, run};
use tilescope_test_tiers::long_cases;

const PERCEPTRON: &str = "tests/data/specs/perceptron.toml";

/// The execution of a run.
#[derive(Default)]
struct Executed {
    /// Executions by kind of program.
    steps: Vec<(ProgramKind, StreamEndpoint)>,
    end: Cycles,
    host_bytes: Bytes,
}

/// Runs a spec. Returns its execution, and the host's part of its report.
fn executed(spec: &str, overrides: &[&str]) -> (Executed, HostReport) {
    let spec = common::spec(spec, overrides);
    let compiled = compile(&spec).expect("compiles");
    let recorded = RecordedRun::of(&compiled, &spec);
    let mut executed = Executed { end: recorded.end(), ..Executed::default() };
    for step in &recorded.steps {
        let program = &compiled.compilation.programs[step.program.index()];
        executed.steps.push((program.kind, program.stream));
        if program.kind == ProgramKind::StreamCopyMid {
            executed.host_bytes +=
                step.ipus.iter().map(|on_ipu| on_ipu.bytes_in + on_ipu.bytes_out).sum::<Bytes>();
        }
    }
    (executed, dry_run(&compiled, &spec).host.expect("a model of samples"))
}

impl Executed {
    fn count(&self, kind: ProgramKind) -> usize {
        self.steps.iter().filter(|(of, _)| *of == kind).count()
    }
}

#[test]
fn neighbouring_copies_with_the_host_are_one_exchange() {
    for overrides in [
        &[][..],
        &["options.sync_pattern=single_pipeline"],
        &["options.sync_pattern=replica_and_ladder", "options.output_mode=all"],
        &["options.num_io_tiles=32"],
        &["options.num_io_tiles=32", "options.overlap_io=inner_loop", "options.output_mode=all"],
        &["target.ipus=1", "options.execution=sharded", "options.output_mode=all"],
    ] {
        let run = |merge: &str| executed(PERCEPTRON, &[overrides, &[merge]].concat()).0;
        let [merged, apart] =
            ["options.merge_exchange=true", "options.merge_exchange=false"].map(run);
        let begins = [&merged, &apart].map(|run| run.count(ProgramKind::StreamCopyBegin));
        assert_eq!(merged.host_bytes, apart.host_bytes, "{overrides:?}");
        assert_eq!(
            merged.count(ProgramKind::StreamCopyMid),
            apart.count(ProgramKind::StreamCopyMid),
            "every copy is still there: {overrides:?}"
        );
        assert!(begins[0] <= begins[1], "{overrides:?}: {begins:?}");
        assert_eq!(begins[0], merged.count(ProgramKind::StreamCopyEnd), "{overrides:?}");
        assert!(merged.count(ProgramKind::Sync) <= apart.count(ProgramKind::Sync));
        assert!(merged.end <= apart.end, "{overrides:?}: {} {}", merged.end, apart.end);
        for merge in ["options.merge_exchange=true", "options.merge_exchange=false"] {
            let (report, _directory) = common::report(PERCEPTRON, &[overrides, &[merge]].concat());
            assert_eq!(report.verify().expect("verifies"), [], "{overrides:?}, {merge}");
        }
    }
}

const FOUR: [&str; 4] = [
    "options.replication_factor=4",
    "options.num_instances=2",
    "options.host.seconds_per_micro_batch=2e-4",
    "options.prefetch_depth=1",
];

fn waits(overrides: &[&str]) -> (Cycles, Vec<ReplicaWait>) {
    let (executed, host) = executed(PERCEPTRON, &[&FOUR[..], overrides].concat());
    (executed.end, host.replicas)
}

#[test]
fn identical_replicas_have_no_separate_waits() {
    assert_eq!(waits(&[]).1, []);
    assert_eq!(waits(&["options.host.slower_instances=2"]).1, [], "all are as slow");
    let factor = "options.host.slower_instance_factor=1";
    assert_eq!(waits(&["options.host.slower_instances=1", factor]).1, []);
}

#[test]
fn a_slower_instance_delays_all_replicas_that_sync_together() {
    let slower = ["options.host.slower_instances=1", "options.host.slower_instance_factor=3"];
    let (end, of_each) = waits(&slower);
    let (all_slower, _) = waits(&["options.host.slower_instances=2", slower[1]]);
    let (none_slower, _) = waits(&[]);
    assert_eq!(end, all_slower, "nobody goes on before the host of the slowest is ready");
    assert!(none_slower < end);
    let [fast, slow] = of_each[..] else { panic!("two instances: {of_each:?}") };
    assert_eq!((fast.first_replica, fast.replicas, fast.instance), (0, 2, 0));
    assert_eq!((slow.first_replica, slow.replicas, slow.instance), (2, 2, 1));
    assert!(fast.others > Cycles::ZERO && slow.others.is_zero(), "{fast:?} {slow:?}");
    assert!(slow.host > fast.host, "{fast:?} {slow:?}");
    let waited = |of: &ReplicaWait| of.host + of.others;
    assert_eq!(waited(&fast), waited(&slow), "who syncs together waits as long");
}

#[test]
fn a_slower_loader_delays_the_replicas_of_other_instances() {
    let loader = [
        "options.host.loader=async",
        "options.host.seconds_per_sample=1e-3",
        "options.host.slower_instances=1",
    ];
    let (_, of_each) = waits(&loader);
    let [fast, slow] = of_each[..] else { panic!("two instances: {of_each:?}") };
    assert!(slow.loader > fast.loader, "{fast:?} {slow:?}");
    assert!(slow.behind.end >= slow.loader - fast.loader, "they come that much later");
    assert!(fast.others > Cycles::ZERO && fast.behind.end.is_zero());
}

#[test]
fn independent_replicas_wait_for_their_own_data_only() {
    let independent = ["options.sync_replicas_independently=true"];
    let (end, of_each) = waits(&independent);
    let (together, _) = waits(&[]);
    assert!(end <= together, "waiting for less never takes longer: {end} {together}");
    assert_eq!(of_each.len(), 4, "one thread serves the two replicas of an instance in turn");
    assert_eq!(of_each.iter().map(|of| of.replicas).sum::<u32>(), 4);
    let firsts: Vec<u32> = of_each.iter().map(|of| of.first_replica).collect();
    assert_eq!(firsts, [0, 1, 2, 3]);
    assert!(of_each[0].host < of_each[1].host, "the first is served first: {of_each:?}");
    // Without gradients to exchange, replicas of a fast instance are not delayed.
    let inference = [
        "model.training=false",
        "options.gradient_accumulation=1",
        "options.device_iterations=20",
        "options.host.slower_instances=1",
    ];
    let (_, alone) = waits(&[&inference[..], &independent].concat());
    let (_, joined) = waits(&inference);
    let others = |waits: &[ReplicaWait]| waits[0].others;
    assert!(joined.len() == 2 && alone.len() == 4);
    assert!(alone[0].host < joined[0].host + others(&joined));
}

#[test]
fn waits_of_replicas_are_in_the_report_and_valid() {
    for together in ["false", "true"] {
        let independent = format!("options.sync_replicas_independently={together}");
        for io in [&[][..], &["options.num_io_tiles=32", "options.overlap_io=inner_loop"]] {
            let overrides =
                [&FOUR[..], &["options.host.slower_instances=1", &independent], io].concat();
            let (report, _directory) = common::report(PERCEPTRON, &overrides);
            assert_eq!(report.verify().expect("verifies"), [], "{overrides:?}");
            check_simulated(&report);
            let said = host(&report).expect("readable").expect("a host").replicas;
            assert_eq!(said.len(), executed(PERCEPTRON, &overrides).1.replicas.len());
            let overview = replicas(&report).expect("readable");
            assert!(!overview.alike && overview.waits == said);
            assert!(held_up(&said).expect("some wait").contains("instance 1"));
        }
    }
}

#[test]
fn scaling_samples_costs_the_loader_or_the_ipu() {
    let scaled_by = |ipu: &str| {
        let (executed, host) = executed(
            PERCEPTRON,
            &[
                "options.host.loader=sync",
                "options.host.seconds_per_sample=1e-6",
                "options.host.seconds_per_normalisation=1e-4",
                &format!("options.normalise_on_ipu={ipu}"),
            ],
        );
        let rate = |source| {
            let rate = host.rates.iter().find(|rate| rate.source == source);
            rate.expect("a rate").samples_per_second
        };
        let rates = [HostDataSource::LoaderAlone, HostDataSource::SyntheticData].map(rate);
        (rates[0], executed.count(ProgramKind::OnTileExecute))
    };
    let ((by_host, executed_by_host), (by_ipu, executed_by_ipu)) =
        (scaled_by("false"), scaled_by("true"));
    assert!(by_ipu > 50.0 * by_host, "{by_ipu} {by_host}");
    assert!(executed_by_ipu > executed_by_host, "it is work of the tiles");
}

/// The contents of a report apart from its spec: every row of every table, as text.
fn contents(report: &Report) -> Vec<String> {
    let db = Connection::open(report.path()).expect("opens");
    let names = "SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT IN \
                 ('meta', 'options', 'checksums', 'notes') ORDER BY name";
    let mut names = db.prepare(names).expect("a list");
    let names: Vec<String> =
        names.query_map([], |row| row.get(0)).expect("names").map(Result::unwrap).collect();
    let mut rows = Vec::new();
    for name in names {
        let mut table = db.prepare(&format!("SELECT * FROM {name}")).expect("a table");
        let columns = table.column_count();
        let row = |row: &rusqlite::Row| {
            let values: Vec<String> =
                (0..columns).map(|at| format!("{:?}", row.get_ref(at).unwrap())).collect();
            Ok(format!("{name}: {}", values.join(" ")))
        };
        rows.extend(table.query_map([], row).expect("rows").map(Result::unwrap));
    }
    rows
}

#[test]
fn replicas_that_are_alike_are_one_class_and_change_nothing() {
    let report = |more: &[&str]| common::report(PERCEPTRON, &[&FOUR[..], more].concat());
    let (alike, _first) = report(&[]);
    assert!(!alike.replica_classes().expect("readable").differ());
    assert_eq!(alike.trace().expect("readable").expect("ran").classes().count(), 1);
    let said = contents(&alike);
    assert!(said.iter().all(|row| !row.starts_with("replica_lanes:")));
    let db = Connection::open(alike.path()).expect("opens");
    let tables = "SELECT count(*) FROM sqlite_schema WHERE name IN \
                  ('replica_classes', 'replicas', 'replica_joins', 'replica_lanes')";
    let count: i64 = db.query_row(tables, [], |row| row.get(0)).expect("a count");
    assert_eq!(count, 0, "not a page is taken by what there is none of");
    // A factor of one makes it no slower.
    let factor = "options.host.slower_instance_factor=1";
    let (as_fast, _second) = report(&["options.host.slower_instances=1", factor]);
    assert!(said == contents(&as_fast), "the reports differ");
    let (all, _third) = report(&["options.host.slower_instances=2"]);
    assert_eq!(all.trace().expect("readable").expect("ran").classes().count(), 1);
}

/// Waits of the replicas of each class, by their lanes: for the loader; for the host beyond the
/// handshake, and for other replicas.
fn waits_of_lanes(overrides: &[&str]) -> (Vec<(Cycles, Cycles)>, Vec<ReplicaWait>) {
    let spec = common::spec(PERCEPTRON, &[&FOUR[..], overrides].concat());
    let compiled = compile(&spec).expect("compiles");
    let ahead = dry_run(&compiled, &spec);
    let mut recorded = RecordedRun::default();
    let Ok(()) = run(&compiled, &spec, &ahead, &mut recorded);
    let programs = &compiled.compilation.programs;
    let mut waits = vec![(Cycles::ZERO, Cycles::ZERO); ahead.replica_classes.classes.len()];
    for step in &recorded.steps {
        let program = &programs[step.program.index()];
        let mut of_class: BTreeMap<ReplicaClassId, (Cycles, Cycles, u64)> = BTreeMap::new();
        for (class, on_ipu) in step.parts() {
            let new = (Cycles::ZERO, on_ipu.to_max, 0);
            let (last, end, ipus) = of_class.entry(class).or_insert(new);
            (*last, *end) = (on_ipu.from_max.max(*last), on_ipu.to_max.max(*end));
            *ipus += 1;
        }
        for (class, (last, end, ipus)) in of_class {
            let (loader, others) = &mut waits[class.index()];
            match (program.kind, program.name.as_str()) {
                (ProgramKind::StreamCopyBegin, _) if program.stream == StreamEndpoint::Host => {
                    *others += end - last - compiled.system.stream_begin_cycles;
                }
                (ProgramKind::Sync, "hostCall/loader") => *loader += end - last,
                (ProgramKind::Sync, "hostCall/return") => {
                    let own = spec.options.host.seconds_per_return;
                    let own = own * compiled.compilation.target.clock.0 as f64;
                    // If an IPU of the class has no step here, it came last, and the others of the
                    // class waited for it.
                    if ipus == u64::from(compiled.compilation.target.ipus_per_replica) {
                        *others += (end - last - Cycles(own.round() as u64)) * ipus;
                    }
                }
                (ProgramKind::Sync, "External")
                    if ahead.replica_classes.joins.contains(&step.program) =>
                {
                    *others += (end - last - compiled.system.external_sync_cycles) * ipus;
                }
                _ => {}
            }
        }
    }
    (waits, ahead.host.expect("a model of samples").replicas)
}

#[test]
fn the_lanes_of_differing_replicas_wait_as_long_as_reported() {
    for overrides in [
        &["options.host.slower_instances=1"][..],
        &["options.sync_replicas_independently=true"],
        &["options.host.slower_instances=1", "options.sync_replicas_independently=true"],
        &["options.host.slower_instances=1", "options.num_io_tiles=32"],
        &[
            "options.host.slower_instances=1",
            "options.host.loader=async",
            "options.host.seconds_per_sample=1e-3",
        ],
    ] {
        let (lanes, waits) = waits_of_lanes(overrides);
        let spec = common::spec(PERCEPTRON, &[&FOUR[..], overrides].concat());
        let compiled = compile(&spec).expect("compiles");
        let classes = dry_run(&compiled, &spec).replica_classes;
        assert!(classes.differ() && !waits.is_empty(), "{overrides:?}");
        for wait in waits {
            let (loader, others) = lanes[classes.class_of(wait.first_replica).index()];
            assert_eq!(loader, wait.loader, "{overrides:?}: {wait:?}");
            assert_eq!(others, wait.host + wait.others, "{overrides:?}: {wait:?}");
        }
    }
}

#[test]
fn every_class_of_replicas_has_its_lanes_marks_and_figures() {
    let slower = ["options.host.slower_instances=1", "options.sync_replicas_independently=true"];
    let (report, _directory) = common::report(PERCEPTRON, &[&FOUR[..], &slower].concat());
    let classes = report.replica_classes().expect("readable");
    let said = sentence(&classes).expect("they differ");
    assert!(said.starts_with("4 replicas differ: 0 (fast host, served 1st of 2)"), "{said}");
    let trace = report.trace().expect("readable").expect("ran");
    let all: Vec<_> = trace.classes().collect();
    assert_eq!(all.len(), classes.classes.len());
    let stages =
        MarkFilter { kind: Some(MarkKind::Stage), ipu: None, window: None, limit: usize::MAX };
    let count = report.marks(&stages).expect("readable").len();
    for of in &all {
        let ends = of.lanes().iter().filter(|lane| lane.sub_lane == 0).map(|lane| lane.range.end);
        assert!(ends.clone().all(|end| end == trace.range().end), "all end with the run");
        let marks = report.marks_of_class(of.class(), &stages).expect("readable");
        assert_eq!(marks.len(), count);
        for mark in &marks {
            let at = ReplicaIpu { class: of.class(), ipu: mark.ipu.expect("an IPU") };
            let lane = trace.lane_at(at, 0).expect("a lane");
            let first = lane.step_at(mark.cycles.start).expect("readable").expect("a step");
            assert_eq!(first.range.start, mark.cycles.start);
            let details = report.step_of_class(of.class(), first.step).expect("readable");
            let details = details.expect("it ran");
            assert!(details.ipus.iter().any(|on| on.ipu == at.ipu && on.range() == first.range));
        }
    }
    // Rows, which older versions read, only describe replica 0.
    let db = Connection::open(report.path()).expect("opens");
    let bars: i64 =
        db.query_row("SELECT count(*) FROM steps_by_ipu", [], |row| row.get(0)).unwrap();
    assert_eq!(bars as u64, trace.bars());
    let waited = |class: usize| -> u64 {
        let totals = all[class].lanes().iter().filter_map(|lane| {
            trace.lane_at(ReplicaIpu { class: lane.class, ipu: lane.ipu }, lane.sub_lane)
        });
        totals.map(|lane| lane.all_totals().unwrap().cycles[StepActivity::Host].0).sum()
    };
    assert!(waited(0) < waited(2), "the slow host's replicas wait for it");
}

#[test]
fn ends_of_an_open_ladder_send_as_much_as_its_middle_and_pass_nothing_on() {
    for schedule in ["serial", "overlap_memory_optimized"] {
        let overrides = [
            "target.name=pod16",
            "options.replication_factor=4",
            &format!("options.accumulate_outer_schedule={schedule}"),
        ];
        let (report, _directory) = common::report(PERCEPTRON, &overrides);
        assert_eq!(report.verify().expect("verifies"), [], "{schedule}");
        let rings = report.replica_rings().expect("readable");
        let [ring] = &rings[..] else { panic!("one ring: {rings:?}") };
        assert_eq!((ring.order, ring.links), (RingOrder::Interleaved, RingLinks::Ladder));
        let links = replica_links(&report).expect("readable");
        let to: Vec<&[u32]> = links.iter().map(|of| &of.to[..]).collect();
        assert_eq!(to, [&[2][..], &[0], &[3], &[1]], "up over the even ones, and down again");
        let passed: Vec<Bytes> = links.iter().map(|of| of.passed_on).collect();
        assert!(links.iter().all(|of| of.sent == of.received && of.sent == links[0].sent));
        assert_eq!(passed, [Bytes::ZERO, links[0].sent, links[0].sent, Bytes::ZERO]);
    }
    // Replicas that fill a rack form a closed ladder: neighbours are adjacent, and nothing passes
    // through.
    let (report, _directory) = common::report(PERCEPTRON, &["options.replication_factor=16"]);
    let links = replica_links(&report).expect("readable");
    assert!(links.iter().all(|of| of.passed_on.is_zero() && of.sent > Bytes::ZERO));
}

/// IPUs of a replica that sum their gradients at the same time share the links; those that take
/// turns have the full links, like a single IPU.
#[test]
fn collectives_at_the_same_time_share_the_links() {
    let update = |schedule: &str| {
        let overrides = [
            "target.name=pod16",
            "options.replication_factor=4",
            "model.width=1024",
            &format!("options.accumulate_outer_schedule={schedule}"),
        ];
        let (report, _directory) = common::report(PERCEPTRON, &overrides);
        assert_eq!(report.verify().expect("verifies"), [], "{schedule}");
        let exchanged = replicas(&report).expect("readable").collectives;
        exchanged.iter().map(|of| of.cycles).sum::<Cycles>()
    };
    let (serial, together) = (update("serial"), update("overlap_memory_optimized"));
    let overrides = [
        "target.name=pod16",
        "target.ipus=1",
        "options.execution=sharded",
        "options.replication_factor=4",
        "model.width=1024",
    ];
    let (report, _directory) = common::report(PERCEPTRON, &overrides);
    assert_eq!(report.verify().expect("verifies"), []);
    let alone: Cycles =
        replicas(&report).expect("readable").collectives.iter().map(|of| of.cycles).sum();
    // Small tensors use both directions if a replica is one IPU.
    assert!((serial.as_f64() / alone.as_f64() - 1.0).abs() < 0.03, "{serial} {alone}");
    assert!(together > serial, "{together} {serial}");
}

/// The most cycles of slicing and adding in a step of these models, besides their elements.
const MOST_TILE_CYCLES: f64 = 1000.0;

/// The length of a half of an all-reduce of one weight.
#[derive(Clone, Copy, Default)]
struct HalfOfAllReduce {
    steps: u32,
    cycles: f64,
    /// Cycles of rounding errors: an element of each tile in each step, and a vector of each
    /// worker.
    rounding: f64,
}

const HALVES: [&str; 2] = ["reduceScatter", "allGather"];

struct AllReduce {
    /// In the order of [`HALVES`].
    halves: [HalfOfAllReduce; 2],
    /// Cycles of a step that do not depend on bytes.
    start: f64,
}

fn all_reduce(overrides: &[String]) -> AllReduce {
    let overrides: Vec<&str> = overrides.iter().map(String::as_str).collect();
    let spec = common::spec(PERCEPTRON, &overrides);
    let compiled = compile(&spec).expect("compiles");
    let recorded = RecordedRun::of(&compiled, &spec);
    let start =
        (compiled.system.external_sync_cycles + compiled.system.collective_step_cycles).as_f64();
    let mut halves = [HalfOfAllReduce::default(); 2];
    for step in &recorded.steps {
        let program = &compiled.compilation.programs[step.program.index()];
        let of_step =
            HALVES.iter().position(|half| program.name.contains(&format!("L0/weight/{half}")));
        let Some(half) = of_step else { continue };
        let found = &mut halves[half];
        let on_ipu = &step.ipus[0];
        let length = (on_ipu.to_max - on_ipu.from_max).as_f64();
        found.cycles += length;
        if program.kind == ProgramKind::GlobalExchange {
            found.steps += 1;
            found.cycles += compiled.system.external_sync_cycles.as_f64();
            let of_bytes = length - compiled.system.collective_step_cycles.as_f64();
            let element = 4.0 * f64::from(on_ipu.active_tiles);
            found.rounding += of_bytes / on_ipu.bytes_out.as_f64() * element + 1.0;
        } else {
            found.rounding += 12.0;
        }
    }
    assert!(halves.iter().all(|half| half.steps > 0), "{overrides:?}: no all-reduce");
    AllReduce { halves, start }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(long_cases(24)))]
    #[test]
    fn collectives_take_no_less_where_more_replicas_take_part(
        (system, most) in prop::sample::select(vec![
            ("mk2", 256u32), ("bow", 256), ("pod16", 16), ("bow_pod64", 64), ("mk1", 16),
        ]),
        ipus in prop::sample::select(vec![1u32, 2, 3, 4]),
        width in 33u32..900,
    ) {
        let overrides = |replicas: u32| -> Vec<String> {
            let model = format!("target.ipus={ipus} model.layers={ipus} model.width={width}");
            let run = "gradient_accumulation=2 pipeline_schedule=sequential";
            common::sets(&format!("target.name={system} {model} replication_factor={replicas} {run}"))
        };
        let rack = most.min(64);
        let mut before: Option<(u32, AllReduce)> = None;
        for replicas in (2..=16).filter(|replicas| replicas * ipus <= most) {
            // A closed ring has more links.
            if (replicas * ipus).is_multiple_of(rack) {
                continue;
            }
            let of_more = all_reduce(&overrides(replicas));
            if let Some((replicas_before, of_fewer)) = &before {
                for (half, name) in HALVES.iter().enumerate() {
                    let (fewer, more) = (&of_fewer.halves[half], &of_more.halves[half]);
                    // Poplibs switches to methods with fewer steps.
                    let dropped = fewer.steps.saturating_sub(more.steps);
                    let left = f64::from(dropped) * (of_more.start + MOST_TILE_CYCLES);
                    prop_assert!(
                        more.cycles + more.rounding + fewer.rounding + left >= fewer.cycles,
                        "{} of {} on {}, {} IPUs each: {} cycles with {}, {} with {} replicas",
                        name, width, system, ipus, fewer.cycles, replicas_before, more.cycles, replicas
                    );
                }
            }
            before = Some((replicas, of_more));
        }
    }
}
