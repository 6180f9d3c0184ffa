//! Activation functions: popnn's own, and those that are composed of element-wise operations.

use super::{OpBuilder, composed, modelled};
use crate::graph::GraphError;
use crate::onnx::node_import::NodeImport;
use crate::operators::ActivationOp;
use crate::popnn::NonLinearityType;
use crate::popops::elementwise::BinaryOpType;
use crate::shape::TensorId;

pub(super) const OPS: &[OpBuilder] = &[
    composed("Clip", clip),
    modelled("Gelu", |node| activation(node, NonLinearityType::Gelu)),
    composed("HardSigmoid", |node| {
        let x = node.input(0)?;
        let y = hard_sigmoid(node, x, 0.2)?;
        node.set(0, y)
    }),
    composed("HardSwish", hard_swish),
    composed("LeakyRelu", leaky_relu),
    modelled("Relu", |node| activation(node, NonLinearityType::Relu)),
    modelled("Sigmoid", |node| activation(node, NonLinearityType::Sigmoid)),
    composed("Swish", swish),
    modelled("Tanh", |node| activation(node, NonLinearityType::Tanh)),
];

fn activation(node: &mut NodeImport, function: NonLinearityType) -> Result<(), GraphError> {
    let x = node.input(0)?;
    let y = node.apply("", ActivationOp(function), &[x])?;
    node.set(0, y)
}

/// Between two constants: attributes before opset 11, inputs from then on.
fn clip(node: &mut NodeImport) -> Result<(), GraphError> {
    let mut y = node.input(0)?;
    let bounds = [("min", BinaryOpType::Maximum, 1), ("max", BinaryOpType::Minimum, 2)];
    for (name, operation, input) in bounds {
        let has_attribute = node.node.attributes.get(name).is_some();
        let bound = match node.optional(input)? {
            Some(bound) => bound,
            None if has_attribute => node.constant(name, y),
            None => continue,
        };
        y = node.binary(name, operation, [y, bound])?;
    }
    node.set(0, y)
}

/// max(0, min(1, alpha x + beta)), with constants of one element.
fn hard_sigmoid(
    node: &mut NodeImport,
    x: TensorId,
    default_slope: f64,
) -> Result<TensorId, GraphError> {
    let slope = node.float("alpha", default_slope)?;
    let y = node.scale("slope", x, slope)?;
    let shift = node.constant("beta", x);
    let y = node.binary("shift", BinaryOpType::Add, [y, shift])?;
    let one = node.constant("one", x);
    let y = node.binary("min", BinaryOpType::Minimum, [y, one])?;
    node.apply("max", ActivationOp::RELU, &[y])
}

/// x times its hard sigmoid with slope 1/6.
fn hard_swish(node: &mut NodeImport) -> Result<(), GraphError> {
    let x = node.input(0)?;
    let gate = hard_sigmoid(node, x, 1.0 / 6.0)?;
    let y = node.binary("", BinaryOpType::Multiply, [gate, x])?;
    node.set(0, y)
}

/// x times its sigmoid.
fn swish(node: &mut NodeImport) -> Result<(), GraphError> {
    let x = node.input(0)?;
    let slope = node.float("alpha", 1.0)?;
    let scaled = node.scale("alpha", x, slope)?;
    let gate = node.apply("sigmoid", ActivationOp(NonLinearityType::Sigmoid), &[scaled])?;
    let y = node.binary("", BinaryOpType::Multiply, [gate, x])?;
    node.set(0, y)
}

/// max(x, alpha x): the slope below zero is smaller than 1.
fn leaky_relu(node: &mut NodeImport) -> Result<(), GraphError> {
    let slope = node.float("alpha", 0.01)?;
    let x = node.input(0)?;
    let below = node.scale("slope", x, slope)?;
    let operation = if slope <= 1.0 { BinaryOpType::Maximum } else { BinaryOpType::Minimum };
    let y = node.binary("", operation, [below, x])?;
    node.set(0, y)
}
