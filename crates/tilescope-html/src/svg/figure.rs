//! Figures as SVG.

use super::axis::{LEFT, PlacedAxis};
use super::{Anchor, Px, PxRect, Svg, width_of};
use crate::block::{Block, LegendEntry};
use crate::colours;
use crate::names::{prose, shown};
use std::fmt::Write;
use tilescope_analysis::figures::{
    Figure, FigureBar, FigureMarks, Marker, Shade, category_apart, peaks,
};
use tilescope_report::units::grouped;

const WIDTH: f64 = 1080.0;
/// Height of plots, and of those with points only.
const HEIGHT: f64 = 290.0;
const POINTS_HEIGHT: f64 = 440.0;
const RIGHT: f64 = WIDTH - 12.0;
const TOP: f64 = 26.0;
const FOOT: f64 = 24.0;
/// Height of a row of bars, and widths for its name and its number.
const ROW: f64 = 22.0;
const NAMES: f64 = 240.0;
const NUMBERS: f64 = 150.0;
/// The maximum number of marks drawn, and the most with a tooltip.
const MOST_MARKS: usize = 4_000;
const MOST_TITLES: usize = 1_000;
const MOST_BARS: usize = 200;
/// The maximum number of points of a line, and columns of layers: more would not be visible.
const MOST_OF_LINE: usize = 1_080;
const COLUMNS: usize = 504;
const RADIUS: f64 = 6.0;
/// Width of the strip for points at infinity on the right.
const STRIP: f64 = 70.0;

/// The colour of a shade.
pub(crate) fn colour(shade: Shade) -> &'static str {
    match shade {
        Shade::Whole => "outline",
        Shade::Plain => "balance",
        Shade::Text => "text",
        Shade::Weak => "weak-text",
        Shade::Selection => "selection",
        Shade::Good => "good",
        Shade::Warning => "warning",
        Shade::Error => "error",
        Shade::Capacity => "max-memory",
        Shade::Nth(place) => colours::category(category_apart(place.into())),
        Shade::Class(class) => colours::cycle_class(class),
        Shade::Waterfall(step) => colours::waterfall(step),
        Shade::Activity(activity) => colours::activity(activity),
        Shade::Layer(layer) => colours::layer(layer),
    }
}

/// A figure with its legend and note; a sentence if there is nothing to draw.
pub(crate) fn block(figure: &Figure, about: &str) -> Block {
    if figure.is_empty() {
        let reason = if figure.note.is_empty() { "nothing to draw." } else { &figure.note };
        return Block::note(prose(&format!("{}: {reason}", figure.title)));
    }
    let mut caption = prose(&format!("{}.", about.trim_end_matches('.')));
    if !figure.note.is_empty() {
        let _ = write!(caption, " {}", prose(&figure.note));
    }
    let FigureMarks { bars, points, .. } = &figure.marks;
    let left_out = bars.len().saturating_sub(MOST_BARS) + points.len().saturating_sub(MOST_MARKS);
    if left_out > 0 {
        let _ = write!(caption, " {} more are in the table.", grouped(left_out as u64));
    }
    let svg = drawn(figure);
    let label = format!("{}: {about}", figure.title);
    Block::figure(svg.finish(&shown(&label)), caption, legend(figure))
}

/// The marks of a figure with their axes.
pub(super) fn drawn(figure: &Figure) -> Svg {
    let bars = &figure.marks.bars;
    if bars.is_empty() { Plot::new(figure).draw() } else { bars_svg(figure, bars) }
}

/// The number of places that a column of layers covers, as a sentence to append; empty for one.
pub(crate) fn columns_words(figure: &Figure, places: &str) -> String {
    match figure.columns(COLUMNS).0 {
        1 => String::new(),
        each => format!(" Each column is the maximum of {each} consecutive {places}."),
    }
}

/// The colours of a figure with their meaning.
pub(super) fn legend(figure: &Figure) -> Vec<LegendEntry> {
    let with_signs = !figure.marks.points.is_empty();
    let mut legend = Vec::new();
    for series in figure.legend() {
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

fn bars_svg(figure: &Figure, bars: &[FigureBar]) -> Svg {
    let bars = &bars[..bars.len().min(MOST_BARS)];
    let bottom = TOP + ROW * bars.len() as f64;
    let mut svg = Svg::new(WIDTH, bottom + FOOT);
    let x = PlacedAxis::new(&figure.x, figure.bounds(0), (NAMES, WIDTH - NUMBERS));
    x.draw_bottom(&mut svg, (TOP, bottom));
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
            let from = x.at(part.from);
            let to = x.at(part.to);
            end = end.max(to);
            let rect = PxRect { x: from, y: y + 3.0, width: to - from, height: ROW - 6.0 };
            let series = figure.series.get(part.series).map_or("", |series| series.name.as_str());
            let amount = figure.x.unit.text(part.to - part.from);
            let words = format!("{}: {series} {amount}. {}", bar.name, bar.about);
            svg.rect_with(rect, shade_of(figure, part.series), &shown(&words));
        }
        svg.text((end + 6.0, middle), Anchor::Start, "label", &bar.value);
    }
    svg
}

