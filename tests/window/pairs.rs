//! Tests of pairs of reports that people compare, in every view: the view shows the results of the
//! analysis in every layout, and a link restores all of it.

use crate::common;
use crate::gui_support::{
    COMPARING, Variant, Window, click, compared, each_combination, link, look_around,
    opened_window, press, says, settle, show_the_same,
};
use egui::accesskit::Role;
use egui_kittest::kittest::Queryable;
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;
use tilescope_analysis::compare::{ComparisonTable, WorkUnit, comparison, differences};
use tilescope_gui::view_names;
use tilescope_test_tiers::slow_tests;

/// A kind of report that is not in the list for all views.
const fn kind(name: &'static str, write: fn(&Path)) -> Variant {
    Variant { name, write, trace: &[], memory: &[], liveness: &[] }
}

fn simulate(spec: &str, overrides: &[&str], path: &Path) {
    common::report_file(&common::spec(spec, overrides), path);
}

const KINDS: &[Variant] = &[
    kind("accumulation of 20", |path| {
        let set = ["options.device_iterations=1", "options.gradient_accumulation=20"];
        simulate("mnist_pipeline", &set, path);
    }),
    kind("two replicas", |path| {
        let set = ["options.device_iterations=1", "target.ipus=8", "options.replication_factor=2"];
        simulate("mnist_pipeline", &set, path);
    }),
    kind("matmul chain", |path| simulate("matmul_chain", &[], path)),
    kind("does not fit", |path| simulate("too_large", &[], path)),
];

/// The names of the compared kinds.
const PAIRS: &[(&str, &str)] = &[
    ("simulated", "simulated"),
    ("simulated", "accumulation of 20"),
    ("simulated", "two replicas"),
    ("simulated", "matmul chain"),
    ("compiled only", "small"),
    ("does not fit", "matmul chain"),
    ("foreign", "simulated"),
];

fn named(name: &str) -> &'static Variant {
    let own = KINDS.iter().find(|kind| kind.name == name);
    own.unwrap_or_else(|| Variant::named(name))
}

fn each_pair_in_each_view(check: impl Fn(&Variant, &Variant, &'static str) + Sync) {
    let views = view_names();
    each_combination(&[PAIRS.len(), views.len()], |row| {
        let (source, target) = PAIRS[row[0]];
        check(named(source), named(target), views[row[1]]);
    });
}

/// Selects a layout. Returns true if the view has it.
fn lay_out(window: &mut Window, layout: &str) -> bool {
    click(window, Role::ComboBox, "Layout");
    let entry = window.query_all_by_label(layout).last();
    let found = entry.is_some();
    match entry {
        Some(entry) => entry.click(),
        None => window.key_press(egui::Key::Escape),
    }
    settle(window);
    found
}

/// The table shown by default: the first one with differences.
fn first(tables: &[ComparisonTable]) -> Option<&ComparisonTable> {
    let differs = |table: &&ComparisonTable| table.rows.iter().any(|row| !row.is_same());
    tables.iter().find(differs).or(tables.first())
}

#[test]
fn every_pair_is_compared_in_every_view_and_layout() {
    each_pair_in_each_view(|source, target, view| {
        let words = format!("{} / {}: {view}", source.name, target.name);
        let mut window = compared(source, target, view);
        let (a, b) = (source.opened(), target.opened());
        let one = comparison(view).expect("every view is compared");
        let tables = differences(&a.report, &b.report, one, WorkUnit::default()).expect("compares");
        for layout in ["Side by side", "One graph", "Tables only"] {
            if !lay_out(&mut window, layout) {
                assert_eq!(layout, "One graph", "{words}");
                continue;
            }
            assert!(says(&window, &format!("Source: {}", a.name())), "{words}, {layout}");
            assert!(says(&window, &format!("Target: {}", b.name())), "{words}, {layout}");
            assert!(!says(&window, "cannot be compared"), "{words}, {layout}");
            assert_eq!(window.state().session().messages(), [], "{words}");
            for row in first(&tables).iter().flat_map(|table| table.rows.first()) {
                assert!(says(&window, &row.name), "{words}, {layout}: {}", row.name);
            }
        }
    });
}

#[test]
fn a_link_restores_the_comparison_it_was_copied_from() {
    let turns = AtomicUsize::new(0);
    each_pair_in_each_view(|source, target, view| {
        // The fast tier follows every second link.
        if !slow_tests() && turns.fetch_add(1, Ordering::Relaxed) % 2 == 1 {
            return;
        }
        let words = format!("{} / {}: {view}", source.name, target.name);
        let mut seen = compared(source, target, view);
        look_around(&mut seen, view);
        if view == "memory" || view == "liveness" {
            lay_out(&mut seen, "One graph");
        }
        let copied = link(&seen);
        let mut fresh = opened_window(Variant::named("small").opened(), "summary", COMPARING);
        let (context, path) = (fresh.ctx.clone(), source.opened().path);
        fresh.state_mut().open_at(&context, Some(&path), None, Some(&copied));
        while fresh.state().session().opening_path().is_some() {
            fresh.step();
            std::thread::sleep(Duration::from_millis(5));
        }
        settle(&mut fresh);
        assert_eq!(link(&fresh), copied, "{words}");
        assert_eq!(fresh.state().session().messages(), [], "{words}");
        // One more tab is open, which would push the view down.
        fresh
            .key_press_modifiers(egui::Modifiers::COMMAND | egui::Modifiers::SHIFT, egui::Key::Tab);
        settle(&mut fresh);
        press(&mut fresh, egui::Modifiers::COMMAND, egui::Key::W);
        show_the_same(&mut seen, &mut fresh, COMPARING, &words);
    });
}
