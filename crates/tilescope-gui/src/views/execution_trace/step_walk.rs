//! Walking from step to step by keys: the next one and the one before are looked up in the
//! background, since they may lie far outside of what is shown.

use super::loaded_trace::LoadedTrace;
use super::scene::TraceScene;
use crate::model::command::SelectedStep;
use crate::views::ViewContext;
use crate::widgets::background_query::{BackgroundQuery, BackgroundQueryError, Versioned};
use egui::Ui;
use tilescope_analysis::trace::{LaneItem, LaneItemList};
use tilescope_report::ReportError;
use tilescope_report::units::{CycleRange, StepId};

/// Which way to walk, and what becomes of the steps chosen before.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct StepMove {
    pub forwards: bool,
    /// Whether the step is chosen beside what is chosen already.
    pub add: bool,
}

/// A step to look up beside another one.
#[derive(Clone, Copy, Debug, PartialEq)]
struct NeighbourStepKey {
    from: SelectedStep,
    step_move: StepMove,
    /// Tells one key press from the next.
    press: u64,
}

/// A step that was walked to.
pub(super) struct StepWalkTarget {
    pub step: SelectedStep,
    /// Its cycles.
    pub range: CycleRange,
    /// Whether it is chosen beside what is chosen already.
    pub add: bool,
}

/// The step that is being walked to.
#[derive(Default)]
pub(super) struct StepWalk {
    wanted: Option<NeighbourStepKey>,
    presses: u64,
    neighbour: BackgroundQuery<NeighbourStepKey, Option<(SelectedStep, CycleRange)>>,
}

impl StepWalk {
    /// Walks on from a step.
    pub(super) fn start(&mut self, from: SelectedStep, step_move: StepMove) {
        self.presses += 1;
        self.wanted = Some(NeighbourStepKey { from, step_move, press: self.presses });
    }

    /// The step that was walked to, once it is known; none at the end of a lane.
    pub(super) fn arrived(
        &mut self,
        ui: &Ui,
        context: &ViewContext<'_>,
        prepared: &Versioned<LoadedTrace>,
    ) -> Option<Result<StepWalkTarget, BackgroundQueryError>> {
        let wanted = self.wanted?;
        let shared = prepared.clone();
        let question = move |wanted: &NeighbourStepKey| neighbour(&shared, wanted);
        let asked = self.neighbour.ask(ui.ctx(), context.workers, &wanted, question);
        let found = asked.finished()?;
        self.wanted = None;
        let add = wanted.step_move.add;
        let target =
            found.map(|found| found.map(|(step, range)| StepWalkTarget { step, range, add }));
        target.transpose()
    }
}

/// The first single step that begins in a window, of the first lane that has one.
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
    let inside = |item: &&LaneItem| item.range.start >= window.start;
    let (item, step) = lane
        .items
        .iter()
        .filter(inside)
        .filter_map(|item| item.step().map(|step| (item, step)))
        .min_by_key(|(item, _)| item.range.start)?;
    let position = item.first_position();
    Some(SelectedStep { at: lane.at, sub_lane: lane.sub_lane, position, step })
}

fn neighbour(
    prepared: &LoadedTrace,
    wanted: &NeighbourStepKey,
) -> Result<Option<(SelectedStep, CycleRange)>, ReportError> {
    let SelectedStep { at, sub_lane, position, .. } = wanted.from;
    let Some(lane) = prepared.trace.lane_at(at, sub_lane) else { return Ok(None) };
    let forwards = wanted.step_move.forwards;
    let found = if forwards { lane.next(position)? } else { lane.previous(position)? };
    Ok(found.map(|found| {
        let step = SelectedStep { at, sub_lane, position: found.position, step: found.step };
        (step, found.range)
    }))
}
