//! Splitting of the linear layers of a forward graph over IPUs.

use super::{GraphNode, ModelGraph};
use crate::operators::TensorParallelOp;
use crate::shape::{BlockId, Tensor, TensorId, TensorRole};
use std::sync::Arc;

impl ModelGraph {
    /// Splits every linear layer whose columns divide evenly over `parts` IPUs and whose block is
    /// `wanted`. The result is the graph of one of the parts.
    pub(crate) fn split_linear_layers(
        self,
        parts: u64,
        wanted: impl Fn(BlockId) -> bool,
    ) -> ModelGraph {
        let mut graph = self;
        let splits: Vec<bool> = graph
            .nodes
            .iter()
            .map(|node| graph.can_be_split(node, parts) && wanted(node.block))
            .collect();
        for (node, split) in std::mem::take(&mut graph.nodes).into_iter().zip(splits) {
            if split { graph.split(node, parts) } else { graph.nodes.push(node) }
        }
        graph
    }

    /// Returns true if a node is a linear layer whose columns can be distributed evenly.
    pub(crate) fn can_be_split(&self, node: &GraphNode, parts: u64) -> bool {
        let [_, weights] = node.inputs[..] else { return false };
        if !node.operator.is_linear_layer() || node.repeat.is_some() {
            return false;
        }
        let tensor = self.tensor(weights);
        let columns = tensor.ty.shape.last().copied().unwrap_or(0);
        let inputs = self.nodes.iter().flat_map(|node| &node.inputs);
        // Weights that several layers share would be split in several ways.
        tensor.role == TensorRole::Parameter
            && tensor.ty.shape.len() == 2
            && columns.is_multiple_of(parts)
            && inputs.filter(|input| **input == weights).count() == 1
    }

    /// Adds one linear layer in split form.
    fn split(&mut self, mut layer: GraphNode, parts: u64) {
        let weights = layer.inputs[1];
        if let Some(columns) = self.tensors[weights.0].ty.shape.last_mut() {
            *columns /= parts;
        }
        let input = layer.inputs[0];
        let output = layer.outputs[0];
        let entered = self.like(input, &layer, "shardInput", 1);
        let part = self.like(output, &layer, "shard", parts);
        let enter =
            edge_node(&layer, "enterShard", TensorParallelOp::enter(parts), [input, entered]);
        let gather =
            edge_node(&layer, "allGather", TensorParallelOp::gather(parts), [part, output]);
        layer.inputs[0] = entered;
        layer.outputs[0] = part;
        self.nodes.extend([enter, layer, gather]);
    }

    /// Adds an activation like `tensor` in a layer's block, with its last dimension divided by
    /// `divisor`.
    fn like(&mut self, tensor: TensorId, layer: &GraphNode, name: &str, divisor: u64) -> TensorId {
        let mut ty = self.tensor(tensor).ty.clone();
        if let Some(last) = ty.shape.last_mut() {
            *last /= divisor;
        }
        let name = format!("{}/{name}", layer.name);
        self.tensors.push(Tensor { name, ty, role: TensorRole::Activation, block: layer.block });
        TensorId(self.tensors.len() - 1)
    }
}

/// Returns a node at the edge of a split layer, with the layer's place in the graph.
fn edge_node(
    layer: &GraphNode,
    name: &str,
    operator: TensorParallelOp,
    [from, to]: [TensorId; 2],
) -> GraphNode {
    GraphNode {
        name: format!("{}/{name}", layer.name),
        operator: Arc::new(operator),
        inputs: vec![from],
        outputs: vec![to],
        pass: layer.pass,
        block: layer.block,
        source: layer.source.clone(),
        compute_batch: layer.compute_batch,
        options: layer.options,
        repeat: layer.repeat,
    }
}
