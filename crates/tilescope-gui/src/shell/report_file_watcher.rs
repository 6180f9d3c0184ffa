//! A watcher for changes of a report file that never waits for a slow disk.
//!
//! The system reports changes of the file, so an idle window paints nothing. If the system cannot,
//! the file is polled.

use crate::widgets::background_query::{BackgroundQuery, BackgroundWorkers, QueryState};
use egui::Context;
use notify::event::{AccessKind, AccessMode};
use notify::{Event, EventKind, RecommendedWatcher, RecursiveMode, Watcher};
use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant, SystemTime};

/// The time between two polls.
const PERIOD: Duration = Duration::from_secs(2);

/// The time a file was written, and its size.
type FileStamp = Option<(SystemTime, u64)>;

/// An event of a file since it was opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FileEvent {
    /// The file has changed and is stable.
    Changed,
    /// The file has been deleted or renamed.
    Gone,
}

/// A counter of the system's change events for a file.
struct FileEventCounter {
    count: Arc<AtomicU64>,
    /// Reports events until it is dropped.
    _watcher: RecommendedWatcher,
}

impl FileEventCounter {
    /// Subscribes to change events; each event requests a frame. `None` if the system cannot
    /// report them.
    fn new(path: &Path, context: &Context) -> Option<Self> {
        let name = path.file_name()?.to_owned();
        let count = Arc::new(AtomicU64::new(0));
        let counted = count.clone();
        let context = context.clone();
        let mut watcher = notify::recommended_watcher(move |event: notify::Result<Event>| {
            // Lost events may have concerned the file.
            if event.map_or(true, |event| changes(&event, &name)) {
                // The count orders no other memory.
                counted.fetch_add(1, Ordering::Relaxed);
                context.request_repaint();
            }
        })
        .ok()?;
        // The directory is watched: a new report takes the name of the old one, and a watch on the
        // file would stay with the old one.
        let directory = path.parent().filter(|parent| !parent.as_os_str().is_empty());
        let directory = directory.unwrap_or(Path::new("."));
        watcher.watch(directory, RecursiveMode::NonRecursive).ok()?;
        Some(Self { count, _watcher: watcher })
    }
}

/// Returns true if an event changes the file of this name. Reading does not.
fn changes(event: &Event, name: &OsStr) -> bool {
    let writes = match event.kind {
        EventKind::Access(kind) => kind == AccessKind::Close(AccessMode::Write),
        _ => true,
    };
    writes && event.paths.iter().any(|path| path.file_name() == Some(name))
}

/// Checks a file after an event.
pub(crate) struct ReportFileWatcher {
    path: PathBuf,
    since: Instant,
    /// `Some(None)` if the system cannot report events; `None` before the first frame.
    events: Option<Option<FileEventCounter>>,
    /// The number of events at the last check; `None` while the file is being checked.
    judged: Option<u64>,
    /// The file stamp, by round and number of events.
    stamp: BackgroundQuery<(u64, u64), FileStamp>,
    /// Nothing waits for these checks.
    workers: BackgroundWorkers,
    /// The stamp of the file when it was opened.
    opened: Option<FileStamp>,
    /// The last stamp, if the file has changed since it was opened.
    changed: Option<(u64, FileStamp)>,
    /// True after the loss of the file was reported, until the file is back.
    is_gone: bool,
}

impl ReportFileWatcher {
    /// Starts watching a file.
    pub(crate) fn new(path: &Path) -> Self {
        Self {
            path: path.to_owned(),
            since: Instant::now(),
            events: None,
            judged: None,
            stamp: BackgroundQuery::default(),
            workers: BackgroundWorkers::default(),
            opened: None,
            changed: None,
            is_gone: false,
        }
    }

    /// The path of the watched file.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// The latest event that was not returned yet.
    pub(crate) fn event(&mut self, context: &Context) -> Option<FileEvent> {
        let events = self.events.get_or_insert_with(|| FileEventCounter::new(&self.path, context));
        let count = events.as_ref().map(|events| events.count.load(Ordering::Relaxed));
        if count.is_some() && self.judged == count {
            return None;
        }
        let turn = self.since.elapsed().as_secs() / PERIOD.as_secs();
        let path = self.path.clone();
        let key = (turn, count.unwrap_or(0));
        let asked = self.stamp.compute(context, &self.workers, &key, move |_| stamp(&path));
        let QueryState::Fresh(stamp) = asked else {
            context.request_repaint_after(PERIOD);
            return None;
        };
        let event = self.judge(turn, *stamp);
        // A file that is being written is checked until it is stable.
        self.judged = count.filter(|_| self.changed.is_none());
        if self.judged.is_none() {
            context.request_repaint_after(PERIOD);
        }
        event
    }

