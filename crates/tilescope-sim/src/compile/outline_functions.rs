//! The functions of outlined code in the program tree.
//!
//! A repeated sequence becomes a function with the names of its first use, and every use is a call.
//! The sequence is cut into functions wherever a call begins or ends, so that each call runs whole
//! functions.

use super::fragment_items::FragmentItem;
use super::program_tables::{ProgramTables, exchange_number_and_path};
use std::collections::{BTreeMap, BTreeSet};
use tilescope_report::units::{IpuId, ProgramId};
use tilescope_report::{OutlinedCall, ProgramKind};

/// A work, identified by its IPU and its position in the [`OutlineSequence`] of that IPU.
type WorkPlace = (IpuId, usize);

/// The functions that the works of a program are cut into.
#[derive(Debug, Default)]
pub(super) struct OutlineFunctions {
    /// The work that each leaf belongs to.
    works: BTreeMap<ProgramId, WorkPlace>,
    /// Positions of bodies at which a function begins or ends.
    cuts: BTreeSet<WorkPlace>,
    /// Bodies that run again.
    reused: BTreeSet<WorkPlace>,
    /// Functions by the position of their first work.
    functions: BTreeMap<WorkPlace, ProgramId>,
    /// Calls by the first leaf that they run.
    calls: BTreeMap<ProgramId, ProgramId>,
}

/// Consecutive items of a sequence: one work, or one item that is not a work.
struct ItemGroup<'a> {
    items: &'a [FragmentItem],
    work: Option<WorkPlace>,
}

impl OutlineFunctions {
    /// Cuts the works of `sequences`, which cover the whole program, into functions.
    pub(super) fn new(tables: &mut ProgramTables, sequences: &[&[FragmentItem]]) -> Self {
        let mut found = Self::default();
        for (ipu, outline) in &tables.outlines {
            for (place, work) in outline.works().iter().enumerate() {
                found.works.extend(work.leaves.iter().map(|leaf| (*leaf, (*ipu, place))));
                if work.body < place && !work.leaves.is_empty() {
                    found.reused.insert((*ipu, work.body));
                }
            }
        }
        // A use at the end of the program can cut a function whose body is at the beginning, so all
        // cuts come first.
        for items in sequences {
            found.cut(tables, items);
        }
        for items in sequences {
            found.add_functions(tables, items);
        }
        found
    }

    /// Adds a cut at each position in a sequence where a call begins or ends.
    fn cut(&mut self, tables: &ProgramTables, items: &[FragmentItem]) {
        let mut before: Option<WorkPlace> = None;
        for group in self.groups(items) {
            let here = group.work.map(|place| self.body(tables, place));
            let goes_on = match (before, here, group.work) {
                (Some(before), Some(here), Some(place)) => {
                    (before.0, before.1 + 1) == here
                        && !tables.outlines[&place.0].works()[place.1].begins_call
                        // Code that runs once is not part of a function.
                        && self.reused.contains(&before) == self.reused.contains(&here)
                }
                _ => false,
            };
            if !goes_on {
                self.cuts.extend(before.map(|(ipu, body)| (ipu, body + 1)));
                self.cuts.extend(here);
            }
            if let (None, [FragmentItem::Loop { body, .. }]) = (group.work, group.items) {
                self.cut(tables, body);
            }
            before = here;
        }
        self.cuts.extend(before.map(|(ipu, body)| (ipu, body + 1)));
    }

    /// Creates the functions whose bodies are in a sequence.
    fn add_functions(&mut self, tables: &mut ProgramTables, items: &[FragmentItem]) {
        for call in self.function_groups(tables, items) {
            if let (None, [FragmentItem::Loop { body, .. }]) = (call.work, call.items) {
                self.add_functions(tables, body);
            }
            let Some(place) = call.work else { continue };
            if self.body(tables, place) != place || !self.reused.contains(&place) {
                continue;
            }
            let children = program_nodes(call.items, tables);
            let name = common_path(children.iter().map(|id| &*tables.programs[id.index()].name));
            let function = tables.group(ProgramKind::Sequence, &name, children);
            self.functions.insert(place, function);
        }
    }

    /// Returns the program nodes of a sequence, with calls of functions for works that run again.
    pub(super) fn nodes(
        &mut self,
        tables: &mut ProgramTables,
        items: &[FragmentItem],
    ) -> Vec<ProgramId> {
        let mut nodes = Vec::new();
        for call in self.function_groups(tables, items) {
            let function = call.work.and_then(|place| {
                self.functions.get(&self.body(tables, place)).copied().zip(Some(place))
            });
            match (function, call.items) {
                (Some((function, place)), _) => {
                    nodes.push(self.call(tables, function, place, call.items));
                }
                (None, [FragmentItem::Loop { times, body }]) if call.work.is_none() => {
                    let children = self.nodes(tables, body);
                    let body = tables.group(ProgramKind::Sequence, "", children);
                    nodes.push(tables.repeat(*times, body));
                }
                (None, items) => nodes.extend(program_nodes(items, tables)),
            }
        }
        nodes
    }

