//! The program's answers about specs: their keys, and the validity of a spec.

use super::measured::{MeasuredPrediction, MeasuredQuestion};
use super::model_file::{ModelFile, ModelQuestion};
use super::search::{SearchOutcome, SearchProgress, SearchQuestion};
use crate::views::insights::proof::ProofProgress;
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
use tilescope_report::units::{grouped, seconds};

/// A key of a spec.
#[derive(Clone, Debug, PartialEq, Deserialize)]
pub(crate) struct SpecKeyInfo {
    /// The dotted path: `options.gradient_accumulation`.
    pub path: String,
    /// The model it belongs to; `None` for all.
    pub model: Option<String>,
    /// The description of its values.
    pub values: String,
    /// `integer`, `power_of_two`, `real`, `flag`, `word` or `stages`.
    pub kind: String,
    /// The smallest value of a number.
    pub min: Option<f64>,
    /// The largest value of a number.
    pub max: Option<f64>,
    /// The values of a word.
    pub words: Vec<String>,
    /// The default value, as TOML.
    pub default: String,
    pub about: String,
    /// The names of the key in other frameworks.
    pub also: String,
    /// The slider of the key, if it has one.
    pub slider: Option<KeySlider>,
    /// The label of its checkbox, if it has one.
    pub check_box: Option<String>,
}

/// The slider for a key.
#[derive(Clone, Debug, PartialEq, Deserialize)]
pub(crate) struct KeySlider {
    /// The label of the slider.
    pub label: String,
    /// The largest value of the slider if the key accepts larger ones.
    pub reach: f64,
}

/// The problem of a spec, and its line, counted from 1.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct SpecProblem {
    /// The line, if the problem has one.
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
    /// Returns true if the problem concerns this key.
    pub(crate) fn is_about(&self, path: &str) -> bool {
        self.message.strip_prefix(path).is_some_and(|rest| rest.starts_with(':'))
    }
}

/// The properties of a valid spec that are known without a report.
#[derive(Clone, Debug, PartialEq, Deserialize)]
pub(crate) struct CompiledSpec {
    /// The length of the run; `None` for a program that does not fit in memory.
    pub seconds: Option<f64>,
    /// The samples of the run.
    pub samples: u64,
    pub fit: MemoryFit,
    /// A warning about the spec: IPUs without a stage.
    #[serde(default)]
    pub warning: Option<String>,
    pub tiles_out_of_memory: u64,
    /// The bytes that the fullest tile needs.
    pub fullest_tile_bytes: u64,
    /// The bytes of memory of a tile.
    pub tile_bytes: u64,
    /// The stages in the order of the forward pass.
    pub stages: Vec<CompiledStage>,
}

/// The blocks of a model that run on one IPU.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub(crate) struct CompiledStage {
    pub blocks: Vec<String>,
    pub ipu: u32,
}

impl CompiledSpec {
    /// The number of blocks that the stages are made of.
    pub(crate) fn block_count(&self) -> usize {
        self.stages.iter().map(|stage| stage.blocks.len()).sum()
    }

    /// The length and rate of the run: `928 µs, 430,806 samples per second`.
    pub(crate) fn prediction(&self) -> Option<String> {
        let length = self.seconds.filter(|length| *length > 0.0)?;
        let rate = grouped((self.samples as f64 / length).round() as u64);
        Some(format!("Predicted: {}, {rate} samples per second.", seconds(length)))
    }
}

/// The result of checking a spec.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum CheckedSpec {
    Compiled(CompiledSpec),
    Refused(SpecProblem),
}

impl CheckedSpec {
    /// The problem, if any.
    pub(crate) fn problem(&self) -> Option<&SpecProblem> {
        match self {
            Self::Refused(problem) => Some(problem),
            Self::Compiled(_) => None,
        }
    }

    /// The compiled spec, if there is no problem.
    pub(crate) fn compiled(&self) -> Option<&CompiledSpec> {
        match self {
            Self::Compiled(compiled) => Some(compiled),
            Self::Refused(_) => None,
        }
    }
}

/// A flag that is set when the answer is no longer needed.
pub(crate) type Cancelled = Arc<AtomicBool>;

/// The queries to the simulator about specs. They are slow, so not for the UI thread.
#[derive(Clone, Copy)]
pub(crate) struct SpecQueries {
    /// Lists every key that specs may have.
    pub keys: fn() -> Result<Vec<SpecKeyInfo>, BackgroundQueryError>,
    /// Checks if a spec can be simulated. The directory is for files that the query needs.
    pub check: fn(&Path, &str, &Cancelled) -> Result<CheckedSpec, BackgroundQueryError>,
    /// Describes an ONNX file.
    pub model: fn(&ModelQuestion, &Cancelled) -> Result<ModelFile, BackgroundQueryError>,
    /// Estimates a spec on other machines. The directory is for files that the query needs.
    pub sensitivity: fn(&Path, &str, &Cancelled) -> Result<SensitivityAnswer, BackgroundQueryError>,
    /// Returns the text of a spec, by its path or by the name of a bundled spec.
    pub spec: fn(&str, &Cancelled) -> Result<String, BackgroundQueryError>,
    /// Predicts the effect of a spec change on a measured run. The directory is for files that the
    /// query needs.
    pub predict: fn(
        &Path,
        &MeasuredQuestion,
        &Cancelled,
    ) -> Result<MeasuredPrediction, BackgroundQueryError>,
    /// Runs a search or reads a file of results. Intermediate results are reported.
    pub search: fn(&SearchQuestion, &SearchProgress, &Cancelled) -> SearchOutcome,
    /// Tries the proposals of insights into a report. Trials that have ended are reported.
    pub prove:
        fn(&Path, &ProofProgress, &Cancelled) -> Result<Vec<TriedFinding>, BackgroundQueryError>,
}

/// The error message in a child's stderr; all of the output if it contains none.
pub(crate) fn said_problem(said: &str) -> String {
    match ProgramError::find(said) {
        Some(error) => error.text,
        None => {
            let said = said.trim();
            said.strip_prefix("error: ").unwrap_or(said).to_owned()
        }
    }
}

/// The error of a child that was run for the spec in a file.
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
