//! Stacked values, and their maximum sums over any range of places.

use crate::widgets::pan_zoom_axis::tick_step;
use std::ops::Range;
use tilescope_analysis::tile_curves::TileCurveUnit;

/// The number of values that one value of the next level covers.
const FANOUT: usize = 8;

/// Values with one meaning, by place.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct StackLayer {
    pub title: String,
    /// The values, one per place.
    pub values: Vec<u64>,
}

/// Values whose maximum over any range takes O(log n): level `k` holds the maximum of each
/// `FANOUT`^k neighbours. All levels together take a seventh of the values' memory.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct RangeMaxima {
    levels: Vec<Vec<u64>>,
}

impl RangeMaxima {
    fn new(values: Vec<u64>) -> Self {
        let mut levels = vec![values];
        while let Some(last) = levels.last().filter(|last| last.len() >= FANOUT) {
            let next = last.chunks(FANOUT).map(|part| part.iter().copied().max().unwrap_or(0));
            levels.push(next.collect());
        }
        Self { levels }
    }

    fn get(&self, place: usize) -> u64 {
        self.levels[0].get(place).copied().unwrap_or(0)
    }

    fn highest(&self, places: Range<usize>) -> u64 {
        let mut end = places.end.min(self.levels[0].len());
        let mut start = places.start.min(end);
        let mut highest = 0;
        for level in &self.levels {
            // The partial groups at the ends are checked value by value; the rest are whole groups
            // of the next level.
            while start < end && !start.is_multiple_of(FANOUT) {
                highest = highest.max(level[start]);
                start += 1;
            }
            while start < end && !end.is_multiple_of(FANOUT) {
                end -= 1;
                highest = highest.max(level[end]);
            }
            (start, end) = (start / FANOUT, end / FANOUT);
        }
        highest
    }
}

/// The layers with their sums.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct StackedValues {
    titles: Vec<String>,
    /// The top of each layer, by place.
    sums: Vec<RangeMaxima>,
    places: usize,
    /// True if all layers start at zero instead of on top of each other.
    overlaid: bool,
}

impl StackedValues {
    /// Stacks layers from the bottom to the top.
    pub(crate) fn new(layers: Vec<StackLayer>) -> Self {
        let places = layers.iter().map(|layer| layer.values.len()).max().unwrap_or(0);
        let mut sum = vec![0u64; places];
        let mut stack = Self { places, ..Self::default() };
        for layer in layers {
            for (sum, value) in sum.iter_mut().zip(&layer.values) {
                *sum = sum.saturating_add(*value);
            }
            stack.titles.push(layer.title);
            stack.sums.push(RangeMaxima::new(sum.clone()));
        }
        stack
    }

    /// Layers that overlap and all start at zero: the values of several compared objects,
    /// not the parts of one.
    pub(crate) fn overlaid(layers: Vec<StackLayer>) -> Self {
        let places = layers.iter().map(|layer| layer.values.len()).max().unwrap_or(0);
        let titles = layers.iter().map(|layer| layer.title.clone()).collect();
        let sums = layers.into_iter().map(|layer| RangeMaxima::new(layer.values)).collect();
        Self { titles, sums, places, overlaid: true }
    }

    /// Returns true if all layers start at zero.
    pub(super) fn is_overlaid(&self) -> bool {
        self.overlaid
    }

    pub(crate) fn places(&self) -> usize {
        self.places
    }

    /// The titles of the layers, from the bottom to the top.
    pub(crate) fn titles(&self) -> &[String] {
        &self.titles
    }

    /// The height of all layers at a place: their sum, or the maximum of compared layers.
    pub(crate) fn total(&self, place: usize) -> u64 {
        self.topmost_layers().iter().map(|sums| sums.get(place)).max().unwrap_or(0)
    }

    /// The layers that may reach highest: the last one of stacked layers, any of compared ones.
    fn topmost_layers(&self) -> &[RangeMaxima] {
        let first = if self.overlaid { 0 } else { self.sums.len().saturating_sub(1) };
        self.sums.get(first..).unwrap_or_default()
    }

