//! Reports on other machines are copied once, resumed and verified, and give the same answers as
//! the file itself. `ssh` is a script that runs a shell here, or does something else, depending on
//! the name of the host.
#![cfg(unix)]

use crate::common::stderr;
use crate::report_support::{foreign::Foreign, random_report};
use proptest::prelude::*;
use std::fmt::Debug;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;
use std::time::{Duration, SystemTime};
use tempfile::TempDir;
use tilescope_analysis::tables;
use tilescope_report::remote::RemoteSettings;
use tilescope_report::{Report, ReportError};
use tilescope_test_tiers::cases;

const SSH: &str = r#"#!/bin/sh
while [ "$1" != "--" ]; do shift; done
host=$2
case $host in
    log-*) tee -a "PLACE/$host" | sh ;;
    cut-*)
        if [ -e "PLACE/$host" ]; then tee "PLACE/$host" | sh
        else touch "PLACE/$host"; sh | dd bs=1 count=60000 2> /dev/null; fi ;;
    greets) echo "Welcome!"; printf 'no line'; exec sh ;;
    plain) PATH=PLACE/plain exec sh ;;
    changes) PATH=PLACE/changes:$PATH exec sh ;;
    damages) PATH=PLACE/damages:$PATH exec sh ;;
    silent) printf '\ntilescope-copy 1\n'; exec sleep 600 ;;
    lies-*) cat "PLACE/$host"; exec 1>&-; exec cat > /dev/null ;;
    *) exec sh ;;
esac
"#;

/// The directory of the script and of its output.
fn place() -> &'static Path {
    static PLACE: OnceLock<PathBuf> = OnceLock::new();
    PLACE.get_or_init(|| {
        let place = tempfile::tempdir().unwrap().keep();
        let tool = |directory: &str, name: &str, text: &str| {
            fs::create_dir_all(place.join(directory)).unwrap();
            let path = place.join(directory).join(name);
            fs::write(&path, text.replace("PLACE", place.to_str().unwrap())).unwrap();
            fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
        };
        tool("", "ssh", SSH);
        // A machine with only the tools of POSIX, and therefore no `stat`.
        for name in ["sh", "tail", "wc", "cksum", "sleep", "tee"] {
            let found = ["/bin", "/usr/bin"].map(|directory| Path::new(directory).join(name));
            let found = found.into_iter().find(|path| path.exists()).unwrap();
            fs::create_dir_all(place.join("plain")).unwrap();
            std::os::unix::fs::symlink(found, place.join("plain").join(name)).unwrap();
        }
        // Every answer of `stat` differs from the previous one.
        let counts = "#!/bin/sh\necho >> PLACE/asked\necho \"294912 1 $(wc -c < PLACE/asked) 1\"\n";
        tool("changes", "stat", counts);
        tool("damages", "cksum", "#!/bin/sh\necho 1 294912\n");
        place
    })
}

/// Makes all tests of this process use the script.
fn use_script() {
    let ssh = Some(place().join("ssh").to_str().unwrap().to_owned());
    RemoteSettings { ssh, without_terminal: true, ..RemoteSettings::default() }.set();
}

fn address(host: &str, path: &Path) -> PathBuf {
    PathBuf::from(format!("ssh://{host}{}", path.display()))
}

/// Opens a file of this machine as if it were on the machine `host`.
fn open(host: &str, path: &Path, cache: Option<&Path>) -> Result<Report, ReportError> {
    use_script();
    Report::open_with_cache(address(host, path), cache.map(Path::to_owned))
}

fn error_text<T: Debug>(answer: Result<T, ReportError>) -> String {
    match answer {
        Ok(answer) => format!("{answer:?}"),
        Err(error) => format!("error: {error}"),
    }
}

