//! Tests of the layout: no text overlaps other text, no control leaves the window, and an idle
//! window does not change. They cover every view on every kind of report, in small and large
//! windows, with text of the usual size and twice as large.

use crate::gui_support::{
    VARIANTS, Variant, Window, each_combination, opened_window, press, press_role, scaled_window,
    settle,
};
use egui::accesskit::Role;
use egui::epaint::TextShape;
use egui::{Key, Modifiers, Rect, Shape, Vec2};
use egui_kittest::kittest::{NodeT, Queryable};
use std::sync::Mutex;
use tilescope_gui::view_names;

/// Screens: width and height in pixels, and the text scale.
const SCREENS: [(Vec2, f32); 4] = [
    (Vec2::new(640.0, 480.0), 1.0),
    (Vec2::new(1600.0, 900.0), 1.0),
    (Vec2::new(3840.0, 2160.0), 1.0),
    (Vec2::new(1600.0, 900.0), 2.0),
];

/// The allowed overlap of two texts: the blur of their edges.
const SLACK: Vec2 = Vec2::new(1.5, 1.5);

/// A text on the screen and its position.
struct Words {
    text: String,
    rect: Rect,
    /// True if its beginning is hidden.
    headless: bool,
    /// True if it is a part of a slanted text.
    is_slanted: bool,
}

/// The visible texts of the last frame, in the order of painting.
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
        // Covered text is not visible.
        Shape::Rect(rect) if rect.fill.is_opaque() => {
            let cover = rect.rect.intersect(clip).expand(1.0);
            seen.retain(|words| !cover.contains_rect(words.rect));
        }
        Shape::Text(text) if text.angle != 0.0 => collect_slanted(text, clip, seen),
        Shape::Text(text) => {
            for row in &text.galley.rows {
                let ink = row.row.visuals.mesh_bounds;
                let whole = ink.translate((text.pos + row.pos.to_vec2()).to_vec2());
                let (rect, words) = (whole.intersect(clip), row.text());
                let headless = whole.left() + 1.0 < clip.left();
                if rect.is_positive() && !words.trim().is_empty() {
                    seen.push(Words { text: words, rect, headless, is_slanted: false });
                }
            }
        }
        _ => {}
    }
}

/// Slanted text as boxes along its middle, each as long as it is high.
fn collect_slanted(text: &TextShape, clip: Rect, seen: &mut Vec<Words>) {
    let size = text.galley.size();
    let along = Vec2::angled(text.angle);
    let down = Vec2::new(-along.y, along.x);
    let middle = text.pos + down * size.y * 0.5;
    let count = (size.x / size.y) as usize;
    for at in 0..count {
        let centre = middle + along * (at as f32 + 0.5) * size.y;
        let rect = Rect::from_center_size(centre, Vec2::splat(size.y * 0.7)).intersect(clip);
        if rect.is_positive() {
            let text = text.galley.text().to_owned();
            seen.push(Words { text, rect, headless: false, is_slanted: true });
        }
    }
}

/// The pairs of texts that overlap.
fn overlaps(words: &[Words]) -> Vec<String> {
    let mut found = Vec::new();
    for (place, a) in words.iter().enumerate() {
        for b in &words[place + 1..] {
            let shared = a.rect.intersect(b.rect);
            // The same text in the same place is a selected bar that is painted again; for slanted
            // text it is a part of it.
            let is_close = a.rect.min.distance(b.rect.min) < 1.0;
            let twice = a.text == b.text && (is_close || a.is_slanted && b.is_slanted);
            if shared.width() > SLACK.x && shared.height() > SLACK.y && !twice {
                found
                    .push(format!("{:?} at {:?} and {:?} at {:?}", a.text, a.rect, b.text, b.rect));
            }
        }
    }
    found
}

/// Large numbers whose first digits are cut off, so that they look like other numbers.
fn cut(words: &[Words]) -> Vec<String> {
    let number = |text: &str| text.contains(',') && text.starts_with(|c: char| c.is_ascii_digit());
    let cut = words.iter().filter(|words| words.headless && number(&words.text));
    cut.map(|words| format!("cut: {:?} at {:?}", words.text, words.rect)).collect()
}

