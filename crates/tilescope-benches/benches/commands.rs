//! Measures commands that jobs wait for, on reports of real size, against their limits: `cargo
//! bench --bench commands`, `-- NAME …` for some of [`MEASUREMENTS`], `-- growth` for the growth of
//! their time with the run. Reports are made once, in `target/tmp` (4 GB); delete them to have them
//! made by a newer program.
//!
//! Each command runs three times, and the fastest counts: other work of the machine only adds.

#![expect(clippy::unwrap_used, reason = "a measurement may fail")]

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::LazyLock;
use std::time::{Duration, Instant};
use tilescope_benches::{cpu_seconds_of_children, peak_memory};
use tilescope_fixtures::ipu_stack_profile::IpuStackProfile;

/// A command and its limits.
struct Measurement {
    name: &'static str,
    /// Its input or output, with the size.
    about: &'static str,
    /// The command line for a directory of reports, some of which it creates.
    command: fn(&Reports) -> Vec<String>,
    most_seconds: f64,
    most_mb: Option<f64>,
    /// The expected exit code.
    exits: i32,
}

const MEASUREMENTS: [Measurement; 12] = [
    Measurement {
        name: "query",
        about: "ten names with most cycles, 119 million records",
        command: |reports| words(["query", &reports.bert(4, true), "slowest-programs"]),
        most_seconds: 2.0,
        most_mb: None,
        exits: 0,
    },
    Measurement {
        name: "query-iteration",
        about: "programs of an iteration of MNIST, 97 million records",
        command: |reports| {
            words(["query", &reports.mnist(31_000), "slowest-programs-of-an-iteration"])
        },
        most_seconds: 0.05,
        most_mb: None,
        exits: 0,
    },
    Measurement {
        name: "parquet",
        about: "steps of BERT-Large, 29.7 million rows; 2 million rows a second are asked",
        command: |reports| {
            let file = reports.file("steps.parquet");
            words(["export", &reports.bert(1, true), "--format", "parquet", "-o", &file])
        },
        most_seconds: 15.0,
        most_mb: Some(300.0),
        exits: 0,
    },
    Measurement {
        name: "perfetto",
        about: "trace of BERT-Large, 29.7 million rows; 2 million rows a second are asked",
        command: |reports| {
            let file = reports.file("trace.perfetto-trace");
            words(["export", &reports.bert(1, true), "--format", "perfetto", "-o", &file])
        },
        most_seconds: 15.0,
        most_mb: Some(300.0),
        exits: 0,
    },
    Measurement {
        name: "report",
        about: "page of BERT-Large on 64 IPUs; at most 3 MB",
        command: |reports| {
            let pod = reports.simulated("pod64", "bert_large_pod64", &[]);
            words(["report", &pod, "-o", &reports.file("page.html")])
        },
        most_seconds: 5.0,
        most_mb: None,
        exits: 0,
    },
    Measurement {
        name: "gates",
        about: "two reports of 119 million records, gates hold",
        command: |reports| gates(reports, "execution.total_cycles > +100%"),
        most_seconds: 2.0,
        most_mb: Some(300.0),
        exits: 0,
    },
    Measurement {
        name: "violated-gate",
        about: "the same, a gate is violated: what changed is printed",
        command: |reports| gates(reports, "execution.total_cycles > 1"),
        most_seconds: 2.0,
        most_mb: Some(300.0),
        exits: 3,
    },
    Measurement {
        name: "series",
        about: "100 reports of MNIST",
        command: |reports| words(["series", &reports.series(100)]),
        most_seconds: 5.0,
        most_mb: None,
        exits: 0,
    },
    Measurement {
        name: "profile",
        about: "a profile of 100 MB that was never opened, to its first picture",
        command: |reports| {
            let picture = reports.file("profile.png");
            words([
                "export",
                &reports.profile(100 << 20),
                "--view",
                "execution-trace",
                "-o",
                &picture,
            ])
        },
        most_seconds: 2.0,
        most_mb: Some(500.0),
        exits: 0,
    },
    Measurement {
        name: "why",
        about: "path of BERT-Large, 29.7 million records",
        command: |reports| words(["why", &reports.bert(1, true), "--json"]),
        most_seconds: 0.5,
        most_mb: None,
        exits: 0,
    },
    Measurement {
        name: "prove",
        about: "proposals for MNIST, each simulated",
        command: |_| words(["insights", "mnist_pipeline", "--prove"]),
        most_seconds: 10.0,
        most_mb: None,
        exits: 0,
    },
    Measurement {
        name: "simulate",
        about: "BERT-Large, 29.7 million records",
        command: |reports| {
            words(["simulate", "bert_large_pod16", "--yes", "-o", &reports.file("simulated")])
        },
        most_seconds: 5.0,
        most_mb: None,
        exits: 0,
    },
];

