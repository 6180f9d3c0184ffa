//! Code sharing between steps: an IPU keeps one copy of every sequence of steps that it repeats.
//!
//! Poplar's frameworks outline repeated sequences of operations into functions. The body of a
//! function exists once, and each further use is a call. Steps that follow each other as they did
//! before belong to one call. A call ends where an operation uses persistent tensors of its own,
//! because they are arguments that are bound just before they are used (PopART's
//! `SubgraphCopyingStrategy::JustInTime`).

use std::collections::BTreeMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use tilescope_report::units::ProgramId;

/// The way in which steps obtain their code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum OutlineReuse {
    /// The steps are the first of their kind.
    FirstUse,
    /// A call runs existing code.
    NewCall,
    /// The previous call continues.
    ContinuedCall,
}

/// Work that an IPU runs, or a copy that shares code.
#[derive(Clone, Debug)]
pub(super) struct OutlinedWork {
    /// The fingerprint, which equal works share.
    print: u64,
    /// The position of the first equal work, whose code is the body.
    pub body: usize,
    /// True if a call begins with this work.
    pub begins_call: bool,
    /// The leaf programs of the work. Empty for copies, which are not part of a function.
    pub leaves: Vec<ProgramId>,
}

/// The works of one IPU so far.
#[derive(Clone, Debug, Default)]
pub(crate) struct OutlineSequence {
    /// The works in program order.
    sequence: Vec<OutlinedWork>,
    /// The first position of each fingerprint.
    known: BTreeMap<u64, usize>,
    /// The position at which the current call would continue.
    next: Option<usize>,
}

impl OutlineSequence {
    /// Adds steps with a fingerprint. Equal steps have equal fingerprints.
    pub(crate) fn add(&mut self, print: u64) -> OutlineReuse {
        let at = self.sequence.len();
        let first = *self.known.entry(print).or_insert(at);
        // A call can only continue with the work that follows its body in program order.
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

    /// All works so far, in program order.
    pub(super) fn works(&self) -> &[OutlinedWork] {
        &self.sequence
    }

    /// The position of the last work.
    pub(super) fn last_place(&self) -> Option<usize> {
        self.sequence.len().checked_sub(1)
    }

    /// The leaves of the first work that equals the last one.
    pub(crate) fn body_of_last(&self) -> &[ProgramId] {
        self.sequence.last().map_or(&[], |last| &self.sequence[last.body].leaves)
    }

    /// Sets the leaves of the last work.
    pub(crate) fn set_leaves_of_last(&mut self, leaves: Vec<ProgramId>) {
        if let Some(last) = self.sequence.last_mut() {
            last.leaves = leaves;
        }
    }

    /// Ends the current call, because the following steps have separate arguments.
    pub(crate) fn end_call(&mut self) {
        self.next = None;
    }
}

/// A hash that is equal for equal values, and almost certainly different for different ones.
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
    fn arguments_need_a_separate_call() {
        let mut outline = OutlineSequence::default();
        codes(&mut outline, &[1, 2]);
        assert_eq!(outline.add(1), NewCall);
        outline.end_call();
        assert_eq!(outline.add(2), NewCall);
    }
}
