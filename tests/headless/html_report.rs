//! `tilescope report`: pages for users and jobs, and their rendering in a browser.

use crate::common::{sample, stderr, stdout, tilescope};
use crate::report_support::foreign::Foreign;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Writes a page of some reports. Returns its path and text.
fn page(directory: &Path, reports: &[&str]) -> (PathBuf, String) {
    let file = directory.join("page.html");
    let arguments = [&["report"][..], reports, &["-o", file.to_str().unwrap()]].concat();
    let output = tilescope(&arguments);
    assert!(output.status.success(), "{}", stderr(&output));
    assert_eq!(stdout(&output).trim_end(), file.to_str().unwrap());
    let text = std::fs::read_to_string(&file).unwrap();
    (file, text)
}

#[test]
fn a_report_is_a_page() {
    let directory = tempfile::tempdir().unwrap();
    let (_, text) = page(directory.path(), &[&sample("mnist_pipeline")]);
    assert!(text.starts_with("<!DOCTYPE html>") && text.trim_end().ends_with("</html>"));
    let names: Vec<_> = std::fs::read_dir(directory.path()).unwrap().flatten().collect();
    assert_eq!(names.len(), 1, "nothing else is left");
}

#[test]
fn a_spec_is_simulated_and_keeps_its_given_name() {
    let directory = tempfile::tempdir().unwrap();
    let (_, text) = page(directory.path(), &["matmul_chain"]);
    assert!(text.contains("<title>matmul_chain</title>"));
    assert!(!text.contains("/tilescope-"), "no temporary directory");
}

#[test]
fn a_page_never_replaces_a_report() {
    let directory = tempfile::tempdir().unwrap();
    let report = directory.path().join("renamed.html");
    std::fs::copy(Path::new(&sample("matmul_chain")).join("profile.pop"), &report).unwrap();
    let before = std::fs::read(&report).unwrap();
    for file in [report.clone(), directory.path().join("new.pop")] {
        let output = tilescope(&["report", &sample("matmul_chain"), "-o", file.to_str().unwrap()]);
        assert_eq!(output.status.code(), Some(2));
        assert!(stderr(&output).contains("under the name of a report"), "{}", stderr(&output));
    }
    assert_eq!(std::fs::read(&report).unwrap(), before);
    let output = tilescope(&["report", "/nowhere", "-o", report.to_str().unwrap()]);
    assert_eq!(output.status.code(), Some(2));
}

#[test]
fn gates_are_on_the_page_and_in_the_exit_code() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("gates.html");
    let (source, target) = (sample("mnist_pipeline"), sample("matmul_chain"));
    let gates = ["--fail-if", "cycles > +1000000%", "--fail-if", "max_tile > 1 B"];
    let asked = ["report", &source, &target, "-o", file.to_str().unwrap()];
    let output = tilescope(&[&asked[..], &gates].concat());
    assert_eq!(output.status.code(), Some(3), "{}", stderr(&output));
    let text = std::fs::read_to_string(&file).expect("the page is written all the same");
    assert!(text.contains("✓ passed") && text.contains("✗ violated"));
    let output = tilescope(&["report", &source, "-o", "x.html", "--fail-if", "cycles > 1"]);
    assert_eq!(output.status.code(), Some(2), "a gate needs a second report");
}

/// Checks pages in headless Chromium, if it is installed.
#[test]
fn browsers_show_pages_as_they_should() {
    let has = |program: &str| {
        let output = Command::new(program).arg("--version").output();
        output.is_ok_and(|output| output.status.success())
    };
    let missing = ["python3", "chromium", "chromedriver"].into_iter().find(|program| !has(program));
    if let Some(program) = missing {
        eprintln!("skipped: there is no {program}, pages are not looked at in a browser");
        return;
    }
    let directory = tempfile::tempdir().unwrap();
    // A page is as wide as its screen, for a report path of any length.
    let long = directory.path().join("a_directory_with_no_place_to_break_a_line".repeat(4));
    std::fs::create_dir(&long).unwrap();
    let foreign = long.join("foreign.pop");
    Foreign::default().write(&foreign);
    let foreign = foreign.to_string_lossy().into_owned();
    let (pipeline, chain, large) =
        (sample("mnist_pipeline"), sample("matmul_chain"), sample("too_large"));
    let cases: [&[&str]; 4] = [&[&pipeline], &[&large], &[&foreign], &[&pipeline, &chain]];
    let mut pages = Vec::new();
    for (at, reports) in cases.iter().enumerate() {
        let own = directory.path().join(at.to_string());
        std::fs::create_dir(&own).unwrap();
        pages.push(page(&own, reports).0);
    }
    pages.push(directory.path().join("series.html"));
    let file = pages[cases.len()].to_str().unwrap();
    let runs = [&chain, &chain, &pipeline, &chain, &large, &foreign, &chain, &pipeline];
    let runs = runs.map(String::as_str);
    let output = tilescope(&[&["series"][..], &runs, &["--html", file]].concat());
    assert!(output.status.success(), "{}", stderr(&output));
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/browser/check_page.py");
    let output = Command::new("python3").arg(script).args(&pages).output().expect("python runs");
    assert!(output.status.success(), "{}{}", stdout(&output), stderr(&output));
}
