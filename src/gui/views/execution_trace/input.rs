//! Keys of the trace, by their place on the keyboard: W A S D is where a hand lies, whatever the
//! letters on it.

use egui::{Event, Key, Ui};

/// What a key asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wish {
    /// Zoom closer.
    Closer,
    /// Zoom out.
    Farther,
    /// Show earlier cycles.
    Earlier,
    /// Show later cycles.
    Later,
    /// Show the selection, or the whole run.
    Focus,
    /// Choose the next step.
    Next,
    /// Choose the step before.
    Previous,
    /// Choose nothing, search nothing.
    Clear,
    /// Type a filter.
    Search,
}

/// The keys pressed since the last frame, unless the user is typing text.
pub fn wishes(ui: &Ui) -> Vec<Wish> {
    if ui.ctx().text_edit_focused() || ui.ctx().any_popup_open() {
        return Vec::new();
    }
    ui.input(|input| input.events.iter().filter_map(wish).collect())
}

fn wish(event: &Event) -> Option<Wish> {
    let Event::Key { key, physical_key, pressed: true, modifiers, .. } = event else {
        return None;
    };
    if modifiers.ctrl || modifiers.alt || modifiers.command {
        return None;
    }
    match physical_key.unwrap_or(*key) {
        Key::W => return Some(Wish::Closer),
        Key::S => return Some(Wish::Farther),
        Key::A => return Some(Wish::Earlier),
        Key::D => return Some(Wish::Later),
        _ => {}
    }
    match key {
        Key::F => Some(Wish::Focus),
        Key::Period | Key::ArrowRight => Some(Wish::Next),
        Key::Comma | Key::ArrowLeft => Some(Wish::Previous),
        Key::Escape => Some(Wish::Clear),
        Key::Slash => Some(Wish::Search),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use egui::Modifiers;

    fn key(key: Key, physical_key: Option<Key>, modifiers: Modifiers) -> Option<Wish> {
        wish(&Event::Key { key, physical_key, pressed: true, repeat: false, modifiers })
    }

    #[test]
    fn zooming_goes_by_place_not_by_letter() {
        // On a French keyboard the key at W's place says Z.
        assert_eq!(key(Key::Z, Some(Key::W), Modifiers::NONE), Some(Wish::Closer));
        assert_eq!(key(Key::W, None, Modifiers::NONE), Some(Wish::Closer));
        assert_eq!(key(Key::W, Some(Key::W), Modifiers::CTRL), None);
        assert_eq!(key(Key::Period, Some(Key::Period), Modifiers::NONE), Some(Wish::Next));
    }
}
