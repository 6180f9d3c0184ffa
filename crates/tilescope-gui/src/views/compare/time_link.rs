//! The link between two traces that show the same cycles. Zooming or panning one moves the other;
//! the target is shifted against the source by an offset.

use super::offset_handle::OffsetHandle;
use crate::views::cycle_axis::fitting_cycles;
use crate::views::{TimelineView, VisibleTimeline};
use crate::widgets::toolbar::ToolbarBuilder;
use egui::{DragValue, Rect, Ui};
use tilescope_report::units::{CycleRange, Cycles};

/// The link between two timelines.
#[derive(Default)]
pub(crate) struct TimeLink {
    /// The cycles by which the target is shifted: cycle 0 of the source is shown above this cycle
    /// of the target.
    offset: i64,
    /// The axes of both traces after the last frame.
    last: Option<(VisibleTimeline, VisibleTimeline)>,
    shifted: bool,
    /// True once the source has its initial range.
    initialised: bool,
    offset_handle: OffsetHandle,
}

impl TimeLink {
    /// A link with an offset, for a source that has its initial range.
    pub(crate) fn with_offset(offset: i64) -> Self {
        Self { offset, initialised: true, ..Self::default() }
    }

    /// The cycles by which the target is shifted.
    pub(crate) fn offset(&self) -> i64 {
        self.offset
    }

    /// Sets the offset so that cycle `source` of one trace is above cycle `target` of the other.
    pub(crate) fn line_up(&mut self, source: Cycles, target: Cycles) {
        self.set(target.0 as i64 - source.0 as i64);
    }

    /// Shows the handle on the lanes of the target, which occupy `pane`.
    pub(crate) fn grip_ui(&mut self, ui: &Ui, pane: Rect, target: VisibleTimeline) {
        if let Some(offset) = self.offset_handle.ui(ui, pane, target, self.offset) {
            self.set(offset);
        }
    }

    /// Returns true if the arrow keys move the handle.
    pub(crate) fn has_focus(&self) -> bool {
        self.offset_handle.has_focus()
    }

    /// The visible cycles of both traces after the last frame.
    pub(crate) fn windows(&self) -> Option<(CycleRange, CycleRange)> {
        let (source, target) = self.last?;
        Some((source.cycles(), target.cycles()))
    }

    fn set(&mut self, offset: i64) {
        self.shifted |= self.offset != offset;
        self.offset = offset;
    }

    /// The controls of the offset. `selected` holds the starts of the selected steps.
    pub(crate) fn controls_ui(
        &mut self,
        bar: &mut ToolbarBuilder<'_>,
        selected: Option<(Cycles, Cycles)>,
    ) {
        let scale = self.last.as_ref().map_or(1.0, |(source, _)| source.axis.scale());
        let mut offset = self.offset;
        bar.add("Offset", |ui| {
            ui.weak("Offset");
            let drag = DragValue::new(&mut offset).speed(scale).suffix(" cycles");
            let drag = ui.add(drag).accessible_name("Offset");
            if drag.on_hover_text("Drag to shift the target in time").changed() {
                self.set(offset);
            }
        });
        let hint = "Shift the target so that its matching step starts with the selected one";
        if bar.button_if(selected.is_some(), "Line up", hint)
            && let Some((source, target)) = selected
        {
            self.line_up(source, target);
        }
        if bar.button_if(self.offset != 0, "No offset", "Show the same cycles on both sides") {
            self.set(0);
        }
    }

    /// Makes the other side follow the one that the user moved.
    pub(crate) fn synchronise(
        &mut self,
        source: &mut dyn TimelineView,
        target: &mut dyn TimelineView,
    ) {
        let (Some(a), Some(b)) = (source.timeline(), target.timeline()) else { return };
        let reach = (
            a.run.union(shifted_range(b.run, -self.offset)),
            b.run.union(shifted_range(a.run, self.offset)),
        );
        match self.last {
            Some((_, last)) if b.axis != last.axis && !self.shifted => {
                source.show_timeline(b.axis.shifted(-self.offset), reach.0);
            }
            Some((last, _)) if a.axis == last.axis && !self.shifted => {}
            // The side that the user moved leads.
            Some(_) => target.show_timeline(a.axis.shifted(self.offset), reach.1),
            None if self.initialised => {
                source.show_timeline(a.axis, reach.0);
                target.show_timeline(a.axis.shifted(self.offset), reach.1);
            }
            // At first, all of both traces is visible.
            None => {
                let axis = fitting_cycles(reach.0, a.width);
                source.show_timeline(axis, reach.0);
                target.show_timeline(axis.shifted(self.offset), reach.1);
            }
        }
        self.shifted = false;
        self.last = source.timeline().zip(target.timeline());
    }
}

/// A range shifted by an offset, cut off at cycle 0.
fn shifted_range(range: CycleRange, offset: i64) -> CycleRange {
    let shift = |cycle: u64| cycle.saturating_add_signed(offset);
    CycleRange::new(Cycles(shift(range.start.0)), Cycles(shift(range.end.0)))
}
