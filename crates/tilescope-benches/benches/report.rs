//! Measures the time and memory of writing and reading reports, in millions of bars: `cargo bench
//! --bench report`, then `-- NAME` for one of the larger measurements in [`SIZES`]. With
//! `TILESCOPE_BENCH_REPORT=DIRECTORY` the report is written there and kept, for `cargo bench
//! --bench frame`.

#![expect(clippy::unwrap_used, reason = "a measurement may fail")]

use std::fs;
use std::time::{Duration, Instant};
use tempfile::tempdir;
use tilescope_analysis::critical_path::path_totals;
use tilescope_analysis::limits::limits;
use tilescope_analysis::liveness::by_address;
use tilescope_fixtures::ReportBuilder;
use tilescope_report::units::*;
use tilescope_report::*;
use tilescope_sim::simulate;
use tilescope_sim::specification::{Spec, SpecSource};

/// Programs of one iteration of a pipeline, as in a real one.
const PROGRAMS: u64 = 3000;

/// Number of programs between two waits of the IPUs for each other.
const EXTERNAL: u64 = 30;

/// An endless training loop on `ipus` IPUs: compute sets take about the same time on each, waits do
/// not.
struct Loop {
    report: ReportBuilder,
    /// End of the last step of any IPU, and of each.
    clock: u64,
    clocks: Vec<u64>,
    noise: u64,
}

impl Loop {
    fn new(ipus: u32) -> Self {
        let mut report = ReportBuilder::new(ipus, 1472);
        for i in 0..PROGRAMS {
            match i % 3 {
                0 => report.exchange(&format!("cs{i}_layer{i}/ExchangePre"), 64),
                1 => report.compute(&format!("layer{i}/Convolve"), 100 + i % 700),
                _ if i % EXTERNAL == EXTERNAL - 1 => report.program(ProgramKind::Sync, "External"),
                _ => report.program(ProgramKind::Sync, "Internal"),
            };
        }
        Self { report, clock: 0, clocks: vec![0; ipus as usize], noise: 1 }
    }

    fn step(&mut self, number: u64) -> ExecutionStep {
        let program = ProgramId((number % PROGRAMS) as u32);
        let kind = self.report.parts.programs[program.index()].kind;
        self.noise = self.noise.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        let cycles = match kind {
            ProgramKind::Sync => 20 + (self.noise >> 60),
            _ => 100 + u64::from(program.0) % 700,
        };
        let bytes = if kind == ProgramKind::DoExchange { 64 * 1472 } else { 0 };
        let joins = number % EXTERNAL == EXTERNAL - 1;
        let (released, noise) = (self.clock + cycles, self.noise);
        let bar = |(ipu, clock): (u32, &mut u64)| {
            let start = *clock;
            // Compute before a sync takes a little longer on one IPU or another.
            let more =
                if kind == ProgramKind::OnTileExecute { noise >> (ipu % 48) & 15 } else { 0 };
            let end = if joins { released } else { start + cycles + more };
            *clock = end + 3;
            let mut bar = self.report.bar(IpuId(ipu), start..end);
            bar.from_min = Cycles(start.saturating_sub(u64::from(program.0) % 13));
            bar.active_tile_balance = 0.5 + (program.0 % 50) as f32 / 100.0;
            (bar.bytes_in, bar.bytes_out) = (Bytes(bytes), Bytes(bytes));
            bar
        };
        let ipus = (0..).zip(&mut self.clocks).map(bar).collect();
        self.clock = self.clocks.iter().copied().max().unwrap_or(0);
        ExecutionStep::new(program, ipus)
    }
}

fn memory(field: &str) -> String {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find(|line| line.starts_with(field)).unwrap_or_default().to_owned();
    line.split_whitespace().skip(1).collect::<Vec<_>>().join(" ")
}

