//! Broken and hostile files: a clear error or a partial report with a warning, never a panic, never
//! unbounded work or memory.

use crate::common;
use crate::report_support::foreign::Foreign;
use crate::report_support::*;
use rusqlite::Connection;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};
use tempfile::tempdir;
use tilescope_fixtures::ReportBuilder;
use tilescope_report::units::*;
use tilescope_report::*;
use tilescope_test_tiers::cases;

/// Queries everything and accepts any answer.
fn ask(path: &Path) -> Vec<String> {
    let mut errors = Vec::new();
    let report = match Report::open_with_cache(path, None) {
        Ok(report) => report,
        Err(error) => return vec![error.to_string()],
    };
    fn note<T>(errors: &mut Vec<String>, answer: Result<T, ReportError>) -> Option<T> {
        answer.map_err(|error| errors.push(error.to_string())).ok()
    }
    for part in ReportPart::ALL {
        report.has(part);
    }
    note(&mut errors, report.target());
    note(&mut errors, report.outcome());
    note(&mut errors, report.compilation());
    note(&mut errors, report.programs());
    note(&mut errors, report.compute_sets());
    note(&mut errors, report.exchange_totals());
    note(&mut errors, report.traffic_by_tile());
    note(&mut errors, report.marks(&ALL_MARKS));
    let count = note(&mut errors, report.step_count()).unwrap_or(0);
    note(&mut errors, report.steps(StepId(0)..StepId(count), 2000));
    if let Some(Some(trace)) = note(&mut errors, report.trace()) {
        for lane in (0..trace.lanes().len()).filter_map(|lane| trace.lane(lane)) {
            for pixels in [3, 1000] {
                note(&mut errors, lane.spans(trace.range(), pixels));
            }
            let middle = trace.range().start / 2 + trace.range().end / 2;
            note(&mut errors, lane.totals(CycleRange::new(middle / 2, middle)));
            note(&mut errors, lane.steps_in(trace.range(), 10_000));
            note(&mut errors, lane.find(StepId(count / 2)));
            note(&mut errors, lane.step_at(middle));
        }
    }
    if let Some(found) = note(&mut errors, report.verify()) {
        errors.extend(found.into_iter().map(|finding| finding.text));
    }
    errors
}

/// Like [`ask`], within a time limit far above that of any sound file of this size.
fn ask_in_time(path: &Path) -> Vec<String> {
    let started = Instant::now();
    let errors = ask(path);
    assert!(started.elapsed() < Duration::from_secs(60), "{:?}", started.elapsed());
    errors
}

fn open_error(path: &Path) -> String {
    Report::open(path).err().expect("this cannot be opened").to_string()
}

#[test]
fn paths_that_hold_no_report_are_described() {
    let directory = tempdir().unwrap();
    let at = |name: &str| directory.path().join(name);
    let shown = directory.path().display();
    assert_eq!(open_error(&at("none")), format!("no such file or directory: {shown}/none"));
    let text = open_error(directory.path());
    assert_eq!(text, format!("no profile.pop in this directory (it is empty): {shown}"));
    fs::create_dir(at("training")).unwrap();
    fs::write(at("app.json"), "{}").unwrap();
    let text = open_error(directory.path());
    assert!(text.contains("(it holds app.json, training/)"), "{text}");
    random_report(1, 3).write(&at("training")).unwrap();
    let text = open_error(directory.path());
    assert!(text.contains("(training/ has one: open it instead)"), "{text}");
    fs::create_dir(at("inference")).unwrap();
    random_report(1, 3).write(&at("inference")).unwrap();
    fs::copy(at("training/profile.pop"), at("copy.pop")).unwrap();
    let text = open_error(directory.path());
    let several =
        "3 reports in this directory; open one of them (copy.pop, inference/, training/): ";
    assert_eq!(text, format!("{several}{shown}"));
    for name in ["copy.pop", "inference/", "training/"] {
        assert!(Report::open(at(name)).is_ok(), "{name}");
    }
    fs::remove_dir_all(at("inference")).unwrap();
    fs::remove_file(at("copy.pop")).unwrap();
    for i in 0..7 {
        fs::write(at(&format!("{i}.txt")), "").unwrap();
    }
    fs::remove_dir_all(at("training")).unwrap();
    let text = open_error(directory.path());
    assert!(text.contains("(it holds 0.txt, 1.txt, 2.txt, 3.txt and 4 more)"), "{text}");
}

