//! Operations that consist of several operators, as PopART lowers them: gathers of single elements,
//! running sums, sums of products by names of axes, averages that count padding, and simple
//! recurrent layers.
//!
//! Each adds its operators to a graph, with names below `name`. The last operator makes the result.
//! Gradients are those of the operators.

mod cumulative_sum;
mod einsum;
mod gather;
mod matmul;
mod padded_average_pool;
mod recurrent;
#[cfg(test)]
mod tests;

pub use cumulative_sum::cumulative_sum;
pub use einsum::einsum;
pub use gather::{gather_elements, gather_nd, scatter_elements, scatter_nd};
pub use matmul::matmul;
pub use padded_average_pool::padded_average_pool;
pub use recurrent::{SimpleRnn, simple_rnn};

use super::{GraphError, GraphProblem, OperationSink, Operator, ReshapeOp, TransposeOp};
use crate::shape::{TensorId, TensorInfo};
use std::sync::Arc;

/// A graph, and the name of the operation that is added to it.
struct Composition<'a> {
    graph: &'a mut dyn OperationSink,
    name: &'a str,
}

impl Composition<'_> {
    fn ty(&self, tensor: TensorId) -> TensorInfo {
        self.graph.tensor_type(tensor).clone()
    }

    /// Adds an operator with one result. The last operator of the operation has an empty `part`.
    fn apply(
        &mut self,
        part: &str,
        operator: impl Operator + 'static,
        inputs: &[TensorId],
    ) -> Result<TensorId, GraphError> {
        let name = match part {
            "" => self.name.to_string(),
            part => format!("{}/{part}", self.name),
        };
        Ok(self.graph.add(&name, Arc::new(operator), inputs)?[0])
    }

    fn reshape(
        &mut self,
        part: &str,
        tensor: TensorId,
        shape: Vec<u64>,
    ) -> Result<TensorId, GraphError> {
        if self.ty(tensor).shape == shape && !part.is_empty() {
            return Ok(tensor);
        }
        self.apply(part, ReshapeOp { shape }, &[tensor])
    }

    fn transpose(
        &mut self,
        part: &str,
        tensor: TensorId,
        permutation: Vec<usize>,
    ) -> Result<TensorId, GraphError> {
        if permutation.is_sorted() {
            return Ok(tensor);
        }
        self.apply(part, TransposeOp { permutation }, &[tensor])
    }

    fn refuse(&self, problem: impl Into<GraphProblem>) -> GraphError {
        GraphError::new(self.name, problem)
    }
}
