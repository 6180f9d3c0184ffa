//! Runs commands on hostile inputs: mutated reports of both layouts and of other tools, specs, ONNX
//! files, results, messages, queries.
//!
//! Every run is a process with limits on its CPU time and memory. It must end with an answer or an
//! error message, and must not change its input. `cargo xtask fuzz --minutes N` runs them for
//! longer; failures are saved below `target/fuzz` with their commands.

mod corpus;
mod mutations;

use crate::common::limited_tilescope;
use crate::report_support::Dice;
use corpus::{Corpus, FuzzInput};
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::{Duration, Instant};
use tilescope_test_tiers::slow_tests;

/// Runs of each kind of input in the fast and in the slow tier.
const FAST_RUNS: u64 = 3;
const SLOW_RUNS: u64 = 60;

/// Limits of a run: CPU time in seconds, and kilobytes of address space. The address space exceeds
/// the resident size, because threads reserve some.
const MOST_SECONDS: u64 = 20;
const MOST_KILOBYTES: u64 = 2_000_000;

/// The limit on the resident kilobytes of a run.
const MOST_RESIDENT: u64 = 500_000;

/// The outcome of a run.
struct FuzzRun {
    code: Option<i32>,
    said: String,
    /// The largest resident size seen, in kilobytes; 0 if the system does not report it.
    resident: u64,
}

impl FuzzRun {
    /// Runs the program with limits.
    fn of(words: &[String], stdin: &[u8], directory: &Path) -> Self {
        let limits = format!("ulimit -t {MOST_SECONDS}; ulimit -v {MOST_KILOBYTES}");
        let mut command = limited_tilescope(&limits);
        command.args(words);
        command.env("XDG_CACHE_HOME", directory.join("cache")).env("TMPDIR", directory);
        command.env("RAYON_NUM_THREADS", "2").current_dir(directory);
        let stderr = directory.join("stderr");
        command.stdin(Stdio::piped()).stdout(Stdio::null());
        command.stderr(fs::File::create(&stderr).expect("a file"));
        let mut child = command.spawn().expect("a shell starts");
        // A program that reads no input may have exited.
        let _ = child.stdin.take().expect("an input").write_all(stdin);
        let mut resident = 0;
        let status = loop {
            resident = resident.max(resident_size(child.id()));
            if let Some(status) = child.try_wait().expect("a state") {
                break status;
            }
            std::thread::sleep(Duration::from_millis(2));
        };
        let said = fs::read(&stderr).unwrap_or_default();
        let said = String::from_utf8_lossy(&said).into_owned();
        Self { code: status.code(), said, resident }
    }

    /// The reason why it is a failure.
    fn problem(&self) -> Option<String> {
        if self.said.contains("panicked at") {
            return Some("it panics".to_owned());
        }
        if self.said.contains("memory allocation of") {
            return Some("it takes memory without bound".to_owned());
        }
        if self.resident > MOST_RESIDENT {
            return Some(format!("it takes {} kB", self.resident));
        }
        match self.code {
            Some(0..=3) => None,
            Some(code) => Some(format!("exit code {code}")),
            None => Some("a signal ends it: it takes too long, or crashes".to_owned()),
        }
    }
}

/// The largest resident size of a process so far, in kilobytes.
fn resident_size(process: u32) -> u64 {
    let status = fs::read_to_string(format!("/proc/{process}/status")).unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    line.and_then(|line| line.split_whitespace().next()?.parse().ok()).unwrap_or(0)
}

/// Contents of the files of an input, to check that a run does not change them.
fn contents(paths: &[PathBuf]) -> Vec<Vec<u8>> {
    paths.iter().map(|path| fs::read(path).unwrap_or_default()).collect()
}

/// Runs numbered inputs, and collects failures as text.
struct Fuzzing {
    corpus: Corpus,
    directory: tempfile::TempDir,
    runs: u64,
    failures: Vec<String>,
}

impl Fuzzing {
    fn new() -> Self {
        let directory = tempfile::tempdir().expect("a directory");
        let corpus = Corpus::new(&directory.path().join("corpus"));
        Self { corpus, directory, runs: 0, failures: Vec::new() }
    }

    /// Runs one input of a kind, generated from a seed, and the command that reads it.
    fn run(&mut self, kind: usize, seed: u64) {
        let place = self.directory.path().join("input");
        fs::create_dir_all(&place).expect("a directory");
        let dice = &mut Dice::new(seed);
        let FuzzInput { words, stdin, files } = self.corpus.input(kind, dice, &place);
        let before = contents(&files);
        let run = FuzzRun::of(&words, &stdin, &place);
        let changed = contents(&files) != before;
        self.runs += 1;
        let problem = if changed { Some("it changes its input".to_owned()) } else { run.problem() };
        if let Some(problem) = problem {
            let said = run.said.lines().take(6).collect::<Vec<_>>().join("\n");
            let kept = self.keep(&place, kind, seed);
            self.failures.push(format!("{problem}: {words:?}\n{said}\nkept in {}", kept.display()));
        }
        fs::remove_dir_all(&place).expect("removed");
    }

    /// Copies the files of a failure to a permanent place.
    fn keep(&self, place: &Path, kind: usize, seed: u64) -> PathBuf {
        let kept = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("fuzz/{kind}-{seed}"));
        fs::create_dir_all(&kept).expect("a directory");
        for entry in fs::read_dir(place).expect("a directory").flatten() {
            if entry.path().is_file() {
                let _ = fs::copy(entry.path(), kept.join(entry.file_name()));
            }
        }
        kept
    }
}

/// A number from the environment.
fn asked(name: &str) -> Option<u64> {
    std::env::var(name).ok()?.parse().ok()
}

#[test]
#[cfg(target_os = "linux")]
fn hostile_inputs_give_answers_or_messages() {
    let mut fuzzing = Fuzzing::new();
    let first = asked("TILESCOPE_FUZZ_SEED").unwrap_or(0);
    let started = Instant::now();
    let minutes = asked("TILESCOPE_FUZZ_MINUTES");
    let rounds = if slow_tests() { SLOW_RUNS } else { FAST_RUNS };
    for round in 0.. {
        let goes_on = match minutes {
            Some(minutes) => started.elapsed() < Duration::from_secs(60 * minutes),
            None => round < rounds,
        };
        if !goes_on {
            break;
        }
        for kind in 0..Corpus::KINDS {
            fuzzing.run(kind, first + round);
        }
    }
    println!("{} runs, {} failures", fuzzing.runs, fuzzing.failures.len());
    assert!(fuzzing.failures.is_empty(), "{}", fuzzing.failures.join("\n\n"));
}
