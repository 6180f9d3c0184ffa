//! Distributions of figures: sums, percentiles and bars.

use tilescope_report::trace::{LogHistogram, ProgramStepTotals, Trace};

/// The largest number of bars of a histogram.
const MAX_BARS: usize = 32;

/// Statistics of a list of figures.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct ValueStatistics {
    pub count: u64,
    pub sum: u128,
    pub min: u64,
    /// The median: half of the figures are no larger.
    pub p50: u64,
    /// 90 % of the figures are no larger.
    pub p90: u64,
    /// 99 % of the figures are no larger.
    pub p99: u64,
    pub max: u64,
    /// Sum / count; 0 without figures.
    pub mean: f64,
    /// Standard deviation of the population (not of a sample).
    pub deviation: f64,
    /// True if percentiles are exact; otherwise they are too large by at most one eighth.
    pub exact_percentiles: bool,
}

impl ValueStatistics {
    /// Computes the statistics of figures in any order, and sorts them.
    pub fn from_values(values: &mut [u64]) -> Self {
        values.sort_unstable();
        let (Some(min), Some(max)) = (values.first().copied(), values.last().copied()) else {
            return Self::default();
        };
        let count = values.len();
        let sum: u128 = values.iter().map(|value| u128::from(*value)).sum();
        let mean = sum as f64 / count as f64;
        let squares = values.iter().map(|value| (*value as f64 - mean).powi(2)).sum::<f64>();
        // The nearest rank: the smallest figure with at least this percentage of all at or below
        // it.
        let rank = |percent: usize| values[(count * percent).div_ceil(100).max(1) - 1];
        debug_assert!(
            u128::from(min) * count as u128 <= sum && sum <= u128::from(max) * count as u128
        );
        Self {
            count: count as u64,
            sum,
            min,
            p50: rank(50),
            p90: rank(90),
            p99: rank(99),
            max,
            mean,
            deviation: (squares / count as f64).sqrt(),
            exact_percentiles: true,
        }
    }

    /// Names and figures, in the order of lists; means are rounded.
    pub fn rows(&self) -> [(&'static str, u128); 9] {
        let percentiles = if self.exact_percentiles {
            ["p50", "p90", "p99"]
        } else {
            ["p50 ≤", "p90 ≤", "p99 ≤"]
        };
        [
            ("Count", self.count.into()),
            ("Sum", self.sum),
            ("Min", self.min.into()),
            ("Mean", self.mean.round() as u128),
            (percentiles[0], self.p50.into()),
            (percentiles[1], self.p90.into()),
            (percentiles[2], self.p99.into()),
            ("Max", self.max.into()),
            ("Standard deviation", self.deviation.round() as u128),
        ]
    }
}

/// A bar of a histogram: the number of figures from `first` to `last`, inclusive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HistogramBar {
    /// The smallest figure of the bar.
    pub first: u64,
    pub last: u64,
    /// Number of figures.
    pub count: u64,
}

/// Bars over sorted figures, without gaps: of equal width, or by powers of two if the largest
/// figure is more than a thousand times the smallest.
fn histogram(sorted: &[u64]) -> Vec<HistogramBar> {
    let (Some(min), Some(max)) = (sorted.first().copied(), sorted.last().copied()) else {
        return Vec::new();
    };
    debug_assert!(sorted.is_sorted(), "bars are cut from sorted figures");
    let mut bars = Vec::new();
    let mut first = min;
    let mut from = 0;
    let width = (max - min) / MAX_BARS as u64 + 1;
    let powers = max / min.max(1) > 1000;
    loop {
        let last = match first.checked_next_power_of_two().and_then(|p| p.checked_mul(2)) {
            Some(next) if powers => (next - 1).max(first),
            None if powers => u64::MAX,
            _ => first.saturating_add(width - 1),
        };
        let last = last.min(max);
        let to = sorted.partition_point(|value| *value <= last);
        bars.push(HistogramBar { first, last, count: (to - from) as u64 });
        if last == max {
            debug_assert_eq!(
                bars.iter().map(|bar| bar.count).sum::<u64>(),
                sorted.len() as u64,
                "every figure is in one bar"
            );
            return bars;
        }
        (first, from) = (last + 1, to);
    }
}

/// The largest number of figures that are kept one by one.
const MAX_EXACT_VALUES: u64 = 1 << 20;

/// Figures to be described: individual values while they are few, beyond that buckets of a
/// histogram with exact sums.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ValueDistribution {
    single: Vec<u64>,
    buckets: LogHistogram,
    sum: u128,
    squares: u128,
}

impl ValueDistribution {
    /// Adds a figure.
    pub(crate) fn add(&mut self, value: u64) {
        self.add_times(value, 1);
        if (self.single.len() as u64) < MAX_EXACT_VALUES {
            self.single.push(value);
        }
    }

