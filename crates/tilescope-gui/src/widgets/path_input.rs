//! A text box for the path of a report or model, with a list of completions. The arrow keys move
//! through the list. Enter accepts the highlighted entry: it opens a file and descends into a
//! directory.

use crate::theme::{ThemePalette, spacing, text_size};
use crate::widgets::background_query::{BackgroundQuery, BackgroundWorkers};
use crate::widgets::elided_text::without_middle;
use crate::widgets::focus_ui;
use egui::accesskit::Role;
use egui::text::{CCursor, CCursorRange};
use egui::text_edit::TextEditState;
use egui::{
    Align2, Button, CornerRadius, FontId, Id, Key, Margin, Modifiers, Rect, RichText, ScrollArea,
    Sense, TextEdit, TextStyle, Ui, WidgetInfo, pos2, vec2,
};
use std::path::{Path, PathBuf, is_separator};
use tilescope_report::remote::is_remote;
use tilescope_report::{REPORT_FILE, holds_report};

/// The height of an entry of the list.
const ENTRY: f32 = 26.0;

/// The extension of an ONNX file.
const MODEL_EXTENSION: &str = "onnx";

/// Returns true if a path has the name of an ONNX file.
pub(crate) fn is_model(path: &Path) -> bool {
    path.extension().is_some_and(|end| end.eq_ignore_ascii_case(MODEL_EXTENSION))
}

/// The extension of a spec.
const SPEC_EXTENSION: &str = "toml";

/// Returns true if a path has the name of a spec.
pub(crate) fn is_spec(path: &Path) -> bool {
    path.extension().is_some_and(|end| end.eq_ignore_ascii_case(SPEC_EXTENSION))
}

/// Returns true if a path has the name of a file that is simulated before there is a report: a
/// model or a spec.
pub(crate) fn is_simulated(path: &Path) -> bool {
    is_model(path) || is_spec(path)
}

/// Returns true if an existing path is a model or a spec. A directory belongs to a report,
/// regardless of its name.
pub(crate) fn is_simulated_file(path: &Path) -> bool {
    is_simulated(path) && !path.is_dir()
}

/// The extension of a file of search results.
const RESULTS_EXTENSION: &str = "db";

/// Returns true if a path has the name of a file of results. A directory belongs to a report,
/// regardless of its name.
pub(crate) fn is_results_file(path: &Path) -> bool {
    let is_named = path.extension().is_some_and(|end| end.eq_ignore_ascii_case(RESULTS_EXTENSION));
    is_named && !path.is_dir()
}

/// The kinds of files that a box accepts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ListedFiles {
    Reports,
    Models,
    ReportsAndModels,
}

impl ListedFiles {
    /// Returns true if a file is of this kind, judged by its name. A file that is not a model
    /// may be a report.
    pub(crate) fn contains(self, path: &Path) -> bool {
        match self {
            Self::Reports => !is_simulated(path),
            Self::Models => is_model(path),
            Self::ReportsAndModels => true,
        }
    }

    /// The extensions of the files.
    pub(crate) fn extensions(self) -> &'static [&'static str] {
        match self {
            Self::Reports => &["pop", "capnp"],
            Self::Models => &[MODEL_EXTENSION],
            Self::ReportsAndModels => {
                &["pop", "capnp", MODEL_EXTENSION, SPEC_EXTENSION, RESULTS_EXTENSION]
            }
        }
    }

    /// The hint in the empty box.
    pub(crate) const fn hint(self) -> &'static str {
        match self {
            Self::Reports => "Path of a directory, .pop or .capnp file",
            Self::Models => "Path of an .onnx file",
            Self::ReportsAndModels => "Path of a directory, .pop, .capnp, .onnx, .toml or .db file",
        }
    }

    /// The text if nothing is found.
    pub(crate) fn nothing(self) -> &'static str {
        match self {
            Self::Reports => "No report or directory has this name.",
            Self::Models => "No model or directory has this name.",
            Self::ReportsAndModels => "No report, model, spec or directory has this name.",
        }
    }
}

/// An entry that can be selected.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct OfferedPath {
    pub path: PathBuf,
    /// True if it is of the accepted kind; otherwise it is a directory to descend into.
    pub is_wanted: bool,
}

/// A group of known reports below a heading.
pub(crate) struct KnownReports {
    pub heading: &'static str,
    pub paths: Vec<PathBuf>,
}

