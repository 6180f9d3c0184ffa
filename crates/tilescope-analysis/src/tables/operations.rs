//! The table of operations with its columns.

use super::critical_path::exposure_cells;
use super::limits;
use crate::critical_path::{EXPOSED, HIDDEN, ON_PATH};
use crate::data_table::{ColumnAggregate, DataTable, TableCell, TableColumn};
use crate::grouping::GroupKey;
use crate::limits::OperationLimits;
use crate::operations::{OpRow, OperationLayer};
use crate::table;
use std::sync::LazyLock;
use tilescope_report::{CostBasis, ErrorBand, FactorBand, Report, ReportPart, TrainingPass};

/// A column: its description and its figure.
pub struct OperationColumn {
    /// Key that identifies it in stored settings.
    pub key: &'static str,
    /// Short title for the head of the column.
    pub title: &'static str,
    /// Full title, and the derivation of the figure.
    pub about: &'static str,
    /// True if it is shown by default.
    pub shown: bool,
    /// The part of a report that it requires.
    part: Option<ReportPart>,
    /// True if only operations of the model have it.
    model: bool,
    /// The aggregation over operations.
    pub(crate) aggregate: ColumnAggregate,
    /// The source of its values.
    figure: ColumnFigure,
}

/// The source of a column's figures.
#[derive(Clone, Copy)]
enum ColumnFigure {
    /// A cost of an operation.
    Cost(fn(&OpRow) -> TableCell),
    /// A limit of an operation; the view of limits has the same columns.
    Limit(fn(&OperationLimits) -> TableCell),
}

impl OperationColumn {
    /// The figure of an operation; missing if it was not recorded.
    pub fn cell(&self, row: &OpRow, report: &Report, layer: OperationLayer) -> TableCell {
        let recorded = self.part.is_none_or(|part| report.has(part));
        let is_known = recorded && (!self.model || layer == OperationLayer::Model);
        if is_known { self.value(row) } else { TableCell::Missing }
    }

    /// The figure of an operation, without a check that it was recorded.
    pub(crate) fn value(&self, row: &OpRow) -> TableCell {
        match self.figure {
            ColumnFigure::Cost(of) => of(row),
            ColumnFigure::Limit(of) => of(&row.limits),
        }
    }

    /// True for a figure of the whole run, not of one execution.
    pub(crate) fn is_of_run(&self) -> bool {
        self.part == Some(EXECUTION)
    }

    const fn new(
        key: &'static str,
        title: &'static str,
        about: &'static str,
        figure: ColumnFigure,
    ) -> Self {
        let aggregate = ColumnAggregate::Sum;
        Self { key, title, about, shown: false, part: None, model: false, aggregate, figure }
    }

    /// Creates a column that the view of limits has too.
    pub(super) const fn of_limits(
        key: &'static str,
        title: &'static str,
        about: &'static str,
        cell: fn(&OperationLimits) -> TableCell,
    ) -> Self {
        let figure = ColumnFigure::Limit(cell);
        Self::new(key, title, about, figure).requiring_part(EXECUTION).without_sum()
    }

    const fn shown_first(self) -> Self {
        Self { shown: true, ..self }
    }

    /// The figure from limits alone; missing for columns of costs.
    pub(crate) fn limit(&self, limits: &OperationLimits) -> TableCell {
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

    pub(super) const fn without_sum(self) -> Self {
        Self { aggregate: ColumnAggregate::None, ..self }
    }

    pub(super) const fn sum_of_group(self) -> Self {
        Self { aggregate: ColumnAggregate::SumOfGroup, ..self }
    }

    pub(super) const fn most(self) -> Self {
        Self { aggregate: ColumnAggregate::Max, ..self }
    }
}

/// The title of a pass.
pub fn pass_title(pass: Option<TrainingPass>) -> &'static str {
    match pass {
        Some(TrainingPass::Forward) => "Forward",
        Some(TrainingPass::Backward) => "Backward",
        Some(TrainingPass::Update) => "Update",
        None => "",
    }
}

/// `-5 to +5 %`, with a `?` if no operation of the kind was measured; empty if the errors are not
/// known.
fn error_words(row: &OpRow, band: fn(&ErrorBand) -> FactorBand) -> String {
    let Some(errors) = &row.errors else { return String::new() };
    let percent = |factor: f64| format!("{:+.0}", (factor - 1.0) * 100.0);
    let mark = if errors.basis == CostBasis::Measured { "" } else { " ?" };
    let band = band(errors);
    format!("{} to {} %{mark}", percent(band.low), percent(band.high))
}

fn exposure(row: &OpRow, at: usize) -> TableCell {
    exposure_cells(row.exposure.as_ref())[at].clone()
}

/// Columns of costs: key, title, cell, description, and special properties.
macro_rules! cost_columns {
    ($($key:ident $title:literal |$row:ident| $cell:expr, $about:expr
       $(=> $($special:ident $(($argument:expr))?),+)?;)*) => {
        [$(
            OperationColumn::new(
                stringify!($key),
                $title,
                $about,
                ColumnFigure::Cost(|$row| TableCell::from($cell)),
            )
            $($(.$special($($argument)?))+)?
        ),*]
    };
}

