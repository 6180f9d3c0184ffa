//! Parts of all dialogs: a frame over everything else, and a title with a cross.

use crate::widgets::icon_button_ui;
use crate::widgets::icons::Icon;
use egui::{
    Align, Context, Frame, Id, Label, Layout, Margin, Modal, ModalResponse, RichText, ScrollArea,
    Ui,
};

/// Space between the edge of a dialog and what is in it.
pub(super) const MARGIN: i8 = 20;
/// The same of large dialogs in a narrow window.
const NARROW_MARGIN: i8 = 10;
/// Height of the title of a large dialog and of what is around it.
const AROUND: f32 = 96.0;

/// The margin of a dialog that needs all the room it can get.
pub(super) fn large_margin(context: &Context) -> i8 {
    if context.content_rect().width() < 600.0 { NARROW_MARGIN } else { MARGIN }
}

/// Shows a dialog over everything else, as wide as there is room up to `width`.
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

/// A heading with a cross at the right, which closes the dialog.
pub(super) fn heading_ui(ui: &mut Ui, title: &str, close: &str) {
    ui.horizontal(|ui| {
        ui.heading(title);
        ui.with_layout(Layout::right_to_left(Align::Center), |ui| cross_ui(ui, close));
    });
}

/// The same with a title that may be longer than there is room.
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

/// A large dialog with a title, whose contents scroll; whether it is to be closed.
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
