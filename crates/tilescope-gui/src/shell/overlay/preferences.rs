//! The preferences: numbers, colours, text, dragging, and every key.

use super::{OverlayState, heading_ui, scroll_height};
use crate::model::command::{AppCommand, CommandQueue};
use crate::model::preferences::{AppearancePrefs, PaletteChoice, ThemeChoice, TraceDragMode};
use crate::shell::action::{KeyShortcut, actions};
use crate::shell::session::AppSession;
use crate::theme::fonts::strong;
use crate::theme::{ThemePalette, spacing, text_size};
use crate::widgets::choice_ui;
use egui::{Event, Grid, RichText, ScrollArea, Slider, Ui, vec2};
use tilescope_report::units::ByteUnits;

pub(crate) fn preferences_ui(
    ui: &mut Ui,
    overlay: &mut OverlayState,
    session: &AppSession,
    commands: &CommandQueue,
) {
    heading_ui(ui, "Preferences");
    let height = scroll_height(ui);
    let area = ScrollArea::vertical().max_height(height).min_scrolled_height(height);
    area.auto_shrink([false, true]).show(ui, |ui| {
        look_ui(ui, session, commands);
        ui.add_space(spacing::M);
        ui.label(strong("Keys"));
        keys_ui(ui, overlay, session, commands);
        ui.add_space(spacing::M);
        let reset = ui.button("Reset all preferences");
        let hint = "Recent reports and bookmarks stay.";
        if reset.on_hover_text(hint).clicked() {
            commands.push(AppCommand::ResetPrefs);
        }
    });
}

fn look_ui(ui: &mut Ui, session: &AppSession, commands: &CommandQueue) {
    let old = session.prefs().look;
    let mut look: AppearancePrefs = old;
    let mut theme = session.prefs().theme;
    let show_row = |ui: &mut Ui, choice: &mut dyn FnMut(&mut Ui)| {
        ui.horizontal(|ui| choice(ui));
    };
    show_row(ui, &mut |ui| {
        let themes = ThemeChoice::ALL.map(|theme| (theme, theme.title()));
        theme = choice_ui(ui, "Theme", &themes, theme).unwrap_or(theme);
    });
    show_row(ui, &mut |ui| {
        let palettes = PaletteChoice::ALL.map(|palette| (palette, palette.title()));
        look.palette = choice_ui(ui, "Colours", &palettes, look.palette).unwrap_or(look.palette);
    });
    show_row(ui, &mut |ui| {
        let units = ByteUnits::ALL.map(|units| (units, units.title()));
        look.units = choice_ui(ui, "Bytes", &units, look.units).unwrap_or(look.units);
    });
    show_row(ui, &mut |ui| {
        let drags = TraceDragMode::ALL.map(|drag| (drag, drag.title()));
        let name = "Dragging the trace";
        look.drag = choice_ui(ui, name, &drags, look.drag).unwrap_or(look.drag);
    });
    show_row(ui, &mut |ui| {
        ui.weak("Text size");
        let slider = Slider::new(&mut look.text_percent, 60..=250).suffix(" %").step_by(10.0);
        // Growing text would move the slider under the pointer, so the size changes on release.
        let response = ui.add(slider.update_while_editing(false));
        if response.dragged() {
            look.text_percent = old.text_percent;
        }
    });
    if theme != session.prefs().theme {
        commands.push(AppCommand::SetTheme(theme));
    }
    if look != old {
        commands.push(AppCommand::SetAppearance(look));
    }
}

fn keys_ui(ui: &mut Ui, overlay: &mut OverlayState, session: &AppSession, commands: &CommandQueue) {
    let palette = ThemePalette::for_ui(ui);
    if let Some(name) = overlay.capturing_shortcut_for
        && let Some(press) = captured(ui)
    {
        overlay.capturing_shortcut_for = None;
        commands.push(AppCommand::SetShortcuts(name, Some(vec![press.to_string()])));
    }
    let grid = Grid::new("keys").num_columns(3).spacing(vec2(14.0, 4.0));
    grid.show(ui, |ui| {
        for action in actions() {
            ui.label(action.title).on_hover_text(action.help);
            let text = match action.shortcut_text(session.prefs()) {
                _ if overlay.capturing_shortcut_for == Some(action.name) => {
                    "press a key…".to_owned()
                }
                text if text.is_empty() => "none".to_owned(),
                text => text,
            };
            let button = ui.button(text).on_hover_text("Click, then press the new key");
            let name = format!("Keys of {}", action.title);
            if button.accessible_name(&name).clicked() {
                overlay.capturing_shortcut_for = Some(action.name);
            }
            ui.horizontal(|ui| {
                if session.prefs().keys.contains_key(action.name)
                    && ui.small_button("Reset").clicked()
                {
                    commands.push(AppCommand::SetShortcuts(action.name, None));
                }
                let own = action.shortcuts(session.prefs());
                let same = actions().iter().filter(|other| {
                    other.name != action.name
                        && action.conflicts_with(other)
                        && other.shortcuts(session.prefs()).iter().any(|press| own.contains(press))
                });
                for other in same {
                    let text = format!("also {}", other.title);
                    ui.label(RichText::new(text).color(palette.warning).size(text_size::CAPTION));
                }
            });
            ui.end_row();
        }
    });
}

/// Takes the first key pressed in this frame from the input.
fn captured(ui: &Ui) -> Option<KeyShortcut> {
    ui.input_mut(|input| {
        let at = input.events.iter().position(|event| KeyShortcut::from_event(event).is_some())?;
        let event: Event = input.events.remove(at);
        KeyShortcut::from_event(&event).map(|(letter, _)| letter)
    })
}
