//! Insights: every rule finds its problem, and none invents one.

use crate::common;
use std::collections::BTreeSet;
use tilescope_analysis::insights::{
    InsightFinding, InsightSubject, InsightVerdict, RULES, insights,
};
use tilescope_analysis::trace::{LaneStepLocation, located_step};
use tilescope_fixtures::ReportBuilder;
use tilescope_report::units::{
    Bytes, Cycles, NumberFormat, TileId, TileRange, TileRuns, VertexTypeId,
};
use tilescope_report::{
    BatchingConfig, CategoryBytes, HostCallPart, ImportedModel, MarkKind, MemoryCategory,
    MemoryRegion, ProgramKind, Report, StreamEndpoint, TileMemory, UnknownOperator, VertexGroup,
    VertexTypeInfo,
};

const KIB: u64 = 1024;

/// Replicas without memory for all of the optimiser state.
const OPTIMIZER_STATE_ON_FULL_TILES: &[&str] = &[
    "model.width=5120",
    "model.classes=5120",
    "options.location.optimizer_state.on_chip=true",
    "options.replication_factor=4",
];

/// Convolutions without memory for code of their own.
const CODE_ON_FULL_TILES: &[&str] =
    &["model.precision=float32", "model.batch_size=44", "options.enable_outlining=false"];

/// A program with all problems at once.
fn bad() -> ReportBuilder {
    let mut report = ReportBuilder::new(2, 8);
    report.parts.target.replicas = 2;
    report.parts.batching = Some(BatchingConfig {
        micro_batch: 1,
        gradient_accumulation: 2,
        replicas: 2,
        device_iterations: 1,
    });
    let begin = report.program(ProgramKind::StreamCopyBegin, "copyFromHost");
    let mid = report.program(ProgramKind::StreamCopyMid, "copyFromHost");
    let remote = report.program(ProgramKind::StreamCopyMid, "weights");
    report.parts.programs[remote.index()].stream = StreamEndpoint::RemoteBuffer;
    let arrange = report.compute("layer/matmul/PreArrange-0", 100);
    let work = report.compute("layer/matmul/Convolve", 100);
    let sync = report.program(ProgramKind::Sync, "External");
    let global = report.program(ProgramKind::GlobalExchange, "allReduce/GlobalPre");
    let operation = report.operation("layer/matmul", "matmul");
    report.parts.programs[arrange.index()].operation = Some(operation);
    let call = report.program(ProgramKind::Sync, &HostCallPart::Framework.sync_name());
    let control = report.program(ProgramKind::StreamCopyBegin, "programId0");
    report.root(ProgramKind::Sequence, "main", &[begin, mid, remote, arrange, work, sync, global]);
    let kind = VertexTypeInfo {
        name: "poplar_rt::DstStridedCopyDA32".to_owned(),
        code_bytes: Bytes(100),
        shares_code: false,
        state_bytes: Bytes(8),
    };
    report.parts.vertex_types.push(kind);
    let last = VertexTypeId(report.parts.vertex_types.len() as u32 - 1);
    let count = TileRuns::uniform(TileRange::first_tiles(4), 50);
    let copies = VertexGroup { vertex_type: last, count, edges: 2, flops: None };
    report.parts.compute_sets[0].vertices.push(copies);
    // One tile of 16 does nearly all the work, most do none.
    let mut cycles = TileRuns::uniform(TileRange::first_tiles(1), Cycles(1000));
    cycles.push(TileRange::new(TileId(1), TileId(3)), Cycles(10));
    report.parts.compute_sets[1].cycles = cycles.clone();
    report.parts.compute_sets[0].cycles = cycles;
    report.variable("layer/stash", MemoryCategory::Variable, 0..1, 100 * KIB, None);
    report.parts.variables[0].shape = "2 x float32[4]".to_owned();
    report.variable("layer/out", MemoryCategory::Variable, 0..1, 700 * KIB, Some(0..2));
    report.live(arrange, 700 * KIB).live(work, 700 * KIB);
    let over = TileMemory {
        including_gaps: Bytes(800 * KIB),
        non_interleaved: Bytes(624 * KIB),
        overflowed: Bytes(176 * KIB),
        always_live: Bytes(100 * KIB),
        peak_not_always_live: Bytes(700 * KIB),
        ..TileMemory::default()
    };
    let small = TileMemory {
        including_gaps: Bytes(KIB),
        non_interleaved: Bytes(KIB),
        ..TileMemory::default()
    };
    report.parts.tile_memory.push(TileRange::first_tiles(1), over);
    report.parts.tile_memory.push(TileRange::new(TileId(1), TileId(16)), small);
    let part = |category, bytes| CategoryBytes {
        category,
        region: MemoryRegion::NonInterleaved,
        overlapped: false,
        bytes,
    };
    let parts = vec![
        part(MemoryCategory::Variable, Bytes(700 * KIB)),
        part(MemoryCategory::InternalExchangeCode, Bytes(80 * KIB)),
        part(MemoryCategory::GlobalExchangeCode, Bytes(20 * KIB)),
    ];
    report.parts.tile_categories.push(TileRange::first_tiles(1), parts);
    for (index, program) in
        [begin, mid, remote, arrange, work, sync, global].into_iter().enumerate()
    {
        let start = index as u64 * 1000;
        report.run(program, start..start + 1000);
    }
    // A copy without a wait shows the length of a handshake.
    report.run(call, 7000..8000).run(control, 8000..8010);
    report.mark(MarkKind::Phase, "ramp-up", 0..3);
    report.mark(MarkKind::Phase, "main", 3..5);
    report.mark(MarkKind::Phase, "ramp-down", 5..7);
    report.mark(MarkKind::Slot, "slot 0", 3..5);
    report.mark(MarkKind::Stage, "A forward", 3..5);
    report.mark(MarkKind::Stage, "B forward", 4..5);
    report.mark(MarkKind::Update, "update", 6..7);
    let source = "com.example.Odd@1".to_owned();
    report.parts.operations[operation.index()].source = Some(source.clone());
    let odd = UnknownOperator { source, count: 1, nodes: vec!["layer/matmul".to_owned()] };
    report.meta.imported = Some(ImportedModel {
        path: "model.onnx".to_owned(),
        unknown: vec![odd],
        ..Default::default()
    });
    report
}

