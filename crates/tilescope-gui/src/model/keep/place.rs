//! A place in a report: everything that tells one look at it from another.

use crate::model::opening::Opened;
use crate::model::prefs::Prefs;
use crate::model::selection::Selection;
use crate::model::state::{State, kept, restored};
use crate::model::view_id::ViewId;
use std::path::PathBuf;
use tilescope_report::units::{OperationId, ProgramId, StepId, VariableId};
use tilescope_report::{Report, ReportError};

/// Which view is shown, what is selected, how the view shows it, and the view's settings.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Place {
    /// The view.
    pub view: ViewId,
    /// What is chosen.
    pub selection: Selection,
    /// The state of the view.
    pub state: State,
    /// The settings that the view obeys.
    pub prefs: State,
    /// The other side, where the report is compared.
    pub beside: Option<Box<Beside>>,
}

/// The other side of a comparison.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Beside {
    /// The report.
    pub report: PathBuf,
    /// What is chosen in it.
    pub selection: Selection,
    /// The state of its view.
    pub state: State,
    /// How both sides are laid out.
    pub layout: State,
}

impl Place {
    /// Its name in lists, unless the user gives it one.
    pub(crate) fn title(&self) -> String {
        self.view.title().to_owned()
    }
}

/// The settings that a view obeys.
pub(crate) fn view_prefs(view: ViewId, prefs: &Prefs) -> State {
    match view {
        ViewId::ExecutionTrace => kept(&prefs.trace),
        ViewId::Memory => kept(&prefs.memory),
        ViewId::Liveness => kept(&prefs.liveness),
        ViewId::Operations => kept(&prefs.operations),
        ViewId::OperationsGraph => kept(&prefs.operations_graph),
        _ => State::new(),
    }
}

/// Changes the settings that a view obeys; names of what it does not understand.
pub(crate) fn set_view_prefs(view: ViewId, state: &State, prefs: &mut Prefs) -> Vec<String> {
    let strange;
    match view {
        ViewId::ExecutionTrace => (prefs.trace, strange) = restored(state),
        ViewId::Memory => (prefs.memory, strange) = restored(state),
        ViewId::Liveness => (prefs.liveness, strange) = restored(state),
        ViewId::Operations => (prefs.operations, strange) = restored(state),
        ViewId::OperationsGraph => (prefs.operations_graph, strange) = restored(state),
        _ => strange = state.keys().cloned().collect(),
    }
    strange
}

/// What of a selection exists in a report, and words about the rest.
pub(crate) fn existing(selection: &Selection, opened: &Opened) -> (Selection, Vec<String>) {
    let mut found = selection.clone();
    let mut gone = Vec::new();
    let (report, target) = (&opened.report, &opened.target);
    let mut say = |what: String| gone.push(format!("This report has no {what}."));
    found.tiles.retain(|tile| {
        let exists = *tile < target.tiles_per_replica();
        if !exists {
            say(format!("tile {tile}"));
        }
        exists
    });
    if let Some(ipu) = found.ipu.take_if(|ipu| *ipu >= target.ipus_per_replica) {
        say(format!("IPU {ipu}"));
    }
    if let Some(chosen) = found.step.take_if(|chosen| !step_exists(report, chosen.step)) {
        say(format!("step {}", chosen.step.0));
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

/// What is left of a selection when a report was read again, or another one was opened: numbers
/// count as the same thing only where its name is the same.
pub(crate) fn carried(selection: &Selection, old: &Report, new: &Opened) -> Selection {
    let (mut kept, _) = existing(selection, new);
    let report = &new.report;
    kept.step = kept.step.filter(|chosen| {
        let name = |report: &Report| {
            let step = report.step(chosen.step).ok()??;
            Some((step.kind_name, step.program.and_then(|id| program_name(report, id))))
        };
        name(old) == name(report)
    });
    kept.program = kept.program.filter(|id| program_name(old, *id) == program_name(report, *id));
    kept.operation =
        kept.operation.filter(|id| operation_name(old, *id) == operation_name(report, *id));
    kept.variable =
        kept.variable.filter(|id| variable_name(old, *id) == variable_name(report, *id));
    kept
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
