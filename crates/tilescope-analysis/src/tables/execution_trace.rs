//! The table of what IPUs spend a window of the run on.

use crate::data_table::{DataTable, TableCell, TableColumn};
use crate::pipeline_schedule::{ScheduleColumnKind, pipeline_schedule, schedule_cells};
use crate::replica_classes::replica_numbers;
use crate::trace::IpuTotals;
use tilescope_report::units::{Bytes, Cycles};
use tilescope_report::{ReplicaClasses, Report, ReportError, ReportPart, StepActivity};

/// Where the parts of a row stand.
pub mod at {
    use std::ops::Range;

    /// The IPU.
    pub const IPU: Range<usize> = 0..1;
    /// Steps that it executes.
    pub const STEPS: Range<usize> = 1..2;
    /// Shares of the window, by activity.
    pub const SHARES: Range<usize> = 2..10;
    /// How many tiles work.
    pub const BALANCE: Range<usize> = 10..11;
    /// Bytes from and to the host.
    pub const HOST: Range<usize> = 11..13;
    /// Bytes from and to remote buffers.
    pub const REMOTE_BUFFER: Range<usize> = 13..15;
    /// Bytes from and to other IPUs.
    pub const GLOBAL_EXCHANGE: Range<usize> = 15..17;
    /// The replicas, where they differ.
    pub const REPLICAS: Range<usize> = 17..18;
}

const SHARE: &str = "Cycles of each kind of step in the window / cycles of the window";
const BALANCE: &str = "Mean tile balance of the steps in the window, each weighted by its cycles; \
                       steps that only wait for a sync do not count";
const HOST: &str = "Bytes of the window's stream copies from and to the host";
const REMOTE_BUFFER: &str = "Bytes of the window's stream copies from and to remote buffers";
const GLOBAL_EXCHANGE: &str = "Bytes of the window's exchanges with other IPUs";
const REPLICAS: &str = "Those that are alike; a row is of each of them";

/// What each IPU spends a window on, by class of replicas where these differ; bytes and balance are
/// missing where they were not recorded.
pub fn ipus(ipus: &[IpuTotals], classes: &ReplicaClasses, report: &Report) -> DataTable {
    let replicas = |of: &IpuTotals| {
        let class = classes.classes.get(of.at.class.index()).filter(|_| classes.differ())?;
        Some(TableCell::from(replica_numbers(&class.replicas).as_str()))
    };
    let (bytes, balance) = (report.has(ReportPart::StepBytes), report.has(ReportPart::ActiveTiles));
    let moved = |of: Bytes| TableCell::from(bytes.then_some(TableCell::Bytes(of)));
    let row = |of: &IpuTotals| {
        let share = &of.proportions;
        let mut cells = vec![TableCell::Id(of.at.ipu.into()), TableCell::Count(of.steps)];
        cells.extend(share.iter().map(|(_, share)| TableCell::Share(share)));
        cells.push(of.tile_balance.filter(|_| balance).map(TableCell::Share).into());
        for traffic in [of.host, of.remote_buffer, of.global_exchange] {
            cells.extend([traffic.received, traffic.sent].map(moved));
        }
        cells.extend(replicas(of));
        cells
    };
    let mut columns = columns();
    if classes.differ() {
        columns.push(TableColumn::text("Replicas").about(REPLICAS));
    }
    DataTable::new(columns, ipus.iter().map(row).collect())
}

const HELD: &str = "Micro-batches that went forward through the stage and not yet back, at most in \
                    the slot";
const DEPTH: &str = "Micro-batches that the stashes of the stage hold";

/// Which stage works on which micro-batch in which slot of the first iteration; no rows where the
/// marks do not say it.
///
/// # Errors
/// Parts of the file that cannot be read.
pub fn schedule(report: &Report) -> Result<DataTable, ReportError> {
    let mut rows = Vec::new();
    if let Ok(schedule) = pipeline_schedule(report, Cycles::ZERO)? {
        let cells = schedule_cells(report, &schedule, 0..schedule.columns.len())?;
        let mut turns: Vec<_> = cells.turns.iter().collect();
        turns.sort_by_key(|turn| (turn.column, turn.stage, turn.range.start));
        for turn in turns {
            let (column, stage) = (&schedule.columns[turn.column], &schedule.stages[turn.stage]);
            let is_slot = column.kind == ScheduleColumnKind::Slot;
            let phase = schedule.phase_of(turn.column);
            rows.push(vec![
                TableCell::Id(schedule.iteration),
                is_slot.then_some(TableCell::Id(column.number)).into(),
                phase.map(|phase| phase.label.as_str().into()).into(),
                TableCell::Id(stage.ipu.into()),
                stage.name.as_str().into(),
                turn.pass.name().into(),
                TableCell::Id(turn.number),
                TableCell::Count(turn.range.start.0),
                TableCell::Count(turn.range.length().0),
                cells.held(turn.stage, turn.column).map(TableCell::Count).into(),
                stage.depth.map(TableCell::Count).into(),
            ]);
        }
    }
    let columns = vec![
        TableColumn::short("Iteration"),
        TableColumn::short("Slot"),
        TableColumn::text("Phase"),
        TableColumn::short("IPU"),
        TableColumn::text("Stage"),
        TableColumn::text("Pass"),
        TableColumn::short("Micro-batch"),
        TableColumn::number("First cycle"),
        TableColumn::number("Cycles"),
        TableColumn::number("In the FIFO").about(HELD),
        TableColumn::number("FIFO holds").about(DEPTH),
    ];
    Ok(DataTable::new(columns, rows))
}

fn columns() -> Vec<TableColumn> {
    let shares = StepActivity::ALL.map(StepActivity::title).into_iter().chain(["Idle"]);
    let moved = [
        "From the host",
        "To the host",
        "From remote buffers",
        "To remote buffers",
        "From other IPUs",
        "To other IPUs",
    ];
    let mut columns = vec![
        TableColumn::short("IPU").about("IPU of the replica"),
        TableColumn::number("Steps").about("Executed steps that touch the window"),
    ];
    columns.extend(shares.map(|title| TableColumn::number(title).about(SHARE)));
    columns.push(TableColumn::number("Tile balance").about(BALANCE));
    let abouts = [HOST, HOST, REMOTE_BUFFER, REMOTE_BUFFER, GLOBAL_EXCHANGE, GLOBAL_EXCHANGE];
    let moved = moved.into_iter().zip(abouts);
    columns.extend(moved.map(|(title, about)| TableColumn::bytes(title).about(about)));
    columns
}
