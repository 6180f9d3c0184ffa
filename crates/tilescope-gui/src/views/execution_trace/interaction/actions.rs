//! Actions from keys and menus that move the view or set marks.

use crate::model::command::ViewAction;
use crate::views::execution_trace::events::TraceEvent;
use crate::widgets::pan_zoom_axis::{AxisLimits, PanZoomAxis};
use egui::{Key, Ui};
use tilescope_report::units::{CycleRange, Cycles};

/// The zoom factor of a key press.
const KEY_ZOOM: f64 = 1.3;
/// The share of the window that a key press pans by.
const KEY_PAN: f32 = 0.08;

/// Returns true if the keys of an action are for the overview strip above the lanes, which has the
/// focus.
pub(crate) fn is_for_strip(ui: &Ui, strip_has_focus: bool) -> bool {
    let arrows = [Key::ArrowLeft, Key::ArrowRight];
    strip_has_focus && ui.input(|input| arrows.into_iter().any(|arrow| input.key_pressed(arrow)))
}

/// Returns the effects of an action on the visible range and the marks. `pointer` is the position
/// of the pointer in points from the left edge of the lanes; `chosen` is the range of the
/// selection.
pub(crate) fn action_events(
    action: ViewAction,
    (axis, limits): (PanZoomAxis, AxisLimits),
    pointer: Option<f32>,
    chosen: Option<CycleRange>,
) -> Option<TraceEvent> {
    let at = pointer.filter(|x| (0.0..=limits.width).contains(x));
    // If the pointer is elsewhere, keys zoom around the middle of the lanes.
    let x = at.unwrap_or(limits.width / 2.0);
    let show = |axis: PanZoomAxis| TraceEvent::ShowAxis(axis.clamped_to(limits));
    let mark = |keep| {
        let range = chosen.or_else(|| {
            let cycle = at.map(|x| Cycles(axis.position_from_x(x).max(0) as u64))?;
            Some(CycleRange::new(cycle, cycle))
        });
        TraceEvent::Mark { range, keep }
    };
    Some(match action {
        ViewAction::ZoomIn => show(axis.zoomed(KEY_ZOOM, x, limits)),
        ViewAction::ZoomOut => show(axis.zoomed(1.0 / KEY_ZOOM, x, limits)),
        ViewAction::PanLeft => show(axis.panned(limits.width * KEY_PAN)),
        ViewAction::PanRight => show(axis.panned(-limits.width * KEY_PAN)),
        ViewAction::ZoomToSelection => {
            chosen.map_or(TraceEvent::ShowWholeRun, TraceEvent::ZoomToOrOut)
        }
        ViewAction::ClearSelection => TraceEvent::Clear,
        ViewAction::MarkSelection => mark(false),
        ViewAction::AddMark => mark(true),
        // Steps, places, proposals and the filter do not change the axis.
        ViewAction::PanUp
        | ViewAction::PanDown
        | ViewAction::SelectNext
        | ViewAction::SelectPrevious
        | ViewAction::AddNextToSelection
        | ViewAction::AddPreviousToSelection
        | ViewAction::GoToTypical
        | ViewAction::GoToFastest
        | ViewAction::GoToSlowest
        | ViewAction::FollowMicroBatch
        | ViewAction::LightPath
        | ViewAction::SelectNextOnPath
        | ViewAction::SelectPreviousOnPath
        | ViewAction::TryProposals
        | ViewAction::FocusFilter => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::views::cycle_axis::{fitting_cycles, limits_of_cycles};

    fn shown() -> (PanZoomAxis, AxisLimits) {
        let run = CycleRange::new(Cycles(0), Cycles(10_000));
        (fitting_cycles(run, 500.0), limits_of_cycles(run, 500.0))
    }

    fn event(action: ViewAction, pointer: Option<f32>, chosen: Option<CycleRange>) -> TraceEvent {
        action_events(action, shown(), pointer, chosen).expect("an event")
    }

    #[test]
    fn keys_zoom_around_the_pointer_or_the_middle() {
        let axis = |pointer| match event(ViewAction::ZoomIn, pointer, None) {
            TraceEvent::ShowAxis(axis) => axis,
            other => panic!("{other:?}"),
        };
        let under = shown().0.position_from_x(100.0);
        let kept = axis(Some(100.0)).x_from_position(under as u64);
        assert!((kept - 100.0).abs() < 1.0, "{kept}");
        assert_eq!(axis(None), axis(Some(250.0)));
        assert_eq!(axis(Some(-5.0)), axis(None), "the pointer is beside the lanes");
    }

    #[test]
    fn marking_uses_the_selection_or_the_pointer() {
        let chosen = CycleRange::new(Cycles(30), Cycles(40));
        let mark = |range, keep| TraceEvent::Mark { range, keep };
        let at = Cycles(shown().0.position_from_x(100.0) as u64);
        let point = CycleRange::new(at, at);
        let press = |chosen| event(ViewAction::MarkSelection, Some(100.0), chosen);
        assert_eq!(press(Some(chosen)), mark(Some(chosen), false));
        assert_eq!(press(None), mark(Some(point), false));
        assert_eq!(event(ViewAction::AddMark, None, None), mark(None, true));
    }

    #[test]
    fn zoom_to_selection_shows_the_selection_or_everything() {
        let chosen = CycleRange::new(Cycles(30), Cycles(40));
        let focus = |chosen| event(ViewAction::ZoomToSelection, None, chosen);
        assert_eq!(focus(Some(chosen)), TraceEvent::ZoomToOrOut(chosen));
        assert_eq!(focus(None), TraceEvent::ShowWholeRun);
    }
}
