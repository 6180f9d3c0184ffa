//! The host as a machine: cores and links that instances share, explained calls, epochs, and the
//! inputs and outputs of a call.

use crate::common::{self, RecordedRun};
use proptest::prelude::*;
use tilescope_analysis::insights::insights;
use tilescope_analysis::summary::summary;
use tilescope_report::units::{Bytes, NumberFormat};
use tilescope_report::{HostBottleneck, HostCallPart, HostDataSource, HostReport, Report};
use tilescope_sim::compile;
use tilescope_sim::run::dry_run;
use tilescope_sim::specification::Spec;
use tilescope_test_tiers::cases;

const PERCEPTRON: &str = "tests/data/specs/perceptron.toml";

/// The host's part of the report of a spec.
fn host_of(spec: &Spec) -> HostReport {
    let compiled = compile(spec).expect("compiles");
    dry_run(&compiled, spec).host.expect("a model of samples")
}

fn host(overrides: &[&str]) -> HostReport {
    host_of(&common::spec(PERCEPTRON, overrides))
}

fn rate(host: &HostReport, source: HostDataSource) -> Option<f64> {
    let rate = host.rates.iter().find(|rate| rate.source == source);
    rate.map(|rate| rate.samples_per_second)
}

fn real(overrides: &[&str]) -> f64 {
    rate(&host(overrides), HostDataSource::RealData).expect("real data")
}

/// Bytes per second that one host moves to its replicas over a whole call.
fn host_bytes_per_second(overrides: &[&str]) -> f64 {
    let spec = common::spec(PERCEPTRON, overrides);
    let compiled = compile(&spec).expect("compiles");
    let host = dry_run(&compiled, &spec).host.expect("samples");
    let inputs = host.tensors.into_iter().filter(|tensor| tensor.is_input);
    let bytes: Bytes = inputs.map(|tensor| tensor.bytes).sum();
    let end = RecordedRun::of(&compiled, &spec).end();
    bytes.as_f64() / end.seconds_at(compiled.compilation.target.clock)
}

#[test]
fn no_host_exceeds_its_links_for_any_number_of_replicas() {
    for replicas in [1, 2, 4, 8] {
        let moved = host_bytes_per_second(&[
            "model.batch_size=512",
            "options.device_iterations=8",
            "options.host.shared_bytes_per_second=5e8",
            &format!("options.replication_factor={replicas}"),
        ]);
        assert!(moved <= 5e8, "{replicas} replicas: {moved:.4e} bytes per second");
        assert!(replicas < 8 || moved > 4e8, "the links are what limits eight: {moved:.4e}");
    }
}

#[test]
fn twice_the_hosts_are_never_slower_and_faster_if_links_or_cores_are_scarce() {
    let fed = |what: &[&str], hosts: u32| {
        let hosts = format!("options.num_hosts={hosts}");
        let machine =
            ["model.batch_size=256", "options.replication_factor=8", "options.num_instances=8"];
        real(&[&machine[..], what, &[hosts.as_str()]].concat())
    };
    let cases: [(&[&str], bool); 3] = [
        (&[], false),
        (&["options.host.shared_bytes_per_second=2e8"], true),
        (
            &[
                "options.host.loader=sync",
                "options.host.seconds_per_sample=1e-5",
                "options.host.num_workers=4",
                "options.host.cores=8",
            ],
            true,
        ),
    ];
    for (what, is_short) in cases {
        let rates = [1, 2, 4].map(|hosts| fed(what, hosts));
        assert!(rates.is_sorted(), "{what:?}: {rates:?}");
        assert_eq!(rates[1] > 1.5 * rates[0], is_short, "{what:?}: {rates:?}");
    }
}

