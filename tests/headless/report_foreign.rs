//! Files of other tools: any part may be missing, and the files are never changed.

use crate::report_support::foreign::*;
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use tempfile::{TempDir, tempdir};
use tilescope_report::trace::*;
use tilescope_report::units::Cycles;
use tilescope_report::units::*;
use tilescope_report::*;

/// A foreign report in its own directory, and a cache directory elsewhere.
struct Place {
    directory: TempDir,
    cache: TempDir,
}

impl Place {
    fn with(foreign: &Foreign) -> Self {
        let place = Self { directory: tempdir().unwrap(), cache: tempdir().unwrap() };
        foreign.write(&place.file());
        place
    }

    fn file(&self) -> PathBuf {
        self.directory.path().join("profile.pop")
    }

    fn open(&self) -> Report {
        let cache = self.cache.path().to_owned();
        Report::open_with_cache(self.directory.path(), Some(cache)).unwrap()
    }

    fn caches(&self) -> Vec<PathBuf> {
        fs::read_dir(self.cache.path()).unwrap().map(|entry| entry.unwrap().path()).collect()
    }
}

/// Names and contents of everything in a directory.
fn contents(directory: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let entries = fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().path());
    entries.map(|path| (path.clone(), fs::read(path).unwrap())).collect()
}

/// Queries everything; no answer may be an error.
fn ask_everything(report: &Report) {
    report.target().unwrap();
    report.graph().unwrap();
    report.outcome().unwrap();
    report.programs().unwrap();
    report.compute_sets().unwrap();
    report.tile_memory().unwrap();
    report.tile_categories().unwrap();
    report.compilation().unwrap();
    report.runs().unwrap();
    report.sidecar_files();
    let count = report.step_count().unwrap();
    report.step(StepId(count / 2)).unwrap();
    report.verify().unwrap();
    if let Some(trace) = report.trace().unwrap() {
        for lane in 0..trace.lanes().len() {
            let lane = trace.lane(lane).unwrap();
            lane.spans(trace.range(), 100).unwrap();
            lane.totals(trace.range()).unwrap();
        }
    }
}

