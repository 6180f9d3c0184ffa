//! The split of a chain of blocks into stages that minimises the longest stage.

use std::ops::Range;
use tilescope_report::units::Cycles;

/// Splits `costs`, one per block in order, into at most `stages` ranges with the smallest maximum
/// sum. Among such splits, the earlier ranges are as long as possible.
pub(crate) fn split_balanced(costs: &[Cycles], stages: usize) -> Vec<Range<usize>> {
    let stages = stages.clamp(1, costs.len().max(1));
    let total: Cycles = costs.iter().sum();
    let mut low = costs.iter().copied().max().unwrap_or_default();
    let mut high = total;
    while low < high {
        let middle = low + (high - low) / 2;
        if split_within_bound(costs, middle).len() <= stages {
            high = middle
        } else {
            low = middle + Cycles(1)
        }
    }
    let mut split = split_within_bound(costs, low);
    // With fewer ranges than stages, IPUs would be idle, so the longest ranges are cut.
    while split.len() < stages {
        let longest = (0..split.len())
            .filter(|at| split[*at].len() > 1)
            .max_by_key(|at| costs[split[*at].clone()].iter().sum::<Cycles>());
        let Some(at) = longest else { break };
        let whole = split[at].clone();
        let parts = split_balanced(&costs[whole.clone()], 2);
        let cut = whole.start + parts[0].len();
        split.splice(at..=at, [whole.start..cut, cut..whole.end]);
    }
    debug_assert!(
        split.windows(2).all(|pair| pair[0].end == pair[1].start),
        "stages are contiguous"
    );
    debug_assert_eq!(split.iter().map(Range::len).sum::<usize>(), costs.len(), "no block is lost");
    split
}

/// Takes the longest ranges from the front that cost at most `bound` each.
fn split_within_bound(costs: &[Cycles], bound: Cycles) -> Vec<Range<usize>> {
    let mut split = Vec::new();
    let mut start = 0;
    let mut sum = Cycles::ZERO;
    for (at, cost) in costs.iter().enumerate() {
        if at > start && sum + *cost > bound {
            split.push(start..at);
            (start, sum) = (at, Cycles::ZERO);
        }
        sum += *cost;
    }
    split.push(start..costs.len());
    split
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use tilescope_test_tiers::cases;

    /// The smallest maximum sum, found by trying every cut.
    fn best(costs: &[Cycles], stages: usize) -> Cycles {
        if stages == 1 {
            return costs.iter().sum();
        }
        let cut =
            |at: usize| costs[..at].iter().sum::<Cycles>().max(best(&costs[at..], stages - 1));
        (1..costs.len()).map(cut).chain([costs.iter().sum()]).min().unwrap_or_default()
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(cases(250)))]
        #[test]
        fn no_other_split_has_a_shorter_longest_stage(
            costs in proptest::collection::vec((1u64..100).prop_map(Cycles), 1..9), stages in 1usize..5
        ) {
            let split = split_balanced(&costs, stages);
            prop_assert_eq!(split.len(), stages.min(costs.len()));
            prop_assert_eq!(split[0].start, 0);
            prop_assert_eq!(split[split.len() - 1].end, costs.len());
            prop_assert!(split.windows(2).all(|pair| pair[0].end == pair[1].start));
            let longest = split.iter().map(|part| costs[part.clone()].iter().sum::<Cycles>()).max();
            prop_assert_eq!(longest.unwrap_or_default(), best(&costs, stages));
        }
    }
}
