//! What a report says, as plain data: the machine, the compiled program, memory, execution.
//!
//! The writer takes these types and the reader gives them back; names follow libpva where it has
//! one. A report describes one replica: tiles are numbered over its IPUs
//! (`ipu * tiles_per_ipu + tile`), and figures are multiplied by the replicas only where that is
//! said. Where replicas differ, it is replica 0; steps and marks of the others are kept beside it.

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
pub use slice_origin::*;
pub use target::*;
pub use tile_sample::*;

use crate::units::{ProgramId, TileRuns};

/// The compiled program: all that is known without running it.
#[derive(Clone, Debug, PartialEq)]
pub struct CompilationReport {
    pub target: Target,
    /// What the machine moves at most; empty where that was not recorded.
    pub bandwidths: Vec<Bandwidth>,
    /// How fast the engines of a tile are; empty where that was not recorded.
    pub compute_rates: Vec<ComputeRate>,
    /// What the machine takes for what always takes as long; empty where that was not recorded.
    pub action_costs: Vec<ActionCost>,
    /// Which IPUs of a replica wait for each other; none where that was not recorded, or a replica
    /// is one IPU.
    pub sync_groups: Option<SyncGroupMembers>,
    /// How far predictions may be off; empty where that was not recorded, or nothing was predicted.
    pub error_bands: Vec<ErrorBand>,
    /// How far figures of the whole program may be off beside that; empty where that was not recorded.
    pub program_errors: Vec<ProgramErrorBand>,
    /// Power and price of the machine, part by part; empty where they are not known.
    pub running_costs: Vec<RunningCost>,
    pub graph: GraphCounts,
    /// Options in effect, as key and value.
    pub options: Vec<(String, String)>,
    /// Batching, where a model was run in batches.
    pub batching: Option<BatchingConfig>,
    /// The model's operations; [`OperationId`] counts into this.
    pub operations: Vec<ModelOperation>,
    /// Program nodes; [`ProgramId`] counts into this.
    pub programs: Vec<ProgramNode>,
    /// Roots of the program tree: the control programs.
    pub roots: Vec<ProgramId>,
    /// Compute sets; [`ComputeSetId`] counts into this.
    pub compute_sets: Vec<ComputeSet>,
    /// Vertex types; [`VertexTypeId`] counts into this.
    pub vertex_types: Vec<VertexTypeInfo>,
    /// Traffic of exchanges and copies.
    pub exchanges: Vec<ExchangeTraffic>,
    /// Who sends to whom, where that is known.
    pub routes: Vec<ExchangeRoute>,
    /// Control code, program by program; empty where none is generated or that was not recorded.
    pub control_code: Vec<ControlCode>,
    /// What programs read and write.
    pub data_flows: DataFlows,
    /// Variables; [`VariableId`](crate::units::VariableId) counts into this.
    pub variables: Vec<Variable>,
    /// Which programs use them, by variable and step. A variable that has a lifetime and is not
    /// listed is in use in all of it. Empty where that was not recorded.
    pub variable_uses: Vec<VariableUse>,
    /// Memory of each tile of the replica.
    pub tile_memory: TileRuns<TileMemory>,
    /// Memory of each tile by category; runs with the same owner list.
    pub tile_categories: TileRuns<Vec<CategoryBytes>>,
    pub liveness: Vec<LivenessStep>,
    /// What the host does for a run; none where that was not foreseen.
    pub host: Option<HostReport>,
    /// How copies between replicas go round them; empty where there are none, or that was not
    /// recorded.
    pub replica_rings: Vec<ReplicaRing>,
    /// Replicas that differ from each other in the run.
    pub replica_classes: ReplicaClasses,
    /// What the reader should know: warnings of the compiler.
    pub notes: Vec<String>,
}
