//! The tables of a report, built while the program is compiled: programs, compute sets, exchanges,
//! and the cost of each run of a leaf program.

use super::fragment_items::FragmentItem;
use super::outline::{OutlineReuse, OutlineSequence, fingerprint};
use crate::cost_constants::{
    COMPUTE_START_CYCLES, CONTROL_BYTES_PER_STEP, EXCHANGE_START_CYCLES, INTERNAL_SYNC_CYCLES,
};
use crate::poplar::code_bytes;
use crate::poplar::code_bytes::TileCodeBytes;
use crate::poplar::routes::WorkRoutes;
use crate::poplar::tile_runs;
use crate::poplar::work::{
    OperationWork, OperationWorkItem, VertexInstances, WorkPhase, WorkPhaseKind,
};
use crate::targets::Chip;
use std::collections::{BTreeMap, BTreeSet};
use tilescope_report::units::{
    Bytes, ComputeSetId, Cycles, IpuId, OperationId, ProgramId, TileId, TileRuns, VertexTypeId,
};
use tilescope_report::{
    ComputeSet, EXTERNAL_SYNC, ExchangeRoute, ExchangeTraffic, INTERNAL_SYNC, LivenessStep,
    MemoryCategory, ProgramKind, ProgramNode, TargetKind, TileTraffic, VertexGroup, VertexTypeInfo,
};

/// The cost of one run of a leaf program on its IPU.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LeafProgramCost {
    /// The IPU of the replica.
    pub ipu: IpuId,
    /// Cycles of the slowest tile, which is the length of the step.
    pub cycles: Cycles,
    /// Cycles of the fastest active tile.
    pub fastest_tile_cycles: Cycles,
    /// The number of tiles that are active.
    pub active_tiles: u32,
    /// Mean active cycles divided by the longest.
    pub tile_balance: f32,
    /// Bytes that tiles receive.
    pub bytes_in: Bytes,
    /// Bytes that tiles send.
    pub bytes_out: Bytes,
}

/// The leaves of a work that was added to a program.
#[derive(Debug)]
pub(crate) struct EmittedWork {
    pub items: Vec<FragmentItem>,
    /// The liveness step of each phase.
    pub steps: Vec<u32>,
    /// True if the work shares its code, vertices and constants with an equal earlier work.
    pub shares_code: bool,
}

#[derive(Debug)]
pub(crate) struct ProgramTables {
    /// Hardware or IPU Model.
    pub kind: TargetKind,
    /// Tiles of one IPU.
    pub tiles_per_ipu: u32,
    /// Cycles of a sync of the tiles of an IPU.
    internal_sync_cycles: Cycles,
    pub programs: Vec<ProgramNode>,
    /// Costs of leaves that run on one IPU, by program.
    pub costs: BTreeMap<ProgramId, LeafProgramCost>,
    pub compute_sets: Vec<ComputeSet>,
    pub vertex_types: Vec<VertexTypeInfo>,
    pub exchanges: Vec<ExchangeTraffic>,
    /// Senders and receivers of exchanges, if known.
    pub routes: Vec<ExchangeRoute>,
    /// Control code of each program, on the tiles that take part.
    pub control_code: BTreeMap<ProgramId, TileRuns<Bytes>>,
    /// Control code of calls of outlined code, by IPU and position of the work that they begin
    /// with.
    pub(super) call_code: BTreeMap<(IpuId, usize), TileRuns<Bytes>>,
    /// Liveness steps. Their bytes are filled in when memory is known.
    pub liveness: Vec<LivenessStep>,
    pub code: TileCodeBytes,
    vertex_type_ids: BTreeMap<String, VertexTypeId>,
    tiles_of_type: Vec<Vec<bool>>,
    /// The works of each IPU, for code sharing.
    pub(super) outlines: BTreeMap<IpuId, OutlineSequence>,
    /// True if equal works share code: PopART's `enableOutlining`.
    outlining: bool,
    /// Fingerprints of code besides steps that an IPU already has.
    known_code: BTreeSet<(IpuId, u64)>,
    /// True if the work that is being added runs existing code.
    shared_code: bool,
    /// The leaves of the work that is being added.
    leaves: Vec<ProgramId>,
    /// The leaves of the equal work whose code is reused, in the same order.
    body: Vec<ProgramId>,
}

