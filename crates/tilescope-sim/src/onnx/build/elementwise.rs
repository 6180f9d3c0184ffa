//! Element-wise operations of two or more operands, with numpy's rules for shapes.

use super::{OpBuilder, composed, modelled};
use crate::graph::GraphError;
use crate::onnx::node_import::NodeImport;
use crate::operators::{ScaleOp, SelectOp, UnaryOp};
use crate::popops::elementwise::{BinaryOpType, UnaryOpType};
use crate::shape::TensorId;

pub(super) const OPS: &[OpBuilder] = &[
    modelled("Add", |node| two(node, BinaryOpType::Add)),
    modelled("Div", divide),
    modelled("And", |node| two(node, BinaryOpType::LogicalAnd)),
    modelled("BitwiseAnd", |node| two(node, BinaryOpType::BitwiseAnd)),
    modelled("BitwiseOr", |node| two(node, BinaryOpType::BitwiseOr)),
    modelled("BitwiseXor", |node| two(node, BinaryOpType::BitwiseXor)),
    modelled("Equal", |node| two(node, BinaryOpType::Equal)),
    modelled("Greater", |node| two(node, BinaryOpType::GreaterThan)),
    modelled("GreaterOrEqual", |node| two(node, BinaryOpType::GreaterThanEqual)),
    modelled("Less", |node| two(node, BinaryOpType::LessThan)),
    modelled("LessOrEqual", |node| two(node, BinaryOpType::LessThanEqual)),
    modelled("Max", |node| several(node, BinaryOpType::Maximum).and_then(|x| node.set(0, x))),
    composed("Mean", mean),
    modelled("Min", |node| several(node, BinaryOpType::Minimum).and_then(|x| node.set(0, x))),
    modelled("Mod", |node| two(node, BinaryOpType::Remainder)),
    modelled("Mul", multiply),
    modelled("Or", |node| two(node, BinaryOpType::LogicalOr)),
    modelled("Pow", power),
    modelled("Sub", subtract),
    modelled("Where", select),
    modelled("Xor", |node| two(node, BinaryOpType::NotEqual)),
    composed("Sum", |node| several(node, BinaryOpType::Add).and_then(|x| node.set(0, x))),
];

/// Builds an operation of two operands. A known scalar is a constant of the vertex if the other
/// operand has the shape of the result.
fn two(node: &mut NodeImport, operation: BinaryOpType) -> Result<(), GraphError> {
    let value = node.known_scalar(1).filter(|value| value.is_finite());
    if let Some(value) = value
        && keeps_shape(node, 0)?
    {
        let x = node.input(0)?;
        let y = node.with_scalar("", operation, x, value)?;
        return node.set(0, y);
    }
    let commutes = matches!(operation, BinaryOpType::Add);
    let value = node.known_scalar(0).filter(|value| commutes && value.is_finite());
    if let Some(value) = value
        && keeps_shape(node, 1)?
    {
        let x = node.input(1)?;
        let y = node.with_scalar("", operation, x, value)?;
        return node.set(0, y);
    }
    let operands = [node.input(0)?, node.input(1)?];
    let y = node.binary("", operation, operands)?;
    node.set(0, y)
}

/// Combines all operands, one after the other.
fn several(node: &mut NodeImport, operation: BinaryOpType) -> Result<TensorId, GraphError> {
    let mut sum = node.input(0)?;
    for input in 1..node.node.inputs.len() {
        let operand = node.input(input)?;
        sum = node.binary("", operation, [sum, operand])?;
    }
    Ok(sum)
}

fn mean(node: &mut NodeImport) -> Result<(), GraphError> {
    let sum = several(node, BinaryOpType::Add)?;
    let y = node.scale("mean", sum, 1.0 / node.node.inputs.len().max(1) as f64)?;
    node.set(0, y)
}

/// True if the result has the shape of this input, so that a known scalar beside it is a constant
/// of the vertex.
fn keeps_shape(node: &NodeImport, input: usize) -> Result<bool, GraphError> {
    Ok(node.of_file(input)?.element.is_float()
        && node.of_file(input)?.dims == node.output_dims(0)?)
}

fn multiply(node: &mut NodeImport) -> Result<(), GraphError> {
    for (x, by) in [(0, 1), (1, 0)] {
        if let Some(by) = node.known_scalar(by).filter(|by| by.is_finite())
            && keeps_shape(node, x)?
        {
            let x = node.input(x)?;
            let y = node.apply("", ScaleOp::by(by), &[x])?;
            return node.set(0, y);
        }
    }
    two(node, BinaryOpType::Multiply)
}

fn divide(node: &mut NodeImport) -> Result<(), GraphError> {
    let by = node.known_scalar(1).filter(|by| by.is_normal());
    if let Some(by) = by
        && keeps_shape(node, 0)?
    {
        let x = node.input(0)?;
        let y = node.apply("", ScaleOp::by(1.0 / by), &[x])?;
        return node.set(0, y);
    }
    let of = node.known_scalar(0).filter(|of| of.is_finite());
    if let Some(of) = of
        && keeps_shape(node, 1)?
    {
        let x = node.input(1)?;
        let inverse = node.apply("", UnaryOp(UnaryOpType::Inverse), &[x])?;
        let y = node.scale("scale", inverse, of)?;
        return node.set(0, y);
    }
    two(node, BinaryOpType::Divide)
}

fn subtract(node: &mut NodeImport) -> Result<(), GraphError> {
    let from = node.known_scalar(0).filter(|from| from.is_finite());
    if let Some(from) = from
        && keeps_shape(node, 1)?
    {
        let x = node.input(1)?;
        let negative = node.apply("negate", UnaryOp(UnaryOpType::Negate), &[x])?;
        let y = node.with_scalar("", BinaryOpType::Add, negative, from)?;
        return node.set(0, y);
    }
    two(node, BinaryOpType::Subtract)
}

fn power(node: &mut NodeImport) -> Result<(), GraphError> {
    let exponent = node.known_scalar(1);
    let function = match exponent {
        Some(2.0) => Some(UnaryOpType::Square),
        Some(0.5) => Some(UnaryOpType::Sqrt),
        Some(-0.5) => Some(UnaryOpType::Rsqrt),
        Some(-1.0) => Some(UnaryOpType::Inverse),
        _ => None,
    };
    let x = node.input(0)?;
    let y = match (function, exponent) {
        (Some(function), _) => node.apply("", UnaryOp(function), &[x])?,
        (None, Some(3.0)) => {
            let square = node.apply("square", UnaryOp(UnaryOpType::Square), &[x])?;
            node.binary("", BinaryOpType::Multiply, [square, x])?
        }
        (None, Some(exponent)) => node.with_scalar("", BinaryOpType::Power, x, exponent)?,
        (None, None) => {
            let exponent = node.input(1)?;
            let exponent = node.cast("exponent", exponent, node.ty(x).dtype)?;
            node.binary("", BinaryOpType::Power, [x, exponent])?
        }
    };
    node.set(0, y)
}

/// Selects one of two values by a truth value.
fn select(node: &mut NodeImport) -> Result<(), GraphError> {
    let operands = [node.input(0)?, node.input(1)?, node.input(2)?];
    let y = node.apply("", SelectOp, &operands)?;
    node.set(0, y)
}
