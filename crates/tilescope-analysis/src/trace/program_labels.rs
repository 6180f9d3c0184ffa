//! Names of programs, split into parts for the flame view.
//!
//! `cs0_m4/Conv_1/Convolve/ExchangePre` is the exchange before the compute set
//! `m4/Conv_1/Convolve`: a leaf `ExchangePre` below `m4`, `Conv_1` and `Convolve`. Paths are stored
//! as a tree of names, so that "same parent" is a comparison of two numbers.

use std::collections::HashMap;
use tilescope_report::units::ProgramId;
use tilescope_report::{HostCallPart, ProgramKind, ProgramNode, ProgramNodeTable};

/// A node of the tree of names: a path without its leaf.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct NameTreeNodeId(pub u32);

/// The label of a program in the trace.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProgramLabel {
    /// The parents' path; `None` for a program without one.
    pub parent: Option<NameTreeNodeId>,
    /// Last part of the name.
    pub leaf: String,
    /// The named operation of its exchange, arrangement and vertices.
    pub operation: Option<NameTreeNodeId>,
    /// True if it involves several IPUs, so that it fills the height of the lane.
    pub full_height: bool,
}

struct NameTreeNode {
    parent: Option<NameTreeNodeId>,
    name: String,
    depth: u32,
}

/// Labels of all programs of a report.
#[derive(Default)]
pub struct ProgramLabels {
    nodes: Vec<NameTreeNode>,
    children: HashMap<(Option<NameTreeNodeId>, String), NameTreeNodeId>,
    labels: HashMap<ProgramId, ProgramLabel>,
    names: HashMap<ProgramId, String>,
}

impl ProgramLabels {
    /// Splits the names of all programs.
    pub fn new(programs: &ProgramNodeTable) -> Self {
        let mut labels = Self::default();
        for (id, program) in programs.iter().filter(|(_, program)| program.children.is_empty()) {
            labels.add(id, program);
        }
        labels
    }

    fn add(&mut self, id: ProgramId, program: &ProgramNode) {
        let label = self.label_of(program);
        self.labels.insert(id, label);
        self.names.insert(id, program.name.clone());
    }

    fn label_of(&mut self, program: &ProgramNode) -> ProgramLabel {
        let stream =
            [ProgramKind::StreamCopyBegin, ProgramKind::StreamCopyMid, ProgramKind::StreamCopyEnd];
        if stream.contains(&program.kind) {
            let parent = Some(self.node(None, "StreamCopy"));
            let leaf = program.kind.name().to_owned();
            return ProgramLabel { parent, leaf, operation: None, full_height: false };
        }
        if program.kind == ProgramKind::Sync {
            let full_height = program.name != "Internal";
            let leaf = match HostCallPart::of_sync(&program.name) {
                Some(part) => crate::host::part_title(part).to_owned(),
                None if full_height => "External sync".to_owned(),
                None => "Internal sync".to_owned(),
            };
            return ProgramLabel { parent: None, leaf, operation: None, full_height };
        }
        let full_height = program.kind == ProgramKind::GlobalExchange;
        let parts = path_parts(&program.name);
        let Some((leaf, path)) = parts.split_last() else {
            let leaf = program.kind.name().to_owned();
            return ProgramLabel { parent: None, leaf, operation: None, full_height };
        };
        let parent = path.iter().fold(None, |parent, part| Some(self.node(parent, part)));
        let operation = if is_auxiliary(leaf) || path.is_empty() && full_height {
            parent
        } else {
            Some(self.node(parent, leaf))
        };
        ProgramLabel { parent, leaf: (*leaf).to_owned(), operation, full_height }
    }

    fn node(&mut self, parent: Option<NameTreeNodeId>, name: &str) -> NameTreeNodeId {
        let key = (parent, name.to_owned());
        if let Some(node) = self.children.get(&key) {
            return *node;
        }
        let id = NameTreeNodeId(self.nodes.len() as u32);
        let depth = parent.map_or(0, |parent| self.depth(parent) + 1);
        self.nodes.push(NameTreeNode { parent, name: name.to_owned(), depth });
        self.children.insert(key, id);
        id
    }

    /// The label of a program with steps.
    pub fn get(&self, program: ProgramId) -> Option<&ProgramLabel> {
        self.labels.get(&program)
    }

    /// The full name of a program with steps.
    pub fn program_name(&self, program: ProgramId) -> Option<&str> {
        self.names.get(&program).map(String::as_str)
    }

    /// Last part of a node's path.
    pub fn node_name(&self, node: NameTreeNodeId) -> &str {
        self.nodes.get(node.0 as usize).map_or("", |node| &node.name)
    }

    /// All parts of a node's path, joined.
    pub fn node_path(&self, node: NameTreeNodeId) -> String {
        let names: Vec<&str> = self.path(Some(node)).map(|node| self.node_name(node)).collect();
        names.join("/")
    }

    pub(crate) fn parent(&self, node: NameTreeNodeId) -> Option<NameTreeNodeId> {
        self.nodes.get(node.0 as usize).and_then(|node| node.parent)
    }

    /// Number of nodes above.
    pub fn depth(&self, node: NameTreeNodeId) -> u32 {
        self.nodes.get(node.0 as usize).map_or(0, |node| node.depth)
    }

