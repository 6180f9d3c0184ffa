//! Reports on other machines: the same answers as of the file itself, whoever is on the other side.

use crate::report_support::{foreign::Foreign, random_report};
use std::fmt::Debug;
use std::io::{PipeReader, PipeWriter, Read, Write, pipe};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};
use tilescope_analysis::tables;
use tilescope_report::remote::{ServeError, open_through_pipes, serve};
use tilescope_report::units::{CycleRange, Cycles, ReplicaClassId, StepId};
use tilescope_report::{MarkFilter, Report, ReportError, StepLayout, TraceState};

/// The address under which tests open a file of this machine.
fn address(path: &Path) -> PathBuf {
    PathBuf::from(format!("ssh://pod16{}", path.display()))
}

/// Opens a file of this machine through a pipe to the far side, which runs in a thread.
fn open_remote(path: &Path) -> Result<Report, ReportError> {
    let (questions, ask) = pipe().unwrap();
    let (answers, answer) = pipe().unwrap();
    std::thread::spawn(move || serve(questions, answer, None));
    open_through_pipes(&address(path), answers, ask)
}

fn told<T: Debug>(answer: Result<T, ReportError>) -> String {
    match answer {
        Ok(answer) => format!("{answer:?}"),
        Err(error) => format!("error: {error}"),
    }
}

/// Everything that a report answers, as text; without the path, which differs.
fn answers(report: &Report) -> Vec<(String, String)> {
    let mut all: Vec<(String, String)> = Vec::new();
    let mut add = |name: &str, text: String| all.push((name.to_owned(), text));
    add("trace state", told(report.trace_state()));
    add("trace", told(report.trace().map(|trace| trace.map(|trace| trace.lanes().to_vec()))));
    add("bytes", format!("{:?} {:?} {:?}", report.file_size(), report.origin(), report.meta()));
    add("compilation", told(report.compilation()));
    add("outcome", told(report.outcome()));
    add("batching", told(report.batching()));
    add("steps", told(report.step_count()));
    add("first steps", told(report.steps(StepId(0)..StepId(40), 100)));
    add("a later step", told(report.step(StepId(17))));
    let window = Some(CycleRange::new(Cycles(0), Cycles(1 << 40)));
    for class in [0, 1] {
        let filter = MarkFilter { kind: None, ipu: None, window, limit: 1000 };
        add("marks", told(report.marks_of_class(ReplicaClassId(class), &filter)));
    }
    add("files", format!("{:?} {:?}", report.sidecar_files(), report.modified()));
    add("text", told(report.sidecar_text("framework.json")));
    add("no text", told(report.sidecar_text("no.json")));
    for trace in report.trace().ok().flatten().iter().flat_map(|trace| trace.classes()) {
        let range = trace.range();
        for lane in (0..).map_while(|at| trace.lane(at)) {
            add("spans", told(lane.spans(range, 300)));
            add("sums", told(lane.program_sums()));
            add("totals", told(lane.totals(range)));
            add("some steps", told(lane.steps_in(range, 50)));
            add("step at", told(lane.step_at(Cycles(range.start.0 / 2 + range.end.0 / 2))));
        }
    }
    if let Some(path) = report.critical_path().unwrap() {
        add("critical path", told(path.spans(path.range(), 200)));
        add("programs of the path", told(path.programs()));
        add("beside compute", told(path.beside_compute()));
    }
    for table in tables::all() {
        let csv = (table.read)(report).map(|rows| rows.csv());
        add(table.name, csv.unwrap_or_else(|error| format!("error: {error}")));
    }
    add("laws", told(report.verify()));
    let mut warnings = report.warnings();
    warnings.sort();
    add("warnings", format!("{warnings:?}"));
    all
}

