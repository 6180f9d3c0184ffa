//! The home screen: open, simulate, recent.

use crate::model::command::{AppCommand, ChooserPurpose, CommandQueue, OverlayKind};
use crate::model::navigation::{NavigationState, ReportLink};
use crate::model::preferences::{RecentReport, ThemeChoice};
use crate::shell::session::{AppSession, HomeContext, HomeScreen};
use crate::shell::simulation_process::BundledSpec;
use crate::theme::fonts::strong;
use crate::theme::{ThemePalette, spacing, text_size};
use crate::widgets::icons::{self, Icon};
use crate::widgets::path_input::{ListedFiles, PathInputTexts, is_simulated, is_spec};
use crate::widgets::{
    ICON_BUTTON, elided_text::elided, focus_ui, icon_button_ui, search_ui, tabs_ui,
};
use egui::accesskit::Role;
use egui::{
    Align, Align2, CentralPanel, CornerRadius, FontId, Frame, Layout, Margin, Rect, Response,
    RichText, ScrollArea, Sense, Stroke, TextStyle, Ui, Vec2, WidgetInfo, vec2,
};
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use tilescope_report::remote::absolute_path;
use tilescope_report::units::format_timestamp;

/// The minimum width for cards side by side.
const TWO_COLUMNS: f32 = 820.0;
/// The largest width of the content.
const MAX_WIDTH: f32 = 1080.0;
const SIMULATE_CARD: &str = "Simulate a model";

pub(crate) fn home_ui(ui: &mut Ui, session: &mut AppSession, commands: &CommandQueue) {
    let (home, context) = session.home_to_paint();
    let palette = ThemePalette::for_ui(ui);
    let frame = Frame::new().fill(palette.raised);
    CentralPanel::default().frame(frame).show(ui, |ui| {
        ScrollArea::vertical().auto_shrink(false).show(ui, |ui| {
            let width = MAX_WIDTH.min(ui.available_width() - 40.0);
            let side = (ui.available_width() - width) / 2.0;
            ui.horizontal_top(|ui| {
                ui.add_space(side);
                ui.vertical(|ui| {
                    ui.set_width(width);
                    ui.add_space(spacing::XXL);
                    title_ui(ui, context.prefs.theme, commands);
                    ui.add_space(spacing::XL);
                    cards_ui(ui, home, &context, commands, width);
                    ui.add_space(spacing::XL);
                });
            });
        });
    });
}

fn title_ui(ui: &mut Ui, shown: ThemeChoice, commands: &CommandQueue) {
    let palette = ThemePalette::for_ui(ui);
    ui.horizontal(|ui| {
        let (rect, _) = ui.allocate_exact_size(Vec2::splat(44.0), Sense::hover());
        icons::paint(ui.painter(), rect, Icon::Mark, palette.compute);
        ui.vertical(|ui| {
            ui.spacing_mut().item_spacing.y = spacing::XXS;
            ui.label(strong("tilescope").size(text_size::DISPLAY));
            let text = "Find out why a program is slow or does not fit on IPUs, and how to improve \
                        it";
            ui.weak(text);
        });
        ui.with_layout(Layout::right_to_left(Align::Center), |ui| {
            if icon_button_ui(ui, Icon::Help, "Keys and help").clicked() {
                commands.push(AppCommand::Overlay(Some(OverlayKind::Shortcuts)));
            }
            let theme = format!("Theme: {}", shown.title());
            if icon_button_ui(ui, Icon::Theme, &theme).clicked() {
                commands.push(AppCommand::SetTheme(shown.next()));
            }
        });
    });
}

