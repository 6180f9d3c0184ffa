//! The reports of a series: those in directories, and those given by path.

use std::cmp::Ordering;
use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::time::SystemTime;
use tilescope_report::remote::is_remote;
use tilescope_report::{PROFILE_READERS, REPORT_FILE};

/// The largest number of reports of a series.
pub const MAX_REPORTS: usize = 10_000;

/// The largest number of directory entries that are visited.
const MAX_ENTRIES: usize = 200_000;

/// The depth of the search below a directory.
const DEPTH: usize = 2;

/// A report of a series that is not read yet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SeriesSource {
    /// The name of the run, unique within the series.
    pub name: String,
    pub path: PathBuf,
    /// Time of the last modification of the file; `None` if the system does not provide it.
    pub modified: Option<SystemTime>,
}

/// The order of runs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum SeriesOrder {
    /// By name, with numbers in names compared by value.
    #[default]
    Name,
    /// By the time of modification.
    Time,
    /// In the given order.
    Given,
}

impl SeriesOrder {
    /// All orders.
    pub const ALL: [Self; 3] = [Self::Name, Self::Time, Self::Given];

    /// Its name on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Self::Name => "name",
            Self::Time => "time",
            Self::Given => "given",
        }
    }

    /// Its name in a sentence.
    pub fn words(self) -> &'static str {
        match self {
            Self::Name => "by name",
            Self::Time => "by time",
            Self::Given => "as named",
        }
    }
}

/// An error while looking for the reports of a series.
#[derive(Debug, thiserror::Error)]
pub enum SeriesError {
    /// A path that cannot be accessed.
    #[error("{}: {source}", path.display())]
    Unreachable { path: PathBuf, source: io::Error },
    /// Directories without a report.
    #[error(
        "no report in {}: {found}; a report is a file named *.pop or a profile of another tool, at \
         most {DEPTH} directories below",
        path.display()
    )]
    Empty {
        path: PathBuf,
        /// The names of the entries found instead.
        found: String,
    },
    /// More reports than a series may have.
    #[error("more than {MAX_REPORTS} reports: name a directory with fewer")]
    TooManyReports,
    /// A directory with too many entries to search.
    #[error(
        "{} and its subdirectories hold more than {MAX_ENTRIES} entries: name the directory of \
         the reports",
        path.display()
    )]
    TooManyEntries { path: PathBuf },
}

/// The reports at a path: the file itself, or all reports in a directory or up to two levels below
/// it, by name. Names begin with the path, unless it is the only one.
///
/// # Errors
/// A path that does not exist, a directory without reports, or one with more reports than a series
/// may have.
pub fn find_reports(path: &Path, is_only_one: bool) -> Result<Vec<SeriesSource>, SeriesError> {
    let unreachable = |source| SeriesError::Unreachable { path: path.to_owned(), source };
    // Remote directories cannot be listed: a remote address is that of a report.
    if is_remote(path) || !fs::metadata(path).map_err(unreachable)?.is_dir() {
        return Ok(vec![SeriesSource::of(path, run_name(path))]);
    }
    let mut walk = ReportWalk { root: path, entries: 0, found: Vec::new() };
    let below = if is_only_one { Path::new("") } else { path };
    walk.directory(path, below, DEPTH)?;
    if walk.found.is_empty() {
        return Err(SeriesError::Empty { path: path.to_owned(), found: walk.words() });
    }
    walk.found.sort_by(|a, b| natural_order(&a.name, &b.name));
    Ok(walk.found)
}

/// Sorts reports, and appends numbers to repeated names.
///
/// # Errors
/// More reports than a series may have.
pub fn arrange(sources: &mut [SeriesSource], order: SeriesOrder) -> Result<(), SeriesError> {
    if sources.len() > MAX_REPORTS {
        return Err(SeriesError::TooManyReports);
    }
    match order {
        SeriesOrder::Name => sources.sort_by(|a, b| natural_order(&a.name, &b.name)),
        SeriesOrder::Time => sources.sort_by_key(|source| source.modified),
        SeriesOrder::Given => {}
    }
    let mut known = BTreeSet::new();
    for source in sources {
        let mut name = source.name.clone();
        let mut number = 2;
        while !known.insert(name.clone()) {
            name = format!("{} ({number})", source.name);
            number += 1;
        }
        source.name = name;
    }
    Ok(())
}

