//! Matrix products, alone or in groups, and the two products of their gradient.

use super::{
    GradientBuilder, GradientResult, LoweringContext, LoweringResult, NodeOperands, Operator,
    PlannedCost, PlannedSizes, ShapeError, expect_operands,
};
use crate::poplin::matmul::{MatMulPhase, MatMulSizes};
use crate::poputil::tensor_layout::TensorLayout;
use crate::shape::TensorInfo;

/// A product of two matrices, or of several pairs of them if there is a leading dimension.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct MatMulOp {
    /// The product of a layer that this is.
    pub product: MatMulPhase,
    /// True if `w` is given as `[n, k]`.
    pub transposed: bool,
}

/// The leading dimension, rows and columns of one or several matrices.
fn matrices(ty: &TensorInfo) -> Option<[u64; 3]> {
    match ty.shape[..] {
        [rows, columns] => Some([1, rows, columns]),
        [groups, rows, columns] => Some([groups, rows, columns]),
        _ => None,
    }
}

impl MatMulOp {
    /// The product `x[m,k] . transpose(w[n,k])`.
    pub(crate) const TRANSPOSED: Self = Self { product: MatMulPhase::Forward, transposed: true };

    /// The sizes of the layer.
    ///
    /// # Errors
    /// Returns an error for operands that are not matrices or do not fit together.
    pub(crate) fn sizes(&self, inputs: &[TensorInfo]) -> Result<MatMulSizes, ShapeError> {
        expect_operands(inputs, 2)?;
        let (Some([groups, a, b]), Some([more, mut c, mut d])) =
            (matrices(&inputs[0]), matrices(&inputs[1]))
        else {
            return Err(ShapeError::Operands { expected: "two matrices", found: inputs.to_vec() });
        };
        if self.transposed && self.product != MatMulPhase::WeightGradient {
            (c, d) = (d, c);
        }
        let ([m, k, n], fits) = match self.product {
            MatMulPhase::Forward => ([a, b, d], b == c),
            MatMulPhase::InputGradient => ([a, c, b], b == d),
            MatMulPhase::WeightGradient => ([a, b, d], a == c),
        };
        let ranks = (inputs[0].shape.len(), inputs[1].shape.len());
        if !fits || groups != more || ranks.0 != ranks.1 || inputs[0].dtype != inputs[1].dtype {
            return Err(ShapeError::Product(inputs[0].clone(), inputs[1].clone()));
        }
        Ok(MatMulSizes { groups, m, k, n })
    }
}

impl Operator for MatMulOp {
    fn kind(&self) -> &'static str {
        match self.product {
            MatMulPhase::Forward => "matmul",
            MatMulPhase::InputGradient => "matmul_grad_input",
            MatMulPhase::WeightGradient => "matmul_grad_weight",
        }
    }

    fn infer(&self, inputs: &[TensorInfo]) -> Result<Vec<TensorInfo>, ShapeError> {
        let MatMulSizes { m, k, n, .. } = self.sizes(inputs)?;
        let matrix = match self.product {
            MatMulPhase::Forward => [m, n],
            MatMulPhase::InputGradient => [m, k],
            MatMulPhase::WeightGradient if self.transposed => [n, k],
            MatMulPhase::WeightGradient => [k, n],
        };
        let leading = &inputs[0].shape[..inputs[0].shape.len() - 2];
        Ok(vec![TensorInfo::new([leading, &matrix].concat(), inputs[0].dtype)])
    }

    fn flops(&self, inputs: &[TensorInfo], _: &[TensorInfo]) -> u64 {
        self.sizes(inputs).map_or(0, |MatMulSizes { groups, m, k, n }| 2 * groups * m * k * n)
    }

    fn differentiate(&self, backward: &mut GradientBuilder) -> GradientResult {
        let gradient = backward.gradient()?;
        let x = backward.node.inputs[0];
        let w = backward.node.inputs[1];
        let part = |product| Self { product, ..*self };
        let mut gradients = vec![None, None];
        // Weights come first, as in a scheduler that minimises live memory (PopART's): `x` can be
        // freed before its gradient is made.
        if backward.needs_input_gradient(1) {
            gradients[1] =
                Some(backward.apply("wu", part(MatMulPhase::WeightGradient), &[x, gradient])?);
        }
        if backward.needs_input_gradient(0) {
            gradients[0] =
                Some(backward.apply("bwd", part(MatMulPhase::InputGradient), &[gradient, w])?);
        }
        Ok(gradients)
    }

    fn is_linear_layer(&self) -> bool {
        self.product == MatMulPhase::Forward
    }

    fn is_planned(&self) -> bool {
        true
    }

    fn create_operands(
        &self,
        lowering: &LoweringContext,
        node: &NodeOperands,
    ) -> Vec<Option<TensorLayout>> {
        lowering.create_matmul_operands(node, self)
    }

    fn planned_cost(
        &self,
        lowering: &LoweringContext,
        node: &NodeOperands,
        sizes: PlannedSizes,
    ) -> Option<PlannedCost> {
        lowering.matmul_planned_cost(node, self, sizes)
    }

    fn serial_parts(&self, lowering: &LoweringContext, node: &NodeOperands) -> u64 {
        lowering.matmul_params(node, self).map_or(1, |(_, cut)| cut.parts())
    }

    fn lower(&self, lowering: &mut LoweringContext, node: &NodeOperands) -> LoweringResult {
        lowering.matmul(node, self)
    }
}
