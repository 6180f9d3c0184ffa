//! `tilescope query`: its output, its files, its exit codes; and `docs/recipes.md`.

use crate::common::{self, stderr, stdout, tilescope};
use crate::report_support::foreign::Foreign;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;
use tilescope_analysis::sql::{READY_QUERIES, RowSink, SqlError, SqlQuestion, SqlValue, run};
use tilescope_fixtures::ReportBuilder;
use tilescope_report::{Report, StepLayout};

/// A small report of a run, in either layout.
fn report(layout: StepLayout) -> tempfile::TempDir {
    let directory = tempfile::tempdir().expect("directory");
    let mut report = ReportBuilder::new(2, 4);
    let (conv, exchange) = (report.compute("conv", 10), report.exchange("pre\x1b[31m", 8));
    report.layout = layout;
    for step in 0..100u64 {
        let program = if step % 3 == 0 { exchange } else { conv };
        report.run(program, step * 20..step * 20 + 7 + step % 9);
    }
    report.write(directory.path()).expect("written");
    directory
}

fn place(directory: &tempfile::TempDir) -> String {
    directory.path().to_string_lossy().into_owned()
}

#[test]
fn query_prints_tables_csv_and_json() {
    for layout in [StepLayout::Rows, StepLayout::Columns] {
        let directory = report(layout);
        let place = place(&directory);
        let sql =
            "SELECT ipu, count(*) AS steps, sum(cycles) AS cycles FROM steps_by_ipu GROUP BY ipu";
        let ask = |format: &str| {
            let output = tilescope(&["query", &place, sql, "--format", format]);
            assert!(output.status.success(), "{}", stderr(&output));
            stdout(&output)
        };
        assert_eq!(ask("csv"), "ipu,steps,cycles\n0,100,1096\n1,100,1096\n");
        assert_eq!(ask("table"), "ipu  steps  cycles\n  0    100    1096\n  1    100    1096\n");
        let json: serde_json::Value = serde_json::from_str(&ask("json")).expect("JSON");
        assert_eq!(json[1], serde_json::json!({"ipu": 1, "steps": 100, "cycles": 1096}));
        let total = tilescope(&[
            "query",
            &place,
            "SELECT total FROM execution_cycle_totals",
            "--format",
            "csv",
        ]);
        let summary = tilescope(&["summary", &place, "--json"]);
        let summary: serde_json::Value = serde_json::from_str(&stdout(&summary)).expect("JSON");
        let cycles = summary["execution"]["total_cycles"].as_u64().expect("cycles");
        assert_eq!(stdout(&total), format!("total\n{cycles}\n"));
        // No name controls the terminal.
        let names = tilescope(&["query", &place, "SELECT DISTINCT name FROM program_cycles"]);
        assert!(!stdout(&names).contains('\x1b'));
    }
}

#[test]
fn query_writes_a_whole_file_or_none() {
    let directory = report(StepLayout::Columns);
    let place = place(&directory);
    let file = directory.path().join("steps.csv");
    let name = file.to_string_lossy().into_owned();
    let good =
        tilescope(&["query", &place, "SELECT id FROM steps", "--format", "csv", "-o", &name]);
    assert_eq!(stdout(&good), format!("{name}\n"));
    let written = std::fs::read_to_string(&file).expect("a file");
    assert_eq!(written.lines().count(), 101);
    // A failure half way leaves the existing file unchanged.
    let sql = "SELECT CASE WHEN id < 50 THEN id ELSE zeroblob(1000000000) END FROM steps";
    let bad = tilescope(&["query", &place, sql, "--format", "csv", "-o", &name]);
    assert_eq!(bad.status.code(), Some(1), "{}", stderr(&bad));
    assert_eq!(std::fs::read_to_string(&file).expect("a file"), written);
    let left = std::fs::read_dir(directory.path()).expect("a directory").count();
    assert_eq!(left, 2, "nothing lies beside the report and the table");
    for report in ["other.pop".to_owned(), format!("{place}/profile.pop")] {
        let refused = tilescope(&["query", &place, "SELECT id FROM steps", "-o", &report]);
        assert_eq!(refused.status.code(), Some(2), "{}", stderr(&refused));
    }
    assert!(Report::open(directory.path()).is_ok());
}

