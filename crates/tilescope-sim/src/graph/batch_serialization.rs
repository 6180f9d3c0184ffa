//! Batch serialisation: processes a micro-batch part by part.
//!
//! PopART splits the operations of a micro-batch into those of `factor` compute batches
//! (willow/src/transforms/batchserialize.cpp). Within a phase or stage the first compute batch goes
//! through all operations, then the second, with the same weights. Tensors between operations are
//! therefore as small as those of a compute batch, and weights are loaded once for all of them.
//!
//! This module repeats the graph of one compute batch, as that transform unrolls it: each copy has
//! its own activations, all copies share the weights, and the gradients of the weights are added.
//! Samples come from the host one compute batch at a time, in one exchange with `merge_exchange`,
//! whereas PopART transfers all of them and slices. Tensors that cross to other phases are not
//! joined to whole micro-batches, which corresponds to `concatOnExecutionPhaseChange` and
//! `concatOnVirtualGraphChange` switched off.

use super::{GraphBuilder, GraphError, ModelGraph};
use crate::operators::OperationSink;
use crate::shape::{TensorId, TensorRole};
use std::collections::BTreeSet;
use std::sync::Arc;

impl ModelGraph {
    /// Returns the forward graph of `factor` compute batches, given the graph of one.
    ///
    /// # Errors
    ///
    /// None for an operator that accepted its operands before.
    pub(crate) fn serialize_batch(&self, factor: u64) -> Result<ModelGraph, GraphError> {
        debug_assert!(factor > 0, "there is something to work on");
        let mut builder = GraphBuilder::new();
        for block in &self.blocks {
            builder.block(block);
        }
        builder.stages(self.stages.clone());
        let made: BTreeSet<TensorId> =
            self.nodes.iter().flat_map(|node| node.outputs.iter().copied()).collect();
        let sources = (0..self.tensors.len()).map(TensorId).filter(|id| !made.contains(id));
        let (inputs, kept): (Vec<TensorId>, Vec<TensorId>) =
            sources.partition(|id| self.tensor(*id).role == TensorRole::Input);
        let mut places = vec![TensorId(0); self.tensors.len()];
        for id in kept {
            places[id.0] = self.copy_source(&mut builder, id, String::new());
        }
        for (batch, _) in (0..factor).enumerate() {
            let suffix = format!("/batch{batch}");
            builder.set_compute_batch(batch);
            for id in &inputs {
                places[id.0] = self.copy_source(&mut builder, *id, suffix.clone());
            }
            for node in &self.nodes {
                let operands: Vec<TensorId> =
                    node.inputs.iter().map(|input| places[input.0]).collect();
                builder.block(&self.blocks[node.block.0]);
                builder.set_origin(node.source.clone(), node.options);
                let name = format!("{}{suffix}", node.name);
                let outputs = builder.add(&name, Arc::clone(&node.operator), &operands)?;
                for (output, copy) in node.outputs.iter().zip(outputs) {
                    builder.rename(copy, format!("{}{suffix}", self.tensor(*output).name));
                    places[output.0] = copy;
                }
            }
            self.outputs.iter().for_each(|output| builder.output(places[output.0]));
            self.losses.iter().for_each(|loss| builder.loss(places[loss.0]));
        }
        let imported = self.imported.clone();
        let notes = self.notes.clone();
        Ok(ModelGraph { imported, notes, ..builder.finish() })
    }

    /// Adds a copy of a tensor that no operation produces.
    fn copy_source(&self, builder: &mut GraphBuilder, id: TensorId, suffix: String) -> TensorId {
        let tensor = self.tensor(id);
        builder.block(&self.blocks[tensor.block.0]);
        let name = format!("{}{suffix}", tensor.name);
        let copy = builder.tensor(&name, tensor.ty.clone(), tensor.role);
        if let Some(settings) = self.input_settings.get(&id) {
            builder.set_input_settings(copy, *settings);
        }
        copy
    }
}
