//! Groups of rows: a long table begins with them, and questions about layers, kinds of layers and
//! operators are answered in three clicks.

use crate::common;
use crate::gui_support::{self, Window, click, opened_window, painted, says, settle};
use egui::Vec2;
use egui::accesskit::Role;
use egui_kittest::kittest::{NodeT, Queryable};
use std::path::PathBuf;
use std::sync::OnceLock;
use tilescope_analysis::data_table::DataTable;
use tilescope_analysis::grouping::{GroupKey, RowGroup};
use tilescope_analysis::tables::at_path;
use tilescope_gui::OpenReport;
use tilescope_report::Report;
use tilescope_report::units::grouped;

const SIZE: Vec2 = Vec2::new(1500.0, 900.0);
/// Column of the cycles of operations, after those that are hidden at first.
const CYCLES: &str = "Cycles (run)";

/// BERT-Base with few micro-batches: twelve layers, more than a thousand operations.
fn bert() -> &'static PathBuf {
    static REPORT: OnceLock<PathBuf> = OnceLock::new();
    REPORT.get_or_init(|| {
        let path = gui_support::place("bert_base of few micro-batches");
        let overrides = ["options.gradient_accumulation=16"];
        common::report_file(&common::spec("bert_base_pod16", &overrides), &path);
        path
    })
}

/// A view of the report, in front of which somebody asks a question.
fn asked(view: &str) -> Window {
    opened_window(OpenReport::read(bert()).unwrap(), view, SIZE)
}

fn table(path: &str) -> DataTable {
    let report = Report::open(bert()).unwrap();
    at_path(path).unwrap().keyed(&report).unwrap()
}

fn groups(table: &DataTable, key: GroupKey) -> Vec<RowGroup> {
    let all: Vec<u32> = (0..table.rows.len() as u32).collect();
    table.groups(key, &all)
}

/// The largest groups by a column, with what it adds up to.
fn sums(table: &DataTable, key: GroupKey, column: &str) -> Vec<(String, u64)> {
    let at = table.columns.iter().position(|of| of.title == column).unwrap();
    let mut sums: Vec<(String, u64)> = groups(table, key)
        .iter()
        .map(|group| {
            let cycles = group.cells[at].number().unwrap_or_default() as u64;
            (format!("{} × {}", group.label, grouped(group.rows.len() as u64)), cycles)
        })
        .collect();
    sums.sort_by_key(|(_, sum)| std::cmp::Reverse(*sum));
    sums
}

/// Two clicks.
fn group_by(window: &mut Window, key: GroupKey) {
    window.get_by_role_and_label(Role::ComboBox, "Group by").click();
    settle(window);
    // A column may have the same name.
    let is_entry =
        |node: &egui_kittest::Node<'_>| node.accesskit_node().role() != Role::ColumnHeader;
    window.query_all_by_label(key.title()).rfind(is_entry).unwrap().click();
    settle(window);
}

/// Labels of the rows on the screen, from top to bottom.
fn rows(window: &Window) -> Vec<String> {
    let mut rows: Vec<(f32, String)> = window
        .query_all_by_role(Role::Row)
        .map(|row| (row.rect().top(), row.accesskit_node().label().unwrap_or_default()))
        .collect();
    rows.sort_by(|a, b| a.0.total_cmp(&b.0));
    rows.into_iter().map(|(_, label)| label).collect()
}

#[test]
fn a_long_table_begins_with_kinds_of_layers() {
    for (view, path) in [("operations", "operations/operations"), ("limits", "limits/operations")] {
        let table = table(path);
        assert!(table.rows.len() > 200, "{path}: {}", table.rows.len());
        let sorted = table.columns[table.first_sum().unwrap()].title.clone();
        let expected = sums(&table, GroupKey::Layer, &sorted);
        let shown = rows(&asked(view));
        assert_eq!(shown.first(), expected.first().map(|(label, _)| label), "{path}");
        assert!(shown[0].contains("layer*/"), "{path}: {}", shown[0]);
    }
}

