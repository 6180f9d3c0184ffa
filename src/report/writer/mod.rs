//! Writing a report: compilation first, then steps and marks as they come.

use super::error::ReportError;
use super::model::{Compilation, Mark, Step};
use std::path::{Path, PathBuf};

/// What a report says about itself.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ReportMeta {
    /// Program and version that made the report: `tilescope 0.1.0`.
    pub generator: String,
    /// The spec it was made from, as it was written.
    pub spec: Option<String>,
}

/// Writes one `profile.pop`.
///
/// The file grows under a temporary name beside its place and takes that place, whole, in
/// [`ReportWriter::finish`]; until then an older report stays as it was. Dropped before, or after
/// an error, it leaves nothing behind. Same calls, same bytes.
pub struct ReportWriter {}

#[expect(unused_variables, reason = "bodies follow")]
impl ReportWriter {
    /// Starts a report in `directory`, which is made if it does not exist.
    pub fn create(directory: &Path, meta: &ReportMeta) -> Result<Self, ReportError> {
        unimplemented!()
    }

    /// Refuses to let the file grow beyond `bytes`, as a full disk would.
    pub fn limit_size(&mut self, bytes: u64) -> Result<(), ReportError> {
        unimplemented!()
    }

    /// Writes the compiled program. To be called once, before any step.
    pub fn compilation(&mut self, compilation: &Compilation) -> Result<(), ReportError> {
        unimplemented!()
    }

    /// Writes the next executed step; its id is the number of steps before it. Steps of one lane
    /// (IPU and sub-lane) must not overlap. A report without steps has no execution.
    pub fn step(&mut self, step: &Step) -> Result<(), ReportError> {
        unimplemented!()
    }

    /// Writes a mark; order does not matter.
    pub fn mark(&mut self, mark: &Mark) -> Result<(), ReportError> {
        unimplemented!()
    }

    /// Completes the report and puts it in its place. Gives its path.
    pub fn finish(self) -> Result<PathBuf, ReportError> {
        unimplemented!()
    }
}
