//! Pictures of views without a display. The code that paints the window runs until all its queries
//! are answered; [`paint`](crate::paint) draws the result or writes it as SVG.

use crate::GuiError;
use crate::model::navigation::{ReportLink, ReportLinkError};
use crate::model::open_report::OpenReport;
use crate::model::preferences::AppearancePrefs;
use crate::paint::{RenderedImage, SoftwareRenderer};
use crate::shell::app::TilescopeApp;
use crate::views::what_if::search::found::{FoundPoints, SearchAnswer};
use crate::views::what_if::search::search_page_ui;
use crate::views::what_if::sensitivity::sensitivity_page_ui;
use egui::{CentralPanel, Context, Frame, FullOutput, Pos2, RawInput, Rect, Theme, Ui, Vec2, vec2};
use std::path::Path;
use std::time::Duration;
use tilescope_experiments::answers::{SensitivityAnswer, SweepAnswer, TuneAnswer};

/// The number of frames after which a picture is taken even if it still changes.
const MAX_FRAMES: usize = 200;
/// The number of consecutive frames without open queries that mark the end.
const IDLE_FRAMES: usize = 6;
/// The longest wait for answers between two frames.
const MAX_ANSWER_WAIT: Duration = Duration::from_secs(600);

/// The longest side of a picture, in pixels.
const MAX_SIDE: u16 = 16_384;

/// The file formats of pictures.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PictureFormat {
    Png,
    Svg,
}

/// The options of a picture.
#[derive(Clone, Debug)]
pub struct PictureOptions<'a> {
    /// The name of the view.
    pub view: &'a str,
    /// The report to compare with, if any.
    pub compare: Option<&'a Path>,
    /// The link to the place in the view; `None` for the initial view.
    pub at: Option<&'a str>,
    /// The width and height in pixels.
    pub size: (u32, u32),
    /// Units, colours and the size of text; at 100 percent a point is a pixel.
    pub look: AppearancePrefs,
    pub theme: Theme,
    pub format: PictureFormat,
}

/// Returns the bytes of a picture file. The same report and options give the same bytes.
///
/// # Errors
/// Returns an error if the link is invalid or the picture cannot be encoded.
pub fn picture_file(opened: OpenReport, export: &PictureOptions<'_>) -> Result<Vec<u8>, GuiError> {
    let (context, mut app) = prepared(Some(opened), export.view, export.theme);
    app.session_mut().prefs_mut().look = export.look;
    export.look.apply(&context);
    let mut link: Option<ReportLink> = match export.at.map(str::parse) {
        Some(Err(error)) => return Err(GuiError::Link(ReportLinkError::to_string(&error))),
        link => link.and_then(Result::ok),
    };
    let beside = link.as_mut().and_then(|link| link.place.target.as_mut());
    if let (Some(path), Some(beside)) = (export.compare, beside) {
        // Only the place counts; the report in the link may be another one.
        path.clone_into(&mut beside.report);
    }
    let linked = link.as_ref().and_then(|link| link.place.target.as_ref());
    if let Some(path) = export.compare.or(linked.map(|beside| beside.report.as_path())) {
        app.compare(OpenReport::read(path)?);
    }
    if let Some(link) = link {
        app.session_mut().go_to(&link.place);
        app.show_view(export.view);
        if let Some(problem) = app.session().messages().first() {
            return Err(GuiError::Link(problem.text.clone()));
        }
    }
    let (width, height) = export.size;
    match export.format {
        PictureFormat::Png => Ok(draw(&context, &mut app, export.size).png()?),
        PictureFormat::Svg => {
            let svg = run_until_idle(&context, &mut app, export.size, |painter, output| {
                let ground = context.global_style().visuals.panel_fill;
                painter.svg([width, height], output.pixels_per_point, ground, &output.shapes)
            });
            Ok(svg.into_bytes())
        }
    }
}

/// The width of pictures of a sensitivity analysis.
const SENSITIVITY_WIDTH: f32 = 900.0;
/// The width of pictures of a sweep.
const SWEEP_WIDTH: f32 = 1100.0;
/// The margin around the contents of these pictures.
const PAGE_MARGIN: i8 = 20;

/// Returns the bytes of a picture file for the answer of `tilescope sensitivity --json`. The
/// picture is as high as its contents.
///
/// # Errors
/// Returns an error if there are more lines than a picture can hold or the picture cannot be
/// encoded.
pub fn sensitivity_picture(
    answer: &SensitivityAnswer,
    format: PictureFormat,
) -> Result<Vec<u8>, GuiError> {
    page_picture(SENSITIVITY_WIDTH, format, |ui| sensitivity_page_ui(ui, &answer.spec, answer))
}

/// Returns the bytes of a picture file with the plots of `tilescope sweep --format json`.
///
/// # Errors
/// Returns an error if the picture cannot be encoded.
pub fn sweep_picture(answer: &SweepAnswer, format: PictureFormat) -> Result<Vec<u8>, GuiError> {
    let found = FoundPoints::new(SearchAnswer::Sweep(answer.clone()));
    page_picture(SWEEP_WIDTH, format, |ui| search_page_ui(ui, &found))
}

/// Returns the bytes of a picture file with the path of `tilescope tune --json`.
///
/// # Errors
/// Returns an error if there are more steps than a picture can hold or the picture cannot be
/// encoded.
pub fn tune_picture(answer: &TuneAnswer, format: PictureFormat) -> Result<Vec<u8>, GuiError> {
    let found = FoundPoints::new(SearchAnswer::tune(answer.clone()));
    page_picture(SWEEP_WIDTH, format, |ui| search_page_ui(ui, &found))
}

