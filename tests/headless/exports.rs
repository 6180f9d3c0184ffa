//! `export` and `slice`: exported data equal those of the report, in every format.

use crate::common::{report, stderr, stdout, tilescope};
use crate::report_support::foreign::Foreign;
use serde_json::Value;
use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use tilescope_fixtures::ReportBuilder;
use tilescope_report::trace::{ProgramStepTotals, Trace};
use tilescope_report::units::*;
use tilescope_report::*;
use tilescope_test_tiers::{slow_tests, up_to};

/// Bytes of a file that `export` writes for a report.
fn exported(report: &Path, rest: &[&str]) -> Vec<u8> {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("out.bin");
    let paths = [report, &file].map(|path| path.to_str().unwrap().to_owned());
    let words = [&["export", &paths[0], "-o", &paths[1]], rest].concat();
    let output = tilescope(&words);
    assert!(output.status.success(), "{rest:?}: {}", stderr(&output));
    let names = fs::read_dir(directory.path()).unwrap().count();
    assert_eq!(names, 1, "nothing lies beside the file");
    fs::read(&file).unwrap()
}

/// Exit code and message of a command that fails.
fn refused(words: &[&str]) -> (i32, String) {
    let output = tilescope(words);
    assert!(!output.status.success(), "{words:?}: {}", stdout(&output));
    (output.status.code().unwrap(), stderr(&output))
}

/// Fields of a message: number, and value or bytes.
enum Field<'a> {
    Number(u64),
    Bytes(&'a [u8]),
}

/// Parses a message of protocol buffers.
fn fields(mut bytes: &[u8]) -> Vec<(u64, Field<'_>)> {
    fn varint(bytes: &mut &[u8]) -> u64 {
        let mut value = 0;
        for place in 0.. {
            let (byte, rest) = bytes.split_first().expect("a whole varint");
            *bytes = rest;
            value |= u64::from(byte & 0x7f) << (7 * place);
            if byte & 0x80 == 0 {
                break;
            }
        }
        value
    }
    let mut found = Vec::new();
    while !bytes.is_empty() {
        let tag = varint(&mut bytes);
        let field = match tag & 7 {
            0 => Field::Number(varint(&mut bytes)),
            kind => {
                let length = match kind {
                    1 => 8,
                    2 => varint(&mut bytes) as usize,
                    other => panic!("type {other} of field {}", tag >> 3),
                };
                let (inside, rest) = bytes.split_at(length);
                bytes = rest;
                Field::Bytes(inside)
            }
        };
        found.push((tag >> 3, field));
    }
    found
}

fn numbers(message: &[(u64, Field<'_>)], wanted: u64) -> Vec<u64> {
    let number = |(field, value): &(u64, Field<'_>)| match value {
        Field::Number(value) if *field == wanted => Some(*value),
        _ => None,
    };
    message.iter().filter_map(number).collect()
}

fn inner<'a>(message: &[(u64, Field<'a>)], wanted: u64) -> Vec<&'a [u8]> {
    let bytes = |(field, value): &(u64, Field<'a>)| match value {
        Field::Bytes(bytes) if *field == wanted => Some(*bytes),
        _ => None,
    };
    message.iter().filter_map(bytes).collect()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).expect("UTF-8")
}

/// A slice of a track: edges in nanoseconds, name, category, cycles.
#[derive(Clone, Debug, PartialEq)]
struct Slice {
    start: u64,
    end: u64,
    name: String,
    category: String,
    cycles: u64,
}

/// The contents of a trace of Perfetto.
#[derive(Default)]
struct PerfettoTracks {
    names: BTreeMap<u64, String>,
    slices: BTreeMap<u64, Vec<Slice>>,
    counters: BTreeMap<u64, Vec<(u64, u64)>>,
    /// Arrows by number, with the counts of their beginnings or passes and of their ends.
    flows: BTreeMap<u64, [usize; 2]>,
}

