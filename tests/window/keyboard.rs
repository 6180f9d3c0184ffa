//! Tests without a pointer: in every view keys alone select an object, move the selection and clear
//! it.

use crate::gui_support::{VARIANTS, Variant, Window, press, says, settle, window};
use egui::Key::{ArrowDown, ArrowRight, Enter};
use egui::accesskit::Role::{self, Canvas, Row, TreeItem};
use egui::{Key, Modifiers, Vec2};
use egui_kittest::kittest::NodeT;
use std::sync::Mutex;
use tilescope_gui::session::Selection;
use tilescope_gui::view_names;

/// The keys for a view: the view; the widget that Tab must reach, by role and beginning of its
/// name; keys that select an object, and one that selects another; and the selection, if the view
/// makes one.
type Path = (&'static str, (Role, &'static str), &'static [Key], Key, fn(&Selection) -> String);

fn tiles(selection: &Selection) -> String {
    format!("{:?}", selection.tiles)
}

fn operation(selection: &Selection) -> String {
    format!("{:?}", selection.operation)
}

fn program(selection: &Selection) -> String {
    format!("{:?}", selection.program)
}

fn variable(selection: &Selection) -> String {
    format!("{:?}", selection.variable)
}

fn step(selection: &Selection) -> String {
    format!("{:?}", selection.step)
}

/// All ways through every view with a selection.
const PATHS: &[Path] = &[
    ("memory", (Canvas, "Memory by tile"), &[ArrowRight], ArrowRight, tiles),
    ("liveness", (Canvas, "Liveness by program step"), &[ArrowRight], ArrowRight, program),
    ("liveness", (Row, ""), &[Enter], ArrowDown, variable),
    ("program-tree", (TreeItem, ""), &[Enter], ArrowDown, program),
    ("operations", (Row, ""), &[Enter], ArrowDown, operation),
    // The first rows are copies, which are not operations of the model.
    ("limits", (Row, ""), &[Enter, ArrowDown, ArrowDown, ArrowDown], ArrowDown, operation),
    ("limits", (Canvas, "Roofline"), &[ArrowRight], ArrowRight, operation),
    ("operations-graph", (Canvas, "Graph of operations"), &[ArrowDown], ArrowDown, operation),
    ("execution-trace", (Canvas, "Lanes"), &[ArrowRight], ArrowRight, step),
    ("exchange-code", (Canvas, "Exchange code by tile"), &[ArrowRight], ArrowRight, tiles),
    ("tile-mapping", (Canvas, "Floor plan"), &[ArrowDown], ArrowDown, tiles),
];

/// The views without a selection: they are read, and only have links.
const READ: [&str; 3] = ["summary", "insights", "topics"];

fn selection(window: &Window) -> &Selection {
    window.state().session().selection()
}

/// Presses Tab until a widget of this role and name has the focus. Returns true on success.
fn tab_to(window: &mut Window, (role, name): (Role, &str)) -> bool {
    for _ in 0..400 {
        press_once(window, Key::Tab);
        let nodes = window.root().children_recursive();
        let focused = nodes.map(|node| node.accesskit_node()).find(|node| node.is_focused());
        if focused.is_some_and(|node| {
            node.role() == role && node.label().unwrap_or_default().starts_with(name)
        }) {
            return true;
        }
    }
    false
}

fn press_once(window: &mut Window, key: Key) {
    window.key_press(key);
    window.run_steps(2);
}

#[test]
fn every_view_is_used_without_a_pointer() {
    let used = |view: &&str| PATHS.iter().any(|path| path.0 == *view) || READ.contains(view);
    assert!(view_names().iter().all(used), "a view without a way through it");
    let problems = Mutex::new(Vec::new());
    std::thread::scope(|scope| {
        for path in PATHS {
            let problems = &problems;
            scope.spawn(move || {
                if let Err(problem) = walk(path) {
                    problems.lock().unwrap().push(format!("{} {}: {problem}", path.0, path.1.1));
                }
            });
        }
    });
    let problems = problems.into_inner().unwrap();
    assert!(problems.is_empty(), "{}", problems.join("\n"));
}

fn walk(&(view, reach, choose, go, chosen): &Path) -> Result<(), String> {
    let mut window = window(Variant::named("simulated"), view, Vec2::new(1300.0, 850.0));
    let nothing = chosen(&Selection::default());
    if chosen(selection(&window)) != nothing {
        return Err("something is chosen at first".to_owned());
    }
    if !tab_to(&mut window, reach) {
        return Err("Tab never leads there".to_owned());
    }
    // Arrow keys go to a widget that has had the focus for a frame.
    window.run_steps(2);
    choose.iter().for_each(|key| press(&mut window, Modifiers::NONE, *key));
    let first = chosen(selection(&window));
    press(&mut window, Modifiers::NONE, go);
    let second = chosen(selection(&window));
    press(&mut window, Modifiers::NONE, Key::Escape);
    let last = chosen(selection(&window));
    match () {
        () if first == nothing => Err("nothing was chosen".to_owned()),
        () if second == first || second == nothing => Err(format!("{first} stays {second}")),
        () if last != nothing => Err(format!("Escape leaves {last}")),
        () => Ok(()),
    }
}

