//! The summary of a report: the figures that `tilescope summary` prints and the Summary tab shows.

use crate::confidence::{Banded, Confidence, MemoryFit, MemoryUse, confidence};
use crate::critical_path::{ActivityExposure, IpuSlack, activity_exposures, ipu_slacks};
use crate::host::{self, HostSummary};
use crate::imported_model::{ImportedModelSummary, imported_model};
use crate::limits::{LimitsSummary, limits};
use crate::memory::needed;
use crate::running_costs::{CostSummary, EnergySummary, RunningCosts, running_costs};
use crate::trace::WindowTotals;
use serde::Serialize;
use std::collections::BTreeMap;
use tilescope_report::units::{Bytes, Cycles, IpuId, exact_bytes};
use tilescope_report::{
    GraphCounts, MachineChange, MemoryCategory, MemoryRegion, Report, ReportError, ReportPart,
    StepActivity, Target, TargetKind, TileMemory,
};

/// All figures of a summary.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ReportSummary {
    pub target: TargetSummary,
    pub graph: GraphSummary,
    /// Memory over all tiles of the replica, in bytes; `None` if it was not recorded.
    pub memory: Option<MemorySummary>,
    /// The run; `None` if the program was only compiled.
    pub execution: Option<ExecutionSummary>,
    /// The limits of the run; `None` if the program was only compiled.
    pub limits: Option<LimitsSummary>,
    /// The host; `None` if it was not recorded.
    pub host: Option<HostSummary>,
    /// The file that the model was imported from; `None` for built-in models, and if it is not
    /// known.
    pub model: Option<ImportedModelSummary>,
    /// The energy of the run; `None` if the power of the machine is not known.
    pub energy: Option<EnergySummary>,
    /// The cost of the run; `None` if the price of the machine is not known.
    pub cost: Option<CostSummary>,
    /// The confidence in the figures of the run; `None` if the report does not state the errors of
    /// its predictions, like reports of real machines.
    pub confidence: Option<Confidence>,
}

impl ReportSummary {
    /// The figure of a dotted path with the error band of the model; `None` if that is not known.
    pub fn expected(&self, path: &str) -> Option<Banded> {
        let confidence = self.confidence.as_ref();
        match path {
            "execution.total_cycles" => confidence?.cycles,
            "execution.seconds" => confidence?.seconds,
            "execution.samples_per_second" => confidence?.samples_per_second,
            "memory.max_tile_including_gaps" => self.memory.as_ref()?.fullest_tile,
            _ => None,
        }
    }

    /// Number of tiles that need more memory than they have; 0 if memory was not recorded.
    pub fn out_of_memory_tiles(&self) -> u64 {
        self.memory.as_ref().map_or(0, |memory| memory.out_of_memory_tiles)
    }
}

/// Figures of the machine.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct TargetSummary {
    /// `ipu` or `ipu_model`.
    #[serde(rename = "type")]
    pub kind: &'static str,
    /// Name in a spec, `mk2`, with its changes; `None` if it was not recorded.
    pub machine: Option<String>,
    /// Its differences from a machine that is available for purchase.
    pub machine_changes: Vec<MachineChangeSummary>,
    /// Constants of its simulation that were fitted to a measurement.
    pub calibration: Vec<MachineChangeSummary>,
    /// Generation: `Mk2`.
    pub architecture: String,
    /// IPUs over all replicas.
    pub num_ipus: u32,
    /// Tiles of one IPU.
    pub tiles_per_ipu: u32,
    /// Copies of the program.
    pub replicas: u32,
    /// IPUs of one replica.
    pub ipus_per_replica: u32,
    /// IPUs that work identically for each of them, including itself.
    pub identical_ipus: u32,
    /// Memory of one tile.
    pub bytes_per_tile: Bytes,
    pub clock_hz: u64,
}

