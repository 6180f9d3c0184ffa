//! Axes: lines at ticks, with labels.

use super::{Anchor, Svg};
use crate::names::shown;
use tilescope_analysis::figures::FigureAxis;

/// Width of a number and of a name below an axis, and height of a number beside one.
const NUMBER: f64 = 110.0;
const NAME: f64 = 96.0;
const LINE: f64 = 40.0;
/// The left edge of plots: space for numbers.
pub(crate) const LEFT: f64 = 78.0;

/// A linear scale from values to pixels.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Scale {
    /// Values at both ends.
    pub low: f64,
    pub high: f64,
    /// Pixels at both ends.
    pub from: f64,
    pub to: f64,
}

impl Scale {
    pub(crate) fn new((low, high): (f64, f64), (from, to): (f64, f64)) -> Self {
        let high = if high > low { high } else { low + 1.0 };
        Self { low, high, from, to }
    }

    /// The pixel of a value.
    pub(crate) fn at(&self, position: f64) -> f64 {
        let share = (position - self.low) / (self.high - self.low);
        self.from + share.clamp(0.0, 1.0) * (self.to - self.from)
    }
}

/// An axis with the pixels of its values.
pub(crate) struct PlacedAxis<'a> {
    axis: &'a FigureAxis,
    /// Values at both ends.
    ends: (f64, f64),
    pub scale: Scale,
}

impl<'a> PlacedAxis<'a> {
    pub(crate) fn new(axis: &'a FigureAxis, ends: (f64, f64), places: (f64, f64)) -> Self {
        let positions = (axis.position(ends.0), axis.position(ends.1));
        Self { axis, ends, scale: Scale::new(positions, places) }
    }

    /// The pixel of a value.
    pub(crate) fn at(&self, value: f64) -> f64 {
        self.scale.at(self.axis.position(value))
    }

    /// Draws it along the bottom: lines up to `top`, labels below `bottom`, a title at its end.
    pub(crate) fn draw_bottom(&self, svg: &mut Svg, (top, bottom): (f64, f64)) {
        let title = &self.axis.title;
        let Scale { from, to, .. } = self.scale;
        let room = (to - from) - super::width_of(title) - 24.0;
        let has_names = !self.axis.names.is_empty();
        let step = if has_names { NAME } else { NUMBER };
        for tick in self.axis.ticks(self.ends, ((to - from) / step).max(2.0) as usize) {
            let x = self.at(tick.value);
            if !has_names {
                svg.line((x, top), (x, bottom), "grid");
            }
            // The title is at the end of the row.
            if x - from <= room {
                svg.text((x, bottom + 15.0), Anchor::Middle, "tick", &shown(&tick.label));
            }
        }
        svg.text((to, bottom + 15.0), Anchor::End, "tick", title);
    }

    /// Draws it along the left: lines up to `right`, labels left of the plot, a title above them.
    pub(crate) fn draw_left(&self, svg: &mut Svg, right: f64) {
        let Scale { from, to, .. } = self.scale;
        let most = ((from - to).abs() / LINE).max(2.0) as usize;
        for tick in self.axis.ticks(self.ends, most) {
            let y = self.at(tick.value);
            svg.line((LEFT, y), (right, y), "grid");
            svg.text((LEFT - 6.0, y + 4.0), Anchor::End, "tick", &tick.label);
        }
        svg.text((0.0, to - 10.0), Anchor::Start, "tick", &self.axis.title);
    }
}
