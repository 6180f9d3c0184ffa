//! Runs `cargo test`, measures every test, and fails if one takes too large a share of the fast tier.
//!
//! libtest prints durations with an unstable option, which it accepts with `RUSTC_BOOTSTRAP=1`.
//! Only the test programs get that variable: cargo runs them through [`run_test`], its *runner*, so
//! that nothing is recompiled for it.
//!
//! The limit is a share of the seconds of all tests of the run, so that it is the same law on a slow
//! machine and beside other work.
//!
//! A test that exceeds the limit beside other tests is run again alone, because an interruption of the
//! machine must not count. The fastest of its runs counts.

use std::error::Error;
use std::fs::{self, OpenOptions};
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};
use std::time::Instant;

pub(crate) const HELP: &str = "\
cargo xtask test-times [--limit PERCENT] [--top N] [-- ARGUMENTS OF CARGO TEST]

Runs `cargo test`, prints the slowest tests, and exits with 1 if a test fails or one of the fast tier
takes more than the limit, also when it runs alone.
  --limit PERCENT  most that a test of the fast tier may take of the time of all tests together
                   (default: no limit)
  --top N          how many of the slowest tests are printed (default: 30)";

/// The variable with the name of the file in which the runner collects durations.
const TIMES_FILE: &str = "TILESCOPE_TEST_TIMES";
/// The number of times that a slow test is run again alone.
const RUNS_ALONE: usize = 2;

/// The command line of `test-times`.
#[derive(Debug, PartialEq)]
struct Arguments {
    /// Percent of the time of all tests.
    limit: Option<f64>,
    top: usize,
    of_cargo: Vec<String>,
}

impl Arguments {
    fn parse(mut arguments: impl Iterator<Item = String>) -> Result<Self, Box<dyn Error>> {
        let mut parsed = Self { limit: None, top: 30, of_cargo: Vec::new() };
        while let Some(argument) = arguments.next() {
            let mut value =
                || arguments.next().ok_or(format!("{argument} needs a value\n\n{HELP}"));
            match argument.as_str() {
                "--limit" => parsed.limit = Some(value()?.parse()?),
                "--top" => parsed.top = value()?.parse()?,
                "--" => {
                    parsed.of_cargo = arguments.collect();
                    break;
                }
                other => return Err(format!("there is no option {other}\n\n{HELP}").into()),
            }
        }
        Ok(parsed)
    }
}

/// A test that ran.
#[derive(Clone, Debug, PartialEq)]
struct TestTime {
    seconds: f64,
    /// The directory that cargo ran it in.
    directory: PathBuf,
    program: PathBuf,
    name: String,
}

impl TestTime {
    fn line(&self) -> String {
        let directory = self.directory.display();
        let program = self.program.display();
        format!("{}\t{directory}\t{program}\t{}\n", self.seconds, self.name)
    }

    fn of_line(line: &str) -> Option<Self> {
        let mut fields = line.split('\t');
        Some(Self {
            seconds: fields.next()?.parse().ok()?,
            directory: PathBuf::from(fields.next()?),
            program: PathBuf::from(fields.next()?),
            name: fields.next()?.to_owned(),
        })
    }

    /// The name of the test program without the digest of its build.
    fn program_name(&self) -> String {
        let name = self.program.file_stem().unwrap_or_default().to_string_lossy();
        name.rsplit_once('-').map_or(name.to_string(), |(name, _)| name.to_owned())
    }

    /// Seconds that the test takes alone, the least of several runs.
    fn alone(&self) -> Result<f64, Box<dyn Error>> {
        let mut least = f64::MAX;
        for _ in 0..RUNS_ALONE {
            let begun = Instant::now();
            let status = Command::new(&self.program)
                .args(["--exact", &self.name])
                .current_dir(&self.directory)
                .stdout(Stdio::null())
                .status()?;
            if !status.success() {
                return Err(format!("{} fails when it runs alone", self.name).into());
            }
            least = least.min(begun.elapsed().as_secs_f64());
        }
        Ok(least)
    }
}

