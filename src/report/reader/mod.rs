//! Opening a report and asking it questions.
//!
//! Opening takes milliseconds at any size; every answer is read when it is first asked for. What
//! a file does not have is a normal state: lists are empty, values are `None`, [`Report::has`]
//! tells apart "nothing" from "not recorded", and [`Report::warnings`] says what was odd. Errors
//! are left for files that cannot be read at all and for parts that are damaged.

use super::error::ReportError;
use super::model::*;
use super::trace::Trace;
use crate::units::*;
use std::collections::BTreeMap;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::SystemTime;

/// Who wrote a report file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Origin {
    /// This program, in a format it knows.
    Tilescope,
    /// Poplar, or anything that lays its tables out like Poplar.
    Foreign,
}

/// Things a report may or may not have recorded.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Part {
    /// Executed steps with their cycles.
    Execution,
    /// How well the active tiles of a step were balanced; without it, balance is the share of
    /// active tiles.
    TileBalance,
    /// Bytes that steps move.
    StepBytes,
    /// Runs, iterations, stages.
    Marks,
    /// Program nodes.
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
    /// The model's operations.
    Operations,
    /// Variables with their tiles and sizes.
    Variables,
    /// Addresses of variables; without them every placement has offset 0.
    Addresses,
    /// When variables are live; without it every variable counts as always live.
    Lifetimes,
    /// The liveness walk.
    Liveness,
    /// Bytes per tile.
    TileMemory,
    /// Bytes per tile by region, and with gaps; without it all bytes count as non-interleaved.
    Regions,
    /// Bytes per tile by category.
    Categories,
    /// Options in effect.
    Options,
    /// Batch sizes.
    Batching,
    /// The spec the report was made from.
    Spec,
}

impl Part {
    /// Every part, in the order of the enum.
    pub const ALL: [Part; 21] = [
        Self::Execution,
        Self::TileBalance,
        Self::StepBytes,
        Self::Marks,
        Self::Programs,
        Self::ProgramTree,
        Self::ComputeSets,
        Self::ComputeSetCycles,
        Self::Vertices,
        Self::Exchanges,
        Self::Operations,
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

/// How far a program got.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// Compiled and executed.
    Executed,
    /// Compiled, not executed.
    CompiledOnly,
    /// Some tiles need more memory than they have, so nothing could be executed.
    OutOfMemory {
        /// Number of such tiles.
        tiles: u64,
    },
}

/// The program nodes of a report. Ids of other tools' files need not be dense.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Programs {
    nodes: Vec<(ProgramId, Program)>,
    roots: Vec<ProgramId>,
}

impl Programs {
    /// One program.
    pub fn get(&self, id: ProgramId) -> Option<&Program> {
        unimplemented!("{id:?} {:?}", self.nodes)
    }

    /// All programs by id. Children always exist and never lead back to the program; several
    /// programs may share one.
    pub fn iter(&self) -> impl Iterator<Item = (ProgramId, &Program)> {
        self.nodes.iter().map(|(id, program)| (*id, program))
    }

    /// Number of programs.
    pub fn len(&self) -> usize {
        self.nodes.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.nodes.is_empty()
    }

    /// Roots of the tree; empty where the tree is not known.
    pub fn roots(&self) -> &[ProgramId] {
        &self.roots
    }
}

/// Which variables to read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct VariableFilter {
    /// Only variables with a part on one of these tiles; all their tiles are given. Variables of
    /// foreign files lie on one tile each.
    pub tiles: Option<TileRange>,
    /// Only this category.
    pub category: Option<Category>,
    /// Continue behind this one.
    pub after: Option<VariableId>,
    /// At most this many.
    pub limit: usize,
}

/// Which marks to read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MarkFilter {
    /// Only this kind.
    pub kind: Option<MarkKind>,
    /// Only marks of this IPU and those of no IPU in particular.
    pub ipu: Option<u32>,
    /// Only marks that share a cycle with this window.
    pub window: Option<CycleRange>,
    /// At most this many, from the start.
    pub limit: usize,
}

