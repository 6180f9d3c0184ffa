//! The published figures: the printed values with their conditions, their reliability, and their
//! measurement. The data are in `assets/published_figures.toml`.

use super::conditions::{PublishedRun, RunItems};
use super::measurements::{SimulatedProgram, SpecWithOverrides};
use serde::Deserialize;
use std::collections::BTreeMap;
use tilescope_analysis::confidence::{Banded, RunFactors};
use tilescope_report::units::IpuId;
use tilescope_report::{MemoryCategory, ProgramErrorSource};

/// All published figures, and the programs for measuring them.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct PublishedFigures {
    /// Constants and keys that were fitted to figures of this list.
    pub fitted_constants: Vec<String>,
    /// Published runs, by the names used in figures.
    pub published_runs: BTreeMap<String, PublishedRun>,
    /// Programs, by the names used in figures.
    pub programs: BTreeMap<String, SpecWithOverrides>,
    #[serde(rename = "figure")]
    pub figures: Vec<PublishedFigure>,
}

impl PublishedFigures {
    /// The file at the time of the build.
    pub(super) const TEXT: &str = include_str!("../../../assets/published_figures.toml");

    pub(super) fn read() -> Result<Self, toml::de::Error> {
        toml::from_str(Self::TEXT)
    }
}

/// The relation of a figure to the simulator.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum PublishedFigureKind {
    /// Nothing was fitted to it.
    #[default]
    Predicted,
    /// A constant or a key of the spec was fitted to it: it proves nothing.
    Fitted,
    /// It is an input: it belongs to the machine, not to the model.
    Input,
    /// The publication shows it for a program that it does not name: nothing is claimed.
    Illustrated,
}

impl PublishedFigureKind {
    /// Name in tables and scripts.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Predicted => "predicted",
            Self::Fitted => "fitted",
            Self::Input => "input",
            Self::Illustrated => "illustrated",
        }
    }
}

/// The accuracy of a published figure, and so the required accuracy of the simulation.
#[derive(Clone, Copy, Debug, PartialEq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum FigureTolerance {
    /// Known up to this relative error.
    Relative(f64),
    /// Exact as printed.
    Exact,
    /// Nothing is claimed.
    None,
}

impl FigureTolerance {
    /// True if a simulated figure is within the tolerance; `None` if nothing is claimed.
    pub(super) fn holds(self, published: f64, simulated: f64) -> Option<bool> {
        match self {
            Self::Relative(share) => Some((simulated / published - 1.0).abs() <= share),
            Self::Exact => Some(simulated == published),
            Self::None => None,
        }
    }

    /// Largest relative error, 0 for exact.
    pub(super) fn to_json(self) -> serde_json::Value {
        match self {
            Self::Relative(share) => share.into(),
            Self::Exact => 0.0.into(),
            Self::None => serde_json::Value::Null,
        }
    }
}

/// The result of comparing a figure with its simulation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum FigureVerdict<'a> {
    NothingClaimed,
    Pass,
    Miss,
    /// A miss that is listed, with its reason.
    KnownMiss(&'a str),
    /// Listed as a miss, but passes: the list must be updated.
    PassListedAsMiss,
}

/// The unit of a figure that counts bytes.
#[derive(Clone, Copy, Debug, Deserialize)]
pub(super) enum PublishedUnit {
    KiB,
    MiB,
}

impl PublishedUnit {
    fn bytes(self) -> f64 {
        match self {
            Self::KiB => 1024.0,
            Self::MiB => 1024.0 * 1024.0,
        }
    }
}

