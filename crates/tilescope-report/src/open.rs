//! From a path or an address to an open report.

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
    /// another tool (see [`PROFILE_READERS`](crate::PROFILE_READERS)); with an address
    /// `ssh://[user@]host[:port]/path` one of another machine, which is copied first.
    pub fn open(path: impl AsRef<Path>) -> Result<Self, ReportError> {
        Self::open_with_cache(path, user_directory())
    }

    /// Like [`Report::open`], with another place for copies, for trace indexes of foreign files and for
    /// reports made of profiles of other tools; `None` keeps them only as long as the report is open.
    pub fn open_with_cache(
        path: impl AsRef<Path>,
        cache_directory: Option<PathBuf>,
    ) -> Result<Self, ReportError> {
        let show = RemoteSettings::current().progress;
        let mut progress = |text: &str| {
            if let Some(show) = show {
                show(text);
            }
        };
        let opened = open(path.as_ref(), cache_directory, &mut progress, &AtomicBool::new(false));
        if remote::is_remote(path.as_ref()) {
            progress("");
        }
        opened
    }

    /// Like [`Report::open`]. `progress` receives sentences on how far the copy of another machine's
    /// report is; setting `cancel` ends that with [`ReportError::Cancelled`].
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

/// Opens a file of this machine, or the report that is made of it.
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

/// Writes the report of a file of another tool into `directory`; gives the report's path.
///
/// # Errors
/// A file that is of no known tool, or damaged; a directory that cannot be written.
pub fn convert_profile(path: &Path, directory: &Path) -> Result<PathBuf, ReportError> {
    let path = locate(path)?;
    match reader_of(&path) {
        Some(reader) => profile_readers::convert(&path, reader, directory),
        None => {
            let found =
                "this is no profile of another tool, there is nothing to convert".to_owned();
            Err(ReportError::NotAReport { found, path })
        }
    }
}
