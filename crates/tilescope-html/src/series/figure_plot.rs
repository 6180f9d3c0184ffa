//! A figure over the runs as a line, with its changes and the baseline.

use super::SeriesFacts;
use super::figures::MAX_POINTS;
use crate::block::LegendEntry;
use crate::names::ending;
use crate::svg::axis::{self, AxisUnit, Scale};
use crate::svg::{Anchor, Px, Svg, width_of};
use std::collections::BTreeSet;
use std::fmt::Write;
use tilescope_analysis::gates::GateQuantity;
use tilescope_analysis::series::{FigureTrend, SeriesFigure};
use tilescope_report::units::grouped;

const WIDTH: f64 = 1080.0;
const HEIGHT: f64 = 250.0;
const LEFT: f64 = 78.0;
const RIGHT: f64 = WIDTH - 8.0;
const TOP: f64 = 34.0;
const BOTTOM: f64 = HEIGHT - 24.0;

/// Room above and below the values, as a share of what is between them.
const EDGE: f64 = 0.15;
/// What an axis is of at least, as a share of the largest value: less would show changes that nobody
/// asked about, and have no words for their ends.
const LEAST_SPAN: f64 = 0.02;

/// Letters of a run's name where a pointer rests on its point, and below the plot.
const NAME_LETTERS: usize = 80;
const LABEL_LETTERS: usize = 13;
/// Width of a name below the plot.
const LABEL_WIDTH: f64 = 96.0;

/// A run that has no value is marked below the plot.
const ABSENT: &[(f64, f64)] = &[(-3.0, -6.0), (3.0, -6.0), (0.0, 0.0)];
/// The run that others are told beside.
const BASELINE: &[(f64, f64)] = &[(0.0, -6.5), (6.5, 0.0), (0.0, 6.5), (-6.5, 0.0)];

/// What a value is on the axis: its factor, unit, and name.
struct AxisOfValues {
    factor: f64,
    unit: AxisUnit,
    name: &'static str,
}

impl AxisOfValues {
    fn of(quantity: GateQuantity, largest: f64) -> Self {
        let counted = |name| Self { factor: 1.0, unit: AxisUnit::Count, name };
        match quantity {
            GateQuantity::Bytes => Self { factor: 1.0, unit: AxisUnit::Bytes, name: "bytes" },
            GateQuantity::Share => Self { factor: 100.0, unit: AxisUnit::Count, name: "%" },
            GateQuantity::Seconds => {
                let units = [("s", 1.0), ("ms", 1e3), ("us", 1e6), ("ns", 1e9)];
                let fits = units.into_iter().find(|(_, factor)| largest * factor >= 1.0);
                let (name, factor) = fits.unwrap_or(units[0]);
                Self { factor, unit: AxisUnit::Count, name }
            }
            GateQuantity::Cycles => counted("cycles"),
            GateQuantity::Hertz => counted("Hz"),
            GateQuantity::PerSecond => counted("per second"),
            GateQuantity::Count => counted(""),
        }
    }
}

pub(super) struct FigureSvg<'a> {
    of: &'a SeriesFacts<'a>,
    figure: &'a SeriesFigure,
    /// The value of each run.
    values: Vec<Option<f64>>,
    trend: &'a FigureTrend,
    axis: AxisOfValues,
    x: Scale,
    y: Scale,
    /// Runs that have a mark of their own.
    marked: Vec<usize>,
}

impl<'a> FigureSvg<'a> {
    /// A plot in which each run has a mark, or those that are told in words.
    pub(super) fn new(
        of: &'a SeriesFacts<'a>,
        (figure, trend): (&'a SeriesFigure, &'a FigureTrend),
        each_is_shown: bool,
    ) -> Self {
        let (series, telling) = (of.series, of.telling);
        let runs = series.runs.len();
        let values: Vec<Option<f64>> =
            (0..runs).map(|run| series.told(figure, run, telling.unit)).collect();
        let finite = || values.iter().flatten().copied().filter(|value| value.is_finite());
        let axis = AxisOfValues::of(
            figure.figure.quantity(),
            finite().fold(0.0, |most: f64, value| most.max(value.abs())),
        );
        let bounds = bounds(finite().map(|value| value * axis.factor));
        let marked = match each_is_shown {
            true => (0..runs).collect(),
            false => told_runs(&values, trend, telling.baseline, series.figures.len()),
        };
        Self {
            of,
            figure,
            values,
            trend,
            axis,
            x: Scale::linear((-0.5, runs as f64 - 0.5), (LEFT, RIGHT)),
            y: Scale::linear(bounds, (BOTTOM, TOP)),
            marked,
        }
    }

