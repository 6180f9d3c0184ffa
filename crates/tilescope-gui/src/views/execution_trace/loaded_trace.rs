//! The data of the trace that does not change while a report is open.

use super::layers::links;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use tilescope_analysis::replica_classes::{ipu_words, sentence};
use tilescope_analysis::trace::{
    InterIpuTransfers, MAX_ROWS, MarkRows, ProgramLabels, ReplicaWaits, TileWorkTimes,
    TraceLaneStyle, narrow_step_cycles,
};
use tilescope_report::trace::{CriticalPath, Trace};
use tilescope_report::units::{CycleRange, Cycles, IpuId, ReplicaIpu, grouped};
use tilescope_report::{
    MarkFilter, MarkKind, ReplicaClasses, ReplicaWait, Report, ReportError, ReportOrigin,
    ReportPart, StepActivity, Target,
};

/// The largest number of marks that are read before the first frame. Longer runs show lanes before
/// marks.
const FEW_MARKS: u64 = 200_000;

/// The largest number of replicas that have lanes high enough for names. More are thin.
const MOST_TALL: u32 = 8;
/// The largest number of replicas that are shown.
const MOST_UNFOLDED: u32 = 1_024;

/// The lanes of one IPU.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct IpuLanes {
    /// The IPU and its replicas.
    pub at: ReplicaIpu,
    /// The tile groups of the IPU.
    pub sub_lanes: Vec<u8>,
    /// The executed steps on all of them.
    pub steps: u64,
    /// The number of flame rows of each tile group.
    pub flame_rows: Vec<u32>,
}

/// The relation of the other replicas to the one whose lanes a report has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ReplicasAlike {
    /// This many replicas behave identically, according to the simulator.
    Alike(u32),
    /// This many replicas run the same program and wait differently; the report has lanes of all.
    Differ(u32),
    /// This many replicas differ, but a file before version 2.4 has the lanes of replica 0 alone.
    Unequal(u32),
    /// One of this many replicas was profiled.
    OneProfiled(u32),
}

impl ReplicasAlike {
    fn of(
        target: &Target,
        ipus: usize,
        origin: ReportOrigin,
        (waits, classes): (&[ReplicaWait], &ReplicaClasses),
    ) -> Option<Self> {
        // A report may already have the lanes of all replicas, which stay as they are.
        let one = ipus <= target.ipus_per_replica as usize && target.replicas > 1;
        if one {
            Some(match origin {
                ReportOrigin::Tilescope if classes.differ() => Self::Differ(target.replicas),
                ReportOrigin::Tilescope if !waits.is_empty() => Self::Unequal(target.replicas),
                ReportOrigin::Tilescope => Self::Alike(target.replicas),
                ReportOrigin::Foreign => Self::OneProfiled(target.replicas),
            })
        } else {
            None
        }
    }

    /// Describes the replicas: `4 replicas alike; one is shown`. `in_short` omits the differences
    /// between replicas.
    pub(crate) fn words(self, classes: &ReplicaClasses, unfolded: bool, in_short: bool) -> String {
        let all = if self.count() > MOST_UNFOLDED {
            format!("the first {} are shown", grouped(MOST_UNFOLDED.into()))
        } else {
            "all are shown".to_owned()
        };
        let shown = if unfolded { &*all } else { "one is shown" };
        match self {
            Self::Alike(count) => format!("{} identical replicas; {shown}", grouped(count.into())),
            Self::Differ(count) => {
                let shown = if unfolded {
                    format!("{all}, below marks of replica 0")
                } else {
                    "replica 0 is shown".to_owned()
                };
                let ways = grouped(classes.classes.len() as u64);
                let long = sentence(classes).filter(|_| !in_short);
                let short = || format!("{} replicas differ in {ways} ways", grouped(count.into()));
                format!("{}; {shown}", long.unwrap_or_else(short))
            }
            Self::Unequal(count) => format!(
                "{} replicas with different waits (see Summary: Host); replica 0 is shown",
                grouped(count.into())
            ),
            Self::OneProfiled(count) => {
                format!("{} replicas; one was profiled", grouped(count.into()))
            }
        }
    }

    /// The number of replicas whose lanes can be shown.
    pub(crate) fn count(self) -> u32 {
        match self {
            Self::Alike(count) | Self::Differ(count) => count,
            Self::Unequal(_) | Self::OneProfiled(_) => 1,
        }
    }

    /// The replicas that have lanes when they are unfolded.
    pub(crate) fn unfolded(self) -> Vec<u32> {
        (0..self.count().min(MOST_UNFOLDED)).collect()
    }
}