#[test]
fn files_of_other_kinds_are_named() {
    let directory = tempdir().unwrap();
    let file = directory.path().join("profile.pop");
    let cases: [(&[u8], &str); 7] = [
        (b"", "this file is empty"),
        (b"\xff\xd8\xff\xe0\x00\x10JFIF", "this is a JPEG picture"),
        (b"{\"memory\": {}}", "this is JSON"),
        (b"\x1f\x8b\x08", "gzip-compressed"),
        (b"version https://git-lfs.github.com/spec/v1", "Git LFS pointer"),
        (b"hello", "this is not an SQLite file"),
        (b"SQLite format 3\0 and then nothing", "cut off"),
    ];
    for (bytes, expected) in cases {
        fs::write(&file, bytes).unwrap();
        let text = open_error(directory.path());
        assert!(text.contains(expected) && text.ends_with("profile.pop"), "{text}");
    }
    fs::remove_file(&file).unwrap();
    let db = Connection::open(&file).unwrap();
    db.execute_batch("CREATE TABLE songs (id, title)").unwrap();
    drop(db);
    let text = open_error(&file);
    assert!(text.starts_with("an SQLite file without any table of a report"), "{text}");
}

/// Reports of ours in both layouts and one of another tool, small enough for many mutations.
fn samples(directory: &Path) -> [PathBuf; 3] {
    let mut report = random_report(11, 3000);
    let rows = report.write(&directory.join("rows")).unwrap();
    report.steps.retain(|step| !step.ipus.is_empty());
    report.marks.clear();
    report.layout = StepLayout::Columns;
    let columns = report.write(&directory.join("columns")).unwrap();
    let theirs = directory.join("theirs.pop");
    let foreign =
        Foreign { steps: 600, tiles_per_ipu: 32, unknown_types: true, ..Foreign::default() };
    foreign.write(&theirs);
    [rows, columns, theirs]
}

#[test]
fn truncated_files_are_reported() {
    let directory = tempdir().unwrap();
    for sample in samples(directory.path()) {
        let whole = fs::read(&sample).unwrap();
        let cut = directory.path().join("cut.pop");
        let dice = &mut Dice::new(1);
        let offsets = (0..200).map(|i| if i < 120 { i } else { dice.below(whole.len() as u64) });
        for offset in offsets {
            fs::write(&cut, &whole[..offset as usize]).unwrap();
            let text = open_error(&cut);
            assert!(text.ends_with("cut.pop"), "{offset}: {text}");
            if offset >= 100 {
                assert!(
                    text.starts_with(&format!("cut off: the file has {offset} B of ")),
                    "{text}"
                );
            }
        }
    }
}

#[test]
fn flipped_bits_do_no_harm() {
    flip_bits(cases(150), 2);
}

fn flip_bits(times: u32, seed: u64) {
    let directory = tempdir().unwrap();
    for sample in samples(directory.path()) {
        let whole = fs::read(&sample).unwrap();
        let broken = directory.path().join("broken.pop");
        let dice = &mut Dice::new(seed);
        let mut noticed = 0;
        for i in 0..times {
            let mut bytes = whole.clone();
            // The header and the schema matter most, so they are hit most.
            let span = if i % 3 == 0 { 4096 } else { bytes.len() as u64 };
            for _ in 0..=dice.below(4) {
                bytes[dice.below(span) as usize] ^= 1 << dice.below(8);
            }
            fs::write(&broken, bytes).unwrap();
            noticed += usize::from(!ask_in_time(&broken).is_empty());
        }
        assert!(noticed > times as usize / 3, "only {noticed} of {times} flips were noticed");
    }
}

#[test]
fn replaced_pages_do_no_harm() {
    let directory = tempdir().unwrap();
    for sample in samples(directory.path()) {
        let whole = fs::read(&sample).unwrap();
        let pages = whole.len() as u64 / 4096;
        let broken = directory.path().join("broken.pop");
        let dice = &mut Dice::new(3);
        for _ in 0..cases(60) {
            let mut bytes = whole.clone();
            let (from, to) = (dice.below(pages) as usize, 1 + dice.below(pages - 1) as usize);
            bytes.copy_within(from * 4096..(from + 1) * 4096, to * 4096);
            fs::write(&broken, bytes).unwrap();
            ask_in_time(&broken);
        }
    }
}

