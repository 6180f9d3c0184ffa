//! `verify` detects a change of every cell of a report.

use rusqlite::types::Value;
use rusqlite::{Connection, params_from_iter};
use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use tempfile::tempdir;
use tilescope_fixtures::ReportBuilder;
use tilescope_report::units::*;
use tilescope_report::*;
use tilescope_test_tiers::slow_tests;

/// A valid report with a row in every table.
pub(crate) fn lawful_report(layout: StepLayout) -> ReportBuilder {
    let mut report = ReportBuilder::new(2, 4);
    report.layout = layout;
    report.meta.spec = Some("[model]\nname = \"by hand\"\n".to_owned());
    report.parts.options = vec![("target.saveArchive".to_owned(), "true".to_owned())];
    report.parts.notes = vec!["a note".to_owned()];
    report.parts.batching = Some(BatchingConfig {
        micro_batch: 4,
        gradient_accumulation: 2,
        replicas: 1,
        device_iterations: 1,
    });
    report.parts.sync_groups = Some(SyncGroupMembers {
        gs1: vec![IpuId(0), IpuId(1)],
        gs2: vec![vec![IpuId(0)], vec![IpuId(1)]],
    });
    report.parts.error_bands = vec![ErrorBand {
        kind: Some("conv2d".to_owned()),
        basis: CostBasis::Measured,
        rows: 90,
        cycles: FactorBand { low: 0.95, high: 1.06 },
        bytes: FactorBand { low: 0.99, high: 1.25 },
    }];
    report.parts.program_errors = vec![ProgramErrorBand {
        source: ProgramErrorSource::Program,
        rows: 9,
        factors: FactorBand { low: 0.9, high: 1.1 },
    }];
    let first = report.operation("layer/conv", "conv2d");
    let second = report.operation("layer/relu", "relu");
    for operation in &mut report.parts.operations {
        operation.block = Some("layer".to_owned());
        operation.plan = Some("{}".to_owned());
        operation.shapes = "[4]".to_owned();
        operation.flops = 100;
        operation.element_type = Some(ArithmeticType::Half);
        operation.inner_runs = Some(1);
        operation.cost_basis = Some(CostBasis::Measured);
    }
    report.parts.operations[second.index()].inputs = vec![first];
    let conv = report.compute("layer/conv/Convolve", 90);
    let relu = report.compute("layer/relu/Relu", 40);
    for (name, code_bytes) in [("poplin::Conv", 400), ("popnn::Relu", 200)] {
        report.parts.vertex_types.push(VertexTypeInfo {
            name: name.to_owned(),
            code_bytes: Bytes(code_bytes),
            shares_code: false,
            state_bytes: Bytes(16),
        });
    }
    let tiles = TileRange::first_tiles(8);
    for (id, set) in (0..).zip(&mut report.parts.compute_sets) {
        let count = TileRuns::uniform(tiles, 2);
        let (vertex_type, flops) = (VertexTypeId(id), Some(128));
        set.vertices = vec![VertexGroup { vertex_type, count, edges: 3, flops }];
    }
    (report.parts.graph.vertices, report.parts.graph.edges) = (2 * 2 * 8, 2 * 2 * 8 * 3);
    let exchange = report.exchange("layer/conv/Exchange", 64);
    let sync = report.program(ProgramKind::Sync, "External");
    let meeting = report.program(ProgramKind::Sync, "External");
    let body = report.program(ProgramKind::Sequence, "body");
    let code = TileRuns::uniform(tiles, Bytes(4));
    report.parts.control_code = vec![ControlCode { program: conv, tiles: code }];
    report.parts.exchanges[0].cycles = TileRuns::uniform(tiles, Cycles(16));
    let steps = [exchange, conv, relu];
    report.parts.programs[body.index()].children = steps.to_vec();
    let repeat = report.root(ProgramKind::Repeat, "loop", &[body]);
    report.root(ProgramKind::Sequence, "main", &[sync, repeat, meeting]);
    let programs = &mut report.parts.programs;
    programs[repeat.index()].repeats = 30;
    programs[conv.index()].operation = Some(first);
    programs[relu.index()].operation = Some(second);
    programs[relu.index()].ipu = Some(IpuId(1));
    for (from, to) in [(0..4, 4..8), (4..8, 0..4)] {
        let range =
            |tiles: std::ops::Range<u32>| TileRange::new(TileId(tiles.start), TileId(tiles.end));
        let bytes = |tiles| TileRuns::uniform(range(tiles), Bytes(64));
        let route = ExchangeRoute::in_order(exchange, &bytes(from), &bytes(to));
        report.parts.routes.push(route);
    }
    // The second half in reverse order.
    let tiles = TileRange::first_tiles(8);
    let ring = TileRing { first: TileId(3), tiles, descending: true };
    let last = &mut report.parts.routes[1];
    let memory = RouteMemory {
        bytes: last.tiles.clone(),
        receivers: Some(TileOrder { ring, digits: vec![[4, 1]] }),
    };
    let dims = vec![RouteDim { count: 4, sent_step: 1, received_step: 1 }];
    let blocks = vec![RouteBlock { sent_at: 0, received_at: 0, dims }];
    let order = Rearrangement { unit: Bytes(64), blocks, memory: Some(memory) };
    last.pattern = RoutePattern::Rearranged(order);
    report.variable("weights", MemoryCategory::Variable, 0..8, 1024, None);
    report.variable("activations", MemoryCategory::Variable, 0..8, 256, Some(0..2));
    report.variable("partials", MemoryCategory::Rearrangement, 0..8, 512, Some(1..3));
    for (category, bytes) in [
        (MemoryCategory::VertexCode, 600),
        (MemoryCategory::ControlCode, 8),
        (MemoryCategory::InternalExchangeCode, 16),
    ] {
        report.variable(category.name(), category, 0..8, bytes, None);
    }
    report.parts.variable_uses = vec![VariableUse { variable: VariableId(0), steps: 1..2 }];
    for variable in &mut report.parts.variables {
        variable.operation = Some(first);
        variable.shape = "float32[4]".to_owned();
    }
    flows(&mut report, conv, relu);
    report.live(exchange, 8 * 256).live(conv, 8 * (256 + 512)).live(relu, 8 * 512);
    run(&mut report, sync, steps);
    report.run(meeting, 6010..6040);
    report.mark(MarkKind::Run, "Engine::run #0", 0..92);
    report.mark(MarkKind::Stage, "stage 0", 1..31);
    report.marks[1].ipu = Some(IpuId(1));
    report.marks[1].pass = Some(TrainingPass::Forward);
    replicas(&mut report, (exchange, meeting));
    report
}