#[test]
fn graphs_are_zoomed_and_moved_by_keys_and_by_typing() {
    for (view, strip, number) in [
        ("memory", "Overview of the run", "Tiles (software order) on the screen"),
        ("liveness", "Overview of the run", "Program steps on the screen"),
        ("exchange-code", "Overview of the run", "Tiles (software order) on the screen"),
        ("execution-trace", "Overview of the run", "Cycles on the screen"),
    ] {
        let mut window = window(Variant::named("simulated"), view, Vec2::new(1300.0, 850.0));
        let shown = |window: &Window| {
            let nodes = window.root().children_recursive();
            let node = nodes.map(|node| node.accesskit_node());
            let mut node = node.filter(|node| node.label().as_deref() == Some(strip));
            node.next().and_then(|node| node.value()).expect("its value")
        };
        let whole = shown(&window);
        assert!(tab_to(&mut window, (Role::Slider, strip)), "{view}");
        window.run_steps(2);
        press(&mut window, Modifiers::NONE, Key::ArrowUp);
        press(&mut window, Modifiers::NONE, Key::ArrowUp);
        let closer = shown(&window);
        press(&mut window, Modifiers::NONE, Key::ArrowRight);
        let moved = shown(&window);
        assert!(whole != closer && closer != moved, "{view}: {whole}, {closer}, {moved}");
        assert!(tab_to(&mut window, (Role::SpinButton, number)), "{view}: no {number}");
        // Typing goes to the box as soon as it has the focus.
        press(&mut window, Modifiers::CTRL | Modifiers::COMMAND, Key::A);
        // Digit by digit, as people type: no digit alone is taken for the number.
        for letter in ["5", "0"] {
            window.event(egui::Event::Text(letter.to_owned()));
            settle(&mut window);
        }
        press(&mut window, Modifiers::NONE, Key::Enter);
        let ends = shown(&window);
        let ends: Vec<u64> =
            ends.split(" - ").map(|end| end.replace(',', "").parse().unwrap()).collect();
        let count = ends[1] - ends[0];
        assert!((50..=52).contains(&count), "{view}: {count} on the screen");
    }
}

#[test]
fn a_key_reaches_controls_that_do_not_fit() {
    let mut window =
        window(Variant::named("simulated"), "execution-trace", Vec2::new(640.0, 480.0));
    let last = (Role::SpinButton, "Cycles on the screen");
    assert!(!tab_to(&mut window, last), "there is room for it");
    assert!(tab_to(&mut window, (Role::Button, "More controls")));
    press(&mut window, Modifiers::NONE, Key::Enter);
    for wanted in [(Role::CheckBox, "BSP"), (Role::Button, "Whole run"), last] {
        assert!(tab_to(&mut window, wanted), "{}", wanted.1);
    }
    assert!(tab_to(&mut window, (Role::Button, "Fewer controls")));
    press(&mut window, Modifiers::NONE, Key::Enter);
    assert!(!says(&window, "Whole run"));
    // A key shows what it requests, in any view.
    press(&mut window, Modifiers::CTRL, Key::F);
    settle(&mut window);
    let nodes = window.root().children_recursive();
    let focused = nodes.map(|node| node.accesskit_node()).find(|node| node.is_focused());
    assert_eq!(focused.and_then(|node| node.label()).as_deref(), Some("Filter steps"));
}

#[test]
fn several_steps_of_the_trace_are_compared_in_columns() {
    let mut window = window(&VARIANTS[1], "execution-trace", Vec2::new(1300.0, 850.0));
    press(&mut window, Modifiers::NONE, Key::Period);
    let first = selection(&window).step.expect("a step");
    press(&mut window, Modifiers::SHIFT, Key::ArrowRight);
    let second = selection(&window).step.expect("the next one");
    assert_eq!(second.position, first.position + 1);
    assert!(says(&window, "2 steps, 600 cycles in all"));
    for title in ["Sync (External)", "OnTileExecute (a/conv/Convolve)"] {
        assert!(says(&window, title), "{title}");
    }
    press(&mut window, Modifiers::NONE, Key::Comma);
    assert!(!says(&window, "cycles in all"), "one alone again");
    press(&mut window, Modifiers::SHIFT, Key::ArrowLeft);
    assert!(says(&window, "2 steps, "));
    press(&mut window, Modifiers::NONE, Key::Escape);
    settle(&mut window);
    assert!(says(&window, "Click on a step to see its details") && !says(&window, "in all"));
}
