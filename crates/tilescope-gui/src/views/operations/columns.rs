//! The columns of the table of operations.

use crate::widgets::table::{TableWidgetCell, TableWidgetColumn};
use tilescope_analysis::operations::{OpRow, OperationLayer};
use tilescope_report::{Report, ReportPart, TrainingPass};

/// A column: what it holds, and how it gets it.
pub(crate) struct OperationColumn {
    /// Key under which it is remembered.
    pub key: &'static str,
    pub title: &'static str,
    /// Title in full, and how the figure is worked out.
    pub about: &'static str,
    /// Whether it is shown at first.
    pub shown: bool,
    /// What a report must have recorded for it.
    part: Option<ReportPart>,
    /// Whether only operations of the model have it.
    model: bool,
    /// Takes it from an operation.
    cell: fn(&OpRow) -> TableWidgetCell,
}

impl OperationColumn {
    /// The figure of an operation; missing where nothing of the kind was recorded.
    pub(crate) fn cell(
        &self,
        row: &OpRow,
        report: &Report,
        layer: OperationLayer,
    ) -> TableWidgetCell {
        let recorded = self.part.is_none_or(|part| report.has(part));
        let told = recorded && (!self.model || layer == OperationLayer::Model);
        if told { (self.cell)(row) } else { TableWidgetCell::Missing }
    }

    const fn requiring_part(self, part: ReportPart) -> Self {
        Self { part: Some(part), ..self }
    }

    const fn model_only(self) -> Self {
        Self { model: true, ..self }
    }
}

/// Words for a pass.
pub(crate) fn pass_title(pass: Option<TrainingPass>) -> &'static str {
    match pass {
        Some(TrainingPass::Forward) => "Forward",
        Some(TrainingPass::Backward) => "Backward",
        Some(TrainingPass::Update) => "Update",
        None => "",
    }
}

const fn column(
    key: &'static str,
    title: &'static str,
    about: &'static str,
    shown: bool,
    cell: fn(&OpRow) -> TableWidgetCell,
) -> OperationColumn {
    OperationColumn { key, title, about, shown, part: None, model: false, cell }
}

/// Every column, in the order of the table; the name is always first.
pub(crate) static COLUMNS: &[OperationColumn] = &[
    column("kind", "Operator", "Operator, or kind of program", true, |row| {
        TableWidgetCell::Text(row.kind.clone())
    }),
    column("pass", "Pass", "Forward, backward or update", true, |row| {
        TableWidgetCell::Text(pass_title(row.pass).to_owned())
    }),
    column("block", "Block", "Block of the model", false, |row| {
        TableWidgetCell::Text(row.block.clone())
    }),
    column("shapes", "Shapes", "Operands and results", false, |row| {
        TableWidgetCell::Text(row.shapes.clone())
    }),
    column("ipu", "IPU", "IPU of the replica", true, |row| {
        TableWidgetCell::Text(row.ipu.map_or_else(String::new, |ipu| ipu.to_string()))
    }),
    column(
        "elapsed",
        "Cycles (run)",
        "Cycles of all its steps in the run, exchanges included",
        true,
        |row| TableWidgetCell::Count(row.elapsed),
    )
    .requiring_part(ReportPart::Execution),
    column("executions", "Executions", "Executions of its most frequent program", false, |row| {
        TableWidgetCell::Count(row.executions)
    })
    .requiring_part(ReportPart::Execution),
    column(
        "slowest",
        "Cycles (max)",
        "Cycles of one execution: the slowest tile of each compute set, added up",
        true,
        |row| TableWidgetCell::Count(row.cycles_slowest),
    )
    .requiring_part(ReportPart::ComputeSetCycles),
    column(
        "all_tiles",
        "Cycles (tot)",
        "Cycles of one execution summed over tiles; not elapsed time",
        false,
        |row| TableWidgetCell::Count(row.cycles_all_tiles),
    )
    .requiring_part(ReportPart::ComputeSetCycles),
    column(
        "code",
        "Code (tot)",
        "Exchange code, and code of its codelets once per tile; operations may share codelets",
        true,
        |row| TableWidgetCell::Bytes(row.code()),
    )
    .requiring_part(ReportPart::Exchanges),
    column(
        "code_most",
        "Code (max)",
        "Exchange code and code of its codelets on the tile that has most of both together",
        false,
        |row| TableWidgetCell::Bytes(row.code_most),
    )
    .requiring_part(ReportPart::Exchanges),
    column("exchange_code", "Exchange code", "Code of its exchanges", false, |row| {
        TableWidgetCell::Bytes(row.exchange_code)
    })
    .requiring_part(ReportPart::Exchanges),
    column("vertex_code", "Vertex code", "Code of its codelets, once per tile", false, |row| {
        TableWidgetCell::Bytes(row.vertex_code)
    })
    .requiring_part(ReportPart::Vertices),
    column("flops", "FLOPs", "Floating point operations of one execution", true, |row| {
        TableWidgetCell::Count(row.flops)
    })
    .requiring_part(ReportPart::Operations)
    .model_only(),
    column("memory", "Memory", "Bytes of the variables made for it, over all tiles", true, |row| {
        TableWidgetCell::Bytes(row.memory)
    })
    .requiring_part(ReportPart::Variables)
    .model_only(),
    column(
        "memory_most",
        "Memory (max)",
        "Bytes of the variables made for it on the tile that has most of them, whenever they live",
        false,
        |row| TableWidgetCell::Bytes(row.memory_most),
    )
    .requiring_part(ReportPart::Variables)
    .model_only(),
    column("vertices", "Vertices", "Number of vertices", false, |row| {
        TableWidgetCell::Count(row.vertices)
    })
    .requiring_part(ReportPart::Vertices),
    column("programs", "Steps", "Number of its programs", false, |row| {
        TableWidgetCell::Count(row.programs.len() as u64)
    }),
];

/// Columns of few letters.
const SHORT: [&str; 3] = ["pass", "block", "ipu"];

/// Whether a column is shown, given the keys of those that were switched.
pub(crate) fn is_shown(known: &OperationColumn, switched: &[String]) -> bool {
    known.shown != switched.iter().any(|key| key == known.key)
}

/// The columns that are shown, as a table has them.
pub(crate) fn titles(switched: &[String]) -> Vec<TableWidgetColumn> {
    let shown = COLUMNS.iter().filter(|known| is_shown(known, switched));
    let column = |known: &OperationColumn| {
        let column = match (known.cell)(&OpRow::default()) {
            TableWidgetCell::Text(_) if SHORT.contains(&known.key) => {
                TableWidgetColumn::short(known.title)
            }
            TableWidgetCell::Text(_) => TableWidgetColumn::text(known.title),
            _ => TableWidgetColumn::number(known.title),
        };
        column.about(known.about)
    };
    std::iter::once(TableWidgetColumn::text("Operation")).chain(shown.map(column)).collect()
}

/// The cells of an operation.
pub(crate) fn cells(
    row: &OpRow,
    switched: &[String],
    report: &Report,
    layer: OperationLayer,
) -> Vec<TableWidgetCell> {
    let shown = COLUMNS.iter().filter(|known| is_shown(known, switched));
    std::iter::once(TableWidgetCell::Text(row.name.clone()))
        .chain(shown.map(|known| known.cell(row, report, layer)))
        .collect()
}
