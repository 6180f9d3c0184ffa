//! `why`: what a run waits for, and why a step takes as long as it does.

use super::{CliCommand, CliError, json_argument, open_report, report_argument};
use clap::{Arg, ArgMatches, value_parser};
use serde_json::{Value, json};
use std::io::Write;
use tilescope_analysis::critical_path::{
    IpuSlack, PathRow, PathTotals, StepOnPath, WhyChain, WhyLink, ipu_slacks, path_totals,
    step_on_path, why, why_run,
};
use tilescope_report::units::{Cycles, IpuId, NumberFormat, ReplicaIpu, StepId, grouped, percent};
use tilescope_report::{Report, ReportError};

/// `tilescope why`
pub(super) const COMMAND: CliCommand = CliCommand { name: "why", arguments, run };

/// Things of the path that are explained.
const CHAINS: usize = 3;

const AFTER_HELP: &str = "\
The critical path is the longest chain of steps that wait for each other, from the first cycle of
the run to the last. Taking cycles away from steps on it makes the run shorter by at most as many;
what is not on it gains nothing. Slack is how much later a step could end without the run ending
later; lead is what an IPU alone being faster gains at most.

Examples:
  tilescope why out
  tilescope why out --json
  tilescope why out --at 1234
  tilescope why out --at 1234:1";

fn arguments(command: clap::Command) -> clap::Command {
    let limit = Arg::new("limit")
        .long("limit")
        .value_name("N")
        .value_parser(value_parser!(usize))
        .default_value("20")
        .help("Maximum number of rows of the path to print; 0 for all");
    command
        .about("Say what a run waits for: its critical path, slack, and why a step takes as long as it does")
        .arg(report_argument())
        .arg(
            Arg::new("at")
                .long("at")
                .value_name("STEP[:IPU]")
                .help("Explain this executed step, on the IPU that waits longest in it or on the one named"),
        )
        .arg(json_argument())
        .arg(limit)
        .after_help(AFTER_HELP)
}

fn failed(error: ReportError) -> CliError {
    CliError::Failed(error.to_string())
}

fn run(matches: &ArgMatches, output: &mut dyn Write) -> Result<(), CliError> {
    let at = matches.get_one::<String>("at").map(|text| step_of(text)).transpose()?;
    let report = open_report(matches)?;
    let Some(totals) = path_totals(&report, None).map_err(failed)? else {
        let problem = "the report has no executed steps: the program was only compiled";
        return Err(CliError::Failed(problem.to_owned()));
    };
    let is_json = matches.get_flag("json");
    if let Some((step, ipu)) = at {
        return at_step(&report, (step, ipu), is_json, output);
    }
    let slacks = ipu_slacks(&report).map_err(failed)?;
    let numbers = NumberFormat::default();
    let chains = why_run(&report, CHAINS, numbers).map_err(failed)?;
    if is_json {
        let value = json!({
            "cycles": totals.cycles,
            "path": totals.rows.iter().map(row_json).collect::<Vec<_>>(),
            "slack": slacks,
            "why": chains.iter().map(chain_json).collect::<Vec<_>>(),
        });
        return print_json(&value, output);
    }
    let limit = matches.get_one::<usize>("limit").copied().filter(|limit| *limit > 0);
    print_path(&totals, limit.unwrap_or(usize::MAX), output)?;
    print_slack(&slacks, output)?;
    for chain in &chains {
        writeln!(output)?;
        print_chain(chain, output)?;
    }
    Ok(())
}

/// A step, and the IPU that is asked for.
fn step_of(text: &str) -> Result<(StepId, Option<IpuId>), CliError> {
    let wrong = || {
        let problem = "expects the number of an executed step, or STEP:IPU as in 1234:1";
        CliError::Usage(format!("--at {problem}, not {text:?}"))
    };
    let (step, ipu) = text.split_once(':').map_or((text, None), |(step, ipu)| (step, Some(ipu)));
    let step = step.replace(',', "").parse().map_err(|_| wrong())?;
    let ipu = ipu.map(|ipu| ipu.parse().map(IpuId).map_err(|_| wrong())).transpose()?;
    Ok((StepId(step), ipu))
}