/// Columns of a Parquet file with their types, and its rows in the form of `--format json`, with
/// blobs as hexadecimal digits.
#[cfg(feature = "parquet")]
fn parquet_rows(file: &Path) -> (Vec<(String, String)>, Vec<serde_json::Value>) {
    use parquet::file::reader::{FileReader, SerializedFileReader};
    use parquet::record::Field;
    let reader = std::fs::File::open(file).expect("a file");
    let reader = SerializedFileReader::new(reader).expect("a Parquet file");
    let columns = reader.metadata().file_metadata().schema_descr_ptr();
    let columns = columns.columns().iter();
    let columns = columns.map(|of| (of.name().to_owned(), of.physical_type().to_string()));
    let value = |field: &Field| match field {
        Field::Null => serde_json::Value::Null,
        Field::Long(value) => (*value).into(),
        Field::Double(value) => (*value).into(),
        Field::Str(text) => text.as_str().into(),
        Field::Bytes(bytes) => {
            let digits = bytes.data().iter().map(|byte| format!("{byte:02x}"));
            digits.collect::<String>().into()
        }
        other => panic!("{other:?}"),
    };
    let rows = reader.get_row_iter(None).expect("rows").map(|row| {
        let row = row.expect("a row");
        let cells = row.get_column_iter().map(|(name, field)| (name.clone(), value(field)));
        serde_json::Value::Object(cells.collect())
    });
    let rows = rows.collect();
    (columns.collect(), rows)
}

/// More rows than a batch.
const MANY: &str = "FROM steps_between a, steps_between b";

#[cfg(feature = "parquet")]
#[test]
fn parquet_has_what_json_has() {
    let directory = report(StepLayout::Columns);
    let place = place(&directory);
    let name = directory.path().join("answer.parquet").to_string_lossy().into_owned();
    let late = "CASE WHEN row_number() OVER () < 30000 THEN NULL";
    let cases = [
        ("SELECT * FROM steps_by_ipu".to_owned(), ""),
        ("SELECT * FROM marks".to_owned(), ""),
        (
            "SELECT 1 AS i, 0.5 AS r, 'x' AS t, x'00ff' AS b, NULL AS n".to_owned(),
            "i:INT64 r:DOUBLE t:BYTE_ARRAY b:BYTE_ARRAY n:BYTE_ARRAY",
        ),
        ("SELECT 1 AS a, 'y' AS a".to_owned(), "a:INT64 a_2:BYTE_ARRAY"),
        // Without rows, the declarations of the report determine the types.
        (
            "SELECT id, cycles, cycles + 1 AS more FROM steps_by_ipu JOIN steps ON id = step_id \
             WHERE id < 0"
                .to_owned(),
            "id:INT64 cycles:INT64 more:BYTE_ARRAY",
        ),
        (format!("SELECT a.cycles, b.name {MANY}"), "cycles:INT64 name:BYTE_ARRAY"),
        // A later batch determines the type of a column.
        (format!("SELECT {late} ELSE a.cycles END AS late {MANY}"), "late:INT64"),
        (format!("SELECT {late} WHEN a.ipu = 0 THEN 1 ELSE 0.5 END AS late {MANY}"), "late:DOUBLE"),
    ];
    for (sql, types) in &cases {
        let ask = |more: &[&str]| {
            let output = tilescope(&[&["query", &place, sql, "--format"], more].concat());
            assert!(output.status.success(), "{sql}: {}", stderr(&output));
            stdout(&output)
        };
        assert_eq!(ask(&["parquet", "-o", &name]), format!("{name}\n"));
        let json: Vec<serde_json::Value> = serde_json::from_str(&ask(&["json"])).expect("JSON");
        let (columns, rows) = parquet_rows(Path::new(&name));
        let said: Vec<String> = columns.iter().map(|(name, of)| format!("{name}:{of}")).collect();
        assert!(types.is_empty() || said.join(" ") == *types, "{sql}: {said:?}");
        assert_eq!(rows.len(), json.len(), "{sql}");
        for (row, mut expected) in rows.iter().zip(json) {
            // Integers among real numbers become real; nothing else changes.
            for (name, _) in columns.iter().filter(|(_, of)| of == "DOUBLE") {
                let value = expected[name].as_f64();
                expected[name] = value.map_or(serde_json::Value::Null, Into::into);
            }
            assert_eq!(*row, expected, "{sql}");
        }
    }
    let left = std::fs::read_dir(directory.path()).expect("a directory").count();
    assert_eq!(left, 2, "nothing lies beside the report and the file");
}