/// Reads a trace according to Perfetto's documentation, and checks its requirements on sequences.
fn perfetto(bytes: &[u8]) -> PerfettoTracks {
    let mut found = PerfettoTracks::default();
    let mut open: BTreeMap<u64, Vec<Slice>> = BTreeMap::new();
    let mut tables: BTreeMap<(u64, u64, u64), String> = BTreeMap::new();
    let mut defaults: BTreeMap<u64, u64> = BTreeMap::new();
    for packet in inner(&fields(bytes), 1) {
        let packet = fields(packet);
        let sequence = numbers(&packet, 10)[0];
        let flags = numbers(&packet, 13).first().copied().unwrap_or(0);
        if flags & 1 != 0 {
            tables.retain(|(of, _, _), _| *of != sequence);
            defaults.remove(&sequence);
        }
        for interned in inner(&packet, 12) {
            for (table, entry) in fields(interned) {
                let Field::Bytes(entry) = entry else { panic!("an entry") };
                let entry = fields(entry);
                let key = (sequence, table, numbers(&entry, 1)[0]);
                let before = tables.insert(key, text(inner(&entry, 2)[0]));
                assert_eq!(before, None, "one name each");
            }
        }
        for packet_defaults in inner(&packet, 59) {
            let event = inner(&fields(packet_defaults), 11)[0].to_vec();
            defaults.insert(sequence, numbers(&fields(&event), 11)[0]);
        }
        for track in inner(&packet, 60) {
            let track = fields(track);
            let uuid = numbers(&track, 1)[0];
            for parent in numbers(&track, 5) {
                assert!(found.names.contains_key(&parent), "parents come first");
            }
            let name = text(inner(&track, 2)[0]);
            assert_eq!(found.names.insert(uuid, name), None, "tracks are distinct");
        }
        for event in inner(&packet, 11) {
            assert_eq!(flags & 2, 2, "events need what was said before");
            let event = fields(event);
            let at = numbers(&packet, 8)[0];
            let track = numbers(&event, 11).first().copied().unwrap_or_else(|| defaults[&sequence]);
            assert!(found.names.contains_key(&track));
            let kind = numbers(&event, 9)[0];
            for (place, field) in [(0, 47), (1, 48)] {
                for flow in inner(&event, field) {
                    let id = u64::from_le_bytes(flow.try_into().unwrap());
                    found.flows.entry(id).or_default()[place] += 1;
                }
            }
            match kind {
                1 => {
                    let of = |table, iid| tables[&(sequence, table, iid)].clone();
                    let name = match numbers(&event, 10).first() {
                        Some(iid) => of(2, *iid),
                        None => text(inner(&event, 23)[0]),
                    };
                    let category = of(1, numbers(&event, 3)[0]);
                    let notes = inner(&event, 4).into_iter().map(fields);
                    let notes: BTreeMap<String, u64> = notes
                        .filter_map(|note| {
                            let name = of(3, numbers(&note, 1)[0]);
                            Some((name, numbers(&note, 3).first().copied()?))
                        })
                        .collect();
                    let cycles = notes["cycles"];
                    let slice = Slice { start: at, end: at, name, category, cycles };
                    let stack = open.entry(track).or_default();
                    if let Some(parent) = stack.last() {
                        assert!(parent.start <= at, "{slice:?} before {parent:?}");
                    }
                    stack.push(slice);
                }
                2 => {
                    let slice = open.get_mut(&track).and_then(Vec::pop).expect("a begin");
                    assert!(slice.start <= at);
                    let slice = Slice { end: at, ..slice };
                    found.slices.entry(track).or_default().push(slice);
                }
                4 => {
                    let value = numbers(&event, 30)[0];
                    found.counters.entry(track).or_default().push((at, value));
                }
                other => panic!("an event of type {other}"),
            }
        }
    }
    assert!(open.values().all(Vec::is_empty), "every begin has its end");
    for slices in found.slices.values() {
        nests(slices);
    }
    found
}

/// Checks that slices are disjoint or nested.
fn nests(slices: &[Slice]) {
    for (at, slice) in slices.iter().enumerate() {
        let before = slices[..at].iter().rev().take_while(|other| other.end > slice.start);
        for other in before {
            assert!(other.start >= slice.start && other.end <= slice.end, "{other:?} {slice:?}");
        }
    }
}

