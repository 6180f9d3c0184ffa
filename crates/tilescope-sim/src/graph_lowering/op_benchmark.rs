//! Benchmark of a single operation on an IPU Model, as the tools of poplibs run it: upload,
//! operation, download.
//!
//! Cycles and bytes correspond to those that the tools report without host transfers. Some tools
//! compile the code of vertices. Others count only tensors, temporaries and the state of vertices.

use crate::cost_constants::{
    COPY_CODE_BYTES, MODEL_FIRST_TILE_BYTES, MODEL_TILE_BYTES, REARRANGING_CODE_BYTES,
};
use crate::graph::{GraphNode, GraphNodeId, ModelGraph};
use crate::graph_lowering::GraphLowering;
use crate::operators::{LoweredOperation, LoweringContext, LoweringError};
use crate::poplar::OperandLiveness;
use crate::poplar::allocate::{AllocationRequest, allocate};
use crate::poplar::code_bytes::{is_copy_vertex, vertex_code_bytes};
use crate::poplar::tile_runs;
use crate::poplar::work::{
    MemoryConstraint, OperationWork, TemporaryVariable, VertexInstances, WorkPhaseKind,
};
use crate::shape::{Tensor, TensorId, TensorRole};
use crate::targets::Chip;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use tilescope_report::units::{Bytes, Cycles, TileRange, TileRuns};
use tilescope_report::{MemoryCategory, TargetKind};

/// Cost of one operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct OpBenchmarkCost {
    /// Cycles from the end of the upload to the start of the download.
    pub cycles: Cycles,
    /// Sum over all tiles of the always-live bytes and of each tile's peak of not-always-live
    /// bytes.
    pub memory_bytes: Bytes,
    /// Highest address in use on any tile.
    pub fullest_tile_bytes: Bytes,
}

/// Bytes of a vertex without its constants: pointers of its edges and some counts. Pointers take
/// two bytes if 16-bit word addresses cover the memory of a tile.
pub(crate) fn state_bytes(chip: &Chip, vertex: &VertexInstances) -> Bytes {
    const COUNTS_BYTES: Bytes = Bytes(6);
    // 16-bit word addresses cover 256 KiB, the whole tile of the first chip.
    let pointer = if chip.bytes_per_tile <= Bytes(4 << 16) { Bytes(2) } else { Bytes(4) };
    vertex.edges * pointer + COUNTS_BYTES + vertex.field_bytes
}

/// Tensor that a program reads or writes.
#[derive(Clone, Debug)]
struct OpBenchmarkTensor {
    /// Bytes on each tile.
    bytes: TileRuns<Bytes>,
    /// Constraint of its vertices on its placement.
    place: MemoryConstraint,
    /// Phases of the program in which it is live. `None` means always, for tensors that the host
    /// reads or writes.
    live: Option<Range<usize>>,
}

/// Program that a tool runs between upload and download.
#[derive(Clone, Debug)]
pub(crate) struct OpBenchmarkProgram {
    /// Number of tiles in use.
    tiles: u32,
    /// Work of the program, in order.
    works: Vec<OperationWork>,
    /// Operands and results of the program.
    tensors: Vec<OpBenchmarkTensor>,
    /// True if the tool compiles code. Others leave it out of memory.
    code: bool,
}

impl OpBenchmarkProgram {
    /// Creates a program that runs the operations of a graph in order, lowered as those of a model
    /// are. The operations in `idle` are not run and only determine layouts. `code` is true if the
    /// tool compiles code. Between passes the host reads and writes every tensor except activations
    /// that are not outputs of the graph.
    ///
    /// # Errors
    ///
    /// Fails if an operation cannot be lowered.
    pub(crate) fn new<'a>(
        graph: &'a ModelGraph,
        mut context: LoweringContext<'a>,
        idle: &BTreeSet<GraphNodeId>,
        code: bool,
    ) -> Result<Self, LoweringError> {
        let mut lowering = GraphLowering::new(graph, &mut context);
        lowering.plan_ahead();
        let mut uses = OpBenchmarkLiveness::new(graph);
        let mut works = Vec::new();
        for (index, node) in graph.nodes.iter().enumerate() {
            let lowered = lowering.lower(node)?;
            let LoweredOperation { work, liveness: lives, .. } = &*lowered;
            if idle.contains(&GraphNodeId(index)) {
                uses.idle(node, lives);
            } else {
                uses.add(node, lives, work.phases().len());
                works.push(work.clone());
            }
        }
        let tiles = context.tiles;
        Ok(Self { tiles, works, tensors: uses.operands(&mut context), code })
    }

    fn vertices(&self) -> impl Iterator<Item = &VertexInstances> {
        let phases = self.works.iter().flat_map(OperationWork::phases);
        phases.flat_map(|(phase, _)| match &phase.kind {
            WorkPhaseKind::Compute { vertices, .. } => vertices.as_slice(),
            WorkPhaseKind::Exchange { .. } => &[],
        })
    }
}

