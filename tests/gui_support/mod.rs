//! Kinds of reports that views are tried on, and windows on them.

#![allow(dead_code, reason = "each test file uses its own part")]

use crate::common;
use crate::report_support::{foreign::Foreign, random_report};
use egui::accesskit::Role;
use egui::{Event, Key, Modifiers, PointerButton, Pos2, Vec2};
use egui_kittest::Harness;
use egui_kittest::kittest::{NodeT, Queryable};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};
use tilescope_fixtures::ReportBuilder;
use tilescope_gui::app::TilescopeApp;
use tilescope_gui::paint::RenderedImage;
use tilescope_gui::{
    AppearancePrefs, OpenReport, PictureFormat, PictureOptions, Theme, draw, theme, view_names,
};
use tilescope_report::units::IpuId;
use tilescope_report::{ExecutionStep, MarkKind, MemoryCategory, ProgramKind, StepOnIpu};
use tilescope_test_tiers::spread;

/// Kinds of reports, and what each view says about them.
pub(crate) struct Variant {
    /// What is special about it.
    pub name: &'static str,
    /// Writes it into a directory.
    pub write: fn(&Path),
    /// Words that must be found in the execution trace.
    pub trace: &'static [&'static str],
    /// Words that must be found in the memory view.
    pub memory: &'static [&'static str],
    /// Words that must be found in the liveness view.
    pub liveness: &'static [&'static str],
}

