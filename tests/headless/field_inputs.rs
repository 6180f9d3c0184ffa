//! Programs of users, with the figures that they measured or that were published.
//!
//! Each case cites its source. Bounds are those of the measurement. Where the prediction is known to
//! miss it, they are wider, and the case states the measured figure.

use crate::common;
use tilescope_sim::specification::Spec;
use tilescope_sim::{MOST_RECORDS, ProgramFigures, Simulation, compile};
use tilescope_test_tiers::skipped_in_the_fast_tier;

/// The clock of the second generation, in cycles per microsecond.
const CLOCK: f64 = 1330.0;

/// A figure of a program.
#[derive(Clone, Copy)]
enum MeasuredFigure {
    /// Microseconds of the run, divided by a number of steps.
    Microseconds(u64),
    SamplesPerSecond,
    Cycles,
    /// Bytes of all tiles, without gaps.
    Bytes,
}

/// A file below `tests/data`, overrides, and bounds of a figure.
type Case = (&'static str, &'static [&'static str], MeasuredFigure, [f64; 2]);

const MODEL: &str = "target.type=ipu_model";

const CASES: &[Case] = &[
    // graphcore/tensorflow, matmul_size_test: 7,738,391, 16,126,623 and 12,181,182 bytes.
    ("onnx/dense_bs1.onnx", &[MODEL], MeasuredFigure::Bytes, around(7_738_391.0)),
    ("onnx/dense_bs2.onnx", &[MODEL], MeasuredFigure::Bytes, around(16_126_623.0)),
    (
        "onnx/dense_bs2.onnx",
        &[MODEL, "model.training=false"],
        MeasuredFigure::Bytes,
        around(12_181_182.0),
    ),
    // graphcore/tensorflow, rnn_test, model_cnn1: 8,213,006 cycles.
    (
        "onnx/conv1d_adam.onnx",
        &[MODEL, KERAS[0], "model.optimizer=adam", "options.device_iterations=100"],
        MeasuredFigure::Cycles,
        [0.85 * 8_213_006.0, 1.15 * 8_213_006.0],
    ),
    // graphcore/examples, Keras: 166 to 175 us a step, 219 to 226 of two replicas, 3 ms for one.
    (
        "onnx/digits.onnx",
        &[KERAS[0], KERAS[1], KERAS[2], "options.device_iterations=937"],
        MeasuredFigure::Microseconds(937),
        [166.0, 175.0],
    ),
    (
        "onnx/digits.onnx",
        &[
            KERAS[0],
            KERAS[1],
            KERAS[2],
            "options.device_iterations=468",
            "options.replication_factor=2",
        ],
        MeasuredFigure::Microseconds(468),
        [219.0, 226.0],
    ),
    (
        "onnx/digits.onnx",
        &[KERAS[0], KERAS[1], KERAS[2], "options.device_iterations=1"],
        MeasuredFigure::Microseconds(1),
        [2_700.0, 3_300.0],
    ),
    // The same as a pipeline: 208 to 212 us a micro-batch; the prediction is 10 % lower.
    (
        "specs/digits_pipeline.toml",
        &[KERAS[0]],
        MeasuredFigure::Microseconds(117 * 8),
        [185.0, 212.0],
    ),
];

const KERAS: [&str; 3] =
    ["options.host.framework=keras", "model.loss_output=loss_o", "model.optimizer=sgd"];

/// Cases of large models.
const LARGE: &[Case] = &[
    // optimum-graphcore, introduction, which runs on PopTorch: 557 to 632 sequences per second.
    (
        "specs/squad_train.toml",
        &["options.host.framework=poptorch"],
        MeasuredFigure::SamplesPerSecond,
        [557.0, 632.0],
    ),
    // graphcore/examples, tutorial of ViT: 308 to 315 samples per second with the host, which the
    // spec does not have.
    ("specs/vit_micro_batch_1.toml", &[], MeasuredFigure::SamplesPerSecond, [315.0, 750.0]),
];

/// Bounds 10 % below and above a number.
const fn around(number: f64) -> [f64; 2] {
    [0.9 * number, 1.1 * number]
}

fn spec(file: &str, overrides: &[&str]) -> Spec {
    common::spec(&format!("{}/tests/data/{file}", env!("CARGO_MANIFEST_DIR")), overrides)
}

fn figures(file: &str, overrides: &[&str]) -> ProgramFigures {
    let spec = spec(file, overrides);
    Simulation::compile(&spec, MOST_RECORDS).expect("compiles").figures()
}

fn cycles(file: &str, overrides: &[&str]) -> f64 {
    figures(file, overrides).cycles.expect("it fits").as_f64()
}

fn check(cases: &[Case]) {
    for (file, overrides, figure, [low, high]) in cases {
        let found = match figure {
            MeasuredFigure::Microseconds(steps) => cycles(file, overrides) / CLOCK / *steps as f64,
            MeasuredFigure::SamplesPerSecond => {
                let figures = figures(file, overrides);
                let seconds = figures.cycles.expect("it fits").as_f64() / CLOCK / 1e6;
                figures.samples as f64 / seconds
            }
            MeasuredFigure::Cycles => cycles(file, overrides),
            MeasuredFigure::Bytes => {
                let compiled = compile(&spec(file, overrides)).expect("compiles");
                let mut bytes = 0;
                for (tiles, memory) in compiled.compilation.tile_memory.iter() {
                    bytes += u64::from(tiles.count()) * memory.excluding_gaps().0;
                }
                bytes as f64
            }
        };
        assert!((*low..=*high).contains(&found), "{file} {overrides:?}: {found}");
    }
}

#[test]
fn programs_take_what_users_measured() {
    check(CASES);
}

#[test]
fn large_programs_take_what_users_measured() {
    if !skipped_in_the_fast_tier() {
        check(LARGE);
    }
}

/// Fewer bits of an input take as much less time (graphcore/poptorch, io_performance_test).
#[test]
fn streams_take_the_time_of_their_bytes() {
    let wide = cycles("onnx/io_float32.onnx", &[]);
    for (file, times) in [("float16", 2.0), ("uint8", 4.0), ("int8", 4.0)] {
        let ratio = wide / cycles(&format!("onnx/io_{file}.onnx"), &[]);
        assert!((0.95 * times..=1.05 * times).contains(&ratio), "{file}: {ratio}");
    }
}

/// A model takes images as halves, which its precision is too: 6.3 % less time
/// (pytorch-lightning #13880).
#[test]
fn inputs_of_half_precision_are_worth_it() {
    let file = "specs/half_inputs.toml";
    let ratio = cycles(file, &["options.input_type=float16"]) / cycles(file, &[]);
    assert!((0.93..0.945).contains(&ratio), "{ratio}");
}

/// A pooling over the whole field takes the time of a maximum over it.
#[test]
fn a_maximum_over_the_whole_field_is_a_reduction() {
    let synthetic = ["options.host.loader=synthetic", MODEL];
    let pooling = cycles("onnx/pool_whole_field.onnx", &synthetic);
    assert!((3_000.0..5_000.0).contains(&pooling), "{pooling}");
}

/// Pads and transposed convolutions that other compilers refuse (onnx-tensorrt #847, #593 and #79;
/// TensorRT #195, #1654 and #2910; pytorch/TensorRT #3352).
#[test]
fn rare_pads_and_transposed_convolutions_are_simulated() {
    for file in ["pad_negative", "pad_channel", "pad_reflect", "deconv_output_padding"] {
        assert!(cycles(&format!("onnx/{file}.onnx"), &[]) > 0.0, "{file}");
    }
    assert!(cycles("onnx/deconv_output_shape.onnx", &[]) > 0.0);
    assert!(cycles("onnx/deconv_1d.onnx", &["model.dim.frames=300"]) > 0.0);
}

/// Phases with a single set of IPUs need one IPU. With all tensors in streaming memory, loads that
/// are clustered before the work of a phase save at least a tenth of the cycles (graphcore/popart,
/// streamingmemory_overlap_test).
#[test]
fn clustered_loads_of_phases_on_one_ipu_overlap_with_their_work() {
    let mut overrides: Vec<String> = [
        "model.training=true",
        "model.loss=identity",
        "model.optimizer=adam",
        "target.ipus=1",
        "options.replication_factor=2",
        "options.num_io_tiles=192",
        "options.recomputation=auto",
        "options.execution=phased",
        "options.execution_phase_settings.stages=1",
    ]
    .map(str::to_owned)
    .to_vec();
    for kind in ["weights", "activations", "optimizer_state"] {
        let settings = ["on_chip=false", "use_io_tiles=true", "min_elements_for_off_chip=0"];
        overrides.extend(settings.map(|set| format!("options.location.{kind}.{set}")));
    }
    for kind in ["weights", "optimizer_state"] {
        let settings = ["replicated_tensor_sharding=true", "min_elements_for_rts=2"];
        overrides.extend(settings.map(|set| format!("options.location.{kind}.{set}")));
    }
    let [interleaved, clustered] = ["interleaving", "batch_clustered_io"].map(|order| {
        let order = format!("options.execution_phase_settings.schedule={order}");
        let keys = overrides.iter().chain([&order]).map(String::as_str);
        let found = figures("onnx/phases_one_ipu.onnx", &keys.collect::<Vec<_>>());
        assert_eq!(found.ipus, 2, "one IPU for each replica");
        found.cycles.expect("it fits").as_f64()
    });
    assert!(clustered < 0.9 * interleaved, "{clustered} of {interleaved}");
}
