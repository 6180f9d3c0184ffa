//! Help without a network: a searchable page for every view and for shared features.

use super::lane_picture::LanePicture;
use super::{OverlayState, heading_ui, scroll_height};
use crate::model::mechanism_page::{MECHANISMS, MechanismPage};
use crate::shell::session::AppSession;
use crate::theme::fonts::strong;
use crate::theme::{spacing, text_size};
use crate::views::VIEWS;
use crate::widgets::search_ui;
use egui::{Align, RichText, ScrollArea, Ui};

/// The pages other than those of the views.
const PAGES: [&str; 7] = [
    include_str!("../../../../../assets/help/opening.md"),
    include_str!("../../../../../assets/help/models.md"),
    include_str!("../../../../../assets/help/words.md"),
    include_str!("../../../../../assets/help/finding.md"),
    include_str!("../../../../../assets/help/keeping.md"),
    include_str!("../../../../../assets/help/saving.md"),
    concat!(
        "# What is new\n\nChanges by version, newest first.\n\n",
        include_str!("../../../../../CHANGELOG.md"),
    ),
];

/// All pages: those of the views, of shared features, and of mechanisms.
pub(crate) fn pages() -> impl Iterator<Item = &'static str> {
    let of_views = VIEWS.iter().map(|view| view.help);
    of_views.chain(PAGES).chain(MECHANISMS.map(MechanismPage::text))
}

/// The heading of the group of pages that begins at an index of [`pages`].
fn group_title(at: usize) -> Option<&'static str> {
    if at == 0 {
        Some("Views")
    } else if at == VIEWS.len() {
        Some("Features")
    } else if at == VIEWS.len() + PAGES.len() {
        Some("Mechanisms")
    } else {
        None
    }
}

/// The width from which the list of pages is beside the page.
const BESIDE: f32 = 620.0;
/// The width of that list.
const LIST: f32 = 230.0;

/// The text of a page's heading.
fn title(page: &str) -> &str {
    page.lines().next().unwrap_or_default().trim_start_matches("# ")
}

pub(crate) fn help_ui(ui: &mut Ui, overlay: &mut OverlayState, session: &AppSession) {
    heading_ui(ui, "Help");
    let shown = session.page().map(|page| page.view());
    let fresh = !overlay.was_painted;
    if fresh {
        let view = VIEWS.iter().find(|view| Some(view.id) == shown).map(|view| view.help);
        let wanted = overlay.mechanism.map(MechanismPage::text).or(view);
        let at = pages().position(|page| Some(page) == wanted);
        // Without a report, the first question is how to open one.
        overlay.selected_entry = at.unwrap_or(VIEWS.len());
    }
    let width = ui.available_width() - 18.0;
    let search = search_ui(ui, &mut overlay.typed, "Search help", width);
    if fresh {
        search.request_focus();
    }
    let wanted = overlay.typed.trim().to_lowercase();
    let found: Vec<(usize, &str)> =
        pages().enumerate().filter(|(_, page)| page.to_lowercase().contains(&wanted)).collect();
    let room = (scroll_height(ui) - 40.0).max(60.0);
    let page = found.iter().find(|(at, _)| *at == overlay.selected_entry).or(found.first());
    let page = page.map(|(_, page)| *page);
    if ui.available_width() < BESIDE {
        // In a small window the list of pages scrolls, to leave room for the page.
        let list = ScrollArea::vertical().id_salt("help pages").max_height(room * 0.4);
        let list = list.auto_shrink([false, true]).show(ui, |ui| {
            ui.horizontal_wrapped(|ui| list_ui(ui, &found, overlay, fresh));
        });
        let height = (room - list.inner_rect.height()).max(60.0);
        return scrolled_page_ui(ui, page, height);
    }
    ui.horizontal_top(|ui| {
        ui.vertical(|ui| {
            ui.set_width(LIST);
            let list = ScrollArea::vertical().id_salt("help pages").max_height(room);
            // Otherwise a list in a row is as high as a row.
            list.min_scrolled_height(room)
                .auto_shrink(false)
                .show(ui, |ui| list_ui(ui, &found, overlay, fresh));
        });
        ui.separator();
        ui.vertical(|ui| scrolled_page_ui(ui, page, room));
    });
}

/// The list of pages by group. Sets the one that is clicked.
fn list_ui(ui: &mut Ui, found: &[(usize, &str)], overlay: &mut OverlayState, fresh: bool) {
    for (at, page) in found {
        if let Some(group) = group_title(*at) {
            if *at > 0 {
                ui.end_row();
            }
            ui.weak(group);
        }
        let is_selected = *at == overlay.selected_entry;
        let entry = ui.selectable_label(is_selected, title(page));
        if fresh && is_selected {
            entry.scroll_to_me(Some(Align::Center));
        }
        if entry.clicked() {
            overlay.selected_entry = *at;
        }
    }
}

fn scrolled_page_ui(ui: &mut Ui, page: Option<&str>, height: f32) {
    let area = ScrollArea::vertical().id_salt(("help page", page.map(title))).max_height(height);
    area.min_scrolled_height(height).auto_shrink(false).show(ui, |ui| match page {
        Some(page) => page_ui(ui, page),
        None => drop(ui.label("No matching page.")),
    });
}

/// Shows the headings, paragraphs, tables and pictures of Markdown that our pages use.
fn page_ui(ui: &mut Ui, page: &str) {
    for block in page.split("\n\n") {
        if let Some(heading) = block.strip_prefix("## ").or_else(|| block.strip_prefix("### ")) {
            ui.label(strong(heading.trim()));
        } else if let Some(heading) = block.strip_prefix("# ") {
            ui.add_space(spacing::XS);
            ui.label(strong(heading.trim()).size(text_size::HEADING));
        } else if let Some(picture) = LanePicture::read(block) {
            picture.ui(ui);
        } else if block.starts_with('|') {
            table_ui(ui, block);
        } else {
            ui.label(plain(block.trim()));
        }
        ui.add_space(spacing::XS);
    }
}

fn table_ui(ui: &mut Ui, block: &str) {
    let columns = block.lines().next().map_or(2, |head| head.trim_matches('|').split('|').count());
    let grid = egui::Grid::new(("help table", block.len())).num_columns(columns);
    // Long cells are broken across lines: the dialog keeps its width.
    let widest = ui.available_width() / columns.max(1) as f32 - spacing::M;
    grid.max_col_width(widest).show(ui, |ui| {
        // The line below the head only separates it from the rows.
        for (at, line) in block.lines().enumerate().filter(|(at, _)| *at != 1) {
            for cell in line.trim_matches('|').split('|') {
                let text = RichText::new(plain(cell.trim()));
                ui.label(if at == 0 { text.weak() } else { text });
            }
            ui.end_row();
        }
    });
}

/// Removes the marks for keys and emphasis from a text.
fn plain(text: &str) -> String {
    text.replace(['`', '*'], "")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_page_has_a_heading_and_a_sentence() {
        for page in pages() {
            assert!(page.starts_with("# "), "{page}");
            let sentence = page.split("\n\n").nth(1).unwrap_or_default();
            assert!(sentence.ends_with('.') && !sentence.contains('\n'), "{}", title(page));
        }
    }

    #[test]
    fn help_pages_have_the_titles_of_their_views() {
        for view in VIEWS {
            assert_eq!(title(view.help), view.id.title());
        }
    }
}