/// A constant of the machine that differs from the named one.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct MachineChangeSummary {
    /// Name in a spec, below `target.machine`.
    pub key: String,
    /// Unit of the constant: `bytes_per_cycle`.
    pub unit: &'static str,
    /// The value of the named machine.
    pub inherited: f64,
    pub value: f64,
}

/// Size of the compiled graph of one replica; `None` for figures that were not recorded.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct GraphSummary {
    /// Number of compute sets.
    pub compute_sets: Option<u64>,
    pub vertices: Option<u64>,
    pub edges: Option<u64>,
    /// Number of lowered variables.
    pub variables: Option<u64>,
}

/// Memory over all tiles of the replica, in bytes.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct MemorySummary {
    /// Bytes that are ever used.
    pub total_excluding_gaps: Bytes,
    /// Bytes below the highest used address of each tile, summed over tiles.
    pub total_including_gaps: Bytes,
    /// Bytes of the fullest tile.
    pub max_tile_including_gaps: Bytes,
    /// Used bytes of each region.
    pub by_region: BTreeMap<&'static str, Bytes>,
    /// Used bytes of each category.
    pub by_category: BTreeMap<&'static str, Bytes>,
    /// Bytes that are always live.
    pub always_live: Bytes,
    /// The most other bytes that are live at one step of the program.
    pub peak_not_always_live: Bytes,
    /// Sum over tiles of the most other bytes that are live on the tile at one step.
    pub sum_of_tile_peaks: Bytes,
    /// Number of tiles that need more memory than they have.
    pub out_of_memory_tiles: u64,
    /// The answer to whether the fullest tile fits in the memory of a tile.
    pub fit: MemoryFit,
    /// The fullest tile, with the error band of the model; `None` if the report does not state it.
    pub fullest_tile: Option<Banded>,
}

impl MemorySummary {
    /// Names and texts of the answer to whether the program fits, in the order of the views.
    pub fn rows_of_fit(&self) -> impl Iterator<Item = (&'static str, String)> {
        let band = self.fullest_tile.map(|tile| {
            let words = tile.words_with(|bytes| exact_bytes(Bytes::from_f64(bytes.round()).0), "");
            ("Fullest tile, expected", words)
        });
        band.into_iter().chain([("Fits in memory", self.fit.words().to_owned())])
    }
}

/// Figures of the execution.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ExecutionSummary {
    /// Cycles from the first step to the end of the last.
    pub total_cycles: Cycles,
    /// The same at the target's clock.
    pub seconds: f64,
    /// Samples processed, if the model works on batches.
    pub samples: Option<u64>,
    /// Samples per second of device time.
    pub samples_per_second: Option<f64>,
    /// Figures of each IPU of the replica.
    pub ipus: Vec<IpuSummary>,
    /// Cycles of the critical path by activity, and their exposure; empty if the path is not known.
    pub critical_path: Vec<ActivityExposure>,
    /// The part of the path on each lane, with its slack and lead; empty if the path is not known.
    pub slack: Vec<IpuSlack>,
}

/// Cycles of one IPU by activity.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct IpuSummary {
    pub steps: u64,
    /// Shares of the run; they add up to 1.
    pub proportions: ActivityProportions,
    /// Mean share of tiles that work while the IPU is not waiting.
    pub tile_balance: f64,
}

/// Shares of a window by activity.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct ActivityProportions {
    pub compute: f64,
    pub internal_exchange: f64,
    pub global_exchange: f64,
    pub host: f64,
    pub remote_buffer: f64,
    /// Waits at a sync.
    pub sync: f64,
    /// Steps of unknown kind.
    pub other: f64,
    pub idle: f64,
}

impl ActivityProportions {
    /// Names and shares, in the order of the views.
    pub fn iter(&self) -> impl Iterator<Item = (&'static str, f64)> {
        let activities = StepActivity::ALL.map(|activity| (activity.name(), self.of(activity)));
        activities.into_iter().chain([("idle", self.idle)])
    }

