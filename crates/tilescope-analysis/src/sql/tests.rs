//! Queries on the same run with rows and with columns give the same answers, and no query does
//! harm.

use super::*;
use proptest::prelude::*;
use std::path::Path;
use tilescope_fixtures::ReportBuilder;
use tilescope_fixtures::ipu_stack_profile::IpuStackProfile;
use tilescope_report::units::{Bytes, Cycles, IpuId, StepId};
use tilescope_report::{
    ExchangeActivity, MarkKind, ProgramKind, StepLayout, TraceMark, TrainingPass,
};
use tilescope_test_tiers::cases;

/// Number of steps of the run: more than a chunk.
const STEPS: u64 = 6000;

/// A run on two IPUs with tiles beside the compute tiles, gaps, syncs and marks.
fn run_of(layout: StepLayout) -> ReportBuilder {
    let mut report = ReportBuilder::new(2, 4);
    let conv = report.operation("layer/conv", "conv2d");
    let programs = [
        report.compute("layer/conv/Convolve", 40),
        report.exchange("layer/conv/ExchangePre", 64),
        report.program(ProgramKind::Sync, "External"),
        report.program(ProgramKind::StreamCopyMid, "copyFromHost"),
        report.compute("it's = \"odd\"", 7),
    ];
    report.parts.programs[programs[0].index()].operation = Some(conv);
    report.layout = layout;
    let (mut clocks, mut noise) = ([0u64; 3], 9u64);
    for _ in 0..STEPS {
        noise = noise.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        let program = programs[(noise >> 33) as usize % programs.len()];
        let mut ipus = Vec::new();
        for (lane, clock) in clocks.iter_mut().enumerate() {
            // Some steps are on one IPU only; tiles beside the others are mostly idle.
            let rest = noise >> (40 + lane);
            if (lane == 2 && !rest.is_multiple_of(7)) || (lane == 1 && rest.is_multiple_of(3)) {
                continue;
            }
            let start = *clock + rest % 5;
            let end = start + rest % 100;
            *clock = end;
            let mut bar = report.bar(IpuId((lane % 2) as u32), start..end);
            bar.sub_lane = (lane / 2) as u8;
            bar.from_min = Cycles(start.saturating_sub(rest % 3));
            bar.to_min = Cycles(end.saturating_sub(rest % 2).max(bar.from_min.0));
            bar.active_tiles = (rest % 5) as u32;
            bar.active_tile_balance = (rest % 11) as f32 / 11.0;
            (bar.bytes_in, bar.bytes_out) = (Bytes(rest % 1000), Bytes(rest % 77));
            ipus.push(bar);
        }
        ipus.sort_by_key(|bar| (bar.ipu, bar.sub_lane));
        if ipus.is_empty() {
            let start = clocks[0];
            clocks[0] += 3;
            ipus.push(report.bar(IpuId(0), start..start + 3));
        }
        report.steps.push(tilescope_report::ExecutionStep::new(program, ipus));
    }
    for first in (0..STEPS).step_by(500) {
        let number = first / 500;
        report.mark(MarkKind::Iteration, &format!("iteration {number}"), first..first + 500);
        let cycles = report.marks[report.marks.len() - 1].cycles;
        report.marks.push(TraceMark {
            kind: MarkKind::Stage,
            label: format!("stage {number}"),
            ipu: Some(IpuId((number % 2) as u32)),
            pass: Some(TrainingPass::Forward),
            index: number,
            steps: tilescope_report::units::StepId(first)
                ..tilescope_report::units::StepId(first + 10),
            cycles,
        });
    }
    report
}

/// Writes a report and opens it.
fn written(report: &ReportBuilder, directory: &Path) -> Arc<Report> {
    report.write(directory).expect("written");
    Arc::new(Report::open_with_cache(directory, None).expect("opens"))
}

/// A sink that keeps the whole answer.
#[derive(Default)]
struct Kept {
    names: Vec<String>,
    rows: Vec<Vec<SqlValue>>,
}

