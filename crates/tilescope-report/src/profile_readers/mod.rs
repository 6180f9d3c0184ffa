//! Profiles in the formats of other tools. They are opened like a report, through
//! a `profile.pop` converted from them.
//!
//! A reader is a file here and a line in [`PROFILE_READERS`]. It converts bytes to a
//! [`MeasuredProfile`], the samples of tiles in the tool's terms. `clock` aligns them on one time
//! line, `steps` groups them into steps, and `report` writes them. Converted reports are kept in
//! the user's cache directory (`conversion`). The file itself and the files beside it are never
//! changed.

mod capnp;
mod clock;
mod compilation;
mod conversion;
mod ipu_stack;
mod labels;
mod report;
mod run;
mod steps;

pub(crate) use conversion::{convert, open};

use crate::error::ReportError;
use crate::model::ExchangeActivity;
use crate::units::Hertz;
use labels::LabelTable;
use std::fs::{self, File};
use std::io::Read;
use std::ops::Range;
use std::path::Path;

/// A format of another tool that can be opened like a report.
pub struct ProfileReader {
    /// The tool that writes it.
    pub tool: &'static str,
    /// The file name that the tool uses. A directory with such a file can be opened, too.
    pub file_name: &'static str,
    /// The maximum number of bytes at the start of a file that are needed to recognize it.
    head_bytes: u64,
    /// Returns true if a file of that name, start and size is such a profile.
    recognizes: fn(&Path, &[u8], u64) -> bool,
    /// Reads the profile.
    read: for<'a> fn(&'a [u8]) -> Result<MeasuredProfile<'a>, ProfileError>,
}

/// All readers.
pub static PROFILE_READERS: &[ProfileReader] = &[ipu_stack::READER];

/// The longest file that is read; it is held in memory meanwhile.
const MAX_FILE_BYTES: u64 = 1 << 30;

/// The reason why a file cannot be read as a profile.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
enum ProfileError {
    /// The profile is damaged or ends early.
    #[error("{0}")]
    Damaged(String),
    /// The file is something else in the same encoding.
    #[error("{0}")]
    Other(String),
}

impl ProfileError {
    fn at(self, path: &Path, reader: &ProfileReader) -> ReportError {
        match self {
            Self::Damaged(problem) => ReportError::damaged(problem, path),
            Self::Other(what) => ReportError::NotAReport {
                found: format!("this is not a {} of {}: {what}", reader.file_name, reader.tool),
                path: path.to_owned(),
            },
        }
    }
}

/// A profile in the terms of its tool, with texts borrowed from its bytes.
struct MeasuredProfile<'a> {
    /// Tool and version.
    generator: String,
    clock: Hertz,
    /// Samples of one tile after another; those of a tile in the order of measurement.
    samples: Vec<RawSample>,
    labels: LabelTable<'a>,
    /// Exchange activities of all samples, one after another.
    activities: Vec<ExchangeActivity>,
    /// Notes on anomalies, in plain words.
    notes: Vec<String>,
}

/// A sample of a tile, in terms of the tile's counter.
#[derive(Clone, Debug)]
struct RawSample {
    /// Number of the tile, with those of the chips before it counted: 1472 is the first of the
    /// second chip.
    tile: u32,
    /// Number of its label in the label table.
    label: u32,
    local_index: u32,
    phase: u32,
    epoch: u32,
    /// The counter at the start of the step.
    start: u32,
    end: u32,
    exchange_cycles: u32,
    /// Range of its activities in the list of all samples.
    activities: Range<usize>,
}

/// The reader of a file; `None` if the file belongs to no other tool or cannot be read.
pub(crate) fn reader_of(path: &Path) -> Option<&'static ProfileReader> {
    let found = fs::metadata(path).ok().filter(|found| found.is_file())?;
    let longest = PROFILE_READERS.iter().map(|reader| reader.head_bytes).max().unwrap_or(0);
    let mut head = Vec::new();
    File::open(path).ok()?.take(longest).read_to_end(&mut head).ok()?;
    PROFILE_READERS.iter().find(|reader| (reader.recognizes)(path, &head, found.len()))
}