    fn judge(&mut self, turn: u64, stamp: FileStamp) -> Option<FileEvent> {
        let Some(opened) = self.opened else {
            self.opened = Some(stamp);
            return None;
        };
        if stamp == opened {
            self.changed = None;
            self.is_gone = false;
            return None;
        }
        // A missing file may come back, and a file being written may be incomplete.
        let rests = self.changed.is_some_and(|(before, same)| same == stamp && before < turn);
        if !rests {
            if self.changed.is_none_or(|(_, seen)| seen != stamp) {
                self.changed = Some((turn, stamp));
            }
            return None;
        }
        self.changed = None;
        if stamp.is_some() {
            self.opened = Some(stamp);
            self.is_gone = false;
            return Some(FileEvent::Changed);
        }
        let was_gone = std::mem::replace(&mut self.is_gone, true);
        if was_gone { None } else { Some(FileEvent::Gone) }
    }
}

fn stamp(path: &Path) -> FileStamp {
    let data = std::fs::metadata(path).ok()?;
    Some((data.modified().ok()?, data.len()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_and_other_files_are_ignored() {
        let event = |kind, name: &str| Event::new(kind).add_path(Path::new("out").join(name));
        let written = EventKind::Access(AccessKind::Close(AccessMode::Write));
        let renamed = EventKind::Modify(notify::event::ModifyKind::Any);
        for (kind, name, expected) in [
            (written, "profile.pop", true),
            (renamed, "profile.pop", true),
            (EventKind::Access(AccessKind::Open(AccessMode::Any)), "profile.pop", false),
            (written, "other.pop", false),
        ] {
            assert_eq!(changes(&event(kind, name), OsStr::new("profile.pop")), expected);
        }
    }

    #[test]
    fn an_idle_window_requests_no_frame() {
        let directory = tempfile::tempdir().expect("temporary directory");
        let path = directory.path().join("profile.pop");
        std::fs::write(&path, "old").expect("written");
        let context = Context::default();
        let mut watch = ReportFileWatcher::new(&path);
        let looked = |watch: &mut ReportFileWatcher| {
            let event = watch.event(&context);
            watch.workers.wait(Duration::from_secs(10));
            event
        };
        while watch.opened.is_none() {
            assert_eq!(looked(&mut watch), None);
        }
        let watched = watch.events.as_ref().is_some_and(Option::is_some);
        assert!(!watched || watch.judged.is_some(), "there is nothing more to look at");
        std::fs::write(&path, "new and longer").expect("written");
        let end = Instant::now() + Duration::from_secs(20);
        while looked(&mut watch) != Some(FileEvent::Changed) {
            assert!(Instant::now() < end, "the change is reported");
            std::thread::sleep(Duration::from_millis(50));
        }
        assert_eq!(looked(&mut watch), None);
    }

    #[test]
    fn a_change_is_reported_once_the_file_is_stable() {
        let mut watch = ReportFileWatcher::new(Path::new("a"));
        let at =
            |seconds, size| Some((SystemTime::UNIX_EPOCH + Duration::from_secs(seconds), size));
        let seen = [
            (at(1, 10), None),
            (at(1, 10), None),
            (None, None),
            (at(5, 3), None),
            (at(5, 20), None),
            (at(5, 20), Some(FileEvent::Changed)),
            (at(5, 20), None),
            (None, None),
            (None, Some(FileEvent::Gone)),
            (None, None),
            (None, None),
            (at(5, 20), None),
            (None, None),
            (None, Some(FileEvent::Gone)),
            (at(6, 20), None),
            (at(6, 20), Some(FileEvent::Changed)),
        ];
        for (turn, (stamp, expected)) in seen.into_iter().enumerate() {
            assert_eq!(watch.judge(turn as u64, stamp), expected, "{turn}");
        }
    }
}
