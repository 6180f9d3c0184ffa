//! Long short-term memory: one layer over a sequence.

use super::Operator;
use super::recurrent::Recurrent;
use crate::sim::graph::{Backward, GraphError, Node, TensorId, TensorType};
use crate::sim::lower::recurrent::Cell;
use crate::sim::lower::{LowerError, Lowering, work::Work};

/// `x[steps, batch, input]`, `weights[input + output, 4 * output]`, `bias[4, output]` to
/// `y[steps, batch, output]` and, in training, what the gradient needs.
#[derive(Clone, Copy, Debug)]
pub struct Lstm(Recurrent);

impl Lstm {
    /// A layer with outputs of this size; `training` keeps what the gradient needs.
    pub fn new(output: u64, training: bool) -> Self {
        Self(Recurrent { cell: Cell::Lstm, output, keep: training })
    }
}

impl Operator for Lstm {
    fn kind(&self) -> &'static str {
        "lstm"
    }

    fn infer(&self, inputs: &[TensorType]) -> Result<Vec<TensorType>, String> {
        self.0.infer(inputs)
    }

    fn flops(&self, inputs: &[TensorType], _: &[TensorType]) -> u64 {
        self.0.flops(inputs)
    }

    fn differentiate(&self, backward: &mut Backward) -> Result<Vec<Option<TensorId>>, GraphError> {
        self.0.differentiate(backward)
    }

    fn lower(&self, lowering: &mut Lowering, node: &Node) -> Result<Work, LowerError> {
        self.0.lower(lowering, node)
    }
}