    /// The share of an activity.
    #[must_use]
    pub fn of(&self, activity: StepActivity) -> f64 {
        match activity {
            StepActivity::Compute => self.compute,
            StepActivity::InternalExchange => self.internal_exchange,
            StepActivity::GlobalExchange => self.global_exchange,
            StepActivity::Host => self.host,
            StepActivity::RemoteBuffer => self.remote_buffer,
            StepActivity::Sync => self.sync,
            StepActivity::Other => self.other,
        }
    }

    /// The shares of the window of some totals; the remainder is idle.
    pub(crate) fn new(of: &WindowTotals) -> Self {
        let share = |activity| of.share(activity).value();
        Self {
            compute: share(StepActivity::Compute),
            internal_exchange: share(StepActivity::InternalExchange),
            global_exchange: share(StepActivity::GlobalExchange),
            host: share(StepActivity::Host),
            remote_buffer: share(StepActivity::RemoteBuffer),
            sync: share(StepActivity::Sync),
            other: share(StepActivity::Other),
            idle: of.idle().value(),
        }
    }
}

/// Activities in which tiles work; waits at a sync are excluded.
pub(crate) const WORKING: [StepActivity; 6] = [
    StepActivity::Compute,
    StepActivity::InternalExchange,
    StepActivity::GlobalExchange,
    StepActivity::Host,
    StepActivity::RemoteBuffer,
    StepActivity::Other,
];

/// Summarizes a report.
///
/// # Errors
/// Parts of the file that cannot be read.
pub fn summary(report: &Report) -> Result<ReportSummary, ReportError> {
    let target = report.target()?;
    let execution = execution(report, &target)?;
    let RunningCosts { energy, cost } = running_costs(report, execution.as_ref())?;
    let confidence = match &execution {
        Some(run) => confidence(report, (run.total_cycles, run.seconds), run.samples_per_second)?,
        None => None,
    };
    let memory =
        if report.has(ReportPart::TileMemory) { Some(memory(report, &target)?) } else { None };
    Ok(ReportSummary {
        target: target_summary(&target),
        graph: graph_summary(report.graph()?),
        memory,
        execution,
        limits: limits(report)?.run.as_ref().map(|run| run.summary()),
        host: host::host(report)?,
        model: imported_model(report)?,
        energy,
        cost,
        confidence,
    })
}

fn target_summary(target: &Target) -> TargetSummary {
    TargetSummary {
        machine: Some(target.machine_name()).filter(|name| !name.is_empty()),
        machine_changes: target.machine_changes().map(machine_change).collect(),
        calibration: target.calibration().map(machine_change).collect(),
        kind: match target.kind {
            TargetKind::Ipu => "ipu",
            TargetKind::IpuModel => "ipu_model",
        },
        architecture: target.architecture.clone(),
        num_ipus: target.num_ipus,
        tiles_per_ipu: target.tiles_per_ipu,
        replicas: target.replicas,
        ipus_per_replica: target.ipus_per_replica,
        identical_ipus: target.identical_ipus(),
        bytes_per_tile: target.bytes_per_tile,
        clock_hz: target.clock.0,
    }
}

fn machine_change(change: &MachineChange) -> MachineChangeSummary {
    MachineChangeSummary {
        key: change.key.clone(),
        unit: change.unit.name(),
        inherited: change.inherited,
        value: change.value,
    }
}

fn graph_summary(graph: GraphCounts) -> GraphSummary {
    GraphSummary {
        compute_sets: if_recorded(graph.compute_sets),
        vertices: if_recorded(graph.vertices),
        edges: if_recorded(graph.edges),
        variables: if_recorded(graph.variables),
    }
}

/// A count of the graph; `None` if it is 0, as every compiled program has some of each.
fn if_recorded(count: u64) -> Option<u64> {
    if count > 0 { Some(count) } else { None }
}

