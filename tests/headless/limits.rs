//! Limits: sums are exact, no bound exceeds the measurement, and unknown values are absent.

use crate::common;
use crate::report_support::foreign::Foreign;
use std::collections::BTreeMap;
use std::sync::Arc;
use tilescope_analysis::limits::{
    CycleClass, LimitsRow, OperationLimits, RoofKind, UnknownUtilisation, WaterfallStep, explain,
    limits, roofline,
};
use tilescope_analysis::operations::{OperationLayer, operations};
use tilescope_analysis::summary::summary;
use tilescope_analysis::tables::named;
use tilescope_analysis::trace::program_runs;
use tilescope_fixtures::ReportBuilder;
use tilescope_report::units::{
    Bytes, Cycles, IpuId, NumberFormat, StepId, TileId, TileRange, TileRuns, VertexTypeId,
};
use tilescope_report::{
    ArithmeticType, Bandwidth, ComputeEngine, ComputeRate, MachineInterface, MachineLimits,
    ProgramKind, Report, VertexGroup, VertexTypeInfo,
};
use tilescope_sim::targets::find_chip;

/// Checks the limits of any report from the simulator.
pub(crate) fn keep_their_laws(report: &Report, name: &str) {
    let found = limits(report).expect("reads");
    let Some(run) = &found.run else { panic!("{name}: a run") };
    let known = report.operations().expect("reads");
    let rows = operations(report, OperationLayer::Model).expect("reads");
    let rows: BTreeMap<_, _> = rows.iter().map(|row| (row.operation, row)).collect();
    for row in &found.rows {
        let of = &row.limits;
        let what = format!("{name}: {} ({})", row.name, row.kind);
        keeps_its_laws(of, &what);
        let Some(operation) = row.operation else {
            assert_eq!(of.flops, Some(0), "{what}: only operations compute for the model");
            continue;
        };
        let costs = rows[&row.operation];
        assert_eq!(of.total(), costs.elapsed, "{what}");
        assert_eq!(*of, costs.limits, "{what}: both views have the same figures");
        let model = &known[operation.index()];
        let inner = model.inner_runs.expect("recorded");
        assert_eq!(costs.executions % inner, 0, "{what}: whole executions");
        assert_eq!(of.flops, Some(model.flops * (costs.executions / inner)), "{what}");
        assert!(model.flops == 0 || of.engine.is_some(), "{what}: an engine does its FLOPs");
        assert!(!explain(row, &found.machine, NumberFormat::default()).is_empty(), "{what}");
    }

    // Rows and syncs cover everything that ran.
    let trace = report.trace().expect("reads").expect("a run");
    let runs = program_runs(&trace).expect("reads");
    let programs = report.programs().expect("reads");
    let is_wait = |id| programs.get(id).is_none_or(|of| of.kind == ProgramKind::Sync);
    let steps = runs.steps.iter().filter(|((_, id, _), _)| !is_wait(*id));
    let steps: Cycles = steps.map(|(_, of)| of.cycles).sum();
    let all: Cycles = found.rows.iter().map(|row| row.limits.total()).sum();
    assert_eq!(all, steps, "{name}: rows have all steps but syncs");

    // The waterfall adds up to every cycle of every IPU.
    let length = trace.range().length();
    let ipus = report.target().expect("reads").ipus_per_replica;
    for (ipu, cycles) in &run.ipus {
        assert_eq!(cycles.total(), length, "{name}: IPU {ipu}");
    }
    assert_eq!(run.all.total(), length * u64::from(ipus), "{name}");
    let shares: f64 = WaterfallStep::ALL.into_iter().map(|step| run.all.share(step)).sum();
    assert!((shares - 1.0).abs() < 1e-9, "{name}: {shares}");
    assert_eq!(run.unknown, None, "{name}");
    assert_eq!(run.all[WaterfallStep::Unknown], Cycles::ZERO, "{name}");
    let utilisation = run.utilisation().expect("known");
    assert!((0.0..=1.0).contains(&utilisation), "{name}: {utilisation}");
    let recorded = summary(report).expect("reads").limits.expect("a run");
    assert_eq!(recorded.utilisation, Some(utilisation), "{name}");

    // No point is above its own roof.
    let roofline = roofline(&found.machine, &found.rows, None);
    for point in &roofline.points {
        for roof in &roofline.roofs {
            let own = match roof.kind {
                RoofKind::Engine(rate) => {
                    found.rows[point.row].limits.engine.is_some_and(|engine| engine.rate == rate)
                }
                RoofKind::Interface(interface) => point.interface == Some(interface),
            };
            let most = roof.flops_per_cycle(point.flops_per_byte);
            let row = &found.rows[point.row].name;
            assert!(
                !own || point.flops_per_cycle <= most * (1.0 + 1e-9),
                "{name}: {row} does {} FLOPs a cycle, {} allows {most}",
                point.flops_per_cycle,
                roof.title,
            );
        }
    }
}

