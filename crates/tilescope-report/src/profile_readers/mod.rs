//! Profiles that other tools wrote in formats of their own: they are opened like a report, through a
//! `profile.pop` that is made of them.
//!
//! A reader is a file here and a line in [`PROFILE_READERS`]. It turns bytes into a
//! [`MeasuredProfile`], samples of tiles as the tool has them; `clock` puts them on one time line,
//! `steps` finds out which belong together, `report` writes them. What was made of a file is kept
//! in the user's cache directory (`conversion`); the file itself is never changed, nor anything
//! beside it.

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

/// A format of another tool that is opened like a report.
pub struct ProfileReader {
    /// The tool that writes it.
    pub tool: &'static str,
    /// The name that the tool gives its file: a directory with such a file is opened, too.
    pub file_name: &'static str,
    /// Bytes at the start of a file by which it is recognized, at most.
    head_bytes: u64,
    /// Whether a file of that name, start and size is such a profile.
    recognizes: fn(&Path, &[u8], u64) -> bool,
    /// Reads it.
    read: for<'a> fn(&'a [u8]) -> Result<MeasuredProfile<'a>, ProfileError>,
}

/// Every reader.
pub static PROFILE_READERS: &[ProfileReader] = &[ipu_stack::READER];

/// The longest file that is read; all of it lies in memory meanwhile.
const MAX_FILE_BYTES: u64 = 1 << 30;

/// Why a file is no profile.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
enum ProfileError {
    /// It was one, or ends too early.
    #[error("{0}")]
    Damaged(String),
    /// It is something else in the same encoding.
    #[error("{0}")]
    Other(String),
}

impl ProfileError {
    fn at(self, path: &Path, reader: &ProfileReader) -> ReportError {
        match self {
            Self::Damaged(problem) => ReportError::damaged(problem, path),
            Self::Other(what) => ReportError::NotAReport {
                found: format!("this is no {} of {}: {what}", reader.file_name, reader.tool),
                path: path.to_owned(),
            },
        }
    }
}

/// A profile as its tool has it, with texts that lie in its bytes.
struct MeasuredProfile<'a> {
    /// Tool and version.
    generator: String,
    clock: Hertz,
    /// Samples of one tile after another, each tile's in the order in which they were taken.
    samples: Vec<RawSample>,
    labels: LabelTable<'a>,
    /// Those of all samples, one behind the other.
    activities: Vec<ExchangeActivity>,
    /// What was odd, in words.
    notes: Vec<String>,
}

/// A sample of a tile, with the counter of the tile.
#[derive(Clone, Debug)]
struct RawSample {
    /// Number of the tile's place on its chip, and of the chip before: 1472 is the first of the
    /// second one.
    tile: u32,
    /// What it is of, in the table of labels.
    label: u32,
    local_index: u32,
    phase: u32,
    epoch: u32,
    /// The counter when the step began and ended.
    start: u32,
    end: u32,
    exchange_cycles: u32,
    /// Its activities among those of all samples.
    activities: Range<usize>,
}

/// The reader of a file; `None` if it is none of another tool, or cannot be read at all.
pub(crate) fn reader_of(path: &Path) -> Option<&'static ProfileReader> {
    let found = fs::metadata(path).ok().filter(|found| found.is_file())?;
    let longest = PROFILE_READERS.iter().map(|reader| reader.head_bytes).max().unwrap_or(0);
    let mut head = Vec::new();
    File::open(path).ok()?.take(longest).read_to_end(&mut head).ok()?;
    PROFILE_READERS.iter().find(|reader| (reader.recognizes)(path, &head, found.len()))
}