/// The command line for a report.
type ReportCommand = fn(&str, &Reports) -> Vec<String>;

/// Commands whose answers should take the same time at any length of a run.
const GROWTH: [(&str, ReportCommand); 9] = [
    ("summary", |report, _| words(["summary", report])),
    ("why", |report, _| words(["why", report])),
    ("operations", |report, reports| view(report, "operations", reports)),
    ("program-tree", |report, reports| view(report, "program-tree", reports)),
    ("insights", |report, _| words(["insights", report])),
    ("find", |report, _| words(["find", report, "in:steps cycles>1k"])),
    ("compare", |report, _| words(["compare", report, report, "--view", "all"])),
    ("page", |report, reports| words(["report", report, "-o", &reports.file("page.html")])),
    ("trace", |report, reports| {
        let file = reports.file("trace.png");
        words(["export", report, "--view", "execution-trace", "-o", &file])
    }),
];

/// Iterations of runs of 10^6 to 10^8 records; `-- billion` adds one of 10^9.
const ITERATIONS: [u32; 4] = [310, 3_100, 31_000, 310_000];

fn view(report: &str, view: &str, reports: &Reports) -> Vec<String> {
    let file = reports.file("view.csv");
    words(["export", report, "--view", view, "--format", "csv", "-o", &file])
}

/// Prints the CPU time and memory of each command on runs of several lengths, and the exponent of the
/// growth of its time between the two longest: 0 if the length makes no difference, 1 if the time is
/// proportional to it.
///
/// CPU time, because other work of the machine lengthens a run but adds little to it.
fn growth(reports: &Reports, lengths: &[u32]) {
    for (name, command) in GROWTH {
        let mut seconds = Vec::new();
        let mut mb: f64 = 0.0;
        for length in lengths {
            let words = command(&reports.mnist(*length), reports);
            let mut least = f64::MAX;
            for _ in 0..3 {
                let before = cpu_seconds_of_children();
                mb = mb.max(run(0, &words, reports).mb);
                least = least.min(cpu_seconds_of_children() - before);
            }
            seconds.push(least);
        }
        let exponent = match seconds[..] {
            [.., shorter, longer] => (longer / shorter).log10(),
            _ => 0.0,
        };
        let columns: Vec<String> = seconds.iter().map(|of| format!("{of:7.2} s")).collect();
        println!("{name:16} {}  exponent {exponent:5.2}  {mb:4.0} MB", columns.join(" "));
    }
}

fn words<const N: usize>(words: [&str; N]) -> Vec<String> {
    words.map(str::to_owned).to_vec()
}

fn gates(reports: &Reports, gate: &str) -> Vec<String> {
    let (before, after) = (reports.bert(4, true), reports.bert(4, false));
    words(["compare", &before, &after, "--fail-if", gate])
}

/// A directory of reports, which are made on first use.
struct Reports(PathBuf);

impl Reports {
    fn file(&self, name: &str) -> String {
        self.0.join(name).to_string_lossy().into_owned()
    }

    /// The report of a bundled spec with changes.
    fn simulated(&self, name: &str, spec: &str, set: &[String]) -> String {
        let directory = self.file(name);
        if !Path::new(&directory).join("profile.pop").is_file() {
            let set = set.iter().flat_map(|change| ["--set", change]);
            let mut command = program(&self.file("cache"));
            command.args(["simulate", spec, "--yes", "-o", &directory]).args(set);
            assert!(command.stdout(Stdio::null()).status().unwrap().success(), "{name}");
        }
        directory
    }