impl RowSink for Kept {
    fn columns(&mut self, names: &[String]) -> io::Result<()> {
        self.names = names.to_vec();
        Ok(())
    }

    fn row(&mut self, values: &[SqlValue]) -> io::Result<()> {
        self.rows.push(values.to_vec());
        Ok(())
    }
}

fn ask(report: &Arc<Report>, sql: &str) -> Result<Kept, SqlError> {
    let mut kept = Kept::default();
    let question = SqlQuestion { time_limit: Duration::from_secs(30), ..SqlQuestion::new(sql) };
    run(report, &question, &mut kept).map(|_| kept)
}

/// Two reports of one run, in both layouts.
fn both_layouts() -> ([Arc<Report>; 2], [tempfile::TempDir; 2]) {
    let directories = [StepLayout::Rows, StepLayout::Columns].map(|layout| {
        let directory = tempfile::tempdir().expect("directory");
        (written(&run_of(layout), directory.path()), directory)
    });
    let [(rows, one), (columns, other)] = directories;
    assert!(!rows.has_columns() && columns.has_columns());
    ([rows, columns], [one, other])
}

/// Queries whose answers do not depend on the layout, one per line.
const QUESTIONS: &str = include_str!("questions.sql");

#[test]
fn both_layouts_answer_alike() {
    let ([rows, columns], _directories) = both_layouts();
    for sql in QUESTIONS.lines() {
        let [one, other] = [&rows, &columns].map(|report| ask(report, sql).expect(sql));
        assert_eq!(one.names, other.names, "{sql}");
        assert_eq!(one.rows.len(), other.rows.len(), "{sql}");
        for (one, other) in one.rows.iter().zip(&other.rows) {
            assert_eq!(one, other, "{sql}");
        }
    }
}

#[test]
fn columns_are_those_of_files_with_rows() {
    let ([rows, columns], _directories) = both_layouts();
    for table in ["steps", "steps_by_ipu", "marks"] {
        let sql = format!("SELECT name, type FROM pragma_table_xinfo('{table}') WHERE hidden = 0");
        let [one, other] = [&rows, &columns].map(|report| ask(report, &sql).expect("columns").rows);
        assert_eq!(one, other, "{table}");
    }
}

/// The single number of an answer.
fn number(report: &Arc<Report>, sql: &str) -> i64 {
    match ask(report, sql).expect(sql).rows.as_slice() {
        [row] => match row.as_slice() {
            [SqlValue::Integer(number)] => *number,
            row => panic!("{sql}: {row:?}"),
        },
        rows => panic!("{sql}: {} rows", rows.len()),
    }
}

#[test]
fn sums_are_those_of_the_steps() {
    let ([_, report], _directories) = both_layouts();
    for ipu in 0..2 {
        let of = |what: &str, table: &str| {
            number(&report, &format!("SELECT sum({what}) FROM {table} WHERE ipu = {ipu}"))
        };
        for what in ["cycles", "bytes_in", "bytes_out"] {
            let steps = of(what, "steps_by_ipu");
            assert_eq!(of(what, "program_cycles"), steps, "{what}");
            assert_eq!(of(what, "activity_cycles"), steps, "{what}");
            assert_eq!(of(what, "steps_between"), steps, "{what}");
        }
        for window in ["0, 1", "123, 4567", "60000, 60001", "9, 9", "500, 100"] {
            let of = |table: &str| {
                number(
                    &report,
                    &format!(
                        "SELECT coalesce(sum(cycles), 0) FROM {table}({window}) WHERE ipu = {ipu}"
                    ),
                )
            };
            assert_eq!(of("program_cycles"), of("activity_cycles"), "{window}");
            let steps = |what: &str, table: &str| {
                number(
                    &report,
                    &format!("SELECT coalesce({what}, 0) FROM {table}({window}) WHERE ipu = {ipu}"),
                )
            };
            assert_eq!(
                steps("sum(steps)", "program_cycles"),
                steps("count(*)", "steps_between"),
                "{window}"
            );
        }
    }
    let total = number(&report, "SELECT total FROM execution_cycle_totals");
    assert_eq!(number(&report, "SELECT max(to_cycle) FROM steps_between"), total);
    assert_eq!(
        number(&report, "SELECT max(cycles_base + active_cycles_to_max) FROM steps_by_ipu"),
        total
    );
}

