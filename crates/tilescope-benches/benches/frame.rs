//! Measures a frame in each view of a report of 64 IPUs: layout and tessellation, on one core,
//! while the pointer moves over the view, the wheel turns and keys pan. Answers arrive from other
//! threads, as in the window. `-- input` measures the time from a key to the resulting picture.
//!
//! `TILESCOPE_BENCH_REPORT=PATH` measures another report, such as one of 10^8 bars that
//! `TILESCOPE_BENCH_REPORT=PATH cargo bench --bench report -- sixty-four-ipus` writes.

mod gestures;

use criterion::{Criterion, criterion_group, criterion_main};
use egui::Context;
use gestures::{frame, key_frame};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};
use tilescope_analysis::compare::ReportAlignment;
use tilescope_analysis::find::{SearchCatalogue, SearchQuery, find};
use tilescope_fixtures::ReportBuilder;
use tilescope_gui::app::TilescopeApp;
use tilescope_gui::{OpenReport, theme, view_names};
use tilescope_report::units::{
    Bytes, Cycles, IpuId, OperationId, TileId, TileRange, TileRuns, VertexTypeId,
};
use tilescope_report::{
    ArithmeticType, ExecutionStep, MarkKind, MemoryCategory, ModelOperation, ProgramKind,
    TileTraffic, TrainingPass, VertexGroup, VertexTypeInfo,
};
use tilescope_sim::simulate;
use tilescope_sim::specification::{Spec, SpecSource};

const IPUS: u32 = 64;
const TILES: u32 = 1472;
/// Number of frames for the quantiles.
const FRAMES: u64 = 400;

/// Writes a report of 64 IPUs that work through 40 operations again and again, no two tiles alike.
fn write_report(directory: &Path) {
    let mut report = ReportBuilder::new(IPUS, TILES);
    let all = IPUS * TILES;
    let uneven = |salt: u64| {
        let value = move |tile: u32| 200 + (u64::from(tile) * 2_654_435_761 + salt * 97) % 800;
        TileRuns::from_tiles(TileId(0), (0..all).map(move |tile| Some(value(tile))))
    };
    let kind = VertexTypeInfo {
        name: "poplin::ConvPartial1x1Out".to_owned(),
        code_bytes: Bytes(400),
        shares_code: false,
        state_bytes: Bytes(24),
    };
    report.parts.vertex_types.push(kind);
    let mut programs = Vec::new();
    for layer in 0..20u64 {
        let name = format!("layer{layer}/conv/Conv_1");
        let exchange = report.exchange(&format!("cs{layer}_{name}/Convolve/ExchangePre"), 64);
        let moved = uneven(layer);
        let traffic = |bytes: &u64| TileTraffic {
            bytes_in: Bytes(*bytes),
            bytes_out: Bytes(*bytes),
            bytes_delivered: Bytes(*bytes),
            messages_in: 4,
            messages_out: 4,
            code_bytes: Bytes(40),
        };
        if let Some(last) = report.parts.exchanges.last_mut() {
            last.tiles = moved.map(traffic);
        }
        let work = report.compute(&format!("{name}/Convolve"), 900);
        if let Some(set) = report.parts.compute_sets.last_mut() {
            set.cycles = uneven(layer + 100).map(|cycles| Cycles(*cycles));
            let count = TileRuns::uniform(TileRange::first_tiles(all), 6);
            set.vertices.push(VertexGroup {
                vertex_type: VertexTypeId(0),
                count,
                edges: 3,
                flops: None,
            });
        }
        programs.extend([exchange, work]);
        for ipu in (0..IPUS).map(IpuId) {
            // Each reads the output of the previous layer on its IPU and on the next one.
            let above = |ipu: IpuId| layer.checked_sub(1).map(|l| l as u32 * IPUS + ipu.0 % IPUS);
            let inputs = [above(ipu), above(ipu + 1)].into_iter().flatten().map(OperationId);
            report.parts.operations.push(ModelOperation {
                name: format!("{name}/{ipu}"),
                kind: "conv2d".to_owned(),
                source: None,
                pass: TrainingPass::Forward,
                block: Some(format!("B{ipu}")),
                ipu: Some(ipu),
                flops: 1_000_000 * (layer + 1),
                element_type: Some(ArithmeticType::Half),
                inner_runs: Some(1),
                cost_basis: None,
                shapes: "[40,1,28,28] x [10,1,5,5] -> [40,10,24,24]".to_owned(),
                plan: None,
                inputs: inputs.collect(),
            });
            let first = ipu.0 * TILES;
            let tiles = first..first + TILES - 17 * layer as u32;
            report.variable(
                &format!("{name}/{ipu}/out"),
                MemoryCategory::Variable,
                tiles,
                900,
                None,
            );
        }
    }
    let sync = report.program(ProgramKind::Sync, "External");
    programs.push(sync);
    report.root(ProgramKind::Sequence, "main", &programs);
    let mut at = 0;
    for index in 0..4_000u64 {
        let program = programs[(index as usize) % programs.len()];
        let ipus = (0..IPUS).map(IpuId);
        let ipus = ipus.map(|ipu| report.bar(ipu, at..at + 300 + (index * 37) % 900)).collect();
        report.steps.push(ExecutionStep::new(program, ipus));
        at += 1_200;
    }
    report.mark(MarkKind::Run, "Engine::run #0", 0..4_000);
    report.write(directory).expect("writes");
}