fn cards_ui(
    ui: &mut Ui,
    home: &mut HomeScreen,
    context: &HomeContext<'_>,
    commands: &CommandQueue,
    width: f32,
) {
    let gap = spacing::L;
    if width < TWO_COLUMNS {
        card_ui(ui, "Open", |ui| open_card_ui(ui, home, context, commands));
        ui.add_space(gap);
        card_ui(ui, SIMULATE_CARD, |ui| simulate_card_ui(ui, home, context, commands));
        ui.add_space(gap);
        card_ui(ui, "Recent", |ui| recent_card_ui(ui, home, context, commands));
        ui.add_space(gap);
        card_ui(ui, "Your own reports", capture_card_ui);
        ui.add_space(gap);
        card_ui(ui, "Help", |ui| help_card_ui(ui, commands));
        return;
    }
    ui.horizontal_top(|ui| {
        ui.spacing_mut().item_spacing.x = gap;
        let left = ((width - gap) * 0.42).round();
        ui.vertical(|ui| {
            ui.set_width(left);
            card_ui(ui, "Open", |ui| open_card_ui(ui, home, context, commands));
            ui.add_space(gap);
            card_ui(ui, SIMULATE_CARD, |ui| simulate_card_ui(ui, home, context, commands));
        });
        ui.vertical(|ui| {
            ui.set_width(width - gap - left);
            card_ui(ui, "Recent", |ui| recent_card_ui(ui, home, context, commands));
            ui.add_space(gap);
            card_ui(ui, "Your own reports", capture_card_ui);
            ui.add_space(gap);
            card_ui(ui, "Help", |ui| help_card_ui(ui, commands));
        });
    });
}

/// Links to the documentation; all of it works without a network.
fn help_card_ui(ui: &mut Ui, commands: &CommandQueue) {
    let entries = [
        (
            "How do I open, capture and compare reports?",
            "every view and its figures, and what is new",
            OverlayKind::Help,
        ),
        ("Keys and gestures", "keyboard and mouse", OverlayKind::Shortcuts),
        ("Preferences", "units, colours, text size, keys", OverlayKind::Preferences),
    ];
    for (text, about, kind) in entries {
        if row_ui(ui, Icon::Help, text, about, true).clicked() {
            commands.push(AppCommand::Overlay(Some(kind)));
        }
    }
}

/// Instructions for getting a report from an SDK or from a spec.
fn capture_card_ui(ui: &mut Ui) {
    let palette = ThemePalette::for_ui(ui);
    let lines = [
        ("With Poplar, PopART, PopTorch or TensorFlow on an IPU:", CAPTURE),
        ("Without hardware, from a model and options in a TOML file:", SIMULATE),
    ];
    for (words, command) in lines {
        ui.weak(words);
        Frame::new()
            .fill(palette.raised)
            .corner_radius(CornerRadius::same(5))
            .inner_margin(Margin::symmetric(10, 6))
            .show(ui, |ui| {
                ui.set_width(ui.available_width());
                let text = RichText::new(command).monospace();
                ui.add(egui::Label::new(text).wrap().selectable(true));
            });
        ui.add_space(spacing::XS);
    }
}

const CAPTURE: &str =
    "POPLAR_ENGINE_OPTIONS='{\"autoReport.all\":\"true\", \"autoReport.directory\":\"./report\"}'";
const SIMULATE: &str = "tilescope simulate my_model.toml -o out";

fn card_ui(ui: &mut Ui, title: &str, contents: impl FnOnce(&mut Ui)) {
    let palette = ThemePalette::for_ui(ui);
    Frame::new()
        .fill(palette.page)
        .stroke(Stroke::new(1.0, palette.rule))
        .corner_radius(CornerRadius::same(10))
        .inner_margin(Margin::same(18))
        .show(ui, |ui| {
            ui.set_width(ui.available_width());
            ui.heading(title);
            ui.add_space(spacing::S);
            contents(ui);
        });
}

/// A row with an icon, a title and smaller text below it.
fn row_ui(ui: &mut Ui, icon: Icon, text: &str, about: &str, enabled: bool) -> Response {
    let palette = ThemePalette::for_ui(ui);
    let height = if about.is_empty() { 36.0 } else { 46.0 };
    let sense = if enabled { Sense::click() } else { Sense::hover() };
    let (rect, response) = ui.allocate_exact_size(vec2(ui.available_width(), height), sense);
    response.widget_info(|| WidgetInfo::labeled(Role::Button, enabled, text));
    if !about.is_empty() {
        ui.ctx().accesskit_node_builder(response.id, |node| node.set_description(about));
    }
    if enabled && response.hovered() {
        ui.painter().rect_filled(
            rect.expand2(vec2(8.0, 0.0)),
            CornerRadius::same(6),
            palette.hover,
        );
    }
    focus_ui(ui, &response, rect.expand2(vec2(8.0, 0.0)));
    let colour = if enabled { palette.accent } else { palette.weak_text };
    let square =
        Rect::from_center_size(egui::pos2(rect.left() + 11.0, rect.center().y), Vec2::splat(20.0));
    icons::paint(ui.painter(), square, icon, colour);
    let left = rect.left() + 34.0;
    let width = rect.right() - left;
    let font = TextStyle::Body.resolve(ui.style());
    let words = elided(ui.painter(), text, font, colour, width);
    let small = FontId::proportional(text_size::CAPTION);
    let lines = elided(ui.painter(), about, small, palette.weak_text, width);
    let tall = words.size().y + if about.is_empty() { 0.0 } else { lines.size().y + 1.0 };
    let top = rect.center().y - tall / 2.0;
    let lower = top + words.size().y + 1.0;
    ui.painter().galley(egui::pos2(left, top), words, colour);
    if !about.is_empty() {
        ui.painter().galley(egui::pos2(left, lower), lines, palette.weak_text);
    }
    response
}

