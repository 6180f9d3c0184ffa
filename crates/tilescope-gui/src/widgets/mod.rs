//! Widgets shared by several views.

pub(crate) mod background_query;
pub(crate) mod background_task;
pub(crate) mod bottom_panel;
pub(crate) mod elided_text;
pub(crate) mod figure;
pub(crate) mod floor_plan;
pub(crate) mod heat_scale;
pub(crate) mod icons;
pub(crate) mod overview_strip;
pub(crate) mod pan_zoom_axis;
pub(crate) mod path_input;
pub(crate) mod plot_axis;
pub(crate) mod plot_marker;
pub(crate) mod query_state;
pub(crate) mod requested_control;
pub(crate) mod split_texture;
pub(crate) mod stack_graph;
pub(crate) mod table;
pub(crate) mod tile_graph;
pub(crate) mod tile_picker;
pub(crate) mod toolbar;

use crate::theme::fonts::strong;
use crate::theme::{ThemePalette, spacing, text_size};
use egui::accesskit::Role;
use egui::{
    Align, Align2, Button, CentralPanel, Color32, CornerRadius, EventFilter, FontId, Frame, Id,
    Key, Label, Layout, Rect, Response, RichText, Sense, Shape, Stroke, StrokeKind, TextEdit,
    TextStyle, Ui, Vec2, WidgetInfo, vec2,
};
use icons::Icon;
use requested_control::{ControlKind, takes_request};
use tilescope_report::units::IpuId;

/// The space between the edge of a page and its contents.
pub(crate) const MARGIN: f32 = 12.0;

/// The height of an entry of the side menu.
pub(crate) const MENU_ENTRY: f32 = 32.0;
/// The height of an entry of the side menu in a low window.
pub(crate) const LOW_MENU_ENTRY: f32 = 24.0;

/// Paints the ground of an entry in a list, if it is selected or hovered, and its frame if it has the
/// focus.
pub(crate) fn entry_ground_ui(ui: &Ui, response: &Response, chosen: bool, radius: u8) {
    let palette = ThemePalette::for_ui(ui);
    let ground = if chosen {
        Some(palette.chosen)
    } else if response.hovered() {
        Some(palette.hover)
    } else {
        None
    };
    if let Some(ground) = ground {
        ui.painter().rect_filled(response.rect, CornerRadius::same(radius), ground);
    }
    focus_ui(ui, response, response.rect);
}

/// An entry of the side menu with icon and text; the selected one is highlighted.
pub(crate) fn menu_entry_ui(
    ui: &mut Ui,
    icon: Icon,
    text: &str,
    (chosen, narrow): (bool, bool),
    height: f32,
) -> Response {
    let size = vec2(ui.available_width(), height);
    let (rect, response) = ui.allocate_exact_size(size, Sense::click());
    response.widget_info(|| WidgetInfo::selected(Role::Button, ui.is_enabled(), chosen, text));
    let palette = ThemePalette::for_ui(ui);
    entry_ground_ui(ui, &response, chosen, 6);
    let colour = if chosen { palette.accent } else { palette.text };
    let middle = if narrow { rect.center().x } else { rect.left() + 19.0 };
    let square = Rect::from_center_size(egui::pos2(middle, rect.center().y), Vec2::splat(18.0));
    icons::paint(ui.painter(), square, icon, colour);
    if narrow {
        return response.on_hover_text(text);
    }
    let at = egui::pos2(rect.left() + 38.0, rect.center().y);
    let font = TextStyle::Body.resolve(ui.style());
    ui.painter().text(at, Align2::LEFT_CENTER, text, font, colour);
    response
}

/// The side of a small square button.
pub(crate) const ICON_BUTTON: f32 = 26.0;

/// A small square button with an icon; `text` is its name and its tooltip.
pub(crate) fn icon_button_ui(ui: &mut Ui, icon: Icon, text: &str) -> Response {
    let (rect, response) = ui.allocate_exact_size(Vec2::splat(ICON_BUTTON), Sense::click());
    response.widget_info(|| WidgetInfo::labeled(Role::Button, ui.is_enabled(), text));
    let palette = ThemePalette::for_ui(ui);
    if response.hovered() {
        ui.painter().rect_filled(rect, CornerRadius::same(5), palette.hover);
    }
    focus_ui(ui, &response, rect);
    let colour = if response.hovered() { palette.text } else { palette.weak_text };
    icons::paint(ui.painter(), rect.shrink(5.0), icon, colour);
    response.on_hover_text(text)
}

