//! Written data are read back unchanged.

use crate::report_support::*;
use proptest::prelude::*;
use tempfile::tempdir;
use tilescope_fixtures::ReportBuilder;
use tilescope_report::units::*;
use tilescope_report::*;
use tilescope_test_tiers::cases;

fn check_round_trip(report: &ReportBuilder) {
    let directory = tempdir().unwrap();
    report.write(directory.path()).unwrap();
    let read = Report::open_with_cache(directory.path(), None).unwrap();
    assert_eq!(read.compilation().unwrap(), report.compilation());
    assert_eq!(steps_of(&read), report.steps);
    let mut marks = report.marks.clone();
    marks.sort_by_key(|mark| mark.cycles.start);
    assert_eq!(read.marks(&ALL_MARKS).unwrap(), marks);
    assert_eq!(read.spec(), report.meta.spec.as_deref());
    assert_eq!(read.meta()["generator"], report.meta.generator);
    assert_eq!(read.origin(), ReportOrigin::Tilescope);
    assert_eq!(read.warnings(), Vec::<String>::new());
    check_single_answers(&read, report);
}

/// Rows and columns give the same answers; only steps without an IPU cannot be stored in columns.
fn check_both_layouts(mut report: ReportBuilder) {
    check_round_trip(&report);
    report.layout = StepLayout::Columns;
    report.steps.retain(|step| !step.ipus.is_empty());
    report.marks.clear();
    check_round_trip(&report);
}

/// Single answers equal those of a query for everything.
fn check_single_answers(read: &Report, report: &ReportBuilder) {
    let parts = &report.parts;
    for (id, set) in parts.compute_sets.iter().enumerate() {
        assert_eq!(read.compute_set(ComputeSetId(id as u32)).unwrap().as_ref(), Some(set));
    }
    for (id, variable) in parts.variables.iter().enumerate() {
        assert_eq!(read.variable(VariableId(id as u32)).unwrap().as_ref(), Some(variable));
    }
    let whole = read.steps(StepId(0)..StepId(u64::MAX), usize::MAX).unwrap();
    let some = read.steps(StepId(3)..StepId(9), 4).unwrap();
    assert_eq!(some, whole.iter().skip(3).take(6).take(4).cloned().collect::<Vec<_>>());
    for (id, step) in report.steps.iter().enumerate().take(20) {
        let details = read.step(StepId(id as u64)).unwrap().unwrap();
        assert_eq!((details.program, &details.ipus), (Some(step.program), &step.ipus));
        assert_eq!(details.kind, parts.programs[step.program.index()].kind);
    }
    for exchange in &parts.exchanges {
        let first = parts.exchanges.iter().find(|other| other.program == exchange.program);
        assert_eq!(read.exchange(exchange.program).unwrap().as_ref(), first);
    }
    let sum = |traffic: &[TileTraffic]| traffic.iter().map(|t| t.bytes_in).sum::<Bytes>();
    let by_program = read.exchange_totals().unwrap().into_iter().map(|(_, total)| total);
    let by_program: Vec<_> = by_program.collect();
    assert_eq!(sum(&by_program), sum(&read.traffic_by_tile().unwrap()));
    assert_eq!(read.step(StepId(report.steps.len() as u64)).unwrap(), None);
    assert_eq!(read.step_count().unwrap(), report.steps.len() as u64);
    assert_eq!(read.trace().unwrap().is_some(), report.steps.iter().any(|s| !s.ipus.is_empty()));
}

proptest! {
    #![proptest_config(ProptestConfig { cases: cases(60), failure_persistence: None, ..Default::default() })]

    #[test]
    fn everything_round_trips(seed in any::<u64>(), steps in 0u64..60) {
        check_both_layouts(random_report(seed, steps));
    }
}

#[test]
fn many_steps_round_trip() {
    check_both_layouts(random_report(7, 20_000));
}

#[test]
fn an_empty_report_round_trips() {
    check_round_trip(&ReportBuilder::new(1, 1));
    check_round_trip(&ReportBuilder::new(0, 0));
}