/// The marks of a step that ends an iteration, or a stage on every IPU.
fn marks(work: &Loop, number: u64, starts: &mut [(u64, u64)]) -> Vec<TraceMark> {
    let mut marks = Vec::new();
    for (kind, every, start) in
        [(MarkKind::Iteration, PROGRAMS, 0), (MarkKind::Stage, PROGRAMS / 10, 1)]
    {
        if !(number + 1).is_multiple_of(every) {
            continue;
        }
        let (step, cycle) = starts[start];
        starts[start] = (number + 1, work.clock);
        let index = number / every;
        let pass = [TrainingPass::Forward, TrainingPass::Backward][(index % 2) as usize];
        let stage = kind == MarkKind::Stage;
        let ipus = work.report.parts.target.ipus_per_replica;
        let mark = |ipu: Option<IpuId>| TraceMark {
            kind,
            label: match ipu {
                Some(ipu) => format!("B{ipu} {}", pass.name()),
                None => format!("iteration {index}"),
            },
            ipu,
            pass: stage.then_some(pass),
            index: if stage { index / 2 } else { index },
            steps: StepId(step)..StepId(number + 1),
            cycles: CycleRange::new(Cycles(cycle), Cycles(work.clock - 3)),
        };
        if stage {
            marks.extend((0..ipus).map(|ipu| mark(Some(IpuId(ipu)))))
        } else {
            marks.push(mark(None))
        }
    }
    marks
}

fn measure(steps: u64, ipus: u32, layout: StepLayout) {
    let bars = steps * u64::from(ipus);
    println!(
        "\n{} steps on {ipus} IPUs in {}: {} bars",
        grouped(steps),
        layout.name(),
        grouped(bars)
    );
    let directory = tempdir().unwrap();
    let kept = std::env::var_os("TILESCOPE_BENCH_REPORT").map(std::path::PathBuf::from);
    let into = kept.as_deref().unwrap_or(directory.path());
    fs::create_dir_all(into).unwrap();
    let mut work = Loop::new(ipus);
    let started = Instant::now();
    let mut writer = ReportWriter::create(into, &work.report.meta).unwrap();
    writer.step_layout(layout).unwrap();
    writer.compilation(&work.report.compilation()).unwrap();
    let mut starts = [(0, 0); 2];
    for number in 0..steps {
        writer.step(&work.step(number)).unwrap();
        marks(&work, number, &mut starts).iter().for_each(|mark| writer.mark(mark).unwrap());
    }
    let path = writer.finish().unwrap();
    let took = started.elapsed();
    let size = fs::metadata(&path).unwrap().len();
    println!(
        "  write: {:.2} s, {} bars/s; {:.1} B per bar; resident {}",
        took.as_secs_f64(),
        grouped((bars as f64 / took.as_secs_f64()) as u64),
        size as f64 / bars as f64,
        memory("VmRSS")
    );
    let blobs = rusqlite::Connection::open(&path).unwrap();
    let index: f64 = ["trace_chunks", "trace_nodes", "trace_details"]
        .iter()
        .map(|table| {
            let sql = format!("SELECT total(length(data)) FROM {table}");
            blobs.query_row(&sql, [], |row| row.get::<_, f64>(0)).unwrap()
        })
        .sum();
    drop(blobs);
    println!("  index: {:.2} B per bar", index / bars as f64);
    read(&path);
}

fn read(path: &std::path::Path) {
    let started = Instant::now();
    let report = Report::open(path).unwrap();
    report.target().unwrap();
    let opened = started.elapsed();
    let trace = report.trace().unwrap().unwrap();
    let range = trace.range();
    let first = |window| {
        for lane in 0..trace.lanes().len() {
            trace.lane(lane).unwrap().spans(window, 2000).unwrap();
        }
    };
    first(range);
    println!("  open: {opened:?}, first picture of all lanes: {:?}", started.elapsed());
    let lane = trace.lane(0).unwrap();
    for zoom in [1, 4, 16, 64, 256, 1024, 4096, 16_384, 65_536] {
        let length = range.length() / zoom;
        let (mut total, mut worst, mut spans) = (Duration::ZERO, Duration::ZERO, 0);
        const VIEWS: u64 = 20;
        for view in 0..VIEWS {
            let start = range.start + (range.length() - length) / VIEWS * view;
            let started = Instant::now();
            spans += lane.spans(CycleRange::new(start, start + length), 2000).unwrap().len();
            let took = started.elapsed();
            (total, worst) = (total + took, worst.max(took));
        }
        let (mean, spans) = (total / VIEWS as u32, spans / VIEWS as usize);
        println!("  spans at 1/{zoom:<6} mean {mean:>10.1?} worst {worst:>10.1?}, {spans} spans");
    }
    let started = Instant::now();
    lane.totals(CycleRange::new(range.start + Cycles(12_345), range.end - Cycles(12_345))).unwrap();
    println!("  totals: {:?}", started.elapsed());
    let started = Instant::now();
    report.step(StepId(report.step_count().unwrap() / 2)).unwrap();
    println!("  step: {:?}", started.elapsed());
    critical_path(&report);
    println!("  resident {}, at most {}", memory("VmRSS"), memory("VmHWM"));
}

