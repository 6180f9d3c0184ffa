//! Compares the tables in `docs/format.md` with the schema; every version and every blob must be
//! described.

use crate::common::{stdout, tilescope};
use std::collections::BTreeSet;
use std::fmt::Write;
use std::path::Path;
use std::process::{Command, Stdio};
use tilescope_fixtures::ReportBuilder;
use tilescope_report::StepLayout;

const FUNCTIONS: [&str; 2] = ["<!-- functions -->\n", "<!-- end of functions -->\n"];

fn document() -> (std::path::PathBuf, String) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/format.md");
    let text = std::fs::read_to_string(&path).expect("docs/format.md");
    (path, text)
}

#[test]
fn format_document_lists_every_table_and_column() {
    let (path, text) = document();
    let (introduction, _) = text.split_once("## Tables\n\n").expect("the list of tables");
    let (before, rest) = introduction.split_once(FUNCTIONS[0]).expect("the list of functions");
    let (_, behind) = rest.split_once(FUNCTIONS[1]).expect("its end");
    let functions = tilescope_analysis::sql::function_document();
    let expected = format!(
        "{before}{}{functions}{}{behind}## Tables\n\n{}\n",
        FUNCTIONS[0],
        FUNCTIONS[1],
        tilescope_report::schema::document().trim_end()
    );
    if std::env::var_os("UPDATE_DOCS").is_some() {
        std::fs::write(&path, &expected).expect("writing docs/format.md");
        return;
    }
    assert!(text == expected, "docs/format.md differs: UPDATE_DOCS=1 cargo test format_document");
}

/// Names of tables with the lines about their columns, from the schema.
fn columns() -> Vec<(String, String)> {
    let schema = tilescope_report::schema::document();
    let mut found = Vec::new();
    for table in schema.split("### `").skip(1) {
        let name = table.split('`').next().expect("a name").to_owned();
        let lines = table.lines().filter(|line| line.starts_with("| `"));
        found.extend(lines.map(|line| (name.clone(), line.to_owned())));
    }
    found
}

#[test]
fn format_document_describes_every_blob() {
    let (_, text) = document();
    let (_, blobs) = text.split_once("\n## Blobs\n").expect("a section about blobs");
    let (blobs, _) = blobs.split_once("\n## Tables\n").expect("its end");
    let blob = |(table, line): &(String, String)| {
        let is_blob = line.split('|').nth(2).is_some_and(|kind| kind.trim() == "BLOB");
        is_blob.then(|| format!("`{table}.{}`", line.split('`').nth(1).expect("a name")))
    };
    let found: Vec<String> = columns().iter().filter_map(blob).collect();
    assert!(found.len() >= 10, "{found:?}");
    let missing: Vec<&String> = found.iter().filter(|name| !blobs.contains(*name)).collect();
    assert!(missing.is_empty(), "docs/format.md does not say what is in {missing:?}");
}

#[test]
fn format_document_has_a_row_for_every_version() {
    let (_, text) = document();
    let (_, versions) = text.split_once("\n## Versions\n").expect("a section about versions");
    let (versions, _) = versions.split_once("\n## ").expect("its end");
    let row =
        |version: &str| versions.lines().find(|line| line.starts_with(&format!("| {version} |")));
    let (major, minor) = tilescope_report::schema::FORMAT;
    let known = ["1.0".to_owned(), "1.1".to_owned()].into_iter();
    for version in known.chain((0..=minor).map(|minor| format!("{major}.{minor}"))) {
        assert!(row(&version).is_some(), "docs/format.md does not say what is new in {version}");
    }
    // Everything with a "since" version is named in the row of that version.
    let schema = tilescope_report::schema::document();
    for table in schema.split("### `").skip(1) {
        let name = table.split('`').next().expect("a name");
        let mut lines = table.lines();
        let about = lines.nth(2).unwrap_or_default();
        for (what, line) in
            std::iter::once((name.to_owned(), about)).chain(lines.filter_map(|line| {
                let column = line.strip_prefix("| `")?.split('`').next()?;
                Some((format!("{name}.{column}"), line))
            }))
        {
            let Some((_, version)) = line.rsplit_once("since version ") else { continue };
            let version: String =
                version.chars().take_while(|c| c.is_ascii_digit() || *c == '.').collect();
            let version = version.trim_end_matches('.');
            let row = row(version).unwrap_or_else(|| panic!("{what}: no row of {version}"));
            assert!(
                row.contains(what.split('.').next().unwrap_or(&what)),
                "{what} is not in the row of {version}"
            );
        }
    }
}

