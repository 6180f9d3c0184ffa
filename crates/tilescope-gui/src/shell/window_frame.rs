//! The frame around the views: side menu, messages, progress.

use crate::model::command::{AppCommand, CommandQueue};
use crate::shell::action::actions;
use crate::shell::model_dialog::ModelDialog;
use crate::shell::session::{AppSession, ReportPage};
use crate::theme::fonts::strong;
use crate::theme::{ColourScheme, ThemePalette, spacing, text_size};
use crate::views::search_panel::SearchPanel;
use crate::views::what_if::search::SpecSearch;
use crate::views::{VIEWS, ViewContext};
use crate::widgets::icons::Icon;
use crate::widgets::{LOW_MENU_ENTRY, MENU_ENTRY, elided_text::elided, menu_entry_ui};
use egui::{
    Align2, Color32, Context, CornerRadius, FontId, Frame, Id, Margin, Order, Panel, ProgressBar,
    ScrollArea, Stroke, Ui, vec2,
};

/// The height of the report's name.
const MENU_NAME: f32 = 52.0;
/// The smallest gap between the views and the entries below.
const MENU_GAP: f32 = 10.0;
/// The width of the side menu with titles.
const WIDE_MENU: f32 = 196.0;
/// The width of the side menu without titles.
const NARROW_MENU: f32 = 52.0;
/// The window width below which the menu shows only icons.
const NARROW_WINDOW: f32 = 760.0;

/// The menu on the left: views above, entries for the report and the window below.
pub(crate) fn side_menu_ui(ui: &mut Ui, session: &AppSession, commands: &CommandQueue) {
    let Some(page) = session.page() else { return };
    let palette = ThemePalette::for_ui(ui);
    let narrow = session.prefs().narrow_menu || ui.available_width() < NARROW_WINDOW;
    let frame = Frame::new().fill(palette.raised).inner_margin(Margin::symmetric(8, 10));
    let width = if narrow { NARROW_MENU } else { WIDE_MENU };
    Panel::left("side menu").exact_size(width).resizable(false).frame(frame).show(ui, |ui| {
        ui.spacing_mut().item_spacing.y = spacing::XXS;
        ScrollArea::vertical().auto_shrink(false).show(ui, |ui| {
            let height = entry_height(ui);
            report_name_ui(ui, page, narrow);
            ui.add_space(spacing::M);
            for view in VIEWS {
                let chosen = view.id == page.view();
                let words = view.id.title();
                if menu_entry_ui(ui, view.icon, words, (chosen, narrow), height).clicked() {
                    commands.push(AppCommand::ShowView(view.id));
                }
            }
            let foot = foot_entries() as f32 * (height + ui.spacing().item_spacing.y) + 2.0;
            ui.add_space((ui.available_height() - foot).max(MENU_GAP));
            menu_foot_ui(ui, session, (narrow, height), commands);
        });
    });
}

/// The number of entries below the views.
fn foot_entries() -> usize {
    actions().iter().filter(|action| action.menu.is_some()).count()
}

/// The height of entries, reduced if not all of them fit.
fn entry_height(ui: &Ui) -> f32 {
    let entries = (VIEWS.len() + foot_entries()) as f32;
    let room = ui.available_height() - MENU_NAME - spacing::M - MENU_GAP - 4.0;
    (room / entries - ui.spacing().item_spacing.y).clamp(LOW_MENU_ENTRY, MENU_ENTRY)
}

/// The actions with an icon, below the views.
fn menu_foot_ui(
    ui: &mut Ui,
    session: &AppSession,
    (narrow, height): (bool, f32),
    commands: &CommandQueue,
) {
    for action in actions() {
        let Some(icon) = action.menu else { continue };
        // A window too narrow for titles shows icons in any case.
        let icon = if icon == Icon::Collapse && narrow { Icon::Expand } else { icon };
        let words = action.menu_text(session.prefs());
        let entry = menu_entry_ui(ui, icon, &words, (false, narrow), height);
        let keys = action.shortcut_text(session.prefs());
        let hint = if keys.is_empty() {
            action.help.to_owned()
        } else {
            format!("{} ({keys})", action.help)
        };
        if entry.on_hover_text(hint).clicked() {
            commands.extend(action.command(session));
        }
    }
}

