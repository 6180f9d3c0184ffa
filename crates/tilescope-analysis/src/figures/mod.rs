//! Figures as data: bars, layers, lines and points with axes, units and text, independent of
//! colours and pixels.
//!
//! Each result of this crate is converted to a [`Figure`] once. The window and the HTML page each
//! have one painter, so that both show the same marks, markers, names, ticks and numbers.

mod marker;
mod ticks;

pub use marker::Marker;
pub use ticks::{FigureTick, round_step};

use crate::limits::{CycleClass, WaterfallStep};
use crate::tile_curves::TileCurveLayer;
use serde::Serialize;
use std::collections::BTreeSet;
use tilescope_report::units::{exact_bytes, fine_percent, grouped, grouped_real, seconds};
use tilescope_report::{MemoryCategory, StepActivity};

/// A figure with its axes, marks and legend.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Figure {
    pub title: String,
    /// Sentences below the figure; empty if the title says enough.
    pub note: String,
    /// The horizontal axis; for bars, that of their values.
    pub x: FigureAxis,
    /// The vertical axis; for bars, that of their names.
    pub y: FigureAxis,
    /// The groups of marks, each with its colour and marker.
    pub series: Vec<FigureSeries>,
    /// Straight lines as references for the marks.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub guides: Vec<FigureGuide>,
    /// Texts at given positions.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub labels: Vec<FigureLabel>,
    pub marks: FigureMarks,
}

/// A straight line, named unless the name is empty. Painters draw the part within the axes.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct FigureGuide {
    pub name: String,
    pub from: [f64; 2],
    pub to: [f64; 2],
    pub shade: Shade,
    pub dashed: bool,
}

/// Text above and to the right of a position.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct FigureLabel {
    pub at: [f64; 2],
    pub text: String,
}

/// An axis of a figure.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct FigureAxis {
    /// Empty for an axis of names.
    pub title: String,
    pub unit: FigureUnit,
    pub logarithmic: bool,
    /// Values at both ends; without them, the ends follow from the marks and 0.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ends: Option<[f64; 2]>,
    /// Names at 0, 1, 2, … instead of numbers.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub names: Vec<String>,
}

/// The unit of numbers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum FigureUnit {
    #[default]
    Count,
    Bytes,
    Cycles,
    Seconds,
    /// A share of one.
    Share,
    /// Arbitrary numbers: such an axis is not drawn.
    None,
}

/// A group of marks of one colour and marker.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct FigureSeries {
    /// Empty for series that are not in the legend.
    pub name: String,
    /// The tooltip in the legend.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub about: String,
    pub shade: Shade,
    pub marker: Marker,
    #[serde(skip_serializing_if = "MarkWeight::is_regular")]
    pub weight: MarkWeight,
    /// True for dashed lines.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub dashed: bool,
}

/// The size of points and the width of lines.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum MarkWeight {
    Light,
    #[default]
    Regular,
    Heavy,
}

/// The role of a colour.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Shade {
    /// A whole with parts, and backgrounds.
    Whole,
    /// The only series of a figure.
    Plain,
    Text,
    /// Bounds and notes.
    Weak,
    /// The best item, or the selected one.
    Selection,
    Good,
    Warning,
    Error,
    /// Available memory.
    Capacity,
    /// One of several series side by side.
    Nth(u8),
    Class(CycleClass),
    Waterfall(WaterfallStep),
    #[serde(serialize_with = "activity_name")]
    Activity(StepActivity),
    #[serde(serialize_with = "layer_name")]
    Layer(TileCurveLayer),
}

fn activity_name<S: serde::Serializer>(
    of: &StepActivity,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(of.name())
}

fn layer_name<S: serde::Serializer>(of: &TileCurveLayer, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(of.title())
}

/// The marks of a figure: either bars, or any of the others on top of each other.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct FigureMarks {
    /// Horizontal bars, one below the other.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub bars: Vec<FigureBar>,
    /// Stacked areas, the lowest first.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub layers: Vec<FigureLayer>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub lines: Vec<FigureLine>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub points: Vec<FigurePoint>,
}

/// A row of a figure of bars.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct FigureBar {
    pub name: String,
    /// Parts from left to right; they may begin anywhere.
    pub parts: Vec<FigureBarPart>,
    /// The number after the bar.
    pub value: String,
    /// The tooltip.
    pub about: String,
    /// Text after the number, if there is space.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub note: String,
    /// The id that a click returns; `None` if the bar cannot be clicked.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub id: Option<usize>,
}

