//! No finding contradicts a table of its report: every share, number of cycles and number of bytes
//! in a sentence is computed again from the tables that users query.

use crate::common;
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use tilescope_analysis::data_table::TableCell;
use tilescope_analysis::insights::{InsightFinding, InsightVerdict, RULES, insights};
use tilescope_analysis::sql::{RowSink, SqlQuestion, SqlValue, run};
use tilescope_analysis::tables::named;
use tilescope_report::units::NumberFormat;
use tilescope_report::{ProgramKind, Report, StreamEndpoint};
use tilescope_sim::specification::BUNDLED_SPECS;
use tilescope_test_tiers::slow_tests;

/// A form of the sentence of a rule, and the queries of its figures.
struct CitedSentence {
    rule: &'static str,
    /// The beginning of the sentence; `{name}` is a figure or a name.
    form: &'static str,
    /// A query of each figure. `{name}` is a part of the sentence, `{program}`, `{operation}` and
    /// `{variable}` are those of the place of the finding, and names in capitals are [`PARTS`].
    figures: &'static [(&'static str, &'static str)],
}

/// Parts of queries.
const PARTS: [(&str, &str); 10] = [
    ("OF_IPU", "SELECT sum(cycles) / RUN FROM program_cycles WHERE ipu = {ipu} AND"),
    ("OF_ACTIVITY", "SELECT sum(cycles) / RUN FROM activity_cycles WHERE ipu = {ipu} AND activity"),
    ("EXTERNAL", "type = 'Sync' AND name = 'External' AND sub_lane = 0"),
    ("FULLEST", "SELECT tile FROM memory_by_tile ORDER BY total_including_gaps DESC, tile LIMIT 1"),
    ("NEEDED", "(SELECT max(total_including_gaps) FROM memory_by_tile)"),
    ("USED", "(SELECT sum(total) + 0.0 FROM memory_by_tile)"),
    (
        "CODE",
        "SELECT sum(bytes * (end_tile - first_tile) * times) + 0.0 FROM category_bytes b
         JOIN var_categories c ON c.id = b.category WHERE c.name LIKE",
    ),
    (
        "UPDATES",
        "SELECT sum(last - first) / RUN FROM (
           SELECT min(first_cycle) first, max(end_cycle) last FROM (
             SELECT *, sum(is_new) OVER (ORDER BY first_cycle, end_cycle) part FROM (
               SELECT first_cycle, end_cycle, first_cycle > coalesce(max(end_cycle) OVER (
                 ORDER BY first_cycle, end_cycle
                 ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING), -1) is_new
               FROM marks WHERE kind = 'update')) GROUP BY part)",
    ),
    (
        "REARRANGES",
        "(name GLOB '*PreArrange*' OR name GLOB '*OnTileCopy*' OR name GLOB '*Transpose*'
          OR name GLOB '*Regroup*' OR name GLOB '*actsRearranged*'
          OR name GLOB '*weightsRearranged*')",
    ),
    ("RUN", "(SELECT total + 0.0 FROM execution_cycle_totals)"),
];

/// Cycles of a stage per micro-batch.
const STAGES: &str = "SELECT sum(mean) FROM (SELECT avg(end_cycle - first_cycle) mean FROM marks
    WHERE kind = 'stage' AND label LIKE replace('{stage}', '…', '%') || ' %'
    GROUP BY pass)";

const FULLEST_USE: &[(&str, &str)] =
    &[("tile", "FULLEST"), ("share", "SELECT {bytes} * 1.0 / NEEDED")];