/// True if the command line selects this benchmark by a part of its name, or selects none.
fn wanted(what: &str) -> bool {
    let named: Vec<String> = std::env::args().skip(1).filter(|arg| !arg.starts_with('-')).collect();
    named.is_empty() || named.iter().any(|name| what.contains(name))
}

/// The report, written into a directory that must outlive it, or the one given by the user.
fn opened() -> (OpenReport, tempfile::TempDir) {
    let directory = tempfile::tempdir().expect("temporary directory");
    let asked = std::env::var_os("TILESCOPE_BENCH_REPORT").map(PathBuf::from);
    if asked.is_none() {
        write_report(directory.path());
    }
    let path = asked.as_deref().unwrap_or(directory.path());
    (OpenReport::read(path).expect("opens"), directory)
}

/// Measures quantiles of the frames of an app, and its time in criterion.
fn measure(criterion: &mut Criterion, what: &str, context: &Context, app: &mut TilescopeApp) {
    let mut number = 0;
    let mut next = |app: &mut TilescopeApp| {
        number += 1;
        frame(context, app, number)
    };
    for _ in 0..20 {
        next(app);
        app.session().workers().wait(Duration::from_secs(600));
    }
    let mut times: Vec<Duration> = Vec::new();
    for _ in 0..FRAMES {
        times.push(next(app));
        // A window waits for the screen; the workers get that time.
        std::thread::sleep(Duration::from_millis(4));
    }
    print_quantiles(what, times);
    criterion.bench_function(&format!("frame of {what}"), |bencher| {
        bencher.iter(|| next(app));
    });
}

fn print_quantiles(what: &str, mut times: Vec<Duration>) {
    times.sort_unstable();
    let at = |share: f64| times[(times.len() as f64 * share) as usize];
    println!("{what}: p50 {:?}, p95 {:?}, p99 {:?}", at(0.5), at(0.95), at(0.99));
}

fn frames(criterion: &mut Criterion) {
    let (opened, _directory) = opened();
    for view in view_names().into_iter().filter(|view| wanted(view)) {
        let context = Context::default();
        theme::install(&context);
        let mut app = TilescopeApp::detached(&context, Some(opened.clone()));
        app.show_view(view);
        measure(criterion, view, &context, &mut app);
    }
}