/// True for categories of steps; those of marks have other names.
fn is_step(slice: &Slice) -> bool {
    StepActivity::ALL.iter().any(|activity| activity.name() == slice.category)
}

/// Cycles and number of steps by IPU and activity, from the report.
fn by_activity(trace: &Trace) -> BTreeMap<(String, String), u64> {
    let mut sums = BTreeMap::new();
    for lane in (0..trace.lanes().len()).filter_map(|at| trace.lane(at)) {
        let (ipu, sub_lane) = (lane.info().ipu, lane.info().sub_lane);
        let name =
            if sub_lane == 0 { format!("IPU {ipu}") } else { format!("IPU {ipu}, I/O tiles") };
        for (activity, cycles) in lane.all_totals().unwrap().cycles.iter() {
            *sums.entry((name.clone(), activity.name().to_owned())).or_default() += cycles.0;
        }
    }
    sums.retain(|_, cycles| *cycles > 0);
    sums
}

fn sums<'a>(
    slices: impl Iterator<Item = (&'a String, &'a Slice)>,
) -> BTreeMap<(String, String), u64> {
    let mut sums = BTreeMap::new();
    for (lane, slice) in slices.filter(|(_, slice)| is_step(slice)) {
        *sums.entry((lane.clone(), slice.category.clone())).or_default() += slice.cycles;
    }
    sums.retain(|_, cycles| *cycles > 0);
    sums
}

#[test]
fn a_trace_for_perfetto_has_the_totals_of_the_report() {
    for (spec, set) in [
        ("mnist_pipeline", &[][..]),
        ("mnist_pipeline", &["options.num_io_tiles=32", "options.overlap_io=inner_loop"][..]),
        ("matmul_chain", &[][..]),
    ] {
        let (report, directory) = report(spec, set);
        let trace = report.trace().unwrap().unwrap();
        let found = perfetto(&exported(directory.path(), &["--format", "perfetto"]));
        let slices = found.slices.iter();
        let names = &found.names;
        let slices = slices.flat_map(|(track, all)| {
            let name = &names[track];
            all.iter().map(move |of| (name, of))
        });
        assert_eq!(sums(slices), by_activity(&trace), "{spec} {set:?}");
        // Times are those of the cycles, to the nanosecond.
        let clock = report.target().unwrap().clock.0 as f64;
        let last = found.slices.values().flatten().map(|slice| slice.end).max().unwrap();
        let exact = trace.range().end.as_f64() * 1e9 / clock;
        assert!((last as f64 - exact).abs() <= 0.5, "{last} {exact}");
        // Bytes of counters are those of steps.
        let counted = |name: &str| -> u64 {
            let tracks = found.counters.iter().filter(|(track, _)| found.names[track] == name);
            tracks.flat_map(|(_, values)| values).map(|(_, value)| value).sum()
        };
        let lanes = || (0..trace.lanes().len()).filter_map(|at| trace.lane(at));
        let totals = || lanes().map(|lane| lane.all_totals().unwrap());
        let bytes: u64 = totals().map(|all| all.bytes_in.total().0).sum();
        assert_eq!(counted("bytes in"), bytes);
        let bytes: u64 = totals().map(|all| all.bytes_out.total().0).sum();
        assert_eq!(counted("bytes out"), bytes);
        // All marks are present, once for each IPU that they are on.
        let runs = found.slices.values().flatten().filter(|slice| slice.category == "run").count();
        let lanes_of_ipus = trace.lanes().iter().filter(|lane| lane.sub_lane == 0).count();
        assert_eq!(runs, report.runs().unwrap().len() * lanes_of_ipus);
        assert!(found.flows.values().all(|[begins, ends]| *begins >= 1 && *ends <= 1));
    }
}