/// A part of a bar.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct FigureBarPart {
    pub from: f64,
    pub to: f64,
    /// Its index in [`Figure::series`].
    pub series: usize,
}

/// An area stacked on the previous one; value `n` covers `n` to `n + 1`.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct FigureLayer {
    /// Its index in [`Figure::series`].
    pub series: usize,
    pub values: Vec<f64>,
}

/// A point of a figure.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct FigurePoint {
    /// Infinite, `null` in JSON, for points in a strip beside the others.
    pub x: f64,
    pub y: f64,
    /// Its index in [`Figure::series`].
    pub series: usize,
    /// The id that a click returns.
    pub id: usize,
    pub name: String,
    /// The tooltip, below the name.
    pub about: String,
}

/// A line through points from left to right.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct FigureLine {
    /// Its index in [`Figure::series`].
    pub series: usize,
    pub points: Vec<[f64; 2]>,
}

impl FigureUnit {
    /// The full number with its unit.
    #[must_use]
    pub fn text(self, value: f64) -> String {
        match self {
            Self::Count | Self::None => grouped_real(value),
            Self::Bytes => exact_bytes(value.max(0.0) as u64),
            Self::Cycles => format!("{} cycles", grouped(value.max(0.0) as u64)),
            Self::Seconds => seconds(value),
            Self::Share => fine_percent(value),
        }
    }
}

impl MarkWeight {
    fn is_regular(&self) -> bool {
        *self == Self::Regular
    }
}

/// The category whose colour [`Shade::Nth`] uses; all indices beyond the last share one.
#[must_use]
pub fn category_apart(place: usize) -> MemoryCategory {
    /// Categories with clearly different colours.
    const APART: [MemoryCategory; 9] = [
        MemoryCategory::Variable,
        MemoryCategory::Constant,
        MemoryCategory::VertexFieldData,
        MemoryCategory::VertexCode,
        MemoryCategory::HostExchangeCode,
        MemoryCategory::GlobalExchangeCode,
        MemoryCategory::Message,
        MemoryCategory::ControlCode,
        MemoryCategory::Unknown,
    ];
    APART[place.min(APART.len() - 1)]
}

impl FigureAxis {
    /// Creates an axis from 0 upwards.
    #[must_use]
    pub fn new(title: impl Into<String>, unit: FigureUnit) -> Self {
        Self { title: title.into(), unit, ..Self::default() }
    }

    /// Creates a logarithmic axis.
    #[must_use]
    pub fn logarithmic(title: impl Into<String>, unit: FigureUnit) -> Self {
        Self { logarithmic: true, ..Self::new(title, unit) }
    }

    /// Creates an axis of names, with a margin of half a position at both ends.
    #[must_use]
    pub fn of_names(title: impl Into<String>, names: Vec<String>) -> Self {
        let ends = Some([-0.5, names.len() as f64 - 0.5]);
        Self { ends, names, ..Self::new(title, FigureUnit::Count) }
    }

    /// The same axis between two values.
    #[must_use]
    pub fn between(self, ends: [f64; 2]) -> Self {
        Self { ends: Some(ends), ..self }
    }

    /// The same axis around values, with a margin on both sides of `room` times their range, or of
    /// half a decade.
    #[must_use]
    pub fn around(self, values: impl IntoIterator<Item = f64>, room: f64) -> Self {
        let mut low = f64::INFINITY;
        let mut high = f64::NEG_INFINITY;
        for value in values {
            if value.is_finite() && (value > 0.0 || !self.logarithmic) {
                (low, high) = (low.min(value), high.max(value));
            }
        }
        let ends = match (self.logarithmic, low <= high) {
            (true, true) => [low / 3.0, high * 3.0],
            (true, false) => [1.0, 10.0],
            (false, false) => [0.0, 1.0],
            (false, true) => {
                // A range below this share of the largest value would magnify irrelevant changes.
                let least = 0.02 * low.abs().max(high.abs());
                let span = (high - low).max(least);
                let span = if span > 0.0 { span } else { 1.0 };
                let beside = (span - (high - low)) / 2.0 + span * room;
                // An axis of non-negative values does not extend below zero.
                let foot = low - beside;
                [if low >= 0.0 { foot.max(0.0) } else { foot }, high + beside]
            }
        };
        self.between(ends)
    }

    /// True for an axis with numbers or names.
    #[must_use]
    pub fn is_drawn(&self) -> bool {
        self.unit != FigureUnit::None || !self.names.is_empty()
    }

