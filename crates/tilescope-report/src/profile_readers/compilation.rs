//! The programs of measured tiles as a compiled program: kernels are vertex types, one vertex on each
//! tile that runs one. Cycles of a compute set on a tile are the mean over its executions.

use super::run::{MeasuredProgram, MeasuredRun, TILES_PER_IPU};
use crate::model::*;
use crate::units::*;
use std::collections::{BTreeMap, BTreeSet};

/// Columns of 64 tiles, which profiles do not state: the chip of C600 cards has the tiles of the
/// Mk2 IPU (Graphcore, C600 data sheet), in columns of 64 (topology notes of ipu-stack).
const TILES_PER_COLUMN: u32 = 64;
const BYTES_PER_TILE: Bytes = Bytes(624 << 10);
const MEMORY_ELEMENT_BYTES: Bytes = Bytes(16 << 10);
const INTERLEAVED_OFFSET: Bytes = Bytes(208 << 10);
/// The maximum number of names of operations or kernels that are written out.
const MAX_JOINED_NAMES: usize = 3;

/// Builds the compiled program of a run.
pub(super) fn of(run: &MeasuredRun<'_>) -> CompilationReport {
    let mut parts = MeasuredParts::new(run);
    let ids: Vec<ProgramId> =
        run.programs.iter().map(|program| parts.program(run, program)).collect();
    let root = ProgramNode { children: ids, ..ProgramNode::new(ProgramKind::Sequence, "profile") };
    parts.programs.push(root);
    let root = ProgramId::from_index(parts.programs.len() - 1);
    let vertices = parts.compute_sets.iter().flat_map(|set| &set.vertices);
    let vertices = vertices.map(|group| group.count.total()).sum();
    CompilationReport {
        target: target(run),
        bandwidths: Vec::new(),
        compute_rates: Vec::new(),
        action_costs: Vec::new(),
        sync_groups: None,
        error_bands: Vec::new(),
        program_errors: Vec::new(),
        running_costs: Vec::new(),
        graph: GraphCounts {
            compute_sets: parts.compute_sets.len() as u64,
            vertices,
            ..GraphCounts::default()
        },
        options: Vec::new(),
        batching: None,
        operations: parts.operations,
        programs: parts.programs,
        roots: vec![root],
        compute_sets: parts.compute_sets,
        vertex_types: parts.vertex_types,
        exchanges: Vec::new(),
        routes: Vec::new(),
        control_code: Vec::new(),
        data_flows: DataFlows::default(),
        variables: Vec::new(),
        variable_uses: Vec::new(),
        tile_memory: TileRuns::empty(),
        tile_categories: TileRuns::empty(),
        liveness: Vec::new(),
        host: None,
        replica_rings: Vec::new(),
        replica_classes: ReplicaClasses::default(),
        notes: notes(run),
    }
}

fn target(run: &MeasuredRun<'_>) -> Target {
    Target {
        kind: TargetKind::Ipu,
        name: "mk2".to_owned(),
        architecture: "Mk2".to_owned(),
        num_ipus: run.ipus,
        tiles_per_ipu: TILES_PER_IPU,
        io_tiles_per_ipu: 0,
        bytes_per_tile: BYTES_PER_TILE,
        clock: run.profile.clock,
        replicas: 1,
        ipus_per_replica: run.ipus,
        memory_element_bytes: MEMORY_ELEMENT_BYTES,
        interleaved_offset: INTERLEAVED_OFFSET,
        tiles_per_column: TILES_PER_COLUMN,
        physical_numbers: true,
        changes: Vec::new(),
    }
}

fn notes(run: &MeasuredRun<'_>) -> Vec<String> {
    let measured = format!(
        "Measured tile by tile: {} samples of {}. Transferred bytes, memory and FLOPs are not \
         recorded; the chip is assumed to be an Mk2 with {TILES_PER_IPU} tiles.",
        grouped(run.profile.samples.len() as u64),
        run.profile.generator
    );
    std::iter::once(measured).chain(run.profile.notes.iter().cloned()).collect()
}

/// The lists of a compiled program under construction.
struct MeasuredParts {
    operations: Vec<ModelOperation>,
    /// Ids by index into the texts of the label table.
    operation_ids: BTreeMap<u32, OperationId>,
    vertex_types: Vec<VertexTypeInfo>,
    vertex_ids: BTreeMap<u32, VertexTypeId>,
    compute_sets: Vec<ComputeSet>,
    programs: Vec<ProgramNode>,
    /// Samples of compute programs, by program and tile.
    work: BTreeMap<ProgramId, Vec<usize>>,
}

impl MeasuredParts {
    fn new(run: &MeasuredRun<'_>) -> Self {
        let mut parts = Self {
            operations: Vec::new(),
            operation_ids: BTreeMap::new(),
            vertex_types: Vec::new(),
            vertex_ids: BTreeMap::new(),
            compute_sets: Vec::new(),
            programs: Vec::new(),
            work: BTreeMap::new(),
        };
        // A program in which two operations work at once belongs to the one with most samples, but
        // all operations and kernels are listed.
        let mut kernels: BTreeMap<u32, BTreeSet<u32>> = BTreeMap::new();
        let all = run.programs.iter().flat_map(|program| &program.key.work);
        for (operation, kernel) in all.clone() {
            kernels.entry(*operation).or_default().insert(*kernel);
        }
        for (operation, kernel) in all {
            parts.list(run, *operation, *kernel, &kernels);
        }
        for step in &run.steps {
            let computes = run.samples_of(step).filter(|at| run.kind(*at) == SampleKind::Compute);
            parts.work.entry(step.program).or_default().extend(computes);
        }
        parts
    }

