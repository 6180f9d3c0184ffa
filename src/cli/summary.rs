//! `summary`: prints the figures of a report.

use super::command::{CliCommand, CliError, json_argument, open_report, report_argument};
use clap::ArgMatches;
use std::io::Write;
use std::path::Path;
use tilescope_analysis::confidence::Confidence;
use tilescope_analysis::headline::run_words;
use tilescope_analysis::host::{HostSummary, bottleneck_title, held_up, part_title, source_title};
use tilescope_analysis::imported_model::ImportedModelSummary;
use tilescope_analysis::limits::{LimitsSummary, UnknownUtilisation};
use tilescope_analysis::replica_classes::sentence;
use tilescope_analysis::running_costs::{RunningCostRow, RunningCosts};
use tilescope_analysis::summary::{ExecutionSummary, MemorySummary, ReportSummary, summary};
use tilescope_report::units::{
    Cycles, binary_bytes, fine_percent, grouped, grouped_real, percent, seconds, short_count,
    short_cycles, with_prefix,
};
use tilescope_report::{BatchingConfig, Report, ReportPart};

/// `tilescope summary`
pub(super) const COMMAND: CliCommand = CliCommand { name: "summary", arguments, run };

fn arguments(command: clap::Command) -> clap::Command {
    command
        .about("Print the key figures of a report")
        .arg(report_argument())
        .arg(json_argument())
        .after_help("Examples:\n  tilescope summary out\n  tilescope summary out --json")
}

fn run(matches: &ArgMatches, output: &mut dyn Write) -> Result<(), CliError> {
    let report = open_report(matches)?;
    let figures = figures(&report)?;
    if matches.get_flag("json") {
        return super::command::print_json(&figures, output);
    }
    print(&report, &figures, output)
}

fn figures(report: &Report) -> Result<ReportSummary, CliError> {
    Ok(summary(report)?)
}

/// The few lines printed after a simulation.
pub(super) fn print_short(path: &Path, output: &mut dyn Write) -> Result<(), CliError> {
    let report = Report::open(path)?;
    let figures = figures(&report)?;
    let target = &figures.target;
    let row =
        |output: &mut dyn Write, name: &str, text: String| writeln!(output, "  {name:10} {text}");
    row(
        output,
        "target",
        format!("{} x {} ({})", target.num_ipus, target.architecture, target.kind),
    )?;
    if !target.machine_changes.is_empty() || !target.calibration.is_empty() {
        row(output, "machine", target.machine.clone().unwrap_or_default())?;
    }
    let words = |memory: &MemorySummary| {
        let unsure = if memory.fit.is_uncertain() { memory.fit.words() } else { "" };
        let separator = if unsure.is_empty() { "" } else { ": " };
        format!(
            "{} in use, fullest tile {} of {}{separator}{unsure}",
            binary_bytes(memory.total_excluding_gaps.0),
            binary_bytes(memory.max_tile_including_gaps.0),
            binary_bytes(target.bytes_per_tile.0),
        )
    };
    let memory = figures.memory.as_ref().map_or_else(|| "not recorded".to_owned(), words);
    row(output, "memory", memory)?;
    if let Some(execution) = &figures.execution {
        row(output, "run", run_words(execution))?;
    }
    if let Some(expected) = figures.confidence.as_ref().and_then(Confidence::short) {
        row(output, "expected", expected)?;
    }
    for note in report.notes()? {
        let (label, text) = labelled(&note);
        row(output, &label.to_lowercase(), text.to_string())?;
    }
    Ok(())
}

/// A note of the compiler, with its label: warning or note.
fn labelled(note: &str) -> (&'static str, &str) {
    note.strip_prefix("Warning: ").map_or(("Note", note), |text| ("Warning", text))
}