impl ProgramTables {
    /// The number of tiles of all IPUs before an IPU.
    pub(crate) fn tiles_before(&self, ipu: IpuId) -> u32 {
        ipu.0 * self.tiles_per_ipu
    }

    /// Creates empty tables. Equal works share code if `outlining` is true.
    pub(crate) fn new(kind: TargetKind, chip: &Chip, code: TileCodeBytes, outlining: bool) -> Self {
        Self {
            kind,
            tiles_per_ipu: chip.tiles,
            internal_sync_cycles: chip.internal_sync(),
            programs: Vec::new(),
            costs: BTreeMap::new(),
            compute_sets: Vec::new(),
            vertex_types: Vec::new(),
            exchanges: Vec::new(),
            routes: Vec::new(),
            control_code: BTreeMap::new(),
            call_code: BTreeMap::new(),
            liveness: Vec::new(),
            code,
            vertex_type_ids: BTreeMap::new(),
            tiles_of_type: Vec::new(),
            outlines: BTreeMap::new(),
            outlining,
            known_code: BTreeSet::new(),
            shared_code: false,
            leaves: Vec::new(),
            body: Vec::new(),
        }
    }

    /// Adds a program node and returns its id.
    pub(crate) fn program(&mut self, program: ProgramNode) -> ProgramId {
        self.programs.push(program);
        ProgramId::from_index(self.programs.len() - 1)
    }

    /// Adds a node with children.
    pub(crate) fn group(
        &mut self,
        kind: ProgramKind,
        name: &str,
        children: Vec<ProgramId>,
    ) -> ProgramId {
        debug_assert!(
            children.iter().all(|child| child.index() < self.programs.len()),
            "children come before their parent, so the tree has no circle"
        );
        self.program(ProgramNode { children, ..ProgramNode::new(kind, name) })
    }

    /// Adds a loop over `body`.
    pub(crate) fn repeat(&mut self, times: u64, body: ProgramId) -> ProgramId {
        let repeat = self.group(ProgramKind::Repeat, "", vec![body]);
        self.programs[repeat.index()].repeats = times;
        repeat
    }

    /// Adds a leaf that is one step of the liveness walk.
    pub(crate) fn push_leaf(&mut self, program: ProgramNode) -> ProgramId {
        let id = self.program(program);
        self.liveness.push(LivenessStep { program: id, bytes: Bytes::ZERO });
        id
    }

    /// The index of the next liveness step.
    #[expect(clippy::cast_possible_truncation, reason = "each step is a program, and has its id")]
    pub(crate) fn next_step(&self) -> u32 {
        self.liveness.len() as u32
    }

    /// Adds the phases of a work as leaves on `ipu`.
    pub(crate) fn work(
        &mut self,
        operation: Option<OperationId>,
        operation_name: &str,
        ipu: IpuId,
        work: &OperationWork,
    ) -> EmittedWork {
        let mut steps = Vec::new();
        // Equal works of one IPU share code and vertices. A call costs a step.
        let is_outlined = self.outlining && !work.items.is_empty();
        let code = if is_outlined {
            self.outline(ipu).add(fingerprint(&work.items))
        } else {
            OutlineReuse::FirstUse
        };
        if code == OutlineReuse::NewCall {
            // The call itself is new code, so it is added before `shared_code` suppresses code.
            self.call_code(ipu, work);
        }
        let shared = code != OutlineReuse::FirstUse;
        self.shared_code = shared;
        self.body = if shared { self.outline(ipu).body_of_last().to_vec() } else { Vec::new() };
        let items = self.items(operation, operation_name, ipu, &work.items, &mut steps);
        self.shared_code = false;
        let leaves = std::mem::take(&mut self.leaves);
        if is_outlined {
            self.outline(ipu).set_leaves_of_last(leaves);
        }
        EmittedWork { items, steps, shares_code: shared }
    }

    fn outline(&mut self, ipu: IpuId) -> &mut OutlineSequence {
        self.outlines.entry(ipu).or_default()
    }

    /// The leaf whose code the next leaf of this work runs.
    fn body_leaf(&self) -> Option<ProgramId> {
        self.body.get(self.leaves.len()).copied()
    }

