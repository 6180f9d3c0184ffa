//! The share of the peak that a run achieves, and a waterfall of all other cycles.

use super::cycle_class::CycleClass;
use super::program_limits::LimitsOfPrograms;
use super::{LimitsRow, Machine};
use crate::label_conventions::is_recomputed;
use serde::Serialize;
use std::ops::{Index, IndexMut};
use tilescope_report::units::{Cycles, IpuId};
use tilescope_report::{ArithmeticType, ComputeEngine};

/// A destination of the cycles of a run between the peak and the achieved FLOPs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum WaterfallStep {
    /// Cycles without a running step.
    Idle,
    /// Waits for others, and the starts of compute sets and exchanges.
    SyncAndStart,
    Host,
    /// Waiting for the host.
    HostWait,
    RemoteBuffers,
    /// Exchanges between IPUs.
    Links,
    /// Exchanges between tiles.
    Exchange,
    Rearrangement,
    /// Steps of unknown kind.
    Other,
    /// Tiles that wait in compute sets.
    Balance,
    /// Compute sets whose FLOPs or idle tiles were not recorded.
    Unknown,
    /// Engines below their peak, and work other than floating point operations.
    BelowPeak,
    /// Arithmetic on padding.
    Padding,
    /// Engines that are slower than the peak of the matrix engine.
    SlowerEngine,
    /// Repeated computations in the backward pass.
    Recomputation,
    /// The remainder: the FLOPs that results need.
    Achieved,
}

impl WaterfallStep {
    /// Every step, from the peak down.
    pub const ALL: [WaterfallStep; 16] = [
        Self::Idle,
        Self::SyncAndStart,
        Self::Host,
        Self::HostWait,
        Self::RemoteBuffers,
        Self::Links,
        Self::Exchange,
        Self::Rearrangement,
        Self::Other,
        Self::Balance,
        Self::Unknown,
        Self::BelowPeak,
        Self::Padding,
        Self::SlowerEngine,
        Self::Recomputation,
        Self::Achieved,
    ];

    /// The title of the step.
    pub fn title(self) -> &'static str {
        match self {
            Self::Idle => "Idle",
            Self::SyncAndStart => "Sync and start",
            Self::Host => "Host",
            Self::HostWait => "Host wait",
            Self::RemoteBuffers => "Remote buffers",
            Self::Links => "Links",
            Self::Exchange => "Exchange",
            Self::Rearrangement => "Rearrangement",
            Self::Other => "Other",
            Self::Balance => "Tile balance",
            Self::Unknown => "Compute, unclassified",
            Self::BelowPeak => "Lost below engine peak",
            Self::Padding => "Padding",
            Self::SlowerEngine => "Lost to slower engine",
            Self::Recomputation => "Recomputation",
            Self::Achieved => "Achieved",
        }
    }

    /// The definition of the step.
    pub fn about(self) -> &'static str {
        match self {
            Self::Idle => "Cycles of the run in which the compute tiles of an IPU have no step",
            Self::SyncAndStart => CycleClass::SyncAndStart.about(),
            Self::Host => CycleClass::Host.about(),
            Self::HostWait => CycleClass::HostWait.about(),
            Self::RemoteBuffers => CycleClass::RemoteBuffers.about(),
            Self::Links => CycleClass::Links.about(),
            Self::Exchange => CycleClass::Exchange.about(),
            Self::Rearrangement => CycleClass::Rearrangement.about(),
            Self::Other => CycleClass::Other.about(),
            Self::Balance => CycleClass::Balance.about(),
            Self::Unknown => {
                "Cycles of compute sets. The report does not record what they compute, or which \
                 tiles wait"
            }
            Self::BelowPeak => {
                "Cycles in which tiles work - FLOPs of their vertices / (peak of their engine x \
                 tiles of the IPU): weights are loaded, loops begin and end, sums are added, types \
                 are cast"
            }
            Self::Padding => {
                "(FLOPs that vertices of convolutions and products do - FLOPs their results need) \
                 / (peak of their engine x tiles of the IPU)"
            }
            Self::SlowerEngine => {
                "FLOPs / (peak of their engine x tiles) - FLOPs / (peak of the matrix engine x \
                 tiles): vector units, and sums that are kept as float"
            }
            Self::Recomputation => {
                "FLOPs of operations that the backward pass runs again / (peak of the matrix \
                 engine x tiles of the IPU)"
            }
            Self::Achieved => {
                "FLOPs that results need / (peak of the matrix engine for their data type x tiles \
                 of the IPU)"
            }
        }
    }
}

/// Cycles by waterfall step.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct WaterfallCycles([Cycles; WaterfallStep::ALL.len()]);

