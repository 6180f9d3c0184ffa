//! What the view that is shown is asked for, and what mouse and keys do in it.

use super::table::plain;
use super::{Action, Effect, Group, Press};
use crate::model::command::Wish;
use crate::model::view_id::ViewId;
use egui::Key;

const TRACE: &[ViewId] = &[ViewId::ExecutionTrace];
const MATRIX: &[ViewId] = &[ViewId::ExchangeCode];
/// Views in which something can be chosen.
const CHOOSING: &[ViewId] = &[
    ViewId::Memory,
    ViewId::Liveness,
    ViewId::ProgramTree,
    ViewId::Operations,
    ViewId::OperationsGraph,
    ViewId::ExecutionTrace,
    ViewId::ExchangeCode,
    ViewId::TileMapping,
];
const ZOOMED: &[ViewId] = &[ViewId::ExecutionTrace, ViewId::ExchangeCode];
const FOCUSED: &[ViewId] = &[ViewId::ExecutionTrace, ViewId::OperationsGraph];

/// Actions of views, in the order of lists.
pub(super) const ASKED: &[Action] = &[
    Action {
        name: "zoom-in",
        title: "Zoom in",
        help: "Look closer, around the pointer.",
        keys: &[Press::key(Key::W), Press::key(Key::Plus), Press::key(Key::Equals)],
        by_place: true,
        effect: Effect::Ask(Wish::Closer, ZOOMED),
        ..plain(Group::Trace)
    },
    Action {
        name: "zoom-out",
        title: "Zoom out",
        help: "See more, around the pointer.",
        keys: &[Press::key(Key::S), Press::key(Key::Minus)],
        by_place: true,
        effect: Effect::Ask(Wish::Farther, ZOOMED),
        ..plain(Group::Trace)
    },
    Action {
        name: "pan-left",
        title: "Pan left",
        help: "See earlier cycles, or lower tiles.",
        keys: &[Press::key(Key::A)],
        by_place: true,
        effect: Effect::Ask(Wish::Left, ZOOMED),
        ..plain(Group::Trace)
    },
    Action {
        name: "pan-right",
        title: "Pan right",
        help: "See later cycles, or higher tiles.",
        keys: &[Press::key(Key::D)],
        by_place: true,
        effect: Effect::Ask(Wish::Right, ZOOMED),
        ..plain(Group::Trace)
    },
    Action {
        name: "focus",
        title: "Zoom to the selection",
        help: "Fill the view with what is chosen; pressed again, with everything.",
        keys: &[Press::key(Key::F)],
        effect: Effect::Ask(Wish::Focus, FOCUSED),
        ..plain(Group::Trace)
    },
    Action {
        name: "next-step",
        title: "Next step",
        help: "Choose the step behind the chosen one on its lane.",
        keys: &[Press::key(Key::Period), Press::key(Key::ArrowRight)],
        effect: Effect::Ask(Wish::Next, TRACE),
        ..plain(Group::Trace)
    },
    Action {
        name: "previous-step",
        title: "Previous step",
        help: "Choose the step before the chosen one on its lane.",
        keys: &[Press::key(Key::Comma), Press::key(Key::ArrowLeft)],
        effect: Effect::Ask(Wish::Previous, TRACE),
        ..plain(Group::Trace)
    },
    Action {
        name: "add-next-step",
        title: "Add the next step",
        help: "Choose the step behind the chosen one too, and see both beside each other.",
        keys: &[Press::key(Key::ArrowRight).shift()],
        effect: Effect::Ask(Wish::AddNext, TRACE),
        ..plain(Group::Trace)
    },
    Action {
        name: "add-previous-step",
        title: "Add the previous step",
        help: "Choose the step before the chosen one too, and see both beside each other.",
        keys: &[Press::key(Key::ArrowLeft).shift()],
        effect: Effect::Ask(Wish::AddPrevious, TRACE),
        ..plain(Group::Trace)
    },
    Action {
        name: "filter",
        title: "Filter steps",
        help: "Type words that the names of steps must hold; others go pale.",
        keys: &[Press::ctrl(Key::F)],
        effect: Effect::Ask(Wish::Filter, TRACE),
        ..plain(Group::Trace)
    },
    Action {
        name: "mark",
        title: "Mark",
        help: "Mark what is chosen, or the cycle under the pointer, instead of other marks.",
        keys: &[Press::key(Key::M)],
        effect: Effect::Ask(Wish::Mark, TRACE),
        ..plain(Group::Find)
    },
    Action {
        name: "add-mark",
        title: "Add a mark",
        help: "Mark what is chosen, or the cycle under the pointer, and measure up to other marks.",
        keys: &[Press::key(Key::M).shift()],
        effect: Effect::Ask(Wish::KeepMark, TRACE),
        ..plain(Group::Find)
    },
    Action {
        name: "clear",
        title: "Clear selection and filter",
        help: "Choose nothing; in the trace, filter and mark nothing either.",
        keys: &[Press::key(Key::Escape)],
        effect: Effect::Ask(Wish::Clear, CHOOSING),
        ..plain(Group::Trace)
    },
    Action {
        name: "pan-up",
        title: "Pan up",
        help: "See lower senders in the picture of who sends to whom.",
        keys: &[Press::key(Key::Q)],
        by_place: true,
        effect: Effect::Ask(Wish::Up, MATRIX),
        ..plain(Group::Graphs)
    },
    Action {
        name: "pan-down",
        title: "Pan down",
        help: "See higher senders in the picture of who sends to whom.",
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
            ("Shift + click", "Choose another step beside the chosen one"),
            ("← → ↑ ↓", "Move, narrow and widen the window, once the strip has the focus"),
        ],
    ),
    (
        Group::Graphs,
        &[
            ("Wheel, drag", "Zoom and pan"),
            ("Click", "Choose a tile or a step"),
            ("Shift + click", "Add a tile; add a step as a column"),
            ("Double-click", "Show everything"),
            ("← →", "Next and previous, once the graph has the focus; Shift adds"),
            ("← → ↑ ↓", "Move, narrow and widen the window, once the strip has the focus"),
            ("Enter in a filter", "Go to the next match"),
        ],
    ),
    (
        Group::Structure,
        &[
            ("Double-click", "Fold or unfold"),
            ("← →", "Fold and unfold the line that has the focus"),
            ("↑ ↓", "Next and previous row or line; in a graph, along its arrows"),
        ],
    ),
    (Group::Window, &[("Ctrl + plus / minus", "Larger and smaller text")]),
];
