//! Decisions that the user has to make before a file can be resolved. Resolving continues with a
//! guess, so that one error names all of them.

use crate::error::OnnxError;

/// The keys of a file that have no value.
#[derive(Default)]
pub(super) struct OpenDecisions {
    /// The error of the first one.
    error: Option<OnnxError>,
    keys: Vec<String>,
    /// A guess of the number of results that depend on data.
    pub max_results: Option<u64>,
}

impl OpenDecisions {
    /// Adds a key, unless it is known.
    pub(super) fn add(&mut self, key: &str, error: impl FnOnce() -> OnnxError) {
        if !self.keys.iter().any(|known| known == key) {
            self.keys.push(key.to_owned());
        }
        self.error.get_or_insert_with(error);
    }

    /// The error for all of them.
    pub(super) fn into_error(self) -> Option<OnnxError> {
        let others = self.keys.get(1..).unwrap_or_default();
        match self.error? {
            OnnxError::Graph { place, problem } if !others.is_empty() => {
                let problem = format!("{problem}. Also set {}", others.join(", "));
                Some(OnnxError::Graph { place, problem })
            }
            error => Some(error),
        }
    }
}