#[test]
fn stages_and_iterations_nest_around_steps() {
    let (report, directory) = report("mnist_pipeline", &[]);
    let found = perfetto(&exported(directory.path(), &["--format", "perfetto"]));
    let names: Vec<&str> = found.names.values().map(String::as_str).collect();
    assert!(names.contains(&"IPU program") && names.contains(&"IPU 3"), "{names:?}");
    let (_, lane) = found.slices.iter().find(|(track, _)| found.names[track] == "IPU 1").unwrap();
    for kind in ["run", "iteration", "phase", "slot", "stage"] {
        assert!(lane.iter().any(|slice| slice.category == kind), "{kind}");
    }
    let stages = lane.iter().filter(|slice| slice.category == "stage");
    let all =
        MarkFilter { kind: Some(MarkKind::Stage), ipu: Some(IpuId(1)), window: None, limit: 9999 };
    let known = report.marks(&all).unwrap();
    let known: Vec<&str> = known.iter().map(|mark| mark.label.as_str()).collect();
    assert_eq!(stages.map(|slice| slice.name.as_str()).collect::<Vec<_>>(), known);
    let ends = found.flows.values().map(|[_, ends]| ends).sum::<usize>();
    assert!(ends > 0, "arrows lead somewhere");
}

#[test]
fn a_trace_for_chrome_has_the_totals_of_the_report() {
    let (report, directory) = report("mnist_pipeline", &[]);
    let trace = report.trace().unwrap().unwrap();
    let bytes = exported(directory.path(), &["--format", "chrome-trace"]);
    let json: Value = serde_json::from_slice(&bytes).unwrap();
    let events = json["traceEvents"].as_array().unwrap();
    let thread = |event: &Value| (event["pid"].as_u64().unwrap(), event["tid"].as_u64().unwrap());
    let names: BTreeMap<(u64, u64), String> = events
        .iter()
        .filter(|event| event["name"] == "thread_name")
        .map(|event| (thread(event), event["args"]["name"].as_str().unwrap().to_owned()))
        .collect();
    let nanoseconds = |value: &Value| (value.as_f64().unwrap() * 1000.0).round() as u64;
    let mut slices: BTreeMap<(u64, u64), Vec<Slice>> = BTreeMap::new();
    for event in events.iter().filter(|event| event["ph"] == "X") {
        let start = nanoseconds(&event["ts"]);
        slices.entry(thread(event)).or_default().push(Slice {
            start,
            end: start + nanoseconds(&event["dur"]),
            name: event["name"].as_str().unwrap().to_owned(),
            category: event["cat"].as_str().unwrap().to_owned(),
            cycles: event["args"]["cycles"].as_u64().unwrap(),
        });
    }
    let all = slices.iter().flat_map(|(key, all)| {
        let name = &names[key];
        all.iter().map(move |of| (name, of))
    });
    assert_eq!(sums(all), by_activity(&trace));
    for slices in slices.values_mut() {
        // Viewers nest a slice in the enclosing one, by the order of starts.
        assert!(slices.windows(2).all(|pair| pair[0].start <= pair[1].start));
        slices.sort_by_key(|slice| (slice.end, std::cmp::Reverse(slice.start)));
        nests(slices);
    }
    let perfetto = perfetto(&exported(directory.path(), &["--format", "perfetto"]));
    let count = |slices: &Vec<Slice>| slices.len();
    assert_eq!(
        slices.values().map(count).sum::<usize>(),
        perfetto.slices.values().map(count).sum::<usize>(),
        "both formats have the same slices"
    );
}

/// Totals by program of all lanes at the positions of a window, by class, IPU and sub-lane.
fn window_totals(
    trace: &Trace,
    window: CycleRange,
    ipus: Option<&[u32]>,
) -> BTreeMap<(u32, u8), Vec<ProgramStepTotals>> {
    let lanes = (0..trace.lanes().len()).filter_map(|at| trace.lane(at));
    let lanes = lanes.filter(|lane| ipus.is_none_or(|ipus| ipus.contains(&lane.info().ipu.0)));
    lanes
        .map(|lane| {
            let totals = lane.program_totals(lane.touching(window).unwrap()).unwrap();
            ((lane.info().ipu.0, lane.info().sub_lane), totals)
        })
        .filter(|(_, totals)| !totals.is_empty())
        .collect()
}

