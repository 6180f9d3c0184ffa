//! Nobody needs a pointer: in every view something is chosen, the choice is moved and taken back
//! with keys alone.

use crate::gui_support::{VARIANTS, Variant, Window, press, says, settle, window};
use egui::accesskit::Role;
use egui::{Key, Modifiers, Vec2};
use egui_kittest::kittest::NodeT;
use std::sync::Mutex;
use tilescope_gui::session::Selection;
use tilescope_gui::view_names;

/// How a view is used without a pointer.
struct Path {
    /// The view.
    view: &'static str,
    /// What Tab has to reach: role and beginning of its name.
    reach: (Role, &'static str),
    /// Keys that choose something there.
    choose: &'static [Key],
    /// Keys that choose something else.
    go: &'static [Key],
    /// What is chosen, as far as the view chooses it.
    chosen: fn(&Selection) -> String,
}

fn tiles(selection: &Selection) -> String {
    format!("{:?}", selection.tiles)
}

fn operation(selection: &Selection) -> String {
    format!("{:?}", selection.operation)
}

/// Every way through every view in which something can be chosen.
const PATHS: &[Path] = &[
    Path {
        view: "memory",
        reach: (Role::Canvas, "Memory by tile"),
        choose: &[Key::ArrowRight],
        go: &[Key::ArrowRight],
        chosen: tiles,
    },
    Path {
        view: "liveness",
        reach: (Role::Canvas, "Liveness by program step"),
        choose: &[Key::ArrowRight],
        go: &[Key::ArrowRight],
        chosen: |selection| format!("{:?}", selection.program),
    },
    Path {
        view: "liveness",
        reach: (Role::Row, ""),
        choose: &[Key::Enter],
        go: &[Key::ArrowDown],
        chosen: |selection| format!("{:?}", selection.variable),
    },
    Path {
        view: "program-tree",
        reach: (Role::TreeItem, ""),
        choose: &[Key::Enter],
        go: &[Key::ArrowDown],
        chosen: |selection| format!("{:?}", selection.program),
    },
    Path {
        view: "operations",
        reach: (Role::Row, ""),
        choose: &[Key::Enter],
        go: &[Key::ArrowDown],
        chosen: operation,
    },
    Path {
        view: "limits",
        reach: (Role::Row, ""),
        // The first rows are copies, which are no operations of the model.
        choose: &[Key::Enter, Key::ArrowDown, Key::ArrowDown, Key::ArrowDown],
        go: &[Key::ArrowDown],
        chosen: operation,
    },
    Path {
        view: "limits",
        reach: (Role::Canvas, "Roofline"),
        choose: &[Key::ArrowRight],
        go: &[Key::ArrowRight],
        chosen: operation,
    },
    Path {
        view: "operations-graph",
        reach: (Role::Canvas, "Graph of operations"),
        choose: &[Key::ArrowDown],
        go: &[Key::ArrowDown],
        chosen: operation,
    },
    Path {
        view: "execution-trace",
        reach: (Role::Canvas, "Lanes"),
        choose: &[Key::ArrowRight],
        go: &[Key::ArrowRight],
        chosen: |selection| format!("{:?}", selection.step),
    },
    Path {
        view: "exchange-code",
        reach: (Role::Canvas, "Exchange code by tile"),
        choose: &[Key::ArrowRight],
        go: &[Key::ArrowRight],
        chosen: tiles,
    },
    Path {
        view: "tile-mapping",
        reach: (Role::Canvas, "Floor plan"),
        choose: &[Key::ArrowDown],
        go: &[Key::ArrowDown],
        chosen: tiles,
    },
];

/// Views in which nothing is chosen: they are read, and what leads on from them is a link.
const READ: [&str; 3] = ["summary", "insights", "topics"];

fn selection(window: &Window) -> &Selection {
    window.state().session().selection()
}

/// Presses Tab until something of this role and name has the focus.
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
    let used = |view: &&str| PATHS.iter().any(|path| path.view == *view) || READ.contains(view);
    assert!(view_names().iter().all(used), "a view without a way through it");
    let problems = Mutex::new(Vec::new());
    std::thread::scope(|scope| {
        for path in PATHS {
            let problems = &problems;
            scope.spawn(move || {
                if let Err(problem) = walk(path) {
                    let (_, name) = path.reach;
                    problems.lock().unwrap().push(format!("{} {name}: {problem}", path.view));
                }
            });
        }
    });
    let problems = problems.into_inner().unwrap();
    assert!(problems.is_empty(), "{}", problems.join("\n"));
}

fn walk(path: &Path) -> Result<(), String> {
    let mut window = window(Variant::named("simulated"), path.view, Vec2::new(1300.0, 850.0));
    let nothing = (path.chosen)(&Selection::default());
    if (path.chosen)(selection(&window)) != nothing {
        return Err("something is chosen at first".to_owned());
    }
    if !tab_to(&mut window, path.reach) {
        return Err("Tab never leads there".to_owned());
    }
    // Arrows belong to what has had the focus for a frame.
    window.run_steps(2);
    path.choose.iter().for_each(|key| press(&mut window, Modifiers::NONE, *key));
    let first = (path.chosen)(selection(&window));
    path.go.iter().for_each(|key| press(&mut window, Modifiers::NONE, *key));
    let second = (path.chosen)(selection(&window));
    press(&mut window, Modifiers::NONE, Key::Escape);
    let last = (path.chosen)(selection(&window));
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
        // With the focus it is typed into at once.
        press(&mut window, Modifiers::CTRL | Modifiers::COMMAND, Key::A);
        // Letter by letter, as people type: no letter alone is taken for the number.
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
fn controls_without_room_are_a_key_away() {
    let mut window =
        window(Variant::named("simulated"), "execution-trace", Vec2::new(640.0, 480.0));
    let last = (Role::SpinButton, "Cycles on the screen");
    assert!(!tab_to(&mut window, last), "there is room for it");
    assert!(tab_to(&mut window, (Role::Button, "More controls")));
    press(&mut window, Modifiers::NONE, Key::Enter);
    for wanted in [(Role::CheckBox, "Tile balance"), (Role::Button, "Whole run"), last] {
        assert!(tab_to(&mut window, wanted), "{}", wanted.1);
    }
    assert!(tab_to(&mut window, (Role::Button, "Fewer controls")));
    press(&mut window, Modifiers::NONE, Key::Enter);
    assert!(!says(&window, "Whole run"));
    // What is asked for by a key is shown, wherever it is.
    press(&mut window, Modifiers::CTRL, Key::F);
    settle(&mut window);
    let nodes = window.root().children_recursive();
    let focused = nodes.map(|node| node.accesskit_node()).find(|node| node.is_focused());
    assert_eq!(focused.and_then(|node| node.label()).as_deref(), Some("Filter steps"));
}

#[test]
fn several_steps_of_the_trace_stand_beside_each_other() {
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
