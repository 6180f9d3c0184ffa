//! `sweep`: a spec with every combination of values.

mod shard;
mod table;

use super::picture::{self, FoundPicture};
use super::progress::{FoundReporter, ProgressReporter};
use super::search::{
    self, Condition, EffectiveKeys, Point, ResultsFile, SearchedSpec, SpecCopy, VariedKey,
    changes_text,
};
use super::trials::{SpecChanges, TrialOutcome, TrialRunner, end_with_parent, in_parallel};
use super::{CliCommand, CliError, simulate};
use clap::{Arg, ArgAction, ArgMatches, value_parser};
use serde_json::Value;
use shard::Shard;
use std::collections::BTreeMap;
use std::io::Write;
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use table::SweepTable;
use tilescope_sim::spec::Spec;

/// `tilescope sweep`
pub(super) const COMMAND: CliCommand = CliCommand { name: "sweep", arguments, run };

/// Most points of a sweep: a year of simulations of a second each is more than anybody waits for.
const MOST_POINTS: usize = 10_000_000;

const AFTER_HELP: &str = "\
VALUES are a list (32,64,128), a range (8..64:8 adds 8, 8..64:x2 doubles) or words (loops,none).
A CONDITION compares a key that varies, or a figure: seconds_per_sample, samples_per_second, cycles,
seconds, samples, memory (of the fullest tile), ipus; fits is one by itself. Points whose keys do not
meet it are not simulated, those whose figures do not are not shown. All conditions must be met.

Each point is simulated by a process of its own, and written to --results as it ends: the same command
goes on where it was stopped. What was refused, died or does not fit is a row that says why; what died
is tried again. Exit code 1 if anything died.

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
                .help("A key of the spec and the values that it takes; several --vary are combined"),
        )
        .arg(
            Arg::new("where")
                .long("where")
                .value_name("CONDITION")
                .action(ArgAction::Append)
                .help("Which points are simulated and shown"),
        )
        .arg(simulate::set_argument())
        .arg(search::jobs_argument())
        .arg(
            Arg::new("shard")
                .long("shard")
                .value_name("I/N")
                .requires("results")
                .help("Simulate part I of N, counted from 1: all parts together are the whole"),
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
                .help("Show the points of several files of results together; with --results, write them to one"),
        )
        .arg(
            Arg::new("format")
                .long("format")
                .value_name("FORMAT")
                .value_parser(["table", "csv", "json"])
                .default_value("table")
                .help("How points are printed"),
        )
        .arg(
            Arg::new("plot")
                .long("plot")
                .value_name("FILE")
                .help("Draw time over the first key, time beside memory, and keys beside figures into a picture, .png or .svg"),
        )
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
        "csv" => write!(output, "{}", found.csv())?,
        "json" => writeln!(output, "{:#}", found.json())?,
        _ => found.print(output)?,
    }
    if let Some(file) = picture {
        picture::write(FoundPicture::Sweep, &found.json(), file)?;
    }
    if let Some(stopped) = stopped {
        return Err(stopped);
    }
    let died = found.points.iter().filter(|point| is_unfinished(point)).count();
    if died > 0 {
        let again = match matches.contains_id("results") {
            true => "the same command tries them again",
            false => "with --results, the others are kept while these are tried again",
        };
        return Err(CliError::Failed(format!(
            "{died} of {} points died: {again}",
            found.points.len()
        )));
    }
    Ok(())
}

/// Whether a point is to be tried again.
fn is_unfinished(point: &Point) -> bool {
    matches!(point.outcome, TrialOutcome::Died(_))
}

/// What is asked of a sweep.
struct SweepRequest {
    keys: Vec<VariedKey>,
    conditions: Vec<Condition>,
}

