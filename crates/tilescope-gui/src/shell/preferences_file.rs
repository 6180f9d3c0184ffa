//! The preferences file: one JSON file in the user's configuration directory, which all windows
//! share. A window writes the keys that it has changed. If several windows change a key, the last
//! writer wins.
//!
//! No error here stops the app. An invalid file is moved aside and the defaults apply; an
//! unwritable directory means that nothing is stored; the user is informed once of both. Writing
//! runs on a separate thread, so other windows and slow disks delay no frame.

use crate::model::preferences::{MAX_RECENT, UserPreferences};
use crate::widgets::background_task::BackgroundTask;
use egui::Context;
use serde_json::{Map, Value};
use std::ffi::OsString;
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};
use tilescope_report::atomic_file::{AtomicFileError, move_aside, write_whole};
use tilescope_report::text_file::read_text;
use tilescope_report::units::Bytes;

/// The number of attempts to lock the file while another window writes.
const TRIES: u32 = 100;
/// The pause after each attempt.
const PAUSE: Duration = Duration::from_millis(5);

/// The longest time that the end of the program waits for pending writes.
const MAX_EXIT_WAIT: Duration = Duration::from_secs(2);

/// An error from reading or writing preferences.
#[derive(Debug, thiserror::Error)]
enum PrefsFileError {
    #[error(transparent)]
    Io(#[from] io::Error),
    #[error(transparent)]
    Json(#[from] serde_json::Error),
    #[error(transparent)]
    Write(#[from] AtomicFileError),
}

/// A message for the user, if any.
type PreferencesWriteResult = Result<Option<String>, PrefsFileError>;

/// The file, and the contents last read or written by this window.
pub(crate) struct PreferencesFile {
    path: Option<PathBuf>,
    last_synced: UserPreferences,
    /// The preferences being written, and the task that writes them.
    writing: Option<(UserPreferences, BackgroundTask<PreferencesWriteResult>)>,
}

impl PreferencesFile {
    /// Preferences that are not stored, for pictures and tests.
    pub(crate) fn in_memory() -> (Self, UserPreferences) {
        (
            Self { path: None, last_synced: UserPreferences::default(), writing: None },
            UserPreferences::default(),
        )
    }

    /// Opens the user's file. Returns its contents, and a message if it is invalid.
    pub(crate) fn open() -> (Self, UserPreferences, Option<String>) {
        match directory() {
            Some(directory) => Self::open_file(directory.join("preferences.json")),
            None => {
                let (store, prefs) = Self::in_memory();
                (store, prefs, None)
            }
        }
    }

    fn open_file(path: PathBuf) -> (Self, UserPreferences, Option<String>) {
        let (mut prefs, message) = match read(&path) {
            Ok(found) => (found.map(|(_, prefs)| prefs).unwrap_or_default(), None),
            Err(problem) => {
                let path = path.display();
                let message = format!(
                    "Preferences could not be read, defaults are used: {problem}: {path}\n\
                     The file is kept; the first change moves it aside."
                );
                (UserPreferences::default(), Some(message))
            }
        };
        prefs.recent.truncate(MAX_RECENT);
        (Self { path: Some(path), last_synced: prefs.clone(), writing: None }, prefs, message)
    }

    /// Receives the result of the last write and starts to write later changes. Returns a message
    /// for the user, if any.
    pub(crate) fn save(&mut self, context: &Context, prefs: &UserPreferences) -> Option<String> {
        let message = self.receive(Duration::ZERO);
        message.or(self.start(context, prefs))
    }

    /// Writes pending changes, within the time that the end of the program may take. Returns a
    /// message for the user, if any.
    pub(crate) fn finish(&mut self, context: &Context, prefs: &UserPreferences) -> Option<String> {
        let end = Instant::now() + MAX_EXIT_WAIT;
        let mut message = None;
        loop {
            message = message.or(self.start(context, prefs));
            let left = end.saturating_duration_since(Instant::now());
            if self.writing.is_none() || left.is_zero() {
                return message;
            }
            message = message.or(self.receive(left));
        }
    }

    /// Receives the result of the last write, if it arrives within `wait`.
    fn receive(&mut self, wait: Duration) -> Option<String> {
        let (mine, written) = self.writing.take()?;
        match written.wait(wait) {
            None => {
                self.writing = Some((mine, written));
                None
            }
            Some(Ok(Ok(message))) => {
                self.last_synced = mine;
                message
            }
            Some(Ok(Err(error))) => self.give_up(&error.to_string()),
            Some(Err(())) => self.give_up("writing them failed"),
        }
    }

    fn start(&mut self, context: &Context, prefs: &UserPreferences) -> Option<String> {
        if self.writing.is_some() || self.last_synced == *prefs {
            return None;
        }
        let Some(path) = self.path.clone() else {
            self.last_synced = prefs.clone();
            return None;
        };
        let known = self.last_synced.clone();
        let mine = prefs.clone();
        match BackgroundTask::start("preferences", context, move || write(&path, &known, &mine)) {
            Ok(written) => self.writing = Some((prefs.clone(), written)),
            Err(error) => return self.give_up(&error.to_string()),
        }
        None
    }

    /// Stops storing preferences and reports it once: later writes would fail too.
    fn give_up(&mut self, problem: &str) -> Option<String> {
        self.path = None;
        Some(format!("Preferences cannot be saved: {problem}"))
    }
}

/// Writes the changes since `known`. Returns a message for the user, if any.
fn write(path: &Path, known: &UserPreferences, prefs: &UserPreferences) -> PreferencesWriteResult {
    if let Some(directory) = path.parent() {
        std::fs::create_dir_all(directory)?;
    }
    let _lock = lock(path);
    let mut message = None;
    let there = match read(path) {
        Ok(there) => there,
        Err(_) => {
            let aside = move_aside(path)?;
            let aside = aside.display();
            message = Some(format!("The preferences that could not be read are now in {aside}"));
            None
        }
    };
    let known = keys_of(known)?;
    let mut keys = match there {
        Some((Value::Object(keys), _)) => keys,
        _ => known.clone(),
    };
    for (name, value) in keys_of(prefs)? {
        // Keys that this window has not changed, or that a newer version has written, stay.
        if known.get(&name) != Some(&value) || !keys.contains_key(&name) {
            keys.insert(name, value);
        }
    }
    write_whole(path, serde_json::to_string_pretty(&keys)?.as_bytes())?;
    Ok(message)
}

fn keys_of(prefs: &UserPreferences) -> Result<Map<String, Value>, serde_json::Error> {
    match serde_json::to_value(prefs)? {
        Value::Object(keys) => Ok(keys),
        _ => Ok(Map::new()),
    }
}

/// The largest preferences file that is read.
const MAX_PREFERENCES_BYTES: Bytes = Bytes(16 << 20);

/// The contents of a file, raw and parsed; `None` if the file does not exist.
fn read(path: &Path) -> Result<Option<(Value, UserPreferences)>, PrefsFileError> {
    let text = match read_text(path, MAX_PREFERENCES_BYTES) {
        Ok(text) => text,
        Err(error) if error.kind() == std::io::ErrorKind::InvalidData => {
            return Err(error.into());
        }
        Err(_) => return Ok(None),
    };
    let value: Value = serde_json::from_str(&text)?;
    let prefs = serde_json::from_value(value.clone())?;
    Ok(Some((value, prefs)))
}

/// Locks the file against other windows until the lock is dropped. Without support for locks, or if
/// another window takes too long, writing continues without: the file is replaced as a whole
/// anyway.
fn lock(path: &Path) -> Option<File> {
    let file = File::create(path.with_extension("lock")).ok()?;
    for _ in 0..TRIES {
        if file.try_lock().is_ok() {
            return Some(file);
        }
        std::thread::sleep(PAUSE);
    }
    None
}

fn directory() -> Option<PathBuf> {
    let base = nonempty_variable("XDG_CONFIG_HOME")
        .map(PathBuf::from)
        .filter(|path| path.is_absolute())
        .or_else(|| nonempty_variable("HOME").map(|home| PathBuf::from(home).join(".config")))?;
    Some(base.join("tilescope"))
}

fn nonempty_variable(name: &str) -> Option<OsString> {
    std::env::var_os(name).filter(|value| !value.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::preferences::{PaletteChoice, ThemeChoice};

    #[test]
    fn preferences_persist() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("deep/preferences.json");
        let (mut store, mut prefs, message) = PreferencesFile::open_file(path.clone());
        assert_eq!(message, None);
        prefs.theme = ThemeChoice::Dark;
        prefs.remember(Path::new("a"));
        prefs.remember(Path::new("b"));
        prefs.remember(Path::new("a"));
        assert_eq!(store.finish(&Context::default(), &prefs), None);
        let (_, read, _) = PreferencesFile::open_file(path);
        assert_eq!(read, prefs);
        let order: Vec<&Path> = read.recent.iter().map(|recent| recent.path.as_path()).collect();
        assert_eq!(order, [Path::new("a"), Path::new("b")]);
    }

    #[test]
    fn invalid_files_give_defaults_and_a_message() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("preferences.json");
        for garbage in ["", "[7", "{\"theme\": 7}", "\u{0}\u{1}"] {
            std::fs::write(&path, garbage).unwrap();
            let (mut store, mut prefs, message) = PreferencesFile::open_file(path.clone());
            assert_eq!(prefs, UserPreferences::default());
            assert!(message.is_some(), "{garbage:?}");
            prefs.narrow_menu = true;
            assert!(
                store
                    .finish(&Context::default(), &prefs)
                    .is_some_and(|said| said.contains("broken-"))
            );
            assert!(PreferencesFile::open_file(path.clone()).1.narrow_menu);
        }
    }

    #[test]
    fn an_unwritable_directory_is_reported_once() {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("file");
        std::fs::write(&file, "").unwrap();
        let (mut store, mut prefs, _) = PreferencesFile::open_file(file.join("preferences.json"));
        prefs.narrow_menu = true;
        assert!(store.finish(&Context::default(), &prefs).is_some());
        prefs.narrow_menu = false;
        assert!(store.finish(&Context::default(), &prefs).is_none());
    }

    #[test]
    fn the_list_of_recent_reports_is_bounded() {
        let mut prefs = UserPreferences::default();
        for i in 0..100 {
            prefs.remember(Path::new(&i.to_string()));
        }
        assert_eq!(prefs.recent.len(), MAX_RECENT);
        assert_eq!(prefs.recent[0].path, Path::new("99"));
    }

    #[test]
    fn changes_of_two_windows_are_merged() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("preferences.json");
        let (mut first, mut one, _) = PreferencesFile::open_file(path.clone());
        let (mut second, mut two, _) = PreferencesFile::open_file(path.clone());
        let a = Path::new("a");
        let b = Path::new("b");
        one.theme = ThemeChoice::Dark;
        one.remember(a);
        one.remember_comparison(a, b);
        one.keys.insert("find".to_owned(), vec!["F3".to_owned()]);
        one.folded_blocks.push("Graph".to_owned());
        assert_eq!(first.finish(&Context::default(), &one), None);
        two.look.palette = PaletteChoice::ColourBlindSafe;
        two.remember(b);
        two.remember_comparison(b, a);
        two.folded_blocks.push("Target".to_owned());
        assert_eq!(second.finish(&Context::default(), &two), None);
        assert_eq!(two.theme, ThemeChoice::System, "a window's own look stays until it is closed");
        // The first window continues, and reverts its change.
        one.keys.clear();
        one.narrow_menu = true;
        assert_eq!(first.finish(&Context::default(), &one), None);
        let (_, read, message) = PreferencesFile::open_file(path);
        assert_eq!(message, None);
        assert_eq!(read.theme, ThemeChoice::Dark);
        assert_eq!(read.look.palette, PaletteChoice::ColourBlindSafe);
        assert!(read.narrow_menu && read.keys.is_empty());
        assert_eq!(read.recent, two.recent, "the last writer wins");
        assert_eq!(read.folded_blocks, two.folded_blocks);
    }

    #[test]
    fn keys_of_newer_versions_are_preserved() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("preferences.json");
        std::fs::write(&path, r#"{"theme": "dark", "hologram": {"depth": 3}}"#).unwrap();
        let (mut store, mut prefs, message) = PreferencesFile::open_file(path.clone());
        assert_eq!((prefs.theme, message), (ThemeChoice::Dark, None));
        prefs.narrow_menu = true;
        assert_eq!(store.finish(&Context::default(), &prefs), None);
        let text = std::fs::read_to_string(path).unwrap();
        assert!(text.contains("\"depth\": 3") && text.contains("\"dark\""), "{text}");
    }

    #[test]
    fn no_frame_waits_for_another_window() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("preferences.json");
        let (mut store, mut prefs, _) = PreferencesFile::open_file(path.clone());
        let context = Context::default();
        let held = lock(&path).unwrap();
        prefs.narrow_menu = true;
        assert_eq!(store.save(&context, &prefs), None);
        assert!(store.writing.is_some(), "a thread waits for the other window");
        prefs.remember(Path::new("a"));
        assert_eq!(store.save(&context, &prefs), None);
        drop(held);
        assert_eq!(store.finish(&context, &prefs), None);
        let (_, read, _) = PreferencesFile::open_file(path);
        assert!(read.narrow_menu && read == prefs, "the change after it is kept as well");
    }

    #[test]
    fn concurrent_writes_leave_a_valid_file() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("preferences.json");
        std::thread::scope(|scope| {
            for window in 0..3 {
                let path = path.clone();
                scope.spawn(move || {
                    for file in 0..4 {
                        let (mut store, mut prefs, message) =
                            PreferencesFile::open_file(path.clone());
                        assert_eq!(message, None);
                        prefs.remember(Path::new(&format!("{window}/{file}")));
                        assert_eq!(store.finish(&Context::default(), &prefs), None);
                    }
                });
            }
        });
        let (_, read, message) = PreferencesFile::open_file(path);
        assert!(message.is_none() && !read.recent.is_empty());
    }
}
