//! Nothing is painted over other words, and no control leaves the window: every view on every
//! kind of report, in small and large windows, with text of the usual size and twice as large.

use crate::gui_support::{VARIANTS, Window, each_pair, press_role, scaled_window, settle};
use egui::accesskit::Role;
use egui::{Rect, Shape, Vec2};
use egui_kittest::kittest::{NodeT, Queryable};
use std::sync::Mutex;

/// Screens: width and height in pixels, and how large text is.
const SCREENS: [(Vec2, f32); 4] = [
    (Vec2::new(640.0, 480.0), 1.0),
    (Vec2::new(1600.0, 900.0), 1.0),
    (Vec2::new(3840.0, 2160.0), 1.0),
    (Vec2::new(1600.0, 900.0), 2.0),
];

/// What the ink of two words may share: the blur of their edges.
const SLACK: Vec2 = Vec2::new(1.5, 1.5);

/// Words on the screen and where they are.
struct Words {
    text: String,
    rect: Rect,
}

/// Words that can be seen in the last frame, in the order of painting.
fn words(window: &Window) -> Vec<Words> {
    let mut seen = Vec::new();
    for clipped in &window.output().shapes {
        collect(&clipped.shape, clipped.clip_rect, &mut seen);
    }
    seen
}

fn collect(shape: &Shape, clip: Rect, seen: &mut Vec<Words>) {
    match shape {
        Shape::Vec(shapes) => shapes.iter().for_each(|shape| collect(shape, clip, seen)),
        // What is covered is not seen.
        Shape::Rect(rect) if rect.fill.is_opaque() => {
            let cover = rect.rect.intersect(clip).expand(1.0);
            seen.retain(|words| !cover.contains_rect(words.rect));
        }
        Shape::Text(text) => {
            for row in &text.galley.rows {
                let ink = row.row.visuals.mesh_bounds;
                let rect = ink.translate((text.pos + row.pos.to_vec2()).to_vec2()).intersect(clip);
                let words = row.text();
                if rect.is_positive() && !words.trim().is_empty() {
                    seen.push(Words { text: words, rect });
                }
            }
        }
        _ => {}
    }
}

/// Pairs of words that lie on each other.
fn overlaps(words: &[Words]) -> Vec<String> {
    let mut found = Vec::new();
    for (place, a) in words.iter().enumerate() {
        for b in &words[place + 1..] {
            let shared = a.rect.intersect(b.rect);
            // The same words in the same place are a bar painted again because it is chosen.
            let twice = a.text == b.text && a.rect.min.distance(b.rect.min) < 1.0;
            if shared.width() > SLACK.x && shared.height() > SLACK.y && !twice {
                found
                    .push(format!("{:?} at {:?} and {:?} at {:?}", a.text, a.rect, b.text, b.rect));
            }
        }
    }
    found
}

/// Roles of controls, all of which must be inside the window unless a scroll area cuts them off.
const HELD: [Role; 3] = [Role::ComboBox, Role::CheckBox, Role::Tab];
/// Roles of controls that must be inside as long as they begin in the bars along the top; farther
/// down, tables cut them off.
const HELD_ABOVE: [Role; 4] = [Role::Button, Role::TextInput, Role::SpinButton, Role::Slider];
const BARS: f32 = 150.0;

fn outside(window: &Window, size: Vec2) -> Vec<String> {
    let screen = Rect::from_min_size(egui::Pos2::ZERO, size).expand(1.0);
    let nodes = window.root().children_recursive();
    let controls = nodes.filter(|node| {
        let role = node.accesskit_node().role();
        let above = HELD_ABOVE.contains(&role) && node.rect().top() < BARS;
        HELD.contains(&role) || above
    });
    let gone = controls.filter(|node| !screen.contains_rect(node.rect()));
    gone.map(|node| format!("outside: {:?} {:?}", node.accesskit_node().label(), node.rect()))
        .collect()
}

#[test]
fn words_lie_beside_each_other_and_controls_inside_the_window() {
    let problems = Mutex::new(Vec::new());
    each_pair(VARIANTS, |variant, view| {
        for (size, scale) in SCREENS {
            let mut window = scaled_window(variant, view, size, scale);
            let check = |window: &Window, tab: &str| {
                let mut found = overlaps(&words(window));
                found.extend(outside(window, size / scale));
                found.truncate(4);
                let place = format!("{} {view} {tab} {size:?} x {scale}", variant.name);
                let mut problems = problems.lock().unwrap();
                problems.extend(found.into_iter().map(|problem| format!("{place}: {problem}")));
            };
            check(&window, "");
            for tab in tabs(&window) {
                if press_role(&mut window, Role::Tab, &tab) {
                    settle(&mut window);
                    check(&window, &tab);
                }
            }
        }
    });
    let problems = problems.into_inner().unwrap();
    assert!(problems.is_empty(), "{} problems:\n{}", problems.len(), problems.join("\n"));
}

fn tabs(window: &Window) -> Vec<String> {
    let tabs = window.query_all_by_role(Role::Tab);
    tabs.filter_map(|node| node.accesskit_node().label()).collect()
}
