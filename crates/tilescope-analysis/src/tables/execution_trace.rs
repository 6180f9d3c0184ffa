//! The table of IPUs by activity in a window of the run.

use crate::data_table::{DataTable, TableCell, TableColumn};
use crate::pipeline_schedule::{
    ScheduleColumn, ScheduleColumnKind, pipeline_schedule, schedule_cells,
};
use crate::replica_classes::replica_numbers;
use crate::table;
use crate::trace::IpuTotals;
use tilescope_report::units::{Bytes, Cycles};
use tilescope_report::{ReplicaClasses, Report, ReportError, ReportPart, StepActivity};

/// Column ranges of the table.
pub mod at {
    use std::ops::Range;

    /// The IPU.
    pub const IPU: Range<usize> = 0..1;
    /// Executed steps.
    pub const STEPS: Range<usize> = 1..2;
    /// Shares of the window, by activity.
    pub const SHARES: Range<usize> = 2..10;
    /// Tile balance.
    pub const BALANCE: Range<usize> = 10..11;
    /// Bytes to and from the host.
    pub const HOST: Range<usize> = 11..13;
    /// Bytes to and from remote buffers.
    pub const REMOTE_BUFFER: Range<usize> = 13..15;
    /// Bytes to and from other IPUs.
    pub const GLOBAL_EXCHANGE: Range<usize> = 15..17;
    /// The replicas, if they differ.
    pub const REPLICAS: Range<usize> = 17..18;
}

const SHARE: &str = "Cycles of each kind of step in the window / cycles of the window";
const BALANCE: &str = "Mean tile balance of the steps in the window, each weighted by its cycles; \
                       steps that only wait for a sync do not count";
const HOST: &str = "Bytes of the window's stream copies from and to the host";
const REMOTE_BUFFER: &str = "Bytes of the window's stream copies from and to remote buffers";
const GLOBAL_EXCHANGE: &str = "Bytes of the window's exchanges with other IPUs";
const REPLICAS: &str = "Replicas with equal steps; each row applies to all of them";

/// Shares of a window by activity for each IPU, and for each class of replicas if these differ;
/// bytes and balance are missing if they were not recorded.
pub fn ipus(ipus: &[IpuTotals], classes: &ReplicaClasses, report: &Report) -> DataTable {
    let shares = StepActivity::ALL.map(StepActivity::title).into_iter().chain(["Idle"]);
    let shares = shares.map(|title| TableColumn::share(title).about(SHARE));
    let replicas =
        if classes.differ() { Some(TableColumn::text("Replicas").about(REPLICAS)) } else { None };
    let replicas_of = |of: &IpuTotals| {
        let class = classes.classes.get(of.at.class.index()).filter(|_| classes.differ())?;
        Some(replica_numbers(&class.replicas))
    };
    let has_balance = report.has(ReportPart::ActiveTiles);
    let has_bytes = report.has(ReportPart::StepBytes);
    let moved = |of: Bytes| if has_bytes { Some(of) } else { None };
    table! { ipus, |of|
        id "IPU" => of.at.ipu, "IPU of the replica";
        number "Steps" => of.steps, "Executed steps that overlap the window";
        all shares => of.proportions.iter().map(|(_, share)| TableCell::Share(share));
        share "Tile balance" => of.tile_balance.filter(|_| has_balance), BALANCE;
        bytes "From the host" => moved(of.host.received), HOST;
        bytes "To the host" => moved(of.host.sent), HOST;
        bytes "From remote buffers" => moved(of.remote_buffer.received), REMOTE_BUFFER;
        bytes "To remote buffers" => moved(of.remote_buffer.sent), REMOTE_BUFFER;
        bytes "From other IPUs" => moved(of.global_exchange.received), GLOBAL_EXCHANGE;
        bytes "To other IPUs" => moved(of.global_exchange.sent), GLOBAL_EXCHANGE;
        all replicas => replicas_of(of);
    }
}

const HELD: &str = "Maximum number of micro-batches in the slot between their forward and backward \
pass";
const DEPTH: &str = "Micro-batches that the stashes of the stage hold";

/// The micro-batch of each stage in each slot of the first iteration; empty if the marks do not
/// determine it.
///
/// # Errors
/// Parts of the file that cannot be read.
pub fn schedule(report: &Report) -> Result<DataTable, ReportError> {
    let schedule = pipeline_schedule(report, Cycles::ZERO)?.ok();
    let mut rows = Vec::new();
    if let Some(schedule) = &schedule {
        let cells = schedule_cells(report, schedule, 0..schedule.columns.len())?;
        for turn in &cells.turns {
            rows.push((schedule, cells.held(turn.stage, turn.column), turn.clone()));
        }
        rows.sort_by_key(|(.., turn)| (turn.column, turn.stage, turn.range.start));
    }
    Ok(table! { rows, |(schedule, held, turn)|
        short "Iteration" => TableCell::Id(schedule.iteration);
        short "Slot" => slot_number(&schedule.columns[turn.column]);
        text "Phase" => schedule.phase_of(turn.column).map(|phase| phase.label.as_str());
        id "IPU" => schedule.stages[turn.stage].ipu;
        text "Stage" => &schedule.stages[turn.stage].name;
        text "Pass" => turn.pass.name();
        short "Micro-batch" => TableCell::Id(turn.number);
        cycles "First cycle" => turn.range.start;
        cycles "Cycles" => turn.range.length();
        number "In the stash" => held, HELD;
        number "Stash size" => schedule.stages[turn.stage].depth, DEPTH;
    })
}

/// The number of a slot; `None` for the column of an update.
fn slot_number(column: &ScheduleColumn) -> Option<TableCell> {
    if column.kind == ScheduleColumnKind::Slot { Some(TableCell::Id(column.number)) } else { None }
}
