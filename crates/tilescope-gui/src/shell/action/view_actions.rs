//! Actions of the shown view, and its mouse and key gestures.

use super::app_actions::action_template;
use super::{ActionEffect, ActionGroup, AppAction, KeyShortcut};
use crate::model::command::ViewAction;
use crate::model::view_id::ViewId;
use egui::Key;

const TRACE: &[ViewId] = &[ViewId::ExecutionTrace];
const MATRIX: &[ViewId] = &[ViewId::ExchangeCode];
/// Views with a selection.
const VIEWS_WITH_SELECTION: &[ViewId] = &[
    ViewId::Memory,
    ViewId::Liveness,
    ViewId::ProgramTree,
    ViewId::Operations,
    ViewId::Limits,
    ViewId::OperationsGraph,
    ViewId::ExecutionTrace,
    ViewId::ExchangeCode,
    ViewId::TileMapping,
];
const ZOOMABLE_VIEWS: &[ViewId] = &[ViewId::ExecutionTrace, ViewId::ExchangeCode];
const VIEWS_WITH_ZOOM_TO_SELECTION: &[ViewId] =
    &[ViewId::Limits, ViewId::ExecutionTrace, ViewId::OperationsGraph];

/// Actions of views, in the order they are listed.
pub(super) const VIEW_ACTIONS: &[AppAction] = &[
    AppAction {
        name: "zoom-in",
        title: "Zoom in",
        help: "Zoom in around the pointer.",
        keys: &[
            KeyShortcut::key(Key::W),
            KeyShortcut::key(Key::Plus),
            KeyShortcut::key(Key::Equals),
        ],
        by_physical_key: true,
        effect: ActionEffect::SendToView(ViewAction::ZoomIn, ZOOMABLE_VIEWS),
        ..action_template(ActionGroup::Trace)
    },
    AppAction {
        name: "zoom-out",
        title: "Zoom out",
        help: "Zoom out around the pointer.",
        keys: &[KeyShortcut::key(Key::S), KeyShortcut::key(Key::Minus)],
        by_physical_key: true,
        effect: ActionEffect::SendToView(ViewAction::ZoomOut, ZOOMABLE_VIEWS),
        ..action_template(ActionGroup::Trace)
    },
    AppAction {
        name: "pan-left",
        title: "Pan left",
        help: "Move to earlier cycles or lower tiles.",
        keys: &[KeyShortcut::key(Key::A)],
        by_physical_key: true,
        effect: ActionEffect::SendToView(ViewAction::PanLeft, ZOOMABLE_VIEWS),
        ..action_template(ActionGroup::Trace)
    },
    AppAction {
        name: "pan-right",
        title: "Pan right",
        help: "Move to later cycles or higher tiles.",
        keys: &[KeyShortcut::key(Key::D)],
        by_physical_key: true,
        effect: ActionEffect::SendToView(ViewAction::PanRight, ZOOMABLE_VIEWS),
        ..action_template(ActionGroup::Trace)
    },
    AppAction {
        name: "focus",
        title: "Zoom to the selection",
        help: "Fit the selection to the view; press again to fit everything.",
        keys: &[KeyShortcut::key(Key::F)],
        effect: ActionEffect::SendToView(ViewAction::ZoomToSelection, VIEWS_WITH_ZOOM_TO_SELECTION),
        ..action_template(ActionGroup::Trace)
    },
    AppAction {
        name: "next-step",
        title: "Next step",
        help: "Select the next step on the same lane.",
        keys: &[KeyShortcut::key(Key::Period), KeyShortcut::key(Key::ArrowRight)],
        effect: ActionEffect::SendToView(ViewAction::SelectNext, TRACE),
        ..action_template(ActionGroup::Trace)
    },
    AppAction {
        name: "previous-step",
        title: "Previous step",
        help: "Select the previous step on the same lane.",
        keys: &[KeyShortcut::key(Key::Comma), KeyShortcut::key(Key::ArrowLeft)],
        effect: ActionEffect::SendToView(ViewAction::SelectPrevious, TRACE),
        ..action_template(ActionGroup::Trace)
    },
    AppAction {
        name: "add-next-step",
        title: "Add the next step",
        help: "Select the next step too, and show both side by side.",
        keys: &[KeyShortcut::key(Key::ArrowRight).shift()],
        effect: ActionEffect::SendToView(ViewAction::AddNextToSelection, TRACE),
        ..action_template(ActionGroup::Trace)
    },
    AppAction {
        name: "add-previous-step",
        title: "Add the previous step",
        help: "Select the previous step too, and show both side by side.",
        keys: &[KeyShortcut::key(Key::ArrowLeft).shift()],
        effect: ActionEffect::SendToView(ViewAction::AddPreviousToSelection, TRACE),
        ..action_template(ActionGroup::Trace)
    },
    AppAction {
        name: "typical-iteration",
        title: "Go to a typical iteration",
        help: "Show the iteration of median length; where one is not repeated, a slot of it.",
        effect: ActionEffect::SendToView(ViewAction::GoToTypical, TRACE),
        ..action_template(ActionGroup::Trace)
    },
    AppAction {
        name: "fastest-iteration",
        title: "Go to the fastest iteration",
        help: "Show the shortest iteration; where there is only one, the shortest slot.",
        effect: ActionEffect::SendToView(ViewAction::GoToFastest, TRACE),
        ..action_template(ActionGroup::Trace)
    },
    AppAction {
        name: "slowest-iteration",
        title: "Go to the slowest iteration",
        help: "Show the longest iteration; where there is only one, the longest slot.",
        effect: ActionEffect::SendToView(ViewAction::GoToSlowest, TRACE),
        ..action_template(ActionGroup::Trace)
    },
    AppAction {
        name: "follow-micro-batch",
        title: "Follow this micro-batch",
        help: "Show what all stages do for the micro-batch of the chosen stage or step, and veil \
               all else; press again to end it.",
        keys: &[KeyShortcut::key(Key::B)],
        effect: ActionEffect::SendToView(ViewAction::FollowMicroBatch, TRACE),
        ..action_template(ActionGroup::Trace)
    },
    AppAction {
        name: "light-critical-path",
        title: "Light the critical path",
        help: "Veil all that is not on the critical path, and show where it goes from one IPU to \
               another; press again to end it.",
        keys: &[KeyShortcut::key(Key::P)],
        effect: ActionEffect::SendToView(ViewAction::LightPath, TRACE),
        ..action_template(ActionGroup::Trace)
    },
    AppAction {
        name: "next-on-critical-path",
        title: "Next step of the critical path",
        help: "Select the step of the critical path that comes next, on whichever IPU.",
        keys: &[KeyShortcut::key(Key::CloseBracket)],
        effect: ActionEffect::SendToView(ViewAction::SelectNextOnPath, TRACE),
        ..action_template(ActionGroup::Trace)
    },
    AppAction {
        name: "previous-on-critical-path",
        title: "Previous step of the critical path",
        help: "Select the step of the critical path that comes before, on whichever IPU.",
        keys: &[KeyShortcut::key(Key::OpenBracket)],
        effect: ActionEffect::SendToView(ViewAction::SelectPreviousOnPath, TRACE),
        ..action_template(ActionGroup::Trace)
    },
    AppAction {
        name: "try-proposals",
        title: "Try proposals",
        help: "Simulate the spec of the report with each change that Insights proposes.",
        keys: &[KeyShortcut::key(Key::T)],
        effect: ActionEffect::SendToView(ViewAction::TryProposals, &[ViewId::Insights]),
        ..action_template(ActionGroup::Report)
    },
    AppAction {
        name: "filter",
        title: "Filter steps",
        help: "Highlight steps whose names contain the text; others are dimmed.",
        keys: &[KeyShortcut::ctrl(Key::F)],
        effect: ActionEffect::SendToView(ViewAction::FocusFilter, TRACE),
        ..action_template(ActionGroup::Trace)
    },
    AppAction {
        name: "mark",
        title: "Mark",
        help: "Mark the selection, or the cycle under the pointer; replaces other marks.",
        keys: &[KeyShortcut::key(Key::M)],
        effect: ActionEffect::SendToView(ViewAction::MarkSelection, TRACE),
        ..action_template(ActionGroup::Find)
    },
    AppAction {
        name: "add-mark",
        title: "Add a mark",
        help: "Mark the selection, or the cycle under the pointer, and measure the distance to \
             other marks.",
        keys: &[KeyShortcut::key(Key::M).shift()],
        effect: ActionEffect::SendToView(ViewAction::AddMark, TRACE),
        ..action_template(ActionGroup::Find)
    },
    AppAction {
        name: "clear",
        title: "Clear selection and filter",
        help: "Clear the selection; in the trace, the filter and the marks too.",
        keys: &[KeyShortcut::key(Key::Escape)],
        effect: ActionEffect::SendToView(ViewAction::ClearSelection, VIEWS_WITH_SELECTION),
        ..action_template(ActionGroup::Trace)
    },
    AppAction {
        name: "pan-up",
        title: "Pan up",
        help: "Move to lower senders in the traffic matrix.",
        keys: &[KeyShortcut::key(Key::Q)],
        by_physical_key: true,
        effect: ActionEffect::SendToView(ViewAction::PanUp, MATRIX),
        ..action_template(ActionGroup::Graphs)
    },
    AppAction {
        name: "pan-down",
        title: "Pan down",
        help: "Move to higher senders in the traffic matrix.",
        keys: &[KeyShortcut::key(Key::E)],
        by_physical_key: true,
        effect: ActionEffect::SendToView(ViewAction::PanDown, MATRIX),
        ..action_template(ActionGroup::Graphs)
    },
];