    /// Whether no run has the figure.
    pub(super) fn is_empty(&self) -> bool {
        self.values.iter().all(Option::is_none)
    }

    /// Where the value of a run stands.
    fn place(&self, run: usize) -> Option<(f64, f64)> {
        Some((self.x.at(run as f64), self.y.at((*self.values.get(run)?)? * self.axis.factor)))
    }

    pub(super) fn draw(&self) -> String {
        let mut svg = Svg::new(WIDTH, HEIGHT);
        axis::left(&mut svg, &self.y, (LEFT, RIGHT), (self.axis.unit, self.axis.name));
        svg.line((LEFT, BOTTOM), (RIGHT, BOTTOM), "edge");
        self.names(&mut svg);
        if let Some((_, y)) = self.place(self.of.telling.baseline) {
            svg.line((LEFT, y), (RIGHT, y), "baseline");
        }
        self.changes(&mut svg);
        svg.path(&self.line(), "run-line s-accent");
        for run in &self.marked {
            self.mark(&mut svg, *run);
        }
        let title = self.figure.title(self.of.series, self.of.telling);
        let label = format!("{title} over {} runs", grouped(self.values.len() as u64));
        svg.finish(&label)
    }

    /// Names of some runs below the plot, as far from each other as they have room.
    fn names(&self, svg: &mut Svg) {
        let runs = &self.of.series.runs;
        let room = ((RIGHT - LEFT) / LABEL_WIDTH) as usize;
        for (at, run) in runs.iter().enumerate().step_by(runs.len().div_ceil(room).max(1)) {
            let (name, x) = (ending(&run.name, LABEL_LETTERS), self.x.at(at as f64));
            let (x, anchor) = match x + width_of(&name) / 2.0 <= WIDTH {
                true => (x, Anchor::Middle),
                false => (WIDTH, Anchor::End),
            };
            svg.text((x, BOTTOM + 16.0), anchor, "tick", &name);
        }
    }

    /// Lines between runs where the figure changes for good, with how much where there is room.
    fn changes(&self, svg: &mut Svg) {
        let (mut sure, mut unsure) = (String::new(), String::new());
        let (mut drawn, mut free) = (BTreeSet::new(), LEFT);
        for change in &self.trend.changes {
            let x = self.x.at((change.previous + change.run) as f64 / 2.0);
            let lines = if change.confirmed { &mut sure } else { &mut unsure };
            if drawn.insert((x as i64, change.confirmed)) {
                // Writing into a text cannot fail.
                let _ = write!(lines, "M{} {}V{}", Px(x), Px(TOP - 12.0), Px(BOTTOM));
            }
            let words = match change.share {
                Some(share) => format!("{:+.1} %", share * 100.0),
                None => "new".to_owned(),
            };
            if x >= free && x + width_of(&words) <= RIGHT {
                svg.text((x + 4.0, TOP - 4.0), Anchor::Start, "label small", &words);
                free = x + width_of(&words) + 8.0;
            }
        }
        svg.path(&sure, "change s-warning");
        svg.path(&unsure, "change unsure s-warning");
    }

    /// The line through all runs that follow each other; of runs in one column of pixels, as far as
    /// they reach.
    fn line(&self) -> String {
        let mut path = String::new();
        // The last column, and the end of the line in it.
        let mut column: Option<(i64, f64, f64)> = None;
        let mut joined = false;
        let crowded = self.values.len() as f64 > RIGHT - LEFT;
        for run in 0..self.values.len() {
            let Some((x, y)) = self.place(run) else {
                joined = false;
                continue;
            };
            let here = x as i64;
            if crowded && joined {
                match &mut column {
                    Some((at, low, high)) if *at == here => {
                        if (*low..=*high).contains(&y) {
                            continue;
                        }
                        (*low, *high) = (low.min(y), high.max(y));
                    }
                    _ => column = Some((here, y, y)),
                }
            } else {
                column = Some((here, y, y));
            }
            // A run between two that have no value is a dot.
            let _ = match joined {
                true => write!(path, "L{} {}", Px(x), Px(y)),
                false => write!(path, "M{} {}h0", Px(x), Px(y)),
            };
            joined = true;
        }
        path
    }

