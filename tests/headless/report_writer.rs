//! Guarantees of the writer: the same bytes, nothing left behind, clear refusals, tables for
//! scripts written for Poplar's files.

use crate::common;
use crate::report_support::*;
use rusqlite::{Connection, StatementStatus};
use std::fs;
use std::path::Path;
use tempfile::tempdir;
use tilescope_fixtures::ReportBuilder;
use tilescope_report::units::*;
use tilescope_report::*;

fn names_in(directory: &Path) -> Vec<String> {
    let entries = fs::read_dir(directory).unwrap();
    let mut names: Vec<_> =
        entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

#[test]
fn same_report_same_bytes() {
    for seed in [3, 4] {
        let mut report = random_report(seed, 9000);
        report.steps.retain(|step| !step.ipus.is_empty());
        report.marks.clear();
        report.layout = if seed == 3 { StepLayout::Rows } else { StepLayout::Columns };
        let (first, second) = (tempdir().unwrap(), tempdir().unwrap());
        let first = fs::read(report.write(first.path()).unwrap()).unwrap();
        let second = fs::read(report.write(second.path()).unwrap()).unwrap();
        assert!(first == second, "seed {seed}: the files differ");
    }
}

#[test]
fn an_older_report_stays_until_the_end() {
    let directory = tempdir().unwrap();
    fs::write(directory.path().join("profile.pop"), "older").unwrap();
    let report = random_report(1, 10);
    let mut writer = ReportWriter::create(directory.path(), &report.meta).unwrap();
    assert_eq!(names_in(directory.path()), ["profile.pop", "profile.pop.part"]);
    writer.compilation(&report.parts).unwrap();
    assert_eq!(fs::read(directory.path().join("profile.pop")).unwrap(), b"older");
    let path = writer.finish().unwrap();
    assert_eq!(names_in(directory.path()), ["profile.pop"]);
    assert_eq!(path, directory.path().join("profile.pop"));
    Report::open(path).unwrap();
}

#[test]
fn dropped_half_way_nothing_is_left() {
    let directory = tempdir().unwrap();
    let report = random_report(1, 10);
    let mut writer = ReportWriter::create(directory.path(), &report.meta).unwrap();
    writer.compilation(&report.parts).unwrap();
    writer.step(&report.steps[0]).unwrap();
    drop(writer);
    assert_eq!(names_in(directory.path()), Vec::<String>::new());
}

#[test]
fn a_part_left_by_a_killed_process_is_replaced() {
    let directory = tempdir().unwrap();
    fs::write(directory.path().join("profile.pop.part"), vec![7; 100_000]).unwrap();
    random_report(1, 10).write(directory.path()).unwrap();
    assert_eq!(names_in(directory.path()), ["profile.pop"]);
    assert_eq!(Report::open(directory.path()).unwrap().step_count().unwrap(), 10);
}

#[test]
fn two_writers_do_not_mix() {
    let directory = tempdir().unwrap();
    let meta = ReportMeta::default();
    let _first = ReportWriter::create(directory.path(), &meta).unwrap();
    let second = ReportWriter::create(directory.path(), &meta).err().unwrap();
    assert!(second.to_string().contains("another process"), "{second}");
}

#[test]
fn a_full_disk_is_an_error_and_leaves_nothing() {
    let directory = tempdir().unwrap();
    let report = random_report(5, 20_000);
    let mut sizes = 0;
    for bytes in [1, 100_000, 400_000, 600_000] {
        let mut writer = ReportWriter::create(directory.path(), &report.meta).unwrap();
        writer.limit_size(bytes).unwrap();
        let written = writer
            .compilation(&report.parts)
            .and_then(|()| report.steps.iter().try_for_each(|step| writer.step(step)));
        let error = match written {
            Ok(()) => writer.finish().map(|_| ()),
            Err(error) => {
                assert!(writer.step(&report.steps[0]).is_err(), "no writing after an error");
                drop(writer);
                Err(error)
            }
        };
        let error = error.unwrap_err();
        assert!(matches!(error, ReportError::DiskFull { .. }), "{error}");
        assert!(error.to_string().ends_with("profile.pop.part"), "{error}");
        assert_eq!(names_in(directory.path()), Vec::<String>::new());
        sizes += 1;
    }
    assert_eq!(sizes, 4);
}

#[test]
fn places_that_cannot_be_written_are_named() {
    let directory = tempdir().unwrap();
    let file = directory.path().join("file");
    fs::write(&file, "").unwrap();
    for place in [file.clone(), file.join("below"), "/proc/tilescope".into()] {
        let error = ReportWriter::create(&place, &ReportMeta::default()).err().unwrap();
        let text = error.to_string();
        assert!(
            text.starts_with("cannot write: ") && text.contains(place.to_str().unwrap()),
            "{text}"
        );
        assert_eq!(text.contains("this is a file"), place == file, "{text}");
    }
    // A directory in place of the report.
    fs::create_dir_all(directory.path().join("profile.pop/sub")).unwrap();
    let error = random_report(1, 1).write(directory.path()).unwrap_err();
    assert!(error.to_string().ends_with("profile.pop"), "{error}");
    assert_eq!(names_in(directory.path()), ["file", "profile.pop"]);
}

#[test]
fn nonsense_is_refused() {
    type Spoil = fn(&mut ReportBuilder);
    let cases: [(&str, Spoil); 13] = [
        ("IPUs of step 1 are none", |r| {
            r.layout = StepLayout::Columns;
            r.steps[1].ipus.clear();
        }),
        ("child of program 0 (work) is 9, but the report has 1", |r| {
            r.parts.programs[0].children = vec![ProgramId(9)];
        }),
        ("compute set of program 0 (work) is 5, but the report has 1", |r| {
            r.parts.programs[0].compute_set = Some(ComputeSetId(5));
        }),
        ("part of variable v is on tiles 1..9 of a replica of 4", |r| {
            r.variable("v", MemoryCategory::Stack, 1..9, 1, None);
        }),
        ("size of variable v is 18446744073709551615, above 68719476736", |r| {
            r.variable("v", MemoryCategory::Stack, 0..1, u64::MAX, None);
        }),
        ("program of step 1 is 7, but the report has 1", |r| r.steps[1].program = ProgramId(7)),
        ("IPU of step 0 on IPU 3 is 3, above 1", |r| r.steps[0].ipus[1].ipu = IpuId(3)),
        ("IPUs of step 0 are not in order", |r| r.steps[0].ipus[1].ipu = IpuId(0)),
        ("start of step 1 is 5, before the last step's end 10", |r| {
            r.steps[1].ipus[0].from_min = Cycles(5);
            r.steps[1].ipus[0].from_max = Cycles(5);
        }),
        ("cycles of step 0 on IPU 0 run from 0 .. 12, to 10 .. 10", |r| {
            r.steps[0].ipus[0].from_max = Cycles(12);
        }),
        ("tile balance of step 0 on IPU 0 is not a share", |r| {
            r.steps[0].ipus[0].active_tile_balance = f32::NAN;
        }),
        ("number of tiles of step 0 on IPU 0 is 3, above 2", |r| {
            r.steps[0].ipus[0].active_tiles = 3;
        }),
        ("end of mark run comes before its start", |r| r.marks[0].cycles.start = Cycles(99)),
    ];
    for (message, spoil) in cases {
        let directory = tempdir().unwrap();
        let mut report = ReportBuilder::new(2, 2);
        let work = report.compute("work", 10);
        report.run(work, 0..10).run(work, 10..20).mark(MarkKind::Run, "run", 0..2);
        spoil(&mut report);
        let error = report.write(directory.path()).unwrap_err();
        assert_eq!(error.to_string(), format!("cannot be written as a report, {message}"));
        assert_eq!(names_in(directory.path()), Vec::<String>::new());
    }
}

#[test]
fn calls_in_the_wrong_order_are_refused() {
    let directory = tempdir().unwrap();
    let report = random_report(1, 3);
    let start = || ReportWriter::create(directory.path(), &report.meta).unwrap();
    assert!(start().step(&report.steps[0]).is_err());
    assert!(start().finish().is_err());
    let mut writer = start();
    writer.step_layout(StepLayout::Columns).unwrap();
    writer.compilation(&report.parts).unwrap();
    writer.step(&report.steps[0]).unwrap();
    assert!(writer.step_layout(StepLayout::Rows).is_err());
    assert!(writer.finish().is_err());
}

/// A report with the data that the scripts read.
fn scripted() -> ReportBuilder {
    let mut report = ReportBuilder::new(2, 3);
    let [begin, end] = [ProgramKind::StreamCopyBegin, ProgramKind::StreamCopyEnd]
        .map(|kind| report.program(kind, "copyFromHost"));
    let work = report.compute("dense/Convolve", 50);
    let out = report.program(ProgramKind::StreamCopyBegin, "loss/copyToHost");
    for i in 0..2 {
        let t = i * 100;
        report.run(begin, t..t + 10).run(end, t + 10..t + 20).run(work, t + 20..t + 70);
        report.run(out, t + 70..t + 90);
    }
    report.variable("exchange", MemoryCategory::InternalExchangeCode, 0..4, 100, None);
    report.variable("more", MemoryCategory::InternalExchangeCode, 3..6, 8, None);
    report.variable("weights", MemoryCategory::Variable, 0..6, 1000, None);
    report
}

/// An open report stays the same when another one takes its name.
#[cfg(unix)]
#[test]
fn a_report_that_is_replaced_is_read_to_its_end() {
    let directory = tempdir().unwrap();
    let write = |runs: u64| {
        let mut report = ReportBuilder::new(1, 1);
        let work = report.compute("work", 10);
        for at in 0..runs {
            report.run(work, at * 10..at * 10 + 10);
        }
        report.write(directory.path()).unwrap()
    };
    let path = write(3);
    let first = Report::open(&path).unwrap();
    write(5);
    assert_eq!(first.step_count().unwrap(), 3);
    assert_eq!(first.trace().unwrap().unwrap().bars(), 3);
    assert_eq!(first.verify().unwrap(), []);
    assert_eq!(Report::open(&path).unwrap().trace().unwrap().unwrap().bars(), 5);
}

/// A query on the steps of a long run fails with a hint; an empty answer would look valid.
#[test]
fn queries_on_steps_without_rows_get_a_hint() {
    let directory = tempdir().unwrap();
    let mut report = ReportBuilder::new(1, 1);
    let work = report.compute("work", 10);
    report.run(work, 0..10).run(work, 10..20);
    report.layout = StepLayout::Columns;
    let path = report.write(directory.path()).unwrap();
    let db = Connection::open(&path).unwrap();
    for table in ["steps", "steps_by_ipu", "marks"] {
        let error = db.prepare(&format!("SELECT count(*) FROM {table}")).unwrap_err().to_string();
        assert!(error.contains("no rows") && error.contains("tilescope query"), "{error}");
    }
    for table in ["exchange_tiles", "memory_by_tile", "vars_info"] {
        assert!(
            db.prepare(&format!("SELECT * FROM {table}")).is_ok(),
            "{table} answers at any size"
        );
    }
    let opened = Report::open(&path).unwrap();
    assert!(opened.has(ReportPart::Execution) && opened.warnings().is_empty());
    assert_eq!(opened.step_count().unwrap(), report.steps.len() as u64);
    assert_eq!(opened.verify().unwrap(), []);
}

/// Steps and marks, from a million records on; the size of the compiled program does not depend on
/// the length.
#[test]
fn a_record_of_a_long_run_takes_less_than_half_a_byte() {
    let directory = tempdir().unwrap();
    let spec = common::spec("mnist_pipeline", &["options.device_iterations=310"]);
    let path = common::report_file(&spec, directory.path());
    let db = Connection::open(&path).unwrap();
    let tables = ["trace_chunks", "trace_details", "trace_nodes", "trace_totals", "mark_chunks"];
    let bytes_of = |table: &str| -> u64 {
        let sql = format!("SELECT total(length(data)) FROM {table}");
        db.query_row(&sql, [], |row| row.get::<_, f64>(0)).unwrap() as u64
    };
    let bytes: u64 = tables.into_iter().map(bytes_of).sum();
    let records = Report::open(&path).unwrap().trace().unwrap().unwrap().bars();
    assert!(records > 1_000_000 && 2 * bytes < records, "{bytes} bytes for {records} records");
}

#[test]
fn queries_written_for_poplar_run_unchanged() {
    let directory = tempdir().unwrap();
    let path = scripted().write(directory.path()).unwrap();
    let db = Connection::open(path).unwrap();

    let sql = "SELECT s.id, s.type, p.name, c.name, u.ipu, u.cycles, u.active_tiles,
               u.cycles_base + u.active_cycles_from_min, u.cycles_base + u.active_cycles_to_max
               FROM steps s JOIN steps_by_ipu u ON u.step_id = s.id
               JOIN programs p ON p.id = s.program
               LEFT JOIN compute_sets c ON c.compute_set = s.compute_set ORDER BY s.id";
    let mut statement = db.prepare(sql).unwrap();
    let rows = statement.query_map([], |row| {
        let text = |i| row.get::<_, Option<String>>(i).map(Option::unwrap_or_default);
        let number = |i| row.get::<_, i64>(i);
        Ok(format!(
            "{} {} {} {} | {} {} {} {}..{}",
            number(0)?,
            text(1)?,
            text(2)?,
            text(3)?,
            number(4)?,
            number(5)?,
            number(6)?,
            number(7)?,
            number(8)?
        ))
    });
    let rows: Vec<String> = rows.unwrap().map(Result::unwrap).collect();
    assert_eq!(rows.len(), 16);
    assert_eq!(rows[5], "2 OnTileExecute dense/Convolve dense/Convolve | 1 50 3 20..70");

    let sql = "SELECT v.tile, sum(v.size_bytes) FROM vars_info v
               JOIN var_categories c ON c.id = v.category
               WHERE c.name = 'internalExchangeCode' GROUP BY v.tile ORDER BY v.tile";
    let mut statement = db.prepare(sql).unwrap();
    let rows = statement.query_map([], |row| Ok((row.get(0)?, row.get(1)?)));
    let rows: Vec<(i64, i64)> = rows.unwrap().map(Result::unwrap).collect();
    assert_eq!(rows, [(0, 100), (1, 100), (2, 100), (3, 108), (4, 8), (5, 8)]);
    let named = "SELECT count(*) FROM vars_info v JOIN vars_string_table s ON s.id = v.name
                 WHERE s.string = 'weights'";
    assert_eq!(db.query_row(named, [], |row| row.get::<_, i64>(0)).unwrap(), 6);

    let sql = "SELECT min(total), avg(total), max(total) FROM memory_by_tile";
    let row = db.query_row(sql, [], |r| Ok((r.get(0)?, r.get(1)?, r.get(2)?))).unwrap();
    let sums = [1100.0, 1100.0, 1100.0, 1108.0, 1008.0, 1008.0];
    assert_eq!(row, (1008, sums.iter().sum::<f64>() / 6.0, 1108));

    let sql = "SELECT s.id, (SELECT min(t.id) FROM steps t JOIN programs q ON q.id = t.program
               WHERE t.id > s.id AND t.type = 'StreamCopyBegin' AND q.name LIKE '%copyToHost')
               FROM steps s JOIN programs p ON p.id = s.program
               WHERE s.type = 'StreamCopyEnd' AND p.name = 'copyFromHost'";
    let mut statement = db.prepare(sql).unwrap();
    let rows = statement.query_map([], |row| Ok((row.get(0)?, row.get(1)?)));
    assert_eq!(rows.unwrap().map(Result::unwrap).collect::<Vec<(i64, i64)>>(), [(1, 3), (5, 7)]);

    let total = "SELECT total FROM execution_cycle_totals";
    assert_eq!(db.query_row(total, [], |row| row.get::<_, i64>(0)).unwrap(), 190);
    let check = "PRAGMA integrity_check";
    assert_eq!(db.query_row(check, [], |row| row.get::<_, String>(0)).unwrap(), "ok");
}

