//! `tune`: searches for a better spec.

mod summary;

use super::command::{CliCommand, CliError, json_argument};
use super::output_file;
use super::picture::{self, FoundPicture};
use super::progress::{FoundReporter, ProgressReporter};
use super::{search, simulate};
use crate::cli::error::{JobError, UsageError};
use clap::{Arg, ArgAction, ArgMatches, value_parser};
use std::io::Write;
use std::path::{Path, PathBuf};
use summary::TuneSummary;
use tilescope_experiments::budget::SearchBudget;
use tilescope_experiments::condition::Condition;
use tilescope_experiments::objective::TuneObjective;
use tilescope_experiments::point::Point;
use tilescope_experiments::results_file::{ResultsFile, SearchedSpec};
use tilescope_experiments::spec_copy::SpecCopy;
use tilescope_experiments::strategies::guided::Tuner;
use tilescope_experiments::strategies::levers;
use tilescope_experiments::strategies::moves::TuneSpace;
use tilescope_experiments::trial::{TrialRunner, end_with_parent, set_arguments};
use tilescope_experiments::trial_store::TrialStore;
use tilescope_report::temporary_directory::TemporaryDirectory;
use tilescope_sim::specification::{Spec, SpecSource};

/// `tilescope tune`
pub(super) const COMMAND: CliCommand = CliCommand { name: "tune", arguments, run };

const AFTER_HELP: &str = "\
Each step of the path is a change that gains, with the reason for testing it. The search tests the
proposals of insights at the best point so far (the largest upper bound first), combinations of
changes that gained, doubled and halved numbers, other values of options, and joined stages. A
separate process simulates each test. Keys that affect the result change only if --free names them:
keys of [model] and [target], samples per weight update, replicas, element types of partial sums and
results.

The same budget finds the same path, for any number of parallel simulations. With --results, a
stopped search continues where it ended, and tilescope sweep --merge FILE lists all tests.

For a spec that does not fit in memory, the search begins with the smallest change that makes it
fit: one lever, then two at once, then three. If only fixed keys would help, the result names them.

Conditions are those of tilescope sweep, on figures and on any key of the spec. Only programs that
fit in memory count. Exit code 1 if no tested spec meets them.

Examples:
  tilescope tune mnist_pipeline -o better.toml
  tilescope tune mnist_pipeline --budget 200 --free model.batch_size --free model.precision
  tilescope tune my_model.toml --objective memory --where 'samples_per_second > 1000' --budget 10m
  tilescope tune my_model.toml --fix options.host --results tune.db --json";

fn arguments(command: clap::Command) -> clap::Command {
    let list = |name: &'static str, value: &'static str, help: &'static str| {
        Arg::new(name).long(name).value_name(value).action(ArgAction::Append).help(help)
    };
    command
        .about(
            "Search for a better spec: test the proposals of insights, continue from those \
                that gain, and show the path",
        )
        .arg(
            Arg::new("spec")
                .value_name("SPEC")
                .required(true)
                .help("A TOML file, or the name of a bundled spec (see tilescope specs)"),
        )
        .arg(
            Arg::new("objective")
                .long("objective")
                .value_name("NAME")
                .value_parser(TuneObjective::ALL.map(TuneObjective::name))
                .default_value(TuneObjective::Throughput.name())
                .help(
                    "The figure to improve: samples per second, time of a host call, memory of \
                       the fullest tile, IPUs, or energy or cost per sample",
                ),
        )
        .arg(list("where", "CONDITION", "Condition on the result; can be repeated"))
        .arg(list(
            "free",
            "KEY",
            "A key, or a table of keys such as model, that may also change; \
                                  this can affect the result",
        ))
        .arg(list("fix", "KEY", "A key, or a table of keys, that must not change"))
        .arg(
            Arg::new("budget")
                .long("budget")
                .value_name("BUDGET")
                .value_parser(value_parser!(SearchBudget))
                .default_value("100")
                .help("Simulations (200) or time (90s, 10m, 2h) to search for"),
        )
        .arg(simulate::set_argument())
        .arg(search::jobs_argument())
        .arg(search::results_argument())
        .arg(
            Arg::new("output")
                .short('o')
                .long("output")
                .value_name("FILE")
                .value_parser(value_parser!(PathBuf))
                .help("File to write the best spec to"),
        )
        .arg(
            Arg::new("plot")
                .long("plot")
                .value_name("FILE")
                .help("Picture of the path and of the other tested changes, .png or .svg"),
        )
        .arg(json_argument())
        .after_help(AFTER_HELP)
}

