//! The locations of reports and related files: samples, simulated reports, notes.

use crate::model::navigation::notes_name;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use tilescope_report::REPORT_FILE;
use tilescope_report::remote::{absolute_path, is_remote};

/// A sample report that ships with the program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct SampleReport {
    /// The name of its directory.
    pub name: String,
    /// Its subject in a line; empty for reports that were added by hand.
    pub about: &'static str,
    /// Its directory.
    pub path: PathBuf,
}

/// The subjects of the demo reports, by the names of their directories.
const DEMO_REPORTS: [(&str, &str); 3] = [
    ("matmul_chain", "a small program: two matmuls on one IPU, most of the time lost to syncs"),
    ("mnist_pipeline", "a slow pipeline: training on four IPUs that wait for one another"),
    ("too_large", "a model that does not fit in memory, with ways to make it fit"),
];

/// The reports in `sample_reports` beside the executable, or where it was built.
pub(crate) fn demos() -> Vec<SampleReport> {
    let beside = std::env::current_exe().ok().and_then(|exe| exe.parent().map(Path::to_owned));
    let places = beside
        .into_iter()
        .flat_map(|directory| {
            [directory.join("sample_reports"), directory.join("../share/tilescope/sample_reports")]
        })
        .chain([PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../../sample_reports"))]);
    places.map(|place| demos_in(&place)).find(|demos| !demos.is_empty()).unwrap_or_default()
}

#[expect(clippy::disallowed_methods, reason = "once, when the program starts")]
fn demos_in(place: &Path) -> Vec<SampleReport> {
    let Ok(entries) = std::fs::read_dir(place) else { return Vec::new() };
    let mut demos: Vec<SampleReport> = entries
        .flatten()
        .filter(|entry| entry.path().join(REPORT_FILE).is_file())
        .map(|entry| {
            let name = entry.file_name().to_string_lossy().into_owned();
            let about = DEMO_REPORTS.iter().find(|(demo, _)| *demo == name);
            SampleReport { about: about.map_or("", |(_, about)| about), path: entry.path(), name }
        })
        .collect();
    demos.sort_by(|a, b| a.name.cmp(&b.name));
    demos
}

/// The directory for simulated reports.
pub(crate) fn simulated_reports() -> PathBuf {
    data_directory().join("simulated")
}

/// The program's directory below the user's data directory, or below the temporary directory if
/// there is none.
fn data_directory() -> PathBuf {
    let base = nonempty_variable("XDG_DATA_HOME")
        .map(PathBuf::from)
        .filter(|path| path.is_absolute())
        .or_else(|| nonempty_variable("HOME").map(|home| PathBuf::from(home).join(".local/share")))
        .unwrap_or_else(std::env::temp_dir);
    base.join("tilescope")
}

fn nonempty_variable(name: &str) -> Option<OsString> {
    std::env::var_os(name).filter(|value| !value.is_empty())
}

/// The candidate paths for the notes of a report, the preferred one first: beside the report if it
/// is on this machine, and in the user's data directory under a hash of its path.
pub(crate) fn notes_files(report: &Path) -> Vec<PathBuf> {
    let report = absolute_path(report);
    let beside = report.with_file_name(notes_name(&report));
    let bytes = report.as_os_str().as_encoded_bytes();
    let own = data_directory().join("notes").join(format!("{:016x}.json", stable_number(bytes)));
    // Nothing is written on other machines.
    if is_remote(&report) { vec![own] } else { vec![beside, own] }
}

/// The FNV-1a hash: equal bytes have equal hashes in every version.
pub(crate) fn stable_number(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_demo_report_says_what_it_shows() {
        let demos = demos();
        assert_eq!(demos.len(), DEMO_REPORTS.len());
        for demo in demos {
            assert!(!demo.about.is_empty(), "{}", demo.name);
        }
    }
}
