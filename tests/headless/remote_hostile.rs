//! Pipes of reports on other machines with somebody hostile at the other end: what comes is answered
//! or refused, nothing panics, nothing waits for ever, nothing is written.

use proptest::prelude::*;
use proptest::sample::Index;
use proptest::test_runner::TestRunner;
use std::io::{self, Cursor, Read, Write, pipe};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, Once};
use std::time::{Duration, Instant};
use tilescope_report::remote::{open_through_pipes, plain_frames, serve};
use tilescope_report::trace::LaneQuestion;
use tilescope_report::units::{CycleRange, Cycles, StepId};
use tilescope_report::{MarkFilter, Report, ReportError};
use tilescope_test_tiers::cases;

/// What the far side may answer to all questions of a stream: some times the report.
const MOST_BYTES: usize = 64 << 20;

fn few_cases() -> ProptestConfig {
    ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(cases(60)) }
}

/// The time after which a stream counts as one that never ends, on a machine of any speed.
const MOST_TIME: Duration = Duration::from_secs(60);

/// Panics in the code that reads and answers, in whichever thread.
fn panics() -> usize {
    static PANICS: AtomicUsize = AtomicUsize::new(0);
    static COUNTED: Once = Once::new();
    COUNTED.call_once(|| {
        let before = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |panic| {
            if panic.location().is_some_and(|place| place.file().contains("tilescope-report")) {
                PANICS.fetch_add(1, Ordering::SeqCst);
            }
            before(panic);
        }));
    });
    PANICS.load(Ordering::SeqCst)
}

/// What happens to a stream of frames on the way.
#[derive(Clone, Debug)]
enum Change {
    /// A byte behind the length becomes another one.
    Byte(Index, Index, u8),
    /// A number in words becomes another one.
    Number(Index, Index, u64),
    /// A piece is cut out of a frame.
    Cut(Index, Index, u8),
    /// Bytes are put into a frame.
    Insert(Index, Index, Vec<u8>),
    /// A frame is lost, comes twice, or changes places with another one.
    Lose(Index),
    Repeat(Index),
    Swap(Index, Index),
    /// A length is another one than that of the frame.
    Length(Index, u32),
}

fn change() -> impl Strategy<Value = Change> {
    let extreme = prop_oneof![
        Just(0),
        Just(1),
        Just(u64::from(u32::MAX)),
        Just(i64::MAX as u64),
        Just(u64::MAX),
        any::<u64>(),
        0u64..300,
    ];
    let at = any::<Index>;
    prop_oneof![
        4 => (at(), at(), any::<u8>()).prop_map(|(a, b, c)| Change::Byte(a, b, c)),
        4 => (at(), at(), extreme).prop_map(|(a, b, c)| Change::Number(a, b, c)),
        1 => (at(), at(), any::<u8>()).prop_map(|(a, b, c)| Change::Cut(a, b, c)),
        1 => (at(), at(), prop::collection::vec(any::<u8>(), 1..20))
            .prop_map(|(a, b, c)| Change::Insert(a, b, c)),
        1 => at().prop_map(Change::Lose),
        1 => at().prop_map(Change::Repeat),
        1 => (at(), at()).prop_map(|(a, b)| Change::Swap(a, b)),
        1 => (at(), any::<u32>()).prop_map(|(a, b)| Change::Length(a, b)),
    ]
}