#[test]
fn more_workers_are_never_slower_and_equal_beyond_the_cores() {
    let loaded = |workers: u32| {
        let workers = format!("options.host.num_workers={workers}");
        let loader = [
            "options.host.loader=async",
            "options.host.seconds_per_sample=1e-4",
            "options.host.cores=16",
            "options.replication_factor=2",
            "options.num_instances=2",
        ];
        real(&[&loader[..], &[workers.as_str()]].concat())
    };
    let rates = [1, 2, 4, 8, 16, 64].map(loaded);
    assert!(rates.is_sorted(), "{rates:?}");
    assert!(rates[2] > 1.9 * rates[1]);
    // Two instances have eight cores each.
    assert!(rates[3] == rates[4] && rates[3] == rates[5], "{rates:?}");
}

/// No part of the host is busy all the time, and yet the IPUs are stalled for half of the call.
#[test]
fn copies_that_stall_ipus_are_reported() {
    let (report, _kept) = common::report("mnist_pipeline", &["options.device_iterations=1"]);
    let rates = report.host().expect("reads").expect("recorded").rates;
    let [synthetic, real] = &rates[..] else { panic!("{rates:?}") };
    assert_eq!(synthetic.bottleneck, HostBottleneck::Ipu);
    assert!(synthetic.samples_per_second > 1.5 * real.samples_per_second);
    assert_eq!(real.bottleneck, HostBottleneck::HostCopies);
}

#[test]
fn callback_threads_divide_the_replicas() {
    let called = |threads: &[&str]| {
        let busy = ["options.host.seconds_per_micro_batch=1e-3", "options.replication_factor=8"];
        let host = host(&[&busy[..], &["options.device_iterations=8"], threads].concat());
        (rate(&host, HostDataSource::RealData).expect("real data"), host.rates)
    };
    let mode = "options.host.stream_callbacks_multi_thread_mode=collaborative";
    let (single, rates) = called(&[]);
    assert_eq!(rates.last().expect("a rate").bottleneck, HostBottleneck::Callbacks);
    let three = called(&[mode, "options.host.num_worker_threads=3"]).0;
    let all = called(&[mode]).0;
    assert!(three > 3.0 * single && all > 1.5 * three, "{single} {three} {all}");
}

#[test]
fn the_parts_of_a_call_are_separate_steps_once_per_call() {
    let parts = [
        ("options.host.seconds_per_framework_call=3e-3", HostCallPart::Framework, 3e-3),
        ("options.host.seconds_per_launch=1e-3", HostCallPart::Launch, 1e-3),
        ("options.host.seconds_per_return=2e-3", HostCallPart::Results, 2e-3),
    ];
    let set: Vec<&str> = parts.iter().map(|(set, ..)| *set).collect();
    let seconds_of = |overrides: &[&str]| {
        let (report, _directory) = common::report(PERCEPTRON, overrides);
        assert_eq!(report.verify().expect("verifies"), []);
        let programs = report.programs().expect("programs");
        let host = report.host().expect("host").expect("recorded");
        let seconds = summary(&report).expect("figures").execution.expect("executed").seconds;
        let total: f64 = host.call.iter().map(|time| time.seconds).sum();
        assert!((total / seconds - 1.0).abs() < 1e-6, "{total} of {seconds} seconds are explained");
        for (_, part, expected) in parts {
            let found = host.call.iter().find(|time| time.part == part);
            assert_eq!(found.map(|time| time.seconds), Some(expected), "{part:?}");
            assert!(
                programs.iter().any(|(_, node)| HostCallPart::of_sync(&node.name) == Some(part))
            );
        }
        seconds
    };
    let one = seconds_of(&set);
    let eight = seconds_of(&[&set[..], &["options.device_iterations=8"]].concat());
    assert!(one > 6e-3 && eight < 7.0 * one, "{one} and {eight} seconds");
}