/// A program that fits, but only just.
fn nearly_full() -> ReportBuilder {
    let mut report = ReportBuilder::new(1, 4);
    report.variable("weights", MemoryCategory::Variable, 0..4, 600 * KIB, None);
    report
}

/// A program without problems.
fn good() -> ReportBuilder {
    let mut report = ReportBuilder::new(1, 4);
    let work = report.compute("layer/matmul/Convolve", 1000);
    report.root(ProgramKind::Sequence, "main", &[work]);
    report.run(work, 0..1000);
    report.variable("weights", MemoryCategory::Variable, 0..4, 10 * KIB, None);
    report
}

fn found(report: &ReportBuilder) -> Vec<InsightFinding> {
    let directory = tempfile::tempdir().expect("temporary directory");
    report.write(directory.path()).expect("writes");
    let report = Report::open(directory.path()).expect("opens");
    let found = insights(&report, NumberFormat::default()).expect("reads");
    check(&report, &found);
    found
}

/// Checks every finding: it is a sentence, its gain is a share, its place exists.
fn check(report: &Report, found: &[InsightFinding]) {
    let programs = report.programs().expect("reads");
    let tiles = report.target().expect("reads").tiles_per_replica();
    for finding in found {
        for text in [&finding.sentence, &finding.advice] {
            assert!(text.ends_with('.') && !text.contains("NaN"), "{finding:?}");
            assert!(text.starts_with(|c: char| !c.is_whitespace()), "{finding:?}");
        }
        assert!(!finding.formula.is_empty());
        let gain = finding.gain.share();
        assert!(gain.is_none_or(|share| (0.0..=1.0).contains(&share)), "{finding:?}");
        let rule = RULES.iter().find(|rule| rule.name == finding.rule).expect("a rule");
        for key in finding.proposal.iter().flat_map(|proposal| proposal.changes.keys()) {
            assert!(rule.keys.contains(&key.as_str()), "{} sets {key}", rule.name);
        }
        let place = &finding.place;
        assert!(place.tiles.iter().all(|tile| *tile < TileId(tiles)), "{finding:?}");
        assert!(place.program.is_none_or(|id| programs.get(id).is_some()), "{finding:?}");
        let variable = place.variable.map(|id| report.variable(id).expect("reads"));
        assert!(variable.is_none_or(|found| found.is_some()), "{finding:?}");
        if place.view == "execution-trace" {
            speaks_of_its_step(report, finding);
        }
        #[cfg(feature = "gui")]
        assert!(tilescope_gui::view_names().contains(&place.view), "{finding:?}");
    }
}

