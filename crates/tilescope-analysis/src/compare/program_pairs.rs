//! Correspondence of the programs of two reports.
//!
//! Programs are identified by kind, name and IPU, in the order of the program tree, with loop
//! bodies and functions once. Numbers that compilers count up (`cs12_`, `copy3_`) are not part of a
//! name: one more compute set would change all that follow.

use super::ComparedReports;
use super::comparison_table::{ComparedThing, ComparisonRow};
use super::sequence_alignment::align;
use crate::data_table::TableCell;
use crate::program_names::without_counter_prefix;
use crate::view_location::ViewLocation;
use std::collections::{BTreeMap, BTreeSet};
use tilescope_report::units::{Bytes, IpuId, ProgramId};
use tilescope_report::{ProgramKind, ProgramNode, ProgramNodeTable, Report, ReportError};

/// A program that is in both reports, or in one of them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ProgramPair {
    /// The program in the source.
    pub source: Option<ProgramId>,
    /// The program in the target.
    pub target: Option<ProgramId>,
}

/// The programs of two reports, side by side.
#[derive(Clone, Debug, Default)]
pub struct ProgramPairs {
    /// The pairs in the order of the source, then the programs that only the target has.
    pub pairs: Vec<ProgramPair>,
    index_of_source: BTreeMap<ProgramId, u32>,
    index_of_target: BTreeMap<ProgramId, u32>,
}

impl ProgramPairs {
    /// Aligns the programs of two reports. O(n log n).
    ///
    /// # Errors
    /// Parts of the files that cannot be read.
    pub(crate) fn read(source: &Report, target: &Report) -> Result<Self, ReportError> {
        let source = source.executed_program_nodes()?;
        let target = target.executed_program_nodes()?;
        Ok(Self::new(&source, &target))
    }

    pub(crate) fn new(source: &ProgramNodeTable, target: &ProgramNodeTable) -> Self {
        let a = in_order(source);
        let b = in_order(target);
        let mut partner = vec![None; a.len()];
        let mut taken = vec![false; b.len()];
        // First with IPUs as part of the identity, then without, for programs that moved to another
        // IPU.
        for with_ipu in [true, false] {
            let rest_a: Vec<usize> = (0..a.len()).filter(|at| partner[*at].is_none()).collect();
            let rest_b: Vec<usize> = (0..b.len()).filter(|at| !taken[*at]).collect();
            let keys_a = rest_a.iter().map(|at| key(source, a[*at], with_ipu));
            let keys_b = rest_b.iter().map(|at| key(target, b[*at], with_ipu));
            let (keys_a, keys_b) = numbered(keys_a.collect(), keys_b.collect());
            for (at_a, at_b) in paired(&keys_a, &keys_b) {
                partner[rest_a[at_a]] = Some(rest_b[at_b]);
                taken[rest_b[at_b]] = true;
            }
        }
        let mut all = Self::default();
        for (id, partner) in a.iter().zip(&partner) {
            all.add(ProgramPair { source: Some(*id), target: partner.map(|at| b[at]) });
        }
        for (id, _) in b.iter().zip(&taken).filter(|(_, taken)| !**taken) {
            all.add(ProgramPair { source: None, target: Some(*id) });
        }
        all
    }

    fn add(&mut self, pair: ProgramPair) {
        let at = self.pairs.len() as u32;
        self.index_of_source.extend(pair.source.map(|id| (id, at)));
        self.index_of_target.extend(pair.target.map(|id| (id, at)));
        self.pairs.push(pair);
    }

    /// Index in `pairs` of a program of the source.
    pub(crate) fn place_of_source(&self, id: ProgramId) -> Option<u32> {
        self.index_of_source.get(&id).copied()
    }

    /// Index in `pairs` of a program of the target.
    pub(crate) fn place_of_target(&self, id: ProgramId) -> Option<u32> {
        self.index_of_target.get(&id).copied()
    }

    /// The program of the target that corresponds to one of the source.
    pub fn to_target(&self, id: ProgramId) -> Option<ProgramId> {
        self.pairs[self.place_of_source(id)? as usize].target
    }

    /// The program of the source that corresponds to one of the target.
    pub fn to_source(&self, id: ProgramId) -> Option<ProgramId> {
        self.pairs[self.place_of_target(id)? as usize].source
    }
}

type ProgramMatchKey<'a> = (ProgramKind, &'a str, Option<IpuId>);

fn key(programs: &ProgramNodeTable, id: ProgramId, with_ipu: bool) -> ProgramMatchKey<'_> {
    let program = programs.get(id);
    let kind = program.map_or(ProgramKind::Unknown, |program| program.kind);
    let name = program.map_or("", |program| without_counter_prefix(&program.name));
    (kind, name, program.and_then(|program| program.ipu).filter(|_| with_ipu))
}

