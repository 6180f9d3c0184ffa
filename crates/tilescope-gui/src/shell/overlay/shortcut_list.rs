//! The list of keys, generated from the table of actions.

use super::{heading_ui, scroll_height};
use crate::model::preferences::UserPreferences;
use crate::shell::action::{ActionGroup, GESTURES, actions};
use crate::theme::fonts::strong;
use crate::theme::spacing;
use egui::{Grid, RichText, ScrollArea, Ui, vec2};

pub(crate) fn keys_ui(ui: &mut Ui, prefs: &UserPreferences) {
    heading_ui(ui, "Keys");
    let height = scroll_height(ui);
    ScrollArea::vertical().max_height(height).min_scrolled_height(height).show(ui, |ui| {
        for group in ActionGroup::ALL {
            group_ui(ui, group, prefs);
        }
        ui.add_space(spacing::M);
        let text = "Letters that zoom and pan are bound to key positions, independent of the \
                    keyboard layout. Change keys in the preferences.";
        ui.label(RichText::new(text).weak().small());
    });
}

fn group_ui(ui: &mut Ui, group: ActionGroup, prefs: &UserPreferences) {
    let bound = actions().iter().filter(|action| action.group == group);
    let bound: Vec<_> = bound
        .map(|action| (action.shortcut_text(prefs), action.title, action.help))
        .filter(|(keys, ..)| !keys.is_empty())
        .collect();
    let gestures = GESTURES.iter().filter(|(of, _)| *of == group).flat_map(|(_, list)| *list);
    ui.add_space(spacing::M);
    ui.label(strong(group.title()));
    Grid::new(group.title())
        .num_columns(2)
        .min_col_width(130.0)
        .min_row_height(17.0)
        .spacing(vec2(18.0, 5.0))
        .show(ui, |ui| {
            for (keys, what) in gestures {
                ui.weak(*keys);
                ui.label(*what);
                ui.end_row();
            }
            for (keys, title, help) in bound {
                ui.weak(keys);
                ui.label(title).on_hover_text(help);
                ui.end_row();
            }
        });
}