    /// The position of a value: its logarithm on a logarithmic axis.
    #[must_use]
    pub fn position(&self, value: f64) -> f64 {
        if self.logarithmic { value.max(f64::MIN_POSITIVE).log10() } else { value }
    }
}

impl FigureSeries {
    #[must_use]
    pub fn new(name: impl Into<String>, shade: Shade) -> Self {
        let about = String::new();
        let weight = MarkWeight::default();
        let dashed = false;
        Self { name: name.into(), about, shade, marker: Marker::of(shade), weight, dashed }
    }
}

impl FigureGuide {
    /// Creates a dashed horizontal line across the whole figure.
    #[must_use]
    pub fn level(name: impl Into<String>, height: f64, shade: Shade) -> Self {
        let [from, to] = [-1e15, 1e15].map(|x| [x, height]);
        Self { name: name.into(), from, to, shade, dashed: true }
    }
}

impl Figure {
    /// Creates a figure of bars.
    #[must_use]
    pub fn bars(
        title: impl Into<String>,
        x: FigureAxis,
        series: Vec<FigureSeries>,
        bars: Vec<FigureBar>,
    ) -> Self {
        let marks = FigureMarks { bars, ..FigureMarks::default() };
        Self { title: title.into(), x, series, marks, ..Self::default() }
    }

    /// Indices of the series that have marks, in ascending order.
    #[must_use]
    pub fn used_series(&self) -> Vec<usize> {
        let FigureMarks { bars, layers, lines, points } = &self.marks;
        let mut used = BTreeSet::new();
        used.extend(bars.iter().flat_map(|bar| &bar.parts).map(|part| part.series));
        used.extend(layers.iter().map(|layer| layer.series));
        used.extend(lines.iter().map(|line| line.series));
        used.extend(points.iter().map(|point| point.series));
        used.into_iter().filter(|place| *place < self.series.len()).collect()
    }

    /// Series of the legend: empty if each bar has its own series, or all marks share one. Series
    /// with a tooltip are always listed.
    #[must_use]
    pub fn legend(&self) -> Vec<&FigureSeries> {
        let mut named = Vec::new();
        for place in self.used_series() {
            let series = &self.series[place];
            if !series.name.is_empty() {
                named.push(series);
            }
        }
        let bars = &self.marks.bars;
        let is_listed = bars.is_empty() || bars.iter().any(|bar| bar.parts.len() > 1);
        let is_explained = named.iter().any(|series| !series.about.is_empty());
        if is_listed && (named.len() > 1 || is_explained) { named } else { Vec::new() }
    }

