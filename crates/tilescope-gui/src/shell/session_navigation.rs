//! Places in a session: the current one, navigation, bookmarks and saving.

use crate::model::export_request::ExportRequest;
use crate::model::message::StatusMessage;
use crate::model::navigation::{
    NavigationState, ReportBookmark, ReportLink, ReportNotes, carry_over_selection,
    existing_selection, set_view_prefs, view_prefs,
};
use crate::model::selection::Selection;
use crate::shell::export_task::ExportSource;
use crate::shell::report_file_watcher::ReportFileWatcher;
use crate::shell::report_locations::notes_files;
use crate::shell::session::{AppSession, ReportPage};
use crate::shell::simulation_process::new_window;
use egui::Context;
use std::path::{Path, PathBuf};

impl AppSession {
    /// The current place.
    pub(crate) fn navigation_state(&self) -> Option<NavigationState> {
        let page = self.page.as_ref()?;
        let (_, view) = page.views.iter().find(|(name, _)| *name == page.view)?;
        Some(NavigationState {
            view: page.view,
            selection: Selection { cycles: None, ..self.selection.clone() },
            state: view.state(),
            prefs: view_prefs(page.view, &self.prefs),
            target: page
                .compared
                .as_ref()
                .map(|with| Box::new(with.target_navigation_state(page.view))),
        })
    }

    /// A link to what is looked at.
    pub fn link(&self) -> Option<ReportLink> {
        Some(ReportLink::new(&self.page.as_ref()?.opened.path, self.navigation_state()?))
    }

    /// Shows what is looked at in another window too.
    pub(crate) fn open_window(&mut self) {
        let link = self.link();
        let text = link.as_ref().map(ReportLink::to_string).unwrap_or_default();
        let place = link.as_ref().map(|link| (link.report.as_path(), text.as_str()));
        self.messages
            .extend(new_window(place).err().map(|error| StatusMessage::error(error.to_string())));
    }

    /// Shows a place of the open report; what does not exist there is said.
    pub fn go_to(&mut self, place: &NavigationState) {
        let Some(page) = &mut self.page else { return };
        let view = place.view;
        page.view = view;
        let (selection, gone) = existing_selection(&place.selection, &page.opened);
        self.selection = selection;
        self.messages.extend(gone.into_iter().map(StatusMessage::warning));
        let mut strange = set_view_prefs(view, &place.prefs, &mut self.prefs);
        if let Some(view) = page.shown() {
            strange.extend(view.restore(&place.state, &self.selection));
        }
        if let Some(beside) = &place.target {
            match page.compared.as_mut().filter(|with| same_file(&with.target.path, &beside.report))
            {
                Some(compared) => {
                    let (selection, gone) = existing_selection(&beside.selection, &compared.target);
                    self.messages.extend(gone.into_iter().map(StatusMessage::warning));
                    strange.extend(compared.restore(view, selection, beside));
                }
                None => self.messages.push(StatusMessage::warning(format!(
                    "This place belongs to a comparison with {}, which is not open.",
                    beside.report.display()
                ))),
            }
        }
        if !strange.is_empty() {
            let words = strange.join(", ");
            let words = format!("{}: unknown settings ignored: {words}", view.title());
            self.messages.push(StatusMessage::warning(words));
        }
    }

    /// Remembers what is looked at, for undo.
    pub(crate) fn record_navigation(&mut self, context: &Context) {
        let (time, held) = context.input(|input| (input.time, input.pointer.any_down()));
        let Some(place) = self.navigation_state().filter(|_| !held) else { return };
        if let Some(page) = &mut self.page
            && page.history.record(place, time)
        {
            context.request_repaint_after_secs(0.2);
        }
    }

    pub(crate) fn undo_or_redo(&mut self, context: &Context, forwards: bool) {
        let time = context.input(|input| input.time);
        let Some(page) = &mut self.page else { return };
        let place = if forwards { page.history.redo(time) } else { page.history.undo(time) };
        if let Some(place) = place {
            self.go_to(&place);
        }
    }

    pub(crate) fn bookmark(&mut self) {
        let Some(link) = self.link() else { return };
        let Some(page) = &mut self.page else { return };
        let name = format!("{} {}", link.place.title(), page.notes.bookmarks.len() + 1);
        page.notes.add(name, &link);
        self.save_notes();
    }