    /// The value of one layer at a place.
    pub(crate) fn value(&self, layer: usize, place: usize) -> u64 {
        let sum_to = |layer: usize| self.sums.get(layer).map_or(0, |sums| sums.get(place));
        let below = layer.checked_sub(1).filter(|_| !self.overlaid);
        // No underflow: sums never shrink from one layer to the next.
        sum_to(layer) - below.map_or(0, sum_to)
    }

    /// The highest top of all layers in a range of places.
    pub(crate) fn highest(&self, places: Range<usize>) -> u64 {
        self.topmost_layers().iter().map(|sums| sums.highest(places.clone())).max().unwrap_or(0)
    }

    /// The highest top of one layer in a range of places.
    pub(super) fn highest_upto(&self, layer: usize, places: Range<usize>) -> u64 {
        self.sums.get(layer).map_or(0, |sums| sums.highest(places))
    }
}

/// The distance between marks for about `count` of them up to `top`: powers of two for bytes, round
/// numbers for everything else.
pub(super) fn mark_step(unit: TileCurveUnit, top: f64, count: f64) -> f64 {
    let least = (top / count).max(1.0);
    match unit {
        TileCurveUnit::Bytes => 2f64.powf(least.log2().ceil()),
        TileCurveUnit::Count | TileCurveUnit::Cycles => tick_step(least, 1.0) as f64,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn layers_are_stacked() {
        let layer = |values: &[u64]| StackLayer { title: String::new(), values: values.to_vec() };
        let stack = StackedValues::new(vec![layer(&[5, 5, 5]), layer(&[0, 7, 1])]);
        assert_eq!(stack.places(), 3);
        assert_eq!([0, 1, 2, 3].map(|place| stack.total(place)), [5, 12, 6, 0]);
        assert_eq!([0, 1, 2, 3].map(|place| stack.value(1, place)), [0, 7, 1, 0]);
        assert_eq!(stack.highest(0..9), 12);
        assert_eq!(stack.highest(2..3), 6);
    }

    #[test]
    fn overlaid_layers_keep_their_own_values() {
        let layer = |values: &[u64]| StackLayer { title: String::new(), values: values.to_vec() };
        let stack = StackedValues::overlaid(vec![layer(&[5, 5, 5]), layer(&[0, 7, 1, 2])]);
        assert_eq!(stack.places(), 4);
        assert_eq!([0, 1, 2, 3].map(|place| stack.total(place)), [5, 7, 5, 2]);
        assert_eq!([0, 1, 2, 3].map(|place| stack.value(1, place)), [0, 7, 1, 2]);
        assert_eq!(stack.highest(0..9), 7);
        assert_eq!(stack.highest(2..4), 5);
        assert_eq!(StackedValues::overlaid(Vec::new()).highest(0..9), 0);
    }

    #[test]
    fn the_maximum_of_any_range_is_that_of_its_values() {
        // Covers whole groups on every level as well as partial ones.
        for count in [0, 1, 7, 8, 9, 64, 65, 512, 700u64] {
            let values: Vec<u64> = (0..count).map(|at| at * 7919 % 1009 + 1).collect();
            let maxima = RangeMaxima::new(values.clone());
            let count = values.len();
            for start in (0..count).step_by(1 + count / 50) {
                for end in (start..=count).step_by(1 + count / 60).chain([count, count + 20]) {
                    let expected = values[start..end.min(count)].iter().copied().max();
                    assert_eq!(maxima.highest(start..end), expected.unwrap_or(0), "{start}..{end}");
                }
            }
        }
    }

    #[test]
    fn marks_are_round() {
        assert_eq!(mark_step(TileCurveUnit::Bytes, 100_000.0, 7.0), 16_384.0);
        assert_eq!(mark_step(TileCurveUnit::Cycles, 100_000.0, 7.0), 20_000.0);
        assert_eq!(mark_step(TileCurveUnit::Count, 3.0, 7.0), 1.0);
    }
}