#[cfg(feature = "parquet")]
#[test]
fn parquet_is_a_whole_file_or_none() {
    let directory = report(StepLayout::Columns);
    let place = place(&directory);
    let file = directory.path().join("answer.parquet");
    let name = file.to_string_lossy().into_owned();
    let late = "CASE WHEN row_number() OVER () < 30000 THEN 1 ELSE 'x' END AS \"a b\"";
    let late = format!("SELECT {late} {MANY}");
    let cases: [(&[&str], i32, &str); 8] = [
        (&["SELECT 1 AS a"], 2, "name it with -o FILE.parquet"),
        (&["SELECT 1 AS a", "-o", "/dev/null"], 2, "to a device or a pipe"),
        (&["SELECT 1 AS a", "-o", "x.parquet.gz"], 2, "is already compressed"),
        (&["SELECT 1 AS a", "-o", "other.pop"], 2, "under the name of a report"),
        (&["SELECT nothing FROM steps", "-o", &name], 2, "nothing"),
        (&["VALUES (1), ('x')", "-o", &name], 1, "whole numbers, but row 2 of the answer has text"),
        (
            &[&late, "-o", &name],
            1,
            "row 30,000 of the answer has text: a column of a Parquet file has one type; CAST(\"a b\" AS TEXT)",
        ),
        (
            &["VALUES (0.5), (9007199254740993)", "-o", &name],
            1,
            "row 2 of the answer has 9007199254740993",
        ),
    ];
    for (arguments, code, problem) in cases {
        let output = tilescope(&[&["query", &place, "--format", "parquet"], arguments].concat());
        assert_eq!(output.status.code(), Some(code), "{arguments:?}: {}", stderr(&output));
        assert!(stderr(&output).contains(problem), "{arguments:?}: {}", stderr(&output));
        assert!(stdout(&output).is_empty(), "{arguments:?}");
        assert!(!file.exists(), "{arguments:?}");
    }
    let left = std::fs::read_dir(directory.path()).expect("a directory").count();
    assert_eq!(left, 1, "nothing lies beside the report");
}

#[cfg(not(feature = "parquet"))]
#[test]
fn a_build_without_parquet_says_so() {
    let directory = report(StepLayout::Columns);
    let asked = ["query", &place(&directory), "SELECT 1 AS a", "--format", "parquet"];
    let output = tilescope(&asked);
    assert_eq!(output.status.code(), Some(2));
    assert!(stderr(&output).contains("lacks the cargo feature \"parquet\""), "{}", stderr(&output));
}

/// Ctrl-C while an answer is written to a file, in each format.
#[cfg(unix)]
#[test]
fn an_answer_that_is_cancelled_leaves_nothing() {
    let directory = report(StepLayout::Columns);
    let sql = format!("SELECT a.step_id, b.name {MANY}, steps_by_ipu c, steps_by_ipu d");
    let formats: &[&str] =
        if cfg!(feature = "parquet") { &["table", "csv", "json", "parquet"] } else { &["csv"] };
    for format in formats {
        let file = directory.path().join(format!("answer.{format}"));
        let name = file.to_string_lossy().into_owned();
        let mut program = Command::new(env!("CARGO_BIN_EXE_tilescope"))
            .args(["query", &place(&directory), &sql, "--format", format, "-o", &name])
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("the program starts");
        let part = format!("{name}.part");
        while !Path::new(&part).exists() {
            assert!(program.try_wait().expect("a state").is_none(), "{format}: it is at work");
            std::thread::sleep(std::time::Duration::from_millis(5));
        }
        assert!(common::signal("INT", &program.id().to_string()));
        let output = program.wait_with_output().expect("it ends");
        assert_eq!(output.status.code(), Some(1), "{format}: {}", stderr(&output));
        assert_eq!(stderr(&output), "error: cancelled\n", "{format}");
        assert!(!Path::new(&part).exists() && !file.exists(), "{format}");
    }
}