/// Checks the sums of one operation, and its shares of the machine's peak.
fn keeps_its_laws(of: &OperationLimits, what: &str) {
    let ideal = of.ideal.unwrap_or_else(|| panic!("{what}: a bound"));
    assert!(ideal.cycles <= of.total(), "{what}: {ideal:?} of {}", of.total());
    let wasted = CycleClass::ALL.map(|class| of.wasted_on(class).expect("known"));
    assert_eq!(ideal.cycles + wasted.iter().sum(), of.total(), "{what}");
    assert_eq!(of.wasted(), Some(of.total() - ideal.cycles), "{what}");
    let split = of.compute.expect("known");
    let parts = split.at_peak + split.padding + split.below_peak;
    assert_eq!(parts, of.cycles[CycleClass::Compute], "{what}");
    assert!(split.at_amp_peak <= split.at_peak, "{what}");
    if let (Some(flops), Some(done)) = (of.flops, of.vertex_flops) {
        assert!(flops <= done, "{what}: {flops} FLOPs are needed, {done} are done");
    }
    let shares = [
        ("of peak", of.of_peak),
        ("padded", of.padded()),
        ("balance", of.tile_balance),
        ("of fabric", of.exchange.and_then(|used| used.of_fabric)),
        ("of tile", of.exchange.and_then(|used| used.of_tile)),
        ("of links", of.links.and_then(|used| used.of_limit)),
        ("of host", of.host.and_then(|used| used.of_limit)),
        ("of remote buffers", of.remote_buffers.and_then(|used| used.of_limit)),
    ];
    for (name, share) in shares {
        // Rates are fractions: cycles are rounded up, bytes are not.
        assert!(
            share.is_none_or(|share| (0.0..=1.0 + 1e-6).contains(&share)),
            "{what}: {name} {share:?}"
        );
    }
}

/// One operation on the first of two IPUs of four tiles: an exchange, a rearrangement, a product, a
/// copy between IPUs without an operation, and a sync.
fn small() -> ReportBuilder {
    let mut report = ReportBuilder::new(2, 4);
    let rate = |engine, input, flops_per_cycle| ComputeRate {
        engine,
        input,
        partials: input,
        flops_per_cycle,
    };
    report.parts.compute_rates = vec![
        rate(ComputeEngine::Amp, ArithmeticType::Half, 128),
        rate(ComputeEngine::Vector, ArithmeticType::Half, 8),
    ];
    let bandwidth = |interface, bytes_per_cycle| Bandwidth { interface, bytes_per_cycle };
    report.parts.bandwidths = vec![
        bandwidth(MachineInterface::Tile, 8.0),
        bandwidth(MachineInterface::TileSend, 4.0),
        bandwidth(MachineInterface::IpuLinks, 10.0),
    ];
    let operation = report.operation("layer/matmul", "matmul");
    let exchange = report.exchange("layer/matmul/ExchangePre", 400);
    let arrange = report.compute("layer/matmul/PreArrange-0", 50);
    let convolve = report.compute("layer/matmul/Convolve", 200);
    let links = report.program(ProgramKind::GlobalExchange, "inter-ipu-copies/GlobalPre");
    let sync = report.program(ProgramKind::Sync, "Internal");
    report.root(ProgramKind::Sequence, "main", &[exchange, arrange, convolve, links, sync]);
    for program in [exchange, arrange, convolve] {
        report.parts.programs[program.index()].operation = Some(operation);
        report.parts.programs[program.index()].ipu = Some(IpuId(0));
    }
    report.parts.vertex_types.push(VertexTypeInfo {
        name: "poplin::ConvPartial1x1Out<half,half,true,false,16,4,false>".to_owned(),
        code_bytes: Default::default(),
        shares_code: false,
        state_bytes: Default::default(),
    });
    // Two of four tiles multiply for 200 cycles, one for 100, one not at all.
    let mut cycles = TileRuns::uniform(TileRange::first_tiles(2), Cycles(200));
    cycles.push(TileRange::new(TileId(2), TileId(3)), Cycles(100));
    let set = &mut report.parts.compute_sets[1];
    set.vertices = vec![VertexGroup {
        vertex_type: VertexTypeId(0),
        count: cycles.map(|_| 1),
        edges: 3,
        flops: Some(20_480),
    }];
    set.cycles = cycles;
    let own = &mut report.parts.operations[operation.index()];
    (own.flops, own.element_type, own.inner_runs) = (10_240, Some(ArithmeticType::Half), Some(2));
    // Everything twice, because a product is two iterations of a loop; the second is identical.
    for start in [0, 1000] {
        let at = |from: u64, to: u64| start + from..start + to;
        report.run_on(exchange, IpuId(0), at(0, 150));
        report.run_on(arrange, IpuId(0), at(150, 210));
        report.run_on(convolve, IpuId(0), at(210, 430));
        report.run(links, at(430, 530));
        report.run(sync, at(530, 600));
    }
    for step in &mut report.steps {
        for on_ipu in &mut step.ipus {
            let bytes = match step.program {
                program if program == exchange => Bytes(4 * 400),
                program if program == links => Bytes(700),
                _ => Bytes::ZERO,
            };
            (on_ipu.bytes_in, on_ipu.bytes_out) = (bytes, bytes);
        }
    }
    report.parts.exchanges[0].cycles = TileRuns::uniform(TileRange::first_tiles(4), Cycles(120));
    report
}

