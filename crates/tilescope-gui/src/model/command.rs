//! Commands of the user. Views and menus push them; only the session applies them.

use crate::model::export_request::ExportRequest;
use crate::model::mechanism_page::MechanismPage;
use crate::model::message::StatusMessage;
use crate::model::navigation::ReportBookmark;
use crate::model::preferences::{
    AppearancePrefs, LivenessPrefs, MemoryPrefs, OperationPrefs, OperationsGraphPrefs, RemotePrefs,
    ThemeChoice, TracePrefs,
};
use crate::model::view_id::ViewId;
use serde::{Deserialize, Serialize};
use std::cell::RefCell;
use std::path::PathBuf;
use tilescope_analysis::insights::SpecChanges;
use tilescope_analysis::view_location::ViewLocation;
use tilescope_report::units::{
    CycleRange, IpuId, OperationId, ProgramId, ReplicaIpu, StepId, TileId, VariableId,
};

/// The commands pushed during a frame, in order.
///
/// Everything that draws shares the queue and therefore needs no other mutable state. The session
/// takes and applies the commands between two frames.
#[derive(Debug, Default)]
pub(crate) struct CommandQueue(RefCell<Vec<AppCommand>>);

impl CommandQueue {
    /// Adds a command to be applied after this frame.
    pub(crate) fn push(&self, command: AppCommand) {
        self.0.borrow_mut().push(command);
    }

    /// Adds all commands, in this order.
    pub(crate) fn extend(&self, commands: impl IntoIterator<Item = AppCommand>) {
        // Collected first because the iterator may itself push commands.
        let commands: Vec<AppCommand> = commands.into_iter().collect();
        self.0.borrow_mut().extend(commands);
    }

    /// Returns true if the queue holds no command.
    pub(crate) fn is_empty(&self) -> bool {
        self.0.borrow().is_empty()
    }

    /// Removes and returns all commands pushed since the last call.
    pub(crate) fn take(&self) -> Vec<AppCommand> {
        self.0.take()
    }
}

/// A step selected in the trace. All tabs share it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SelectedStep {
    /// The IPU and its replicas.
    #[serde(rename = "ipu")]
    pub at: ReplicaIpu,
    /// The tile group of the lane.
    pub sub_lane: u8,
    /// The position of the step on that lane.
    pub position: u64,
    pub step: StepId,
}

/// An action that the visible view performs itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ViewAction {
    /// Zooms in one step.
    ZoomIn,
    /// Zooms out one step.
    ZoomOut,
    /// Moves left: to earlier cycles or lower tiles.
    PanLeft,
    /// Moves right: to later cycles or higher tiles.
    PanRight,
    /// Moves up by one step.
    PanUp,
    /// Moves down by one step.
    PanDown,
    /// Shows the selection, or everything if nothing is selected.
    ZoomToSelection,
    /// Selects the next item.
    SelectNext,
    /// Selects the previous item.
    SelectPrevious,
    /// Adds the next item to the selection.
    AddNextToSelection,
    /// Adds the previous item to the selection.
    AddPreviousToSelection,
    /// Goes to an iteration (or another repeated range) of median length.
    GoToTypical,
    /// Goes to the fastest iteration.
    GoToFastest,
    /// Goes to the slowest iteration.
    GoToSlowest,
    /// Follows the micro-batch of the selection, or stops following one.
    FollowMicroBatch,
    /// Highlights the critical path and dims everything else, or removes the dimming.
    LightPath,
    /// Selects the next step of the critical path.
    SelectNextOnPath,
    /// Selects the previous step of the critical path.
    SelectPreviousOnPath,
    /// Simulates the proposed changes.
    TryProposals,
    /// Clears the selection and the filter.
    ClearSelection,
    /// Moves the focus to the filter.
    FocusFilter,
    /// Marks the selection and removes the previous mark.
    MarkSelection,
    /// Marks the selection and keeps other marks.
    AddMark,
}

