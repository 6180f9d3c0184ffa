//! Functions of every element for which popops has a vertex.

use super::{OpBuilder, modelled};
use crate::graph::GraphError;
use crate::onnx::node_import::NodeImport;
use crate::operators::UnaryOp;
use crate::popops::elementwise::UnaryOpType;

pub(super) const OPS: &[OpBuilder] = &[
    modelled("Abs", |node| unary(node, UnaryOpType::Absolute)),
    modelled("Asin", |node| unary(node, UnaryOpType::Asin)),
    modelled("Ceil", |node| unary(node, UnaryOpType::Ceil)),
    modelled("Cos", |node| unary(node, UnaryOpType::Cos)),
    modelled("Erf", |node| unary(node, UnaryOpType::Erf)),
    modelled("Exp", |node| unary(node, UnaryOpType::Exp)),
    modelled("Floor", |node| unary(node, UnaryOpType::Floor)),
    modelled("IsInf", |node| unary(node, UnaryOpType::IsInf)),
    modelled("IsNaN", |node| unary(node, UnaryOpType::IsNan)),
    modelled("Log", |node| unary(node, UnaryOpType::Log)),
    modelled("Neg", |node| unary(node, UnaryOpType::Negate)),
    modelled("Not", |node| unary(node, UnaryOpType::LogicalNot)),
    modelled("Reciprocal", |node| unary(node, UnaryOpType::Inverse)),
    modelled("Round", |node| unary(node, UnaryOpType::Round)),
    modelled("Sign", |node| unary(node, UnaryOpType::Signum)),
    modelled("Sin", |node| unary(node, UnaryOpType::Sin)),
    modelled("Sqrt", |node| unary(node, UnaryOpType::Sqrt)),
    modelled("Tan", |node| unary(node, UnaryOpType::Tan)),
];

fn unary(node: &mut NodeImport, function: UnaryOpType) -> Result<(), GraphError> {
    let x = node.input(0)?;
    let y = node.apply("", UnaryOp(function), &[x])?;
    node.set(0, y)
}
