//! Operations as points below the roofs of an IPU.

use crate::block::{Block, LegendEntry};
use crate::colours;
use crate::names::shown;
use crate::sections::PageFacts;
use crate::svg::axis::{self, AxisUnit, Scale};
use crate::svg::figure::marked;
use crate::svg::{Anchor, Px, Svg, width_of};
use tilescope_analysis::figures::Marker;
use tilescope_analysis::limits::{
    CycleClass, LimitsRow, Roof, RoofKind, Roofline, RooflinePoint, roofline,
};
use tilescope_report::MachineInterface;
use tilescope_report::units::{fine_percent, grouped, with_prefix};

const WIDTH: f64 = 1080.0;
const HEIGHT: f64 = 460.0;
const LEFT: f64 = 70.0;
const TOP: f64 = 26.0;
const BOTTOM: f64 = HEIGHT - 28.0;
/// Width of the strip of points that move nothing.
const STRIP: f64 = 70.0;
/// Points that say what they are where a pointer rests on them; the others are in the table.
const MAX_TITLES: usize = 1_000;
const MAX_POINTS: usize = 4_000;

pub(super) fn blocks(facts: &PageFacts<'_>) -> Vec<Block> {
    let (machine, rows) = (&facts.limits.machine, &facts.limits.rows);
    let found = roofline(machine, rows, None);
    if found.points.is_empty() {
        let text = match found.unknown {
            0 => {
                "No operation of the run has floating point operations, so there is nothing to plot."
            }
            _ => {
                "The report does not say how many floating point operations its operations do, so \
                  there is no roofline."
            }
        };
        return vec![Block::note(text)];
    }
    let plot = RooflinePlot::new(facts, &found);
    let caption = format!(
        "{} operations below what an IPU allows: as high as they compute fast, as far right as they \
         compute much for each byte over the interface that would take them longest. {} more have no \
         floating point operations.",
        grouped(found.points.len() as u64),
        grouped((found.without_flops + found.unknown) as u64)
    );
    vec![Block::figure(plot.draw(), caption, plot.legend())]
}

struct RooflinePlot<'a> {
    found: &'a Roofline,
    rows: &'a [LimitsRow],
    /// Cycles per second; 1 where the clock is not known, so that figures are per cycle.
    clock: f64,
    x: Scale,
    y: Scale,
    /// Where points stand that move nothing, if there are any.
    strip: Option<f64>,
}

impl<'a> RooflinePlot<'a> {
    fn new(facts: &'a PageFacts<'_>, found: &'a Roofline) -> Self {
        let clock = facts.limits.machine.clock.map_or(1.0, |clock| clock.0 as f64);
        let points = found.points.iter();
        let strip = points.clone().any(|point| point.flops_per_byte.is_infinite());
        let right = if strip { WIDTH - STRIP } else { WIDTH };
        let top = top_of(found);
        let ridges = found.roofs.iter().filter_map(|roof| match roof.kind {
            RoofKind::Interface(own) if is_used(found, own) => Some(top / roof.per_cycle),
            _ => None,
        });
        let finite = points.clone().map(|point| point.flops_per_byte).filter(|x| x.is_finite());
        let x = bounds(finite.chain(ridges));
        let heights = points.map(|point| point.flops_per_cycle * clock);
        let y = bounds(heights.chain([top * clock]));
        Self {
            found,
            rows: &facts.limits.rows,
            clock,
            x: Scale::logarithmic(x, (LEFT, right)),
            y: Scale::logarithmic(y, (BOTTOM, TOP)),
            strip: strip.then_some(WIDTH - STRIP / 2.0),
        }
    }

    fn draw(&self) -> String {
        let mut svg = Svg::new(WIDTH, HEIGHT);
        let unit = if self.clock > 1.0 { "FLOP/s of an IPU" } else { "FLOPs per cycle of an IPU" };
        axis::left(&mut svg, &self.y, (LEFT, self.x.to), (AxisUnit::Count, unit));
        axis::bottom(&mut svg, &self.x, (TOP, BOTTOM), (AxisUnit::Count, "FLOPs per byte moved"));
        if let Some(strip) = self.strip {
            svg.line((self.x.to, TOP), (self.x.to, BOTTOM), "edge");
            svg.text((strip, TOP - 10.0), Anchor::Middle, "tick", "no bytes");
        }
        let shown = |roof: &&Roof| match roof.kind {
            RoofKind::Engine(_) => true,
            RoofKind::Interface(own) => is_used(self.found, own),
        };
        let mut words = Vec::new();
        for roof in self.found.roofs.iter().filter(shown) {
            words.push(self.roof(&mut svg, roof));
        }
        // Those that waste most come first, and lie on top.
        let points: Vec<&RooflinePoint> = self.found.points.iter().take(MAX_POINTS).collect();
        for (at, point) in points.iter().enumerate().rev() {
            self.point(&mut svg, point, at < MAX_TITLES);
        }
        place_words(&mut svg, words);
        svg.finish("Roofline: floating point operations per second and per byte of every operation")
    }

