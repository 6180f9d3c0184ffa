//! Figures of topics as SVG.

use super::axis::{self, AxisUnit, Scale};
use super::{Anchor, Px, PxRect, Svg};
use crate::block::{Block, LegendEntry};
use crate::colours;
use crate::names::{prose, shown};
use std::fmt::Write;
use tilescope_analysis::figures::{
    Figure, FigureBar, FigureLine, FigureMarks, FigurePoint, FigureUnit, Marker, Shade,
    category_apart, peaks,
};
use tilescope_report::units::grouped;

const WIDTH: f64 = 1080.0;
const HEIGHT: f64 = 320.0;
const LEFT: f64 = 78.0;
const RIGHT: f64 = WIDTH - 12.0;
const TOP: f64 = 26.0;
const FOOT: f64 = 24.0;
/// A row of bars, and room for its name and its number.
const ROW: f64 = 22.0;
const NAMES: f64 = 240.0;
const NUMBERS: f64 = 150.0;
/// Marks that are drawn at most, and those of them with words where a pointer rests on them.
const MOST_MARKS: usize = 4_000;
const MOST_TITLES: usize = 1_000;
const MOST_BARS: usize = 200;
/// Points of a line: more than pixels would not be seen.
const MOST_OF_LINE: usize = 1_080;
const RADIUS: f64 = 6.0;

/// The colour of a shade.
pub(crate) fn colour(shade: Shade) -> &'static str {
    match shade {
        Shade::Whole => "outline",
        Shade::Plain => "balance",
        Shade::Nth(place) => colours::category(category_apart(place.into())),
        Shade::Class(class) => colours::cycle_class(class),
        Shade::Waterfall(step) => colours::waterfall(step),
        Shade::Activity(activity) => colours::activity(activity),
    }
}

/// A figure with its legend and note; a sentence where there is nothing to draw.
pub(crate) fn block(figure: &Figure, about: &str) -> Block {
    if figure.is_empty() {
        let reason = if figure.note.is_empty() { "nothing to draw." } else { &figure.note };
        return Block::note(prose(&format!("{}: {reason}", figure.title)));
    }
    let mut caption = prose(&format!("{about}."));
    if !figure.note.is_empty() {
        let _ = write!(caption, " {}", prose(&figure.note));
    }
    let (svg, left_out) = match &figure.marks {
        FigureMarks::Bars(bars) => (bars_svg(figure, bars), bars.len().saturating_sub(MOST_BARS)),
        FigureMarks::Points(points) => {
            (points_svg(figure, points), points.len().saturating_sub(MOST_MARKS))
        }
        FigureMarks::Lines(lines) => (lines_svg(figure, lines), 0),
    };
    if left_out > 0 {
        let _ = write!(caption, " {} more are in the table.", grouped(left_out as u64));
    }
    Block::figure(svg, caption, legend(figure))
}

/// Series that have marks; none where names say the same.
fn legend(figure: &Figure) -> Vec<LegendEntry> {
    let mut legend = Vec::new();
    if !figure.has_legend() {
        return legend;
    }
    let with_signs = matches!(figure.marks, FigureMarks::Points(_));
    for place in figure.used_series() {
        let Some(series) = figure.series.get(place) else { continue };
        let name = if with_signs {
            format!("{} {}", series.marker.sign(), series.name)
        } else {
            series.name.clone()
        };
        legend.push(LegendEntry::new(colour(series.shade), name));
    }
    legend
}

fn shade_of(figure: &Figure, series: usize) -> &'static str {
    figure.series.get(series).map_or("other", |series| colour(series.shade))
}

/// An axis with the places of its values.
struct PlacedAxis {
    scale: Scale,
    /// From values to numbers beside ticks: shares are written in percent.
    factor: f64,
    unit: AxisUnit,
    title: String,
}

impl PlacedAxis {
    /// The axis from one place to another, `along` as in [`Figure::bounds`].
    fn new(figure: &Figure, along: usize, places: (f64, f64)) -> Self {
        let axis = [&figure.x, &figure.y][along];
        let (low, high) = figure.bounds(along);
        let (unit, factor) = match axis.unit {
            FigureUnit::Bytes => (AxisUnit::Bytes, 1.0),
            FigureUnit::Share => (AxisUnit::Count, 100.0),
            FigureUnit::Count | FigureUnit::Cycles => (AxisUnit::Count, 1.0),
        };
        let title = match axis.unit {
            FigureUnit::Share => format!("{} (%)", axis.title),
            _ => axis.title.clone(),
        };
        let ends = (low * factor, high * factor);
        let scale = if axis.logarithmic {
            Scale::logarithmic(ends, places)
        } else {
            Scale::linear(ends, places)
        };
        Self { scale, factor, unit, title }
    }

    fn at(&self, value: f64) -> f64 {
        self.scale.at(value * self.factor)
    }
}

