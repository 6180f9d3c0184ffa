//! Which views there are, and what they are called.

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::fmt;
use std::str::FromStr;

/// A view of a report.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ViewId {
    /// What the report is about, in figures.
    #[default]
    Summary,
    /// What is worth doing about the program.
    Insights,
    /// Memory of every tile.
    Memory,
    /// Memory over the steps of the program.
    Liveness,
    /// The compiled program.
    ProgramTree,
    /// Operations of the model, as a table.
    Operations,
    /// How good it is: what operations could cost at least.
    Limits,
    /// Operations of the model, as a graph.
    OperationsGraph,
    /// What ran when.
    ExecutionTrace,
    /// Who sends to whom, and the code that takes.
    ExchangeCode,
    /// Where tensors and vertices lie.
    TileMapping,
    /// All facts, figures and tables, topic by topic.
    Topics,
}

/// Every view with its name in links, preferences and on the command line, and its title in menus;
/// in the order of the menu.
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
    /// Every view, in the order of the menu.
    pub(crate) fn all() -> impl Iterator<Item = Self> {
        VIEW_NAMES.iter().map(|(id, ..)| *id)
    }

    /// Its name in links, preferences and on the command line.
    pub const fn name(self) -> &'static str {
        VIEW_NAMES[self as usize].1
    }

    /// Words in the menu.
    pub(crate) const fn title(self) -> &'static str {
        VIEW_NAMES[self as usize].2
    }
}

impl fmt::Display for ViewId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// A name that no view has.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("unknown view {0:?}; known: {known}", known = known_view_names())]
pub struct UnknownViewName(pub String);

/// Names of all views, with commas between them.
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
    fn every_view_stands_in_its_place_of_the_table_and_is_found_by_its_name() {
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
