//! Which steps share code: an IPU keeps one copy of every sequence of steps it runs repeatedly.
//!
//! Poplar's frameworks outline repeated sequences of operations into functions. The inside of a
//! function is there once; each further use is a call. Steps that follow each other as they did
//! before belong to one call. A call ends where an operation uses kept tensors of its own: they
//! are arguments, bound just before they are used (PopART's `SubgraphCopyingStrategy::JustInTime`).

use std::collections::BTreeMap;
use std::hash::{DefaultHasher, Hash, Hasher};

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

/// The steps of one IPU so far.
#[derive(Clone, Debug, Default)]
pub(crate) struct OutlineSequence {
    /// Fingerprints in the order of the program.
    sequence: Vec<u64>,
    /// Where each fingerprint came first.
    known: BTreeMap<u64, usize>,
    /// Where the current call goes on.
    next: Option<usize>,
}

impl OutlineSequence {
    /// Adds steps: equal ones have equal fingerprints.
    pub(crate) fn add(&mut self, print: u64) -> OutlineReuse {
        let at = self.sequence.len();
        self.sequence.push(print);
        if let Some(next) = self.next.filter(|next| self.sequence[*next] == print) {
            self.next = Some(next + 1);
            return OutlineReuse::ContinuedCall;
        }
        let first = *self.known.entry(print).or_insert(at);
        self.next = (first < at).then_some(first + 1);
        if first < at { OutlineReuse::NewCall } else { OutlineReuse::FirstUse }
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