#[test]
fn a_range_reads_a_part_only() {
    let ([_, report], _directories) = both_layouts();
    for (sql, most) in [
        ("SELECT sum(cycles) FROM steps_by_ipu WHERE step_id BETWEEN 2000 AND 2010", 3 * 4096),
        ("SELECT count(*) FROM steps_between(1000, 1100)", 1000),
        ("SELECT type FROM steps WHERE id = 3", 4096),
        ("SELECT sum(cycles) FROM program_cycles", 0),
        ("SELECT sum(cycles) FROM activity_cycles", 0),
    ] {
        let summary = run(&report, &SqlQuestion::new(sql), &mut Kept::default()).expect(sql);
        assert!(summary.steps_read <= most, "{sql}: {}", summary.steps_read);
    }
}

#[test]
fn predefined_queries_are_answered() {
    let ([rows, columns], _directories) = both_layouts();
    for report in [rows, columns] {
        for ready in READY_QUERIES {
            assert_eq!(ready.missing_tables(&report).expect("tables"), [""; 0], "{}", ready.name);
            ask(&report, ready.sql).unwrap_or_else(|error| panic!("{}: {error}", ready.name));
        }
    }
}

#[test]
fn tables_are_listed_with_units() {
    let ([_, report], _directories) = both_layouts();
    let tables = list_tables(&report).expect("tables");
    let find = |name: &str| tables.iter().filter(|table| table.name == name).collect::<Vec<_>>();
    for name in ["steps", "steps_by_ipu", "marks", "program_cycles", "programs", "vars_info"] {
        let [table] = find(name)[..] else { panic!("{name}: once") };
        assert!(!table.about.is_empty() && !table.columns.is_empty(), "{name}");
        for column in &table.columns {
            assert!(!column.about.is_empty(), "{name}.{}", column.name);
            assert_eq!(
                column.unit.is_empty(),
                column.declaration == "TEXT" || column.declaration == "BLOB",
                "{name}.{}",
                column.name
            );
        }
    }
}

/// The error of a query.
fn refusal(report: &Arc<Report>, sql: &str) -> String {
    match ask(report, sql) {
        Ok(kept) => panic!("{sql}: {} rows", kept.rows.len()),
        Err(error) => error.to_string(),
    }
}

#[test]
fn errors_name_the_position_and_the_valid_names() {
    let ([_, report], _directories) = both_layouts();
    for line in include_str!("refused.txt").lines().skip(1) {
        let line = line.replace("\\n", "\n");
        let (sql, expected) = line.split_once(" | ").expect("a question and words");
        let problem = refusal(&report, sql);
        assert!(problem.contains(expected), "{sql}\n{problem}\nnot\n{expected}");
    }
}

/// A sink that counts rows.
struct Counted(u64);

impl RowSink for Counted {
    fn columns(&mut self, _: &[String]) -> io::Result<()> {
        Ok(())
    }

    fn row(&mut self, _: &[SqlValue]) -> io::Result<()> {
        self.0 += 1;
        Ok(())
    }
}

#[test]
fn parameters_have_values() {
    let ([_, report], _directories) = both_layouts();
    let question = |sql: &str, parameters: Vec<(Option<&str>, SqlValue)>| {
        let parameters =
            parameters.into_iter().map(|(name, value)| (name.map(str::to_owned), value));
        let mut kept = Kept::default();
        let question = SqlQuestion { parameters: parameters.collect(), ..SqlQuestion::new(sql) };
        run(&report, &question, &mut kept).map(|_| kept.rows)
    };
    let one = || SqlValue::Integer(1);
    let rows = question("SELECT ? + :two", vec![(None, one()), (Some("two"), one())]);
    assert_eq!(rows.expect("an answer"), [[SqlValue::Integer(2)]]);
    let error = question("SELECT 1", vec![(None, one())]).expect_err("no parameter");
    assert_eq!(error.to_string(), "the query has no parameter number 1");
}

