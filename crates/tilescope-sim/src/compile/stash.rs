//! Tensors kept for the backward pass: stashes in tile memory, or copies in streaming memory.

use super::data_flow::BufferKey;
use super::fragment_items::FragmentItem;
use super::program_builder::ProgramBuilder;
use super::remote_buffers::RemoteTransfer;
use super::tensor_analysis::{TensorBuffer, TensorBufferKind};
use crate::poplar::work::{OperationWork, VertexInstances, WorkPhase};
use crate::popops::collective::slice_cycles;
use crate::shape::{DType, ShapeDisplay, TensorId};
use tilescope_report::units::{Elements, TileRuns};
use tilescope_report::{ModelOperation, TrainingPass};

impl ProgramBuilder<'_> {
    /// Copies the tensors that the backward pass needs into the stash.
    pub(super) fn stash(&mut self, stage: usize) -> Vec<FragmentItem> {
        let stashed: Vec<TensorId> = self.plan.tensors.stashed(stage).collect();
        self.stash_copies(&stashed, stage, false)
    }

    /// Copies some of the tensors that were stashed for this micro-batch back.
    pub(super) fn restore(&mut self, stashed: &[TensorId], stage: usize) -> Vec<FragmentItem> {
        self.stash_copies(stashed, stage, true)
    }

    fn stash_copies(
        &mut self,
        stashed: &[TensorId],
        stage: usize,
        restore: bool,
    ) -> Vec<FragmentItem> {
        let (off_chip, on_chip): (Vec<TensorId>, Vec<TensorId>) =
            stashed.iter().partition(|tensor| self.plan.stashes_off_chip(**tensor));
        let mut items = Vec::new();
        for tensor in on_chip {
            let copy = self.stash_copy(tensor, stage, restore);
            let [from, to] = self.stash_ends(tensor, stage, restore);
            self.flows.note(&copy, &[from], &[to]);
            items.extend(copy);
        }
        items.extend(self.stash_off_chip(&off_chip, stage, restore));
        items
    }

    /// The source and the destination of a copy into or out of a stash.
    fn stash_ends(&self, tensor: TensorId, stage: usize, restore: bool) -> [BufferKey; 2] {
        let home = BufferKey::Tensor(self.stash_home(tensor, stage, restore));
        let stash = BufferKey::Stash { tensor, stage };
        if restore { [stash, home] } else { [home, stash] }
    }

    /// True if the I/O tiles move this tensor to and from streaming memory.
    fn uses_io_tiles(&self, tensor: TensorId) -> bool {
        let stated =
            self.plan.tensors.stated_location(tensor).map(|location| location.use_io_tiles);
        let of_all = self.plan.spec.options.location.activations.use_io_tiles;
        self.plan.spec.options.num_io_tiles > 0 && stated.unwrap_or(of_all)
    }

    /// The memory of a stashed tensor in the forward pass, or in the backward pass if `restore` is
    /// true.
    fn stash_home(&self, tensor: TensorId, stage: usize, restore: bool) -> TensorBuffer {
        let ipu = self.plan.ipu(stage);
        if restore {
            TensorBuffer { tensor, ipu, part: TensorBufferKind::Restored(stage) }
        } else {
            self.plan.tensors.owner_buffer(tensor, stage, ipu, TrainingPass::Forward)
        }
    }

    /// Stores tensors in streaming memory, or loads them from there.
    fn stash_off_chip(
        &mut self,
        tensors: &[TensorId],
        stage: usize,
        restore: bool,
    ) -> Vec<FragmentItem> {
        let first = self.tables.next_step();
        let mut copies = Vec::new();
        for tensor in tensors {
            let [from, to] = self.stash_ends(*tensor, stage, restore);
            let name = self.plan.name(*tensor).to_owned();
            copies.push(RemoteTransfer { name, bytes: self.plan.bytes(*tensor), from, to });
        }
        let mut items = Vec::new();
        let mut left = &copies[..];
        let by_io_tiles: Vec<bool> = tensors.iter().map(|of| self.uses_io_tiles(*of)).collect();
        for run in by_io_tiles.chunk_by(|a, b| a == b) {
            let (of_run, rest) = left.split_at(run.len());
            items.extend(self.remote_copies(self.plan.ipu(stage), of_run, restore, run[0]));
            left = rest;
        }
        for tensor in tensors {
            let tensor_buffer = self.stash_home(*tensor, stage, restore);
            self.variables.lifetimes.extend_to(tensor_buffer, first..self.tables.next_step());
        }
        items
    }

    /// Adds one copy into or out of a stash: a dynamic slice over the stashed micro-batches.
    fn stash_copy(&mut self, tensor: TensorId, stage: usize, restore: bool) -> Vec<FragmentItem> {
        let plan = self.plan;
        let ipu = plan.ipu(stage);
        let word = if restore { "restore" } else { "stash" };
        let name = format!("{}/{word}", plan.name(tensor));
        let ty = plan.lowering.tensor_type(tensor);
        let work = slice_work(plan.elements(tensor), restore, ty.dtype);
        let pass = if restore { TrainingPass::Backward } else { TrainingPass::Forward };
        // A stash is not written by an operation of the graph, so both copies read what the forward
        // pass made.
        let made = self.stash_home(tensor, stage, false);
        let operation = self.operations.add(ModelOperation {
            block: plan.graph.blocks.get(plan.graph.tensor(tensor).block.0).cloned(),
            element_type: Some(ty.dtype.arithmetic_type()),
            shapes: ShapeDisplay(&ty.shape).to_string(),
            ..self.operations.copy((name.clone(), word), pass, &[made], ipu)
        });
        self.tables.bind_arguments(ipu);
        let first = self.tables.next_step();
        let items = self.tables.work(Some(operation), &name, ipu, &work).items;
        let end = self.tables.next_step();
        let tensor_buffer = self.stash_home(tensor, stage, restore);
        if restore {
            self.operations.note_writer(tensor_buffer, operation);
        }
        self.variables.lifetimes.extend_to(tensor_buffer, first..end);
        if !restore {
            // Micro-batches stay in the stash from slot to slot, so it is always live. Only the
            // copy into it adds it, so that it is not counted twice.
            let depth = plan.schedule.stash_depths[stage];
            let bytes = plan.bytes(tensor).map(|bytes| *bytes * depth);
            let name = (format!("{}/stash", plan.name(tensor)), format!("{depth} x {ty}"));
            self.variables.add(name, Some(operation), None, ipu, &bytes);
        }
        items
    }
}

/// The work of a dynamic slice, or of its update, on one micro-batch of a stash.
fn slice_work(elements: &TileRuns<Elements>, restore: bool, dtype: DType) -> OperationWork {
    let kind = if restore { "DynamicSlice1D" } else { "DynamicUpdateSlice1D" };
    let vertex_type = format!("popops::{kind}<{}>", dtype.poplar_name());
    let vertices = VertexInstances::of_edges(vertex_type, elements.map(|_| 1), 3);
    let cycles = elements.map(|count| slice_cycles(*count, dtype));
    let name = if restore { "DynamicSlice" } else { "DynamicUpdate" };
    let phase = WorkPhase::of_vertices(name, vertices, cycles);
    OperationWork::of_phase(phase)
}