/// Every kind.
pub(crate) const VARIANTS: &[Variant] = &[
    Variant {
        name: "simulated",
        write: simulated,
        trace: &["IPU 0", "IPU 1", "Overview of the run", "View", "Go to"],
        memory: &["Memory by tile", "By memory region", "Not overlapped", "All tiles"],
        liveness: &["Liveness by program step", "Always live variables", "Total"],
    },
    Variant {
        name: "small",
        write: |path| drop(small().write(path).expect("writes")),
        trace: &["Convolve", "IPU 0", "Engine::run #0"],
        memory: &["Memory by tile"],
        liveness: &["Liveness by program step", "a/conv/weights"],
    },
    Variant {
        name: "compiled only",
        write: |path| {
            let mut report = small();
            report.steps.clear();
            report.marks.clear();
            report.write(path).expect("writes");
        },
        trace: &["Nothing was executed"],
        memory: &["Memory by tile"],
        liveness: &["Liveness by program step"],
    },
    Variant {
        name: "out of memory",
        write: |path| {
            let mut report = small();
            report.variable("giant", MemoryCategory::Variable, 0..8, 700 * 1024, None);
            report.steps.clear();
            report.marks.clear();
            report.write(path).expect("writes");
        },
        trace: &["Nothing was executed"],
        memory: &["Memory by tile", "Overflowed"],
        liveness: &["Liveness by program step", "giant"],
    },
    Variant {
        name: "foreign",
        write: |path| {
            std::fs::create_dir_all(path).expect("makes a directory");
            Foreign::default().write(&path.join("profile.pop"));
        },
        trace: &["IPU 0", "IPU 1"],
        memory: &["Memory by tile"],
        liveness: &["No liveness recorded"],
    },
    Variant {
        name: "foreign, bare",
        write: |path| {
            std::fs::create_dir_all(path).expect("makes a directory");
            let without = ["memory_by_tile", "vars_info", "compute_sets"];
            let bare =
                Foreign { without_tables: without.to_vec(), nulls: true, ..Foreign::default() };
            bare.write(&path.join("profile.pop"));
        },
        trace: &["IPU 0"],
        memory: &["Memory"],
        liveness: &["No liveness recorded"],
    },
    Variant {
        name: "foreign, without columns and types",
        write: |path| {
            std::fs::create_dir_all(path).expect("makes a directory");
            let without = vec![("steps_by_ipu", "active_tiles"), ("vars_info", "category")];
            let (unknown_types, extra, by_ipu) = (true, true, true);
            let columns = Foreign {
                without_columns: without,
                unknown_types,
                extra,
                by_ipu,
                ..Foreign::default()
            };
            columns.write(&path.join("profile.pop"));
        },
        trace: &["IPU 0", "IPU 1"],
        memory: &["Memory by tile"],
        liveness: &["No liveness recorded"],
    },
    Variant {
        name: "without debug information",
        write: |path| {
            let mut report = small();
            report.parts.operations.clear();
            report.parts.variables.clear();
            report.parts.vertex_types.clear();
            for set in &mut report.parts.compute_sets {
                set.vertices.clear();
                set.name.clear();
            }
            report.write(path).expect("writes");
        },
        trace: &["IPU 0", "Engine::run #0"],
        memory: &["No memory recorded"],
        liveness: &["Liveness by program step"],
    },
    Variant {
        name: "64 IPUs",
        write: |path| {
            let mut report = ReportBuilder::new(64, 16);
            let exchange = report.exchange("layer/matmul/ExchangePre", 8);
            let work = report.compute("layer/matmul", 100);
            report.root(ProgramKind::Sequence, "main", &[exchange, work]);
            report.variable(
                "layer/matmul/weights",
                MemoryCategory::Variable,
                0..1024,
                90_000,
                None,
            );
            report.variable(
                "layer/matmul/out",
                MemoryCategory::Variable,
                0..1000,
                9_000,
                Some(0..2),
            );
            report.live(exchange, 0).live(work, 9_000_000);
            report.run(exchange, 0..100).run(work, 100..250);
            report.write(path).expect("writes");
        },
        trace: &["IPU 0", "IPU 1"],
        memory: &["Memory by tile"],
        liveness: &["Liveness by program step", "layer/matmul/weights"],
    },
    Variant {
        name: "names",
        write: |path| {
            let mut report = ReportBuilder::new(1, 8);
            let long = "x".repeat(500);
            let (long, wide) = (report.compute(&long, 50), report.compute("卷积层/前向/卷积", 50));
            let (bare, slashes) = (report.compute("", 50), report.compute("///", 50));
            report.root(ProgramKind::Sequence, "main", &[long, wide, bare, slashes]);
            report.run(long, 0..50).run(wide, 50..100).run(bare, 100..150).run(slashes, 150..200);
            report.variable(&"长".repeat(500), MemoryCategory::Variable, 0..8, 1000, None);
            report.write(path).expect("writes");
        },
        trace: &["卷积层"],
        memory: &["Memory by tile"],
        liveness: &["No liveness recorded"],
    },
    Variant {
        name: "I/O tiles",
        write: |path| {
            let mut report = ReportBuilder::new(2, 8);
            report.parts.target.io_tiles_per_ipu = 2;
            let copy = report.program(ProgramKind::StreamCopyMid, "copyFromHost");
            let work = report.compute("a/b", 50);
            report.root(ProgramKind::Sequence, "main", &[copy, work]);
            for ipu in [IpuId(0), IpuId(1)] {
                report.run_on(work, ipu, 0..600);
                let beside = report.bar(ipu, 100..500);
                let ipus = vec![StepOnIpu { sub_lane: 1, active_tiles: 2, ..beside }];
                report.steps.push(ExecutionStep::new(copy, ipus));
            }
            report.write(path).expect("writes");
        },
        trace: &["IPU 0", "IPU 1", "StreamCopyMid"],
        memory: &["No memory recorded"],
        liveness: &["No liveness recorded"],
    },
    Variant {
        name: "far out",
        write: |path| {
            let mut report = ReportBuilder::new(1, 8);
            let copy = report.program(ProgramKind::StreamCopyBegin, "copyFromHost");
            let work = report.compute("a/b", 50);
            report.root(ProgramKind::Sequence, "main", &[copy, work]);
            report.run(copy, 1 << 46..(1 << 46) + 1_000_000);
            report.run(work, (1 << 46) + 1_000_000..(1 << 46) + 1_000_050);
            report.write(path).expect("writes");
        },
        trace: &["StreamCopyBegin"],
        memory: &["No memory recorded"],
        liveness: &["No liveness recorded"],
    },
    Variant {
        name: "anything",
        write: |path| drop(random_report(7, 300).write(path).expect("writes")),
        trace: &["IPU 0"],
        memory: &["Memory"],
        liveness: &["Liveness"],
    },
    Variant {
        name: "four replicas",
        write: |path| {
            let overrides = ["options.device_iterations=1", "options.replication_factor=4"];
            common::report_file(&common::spec("mnist_pipeline", &overrides), path);
        },
        trace: &["IPU 0", "IPU 1", "View"],
        memory: &["Memory by tile", "Not overlapped"],
        liveness: &["Liveness by program step", "Total"],
    },
    Variant {
        name: "sample of one IPU",
        write: |path| copy_sample("matmul_chain", path),
        trace: &["IPU 0", "Engine::run #0"],
        memory: &["Memory by tile"],
        liveness: &["Liveness by program step"],
    },
    Variant {
        name: "sample of a pipeline",
        write: |path| copy_sample("mnist_pipeline", path),
        trace: &["IPU 0", "IPU 1"],
        memory: &["Memory by tile"],
        liveness: &["Liveness by program step"],
    },
    Variant {
        name: "sample out of memory",
        write: |path| copy_sample("too_large", path),
        trace: &["Nothing was executed"],
        memory: &["Memory by tile", "Overflowed"],
        liveness: &["Liveness by program step"],
    },
    Variant {
        name: "remote buffers",
        write: |path| {
            let spec = common::spec("offload", &["options.device_iterations=1"]);
            common::report_file(&spec, path);
        },
        trace: &["IPU 0", "Remote buffers (Rx/Tx)"],
        memory: &["Memory by tile"],
        liveness: &["Liveness by program step"],
    },
];

