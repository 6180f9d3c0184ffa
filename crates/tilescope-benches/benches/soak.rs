//! A long session in the window: twenty reports open, every view of each shown again and again
//! while the pointer moves, the wheel turns and keys pan. Prints the memory of the process at every
//! twentieth of the time, and fails if it grows.
//!
//! `TILESCOPE_SOAK_SECONDS=60 cargo bench --bench soak -- REPORT ...`; without arguments, an hour
//! with the sample reports.

mod gestures;

use egui::Context;
use gestures::frame;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};
use tilescope_gui::app::TilescopeApp;
use tilescope_gui::{OpenReport, theme, view_names};

/// Number of open tabs.
const TABS: usize = 20;
/// Number of frames for which a view is shown.
const FRAMES_PER_VIEW: u64 = 24;
/// Number of parts of the time after which memory is measured.
const PARTS: u32 = 20;
/// The limit on the memory of the process.
const MOST_MEMORY: u64 = 1 << 30;

/// Reports to open: those on the command line, or the sample reports.
fn reports() -> Vec<PathBuf> {
    let named: Vec<PathBuf> =
        std::env::args().skip(1).filter(|arg| !arg.starts_with('-')).map(PathBuf::from).collect();
    if !named.is_empty() {
        return named;
    }
    ["mnist_pipeline", "matmul_chain", "too_large"]
        .map(|name| Path::new(env!("CARGO_MANIFEST_DIR")).join("../../sample_reports").join(name))
        .to_vec()
}

/// Copies of the reports, one for each tab, because a report has only one tab.
fn copies(directory: &Path) -> Vec<OpenReport> {
    let reports = reports();
    let copy = |(at, report): (usize, &PathBuf)| {
        let path = directory.join(format!("{at}.pop"));
        let file = if report.is_dir() { report.join("profile.pop") } else { report.clone() };
        std::fs::copy(&file, &path).unwrap_or_else(|error| panic!("{}: {error}", file.display()));
        OpenReport::read(&path).unwrap_or_else(|error| panic!("{}: {error}", file.display()))
    };
    reports.iter().cycle().take(TABS).enumerate().map(copy).collect()
}

/// Bytes of memory of the process; 0 if the system does not report them.
fn memory() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let kib = line.and_then(|line| line.trim().trim_end_matches(" kB").parse::<u64>().ok());
    kib.unwrap_or(0) << 10
}

fn main() {
    let seconds = std::env::var("TILESCOPE_SOAK_SECONDS").ok().and_then(|text| text.parse().ok());
    let part = Duration::from_secs(seconds.unwrap_or(3600)) / PARTS;
    let directory = tempfile::tempdir().expect("temporary directory");
    let context = Context::default();
    theme::install(&context);
    let mut app = TilescopeApp::detached(&context, None);
    let opened = copies(directory.path());
    for report in &opened {
        app.session_mut().show(report.clone());
    }
    let (mut number, mut frames, mut seen) = (0, 0u64, Vec::new());
    let mut tabs = opened.iter().cycle();
    for _ in 0..PARTS {
        let start = Instant::now();
        while start.elapsed() < part {
            // Showing a report again reads it again, as after a change of its file.
            app.session_mut().show(tabs.next().expect("goes round").clone());
            for view in view_names() {
                app.show_view(view);
                for _ in 0..FRAMES_PER_VIEW {
                    number += 1;
                    frame(&context, &mut app, number);
                    frames += 1;
                }
                app.session().workers().wait(Duration::from_secs(600));
            }
        }
        seen.push(memory());
        println!("{frames} frames, {} MiB", seen.last().copied().unwrap_or(0) >> 20);
    }
    let first = seen.iter().take(seen.len() / 2).copied().max().unwrap_or(0);
    let last = seen.iter().skip(seen.len() / 2).copied().max().unwrap_or(0);
    assert!(last <= MOST_MEMORY, "{} MiB is more than a window may take", last >> 20);
    assert!(last <= first + first / 10, "memory grows: {} to {} MiB", first >> 20, last >> 20);
}
