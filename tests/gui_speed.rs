//! What a frame costs. Not run by default: figures depend on the machine.
//!
//! `cargo test --release --test gui_speed -- --ignored --nocapture`, with `TILESCOPE_REPORT` set to
//! a report of your own, if you like.

#![cfg(feature = "gui")]

mod common;

use egui::{Context, Event, Key, Modifiers, Pos2, RawInput, Rect, Vec2, pos2};
use std::time::{Duration, Instant};
use tilescope::gui::app::App;
use tilescope::gui::{Opened, theme};

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
fn frame(context: &Context, app: &mut App, number: u64, events: Vec<Event>) -> Duration {
    let start = Instant::now();
    let mut output = context.run_ui(input(number, events), |ui| {
        app.logic(ui.ctx());
        app.ui(ui);
    });
    output.textures_delta.clear();
    context.tessellate(output.shapes, output.pixels_per_point);
    start.elapsed()
}

fn key(key: Key) -> Event {
    Event::Key {
        key,
        physical_key: Some(key),
        pressed: true,
        repeat: false,
        modifiers: Modifiers::NONE,
    }
}

#[test]
#[ignore = "measures this machine"]
fn frames_of_the_trace_while_panning_and_zooming() {
    let directory = tempfile::tempdir().unwrap();
    let path = match std::env::var_os("TILESCOPE_REPORT") {
        Some(path) => path.into(),
        None => common::report_file(&common::spec("mnist_pipeline", &[]), directory.path()),
    };
    let context = Context::default();
    theme::install(&context);
    let mut app = App::detached(&context, Some(Opened::read(&path).unwrap()));
    app.show_view("execution-trace");
    for number in 0..20 {
        frame(&context, &mut app, number, vec![Event::PointerMoved(pos2(900.0, 400.0))]);
        app.session().workers.wait(Duration::from_secs(600));
    }
    let keys = [Key::W, Key::D, Key::W, Key::A, Key::S, Key::D, Key::S, Key::W, Key::W, Key::D];
    let mut times: Vec<Duration> = Vec::new();
    for number in 0..600u64 {
        let events = vec![key(keys[(number / 4) as usize % keys.len()])];
        times.push(frame(&context, &mut app, 20 + number, events));
        // A window waits for the screen; the workers get that time.
        std::thread::sleep(Duration::from_millis(4));
    }
    times.sort_unstable();
    let at = |share: f64| times[(times.len() as f64 * share) as usize];
    println!("p50 {:?}, p95 {:?}, p99 {:?}", at(0.5), at(0.95), at(0.99));
    assert!(at(0.99) < Duration::from_millis(40), "p99 {:?}", at(0.99));
}