/// The measurement of a figure on its programs: on the first one, unless stated otherwise.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum FigureMeasurement {
    CyclesPerWeightUpdate,
    HostCallsPerSecond,
    SamplesPerCall,
    SamplesPerSecond,
    /// For samples that are packs of sequences.
    SequencesPerSecond,
    /// The loaders alone, without any IPU.
    LoaderSamplesPerSecond,
    /// The first slot of a pipeline, counted from 1, in which every stage runs both passes.
    FirstFullSlot,
    /// Bytes over links to this IPU, per weight update.
    LinkBytesIn(IpuId),
    /// Bytes over links from this IPU, per weight update.
    LinkBytesOut(IpuId),
    /// Micro-batches in the stashes of the stage on this IPU.
    FifoDepth(IpuId),
    /// Cycles of the first step with this suffix in its name.
    StepCycles(String),
    /// Share of the IPUs' cycles in copies from and to remote buffers.
    RemoteBufferShare,
    /// Share of the I/O tiles' copies that overlaps with compute.
    HiddenIoShare,
    /// For programs with prefetch depths 1, 2, …: the smallest depth within 1 % of the best.
    SmallestGoodPrefetchDepth,
    /// Bytes of a category of memory on all tiles of a replica.
    CategoryBytes(MemoryCategory),
    /// The bytes of the second program minus those of the first.
    CategoryGrowth(MemoryCategory),
}

impl FigureMeasurement {
    /// The figure before conversion of units; `None` if the programs do not show it.
    fn of(&self, programs: &[&SimulatedProgram]) -> Option<f64> {
        let first = *programs.first()?;
        match self {
            Self::CyclesPerWeightUpdate => first.iteration_cycles(),
            Self::HostCallsPerSecond => Some(1.0 / first.seconds()),
            Self::SamplesPerCall => first.samples(),
            Self::SamplesPerSecond => first.throughput(),
            Self::SequencesPerSecond => first.sequences(),
            Self::LoaderSamplesPerSecond => first.loader_throughput(),
            Self::FirstFullSlot => first.first_full_slot(),
            Self::LinkBytesIn(ipu) => Some(first.linked(*ipu).0),
            Self::LinkBytesOut(ipu) => Some(first.linked(*ipu).1),
            Self::FifoDepth(ipu) => first.fifo_depth(*ipu),
            Self::StepCycles(suffix) => first.step_cycles(suffix),
            Self::RemoteBufferShare => Some(first.remote_share()),
            Self::HiddenIoShare => first.hidden_share(),
            Self::SmallestGoodPrefetchDepth => smallest_good_prefetch_depth(programs),
            Self::CategoryBytes(category) => Some(first.category_bytes(*category)),
            Self::CategoryGrowth(category) => {
                let [one, many] = programs else { return None };
                Some(many.category_bytes(*category) - one.category_bytes(*category))
            }
        }
    }

    /// The source of errors of whole programs that it measures, if any.
    fn error_source(&self) -> Option<ProgramErrorSource> {
        match self {
            Self::CyclesPerWeightUpdate
            | Self::HostCallsPerSecond
            | Self::SamplesPerSecond
            | Self::SequencesPerSecond => Some(ProgramErrorSource::Program),
            Self::StepCycles(_) => Some(ProgramErrorSource::Copies),
            Self::CategoryBytes(_) => Some(ProgramErrorSource::Code),
            Self::CategoryGrowth(_) => Some(ProgramErrorSource::ReplicaCode),
            _ => None,
        }
    }

    /// True if it decreases as times increase.
    fn is_rate(&self) -> bool {
        matches!(self, Self::HostCallsPerSecond | Self::SamplesPerSecond | Self::SequencesPerSecond)
    }

    /// The items that it counts, for a program whose samples are packs of sequences or not; `None`
    /// if it counts no items.
    fn items(&self, packed: bool) -> Option<RunItems> {
        match self {
            Self::SamplesPerCall | Self::SamplesPerSecond | Self::LoaderSamplesPerSecond => {
                Some(if packed { RunItems::Packs } else { RunItems::Samples })
            }
            Self::SequencesPerSecond => Some(RunItems::Sequences),
            _ => None,
        }
    }
}