/// Columns of costs, in the order of the table.
pub(crate) static COSTS: [OperationColumn; 25] = cost_columns! {
    kind "Operator" |row| &row.kind, "Operator, or kind of program" => shown_first;
    source "ONNX node" |row| &row.source,
        "Operator and version of its nodes in the ONNX file; empty for built-in models";
    pass "Pass" |row| pass_title(row.pass), "Forward, backward or update" => shown_first;
    block "Block" |row| &row.block, "Block of the model";
    shapes "Shapes" |row| &row.shapes, "Operands and results";
    ipu "IPU" |row| row.ipu.map_or_else(|| "".into(), TableCell::from), "IPU of the replica" => shown_first;
    elapsed "Cycles (run)" |row| row.elapsed,
        "Cycles of all its steps in the run, including exchanges; IPUs work at the same time, so operations do not add up to the run"
        => shown_first, requiring_part(EXECUTION), sum_of_group;
    exchanging "Exchange (run)" |row| row.exchanging,
        "Cycles of its exchanges in the run, inside IPUs and between them: time in which its tiles \
         move data instead of computing"
        => shown_first, requiring_part(EXECUTION), sum_of_group;
    on_path "On the path" |row| exposure(row, 0), ON_PATH => shown_first, requiring_part(EXECUTION);
    exposed "Exposed" |row| exposure(row, 1), EXPOSED => requiring_part(EXECUTION), sum_of_group;
    hidden "Hidden" |row| exposure(row, 2), HIDDEN => requiring_part(EXECUTION), sum_of_group;
    executions "Executions" |row| row.executions, "Executions of its most frequent program"
        => requiring_part(EXECUTION), sum_of_group;
    slowest "Cycles (max)" |row| row.cycles_slowest,
        "Cycles of one execution: the sum of the slowest tile of each compute set"
        => requiring_part(ReportPart::ComputeSetCycles), sum_of_group;
    all_tiles "Cycles (tot)" |row| row.cycles_all_tiles,
        "Cycles of one execution summed over tiles; not elapsed time"
        => requiring_part(ReportPart::ComputeSetCycles);
    code "Code (tot)" |row| row.code(),
        "Exchange code, and the code of its vertex types once per tile; operations may share \
         vertex types"
        => requiring_part(ReportPart::Exchanges), without_sum;
    code_most "Code (max)" |row| row.code_most,
        "Exchange code and the code of its vertex types, on the tile with the largest sum of both"
        => requiring_part(ReportPart::Exchanges), most;
    exchange_code "Exchange code" |row| row.exchange_code, "Code of its exchanges"
        => requiring_part(ReportPart::Exchanges);
    vertex_code "Vertex code" |row| row.vertex_code, "Code of its vertex types, once per tile"
        => requiring_part(ReportPart::Vertices), without_sum;
    errors "Error of cycles" |row| error_words(row, |errors| errors.cycles),
        "90 % interval of the error of its cycles, from measurements of its kind; with ?, its kind \
         was not measured, and the interval depends on the basis of its formulas"
        => model_only;
    errors_bytes "Error of bytes" |row| error_words(row, |errors| errors.bytes),
        "90 % interval of the error of its bytes, from measurements of its kind"
        => model_only;
    flops "FLOPs" |row| row.flops, "Floating point operations of one execution"
        => shown_first, requiring_part(ReportPart::Operations), model_only;
    memory "Memory" |row| row.memory,
        "Bytes of its variables over all tiles, regardless of their lifetimes"
        => shown_first, requiring_part(ReportPart::Variables), model_only, sum_of_group;
    memory_most "Memory (max)" |row| row.memory_most,
        "Bytes of its variables on the tile with most of them, regardless of their lifetimes"
        => requiring_part(ReportPart::Variables), model_only, most;
    vertices "Vertices" |row| row.vertices, "Number of vertices" => requiring_part(ReportPart::Vertices);
    programs "Steps" |row| row.programs.len() as u64, "Number of its programs";
};

const EXECUTION: ReportPart = ReportPart::Execution;

/// Every column, in the order of the table; the name is always first.
pub static COLUMNS: LazyLock<Vec<&'static OperationColumn>> =
    LazyLock::new(|| COSTS.iter().chain(&limits::OF_OPERATIONS).collect());

/// Columns with short text.
const SHORT: [&str; 5] = ["pass", "block", "ipu", "bound", "engine"];

impl OperationColumn {
    pub(super) fn column(&self) -> TableColumn {
        let column = match self.value(&OpRow::default()) {
            TableCell::Text(_) if SHORT.contains(&self.key) => TableColumn::short(self.title),
            TableCell::Text(_) => TableColumn::text(self.title),
            TableCell::Bytes(_) => TableColumn::bytes(self.title),
            _ => TableColumn::number(self.title),
        };
        let column = match self.key {
            "kind" => column.labelling(GroupKey::Operator),
            "pass" => column.labelling(GroupKey::Pass),
            "block" => column.labelling(GroupKey::Block),
            "ipu" => column.labelling(GroupKey::Ipu),
            _ => column,
        };
        column.about(self.about).aggregating(self.aggregate)
    }
}

/// Costs of a layer's operations, in all columns: the name, then those of [`COLUMNS`].
pub fn operations(rows: &[OpRow], report: &Report, layer: OperationLayer) -> DataTable {
    let table = table! { rows, |row|
        operation "Operation" => &row.name;
        all COLUMNS.iter().map(|known| known.column()) =>
            COLUMNS.iter().map(|known| known.cell(row, report, layer));
    };
    table.with_totals()
}
