//! `why`: explains the waits of a run, and the duration of a step.

use super::command::{CliCommand, CliError, json_argument, open_report, report_argument};
use crate::cli::error::{JobError, UsageError};
use clap::{Arg, ArgMatches, value_parser};
use serde_json::{Value, json};
use std::io::Write;
use tilescope_analysis::critical_path::{
    IpuSlack, PathRow, PathTotals, StepOnPath, StepPart, WhyChain, WhyLink, ipu_slacks,
    path_totals, step_on_path, step_parts, why, why_run,
};
use tilescope_analysis::replica_classes::ipu_words;
use tilescope_report::units::{
    Cycles, IpuId, NumberFormat, ReplicaIpu, StepId, grouped, percent, short_count, short_cycles,
};
use tilescope_report::{ReplicaClasses, Report};

/// `tilescope why`
pub(super) const COMMAND: CliCommand = CliCommand { name: "why", arguments, run };

/// Number of items of the path that are explained.
pub(super) const CHAINS: usize = 3;

const AFTER_HELP: &str = "\
The critical path is the longest chain of steps that wait for one another, from the first cycle of
the run to the last. Removing cycles from its steps shortens the run by at most that many; making
other steps faster gains nothing. Slack is how much later a step could end without delaying the end
of the run. Lead is the most that making one IPU faster can gain.

Examples:
  tilescope why out
  tilescope why out --json
  tilescope why out --at 1234
  tilescope why out --at 1234:1
  tilescope why out --at 1234:1:5       on replica 5, where replicas differ";

fn arguments(command: clap::Command) -> clap::Command {
    let limit = Arg::new("limit")
        .long("limit")
        .value_name("N")
        .value_parser(value_parser!(usize))
        .default_value("20")
        .help("Maximum number of rows of the path to print; 0 for all");
    command
        .about(
            "Show what a run waits for: its critical path, slack, and the cause of the length \
                of a step",
        )
        .arg(report_argument())
        .arg(Arg::new("at").long("at").value_name("STEP[:IPU[:REPLICA]]").help(
            "Explain this executed step, on the IPU where it takes longest or on the \
                       named IPU and replica",
        ))
        .arg(json_argument())
        .arg(limit)
        .after_help(AFTER_HELP)
}