#[test]
fn a_plain_file_is_read() {
    let place = Place::with(&Foreign::default());
    let before = contents(place.directory.path());
    let report = place.open();
    assert_eq!(report.origin(), ReportOrigin::Foreign);
    assert_eq!(report.trace_state().unwrap(), TraceState::NeedsIndex);

    let target = report.target().unwrap();
    assert_eq!((target.ipus_per_replica, target.tiles_per_ipu), (2, 1472));
    assert_eq!((target.architecture.as_str(), target.clock), ("Mk2", Hertz(0)));
    assert_eq!(report.step_count().unwrap(), 800);
    assert_eq!(report.variable_count().unwrap(), 2 * 1472 * 4);
    assert_eq!(report.graph().unwrap().compute_sets, 8);

    let memory = report.tile_memory().unwrap();
    let total = |tile: u64| (0..4).map(|c| 64 * (1 + (tile * 7 + c * 131) % 97)).sum::<u64>();
    assert_eq!(memory.get(TileId(100)).unwrap().excluding_gaps(), Bytes(total(100)));
    let categories = report.tile_categories().unwrap();
    assert_eq!(
        categories.get(TileId(100)).unwrap().iter().map(|c| c.bytes).sum::<Bytes>(),
        Bytes(total(100))
    );
    let code = categories
        .get(TileId(5))
        .unwrap()
        .iter()
        .find(|c| c.category == MemoryCategory::InternalExchangeCode);
    assert_eq!(code.unwrap().bytes, Bytes(64 * (1 + (5 * 7 + 2 * 131) % 97)));

    let programs = report.programs().unwrap();
    let kind = |id| programs.get(ProgramId(id)).unwrap().kind;
    assert_eq!(kind(3), ProgramKind::Unknown, "kinds are not known before the steps are read");
    let trace = report.trace().unwrap().unwrap();
    let programs = report.programs().unwrap();
    let program = |id| programs.get(ProgramId(id)).unwrap();
    assert_eq!(program(3).kind, ProgramKind::OnTileExecute);
    assert_eq!(program(3).compute_set, Some(ComputeSetId(3)));
    assert_eq!(program(1).stream, StreamEndpoint::RemoteBuffer);

    assert_eq!(trace.lanes().len(), 2);
    assert_eq!(trace.lanes()[1].steps, 800);
    let lane = trace.lane_of(IpuId(1), 0).unwrap();
    let found = lane.find(StepId(403)).unwrap().unwrap();
    assert_eq!((found.kind, found.program), (ProgramKind::OnTileExecute, Some(ProgramId(3))));
    assert!((found.tile_balance.share() - 1427.0 / 1472.0).abs() < 1e-4);
    let step = report.step(StepId(403)).unwrap().unwrap();
    assert_eq!(step.ipus[1].range(), found.range);
    assert_eq!((step.kind, step.compute_set), (found.kind, Some(ComputeSetId(3))));
    assert_eq!(step.ipus[1].from_max - step.ipus[1].from_min, Cycles(40));
    let totals = lane.totals(trace.range()).unwrap();
    assert!(
        totals.cycles[StepActivity::RemoteBuffer] > Cycles::ZERO
            && totals.cycles[StepActivity::Host] > Cycles::ZERO
    );

    let variables = report.variables(&VariableFilter {
        tiles: Some(TileRange::new(TileId(7), TileId(8))),
        category: None,
        after: None,
        limit: 100,
    });
    let variables = variables.unwrap();
    assert_eq!(variables.len(), 4);
    assert_eq!(variables[0].1.name, "weights");
    assert_eq!(variables[0].1.tiles.tile_count(), 1);

    ask_everything(&report);
    assert_eq!(report.verify().unwrap(), []);
    assert_eq!(report.warnings(), Vec::<String>::new());
    assert!(before == contents(place.directory.path()), "nothing beside or in the report changed");
}

#[test]
fn steps_of_one_program_are_totalled_by_type() {
    let place = Place::with(&Foreign { stream_copies: true, steps: 900, ..Foreign::default() });
    let report = place.open();
    let trace = report.trace().unwrap().unwrap();
    let programs = report.programs().unwrap();
    let kinds = |report: &Report| -> Vec<ProgramKind> {
        let programs = report.programs().unwrap();
        let copies = programs.iter().filter(|(_, node)| node.name == "copyFromHost");
        let mut kinds: Vec<ProgramKind> = copies.map(|(_, node)| node.kind).collect();
        kinds.retain(|kind| *kind != ProgramKind::Unknown);
        kinds
    };
    use ProgramKind::{StreamCopyBegin, StreamCopyEnd, StreamCopyMid};
    assert_eq!(kinds(&report), [StreamCopyBegin, StreamCopyMid, StreamCopyEnd]);
    // Every step is of the program of its own type, in the index as in the rows.
    let lane = trace.lane_of(IpuId(0), 0).unwrap();
    for number in 0..9 {
        let found = lane.find(StepId(number)).unwrap().unwrap();
        let program = found.program.expect("a program");
        assert_eq!(programs.get(program).map(|node| node.kind), Some(found.kind), "{number}");
        assert_eq!(report.step(StepId(number)).unwrap().unwrap().program, Some(program));
    }
    let totals = lane.program_totals(0..900).unwrap();
    let cycles = |kind: ProgramKind| -> Cycles {
        let of = |id: Option<ProgramId>| id.and_then(|id| programs.get(id));
        let own = totals.iter().filter(|total| {
            of(total.program).is_some_and(|node| node.kind == kind && node.name == "copyFromHost")
        });
        own.map(|total| total.cycles).sum()
    };
    let mut begun = Cycles::ZERO;
    for step in (0..900).step_by(9) {
        begun += lane.find(StepId(step)).unwrap().unwrap().range.length();
    }
    assert_eq!(cycles(StreamCopyBegin), begun);
    assert!(cycles(StreamCopyMid) > Cycles::ZERO && cycles(StreamCopyEnd) > Cycles::ZERO);
    // A cached index says the same.
    assert_eq!(kinds(&place.open()), kinds(&report));
    ask_everything(&report);
    assert_eq!(report.verify().unwrap(), []);
}

