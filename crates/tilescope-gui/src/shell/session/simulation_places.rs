//! Where simulated specs and their reports are written.

use std::path::{Path, PathBuf};
use tilescope_report::temporary_directory::{TemporaryDirectory, TemporaryDirectoryError};

/// Below the directory of simulated reports: what was tried, and models of the user's.
const VARIANTS: &str = "what-if";
const MODELS: &str = "models";
/// Specs that are searched from, and what was found.
const SEARCHES: &str = "searches";

/// Directories of a session.
#[derive(Default)]
pub(crate) struct SimulationPlaces {
    /// Where reports are kept; without one they end with the session.
    kept: Option<PathBuf>,
    /// Specs that are checked, and variants of a session that remembers nothing; made when it is
    /// first asked for.
    temporary: Option<TemporaryDirectory>,
}

impl SimulationPlaces {
    /// Keeps reports in a directory.
    pub(super) fn keep_in(&mut self, directory: PathBuf) {
        self.kept = Some(directory);
    }

    /// Whether reports are kept.
    pub(super) fn are_kept(&self) -> bool {
        self.kept.is_some()
    }

    /// Where specs are written that are only checked: no other window writes there.
    ///
    /// # Errors
    /// There is no place for files that end with the session.
    pub(super) fn checks(&mut self) -> Result<PathBuf, TemporaryDirectoryError> {
        let made = match self.temporary.take() {
            Some(made) => made,
            None => TemporaryDirectory::new()?,
        };
        Ok(self.temporary.insert(made).path().to_owned())
    }

    /// Where changed specs and their reports go.
    ///
    /// # Errors
    /// As [`Self::checks`].
    pub(super) fn variants(&mut self) -> Result<PathBuf, TemporaryDirectoryError> {
        self.below(VARIANTS)
    }

    /// Where specs of the user's models and their reports go.
    ///
    /// # Errors
    /// As [`Self::checks`].
    pub(super) fn models(&mut self) -> Result<PathBuf, TemporaryDirectoryError> {
        self.below(MODELS)
    }

    /// Where searches keep what they find.
    ///
    /// # Errors
    /// As [`Self::checks`].
    pub(super) fn searches(&mut self) -> Result<PathBuf, TemporaryDirectoryError> {
        self.below(SEARCHES)
    }

    fn below(&mut self, name: &str) -> Result<PathBuf, TemporaryDirectoryError> {
        let base = match &self.kept {
            Some(kept) => kept.clone(),
            None => self.checks()?,
        };
        Ok(base.join(name))
    }
}

/// The first place of this name that is not taken.
pub(super) fn free_place(directory: &Path, name: &str) -> PathBuf {
    let numbered = (1..).map(|number: u32| directory.join(format!("{name}-{number}")));
    let free = |place: &PathBuf| !place.exists();
    let plain = directory.join(name);
    std::iter::once(plain.clone()).chain(numbered).take(100_000).find(free).unwrap_or(plain)
}
