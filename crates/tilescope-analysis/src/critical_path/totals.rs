//! The critical path by kind of work, lane and operation.

use super::ipu_slack::lane_title;
use crate::trace::{PathWindow, Share};
use serde::Serialize;
use std::cmp::Reverse;
use std::collections::BTreeMap;
use tilescope_report::trace::{CriticalPath, PathProgram};
use tilescope_report::units::{CycleRange, Cycles, OperationId, ProgramId, ReplicaIpu};
use tilescope_report::{
    HostCallPart, MachineAction, ProgramKind, ProgramNodeTable, Report, ReportError, StepActivity,
    TrainingPass,
};

/// The kind of work that cycles of the path are spent on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum PathKind {
    Compute,
    /// Exchange between tiles of one IPU.
    InternalExchange,
    GlobalExchange,
    /// Handshakes and transfers with the host.
    Host,
    /// Copies with streaming memory.
    RemoteBuffer,
    /// Syncs themselves, after the last participant has arrived.
    Sync,
    /// Waits for the host.
    HostWait,
    /// Steps of unknown kind.
    Other,
    /// Cycles in which no step was recorded.
    Idle,
}

impl PathKind {
    /// Every kind, in the order of the enum.
    pub const ALL: [PathKind; 9] = [
        Self::Compute,
        Self::InternalExchange,
        Self::GlobalExchange,
        Self::Host,
        Self::RemoteBuffer,
        Self::Sync,
        Self::HostWait,
        Self::Other,
        Self::Idle,
    ];

    /// Key in JSON.
    pub fn name(self) -> &'static str {
        match self {
            Self::Compute => "compute",
            Self::InternalExchange => "internal_exchange",
            Self::GlobalExchange => "global_exchange",
            Self::Host => "host",
            Self::RemoteBuffer => "remote_buffer",
            Self::Sync => "sync",
            Self::HostWait => "host_wait",
            Self::Other => "other",
            Self::Idle => "idle",
        }
    }

    /// Name in the user interface.
    pub fn title(self) -> &'static str {
        match self {
            Self::Compute => "Compute",
            Self::InternalExchange => "Internal exchange",
            Self::GlobalExchange => "Global exchange",
            Self::Host => "Host copies",
            Self::RemoteBuffer => "Remote buffers",
            Self::Sync => "Sync",
            Self::HostWait => "Host wait",
            Self::Other => "Other",
            Self::Idle => "Idle",
        }
    }

    pub(super) fn of_activity(activity: StepActivity) -> Self {
        match activity {
            StepActivity::Compute => Self::Compute,
            StepActivity::InternalExchange => Self::InternalExchange,
            StepActivity::GlobalExchange => Self::GlobalExchange,
            StepActivity::Host => Self::Host,
            StepActivity::RemoteBuffer => Self::RemoteBuffer,
            StepActivity::Sync => Self::Sync,
            StepActivity::Other => Self::Other,
        }
    }
}

/// Cycles of the path of one kind, on one lane, for one operation or program.
#[derive(Clone, Debug, PartialEq)]
pub struct PathRow {
    pub kind: PathKind,
    /// The index of its lane in the trace, and the position on it of the longest visited step of
    /// the path.
    pub longest: (usize, u64),
    /// The IPU, and the class of replicas if these differ.
    pub ipu: ReplicaIpu,
    /// 0 for compute tiles; higher for other tiles of the IPU.
    pub sub_lane: u8,
    /// The title of the lane.
    pub lane: String,
    /// The operation of the model, if the row has one.
    pub operation: Option<OperationId>,
    /// One of its programs: the only one if the row has no operation.
    pub program: Option<ProgramId>,
    /// The operation, or else the program; empty for idle cycles and steps without a program.
    pub name: String,
    /// Block and pass of the operation.
    pub block: String,
    pub pass: Option<TrainingPass>,
    /// Steps of the path; a handshake and the wait for it are the same steps.
    pub steps: u64,
    pub cycles: Cycles,
    /// Share of the path: all shares add up to 1.
    pub share: f64,
}

/// Totals of the critical path.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct PathTotals {
    /// Cycles of the path: those of the whole run or of a window.
    pub cycles: Cycles,
    /// The rows, most cycles first.
    pub rows: Vec<PathRow>,
}

impl PathTotals {
    /// The share of the path that each kind takes, most first.
    pub fn by_kind(&self) -> Vec<(PathKind, Share<PathWindow>)> {
        let mut sums: BTreeMap<PathKind, Cycles> = BTreeMap::new();
        for row in &self.rows {
            *sums.entry(row.kind).or_default() += row.cycles;
        }
        let mut sums: Vec<_> = sums.into_iter().collect();
        sums.sort_by_key(|(_, cycles)| Reverse(*cycles));
        let path = PathWindow::of(self.cycles);
        sums.into_iter().map(|(kind, cycles)| (kind, path.share(cycles))).collect()
    }

    /// The share of the path in the rows after the first `first`.
    pub fn behind(&self, first: usize) -> Share<PathWindow> {
        let cycles = self.rows.iter().skip(first).map(|row| row.cycles).sum();
        PathWindow::of(self.cycles).share(cycles)
    }
}

/// The key that identifies a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct PathRowKey {
    lane: usize,
    kind: PathKind,
    operation: Option<OperationId>,
    /// The program of rows without an operation.
    program: Option<ProgramId>,
}