fn opened(report: &ReportBuilder) -> (Report, tempfile::TempDir) {
    let directory = tempfile::tempdir().unwrap();
    let report = Report::open_with_cache(report.write(directory.path()).unwrap(), None).unwrap();
    (report, directory)
}

fn row<'a>(rows: &'a [LimitsRow], name: &str) -> &'a LimitsRow {
    rows.iter().find(|row| row.name == name).unwrap_or_else(|| panic!("{name}"))
}

#[test]
fn figures_of_a_small_program_agree_with_manual_ones() {
    let (report, _directory) = opened(&small());
    let found = limits(&report).unwrap();
    let product = row(&found.rows, "layer/matmul");
    let of = &product.limits;
    // Per iteration: 150 + 60 + 220 cycles.
    assert_eq!(of.total(), Cycles(2 * 430));
    let classes = [
        // 500 cycles of tiles, over four tiles.
        (CycleClass::Compute, 2 * 125),
        (CycleClass::Balance, 2 * 75),
        (CycleClass::Exchange, 2 * 120),
        (CycleClass::Rearrangement, 2 * 50),
        // 30 before the exchange, 10 before rearranging, 20 before multiplying.
        (CycleClass::SyncAndStart, 2 * 60),
    ];
    for (class, cycles) in CycleClass::ALL.map(|class| (class, of.cycles[class])) {
        let expected = classes.iter().find(|(known, _)| *known == class).map_or(0, |(_, of)| *of);
        assert_eq!(cycles, Cycles(expected), "{class:?}");
    }
    assert_eq!(of.bound(), Some(CycleClass::Compute));
    // Two iterations are one execution of 10,240 FLOPs; 128 per cycle on four tiles.
    assert_eq!((of.flops, of.vertex_flops), (Some(10_240), Some(40_960)));
    let split = of.compute.unwrap();
    assert_eq!((split.at_peak, split.padding), (Cycles(20), Cycles(60)));
    assert_eq!(split.below_peak, Cycles(250 - 20 - 60));
    assert_eq!(of.padded(), Some(0.75));
    assert_eq!(of.of_peak, Some(10_240.0 / (860.0 * 4.0 * 128.0)));
    // Each iteration sends 1,600 B from four tiles at 4 B per cycle: 100 cycles, which is the
    // largest bound.
    let ideal = of.ideal.unwrap();
    assert_eq!((ideal.cycles, ideal.bound), (Cycles(200), CycleClass::Exchange));
    assert_eq!(of.wasted(), Some(Cycles(660)));
    assert_eq!(of.wasted_on(CycleClass::Exchange), Some(Cycles(40)));
    let exchange = of.exchange.unwrap();
    assert_eq!((exchange.of_fabric, exchange.of_tile), (Some(200.0 / 300.0), Some(200.0 / 300.0)));
    assert_eq!((of.tiles_in_use, of.tile_balance), (Some(3.0), Some(250.0 / 400.0)));

    let copies = row(&found.rows, "inter-ipu-copies");
    assert_eq!(copies.kind, "copy between IPUs");
    // 700 B on each of two IPUs in 100 cycles each, at 10 B a cycle; twice.
    assert_eq!(copies.limits.links.unwrap().of_limit, Some(0.7));
    assert_eq!(copies.limits.ideal.unwrap().cycles, Cycles(280));

    let run = found.run.as_ref().unwrap();
    assert_eq!(run.all.total(), Cycles(2 * 1600));
    assert_eq!(run.all[WaterfallStep::Achieved], Cycles(20));
    assert_eq!(run.utilisation(), Some(20.0 / 3200.0));
    assert_eq!(run.all[WaterfallStep::SyncAndStart], Cycles(120 + 4 * 70));
    // IPU 1 has only copies and syncs.
    let other = run.waterfall(Some(IpuId(1))).unwrap();
    assert_eq!(other[WaterfallStep::Idle], Cycles(1600 - 2 * 170));
}

