//! A place in a report: everything that distinguishes it from other places.

use crate::model::open_report::OpenReport;
use crate::model::preferences::UserPreferences;
use crate::model::selection::Selection;
use crate::model::view_id::ViewId;
use crate::model::view_state::{ViewState, from_view_state, to_view_state};
use std::path::PathBuf;
use tilescope_report::units::{OperationId, ProgramId, StepId, VariableId};
use tilescope_report::{Report, ReportError};

/// The visible view, the selection, the state of the view and the view's settings.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct NavigationState {
    /// The visible view.
    pub view: ViewId,
    pub selection: Selection,
    /// The state of the view.
    pub state: ViewState,
    /// The settings that affect the view.
    pub prefs: ViewState,
    /// The target of the comparison, if the report is compared.
    pub target: Option<Box<TargetNavigationState>>,
}

/// The target of a comparison.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct TargetNavigationState {
    pub report: PathBuf,
    /// The selection in the target.
    pub selection: Selection,
    /// The state of the target's view.
    pub state: ViewState,
    /// The layout of both sides.
    pub layout: ViewState,
}

impl NavigationState {
    /// The title in lists, unless the user has chosen another one.
    pub(crate) fn title(&self) -> String {
        self.view.title().to_owned()
    }
}

/// The settings that affect a view.
pub(crate) fn view_prefs(view: ViewId, prefs: &UserPreferences) -> ViewState {
    match view {
        ViewId::ExecutionTrace => to_view_state(&prefs.trace),
        ViewId::Memory => to_view_state(&prefs.memory),
        ViewId::Liveness => to_view_state(&prefs.liveness),
        ViewId::Operations => to_view_state(&prefs.operations),
        ViewId::OperationsGraph => to_view_state(&prefs.operations_graph),
        _ => ViewState::new(),
    }
}

/// Changes the settings that affect a view. Returns the names of unknown settings.
pub(crate) fn set_view_prefs(
    view: ViewId,
    state: &ViewState,
    prefs: &mut UserPreferences,
) -> Vec<String> {
    let strange;
    match view {
        ViewId::ExecutionTrace => (prefs.trace, strange) = from_view_state(state),
        ViewId::Memory => (prefs.memory, strange) = from_view_state(state),
        ViewId::Liveness => (prefs.liveness, strange) = from_view_state(state),
        ViewId::Operations => (prefs.operations, strange) = from_view_state(state),
        ViewId::OperationsGraph => (prefs.operations_graph, strange) = from_view_state(state),
        _ => strange = state.keys().cloned().collect(),
    }
    strange
}

/// The part of a selection that exists in a report, and a message about the rest.
pub(crate) fn existing_selection(
    selection: &Selection,
    opened: &OpenReport,
) -> (Selection, Vec<String>) {
    let mut found = selection.clone();
    let mut gone = Vec::new();
    let report = &opened.report;
    let target = &opened.target;
    let mut say = |what: String| gone.push(format!("This report has no {what}."));
    found.tiles.retain(|tile| {
        let exists = target.has_tile(*tile);
        if !exists {
            say(format!("tile {tile}"));
        }
        exists
    });
    if let Some(ipu) = found.ipu.take_if(|ipu| !target.has_ipu(*ipu)) {
        say(format!("IPU {ipu}"));
    }
    if let Some(chosen) = found.step.take_if(|chosen| !step_exists(report, chosen.step)) {
        say(format!("step {}", chosen.step));
    }
    if let Some(id) = found.program.take_if(|id| program_name(report, *id).is_none()) {
        say(format!("program {}", id.0));
    }
    if let Some(id) = found.operation.take_if(|id| operation_name(report, *id).is_none()) {
        say(format!("operation {}", id.0));
    }
    if let Some(id) = found.variable.take_if(|id| variable_name(report, *id).is_none()) {
        say(format!("variable {}", id.0));
    }
    (found, gone)
}

/// The part of a selection that remains valid after a report was read again or another one was
/// opened. Ids refer to the same object only if its name is the same.
pub(crate) fn carry_over_selection(
    selection: &Selection,
    old: &Report,
    new: &OpenReport,
) -> Selection {
    let (mut kept, _) = existing_selection(selection, new);
    let report = &new.report;
    kept.step =
        kept.step.filter(|chosen| step_name(old, chosen.step) == step_name(report, chosen.step));
    kept.program = kept.program.filter(|id| program_name(old, *id) == program_name(report, *id));
    kept.operation =
        kept.operation.filter(|id| operation_name(old, *id) == operation_name(report, *id));
    kept.variable =
        kept.variable.filter(|id| variable_name(old, *id) == variable_name(report, *id));
    kept
}

/// The name of a step's kind and of its program.
fn step_name(report: &Report, id: StepId) -> Option<(String, Option<String>)> {
    let step = report.step(id).ok()??;
    Some((step.kind_name, step.program.and_then(|id| program_name(report, id))))
}

fn step_exists(report: &Report, id: StepId) -> bool {
    report.step(id).ok().flatten().is_some()
}

fn program_name(report: &Report, id: ProgramId) -> Option<String> {
    let programs = report.programs().ok()?;
    programs.get(id).map(|program| format!("{} {}", program.kind.name(), program.name))
}

fn operation_name(report: &Report, id: OperationId) -> Option<String> {
    report.operations().ok()?.get(id.index()).map(|operation| operation.name.clone())
}

fn variable_name(report: &Report, id: VariableId) -> Option<String> {
    let found: Result<_, ReportError> = report.variable(id);
    found.ok()?.map(|variable| variable.name)
}