fn run(matches: &ArgMatches, output: &mut dyn Write) -> Result<(), CliError> {
    let at = matches.get_one::<String>("at").map(|text| AskedStep::parse(text)).transpose()?;
    let report = open_report(matches)?;
    let Some(totals) = path_totals(&report, None)? else {
        let problem = "the report has no executed steps: the program was only compiled";
        return Err(JobError::Nothing(problem).into());
    };
    let is_json = matches.get_flag("json");
    if let Some(at) = at {
        return at_step(&report, &at, is_json, output);
    }
    let slacks = ipu_slacks(&report)?;
    let numbers = NumberFormat::default();
    let chains = why_run(&report, CHAINS, numbers)?;
    if is_json {
        let value = json!({
            "cycles": totals.cycles,
            "path": totals.rows.iter().map(row_json).collect::<Vec<_>>(),
            "slack": slacks,
            "why": chains.iter().map(chain_json).collect::<Vec<_>>(),
        });
        return super::command::print_json(&value, output);
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

/// A step given by the user, with its IPU and replica if given.
struct AskedStep {
    step: StepId,
    ipu: Option<IpuId>,
    replica: Option<u32>,
}

impl AskedStep {
    fn parse(text: &str) -> Result<Self, CliError> {
        let to_error = || {
            let expects =
                "the number of an executed step, STEP:IPU as in 1234:1, or STEP:IPU:REPLICA";
            UsageError::OptionExpects {
                option: "--at".to_owned(),
                expects: expects.to_owned(),
                found: format!("{text:?}"),
            }
        };
        let parse_number = |part: &str| part.parse::<u32>().map_err(|_| to_error());
        let mut parts = text.split(':');
        let step = parts.next().unwrap_or_default().replace(',', "");
        let asked = Self {
            step: StepId(step.parse().map_err(|_| to_error())?),
            ipu: parts.next().map(parse_number).transpose()?.map(IpuId),
            replica: parts.next().map(parse_number).transpose()?,
        };
        Ok(parts.next().is_none().then_some(asked).ok_or_else(to_error)?)
    }

    /// The place of the step on the path, and the reasons for its duration.
    fn answer(&self, report: &Report) -> Result<StepAnswer, CliError> {
        let classes = report.replica_classes()?;
        let StepPart { at, sub_lane, range } = self.find(report, &classes)?;
        let step = self.step;
        let state = step_on_path(report, step, at, sub_lane)?;
        let chain = why(report, step, at, sub_lane, NumberFormat::default())?;
        let Some(state) = state else { return Err(JobError::StepOnNoLane(step).into()) };
        let Some(chain) = chain else { return Err(JobError::StepOnNoLane(step).into()) };
        let place = ipu_words(&classes, at);
        let cycles = range.length();
        Ok(StepAnswer { step, at, place, cycles, state, chain })
    }

    /// The longest part of the step among those selected.
    fn find(&self, report: &Report, classes: &ReplicaClasses) -> Result<StepPart, CliError> {
        let step = self.step;
        let parts = step_parts(report, step)?;
        if parts.is_empty() {
            let steps = report.step_count()?;
            return Err(UsageError::NoStep { step, steps }.into());
        }
        let replicas = report.target()?.replicas;
        if let Some(replica) = self.replica.filter(|replica| *replica >= replicas) {
            return Err(UsageError::NoReplica { replica, replicas }.into());
        }
        let class = self.replica.map(|replica| classes.class_of(replica));
        let is_asked = |part: &&StepPart| {
            self.ipu.is_none_or(|ipu| part.at.ipu == ipu)
                && class.is_none_or(|class| part.at.class == class)
        };
        let longest = parts.iter().rev().filter(is_asked).max_by_key(|part| part.range.length());
        let longest = longest.copied().ok_or_else(|| {
            let places = parts.iter().map(|part| ipu_words(classes, part.at));
            let places = places.collect::<Vec<_>>().join("; ");
            UsageError::StepElsewhere { step, places }
        });
        Ok(longest?)
    }
}

fn at_step(
    report: &Report,
    asked: &AskedStep,
    is_json: bool,
    output: &mut dyn Write,
) -> Result<(), CliError> {
    let answer = asked.answer(report)?;
    if is_json {
        return super::command::print_json(&answer.json(), output);
    }
    let StepAnswer { step, place, cycles, state, chain, .. } = answer;
    writeln!(output, "Step {step} on {place}: {}", state_words(&state, cycles))?;
    print_chain(&chain, output)
}

/// The facts about a step.
pub(super) struct StepAnswer {
    step: StepId,
    at: ReplicaIpu,
    /// Its IPU as text, with the replicas if these differ.
    place: String,
    cycles: Cycles,
    state: StepOnPath,
    pub chain: WhyChain,
}

impl StepAnswer {
    /// Explains a step, `STEP[:IPU[:REPLICA]]`.
    ///
    /// # Errors
    /// The text is invalid, or the step does not exist.
    pub(super) fn of(report: &Report, text: &str) -> Result<Self, CliError> {
        AskedStep::parse(text)?.answer(report)
    }

    /// `{step, ipu, cycles, on_path, slack, why}`
    pub(super) fn json(&self) -> Value {
        json!({
            "step": self.step.0,
            "ipu": self.at,
            "cycles": self.cycles,
            "on_path": self.state.is_on_path,
            "slack": self.state.slack,
            "why": chain_json(&self.chain),
        })
    }
}

fn state_words(state: &StepOnPath, cycles: Cycles) -> String {
    let slack = match state.slack {
        Some(slack) => format!("slack {slack} cycles"),
        None => "slack unknown".to_owned(),
    };
    let path = if state.is_on_path { "on the critical path" } else { "not on the critical path" };
    format!("{cycles} cycles, {path}, {slack}")
}

/// A row of the path.
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

/// A chain of answers.
pub(super) fn chain_json(chain: &WhyChain) -> Value {
    let describe_link = |link: &WhyLink| {
        json!({
            "text": link.text,
            "detail": link.detail,
            "cycles": link.cycles,
            "step": link.place.map(|place| place.step.0),
            "ipu": link.place.map(|place| place.at.ipu),
        })
    };
    json!({ "links": chain.links.iter().map(describe_link).collect::<Vec<_>>(), "options": chain.options })
}

fn print_path(totals: &PathTotals, limit: usize, output: &mut dyn Write) -> Result<(), CliError> {
    let (shown, rest) = totals.rows.split_at(limit.min(totals.rows.len()));
    let width = shown.iter().map(|row| row.lane.chars().count()).max().unwrap_or(0).max(3);
    let format_line = |share: f64, cycles: Cycles, [kind, lane, name]: [&str; 3]| {
        let share = percent(share);
        let cycles = short_count(cycles.0);
        format!("{share:>7} {cycles:>16}  {kind:17} {lane:width$}  {name}")
    };
    writeln!(output, "Critical path: {}", short_cycles(totals.cycles.0))?;
    let kinds = totals.by_kind().into_iter();
    let kinds = kinds.map(|(kind, share)| format!("{} {share}", kind.title()));
    writeln!(output, "Of the path: {}", kinds.collect::<Vec<_>>().join(", "))?;
    let [share, cycles, kind, lane] = ["of path", "cycles", "kind", "IPU"];
    writeln!(output, "\n{share:>7} {cycles:>16}  {kind:17} {lane:width$}  operation")?;
    for row in shown {
        let words = [row.kind.name(), &row.lane, &row.name];
        writeln!(output, "{}", format_line(row.share, row.cycles, words))?;
    }
    if !rest.is_empty() {
        let of = totals.behind(limit);
        let name = format!("{} more (raise --limit to list them)", grouped(rest.len() as u64));
        writeln!(output, "{}", format_line(of.value(), of.cycles(), ["", "", &name]))?;
    }
    writeln!(output, "{}", format_line(1.0, totals.cycles, ["", "", "the run"]))?;
    Ok(())
}

fn print_slack(slacks: &[IpuSlack], output: &mut dyn Write) -> Result<(), CliError> {
    let heads = ["", "on the path", "waits", "mean slack", "lead"];
    let [ipu, path, waits, slack, lead] = heads;
    writeln!(output, "\n{ipu:24} {path:>24} {waits:>16} {slack:>16} {lead:>16}")?;
    for of in slacks {
        let name = &of.title;
        let share = percent(of.path_share);
        let path = format!("{} ({share} of it)", short_count(of.path_cycles.0));
        let [waits, lead] = [of.waits, of.lead].map(|cycles| short_count(cycles.0));
        let slack = short_count(Cycles::from_f64(of.slack.round()).0);
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