#[test]
fn parts_are_distinguished() {
    let report_of = |foreign: Foreign| {
        let place = Place::with(&foreign);
        let report = place.open();
        (place, report)
    };
    let (_place, report) = report_of(Foreign::default());
    let recorded: Vec<ReportPart> =
        ReportPart::ALL.into_iter().filter(|part| report.has(*part)).collect();
    let expected = [
        ReportPart::Execution,
        ReportPart::ActiveTiles,
        ReportPart::Programs,
        ReportPart::ComputeSets,
        ReportPart::Variables,
        ReportPart::TileMemory,
        ReportPart::Categories,
    ];
    assert_eq!(recorded, expected);
    let execution = vec!["steps", "steps_by_ipu", "execution_cycle_totals"];
    let (_place, report) = report_of(Foreign { without_tables: execution, ..Foreign::default() });
    assert!(!report.has(ReportPart::Execution));
    assert_eq!(report.outcome().unwrap(), ProgramOutcome::CompiledOnly);
    assert_eq!(report.trace_state().unwrap(), TraceState::None);
    assert!(report.trace().unwrap().is_none());
    assert_eq!(report.step(StepId(0)).unwrap(), None);
    ask_everything(&report);
}

#[test]
fn any_table_may_be_missing() {
    for table in known_tables() {
        let without_tables = vec![table];
        let place = Place::with(&Foreign { without_tables, steps: 100, ..Foreign::default() });
        ask_everything(&place.open());
    }
}

#[test]
fn any_column_may_be_missing() {
    for column in known_columns() {
        let foreign = Foreign {
            without_columns: vec![column],
            steps: 60,
            tiles_per_ipu: 16,
            ..Foreign::default()
        };
        let place = Place::with(&foreign);
        let report = place.open();
        ask_everything(&report);
        if !["step_id", "ipu"].contains(&column.1) {
            let trace = report.trace().unwrap().unwrap();
            assert_eq!(trace.bars(), 120, "without {column:?}: {:?}", report.warnings());
        } else if column.0 == "steps_by_ipu" {
            // Rows without a step or IPU are no run.
            assert!(report.trace().unwrap().is_none(), "{column:?}");
            assert!(report.critical_path().unwrap().is_none(), "{column:?}");
            assert_eq!(report.trace_state().unwrap(), TraceState::None, "{column:?}");
            let warning =
                format!("steps_by_ipu has no column {}: its steps are left out", column.1);
            assert!(report.warnings().contains(&warning), "{:?}", report.warnings());
        }
    }
}

#[test]
fn without_a_base_steps_follow_each_other() {
    let without_columns = vec![("steps_by_ipu", "cycles_base")];
    let place = Place::with(&Foreign { without_columns, steps: 50, ..Foreign::default() });
    let (whole, part) = (Place::with(&Foreign { steps: 50, ..Foreign::default() }), place.open());
    let trace = part.trace().unwrap().unwrap();
    let lengths = |trace: &Trace| -> Vec<Cycles> {
        let steps = trace.lane(1).unwrap().steps_in(trace.range(), usize::MAX).unwrap();
        steps.iter().map(|step| step.range.length()).collect()
    };
    assert_eq!(lengths(&trace), lengths(&whole.open().trace().unwrap().unwrap()));
    let lane = trace.lane(1).unwrap();
    let step = part.step(StepId(20)).unwrap().unwrap();
    assert_eq!(step.ipus[1].range(), lane.find(StepId(20)).unwrap().unwrap().range);
}

