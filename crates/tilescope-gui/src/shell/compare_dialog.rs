//! Asking which report to compare with.

use crate::model::command::{AppCommand, CommandQueue};
use crate::shell::session::AppSession;
use crate::theme::{ThemePalette, spacing};
use crate::widgets::icon_button_ui;
use crate::widgets::icons::Icon;
use egui::{
    Align, Button, Context, Frame, Id, Key, Layout, Margin, Modal, RichText, ScrollArea, TextEdit,
};
use std::path::PathBuf;

/// The question, over everything else.
pub(crate) fn compare_dialog_ui(
    context: &Context,
    session: &mut AppSession,
    commands: &CommandQueue,
) {
    let known = known(session);
    let Some(typed) = session.dialogs_mut().compare_path_mut() else { return };
    let frame = Frame::window(&context.global_style()).inner_margin(Margin::same(20));
    let response = Modal::new(Id::unique("compare with")).frame(frame).show(context, |ui| {
        let palette = ThemePalette::for_ui(ui);
        ui.set_width(520.0_f32.min(context.content_rect().width() - 60.0));
        ui.horizontal(|ui| {
            ui.heading("Compare with");
            ui.with_layout(Layout::right_to_left(Align::Center), |ui| {
                if icon_button_ui(ui, Icon::Close, "Do not compare").clicked() {
                    ui.close();
                }
            });
        });
        ui.horizontal(|ui| {
            let edit = TextEdit::singleline(typed)
                .hint_text(RichText::new("Path of a directory or .pop file"))
                .desired_width(ui.available_width() - 90.0)
                .margin(Margin::symmetric(8, 5));
            let edit = ui.add(edit).accessible_name("Path of the report to compare with");
            let entered = edit.lost_focus() && ui.input(|i| i.key_pressed(Key::Enter));
            let path = typed.trim();
            let clicked = ui.add_enabled(!path.is_empty(), Button::new("Compare")).clicked();
            if (entered || clicked) && !path.is_empty() {
                commands.push(AppCommand::CompareWith(PathBuf::from(path)));
            }
        });
        ui.add_space(spacing::M);
        let height = (context.content_rect().height() - 220.0).clamp(80.0, 360.0);
        ScrollArea::vertical().max_height(height).show(ui, |ui| {
            for (group, paths) in &known {
                if paths.is_empty() {
                    continue;
                }
                ui.label(RichText::new(*group).color(palette.weak_text));
                for path in paths {
                    let name = path.display().to_string();
                    let entry = Button::new(&name).frame(false).truncate();
                    if ui.add(entry).clicked() {
                        commands.push(AppCommand::CompareWith(path.clone()));
                    }
                }
                ui.add_space(spacing::S);
            }
        });
    });
    if response.should_close() {
        commands.push(AppCommand::ToggleCompareDialog);
    }
}

/// Reports that are at hand, by where they are known from.
fn known(session: &AppSession) -> [(&'static str, Vec<PathBuf>); 3] {
    let own = session.page().map(|page| page.opened().path.clone());
    let mut seen: Vec<PathBuf> = own.into_iter().collect();
    let mut fresh = |paths: Vec<PathBuf>| -> Vec<PathBuf> {
        let mut found = Vec::new();
        for path in paths {
            if !seen.contains(&path) {
                seen.push(path.clone());
                found.push(path);
            }
        }
        found
    };
    let open = fresh(session.workspace().pages().map(|page| page.opened().path.clone()).collect());
    let recent = fresh(session.prefs().recent.iter().map(|recent| recent.path.clone()).collect());
    let demos =
        fresh(session.home().sample_reports().iter().map(|demo| demo.path.clone()).collect());
    [("Open", open), ("Recent", recent), ("Demo reports", demos)]
}