/// Measures the critical path of all steps: the path itself, by program, and its spans.
fn critical_path(report: &Report) {
    let started = Instant::now();
    let path = report.critical_path().unwrap().unwrap();
    let (found, stretches) = (started.elapsed(), grouped(path.stretch_count()));
    println!("  critical path: {found:?}, {stretches} stretches; {}", memory("VmHWM"));
    let started = Instant::now();
    let rows = path_totals(report, None).unwrap().unwrap().rows.len();
    println!("  path by operation: {:?}, {rows} rows", started.elapsed());
    let started = Instant::now();
    let sums = path.programs_in(path.range()).unwrap().len();
    println!("  path by program, of its steps: {:?}, {sums} sums", started.elapsed());
    let started = Instant::now();
    path.spans(path.range(), 2000).unwrap();
    println!("  first picture of the path: {:?}", started.elapsed());
}

/// Writes a large file of another tool, row by row.
fn write_foreign(path: &std::path::Path, steps: i64, ipus: i64) {
    let db = rusqlite::Connection::open(path).unwrap();
    db.execute_batch(
        "PRAGMA journal_mode = OFF; PRAGMA synchronous = OFF;
         CREATE TABLE programs (id INTEGER PRIMARY KEY, name TEXT);
         CREATE TABLE memory_by_tile (tile INTEGER PRIMARY KEY, total INTEGER);
         CREATE TABLE steps (id INTEGER PRIMARY KEY, type TEXT, program INTEGER, compute_set INTEGER);
         CREATE TABLE steps_by_ipu (step_id INTEGER, ipu INTEGER, cycles INTEGER,
             active_tiles INTEGER, cycles_base INTEGER, active_cycles_from_min INTEGER,
             active_cycles_from_max INTEGER, active_cycles_to_min INTEGER,
             active_cycles_to_max INTEGER); BEGIN",
    )
    .unwrap();
    let program = "INSERT INTO programs VALUES (?, 'layer/Convolve')";
    for id in 0..14 {
        db.execute(program, [id]).unwrap();
    }
    let tile = "INSERT INTO memory_by_tile VALUES (?, 100)";
    for id in 0..ipus * 1472 {
        db.prepare_cached(tile).unwrap().execute([id]).unwrap();
    }
    let kinds = ["OnTileExecute", "DoExchange", "Sync", "StreamCopyMid"];
    let mut step = db.prepare("INSERT INTO steps VALUES (?, ?, ?, NULL)").unwrap();
    let bar = "INSERT INTO steps_by_ipu VALUES (?, ?, ?, ?, ?, 0, ?, ?, ?)";
    let mut bar = db.prepare(bar).unwrap();
    let mut clock = 0;
    for id in 0..steps {
        step.execute(rusqlite::params![id, kinds[(id % 4) as usize], id % 14]).unwrap();
        let cycles = 100 + (id * 26_544_357) % 900;
        for ipu in 0..ipus {
            let row = [id, ipu, cycles + ipu, 1400, clock, 7, cycles - 5, cycles + 7 + ipu];
            bar.execute(row).unwrap();
        }
        clock += cycles + 7 + ipus;
    }
    db.execute_batch("COMMIT").unwrap();
}