/// Lifetime and placement constraint of each tensor of a graph.
struct OpBenchmarkLiveness<'a> {
    graph: &'a ModelGraph,
    /// For each tensor, the tensor whose memory it uses. Views and in-place results share memory.
    owners: Vec<TensorId>,
    live: BTreeMap<TensorId, Range<usize>>,
    places: BTreeMap<TensorId, MemoryConstraint>,
    phases: usize,
}

impl<'a> OpBenchmarkLiveness<'a> {
    fn new(graph: &'a ModelGraph) -> Self {
        let mut owners: Vec<TensorId> = (0..graph.tensors.len()).map(TensorId).collect();
        for node in &graph.nodes {
            let alias = node.operator.output_alias();
            let Some((inputs, outputs, always)) = alias.shared_memory(&node.operands()) else {
                continue;
            };
            for output in outputs {
                let ty = &graph.tensor(*output).ty;
                let shared = inputs.iter().find(|input| always || graph.tensor(**input).ty == *ty);
                if let Some(input) = shared {
                    owners[output.0] = owners[input.0];
                }
            }
        }
        Self { graph, owners, live: BTreeMap::new(), places: BTreeMap::new(), phases: 0 }
    }

    fn note(&mut self, tensor: TensorId, place: MemoryConstraint, live: Range<usize>) {
        let owner = self.owners[tensor.0];
        let known = self.places.entry(owner).or_default();
        // Views share the memory of their tensor, so the strictest constraint applies.
        *known = place.max(*known);
        let span = self.live.entry(owner).or_insert_with(|| live.clone());
        *span = span.start.min(live.start)..span.end.max(live.end);
    }

    /// Adds an operation with the given number of phases.
    fn add(&mut self, node: &GraphNode, lives: &OperandLiveness, phases: usize) {
        let first = self.phases;
        for (input, live) in node.inputs.iter().zip(lives.input_phases(phases)) {
            self.note(*input, lives.input_constraint, first + live.start..first + live.end);
        }
        for (output, live) in node.outputs.iter().zip(lives.output_phases(phases)) {
            self.note(*output, lives.output_constraint, first + live.start..first + live.end);
        }
        self.phases += phases;
    }

    /// Adds an operation that is not run.
    fn idle(&mut self, node: &GraphNode, lives: &OperandLiveness) {
        let none = self.phases..self.phases;
        for input in &node.inputs {
            self.note(*input, lives.input_constraint, none.clone());
        }
        for output in &node.outputs {
            self.note(*output, lives.output_constraint, none.clone());
        }
    }

    fn operands(self, lowering: &mut LoweringContext) -> Vec<OpBenchmarkTensor> {
        let outputs = self.graph.outputs.iter().map(|output| self.owners[output.0]);
        let outputs: BTreeSet<TensorId> = outputs.collect();
        let mut found = Vec::new();
        for (tensor, live) in self.live {
            let Tensor { ty, role, .. } = self.graph.tensor(tensor);
            let always = *role != TensorRole::Activation || outputs.contains(&tensor);
            found.push(OpBenchmarkTensor {
                bytes: lowering.layout_or_linear(tensor).bytes(ty.dtype.bytes()),
                place: self.places.get(&tensor).copied().unwrap_or_default(),
                live: if always { None } else { Some(live) },
            });
        }
        found
    }
}

/// Returns the costs of a program.
pub(crate) fn cost(chip: &Chip, program: &OpBenchmarkProgram) -> OpBenchmarkCost {
    let memory = allocate(chip, &variables(chip, program), program.tiles).memory;
    let always_live = memory.map(|tile| tile.always_live).total();
    let not_always_live = memory.map(|tile| tile.peak_not_always_live).total();
    OpBenchmarkCost {
        // The tiles wait for the upload, so there is one sync more than the works have exchanges.
        cycles: chip.exchange_start()
            + program.works.iter().map(|work| work.cycles(chip)).sum::<Cycles>(),
        memory_bytes: always_live + not_always_live,
        fullest_tile_bytes: memory.map(|tile| tile.including_gaps).max(),
    }
}

