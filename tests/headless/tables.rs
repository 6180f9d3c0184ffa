//! The tables of all views, on many kinds of reports, and their consistency.

use crate::common;
use crate::common::{stderr, stdout, tilescope};
use crate::report_support;
use tilescope_analysis::data_table::TableCell;
use tilescope_analysis::tables::{all, named};
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