/// Copies a report that comes with the program.
fn copy_sample(name: &str, path: &Path) {
    let samples = Path::new(env!("CARGO_MANIFEST_DIR")).join("sample_reports");
    std::fs::create_dir_all(path).expect("makes a directory");
    let file = "profile.pop";
    std::fs::copy(samples.join(name).join(file), path.join(file)).expect("copies");
}

/// A window on an app.
pub(crate) type Window = Harness<'static, TilescopeApp>;

impl Variant {
    /// The report of this kind; written and opened once for all tests.
    pub(crate) fn opened(&self) -> OpenReport {
        static OPENED: Mutex<BTreeMap<&str, OpenReport>> = Mutex::new(BTreeMap::new());
        let mut known = OPENED.lock().unwrap_or_else(PoisonError::into_inner);
        let open = || {
            let path = place(self.name);
            (self.write)(&path);
            OpenReport::read(&path).expect("opens")
        };
        known.entry(self.name).or_insert_with(open).clone()
    }

    /// The kind of this name.
    pub(crate) fn named(name: &str) -> &'static Self {
        VARIANTS.iter().find(|variant| variant.name == name).expect("a kind of report")
    }
}

/// An empty place for a report, used again by the next run of the tests.
pub(crate) fn place(name: &str) -> PathBuf {
    let base = Path::new(env!("CARGO_TARGET_TMPDIR")).join("gui");
    let path = base.join(name.replace(|letter: char| !letter.is_alphanumeric(), "_"));
    // Nothing is there the first time.
    let _ = std::fs::remove_dir_all(&path);
    std::fs::create_dir_all(&base).expect("makes a directory");
    path
}

/// A window on a report, come to rest.
pub(crate) fn window(variant: &Variant, view: &str, size: Vec2) -> Window {
    scaled_window(variant, view, size, 1.0)
}

/// The same, with text that many times as large as usual; the size is that of the screen.
pub(crate) fn scaled_window(variant: &Variant, view: &str, size: Vec2, scale: f32) -> Window {
    show(variant.opened(), view, size / scale, scale)
}

/// A window on a report that is open, come to rest.
pub(crate) fn opened_window(opened: OpenReport, view: &str, size: Vec2) -> Window {
    show(opened, view, size, 1.0)
}

/// Size of windows that compare.
pub(crate) const COMPARING: Vec2 = Vec2::new(1280.0, 800.0);