const CITED: &[CitedSentence] = &[
    CitedSentence {
        rule: "overlap_io",
        form: "IPU {ipu} copies data from and to the host for {share} of the run",
        figures: &[("share", "OF_ACTIVITY = 'host'")],
    },
    CitedSentence {
        rule: "input_type",
        form: "IPU {ipu} receives samples over the host link for {share} of the run",
        figures: &[(
            "share",
            "OF_IPU activity = 'host' AND type = 'StreamCopyMid' AND name NOT LIKE '%copyToHost%'",
        )],
    },
    CitedSentence {
        rule: "output_mode",
        form: "IPU {ipu} spends {share} of the run returning",
        figures: &[("share", "OF_IPU activity = 'host' AND name LIKE '%copyToHost%'")],
    },
    CitedSentence {
        rule: "sync_pattern",
        form: "IPU {ipu} spends {share} of the run in external syncs",
        figures: &[("share", "OF_IPU EXTERNAL")],
    },
    CitedSentence {
        rule: "schedule",
        form: "IPU {ipu} spends {share} of the run in external syncs",
        figures: &[("share", "OF_IPU EXTERNAL")],
    },
    CitedSentence {
        rule: "waiting",
        form: "IPU {ipu} spends {share} of the run in external syncs (mean of all IPUs: {mean})",
        figures: &[
            ("share", "OF_IPU EXTERNAL"),
            (
                "mean",
                "SELECT sum(cycles) / RUN / (SELECT count(DISTINCT ipu) FROM activity_cycles)
                 FROM program_cycles WHERE EXTERNAL",
            ),
        ],
    },
    CitedSentence {
        rule: "waiting",
        form: "{before} IPU {ipu} spends least ({share}): ",
        figures: &[("share", "SELECT coalesce((OF_IPU EXTERNAL), 0.0)")],
    },
    CitedSentence {
        rule: "recomputed_passes",
        form: "IPU {ipu} spends {share} of the run recomputing",
        figures: &[("share", "OF_IPU name || '/' LIKE '%/recompute/%'")],
    },
    CitedSentence {
        rule: "precision",
        form: "IPU {ipu} spends {share} of the run on float32 data",
        figures: &[(
            "share",
            "OF_IPU (type IN ('OnTileExecute', 'DoExchange', 'GlobalExchange')
               OR type = 'StreamCopyMid' AND activity = 'host')
             AND (operation IS NULL OR operation IN (SELECT id FROM operations
               WHERE element_type = 'float' AND pass IS NOT 'update'))",
        )],
    },
    CitedSentence {
        rule: "partials",
        form: "IPU {ipu} spends {share} of the run on matmuls and convolutions",
        figures: &[(
            "share",
            "OF_IPU type IN ('OnTileExecute', 'DoExchange')
             AND (name LIKE '%/Conv%' OR name LIKE '%/Reduce%')",
        )],
    },
    CitedSentence {
        rule: "memory_proportion",
        form: "IPU {ipu} spends {share} of the run on matmuls and convolutions",
        figures: &[(
            "share",
            "OF_IPU operation IN (SELECT id FROM operations
               WHERE json_extract(plan, '$.memoryBoundBytes') IS NOT NULL
               AND json_extract(plan, '$.estimate.serialSplits') > 1)",
        )],
    },
    CitedSentence {
        rule: "remote_buffers",
        form: "IPU {ipu} reads and writes remote buffers for {share} of the run",
        figures: &[("share", "OF_ACTIVITY = 'remote_buffer'")],
    },
    CitedSentence {
        rule: "collectives",
        form: "IPU {ipu} exchanges gradients or weights with other replicas for {share} of the run",
        figures: &[("share", "OF_IPU name LIKE '%/crossReplicaCopy'")],
    },
    CitedSentence {
        rule: "host_wait",
        form: "IPU {ipu} waits for the host in StreamCopyBegin for {share} of the run",
        figures: &[(
            "share",
            "SELECT sum(max(cycles - steps * (SELECT min(cycles * 1.0 / steps) FROM program_cycles
               WHERE type = 'StreamCopyBegin' AND activity = 'host' AND steps > 0), 0)) / RUN
             FROM program_cycles
             WHERE type = 'StreamCopyBegin' AND activity = 'host' AND ipu = {ipu}",
        )],
    },
    CitedSentence {
        rule: "host_wait",
        form: "{instances} host process{es} the samples of {replicas} replicas",
        figures: &[],
    },
    CitedSentence {
        rule: "host_call",
        form: "All IPUs wait for the data loader for {share} of the run",
        figures: &[(
            "share",
            "SELECT max(part) / RUN FROM (SELECT sum(cycles) part FROM program_cycles
             WHERE name = 'hostCall/loader' GROUP BY ipu)",
        )],
    },
    CitedSentence {
        rule: "host_call",
        form: "All IPUs wait for the host call for {all} of the run: {most} ",
        figures: &[
            (
                "all",
                "SELECT max(part) / RUN FROM (SELECT sum(cycles) part FROM program_cycles
                 WHERE name LIKE 'hostCall/%' AND name <> 'hostCall/loader' GROUP BY ipu)",
            ),
            (
                "most",
                "SELECT max(part) / RUN FROM (SELECT sum(cycles) part FROM program_cycles
                 WHERE name LIKE 'hostCall/%' AND name <> 'hostCall/loader' GROUP BY ipu, name)",
            ),
        ],
    },
    CitedSentence {
        rule: "host_call",
        form: "All IPUs wait for the {what} for {all} of the run.",
        figures: &[(
            "all",
            "SELECT max(part) / RUN FROM (SELECT sum(cycles) part FROM program_cycles
             WHERE name LIKE 'hostCall/%' GROUP BY ipu, name)",
        )],
    },
    CitedSentence {
        rule: "rearrangement",
        form: "IPU {ipu} spends {share} of the run rearranging data",
        figures: &[("share", "OF_IPU REARRANGES")],
    },
    CitedSentence {
        rule: "rearrangement",
        form: "IPU {ipu} {before}; {operation_name} takes the most ({share} of it)",
        figures: &[
            (
                "share",
                "SELECT sum(cycles) FILTER (WHERE operation = {operation}) * 1.0 / sum(cycles)
                 FROM program_cycles WHERE ipu = {ipu} AND REARRANGES",
            ),
            ("operation_name", "SELECT name FROM operations WHERE id = {operation}"),
        ],
    },
    CitedSentence {
        rule: "strided_copies",
        form: "{name} runs {count} strided copy vertices, which take {share} of the run",
        figures: &[
            ("name", "SELECT name FROM programs WHERE id = {program}"),
            (
                "share",
                "SELECT max(part) / RUN FROM (SELECT sum(cycles) part FROM program_cycles
                 WHERE program = {program} GROUP BY ipu)",
            ),
        ],
    },
    CitedSentence {
        rule: "low_balance",
        form: "{name} keeps its tiles busy for only {share} of its time",
        figures: &[
            ("name", "SELECT name FROM programs WHERE id = {program}"),
            (
                "share",
                "SELECT mean_cycles * tiles / max_cycles
                   / (SELECT count(*) / (SELECT count(DISTINCT ipu) FROM tiles) FROM tiles)
                 FROM compute_set_totals WHERE compute_set =
                   (SELECT compute_set FROM programs WHERE id = {program})",
            ),
        ],
    },
    CitedSentence {
        rule: "stage_balance",
        form: "Stage {stage} on IPU {ipu} takes {cycles} cycles per micro-batch",
        figures: &[("cycles", STAGES)],
    },
    CitedSentence {
        rule: "accumulation",
        form: "Weight updates take {share} of the run",
        figures: &[("share", "UPDATES")],
    },
    CitedSentence {
        rule: "accumulation",
        form: "{before}illing and draining the pipeline {share}, once",
        figures: &[],
    },
    CitedSentence {
        rule: "accumulation",
        form: "The pipeline takes {share} of the run to fill and drain",
        figures: &[],
    },
    CitedSentence {
        rule: "update_schedule",
        form: "The weight updates of {ipus} IPUs run one after another and take {share} of the run",
        figures: &[
            ("ipus", "SELECT count(DISTINCT ipu) FROM marks WHERE kind = 'update'"),
            ("share", "UPDATES"),
        ],
    },
    CitedSentence {
        rule: "sharded_optimizer",
        form: "Each of the {replicas} replicas updates all weights, which takes {share} of the run",
        figures: &[("share", "UPDATES")],
    },
    CitedSentence {
        rule: "exported_form",
        form: "GELU computed with erf takes {share} of the run, in {count} operations",
        figures: &[
            (
                "share",
                "SELECT max(part) / RUN FROM (SELECT sum(cycles) part FROM program_cycles
                 WHERE operation IN (SELECT id FROM operations WHERE kind LIKE 'gelu_erf%')
                 GROUP BY ipu)",
            ),
            ("count", "SELECT count(*) FROM operations WHERE kind LIKE 'gelu_erf%'"),
        ],
    },
    CitedSentence {
        rule: "exported_form",
        form: "{products} matrix products of {tensors} tensors take {share} of the run",
        figures: &[],
    },
    CitedSentence {
        rule: "exchange_code",
        form: "Exchange code takes {share} of the memory in use",
        figures: &[("share", "SELECT (CODE '%ExchangeCode') / USED")],
    },
    CitedSentence {
        rule: "exchange_code",
        form: "{before}: {internal} internal",
        figures: &[("internal", "CODE 'internalExchangeCode'")],
    },
    CitedSentence {
        rule: "replication",
        form: "With {replicas} replicas, global exchange code takes {bytes} per replica ({share} of",
        figures: &[
            ("bytes", "CODE 'globalExchangeCode'"),
            ("share", "SELECT (CODE 'globalExchangeCode') / USED"),
        ],
    },
    CitedSentence {
        rule: "replication",
        form: "{before}, and exchange between IPUs {share} of the run",
        figures: &[(
            "share",
            "SELECT max(part) / RUN FROM (SELECT sum(cycles) part FROM activity_cycles
             WHERE activity = 'global_exchange' GROUP BY ipu)",
        )],
    },
    CitedSentence {
        rule: "unused_tiles",
        form: "{count} tile{s} ({share} of all tiles) never run a vertex",
        figures: &[("share", "SELECT {count} * 1.0 / count(*) FROM tiles")],
    },
    CitedSentence {
        rule: "full_tiles",
        form: "The fullest tile, {tile}, is {share} full: {bytes} of {room}",
        figures: &[
            ("tile", "FULLEST"),
            ("bytes", "SELECT NEEDED"),
            ("share", "SELECT {bytes} * 1.0 / {room}"),
        ],
    },
    CitedSentence {
        rule: "peak",
        form: "Tile {tile} reaches its peak at step {step} of the program with {bytes} live. {name} \
               takes {share} of that ({own})",
        figures: &[
            (
                "bytes",
                "SELECT always_live + peak_not_always_live FROM memory_by_tile WHERE tile = {tile}",
            ),
            ("bytes", "SELECT max(always_live + peak_not_always_live) FROM memory_by_tile"),
            ("share", "SELECT {own} * 1.0 / {bytes}"),
            ("name", "SELECT name FROM variables WHERE id = {variable}"),
        ],
    },
    CitedSentence {
        rule: "worst_tiles",
        form: "The five fullest tiles ({first}, {others}) hold {held}, {times} times the mean of \
               {mean}",
        figures: &[
            ("first", "FULLEST"),
            ("mean", "SELECT avg(total_including_gaps) FROM memory_by_tile"),
        ],
    },
    CitedSentence {
        rule: "float32",
        form: "float32 variables take {share} of tile {tile} at its peak: {name} ({bytes})",
        figures: &[("name", "SELECT name FROM variables WHERE id = {variable}")],
    },
    CitedSentence {
        rule: "float32",
        form: "Activations, gradients and temporaries use {share} of tile {tile}, the fullest \
               ({bytes})",
        figures: FULLEST_USE,
    },
    CitedSentence {
        rule: "float32",
        form: "Tensors and temporaries use {share} of tile {tile}, the fullest ({bytes})",
        figures: FULLEST_USE,
    },
    CitedSentence {
        rule: "recomputation",
        form: "{count} stash{es} hold{s} {bytes} ({share} of the memory in use); the largest is \
               {name} with {most}",
        figures: &[
            ("count", "SELECT count(*) FROM variables WHERE name LIKE '%/stash'"),
            ("bytes", "SELECT sum(bytes) FROM variables WHERE name LIKE '%/stash'"),
            ("share", "SELECT sum(bytes) / USED FROM variables WHERE name LIKE '%/stash'"),
            ("most", "SELECT max(bytes) FROM variables WHERE name LIKE '%/stash'"),
            ("name", "SELECT name FROM variables WHERE id = {variable}"),
        ],
    },
    CitedSentence {
        rule: "out_of_memory",
        form: "{count} tile{s} more than the {room} of a tile. Tile {tile} needs the most: {more} more",
        figures: &[
            ("count", "SELECT count(*) FROM memory_by_tile WHERE total_including_gaps > {room}"),
            ("tile", "FULLEST"),
            ("more", "SELECT NEEDED - {room}"),
        ],
    },
    CitedSentence {
        rule: "more_replicas",
        form: "A replica of {ipus} IPU{s} fits on {fewer} IPU{s}: the fullest tiles need {bytes} of \
               {room} together",
        figures: &[("ipus", "SELECT count(DISTINCT ipu) FROM tiles")],
    },
    CitedSentence { rule: "unmodelled", form: "{words}", figures: &[] },
];

