//! Builds graphs: the words a model definition is written in.

use super::{BlockId, Graph, Node, Role, Tensor, TensorId, TensorType};
use crate::ops::Operator;
use std::sync::Arc;
use tilescope_report::Pass;

/// An operation whose operands do not fit together.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{node}: {problem}")]
pub struct GraphError {
    pub node: String,
    /// What is wrong with its operands.
    pub problem: String,
}

/// Most elements one tensor may have: keeps all byte and operation counts far below overflow.
const LARGEST_TENSOR_ELEMENTS: u64 = 1 << 40;

/// A graph under construction.
#[derive(Debug)]
pub struct GraphBuilder {
    graph: Graph,
    pass: Pass,
    block: BlockId,
}

impl Default for GraphBuilder {
    fn default() -> Self {
        Self::new()
    }
}

impl GraphBuilder {
    /// An empty graph; the first block is made by the first call of [`GraphBuilder::block`].
    pub fn new() -> Self {
        let graph = Graph {
            tensors: Vec::new(),
            nodes: Vec::new(),
            blocks: Vec::new(),
            outputs: Vec::new(),
            losses: Vec::new(),
        };
        Self { graph, pass: Pass::Forward, block: BlockId(0) }
    }

    /// Goes on with an existing graph.
    pub(super) fn extend(graph: Graph) -> Self {
        Self { graph, pass: Pass::Backward, block: BlockId(0) }
    }

    /// What follows belongs to the block of this name.
    pub fn block(&mut self, name: &str) {
        self.block = match self.graph.blocks.iter().position(|block| block == name) {
            Some(known) => BlockId(known),
            None => {
                self.graph.blocks.push(name.to_string());
                BlockId(self.graph.blocks.len() - 1)
            }
        };
    }

    /// What follows belongs to this pass and block.
    pub(super) fn at(&mut self, pass: Pass, block: BlockId) {
        (self.pass, self.block) = (pass, block);
    }

    /// The graph so far.
    pub(crate) fn graph(&self) -> &Graph {
        &self.graph
    }

    /// A tensor of a role other than activation.
    pub fn tensor(&mut self, name: &str, ty: TensorType, role: Role) -> TensorId {
        self.graph.tensors.push(Tensor { name: name.to_string(), ty, role, block: self.block });
        TensorId(self.graph.tensors.len() - 1)
    }

    /// Applies an operator; its outputs are called after the node.
    ///
    /// # Errors
    /// The operator's own word on operands that do not fit, and tensors beyond all bounds.
    pub fn apply_all(
        &mut self,
        name: &str,
        operator: impl Operator + 'static,
        inputs: &[TensorId],
    ) -> Result<Vec<TensorId>, GraphError> {
        let refuse = |problem: String| GraphError { node: name.to_string(), problem };
        let types = operator.infer(&self.graph.types(inputs)).map_err(refuse)?;
        let mut outputs = Vec::new();
        for (i, ty) in types.into_iter().enumerate() {
            let elements = ty.shape.iter().try_fold(1u64, |count, size| count.checked_mul(*size));
            match elements {
                Some(0) => return Err(refuse(format!("the result has no elements: {ty}"))),
                Some(1..=LARGEST_TENSOR_ELEMENTS) => {}
                _ => return Err(refuse(format!("the result is too large: {ty}"))),
            }
            let suffix = if i == 0 { String::new() } else { format!(":{i}") };
            outputs.push(self.tensor(&format!("{name}{suffix}"), ty, Role::Activation));
        }
        self.graph.nodes.push(Node {
            name: name.to_string(),
            operator: Arc::new(operator),
            inputs: inputs.to_vec(),
            outputs: outputs.clone(),
            pass: self.pass,
            block: self.block,
        });
        Ok(outputs)
    }

    /// Runs the operation added last as soon as `operand` is there.
    pub(crate) fn run_early(&mut self, operand: TensorId) {
        let nodes = &mut self.graph.nodes;
        let made = nodes.iter().rposition(|node| node.outputs.contains(&operand));
        if let Some((made, last)) = made.zip(nodes.len().checked_sub(1)) {
            nodes[(made + 1).min(last)..].rotate_right(1);
        }
    }

    /// Applies an operator with one output.
    ///
    /// # Errors
    /// As [`GraphBuilder::apply_all`].
    pub fn apply(
        &mut self,
        name: &str,
        operator: impl Operator + 'static,
        inputs: &[TensorId],
    ) -> Result<TensorId, GraphError> {
        let outputs = self.apply_all(name, operator, inputs)?;
        Ok(outputs[0])
    }

    /// Sends a tensor to the host for each micro-batch.
    pub(crate) fn output(&mut self, tensor: TensorId) {
        self.graph.outputs.push(tensor);
    }

    /// Names a loss; several add up.
    pub fn loss(&mut self, tensor: TensorId) {
        self.graph.losses.push(tensor);
    }

    /// Ends building and returns the graph.
    pub fn finish(self) -> Graph {
        self.graph
    }
}
