//! Functions of angles without a vertex in popops, composed of functions that have one (popart
//! willow/src/patterns/{sinhop..,acosoppattern,atanh..}: PopART decomposes them the same way).

use super::{OpBuilder, composed};
use crate::graph::GraphError;
use crate::onnx::node_import::NodeImport;
use crate::operators::UnaryOp;
use crate::popops::elementwise::{BinaryOpType, UnaryOpType};
use crate::shape::TensorId;

pub(super) const OPS: &[OpBuilder] = &[
    composed("Acos", |node| {
        let x = node.input(0)?;
        let sine = node.apply("asin", UnaryOp(UnaryOpType::Asin), &[x])?;
        let negative = node.apply("negate", UnaryOp(UnaryOpType::Negate), &[sine])?;
        let quarter = std::f64::consts::FRAC_PI_2;
        let y = node.with_scalar("", BinaryOpType::Add, negative, quarter)?;
        node.set(0, y)
    }),
    composed("Acosh", |node| area(node, -1.0)),
    composed("Asinh", |node| area(node, 1.0)),
    composed("Atan", |node| {
        let x = node.input(0)?;
        let y = node.with_scalar("", BinaryOpType::Atan2, x, 1.0)?;
        node.set(0, y)
    }),
    composed("Atanh", area_tangent),
    composed("Cosh", |node| half_sum(node, BinaryOpType::Add)),
    composed("Sinh", |node| half_sum(node, BinaryOpType::Subtract)),
];

fn unary(
    node: &mut NodeImport,
    part: &str,
    function: UnaryOpType,
    x: TensorId,
) -> Result<TensorId, GraphError> {
    node.apply(part, UnaryOp(function), &[x])
}

/// `(e^x + e^-x) / 2`, or half the difference.
fn half_sum(node: &mut NodeImport, operation: BinaryOpType) -> Result<(), GraphError> {
    let x = node.input(0)?;
    let power = unary(node, "exp", UnaryOpType::Exp, x)?;
    let inverse = unary(node, "inverse", UnaryOpType::Inverse, power)?;
    let both = node.binary("both", operation, [power, inverse])?;
    let y = node.scale("half", both, 0.5)?;
    node.set(0, y)
}

/// `ln(x + sqrt(x^2 + sign))`
fn area(node: &mut NodeImport, sign: f64) -> Result<(), GraphError> {
    let x = node.input(0)?;
    let square = unary(node, "square", UnaryOpType::Square, x)?;
    let shifted = node.with_scalar("shift", BinaryOpType::Add, square, sign)?;
    let root = unary(node, "sqrt", UnaryOpType::Sqrt, shifted)?;
    let sum = node.binary("sum", BinaryOpType::Add, [x, root])?;
    let y = unary(node, "", UnaryOpType::Log, sum)?;
    node.set(0, y)
}

/// `ln((1 + x) / (1 - x)) / 2`
fn area_tangent(node: &mut NodeImport) -> Result<(), GraphError> {
    let x = node.input(0)?;
    let above = node.with_scalar("above", BinaryOpType::Add, x, 1.0)?;
    let negative = unary(node, "negate", UnaryOpType::Negate, x)?;
    let below = node.with_scalar("below", BinaryOpType::Add, negative, 1.0)?;
    let share = node.binary("share", BinaryOpType::Divide, [above, below])?;
    let log = unary(node, "log", UnaryOpType::Log, share)?;
    let y = node.scale("half", log, 0.5)?;
    node.set(0, y)
}
