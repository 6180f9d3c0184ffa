//! What the user does with the trace, as plain data: pointer, keys and controls say it, and
//! [`TraceSettings::apply`](super::settings::TraceSettings::apply) does it.

use super::layers::marks::SelectedMark;
use super::selected_bar::SelectedBar;
use super::settings::TraceDetailsTab;
use crate::model::command::SelectedStep;
use crate::widgets::pan_zoom_axis::PanZoomAxis;
use std::collections::BTreeSet;
use tilescope_analysis::trace::TileFigure;
use tilescope_report::units::{CycleRange, IpuId};

/// A change of what is shown or chosen.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum TraceEvent {
    /// Shows what an axis shows.
    ShowAxis(PanZoomAxis),
    /// Shows all of the run.
    ShowWholeRun,
    /// Shows some cycles with a little around them.
    ZoomTo(CycleRange),
    /// As [`TraceEvent::ZoomTo`], or the whole run where those cycles are shown already.
    ZoomToOrOut(CycleRange),
    /// Pans until some cycles are on the screen.
    BringIntoView(CycleRange),
    /// Scrolls the lanes down by so many points.
    ScrollBy(f64),
    /// Shows some IPUs; none of them stands for all.
    ShowIpus(BTreeSet<IpuId>),
    /// Looks for steps by a part of their names.
    SetFilter(String),
    /// Shows other tables below the lanes.
    ShowTab(TraceDetailsTab),
    /// Shows something else of tiles.
    ShowTileFigure(TileFigure),
    /// Chooses a step; with `add` beside those chosen before, and a chosen one no longer.
    ChooseStep { step: SelectedStep, add: bool },
    /// Chooses the step at a position of a lane, which is told by its own position.
    GoToPosition { lane: usize, position: u64 },
    /// Chooses a bar that stands for several steps.
    ChooseBar(SelectedBar),
    /// Chooses a mark, or a block of marks.
    ChooseMark(SelectedMark),
    /// Chooses a mark and shows its cycles with a little around them.
    GoToMark(SelectedMark),
    /// Lights the path of a micro-batch and veils all else, or veils nothing any more.
    FollowMicroBatch(Option<u64>),
    /// Veils what is not on the critical path, or veils nothing any more.
    LightPath(bool),
    /// Gives an IPU all of its rows, or again as much as the others.
    EnlargeIpu(IpuId),
    /// Gives an IPU a height in points, or again as much as the others.
    SetIpuHeight(IpuId, Option<f32>),
    /// Chooses nothing.
    ChooseNothing,
    /// Marks some cycles, if there are any to mark; without `keep` instead of the marks before.
    Mark { range: Option<CycleRange>, keep: bool },
    /// Marks some cycles instead of those before, and shows others with a little around them.
    MarkAndZoom { mark: CycleRange, zoom: CycleRange },
    /// Chooses, marks and filters nothing.
    Clear,
}
