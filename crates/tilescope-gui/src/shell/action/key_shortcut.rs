//! A key with its modifiers, its text form and the events that match it.

use egui::{Event, Key, Modifiers};
use std::fmt;
use std::str::FromStr;

/// A key with its modifiers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KeyShortcut {
    pub key: Key,
    /// True with Ctrl (Cmd on a Mac).
    pub ctrl: bool,
    pub shift: bool,
    pub alt: bool,
}

impl KeyShortcut {
    pub(crate) const fn key(key: Key) -> Self {
        Self { key, ctrl: false, shift: false, alt: false }
    }

    /// The key pressed with Ctrl.
    pub(crate) const fn ctrl(key: Key) -> Self {
        Self { ctrl: true, ..Self::key(key) }
    }

    /// The key pressed with Alt.
    pub(crate) const fn alt(key: Key) -> Self {
        Self { alt: true, ..Self::key(key) }
    }

    /// The same key with Shift added.
    pub(crate) const fn shift(self) -> Self {
        Self { shift: true, ..self }
    }

    /// The shortcuts that an event may stand for: by the letter on the key, and by its physical
    /// position.
    pub(crate) fn from_event(event: &Event) -> Option<(Self, Self)> {
        let Event::Key { key, physical_key, pressed: true, modifiers, .. } = event else {
            return None;
        };
        let Modifiers { alt, ctrl, shift, command, .. } = *modifiers;
        let press = |key| Self { key, ctrl: ctrl || command, shift: shift && !is_sign(key), alt };
        Some((press(*key), press(physical_key.unwrap_or(*key))))
    }

    /// Returns true if a text field uses the key: to type, edit or move the cursor.
    pub(crate) fn types_text(self) -> bool {
        const EDITING: [Key; 7] = [Key::A, Key::C, Key::V, Key::X, Key::Y, Key::Z, Key::Backspace];
        let moves = matches!(
            self.key,
            Key::ArrowLeft | Key::ArrowRight | Key::ArrowUp | Key::ArrowDown | Key::Escape
        );
        let function = self.key.name().len() > 1 && self.key.name().starts_with('F');
        moves || EDITING.contains(&self.key) || !(self.ctrl || self.alt || function)
    }
}

/// Returns true for signs that need Shift on some keyboards; `?` counts as a key here.
fn is_sign(key: Key) -> bool {
    let mut letters = key.symbol_or_name().chars();
    let (Some(sign), None) = (letters.next(), letters.next()) else { return false };
    sign.is_ascii_punctuation()
}

impl fmt::Display for KeyShortcut {
    /// Writes the shortcut as menus and preferences show it: `Ctrl+Shift+P`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let modifiers = [(self.ctrl, "Ctrl+"), (self.alt, "Alt+"), (self.shift, "Shift+")];
        for (_, name) in modifiers.iter().filter(|(held, _)| *held) {
            f.write_str(name)?;
        }
        let sign = if is_sign(self.key) { self.key.symbol_or_name() } else { self.key.name() };
        f.write_str(sign)
    }
}

/// A text that is not a valid shortcut.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("unknown key {key:?} in {text:?}")]
pub struct UnknownKeyError {
    key: String,
    text: String,
}

impl FromStr for KeyShortcut {
    type Err = UnknownKeyError;

    fn from_str(text: &str) -> Result<Self, UnknownKeyError> {
        let mut press = Self::key(Key::Space);
        let mut rest = text.trim();
        loop {
            let held = if let Some(after) = rest.strip_prefix("Ctrl+") {
                (&mut press.ctrl, after)
            } else if let Some(after) = rest.strip_prefix("Alt+") {
                (&mut press.alt, after)
            } else if let Some(after) = rest.strip_prefix("Shift+") {
                (&mut press.shift, after)
            } else {
                break;
            };
            *held.0 = true;
            rest = held.1;
        }
        let by_sign = Key::ALL.iter().copied().find(|key| key.symbol_or_name() == rest);
        let key = by_sign.or_else(|| Key::from_name(rest));
        press.key =
            key.ok_or_else(|| UnknownKeyError { key: rest.to_owned(), text: text.to_owned() })?;
        press.shift &= !is_sign(press.key);
        Ok(press)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shortcuts_survive_a_round_trip() {
        for key in Key::ALL {
            for press in
                [KeyShortcut::key(*key), KeyShortcut::ctrl(*key).shift(), KeyShortcut::alt(*key)]
            {
                let press = KeyShortcut { shift: press.shift && !is_sign(*key), ..press };
                assert_eq!(press.to_string().parse(), Ok(press), "{press}");
            }
        }
        assert!("Ctrl+Banana".parse::<KeyShortcut>().is_err());
        assert!("".parse::<KeyShortcut>().is_err());
    }

    #[test]
    fn shift_is_ignored_for_signs() {
        let event = |key, modifiers| Event::Key {
            key,
            physical_key: None,
            pressed: true,
            repeat: false,
            modifiers,
        };
        let (question, _) =
            KeyShortcut::from_event(&event(Key::Questionmark, Modifiers::SHIFT)).unwrap();
        assert_eq!(question, KeyShortcut::key(Key::Questionmark));
        let (letter, _) = KeyShortcut::from_event(&event(Key::N, Modifiers::SHIFT)).unwrap();
        assert_eq!(letter, KeyShortcut::key(Key::N).shift());
    }
}