fn print(report: &Report, figures: &ReportSummary, output: &mut dyn Write) -> Result<(), CliError> {
    let mut table = TwoColumnTable { output };
    let target = &figures.target;
    table.head("Target")?;
    if let Some(machine) = &target.machine {
        let unreal = if target.machine_changes.is_empty() { "" } else { " (not a real machine)" };
        table.row("Machine", &format!("{machine}{unreal}"))?;
    }
    table.row("Type", if target.kind == "ipu" { "IPU" } else { "IPU Model" })?;
    table.row("Architecture", &target.architecture)?;
    table.row("IPUs", &target.num_ipus.to_string())?;
    if target.num_ipus > 1 {
        let alike = match target.identical_ipus {
            1 => String::new(),
            count => format!(" x {count} identical"),
        };
        let replicas = format!("{} x {}{alike}", target.replicas, target.ipus_per_replica);
        table.row("Replicas x IPUs", &replicas)?;
    }
    if let Some(differ) = sentence(&report.replica_classes()?) {
        table.row("Replicas", &format!("{differ}; figures of IPUs are those of replica 0"))?;
    }
    table.row("Tiles per IPU", &grouped(target.tiles_per_ipu.into()))?;
    table.row("Memory per tile", &binary_bytes(target.bytes_per_tile.0))?;
    let clock = match target.clock_hz {
        0 => "not recorded".to_owned(),
        clock => format!("{} MHz", grouped(clock / 1_000_000)),
    };
    table.row("Clock", &clock)?;
    table.head("Graph")?;
    for (name, count) in [
        ("Compute sets", figures.graph.compute_sets),
        ("Vertices", figures.graph.vertices),
        ("Edges", figures.graph.edges),
        ("Variables", figures.graph.variables),
    ] {
        let count = count.map_or_else(|| "not recorded".to_owned(), short_count);
        table.row(name, &count)?;
    }
    table.head("Memory")?;
    match &figures.memory {
        Some(memory) => print_memory(memory, &mut table)?,
        None => table.row("Tiles", "not recorded")?,
    }
    table.head("Execution")?;
    match &figures.execution {
        None => table.row("None", "the program was compiled but not run")?,
        Some(execution) => print_execution(report, execution, &mut table)?,
    }
    if let Some(batching) = report.batching()? {
        table.row("Samples per host call", &samples_line(&batching))?;
    }
    if let Some(limits) = &figures.limits {
        print_limits(limits, &mut table)?;
    }
    table.head("Host")?;
    match &figures.host {
        None => table.row("None", "not recorded, or the program has no samples")?,
        Some(host) => print_host(host, &mut table)?,
    }
    if figures.execution.is_some() {
        table.head("Energy and cost")?;
        let costs = RunningCosts { energy: figures.energy.clone(), cost: figures.cost.clone() };
        for RunningCostRow { name, value, explanation } in costs.rows() {
            table.row(name, &format!("{value}: {explanation}"))?;
        }
    }
    if let Some(confidence) = &figures.confidence {
        print_confidence(confidence, &mut table)?;
    }
    if let Some(model) = &figures.model {
        print_model(model, &mut table)?;
    }
    for note in report.notes()? {
        let (label, text) = labelled(&note);
        table.head(label)?;
        writeln!(table.output, "  {text}")?;
    }
    Ok(())
}

/// Samples of a host call, with their factors.
fn samples_line(batching: &BatchingConfig) -> String {
    let BatchingConfig { micro_batch, gradient_accumulation, replicas, device_iterations } =
        batching;
    format!(
        "{} = {micro_batch} micro-batch x {gradient_accumulation} gradient accumulation x {replicas} replicas x {device_iterations} device iterations",
        grouped(batching.samples_per_call())
    )
}

fn print_memory(memory: &MemorySummary, table: &mut TwoColumnTable) -> Result<(), CliError> {
    for (name, bytes) in [
        ("Including gaps", memory.total_including_gaps),
        ("Excluding gaps", memory.total_excluding_gaps),
        ("Always live", memory.always_live),
        ("Not always live (peak)", memory.peak_not_always_live),
        ("Fullest tile", memory.max_tile_including_gaps),
    ] {
        table.row(name, &binary_bytes(bytes.0))?;
    }
    for (name, bytes) in memory.by_region.iter().chain(&memory.by_category) {
        table.row(&format!("  {name}"), &binary_bytes(bytes.0))?;
    }
    for (name, words) in memory.rows_of_fit() {
        table.row(name, &words)?;
    }
    if memory.out_of_memory_tiles > 0 {
        table.row("Out of memory", &format!("{} tiles", grouped(memory.out_of_memory_tiles)))?;
    }
    Ok(())
}

fn print_execution(
    report: &Report,
    execution: &ExecutionSummary,
    table: &mut TwoColumnTable,
) -> Result<(), CliError> {
    table.row("Run", &run_words(execution))?;
    let balanced = report.has(ReportPart::ActiveTiles);
    for (index, ipu) in execution.ipus.iter().enumerate() {
        let shares: Vec<String> = ipu
            .proportions
            .iter()
            .filter(|(_, share)| *share > 0.0)
            .map(|(name, share)| format!("{} {}", name.replace('_', " "), percent(share)))
            .collect();
        table.row(
            &format!("IPU {index}"),
            &format!(
                "{} steps, tile balance {}; of its cycles: {}",
                short_count(ipu.steps),
                if balanced { percent(ipu.tile_balance) } else { "not recorded".to_owned() },
                shares.join(", "),
            ),
        )?;
    }
    print_path(execution, table)
}

