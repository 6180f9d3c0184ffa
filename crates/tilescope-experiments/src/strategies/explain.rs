//! Explanation of the difference between two specs by keys, from measurements of specs between
//! them.
//!
//! The part of a key is the effect of changing it alone in the good spec. If that cannot be
//! measured, it is the effect of restoring it alone in the bad spec; keys for which neither can be
//! measured are changed together. With more keys than the budget has measurements, sets of keys are
//! halved, those with the largest parts first, and sets that remain when the budget is used up are
//! reported as a whole.
//!
//! Parts and their interaction add up to the whole difference: figures are integers in a small
//! unit, and nothing is rounded in between.

use std::collections::{BTreeMap, BTreeSet};

/// Indices of units: keys that change together.
pub type UnitSet = BTreeSet<usize>;

/// The figure of a spec, in its unit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Measured {
    Units(i64),
    /// The reason for a missing figure.
    None(String),
}

impl Measured {
    fn units(&self) -> Option<i64> {
        match self {
            Self::Units(units) => Some(*units),
            Self::None(_) => None,
        }
    }
}

/// The way a part was measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PartOrigin {
    /// Changed alone in the good spec.
    Changed,
    /// Restored alone in the bad spec.
    PutBack,
}

impl PartOrigin {
    pub fn name(self) -> &'static str {
        match self {
            Self::Changed => "changed_alone",
            Self::PutBack => "put_back_alone",
        }
    }
}

/// Keys and their part of the difference.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Part {
    pub units: UnitSet,
    /// Their part of the difference, or the reason that it is not known.
    pub explains: Result<i64, String>,
    pub origin: PartOrigin,
}

impl Part {
    fn size(&self) -> u64 {
        self.explains.as_ref().map_or(0, |units| units.unsigned_abs())
    }
}

/// The effect of two parts together beyond the sum of both.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PairInteraction {
    /// Indices of the parts.
    pub parts: [usize; 2],
    pub units: i64,
}

/// The parts of the difference between two specs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Explanation {
    pub good: i64,
    pub bad: i64,
    /// The parts, the largest first; each key is in one of them.
    pub parts: Vec<Part>,
    pub pairs: Vec<PairInteraction>,
    /// True if more measurements would have split parts further.
    pub is_cut_short: bool,
}

impl Explanation {
    pub fn whole(&self) -> i64 {
        self.bad - self.good
    }

    /// The remainder of the whole: the effect of parts together, and of those that are not known.
    pub fn interaction(&self) -> i64 {
        let known = self.parts.iter().filter_map(|part| part.explains.as_ref().ok());
        self.whole() - known.sum::<i64>()
    }

    /// The interaction beyond that of the pairs.
    pub fn rest(&self) -> i64 {
        self.interaction() - self.pairs.iter().map(|pair| pair.units).sum::<i64>()
    }
}

/// Number of parts whose pairs are measured.
const PAIRED: usize = 3;

/// Measures specs between two others: each has the keys of a set as in the bad spec.
pub trait Measure {
    type Error;

    /// Measures each of the sets; returns the results in the same order.
    fn measure(&mut self, sets: &[UnitSet]) -> Result<Vec<Measured>, Self::Error>;

    /// The number of remaining measurements.
    fn left(&self) -> usize;
}

/// Finds the parts of the difference between both ends.
///
/// # Errors
/// An end without a figure, and errors of measurements.
pub fn explain<M: Measure>(
    count: usize,
    measure: &mut M,
) -> Result<Explanation, ExplainError<M::Error>> {
    let all: UnitSet = (0..count).collect();
    let mut known = Known { measure, all: all.clone(), values: BTreeMap::new() };
    known.measure(&[UnitSet::new(), all])?;
    let (good, bad) = known.ends().map_err(ExplainError::End)?;
    // Both ends are known, so one measurement per key is enough.
    let mut parts = if count <= known.measure.left() {
        known.one_by_one(count)?
    } else {
        known.by_halves(count, bad - good)?
    };
    parts.sort_by(|a, b| b.size().cmp(&a.size()).then_with(|| a.units.cmp(&b.units)));
    let is_cut_short = parts.iter().any(|part| part.units.len() > 1 && part.size() > 0);
    let mut found = Explanation { good, bad, parts, pairs: Vec::new(), is_cut_short };
    if found.interaction() != 0 {
        found.pairs = known.pairs(&found.parts, good)?;
    }
    Ok(found)
}