/// The answers of a report as text, without the path, which differs.
fn answers(report: &Report) -> Vec<(String, String)> {
    let mut all: Vec<(String, String)> = Vec::new();
    let mut add = |name: &str, text: String| all.push((name.to_owned(), text));
    add("trace", error_text(report.trace().map(|trace| trace.map(|trace| trace.lanes().to_vec()))));
    add("bytes", format!("{:?} {:?} {:?}", report.file_size(), report.origin(), report.meta()));
    add("files", format!("{:?}", report.sidecar_files()));
    add("text", error_text(report.sidecar_text("framework.json")));
    add("own text", error_text(report.sidecar_text("tilescope-notes.json")));
    add("no text", error_text(report.sidecar_text("no.json")));
    for table in tables::all() {
        let csv = (table.read)(report).map(|rows| rows.csv());
        add(table.name, csv.unwrap_or_else(|error| format!("error: {error}")));
    }
    add("laws", error_text(report.verify()));
    let mut warnings = report.warnings();
    warnings.sort();
    add("warnings", format!("{warnings:?}"));
    all
}

/// Checks that a remote report gives the same answers as the file.
fn check(host: &str, path: &Path) {
    let here = Report::open_with_cache(path, None).unwrap();
    let there = open(host, path, None).unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(there.path(), address(host, here.path()));
    let second = |report: &Report| {
        let changed = report.modified().unwrap().duration_since(SystemTime::UNIX_EPOCH);
        changed.unwrap().as_secs()
    };
    if host != "plain" {
        assert_eq!(second(&there), second(&here));
    }
    let there_path = there.path().display().to_string();
    let here_path = here.path().display().to_string();
    for ((name, expected), (_, found)) in answers(&here).into_iter().zip(answers(&there)) {
        if name != "files" {
            assert_eq!(found.replace(&there_path, &here_path), expected, "{name} of {here_path}");
        }
    }
}

/// A directory with a report of this machine.
fn a_report() -> TempDir {
    let directory = tempfile::tempdir().unwrap();
    let sample = Path::new(env!("CARGO_MANIFEST_DIR")).join("sample_reports/mnist_pipeline");
    fs::copy(sample.join("profile.pop"), directory.path().join("profile.pop")).unwrap();
    directory
}

#[test]
fn copies_answer_as_the_files_do() {
    let directory = a_report();
    for (name, text) in [("framework.json", "{\"a\": 1}"), ("tilescope-notes.json", "{}")] {
        fs::write(directory.path().join(name), text).unwrap();
    }
    fs::write(directory.path().join("archive.a"), "not copied").unwrap();
    for host in ["works", "greets", "plain"] {
        check(host, directory.path());
    }
    let there = open("works", directory.path(), None).unwrap();
    let found = |name: &str| there.sidecar_files().into_iter().find(|file| file.name == name);
    assert_eq!(found("archive.a").unwrap().found.unwrap().0.0, 10);
    check("works", &directory.path().join("profile.pop"));
}

#[test]
fn names_with_quotes_and_files_of_other_tools_are_copied() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("it's a \"foreign\" $HOME `file`.pop");
    Foreign::default().write(&path);
    check("works", &path);
    let path = directory.path().join("random report");
    random_report(3, 900).write(&path).unwrap();
    check("works", &path);
}

/// Commands that the script of a host has received, and the number of copies among them.
fn copies(host: &str) -> usize {
    let asked = fs::read_to_string(place().join(host)).unwrap_or_default();
    asked.matches("tail -c").count()
}