/// Rules whose sentence has the form `… use 8.1 % of tile 7, the fullest (49.2 KiB).`
const RULES_OF_FULLEST: [&str; 8] = [
    "dithering",
    "memory_proportion",
    "offloading",
    "outlining",
    "recomputation",
    "schedule",
    "smaller_micro_batch",
    "tensor_sharding",
];

const USE_OF_FULLEST: CitedSentence = CitedSentence {
    rule: "",
    form: "{what} use {share} of tile {tile}, the fullest ({bytes}).",
    figures: FULLEST_USE,
};

/// The parts of a sentence at the names of a form, if the sentence begins with the form.
fn parts<'s>(sentence: &'s str, form: &str) -> Option<BTreeMap<String, &'s str>> {
    let mut found = BTreeMap::new();
    let (literal, mut form) = form.split_once('{').unwrap_or((form, ""));
    let mut rest = sentence.strip_prefix(literal)?;
    while let Some((name, after)) = form.split_once('}') {
        let (literal, next) = after.split_once('{').unwrap_or((after, ""));
        let end = match literal {
            "" => rest.trim_end_matches('.').len(),
            _ => rest.find(literal)?,
        };
        found.insert(name.to_owned(), &rest[..end]);
        rest = &rest[end + literal.len()..];
        form = next;
    }
    Some(found)
}