#[test]
fn the_view_of_a_large_model_takes_few_steps_of_sqlite() {
    let directory = tempdir().unwrap();
    let mut report = ReportBuilder::new(4, 1472);
    report.parts.tile_memory = TileRuns::uniform(TileRange::first_tiles(1), TileMemory::default());
    for i in 0..400 {
        let category = if i % 20 == 0 {
            MemoryCategory::InternalExchangeCode
        } else {
            MemoryCategory::Variable
        };
        report.variable(&format!("v{i}"), category, 0..5888, i, None);
    }
    let path = report.write(directory.path()).unwrap();
    let db = Connection::open(path).unwrap();
    let sql = "SELECT max(bytes) FROM (SELECT sum(v.size_bytes) AS bytes FROM vars_info v
               JOIN var_categories c ON c.id = v.category
               WHERE c.name = 'internalExchangeCode' GROUP BY v.tile)";
    let mut statement = db.prepare(sql).unwrap();
    let bytes: i64 = statement.query_row([], |row| row.get(0)).unwrap();
    assert_eq!(bytes, (0..400).step_by(20).sum::<i64>());
    let steps = statement.get_status(StatementStatus::VmStep);
    assert!(steps < 100 * 117_760, "{steps} steps of SQLite for 117,760 rows");
}