    /// Returns true if an IPU already has the code that `print` describes, and records that it has
    /// it from now on.
    pub(crate) fn code_exists_or_insert(&mut self, ipu: IpuId, print: &str) -> bool {
        !self.known_code.insert((ipu, fingerprint(&print))) && self.outlining
    }

    /// Records that the following work on an IPU uses persistent tensors of its own, so that a call
    /// needs them as arguments.
    pub(crate) fn bind_arguments(&mut self, ipu: IpuId) {
        self.outline(ipu).end_call();
    }

    /// Adds the same amount of code to each tile in `tiles` of an IPU.
    pub(crate) fn code_on<T>(
        &mut self,
        category: MemoryCategory,
        ipu: IpuId,
        tiles: &TileRuns<T>,
        bytes: Bytes,
    ) {
        for (range, _) in tiles.shifted(self.tiles_before(ipu)).iter() {
            for tile in range.iter() {
                self.add_code_unless_shared(category, tile, bytes);
            }
        }
    }

    /// Adds the control code of a call of outlined code, on the tiles that its first phase uses.
    fn call_code(&mut self, ipu: IpuId, work: &OperationWork) {
        if let Some((phase, _)) = work.phases().first() {
            let (WorkPhaseKind::Exchange { cycles, .. } | WorkPhaseKind::Compute { cycles, .. }) =
                &phase.kind;
            let bytes = CONTROL_BYTES_PER_STEP.bytes();
            self.code_on(MemoryCategory::ControlCode, ipu, cycles, bytes);
            let code = self.control_code_on(ipu, cycles, bytes);
            let place = self.outline(ipu).last_place();
            self.call_code.extend(code.zip(place).map(|(code, place)| ((ipu, place), code)));
        }
    }

    /// Adds the control code of a program on the tiles of one IPU.
    pub(crate) fn program_code<T: Clone + PartialEq>(
        &mut self,
        program: ProgramId,
        ipu: IpuId,
        tiles: &TileRuns<T>,
        bytes: Bytes,
    ) {
        self.code_on(MemoryCategory::ControlCode, ipu, tiles, bytes);
        let more = self.control_code_on(ipu, tiles, bytes);
        let known = self.control_code.remove(&program);
        let code = match (known, more) {
            (Some(known), Some(more)) => Some(tile_runs::add_per_tile(&known, &more)),
            (known, more) => known.or(more),
        };
        self.control_code.extend(code.map(|code| (program, code)));
    }

    /// Bytes of control code on each tile in `tiles` of an IPU. Zero if no code is generated, or if
    /// the code of an equal work is shared.
    fn control_code_on<T: Clone + PartialEq>(
        &self,
        ipu: IpuId,
        tiles: &TileRuns<T>,
        bytes: Bytes,
    ) -> Option<TileRuns<Bytes>> {
        let is_generated = self.kind == TargetKind::Ipu && !self.shared_code && !tiles.is_empty();
        if !is_generated {
            return None;
        }
        Some(tiles.map(|_| bytes).shifted(self.tiles_before(ipu)))
    }

    /// Adds code or state of a program on one tile, unless the program shares the code of another.
    fn add_code_unless_shared(&mut self, category: MemoryCategory, tile: TileId, bytes: Bytes) {
        if !self.shared_code {
            self.code.add(category, tile, bytes);
        }
    }

    fn items(
        &mut self,
        operation: Option<OperationId>,
        name: &str,
        ipu: IpuId,
        items: &[OperationWorkItem],
        steps: &mut Vec<u32>,
    ) -> Vec<FragmentItem> {
        let mut found = Vec::new();
        for item in items {
            match item {
                OperationWorkItem::Phase(phase) => {
                    found.extend(self.phase(operation, name, ipu, phase, steps));
                }
                OperationWorkItem::Loop { times, body } => found.push(FragmentItem::Loop {
                    times: *times,
                    body: self.items(operation, name, ipu, body, steps),
                }),
            }
        }
        found
    }

