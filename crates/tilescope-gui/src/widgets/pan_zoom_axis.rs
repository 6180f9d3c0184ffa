//! Conversion between positions on an axis and points on the screen.
//!
//! An axis has no unit: its positions are integers, and the view that draws it defines what they
//! count (cycles, tiles, addresses, steps). Positions go up to 2^63 and points are 32-bit floats:
//! the origin is subtracted as an integer before anything is scaled, so that bars stay in place at
//! any zoom and any distance.

use egui::DragValue;
use serde::{Deserialize, Serialize};
use tilescope_report::units::grouped;

/// The largest number of points for one position.
const MAX_POINTS_PER_POSITION: f64 = 40.0;
/// The share of the width that may be empty beside the range of the axis.
const SLACK: f64 = 0.02;

/// A half-open range of positions, `start..end`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct AxisRange {
    /// The first position of the range.
    pub start: u64,
    /// The first position after the range; never below `start`.
    pub end: u64,
}

impl AxisRange {
    /// The range `start..end`; an `end` below `start` gives an empty range at `start`.
    pub(crate) fn new(start: u64, end: u64) -> Self {
        Self { start, end: end.max(start) }
    }

    /// The number of positions in the range.
    pub(crate) fn length(self) -> u64 {
        debug_assert!(self.start <= self.end, "a range runs forwards: {self:?}");
        self.end - self.start
    }

    /// The part that both ranges cover; empty if they do not overlap.
    pub(crate) fn intersection(self, other: Self) -> Self {
        let start = self.start.max(other.start);
        Self::new(start, self.end.min(other.end))
    }
}

/// The visible positions.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct PanZoomAxis {
    /// The position at the left edge, rounded down.
    origin: i64,
    /// The fraction lost by rounding, 0 to 1.
    fraction: f64,
    /// The positions per point.
    scale: f64,
}

impl PanZoomAxis {
    /// The axis that shows all of `range` on `width` points, with a small margin on both sides.
    pub(crate) fn fitting(range: AxisRange, width: f32) -> Self {
        let length = (range.length() as f64).max(1.0);
        let scale = length * (1.0 + 2.0 * SLACK) / f64::from(width.max(1.0));
        let scale = scale.max(1.0 / MAX_POINTS_PER_POSITION);
        // From the limited scale: a range too short for the width is centred.
        let air = (scale * f64::from(width) - length) / 2.0;
        Self { origin: range.start as i64, fraction: 0.0, scale }.moved(-air)
    }

    /// The axis that shows `range` on `width` points from edge to edge.
    pub(crate) fn fitting_exactly(range: AxisRange, width: f32) -> Self {
        let scale = (range.length() as f64).max(1.0) / f64::from(width.max(1.0));
        let scale = scale.max(1.0 / MAX_POINTS_PER_POSITION);
        Self { origin: range.start as i64, fraction: 0.0, scale }
    }

    /// The positions per point.
    pub(crate) fn scale(&self) -> f64 {
        self.scale
    }

    /// The position of the left edge, exact below 2^53.
    pub(crate) fn start(&self) -> f64 {
        self.origin as f64 + self.fraction
    }

    /// The point of a position, measured from the left edge.
    pub(crate) fn x_from_position(&self, position: u64) -> f32 {
        // The difference of two integers is exact, and small near the screen; only then convert to
        // floats.
        let distance = (position as i64).saturating_sub(self.origin) as f64 - self.fraction;
        (distance / self.scale) as f32
    }

    /// The position at a point; negative left of the first one.
    pub(crate) fn position_from_x(&self, x: f32) -> i64 {
        let distance = f64::from(x) * self.scale + self.fraction;
        // A cast alone rounds towards zero: the position left of the origin would become the origin
        // too.
        self.origin.saturating_add(distance.floor() as i64)
    }

    /// The positions on `width` points, cut off at position 0.
    pub(crate) fn window(&self, width: f32) -> AxisRange {
        let start = self.origin.max(0) as u64;
        // One more position: the one at the right edge is partly visible.
        let end = self.position_from_x(width).saturating_add(1).max(0) as u64;
        // Never empty, or lanes would be read for an empty window.
        AxisRange::new(start, end.max(start + 1))
    }

    /// The number of visible positions.
    pub(crate) fn count(&self, limits: AxisLimits) -> u64 {
        let shown = (self.scale * f64::from(limits.width)).round() as u64;
        shown.clamp(1, limits.range.length().max(1))
    }

    /// The axis with this number of visible positions around the same centre.
    pub(crate) fn with_visible_count(self, count: u64, limits: AxisLimits) -> Self {
        let shown = self.scale * f64::from(limits.width);
        let factor = shown / count.max(1) as f64;
        self.zoomed(factor, limits.width / 2.0, limits).clamped_to(limits)
    }

