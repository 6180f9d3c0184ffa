//! What one stage does in one pass: its nodes, what it computes again, and what it fetches.

use super::tables::{Item, Placed, Tables};
use super::tensors::{Home, Lifetimes, Part, Tensors};
use crate::graph::{BlockId, Graph, Node, Role, Shape, TensorId};
use crate::lower::work::{Phase, PhaseKind, Place, Temporary, Work, WorkItem};
use crate::lower::{LowerError, Lowered, Lowering};
use crate::schedule::{Placement, Schedule};
use crate::spec::{Spec, TensorLocation};
use crate::targets::System;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use tilescope_report::units::{OperationId, ProgramId, TileRuns};
use tilescope_report::{Category, Operation, Pass, ProgramKind};

/// What one stage does in one pass.
#[derive(Clone, Debug)]
pub struct Fragment {
    pub stage: usize,
    /// Forward, backward or update.
    pub pass: Pass,
    /// IPU of the replica.
    pub ipu: u32,
    /// Its function in the program tree.
    pub function: ProgramId,
    /// What it fetches from streaming memory before it can start; phases fetch early.
    pub loads: Vec<Item>,
    pub items: Vec<Item>,
}

/// A temporary or kept variable that belongs to no tensor of the graph.
#[derive(Clone, Debug)]
pub(crate) struct Extra {
    pub name: String,
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
pub(crate) struct Maker<'a> {
    pub graph: &'a Graph,
    pub placement: &'a Placement,
    pub tensors: &'a Tensors,
    pub lowering: Lowering<'a>,
    pub tables: Tables,
    /// What each node of the graph lowers to, until it is put down.
    pub works: Vec<Lowered>,
    pub lifetimes: Lifetimes,
    pub extras: Vec<Extra>,
    /// Operations of the report.
    pub operations: Vec<Operation>,
    pub spec: &'a Spec,
    pub schedule: &'a Schedule,
    /// Links, sync and host.
    pub system: &'a System,
    /// Tensors split over the replicas.
    pub sharded: BTreeSet<TensorId>,
    /// The operation that wrote a memory last.
    pub makers: BTreeMap<Home, OperationId>,
}

