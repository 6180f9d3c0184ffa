//! What the user asks for. Views and menus push commands; the session applies them, and nothing else
//! acts on them.

use crate::model::export_request::ExportRequest;
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

/// Collects what is asked for during a frame, in order.
///
/// It is shared by everything that draws, which therefore needs nothing else that it may change; the
/// session takes and applies the commands between two frames.
#[derive(Debug, Default)]
pub(crate) struct CommandQueue(RefCell<Vec<AppCommand>>);

impl CommandQueue {
    /// Asks for something to be done after this frame.
    pub(crate) fn push(&self, command: AppCommand) {
        self.0.borrow_mut().push(command);
    }

    /// Asks for all of it, in this order.
    pub(crate) fn extend(&self, commands: impl IntoIterator<Item = AppCommand>) {
        // Collected first: the iterator may itself ask for something.
        let commands: Vec<AppCommand> = commands.into_iter().collect();
        self.0.borrow_mut().extend(commands);
    }

    /// Whether nothing was asked for.
    pub(crate) fn is_empty(&self) -> bool {
        self.0.borrow().is_empty()
    }

    /// Everything that was asked for since it was last taken.
    pub(crate) fn take(&self) -> Vec<AppCommand> {
        self.0.take()
    }
}

/// A step that is chosen in the trace: every tab knows it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SelectedStep {
    /// The IPU, and the replicas it is of.
    #[serde(rename = "ipu")]
    pub at: ReplicaIpu,
    /// Its group of tiles.
    pub sub_lane: u8,
    /// Position on that lane.
    pub position: u64,
    pub step: StepId,
}

/// What the view that is shown is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ViewAction {
    /// Zoom closer.
    ZoomIn,
    /// Zoom out.
    ZoomOut,
    /// Go to the left: to earlier cycles, to lower tiles.
    PanLeft,
    /// Go to the right.
    PanRight,
    /// Go up.
    PanUp,
    /// Go down.
    PanDown,
    /// Show the selection, or everything.
    ZoomToSelection,
    /// Choose the next thing.
    SelectNext,
    /// Choose the thing before.
    SelectPrevious,
    /// Choose the next thing beside what is chosen.
    AddNextToSelection,
    /// Choose the thing before beside what is chosen.
    AddPreviousToSelection,
    /// Go to an iteration of median length, or what else repeats.
    GoToTypical,
    /// Go to the fastest one.
    GoToFastest,
    /// Go to the slowest one.
    GoToSlowest,
    /// Follow the micro-batch of what is chosen, or follow none any more.
    FollowMicroBatch,
    /// Highlight the critical path and veil all else, or veil nothing any more.
    LightPath,
    /// Choose the next step of the critical path.
    SelectNextOnPath,
    /// Choose the step of the critical path before.
    SelectPreviousOnPath,
    /// Simulate what is proposed.
    TryProposals,
    /// Choose nothing, filter nothing.
    ClearSelection,
    /// Type a filter.
    FocusFilter,
    /// Mark the selection; a mark before it goes away.
    MarkSelection,
    /// Mark the selection and keep other marks.
    AddMark,
}

/// What can lie over the view.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OverlayKind {
    /// The command palette.
    CommandPalette,
    /// Keys and gestures.
    Shortcuts,
    /// Bookmarks with their notes.
    Bookmarks,
    /// What to save where.
    ExportDialog,
    /// Preferences.
    Preferences,
    /// Pages of help.
    Help,
}

/// What a report or a model is chosen for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ChooserPurpose {
    /// Open a report, or a model to simulate it.
    Open,
    /// Compare the report that is shown with another one.
    Compare,
    /// Simulate a model.
    Model,
    /// Have the spec that is being changed read another model.
    SpecModel,
    /// Show all reports of a directory as one series.
    Series,
}