impl SweepRequest {
    /// Reads keys and conditions.
    fn read(matches: &ArgMatches, known: &EffectiveKeys) -> Result<Self, CliError> {
        let mut keys: Vec<VariedKey> = Vec::new();
        for text in matches.get_many::<String>("vary").into_iter().flatten() {
            let usage = |problem| CliError::Usage(format!("--vary: {problem}"));
            let key = VariedKey::parse(text, known).map_err(usage)?;
            if keys.iter().any(|other| other.path == key.path) {
                return Err(usage(format!("{} varies twice", key.path)));
            }
            keys.push(key);
        }
        let points = keys.iter().try_fold(1_usize, |all, key| all.checked_mul(key.values.len()));
        if points.is_none_or(|points| points > MOST_POINTS) {
            let problem = format!("--vary: a sweep has at most {MOST_POINTS} points");
            return Err(CliError::Usage(problem));
        }
        let paths: Vec<&str> = keys.iter().map(|key| key.path.as_str()).collect();
        let conditions = conditions(matches, &paths)?;
        Ok(Self { keys, conditions })
    }

    /// The combinations of values that meet the conditions on keys: the last key varies fastest.
    fn points(&self) -> Vec<SpecChanges> {
        let mut points = vec![SpecChanges::new()];
        for VariedKey { path, values } in &self.keys {
            let longer = points.iter().flat_map(|point| {
                values.iter().map(move |value| {
                    let mut point = point.clone();
                    point.insert(path.clone(), value.clone());
                    point
                })
            });
            points = longer.collect();
        }
        points.retain(|point| {
            let holds = |condition: &Condition| condition.of_keys(|path| point.get(path));
            self.conditions.iter().all(|condition| holds(condition) != Some(false))
        });
        points
    }
}

/// `--where`, on figures and on keys of these paths.
fn conditions(matches: &ArgMatches, paths: &[&str]) -> Result<Vec<Condition>, CliError> {
    let texts = matches.get_many::<String>("where").into_iter().flatten();
    let read = |text: &String| Condition::parse(text, paths);
    let read = texts.map(read).collect::<Result<_, _>>();
    read.map_err(|problem| CliError::Usage(format!("--where: {problem}")))
}

/// Simulates the points that are not in the file of results yet; gives all, and why it stopped
/// before the last one, if it did.
fn simulated(matches: &ArgMatches) -> Result<(SweepTable, Option<CliError>), CliError> {
    let name = matches.get_one::<String>("spec").map_or("", String::as_str);
    let shard = matches.get_one::<String>("shard").map(|text| Shard::parse(text)).transpose();
    let shard = shard.map_err(|problem| CliError::Usage(format!("--shard: {problem}")))?;
    let spec = search::spec(name, matches)?;
    let request = SweepRequest::read(matches, &EffectiveKeys::of(&spec))?;
    let mut points = request.points();
    if let Some(shard) = shard {
        points = shard.of(points);
    }
    let results = matches.get_one::<PathBuf>("results");
    let results = results.map(|path| ResultsFile::open(path, &SearchedSpec::of(name, &spec)));
    let results = results.transpose()?;
    let mut known: BTreeMap<String, TrialOutcome> = BTreeMap::new();
    if let Some(results) = &results {
        let finished = results.points()?.into_iter().filter(|point| !is_unfinished(point));
        known.extend(finished.map(|point| (changes_text(&point.changes), point.outcome)));
    }
    let is_new = |changes: &&SpecChanges| !known.contains_key(&changes_text(changes));
    let new: Vec<SpecChanges> = points.iter().filter(is_new).cloned().collect();
    let SweepRequest { keys, conditions } = request;
    let keys: Vec<String> = keys.into_iter().map(|key| key.path).collect();
    let table = |known: &BTreeMap<String, TrialOutcome>| {
        let point = |changes: &SpecChanges| {
            let outcome = known.get(&changes_text(changes))?.clone();
            Some(Point { changes: changes.clone(), outcome })
        };
        let points = points.iter().filter_map(point).collect();
        let (spec, text) = (name.to_owned(), spec.text.clone());
        SweepTable { spec, text, keys: keys.clone(), points, search: None }.filtered(&conditions)
    };
    let sweep = SweepRun { spec: &spec, name, results, jobs: search::jobs(matches) };
    let (known, stopped) = sweep.simulate(&new, known, |known| table(known).json())?;
    Ok((table(&known), stopped))
}