/// Checks that a link to the trace leads to a step of the IPU and the program in the finding, and
/// to cycles in which it is visible.
fn speaks_of_its_step(report: &Report, finding: &InsightFinding) {
    let place = &finding.place;
    let found = located_step(report, place).expect("reads").expect("a step");
    let LaneStepLocation { ipu, step, .. } = found.location;
    assert!(place.ipu.is_none_or(|own| own == ipu), "{finding:?}");
    assert!(place.program.is_none_or(|own| step.program == Some(own)), "{finding:?}");
    assert!(found.window.overlaps(step.range), "{finding:?} {found:?}");
    let seen = found.window.intersection(step.range).length();
    assert!(seen * 60 >= found.window.length(), "{finding:?} {found:?}: too narrow to be seen");
    // `IPU 3 waits…`, `Stage B4 on IPU 3 takes…`
    if let Some((_, named)) = finding.sentence.split_once("IPU ") {
        let named: String = named.chars().take_while(char::is_ascii_digit).collect();
        assert_eq!(named, ipu.to_string(), "{finding:?}");
    }
}

#[test]
fn every_rule_finds_its_problem() {
    let mut fired: BTreeSet<&str> = found(&bad()).iter().map(|finding| finding.rule).collect();
    fired.extend(found(&nearly_full()).iter().map(|finding| finding.rule));
    // Proposals concern specs.
    for (spec, overrides) in [
        ("mnist_pipeline", &["options.recomputation=pipeline"][..]),
        ("mnist_pipeline", &["options.location.optimizer_state.on_chip=false"][..]),
        ("offload", &["options.replication_factor=4"][..]),
        ("io_overlap", &[][..]),
        ("io_overlap", &["options.available_memory_proportion=0.05"][..]),
        ("mnist_pipeline", &["options.pipeline_schedule=sequential"][..]),
        ("mnist_pipeline", &["model.batch_size=4000"][..]),
        ("offload", OPTIMIZER_STATE_ON_FULL_TILES),
        ("resnet50_inference_c600", CODE_ON_FULL_TILES),
        ("tests/data/onnx/bert_separate_products.onnx", &["model.precision=float16"]),
    ] {
        let (report, _directory) = common::report(spec, overrides);
        let found = insights(&report, NumberFormat::default()).expect("reads");
        check(&report, &found);
        fired.extend(found.iter().map(|finding| finding.rule));
    }
    for rule in RULES {
        assert!(fired.contains(rule.name), "{} found nothing", rule.name);
    }
}

#[test]
fn image_models_are_recognized_by_their_shape() {
    let advised = |file: &str| {
        let (report, _directory) = common::report(file, &[]);
        let found = insights(&report, NumberFormat::default()).expect("reads");
        found.iter().any(|finding| finding.rule == "input_type")
    };
    assert!(advised("tests/data/onnx/resnet18.onnx"));
    assert!(advised("tests/data/onnx/guide_mnist.onnx"));
    assert!(!advised("tests/data/onnx/bert.onnx"));
}