/// A report with something in every table.
fn full_report(steps: u64) -> ReportBuilder {
    let is_full = |report: &ReportBuilder| {
        let parts = &report.parts;
        let traffic = parts.exchanges.iter().any(|exchange| exchange.tiles.len() > 1);
        let placed = parts.variables.iter().any(|variable| variable.tiles.len() > 1);
        let groups = parts.compute_sets.iter().flat_map(|set| &set.vertices);
        let vertices = groups.filter(|group| group.count.len() > 1).count() > 0;
        let worked = parts.compute_sets.first().is_some_and(|set| !set.cycles.is_empty());
        let memory = parts.tile_memory.len() > 1 && parts.tile_categories.len() > 1;
        let lists = !parts.liveness.is_empty() && !parts.operations.is_empty();
        traffic && placed && vertices && worked && memory && lists
    };
    let mut reports = (0..).map(|seed| random_report(seed, 0));
    let seed = reports.position(|report| is_full(&report)).unwrap() as u64;
    random_report(seed, steps)
}

#[test]
fn wrong_pieces_of_the_index_do_no_harm() {
    lie(cases(400), 5);
}

/// Changes the contents of the compressed pieces, and corrects their checksums.
fn lie(times: u32, seed: u64) {
    let directory = tempdir().unwrap();
    let [_, columns, _] = samples(directory.path());
    let dice = &mut Dice::new(seed);
    let pieces = [
        ("trace_chunks", "data"),
        ("trace_details", "data"),
        ("trace_nodes", "data"),
        ("trace_lanes", "expectations"),
        ("mark_chunks", "data"),
    ];
    for _ in 0..times {
        let (table, column) = dice.pick(&pieces);
        let broken = directory.path().join("broken.pop");
        fs::copy(&columns, &broken).unwrap();
        let db = Connection::open(&broken).unwrap();
        let sql = format!("SELECT rowid, {column} FROM {table}");
        let mut statement = db.prepare(&sql).unwrap();
        let rows = statement.query_map([], |row| Ok((row.get(0)?, row.get(1)?))).unwrap();
        let rows: Vec<(i64, Vec<u8>)> = rows.map(Result::unwrap).collect();
        drop(statement);
        for (rowid, packed) in rows {
            let mut raw = miniz_oxide::inflate::decompress_to_vec_zlib(&packed).unwrap();
            for _ in 0..=dice.below(3) {
                // The first bytes count and bound the rest.
                let span = if dice.chance(2) { raw.len().min(16) } else { raw.len() };
                raw[dice.below(span as u64) as usize] = dice.next() as u8;
            }
            let packed = miniz_oxide::deflate::compress_to_vec_zlib(&raw, 1);
            let sql = format!("UPDATE {table} SET {column} = ?1 WHERE rowid = ?2");
            db.execute(&sql, rusqlite::params![packed, rowid]).unwrap();
        }
        drop(db);
        ask_in_time(&broken);
    }
}

/// Changes a report with SQL and queries everything.
fn ask_changed(sql: &str) -> (Vec<String>, Vec<String>) {
    let directory = tempdir().unwrap();
    let path = full_report(500).write(directory.path()).unwrap();
    let db = Connection::open(&path).unwrap();
    db.execute_batch(sql).unwrap_or_else(|error| panic!("{sql}: {error}"));
    drop(db);
    let errors = ask_in_time(&path);
    let warnings = Report::open_with_cache(&path, None).map_or(Vec::new(), |report| {
        drop(report.compilation());
        report.warnings()
    });
    (errors, warnings)
}

#[test]
fn impossible_numbers_are_left_out() {
    let cases = [
        "UPDATE tile_patterns SET runs = '[[0,1,1,1,-1]]'",
        "UPDATE memory_by_tile SET non_interleaved = 'many'",
        "UPDATE tile_patterns SET runs = x'00'",
        "UPDATE tile_patterns SET runs = '[[0,1,1,1,1e300]]'",
        "UPDATE liveness_steps SET bytes = -9223372036854775808",
        "UPDATE tile_patterns SET runs = '[[0,1,1,1,1000000000000000000]]'",
        "UPDATE operations SET flops = 'NaN'",
    ];
    for sql in cases {
        let (_, warnings) = ask_changed(sql);
        assert!(warnings.iter().any(|w| w.contains("invalid values")), "{sql}: {warnings:?}");
    }
}