fn run(matches: &ArgMatches, output: &mut dyn Write) -> Result<(), CliError> {
    end_with_parent();
    let name = matches.get_one::<String>("spec").map_or("", String::as_str);
    let file = matches.get_one::<PathBuf>("output").map(PathBuf::as_path);
    if let Some(file) = file {
        output_file::check(file, std::iter::once(Path::new(name)))?;
    }
    let drawn = matches.get_one::<String>("plot").map(String::as_str);
    drawn.map_or(Ok(()), picture::check)?;
    let source = simulate::source(name, matches)?;
    let spec = simulate::build(&source)?;
    let space = space(matches, &spec)?;
    let results = match matches.get_one::<PathBuf>("results") {
        Some(path) => Some(ResultsFile::open(path, &SearchedSpec::of(name, &spec))?),
        None => None,
    };
    let directory = TemporaryDirectory::new()?;
    let copy = SpecCopy::write(&spec.text, name, directory.path())?;
    let runner = TrialRunner::new(copy.file_name(), Vec::new(), search::jobs(matches))?;
    let budget = matches.get_one::<SearchBudget>("budget").copied();
    let budget = budget.unwrap_or(SearchBudget::Simulations(1));
    let reporter = ProgressReporter::new("searching");
    let progress = |share| reporter.at(share);
    let mut store = TrialStore::new(runner, copy, results, budget, &progress)?;
    let overrides = simulate::overrides(matches);
    let summary = TuneSummary { name, overrides: &overrides, space: &space, file };
    let found = FoundReporter::new();
    let (path, stopped) = Tuner::begin(&space, &mut store)?.run(|path, store| {
        let answer = summary.answer(path, store);
        // A failure here is reported later, when a point or the end cannot be written either.
        let _ = store.keep_path(&answer);
        found.tell(|| answer);
    });
    reporter.clear();
    let answer = summary.answer(&path, &store);
    let kept = store.keep_path(&answer);
    if let Some(file) = file.filter(|_| answer.shortfall.is_none()) {
        write_spec(&summary.headline(&answer), &answer.best, &source, file)?;
    }
    if matches.get_flag("json") {
        super::command::print_json(&serde_json::json!(answer), output)?
    } else {
        summary.print(&answer, output)?
    }
    if let Some(file) = drawn {
        picture::write(FoundPicture::Tune(&answer), file)?;
    }
    if let Some(error) = stopped.or(kept.err()) {
        return Err(error.into());
    }
    match answer.shortfall {
        Some(problem) => Err(JobError::Shortfall(problem).into()),
        None => Ok(()),
    }
}

/// The keys that may change, with conditions.
fn space(matches: &ArgMatches, spec: &Spec) -> Result<TuneSpace, CliError> {
    let objective = matches.get_one::<String>("objective").map_or("", String::as_str);
    let objective = TuneObjective::named(objective).unwrap_or(TuneObjective::Throughput);
    let mut space = TuneSpace::new(spec, objective);
    space.free = texts(matches, "free");
    space.fixed = texts(matches, "fix");
    for (option, named) in [("--free", &space.free), ("--fix", &space.fixed)] {
        let is_known = |path: &str| space.keys.paths().any(|key| levers::is_below(key, &[path]));
        if let Some(path) = named.iter().find(|path| !is_known(path)) {
            return Err(UsageError::Option { option, problem: space.keys.unknown(path) }.into());
        }
    }
    if let Some(both) = space.free.iter().find(|path| space.fixed.contains(path)) {
        return Err(UsageError::FreeAndFixed(both.clone()).into());
    }
    if objective.is_of_machine() {
        space.free.push("target.ipus".to_owned());
    }
    let paths: Vec<&str> = space.keys.paths().collect();
    let mut conditions = Vec::new();
    for text in texts(matches, "where") {
        let condition = Condition::parse(&text, &paths);
        conditions
            .push(condition.map_err(|problem| UsageError::Option { option: "--where", problem })?);
    }
    space.conditions = conditions;
    Ok(space)
}

fn texts(matches: &ArgMatches, name: &str) -> Vec<String> {
    matches.get_many::<String>(name).into_iter().flatten().cloned().collect()
}

/// Writes the spec of a point, with a comment on top.
fn write_spec(
    comment: &str,
    point: &Point,
    source: &SpecSource,
    file: &Path,
) -> Result<(), CliError> {
    let mut source = source.clone();
    source.overrides.extend(set_arguments(&point.changes));
    let spec = Spec::build(&source)?;
    let text = format!("# {comment}\n\n{}", spec.text);
    output_file::write(file, text.as_bytes())
}