/// Two replicas; the second begins later, and both wait for each other at the end.
fn replicas(report: &mut ReportBuilder, (exchange, meeting): (ProgramId, ProgramId)) {
    (report.parts.target.replicas, report.parts.target.num_ipus) = (2, 4);
    if let Some(batching) = &mut report.parts.batching {
        batching.replicas = 2;
    }
    let class = |replica, why: &str| ReplicaClass { replicas: vec![replica], why: why.to_owned() };
    report.parts.replica_classes = ReplicaClasses {
        classes: vec![class(0, "fast host"), class(1, "slow host")],
        joins: BTreeSet::from([meeting]),
    };
    report.parts.replica_rings = vec![ReplicaRing {
        order: RingOrder::Flat,
        links: RingLinks::Ladder,
        ranks: 2,
        spacing: 1,
        clockwise: 1.0,
        programs: vec![exchange],
    }];
    for step in &mut report.steps {
        let later = if step.program == meeting { (20, 0) } else { (20, 20) };
        let shifted = |bar: &StepOnIpu| StepOnIpu {
            from_min: bar.from_min + Cycles(later.0),
            from_max: bar.from_max + Cycles(later.0),
            to_min: bar.to_min + Cycles(later.1),
            to_max: bar.to_max + Cycles(later.1),
            ..*bar
        };
        let parts = step.ipus.iter().map(|bar| (ReplicaClassId(1), shifted(bar)));
        step.other_replicas = parts.collect();
    }
    let mark = &report.marks[1];
    let CycleRange { start, end } = mark.cycles;
    let cycles = CycleRange::new(start + Cycles(20), end + Cycles(20));
    report.marks_of_others = vec![(ReplicaClassId(1), TraceMark { cycles, ..mark.clone() })];
}