/// All problems of the visible layout.
fn wrong(window: &mut Window, size: Vec2) -> Vec<String> {
    let mut found: Vec<String> = moving(window).into_iter().collect();
    let words = words(window);
    found.extend(overlaps(&words));
    found.extend(cut(&words));
    found.extend(outside(window, size));
    found.truncate(4);
    found
}

/// The number of frames in which panels find their heights.
const FRAMES_TO_REST: usize = 12;

/// Lets an idle window settle. Returns a description of anything that still moves.
fn moving(window: &mut Window) -> Option<String> {
    let places = |window: &Window| -> Vec<String> {
        let place = |words: Words| format!("{:?} at {:?}", words.text, words.rect);
        words(window).into_iter().map(place).collect()
    };
    let mut before = places(window);
    for _ in 0..FRAMES_TO_REST {
        window.step();
        let after = places(window);
        if after == before {
            return None;
        }
        before = after;
    }
    window.step();
    let moved = places(window).into_iter().find(|place| !before.contains(place));
    Some(format!("never at rest: {moved:?}"))
}

/// The roles of controls that must be inside the window unless a scroll area clips them.
const HELD: [Role; 3] = [Role::ComboBox, Role::CheckBox, Role::Tab];
/// The roles of controls that must be inside the window if they begin in the bars along the top;
/// farther down, tables clip them.
const HELD_ABOVE: [Role; 4] = [Role::Button, Role::TextInput, Role::SpinButton, Role::Slider];
/// The height of the bars along the top, in points.
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
fn texts_do_not_overlap_and_controls_stay_inside_the_window() {
    let problems = Mutex::new(Vec::new());
    let views = view_names();
    each_combination(&[VARIANTS.len(), views.len(), SCREENS.len()], |row| {
        let (variant, view) = (&VARIANTS[row[0]], views[row[1]]);
        let (size, scale) = SCREENS[row[2]];
        let mut window = scaled_window(variant, view, size, scale);
        let check = |window: &mut Window, tab: &str| {
            let found = wrong(window, size / scale);
            let place = format!("{} {view} {tab} {size:?} x {scale}", variant.name);
            let mut problems = problems.lock().unwrap();
            problems.extend(found.into_iter().map(|problem| format!("{place}: {problem}")));
        };
        check(&mut window, "");
        for tab in tabs(&window) {
            if press_role(&mut window, Role::Tab, &tab) {
                settle(&mut window);
                check(&mut window, &tab);
            }
        }
        if press_role(&mut window, Role::Button, "More controls") {
            settle(&mut window);
            check(&mut window, "all controls");
        }
    });
    let problems = problems.into_inner().unwrap();
    assert!(problems.is_empty(), "{} problems:\n{}", problems.len(), problems.join("\n"));
}

/// The smallest readable height of the lanes of a trace.
const LANES: f32 = 60.0;

#[test]
fn two_reports_fit_into_a_small_window() {
    let size = SCREENS[0].0;
    let (source, target) = (Variant::named("simulated"), Variant::named("small"));
    let mut found = Vec::new();
    for view in view_names() {
        let mut window = opened_window(source.opened(), view, size);
        window.state_mut().compare(target.opened());
        settle(&mut window);
        found.extend(wrong(&mut window, size).into_iter().map(|words| format!("{view}: {words}")));
        if view == "execution-trace" {
            let lanes: Vec<f32> = window
                .query_all_by_role_and_label(Role::Canvas, "Lanes")
                .map(|node| node.rect().height())
                .collect();
            assert!(lanes.len() == 2 && lanes.iter().all(|lane| *lane >= LANES), "{lanes:?}");
        }
    }
    assert!(found.is_empty(), "{}", found.join("\n"));
}

fn tabs(window: &Window) -> Vec<String> {
    let tabs = window.query_all_by_role(Role::Tab);
    tabs.filter_map(|node| node.accesskit_node().label()).collect()
}

