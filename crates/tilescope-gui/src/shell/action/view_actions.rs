//! Actions of the shown view, and its mouse and key gestures.

use super::{ActionGroup, AppAction, KeyShortcut};
use crate::model::command::ViewAction;
use crate::model::view_id::ViewId;
use egui::Key;

const TRACE: &[ViewId] = &[ViewId::ExecutionTrace];
const MATRIX: &[ViewId] = &[ViewId::ExchangeCode];
/// The views with a selection.
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

/// The actions of views, in the order of lists.
pub(super) const VIEW_ACTIONS: &[AppAction] = &[
    AppAction::new(ActionGroup::Trace, "zoom-in", "Zoom in")
        .help("Zoom in around the pointer.")
        .keys(&[
            KeyShortcut::key(Key::W),
            KeyShortcut::key(Key::Plus),
            KeyShortcut::key(Key::Equals),
        ])
        .by_physical_key()
        .asks(ViewAction::ZoomIn, ZOOMABLE_VIEWS),
    AppAction::new(ActionGroup::Trace, "zoom-out", "Zoom out")
        .help("Zoom out around the pointer.")
        .keys(&[KeyShortcut::key(Key::S), KeyShortcut::key(Key::Minus)])
        .by_physical_key()
        .asks(ViewAction::ZoomOut, ZOOMABLE_VIEWS),
    AppAction::new(ActionGroup::Trace, "pan-left", "Pan left")
        .help("Move to earlier cycles or lower tiles.")
        .keys(&[KeyShortcut::key(Key::A)])
        .by_physical_key()
        .asks(ViewAction::PanLeft, ZOOMABLE_VIEWS),
    AppAction::new(ActionGroup::Trace, "pan-right", "Pan right")
        .help("Move to later cycles or higher tiles.")
        .keys(&[KeyShortcut::key(Key::D)])
        .by_physical_key()
        .asks(ViewAction::PanRight, ZOOMABLE_VIEWS),
    AppAction::new(ActionGroup::Trace, "focus", "Zoom to the selection")
        .help("Fit the selection to the view; press again to fit everything.")
        .keys(&[KeyShortcut::key(Key::F)])
        .asks(ViewAction::ZoomToSelection, VIEWS_WITH_ZOOM_TO_SELECTION),
    AppAction::new(ActionGroup::Trace, "next-step", "Next step")
        .help("Select the next step on the same lane.")
        .keys(&[KeyShortcut::key(Key::Period), KeyShortcut::key(Key::ArrowRight)])
        .asks(ViewAction::SelectNext, TRACE),
    AppAction::new(ActionGroup::Trace, "previous-step", "Previous step")
        .help("Select the previous step on the same lane.")
        .keys(&[KeyShortcut::key(Key::Comma), KeyShortcut::key(Key::ArrowLeft)])
        .asks(ViewAction::SelectPrevious, TRACE),
    AppAction::new(ActionGroup::Trace, "add-next-step", "Add the next step")
        .help("Select the next step too, and show both side by side.")
        .keys(&[KeyShortcut::key(Key::ArrowRight).shift()])
        .asks(ViewAction::AddNextToSelection, TRACE),
    AppAction::new(ActionGroup::Trace, "add-previous-step", "Add the previous step")
        .help("Select the previous step too, and show both side by side.")
        .keys(&[KeyShortcut::key(Key::ArrowLeft).shift()])
        .asks(ViewAction::AddPreviousToSelection, TRACE),
    AppAction::new(ActionGroup::Trace, "typical-iteration", "Go to a typical iteration")
        .help(
            "Show the iteration of median length, or the median slot if there is only one \
               iteration.",
        )
        .asks(ViewAction::GoToTypical, TRACE),
    AppAction::new(ActionGroup::Trace, "fastest-iteration", "Go to the fastest iteration")
        .help("Show the shortest iteration, or the shortest slot if there is only one iteration.")
        .asks(ViewAction::GoToFastest, TRACE),
    AppAction::new(ActionGroup::Trace, "slowest-iteration", "Go to the slowest iteration")
        .help("Show the longest iteration, or the longest slot if there is only one iteration.")
        .asks(ViewAction::GoToSlowest, TRACE),
    AppAction::new(ActionGroup::Trace, "follow-micro-batch", "Follow this micro-batch")
        .help(
            "Show the work of all stages on the micro-batch of the selected stage or step, and dim \
             the rest. Press again to stop.",
        )
        .keys(&[KeyShortcut::key(Key::B)])
        .asks(ViewAction::FollowMicroBatch, TRACE),
    AppAction::new(ActionGroup::Trace, "highlight-critical-path", "Highlight the critical path")
        .help(
            "Dim everything that is not on the critical path, and show where the path changes \
             IPUs. Press again to stop.",
        )
        .keys(&[KeyShortcut::key(Key::P)])
        .asks(ViewAction::LightPath, TRACE),
    AppAction::new(ActionGroup::Trace, "next-on-critical-path", "Next step of the critical path")
        .help("Select the next step of the critical path, on any IPU.")
        .keys(&[KeyShortcut::key(Key::CloseBracket)])
        .asks(ViewAction::SelectNextOnPath, TRACE),
    AppAction::new(
        ActionGroup::Trace,
        "previous-on-critical-path",
        "Previous step of the critical path",
    )
    .help("Select the previous step of the critical path, on any IPU.")
    .keys(&[KeyShortcut::key(Key::OpenBracket)])
    .asks(ViewAction::SelectPreviousOnPath, TRACE),
    AppAction::new(ActionGroup::Report, "try-proposals", "Try proposals")
        .help("Simulate the spec of the report with each proposal of Insights.")
        .keys(&[KeyShortcut::key(Key::T)])
        .asks(ViewAction::TryProposals, &[ViewId::Insights]),
    AppAction::new(ActionGroup::Trace, "filter", "Filter steps")
        .help("Highlight steps whose names contain the text; others are dimmed.")
        .keys(&[KeyShortcut::ctrl(Key::F)])
        .asks(ViewAction::FocusFilter, TRACE),
    AppAction::new(ActionGroup::Find, "mark", "Mark")
        .help("Mark the selection, or the cycle under the pointer; replaces other marks.")
        .keys(&[KeyShortcut::key(Key::M)])
        .asks(ViewAction::MarkSelection, TRACE),
    AppAction::new(ActionGroup::Find, "add-mark", "Add a mark")
        .help(
            "Mark the selection, or the cycle under the pointer, and measure the distance to \
             other marks.",
        )
        .keys(&[KeyShortcut::key(Key::M).shift()])
        .asks(ViewAction::AddMark, TRACE),
    AppAction::new(ActionGroup::Trace, "clear", "Clear selection and filter")
        .help("Clear the selection; in the trace, the filter and the marks too.")
        .keys(&[KeyShortcut::key(Key::Escape)])
        .asks(ViewAction::ClearSelection, VIEWS_WITH_SELECTION),
    AppAction::new(ActionGroup::Graphs, "pan-up", "Pan up")
        .help("Move to lower senders in the traffic matrix.")
        .keys(&[KeyShortcut::key(Key::Q)])
        .by_physical_key()
        .asks(ViewAction::PanUp, MATRIX),
    AppAction::new(ActionGroup::Graphs, "pan-down", "Pan down")
        .help("Move to higher senders in the traffic matrix.")
        .keys(&[KeyShortcut::key(Key::E)])
        .by_physical_key()
        .asks(ViewAction::PanDown, MATRIX),
];

/// The mouse and key gestures on the object under the pointer or with the focus. A menu cannot
/// offer them, so they are only listed.
pub(crate) const GESTURES: &[(ActionGroup, &[(&str, &str)])] = &[
    (
        ActionGroup::Trace,
        &[
            ("Wheel", "Zoom around the pointer"),
            ("Drag", "Pan"),
            ("Alt + wheel", "Scroll the lanes"),
            ("Shift + drag", "Zoom to the range"),
            ("Double-click", "Zoom to a bar or a mark"),
            ("Click on a group of marks", "Zoom to the group"),
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
