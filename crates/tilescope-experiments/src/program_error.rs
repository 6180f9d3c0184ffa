//! Errors of a child process of this program, in the form for its parent.

use serde::{Deserialize, Serialize};

/// Environment variable that requests errors in JSON: a line `{"error":{…}}` on stderr.
pub const ERRORS_VARIABLE: &str = "TILESCOPE_ERRORS";

/// The error that ended a child process.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProgramError {
    /// The whole error, as printed without the variable.
    pub text: String,
    /// True if the input is invalid; false if the program failed.
    pub is_usage: bool,
    /// The position of the error in the spec.
    #[serde(default)]
    pub place: Option<SpecPlace>,
}

/// A position in a spec.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SpecPlace {
    /// The path or name of the spec.
    pub file: String,
    /// The line, counted from 1.
    pub line: usize,
    /// The error without the position.
    pub message: String,
}

/// The JSON object on stderr.
#[derive(Serialize, Deserialize)]
struct ErrorLine {
    error: ProgramError,
}

impl ProgramError {
    /// The error as a line for stderr.
    #[must_use]
    pub fn line(self) -> String {
        serde_json::to_string(&ErrorLine { error: self }).unwrap_or_default()
    }

    /// Finds the error in the stderr of a child; `None` if it ended without one.
    #[must_use]
    pub fn find(stderr: &str) -> Option<Self> {
        let lines = stderr.lines().rev().filter(|line| line.starts_with("{\"error\":"));
        let mut errors = lines.filter_map(|line| serde_json::from_str::<ErrorLine>(line).ok());
        errors.next().map(|line| line.error)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_are_found_among_other_lines() {
        let place = SpecPlace { file: "a b:\n.toml".to_owned(), line: 7, message: "no".to_owned() };
        let error =
            ProgramError { text: "x: \"no\"\n ^".to_owned(), is_usage: true, place: Some(place) };
        let stderr = format!("warning: a\nprogress 7\n{}\nnote\n", error.clone().line());
        assert_eq!(ProgramError::find(&stderr), Some(error));
        for nothing in ["", "error: x", "{\"error\":", "{\"error\":{}}"] {
            assert_eq!(ProgramError::find(nothing), None, "{nothing}");
        }
    }
}
