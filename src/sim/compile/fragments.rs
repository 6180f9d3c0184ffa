//! The pieces a program is put together from: what one stage does in one pass, host copies, and
//! copies between IPUs.

use super::tables::{Item, Tables, leaf};
use super::tensors::{Boundary, Home, Lifetimes, Tensors};
use crate::report::{
    Category, Operation, Pass, Program, ProgramKind, Route, StreamEnd, TileTraffic,
};
use crate::sim::graph::{Graph, Node, Role, Shape, TensorId};
use crate::sim::lower::exchange::sends;
use crate::sim::lower::work::{Phase, PhaseKind, Place, Temporary, VertexUse, Work, WorkItem};
use crate::sim::lower::{LowerError, Lowered, Lowering, code};
use crate::sim::schedule::Placement;
use crate::units::{OperationId, ProgramId, TileRange, TileRuns};
use std::collections::BTreeMap;
use std::ops::Range;

/// What one stage does in one pass.
#[derive(Clone, Debug)]
pub struct Fragment {
    /// Stage.
    pub stage: usize,
    /// Forward, backward or update.
    pub pass: Pass,
    /// IPU of the replica.
    pub ipu: u32,
    /// Its function in the program tree.
    pub function: ProgramId,
    /// Its steps.
    pub items: Vec<Item>,
}

/// A copy between the host and one IPU.
#[derive(Clone, Debug)]
pub struct HostCopy {
    /// Stage on that IPU.
    pub stage: usize,
    /// IPU of the replica.
    pub ipu: u32,
    /// The sync before it, and its three steps.
    pub programs: [ProgramId; 4],
    /// Bytes to the IPU.
    pub bytes_in: u64,
    /// Bytes from the IPU.
    pub bytes_out: u64,
    /// Tiles that take part.
    pub active_tiles: u32,
}

/// Copies between IPUs that happen together.
#[derive(Clone, Debug)]
pub struct LinkCopy {
    /// The stage and pass after which it happens; `None` for a pipeline, where all copies happen
    /// after each slot.
    pub after: Option<(usize, Pass)>,
    /// The sync before it and the exchange.
    pub programs: [ProgramId; 2],
    /// Source IPU, destination IPU, bytes.
    pub flows: Vec<(u32, u32, u64)>,
    /// Tiles that take part, by IPU.
    pub active_tiles: Vec<u32>,
}

/// A temporary or kept variable that belongs to no tensor of the graph.
#[derive(Clone, Debug)]
pub struct Extra {
    /// Name.
    pub name: String,
    /// Category.
    pub category: Category,
    /// Operation it was made for.
    pub operation: Option<OperationId>,
    /// Type and shape in words.
    pub shape: String,
    /// Liveness steps; `None` means always.
    pub lifetime: Option<Range<u32>>,
    /// What its vertices need of its place.
    pub place: Place,
    /// Bytes on each tile of the replica.
    pub bytes: TileRuns<u64>,
}

/// Everything needed while fragments are made.
pub struct Maker<'a> {
    /// The graph.
    pub graph: &'a Graph,
    /// Where blocks run.
    pub placement: &'a Placement,
    /// Facts about tensors.
    pub tensors: &'a Tensors,
    /// Layouts and plans.
    pub lowering: Lowering<'a>,
    /// Report tables.
    pub tables: Tables,
    /// What each node of the graph lowers to, until it is put down.
    pub works: Vec<Lowered>,
    /// Lives of tensors.
    pub lifetimes: Lifetimes,
    /// Variables beside tensors.
    pub extras: Vec<Extra>,
    /// Operations of the report.
    pub operations: Vec<Operation>,
    /// The operation that wrote a memory last.
    pub makers: BTreeMap<Home, OperationId>,
    /// Micro-batches of a stage that are in flight.
    pub stash_depth: fn(stages: usize, stage: usize) -> u64,
}

