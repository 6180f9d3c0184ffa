//! What a session does about places: where it is, going there, keeping and saving it.

use crate::model::keep::{
    Bookmark, Link, Notes, Place, carried, existing, set_view_prefs, view_prefs,
};
use crate::model::message::Message;
use crate::model::saving::Saving;
use crate::model::selection::Selection;
use crate::shell::child::new_window;
use crate::shell::export_task::Shown;
use crate::shell::report_locations::notes_files;
use crate::shell::session::{ReportPage, Session};
use crate::shell::watch::Watch;
use egui::Context;
use std::path::{Path, PathBuf};

impl Session {
    /// What is looked at.
    pub(crate) fn place(&self) -> Option<Place> {
        let page = self.page.as_ref()?;
        let (_, view) = page.views.iter().find(|(name, _)| *name == page.view)?;
        Some(Place {
            view: page.view,
            selection: Selection { cycles: None, ..self.selection.clone() },
            state: view.state(),
            prefs: view_prefs(page.view, &self.prefs),
            beside: page.compared.as_ref().map(|with| Box::new(with.beside(page.view))),
        })
    }

    /// A link to what is looked at.
    pub fn link(&self) -> Option<Link> {
        Some(Link::new(&self.page.as_ref()?.opened.path, self.place()?))
    }

    /// Shows what is looked at in another window too.
    pub(crate) fn open_window(&mut self) {
        let link = self.link();
        let text = link.as_ref().map(Link::to_string).unwrap_or_default();
        let place = link.as_ref().map(|link| (link.report.as_path(), text.as_str()));
        self.messages.extend(new_window(place).err().map(Message::error));
    }

    /// Shows a place of the open report; what does not exist there is said.
    pub fn go(&mut self, place: &Place) {
        let Some(page) = &mut self.page else { return };
        let view = place.view;
        page.view = view;
        let (selection, gone) = existing(&place.selection, &page.opened);
        self.selection = selection;
        self.messages.extend(gone.into_iter().map(Message::warning));
        let mut strange = set_view_prefs(view, &place.prefs, &mut self.prefs);
        if let Some(view) = page.shown() {
            strange.extend(view.restore(&place.state, &self.selection));
        }
        if let Some(beside) = &place.beside {
            match page.compared.as_mut().filter(|with| same_file(&with.target.path, &beside.report))
            {
                Some(compared) => {
                    let (selection, gone) = existing(&beside.selection, &compared.target);
                    self.messages.extend(gone.into_iter().map(Message::warning));
                    strange.extend(compared.restore(view, selection, beside));
                }
                None => self.messages.push(Message::warning(format!(
                    "This place is in a comparison with {}, which is not shown.",
                    beside.report.display()
                ))),
            }
        }
        if !strange.is_empty() {
            let words = strange.join(", ");
            let words = format!("{} has no settings like these: {words}", view.title());
            self.messages.push(Message::warning(words));
        }
    }

    /// Remembers what is looked at, for undo.
    pub(crate) fn notice(&mut self, context: &Context) {
        let (time, held) = context.input(|input| (input.time, input.pointer.any_down()));
        let Some(place) = self.place().filter(|_| !held) else { return };
        if let Some(page) = &mut self.page
            && page.history.notice(place, time)
        {
            context.request_repaint_after_secs(0.2);
        }
    }

    pub(crate) fn back(&mut self, context: &Context, forwards: bool) {
        let time = context.input(|input| input.time);
        let Some(page) = &mut self.page else { return };
        let place = if forwards { page.history.redo(time) } else { page.history.undo(time) };
        if let Some(place) = place {
            self.go(&place);
        }
    }

    pub(crate) fn bookmark(&mut self) {
        let Some(link) = self.link() else { return };
        let Some(page) = &mut self.page else { return };
        let name = format!("{} {}", link.place.title(), page.notes.bookmarks.len() + 1);
        page.notes.add(name, &link);
        self.keep_notes();
    }

