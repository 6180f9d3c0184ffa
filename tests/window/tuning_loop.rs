//! A test of one session from opening a report to returning to it: open, zoom, search, measure,
//! twice the accumulation, compare, bookmark, save as SVG, close, open again by the link.

use crate::common;
use crate::gui_support;
use crate::gui_support::{
    click, is_compared, picture, press, says, settle, simulator, type_text, until,
};
use egui::accesskit::Role;
use egui::{Event, Key, Modifiers, OutputCommand, Vec2};
use egui_kittest::kittest::Queryable;
use tilescope_gui::OpenReport;
use tilescope_gui::message::StatusMessage;

#[test]
fn open_zoom_search_change_compare_bookmark_save_close_and_come_back() {
    simulator();
    let directory = tempfile::tempdir().unwrap();
    let spec = common::spec("mnist_pipeline", &["options.device_iterations=1"]);
    common::report_file(&spec, directory.path());
    let size = Vec2::new(1300.0, 850.0);
    let open = || OpenReport::read(directory.path()).unwrap();
    let mut window = gui_support::opened_window(open(), "summary", size);
    window.state_mut().session_mut().keep_simulated_in(directory.path().to_owned());

    // Zoom in and out.
    click(&mut window, Role::Button, "Execution trace");
    for key in [Key::W, Key::W, Key::D] {
        press(&mut window, Modifiers::NONE, key);
    }

    // Search; an error is marked at its position.
    press(&mut window, Modifiers::NONE, Key::Slash);
    type_text(&mut window, "Find in the whole report", "in:steps Convolve ipu:x");
    assert!(says(&window, "at character 23"));
    press(&mut window, Modifiers::NONE, Key::Backspace);
    type_text(&mut window, "Find in the whole report", "0");
    assert!(says(&window, "executions"));
    press(&mut window, Modifiers::NONE, Key::Enter);
    settle(&mut window);
    let session = window.state().session();
    assert!(session.selection().step.is_some(), "the first result is chosen in the trace");
    assert_eq!(session.page().unwrap().search().current_result, Some(0));
    click(&mut window, Role::Button, "Close find");
    let first = window.state().session().selection().program;
    press(&mut window, Modifiers::NONE, Key::N);
    assert_ne!(window.state().session().selection().program, first, "N goes on");

    // Measure from here to the next step.
    press(&mut window, Modifiers::NONE, Key::M);
    press(&mut window, Modifiers::NONE, Key::Period);
    press(&mut window, Modifiers::SHIFT, Key::M);
    window.query_all_by_role_and_label(Role::Tab, "Statistics").last().unwrap().click();
    settle(&mut window);
    assert!(says(&window, "between the marks"));

    // Twice the accumulation, compared with the original.
    press(&mut window, Modifiers::CTRL, Key::T);
    let what_if = window.state_mut().session_mut().what_if_mut().unwrap();
    let before = what_if.text().to_owned();
    let after = before.replace("gradient_accumulation = 10", "gradient_accumulation = 20");
    assert_ne!(before, after);
    what_if.set_text(after);
    until(&mut window, "checked", |window| {
        window.state().session().what_if().is_some_and(|what_if| what_if.is_spec_valid())
    });
    window.get_by_label("Simulate and compare").click();
    until(&mut window, "compared", is_compared);
    assert_eq!(window.state().session().page().unwrap().view().name(), "execution-trace");
    assert!(says(&window, "options.gradient_accumulation = 20"), "it is in the list of variants");
    press(&mut window, Modifiers::CTRL, Key::T);
    assert!(says(&window, "Slower and faster"));

    // Add a bookmark.
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
    type_text(&mut window, "File to write", &drawing.to_string_lossy());
    window.get_by_role_and_label(Role::Button, "Save").click();
    until(&mut window, "saved", |window| {
        drawing.is_file() && !window.state().session().is_exporting()
    });
    let svg = std::fs::read_to_string(&drawing).unwrap();
    assert!(svg.contains("</text>") && svg.ends_with("</svg>\n"));
    settle(&mut window);

    // Copy the link, close, and return.
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
    let said = StatusMessage::done(format!("Saved {}", drawing.display()));
    assert_eq!(window.state().session().messages(), [said]);
    for _ in 0..2 {
        press(&mut window, Modifiers::CTRL, Key::W);
    }
    assert!(window.state().session().page().is_none());
    drop(window);
    let mut again = gui_support::opened_window(open(), "summary", size);
    let context = again.ctx.clone();
    again.state_mut().open_at(&context, Some(directory.path()), None, Some(&link));
    until(&mut again, "compared again", is_compared);
    assert_eq!(again.state().session().link().unwrap().to_string(), link);
    assert_eq!(again.state().session().messages(), []);
    let shown = picture(&mut again, size);
    assert_eq!((shown.width, shown.height), (1300, 850));
}