impl Maker<'_> {
    fn ipu(&self, stage: usize) -> u32 {
        self.placement.stages[stage].ipu
    }

    fn offset(&self, ipu: u32) -> u32 {
        ipu * self.tables.tiles_per_ipu
    }

    /// Bytes of a tensor on each tile of an IPU, laid out as it lies.
    fn bytes(&mut self, tensor: TensorId) -> TileRuns<u64> {
        let element_bytes = self.lowering.ty(tensor).dtype.bytes();
        self.lowering.layout_or_linear(tensor).bytes(element_bytes)
    }

    /// Lowers all nodes, in the order of the graph: layouts hand on from one to the next.
    ///
    /// # Errors
    /// An operation without a plan.
    pub fn lower(&mut self) -> Result<(), LowerError> {
        self.lowering.plan_ahead();
        for node in &self.graph.nodes {
            self.works.push(self.lowering.lower(node)?);
        }
        Ok(())
    }

    /// Puts together what one stage does in one pass.
    pub fn fragment(&mut self, stage: usize, pass: Pass) -> Fragment {
        let graph = self.graph;
        let ipu = self.ipu(stage);
        let mut items = Vec::new();
        if pass == Pass::Backward {
            items.extend(self.restore(stage));
        }
        for (index, node) in graph.nodes.iter().enumerate() {
            if node.pass == pass && self.placement.stage(node.block) == stage {
                items.extend(self.node(index, node, stage, ipu));
            }
        }
        if pass == Pass::Forward {
            items.extend(self.stash(stage));
        }
        let name = format!("{}/{}", self.placement.stages[stage].name, pass_name(pass));
        let children = leaves(&items, &mut self.tables);
        let function = self.tables.group(ProgramKind::Sequence, &name, children);
        Fragment { stage, pass, ipu, function, items }
    }

    /// Puts the steps of one node down and notes what they keep alive.
    fn node(&mut self, index: usize, node: &Node, stage: usize, ipu: u32) -> Vec<Item> {
        let Lowered { work, plan, lives } = std::mem::take(&mut self.works[index]);
        let operation = self.operation(node, stage, ipu, plan);
        let first = self.tables.next_step();
        let (items, steps) = self.tables.work(Some(operation), &node.name, ipu, &work);
        let end = self.tables.next_step();
        if first == end {
            return items;
        }
        let step = |phase: usize| steps.get(phase).copied();
        let until = lives.inputs_until.into_iter().chain(std::iter::repeat(None));
        let inputs = node.inputs.iter().zip(until).map(|(tensor, until)| {
            let end =
                until.and_then(|phase| step(phase.checked_sub(1)?)).map_or(end, |last| last + 1);
            (*tensor, first..end)
        });
        let from = step(lives.outputs_from).unwrap_or(first);
        let outputs = node.outputs.iter().map(|tensor| (*tensor, from..end));
        for (tensor, used) in inputs.chain(outputs) {
            let home = self.tensors.home(tensor, stage, ipu, node.pass);
            self.lifetimes.touch(home, used);
        }
        self.keep_temporaries(&work, operation, &node.name, ipu, &steps);
        items
    }

    /// Adds a row to the report's operations.
    fn operation(
        &mut self,
        node: &Node,
        stage: usize,
        ipu: u32,
        plan: Option<String>,
    ) -> OperationId {
        let homes = |tensors: &[TensorId]| -> Vec<Home> {
            let home = |tensor: &TensorId| self.tensors.home(*tensor, stage, ipu, node.pass);
            tensors.iter().map(home).collect()
        };
        let (read, written) = (homes(&node.inputs), homes(&node.outputs));
        let inputs = self.inputs(&read);
        let types = self.graph.types(&node.inputs);
        let operands: Vec<String> = types.iter().map(|ty| Shape(&ty.shape).to_string()).collect();
        let results: Vec<String> =
            self.graph.types(&node.outputs).iter().map(|ty| Shape(&ty.shape).to_string()).collect();
        let arrow = if results.is_empty() { "" } else { " -> " };
        self.operations.push(Operation {
            name: node.name.clone(),
            kind: node.operator.kind().to_string(),
            pass: node.pass,
            block: self.graph.blocks.get(node.block.0).cloned(),
            ipu,
            flops: self.graph.node_flops(node),
            shapes: format!("{}{arrow}{}", operands.join(" x "), results.join(", ")),
            plan,
            inputs,
        });
        let operation = OperationId(self.operations.len() as u32 - 1);
        self.makers.extend(written.into_iter().map(|home| (home, operation)));
        operation
    }

    /// The operations that wrote what is read; what other IPUs made comes from there.
    fn inputs(&self, read: &[Home]) -> Vec<OperationId> {
        let mut inputs: Vec<OperationId> = Vec::new();
        for home in read {
            let elsewhere = || {
                let anywhere = |ipu| Home { ipu, restored: false, ..*home };
                let mut copies = self.makers.range(anywhere(0)..=anywhere(u32::MAX));
                copies.find(|(of, _)| !of.restored).map(|(_, operation)| operation)
            };
            if let Some(operation) = self.makers.get(home).or_else(elsewhere)
                && !inputs.contains(operation)
            {
                inputs.push(*operation);
            }
        }
        inputs
    }

    /// Adds an exchange on IPU 0 that belongs to no operation.
    pub fn control_exchange(&mut self, phase: Phase) -> Vec<Item> {
        let work = Work { items: vec![WorkItem::Phase(phase)], temporaries: Vec::new() };
        self.tables.work(None, "copy", 0, &work).0
    }

    /// Turns the temporaries and vertex constants of a work into variables.
    fn keep_temporaries(
        &mut self,
        work: &Work,
        operation: OperationId,
        name: &str,
        ipu: u32,
        steps: &[u32],
    ) {
        let offset = self.offset(ipu);
        let extra = |part: &str, category, lifetime, place, bytes: TileRuns<u64>| Extra {
            name: format!("{name}/{part}"),
            category,
            operation: Some(operation),
            shape: String::new(),
            lifetime,
            place,
            bytes: bytes.shifted(offset),
        };
        for Temporary { name: part, category, bytes, place, live } in &work.temporaries {
            let lifetime = phase_steps(live, steps);
            if !lifetime.is_empty() {
                self.extras.push(extra(part, *category, Some(lifetime), *place, bytes.clone()));
            }
        }
        for (phase, _) in work.phases() {
            let PhaseKind::Compute { vertices, .. } = &phase.kind else { continue };
            for vertex in vertices.iter().filter(|vertex| vertex.constant_bytes > 0) {
                let bytes = vertex.count.map(|count| count * vertex.constant_bytes);
                let part = format!("{}/worklists", phase.name);
                self.extras.push(extra(&part, Category::Constant, None, Place::Any, bytes));
            }
        }
    }

    /// Copies what the backward pass needs into the stash.
    fn stash(&mut self, stage: usize) -> Vec<Item> {
        let stages = self.placement.stages.len();
        let depth = (self.stash_depth)(stages, stage);
        let tensors: Vec<TensorId> = self.tensors.stashed(stage).collect();
        tensors
            .into_iter()
            .flat_map(|tensor| self.stash_copy(tensor, stage, depth, false))
            .collect()
    }

    /// Copies what was stashed for this micro-batch back.
    fn restore(&mut self, stage: usize) -> Vec<Item> {
        let tensors: Vec<TensorId> = self.tensors.stashed(stage).collect();
        tensors.into_iter().flat_map(|tensor| self.stash_copy(tensor, stage, 0, true)).collect()
    }

    /// One copy into or out of a stash, a dynamic slice over the stashed micro-batches.
    fn stash_copy(
        &mut self,
        tensor: TensorId,
        stage: usize,
        depth: u64,
        restore: bool,
    ) -> Vec<Item> {
        let ipu = self.ipu(stage);
        let name = format!(
            "{}/{}",
            self.graph.tensor(tensor).name,
            if restore { "restore" } else { "stash" }
        );
        let work = slice_work(
            &self.lowering.layout_or_linear(tensor).elements,
            restore,
            self.lowering.ty(tensor).dtype,
        );
        let operation = OperationId(self.operations.len() as u32);
        let home = Home { tensor, ipu, restored: restore };
        // A stash has no home of its own: what is restored comes from whoever filled it.
        let filled = Home { restored: false, ..home };
        let inputs = self.inputs(&[filled]);
        if restore {
            self.makers.insert(home, operation);
        }
        self.operations.push(Operation {
            name: name.clone(),
            kind: if restore { "restore" } else { "stash" }.to_string(),
            pass: if restore { Pass::Backward } else { Pass::Forward },
            block: self.graph.blocks.get(self.graph.tensor(tensor).block.0).cloned(),
            ipu,
            flops: 0,
            shapes: Shape(&self.lowering.ty(tensor).shape).to_string(),
            plan: None,
            inputs,
        });
        let first = self.tables.next_step();
        let (items, _) = self.tables.work(Some(operation), &name, ipu, &work);
        let end = self.tables.next_step();
        self.lifetimes.touch(home, first..end);
        if !restore {
            let bytes = self.bytes(tensor).map(|bytes| bytes * depth).shifted(self.offset(ipu));
            let ty = self.lowering.ty(tensor);
            self.extras.push(Extra {
                name: format!("{}/stash", self.graph.tensor(tensor).name),
                category: Category::Variable,
                operation: Some(operation),
                shape: format!("{} x {ty}", depth),
                lifetime: None,
                place: Place::Any,
                bytes,
            });
        }
        items
    }

    /// The copies from the host that feed a stage.
    pub fn host_inputs(&mut self, stage: usize) -> Vec<HostCopy> {
        let graph = self.graph;
        let inputs: Vec<TensorId> = graph
            .with_role(Role::Input)
            .filter(|tensor| self.placement.stage(graph.tensor(*tensor).block) == stage)
            .collect();
        inputs.into_iter().map(|tensor| self.host_copy(tensor, stage, true)).collect()
    }

    /// The copies to the host of what a stage makes.
    pub fn host_outputs(&mut self, stage: usize) -> Vec<HostCopy> {
        let graph = self.graph;
        let outputs: Vec<TensorId> = graph
            .outputs
            .iter()
            .copied()
            .filter(|tensor| self.placement.stage(graph.tensor(*tensor).block) == stage)
            .collect();
        outputs.into_iter().map(|tensor| self.host_copy(tensor, stage, false)).collect()
    }

    fn host_copy(&mut self, tensor: TensorId, stage: usize, to_ipu: bool) -> HostCopy {
        let ipu = self.ipu(stage);
        let bytes = self.bytes(tensor);
        let name = if to_ipu {
            "copyFromHost".to_string()
        } else {
            format!("{}/copyToHost", self.graph.tensor(tensor).name)
        };
        let first = self.tables.next_step();
        let copy = stream_copy(&mut self.tables, &name, stage, ipu, &bytes, to_ipu);
        let home = self.tensors.home(tensor, stage, ipu, Pass::Forward);
        self.lifetimes.touch(home, first..self.tables.next_step());
        copy
    }

    /// Copies between IPUs: all together, as a pipeline does after each slot, or apart by where
    /// they start.
    pub fn link_copies(&mut self, together: bool) -> Vec<LinkCopy> {
        let boundaries: Vec<Boundary> = self.tensors.boundaries().copied().collect();
        if boundaries.is_empty() {
            return Vec::new();
        }
        if together {
            return vec![self.link_copy(None, &boundaries)];
        }
        let mut starts: Vec<(usize, Pass)> =
            boundaries.iter().map(|boundary| (boundary.from_stage, boundary.from_pass)).collect();
        starts.sort();
        starts.dedup();
        let from = |start: (usize, Pass)| {
            let mine = boundaries.iter().filter(move |b| (b.from_stage, b.from_pass) == start);
            mine.copied().collect::<Vec<_>>()
        };
        starts.iter().map(|start| self.link_copy(Some(*start), &from(*start))).collect()
    }

    fn link_copy(&mut self, after: Option<(usize, Pass)>, boundaries: &[Boundary]) -> LinkCopy {
        let sync = external_sync(&mut self.tables);
        let name = match after {
            None => "inter-ipu-copies/GlobalPre".to_string(),
            Some(_) => {
                format!("{}/inter-ipu-copy/GlobalPre", self.graph.tensor(boundaries[0].tensor).name)
            }
        };
        let kind = ProgramKind::GlobalExchange;
        let step = self.tables.next_step();
        let exchange = self.tables.leaf(Program { name, ..leaf(kind) });
        let mut flows = Vec::new();
        let mut tiles = vec![TileTraffic::default(); self.placement_tiles()];
        for boundary in boundaries {
            let (from, to) = (self.ipu(boundary.from_stage), self.ipu(boundary.to_stage));
            let bytes = self.bytes(boundary.tensor);
            flows.push((from, to, bytes.total()));
            // Both ends lay the tensor out alike.
            let all_of = |ipu: u32| {
                let first = ipu * self.tables.tiles_per_ipu;
                TileRange::new(first, first + self.tables.tiles_per_ipu)
            };
            let route = Route {
                program: exchange,
                from: all_of(from),
                to: all_of(to),
                bytes: bytes.total(),
            };
            self.tables.routes.push(route);
            add_flow(&mut tiles, &bytes.shifted(self.offset(from)), true);
            add_flow(&mut tiles, &bytes.shifted(self.offset(to)), false);
            self.keep_boundary(boundary, from, to, step);
        }
        let active_tiles = tiles
            .chunks(self.tables.tiles_per_ipu as usize)
            .map(|ipu| ipu.iter().filter(|tile| **tile != TileTraffic::default()).count() as u32)
            .collect();
        let target = self.tables.kind;
        let tiles = tiles.into_iter().map(|tile| {
            let code_bytes = code::global_code_bytes(&tile, target);
            (tile != TileTraffic::default()).then_some(TileTraffic { code_bytes, ..tile })
        });
        let tiles = TileRuns::from_tiles(0, tiles.collect::<Vec<_>>());
        self.tables.traffic(exchange, 0, tiles, Category::GlobalExchangeCode);
        LinkCopy { after, programs: [sync, exchange], flows, active_tiles }
    }

    fn placement_tiles(&self) -> usize {
        self.tables.code.category(Category::Stack).len()
    }

    /// The sent tensor lives until the copy; the received one, read in the next slot, always.
    fn keep_boundary(&mut self, boundary: &Boundary, from: u32, to: u32, step: u32) {
        let tensor = boundary.tensor;
        self.lifetimes.touch(Home { tensor, ipu: from, restored: false }, step..step + 1);
        self.lifetimes.touch(Home { tensor, ipu: to, restored: false }, 0..u32::MAX);
    }
}

