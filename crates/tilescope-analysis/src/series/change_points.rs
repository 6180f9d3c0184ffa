//! Detection of lasting changes of a figure over a series of runs.
//!
//! 1. Changes are relative: logarithms of positive values, otherwise shares of the largest value.
//! 2. A single deviating run is not a change: each value is replaced by the median of itself and
//!    its two neighbours, except at both ends.
//! 3. Noise is the median difference between neighbours. Deterministic simulations have none.
//! 4. The series is cut into segments of constant level: the least sum of squares, with a penalty
//!    per segment that grows with the noise (optimal partitioning, pruned as in PELT: Killick,
//!    Fearnhead and Eckley, 2012).
//! 5. A line is fitted to both sides of each cut. If the lines meet at the cut, within the
//!    threshold and the effect of noise, the figure drifts instead of jumping: the cut is removed,
//!    the weakest first.
//!
//! The algorithm is deterministic: the same values give the same changes on every machine, without
//! random numbers.

use serde::Serialize;
use std::ops::Range;

/// The default of the smallest reported change: one percent.
pub const DEFAULT_THRESHOLD: f64 = 0.01;

/// Number of runs on each side of a change for the reported medians.
const LEVEL_RUNS: usize = 5;

/// The smallest number of runs for fitting a line instead of a level.
const LINE_RUNS: usize = 3;

/// The smallest jump, drift and deviation of a single run, in multiples of the noise.
const JUMP_NOISE: f64 = 4.0;
const DRIFT_NOISE: f64 = 3.0;
const OUTLIER_NOISE: f64 = 5.0;

/// Ratio of the standard deviation of normal noise to the median difference between neighbours.
const NOISE_OF_DIFFERENCES: f64 = 1.048_4;

/// The behaviour of a figure over a series of runs.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct FigureTrend {
    /// Jumps to another level, in the order of runs.
    pub changes: Vec<ChangePoint>,
    /// Gradual changes from run to run.
    pub drifts: Vec<FigureDrift>,
    /// Runs that deviate from their neighbours.
    pub outliers: Vec<usize>,
}

/// A jump between two runs.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct ChangePoint {
    /// The first run of the new level.
    pub run: usize,
    /// The last run of the old level.
    pub previous: usize,
    /// Median of the runs before it, at most five.
    pub before: f64,
    /// Median of the runs after it, at most five.
    pub after: f64,
    /// The difference as a share of the value before; `None` if that was zero.
    pub share: Option<f64>,
    /// True if each side has a second run that agrees.
    pub confirmed: bool,
}

/// A segment in which a figure changes gradually from run to run.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct FigureDrift {
    pub first: usize,
    pub last: usize,
    /// The change per run, as a share.
    pub share_per_run: f64,
}

/// The behaviour of a figure over a series of runs; runs without the figure are skipped. Reported
/// changes are at least `threshold`, as a share.
///
/// Takes O(n) time if there are many changes, and at most O(n²), for n runs.
pub fn trend(values: &[Option<f64>], threshold: f64) -> FigureTrend {
    let present = values.iter().enumerate();
    let present: Vec<(usize, f64)> = present
        .filter_map(|(run, value)| Some((run, (*value)?)))
        .filter(|(_, value)| value.is_finite())
        .collect();
    let raw: Vec<f64> = present.iter().map(|(_, value)| *value).collect();
    let Some(scaled) = scaled(&raw) else { return FigureTrend::default() };
    let least = threshold.max(0.0).ln_1p().max(1e-9);
    let (low, high) = extremes(&scaled);
    if high - low < least {
        return FigureTrend::default();
    }
    let levels = ScaledSeries::new(&scaled, least);
    let stretches = levels.stretches();
    let runs: Vec<usize> = present.iter().map(|(run, _)| *run).collect();
    let changes = stretches.windows(2).map(|pair| change(&raw, &runs, &pair[0], &pair[1]));
    let drifts = stretches.iter().filter_map(|of| {
        let share_per_run = levels.drift(of)?;
        Some(FigureDrift { first: runs[of.start], last: runs[of.end - 1], share_per_run })
    });
    let outliers = stretches.iter().flat_map(|of| levels.outliers(&scaled, of));
    FigureTrend {
        changes: changes.collect(),
        drifts: drifts.collect(),
        outliers: outliers.map(|at| runs[at]).collect(),
    }
}