#[test]
fn waits_for_the_host_call_are_found_by_their_names_and_advice() {
    let overrides = ["options.host.seconds_per_framework_call=3e-3"];
    let (report, _directory) = common::report(PERCEPTRON, &overrides);
    let found = insights(&report, NumberFormat::default()).expect("findings");
    let rules: Vec<&str> = found.iter().map(|finding| finding.rule).collect();
    assert_eq!(rules.first(), Some(&"host_call"), "{rules:?}");
    assert!(!rules.contains(&"waiting"), "{rules:?}");
    let share = |iterations: u32| {
        let (report, _directory) = common::report(
            PERCEPTRON,
            &[overrides[0], &format!("options.device_iterations={iterations}")],
        );
        real_rate(&report)
    };
    assert!(share(16) > 4.0 * share(1), "the advice helps");
}

fn real_rate(report: &Report) -> f64 {
    let execution = summary(report).expect("figures").execution.expect("executed");
    execution.samples_per_second.expect("samples")
}

#[test]
fn the_rate_of_real_data_is_that_of_the_run() {
    for overrides in [
        &[][..],
        &["options.host.loader=async", "options.host.seconds_per_sample=1e-4"],
        &["options.host.loader=sync", "options.host.seconds_per_sample=1e-5"],
        &["options.host.seconds_per_micro_batch=1e-4", "options.device_iterations=4"],
        &["options.num_io_tiles=32", "options.overlap_io=inner_loop"],
    ] {
        let (report, _directory) = common::report(PERCEPTRON, overrides);
        let host = report.host().expect("host").expect("recorded");
        let [total, run] =
            [rate(&host, HostDataSource::RealData).expect("rate"), real_rate(&report)];
        assert!((total / run - 1.0).abs() < 1e-4, "{overrides:?}: {total} and {run}");
        let synthetic = rate(&host, HostDataSource::SyntheticData).expect("rate");
        assert!(synthetic >= total, "{overrides:?}: {synthetic} and {total}");
    }
}

#[test]
fn the_rate_of_synthetic_data_is_that_of_a_program_with_them() {
    let foreseen = rate(&host(&[]), HostDataSource::SyntheticData).expect("rate");
    let made = host(&["options.host.loader=synthetic"]);
    let compiled = rate(&made, HostDataSource::SyntheticData).expect("rate");
    assert!((foreseen / compiled - 1.0).abs() < 1e-3, "{foreseen} and {compiled}");
    assert_eq!(rate(&made, HostDataSource::RealData), None);
    assert_eq!(rate(&made, HostDataSource::LoaderAlone), None);
}

#[test]
fn the_tutorial_on_data_loading_fits_in_one_table() {
    let (report, _directory) = common::report("data_loading", &[]);
    let host = report.host().expect("host").expect("recorded");
    let published = [70_523.0, 22_170.0, 17_150.0];
    for (source, published) in HostDataSource::ALL.into_iter().zip(published) {
        let rate = rate(&host, source).expect("a rate");
        assert!((rate / published - 1.0).abs() < 0.02, "{source:?}: {rate}, published {published}");
    }
    let shapes: Vec<_> =
        host.tensors.iter().map(|tensor| (tensor.is_input, tensor.shape.as_slice())).collect();
    // 50 device iterations of 16 images are the input, and the last micro-batch's results are the
    // output.
    assert!(shapes.contains(&(true, &[800, 1, 128, 128])) && shapes.contains(&(false, &[16, 10])));
    // `len(training_data)` of 10,000 samples in calls of 800.
    assert_eq!((host.epochs[0].calls, host.epochs[0].left_out), (12, 400));
}

#[test]
fn raw_streams_are_faster_than_a_frameworks() {
    let through = |streams: &str| {
        let streams = format!("options.host.streams={streams}");
        real(&["model.batch_size=2048", "options.device_iterations=4", &streams])
    };
    assert!(through("raw") > through("framework"));
}

