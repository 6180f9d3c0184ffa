//! Keyboard movement from step to step. The next and the previous step are looked up in the
//! background, since they may be far outside the visible range.

use super::loaded_trace::LoadedTrace;
use super::scene::TraceScene;
use crate::model::command::SelectedStep;
use crate::views::ViewContext;
use crate::widgets::background_query::{BackgroundQuery, BackgroundQueryError, Versioned};
use egui::Ui;
use tilescope_analysis::trace::{LaneItem, LaneItemList};
use tilescope_report::ReportError;
use tilescope_report::trace::{CriticalPath, LaneStep};
use tilescope_report::units::{CycleRange, Cycles, ReplicaIpu, StepId};

/// The direction of a move, and its effect on the earlier selection.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct StepMove {
    pub forwards: bool,
    /// True if the step is added to the selection.
    pub add: bool,
    /// True if the move follows the critical path across lanes.
    pub on_path: bool,
}

/// The origin of a move.
#[derive(Clone, Copy, Debug, PartialEq)]
enum WalkOrigin {
    Step(SelectedStep),
    /// Without a selection: the first step of the critical path from a cycle on.
    Cycle(Cycles),
    /// A given step: the index of its lane, and its position in the lane.
    Position(usize, u64),
}

/// The query key of a neighbouring step.
#[derive(Clone, Copy, Debug, PartialEq)]
struct NeighbourStepKey {
    from: WalkOrigin,
    step_move: StepMove,
    /// The number of the key press, which distinguishes repeated moves.
    press: u64,
}

/// A step that a move found.
pub(super) struct StepWalkTarget {
    pub step: SelectedStep,
    /// The cycles of the step.
    pub range: CycleRange,
    /// True if the step is added to the selection.
    pub add: bool,
}

/// The step being looked up.
#[derive(Default)]
pub(super) struct StepWalk {
    wanted: Option<NeighbourStepKey>,
    presses: u64,
    neighbour: BackgroundQuery<NeighbourStepKey, Option<(SelectedStep, CycleRange)>>,
}

impl StepWalk {
    /// Starts to move on from a step.
    pub(super) fn start(&mut self, from: SelectedStep, step_move: StepMove) {
        self.start_from(WalkOrigin::Step(from), step_move);
    }

    fn start_from(&mut self, from: WalkOrigin, step_move: StepMove) {
        self.presses += 1;
        self.wanted = Some(NeighbourStepKey { from, step_move, press: self.presses });
    }

    /// Starts to move to the critical path, from a cycle on.
    pub(super) fn start_on_path(&mut self, from: Cycles) {
        let step_move = StepMove { forwards: true, add: false, on_path: true };
        self.start_from(WalkOrigin::Cycle(from), step_move);
    }

    /// Starts to move to the step at a position of a lane.
    pub(super) fn start_at(&mut self, lane: usize, position: u64) {
        let step_move = StepMove { forwards: true, add: false, on_path: false };
        self.start_from(WalkOrigin::Position(lane, position), step_move);
    }

    /// The step that was found, once it is known. `None` until then, and at the end of a lane.
    pub(super) fn arrived(
        &mut self,
        ui: &Ui,
        context: &ViewContext<'_>,
        prepared: &Versioned<LoadedTrace>,
    ) -> Option<Result<StepWalkTarget, BackgroundQueryError>> {
        let wanted = self.wanted?;
        let shared = prepared.clone();
        let asked = self
            .neighbour
            .ask(ui.ctx(), context.workers, &wanted, move |wanted| neighbour(&shared, wanted));
        let found = asked.finished()?;
        self.wanted = None;
        let add = wanted.step_move.add;
        let target =
            found.map(|found| found.map(|(step, range)| StepWalkTarget { step, range, add }));
        target.transpose()
    }
}