    pub(crate) fn start_export(&mut self, context: &Context, saving: ExportRequest) {
        let Some((link, page)) = self.link().zip(self.page.as_ref()) else { return };
        let shown = ExportSource {
            opened: page.opened.clone(),
            compared: page.compared.as_ref().map(|with| with.target.path.clone()),
            view: page.view,
            link: link.to_string(),
        };
        match saving.start(context, shown) {
            Ok(pending) => self.exports.push(pending),
            Err(error) => self.messages.push(StatusMessage::error(error.to_string())),
        }
    }

    fn save_notes(&mut self) {
        let Some(page) = &mut self.page else { return };
        match page.notes.save() {
            Ok(message) => self.messages.extend(message.map(StatusMessage::warning)),
            Err(error) => self.messages.push(StatusMessage::error(error.to_string())),
        }
    }

    /// Changes the list of bookmarks.
    pub(crate) fn set_bookmarks(&mut self, bookmarks: Vec<ReportBookmark>) {
        if let Some(page) = &mut self.page {
            page.notes.bookmarks = bookmarks;
            self.save_notes();
        }
    }

    /// Gives a page what is kept of its report, and what is left of the page that showed it before.
    pub(crate) fn restore_page(&mut self, page: &mut ReportPage, old: Option<ReportPage>) {
        let file = page.opened.report.path().to_owned();
        let (notes, message) = ReportNotes::read(notes_files(&file));
        page.notes = notes;
        self.messages.extend(message.map(StatusMessage::warning));
        let target = page.compared.as_ref().map(|with| with.target.report.path());
        let files = std::iter::once(file.as_path()).chain(target);
        page.file_watchers =
            files.filter(|_| self.watch_files).map(ReportFileWatcher::new).collect();
        let Some(old) = old else { return };
        if let (Some(fresh), Some(before)) = (&mut page.compared, &old.compared) {
            let selection =
                carry_over_selection(&before.selection, &before.target.report, &fresh.target);
            fresh.inherit_from(before, &selection);
        }
        page.history = old.history;
        page.search.open = old.search.open;
        page.search.text = old.search.text;
        for ((_, fresh), (_, before)) in page.views.iter_mut().zip(&old.views) {
            fresh.restore(&before.state(), &self.selection);
        }
    }

    /// Reads what is shown again if its file has changed.
    pub(crate) fn reload_if_changed(&mut self, context: &Context) {
        let watches = self.page.iter_mut().flat_map(|page| &mut page.file_watchers);
        let changed = watches.filter_map(|watch| watch.has_changed(context).then_some(())).count();
        if changed > 0 && self.opening_path().is_none() {
            self.reload(context);
        }
    }

    /// Tells how saving went.
    pub(crate) fn poll_exports(&mut self) {
        let messages = &mut self.messages;
        self.exports.retain(|pending| {
            let Some(ended) = pending.poll() else { return true };
            messages.push(match ended {
                Ok(Ok(path)) => StatusMessage::done(format!("Saved {}", path.display())),
                Ok(Err(error)) => StatusMessage::error(error.to_string()),
                Err(()) => StatusMessage::error("Saving failed."),
            });
            false
        });
    }

    /// Goes to a place, in another report if it is there.
    pub(crate) fn follow_link(&mut self, context: &Context, link: ReportLink) {
        let Some(page) = &self.page else {
            return self.open_at(context, link.report.clone(), link);
        };
        let unnamed = link.report.as_os_str().is_empty();
        let here = unnamed || same_file(&page.opened.path, &link.report);
        let beside = match (&link.place.target, &page.compared) {
            (Some(wanted), Some(shown)) => same_file(&wanted.report, &shown.target.path),
            (None, None) => true,
            _ => false,
        };
        if here && beside {
            return self.go_to(&link.place);
        }
        let path = if unnamed { page.opened.path.clone() } else { link.report.clone() };
        self.open_at(context, path, link);
    }

    /// Opens a report, and goes to a place in it whatever report the link was made in.
    pub(crate) fn open_at(&mut self, context: &Context, path: PathBuf, link: ReportLink) {
        match &link.place.target {
            Some(beside) => self.start_comparing(context, path, beside.report.clone()),
            None => self.start_opening(context, path),
        }
        self.pending_link = Some(link);
    }
}

/// Whether two paths name one report, as far as their words tell.
fn same_file(a: &Path, b: &Path) -> bool {
    let whole = |path: &Path| std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
    whole(a) == whole(b)
}
