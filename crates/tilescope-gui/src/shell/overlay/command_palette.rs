//! The command palette: type a few letters, press Enter.

use super::{OverlayState, scroll_height};
use crate::model::command::{AppCommand, CommandQueue};
use crate::shell::action::{AppAction, actions};
use crate::shell::session::AppSession;
use crate::theme::{ThemePalette, spacing, text_size};
use crate::widgets::{focus_ui, search_ui};
use egui::accesskit::Role;
use egui::{
    Align2, CornerRadius, FontId, Key, Modifiers, Response, ScrollArea, Sense, TextStyle, Ui,
    WidgetInfo, vec2,
};

pub(crate) fn commands_ui(
    ui: &mut Ui,
    overlay: &mut OverlayState,
    session: &AppSession,
    commands: &CommandQueue,
) {
    // Before the text box takes them.
    let (up, down, enter) = ui.input_mut(|input| {
        let mut pressed = |key| input.consume_key(Modifiers::NONE, key);
        (pressed(Key::ArrowUp), pressed(Key::ArrowDown), pressed(Key::Enter))
    });
    let before = overlay.typed.clone();
    let width = ui.available_width() - 18.0;
    search_ui(ui, &mut overlay.typed, "What do you want to do?", width).request_focus();
    let found = matches(&overlay.typed, session);
    if overlay.typed != before {
        overlay.selected_entry = 0;
    }
    let last = found.len().saturating_sub(1);
    overlay.selected_entry =
        (overlay.selected_entry + usize::from(down)).saturating_sub(usize::from(up)).min(last);
    ui.add_space(spacing::S);
    let mut picked = enter.then(|| found.get(overlay.selected_entry)).flatten();
    let height = scroll_height(ui).min(420.0);
    ScrollArea::vertical().max_height(height).auto_shrink(false).show(ui, |ui| {
        ui.spacing_mut().item_spacing.y = spacing::XXS;
        for (at, entry) in found.iter().enumerate() {
            let response = entry_ui(ui, entry, session, at == overlay.selected_entry);
            if at == overlay.selected_entry && (up || down) {
                response.scroll_to_me(None);
            }
            if response.on_hover_text(entry.0.help).clicked() {
                picked = Some(entry);
            }
        }
        if found.is_empty() {
            ui.label("No matching command.");
        }
    });
    if let Some((_, Some(command))) = picked {
        commands.push(AppCommand::Overlay(None));
        commands.push(command.clone());
    }
}

/// An action, and what it would do now.
type CommandPaletteEntry = (&'static AppAction, Option<AppCommand>);

/// Actions whose title holds the letters in order; possible ones first, then the best matches.
fn matches(typed: &str, session: &AppSession) -> Vec<CommandPaletteEntry> {
    let scored = actions().iter().filter_map(|action| Some((score(typed, action.title)?, action)));
    let mut found: Vec<(u32, CommandPaletteEntry)> = scored
        .filter(|(_, action)| action.name != "commands")
        .map(|(score, action)| (score, (action, action.command(session))))
        .collect();
    found.sort_by_key(|(score, (_, command))| (command.is_none(), *score));
    found.into_iter().map(|(_, entry)| entry).collect()
}

/// How far the letters of `typed` are apart in `title`, in order; `None` if they are not all there.
/// Letters that begin a word cost nothing.
fn score(typed: &str, title: &str) -> Option<u32> {
    let title: Vec<char> = title.to_lowercase().chars().collect();
    let begins = |at: usize| at == 0 || !title[at - 1].is_alphanumeric();
    // The least cost of the letters so far, by where the last of them was found.
    let mut ends: Vec<(usize, u32)> = vec![(0, 0)];
    for letter in typed.to_lowercase().chars().filter(|letter| !letter.is_whitespace()) {
        let found = (0..title.len()).filter(|at| title[*at] == letter);
        let cost = |at: usize| {
            let before = ends.iter().filter(|(end, _)| *end <= at);
            let cost = before.map(|(end, cost)| {
                let gap = (at - end) as u32;
                cost + if begins(at) { u32::from(gap > 0) } else { 2 * gap }
            });
            Some((at + 1, cost.min()?))
        };
        ends = found.filter_map(cost).collect();
    }
    ends.into_iter().map(|(_, cost)| cost).min()
}

fn entry_ui(
    ui: &mut Ui,
    (action, command): &CommandPaletteEntry,
    session: &AppSession,
    chosen: bool,
) -> Response {
    let palette = ThemePalette::for_ui(ui);
    let enabled = command.is_some();
    let sense = if enabled { Sense::click() } else { Sense::hover() };
    let (rect, response) = ui.allocate_exact_size(vec2(ui.available_width(), 28.0), sense);
    let words = action.menu_text(session.prefs());
    response.widget_info(|| WidgetInfo::selected(Role::MenuItem, enabled, chosen, words.as_str()));
    let ground =
        if chosen { Some(palette.chosen) } else { response.hovered().then_some(palette.hover) };
    if let Some(ground) = ground {
        ui.painter().rect_filled(rect, CornerRadius::same(5), ground);
    }
    focus_ui(ui, &response, rect);
    let colour = if enabled { palette.text } else { palette.weak_text };
    let font = TextStyle::Body.resolve(ui.style());
    let left = rect.left_center() + vec2(8.0, 0.0);
    ui.painter().text(left, Align2::LEFT_CENTER, words, font, colour);
    let keys = action.shortcut_text(session.prefs());
    let right = rect.right_center() - vec2(10.0, 0.0);
    let small = FontId::proportional(text_size::CAPTION);
    ui.painter().text(right, Align2::RIGHT_CENTER, keys, small, palette.weak_text);
    response
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn letters_that_begin_words_match_best() {
        assert!(score("et", "Execution trace") < score("et", "Hide or show the menu"));
        assert_eq!(score("xyz", "Execution trace"), None);
        assert_eq!(score("", "anything"), Some(0));
    }

    #[test]
    fn every_action_is_found_by_its_title() {
        let session = AppSession::detached();
        for action in actions().iter().filter(|action| action.name != "commands") {
            let found = matches(action.title, &session);
            assert!(found.iter().any(|(other, _)| other.name == action.name), "{}", action.name);
        }
    }
}
