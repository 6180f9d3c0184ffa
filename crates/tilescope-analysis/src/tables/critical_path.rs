//! Tables of the critical path, and of slack.

use super::operations::pass_title;
use crate::critical_path::{
    EXPOSED, HIDDEN, IPU_SLACK, IpuSlack, LEAD, ON_PATH, PathTotals, ProgramExposure, WAITS,
    ipu_slacks, path_totals,
};
use crate::data_table::{DataTable, TableCell, TableColumn};
use crate::table;
use tilescope_report::units::{Cycles, ReplicaClassId, ReplicaIpu};
use tilescope_report::{Report, ReportError};

const KIND: &str = "Activity of the cycles. Host wait: until the host is ready, beyond \
                    the handshake. Sync: the syncs themselves, once all IPUs have arrived";

/// The critical path by lane, kind and operation, or program without an operation.
///
/// # Errors
/// Parts of the file that cannot be read.
pub fn path(report: &Report) -> Result<DataTable, ReportError> {
    Ok(path_table(&path_totals(report, None)?.unwrap_or_default()))
}

/// The same for given totals.
pub fn path_table(totals: &PathTotals) -> DataTable {
    let table = table! { &totals.rows, |row|
        operation "Operation" => &row.name, "The operation of the model, or else the program";
        short "Kind" => row.kind.title(), KIND;
        cycles "Cycles" => row.cycles, ON_PATH;
        part "Share" => row.share, "Cycles / cycles of the path";
        ipu "IPU" => ipu_cell(row.ipu);
        short "Tiles" => tiles(row.sub_lane);
        pass "Pass" => pass_title(row.pass);
        grouped_number "Steps" => row.steps;
    };
    table.with_totals()
}

/// Columns of the exposure of programs.
pub fn exposure_columns() -> [TableColumn; 3] {
    [("On the path", ON_PATH), ("Exposed", EXPOSED), ("Hidden", HIDDEN)]
        .map(|(title, about)| TableColumn::grouped_cycles(title).about(about))
}

/// Cells of these columns; missing if the path is not known.
pub fn exposure_cells(of: Option<&ProgramExposure>) -> [TableCell; 3] {
    [
        of.map(|of| of.on_path).into(),
        of.and_then(ProgramExposure::exposed).into(),
        of.and_then(|of| of.hidden).into(),
    ]
}

/// Slack, waits and lead of each lane.
///
/// # Errors
/// Parts of the file that cannot be read.
pub fn slack(report: &Report) -> Result<DataTable, ReportError> {
    // Computed if it is not known yet: readers of the table wait for it.
    report.critical_path()?;
    Ok(slack_table(&ipu_slacks(report)?))
}

/// The same for given figures.
pub fn slack_table(slacks: &[IpuSlack]) -> DataTable {
    table! { slacks, |of|
        short "IPU" => ipu_cell(of.ipu);
        cycles "On the path" => of.path_cycles, ON_PATH;
        share "Share" => of.path_share, "On the path / cycles of the run";
        unsummed_cycles "Waits" => of.waits, WAITS;
        unsummed_cycles "Slack" => Cycles::from_f64(of.slack.round()), IPU_SLACK;
        unsummed_cycles "Lead" => of.lead, LEAD;
        short "Tiles" => tiles(of.sub_lane);
    }
}

/// The number of an IPU, and the class of its replicas if they differ from replica 0.
fn ipu_cell(at: ReplicaIpu) -> TableCell {
    match at.class {
        ReplicaClassId(0) => at.ipu.into(),
        class => format!("{} of replica class {class}", at.ipu).into(),
    }
}

/// The kind of tiles of a lane.
fn tiles(sub_lane: u8) -> &'static str {
    if sub_lane == 0 { "compute" } else { "I/O" }
}
