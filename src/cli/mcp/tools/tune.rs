//! A guided search for a better spec.

use super::super::answer::limited;
use super::super::answer_fields::{AnswerField, AnswerKind};
use super::super::arguments::{ArgumentKind, CheckedArguments, ToolArgument};
use super::super::session::{McpSession, command_json};
use super::{BUDGET, CHANGES, LIMIT, McpTool, REPORT, ToolAnswer};
use crate::cli::command::CliError;

const OBJECTIVES: [&str; 6] = ["throughput", "latency", "memory", "ipus", "energy", "cost"];

const OBJECTIVE: ToolArgument = ToolArgument::optional(
    "objective",
    ArgumentKind::Word(&OBJECTIVES),
    "What is improved: samples per second, time of a host call, memory of the fullest tile, IPUs, \
     energy or cost of a sample; throughput where nothing is said",
);
const WHERE: ToolArgument = ToolArgument::optional(
    "where",
    ArgumentKind::Texts,
    "What must be true of the result, as in [\"samples_per_second > 1000\"]: figures or keys of the \
     spec",
);
const FREE: ToolArgument = ToolArgument::optional(
    "free",
    ArgumentKind::Texts,
    "Keys that may also change, which can affect the result, as in [\"model.batch_size\"]",
);
const FIX: ToolArgument = ToolArgument::optional(
    "fix",
    ArgumentKind::Texts,
    "Keys, or tables of keys, that must not change, as in [\"options.host\"]",
);

/// A spec that was tried.
const POINT: [AnswerField; 6] = [
    AnswerField::always(
        "changes",
        AnswerKind::Object,
        "Keys that differ from the spec, and values",
    ),
    AnswerField::always("outcome", AnswerKind::Text, "How the simulation ended"),
    AnswerField::or_null("seconds_per_sample", AnswerKind::Number, "Seconds of the run / samples"),
    AnswerField::or_null("samples_per_second", AnswerKind::Number, "Rate of the machine"),
    AnswerField::or_null("memory", AnswerKind::Whole, "Bytes of the fullest tile"),
    AnswerField::or_null("ipus", AnswerKind::Whole, "IPUs of all replicas"),
];

pub(super) const TOOL: McpTool = McpTool {
    name: "tune",
    about: "Searches for a better spec: tries what insights propose, goes on from what gains, and \
            gives the path with what each step gained, dead ends, and the best trade-offs of time, \
            memory and IPUs. What is computed is left alone unless `free` names it. Takes about a \
            simulation for each of the budget.",
    arguments: &[REPORT, CHANGES, OBJECTIVE, WHERE, FREE, FIX, BUDGET, LIMIT],
    answer: &[
        AnswerField::always("spec", AnswerKind::Text, "The spec as it was named"),
        AnswerField::always("objective", AnswerKind::Text, "What is improved"),
        AnswerField::or_null("gain", AnswerKind::Number, "Share by which the objective is better"),
        AnswerField::or_null("shortfall", AnswerKind::Text, "Why the result misses the request"),
        AnswerField::always("base", AnswerKind::Fields(&POINT), "The spec as it is"),
        AnswerField::always("best", AnswerKind::Fields(&POINT), "The end of the path"),
        AnswerField::always(
            "path",
            AnswerKind::Cells,
            "Steps, with change, reasons, gain and point",
        ),
        AnswerField::always("dead_ends", AnswerKind::Cells, "Tested changes without a gain"),
        AnswerField::always("untried", AnswerKind::Cells, "What is fixed, and was left alone"),
        AnswerField::always(
            "pareto_front",
            AnswerKind::Rows(&POINT),
            "Points that none is better than in time, memory and IPUs",
        ),
        AnswerField::always("simulate", AnswerKind::Text, "The command that simulates the spec"),
        AnswerField::always("simulations", AnswerKind::Whole, "Specs that were asked for"),
        AnswerField::always("simulated_now", AnswerKind::Whole, "Those that were simulated"),
        AnswerField::always("exhausted", AnswerKind::Flag, "Whether nothing was left to try"),
        AnswerField::always("hopeless", AnswerKind::Whole, "Proposals that their bounds rule out"),
        AnswerField::always("untold", AnswerKind::Whole, "Points whose proposals are not known"),
    ],
    run,
};

fn run(arguments: &CheckedArguments<'_>, session: &McpSession) -> Result<ToolAnswer, CliError> {
    let name = arguments.required_text(REPORT.name);
    let spec = session.spec_file(name, &arguments.changes(CHANGES.name))?;
    let mut words = vec!["tune".to_owned(), spec.word(), "--json".to_owned()];
    let objective = arguments.text(OBJECTIVE.name).unwrap_or(OBJECTIVES[0]).to_owned();
    let budget = arguments.whole(&BUDGET).to_string();
    words.extend(["--objective".to_owned(), objective, "--budget".to_owned(), budget]);
    for argument in [WHERE, FREE, FIX] {
        // One word, so that no value is taken for an option.
        words.extend(
            arguments.texts(argument.name).map(|text| format!("--{}={text}", argument.name)),
        );
    }
    let found = command_json(&words, &[spec])?;
    Ok(limited(found, arguments.limit()).into())
}

#[cfg(test)]
mod tests {
    use super::OBJECTIVES;
    use tilescope_experiments::objective::TuneObjective;

    #[test]
    fn every_objective_can_be_asked_for() {
        assert_eq!(TuneObjective::ALL.map(TuneObjective::name), OBJECTIVES);
    }
}
