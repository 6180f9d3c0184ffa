//! A layer of simple recurrent cells (ONNX RNN). The products with the input are computed for all
//! steps at once. The product with the previous output, the sum and the function follow step by
//! step (popart willow/src/popx/op/rnnx.cpp over poplibs lib/popnn/Rnn.cpp).

use super::Composition;
use crate::operators::{
    ActivationOp, AddBiasOp, BinaryOp, ConcatOp, GraphError, MatMulOp, OperationSink, ShapeError,
    SliceOp,
};
use crate::popnn::NonLinearityType;
use crate::shape::TensorId;

/// The tensors of a layer.
#[derive(Clone, Copy, Debug)]
pub struct SimpleRnn {
    /// The sequence `[steps, batch, input]`.
    pub sequence: TensorId,
    /// Weights of the input, `[input, output]`.
    pub input_weights: TensorId,
    /// Weights of the previous output, `[output, output]`.
    pub recurrent_weights: TensorId,
    /// The bias, `[output]`.
    pub bias: Option<TensorId>,
    /// The output before the first step, `[batch, output]`. `None` stands for zeros.
    pub initial: Option<TensorId>,
    /// True for ReLU, false for the hyperbolic tangent.
    pub relu: bool,
}

/// Adds the outputs of all steps, `[steps, batch, output]`.
///
/// # Errors
/// Returns an error for operands that do not fit together.
pub fn simple_rnn(
    graph: &mut dyn OperationSink,
    name: &str,
    layer: SimpleRnn,
) -> Result<TensorId, GraphError> {
    let mut of = Composition { graph, name };
    let ty = of.ty(layer.sequence);
    let [steps, batch, input] = ty.shape[..] else {
        let expected = "[steps, batch, input]";
        return Err(of.refuse(ShapeError::Operand { expected, found: ty }));
    };
    let output = of.ty(layer.recurrent_weights).shape.last().copied().unwrap_or(1);
    let rows = of.reshape("rows", layer.sequence, vec![steps * batch, input])?;
    let mut weighted =
        of.apply("weightInput", MatMulOp::default(), &[rows, layer.input_weights])?;
    if let Some(bias) = layer.bias {
        weighted = of.apply("addBias", AddBiasOp { axis: 1 }, &[weighted, bias])?;
    }
    let function = if layer.relu { NonLinearityType::Relu } else { NonLinearityType::Tanh };
    let mut before = layer.initial;
    let mut outputs = Vec::new();
    for step in 0..steps {
        let part = |part: &str| format!("step{step}/{part}");
        let range = step * batch..(step + 1) * batch;
        let mut sum = of.apply(&part("input"), SliceOp { axis: 0, range }, &[weighted])?;
        if let Some(state) = before {
            let operands = [state, layer.recurrent_weights];
            let product = of.apply(&part("weightState"), MatMulOp::default(), &operands)?;
            sum = of.apply(&part("sum"), BinaryOp::ADD, &[product, sum])?;
        }
        let state = of.apply(&part("output"), ActivationOp(function), &[sum])?;
        outputs.push(state);
        before = Some(state);
    }
    let all = match outputs[..] {
        [one] => one,
        _ => of.apply("outputs", ConcatOp { axis: 0 }, &outputs)?,
    };
    of.reshape("", all, vec![steps, batch, output])
}
