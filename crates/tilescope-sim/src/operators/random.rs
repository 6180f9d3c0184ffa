//! Tensors of random numbers (poplibs lib/poprand/RandomGen.cpp).

use super::{LoweringContext, LoweringResult, NodeOperands, Operator, ShapeError, expect_operands};
use crate::poplar::work::OperationWork;
use crate::popops::elementwise;
use crate::shape::TensorInfo;

pub use crate::popops::elementwise::RandomDistribution;

/// Random numbers of an element type, made by an operator without operands.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct RandomOp {
    /// The distribution of the numbers.
    pub distribution: RandomDistribution,
    /// Shape and type of the result.
    pub ty: TensorInfo,
}

impl Operator for RandomOp {
    fn kind(&self) -> &'static str {
        match self.distribution {
            RandomDistribution::Uniform => "random_uniform",
            RandomDistribution::Normal => "random_normal",
            RandomDistribution::Bernoulli => "bernoulli",
        }
    }

    fn infer(&self, inputs: &[TensorInfo]) -> Result<Vec<TensorInfo>, ShapeError> {
        expect_operands(inputs, 0)?;
        Ok(vec![self.ty.clone()])
    }

    fn flops(&self, _: &[TensorInfo], outputs: &[TensorInfo]) -> u64 {
        outputs[0].elements().0
    }

    fn lower(&self, lowering: &mut LoweringContext, node: &NodeOperands) -> LoweringResult {
        let layout = lowering.layout_or_linear(node.outputs[0]);
        let phase = elementwise::random(self.distribution, self.ty.dtype, &layout.elements);
        Ok(OperationWork::of_phase(phase).into())
    }
}
