//! Simulates a user of the window, frame by frame.

#![allow(dead_code, reason = "each bench uses its own part")]

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

/// Keys that zoom and pan.
const KEYS: [Key; 6] = [Key::W, Key::D, Key::W, Key::A, Key::S, Key::D];

/// A key that is pressed and released.
fn pressed(key: Key) -> [Event; 2] {
    [true, false].map(|pressed| Event::Key {
        key,
        physical_key: Some(key),
        pressed,
        repeat: false,
        modifiers: Modifiers::NONE,
    })
}

/// Runs a frame with several events at once: the pointer moves, the wheel turns, a key zooms or
/// pans.
pub(crate) fn frame(context: &Context, app: &mut TilescopeApp, number: u64) -> Duration {
    let place = pos2(500.0 + (number * 7 % 900) as f32, 150.0 + (number * 3 % 250) as f32);
    let turn = if number % 40 < 20 { 12.0 } else { -12.0 };
    let wheel = Event::MouseWheel {
        unit: MouseWheelUnit::Point,
        delta: Vec2::new(0.0, turn),
        phase: egui::TouchPhase::Move,
        source: egui::MouseWheelSource::Wheel,
        modifiers: Modifiers::NONE,
    };
    let mut events = vec![Event::PointerMoved(place), wheel];
    events.extend(pressed(KEYS[(number / 4) as usize % KEYS.len()]));
    frame_of(context, app, number, events).0
}

/// Runs a frame with only a key that zooms or pans, or without input. Returns whether it requests
/// another one immediately.
pub(crate) fn key_frame(
    context: &Context,
    app: &mut TilescopeApp,
    number: u64,
    key: Option<u64>,
) -> (Duration, bool) {
    let key = key.map(|at| pressed(KEYS[at as usize % KEYS.len()]));
    frame_of(context, app, number, key.into_iter().flatten().collect())
}

/// Layout and tessellation of one frame, as in the window.
fn frame_of(
    context: &Context,
    app: &mut TilescopeApp,
    number: u64,
    events: Vec<Event>,
) -> (Duration, bool) {
    let start = Instant::now();
    let mut output = context.run_ui(input(number, events), |ui| {
        app.logic(ui.ctx());
        app.ui(ui);
    });
    output.textures_delta.clear();
    let mut viewports = output.viewport_output.values();
    let goes_on = viewports.any(|viewport| viewport.repaint_delay.is_zero());
    context.tessellate(output.shapes, output.pixels_per_point);
    (start.elapsed(), goes_on)
}
