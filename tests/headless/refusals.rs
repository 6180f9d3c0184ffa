//! Refused commands, with their exit codes and messages.

use crate::common::{stderr, stdout, tilescope};

/// The arguments of a line; quotes keep spaces.
fn arguments<'a>(line: &'a str, empty: &'a str) -> Vec<&'a str> {
    let quoted = line.split('\'').enumerate();
    let parts = quoted.flat_map(|(at, part)| match at % 2 {
        0 => part.split_whitespace().collect(),
        _ => vec![part],
    });
    parts.map(|part| if part == "EMPTY" { empty } else { part }).collect()
}

#[test]
fn commands_are_refused_with_exit_code_and_message() {
    let empty = tempfile::tempdir().expect("a directory");
    let empty = empty.path().to_str().expect("UTF-8");
    let lines = include_str!("../data/refused_commands.txt").lines();
    for line in lines.filter(|line| !line.starts_with('#')) {
        let [code, command, words] = line.splitn(3, " | ").collect::<Vec<_>>()[..] else {
            panic!("three columns: {line}")
        };
        let output = tilescope(&arguments(command, empty));
        let said = stderr(&output);
        assert_eq!(output.status.code().map(|of| of.to_string()).as_deref(), Some(code), "{said}");
        assert!(said.contains(&words.replace("\\n", "\n")), "{line}: {said}");
        assert_eq!(stdout(&output), "", "{line}");
    }
}