#[test]
fn query_ends_with_the_right_code() {
    let directory = report(StepLayout::Columns);
    let place = place(&directory);
    let cases: [(&[&str], i32, &str); 10] = [
        (&["SELECT cyclez FROM steps_by_ipu"], 2, "did you mean cycles?\n  SELECT cyclez"),
        (&["slowest-program"], 2, "did you mean slowest-programs?"),
        (&["DROP TABLE meta"], 2, "read-only"),
        (&[""], 2, "empty"),
        (&[], 2, "required"),
        (&["SELECT 1", "--format", "xml"], 2, "invalid value"),
        (&["SELECT 1", "--timeout", "0"], 2, "between 0 and 86400"),
        (&["--file", "no-such-file.sql"], 1, "no-such-file.sql"),
        (
            &[
                "WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c) SELECT max(x) FROM c",
                "--timeout",
                "0.2",
            ],
            1,
            "no result within 0.2 s",
        ),
        (&["SELECT * FROM main.steps"], 2, "tilescope query REPORT"),
    ];
    for (arguments, code, problem) in cases {
        let output = tilescope(&[&["query", &place], arguments].concat());
        assert_eq!(output.status.code(), Some(code), "{arguments:?}: {}", stderr(&output));
        assert!(stderr(&output).contains(problem), "{arguments:?}: {}", stderr(&output));
        assert!(stdout(&output).is_empty(), "{arguments:?}");
    }
    let missing = tilescope(&["query", "no-such-report", "SELECT 1 AS one"]);
    assert_eq!(missing.status.code(), Some(1), "{}", stderr(&missing));
}

/// In separate processes: the limit on memory applies to a process.
#[test]
fn expensive_queries_are_interrupted() {
    let directory = report(StepLayout::Columns);
    let place = place(&directory);
    let deep = format!("SELECT {}1{}", "(".repeat(5000), ")".repeat(5000));
    let long = format!("SELECT 1{}", " + 1".repeat(5000));
    let union = ["SELECT 1"; 2000].join(" UNION ");
    let json = format!("SELECT json_extract('{}', '$')", "[".repeat(100_000));
    let expanding =
        (1..40).map(|n| format!("c{n} AS (SELECT a.x FROM c{} a, c{} b)", n - 1, n - 1));
    let expanding = expanding.collect::<Vec<_>>().join(", ");
    let expanding = format!("WITH c0 AS (SELECT 1 AS x), {expanding} SELECT count(*) FROM c39");
    let bombs = [
        "WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c) SELECT count(*) FROM c",
        "WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c) SELECT group_concat(x) FROM c",
        "WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c) SELECT x FROM c ORDER BY -x",
        "WITH RECURSIVE c(x) AS (SELECT 'aa' UNION ALL SELECT x || x FROM c) SELECT max(length(x)) FROM c",
        "SELECT zeroblob(1000000000)",
        "SELECT hex(zeroblob(30000000))",
        "SELECT printf('%1000000000d', 1)",
        "SELECT replace(hex(zeroblob(10000)), '0', hex(zeroblob(10000)))",
        "SELECT instr(zeroblob(32000000), zeroblob(16000000) || x'01')",
        "SELECT count(*) FROM steps_by_ipu a, steps_by_ipu b, steps_by_ipu c, steps_by_ipu d",
        "SELECT group_concat(a.cycles) FROM steps_by_ipu a, steps_by_ipu b, steps_by_ipu c, steps_by_ipu d",
        "SELECT * FROM steps_by_ipu a, steps_by_ipu b, steps_by_ipu c, steps d ORDER BY a.cycles + b.cycles",
        "SELECT json_group_array(hex(zeroblob(1000000))) FROM steps_by_ipu",
        &deep,
        &long,
        &union,
        &json,
        &expanding,
    ];
    for sql in bombs {
        let began = std::time::Instant::now();
        let output = tilescope(&[
            "query",
            &place,
            sql,
            "--timeout",
            "0.3",
            "--format",
            "csv",
            "-o",
            "/dev/null",
        ]);
        let code = output.status.code();
        assert!(matches!(code, Some(1 | 2)), "{sql}: {code:?} {}", stderr(&output));
        assert!(stderr(&output).starts_with("error: "), "{sql}: {}", stderr(&output));
        // Even if a single function of SQLite runs for long.
        assert!(began.elapsed().as_secs() < 60, "{sql}: {:?}", began.elapsed());
    }
}

#[test]
fn a_query_comes_from_a_file_or_standard_input() {
    let directory = report(StepLayout::Rows);
    let file = directory.path().join("question.sql");
    std::fs::write(&file, "-- how many\nSELECT count(*) AS steps FROM steps;\n").expect("written");
    let name = file.to_string_lossy().into_owned();
    let asked = tilescope(&["query", &place(&directory), "--file", &name, "--format", "csv"]);
    assert_eq!(stdout(&asked), "steps\n100\n", "{}", stderr(&asked));
    let piped = Command::new(env!("CARGO_BIN_EXE_tilescope"))
        .args(["query", &place(&directory), "-", "--format", "csv"])
        .stdin(std::fs::File::open(&file).expect("a file"))
        .output()
        .expect("the program starts");
    assert_eq!(stdout(&piped), "steps\n100\n", "{}", stderr(&piped));
}

