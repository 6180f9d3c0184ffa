//! The ruler above the lanes.

use super::TracePainter;
use crate::theme::text_size;
use crate::views::execution_trace::layout::TraceLayout;
use crate::widgets::pan_zoom_axis::tick_step;
use egui::{FontId, Painter, Stroke, pos2, vec2};
use tilescope_report::units::Cycles;

/// The smallest distance between numbers on the ruler.
const TICK_DISTANCE: f32 = 120.0;

/// A tick of the ruler.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct RulerTick {
    pub x: f32,
    pub cycle: Cycles,
    /// True if its cycle is written beside it.
    pub numbered: bool,
}

/// The ticks of the ruler.
pub(super) fn ticks(layout: &TraceLayout<'_>) -> Vec<RulerTick> {
    let axis = layout.axis;
    let ruler = layout.regions.ruler;
    let step = tick_step(axis.scale(), TICK_DISTANCE);
    // Steps are 1, 2 or 5 times a power of ten: below 5, a fifth is not a whole number of cycles.
    let minor = if step >= 5 { step / 5 } else { step };
    // Rounded down to a multiple, so that ticks move with their cycles while panning.
    let first = axis.position_from_x(0.0).max(0) as u64 / minor * minor;
    let last = axis.position_from_x(ruler.width()).max(0) as u64;
    let cycles = std::iter::successors(Some(first), |cycle| cycle.checked_add(minor));
    let mut ticks = Vec::new();
    for cycle in cycles.take_while(|cycle| *cycle <= last) {
        let numbered = cycle.is_multiple_of(step);
        ticks.push(RulerTick { x: layout.x(Cycles(cycle)), cycle: Cycles(cycle), numbered });
    }
    ticks
}

impl TracePainter<'_> {
    /// Paints ticks with their cycles, with thousands separators, and the unit.
    pub(super) fn ruler(&self) {
        let rect = self.layout.regions.ruler;
        let palette = self.palette;
        let painter = self.ui.painter().with_clip_rect(rect);
        for tick in ticks(self.layout) {
            let height = if tick.numbered { 7.0 } else { 3.0 };
            let span = rect.bottom() - height..=rect.bottom();
            painter.vline(tick.x, span, Stroke::new(1.0, palette.outline));
            if tick.numbered {
                self.tick_number(&painter, &tick);
            }
        }
        painter.hline(rect.x_range(), rect.bottom() - 0.5, Stroke::new(1.0, palette.rule));
        // The row of a title is one point above its middle.
        self.row_title(rect.translate(vec2(0.0, 1.0)), "Cycles");
    }

    fn tick_number(&self, painter: &Painter, tick: &RulerTick) {
        let rect = self.layout.regions.ruler;
        let colour = self.palette.weak_text;
        let at = pos2(tick.x + 4.0, rect.top() + 3.0);
        let text = tick.cycle.to_string();
        let galley = painter.layout_no_wrap(text, FontId::proportional(text_size::CAPTION), colour);
        // Entirely or not at all: a truncated number looks like another one.
        if tick.x >= rect.left() - 3.0 && at.x + galley.size().x <= rect.right() {
            painter.galley(at, galley, colour);
        }
    }
}