/// Every dialog in small windows and with large text: all controls can be reached.
#[test]
fn dialogs_fit_into_small_windows() {
    const CTRL: Modifiers = Modifiers::COMMAND;
    let shift = CTRL | Modifiers::SHIFT;
    let keys = [
        (CTRL, Key::O),
        (CTRL, Key::D),
        (shift, Key::T),
        (shift, Key::P),
        (Modifiers::NONE, Key::F1),
        (Modifiers::SHIFT, Key::F1),
        (CTRL, Key::S),
        (CTRL, Key::Comma),
        (shift, Key::M),
    ];
    let screens = [
        (Vec2::new(640.0, 480.0), 1.0),
        (Vec2::new(1280.0, 720.0), 1.0),
        (Vec2::new(1280.0, 720.0), 2.0),
    ];
    let mut problems = Vec::new();
    for (size, scale) in screens {
        let variant = Variant::named("sample of a pipeline");
        let mut window = scaled_window(variant, "summary", size, scale);
        for (modifiers, key) in keys {
            press(&mut window, modifiers, key);
            let found = outside(&window, size / scale);
            problems.extend(found.iter().map(|what| format!("{key:?} {size} x {scale}: {what}")));
            press(&mut window, Modifiers::NONE, Key::Escape);
        }
    }
    assert!(problems.is_empty(), "{} problems:\n{}", problems.len(), problems.join("\n"));
}

/// All entries of the side menu are visible in a window of a small screen.
#[test]
fn the_side_menu_fits_into_a_small_screen() {
    let size = Vec2::new(1280.0, 720.0);
    let window = scaled_window(Variant::named("small"), "summary", size, 1.0);
    for entry in ["Reload report", "Keys and help", "Hide menu"] {
        let found = window.query_by_role_and_label(Role::Button, entry);
        let rect = found.expect("an entry").rect();
        assert!(rect.bottom() <= size.y, "{entry}: {rect:?}");
    }
}

/// No part of the what-if panel is cut off at its left edge, at any width.
#[test]
fn what_if_is_whole_beside_a_view_with_large_text() {
    crate::gui_support::simulator();
    let (size, scale) = (Vec2::new(1280.0, 720.0), 2.0);
    let variant = Variant::named("sample of a pipeline");
    let mut window = scaled_window(variant, "memory", size, scale);
    press(&mut window, Modifiers::COMMAND, Key::T);
    for wanted in ["What if", "Micro-batch"] {
        let words = words(&window);
        let found = words.iter().find(|words| words.text.trim() == wanted).expect("is painted");
        assert!(!found.headless, "{wanted} is cut at {:?}", found.rect);
    }
    let close = window.get_by_label("Close what-if").rect();
    let sliders = window.query_all_by_role(Role::Slider);
    let edge = close.right() - 300.0;
    // The view has its own sliders beside the panel.
    let own = sliders.map(|slider| slider.rect()).filter(|slider| slider.center().x > edge);
    let lefts: Vec<f32> = own.map(|slider| slider.left()).collect();
    assert!(!lefts.is_empty() && lefts.iter().all(|left| *left >= edge), "{lefts:?} {edge}");
}

/// The results of a search are stable and inside their window, small or large.
#[test]
fn search_results_fit_and_are_stable() {
    crate::gui_support::simulator();
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("points.db");
    let sweep = ["sweep", "dense_layer", "--vary", "model.batch_size=4,8,131072", "--results"];
    let results = [file.to_str().unwrap(), "--vary", "options.device_iterations=1,2"];
    assert!(crate::common::tilescope(&[&sweep[..], &results[..]].concat()).status.success());
    let mut problems = Vec::new();
    for (size, scale) in SCREENS {
        let mut window = scaled_window(Variant::named("small"), "summary", size, scale);
        let context = window.ctx.clone();
        window.state_mut().open_at(&context, Some(&file), None, None);
        settle(&mut window);
        for _ in 0..500 {
            if !crate::gui_support::says(&window, "Reading results") {
                break;
            }
            window.step();
            std::thread::sleep(std::time::Duration::from_millis(10));
        }
        settle(&mut window);
        assert!(crate::gui_support::says(&window, "Points"));
        let mut found: Vec<String> = moving(&mut window).into_iter().collect();
        found.extend(outside(&window, size / scale));
        problems.extend(found.into_iter().map(|what| format!("{size} x {scale}: {what}")));
    }
    assert!(problems.is_empty(), "{} problems:\n{}", problems.len(), problems.join("\n"));
}