/// Everything recorded about one executed step.
#[derive(Clone, Debug, PartialEq)]
pub struct StepDetails {
    /// Which step.
    pub id: StepId,
    /// What it was.
    pub kind: ProgramKind,
    /// Its kind as the file spells it; differs from `kind` where that is unknown.
    pub kind_name: String,
    /// The program that ran, where the file says so.
    pub program: Option<ProgramId>,
    /// Its compute set, where it has one.
    pub compute_set: Option<ComputeSetId>,
    /// What it did on each IPU that took part. In foreign files, what is not recorded is 0.
    pub ipus: Vec<StepOnIpu>,
}

/// Whether the trace can be shown at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TraceState {
    /// There is no execution.
    None,
    /// [`Report::trace`] answers in milliseconds.
    Ready,
    /// A foreign file seen for the first time: [`Report::prepare_trace`] reads it once, some
    /// seconds per million rows.
    NeedsIndex,
}

/// A file that SDK tools write beside the report.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileBeside {
    /// `debug.cbor`
    pub name: &'static str,
    /// What it holds, in words.
    pub about: &'static str,
    /// Size and time of last change; `None` if it does not exist.
    pub found: Option<(Bytes, Option<SystemTime>)>,
}

/// A broken law of a report, found by [`Report::verify`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// The law, as a short key: `categories_add_up`.
    pub law: &'static str,
    /// What breaks it, in words.
    pub text: String,
}

/// An open report. Reading never changes the file nor anything beside it.
pub struct Report {
    path: PathBuf,
}

#[expect(unused_variables, missing_docs, reason = "bodies follow")]
impl Report {
    /// Opens a directory that holds a `profile.pop`, or such a file under any name.
    pub fn open(path: impl AsRef<Path>) -> Result<Self, ReportError> {
        unimplemented!()
    }

    /// The report file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Size of the report file.
    pub fn file_size(&self) -> Bytes {
        unimplemented!()
    }

    /// Who wrote it.
    pub fn origin(&self) -> Origin {
        unimplemented!()
    }

    /// Whether a part was recorded.
    pub fn has(&self, part: Part) -> bool {
        unimplemented!()
    }

    /// How far the program got.
    pub fn outcome(&self) -> Result<Outcome, ReportError> {
        unimplemented!()
    }

    /// What was odd so far, in words for people. Grows while more of the file is read.
    pub fn warnings(&self) -> Vec<String> {
        unimplemented!()
    }

    /// Keys and values about the file itself: `generator`, `format`, …
    pub fn meta(&self) -> &BTreeMap<String, String> {
        unimplemented!()
    }

    /// The spec the report was made from, as it was written.
    pub fn spec(&self) -> Option<&str> {
        unimplemented!()
    }

    /// The machine. For foreign files it is inferred: unknown numbers are 0, the clock among them.
    pub fn target(&self) -> Result<Arc<Target>, ReportError> {
        unimplemented!()
    }

    /// Sizes of the graph; counted where the file does not say.
    pub fn graph(&self) -> Result<GraphCounts, ReportError> {
        unimplemented!()
    }

    /// Options in effect.
    pub fn options(&self) -> Result<Vec<(String, String)>, ReportError> {
        unimplemented!()
    }

    pub fn batching(&self) -> Result<Option<Batching>, ReportError> {
        unimplemented!()
    }

    /// The model's operations; [`OperationId`] counts into this.
    pub fn operations(&self) -> Result<Arc<Vec<Operation>>, ReportError> {
        unimplemented!()
    }

    /// What the compiler noted.
    pub fn notes(&self) -> Result<Vec<String>, ReportError> {
        unimplemented!()
    }

    /// All program nodes, read once. In foreign files kinds are known of executed programs only,
    /// once the trace is prepared.
    pub fn programs(&self) -> Result<Arc<Programs>, ReportError> {
        unimplemented!()
    }

    /// Names of all compute sets by id, read once.
    pub fn compute_set_names(&self) -> Result<Arc<BTreeMap<ComputeSetId, String>>, ReportError> {
        unimplemented!()
    }

    /// One compute set with its cycles and vertices.
    pub fn compute_set(&self, id: ComputeSetId) -> Result<Option<ComputeSet>, ReportError> {
        unimplemented!()
    }

    /// All compute sets with their cycles and vertices.
    pub fn compute_sets(&self) -> Result<Vec<(ComputeSetId, ComputeSet)>, ReportError> {
        unimplemented!()
    }

