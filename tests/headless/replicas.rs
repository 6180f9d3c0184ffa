//! Replicas beside each other: what they wait for, and copies with the host that are one exchange.

use crate::common;
use tilescope_analysis::host::{held_up, host};
use tilescope_analysis::replicas::replicas;
use tilescope_report::units::{Bytes, Cycles};
use tilescope_report::{
    ExecutionStep, HostDataSource, HostReport, ProgramKind, ReplicaWait, StreamEndpoint, TraceMark,
};
use tilescope_sim::compile;
use tilescope_sim::run::{StepSink, dry_run, run};

const PERCEPTRON: &str = "tests/data/specs/perceptron.toml";

/// How a run went.
#[derive(Default)]
struct Executed {
    /// Executions by kind of program.
    steps: Vec<(ProgramKind, StreamEndpoint)>,
    end: Cycles,
    host_bytes: Bytes,
}

struct ExecutedSink<'a> {
    kinds: &'a [(ProgramKind, StreamEndpoint)],
    executed: Executed,
}

impl StepSink for ExecutedSink<'_> {
    type Error = std::convert::Infallible;

    fn step(&mut self, step: &ExecutionStep) -> Result<(), Self::Error> {
        let kind = self.kinds[step.program.index()];
        self.executed.steps.push(kind);
        for on_ipu in &step.ipus {
            self.executed.end = self.executed.end.max(on_ipu.to_max);
            if kind.0 == ProgramKind::StreamCopyMid {
                self.executed.host_bytes += on_ipu.bytes_in + on_ipu.bytes_out;
            }
        }
        Ok(())
    }

    fn mark(&mut self, _: &TraceMark) -> Result<(), Self::Error> {
        Ok(())
    }
}

/// Runs a spec; what it does, and what its report says about the host.
fn executed(spec: &str, overrides: &[&str]) -> (Executed, HostReport) {
    let spec = common::spec(spec, overrides);
    let compiled = compile(&spec).expect("compiles");
    let programs = compiled.compilation.programs.iter();
    let kinds: Vec<_> = programs.map(|program| (program.kind, program.stream)).collect();
    let ahead = dry_run(&compiled, &spec);
    let mut sink = ExecutedSink { kinds: &kinds, executed: Executed::default() };
    match run(&compiled, &spec, &ahead, &mut sink) {
        Ok(()) => {}
        Err(never) => match never {},
    }
    (sink.executed, ahead.host.expect("a model of samples"))
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
fn replicas_that_are_alike_have_no_waits_of_their_own() {
    assert_eq!(waits(&[]).1, []);
    assert_eq!(waits(&["options.host.slower_instances=2"]).1, [], "all are as slow");
    let factor = "options.host.slower_instance_factor=1";
    assert_eq!(waits(&["options.host.slower_instances=1", factor]).1, []);
}

#[test]
fn a_slower_instance_holds_up_all_replicas_that_sync_together() {
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
fn a_slower_loader_holds_up_the_replicas_of_other_instances() {
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
    // Without gradients to exchange, replicas of a fast instance are not held up.
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
fn what_replicas_wait_for_is_in_the_report_and_breaks_no_law() {
    for together in ["false", "true"] {
        let independent = format!("options.sync_replicas_independently={together}");
        for io in [&[][..], &["options.num_io_tiles=32", "options.overlap_io=inner_loop"]] {
            let overrides =
                [&FOUR[..], &["options.host.slower_instances=1", &independent], io].concat();
            let (report, _directory) = common::report(PERCEPTRON, &overrides);
            assert_eq!(report.verify().expect("verifies"), [], "{overrides:?}");
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