    /// Adds one phase: a sync and an exchange, or a compute set.
    fn phase(
        &mut self,
        operation: Option<OperationId>,
        operation_name: &str,
        ipu: IpuId,
        phase: &WorkPhase,
        steps: &mut Vec<u32>,
    ) -> Vec<FragmentItem> {
        let name = format!("{operation_name}/{}", phase.name);
        let base = ProgramNode {
            ipu: Some(ipu),
            operation,
            ..ProgramNode::new(ProgramKind::OnTileExecute, "")
        };
        match &phase.kind {
            WorkPhaseKind::Exchange { traffic, cycles, routes } => {
                // A sync uses no tensor, so only the exchange has a liveness step.
                let sync = self.internal_sync(ipu);
                self.leaves.push(sync);
                steps.push(self.next_step());
                let kind = ProgramKind::DoExchange;
                let body = self.body_leaf();
                // Calls share the number of the function's own exchange.
                let shared = body
                    .and_then(|body| exchange_number_and_path(&self.programs[body.index()].name));
                let number = match shared {
                    Some((number, _)) => number.to_owned(),
                    None => format!("cs{}", self.compute_sets.len()),
                };
                let name = format!("{number}_{name}");
                let exchange = self.push_leaf(ProgramNode { kind, name, ..base });
                self.leaves.push(exchange);
                self.costs.insert(exchange, exchange_cost(ipu, traffic, cycles));
                // The report has the traffic and the code of the body already.
                if let Some(body) = body {
                    self.forget_other_routes(body, ipu, routes);
                    return vec![FragmentItem::Leaf(sync), FragmentItem::Leaf(exchange)];
                }
                self.exchange(exchange, ipu, &routes.actual_traffic(traffic), cycles);
                let before = self.tiles_before(ipu);
                for route in routes.iter() {
                    self.routes.push(ExchangeRoute {
                        program: exchange,
                        tiles: route.tiles.shifted(before),
                        pattern: route.pattern.shifted(before),
                    });
                }
                vec![FragmentItem::Leaf(sync), FragmentItem::Leaf(exchange)]
            }
            WorkPhaseKind::Compute { cycles, vertices } => {
                steps.push(self.next_step());
                let shared = self.body_leaf().and_then(|id| self.programs[id.index()].compute_set);
                let set = match shared {
                    Some(set) => set,
                    None => self.compute_set(&name, ipu, cycles, vertices),
                };
                let execute = self.push_leaf(ProgramNode { name, compute_set: Some(set), ..base });
                self.leaves.push(execute);
                self.costs.insert(execute, compute_cost(ipu, cycles));
                self.program_code(execute, ipu, cycles, CONTROL_BYTES_PER_STEP.bytes());
                vec![FragmentItem::Leaf(execute)]
            }
        }
    }

    /// Removes the routes of `body` if a call of its code has other ones: data of an equal exchange
    /// may come from other tiles.
    fn forget_other_routes(&mut self, body: ProgramId, ipu: IpuId, routes: &WorkRoutes) {
        let before = self.tiles_before(ipu);
        // Routes are added in the order of programs.
        let first = self.routes.partition_point(|route| route.program < body);
        let end = self.routes.partition_point(|route| route.program <= body);
        let same = routes.iter().count() == end - first
            && routes.iter().zip(&self.routes[first..end]).all(|(one, known)| {
                one.tiles.shifted(before) == known.tiles
                    && one.pattern.shifted(before) == known.pattern
            });
        if !same {
            self.routes.drain(first..end);
        }
    }

    /// Adds a leaf on one IPU with its cost, and the control code of a step on its tiles.
    pub(crate) fn push_leaf_with_cost(
        &mut self,
        program: ProgramNode,
        cost: LeafProgramCost,
        tiles: &TileRuns<Bytes>,
    ) -> ProgramId {
        let print = fingerprint(&(program.kind as u8, tiles));
        let code =
            if self.outlining { self.outline(cost.ipu).add(print) } else { OutlineReuse::FirstUse };
        debug_assert!(
            cost.fastest_tile_cycles <= cost.cycles,
            "{}: the slowest tile is not slower",
            program.name
        );
        let id = self.push_leaf(program);
        self.costs.insert(id, cost);
        // A new call takes as much control code as a step. Steps that continue a call take none.
        if code != OutlineReuse::ContinuedCall {
            self.program_code(id, cost.ipu, tiles, CONTROL_BYTES_PER_STEP.bytes());
        }
        id
    }

