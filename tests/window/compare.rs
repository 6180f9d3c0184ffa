//! Tests of comparisons in one window, and of several reports in tabs.

use crate::gui_support::{
    COMPARING, VARIANTS, Variant, Window, click, click_label, compared, opened_window, picture_of,
    press, says, settle, show_view, type_text,
};
use egui::accesskit::Role;
use egui::{Event, Key, Modifiers, vec2};
use egui_kittest::kittest::{NodeT, Queryable};
use tilescope_analysis::compare::{
    COMPARISONS, ComparedReports, ReportAlignment, WorkUnit, comparison, overview,
};
use tilescope_gui::{PictureFormat, PictureOptions, Theme, picture_file, view_names};
use tilescope_report::units::{NumberFormat, TileId};
use tilescope_test_tiers::slow_tests;

#[test]
fn every_view_has_a_comparison() {
    let known: Vec<&str> = COMPARISONS.iter().map(|one| one.view).collect();
    let views: Vec<&str> = view_names();
    assert!(known.iter().all(|view| views.contains(view)), "{known:?}");
    assert!(views.iter().all(|view| comparison(view).is_some()), "{views:?}");
}

/// Every kind of report, compared with itself and with the next kind, in every view.
#[test]
fn every_view_compares_every_kind_of_report() {
    for (at, source) in VARIANTS.iter().enumerate() {
        for target in [source, &VARIANTS[(at + 1) % VARIANTS.len()]] {
            let mut window = compared(source, target, view_names()[0]);
            for (place, view) in view_names().into_iter().enumerate() {
                if !slow_tests() && (place + at) % 6 != 0 {
                    continue;
                }
                show_view(&mut window, view);
                let words = format!("{} / {}: {view}", source.name, target.name);
                assert!(says(&window, "Source: "), "{words}");
                assert!(says(&window, "End comparison"), "{words}");
                assert!(!says(&window, "cannot be compared"), "{words}");
                assert!(window.state().session().messages().is_empty(), "{words}");
            }
        }
    }
}

#[test]
fn a_selection_on_one_side_is_repeated_on_the_other() {
    let small = Variant::named("small");
    let window = compared(small, small, "memory");
    let page = window.state().session().page().expect("shown");
    assert!(page.compared().is_some_and(|with| with.selection.tiles.is_empty()));
    let mut window = compared(small, small, "execution-trace");
    // The table of changes links to both places.
    click_label(&mut window, "Slower and faster");
    let row = window.query_all_by_label_contains("a/conv/Convolve (OnTileExecute)").next();
    row.expect("listed").click();
    settle(&mut window);
    let session = window.state().session();
    let page = session.page().expect("shown");
    let there = page.compared().map(|with| with.selection.program);
    assert_eq!(there, Some(session.selection().program));
    assert!(session.selection().program.is_some());
}

#[test]
fn traces_zoom_together() {
    let small = Variant::named("small");
    let mut window = compared(small, small, "execution-trace");
    window.hover_at(egui::pos2(500.0, 300.0));
    settle(&mut window);
    let cycles = |window: &Window| {
        let page = window.state().session().page().expect("shown");
        page.compared().and_then(|with| with.cycles()).expect("both are shown")
    };
    let before = cycles(&window);
    for _ in 0..4 {
        press(&mut window, Modifiers::NONE, Key::W);
    }
    let after = cycles(&window);
    assert!(after.0.length() < before.0.length());
    // Both show the same cycles, because there is no offset.
    assert_eq!(before.0, before.1);
    assert_eq!(after.0, after.1);
}

#[test]
fn graphs_of_both_are_overlaid() {
    let (source, target) = (Variant::named("simulated"), Variant::named("small"));
    for view in ["memory", "liveness", "exchange-code"] {
        let mut window = compared(source, target, view);
        click(&mut window, Role::ComboBox, "Layout");
        click_label(&mut window, "One graph");
        assert!(says(&window, "Both reports"), "{view}");
        let curves = ["Tile memory (including gaps)", "Always live", "Exchange code"];
        let sides = ["Source", "Target"];
        let both = |curve: &&str| sides.iter().all(|s| says(&window, &format!("{s}: {curve}")));
        assert!(curves.iter().any(both), "{view}");
    }
}

/// The contents of a single graph also appear in the common graph.
#[test]
fn the_common_graph_has_the_capacity_line_and_choices() {
    let (source, target) = (Variant::named("out of memory"), Variant::named("64 IPUs"));
    for (view, switch) in [("memory", true), ("liveness", true), ("exchange-code", false)] {
        let mut window = compared(source, target, view);
        click(&mut window, Role::ComboBox, "Layout");
        click_label(&mut window, "One graph");
        let known = window.query_by_role_and_label(Role::CheckBox, "Show max memory").is_some();
        assert_eq!(known, switch, "{view}");
        let shown = says(&window, "Max memory");
        assert_eq!(shown, switch, "{view}: it is near, so it is shown");
        if known {
            click(&mut window, Role::CheckBox, "Show max memory");
            assert!(!says(&window, "Max memory"), "{view}");
        }
        // A click selects on both sides, and so do the arrow keys.
        window.get_by_role_and_label(Role::Canvas, "Both reports").focus();
        settle(&mut window);
        press(&mut window, Modifiers::NONE, Key::ArrowRight);
        let session = window.state().session();
        let with = session.page().and_then(|page| page.compared()).unwrap();
        if view == "liveness" {
            assert!(session.selection().program.is_some(), "{view}");
        } else {
            assert_eq!(session.selection().tiles, [TileId(0)], "{view}");
            assert_eq!(with.selection.tiles, [TileId(0)], "{view}");
        }
    }
}