/// A window that compares two kinds of reports, come to rest.
pub(crate) fn compared(source: &Variant, target: &Variant, view: &str) -> Window {
    let mut window = opened_window(source.opened(), view, COMPARING);
    window.state_mut().compare(target.opened());
    show_view(&mut window, view);
    window
}

/// Types a path into the form for saving, and saves.
pub(crate) fn save_under(window: &mut Window, path: &Path) {
    window.get_by_label("File to write").focus();
    window.step();
    press(window, Modifiers::CTRL | Modifiers::COMMAND, Key::A);
    window.get_by_label("File to write").type_text(&path.to_string_lossy());
    settle(window);
    window.get_by_role_and_label(Role::Button, "Save").click();
    window.step();
}

/// A picture of a view as it is at first, on its own, a pixel per point.
pub(crate) fn picture_of(
    view: &str,
    size: (u32, u32),
    theme: Theme,
    format: PictureFormat,
) -> PictureOptions<'_> {
    PictureOptions {
        view,
        compare: None,
        at: None,
        size,
        look: AppearancePrefs::default(),
        theme,
        format,
    }
}

fn show(opened: OpenReport, view: &str, size: Vec2, pixels_per_point: f32) -> Window {
    let mut app = TilescopeApp::detached(&egui::Context::default(), Some(opened));
    app.show_view(view);
    window_of(app, size, pixels_per_point)
}

/// The window of an app, come to rest.
pub(crate) fn window_of(app: TilescopeApp, size: Vec2, pixels_per_point: f32) -> Window {
    let mut window = Harness::builder()
        .with_size(size)
        .with_pixels_per_point(pixels_per_point)
        .allow_missing_glyphs()
        .with_context_setup(theme::install)
        .build_ui_state(
            |ui, app: &mut TilescopeApp| {
                app.logic(ui.ctx());
                app.ui(ui);
            },
            app,
        );
    settle(&mut window);
    window
}

/// Clicks so many times at a place.
pub(crate) fn click_at(window: &mut Window, pos: Pos2, times: usize) {
    // A frame of a test takes longer than one of a screen.
    window.ctx.options_mut(|options| options.input_options.max_double_click_delay = 1.0);
    for pressed in [true, false].repeat(times) {
        let (button, modifiers) = (PointerButton::Primary, Modifiers::NONE);
        window.event(Event::PointerButton { pos, button, pressed, modifiers });
        window.step();
    }
    settle(window);
}

/// Frames in a row without open questions that mean everything is there.
const CALM_FRAMES: usize = 4;

/// Lets a window come to rest.
pub(crate) fn settle(window: &mut Window) {
    let mut calm = 0;
    for _ in 0..400 {
        window.step();
        let workers = window.state().session().workers().clone();
        calm = if workers.busy() { 0 } else { calm + 1 };
        if calm == CALM_FRAMES {
            return;
        }
        workers.wait(Duration::from_secs(20));
    }
    panic!("the window never comes to rest");
}

/// Lets a window run until something holds that a child process leads to.
pub(crate) fn until(window: &mut Window, words: &str, holds: impl Fn(&Window) -> bool) {
    let end = Instant::now() + Duration::from_secs(120);
    while !holds(window) {
        assert!(Instant::now() < end, "never: {words}: {:?}", painted(window));
        window.step();
        std::thread::sleep(Duration::from_millis(5));
    }
    settle(window);
}

/// Whether a reader of the accessibility tree finds these words.
pub(crate) fn says(window: &Window, words: &str) -> bool {
    window.query_all_by_label_contains(words).next().is_some()
}

/// Fails where a reader of the accessibility tree does not find some of these words.
#[track_caller]
pub(crate) fn assert_says(window: &Window, all: &[&str]) {
    for words in all {
        assert!(says(window, words), "not on the screen: {words}");
    }
}

/// Shows a view.
pub(crate) fn show_view(window: &mut Window, view: &str) {
    window.state_mut().show_view(view);
    settle(window);
}