/// Sums up the path of a run, or of a window of it; `None` if nothing was executed.
///
/// # Errors
/// Parts of the file that cannot be read.
pub fn path_totals(
    report: &Report,
    window: Option<CycleRange>,
) -> Result<Option<PathTotals>, ReportError> {
    let Some(path) = report.critical_path()? else { return Ok(None) };
    let range = window.map_or(path.range(), |window| window.intersection(path.range()));
    let programs = match window {
        Some(_) => path.programs_in(range)?,
        None => path.programs()?.to_vec(),
    };
    let mut sums = RowSums::new(report)?;
    for program in &programs {
        sums.add(program);
    }
    sums.add_idle(&path, range, window.is_none())?;
    Ok(Some(sums.finish(&path, range.length())?))
}

/// The totals of the steps of a row.
#[derive(Clone, Copy, Default)]
struct RowSum {
    steps: u64,
    cycles: Cycles,
    /// The program with most of the cycles, these cycles, and a step of it.
    program: Option<ProgramId>,
    most: Cycles,
    position: u64,
}

/// Rows under construction.
struct RowSums<'a> {
    report: &'a Report,
    programs: std::sync::Arc<ProgramNodeTable>,
    /// Cycles of a handshake with the host, if the report states them.
    handshake: Option<Cycles>,
    sums: BTreeMap<PathRowKey, RowSum>,
    lanes: BTreeMap<usize, Cycles>,
}

impl<'a> RowSums<'a> {
    fn new(report: &'a Report) -> Result<Self, ReportError> {
        let costs = report.action_costs()?;
        let handshake = costs.iter().find(|cost| cost.action == MachineAction::StreamBegin);
        Ok(Self {
            report,
            programs: report.programs()?,
            handshake: handshake.map(|cost| cost.cycles),
            sums: BTreeMap::new(),
            lanes: BTreeMap::new(),
        })
    }

    fn add(&mut self, of: &PathProgram) {
        let node = of.program.and_then(|id| self.programs.get(id));
        let is_host_call = node.is_some_and(|node| HostCallPart::of_sync(&node.name).is_some());
        let waiting = match self.handshake {
            _ if is_host_call => of.cycles,
            // The begin of a copy waits for all cycles beyond its handshake.
            Some(handshake)
                if of.kind() == ProgramKind::StreamCopyBegin
                    && of.activity() == StepActivity::Host =>
            {
                of.cycles.saturating_sub(handshake.saturating_mul(of.steps))
            }
            _ => Cycles::ZERO,
        };
        let operation = node.and_then(|node| node.operation);
        let program = of.program.filter(|_| operation.is_none());
        let working = of.cycles - waiting;
        let parts =
            [(PathKind::HostWait, waiting), (PathKind::of_activity(of.activity()), working)];
        for (kind, cycles) in parts.into_iter().filter(|(_, cycles)| !cycles.is_zero()) {
            let key = PathRowKey { lane: of.lane, kind, operation, program };
            let sum = self.sums.entry(key).or_default();
            sum.steps += of.steps;
            sum.cycles = sum.cycles.saturating_add(cycles);
            if cycles > sum.most {
                sum.program = of.program;
                sum.most = cycles;
                sum.position = of.position;
            }
        }
        *self.lanes.entry(of.lane).or_default() += of.cycles;
    }

    /// Cycles of the path in which no step was recorded, lane by lane.
    fn add_idle(
        &mut self,
        path: &CriticalPath,
        range: CycleRange,
        is_whole: bool,
    ) -> Result<(), ReportError> {
        let busy: Cycles = self.lanes.values().copied().sum();
        if busy == range.length() {
            return Ok(());
        }
        let mut on_lanes = vec![Cycles::ZERO; path.lane_infos().len()];
        if is_whole {
            let known = path.lanes().iter().map(|lane| lane.path_cycles);
            on_lanes.iter_mut().zip(known).for_each(|(own, cycles)| *own = cycles);
        } else {
            for stretch in path.stretches_in(range, usize::MAX)? {
                let inside = stretch.range.intersection(range).length();
                on_lanes.get_mut(stretch.lane).into_iter().for_each(|own| *own += inside);
            }
        }
        for (lane, cycles) in on_lanes.into_iter().enumerate() {
            let busy = self.lanes.get(&lane).copied().unwrap_or_default();
            let idle = cycles.saturating_sub(busy);
            if !idle.is_zero() {
                let key = PathRowKey { lane, kind: PathKind::Idle, operation: None, program: None };
                self.sums.insert(key, RowSum { cycles: idle, ..RowSum::default() });
            }
        }
        Ok(())
    }

    fn finish(self, path: &CriticalPath, cycles: Cycles) -> Result<PathTotals, ReportError> {
        let operations = self.report.operations()?;
        let classes = self.report.replica_classes()?;
        let all = cycles.as_f64().max(1.0);
        let mut rows = Vec::new();
        for (key, sum) in self.sums {
            let RowSum { steps, cycles, program, position, .. } = sum;
            let lane = path.lane_infos().get(key.lane);
            let at = lane.map(|of| ReplicaIpu { class: of.class, ipu: of.ipu }).unwrap_or_default();
            let sub_lane = lane.map_or(0, |lane| lane.sub_lane);
            let operation = key.operation.and_then(|id| operations.get(id.index()));
            let node = key.program.and_then(|id| self.programs.get(id));
            let name = operation.map(|of| &of.name).or(node.map(|node| &node.name));
            rows.push(PathRow {
                kind: key.kind,
                longest: (key.lane, position),
                ipu: at,
                sub_lane,
                lane: lane_title(&classes, at, sub_lane),
                operation: key.operation,
                program,
                name: name.cloned().unwrap_or_default(),
                block: operation.and_then(|of| of.block.clone()).unwrap_or_default(),
                pass: operation.map(|of| of.pass),
                steps,
                cycles,
                share: cycles.as_f64() / all,
            });
        }
        rows.sort_by_key(|row| Reverse(row.cycles));
        Ok(PathTotals { cycles, rows })
    }
}
