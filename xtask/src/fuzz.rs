//! Runs commands on hostile inputs for a long time: the test `fuzzing` with new seeds each time.

use std::error::Error;
use std::process::Command;
use std::time::{SystemTime, UNIX_EPOCH};

pub(crate) const HELP: &str = "\
cargo xtask fuzz [--minutes N] [--seed N]

Runs commands on mutated reports, specs, models, results, messages and questions, and exits with 1
if one panics, takes too long or too much memory, or changes its input. What fails is kept below
target/tmp/fuzz.
  --minutes N  how long (default: 10)
  --seed N     where random numbers begin (default: the time)";

/// Parses the command line and runs the test; `false` if something fails.
pub(crate) fn fuzz(mut arguments: impl Iterator<Item = String>) -> Result<bool, Box<dyn Error>> {
    let now = SystemTime::now().duration_since(UNIX_EPOCH)?.as_secs();
    let mut minutes: u64 = 10;
    let mut seed = now;
    while let Some(argument) = arguments.next() {
        let value = arguments.next().ok_or(format!("{argument} needs a value\n\n{HELP}"))?;
        match argument.as_str() {
            "--minutes" => minutes = value.parse()?,
            "--seed" => seed = value.parse()?,
            other => return Err(format!("there is no option {other}\n\n{HELP}").into()),
        }
    }
    println!("seed {seed}, {minutes} minutes");
    let mut test = Command::new("cargo");
    test.args(["test", "--test", "headless", "fuzzing::", "--", "--nocapture"]);
    test.env("TILESCOPE_FUZZ_MINUTES", minutes.to_string());
    test.env("TILESCOPE_FUZZ_SEED", seed.to_string());
    Ok(test.status()?.success())
}