/// Reads and writes of the compute sets on IPU 1, and the bandwidths of the machine.
fn flows(report: &mut ReportBuilder, conv: ProgramId, relu: ProgramId) {
    report.parts.bandwidths =
        vec![Bandwidth { interface: MachineInterface::Tile, bytes_per_cycle: 8.0 }];
    report.parts.compute_rates = vec![ComputeRate {
        engine: ComputeEngine::Amp,
        input: ArithmeticType::Half,
        partials: ArithmeticType::Float,
        flops_per_cycle: 64,
    }];
    let flows = &mut report.parts.data_flows;
    for (name, persistent) in [("weights", true), ("activations", false)] {
        flows.buffers.push(DataBuffer {
            name: name.to_owned(),
            place: DataPlace::Tiles,
            ipu: IpuId(1),
            entries: 1,
            persistent,
            filled: persistent,
        });
    }
    let (read, write) = (DataAccessKind::Read, DataAccessKind::Write);
    let accesses =
        [(0, conv, 0, read), (0, conv, 1, write), (1, relu, 1, read), (1, relu, 1, write)];
    for (flow, program, buffer, kind) in accesses {
        let (flow, buffer) = (DataFlowId(flow), DataBufferId(buffer));
        flows.accesses.push(DataAccess { flow, program, buffer, kind });
    }
}

/// A sync, and thirty times an exchange and two compute sets, the last one only on IPU 1.
fn run(report: &mut ReportBuilder, sync: ProgramId, [exchange, conv, relu]: [ProgramId; 3]) {
    report.run(sync, 0..10);
    for start in (0..30).map(|round| 10 + round * 200) {
        report.run(exchange, start..start + 20);
        for bar in report.steps.last_mut().into_iter().flat_map(|step| &mut step.ipus) {
            (bar.bytes_in, bar.bytes_out) = (Bytes(4 * 64), Bytes(4 * 64));
        }
        report.run(conv, start + 20..start + 110);
        for bar in report.steps.last_mut().into_iter().flat_map(|step| &mut step.ipus) {
            (bar.active_tiles, bar.active_tile_balance) = (3, 0.75);
            (bar.from_max, bar.to_min) = (bar.from_min + Cycles(5), bar.to_max - Cycles(30));
        }
        report.run_on(relu, IpuId(1), start + 120..start + 160);
    }
}

/// A value that differs from `value`, of the same type.
fn changed(value: &Value, by: i64) -> Option<Value> {
    match value {
        Value::Null => None,
        Value::Integer(number) => Some(Value::Integer(number + by)),
        Value::Real(number) if *number == 0.0 => Some(Value::Real(1.0)),
        Value::Real(number) => Some(Value::Real(number * 2.0)),
        Value::Text(text) => Some(Value::Text(format!("{text}x"))),
        Value::Blob(bytes) => {
            let mut bytes = bytes.clone();
            let middle = bytes.len() / 2;
            *bytes.get_mut(middle)? ^= 1;
            Some(Value::Blob(bytes))
        }
    }
}

/// A table with its columns and rows.
struct TableContents {
    name: String,
    columns: Vec<String>,
    rows: Vec<Vec<Value>>,
}

fn tables(path: &Path) -> Vec<TableContents> {
    let db = Connection::open(path).unwrap();
    let mut names = db.prepare("SELECT name FROM sqlite_schema WHERE type = 'table'").unwrap();
    let names: Vec<String> =
        names.query_map([], |row| row.get(0)).unwrap().map(Result::unwrap).collect();
    let contents = |name: String| {
        let mut statement = db.prepare(&format!("SELECT * FROM {name}")).unwrap();
        let columns: Vec<String> = statement.column_names().map(str::to_owned).collect();
        let row = |row: &rusqlite::Row| (0..columns.len()).map(|at| row.get(at)).collect();
        let rows = statement.query_map([], row).unwrap().map(Result::unwrap).collect();
        TableContents { name, columns, rows }
    };
    names.into_iter().map(contents).collect()
}

impl TableContents {
    /// Rows to change in a column: all with a value if they are few, otherwise the first, the
    /// middle and the last of them. In the fast tier, the middle one.
    fn rows_to_change(&self, column: usize) -> Vec<&Vec<Value>> {
        let filled: Vec<&Vec<Value>> =
            self.rows.iter().filter(|row| changed(&row[column], 1).is_some()).collect();
        let places: BTreeSet<usize> = match filled.len() {
            count if !slow_tests() => (0..count).skip(count / 2).take(1).collect(),
            count @ 0..8 => (0..count).collect(),
            count => BTreeSet::from([0, count / 2, count - 1]),
        };
        places.into_iter().map(|place| filled[place]).collect()
    }

