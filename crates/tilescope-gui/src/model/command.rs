//! What the user asks for. Views and menus push commands; the session applies them, and nothing else
//! acts on them.

use crate::model::keep::Bookmark;
use crate::model::message::Message;
use crate::model::prefs::{
    GraphPrefs, LivenessPrefs, Look, MemoryPrefs, OperationPrefs, ThemeChoice, TracePrefs,
};
use crate::model::saving::Saving;
use crate::model::view_id::ViewId;
use serde::{Deserialize, Serialize};
use std::path::PathBuf;
use tilescope_analysis::insights::Place;
use tilescope_report::units::{CycleRange, OperationId, ProgramId, StepId, VariableId};

/// A step that is chosen in the trace: every tab knows it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ChosenStep {
    /// IPU of the replica.
    pub ipu: u32,
    /// Its group of tiles.
    pub sub_lane: u8,
    /// Position on that lane.
    pub position: u64,
    /// The step.
    pub step: StepId,
}

/// What the view that is shown is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wish {
    /// Zoom closer.
    Closer,
    /// Zoom out.
    Farther,
    /// Go to the left: to earlier cycles, to lower tiles.
    Left,
    /// Go to the right.
    Right,
    /// Go up.
    Up,
    /// Go down.
    Down,
    /// Show the selection, or everything.
    Focus,
    /// Choose the next thing.
    Next,
    /// Choose the thing before.
    Previous,
    /// Choose the next thing beside what is chosen.
    AddNext,
    /// Choose the thing before beside what is chosen.
    AddPrevious,
    /// Choose nothing, filter nothing.
    Clear,
    /// Type a filter.
    Filter,
    /// Mark the selection; a mark before it goes away.
    Mark,
    /// Mark the selection and keep other marks.
    KeepMark,
}

/// What can lie over the view.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OverlayKind {
    /// The command palette.
    Commands,
    /// Keys and gestures.
    Keys,
    /// Bookmarks with their notes.
    Bookmarks,
    /// What to save where.
    Save,
    /// Preferences.
    Preferences,
    /// Pages of help.
    Help,
}

/// One thing to do.
#[derive(Clone, Debug, PartialEq)]
pub enum Command {
    /// Open a report: a directory or a file.
    Open(PathBuf),
    /// Ask for a path in the system's dialog.
    OpenDialog,
    /// Compare two reports.
    Compare(PathBuf, PathBuf),
    /// Compare the report that is shown with another one.
    CompareWith(PathBuf),
    /// Ask for a report to compare with, or ask no more.
    AskCompare,
    /// Tick a report of the home screen for a comparison, or take the tick away.
    Tick(PathBuf),
    /// Take a comparison off the list of recent ones.
    ForgetComparison(PathBuf, PathBuf),
    /// Exchange source and target.
    SwapSides,
    /// Show the source alone.
    EndComparison,
    /// Choose something in the target of a comparison.
    ToTarget(Box<Command>),
    /// Show the spec of the report to be changed, or not.
    ToggleWhatIf,
    /// Show it with a key changed to a value.
    WhatIfWith(&'static str, String),
    /// Wait no longer for a report to be opened.
    CancelOpening,
    /// Simulate the spec as it was changed, and compare the result.
    SimulateVariant,
    /// Show a tab, or the home screen.
    ShowTab(Option<usize>),
    /// Show the tab after the one that is shown, or the one before.
    NextTab(bool),
    /// Close a tab.
    CloseTab(usize),
    /// Read the open report again.
    Reload,
    /// Go back to what was looked at before.
    Undo,
    /// Go forward again.
    Redo,
    /// Show what is shown in another window too.
    NewWindow,
    /// Put a link to what is shown on the clipboard.
    CopyLink,
    /// Go where a link leads.
    GoTo(String),
    /// Keep what is shown as a bookmark.
    AddBookmark,
    /// Change the list of bookmarks.
    SetBookmarks(Vec<Bookmark>),
    /// Let the user type what to find.
    Find,
    /// Show statistics of what is selected.
    MeasureSelection,
    /// Go on to a later result, or below 0 to an earlier one.
    NextFound(i64),
    /// Write a picture or a table.
    Save(Saving),
    /// Close the tab that is shown.
    CloseReport,
    /// Show a view of the open report.
    ShowView(ViewId),
    /// Choose colours.
    SetTheme(ThemeChoice),
    /// Choose units, colours, text size and what dragging does.
    SetLook(Look),
    /// Choose the keys of an action, or go back to those of the table.
    SetKeys(&'static str, Option<Vec<String>>),
    /// Go back to the preferences of a first start.
    ResetPrefs,
    /// Show the side menu as icons only, or not.
    ToggleMenu,
    /// Show something over the view, or take it away.
    Overlay(Option<OverlayKind>),
    /// Ask the view that is shown for something.
    Ask(Wish),
    /// Simulate a bundled spec.
    Simulate(String),
    /// Stop the simulation.
    CancelSimulation,
    /// Take a report off the list of recent ones.
    ForgetRecent(PathBuf),
    /// Choose tiles.
    SelectTiles(Vec<u32>),
    /// Choose a step, or none.
    SelectStep(Option<ChosenStep>),
    /// Let the trace show these cycles, or say that it does.
    ShowCycles(Option<CycleRange>),
    /// Choose a node of the compiled program, or none.
    SelectProgram(Option<ProgramId>),
    /// Choose an operation of the model, or none.
    SelectOperation(Option<OperationId>),
    /// Choose a variable, or none.
    SelectVariable(Option<VariableId>),
    /// Choose an IPU, or none.
    SelectIpu(Option<u32>),
    /// Change choices of the execution trace.
    SetTracePrefs(TracePrefs),
    /// Change choices of the memory view.
    SetMemoryPrefs(MemoryPrefs),
    /// Change choices of the liveness view.
    SetLivenessPrefs(LivenessPrefs),
    /// Change choices of the operations view.
    SetOperationPrefs(OperationPrefs),
    /// Change choices of the operations graph.
    SetGraphPrefs(GraphPrefs),
    /// Fold or unfold a block of the summary.
    ToggleBlock(&'static str),
    /// Change the filter of the options table.
    SetOptionFilter(String),
    /// Tell the user something.
    Say(Message),
    /// The message has been read.
    DismissMessage(usize),
    /// All messages have been read.
    DismissMessages,
}

impl Command {
    /// The commands that choose what a place is about.
    pub(crate) fn choose(place: &Place) -> Vec<Self> {
        let mut commands = Vec::new();
        if !place.tiles.is_empty() {
            commands.push(Self::SelectTiles(place.tiles.clone()));
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
            commands.push(Self::ShowCycles(place.cycles));
        }
        commands
    }
}
