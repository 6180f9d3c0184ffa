//! Pictures of views.

use super::super::answer_fields::{AnswerField, AnswerKind};
use super::super::arguments::{ArgumentKind, CheckedArguments, ToolArgument};
use super::super::session::McpSession;
use super::{CHANGES, McpTool, OF_REPORT, REPORT, ToolAnswer, ToolPicture};
use crate::cli::command::CliError;
use crate::cli::error::JobError;
use serde_json::json;
use std::path::Path;
use tilescope_experiments::trial::run_command;
use tilescope_report::temporary_directory::TemporaryDirectory;

/// Width and height: models scale larger pictures down to about this size.
const SIZE: &str = "1400x900";

const VIEW: ToolArgument = ToolArgument::required(
    "view",
    ArgumentKind::Text,
    "View, for example \"execution-trace\", \"memory\" or \"limits\"; an unknown one is answered \
     with a list",
);
const AT: ToolArgument = ToolArgument::optional(
    "at",
    ArgumentKind::Text,
    "Link to a place in the view, from another answer; the picture shows that place",
);
const COMPARE: ToolArgument = ToolArgument::optional(
    "compare",
    ArgumentKind::Text,
    "A second report, or a spec, drawn beside the first",
);
const THEME: ToolArgument = ToolArgument::optional(
    "theme",
    ArgumentKind::Word(&["light", "dark"]),
    "Colours of the picture; light by default",
);

pub(super) const TOOL: McpTool = McpTool {
    name: "picture",
    about: "Draws a view of a report as a PNG image, as in the window. Use table and figure to \
            read values; use a picture for the shape of a run, or to show it to the user.",
    arguments: &[REPORT, CHANGES, VIEW, AT, COMPARE, THEME],
    answer: &[
        OF_REPORT,
        AnswerField::always("view", AnswerKind::Text, "The view"),
        AnswerField::always(
            "size",
            AnswerKind::Text,
            "Width and height in pixels, for example \
                                                       1400x900",
        ),
        AnswerField::always("bytes", AnswerKind::Whole, "Size of the PNG file"),
    ],
    run,
};

fn run(arguments: &CheckedArguments<'_>, session: &McpSession) -> Result<ToolAnswer, CliError> {
    let view = arguments.required_text(VIEW.name);
    let opened =
        session.open(arguments.required_text(REPORT.name), &arguments.changes(CHANGES.name))?;
    let other = arguments.text(COMPARE.name);
    let other = other.map(|name| session.open(name, &Default::default())).transpose()?;
    let directory = TemporaryDirectory::new()?;
    let file = directory.path().join("view.png");
    let mut words = ["export", "--view", view, "--format", "png", "--size", SIZE].to_vec();
    words.extend(["--theme", arguments.text(THEME.name).unwrap_or("light")]);
    if let Some(at) = arguments.text(AT.name) {
        words.extend(["--at", at]);
    }
    let mut words: Vec<String> = words.into_iter().map(str::to_owned).collect();
    if let Some(other) = &other {
        words.extend(["--compare".to_owned(), path_word(other.report.path())]);
    }
    words.extend(["--output".to_owned(), path_word(&file)]);
    // Words after it are never options.
    words.extend(["--".to_owned(), path_word(opened.report.path())]);
    if let Some(failure) = run_command(&words)?.failure {
        return Err(failure.into());
    }
    let png = std::fs::read(&file).map_err(|error| JobError::ReadFile { file, error })?;
    let answer = json!({ "view": view, "size": SIZE, "bytes": png.len() });
    let value = opened.answer(answer)?;
    Ok(ToolAnswer { value, picture: Some(ToolPicture { png }) })
}

fn path_word(path: &Path) -> String {
    path.display().to_string()
}
