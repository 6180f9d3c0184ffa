//! Tests of failures during a session: each shows a message, and nothing is lost.

use crate::common;
use crate::gui_support::{
    DIES, Window, assert_says, link, opened_window, press, press_role, save_under, says, settle,
    simulator, small, until, window_of,
};
use egui::accesskit::Role;
use egui::{Context, Key, Modifiers, Vec2};
use egui_kittest::kittest::Queryable;
use std::path::{Path, PathBuf};
use std::time::Duration;
use tilescope_gui::OpenReport;
use tilescope_gui::app::TilescopeApp;

const SIZE: Vec2 = Vec2::new(1400.0, 900.0);

fn messages(window: &Window) -> String {
    let messages = window.state().session().messages();
    let texts: Vec<&str> = messages.iter().map(|message| message.text.as_str()).collect();
    texts.join("\n")
}

/// A small simulated report; the directory must outlive it.
fn simulated() -> (OpenReport, tempfile::TempDir) {
    let directory = tempfile::tempdir().unwrap();
    let spec = common::spec("matmul_chain", &["model.m=64", "model.k=64", "model.n=64"]);
    common::report_file(&spec, directory.path());
    (OpenReport::read(directory.path()).unwrap(), directory)
}

#[test]
fn a_killed_child_is_reported_and_loses_nothing() {
    simulator();
    let (opened, directory) = simulated();
    let before = std::fs::read(directory.path().join("profile.pop")).unwrap();
    let mut window = opened_window(opened, "memory", SIZE);
    press(&mut window, Modifiers::CTRL, Key::T);
    let what_if = window.state_mut().session_mut().what_if_mut().unwrap();
    let changed = format!("{}\n# {DIES}\n", what_if.text().replace("m = 64", "m = 128"));
    what_if.set_text(changed.clone());
    until(&mut window, "checked", |window| {
        window.state().session().what_if().is_some_and(|what_if| what_if.is_spec_valid())
    });
    window.get_by_label("Simulate and compare").click();
    window.step();
    window.step();
    until(&mut window, "died", |window| {
        window.state().session().simulation().is_none() && !messages(window).is_empty()
    });
    let said = messages(&window);
    assert!(said.contains("The simulation failed") && said.contains("halfway there"), "{said}");
    assert_says(&window, &["The simulation failed", "halfway there"]);
    let session = window.state().session();
    assert_eq!(session.what_if().unwrap().text(), changed, "what was typed stays");
    let page = session.page().unwrap();
    assert!(page.compared().is_none() && page.view().name() == "memory");
    assert!(says(&window, "Tick original") && !says(&window, "Tick variant 1"));
    assert_eq!(std::fs::read(directory.path().join("profile.pop")).unwrap(), before);
}

#[test]
fn errors_of_a_child_are_shown_on_the_home_screen_too() {
    simulator();
    let (opened, _directory) = simulated();
    let mut window = opened_window(opened, "summary", SIZE);
    assert!(press_role(&mut window, Role::Button, "Close report"));
    settle(&mut window);
    assert!(window.state().session().page().is_none());
    until(&mut window, "listed", |window| says(window, "adder"));
    // It is below the edge of the window, where a pointer cannot reach it.
    window.get_by_role_and_label(Role::Button, "adder").click_accesskit();
    window.step();
    window.step();
    until(&mut window, "died", |window| {
        window.state().session().simulation().is_none() && !messages(window).is_empty()
    });
    assert_says(&window, &["The simulation failed", "halfway there"]);
}

#[test]
fn a_report_is_closed_during_queries() {
    for view in tilescope_gui::view_names() {
        let (opened, _directory) = simulated();
        let mut window = opened_window(opened, "summary", SIZE);
        window.state_mut().show_view(view);
        // Queries start in the first frame and are answered later.
        window.step();
        window.step();
        assert!(press_role(&mut window, Role::Button, "Close report"));
        settle(&mut window);
        assert!(says(&window, "Open a report or model…"), "{view}");
        assert_eq!(messages(&window), "", "{view}");
    }
}