    /// The nodes from the root down to `node`.
    pub(crate) fn path(
        &self,
        node: Option<NameTreeNodeId>,
    ) -> impl Iterator<Item = NameTreeNodeId> {
        let mut nodes: Vec<NameTreeNodeId> =
            std::iter::successors(node, |node| self.parent(*node)).collect();
        nodes.reverse();
        nodes.into_iter()
    }

    /// The number of rows of the flame view for the deepest program.
    pub fn rows(&self) -> u32 {
        let parents = self.labels.values().filter_map(|label| label.parent);
        parents.map(|parent| self.depth(parent) + 2).max().unwrap_or(1)
    }

    /// Programs whose name or kind contains `text`, case-insensitive.
    pub fn matching(&self, text: &str) -> Vec<ProgramId> {
        let wanted = text.to_lowercase();
        let mut found: Vec<ProgramId> = self
            .labels
            .iter()
            .filter(|(id, label)| {
                let name = self.names.get(id).map_or("", String::as_str);
                name.to_lowercase().contains(&wanted) || label.leaf.to_lowercase().contains(&wanted)
            })
            .map(|(id, _)| *id)
            .collect();
        found.sort_unstable();
        found
    }
}

/// True if the last part of a name is an auxiliary step of an operation, not its main work.
fn is_auxiliary(leaf: &str) -> bool {
    ["ExchangePre", "ExchangePost", "PreArrange", "PostArrange", "OnTileCopy", "GlobalPre"]
        .iter()
        .any(|auxiliary| leaf.starts_with(auxiliary))
}

/// The parts of a debug name: without compiler prefixes, split at `/` outside of braces.
fn path_parts(name: &str) -> Vec<&str> {
    let mut parts = Vec::new();
    let mut start = 0;
    let mut depth = 0u32;
    let name = without_prefix(name);
    for (at, letter) in name.char_indices() {
        match letter {
            '{' => depth += 1,
            '}' => depth = depth.saturating_sub(1),
            '/' if depth == 0 => {
                parts.push(&name[start..at]);
                start = at + 1;
            }
            _ => {}
        }
    }
    parts.push(&name[start..]);
    parts.retain(|part| !part.is_empty());
    parts
}

/// Removes the prefix of a name: `m4/Convolve/ExchangePre` for `cs0_m4/Convolve/ExchangePre`, and
/// `m4/Conv_1/preRegroup/ExchangePre` for `copy6_Copy_{a,b}_to_m4/Conv_1/preRegroup/ExchangePre`.
fn without_prefix(name: &str) -> &str {
    if let Some(rest) = behind_number(name, "cs") {
        return rest;
    }
    match behind_number(name, "copy") {
        Some(rest) => rest.rsplit_once("_to_").map_or(rest, |(_, target)| target),
        None => name,
    }
}

/// The part of a name after a prefix, its number and `_`; `None` if it does not begin like this.
fn behind_number<'a>(name: &'a str, prefix: &str) -> Option<&'a str> {
    let rest = name.strip_prefix(prefix)?;
    let digits = rest.find(|letter: char| !letter.is_ascii_digit()).filter(|at| *at > 0)?;
    rest[digits..].strip_prefix('_')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn compiler_prefixes_are_removed() {
        let cases = [
            ("cs0_m4/Conv_1/Convolve/ExchangePre", "m4|Conv_1|Convolve|ExchangePre"),
            ("m4/Conv_1/Convolve", "m4|Conv_1|Convolve"),
            (
                "copy6_Copy_{ValuePadder/padding,m2}_to_m4/Conv_1/preRegroup/ExchangePre",
                "m4|Conv_1|preRegroup|ExchangePre",
            ),
            ("copy7_switchControlBroadcast7/ExchangePre", "switchControlBroadcast7|ExchangePre"),
            ("a/{b/c,d}/e", "a|{b/c,d}|e"),
            ("csv_loader/read", "csv_loader|read"),
            ("copyFromHost", "copyFromHost"),
            ("/", ""),
            ("", ""),
            ("卷积/前向", "卷积|前向"),
        ];
        for (name, parts) in cases {
            assert_eq!(path_parts(name).join("|"), parts, "{name}");
        }
    }

    #[test]
    fn parts_of_an_operation_share_a_node() {
        let mut labels = ProgramLabels::default();
        let mut operation = |kind, name: &str| {
            labels
                .label_of(&ProgramNode::new(kind, name))
                .operation
                .map(|node| labels.node_path(node))
        };
        let expected = Some("m4/Conv_1/Convolve".to_owned());
        let names = [
            (ProgramKind::DoExchange, "cs0_m4/Conv_1/Convolve/ExchangePre"),
            (ProgramKind::OnTileExecute, "m4/Conv_1/Convolve/PreArrange-0"),
            (ProgramKind::OnTileExecute, "m4/Conv_1/Convolve"),
        ];
        for (kind, name) in names {
            assert_eq!(operation(kind, name), expected, "{name}");
        }
    }

    #[test]
    fn syncs_between_chips_fill_the_lane() {
        let mut labels = ProgramLabels::default();
        let mut label = |kind, name: &str| labels.label_of(&ProgramNode::new(kind, name));
        assert!(!label(ProgramKind::Sync, "Internal").full_height);
        assert!(label(ProgramKind::Sync, "External").full_height);
        assert!(label(ProgramKind::GlobalExchange, "a/GlobalPre").full_height);
    }
}
