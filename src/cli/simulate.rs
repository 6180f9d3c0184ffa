//! `simulate` and `--headless`: simulates a spec into a report.

use super::command::{CliCommand, CliError};
use super::progress::ProgressReporter;
use super::run_errors::{run_errors, run_factors};
use crate::cli::error::UsageError;
use clap::{Arg, ArgAction, ArgMatches};
use serde_json::{Value, json};
use std::io::Write;
use std::path::{Path, PathBuf};
use tilescope_analysis::confidence::{expected_fullest_tile, memory_fit};
use tilescope_analysis::running_costs::machine_rate;
use tilescope_experiments::trial::{TrialFigures, end_with_parent};
use tilescope_report::RunningCostKind;
use tilescope_report::StepLayout;
use tilescope_report::units::{Cycles, NumberFormat, exact_bytes, grouped};
use tilescope_sim::specification::{Spec, SpecSource};
use tilescope_sim::{
    BalancedStage, MOST_RECORDS, ProgramFigures, SimulateError, Simulation, balance, enough_ipus,
};

/// The default spec of `--headless`.
pub(super) const DEFAULT_SPEC: &str = "mnist_pipeline";

/// The minimum number of records of a run that is announced with a forecast.
const LONG_RUN: u64 = 10_000_000;

/// The number of records up to which a trial is costed again with the errors of the model.
const BANDED_TRIAL: u64 = 2_000_000;

/// The default directory of reports.
const DEFAULT_DIRECTORY: &str = "out";

/// Names of layouts on the command line.
const LAYOUTS: [(&str, StepLayout); 2] =
    [("rows", StepLayout::Rows), ("chunks", StepLayout::Columns)];

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
            Arg::new("calibration")
                .long("calibration")
                .value_name("FILE.toml")
                .help("Read constants of the cost model from a file of tilescope calibrate"),
        )
        .arg(yes_argument())
        .arg(
            Arg::new("layout")
                .long("layout")
                .value_name("LAYOUT")
                .value_parser(LAYOUTS.map(|(name, _)| name))
                .help("Store steps and marks as rows, which any SQLite reads, or as chunks, which \
                       are smaller and readable with `tilescope query` [default: rows up to 65,536 \
                       records]"),
        )
        .arg(
            Arg::new("balance")
                .long("balance")
                .action(ArgAction::SetTrue)
                .help("Test splits of the blocks over IPUs, print the fastest that fits in memory, \
                       and simulate before and after"),
        )
        .arg(
            Arg::new("check")
                .long("check")
                .action(ArgAction::SetTrue)
                .conflicts_with("balance")
                .help("Compile the spec without simulating it, and report errors"),
        )
        .arg(
            Arg::new("figures")
                .long("figures")
                .action(ArgAction::SetTrue)
                .conflicts_with_all(["balance", "check"])
                .help("Simulate without writing a report, and print cycles, time, samples, memory and IPUs as JSON"),
        )
        .arg(
            super::command::json_argument()
                .requires("check")
                .help("With --check: print stages, memory and the length of the run as JSON"),
        )
        .after_help(
            "Examples:\n  tilescope simulate mnist_pipeline -o out --set options.gradient_accumulation=20\n  \
             tilescope simulate my_model.toml -o out",
        )
}

/// `--yes`
pub(super) fn yes_argument() -> Arg {
    Arg::new("yes")
        .long("yes")
        .action(ArgAction::SetTrue)
        .help("Simulate even a run of more than a billion records")
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
        return check(&source(name, matches)?, matches, output);
    }
    if matches.get_flag("balance") {
        return balanced(name, matches, output);
    }
    if matches.get_flag("figures") {
        end_with_parent();
        return figures(&build(&source(name, matches)?)?, matches, output);
    }
    end_with_parent();
    simulate_spec(name, matches, output)
}