#[test]
fn impossible_addresses_are_left_out() {
    // A first tile above all tiles, and an address above all memory.
    for blob in ["ffffffffffffffffff01", "0002ffffffffffffffffff01"] {
        let (_, warnings) = ask_changed(&format!("UPDATE addresses SET data = x'{blob}'"));
        let warning = "addresses has runs of tiles that overlap or do not exist";
        assert!(warnings.iter().any(|w| w.contains(warning)), "{blob}: {warnings:?}");
    }
}

#[test]
fn impossible_steps_are_detected() {
    let cases = [
        "UPDATE steps_by_ipu SET cycles_base = -5 WHERE step_id = 77",
        "UPDATE steps_by_ipu SET active_cycles_to_max = 4611686018427387904 WHERE step_id = 77",
        "UPDATE OR REPLACE steps_by_ipu SET ipu = 4000000000 WHERE step_id = 77",
        "UPDATE steps SET program = 99999 WHERE id = 77",
        "UPDATE steps SET type = zeroblob(100) WHERE id = 77",
        "DELETE FROM steps WHERE id = 77",
        "DELETE FROM steps_by_ipu WHERE step_id = 77",
        "INSERT INTO steps VALUES (1000000000000, 'Sync', 0, NULL)",
        "UPDATE trace_lanes SET steps = steps + 1",
        "UPDATE trace_lanes SET steps = 1099511627776",
        "UPDATE trace_lanes SET ipu = 5",
        "UPDATE trace_lanes SET end_cycle = 0",
        "UPDATE trace_lanes SET expectations = NULL",
        "DELETE FROM trace_chunks",
        "DELETE FROM trace_nodes",
        "UPDATE trace_nodes SET data = (SELECT data FROM trace_chunks LIMIT 1)",
        "UPDATE trace_chunks SET data = zeroblob(1000)",
    ];
    for sql in cases {
        let (errors, _) = ask_changed(sql);
        assert!(!errors.is_empty(), "{sql} is not noticed");
    }
}

#[test]
fn runs_of_tiles_that_overlap_are_left_out() {
    let cases = [
        "UPDATE tile_patterns SET runs = '[[0,1000000000000,1,1,5]]'",
        "UPDATE tile_patterns SET runs = '[[3,3,1,1,5]]'",
        "UPDATE exchanges SET base_tile = 60000",
        "UPDATE category_bytes SET times = 9000",
        "UPDATE tile_patterns SET runs = '[[100,1048577,1048477,1,5]]'",
    ];
    for sql in cases {
        let (_, warnings) = ask_changed(sql);
        assert!(!warnings.is_empty(), "{sql} is not noticed");
    }
}

#[test]
fn cyclic_programs_are_cut() {
    let directory = tempdir().unwrap();
    let mut report = ReportBuilder::new(1, 1);
    let (a, b) =
        (report.program(ProgramKind::Sequence, "a"), report.program(ProgramKind::Call, "b"));
    report.parts.programs[a.index()].children = vec![b, b];
    report.parts.programs[b.index()].children = vec![a];
    report.parts.roots = vec![a];
    report.write(directory.path()).unwrap();
    let read = Report::open(directory.path()).unwrap();
    let programs = read.programs().unwrap();
    assert_eq!(programs.get(a).unwrap().children, [b, b]);
    assert_eq!(programs.get(b).unwrap().children, []);
    assert!(read.warnings().iter().any(|text| text.contains("contain themselves")));
    // A deep tree must not exhaust the stack either.
    let mut report = ReportBuilder::new(1, 1);
    for i in 0..200_000u32 {
        let id = report.program(ProgramKind::Sequence, "deep");
        report.parts.programs[id.index()].children = vec![ProgramId((i + 1) % 200_000)];
    }
    report.write(directory.path()).unwrap();
    assert!(!ask_in_time(directory.path()).is_empty());
}