#[test]
fn a_closed_pipe_is_no_failure() {
    let directory = report(StepLayout::Columns);
    let mut program = Command::new(env!("CARGO_BIN_EXE_tilescope"))
        .args([
            "query",
            &place(&directory),
            "SELECT a.step_id FROM steps_by_ipu a, steps_by_ipu b, steps c",
            "--format",
            "csv",
        ])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the program starts");
    drop(program.stdout.take());
    let output = program.wait_with_output().expect("it ends");
    assert!(output.status.success(), "{}", stderr(&output));
    assert_eq!(stderr(&output), "");
}

#[test]
fn other_sqlite_programs_get_a_hint() {
    let directory = report(StepLayout::Columns);
    let file = directory.path().join("profile.pop");
    let db = rusqlite::Connection::open(&file).expect("opens");
    let mut views =
        db.prepare("SELECT name FROM sqlite_schema WHERE type = 'view'").expect("a list");
    let views: Vec<String> = views
        .query_map([], |row| row.get(0))
        .expect("names")
        .map(|name| name.expect("a name"))
        .collect();
    for table in ["steps", "steps_by_ipu", "marks"] {
        assert!(views.iter().any(|view| view == table), "{table}");
        for sql in ["SELECT * FROM", "SELECT count(*) FROM", "SELECT 1 FROM"] {
            let error = db.prepare(&format!("{sql} {table}")).expect_err(table).to_string();
            let message = format!(
                "{table}: a run of this length has no rows of them; ask with: tilescope query REPORT 'SELECT ...'"
            );
            assert!(error.contains(&message), "{error}");
        }
    }
    for (program, arguments) in [
        ("sqlite3", vec![file.to_string_lossy().into_owned(), "SELECT * FROM steps".to_owned()]),
        (
            "python3",
            vec![
                "-c".to_owned(),
                "import sqlite3, sys\nsqlite3.connect(sys.argv[1]).execute('SELECT * FROM steps')"
                    .to_owned(),
                file.to_string_lossy().into_owned(),
            ],
        ),
    ] {
        let Ok(output) = Command::new(program).args(&arguments).stdin(Stdio::null()).output()
        else {
            println!("skipped: there is no {program}");
            continue;
        };
        assert!(!output.status.success());
        assert!(
            stderr(&output).contains("tilescope query REPORT"),
            "{program}: {}",
            stderr(&output)
        );
    }
}

/// Accepts rows and drops them.
struct Forgotten;

impl RowSink for Forgotten {
    fn columns(&mut self, _: &[String]) -> std::io::Result<()> {
        Ok(())
    }

    fn row(&mut self, _: &[SqlValue]) -> std::io::Result<()> {
        Ok(())
    }
}

/// Reports of all kinds: simulated ones, those of every version, of other tools.
fn all_kinds(scratch: &Path) -> Vec<PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut found: Vec<PathBuf> = ["matmul_chain", "mnist_pipeline", "too_large"]
        .map(|name| root.join("sample_reports").join(name))
        .into();
    let versions = std::fs::read_dir(root.join("tests/data/versions")).expect("versions");
    found.extend(versions.map(|entry| entry.expect("an entry").path()));
    let files = [
        Foreign::default(),
        Foreign { wal: true, ..Foreign::default() },
        Foreign { nulls: true, unknown_types: true, extra: true, ..Foreign::default() },
    ];
    for (number, foreign) in files.iter().enumerate() {
        found.push(scratch.join(format!("foreign{number}.pop")));
        foreign.write(&found[found.len() - 1]);
    }
    found
}

#[test]
fn every_prepared_query_is_answered_or_not_recorded() {
    let scratch = tempfile::tempdir().expect("directory");
    let kinds = all_kinds(scratch.path());
    assert!(kinds.len() > 8, "{kinds:?}");
    for path in kinds {
        let report = Arc::new(Report::open_with_cache(&path, None).expect("opens"));
        for ready in READY_QUERIES {
            if !ready.missing_tables(&report).expect("tables").is_empty() {
                let is_ours = report.origin() == tilescope_report::ReportOrigin::Tilescope;
                assert!(
                    !is_ours || path.to_string_lossy().contains("versions"),
                    "{}: {}",
                    path.display(),
                    ready.name
                );
                continue;
            }
            let done = run(&report, &SqlQuestion::new(ready.sql), &mut Forgotten);
            if let Err(error) = done {
                panic!("{}: {}: {error}", path.display(), ready.name);
            }
        }
    }
}

