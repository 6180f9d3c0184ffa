//! Which steps share code: an IPU keeps one copy of every sequence of steps it runs repeatedly.
//!
//! Poplar's frameworks outline repeated sequences of operations into functions. The inside of a
//! function is there once; each further use is a call. Steps that follow each other as they did
//! before belong to one call. A call ends where an operation uses kept tensors of its own: they
//! are arguments, bound just before they are used (PopART's `SubgraphCopyingStrategy::JustInTime`).

use std::collections::BTreeMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use tilescope_report::units::ProgramId;

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
pub(super) struct OutlinedWork {
    /// Equal works have equal fingerprints.
    print: u64,
    /// Where the first of its kind stands: its code is the body.
    pub body: usize,
    /// Whether a call begins with it.
    pub begins_call: bool,
    /// Its leaf programs; none for copies, which are no part of a function.
    pub leaves: Vec<ProgramId>,
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

    /// All works so far, in the order of the program.
    pub(super) fn works(&self) -> &[OutlinedWork] {
        &self.sequence
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