/// The outline of the widget with the keyboard focus.
pub(crate) fn focus_ui(ui: &Ui, response: &Response, rect: Rect) {
    if response.has_focus() {
        let stroke = Stroke::new(2.0, ThemePalette::for_ui(ui).accent);
        ui.painter().rect_stroke(rect, CornerRadius::same(6), stroke, StrokeKind::Inside);
    }
}

/// The left and right arrow keys, which a widget keeps for itself.
pub(crate) const SIDE_ARROWS: EventFilter =
    EventFilter { horizontal_arrows: true, vertical_arrows: false, tab: false, escape: false };
/// All arrow keys, for a widget that keeps them for itself.
pub(crate) const ALL_ARROWS: EventFilter = EventFilter { vertical_arrows: true, ..SIDE_ARROWS };

/// Returns true if a widget has the focus. These keys are then its own and do not move the focus.
pub(crate) fn keeps_arrows(response: &Response, keys: EventFilter) -> bool {
    let has_focus = response.has_focus();
    if has_focus {
        response.ctx.memory_mut(|memory| memory.set_focus_lock_filter(response.id, keys));
    }
    has_focus
}

/// The row above or below the one at `place` of a list, if that row has the focus and an arrow key
/// was pressed. Left and right arrows stay with the row.
pub(crate) fn neighbour(response: &Response, place: usize, count: usize) -> Option<usize> {
    if !keeps_arrows(response, ALL_ARROWS) {
        return None;
    }
    let is_pressed = |key| response.ctx.input(|input| input.key_pressed(key));
    match (is_pressed(Key::ArrowUp), is_pressed(Key::ArrowDown)) {
        (true, false) => place.checked_sub(1),
        (false, true) => Some(place + 1).filter(|next| *next < count),
        _ => None,
    }
}

/// Shows the tabs of the view of this name, with a line below the selected one. Returns true if one
/// was clicked.
pub(crate) fn tabs_ui<T: Copy + PartialEq>(
    ui: &mut Ui,
    view: &str,
    tabs: &[(T, &str)],
    current: &mut T,
) -> bool {
    waiting_tabs_ui(ui, view, tabs, current, |_| None)
}

/// Returns true if a tab has this name. A count follows the name in parentheses.
fn is_tab(text: &str, name: &str) -> bool {
    text.strip_prefix(name).is_some_and(|rest| rest.is_empty() || rest.starts_with(" ("))
}

/// Tabs that may require a selection. Without one, a tab is dimmed, names the missing selection,
/// and opens on a sentence that requests it. Returns true if a tab was clicked.
pub(crate) fn waiting_tabs_ui<T: Copy + PartialEq>(
    ui: &mut Ui,
    view: &str,
    tabs: &[(T, &str)],
    current: &mut T,
    waits_for: impl Fn(T) -> Option<&'static str>,
) -> bool {
    let mut clicked = false;
    let palette = ThemePalette::for_ui(ui);
    let across = ui.available_rect_before_wrap().x_range();
    let rule = ui.painter().add(Shape::Noop);
    let bar = ui.horizontal_wrapped(|ui| {
        ui.spacing_mut().item_spacing = vec2(spacing::XXS, 0.0);
        for (tab, text) in tabs {
            let chosen = tab == current;
            let wanted = waits_for(*tab);
            let colour = match (chosen, wanted) {
                (true, _) => palette.accent,
                (false, Some(_)) => palette.weak_text,
                (false, None) => palette.text,
            };
            let font = TextStyle::Body.resolve(ui.style());
            let galley = ui.painter().layout_no_wrap((*text).to_owned(), font, colour);
            let size = vec2(galley.size().x + 24.0, 34.0);
            let (rect, response) = ui.allocate_exact_size(size, Sense::click());
            response.widget_info(|| WidgetInfo::selected(Role::Tab, true, chosen, text));
            if response.hovered() && !chosen {
                let ground = rect.shrink2(vec2(2.0, 4.0));
                ui.painter().rect_filled(ground, CornerRadius::same(5), palette.hover);
            }
            focus_ui(ui, &response, rect.shrink(2.0));
            let at = rect.center() - galley.size() / 2.0;
            ui.painter().galley(at, galley, colour);
            if chosen {
                let line = Rect::from_min_max(
                    egui::pos2(rect.left() + 6.0, rect.bottom() - 2.0),
                    egui::pos2(rect.right() - 6.0, rect.bottom()),
                );
                ui.painter().rect_filled(line, 1.0, palette.accent);
            }
            let requested =
                takes_request(ui.ctx(), view, ControlKind::Tab, |name| is_tab(text, name));
            if response.clicked() || requested {
                *current = *tab;
                clicked = true;
            }
            if let Some(wanted) = wanted {
                response.on_hover_text(wanted);
            }
        }
    });
    let line = Shape::hline(across, bar.response.rect.bottom() - 0.5, (1.0, palette.rule));
    ui.painter().set(rule, line);
    clicked
}