/// A file of hostile statements.
fn ask_hostile(sql: &str) -> Vec<String> {
    let directory = tempdir().unwrap();
    let path = directory.path().join("profile.pop");
    let db = Connection::open(&path).unwrap();
    db.execute_batch(sql).unwrap_or_else(|error| panic!("{sql}: {error}"));
    drop(db);
    ask_in_time(&path)
}

const ENDLESS: &str = "WITH RECURSIVE n(id) AS (SELECT 1 UNION ALL SELECT id + 1 FROM n) SELECT id";

#[test]
fn tables_that_are_not_tables_are_not_read() {
    let errors = ask_hostile(&format!(
        "CREATE TABLE programs (id INTEGER PRIMARY KEY, name TEXT);
         CREATE VIEW steps AS {ENDLESS}, 'Sync' AS type, 0 AS program FROM n;
         CREATE VIEW steps_by_ipu AS {ENDLESS} AS step_id, 0 AS ipu, 1 AS cycles FROM n;
         CREATE VIEW vars_info AS {ENDLESS}, id AS tile, 1 AS size_bytes, 0 AS category FROM n;
         CREATE VIEW memory_by_tile AS {ENDLESS} AS tile, 1 AS total FROM n;"
    ));
    assert_eq!(errors, Vec::<String>::new());
    ask_hostile("CREATE VIRTUAL TABLE programs USING fts5(id, name); CREATE TABLE steps (id)");
    ask_hostile(
        "CREATE TABLE steps_by_ipu (step_id INTEGER, ipu INTEGER, cycles INTEGER,
             active_tiles AS (length(hex(zeroblob(10000000 + step_id)))));
         INSERT INTO steps_by_ipu VALUES (1, 0, 5), (2, 0, 5)",
    );
}

#[test]
fn indexes_and_triggers_do_no_harm() {
    ask_hostile(
        "CREATE TABLE steps_by_ipu (step_id INTEGER, ipu INTEGER, cycles INTEGER);
         CREATE TABLE t (a);
         CREATE TRIGGER trap AFTER INSERT ON steps_by_ipu BEGIN INSERT INTO t VALUES (1); END;
         CREATE INDEX i ON steps_by_ipu(step_id) WHERE length(hex(ipu)) > 3;
         INSERT INTO steps_by_ipu VALUES (1, 0, 5), (2, 0, 5)",
    );
}

#[test]
fn huge_values_are_not_loaded() {
    let errors = ask_hostile(
        "CREATE TABLE programs (id INTEGER PRIMARY KEY, name TEXT);
         INSERT INTO programs VALUES (0, CAST(zeroblob(100000000) AS TEXT));
         CREATE TABLE compute_sets (compute_set INTEGER PRIMARY KEY, name TEXT);
         INSERT INTO compute_sets (compute_set, name) VALUES (0, CAST(zeroblob(1000000) AS TEXT))",
    );
    assert!(errors.iter().any(|text| text.contains("too large for a report")), "{errors:?}");
    assert!(
        errors.iter().any(|text| text.contains("compute_sets.name holds invalid values")),
        "{errors:?}"
    );
}

#[test]
fn many_ipus_and_wild_numbers_are_bounded() {
    let errors = ask_hostile(
        "CREATE TABLE steps_by_ipu (step_id INTEGER, ipu INTEGER, cycles INTEGER,
             cycles_base INTEGER, active_cycles_to_max INTEGER);
         WITH RECURSIVE n(i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM n LIMIT 20000)
         INSERT INTO steps_by_ipu SELECT i / 3, (i * 7919) % 3000 - 5, i, i * i * 1000003, i * i FROM n;
         CREATE TABLE vars_info (id, name, tile, size_bytes, category);
         WITH RECURSIVE n(i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM n LIMIT 20000)
         INSERT INTO vars_info SELECT i * 1e15, i, i * i * i - 9, 9223372036854775807 - i, 'x' FROM n;
         INSERT INTO vars_info VALUES (1, 'a', 7, 9223372036854775807, 0), (1, 'b', 7, 'x', 0),
             (2, NULL, 1048575, 68719476736, 0), (-1, x'00', -1, -1, -1)",
    );
    assert!(!errors.is_empty());
}

