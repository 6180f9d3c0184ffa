//! The figures: what was published, how close the simulation claims to come, and how to measure it.

use super::measure::{SimulatedProgram, SpecWithOverrides, program};
use tilescope_report::units::grouped;

/// What a figure says about the simulator.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum PublishedFigureKind {
    /// Nothing was fitted on it.
    Predicted,
    /// A constant or a key of the spec was fitted on it: it proves nothing.
    Fitted,
    /// It was put in: it belongs to the machine, not to the model.
    Input,
}

impl PublishedFigureKind {
    /// Word for tables and scripts.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Predicted => "predicted",
            Self::Fitted => "fitted",
            Self::Input => "input",
        }
    }
}

/// How close the simulation claims to come.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum FigureTolerance {
    /// Within this relative error.
    Relative(f64),
    /// Equal.
    Exact,
    /// Above this bound.
    Above(f64),
    /// From one to the other.
    Between(f64, f64),
    /// Nothing is claimed.
    None,
}

/// A published figure.
pub(super) struct PublishedFigure {
    /// Name for scripts.
    pub id: &'static str,
    /// Text it comes from.
    pub publication: &'static str,
    /// What it is.
    pub what: &'static str,
    /// As published.
    pub published: f64,
    /// How close the simulation claims to come.
    pub tolerance: FigureTolerance,
    /// What was done with it.
    pub kind: PublishedFigureKind,
    /// Programs it is measured on.
    pub programs: &'static [SpecWithOverrides],
    /// The measurement; `None` where the programs do not show it.
    pub measure: fn(&[&SimulatedProgram]) -> Option<f64>,
}

pub(super) const MEMORY_GUIDE: &str = "memory guide";
const PIPELINE: &str = "pipelining";

const LOADING: &str = "data loading";

const DATA: SpecWithOverrides = program("data_loading", &[]);
const DATA_4: SpecWithOverrides = program("data_loading", &["options.replication_factor=4"]);
const SYNTHETIC: SpecWithOverrides = program("data_loading", &["options.host.loader=synthetic"]);
const SYNTHETIC_4: SpecWithOverrides =
    program("data_loading", &["options.host.loader=synthetic", "options.replication_factor=4"]);

const MNIST: SpecWithOverrides = program("mnist_pipeline", &[]);
const MNIST_LOADED: SpecWithOverrides = program(
    "mnist_pipeline",
    &[
        "options.host.loader=async",
        "options.host.num_workers=16",
        "options.host.seconds_per_sample=266e-6",
    ],
);
const GUIDE_PIPELINE: SpecWithOverrides =
    program("mnist_pipeline", &["options.stash_convention=memory_guide"]);
const GUIDE_INTERLEAVED: SpecWithOverrides = program(
    "mnist_pipeline",
    &["options.stash_convention=memory_guide", "options.pipeline_schedule=interleaved"],
);

macro_rules! prefetch {
    ($($depth:literal),+) => {
        &[$(program("prefetch", &[concat!("options.prefetch_depth=", $depth)])),+]
    };
}

const KIB: f64 = 1024.0;
const MIB: f64 = 1024.0 * KIB;

pub(super) const fn figure(
    id: &'static str,
    seed: &'static str,
    what: &'static str,
    published: f64,
    tolerance: FigureTolerance,
    programs: &'static [SpecWithOverrides],
    measure: fn(&[&SimulatedProgram]) -> Option<f64>,
) -> PublishedFigure {
    PublishedFigure {
        id,
        publication: seed,
        what,
        published,
        tolerance,
        kind: PublishedFigureKind::Predicted,
        programs,
        measure,
    }
}

pub(super) const fn with_kind(
    kind: PublishedFigureKind,
    figure: PublishedFigure,
) -> PublishedFigure {
    PublishedFigure { kind, ..figure }
}

pub(super) fn first<T>(
    runs: &[&SimulatedProgram],
    measure: impl Fn(&SimulatedProgram) -> Option<T>,
) -> Option<T> {
    measure(runs.first()?)
}

fn fifo(runs: &[&SimulatedProgram], stage: u32) -> Option<f64> {
    first(runs, |run| run.fifo_depth(stage))
}

/// Constants and keys that were fitted on figures of this list.
pub(super) const FITTED_CONSTANTS: [&str; 8] = [
    "host exchange code of a packet (BERT-Large, host exchange code, 1 replica)",
    "code of a collective and its steps (BERT-Large, 4 replicas to 1)",
    "time of a stream handshake (MNIST, cycles per weight update)",
    "rate between host and IPU (real data, 1 replica)",
    "options.host.seconds_per_iteration of data_loading (synthetic data, 1 replica)",
    "options.host.seconds_per_call of data_loading (loader alone)",
    "options.host.copy_bytes_per_second of data_loading (loader alone)",
    "model.m and model.n of prearrange (the sum itself)",
];