/// The reason that a difference is not explained.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ExplainError<E> {
    End(EndWithoutFigure),
    Measure(E),
}

impl<E> From<E> for ExplainError<E> {
    fn from(error: E) -> Self {
        Self::Measure(error)
    }
}

/// An end of the difference without a figure, which leaves the difference unknown.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EndWithoutFigure {
    pub is_good: bool,
    pub reason: String,
}

/// The measurements so far.
struct Known<'a, M> {
    measure: &'a mut M,
    all: UnitSet,
    values: BTreeMap<UnitSet, Measured>,
}

impl<M: Measure> Known<'_, M> {
    fn measure(&mut self, sets: &[UnitSet]) -> Result<(), M::Error> {
        let mut new: Vec<UnitSet> = Vec::new();
        for set in sets {
            if !self.values.contains_key(set) && !new.contains(set) {
                new.push(set.clone());
            }
        }
        // Sets beyond the budget stay unknown.
        new.truncate(self.measure.left());
        if !new.is_empty() {
            let found = self.measure.measure(&new)?;
            self.values.extend(new.into_iter().zip(found));
        }
        Ok(())
    }

    fn value(&self, set: &UnitSet) -> Measured {
        let unknown = || Measured::None("the budget is used up".to_owned());
        self.values.get(set).cloned().unwrap_or_else(unknown)
    }

    fn ends(&self) -> Result<(i64, i64), EndWithoutFigure> {
        let end = |is_good, set: &UnitSet| match self.value(set) {
            Measured::Units(units) => Ok(units),
            Measured::None(reason) => Err(EndWithoutFigure { is_good, reason }),
        };
        Ok((end(true, &UnitSet::new())?, end(false, &self.all)?))
    }

    /// The part of each key, and the common part of those that cannot be measured alone.
    fn one_by_one(&mut self, count: usize) -> Result<Vec<Part>, M::Error> {
        let singles: Vec<UnitSet> = (0..count).map(|at| UnitSet::from([at])).collect();
        let mut parts = self.parts(&singles)?;
        let (unknown, known): (Vec<Part>, Vec<Part>) =
            parts.drain(..).partition(|part| part.explains.is_err());
        if unknown.len() < 2 {
            return Ok(known.into_iter().chain(unknown).collect());
        }
        let together: UnitSet =
            unknown.iter().flat_map(|part| part.units.iter().copied()).collect();
        let together = self.parts(&[together])?;
        Ok(if together.iter().all(|part| part.explains.is_ok()) {
            known.into_iter().chain(together).collect()
        } else {
            known.into_iter().chain(unknown).collect()
        })
    }

    /// Halves sets of keys, those with the largest parts first.
    fn by_halves(&mut self, count: usize, whole: i64) -> Result<Vec<Part>, M::Error> {
        let origin = PartOrigin::Changed;
        let mut parts = vec![Part { units: (0..count).collect(), explains: Ok(whole), origin }];
        let mut done: Vec<Part> = Vec::new();
        loop {
            let largest = (0..parts.len()).max_by_key(|at| (parts[*at].size(), usize::MAX - at));
            let Some(part) = largest.map(|at| parts.swap_remove(at)) else { break };
            if part.units.len() < 2 || part.size() == 0 || self.measure.left() < 2 {
                done.push(part);
                continue;
            }
            let keys: Vec<usize> = part.units.iter().copied().collect();
            let (first, second) = keys.split_at(keys.len() / 2);
            let halves = [first, second].map(|half| half.iter().copied().collect::<UnitSet>());
            let halves = self.parts(&halves)?;
            if halves.iter().all(|half| half.explains.is_ok()) {
                parts.extend(halves)
            } else {
                done.push(part)
            }
        }
        Ok(done)
    }

    /// The part of each of the sets of keys.
    fn parts(&mut self, sets: &[UnitSet]) -> Result<Vec<Part>, M::Error> {
        self.measure(sets)?;
        let without = |set: &UnitSet| -> UnitSet { self.all.difference(set).copied().collect() };
        let failed = sets.iter().filter(|set| self.value(set).units().is_none());
        let back: Vec<UnitSet> = failed.map(without).collect();
        self.measure(&back)?;
        let good = self.value(&UnitSet::new()).units();
        let bad = self.value(&self.all).units();
        let part = |keys: &UnitSet| {
            let changed = self.value(keys);
            let back: UnitSet = self.all.difference(keys).copied().collect();
            let (explains, origin) = match (&changed, self.value(&back).units(), good, bad) {
                (Measured::Units(with), _, Some(good), _) => (Ok(with - good), PartOrigin::Changed),
                (_, Some(without), _, Some(bad)) => (Ok(bad - without), PartOrigin::PutBack),
                (Measured::None(reason), ..) => (Err(reason.clone()), PartOrigin::Changed),
                (Measured::Units(_), ..) => (Err(String::new()), PartOrigin::Changed),
            };
            Part { units: keys.clone(), explains, origin }
        };
        Ok(sets.iter().map(part).collect())
    }

    /// The interactions of the largest parts in pairs.
    fn pairs(&mut self, parts: &[Part], good: i64) -> Result<Vec<PairInteraction>, M::Error> {
        let is_changed =
            |part: &&(usize, &Part)| part.1.origin == PartOrigin::Changed && part.1.size() > 0;
        let all: Vec<(usize, &Part)> = parts.iter().enumerate().collect();
        let largest: Vec<&(usize, &Part)> = all.iter().filter(is_changed).take(PAIRED).collect();
        let mut pairs = Vec::new();
        for (at, first) in largest.iter().enumerate() {
            for second in &largest[at + 1..] {
                let both: UnitSet = first.1.units.union(&second.1.units).copied().collect();
                pairs.push((first, second, both));
            }
        }
        let sets: Vec<UnitSet> = pairs.iter().map(|pair| pair.2.clone()).collect();
        let new = sets.iter().filter(|set| !self.values.contains_key(*set)).count();
        if new > self.measure.left() {
            return Ok(Vec::new());
        }
        self.measure(&sets)?;
        let interaction = |((at_a, a), (at_b, b), both): (_, _, &UnitSet)| {
            let (a, b): (&Part, &Part) = (a, b);
            let alone = a.explains.as_ref().ok()? + b.explains.as_ref().ok()?;
            let units = self.value(both).units()? - good - alone;
            (units != 0).then_some(PairInteraction { parts: [at_a, at_b], units })
        };
        let found = pairs.iter().filter_map(|(first, second, both)| {
            interaction(((first.0, first.1), (second.0, second.1), both))
        });
        Ok(found.collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use tilescope_test_tiers::cases;

    /// A measurement by a function.
    struct Made<F> {
        value: F,
        left: usize,
        asked: Vec<UnitSet>,
    }

    impl<F: Fn(&UnitSet) -> Option<i64>> Measure for Made<F> {
        type Error = std::convert::Infallible;

        fn measure(&mut self, sets: &[UnitSet]) -> Result<Vec<Measured>, Self::Error> {
            self.left = self.left.saturating_sub(sets.len());
            self.asked.extend(sets.iter().cloned());
            let none = || Measured::None("refused".to_owned());
            Ok(sets
                .iter()
                .map(|set| (self.value)(set).map_or_else(none, Measured::Units))
                .collect())
        }

        fn left(&self) -> usize {
            self.left
        }
    }

    fn explained(
        count: usize,
        left: usize,
        value: impl Fn(&UnitSet) -> Option<i64>,
    ) -> (Explanation, usize) {
        let mut made = Made { value, left, asked: Vec::new() };
        let found = explain(count, &mut made).expect("has ends");
        (found, made.asked.len())
    }

    fn sum(set: &UnitSet, of: &[i64]) -> i64 {
        set.iter().map(|at| of[*at]).sum()
    }

    #[test]
    fn one_key_of_many_is_found_by_halving() {
        let value = |set: &UnitSet| Some(1000 + i64::from(set.contains(&37)) * 50);
        let (found, asked) = explained(64, 20, value);
        assert_eq!((found.whole(), found.interaction()), (50, 0));
        assert_eq!(found.parts[0].units, UnitSet::from([37]));
        assert_eq!(found.parts[0].explains, Ok(50));
        assert!(!found.is_cut_short && asked <= 20, "{asked}");
    }

    #[test]
    fn keys_that_only_change_together_are_reported_together() {
        // A model has sizes that another does not have.
        let value = |set: &UnitSet| {
            let whole = set.contains(&0) == set.contains(&1);
            whole.then(|| 10 + 7 * i64::from(set.contains(&0)) + 2 * i64::from(set.contains(&2)))
        };
        let (found, _) = explained(3, 100, value);
        let parts: Vec<(&UnitSet, &Result<i64, String>)> =
            found.parts.iter().map(|part| (&part.units, &part.explains)).collect();
        assert_eq!(parts, [(&UnitSet::from([0, 1]), &Ok(7)), (&UnitSet::from([2]), &Ok(2))]);
        assert_eq!(found.rest(), 0);
    }

    #[test]
    fn interactions_of_keys_are_reported() {
        let value = |set: &UnitSet| {
            let both = i64::from(set.contains(&0) && set.contains(&1));
            Some(sum(set, &[5, 3, 0]) + 40 * both)
        };
        let (found, _) = explained(3, 100, value);
        assert_eq!(found.interaction(), 40);
        assert_eq!(found.pairs, [PairInteraction { parts: [0, 1], units: 40 }]);
        assert_eq!(found.rest(), 0);
    }

    #[test]
    fn ends_without_a_figure_are_errors() {
        let value = |set: &UnitSet| (set.len() < 2).then_some(1);
        let mut made = Made { value, left: 9, asked: Vec::new() };
        let end = EndWithoutFigure { is_good: false, reason: "refused".to_owned() };
        assert_eq!(explain(2, &mut made), Err(ExplainError::End(end)));
    }

    #[test]
    fn keys_refused_alone_are_measured_by_restoring_them() {
        let value =
            |set: &UnitSet| (!(set.len() == 1 && set.contains(&0))).then(|| sum(set, &[9, 4]));
        let (found, _) = explained(2, 9, value);
        assert_eq!(found.parts[0].origin, PartOrigin::PutBack);
        assert_eq!((found.parts[0].explains.clone(), found.interaction()), (Ok(9), 0));
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(cases(250)))]
        #[test]
        fn parts_add_up_and_each_key_is_in_one(
            effects in proptest::collection::vec(-1000_i64..1000, 1..24),
            seed in any::<u64>(),
            left in 2_usize..40,
            refused in 0_u64..4,
        ) {
            let count = effects.len();
            let value = |set: &UnitSet| {
                let mut mixed = seed;
                for at in set {
                    mixed = mixed.rotate_left(7) ^ (*at as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15);
                }
                let is_end = set.is_empty() || set.len() == count;
                let together = (mixed % 5) as i64 * i64::from(set.len() > 1);
                (is_end || mixed % 8 >= refused).then(|| sum(set, &effects) + together)
            };
            let (found, asked) = explained(count, left + 2, value);
            let known: i64 = found.parts.iter().filter_map(|part| part.explains.clone().ok()).sum();
            let pairs: i64 = found.pairs.iter().map(|pair| pair.units).sum();
            prop_assert_eq!(known + pairs + found.rest(), found.whole());
            let mut keys: Vec<usize> =
                found.parts.iter().flat_map(|part| part.units.iter().copied()).collect();
            keys.sort_unstable();
            prop_assert_eq!(keys, (0..count).collect::<Vec<_>>());
            prop_assert!(asked <= left + 2, "{} of {}", asked, left + 2);
        }
    }
}