#[test]
fn the_handle_shifts_the_target_in_time() {
    let small = Variant::named("small");
    let mut window = compared(small, small, "execution-trace");
    let cycles = |window: &Window| {
        let page = window.state().session().page().expect("shown");
        page.compared().and_then(|with| with.cycles()).expect("both are shown")
    };
    const NAME: &str = "Time offset of the target";
    let value = |window: &Window| {
        let node = window.get_by_role_and_label(Role::Slider, NAME);
        node.accesskit_node().value().unwrap_or_default()
    };
    assert_eq!(value(&window), "no offset");
    let before = cycles(&window);
    let grip = window.get_by_role_and_label(Role::Slider, NAME).rect();
    // Dragged to the right, the target shows earlier cycles at the same position.
    let button = egui::PointerButton::Primary;
    let event =
        |pos, pressed| Event::PointerButton { pos, button, pressed, modifiers: Modifiers::NONE };
    window.hover_at(grip.center());
    window.step();
    window.event(event(grip.center(), true));
    window.step();
    for part in [20.0, 60.0, 120.0] {
        window.hover_at(grip.center() + vec2(part, 0.0));
        window.step();
    }
    window.event(event(grip.center() + vec2(120.0, 0.0), false));
    settle(&mut window);
    let after = cycles(&window);
    assert_eq!(after.0, before.0, "the source stays");
    assert!(value(&window).starts_with('-'), "{}", value(&window));
    let there = window.get_by_role_and_label(Role::Slider, NAME).rect();
    let moved = there.center().x - grip.center().x;
    assert!((moved - 120.0).abs() < 3.0, "the grip is where the pointer left it: {moved}");
    // The same with keys: step by step, or all at once.
    window.get_by_role_and_label(Role::Slider, NAME).focus();
    settle(&mut window);
    let dragged = value(&window);
    press(&mut window, Modifiers::NONE, Key::ArrowRight);
    assert_ne!(value(&window), dragged);
    press(&mut window, Modifiers::NONE, Key::ArrowLeft);
    assert_eq!(value(&window), dragged);
    press(&mut window, Modifiers::NONE, Key::Home);
    assert_eq!(value(&window), "no offset");
    assert_eq!(cycles(&window), before);
}

#[test]
fn sides_are_swapped_and_a_comparison_ends() {
    let (source, target) = (Variant::named("simulated"), Variant::named("small"));
    let mut window = compared(source, target, "memory");
    click_label(&mut window, "Swap");
    let page = window.state().session().page().expect("shown");
    assert_eq!(page.opened().path, target.opened().path);
    click_label(&mut window, "End comparison");
    let page = window.state().session().page().expect("shown");
    assert!(page.compared().is_none());
    assert_eq!((page.opened().path.clone(), page.view().name()), (target.opened().path, "memory"));
}

#[test]
fn tabs_hold_several_reports() {
    let (first, second) = (Variant::named("simulated"), Variant::named("small"));
    let mut window = opened_window(first.opened(), "memory", COMPARING);
    window.state_mut().session_mut().show(second.opened());
    show_view(&mut window, "liveness");
    assert_eq!(window.state().session().tab_titles().len(), 2);
    let shown = |window: &Window| {
        let page = window.state().session().page();
        page.map(|page| (page.opened().path.clone(), page.view().name()))
    };
    assert_eq!(shown(&window), Some((second.opened().path, "liveness")));
    press(&mut window, Modifiers::COMMAND, Key::Tab);
    assert_eq!(shown(&window), Some((first.opened().path, "memory")));
    // The same report is not opened twice.
    window.state_mut().session_mut().show(second.opened());
    settle(&mut window);
    assert_eq!(window.state().session().tab_titles().len(), 2);
    assert_eq!(shown(&window), Some((second.opened().path, "liveness")));
    for left in [1, 0] {
        press(&mut window, Modifiers::COMMAND, Key::W);
        assert_eq!(window.state().session().tab_titles().len(), left);
    }
    assert!(says(&window, "Open a report"));
}

#[test]
fn a_report_that_cannot_be_opened_leaves_the_other_unchanged() {
    let mut window = opened_window(Variant::named("small").opened(), "memory", COMPARING);
    press(&mut window, Modifiers::COMMAND, Key::D);
    let path = window.get_by_label("Path of the report to compare with");
    path.focus();
    settle(&mut window);
    type_text(&mut window, "Path of the report to compare with", "/nowhere/at/all");
    window.get_by_label("Compare").click();
    for _ in 0..40 {
        window.step();
        std::thread::sleep(std::time::Duration::from_millis(10));
    }
    let session = window.state().session();
    assert!(session.messages().iter().any(|said| said.text.contains("/nowhere/at/all")));
    assert!(session.page().is_some_and(|page| page.compared().is_none()));
}