/// Simulates a spec without writing a report.
fn figures(spec: &Spec, matches: &ArgMatches, output: &mut dyn Write) -> Result<(), CliError> {
    super::command::print_json(&trial_figures(spec, &compiled(spec, matches)?), output)
}

/// The figures of a simulated spec, with their errors.
pub(super) fn trial_figures(spec: &Spec, simulation: &Simulation) -> TrialFigures {
    let ProgramFigures { cycles, samples, fullest_tile, ipus } = simulation.figures();
    let get_rate = |kind| machine_rate(simulation.running_costs(), kind);
    let compilation = simulation.compilation();
    let length = cycles.filter(|_| simulation.forecast().records <= BANDED_TRIAL);
    let lanes = length.and_then(|_| simulation.lane_cycles());
    let run = length.zip(lanes.as_deref());
    let factors = run.and_then(|(length, lanes)| run_factors(compilation, length, lanes));
    let own_errors = run
        .and_then(|(length, lanes)| run_errors(compilation, length, lanes, |run| run.own_errors()));
    let expected =
        |cycles: Cycles| Some(factors?.of_time(cycles.seconds_at(spec.target.chip.clock)));
    TrialFigures {
        expected_seconds: cycles.and_then(expected),
        own_errors,
        expected_fullest_tile: expected_fullest_tile(compilation),
        fit: Some(memory_fit(compilation)),
        cycles,
        seconds: cycles.map(|cycles| cycles.seconds_at(spec.target.chip.clock)),
        samples,
        fullest_tile_bytes: fullest_tile,
        ipus,
        watts: get_rate(RunningCostKind::Power),
        price_per_hour: get_rate(RunningCostKind::Price),
    }
}

/// Compiles a spec, and refuses everything that a simulation would refuse.
fn check(
    source: &SpecSource,
    matches: &ArgMatches,
    output: &mut dyn Write,
) -> Result<(), CliError> {
    let spec = build(source)?;
    let simulation = compiled(&spec, matches)?;
    if matches.get_flag("json") {
        return super::command::print_json(&check_json(&spec, &simulation), output);
    }
    let found = match simulation.tiles_out_of_memory() {
        0 => format!("Its run has {} records.", grouped(simulation.forecast().records)),
        tiles => {
            let mut words =
                format!("It does not fit in memory: {} tiles exceed their memory.", grouped(tiles));
            if let Some(more) = enough_ipus(source, &spec) {
                words += &format!(" {}.", more.words());
            }
            words
        }
    };
    if let Some(idle) = simulation.idle_ipus() {
        let _ = writeln!(super::plain_output::stderr(), "warning: {idle}");
    }
    let fit = memory_fit(simulation.compilation());
    let mut unsure = String::new();
    if fit.is_uncertain() {
        unsure = format!(" In memory: {}.", fit.words());
    }
    Ok(writeln!(output, "The spec is valid. {found}{unsure}")?)
}

/// The facts about a compiled spec.
fn check_json(spec: &Spec, simulation: &Simulation) -> Value {
    let figures = simulation.figures();
    json!({
        "records": simulation.forecast().records,
        "seconds": figures.cycles.map(|cycles| cycles.seconds_at(spec.target.chip.clock)),
        "samples": figures.samples,
        "tiles_out_of_memory": simulation.tiles_out_of_memory(),
        "fullest_tile_bytes": simulation.fullest_tile().0,
        "tile_bytes": spec.target.chip.bytes_per_tile.0,
        "fit": memory_fit(simulation.compilation()),
        "warning": simulation.idle_ipus(),
        "stages": simulation.stages().map(|(blocks, ipu)| json!({ "blocks": blocks, "ipu": ipu.0 })).collect::<Vec<_>>(),
    })
}