#[test]
fn variables_are_filtered_and_paged() {
    let mut report = ReportBuilder::new(1, 8);
    for i in 0..10 {
        let category = if i % 2 == 0 { MemoryCategory::Variable } else { MemoryCategory::Stack };
        report.variable(&format!("v{i}"), category, i % 8..8, 4, None);
    }
    let directory = tempdir().unwrap();
    report.write(directory.path()).unwrap();
    let read = Report::open(directory.path()).unwrap();
    let all = VariableFilter { tiles: None, category: None, after: None, limit: 100 };
    let names = |filter: VariableFilter| {
        let found = read.variables(&filter).unwrap();
        found.iter().map(|(_, variable)| variable.name.clone()).collect::<Vec<_>>().join(" ")
    };
    assert_eq!(names(all), "v0 v1 v2 v3 v4 v5 v6 v7 v8 v9");
    assert_eq!(
        names(VariableFilter { category: Some(MemoryCategory::Stack), ..all }),
        "v1 v3 v5 v7 v9"
    );
    let tiles = Some(TileRange::first_tiles(2));
    assert_eq!(names(VariableFilter { tiles, ..all }), "v0 v1 v8 v9");
    let after = Some(VariableId(4));
    assert_eq!(names(VariableFilter { after, limit: 2, ..all }), "v5 v6");
    assert_eq!(names(VariableFilter { tiles, after, limit: 1, ..all }), "v8");
    assert_eq!(read.variables(&all).unwrap()[9].1, report.parts.variables[9]);
}

#[test]
fn marks_are_filtered() {
    let mut report = ReportBuilder::new(2, 1);
    let work = report.compute("work", 10);
    for i in 0..10 {
        report.run(work, i * 10..i * 10 + 10);
    }
    report.mark(MarkKind::Run, "run", 0..10);
    for i in 0..10 {
        report.mark(MarkKind::Stage, &format!("s{i}"), i..i + 1);
    }
    report.marks[3].ipu = Some(IpuId(1));
    let directory = tempdir().unwrap();
    report.write(directory.path()).unwrap();
    let read = Report::open(directory.path()).unwrap();
    let labels = |filter: MarkFilter| {
        let found = read.marks(&filter).unwrap();
        found.iter().map(|mark| mark.label.clone()).collect::<Vec<_>>().join(" ")
    };
    let stages = MarkFilter { kind: Some(MarkKind::Stage), ..ALL_MARKS };
    let window = Some(CycleRange::new(Cycles(15), Cycles(30)));
    assert_eq!(labels(MarkFilter { window, ..stages }), "s1 s2");
    assert_eq!(labels(MarkFilter { window, ipu: Some(IpuId(0)), ..stages }), "s1");
    assert_eq!(labels(MarkFilter { window, ..ALL_MARKS }), "run s1 s2");
    assert_eq!(labels(MarkFilter { limit: 2, ..stages }), "s0 s1");
    assert_eq!(read.runs().unwrap().len(), 1);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(cases(12)))]

    /// Marks of a long run are found in chunks of columns, those of others in rows.
    #[test]
    fn packed_marks_answer_as_rows_do(
        marks in prop::collection::vec((0usize..8, 0u64..900, 0u64..90, 0u32..3), 0..60),
        filters in prop::collection::vec((0usize..9, 0u64..1000, 0u64..200, 0u32..3, 0usize..9), 20),
    ) {
        let reports = [StepLayout::Rows, StepLayout::Columns].map(|layout| {
            let mut report = ReportBuilder::new(2, 1);
            report.layout = layout;
            let work = report.compute("work", 10);
            report.run(work, 0..1000);
            for (at, (kind, start, length, ipu)) in marks.iter().enumerate() {
                let (first, end) = (Cycles(*start), Cycles(start + length));
                report.marks.push(TraceMark {
                    kind: MarkKind::ALL[*kind],
                    label: format!("mark {at}"),
                    ipu: (*ipu < 2).then_some(IpuId(*ipu)),
                    pass: None,
                    index: at as u64,
                    steps: StepId(0)..StepId(1),
                    cycles: CycleRange::new(first, end),
                });
            }
            let directory = tempdir().unwrap();
            report.write(directory.path()).unwrap();
            (Report::open_with_cache(directory.path(), None).unwrap(), directory)
        });
        for (kind, start, length, ipu, limit) in filters {
            let filter = MarkFilter {
                kind: MarkKind::ALL.get(kind).copied(),
                ipu: (ipu < 2).then_some(IpuId(ipu)),
                window: (length < 150)
                    .then(|| CycleRange::new(Cycles(start), Cycles(start + length))),
                limit: if limit == 8 { usize::MAX } else { limit },
            };
            let [rows, packed] = reports.each_ref().map(|(report, _)| report.marks(&filter));
            prop_assert_eq!(rows.unwrap(), packed.unwrap(), "{:?}", filter);
        }
    }
}

