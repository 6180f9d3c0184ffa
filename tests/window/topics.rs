//! Tests that every topic is shown completely: facts, figures and tables, equal to those in files.

use crate::gui_support::{Variant, Window, painted, press_role, says, settle, window};
use egui::Vec2;
use egui::accesskit::Role;
use egui_kittest::kittest::{NodeT, Queryable};
use tilescope_analysis::topics::TOPICS;
use tilescope_report::Report;
use tilescope_report::units::grouped;

/// Opens a choice and selects one of its entries.
fn choose(window: &mut Window, choice: &str, entry: &str) {
    assert!(press_role(window, Role::ComboBox, choice), "the choice {choice}");
    settle(window);
    let entries = window.query_all_by_label(entry);
    entries.last().unwrap_or_else(|| panic!("{entry} in {choice}")).click();
    settle(window);
}

#[test]
fn every_topic_shows_the_contents_of_its_files() {
    let variant = Variant::named("simulated");
    let mut window = window(variant, "topics", Vec2::new(1600.0, 1400.0));
    let report: &Report = &variant.opened().report;
    for topic in TOPICS {
        choose(&mut window, "Topic", topic.title);
        assert!(says(&window, topic.about), "{}", topic.id);
        for fact in (topic.facts)(report).unwrap() {
            let words = format!("{}: {}", fact.title, fact.value);
            assert!(says(&window, &words), "{}: {words}", topic.id);
        }
        for figure in topic.figures {
            let figure = (figure.read)(report).unwrap();
            let canvas = window.query_all_by_role_and_label(Role::Canvas, &figure.title).next();
            assert_eq!(canvas.is_some(), !figure.is_empty(), "{}: {}", topic.id, figure.title);
            let Some(canvas) = canvas else { continue };
            let value = canvas.accesskit_node().value();
            assert_eq!(value.as_deref(), Some(figure.words().as_str()), "{}", figure.title);
            let bars = &figure.marks.bars;
            assert!(bars.iter().all(|bar| !bar.value.is_empty()), "{}", figure.title);
        }
        for table in topic.all_tables() {
            let place = format!("{}/{}", table.view, table.name);
            choose(&mut window, "Table", table.name);
            let rows = (table.read)(report).unwrap();
            if rows.rows.is_empty() {
                assert!(says(&window, "No rows"), "{place}");
                continue;
            }
            let count = format!("{} rows", grouped(rows.rows.len() as u64));
            assert!(says(&window, &count), "{place}: {count}: {:?}", painted(&window));
            // Short tables are entirely on the screen: every name of the file is visible.
            let csv = rows.csv();
            if rows.rows.len() > 8 {
                continue;
            }
            let texts = painted(&window);
            for line in csv.lines().skip(1) {
                let name = line.split(',').next().unwrap_or_default().trim_matches('"');
                let is_seen = texts.iter().any(|text| text.starts_with(name));
                assert!(is_seen || name.is_empty() || name.len() > 40, "{place}: {name:?}");
            }
        }
    }
}