/// Runs the tests. Returns true if all passed and none of the fast tier is too slow.
pub(crate) fn test_times(
    arguments: impl Iterator<Item = String>,
    root: &Path,
) -> Result<bool, Box<dyn Error>> {
    let arguments = Arguments::parse(arguments)?;
    let runner = std::env::current_exe()?;
    let runner = runner.to_str().ok_or("the path of this program is not UTF-8")?;
    let times_file = std::env::temp_dir().join(format!("test-times-{}", std::process::id()));
    fs::write(&times_file, "")?;
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let passed = Command::new(cargo)
        .arg("test")
        .arg("--config")
        .arg(format!("target.'cfg(all())'.runner = [{runner:?}, \"run-test\"]"))
        .args(&arguments.of_cargo)
        .current_dir(root)
        .env(TIMES_FILE, &times_file)
        .status()?
        .success();
    let times = fs::read_to_string(&times_file)?;
    fs::remove_file(&times_file)?;
    let mut times: Vec<TestTime> = times.lines().filter_map(TestTime::of_line).collect();
    times.sort_by(|a, b| b.seconds.total_cmp(&a.seconds));
    let total: f64 = times.iter().map(|test| test.seconds).sum();
    println!("\n{} tests, {total:.0} s one after the other; the slowest:", times.len());
    for test in times.iter().take(arguments.top) {
        println!("{:8.2} s  {} {}", test.seconds, test.program_name(), test.name);
    }
    let is_slow_tier = std::env::var_os("TILESCOPE_SLOW_TESTS").is_some();
    let Some(percent) = arguments.limit.filter(|_| passed && !is_slow_tier) else {
        return Ok(passed);
    };
    let limit = total * percent / 100.0;
    let mut slow = 0;
    for test in times.iter().filter(|test| test.seconds > limit) {
        let alone = test.alone()?;
        if alone > limit {
            slow += 1;
            println!(
                "too slow for the fast tier: {} {}, {alone:.2} s alone, at most {limit:.2} s ({percent} % of all tests)",
                test.program_name(),
                test.name,
            );
        }
    }
    Ok(slow == 0)
}

/// Runs a test program for cargo, and records the duration of each of its tests.
pub(crate) fn run_test(
    mut arguments: impl Iterator<Item = String>,
) -> Result<ExitCode, Box<dyn Error>> {
    let program = PathBuf::from(arguments.next().ok_or("a test program is missing")?);
    let mut command = Command::new(&program);
    command.args(arguments);
    let is_test = program.parent().is_some_and(|folder| folder.ends_with("deps"));
    let Some(times_file) = std::env::var_os(TIMES_FILE).filter(|_| is_test) else {
        return Ok(exit_code(command.status()?.code()));
    };
    command.env("RUSTC_BOOTSTRAP", "1").args(["-Zunstable-options", "--report-time"]);
    let mut child = command.stdout(Stdio::piped()).spawn()?;
    let mut times = OpenOptions::new().append(true).open(times_file)?;
    let directory = std::env::current_dir()?;
    let output = child.stdout.take().ok_or("the test program has no output")?;
    for line in BufReader::new(output).lines() {
        let line = line?;
        println!("{line}");
        if let Some((name, seconds)) = duration(&line) {
            let directory = directory.clone();
            let program = program.clone();
            let test = TestTime { seconds, directory, program, name: name.to_owned() };
            times.write_all(test.line().as_bytes())?;
        }
    }
    Ok(exit_code(child.wait()?.code()))
}

/// The name and the seconds of a test, from a line of libtest's output.
fn duration(line: &str) -> Option<(&str, f64)> {
    let (name, rest) = line.strip_prefix("test ")?.split_once(" ... ")?;
    let (_, seconds) = rest.strip_suffix("s>")?.rsplit_once('<')?;
    let name = name.strip_suffix(" - should panic").unwrap_or(name);
    Some((name, seconds.parse().ok()?))
}

fn exit_code(code: Option<i32>) -> ExitCode {
    ExitCode::from(code.and_then(|code| u8::try_from(code).ok()).unwrap_or(1))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_read_from_lines_of_libtest() {
        let lines = [
            ("test a::b ... ok <0.324s>", Some(("a::b", 0.324))),
            ("test a::b - should panic ... ok <12.000s>", Some(("a::b", 12.0))),
            ("test a::b ... FAILED <1.5s>", Some(("a::b", 1.5))),
            ("test a::b ... ignored", None),
            ("test result: ok. 2 passed; 0 failed; finished in 0.32s", None),
            ("<0.3s>", None),
        ];
        for (line, expected) in lines {
            assert_eq!(duration(line), expected, "{line}");
        }
    }

    #[test]
    fn lines_of_the_file_come_back() {
        let test = TestTime {
            seconds: 1.25,
            directory: PathBuf::from("/a b"),
            program: PathBuf::from("/t/deps/headless-0123"),
            name: "a::b".to_owned(),
        };
        assert_eq!(TestTime::of_line(test.line().trim_end()), Some(test.clone()));
        assert_eq!(test.program_name(), "headless");
        assert_eq!(TestTime::of_line("1.0\tx"), None);
    }

    #[test]
    fn arguments_after_two_dashes_go_to_cargo() {
        let parse = |line: &str| Arguments::parse(line.split_whitespace().map(str::to_owned));
        let parsed = parse("--limit 2.5 -- --locked -p x").unwrap();
        assert_eq!((parsed.limit, parsed.top), (Some(2.5), 30));
        assert_eq!(parsed.of_cargo, ["--locked", "-p", "x"]);
        assert!(parse("--limt 3").is_err() && parse("--limit").is_err());
    }
}
