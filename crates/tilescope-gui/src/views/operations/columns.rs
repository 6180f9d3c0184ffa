//! The columns of the table of operations.

use crate::widgets::table::{Cell, Column};
use tilescope_analysis::operations::{Layer, OpRow};
use tilescope_report::{Part, Pass, Report};

/// A column: what it holds, and how it gets it.
pub(crate) struct Known {
    /// Key under which it is remembered.
    pub key: &'static str,
    pub title: &'static str,
    /// Title in full, and how the figure is worked out.
    pub about: &'static str,
    /// Whether it is shown at first.
    pub shown: bool,
    /// What a report must have recorded for it.
    part: Option<Part>,
    /// Whether only operations of the model have it.
    model: bool,
    /// Takes it from an operation.
    cell: fn(&OpRow) -> Cell,
}

impl Known {
    /// The figure of an operation; missing where nothing of the kind was recorded.
    pub(crate) fn cell(&self, row: &OpRow, report: &Report, layer: Layer) -> Cell {
        let recorded = self.part.is_none_or(|part| report.has(part));
        let told = recorded && (!self.model || layer == Layer::Model);
        if told { (self.cell)(row) } else { Cell::Missing }
    }

    const fn of(self, part: Part) -> Self {
        Self { part: Some(part), ..self }
    }

    const fn of_the_model(self) -> Self {
        Self { model: true, ..self }
    }
}

/// Words for a pass.
pub(crate) fn pass_title(pass: Option<Pass>) -> &'static str {
    match pass {
        Some(Pass::Forward) => "Forward",
        Some(Pass::Backward) => "Backward",
        Some(Pass::Update) => "Update",
        None => "",
    }
}

const fn column(
    key: &'static str,
    title: &'static str,
    about: &'static str,
    shown: bool,
    cell: fn(&OpRow) -> Cell,
) -> Known {
    Known { key, title, about, shown, part: None, model: false, cell }
}

/// Every column, in the order of the table; the name is always first.
pub(crate) static COLUMNS: &[Known] = &[
    column("kind", "Operator", "Operator, or kind of program", true, |row| {
        Cell::Text(row.kind.clone())
    }),
    column("pass", "Pass", "Forward, backward or update", true, |row| {
        Cell::Text(pass_title(row.pass).to_owned())
    }),
    column("block", "Block", "Block of the model", false, |row| Cell::Text(row.block.clone())),
    column("shapes", "Shapes", "Operands and results", false, |row| Cell::Text(row.shapes.clone())),
    column("ipu", "IPU", "IPU of the replica", true, |row| {
        Cell::Text(row.ipu.map_or_else(String::new, |ipu| ipu.to_string()))
    }),
    column(
        "elapsed",
        "Cycles (run)",
        "Cycles of all its steps in the run, exchanges included",
        true,
        |row| Cell::Count(row.elapsed),
    )
    .of(Part::Execution),
    column("executions", "Executions", "Executions of its most frequent program", false, |row| {
        Cell::Count(row.executions)
    })
    .of(Part::Execution),
    column(
        "slowest",
        "Cycles (max)",
        "Cycles of one execution: the slowest tile of each compute set, added up",
        true,
        |row| Cell::Count(row.cycles_slowest),
    )
    .of(Part::ComputeSetCycles),
    column(
        "all_tiles",
        "Cycles (tot)",
        "Cycles of one execution summed over tiles; not elapsed time",
        false,
        |row| Cell::Count(row.cycles_all_tiles),
    )
    .of(Part::ComputeSetCycles),
    column(
        "code",
        "Code (tot)",
        "Exchange code, and code of its codelets once per tile; operations may share codelets",
        true,
        |row| Cell::Bytes(row.code()),
    )
    .of(Part::Exchanges),
    column(
        "code_most",
        "Code (max)",
        "Exchange code and code of its codelets on the tile that has most of both together",
        false,
        |row| Cell::Bytes(row.code_most),
    )
    .of(Part::Exchanges),
    column("exchange_code", "Exchange code", "Code of its exchanges", false, |row| {
        Cell::Bytes(row.exchange_code)
    })
    .of(Part::Exchanges),
    column("vertex_code", "Vertex code", "Code of its codelets, once per tile", false, |row| {
        Cell::Bytes(row.vertex_code)
    })
    .of(Part::Vertices),
    column("flops", "FLOPs", "Floating point operations of one execution", true, |row| {
        Cell::Count(row.flops)
    })
    .of(Part::Operations)
    .of_the_model(),
    column("memory", "Memory", "Bytes of the variables made for it, over all tiles", true, |row| {
        Cell::Bytes(row.memory)
    })
    .of(Part::Variables)
    .of_the_model(),
    column(
        "memory_most",
        "Memory (max)",
        "Bytes of the variables made for it on the tile that has most of them, whenever they live",
        false,
        |row| Cell::Bytes(row.memory_most),
    )
    .of(Part::Variables)
    .of_the_model(),
    column("vertices", "Vertices", "Number of vertices", false, |row| Cell::Count(row.vertices))
        .of(Part::Vertices),
    column("programs", "Steps", "Number of its programs", false, |row| {
        Cell::Count(row.programs.len() as u64)
    }),
];

/// Columns of few letters.
const SHORT: [&str; 3] = ["pass", "block", "ipu"];

/// Whether a column is shown, given the keys of those that were switched.
pub(crate) fn is_shown(known: &Known, switched: &[String]) -> bool {
    known.shown != switched.iter().any(|key| key == known.key)
}

/// The columns that are shown, as a table has them.
pub(crate) fn titles(switched: &[String]) -> Vec<Column> {
    let shown = COLUMNS.iter().filter(|known| is_shown(known, switched));
    let column = |known: &Known| {
        let column = match (known.cell)(&OpRow::default()) {
            Cell::Text(_) if SHORT.contains(&known.key) => Column::short(known.title),
            Cell::Text(_) => Column::text(known.title),
            _ => Column::number(known.title),
        };
        column.about(known.about)
    };
    std::iter::once(Column::text("Operation")).chain(shown.map(column)).collect()
}

/// The cells of an operation.
pub(crate) fn cells(row: &OpRow, switched: &[String], report: &Report, layer: Layer) -> Vec<Cell> {
    let shown = COLUMNS.iter().filter(|known| is_shown(known, switched));
    std::iter::once(Cell::Text(row.name.clone()))
        .chain(shown.map(|known| known.cell(row, report, layer)))
        .collect()
}