fn smallest_good_prefetch_depth(programs: &[&SimulatedProgram]) -> Option<f64> {
    let best = programs.iter().map(|program| program.cycles).min()?;
    Some(
        programs.iter().position(|program| program.cycles.as_f64() <= 1.01 * best.as_f64())? as f64
            + 1.0,
    )
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct PublishedFigure {
    pub id: String,
    pub what: String,
    pub published: f64,
    pub tolerance: FigureTolerance,
    /// The source of a relative tolerance.
    pub tolerance_from: Option<String>,
    /// The use of the figure.
    #[serde(default)]
    pub kind: PublishedFigureKind,
    /// The reason why the simulation misses it, if that is known.
    pub known_miss: Option<String>,
    /// Names of the published runs: one for each program, or one for all.
    pub runs: Vec<String>,
    /// Names of the programs for measuring it.
    pub programs: Vec<String>,
    measure: FigureMeasurement,
    unit: Option<PublishedUnit>,
    decimals: Option<i32>,
}

impl PublishedFigure {
    /// Each program's name with that of its published run; `None` unless there is one run for each
    /// program, or one for all.
    pub(super) fn pairs(&self) -> Option<Vec<(&str, &str)>> {
        let runs: Vec<&str> = match self.runs.as_slice() {
            [run] => vec![run; self.programs.len()],
            runs => runs.iter().map(String::as_str).collect(),
        };
        let programs = self.programs.iter().map(String::as_str);
        if runs.len() == self.programs.len() { Some(programs.zip(runs).collect()) } else { None }
    }

    /// The items that it counts, for a program with this number of sequences per sample.
    pub(super) fn items(&self, packing_factor: f64) -> Option<RunItems> {
        self.measure.items(packing_factor != 1.0)
    }

    /// Its residual: the source of the error, and true over predicted cycles or bytes. `None` if
    /// nothing was predicted, or something other than time and code. A growth of code is divided by
    /// all code of the larger program: none of it may be known.
    pub(super) fn residual(
        &self,
        simulated: f64,
        programs: &[&SimulatedProgram],
    ) -> Option<(ProgramErrorSource, f64)> {
        let source = self.measure.error_source()?;
        let factor = match &self.measure {
            FigureMeasurement::CategoryGrowth(category) => {
                let all = programs.last()?.category_bytes(*category);
                (all + self.published - simulated) / all
            }
            measure if measure.is_rate() => simulated / self.published,
            _ => self.published / simulated,
        };
        if self.kind == PublishedFigureKind::Predicted { Some((source, factor)) } else { None }
    }

    /// The band of a simulated time or rate of a program.
    pub(super) fn band(&self, simulated: f64, factors: &RunFactors) -> Banded {
        if self.measure.is_rate() { factors.of_rate(simulated) } else { factors.of_time(simulated) }
    }

    /// Compares a simulated figure, of programs that fit or do not.
    pub(super) fn verdict(&self, simulated: f64, fits: bool) -> FigureVerdict<'_> {
        let close = self.tolerance.holds(self.published, simulated).map(|close| close && fits);
        match (close, &self.known_miss) {
            (None, _) => FigureVerdict::NothingClaimed,
            (Some(true), None) => FigureVerdict::Pass,
            (Some(true), Some(_)) => FigureVerdict::PassListedAsMiss,
            (Some(false), None) => FigureVerdict::Miss,
            (Some(false), Some(reason)) => FigureVerdict::KnownMiss(reason),
        }
    }

    /// Its value measured on its programs, in order; `None` if they do not show it.
    pub(super) fn measured(&self, programs: &[&SimulatedProgram]) -> Option<f64> {
        let value = self.measure.of(programs)? / self.unit.map_or(1.0, PublishedUnit::bytes);
        Some(self.decimals.map_or(value, |decimals| {
            let power = 10_f64.powi(decimals);
            (value * power).round() / power
        }))
    }
}
