//! Filters and answers of the reader that are not part of the model.

#[cfg(doc)]
use crate::Report;
use crate::model::*;
use crate::units::*;
use serde::{Deserialize, Serialize};
use std::borrow::Cow;

/// The writer of a report file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReportOrigin {
    /// This program, in a known format.
    Tilescope,
    /// Poplar, or another tool with Poplar's tables.
    Foreign,
}

/// Parts that a report may or may not have recorded.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ReportPart {
    /// Executed steps with their cycles.
    Execution,
    /// The balance of the active tiles of a step; without it, balance is the share of active tiles.
    TileBalance,
    /// The number of active tiles of each step; without it, no balance is known.
    ActiveTiles,
    /// Bytes that steps move.
    StepBytes,
    Marks,
    Programs,
    /// The tree of programs.
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
    /// Operations whose results another operation reads.
    OperationInputs,
    /// Variables with their tiles and sizes.
    Variables,
    /// Addresses of variables; without them every placement has offset 0.
    Addresses,
    /// Lifetimes of variables; without them every variable counts as always live.
    Lifetimes,
    Liveness,
    TileMemory,
    /// Bytes per tile by region, with gaps; without it all bytes count as non-interleaved.
    Regions,
    /// Bytes per tile by category.
    Categories,
    Options,
    Batching,
    /// The spec the report was made from.
    Spec,
}

impl ReportPart {
    /// All parts, in the order of the enum.
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

/// Selects the variables to read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct VariableFilter {
    /// Only variables with a part on one of these tiles, which are returned with all their tiles.
    /// Each variable of a foreign file is on one tile.
    pub tiles: Option<TileRange>,
    pub category: Option<MemoryCategory>,
    /// Start after this one.
    pub after: Option<VariableId>,
    /// The maximum number of variables to return.
    pub limit: usize,
}

/// Selects the marks to read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MarkFilter {
    pub kind: Option<MarkKind>,
    /// Only marks of this IPU and those without an IPU.
    pub ipu: Option<IpuId>,
    /// Only marks that share a cycle with this window.
    pub window: Option<CycleRange>,
    /// The maximum number of marks to return, from the start.
    pub limit: usize,
}

/// Everything recorded about one executed step.
#[derive(Clone, Debug, PartialEq)]
pub struct StepDetails {
    pub id: StepId,
    pub kind: ProgramKind,
    /// Its kind in the spelling of the file; differs from `kind` if that is unknown.
    pub kind_name: String,
    /// Its program, if the file records it.
    pub program: Option<ProgramId>,
    /// Its compute set, if it has one.
    pub compute_set: Option<ComputeSetId>,
    /// Its parts on each IPU that took part. Values that a foreign file does not record are 0.
    pub ipus: Vec<StepOnIpu>,
}

/// The availability of the trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum TraceState {
    /// There is no execution.
    None,
    /// [`Report::trace`] answers in milliseconds.
    Ready,
    /// A foreign file that was not seen before: [`Report::prepare_trace`] reads it once, in some
    /// seconds per million rows.
    NeedsIndex,
}

/// A violated invariant of a report, found by [`Report::verify`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InvariantViolation {
    /// A short key of the invariant: `categories_add_up`.
    pub law: Cow<'static, str>,
    /// The violation, as text for users.
    pub text: String,
}