#[test]
fn a_recomputed_operation_achieves_nothing() {
    let mut report = small();
    report.parts.operations[0].name = "layer/matmul/recompute".to_owned();
    let (report, _directory) = opened(&report);
    let run = limits(&report).unwrap().run.clone().unwrap();
    assert_eq!(run.all[WaterfallStep::Recomputation], Cycles(20));
    assert_eq!((run.utilisation(), run.flops()), (Some(0.0), 0));
}

#[test]
fn vector_units_are_slower_than_the_matrix_engine() {
    let mut report = small();
    report.parts.vertex_types[0].name = "popops::ScaledAddSupervisor<half,half>".to_owned();
    let (report, _directory) = opened(&report);
    let found = limits(&report).unwrap();
    // 10,240 FLOPs at 8 per cycle on four tiles need more cycles than there were, so the invariant
    // of engines is broken; the split stays within the total.
    let split = row(&found.rows, "layer/matmul").limits.compute.unwrap();
    assert_eq!((split.at_peak, split.at_amp_peak), (Cycles(250), Cycles(20)));
    let run = found.run.as_ref().unwrap();
    assert_eq!(run.all[WaterfallStep::SlowerEngine], Cycles(230));
    assert_eq!(run.all[WaterfallStep::Achieved], Cycles(20));
}

#[test]
fn missing_data_are_absent_with_a_reason() {
    // Before format 2.6 the number of runs of operations in loops was not recorded.
    let mut old = small();
    old.parts.operations[0].inner_runs = None;
    let (report, _directory) = opened(&old);
    let found = limits(&report).unwrap();
    let run = found.run.as_ref().unwrap();
    assert_eq!(run.unknown, Some(UnknownUtilisation::NoRuns));
    assert_eq!((run.utilisation(), run.all[WaterfallStep::Unknown]), (None, Cycles(250)));
    let of = &row(&found.rows, "layer/matmul").limits;
    assert_eq!((of.flops, of.ideal, of.wasted()), (None, None, None));
    assert_eq!(of.tile_balance, Some(250.0 / 400.0), "what needs no FLOPs is there");

    // A report of an unknown chip.
    let mut strange = small();
    strange.parts.compute_rates.clear();
    strange.parts.target.architecture = "Mk9".to_owned();
    let (report, _directory) = opened(&strange);
    let run = limits(&report).unwrap().run.clone().unwrap();
    assert_eq!(run.unknown, Some(UnknownUtilisation::UnknownChip));

    // A program that is compiled and not run.
    let mut compiled = small();
    compiled.steps.clear();
    let (report, _directory) = opened(&compiled);
    let found = limits(&report).unwrap();
    assert!(found.run.is_none() && found.rows.is_empty());
    assert_eq!(summary(&report).unwrap().limits, None);
    for table in ["operations", "classes", "roofline", "waterfall"] {
        let table = named("limits", Some(table)).unwrap();
        assert!((table.read)(&report).unwrap().rows.is_empty(), "{}", table.name);
    }
}

#[test]
fn programs_that_do_not_fit_have_no_limits() {
    let (report, _directory) = common::report("too_large", &[]);
    assert!(limits(&report).unwrap().run.is_none());
}

