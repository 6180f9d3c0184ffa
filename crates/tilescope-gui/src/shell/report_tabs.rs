//! The tab bar above everything else: the home screen, and one tab for each open report and
//! comparison.

use crate::model::command::{AppCommand, ChooserPurpose, CommandQueue};
use crate::shell::session::AppSession;
use crate::theme::{ThemePalette, spacing};
use crate::widgets::elided_text::elided;
use crate::widgets::icons::Icon;
use crate::widgets::{focus_ui, icon_button_ui};
use egui::accesskit::Role;
use egui::{
    CornerRadius, Frame, Id, Margin, Panel, Response, ScrollArea, Sense, TextStyle, Ui, WidgetInfo,
    pos2, vec2,
};

/// The largest width of a tab's name, in points.
const WIDEST: f32 = 220.0;

/// The tab bar, with a button to open another report.
pub(crate) fn tabs_ui(ui: &mut Ui, session: &AppSession, commands: &CommandQueue) {
    let workspace = session.workspace();
    let palette = ThemePalette::for_ui(ui);
    let frame = Frame::new().fill(palette.raised).inner_margin(Margin::symmetric(8, 3));
    Panel::top("report tabs").resizable(false).frame(frame).show(ui, |ui| {
        ScrollArea::horizontal().id_salt("tabs").show(ui, |ui| {
            ui.horizontal(|ui| {
                ui.spacing_mut().item_spacing.x = spacing::XS;
                let at_home = session.page().is_none();
                if tab_ui(ui, "Home", at_home).on_hover_text("Home screen").clicked() {
                    commands.push(AppCommand::ShowTab(None));
                }
                for (at, title) in workspace.tab_titles().into_iter().enumerate() {
                    let chosen = workspace.shown_tab() == Some(at);
                    ui.push_id(at, |ui| report_tab_ui(ui, at, &title, chosen, commands));
                }
                if icon_button_ui(ui, Icon::Add, "Open another report or model (Ctrl+O)").clicked()
                {
                    commands.push(AppCommand::ChooseReport(ChooserPurpose::Open));
                }
            });
        });
    });
}

fn report_tab_ui(ui: &mut Ui, at: usize, title: &str, chosen: bool, commands: &CommandQueue) {
    let tab = tab_ui(ui, title, chosen);
    // Scrolls once per change: the user may scroll the tab out of sight again.
    let scrolled_to = Id::unique("tab that was shown");
    if chosen && ui.data(|data| data.get_temp(scrolled_to)) != Some(at) {
        tab.scroll_to_me(None);
        ui.data_mut(|data| data.insert_temp(scrolled_to, at));
    }
    if tab.middle_clicked() {
        commands.push(AppCommand::CloseTab(at));
    }
    if tab.on_hover_text(title).clicked() {
        commands.push(AppCommand::ShowTab(Some(at)));
    }
    if icon_button_ui(ui, Icon::Close, &format!("Close {title}")).clicked() {
        commands.push(AppCommand::CloseTab(at));
    }
}

fn tab_ui(ui: &mut Ui, title: &str, chosen: bool) -> Response {
    let palette = ThemePalette::for_ui(ui);
    let colour = if chosen { palette.text } else { palette.weak_text };
    let font = TextStyle::Body.resolve(ui.style());
    let name = elided(ui.painter(), title, font, colour, WIDEST);
    let size = vec2(name.size().x + 18.0, 26.0);
    let (rect, response) = ui.allocate_exact_size(size, Sense::click());
    response.widget_info(|| WidgetInfo::selected(Role::Tab, true, chosen, title));
    let ground = match (chosen, response.hovered()) {
        (true, _) => palette.page,
        (false, true) => palette.hover,
        (false, false) => palette.raised,
    };
    ui.painter().rect_filled(rect, CornerRadius::same(5), ground);
    focus_ui(ui, &response, rect);
    let text = pos2(rect.left() + 9.0, rect.center().y - name.size().y / 2.0);
    ui.painter().galley(text, name, colour);
    response
}