    /// Adds a figure `times` times.
    pub(crate) fn add_times(&mut self, value: u64, times: u64) {
        self.buckets.count_times(value, times);
        let value = u128::from(value);
        let times = u128::from(times);
        self.sum = self.sum.saturating_add(value * times);
        self.squares = self.squares.saturating_add((value * value).saturating_mul(times));
    }

    /// Adds the lengths of steps.
    pub(crate) fn add_lengths(&mut self, totals: &ProgramStepTotals) {
        self.sum = self.sum.saturating_add(totals.cycles.0.into());
        self.squares = self.squares.saturating_add(totals.squared_cycles);
        self.buckets.add(&totals.lengths);
    }

    /// True if every figure is known exactly, not only by its bucket.
    fn is_exact(&self) -> bool {
        self.single.len() as u64 == self.buckets.total()
    }

    /// The statistics of all figures. If there are too many to keep, percentiles are those of
    /// buckets: too large by at most one eighth.
    pub fn statistics(&self) -> ValueStatistics {
        if self.is_exact() {
            return ValueStatistics::from_values(&mut self.single.clone());
        }
        let percentile = |percent| self.buckets.percentile(percent).unwrap_or(0);
        let count = self.buckets.total();
        let mean = self.sum as f64 / count as f64;
        let variance = (self.squares as f64 / count as f64 - mean * mean).max(0.0);
        ValueStatistics {
            count,
            sum: self.sum,
            min: self.buckets.shortest().unwrap_or(0),
            p50: percentile(50),
            p90: percentile(90),
            p99: percentile(99),
            max: self.buckets.longest().unwrap_or(0),
            mean,
            deviation: variance.sqrt(),
            exact_percentiles: false,
        }
    }

    /// The bars of a histogram.
    pub fn bars(&self) -> Vec<HistogramBar> {
        if self.is_exact() {
            let mut sorted = self.single.clone();
            sorted.sort_unstable();
            return histogram(&sorted);
        }
        let mut bars = Vec::new();
        for (range, count) in self.buckets.iter() {
            bars.push(HistogramBar { first: *range.start(), last: *range.end(), count });
        }
        while bars.len() > MAX_BARS {
            let joined = bars.chunks(2).map(|pair| HistogramBar {
                first: pair[0].first,
                last: pair[pair.len() - 1].last,
                count: pair.iter().map(|bar| bar.count).sum(),
            });
            bars = joined.collect();
        }
        bars
    }
}

/// True if the steps of a trace are few enough to be read one by one.
pub(crate) fn is_short(trace: &Trace) -> bool {
    trace.bars() <= MAX_EXACT_VALUES
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use tilescope_test_tiers::cases;

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(cases(250)))]
        #[test]
        fn figures_are_in_order_and_add_up(mut values in proptest::collection::vec(any::<u64>(), 0..200)) {
            let of = ValueStatistics::from_values(&mut values);
            prop_assert_eq!(of.count, values.len() as u64);
            prop_assert_eq!(of.sum, values.iter().map(|value| u128::from(*value)).sum::<u128>());
            let order = [of.min, of.p50, of.p90, of.p99, of.max];
            prop_assert!(order.is_sorted());
            prop_assert!(of.mean >= of.min as f64 * (1.0 - 1e-12));
            prop_assert!(of.mean <= of.max as f64 * (1.0 + 1e-12) || values.is_empty());
            // No list has a standard deviation above half of its range.
            prop_assert!(of.deviation <= (of.max - of.min) as f64 / 2.0 * (1.0 + 1e-9) + 1.0);
        }

        #[test]
        fn bars_hold_every_figure_once(mut values in proptest::collection::vec(
            prop_oneof![any::<u64>(), 0u64..5000], 1..200))
        {
            values.sort_unstable();
            let bars = histogram(&values);
            prop_assert!(bars.len() <= 65);
            prop_assert_eq!(bars.iter().map(|bar| bar.count).sum::<u64>(), values.len() as u64);
            prop_assert_eq!(bars.first().map(|bar| bar.first), values.first().copied());
            prop_assert_eq!(bars.last().map(|bar| bar.last), values.last().copied());
            for pair in bars.windows(2) {
                prop_assert_eq!(pair[0].last + 1, pair[1].first);
            }
            for bar in bars {
                let inside = values.iter().filter(|value| (bar.first..=bar.last).contains(value));
                prop_assert_eq!(inside.count() as u64, bar.count);
            }
        }
    }

    #[test]
    fn figures_of_a_known_list() {
        let mut values: Vec<u64> = (1..=100).rev().collect();
        let of = ValueStatistics::from_values(&mut values);
        assert_eq!((of.p50, of.p90, of.p99, of.max), (50, 90, 99, 100));
        assert_eq!((of.mean, of.sum), (50.5, 5050));
        assert!((of.deviation - 28.866).abs() < 0.001);
        assert_eq!(ValueStatistics::from_values(&mut []), ValueStatistics::default());
    }
}
