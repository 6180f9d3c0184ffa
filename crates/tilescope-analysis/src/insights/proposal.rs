//! A change of the spec that a finding proposes.

use serde::Serialize;
use std::collections::BTreeMap;

/// Keys of a spec and their new values, in the form of `--set`.
pub type SpecChanges = BTreeMap<String, serde_json::Value>;

/// A change of the spec: every key that it needs, and its costs besides time.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Proposal {
    pub changes: SpecChanges,
    /// The costs as text.
    pub cost: String,
}

impl Proposal {
    /// The changes in one line: `options.num_io_tiles = 32, options.overlap_io = "loops"`.
    pub fn text(&self) -> String {
        let changes = self.changes.iter().map(|(key, value)| format!("{key} = {value}"));
        changes.collect::<Vec<_>>().join(", ")
    }
}
