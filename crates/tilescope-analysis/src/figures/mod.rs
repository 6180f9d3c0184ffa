//! Figures as data: bars, points and lines with axes, units and words, without colours and pixels.
//!
//! An answer of this crate becomes a [`Figure`] once. The window and the HTML page each have one
//! painter, so that both show the same marks, markers, names and numbers.

mod marker;

pub use marker::Marker;

use crate::limits::{CycleClass, WaterfallStep};
use serde::Serialize;
use std::collections::BTreeSet;
use tilescope_report::units::{exact_bytes, fine_percent, grouped, grouped_real};
use tilescope_report::{MemoryCategory, StepActivity};

/// A figure.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Figure {
    pub title: String,
    /// Sentences below it; empty where the title says it all.
    pub note: String,
    /// The horizontal axis: of the values of bars.
    pub x: FigureAxis,
    /// The vertical axis; of bars, their names.
    pub y: FigureAxis,
    /// The groups of marks, each with its colour and marker.
    pub series: Vec<FigureSeries>,
    /// Straight lines with names that points are seen against.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub guides: Vec<FigureGuide>,
    pub marks: FigureMarks,
}

/// A straight line with a name: a bound of points.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct FigureGuide {
    pub name: String,
    pub from: [f64; 2],
    pub to: [f64; 2],
}

/// An axis.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct FigureAxis {
    /// Empty for an axis of names.
    pub title: String,
    pub unit: FigureUnit,
    pub logarithmic: bool,
}

/// The unit of numbers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum FigureUnit {
    #[default]
    Count,
    Bytes,
    Cycles,
    /// Of one.
    Share,
}

/// A group of marks of one colour and marker.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct FigureSeries {
    pub name: String,
    pub shade: Shade,
    pub marker: Marker,
}

/// The role of a colour.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Shade {
    /// A whole that others are parts of.
    Whole,
    /// The one thing that a figure is of.
    Plain,
    /// One of several things side by side.
    Nth(u8),
    Class(CycleClass),
    Waterfall(WaterfallStep),
    #[serde(serialize_with = "activity_name")]
    Activity(StepActivity),
}

fn activity_name<S: serde::Serializer>(
    of: &StepActivity,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(of.name())
}

/// The marks of a figure.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum FigureMarks {
    /// Horizontal bars, one below the other.
    Bars(Vec<FigureBar>),
    Points(Vec<FigurePoint>),
    Lines(Vec<FigureLine>),
}

/// A row of a figure of bars.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct FigureBar {
    pub name: String,
    /// Parts from left to right; they may begin anywhere.
    pub parts: Vec<FigureBarPart>,
    /// The number behind the bar.
    pub value: String,
    /// The words of its tooltip.
    pub about: String,
}

/// A part of a bar.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct FigureBarPart {
    pub from: f64,
    pub to: f64,
    /// Its place in [`Figure::series`].
    pub series: usize,
}

/// A point.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct FigurePoint {
    pub x: f64,
    pub y: f64,
    /// Its place in [`Figure::series`].
    pub series: usize,
    /// The words of its tooltip.
    pub about: String,
}

/// A line through points from left to right.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct FigureLine {
    /// Its place in [`Figure::series`].
    pub series: usize,
    pub points: Vec<[f64; 2]>,
}

impl FigureUnit {
    /// A number with its unit, in full.
    #[must_use]
    pub fn text(self, value: f64) -> String {
        match self {
            Self::Count => grouped_real(value),
            Self::Bytes => exact_bytes(value.max(0.0) as u64),
            Self::Cycles => format!("{} cycles", grouped(value.max(0.0) as u64)),
            Self::Share => fine_percent(value),
        }
    }
}