#[test]
fn variants_of_a_report_wait_while_another_is_visible() {
    simulator();
    let ((first, _first), (second, _second)) = (simulated(), simulated());
    let mut window = opened_window(first.clone(), "summary", SIZE);
    press(&mut window, Modifiers::CTRL, Key::T);
    window.state_mut().session_mut().what_if_mut().unwrap().set_text("# mine".to_owned());
    window.state_mut().session_mut().show(second);
    settle(&mut window);
    press(&mut window, Modifiers::CTRL, Key::T);
    assert_ne!(window.state().session().what_if().unwrap().text(), "# mine");
    window.state_mut().session_mut().show(first);
    settle(&mut window);
    press(&mut window, Modifiers::CTRL, Key::T);
    assert_eq!(window.state().session().what_if().unwrap().text(), "# mine");
}

#[test]
fn a_new_window_opens_at_the_current_place() {
    let windows = simulator().join("tilescope.windows");
    let (opened, directory) = simulated();
    let mut window = opened_window(opened, "liveness", SIZE);
    let wanted = format!("{} --at {}\n", directory.path().display(), link(&window));
    press(&mut window, Modifiers::CTRL | Modifiers::SHIFT, Key::N);
    until(&mut window, "opened", |_| windows.is_file());
    for _ in 0..100 {
        if std::fs::read_to_string(&windows).unwrap() == wanted {
            break;
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    assert_eq!(std::fs::read_to_string(&windows).unwrap(), wanted);
    assert_eq!(messages(&window), "");
}

fn report(directory: &Path) -> OpenReport {
    small().write(directory).unwrap();
    OpenReport::read(directory).unwrap()
}

/// Saves the visible view to a path.
fn save(window: &mut Window, path: &Path) {
    press(window, Modifiers::CTRL, Key::S);
    save_under(window, path);
    until(window, "saved or not", |window| !window.state().session().messages().is_empty());
}

#[test]
#[cfg(target_os = "linux")]
fn a_full_disk_is_reported_and_the_file_stays() {
    let directory = tempfile::tempdir().unwrap();
    let mut window = opened_window(report(directory.path()), "memory", SIZE);
    // Every write to this device fails as on a full disk.
    save(&mut window, Path::new("/dev/full"));
    assert!(messages(&window).contains("the disk is full; nothing was changed"));
    assert!(!Path::new("/dev/full").is_file(), "the device is still one");
    window.state_mut().session_mut().messages_mut().clear();
    let kept = directory.path().join("kept.png");
    std::fs::write(&kept, "old").unwrap();
    save(&mut window, &directory.path().join("no/such/place.png"));
    assert!(messages(&window).contains("no such directory"));
    assert_eq!(std::fs::read_to_string(&kept).unwrap(), "old");
    assert!(says(&window, "Memory by tile"), "the view is still there");
}

#[test]
fn invalid_notes_are_reported_and_moved_aside() {
    let directory = tempfile::tempdir().unwrap();
    let notes = directory.path().join("tilescope-notes.json");
    std::fs::write(&notes, "{\"format\": 1, \"bookmarks\": [{\"na").unwrap();
    let mut window = opened_window(report(directory.path()), "memory", SIZE);
    assert!(messages(&window).contains("Bookmarks could not be read"));
    assert!(says(&window, "Memory by tile"));
    press(&mut window, Modifiers::CTRL, Key::M);
    assert!(messages(&window).contains("are now in"));
    let aside = directory.path().join("tilescope-notes.broken-1");
    assert!(std::fs::read_to_string(aside).unwrap().contains("{\"na"));
    assert!(std::fs::read_to_string(&notes).unwrap().contains("view=memory"));
}

/// A directory with several reports, as PopTorch writes them, asks which one to open.
#[test]
fn a_directory_of_several_reports_offers_a_choice() {
    let directory = tempfile::tempdir().unwrap();
    for name in ["inference", "training"] {
        small().write(&directory.path().join(name)).unwrap();
    }
    let mut window = window_of(TilescopeApp::detached(&Context::default(), None), SIZE, 1.0);
    let ask = |window: &mut Window| {
        let context = window.ctx.clone();
        window.state_mut().open_at(&context, Some(directory.path()), None, None);
        until(window, "asked", |window| says(window, "Which report?"));
        assert_eq!(messages(window), "");
        assert!(says(window, "2 reports are in"));
        window.check_accessibility();
    };
    // Escape opens nothing.
    ask(&mut window);
    press(&mut window, Modifiers::NONE, Key::Escape);
    until(&mut window, "gone", |window| !says(window, "Which report?"));
    assert!(window.state().session().page().is_none());
    // Every report is a button, and the keyboard reaches each: the first has the focus.
    ask(&mut window);
    press(&mut window, Modifiers::NONE, Key::Tab);
    press(&mut window, Modifiers::NONE, Key::Enter);
    until(&mut window, "opened", |window| window.state().session().page().is_some());
    let path = window.state().session().page().unwrap().opened().path.clone();
    assert_eq!(path, directory.path().join("training"));
    ask(&mut window);
    assert!(press_role(&mut window, Role::Button, "inference/"));
    let opened = |window: &Window| window.state().session().page().unwrap().opened().path.clone();
    until(&mut window, "opened", |window| opened(window) == directory.path().join("inference"));
    assert!(!says(&window, "Which report?"));
}

#[test]
fn links_to_missing_places_are_reported() {
    let directory = tempfile::tempdir().unwrap();
    let mut window = opened_window(report(directory.path()), "memory", SIZE);
    let follow = |window: &mut Window, report: &Path, at: &str| {
        window.state_mut().session_mut().messages_mut().clear();
        let context = window.ctx.clone();
        window.state_mut().open_at(&context, Some(report), None, Some(at));
        until(window, "a message", |window| !window.state().session().messages().is_empty());
        messages(window)
    };
    let step = r#"select.step={"ipu":0,"sub_lane":0,"position":9,"step":123456}"#;
    let cases: &[(PathBuf, String, &str)] = &[
        (directory.path().into(), format!("tilescope:?view=execution-trace&{step}"), "no step"),
        (directory.path().into(), "tilescope:?view=nowhere".to_owned(), "unknown view"),
        (directory.path().into(), "tilescope:?view=%2".to_owned(), "damaged"),
        (directory.path().into(), "http://example.org".to_owned(), "begins with tilescope:"),
        ("/nowhere/at/all".into(), "tilescope:?view=memory".to_owned(), "/nowhere/at/all"),
        (
            directory.path().into(),
            "tilescope:?view=memory&compare=/nowhere/either".to_owned(),
            "/nowhere/either",
        ),
    ];
    for (report, at, words) in cases {
        let said = follow(&mut window, report, at);
        assert!(said.contains(words), "{at}: {said}");
        let page = window.state().session().page().unwrap();
        assert_eq!(page.opened().path, directory.path(), "{at}");
    }
}

#[test]
fn a_changed_file_is_reloaded_and_the_selection_stays() {
    let directory = tempfile::tempdir().unwrap();
    let mut window = {
        let opened = report(directory.path());
        let mut window = opened_window(opened.clone(), "execution-trace", SIZE);
        window.state_mut().session_mut().watch_files();
        window.state_mut().session_mut().show(opened);
        settle(&mut window);
        window
    };
    press(&mut window, Modifiers::NONE, Key::Period);
    let before = window.state().session().selection().clone();
    assert!(before.step.is_some());
    // Wait for the first check of the file.
    until(&mut window, "looked at", |_| true);
    std::thread::sleep(Duration::from_millis(300));
    window.step();
    let mut other = small();
    other.variable("new/variable", tilescope_report::MemoryCategory::Variable, 0..8, 5_000, None);
    other.write(directory.path()).unwrap();
    let variables = |window: &Window| {
        let page = window.state().session().page().unwrap();
        page.opened().report.variable_count().unwrap()
    };
    let known = variables(&window);
    until(&mut window, "read again", |window| variables(window) > known);
    assert_eq!(*window.state().session().selection(), before);
}