#[test]
fn a_report_is_copied_once_and_again_when_it_changes() {
    let (directory, cache) = (a_report(), tempfile::tempdir().unwrap());
    fs::write(directory.path().join("app.json"), "{}").unwrap();
    let host = "log-once";
    let first = open(host, directory.path(), Some(cache.path())).unwrap();
    assert_eq!(copies(host), 2);
    open(host, directory.path(), Some(cache.path())).unwrap();
    assert_eq!(copies(host), 2);
    // A changed file beside it is copied alone, and a deleted one is deleted here.
    fs::write(directory.path().join("app.json"), "{\"a\": 1}").unwrap();
    let again = open(host, directory.path(), Some(cache.path())).unwrap();
    assert_eq!(copies(host), 3);
    assert_eq!(again.sidecar_text("app.json").unwrap().as_deref(), Some("{\"a\": 1}"));
    fs::remove_file(directory.path().join("app.json")).unwrap();
    let again = open(host, directory.path(), Some(cache.path())).unwrap();
    assert_eq!(again.sidecar_text("app.json").unwrap(), None);
    // Another report of the same name is another copy; the first copy stays while it is open.
    let other = Path::new(env!("CARGO_MANIFEST_DIR")).join("sample_reports/matmul_chain");
    fs::copy(other.join("profile.pop"), directory.path().join("profile.pop")).unwrap();
    let second = open(host, directory.path(), Some(cache.path())).unwrap();
    assert_eq!(copies(host), 4);
    assert_ne!(first.file_size(), second.file_size());
    assert!(first.verify().unwrap().is_empty() && second.verify().unwrap().is_empty());
}

#[test]
fn a_copy_resumes_after_a_lost_connection() {
    let (directory, cache) = (a_report(), tempfile::tempdir().unwrap());
    let host = "cut-once";
    let lost = open(host, directory.path(), Some(cache.path())).err().unwrap().to_string();
    assert!(lost.contains("connection to cut-once was lost"), "{lost}");
    let whole = open(host, directory.path(), Some(cache.path())).unwrap();
    assert!(whole.verify().unwrap().is_empty());
    let asked = fs::read_to_string(place().join(host)).unwrap();
    let from = asked.split("tail -c +").nth(1).unwrap().split(' ').next().unwrap();
    let from: u64 = from.parse().unwrap();
    assert!(from > 50_000 && from < 60_000, "{from}");
}

#[test]
fn copies_that_differ_from_the_file_are_refused() {
    let (directory, cache) = (a_report(), tempfile::tempdir().unwrap());
    let size = fs::metadata(directory.path().join("profile.pop")).unwrap().len();
    let counts = place().join("changes/stat");
    let text = fs::read_to_string(&counts).unwrap().replace("294912", &size.to_string());
    fs::write(&counts, text).unwrap();
    for (host, words) in [("changes", "written to while it was copied"), ("damages", "differs")] {
        let error = open(host, directory.path(), Some(cache.path())).err().unwrap();
        assert!(matches!(error, ReportError::Remote { .. }), "{error}");
        assert!(error.to_string().contains(words), "{error}");
    }
    // None of it counts as the beginning of the next copy.
    assert!(open("works", directory.path(), Some(cache.path())).is_ok());
}

#[test]
fn two_processes_that_open_the_same_report_share_a_copy() {
    let (directory, cache) = (a_report(), tempfile::tempdir().unwrap());
    let open = || open("log-both", directory.path(), Some(cache.path())).unwrap().file_size();
    std::thread::scope(|scope| {
        let other = scope.spawn(open);
        assert_eq!(open(), other.join().unwrap());
    });
    assert_eq!(copies("log-both"), 1);
}

#[test]
fn errors_are_the_same_with_the_address_as_path() {
    let directory = tempfile::tempdir().unwrap();
    let write = |name: &str, text: &str| {
        let path = directory.path().join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, text).unwrap();
        path
    };
    let text = write("text.pop", "no report at all, but long enough");
    let several = write("several/a/profile.pop", "x");
    write("several/b.pop", "x");
    write("several/c.txt", "x");
    let one = write("one/in it/profile.pop", "x");
    let parent = |path: &Path| path.parent().unwrap().parent().unwrap().to_owned();
    let empty = directory.path().join("empty");
    fs::create_dir(&empty).unwrap();
    let nowhere = directory.path().join("nowhere");
    let device = PathBuf::from("/dev/null");
    for path in [nowhere, empty, text, parent(&several), parent(&one), device] {
        let here = Report::open(&path).err().unwrap().to_string();
        let there = open("works", &path, None).err().unwrap().to_string();
        let place = path.display().to_string();
        assert_eq!(there, here.replace(&place, &format!("ssh://works{place}")));
    }
}