/// A program, its activity, and four sums.
type ProgramFigures = (Option<u32>, &'static str, u64, u64, u64, u64);

/// Sums of programs that do not depend on the positions of steps.
fn figures(totals: &[ProgramStepTotals]) -> Vec<ProgramFigures> {
    let of = |of: &ProgramStepTotals| {
        let program = of.program.map(|id| id.0);
        (program, of.kind().name(), of.steps, of.cycles.0, of.bytes_in.0, of.bytes_out.0)
    };
    totals.iter().map(of).collect()
}

/// Cuts a window out of a report and compares it with the original.
fn check_slice(
    directory: &Path,
    report: &Report,
    window: CycleRange,
    ipus: Option<&[u32]>,
) -> Report {
    let out = directory.join(format!("slice-{}-{}", window.start.0, ipus.map_or(0, <[u32]>::len)));
    let range = format!("{}..{}", window.start.0, window.end.0);
    let path = report.path().to_str().unwrap();
    let list = ipus.map(|ipus| ipus.iter().map(u32::to_string).collect::<Vec<_>>().join(","));
    let mut words = vec!["slice", path, "--range", &range, "-o", out.to_str().unwrap()];
    words.extend(list.iter().flat_map(|list| ["--ipus", list]));
    let output = tilescope(&words);
    assert!(output.status.success(), "{words:?}: {}", stderr(&output));
    let slice = Report::open_with_cache(&out, None).unwrap();
    // Anomalies of the whole are anomalies of a part.
    let before = report.verify().unwrap();
    let broken: Vec<_> =
        slice.verify().unwrap().into_iter().filter(|of| !before.contains(of)).collect();
    assert!(broken.is_empty(), "{range} {ipus:?}: {broken:#?}");
    let own = slice.trace().unwrap().unwrap();
    let all = window_totals(&own, CycleRange::new(Cycles(0), own.range().end + Cycles(1)), None);
    let original = window_totals(&report.trace().unwrap().unwrap(), window, ipus);
    assert_eq!(all.keys().collect::<Vec<_>>(), original.keys().collect::<Vec<_>>());
    for (lane, totals) in &original {
        assert_eq!(figures(&all[lane]), figures(totals), "{lane:?} {range}");
    }
    let notes = slice.notes().unwrap();
    assert!(
        notes.iter().any(|note| note.contains("slice of") && note.contains(&range)),
        "{notes:?}"
    );
    slice
}

#[test]
fn a_slice_verifies_and_has_the_sums_of_its_window() {
    let differing = [
        "options.replication_factor=4",
        "options.num_instances=2",
        "options.host.seconds_per_micro_batch=2e-4",
        "options.prefetch_depth=1",
        "options.host.slower_instances=1",
        "options.host.slower_instance_factor=3",
    ];
    let overlapped = ["options.num_io_tiles=32", "options.overlap_io=inner_loop"];
    let sets = [&differing[..], &overlapped, &[]];
    for set in sets.into_iter().take(up_to(1)) {
        let short: &[&str] = if slow_tests() { &[] } else { &["options.device_iterations=2"] };
        let (report, directory) = report("mnist_pipeline", &[set, short].concat());
        let run = report.trace().unwrap().unwrap().range();
        let at = |share: u64| run.start + run.length().share(share, 100);
        let windows = [(37, 39), (0, 100), (0, 30), (70, 100), (50, 51)];
        for (from, to) in windows.into_iter().take(up_to(2)) {
            let window = CycleRange::new(at(from), at(to) + Cycles(1));
            let slice = check_slice(directory.path(), &report, window, None);
            let origin = slice.slice_origin().unwrap();
            assert_eq!(origin.cycles, (window.start.0, window.end.0));
            let compiled = (slice.compilation().unwrap(), report.compilation().unwrap());
            assert_eq!(compiled.0.variables, compiled.1.variables);
            assert_eq!(compiled.0.programs, compiled.1.programs);
            // Samples are only given for whole host calls.
            let is_whole = (from, to) == (0, 100);
            assert_eq!(slice.batching().unwrap().is_some(), is_whole);
            assert!(slice.has(ReportPart::Marks));
        }
        let window = CycleRange::new(at(20), at(60));
        check_slice(directory.path(), &report, window, Some(&[1, 2]));
    }
}

#[test]
fn a_slice_of_a_long_run_is_kept_as_columns() {
    let mut builder = ReportBuilder::new(2, 4);
    let conv = builder.compute("conv/Convolve", 100);
    let sync = builder.program(ProgramKind::Sync, "External");
    builder.root(ProgramKind::Sequence, "main", &[conv, sync]);
    for turn in 0..20_000u64 {
        builder
            .run(conv, turn * 120..turn * 120 + 100)
            .run(sync, turn * 120 + 100..turn * 120 + 120);
    }
    builder.mark(MarkKind::Run, "Engine::run #0", 0..40_000);
    builder.layout = StepLayout::Columns;
    let directory = tempfile::tempdir().unwrap();
    let report = Report::open(builder.write(directory.path()).unwrap()).unwrap();
    let window = CycleRange::new(Cycles(600_050), Cycles(1_800_001));
    let slice = check_slice(directory.path(), &report, window, None);
    let runs = slice.runs().unwrap();
    assert_eq!(runs.len(), 1);
    assert_eq!(runs[0].cycles, slice.trace().unwrap().unwrap().range());
    // A slice of a slice is a slice.
    check_slice(
        slice.path().parent().unwrap(),
        &slice,
        CycleRange::new(Cycles(5), Cycles(500)),
        None,
    );
}

#[test]
fn slices_of_foreign_reports_are_reports() {
    let plain = Foreign::default();
    let unplaced = vec![("steps_by_ipu", "cycles_base"), ("steps_by_ipu", "active_tiles")];
    for foreign in [
        Foreign { by_ipu: true, ..plain.clone() },
        Foreign { extra: true, unknown_types: true, ..plain.clone() },
        Foreign { without_columns: unplaced, ..plain.clone() },
        Foreign { without_tables: vec!["execution_cycle_totals", "vars_info"], ..plain.clone() },
        plain,
    ] {
        let directory = tempfile::tempdir().unwrap();
        foreign.write(&directory.path().join("profile.pop"));
        let report = Report::open_with_cache(directory.path(), None).unwrap();
        let Some(trace) = report.trace().unwrap() else { continue };
        let run = trace.range();
        let at = |share: u64| run.start + run.length().share(share, 100);
        let slice = check_slice(directory.path(), &report, CycleRange::new(at(30), at(60)), None);
        assert_eq!(slice.origin(), ReportOrigin::Foreign);
    }
}

#[test]
fn unused_options_are_refused() {
    let directory = tempfile::tempdir().unwrap();
    let out = directory.path().join("out");
    assert!(tilescope(&["simulate", "matmul_chain", "-o", out.to_str().unwrap()]).status.success());
    let out = out.to_str().unwrap();
    let file = directory.path().join("x");
    let file = file.to_str().unwrap();
    let message = |rest: &[&str]| {
        let (code, message) = refused(&[&["export", out, "-o", file], rest].concat());
        assert_eq!(code, 2, "{rest:?}: {message}");
        message
    };
    for (rest, part) in [
        (
            &["--format", "perfetto", "--tiles", "0..4"][..],
            "--tiles cannot be used with --format perfetto",
        ),
        (&["--format", "chrome-trace", "--table", "steps"], "it applies to csv, parquet, arrow"),
        (&["--format", "csv", "--view", "memory", "--range", "0..9"], "parquet, arrow, perfetto"),
        (&["--format", "perfetto", "--size", "100x100"], "it applies to png, svg"),
        (&["--format", "csv"], "requires --view"),
        (&["--format", "perfetto", "--range", "5"], "half-open range"),
        (&["--format", "perfetto", "--range", "7..7"], "is empty"),
        (&["--format", "perfetto", "--range", "99999999999..999999999999"], "outside the run"),
        (&["--format", "perfetto", "--ipus", "4"], "IPUs 0 to"),
        (&["--format", "perfetto", "--ipus", "a"], "is not a number"),
    ] {
        assert!(message(rest).contains(part), "{rest:?}: {}", message(rest));
    }
    assert!(!Path::new(file).exists());
    let nowhere = format!("{out}/nowhere/x");
    let (code, message) = refused(&["export", out, "--format", "perfetto", "-o", &nowhere]);
    assert!(code == 1 && message.contains("no such directory"), "{message}");
    let (code, message) = refused(&["slice", out, "--range", "0..9", "-o", out]);
    assert!(code == 2 && message.contains("choose another directory"), "{message}");
    if Path::new("/dev/full").exists() {
        for format in ["perfetto", "chrome-trace"] {
            let (code, message) = refused(&["export", out, "--format", format, "-o", "/dev/full"]);
            assert!(code == 1 && message.contains("the disk is full"), "{message}");
        }
    }
}

#[test]
fn a_program_that_did_not_run_has_no_trace() {
    let out = Path::new(env!("CARGO_MANIFEST_DIR")).join("sample_reports/too_large");
    let out = out.to_str().unwrap();
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("x");
    for format in ["perfetto", "chrome-trace"] {
        let words = ["export", out, "--format", format, "-o", file.to_str().unwrap()];
        let (code, message) = refused(&words);
        assert!(code == 1 && message.contains("only compiled"), "{message}");
    }
    let words = ["slice", out, "--range", "0..9", "-o", file.to_str().unwrap()];
    assert!(refused(&words).1.contains("only compiled"));
    assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 0, "nothing is left behind");
}