/// The texts of a box.
#[derive(Clone, Copy)]
pub(crate) struct PathInputTexts {
    /// The name of the box.
    pub label: &'static str,
    /// The label of the button beside it.
    pub button: &'static str,
    /// The hint in the empty box.
    pub hint: &'static str,
}

/// The typed text and its completions.
pub(crate) struct PathInput {
    pub text: String,
    /// The id of the box.
    id: Id,
    listed: ListedFiles,
    /// The directory for relative paths.
    base: PathBuf,
    /// True if the box takes the focus in the next frame.
    wants_focus: bool,
    /// The index of the entry that Enter accepts.
    highlighted: usize,
    /// The contents of a directory.
    listing: BackgroundQuery<PathBuf, Vec<OfferedPath>>,
    /// The known reports that still exist; the check may be slow on network disks.
    existing: BackgroundQuery<Vec<PathBuf>, Vec<PathBuf>>,
}

/// A line of the list.
enum OfferedRow<'a> {
    Heading(String),
    /// An entry, and its index among entries.
    Entry(usize, &'a OfferedPath),
}

impl PathInput {
    /// A box that resolves paths relative to a directory, or to the working directory.
    pub(crate) fn new(name: &'static str, base: Option<PathBuf>, listed: ListedFiles) -> Self {
        // Without a working directory, only absolute paths are valid.
        let base = base.or_else(|| std::env::current_dir().ok()).unwrap_or_default();
        Self {
            text: String::new(),
            id: Id::unique(("path", name)),
            listed,
            base,
            wants_focus: false,
            highlighted: 0,
            listing: BackgroundQuery::default(),
            existing: BackgroundQuery::default(),
        }
    }

    /// The listed directory, and the filter for the names in it.
    fn place(&self) -> (PathBuf, &str) {
        let typed = self.text.trim();
        let start = typed.rfind(is_separator).map_or(0, |at| at + 1);
        let (directory, filter) = typed.split_at(start);
        (self.whole(directory), filter)
    }

    /// A typed path as an absolute path.
    fn whole(&self, typed: &str) -> PathBuf {
        match (typed.strip_prefix("~/"), std::env::var_os("HOME")) {
            (Some(rest), Some(home)) => Path::new(&home).join(rest),
            _ => self.base.join(typed),
        }
    }

    /// The listed directory.
    pub(crate) fn directory(&self) -> PathBuf {
        self.place().0
    }

    /// Changes to a directory and lists its entries.
    pub(crate) fn look_in(&mut self, ui: &Ui, directory: &Path) {
        self.highlighted = 0;
        match directory.to_str() {
            Some(path) => self.text = format!("{}/", path.trim_end_matches(is_separator)),
            // A path that cannot be typed is listed anyway.
            None => {
                directory.clone_into(&mut self.base);
                self.text.clear();
            }
        }
        let end = CCursorRange::one(CCursor::new(self.text.chars().count()));
        let mut state = TextEditState::load(ui.ctx(), self.id).unwrap_or_default();
        state.cursor.set_char_range(Some(end));
        state.store(ui.ctx(), self.id);
        self.focus();
    }

    /// Changes to the parent of the listed directory.
    pub(crate) fn look_in_parent(&mut self, ui: &Ui) {
        let (directory, _) = self.place();
        if let Some(parent) = directory.parent() {
            self.look_in(ui, parent);
        }
    }

    /// Moves the cursor into the box.
    pub(crate) fn focus(&mut self) {
        self.wants_focus = true;
    }