    /// Adds a sync of all IPUs, which includes the host if a stream copy follows.
    pub(crate) fn external_sync(&mut self) -> ProgramId {
        self.program(ProgramNode::new(ProgramKind::Sync, EXTERNAL_SYNC))
    }

    /// Adds a sync of the tiles of one IPU.
    pub(crate) fn internal_sync(&mut self, ipu: IpuId) -> ProgramId {
        let sync = self.program(ProgramNode {
            ipu: Some(ipu),
            ..ProgramNode::new(ProgramKind::Sync, INTERNAL_SYNC)
        });
        let tiles = self.tiles_per_ipu;
        self.costs.insert(sync, whole_ipu_cost(ipu, self.internal_sync_cycles, tiles));
        sync
    }

    fn exchange(
        &mut self,
        program: ProgramId,
        ipu: IpuId,
        traffic: &TileRuns<TileTraffic>,
        cycles: &TileRuns<Cycles>,
    ) {
        let kind = self.kind;
        self.program_code(program, ipu, cycles, CONTROL_BYTES_PER_STEP.bytes());
        let tiles = traffic.map(|tile| TileTraffic {
            code_bytes: code_bytes::exchange_code_bytes(tile, kind),
            ..*tile
        });
        self.traffic(program, ipu, tiles, MemoryCategory::InternalExchangeCode);
        if let Some(exchange) = self.exchanges.last_mut() {
            exchange.cycles = cycles.shifted(ipu.0 * self.tiles_per_ipu);
        }
    }

    /// Records the traffic of a program and its code on the tiles of one IPU.
    pub(crate) fn traffic(
        &mut self,
        program: ProgramId,
        ipu: IpuId,
        tiles: TileRuns<TileTraffic>,
        category: MemoryCategory,
    ) {
        let tiles = tiles.shifted(self.tiles_before(ipu));
        for (range, tile) in tiles.iter() {
            for tile_number in range.iter() {
                self.add_code_unless_shared(category, tile_number, tile.code_bytes);
            }
        }
        self.exchanges.push(ExchangeTraffic { program, tiles, cycles: TileRuns::empty() });
    }

    /// Records the bytes that tiles receive from or send to the host or streaming memory, and their
    /// code unless they already have it.
    pub(crate) fn host_traffic(
        &mut self,
        program: ProgramId,
        ipu: IpuId,
        bytes: &TileRuns<Bytes>,
        to_ipu: bool,
        has_code: bool,
    ) {
        let kind = self.kind;
        let tiles = bytes.map(|bytes| {
            // No tile sends the data that comes from the host, and no tile receives the data that
            // goes there.
            let (bytes_in, bytes_out) =
                if to_ipu { (*bytes, Bytes::ZERO) } else { (Bytes::ZERO, *bytes) };
            let mut tile = TileTraffic { bytes_in, bytes_out, ..TileTraffic::default() };
            if !has_code {
                tile.code_bytes = code_bytes::host_code_bytes(&tile, kind);
            }
            tile
        });
        self.traffic(program, ipu, tiles, MemoryCategory::HostExchangeCode);
    }

    fn compute_set(
        &mut self,
        name: &str,
        ipu: IpuId,
        cycles: &TileRuns<Cycles>,
        vertices: &[VertexInstances],
    ) -> ComputeSetId {
        let offset = self.tiles_before(ipu);
        let groups: Vec<VertexGroup> =
            vertices.iter().map(|vertex| self.vertices(vertex, offset)).collect();
        if !self.shared_code {
            self.code.add_compute_set();
        }
        self.compute_sets.push(ComputeSet {
            name: name.to_string(),
            cycles: cycles.shifted(offset),
            vertices: groups,
        });
        ComputeSetId::from_index(self.compute_sets.len() - 1)
    }

