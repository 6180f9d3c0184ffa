//! Shared parts of dialogs: a frame over everything else, and a title with a close button.

use crate::widgets::icon_button_ui;
use crate::widgets::icons::Icon;
use egui::{
    Align, Context, Frame, Id, Label, Layout, Margin, Modal, ModalResponse, RichText, ScrollArea,
    Ui,
};

/// The space between the edge of a dialog and its contents.
pub(super) const MARGIN: i8 = 20;
/// The margin of large dialogs in a narrow window.
const NARROW_MARGIN: i8 = 10;
/// The height of the title of a large dialog and its surroundings.
const AROUND: f32 = 96.0;

/// The margin of a dialog that needs all available space.
pub(super) fn large_margin(context: &Context) -> i8 {
    if context.content_rect().width() < 600.0 { NARROW_MARGIN } else { MARGIN }
}

/// Shows a dialog over everything else, at most `width` wide.
pub(super) fn dialog_ui<R>(
    context: &Context,
    name: &'static str,
    (width, margin): (f32, i8),
    contents: impl FnOnce(&mut Ui) -> R,
) -> ModalResponse<R> {
    let frame = Frame::window(&context.global_style()).inner_margin(Margin::same(margin));
    Modal::new(Id::unique(name)).frame(frame).show(context, |ui| {
        let room = context.content_rect().width() - 2.0 * f32::from(margin) - 20.0;
        ui.set_width(width.min(room));
        contents(ui)
    })
}

/// A heading with a button at the right that closes the dialog.
pub(super) fn heading_ui(ui: &mut Ui, title: &str, close: &str) {
    ui.horizontal(|ui| {
        ui.heading(title);
        ui.with_layout(Layout::right_to_left(Align::Center), |ui| cross_ui(ui, close));
    });
}

/// A heading with a title that may be longer than the available width.
pub(super) fn long_heading_ui(ui: &mut Ui, title: String, close: &str) {
    ui.horizontal(|ui| {
        ui.with_layout(Layout::right_to_left(Align::Center), |ui| {
            cross_ui(ui, close);
            ui.with_layout(Layout::left_to_right(Align::Center), |ui| {
                ui.add(Label::new(RichText::new(title).heading()).truncate());
            });
        });
    });
}

fn cross_ui(ui: &mut Ui, close: &str) {
    if icon_button_ui(ui, Icon::Close, close).clicked() {
        ui.close();
    }
}

/// Shows a large dialog with a title and scrolling contents. Returns true if it should be closed.
pub(super) fn large_dialog_ui(
    context: &Context,
    name: &'static str,
    width: f32,
    (title, close): (String, &str),
    contents: impl FnOnce(&mut Ui),
) -> bool {
    let response = dialog_ui(context, name, (width, large_margin(context)), |ui| {
        long_heading_ui(ui, title, close);
        let height = (context.content_rect().height() - AROUND).max(120.0);
        let area = ScrollArea::vertical().id_salt(name).max_height(height);
        area.min_scrolled_height(height).auto_shrink([false, true]).show(ui, contents);
    });
    response.should_close()
}