/// One thing to do.
#[derive(Clone, Debug, PartialEq)]
pub enum AppCommand {
    /// Open a report, a directory or a file; or an ONNX file, to simulate it.
    Open(PathBuf),
    /// Open a report on another machine.
    OpenRemote(RemotePrefs),
    /// Open several of them: each report in a tab, one model after another.
    OpenAll(Vec<PathBuf>),
    /// Open a report by itself, whatever the baseline is.
    OpenAlone(PathBuf),
    /// Have reports that are opened compared with this one, or with none.
    PinBaseline(Option<PathBuf>),
    /// Show the reports of a directory, or several of them, as one series.
    ShowSeries(Vec<PathBuf>),
    /// Show the series that was shown last.
    ShowLastSeries,
    /// Close it.
    CloseSeries,
    /// Ask for a report or a model, or ask no more.
    ChooseReport(ChooserPurpose),
    Compare(PathBuf, PathBuf),
    /// Compare the report that is shown with another one.
    CompareWith(PathBuf),
    /// Tick or untick a report of the home screen for a comparison.
    ToggleComparisonCandidate(PathBuf),
    /// Take a comparison off the list of recent ones.
    RemoveRecentComparison(PathBuf, PathBuf),
    /// Exchange source and target.
    SwapSides,
    /// Show the source alone.
    EndComparison,
    /// Choose something in the target of a comparison.
    ApplyToTarget(Box<AppCommand>),
    /// Show the spec of the report to be changed, or not.
    ToggleWhatIf,
    /// Show it with a key changed to a value.
    OpenWhatIfWith(&'static str, String),
    /// Show it with keys changed to values, as `--set` takes them.
    OpenWhatIfWithAll(SpecChanges),
    /// Show it with another text.
    OpenWhatIfWithText(String),
    /// Show it with the cursor on a key.
    OpenWhatIfAt(&'static str),
    /// Have the spec that is being changed read another ONNX file.
    SetSpecModel(PathBuf),
    /// Simulate the model that the dialog shows.
    SimulateModel,
    /// Write the spec of the model that the dialog shows.
    SaveModelSpec(PathBuf),
    /// Close the dialog of a model. Its simulation goes on.
    CloseModel,
    /// Ask what other machines would make of the spec of the report.
    TryOtherMachines,
    /// Show the search from the spec of the report.
    ShowSpecSearch,
    /// Show the search that was shown last.
    ShowLastSearch,
    /// Close it. What it simulates goes on.
    CloseSpecSearch,
    /// End what it simulates.
    StopSpecSearch,
    /// Simulate a spec and open its report.
    SimulateText(String),
    /// Open one of the reports of a directory, or none of them.
    AnswerReportChoice(Option<PathBuf>),
    /// Give up opening a report.
    CancelOpening,
    /// Simulate the spec as it was changed, and compare the result.
    SimulateVariant,
    /// Show a tab, or the home screen.
    ShowTab(Option<usize>),
    /// Show the tab after the one that is shown, or the one before.
    NextTab(bool),
    CloseTab(usize),
    /// End the program; what would be lost is asked about first.
    Quit,
    /// End the program whatever is lost, or do not end it.
    AnswerQuit(bool),
    /// Read the open report again.
    Reload,
    /// Undo: restore the previous view, selection and zoom.
    Undo,
    Redo,
    /// Open another window with the same report and view.
    NewWindow,
    /// Copy a link to the current view.
    CopyLink,
    /// Go where a link leads.
    OpenLink(String),
    /// Bookmark the current view.
    AddBookmark,
    /// Change the list of bookmarks.
    SetBookmarks(Vec<ReportBookmark>),
    /// Open the find panel.
    OpenSearch,
    /// Show statistics of what is selected.
    ShowSelectionStatistics,
    /// Go on to a later result, or below 0 to an earlier one.
    NextSearchResult(i64),
    /// Write a picture or a table.
    Export(ExportRequest),
    /// Close the tab that is shown.
    CloseReport,
    /// Show a view of the open report.
    ShowView(ViewId),
    SetTheme(ThemeChoice),
    /// Choose units, colours, text size and what dragging does.
    SetAppearance(AppearancePrefs),
    /// Choose the keys of an action, or go back to those of the table.
    SetShortcuts(&'static str, Option<Vec<String>>),
    /// Go back to the preferences of a first start.
    ResetPrefs,
    /// Show the side menu as icons only, or not.
    ToggleMenu,
    /// Show or close an overlay.
    Overlay(Option<OverlayKind>),
    /// Show a view, and use a control of its strip as if it were clicked.
    UseControl(ViewId, &'static str),
    /// Show a view, and one of the tabs of its tables.
    ShowTables(ViewId, &'static str),
    /// Have the shown view perform an action.
    SendToView(ViewAction),
    /// Simulate a bundled spec.
    Simulate(String),
    CancelSimulation,
    /// Take a report off the list of recent ones.
    RemoveRecentReport(PathBuf),
    SelectTiles(Vec<TileId>),
    /// Choose a step, or none.
    SelectStep(Option<SelectedStep>),
    /// Let the trace show these cycles, or say that it does.
    ZoomToCycles(Option<CycleRange>),
    /// Choose a node of the compiled program, or none.
    SelectProgram(Option<ProgramId>),
    /// Choose an operation of the model, or none.
    SelectOperation(Option<OperationId>),
    /// Choose a variable, or none.
    SelectVariable(Option<VariableId>),
    /// Choose an IPU, or none.
    SelectIpu(Option<IpuId>),
    /// Change choices of the execution trace.
    SetTracePrefs(TracePrefs),
    /// Change choices of the memory view.
    SetMemoryPrefs(MemoryPrefs),
    /// Change choices of the liveness view.
    SetLivenessPrefs(LivenessPrefs),
    /// Change choices of the operations view.
    SetOperationPrefs(OperationPrefs),
    /// Change choices of the operations graph.
    SetGraphPrefs(OperationsGraphPrefs),
    /// Fold or unfold a block of the summary.
    ToggleBlock(&'static str),
    /// Change the filter of the options table.
    SetOptionFilter(String),
    /// Tell the user something.
    ShowMessage(StatusMessage),
    /// The message has been read.
    DismissMessage(usize),
    /// All messages have been read.
    DismissMessages,
}

impl AppCommand {
    /// The commands that select what a place is about.
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