fn bars_svg(figure: &Figure, bars: &[FigureBar]) -> String {
    let bars = &bars[..bars.len().min(MOST_BARS)];
    let bottom = TOP + ROW * bars.len() as f64;
    let mut svg = Svg::new(WIDTH, bottom + FOOT);
    let x = PlacedAxis::new(figure, 0, (NAMES, WIDTH - NUMBERS));
    axis::bottom(&mut svg, &x.scale, (TOP, bottom), (x.unit, &x.title));
    for (row, bar) in bars.iter().enumerate() {
        let y = TOP + ROW * row as f64;
        let middle = y + ROW / 2.0 + 4.0;
        svg.fitted_text(
            (NAMES - 8.0, middle),
            (Anchor::End, "label"),
            &shown(&bar.name),
            NAMES - 12.0,
        );
        let mut end = x.scale.from;
        for part in &bar.parts {
            let (from, to) = (x.at(part.from), x.at(part.to));
            end = end.max(to);
            let rect = PxRect { x: from, y: y + 3.0, width: to - from, height: ROW - 6.0 };
            let series = figure.series.get(part.series).map_or("", |series| series.name.as_str());
            let amount = figure.x.unit.text(part.to - part.from);
            let words = format!("{}: {series} {amount}. {}", bar.name, bar.about);
            svg.rect_with(rect, shade_of(figure, part.series), &shown(&words));
        }
        svg.text((end + 6.0, middle), Anchor::Start, "label", &bar.value);
    }
    svg.finish(&figure.title)
}

fn points_svg(figure: &Figure, points: &[FigurePoint]) -> String {
    let mut svg = Svg::new(WIDTH, HEIGHT);
    let (x, y) = axes(&mut svg, figure);
    for guide in &figure.guides {
        let [from, to] = [guide.from, guide.to].map(|end| (x.at(end[0]), y.at(end[1])));
        svg.line(from, to, "roof");
        // Level lines have their names at the right, slanted ones at the left: there they are apart.
        if from.1 == to.1 {
            svg.text((to.0 - 4.0, to.1 - 4.0), Anchor::End, "label", &guide.name);
        } else {
            svg.text((from.0 + 4.0, from.1 - 6.0), Anchor::Start, "label", &guide.name);
        }
    }
    // The first lie on top.
    let drawn = &points[..points.len().min(MOST_MARKS)];
    for (place, point) in drawn.iter().enumerate().rev() {
        let words = if place < MOST_TITLES { shown(&point.about) } else { String::new() };
        let at = (x.at(point.x), y.at(point.y));
        let marker = figure.series.get(point.series).map_or(Marker::Circle, |of| of.marker);
        marked(&mut svg, at, marker, shade_of(figure, point.series), &words);
    }
    svg.finish(&figure.title)
}

fn lines_svg(figure: &Figure, lines: &[FigureLine]) -> String {
    let mut svg = Svg::new(WIDTH, HEIGHT);
    let (x, y) = axes(&mut svg, figure);
    for line in lines {
        let mut path = String::new();
        for [at, value] in peaks(&line.points, MOST_OF_LINE) {
            let letter = if path.is_empty() { 'M' } else { 'L' };
            // Writing into a text cannot fail.
            let _ = write!(path, "{letter}{} {}", Px(x.at(at)), Px(y.at(value)));
        }
        let class = format!("s-{} curve", shade_of(figure, line.series));
        svg.path(&path, &class);
    }
    svg.finish(&figure.title)
}

/// Both axes of a plot.
fn axes(svg: &mut Svg, figure: &Figure) -> (PlacedAxis, PlacedAxis) {
    let x = PlacedAxis::new(figure, 0, (LEFT, RIGHT));
    let y = PlacedAxis::new(figure, 1, (HEIGHT - FOOT, TOP));
    axis::left(svg, &y.scale, (LEFT, RIGHT), (y.unit, &y.title));
    axis::bottom(svg, &x.scale, (TOP, HEIGHT - FOOT), (x.unit, &x.title));
    (x, y)
}

/// A marker of a colour at a place.
pub(crate) fn marked(
    svg: &mut Svg,
    at: (f64, f64),
    marker: Marker,
    colour: &'static str,
    words: &str,
) {
    let corners: Vec<(f64, f64)> =
        marker.corners().iter().map(|(x, y)| (x * RADIUS, y * RADIUS)).collect();
    if corners.is_empty() {
        svg.dot(at, RADIUS * 0.75, colour, words);
    } else {
        svg.shape(at, &corners, colour, words);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tilescope_analysis::figures::{FigureAxis, FigureSeries};

    fn figure(marks: FigureMarks) -> Figure {
        Figure {
            title: "A <figure>".to_owned(),
            note: "Known.".to_owned(),
            x: FigureAxis::new("Cycles", FigureUnit::Cycles),
            y: FigureAxis::default(),
            guides: Vec::new(),
            series: vec![
                FigureSeries::new("a", Shade::Nth(0)),
                FigureSeries::new("b", Shade::Nth(1)),
            ],
            marks,
        }
    }

    #[test]
    fn every_kind_of_figure_is_drawn_and_escaped() {
        let bar = FigureBar::stacked("op <1>", &[2.0, 3.0], FigureUnit::Cycles);
        let about = "<b>".to_owned();
        let point = FigurePoint { x: 1.0, y: 2.0, series: 1, about };
        let line = FigureLine { series: 0, points: vec![[0.0, 1.0], [1.0, 3.0]] };
        for marks in [
            FigureMarks::Bars(vec![bar]),
            FigureMarks::Points(vec![point]),
            FigureMarks::Lines(vec![line]),
        ] {
            let Block::Figure { svg, caption, .. } = block(&figure(marks), "About") else {
                panic!("a figure")
            };
            let svg = svg.to_string();
            assert!(svg.starts_with("<svg") && svg.ends_with("</svg>"), "{svg}");
            assert!(!svg.contains("<b>") && !svg.contains("<1>"), "{svg}");
            assert_eq!(caption, "About. Known.");
        }
        assert!(matches!(block(&figure(FigureMarks::Bars(Vec::new())), ""), Block::Note { .. }));
    }
}
