//! The tables of all views, on many kinds of reports, and their consistency.

use crate::common;
use crate::common::{stderr, stdout, tilescope};
use crate::report_support;
use tilescope_analysis::data_table::TableCell;
use tilescope_analysis::grouping::{GroupKey, laws};
use tilescope_analysis::tables::tile_mapping as columns;
use tilescope_analysis::tables::{all, named};
use tilescope_analysis::tile_mapping::{MappingSubjectKind, mapping, subjects};
use tilescope_report::Report;
use tilescope_report::units::Bytes;

fn pipeline() -> (tempfile::TempDir, Report) {
    let directory = tempfile::tempdir().unwrap();
    let spec = common::spec("mnist_pipeline", &["options.device_iterations=1"]);
    common::report_file(&spec, directory.path());
    let report = Report::open(directory.path()).unwrap();
    (directory, report)
}

/// The sum of a column of numbers.
fn sum(report: &Report, view: &str, table: &str, column: &str) -> u64 {
    let rows = (named(view, Some(table)).unwrap().read)(report).unwrap();
    let at = rows.columns.iter().position(|known| known.title == column).unwrap();
    let number = |cell: &TableCell| match cell {
        TableCell::Bytes(Bytes(value)) | TableCell::Count(value) => *value,
        _ => 0,
    };
    rows.rows.iter().map(|row| number(&row[at])).sum()
}

#[test]
fn every_table_has_its_columns_on_every_report() {
    let (directory, simulated) = pipeline();
    let foreign = directory.path().join("foreign.pop");
    report_support::foreign::Foreign::default().write(&foreign);
    let random = directory.path().join("random");
    report_support::random_report(11, 200).write(&random).unwrap();
    let reports = [simulated, Report::open(&foreign).unwrap(), Report::open(&random).unwrap()];
    for report in &reports {
        for table in all() {
            let rows = (table.read)(report).unwrap();
            assert!(rows.rows.iter().all(|row| row.len() == rows.columns.len()), "{}", table.name);
            let lines = rows.csv().lines().count();
            assert!(lines > rows.rows.len(), "{} {}", table.view, table.name);
        }
    }
}

#[test]
fn tables_about_the_same_subject_agree() {
    let (_directory, report) = pipeline();
    let variables = sum(&report, "memory", "variables", "Size");
    let always = sum(&report, "liveness", "always-live", "All tiles");
    assert!(variables > 0 && always > 0 && always <= variables);
    let steps: u64 = sum(&report, "execution-trace", "ipus", "Steps");
    let executions = sum(&report, "execution-trace", "programs", "Executions");
    assert!(steps > 0 && executions >= steps);
}

#[test]
fn the_command_line_lists_and_writes_tables() {
    let (directory, report) = pipeline();
    let listed = stdout(&tilescope(&["export", "--list-tables"]));
    for table in all() {
        assert!(listed.contains(table.name) && listed.contains(table.view));
    }
    let out = directory.path().join("costs.csv");
    let (path, out_text) = (directory.path().to_string_lossy(), out.to_string_lossy());
    let run = |rest: &[&str]| {
        let all = [&["export", &path, "--view", "operations", "--format", "csv"], rest].concat();
        tilescope(&all)
    };
    let output = run(&["-o", &out_text]);
    assert!(output.status.success(), "{}", stderr(&output));
    let rows = (named("operations", None).unwrap().read)(&report).unwrap();
    assert_eq!(std::fs::read_to_string(&out).unwrap(), rows.csv());
    let wrong = run(&["--table", "nonsense"]);
    assert_eq!(wrong.status.code(), Some(2));
    assert!(stderr(&wrong).contains("library-calls"));
    let nowhere = run(&["-o", "/nowhere/at/all.csv"]);
    assert_eq!(nowhere.status.code(), Some(1));
    assert!(stderr(&nowhere).contains("no such directory"), "{}", stderr(&nowhere));
}

/// Every table of every kind of report, by every key: no row is lost, and sums of groups are those of
/// rows.
#[test]
fn groups_of_every_table_add_up_to_its_rows() {
    let (directory, simulated) = pipeline();
    let foreign = directory.path().join("foreign.pop");
    report_support::foreign::Foreign::default().write(&foreign);
    let random = directory.path().join("random");
    report_support::random_report(11, 200).write(&random).unwrap();
    for report in [simulated, Report::open(&foreign).unwrap(), Report::open(&random).unwrap()] {
        for known in all() {
            let table = known.keyed(&report).unwrap();
            for key in GroupKey::ALL.into_iter().filter(|_| table.keys.is_some()) {
                laws::check(&table, key);
                let grouped = known.grouped(&report, key).unwrap();
                let count = |row: &Vec<TableCell>| row[1].number().unwrap() as usize;
                let rows: usize = grouped.rows.iter().map(count).sum();
                assert_eq!(rows, table.rows.len(), "{} by {key:?}", known.path());
            }
        }
    }
}

#[test]
fn groups_are_written_and_asked_in_sql() {
    let (directory, report) = pipeline();
    let out = directory.path().join("groups.csv");
    let (path, out_text) = (directory.path().to_string_lossy(), out.to_string_lossy());
    let run = |view: &str, rest: &[&str]| {
        let all = ["export", &path, "--view", view, "--format", "csv", "-o", &out_text];
        tilescope(&[&all[..], rest].concat())
    };
    let output = run("operations", &["--group-by", "operator"]);
    assert!(output.status.success(), "{}", stderr(&output));
    let expected = named("operations", None).unwrap().grouped(&report, GroupKey::Operator).unwrap();
    assert_eq!(std::fs::read_to_string(&out).unwrap(), expected.csv());
    assert!(expected.csv().contains("matmul_grad_weight,"), "{}", expected.csv());
    for (view, rest) in [
        ("memory", ["--table", "tiles", "--group-by", "layer"]),
        ("operations", ["--table", "programs", "--group-by", "nonsense"]),
    ] {
        assert_eq!(run(view, &rest).status.code(), Some(2), "{view} {rest:?}");
    }
    let sql =
        "SELECT operator_of(name) AS operator, count(*) AS n FROM operations GROUP BY 1 ORDER BY 1";
    let answer = stdout(&tilescope(&["query", &path, sql, "--format", "csv"]));
    let same: String =
        "SELECT kind AS operator, count(*) AS n FROM operations GROUP BY 1 ORDER BY 1".into();
    assert_eq!(answer, stdout(&tilescope(&["query", &path, &same, "--format", "csv"])));
}

/// Regions and rearrangements of a subject of Tile mapping are grouped by the same laws.
#[test]
fn groups_of_regions_add_up_to_their_bytes() {
    let (_directory, report) = pipeline();
    let mut checked = 0;
    for kind in [MappingSubjectKind::Tensors, MappingSubjectKind::Operations] {
        let (entries, _) = subjects(&report, kind).unwrap();
        for entry in entries.iter().take(25) {
            let found = mapping(&report, entry.subject).unwrap().unwrap();
            let keyed = [columns::regions(&found, true), columns::rearrangements(&found)]
                .map(|table| table.with_keys(&report).unwrap());
            for table in keyed {
                for key in GroupKey::ALL.into_iter().filter(|_| table.keys.is_some()) {
                    laws::check(&table, key);
                    checked += table.rows.len();
                }
            }
        }
    }
    assert!(checked > 0, "no subject has rows with keys");
}