/// A figure as a number: `12.3 %` is 0.123, `1.50 KiB` is 1,536.
fn number(text: &str) -> Option<f64> {
    let (figure, unit) = text.split_once(' ').unwrap_or((text, ""));
    let figure: f64 = figure.replace(',', "").parse().ok()?;
    let unit = match unit {
        "" | "B" => 1.0,
        "%" => 0.01,
        "KiB" => f64::from(1u32 << 10),
        "MiB" => f64::from(1u32 << 20),
        "GiB" => f64::from(1u32 << 30),
        _ => return None,
    };
    Some(figure * unit)
}

/// The first value of an answer.
struct FirstValue(Option<SqlValue>);

impl RowSink for FirstValue {
    fn columns(&mut self, _: &[String]) -> std::io::Result<()> {
        Ok(())
    }

    fn row(&mut self, values: &[SqlValue]) -> std::io::Result<()> {
        if self.0.is_none() {
            self.0 = values.first().cloned();
        }
        Ok(())
    }
}

/// The findings of a report, and what they contradict.
struct CitedReport<'r> {
    report: &'r Arc<Report>,
    name: &'r str,
    contradictions: Vec<String>,
}

impl CitedReport<'_> {
    fn ask(&self, sql: &str) -> SqlValue {
        let mut first = FirstValue(None);
        let answered = run(self.report, &SqlQuestion::new(sql), &mut first);
        assert!(answered.is_ok(), "{}: {answered:?}: {sql}", self.name);
        first.0.unwrap_or(SqlValue::Null)
    }

    /// Compares the figures of a finding with the answers of a form's queries. Returns the number
    /// of shares that the form names, if the sentence has this form.
    fn compare(&mut self, finding: &InsightFinding, form: &CitedSentence) -> Option<usize> {
        let parts = parts(&finding.sentence, form.form)?;
        for (name, sql) in form.figures {
            let cited = parts[*name];
            let answer = self.ask(&query(sql, &parts, finding));
            let agrees = match &answer {
                SqlValue::Text(text) => text == cited,
                SqlValue::Integer(value) => shows(cited, *value as f64),
                SqlValue::Real(value) => shows(cited, *value),
                SqlValue::Null | SqlValue::Blob(_) => false,
            };
            if !agrees {
                let line = format!("{}: {name} is {answer:?}: {}", self.name, finding.sentence);
                self.contradictions.push(line);
            }
        }
        Some(parts.values().filter(|part| part.ends_with('%')).count())
    }

    fn check(&mut self, finding: &InsightFinding) {
        let own = CITED.iter().filter(|form| form.rule == finding.rule);
        let of_fullest = RULES_OF_FULLEST.contains(&finding.rule).then_some(&USE_OF_FULLEST);
        let found: Vec<usize> =
            own.chain(of_fullest).filter_map(|form| self.compare(finding, form)).collect();
        let shares = finding.sentence.matches('%').count();
        if finding.rule == "micro_batch" {
            return self.check_fixed_cost(finding);
        }
        if found.is_empty() || found.iter().sum::<usize>() < shares {
            self.contradictions
                .push(format!("nothing checks {}: {}", finding.rule, finding.sentence));
        }
    }

    /// Compares the share of handshakes and syncs with the tables of the critical path.
    fn check_fixed_cost(&mut self, finding: &InsightFinding) {
        let path = self.report.critical_path().expect("reads").expect("a run");
        let nodes = self.report.executed_program_nodes().expect("reads");
        let mut fixed = 0.0;
        for of in path.programs().expect("reads").iter() {
            let node = of.program.and_then(|program| nodes.get(program));
            let is_of_host = node.is_some_and(|node| node.stream == StreamEndpoint::Host);
            if is_fixed_cost(of.kind(), is_of_host) {
                fixed += of.cycles.as_f64();
            }
        }
        let share = fixed / path.range().length().as_f64();
        let cited = finding.sentence.split_once(" of the critical path").expect("a share").0;
        if !shows(cited, share) {
            self.contradictions.push(format!("{}: {share}: {}", self.name, finding.sentence));
        }
    }

    /// Compares the opening sentence with the table of waits.
    fn check_lead(&mut self, lead: &str) {
        let Some(parts) = parts(lead, "IPU {ipu} sets the pace: {share} of the critical path")
        else {
            return;
        };
        let slack = named("execution-trace", Some("slack")).expect("a table");
        let rows = (slack.read)(self.report).expect("reads");
        let column = |title: &str| {
            let at = rows.columns.iter().position(|column| column.title == title);
            at.unwrap_or_else(|| panic!("no column {title}"))
        };
        let (ipus, shares) = (column("IPU"), column("Share"));
        let mut share = 0.0;
        for row in &rows.rows {
            let (TableCell::Id(ipu), TableCell::Share(own)) = (&row[ipus], &row[shares]) else {
                panic!("{row:?}");
            };
            if ipu.to_string() == parts["ipu"] {
                share += own;
            }
        }
        if !shows(parts["share"], share) {
            self.contradictions.push(format!("{}: {share}: {lead}", self.name));
        }
    }
}

