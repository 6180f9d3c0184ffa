//! Which steps share code: an IPU keeps one copy of every sequence of steps it runs repeatedly.
//!
//! Poplar's frameworks outline repeated sequences of operations into functions. The inside of a
//! function is there once; each further use is a call. Steps that follow each other as they did
//! before belong to one call. A call ends where an operation uses kept tensors of its own: they
//! are arguments, bound just before they are used (PopART's `SubgraphCopyingStrategy::JustInTime`).
//!
//! In the program tree such a sequence is a function with the names of its first use, and every use
//! is a call. Where calls begin and end cuts a sequence into functions, so that each call runs whole
//! ones.

use super::fragments::program_nodes;
use super::program_tables::{FragmentItem, ProgramTables, exchange_number_and_path};
use std::collections::{BTreeMap, BTreeSet};
use std::hash::{DefaultHasher, Hash, Hasher};
use tilescope_report::units::{IpuId, ProgramId};
use tilescope_report::{OutlinedCall, ProgramKind};

/// How steps come to their code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum OutlineReuse {
    /// They are the first of their kind.
    FirstUse,
    /// A call runs code that is there already.
    NewCall,
    /// The call before them goes on.
    ContinuedCall,
}

/// A work that an IPU runs, or a copy that shares code.
#[derive(Clone, Debug)]
struct OutlinedWork {
    /// Equal works have equal fingerprints.
    print: u64,
    /// Where the first of its kind stands: its code is the body.
    body: usize,
    /// Whether a call begins with it.
    begins_call: bool,
    /// Its leaf programs; none for copies, which are no part of a function.
    leaves: Vec<ProgramId>,
}

/// The works of one IPU so far.
#[derive(Clone, Debug, Default)]
pub(crate) struct OutlineSequence {
    /// In the order of the program.
    sequence: Vec<OutlinedWork>,
    /// Where each fingerprint came first.
    known: BTreeMap<u64, usize>,
    /// Where the current call goes on.
    next: Option<usize>,
}

impl OutlineSequence {
    /// Adds steps: equal ones have equal fingerprints.
    pub(crate) fn add(&mut self, print: u64) -> OutlineReuse {
        let at = self.sequence.len();
        let first = *self.known.entry(print).or_insert(at);
        let goes_on = self.next.filter(|next| self.sequence[*next].print == print);
        self.next = match goes_on {
            Some(next) => Some(next + 1),
            None => (first < at).then_some(first + 1),
        };
        let begins_call = goes_on.is_none();
        self.sequence.push(OutlinedWork { print, body: first, begins_call, leaves: Vec::new() });
        match goes_on {
            Some(_) => OutlineReuse::ContinuedCall,
            None if first < at => OutlineReuse::NewCall,
            None => OutlineReuse::FirstUse,
        }
    }

    /// The place of the last work.
    pub(super) fn last_place(&self) -> Option<usize> {
        self.sequence.len().checked_sub(1)
    }

    /// The leaves of the first work that is equal to the last one.
    pub(crate) fn body_of_last(&self) -> &[ProgramId] {
        self.sequence.last().map_or(&[], |last| &self.sequence[last.body].leaves)
    }

    /// Notes the leaves of the last work.
    pub(crate) fn set_leaves_of_last(&mut self, leaves: Vec<ProgramId>) {
        if let Some(last) = self.sequence.last_mut() {
            last.leaves = leaves;
        }
    }

    /// Ends the current call: what follows has arguments of its own.
    pub(crate) fn end_call(&mut self) {
        self.next = None;
    }
}

/// A work by its IPU and its place in the [`OutlineSequence`] there.
type WorkPlace = (IpuId, usize);

/// The functions that the works of a program are cut into.
#[derive(Debug, Default)]
pub(super) struct OutlineFunctions {
    /// The work that each leaf belongs to.
    works: BTreeMap<ProgramId, WorkPlace>,
    /// Places of bodies at which a function begins or ends.
    cuts: BTreeSet<WorkPlace>,
    /// Bodies that are run again.
    reused: BTreeSet<WorkPlace>,
    /// By the place of their first work.
    functions: BTreeMap<WorkPlace, ProgramId>,
    /// By the first leaf that they run.
    calls: BTreeMap<ProgramId, ProgramId>,
}

/// Items of a sequence that belong together: one work, or one item that is none.
struct ItemGroup<'a> {
    items: &'a [FragmentItem],
    work: Option<WorkPlace>,
}

impl OutlineFunctions {
    /// Cuts the works of `sequences`, which are all of the program, into functions.
    pub(super) fn new(tables: &mut ProgramTables, sequences: &[&[FragmentItem]]) -> Self {
        let mut found = Self::default();
        for (ipu, outline) in &tables.outlines {
            for (place, work) in outline.sequence.iter().enumerate() {
                found.works.extend(work.leaves.iter().map(|leaf| (*leaf, (*ipu, place))));
                if work.body < place && !work.leaves.is_empty() {
                    found.reused.insert((*ipu, work.body));
                }
            }
        }
        for items in sequences {
            found.cut(tables, items);
        }
        for items in sequences {
            found.add_functions(tables, items);
        }
        found
    }

