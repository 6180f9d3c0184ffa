//! Data kept about a report: bookmarks with notes, and the spec changes that were tried. It is
//! stored in a file beside the report, or in the user's data directory if the report's directory is
//! read-only. Bookmarks beside a report on another machine are merged, and changes to them are
//! stored here.

use super::report_link::ReportLink;
use crate::model::three_way_merge::merged_list;
use serde::{Deserialize, Serialize};
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use tilescope_report::REPORT_FILE;
use tilescope_report::atomic_file::{AtomicFileError, move_aside, write_whole};
use tilescope_report::text_file::read_text;
use tilescope_report::units::Bytes;

/// The name of the file beside `profile.pop`.
const NOTES_FILE: &str = "tilescope-notes.json";
/// The version of the file format; later versions have a larger number.
const FORMAT: u32 = 1;

/// A bookmarked place with a name and a note.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReportBookmark {
    pub name: String,
    /// The user's note about it.
    #[serde(default)]
    pub note: String,
    /// The link to the place.
    pub link: String,
}

impl ReportBookmark {
    /// Returns the bookmark for the same place in another report. An invalid link is left
    /// unchanged.
    fn leading_to(self, report: &Path) -> Self {
        let link = self.link.parse().map(|link: ReportLink| ReportLink::new(report, link.place));
        Self { link: link.map_or(self.link, |link| link.to_string()), ..self }
    }
}

/// A changed spec that was simulated.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct SimulatedVariant {
    /// `variant 3`
    pub name: String,
    pub spec: String,
    /// The report of the simulation.
    pub report: PathBuf,
}

#[derive(Clone, Debug, Default, Serialize, Deserialize)]
struct ReportNotesFile {
    format: u32,
    bookmarks: Vec<ReportBookmark>,
    /// The bookmarks that were beside the report, if it is on another machine.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    there: Vec<ReportBookmark>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    tried: Vec<SimulatedVariant>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    measured_spec: Option<String>,
}

/// The notes kept about a report.
#[derive(Debug, Default)]
pub(crate) struct ReportNotes {
    /// The bookmarks, oldest first.
    pub bookmarks: Vec<ReportBookmark>,
    /// The simulated spec changes, oldest first.
    pub tried: Vec<SimulatedVariant>,
    /// The bookmarks beside a report on another machine that have been merged so far.
    there: Vec<ReportBookmark>,
    /// The path or name of the measured program's spec, as the user gave it.
    pub measured_spec: Option<String>,
    /// The possible paths of the file, the preferred one first.
    candidate_paths: Vec<PathBuf>,
    /// The contents last read or written.
    last_synced: ReportNotesFile,
}

