//! Tests of pictures drawn without a display: the right colours in the right places, the same every
//! time.

use crate::gui_support::picture_of;
use tilescope_fixtures::ReportBuilder;
use tilescope_gui::theme::{DARK, LIGHT};
use tilescope_gui::{OpenReport, PictureFormat, Theme, export, picture, view_names};
use tilescope_report::ProgramKind;

/// A run whose first half is exchange and whose second half is vertices.
fn two_halves(directory: &std::path::Path) -> OpenReport {
    let mut report = ReportBuilder::new(1, 8);
    let exchange = report.exchange("a", 8);
    let work = report.compute("b", 500);
    report.root(ProgramKind::Sequence, "main", &[exchange, work]);
    report.run(exchange, 0..500).run(work, 500..1000);
    report.write(directory).expect("writes");
    OpenReport::read(directory).expect("opens")
}

#[test]
fn a_trace_has_the_colours_of_its_steps() {
    let directory = tempfile::tempdir().unwrap();
    let opened = two_halves(directory.path());
    for (theme, palette) in [(Theme::Light, &LIGHT), (Theme::Dark, &DARK)] {
        let picture = picture(Some(opened.clone()), "execution-trace", (800, 500), theme);
        let count = |colour: egui::Color32| {
            picture.pixels.iter().filter(|pixel| **pixel == colour.to_array()).count()
        };
        let (exchange, compute) = (count(palette.internal_exchange), count(palette.compute));
        assert!(exchange > 3_000 && compute > 3_000, "{exchange} {compute}");
        let share = exchange as f64 / compute as f64;
        assert!((0.8..1.25).contains(&share), "{exchange} {compute}");
        assert!(count(palette.page) > 100_000);
    }
}

#[test]
fn the_same_view_is_the_same_picture() {
    let directory = tempfile::tempdir().unwrap();
    let opened = two_halves(directory.path());
    for view in view_names() {
        let first = picture(Some(opened.clone()), view, (640, 480), Theme::Light);
        let second = picture(Some(opened.clone()), view, (640, 480), Theme::Light);
        assert!(first == second, "{view}");
        assert_eq!((first.width, first.height), (640, 480));
    }
}

#[test]
fn pictures_are_written_as_png_files() {
    let directory = tempfile::tempdir().unwrap();
    two_halves(directory.path());
    let out = directory.path().join("memory.png");
    let wanted = picture_of("memory", (320, 200), Theme::Dark, PictureFormat::Png);
    export(directory.path(), &wanted, &out).unwrap();
    let decoder = png::Decoder::new(std::io::BufReader::new(std::fs::File::open(&out).unwrap()));
    let reader = decoder.read_info().unwrap();
    assert_eq!((reader.info().width, reader.info().height), (320, 200));
}

#[test]
fn failures_to_draw_are_reported() {
    let directory = tempfile::tempdir().unwrap();
    two_halves(directory.path());
    let out = directory.path().join("x.png");
    let draw = |report: &std::path::Path, view: &str, out: &std::path::Path| {
        let wanted = picture_of(view, (100, 100), Theme::Light, PictureFormat::Png);
        export(report, &wanted, out).unwrap_err().to_string()
    };
    assert!(draw(directory.path(), "nothing", &out).contains("known: summary, insights"));
    assert!(draw(&directory.path().join("no"), "memory", &out).contains("no such file"));
    let nowhere = directory.path().join("no/x.png");
    assert!(draw(directory.path(), "memory", &nowhere).contains("no such directory"));
}