    /// Cuts where a call begins or ends in a sequence.
    fn cut(&mut self, tables: &ProgramTables, items: &[FragmentItem]) {
        let mut before: Option<WorkPlace> = None;
        for group in self.groups(items) {
            let here = group.work.map(|place| self.body(tables, place));
            let goes_on = match (before, here, group.work) {
                (Some(before), Some(here), Some(place)) => {
                    (before.0, before.1 + 1) == here
                        && !tables.outlines[&place.0].sequence[place.1].begins_call
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

    /// Makes the functions whose bodies stand in a sequence.
    fn add_functions(&mut self, tables: &mut ProgramTables, items: &[FragmentItem]) {
        for call in self.calls_in(tables, items) {
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

    /// Program nodes of a sequence, with calls of functions for works that are run again.
    pub(super) fn nodes(
        &mut self,
        tables: &mut ProgramTables,
        items: &[FragmentItem],
    ) -> Vec<ProgramId> {
        let mut nodes = Vec::new();
        for call in self.calls_in(tables, items) {
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

    /// The call of a function, and who its leaves run instead of being compiled again.
    fn call(
        &mut self,
        tables: &mut ProgramTables,
        function: ProgramId,
        (ipu, first): WorkPlace,
        items: &[FragmentItem],
    ) -> ProgramId {
        let leaf = tables.outlines[&ipu].sequence[first].leaves[0];
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
            let sequence = &tables.outlines[&ipu].sequence;
            let own = &sequence[place];
            for (leaf, body) in own.leaves.iter().zip(&sequence[own.body].leaves) {
                tables.programs[leaf.index()].outlined = Some(OutlinedCall { body: *body, call });
            }
        }
        call
    }

    /// The place of the body of a work.
    fn body(&self, tables: &ProgramTables, (ipu, place): WorkPlace) -> WorkPlace {
        (ipu, tables.outlines[&ipu].sequence[place].body)
    }

    /// The works of a sequence, and the items between them.
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

    /// The groups of a sequence, those joined that one function holds; each has its first work.
    fn calls_in<'a>(
        &self,
        tables: &ProgramTables,
        items: &'a [FragmentItem],
    ) -> Vec<ItemGroup<'a>> {
        let mut calls: Vec<ItemGroup> = Vec::new();
        let mut at = 0;
        for group in self.groups(items) {
            let end = at + group.items.len();
            let body = group.work.map(|place| self.body(tables, place));
            let goes_on = body.is_some_and(|body| !self.cuts.contains(&body));
            match calls.last_mut().filter(|last| goes_on && last.work.is_some()) {
                Some(last) => last.items = &items[at - last.items.len()..end],
                None => calls.push(group),
            }
            at = end;
        }
        calls
    }

    /// The work that all leaves of `items` belong to.
    fn work_of(&self, items: &[FragmentItem]) -> Option<WorkPlace> {
        let mut works = items.iter().map(|item| match item {
            FragmentItem::Leaf(program) => self.works.get(program).copied(),
            FragmentItem::Loop { body, .. } => self.work_of(body),
            FragmentItem::HostSync { .. }
            | FragmentItem::SetSync { .. }
            | FragmentItem::IoStream { .. }
            | FragmentItem::WaitForIo(_) => None,
        });
        let first = works.next()??;
        works.all(|work| work == Some(first)).then_some(first)
    }
}

/// The parts that paths have in common, or the first path.
fn common_path<'a>(mut paths: impl Iterator<Item = &'a str>) -> String {
    let parts = |path: &'a str| -> Vec<&'a str> {
        exchange_number_and_path(path).map_or(path, |(_, name)| name).split('/').collect()
    };
    let mut paths = paths.by_ref().filter(|path| path.contains('/')).map(parts);
    let Some(first) = paths.next() else { return String::new() };
    let most = first.len() - 1;
    let shared = paths.fold(most, |shared, path| {
        first[..shared].iter().zip(&path).take_while(|(a, b)| a == b).count()
    });
    first[..if shared == 0 { most } else { shared }].join("/")
}

/// A number that equal things share and different ones, as good as always, do not.
pub(crate) fn fingerprint(thing: &impl Hash) -> u64 {
    let mut hasher = DefaultHasher::new();
    thing.hash(&mut hasher);
    hasher.finish()
}

#[cfg(test)]
mod tests {
    use super::{OutlineReuse::*, OutlineSequence};

    fn codes(outline: &mut OutlineSequence, prints: &[u64]) -> Vec<super::OutlineReuse> {
        prints.iter().map(|print| outline.add(*print)).collect()
    }

    #[test]
    fn a_repeated_sequence_is_one_call() {
        let mut outline = OutlineSequence::default();
        assert_eq!(codes(&mut outline, &[1, 2, 3]), [FirstUse, FirstUse, FirstUse]);
        assert_eq!(codes(&mut outline, &[1, 2, 3]), [NewCall, ContinuedCall, ContinuedCall]);
        assert_eq!(
            codes(&mut outline, &[2, 1, 9, 1, 2]),
            [NewCall, NewCall, FirstUse, NewCall, ContinuedCall]
        );
    }

    #[test]
    fn arguments_need_a_call_of_their_own() {
        let mut outline = OutlineSequence::default();
        codes(&mut outline, &[1, 2]);
        assert_eq!(outline.add(1), NewCall);
        outline.end_call();
        assert_eq!(outline.add(2), NewCall);
    }
}
