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
    "The figure to improve: samples per second, time of a host call, memory of the fullest tile, \
     IPUs, or energy or cost per sample; throughput by default",
);
const WHERE: ToolArgument = ToolArgument::optional(
    "where",
    ArgumentKind::Texts,
    "Conditions on figures or keys of the spec that the result must meet, as in \
     [\"samples_per_second > 1000\"]",
);
const FREE: ToolArgument = ToolArgument::optional(
    "free",
    ArgumentKind::Texts,
    "Keys that may change although they affect the result, as in [\"model.batch_size\"]",
);
const FIX: ToolArgument = ToolArgument::optional(
    "fix",
    ArgumentKind::Texts,
    "Keys, or tables of keys, that must not change, as in [\"options.host\"]",
);

/// A tested spec.
const POINT: [AnswerField; 6] = [
    AnswerField::always(
        "changes",
        AnswerKind::Object,
        "Keys that differ from the spec, with their values",
    ),
    AnswerField::always("outcome", AnswerKind::Text, "How the simulation ended"),
    AnswerField::or_null("seconds_per_sample", AnswerKind::Number, "Seconds of the run / samples"),
    AnswerField::or_null("samples_per_second", AnswerKind::Number, "Throughput of the machine"),
    AnswerField::or_null("memory", AnswerKind::Whole, "Bytes of the fullest tile"),
    AnswerField::or_null("ipus", AnswerKind::Whole, "IPUs of all replicas"),
];

pub(super) const TOOL: McpTool = McpTool {
    name: "tune",
    about: "Searches for a better spec: tests the proposals of insights, continues from those that \
            gain, and returns the path with the gain of each step, dead ends, and the best \
            trade-offs of time, memory and IPUs. Keys that affect the result stay unless `free` \
            names them. Runs up to `budget` simulations.",
    arguments: &[REPORT, CHANGES, OBJECTIVE, WHERE, FREE, FIX, BUDGET, LIMIT],
    answer: &[
        AnswerField::always("spec", AnswerKind::Text, "The name of the spec, as given"),
        AnswerField::always("objective", AnswerKind::Text, "The figure to improve"),
        AnswerField::or_null("gain", AnswerKind::Number, "Share by which the objective is better"),
        AnswerField::or_null("shortfall", AnswerKind::Text, "Why the result misses the request"),
        AnswerField::always("base", AnswerKind::Fields(&POINT), "The unchanged spec"),
        AnswerField::always("best", AnswerKind::Fields(&POINT), "The last point of the path"),
        AnswerField::always(
            "path",
            AnswerKind::Cells,
            "Steps, with change, reasons, gain and point",
        ),
        AnswerField::always("dead_ends", AnswerKind::Cells, "Tested changes without a gain"),
        AnswerField::always("untried", AnswerKind::Cells, "Proposals that change fixed keys"),
        AnswerField::always(
            "pareto_front",
            AnswerKind::Rows(&POINT),
            "Points that no other point beats in time, memory and IPUs together",
        ),
        AnswerField::always("simulate", AnswerKind::Text, "The command that simulates the spec"),
        AnswerField::always("simulations", AnswerKind::Whole, "Specs whose figures were needed"),
        AnswerField::always("simulated_now", AnswerKind::Whole, "Specs simulated in this search"),
        AnswerField::always("exhausted", AnswerKind::Flag, "True if nothing is left to test"),
        AnswerField::always(
            "skipped_proposals",
            AnswerKind::Whole,
            "Proposals beside the path that cannot beat it by their upper bounds",
        ),
        AnswerField::always(
            "unknown_proposals",
            AnswerKind::Whole,
            "Points whose proposals are unknown",
        ),
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
        // A single word, so that no value is parsed as an option.
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