impl SeriesSource {
    /// Creates a source from a path and a name.
    pub fn of(path: &Path, name: String) -> Self {
        let modified = fs::metadata(path).and_then(|about| about.modified()).ok();
        Self { name, path: path.to_owned(), modified }
    }
}

/// True if the file name is one that a tool uses for all of its reports.
fn has_common_name(file: &Path) -> bool {
    file.ends_with(REPORT_FILE)
        || PROFILE_READERS.iter().any(|reader| file.ends_with(reader.file_name))
}

/// The name of the run of a file: its directory if the file name is common to all reports, else the
/// file name.
fn run_name(file: &Path) -> String {
    let parent = file.parent().filter(|parent| !parent.as_os_str().is_empty());
    match parent {
        Some(parent) if has_common_name(file) => parent.display().to_string(),
        _ => file.with_extension("").display().to_string(),
    }
}

/// A search for reports below a directory.
struct ReportWalk<'a> {
    root: &'a Path,
    entries: usize,
    found: Vec<SeriesSource>,
}

impl ReportWalk<'_> {
    fn directory(&mut self, path: &Path, name: &Path, depth: usize) -> Result<(), SeriesError> {
        let entries = match fs::read_dir(path) {
            Ok(entries) => entries,
            // Unreadable directories are skipped, except for the given directory itself.
            Err(_) if path != self.root => return Ok(()),
            Err(source) => {
                return Err(SeriesError::Unreachable { path: path.to_owned(), source });
            }
        };
        for entry in entries.flatten() {
            self.entries += 1;
            if self.entries > MAX_ENTRIES {
                return Err(SeriesError::TooManyEntries { path: self.root.to_owned() });
            }
            let inside = entry.path();
            let own = name.join(entry.file_name());
            let is_report = inside.extension().is_some_and(|ending| ending == "pop");
            let is_report = is_report || has_common_name(&inside);
            if is_report && !inside.is_dir() {
                let name = self.run_name(&own);
                self.found.push(SeriesSource::of(&inside, name));
                if self.found.len() > MAX_REPORTS {
                    return Err(SeriesError::TooManyReports);
                }
            } else if depth > 0 && inside.is_dir() {
                self.directory(&inside, &own, depth - 1)?;
            }
        }
        Ok(())
    }

    fn run_name(&self, file: &Path) -> String {
        let is_inside = file.parent().is_none_or(|parent| parent.as_os_str().is_empty());
        if is_inside && has_common_name(file) {
            // The given directory is itself a report.
            self.root.file_name().unwrap_or(OsStr::new(".")).to_string_lossy().into_owned()
        } else {
            run_name(file)
        }
    }

    fn words(&self) -> String {
        match self.entries {
            0 => "it is empty".to_owned(),
            1 => "it holds one entry of another kind".to_owned(),
            count => format!("it holds {count} entries of other kinds"),
        }
    }
}

/// Compares names with their numbers by value: `v2` before `v10`.
pub fn natural_order(a: &str, b: &str) -> Ordering {
    let mut rest_a = a;
    let mut rest_b = b;
    while let (Some((part_a, after_a)), Some((part_b, after_b))) =
        (first_part(rest_a), first_part(rest_b))
    {
        let order = match (digits(part_a), digits(part_b)) {
            // Numbers of any length: the one with more digits is larger.
            (Some(a), Some(b)) => a.len().cmp(&b.len()).then_with(|| a.cmp(b)),
            _ => part_a.cmp(part_b),
        };
        if order.is_ne() {
            return order;
        }
        (rest_a, rest_b) = (after_a, after_b);
    }
    // Names that differ only in leading zeros still have a defined order.
    rest_a.cmp(rest_b).then_with(|| a.cmp(b))
}

/// The leading digits or non-digits of a string, and the rest.
fn first_part(text: &str) -> Option<(&str, &str)> {
    let is_digit = text.chars().next()?.is_ascii_digit();
    let end = text.find(|letter: char| letter.is_ascii_digit() != is_digit);
    Some(text.split_at(end.unwrap_or(text.len())))
}

/// A number without leading zeros.
fn digits(part: &str) -> Option<&str> {
    if part.starts_with(|letter: char| letter.is_ascii_digit()) {
        Some(part.trim_start_matches('0'))
    } else {
        None
    }
}
