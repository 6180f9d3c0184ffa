//! Shared arguments of searches.

use super::command::CliError;
use super::simulate;
use clap::{Arg, ArgMatches, value_parser};
use std::num::NonZeroUsize;
use std::path::PathBuf;
use tilescope_sim::specification::Spec;

/// The spec with this name, changed by `--set`.
///
/// # Errors
/// The spec is refused.
pub(super) fn spec(name: &str, matches: &ArgMatches) -> Result<Spec, CliError> {
    simulate::build(&simulate::source(name, matches)?)
}

/// `--jobs`
pub(super) fn jobs_argument() -> Arg {
    Arg::new("jobs")
        .long("jobs")
        .value_name("N")
        .value_parser(value_parser!(NonZeroUsize))
        .help("Number of parallel simulations (default: one per core)")
}

/// The number of parallel simulations.
pub(super) fn jobs(matches: &ArgMatches) -> NonZeroUsize {
    let cores = std::thread::available_parallelism().unwrap_or(NonZeroUsize::MIN);
    matches.get_one::<NonZeroUsize>("jobs").copied().unwrap_or(cores)
}

/// `--results`
pub(super) fn results_argument() -> Arg {
    Arg::new("results")
        .long("results")
        .value_name("FILE")
        .value_parser(value_parser!(PathBuf))
        .help(
            "Save each finished simulation to this SQLite file; the same command continues from \
               it",
        )
}