    /// True if the figure has no marks.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        let FigureMarks { bars, layers, lines, points } = &self.marks;
        bars.is_empty()
            && points.is_empty()
            && lines.iter().all(|line| line.points.is_empty())
            && layers.iter().all(|layer| layer.values.is_empty())
    }

    /// Sums of all layers, by position.
    #[must_use]
    pub fn tops(&self) -> Vec<f64> {
        let mut tops = Vec::new();
        for layer in &self.marks.layers {
            tops.resize(layer.values.len().max(tops.len()), 0.0);
            for (top, value) in tops.iter_mut().zip(&layer.values) {
                *top += value;
            }
        }
        tops
    }

    /// The number of positions per column of layers for at most `most` columns, and the position of
    /// each column with the largest sum, the first if several are equal.
    #[must_use]
    pub fn columns(&self, most: usize) -> (usize, Vec<usize>) {
        let tops = self.tops();
        let each = tops.len().div_ceil(most.max(1)).max(1);
        let mut fullest = Vec::new();
        for first in (0..tops.len()).step_by(each) {
            let places = (first..(first + each).min(tops.len())).rev();
            fullest.extend(places.max_by(|one, other| tops[*one].total_cmp(&tops[*other])));
        }
        (each, fullest)
    }

    /// All values of marks along an axis, 0 for the horizontal and 1 for the vertical one. Bars
    /// have no values along the vertical axis.
    fn values(&self, axis: usize) -> Vec<f64> {
        let FigureMarks { bars, lines, points, .. } = &self.marks;
        let mut values = Vec::new();
        for part in bars.iter().flat_map(|bar| &bar.parts).filter(|_| axis == 0) {
            values.extend([part.from, part.to]);
        }
        let tops = self.tops();
        match axis {
            0 => values.push(tops.len() as f64),
            _ => values.extend(tops),
        }
        values.extend(lines.iter().flat_map(|line| &line.points).map(|point| point[axis]));
        values.extend(points.iter().map(|point| [point.x, point.y][axis]));
        values.retain(|value| value.is_finite());
        values
    }

    /// The ends of an axis: its own, or else from 0, or for logarithmic axes around the values.
    #[must_use]
    pub fn bounds(&self, axis: usize) -> (f64, f64) {
        let of = [&self.x, &self.y][axis];
        if let Some([low, high]) = of.ends {
            return (low, high);
        }
        let mut values = self.values(axis);
        if of.logarithmic {
            values.retain(|value| *value > 0.0);
        } else {
            values.push(0.0);
        }
        let low = values.iter().copied().fold(f64::INFINITY, f64::min);
        let high = values.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        match (of.logarithmic, low < high) {
            (_, true) => (low, high),
            (true, false) if low.is_finite() => (low / 2.0, low * 2.0),
            (true, false) => (1.0, 10.0),
            (false, false) => (0.0, 1.0),
        }
    }

    /// True if points are in a strip beside the others, since their `x` is infinite.
    #[must_use]
    pub fn has_strip(&self) -> bool {
        self.marks.points.iter().any(|point| point.x.is_infinite())
    }

    /// The part of a guide between the ends of both axes, all in [positions](FigureAxis::position).
    #[must_use]
    pub fn guide_within(
        &self,
        guide: &FigureGuide,
        ends: [(f64, f64); 2],
    ) -> Option<[[f64; 2]; 2]> {
        let start = self.position(guide.from);
        let end = self.position(guide.to);
        let mut from = 0.0f64;
        let mut to = 1.0f64;
        for axis in 0..2 {
            let (least, most) = ends[axis];
            let step = end[axis] - start[axis];
            if step == 0.0 {
                if start[axis] < least || start[axis] > most {
                    return None;
                }
                continue;
            }
            let one = (least - start[axis]) / step;
            let other = (most - start[axis]) / step;
            from = from.max(one.min(other));
            to = to.min(one.max(other));
        }
        if from >= to {
            return None;
        }
        Some(
            [from, to]
                .map(|share| [0, 1].map(|axis| start[axis] + share * (end[axis] - start[axis]))),
        )
    }

    /// A point in [positions](FigureAxis::position) on both axes.
    fn position(&self, at: [f64; 2]) -> [f64; 2] {
        [self.x.position(at[0]), self.y.position(at[1])]
    }

    /// The name of a series; empty if there is no such series.
    fn series_name(&self, series: usize) -> &str {
        self.series.get(series).map_or("", |of| of.name.as_str())
    }

    /// The marks as text, for screen readers.
    #[must_use]
    pub fn words(&self) -> String {
        /// The largest number of points that are listed one by one.
        const MOST_POINTS: usize = 200;
        let FigureMarks { bars, layers, lines, points } = &self.marks;
        let mut words = Vec::new();
        words.extend(bars.iter().map(|bar| format!("{} {}", bar.name, bar.value)));
        for layer in layers {
            let top = self.y.unit.text(layer.values.iter().copied().fold(0.0, f64::max));
            words.push(format!("{}: at most {top}", self.series_name(layer.series)));
        }
        for line in lines {
            let name = self.series_name(line.series);
            if !name.is_empty() {
                let top = line.points.iter().map(|point| point[1]).fold(0.0, f64::max);
                words.push(format!("{name}: at most {}", self.y.unit.text(top)));
            }
        }
        if points.len() > MOST_POINTS {
            words.push(format!("{} points", grouped(points.len() as u64)));
        } else {
            words.extend(points.iter().map(|point| format!("{}: {}", point.name, point.about)));
        }
        words.join(", ")
    }
}

impl FigureBar {
    /// Creates a bar from 0 to an amount.
    #[must_use]
    pub fn of(name: impl Into<String>, amount: f64, unit: FigureUnit, series: usize) -> Self {
        let value = unit.text(amount);
        let parts = vec![FigureBarPart { from: 0.0, to: amount, series }];
        Self { name: name.into(), parts, value, ..Self::default() }
    }

    /// Creates a bar of consecutive parts, labelled with their sum.
    #[must_use]
    pub fn stacked(name: impl Into<String>, amounts: &[f64], unit: FigureUnit) -> Self {
        let mut parts = Vec::new();
        let mut end = 0.0;
        for (series, amount) in amounts.iter().enumerate() {
            if *amount > 0.0 {
                parts.push(FigureBarPart { from: end, to: end + amount, series });
                end += amount;
            }
        }
        Self { name: name.into(), parts, value: unit.text(end), ..Self::default() }
    }
}

