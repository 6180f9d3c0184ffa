//! What the program says about specs: their keys, and whether one is sane.

use super::measured::{MeasuredPrediction, MeasuredQuestion};
use super::model_file::{ModelFile, ModelQuestion};
use super::search::{SearchOutcome, SearchProgress, SearchQuestion};
use crate::widgets::background_query::BackgroundQueryError;
use serde::Deserialize;
use std::fmt;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use tilescope_analysis::confidence::MemoryFit;
use tilescope_analysis::insights::TriedFinding;
use tilescope_experiments::answers::SensitivityAnswer;
use tilescope_experiments::program_error::ProgramError;

/// A key of a spec.
#[derive(Clone, Debug, PartialEq, Deserialize)]
pub(crate) struct SpecKeyInfo {
    /// Dotted path: `options.gradient_accumulation`.
    pub path: String,
    /// The model it belongs to; `None` for all.
    pub model: Option<String>,
    /// Its values in words.
    pub values: String,
    /// `integer`, `power_of_two`, `real`, `flag`, `word` or `stages`.
    pub kind: String,
    /// Smallest value of a number.
    pub min: Option<f64>,
    /// Largest value of a number.
    pub max: Option<f64>,
    /// Values of a word.
    pub words: Vec<String>,
    /// Value where the user sets none, as TOML.
    pub default: String,
    pub about: String,
    /// Its names in other frameworks.
    pub also: String,
    /// Its slider, where it has one.
    pub slider: Option<KeySlider>,
    /// What its check box says, where it has one.
    pub check_box: Option<String>,
}

/// How a key is changed with a slider.
#[derive(Clone, Debug, PartialEq, Deserialize)]
pub(crate) struct KeySlider {
    /// What it says.
    pub label: String,
    /// The largest value it reaches where the key takes more.
    pub reach: f64,
}

/// What is wrong with a spec, and on which line, counted from 1.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct SpecProblem {
    /// The line, where one is to blame.
    pub line: Option<usize>,
    pub message: String,
}

impl fmt::Display for SpecProblem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.line {
            Some(line) => write!(f, "Line {line}: {}", self.message),
            None => f.write_str(&self.message),
        }
    }
}

impl SpecProblem {
    /// Whether it is about this key.
    pub(crate) fn is_about(&self, path: &str) -> bool {
        self.message.strip_prefix(path).is_some_and(|rest| rest.starts_with(':'))
    }
}

/// A spec that can be simulated, as far as it is known without.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub(crate) struct CompiledSpec {
    pub fit: MemoryFit,
    pub tiles_out_of_memory: u64,
    /// Bytes that the fullest tile needs.
    pub fullest_tile_bytes: u64,
    /// What a tile has.
    pub tile_bytes: u64,
    /// In the order of the forward pass.
    pub stages: Vec<CompiledStage>,
}

/// Blocks of a model that run on one IPU.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub(crate) struct CompiledStage {
    pub blocks: Vec<String>,
    pub ipu: u32,
}

/// What a check of a spec found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum CheckedSpec {
    Compiled(CompiledSpec),
    Refused(SpecProblem),
}

impl CheckedSpec {
    /// What is wrong, if anything.
    pub(crate) fn problem(&self) -> Option<&SpecProblem> {
        match self {
            Self::Refused(problem) => Some(problem),
            Self::Compiled(_) => None,
        }
    }

    /// What came out, if nothing is wrong.
    pub(crate) fn compiled(&self) -> Option<&CompiledSpec> {
        match self {
            Self::Compiled(compiled) => Some(compiled),
            Self::Refused(_) => None,
        }
    }
}

/// Set once nobody waits for an answer any more.
pub(crate) type Cancelled = Arc<AtomicBool>;

/// How the simulator is asked about specs. It takes its time: not for the UI thread.
#[derive(Clone, Copy)]
pub(crate) struct SpecQueries {
    /// Every key that specs may have.
    pub keys: fn() -> Result<Vec<SpecKeyInfo>, BackgroundQueryError>,
    /// Whether a spec can be simulated; a directory takes files that are needed to ask.
    pub check: fn(&Path, &str, &Cancelled) -> Result<CheckedSpec, BackgroundQueryError>,
    /// What an ONNX file holds.
    pub model: fn(&ModelQuestion, &Cancelled) -> Result<ModelFile, BackgroundQueryError>,
    /// What other machines would make of a spec; the directory is for the same.
    pub sensitivity: fn(&Path, &str, &Cancelled) -> Result<SensitivityAnswer, BackgroundQueryError>,
    /// The text of a spec by its path, or by its name among those that come with the program.
    pub spec: fn(&str, &Cancelled) -> Result<String, BackgroundQueryError>,
    /// What a change would make of a measured run; the directory is for the same.
    pub predict: fn(
        &Path,
        &MeasuredQuestion,
        &Cancelled,
    ) -> Result<MeasuredPrediction, BackgroundQueryError>,
    /// What a search finds, or a file of results has; told as it is found.
    pub search: fn(&SearchQuestion, &SearchProgress, &Cancelled) -> SearchOutcome,
    /// What comes of the proposals of insights into a report.
    pub prove: fn(&Path, &Cancelled) -> Result<Vec<TriedFinding>, BackgroundQueryError>,
}

/// The error of a child in what it wrote to stderr; all of that where it ended without one.
pub(crate) fn said_problem(said: &str) -> String {
    match ProgramError::find(said) {
        Some(error) => error.text,
        None => {
            let said = said.trim();
            said.strip_prefix("error: ").unwrap_or(said).to_owned()
        }
    }
}

/// The error of a child that was asked about the spec in a file.
pub(crate) fn problem(said: &str, file: &Path) -> SpecProblem {
    let name = file.display().to_string();
    let place = ProgramError::find(said).and_then(|error| error.place);
    if let Some(place) = place.filter(|place| place.file == name) {
        return SpecProblem { line: Some(place.line), message: place.message };
    }
    let said = said_problem(said);
    let message = match said.as_str() {
        "" => "The simulator rejected it without an error message.".to_owned(),
        said => said.replace(&name, "The spec"),
    };
    SpecProblem { line: None, message }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tilescope_experiments::program_error::SpecPlace;

    #[test]
    fn problems_know_their_line() {
        let file = Path::new("/tmp/a.toml");
        let place = SpecPlace {
            file: "/tmp/a.toml".to_owned(),
            line: 7,
            message: "options.x: unknown key".to_owned(),
        };
        let text = "/tmp/a.toml:7: options.x: unknown key".to_owned();
        let error = ProgramError { text, is_usage: true, place: Some(place) };
        let said = format!("warning: old\n{}\n", error.line());
        let cases = [
            (said.as_str(), Some(7), "options.x: unknown key"),
            ("error: model.name: is missing", None, "model.name: is missing"),
            ("error: /tmp/a.toml is gone", None, "The spec is gone"),
            ("", None, "The simulator rejected it without an error message."),
        ];
        for (said, line, words) in cases {
            assert_eq!(problem(said, file), SpecProblem { line, message: words.to_owned() });
        }
        let about = problem("error: options.x: unknown key", file);
        assert!(about.is_about("options.x") && !about.is_about("options"));
    }
}
