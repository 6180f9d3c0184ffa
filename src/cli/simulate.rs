//! `simulate` and `--headless`: a spec in, a report out.

use super::progress::ProgressReporter;
use super::{CliCommand, CliError};
use clap::{Arg, ArgAction, ArgMatches};
use std::io::Write;
use std::path::Path;
use tilescope_report::units::exact_bytes;
use tilescope_report::{Report, ReportPart};
use tilescope_sim::spec::{Spec, SpecSource};
use tilescope_sim::{SimulateError, compile, simulate};

/// The spec of `--headless` without a name.
pub(super) const DEFAULT_SPEC: &str = "mnist_pipeline";

/// Directory reports go to where the user names none.
const DEFAULT_DIRECTORY: &str = "out";

/// `tilescope simulate`
pub(super) const COMMAND: CliCommand = CliCommand { name: "simulate", arguments, run };

fn arguments(command: clap::Command) -> clap::Command {
    command
        .about("Simulate a spec and write a report")
        .arg(
            Arg::new("spec")
                .value_name("SPEC")
                .required(true)
                .help("A TOML file, or the name of a bundled spec (see tilescope specs)"),
        )
        .arg(output_argument())
        .arg(set_argument())
        .arg(
            Arg::new("balance")
                .long("balance")
                .action(ArgAction::SetTrue)
                .help("Print the split of blocks over IPUs that makes the longest stage shortest, and simulate before and after"),
        )
        .arg(
            Arg::new("check")
                .long("check")
                .action(ArgAction::SetTrue)
                .conflicts_with("balance")
                .help("Check the spec without simulating it"),
        )
        .after_help(
            "Examples:\n  tilescope simulate mnist_pipeline -o out --set options.gradient_accumulation=20\n  \
             tilescope simulate my_model.toml -o out",
        )
}

/// `-o DIR`
pub(super) fn output_argument() -> Arg {
    Arg::new("output")
        .short('o')
        .long("output")
        .value_name("DIR")
        .default_value(DEFAULT_DIRECTORY)
        .help("Directory to write the report to")
}

/// `--set KEY=VALUE`
pub(super) fn set_argument() -> Arg {
    Arg::new("set")
        .long("set")
        .value_name("KEY=VALUE")
        .action(ArgAction::Append)
        .help("Override one key of the spec, for example options.device_iterations=1")
}

fn run(matches: &ArgMatches, output: &mut dyn Write) -> Result<(), CliError> {
    let name = matches.get_one::<String>("spec").map_or("", String::as_str);
    if matches.get_flag("check") {
        build(&source(name, matches)?)?;
        return Ok(writeln!(output, "The spec is valid.")?);
    }
    if matches.get_flag("balance") {
        return balanced(name, matches, output);
    }
    simulate_spec(name, matches, output)
}

/// Simulates a spec as it is, and with its blocks split so that the longest stage is shortest; the
/// report is that of the split.
fn balanced(name: &str, matches: &ArgMatches, output: &mut dyn Write) -> Result<(), CliError> {
    let source = source(name, matches)?;
    let spec = Spec::build(&source).map_err(usage)?;
    let stages = compile::balance(&spec).map_err(|error| CliError::Usage(error.to_string()))?;
    let name_of = |blocks: &[String]| {
        let quoted: Vec<String> = blocks.iter().map(|block| format!("{block:?}")).collect();
        format!("[{}]", quoted.join(", "))
    };
    let split: Vec<String> = stages.iter().map(|stage| name_of(&stage.blocks)).collect();
    let split = format!("options.stages=[{}]", split.join(", "));
    writeln!(output, "{split}")?;
    for compile::BalancedStage { blocks, cycles } in &stages {
        writeln!(output, "  {:30} {cycles} cycles per micro-batch", blocks.join(" + "))?;
    }
    writeln!(output, "\nBefore:")?;
    let directory = simulate_one(&source, matches, output)?;
    let fits = Report::open(directory).is_ok_and(|report| report.has(ReportPart::Execution));
    let mut after = source;
    after.overrides.push(split);
    writeln!(output, "\nAfter:")?;
    let over = |source: &SpecSource| -> Result<u64, CliError> {
        let spec = Spec::build(source).map_err(usage)?;
        let compiled = compile::compile(&spec);
        Ok(compiled.map_err(|error| CliError::Usage(error.to_string()))?.tiles_out_of_memory())
    };
    let tiles = over(&after)?;
    if tiles > 0 && fits {
        let problem = "does not fit in memory; the report is that of the split before";
        return Ok(writeln!(output, "The split {problem}. Tiles that are over: {tiles}.")?);
    }
    simulate_one(&after, matches, output)?;
    Ok(())
}

/// `tilescope --headless [SPEC]`
pub(super) fn headless(matches: &ArgMatches, output: &mut dyn Write) -> Result<(), CliError> {
    simulate_spec(
        matches.get_one::<String>("headless").map_or(DEFAULT_SPEC, String::as_str),
        matches,
        output,
    )
}

/// The checked spec; warnings go to stderr.
fn build(source: &SpecSource) -> Result<Spec, CliError> {
    let spec = Spec::build(source).map_err(usage)?;
    for warning in &spec.warnings {
        let _ = writeln!(super::plain_output::stderr(), "warning: {warning}");
    }
    Ok(spec)
}

fn usage(error: tilescope_sim::spec::SpecError) -> CliError {
    CliError::Usage(error.to_string())
}

fn source(name: &str, matches: &ArgMatches) -> Result<SpecSource, CliError> {
    let overrides: Vec<String> = matches.get_many("set").into_iter().flatten().cloned().collect();
    SpecSource::find(name, &overrides).map_err(usage)
}

fn simulate_spec(name: &str, matches: &ArgMatches, output: &mut dyn Write) -> Result<(), CliError> {
    let directory = simulate_one(&source(name, matches)?, matches, output)?;
    writeln!(
        output,
        "\nNext: tilescope {directory}            open it\n      tilescope summary {directory}    print all figures"
    )?;
    Ok(())
}

/// Simulates a spec, prints its figures in short and returns the directory of the report.
fn simulate_one<'a>(
    source: &SpecSource,
    matches: &'a ArgMatches,
    output: &mut dyn Write,
) -> Result<&'a str, CliError> {
    let spec = build(source)?;
    let directory = matches.get_one::<String>("output").map_or(DEFAULT_DIRECTORY, String::as_str);
    let mut progress = ProgressReporter::new("simulating");
    let result = simulate(&spec, Path::new(directory), |share| progress.at(share));
    progress.finish();
    let path = result.map_err(|error| match error {
        SimulateError::Compile(error) => CliError::Usage(error.to_string()),
        SimulateError::Report(error) => CliError::Failed(error.to_string()),
    })?;
    let size = std::fs::metadata(&path).map_or(0, |file| file.len());
    writeln!(output, "{} ({})", path.display(), exact_bytes(size))?;
    super::summary::print_short(&path, output)?;
    Ok(directory)
}
