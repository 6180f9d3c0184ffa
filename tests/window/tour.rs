//! Tests of the walks in docs/tour.md: each question is answered in under ten clicks, with the
//! figure of the analyses.

use crate::common;
use crate::gui_support;
use crate::gui_support::{Window, is_compared, settle, simulator};
use egui::accesskit::Role;
use egui::{Key, Vec2};
use egui_kittest::kittest::{NodeT, Queryable};
use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use tilescope_analysis::compare::{ComparedReports, ReportAlignment, WorkUnit, overview};
use tilescope_analysis::critical_path::{path_totals, why_run};
use tilescope_analysis::insights::insights;
use tilescope_analysis::limits::{WaterfallStep, limits};
use tilescope_analysis::liveness::{LivenessScope, curve, live_at};
use tilescope_analysis::operations::{
    OperationLayer, operations, operations_with_totals, share_of_run,
};
use tilescope_analysis::summary::summary;
use tilescope_analysis::{exchange_code, memory};
use tilescope_gui::OpenReport;
use tilescope_gui::app::TilescopeApp;
use tilescope_report::Report;
use tilescope_report::units::{
    Bytes, Cycles, NumberFormat, TileId, exact_bytes, fine_percent, grouped, percent,
};
use tilescope_test_tiers::skipped_in_the_fast_tier;

/// The largest number of clicks for an answer.
const MOST: usize = 9;

/// A user who looks for an answer.
pub(crate) struct Walk {
    pub(crate) window: Window,
    pub(crate) report: Report,
    pub(crate) clicks: usize,
}

impl Walk {
    /// Opens the summary of a report.
    pub(crate) fn new(directory: &Path) -> Self {
        let report = Report::open(directory).unwrap();
        let opened = OpenReport::read(directory).unwrap();
        let window = gui_support::opened_window(opened, "summary", Vec2::new(1280.0, 800.0));
        Self { window, report, clicks: 0 }
    }

    pub(crate) fn click(&mut self, role: Role, name: &str) {
        let node = self.window.query_all_by_role(role).find(|node| {
            let node = node.accesskit_node();
            let label = node.label().unwrap_or_default();
            label == name || (role == Role::Link && label.contains(name))
        });
        node.unwrap_or_else(|| panic!("nothing to click is called {name}")).click();
        self.clicks += 1;
        settle(&mut self.window);
    }

    /// Opens a choice and selects one of its entries.
    fn choose(&mut self, choice: &str, entry: &str) {
        self.click(Role::ComboBox, choice);
        self.window.query_all_by_label(entry).last().unwrap().click();
        self.clicks += 1;
        settle(&mut self.window);
    }

    pub(crate) fn type_into(&mut self, label: &str, text: &str) {
        let node = self.window.query_all_by_label(label).next();
        node.unwrap_or_else(|| panic!("nothing to type into is called {label}")).focus();
        self.clicks += 1;
        self.window.step();
        self.window.get_by_label(label).type_text(text);
        settle(&mut self.window);
    }

    /// Types another number into a box.
    fn set_number(&mut self, name: &str, number: &str) {
        self.window.get_by_role_and_label(Role::SpinButton, name).focus();
        self.clicks += 1;
        self.window.run_steps(2);
        self.window.key_press_modifiers(egui::Modifiers::COMMAND, Key::A);
        self.window.step();
        self.window.event(egui::Event::Text(number.to_owned()));
        self.window.step();
        self.window.key_press(Key::Enter);
        settle(&mut self.window);
    }

    /// Waits for a report that is being opened.
    fn arrive(&mut self, entry: &str) {
        self.until("the report is open", |window| {
            window.query_by_role_and_label(Role::Button, entry).is_some()
        });
    }

    /// Waits for background work.
    pub(crate) fn until(&mut self, words: &str, holds: impl Fn(&Window) -> bool) {
        gui_support::until(&mut self.window, words, holds);
    }