/// Layers, lines and points with both axes.
struct Plot<'a> {
    figure: &'a Figure,
    x: PlacedAxis<'a>,
    y: PlacedAxis<'a>,
    height: f64,
}

impl<'a> Plot<'a> {
    fn new(figure: &'a Figure) -> Self {
        let right = if figure.has_strip() { RIGHT - STRIP } else { RIGHT };
        let x = PlacedAxis::new(&figure.x, figure.bounds(0), (LEFT, right));
        let FigureMarks { lines, layers, .. } = &figure.marks;
        let is_of_points = lines.is_empty() && layers.is_empty();
        let height = if is_of_points { POINTS_HEIGHT } else { HEIGHT };
        let y = PlacedAxis::new(&figure.y, figure.bounds(1), (height - FOOT, TOP));
        Self { figure, x, y, height }
    }

    fn draw(&self) -> Svg {
        let mut svg = Svg::new(WIDTH, self.height);
        let bottom = self.height - FOOT;
        self.y.draw_left(&mut svg, self.x.scale.to);
        self.x.draw_bottom(&mut svg, (TOP, bottom));
        if self.figure.has_strip() {
            svg.line((self.x.scale.to, TOP), (self.x.scale.to, bottom), "edge");
            svg.text(
                (self.x.scale.to + STRIP / 2.0, TOP - 10.0),
                Anchor::Middle,
                "tick",
                "\u{221e}",
            );
        }
        self.layers(&mut svg);
        let names = self.guides(&mut svg);
        for line in &self.figure.marks.lines {
            let mut path = String::new();
            for [at, value] in peaks(&line.points, MOST_OF_LINE) {
                let letter = if path.is_empty() { 'M' } else { 'L' };
                // Writing to a string cannot fail.
                let _ = write!(path, "{letter}{} {}", Px(self.x.at(at)), Px(self.y.at(value)));
            }
            if line.points.len() == 1 {
                // A point between gaps becomes a dot.
                path.push_str("h0");
            }
            let is_dashed = self.figure.series.get(line.series).is_some_and(|of| of.dashed);
            let dashed = if is_dashed { " dashed" } else { "" };
            let class = format!("s-{} curve{dashed}", shade_of(self.figure, line.series));
            svg.path(&path, &class);
        }
        self.points(&mut svg);
        place_names(&mut svg, names);
        for label in &self.figure.labels {
            let x = self.x.at(label.at[0]);
            let y = self.y.at(label.at[1]) - 5.0;
            let fits = x + width_of(&label.text) + 8.0 <= WIDTH;
            let (anchor, x) = if fits { (Anchor::Start, x + 4.0) } else { (Anchor::End, x - 4.0) };
            svg.text((x, y), anchor, "strong", &label.text);
        }
        svg
    }

    /// Draws stacked areas, in columns of the fullest places.
    fn layers(&self, svg: &mut Svg) {
        let (each, places) = self.figure.columns(COLUMNS);
        let mut feet = vec![0.0; places.len()];
        for layer in &self.figure.marks.layers {
            let mut path = String::new();
            // Equal neighbours become one rectangle.
            let mut run: Option<(f64, f64, f64, f64)> = None;
            let mut draw = |run: Option<(f64, f64, f64, f64)>| {
                if let Some((from, to, low, high)) = run.filter(|run| run.2 - run.3 >= 0.05) {
                    let [from, to, low, high] = [from, to, low, high].map(Px);
                    let _ = write!(path, "M{from} {high}H{to}V{low}H{from}z");
                }
            };
            for (at, (place, foot)) in places.iter().zip(&mut feet).enumerate() {
                let value = layer.values.get(*place).copied().unwrap_or(0.0);
                let low = self.y.at(*foot);
                let high = self.y.at(*foot + value);
                *foot += value;
                let [from, to] = [at, at + 1].map(|at| self.x.at((at * each) as f64));
                run = match run {
                    Some((start, _, below, above)) if (below, above) == (low, high) => {
                        Some((start, to, low, high))
                    }
                    other => {
                        draw(other);
                        Some((from, to, low, high))
                    }
                };
            }
            draw(run);
            svg.path(&path, &format!("f-{}", shade_of(self.figure, layer.series)));
        }
    }

