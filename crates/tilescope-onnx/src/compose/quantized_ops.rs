//! Operators of onnxruntime's quantiser on bytes. IPUs compute with floats, so each is the standard
//! operator between `DequantizeLinear` and `QuantizeLinear`.

use super::quantized::scaled_bias;
use super::{Compose, Composed, NodeComposition, only};
use crate::attributes::AttributeValue;
use crate::error::OnnxError;
use crate::graph::ValueId;

pub(super) const OPS: &[(&str, Compose)] = &[
    ("DynamicQuantizeLSTM", lstm),
    ("QGemm", gemm),
    ("QLinearAdd", |of| pointwise(of, "Add", 2)),
    ("QLinearAveragePool", |of| pointwise(of, "AveragePool", 1)),
    ("QLinearConcat", concat),
    ("QLinearGlobalAveragePool", |of| pointwise(of, "GlobalAveragePool", 1)),
    ("QLinearLeakyRelu", |of| pointwise(of, "LeakyRelu", 1)),
    ("QLinearMul", |of| pointwise(of, "Mul", 2)),
    ("QLinearSigmoid", |of| pointwise(of, "Sigmoid", 1)),
    ("QLinearSoftmax", |of| pointwise(of, "Softmax", 1)),
];

/// An operand with its scale and zero point as floats. Several scales belong to an axis.
fn floats(
    of: &mut NodeComposition,
    part: &str,
    at: usize,
    axis: i64,
) -> Result<ValueId, OnnxError> {
    let inputs = [Some(of.input(at)?), Some(of.input(at + 1)?), of.optional(at + 2)];
    let axis = [("axis", AttributeValue::Int(axis))];
    of.node_of(part, "DequantizeLinear", &inputs, &axis)
}

/// Bytes of a result, with the scale at an input and the zero point after it.
fn bytes(of: &mut NodeComposition, y: ValueId, at: usize) -> Composed {
    let inputs = [Some(y), Some(of.input(at)?), of.optional(at + 1)];
    only(of.node_of("bytes", "QuantizeLinear", &inputs, &[])?)
}

/// A standard operator of `count` operands, each with scale and zero point.
fn pointwise(of: &mut NodeComposition, op: &str, count: usize) -> Composed {
    if of.int("channels_last", 0)? != 0 {
        return Err(of.error(
            "channels in the last axis are not modelled: quantise the model without a layout \
             optimisation",
        ));
    }
    let mut operands = Vec::new();
    for at in 0..count {
        operands.push(floats(of, &format!("operand/{at}"), 3 * at, 0)?);
    }
    let mut attributes = of.own_attributes();
    attributes.retain(|(name, _)| !["channels_last", "opset"].contains(name));
    let y = of.node("result", op, &operands, &attributes)?;
    bytes(of, y, 3 * count)
}

fn concat(of: &mut NodeComposition) -> Composed {
    let mut operands = Vec::new();
    for at in (2..of.inputs.len()).step_by(3) {
        operands.push(floats(of, &format!("operand/{}", at / 3), at, 0)?);
    }
    let axis = of.int("axis", 0)?;
    let y = of.concat("result", &operands, axis)?;
    bytes(of, y, 0)
}

/// A product with a bias in the product of the scales; floats without a scale of the result.
fn gemm(of: &mut NodeComposition) -> Composed {
    let left = floats(of, "left", 0, 0)?;
    let columns = if of.int("transB", 0)? == 0 { 1 } else { 0 };
    let right = floats(of, "right", 3, columns)?;
    let mut operands = vec![left, right];
    operands.extend(scaled_bias(of, 6)?);
    let attributes = of.own_attributes();
    let y = of.node("product", "Gemm", &operands, &attributes)?;
    if of.optional(7).is_some() { bytes(of, y, 7) } else { only(y) }
}

/// A recurrent layer whose weights are bytes, with the gates in their last axis.
fn lstm(of: &mut NodeComposition) -> Composed {
    let element = of.element(of.input(0)?);
    let mut inputs: Vec<Option<ValueId>> = (0..8).map(|at| of.optional(at)).collect();
    for (part, at, scale) in [("weights", 1, 8), ("recurrent", 2, 10)] {
        let bytes = of.input(at)?;
        let turned = of.transpose(&format!("{part}/turn"), bytes, &[0, 2, 1])?;
        let mut y = of.cast(part, turned, element)?;
        let gates = of.dims(y)[1];
        for (name, op, at) in [("centred", "Sub", scale + 1), ("scaled", "Mul", scale)] {
            let Some(factor) = of.optional(at) else { continue };
            let own = of.dims(factor);
            let rows = match own[..] {
                [directions, columns] if columns == gates => [directions, gates, 1],
                [directions] => [directions, 1, 1],
                [] => [1; 3],
                _ => return Err(of.error(format!("scales of shape {own:?} are not modelled"))),
            };
            let factor = of.cast(&format!("{part}/{name}/type"), factor, element)?;
            let factor = of.reshape(&format!("{part}/{name}/axis"), factor, &rows)?;
            y = of.node(&format!("{part}/{name}"), op, &[y, factor], &[])?;
        }
        inputs[at] = Some(y);
    }
    let attributes = of.own_attributes();
    let outputs = of.outputs;
    let made = of.nodes("layer", "LSTM", &inputs, &attributes, outputs)?;
    Ok(Some(made.into_iter().map(Some).collect()))
}