    /// Goes from any view to the comparison with the result of the first proposal.
    fn try_proposals_and_apply_the_first(&mut self) {
        self.click(Role::Button, "Insights");
        let buttons = self.window.query_all_by_role(Role::Button);
        let labels = buttons.filter_map(|node| node.accesskit_node().label());
        let mut wanted = labels.filter(|label| label.starts_with("Try ") && label.contains("prop"));
        let label = wanted.next().expect("a button for proposals");
        drop(wanted);
        self.click(Role::Button, &label);
        self.until("tried", |window| gui_support::says(window, "Tested: "));
        let links = self.window.query_all_by_label("Try in What if").next();
        links.expect("a link").click_accesskit();
        self.clicks += 1;
        settle(&mut self.window);
        self.until("checked", |window| {
            window.state().session().what_if().is_some_and(|what_if| what_if.is_spec_valid())
        });
        // A long spec pushes it out of sight.
        let button = self.window.get_by_role_and_label(Role::Button, "Simulate and compare");
        button.click_accesskit();
        self.clicks += 1;
        settle(&mut self.window);
        self.until("compared", is_compared);
    }

    #[track_caller]
    pub(crate) fn finds(&self, words: &str) {
        assert!(gui_support::says(&self.window, words), "not found: {words}");
        assert!(self.clicks <= MOST, "{} clicks", self.clicks);
    }

    /// The sentence of a rule about the report.
    pub(crate) fn sentence(&self, rule: &str) -> String {
        let findings = insights(&self.report, NumberFormat::default()).unwrap();
        findings.into_iter().find(|finding| finding.rule == rule).expect("a finding").sentence
    }
}

pub(crate) fn simulated(name: &str, overrides: &[&str]) -> tempfile::TempDir {
    let directory = tempfile::tempdir().unwrap();
    common::report_file(&common::spec(name, overrides), directory.path());
    directory
}

pub(crate) fn pipeline(overrides: &[&str]) -> tempfile::TempDir {
    let all = [&["options.device_iterations=1"], overrides].concat();
    simulated("mnist_pipeline", &all)
}

#[test]
fn which_stage_is_slowest_and_by_how_much() {
    let directory = pipeline(&[]);
    let mut walk = Walk::new(directory.path());
    walk.click(Role::Button, "Insights");
    let sentence = walk.sentence("stage_balance");
    assert!(sentence.contains("times the mean"), "{sentence}");
    walk.finds(&sentence);
}

#[test]
fn what_fills_the_fullest_tile() {
    let directory = pipeline(&[]);
    let mut walk = Walk::new(directory.path());
    walk.click(Role::Button, "Insights");
    let buttons = walk.window.query_all_by_role(Role::Button);
    let names = buttons.filter_map(|node| node.accesskit_node().label());
    let fullest =
        names.into_iter().find(|name| name.starts_with("Tile ") && name.contains("(IPU")).unwrap();
    // The tiles are below the findings: the button may have to be scrolled to.
    walk.window.get_by_role_and_label(Role::Button, &fullest).click_accesskit();
    walk.clicks += 1;
    settle(&mut walk.window);
    let tile = walk.window.state().session().selection().tiles[0];
    walk.finds(&format!("Tile {}", grouped(tile.into())));
    walk.click(Role::Tab, "Variables");
    let listing = memory::variables(&walk.report, &[tile]).unwrap();
    let largest = listing.rows.iter().max_by_key(|row| row.bytes[0]).unwrap();
    walk.finds(&largest.name);
    walk.finds(&exact_bytes(largest.bytes[0].0));
}

#[test]
fn what_share_of_the_time_goes_to_remote_buffers() {
    let directory = simulated("offload", &[]);
    let mut walk = Walk::new(directory.path());
    walk.click(Role::Button, "Insights");
    walk.finds(&walk.sentence("remote_buffers"));
    walk.click(Role::Button, "Execution trace");
    walk.finds("Remote buffers");
}

#[test]
fn what_the_run_waits_for_and_the_option_behind_it() {
    let directory = simulated("data_loading", &["options.device_iterations=5"]);
    let mut walk = Walk::new(directory.path());
    walk.click(Role::Button, "Execution trace");
    walk.click(Role::Button, "Whole run");
    walk.click(Role::Tab, "Critical path");
    let totals = path_totals(&walk.report, None).unwrap().unwrap();
    let most = &totals.rows[0];
    walk.finds(&most.name);
    walk.finds(&percent(most.share));
    walk.click(Role::Row, &most.name);
    walk.finds("Why");
    let chain = why_run(&walk.report, 1, NumberFormat::default()).unwrap().remove(0);
    walk.finds(&chain.links.last().unwrap().text);
    walk.click(Role::Link, chain.options[0]);
    walk.finds("What if");
    walk.finds(chain.options[0]);
}