    /// The report or model that Enter would accept; `None` for a directory.
    pub(crate) fn highlighted_file<'a>(&self, offers: &'a PathOffers) -> Option<&'a Path> {
        let offered = offers.entries().nth(self.highlighted)?;
        if offered.is_wanted { Some(offered.path.as_path()) } else { None }
    }

    /// The completions: known reports, then the contents of the typed directory.
    pub(crate) fn offers(
        &mut self,
        ui: &Ui,
        workers: &BackgroundWorkers,
        known: Vec<KnownReports>,
    ) -> PathOffers {
        let (directory, filter) = self.place();
        let filter = filter.to_owned();
        let typed_path = self.text.trim().contains(is_separator);
        let paths: Vec<PathBuf> = known.iter().flat_map(|group| group.paths.clone()).collect();
        let existing =
            self.existing.compute(ui.ctx(), workers, &paths, |paths| existing_paths(paths));
        let existing = existing.fresh_only();
        let mut groups = Vec::new();
        for group in known.into_iter().filter(|_| !typed_path) {
            let mut entries = Vec::new();
            for path in group.paths {
                let exists = existing.answer().is_none_or(|existing| existing.contains(&path));
                if exists && contains(&path.to_string_lossy(), &filter) {
                    entries.push(OfferedPath { path, is_wanted: true });
                }
            }
            groups.push((group.heading.to_owned(), entries));
        }
        let listed = self.listed;
        let list = move |directory: &PathBuf| entries_of(directory, listed);
        let listing = self.listing.compute(ui.ctx(), workers, &directory, list).fresh_only();
        let is_listed = listing.answer().is_some();
        if let Some(listing) = listing.answer() {
            groups.push((directory.display().to_string(), matching(listing, &filter)));
        }
        groups.retain(|(_, entries): &(String, Vec<OfferedPath>)| !entries.is_empty());
        PathOffers { groups, is_listed }
    }

    /// Shows the box with its button. Returns the accepted path.
    pub(crate) fn box_ui(
        &mut self,
        ui: &mut Ui,
        texts: PathInputTexts,
        offers: &PathOffers,
    ) -> Option<PathBuf> {
        let id = self.id;
        let last = offers.entries().count().saturating_sub(1);
        let mut entered = false;
        if ui.memory(|memory| memory.has_focus(id)) {
            // Handled before the text box receives the keys.
            ui.input_mut(|input| {
                let mut pressed = |key| input.consume_key(Modifiers::NONE, key);
                if pressed(Key::ArrowDown) {
                    self.highlighted += 1;
                }
                if pressed(Key::ArrowUp) {
                    self.highlighted = self.highlighted.saturating_sub(1);
                }
                entered = pressed(Key::Enter);
            });
        }
        self.highlighted = self.highlighted.min(last);
        ui.horizontal(|ui| {
            let button = Button::new(texts.button);
            let room = 24.0 + 8.0 * texts.button.len() as f32 + ui.spacing().item_spacing.x;
            let edit = TextEdit::singleline(&mut self.text)
                .id(id)
                .hint_text(RichText::new(texts.hint).weak())
                .desired_width(ui.available_width() - room - 18.0)
                .margin(Margin::symmetric(8, 5));
            let edit = ui.add(edit).accessible_name(texts.label);
            if edit.changed() {
                self.highlighted = 0;
            }
            if std::mem::take(&mut self.wants_focus) {
                edit.request_focus();
            }
            let something = !self.text.trim().is_empty() || offers.entries().next().is_some();
            entered |= ui.add_enabled(something, button).clicked();
        });
        if !entered {
            return None;
        }
        match offers.entries().nth(self.highlighted) {
            Some(offered) => self.take(ui, offered.clone()),
            None => self.typed_path(),
        }
    }

    /// The typed path, if no completion matches it. Opening it shows the error.
    fn typed_path(&self) -> Option<PathBuf> {
        match self.text.trim() {
            "" => None,
            link if link.starts_with("tilescope:") || is_remote(Path::new(link)) => {
                Some(PathBuf::from(link))
            }
            path => Some(self.whole(path)),
        }
    }

    fn take(&mut self, ui: &Ui, offered: OfferedPath) -> Option<PathBuf> {
        if offered.is_wanted {
            return Some(offered.path);
        }
        self.look_in(ui, &offered.path);
        None
    }

    /// Shows the list, up to a height. Returns the clicked report.
    pub(crate) fn list_ui(
        &mut self,
        ui: &mut Ui,
        offers: &PathOffers,
        height: f32,
    ) -> Option<PathBuf> {
        let rows = offers.rows();
        let before = self.id.with("highlighted before");
        let was: Option<usize> = ui.data(|data| data.get_temp(before));
        let moved = was != Some(self.highlighted);
        ui.data_mut(|data| data.insert_temp(before, self.highlighted));
        let mut taken = None;
        ScrollArea::vertical()
            .id_salt("offered")
            .max_height(height)
            .auto_shrink([false, true])
            .show_viewport(ui, |ui, seen| {
                ui.set_width(ui.available_width());
                ui.set_height(rows.len() as f32 * ENTRY);
                let mut heading = "";
                let corner = ui.max_rect().left_top();
                let width = ui.available_width();
                for (at, row) in rows.iter().enumerate() {
                    if let OfferedRow::Heading(words) = row {
                        heading = words.trim_end_matches(is_separator);
                    }
                    let top = at as f32 * ENTRY;
                    let rect = Rect::from_min_size(corner + vec2(0.0, top), vec2(width, ENTRY));
                    let chosen =
                        matches!(row, OfferedRow::Entry(index, _) if *index == self.highlighted);
                    if chosen && moved {
                        ui.scroll_to_rect(rect, None);
                    }
                    if top + ENTRY < seen.top() || top > seen.bottom() {
                        continue;
                    }
                    match row {
                        OfferedRow::Heading(words) => heading_ui(ui, rect, words),
                        OfferedRow::Entry(index, offered) => {
                            let response = entry_ui(ui, rect, (offered, heading), chosen);
                            // A pointer at rest does not interfere with the arrow keys.
                            let pointed = ui.input(|input| input.pointer.is_moving());
                            if response.hovered() && pointed || response.has_focus() {
                                self.highlighted = *index;
                            }
                            if response.clicked() {
                                taken = Some((*offered).clone());
                            }
                        }
                    }
                }
            });
        taken.and_then(|offered| self.take(ui, offered))
    }
}

