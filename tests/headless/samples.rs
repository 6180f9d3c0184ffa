//! The sample reports: small, valid, and usable with queries that scripts run on reports of Poplar.

use crate::common;
use rusqlite::{Connection, OpenFlags};
use std::path::{Path, PathBuf};
use tilescope_analysis::exchange_code::ExchangeFlows;
use tilescope_report::Report;
use tilescope_report::units::Bytes;
use tilescope_test_tiers::slow_tests;

const SAMPLES: [&str; 3] = ["matmul_chain", "mnist_pipeline", "too_large"];

fn directory() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("sample_reports")
}

fn file(name: &str) -> PathBuf {
    directory().join(name).join("profile.pop")
}

fn database(name: &str) -> Connection {
    Connection::open_with_flags(file(name), OpenFlags::SQLITE_OPEN_READ_ONLY).expect("SQLite")
}

/// All rows of a query with integer columns.
fn rows<const N: usize>(db: &Connection, sql: &str) -> Vec<[i64; N]> {
    let mut statement = db.prepare(sql).expect(sql);
    let row = |row: &rusqlite::Row| {
        let mut cells = [0; N];
        for (i, cell) in cells.iter_mut().enumerate() {
            *cell = row.get(i)?;
        }
        Ok(cells)
    };
    statement.query_map([], row).expect(sql).collect::<Result<_, _>>().expect(sql)
}

#[test]
fn every_directory_is_a_lawful_sample() {
    let mut names: Vec<String> = std::fs::read_dir(directory())
        .expect("sample_reports")
        .map(|entry| entry.expect("entry").path())
        .filter(|path| path.is_dir())
        .map(|path| path.file_name().expect("name").to_string_lossy().into_owned())
        .collect();
    names.sort();
    assert_eq!(names, SAMPLES);
    for name in SAMPLES {
        let report = Report::open(file(name)).expect(name);
        let broken = report.verify().expect(name);
        assert!(broken.is_empty(), "{name}: {broken:?}");
    }
}

/// Share of the bytes of all exchanges with known senders and receivers.
fn known_share(report: &Report) -> f64 {
    let flows = ExchangeFlows::read(report).expect("reads").flows;
    let all: Bytes = flows.iter().map(|flow| flow.bytes).sum();
    let known: Bytes =
        flows.iter().filter(|flow| flow.pattern.is_known()).map(|flow| flow.bytes).sum();
    known.as_f64() / all.as_f64()
}

#[test]
fn senders_and_receivers_of_most_bytes_are_known() {
    // Poolings, padding and halos of convolutions have unknown senders.
    for (name, least) in [("matmul_chain", 0.99), ("mnist_pipeline", 0.89), ("too_large", 0.97)] {
        let share = known_share(&Report::open(file(name)).expect(name));
        assert!(share >= least, "{name}: {share}");
    }
    if slow_tests() {
        for (name, least) in [("bert_large_pod16", 0.96), ("resnet50_pod16", 0.87)] {
            let (report, _directory) = common::report(name, &["options.device_iterations=1"]);
            let share = known_share(&report);
            assert!(share >= least, "{name}: {share}");
        }
    }
}

#[test]
fn together_they_are_under_four_megabytes() {
    let size = |name| std::fs::metadata(file(name)).expect(name).len();
    let total: u64 = SAMPLES.into_iter().map(size).sum();
    assert!(total < 4_000_000, "{total} bytes");
}

#[test]
fn steps_join_with_what_they_ran() {
    let db = database("mnist_pipeline");
    let joined: Vec<[i64; 4]> = rows(
        &db,
        "SELECT s.id, u.ipu, u.cycles_base + u.active_cycles_from_min,
                u.cycles_base + u.active_cycles_to_max
         FROM steps s JOIN steps_by_ipu u ON u.step_id = s.id
         JOIN programs p ON p.id = s.program
         LEFT JOIN compute_sets c ON c.compute_set = s.compute_set ORDER BY s.id",
    );
    let [[all]] = rows(&db, "SELECT count(*) FROM steps_by_ipu")[..] else { unreachable!() };
    assert_eq!(joined.len() as i64, all);
    assert!(joined.iter().all(|[_, ipu, start, end]| (0..4).contains(ipu) && start <= end));
    let unnamed =
        "SELECT s.id FROM steps s LEFT JOIN compute_sets c ON c.compute_set = s.compute_set
                   WHERE s.type = 'OnTileExecute' AND c.name IS NULL";
    assert_eq!(rows::<1>(&db, unnamed).len(), 0, "computing steps name their compute set");
}

#[test]
fn exchange_code_adds_up_per_tile() {
    for name in SAMPLES {
        let report = Report::open(file(name)).expect(name);
        let code: Vec<[i64; 2]> = rows(
            &database(name),
            "SELECT v.tile, sum(v.size_bytes) FROM vars_info v
             JOIN var_categories c ON c.id = v.category
             WHERE c.name = 'internalExchangeCode' GROUP BY v.tile ORDER BY v.tile",
        );
        let total: i64 = code.iter().map(|[_, bytes]| bytes).sum();
        let summary = tilescope_analysis::summary::summary(&report).expect(name);
        let category = summary
            .memory
            .as_ref()
            .expect("recorded")
            .by_category
            .get("internalExchangeCode")
            .copied()
            .unwrap_or(Bytes::ZERO);
        assert_eq!(Bytes(total as u64), category, "{name}");
    }
}

#[test]
fn memory_by_tile_spans_all_tiles() {
    let db = database("matmul_chain");
    let [[least, average, most, tiles]] = rows::<4>(
        &db,
        "SELECT min(total), CAST(avg(total) AS INTEGER), max(total), count(*) FROM memory_by_tile",
    )[..] else {
        unreachable!()
    };
    assert!(0 < least && least < average && average < most);
    assert_eq!(tiles, 1472);
}

#[test]
fn a_copy_to_the_host_follows_each_copy_from_it() {
    let pairs: Vec<[i64; 2]> = rows(
        &database("mnist_pipeline"),
        "SELECT s.id, (SELECT min(t.id) FROM steps t JOIN programs q ON q.id = t.program
           WHERE t.id > s.id AND t.type = 'StreamCopyBegin' AND q.name LIKE '%copyToHost')
         FROM steps s JOIN programs p ON p.id = s.program
         WHERE s.type = 'StreamCopyEnd' AND p.name = 'copyFromHost'",
    );
    assert!(pairs.len() >= 20, "labels and images of ten micro-batches");
    assert!(pairs.iter().all(|[from, to]| from < to));
}
