//! The views and their names.

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::fmt;
use std::str::FromStr;

/// A view of a report.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ViewId {
    /// The key figures of the report.
    #[default]
    Summary,
    /// Possible improvements of the program.
    Insights,
    /// The memory of every tile.
    Memory,
    /// The memory over the steps of the program.
    Liveness,
    /// The tree of the compiled program.
    ProgramTree,
    /// The operations of the model, as a table.
    Operations,
    /// The lower bounds of operations: how much faster they could be.
    Limits,
    /// The operations of the model, as a graph.
    OperationsGraph,
    /// The timeline of the run.
    ExecutionTrace,
    /// The traffic between tiles, and the code for it.
    ExchangeCode,
    /// The placement of tensors and vertices on tiles.
    TileMapping,
    /// All facts, figures and tables, topic by topic.
    Topics,
}

/// Every view with its name in links, preferences and on the command line, and its title in menus;
/// in menu order.
const VIEW_NAMES: [(ViewId, &str, &str); 12] = [
    (ViewId::Summary, "summary", "Summary"),
    (ViewId::Insights, "insights", "Insights"),
    (ViewId::Memory, "memory", "Memory"),
    (ViewId::Liveness, "liveness", "Liveness"),
    (ViewId::ProgramTree, "program-tree", "Program tree"),
    (ViewId::Operations, "operations", "Operations"),
    (ViewId::Limits, "limits", "Limits"),
    (ViewId::OperationsGraph, "operations-graph", "Operations graph"),
    (ViewId::ExecutionTrace, "execution-trace", "Execution trace"),
    (ViewId::ExchangeCode, "exchange-code", "Exchange code"),
    (ViewId::TileMapping, "tile-mapping", "Tile mapping"),
    (ViewId::Topics, "topics", "Topics"),
];

impl ViewId {
    /// All views, in menu order.
    pub(crate) fn all() -> impl Iterator<Item = Self> {
        VIEW_NAMES.iter().map(|(id, ..)| *id)
    }

    /// Its name in links, preferences and on the command line.
    pub const fn name(self) -> &'static str {
        VIEW_NAMES[self as usize].1
    }

    /// The title in the menu.
    pub(crate) const fn title(self) -> &'static str {
        VIEW_NAMES[self as usize].2
    }
}

impl fmt::Display for ViewId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// A name that belongs to no view.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("unknown view {0:?}; known: {known}", known = known_view_names())]
pub struct UnknownViewName(pub String);

/// The names of all views, separated by commas.
pub(crate) fn known_view_names() -> String {
    ViewId::all().map(ViewId::name).collect::<Vec<_>>().join(", ")
}

impl FromStr for ViewId {
    type Err = UnknownViewName;

    fn from_str(name: &str) -> Result<Self, UnknownViewName> {
        let found = Self::all().find(|id| id.name() == name);
        found.ok_or_else(|| UnknownViewName(name.to_owned()))
    }
}

impl Serialize for ViewId {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.name())
    }
}

impl<'de> Deserialize<'de> for ViewId {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let name = String::deserialize(deserializer)?;
        name.parse().map_err(serde::de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn views_match_the_table_and_are_found_by_name() {
        for (at, id) in ViewId::all().enumerate() {
            assert_eq!(id as usize, at, "{id}");
            assert_eq!(id.name().parse(), Ok(id));
            let text = serde_json::to_string(&id).unwrap();
            assert_eq!(text, format!("{:?}", id.name()));
            assert_eq!(serde_json::from_str::<ViewId>(&text).unwrap(), id);
        }
        let error = "memoir".parse::<ViewId>().unwrap_err().to_string();
        assert!(error.contains("memoir") && error.contains("liveness"), "{error}");
    }
}