/// A remote report answers as the file does.
fn check(path: &Path) {
    let here = Report::open_with_cache(path, None).unwrap();
    let there = open_remote(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    assert_eq!(there.path(), address(here.path()));
    assert!(there.is_remote() && !here.is_remote());
    let there_path = there.path().display().to_string();
    let here_path = here.path().display().to_string();
    for (expected, found) in answers(&here).into_iter().zip(answers(&there)) {
        let text = found.1.replace(&there_path, &here_path);
        if expected.1 != text {
            let at = expected.1.bytes().zip(text.bytes()).take_while(|(a, b)| a == b).count();
            let near = |text: &str| {
                let bytes = &text.as_bytes()[at.saturating_sub(200).min(text.len())..];
                String::from_utf8_lossy(&bytes[..bytes.len().min(500)]).into_owned()
            };
            panic!(
                "{} of {here_path}:\n{}\n--- over the pipe:\n{}",
                expected.0,
                near(&expected.1),
                near(&text)
            );
        }
    }
}

fn repository(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(path)
}

#[test]
fn sample_reports_answer_over_the_pipe_as_here() {
    for name in ["matmul_chain", "mnist_pipeline", "too_large"] {
        check(&repository("sample_reports").join(name));
    }
}

#[test]
fn reports_of_every_version_and_layout_answer_over_the_pipe_as_here() {
    let versions = repository("tests/data/versions");
    let mut paths: Vec<PathBuf> =
        std::fs::read_dir(versions).unwrap().map(|entry| entry.unwrap().path()).collect();
    paths.sort();
    paths.iter().for_each(|path| check(path));
    let directory = tempfile::tempdir().unwrap();
    for (seed, layout) in [(3, StepLayout::Rows), (4, StepLayout::Columns)] {
        let path = directory.path().join(format!("random {seed}"));
        let mut report = random_report(seed, 9000);
        report.layout = layout;
        // Columns have no steps of no IPU, nor marks of such.
        report.steps.retain(|step| !step.ipus.is_empty());
        report.marks.clear();
        report.write(&path).unwrap();
        std::fs::write(path.join("framework.json"), "{\"a\": 1}").unwrap();
        check(&path);
    }
}

#[test]
fn foreign_files_answer_over_the_pipe_as_here_and_are_indexed_there() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("it's a \"foreign\" file.pop");
    Foreign::default().write(&path);
    check(&path);
    let there = open_remote(&path).unwrap();
    assert!(there.trace().unwrap().is_some());
    assert_eq!(there.trace_state().unwrap(), TraceState::Ready);
}

#[test]
fn what_was_looked_at_does_not_travel_again_and_nothing_else_does() {
    let there = open_remote(&repository("sample_reports/mnist_pipeline")).unwrap();
    let trace = there.trace().unwrap().unwrap();
    let lane = trace.lane(0).unwrap();
    let spans = lane.spans(trace.range(), 100).unwrap();
    let before = there.traffic().unwrap();
    assert_eq!(lane.spans(trace.range(), 100).unwrap().len(), spans.len());
    let same = there.marks(&MarkFilter { kind: None, ipu: None, window: None, limit: 5 }).unwrap();
    let after = there.traffic().unwrap();
    assert_eq!(
        there.marks(&MarkFilter { kind: None, ipu: None, window: None, limit: 5 }).unwrap(),
        same
    );
    assert_eq!(there.traffic().unwrap(), after);
    assert!(before.bytes_received < there.file_size().0 / 4, "{before:?}");
}

#[test]
fn errors_are_the_same_with_the_address_as_path() {
    let directory = tempfile::tempdir().unwrap();
    let text = directory.path().join("text.pop");
    std::fs::write(&text, "no report at all, but long enough").unwrap();
    for path in [directory.path().join("nowhere"), directory.path().to_owned(), text] {
        let here = Report::open(&path).err().unwrap().to_string();
        let there = open_remote(&path).err().unwrap().to_string();
        let place = path.display().to_string();
        assert_eq!(there, here.replace(&place, &format!("ssh://pod16{place}")));
    }
}

#[test]
fn a_connection_that_is_lost_is_told_and_nothing_waits_for_it() {
    let path = repository("sample_reports/mnist_pipeline");
    let (questions, ask) = pipe().unwrap();
    let (answers, answer) = pipe().unwrap();
    let (mut cut, through) = pipe().unwrap();
    std::thread::spawn(move || serve(questions, through, None));
    // Lets everything through until the link is to break.
    let breaks = Arc::new(AtomicBool::new(false));
    let broken = breaks.clone();
    let copied = std::thread::spawn(move || {
        let mut answer = answer;
        let mut bytes = [0; 1024];
        while let Ok(count @ 1..) = cut.read(&mut bytes) {
            if broken.load(Ordering::SeqCst) {
                let _ = answer.write_all(&bytes[..count / 2]);
                break;
            }
            answer.write_all(&bytes[..count]).unwrap();
        }
    });
    let there = open_through_pipes(&address(&path), answers, ask).unwrap();
    assert!(there.connection_lost().is_none() && there.target().is_ok());
    breaks.store(true, Ordering::SeqCst);
    let start = Instant::now();
    let error = there.verify().unwrap_err();
    assert!(matches!(error, ReportError::Remote { .. }), "{error}");
    assert!(error.to_string().contains("connection was lost"), "{error}");
    assert!(there.connection_lost().is_some());
    assert!(there.steps(StepId(0)..StepId(9), 9).is_err());
    assert!(start.elapsed() < Duration::from_secs(60));
    copied.join().unwrap();
}