/// True for steps whose cycles do not depend on the samples: syncs, and handshakes with the host.
fn is_fixed_cost(kind: ProgramKind, is_of_host: bool) -> bool {
    match kind {
        ProgramKind::Sync => true,
        ProgramKind::StreamCopyBegin | ProgramKind::StreamCopyEnd => is_of_host,
        _ => false,
    }
}

/// True if a figure of a sentence is a value, rounded.
fn shows(cited: &str, value: f64) -> bool {
    let Some(shown) = number(cited) else { return false };
    if cited.ends_with('%') {
        // Shares of rounded bytes deviate more.
        return (shown - value).abs() <= 0.00051 + 0.005 * value.abs();
    }
    let is_rounded = cited.ends_with("iB");
    (shown - value).abs() <= if is_rounded { 0.006 * value.abs() } else { 1.0 }
}

/// A query with the parts of a sentence and the place of its finding.
fn query(sql: &str, parts: &BTreeMap<String, &str>, finding: &InsightFinding) -> String {
    let mut sql = sql.to_owned();
    for (name, part) in PARTS {
        sql = sql.replace(name, part);
    }
    for (name, part) in parts {
        let value = number(part).map_or_else(|| part.replace('\'', "''"), |of| of.to_string());
        sql = sql.replace(&format!("{{{name}}}"), &value);
    }
    let place = &finding.place;
    let ids = [
        ("{program}", place.program.map(|id| id.index())),
        ("{operation}", place.operation.map(|id| id.index())),
        ("{variable}", place.variable.map(|id| id.index())),
    ];
    for (name, id) in ids {
        sql = sql.replace(name, &id.map_or_else(|| "NULL".to_owned(), |id| id.to_string()));
    }
    sql
}