#[test]
fn fewer_and_smaller_results_and_inputs_take_fewer_bytes() {
    let bytes = |is_input: bool, overrides: &[&str]| -> u64 {
        let tensors = host(overrides).tensors.into_iter();
        tensors.filter(|tensor| tensor.is_input == is_input).map(|tensor| tensor.bytes.0).sum()
    };
    let whole = bytes(false, &[]);
    assert!(bytes(false, &["options.output_type=float16"]) < whole);
    assert!(bytes(false, &["options.returned_outputs=loss"]) < whole);
    let int8 = bytes(true, &["options.input_type=int8"]);
    assert!(int8 < bytes(true, &[]) && int8 == bytes(true, &["options.input_type=uint8"]));
    for smaller in ["output_type=float16", "returned_outputs=loss", "input_type=int8"] {
        for io in ["options.num_io_tiles=0", "options.num_io_tiles=32"] {
            let (report, _directory) =
                common::report(PERCEPTRON, &[&format!("options.{smaller}"), io]);
            assert_eq!(report.verify().expect("verifies"), [], "{smaller}, {io}");
        }
    }
}

#[test]
fn shapes_of_a_calls_inputs_agree_with_their_bytes() {
    let sizes = [("float32", 4), ("int32", 4), ("float16", 2), ("uint8", 1), ("int8", 1)];
    for input in ["model", "float16", "int8"] {
        let set = format!("options.input_type={input}");
        let host = host(&[&set, "options.replication_factor=4", "options.num_instances=2"]);
        for tensor in host.tensors {
            let (_, size) =
                sizes.into_iter().find(|(name, _)| *name == tensor.element_type).expect("known");
            let elements: u64 = tensor.shape.iter().product();
            assert_eq!(Bytes(elements * size), tensor.bytes, "{}", tensor.name);
        }
    }
}

#[test]
fn hosts_that_cannot_share_the_instances_are_refused() {
    let message = common::refusal(PERCEPTRON, &["options.num_hosts=2"]);
    assert!(
        message.contains("options.num_hosts") && message.contains("num_instances"),
        "{message}"
    );
}

#[test]
fn only_simulated_reports_have_a_host() {
    let report = common::report("adder", &[]);
    assert_eq!(report.0.host().expect("host"), None);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(cases(32)))]

    #[test]
    fn epochs_use_every_sample_or_drop_the_last_incomplete_call(
        samples in 1u64..5_000,
        epochs in 1u64..4,
        workers in 1u64..9,
        drop_last: bool,
        iterable: bool,
        mode in proptest::sample::select(&["sync", "async", "async_rebatched", "none"][..]),
    ) {
        let spec = common::spec(PERCEPTRON, &[
            "options.host.seconds_per_worker_start=1e-3",
            &format!("options.host.dataset_samples={samples}"),
            &format!("options.host.epochs={epochs}"),
            &format!("options.host.num_workers={workers}"),
            &format!("options.host.drop_last={drop_last}"),
            &format!("options.host.iterable_dataset={iterable}"),
            &format!("options.host.loader={mode}"),
        ]);
        let compiled = compile(&spec).expect("compiles");
        let call = compiled.compilation.batching.expect("samples").samples_per_call();
        let host = dry_run(&compiled, &spec).host.expect("samples");
        let counted: u64 = host.epochs.iter().map(|epoch| epoch.epochs).sum();
        prop_assert!(counted == epochs || host.epochs.is_empty() && samples < call * workers.max(1));
        let seconds: f64 = host.call.iter().map(|time| time.seconds).sum();
        for epoch in &host.epochs {
            prop_assert_eq!(epoch.samples + epoch.left_out, samples);
            prop_assert!(drop_last || epoch.left_out == 0);
            prop_assert!(iterable || epoch.left_out < call);
            prop_assert!(epoch.calls * call >= epoch.samples && (epoch.calls - 1) * call < epoch.samples);
            prop_assert!(epoch.seconds >= epoch.calls as f64 * seconds * 0.999_999);
        }
        // Later epochs begin no later than the first.
        prop_assert!(host.epochs.windows(2).all(|pair| pair[1].seconds <= pair[0].seconds));
    }
}