#[test]
fn values_are_written_in_every_format() {
    let ([_, report], _directories) = both_layouts();
    let sql =
        "SELECT 1 AS a, 'x,\"y' AS a, NULL AS n, x'00ff' AS b, 0.5 AS r, '=1+1' AS f, 9e999 AS i";
    let written = |make: &dyn Fn(&mut Vec<u8>) -> SqlSummary| {
        let mut bytes = Vec::new();
        make(&mut bytes);
        String::from_utf8(bytes).expect("text")
    };
    let question = SqlQuestion::new(sql);
    let ask = |sink: &mut dyn RowSink| run(&report, &question, sink).expect("an answer");
    let csv = written(&|bytes| ask(&mut CsvRows::new(bytes)));
    assert_eq!(csv, "a,a_2,n,b,r,f,i\n1,\"x,\"\"y\",,00ff,0.5,'=1+1,inf\n");
    let json = written(&|bytes| ask(&mut JsonRows::new(bytes)));
    assert_eq!(
        json,
        "[\n{\"a\": 1, \"a_2\": \"x,\\\"y\", \"n\": null, \"b\": \"00ff\", \"r\": 0.5, \"f\": \"=1+1\", \"i\": 9e999}\n]\n"
    );
    let text = written(&|bytes| ask(&mut TextRows::new(bytes)));
    assert_eq!(
        text,
        "a  a_2   n  b            r  f     i\n1  x,\"y  —  (2 bytes)  0.5  =1+1  inf\n"
            .replace("  i\n", "    i\n")
    );
}

/// Fragments of queries, sensible or not.
fn scraps() -> impl Strategy<Value = String> {
    let words = concat!(
        "SELECT  FROM  WHERE  steps  steps_by_ipu  marks  program_cycles  (  )  ,  *  id  step_id  ",
        "ipu  cycles  =  <  >=  1  -1  1e300  'a'  NULL  AND  OR  JOIN  ON  ORDER BY  GROUP BY  ",
        "LIMIT 5  UNION ALL  count(*)  max(cycles)  x'00'  ;  WITH RECURSIVE c(x) AS  ",
        "steps_between(0, 100)  activity_cycles(5, 4)  \"  '  --  /*  json_each('[1,2]')  ",
        "printf('%.*c', 1000, 'x')  \0  é  ?1  :a  BETWEEN  IN (1, 2)  EXISTS  CASE WHEN  END  ",
        "OVER (PARTITION BY ipu)  pragma_table_info('steps')  9223372036854775807  ",
    );
    let words = prop::sample::select(words.trim_end().split("  ").collect::<Vec<_>>());
    prop_oneof![
        4 => prop::collection::vec(words.clone(), 1..14).prop_map(|words| words.join(" ")),
        3 => (prop::sample::select(QUESTIONS.lines().collect::<Vec<_>>()), prop::collection::vec((any::<prop::sample::Index>(), words), 1..4))
            .prop_map(|(sql, changes)| {
                let mut parts: Vec<&str> = sql.split(' ').collect();
                for (at, word) in changes {
                    let at = at.index(parts.len());
                    parts[at] = word;
                }
                parts.join(" ")
            }),
        1 => ".{0,60}",
    ]
}

#[test]
fn nonsense_is_answered_or_refused() {
    let ([_, report], _directories) = both_layouts();
    let mut runner = proptest::test_runner::TestRunner::new(ProptestConfig::with_cases(cases(200)));
    let done = runner.run(&scraps(), |sql| {
        let question =
            SqlQuestion { time_limit: Duration::from_millis(500), ..SqlQuestion::new(&sql) };
        match run(&report, &question, &mut Counted(0)) {
            Ok(_) => {}
            Err(error) => prop_assert!(!error.to_string().is_empty(), "{sql}"),
        }
        Ok(())
    });
    done.expect("every question ends");
}

