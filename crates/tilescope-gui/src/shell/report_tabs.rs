//! Several reports open at once: a tab for each, and for each comparison.
//!
//! What is shown is in [`AppSession::page`] and [`AppSession::selection`]; the others are parked here.

use crate::model::command::{AppCommand, CommandQueue};
use crate::model::navigation::carry_over_selection;
use crate::model::open_report::OpenReport;
use crate::model::selection::Selection;
use crate::model::view_state::ViewState;
use crate::shell::session::{AppSession, ReportPage};
use crate::theme::{ThemePalette, spacing};
use crate::views::VIEWS;
use crate::views::compare::ComparisonTarget;
use crate::widgets::elided_text::elided;
use crate::widgets::icons::Icon;
use crate::widgets::{focus_ui, icon_button_ui};
use egui::accesskit::Role;
use egui::{
    CornerRadius, Frame, Margin, Panel, ScrollArea, Sense, TextStyle, Ui, WidgetInfo, pos2, vec2,
};
use std::path::Path;

/// Widest name of a tab, in points.
const WIDEST: f32 = 220.0;

/// The tabs, in the order in which they were opened.
#[derive(Default)]
pub struct ReportTabs {
    /// `None` stands for the one that is shown.
    parked: Vec<Option<(ReportPage, Selection)>>,
    /// Place of the one that is shown; without one, that is the home screen.
    current: Option<usize>,
}

impl ReportTabs {
    pub(crate) fn count(&self) -> usize {
        self.parked.len()
    }

    /// Place of the one that is shown.
    pub(crate) fn current(&self) -> Option<usize> {
        self.current
    }
}

impl ReportPage {
    /// Title of its tab.
    pub(crate) fn title(&self) -> String {
        match &self.compared {
            Some(compared) => format!("{} ↔ {}", self.opened.name(), compared.target.name()),
            None => self.opened.name(),
        }
    }

    /// How each view looks at its report, for another report to be looked at in the same way.
    fn view_settings(&self) -> Vec<ViewState> {
        let known = VIEWS.iter().zip(&self.views);
        known.map(|(info, (_, view))| info.settings_of(view.state())).collect()
    }

    /// Whether it shows this report, or these two.
    fn shows(&self, path: &Path, with: Option<&Path>) -> bool {
        let compared = self.compared.as_ref().map(|compared| compared.target.path.as_path());
        self.opened.path == path && compared == with
    }
}

impl AppSession {
    /// Names of all tabs.
    pub fn tab_titles(&self) -> Vec<String> {
        let title = |parked: &Option<(ReportPage, Selection)>| match parked {
            Some((page, _)) => page.title(),
            None => self.page.as_ref().map(ReportPage::title).unwrap_or_default(),
        };
        self.tabs.parked.iter().map(title).collect()
    }

    /// Every page that is open, the one that is shown among them.
    pub(crate) fn pages(&self) -> impl Iterator<Item = &ReportPage> {
        let parked = self.tabs.parked.iter().flatten().map(|(page, _)| page);
        self.page.iter().chain(parked)
    }

    /// Shows a report, alone or compared, in the tab that has it already or in a new one.
    pub(super) fn show_page(&mut self, opened: OpenReport, with: Option<OpenReport>) {
        let path = with.as_ref().map(|with| with.path.clone());
        let shows = |page: &ReportPage| page.shows(&opened.path, path.as_deref());
        let known = (0..self.tabs.count()).find(|at| match &self.tabs.parked[*at] {
            Some((page, _)) => shows(page),
            None => self.page.as_ref().is_some_and(shows),
        });
        let mut selection = self.selection.clone();
        // A comparison goes on in the view from which it was asked for.
        let same = |page: &&ReportPage| with.is_some() && page.opened.path == opened.path;
        let asked_in = self.page.as_ref().filter(same).map(|page| page.view);
        let mut settings = Vec::new();
        let at = match known {
            Some(at) => {
                self.show_tab(Some(at));
                selection = std::mem::take(&mut self.selection);
                at
            }
            None => {
                settings = self.page.as_ref().map(ReportPage::view_settings).unwrap_or_default();
                self.park();
                self.tabs.parked.push(None);
                self.tabs.count() - 1
            }
        };
        let old = self.page.take();
        self.selection = match &old {
            Some(old) => carry_over_selection(&selection, &old.opened.report, &opened),
            None => selection.retain_existing(&opened.target),
        };
        let view = old.as_ref().map(|old| old.view).or(asked_in);
        let view = view.unwrap_or_default();
        let mut page = ReportPage::new(opened, view);
        page.compared = with.map(|with| Box::new(ComparisonTarget::new(with)));
        self.restore_page(&mut page, old);
        for ((_, fresh), settings) in page.views.iter_mut().zip(settings) {
            fresh.restore(&settings, &self.selection);
        }
        self.tabs.current = Some(at);
        self.page = Some(page);
    }