fn open_card_ui(
    ui: &mut Ui,
    home: &mut HomeScreen,
    context: &HomeContext<'_>,
    commands: &CommandQueue,
) {
    let (is_remote_shown, remote) = home.remote();
    tabs_ui(ui, "home", &[(false, "This machine"), (true, "Remote")], is_remote_shown);
    if *is_remote_shown {
        return remote.ui(ui, context.prefs, commands);
    }
    ui.add_space(spacing::XS);
    if row_ui(ui, Icon::Folder, "Open a report or model…", "", true).clicked() {
        commands.push(AppCommand::ChooseReport(ChooserPurpose::Open));
    }
    for demo in home.sample_reports() {
        let text = format!("Open demo report {}", demo.name);
        if row_ui(ui, Icon::Flask, &text, demo.about, true).clicked() {
            commands.push(AppCommand::Open(demo.path.clone()));
        }
    }
    ui.add_space(spacing::M);
    let typed = home.typed_path();
    let offers = typed.offers(ui, context.workers, Vec::new());
    let mut taken = typed.box_ui(ui, PATH_TEXTS, &offers);
    if !typed.text.trim().is_empty() {
        taken = taken.or(typed.list_ui(ui, &offers, OFFERED));
    }
    commands.extend(taken.map(AppCommand::Open));
    ui.add_space(spacing::XXS);
    let hint = "Or drop reports and ONNX models on this window.";
    ui.label(RichText::new(hint).weak().size(text_size::CAPTION));
}

const PATH_TEXTS: PathInputTexts = PathInputTexts {
    label: "Path of a report or model",
    button: "Open",
    hint: ListedFiles::ReportsAndModels.hint(),
};
/// The height of the list of completions of a typed path.
const OFFERED: f32 = 220.0;

fn simulate_card_ui(
    ui: &mut Ui,
    home: &mut HomeScreen,
    context: &HomeContext<'_>,
    commands: &CommandQueue,
) {
    let about = "your own network: choose its dimensions, loss and system";
    if row_ui(ui, Icon::Graph, "An ONNX file…", about, true).clicked() {
        commands.push(AppCommand::ChooseReport(ChooserPurpose::Model));
    }
    ui.add_space(spacing::S);
    let width = ui.available_width() - 18.0;
    search_ui(ui, home.spec_filter(), "Filter specs", width);
    let wanted = home.spec_filter().trim().to_lowercase();
    let is_listed = home.specs_are_listed();
    let specs = home.bundled_specs(ui.ctx(), context.workers);
    let mut found: Vec<&BundledSpec> = Vec::new();
    for spec in specs {
        let BundledSpec { group, name, about } = spec;
        if [group, name, about].iter().any(|text| text.to_lowercase().contains(&wanted)) {
            found.push(spec);
        }
    }
    for group in found.chunk_by(|a, b| a.group == b.group) {
        ui.add_space(spacing::M);
        if let Some(first) = group.first() {
            ui.label(strong(first.group.as_str()));
        }
        for spec in group {
            if spec_ui(ui, spec, !context.simulating).clicked() {
                commands.push(AppCommand::Simulate(spec.name.clone()));
            }
        }
    }
    let text = match (specs.is_empty(), is_listed) {
        (true, false) => "Listing specs…",
        (true, true) => "The bundled specs cannot be listed.",
        (false, _) if found.is_empty() => "No spec matches.",
        _ => return,
    };
    ui.weak(text);
}