#[test]
fn queries_on_damaged_reports_do_no_harm() {
    let directory = tempfile::tempdir().expect("directory");
    let mut small = run_of(StepLayout::Columns);
    small.steps.truncate(300);
    small.marks.clear();
    small.write(directory.path()).expect("written");
    let file = directory.path().join("profile.pop");
    let whole = std::fs::read(&file).expect("read");
    let broken = directory.path().join("broken.pop");
    let questions = [
        "SELECT sum(cycles) FROM steps_by_ipu",
        "SELECT count(*), max(program) FROM steps",
        "SELECT sum(cycles) FROM program_cycles(10, 4000)",
        "SELECT count(*) FROM steps_between",
        "SELECT sum(cycles) FROM activity_cycles(10, 4000)",
        "SELECT count(*) FROM vars_info, compute_set_cycles",
    ];
    let mut noise = 1u64;
    for _ in 0..cases(50) {
        let mut bytes = whole.clone();
        for _ in 0..1 + noise % 6 {
            noise = noise
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            let at = (noise >> 20) as usize % bytes.len();
            bytes[at] = (noise >> 8) as u8;
        }
        std::fs::write(&broken, &bytes).expect("written");
        // Reports that cannot be opened cannot be queried.
        let Ok(report) = Report::open_with_cache(&broken, None) else { continue };
        let report = Arc::new(report);
        for sql in questions {
            let question =
                SqlQuestion { time_limit: Duration::from_secs(2), ..SqlQuestion::new(sql) };
            let _ = run(&report, &question, &mut Counted(0));
        }
    }
}

/// A million rows that take more than the cache to sort.
const LONG_SORT: &str = "WITH RECURSIVE c(x) AS (SELECT 0 UNION ALL SELECT x + 1 FROM c \
                         WHERE x < 999999) SELECT x * 7919 % 1000 AS k, count(*), sum(x) \
                         FROM c GROUP BY k";

#[test]
fn groups_that_the_memory_does_not_hold_are_sorted_in_files() {
    let ([_, report], _directories) = both_layouts();
    let answer = ask(&report, LONG_SORT).expect("sorted in files");
    assert_eq!(answer.rows.len(), 1000);
    let mut sum = 0;
    for row in &answer.rows {
        assert_eq!(row[1], SqlValue::Integer(1000), "{row:?}");
        let SqlValue::Integer(of_group) = row[2] else { panic!("{row:?}") };
        sum += of_group;
    }
    assert_eq!(sum, 999_999 * 500_000);
    if !spill::is_limited() {
        return;
    }
    let question = SqlQuestion { disk_limit: 1 << 20, ..SqlQuestion::new(LONG_SORT) };
    let error = run(&report, &question, &mut Counted(0)).err().map(|error| error.to_string());
    let words = error.expect("files larger than the limit");
    assert!(words.contains("more than 1 MiB of temporary files"), "{words}");
}

#[test]
fn groups_have_the_sums_of_the_run() {
    let ([rows, columns], _directories) = both_layouts();
    let of_rows = |sql: &str| ask(&rows, sql).expect(sql).rows;
    let of_columns = |sql: &str| ask(&columns, sql).expect(sql).rows;
    for group in ["type", "program", "compute_set", "compute_set, type", "program, type"] {
        for sql in [
            format!("SELECT {group}, count(*) FROM steps GROUP BY {group}"),
            format!("SELECT DISTINCT {group} FROM steps ORDER BY {group}"),
            format!("SELECT {group}, count(*) FROM steps WHERE id > 77 GROUP BY {group}"),
            format!("SELECT {group}, max(id) FROM steps GROUP BY {group}"),
        ] {
            assert_eq!(of_columns(&sql), of_rows(&sql), "{sql}");
        }
    }
    for group in ["ipu", "sub_lane", "sub_lane, ipu", "ipu, step_id"] {
        let sql = format!(
            "SELECT {group}, count(*), sum(cycles), group_concat(step_id) FROM steps_by_ipu \
             GROUP BY {group}"
        );
        assert_eq!(of_columns(&sql), of_rows(&sql), "{sql}");
    }
    let of_groups = "SELECT sum(n) FROM (SELECT count(*) AS n FROM steps GROUP BY program)";
    assert_eq!(number(&columns, of_groups), STEPS as i64);
    let of_lanes = "SELECT sum(c) FROM (SELECT sum(cycles) AS c FROM steps_by_ipu GROUP BY ipu)";
    let of_table = number(&columns, "SELECT sum(cycles) FROM program_cycles");
    assert_eq!(number(&columns, of_lanes), of_table);
    let rowids = ask(&columns, "SELECT max(rowid) FROM steps GROUP BY type").err();
    assert!(rowids.is_some_and(|error| error.to_string().contains("select the column id")));
}

