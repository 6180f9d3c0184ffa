//! The desktop app and the pictures it can draw without a display.
//!
//! All views work the same way. They show what the [`session`] knows and push commands, and
//! `AppSession::apply` acts on the commands before the next frame. Views query
//! [`tilescope_analysis`] off the UI thread through a
//! [`widgets::background_query::BackgroundQuery`], arrange plain items and paint them. The cost of
//! a frame depends on what fits on the screen. This layer never simulates: it starts the program as
//! a child process and opens the report that the child writes.
//!
//! The folders are layers. ARCHITECTURE.md lists which layer may import which, and a test checks
//! the list.

// Tests may name colours and read files directly.
#![cfg_attr(test, allow(clippy::disallowed_methods))]

mod model;
pub mod paint;
mod shell;
pub mod theme;
mod views;
mod widgets;

pub use egui::Theme;
pub use model::open_report::OpenReport;
pub use model::preferences::{AppearancePrefs, PaletteChoice, TEXT_PERCENT};
pub use model::view_id::{UnknownViewName, ViewId};
pub use model::{message, navigation};
pub use shell::picture_export::{
    PictureFormat, PictureOptions, draw, picture, picture_file, sensitivity_picture, sweep_picture,
    tune_picture,
};
pub use shell::simulation_process::simulate_with;
pub use shell::{action, app, session};

use std::path::Path;
use tilescope_report::ReportError;
use tilescope_report::atomic_file::{AtomicFileError, write_whole};

/// An error from showing the app or drawing a picture.
#[derive(Debug, thiserror::Error)]
pub enum GuiError {
    /// No display is available to open a window on.
    #[error(
        "no display: neither WAYLAND_DISPLAY nor DISPLAY is set; \
         pictures can be saved without one: tilescope export REPORT --view execution-trace -o \
         trace.png"
    )]
    NoDisplay,
    /// The window could not be opened.
    #[error(
        "the window cannot be opened: {0}\n\
         a window needs OpenGL and a few libraries; on Debian and Ubuntu: apt install \
         libgl1 libegl1 libgl1-mesa-dri libx11-xcb1 libxcursor1 libxi6 libxkbcommon-x11-0"
    )]
    Window(String),
    /// The report could not be opened.
    #[error(transparent)]
    Report(#[from] ReportError),
    /// The view name is unknown.
    #[error(transparent)]
    UnknownView(#[from] UnknownViewName),
    /// The picture could not be encoded as PNG.
    #[error("{0}")]
    Png(#[from] paint::PngEncodeError),
    /// The picture could not be written.
    #[error(transparent)]
    Write(#[from] AtomicFileError),
    /// The content needs more lines than a picture can hold.
    #[error("the view is too large for a picture")]
    PictureHeight,
    /// The link to the place to be drawn is invalid.
    #[error("{0}")]
    Link(String),
}

/// The names of all views, as spelled on the command line.
pub fn view_names() -> Vec<&'static str> {
    ViewId::all().map(ViewId::name).collect()
}

/// Draws a view of a report into a file.
///
/// # Errors
/// Returns an error if the report cannot be opened, the view is unknown or the file cannot be
/// written.
pub fn export(report: &Path, export: &PictureOptions<'_>, out: &Path) -> Result<(), GuiError> {
    let _known: ViewId = export.view.parse()?;
    let opened = OpenReport::read(report)?;
    let bytes = picture_file(opened, export)?;
    Ok(write_whole(out, &bytes)?)
}

/// Opens the window and returns when it is closed. The window shows a report, the place in a report
/// that a link leads to, a comparison of two reports, or the home screen.
///
/// # Errors
/// Returns an error if there is no display, or if no window can be opened on it.
pub fn run(
    report: Option<&Path>,
    compare: Option<&Path>,
    at: Option<&str>,
) -> Result<(), GuiError> {
    let is_set = |name: &str| std::env::var_os(name).is_some_and(|value| !value.is_empty());
    let unix = cfg!(all(unix, not(target_os = "macos")));
    if unix && !is_set("DISPLAY") && !is_set("WAYLAND_DISPLAY") {
        return Err(GuiError::NoDisplay);
    }
    // Without it the app still shows reports and reports why it cannot simulate.
    let _known = shell::simulation_process::simulate_with_this_program();
    let viewport = egui::ViewportBuilder::default()
        .with_title("tilescope")
        .with_app_id("tilescope")
        .with_inner_size([1440.0, 900.0])
        .with_min_inner_size([480.0, 360.0])
        .with_icon(icon());
    let options = eframe::NativeOptions {
        viewport,
        renderer: eframe::Renderer::Glow,
        // Exported pictures have the same pixels.
        dithering: false,
        ..eframe::NativeOptions::default()
    };
    let create: eframe::AppCreator<'_> = Box::new(|creation| {
        Ok(Box::new(app::TilescopeApp::for_user(&creation.egui_ctx, report, compare, at)))
    });
    // Loading the display's libraries by name may panic deep inside the windowing crates.
    let opened = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
        eframe::run_native("tilescope", options, create)
    }));
    match opened {
        Ok(Ok(())) => Ok(()),
        Ok(Err(error)) => Err(GuiError::Window(error.to_string())),
        Err(panic) => Err(GuiError::Window(words(&panic))),
    }
}

/// The message of a panic.
fn words(panic: &Box<dyn std::any::Any + Send>) -> String {
    let text = panic.downcast_ref::<String>().map(String::as_str);
    text.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("unknown reason").to_owned()
}

/// The icon of the program: four tiles, one of them open.
fn icon() -> egui::IconData {
    const SIDE: u32 = 64;
    let [r, g, b, _] = theme::LIGHT.compute.to_array();
    let mut rgba = Vec::new();
    for y in 0..SIDE {
        for x in 0..SIDE {
            let is_hollow = (40..54).contains(&x) && (40..54).contains(&y);
            let is_painted = is_inside_icon_tile(x) && is_inside_icon_tile(y) && !is_hollow;
            rgba.extend(if is_painted { [r, g, b, 255] } else { [0; 4] });
        }
    }
    egui::IconData { rgba, width: SIDE, height: SIDE }
}

fn is_inside_icon_tile(at: u32) -> bool {
    (6..28).contains(&at) || (36..58).contains(&at)
}