/// The data of the trace that does not change while a report is open.
pub(crate) struct LoadedTrace {
    pub trace: Trace,
    pub labels: ProgramLabels,
    /// The range from the first cycle to the last.
    pub range: CycleRange,
    pub ipus: Vec<IpuLanes>,
    /// The IPUs of replicas that differ from replica 0.
    pub other_ipus: Vec<IpuLanes>,
    /// The classes of alike replicas, if replicas differ.
    pub classes: ReplicaClasses,
    /// The waits of replicas; `None` if all are alike.
    pub waits: Option<ReplicaWaits>,
    /// The kinds of marks in the report.
    pub mark_kinds: Vec<MarkKind>,
    /// The traffic of programs between IPUs.
    pub links: InterIpuTransfers,
    pub target: Arc<Target>,
    /// The relation of the other replicas to the visible one; `None` with one replica.
    pub alike: Option<ReplicasAlike>,
    /// True if anything is copied from or to the host.
    pub host: bool,
    /// The largest number of bytes per cycle that the links of an IPU carry each way, or the reason
    /// it is not drawn; `None` if no exchange between IPUs ran.
    pub link_limit: Option<Result<f64, &'static str>>,
    /// True if the number of tiles that work in a step is known.
    pub balance: bool,
    /// True if the start and end of each tile in each step were measured.
    pub measured: bool,
    /// The cycles per pixel from which nearly all steps are narrower than a pixel.
    pub narrow_steps: Option<Cycles>,
    /// The cycles of each tile, read on first use.
    tile_times: OnceLock<TileWorkTimes>,
    marks: OnceLock<MarkRows>,
    path: OnceLock<Option<CriticalPath>>,
}

impl LoadedTrace {
    /// The largest number of bytes per cycle that the links of an IPU carry each way, if that is
    /// drawn.
    pub(super) fn known_link_limit(&self) -> Option<f64> {
        self.link_limit.and_then(Result::ok)
    }

    /// The critical path, once it is found.
    pub(crate) fn known_path(&self) -> Option<&CriticalPath> {
        self.path.get()?.as_ref()
    }

    /// Finds the critical path. It is stored in newer reports; older ones need a pass over all
    /// steps.
    pub(crate) fn find_path(&self, report: &Report) -> Result<(), ReportError> {
        if self.path.get().is_none() {
            let path = report.critical_path()?;
            // Two threads may have found it at once; both results are equal, and the first one
            // stays.
            self.path.get_or_init(|| path);
        }
        Ok(())
    }

    /// All marks, once they are read.
    pub(crate) fn known_marks(&self) -> Option<&MarkRows> {
        self.marks.get()
    }

    /// Reads the marks of a run that has too many to read up front.
    pub(crate) fn read_marks(&self, report: &Report) -> Result<(), ReportError> {
        if self.marks.get().is_none()
            && let Some(marks) = MarkRows::read(report, &self.ipu_ids(), u64::MAX)?
        {
            // Two threads may have read them at once; both results are equal, and the first ones
            // stay.
            self.marks.get_or_init(|| marks);
        }
        Ok(())
    }

    fn ipu_ids(&self) -> Vec<IpuId> {
        self.ipus.iter().map(|lanes| lanes.at.ipu).collect()
    }

    /// The lanes of an IPU of a replica class.
    pub(crate) fn lanes_at(&self, at: ReplicaIpu) -> Option<&IpuLanes> {
        self.ipus.iter().chain(&self.other_ipus).find(|lanes| lanes.at == at)
    }

    /// The lanes of a replica.
    pub(crate) fn lanes_of(&self, replica: u32) -> Vec<&IpuLanes> {
        let class = self.classes.class_of(replica);
        let all = self.ipus.iter().chain(&self.other_ipus);
        all.filter(|lanes| lanes.at.class == class).collect()
    }

    /// `IPU 1`, or `IPU 1 of replicas 2, 3` if replicas differ.
    pub(crate) fn ipu_words(&self, at: ReplicaIpu) -> String {
        ipu_words(&self.classes, at)
    }

    /// The work of each tile in each program, once the raster of tiles has requested it.
    pub(crate) fn known_tile_times(&self) -> Option<&TileWorkTimes> {
        self.tile_times.get()
    }

    /// The work of each tile in each program, read on first use.
    pub(crate) fn tile_times(&self, report: &Report) -> Result<&TileWorkTimes, ReportError> {
        match self.tile_times.get() {
            Some(times) => Ok(times),
            None => {
                let times = TileWorkTimes::read(report)?;
                // Two threads may have read it at once; both results are equal, and the first one
                // stays.
                Ok(self.tile_times.get_or_init(|| times))
            }
        }
    }
}

