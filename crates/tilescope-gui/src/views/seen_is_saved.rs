//! Tests that the tables of views equal the saved ones: every table of the list, column by column
//! and cell by cell.

use super::{
    exchange_code, execution_trace, limits, liveness, memory, operations, tile_mapping, topics,
};
use tilescope_analysis::data_table::{DataTable, TableCell};
use tilescope_analysis::tables::{all, execution_trace as ipu_columns};
use tilescope_analysis::trace::window_summary;
use tilescope_fixtures::ReportBuilder;
use tilescope_report::units::{
    Bytes, IpuId, ReplicaIpu, TileId, TileRange, TileRuns, VertexTypeId,
};
use tilescope_report::{
    ArithmeticType, MemoryCategory, ProgramKind, ReplicaClasses, Report, VertexGroup,
    VertexTypeInfo,
};

/// The number of rows of each table that are compared.
const ROWS: usize = 8;

fn report() -> (tempfile::TempDir, Report) {
    let mut builder = ReportBuilder::new(2, 8);
    let operation = builder.operation("layer, \"a\"", "conv2d");
    let work = builder.compute("a/Convolve", 1_234);
    let exchange = builder.exchange("a/ExchangePre", 4_321);
    let of_model = &mut builder.parts.operations[operation.index()];
    (of_model.flops, of_model.inner_runs) = (123_456, Some(1));
    of_model.element_type = Some(ArithmeticType::Half);
    for program in [work, exchange] {
        builder.parts.programs[program.index()].operation = Some(operation);
    }
    let kind = VertexTypeInfo {
        name: "v".to_owned(),
        code_bytes: Bytes(40),
        shares_code: false,
        state_bytes: Bytes(12),
    };
    builder.parts.vertex_types.push(kind);
    let count = TileRuns::uniform(TileRange::new(TileId(2), TileId(6)), 3);
    let group = VertexGroup { vertex_type: VertexTypeId(0), count, edges: 1, flops: None };
    builder.parts.compute_sets[0].vertices.push(group);
    builder.variable("always", MemoryCategory::Constant, 0..16, 1_000, None);
    builder.variable("code", MemoryCategory::InternalExchangeCode, 0..16, 16, None);
    builder.variable("now", MemoryCategory::Variable, 0..3, 10_000, Some(0..2));
    builder.live(work, 30_000).live(exchange, 30_000);
    let copy = builder.program(ProgramKind::GlobalExchange, "between IPUs");
    builder.run(work, 0..1_234).run(exchange, 1_234..2_000).run(copy, 2_000..2_100);
    if let Some(step) = builder.steps.last_mut() {
        step.ipus[0].bytes_out = Bytes(640);
    }
    let directory = tempfile::tempdir().unwrap();
    let report = Report::open(builder.write(directory.path()).unwrap()).unwrap();
    (directory, report)
}

/// A table as its view shows it; `None` for views that draw it.
fn seen(report: &Report, view: &str, name: &str) -> Option<DataTable> {
    Some(match (view, name) {
        ("memory", "tiles")
        | ("liveness", "steps" | "addresses")
        | ("execution-trace", "critical-path" | "slack" | "programs" | "schedule")
        | ("tile-mapping", "replicas") => return None,
        ("execution-trace", samples) if samples.starts_with("samples-by-") => return None,
        ("memory", _) => memory::tables::seen(report, name),
        ("liveness", _) => liveness::tables::seen(report, name),
        ("operations", _) => operations::columns::seen(report, name),
        ("limits", _) => limits::seen(report, name),
        ("exchange-code", _) => exchange_code::tables::seen(report, name),
        ("tile-mapping", _) => tile_mapping::seen(report, name),
        ("execution-trace", _) => {
            let trace = report.trace().unwrap().unwrap();
            let ipus = [IpuId(0), IpuId(1)].map(ReplicaIpu::from);
            let summary = window_summary(&trace, trace.range(), &ipus).unwrap();
            ipu_columns::ipus(&summary.ipus, &report.replica_classes().unwrap(), report)
        }
        _ => return None,
    })
}

/// The fields of each line of a CSV file.
fn fields(csv: &str) -> Vec<Vec<String>> {
    let mut lines = vec![vec![String::new()]];
    let mut quoted = false;
    let mut letters = csv.chars().peekable();
    while let Some(letter) = letters.next() {
        let line = lines.last_mut().unwrap();
        match letter {
            '"' if quoted && letters.next_if_eq(&'"').is_some() => {
                line.last_mut().unwrap().push('"');
            }
            '"' => quoted = !quoted,
            ',' if !quoted => line.push(String::new()),
            '\n' if !quoted => lines.push(vec![String::new()]),
            letter => line.last_mut().unwrap().push(letter),
        }
    }
    lines.pop();
    lines
}

/// Returns true if the text on the screen equals the field of the file.
fn says_the_same(cell: &TableCell, field: &str) -> bool {
    let text = cell.exact();
    match cell {
        TableCell::Text(_) | TableCell::Id(_) => text == field,
        TableCell::Missing => field.is_empty(),
        TableCell::Share(_) => {
            // Screens round to a tenth of a percent.
            let percent: f64 = text.trim_end_matches(" %").parse().unwrap();
            (percent / 100.0 - field.parse::<f64>().unwrap()).abs() < 0.000_51
        }
        TableCell::Real(value) => {
            (field.parse::<f64>().unwrap() - value).abs() <= value.abs() * 1e-9
        }
        _ => {
            let digits = text.trim_start_matches("Tile ").trim_end_matches(" B").replace(',', "");
            digits == field
        }
    }
}

#[test]
fn every_table_equals_its_saved_file() {
    let (_directory, report) = report();
    for table in all() {
        let place = format!("{} {}", table.view, table.name);
        let seen = seen(&report, table.view, table.name);
        assert_eq!(seen.is_some(), table.on_screen, "{place}");
        // The topics view has all of them.
        let seen = seen.unwrap_or_else(|| topics::seen(&report, table));
        let saved = fields(&(table.read)(&report).unwrap().csv());
        let (heads, rows) = saved.split_first().unwrap();
        let titles: Vec<String> = seen.columns.iter().map(|column| column.head()).collect();
        assert_eq!(&titles, heads, "{place}");
        assert!(!rows.is_empty() || !table.on_screen, "{place}");
        assert_eq!(rows.len(), seen.rows.len(), "{place}");
        for (row, cells) in rows.iter().zip(&seen.rows).take(ROWS) {
            assert_eq!(row.len(), cells.len(), "{place}");
            for (field, cell) in row.iter().zip(cells) {
                assert!(says_the_same(cell, field), "{place}: {cell:?} is saved as {field:?}");
            }
        }
    }
}

#[test]
fn shares_and_bytes_of_ipus_are_shown_in_the_order_of_their_columns() {
    let groups = execution_trace::details_tables::GROUPS;
    let shown: Vec<usize> = groups.into_iter().flat_map(|(_, _, columns)| columns).collect();
    let (_directory, report) = report();
    let alike = ReplicaClasses::default();
    let columns = ipu_columns::ipus(&[], &alike, &report).columns;
    assert_eq!(shown, (0..columns.len()).collect::<Vec<usize>>());
}
