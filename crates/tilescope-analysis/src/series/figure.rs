//! A figure over the runs as a line, with its changes, the baseline, and deviating runs.

use super::{FigureTrend, ReportSeries, SeriesFigure, SeriesOptions};
use crate::confidence::Banded;
use crate::figures::{
    Figure, FigureAxis, FigureGuide, FigureLine, FigureMarks, FigurePoint, FigureSeries,
    FigureUnit, Marker, Shade,
};
use crate::gates::GateQuantity;
use std::collections::BTreeSet;
use tilescope_report::units::grouped;

/// Margin above and below the values, as a share of their range.
const EDGE: f64 = 0.15;
/// The number of characters of a run's name below the plot: long names differ at the end.
const NAME_LETTERS: usize = 12;

/// Indices of the series of such a figure.
const RUN: usize = 0;
const BASELINE: usize = 1;
const OUTLIER: usize = 2;
const ABSENT: usize = 3;

impl ReportSeries {
    /// A figure over the runs; the id of a point is its run. With `most`, at most that many runs
    /// have a separate point: those that are listed in the text.
    #[must_use]
    pub fn line_figure(
        &self,
        of: &SeriesFigure,
        trend: &FigureTrend,
        options: SeriesOptions,
        most: Option<usize>,
    ) -> Figure {
        let mut values = Vec::new();
        for run in 0..self.runs.len() {
            values.push(self.value_of_run(of, run, options.unit).filter(|value| value.is_finite()));
        }
        let quantity = of.figure.quantity();
        let (unit, title) = match quantity {
            GateQuantity::Bytes => (FigureUnit::Bytes, "bytes"),
            GateQuantity::Share => (FigureUnit::Share, "share"),
            GateQuantity::Seconds => (FigureUnit::Seconds, "time"),
            GateQuantity::Cycles => (FigureUnit::Cycles, "cycles"),
            GateQuantity::Hertz => (FigureUnit::Count, "Hz"),
            GateQuantity::PerSecond => (FigureUnit::Count, "per second"),
            GateQuantity::Count => (FigureUnit::Count, "number"),
        };
        let y = FigureAxis::new(title, unit).around(values.iter().flatten().copied(), EDGE);
        let foot = y.ends.map_or(0.0, |ends| ends[0]);
        let marked: Vec<usize> = match most {
            None => (0..self.runs.len()).collect(),
            Some(most) => described_runs(&values, trend, options.baseline, most),
        };
        let mut points = Vec::new();
        for run in marked {
            points.push(self.run_point(of, trend, options, (run, values[run], foot)));
        }
        if values.iter().all(Option::is_none) {
            points.clear();
        }
        let names = self.runs.iter().map(|run| ending(&run.name, NAME_LETTERS)).collect();
        let shades = [
            ("run", Shade::Plain, Marker::Circle),
            ("baseline", Shade::Text, Marker::Diamond),
            ("outlier", Shade::Warning, Marker::Square),
            ("run without a value", Shade::Error, Marker::Down),
        ];
        let series = shades
            .map(|(name, shade, marker)| FigureSeries { marker, ..FigureSeries::new(name, shade) });
        Figure {
            title: format!(
                "{} over {} runs",
                of.words(self, options),
                grouped(self.runs.len() as u64)
            ),
            x: FigureAxis::of_names("", names),
            y,
            series: series.to_vec(),
            guides: guides(trend, values.get(options.baseline).copied().flatten()),
            marks: FigureMarks { lines: lines(&values), points, ..FigureMarks::default() },
            ..Figure::default()
        }
    }

    /// The point of a run, at the bottom of the figure if the run has no value.
    fn run_point(
        &self,
        of: &SeriesFigure,
        trend: &FigureTrend,
        options: SeriesOptions,
        (run, value, foot): (usize, Option<f64>, f64),
    ) -> FigurePoint {
        let about = &self.runs[run];
        let mut text = value.map(|value| of.figure.quantity().text(value)).unwrap_or_default();
        text.push_str(&Banded::in_brackets(self.expected(of, run, options.unit)));
        let (series, words) = if value.is_none() {
            let reason = about.not_executed.as_deref().unwrap_or("it does not have this figure");
            (ABSENT, format!("no value, {reason}"))
        } else if run == options.baseline {
            (BASELINE, format!("{text}, the baseline"))
        } else {
            let change = self.share(of, run, options);
            let change = change.map_or_else(String::new, |of| format!(", {:+.2} %", of * 100.0));
            let series = if trend.outliers.contains(&run) { OUTLIER } else { RUN };
            (series, format!("{text}{change}"))
        };
        let x = run as f64;
        let y = value.unwrap_or(foot);
        let name = about.name.clone();
        FigurePoint { x, y, series, id: run, name, about: words }
    }
}

/// The line of the baseline, and lines between runs at lasting changes.
fn guides(trend: &FigureTrend, baseline: Option<f64>) -> Vec<FigureGuide> {
    let mut guides = Vec::new();
    guides.extend(baseline.map(|height| FigureGuide::level("", height, Shade::Text)));
    for change in &trend.changes {
        let share = change.share.map(|share| format!("{:+.1} %", share * 100.0));
        let at = (change.previous + change.run) as f64 / 2.0;
        let [from, to] = [-1e15, 1e15].map(|y| [at, y]);
        let name = share.unwrap_or_else(|| "new".to_owned());
        guides.push(FigureGuide {
            name,
            from,
            to,
            shade: Shade::Warning,
            dashed: !change.confirmed,
        });
    }
    guides
}

/// Lines through consecutive runs with values.
fn lines(values: &[Option<f64>]) -> Vec<FigureLine> {
    let mut lines = Vec::new();
    let mut points = Vec::new();
    for (run, value) in values.iter().chain([&None]).enumerate() {
        match value {
            Some(value) => points.push([run as f64, *value]),
            None if points.is_empty() => {}
            None => lines.push(FigureLine { series: RUN, points: std::mem::take(&mut points) }),
        }
    }
    lines
}

/// At most `most` runs for the text: the baseline, both ends, changes, and deviating runs.
fn described_runs(
    values: &[Option<f64>],
    trend: &FigureTrend,
    baseline: usize,
    most: usize,
) -> Vec<usize> {
    let ends = [values.iter().position(Option::is_some), values.iter().rposition(Option::is_some)];
    let changes = trend.changes.iter().flat_map(|change| [change.previous, change.run]);
    let first = [baseline].into_iter().chain(ends.into_iter().flatten());
    let listed = first.chain(changes).chain(trend.outliers.iter().copied());
    let listed: BTreeSet<usize> = listed.take(most).collect();
    listed.into_iter().collect()
}

/// The end of a long name, after an ellipsis.
fn ending(name: &str, letters: usize) -> String {
    let count = name.chars().count();
    if count <= letters {
        return name.to_owned();
    }
    format!("…{}", name.chars().skip(count + 1 - letters).collect::<String>())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_have_gaps_where_runs_have_no_value() {
        let found = lines(&[None, Some(1.0), Some(2.0), None, Some(3.0)]);
        let points: Vec<_> = found.into_iter().map(|line| line.points).collect();
        assert_eq!(points, [vec![[1.0, 1.0], [2.0, 2.0]], vec![[4.0, 3.0]]]);
    }

    #[test]
    fn long_names_keep_their_ends() {
        assert_eq!(ending("nightly/2026-11-25", 11), "…2026-11-25");
        assert_eq!(ending("v10", 11), "v10");
    }
}