/// Reads the constant data; `None` if nothing was executed.
pub(crate) fn prepare(
    report: &Report,
    progress: &Arc<AtomicU64>,
    cancel: &Arc<AtomicBool>,
) -> Result<Option<LoadedTrace>, ReportError> {
    // Per mille, because an integer can be shared between threads without a lock.
    let mut tell = |share: f64| progress.store((share * 1000.0) as u64, Ordering::Relaxed);
    report.prepare_trace(&mut tell, cancel)?;
    let Some(trace) = report.trace()? else { return Ok(None) };
    if trace.bars() == 0 {
        return Ok(None);
    }
    let labels = ProgramLabels::new(&*report.programs()?);
    let mut mark_kinds = Vec::new();
    for kind in MarkKind::ALL {
        // One mark is enough to show that its kind needs a row.
        let filter = MarkFilter { kind: Some(kind), ipu: None, window: None, limit: 1 };
        if !report.marks(&filter)?.is_empty() {
            mark_kinds.push(kind);
        }
    }
    let ipus = ipu_lanes(&trace, &labels);
    let range = trace.range();
    let mut host = false;
    let mut exchanged = false;
    for info in trace.lanes() {
        let lane = trace.lane_of(info.ipu, info.sub_lane);
        let totals = lane.map(|lane| lane.totals(range)).transpose()?;
        let is_spent =
            |activity| totals.is_some_and(|totals| totals.cycles[activity] > Cycles::ZERO);
        host |= is_spent(StepActivity::Host);
        exchanged |= is_spent(StepActivity::GlobalExchange);
    }
    let target = report.target()?;
    let waits = report.host()?.map_or(Vec::new(), |host| host.replicas);
    let classes = report.replica_classes()?;
    let others = trace.classes().skip(1).flat_map(|trace| ipu_lanes(&trace, &labels)).collect();
    let differ = (&waits[..], &classes);
    let loaded = LoadedTrace {
        alike: ReplicasAlike::of(&target, ipus.len(), report.origin(), differ),
        other_ipus: others,
        waits: ReplicaWaits::read(&trace, &classes)?,
        classes,
        links: InterIpuTransfers::read(report)?,
        target,
        host,
        link_limit: exchanged.then(|| links::limit(report)).transpose()?,
        balance: report.has(ReportPart::ActiveTiles),
        measured: report.has_tile_samples(),
        // With damaged totals by program, the trace shows bars.
        narrow_steps: narrow_step_cycles(&trace).ok(),
        range,
        trace,
        labels,
        ipus,
        mark_kinds,
        tile_times: OnceLock::new(),
        marks: OnceLock::new(),
        path: OnceLock::new(),
    };
    if let Some(marks) = MarkRows::read(report, &loaded.ipu_ids(), FEW_MARKS)? {
        loaded.marks.get_or_init(|| marks);
    }
    Ok(Some(loaded))
}

fn ipu_lanes(trace: &Trace, labels: &ProgramLabels) -> Vec<IpuLanes> {
    let mut ipus: Vec<IpuLanes> = Vec::new();
    for lane in trace.lanes() {
        // Lanes are sorted by IPU, then sub-lane.
        let at = ReplicaIpu { class: lane.class, ipu: lane.ipu };
        if ipus.last().is_none_or(|ipu| ipu.at != at) {
            let sub_lanes = Vec::new();
            let flame_rows = Vec::new();
            ipus.push(IpuLanes { at, sub_lanes, steps: 0, flame_rows });
        }
        if let Some(ipu) = ipus.last_mut() {
            ipu.sub_lanes.push(lane.sub_lane);
            ipu.steps += lane.steps;
            // Tiles other than compute tiles only copy: a parent and its parts.
            let rows = if lane.sub_lane == 0 { labels.rows().clamp(2, MAX_ROWS) } else { 2 };
            ipu.flame_rows.push(rows);
        }
    }
    ipus
}

/// True if this many replicas have thin lanes, so that they can be compared at a glance.
pub(crate) fn are_thin(replicas: &[u32]) -> bool {
    replicas.len() > MOST_TALL as usize
}

/// The number of rows of each tile group.
pub(crate) fn rows_of(lanes: &IpuLanes, style: TraceLaneStyle) -> Vec<u32> {
    match style {
        TraceLaneStyle::Flame => lanes.flame_rows.clone(),
        TraceLaneStyle::Flat => vec![1; lanes.sub_lanes.len()],
    }
}