#[test]
fn parts_that_are_missing_have_names() {
    let directory = tempdir().unwrap();
    let mut report = ReportBuilder::new(1, 2);
    report.variable("weights", MemoryCategory::Variable, 0..1, 4, None);
    report.write(directory.path()).unwrap();
    let read = Report::open(directory.path()).unwrap();
    let recorded: Vec<ReportPart> =
        ReportPart::ALL.into_iter().filter(|part| read.has(*part)).collect();
    let expected = [
        ReportPart::Variables,
        ReportPart::Addresses,
        ReportPart::Lifetimes,
        ReportPart::TileMemory,
    ];
    assert_eq!(recorded[..4], expected);
    assert_eq!(read.outcome().unwrap(), ProgramOutcome::CompiledOnly);
    assert_eq!(read.trace_state().unwrap(), TraceState::None);
    assert!(read.trace().unwrap().is_none());
}

#[test]
fn tiles_that_overflow_are_out_of_memory() {
    let directory = tempdir().unwrap();
    let mut report = ReportBuilder::new(1, 4);
    let memory = TileMemory { overflowed: Bytes(8), ..TileMemory::default() };
    report.parts.tile_memory = TileRuns::uniform(TileRange::new(TileId(1), TileId(3)), memory);
    report.write(directory.path()).unwrap();
    let read = Report::open(directory.path()).unwrap();
    assert_eq!(read.outcome().unwrap(), ProgramOutcome::OutOfMemory { tiles: 2 });
}

#[test]
fn a_sound_report_breaks_no_law() {
    for layout in [StepLayout::Rows, StepLayout::Columns] {
        check_laws(layout);
    }
}

fn check_laws(layout: StepLayout) {
    let directory = tempdir().unwrap();
    let mut report = ReportBuilder::new(2, 4);
    let work = report.compute("conv/Convolve", 100);
    let exchange = report.exchange("cs0_conv/ExchangePre", 64);
    let root = report.root(ProgramKind::Repeat, "main", &[exchange, work]);
    report.parts.programs[root.index()].repeats = 5000;
    report.live(exchange, 3072).live(work, 3072);
    report.variable("weights", MemoryCategory::Variable, 0..8, 1024, None);
    report.variable("partials", MemoryCategory::Variable, 2..8, 512, Some(0..2));
    for i in 0..5000 {
        let start = i * 130;
        report.run(exchange, start..start + 20);
        for bar in report.steps.last_mut().into_iter().flat_map(|step| &mut step.ipus) {
            (bar.bytes_in, bar.bytes_out) = (Bytes(4 * 64), Bytes(4 * 64));
        }
        report.run(work, start + 20..start + 120);
    }
    report.mark(MarkKind::Run, "Engine::run #0", 0..10_000);
    report.layout = layout;
    report.write(directory.path()).unwrap();
    let read = Report::open(directory.path()).unwrap();
    assert_eq!(read.verify().unwrap(), []);
    assert_eq!(read.outcome().unwrap(), ProgramOutcome::Executed);
    assert!(read.has(ReportPart::TileBalance) && read.has(ReportPart::StepBytes));
    assert_eq!(read.trace_state().unwrap(), TraceState::Ready);
}