/// Tries every view on each of `variants`, on as many threads as there are processors. The fast tier
/// tries each of `variants` on two views.
pub(crate) fn each_pair(variants: &[Variant], check: impl Fn(&Variant, &'static str) + Sync) {
    let views = view_names();
    each_combination(&[variants.len(), views.len()], |row| check(&variants[row[0]], views[row[1]]));
}

/// Tries the combinations of [`spread`], on as many threads as there are processors.
pub(crate) fn each_combination(axes: &[usize], check: impl Fn(&[usize]) + Sync) {
    let rows = spread(axes);
    let next = AtomicUsize::new(0);
    let work = || {
        while let Some(row) = rows.get(next.fetch_add(1, Ordering::Relaxed)) {
            check(row);
        }
    };
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    std::thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(work);
        }
    });
}

/// Writes a simulated report.
fn simulated(path: &Path) {
    let spec = common::spec("mnist_pipeline", &["options.device_iterations=1"]);
    common::report_file(&spec, path);
}

/// A small report of two IPUs.
pub(crate) fn small() -> ReportBuilder {
    let mut report = ReportBuilder::new(2, 8);
    let exchange = report.exchange("cs0_a/conv/Convolve/ExchangePre", 8);
    let work = report.compute("a/conv/Convolve", 500);
    let sync = report.program(ProgramKind::Sync, "External");
    report.root(ProgramKind::Sequence, "main", &[exchange, work, sync]);
    report.variable("a/conv/weights", MemoryCategory::Variable, 0..8, 4000, None);
    report.variable("a/conv/out", MemoryCategory::Variable, 2..6, 900, Some(0..2));
    report.live(exchange, 0).live(work, 3600);
    report.run(exchange, 0..100).run(work, 100..600).run(sync, 600..700).run(work, 700..1200);
    report.mark(MarkKind::Run, "Engine::run #0", 0..4);
    report
}

/// Clicks the control of this role and name; whether there is one.
pub(crate) fn press_role(window: &mut Window, role: egui::accesskit::Role, name: &str) -> bool {
    let mut nodes = window.query_all_by_role(role);
    let node = nodes.find(|node| node.accesskit_node().label().is_some_and(|label| label == name));
    let found = node.is_some();
    node.iter().for_each(|node| node.click());
    found
}

/// Clicks the control of this role and name.
pub(crate) fn click(window: &mut Window, role: Role, name: &str) {
    window.get_by_role_and_label(role, name).click();
    settle(window);
}

/// Clicks what has this name.
pub(crate) fn click_label(window: &mut Window, name: &str) {
    window.get_by_label(name).click();
    settle(window);
}

/// Types into the box of this name.
pub(crate) fn type_text(window: &mut Window, name: &str, text: &str) {
    window.get_by_label(name).type_text(text);
    settle(window);
}

/// Whether the report that is shown is compared with another one.
pub(crate) fn is_compared(window: &Window) -> bool {
    window.state().session().page().is_some_and(|page| page.compared().is_some())
}

/// A link to what a window shows.
pub(crate) fn link(window: &Window) -> String {
    window.state().session().link().expect("a report is open").to_string()
}

/// What a window shows, drawn as in a file: no pointer, no focus.
pub(crate) fn picture(window: &mut Window, size: Vec2) -> RenderedImage {
    let context = egui::Context::default();
    theme::install(&context);
    draw(&context, window.state_mut(), (size.x as u32, size.y as u32))
}

/// Fails where two windows show different pictures; both are kept to be looked at.
pub(crate) fn show_the_same(one: &mut Window, other: &mut Window, size: Vec2, words: &str) {
    let pictures = [picture(one, size), picture(other, size)];
    if pictures[0] == pictures[1] {
        return;
    }
    let place = Path::new(env!("CARGO_TARGET_TMPDIR"));
    let name = words.replace(|letter: char| !letter.is_alphanumeric(), "_");
    for (at, picture) in pictures.iter().enumerate() {
        let file = place.join(format!("{name}-{at}.png"));
        std::fs::write(file, picture.png().expect("encodes")).expect("writes");
    }
    let texts = [painted(one), painted(other)];
    panic!("{words}: different pictures, see {}/{name}-*.png: {texts:#?}", place.display());
}