/// The waits of the run, with a line for each activity and each lane.
fn print_path(execution: &ExecutionSummary, table: &mut TwoColumnTable) -> Result<(), CliError> {
    if execution.critical_path.is_empty() {
        return Ok(());
    }
    table.head("Critical path")?;
    let known = |of: Option<Cycles>| of.map_or("unknown".to_owned(), |of| short_count(of.0));
    for of in &execution.critical_path {
        let text = format!(
            "{} of the path, {}; exposed {}, hidden {}",
            percent(of.path_share),
            short_cycles(of.on_path.0),
            known(of.exposed),
            known(of.hidden)
        );
        table.row(of.kind.title(), &text)?;
    }
    for of in &execution.slack {
        let text = format!(
            "{} of the path; mean slack {}, lead {}",
            percent(of.path_share),
            short_count(Cycles::from_f64(of.slack.round()).0),
            short_count(of.lead.0)
        );
        table.row(&of.title, &text)?;
    }
    Ok(())
}

/// The share of the peak that the run achieves, and the losses.
fn print_limits(limits: &LimitsSummary, table: &mut TwoColumnTable) -> Result<(), CliError> {
    table.head("Limits")?;
    let ipu_cycles = short_count(limits.ipu_cycles.0);
    match (limits.utilisation, limits.unknown) {
        (Some(share), _) => {
            let text = format!("{} of {ipu_cycles} IPU-cycles", fine_percent(share));
            table.row("Utilisation of peak", &text)?;
        }
        (None, reason) => {
            let reason = reason.map_or("", UnknownUtilisation::sentence);
            table.row("Utilisation of peak", &format!("unknown: {reason}"))?;
        }
    }
    for peak in &limits.peaks {
        let per_second = peak
            .flops_per_second
            .map_or_else(String::new, |rate| format!(" = {}", with_prefix(rate, "FLOP/s")));
        let flops = grouped_real(peak.flops_per_cycle);
        let text = format!("AMP, {flops} FLOPs per cycle of an IPU{per_second}");
        table.row(&format!("  Peak of {}", peak.name), &text)?;
    }
    for of in &limits.waterfall {
        let share = format!("{} of the cycles of all IPUs", fine_percent(of.share));
        table.row(&format!("  {}", of.step.title()), &share)?;
    }
    Ok(())
}

/// Rates of the loader alone, of synthetic and of real data, and the parts of a call.
fn print_host(host: &HostSummary, table: &mut TwoColumnTable) -> Result<(), CliError> {
    for of in &host.throughput {
        let rate = short_count(of.samples_per_second.round() as u64);
        let limit = bottleneck_title(of.rate.bottleneck);
        let text = format!("{rate} samples per second, limited by {limit}");
        table.row(source_title(of.rate.source), &text)?;
    }
    for of in &host.call {
        let text = format!("{}, {} of the call", seconds(of.seconds), percent(of.share));
        table.row(part_title(of.kind), &text)?;
    }
    for tensor in &host.tensors {
        let text = format!("{}, {} a call", tensor.shape, binary_bytes(tensor.bytes.0));
        table.row(&format!("  {} {}", tensor.direction, tensor.name), &text)?;
    }
    for (at, epoch) in host.epochs.iter().enumerate() {
        let name = if at == 0 { "First epoch" } else { "Each later epoch" };
        let text = format!(
            "{} steps, {} samples and {} left out, {}, {} samples per second",
            grouped(epoch.calls),
            grouped(epoch.samples),
            grouped(epoch.left_out),
            seconds(epoch.seconds),
            grouped(epoch.samples_per_second.round() as u64),
        );
        table.row(name, &text)?;
    }
    for of in &host.replicas {
        table.row(&of.title(), &of.words())?;
    }
    if let Some(who) = held_up(&host.replicas) {
        table.row("Limited by", &who)?;
    }
    Ok(())
}

/// The certainty of the figures of the run.
fn print_confidence(confidence: &Confidence, table: &mut TwoColumnTable) -> Result<(), CliError> {
    table.head("Confidence")?;
    for (name, band) in confidence.rows() {
        table.row(name, &band)?;
    }
    for (name, share) in confidence.shares.iter() {
        table.row(&format!("Cycles: {name}"), &percent(share))?;
    }
    Ok(())
}

/// The file of an imported model, and the treatment of its nodes.
fn print_model(summary: &ImportedModelSummary, table: &mut TwoColumnTable) -> Result<(), CliError> {
    table.head("Model")?;
    for (name, text) in summary.rows() {
        table.row(name, &text)?;
    }
    Ok(())
}

/// A table of two columns with headings.
struct TwoColumnTable<'a> {
    output: &'a mut dyn Write,
}

impl TwoColumnTable<'_> {
    fn head(&mut self, title: &str) -> Result<(), CliError> {
        Ok(writeln!(self.output, "{title}")?)
    }

    fn row(&mut self, name: &str, value: &str) -> Result<(), CliError> {
        Ok(writeln!(self.output, "  {name:30} {value}")?)
    }
}