/// The far side alone: what is written to it, what it answers, and how it ended.
fn far_side(root: Option<PathBuf>) -> (PipeWriter, PipeReader, JoinHandle<Result<(), ServeError>>) {
    let (questions, ask) = pipe().unwrap();
    let (answers, answer) = pipe().unwrap();
    let ended = std::thread::spawn(move || serve(questions, answer, root.as_deref()));
    (ask, answers, ended)
}

fn frame(words: &str) -> Vec<u8> {
    let mut bytes = (words.len() as u32 + 1).to_le_bytes().to_vec();
    bytes.push(b'J');
    bytes.extend_from_slice(words.as_bytes());
    bytes
}

const HELLO: &str = r#"{"tilescope":"0.1.0","protocol":1,"format":[2,6]}"#;

/// Everything that the far side answers to some frames, as text, and how it ended.
fn said(root: Option<&Path>, words: &[String]) -> (String, Result<(), ServeError>) {
    let (mut ask, mut answers, ended) = far_side(root.map(Path::to_owned));
    let words = words.to_vec();
    // What is refused is not read to its end.
    let asking = std::thread::spawn(move || {
        for words in &words {
            if ask.write_all(&frame(words)).is_err() {
                break;
            }
        }
    });
    asking.join().unwrap();
    let ended = ended.join().unwrap();
    let mut bytes = Vec::new();
    answers.read_to_end(&mut bytes).unwrap();
    (String::from_utf8_lossy(&bytes).into_owned(), ended)
}

fn open_request(path: &Path) -> String {
    serde_json::json!({ "id": 1, "ask": { "Open": { "path": path } } }).to_string()
}