/// Samples in the type that the model casts them to lose nothing: uint8 is proposed only after it.
#[test]
fn samples_come_in_the_precision_of_the_model_before_a_narrower_one() {
    for (overrides, expected) in [
        (&["model.precision=float16"][..], "float16"),
        (&["model.precision=mixed"], "float16"),
        (&["model.precision=float32"], "uint8"),
        (&["model.precision=float16", "options.input_type=float16"], "uint8"),
    ] {
        let overrides: Vec<&str> = overrides.iter().copied().chain(["model.layers=1"]).collect();
        let (report, _directory) = common::report("tests/data/specs/half_inputs.toml", &overrides);
        let found = insights(&report, NumberFormat::default()).expect("reads");
        let input_type = found.iter().find(|finding| finding.rule == "input_type");
        let change = input_type.and_then(|finding| finding.proposal.as_ref()).expect("proposed");
        assert_eq!(change.changes["options.input_type"], expected, "{overrides:?}");
    }
}

#[test]
fn rules_have_unique_names() {
    let names: BTreeSet<&str> = RULES.iter().map(|rule| rule.name).collect();
    assert_eq!(names.len(), RULES.len());
    assert!(RULES.iter().all(|rule| !rule.description.is_empty()));
}

#[test]
fn a_program_without_problems_has_no_findings() {
    assert_eq!(found(&good()), []);
    assert_eq!(found(&ReportBuilder::new(1, 4)), []);
}

#[test]
fn problems_of_memory_come_first_if_a_program_does_not_fit() {
    let found = found(&bad());
    assert_eq!(found[0].rule, "out_of_memory");
    assert!(found[0].sentence.contains("Tile 0") && found[0].sentence.contains("176 KiB"));
}

/// For a program that runs, findings about time come first; for one that does not, findings about
/// memory.
#[test]
fn the_most_urgent_findings_come_first() {
    for spec in ["mnist_pipeline", "matmul_chain", "offload", "too_large"] {
        let (report, _directory) = common::report(spec, &[]);
        let numbers = NumberFormat::default();
        let verdict = InsightVerdict::read(&report, numbers).expect("reads");
        let found = insights(&report, numbers).expect("reads");
        let first = found.iter().take_while(|finding| finding.subject == verdict.first).count();
        let aside = found[first..].iter();
        assert!(aside.clone().all(|finding| finding.subject != verdict.first), "{spec}");
        let fits = verdict.memory.starts_with("Memory: fits, ");
        let question = if fits { InsightSubject::Time } else { InsightSubject::Memory };
        assert_eq!((verdict.first, spec == "too_large"), (question, !fits), "{spec}");
        let lead = match spec {
            "mnist_pipeline" => "sets the pace: ",
            "too_large" => "The program does not fit: ",
            _ => "The critical path is mostly ",
        };
        assert!(verdict.lead.contains(lead), "{}", verdict.lead);
    }
}

/// The advice for the bundled program that does not fit makes it fit.
#[test]
fn the_advice_for_a_program_that_is_too_large_makes_it_fit() {
    let (report, _directory) = common::report("too_large", &[]);
    let found = insights(&report, NumberFormat::default()).expect("reads");
    let advice = &found[0].advice;
    assert_eq!(found[0].rule, "out_of_memory");
    assert!(advice.contains("float16") && advice.contains("Mk2"), "{advice}");
    assert!(!advice.contains("micro-batch") && !advice.contains("more IPUs"), "{advice}");
    let followed = common::spec("too_large", &["target.name=mk2", "model.precision=float16"]);
    let compiled = tilescope_sim::compile(&followed).expect("compiles");
    assert_eq!(compiled.tiles_out_of_memory(), 0);
}

#[test]
fn simulated_reports_are_judged() {
    for (spec, overrides) in
        [("matmul_chain", &[][..]), ("mnist_pipeline", &["options.device_iterations=1"][..])]
    {
        let (report, _directory) = common::report(spec, overrides);
        let found = insights(&report, NumberFormat::default()).expect("reads");
        assert!(!found.is_empty());
        check(&report, &found);
    }
}
