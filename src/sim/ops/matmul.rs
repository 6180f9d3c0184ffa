//! Matrix products, and the two products of their gradient.

use super::{Operator, expect_operands};
use crate::sim::graph::{Backward, GraphError, Node, TensorId, TensorType};
use crate::sim::lower::{LowerError, Lowering, work::Work};

/// Which of the three products of a fully-connected layer this is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Product {
    /// `x[m,k] . w[k,n]`
    #[default]
    Forward,
    /// `dy[m,n] . transpose(w[k,n])`, the gradient of `x`
    InputGradient,
    /// `transpose(x[m,k]) . dy[m,n]`, the gradient of `w`
    WeightGradient,
}

/// A product of two matrices.
#[derive(Clone, Copy, Debug, Default)]
pub struct MatMul {
    /// Which product of a layer.
    pub product: Product,
}

impl MatMul {
    /// Rows, inner size and columns of the layer: `x[m,k] . w[k,n]`.
    pub fn sizes(&self, inputs: &[TensorType]) -> Result<[u64; 3], String> {
        expect_operands(inputs, 2)?;
        let ([a, b], [c, d]) = (&inputs[0].shape[..], &inputs[1].shape[..]) else {
            return Err(format!("two matrices are expected, not {} and {}", inputs[0], inputs[1]));
        };
        let (sizes, fits) = match self.product {
            Product::Forward => ([*a, *b, *d], b == c),
            Product::InputGradient => ([*a, *c, *b], b == d),
            Product::WeightGradient => ([*a, *b, *d], a == c),
        };
        if !fits || inputs[0].dtype != inputs[1].dtype {
            return Err(format!("{} and {} cannot be multiplied", inputs[0], inputs[1]));
        }
        Ok(sizes)
    }
}

impl Operator for MatMul {
    fn kind(&self) -> &'static str {
        match self.product {
            Product::Forward => "matmul",
            Product::InputGradient => "matmul_grad_input",
            Product::WeightGradient => "matmul_grad_weight",
        }
    }

    fn infer(&self, inputs: &[TensorType]) -> Result<Vec<TensorType>, String> {
        let [m, k, n] = self.sizes(inputs)?;
        let shape = match self.product {
            Product::Forward => [m, n],
            Product::InputGradient => [m, k],
            Product::WeightGradient => [k, n],
        };
        Ok(vec![TensorType::new(shape, inputs[0].dtype)])
    }

    fn flops(&self, inputs: &[TensorType], _: &[TensorType]) -> u64 {
        self.sizes(inputs).map_or(0, |[m, k, n]| 2 * m * k * n)
    }

    fn differentiate(&self, backward: &mut Backward) -> Result<Vec<Option<TensorId>>, GraphError> {
        let gradient = backward.gradient()?;
        let (x, w) = (backward.node.inputs[0], backward.node.inputs[1]);
        let part = |product| MatMul { product };
        let mut gradients = vec![None, None];
        if backward.wants(0) {
            gradients[0] =
                Some(backward.apply("bwd", part(Product::InputGradient), &[gradient, w])?);
        }
        if backward.wants(1) {
            gradients[1] =
                Some(backward.apply("wu", part(Product::WeightGradient), &[x, gradient])?);
        }
        Ok(gradients)
    }

    fn lower(&self, lowering: &mut Lowering, node: &Node) -> Result<Work, LowerError> {
        lowering.matmul(node, self.product)
    }
}