    /// The mark of a run, with its name and value.
    fn mark(&self, svg: &mut Svg, run: usize) {
        let (series, telling) = (self.of.series, self.of.telling);
        let about = &series.runs[run];
        let name = ending(&about.name, NAME_LETTERS);
        let (Some(place), Some(value)) = (self.place(run), self.values[run]) else {
            let reason = about.not_executed.as_deref().unwrap_or("it does not have this figure");
            let title = format!("{name}: no value, {reason}");
            svg.shape((self.x.at(run as f64), BOTTOM), ABSENT, "error", &title);
            return;
        };
        let text = self.figure.figure.quantity().text(value);
        if run == telling.baseline {
            svg.shape(place, BASELINE, "text", &format!("{name}: {text}, the baseline"));
            return;
        }
        let change = series.share(self.figure, run, telling);
        let change = change.map_or_else(String::new, |of| format!(", {:+.2} %", of * 100.0));
        let colour = if self.trend.outliers.contains(&run) { "warning" } else { "accent" };
        let radius = (0.35 * (RIGHT - LEFT) / self.values.len() as f64).clamp(1.5, 4.0);
        svg.dot(place, radius, colour, &format!("{name}: {text}{change}"));
    }

    /// What marks and lines stand for, of those that there are.
    pub(super) fn legend(&self) -> Vec<LegendEntry> {
        let has = |run: &usize| self.values[*run].is_some();
        let is_absent = self.marked.iter().any(|run| !has(run));
        let entries = [
            (true, "accent", "run"),
            (has(&self.of.telling.baseline), "text", "baseline"),
            (!self.trend.changes.is_empty(), "warning", "change for good"),
            (!self.trend.outliers.is_empty(), "warning", "run that stands out"),
            (is_absent, "error", "run without a value"),
        ];
        let there = entries.into_iter().filter(|(is_there, ..)| *is_there);
        there.map(|(_, colour, name)| LegendEntry::new(colour, name)).collect()
    }
}

/// Runs that are told in words, of a plot that has no room for a mark of each.
fn told_runs(
    values: &[Option<f64>],
    trend: &FigureTrend,
    baseline: usize,
    figures: usize,
) -> Vec<usize> {
    let ends = [values.iter().position(Option::is_some), values.iter().rposition(Option::is_some)];
    let changes = trend.changes.iter().flat_map(|change| [change.previous, change.run]);
    let first = [baseline].into_iter().chain(ends.into_iter().flatten());
    let told = first.chain(changes).chain(trend.outliers.iter().copied());
    let told: BTreeSet<usize> = told.take(MAX_POINTS / figures.max(1)).collect();
    told.into_iter().collect()
}

/// From the least to the largest value, with room on both sides.
fn bounds(values: impl Iterator<Item = f64>) -> (f64, f64) {
    let ends = (f64::INFINITY, f64::NEG_INFINITY);
    let (low, high) = values.fold(ends, |(low, high), of| (low.min(of), high.max(of)));
    if low > high {
        return (0.0, 1.0);
    }
    let largest = low.abs().max(high.abs());
    let span = (high - low).max(largest * LEAST_SPAN);
    let span = if span > 0.0 { span } else { 1.0 };
    let room = (span - (high - low)) / 2.0 + span * EDGE;
    let foot = low - room;
    // No figure is below nothing unless one of them is.
    (if low >= 0.0 { foot.max(0.0) } else { foot }, high + room)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_axis_has_room_for_its_values_and_does_not_enlarge_what_nobody_asked_about() {
        assert_eq!(bounds(std::iter::empty()), (0.0, 1.0));
        assert_eq!(bounds([0.0, 0.0].into_iter()), (0.0, 0.65));
        let (low, high) = bounds([100.0, 200.0].into_iter());
        assert_eq!((low, high), (85.0, 215.0));
        let (low, high) = bounds([1_000_000.0, 1_000_001.0].into_iter());
        assert!(high - low > 20_000.0, "{low} {high}");
        assert_eq!(bounds([1.0, 100.0].into_iter()).0, 0.0);
    }
}
