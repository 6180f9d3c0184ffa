//! The bundled specs.

use super::super::arguments::{ArgumentKind, CheckedArguments, ToolArgument};
use super::super::session::McpSession;
use super::McpTool;
use crate::cli::CliError;
use serde_json::{Value, json};
use tilescope_sim::spec::{BUNDLED_SPECS, SpecSource};

const NAME: ToolArgument = ToolArgument::optional(
    "name",
    ArgumentKind::Text,
    "A bundled spec, or the path of a TOML file, whose text is wanted",
);

pub(super) const TOOL: McpTool = McpTool {
    name: "specs",
    about: "Lists the bundled specs, or gives the text of a spec: model, target and options in TOML.",
    arguments: &[NAME],
    run,
};

fn run(arguments: &CheckedArguments<'_>, _: &mut McpSession) -> Result<Value, CliError> {
    if let Some(name) = arguments.text(NAME.name) {
        let source =
            SpecSource::find(name, &[]).map_err(|error| CliError::Usage(error.to_string()))?;
        tilescope_sim::spec::Spec::build(&source)
            .map_err(|error| CliError::Usage(error.to_string()))?;
        return Ok(json!({ "name": name, "text": source.text }));
    }
    let specs = BUNDLED_SPECS.iter();
    let specs = specs.map(
        |spec| json!({ "name": spec.name, "group": spec.group.title(), "about": spec.about() }),
    );
    Ok(json!({ "specs": specs.collect::<Vec<_>>() }))
}
