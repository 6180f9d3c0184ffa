//! Helpers of benchmarks that run the program.

use std::path::PathBuf;
use std::process::{Command, Stdio};

/// Builds the program in release and returns the path of its executable.
///
/// Cargo gives paths of executables only to benchmarks of the package that declares them.
///
/// # Panics
/// If the program does not compile.
pub fn program() -> PathBuf {
    let output = Command::new(env!("CARGO"))
        .args(["build", "--release", "--package", "tilescope", "--bin", "tilescope"])
        .arg("--message-format=json-render-diagnostics")
        .stderr(Stdio::inherit())
        .output()
        .expect("cargo starts");
    assert!(output.status.success(), "the program does not compile");
    for line in String::from_utf8_lossy(&output.stdout).lines() {
        let Ok(message) = serde_json::from_str::<serde_json::Value>(line) else { continue };
        if message["target"]["name"] == "tilescope"
            && let Some(executable) = message["executable"].as_str()
        {
            return PathBuf::from(executable);
        }
    }
    panic!("cargo names no executable");
}

/// Returns the most memory that a running process has used so far, in KiB, on Linux.
pub fn peak_memory(process: u32) -> Option<u64> {
    let status = std::fs::read_to_string(format!("/proc/{process}/status")).ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    line.trim().strip_suffix("kB")?.trim().parse().ok()
}