    fn moved(self, positions: f64) -> Self {
        let target = self.fraction + positions;
        // Whole positions go into the integer, or repeated panning would lose them to rounding.
        let whole = target.floor();
        debug_assert!((0.0..=1.0).contains(&(target - whole)), "the origin stays an integer");
        Self {
            origin: self.origin.saturating_add(whole as i64),
            fraction: target - whole,
            scale: self.scale,
        }
    }

    /// The axis moved by `positions`, at the same scale.
    pub(crate) fn shifted(self, positions: i64) -> Self {
        Self { origin: self.origin.saturating_add(positions), ..self }
    }

    /// The axis panned by `points`: dragging to the right shows earlier positions.
    pub(crate) fn panned(self, points: f32) -> Self {
        self.moved(-f64::from(points) * self.scale)
    }

    /// The axis zoomed by `factor` (above 1: closer). The position at `x` stays in place.
    pub(crate) fn zoomed(self, factor: f64, x: f32, limits: AxisLimits) -> Self {
        let widest = limits.widest_scale();
        debug_assert!(factor.is_finite() && factor > 0.0, "a zoom has a factor: {factor}");
        let scale = (self.scale / factor).clamp(1.0 / MAX_POINTS_PER_POSITION, widest);
        // Solves for the `start` that keeps `start + x * scale` the same before and after.
        let shift = f64::from(x) * (self.scale - scale);
        Self { scale, ..self.moved(shift) }
    }

    /// The axis moved so that its range stays on the screen, with at most a small margin.
    pub(crate) fn clamped_to(self, limits: AxisLimits) -> Self {
        let AxisLimits { range, width } = limits;
        let scale = self.scale.min(limits.widest_scale());
        let shown = scale * f64::from(width);
        let air = shown * SLACK * 4.0;
        // Integers are subtracted first, as in `x_from_position`: large floats lose whole
        // positions.
        let position = (self.origin - range.start as i64) as f64 + self.fraction;
        let length = range.length() as f64;
        let lowest = -air;
        let highest = (length - shown + air).max(lowest);
        let middle = (length - shown) / 2.0;
        let wanted = if shown >= length { middle } else { position.clamp(lowest, highest) };
        // Moved instead of set: an axis within its limits keeps its bits and equals itself.
        Self { scale, ..self.moved(wanted - position) }
    }
}

/// The range of an axis, and the width it is drawn on.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct AxisLimits {
    /// The range from the first position to the last.
    pub range: AxisRange,
    /// The width in points.
    pub width: f32,
}

impl AxisLimits {
    fn widest_scale(self) -> f64 {
        let length = (self.range.length() as f64).max(1.0) * (1.0 + 2.0 * SLACK);
        // Not below the closest scale: `clamp` in `zoomed` panics if its bounds are reversed.
        (length / f64::from(self.width.max(1.0))).max(1.0 / MAX_POINTS_PER_POSITION)
    }
}

/// The distance between labelled ticks that are at least `points` apart: 1, 2 or 5 times a power of
/// ten.
pub(crate) fn tick_step(scale: f64, points: f32) -> u64 {
    let least = (scale * f64::from(points)).max(1.0);
    let power = 10f64.powf(least.log10().floor());
    // Rounding may leave `least` slightly above a round number, which is still meant.
    let step = [1.0, 2.0, 5.0, 10.0].into_iter().find(|m| m * power >= least * 0.999_999);
    (step.unwrap_or(10.0) * power).round().max(1.0) as u64
}

