//! The ruler above the lanes: cycles or time, and where numbers would repeat their first digits, a
//! base in front with offsets from it.

use super::TracePainter;
use crate::theme::text_size;
use crate::views::execution_trace::layout::TraceLayout;
use crate::widgets::pan_zoom_axis::tick_step;
use egui::{FontId, Painter, Stroke, pos2, vec2};
use tilescope_analysis::figures::{FigureUnit, round_step};
use tilescope_report::units::{Cycles, Hertz, grouped};

/// The smallest distance between numbers on the ruler.
const TICK_DISTANCE: f32 = 120.0;
/// Cycles of fewer digits are written in full.
const SHORT_CYCLES: u64 = 1_000_000;
/// Parts that the distance of two numbers is divided into.
const PARTS: u64 = 5;

/// A line of the ruler.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct RulerTick {
    pub x: f32,
    pub cycle: Cycles,
    /// The number beside it, for some.
    pub label: Option<String>,
}

/// The lines of the ruler, and the text before them.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct TraceRuler {
    /// `Cycles`, or what numbers are offsets from: `11,591.4 M +`.
    pub title: String,
    pub ticks: Vec<RulerTick>,
}

/// The ruler of the visible range, in time if a clock is given.
pub(super) fn ruler(layout: &TraceLayout<'_>, clock: Option<Hertz>) -> TraceRuler {
    match clock.filter(|clock| clock.0 > 0) {
        Some(clock) => of_time(layout, clock),
        None => of_cycles(layout),
    }
}

/// The cycles at both ends of the screen.
fn ends(layout: &TraceLayout<'_>) -> (u64, u64) {
    let axis = layout.axis;
    let ruler = layout.regions.ruler;
    let at = |x: f32| axis.position_from_x(x).max(0) as u64;
    (at(0.0), at(ruler.width()))
}

fn of_cycles(layout: &TraceLayout<'_>) -> TraceRuler {
    let step = tick_step(layout.axis.scale(), TICK_DISTANCE);
    // Steps are 1, 2 or 5 times a power of ten: below 5 a fifth is not a whole number of cycles.
    let minor = if step >= PARTS { step / PARTS } else { step };
    let (left, last) = ends(layout);
    let base = base_of_cycles(left, last);
    // Rounded down to a multiple, so that ticks move with their cycles while panning.
    let first = left / minor * minor;
    let cycles = std::iter::successors(Some(first), |cycle| cycle.checked_add(minor));
    let mut ticks = Vec::new();
    for cycle in cycles.take_while(|cycle| *cycle <= last) {
        let label = cycle.is_multiple_of(step).then(|| match base {
            Some(base) => {
                let offset = cycle.saturating_sub(base) as f64;
                format!("+{}", FigureUnit::Cycles.tick(offset, step as f64))
            }
            None => grouped(cycle),
        });
        ticks.push(RulerTick { x: layout.x(Cycles(cycle)), cycle: Cycles(cycle), label });
    }
    let title = base.map_or_else(|| "Cycles".to_owned(), |base| base_words(base, left, last));
    TraceRuler { title, ticks }
}

/// A base with the prefix that leaves it as few digits as tell it: `11,591.4 M +`.
fn base_words(base: u64, first: u64, last: u64) -> String {
    let digits = last.saturating_sub(first).max(1).ilog10() + 1;
    let (power, prefix) = match digits {
        ..=3 => (3, "k"),
        4..=6 => (6, "M"),
        7..=9 => (9, "G"),
        _ => (12, "T"),
    };
    let unit = 10u64.pow(power);
    let rest = base % unit / 10u64.pow(digits);
    let decimals = power.saturating_sub(digits) as usize;
    let rest = if decimals == 0 { String::new() } else { format!(".{rest:0decimals$}") };
    format!("{}{rest} {prefix} +", grouped(base / unit))
}

/// The number that all cycles on the screen begin with, where it has many of their digits.
fn base_of_cycles(first: u64, last: u64) -> Option<u64> {
    let span = last.saturating_sub(first).max(1);
    let unit = 10u64.checked_pow(span.ilog10() + 1)?;
    let base = first / unit * unit;
    (last >= SHORT_CYCLES && base >= unit.saturating_mul(10)).then_some(base)
}