/// Makes interior pages of tables point at each other: every child of a page is the next page, so
/// that a walk over them practically never ends.
fn tangle_pages(path: &Path, page_bytes: usize) {
    let mut bytes = fs::read(path).unwrap();
    let pages = |bytes: &[u8], kind: u8| -> Vec<usize> {
        (1..bytes.len() / page_bytes).filter(|page| bytes[page * page_bytes] == kind).collect()
    };
    let (interior, leaves) = (pages(&bytes, 5), pages(&bytes, 13));
    assert!(interior.len() > 12, "{} interior pages", interior.len());
    for (page, next) in interior[..12].iter().zip(interior[1..12].iter().chain(&leaves[..1])) {
        let start = page * page_bytes;
        let cells = usize::from(u16::from_be_bytes([bytes[start + 3], bytes[start + 4]]));
        let child = u32::try_from(next + 1).unwrap().to_be_bytes();
        bytes[start + 8..start + 12].copy_from_slice(&child);
        for cell in 0..cells {
            let at = start + 12 + 2 * cell;
            let place = start + usize::from(u16::from_be_bytes([bytes[at], bytes[at + 1]]));
            bytes[place..place + 4].copy_from_slice(&child);
        }
    }
    fs::write(path, bytes).unwrap();
}

#[test]
fn walks_over_cyclic_pages_end() {
    let directory = tempdir().unwrap();
    let path = directory.path().join("profile.pop");
    let db = Connection::open(&path).unwrap();
    db.execute_batch(
        "PRAGMA page_size = 512;
         CREATE TABLE steps (id INTEGER PRIMARY KEY, type TEXT, program INTEGER);
         CREATE TABLE steps_by_ipu (step_id INTEGER, ipu INTEGER, cycles INTEGER);
         WITH RECURSIVE n(i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM n LIMIT 30000)
         INSERT INTO steps SELECT i, 'OnTileExecute', i FROM n;
         INSERT INTO steps_by_ipu VALUES (0, 0, 5)",
    )
    .unwrap();
    drop(db);
    tangle_pages(&path, 512);
    let errors = ask_in_time(&path);
    assert!(!errors.is_empty());
}

#[test]
fn long_names_are_not_held_by_each_variable() {
    let directory = tempdir().unwrap();
    let mut report = ReportBuilder::new(1, 4);
    for _ in 0..3000 {
        report.variable("name", MemoryCategory::Variable, 0..4, 4, None);
    }
    let path = report.write(directory.path()).unwrap();
    let db = Connection::open(&path).unwrap();
    let long = "UPDATE vars_string_table SET string = CAST(zeroblob(60000) AS TEXT)";
    db.execute(long, []).unwrap();
    drop(db);
    let report = Report::open_with_cache(&path, None).unwrap();
    let all = VariableFilter { tiles: None, category: None, after: None, limit: usize::MAX };
    let variables = report.variables(&all).unwrap();
    let bytes: usize = variables.iter().map(|(_, v)| v.name.len() + v.shape.len()).sum();
    assert!(variables.len() == 3000 && bytes < 70 << 20, "{bytes} bytes");
    assert!(report.warnings().iter().any(|text| text.contains("too long to hold in memory")));
}

#[test]
fn texts_that_unpack_from_a_few_bytes_are_bounded() {
    let directory = tempdir().unwrap();
    let path = directory.path().join("profile.pop");
    let db = Connection::open(&path).unwrap();
    let text = "x".repeat(50_000);
    db.execute_batch(&format!(
        "CREATE TABLE programs (id INTEGER PRIMARY KEY);
         CREATE TABLE notes (id INTEGER PRIMARY KEY);
         WITH RECURSIVE n(i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM n LIMIT 3000)
         INSERT INTO notes SELECT i FROM n;
         ALTER TABLE notes ADD COLUMN text TEXT DEFAULT '{text}'"
    ))
    .unwrap();
    drop(db);
    let report = Report::open_with_cache(&path, None).unwrap();
    let bytes: usize = report.notes().unwrap().iter().map(String::len).sum();
    assert!(bytes <= 66 << 20, "{bytes} bytes");
    assert!(report.warnings().iter().any(|text| text.contains("too large to hold in memory")));
}