fn existing_paths(paths: &[PathBuf]) -> Vec<PathBuf> {
    paths.iter().filter(|path| is_remote(path) || path.exists()).cloned().collect()
}

/// The completions of a box.
pub(crate) struct PathOffers {
    /// The headings with their entries; no group is empty.
    groups: Vec<(String, Vec<OfferedPath>)>,
    /// True if the directory has been read.
    pub is_listed: bool,
}

impl PathOffers {
    fn entries(&self) -> impl Iterator<Item = &OfferedPath> {
        self.groups.iter().flat_map(|(_, entries)| entries)
    }

    /// Returns true if there are no completions.
    pub(crate) fn is_empty(&self) -> bool {
        self.groups.is_empty()
    }

    fn rows(&self) -> Vec<OfferedRow<'_>> {
        let mut rows = Vec::new();
        let mut place = 0;
        for (heading, entries) in &self.groups {
            rows.push(OfferedRow::Heading(heading.clone()));
            for offered in entries {
                rows.push(OfferedRow::Entry(place, offered));
                place += 1;
            }
        }
        rows
    }
}

fn heading_ui(ui: &Ui, rect: Rect, words: &str) {
    let colour = ThemePalette::for_ui(ui).weak_text;
    let font = FontId::proportional(text_size::SMALL);
    let room = rect.width() - 16.0;
    let short = without_middle(ui.painter(), words, font.clone(), colour, room);
    let at = rect.left_center() + vec2(spacing::XS, 2.0);
    let words = short.unwrap_or_else(|| words.to_owned());
    ui.painter().text(at, Align2::LEFT_CENTER, words, font, colour);
}

/// An entry below a heading. Its directory is shown unless the heading names it.
fn entry_ui(
    ui: &Ui,
    rect: Rect,
    (offered, heading): (&OfferedPath, &str),
    chosen: bool,
) -> egui::Response {
    let palette = ThemePalette::for_ui(ui);
    let name = entry_name(offered);
    // A recent file appears again in its directory.
    let id = ui.scope_id().with((heading, &offered.path));
    let response = ui.interact(rect, id, Sense::click());
    response.widget_info(|| WidgetInfo::selected(Role::Button, true, chosen, name.as_str()));
    if chosen {
        ui.painter().rect_filled(rect, CornerRadius::same(5), palette.chosen);
    }
    focus_ui(ui, &response, rect);
    let font = TextStyle::Body.resolve(ui.style());
    let colour = if offered.is_wanted { palette.accent } else { palette.text };
    let left = rect.left_center() + vec2(spacing::S, 0.0);
    let shown = ui.painter().text(left, Align2::LEFT_CENTER, &name, font, colour);
    let parent = offered.path.parent().map(|parent| parent.display().to_string());
    let room = rect.right() - shown.right() - spacing::XL;
    let shows_place = |place: &String| offered.is_wanted && room > 60.0 && place != heading;
    if let Some(place) = parent.filter(shows_place) {
        let small = FontId::proportional(text_size::CAPTION);
        let short = without_middle(ui.painter(), &place, small.clone(), palette.weak_text, room);
        let at = pos2(rect.right() - spacing::S, rect.center().y);
        let place = short.unwrap_or(place);
        ui.painter().text(at, Align2::RIGHT_CENTER, place, small, palette.weak_text);
    }
    response.on_hover_text(offered.path.display().to_string())
}

/// `mnist_pipeline` for a report, `reports/` for a directory.
fn entry_name(offered: &OfferedPath) -> String {
    let path = offered.path.as_path();
    let named = match path.file_name() {
        Some(name) if name == REPORT_FILE => path.parent().and_then(Path::file_name).or(Some(name)),
        name => name,
    };
    let name = named.unwrap_or(path.as_os_str()).to_string_lossy();
    if offered.is_wanted { name.into_owned() } else { format!("{name}/") }
}

