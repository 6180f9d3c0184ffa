//! One sitting from opening a report to coming back to it: open, zoom, search, bookmark, save as
//! SVG, close, open again by the link.

#![cfg(feature = "gui")]
#![allow(clippy::unwrap_used)]

mod common;
mod gui_support;
mod report_support;

use egui::accesskit::Role;
use egui::{Event, Key, Modifiers, OutputCommand, Vec2};
use egui_kittest::kittest::Queryable;
use gui_support::{Window, says, settle};
use std::time::Duration;
use tilescope::gui::Opened;

fn press(window: &mut Window, modifiers: Modifiers, key: Key) {
    window.event(Event::Key { key, physical_key: None, pressed: true, repeat: false, modifiers });
    settle(window);
}

#[test]
fn open_zoom_search_bookmark_save_close_and_come_back() {
    let directory = tempfile::tempdir().unwrap();
    let spec = common::spec("mnist_pipeline", &["options.device_iterations=1"]);
    common::report_file(&spec, directory.path());
    let size = Vec2::new(1300.0, 850.0);
    let open = || Opened::read(directory.path()).unwrap();
    let mut window = gui_support::opened_window(open(), "summary", size);

    // Zoom.
    window.get_by_role_and_label(Role::Button, "Execution trace").click();
    settle(&mut window);
    for key in [Key::W, Key::W, Key::D] {
        press(&mut window, Modifiers::NONE, key);
    }

    // Search; a mistake is pointed at.
    press(&mut window, Modifiers::NONE, Key::Slash);
    window.get_by_label("Find in the whole report").type_text("in:steps Convolve ipu:x");
    settle(&mut window);
    assert!(says(&window, "at character 23"));
    press(&mut window, Modifiers::NONE, Key::Backspace);
    window.get_by_label("Find in the whole report").type_text("0");
    settle(&mut window);
    assert!(says(&window, "executions"));
    press(&mut window, Modifiers::NONE, Key::Enter);
    settle(&mut window);
    let session = window.state().session();
    assert!(session.selection.step.is_some(), "the first result is chosen in the trace");
    assert_eq!(session.page.as_ref().unwrap().finder.at, Some(0));
    window.get_by_role_and_label(Role::Button, "Close find").click();
    settle(&mut window);
    let first = window.state().session().selection.program;
    press(&mut window, Modifiers::NONE, Key::N);
    assert_ne!(window.state().session().selection.program, first, "N goes on");

    // Measure from here to the next step.
    press(&mut window, Modifiers::NONE, Key::M);
    press(&mut window, Modifiers::NONE, Key::Period);
    press(&mut window, Modifiers::SHIFT, Key::M);
    window.query_all_by_role_and_label(Role::Tab, "Statistics").last().unwrap().click();
    settle(&mut window);
    assert!(says(&window, "between the marks"));

    // Bookmark.
    press(&mut window, Modifiers::CTRL, Key::M);
    let kept = std::fs::read_to_string(directory.path().join("tilescope-notes.json")).unwrap();
    assert!(kept.contains("view=execution-trace"));

    // Save as SVG.
    press(&mut window, Modifiers::CTRL, Key::S);
    window.query_all_by_role(Role::ComboBox).last().unwrap().click();
    settle(&mut window);
    window.query_all_by_label("SVG drawing").last().unwrap().click();
    settle(&mut window);
    let drawing = directory.path().join("trace.svg");
    window.get_by_label("File to write").focus();
    window.step();
    press(&mut window, Modifiers::CTRL | Modifiers::COMMAND, Key::A);
    window.get_by_label("File to write").type_text(&drawing.to_string_lossy());
    settle(&mut window);
    window.get_by_role_and_label(Role::Button, "Save").click();
    for _ in 0..3000 {
        window.step();
        if drawing.is_file() {
            break;
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    let svg = std::fs::read_to_string(&drawing).unwrap();
    assert!(svg.contains("</text>") && svg.ends_with("</svg>\n"));
    settle(&mut window);

    // Copy the link, close, and come back.
    window.event(Event::Key {
        key: Key::C,
        physical_key: None,
        pressed: true,
        repeat: false,
        modifiers: Modifiers::CTRL | Modifiers::SHIFT,
    });
    window.step();
    window.step();
    let copied = window.output().platform_output.commands.iter().find_map(|command| {
        let OutputCommand::CopyText(text) = command else { return None };
        Some(text.clone())
    });
    let link = window.state().session().link().unwrap().to_string();
    if let Some(copied) = copied {
        assert_eq!(copied, link);
    }
    press(&mut window, Modifiers::CTRL, Key::W);
    assert!(window.state().session().page.is_none());
    drop(window);
    let mut again = gui_support::opened_window(open(), "summary", size);
    let place = link.parse::<tilescope::gui::keep::Link>().unwrap().place;
    again.state_mut().session_mut().go(&place);
    settle(&mut again);
    assert_eq!(again.state().session().link().unwrap().to_string(), link);
    assert_eq!(again.state().session().messages, Vec::<String>::new());
}