/// The overlays that can cover the view.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OverlayKind {
    /// The command palette: a list of all commands.
    CommandPalette,
    /// The list of keys and gestures.
    Shortcuts,
    /// The bookmarks with their notes.
    Bookmarks,
    /// The dialog that saves a picture or a table.
    ExportDialog,
    /// The preferences of the user.
    Preferences,
    /// The help pages.
    Help,
}

/// The purpose for which a report or a model is chosen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ChooserPurpose {
    /// Opens a report, or a model to simulate it.
    Open,
    /// Compares the visible report with another one.
    Compare,
    /// Simulates a model.
    Model,
    /// Makes the spec being edited read another model.
    SpecModel,
    /// Shows all reports of a directory as one series.
    Series,
}

/// A command for the session.
#[derive(Clone, Debug, PartialEq)]
pub enum AppCommand {
    /// Opens a report (a directory or a file), or an ONNX file to simulate.
    Open(PathBuf),
    /// Opens a report on another machine.
    OpenRemote(RemotePrefs),
    /// Opens several paths: each report in its own tab, and one model after another.
    OpenAll(Vec<PathBuf>),
    /// Opens a report without comparing it with the baseline.
    OpenAlone(PathBuf),
    /// Sets the report that newly opened reports are compared with, or clears it.
    PinBaseline(Option<PathBuf>),
    /// Shows the reports of a directory, or several given reports, as one series.
    ShowSeries(Vec<PathBuf>),
    /// Shows the series that was shown last.
    ShowLastSeries,
    /// Closes the series page.
    CloseSeries,
    /// Opens the dialog that chooses a report or a model, or closes it.
    ChooseReport(ChooserPurpose),
    Compare(PathBuf, PathBuf),
    /// Compares the visible report with another one.
    CompareWith(PathBuf),
    /// Selects or deselects a report of the home screen for a comparison.
    ToggleComparisonCandidate(PathBuf),
    /// Removes a comparison from the list of recent ones.
    RemoveRecentComparison(PathBuf, PathBuf),
    /// Swaps source and target.
    SwapSides,
    /// Ends the comparison and shows the source alone.
    EndComparison,
    /// Applies a selection command to the target of a comparison.
    ApplyToTarget(Box<AppCommand>),
    /// Shows or hides the editor of the report's spec.
    ToggleWhatIf,
    /// Opens the spec editor with a key set to a value.
    OpenWhatIfWith(&'static str, String),
    /// Opens the spec editor with several keys set to values, written as for `--set`.
    OpenWhatIfWithAll(SpecChanges),
    /// Opens the spec editor with another text.
    OpenWhatIfWithText(String),
    /// Opens the spec editor with the cursor on a key.
    OpenWhatIfAt(&'static str),
    /// Makes the spec being edited read another ONNX file.
    SetSpecModel(PathBuf),
    /// Simulates the model that the dialog shows.
    SimulateModel,
    /// Writes the spec of the model that the dialog shows to a file.
    SaveModelSpec(PathBuf),
    /// Closes the dialog of a model. Its simulation continues.
    CloseModel,
    /// Estimates the spec of the report on other machines.
    TryOtherMachines,
    /// Shows the search that starts from the spec of the report.
    ShowSpecSearch,
    /// Shows the last search again.
    ShowLastSearch,
    /// Closes the search page. Its simulations continue.
    CloseSpecSearch,
    /// Stops the simulations of the search.
    StopSpecSearch,
    /// Simulates a spec and open its report.
    SimulateText(String),
    /// Opens one of the reports of a directory, or none of them.
    AnswerReportChoice(Option<PathBuf>),
    /// Cancels the opening of a report.
    CancelOpening,
    /// Simulates the changed spec and compares the result.
    SimulateVariant,
    /// Shows a tab, or the home screen.
    ShowTab(Option<usize>),
    /// Shows the next tab (`true`) or the previous one.
    NextTab(bool),
    CloseTab(usize),
    /// Ends the program, after asking if something would be lost.
    Quit,
    /// Ends the program even if something is lost, or keeps it running.
    AnswerQuit(bool),
    /// Reads the open report from disk again.
    Reload,
    /// Restores the previous view, selection and zoom.
    Undo,
    Redo,
    /// Opens another window with the same report and view.
    NewWindow,
    /// Copys a link to the current view.
    CopyLink,
    /// Goes to the place that a link leads to.
    OpenLink(String),
    /// Adds a bookmark for the current view.
    AddBookmark,
    /// Replaces the list of bookmarks.
    SetBookmarks(Vec<ReportBookmark>),
    /// Opens the find panel.
    OpenSearch,
    /// Shows statistics of the selection.
    ShowSelectionStatistics,
    /// Moves by this many search results; a negative number moves back.
    NextSearchResult(i64),
    /// Writes a picture or a table.
    Export(ExportRequest),
    /// Closes the visible tab.
    CloseReport,
    /// Shows a view of the open report.
    ShowView(ViewId),
    SetTheme(ThemeChoice),
    /// Sets units, colours, text size and the effect of dragging.
    SetAppearance(AppearancePrefs),
    /// Sets the keys of an action, or restores the default keys.
    SetShortcuts(&'static str, Option<Vec<String>>),
    /// Restores the default preferences.
    ResetPrefs,
    /// Toggles the side menu between icons only and full width.
    ToggleMenu,
    /// Shows an overlay, or closes the visible one.
    Overlay(Option<OverlayKind>),
    /// Shows the help page of a mechanism.
    ShowMechanism(MechanismPage),
    /// Shows a view and uses a control of its toolbar as if it were clicked.
    UseControl(ViewId, &'static str),
    /// Shows a view and one of the tabs of its tables.
    ShowTables(ViewId, &'static str),
    /// Sends an action to the visible view.
    SendToView(ViewAction),
    /// Simulates a bundled spec.
    Simulate(String),
    CancelSimulation,
    /// Removes a report from the list of recent ones.
    RemoveRecentReport(PathBuf),
    SelectTiles(Vec<TileId>),
    /// Selects a step, or clears the selected step.
    SelectStep(Option<SelectedStep>),
    /// Makes the trace show these cycles; `None` acknowledges that it does.
    ZoomToCycles(Option<CycleRange>),
    /// Selects a node of the compiled program, or clears it.
    SelectProgram(Option<ProgramId>),
    /// Selects an operation of the model, or clears it.
    SelectOperation(Option<OperationId>),
    /// Selects a variable, or clears it.
    SelectVariable(Option<VariableId>),
    /// Selects an IPU, or clears it.
    SelectIpu(Option<IpuId>),
    /// Sets the preferences of the execution trace.
    SetTracePrefs(TracePrefs),
    /// Sets the preferences of the memory view.
    SetMemoryPrefs(MemoryPrefs),
    /// Sets the preferences of the liveness view.
    SetLivenessPrefs(LivenessPrefs),
    /// Sets the preferences of the operations view.
    SetOperationPrefs(OperationPrefs),
    /// Sets the preferences of the operations graph.
    SetGraphPrefs(OperationsGraphPrefs),
    /// Folds or unfolds a block of the summary.
    ToggleBlock(&'static str),
    /// Sets the filter of the options table.
    SetOptionFilter(String),
    /// Shows a message to the user.
    ShowMessage(StatusMessage),
    /// Removes a message that the user has read.
    DismissMessage(usize),
    /// Removes all messages.
    DismissMessages,
}

impl AppCommand {
    /// Returns the commands that select the objects a place refers to.
    pub(crate) fn select_insight_location(place: &ViewLocation) -> Vec<Self> {
        let mut commands = Vec::new();
        if !place.tiles.is_empty() {
            commands.push(Self::SelectTiles(place.tiles.clone()));
        }
        if place.ipu.is_some() {
            commands.push(Self::SelectIpu(place.ipu));
        }
        if place.program.is_some() {
            commands.push(Self::SelectProgram(place.program));
        }
        if place.operation.is_some() {
            commands.push(Self::SelectOperation(place.operation));
        }
        if place.variable.is_some() {
            commands.push(Self::SelectVariable(place.variable));
        }
        if place.cycles.is_some() {
            commands.push(Self::ZoomToCycles(place.cycles));
        }
        commands
    }
}
