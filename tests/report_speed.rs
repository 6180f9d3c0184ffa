//! How fast reports are written and read. Not run by default:
//! `cargo test --release --test report_speed -- --ignored --nocapture`

use std::fs;
use std::time::{Duration, Instant};
use tempfile::tempdir;
use tilescope::report::*;
use tilescope::units::*;

/// Programs of one iteration of a pipeline: as many as a real one compiles to.
const PROGRAMS: u64 = 3000;

/// An endless training loop on `ipus` IPUs: compute sets always take the same time, waits do not.
struct Loop {
    report: ReportBuilder,
    clock: u64,
    noise: u64,
}

impl Loop {
    fn new(ipus: u32) -> Self {
        let mut report = ReportBuilder::new(ipus, 1472);
        for i in 0..PROGRAMS {
            match i % 3 {
                0 => report.exchange(&format!("cs{i}_layer{i}/ExchangePre"), 64),
                1 => report.compute(&format!("layer{i}/Convolve"), 100 + i % 700),
                _ => report.program(ProgramKind::Sync, "Internal"),
            };
        }
        Self { report, clock: 0, noise: 1 }
    }

    fn step(&mut self, number: u64) -> Step {
        let program = ProgramId((number % PROGRAMS) as u32);
        let kind = self.report.parts.programs[program.index()].kind;
        self.noise = self.noise.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        let cycles = match kind {
            ProgramKind::Sync => 20 + (self.noise >> 60),
            _ => 100 + u64::from(program.0) % 700,
        };
        let (start, end) = (self.clock, self.clock + cycles);
        self.clock = end + 3;
        let bytes = if kind == ProgramKind::DoExchange { 64 * 1472 } else { 0 };
        let bar = |ipu| {
            let mut bar = self.report.bar(ipu, start..end);
            bar.from_min = start.saturating_sub(u64::from(program.0) % 13);
            bar.active_tile_balance = 0.5 + (program.0 % 50) as f32 / 100.0;
            (bar.bytes_in, bar.bytes_out) = (bytes, bytes);
            bar
        };
        let ipus = (0..self.report.parts.target.ipus_per_replica).map(bar).collect();
        Step { program, ipus }
    }
}

fn memory(field: &str) -> String {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find(|line| line.starts_with(field)).unwrap_or_default().to_owned();
    line.split_whitespace().skip(1).collect::<Vec<_>>().join(" ")
}

fn measure(steps: u64, ipus: u32) {
    let bars = steps * u64::from(ipus);
    println!("\n{} steps on {ipus} IPUs: {} bars", grouped(steps), grouped(bars));
    let directory = tempdir().unwrap();
    let mut work = Loop::new(ipus);
    let started = Instant::now();
    let mut writer = ReportWriter::create(directory.path(), &work.report.meta).unwrap();
    writer.compilation(&work.report.compilation()).unwrap();
    for number in 0..steps {
        writer.step(&work.step(number)).unwrap();
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
    let index: i64 = ["trace_chunks", "trace_nodes"]
        .iter()
        .map(|table| {
            let sql = format!("SELECT sum(length(data)) FROM {table}");
            blobs.query_row(&sql, [], |row| row.get::<_, i64>(0)).unwrap()
        })
        .sum();
    drop(blobs);
    println!("  index: {:.2} B per bar", index as f64 / bars as f64);
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
    lane.totals(CycleRange::new(range.start + 12_345, range.end - 12_345)).unwrap();
    println!("  totals: {:?}", started.elapsed());
    let started = Instant::now();
    report.step(StepId(report.step_count().unwrap() / 2)).unwrap();
    println!("  step: {:?}", started.elapsed());
    println!("  resident {}, at most {}", memory("VmRSS"), memory("VmHWM"));
}

#[test]
#[ignore = "a measurement, not a check"]
fn measure_a_million_steps() {
    measure(1_000_000, 1);
    measure(1_000_000, 4);
}

#[test]
#[ignore = "a measurement, not a check"]
fn measure_ten_million_steps() {
    measure(10_000_000, 1);
}