#[test]
fn hostile_questions_are_refused_and_nothing_is_written() {
    let path = repository("sample_reports/matmul_chain/profile.pop");
    let before = std::fs::read(&path).unwrap();
    let rows = |table: &str, columns: &[&str], clauses: &str| {
        let rows = serde_json::json!({
            "database": "Report", "table": table, "columns": columns, "clauses": clauses,
            "params": [], "most": null,
        });
        serde_json::json!({ "id": 2, "ask": { "Rows": rows } }).to_string()
    };
    let refused = [
        rows("programs", &["id"], "; DELETE FROM programs"),
        rows("programs", &["id"], "WHERE id = (SELECT 1)"),
        rows("programs", &["id\" FROM sqlite_schema --"], ""),
        rows("programs", &["id"; 1000], ""),
    ];
    for question in refused {
        let words = [HELLO.to_owned(), open_request(&path), question];
        let (text, ended) = said_slowly(&words);
        assert!(text.contains("Refused"), "{text}");
        assert!(ended.is_ok());
    }
    // A table that no report has is no table, whatever else is in the file.
    let words = [HELLO.to_owned(), open_request(&path), rows("sqlite_schema", &["sql"], "")];
    let (text, _) = said_slowly(&words);
    assert!(!text.contains("CREATE"), "{text}");
    for name in ["../../Cargo.toml", "/etc/passwd", "profile.pop", "..", "a/b.json"] {
        let ask = serde_json::json!({ "id": 2, "ask": { "SidecarText": { "name": name } } });
        let words = [HELLO.to_owned(), open_request(&path), ask.to_string()];
        let (text, _) = said_slowly(&words);
        assert!(text.contains(r#"{"Text":null}"#), "{name}: {text}");
    }
    assert_eq!(std::fs::read(&path).unwrap(), before);
}

/// Like [`said`], with the input open until everything was answered.
fn said_slowly(words: &[String]) -> (String, Result<(), ServeError>) {
    let (mut ask, mut answers, ended) = far_side(None);
    words.iter().for_each(|words| ask.write_all(&frame(words)).unwrap());
    std::thread::sleep(Duration::from_millis(300));
    drop(ask);
    let ended = ended.join().unwrap();
    let mut bytes = Vec::new();
    answers.read_to_end(&mut bytes).unwrap();
    (String::from_utf8_lossy(&bytes).into_owned(), ended)
}

#[test]
fn what_no_tilescope_sends_ends_the_far_side_with_an_error() {
    let path = repository("sample_reports/matmul_chain/profile.pop");
    let open = open_request(&path);
    let cases: [&[String]; 5] = [
        &["SSH-2.0-x".to_owned()],
        &[HELLO.to_owned(), "{}".to_owned()],
        &[HELLO.to_owned(), r#"{"id":1,"ask":"More"}"#.to_owned()],
        &[HELLO.to_owned(), open.clone(), open.clone()],
        &[HELLO.to_owned(), open, "x".repeat(60_000)],
    ];
    for words in cases {
        let (text, ended) = said(None, words);
        assert!(ended.is_err(), "{words:?}: {text}");
    }
    let (mut ask, _answers, ended) = far_side(None);
    ask.write_all(&[0xff; 8]).unwrap();
    let error = ended.join().unwrap().unwrap_err();
    assert!(error.to_string().contains("more than is taken"), "{error}");
}

#[test]
fn another_protocol_is_told_on_both_sides() {
    let newer = HELLO.replace("\"protocol\":1", "\"protocol\":7");
    let (text, ended) = said(None, &[newer]);
    assert!(ended.is_ok() && text.contains("\"protocol\":1"), "{text}");
    // A far side of another protocol.
    for (protocol, words) in [(0, "older than this one"), (9, "newer than this one")] {
        let (_questions, ask) = pipe().unwrap();
        let (answers, mut answer) = pipe().unwrap();
        let greeting = format!(
            r#"{{"id":0,"said":{{"Greeting":{{"tilescope":"9.9.9","protocol":{protocol},"format":[2,6]}}}}}}"#
        );
        // Login scripts print what they like before it.
        answer.write_all(b"Welcome to pod16!\n\0tilescope serve\n").unwrap();
        answer.write_all(&frame(&greeting)).unwrap();
        let error = open_through_pipes(Path::new("ssh://pod16/out"), answers, ask).err().unwrap();
        let text = error.to_string();
        assert!(text.contains(words) && text.contains("update it"), "{text}");
        assert!(text.contains("9.9.9"), "{text}");
    }
}

#[test]
fn a_far_side_that_lies_is_an_error() {
    let opened = |tables: &str| {
        format!(
            r#"{{"id":1,"said":{{"Opened":{{"path":"/a","database":{{"bytes":100,"tables":{tables},"filled":{{}},"application_id":0,"user_version":0}},"warnings":[],"files":{{"modified":null,"sidecars":[]}}}}}}}}"#
        )
    };
    let rows = |cells: &[u8]| {
        let mut bytes = (cells.len() as u32 + 3).to_le_bytes().to_vec();
        bytes.extend_from_slice(&[b'R', 1, 1]);
        bytes.extend_from_slice(cells);
        bytes
    };
    let table = |columns: &str, rows: &str| {
        format!(r#"{{"steps":{{"columns":{columns},"has_rowid":false,"rows":{rows}}}}}"#)
    };
    let greeting = format!(r#"{{"id":0,"said":{{"Greeting":{HELLO}}}}}"#);
    let cases: [Vec<u8>; 6] = [
        b"no magic".to_vec(),
        vec![b'x'; 100_000],
        [frame(&opened(&table("[]", "99999999999"))), rows(&[])].concat(),
        [frame(&opened(&table(r#"["id"]"#, "99999999999"))), rows(&[0; 50])].concat(),
        [frame(&opened(&table(r#"["id\"); DROP TABLE x;--"]"#, "1"))), rows(&[0])].concat(),
        frame(r#"{"id":1,"said":{"Number":5}}"#),
    ];
    for (number, bytes) in cases.iter().enumerate() {
        let (_questions, ask) = pipe().unwrap();
        let (answers, mut answer) = pipe().unwrap();
        let mut all = Vec::new();
        if number > 1 {
            all.extend_from_slice(b"\0tilescope serve\n");
            all.extend_from_slice(&frame(&greeting));
        }
        all.extend_from_slice(bytes);
        let telling = std::thread::spawn(move || {
            let _ = answer.write_all(&all);
        });
        let error = open_through_pipes(Path::new("ssh://pod16/a"), answers, ask).err();
        assert!(matches!(error, Some(ReportError::Remote { .. })), "{number}: {error:?}");
        telling.join().unwrap();
    }
}

#[test]
fn only_reports_below_the_served_directory_are_opened() {
    let directory = tempfile::tempdir().unwrap();
    let root = directory.path().join("served");
    std::fs::create_dir_all(root.join("out")).unwrap();
    let sample = repository("sample_reports/matmul_chain/profile.pop");
    std::fs::copy(&sample, root.join("out/profile.pop")).unwrap();
    std::fs::copy(&sample, directory.path().join("secret.pop")).unwrap();
    let mut outside = vec![sample, directory.path().join("secret.pop"), "../secret.pop".into()];
    #[cfg(unix)]
    {
        std::os::unix::fs::symlink(directory.path().join("secret.pop"), root.join("link.pop"))
            .unwrap();
        outside.push("link.pop".into());
    }
    for path in &outside {
        let (text, _) = said(Some(&root), &[HELLO.to_owned(), open_request(path)]);
        assert!(text.contains("Refused") && !text.contains("Opened"), "{text}");
    }
    for path in [root.join("out"), "out".into()] {
        let (text, _) = said(Some(&root), &[HELLO.to_owned(), open_request(&path)]);
        assert!(text.contains("Opened"), "{text}");
    }
    let (_, ended) = said(Some(&root.join("none")), &[]);
    assert!(matches!(ended, Err(ServeError::Root { .. })));
}