/// A drag value for the number of visible positions, to read, drag or type.
pub(crate) fn count_drag(count: &mut u64, limits: AxisLimits) -> DragValue<'_> {
    // Proportional: dragging feels the same among ten positions as among a billion.
    let speed = *count as f64 * 0.005;
    DragValue::new(count)
        // Applied at every digit, the first digit alone would be clamped, and the next ones would
        // be appended to the result.
        .update_while_editing(false)
        .range(1..=limits.range.length().max(1))
        .speed(speed)
        .custom_formatter(|count, _| grouped(count as u64))
        .custom_parser(|text| text.replace([',', ' '], "").parse().ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_requested_number_of_positions_is_visible() {
        let limits = AxisLimits { range: AxisRange::new(0, 100_000), width: 830.0 };
        let whole = PanZoomAxis::fitting_exactly(limits.range, limits.width);
        assert_eq!(whole.count(limits), 100_000);
        for count in [100_000, 50_000, 1_472, 333, 21] {
            let shown = whole.with_visible_count(count, limits);
            assert_eq!(shown.count(limits), count);
            let middle = (shown.position_from_x(limits.width / 2.0) - 50_000).unsigned_abs();
            assert!(middle <= 1, "{count}: {middle} from the middle");
        }
        // The zoom stops where a position reaches its largest useful width.
        assert_eq!(whole.with_visible_count(1, limits).count(limits), 21);
    }

    const LIMITS: AxisLimits =
        AxisLimits { range: AxisRange { start: 0, end: 1 << 60 }, width: 1600.0 };

    fn axes() -> Vec<PanZoomAxis> {
        let starts = [0u64, 1, 999_983, 1 << 40, (1 << 53) + 1, 1 << 60];
        let lengths = [1u64, 10, 1_000, 123_457, 1 << 33];
        starts
            .iter()
            .flat_map(|start| lengths.iter().map(move |l| AxisRange::new(*start, start + l)))
            .map(|range| PanZoomAxis::fitting(range, 1600.0))
            .collect()
    }

    #[test]
    fn points_convert_back_to_their_positions() {
        for axis in axes() {
            for position in [0.0f32, 400.0, 1599.0].map(|x| axis.position_from_x(x)) {
                if position < 0 {
                    continue;
                }
                let middle = axis.x_from_position(position as u64) + (0.5 / axis.scale()) as f32;
                let back = axis.position_from_x(middle);
                // A point is exact only to the precision of its 32-bit float.
                let error = 0.001 * axis.scale() + 1.0;
                let missed = (back - position).unsigned_abs() as f64;
                assert!(missed <= error, "{axis:?} {position} {back}");
            }
        }
    }

    #[test]
    fn neighbouring_positions_are_distinct_at_any_distance() {
        let far = 1 << 60;
        let axis = PanZoomAxis::fitting(AxisRange::new(far, far + 100), 1600.0);
        let gap = axis.x_from_position(far + 51) - axis.x_from_position(far + 50);
        assert!((gap - 15.4).abs() < 0.1, "{gap}");
    }

    #[test]
    fn zooming_keeps_the_position_under_the_pointer() {
        for mut axis in axes() {
            let x = 637.0;
            let before = axis.position_from_x(x);
            for factor in [1.3, 0.5, 3.0, 0.9, 2.0, 1.1] {
                axis = axis.zoomed(factor, x, LIMITS);
                let error = 1.0 + axis.scale() * 0.01;
                let now = axis.position_from_x(x);
                let missed = (now - before).unsigned_abs() as f64;
                assert!(missed <= error, "{axis:?} {before} {now}");
            }
        }
    }

    #[test]
    fn panning_there_and_back_changes_nothing() {
        for axis in axes() {
            let back = axis.panned(123.0).panned(-123.0);
            let shift = (back.x_from_position(1 << 30) - axis.x_from_position(1 << 30)).abs();
            assert!(
                shift <= axis.x_from_position(1 << 30).abs() * 1e-6 + 1e-3,
                "{axis:?} {back:?}"
            );
        }
    }

    #[test]
    fn the_range_of_the_axis_stays_on_the_screen() {
        let limits = AxisLimits { range: AxisRange::new(1_000, 11_000), width: 1000.0 };
        let axis = PanZoomAxis::fitting(limits.range, limits.width).zoomed(10.0, 500.0, limits);
        for far in [-1e7f32, 1e7] {
            let window = axis.panned(far).clamped_to(limits).window(limits.width);
            assert!(window.intersection(limits.range).length() > 0, "{far} {window:?}");
        }
        let out = axis.zoomed(1e-9, 0.0, limits).clamped_to(limits);
        assert!(out.window(limits.width).start <= 1_000);
        assert!(out.window(limits.width).end >= 11_000);
    }

    #[test]
    fn a_dominating_wait_can_be_zoomed_away() {
        let limits = AxisLimits { range: AxisRange::new(0, 350_000_000), width: 1600.0 };
        let mut axis = PanZoomAxis::fitting(limits.range, limits.width);
        for _ in 0..60 {
            let x = axis.x_from_position(349_990_000);
            axis = axis.zoomed(1.5, x, limits).clamped_to(limits);
        }
        let window = axis.window(limits.width);
        assert!(window.length() < 100, "{window:?}");
        let around = AxisRange::new(349_989_950, 349_990_050);
        assert!(window.intersection(around).length() > 0, "{window:?}");
    }

    #[test]
    fn ticks_are_round_and_far_enough_apart() {
        for (scale, step) in [(1.0, 100), (0.01, 1), (1.5, 200), (123.0, 20_000), (0.3, 50)] {
            assert_eq!(tick_step(scale, 100.0), step, "{scale}");
        }
    }
}