#[test]
fn which_layer_of_the_bottleneck_stage_is_three_clicks_away() {
    let table = table("operations/operations");
    let (bottleneck, _) = sums(&table, GroupKey::Stage, CYCLES).swap_remove(0);
    let stage = groups(&table, GroupKey::Stage)
        .into_iter()
        .find(|group| bottleneck.starts_with(&format!("{} × ", group.label)))
        .unwrap();
    let layers = table.groups(GroupKey::Block, &stage.rows);
    let mut window = asked("operations");
    group_by(&mut window, GroupKey::Stage);
    assert_eq!(rows(&window)[0], bottleneck);
    window.get_by_role_and_label(Role::Row, &bottleneck).click();
    settle(&mut window);
    let largest = format!("{} × {}", layers[0].label, layers[0].rows.len());
    assert!(largest.starts_with("layer"), "{largest}");
    assert_eq!(rows(&window)[1], largest);
    // A click on it again folds it.
    window.get_by_role_and_label(Role::Row, &bottleneck).click();
    settle(&mut window);
    assert!(!rows(&window).contains(&largest));
}

#[test]
fn attention_against_feed_forward_is_two_clicks_away() {
    let table = table("operations/operations");
    let expected = sums(&table, GroupKey::Part, CYCLES);
    let mut window = asked("operations");
    group_by(&mut window, GroupKey::Part);
    let shown = rows(&window);
    for part in ["layer*/attention ", "layer*/ff1 ", "layer*/ff2 "] {
        let (label, cycles) = expected.iter().find(|(label, _)| label.starts_with(part)).unwrap();
        assert!(shown.contains(label), "{label} is not among {shown:?}");
        assert!(says(&window, &grouped(*cycles)), "{label}: {cycles}");
    }
}

#[test]
fn all_products_of_weight_gradients_are_two_clicks_away() {
    let table = table("operations/operations");
    let expected = sums(&table, GroupKey::Operator, CYCLES);
    let is_it = |(label, _): &&(String, u64)| label.starts_with("matmul_grad_weight × ");
    let (label, cycles) = expected.iter().find(is_it).unwrap();
    let mut window = asked("operations");
    group_by(&mut window, GroupKey::Operator);
    assert!(rows(&window).contains(label));
    assert!(says(&window, &grouped(*cycles)));
}

#[test]
fn lists_of_variables_are_grouped_by_kinds_of_layers() {
    let views = [
        ("memory", "memory/variables", &[(Role::Tab, "Variables")][..]),
        (
            "liveness",
            "liveness/peak",
            &[(Role::Button, "Peak"), (Role::Tab, "Not always live variables")][..],
        ),
        ("tile-mapping", "tile-mapping/tensors", &[][..]),
    ];
    for (view, path, clicks) in views {
        let table = table(path);
        let sum = table.first_sum().unwrap();
        let expected = sums(&table, GroupKey::Part, &table.columns[sum].title);
        let mut window = asked(view);
        for (role, name) in clicks {
            click(&mut window, *role, name);
        }
        group_by(&mut window, GroupKey::Part);
        assert_eq!(rows(&window).first(), expected.first().map(|(label, _)| label), "{path}");
    }
}

/// Labels of groups differ at their ends: a table that scrolls has room for them.
#[test]
fn labels_of_groups_are_whole_in_a_table_that_scrolls() {
    let table = table("limits/operations");
    let names = groups(&table, GroupKey::Layer).into_iter().map(|group| group.label);
    let names: Vec<String> = names.filter(|name| name.len() > 18 && name.len() < 34).collect();
    let window =
        opened_window(OpenReport::read(bert()).unwrap(), "limits", Vec2::new(1100.0, 1100.0));
    let texts = painted(&window);
    let cut: Vec<&String> =
        texts.iter().filter(|text| text.starts_with("layer") && text.ends_with('…')).collect();
    assert!(names.iter().any(|name| texts.contains(name)), "{names:?}");
    assert!(cut.is_empty(), "{cut:?}");
}