#[test]
fn files_of_other_tools_have_what_their_steps_tell() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("profile.pop");
    Foreign::default().write(&path);
    let report = Report::open_with_cache(&path, None).unwrap();
    let found = limits(&report).unwrap();
    let run = found.run.as_ref().unwrap();
    assert_eq!(run.unknown, Some(UnknownUtilisation::NoOperations));
    assert!(!found.rows.is_empty());
    let length = report.trace().unwrap().unwrap().range().length();
    for (ipu, cycles) in &run.ipus {
        assert_eq!(cycles.total(), length, "IPU {ipu}");
    }
    assert!(run.all[WaterfallStep::Unknown] > Cycles::ZERO);
    for row in &found.rows {
        let of = &row.limits;
        // Neither FLOPs nor bytes are recorded: only layout changes have a bound, which is zero.
        let bounded = [
            CycleClass::Compute,
            CycleClass::Exchange,
            CycleClass::Host,
            CycleClass::RemoteBuffers,
            CycleClass::Links,
        ];
        let uses = bounded.into_iter().any(|class| of.cycles[class] > Cycles::ZERO);
        assert_eq!(of.ideal.is_none(), uses, "{}", row.name);
        assert_eq!((of.exchange, of.links, of.host), (None, None, None), "{}", row.name);
        let best = explain(row, &found.machine, NumberFormat::default());
        assert_eq!(best[0].sentence.starts_with("Unknown: "), uses, "{}", row.name);
        assert_eq!((of.flops, of.tile_balance), (None, None), "{}", row.name);
        assert!(of.bound().is_some(), "{}", row.name);
    }
    let table = named("limits", None).unwrap();
    assert_eq!((table.read)(&report).unwrap().rows.len(), found.rows.len());
}

/// Waiting for the host is neither a copy nor a sync, also where all steps of a copy have one program.
#[test]
fn waiting_for_the_host_is_a_separate_class() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("profile.pop");
    Foreign { stream_copies: true, steps: 900, ..Foreign::default() }.write(&path);
    let report = Report::open_with_cache(&path, None).unwrap();
    let trace = report.trace().unwrap().unwrap();
    let found = limits(&report).unwrap();
    for (ipu, cycles) in &found.run.as_ref().unwrap().ipus {
        let lane = trace.lane_of(*ipu, 0).unwrap();
        let mut begins = Cycles::ZERO;
        for step in (0..900).step_by(9) {
            begins += lane.find(StepId(step)).unwrap().unwrap().range.length();
        }
        assert_eq!(cycles[WaterfallStep::HostWait], begins, "IPU {ipu}");
        assert!(cycles[WaterfallStep::Host] > Cycles::ZERO, "IPU {ipu}");
    }
}

/// What is known of chips for files that do not say it is what the simulator says of them.
#[test]
fn rates_of_chips_of_other_files_agree_with_the_simulator() {
    for (spec, chip) in [("mnist_pipeline", "mk2"), ("adder", "mk1")] {
        let tiles = find_chip(chip).expect("a chip").tiles;
        let (ours, _directory) = common::report(spec, &["options.device_iterations=1"]);
        assert_eq!(ours.target().unwrap().name, chip);
        let mut bare = ReportBuilder::new(1, tiles);
        bare.parts.target.architecture = ours.target().unwrap().architecture.clone();
        let (bare, _other) = opened(&bare);
        let (known, recorded) = (bare.machine_limits().unwrap(), ours.machine_limits().unwrap());
        let sorted = |limits: &MachineLimits| {
            let mut rates = limits.rates.clone();
            rates.sort_by_key(|rate| (rate.engine, rate.input, rate.partials));
            rates
        };
        assert_eq!(sorted(&known), sorted(&recorded), "{chip}");
        for interface in [MachineInterface::Tile, MachineInterface::TileSend] {
            let of = |limits: &MachineLimits| limits.bytes_per_cycle(interface);
            assert_eq!(of(&known), of(&recorded), "{chip}");
        }
    }
}

/// Serial loops and the steps of a recurrent layer run a program several times in one execution.
#[test]
fn executions_are_counted_whole_where_programs_run_in_loops() {
    let spec = "[model]\nname = \"lstm\"\nvocab_size = 256\nembedding = 32\nhidden = 32\n\
                sequence_length = 8\nbatch_size = 2\n";
    let directory = tempfile::tempdir().unwrap();
    let source = tilescope_sim::specification::SpecSource::from_text("test", spec);
    let spec = tilescope_sim::specification::Spec::build(&source).expect("valid spec");
    let report = Report::open(common::report_file(&spec, directory.path())).unwrap();
    keep_their_laws(&report, "lstm");
    let known = report.operations().unwrap();
    let layer = known.iter().find(|of| of.kind == "lstm").expect("a recurrent layer");
    assert!(layer.inner_runs > Some(1), "a turn for each step of the sequence");
}

#[test]
fn limits_are_computed_once() {
    let (report, _directory) = common::report("matmul_chain", &[]);
    assert!(Arc::ptr_eq(&limits(&report).unwrap(), &limits(&report).unwrap()));
}
