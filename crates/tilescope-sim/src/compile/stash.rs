//! What waits for the backward pass: stashes in tile memory, or copies in streaming memory.

use super::fragments::{Extra, Maker};
use super::tables::Item;
use super::tensors::{Home, Part};
use crate::poplar::work::{Phase, PhaseKind, Place, VertexUse, Work, WorkItem};
use crate::popops::collective::slice_cycles;
use crate::shape::{DType, Shape, TensorId};
use tilescope_report::units::{OperationId, TileRuns};
use tilescope_report::{Category, Operation, Pass};

impl Maker<'_> {
    /// Copies what the backward pass needs into the stash.
    pub(super) fn stash(&mut self, stage: usize) -> Vec<Item> {
        self.stash_copies(stage, false)
    }

    /// Copies what was stashed for this micro-batch back.
    pub(super) fn restore(&mut self, stage: usize) -> Vec<Item> {
        self.stash_copies(stage, true)
    }

    fn stash_copies(&mut self, stage: usize, restore: bool) -> Vec<Item> {
        let location = self.spec.options.location.activations;
        let mut items = Vec::new();
        for tensor in self.tensors.stashed(stage).collect::<Vec<_>>() {
            let off_chip = location.is_off_chip(self.lowering.ty(tensor).elements());
            items.extend(if off_chip {
                self.stash_off_chip(tensor, stage, restore)
            } else {
                self.stash_copy(tensor, stage, restore)
            });
        }
        items
    }

    /// Home of a stashed tensor in the forward pass, or in the backward pass.
    fn stash_home(&self, tensor: TensorId, stage: usize, restore: bool) -> Home {
        let ipu = self.ipu(stage);
        if restore {
            Home { tensor, ipu, part: Part::Restored(stage) }
        } else {
            self.tensors.home(tensor, stage, ipu, Pass::Forward)
        }
    }

    /// Stores a tensor in streaming memory or loads it from there.
    fn stash_off_chip(&mut self, tensor: TensorId, stage: usize, restore: bool) -> Vec<Item> {
        let bytes = self.bytes(tensor);
        let name = self.graph.tensor(tensor).name.clone();
        let first = self.tables.next_step();
        let location = self.spec.options.location.activations;
        let items =
            self.remote_copy(&name, self.ipu(stage), &bytes, restore, location.use_io_tiles);
        let home = self.stash_home(tensor, stage, restore);
        self.lifetimes.touch(home, first..self.tables.next_step());
        items
    }

    /// One copy into or out of a stash, a dynamic slice over the stashed micro-batches.
    fn stash_copy(&mut self, tensor: TensorId, stage: usize, restore: bool) -> Vec<Item> {
        let ipu = self.ipu(stage);
        let depth = self.schedule.stash_depths[stage];
        let word = if restore { "restore" } else { "stash" };
        let name = format!("{}/{word}", self.graph.tensor(tensor).name);
        let ty = self.lowering.ty(tensor);
        let work = slice_work(&self.lowering.layout_or_linear(tensor).elements, restore, ty.dtype);
        let operation = OperationId(self.operations.len() as u32);
        let made = self.stash_home(tensor, stage, false);
        let inputs = self.inputs(&[made]);
        self.operations.push(Operation {
            name: name.clone(),
            kind: word.to_string(),
            pass: if restore { Pass::Backward } else { Pass::Forward },
            block: self.graph.blocks.get(self.graph.tensor(tensor).block.0).cloned(),
            ipu,
            flops: 0,
            shapes: Shape(&ty.shape).to_string(),
            plan: None,
            inputs,
        });
        self.tables.bind_arguments(ipu);
        let first = self.tables.next_step();
        let items = self.tables.work(Some(operation), &name, ipu, &work).items;
        let end = self.tables.next_step();
        let home = self.stash_home(tensor, stage, restore);
        if restore {
            self.makers.insert(home, operation);
        }
        self.lifetimes.touch(home, first..end);
        if !restore {
            let bytes = self.bytes(tensor).map(|bytes| bytes * depth).shifted(self.offset(ipu));
            self.extras.push(Extra {
                name: format!("{}/stash", self.graph.tensor(tensor).name),
                category: Category::Variable,
                operation: Some(operation),
                shape: format!("{depth} x {ty}"),
                lifetime: None,
                place: Place::Any,
                bytes,
            });
        }
        items
    }
}

/// A dynamic slice (or its update) of one micro-batch of a stash.
fn slice_work(elements: &TileRuns<u64>, restore: bool, dtype: DType) -> Work {
    let kind = if restore { "DynamicSlice1D" } else { "DynamicUpdateSlice1D" };
    let vertices = VertexUse {
        vertex_type: format!("popops::{kind}<{}>", dtype.poplar_name()),
        count: elements.map(|_| 1),
        edges: 3,
        field_bytes: 0,
        constant_bytes: 0,
    };
    let cycles = elements.map(|count| slice_cycles(*count, dtype));
    let name = if restore { "DynamicSlice" } else { "DynamicUpdate" }.to_string();
    let phase = Phase { name, kind: PhaseKind::Compute { cycles, vertices: vec![vertices] } };
    Work { items: vec![WorkItem::Phase(phase)], temporaries: Vec::new() }
}