/// Every integer column of a report: table and column.
fn number_columns(report: &Connection) -> Vec<(String, String)> {
    let sql = "SELECT m.name, c.name FROM sqlite_schema m, pragma_table_info(m.name) c
               WHERE m.type = 'table' AND c.type LIKE 'INT%' AND m.name NOT LIKE 'sqlite%'";
    let mut statement = report.prepare(sql).unwrap();
    let rows = statement.query_map([], |row| Ok((row.get(0)?, row.get(1)?))).unwrap();
    rows.collect::<Result<_, _>>().unwrap()
}

/// Sets one cell of a column to a large number. Returns `false` if the table has no row or refuses
/// it.
fn with_large_cell(report: &Connection, table: &str, column: &str) -> bool {
    let last = format!("SELECT rowid FROM \"{table}\" ORDER BY rowid DESC LIMIT 1");
    let sql = format!("UPDATE \"{table}\" SET \"{column}\" = 2147483646 WHERE rowid = ({last})");
    report.execute(&sql, []).is_ok_and(|changed| changed == 1)
}

/// A number in an untrusted file is no size: with 1 GiB, every command gives an answer or an error
/// message, and so do exports of all tables.
#[test]
#[cfg(unix)]
fn no_cell_determines_the_use_of_memory() {
    let sample = PathBuf::from(common::sample("mnist_pipeline"));
    let directory = tempdir().unwrap();
    let file = directory.path().join("profile.pop");
    let output = directory.path().join("output");
    let place = output.to_str().unwrap();
    let commands: [&[&str]; 6] = [
        &["verify"],
        &["insights"],
        &["export", "--format", "perfetto", "-o", place],
        &["export", "--format", "parquet", "-o", place],
        &["export", "--format", "parquet", "--table", "variables", "-o", place],
        &["report", "-o", place],
    ];
    fs::copy(sample.join("profile.pop"), &file).unwrap();
    let mut columns = number_columns(&Connection::open(&file).unwrap());
    if !tilescope_test_tiers::slow_tests() {
        columns.retain(|(table, column)| table == "programs" && column == "id");
    }
    assert!(!columns.is_empty());
    for (table, column) in columns {
        fs::copy(sample.join("profile.pop"), &file).unwrap();
        if !with_large_cell(&Connection::open(&file).unwrap(), &table, &column) {
            continue;
        }
        for command in commands {
            let (name, rest) = command.split_first().unwrap();
            let mut limited = common::limited_tilescope("ulimit -v 1048576");
            limited.arg(name).arg(&file).args(rest);
            let done = limited.env("XDG_CACHE_HOME", directory.path()).output().unwrap();
            let said = common::stderr(&done);
            let place = format!("{table}.{column} {command:?}: {said}");
            assert!(!said.contains("memory allocation") && !said.contains("panicked"), "{place}");
            assert!(matches!(done.status.code(), Some(0 | 1)), "{place}");
        }
    }
}

/// Names of 24,000 letters, each on many steps: files are at most a few times larger than the
/// report.
#[test]
#[cfg(unix)]
fn long_names_are_not_repeated_in_exports() {
    let directory = tempdir().unwrap();
    let simulated = common::report("mnist_pipeline", &["options.device_iterations=12"]);
    let file = directory.path().join("profile.pop");
    fs::copy(simulated.0.path(), &file).unwrap();
    let sql = "UPDATE programs SET name = substr(replace(hex(zeroblob(12000)), '00', id || '_'), 1, 24000)";
    Connection::open(&file).unwrap().execute(sql, []).unwrap();
    let bytes = fs::metadata(&file).unwrap().len();
    let output = directory.path().join("output");
    let formats = ["parquet", "chrome-trace", "arrow", "perfetto"].into_iter();
    for format in formats.take(tilescope_test_tiers::up_to(2)) {
        let mut limited = common::limited_tilescope("ulimit -v 1000000");
        limited.arg("export").arg(&file).args(["--format", format, "-o"]).arg(&output);
        let done = limited.output().unwrap();
        let said = common::stderr(&done);
        assert!(done.status.success(), "{format}: {said}");
        let written = fs::metadata(&output).unwrap().len();
        assert!(written < 5 * bytes, "{format}: {written} B of {bytes} B");
    }
}