/// Simulates a spec unchanged, and with the fastest split of its blocks; the report is that of the
/// split.
fn balanced(name: &str, matches: &ArgMatches, output: &mut dyn Write) -> Result<(), CliError> {
    let source = source(name, matches)?;
    let spec = Spec::build(&source)?;
    let found = balance(&spec).map_err(SimulateError::from)?;
    let name_of = |blocks: &[String]| {
        let quoted: Vec<String> = blocks.iter().map(|block| format!("{block:?}")).collect();
        format!("[{}]", quoted.join(", "))
    };
    let split: Vec<String> = found.stages.iter().map(|stage| name_of(&stage.blocks)).collect();
    let split = format!("options.stages=[{}]", split.join(", "));
    writeln!(output, "{split}")?;
    for BalancedStage { blocks, cycles } in &found.stages {
        writeln!(output, "  {:30} {cycles} cycles per micro-batch", blocks.join(" + "))?;
    }
    if found.is_written {
        writeln!(
            output,
            "\nThe split of the spec is the best: none of the {} tested splits is faster and fits \
             in memory.",
            found.tried
        )?;
        simulate_and_print(build(&source)?, matches, output)?;
        return Ok(());
    }
    writeln!(output, "\nThe fastest of {} tested splits.\n\nBefore:", found.tried)?;
    simulate_and_print(build(&source)?, matches, output)?;
    let mut after = source;
    after.overrides.push(split);
    writeln!(output, "\nAfter:")?;
    simulate_and_print(build(&after)?, matches, output)?;
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
pub(super) fn build(source: &SpecSource) -> Result<Spec, CliError> {
    let spec = Spec::build(source)?;
    for warning in &spec.warnings {
        let _ = writeln!(super::plain_output::stderr(), "warning: {warning}");
    }
    Ok(spec)
}

/// The changes of `--set`, verbatim.
pub(super) fn overrides(matches: &ArgMatches) -> Vec<String> {
    matches.get_many("set").into_iter().flatten().cloned().collect()
}

/// The spec with this name or file, with the changes of `--set` and the constants of
/// `--calibration`.
pub(super) fn source(name: &str, matches: &ArgMatches) -> Result<SpecSource, CliError> {
    let source = SpecSource::find(name, &overrides(matches))?;
    // Only some commands accept a file of constants; for all others, specs contain them.
    match matches.try_get_one::<String>("calibration").ok().flatten() {
        Some(path) => Ok(source.with_calibration(path)?),
        None => Ok(source),
    }
}

fn simulate_spec(name: &str, matches: &ArgMatches, output: &mut dyn Write) -> Result<(), CliError> {
    let source = source(name, matches)?;
    let spec = build(&source)?;
    let mut simulation = compiled(&spec, matches)?;
    let does_fit = simulation.tiles_out_of_memory() == 0;
    if !does_fit && let Some(enough) = enough_ipus(&source, &spec).filter(|more| more.fits) {
        simulation.add_note(enough.words());
    }
    let path = write_report(&simulation, matches, output)?;
    // Reading the report of a large program takes as much memory as compiling it.
    drop(simulation);
    drop(spec);
    super::summary::print_short(&path, output)?;
    let directory = directory(matches);
    writeln!(
        output,
        "\nNext: tilescope {directory}            open the report\n      tilescope summary \
         {directory}    print all figures"
    )?;
    if !does_fit {
        let command = format!("tilescope insights --prove {directory}");
        writeln!(output, "      {command}    find the smallest change with which it fits")?;
    }
    Ok(())
}

/// The number of nodes of a file above which time and memory are announced.
const LARGE_FILE: usize = 50_000;

/// Seconds and bytes for compiling a node of a file, measured with chains of 10^4 to 10^6 small
/// operations: both grow with the nodes.
const SECONDS_PER_NODE: f64 = 1e-4;
const BYTES_PER_NODE: u64 = 3_500;

/// The same in training. The backward pass has about twice as many operations again.
const TRAINED_SECONDS_PER_NODE: f64 = 4e-4;
const TRAINED_BYTES_PER_NODE: u64 = 12_000;

/// The forecast for compiling this number of nodes, if it takes long.
fn compile_forecast(nodes: usize, training: bool) -> Option<String> {
    if nodes < LARGE_FILE {
        return None;
    }
    let (seconds, bytes) = if training {
        (TRAINED_SECONDS_PER_NODE, TRAINED_BYTES_PER_NODE)
    } else {
        (SECONDS_PER_NODE, BYTES_PER_NODE)
    };
    let nodes = nodes as u64;
    let bytes = NumberFormat::default().bytes(nodes * bytes);
    let seconds = (nodes as f64 * seconds).round();
    Some(format!(
        "{} nodes: compiling takes about {bytes} and {seconds} s, and several times as long if \
         the model does not fit",
        grouped(nodes)
    ))
}

/// The compiled spec, unless its run is absurdly long and `--yes` was not given. The forecast for a
/// long run goes to stderr.
fn compiled<'a>(spec: &'a Spec, matches: &ArgMatches) -> Result<Simulation<'a>, CliError> {
    let most = if matches.get_flag("yes") { u64::MAX } else { MOST_RECORDS };
    let nodes = spec.model.file.as_ref().map_or(0, |file| file.graph.nodes.len());
    if let Some(forecast) = compile_forecast(nodes, spec.model.training) {
        let _ = writeln!(super::plain_output::stderr(), "{forecast}");
    }
    let simulation = Simulation::compile(spec, most).map_err(|error| match error {
        error @ SimulateError::TooLong { .. } => UsageError::TooLong(error).into(),
        error => CliError::from(error),
    })?;
    // Only `simulate` has this option.
    let layout = matches.try_get_one::<String>("layout").ok().flatten();
    let chosen = layout.and_then(|name| LAYOUTS.iter().find(|(known, _)| known == name));
    let simulation = match chosen {
        Some((_, layout)) => simulation.with_layout(*layout),
        None => simulation,
    };
    let forecast = simulation.forecast();
    if forecast.records >= LONG_RUN {
        let _ = writeln!(
            super::plain_output::stderr(),
            "{} records: about {} and {} s",
            grouped(forecast.records),
            NumberFormat::default().bytes(forecast.bytes().0),
            forecast.seconds()
        );
    }
    Ok(simulation)
}