#[test]
fn odd_files_open() {
    let plain = || Foreign { steps: 200, ..Foreign::default() };
    let variants = [
        Foreign { nulls: true, ..plain() },
        Foreign { unknown_types: true, ..plain() },
        Foreign { extra: true, ..plain() },
        Foreign { tiles_per_ipu: 1216, ipus: 4, ..plain() },
        Foreign { tiles_per_ipu: 5, ipus: 3, ..plain() },
        Foreign { steps: 0, ..plain() },
        Foreign { by_ipu: true, ..plain() },
        Foreign { nulls: true, unknown_types: true, extra: true, wal: true, ..plain() },
    ];
    for foreign in variants {
        let place = Place::with(&foreign);
        let report = place.open();
        ask_everything(&report);
        let target = report.target().unwrap();
        let ipus = if foreign.steps == 0 { target.ipus_per_replica } else { foreign.ipus as u32 };
        assert_eq!(target.ipus_per_replica, ipus, "{foreign:?}");
        assert_eq!(target.tiles_per_replica(), (foreign.ipus * foreign.tiles_per_ipu) as u32);
        let bars = report.trace().unwrap().map_or(0, |trace| trace.bars());
        assert_eq!(bars, (foreign.steps * foreign.ipus) as u64, "{foreign:?}");
    }
}

#[test]
fn unknown_names_are_kept() {
    let place = Place::with(&Foreign { unknown_types: true, steps: 90, ..Foreign::default() });
    let report = place.open();
    let step = report.step(StepId(4)).unwrap().unwrap();
    assert_eq!((step.kind, step.kind_name.as_str()), (ProgramKind::Unknown, "OnSuperTileDance"));
    let trace = report.trace().unwrap().unwrap();
    let totals = trace.lane(0).unwrap().totals(trace.range()).unwrap();
    assert!(totals.cycles[StepActivity::Other] >= Cycles(770));
    report.tile_categories().unwrap();
    assert!(report.warnings().iter().any(|text| text.contains("quantumFoam")));
}

#[test]
fn a_write_ahead_log_is_read_and_left_alone() {
    let place = Place::with(&Foreign { wal: true, steps: 160, ..Foreign::default() });
    let before = contents(place.directory.path());
    assert_eq!(before.len(), 2, "the file and its log");
    let report = place.open();
    assert_eq!(report.step_count().unwrap(), 160);
    ask_everything(&report);
    assert!(report.warnings().iter().any(|text| text.contains("write-ahead log")));
    drop(report);
    assert!(before == contents(place.directory.path()), "nothing changed");
}

#[test]
fn overlapping_steps_get_separate_lanes() {
    let place = Place::with(&Foreign { steps: 0, ipus: 1, ..Foreign::default() });
    let db = rusqlite::Connection::open(place.file()).unwrap();
    for (step, base, cycles) in [(0, 0, 100), (1, 50, 100), (2, 100, 10), (3, 160, 5)] {
        let sql = "INSERT INTO steps_by_ipu VALUES (?1, 0, ?3, 1, ?2, 0, 0, ?3, ?3)";
        db.execute(sql, [step, base, cycles]).unwrap();
    }
    drop(db);
    let report = place.open();
    let trace = report.trace().unwrap().unwrap();
    let lanes: Vec<_> = trace.lanes().iter().map(|lane| (lane.sub_lane, lane.steps)).collect();
    assert_eq!(lanes, [(0, 3), (1, 1)]);
    assert_eq!(report.step(StepId(1)).unwrap().unwrap().ipus[0].sub_lane, 1);
    ask_everything(&report);
}

