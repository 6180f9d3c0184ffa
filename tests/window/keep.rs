//! Tests of coming back: links, undo and redo, bookmarks, saving, reloading.

use crate::common;
use crate::gui_support;
use crate::gui_support::{
    VARIANTS, Variant, Window, click_label, each_pair, link, look_around, opened_window,
    picture_of, press, save_under, says, settle, show_the_same, type_text, window,
};
use egui::accesskit::Role;
use egui::{Key, Modifiers, Vec2};
use egui_kittest::kittest::Queryable;
use std::path::Path;
use std::time::Duration;
use tilescope_analysis::compare::ComparisonTable;
use tilescope_gui::{OpenReport, PictureFormat, PictureOptions, Theme, export};
use tilescope_report::units::TileId;

const SIZE: Vec2 = Vec2::new(1200.0, 800.0);

#[test]
fn a_link_restores_the_view_it_was_copied_from() {
    let kinds = ["simulated", "small", "foreign", "64 IPUs", "out of memory"];
    let kinds: Vec<Variant> =
        VARIANTS.iter().filter(|v| kinds.contains(&v.name)).map(copy).collect();
    each_pair(&kinds, |variant, view| {
        let mut seen = window(variant, view, SIZE);
        look_around(&mut seen, view);
        let copied = link(&seen);
        let mut fresh = window(variant, "summary", SIZE);
        let place = copied.parse::<tilescope_gui::navigation::ReportLink>().unwrap().place;
        fresh.state_mut().session_mut().go_to(&place);
        settle(&mut fresh);
        assert_eq!(link(&fresh), copied, "{} {view}", variant.name);
        show_the_same(&mut seen, &mut fresh, SIZE, &format!("{} {view}", variant.name));
        assert_eq!(fresh.state().session().messages(), []);
    });
}

/// The link to a place of the trace leads to the same pixels, however the place was reached.
#[test]
fn a_link_to_a_moved_trace_restores_every_pixel() {
    for name in ["simulated", "small", "far out", "sample of a pipeline"] {
        let variant = Variant::named(name);
        let mut seen = window(variant, "execution-trace", SIZE);
        seen.hover_at(egui::pos2(500.0, 300.0));
        settle(&mut seen);
        for keys in ["WWWDDD", "WWDAAD", "SDWWWAA", "WWWWWWDDDDD"] {
            for key in keys.chars() {
                let key = Key::from_name(&key.to_string()).unwrap();
                press(&mut seen, Modifiers::NONE, key);
            }
            let copied = link(&seen);
            let mut fresh = window(variant, "summary", SIZE);
            let place = copied.parse::<tilescope_gui::navigation::ReportLink>().unwrap().place;
            fresh.state_mut().session_mut().go_to(&place);
            settle(&mut fresh);
            show_the_same(&mut seen, &mut fresh, SIZE, &format!("{name} {keys}"));
        }
    }
}

fn copy(variant: &Variant) -> Variant {
    Variant { ..*variant }
}

#[test]
fn undo_then_redo_is_identity_in_a_window() {
    let mut window = window(Variant::named("simulated"), "execution-trace", SIZE);
    let rest = |window: &mut Window| {
        settle(window);
        for _ in 0..6 {
            window.step();
        }
        settle(window);
    };
    rest(&mut window);
    let mut places = vec![link(&window)];
    for (modifiers, key) in [
        (Modifiers::NONE, Key::W),
        (Modifiers::NONE, Key::Period),
        (Modifiers::CTRL, Key::Num3),
        (Modifiers::CTRL, Key::Num1),
    ] {
        press(&mut window, modifiers, key);
        rest(&mut window);
        places.push(link(&window));
    }
    for place in places.iter().rev().skip(1) {
        press(&mut window, Modifiers::CTRL, Key::Z);
        rest(&mut window);
        assert_eq!(link(&window), *place);
    }
    for place in places.iter().skip(1) {
        press(&mut window, Modifiers::CTRL | Modifiers::SHIFT, Key::Z);
        rest(&mut window);
        assert_eq!(link(&window), *place);
    }
}

fn report(directory: &Path) -> OpenReport {
    gui_support::small().write(directory).unwrap();
    OpenReport::read(directory).unwrap()
}

#[test]
fn a_link_to_a_missing_place_is_reported() {
    let mut window = window(Variant::named("small"), "summary", SIZE);
    let text = "tilescope:?view=memory&select.tiles=[3,999999]&select.program=77777&order=banana";
    let place = text.parse::<tilescope_gui::navigation::ReportLink>().unwrap().place;
    window.state_mut().session_mut().go_to(&place);
    settle(&mut window);
    let session = window.state().session();
    assert_eq!(session.selection().tiles, [TileId(3)]);
    for words in ["no tile 999999", "no program 77777", "order"] {
        assert!(session.messages().iter().any(|said| said.text.contains(words)), "{words}");
    }
    assert!(says(&window, "Memory by tile"));
}

#[test]
fn bookmarks_are_kept_beside_the_report() {
    let directory = tempfile::tempdir().unwrap();
    let mut window = opened_window(report(directory.path()), "memory", SIZE);
    press(&mut window, Modifiers::CTRL, Key::M);
    let kept = directory.path().join("tilescope-notes.json");
    assert!(std::fs::read_to_string(&kept).unwrap().contains("view=memory"));
    let mut again = opened_window(OpenReport::read(directory.path()).unwrap(), "summary", SIZE);
    press(&mut again, Modifiers::CTRL | Modifiers::SHIFT, Key::M);
    again.get_by_label("Note of bookmark 1").focus();
    again.step();
    type_text(&mut again, "Note of bookmark 1", "fullest tile");
    assert!(std::fs::read_to_string(&kept).unwrap().contains("fullest tile"));
    click_label(&mut again, "Go there");
    assert_eq!(again.state().session().page().unwrap().view().name(), "memory");
}

