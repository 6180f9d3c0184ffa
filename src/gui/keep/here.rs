//! What a session does about places: where it is, going there, keeping and saving it.

use super::link::Link;
use super::notes::{Bookmark, Notes};
use super::place::{Place, existing, set_view_prefs, view_prefs};
use super::watch::Watch;
use crate::gui::saving::{Saving, Shown};
use crate::gui::session::{ReportPage, Selection, Session};
use crate::gui::views;
use egui::Context;
use std::path::PathBuf;

impl Session {
    /// What is looked at.
    pub fn place(&self) -> Option<Place> {
        let page = self.page.as_ref()?;
        let (_, view) = page.views.iter().find(|(name, _)| *name == page.view)?;
        Some(Place {
            view: page.view.to_owned(),
            selection: Selection { cycles: None, ..self.selection.clone() },
            state: view.state(),
            prefs: view_prefs(page.view, &self.prefs),
        })
    }

    /// A link to what is looked at.
    pub fn link(&self) -> Option<Link> {
        Some(Link::new(&self.page.as_ref()?.opened.path, self.place()?))
    }

    /// Shows a place of the open report; what does not exist there is said.
    pub fn go(&mut self, place: &Place) {
        let Some(page) = &mut self.page else { return };
        let Some(info) = views::VIEWS.iter().find(|info| info.name == place.view) else { return };
        page.view = info.name;
        let (selection, gone) = existing(&place.selection, &page.opened);
        self.selection = selection;
        self.messages.extend(gone);
        let mut strange = set_view_prefs(info.name, &place.prefs, &mut self.prefs);
        if let Some(view) = page.shown() {
            strange.extend(view.restore(&place.state, &self.selection));
        }
        if !strange.is_empty() {
            let words = strange.join(", ");
            self.messages.push(format!("{} has no settings like these: {words}", info.title));
        }
    }

    /// Remembers what is looked at, for undo.
    pub fn notice(&mut self, context: &Context) {
        let (time, held) = context.input(|input| (input.time, input.pointer.any_down()));
        let Some(place) = self.place().filter(|_| !held) else { return };
        if let Some(page) = &mut self.page
            && page.history.notice(place, time)
        {
            context.request_repaint_after_secs(0.2);
        }
    }

    pub(in crate::gui) fn back(&mut self, context: &Context, forwards: bool) {
        let time = context.input(|input| input.time);
        let Some(page) = &mut self.page else { return };
        let place = if forwards { page.history.redo(time) } else { page.history.undo(time) };
        if let Some(place) = place {
            self.go(&place);
        }
    }

    pub(in crate::gui) fn bookmark(&mut self) {
        let Some(link) = self.link() else { return };
        let Some(page) = &mut self.page else { return };
        let name = format!("{} {}", link.place.title(), page.notes.bookmarks.len() + 1);
        page.notes.add(name, &link);
        self.keep_notes();
    }

    pub(in crate::gui) fn write(&mut self, context: &Context, saving: Saving) {
        let Some((link, page)) = self.link().zip(self.page.as_ref()) else { return };
        let shown = Shown {
            opened: page.opened.clone(),
            compared: page.compared.as_ref().map(|with| with.target.path.clone()),
            view: page.view,
            link: link.to_string(),
        };
        match saving.start(context, shown) {
            Ok(pending) => self.savings.push(pending),
            Err(problem) => self.messages.push(problem),
        }
    }

    /// Writes bookmarks.
    fn keep_notes(&mut self) {
        let Some(page) = &mut self.page else { return };
        match page.notes.save() {
            Ok(message) => self.messages.extend(message),
            Err(problem) => self.messages.push(problem),
        }
    }

    /// Changes the list of bookmarks.
    pub(in crate::gui) fn set_bookmarks(&mut self, bookmarks: Vec<Bookmark>) {
        if let Some(page) = &mut self.page {
            page.notes.bookmarks = bookmarks;
            self.keep_notes();
        }
    }

    /// Gives a page what is kept of its report, and what is left of the page that showed it before.
    pub(in crate::gui) fn furnish(&mut self, page: &mut ReportPage, old: Option<ReportPage>) {
        let file = page.opened.report.path().to_owned();
        let (notes, message) = Notes::read(&file);
        page.notes = notes;
        self.messages.extend(message);
        page.watch = self.watches.then(|| Watch::new(&file));
        let Some(old) = old else { return };
        page.history = old.history;
        page.finder.open = old.finder.open;
        page.finder.text = old.finder.text;
        for ((_, fresh), (_, before)) in page.views.iter_mut().zip(&old.views) {
            fresh.restore(&before.state(), &self.selection);
        }
    }

    /// Reads what is shown again if its file has changed.
    pub(in crate::gui) fn reload_if_changed(&mut self, context: &Context) {
        let watch = self.page.as_mut().and_then(|page| page.watch.as_mut());
        if watch.is_some_and(|watch| watch.has_changed(context)) && self.opening.is_none() {
            self.reload(context);
        }
    }

    /// Tells how saving went.
    pub(in crate::gui) fn receive_saved(&mut self) {
        let messages = &mut self.messages;
        self.savings.retain(|pending| {
            let Some(ended) = pending.take() else { return true };
            messages.push(match ended {
                Ok(Ok(path)) => format!("Saved {}", path.display()),
                Ok(Err(problem)) => problem,
                Err(()) => "Saving broke down.".to_owned(),
            });
            false
        });
    }

    /// Goes to a place, in another report if it is there.
    pub(in crate::gui) fn follow(&mut self, context: &Context, link: Link) {
        let here = self.page.as_ref().map(|page| &page.opened.path);
        let here = here.and_then(|path| std::path::absolute(path).ok());
        if link.report.as_os_str().is_empty() || here.as_ref() == Some(&link.report) {
            self.go(&link.place);
        } else {
            let path = link.report.clone();
            self.asked = Some(link);
            self.start_opening(context, path);
        }
    }

    /// Opens a report, and goes to a place in it whatever report the link was made in.
    pub fn open_at(&mut self, context: &Context, path: PathBuf, link: Link) {
        self.asked = Some(link);
        self.start_opening(context, path);
    }
}