    /// A roof as a line; its words, and where they would like to stand.
    fn roof(&self, svg: &mut Svg, roof: &Roof) -> RoofWords {
        let top = top_of(self.found);
        let end = match roof.kind {
            RoofKind::Engine(_) => self.x.high,
            RoofKind::Interface(_) => (top / roof.per_cycle).min(self.x.high),
        };
        let height = |x: f64| roof.flops_per_cycle(x) * self.clock;
        // From where it leaves the foot of the plot.
        let start = match roof.kind {
            RoofKind::Engine(_) => self.x.low,
            RoofKind::Interface(_) => (self.y.low / self.clock / roof.per_cycle).max(self.x.low),
        };
        let place = |x: f64| (self.x.at(x), self.y.at(height(x)));
        let (from, to) = (place(start), place(end));
        svg.line(from, to, "roof");
        let unit = match (roof.kind, self.clock > 1.0) {
            (RoofKind::Engine(_), true) => "FLOP/s",
            (RoofKind::Engine(_), false) => "FLOPs per cycle",
            (RoofKind::Interface(_), true) => "B/s",
            (RoofKind::Interface(_), false) => "B per cycle",
        };
        let text = format!("{} {}", roof.title, with_prefix(roof.per_cycle * self.clock, unit));
        match roof.kind {
            RoofKind::Engine(_) => {
                RoofWords { text, at: (to.0 - 4.0, to.1 - 5.0), turn: 0.0, anchor: Anchor::End }
            }
            RoofKind::Interface(_) => {
                let turn = ((to.1 - from.1) / (to.0 - from.0).max(1.0)).atan().to_degrees();
                RoofWords { text, at: (from.0 + 8.0, from.1 - 10.0), turn, anchor: Anchor::Start }
            }
        }
    }

    fn point(&self, svg: &mut Svg, point: &RooflinePoint, with_title: bool) {
        let Some(row) = self.rows.get(point.row) else { return };
        let Some(class) = row.limits.bound() else { return };
        let x = match point.flops_per_byte.is_finite() {
            true => self.x.at(point.flops_per_byte),
            false => self.strip.unwrap_or(self.x.to),
        };
        let y = self.y.at(point.flops_per_cycle * self.clock);
        let title = with_title.then(|| {
            let peak = row.limits.of_peak.map_or_else(|| "not known".to_owned(), fine_percent);
            format!("{}: {} cycles, {peak} of its engine", shown(&row.name), row.limits.total())
        });
        let (marker, colour) = (Marker::of_class(class), colours::cycle_class(class));
        marked(svg, (x, y), marker, colour, title.as_deref().unwrap_or(""));
    }

    /// Classes of the points, with how many there are of each.
    fn legend(&self) -> Vec<LegendEntry> {
        let own = |class: CycleClass| {
            let rows = self.found.points.iter().filter_map(|point| self.rows.get(point.row));
            rows.filter(|row| row.limits.bound() == Some(class)).count()
        };
        let classes = CycleClass::ALL.into_iter().map(|class| (class, own(class)));
        let there = classes.filter(|(_, count)| *count > 0);
        there
            .map(|(class, count)| {
                let sign = Marker::of_class(class).sign();
                let name = format!("{sign} {} ({})", class.title(), grouped(count as u64));
                LegendEntry::new(colours::cycle_class(class), name)
            })
            .collect()
    }
}

struct RoofWords {
    text: String,
    at: (f64, f64),
    /// Degrees.
    turn: f64,
    anchor: Anchor,
}

/// Writes the words of roofs; those of roofs as high as another stand below each other.
fn place_words(svg: &mut Svg, words: Vec<RoofWords>) {
    let mut taken: Vec<f64> = Vec::new();
    for RoofWords { text, at: (x, mut y), turn, anchor } in words {
        if turn == 0.0 {
            while taken.iter().any(|other| (other - y).abs() < 13.0) {
                y += 13.0;
            }
            taken.push(y);
            let width = width_of(&text);
            svg.push(&format!(
                "<rect class=\"f-page\" fill-opacity=\".8\" x=\"{}\" y=\"{}\" width=\"{}\" height=\"13\"/>",
                Px(x - width),
                Px(y - 10.0),
                Px(width)
            ));
            svg.text((x, y), anchor, "label", &text);
            continue;
        }
        svg.push(&format!("<g transform=\"translate({} {}) rotate({})\">", Px(x), Px(y), Px(turn)));
        svg.text((0.0, 0.0), anchor, "label", &text);
        svg.push("</g>");
    }
}

fn top_of(found: &Roofline) -> f64 {
    let engines = found.roofs.iter().filter(|roof| matches!(roof.kind, RoofKind::Engine(_)));
    engines.map(|roof| roof.per_cycle).fold(1.0, f64::max)
}

/// Whether a point lies below the roof of an interface; that of the exchange is always shown.
fn is_used(found: &Roofline, interface: MachineInterface) -> bool {
    interface == MachineInterface::TileSend
        || found.points.iter().any(|point| point.interface == Some(interface))
}

/// Values with half a decade of air on both sides.
fn bounds(values: impl Iterator<Item = f64>) -> (f64, f64) {
    let positive = values.filter(|value| *value > 0.0 && value.is_finite());
    let found = positive.fold(None, |found: Option<(f64, f64)>, value| {
        Some(found.map_or((value, value), |(low, high)| (low.min(value), high.max(value))))
    });
    let (low, high) = found.unwrap_or((1.0, 10.0));
    (low / 3.0, high * 3.0)
}