/// A spec to simulate: its name, with its description below.
fn spec_ui(ui: &mut Ui, spec: &BundledSpec, enabled: bool) -> Response {
    let palette = ThemePalette::for_ui(ui);
    let indent = 34.0;
    let colour = if enabled { palette.accent } else { palette.weak_text };
    let room = ui.available_width() - indent;
    let small = FontId::proportional(text_size::CAPTION);
    let name = TextStyle::Body.resolve(ui.style());
    let name = elided(ui.painter(), &spec.name, name, colour, room);
    let about = ui.painter().layout(spec.about.clone(), small, palette.weak_text, room);
    let tall = name.size().y + about.size().y;
    let size = vec2(ui.available_width(), tall + 2.0 * spacing::S);
    let sense = if enabled { Sense::click() } else { Sense::hover() };
    let (rect, response) = ui.allocate_exact_size(size, sense);
    response.widget_info(|| WidgetInfo::labeled(Role::Button, enabled, spec.name.as_str()));
    let id = response.id;
    ui.ctx().accesskit_node_builder(id, |node| node.set_description(spec.about.clone()));
    let ground = rect.expand2(vec2(8.0, 0.0));
    if enabled && response.hovered() {
        ui.painter().rect_filled(ground, CornerRadius::same(6), palette.hover);
    }
    focus_ui(ui, &response, ground);
    let middle = egui::pos2(rect.left() + 11.0, rect.center().y);
    icons::paint(
        ui.painter(),
        Rect::from_center_size(middle, Vec2::splat(20.0)),
        Icon::Play,
        colour,
    );
    let at = rect.min + vec2(indent, spacing::S);
    let below = at + vec2(0.0, name.size().y);
    ui.painter().galley(at, name, colour);
    ui.painter().galley(below, about, palette.weak_text);
    response.on_hover_text("Simulate this spec and open the report")
}

fn recent_card_ui(
    ui: &mut Ui,
    home: &mut HomeScreen,
    context: &HomeContext<'_>,
    commands: &CommandQueue,
) {
    if context.prefs.recent.is_empty() {
        let text = "Reports and models you open are listed here.";
        ui.weak(text);
        return;
    }
    let exist = home.recent_exist(ui.ctx(), context);
    ScrollArea::vertical().max_height(420.0).show(ui, |ui| {
        ui.spacing_mut().item_spacing.y = spacing::XXS;
        for (recent, exists) in context.prefs.recent.iter().zip(exist) {
            let ticked = home.is_candidate(&recent.path);
            recent_ui(ui, recent, exists, ticked, commands);
        }
    });
    comparisons_ui(ui, home, context, commands);
}

/// The comparison of the two selected reports, and earlier comparisons.
fn comparisons_ui(
    ui: &mut Ui,
    home: &HomeScreen,
    context: &HomeContext<'_>,
    commands: &CommandQueue,
) {
    ui.add_space(spacing::S);
    if let Some((source, target)) = home.comparison() {
        let text = format!("Compare {} with {}", names(source).0, names(target).0);
        if row_ui(ui, Icon::Exchange, &text, "", true).clicked() {
            commands.push(AppCommand::Compare(source.to_owned(), target.to_owned()));
        }
    } else {
        let text = "Tick two reports to compare them.";
        ui.label(RichText::new(text).weak().size(text_size::CAPTION));
    }
    for (source, target) in context.prefs.recent_comparisons.iter().take(MAX_COMPARISONS) {
        ui.horizontal(|ui| {
            let text = format!("{} ↔ {}", names(source).0, names(target).0);
            let entry = egui::Button::new(&text).frame(false).truncate();
            let hint = format!("Compare\n{}\n{}", source.display(), target.display());
            if ui.add(entry).on_hover_text(hint).clicked() {
                commands.push(AppCommand::Compare(source.clone(), target.clone()));
            }
            if icon_button_ui(ui, Icon::Close, "Remove from recent comparisons").clicked() {
                let forget = AppCommand::RemoveRecentComparison(source.clone(), target.clone());
                commands.push(forget);
            }
        });
    }
}

/// The number of earlier comparisons in the list.
const MAX_COMPARISONS: usize = 8;

