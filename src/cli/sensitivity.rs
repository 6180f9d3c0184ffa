//! `sensitivity`: the gains of a program on another machine, and with faster operations.

use super::command::{CliCommand, CliError, json_argument};
use super::picture::{self, FoundPicture};
use super::progress::ProgressReporter;
use super::run_errors::run_factors;
use super::simulate;
use clap::{Arg, ArgMatches};
use std::io::Write;
use tilescope_analysis::sensitivity::path_words;
use tilescope_experiments::answers::{OperationAnswer, ResourceAnswer, SensitivityAnswer};
use tilescope_report::units::grouped;
use tilescope_sim::sensitivity::{FACTORS, SensitivityError, SensitivityRequest, sensitivity};

/// `tilescope sensitivity`
pub(super) const COMMAND: CliCommand = CliCommand { name: "sensitivity", arguments, run };

/// Length of the longest bar, in letters.
const BAR: usize = 24;

fn arguments(command: clap::Command) -> clap::Command {
    command
        .about(
            "Simulate a spec on machines with more of one resource, and with faster operations, \
             and print each gain",
        )
        .arg(
            Arg::new("spec")
                .value_name("SPEC")
                .required(true)
                .help("A TOML file, or the name of a bundled spec (see tilescope specs)"),
        )
        .arg(
            Arg::new("factor")
                .long("factor")
                .value_name("NUMBER")
                .value_parser(factor)
                .allow_negative_numbers(true)
                .default_value("2")
                .help("Factor by which each resource becomes faster or larger"),
        )
        .arg(
            Arg::new("operations")
                .long("operations")
                .value_name("COUNT")
                .value_parser(clap::value_parser!(u16))
                .allow_negative_numbers(true)
                .default_value("8")
                .help("Number of operations to make faster, those with the most cycles"),
        )
        .arg(simulate::set_argument())
        .arg(json_argument())
        .arg(
            Arg::new("output")
                .short('o')
                .long("output")
                .value_name("FILE")
                .conflicts_with("json")
                .help("Draw the gains into a picture, .png or .svg"),
        )
        .after_help(
            "Examples:\n  tilescope sensitivity mnist_pipeline\n  \
             tilescope sensitivity my_model.toml --factor 4 --operations 20 --json\n  \
             tilescope sensitivity mnist_pipeline -o gains.svg",
        )
}

/// Reads a factor.
fn factor(text: &str) -> Result<f64, String> {
    let from = FACTORS.start();
    let to = FACTORS.end();
    let found = text.parse().ok().filter(|factor| FACTORS.contains(factor));
    found.ok_or_else(|| format!("expected a number from {from} to {to}"))
}

fn run(matches: &ArgMatches, output: &mut dyn Write) -> Result<(), CliError> {
    let name = matches.get_one::<String>("spec").map_or("", String::as_str);
    let picture = matches.get_one::<String>("output").map(String::as_str);
    picture.map_or(Ok(()), picture::check)?;
    let source = simulate::source(name, matches)?;
    // Its warnings are printed once.
    simulate::build(&source)?;
    let request = SensitivityRequest {
        factor: matches.get_one::<f64>("factor").copied().unwrap_or(2.0),
        operations: matches.get_one::<u16>("operations").copied().unwrap_or(0).into(),
    };
    let progress = ProgressReporter::new("simulating");
    let found = sensitivity(
        &source,
        request,
        &|compilation, cycles, lanes| {
            run_factors(compilation, cycles, lanes).map(|factors| factors.program)
        },
        |share| {
            progress.at(share);
        },
    );
    let found = found.map_err(|error| match error {
        SensitivityError::Spec(error) => CliError::from(error),
        SensitivityError::Simulate(error) => error.into(),
    })?;
    let answer = SensitivityAnswer::new(name, &found);
    if let Some(file) = picture {
        picture::write(FoundPicture::Sensitivity(&answer), file)?;
        return Ok(writeln!(output, "{file}")?);
    }
    if matches.get_flag("json") {
        return super::command::print_json(&serde_json::json!(answer), output);
    }
    print(&answer, output)
}

fn print(answer: &SensitivityAnswer, output: &mut dyn Write) -> Result<(), CliError> {
    let SensitivityAnswer { spec, machine, factor, resources, operations, .. } = answer;
    match &answer.run {
        Some(run) => writeln!(output, "{spec} on {machine}: {}", run.words())?,
        None => writeln!(output, "{spec} on {machine} does not fit in memory")?,
    }
    if let Some(shortened) = &answer.shortened {
        writeln!(output, "The run is shortened: {shortened}")?;
    }
    writeln!(output)?;
    let changes = resources.iter().map(|of| of.change);
    let bars = TextBars::new(changes.chain(operations.iter().map(|of| of.change)));
    let width = resources.iter().map(|of| of.title.len()).max().unwrap_or(0);
    for ResourceAnswer { title, detail, refused, run, change, .. } in resources {
        let text = match (run, refused) {
            (Some(run), _) => run.words(),
            (None, Some(problem)) => problem.clone(),
            (None, None) => "does not fit in memory".to_owned(),
        };
        let gain = change_text(*change);
        let bar = bars.of(*change);
        writeln!(output, "{title:width$}  {gain:>8}  {bar:BAR$}  {text}  ({detail})")?;
    }
    if operations.is_empty() {
        return Ok(());
    }
    writeln!(output, "\nOperations {factor} times as fast")?;
    let width = operations.iter().map(|of| of.name.len()).max().unwrap_or(0);
    for OperationAnswer { name, cycles, change, off_path_beyond, .. } in operations {
        let gain = change_text(*change);
        let bar = bars.of(*change);
        let path = path_words(*off_path_beyond);
        let cycles = grouped(cycles.0);
        writeln!(output, "{name:width$}  {gain:>8}  {bar:BAR$}  {cycles:>14} cycles  {path}")?;
    }
    Ok(())
}

/// `-30.2 %`; a dash if there is nothing to compare.
fn change_text(change: Option<f64>) -> String {
    change.map_or_else(|| "-".to_owned(), |change| format!("{:+.1} %", 100.0 * nearly_zero(change)))
}

/// Avoids a minus before a value that is printed as 0.
fn nearly_zero(change: f64) -> f64 {
    if change.abs() < 0.0005 { 0.0 } else { change }
}

/// Bars proportional to the gains: the largest change fills the space.
struct TextBars {
    largest: f64,
}

impl TextBars {
    fn new(changes: impl Iterator<Item = Option<f64>>) -> Self {
        Self { largest: changes.flatten().map(f64::abs).fold(0.0, f64::max) }
    }

    /// `####` for a gain, `++++` for a loss.
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "at most its room")]
    fn of(&self, change: Option<f64>) -> String {
        let change = change.unwrap_or(0.0);
        let share = if self.largest > 0.0 { change.abs() / self.largest } else { 0.0 };
        let letter = if change <= 0.0 { "#" } else { "+" };
        letter.repeat((share * BAR as f64).round() as usize)
    }
}
