//! A search for the option that makes the difference between two specs.

use super::super::answer::limited;
use super::super::answer_fields::{AnswerField, AnswerKind};
use super::super::arguments::{ArgumentKind, CheckedArguments, ToolArgument};
use super::super::session::{McpSession, command_json};
use super::{BUDGET, LIMIT, McpTool, ToolAnswer};
use crate::cli::command::CliError;
use tilescope_analysis::insights::SpecChanges;

const GOOD: ToolArgument =
    ToolArgument::required("good", ArgumentKind::Text, "A spec, or a report that has one");
const BAD: ToolArgument = ToolArgument::required(
    "bad",
    ArgumentKind::Text,
    "What differs from it: a spec, or a report that has one",
);
const BAD_CHANGES: ToolArgument = ToolArgument::optional(
    "bad_changes",
    ArgumentKind::Changes,
    "Keys of the bad spec to set first",
);
const FIGURE: ToolArgument = ToolArgument::optional(
    "figure",
    ArgumentKind::Word(&["cycles", "memory"]),
    "Cycles per sample, or memory of the fullest tile; cycles where nothing is said",
);

/// One of the two specs.
const END: [AnswerField; 2] = [
    AnswerField::always("name", AnswerKind::Text, "The spec as it was named"),
    AnswerField::always("value", AnswerKind::Number, "The figure"),
];

pub(super) const TOOL: McpTool = McpTool {
    name: "bisect",
    about: "Which keys make the difference between two specs, or the specs of two reports, and in \
            which operations: simulates specs in between. Parts and interaction add up to the \
            difference exactly.",
    arguments: &[GOOD, BAD, BAD_CHANGES, FIGURE, BUDGET, LIMIT],
    answer: &[
        AnswerField::always("figure", AnswerKind::Text, "cycles or memory"),
        AnswerField::always("unit", AnswerKind::Text, "The figure in words"),
        AnswerField::always("good", AnswerKind::Fields(&END), "The first spec"),
        AnswerField::always("bad", AnswerKind::Fields(&END), "The second spec"),
        AnswerField::always("difference", AnswerKind::Number, "bad - good"),
        AnswerField::always(
            "parts",
            AnswerKind::Rows(&[
                AnswerField::always("keys", AnswerKind::Cells, "Keys with their values in both"),
                AnswerField::or_null("change", AnswerKind::Number, "What they explain"),
                AnswerField::or_null("share", AnswerKind::Number, "Its share of the difference"),
            ]),
            "What keys explain alone, the largest first",
        ),
        AnswerField::always(
            "interaction",
            AnswerKind::Object,
            "What keys explain only together: change, share, pairs, rest",
        ),
        AnswerField::always("cut_short", AnswerKind::Flag, "Whether the budget ended it"),
        AnswerField::always("simulations", AnswerKind::Whole, "Specs that were simulated"),
        AnswerField::or_null(
            "operations",
            AnswerKind::Object,
            "Operations without (source) and with (target) the part that explains most",
        ),
    ],
    run,
};

fn run(arguments: &CheckedArguments<'_>, session: &McpSession) -> Result<ToolAnswer, CliError> {
    let good = session.spec_file(arguments.required_text(GOOD.name), &SpecChanges::new())?;
    let changes = arguments.changes(BAD_CHANGES.name);
    let bad = session.spec_file(arguments.required_text(BAD.name), &changes)?;
    let mut words = vec!["bisect".to_owned(), good.word(), bad.word(), "--json".to_owned()];
    let figure = arguments.text(FIGURE.name).unwrap_or("cycles").to_owned();
    let budget = arguments.whole(&BUDGET).to_string();
    words.extend(["--figure".to_owned(), figure, "--budget".to_owned(), budget]);
    let found = command_json(&words, &[good, bad])?;
    Ok(limited(found, arguments.limit()).into())
}