fn apply(frames: &mut Vec<Vec<u8>>, change: &Change) {
    if frames.is_empty() {
        return;
    }
    let count = frames.len();
    match change {
        Change::Byte(frame, at, byte) => {
            let body = &mut frames[frame.index(count)][4..];
            // Cuts leave frames of nothing.
            if !body.is_empty() {
                body[at.index(body.len())] = *byte;
            }
        }
        Change::Number(frame, at, number) => {
            let frame = &mut frames[frame.index(count)];
            let text = String::from_utf8_lossy(&frame[4..]).into_owned();
            let digit = |letter: char| letter.is_ascii_digit();
            let starts: Vec<usize> = text
                .char_indices()
                .filter(|(at, letter)| digit(*letter) && !text[..*at].ends_with(digit))
                .map(|(at, _)| at)
                .collect();
            if frame.get(4) == Some(&b'J') && !starts.is_empty() {
                let start = starts[at.index(starts.len())];
                let rest = text[start..].trim_start_matches(digit);
                *frame = framed(format!("{}{number}{rest}", &text[..start]).as_bytes());
            }
        }
        Change::Cut(frame, at, length) => {
            let frame = &mut frames[frame.index(count)];
            let mut body = frame[4..].to_vec();
            let start = at.index(body.len() + 1);
            let end = (start + usize::from(*length)).min(body.len());
            body.drain(start..end);
            *frame = framed(&body);
        }
        Change::Insert(frame, at, bytes) => {
            let frame = &mut frames[frame.index(count)];
            let mut body = frame[4..].to_vec();
            let start = at.index(body.len() + 1);
            body.splice(start..start, bytes.iter().copied());
            *frame = framed(&body);
        }
        Change::Lose(frame) => drop(frames.remove(frame.index(count))),
        Change::Repeat(frame) => {
            let again = frames[frame.index(count)].clone();
            frames.insert(frame.index(count), again);
        }
        Change::Swap(a, b) => frames.swap(a.index(count), b.index(count)),
        Change::Length(frame, length) => {
            frames[frame.index(count)][..4].copy_from_slice(&length.to_le_bytes());
        }
    }
}

/// A frame of a body that begins with its kind.
fn framed(body: &[u8]) -> Vec<u8> {
    let mut frame = (body.len() as u32).to_le_bytes().to_vec();
    frame.extend_from_slice(body);
    frame
}

fn sample() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("sample_reports/mnist_pipeline/profile.pop")
}

/// Every kind of question, as frames.
fn questions(report: &Path) -> Vec<Vec<u8>> {
    use serde_json::json;
    let window = CycleRange::new(Cycles(0), Cycles(5_000_000));
    let lanes = [
        LaneQuestion::Spans { window, pixels: 300 },
        LaneQuestion::CutSpans { window, pixels: 90 },
        LaneQuestion::Totals { window },
        LaneQuestion::ProgramTotals { positions: 3..500 },
        LaneQuestion::ProgramSums,
        LaneQuestion::StepLengths { positions: 0..1000 },
        LaneQuestion::Find { step: StepId(40) },
        LaneQuestion::FindWithNext { step: StepId(40), next: 16 },
        LaneQuestion::StepAt { cycle: Cycles(90_000) },
        LaneQuestion::Touching { window },
        LaneQuestion::LongestIn { window },
        LaneQuestion::Steps { positions: 5..80 },
        LaneQuestion::OnPath,
    ];
    let rows = |database: &str, table: &str, columns: &[&str], clauses: &str| {
        json!({ "Rows": {
            "database": database, "table": table, "columns": columns, "clauses": clauses,
            "params": [7, 900], "most": 50,
        } })
    };
    let number = |number: serde_json::Value| json!({ "Number": { "database": "Report", "table": "vars", "number": number } });
    let mut asks = vec![
        json!({ "Open": { "path": report } }),
        rows("Report", "programs", &["id", "name"], "WHERE id BETWEEN ?1 AND ?2 ORDER BY id"),
        rows("Report", "vars", &["id", "rowid"], "WHERE (id = 4 OR id IS NULL) LIMIT 9"),
        rows("Trace", "trace_nodes", &["data"], ""),
        rows("SyncPoints", "trace_sync_points", &["data"], "WHERE id > 0"),
        number(json!("Rows")),
        number(json!({ "HighestWithin": ["id", 30] })),
        number(json!({ "Distinct": "name" })),
        json!("PrepareTrace"),
        json!({ "PrepareSyncPoints": { "only_known": true } }),
        json!("TraceState"),
        json!({ "Verify": { "apart": true } }),
        json!({ "SidecarText": { "name": "framework.json" } }),
        json!("Files"),
    ];
    asks.extend(
        lanes.map(|question| json!({ "Lanes": { "lanes": [0, 8], "question": question } })),
    );
    let ids = 1u64..;
    let mut frames = vec![json!({ "tilescope": "0.1.0", "protocol": 1, "format": [2, 6] })];
    frames.extend(ids.zip(asks).map(|(id, ask)| json!({ "id": id, "ask": ask })));
    frames.push(json!({ "id": 4, "ask": "More" }));
    frames.push(json!({ "id": 4, "ask": "Stop" }));
    frames.iter().map(|words| framed(format!("J{words}").as_bytes())).collect()
}