    /// Interns the vertex type and adds the code, state and fields of its instances.
    fn vertices(&mut self, vertex: &VertexInstances, offset: u32) -> VertexGroup {
        let id = self.vertex_type(vertex);
        let count = vertex.count.shifted(offset);
        let code_bytes = self.vertex_types[id.index()].code_bytes;
        let copies = code_bytes::is_copy_vertex(&vertex.vertex_type);
        let state = code_bytes::vertex_state_bytes(vertex.edges);
        for (range, instances) in count.iter() {
            for tile in range.iter() {
                self.add_code_unless_shared(
                    MemoryCategory::VertexInstanceState,
                    tile,
                    *instances * state,
                );
                self.add_code_unless_shared(
                    MemoryCategory::VertexFieldData,
                    tile,
                    *instances * vertex.field_bytes,
                );
                // All types of copy vertices run the same code.
                if copies {
                    self.code.add_copy_code(tile);
                } else if !std::mem::replace(
                    &mut self.tiles_of_type[id.index()][tile.index()],
                    true,
                ) {
                    self.code.add(MemoryCategory::VertexCode, tile, code_bytes);
                }
            }
        }
        VertexGroup { vertex_type: id, count, edges: vertex.edges, flops: vertex.flops }
    }

    fn vertex_type(&mut self, vertex: &VertexInstances) -> VertexTypeId {
        if let Some(id) = self.vertex_type_ids.get(&vertex.vertex_type) {
            return *id;
        }
        let id = VertexTypeId::from_index(self.vertex_types.len());
        self.vertex_types.push(VertexTypeInfo {
            name: vertex.vertex_type.clone(),
            code_bytes: code_bytes::vertex_code_bytes(&vertex.vertex_type, self.kind),
            // All copy vertices of a tile run the same code.
            shares_code: code_bytes::is_copy_vertex(&vertex.vertex_type),
            state_bytes: code_bytes::vertex_state_bytes(vertex.edges),
        });
        self.vertex_type_ids.insert(vertex.vertex_type.clone(), id);
        self.tiles_of_type.push(vec![false; self.code.category(MemoryCategory::Stack).len()]);
        id
    }
}

/// The cost of a step in which all tiles of an IPU are active for the same time.
pub(crate) fn whole_ipu_cost(ipu: IpuId, cycles: Cycles, tiles: u32) -> LeafProgramCost {
    LeafProgramCost {
        ipu,
        cycles,
        fastest_tile_cycles: cycles,
        active_tiles: tiles,
        tile_balance: 1.0,
        bytes_in: Bytes::ZERO,
        bytes_out: Bytes::ZERO,
    }
}

/// Splits the name of an exchange into `cs12`, the number of the compute set that follows it, and
/// the path. Returns `None` for names of other programs.
pub(super) fn exchange_number_and_path(name: &str) -> Option<(&str, &str)> {
    name.split_once('_').filter(|(number, _)| {
        let digits = number.strip_prefix("cs").unwrap_or_default();
        !digits.is_empty() && digits.bytes().all(|digit| digit.is_ascii_digit())
    })
}

fn exchange_cost(
    ipu: IpuId,
    traffic: &TileRuns<TileTraffic>,
    cycles: &TileRuns<Cycles>,
) -> LeafProgramCost {
    LeafProgramCost {
        bytes_in: traffic.map(|tile| tile.bytes_in).total(),
        bytes_out: traffic.map(|tile| tile.bytes_out).total(),
        // The constant includes the sync, which is a separate step of a trace.
        ..cost(ipu, cycles, EXCHANGE_START_CYCLES.cycles() - INTERNAL_SYNC_CYCLES.cycles())
    }
}

fn compute_cost(ipu: IpuId, cycles: &TileRuns<Cycles>) -> LeafProgramCost {
    cost(ipu, cycles, COMPUTE_START_CYCLES.cycles())
}

/// The cost of a step from the cycles of its tiles, which begin after `start` cycles.
#[expect(clippy::cast_possible_truncation, reason = "shares are kept to seven digits")]
fn cost(ipu: IpuId, cycles: &TileRuns<Cycles>, start: Cycles) -> LeafProgramCost {
    let tiles = cycles.tile_count();
    let longest = start + cycles.max();
    let mean = start.as_f64() + cycles.total().as_f64() / f64::from(tiles.max(1));
    LeafProgramCost {
        ipu,
        cycles: longest,
        fastest_tile_cycles: start
            + cycles.iter().map(|(_, cycles)| *cycles).min().unwrap_or_default(),
        active_tiles: tiles,
        tile_balance: if longest.is_zero() { 1.0 } else { (mean / longest.as_f64()) as f32 },
        bytes_in: Bytes::ZERO,
        bytes_out: Bytes::ZERO,
    }
}