/// Shows contents in the space that the surrounding panels leave.
pub(crate) fn central_ui(ui: &mut Ui, contents: impl FnOnce(&mut Ui)) {
    let frame = Frame::new().fill(ThemePalette::for_ui(ui).page);
    CentralPanel::default().frame(frame).show(ui, contents);
}

/// The height of the tables below a graph: `share` of the available height, limited so that the
/// graph stays readable.
pub(crate) fn tables_height(ui: &Ui, share: f32) -> f32 {
    let height = ui.available_height();
    (height * share).min(height - 250.0).clamp(100.0, 460.0)
}

/// The height of an open drop-down from which it scrolls.
const CHOICE_HEIGHT: f32 = 420.0;

/// A choice between a few values, with its name in front.
pub(crate) fn choice_ui<T: Copy + PartialEq>(
    ui: &mut Ui,
    name: &str,
    choices: &[(T, &str)],
    current: T,
) -> Option<T> {
    let title = choices.iter().find(|(value, _)| *value == current).map_or("", |(_, text)| *text);
    let mut picked = None;
    ui.weak(name);
    let list = egui::ComboBox::from_id_salt(name).selected_text(title).height(CHOICE_HEIGHT);
    let shown = list.show_ui(ui, |ui| {
        for (value, text) in choices {
            if ui.selectable_label(*value == current, *text).clicked() {
                picked = Some(*value);
            }
        }
    });
    shown.response.accessible_name(name);
    picked.filter(|value| *value != current)
}

/// The IPUs of a replica by number, for a choice.
pub(crate) fn ipu_names(count: u32) -> impl Iterator<Item = (IpuId, String)> {
    (0..count).map(IpuId).map(|ipu| (ipu, format!("IPU {ipu}")))
}

/// Opens the choice of this name in the same `ui`, as if it were clicked.
pub(crate) fn open_choice(ui: &Ui, name: &str) {
    let button = ui.make_persistent_id(egui::IdSalt::new(name));
    ui.memory_mut(|memory| memory.request_focus(button));
    egui::Popup::open_id(ui.ctx(), button.with("popup"));
}

/// Shows a text box for a filter. The response reports changes.
pub(crate) fn search_ui(ui: &mut Ui, text: &mut String, hint: &str, width: f32) -> Response {
    let edit = TextEdit::singleline(text)
        .hint_text(RichText::new(hint).weak())
        .desired_width(width)
        .margin(egui::Margin::symmetric(8, 4));
    ui.add(edit).accessible_name(hint)
}

/// Shows a text box that finds text in the view, and a button that goes to the next match, as Enter
/// does. Returns the response of the box, and true to go to the next match.
pub(crate) fn find_ui(
    ui: &mut Ui,
    text: &mut String,
    (hint, width): (&str, f32),
    finds: bool,
) -> (Response, bool) {
    let box_ui = search_ui(ui, text, hint, width);
    let button = ui.add_enabled(finds, Button::new("Next"));
    let pressed = button.on_hover_text("Go to the next match (Enter)").clicked();
    let entered = box_ui.lost_focus() && ui.input(|input| input.key_pressed(Key::Enter));
    let next = pressed || entered;
    if next {
        box_ui.request_focus();
    }
    (box_ui, next)
}

/// A centred heading and sentence: the missing data, and the reason.
pub(crate) fn empty_state_ui(ui: &mut Ui, heading: &str, sentence: &str) {
    let space = (ui.available_height() * 0.36 - 20.0).clamp(8.0, 300.0);
    ui.vertical_centered(|ui| {
        ui.add_space(space);
        ui.label(strong(heading).size(text_size::SUBHEADING));
        ui.add_space(spacing::XXS);
        ui.set_max_width(460.0_f32.min(ui.available_width()));
        ui.weak(sentence);
    });
}

