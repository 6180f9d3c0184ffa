//! The command palette: type a few letters, press Enter.

use super::{OverlayState, scroll_height};
use crate::model::command::{AppCommand, CommandQueue};
use crate::shell::action::{AppAction, VIEW_CONTROLS, ViewControls, actions};
use crate::shell::session::AppSession;
use crate::theme::{ThemePalette, spacing, text_size};
use crate::widgets::elided_text::elided;
use crate::widgets::{entry_ground_ui, search_ui};
use egui::accesskit::Role;
use egui::{
    Align2, FontId, Key, Modifiers, Response, ScrollArea, Sense, TextStyle, Ui, WidgetInfo, vec2,
};

pub(crate) fn commands_ui(
    ui: &mut Ui,
    overlay: &mut OverlayState,
    session: &AppSession,
    commands: &CommandQueue,
) {
    // Handled before the text box receives the keys.
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
    let mut picked = if enter { found.get(overlay.selected_entry) } else { None };
    let height = scroll_height(ui).min(420.0);
    ScrollArea::vertical().max_height(height).auto_shrink(false).show(ui, |ui| {
        ui.spacing_mut().item_spacing.y = spacing::XXS;
        for (at, entry) in found.iter().enumerate() {
            let response = entry_ui(ui, entry, at == overlay.selected_entry);
            if at == overlay.selected_entry && (up || down) {
                response.scroll_to_me(None);
            }
            if response.on_hover_text(&entry.help).clicked() {
                picked = Some(entry);
            }
        }
        if found.is_empty() {
            ui.label("No matching command.");
        }
    });
    if let Some(entry) = picked.filter(|entry| entry.is_possible()) {
        commands.push(AppCommand::Overlay(None));
        commands.extend(entry.commands.iter().cloned());
    }
}

/// An entry of the palette.
struct CommandPaletteEntry {
    /// The text that searches match.
    title: String,
    /// The text in the list.
    shown: String,
    help: String,
    keys: String,
    /// The commands of the entry; empty if it does not apply now.
    commands: Vec<AppCommand>,
}

impl CommandPaletteEntry {
    fn of_action(action: &AppAction, session: &AppSession) -> Self {
        Self {
            title: action.title.to_owned(),
            shown: action.menu_text(session.prefs()),
            help: action.help.to_owned(),
            keys: action.shortcut_text(session.prefs()),
            commands: action.commands_from_anywhere(session),
        }
    }

    /// The controls in the toolbar of a view, and the tabs of its tables.
    fn of_view(of: &ViewControls, session: &AppSession) -> Vec<Self> {
        let view = of.view;
        let make_entry = |title: String, help: String, command: AppCommand| Self {
            shown: title.clone(),
            title,
            help,
            keys: String::new(),
            commands: session.page().map(|_| command).into_iter().collect(),
        };
        let strip = of.strip.iter().map(|control| {
            let help = format!("Goes to {} and uses {control}.", view.title());
            let title = format!("{}: {control}", view.title());
            make_entry(title, help, AppCommand::UseControl(view, control))
        });
        let tabs = of.tabs.iter().map(|tab| {
            let help = format!("Goes to {} and opens the table {tab}.", view.title());
            let title = format!("{}: tab {tab}", view.title());
            make_entry(title, help, AppCommand::ShowTables(view, tab))
        });
        strip.chain(tabs).collect()
    }

    fn is_possible(&self) -> bool {
        !self.commands.is_empty()
    }
}

/// The entries whose title contains the letters in order. Available entries come first, then the
/// best matches. The shortest of equal matches comes first, because a user who types the whole
/// title means it.
fn matches(typed: &str, session: &AppSession) -> Vec<CommandPaletteEntry> {
    let actions = actions().iter().filter(|action| action.name != "commands");
    let controls = VIEW_CONTROLS.iter().flat_map(|of| CommandPaletteEntry::of_view(of, session));
    let all = actions.map(|action| CommandPaletteEntry::of_action(action, session)).chain(controls);
    let mut found: Vec<(u32, CommandPaletteEntry)> =
        all.filter_map(|entry| Some((score(typed, &entry.title)?, entry))).collect();
    let measure = |title: &str| if typed.is_empty() { 0 } else { title.len() };
    found.sort_by_key(|(score, entry)| (!entry.is_possible(), *score, measure(&entry.title)));
    found.into_iter().map(|(_, entry)| entry).collect()
}

/// The distance between the letters of `typed` in `title`, in order; `None` if a letter is missing.
/// Letters that begin a word cost nothing.
fn score(typed: &str, title: &str) -> Option<u32> {
    let title: Vec<char> = title.to_lowercase().chars().collect();
    let begins = |at: usize| at == 0 || !title[at - 1].is_alphanumeric();
    // The least cost of the letters so far, by the position of the last one.
    let mut ends: Vec<(usize, u32)> = vec![(0, 0)];
    for letter in typed.to_lowercase().chars().filter(|letter| !letter.is_whitespace()) {
        let mut next = Vec::new();
        for at in (0..title.len()).filter(|at| title[*at] == letter) {
            let before = ends.iter().filter(|(end, _)| *end <= at);
            let costs = before.map(|(end, cost)| {
                let gap = (at - end) as u32;
                cost + if begins(at) { u32::from(gap > 0) } else { 2 * gap }
            });
            if let Some(cost) = costs.min() {
                next.push((at + 1, cost));
            }
        }
        ends = next;
    }
    ends.into_iter().map(|(_, cost)| cost).min()
}

fn entry_ui(ui: &mut Ui, entry: &CommandPaletteEntry, chosen: bool) -> Response {
    let palette = ThemePalette::for_ui(ui);
    let enabled = entry.is_possible();
    let sense = if enabled { Sense::click() } else { Sense::hover() };
    let (rect, response) = ui.allocate_exact_size(vec2(ui.available_width(), 28.0), sense);
    let words = entry.shown.as_str();
    response.widget_info(|| WidgetInfo::selected(Role::MenuItem, enabled, chosen, words));
    entry_ground_ui(ui, &response, chosen, 5);
    let small = FontId::proportional(text_size::CAPTION);
    let right = rect.right_center() - vec2(10.0, 0.0);
    let keys =
        ui.painter().text(right, Align2::RIGHT_CENTER, &entry.keys, small, palette.weak_text);
    let colour = if enabled { palette.text } else { palette.weak_text };
    let font = TextStyle::Body.resolve(ui.style());
    let left = rect.left_center() + vec2(8.0, 0.0);
    let words = elided(ui.painter(), words, font, colour, keys.left() - left.x - spacing::M);
    ui.painter().galley(left - vec2(0.0, words.size().y / 2.0), words, colour);
    response
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn initial_letters_match_best() {
        assert!(score("et", "Execution trace") < score("et", "Hide or show the menu"));
        assert_eq!(score("xyz", "Execution trace"), None);
        assert_eq!(score("", "anything"), Some(0));
    }

    #[test]
    fn every_action_is_found_by_its_title() {
        let session = AppSession::detached();
        for action in actions().iter().filter(|action| action.name != "commands") {
            let found = matches(action.title, &session);
            assert!(found.iter().any(|entry| entry.title == action.title), "{}", action.name);
        }
    }
}