#[test]
fn which_operation_pays_for_prearrange() {
    let directory = simulated("matmul_chain", &[]);
    let mut walk = Walk::new(directory.path());
    walk.click(Role::Button, "Insights");
    walk.finds(&walk.sentence("rearrangement"));
    walk.click(Role::Button, "Operations");
    walk.choose("Layer", "Programs");
    walk.type_into("Filter operations", "PreArrange");
    let programs = operations(&walk.report, OperationLayer::Program).unwrap();
    let arranging = programs.iter().filter(|row| row.name.contains("PreArrange"));
    let most = arranging.max_by_key(|row| row.elapsed).unwrap();
    assert!(most.elapsed > Cycles::ZERO);
    walk.finds(&most.name);
    walk.finds(&grouped(most.elapsed.0));
}

#[test]
fn how_good_a_run_is_and_where_the_rest_goes() {
    let directory = simulated("mnist_pipeline", &[]);
    let mut walk = Walk::new(directory.path());
    let found = limits(&walk.report).unwrap();
    let run = found.run.as_ref().unwrap();
    let utilisation = fine_percent(run.utilisation().unwrap());
    walk.finds("Utilisation of peak");
    walk.finds(&utilisation);
    walk.click(Role::Button, "Limits");
    walk.finds(&format!("{utilisation} of the peak of all IPUs"));
    let (most, _) = run.all.iter().max_by_key(|(_, cycles)| *cycles).unwrap();
    assert_eq!(most, WaterfallStep::SyncAndStart);
    let worst = found.rows.iter().find(|row| row.operation.is_some()).unwrap();
    let point = walk.window.get_by_role_and_label(Role::GraphicsObject, &worst.name);
    let place = point.rect().center();
    gui_support::click_at(&mut walk.window, place, 1);
    walk.clicks += 1;
    walk.finds(&grouped(worst.limits.ideal.unwrap().cycles.0));
}

#[test]
fn a_slow_program_becomes_a_fast_one_in_ten_clicks() {
    if skipped_in_the_fast_tier() {
        return;
    }
    simulator();
    let directory = simulated("mnist_pipeline", &[]);
    let mut walk = Walk::new(directory.path());
    walk.window.state_mut().session_mut().keep_simulated_in(directory.path().to_owned());
    walk.finds("Utilisation of peak");
    let time = |report: &Report| {
        let run = summary(report).unwrap().execution.unwrap();
        run.total_cycles.as_f64() / run.samples.unwrap() as f64
    };
    let before = time(&walk.report);
    walk.try_proposals_and_apply_the_first();
    // It may be scrolled out of sight.
    walk.window.get_by_role_and_label(Role::Button, "Open variant 1").click_accesskit();
    walk.clicks += 1;
    walk.until("opened", |window| {
        window.state().session().page().is_some_and(|page| page.compared().is_none())
    });
    walk.try_proposals_and_apply_the_first();
    let session = walk.window.state().session();
    let tuned = session.page().unwrap().compared().unwrap();
    let after = time(&tuned.target.report);
    assert!(after < 0.25 * before, "{before} and {after} cycles per sample");
    assert!(walk.clicks < 10, "{} clicks", walk.clicks);
}

#[test]
fn what_four_replicas_would_add_is_simulated_and_compared() {
    simulator();
    let (one, four) = (pipeline(&[]), pipeline(&["options.replication_factor=4"]));
    let mut walk = Walk::new(one.path());
    walk.click(Role::Button, "Exchange code");
    walk.click(Role::Button, "Try 4 replicas…");
    walk.click(Role::Button, "Simulate and compare");
    walk.until("compared", is_compared);
    let links = exchange_code::overview(&Report::open(four.path()).unwrap()).unwrap().links;
    for link in &links {
        walk.finds(&exact_bytes(link.stored.0));
    }
}

