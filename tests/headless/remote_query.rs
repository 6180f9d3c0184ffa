//! Commands that print text about reports on other machines run there, through a stand-in for `ssh`
//! that runs the command here.
#![cfg(unix)]

use crate::common::{stderr, stdout};
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use tempfile::{TempDir, tempdir};

/// Runs its command in a shell, as `ssh` does on the other machine.
const SSH: &str = "#!/bin/sh\nfor asked; do :; done\nexec sh -c \"$asked\"\n";
/// A machine without tilescope.
const WITHOUT_PROGRAM: &str = "#!/bin/sh\nfor asked; do :; done\n\
    case $asked in *query*) exit 127 ;; esac\nexec sh -c \"$asked\"\n";

struct FarSide {
    directory: TempDir,
    ssh: PathBuf,
    report: String,
}

impl FarSide {
    fn new(ssh: &str) -> Self {
        let directory = tempdir().unwrap();
        let place = directory.path().join("ssh");
        fs::write(&place, ssh).unwrap();
        fs::set_permissions(&place, fs::Permissions::from_mode(0o755)).unwrap();
        let report = directory.path().join("it's a report");
        let sample = Path::new(env!("CARGO_MANIFEST_DIR")).join("sample_reports/mnist_pipeline");
        fs::create_dir(&report).unwrap();
        fs::copy(sample.join("profile.pop"), report.join("profile.pop")).unwrap();
        Self { ssh: place, report: report.to_string_lossy().into_owned(), directory }
    }

    /// Queries the report here, or there.
    fn query(&self, there: bool, arguments: &[&str]) -> Output {
        self.run("query", there, arguments)
    }

    /// Runs a command on the report here, or there.
    fn run(&self, command: &str, there: bool, arguments: &[&str]) -> Output {
        let address = format!("ssh://pod16{}", self.report);
        Command::new(env!("CARGO_BIN_EXE_tilescope"))
            .args([command, if there { &address } else { &self.report }])
            .args(arguments)
            .env("TILESCOPE_SSH", &self.ssh)
            .env("TILESCOPE_REMOTE_PROGRAM", env!("CARGO_BIN_EXE_tilescope"))
            .env("XDG_CACHE_HOME", self.directory.path().join("cache"))
            .current_dir(self.directory.path())
            .output()
            .unwrap()
    }
}

#[test]
fn queries_have_the_same_answers_there_and_here() {
    let far = FarSide::new(SSH);
    for arguments in [
        &["slowest-programs"][..],
        &["slowest-programs", "--format", "csv"],
        &[
            "SELECT name, 'it''s \"odd\" $HOME `x`' AS said\nFROM programs LIMIT 3",
            "--format",
            "json",
        ],
        &["SELECT count(*) FROM steps_between(0, 100000)", "--timeout", "20"],
        &["--tables"],
    ] {
        let [here, there] = [false, true].map(|there| far.query(there, arguments));
        assert!(there.status.success(), "{arguments:?}: {}", stderr(&there));
        assert_eq!(stdout(&there), stdout(&here), "{arguments:?}");
        assert!(!stdout(&there).is_empty(), "{arguments:?}");
        assert_eq!(stderr(&there), stderr(&here), "{arguments:?}");
    }
}

#[test]
fn errors_are_those_of_the_far_side() {
    let far = FarSide::new(SSH);
    for arguments in [
        &["SELECT nam FROM programs"][..],
        &["slowest-program"],
        &["SELECT 1 FROM nothing"],
        &["DELETE FROM programs"],
    ] {
        let [here, there] = [false, true].map(|there| far.query(there, arguments));
        assert_eq!(there.status.code(), here.status.code(), "{arguments:?}");
        assert_eq!(stderr(&there), stderr(&here), "{arguments:?}");
        assert_eq!(stdout(&there), "", "{arguments:?}");
    }
}

#[test]
fn text_is_printed_where_the_report_is() {
    let far = FarSide::new(SSH);
    let commands = [
        &["summary"][..],
        &["why", "--limit", "3"],
        &["insights", "--json"],
        &["find", "kind=programs"],
        &["verify"],
        &["find", "kind="],
    ];
    for words in commands {
        let [here, there] = [false, true].map(|there| far.run(words[0], there, &words[1..]));
        assert_eq!(there.status.code(), here.status.code(), "{words:?}");
        assert_eq!(stdout(&there), stdout(&here), "{words:?}");
        assert_eq!(stderr(&there), stderr(&here), "{words:?}");
        assert!(!far.directory.path().join("cache").exists(), "{words:?} is copied");
    }
    // Commands that simulate or write run here, on a copy.
    let copied = far.run("export", true, &["--view", "memory", "--format", "csv", "-o", "x.csv"]);
    assert!(copied.status.success(), "{}", stderr(&copied));
    assert!(far.directory.path().join("cache/tilescope/remote").exists());
}

#[test]
fn a_file_is_written_here_and_whole_or_not_at_all() {
    let far = FarSide::new(SSH);
    let file = far.directory.path().join("answer.csv");
    let asked = ["slowest-programs", "--format", "csv"];
    let written = far.query(true, &[&asked[..], &["-o", "answer.csv"]].concat());
    assert!(written.status.success(), "{}", stderr(&written));
    assert_eq!(fs::read_to_string(&file).unwrap(), stdout(&far.query(false, &asked)));
    fs::remove_file(&file).unwrap();
    let wrong = far.query(true, &["SELECT nothing", "--format", "csv", "-o", "answer.csv"]);
    assert_eq!(wrong.status.code(), Some(2));
    assert!(!file.exists());
    let over = far.query(true, &["slowest-programs", "-o", "other.pop"]);
    assert_eq!(over.status.code(), Some(2), "{}", stderr(&over));
}

#[test]
fn without_the_program_the_report_is_copied_and_queried_here() {
    let far = FarSide::new(WITHOUT_PROGRAM);
    for arguments in [&["slowest-programs"][..], &["--tables"]] {
        let [here, there] = [false, true].map(|there| far.query(there, arguments));
        assert_eq!(stdout(&there), stdout(&here), "{}", stderr(&there));
    }
    let csv = ["slowest-programs", "--format", "csv"];
    let written = far.query(true, &[&csv[..], &["-o", "answer.csv"]].concat());
    assert!(written.status.success(), "{}", stderr(&written));
    let text = fs::read_to_string(far.directory.path().join("answer.csv")).unwrap();
    assert_eq!(text, stdout(&far.query(false, &csv)));
    let missing = FarSide::new("#!/bin/sh\nexit 127\n").query(true, &["slowest-programs"]);
    assert_eq!((missing.status.code(), stdout(&missing).as_str()), (Some(1), ""));
    assert!(stderr(&missing).contains("no POSIX shell answers"), "{}", stderr(&missing));
    let refused = FarSide::new("#!/bin/sh\necho 'Connection refused' >&2\nexit 255\n");
    let refused = refused.query(true, &["slowest-programs"]);
    assert!(stderr(&refused).contains("could not connect to pod16"), "{}", stderr(&refused));
}
