//! Output files of commands: never over a report, and no trace of an unfinished one.

use crate::common::{sample, stderr, stdout, tilescope};
use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

/// Every option for an output file, with a command that would write `FILE`; commands that write a
/// directory determine the file name themselves.
const OUTPUTS: &[(&str, &[&str])] = &[
    ("sensitivity --output", &["sensitivity", "matmul_chain", "-o", "FILE"]),
    ("sweep --results", &["sweep", "matmul_chain", "--results", "FILE", "--vary", "model.m=8,16"]),
    ("sweep --plot", &["sweep", "matmul_chain", "--plot", "FILE", "--vary", "model.m=8,16"]),
    ("tune --results", &["tune", "matmul_chain", "--results", "FILE"]),
    ("tune --output", &["tune", "matmul_chain", "-o", "FILE"]),
    ("tune --plot", &["tune", "matmul_chain", "--plot", "FILE"]),
    ("query --output", &["query", "REPORT", "SELECT 1", "-o", "FILE"]),
    ("compare --junit", &["compare", "REPORT", "REPORT", "--fail-over", "5", "--junit", "FILE"]),
    ("series --html", &["series", "REPORT", "--html", "FILE"]),
    ("calibrate --output", &["calibrate", "REPORT", "matmul_chain", "-o", "FILE"]),
    ("export --output", &["export", "REPORT", "--view", "memory", "--format", "csv", "-o", "FILE"]),
    ("report --output", &["report", "REPORT", "-o", "FILE"]),
];

/// Names of commands with options for an output file, from the help texts.
fn options_that_write() -> BTreeSet<String> {
    let help = stdout(&tilescope(&["--help"]));
    let commands = help.lines().skip_while(|line| *line != "Commands:").skip(1);
    let mut found = BTreeSet::new();
    for line in commands.take_while(|line| !line.is_empty()) {
        let command = line.split_whitespace().next().expect("a name");
        if command == "help" {
            continue;
        }
        for line in stdout(&tilescope(&[command, "--help"])).lines() {
            let Some((before, _)) = line.split_once(" <FILE") else { continue };
            let option = before.rsplit(' ').next().expect("an option");
            if ["--output", "--junit", "--html", "--plot", "--results"].contains(&option) {
                found.insert(format!("{command} {option}"));
            }
        }
    }
    found
}

#[test]
fn no_command_writes_over_a_report() {
    let known: BTreeSet<String> = OUTPUTS.iter().map(|(option, _)| (*option).to_owned()).collect();
    assert_eq!(options_that_write(), known);
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("profile.pop");
    let report = sample("matmul_chain");
    fs::copy(Path::new(&report).join("profile.pop"), &file).unwrap();
    let before = fs::read(&file).unwrap();
    for (option, words) in OUTPUTS {
        let mut given = Vec::new();
        for word in *words {
            given.push(match *word {
                "FILE" => file.to_str().unwrap(),
                "REPORT" => report.as_str(),
                word => word,
            });
        }
        let output = tilescope(&given);
        let said = stderr(&output);
        assert!(!output.status.success(), "{option}: {}", stdout(&output));
        assert!(!said.contains("unexpected argument"), "{option}: {said}");
        assert!(fs::read(&file).unwrap() == before, "{option} has changed it");
        let names = fs::read_dir(directory.path()).unwrap().count();
        assert_eq!(names, 1, "{option}: {said}");
    }
}