    /// Adds the call of a function, and records the body that its leaves run instead of code of
    /// their own.
    fn call(
        &mut self,
        tables: &mut ProgramTables,
        function: ProgramId,
        (ipu, first): WorkPlace,
        items: &[FragmentItem],
    ) -> ProgramId {
        let leaf = tables.outlines[&ipu].works()[first].leaves[0];
        // Several slots contain the copies of a stage. All of them share one call.
        if let Some(call) = self.calls.get(&leaf) {
            return *call;
        }
        let name = tables.programs[function.index()].name.clone();
        let call = tables.group(ProgramKind::Call, &name, vec![function]);
        self.calls.insert(leaf, call);
        let works = self.groups(items).into_iter().filter_map(|group| group.work);
        for (ipu, place) in works {
            if let Some(code) = tables.call_code.remove(&(ipu, place)) {
                tables.control_code.insert(call, code);
            }
            let works = tables.outlines[&ipu].works();
            let own = &works[place];
            for (leaf, body) in own.leaves.iter().zip(&works[own.body].leaves) {
                tables.programs[leaf.index()].outlined = Some(OutlinedCall { body: *body, call });
            }
        }
        call
    }

    /// The position of the body of a work.
    fn body(&self, tables: &ProgramTables, (ipu, place): WorkPlace) -> WorkPlace {
        (ipu, tables.outlines[&ipu].works()[place].body)
    }

    /// Groups the items of a sequence by work.
    fn groups<'a>(&self, items: &'a [FragmentItem]) -> Vec<ItemGroup<'a>> {
        let mut groups: Vec<ItemGroup> = Vec::new();
        for (at, item) in items.iter().enumerate() {
            let work = self.work_of(std::slice::from_ref(item));
            match groups.last_mut().filter(|last| work.is_some() && last.work == work) {
                Some(last) => last.items = &items[at - last.items.len()..=at],
                None => groups.push(ItemGroup { items: std::slice::from_ref(item), work }),
            }
        }
        groups
    }

    /// Groups the items of a sequence, and joins the groups that belong to one function. Each
    /// joined group has the position of its first work.
    fn function_groups<'a>(
        &self,
        tables: &ProgramTables,
        items: &'a [FragmentItem],
    ) -> Vec<ItemGroup<'a>> {
        let mut joined: Vec<ItemGroup> = Vec::new();
        let mut at = 0;
        for group in self.groups(items) {
            let end = at + group.items.len();
            let body = group.work.map(|place| self.body(tables, place));
            let continues = body.is_some_and(|body| !self.cuts.contains(&body));
            match joined.last_mut().filter(|last| continues && last.work.is_some()) {
                Some(last) => last.items = &items[at - last.items.len()..end],
                None => joined.push(group),
            }
            at = end;
        }
        joined
    }

    /// The work that all leaves of `items` belong to.
    fn work_of(&self, items: &[FragmentItem]) -> Option<WorkPlace> {
        let mut works = items.iter().map(|item| match item {
            FragmentItem::Leaf(program) => self.works.get(program).copied(),
            FragmentItem::Loop { body, .. } => self.work_of(body),
            FragmentItem::HostSync { .. }
            | FragmentItem::SetSync { .. }
            | FragmentItem::ReplicaSync { .. }
            | FragmentItem::IoStream { .. }
            | FragmentItem::WaitForIo(_) => None,
        });
        let first = works.next()??;
        if works.all(|work| work == Some(first)) { Some(first) } else { None }
    }
}

/// Returns the leading parts that all paths have in common, or the first path.
fn common_path<'a>(paths: impl Iterator<Item = &'a str>) -> String {
    let mut paths = paths.filter(|path| path.contains('/')).map(path_parts);
    let Some(first) = paths.next() else { return String::new() };
    let most = first.len() - 1;
    let shared = paths.fold(most, |shared, path| {
        first[..shared].iter().zip(&path).take_while(|(a, b)| a == b).count()
    });
    first[..if shared == 0 { most } else { shared }].join("/")
}

/// The parts of a path, without the number of an exchange.
fn path_parts(path: &str) -> Vec<&str> {
    let name = match exchange_number_and_path(path) {
        Some((_, name)) => name,
        None => path,
    };
    name.split('/').collect()
}

/// Returns the program nodes of items: leaves unchanged, loops as `Repeat`.
fn program_nodes(items: &[FragmentItem], tables: &mut ProgramTables) -> Vec<ProgramId> {
    items
        .iter()
        .flat_map(|item| match item {
            FragmentItem::Leaf(program)
            | FragmentItem::HostSync { program, .. }
            | FragmentItem::SetSync { program, .. }
            | FragmentItem::ReplicaSync { program, .. } => vec![*program],
            FragmentItem::IoStream { sync, steps, .. } => [&[*sync], &steps[..]].concat(),
            FragmentItem::WaitForIo(_) => Vec::new(),
            FragmentItem::Loop { times, body } => {
                let children = program_nodes(body, tables);
                let body = tables.group(ProgramKind::Sequence, "", children);
                vec![tables.repeat(*times, body)]
            }
        })
        .collect()
}
