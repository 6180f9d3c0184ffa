//! `sweep`: simulates a spec with every combination of values.

mod table;

use super::command::{CliCommand, CliError};
use super::picture::{self, FoundPicture};
use super::progress::{FoundReporter, ProgressReporter};
use super::{search, simulate};
use crate::cli::error::{JobError, UsageError};
use clap::{Arg, ArgAction, ArgMatches, value_parser};
use std::collections::BTreeMap;
use std::io::Write;
use std::path::{Path, PathBuf};
use tilescope_experiments::ExperimentError;
use tilescope_experiments::answers::{SweepAnswer, sorted_by_keys};
use tilescope_experiments::condition::Condition;
use tilescope_experiments::effective_keys::EffectiveKeys;
use tilescope_experiments::point::Point;
use tilescope_experiments::results_file::{KnownOutcomes, ResultsFile, SearchedSpec, changes_text};
use tilescope_experiments::shard::Shard;
use tilescope_experiments::spec_copy::SpecCopy;
use tilescope_experiments::strategies::grid::{self, GridRun};
use tilescope_experiments::trial::{TrialRunner, end_with_parent};
use tilescope_experiments::varied_key::VariedKey;
use tilescope_report::temporary_directory::TemporaryDirectory;

/// `tilescope sweep`
pub(super) const COMMAND: CliCommand = CliCommand { name: "sweep", arguments, run };

/// The maximum number of points of a sweep: at a second each, a third of a year of simulations.
const MOST_POINTS: usize = 10_000_000;

const AFTER_HELP: &str = "\
VALUES are a list (32,64,128), a range (8..64:8 adds 8, 8..64:x2 doubles) or words (loops,none).
A CONDITION compares a varied key, or a figure: seconds_per_sample, samples_per_second, cycles,
seconds, samples, memory (of the fullest tile), ipus. The condition fits takes no value. Points
whose keys violate a condition are not simulated; points whose figures violate a condition are not
shown.

A separate process simulates each point and saves it to --results when it ends, so the same command
continues a stopped sweep. Points that are refused, fail or do not fit have a row with the reason;
failed points are repeated. Exit code 1 if a point failed.

Examples:
  tilescope sweep mnist_pipeline --vary options.num_io_tiles=32,64 --vary options.overlap_io=none,loops
  tilescope sweep mnist_pipeline --vary options.gradient_accumulation=8..64:x2 --where 'memory < 300 KiB'
  tilescope sweep my_model.toml --vary model.batch_size=1..64:x2 --results points.db --format csv
  tilescope sweep my_model.toml --vary model.batch_size=1..64 --shard 3/8 --results points-3.db
  tilescope sweep --merge points-*.db --plot points.svg";

fn arguments(command: clap::Command) -> clap::Command {
    command
        .about("Simulate a spec with every combination of values: time, memory and IPUs of each")
        .arg(
            Arg::new("spec")
                .value_name("SPEC")
                .required_unless_present("merge")
                .help("A TOML file, or the name of a bundled spec (see tilescope specs)"),
        )
        .arg(
            Arg::new("vary")
                .long("vary")
                .value_name("KEY=VALUES")
                .action(ArgAction::Append)
                .required_unless_present("merge")
                .help("A key of the spec and its values; several --vary are combined"),
        )
        .arg(
            Arg::new("where")
                .long("where")
                .value_name("CONDITION")
                .action(ArgAction::Append)
                .help("Only points that satisfy this condition"),
        )
        .arg(simulate::set_argument())
        .arg(search::jobs_argument())
        .arg(
            Arg::new("shard")
                .long("shard")
                .value_name("I/N")
                .requires("results")
                .help("Simulate part I of N, counted from 1"),
        )
        .arg(search::results_argument())
        .arg(
            Arg::new("merge")
                .long("merge")
                .value_name("FILE")
                .num_args(1..)
                .action(ArgAction::Append)
                .value_parser(value_parser!(PathBuf))
                .conflicts_with_all(["spec", "vary", "set", "jobs", "shard"])
                .help(
                    "Show the points of several files of results together; with --results, write \
                       them to that file",
                ),
        )
        .arg(
            Arg::new("format")
                .long("format")
                .value_name("FORMAT")
                .value_parser(["table", "csv", "json"])
                .default_value("table")
                .help("Output format of the points"),
        )
        .arg(Arg::new("plot").long("plot").value_name("FILE").help(
            "Draw time over the first key, time over memory, and keys beside figures into \
                       a picture, .png or .svg",
        ))
        .after_help(AFTER_HELP)
}

fn run(matches: &ArgMatches, output: &mut dyn Write) -> Result<(), CliError> {
    end_with_parent();
    let picture = matches.get_one::<String>("plot").map(String::as_str);
    picture.map_or(Ok(()), picture::check)?;
    let (found, stopped) = match matches.get_many::<PathBuf>("merge") {
        Some(files) => (merged(&files.map(PathBuf::as_path).collect::<Vec<_>>(), matches)?, None),
        None => simulated(matches)?,
    };
    match matches.get_one::<String>("format").map_or("", String::as_str) {
        "csv" => write!(output, "{}", table::csv(&found))?,
        "json" => super::command::print_json(&serde_json::json!(found), output)?,
        _ => table::print(&found, output)?,
    }
    if let Some(file) = picture {
        picture::write(FoundPicture::Sweep(&found), file)?;
    }
    if let Some(stopped) = stopped {
        return Err(stopped.into());
    }
    let died = found.points.iter().filter(|point| point.point.died()).count();
    if died > 0 {
        let again = if matches.contains_id("results") {
            "run the same command to repeat them"
        } else {
            "use --results to keep the others and repeat only these"
        };
        return Err(JobError::Died { died, points: found.points.len(), again }.into());
    }
    Ok(())
}

