//! Tables of the critical path, and of slack.

use super::operations::pass_title;
use crate::critical_path::{
    EXPOSED, HIDDEN, IPU_SLACK, IpuSlack, LEAD, ON_PATH, PathRow, PathTotals, ProgramExposure,
    WAITS, ipu_slacks, path_totals,
};
use crate::data_table::{DataTable, TableCell, TableColumn};
use tilescope_report::units::{Cycles, ReplicaClassId, ReplicaIpu};
use tilescope_report::{Report, ReportError};

const KIND: &str = "What the cycles are spent on; waiting for the host: until it is ready, beyond the \
                    handshake; sync: syncs themselves, once all have come";

/// What the path goes through: by lane, kind and operation, or program where there is none.
///
/// # Errors
/// Parts of the file that cannot be read.
pub fn path(report: &Report) -> Result<DataTable, ReportError> {
    Ok(path_table(&path_totals(report, None)?.unwrap_or_default()))
}

/// The same of totals that are known.
pub fn path_table(totals: &PathTotals) -> DataTable {
    let columns = vec![
        TableColumn::text("Operation").about("The operation of the model, or else the program"),
        TableColumn::short("Kind").about(KIND),
        TableColumn::number("Cycles").about(ON_PATH),
        TableColumn::number("Share").about("Cycles / cycles of the path"),
        TableColumn::short("IPU"),
        TableColumn::short("Tiles"),
        TableColumn::short("Pass"),
        TableColumn::number("Steps").without_sum(),
    ];
    let cells = |row: &PathRow| {
        vec![
            row.name.as_str().into(),
            row.kind.title().into(),
            TableCell::Count(row.cycles.0),
            TableCell::Share(row.share),
            ipu_cell(row.ipu),
            tiles(row.sub_lane).into(),
            pass_title(row.pass).into(),
            TableCell::Count(row.steps),
        ]
    };
    DataTable::new(columns, totals.rows.iter().map(cells).collect()).with_totals()
}

/// Columns of what the critical path says of programs.
pub fn exposure_columns() -> impl Iterator<Item = TableColumn> {
    let column = |(title, about)| TableColumn::number(title).about(about).without_sum();
    [("On the path", ON_PATH), ("Exposed", EXPOSED), ("Hidden", HIDDEN)].into_iter().map(column)
}

/// Their cells; missing where the path is not known.
pub fn exposure_cells(of: Option<&ProgramExposure>) -> [TableCell; 3] {
    let cell = |cycles: Option<Cycles>| cycles.map(|cycles| TableCell::Count(cycles.0)).into();
    [
        cell(of.map(|of| of.on_path)),
        cell(of.and_then(ProgramExposure::exposed)),
        cell(of.and_then(|of| of.hidden)),
    ]
}

/// Slack, waits and lead of each lane.
///
/// # Errors
/// Parts of the file that cannot be read.
pub fn slack(report: &Report) -> Result<DataTable, ReportError> {
    // Found where it is not known yet: whoever asks for the table waits for it.
    report.critical_path()?;
    Ok(slack_table(&ipu_slacks(report)?))
}

/// The same of figures that are known.
pub fn slack_table(slacks: &[IpuSlack]) -> DataTable {
    let columns = vec![
        TableColumn::short("IPU"),
        TableColumn::number("On the path").about(ON_PATH),
        TableColumn::number("Share").about("On the path / cycles of the run"),
        TableColumn::number("Waits").about(WAITS).without_sum(),
        TableColumn::number("Slack").about(IPU_SLACK).without_sum(),
        TableColumn::number("Lead").about(LEAD).without_sum(),
        TableColumn::short("Tiles"),
    ];
    let cells = |of: &IpuSlack| {
        vec![
            ipu_cell(of.ipu),
            TableCell::Count(of.path_cycles.0),
            TableCell::Share(of.path_share),
            TableCell::Count(of.waits.0),
            TableCell::Count(Cycles::from_f64(of.slack.round()).0),
            TableCell::Count(of.lead.0),
            tiles(of.sub_lane).into(),
        ]
    };
    DataTable::new(columns, slacks.iter().map(cells).collect())
}

/// The number of an IPU, and the class of its replicas where these differ from replica 0.
fn ipu_cell(at: ReplicaIpu) -> TableCell {
    match at.class {
        ReplicaClassId(0) => TableCell::Id(at.ipu.into()),
        class => format!("{} of replica class {class}", at.ipu).into(),
    }
}

/// Which tiles of an IPU a lane is of.
fn tiles(sub_lane: u8) -> &'static str {
    if sub_lane == 0 { "compute" } else { "I/O" }
}