#[test]
fn broken_laws_are_found() {
    type Spoil = fn(&mut ReportBuilder);
    let cases: [(&str, Spoil); 21] = [
        ("programs_run_as_called", |r| {
            let work = r.compute("w", 10);
            r.root(ProgramKind::Sequence, "main", &[work]);
            r.run(work, 0..10).run(work, 10..20);
        }),
        ("programs_run_as_called", |r| {
            // A choice runs at most one of its children each time.
            let work = r.compute("w", 10);
            let empty = r.program(ProgramKind::Sequence, "empty");
            let choice = r.program(ProgramKind::Switch, "nthBatchCheck");
            r.parts.programs[choice.index()].children = vec![work, empty];
            let root = r.root(ProgramKind::Repeat, "main", &[choice]);
            r.parts.programs[root.index()].repeats = 2;
            r.run(work, 0..10).run(work, 10..20).run(work, 20..30);
        }),
        ("traffic_balances", |r| {
            let id = r.exchange("e", 64);
            let traffic = TileTraffic { bytes_in: Bytes(1), ..TileTraffic::default() };
            let tiles = TileRuns::uniform(TileRange::first_tiles(1), traffic);
            r.parts.exchanges[0] =
                ExchangeTraffic { program: id, tiles, cycles: TileRuns::empty() };
        }),
        ("traffic_balances", |r| {
            // Half of the sent data arrive nowhere.
            let id = r.exchange("e", 64);
            r.parts.roots = vec![id];
            r.parts.exchanges[0].tiles =
                r.parts.exchanges[0].tiles.map(|of| TileTraffic { bytes_out: Bytes(128), ..*of });
        }),
        ("exchanges_hold", |r| {
            // 64 bytes take 16 cycles at 4 bytes per cycle.
            let id = r.exchange("e", 64);
            r.parts.roots = vec![id];
            let traffic = &mut r.parts.exchanges[0];
            traffic.cycles = traffic.tiles.map(|_| Cycles(15));
        }),
        ("routes_add_up", |r| {
            // Tile 0 receives 64 bytes, not 32, and tile 1 64, not 96.
            let id = r.exchange("e", 64);
            r.parts.roots = vec![id];
            let tiles = TileRange::first_tiles(2);
            let sent = TileRuns::uniform(tiles, Bytes(64));
            let received = TileRuns::from_tiles(TileId(0), [Some(Bytes(32)), Some(Bytes(96))]);
            r.parts.routes = vec![ExchangeRoute::in_order(id, &sent, &received)];
        }),
        ("routes_add_up", |r| {
            // A route has half of the bytes.
            let id = r.exchange("e", 64);
            r.parts.roots = vec![id];
            let bytes = TileRuns::uniform(TileRange::first_tiles(2), Bytes(32));
            r.parts.routes = vec![ExchangeRoute::in_order(id, &bytes, &bytes)];
        }),
        ("routes_add_up", |r| {
            // A tile alone in its group sends to no tile and receives from none.
            let id = r.exchange("e", 64);
            r.parts.roots = vec![id];
            let tile = |delivered, received| RouteBytes {
                delivered: Bytes(delivered),
                received: Bytes(received),
            };
            let mut bytes = TileRuns::from_tiles(TileId(0), [Some(tile(64, 0))]);
            bytes.push(TileRange::single(TileId(1)), tile(0, 64));
            let of_traffic = |bytes: &RouteBytes| TileTraffic {
                bytes_in: bytes.received,
                bytes_out: bytes.delivered,
                bytes_delivered: bytes.delivered,
                ..TileTraffic::default()
            };
            r.parts.exchanges[0].tiles = bytes.map(of_traffic);
            let groups = TileGroups::of_digits(vec![TileDigit::apart(2)]);
            let pattern = RoutePattern::Broadcast(groups);
            r.parts.routes = vec![ExchangeRoute { program: id, tiles: bytes, pattern }];
        }),
        ("routes_add_up", |r| {
            // One of two units is missing.
            let id = r.exchange("e", 64);
            r.parts.roots = vec![id];
            let bytes = TileRuns::uniform(TileRange::first_tiles(2), Bytes(64));
            let block = RouteBlock { sent_at: 1, received_at: 0, dims: Vec::new() };
            let order = Rearrangement { unit: Bytes(64), blocks: vec![block], memory: None };
            r.parts.routes = vec![ExchangeRoute {
                pattern: RoutePattern::Rearranged(order),
                ..ExchangeRoute::in_order(id, &bytes, &bytes)
            }];
        }),
        ("routes_add_up", |r| {
            // Both units go to one tile, and none to the other, which receives one of them.
            let id = r.exchange("e", 64);
            r.parts.roots = vec![id];
            let bytes = TileRuns::uniform(TileRange::first_tiles(2), Bytes(64));
            let dim = RouteDim { count: 2, sent_step: 1, received_step: 0 };
            let block = RouteBlock { sent_at: 0, received_at: 0, dims: vec![dim] };
            let memory = RouteMemory { bytes: RouteBytes::of(&bytes, &bytes), receivers: None };
            let order =
                Rearrangement { unit: Bytes(64), blocks: vec![block], memory: Some(memory) };
            r.parts.routes = vec![ExchangeRoute {
                pattern: RoutePattern::Rearranged(order),
                ..ExchangeRoute::in_order(id, &bytes, &bytes)
            }];
        }),
        ("lifetimes_in_range", |r| {
            r.variable("v", MemoryCategory::Variable, 0..1, 4, Some(2..9));
        }),
        ("categories_add_up", |r| {
            let memory = TileMemory {
                including_gaps: Bytes(9),
                non_interleaved: Bytes(8),
                ..TileMemory::default()
            };
            r.parts.tile_memory = TileRuns::uniform(TileRange::first_tiles(2), memory);
            let share = CategoryBytes {
                category: MemoryCategory::Stack,
                region: MemoryRegion::NonInterleaved,
                overlapped: false,
                bytes: Bytes(7),
            };
            r.parts.tile_categories = TileRuns::uniform(TileRange::first_tiles(2), vec![share]);
        }),
        ("code_is_held", |r| {
            let program = r.program(ProgramKind::Sequence, "main");
            let tiles = TileRuns::uniform(TileRange::first_tiles(2), Bytes(8));
            r.parts.control_code = vec![ControlCode { program, tiles }];
            r.parts.roots = vec![program];
            r.variable("controlCode", MemoryCategory::ControlCode, 0..2, 7, None);
        }),
        ("code_is_held", |r| {
            // Two types with one code take 40 B, not 80 B: a tile with 39 B holds less.
            let work = r.compute("w", 1);
            r.parts.roots = vec![work];
            let tiles = TileRange::first_tiles(2);
            for id in 0..2 {
                let name = format!("poplar_rt::Copy{id}");
                let (code_bytes, state_bytes) = (Bytes(40), Bytes(12));
                let kind = VertexTypeInfo { name, code_bytes, shares_code: true, state_bytes };
                r.parts.vertex_types.push(kind);
                let (vertex_type, count) = (VertexTypeId(id), TileRuns::uniform(tiles, 1));
                let group = VertexGroup { vertex_type, count, edges: 2, flops: None };
                r.parts.compute_sets[0].vertices.push(group);
            }
            (r.parts.graph.vertices, r.parts.graph.edges) = (4, 8);
            r.variable("vertexCode", MemoryCategory::VertexCode, 0..1, 40, None);
            r.variable("vertexCode", MemoryCategory::VertexCode, 1..2, 39, None);
        }),
        ("engines_hold", |r| {
            // 64 FLOPs in 10 cycles on each of two tiles: 1,280 at most.
            let work = r.compute("w", 10);
            r.parts.roots = vec![work];
            r.parts.vertex_types.push(VertexTypeInfo {
                name: "poplin::ConvPartialnx1<half,float,true,false>".to_owned(),
                code_bytes: Bytes::ZERO,
                shares_code: false,
                state_bytes: Bytes(12),
            });
            let count = TileRuns::uniform(TileRange::first_tiles(2), 1);
            let flops = Some(1281);
            let group = VertexGroup { vertex_type: VertexTypeId(0), count, edges: 2, flops };
            r.parts.compute_sets[0].vertices.push(group);
            (r.parts.graph.vertices, r.parts.graph.edges) = (2, 4);
            r.parts.compute_rates = vec![ComputeRate {
                engine: ComputeEngine::Amp,
                input: ArithmeticType::Half,
                partials: ArithmeticType::Float,
                flops_per_cycle: 64,
            }];
        }),
        ("variables_live_while_used", |r| {
            let work = r.compute("w", 1);
            r.parts.roots = vec![work];
            r.live(work, 4).live(work, 0);
            let variable = r.variable("v", MemoryCategory::Variable, 0..1, 4, Some(0..1));
            r.parts.variable_uses = vec![VariableUse { variable, steps: 0..2 }];
        }),
        ("freed_memory_is_free", |r| {
            // The second load of a weight allocates its memory before it begins.
            let load = r.program(ProgramKind::StreamCopyMid, "load");
            let work = r.compute("w", 1);
            r.root(ProgramKind::Sequence, "main", &[load, work]);
            r.live(load, 8).live(work, 8).live(load, 8);
            r.variable("v__l1", MemoryCategory::Variable, 0..2, 4, Some(0..3));
            r.parts.data_flows.buffers = vec![DataBuffer {
                name: "v".to_owned(),
                place: DataPlace::Tiles,
                ipu: IpuId(0),
                entries: 1,
                persistent: true,
                filled: false,
            }];
            let (flow, buffer) = (DataFlowId(0), DataBufferId(0));
            let kind = DataAccessKind::Free;
            r.parts.data_flows.accesses = vec![DataAccess { flow, program: work, buffer, kind }];
        }),
        ("reads_follow_writes", |r| {
            // I/O tiles write the next input while compute tiles still read this one.
            let work = r.compute("w", 100);
            let fetch = r.program(ProgramKind::StreamCopyMid, "fetch");
            r.root(ProgramKind::Sequence, "main", &[work, fetch]);
            r.parts.target.io_tiles_per_ipu = 1;
            let buffer = |name: &str, place, filled| DataBuffer {
                name: name.to_owned(),
                place,
                ipu: IpuId(0),
                entries: 1,
                persistent: false,
                filled,
            };
            r.parts.data_flows.buffers = vec![
                buffer("host", DataPlace::Host, true),
                buffer("input", DataPlace::Tiles, true),
            ];
            let (read, write) = (DataAccessKind::Read, DataAccessKind::Write);
            for (flow, program, at, kind) in
                [(0, work, 1, read), (1, fetch, 0, read), (1, fetch, 1, write)]
            {
                let (flow, buffer) = (DataFlowId(flow), DataBufferId(at));
                r.parts.data_flows.accesses.push(DataAccess { flow, program, buffer, kind });
            }
            r.run(work, 0..100);
            let bar = StepOnIpu { sub_lane: 1, active_tiles: 1, ..r.bar(IpuId(0), 50..80) };
            r.steps.push(ExecutionStep::new(fetch, vec![bar]));
        }),
        ("collectives_join_their_group", |r| {
            // IPU 0 copies to other replicas; IPU 1 does not wait for it.
            *r = ReportBuilder::new(2, 2);
            let sync = r.program(ProgramKind::Sync, "External");
            let copy = r.program(ProgramKind::GlobalExchange, "w/reduceScatter/crossReplicaCopy");
            r.parts.programs[copy.index()].ipu = Some(IpuId(0));
            r.root(ProgramKind::Sequence, "main", &[sync, copy]);
            let all = vec![IpuId(0), IpuId(1)];
            r.parts.sync_groups = Some(SyncGroupMembers { gs1: all.clone(), gs2: vec![all] });
            r.parts.data_flows.buffers.push(DataBuffer {
                name: "w".to_owned(),
                place: DataPlace::Tiles,
                ipu: IpuId(0),
                entries: 1,
                persistent: true,
                filled: true,
            });
            let (flow, buffer) = (DataFlowId(0), DataBufferId(0));
            let kind = DataAccessKind::Read;
            r.parts.data_flows.accesses.push(DataAccess { flow, program: copy, buffer, kind });
            r.run_on(sync, IpuId(0), 0..10).run_on(copy, IpuId(0), 10..20);
        }),
        ("marks_in_range", |r| {
            let work = r.compute("w", 1);
            r.run(work, 0..1).mark(MarkKind::Run, "run", 0..1);
            r.marks[0].steps.end = StepId(2);
        }),
        ("nothing_is_odd", |r| {
            let id = r.program(ProgramKind::Sequence, "loop");
            r.parts.programs[id.index()].children = vec![id];
        }),
    ];
    for (law, spoil) in cases {
        let directory = tempdir().unwrap();
        let mut report = ReportBuilder::new(1, 2);
        spoil(&mut report);
        report.write(directory.path()).unwrap();
        let read = Report::open(directory.path()).unwrap();
        let found = read.verify().unwrap();
        assert!(!found.is_empty() && found.iter().all(|f| f.law == law), "{law}: {found:?}");
    }
}