    /// Draws guides. Returns their names with the preferred positions.
    fn guides(&self, svg: &mut Svg) -> Vec<GuideName<'a>> {
        let mut names = Vec::new();
        for guide in &self.figure.guides {
            let ends = [self.x.scale, self.y.scale].map(|scale| (scale.low, scale.high));
            let Some(line) = self.figure.guide_within(guide, ends) else { continue };
            let [mut from, mut to] =
                line.map(|at| (self.x.scale.at(at[0]), self.y.scale.at(at[1])));
            if from.0 > to.0 {
                (from, to) = (to, from);
            }
            let dashed = if guide.dashed { " dashed" } else { "" };
            let class = format!("s-{} guide{dashed}", colour(guide.shade));
            svg.line(from, to, &class);
            if guide.name.is_empty() {
                continue;
            }
            let (at, turn) = if (from.1 - to.1).abs() < 0.5 {
                ((to.0 - 4.0, to.1 - 5.0), None)
            } else if (from.0 - to.0).abs() < 0.5 {
                ((to.0 + 4.0, TOP + 10.0), Some(0.0))
            } else {
                let turn = ((to.1 - from.1) / (to.0 - from.0)).atan().to_degrees();
                ((from.0 + 8.0, from.1 - 10.0), Some(turn))
            };
            names.push(GuideName { name: &guide.name, at, turn });
        }
        names
    }

    fn points(&self, svg: &mut Svg) {
        let points = &self.figure.marks.points;
        let names = self.figure.x.names.len().max(1) as f64;
        let radius = RADIUS.min((0.5 * (self.x.scale.to - self.x.scale.from) / names).max(2.0));
        // The first points are drawn last, on top.
        for (place, point) in points.iter().take(MOST_MARKS).enumerate().rev() {
            let words = if place < MOST_TITLES {
                shown(&format!("{}: {}", point.name, point.about.replace('\n', ", ")))
            } else {
                String::new()
            };
            let is_far = point.x.is_infinite();
            let x = if is_far { self.x.scale.to + STRIP / 2.0 } else { self.x.at(point.x) };
            let marker =
                self.figure.series.get(point.series).map_or(Marker::Circle, |of| of.marker);
            let colour = shade_of(self.figure, point.series);
            let corners = marker.corners().iter().map(|(x, y)| (x * radius, y * radius));
            let corners: Vec<(f64, f64)> = corners.collect();
            let at = (x, self.y.at(point.y));
            if corners.is_empty() {
                svg.dot(at, radius * 0.75, colour, &words);
            } else {
                svg.shape(at, &corners, colour, &words);
            }
        }
    }
}

/// The name of a guide.
struct GuideName<'a> {
    name: &'a str,
    at: (f64, f64),
    /// Rotation in degrees; `None` for a name that ends at its position, above a horizontal guide.
    turn: Option<f64>,
}

/// Writes names of guides. Names of horizontal guides that would overlap are stacked; those of
/// others are shifted sideways to free space.
fn place_names(svg: &mut Svg, names: Vec<GuideName<'_>>) {
    let mut taken: Vec<f64> = Vec::new();
    let mut free = LEFT;
    for GuideName { name, at: (x, mut y), turn } in names {
        let width = width_of(name);
        match turn {
            None => {
                while taken.iter().any(|other| (other - y).abs() < 13.0) {
                    y += 13.0;
                }
                taken.push(y);
                svg.ground(PxRect { x: x - width, y: y - 10.0, width, height: 13.0 });
                svg.text((x, y), Anchor::End, "label", name);
            }
            Some(0.0) if x < free || x + width > RIGHT => {}
            Some(0.0) => {
                svg.text((x, y), Anchor::Start, "label", name);
                free = x + width + 8.0;
            }
            Some(turn) => svg.turned_text((x, y), turn, "label", name),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tilescope_analysis::figures::{
        FigureAxis, FigureGuide, FigureLayer, FigureLine, FigurePoint, FigureSeries, FigureUnit,
    };

    fn figure(marks: FigureMarks) -> Figure {
        Figure {
            title: "A <figure>".to_owned(),
            note: "Known.".to_owned(),
            x: FigureAxis::new("Cycles", FigureUnit::Cycles),
            guides: vec![FigureGuide::level("<level>", 2.0, Shade::Capacity)],
            series: vec![
                FigureSeries::new("a", Shade::Nth(0)),
                FigureSeries::new("b", Shade::Nth(1)),
            ],
            marks,
            ..Figure::default()
        }
    }

    #[test]
    fn every_kind_of_figure_is_drawn_and_escaped() {
        let bar = FigureBar::stacked("op <1>", &[2.0, 3.0], FigureUnit::Cycles);
        let (name, about) = ("<i>".to_owned(), "<b>".to_owned());
        let point = FigurePoint { x: 1.0, y: 2.0, series: 1, id: 0, name, about };
        let line = FigureLine { series: 0, points: vec![[0.0, 1.0], [1.0, 3.0]] };
        let layer = FigureLayer { series: 0, values: vec![1.0, 3.0] };
        let none = FigureMarks::default;
        for marks in [
            FigureMarks { bars: vec![bar], ..none() },
            FigureMarks { points: vec![point], ..none() },
            FigureMarks { lines: vec![line], layers: vec![layer], ..none() },
        ] {
            let Block::Figure { svg, caption, .. } = block(&figure(marks), "About") else {
                panic!("a figure")
            };
            let svg = svg.to_string();
            assert!(svg.starts_with("<svg") && svg.ends_with("</svg>"), "{svg}");
            assert!(
                !svg.contains("<b>") && !svg.contains("<1>") && !svg.contains("<level>"),
                "{svg}"
            );
            assert_eq!(caption, "About. Known.");
        }
        assert!(matches!(block(&figure(none()), ""), Block::Note { .. }));
    }
}
