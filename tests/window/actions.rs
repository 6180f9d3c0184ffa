//! Tests of the table of actions: all actions can be reached and have an explanation.

use crate::common;
use crate::gui_support::{self, Variant, link, press, says, settle, type_text, window};
use egui::accesskit::Role;
use egui::{Event, Key, Modifiers, Vec2};
use egui_kittest::kittest::Queryable;
use std::path::Path;
use tilescope_gui::action::actions;
use tilescope_gui::session::Selection;
use tilescope_gui::{AppearancePrefs, OpenReport, PaletteChoice, Theme};
use tilescope_report::units::{ByteUnits, IpuId, ProgramId, TileId, VariableId};

#[test]
fn the_palette_reaches_and_explains_every_action() {
    let mut window = window(Variant::named("small"), "summary", Vec2::new(1200.0, 800.0));
    for action in actions().iter().filter(|action| action.name != "commands") {
        press(&mut window, Modifiers::CTRL | Modifiers::SHIFT, Key::P);
        type_text(&mut window, "What do you want to do?", action.title);
        let words = action.menu_text(window.state().session().prefs());
        let entry = window.query_by_role_and_label(Role::MenuItem, &words);
        assert!(entry.is_some(), "{} is in the palette", action.name);
        assert!(!action.help.is_empty(), "{} is explained", action.name);
        press(&mut window, Modifiers::NONE, Key::Escape);
        assert!(!says(&window, "What do you want to do?"), "Escape closes the palette");
    }
    // The palette itself is in the menu.
    assert!(window.query_by_role_and_label(Role::Button, "Commands").is_some());
}

#[test]
fn the_list_of_keys_is_complete() {
    let mut window = window(Variant::named("small"), "summary", Vec2::new(1200.0, 800.0));
    press(&mut window, Modifiers::NONE, Key::F1);
    for action in actions() {
        let keys = action.shortcut_text(window.state().session().prefs());
        if !keys.is_empty() {
            assert!(says(&window, &keys), "{}: {keys}", action.name);
        }
    }
}

#[test]
fn the_palette_runs_the_typed_command() {
    let mut window = window(Variant::named("small"), "summary", Vec2::new(1200.0, 800.0));
    press(&mut window, Modifiers::CTRL | Modifiers::SHIFT, Key::P);
    type_text(&mut window, "What do you want to do?", "exec tr");
    press(&mut window, Modifiers::NONE, Key::Enter);
    assert_eq!(window.state().session().page().unwrap().view().name(), "execution-trace");
}

#[test]
fn keys_match_by_position_or_letter_and_can_be_changed() {
    let mut window = window(Variant::named("small"), "execution-trace", Vec2::new(1200.0, 800.0));
    let press = |key, physical_key| Event::Key {
        key,
        physical_key,
        pressed: true,
        repeat: false,
        modifiers: Modifiers::NONE,
    };
    // On a French keyboard the key at the position of W types Z: it zooms.
    let before = link(&window);
    window.event(press(Key::Z, None));
    settle(&mut window);
    assert_eq!(link(&window), before, "Z by its letter means nothing");
    window.event(press(Key::Z, Some(Key::W)));
    settle(&mut window);
    assert_ne!(link(&window), before, "Z in the place of W zooms");
    let session = window.state_mut().session_mut();
    session.prefs_mut().keys.insert("summary".to_owned(), vec!["J".to_owned()]);
    window.event(press(Key::J, None));
    settle(&mut window);
    assert_eq!(window.state().session().page().unwrap().view().name(), "summary");
}

/// A function that selects an object.
type Choose = fn(&mut Selection);

#[test]
fn a_key_shows_statistics_of_any_selection() {
    let mut window = window(Variant::named("small"), "memory", Vec2::new(1200.0, 800.0));
    let cases: [(Choose, &str, &str); 4] = [
        (
            |selection| selection.tiles = vec![TileId(2), TileId(5)],
            "in:variables tile:2,5",
            "2 variables",
        ),
        (
            |selection| selection.variable = Some(VariableId(0)),
            "in:variables name=\"a/conv/weights\"",
            "1 variables",
        ),
        (|selection| selection.ipu = Some(IpuId(1)), "in:steps ipu:1", "4 executions"),
        (|selection| selection.program = Some(ProgramId(1)), "in:steps type=", "executions"),
    ];
    for (choose, query, totals) in cases {
        let session = window.state_mut().session_mut();
        *session.selection_mut() = Selection::default();
        choose(session.selection_mut());
        press(&mut window, Modifiers::CTRL, Key::I);
        let text = window.state().session().page().unwrap().search().text.clone();
        assert!(text.starts_with(query), "{text}");
        for words in [totals, "Count", "Standard deviation"] {
            assert!(says(&window, words), "{text}: {words}");
        }
    }
}