/// Returns the bytes of a picture of a page, as high as its contents.
fn page_picture(
    width: f32,
    format: PictureFormat,
    mut page: impl FnMut(&mut Ui),
) -> Result<Vec<u8>, GuiError> {
    let context = Context::default();
    crate::theme::install(&context);
    context.set_theme(Theme::Light);
    let mut painter = SoftwareRenderer::default();
    let mut run_frame = |time: f64, height: f32| {
        let input = RawInput {
            screen_rect: Some(Rect::from_min_size(Pos2::ZERO, vec2(width, height))),
            max_texture_side: Some(MAX_SIDE.into()),
            time: Some(time),
            ..RawInput::default()
        };
        let mut end = 0.0;
        let mut output = context.run_ui(input, |ui| {
            let margin = Frame::central_panel(ui.style()).inner_margin(PAGE_MARGIN);
            CentralPanel::default().frame(margin).show(ui, |ui| {
                page(ui);
                end = ui.cursor().top();
            });
        });
        painter.update(&mut output.textures_delta);
        (output, end + f32::from(PAGE_MARGIN))
    };
    // The first frame determines the height of the picture.
    let (_, height) = run_frame(0.0, MAX_SIDE.into());
    if height > MAX_SIDE.into() {
        return Err(GuiError::PictureHeight);
    }
    let (output, _) = run_frame(1.0, height.ceil());
    let ground = context.global_style().visuals.panel_fill;
    let density = output.pixels_per_point;
    let size = [width, height].map(whole_pixels);
    match format {
        PictureFormat::Png => {
            let primitives = context.tessellate(output.shapes, density);
            let side = size.map(|side| side as usize);
            Ok(painter.paint(side, density, ground, &primitives).png()?)
        }
        PictureFormat::Svg => Ok(painter.svg(size, density, ground, &output.shapes).into_bytes()),
    }
}

/// The number of whole pixels that covers a length.
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "up to MAX_SIDE")]
fn whole_pixels(length: f32) -> u32 {
    length.ceil() as u32
}

/// Returns a picture of the home screen, or of a view of a report.
pub fn picture(
    opened: Option<OpenReport>,
    view: &str,
    size: (u32, u32),
    theme: Theme,
) -> RenderedImage {
    let (context, mut app) = prepared(opened, view, theme);
    draw(&context, &mut app, size)
}

fn prepared(opened: Option<OpenReport>, view: &str, theme: Theme) -> (Context, TilescopeApp) {
    let context = Context::default();
    let mut app = TilescopeApp::detached(&context, opened);
    context.set_theme(theme);
    context.all_styles_mut(|style| style.animation_time = 0.0);
    app.show_view(view);
    (context, app)
}

/// Returns a picture of an app in its current state, once it is idle.
pub fn draw(
    context: &Context,
    app: &mut TilescopeApp,
    (width, height): (u32, u32),
) -> RenderedImage {
    run_until_idle(context, app, (width, height), |painter, output| {
        let primitives = context.tessellate(output.shapes, output.pixels_per_point);
        let ground = context.global_style().visuals.panel_fill;
        let side = [width as usize, height as usize];
        painter.paint(side, output.pixels_per_point, ground, &primitives)
    })
}

/// Runs an app until it is idle, and returns its last frame.
fn run_until_idle<T>(
    context: &Context,
    app: &mut TilescopeApp,
    (width, height): (u32, u32),
    take: impl FnOnce(&SoftwareRenderer, FullOutput) -> T,
) -> T {
    let pixels = Vec2::new(width as f32, height as f32);
    let mut painter = SoftwareRenderer::default();
    let mut calm = 0;
    let mut frame = 0;
    loop {
        let points = pixels / context.zoom_factor();
        let input = RawInput {
            screen_rect: Some(Rect::from_min_size(Pos2::ZERO, points)),
            max_texture_side: Some(MAX_SIDE.into()),
            time: Some(frame as f64),
            ..RawInput::default()
        };
        let mut output = context.run_ui(input, |ui| {
            app.logic(ui.ctx());
            app.ui(ui);
        });
        painter.update(&mut output.textures_delta);
        calm = if app.session().workers().busy() { 0 } else { calm + 1 };
        frame += 1;
        if calm >= IDLE_FRAMES || frame == MAX_FRAMES {
            return take(&painter, output);
        }
        app.session().workers().wait(MAX_ANSWER_WAIT);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    /// The gains of a spec with this number of operations.
    fn answer(operations: usize) -> SensitivityAnswer {
        let run = json!({ "cycles": 10_000, "seconds": 0.01, "samples_per_second": 1e5 });
        let operation = |number: usize| {
            json!({
                "name": format!("operation{number}"), "pass": "forward", "cycles": 100, "share": 0.01,
                "run": run, "change": -0.01, "off_path_beyond": null,
            })
        };
        let answer = json!({
            "spec": "a_spec", "machine": "mk2", "factor": 2.0, "shortened": null, "fits": true,
            "run": run, "resources": [],
            "operations": (0..operations).map(operation).collect::<Vec<_>>(),
        });
        serde_json::from_value(answer).expect("an answer")
    }

    #[test]
    fn pictures_fit_their_contents_or_fail() {
        let height = |operations: usize| {
            let svg = sensitivity_picture(&answer(operations), PictureFormat::Svg)?;
            let svg = String::from_utf8(svg).expect("text");
            assert!(svg.contains(&format!("operation{}", operations - 1)));
            let height = svg.split("height=\"").nth(1).and_then(|rest| rest.split('"').next());
            Ok::<u32, GuiError>(height.and_then(|of| of.parse().ok()).expect("a height"))
        };
        let few = height(10).expect("drawn");
        let more = height(500).expect("drawn");
        assert_eq!(more - few, 490 * 22);
        assert!(matches!(height(1000), Err(GuiError::PictureHeight)));
    }
}