/// Values whose differences are relative changes; `None` if there are fewer than two, or all are
/// zero.
fn scaled(values: &[f64]) -> Option<Vec<f64>> {
    if values.len() < 2 {
        return None;
    }
    if values.iter().all(|value| *value > 0.0) {
        return Some(values.iter().map(|value| value.ln()).collect());
    }
    let largest = values.iter().fold(0.0_f64, |most, value| most.max(value.abs()));
    if largest > 0.0 { Some(values.iter().map(|value| value / largest).collect()) } else { None }
}

fn extremes(values: &[f64]) -> (f64, f64) {
    let ends = (f64::INFINITY, f64::NEG_INFINITY);
    values.iter().fold(ends, |(low, high), value| (low.min(*value), high.max(*value)))
}

/// The lower median, so that the result is one of the values.
fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values.get(values.len().saturating_sub(1) / 2).copied().unwrap_or(0.0)
}

/// The jump between two adjacent segments.
fn change(raw: &[f64], runs: &[usize], before: &Range<usize>, after: &Range<usize>) -> ChangePoint {
    let first = before.start.max(before.end.saturating_sub(LEVEL_RUNS));
    let last = after.end.min(after.start + LEVEL_RUNS);
    let old = median(raw[first..before.end].to_vec());
    let new = median(raw[after.start..last].to_vec());
    ChangePoint {
        run: runs[after.start],
        previous: runs[before.end - 1],
        before: old,
        after: new,
        share: if old != 0.0 { Some((new - old) / old.abs()) } else { None },
        confirmed: before.len() > 1 && after.len() > 1,
    }
}

/// A line fitted to a segment: its value in the middle, its slope, and the variance at its ends for
/// noise with a standard deviation of one.
struct FittedLine {
    middle: f64,
    mean: f64,
    slope: f64,
    variance: f64,
}

impl FittedLine {
    fn at(&self, place: f64) -> f64 {
        self.mean + self.slope * (place - self.middle)
    }
}

/// Relative values with single deviating runs smoothed, and their prefix sums.
struct ScaledSeries {
    /// Prefix sums of values, of their squares, and of values times their index.
    sums: Vec<[f64; 3]>,
    noise: f64,
    /// The smallest reported change.
    least: f64,
}

impl ScaledSeries {
    fn new(scaled: &[f64], least: f64) -> Self {
        let differences = scaled.windows(2).map(|pair| (pair[1] - pair[0]).abs()).collect();
        // The only difference between two runs is not noise: it is the change in question.
        let noise = match scaled {
            [_, _] => 0.0,
            _ => NOISE_OF_DIFFERENCES * median(differences),
        };
        let last = scaled.len() - 1;
        let smooth = scaled.iter().enumerate().map(|(at, value)| match at {
            0 => *value,
            at if at == last => *value,
            at => median(scaled[at - 1..=at + 1].to_vec()),
        });
        let mut sums = vec![[0.0; 3]];
        // Relative to the first value, to preserve small differences between large values.
        let from = scaled[0];
        for (at, value) in smooth.enumerate() {
            let (value, [sum, squares, moments]) = (value - from, sums[at]);
            sums.push([sum + value, squares + value * value, moments + value * at as f64]);
        }
        Self { sums, noise, least }
    }

    fn count(&self) -> usize {
        self.sums.len() - 1
    }

    fn sum(&self, of: &Range<usize>, which: usize) -> f64 {
        self.sums[of.end][which] - self.sums[of.start][which]
    }

    /// Sum of squared deviations from the mean.
    fn cost(&self, of: &Range<usize>) -> f64 {
        let sum = self.sum(of, 0);
        (self.sum(of, 1) - sum * sum / of.len() as f64).max(0.0)
    }

