//! Filters and answers of the reader, beyond the model.

#[cfg(doc)]
use crate::Report;
use crate::model::*;
use crate::units::*;
use serde::{Deserialize, Serialize};
use std::borrow::Cow;

/// The writer of a report file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReportOrigin {
    /// This program, in a format it knows.
    Tilescope,
    /// Poplar, or anything that lays its tables out like Poplar.
    Foreign,
}

/// Things a report may or may not have recorded.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ReportPart {
    /// Executed steps with their cycles.
    Execution,
    /// How well the active tiles of a step were balanced; without it, balance is the share of
    /// active tiles.
    TileBalance,
    /// How many tiles are active in each step; without it nothing is known of balance.
    ActiveTiles,
    /// Bytes that steps move.
    StepBytes,
    Marks,
    Programs,
    /// Which program contains which.
    ProgramTree,
    /// Names of compute sets.
    ComputeSets,
    /// Cycles of compute sets tile by tile.
    ComputeSetCycles,
    /// Vertices of compute sets.
    Vertices,
    /// Traffic and code of exchanges tile by tile.
    Exchanges,
    Operations,
    /// Which operation reads whose results.
    OperationInputs,
    /// Variables with their tiles and sizes.
    Variables,
    /// Addresses of variables; without them every placement has offset 0.
    Addresses,
    /// When variables are live; without it every variable counts as always live.
    Lifetimes,
    Liveness,
    TileMemory,
    /// Bytes per tile by region, and with gaps; without it all bytes count as non-interleaved.
    Regions,
    /// Bytes per tile by category.
    Categories,
    Options,
    Batching,
    /// The spec the report was made from.
    Spec,
}

impl ReportPart {
    /// Every part, in the order of the enum.
    pub const ALL: [ReportPart; 23] = [
        Self::Execution,
        Self::TileBalance,
        Self::ActiveTiles,
        Self::StepBytes,
        Self::Marks,
        Self::Programs,
        Self::ProgramTree,
        Self::ComputeSets,
        Self::ComputeSetCycles,
        Self::Vertices,
        Self::Exchanges,
        Self::Operations,
        Self::OperationInputs,
        Self::Variables,
        Self::Addresses,
        Self::Lifetimes,
        Self::Liveness,
        Self::TileMemory,
        Self::Regions,
        Self::Categories,
        Self::Options,
        Self::Batching,
        Self::Spec,
    ];
}

/// Outcome of a program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProgramOutcome {
    Executed,
    CompiledOnly,
    /// Some tiles need more memory than they have, so nothing could be executed.
    OutOfMemory {
        /// Number of such tiles.
        tiles: u64,
    },
}

/// Which variables to read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct VariableFilter {
    /// Only variables with a part on one of these tiles; all their tiles are given. Variables of
    /// foreign files lie on one tile each.
    pub tiles: Option<TileRange>,
    pub category: Option<MemoryCategory>,
    /// Continue behind this one.
    pub after: Option<VariableId>,
    /// At most this many.
    pub limit: usize,
}

/// Which marks to read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MarkFilter {
    pub kind: Option<MarkKind>,
    /// Only marks of this IPU and those of no IPU in particular.
    pub ipu: Option<IpuId>,
    /// Only marks that share a cycle with this window.
    pub window: Option<CycleRange>,
    /// At most this many, from the start.
    pub limit: usize,
}

/// Everything recorded about one executed step.
#[derive(Clone, Debug, PartialEq)]
pub struct StepDetails {
    pub id: StepId,
    pub kind: ProgramKind,
    /// Its kind as the file spells it; differs from `kind` where that is unknown.
    pub kind_name: String,
    /// The program that ran, where the file says so.
    pub program: Option<ProgramId>,
    /// Its compute set, where it has one.
    pub compute_set: Option<ComputeSetId>,
    /// Its parts on each IPU that took part. In foreign files, what is not recorded is 0.
    pub ipus: Vec<StepOnIpu>,
}

/// Whether the trace can be shown at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum TraceState {
    /// There is no execution.
    None,
    /// [`Report::trace`] answers in milliseconds.
    Ready,
    /// A foreign file seen for the first time: [`Report::prepare_trace`] reads it once, some
    /// seconds per million rows.
    NeedsIndex,
}

/// A broken law of a report, found by [`Report::verify`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InvariantViolation {
    /// The law, as a short key: `categories_add_up`.
    pub law: Cow<'static, str>,
    /// The violation, in words.
    pub text: String,
}
