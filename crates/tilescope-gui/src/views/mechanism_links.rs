//! Links from what names a mechanism to its page of help.

use crate::model::command::{AppCommand, CommandQueue};
use crate::model::mechanism_page::MechanismPage;
use crate::theme::text_size;
use egui::accesskit::Role;
use egui::{Link, RichText, Ui, WidgetInfo};

/// Shows small links to the pages.
pub(crate) fn mechanism_links_ui(ui: &mut Ui, commands: &CommandQueue, pages: &[MechanismPage]) {
    if pages.is_empty() {
        return;
    }
    ui.horizontal_wrapped(|ui| {
        ui.label(RichText::new("Help:").weak().size(text_size::SMALL));
        for page in pages {
            if mechanism_link_ui(ui, *page, page.title()) {
                commands.push(AppCommand::ShowMechanism(*page));
            }
        }
    });
}

/// Shows a small link to a page. Returns true if it was clicked.
pub(crate) fn mechanism_link_ui(ui: &mut Ui, page: MechanismPage, words: &str) -> bool {
    let link = ui.add(Link::new(RichText::new(words).size(text_size::SMALL)));
    let name = format!("Help: {}", page.title());
    link.widget_info(|| WidgetInfo::labeled(Role::Link, true, &name));
    link.on_hover_text("How it works, and its keys in a spec").clicked()
}