/// Presses a key and waits.
pub(crate) fn press(window: &mut Window, modifiers: Modifiers, key: Key) {
    window.event(Event::Key { key, physical_key: None, pressed: true, repeat: false, modifiers });
    settle(window);
}

/// Does something that changes what each view shows.
pub(crate) fn look_around(window: &mut Window, view: &str) {
    match view {
        "execution-trace" => {
            for key in [Key::W, Key::W, Key::D, Key::Period, Key::Period] {
                press(window, Modifiers::NONE, key);
            }
        }
        "exchange-code" | "memory" => {
            let label = "Select tiles, e.g. 1 or 0,3-5";
            // Without tables there is nothing to type into.
            let focused = window.query_all_by_label(label).next().map(|node| node.focus());
            if focused.is_some() {
                window.step();
                let node = window.query_all_by_label(label).next();
                node.expect("still there").type_text("2, 4-5");
                settle(window);
            }
        }
        _ => {}
    }
    let tabs = window.query_all_by_role(Role::Tab);
    let names: Vec<String> = tabs.filter_map(|tab| tab.accesskit_node().label()).collect();
    if let Some(name) = names.last() {
        let tab = window
            .query_all_by_role(Role::Tab)
            .find(|tab| tab.accesskit_node().label().as_ref() == Some(name));
        tab.expect("still there").click();
    }
    settle(window);
    let ready = |node: &egui_kittest::Node<'_>| !node.accesskit_node().is_disabled();
    if let Some(first) = window.query_all_by_role(Role::CheckBox).find(ready) {
        first.click();
    }
    settle(window);
}

/// A line of a spec that kills the simulation half-way; so does the bundled spec `adder`.
pub(crate) const DIES: &str = "dies half-way";

/// Names the program that windows start, one for all tests of a process: the real one, except that
/// some simulations die and that what a window is opened on is only written down. The directory it
/// is in.
#[cfg(unix)]
pub(crate) fn simulator() -> &'static Path {
    use std::os::unix::fs::PermissionsExt;
    static PLACE: std::sync::OnceLock<tempfile::TempDir> = std::sync::OnceLock::new();
    let make = || {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("tilescope");
        let real = env!("CARGO_BIN_EXE_tilescope");
        let script = format!(
            "#!/bin/sh\n\
             case \"$*\" in\n\
             specs*|onnx*|calibrate*|sensitivity*|insights*|sweep*|tune*|*--check*|'report '*) exec {real} \"$@\" ;;\n\
             simulate*) if [ \"$2\" = adder ] || grep -qs '{DIES}' \"$2\"; then\n\
             echo progress 40 >&2; echo 'halfway there' >&2; kill -9 $$\n\
             fi; exec {real} \"$@\" ;;\n\
             *) echo \"$@\" >>\"$0.windows\" ;;\n\
             esac\n"
        );
        std::fs::write(&path, script).expect("writes");
        let may_run = std::fs::Permissions::from_mode(0o755);
        std::fs::set_permissions(&path, may_run).expect("may be started");
        tilescope_gui::simulate_with(&path);
        directory
    };
    PLACE.get_or_init(make).path()
}

/// Names the real program.
#[cfg(not(unix))]
pub fn simulator() -> &'static Path {
    let real = Path::new(env!("CARGO_BIN_EXE_tilescope"));
    tilescope_gui::simulate_with(real);
    real
}

/// Texts that were painted in the last frame, lines of one text joined by a space.
pub(crate) fn painted(window: &Window) -> Vec<String> {
    fn collect(shape: &egui::Shape, texts: &mut Vec<String>) {
        match shape {
            egui::Shape::Vec(shapes) => shapes.iter().for_each(|shape| collect(shape, texts)),
            egui::Shape::Text(text) => {
                let rows: Vec<String> = text
                    .galley
                    .rows
                    .iter()
                    .map(|row| row.row.text().trim_end().to_owned())
                    .collect();
                texts.push(rows.join(" "));
            }
            _ => {}
        }
    }
    let mut texts = Vec::new();
    window.output().shapes.iter().for_each(|clipped| collect(&clipped.shape, &mut texts));
    texts
}