/// Bytes of programs side by side, with links into `view`; programs without any bytes are left out.
pub(super) fn program_rows(
    sides: &ComparedReports<'_>,
    view: &'static str,
    source: &BTreeMap<ProgramId, Bytes>,
    target: &BTreeMap<ProgramId, Bytes>,
) -> Result<Vec<ComparisonRow>, ReportError> {
    let (of_source, of_target) = sides.both(|report| report.executed_program_nodes())?;
    let mut rows = Vec::new();
    for pair in &sides.alignment.programs.pairs {
        let [source, target] =
            [(pair.source, &of_source, source), (pair.target, &of_target, target)].map(
                |(id, programs, known)| {
                    let bytes = known.get(&id?)?;
                    Some(compared_program(id?, programs, view, *bytes))
                },
            );
        if source.is_some() || target.is_some() {
            rows.push(ComparisonRow::paired(source, target));
        }
    }
    Ok(rows)
}

/// A program of one report, with its location in `view`.
pub(super) fn compared_program(
    id: ProgramId,
    programs: &ProgramNodeTable,
    view: &'static str,
    value: impl Into<TableCell>,
) -> ComparedThing {
    let name = programs.get(id).map(title).unwrap_or_default();
    let place = ViewLocation { program: Some(id), ..ViewLocation::view(view) };
    ComparedThing::new(name, value).at(place)
}

/// The title of a program in tables: its plain name and its kind.
pub(crate) fn title(program: &ProgramNode) -> String {
    match without_counter_prefix(&program.name) {
        "" => program.kind.name().to_owned(),
        name => format!("{name} ({})", program.kind.name()),
    }
}

/// All programs, each once, in the order of the tree; programs outside the tree come last.
fn in_order(programs: &ProgramNodeTable) -> Vec<ProgramId> {
    let mut seen = BTreeSet::new();
    let mut order = Vec::with_capacity(programs.len());
    let mut open: Vec<ProgramId> = programs.roots().iter().rev().copied().collect();
    while let Some(id) = open.pop() {
        if seen.insert(id) {
            order.push(id);
            let children = programs.get(id).map_or(&[][..], |program| &program.children);
            open.extend(children.iter().rev().filter(|child| !seen.contains(child)));
        }
    }
    order.extend(programs.iter().map(|(id, _)| id).filter(|id| !seen.contains(id)));
    order
}

/// Maps keys to small numbers, the same for equal keys, in the order of keys.
fn numbered<K: Ord + Copy>(a: Vec<K>, b: Vec<K>) -> (Vec<u32>, Vec<u32>) {
    let mut all: Vec<K> = a.iter().chain(&b).copied().collect();
    all.sort_unstable();
    all.dedup();
    // `all` holds every key of both lists.
    let number = |key: &K| all.partition_point(|known| known < key) as u32;
    (a.iter().map(number).collect(), b.iter().map(number).collect())
}

/// Aligned entries, followed by equal entries that the alignment left over. Those are paired in
/// order between two aligned entries of their kind, even if they moved.
fn paired(a: &[u32], b: &[u32]) -> Vec<(usize, usize)> {
    let mut pairs: Vec<(usize, usize)> =
        align(a, b).into_iter().map(|(a, b)| (a as usize, b as usize)).collect();
    let rest_a = leftover(a, pairs.iter().map(|pair| pair.0));
    let rest_b = leftover(b, pairs.iter().map(|pair| pair.1));
    for (kind, in_a) in rest_a {
        let in_b = rest_b.get(&kind).map_or(&[][..], Vec::as_slice);
        pairs.extend(in_a.into_iter().zip(in_b.iter().copied()));
    }
    pairs
}

/// Places without a partner, by kind and number of matched places of the same kind before them.
fn leftover(
    kinds: &[u32],
    matched: impl Iterator<Item = usize>,
) -> BTreeMap<(u32, u32), Vec<usize>> {
    let mut is_matched = vec![false; kinds.len()];
    for at in matched {
        is_matched[at] = true;
    }
    let mut rest: BTreeMap<(u32, u32), Vec<usize>> = BTreeMap::new();
    let mut passed: BTreeMap<u32, u32> = BTreeMap::new();
    for (at, kind) in kinds.iter().enumerate() {
        let passed = passed.entry(*kind).or_default();
        if is_matched[at] {
            *passed += 1;
        } else {
            rest.entry((*kind, *passed)).or_default().push(at);
        }
    }
    rest
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn moved_entries_are_paired() {
        // 7 moved from the front to the back.
        let mut pairs = paired(&[7, 1, 2, 3, 4], &[1, 2, 3, 4, 7]);
        pairs.sort_unstable();
        assert_eq!(pairs, [(0, 4), (1, 0), (2, 1), (3, 2), (4, 3)]);
    }
}
