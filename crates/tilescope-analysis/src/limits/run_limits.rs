//! What a run achieves of the peak, and where the rest goes: a waterfall that adds up.

use super::cycle_class::CycleClass;
use super::program_limits::LimitsOfPrograms;
use super::{LimitsRow, Machine};
use crate::label_conventions::is_recomputed;
use serde::Serialize;
use std::ops::{Index, IndexMut};
use tilescope_report::units::{Cycles, IpuId};
use tilescope_report::{ArithmeticType, ComputeEngine};

/// Where the cycles of a run go on the way from the peak down to what is achieved.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum WaterfallStep {
    /// No step runs.
    Idle,
    /// Waiting for others, and what compute sets and exchanges take before they begin.
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
    /// Compute sets of which FLOPs or idle tiles were not recorded.
    Unknown,
    /// Engines below their peak, and what is no floating point operation.
    BelowPeak,
    /// Multiplications with padding.
    Padding,
    /// Engines that are slower than the matrix engine at its fastest.
    SlowerEngine,
    /// What the backward pass computes a second time.
    Recomputation,
    /// What is left: the FLOPs that results need.
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

    /// Words for people.
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

    /// Which cycles go into it.
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

/// Cycles by where they go.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct WaterfallCycles([Cycles; WaterfallStep::ALL.len()]);

impl WaterfallCycles {
    /// Steps with their cycles, from the peak down.
    pub fn iter(&self) -> impl Iterator<Item = (WaterfallStep, Cycles)> {
        WaterfallStep::ALL.into_iter().zip(self.0)
    }

    /// All of them: cycles of the run x IPUs.
    pub fn total(&self) -> Cycles {
        self.0.into_iter().fold(Cycles::ZERO, Cycles::saturating_add)
    }

    /// A step as a share of all.
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

/// Why nobody knows what a run achieves of the peak.
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
            Self::NotCounted => "FLOPs were not counted, so the achieved rate is unknown.",
            Self::UnknownChip => "The chip is unknown, and so is its peak.",
        }
    }
}

/// The peak of the matrix engine for a data type.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct PeakOfType {
    /// quarter, half or float
    #[serde(rename = "type")]
    pub name: &'static str,
    /// Of one IPU, at most.
    pub flops_per_cycle: f64,
    /// The same per second; `None` where the clock is not known.
    pub flops_per_second: Option<f64>,
    /// FLOPs of the run in that type that its results need, recomputation left out.
    pub flops: u64,
}

/// What a run achieves, in figures for summaries.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct LimitsSummary {
    /// Share of the peak of all IPUs of a replica over the whole run; `None` where it is not known.
    pub utilisation: Option<f64>,
    /// Why it is not known.
    pub unknown: Option<UnknownUtilisation>,
    /// FLOPs of a replica that results need, recomputation left out; `None` where not known.
    pub flops: Option<u64>,
    /// Cycles of the run x IPUs of a replica: what shares of the waterfall are of.
    pub ipu_cycles: Cycles,
    /// What it is measured against, each operation by its data type.
    pub peaks: Vec<PeakOfType>,
    /// Where those cycles go, from the peak down; steps without cycles are left out.
    pub waterfall: Vec<WaterfallShare>,
}

/// A step of a waterfall with its share.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct WaterfallShare {
    pub step: WaterfallStep,
    pub cycles: Cycles,
    pub share: f64,
}

/// What a run achieves of the peak of all IPUs of a replica.
#[derive(Clone, Debug, PartialEq)]
pub struct RunLimits {
    /// Cycles of the run on each IPU.
    pub ipus: Vec<(IpuId, WaterfallCycles)>,
    /// The same of all of them together.
    pub all: WaterfallCycles,
    /// Peaks of the data types that the run computes in, the one with most FLOPs first.
    pub peaks: Vec<PeakOfType>,
    /// Why [`RunLimits::utilisation`] is not known.
    pub unknown: Option<UnknownUtilisation>,
}

impl RunLimits {
    /// FLOPs that results need, recomputation left out.
    pub fn flops(&self) -> u64 {
        self.peaks.iter().map(|peak| peak.flops).fold(0, u64::saturating_add)
    }

    /// Share of the peak that is achieved, over all IPUs and the whole run.
    pub fn utilisation(&self) -> Option<f64> {
        self.unknown.is_none().then(|| self.all.share(WaterfallStep::Achieved))
    }

    /// The figures at a glance.
    pub fn summary(&self) -> LimitsSummary {
        let share = |(step, cycles)| WaterfallShare { step, cycles, share: self.all.share(step) };
        let steps = self.all.iter().filter(|(_, cycles)| !cycles.is_zero());
        LimitsSummary {
            utilisation: self.utilisation(),
            unknown: self.unknown,
            flops: self.unknown.is_none().then(|| self.flops()),
            ipu_cycles: self.all.total(),
            peaks: self.peaks.clone(),
            waterfall: steps.map(share).collect(),
        }
    }

    /// The waterfall of an IPU, or of all of them.
    pub fn waterfall(&self, ipu: Option<IpuId>) -> Option<&WaterfallCycles> {
        match ipu {
            None => Some(&self.all),
            Some(ipu) => self.ipus.iter().find(|(known, _)| *known == ipu).map(|(_, of)| of),
        }
    }

    /// Of all steps and operations of a run on so many IPUs.
    pub(super) fn new(
        programs: &LimitsOfPrograms,
        rows: &[LimitsRow],
        machine: &Machine,
        ipus: u32,
        unknown: Option<UnknownUtilisation>,
    ) -> Self {
        let run = programs.run.length();
        let waterfall = |ipu: IpuId| {
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
            (ipu, cycles)
        };
        let ipus: Vec<_> = (0..ipus).map(IpuId).map(waterfall).collect();
        let mut all = WaterfallCycles::default();
        ipus.iter().for_each(|(_, of)| all.add(of));
        let peaks = if unknown.is_none() { peaks(rows, machine) } else { Vec::new() };
        Self { ipus, all, peaks, unknown }
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

/// Tells apart what compute cycles of an IPU are made of, by the operations on it.
fn split_compute<'a>(cycles: &mut WaterfallCycles, rows: impl Iterator<Item = &'a LimitsRow>) {
    let mut left = std::mem::take(&mut cycles[WaterfallStep::Unknown]);
    // Never more than there is, so that the sum stays what it is.
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
    let of_type = |input: ArithmeticType| {
        let peak = machine.limits.peak_flops_per_cycle(ComputeEngine::Amp, input)?;
        let own = rows.iter().filter(|row| {
            let is_own = row.limits.engine.is_some_and(|engine| engine.rate.input == input);
            is_own && !is_recomputed(&row.name)
        });
        let flops = own.filter_map(|row| row.limits.flops).fold(0, u64::saturating_add);
        let flops_per_cycle = machine.ipu_flops_per_cycle(peak);
        let per_second = |clock: tilescope_report::units::Hertz| flops_per_cycle * clock.0 as f64;
        (flops > 0).then(|| PeakOfType {
            name: input.name(),
            flops_per_cycle,
            flops_per_second: machine.clock.map(per_second),
            flops,
        })
    };
    let mut peaks: Vec<PeakOfType> = ArithmeticType::ALL.into_iter().filter_map(of_type).collect();
    peaks.sort_by_key(|peak| std::cmp::Reverse(peak.flops));
    peaks
}