fn memory(report: &Report, target: &Target) -> Result<MemorySummary, ReportError> {
    let tiles = report.tile_memory()?;
    let sum_up = |bytes: fn(&TileMemory) -> Bytes| -> Bytes {
        tiles.iter().map(|(range, tile)| bytes(tile) * u64::from(range.count())).sum()
    };
    let categories = report.tile_categories()?;
    let used = MemoryUse::new(&report.program_errors()?, &tiles, &categories);
    let by_region = BTreeMap::from([
        (MemoryRegion::NonInterleaved.name(), sum_up(|tile| tile.non_interleaved)),
        (MemoryRegion::Interleaved.name(), sum_up(|tile| tile.interleaved)),
        (MemoryRegion::Overflowed.name(), sum_up(|tile| tile.overflowed)),
    ]);
    let by_category = bytes_by_category(report)?.into_iter();
    let live = report.liveness()?;
    Ok(MemorySummary {
        total_excluding_gaps: sum_up(TileMemory::excluding_gaps),
        total_including_gaps: sum_up(needed),
        max_tile_including_gaps: used.fullest,
        by_region,
        by_category: by_category.map(|(category, bytes)| (category.name(), bytes)).collect(),
        always_live: sum_up(|tile| tile.always_live),
        peak_not_always_live: live.iter().map(|step| step.bytes).max().unwrap_or(Bytes::ZERO),
        sum_of_tile_peaks: sum_up(|tile| tile.peak_not_always_live),
        out_of_memory_tiles: used.over,
        fit: used.fit(target.bytes_per_tile),
        fullest_tile: used.expected,
    })
}

/// Bytes of each category over all tiles.
pub(crate) fn bytes_by_category(
    report: &Report,
) -> Result<BTreeMap<MemoryCategory, Bytes>, ReportError> {
    let mut sums = BTreeMap::new();
    for (range, parts) in report.tile_categories()?.iter() {
        for part in parts {
            let bytes = part.bytes * u64::from(range.count());
            *sums.entry(part.category).or_default() += bytes;
        }
    }
    Ok(sums)
}

fn execution(report: &Report, target: &Target) -> Result<Option<ExecutionSummary>, ReportError> {
    let Some(trace) = report.trace()? else { return Ok(None) };
    let mut ipus = Vec::new();
    for ipu in (0..target.ipus_per_replica).map(IpuId) {
        let Some(lane) = trace.lane_of(ipu, 0) else { continue };
        let of = WindowTotals::read_all(lane, &trace)?;
        ipus.push(IpuSummary {
            steps: of.totals.steps,
            proportions: ActivityProportions::new(&of),
            tile_balance: of.totals.tile_balance(&WORKING).unwrap_or(0.0),
        });
    }
    let cycles = trace.range().length();
    let seconds = cycles.seconds_at(target.clock);
    let samples = run_work(report)?.samples;
    Ok(Some(ExecutionSummary {
        total_cycles: cycles,
        seconds,
        samples,
        samples_per_second: samples.map(|samples| samples as f64 / seconds.max(f64::MIN_POSITIVE)),
        ipus,
        critical_path: activity_exposures(report)?,
        slack: ipu_slacks(report)?,
    }))
}

/// The amount of work of a report.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct RunWork {
    /// Calls of the host; at least 1.
    pub runs: u64,
    /// Weight updates, or iterations of the loop of an inference program, if known.
    pub updates: Option<u64>,
    /// Samples of all replicas, if known.
    pub samples: Option<u64>,
}

/// The amount of work of a report over its whole run.
///
/// # Errors
/// Parts of the file that cannot be read.
pub fn run_work(report: &Report) -> Result<RunWork, ReportError> {
    let runs = report.runs()?.len().max(1) as u64;
    let Some(batching) = report.batching()? else {
        return Ok(RunWork { runs, updates: None, samples: None });
    };
    Ok(RunWork {
        runs,
        updates: Some(batching.device_iterations.saturating_mul(runs)),
        samples: Some(batching.samples_per_call().saturating_mul(runs)),
    })
}