#[test]
fn a_machine_that_falls_silent_is_given_up() {
    use_script();
    let output = Command::new(env!("CARGO_BIN_EXE_tilescope"))
        .args(["report", "ssh://silent/out", "-o", "x.html"])
        .env("TILESCOPE_SSH", place().join("ssh"))
        .env("TILESCOPE_REMOTE_SILENCE", "0.2")
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(1));
    let text = stderr(&output);
    assert!(text.contains("silent has sent nothing for 0.2 s, so the copy was stopped"), "{text}");
}

#[test]
fn the_least_recently_opened_copies_are_removed() {
    let (directory, cache) = (a_report(), tempfile::tempdir().unwrap());
    let copies = cache.path().join("remote");
    for age in 1..40 {
        let copy = copies.join(format!("{age:032x}"));
        fs::create_dir_all(copy.join("out")).unwrap();
        fs::write(copy.join("out/profile.pop"), "x").unwrap();
        let list = fs::File::create(copy.join("copied.json")).unwrap();
        list.set_modified(SystemTime::now() - Duration::from_secs(age * 3600)).unwrap();
    }
    open("works", directory.path(), Some(cache.path())).unwrap();
    let mut left: Vec<String> = fs::read_dir(&copies)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .filter(|name| name.starts_with("0000"))
        .collect();
    left.sort();
    let expected: Vec<String> = (1..16).map(|age| format!("{age:032x}")).collect();
    assert_eq!(left, expected);
}

/// A line that a remote machine might answer, valid or not.
fn line() -> impl Strategy<Value = String> {
    let name = prop_oneof![
        Just("profile.pop".to_owned()),
        Just("../../escaped".to_owned()),
        Just("/tmp/escaped".to_owned()),
        Just("../debug.cbor".to_owned()),
        "\\PC{0,12}",
    ];
    let number = prop_oneof![Just(u64::MAX), Just(0), 0u64..300, any::<u64>()];
    prop_oneof![
        name.clone().prop_map(|name| format!("report\t/a/b\t{name}")),
        (number, name.clone()).prop_map(|(size, name)| format!("file\t{size} 5 5 5\t{name}")),
        name.clone().prop_map(|name| format!("entry\treport\t{name}")),
        name.prop_map(|name| format!("denied\t{name}")),
        Just("listed".to_owned()),
        Just("directory".to_owned()),
        Just("data".to_owned()),
        Just("now\t100 5 5 5".to_owned()),
        Just("sum\t1 2".to_owned()),
        Just("x".repeat(20_000)),
        "\\PC{0,60}",
    ]
}

#[test]
fn dishonest_machines_are_errors_and_write_nothing_elsewhere() {
    let directory = tempfile::tempdir().unwrap();
    let answer = place().join("lies-always");
    let good = ["report\t/a/b\tprofile.pop", "file\t100 5 5 5\tprofile.pop", "listed", "data"];
    let mut runner = proptest::test_runner::TestRunner::new(ProptestConfig {
        failure_persistence: None,
        ..ProptestConfig::with_cases(cases(60))
    });
    let strategy = (0..=good.len(), prop::collection::vec(line(), 0..6));
    let found = runner.run(&strategy, |(kept, lies)| {
        let lines: Vec<&str> =
            good[..kept].iter().copied().chain(lies.iter().map(String::as_str)).collect();
        let text = format!("\ntilescope-copy 1\n{}\n", lines.join("\n"));
        fs::write(&answer, text).unwrap();
        let cache = directory.path().join("cache");
        let opened = open("lies-always", Path::new("/a"), Some(&cache));
        prop_assert!(opened.is_err());
        let entries = fs::read_dir(directory.path()).unwrap();
        prop_assert!(entries.flatten().all(|entry| entry.file_name() == "cache"));
        prop_assert!(!Path::new("/tmp/escaped").exists());
        Ok(())
    });
    found.unwrap();
}