/// The name of the report and its machine.
fn report_name_ui(ui: &mut Ui, page: &ReportPage, narrow: bool) {
    let palette = ThemePalette::for_ui(ui);
    let name = page.opened().name();
    let path = page.opened().report.path().display().to_string();
    if narrow {
        let size = vec2(ui.available_width(), 30.0);
        let (rect, response) = ui.allocate_exact_size(size, egui::Sense::hover());
        crate::widgets::icons::paint(ui.painter(), rect.shrink(5.0), Icon::Mark, palette.compute);
        response.on_hover_text(format!("{name}\n{path}"));
        return;
    }
    let size = vec2(ui.available_width(), 50.0);
    let (rect, response) = ui.allocate_exact_size(size, egui::Sense::hover());
    let mark = egui::Rect::from_min_size(rect.min + vec2(7.0, 4.0), vec2(22.0, 22.0));
    crate::widgets::icons::paint(ui.painter(), mark, Icon::Mark, palette.compute);
    let width = rect.width() - 42.0;
    let font = FontId::new(text_size::BODY, crate::theme::fonts::strong_family());
    let title = elided(ui.painter(), &name, font, palette.text, width);
    ui.painter().galley(rect.min + vec2(38.0, 6.0), title, palette.text);
    let small = FontId::proportional(text_size::CAPTION);
    let about = elided(
        ui.painter(),
        &page.opened().machine(),
        small.clone(),
        palette.weak_text,
        rect.width() - 10.0,
    );
    ui.painter().galley(rect.min + vec2(7.0, 32.0), about, palette.weak_text);
    response.on_hover_text(format!("{name}\n{}\n{path}", page.opened().machine()));
}

/// The find panel at the right of the view.
pub(crate) fn find_panel_ui(ui: &mut Ui, finder: &mut SearchPanel, context: &ViewContext<'_>) {
    let palette = ThemePalette::for_ui(ui);
    let frame = Frame::new().fill(palette.raised).inner_margin(Margin::same(10));
    let widest = (ui.available_width() * 0.6).max(161.0);
    Panel::right("find")
        .resizable(true)
        .default_size(360.0_f32.min(widest))
        .size_range(160.0..=widest)
        .frame(frame)
        .show(ui, |ui| {
            ui.take_available_space();
            finder.ui(ui, context);
        });
}

/// Progress of opening or simulating a report, with a cancel button.
pub(crate) fn progress_ui(context: &Context, session: &AppSession, commands: &CommandQueue) {
    let slow = session.jobs().opening().elapsed().is_some_and(|time| time.as_millis() > 150);
    if session.opening_path().is_some() {
        context.request_repaint_after_secs(0.2);
    }
    let Some(simulation) = session.simulation() else {
        if let Some(search) = session.dialogs().hidden_search() {
            return card(context, |ui| search_card_ui(ui, search, commands));
        }
        if slow {
            let path = session.opening_path().map(|path| path.display().to_string());
            let step = session.jobs().opening().step();
            card(context, |ui| {
                ui.horizontal(|ui| {
                    ui.spinner();
                    let path = path.unwrap_or_default();
                    ui.label(if step.is_empty() {
                        format!("Opening {path}")
                    } else {
                        format!("Opening {path}: {step}")
                    });
                    if ui.button("Cancel").clicked() {
                        commands.push(AppCommand::CancelOpening);
                    }
                });
            });
        }
        return;
    };
    // The dialog that started it shows its own progress.
    if session.dialogs().model().is_some_and(ModelDialog::is_running) {
        return;
    }
    card(context, |ui| {
        ui.label(strong(format!("Simulating {}", simulation.spec)));
        ui.horizontal(|ui| {
            let bar =
                ProgressBar::new(simulation.progress()).desired_width(220.0).show_percentage();
            ui.add(bar);
            if ui.button("Cancel").clicked() {
                commands.push(AppCommand::CancelSimulation);
            }
        });
    });
}

fn search_card_ui(ui: &mut Ui, search: &SpecSearch, commands: &CommandQueue) {
    ui.label(strong(search.title()));
    ui.horizontal(|ui| {
        let share = search.progress().unwrap_or(1.0);
        ui.add(ProgressBar::new(share).desired_width(220.0).show_percentage());
        if ui.button("Show search").clicked() {
            commands.push(AppCommand::ShowLastSearch);
        }
        if ui.button("Stop search").clicked() {
            commands.push(AppCommand::StopSpecSearch);
        }
    });
}

fn card(context: &Context, contents: impl FnOnce(&mut Ui)) {
    egui::Area::new(Id::unique("progress"))
        .order(Order::Foreground)
        .anchor(Align2::RIGHT_BOTTOM, vec2(-16.0, -16.0))
        .show(context, |ui| {
            Frame::popup(ui.style()).inner_margin(Margin::same(12)).show(ui, contents);
        });
}

/// A hint shown while a file is dragged over the window.
pub(crate) fn drop_hint_ui(context: &Context) {
    if context.input(|i| i.raw.hovered_files.is_empty()) {
        return;
    }
    let painter = context.layer_painter(egui::LayerId::new(Order::Foreground, Id::unique("drop")));
    let rect = context.content_rect();
    let palette = ColourScheme::of_window(context).palette();
    painter.rect_filled(rect, CornerRadius::ZERO, Color32::from_black_alpha(90));
    let box_rect = egui::Rect::from_center_size(rect.center(), vec2(360.0, 90.0));
    let stroke = Stroke::new(2.0, palette.accent);
    painter.rect(box_rect, CornerRadius::same(8), palette.page, stroke, egui::StrokeKind::Inside);
    let font = FontId::proportional(text_size::SUBHEADING);
    painter.text(
        rect.center(),
        Align2::CENTER_CENTER,
        "Drop to open reports, models and specs",
        font,
        palette.text,
    );
}