fn of_time(layout: &TraceLayout<'_>, clock: Hertz) -> TraceRuler {
    let per_second = clock.0 as f64;
    let step = round_step(layout.axis.scale() * f64::from(TICK_DISTANCE) / per_second, false);
    let minor = step / PARTS as f64;
    let (left, last) = ends(layout);
    let left = left as f64 / per_second;
    let last = last as f64 / per_second;
    let base = base_of_time(left, last);
    let mut ticks = Vec::new();
    let first = (left / minor).floor().max(0.0) as u64;
    for place in first.. {
        let time = place as f64 * minor;
        if time > last {
            break;
        }
        let label = place.is_multiple_of(PARTS).then(|| match base {
            Some((base, _)) => {
                format!("+{}", FigureUnit::Seconds.tick((time - base).max(0.0), step))
            }
            None => FigureUnit::Seconds.tick(time, step),
        });
        let cycle = Cycles::from_f64((time * per_second).round());
        ticks.push(RulerTick { x: layout.x(cycle), cycle, label });
    }
    let title = base.map_or_else(|| "Time".to_owned(), |(_, title)| format!("{title} +"));
    TraceRuler { title, ticks }
}

/// The time that all times on the screen begin with, where it has many of their digits, and its words.
fn base_of_time(first: f64, last: f64) -> Option<(f64, String)> {
    let span = (last - first).max(1e-12);
    let digits = span.log10().floor() as i32 + 1;
    let (power, name) = match digits {
        -2.. => (0, "s"),
        -5..=-3 => (-3, "ms"),
        -8..=-6 => (-6, "µs"),
        _ => (-9, "ns"),
    };
    let unit = 10f64.powi(digits);
    let base = (first / unit).floor() * unit;
    let decimals = usize::try_from(power - digits).unwrap_or(0);
    let text = format!("{:.decimals$}", base / 10f64.powi(power));
    let (whole, rest) = text.split_once('.').unwrap_or((&text, ""));
    let point = if rest.is_empty() { "" } else { "." };
    let title = format!("{}{point}{rest} {name}", grouped(whole.parse().unwrap_or(0)));
    (base >= unit * 10.0).then_some((base, title))
}

impl TracePainter<'_> {
    /// Ticks with their cycles or times, and their unit or base.
    pub(super) fn ruler(&self) {
        let rect = self.layout.regions.ruler;
        let palette = self.palette;
        let painter = self.ui.painter().with_clip_rect(rect);
        let TraceRuler { title, ticks } =
            ruler(self.layout, self.ruler_in_time.then_some(self.clock));
        for tick in &ticks {
            let height = if tick.label.is_some() { 7.0 } else { 3.0 };
            let span = rect.bottom() - height..=rect.bottom();
            painter.vline(tick.x, span, Stroke::new(1.0, palette.outline));
            if let Some(label) = &tick.label {
                self.tick_label(&painter, tick.x, label);
            }
        }
        painter.hline(rect.x_range(), rect.bottom() - 0.5, Stroke::new(1.0, palette.rule));
        // The row of a title is one point higher than its middle.
        self.row_title(rect.translate(vec2(0.0, 1.0)), &title);
    }

    fn tick_label(&self, painter: &Painter, x: f32, label: &str) {
        let rect = self.layout.regions.ruler;
        let colour = self.palette.weak_text;
        let at = pos2(x + 4.0, rect.top() + 3.0);
        let font = FontId::proportional(text_size::CAPTION);
        let galley = painter.layout_no_wrap(label.to_owned(), font, colour);
        // Whole or not at all: a number that is cut off reads as another one.
        if x >= rect.left() - 3.0 && at.x + galley.size().x <= rect.right() {
            painter.galley(at, galley, colour);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_base_has_the_digits_that_numbers_share() {
        assert_eq!(base_of_cycles(11_591_450_000, 11_591_540_000), Some(11_591_400_000));
        assert_eq!(base_words(11_591_400_000, 0, 90_000), "11,591.4 M +");
        assert_eq!(base_words(11_574_000_000, 0, 900_000), "11,574 M +");
        assert_eq!(base_words(11_500_000_000, 0, 15_000_000), "11.5 G +");
        assert_eq!(base_of_cycles(0, 90_000), None);
        assert_eq!(base_of_cycles(200_000, 290_000), None, "short enough in full");
        assert_eq!(base_of_cycles(0, 23_000_000_000), None);
    }

    #[test]
    fn a_base_of_time_is_a_whole_number_of_its_unit() {
        let (base, title) = base_of_time(6.265_648_6, 6.265_697_3).expect("a base");
        assert!((base - 6.265_6).abs() < 1e-9, "{base}");
        assert_eq!(title, "6,265.6 ms");
        assert_eq!(base_of_time(0.0, 0.001), None);
    }
}