#[test]
fn both_layouts_give_the_same_answers() {
    let directory = tempfile::tempdir().unwrap();
    let place = |layout: &str| directory.path().join(layout).to_str().unwrap().to_owned();
    let mut sizes = Vec::new();
    let mut answers = Vec::new();
    for layout in ["rows", "chunks"] {
        let report = place(layout);
        let words = ["simulate", "mnist_pipeline", "--layout", layout, "-o", &report, "--set"];
        let done = tilescope(&[&words[..], &["options.device_iterations=3"]].concat());
        assert!(done.status.success(), "{}", stderr(&done));
        let sql = "SELECT s.id, count(*), sum(b.cycles) FROM steps s JOIN steps_by_ipu b \
                   ON b.step_id = s.id GROUP BY 1 ORDER BY 1";
        answers.push(stdout(&tilescope(&["query", &report, sql, "--format", "csv"])));
        sizes.push(fs::metadata(Path::new(&report).join("profile.pop")).unwrap().len());
    }
    assert!(answers[0] == answers[1] && answers[0].lines().count() > 1_000);
    assert!(sizes[1] < sizes[0]);
}

#[cfg(unix)]
mod signals {
    use crate::common;
    use std::fs;
    use std::path::Path;
    use std::process::{Command, Stdio};
    use std::time::Duration;
    use tilescope_test_tiers::up_to;

    const PROGRAM: &str = env!("CARGO_BIN_EXE_tilescope");

    /// A run with more records than a machine writes before the test has seen the file.
    const LONG: [&str; 4] = ["simulate", "mnist_pipeline", "--yes", "--set"];
    const ITERATIONS: &str = "options.device_iterations=10000";

    fn is_empty(directory: &Path) -> bool {
        fs::read_dir(directory).unwrap().next().is_none()
    }

    #[test]
    fn an_interrupted_simulation_leaves_nothing() {
        let signals = ["TERM", "INT", "HUP"].into_iter();
        for signal in signals.take(up_to(1)) {
            let directory = tempfile::tempdir().unwrap();
            let mut command = Command::new(PROGRAM);
            command.args(LONG).arg(ITERATIONS).arg("-o").arg(directory.path());
            command.stdout(Stdio::null()).stderr(Stdio::null());
            let mut child = command.spawn().unwrap();
            let part = directory.path().join("profile.pop.part");
            while !part.exists() {
                assert!(child.try_wait().unwrap().is_none(), "it ended by itself");
                std::thread::sleep(Duration::from_millis(5));
            }
            assert!(common::signal(signal, &child.id().to_string()));
            assert_eq!(child.wait().unwrap().code(), Some(130), "{signal}");
            assert!(is_empty(directory.path()), "{signal}");
        }
    }

    #[test]
    fn a_limit_on_the_size_of_files_gives_a_message() {
        let directory = tempfile::tempdir().unwrap();
        // The shell counts blocks of 512 or 1,024 bytes.
        let mut command = common::limited_tilescope("ulimit -f 64");
        command.args(["simulate", "mnist_pipeline", "-o"]);
        let output = command.arg(directory.path()).output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(1), "{said}");
        assert!(said.contains("error: ") && said.contains("ulimit -f"), "{said}");
        assert!(is_empty(directory.path()), "{said}");
    }

    #[test]
    fn a_pipe_under_the_name_of_a_report_is_refused_with_a_message() {
        let directory = tempfile::tempdir().unwrap();
        let pipe = directory.path().join("profile.pop");
        assert!(Command::new("mkfifo").arg(&pipe).status().unwrap().success());
        for place in [directory.path(), &pipe] {
            let mut command = Command::new(PROGRAM);
            let output = command.arg("summary").arg(place).output().unwrap();
            let said = String::from_utf8_lossy(&output.stderr).into_owned();
            assert_eq!(output.status.code(), Some(1), "{said}");
            assert!(said.contains("not a regular file"), "{said}");
        }
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn a_name_that_is_not_utf_8_is_written() {
        use std::os::unix::ffi::OsStrExt;
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join(std::ffi::OsStr::from_bytes(b"memory\xff.csv"));
        let mut command = Command::new(PROGRAM);
        command.arg("export").arg(common::sample("matmul_chain"));
        command.args(["--view", "memory", "--format", "csv", "-o"]).arg(&file);
        assert!(command.output().unwrap().status.success());
        assert!(file.exists());
    }
}