#[test]
fn hostile_names_stay_names() {
    let name = "a\u{1b}[31m</script>\"\\\u{0}\n\u{202e}配置";
    let mut builder = ReportBuilder::new(1, 4);
    let conv = builder.compute(name, 100);
    builder.root(ProgramKind::Sequence, "main", &[conv]);
    builder.run(conv, 0..100);
    builder.mark(MarkKind::Run, name, 0..1);
    let directory = tempfile::tempdir().unwrap();
    builder.write(directory.path()).unwrap();
    let known = Report::open(directory.path()).unwrap().programs().unwrap();
    let known = known.get(conv).unwrap().name.clone();
    let found = perfetto(&exported(directory.path(), &["--format", "perfetto"]));
    assert!(found.slices.values().flatten().any(|slice| is_step(slice) && slice.name == known));
    let bytes = exported(directory.path(), &["--format", "chrome-trace"]);
    let json: Value = serde_json::from_slice(&bytes).unwrap();
    let events = json["traceEvents"].as_array().unwrap();
    assert!(
        events.iter().any(|event| event["cat"] == "compute" && event["name"] == known.as_str())
    );
}

#[cfg(feature = "parquet")]
mod tables {
    use super::*;
    use arrow_array::RecordBatch;
    use arrow_array::cast::AsArray;
    use arrow_array::types::Int64Type;
    use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;