    /// Vertex types; [`VertexTypeId`] counts into this.
    pub fn vertex_types(&self) -> Result<Arc<Vec<VertexType>>, ReportError> {
        unimplemented!()
    }

    /// Traffic of one exchange or copy program.
    pub fn exchange(&self, program: ProgramId) -> Result<Option<Exchange>, ReportError> {
        unimplemented!()
    }

    /// Traffic of all exchanges and copies.
    pub fn exchanges(&self) -> Result<Vec<Exchange>, ReportError> {
        unimplemented!()
    }

    /// Traffic of each exchange or copy, summed over tiles; each program counts once.
    pub fn exchange_totals(&self) -> Result<Vec<(ProgramId, TileTraffic)>, ReportError> {
        unimplemented!()
    }

    /// Traffic of each tile of the replica, summed over programs; each program counts once.
    pub fn traffic_by_tile(&self) -> Result<Vec<TileTraffic>, ReportError> {
        unimplemented!()
    }

    /// Number of variables; in foreign files, of parts of variables on tiles.
    pub fn variable_count(&self) -> Result<u64, ReportError> {
        unimplemented!()
    }

    /// One variable.
    pub fn variable(&self, id: VariableId) -> Result<Option<Variable>, ReportError> {
        unimplemented!()
    }

    /// Variables by id.
    pub fn variables(
        &self,
        filter: &VariableFilter,
    ) -> Result<Vec<(VariableId, Variable)>, ReportError> {
        unimplemented!()
    }

    /// Memory of each tile of the replica; empty if not recorded.
    pub fn tile_memory(&self) -> Result<Arc<TileRuns<TileMemory>>, ReportError> {
        unimplemented!()
    }

    /// Memory of each tile by category; empty if not recorded.
    pub fn tile_categories(&self) -> Result<Arc<TileRuns<Vec<CategoryBytes>>>, ReportError> {
        unimplemented!()
    }

    /// The liveness walk; empty if not recorded.
    pub fn liveness(&self) -> Result<Vec<LivenessStep>, ReportError> {
        unimplemented!()
    }

    /// Marks by start.
    pub fn marks(&self, filter: &MarkFilter) -> Result<Vec<Mark>, ReportError> {
        unimplemented!()
    }

    /// Marks of kind [`MarkKind::Run`].
    pub fn runs(&self) -> Result<Vec<Mark>, ReportError> {
        unimplemented!()
    }

    /// Whether the trace can be shown at once.
    pub fn trace_state(&self) -> Result<TraceState, ReportError> {
        unimplemented!()
    }

    /// Makes the trace of a foreign file ready; nothing to do for others. Reads every row once in
    /// bounded memory and keeps the result in the user's cache directory. `progress` gets a share
    /// from 0 to 1; setting `cancel` ends it with [`ReportError::Cancelled`].
    pub fn prepare_trace(
        &self,
        progress: &mut dyn FnMut(f64),
        cancel: &Arc<AtomicBool>,
    ) -> Result<(), ReportError> {
        unimplemented!()
    }

    /// The trace; `None` if there is no execution. Prepares it if that was not done.
    pub fn trace(&self) -> Result<Option<Trace>, ReportError> {
        unimplemented!()
    }

    /// Number of executed steps.
    pub fn step_count(&self) -> Result<u64, ReportError> {
        unimplemented!()
    }

    /// Everything recorded about one executed step.
    pub fn step(&self, id: StepId) -> Result<Option<StepDetails>, ReportError> {
        unimplemented!()
    }

    /// Executed steps with ids in `ids`, the first `limit` of them.
    pub fn steps(&self, ids: Range<StepId>, limit: usize) -> Result<Vec<StepDetails>, ReportError> {
        unimplemented!()
    }

    /// Files that SDK tools write beside a report, whether they exist or not.
    pub fn files_beside(&self) -> Vec<FileBeside> {
        unimplemented!()
    }

    /// The whole compiled program at once: everything but the execution.
    pub fn compilation(&self) -> Result<Compilation, ReportError> {
        unimplemented!()
    }

    /// Checks the laws that hold inside every sound report; empty if they all do.
    pub fn verify(&self) -> Result<Vec<Finding>, ReportError> {
        unimplemented!()
    }
}