/// Saves a picture of the visible view to a path.
fn save(window: &mut gui_support::Window, choice: &str, path: &Path) {
    press(window, Modifiers::CTRL, Key::S);
    window.query_all_by_role(Role::ComboBox).last().unwrap().click_accesskit();
    settle(window);
    window.query_all_by_label(choice).last().unwrap().click_accesskit();
    settle(window);
    window.get_by_label("File to write").focus();
    settle(window);
    window.key_press_modifiers(Modifiers::CTRL | Modifiers::COMMAND, Key::A);
    window.step();
    type_text(window, "File to write", &path.to_string_lossy());
    window.get_by_role_and_label(Role::Button, "Save").click_accesskit();
    for _ in 0..3_000 {
        window.step();
        if path.is_file() && !window.state().session().is_exporting() {
            return settle(window);
        }
        std::thread::sleep(std::time::Duration::from_millis(10));
    }
    panic!("not saved: {:?}", window.state().session().messages());
}

/// Any choice in the preferences has a name on the command line, which draws the same picture.
#[test]
fn the_command_line_draws_a_window_with_other_preferences() {
    let directory = tempfile::tempdir().unwrap();
    let spec = common::spec("matmul_chain", &["model.m=64", "model.k=64", "model.n=64"]);
    common::report_file(&spec, directory.path());
    let place = |name: &str| directory.path().join(name);
    let looks = [
        (ByteUnits::Binary, PaletteChoice::Classic, 100, Theme::Light),
        (ByteUnits::Si, PaletteChoice::ColourBlindSafe, 150, Theme::Dark),
        (ByteUnits::Bytes, PaletteChoice::Classic, 80, Theme::Dark),
        (ByteUnits::Si, PaletteChoice::ColourBlindSafe, 100, Theme::Light),
    ];
    let mut seen = Vec::new();
    for (units, palette, text_percent, theme) in looks {
        let opened = OpenReport::read(directory.path()).unwrap();
        let mut window = gui_support::opened_window(opened, "memory", Vec2::new(1200.0, 800.0));
        let look = AppearancePrefs { units, palette, text_percent, ..AppearancePrefs::default() };
        window.state_mut().session_mut().prefs_mut().look = look;
        look.apply(&window.ctx);
        window.ctx.set_theme(theme);
        settle(&mut window);
        let size = window.ctx.content_rect().size() * window.ctx.zoom_factor();
        let size = format!("{}x{}", size.x.round(), size.y.round());
        let (at, percent) = (link(&window), text_percent.to_string());
        let theme = format!("{theme:?}").to_lowercase();
        for (choice, format) in [("PNG picture", "png"), ("SVG drawing", "svg")] {
            let name = format!("{}-{}-{percent}-{theme}.{format}", units.name(), palette.name());
            let (ours, theirs) = (place(&format!("window-{name}")), place(&name));
            save(&mut window, choice, &ours);
            let (report, out) = (directory.path().to_string_lossy(), theirs.to_string_lossy());
            let output = common::tilescope(&[
                "export",
                &report,
                "--view",
                "memory",
                "--format",
                format,
                "-o",
                &out,
                "--at",
                &at,
                "--size",
                &size,
                "--theme",
                &theme,
                "--units",
                units.name(),
                "--palette",
                palette.name(),
                "--text-size",
                &percent,
            ]);
            assert!(output.status.success(), "{name}: {}", common::stderr(&output));
            let bytes = [&ours, &theirs].map(|path| std::fs::read(path).unwrap());
            assert!(bytes[0] == bytes[1], "{name}: {} and {}", bytes[0].len(), bytes[1].len());
            assert!(!seen.contains(&bytes[0]), "{name}: no preference has any effect");
            seen.extend(bytes.into_iter().next());
        }
    }
}

#[test]
fn the_page_to_send_is_that_of_the_command_line() {
    gui_support::simulator();
    let directory = tempfile::tempdir().unwrap();
    let place = directory.path().join("report");
    let spec = common::spec("matmul_chain", &["model.m=64", "model.k=64", "model.n=64"]);
    common::report_file(&spec, &place);
    let opened = OpenReport::read(&place).unwrap();
    let mut window = gui_support::opened_window(opened, "memory", Vec2::new(1200.0, 800.0));
    let ours = directory.path().join("window.html");
    save(&mut window, "HTML page of the report", &ours);
    let theirs = directory.path().join("command-line.html");
    let (report, out) = (place.to_string_lossy(), theirs.to_string_lossy());
    let output = common::tilescope(&["report", &report, "-o", &out]);
    assert!(output.status.success(), "{output:?}");
    assert_eq!(std::fs::read(&ours).unwrap(), std::fs::read(&theirs).unwrap());
}
