//! Values that stand on each other, and their units.

use crate::gui::widgets::axis::tick_step;
use crate::units::{Bytes, grouped};
use std::ops::Range;

/// What values are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    /// Bytes; the axis is marked in powers of two.
    Bytes,
    /// Plain numbers of anything.
    Count(&'static str),
}

impl Unit {
    /// A value in words.
    pub fn text(self, value: u64) -> String {
        match self {
            Self::Bytes => Bytes(value).to_string(),
            Self::Count(what) => format!("{} {what}", grouped(value)),
        }
    }

    /// Distance between marks for about `count` of them up to `top`.
    pub(super) fn step(self, top: f64, count: f64) -> f64 {
        let least = (top / count).max(1.0);
        match self {
            Self::Bytes => 2f64.powf(least.log2().ceil()),
            Self::Count(_) => tick_step(least, 1.0) as f64,
        }
    }
}

/// Values of one meaning, by place.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Layer {
    /// What they are.
    pub title: String,
    /// One value per place.
    pub values: Vec<u64>,
}

/// Layers with their sums.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Stack {
    pub(super) layers: Vec<Layer>,
    /// Sums of the first layers, place by place: one list per layer.
    pub(super) sums: Vec<Vec<u64>>,
    pub(super) places: usize,
}

impl Stack {
    /// Layers from the bottom to the top.
    pub fn new(layers: Vec<Layer>) -> Self {
        let places = layers.iter().map(|layer| layer.values.len()).max().unwrap_or(0);
        let mut sum = vec![0u64; places];
        let mut sums = Vec::with_capacity(layers.len());
        for layer in &layers {
            for (sum, value) in sum.iter_mut().zip(&layer.values) {
                *sum = sum.saturating_add(*value);
            }
            sums.push(sum.clone());
        }
        Self { layers, sums, places }
    }

    /// Number of places.
    pub fn places(&self) -> usize {
        self.places
    }

    /// Sum of all layers at a place.
    pub fn total(&self, place: usize) -> u64 {
        self.sums.last().and_then(|sums| sums.get(place)).copied().unwrap_or(0)
    }

    /// The largest sum in a range of places.
    pub(super) fn highest(&self, places: Range<usize>) -> u64 {
        let end = places.end.min(self.places);
        let sums = self.sums.last().map_or(&[][..], |sums| &sums[places.start.min(end)..end]);
        sums.iter().copied().max().unwrap_or(0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn layers_stand_on_each_other() {
        let layer = |values: &[u64]| Layer { title: String::new(), values: values.to_vec() };
        let stack = Stack::new(vec![layer(&[5, 5, 5]), layer(&[0, 7, 1])]);
        assert_eq!(stack.places(), 3);
        assert_eq!([0, 1, 2, 3].map(|place| stack.total(place)), [5, 12, 6, 0]);
        assert_eq!(stack.highest(0..9), 12);
        assert_eq!(stack.highest(2..3), 6);
    }

    #[test]
    fn marks_are_round() {
        assert_eq!(Unit::Bytes.step(100_000.0, 7.0), 16_384.0);
        assert_eq!(Unit::Count("cycles").step(100_000.0, 7.0), 20_000.0);
        assert_eq!(Unit::Count("cycles").step(3.0, 7.0), 1.0);
    }
}
