//! The content of a report, as plain data: the machine, the compiled program, memory, execution.
//!
//! The writer takes these types and the reader returns them. Names follow libpva where it has one.
//! A report describes one replica: tiles are numbered over its IPUs (`ipu * tiles_per_ipu + tile`),
//! and figures are multiplied by the number of replicas only where the documentation says so. Where
//! replicas differ, it describes replica 0; steps and marks of the others are stored beside it.

mod data_flow;
mod engine;
mod error_band;
mod execution;
mod host;
mod imported;
mod machine;
mod memory;
mod program;
mod replica_class;
mod replica_ring;
mod route;
mod slice_origin;
mod target;
mod tile_sample;

pub use data_flow::*;
pub use engine::*;
pub use error_band::*;
pub use execution::*;
pub use host::*;
pub use imported::*;
pub use machine::*;
pub use memory::*;
pub use program::*;
pub use replica_class::*;
pub use replica_ring::*;
pub use route::*;
pub use slice_origin::*;
pub use target::*;
pub use tile_sample::*;

use crate::units::{ProgramId, TileRuns};

/// The compiled program: everything that is known without running it.
#[derive(Clone, Debug, PartialEq)]
pub struct CompilationReport {
    pub target: Target,
    /// Bandwidths of the machine; empty if they were not recorded.
    pub bandwidths: Vec<Bandwidth>,
    /// Rates of the engines of a tile; empty if they were not recorded.
    pub compute_rates: Vec<ComputeRate>,
    /// Costs of actions that always take the same time; empty if they were not recorded.
    pub action_costs: Vec<ActionCost>,
    /// IPUs of a replica that wait for each other; none if that was not recorded, or a replica is
    /// one IPU.
    pub sync_groups: Option<SyncGroupMembers>,
    /// Errors of predictions; empty if they were not recorded, or nothing was predicted.
    pub error_bands: Vec<ErrorBand>,
    /// Further errors of figures of the whole program; empty if they were not recorded.
    pub program_errors: Vec<ProgramErrorBand>,
    /// Power and price of the machine, part by part; empty if unknown.
    pub running_costs: Vec<RunningCost>,
    pub graph: GraphCounts,
    /// Options in effect, as key and value.
    pub options: Vec<(String, String)>,
    /// Batching, for a model that runs in batches.
    pub batching: Option<BatchingConfig>,
    /// The model's operations, indexed by [`OperationId`].
    pub operations: Vec<ModelOperation>,
    /// Program nodes, indexed by [`ProgramId`].
    pub programs: Vec<ProgramNode>,
    /// Roots of the program tree: the control programs.
    pub roots: Vec<ProgramId>,
    /// Compute sets, indexed by [`ComputeSetId`].
    pub compute_sets: Vec<ComputeSet>,
    /// Vertex types, indexed by [`VertexTypeId`].
    pub vertex_types: Vec<VertexTypeInfo>,
    /// Traffic of exchanges and copies.
    pub exchanges: Vec<ExchangeTraffic>,
    /// Senders and receivers of exchanges, if known.
    pub routes: Vec<ExchangeRoute>,
    /// Control code, program by program; empty if none is generated or it was not recorded.
    pub control_code: Vec<ControlCode>,
    /// Reads and writes of programs.
    pub data_flows: DataFlows,
    /// Variables, indexed by [`VariableId`](crate::units::VariableId).
    pub variables: Vec<Variable>,
    /// Programs that use variables, by variable and step. A variable with a lifetime that is not
    /// listed is in use during all of it. Empty if uses were not recorded.
    pub variable_uses: Vec<VariableUse>,
    /// Memory of each tile of the replica.
    pub tile_memory: TileRuns<TileMemory>,
    /// Memory of each tile by category; runs with the same owner list.
    pub tile_categories: TileRuns<Vec<CategoryBytes>>,
    pub liveness: Vec<LivenessStep>,
    /// The host's part of a run; none if the report does not include it.
    pub host: Option<HostReport>,
    /// Rings of the copies between replicas; empty if there are none, or they were not recorded.
    pub replica_rings: Vec<ReplicaRing>,
    /// Replicas that differ from each other in the run.
    pub replica_classes: ReplicaClasses,
    /// Notes for the reader: warnings of the compiler.
    pub notes: Vec<String>,
}
