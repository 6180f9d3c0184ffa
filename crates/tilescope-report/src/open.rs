//! Opening a report from a path or an address.

use crate::cache_directory::user_directory;
use crate::error::ReportError;
use crate::profile_readers::{self, reader_of};
use crate::reader::{Report, ReportFile};
use crate::remote::{self, RemoteAddress, RemoteSettings};
use crate::report_location::locate;
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;

impl Report {
    /// Opens a directory that holds a `profile.pop`, such a file under any name, or a profile of
    /// another tool (see [`PROFILE_READERS`](crate::PROFILE_READERS)). An address
    /// `ssh://[user@]host[:port]/path` opens a report on another machine, which is copied first.
    pub fn open(path: impl AsRef<Path>) -> Result<Self, ReportError> {
        Self::open_with_cache(path, user_directory())
    }

    /// Like [`Report::open`], with another directory for copies, for trace indexes of foreign files
    /// and for converted profiles of other tools. With `None`, they exist only while the report is
    /// open.
    pub fn open_with_cache(
        path: impl AsRef<Path>,
        cache_directory: Option<PathBuf>,
    ) -> Result<Self, ReportError> {
        let show = RemoteSettings::current().progress;
        let mut show_progress = |text: &str| {
            if let Some(show) = show {
                show(text);
            }
        };
        let opened =
            open(path.as_ref(), cache_directory, &mut show_progress, &AtomicBool::new(false));
        if remote::is_remote(path.as_ref()) {
            show_progress("");
        }
        opened
    }

    /// Like [`Report::open`]. `progress` receives sentences on the progress of the copy from
    /// another machine. Setting `cancel` aborts with [`ReportError::Cancelled`].
    pub fn open_watched(
        path: impl AsRef<Path>,
        progress: &mut dyn FnMut(&str),
        cancel: &AtomicBool,
    ) -> Result<Self, ReportError> {
        open(path.as_ref(), user_directory(), progress, cancel)
    }
}

fn open(
    path: &Path,
    cache_directory: Option<PathBuf>,
    progress: &mut dyn FnMut(&str),
    cancel: &AtomicBool,
) -> Result<Report, ReportError> {
    let address = RemoteAddress::of_path(path).map_err(|error| ReportError::Remote {
        problem: error.to_string(),
        path: path.to_owned(),
    })?;
    let Some(address) = address else {
        let source = locate(path)?;
        let file = ReportFile {
            path: source.clone(),
            directory: directory_of(&source),
            source,
            elsewhere: Vec::new(),
            temporary: Vec::new(),
        };
        return open_here(file, cache_directory);
    };
    let copy = remote::copy_report(&address, cache_directory.as_deref(), progress, cancel)?;
    let source = copy.address.to_path();
    let file = ReportFile {
        directory: directory_of(&copy.file),
        path: copy.file,
        source: source.clone(),
        elsewhere: copy.files,
        temporary: copy.temporary.into_iter().collect(),
    };
    open_here(file, cache_directory).map_err(|error| error.at(source))
}

fn directory_of(file: &Path) -> PathBuf {
    file.parent().unwrap_or(Path::new(".")).to_owned()
}

/// Opens a file of this machine, or the report converted from it.
fn open_here(
    mut file: ReportFile,
    cache_directory: Option<PathBuf>,
) -> Result<Report, ReportError> {
    if let Some(made) = profile_readers::open(&file.path, cache_directory.as_deref())? {
        file.path = made.file;
        file.temporary.extend(made.temporary);
    }
    Report::of_file(file, cache_directory)
}

/// Converts a file of another tool to a report in `directory`. Returns the report's path.
///
/// # Errors
/// The file is damaged or not of a known tool, or the directory cannot be written.
pub fn convert_profile(path: &Path, directory: &Path) -> Result<PathBuf, ReportError> {
    let path = locate(path)?;
    match reader_of(&path) {
        Some(reader) => profile_readers::convert(&path, reader, directory),
        None => {
            let found = "not a profile of another tool, so nothing to convert".to_owned();
            Err(ReportError::NotAReport { found, path })
        }
    }
}