#[test]
fn a_comparison_is_the_same_picture_every_time() {
    let (source, target) = (Variant::named("small").opened(), Variant::named("64 IPUs").opened());
    for view in ["memory", "execution-trace"] {
        let picture = |compare: Option<&std::path::Path>| {
            let alone = picture_of(view, (900, 600), Theme::Light, PictureFormat::Png);
            let wanted = PictureOptions { compare, ..alone };
            picture_file(source.clone(), &wanted).expect("draws")
        };
        let both = picture(Some(&target.path));
        assert_eq!(both, picture(Some(&target.path)), "{view}");
        assert_ne!(both, picture(None), "{view}");
    }
}

/// The changes are the first page of a comparison, with the results of the analysis.
#[test]
fn the_changes_are_one_page() {
    let (source, target) = (Variant::named("simulated"), Variant::named("small"));
    let mut window = compared(source, target, "summary");
    let (a, b) = (source.opened(), target.opened());
    let page = |unit| {
        let alignment = &ReportAlignment::read(&a.report, &b.report).expect("aligns");
        let numbers = NumberFormat::default();
        let (source, target) = (&a.report, &b.report);
        overview(&ComparedReports { source, target, alignment, numbers, unit }).expect("compares")
    };
    let found = page(WorkUnit::Sample);
    assert!(says(&window, &found.verdict), "{}", found.verdict);
    // One of them does not record its number of samples.
    assert!(says(&window, &found.normalization.note.expect("a note")));
    for table in &found.tables {
        assert!(says(&window, table.title), "{}", table.title);
        for row in &table.rows {
            assert!(says(&window, &format!("{}: source ", row.name)), "{}", row.name);
        }
    }
    // A row links to the places in both reports.
    let operations = found.tables.iter().find(|table| table.title == "Slower and faster");
    let row = operations.and_then(|table| table.rows.iter().find(|row| row.source_place.is_some()));
    let row = row.expect("a step").name.clone();
    let words = format!("{row}: source ");
    window.query_all_by_label_contains(&words).last().expect("shown").focus();
    settle(&mut window);
    press(&mut window, Modifiers::NONE, Key::Enter);
    assert_eq!(window.state().session().page().expect("shown").view().name(), "execution-trace");
}

/// Graphs side by side have equal axes, and both traces are drawn alike.
#[test]
fn views_side_by_side_have_one_scale() {
    let (source, target) = (Variant::named("simulated"), Variant::named("small"));
    for view in ["memory", "liveness"] {
        let mut window = compared(source, target, view);
        window.step();
        let tops: Vec<String> = window
            .query_all_by_label_contains("Top of the axis")
            .filter_map(|node| node.accesskit_node().value())
            .collect();
        assert_eq!(tops.len(), 2, "{view}");
        assert_eq!(tops[0], tops[1], "{view}");
    }
}

/// Sets a choice to an entry on both sides.
fn choose_on_both_sides(window: &mut Window, choice: &str, entry: &str) {
    for side in 0..2 {
        let choices = window.query_all_by_role_and_label(Role::ComboBox, choice);
        choices.collect::<Vec<_>>()[side].click();
        settle(window);
        window.query_all_by_label(entry).last().expect("an entry").click();
        settle(window);
    }
}

/// Equal amounts have equal colours on both sides.
#[test]
fn colours_side_by_side_have_one_scale() {
    let (source, target) = (Variant::named("simulated"), Variant::named("small"));
    let choices = [
        ("exchange-code", Some(("Show", "Traffic matrix"))),
        ("tile-mapping", None),
        ("memory", Some(("Graph", "Tile map"))),
    ];
    for (view, choice) in choices {
        let mut window = compared(source, target, view);
        if let Some((choice, entry)) = choice {
            choose_on_both_sides(&mut window, choice, entry);
        }
        let scales: Vec<String> = window
            .query_all_by_label_contains("Colours from")
            .filter_map(|node| node.accesskit_node().label())
            .collect();
        assert_eq!(scales.len(), 2, "{view}");
        assert_eq!(scales[0], scales[1], "{view}");
    }
}

/// Traces are above each other, each with the lanes of all its IPUs.
#[test]
fn traces_are_stacked() {
    let small = Variant::named("small");
    let window = compared(small, small, "execution-trace");
    let lanes: Vec<egui::Rect> =
        window.query_all_by_role_and_label(Role::Canvas, "Lanes").map(|node| node.rect()).collect();
    assert_eq!(lanes.len(), 2);
    assert!(lanes[0].bottom() < lanes[1].top(), "{lanes:?}");
    assert!((lanes[0].left() - lanes[1].left()).abs() < 0.5, "{lanes:?}");
    assert!((lanes[0].width() - lanes[1].width()).abs() < 0.5, "{lanes:?}");
    assert!(lanes.iter().all(|lanes| lanes.height() > 60.0), "{lanes:?}");
}