#[test]
fn the_index_is_built_once() {
    let place = Place::with(&Foreign { steps: 30_000, tiles_per_ipu: 4, ..Foreign::default() });
    let mut shares = Vec::new();
    let report = place.open();
    report.prepare_trace(&mut |share| shares.push(share), &Arc::default()).unwrap();
    assert!(shares.is_sorted() && shares.first() == Some(&0.0) && shares.last() == Some(&1.0));
    assert!(shares.len() > 5);
    let first = report.step(StepId(29_000)).unwrap();
    assert_eq!(place.caches().len(), 1);

    let again = place.open();
    assert_eq!(again.trace_state().unwrap(), TraceState::Ready);
    again.prepare_trace(&mut |_| panic!("nothing to do"), &Arc::default()).unwrap();
    assert_eq!(again.step(StepId(29_000)).unwrap(), first);
    assert_eq!(again.programs().unwrap(), report.programs().unwrap());

    // The report changes, so its old index is invalid.
    let db = rusqlite::Connection::open(place.file()).unwrap();
    db.execute_batch("CREATE TABLE more (a); INSERT INTO more VALUES (1)").unwrap();
    drop(db);
    assert_eq!(place.open().trace_state().unwrap(), TraceState::NeedsIndex);
}

#[test]
fn a_damaged_cache_is_thrown_away() {
    let place = Place::with(&Foreign { steps: 30_000, tiles_per_ipu: 4, ..Foreign::default() });
    let whole = place.open().trace().unwrap().unwrap().bars();
    let cache = place.caches().pop().unwrap();
    let sound = fs::read(&cache).unwrap();
    let damage: [fn(&mut Vec<u8>); 4] = [
        |bytes| bytes.truncate(5000),
        |bytes| bytes.clear(),
        |bytes| bytes[..16].fill(0),
        |bytes| *bytes = b"{}".to_vec(),
    ];
    for damage in damage {
        let mut bytes = sound.clone();
        damage(&mut bytes);
        fs::write(&cache, bytes).unwrap();
        let report = place.open();
        assert_eq!(report.trace_state().unwrap(), TraceState::NeedsIndex);
        assert_eq!(report.trace().unwrap().unwrap().bars(), whole);
        assert_eq!(fs::read(&cache).unwrap().len(), sound.len());
    }
    // Damage that shows only later gives an error, and the next opening succeeds.
    let mut bytes = sound.clone();
    let chunk = bytes.windows(2).rposition(|pair| pair == [0x78, 0x01] || pair == [0x78, 0x5e]);
    bytes[chunk.unwrap() + 8..][..40].fill(0x55);
    fs::write(&cache, bytes).unwrap();
    let report = place.open();
    let trace = report.trace().unwrap().unwrap();
    let reads = |trace: &Trace| {
        (0..2).all(|lane| {
            let lane = trace.lane(lane).unwrap();
            lane.steps_in(trace.range(), usize::MAX).is_ok() && lane.spans(trace.range(), 9).is_ok()
        })
    };
    assert!(!reads(&trace), "the damage is noticed");
    assert!(reads(&place.open().trace().unwrap().unwrap()));
}

#[test]
fn a_missing_cache_directory_is_no_problem() {
    let foreign = Foreign { steps: 20_000, tiles_per_ipu: 4, ..Foreign::default() };
    let place = Place::with(&foreign);
    for cache in [None, Some(place.file().join("below a file")), Some("/proc/none".into())] {
        let report = Report::open_with_cache(place.file(), cache).unwrap();
        assert_eq!(report.trace().unwrap().unwrap().bars(), 40_000);
        assert!(report.step(StepId(19_999)).unwrap().is_some());
        assert_eq!(report.trace_state().unwrap(), TraceState::Ready);
    }
}

#[test]
fn building_can_be_cancelled() {
    let place = Place::with(&Foreign { steps: 30_000, tiles_per_ipu: 4, ..Foreign::default() });
    let report = place.open();
    let cancel = Arc::new(AtomicBool::new(false));
    let ended =
        report.prepare_trace(&mut |share| cancel.store(share > 0.3, Ordering::Relaxed), &cancel);
    assert!(matches!(ended, Err(ReportError::Cancelled)), "{ended:?}");
    assert_eq!(place.caches(), Vec::<PathBuf>::new(), "nothing is left behind");
    assert_eq!(report.trace().unwrap().unwrap().bars(), 60_000, "and it can be built later");
}