impl WaterfallCycles {
    /// Steps with their cycles, from the peak down.
    pub fn iter(&self) -> impl Iterator<Item = (WaterfallStep, Cycles)> {
        WaterfallStep::ALL.into_iter().zip(self.0)
    }

    /// Sum over all steps: cycles of the run x IPUs.
    pub fn total(&self) -> Cycles {
        self.0.into_iter().fold(Cycles::ZERO, Cycles::saturating_add)
    }

    /// A step as a share of the total.
    pub fn share(&self, step: WaterfallStep) -> f64 {
        self[step].as_f64() / self.total().max(Cycles(1)).as_f64()
    }

    fn add(&mut self, other: &Self) {
        for (sum, more) in self.0.iter_mut().zip(other.0) {
            *sum = sum.saturating_add(more);
        }
    }
}

impl Index<WaterfallStep> for WaterfallCycles {
    type Output = Cycles;

    fn index(&self, step: WaterfallStep) -> &Cycles {
        &self.0[step as usize]
    }
}

impl IndexMut<WaterfallStep> for WaterfallCycles {
    fn index_mut(&mut self, step: WaterfallStep) -> &mut Cycles {
        &mut self.0[step as usize]
    }
}

/// The reason that the utilisation of a run is not known.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum UnknownUtilisation {
    NoOperations,
    NoRuns,
    NotCounted,
    UnknownChip,
}

impl UnknownUtilisation {
    /// The reason as a sentence.
    pub fn sentence(self) -> &'static str {
        match self {
            Self::NoOperations => {
                "The report has no operations of the model, so FLOPs are unknown."
            }
            Self::NoRuns => {
                "The report does not record how often operations run in loops, so FLOPs are \
                 unknown. tilescope records this since format 2.6."
            }
            Self::NotCounted => {
                "FLOPs were not counted, so the achieved FLOPs per second are \
                                 unknown."
            }
            Self::UnknownChip => "The peak is unknown because the chip is.",
        }
    }
}

/// The peak of the matrix engine for a data type.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct PeakOfType {
    /// The name of the type: quarter, half or float.
    #[serde(rename = "type")]
    pub name: &'static str,
    /// Peak of one IPU.
    pub flops_per_cycle: f64,
    /// The same per second; `None` if the clock is not known.
    pub flops_per_second: Option<f64>,
    /// FLOPs of the run in that type that its results need, without recomputation.
    pub flops: u64,
}

/// The limits of a run, as figures of a summary.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct LimitsSummary {
    /// Share of the peak of all IPUs of a replica over the whole run; `None` if not known.
    pub utilisation: Option<f64>,
    /// The reason if it is not known.
    pub unknown: Option<UnknownUtilisation>,
    /// FLOPs of a replica that results need, without recomputation; `None` if not known.
    pub flops: Option<u64>,
    /// Cycles of the run x IPUs of a replica: the whole of the waterfall's shares.
    pub ipu_cycles: Cycles,
    /// The reference peaks, by the data types of operations.
    pub peaks: Vec<PeakOfType>,
    /// These cycles by step, from the peak down; steps without cycles are left out.
    pub waterfall: Vec<WaterfallShare>,
}

/// A step of a waterfall with its share.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct WaterfallShare {
    pub step: WaterfallStep,
    pub cycles: Cycles,
    pub share: f64,
}

/// The part of the peak of all IPUs of a replica that a run achieves.
#[derive(Clone, Debug, PartialEq)]
pub struct RunLimits {
    /// Cycles of the run on each IPU.
    pub ipus: Vec<(IpuId, WaterfallCycles)>,
    /// Sum over all IPUs.
    pub all: WaterfallCycles,
    /// Peaks of the data types of the run, the one with the most FLOPs first.
    pub peaks: Vec<PeakOfType>,
    /// The reason that [`RunLimits::utilisation`] is not known.
    pub unknown: Option<UnknownUtilisation>,
}

impl RunLimits {
    /// FLOPs that results need, without recomputation.
    pub fn flops(&self) -> u64 {
        self.peaks.iter().map(|peak| peak.flops).fold(0, u64::saturating_add)
    }

    /// The achieved share of the peak, over all IPUs and the whole run.
    pub fn utilisation(&self) -> Option<f64> {
        if self.unknown.is_none() { Some(self.all.share(WaterfallStep::Achieved)) } else { None }
    }

    /// The figures for a summary.
    pub fn summary(&self) -> LimitsSummary {
        let mut waterfall = Vec::new();
        for (step, cycles) in self.all.iter() {
            if !cycles.is_zero() {
                waterfall.push(WaterfallShare { step, cycles, share: self.all.share(step) });
            }
        }
        LimitsSummary {
            utilisation: self.utilisation(),
            unknown: self.unknown,
            flops: if self.unknown.is_none() { Some(self.flops()) } else { None },
            ipu_cycles: self.all.total(),
            peaks: self.peaks.clone(),
            waterfall,
        }
    }