/// Returns all allocations: tensors, vertices and their code, temporaries.
fn variables(chip: &Chip, program: &OpBenchmarkProgram) -> Vec<AllocationRequest> {
    let mut wanted = Vec::new();
    for operand in &program.tensors {
        wanted.push(AllocationRequest {
            memory_constraint: operand.place,
            lifetime: operand.live.clone().map(lifetime),
            ..always(operand.bytes.clone())
        });
    }
    wanted.push(always(TileRuns::uniform(
        TileRange::first_tiles(program.tiles),
        MODEL_TILE_BYTES.bytes(),
    )));
    wanted
        .push(always(TileRuns::uniform(TileRange::first_tiles(1), MODEL_FIRST_TILE_BYTES.bytes())));
    // The compiler creates copies after the vertices of the graph have been counted.
    let counted: Vec<&VertexInstances> =
        program.vertices().filter(|vertex| !is_copy_vertex(&vertex.vertex_type)).collect();
    for vertex in &counted {
        wanted.push(always(vertex.count.map(|count| *count * state_bytes(chip, vertex))));
    }
    wanted.extend(constants(counted.into_iter()));
    if program.code {
        wanted.extend(code(program));
        wanted.extend(rearranging_code(program));
    }
    let mut first = 0;
    for work in &program.works {
        wanted.extend(work.temporaries.iter().map(|each| temporary(each, first)));
        first += work.phases().len();
    }
    wanted
}

/// Allocations for the constants of vertices. A tile stores equal constants once. Lists of the same
/// length on one tile, from different compute sets, count as equal.
fn constants<'a>(
    vertices: impl Iterator<Item = &'a VertexInstances>,
) -> impl Iterator<Item = AllocationRequest> {
    let mut stored: BTreeMap<Bytes, TileRuns<u64>> = BTreeMap::new();
    for vertex in vertices.filter(|vertex| !vertex.constant_bytes.is_zero()) {
        let known = stored.entry(vertex.constant_bytes).or_insert_with(TileRuns::empty);
        *known = tile_runs::max_per_tile(known, &vertex.count);
    }
    stored.into_iter().map(|(bytes, count)| always(count.map(|count| *count * bytes)))
}

/// Allocations for the code of each vertex type on the tiles that use it. All copy vertices share
/// theirs.
fn code(program: &OpBenchmarkProgram) -> impl Iterator<Item = AllocationRequest> {
    let mut users: BTreeMap<&str, TileRuns<u64>> = BTreeMap::new();
    for vertex in program.vertices() {
        let copies = is_copy_vertex(&vertex.vertex_type);
        let codelet = if copies { SHARED_COPY_CODELETS } else { vertex.vertex_type.as_str() };
        let known = users.entry(codelet).or_insert_with(TileRuns::empty);
        *known = tile_runs::add_per_tile(known, &vertex.count);
    }
    users.into_iter().map(|(codelet, tiles)| {
        let bytes = match codelet {
            SHARED_COPY_CODELETS => COPY_CODE_BYTES.bytes(),
            codelet => vertex_code_bytes(codelet, TargetKind::Ipu),
        };
        AllocationRequest { category: MemoryCategory::VertexCode, ..always(tiles.map(|_| bytes)) }
    })
}

/// Allocation for the code that brings rearranged operands into place, on the tiles that hold any.
fn rearranging_code(program: &OpBenchmarkProgram) -> Option<AllocationRequest> {
    let temporaries = program.works.iter().flat_map(|work| &work.temporaries);
    let rearranged = temporaries.filter(|each| each.category == MemoryCategory::Rearrangement);
    let holders = rearranged.map(|each| each.bytes.clone());
    let holders = holders.reduce(|all, more| tile_runs::add_per_tile(&all, &more))?;
    let code = holders
        .map(|bytes| if bytes.is_zero() { Bytes::ZERO } else { REARRANGING_CODE_BYTES.bytes() });
    Some(AllocationRequest { category: MemoryCategory::VertexCode, ..always(code) })
}

/// Stands for all copy codelets.
const SHARED_COPY_CODELETS: &str = "";

fn always(bytes: TileRuns<Bytes>) -> AllocationRequest {
    AllocationRequest {
        category: MemoryCategory::Variable,
        lifetime: None,
        memory_constraint: MemoryConstraint::Any,
        bytes,
    }
}

/// Converts phases of a program to a lifetime for the allocator.
#[expect(clippy::cast_possible_truncation, reason = "no program in memory has 2^32 phases")]
fn lifetime(phases: Range<usize>) -> Range<u32> {
    phases.start as u32..phases.end as u32
}

/// Allocation for a temporary of a work whose first phase is phase `first` of the program.
fn temporary(temporary: &TemporaryVariable, first: usize) -> AllocationRequest {
    let live = first + temporary.live.start..first + temporary.live.end;
    AllocationRequest {
        category: temporary.category,
        lifetime: Some(lifetime(live)),
        memory_constraint: temporary.memory_constraint,
        bytes: temporary.bytes.clone(),
    }
}