    /// The report of BERT-Large on 16 IPUs for this number of iterations, with or without
    /// stochastic rounding.
    fn bert(&self, iterations: u32, stochastic: bool) -> String {
        let set = [
            format!("options.device_iterations={iterations}"),
            format!("options.stochastic_rounding={stochastic}"),
        ];
        self.simulated(&format!("bert-{iterations}-{stochastic}"), "bert_large_pod16", &set)
    }

    fn mnist(&self, iterations: u32) -> String {
        let set = [format!("options.device_iterations={iterations}")];
        self.simulated(&format!("mnist-{iterations}"), "mnist_pipeline", &set)
    }

    /// A directory with this number of reports of MNIST.
    fn series(&self, count: u32) -> String {
        for number in 0..count {
            let set = [format!("options.gradient_accumulation={}", 10 + number % 7)];
            self.simulated(&format!("series/{number}"), "mnist_pipeline", &set);
        }
        self.file("series")
    }

    /// A profile of measured tiles with at least this number of bytes.
    fn profile(&self, bytes: usize) -> String {
        let file = self.file("profile.capnp");
        if !Path::new(&file).is_file() {
            let of = |layers| IpuStackProfile::layers(1472, layers).bytes();
            let of_ten = of(10).len() as f64 / 10.0;
            fs::write(&file, of((bytes as f64 / of_ten).ceil() as u32)).unwrap();
        }
        file
    }
}

/// The program, with caches in a separate directory.
fn program(cache: &str) -> Command {
    static PROGRAM: LazyLock<PathBuf> = LazyLock::new(tilescope_benches::program);
    let mut command = Command::new(&*PROGRAM);
    command.env("XDG_CACHE_HOME", cache);
    command
}

/// The time and memory of one run.
struct Taken {
    time: Duration,
    mb: f64,
}

/// Runs a command that must exit with a given code.
fn run(exits: i32, words: &[String], reports: &Reports) -> Taken {
    // Reports converted from files of other tools are converted again.
    let cache = reports.file("cache");
    if Path::new(&cache).exists() {
        fs::remove_dir_all(&cache).unwrap();
    }
    let started = Instant::now();
    let mut command = program(&cache);
    command.args(words).stdout(Stdio::null()).stderr(Stdio::null());
    let mut child = command.spawn().unwrap();
    let mut mb: f64 = 0.0;
    let status = loop {
        mb = mb.max(peak_memory(child.id()).unwrap_or(0) as f64 * 1024e-6);
        if let Some(status) = child.try_wait().unwrap() {
            break status;
        }
        std::thread::sleep(Duration::from_millis(2));
    };
    let time = started.elapsed();
    assert_eq!(status.code(), Some(exits), "{words:?}");
    Taken { time, mb }
}

fn main() {
    let asked: Vec<String> = std::env::args().skip(1).filter(|word| word != "--bench").collect();
    let reports = Reports(Path::new(env!("CARGO_TARGET_TMPDIR")).join("commands"));
    fs::create_dir_all(&reports.0).unwrap();
    if asked.is_empty() || asked.iter().any(|word| ["growth", "billion"].contains(&word.as_str())) {
        let most = if asked.iter().any(|word| word == "billion") { 4 } else { 3 };
        growth(&reports, &ITERATIONS[..most]);
    }
    let is_asked = |of: &&Measurement| asked.is_empty() || asked.iter().any(|word| word == of.name);
    for measurement in MEASUREMENTS.iter().filter(is_asked) {
        let words = (measurement.command)(&reports);
        let runs: Vec<Taken> = (0..3).map(|_| run(measurement.exits, &words, &reports)).collect();
        let seconds = runs.iter().map(|taken| taken.time.as_secs_f64()).fold(f64::MAX, f64::min);
        let mb = runs.iter().map(|taken| taken.mb).fold(0.0, f64::max);
        let Measurement { name, about, most_seconds, most_mb, .. } = measurement;
        let memory = most_mb.map_or(String::new(), |most| format!(" (< {most})"));
        let verdict = if seconds < *most_seconds && most_mb.is_none_or(|most| mb < most) {
            "ok"
        } else {
            "MISSED"
        };
        println!(
            "{name:16} {seconds:6.2} s (< {most_seconds}), {mb:4.0} MB{memory}: {verdict}; {about}"
        );
    }
}
