//! Reductions over some axes.

use super::{
    BinaryOp, CastOp, GradientBuilder, GradientResult, GraphError, LoweringContext, LoweringResult,
    NodeOperands, Operator, OutputAlias, RepeatOp, ReshapeOp, ScaleOp, ShapeError, UnaryOp,
    expect_operands, expect_same,
};
use crate::poplar::work::OperationWork;
use crate::popops::elementwise::{BinaryOpType, UnaryOpType};
use crate::popops::reduce::{ReduceOperation, ReduceResultUse};
use crate::popops::rows::TensorRows;
use crate::shape::{TensorId, TensorInfo};

/// One value for all elements along some axes, which the result does not have.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct ReduceOp {
    /// The operation that combines elements.
    pub operation: ReduceOperation,
    pub axes: Vec<usize>,
    /// The use of the values. If they are added to a tensor, that is the second operand.
    pub result: ReduceResultUse,
}

impl ReduceOp {
    /// Makes a reduction of the values themselves.
    pub fn new(operation: ReduceOperation, axes: Vec<usize>) -> Self {
        Self { operation, axes, result: ReduceResultUse::PLAIN }
    }

    /// Adds a gradient that depends on the reduced values (popart
    /// willow/src/popx/op/reduce{max,prod,sumsquare,logsumexp}x.cpp).
    fn gradient_of_values(
        &self,
        backward: &mut GradientBuilder,
        gradient: TensorId,
    ) -> Result<TensorId, GraphError> {
        let x = backward.node.inputs[0];
        let y = backward.node.outputs[0];
        // The results as rows of one value, which repeat along the reduced axes.
        let mut shape = backward.input_type(0).shape;
        for axis in &self.axes {
            shape[*axis] = 1;
        }
        let rows = ReshapeOp { shape };
        let dy = backward.apply("grad/rows", rows.clone(), &[gradient])?;
        if self.operation == ReduceOperation::SquareAdd {
            let twice = backward.apply("grad/scale", ScaleOp::by(2.0), &[dy])?;
            return backward.apply("grad", BinaryOp::MULTIPLY, &[x, twice]);
        }
        let y = backward.apply("grad/results", rows, &[y])?;
        match self.operation {
            ReduceOperation::Max | ReduceOperation::Min => {
                let chosen = BinaryOp(BinaryOpType::Equal);
                let mask = backward.apply("grad/mask", chosen, &[x, y])?;
                let to = backward.input_type(0).dtype;
                let mask = backward.apply("grad/cast", CastOp { to }, &[mask])?;
                backward.apply("grad", BinaryOp::MULTIPLY, &[mask, dy])
            }
            ReduceOperation::Multiply => {
                let product = backward.apply("grad/product", BinaryOp::MULTIPLY, &[dy, y])?;
                backward.apply("grad", BinaryOp::DIVIDE, &[product, x])
            }
            ReduceOperation::LogAdd => {
                let less = backward.apply("grad/less", BinaryOp::SUBTRACT, &[x, y])?;
                let share = backward.apply("grad/share", UnaryOp(UnaryOpType::Exp), &[less])?;
                backward.apply("grad", BinaryOp::MULTIPLY, &[share, dy])
            }
            _ => Err(backward.no_gradient_error(self.kind())),
        }
    }
}

impl Operator for ReduceOp {
    fn kind(&self) -> &'static str {
        "reduce"
    }

    fn infer(&self, inputs: &[TensorInfo]) -> Result<Vec<TensorInfo>, ShapeError> {
        expect_operands(inputs, if self.result.update { 2 } else { 1 })?;
        let shape = &inputs[0].shape;
        if let Some(axis) = self.axes.iter().find(|axis| **axis >= shape.len()) {
            return Err(ShapeError::NoAxis { ty: inputs[0].clone(), axis: *axis });
        }
        let kept = (0..shape.len()).filter(|axis| !self.axes.contains(axis));
        let kept: Vec<u64> = kept.map(|axis| shape[axis]).collect();
        let values = TensorInfo::new(kept, inputs[0].dtype);
        inputs.get(1).map_or(Ok(()), |base| expect_same(base, &values))?;
        Ok(vec![values])
    }

    fn flops(&self, inputs: &[TensorInfo], _: &[TensorInfo]) -> u64 {
        inputs[0].elements().0
    }

    fn differentiate(&self, backward: &mut GradientBuilder) -> GradientResult {
        if self.result != ReduceResultUse::PLAIN {
            return Err(backward.no_gradient_error(self.kind()));
        }
        let gradient = backward.gradient()?;
        let ty = backward.input_type(0);
        let dx = if self.operation == ReduceOperation::Add {
            backward.apply("grad", RepeatOp { ty, axes: self.axes.clone() }, &[gradient])?
        } else {
            self.gradient_of_values(backward, gradient)?
        };
        Ok(vec![Some(dx)])
    }

    fn lower(&self, lowering: &mut LoweringContext, node: &NodeOperands) -> LoweringResult {
        let ty = lowering.tensor_type(node.inputs[0]).clone();
        let layout = lowering.layout_or_linear(node.inputs[0]);
        let mut work = OperationWork::default();
        let rows = TensorRows::new(&ty, layout, &self.axes).with_result(self.result);
        let values = rows
            .reduce(&lowering.machine, &mut work, "Reduce", self.operation, ty.dtype)
            .map_err(|error| node.error(error))?;
        if let Some(base) = node.inputs.get(1) {
            lowering.set_layout(*base, values.clone());
        }
        lowering.set_layout(node.outputs[0], values);
        Ok(work.into())
    }

    fn output_alias(&self) -> OutputAlias {
        if self.result.update { OutputAlias::InPlace(1) } else { OutputAlias::NoAlias }
    }
}