fn at_step(
    report: &Report,
    (step, ipu): (StepId, Option<IpuId>),
    is_json: bool,
    output: &mut dyn Write,
) -> Result<(), CliError> {
    let found = report.step(step).map_err(failed)?;
    let Some(found) = found else {
        let steps = report.step_count().map_err(failed)?;
        let problem = format!("there is no step {}: the report has {}", step, grouped(steps));
        return Err(CliError::Usage(problem));
    };
    let on = found.ipus.iter().filter(|on| ipu.is_none_or(|ipu| on.ipu == ipu));
    let Some(on) = on.max_by_key(|on| on.range().length()) else {
        let ipus = found.ipus.iter().map(|on| on.ipu.to_string()).collect::<Vec<_>>().join(", ");
        let problem = format!("step {step} did not run on that IPU: it ran on {ipus}");
        return Err(CliError::Usage(problem));
    };
    let place = (ReplicaIpu::from(on.ipu), on.sub_lane);
    let state = step_on_path(report, step, place.0, place.1).map_err(failed)?;
    let chain = why(report, step, place.0, place.1, NumberFormat::default()).map_err(failed)?;
    let (Some(state), Some(chain)) = (state, chain) else {
        return Err(CliError::Failed(format!("step {step} is on no lane of the trace")));
    };
    if is_json {
        let value = json!({
            "step": step.0,
            "ipu": on.ipu,
            "cycles": on.range().length(),
            "on_path": state.is_on_path,
            "slack": state.slack,
            "why": chain_json(&chain),
        });
        return print_json(&value, output);
    }
    writeln!(
        output,
        "Step {step} on IPU {}: {}",
        on.ipu,
        state_words(&state, on.range().length())
    )?;
    print_chain(&chain, output)
}

fn state_words(state: &StepOnPath, cycles: Cycles) -> String {
    let slack = match state.slack {
        Some(slack) => format!("slack {slack} cycles"),
        None => "slack not known".to_owned(),
    };
    let path = if state.is_on_path { "on the critical path" } else { "not on the critical path" };
    format!("{cycles} cycles, {path}, {slack}")
}

fn row_json(row: &PathRow) -> Value {
    json!({
        "kind": row.kind,
        "ipu": row.ipu,
        "io_tiles": row.sub_lane > 0,
        "operation": row.operation.map(|_| &row.name),
        "program": row.operation.is_none().then_some(&row.name).filter(|name| !name.is_empty()),
        "cycles": row.cycles,
        "share": row.share,
    })
}

fn chain_json(chain: &WhyChain) -> Value {
    let link = |link: &WhyLink| {
        json!({
            "text": link.text,
            "detail": link.detail,
            "cycles": link.cycles,
            "step": link.place.map(|place| place.step.0),
            "ipu": link.place.map(|place| place.at.ipu),
        })
    };
    json!({ "links": chain.links.iter().map(link).collect::<Vec<_>>(), "options": chain.options })
}

fn print_json(value: &Value, output: &mut dyn Write) -> Result<(), CliError> {
    let text =
        serde_json::to_string_pretty(value).map_err(|error| CliError::Failed(error.to_string()))?;
    writeln!(output, "{text}")?;
    Ok(())
}

fn print_path(totals: &PathTotals, limit: usize, output: &mut dyn Write) -> Result<(), CliError> {
    writeln!(output, "Critical path: {} cycles", totals.cycles)?;
    writeln!(output, "\n{:>7} {:>16}  {:17} {:>4}  operation", "share", "cycles", "kind", "IPU")?;
    let line = |share: f64, cycles: Cycles, kind: &str, ipu: &str, name: &str| {
        let (share, cycles) = (percent(share), cycles.to_string());
        format!("{share:>7} {cycles:>16}  {kind:17} {ipu:>4}  {name}")
    };
    for row in totals.rows.iter().take(limit) {
        let ipu = row.ipu.ipu.to_string();
        writeln!(output, "{}", line(row.share, row.cycles, row.kind.name(), &ipu, &row.name))?;
    }
    let rest = totals.rows.iter().skip(limit);
    let (count, cycles) = (rest.clone().count(), rest.map(|row| row.cycles).sum::<Cycles>());
    if count > 0 {
        let name = format!("{} more (raise --limit to list them)", grouped(count as u64));
        writeln!(output, "{}", line(totals.share(cycles), cycles, "", "", &name))?;
    }
    writeln!(output, "{}", line(1.0, totals.cycles, "", "", "the run"))?;
    Ok(())
}

fn print_slack(slacks: &[IpuSlack], output: &mut dyn Write) -> Result<(), CliError> {
    let heads = ["", "on the path", "waits", "mean slack", "lead"];
    let [ipu, path, waits, slack, lead] = heads;
    writeln!(output, "\n{ipu:24} {path:>24} {waits:>16} {slack:>16} {lead:>16}")?;
    for of in slacks {
        let name = of.title();
        let path = format!("{} ({})", of.path_cycles, percent(of.path_share));
        let [waits, lead] = [of.waits, of.lead].map(|cycles| cycles.to_string());
        let slack = Cycles::from_f64(of.slack.round()).to_string();
        writeln!(output, "{name:24} {path:>24} {waits:>16} {slack:>16} {lead:>16}")?;
    }
    Ok(())
}

fn print_chain(chain: &WhyChain, output: &mut dyn Write) -> Result<(), CliError> {
    for (depth, link) in chain.links.iter().enumerate() {
        let indent = "  ".repeat(depth);
        let step = link.place.map_or_else(String::new, |place| format!(" [step {}]", place.step));
        writeln!(output, "{indent}{}: {}{step}", link.text, link.detail)?;
    }
    if !chain.options.is_empty() {
        let indent = "  ".repeat(chain.links.len());
        writeln!(output, "{indent}set by {}", chain.options.join(", "))?;
    }
    Ok(())
}
