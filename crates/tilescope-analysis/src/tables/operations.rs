//! The table of operations.

use super::critical_path::exposure_cells;
use super::limits;
use crate::critical_path::{EXPOSED, HIDDEN, ON_PATH};
use crate::data_table::{DataTable, TableCell, TableColumn};
use crate::limits::OperationLimits;
use crate::operations::{OpRow, OperationLayer};
use tilescope_report::{CostBasis, ErrorBand, FactorBand, Report, ReportPart, TrainingPass};

/// A column: what it holds, and how it gets it.
pub struct OperationColumn {
    /// Key under which it is remembered.
    pub key: &'static str,
    /// Short title.
    pub title: &'static str,
    /// Title in full, and how the figure is worked out.
    pub about: &'static str,
    /// Whether it is shown at first.
    pub shown: bool,
    /// What a report must have recorded for it.
    part: Option<ReportPart>,
    /// Whether only operations of the model have it.
    model: bool,
    /// Whether operations add up to a sum that means something.
    summed: bool,
    /// Where it comes from.
    figure: ColumnFigure,
}

/// Where the figures of a column come from.
#[derive(Clone, Copy)]
enum ColumnFigure {
    /// What an operation costs.
    Cost(fn(&OpRow) -> TableCell),
    /// What it could cost at least: the view of limits has the same columns.
    Limit(fn(&OperationLimits) -> TableCell),
}

impl ColumnFigure {
    fn cell(self, row: &OpRow) -> TableCell {
        match self {
            Self::Cost(of) => of(row),
            Self::Limit(of) => of(&row.limits),
        }
    }
}

impl OperationColumn {
    /// The figure of an operation; missing where nothing of the kind was recorded.
    pub fn cell(&self, row: &OpRow, report: &Report, layer: OperationLayer) -> TableCell {
        let recorded = self.part.is_none_or(|part| report.has(part));
        let told = recorded && (!self.model || layer == OperationLayer::Model);
        if told { self.figure.cell(row) } else { TableCell::Missing }
    }

    /// A figure that the view of limits shows as well.
    pub(super) const fn of_limits(
        key: &'static str,
        title: &'static str,
        about: &'static str,
        cell: fn(&OperationLimits) -> TableCell,
    ) -> Self {
        let figure = ColumnFigure::Limit(cell);
        let part = Some(ReportPart::Execution);
        Self { key, title, about, shown: false, part, model: false, summed: false, figure }
    }

    /// The same for limits alone; missing for other figures.
    pub(super) fn limit(&self, limits: &OperationLimits) -> TableCell {
        match self.figure {
            ColumnFigure::Limit(of) => of(limits),
            ColumnFigure::Cost(_) => TableCell::Missing,
        }
    }

    const fn requiring_part(self, part: ReportPart) -> Self {
        Self { part: Some(part), ..self }
    }

    const fn model_only(self) -> Self {
        Self { model: true, ..self }
    }

    const fn without_sum(self) -> Self {
        Self { summed: false, ..self }
    }
}

/// Words for a pass.
pub fn pass_title(pass: Option<TrainingPass>) -> &'static str {
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
    cell: fn(&OpRow) -> TableCell,
) -> OperationColumn {
    let figure = ColumnFigure::Cost(cell);
    OperationColumn { key, title, about, shown, part: None, model: false, summed: true, figure }
}

/// `-5 to +5 %`, with a `?` where nothing of the kind was measured.
fn error_words(errors: &ErrorBand, band: FactorBand) -> TableCell {
    let percent = |factor: f64| format!("{:+.0}", (factor - 1.0) * 100.0);
    let mark = if errors.basis == CostBasis::Measured { "" } else { " ?" };
    TableCell::Text(format!("{} to {} %{mark}", percent(band.low), percent(band.high)))
}

