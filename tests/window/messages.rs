//! Tests that messages appear as text, with an icon, and to screen readers.

use crate::gui_support::{Variant, click_label, picture, says, settle, window};
use egui::accesskit::{Live, Role};
use egui::{Vec2, vec2};
use egui_kittest::kittest::{NodeT, Queryable};
use tilescope_gui::message::{MessageKind, StatusMessage};

const SIZE: Vec2 = vec2(900.0, 600.0);

#[test]
fn every_kind_of_message_is_distinguishable_without_colour() {
    let mut window = window(Variant::named("small"), "summary", SIZE);
    let mut seen = Vec::new();
    for kind in MessageKind::ALL {
        let text = "the same words".to_owned();
        let messages = window.state_mut().session_mut().messages_mut();
        messages.clear();
        messages.push(StatusMessage { kind, text });
        settle(&mut window);
        assert!(says(&window, kind.word()) && says(&window, "the same words"), "{kind:?}");
        let (role, live) = match kind {
            MessageKind::Done => (Role::Status, Live::Polite),
            MessageKind::Warning => (Role::Alert, Live::Polite),
            MessageKind::Error => (Role::Alert, Live::Assertive),
        };
        let words = format!("{}: the same words", kind.word());
        let node = window.get_by_role_and_label(role, &words);
        assert_eq!(node.accesskit_node().live(), live, "{kind:?}");
        let pixels = picture(&mut window, SIZE).pixels;
        assert!(!seen.contains(&pixels), "{kind:?} looks like another kind");
        seen.push(pixels);
    }
    let words: Vec<&str> = MessageKind::ALL.iter().map(|kind| kind.word()).collect();
    assert!(words.windows(2).all(|pair| pair[0] != pair[1]), "{words:?}");
}

#[test]
fn many_messages_leave_space_for_the_view() {
    let mut window = window(Variant::named("small"), "memory", SIZE);
    let messages = (0..30).map(|at| StatusMessage::error(format!("message {at}")));
    window.state_mut().session_mut().messages_mut().extend(messages);
    settle(&mut window);
    assert!(says(&window, "message 29") && !says(&window, "message 3"));
    assert!(says(&window, "26 earlier messages") && says(&window, "Memory by tile"));
    click_label(&mut window, "Dismiss all");
    assert!(window.state().session().messages().is_empty());
}