impl Maker<'_> {
    pub(super) fn ipu(&self, stage: usize) -> u32 {
        self.placement.stages[stage].ipu
    }

    pub(super) fn offset(&self, ipu: u32) -> u32 {
        ipu * self.tables.tiles_per_ipu
    }

    /// Bytes of a tensor on each tile of an IPU, laid out as it lies.
    pub(super) fn bytes(&mut self, tensor: TensorId) -> TileRuns<u64> {
        let element_bytes = self.lowering.ty(tensor).dtype.bytes();
        let bytes = self.lowering.layout_or_linear(tensor).bytes(element_bytes);
        if !self.sharded.contains(&tensor) {
            return bytes;
        }
        let replicas = u64::from(self.spec.options.replication_factor);
        // Elements stay whole.
        bytes.map(|bytes| (bytes / element_bytes).div_ceil(replicas) * element_bytes)
    }

    /// Where tensors of a role live; `None` for those that never leave the chip.
    pub(super) fn location(&self, role: Role) -> Option<TensorLocation> {
        let location = &self.spec.options.location;
        match role {
            Role::State => Some(location.optimizer_state),
            Role::Parameter => Some(location.weights),
            Role::Accumulator => Some(location.accumulators),
            Role::Activation | Role::Input | Role::Resident => None,
        }
    }

    /// Whether a kept tensor lives in streaming memory.
    pub(crate) fn is_off_chip(&self, tensor: TensorId) -> bool {
        let tensor = self.graph.tensor(tensor);
        let location = self.location(tensor.role);
        location.is_some_and(|location| location.is_off_chip(tensor.ty.elements()))
    }

    /// Whether a tensor keeps its value between micro-batches.
    fn is_kept(&self, tensor: TensorId) -> bool {
        self.graph.tensor(tensor).role.is_persistent()
    }

    /// Lowers all nodes, in the order of the graph: layouts hand on from one to the next.
    ///
    /// # Errors
    /// An operation without a plan.
    pub(crate) fn lower(&mut self) -> Result<(), LowerError> {
        self.lowering.plan_ahead();
        for node in &self.graph.nodes {
            self.works.push(self.lowering.lower(node)?);
        }
        Ok(())
    }

    /// Puts together what one stage does in one pass.
    pub(crate) fn fragment(&mut self, stage: usize, pass: Pass) -> Fragment {
        let graph = self.graph;
        let ipu = self.ipu(stage);
        let mut loads = self.load_weights(stage, pass);
        let mut items = Vec::new();
        if pass == Pass::Backward {
            items.extend(self.restore(stage));
        }
        if self.schedule.phased {
            // Stashed activations are fetched with the weights, before the phase starts.
            loads.append(&mut items);
        }
        let mut again = match pass {
            Pass::Backward => self.tensors.again(stage).clone(),
            _ => Default::default(),
        };
        for (index, node) in graph.nodes.iter().enumerate() {
            if node.pass != pass || self.placement.stage(node.block) != stage {
                continue;
            }
            for node in take_due(&mut again, node.block) {
                items.extend(self.node(node.0, &graph.nodes[node.0], stage, ipu, true));
            }
            items.extend(match pass {
                Pass::Update => self.update_node(index, node, stage, ipu),
                _ => self.node(index, node, stage, ipu, false),
            });
        }
        if pass == Pass::Forward {
            items.extend(self.stash(stage));
        }
        self.end_of_weights(stage, pass);
        let name = format!("{}/{}", self.placement.stages[stage].name, pass_name(pass));
        let mut children = leaves(&loads, &mut self.tables);
        children.extend(leaves(&items, &mut self.tables));
        let function = self.tables.group(ProgramKind::Sequence, &name, children);
        if !self.schedule.phased {
            items.splice(0..0, loads.drain(..));
        }
        Fragment { stage, pass, ipu, function, loads, items }
    }

    /// Puts the steps of one node down and notes what they keep alive. `again` means that the
    /// backward pass computes a forward node once more.
    pub(super) fn node(
        &mut self,
        index: usize,
        node: &Node,
        stage: usize,
        ipu: u32,
        again: bool,
    ) -> Vec<Item> {
        let Lowered { work, plan, lives } = self.works[index].clone();
        let pass = if again { Pass::Backward } else { node.pass };
        let name = if again { format!("{}/recompute", node.name) } else { node.name.clone() };
        let operation = self.operation(node, &name, (stage, pass), ipu, plan);
        if node.inputs.iter().chain(&node.outputs).any(|id| self.is_kept(*id)) {
            self.tables.bind_arguments(ipu);
        }
        let mut items = self.accumulator_copy(node, ipu, true);
        let first = self.tables.next_step();
        let Placed { items: leaves, steps, shared } =
            self.tables.work(Some(operation), &name, ipu, &work);
        items.extend(leaves);
        items.extend(self.shard_collective(node, operation, ipu));
        let end = self.tables.next_step();
        items.extend(self.accumulator_copy(node, ipu, false));
        if first == end {
            return items;
        }
        let step = |phase: usize| steps.get(phase).copied();
        let span = |live: Range<usize>| {
            let last = live.end.checked_sub(1).filter(|_| live.end < steps.len()).and_then(step);
            step(live.start).unwrap_or(first)..last.map_or(end, |last| last + 1)
        };
        let inputs = node.inputs.iter().zip(lives.of_inputs(steps.len()));
        let outputs = node.outputs.iter().zip(lives.of_outputs(steps.len()));
        let inputs = inputs.map(|(tensor, live)| (tensor, first..span(live).end, lives.inputs_in));
        let outputs =
            outputs.map(|(tensor, live)| (tensor, span(live).start..end, lives.outputs_in));
        for (tensor, used, place) in inputs.chain(outputs) {
            let home = self.tensors.home(*tensor, stage, ipu, pass);
            self.lifetimes.touch(home, used);
            self.lifetimes.place(home, place);
        }
        self.keep_temporaries(&work, operation, &name, ipu, &steps);
        if !shared {
            self.keep_constants(&work, operation, &name, ipu);
        }
        items
    }

    /// Adds a row to the report's operations.
    pub(super) fn operation(
        &mut self,
        node: &Node,
        name: &str,
        (stage, pass): (usize, Pass),
        ipu: u32,
        plan: Option<String>,
    ) -> OperationId {
        let homes = |tensors: &[TensorId]| -> Vec<Home> {
            let home = |tensor: &TensorId| self.tensors.home(*tensor, stage, ipu, pass);
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
            name: name.to_string(),
            kind: node.operator.kind().to_string(),
            pass,
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
    pub(super) fn inputs(&self, read: &[Home]) -> Vec<OperationId> {
        let mut inputs: Vec<OperationId> = Vec::new();
        for home in read {
            let elsewhere = || {
                let own = |ipu| Home { ipu, part: Part::Made, ..*home };
                let mut copies = self.makers.range(own(0)..=own(u32::MAX));
                copies.find(|(of, _)| of.part == Part::Made).map(|(_, operation)| operation)
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
    pub(crate) fn control_exchange(&mut self, phase: Phase) -> Vec<Item> {
        let work = Work { items: vec![WorkItem::Phase(phase)], temporaries: Vec::new() };
        self.tables.work(None, "copy", 0, &work).items
    }

    /// Turns the temporaries of a work into variables.
    pub(super) fn keep_temporaries(
        &mut self,
        work: &Work,
        operation: OperationId,
        name: &str,
        ipu: u32,
        steps: &[u32],
    ) {
        for Temporary { name: part, category, bytes, place, live } in &work.temporaries {
            let lifetime = phase_steps(live, steps);
            if !lifetime.is_empty() {
                self.extras.push(Extra {
                    name: format!("{name}/{part}"),
                    category: *category,
                    operation: Some(operation),
                    shape: String::new(),
                    lifetime: Some(lifetime),
                    place: *place,
                    bytes: bytes.shifted(self.offset(ipu)),
                });
            }
        }
    }

    /// Turns the constants of a work's vertices into variables.
    pub(super) fn keep_constants(
        &mut self,
        work: &Work,
        operation: OperationId,
        name: &str,
        ipu: u32,
    ) {
        for (phase, _) in work.phases() {
            let PhaseKind::Compute { vertices, .. } = &phase.kind else { continue };
            for vertex in vertices.iter().filter(|vertex| vertex.constant_bytes > 0) {
                let bytes = vertex.count.map(|count| count * vertex.constant_bytes);
                self.extras.push(Extra {
                    name: format!("{name}/{}/worklists", phase.name),
                    category: Category::Constant,
                    operation: Some(operation),
                    shape: String::new(),
                    lifetime: None,
                    place: Place::Any,
                    bytes: bytes.shifted(self.offset(ipu)),
                });
            }
        }
    }
}

/// Takes the nodes that a backward node of `block` is the first to need again.
fn take_due(again: &mut super::tensors::Again, block: BlockId) -> Vec<crate::graph::NodeId> {
    // The backward pass meets the last block first; what it skips is due as well.
    let due: Vec<BlockId> = again.keys().copied().filter(|group| *group >= block).collect();
    due.iter().rev().flat_map(|group| again.remove(group).unwrap_or_default()).collect()
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
pub(super) fn leaves(items: &[Item], tables: &mut Tables) -> Vec<ProgramId> {
    items
        .iter()
        .map(|item| match item {
            Item::Leaf(program) | Item::HostSync { program, .. } => *program,
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
pub(crate) fn pass_name(pass: Pass) -> &'static str {
    match pass {
        Pass::Forward => "forward",
        Pass::Backward => "backward",
        Pass::Update => "update",
    }
}