/// Measures the trace with the critical path lit, all else veiled, and arrows along data, of the
/// given report or of a simulated one of BERT-Large. The limit is 4 ms at the 99th percentile.
fn lit_path(criterion: &mut Criterion) {
    let what = "lit path of execution-trace";
    if !wanted(what) {
        return;
    }
    let directory = tempfile::tempdir().expect("temporary directory");
    let asked = std::env::var_os("TILESCOPE_BENCH_REPORT").map(PathBuf::from);
    let path = asked.unwrap_or_else(|| {
        let source = SpecSource::find("bert_large_pod16", &[]).expect("a bundled spec");
        let spec = Spec::build(&source).expect("a spec");
        simulate(&spec, directory.path(), |_| ()).expect("simulates");
        directory.path().to_owned()
    });
    let context = Context::default();
    theme::install(&context);
    let mut app = TilescopeApp::detached(&context, None);
    let place = "tilescope:?view=execution-trace&path_lit=true&prefs.path=true&prefs.arrows=true";
    app.open_at(&context, Some(&path), None, Some(place));
    while app.session().page().is_none() {
        app.logic(&context);
        std::thread::sleep(Duration::from_millis(10));
    }
    measure(criterion, what, &context, &mut app);
}

/// Measures the same with another such report beside it.
fn comparisons(criterion: &mut Criterion) {
    let ((source, _source), (target, _target)) = (opened(), opened());
    for view in view_names() {
        let what = format!("{view} compared");
        if !wanted(&what) {
            continue;
        }
        let context = Context::default();
        theme::install(&context);
        let mut app = TilescopeApp::detached(&context, Some(source.clone()));
        app.compare(target.clone());
        app.show_view(view);
        measure(criterion, &what, &context, &mut app);
    }
}

/// Measures the alignment of two such reports: programs, operations, variables, every step.
fn alignment(criterion: &mut Criterion) {
    if !wanted("alignment") {
        return;
    }
    let ((source, _source), (target, _target)) = (opened(), opened());
    criterion.bench_function("alignment of two reports of 64 IPUs", |bencher| {
        bencher.iter(|| ReportAlignment::read(&source.report, &target.report).expect("aligns"));
    });
}

/// Measures searches over all names: the first one, which collects the names, and later ones.
fn search(criterion: &mut Criterion) {
    if !wanted("search") {
        return;
    }
    let (opened, _directory) = opened();
    let report = &opened.report;
    let query: SearchQuery = "Convolve".parse().expect("a query");
    criterion.bench_function("first search of 64 IPUs by name", |bencher| {
        bencher.iter(|| {
            let all = SearchCatalogue::read(report).expect("reads");
            find(report, &all, &query).expect("finds")
        });
    });
    let all = SearchCatalogue::read(report).expect("reads");
    criterion.bench_function("search of 64 IPUs by name", |bencher| {
        bencher.iter(|| find(report, &all, &query).expect("finds"));
    });
}

/// Number of zooms and pans for the quantiles.
const INPUTS: u64 = 200;

/// Measures from a key that zooms or pans the trace to the first frame that shows it, which moves
/// the existing picture, and to the frame with every answer of other threads. The second is also
/// printed without the time in which the app's own thread waits for answers.
fn inputs(_: &mut Criterion) {
    if !wanted("input of execution-trace") {
        return;
    }
    let (opened, _directory) = opened();
    let context = Context::default();
    theme::install(&context);
    let mut app = TilescopeApp::detached(&context, Some(opened));
    app.show_view("execution-trace");
    let mut number = 0;
    for _ in 0..20 {
        number += 1;
        frame(&context, &mut app, number);
        app.session().workers().wait(Duration::from_secs(600));
    }
    let [mut first, mut own, mut whole] = [const { Vec::new() }; 3];
    for input in 0..INPUTS {
        let place = app.session().link();
        let start = Instant::now();
        number += 1;
        let (moved, mut goes_on) = key_frame(&context, &mut app, number, Some(input));
        let mut spent = moved;
        while goes_on || app.session().workers().busy() {
            app.session().workers().wait(Duration::from_secs(600));
            number += 1;
            let next;
            (next, goes_on) = key_frame(&context, &mut app, number, None);
            spent += next;
        }
        // At the end of a zoom range nothing moves.
        if app.session().link() != place {
            first.push(moved);
            own.push(spent);
            whole.push(start.elapsed());
        }
    }
    for (what, times) in [("first frame", first), ("own thread", own), ("all answers", whole)] {
        print_quantiles(&format!("{} inputs, {what}", times.len()), times);
    }
}

criterion_group! {
    name = benches;
    config = Criterion::default().sample_size(20);
    targets = frames, lit_path, inputs, comparisons, alignment, search
}
criterion_main!(benches);