/// Adds what a copy between IPUs sends from (or brings to) each tile, in messages of 64 words.
fn add_flow(tiles: &mut [TileTraffic], bytes: &TileRuns<u64>, sends_it: bool) {
    for (range, bytes) in bytes.iter() {
        for tile in &mut tiles[range.first as usize..range.end as usize] {
            if sends_it {
                tile.bytes_out += bytes;
                tile.bytes_delivered += bytes;
                tile.messages_out += sends(*bytes, 1);
            } else {
                tile.bytes_in += bytes;
                tile.messages_in += sends(*bytes, 1);
            }
        }
    }
}

/// A sync of all IPUs, and with the host where a stream copy follows.
pub fn external_sync(tables: &mut Tables) -> ProgramId {
    tables.program(Program { name: "External".to_string(), ..leaf(ProgramKind::Sync) })
}

/// Adds the sync and the three steps of a copy between the host and one IPU.
pub fn stream_copy(
    tables: &mut Tables,
    name: &str,
    stage: usize,
    ipu: u32,
    bytes: &TileRuns<u64>,
    to_ipu: bool,
) -> HostCopy {
    let sync = external_sync(tables);
    let mut step = |kind| {
        tables.leaf(Program {
            name: name.to_string(),
            ipu: Some(ipu),
            stream: StreamEnd::Host,
            ..leaf(kind)
        })
    };
    let programs = [
        sync,
        step(ProgramKind::StreamCopyBegin),
        step(ProgramKind::StreamCopyMid),
        step(ProgramKind::StreamCopyEnd),
    ];
    let kind = tables.kind;
    let tiles = bytes.map(|bytes| {
        let (bytes_in, bytes_out) = if to_ipu { (*bytes, 0) } else { (0, *bytes) };
        // What comes from the host was sent by no tile, what goes there is received by none.
        let mut tile = TileTraffic { bytes_in, bytes_out, ..TileTraffic::default() };
        tile.code_bytes = code::host_code_bytes(&tile, kind);
        tile
    });
    tables.traffic(programs[2], ipu, tiles, Category::HostExchangeCode);
    let total = bytes.total();
    HostCopy {
        stage,
        ipu,
        programs,
        bytes_in: if to_ipu { total } else { 0 },
        bytes_out: if to_ipu { 0 } else { total },
        active_tiles: bytes.tile_count() as u32,
    }
}

