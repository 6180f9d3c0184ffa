//! Reports of every version of the format stay readable, and those of other versions give an error.

use crate::verify::lawful_report;
use rusqlite::Connection;
use std::fs;
use std::path::{Path, PathBuf};
use tempfile::{TempDir, tempdir};
use tilescope_analysis::summary::summary;
use tilescope_fixtures::ReportBuilder;
use tilescope_fixtures::ipu_stack_profile::IpuStackProfile;
use tilescope_report::units::*;
use tilescope_report::*;

fn directory() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/versions")
}

/// Names of the stored reports, in order.
fn kept() -> Vec<String> {
    let names = fs::read_dir(directory())
        .expect("tests/data/versions")
        .map(|entry| entry.expect("entry").file_name().into_string().expect("a plain name"));
    let mut names: Vec<String> = names.collect();
    names.sort();
    names
}

/// The figures of a report, from every table that views read.
fn figures(report: &Report) -> Vec<(&'static str, u64)> {
    let summary = summary(report).expect("summary");
    let trace = report.trace().expect("trace").expect("an execution");
    let lanes = (0..trace.lanes().len()).filter_map(|lane| trace.lane(lane));
    let busy: u64 = lanes
        .map(|lane| lane.totals(trace.range()).expect("totals"))
        .map(|totals| StepActivity::ALL.map(|activity| totals.cycles[activity].0))
        .map(|cycles| cycles.iter().sum::<u64>())
        .sum();
    let all = VariableFilter { tiles: None, category: None, after: None, limit: usize::MAX };
    let variables = report.variables(&all).expect("variables");
    let bytes_of = |variable: &Variable| -> u64 {
        variable.tiles.iter().map(|(tiles, part)| u64::from(tiles.count()) * part.bytes.0).sum()
    };
    let exchanged = report.exchange_totals().expect("exchanges");
    let marks = MarkFilter { kind: None, ipu: None, window: None, limit: usize::MAX };
    let compute_sets = report.compute_sets().expect("compute sets");
    let on_tiles = |set: &ComputeSet| -> u64 {
        set.cycles.iter().map(|(tiles, cycles)| u64::from(tiles.count()) * cycles.0).sum()
    };
    let mut figures = vec![
        ("steps", report.step_count().expect("steps")),
        ("bars", trace.bars()),
        ("end", trace.range().end.0),
        ("cycles of steps", busy),
        ("bytes in use", summary.memory.as_ref().map_or(0, |memory| memory.total_excluding_gaps.0)),
        ("programs", report.programs().expect("programs").len() as u64),
        ("variables", variables.len() as u64),
        ("bytes of variables", variables.iter().map(|(_, v)| bytes_of(v)).sum()),
        ("cycles of compute sets", compute_sets.iter().map(|(_, set)| on_tiles(set)).sum()),
        ("bytes received", exchanged.iter().map(|(_, t)| t.bytes_in.0).sum()),
        ("liveness steps", report.liveness().expect("liveness").len() as u64),
        ("marks", report.marks(&marks).expect("marks").len() as u64),
    ];
    if report.has_tile_samples() {
        let (mut samples, mut cycles) = (0, 0);
        let add = |_, sample: TileSample| {
            samples += 1;
            cycles += sample.cycles.length().0;
        };
        report.visit_tile_samples(StepId(0)..StepId(u64::MAX), add).expect("samples");
        figures.extend([("samples of tiles", samples), ("cycles of samples", cycles)]);
    }
    figures
}

#[test]
fn a_report_of_every_version_stays_readable_with_its_figures() {
    for name in kept() {
        let path = directory().join(&name);
        let report = Report::open(&path).expect(&name);
        assert_eq!(report.origin(), ReportOrigin::Tilescope, "{name}");
        let said: Vec<String> =
            figures(&report).iter().map(|(what, figure)| format!("{what}: {figure}")).collect();
        let file = path.join("figures.txt");
        if std::env::var_os("UPDATE_DOCS").is_some() && !file.exists() {
            fs::write(&file, said.join("\n") + "\n").expect("figures");
        }
        let kept = fs::read_to_string(&file).expect(&name);
        assert_eq!(kept.lines().collect::<Vec<_>>(), said, "{name}");
        assert_eq!(report.verify().expect(&name), [], "{name}");
        assert_eq!(report.warnings(), Vec::<String>::new(), "{name}");
        assert!(name.starts_with(&report.meta()["format"]), "{name}");
    }
}

#[test]
fn the_current_version_is_kept_in_both_layouts() {
    for (layout, ending) in [(StepLayout::Rows, ""), (StepLayout::Columns, "-columns")] {
        let (report, written) = small(layout, "");
        let name = format!("{}{ending}", report.unwrap().meta()["format"]);
        let place = directory().join(&name);
        if std::env::var_os("UPDATE_DOCS").is_some() && !place.exists() {
            fs::create_dir(&place).expect("a directory");
            let file = lawful_report(layout).write(written.path()).expect("a report");
            fs::copy(file, place.join(REPORT_FILE)).expect("a report");
        }
        assert!(kept().contains(&name), "tests/data/versions has no {name}");
    }
}

#[test]
fn a_report_of_measured_tiles_is_kept() {
    // Their contents have not changed since.
    let place = directory().join("2.7-samples");
    if std::env::var_os("UPDATE_DOCS").is_some() && !place.exists() {
        let source = tempdir().unwrap();
        let profile = source.path().join("profile.capnp");
        fs::write(&profile, IpuStackProfile::layers(12, 4).bytes()).unwrap();
        convert_profile(&profile, &place).unwrap();
    }
    assert!(kept().contains(&"2.7-samples".to_owned()));
}

/// A small report, changed by some SQL.
fn small(layout: StepLayout, sql: &str) -> (Result<Report, ReportError>, TempDir) {
    let directory = tempdir().unwrap();
    let mut report = ReportBuilder::new(2, 4);
    report.layout = layout;
    let work = report.compute("work", 10);
    report.run(work, 0..10).run(work, 10..20).mark(MarkKind::Run, "run", 0..2);
    report.variable("weights", MemoryCategory::Variable, 0..8, 100, None);
    let path = report.write(directory.path()).unwrap();
    Connection::open(&path).unwrap().execute_batch(sql).unwrap();
    (Report::open_with_cache(&path, None), directory)
}

#[test]
fn another_major_version_is_refused_with_both_versions() {
    for (version, name) in [(3000, "3.0"), (999_007, "999.7"), (0, "0.0")] {
        let sql = format!("PRAGMA user_version = {version}");
        let error = small(StepLayout::Rows, &sql).0.err().expect(name).to_string();
        assert!(error.contains(&format!("written in format {name}")), "{error}");
        assert!(error.contains("it reads 1.0 to 2."), "{error}");
    }
}

#[test]
fn known_parts_of_files_of_a_newer_tilescope_are_shown() {
    let cases = [
        ("PRAGMA user_version = 2012", "written in format 2.12 by a newer tilescope"),
        ("UPDATE meta SET value = 'quantum' WHERE key = 'layout'", "have the layout quantum"),
        ("PRAGMA application_id = 0", "without its application_id"),
    ];
    for (sql, words) in cases {
        let (report, _directory) = small(StepLayout::Rows, sql);
        let report = report.expect(sql);
        let warnings = report.warnings();
        assert!(warnings.iter().any(|warning| warning.contains(words)), "{sql}: {warnings:?}");
        let memory = summary(&report).expect(sql).memory.expect(sql);
        assert_eq!(memory.total_excluding_gaps, Bytes(800), "{sql}");
        assert_eq!(report.step_count().expect(sql), 2, "{sql}");
    }
}