fn measure_a_foreign_file() {
    let directory = tempdir().unwrap();
    let path = directory.path().join("profile.pop");
    write_foreign(&path, 5_000_000, 4);
    println!(
        "\n5,000,000 foreign steps on 4 IPUs: {}",
        binary_bytes(fs::metadata(&path).unwrap().len())
    );
    println!("  resident before opening {}", memory("VmRSS"));
    let cache = directory.path().join("cache");
    let started = Instant::now();
    let report = Report::open_with_cache(&path, Some(cache.clone())).unwrap();
    report.prepare_trace(&mut |_| {}, &Default::default()).unwrap();
    println!("  index built in {:.1} s", started.elapsed().as_secs_f64());
    println!("  resident {}, at most {}", memory("VmRSS"), memory("VmHWM"));
    let index = fs::read_dir(&cache).unwrap().next().unwrap().unwrap().metadata().unwrap().len();
    println!("  index: {} or {:.2} B per bar", binary_bytes(index), index as f64 / 20e6);
    drop(report);
    let started = Instant::now();
    let report = Report::open_with_cache(&path, Some(cache)).unwrap();
    let trace = report.trace().unwrap().unwrap();
    (0..4).for_each(|lane| drop(trace.lane(lane).unwrap().spans(trace.range(), 2000).unwrap()));
    println!("  opened again, all lanes drawn: {:?}", started.elapsed());
    let started = Instant::now();
    assert_eq!(report.step(StepId(4_000_000)).unwrap().unwrap().ipus.len(), 4);
    println!("  step: {:?}", started.elapsed());
}

/// Measures the limits of all operations of BERT-Large. The target is 0.1 s.
fn measure_limits() {
    for name in ["bert_large_pod16", "mnist_pipeline"] {
        let directory = tempdir().unwrap();
        let source = SpecSource::find(name, &[]).unwrap();
        let spec = Spec::build(&source).unwrap();
        simulate(&spec, directory.path(), |_| ()).unwrap();
        println!("\nlimits of {name}");
        for turn in ["first", "again"] {
            let report = Report::open(directory.path()).unwrap();
            let started = Instant::now();
            let found = limits(&report).unwrap();
            let took = started.elapsed();
            let run = found.run.as_ref();
            let utilisation = run.and_then(|run| run.utilisation()).unwrap_or(0.0);
            let rows = grouped(found.rows.len() as u64);
            println!("  {turn}: {rows} rows, {} in {took:?}", fine_percent(utilisation));
        }
    }
}

/// Measures the memory of the fullest tile of BERT-Large by address over all steps.
fn measure_by_address() {
    let directory = tempdir().unwrap();
    let source = SpecSource::find("bert_large_pod16", &[]).unwrap();
    simulate(&Spec::build(&source).unwrap(), directory.path(), |_| ()).unwrap();
    println!("\nmemory by address of bert_large_pod16");
    for turn in ["first", "again"] {
        let report = Report::open(directory.path()).unwrap();
        let tiles = report.tile_memory().unwrap();
        let fullest = tiles.iter().max_by_key(|(_, tile)| tile.including_gaps).unwrap().0.first;
        let started = Instant::now();
        let found = by_address(&report, fullest).unwrap().unwrap();
        let read = started.elapsed();
        let started = Instant::now();
        let free = found.free_in(0..found.steps());
        let highest = found.highest().is_some();
        let took = started.elapsed();
        println!(
            "  {turn}: tile {fullest}, {} variables over {} steps, read in {read:?}; {} free blocks, \
             highest variable found: {highest}, in {took:?}",
            grouped(found.placed.len() as u64),
            grouped(found.steps().into()),
            free.blocks.len(),
        );
    }
    println!("  memory: {}", memory("VmHWM"));
}

/// The measurements; the first is the default.
const SIZES: [(&str, fn()); 7] = [
    ("million", || {
        measure(1_000_000, 1, StepLayout::Rows);
        measure(1_000_000, 4, StepLayout::Rows);
        measure(1_000_000, 4, StepLayout::Columns);
    }),
    ("ten-million", || {
        measure(10_000_000, 1, StepLayout::Rows);
        measure(10_000_000, 1, StepLayout::Columns);
    }),
    ("hundred-million", || measure(25_000_000, 4, StepLayout::Columns)),
    ("sixty-four-ipus", || measure(1_562_500, 64, StepLayout::Columns)),
    ("foreign", measure_a_foreign_file),
    ("limits", measure_limits),
    ("by-address", measure_by_address),
];

fn main() {
    let asked: Vec<String> = std::env::args().skip(1).collect();
    let chosen = SIZES.iter().find(|(name, _)| asked.iter().any(|word| word == name));
    chosen.unwrap_or(&SIZES[0]).1();
}