    /// Puts what is shown back into its tab.
    fn park(&mut self) {
        let selection = std::mem::take(&mut self.selection);
        if let (Some(at), Some(page)) = (self.tabs.current.take(), self.page.take()) {
            self.tabs.parked[at] = Some((page, selection));
        }
    }

    /// Shows a tab, or the home screen.
    pub(super) fn show_tab(&mut self, at: Option<usize>) {
        if at == self.tabs.current || at.is_some_and(|at| at >= self.tabs.count()) {
            return;
        }
        self.park();
        if let Some((page, selection)) = at.and_then(|at| self.tabs.parked[at].take()) {
            self.tabs.current = at;
            self.page = Some(page);
            self.selection = selection;
        }
    }

    /// Shows the tab after the one that is shown, or the one before.
    pub(super) fn next_tab(&mut self, forwards: bool) {
        let count = self.tabs.count();
        let next = match (self.tabs.current, forwards) {
            (_, _) if count == 0 => return,
            (None, true) => 0,
            (None, false) => count - 1,
            (Some(at), true) => (at + 1) % count,
            (Some(at), false) => (at + count - 1) % count,
        };
        self.show_tab(Some(next));
    }

    /// Closes a tab; its neighbour is shown, or the home screen after the last one.
    pub(super) fn close_tab(&mut self, at: usize) {
        if at >= self.tabs.count() {
            return;
        }
        let shown = self.tabs.current;
        if shown == Some(at) {
            self.page = None;
            self.tabs.current = None;
        }
        self.tabs.parked.remove(at);
        match shown {
            Some(shown) if shown > at => self.tabs.current = Some(shown - 1),
            Some(shown) if shown == at => {
                let next = self.tabs.count().checked_sub(1).map(|last| at.min(last));
                self.show_tab(next);
            }
            _ => {}
        }
    }
}

/// The tabs above everything else, where there are several reports or none is shown.
pub(crate) fn tabs_ui(ui: &mut Ui, session: &AppSession, commands: &CommandQueue) {
    let count = session.tabs.count();
    if count == 0 || (count == 1 && session.page.is_some()) {
        return;
    }
    let palette = ThemePalette::for_ui(ui);
    let frame = Frame::new().fill(palette.raised).inner_margin(Margin::symmetric(8, 3));
    Panel::top("report tabs").resizable(false).frame(frame).show(ui, |ui| {
        ScrollArea::horizontal().id_salt("tabs").show(ui, |ui| {
            ui.horizontal(|ui| {
                ui.spacing_mut().item_spacing.x = spacing::XS;
                if icon_button_ui(ui, Icon::Mark, "Home screen").clicked() {
                    commands.push(AppCommand::ShowTab(None));
                }
                for (at, title) in session.tab_titles().into_iter().enumerate() {
                    tab_ui(ui, (at, &title), session.tabs.current() == Some(at), commands);
                }
            });
        });
    });
}

fn tab_ui(ui: &mut Ui, (at, title): (usize, &str), chosen: bool, commands: &CommandQueue) {
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
    if response.on_hover_text(title).clicked() {
        commands.push(AppCommand::ShowTab(Some(at)));
    }
    if icon_button_ui(ui, Icon::Close, &format!("Close {title}")).clicked() {
        commands.push(AppCommand::CloseTab(at));
    }
}