#[test]
fn what_four_replicas_add_to_the_exchange_code() {
    let (one, four) = (pipeline(&[]), pipeline(&["options.replication_factor=4"]));
    let stored = |report: &Report| {
        let links = exchange_code::overview(report).unwrap().links;
        links.iter().map(|link| link.stored).sum::<Bytes>()
    };
    let mut walk = Walk::new(one.path());
    walk.click(Role::Button, "Exchange code");
    let before = stored(&walk.report);
    walk.finds(&exact_bytes(before.0));
    walk.click(Role::Button, "Close report");
    walk.type_into("Path of a report or model", &four.path().to_string_lossy());
    walk.window.key_press(Key::Enter);
    walk.arrive("Exchange code");
    walk.click(Role::Button, "Exchange code");
    let after = stored(&Report::open(four.path()).unwrap());
    assert!(after > before);
    walk.finds(&exact_bytes(after.0));
}

#[test]
fn how_fast_an_own_network_is_on_two_ipus() {
    simulator();
    let model = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/onnx/guide_mnist.onnx");
    let app = TilescopeApp::detached(&egui::Context::default(), None);
    let window = gui_support::window_of(app, Vec2::new(1280.0, 800.0), 1.0);
    let report = Report::open(Path::new("sample_reports/matmul_chain")).unwrap();
    let mut walk = Walk { window, report, clicks: 0 };
    let context = walk.window.ctx.clone();
    walk.window.state_mut().open_at(&context, Some(&model), None, None);
    settle(&mut walk.window);
    walk.finds("90,026 parameters");
    walk.set_number("IPUs of a replica", "2");
    walk.finds("Fits: the fullest tile needs");
    walk.click(Role::Button, "Simulate");
    walk.arrive("Execution trace");
    assert_eq!(walk.clicks, 2);
    let page = walk.window.state().session().page().unwrap();
    let run = summary(&page.opened().report).unwrap().execution.unwrap();
    let rate = run.samples_per_second.unwrap().round() as u64;
    walk.finds(&grouped(rate));
}

/// The largest number of clicks for an answer about BERT-Large.
const MOST_OF_BERT: usize = 5;

/// The bundled BERT-Large: four stages, 28.9 million steps. It is simulated once for all questions.
fn bert() -> &'static Path {
    static REPORT: OnceLock<PathBuf> = OnceLock::new();
    REPORT.get_or_init(|| simulated_once("bert", &[]))
}

/// The same report with twice the micro-batches before each weight update.
fn bert_of_twice_the_accumulation() -> &'static Path {
    static REPORT: OnceLock<PathBuf> = OnceLock::new();
    let overrides = ["options.gradient_accumulation=4096"];
    REPORT.get_or_init(|| simulated_once("bert of twice the accumulation", &overrides))
}

fn simulated_once(name: &str, overrides: &[&str]) -> PathBuf {
    let path = gui_support::place(name);
    common::report_file(&common::spec("bert_large_pod16", overrides), &path);
    path
}

#[test]
fn which_ipu_is_the_bottleneck_of_bert_and_why_the_first_one_waits() {
    if skipped_in_the_fast_tier() {
        return;
    }
    let mut walk = Walk::new(bert());
    walk.click(Role::Button, "Insights");
    let sentence = walk.sentence("stage_balance");
    assert!(sentence.contains("on IPU 3"), "{sentence}");
    walk.finds(&sentence);
    let sentence = walk.sentence("waiting");
    assert!(sentence.starts_with("IPU 0 spends"), "{sentence}");
    assert!(sentence.contains("IPU 3 spends least"), "{sentence}");
    walk.finds(&sentence);
    assert!(walk.clicks <= MOST_OF_BERT);
}