/// An error from reading or writing a notes file.
#[derive(Debug, thiserror::Error)]
enum NotesFileError {
    #[error("no directory for notes")]
    NoPlace,
    #[error("a newer tilescope has written it")]
    Newer,
    #[error("it is too long")]
    TooLong,
    #[error(transparent)]
    Io(#[from] std::io::Error),
    #[error(transparent)]
    Json(#[from] serde_json::Error),
    #[error(transparent)]
    Write(#[from] AtomicFileError),
}

/// An error if none of the candidate paths is writable.
#[derive(Debug, thiserror::Error)]
#[error("Bookmarks cannot be kept: {0}")]
pub(crate) struct NotesSaveError(NotesFileError);

impl ReportNotes {
    /// Reads the notes from the first usable path. Returns a message if the file is invalid.
    pub(crate) fn read(candidate_paths: Vec<PathBuf>) -> (Self, Option<String>) {
        let mut notes = Self { candidate_paths, ..Self::default() };
        let mut message = None;
        for place in notes.candidate_paths.clone() {
            match read_file(&place) {
                Ok(None) => {}
                Ok(Some(stored)) => {
                    notes.take(stored);
                    break;
                }
                Err(problem) => {
                    let path = place.display();
                    message = message.or_else(|| {
                        Some(format!(
                            "Bookmarks could not be read: {problem}: {path}\n\
                             The file is kept; a new bookmark moves it aside first."
                        ))
                    });
                }
            }
        }
        (notes, message)
    }

    /// Merges the bookmarks beside a report on another machine, given the text of their file if
    /// there is one. Bookmarks added or removed there since the last call are added or removed
    /// here, except those that the user removed here. `opened` is the path under which the report
    /// was opened; the links lead to it. Returns a message if the file is invalid.
    pub(crate) fn take_in(
        &mut self,
        words: Option<&str>,
        (report, opened): (&Path, &Path),
    ) -> Option<String> {
        let there = match words.map(understood).transpose() {
            Ok(stored) => stored.unwrap_or_default().bookmarks,
            Err(problem) => {
                let beside = report.with_file_name(notes_name(report));
                let place = beside.display();
                return Some(format!("Bookmarks could not be read: {problem}: {place}"));
            }
        };
        let there: Vec<ReportBookmark> =
            there.into_iter().map(|bookmark| bookmark.leading_to(opened)).collect();
        self.bookmarks = merged_list(&self.there, &self.bookmarks, &there);
        self.there = there;
        None
    }

    /// Writes all notes, merged with what another window has written since.
    ///
    /// # Errors
    /// Returns an error if no candidate path is writable. Returns a message if an invalid file was
    /// moved aside.
    pub(crate) fn save(&mut self) -> Result<Option<String>, NotesSaveError> {
        let mut problem = NotesFileError::NoPlace;
        for place in self.candidate_paths.clone() {
            match self.save_in(&place) {
                Ok(message) => return Ok(message),
                Err(error) => problem = error,
            }
        }
        Err(NotesSaveError(problem))
    }

    fn save_in(&mut self, place: &Path) -> Result<Option<String>, NotesFileError> {
        let mut message = None;
        let there = match read_file(place) {
            Ok(there) => there,
            Err(_) if place.is_file() => {
                let aside = move_aside(place)?;
                let aside = aside.display();
                message = Some(format!("The bookmarks that could not be read are now in {aside}"));
                None
            }
            Err(error) => return Err(error),
        };
        let mut stored = ReportNotesFile {
            format: FORMAT,
            bookmarks: self.bookmarks.clone(),
            there: self.there.clone(),
            tried: self.tried.clone(),
            measured_spec: self.measured_spec.clone(),
        };
        if let Some(there) = there {
            let known = &self.last_synced;
            stored.bookmarks = merged_list(&known.bookmarks, &self.bookmarks, &there.bookmarks);
            stored.tried = merged_list(&known.tried, &self.tried, &there.tried);
            if self.measured_spec == known.measured_spec {
                stored.measured_spec = there.measured_spec;
            }
        }
        let text = serde_json::to_string_pretty(&stored)?;
        if let Some(directory) = place.parent().filter(|_| !place.ends_with(NOTES_FILE)) {
            // If this fails, writing fails too.
            let _ = std::fs::create_dir_all(directory);
        }
        write_whole(place, text.as_bytes())?;
        self.take(stored);
        Ok(message)
    }

    fn take(&mut self, stored: ReportNotesFile) {
        self.bookmarks.clone_from(&stored.bookmarks);
        self.there.clone_from(&stored.there);
        self.tried.clone_from(&stored.tried);
        self.measured_spec.clone_from(&stored.measured_spec);
        self.last_synced = stored;
    }

    /// Adds a bookmark for a place.
    pub(crate) fn add(&mut self, name: String, link: &ReportLink) {
        self.bookmarks.push(ReportBookmark { name, note: String::new(), link: link.to_string() });
    }
}

/// The largest notes file that is read.
const MAX_NOTES_BYTES: Bytes = Bytes(16 << 20);

fn read_file(path: &Path) -> Result<Option<ReportNotesFile>, NotesFileError> {
    let text = match read_text(path, MAX_NOTES_BYTES) {
        Ok(text) => text,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error.into()),
    };
    understood(&text).map(Some)
}

fn understood(text: &str) -> Result<ReportNotesFile, NotesFileError> {
    if text.len() as u64 > MAX_NOTES_BYTES.0 {
        return Err(NotesFileError::TooLong);
    }
    let stored: ReportNotesFile = serde_json::from_str(text)?;
    if stored.format > FORMAT {
        return Err(NotesFileError::Newer);
    }
    Ok(stored)
}

/// The name of the file beside a report.
pub(crate) fn notes_name(report: &Path) -> OsString {
    match report.file_name() {
        Some(name) if name != REPORT_FILE => {
            let mut name = name.to_owned();
            name.push(".notes.json");
            name
        }
        _ => NOTES_FILE.into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::navigation::NavigationState;

    fn link() -> ReportLink {
        ReportLink::new(
            Path::new("/a"),
            NavigationState {
                view: crate::model::view_id::ViewId::Memory,
                ..NavigationState::default()
            },
        )
    }

    /// The notes of a report in a directory. The second candidate path is in the same directory.
    fn notes(directory: &Path) -> (ReportNotes, Option<String>) {
        ReportNotes::read(vec![directory.join(NOTES_FILE), directory.join("data/own.json")])
    }

    #[test]
    fn bookmarks_persist_and_merge_across_windows() {
        let directory = tempfile::tempdir().unwrap();
        let (mut first, message) = notes(directory.path());
        assert_eq!(message, None);
        let (mut second, _) = notes(directory.path());
        first.add("one".to_owned(), &link());
        assert_eq!(first.save().unwrap(), None);
        second.add("two".to_owned(), &link());
        assert_eq!(second.save().unwrap(), None);
        let (read, _) = notes(directory.path());
        let names: Vec<&str> = read.bookmarks.iter().map(|of| of.name.as_str()).collect();
        assert_eq!(names, ["two", "one"], "those of the window that writes come first");
    }

    #[test]
    fn invalid_files_are_reported_and_moved_aside() {
        for garbage in ["", "[7", "{\"format\": 99, \"bookmarks\": []}", "\u{0}"] {
            let directory = tempfile::tempdir().unwrap();
            std::fs::write(directory.path().join(NOTES_FILE), garbage).unwrap();
            let (mut found, message) = notes(directory.path());
            assert!(message.is_some() && found.bookmarks.is_empty(), "{garbage:?}");
            found.add("new".to_owned(), &link());
            assert!(found.save().unwrap().is_some(), "it says where the old file went");
            let aside = directory.path().join("tilescope-notes.broken-1");
            assert_eq!(std::fs::read_to_string(aside).unwrap(), garbage);
            assert_eq!(notes(directory.path()).0.bookmarks.len(), 1);
        }
    }

    #[test]
    fn read_only_reports_store_notes_in_the_data_directory() {
        let directory = tempfile::tempdir().unwrap();
        let (mut found, _) = notes(directory.path());
        // A directory in place of the file makes writing fail for every user, even root.
        std::fs::create_dir(directory.path().join(NOTES_FILE)).unwrap();
        found.add("new".to_owned(), &link());
        assert_eq!(found.save().unwrap(), None);
        assert!(directory.path().join("data/own.json").is_file());
    }

    #[test]
    fn remote_bookmarks_are_merged_and_changed_locally() {
        let directory = tempfile::tempdir().unwrap();
        let report = Path::new("ssh://pod16/data/out/profile.pop");
        let file = |names: &[&str]| {
            let bookmark = |name: &&str| {
                let link = link().to_string();
                ReportBookmark { name: (*name).to_owned(), note: "n".to_owned(), link }
            };
            let bookmarks = names.iter().map(bookmark).collect();
            let file = ReportNotesFile { format: FORMAT, bookmarks, ..ReportNotesFile::default() };
            serde_json::to_string(&file).unwrap()
        };
        let open = |words: Option<&str>| {
            let (mut notes, _) = ReportNotes::read(vec![directory.path().join("own.json")]);
            let message = notes.take_in(words, (report, report));
            (notes, message)
        };
        let names = |notes: &ReportNotes| {
            notes.bookmarks.iter().map(|of| of.name.clone()).collect::<Vec<_>>()
        };
        let (mut notes, message) = open(Some(&file(&["one", "two"])));
        assert_eq!((names(&notes), message), (vec!["one".to_owned(), "two".to_owned()], None));
        assert!(notes.bookmarks[0].link.starts_with("tilescope:ssh"), "{:?}", notes.bookmarks);
        notes.bookmarks.remove(0);
        notes.add("own".to_owned(), &link());
        assert_eq!(notes.save().unwrap(), None);
        // A bookmark removed here stays removed; bookmarks added or removed there follow.
        let (notes, _) = open(Some(&file(&["one", "two", "three"])));
        assert_eq!(names(&notes), ["two", "own", "three"]);
        assert_eq!(names(&open(None).0), ["own"]);
        let (notes, message) = open(Some("{"));
        assert_eq!(names(&notes), ["two", "own"]);
        assert!(message.unwrap().contains("ssh://pod16/data/out/tilescope-notes.json"));
    }

    #[test]
    fn variants_and_bookmarks_do_not_overwrite_each_other() {
        let directory = tempfile::tempdir().unwrap();
        let tried = |name: &str| SimulatedVariant {
            name: name.to_owned(),
            spec: "[model]\n".to_owned(),
            report: directory.path().join(name),
        };
        let (mut marking, _) = notes(directory.path());
        let (mut trying, _) = notes(directory.path());
        trying.tried.push(tried("variant 1"));
        trying.tried.push(tried("variant 2"));
        assert_eq!(trying.save().unwrap(), None);
        marking.add("one".to_owned(), &link());
        assert_eq!(marking.save().unwrap(), None);
        trying.tried.remove(0);
        assert_eq!(trying.save().unwrap(), None);
        marking.add("two".to_owned(), &link());
        assert_eq!(marking.save().unwrap(), None);
        let (read, _) = notes(directory.path());
        assert_eq!(read.tried, [tried("variant 2")], "what one takes away, the other leaves away");
        assert_eq!(read.bookmarks.len(), 2);
    }
}
