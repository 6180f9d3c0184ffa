//! Bookmarks with notes, in a file beside the report; in the user's data directory where the
//! report cannot be written to.

use super::link::Link;
use crate::analysis::save::write_whole;
use crate::gui::opening::data_directory;
use crate::report::REPORT_FILE;
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};

/// Name of the file beside `profile.pop`.
const FILE: &str = "tilescope-notes.json";
/// What newer files would say instead.
const FORMAT: u32 = 1;

/// A place with a name and a note.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Bookmark {
    /// Its name.
    pub name: String,
    /// What the user wrote about it.
    #[serde(default)]
    pub note: String,
    /// Where it leads: a link.
    pub link: String,
}

#[derive(Debug, Default, Serialize, Deserialize)]
struct Stored {
    format: u32,
    bookmarks: Vec<Bookmark>,
}

/// The bookmarks of a report.
#[derive(Debug, Default)]
pub struct Notes {
    /// They, oldest first.
    pub bookmarks: Vec<Bookmark>,
    /// Where they are kept, the best place first.
    places: Vec<PathBuf>,
    /// A file that could not be understood; it is moved aside before another one is written.
    broken: Option<PathBuf>,
    /// What was last read or written.
    known: Vec<Bookmark>,
}

impl Notes {
    /// What is kept about a report, and a message if that could not be understood.
    pub fn read(report: &Path) -> (Self, Option<String>) {
        let mut notes = Self { places: places(report), ..Self::default() };
        for place in notes.places.clone() {
            match read_file(&place) {
                Ok(None) => {}
                Ok(Some(bookmarks)) => {
                    notes.known = bookmarks.clone();
                    notes.bookmarks = bookmarks;
                    return (notes, None);
                }
                Err(problem) => {
                    let path = place.display();
                    let message = format!(
                        "Bookmarks could not be read: {problem}: {path}\n\
                         The file is kept; a new bookmark moves it aside first."
                    );
                    notes.broken = Some(place);
                    return (notes, Some(message));
                }
            }
        }
        (notes, None)
    }

    /// Writes the bookmarks, together with those that another window has written since.
    ///
    /// # Errors
    /// In words for people, if they can be kept nowhere; a message if a broken file was moved.
    pub fn save(&mut self) -> Result<Option<String>, String> {
        let moved = self.set_aside()?;
        let mut problem = "there is no place for them".to_owned();
        for place in self.places.clone() {
            if let Ok(Some(there)) = read_file(&place) {
                let new = there.into_iter().filter(|bookmark| !self.known.contains(bookmark));
                let new: Vec<Bookmark> =
                    new.filter(|bookmark| !self.bookmarks.contains(bookmark)).collect();
                self.bookmarks.extend(new);
            }
            let stored = Stored { format: FORMAT, bookmarks: self.bookmarks.clone() };
            let text = serde_json::to_string_pretty(&stored).map_err(|error| error.to_string())?;
            if let Some(directory) = place.parent().filter(|_| !place.ends_with(FILE)) {
                // If that fails, so does writing.
                let _ = std::fs::create_dir_all(directory);
            }
            match write_whole(&place, text.as_bytes()) {
                Ok(()) => {
                    self.known = self.bookmarks.clone();
                    return Ok(moved);
                }
                Err(words) => problem = words,
            }
        }
        Err(format!("Bookmarks cannot be kept: {problem}"))
    }

    /// Moves a file that could not be understood out of the way.
    fn set_aside(&mut self) -> Result<Option<String>, String> {
        let Some(broken) = self.broken.take() else { return Ok(None) };
        let aside = (1..1000)
            .map(|number| broken.with_extension(format!("broken-{number}")))
            .find(|aside| !aside.exists());
        let moved = aside.and_then(|aside| std::fs::rename(&broken, &aside).ok().map(|()| aside));
        match moved {
            Some(aside) => Ok(Some(format!(
                "The bookmarks that could not be read are now in {}",
                aside.display()
            ))),
            None => {
                let path = broken.display().to_string();
                self.broken = Some(broken);
                Err(format!("Bookmarks cannot be kept: this file is in the way: {path}"))
            }
        }
    }

    /// Keeps a place under a name.
    pub fn add(&mut self, name: String, link: &Link) {
        self.bookmarks.push(Bookmark { name, note: String::new(), link: link.to_string() });
    }
}

fn read_file(path: &Path) -> Result<Option<Vec<Bookmark>>, String> {
    let text = match std::fs::read_to_string(path) {
        Ok(text) => text,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error.to_string()),
    };
    let stored: Stored = serde_json::from_str(&text).map_err(|error| error.to_string())?;
    if stored.format > FORMAT {
        return Err("a newer tilescope has written it".to_owned());
    }
    Ok(Some(stored.bookmarks))
}

/// Beside the report, and in the user's data directory under a number made of its path.
fn places(report: &Path) -> Vec<PathBuf> {
    let report = std::path::absolute(report).unwrap_or_else(|_| report.to_owned());
    let beside = match report.file_name() {
        Some(name) if name != REPORT_FILE => {
            let mut name = name.to_owned();
            name.push(".notes.json");
            report.with_file_name(name)
        }
        _ => report.with_file_name(FILE),
    };
    let bytes = report.as_os_str().as_encoded_bytes();
    let own = data_directory().join("notes").join(format!("{:016x}.json", number(bytes)));
    vec![beside, own]
}

/// FNV-1a: the same number for the same path, in every version.
fn number(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::gui::keep::Place;

    fn link() -> Link {
        Link::new(Path::new("/a"), Place { view: "memory".to_owned(), ..Place::default() })
    }

    /// Notes of a report in a directory; the second place is in it too.
    fn notes(directory: &Path) -> (Notes, Option<String>) {
        let (mut notes, message) = Notes::read(&directory.join(REPORT_FILE));
        notes.places[1] = directory.join("data/own.json");
        (notes, message)
    }

    #[test]
    fn bookmarks_come_back_and_those_of_two_windows_add_up() {
        let directory = tempfile::tempdir().unwrap();
        let (mut first, message) = notes(directory.path());
        assert_eq!(message, None);
        let (mut second, _) = notes(directory.path());
        first.add("one".to_owned(), &link());
        assert_eq!(first.save(), Ok(None));
        second.add("two".to_owned(), &link());
        assert_eq!(second.save(), Ok(None));
        let (read, _) = notes(directory.path());
        let names: Vec<&str> = read.bookmarks.iter().map(|of| of.name.as_str()).collect();
        assert_eq!(names, ["two", "one"]);
    }

    #[test]
    fn garbage_is_told_and_never_lost() {
        for garbage in ["", "[7", "{\"format\": 99, \"bookmarks\": []}", "\u{0}"] {
            let directory = tempfile::tempdir().unwrap();
            std::fs::write(directory.path().join(FILE), garbage).unwrap();
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
    fn where_the_report_cannot_be_written_to_the_data_directory_is_used() {
        let directory = tempfile::tempdir().unwrap();
        let (mut found, _) = notes(directory.path());
        // A directory cannot be written as a file, whoever asks.
        std::fs::create_dir(directory.path().join(FILE)).unwrap();
        found.add("new".to_owned(), &link());
        assert_eq!(found.save(), Ok(None));
        assert!(directory.path().join("data/own.json").is_file());
    }
}