/// What mouse and keys do to the thing under the pointer or with the focus: nothing that could be
/// done from a menu, so it is only listed.
pub(crate) const GESTURES: &[(ActionGroup, &[(&str, &str)])] = &[
    (
        ActionGroup::Trace,
        &[
            ("Wheel", "Zoom around the pointer"),
            ("Drag", "Pan"),
            ("Alt + wheel", "Scroll the lanes"),
            ("Shift + drag", "Zoom to the range"),
            ("Double-click", "Zoom to a bar or a mark"),
            ("Click on counted marks", "Go to them"),
            ("Click on a stage", "Follow its micro-batch through all stages"),
            ("Enter", "Zoom to the selection while the lanes have the focus"),
            ("Shift + click", "Add a step to the selection"),
            ("← → ↑ ↓", "Move, narrow or widen the window while the overview has the focus"),
        ],
    ),
    (
        ActionGroup::Graphs,
        &[
            ("Wheel, drag", "Zoom and pan"),
            ("Click", "Select a tile or a step"),
            ("Shift + click", "Add a tile; add a step as a column"),
            ("Double-click", "Show everything"),
            ("← →", "Next and previous while the graph has the focus; Shift adds"),
            ("← → ↑ ↓", "Move, narrow or widen the window while the overview has the focus"),
            ("Enter in a filter", "Go to the next match"),
        ],
    ),
    (
        ActionGroup::Structure,
        &[
            ("Double-click", "Fold or unfold"),
            ("← →", "Fold or unfold the focused line"),
            ("↑ ↓", "Next and previous row or line; in a graph, along its arrows"),
        ],
    ),
    (ActionGroup::Window, &[("Ctrl + plus / minus", "Larger and smaller text")]),
];