fn recent_ui(
    ui: &mut Ui,
    recent: &RecentReport,
    exists: bool,
    ticked: bool,
    commands: &CommandQueue,
) {
    let palette = ThemePalette::for_ui(ui);
    let (name, place) = names(&recent.path);
    // A model or spec cannot be compared before it is simulated.
    let is_simulated = is_simulated(&recent.path);
    let place = if is_spec(&recent.path) {
        format!("Spec in {place}")
    } else if is_simulated {
        format!("ONNX model in {place}")
    } else {
        place
    };
    ui.horizontal(|ui| {
        ui.add_enabled_ui(!is_simulated, |ui| {
            let mut tick = ticked;
            let tick = ui.checkbox(&mut tick, "").accessible_name(format!("Tick {name}"));
            if tick.on_hover_text("Tick two reports to compare them").clicked() {
                commands.push(AppCommand::ToggleComparisonCandidate(recent.path.clone()));
            }
        });
        let icons = 2.0 * (ICON_BUTTON + ui.spacing().item_spacing.x);
        let width = ui.available_width() - icons;
        let (rect, response) = ui.allocate_exact_size(vec2(width, 44.0), Sense::click());
        response.widget_info(|| WidgetInfo::labeled(Role::Button, true, format!("Open {name}")));
        if response.hovered() {
            ui.painter().rect_filled(rect, CornerRadius::same(6), palette.hover);
        }
        focus_ui(ui, &response, rect);
        let colour = if exists { palette.accent } else { palette.weak_text };
        let when = if exists { age(recent.opened_unix_seconds) } else { "missing".to_owned() };
        let small = FontId::proportional(text_size::CAPTION);
        let right = rect.right_center() - vec2(8.0, 0.0);
        let when_colour = if exists { palette.weak_text } else { palette.warning };
        let painted =
            ui.painter().text(right, Align2::RIGHT_CENTER, when, small.clone(), when_colour);
        let room = painted.left() - rect.left() - 20.0;
        let font = TextStyle::Body.resolve(ui.style());
        let title = elided(ui.painter(), &name, font, colour, room);
        ui.painter().galley(rect.min + vec2(8.0, 5.0), title, colour);
        let path = elided(ui.painter(), &place, small, palette.weak_text, room);
        ui.painter().galley(rect.min + vec2(8.0, 24.0), path, palette.weak_text);
        let opened = format_timestamp(recent.opened_unix_seconds);
        let shown = format!("{}\nOpened {opened}", recent.path.display());
        if response.on_hover_text(shown).clicked() {
            commands.push(AppCommand::Open(recent.path.clone()));
        }
        if is_simulated {
            ui.add_space(ICON_BUTTON + ui.spacing().item_spacing.x);
        } else if icon_button_ui(ui, Icon::Link, "Copy link to this report").clicked() {
            let place = NavigationState::default();
            ui.ctx().copy_text(ReportLink::new(&recent.path, place).to_string());
        }
        if icon_button_ui(ui, Icon::Close, "Remove from recent reports").clicked() {
            commands.push(AppCommand::RemoveRecentReport(recent.path.clone()));
        }
    });
}

/// The last part of a path, and the rest.
fn names(path: &std::path::Path) -> (String, String) {
    let path = absolute_path(path);
    let name = path.file_name().map(|name| name.to_string_lossy().into_owned());
    let place = path.parent().map(|parent| parent.display().to_string());
    (name.unwrap_or_else(|| path.display().to_string()), place.unwrap_or_default())
}

/// The time since a moment, in words.
fn age(unix_seconds: u64) -> String {
    let then = UNIX_EPOCH + Duration::from_secs(unix_seconds);
    let seconds = SystemTime::now().duration_since(then).map_or(0, |since| since.as_secs());
    age_in_words(seconds)
}

fn age_in_words(seconds: u64) -> String {
    match seconds {
        0..60 => "just now".to_owned(),
        60..3_600 => ago(seconds / 60, "minute"),
        3_600..86_400 => ago(seconds / 3_600, "hour"),
        86_400..5_184_000 => ago(seconds / 86_400, "day"),
        _ => ago(seconds / 2_592_000, "month"),
    }
}

fn ago(count: u64, unit: &str) -> String {
    let plural = if count == 1 { "" } else { "s" };
    format!("{count} {unit}{plural} ago")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ages_have_one_unit() {
        let cases = [(0, "just now"), (60, "1 minute ago"), (7_200, "2 hours ago")];
        for (seconds, words) in cases {
            assert_eq!(age_in_words(seconds), words);
        }
        assert_eq!(age_in_words(86_400 * 3), "3 days ago");
        assert_eq!(age_in_words(86_400 * 400), "13 months ago");
    }
}
