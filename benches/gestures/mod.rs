//! What somebody does in the window, frame by frame.

use egui::{Context, Event, Key, Modifiers, MouseWheelUnit, Pos2, RawInput, Rect, Vec2, pos2};
use std::time::{Duration, Instant};
use tilescope_gui::app::TilescopeApp;

fn input(frame: u64, events: Vec<Event>) -> RawInput {
    RawInput {
        screen_rect: Some(Rect::from_min_size(Pos2::ZERO, Vec2::new(1600.0, 900.0))),
        max_texture_side: Some(8192),
        time: Some(frame as f64 / 60.0),
        events,
        ..RawInput::default()
    }
}

/// Layout and tessellation of one frame, as the window does them.
pub(crate) fn frame(context: &Context, app: &mut TilescopeApp, number: u64) -> Duration {
    let keys = [Key::W, Key::D, Key::W, Key::A, Key::S, Key::D];
    let key = keys[(number / 4) as usize % keys.len()];
    let pressed = |pressed| Event::Key {
        key,
        physical_key: Some(key),
        pressed,
        repeat: false,
        modifiers: Modifiers::NONE,
    };
    let place = pos2(500.0 + (number * 7 % 900) as f32, 150.0 + (number * 3 % 250) as f32);
    let turn = if number % 40 < 20 { 12.0 } else { -12.0 };
    let wheel = Event::MouseWheel {
        unit: MouseWheelUnit::Point,
        delta: Vec2::new(0.0, turn),
        phase: egui::TouchPhase::Move,
        source: egui::MouseWheelSource::Wheel,
        modifiers: Modifiers::NONE,
    };
    let events = vec![Event::PointerMoved(place), wheel, pressed(true), pressed(false)];
    let start = Instant::now();
    let mut output = context.run_ui(input(number, events), |ui| {
        app.logic(ui.ctx());
        app.ui(ui);
    });
    output.textures_delta.clear();
    context.tessellate(output.shapes, output.pixels_per_point);
    start.elapsed()
}