/// Runs the Python of the document on its own, and compares it with `tilescope query`.
#[test]
fn format_document_reads_blobs_in_python() {
    let (_, text) = document();
    let code: Vec<&str> =
        text.split("```python\n").skip(1).filter_map(|rest| rest.split("```").next()).collect();
    assert!(code.len() >= 2);
    let directory = tempfile::tempdir().expect("directory");
    let mut report = ReportBuilder::new(2, 4);
    let programs = [report.compute("a", 10), report.exchange("b", 8), report.compute("c", 5)];
    report.layout = StepLayout::Columns;
    let mut clock = 0;
    for number in 0..9000u64 {
        let program = programs[(number * number % 7 % 3) as usize];
        let end = clock + 5 + number % 11;
        report.run(program, clock..end);
        clock = end + number % 3;
    }
    report.mark(tilescope_report::MarkKind::Iteration, "all", 0..9000);
    report.write(directory.path()).expect("written");
    let sql = "SELECT s.id, s.program, b.cycles_base + b.active_cycles_from_max AS first,
        b.cycles_base + b.active_cycles_to_max AS end, b.bytes_in, b.bytes_out
        FROM steps_by_ipu b JOIN steps s ON s.id = b.step_id WHERE b.ipu = 1";
    let place = directory.path().to_string_lossy().into_owned();
    let asked = tilescope(&["query", &place, sql, "--format", "csv"]);
    assert!(asked.status.success(), "{}", crate::common::stderr(&asked));
    let expected: Vec<String> = stdout(&asked).lines().skip(1).map(str::to_owned).collect();
    assert_eq!(expected.len(), 9000);
    let mut script = String::from("import sqlite3, sys, zlib\n");
    code.iter().for_each(|part| script += part);
    // Writing to a string cannot fail.
    let _ = write!(
        script,
        "
db = sqlite3.connect(sys.argv[1])
lane = 1 * 8
[(known,)] = db.execute('SELECT expectations FROM trace_lanes WHERE lane = ?', [lane])
known = expectations(known)
chunks = db.execute('SELECT data FROM trace_chunks WHERE id >> 40 = ? ORDER BY id', [lane])
for (data,) in chunks:
    for step, program, _, first, end, bytes_in, bytes_out in steps(data, known):
        print(step, program, first, end, bytes_in, bytes_out, sep=',')
for rows, data in db.execute('SELECT rows, data FROM mark_chunks'):
    kinds = [True, False, False, True, False, True, True, True, True, True]
    print([column[0] for column in cells(data, kinds, rows)], file=sys.stderr)
"
    );
    let file = directory.path().join("read.py");
    std::fs::write(&file, script).expect("written");
    let python = Command::new("python3")
        .arg(&file)
        .arg(directory.path().join("profile.pop"))
        .stdin(Stdio::null())
        .output();
    let Ok(python) = python else {
        println!("skipped: there is no python3");
        return;
    };
    assert!(python.status.success(), "{}", String::from_utf8_lossy(&python.stderr));
    let found: Vec<String> = stdout(&python).lines().map(str::to_owned).collect();
    assert_eq!(found, expected);
    let marks = String::from_utf8_lossy(&python.stderr).into_owned();
    assert!(marks.contains("b'iteration', b'all'"), "{marks}");
    let unique: BTreeSet<&String> = expected.iter().collect();
    assert_eq!(unique.len(), expected.len());
}