    /// Changes one cell.
    fn change(&self, db: &Connection, row: &[Value], column: usize) {
        let same: Vec<String> =
            (0..row.len()).map(|at| format!("\"{}\" IS ?{}", self.columns[at], at + 1)).collect();
        let sql = format!(
            "UPDATE {} SET \"{}\" = ?{} WHERE {}",
            self.name,
            self.columns[column],
            row.len() + 1,
            same.join(" AND ")
        );
        // The next number may be the key of another row.
        let count = [1, 1000].into_iter().find_map(|by| {
            let values = row.iter().cloned().chain(changed(&row[column], by));
            db.execute(&sql, params_from_iter(values)).ok()
        });
        assert_eq!(count, Some(1), "{sql}");
    }
}

/// The findings about a report, from opening it or from `verify`.
fn findings(path: &Path) -> Vec<String> {
    match Report::open_with_cache(path, None).map(|report| report.verify()) {
        Err(error) | Ok(Err(error)) => vec![error.to_string()],
        Ok(Ok(found)) => found.into_iter().map(|f| format!("{}: {}", f.law, f.text)).collect(),
    }
}

/// Columns with an undetected change in some tried row, and all columns with a row.
fn unchecked_columns(layout: StepLayout) -> (BTreeSet<String>, BTreeSet<String>) {
    let directory = tempdir().unwrap();
    let path = lawful_report(layout).write(directory.path()).unwrap();
    assert_eq!(findings(&path), Vec::<String>::new());
    let whole = fs::read(&path).unwrap();
    let broken = directory.path().join("broken.pop");
    let (mut unchecked, mut all) = (BTreeSet::new(), BTreeSet::new());
    for table in tables(&path) {
        for column in 0..table.columns.len() {
            for row in table.rows_to_change(column) {
                let name = format!("{}.{}", table.name, table.columns[column]);
                fs::write(&broken, &whole).unwrap();
                let db = Connection::open(&broken).unwrap();
                db.execute_batch("PRAGMA journal_mode = OFF; PRAGMA synchronous = OFF").unwrap();
                table.change(&db, row, column);
                drop(db);
                if findings(&broken).is_empty() {
                    unchecked.insert(name.clone());
                }
                all.insert(name);
            }
        }
    }
    (unchecked, all)
}

#[test]
fn every_changed_cell_is_detected() {
    for layout in [StepLayout::Rows, StepLayout::Columns] {
        let (unchecked, all) = unchecked_columns(layout);
        assert!(
            unchecked.is_empty(),
            "{layout:?}: changes of these are not detected: {unchecked:#?}"
        );
        assert!(all.len() > 120, "{layout:?}: only {} columns have a row", all.len());
    }
}

/// A run that takes several windows, with a mark for each step and one for all.
fn report_of_many_marks() -> ReportBuilder {
    let mut report = ReportBuilder::new(2, 4);
    report.layout = StepLayout::Columns;
    let compute = report.compute("compute", 8);
    report.root(ProgramKind::Sequence, "main", &[compute]);
    for round in 0..40_000u64 {
        let ipu = IpuId(round as u32 % 2);
        let start = 10 * round;
        report.run_on(compute, ipu, start..start + 8);
        report.marks.push(TraceMark {
            kind: MarkKind::Stage,
            label: format!("stage {round}"),
            ipu: Some(ipu),
            pass: None,
            index: round,
            steps: StepId(round)..StepId(round + 1),
            cycles: CycleRange::new(Cycles(start), Cycles(start + 8)),
        });
    }
    report.mark(MarkKind::Iteration, "all of it", 0..40_000);
    report
}

/// Marks that do not start or end with their steps, according to `verify`.
fn misplaced_marks(report: &ReportBuilder) -> Vec<String> {
    let directory = tempdir().unwrap();
    let path = report.write(directory.path()).expect("writes");
    let mut misplaced = Vec::new();
    for violation in Report::open(&path).expect("opens").verify().expect("reads") {
        if violation.text.contains(", but its steps span ") {
            misplaced.push(violation.text);
        }
    }
    misplaced
}

#[test]
fn marks_are_compared_with_their_steps_in_runs_of_any_length() {
    let sound = report_of_many_marks();
    assert_eq!(misplaced_marks(&sound), Vec::<String>::new());
    for wrong in [0, 5_000, 39_999, 40_000] {
        let mut report = report_of_many_marks();
        let mark = &mut report.marks[wrong];
        mark.cycles.end += Cycles(1);
        let label = mark.label.clone();
        let found = misplaced_marks(&report);
        assert!(matches!(&found[..], [one] if one.starts_with(&label)), "{label}: {found:?}");
    }
}