/// A row of a grid: a name, and a selectable value. Its formula, if any, is shown as a tooltip.
pub(crate) fn fact_row_ui(ui: &mut Ui, name: &str, value: &str, formula: &str) {
    ui.weak(name);
    let value = ui.add(Label::new(value).selectable(true).extend());
    if !formula.is_empty() {
        value.on_hover_text(formula);
    }
    ui.end_row();
}

/// A remark below its subject, in small text over several lines if needed.
pub(crate) fn remark_ui(ui: &mut Ui, words: impl Into<String>) {
    ui.add(Label::new(RichText::new(words).weak().size(text_size::SMALL)).wrap());
}

/// A sentence where a table would be.
pub(crate) fn hint_ui(ui: &mut Ui, sentence: &str) {
    ui.with_layout(Layout::top_down(Align::Center), |ui| {
        ui.add_space(spacing::XL);
        ui.weak(sentence);
    });
}

/// A note above a list that some of its rows are missing.
pub(crate) fn cut_list_ui(ui: &mut Ui, sentence: String) {
    let colour = ThemePalette::for_ui(ui).warning;
    ui.horizontal_wrapped(|ui| {
        ui.add_space(spacing::M);
        ui.label(RichText::new(sentence).color(colour));
    });
}

/// An error message, over several lines if needed.
pub(crate) fn error_ui(ui: &mut Ui, words: impl Into<String>) {
    let colour = ThemePalette::for_ui(ui).error;
    ui.add(Label::new(RichText::new(words).color(colour)).wrap());
}

/// A spinner with text beside it.
pub(crate) fn waiting_ui(ui: &mut Ui, words: &str) {
    ui.vertical_centered(|ui| {
        ui.add_space((ui.available_height() * 0.3).clamp(8.0, 200.0));
        ui.spinner();
        ui.weak(words);
    });
}

/// Adds the next part of a page to the shortest column, the first if several are equal.
pub(crate) fn in_shortest_column<T>(
    columns: &mut [Ui],
    part: impl FnOnce(&mut Ui) -> T,
) -> Option<T> {
    let top = |ui: &Ui| ui.cursor().top();
    let ui = columns.iter_mut().min_by(|one, other| top(one).total_cmp(&top(other)))?;
    // Columns would justify text.
    Some(ui.with_layout(Layout::top_down(Align::Min), part).inner)
}

/// A square of a colour and its meaning, for legends.
pub(crate) fn legend_ui(ui: &mut Ui, colour: Color32, text: &str) {
    let (rect, _) = ui.allocate_exact_size(vec2(11.0, 11.0), Sense::hover());
    let line = Stroke::new(1.0, ThemePalette::for_ui(ui).outline);
    ui.painter().rect(rect, CornerRadius::same(2), colour, line, StrokeKind::Inside);
    ui.label(RichText::new(text).font(FontId::proportional(text_size::SMALL)));
}

/// A part of a picture for screen readers. It does not react to the pointer, so hundreds of them
/// cost little.
pub(crate) fn node_ui(
    ui: &Ui,
    id: Id,
    rect: Rect,
    role: Role,
    words: impl FnOnce() -> (String, String),
) {
    let is_read = ui.ctx().accesskit_node_builder(id, |_| ()).is_some();
    if !is_read {
        return;
    }
    // The text is made before the node: the egui context is locked meanwhile, and `words` may read
    // the format of numbers from it.
    let (name, value) = words();
    ui.ctx().accesskit_node_builder(id, |node| {
        node.set_role(role);
        node.set_label(name);
        node.set_value(value);
        node.set_bounds(egui::accesskit::Rect {
            x0: f64::from(rect.left()),
            y0: f64::from(rect.top()),
            x1: f64::from(rect.right()),
            y1: f64::from(rect.bottom()),
        });
    });
}

/// Names a region for screen readers.
pub(crate) fn region_ui(ui: &Ui, id: Id, rect: Rect, role: Role, name: &str, value: &str) {
    let response = ui.interact(rect, id, Sense::hover());
    response.widget_info(|| WidgetInfo::labeled(role, true, name));
    ui.ctx().accesskit_node_builder(id, |node| node.set_value(value));
}
