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

/// Returns the CPU time of all processes that ended and were waited for, in seconds, on Linux; 0 on
/// other systems. Its resolution is 10 ms.
pub fn cpu_seconds_of_children() -> f64 {
    /// Parts of a second in `/proc` (`USER_HZ`), on every Linux system.
    const TICKS_PER_SECOND: f64 = 100.0;
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap_or_default();
    // The name of the process, in brackets, may hold spaces.
    let Some((_, after_name)) = stat.rsplit_once(')') else { return 0.0 };
    // cutime and cstime, the 16th and 17th field; the state is the third.
    let ticks = after_name.split_whitespace().skip(13).take(2);
    ticks.filter_map(|field| field.parse::<f64>().ok()).sum::<f64>() / TICKS_PER_SECOND
}
