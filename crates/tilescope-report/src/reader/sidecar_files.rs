//! Files that SDK tools write beside a report.

use super::Report;
use crate::error::ReportError;
use crate::text_file::read_text;
use crate::units::Bytes;
use std::time::{Duration, SystemTime};
use std::{fs, io};

/// A file that SDK tools write beside the report.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SidecarFile {
    /// `debug.cbor`
    pub name: &'static str,
    /// A description of its content.
    pub about: &'static str,
    /// Size and time of last change; `None` if it does not exist.
    pub found: Option<(Bytes, Option<SystemTime>)>,
}

impl SidecarFile {
    /// True if the file is older than the report by more than the time in which a run writes all
    /// files. SDK tools overwrite only the files that are enabled, so an older one is left over
    /// from an earlier run.
    pub fn is_older_than(&self, report: SystemTime) -> bool {
        let changed = self.found.and_then(|(_, changed)| changed);
        let before = changed.and_then(|changed| report.duration_since(changed).ok());
        before.is_some_and(|before| before > SAME_RUN)
    }
}

/// Files of one run are written within this time.
const SAME_RUN: Duration = Duration::from_secs(3600);

/// Names and contents, as the SDK's documentation lists them.
const FILES: [(&str, &str); 8] = [
    ("debug.cbor", "debug information: layers and operations with their programs"),
    ("vars.capnp", "lowered variables with their addresses"),
    ("archive.a", "tile programs"),
    ("serialized_graph.capnp", "the graph before compilation"),
    ("framework.json", "operations of the framework"),
    ("app.json", "metadata recorded by the application"),
    ("graph.json", "compile-time report of an SDK before 2.0"),
    ("execution.json", "run-time report of an SDK before 2.0"),
];

/// Longer files are not read: facts written by users are short.
const MAX_TEXT_BYTES: Bytes = Bytes(4 << 20);

impl Report {
    /// The text of a file beside the report; `None` if there is no such file.
    ///
    /// # Errors
    /// The file cannot be read, is too long, or is not text.
    pub fn sidecar_text(&self, name: &str) -> Result<Option<String>, ReportError> {
        let path = self.directory.join(name);
        match read_text(&path, MAX_TEXT_BYTES) {
            Ok(text) => Ok(Some(text)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(ReportError::reading(error, &path)),
        }
    }

    /// The time of the last change of the report file, if known.
    pub fn modified(&self) -> Option<SystemTime> {
        match self.elsewhere.first() {
            Some(report) => report.modified(),
            None => fs::metadata(self.path()).and_then(|found| found.modified()).ok(),
        }
    }

    /// Files that SDK tools write beside a report, existing or not.
    pub fn sidecar_files(&self) -> Vec<SidecarFile> {
        let mut files = Vec::new();
        for (name, about) in FILES {
            let found = match self.elsewhere.iter().find(|file| file.name == name) {
                Some(file) => Some((Bytes(file.bytes), file.modified())),
                None => fs::metadata(self.directory.join(name))
                    .ok()
                    .filter(|found| found.is_file())
                    .map(|found| (Bytes(found.len()), found.modified().ok())),
            };
            files.push(SidecarFile { name, about, found });
        }
        files
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_of_an_earlier_run_are_recognized() {
        let now = SystemTime::now();
        let file = |age: Option<u64>| SidecarFile {
            name: "debug.cbor",
            about: "",
            found: age.map(|age| (Bytes(1), Some(now - Duration::from_secs(age)))),
        };
        assert!(file(Some(86_400)).is_older_than(now));
        assert!(!file(Some(60)).is_older_than(now));
        assert!(!file(None).is_older_than(now));
        assert!(!file(Some(0)).is_older_than(now - Duration::from_secs(86_400)));
    }
}