/// A dynamic slice (or its update) of one micro-batch of a stash: `25 + 6 (39 + 24 + 2 n / 6 v)`
/// cycles (poplibs lib/popops/popopsCycleEstimators.cpp, DynamicSlice1D).
fn slice_work(elements: &TileRuns<u64>, restore: bool, dtype: crate::sim::graph::DType) -> Work {
    let kind = if restore { "DynamicSlice1D" } else { "DynamicUpdateSlice1D" };
    let vertices = VertexUse {
        vertex_type: format!("popops::{kind}<{}>", dtype.poplar_name()),
        count: elements.map(|_| 1),
        edges: 3,
        field_bytes: 0,
        constant_bytes: 0,
    };
    let width = 8 / dtype.bytes();
    let cycles = elements.map(|count| 25 + 6 * (39 + 24 + 2 * count.div_ceil(6 * width)));
    let name = if restore { "DynamicSlice" } else { "DynamicUpdate" }.to_string();
    let phase = Phase { name, kind: PhaseKind::Compute { cycles, vertices: vec![vertices] } };
    Work { items: vec![WorkItem::Phase(phase)], temporaries: Vec::new() }
}

/// Liveness steps of a range of phases.
fn phase_steps(live: &Range<usize>, steps: &[u32]) -> Range<u32> {
    let first = steps.get(live.start).copied();
    let last = live.end.min(steps.len()).checked_sub(1).and_then(|last| steps.get(last)).copied();
    match (first, last) {
        (Some(first), Some(last)) if first <= last => first..last + 1,
        _ => 0..0,
    }
}

/// Program nodes of items: leaves as they are, loops as `Repeat`.
fn leaves(items: &[Item], tables: &mut Tables) -> Vec<ProgramId> {
    items
        .iter()
        .map(|item| match item {
            Item::Leaf(program) => *program,
            Item::Loop { times, body } => {
                let children = leaves(body, tables);
                let body = tables.group(ProgramKind::Sequence, "", children);
                let repeat = tables.group(ProgramKind::Repeat, "", vec![body]);
                tables.programs[repeat.index()].repeats = *times;
                repeat
            }
        })
        .collect()
}

/// Words for a pass.
pub fn pass_name(pass: Pass) -> &'static str {
    match pass {
        Pass::Forward => "forward",
        Pass::Backward => "backward",
        Pass::Update => "update",
    }
}