/// The first single step that begins in a window, in the first lane that has one.
pub(super) fn first_step_on_screen(scene: &TraceScene, window: CycleRange) -> Option<SelectedStep> {
    let lanes = scene.ipus.iter().flat_map(|ipu| &ipu.lanes);
    lanes.filter_map(|lane| first_step(lane, window)).next()
}

/// The first step of the first lane.
pub(super) fn first_step_of_trace(prepared: &LoadedTrace) -> Option<SelectedStep> {
    let lanes = prepared.ipus.first()?;
    let sub_lane = *lanes.sub_lanes.first()?;
    Some(SelectedStep { at: lanes.at, sub_lane, position: 0, step: StepId(0) })
}

fn first_step(lane: &LaneItemList, window: CycleRange) -> Option<SelectedStep> {
    let is_inside = |item: &&LaneItem| item.range.start >= window.start;
    let (item, step) = lane
        .items
        .iter()
        .filter(is_inside)
        .filter_map(|item| item.step().map(|step| (item, step)))
        .min_by_key(|(item, _)| item.range.start)?;
    let position = item.first_position();
    Some(SelectedStep { at: lane.at, sub_lane: lane.sub_lane, position, step })
}

fn neighbour(
    prepared: &LoadedTrace,
    wanted: &NeighbourStepKey,
) -> Result<Option<(SelectedStep, CycleRange)>, ReportError> {
    let StepMove { forwards, on_path, .. } = wanted.step_move;
    let SelectedStep { at, sub_lane, position, .. } = match wanted.from {
        WalkOrigin::Step(step) if on_path => return on_critical_path(prepared, step, forwards),
        WalkOrigin::Step(step) => step,
        WalkOrigin::Cycle(cycle) => {
            let Some(path) = prepared.known_path() else { return Ok(None) };
            return Ok(path.step_at(cycle)?.and_then(|found| chosen(path, found)));
        }
        WalkOrigin::Position(lane, position) => {
            let Some(path) = prepared.known_path() else { return Ok(None) };
            let step = path.lane_at(lane).map(|lane| lane.step(position)).transpose()?;
            return Ok(step.flatten().and_then(|step| chosen(path, (lane, step))));
        }
    };
    let Some(lane) = prepared.trace.lane_at(at, sub_lane) else { return Ok(None) };
    let found = if forwards { lane.next(position)? } else { lane.previous(position)? };
    Ok(found.map(|found| {
        let step = SelectedStep { at, sub_lane, position: found.position, step: found.step };
        (step, found.range)
    }))
}

/// The next step of the critical path. From a step beside the path, the step at its end or its
/// start.
fn on_critical_path(
    prepared: &LoadedTrace,
    from: SelectedStep,
    forwards: bool,
) -> Result<Option<(SelectedStep, CycleRange)>, ReportError> {
    let Some(path) = prepared.known_path() else { return Ok(None) };
    let Some(at) = path.position_of(from.at, from.sub_lane) else { return Ok(None) };
    let step = path.lane_at(at).map(|lane| lane.step(from.position)).transpose()?;
    let Some(step) = step.flatten() else { return Ok(None) };
    let found = match (path.stretch_of(at, &step)?, forwards) {
        (Some(_), true) => path.next(at, &step)?,
        (Some(_), false) => path.previous(at, &step)?,
        (None, true) => path.step_at(step.range.end)?,
        (None, false) => path.step_at(step.range.start)?,
    };
    Ok(found.and_then(|found| chosen(path, found)))
}

/// The selection of a step in a lane, given the index of the lane.
fn chosen(
    path: &CriticalPath,
    (lane, step): (usize, LaneStep),
) -> Option<(SelectedStep, CycleRange)> {
    let info = path.lane_infos().get(lane)?;
    let at = ReplicaIpu { class: info.class, ipu: info.ipu };
    let sub_lane = info.sub_lane;
    let position = step.position;
    Some((SelectedStep { at, sub_lane, position, step: step.step }, step.range))
}