/// What each point is a change of, and where it goes.
struct SweepRun<'a> {
    spec: &'a Spec,
    name: &'a str,
    results: Option<ResultsFile>,
    jobs: NonZeroUsize,
}

impl SweepRun<'_> {
    /// Simulates changed specs, and writes each as it ends; gives what is known then, and why the
    /// others were not begun, if anything went wrong. `found` says what is known so far.
    fn simulate(
        self,
        new: &[SpecChanges],
        known: BTreeMap<String, TrialOutcome>,
        found: impl Fn(&BTreeMap<String, TrialOutcome>) -> Value + Sync,
    ) -> Result<(BTreeMap<String, TrialOutcome>, Option<CliError>), CliError> {
        let copy = SpecCopy::write(self.spec, self.name)?;
        let runner = TrialRunner::new(&copy.file_name()?, Vec::new(), self.jobs)?;
        let progress = Mutex::new((ProgressReporter::new("simulating"), FoundReporter::new()));
        let (known, stopped) = (Mutex::new(known), Mutex::new(None));
        let (done, results) = (AtomicUsize::new(0), Mutex::new(self.results));
        let stop = |error: CliError| {
            if let Ok(mut stopped) = stopped.lock() {
                stopped.get_or_insert(error);
            }
        };
        in_parallel(self.jobs, new, |_, changes| {
            if stopped.lock().map_or(true, |stopped| stopped.is_some()) {
                return;
            }
            let Ok(outcome) = runner.figures(changes).map_err(stop) else { return };
            let point = Point { changes: changes.clone(), outcome: copy.spoken_of(outcome) };
            if let Ok(results) = results.lock()
                && let Some(results) = results.as_ref()
            {
                results.add(&point).unwrap_or_else(stop);
            }
            let done = done.fetch_add(1, Ordering::Relaxed) + 1;
            if let Ok(mut known) = known.lock() {
                known.insert(changes_text(&point.changes), point.outcome);
                if let Ok(mut progress) = progress.lock() {
                    progress.0.at(done as f64 / new.len() as f64);
                    progress.1.tell(|| found(&known));
                }
            }
        });
        if let Ok(progress) = progress.lock() {
            progress.0.finish();
        }
        let stopped = stopped.into_inner().ok().flatten();
        Ok((known.into_inner().unwrap_or_else(PoisonError::into_inner), stopped))
    }
}

/// The points of several files of results of one spec.
fn merged(files: &[&Path], matches: &ArgMatches) -> Result<SweepTable, CliError> {
    let mut first: Option<(SearchedSpec, &Path)> = None;
    let mut points: BTreeMap<String, Point> = BTreeMap::new();
    let mut search = None;
    for path in files {
        let file = ResultsFile::read(path)?;
        // Several paths through one set of points are none.
        search = if files.len() == 1 { file.search()? } else { None };
        let spec = file.spec()?;
        match &first {
            None => first = Some((spec, path)),
            Some((known, of)) => {
                if let Some(difference) = known.difference(&spec) {
                    let (path, of) = (path.display(), of.display());
                    let problem = format!("{path} does not go with {of}: {difference}");
                    return Err(CliError::Usage(problem));
                }
            }
        }
        for point in file.points()? {
            let known = points.entry(changes_text(&point.changes)).or_insert_with(|| point.clone());
            // Whoever tried it again knows better.
            if is_unfinished(known) {
                *known = point;
            }
        }
    }
    let Some((spec, _)) = first else { return Err(CliError::Usage("no file".to_owned())) };
    let points: Vec<Point> = points.into_values().collect();
    if let Some(path) = matches.get_one::<PathBuf>("results") {
        ResultsFile::open(path, &spec)?.add_all(&points)?;
    }
    let table = SweepTable { search, ..SweepTable::of_any(spec, points) };
    let paths: Vec<&str> = table.keys.iter().map(String::as_str).collect();
    let conditions = conditions(matches, &paths)?;
    Ok(table.filtered(&conditions))
}