    fn parquet(report: &Path, rest: &[&str]) -> Vec<RecordBatch> {
        let bytes = exported(report, &[&["--format", "parquet"], rest].concat());
        let reader = ParquetRecordBatchReaderBuilder::try_new(bytes::Bytes::from(bytes)).unwrap();
        reader.build().unwrap().map(Result::unwrap).collect()
    }

    fn column(batches: &[RecordBatch], name: &str) -> Vec<u64> {
        let of = |batch: &RecordBatch| {
            let values = batch.column_by_name(name).unwrap().as_primitive::<Int64Type>().clone();
            values.iter().map(|value| value.unwrap_or(0).cast_unsigned()).collect::<Vec<u64>>()
        };
        batches.iter().flat_map(of).collect()
    }

    #[test]
    fn parquet_has_the_totals_of_the_report() {
        let (report, directory) = report("mnist_pipeline", &[]);
        let trace = report.trace().unwrap().unwrap();
        let steps = parquet(directory.path(), &[]);
        let cycles: u64 = by_activity(&trace).values().sum();
        assert_eq!(column(&steps, "cycles").iter().sum::<u64>(), cycles);
        let lane = trace.lane_of(IpuId(2), 0).unwrap();
        let range = CycleRange::new(Cycles(100_000), Cycles(200_000));
        let some = ["--range", "100000..200000", "--ipus", "2"];
        let touching = lane.touching(range).unwrap();
        let some = parquet(directory.path(), &some);
        assert_eq!(column(&some, "step_id").len() as u64, touching.end - touching.start);
        let tiles = parquet(directory.path(), &["--table", "tiles", "--tiles", "10..20"]);
        assert_eq!(column(&tiles, "tile"), (10..20).collect::<Vec<_>>());
        let memory = report.tile_memory().unwrap();
        let known = |tile| memory.get(TileId(tile)).unwrap().including_gaps.0;
        let known: Vec<u64> = (10..20).map(known).collect();
        assert_eq!(column(&tiles, "total_including_gaps"), known);
        let of_ipu = parquet(directory.path(), &["--table", "operations", "--ipus", "1"]);
        let operations = report.operations().unwrap();
        let count = operations.iter().filter(|operation| operation.ipu == Some(IpuId(1))).count();
        assert_eq!(column(&of_ipu, "ipu"), vec![1; count]);
    }

