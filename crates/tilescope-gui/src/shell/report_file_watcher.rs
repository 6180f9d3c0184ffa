//! Notices that the file of a report has changed, without waiting for a slow disk.

use crate::widgets::background_query::{BackgroundQuery, BackgroundWorkers, QueryState};
use egui::Context;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant, SystemTime};

/// Time between two looks.
const PERIOD: Duration = Duration::from_secs(2);

/// When a file was written, and its size.
type FileStamp = Option<(SystemTime, u64)>;

/// Looks at a file now and then.
pub(crate) struct ReportFileWatcher {
    path: PathBuf,
    since: Instant,
    stamp: BackgroundQuery<u64, FileStamp>,
    /// Looking is no work that anyone waits for.
    workers: BackgroundWorkers,
    /// The file as it was opened.
    opened: Option<FileStamp>,
    /// The file as it was last seen, if it has changed since it was opened.
    changed: Option<(u64, FileStamp)>,
}

impl ReportFileWatcher {
    /// Watches a file from now on.
    pub(crate) fn new(path: &Path) -> Self {
        Self {
            path: path.to_owned(),
            since: Instant::now(),
            stamp: BackgroundQuery::default(),
            workers: BackgroundWorkers::default(),
            opened: None,
            changed: None,
        }
    }

    /// Whether the file is another one than it was, and has come to rest; told once.
    pub(crate) fn has_changed(&mut self, context: &Context) -> bool {
        let turn = self.since.elapsed().as_secs() / PERIOD.as_secs();
        let path = self.path.clone();
        let asked = self.stamp.compute(context, &self.workers, &turn, move |_| stamp(&path));
        context.request_repaint_after(PERIOD);
        let QueryState::Fresh(stamp) = asked else { return false };
        self.judge(turn, *stamp)
    }

    fn judge(&mut self, turn: u64, stamp: FileStamp) -> bool {
        let Some(opened) = self.opened else {
            self.opened = Some(stamp);
            return false;
        };
        // A file that is gone may be on its way back.
        if stamp == opened || stamp.is_none() {
            self.changed = None;
            return false;
        }
        match self.changed {
            Some((before, same)) if same == stamp => {
                let rests = before < turn;
                if rests {
                    self.opened = Some(stamp);
                    self.changed = None;
                }
                rests
            }
            _ => {
                self.changed = Some((turn, stamp));
                false
            }
        }
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
    fn a_change_is_told_once_when_the_file_rests() {
        let mut watch = ReportFileWatcher::new(Path::new("a"));
        let at =
            |seconds, size| Some((SystemTime::UNIX_EPOCH + Duration::from_secs(seconds), size));
        let seen = [
            (at(1, 10), false),
            (at(1, 10), false),
            (None, false),
            (at(5, 3), false),
            (at(5, 20), false),
            (at(5, 20), true),
            (at(5, 20), false),
        ];
        for (turn, (stamp, told)) in seen.into_iter().enumerate() {
            assert_eq!(watch.judge(turn as u64, stamp), told, "{turn}");
        }
    }
}