/// Input that ends when what was asked has had time to be answered.
struct Lingering(Cursor<Vec<u8>>, Duration);

impl Read for Lingering {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = self.0.read(buffer)?;
        if count == 0 && !buffer.is_empty() {
            std::thread::sleep(self.1);
        }
        Ok(count)
    }
}

/// Output that is counted.
#[derive(Clone, Default)]
struct CountedBytes(Arc<AtomicUsize>);

impl Write for CountedBytes {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.fetch_add(bytes.len(), Ordering::Relaxed);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Files of a directory and what is in them.
fn contents(directory: &Path) -> Vec<(PathBuf, Vec<u8>)> {
    let files = std::fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().path());
    let mut files: Vec<_> =
        files.map(|path| (path.clone(), std::fs::read(path).unwrap())).collect();
    files.sort();
    files
}

#[test]
fn any_stream_of_questions_is_answered_or_refused() {
    let directory = tempfile::tempdir().unwrap();
    let report = directory.path().join("profile.pop");
    std::fs::copy(sample(), &report).unwrap();
    let before = contents(directory.path());
    let questions = questions(&report);
    let told = CountedBytes::default();
    serve(Lingering(Cursor::new(questions.concat()), Duration::from_secs(2)), told.clone(), None)
        .unwrap();
    assert!(told.0.load(Ordering::Relaxed) > 10_000, "unchanged, they are answered");
    let panicked = panics();
    let streams = prop::collection::vec(change(), 1..6);
    let tried = TestRunner::new(few_cases()).run(&streams, |changes| {
        let mut frames = questions.clone();
        changes.iter().for_each(|change| apply(&mut frames, change));
        let input = Lingering(Cursor::new(frames.concat()), Duration::from_millis(4));
        let (told, start) = (CountedBytes::default(), Instant::now());
        if let Err(error) = serve(input, told.clone(), None) {
            prop_assert!(!error.to_string().is_empty());
        }
        prop_assert!(start.elapsed() < MOST_TIME, "{:?}", start.elapsed());
        prop_assert!(told.0.load(Ordering::Relaxed) < MOST_BYTES);
        prop_assert_eq!(panics(), panicked);
        Ok(())
    });
    tried.unwrap();
    assert_eq!(contents(directory.path()), before, "nothing is written");
}

/// Looks at all sorts of things, one after the other; what cannot be read is passed over.
fn look(report: &Report) -> Result<(), ReportError> {
    let mut failed = None;
    let mut note = |result: Result<(), ReportError>| failed = failed.take().or(result.err());
    note(report.programs().map(drop));
    note(report.operations().map(drop));
    note(report.steps(StepId(3)..StepId(20), 10).map(drop));
    let filter = MarkFilter { kind: None, ipu: None, window: None, limit: 10 };
    note(report.marks(&filter).map(drop));
    note(report.sidecar_text("framework.json").map(drop));
    note(report.verify_apart(&Arc::default()).map(drop));
    if let Some(trace) = report.trace()? {
        let range = trace.range();
        for lane in (0..3).map_while(|at| trace.lane(at)) {
            note(lane.spans(range, 200).map(drop));
            note(
                lane.cut_spans(CycleRange::new(range.start, Cycles(range.end.0 / 2)), 50).map(drop),
            );
            note(lane.totals(range).map(drop));
            note(lane.program_totals(0..300).map(drop));
            note(lane.program_sums().map(drop));
            note(lane.step_lengths(0..900).map(drop));
            note(lane.find(StepId(30)).map(drop));
            note(lane.steps_in(range, 20).map(drop));
        }
    }
    failed.map_or(Ok(()), Err)
}

/// The highest number of a question so far, and who waits for it.
type Asked = Arc<(Mutex<u64>, Condvar)>;