/// Figures as the texts print them, text by text.
pub(super) const FIGURES: &[PublishedFigure] = &[
    with_kind(
        PublishedFigureKind::Fitted,
        figure(
            "mnist_update_cycles",
            PIPELINE,
            "MNIST, cycles per weight update",
            1_211_970.0,
            FigureTolerance::Relative(0.25),
            &[MNIST],
            |runs| first(runs, |run| run.iteration_cycles()),
        ),
    ),
    figure(
        "mnist_ipu3_in",
        PIPELINE,
        "MNIST, KiB to IPU 3 per update",
        640.0,
        FigureTolerance::Exact,
        &[MNIST],
        |runs| first(runs, |run| Some(run.linked(3).0 / KIB)),
    ),
    figure(
        "mnist_ipu3_out",
        PIPELINE,
        "MNIST, KiB from IPU 3 per update",
        640.0,
        FigureTolerance::Exact,
        &[MNIST],
        |runs| first(runs, |run| Some(run.linked(3).1 / KIB)),
    ),
    figure(
        "mnist_ipu2_out",
        PIPELINE,
        "MNIST, MiB from IPU 2 per update, as printed",
        1.4,
        FigureTolerance::Exact,
        &[MNIST],
        // The picture prints one decimal.
        |runs| first(runs, |run| Some((run.linked(2).1 / MIB * 10.0).round() / 10.0)),
    ),
    figure(
        "mnist_ipu2_in",
        PIPELINE,
        "MNIST, MiB to IPU 2 per update",
        1.8,
        FigureTolerance::Relative(0.25),
        &[MNIST],
        |runs| first(runs, |run| Some(run.linked(2).0 / MIB)),
    ),
    figure(
        "mnist_ipu1_in",
        PIPELINE,
        "MNIST, MiB to IPU 1 per update",
        5.0,
        FigureTolerance::Relative(0.25),
        &[MNIST],
        |runs| first(runs, |run| Some(run.linked(1).0 / MIB)),
    ),
    figure(
        "mnist_ipu1_out",
        PIPELINE,
        "MNIST, MiB from IPU 1 per update",
        5.3,
        FigureTolerance::Relative(0.25),
        &[MNIST],
        |runs| first(runs, |run| Some(run.linked(1).1 / MIB)),
    ),
    figure(
        "mnist_ipu0_in",
        PIPELINE,
        "MNIST, MiB to IPU 0 per update",
        4.1,
        FigureTolerance::Relative(0.25),
        &[MNIST],
        |runs| first(runs, |run| Some(run.linked(0).0 / MIB)),
    ),
    figure(
        "mnist_ipu0_out",
        PIPELINE,
        "MNIST, MiB from IPU 0 per update",
        4.2,
        FigureTolerance::Relative(0.25),
        &[MNIST],
        |runs| first(runs, |run| Some(run.linked(0).1 / MIB)),
    ),
    with_kind(
        PublishedFigureKind::Input,
        figure(
            "mnist_calls_per_second",
            PIPELINE,
            "MNIST, host calls per second (the loader's time is put in)",
            15.04,
            FigureTolerance::None,
            &[MNIST_LOADED],
            |runs| first(runs, |run| Some(1.0 / run.seconds())),
        ),
    ),
    figure(
        "mnist_samples_per_call",
        PIPELINE,
        "MNIST, samples per call",
        4_000.0,
        FigureTolerance::Exact,
        &[MNIST],
        |runs| first(runs, |run| run.samples()),
    ),
    figure(
        "steady_state_slot",
        PIPELINE,
        "First slot with all IPUs busy, 4 stages (2N+1)",
        9.0,
        FigureTolerance::Exact,
        &[GUIDE_PIPELINE],
        |runs| first(runs, |run| run.first_full_slot()),
    ),
    figure(
        "fifo_grouped_0",
        MEMORY_GUIDE,
        "FIFO of stage 0, grouped, 4 stages",
        9.0,
        FigureTolerance::Exact,
        &[GUIDE_PIPELINE],
        |runs| fifo(runs, 0),
    ),
    figure(
        "fifo_grouped_1",
        MEMORY_GUIDE,
        "FIFO of stage 1, grouped, 4 stages",
        7.0,
        FigureTolerance::Exact,
        &[GUIDE_PIPELINE],
        |runs| fifo(runs, 1),
    ),
    figure(
        "fifo_grouped_2",
        MEMORY_GUIDE,
        "FIFO of stage 2, grouped, 4 stages",
        5.0,
        FigureTolerance::Exact,
        &[GUIDE_PIPELINE],
        |runs| fifo(runs, 2),
    ),
    figure(
        "fifo_grouped_3",
        MEMORY_GUIDE,
        "FIFO of stage 3, grouped, 4 stages",
        3.0,
        FigureTolerance::Exact,
        &[GUIDE_PIPELINE],
        |runs| fifo(runs, 3),
    ),
    figure(
        "fifo_interleaved",
        MEMORY_GUIDE,
        "FIFO of stage 0, interleaved, 4 stages",
        5.0,
        FigureTolerance::Exact,
        &[GUIDE_INTERLEAVED],
        |runs| fifo(runs, 0),
    ),
    figure(
        "prearrange_cycles",
        MEMORY_GUIDE,
        "Rearranging an operand of a sum, cycles",
        5_800.0,
        FigureTolerance::Relative(0.3),
        &[program("prearrange", &[])],
        |runs| first(runs, |run| run.step_cycles("PreArrange-0")),
    ),
    with_kind(
        PublishedFigureKind::Fitted,
        figure(
            "prearrange_add_cycles",
            MEMORY_GUIDE,
            "The sum itself, cycles (its size is not published)",
            580.0,
            FigureTolerance::Relative(0.3),
            &[program("prearrange", &[])],
            |runs| first(runs, |run| run.step_cycles("Op/Add")),
        ),
    ),
    figure(
        "remote_share_off_chip",
        MEMORY_GUIDE,
        "Share of cycles in remote buffers, state off chip",
        0.58,
        FigureTolerance::Above(0.58),
        &[program("offload", &[])],
        |runs| first(runs, |run| Some(run.remote_share())),
    ),
    figure(
        "remote_share_on_chip",
        MEMORY_GUIDE,
        "The same with state on chip",
        0.0,
        FigureTolerance::Exact,
        &[program("offload", &["options.location.optimizer_state.on_chip=true"])],
        |runs| first(runs, |run| Some(run.remote_share())),
    ),
    figure(
        "prefetch_knee",
        MEMORY_GUIDE,
        "Smallest prefetch depth within 1 % of the best",
        3.0,
        FigureTolerance::Between(2.0, 4.0),
        prefetch!("1", "2", "3", "4", "5", "6", "7", "8"),
        |runs| {
            let best = runs.iter().map(|run| run.cycles).min()?;
            let near = runs.iter().position(|run| run.cycles as f64 <= 1.01 * best as f64)?;
            Some(near as f64 + 1.0)
        },
    ),
    figure(
        "io_hidden",
        MEMORY_GUIDE,
        "Share of host copies hidden behind compute, I/O tiles",
        0.9,
        FigureTolerance::Above(0.9),
        &[program("io_overlap", &[])],
        |runs| first(runs, |run| run.hidden_share()),
    ),
    with_kind(
        PublishedFigureKind::Fitted,
        figure(
            "loading_synthetic_1",
            LOADING,
            "Synthetic data, 1 replica, items per second",
            22_170.0,
            FigureTolerance::Relative(0.05),
            &[SYNTHETIC],
            |runs| first(runs, |run| run.throughput()),
        ),
    ),
    with_kind(
        PublishedFigureKind::Fitted,
        figure(
            "loading_real_1",
            LOADING,
            "Real data, 1 replica",
            17_150.0,
            FigureTolerance::Relative(0.05),
            &[DATA],
            |runs| first(runs, |run| run.throughput()),
        ),
    ),
    figure(
        "loading_synthetic_4",
        LOADING,
        "Synthetic data, 4 replicas",
        40_773.0,
        FigureTolerance::Relative(0.06),
        &[SYNTHETIC_4],
        |runs| first(runs, |run| run.throughput()),
    ),
    figure(
        "loading_real_4",
        LOADING,
        "Real data, 4 replicas",
        36_542.0,
        FigureTolerance::Relative(0.06),
        &[DATA_4],
        |runs| first(runs, |run| run.throughput()),
    ),
    with_kind(
        PublishedFigureKind::Fitted,
        figure(
            "loading_loader_1",
            LOADING,
            "Loader alone, 1 replica",
            70_523.0,
            FigureTolerance::Relative(0.05),
            &[DATA],
            |runs| first(runs, |run| run.loader_throughput()),
        ),
    ),
    with_kind(
        PublishedFigureKind::Fitted,
        figure(
            "loading_loader_4",
            LOADING,
            "Loader alone, 4 replicas",
            182_716.0,
            FigureTolerance::Relative(0.05),
            &[DATA_4],
            |runs| first(runs, |run| run.loader_throughput()),
        ),
    ),
    figure(
        "loading_samples_1",
        LOADING,
        "Samples per call, 1 replica",
        800.0,
        FigureTolerance::Exact,
        &[DATA],
        |runs| first(runs, |run| run.samples()),
    ),
    figure(
        "loading_samples_4",
        LOADING,
        "Samples per call, 4 replicas",
        3_200.0,
        FigureTolerance::Exact,
        &[DATA_4],
        |runs| first(runs, |run| run.samples()),
    ),
];

/// A number in three or more figures, without a fraction where it is large.
pub(super) fn number(value: f64) -> String {
    if value.abs() >= 1000.0 {
        grouped(value.round() as u64)
    } else if value.fract() == 0.0 {
        format!("{value}")
    } else {
        format!("{value:.3}")
    }
}
