//! The directories for simulated specs and their reports.

use std::path::{Path, PathBuf};
use tilescope_report::temporary_directory::{TemporaryDirectory, TemporaryDirectoryError};

/// The subdirectory for simulated variants of a spec.
const VARIANTS: &str = "what-if";
/// The subdirectory for simulations of the user's models.
const MODELS: &str = "models";
/// The subdirectory for the specs and results of searches.
const SEARCHES: &str = "searches";

/// The directories of a session.
#[derive(Default)]
pub(crate) struct SimulationPlaces {
    /// The directory that keeps reports; without one they are deleted with the session.
    kept: Option<PathBuf>,
    /// The directory for specs being checked, and for variants of a session that stores nothing. It
    /// is created on first use.
    temporary: Option<TemporaryDirectory>,
}

impl SimulationPlaces {
    /// Stores reports in a directory.
    pub(super) fn keep_in(&mut self, directory: PathBuf) {
        self.kept = Some(directory);
    }

    /// Returns true if reports are kept.
    pub(super) fn are_kept(&self) -> bool {
        self.kept.is_some()
    }

    /// The directory for specs that are only checked. No other window writes there.
    ///
    /// # Errors
    /// Returns an error if the temporary directory cannot be created.
    pub(super) fn checks(&mut self) -> Result<PathBuf, TemporaryDirectoryError> {
        let made = match self.temporary.take() {
            Some(made) => made,
            None => TemporaryDirectory::new()?,
        };
        Ok(self.temporary.insert(made).path().to_owned())
    }

    /// The directory for changed specs and their reports.
    ///
    /// # Errors
    /// Returns the errors of [`Self::checks`].
    pub(super) fn variants(&mut self) -> Result<PathBuf, TemporaryDirectoryError> {
        self.below(VARIANTS)
    }

    /// The directory for specs of the user's models and their reports.
    ///
    /// # Errors
    /// Returns the errors of [`Self::checks`].
    pub(super) fn models(&mut self) -> Result<PathBuf, TemporaryDirectoryError> {
        self.below(MODELS)
    }

    /// The directory for the results of searches.
    ///
    /// # Errors
    /// Returns the errors of [`Self::checks`].
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

/// The first unused path with this name.
pub(super) fn free_place(directory: &Path, name: &str) -> PathBuf {
    let numbered = (1..).map(|number: u32| directory.join(format!("{name}-{number}")));
    let is_free = |place: &PathBuf| !place.exists();
    let plain = directory.join(name);
    std::iter::once(plain.clone()).chain(numbered).take(100_000).find(is_free).unwrap_or(plain)
}
