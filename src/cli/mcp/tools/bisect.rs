//! A search for the options that explain the difference between two specs.

use super::super::answer::limited;
use super::super::answer_fields::{AnswerField, AnswerKind};
use super::super::arguments::{ArgumentKind, CheckedArguments, ToolArgument};
use super::super::session::{McpSession, command_json};
use super::{BUDGET, LIMIT, McpTool, ToolAnswer};
use crate::cli::command::CliError;
use tilescope_analysis::insights::SpecChanges;

const GOOD: ToolArgument =
    ToolArgument::required("good", ArgumentKind::Text, "The first spec, or a report that has one");
const BAD: ToolArgument =
    ToolArgument::required("bad", ArgumentKind::Text, "The other spec, or a report that has one");
const BAD_CHANGES: ToolArgument = ToolArgument::optional(
    "bad_changes",
    ArgumentKind::Changes,
    "Keys of the bad spec to change before it is simulated",
);
const FIGURE: ToolArgument = ToolArgument::optional(
    "figure",
    ArgumentKind::Word(&["cycles", "memory"]),
    "Cycles per sample, or memory of the fullest tile; cycles by default",
);

/// One of the two specs.
const END: [AnswerField; 2] = [
    AnswerField::always("name", AnswerKind::Text, "The name of the spec, as given"),
    AnswerField::always("value", AnswerKind::Number, "The figure"),
];

pub(super) const TOOL: McpTool = McpTool {
    name: "bisect",
    about: "Finds the keys that explain the difference between two specs, or the specs of two \
            reports, and the operations that differ, by simulating specs in between. Parts and \
            interaction add up to the difference exactly.",
    arguments: &[GOOD, BAD, BAD_CHANGES, FIGURE, BUDGET, LIMIT],
    answer: &[
        AnswerField::always("figure", AnswerKind::Text, "cycles or memory"),
        AnswerField::always("unit", AnswerKind::Text, "The figure as text"),
        AnswerField::always("good", AnswerKind::Fields(&END), "The first spec"),
        AnswerField::always("bad", AnswerKind::Fields(&END), "The second spec"),
        AnswerField::always("difference", AnswerKind::Number, "bad - good"),
        AnswerField::always(
            "parts",
            AnswerKind::Rows(&[
                AnswerField::always("keys", AnswerKind::Cells, "Keys with their values in both"),
                AnswerField::or_null(
                    "change",
                    AnswerKind::Number,
                    "The part of the difference that \
                                                                    they explain",
                ),
                AnswerField::or_null("share", AnswerKind::Number, "Its share of the difference"),
            ]),
            "Parts explained by single keys, the largest first",
        ),
        AnswerField::always(
            "interaction",
            AnswerKind::Object,
            "The part explained only by keys together: change, share, pairs, rest",
        ),
        AnswerField::always("cut_short", AnswerKind::Flag, "True if the budget ended the search"),
        AnswerField::always("simulations", AnswerKind::Whole, "Number of simulated specs"),
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