    /// Adds an operation and a kernel to the lists, unless they are listed already.
    fn list(
        &mut self,
        run: &MeasuredRun<'_>,
        operation: u32,
        kernel: u32,
        kernels: &BTreeMap<u32, BTreeSet<u32>>,
    ) {
        let get_text = |number| run.profile.labels.text(number);
        let name = get_text(operation);
        if !name.is_empty() && !self.operation_ids.contains_key(&operation) {
            let own = kernels.get(&operation).into_iter().flatten().map(|kernel| get_text(*kernel));
            let kind = joined(own.filter(|name| !name.is_empty()).collect());
            self.operation_ids.insert(operation, OperationId::from_index(self.operations.len()));
            self.operations.push(measured_operation(name, kind));
        }
        let name = get_text(kernel);
        if !name.is_empty() && !self.vertex_ids.contains_key(&kernel) {
            self.vertex_ids.insert(kernel, VertexTypeId::from_index(self.vertex_types.len()));
            self.vertex_types.push(VertexTypeInfo {
                name,
                code_bytes: Bytes::ZERO,
                shares_code: false,
                state_bytes: Bytes::ZERO,
            });
        }
    }

    /// Builds a program of the run.
    fn program(&mut self, run: &MeasuredRun<'_>, program: &MeasuredProgram) -> ProgramId {
        let id = ProgramId::from_index(self.programs.len());
        let name = program_name(run, program);
        let (kind, name) = match program.key.kind {
            SampleKind::Compute => (ProgramKind::OnTileExecute, name),
            SampleKind::Exchange => (ProgramKind::DoExchange, name),
            SampleKind::Synchronization => (ProgramKind::Sync, sync_name(run).to_owned()),
            SampleKind::Idle => (ProgramKind::Unknown, format!("{name}/Idle")),
        };
        let mut node = ProgramNode::new(kind, name);
        node.operation = self.operation_ids.get(&program.operation).copied();
        if kind == ProgramKind::OnTileExecute {
            node.compute_set = Some(ComputeSetId::from_index(self.compute_sets.len()));
            let set = self.compute_set(run, id, node.name.clone());
            self.compute_sets.push(set);
        }
        self.programs.push(node);
        id
    }

    fn compute_set(&self, run: &MeasuredRun<'_>, program: ProgramId, name: String) -> ComputeSet {
        let mut samples = self.work.get(&program).cloned().unwrap_or_default();
        samples.sort_by_key(|at| run.tile(*at));
        let mut cycles = TileRuns::empty();
        let mut kernels: BTreeMap<VertexTypeId, TileRuns<u64>> = BTreeMap::new();
        for own in samples.chunk_by(|one, next| run.tile(*one) == run.tile(*next)) {
            let Some(tile) = own.first().map(|at| TileRange::single(run.tile(*at))) else {
                continue;
            };
            let sum: Cycles = own.iter().map(|at| run.cycles_of(*at).length()).sum();
            cycles.push(tile, sum / own.len() as u64);
            let used = own.iter().filter_map(|at| self.vertex_ids.get(&run.kernel(*at)));
            for kernel in used.collect::<BTreeSet<_>>() {
                kernels.entry(*kernel).or_default().push(tile, 1);
            }
        }
        let group =
            |(vertex_type, count)| VertexGroup { vertex_type, count, edges: 0, flops: None };
        ComputeSet { name, cycles, vertices: kernels.into_iter().map(group).collect() }
    }
}

fn measured_operation(name: String, kind: String) -> ModelOperation {
    ModelOperation {
        name,
        kind,
        source: None,
        pass: TrainingPass::Forward,
        block: None,
        ipu: Some(IpuId(0)),
        flops: 0,
        element_type: None,
        inner_runs: None,
        cost_basis: None,
        shapes: String::new(),
        plan: None,
        inputs: Vec::new(),
    }
}

/// The names of the operations of a program; if it has none, of its kernels or its phase.
fn program_name(run: &MeasuredRun<'_>, program: &MeasuredProgram) -> String {
    let join_texts = |numbers: BTreeSet<u32>| {
        let names = numbers.into_iter().map(|number| run.profile.labels.text(number));
        joined(names.filter(|name| !name.is_empty()).collect())
    };
    let work = &program.key.work;
    let operations = join_texts(work.iter().map(|(operation, _)| *operation).collect());
    let kernels = join_texts(work.iter().map(|(_, kernel)| *kernel).collect());
    match (operations.is_empty(), kernels.is_empty(), program.key.place) {
        (false, ..) => operations,
        (_, false, _) => kernels,
        (.., Some((phase, _))) => format!("phase {phase}"),
        (.., None) => program.key.kind.name().to_owned(),
    }
}

/// A sync in a run of one IPU is among its tiles; with several IPUs, they wait for each other.
fn sync_name(run: &MeasuredRun<'_>) -> &'static str {
    if run.ipus == 1 { INTERNAL_SYNC } else { EXTERNAL_SYNC }
}

/// The first of some names, and the number of the others.
fn joined(names: Vec<String>) -> String {
    let shown = names.iter().take(MAX_JOINED_NAMES).map(String::as_str);
    let text = shown.collect::<Vec<_>>().join(", ");
    match names.len().saturating_sub(MAX_JOINED_NAMES) {
        0 => text,
        more => format!("{text} and {more} more"),
    }
}
