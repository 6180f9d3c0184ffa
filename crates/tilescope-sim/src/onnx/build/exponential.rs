//! Activation functions that PopART composes of element-wise expressions (popart
//! willow/src/popx/op/{elux,selux,softplusx,softsignx,shrinkx,thresholdedrelux}.cpp).

use super::{OpBuilder, composed};
use crate::graph::GraphError;
use crate::onnx::node_import::NodeImport;
use crate::operators::{ActivationOp, SelectOp, UnaryOp};
use crate::popops::elementwise::{BinaryOpType, UnaryOpType};
use crate::shape::TensorId;

pub(super) const OPS: &[OpBuilder] = &[
    composed("Celu", |node| {
        let alpha = node.float("alpha", 1.0)?;
        exponential_unit(node, [1.0 / alpha, alpha, 1.0])
    }),
    composed("Elu", |node| {
        let alpha = node.float("alpha", 1.0)?;
        exponential_unit(node, [1.0, alpha, 1.0])
    }),
    composed("Mish", mish),
    composed("PRelu", sloped),
    composed("Selu", |node| {
        let alpha = node.float("alpha", 1.673_263_2)?;
        let gamma = node.float("gamma", 1.050_701)?;
        exponential_unit(node, [1.0, alpha * gamma, gamma])
    }),
    composed("Shrink", shrink),
    composed("Softplus", |node| {
        let x = node.input(0)?;
        let y = softplus(node, x)?;
        node.set(0, y)
    }),
    composed("Softsign", softsign),
    composed("ThresholdedRelu", thresholded),
];

/// `above . max(x, 0) + min(below . (e^(inside x) - 1), 0)` for each element.
fn exponential_unit(
    node: &mut NodeImport,
    [inside, below, above]: [f64; 3],
) -> Result<(), GraphError> {
    let x = node.input(0)?;
    let scaled = node.scale("inside", x, inside)?;
    let power = node.apply("expm1", UnaryOp(UnaryOpType::ExpMinusOne), &[scaled])?;
    let power = node.scale("below", power, below)?;
    let negative = node.with_scalar("negative", BinaryOpType::Minimum, power, 0.0)?;
    let positive = node.apply("positive", ActivationOp::RELU, &[x])?;
    let positive = node.scale("above", positive, above)?;
    let y = node.binary("", BinaryOpType::Add, [positive, negative])?;
    node.set(0, y)
}

/// `max(x, 0) + ln(1 + e^-|x|)`
fn softplus(node: &mut NodeImport, x: TensorId) -> Result<TensorId, GraphError> {
    let size = node.apply("abs", UnaryOp(UnaryOpType::Absolute), &[x])?;
    let negative = node.apply("negate", UnaryOp(UnaryOpType::Negate), &[size])?;
    let power = node.apply("exp", UnaryOp(UnaryOpType::Exp), &[negative])?;
    let log = node.apply("log1p", UnaryOp(UnaryOpType::LogOnePlus), &[power])?;
    let positive = node.apply("positive", ActivationOp::RELU, &[x])?;
    node.binary("softplus", BinaryOpType::Add, [positive, log])
}

/// `x . tanh(softplus(x))`
fn mish(node: &mut NodeImport) -> Result<(), GraphError> {
    let x = node.input(0)?;
    let soft = softplus(node, x)?;
    let gate = node.apply("tanh", ActivationOp::TANH, &[soft])?;
    let y = node.binary("", BinaryOpType::Multiply, [x, gate])?;
    node.set(0, y)
}

/// `x / (1 + |x|)`
fn softsign(node: &mut NodeImport) -> Result<(), GraphError> {
    let x = node.input(0)?;
    let size = node.apply("abs", UnaryOp(UnaryOpType::Absolute), &[x])?;
    let more = node.with_scalar("more", BinaryOpType::Add, size, 1.0)?;
    let y = node.binary("", BinaryOpType::Divide, [x, more])?;
    node.set(0, y)
}

/// Applies a separate slope below zero for each channel or element.
fn sloped(node: &mut NodeImport) -> Result<(), GraphError> {
    let x = node.input(0)?;
    let slope = node.input(1)?;
    let slope = node.cast("slope/type", slope, node.ty(x).dtype)?;
    let below = node.binary("slope", BinaryOpType::Multiply, [x, slope])?;
    let is_below = node.with_scalar("below", BinaryOpType::LessThan, x, 0.0)?;
    let y = node.apply("", SelectOp, &[is_below, below, x])?;
    node.set(0, y)
}

/// `x` minus `bias` with the sign of x if the magnitude of x is above `lambd`, otherwise zero.
fn shrink(node: &mut NodeImport) -> Result<(), GraphError> {
    let bound = node.float("lambd", 0.5)?;
    let bias = node.float("bias", 0.0)?;
    let x = node.input(0)?;
    let dtype = node.ty(x).dtype;
    let sign = node.apply("sign", UnaryOp(UnaryOpType::Signum), &[x])?;
    let away = node.scale("away", sign, bias)?;
    let nearer = node.binary("nearer", BinaryOpType::Subtract, [x, away])?;
    let size = node.apply("abs", UnaryOp(UnaryOpType::Absolute), &[x])?;
    let is_large = node.with_scalar("large", BinaryOpType::GreaterThan, size, bound)?;
    let mask = node.cast("mask", is_large, dtype)?;
    let y = node.binary("", BinaryOpType::Multiply, [nearer, mask])?;
    node.set(0, y)
}

/// `x` if it is above a bound, otherwise zero.
fn thresholded(node: &mut NodeImport) -> Result<(), GraphError> {
    let bound = node.float("alpha", 1.0)?;
    let x = node.input(0)?;
    let dtype = node.ty(x).dtype;
    let is_above = node.with_scalar("above", BinaryOpType::GreaterThan, x, bound)?;
    let mask = node.cast("mask", is_above, dtype)?;
    let y = node.binary("", BinaryOpType::Multiply, [x, mask])?;
    node.set(0, y)
}
