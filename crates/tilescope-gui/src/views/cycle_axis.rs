//! Axes that count cycles: conversions between ranges of cycles and ranges of an axis.

use crate::widgets::pan_zoom_axis::{AxisLimits, AxisRange, PanZoomAxis};
use tilescope_report::units::{CycleRange, Cycles};

/// The axis positions of a range of cycles.
pub(crate) fn axis_range_of_cycles(cycles: CycleRange) -> AxisRange {
    AxisRange::new(cycles.start.0, cycles.end.0)
}

/// The axis that shows all of `cycles` on `width` points, with a small margin on both sides.
pub(crate) fn fitting_cycles(cycles: CycleRange, width: f32) -> PanZoomAxis {
    PanZoomAxis::fitting(axis_range_of_cycles(cycles), width)
}

/// The cycles visible on `width` points of an axis.
pub(crate) fn cycles_on_screen(axis: PanZoomAxis, width: f32) -> CycleRange {
    let window = axis.window(width);
    CycleRange::new(Cycles(window.start), Cycles(window.end))
}

/// The limits of an axis that covers `cycles`.
pub(crate) fn limits_of_cycles(cycles: CycleRange, width: f32) -> AxisLimits {
    AxisLimits { range: axis_range_of_cycles(cycles), width }
}