/// The category whose colour [`Shade::Nth`] has; the last one stands for all the rest.
#[must_use]
pub fn category_apart(place: usize) -> MemoryCategory {
    /// Categories whose colours are easily told apart.
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

/// The smallest round number that is not less: a power of two of bytes, else 1, 2 or 5 times a power
/// of ten.
#[must_use]
pub fn round_step(least: f64, of_bytes: bool) -> f64 {
    let least = least.max(1e-12);
    if of_bytes {
        return 2f64.powf(least.log2().ceil()).max(1.0);
    }
    let power = 10f64.powf(least.log10().floor());
    let fits = [1.0, 2.0, 5.0].into_iter().find(|of| of * power >= least * 0.999_999);
    fits.unwrap_or(10.0) * power
}

impl FigureAxis {
    /// An axis from 0 upwards.
    #[must_use]
    pub fn new(title: impl Into<String>, unit: FigureUnit) -> Self {
        Self { title: title.into(), unit, logarithmic: false }
    }

    /// An axis on which powers of ten are equally far from each other.
    #[must_use]
    pub fn logarithmic(title: impl Into<String>, unit: FigureUnit) -> Self {
        Self { title: title.into(), unit, logarithmic: true }
    }
}

impl FigureSeries {
    #[must_use]
    pub fn new(name: impl Into<String>, shade: Shade) -> Self {
        Self { name: name.into(), shade, marker: Marker::of(shade) }
    }
}

impl Figure {
    /// A figure of bars from 0.
    #[must_use]
    pub fn bars(
        title: impl Into<String>,
        x: FigureAxis,
        series: Vec<FigureSeries>,
        bars: Vec<FigureBar>,
    ) -> Self {
        let (title, note, y) = (title.into(), String::new(), FigureAxis::default());
        Self { title, note, x, y, series, guides: Vec::new(), marks: FigureMarks::Bars(bars) }
    }

    /// Places of the series that have marks, in their order.
    #[must_use]
    pub fn used_series(&self) -> Vec<usize> {
        let mut used = BTreeSet::new();
        match &self.marks {
            FigureMarks::Bars(bars) => {
                used.extend(bars.iter().flat_map(|bar| &bar.parts).map(|part| part.series));
            }
            FigureMarks::Points(points) => used.extend(points.iter().map(|point| point.series)),
            FigureMarks::Lines(lines) => used.extend(lines.iter().map(|line| line.series)),
        }
        used.into_iter().filter(|place| *place < self.series.len()).collect()
    }

    /// True where colours need a legend: not where each bar has one of its own, or all have the same.
    #[must_use]
    pub fn has_legend(&self) -> bool {
        match &self.marks {
            FigureMarks::Bars(bars) => {
                self.used_series().len() > 1 && bars.iter().any(|bar| bar.parts.len() > 1)
            }
            FigureMarks::Points(_) | FigureMarks::Lines(_) => self.used_series().len() > 1,
        }
    }

    /// True where there is nothing to draw.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        match &self.marks {
            FigureMarks::Bars(bars) => bars.is_empty(),
            FigureMarks::Points(points) => points.is_empty(),
            FigureMarks::Lines(lines) => lines.iter().all(|line| line.points.is_empty()),
        }
    }

    /// All values along an axis: 0 is the horizontal one, 1 the vertical one. Bars have none along
    /// the vertical one.
    pub fn values(&self, axis: usize) -> Vec<f64> {
        let mut values = Vec::new();
        match &self.marks {
            FigureMarks::Bars(bars) if axis == 0 => {
                for part in bars.iter().flat_map(|bar| &bar.parts) {
                    values.extend([part.from, part.to]);
                }
            }
            FigureMarks::Bars(_) => {}
            FigureMarks::Points(points) => {
                values.extend(points.iter().map(|point| [point.x, point.y][axis]));
            }
            FigureMarks::Lines(lines) => {
                let points = lines.iter().flat_map(|line| &line.points);
                values.extend(points.map(|point| point[axis]));
            }
        }
        for guide in &self.guides {
            values.extend([guide.from[axis], guide.to[axis]]);
        }
        values.retain(|value| value.is_finite());
        values
    }

    /// The ends of an axis: from 0, or around the values of a logarithmic one.
    #[must_use]
    pub fn bounds(&self, axis: usize) -> (f64, f64) {
        let logarithmic = [&self.x, &self.y][axis].logarithmic;
        let mut values = self.values(axis);
        if logarithmic {
            values.retain(|value| *value > 0.0);
        } else {
            values.push(0.0);
        }
        let low = values.iter().copied().fold(f64::INFINITY, f64::min);
        let high = values.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        match (logarithmic, low < high) {
            (_, true) => (low, high),
            (true, false) if low.is_finite() => (low / 2.0, low * 2.0),
            (true, false) => (1.0, 10.0),
            (false, false) => (0.0, 1.0),
        }
    }

    /// The marks in words, for those who do not see them.
    #[must_use]
    pub fn words(&self) -> String {
        let mut words = Vec::new();
        match &self.marks {
            FigureMarks::Bars(bars) => {
                words.extend(bars.iter().map(|bar| format!("{} {}", bar.name, bar.value)));
            }
            FigureMarks::Points(points) => {
                words.extend(points.iter().map(|point| point.about.clone()));
            }
            FigureMarks::Lines(lines) => {
                for line in lines {
                    let top = line.points.iter().map(|point| point[1]).fold(0.0, f64::max);
                    let name = self.series.get(line.series).map_or("", |of| of.name.as_str());
                    words.push(format!("{name}: at most {}", self.y.unit.text(top)));
                }
            }
        }
        words.join(", ")
    }
}

impl FigureBar {
    /// A bar from 0 to an amount.
    #[must_use]
    pub fn of(name: impl Into<String>, amount: f64, unit: FigureUnit, series: usize) -> Self {
        let value = unit.text(amount);
        let parts = vec![FigureBarPart { from: 0.0, to: amount, series }];
        Self { name: name.into(), parts, value, about: String::new() }
    }

    /// A bar of parts behind each other, with their sum.
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
        Self { name: name.into(), parts, value: unit.text(end), about: String::new() }
    }
}

/// The highest point of each of at most so many stretches of a line: a line of more points than
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
    fn bars_of_parts_end_where_their_parts_do() {
        let bar = FigureBar::stacked("a", &[2.0, 0.0, 3.0], FigureUnit::Cycles);
        let ends: Vec<_> = bar.parts.iter().map(|part| (part.from, part.to, part.series)).collect();
        assert_eq!(ends, [(0.0, 2.0, 0), (2.0, 5.0, 2)]);
        assert_eq!(bar.value, "5 cycles");
        let figure = Figure::bars("f", FigureAxis::default(), Vec::new(), vec![bar]);
        assert_eq!((figure.bounds(0), figure.bounds(1)), ((0.0, 5.0), (0.0, 1.0)));
        assert_eq!(figure.words(), "a 5 cycles");
    }

    #[test]
    fn logarithmic_axes_have_no_zero() {
        let point = |x: f64| FigurePoint { x, y: 0.0, series: 0, about: String::new() };
        let x = FigureAxis { logarithmic: true, ..FigureAxis::default() };
        let figure = |points: Vec<FigurePoint>| Figure {
            x: x.clone(),
            marks: FigureMarks::Points(points),
            ..Figure::bars("f", FigureAxis::default(), Vec::new(), Vec::new())
        };
        assert_eq!(figure(vec![point(0.0), point(4.0), point(8.0)]).bounds(0), (4.0, 8.0));
        assert_eq!(figure(vec![point(4.0)]).bounds(0), (2.0, 8.0));
        assert_eq!(figure(vec![point(f64::INFINITY)]).bounds(0), (1.0, 10.0));
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