    pub(crate) fn write(&mut self, context: &Context, saving: Saving) {
        let Some((link, page)) = self.link().zip(self.page.as_ref()) else { return };
        let shown = Shown {
            opened: page.opened.clone(),
            compared: page.compared.as_ref().map(|with| with.target.path.clone()),
            view: page.view,
            link: link.to_string(),
        };
        match saving.start(context, shown) {
            Ok(pending) => self.savings.push(pending),
            Err(problem) => self.messages.push(Message::error(problem)),
        }
    }

    /// Writes bookmarks.
    fn keep_notes(&mut self) {
        let Some(page) = &mut self.page else { return };
        match page.notes.save() {
            Ok(message) => self.messages.extend(message.map(Message::warning)),
            Err(problem) => self.messages.push(Message::error(problem)),
        }
    }

    /// Changes the list of bookmarks.
    pub(crate) fn set_bookmarks(&mut self, bookmarks: Vec<Bookmark>) {
        if let Some(page) = &mut self.page {
            page.notes.bookmarks = bookmarks;
            self.keep_notes();
        }
    }

    /// Gives a page what is kept of its report, and what is left of the page that showed it before.
    pub(crate) fn furnish(&mut self, page: &mut ReportPage, old: Option<ReportPage>) {
        let file = page.opened.report.path().to_owned();
        let (notes, message) = Notes::read(notes_files(&file));
        page.notes = notes;
        self.messages.extend(message.map(Message::warning));
        let target = page.compared.as_ref().map(|with| with.target.report.path());
        let files = std::iter::once(file.as_path()).chain(target);
        page.watches = files.filter(|_| self.watches).map(Watch::new).collect();
        let Some(old) = old else { return };
        if let (Some(fresh), Some(before)) = (&mut page.compared, &old.compared) {
            let selection = carried(&before.selection, &before.target.report, &fresh.target);
            fresh.take_over(before, &selection);
        }
        page.history = old.history;
        page.finder.open = old.finder.open;
        page.finder.text = old.finder.text;
        for ((_, fresh), (_, before)) in page.views.iter_mut().zip(&old.views) {
            fresh.restore(&before.state(), &self.selection);
        }
    }

    /// Reads what is shown again if its file has changed.
    pub(crate) fn reload_if_changed(&mut self, context: &Context) {
        let watches = self.page.iter_mut().flat_map(|page| &mut page.watches);
        let changed = watches.filter_map(|watch| watch.has_changed(context).then_some(())).count();
        if changed > 0 && self.opening_path().is_none() {
            self.reload(context);
        }
    }

    /// Tells how saving went.
    pub(crate) fn receive_saved(&mut self) {
        let messages = &mut self.messages;
        self.savings.retain(|pending| {
            let Some(ended) = pending.take() else { return true };
            messages.push(match ended {
                Ok(Ok(path)) => Message::done(format!("Saved {}", path.display())),
                Ok(Err(problem)) => Message::error(problem),
                Err(()) => Message::error("Saving broke down."),
            });
            false
        });
    }

    /// Goes to a place, in another report if it is there.
    pub(crate) fn follow(&mut self, context: &Context, link: Link) {
        let Some(page) = &self.page else {
            return self.open_at(context, link.report.clone(), link);
        };
        let unnamed = link.report.as_os_str().is_empty();
        let here = unnamed || same_file(&page.opened.path, &link.report);
        let beside = match (&link.place.beside, &page.compared) {
            (Some(wanted), Some(shown)) => same_file(&wanted.report, &shown.target.path),
            (None, None) => true,
            _ => false,
        };
        if here && beside {
            return self.go(&link.place);
        }
        let path = if unnamed { page.opened.path.clone() } else { link.report.clone() };
        self.open_at(context, path, link);
    }

    /// Opens a report, and goes to a place in it whatever report the link was made in.
    pub(crate) fn open_at(&mut self, context: &Context, path: PathBuf, link: Link) {
        match &link.place.beside {
            Some(beside) => self.start_comparing(context, path, beside.report.clone()),
            None => self.start_opening(context, path),
        }
        self.asked = Some(link);
    }
}

/// Whether two paths name one report, as far as their words tell.
fn same_file(a: &Path, b: &Path) -> bool {
    let whole = |path: &Path| std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
    whole(a) == whole(b)
}