/// The contradictions between the findings of a report and its tables.
fn contradictions(report: Report, name: &str) -> Vec<String> {
    let report = Arc::new(report);
    let numbers = NumberFormat::default();
    let mut cited = CitedReport { report: &report, name, contradictions: Vec::new() };
    for finding in insights(&report, numbers).expect("reads") {
        cited.check(&finding);
    }
    cited.check_lead(&InsightVerdict::read(&report, numbers).expect("reads").lead);
    cited.contradictions
}

/// Programs for the fast tier: they simulate quickly, and together most rules apply to them.
const FAST: [&str; 5] = [
    "prefetch",
    "offload",
    "tests/data/specs/replicas_io_tiles.toml",
    "tests/data/onnx/bert_separate_products.onnx",
    "tests/data/onnx/phases_one_ipu.onnx",
];

/// Files that leave something open, and what is set for them.
const OPEN: [(&str, &[&str]); 4] = [
    ("bert_base.onnx", &["model.dim.sequence=128"]),
    ("deconv_1d.onnx", &["model.dim.frames=64"]),
    ("if_on_input.onnx", &["model.branch.if=then"]),
    ("past_symbolic.onnx", &["model.dim.past_sequence_length=16", "model.dim.sequence_length=4"]),
];

/// Specs and files below `tests/data`, and bundled specs of few IPUs.
fn programs() -> Vec<String> {
    if !slow_tests() {
        return FAST.map(str::to_owned).to_vec();
    }
    let mut programs: Vec<String> = BUNDLED_SPECS
        .iter()
        .map(|spec| spec.name.to_owned())
        .filter(|name| name != "bert_large_pod256")
        .collect();
    for directory in ["tests/data/specs", "tests/data/onnx"] {
        let full = Path::new(env!("CARGO_MANIFEST_DIR")).join(directory);
        for file in std::fs::read_dir(full).expect("a directory") {
            let file = file.expect("a file").file_name().to_string_lossy().into_owned();
            if file.ends_with(".onnx") || file.ends_with(".toml") {
                programs.push(format!("{directory}/{file}"));
            }
        }
    }
    programs
}

#[test]
fn findings_contradict_no_table() {
    let mut wrong = Vec::new();
    for sample in ["matmul_chain", "mnist_pipeline", "too_large"] {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("sample_reports").join(sample);
        wrong.extend(contradictions(Report::open(&path).expect("opens"), sample));
    }
    for program in programs() {
        let open = OPEN.iter().find(|(file, _)| program.ends_with(file));
        let (report, _directory) = common::report(&program, open.map_or(&[], |(_, sets)| *sets));
        wrong.extend(contradictions(report, &program));
    }
    assert!(wrong.is_empty(), "{} contradictions:\n{}", wrong.len(), wrong.join("\n"));
}

#[test]
fn figures_of_every_rule_are_compared_with_a_table() {
    for rule in RULES {
        let is_checked = CITED.iter().any(|form| form.rule == rule.name)
            || RULES_OF_FULLEST.contains(&rule.name)
            || rule.name == "micro_batch";
        assert!(is_checked, "nothing compares the figures of {}", rule.name);
    }
}
