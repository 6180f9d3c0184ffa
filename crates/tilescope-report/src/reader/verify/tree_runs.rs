//! The number of runs of each program: that of the trace compared with that of the program tree.

use super::{InvariantCheck, InvariantViolation};
use crate::model::{ProgramKind, StepActivity};
use crate::reader::ProgramNodeTable;
use crate::trace::VerifiedLane;
use crate::units::{ProgramId, ReplicaClassId};
use std::collections::{BTreeMap, BTreeSet};

/// The first format whose trees have choices. Earlier ones call copies of results in every
/// micro-batch.
pub(super) const FIRST_FORMAT: (i64, i64) = (2, 11);

/// The smallest and the largest number of runs of a program that are possible.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct RunBounds {
    least: u64,
    most: u64,
}

impl RunBounds {
    const ONCE: Self = Self { least: 1, most: 1 };

    fn add(&mut self, other: Self) {
        self.least = self.least.saturating_add(other.least);
        self.most = self.most.saturating_add(other.most);
    }

    fn times(self, count: u64) -> Self {
        Self { least: self.least.saturating_mul(count), most: self.most.saturating_mul(count) }
    }
}

/// Checks that each program ran as often as the tree calls it. Calls of outlined code count for the
/// program that holds the code.
pub(super) fn check(
    programs: &ProgramNodeTable,
    lanes: &[VerifiedLane],
    found: &mut Vec<InvariantViolation>,
) {
    let mut law = InvariantCheck::new("programs_run_as_called", found);
    let called = bounds_by_tree(programs);
    for (class, ran) in bounds_by_trace(programs, lanes) {
        for (id, node) in programs.iter() {
            // Programs without an activity hold others, or do nothing.
            let activity = StepActivity::from_program_kind(node.kind, node.stream);
            if programs.body(id) != id || activity == StepActivity::Other {
                continue;
            }
            let called = called.get(&id).copied();
            // Waits for I/O tiles, other replicas and the framework depend on the run, and are not in
            // the tree.
            if called.is_none() && node.kind == ProgramKind::Sync {
                continue;
            }
            let mut called = called.unwrap_or_default();
            // IPUs that sync with each other take one step, whose program is that of the first.
            if node.kind == ProgramKind::Sync {
                called.least = 0;
            }
            let ran = ran.get(&id).copied().unwrap_or_default();
            law.check(called.least <= ran.most && ran.least <= called.most, || {
                let RunBounds { least, most } = called;
                let calls =
                    if least == most { most.to_string() } else { format!("{least} to {most}") };
                format!(
                    "program {} of replicas of class {} runs {} times, but the program tree calls \
                     it {calls} times",
                    id.0, class.0, ran.most
                )
            });
        }
    }
}

/// Runs of every program that the tree reaches.
fn bounds_by_tree(programs: &ProgramNodeTable) -> BTreeMap<ProgramId, RunBounds> {
    let mut bounds: BTreeMap<ProgramId, RunBounds> = BTreeMap::new();
    for root in programs.roots() {
        bounds.entry(*root).or_default().add(RunBounds::ONCE);
    }
    for id in parents_first(programs) {
        let Some(node) = programs.get(id) else { continue };
        let mut of_child = bounds.get(&id).copied().unwrap_or_default().times(node.repeats);
        // Data decide on the child; the only child of a switch is always chosen.
        if node.kind == ProgramKind::Switch && node.children.len() > 1 {
            of_child.least = 0;
        }
        for child in &node.children {
            bounds.entry(*child).or_default().add(of_child);
        }
    }
    bounds
}

/// The programs below the roots, each before its children. The tree has no cycles.
fn parents_first(programs: &ProgramNodeTable) -> Vec<ProgramId> {
    let mut finished = Vec::new();
    let mut seen = BTreeSet::new();
    // A stack instead of recursion: a hostile file may nest programs arbitrarily deep.
    let mut path = Vec::new();
    for root in programs.roots() {
        if seen.insert(*root) {
            path.push((*root, 0));
        }
        while let Some((id, next)) = path.pop() {
            let Some(child) = programs.get(id).and_then(|node| node.children.get(next)) else {
                finished.push(id);
                continue;
            };
            path.push((id, next + 1));
            if seen.insert(*child) {
                path.push((*child, 0));
            }
        }
    }
    finished.reverse();
    finished
}

/// Runs of every program that holds code, by class of replicas. A run on several lanes at once is
/// one; if a program runs on different lanes, their sum is the upper bound.
fn bounds_by_trace(
    programs: &ProgramNodeTable,
    lanes: &[VerifiedLane],
) -> BTreeMap<ReplicaClassId, BTreeMap<ProgramId, RunBounds>> {
    let mut by_call: BTreeMap<(ReplicaClassId, ProgramId), RunBounds> = BTreeMap::new();
    for lane in lanes {
        for totals in &lane.programs {
            let Some(program) = totals.program else { continue };
            let bounds = by_call.entry((lane.info.class, program)).or_default();
            bounds.least = bounds.least.max(totals.steps);
            bounds.most = bounds.most.saturating_add(totals.steps);
        }
    }
    let mut by_class: BTreeMap<ReplicaClassId, BTreeMap<ProgramId, RunBounds>> = BTreeMap::new();
    for ((class, program), bounds) in by_call {
        let of_class = by_class.entry(class).or_default();
        of_class.entry(programs.body(program)).or_default().add(bounds);
    }
    by_class
}