#[test]
fn parallel_queries_work() {
    let place = Place::with(&Foreign { steps: 8000, tiles_per_ipu: 4, ..Foreign::default() });
    let report = place.open();
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| ask_everything(&report));
        }
    });
    assert_eq!(report.trace().unwrap().unwrap().bars(), 16_000);
}

/// A value of a `debug.cbor`.
enum Cbor<'a> {
    Number(u8),
    Text(&'a str),
    List(Vec<Cbor<'a>>),
    /// This number of unused bytes.
    Padding(u32),
    Map(Vec<(&'a str, Cbor<'a>)>),
}

impl Cbor<'_> {
    /// The encoded bytes; lengths are below 256.
    fn bytes(&self) -> Vec<u8> {
        let head = |major: u8, length: usize| match length {
            0..24 => vec![major << 5 | length as u8],
            _ => vec![major << 5 | 24, u8::try_from(length).unwrap()],
        };
        match self {
            Self::Number(number) => head(0, usize::from(*number)),
            Self::Text(text) => [head(3, text.len()), text.as_bytes().to_vec()].concat(),
            Self::Padding(length) => {
                let head = [&[2 << 5 | 26][..], &length.to_be_bytes()].concat();
                [head, vec![0; *length as usize]].concat()
            }
            Self::List(items) => {
                let parts = items.iter().map(Self::bytes);
                std::iter::once(head(4, items.len())).chain(parts).flatten().collect()
            }
            Self::Map(entries) => {
                let parts =
                    entries.iter().flat_map(|(key, of)| [Cbor::Text(key).bytes(), of.bytes()]);
                std::iter::once(head(5, entries.len())).chain(parts).flatten().collect()
            }
        }
    }
}

/// Contexts of the program of [`Foreign`]: an ONNX operation that contains a convolution.
fn debug_cbor(padding: u32) -> Vec<u8> {
    let context = |id, parent, layer, more: Vec<(&'static str, Cbor<'static>)>| {
        let mut entries = vec![("id", Cbor::Number(id)), ("layer", Cbor::Text(layer))];
        entries.extend((parent > 0).then_some(("parentId", Cbor::Number(parent))));
        entries.extend(more);
        Cbor::Map(entries)
    };
    let name = |name| vec![("name", Cbor::Text(name))];
    let onnx = vec![
        ("name", Cbor::Number(0)),
        ("opName", Cbor::Text("dense layer")),
        ("opType", Cbor::Text("MatMul")),
    ];
    let file = Cbor::Map(vec![
        (
            "contexts",
            Cbor::List(vec![
                context(1, 0, "onnx", onnx),
                context(2, 1, "poplibs", name("fwd")),
                context(3, 2, "poplar", name("Conv_1")),
            ]),
        ),
        ("stringTable", Cbor::List(vec![Cbor::Text("dense")])),
        ("padding", Cbor::Padding(padding)),
    ]);
    file.bytes()
}

#[test]
fn long_contexts_are_read_once() {
    let place = Place::with(&Foreign::default());
    let beside = place.directory.path().join("debug.cbor");
    let bytes = debug_cbor(2 << 20);
    fs::write(&beside, &bytes).unwrap();
    let said = |report: &Report| {
        let operations = report.operations().unwrap();
        let names: Vec<String> = operations.iter().map(|of| of.name.clone()).collect();
        (names, report.debug_frames(ProgramId(3)).unwrap())
    };
    let first = said(&place.open());
    assert_eq!(first.0, ["dense layer"]);
    // With the same size and time, it counts as the same file and is not read.
    let written = fs::metadata(&beside).unwrap().modified().unwrap();
    fs::write(&beside, vec![0; bytes.len()]).unwrap();
    fs::File::options().write(true).open(&beside).unwrap().set_modified(written).unwrap();
    let report = place.open();
    assert_eq!(said(&report), first);
    assert_eq!(report.warnings(), Vec::<String>::new());
    // A different file is read.
    fs::write(&beside, vec![0; bytes.len() + 1]).unwrap();
    let report = place.open();
    assert!(report.operations().unwrap().is_empty());
    assert!(report.warnings().iter().any(|text| text.contains("debug.cbor is not used")));
}

