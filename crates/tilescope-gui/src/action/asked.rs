//! Actions of the shown view, and its mouse and key gestures.

use super::table::plain;
use super::{Action, Effect, Group, Press, Wish};
use egui::Key;

const TRACE: &[&str] = &["execution-trace"];
const MATRIX: &[&str] = &["exchange-code"];
/// Views with a selection.
const CHOOSING: &[&str] = &[
    "memory",
    "liveness",
    "program-tree",
    "operations",
    "operations-graph",
    "execution-trace",
    "exchange-code",
    "tile-mapping",
];
const ZOOMED: &[&str] = &["execution-trace", "exchange-code"];
const FOCUSED: &[&str] = &["execution-trace", "operations-graph"];

/// Actions of views, in the order they are listed.
pub(super) const ASKED: &[Action] = &[
    Action {
        name: "zoom-in",
        title: "Zoom in",
        help: "Zoom in around the pointer.",
        keys: &[Press::key(Key::W), Press::key(Key::Plus), Press::key(Key::Equals)],
        by_place: true,
        effect: Effect::Ask(Wish::Closer, ZOOMED),
        ..plain(Group::Trace)
    },
    Action {
        name: "zoom-out",
        title: "Zoom out",
        help: "Zoom out around the pointer.",
        keys: &[Press::key(Key::S), Press::key(Key::Minus)],
        by_place: true,
        effect: Effect::Ask(Wish::Farther, ZOOMED),
        ..plain(Group::Trace)
    },
    Action {
        name: "pan-left",
        title: "Pan left",
        help: "Move to earlier cycles or lower tiles.",
        keys: &[Press::key(Key::A)],
        by_place: true,
        effect: Effect::Ask(Wish::Left, ZOOMED),
        ..plain(Group::Trace)
    },
    Action {
        name: "pan-right",
        title: "Pan right",
        help: "Move to later cycles or higher tiles.",
        keys: &[Press::key(Key::D)],
        by_place: true,
        effect: Effect::Ask(Wish::Right, ZOOMED),
        ..plain(Group::Trace)
    },
    Action {
        name: "focus",
        title: "Zoom to the selection",
        help: "Fit the selection to the view; press again to fit everything.",
        keys: &[Press::key(Key::F)],
        effect: Effect::Ask(Wish::Focus, FOCUSED),
        ..plain(Group::Trace)
    },
    Action {
        name: "next-step",
        title: "Next step",
        help: "Select the next step on the same lane.",
        keys: &[Press::key(Key::Period), Press::key(Key::ArrowRight)],
        effect: Effect::Ask(Wish::Next, TRACE),
        ..plain(Group::Trace)
    },
    Action {
        name: "previous-step",
        title: "Previous step",
        help: "Select the previous step on the same lane.",
        keys: &[Press::key(Key::Comma), Press::key(Key::ArrowLeft)],
        effect: Effect::Ask(Wish::Previous, TRACE),
        ..plain(Group::Trace)
    },
    Action {
        name: "add-next-step",
        title: "Add the next step",
        help: "Select the next step too, and show both side by side.",
        keys: &[Press::key(Key::ArrowRight).shift()],
        effect: Effect::Ask(Wish::AddNext, TRACE),
        ..plain(Group::Trace)
    },
    Action {
        name: "add-previous-step",
        title: "Add the previous step",
        help: "Select the previous step too, and show both side by side.",
        keys: &[Press::key(Key::ArrowLeft).shift()],
        effect: Effect::Ask(Wish::AddPrevious, TRACE),
        ..plain(Group::Trace)
    },
    Action {
        name: "filter",
        title: "Filter steps",
        help: "Highlight steps whose names contain the text; others are dimmed.",
        keys: &[Press::ctrl(Key::F)],
        effect: Effect::Ask(Wish::Filter, TRACE),
        ..plain(Group::Trace)
    },
    Action {
        name: "mark",
        title: "Mark",
        help: "Mark the selection, or the cycle under the pointer; replaces other marks.",
        keys: &[Press::key(Key::M)],
        effect: Effect::Ask(Wish::Mark, TRACE),
        ..plain(Group::Find)
    },
    Action {
        name: "add-mark",
        title: "Add a mark",
        help: "Mark the selection, or the cycle under the pointer, and measure the distance to \
             other marks.",
        keys: &[Press::key(Key::M).shift()],
        effect: Effect::Ask(Wish::KeepMark, TRACE),
        ..plain(Group::Find)
    },
    Action {
        name: "clear",
        title: "Clear selection and filter",
        help: "Clear the selection; in the trace, the filter and the marks too.",
        keys: &[Press::key(Key::Escape)],
        effect: Effect::Ask(Wish::Clear, CHOOSING),
        ..plain(Group::Trace)
    },
    Action {
        name: "pan-up",
        title: "Pan up",
        help: "Move to lower senders in the traffic matrix.",
        keys: &[Press::key(Key::Q)],
        by_place: true,
        effect: Effect::Ask(Wish::Up, MATRIX),
        ..plain(Group::Graphs)
    },
    Action {
        name: "pan-down",
        title: "Pan down",
        help: "Move to higher senders in the traffic matrix.",
        keys: &[Press::key(Key::E)],
        by_place: true,
        effect: Effect::Ask(Wish::Down, MATRIX),
        ..plain(Group::Graphs)
    },
];

/// What mouse and keys do to the thing under the pointer or with the focus: nothing that could be
/// done from a menu, so it is only listed.
pub(crate) const GESTURES: &[(Group, &[(&str, &str)])] = &[
    (
        Group::Trace,
        &[
            ("Wheel", "Zoom around the pointer"),
            ("Drag", "Pan"),
            ("Alt + wheel", "Scroll the lanes"),
            ("Shift + drag", "Zoom to the range"),
            ("Double-click", "Zoom to a bar"),
            ("Shift + click", "Add a step to the selection"),
            ("← → ↑ ↓", "Move, narrow or widen the window while the overview has the focus"),
        ],
    ),
    (
        Group::Graphs,
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
        Group::Structure,
        &[
            ("Double-click", "Fold or unfold"),
            ("← →", "Fold or unfold the focused line"),
            ("↑ ↓", "Next and previous row or line; in a graph, along its arrows"),
        ],
    ),
    (Group::Window, &[("Ctrl + plus / minus", "Larger and smaller text")]),
];