/// Every column, in the order of the table; the name is always first.
pub static COLUMNS: &[OperationColumn] = &[
    column("kind", "Operator", "Operator, or kind of program", true, |row| {
        TableCell::Text(row.kind.clone())
    }),
    column(
        "source",
        "ONNX node",
        "Operator and version of the nodes of the ONNX file that it was made for; empty for built-in models",
        false,
        |row| TableCell::Text(row.source.clone()),
    ),
    column("pass", "Pass", "Forward, backward or update", true, |row| {
        TableCell::Text(pass_title(row.pass).to_owned())
    }),
    column("block", "Block", "Block of the model", false, |row| TableCell::Text(row.block.clone())),
    column("shapes", "Shapes", "Operands and results", false, |row| {
        TableCell::Text(row.shapes.clone())
    }),
    column("ipu", "IPU", "IPU of the replica", true, |row| {
        row.ipu.map_or_else(|| "".into(), |ipu| TableCell::Id(ipu.into()))
    }),
    column(
        "elapsed",
        "Cycles (run)",
        "Cycles of all its steps in the run, exchanges included; IPUs work at the same time, so operations do not add up to the run",
        true,
        |row| TableCell::Count(row.elapsed.0),
    )
    .requiring_part(ReportPart::Execution)
    .without_sum(),
    column(
        "exchanging",
        "Exchange (run)",
        "Cycles of its exchanges in the run, inside IPUs and between them: time in which its tiles \
         move data instead of computing",
        true,
        |row| TableCell::Count(row.exchanging.0),
    )
    .requiring_part(ReportPart::Execution)
    .without_sum(),
    column("on_path", "On the path", ON_PATH, true, |row| {
        let [on_path, ..] = exposure_cells(row.exposure.as_ref());
        on_path
    })
    .requiring_part(ReportPart::Execution),
    column("exposed", "Exposed", EXPOSED, false, |row| {
        let [_, exposed, _] = exposure_cells(row.exposure.as_ref());
        exposed
    })
    .requiring_part(ReportPart::Execution)
    .without_sum(),
    column("hidden", "Hidden", HIDDEN, false, |row| {
        let [.., hidden] = exposure_cells(row.exposure.as_ref());
        hidden
    })
    .requiring_part(ReportPart::Execution)
    .without_sum(),
    column("executions", "Executions", "Executions of its most frequent program", false, |row| {
        TableCell::Count(row.executions)
    })
    .requiring_part(ReportPart::Execution)
    .without_sum(),
    column(
        "slowest",
        "Cycles (max)",
        "Cycles of one execution: the slowest tile of each compute set, added up",
        false,
        |row| TableCell::Count(row.cycles_slowest.0),
    )
    .requiring_part(ReportPart::ComputeSetCycles)
    .without_sum(),
    column(
        "all_tiles",
        "Cycles (tot)",
        "Cycles of one execution summed over tiles; not elapsed time",
        false,
        |row| TableCell::Count(row.cycles_all_tiles.0),
    )
    .requiring_part(ReportPart::ComputeSetCycles),
    column(
        "code",
        "Code (tot)",
        "Exchange code, and code of its codelets once per tile; operations may share codelets",
        false,
        |row| TableCell::Bytes(row.code()),
    )
    .requiring_part(ReportPart::Exchanges)
    .without_sum(),
    column(
        "code_most",
        "Code (max)",
        "Exchange code and code of its codelets on the tile that has most of both together",
        false,
        |row| TableCell::Bytes(row.code_most),
    )
    .requiring_part(ReportPart::Exchanges)
    .without_sum(),
    column("exchange_code", "Exchange code", "Code of its exchanges", false, |row| {
        TableCell::Bytes(row.exchange_code)
    })
    .requiring_part(ReportPart::Exchanges),
    column("vertex_code", "Vertex code", "Code of its codelets, once per tile", false, |row| {
        TableCell::Bytes(row.vertex_code)
    })
    .requiring_part(ReportPart::Vertices)
    .without_sum(),
    column(
        "errors",
        "Error of cycles",
        "Between which errors the true cycles lie in nine of ten cases, from measurements of its kind; ? where nothing of the kind was measured: from what its formulas rest on",
        false,
        |row| row.errors.as_ref().map_or_else(|| "".into(), |errors| error_words(errors, errors.cycles)),
    )
    .model_only(),
    column(
        "errors_bytes",
        "Error of bytes",
        "Between which errors the true bytes lie in nine of ten cases, from measurements of its kind",
        false,
        |row| row.errors.as_ref().map_or_else(|| "".into(), |errors| error_words(errors, errors.bytes)),
    )
    .model_only(),
    column("flops", "FLOPs", "Floating point operations of one execution", true, |row| {
        TableCell::Count(row.flops)
    })
    .requiring_part(ReportPart::Operations)
    .model_only(),
    column("memory", "Memory", "Bytes of the variables made for it, over all tiles, whenever they live", true, |row| {
        TableCell::Bytes(row.memory)
    })
    .requiring_part(ReportPart::Variables)
    .model_only()
    .without_sum(),
    column(
        "memory_most",
        "Memory (max)",
        "Bytes of the variables made for it on the tile that has most of them, whenever they live",
        false,
        |row| TableCell::Bytes(row.memory_most),
    )
    .requiring_part(ReportPart::Variables)
    .model_only()
    .without_sum(),
    column("vertices", "Vertices", "Number of vertices", false, |row| {
        TableCell::Count(row.vertices)
    })
    .requiring_part(ReportPart::Vertices),
    column("programs", "Steps", "Number of its programs", false, |row| {
        TableCell::Count(row.programs.len() as u64)
    }),
    limits::IDEAL,
    limits::WASTED,
    limits::BOUND,
    limits::ENGINE,
    limits::OF_PEAK,
    limits::PADDED,
    limits::TILES_IN_USE,
    limits::TILE_BALANCE,
    limits::OF_FABRIC,
    limits::OF_TILE,
    limits::OF_LINKS,
    limits::OF_HOST,
    limits::OF_REMOTE_BUFFERS,
];

/// Columns of few letters.
const SHORT: [&str; 5] = ["pass", "block", "ipu", "bound", "engine"];

impl OperationColumn {
    pub(super) fn column(&self) -> TableColumn {
        let column = match self.figure.cell(&OpRow::default()) {
            TableCell::Text(_) if SHORT.contains(&self.key) => TableColumn::short(self.title),
            TableCell::Text(_) => TableColumn::text(self.title),
            TableCell::Bytes(_) => TableColumn::bytes(self.title),
            _ => TableColumn::number(self.title),
        };
        let column = column.about(self.about);
        if self.summed { column } else { column.without_sum() }
    }
}

/// What operations of a layer cost, in all columns: the name, then those of [`COLUMNS`].
pub fn operations(rows: &[OpRow], report: &Report, layer: OperationLayer) -> DataTable {
    let known = COLUMNS.iter().map(OperationColumn::column);
    let columns = std::iter::once(TableColumn::text("Operation")).chain(known).collect();
    let cells = |row: &OpRow| {
        let known = COLUMNS.iter().map(|known| known.cell(row, report, layer));
        std::iter::once(row.name.as_str().into()).chain(known).collect()
    };
    DataTable::new(columns, rows.iter().map(cells).collect()).with_totals()
}
