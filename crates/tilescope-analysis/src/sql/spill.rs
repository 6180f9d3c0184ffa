//! The disk space that sorting takes where the memory does not hold all rows.

use std::fs;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// Bytes that SQLite may have in temporary files, over all connections of the process.
pub(super) const DISK_LIMIT: u64 = 4 << 30;
/// The time between two looks at the files.
const LOOK: Duration = Duration::from_millis(20);
/// The first letters of the names of SQLite's temporary files. Where the file system makes files
/// without a name, Linux writes `#` and their number.
const NAMES: [&str; 2] = ["etilqs_", "#"];
/// The text that Linux adds to removed names.
const GONE: &str = " (deleted)";
/// The files that the process has open, as Linux lists them.
const OPEN_FILES: &str = "/proc/self/fd";

/// True if the space of temporary files can be limited: SQLite removes their names as soon as they
/// are open, and only Linux lists the open files of a process.
pub(super) fn is_limited() -> bool {
    Path::new(OPEN_FILES).is_dir()
}

/// The limit of temporary files of a query.
pub(super) struct DiskLimit {
    bytes: u64,
    is_exceeded: AtomicBool,
}

impl Default for DiskLimit {
    fn default() -> Self {
        Self::new(DISK_LIMIT)
    }
}

impl DiskLimit {
    pub(super) fn new(bytes: u64) -> Self {
        Self { bytes, is_exceeded: AtomicBool::new(false) }
    }

    /// True once the files were larger.
    pub(super) fn is_exceeded(&self) -> bool {
        self.is_exceeded.load(Ordering::Relaxed)
    }

    /// Looks at the files, unless that was done a moment ago. Returns true if they are too large.
    pub(super) fn look(&self, last: &mut Instant) -> bool {
        if last.elapsed() >= LOOK {
            *last = Instant::now();
            if temporary_bytes() > self.bytes {
                self.is_exceeded.store(true, Ordering::Relaxed);
            }
        }
        self.is_exceeded()
    }
}

/// The bytes of SQLite's temporary files of this process.
fn temporary_bytes() -> u64 {
    let Ok(open) = fs::read_dir(OPEN_FILES) else { return 0 };
    let mut bytes = 0;
    for file in open.flatten() {
        let path = file.path();
        // Other threads open and close files meanwhile.
        let Ok(target) = fs::read_link(&path) else { continue };
        let name = target.file_name().and_then(|name| name.to_str());
        let name = name.and_then(|name| name.strip_suffix(GONE)).unwrap_or_default();
        if NAMES.iter().any(|start| name.starts_with(start)) {
            bytes += fs::metadata(&path).map_or(0, |file| file.len());
        }
    }
    bytes
}