/// Waits for files being written.
fn wait_for_saving(window: &mut Window) {
    for _ in 0..2000 {
        window.step();
        if !window.state().session().is_exporting() {
            return settle(window);
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    panic!("saving never ends");
}

#[test]
fn the_window_saves_the_bytes_of_the_command_line() {
    let directory = tempfile::tempdir().unwrap();
    let opened = report(directory.path());
    for (choice, format) in
        [("PNG picture", PictureFormat::Png), ("SVG drawing", PictureFormat::Svg)]
    {
        let mut window = opened_window(opened.clone(), "memory", SIZE);
        look_around(&mut window, "memory");
        let at = link(&window);
        let theme = window.ctx.theme();
        press(&mut window, Modifiers::CTRL, Key::S);
        if format == PictureFormat::Svg {
            window.query_all_by_role(Role::ComboBox).last().unwrap().click();
            settle(&mut window);
            window.query_all_by_label(choice).last().unwrap().click();
            settle(&mut window);
        }
        let from_window = directory.path().join(format!("window-{choice}"));
        save_under(&mut window, &from_window);
        window.step();
        wait_for_saving(&mut window);
        let out = directory.path().join("command-line");
        let size = (SIZE.x as u32, SIZE.y as u32);
        let wanted = PictureOptions { at: Some(&at), ..picture_of("memory", size, theme, format) };
        export(directory.path(), &wanted, &out).unwrap();
        let (a, b) = (std::fs::read(&from_window).unwrap(), std::fs::read(&out).unwrap());
        assert!(a == b, "{choice}: {} and {} bytes", a.len(), b.len());
    }
}

#[test]
fn every_view_is_drawn_as_shapes_and_text() {
    let directory = tempfile::tempdir().unwrap();
    report(directory.path());
    for view in tilescope_gui::view_names() {
        let out = directory.path().join("view.svg");
        let wanted = picture_of(view, (1000, 700), Theme::Light, PictureFormat::Svg);
        export(directory.path(), &wanted, &out).unwrap();
        let svg = std::fs::read_to_string(&out).unwrap();
        assert!(svg.starts_with("<svg") && svg.ends_with("</svg>\n"), "{view}");
        assert!(svg.contains(">Execution trace</text>"), "{view}: the menu is text");
        assert_eq!(svg.matches("<g ").count(), svg.matches("</g>").count(), "{view}");
        assert!(!svg.contains("NaN") && !svg.contains("inf\""), "{view}");
    }
}

#[test]
fn a_reloaded_report_keeps_the_selection() {
    let directory = tempfile::tempdir().unwrap();
    let mut window = opened_window(report(directory.path()), "execution-trace", SIZE);
    press(&mut window, Modifiers::NONE, Key::Period);
    press(&mut window, Modifiers::NONE, Key::W);
    let before = link(&window);
    assert!(window.state().session().selection().step.is_some());
    let again = report(directory.path());
    window.state_mut().session_mut().show(again);
    settle(&mut window);
    assert_eq!(link(&window), before);
}

/// Saves the choice of this name to a path.
fn save_choice(window: &mut Window, choice: &str, path: &Path) {
    press(window, Modifiers::CTRL, Key::S);
    window.query_all_by_role(Role::ComboBox).last().unwrap().click();
    settle(window);
    // Entries far down the list are not on the screen.
    window.query_all_by_label(choice).last().unwrap().click_accesskit();
    settle(window);
    save_under(window, path);
    window.step();
    wait_for_saving(window);
}

#[test]
fn a_comparison_is_saved_as_the_command_line_saves_it() {
    let (first, second) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let source = report(first.path());
    let spec = common::spec("matmul_chain", &["model.m=64", "model.k=64", "model.n=64"]);
    common::report_file(&spec, second.path());
    let target = OpenReport::read(second.path()).unwrap();
    let mut window = opened_window(source, "memory", SIZE);
    window.state_mut().compare(target);
    settle(&mut window);
    let (at, theme) = (link(&window), format!("{:?}", window.ctx.theme()).to_lowercase());
    let mut choices = vec![
        ("PNG picture".to_owned(), vec!["--format", "png"], String::new()),
        ("SVG drawing".to_owned(), vec!["--format", "svg"], String::new()),
    ];
    let page = window.state().session().page().unwrap();
    let titles = page.compared().unwrap().tables();
    assert!(!titles.is_empty());
    for title in titles {
        let name = ComparisonTable::named(title).name();
        choices.push((format!("CSV table of differences: {title}"), vec!["--format", "csv"], name));
    }
    let (a, b) = (first.path().to_string_lossy(), second.path().to_string_lossy());
    for (choice, format, table) in choices {
        let [from_window, from_command] = ["window", "command"].map(|name| first.path().join(name));
        save_choice(&mut window, &choice, &from_window);
        let out = from_command.to_string_lossy();
        let mut arguments = vec!["export", &a, "--compare", &b, "--view", "memory", "-o", &out];
        arguments.extend(format);
        if table.is_empty() {
            arguments.extend(["--at", &at, "--size", "1200x800", "--theme", &theme]);
        } else {
            arguments.extend(["--table", &table]);
        }
        let output = common::tilescope(&arguments);
        assert!(output.status.success(), "{choice}: {}", common::stderr(&output));
        let bytes = [&from_window, &from_command].map(|path| std::fs::read(path).unwrap());
        assert!(bytes[0] == bytes[1], "{choice}: {} and {}", bytes[0].len(), bytes[1].len());
        assert!(!bytes[0].is_empty());
    }
}