    /// The waterfall of one IPU, or of all IPUs.
    pub fn waterfall(&self, ipu: Option<IpuId>) -> Option<&WaterfallCycles> {
        match ipu {
            None => Some(&self.all),
            Some(ipu) => self.ipus.iter().find(|(known, _)| *known == ipu).map(|(_, of)| of),
        }
    }

    /// Creates the limits of a run from all its steps and operations, on the given number of IPUs.
    pub(super) fn new(
        programs: &LimitsOfPrograms,
        rows: &[LimitsRow],
        machine: &Machine,
        ipus: u32,
        unknown: Option<UnknownUtilisation>,
    ) -> Self {
        let run = programs.run.length();
        let mut waterfalls = Vec::new();
        let mut all = WaterfallCycles::default();
        for ipu in (0..ipus).map(IpuId) {
            let mut cycles = WaterfallCycles::default();
            let known = programs.ipus.iter().find(|of| of.ipu == ipu).map(|of| of.cycles);
            let classes = known.unwrap_or_default();
            for (class, amount) in classes.iter() {
                cycles[step_of(class)] = amount;
            }
            cycles[WaterfallStep::Idle] = run.saturating_sub(classes.total());
            if unknown.is_none() {
                split_compute(&mut cycles, rows.iter().filter(|row| row.ipu == Some(ipu)));
            }
            all.add(&cycles);
            waterfalls.push((ipu, cycles));
        }
        let peaks = if unknown.is_none() { peaks(rows, machine) } else { Vec::new() };
        Self { ipus: waterfalls, all, peaks, unknown }
    }
}

fn step_of(class: CycleClass) -> WaterfallStep {
    match class {
        CycleClass::Compute => WaterfallStep::Unknown,
        CycleClass::Balance => WaterfallStep::Balance,
        CycleClass::Exchange => WaterfallStep::Exchange,
        CycleClass::Rearrangement => WaterfallStep::Rearrangement,
        CycleClass::SyncAndStart => WaterfallStep::SyncAndStart,
        CycleClass::Host => WaterfallStep::Host,
        CycleClass::HostWait => WaterfallStep::HostWait,
        CycleClass::RemoteBuffers => WaterfallStep::RemoteBuffers,
        CycleClass::Links => WaterfallStep::Links,
        CycleClass::Other => WaterfallStep::Other,
    }
}

/// Divides the compute cycles of an IPU by waterfall step, according to its operations.
fn split_compute<'a>(cycles: &mut WaterfallCycles, rows: impl Iterator<Item = &'a LimitsRow>) {
    let mut left = std::mem::take(&mut cycles[WaterfallStep::Unknown]);
    // Limited to the remainder, to preserve the sum.
    let mut take = |step: WaterfallStep, amount: Cycles| {
        let taken = amount.min(left);
        left = left.saturating_sub(taken);
        cycles[step] = cycles[step].saturating_add(taken);
    };
    for row in rows {
        let Some(split) = row.limits.compute else { continue };
        let again = is_recomputed(&row.name);
        let done = if again { WaterfallStep::Recomputation } else { WaterfallStep::Achieved };
        take(done, split.at_amp_peak);
        take(WaterfallStep::SlowerEngine, split.at_peak.saturating_sub(split.at_amp_peak));
        take(WaterfallStep::Padding, split.padding);
    }
    cycles[WaterfallStep::BelowPeak] = left;
}

fn peaks(rows: &[LimitsRow], machine: &Machine) -> Vec<PeakOfType> {
    let mut peaks = Vec::new();
    for input in ArithmeticType::ALL {
        let peak = machine.limits.peak_flops_per_cycle(ComputeEngine::Amp, input);
        let Some(peak) = peak else { continue };
        let mut flops = 0u64;
        for row in rows {
            let is_own = row.limits.engine.is_some_and(|engine| engine.rate.input == input);
            if is_own && !is_recomputed(&row.name) {
                flops = flops.saturating_add(row.limits.flops.unwrap_or(0));
            }
        }
        if flops > 0 {
            let flops_per_cycle = machine.ipu_flops_per_cycle(peak);
            peaks.push(PeakOfType {
                name: input.name(),
                flops_per_cycle,
                flops_per_second: machine.clock.map(|clock| flops_per_cycle * clock.0 as f64),
                flops,
            });
        }
    }
    peaks.sort_by_key(|peak| std::cmp::Reverse(peak.flops));
    peaks
}
