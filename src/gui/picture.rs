//! Views as pictures, without a display: the very code that paints the window, run until all its
//! questions are answered, drawn by [`paint`](super::paint).

use super::app::App;
use super::opening::Opened;
use super::paint::{Painter, Picture};
use egui::{Context, Pos2, RawInput, Rect, Theme, Vec2};
use std::time::Duration;

/// Frames after which a picture is taken even if something still moves.
const MAX_FRAMES: usize = 200;
/// Frames in a row without open questions that mean everything is there.
const CALM_FRAMES: usize = 6;
/// Longest time to wait for answers between two frames.
const PATIENCE: Duration = Duration::from_secs(600);

/// Draws the home screen, or a view of a report.
pub fn picture(opened: Option<Opened>, view: &str, size: (u32, u32), theme: Theme) -> Picture {
    let context = Context::default();
    let mut app = App::detached(&context, opened);
    context.set_theme(theme);
    context.all_styles_mut(|style| style.animation_time = 0.0);
    app.show_view(view);
    draw(&context, &mut app, size)
}

/// Draws an app as it is, once it has come to rest.
pub fn draw(context: &Context, app: &mut App, (width, height): (u32, u32)) -> Picture {
    let size = Vec2::new(width as f32, height as f32);
    let mut painter = Painter::default();
    let mut calm = 0;
    let mut picture = None;
    for frame in 0..MAX_FRAMES {
        let input = RawInput {
            screen_rect: Some(Rect::from_min_size(Pos2::ZERO, size)),
            max_texture_side: Some(16_384),
            time: Some(frame as f64),
            ..RawInput::default()
        };
        let mut output = context.run_ui(input, |ui| {
            app.logic(ui.ctx());
            app.ui(ui);
        });
        painter.update(&mut output.textures_delta);
        calm = if app.session().workers.busy() { 0 } else { calm + 1 };
        if calm >= CALM_FRAMES || frame + 1 == MAX_FRAMES {
            let primitives = context.tessellate(output.shapes, output.pixels_per_point);
            let ground = context.global_style().visuals.panel_fill;
            let side = [width as usize, height as usize];
            picture = Some(painter.paint(side, output.pixels_per_point, ground, &primitives));
            break;
        }
        app.session().workers.wait(PATIENCE);
    }
    picture.unwrap_or(Picture { width: 0, height: 0, pixels: Vec::new() })
}
