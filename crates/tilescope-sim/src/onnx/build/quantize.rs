//! Numbers of eight bits and their scales. IPUs do not compute in these types, so the numbers are
//! converted where the file requests it.

use super::{OpBuilder, composed};
use crate::graph::GraphError;
use crate::onnx::importer::StraightThrough;
use crate::onnx::node_import::NodeImport;
use crate::operators::{ClampOp, ImportProblem, ScalarOp, StraightThroughOp, UnaryOp};
use crate::popops::elementwise::{BinaryOpType, UnaryOpType};
use crate::shape::{DType, TensorId};

pub(super) const OPS: &[OpBuilder] =
    &[composed("DequantizeLinear", dequantize), composed("QuantizeLinear", quantize)];

/// Returns the operand at `input`, aligned with the axis that it has a value for each part of.
fn along_axis(node: &mut NodeImport, input: usize, dtype: DType) -> Result<TensorId, GraphError> {
    let shape = node.of_file(0)?.dims.clone();
    let tensor = node.input(input)?;
    let tensor = node.cast(&format!("operand{input}"), tensor, dtype)?;
    let own = node.shape(tensor);
    let [size] = own[..] else { return Ok(tensor) };
    let axis = node.axis(node.int("axis", 1)?, shape.len()).unwrap_or(0);
    let fits = shape.get(axis) == Some(&size) && size > 1;
    let mut sizes = vec![1; shape.len()];
    if fits {
        sizes[axis] = size;
    }
    if fits || size == 1 {
        return node.reshape(&format!("operand{input}/axis"), tensor, &sizes);
    }
    Err(node.refuse(ImportProblem::Scales { scales: own, shape }))
}

/// `(x - zero) . scale`. If the numbers stand for trained values, the gradient passes to those
/// values.
fn dequantize(node: &mut NodeImport) -> Result<(), GraphError> {
    let dtype = node.output_type(0).unwrap_or(DType::Float);
    let few_bits = node.required(0)?;
    let x = node.input(0)?;
    let mut y = node.cast("cast", x, dtype)?;
    if node.value(2).is_some() {
        let zero = along_axis(node, 2, dtype)?;
        y = node.binary("zero", BinaryOpType::Subtract, [y, zero])?;
    }
    let scale = along_axis(node, 1, dtype)?;
    let Some(StraightThrough { of, within }) =
        node.importer.straight_through.get(&few_bits).copied()
    else {
        let y = node.binary("", BinaryOpType::Multiply, [y, scale])?;
        return node.set(0, y);
    };
    let y = node.binary("scale", BinaryOpType::Multiply, [y, scale])?;
    let of = node.cast("straight", of, dtype)?;
    let y = node.apply("", StraightThroughOp, &[y, of, within])?;
    node.set(0, y)
}

/// `x / scale + zero`, rounded and clamped to the type. A number of few bits has no gradient. While
/// a model learns to be quantised, `DequantizeLinear` follows, and the two pass the gradient
/// straight through, as torch's `fake_quantize` does.
fn quantize(node: &mut NodeImport) -> Result<(), GraphError> {
    let stands_in = node.is_trained(0);
    if stands_in && !is_dequantized(node) {
        return Err(node.refuse(ImportProblem::QuantizedWeights));
    }
    let x = node.input(0)?;
    let dtype = node.ty(x).dtype;
    let scale = along_axis(node, 1, dtype)?;
    let scaled = node.binary("scale", BinaryOpType::Divide, [x, scale])?;
    let mut y = node.apply("round", UnaryOp(UnaryOpType::Round), &[scaled])?;
    if node.value(2).is_some() {
        let zero = along_axis(node, 2, dtype)?;
        y = node.binary("zero", BinaryOpType::Add, [y, zero])?;
    }
    let (low, high) = match node.output_type(0) {
        Some(DType::Int8) => (-128.0, 127.0),
        _ => (0.0, 255.0),
    };
    if stands_in {
        let is_above = ScalarOp::new(BinaryOpType::GreaterThanEqual, low);
        let above = node.apply("low", is_above, &[y])?;
        let is_below = ScalarOp::new(BinaryOpType::LessThanEqual, high);
        let below = node.apply("high", is_below, &[y])?;
        let within = node.binary("within", BinaryOpType::LogicalAnd, [above, below])?;
        if let Some(few_bits) = node.node.outputs.first().copied().flatten() {
            let kept = StraightThrough { of: x, within };
            node.importer.straight_through.insert(few_bits, kept);
        }
    }
    let y = node.apply("clamp", ClampOp::new(low, high), &[y])?;
    node.set(0, y)
}

/// True if only `DequantizeLinear` nodes read the result of a node.
fn is_dequantized(node: &NodeImport) -> bool {
    let Some(few_bits) = node.node.outputs.first().copied().flatten() else { return false };
    let importer = &node.importer;
    importer.readers[few_bits.index()] == importer.dequantizers[few_bits.index()]
}