#[test]
fn joins_by_step_read_each_step_once() {
    let ([_, columns], _directories) = both_layouts();
    let sql = "SELECT count(*), sum(b.cycles) FROM steps s JOIN steps_by_ipu b ON b.step_id = s.id \
               JOIN steps t ON t.id = b.step_id";
    let mut kept = Kept::default();
    let read = run(&columns, &SqlQuestion::new(sql), &mut kept).expect(sql).steps_read;
    let bars = number(&columns, "SELECT count(*) FROM steps_by_ipu");
    assert_eq!(kept.rows[0][0], SqlValue::Integer(bars));
    // Three tables of at most three lanes, in parts of 4,096.
    assert!(read < 12 * STEPS, "{read}");
}

#[test]
fn samples_of_tiles_have_the_rows_of_the_report() {
    let directories = [(); 2].map(|()| tempfile::tempdir().expect("directory"));
    let [profile, converted] =
        [directories[0].path().join("profile.capnp"), directories[1].path().into()];
    std::fs::write(&profile, IpuStackProfile::layers(12, 4).bytes()).expect("a profile");
    tilescope_report::convert_profile(&profile, &converted).expect("converted");
    let report = Arc::new(Report::open_with_cache(&converted, None).expect("opens"));
    let mut samples = Vec::new();
    let all = StepId(0)..StepId(u64::MAX);
    report.visit_tile_samples(all, |step, sample| samples.push((step, sample))).expect("samples");
    let sql = "SELECT step, tile, label, first_cycle, cycles, activities FROM tile_samples";
    let answer = ask(&report, sql).expect(sql).rows;
    assert_eq!(answer.len(), samples.len());
    for (row, (step, sample)) in answer.iter().zip(&samples) {
        let number = |number: u64| SqlValue::Integer(number as i64);
        let (start, length) = (sample.cycles.start.0, sample.cycles.length().0);
        let packed = ExchangeActivity::pack(&sample.activities);
        let expected = [
            number(step.0),
            number(sample.tile.0.into()),
            number(sample.label.into()),
            number(start),
            number(length),
            packed.map_or(SqlValue::Null, SqlValue::Blob),
        ];
        assert_eq!(row.as_slice(), expected, "{step}");
    }
    let of_some = "SELECT count(*) FROM tile_samples WHERE step BETWEEN 3 AND 5";
    let wanted = samples.iter().filter(|(step, _)| (3..=5).contains(&step.0)).count();
    assert!(wanted > 0);
    assert_eq!(number(&report, of_some), wanted as i64);
    let by_operation = "SELECT l.operation, sum(s.cycles) FROM tile_samples s
                        JOIN sample_labels l ON l.id = s.label GROUP BY 1 ORDER BY 2 DESC";
    assert!(!ask(&report, by_operation).expect(by_operation).rows.is_empty());
    let columns = |tables: &[ListedTable]| -> Vec<String> {
        let own = tables.iter().filter(|table| table.name == "tile_samples");
        own.flat_map(|table| table.columns.iter().map(|column| column.name.clone())).collect()
    };
    let known = tilescope_report::schema::columns_of("tile_samples");
    let names: Vec<&str> = known.iter().map(|column| column.name).collect();
    assert_eq!(columns(&list_tables(&report).expect("tables")), names);
}
