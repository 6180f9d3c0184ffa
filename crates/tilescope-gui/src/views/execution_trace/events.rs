//! The user's actions in the trace as plain data. Pointer, keys and controls emit them;
//! [`TraceSettings::apply`](super::settings::TraceSettings::apply) performs them.

use super::layers::marks::SelectedMark;
use super::selected_bar::SelectedBar;
use super::settings::TraceDetailsTab;
use crate::model::command::SelectedStep;
use crate::widgets::pan_zoom_axis::PanZoomAxis;
use std::collections::BTreeSet;
use tilescope_analysis::trace::TileFigure;
use tilescope_report::units::{CycleRange, IpuId};

/// A change of the visible range, the settings or the selection.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum TraceEvent {
    /// Shows the range of an axis.
    ShowAxis(PanZoomAxis),
    /// Shows the whole run.
    ShowWholeRun,
    /// Shows a range of cycles with a small margin.
    ZoomTo(CycleRange),
    /// Acts like [`TraceEvent::ZoomTo`], or shows the whole run if those cycles fill the screen
    /// already.
    ZoomToOrOut(CycleRange),
    /// Pans until a range of cycles is visible.
    BringIntoView(CycleRange),
    /// Scrolls the lanes down by this many points.
    ScrollBy(f64),
    /// Shows some IPUs; an empty set shows all of them.
    ShowIpus(BTreeSet<IpuId>),
    /// Filters steps by a part of their names.
    SetFilter(String),
    /// Shows other tables below the lanes.
    ShowTab(TraceDetailsTab),
    /// Shows another figure of tiles.
    ShowTileFigure(TileFigure),
    /// Selects a step. With `add` the earlier selection stays, and a selected step is deselected.
    ChooseStep { step: SelectedStep, add: bool },
    /// Selects the step at a position of a lane; `lane` is the index of the lane.
    GoToPosition { lane: usize, position: u64 },
    /// Selects a bar that stands for several steps.
    ChooseBar(SelectedBar),
    /// Selects a mark or a block of marks.
    ChooseMark(SelectedMark),
    /// Selects a mark and shows its cycles with a small margin.
    GoToMark(SelectedMark),
    /// Highlights the path of a micro-batch and dims everything else, or removes the dimming.
    FollowMicroBatch(Option<u64>),
    /// Dims everything that is not on the critical path, or removes the dimming.
    LightPath(bool),
    /// Shows all rows of an IPU, or restores its default height.
    EnlargeIpu(IpuId),
    /// Sets the height of an IPU in points, or restores its default height.
    SetIpuHeight(IpuId, Option<f32>),
    /// Clears the selection.
    ChooseNothing,
    /// Marks a range of cycles, if there is one. Without `keep` the earlier marks are removed.
    Mark { range: Option<CycleRange>, keep: bool },
    /// Marks a range of cycles in place of earlier marks, and shows another range with a small
    /// margin.
    MarkAndZoom { mark: CycleRange, zoom: CycleRange },
    /// Clears the selection, the marks and the filter.
    Clear,
}