    #[test]
    fn every_table_is_written_in_both_formats() {
        let out = Path::new(env!("CARGO_MANIFEST_DIR")).join("sample_reports/matmul_chain");
        let report = std::sync::Arc::new(Report::open(&out).unwrap());
        for table in tilescope_arrow::tables() {
            let rows = tilescope_arrow::read_table(&report, &table.name, &Default::default());
            let rows = rows.unwrap().rows();
            let found = parquet(&out, &["--table", &table.name]);
            let count = found.iter().map(RecordBatch::num_rows).sum::<usize>();
            assert_eq!(count as u64, rows, "{}", table.name);
            let arrow = exported(&out, &["--format", "arrow", "--table", &table.name]);
            assert!(arrow.starts_with(b"ARROW1") && arrow.ends_with(b"ARROW1"), "{}", table.name);
        }
    }

    #[test]
    fn files_state_their_columns_and_their_report() {
        let out = Path::new(env!("CARGO_MANIFEST_DIR")).join("sample_reports/matmul_chain");
        let report = Report::open(&out).unwrap();
        for (table, column, unit) in
            [("memory_by_tile", "total", "bytes"), ("steps_between", "cycles", "cycles")]
        {
            let bytes = exported(&out, &["--format", "parquet", "--table", table]);
            let bytes = bytes::Bytes::from(bytes);
            let reader = ParquetRecordBatchReaderBuilder::try_new(bytes).unwrap();
            let schema = reader.schema();
            let unit_of = |name| schema.field_with_name(name).unwrap().metadata().get("unit");
            assert_eq!(unit_of(column).map(String::as_str), Some(unit));
            assert_eq!(unit_of("ipu"), None);
            for key in ["format", "generator"] {
                let said = schema.metadata().get(&format!("tilescope.{key}"));
                assert_eq!(said, report.meta().get(key));
            }
            // For readers that know no Arrow.
            let pairs = reader.metadata().file_metadata().key_value_metadata().unwrap();
            let named = pairs.iter().find(|pair| pair.key == "tilescope.table").unwrap();
            assert_eq!(named.value.as_deref(), Some(table));
        }
    }

    #[test]
    fn wrong_tables_and_selections_are_refused() {
        let out = Path::new(env!("CARGO_MANIFEST_DIR")).join("sample_reports/matmul_chain");
        let out = out.to_str().unwrap();
        for (rest, part) in [
            (&["--table", "stepz"][..], "did you mean \"steps\"?"),
            (&["--table", "liveness", "--ipus", "0"], "it is always written whole"),
            (&["--table", "variables", "--range", "0..9"], "it takes IPUs, tiles"),
            (&["--table", "steps_by_ipu"], "unknown table"),
            (&["--table", "tiles", "--tiles", "0..99999999"], "the report has tiles"),
            (&["--view", "memory", "--table", "nothing"], "tiles"),
        ] {
            let words =
                [&["export", out, "--format", "parquet", "-o", "/nowhere/x"], rest].concat();
            let (code, message) = refused(&words);
            assert!(code == 2 && message.contains(part), "{rest:?}: {message}");
        }
    }
}
