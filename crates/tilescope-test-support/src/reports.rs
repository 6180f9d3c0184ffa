//! Reports of specs, simulated once per build of the simulator and kept in the target directory,
//! because most tests use the same few programs.

use siphasher::sip128::{Hasher128, SipHasher13};
use std::fs::{self, File};
use std::hash::Hasher;
use std::io;
use std::path::{Path, PathBuf};
use tilescope_report::Report;
use tilescope_sim::simulate;
use tilescope_sim::specification::{Spec, SpecSource};

/// The digest of the simulator's sources that `build.rs` computes.
const SIMULATOR: &str = env!("TILESCOPE_SIMULATOR_DIGEST");
/// The file of a report.
const REPORT: &str = "profile.pop";

/// Builds the spec of this name or file, with overrides.
///
/// # Panics
/// If there is no such spec, or it is refused.
pub fn spec(name: &str, overrides: &[&str]) -> Spec {
    let overrides: Vec<String> = overrides.iter().map(|text| (*text).to_owned()).collect();
    let source = SpecSource::find(name, &overrides).expect("spec exists");
    Spec::build(&source).expect("spec is sane")
}

/// A directory with a report for each spec, below the target directory of the tests.
#[derive(Clone, Debug)]
pub struct ReportStore {
    directory: PathBuf,
}

impl ReportStore {
    /// The store below `target`, the directory `CARGO_TARGET_TMPDIR`. Reports of other builds of the
    /// simulator are removed.
    pub fn new(target: &str) -> Self {
        let root = Path::new(target).join("../test-reports");
        if let Ok(entries) = fs::read_dir(&root) {
            for entry in entries.flatten().filter(|entry| entry.file_name() != SIMULATOR) {
                // Another process may remove it at the same time.
                let _ = fs::remove_dir_all(entry.path());
            }
        }
        Self { directory: root.join(SIMULATOR) }
    }

    /// Writes the report of a spec into `directory`, from the store or by simulating it. Returns
    /// the path of the file. The caller may change the copy.
    ///
    /// # Panics
    /// If the spec cannot be simulated, or a file cannot be written.
    pub fn write(&self, spec: &Spec, directory: &Path) -> PathBuf {
        let kept = self.kept(spec).expect("the store can be written");
        fs::create_dir_all(directory).expect("a directory for the report");
        let path = directory.join(REPORT);
        fs::copy(kept, &path).expect("the report can be copied");
        path
    }

    /// Opens a copy of the report of a spec; the directory must outlive the report.
    ///
    /// # Panics
    /// As [`ReportStore::write`].
    pub fn open(&self, spec: &Spec) -> (Report, tempfile::TempDir) {
        let directory = tempfile::tempdir().expect("temporary directory");
        let path = self.write(spec, directory.path());
        (Report::open(&path).expect("opens"), directory)
    }

    /// The kept file, simulated first if there is none. Processes and threads that need the same
    /// spec wait for each other.
    fn kept(&self, spec: &Spec) -> io::Result<PathBuf> {
        fs::create_dir_all(&self.directory)?;
        let key = key(spec);
        let path = self.directory.join(&key).join(REPORT);
        let lock = File::create(self.directory.join(format!("{key}.lock")))?;
        lock.lock()?;
        if !path.is_file() {
            let begun = tempfile::tempdir_in(&self.directory)?;
            simulate(spec, begun.path(), |_| ()).expect("simulates");
            let finished = self.directory.join(&key);
            let begun = begun.keep();
            #[expect(clippy::disallowed_methods, reason = "a directory that nobody has yet")]
            fs::rename(begun, finished)?;
        }
        Ok(path)
    }
}

/// A name for everything that determines a report except the simulator: the whole spec, which a
/// test may have changed since it was read, with the graph of an imported model.
fn key(spec: &Spec) -> String {
    let mut digest = SipHasher13::new();
    digest.write(without_addresses(&format!("{spec:?}")).as_bytes());
    let digest = digest.finish128();
    format!("{:016x}{:016x}", digest.h1, digest.h2)
}

/// A text without the addresses of functions, which differ from process to process.
fn without_addresses(text: &str) -> String {
    let mut parts = text.split("0x");
    let mut kept = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        kept.push_str(part.trim_start_matches(|of: char| of.is_ascii_hexdigit()));
    }
    kept
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_kept_report_is_the_simulated_one() {
        let target = tempfile::tempdir().expect("a directory");
        let tmp = target.path().join("tmp");
        fs::create_dir(&tmp).expect("a directory");
        let store = ReportStore::new(tmp.to_str().expect("UTF-8"));
        let other = target.path().join("test-reports/another-build");
        fs::create_dir_all(&other).expect("a directory");
        let spec_of = |overrides: &[&str]| spec("matmul_chain", overrides);
        let simulated = simulate(&spec_of(&[]), &target.path().join("simulated"), |_| ());
        let simulated = fs::read(simulated.expect("simulates")).expect("reads");
        for place in ["first", "second"] {
            let path = store.write(&spec_of(&[]), &target.path().join(place));
            assert!(fs::read(path).expect("reads") == simulated, "{place}");
        }
        let changed = spec_of(&["options.device_iterations=3"]);
        let path = store.write(&changed, &target.path().join("changed"));
        assert!(fs::read(path).expect("reads") != simulated);
        let mut by_hand = spec_of(&[]);
        by_hand.options.device_iterations = 3;
        let path = store.write(&by_hand, &target.path().join("by-hand"));
        assert!(fs::read(path).expect("reads") != simulated, "a spec that was changed later");
        assert!(other.is_dir());
        ReportStore::new(tmp.to_str().expect("UTF-8"));
        assert!(!other.exists(), "reports of another build are removed");
    }
}
