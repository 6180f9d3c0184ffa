//! Passes a digest of the simulator's sources to the crate, so that reports that tests keep never
//! outlive the simulator that wrote them.

use std::hash::{DefaultHasher, Hasher};
use std::path::{Path, PathBuf};

/// All sources that determine the bytes of a report.
const SOURCES: [&str; 5] = [
    "../tilescope-onnx/src",
    "../tilescope-report/src",
    "../tilescope-sim/src",
    "../../assets",
    "../../Cargo.lock",
];

fn main() {
    let mut digest = DefaultHasher::new();
    for source in SOURCES {
        println!("cargo:rerun-if-changed={source}");
        for file in files(Path::new(source)) {
            digest.write(file.to_string_lossy().as_bytes());
            let bytes = std::fs::read(&file).expect("sources can be read");
            digest.write_usize(bytes.len());
            digest.write(&bytes);
        }
    }
    println!("cargo:rustc-env=TILESCOPE_SIMULATOR_DIGEST={:016x}", digest.finish());
}

/// The files in and below a path, in the same order on every machine.
fn files(path: &Path) -> Vec<PathBuf> {
    if path.is_file() {
        return vec![path.to_owned()];
    }
    let entries = std::fs::read_dir(path).expect("sources can be listed");
    let mut entries: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).collect();
    entries.sort();
    let mut found = Vec::new();
    for entry in entries {
        found.extend(files(&entry));
    }
    found
}