#[test]
fn prepared_queries_have_unique_names() {
    for (at, ready) in READY_QUERIES.iter().enumerate() {
        assert!(READY_QUERIES[..at].iter().all(|other| other.name != ready.name), "{}", ready.name);
        assert!(!ready.name.contains(' ') && !ready.about.is_empty());
        let listed = stdout(&tilescope(&["query", "--list"]));
        assert!(listed.contains(&format!("{}: {}", ready.name, ready.about)));
    }
}

#[test]
fn totals_are_those_of_the_summary() {
    let (report, _directory) = common::report("mnist_pipeline", &[]);
    let report = Arc::new(report);
    let mut found = One::default();
    let sql = "SELECT sum(cycles) FROM activity_cycles WHERE activity = 'compute'";
    let done: Result<_, SqlError> = run(&report, &SqlQuestion::new(sql), &mut found);
    done.expect("an answer");
    let trace = report.trace().expect("a trace").expect("an execution");
    let lanes = (0..trace.lanes().len()).filter_map(|lane| trace.lane(lane));
    let compute: u64 = lanes
        .map(|lane| {
            lane.all_totals().expect("totals").cycles[tilescope_report::StepActivity::Compute].0
        })
        .sum();
    assert_eq!(found.0, Some(SqlValue::Integer(compute as i64)));
}

/// Stores one value.
#[derive(Default)]
struct One(Option<SqlValue>);

impl RowSink for One {
    fn columns(&mut self, _: &[String]) -> std::io::Result<()> {
        Ok(())
    }

    fn row(&mut self, values: &[SqlValue]) -> std::io::Result<()> {
        self.0 = values.first().cloned();
        Ok(())
    }
}

/// Code blocks of a language in a document.
fn blocks(document: &str, language: &str) -> Vec<String> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(document);
    let text = std::fs::read_to_string(path).expect(document);
    let fence = format!("```{language}\n");
    let starts = text.split(fence.as_str()).skip(1);
    starts.filter_map(|rest| rest.split("```").next()).map(str::to_owned).collect()
}

/// Python with the libraries of the recipes: `TILESCOPE_PYTHON`, or else the one on the search
/// path.
fn python() -> String {
    std::env::var("TILESCOPE_PYTHON").unwrap_or_else(|_| "python3".to_owned())
}

/// A tool that a block needs and that is not installed.
fn missing_tool(code: &str, language: &str) -> Option<String> {
    if cfg!(not(feature = "parquet")) && code.contains("parquet") {
        return Some("a build with Parquet".to_owned());
    }
    let (_, rest) = code.split_once("# needs ")?;
    let name: String = rest.chars().take_while(|c| c.is_alphanumeric()).collect();
    let found = match language {
        "python" => Command::new(python()).args(["-c", &format!("import {name}")]).output(),
        _ => Command::new(&name).arg("--version").output(),
    };
    let is_there = found.is_ok_and(|output| output.status.success());
    (!is_there).then_some(name)
}

#[test]
fn recipes_work_where_their_tools_are() {
    let directory = tempfile::tempdir().expect("directory");
    let sample = Path::new(env!("CARGO_MANIFEST_DIR")).join("sample_reports/mnist_pipeline");
    std::fs::create_dir(directory.path().join("out")).expect("a directory");
    std::fs::copy(sample.join("profile.pop"), directory.path().join("out/profile.pop"))
        .expect("a copy");
    let own = Path::new(env!("CARGO_BIN_EXE_tilescope")).parent().expect("a directory");
    let paths = std::env::var_os("PATH").unwrap_or_default();
    let paths = std::iter::once(own.to_owned()).chain(std::env::split_paths(&paths));
    let paths = std::env::join_paths(paths).expect("a search path");
    let mut ran = 0;
    for (language, program, flag) in [("sh", "sh".to_owned(), "-ec"), ("python", python(), "-c")] {
        let recipes = blocks("docs/recipes.md", language);
        assert!(!recipes.is_empty());
        for code in recipes {
            if let Some(tool) = missing_tool(&code, language) {
                println!("skipped: {tool} is not installed");
                continue;
            }
            let output = Command::new(&program)
                .args([flag, &code])
                .current_dir(directory.path())
                .env("PATH", &paths)
                .output()
                .expect("a shell");
            assert!(output.status.success(), "{code}\n{}", stderr(&output));
            assert!(!stdout(&output).trim().is_empty(), "{code}");
            ran += 1;
        }
    }
    assert!(ran >= 6);
}