#[test]
fn what_the_optimiser_update_of_bert_costs() {
    if skipped_in_the_fast_tier() {
        return;
    }
    let mut walk = Walk::new(bert());
    walk.click(Role::Button, "Operations");
    walk.click(Role::Button, "Show tables");
    let (_, totals) = operations_with_totals(&walk.report, OperationLayer::Model).unwrap();
    let [_, _, update] = totals.mean_of_passes;
    assert!(update > Cycles::ZERO && totals.mean_elapsed > update, "{totals:?}");
    let share = share_of_run(update, totals.run, totals.lanes);
    assert!(!share.contains("(0.0 %)"), "{share}");
    walk.finds(&share);
    assert!(walk.clicks <= MOST_OF_BERT);
}

#[test]
fn which_operation_of_bert_wastes_most_in_exchange() {
    if skipped_in_the_fast_tier() {
        return;
    }
    let mut walk = Walk::new(bert());
    walk.click(Role::Button, "Operations");
    walk.choose("Group by", "No groups");
    walk.click(Role::ColumnHeader, "Exchange (run)");
    let rows = operations(&walk.report, OperationLayer::Model).unwrap();
    let most = rows.iter().max_by_key(|row| row.exchanging).unwrap();
    assert!(most.exchanging > Cycles::ZERO && most.exchanging < most.elapsed);
    let seen = walk.window.query_all_by_role(Role::Row);
    let first = seen.min_by(|a, b| a.rect().top().total_cmp(&b.rect().top())).unwrap();
    let first = first.accesskit_node().label();
    // Equal layers waste the same amount.
    let first = rows.iter().find(|row| Some(&row.name) == first.as_ref()).unwrap();
    assert_eq!(first.exchanging, most.exchanging);
    walk.finds(&grouped(most.exchanging.0));
    assert!(walk.clicks <= MOST_OF_BERT);
}

#[test]
fn all_columns_of_the_operations_of_bert_are_seen_without_scrolling() {
    if skipped_in_the_fast_tier() {
        return;
    }
    let size = Vec2::new(1280.0, 720.0);
    let window = gui_support::opened_window(OpenReport::read(bert()).unwrap(), "operations", size);
    let heads = window.query_all_by_role(Role::ColumnHeader).map(|node| node.rect().right());
    let right = heads.fold(0.0, f32::max);
    assert!(right > 0.0 && right <= size.x, "{right}");
}

#[test]
fn what_fills_tile_700_of_bert_at_its_fullest_step() {
    if skipped_in_the_fast_tier() {
        return;
    }
    let mut walk = Walk::new(bert());
    walk.click(Role::Button, "Liveness");
    walk.set_number("Tile", "700");
    walk.click(Role::Button, "Peak");
    let scope = LivenessScope::Tile(TileId(700));
    let peak = curve(&walk.report, scope).unwrap().and_then(|curve| curve.peak()).unwrap();
    let live = live_at(&walk.report, scope, &[peak as u32]).unwrap();
    let largest = live.iter().max_by_key(|variable| variable.bytes[0]).unwrap();
    walk.finds(&largest.name);
    walk.finds(&exact_bytes(largest.bytes[0].0));
    assert!(walk.clicks <= MOST_OF_BERT);
}

#[test]
fn what_changed_against_twice_the_accumulation_of_bert() {
    if skipped_in_the_fast_tier() {
        return;
    }
    let twice = bert_of_twice_the_accumulation();
    let mut walk = Walk::new(bert());
    walk.window.key_press_modifiers(egui::Modifiers::COMMAND, Key::D);
    settle(&mut walk.window);
    walk.type_into("Path of the report to compare with", &twice.to_string_lossy());
    walk.click(Role::Button, "Compare");
    walk.arrive("End comparison");
    let target = Report::open(twice).unwrap();
    let alignment = &ReportAlignment::read(&walk.report, &target).unwrap();
    let (numbers, unit) = (NumberFormat::default(), WorkUnit::Sample);
    let sides = ComparedReports { source: &walk.report, target: &target, alignment, numbers, unit };
    let page = overview(&sides).unwrap();
    assert!(page.verdict.contains("fewer cycles per sample"), "{}", page.verdict);
    walk.finds(&page.verdict);
    walk.finds("options.gradient_accumulation");
    for table in &page.tables {
        walk.finds(table.title);
        for row in table.rows.iter().take(3) {
            walk.finds(&row.name);
        }
    }
    assert!(walk.clicks <= MOST_OF_BERT);
}
