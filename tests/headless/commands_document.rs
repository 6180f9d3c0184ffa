//! Compares `docs/commands.md` with the help text of every command.

use crate::common::{stdout, tilescope};
use std::path::Path;
use tilescope_analysis::gates::{Gate, figure_paths, short_names};

/// The output of `tilescope ARGUMENTS --help`, as a section.
fn section(arguments: &[&str]) -> String {
    let output = tilescope(&[arguments, &["--help"]].concat());
    assert!(output.status.success(), "{arguments:?}");
    let name = [&["tilescope"], arguments].concat().join(" ");
    format!("## `{name}`\n\n```text\n{}\n```\n", stdout(&output).trim_end())
}

/// Names of the commands, in the order of the help text.
fn commands() -> Vec<String> {
    let help = stdout(&tilescope(&["--help"]));
    let (_, list) = help.split_once("\nCommands:\n").expect("a list of commands");
    let (list, _) = list.split_once("\n\n").expect("an end of the list");
    let names = list.lines().filter_map(|line| line.split_whitespace().next());
    names.filter(|name| *name != "help").map(str::to_owned).collect()
}

#[test]
fn commands_document_has_the_help_of_every_command() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/commands.md");
    let text = std::fs::read_to_string(&path).expect("docs/commands.md");
    let (introduction, _) = text.split_once("## `tilescope`\n").expect("the help of the program");
    let mut sections = vec![section(&[])];
    sections.extend(commands().iter().map(|command| section(&[command])));
    let expected = format!("{introduction}{}", sections.join("\n"));
    if std::env::var_os("UPDATE_DOCS").is_some() {
        std::fs::write(&path, &expected).expect("writing docs/commands.md");
        return;
    }
    assert!(
        text == expected,
        "docs/commands.md differs: UPDATE_DOCS=1 cargo test commands_document"
    );
}

/// Lines in code blocks of a document that run the program.
fn calls(document: &str) -> Vec<String> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(document);
    let text = std::fs::read_to_string(path).expect(document);
    let code = text.split("```").skip(1).step_by(2).flat_map(str::lines);
    code.filter(|line| line.starts_with("tilescope ")).map(str::to_owned).collect()
}

#[test]
fn commands_that_documents_name_exist() {
    let commands = commands();
    for document in [
        "README.md",
        "CONTRIBUTING.md",
        "docs/agents.md",
        "docs/ci.md",
        "docs/calibration.md",
        "docs/commands.md",
        "docs/onnx.md",
        "docs/series.md",
        "docs/specs.md",
    ] {
        for call in calls(document) {
            let word = call.split_whitespace().nth(1).unwrap_or_default();
            let is_report = ["out", "before"].contains(&word) || word.starts_with('-');
            assert!(is_report || commands.iter().any(|name| name == word), "{document}: {call}");
        }
    }
}

#[test]
fn ci_document_lists_every_figure_and_its_gates_are_understood() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/ci.md");
    let text = std::fs::read_to_string(&path).expect("docs/ci.md");
    let gates = text.split("--fail-if '").skip(1).filter_map(|rest| rest.split('\'').next());
    let wrong: Vec<String> = gates
        .filter_map(|gate| gate.parse::<Gate>().err())
        .map(|error| error.to_string())
        .collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    let (before, _) = text.split_once("\n- `").unwrap_or((text.trim_end(), ""));
    let short = short_names().map(|(name, path)| format!("- `{name}`: `{path}`"));
    let figures = figure_paths().map(|path| format!("- `{path}`"));
    let list: Vec<String> = short.chain(figures).collect();
    let expected = format!("{}\n\n{}\n", before.trim_end(), list.join("\n"));
    if std::env::var_os("UPDATE_DOCS").is_some() {
        std::fs::write(&path, &expected).expect("writing docs/ci.md");
        return;
    }
    assert!(text == expected, "docs/ci.md differs: UPDATE_DOCS=1 cargo test ci_document");
}