/// The directory of the report.
fn directory(matches: &ArgMatches) -> &str {
    matches.get_one::<String>("output").map_or(DEFAULT_DIRECTORY, String::as_str)
}

/// Simulates a spec and prints its main figures.
fn simulate_and_print(
    spec: Spec,
    matches: &ArgMatches,
    output: &mut dyn Write,
) -> Result<(), CliError> {
    let path = write_report(&compiled(&spec, matches)?, matches, output)?;
    drop(spec);
    super::summary::print_short(&path, output)
}

/// Runs a program and returns the file of its report.
fn write_report(
    simulation: &Simulation,
    matches: &ArgMatches,
    output: &mut dyn Write,
) -> Result<PathBuf, CliError> {
    if let Some(idle) = simulation.idle_ipus() {
        let _ = writeln!(super::plain_output::stderr(), "warning: {idle}");
    }
    let progress = ProgressReporter::new("simulating");
    let result = simulation.write(Path::new(directory(matches)), |share| progress.at(share));
    let path = result?;
    let size = std::fs::metadata(&path).map_or(0, |file| file.len());
    writeln!(output, "{} ({})", path.display(), exact_bytes(size))?;
    Ok(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn compiling_large_files_is_announced() {
        assert_eq!(compile_forecast(LARGE_FILE - 1, false), None);
        let forecast = compile_forecast(1_000_000, false).expect("a large file");
        assert!(forecast.contains("1,000,000 nodes") && forecast.contains("100 s"), "{forecast}");
        let forecast = compile_forecast(1_000_000, true).expect("a large file");
        assert!(forecast.contains("11.2 GiB and 400 s"), "{forecast}");
    }
}