fn contains(text: &str, filter: &str) -> bool {
    text.to_lowercase().contains(&filter.to_lowercase())
}

/// The entries whose names contain `filter`: an exact match first, then those that begin with it.
fn matching(listing: &[OfferedPath], filter: &str) -> Vec<OfferedPath> {
    let wanted = filter.to_lowercase();
    let mut found: Vec<(u8, &OfferedPath)> = listing
        .iter()
        .filter_map(|offered| {
            let name = offered.path.file_name()?.to_string_lossy().to_lowercase();
            if name.starts_with('.') && !wanted.starts_with('.') {
                return None;
            }
            let rank = match name.find(&wanted)? {
                0 if name == wanted => 0,
                0 => 1,
                _ => 2,
            };
            Some((rank, offered))
        })
        .collect();
    found.sort_by_key(|(rank, offered)| (*rank, !offered.is_wanted));
    found.into_iter().map(|(_, offered)| offered.clone()).collect()
}

/// The accepted files and the directories in a directory, by name; empty if it cannot be read.
#[expect(clippy::disallowed_methods, reason = "names of one directory, off the UI thread")]
fn entries_of(directory: &Path, listed: ListedFiles) -> Vec<OfferedPath> {
    let Ok(entries) = std::fs::read_dir(directory) else { return Vec::new() };
    let mut paths: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).collect();
    paths.sort();
    let offered = paths.into_iter().filter_map(|path| {
        // Its contents are checked only when it is opened.
        let is_called = listed
            .extensions()
            .iter()
            .any(|wanted| path.extension().is_some_and(|end| end.eq_ignore_ascii_case(wanted)));
        let is_report = listed != ListedFiles::Models && holds_report(&path);
        let is_wanted = is_report || is_called && !path.is_dir();
        if is_wanted || path.is_dir() { Some(OfferedPath { path, is_wanted }) } else { None }
    });
    offered.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn profiles_of_every_tool_are_offered() {
        for reader in tilescope_report::PROFILE_READERS {
            let ending = Path::new(reader.file_name).extension().unwrap().to_str().unwrap();
            assert!(ListedFiles::Reports.extensions().contains(&ending), "{}", reader.tool);
            assert!(
                ListedFiles::ReportsAndModels.extensions().contains(&ending),
                "{}",
                reader.tool
            );
        }
    }

    #[test]
    fn directories_and_reports_that_match_the_typed_text_are_offered() {
        let base = tempfile::tempdir().unwrap();
        for name in ["report_a", "report_b", "other", "old_report", ".hidden"] {
            std::fs::create_dir(base.path().join(name)).unwrap();
        }
        std::fs::write(base.path().join("report.pop"), "").unwrap();
        std::fs::write(base.path().join("report.txt"), "").unwrap();
        std::fs::write(base.path().join("report_b").join(REPORT_FILE), "").unwrap();
        let listing = entries_of(base.path(), ListedFiles::ReportsAndModels);
        let offered = |typed: &str| {
            let found = matching(&listing, typed);
            let name = |offer: &OfferedPath| {
                offer.path.file_name().unwrap().to_string_lossy().into_owned()
            };
            found.iter().map(name).collect::<Vec<_>>()
        };
        assert_eq!(offered("Rep"), ["report.pop", "report_b", "report_a", "old_report"]);
        assert_eq!(offered("report_a"), ["report_a"]);
        assert_eq!(offered("").len(), 5);
        assert_eq!(offered(".h"), [".hidden"]);
        assert!(
            offered("nothing").is_empty()
                && entries_of(Path::new("/no/such/place"), ListedFiles::Reports).is_empty()
        );
        std::fs::write(base.path().join("net.ONNX"), "").unwrap();
        let wanted = |listed: ListedFiles| {
            let entries = entries_of(base.path(), listed);
            let wanted = entries.iter().filter(|entry| entry.is_wanted);
            wanted.map(|entry| entry.path.file_name().unwrap().to_owned()).collect::<Vec<_>>()
        };
        assert_eq!(wanted(ListedFiles::Models), ["net.ONNX"]);
        assert_eq!(wanted(ListedFiles::Reports), ["report.pop", "report_b"]);
        assert_eq!(wanted(ListedFiles::ReportsAndModels), ["net.ONNX", "report.pop", "report_b"]);
    }
}
