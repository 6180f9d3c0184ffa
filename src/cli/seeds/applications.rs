//! Figures of whole applications: bytes of code and rates that Graphcore published.

use super::figures::{
    FigureTolerance, MEMORY_GUIDE, PublishedFigure, PublishedFigureKind, figure, first, with_kind,
};
use super::measure::{SimulatedProgram, SpecWithOverrides, program};
use tilescope_report::MemoryCategory;

/// Graphcore's performance results (Bow Pod16) and its ResNet-50 inference benchmark (C600).
const RATES: &str = "published rates";

/// The table's host code is the same for 1 and 4 replicas, so nothing was split over them. Code does
/// not depend on the number of micro-batches.
const CODE_1: SpecWithOverrides = program(
    "bert_large_pod16",
    &[
        "options.replication_factor=1",
        "options.gradient_accumulation=32",
        "options.location.optimizer_state.replicated_tensor_sharding=false",
    ],
);
const CODE_4: SpecWithOverrides = program(
    "bert_large_pod16",
    &[
        "options.gradient_accumulation=32",
        "options.location.optimizer_state.replicated_tensor_sharding=false",
    ],
);

fn code_ratio(runs: &[&SimulatedProgram], category: MemoryCategory) -> Option<f64> {
    let [one, many] = runs else { return None };
    Some(many.category_bytes(category) / one.category_bytes(category))
}

/// Whether a published BERT rate counts packs or sequences is not said. Only sequences are
/// consistent over both phases: they are compared, packs are printed beside them.
pub(super) const APPLICATIONS: &[PublishedFigure] = &[
    figure(
        "code_control_1",
        MEMORY_GUIDE,
        "BERT-Large, control code, 1 replica",
        91_668_904.0,
        FigureTolerance::Relative(0.25),
        &[CODE_1],
        |runs| first(runs, |run| Some(run.category_bytes(MemoryCategory::ControlCode))),
    ),
    figure(
        "code_internal_1",
        MEMORY_GUIDE,
        "BERT-Large, internal exchange code, 1 replica",
        108_270_156.0,
        FigureTolerance::Relative(0.25),
        &[CODE_1],
        |runs| first(runs, |run| Some(run.category_bytes(MemoryCategory::InternalExchangeCode))),
    ),
    with_kind(
        PublishedFigureKind::Fitted,
        figure(
            "code_host_1",
            MEMORY_GUIDE,
            "BERT-Large, host exchange code, 1 replica",
            66_044_276.0,
            FigureTolerance::Relative(0.25),
            &[CODE_1],
            |runs| first(runs, |run| Some(run.category_bytes(MemoryCategory::HostExchangeCode))),
        ),
    ),
    figure(
        "code_global_1",
        MEMORY_GUIDE,
        "BERT-Large, global exchange code, 1 replica",
        1_035_988.0,
        FigureTolerance::Relative(0.25),
        &[CODE_1],
        |runs| first(runs, |run| Some(run.category_bytes(MemoryCategory::GlobalExchangeCode))),
    ),
    with_kind(
        PublishedFigureKind::Fitted,
        figure(
            "code_control_ratio",
            MEMORY_GUIDE,
            "The same, control code, 4 replicas to 1",
            1.277,
            FigureTolerance::Relative(0.15),
            &[CODE_1, CODE_4],
            |runs| code_ratio(runs, MemoryCategory::ControlCode),
        ),
    ),
    with_kind(
        PublishedFigureKind::Fitted,
        figure(
            "code_internal_ratio",
            MEMORY_GUIDE,
            "The same, internal exchange code, 4 replicas to 1",
            1.169,
            FigureTolerance::Relative(0.15),
            &[CODE_1, CODE_4],
            |runs| code_ratio(runs, MemoryCategory::InternalExchangeCode),
        ),
    ),
    figure(
        "code_host_ratio",
        MEMORY_GUIDE,
        "The same, host exchange code, 4 replicas to 1",
        1.002,
        FigureTolerance::Relative(0.15),
        &[CODE_1, CODE_4],
        |runs| code_ratio(runs, MemoryCategory::HostExchangeCode),
    ),
    with_kind(
        PublishedFigureKind::Fitted,
        figure(
            "code_global_ratio",
            MEMORY_GUIDE,
            "The same, global exchange code, 4 replicas to 1",
            4.496,
            FigureTolerance::Relative(0.15),
            &[CODE_1, CODE_4],
            |runs| code_ratio(runs, MemoryCategory::GlobalExchangeCode),
        ),
    ),
    figure(
        "bert_large_pod16",
        RATES,
        "BERT-Large phase 1, PyTorch, sequences per second",
        5_600.0,
        FigureTolerance::Relative(0.2),
        &[program("bert_large_pod16", &[])],
        |runs| first(runs, |run| run.sequences()),
    ),
    figure(
        "bert_large_pod16_packs",
        RATES,
        "The same, packs per second",
        5_600.0,
        FigureTolerance::None,
        &[program("bert_large_pod16", &[])],
        |runs| first(runs, |run| run.throughput()),
    ),
    figure(
        "bert_large_pod16_popart",
        RATES,
        "BERT-Large phase 1, PopART, sequences per second",
        6_044.0,
        FigureTolerance::Relative(0.2),
        &[program("bert_large_pod16", &[])],
        |runs| first(runs, |run| run.sequences()),
    ),
    figure(
        "bert_large_pod16_popart_packs",
        RATES,
        "The same, packs per second",
        6_044.0,
        FigureTolerance::None,
        &[program("bert_large_pod16", &[])],
        |runs| first(runs, |run| run.throughput()),
    ),
    figure(
        "bert_large_seq512_pod16",
        RATES,
        "BERT-Large phase 2, PopART, sequences per second",
        2_126.0,
        FigureTolerance::Relative(0.2),
        &[program("bert_large_seq512_pod16", &[])],
        |runs| first(runs, |run| run.sequences()),
    ),
    figure(
        "bert_large_seq512_pod16_packs",
        RATES,
        "The same, packs per second",
        2_126.0,
        FigureTolerance::None,
        &[program("bert_large_seq512_pod16", &[])],
        |runs| first(runs, |run| run.throughput()),
    ),
    figure(
        "bert_base_pod16",
        RATES,
        "BERT-Base phase 1, PyTorch, sequences per second",
        15_911.0,
        FigureTolerance::Relative(0.2),
        &[program("bert_base_pod16", &[])],
        |runs| first(runs, |run| run.sequences()),
    ),
    figure(
        "bert_base_pod16_packs",
        RATES,
        "The same, packs per second",
        15_911.0,
        FigureTolerance::None,
        &[program("bert_base_pod16", &[])],
        |runs| first(runs, |run| run.throughput()),
    ),
    figure(
        "resnet50_pod16",
        RATES,
        "ResNet-50 training, images per second",
        42_029.0,
        FigureTolerance::Relative(0.2),
        &[program("resnet50_pod16", &[])],
        |runs| first(runs, |run| run.throughput()),
    ),
    figure(
        "resnet50_inference_1",
        RATES,
        "ResNet-50 inference, batch 1",
        3_653.0,
        FigureTolerance::Relative(0.2),
        &[program("resnet50_inference_c600", &["model.batch_size=1"])],
        |runs| first(runs, |run| run.throughput()),
    ),
    figure(
        "resnet50_inference_32",
        RATES,
        "ResNet-50 inference, batch 32",
        14_240.0,
        FigureTolerance::Relative(0.2),
        &[program("resnet50_inference_c600", &[])],
        |runs| first(runs, |run| run.throughput()),
    ),
];