    fn line(&self, of: &Range<usize>) -> FittedLine {
        let count = of.len() as f64;
        let middle = of.start as f64 + (count - 1.0) / 2.0;
        let mean = self.sum(of, 0) / count;
        if of.len() < LINE_RUNS {
            return FittedLine { middle, mean, slope: 0.0, variance: 1.0 / count };
        }
        let spread = count * (count * count - 1.0) / 12.0;
        let slope = (self.sum(of, 2) - middle * self.sum(of, 0)) / spread;
        FittedLine { middle, mean, slope, variance: 4.0 / count }
    }

    /// Segments between changes, in order.
    fn stretches(&self) -> Vec<Range<usize>> {
        let mut starts = self.levels();
        starts.push(self.count());
        let mut stretches: Vec<Range<usize>> =
            starts.windows(2).map(|ends| ends[0]..ends[1]).collect();
        let strength = |pair: &[Range<usize>]| self.strength(&pair[0], &pair[1]);
        let mut strengths: Vec<f64> = stretches.windows(2).map(strength).collect();
        loop {
            let weakest = strengths.iter().enumerate().min_by(|a, b| a.1.total_cmp(b.1));
            let Some((at, _)) = weakest.filter(|(_, strength)| **strength < 1.0) else { break };
            let joined = stretches[at].start..stretches[at + 1].end;
            stretches.splice(at..at + 2, [joined]);
            strengths.remove(at);
            for beside in at.saturating_sub(1)..(at + 1).min(strengths.len()) {
                strengths[beside] = strength(&stretches[beside..beside + 2]);
            }
        }
        stretches
    }

    /// Starts of segments of constant level, by optimal partitioning.
    fn levels(&self) -> Vec<usize> {
        let count = self.count();
        let of_noise = 3.0 * (count as f64).ln() * self.noise * self.noise;
        let penalty = of_noise.max(self.least * self.least / 4.0);
        let mut best = vec![-penalty];
        let mut begins = vec![0];
        let mut candidates = vec![0];
        for end in 1..=count {
            let mut costs: Vec<(usize, f64)> = Vec::new();
            for start in candidates {
                costs.push((start, best[start] + self.cost(&(start..end))));
            }
            let cheapest = costs.iter().copied().min_by(|a, b| a.1.total_cmp(&b.1));
            let (start, least) = cheapest.unwrap_or((0, f64::INFINITY));
            let total = least + penalty;
            best.push(total);
            begins.push(start);
            // A candidate that is worse by the penalty now stays worse for every later end.
            candidates = costs.into_iter().filter(|of| of.1 <= total).map(|of| of.0).collect();
            candidates.push(end);
        }
        let mut starts = Vec::new();
        let mut end = count;
        while end > 0 {
            end = begins[end];
            starts.push(end);
        }
        starts.reverse();
        starts
    }

    /// The jump between two segments, relative to its required minimum.
    fn strength(&self, before: &Range<usize>, after: &Range<usize>) -> f64 {
        let old = self.line(before);
        let new = self.line(after);
        let between = before.end as f64 - 0.5;
        let jump = (new.at(between) - old.at(between)).abs();
        let of_noise = JUMP_NOISE * self.noise * (old.variance + new.variance).sqrt();
        jump / self.least.max(of_noise)
    }

    /// The change per run of a segment, if it exceeds the noise.
    fn drift(&self, of: &Range<usize>) -> Option<f64> {
        if of.len() <= LINE_RUNS {
            return None;
        }
        let slope = self.line(of).slope;
        let rise = (slope * (of.len() - 1) as f64).abs();
        let of_noise = DRIFT_NOISE * self.noise * (12.0 / of.len() as f64).sqrt();
        if rise >= self.least.max(of_noise) { Some(slope.exp_m1()) } else { None }
    }

    /// Deviating runs of a segment.
    fn outliers<'a>(
        &'a self,
        scaled: &'a [f64],
        of: &Range<usize>,
    ) -> impl Iterator<Item = usize> + 'a {
        let level = median(scaled[of.clone()].to_vec());
        let line = self.drift(of).map(|_| self.line(of));
        let limit = self.least.max(OUTLIER_NOISE * self.noise);
        let enough = of.len() >= LINE_RUNS;
        of.clone().filter(move |at| {
            let expected = match &line {
                Some(line) => line.at(*at as f64) + scaled[0],
                None => level,
            };
            enough && (scaled[*at] - expected).abs() >= limit
        })
    }
}
