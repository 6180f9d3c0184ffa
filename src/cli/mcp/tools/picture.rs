//! Pictures of views.

use super::super::answer_fields::{AnswerField, AnswerKind};
use super::super::arguments::{ArgumentKind, CheckedArguments, ToolArgument};
use super::super::session::McpSession;
use super::{CHANGES, McpTool, OF_REPORT, REPORT, ToolAnswer, ToolPicture};
use crate::cli::command::CliError;
use crate::cli::error::JobError;
use serde_json::json;
use tilescope_experiments::trial::run_command;
use tilescope_report::temporary_directory::TemporaryDirectory;

/// Width and height: what models look at is scaled down to about that.
const SIZE: &str = "1400x900";

const VIEW: ToolArgument = ToolArgument::required(
    "view",
    ArgumentKind::Text,
    "View, as in \"execution-trace\", \"memory\" or \"limits\"; a wrong one is answered with all there \
     are",
);
const AT: ToolArgument = ToolArgument::optional(
    "at",
    ArgumentKind::Text,
    "Link of another answer to a place in the view, which is drawn instead of the whole",
);
const COMPARE: ToolArgument = ToolArgument::optional(
    "compare",
    ArgumentKind::Text,
    "A second report, or a spec, drawn beside the first",
);
const THEME: ToolArgument = ToolArgument::optional(
    "theme",
    ArgumentKind::Word(&["light", "dark"]),
    "Colours of the picture; light where nothing is said",
);

pub(super) const TOOL: McpTool = McpTool {
    name: "picture",
    about: "A view of a report as the window draws it, as a PNG image. Figures are read off better \
            from table and figure: take a picture for the shape of a run, or to show it to the user.",
    arguments: &[REPORT, CHANGES, VIEW, AT, COMPARE, THEME],
    answer: &[
        OF_REPORT,
        AnswerField::always("view", AnswerKind::Text, "The view"),
        AnswerField::always("size", AnswerKind::Text, "Width and height in pixels, as in 1400x900"),
        AnswerField::always("bytes", AnswerKind::Whole, "Length of the PNG file"),
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
    let word = |path: &std::path::Path| path.display().to_string();
    let mut words = vec!["export".to_owned(), word(opened.report.path())];
    words.extend(["--view", view, "--format", "png", "--size", SIZE].map(str::to_owned));
    words.extend(["--output".to_owned(), word(&file)]);
    let theme = arguments.text(THEME.name).unwrap_or("light");
    words.extend(["--theme", theme].map(str::to_owned));
    words.extend(arguments.text(AT.name).into_iter().flat_map(|at| ["--at".into(), at.into()]));
    let compared = other.as_ref().map(|other| word(other.report.path()));
    words.extend(compared.into_iter().flat_map(|path| ["--compare".into(), path]));
    if let Some(failure) = run_command(&words)?.failure {
        return Err(failure.into());
    }
    let png = std::fs::read(&file).map_err(|error| JobError::ReadFile { file, error })?;
    let answer = json!({ "view": view, "size": SIZE, "bytes": png.len() });
    let value = opened.answer(answer)?;
    Ok(ToolAnswer { value, picture: Some(ToolPicture { png }) })
}
