//! Many reports as one document.

use super::super::answer::limited;
use super::super::answer_fields::{AnswerField, AnswerKind};
use super::super::arguments::{ArgumentKind, CheckedArguments, ToolArgument};
use super::super::session::{McpSession, command_json};
use super::{LIMIT, McpTool, PER, ToolAnswer};
use crate::cli::command::CliError;
use crate::cli::error::UsageError;
use crate::cli::report_or_spec::is_report;
use std::path::Path;
use tilescope_analysis::insights::SpecChanges;

const REPORTS: ToolArgument = ToolArgument::required(
    "reports",
    ArgumentKind::Texts,
    "Directories of reports, reports, or specs, which are simulated; a directory stands for every \
     report in it",
);
const FIGURES: ToolArgument = ToolArgument::optional(
    "figures",
    ArgumentKind::Texts,
    "Dotted paths of summary, or cycles, throughput, memory, max_tile; * stands for any one part. \
     Those four by default",
);
const BASELINE: ToolArgument = ToolArgument::optional(
    "baseline",
    ArgumentKind::Text,
    "The run to compare the others with; the first by default",
);

const FIRST_FIGURES: [&str; 4] = ["cycles", "throughput", "memory", "max_tile"];

pub(super) const TOOL: McpTool = McpTool {
    name: "series",
    about: "Shows many reports as a series: figures of all runs in order, with change points, \
            drifts and outliers, and cycles of operations side by side. For nightly runs, or for \
            variants of a spec.",
    arguments: &[REPORTS, FIGURES, BASELINE, PER, LIMIT],
    answer: &[
        AnswerField::always("asked", AnswerKind::Text, "The requested unit of work"),
        AnswerField::always("unit", AnswerKind::Text, "The unit of work of the figures"),
        AnswerField::always(
            "baseline",
            AnswerKind::Text,
            "The run that the others are compared with",
        ),
        AnswerField::always("threshold", AnswerKind::Number, "Smallest reported change"),
        AnswerField::always(
            "notes",
            AnswerKind::Texts,
            "Differences that make runs hard to compare",
        ),
        AnswerField::always(
            "runs",
            AnswerKind::Rows(&[
                AnswerField::always("name", AnswerKind::Text, "Its name"),
                AnswerField::always("path", AnswerKind::Text, "Its file"),
                AnswerField::always("target", AnswerKind::Text, "The machine"),
                AnswerField::or_null("samples", AnswerKind::Whole, "Samples of the run"),
            ]),
            "Runs in order",
        ),
        AnswerField::always(
            "unread",
            AnswerKind::Cells,
            "Reports that could not be read, with the \
                                                          reason",
        ),
        AnswerField::always(
            "figures",
            AnswerKind::Rows(&[
                AnswerField::always("path", AnswerKind::Text, "The figure"),
                AnswerField::or_null("per", AnswerKind::Text, "Its unit of work"),
            ]),
            "Each figure with values by run, changes, drifts and outliers",
        ),
        AnswerField::always("operations", AnswerKind::Cells, "Cycles of each operation by run"),
        AnswerField::always("operations_total", AnswerKind::Numbers, "Their sums by run"),
    ],
    run,
};

fn run(arguments: &CheckedArguments<'_>, session: &McpSession) -> Result<ToolAnswer, CliError> {
    let mut words = vec!["series".to_owned(), "--json".to_owned()];
    words.push(format!("--per={}", arguments.text(PER.name).unwrap_or("sample")));
    words.extend(arguments.text(BASELINE.name).map(|name| format!("--baseline={name}")));
    let mut figures: Vec<&str> = arguments.texts(FIGURES.name).collect();
    if figures.is_empty() {
        figures.extend(FIRST_FIGURES);
    }
    words.extend(figures.iter().map(|figure| format!("--figure={figure}")));
    // Words after it are never options.
    words.push("--".to_owned());
    let mut is_empty = true;
    for name in arguments.texts(REPORTS.name) {
        session.check_name(name)?;
        if !is_report(Path::new(name)) {
            // A spec names a model, which may be outside the root.
            session.spec(name, &SpecChanges::new())?;
        }
        words.push(name.to_owned());
        is_empty = false;
    }
    if is_empty {
        return Err(UsageError::MissingArgument { name: REPORTS.name, about: REPORTS.about }.into());
    }
    Ok(limited(command_json(&words, &[])?, arguments.limit()).into())
}