#[test]
fn contexts_beside_a_report_give_it_operations() {
    let place = Place::with(&Foreign::default());
    assert!(!place.open().has(ReportPart::Operations));
    let beside = place.directory.path().join("debug.cbor");
    fs::write(&beside, debug_cbor(0)).unwrap();
    let report = place.open();
    assert!(report.has(ReportPart::Operations));
    ask_everything(&report);
    let operations = report.operations().unwrap();
    let described: Vec<_> = operations
        .iter()
        .map(|of| (of.name.as_str(), of.kind.as_str(), of.source.as_deref(), of.ipu))
        .collect();
    assert_eq!(described, [("dense layer", "MatMul", Some("onnx"), None)]);
    let programs = report.programs().unwrap();
    let with_operation: Vec<u32> = programs
        .iter()
        .filter(|(_, program)| program.operation == Some(OperationId(0)))
        .map(|(id, _)| id.0)
        .collect();
    // Those below `dense`: an exchange with the number of its set before its name, compute sets,
    // and the copy between IPUs.
    assert_eq!(with_operation, [2, 3, 5, 6]);
    let frames = report.debug_frames(ProgramId(3)).unwrap();
    let layers: Vec<&str> = frames.iter().map(|frame| frame.layer.as_str()).collect();
    assert_eq!(layers, ["poplar", "poplibs", "onnx"]);
    assert_eq!(report.debug_frames(ProgramId(0)).unwrap().len(), 0);
    assert_eq!(report.warnings(), Vec::<String>::new());
    let rows = tilescope_analysis::operations::operations(
        &report,
        tilescope_analysis::operations::OperationLayer::Model,
    );
    let rows = rows.unwrap();
    assert!(rows.len() == 1 && rows[0].elapsed > Cycles::ZERO, "{rows:?}");

    // A file left over from an earlier run is used with a warning.
    let old = std::time::SystemTime::now() - std::time::Duration::from_secs(86_400);
    fs::File::options().write(true).open(&beside).unwrap().set_modified(old).unwrap();
    let report = place.open();
    assert_eq!(report.operations().unwrap().len(), 1);
    assert!(report.warnings().iter().any(|text| text.contains("debug.cbor is older")));

    // A broken file only gives a warning.
    fs::write(&beside, &debug_cbor(0)[..60]).unwrap();
    let report = place.open();
    ask_everything(&report);
    assert!(report.operations().unwrap().is_empty() && !report.has(ReportPart::Operations));
    assert!(
        report.warnings().iter().any(|text| text.contains("debug.cbor is not used: it is cut off"))
    );
}

#[test]
fn the_largest_machines_are_read_whole() {
    let directory = tempdir().unwrap();
    let path = directory.path().join("profile.pop");
    Foreign { ipus: 1, steps: 8, ..Foreign::default() }.write(&path);
    let ipus = 1024;
    let last = ipus * 1472 - 1;
    let db = rusqlite::Connection::open(&path).unwrap();
    db.execute("INSERT INTO memory_by_tile VALUES (?1, 4096)", [last]).unwrap();
    db.execute("INSERT INTO vars_info VALUES (1000000, 0, ?1, 4096, 0)", [last]).unwrap();
    drop(db);
    let report = Report::open_with_cache(&path, None).unwrap();
    let target = report.target().unwrap();
    assert_eq!((target.num_ipus, target.tiles_per_ipu), (ipus, 1472));
    let tile = TileId(last);
    assert_eq!(report.tile_memory().unwrap().get(tile).unwrap().including_gaps, Bytes(4096));
    assert_eq!(report.tile_categories().unwrap().get(tile).unwrap()[0].bytes, Bytes(4096));
    assert_eq!(report.warnings(), Vec::<String>::new());
}
