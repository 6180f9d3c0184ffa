//! All state that outlives a frame and that several views share, and the one function that
//! changes it.

mod apply;
mod open;
mod selection;

use super::action::Wish;
use super::child::{BundledSpec, Simulation, bundled_specs};
use super::compare::Compared;
use super::finding::Finder;
use super::keep::{History, Link, Notes, Watch};
use super::message::Message;
use super::opening::{Demo, Opened, Pending, demos};
use super::overlay::Overlay;
use super::path_box::PathBox;
use super::prefs::{Prefs, Store};
use super::saving::Saved;
use super::tabs::Tabs;
use super::views::{self, View};
use super::what_if::{self, Passing, WhatIf};
use super::worker::{BackgroundQuery, QueryState, Workers};
use egui::Context;
pub use selection::Selection;
use std::path::PathBuf;

/// The open report and the state of its views.
pub struct ReportPage {
    /// The report.
    pub opened: Opened,
    /// Name of the view that is shown.
    pub view: &'static str,
    /// The views, in the order of the menu.
    pub views: Vec<(&'static str, Box<dyn View>)>,
    /// The report it is compared with.
    pub compared: Option<Box<Compared>>,
    /// Places that were looked at.
    pub history: History,
    /// Places that are kept.
    pub notes: Notes,
    /// What is looked for.
    pub finder: Finder,
    /// Notice that a file has changed.
    pub(super) watches: Vec<Watch>,
}

impl ReportPage {
    pub(super) fn new(opened: Opened, view: &'static str) -> Self {
        let views = views::VIEWS.iter().map(|info| (info.name, (info.create)())).collect();
        let (history, notes) = (History::default(), Notes::default());
        let (finder, compared, watches) = (Finder::default(), None, Vec::new());
        Self { opened, view, views, compared, history, notes, finder, watches }
    }

    /// The view that is shown.
    pub(crate) fn shown(&mut self) -> Option<&mut Box<dyn View>> {
        let name = self.view;
        self.views.iter_mut().find(|(view, _)| *view == name).map(|(_, view)| view)
    }
}

/// Two reports that are read to be compared.
type PendingPair = Pending<Result<(Opened, Opened), String>>;

/// Everything a window knows.
pub struct Session {
    /// What is remembered between starts.
    pub prefs: Prefs,
    store: Store,
    /// The open report that is shown; without one, that is the home screen.
    pub page: Option<ReportPage>,
    /// What the user has chosen.
    pub selection: Selection,
    /// The other reports that are open.
    pub tabs: Tabs,
    /// Reports of the home screen that are ticked for a comparison.
    pub ticked: Vec<PathBuf>,
    /// The path that is typed where the window asks what to compare with.
    pub asking_compare: Option<String>,
    /// The spec of a report that is being changed.
    pub what_if: Option<Box<WhatIf>>,
    /// Those of other reports.
    pub(super) other_what_ifs: Vec<WhatIf>,
    /// Whether it is shown.
    pub what_if_open: bool,
    /// Where reports of changed specs are written; without one, where they end with the session.
    pub(super) variants_in: Option<PathBuf>,
    /// Two reports being opened to be compared.
    opening_both: Option<(PathBuf, PathBuf, PendingPair)>,
    /// A report being opened.
    pub opening: Option<(PathBuf, Pending<Result<Opened, String>>)>,
    /// Pictures and tables being written.
    pub savings: Vec<Pending<Saved>>,
    /// The system's dialog.
    pub dialog: Option<Pending<Option<PathBuf>>>,
    /// A simulation under way.
    pub simulation: Option<Simulation>,
    /// Files that end with the session; after the simulation, which may be writing some.
    pub(super) passing: Passing,
    /// Things to tell the user, oldest first.
    pub messages: Vec<Message>,
    /// What lies over the view.
    pub overlay: Option<Overlay>,
    /// What the view that is shown is asked for in the next frame.
    pub wishes: Vec<Wish>,
    /// Path typed on the home screen.
    pub typed_path: PathBox,
    /// Reports that come with the program.
    pub demos: Vec<Demo>,
    /// Specs that come with the program.
    pub specs: BackgroundQuery<(), Vec<BundledSpec>>,
    /// Which recent reports still exist; asking may take long on disks far away.
    existing: BackgroundQuery<Vec<PathBuf>, Vec<bool>>,
    /// Counts background work.
    pub workers: Workers,
    /// Whether reports are read again when their files change.
    pub watches: bool,
    /// Where to go once the report is open.
    pub(super) asked: Option<Link>,
}

impl Session {
    /// A session that remembers nothing, for pictures and tests.
    pub(crate) fn detached() -> Self {
        let (store, prefs) = Store::nowhere();
        Self::new(store, prefs)
    }

    /// The user's session.
    pub(crate) fn of_user() -> Self {
        let (store, prefs, message) = Store::open();
        let mut session = Self::new(store, prefs);
        session.messages.extend(message.map(Message::warning));
        session.keep_variants_in(what_if::user_directory());
        what_if::sweep();
        session.demos = demos();
        session.watches = true;
        session
    }

    fn new(store: Store, prefs: Prefs) -> Self {
        Self {
            prefs,
            store,
            page: None,
            selection: Selection::default(),
            tabs: Tabs::default(),
            ticked: Vec::new(),
            asking_compare: None,
            what_if: None,
            other_what_ifs: Vec::new(),
            what_if_open: false,
            variants_in: None,
            opening_both: None,
            opening: None,
            savings: Vec::new(),
            dialog: None,
            simulation: None,
            passing: Passing::default(),
            messages: Vec::new(),
            overlay: None,
            wishes: Vec::new(),
            typed_path: PathBox::default(),
            demos: Vec::new(),
            specs: BackgroundQuery::default(),
            existing: BackgroundQuery::default(),
            workers: Workers::default(),
            watches: false,
            asked: None,
        }
    }

    /// Shows a report that is open already.
    pub fn show(&mut self, opened: Opened) {
        self.show_page(opened, None);
    }

    /// Keeps reports of changed specs in a directory; without one they end with the session.
    pub fn keep_variants_in(&mut self, directory: PathBuf) {
        self.variants_in = Some(directory);
    }

    /// Keeps preferences that have changed, and what was tried.
    pub(crate) fn save(&mut self, context: &Context) {
        self.keep_tried();
        let message = self.store.save(context, &mut self.prefs);
        self.messages.extend(message.map(Message::warning));
    }

    /// Keeps what is not kept yet, before the window is gone.
    pub(crate) fn finish(&mut self, context: &Context) {
        self.keep_tried();
        // Nobody is there any more to be told.
        let _ = self.store.finish(context, &mut self.prefs);
    }

    /// Asks for the list of bundled specs.
    pub(crate) fn bundled(&mut self, context: &Context) -> &[BundledSpec] {
        let workers = self.workers.clone();
        self.specs.compute(context, &workers, &(), |()| bundled_specs());
        self.specs.latest().map_or(&[], |specs| specs)
    }

    /// For each recent report, whether it still exists; yes until the opposite is known.
    pub(crate) fn recent_exist(&mut self, context: &Context) -> Vec<bool> {
        let paths: Vec<PathBuf> =
            self.prefs.recent.iter().map(|recent| recent.path.clone()).collect();
        let workers = self.workers.clone();
        let question = |paths: &Vec<PathBuf>| paths.iter().map(|path| path.exists()).collect();
        match self.existing.compute(context, &workers, &paths, question) {
            QueryState::Fresh(known) => known.to_vec(),
            _ => vec![true; paths.len()],
        }
    }
}