/// The request of a sweep.
struct SweepRequest {
    keys: Vec<VariedKey>,
    conditions: Vec<Condition>,
}

impl SweepRequest {
    /// Reads keys and conditions.
    fn read(matches: &ArgMatches, known: &EffectiveKeys) -> Result<Self, CliError> {
        let mut keys: Vec<VariedKey> = Vec::new();
        for text in matches.get_many::<String>("vary").into_iter().flatten() {
            let to_error = |problem| UsageError::Option { option: "--vary", problem };
            let key = VariedKey::parse(text, known).map_err(to_error)?;
            if keys.iter().any(|other| other.path == key.path) {
                return Err(to_error(format!("{} varies twice", key.path)).into());
            }
            keys.push(key);
        }
        let points = keys.iter().try_fold(1_usize, |all, key| all.checked_mul(key.values.len()));
        if points.is_none_or(|points| points > MOST_POINTS) {
            let problem = format!("a sweep has at most {MOST_POINTS} points");
            return Err(UsageError::Option { option: "--vary", problem }.into());
        }
        let paths: Vec<&str> = keys.iter().map(|key| key.path.as_str()).collect();
        let conditions = conditions(matches, &paths)?;
        Ok(Self { keys, conditions })
    }
}

/// `--where`, with conditions on figures and on keys of these paths.
fn conditions(matches: &ArgMatches, paths: &[&str]) -> Result<Vec<Condition>, CliError> {
    let texts = matches.get_many::<String>("where").into_iter().flatten();
    let read = |text: &String| Condition::parse(text, paths);
    let read = texts.map(read).collect::<Result<_, _>>();
    Ok(read.map_err(|problem| UsageError::Option { option: "--where", problem })?)
}

/// Simulates the points that are missing in the file of results. Returns all points, and the error
/// that stopped it early, if any.
fn simulated(matches: &ArgMatches) -> Result<(SweepAnswer, Option<ExperimentError>), CliError> {
    let name = matches.get_one::<String>("spec").map_or("", String::as_str);
    let shard = matches.get_one::<String>("shard").map(|text| Shard::parse(text)).transpose();
    let shard = shard.map_err(|problem| UsageError::Option { option: "--shard", problem })?;
    let spec = search::spec(name, matches)?;
    let SweepRequest { keys, conditions } = SweepRequest::read(matches, &EffectiveKeys::of(&spec))?;
    let mut changes = grid::combinations(&keys, &conditions);
    if let Some(shard) = shard {
        changes = shard.of(changes);
    }
    let keys: Vec<String> = keys.into_iter().map(|key| key.path).collect();
    let searched = SearchedSpec::of(name, &spec);
    let results = match matches.get_one::<PathBuf>("results") {
        Some(path) => Some(ResultsFile::open(path, &searched)?),
        None => None,
    };
    let known = KnownOutcomes::of_file(results.as_ref())?;
    let directory = TemporaryDirectory::new()?;
    let copy = SpecCopy::write(&spec.text, name, directory.path())?;
    let runner = TrialRunner::new(copy.file_name(), Vec::new(), search::jobs(matches))?;
    let make_answer = |known: &KnownOutcomes| {
        SweepAnswer::new(&searched, keys.clone(), known.points(&changes), &conditions)
    };
    let progress = ProgressReporter::new("simulating");
    let found = FoundReporter::new();
    let (known, stopped) = grid::simulate(
        &changes,
        known,
        &GridRun { copy: &copy, runner: &runner, progress: &|share| progress.at(share) },
        results,
        |known| found.tell(|| make_answer(known)),
    );
    Ok((make_answer(&known), stopped))
}

/// Merges the points of several files of results of one spec.
fn merged(files: &[&Path], matches: &ArgMatches) -> Result<SweepAnswer, CliError> {
    let mut first: Option<(SearchedSpec, &Path)> = None;
    let mut points: BTreeMap<String, Point> = BTreeMap::new();
    let mut search = None;
    for path in files {
        let file = ResultsFile::read(path)?;
        // Several paths through one set of points make no path.
        search = if files.len() == 1 { file.search()? } else { None };
        let spec = file.spec()?;
        match &first {
            None => first = Some((spec, path)),
            Some((known, of)) => {
                if let Some(difference) = known.difference(&spec) {
                    let [path, other] = [path.to_path_buf(), of.to_path_buf()];
                    return Err(UsageError::OtherSpec { path, other, difference }.into());
                }
            }
        }
        for point in file.points()? {
            let known = points.entry(changes_text(&point.changes)).or_insert_with(|| point.clone());
            // A later attempt takes precedence.
            if known.died() {
                *known = point;
            }
        }
    }
    let Some((spec, _)) = first else { return Err(UsageError::Request("no file").into()) };
    let points: Vec<Point> = points.into_values().collect();
    if let Some(path) = matches.get_one::<PathBuf>("results") {
        ResultsFile::open(path, &spec)?.add_all(&points)?;
    }
    let (keys, points) = sorted_by_keys(points);
    let paths: Vec<&str> = keys.iter().map(String::as_str).collect();
    let conditions = conditions(matches, &paths)?;
    let answer = SweepAnswer::new(&spec, keys, points, &conditions);
    Ok(SweepAnswer { search: search.map(Box::new), ..answer })
}