/// The highest point of each of at most `most` stretches of a line: a line with more points than
/// pixels looks the same.
#[must_use]
pub fn peaks(points: &[[f64; 2]], most: usize) -> Vec<[f64; 2]> {
    let each = points.len().div_ceil(most.max(1)).max(1);
    let mut found = Vec::new();
    for stretch in points.chunks(each) {
        let highest = stretch.iter().max_by(|one, other| one[1].total_cmp(&other[1]));
        found.extend(highest.copied());
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stacked_bars_end_with_their_last_part() {
        let bar = FigureBar::stacked("a", &[2.0, 0.0, 3.0], FigureUnit::Cycles);
        let ends: Vec<_> = bar.parts.iter().map(|part| (part.from, part.to, part.series)).collect();
        assert_eq!(ends, [(0.0, 2.0, 0), (2.0, 5.0, 2)]);
        assert_eq!(bar.value, "5 cycles");
        let figure = Figure::bars("f", FigureAxis::default(), Vec::new(), vec![bar]);
        assert_eq!((figure.bounds(0), figure.bounds(1)), ((0.0, 5.0), (0.0, 1.0)));
        assert_eq!(figure.words(), "a 5 cycles");
    }

    #[test]
    fn a_single_series_is_in_the_legend_if_it_explains_itself() {
        let (name, about) = (String::new(), String::new());
        let point = FigurePoint { x: 1.0, y: 1.0, series: 0, id: 0, name, about };
        let mut figure = Figure {
            series: vec![FigureSeries::new("Compute 2", Shade::Good)],
            marks: FigureMarks { points: vec![point], ..FigureMarks::default() },
            ..Figure::default()
        };
        assert_eq!(figure.legend().len(), 0);
        figure.series[0].about = "Operations whose cycles mostly go into this.".to_owned();
        assert_eq!(figure.legend().len(), 1);
    }

    #[test]
    fn logarithmic_axes_have_no_zero() {
        let about = String::new;
        let point =
            |x: f64| FigurePoint { x, y: 0.0, series: 0, id: 0, name: about(), about: about() };
        let figure = |points: Vec<FigurePoint>| Figure {
            x: FigureAxis::logarithmic("", FigureUnit::Count),
            marks: FigureMarks { points, ..FigureMarks::default() },
            ..Figure::default()
        };
        assert_eq!(figure(vec![point(0.0), point(4.0), point(8.0)]).bounds(0), (4.0, 8.0));
        assert_eq!(figure(vec![point(4.0)]).bounds(0), (2.0, 8.0));
        assert_eq!(figure(vec![point(f64::INFINITY)]).bounds(0), (1.0, 10.0));
    }

    #[test]
    fn axes_have_margins_and_do_not_magnify_tiny_changes() {
        let ends = |values: &[f64]| {
            let axis = FigureAxis::default().around(values.iter().copied(), 0.15);
            axis.ends.unwrap()
        };
        assert_eq!(ends(&[]), [0.0, 1.0]);
        assert_eq!(ends(&[0.0, 0.0]), [0.0, 0.65]);
        assert_eq!(ends(&[100.0, 200.0]), [85.0, 215.0]);
        let [low, high] = ends(&[1_000_000.0, 1_000_001.0]);
        assert!(high - low > 20_000.0, "{low} {high}");
        assert_eq!(ends(&[1.0, 100.0])[0], 0.0);
    }

    #[test]
    fn guides_end_at_the_edges() {
        let (shade, dashed, name) = (Shade::Weak, false, String::new());
        let guide = |from, to| FigureGuide { name: name.clone(), from, to, shade, dashed };
        let figure = Figure::default();
        let within = |guide| figure.guide_within(&guide, [(0.0, 100.0); 2]);
        let slanted = guide([0.0, 0.0], [200.0, 200.0]);
        assert_eq!(within(slanted), Some([[0.0, 0.0], [100.0, 100.0]]));
        assert_eq!(within(guide([0.0, 150.0], [90.0, 150.0])), None);
    }

    #[test]
    fn long_lines_keep_their_peaks() {
        const MOST: usize = 1_080;
        let mut points: Vec<[f64; 2]> = (0..100_000).map(|at| [f64::from(at), 1.0]).collect();
        points[54_321][1] = 9.0;
        let kept = peaks(&points, MOST);
        assert!(kept.len() <= MOST && kept.contains(&[54_321.0, 9.0]));
    }
}
