//! Selects a part of a run: `--range`, `--ipus`, `--tiles`. All ranges are half-open, as in Rust
//! and Python: `0..2` is 0 and 1.

use super::command::CliError;
use crate::cli::error::UsageError;
use clap::{Arg, ArgMatches};
use std::collections::BTreeSet;
use std::ops::Range;
use tilescope_report::units::{CycleRange, Cycles};
#[cfg(feature = "parquet")]
use tilescope_report::units::{TileId, TileRange};
use tilescope_report::{Report, Target};

/// `--range`: cycles.
pub(super) fn range_argument() -> Arg {
    Arg::new("range").long("range").value_name("A..B").help(
        "Only steps and marks that share a \
                                                             cycle with A..B",
    )
}

/// `--ipus`: IPUs of the replica.
pub(super) fn ipus_argument() -> Arg {
    Arg::new("ipus").long("ipus").value_name("LIST").help("Only these IPUs: 0,2..4 is 0, 2 and 3")
}

/// `--tiles`: tiles of the replica.
pub(super) fn tiles_argument() -> Arg {
    Arg::new("tiles")
        .long("tiles")
        .value_name("A..B")
        .help("Only these tiles, numbered over all IPUs of the replica")
}

/// The selected cycles.
pub(super) fn window(
    matches: &ArgMatches,
    report: &Report,
) -> Result<Option<CycleRange>, CliError> {
    let Some(text) = matches.get_one::<String>("range") else { return Ok(None) };
    let Range { start, end } = half_open("--range", text)?;
    let window = CycleRange::new(Cycles(start), Cycles(end));
    let run = report.trace()?;
    let run = run.map(|trace| trace.range()).unwrap_or_default();
    if !run.is_empty() && !window.overlaps(run) {
        let text = text.clone();
        let run = run.start.0..run.end.0;
        return Err(UsageError::OutsideRun { text, run }.into());
    }
    Ok(Some(window))
}

/// The selected IPUs, in order.
pub(super) fn ipus(matches: &ArgMatches, target: &Target) -> Result<Option<Vec<u32>>, CliError> {
    let Some(text) = matches.get_one::<String>("ipus") else { return Ok(None) };
    let count = target.ipus_per_replica;
    let mut found = BTreeSet::new();
    for part in text.split(',') {
        let range = if part.contains("..") {
            half_open("--ipus", part)?
        } else {
            let ipu = number("--ipus", part)?;
            ipu..ipu.saturating_add(1)
        };
        // IPUs that the replica does not have are never enumerated.
        if range.end > u64::from(count) {
            let last = count.saturating_sub(1);
            let option = "--ipus";
            let text = text.clone();
            let has = format!("IPUs 0 to {last}");
            return Err(UsageError::NotInReport { option, text, has }.into());
        }
        found.extend(range.filter_map(|ipu| u32::try_from(ipu).ok()));
    }
    Ok(Some(found.into_iter().collect()))
}

/// The selected tiles, which only tables have.
#[cfg(feature = "parquet")]
pub(super) fn tiles(matches: &ArgMatches, target: &Target) -> Result<Option<TileRange>, CliError> {
    let Some(text) = matches.get_one::<String>("tiles") else { return Ok(None) };
    let range = half_open("--tiles", text)?;
    let all = target.tiles_per_replica();
    let ends = (u32::try_from(range.start), u32::try_from(range.end));
    match ends {
        (Ok(first), Ok(end)) if end <= all => Ok(Some(TileRange::new(TileId(first), TileId(end)))),
        _ => {
            let option = "--tiles";
            let text = text.clone();
            let has = format!("tiles 0..{all}");
            Err(UsageError::NotInReport { option, text, has }.into())
        }
    }
}

/// Reads `1000..2000`.
fn half_open(option: &'static str, text: &str) -> Result<Range<u64>, CliError> {
    let Some((start, end)) = text.split_once("..") else {
        return Err(UsageError::NoRange { option, text: text.to_owned() }.into());
    };
    let range = number(option, start)?..number(option, end)?;
    if range.is_empty() {
        return Err(UsageError::EmptyRange { option, text: text.to_owned() }.into());
    }
    Ok(range)
}

/// Reads `1000`; `1_000` is accepted too.
fn number(option: &'static str, text: &str) -> Result<u64, CliError> {
    let digits = text.trim().replace('_', "");
    let is_number = !digits.is_empty() && digits.bytes().all(|digit| digit.is_ascii_digit());
    let value = if is_number { digits.parse().ok() } else { None };
    Ok(value.ok_or_else(|| UsageError::NoNumber { option, text: text.to_owned() })?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_are_half_open_and_never_empty() {
        assert_eq!(half_open("--range", "1_000..2000").unwrap(), 1000..2000);
        for wrong in
            ["", "5", "..", "1..", "..2", "2..2", "3..2", "-1..2", "a..b", "0..1e3", "1...2"]
        {
            assert!(matches!(half_open("--range", wrong), Err(CliError::Usage(_))), "{wrong}");
        }
        let large = format!("0..{}0", u64::MAX);
        assert!(half_open("--range", &large).is_err());
    }
}