/// The number in words or rows.
fn number_of(body: &[u8]) -> u64 {
    let words = || serde_json::from_slice::<serde_json::Value>(&body[1..]).ok()?["id"].as_u64();
    // Numbers of the recorded answers are below 128: a byte.
    if body.first() == Some(&b'J') { words().unwrap_or(0) } else { body[1].into() }
}

/// Takes questions, and forgets them.
struct AskingEnd(Asked);

impl Write for AskingEnd {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        // Lengths are written on their own.
        if bytes.len() > 4 {
            let mut asked = self.0.0.lock().unwrap();
            *asked = number_of(bytes).max(*asked);
            self.0.1.notify_all();
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Answers that were recorded, each once it was asked for; all the rest once one is not asked for
/// any more.
struct Replayed {
    frames: std::vec::IntoIter<(u64, Vec<u8>)>,
    current: Cursor<Vec<u8>>,
    asked: Asked,
    patience: Duration,
}

impl Read for Replayed {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        loop {
            let count = self.current.read(buffer)?;
            if count > 0 || buffer.is_empty() {
                return Ok(count);
            }
            let Some((number, next)) = self.frames.next() else { return Ok(0) };
            let (asked, changed) = &*self.asked;
            let asked = asked.lock().unwrap();
            let early = |asked: &mut u64| *asked < number;
            let waited = changed.wait_timeout_while(asked, self.patience, early).unwrap().1;
            if waited.timed_out() {
                self.patience = Duration::ZERO;
            }
            self.current = Cursor::new(next);
        }
    }
}

/// What the far side answers while somebody looks at the sample.
fn recorded() -> Vec<Vec<u8>> {
    let (questions, ask) = pipe().unwrap();
    let (answers, answer) = pipe().unwrap();
    std::thread::spawn(move || serve(questions, answer, None));
    struct Tee(io::PipeReader, Arc<Mutex<Vec<u8>>>);
    impl Read for Tee {
        fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
            let count = self.0.read(buffer)?;
            self.1.lock().unwrap().extend_from_slice(&buffer[..count]);
            Ok(count)
        }
    }
    let heard = Arc::<Mutex<Vec<u8>>>::default();
    let address = PathBuf::from(format!("ssh://pod16{}", sample().display()));
    let report = open_through_pipes(&address, Tee(answers, heard.clone()), ask).unwrap();
    look(&report).unwrap();
    let heard = heard.lock().unwrap();
    plain_frames(&heard)
}

/// Opens what was recorded, as it is after some changes, and looks at it.
fn replay(frames: Vec<Vec<u8>>, patience: Duration) -> Result<(), ReportError> {
    let asked = Asked::default();
    let mut last = 0;
    let mut numbered = |frame: Vec<u8>| {
        let number = frame.get(4..).filter(|body| body.len() > 1).map_or(last, number_of);
        last = if number < 1000 { number } else { last };
        (last, frame)
    };
    let frames: Vec<(u64, Vec<u8>)> = frames.into_iter().map(&mut numbered).collect();
    let current = Cursor::new(b"\0tilescope serve\n".to_vec());
    let replayed = Replayed { frames: frames.into_iter(), current, asked: asked.clone(), patience };
    let report = open_through_pipes(Path::new("ssh://pod16/a"), replayed, AskingEnd(asked))?;
    look(&report)
}

#[test]
fn any_stream_of_answers_is_taken_or_refused() {
    let recorded = recorded();
    assert!(recorded.len() > 20);
    replay(recorded.clone(), Duration::from_secs(60)).expect("unchanged, it is a report");
    let panicked = panics();
    let streams = prop::collection::vec(change(), 1..6);
    let tried = TestRunner::new(few_cases()).run(&streams, |changes| {
        let mut frames = recorded.clone();
        changes.iter().for_each(|change| apply(&mut frames, change));
        let start = Instant::now();
        if let Err(error) = replay(frames, Duration::from_millis(5)) {
            prop_assert!(!error.to_string().is_empty());
        }
        prop_assert!(start.elapsed() < MOST_TIME, "{:?}", start.elapsed());
        prop_assert_eq!(panics(), panicked);
        Ok(())
    });
    tried.unwrap();
}
