//! Activation functions: those of popnn, and those composed of element-wise operations.

use super::{OpBuilder, composed, modelled};
use crate::graph::GraphError;
use crate::onnx::node_import::NodeImport;
use crate::operators::{ActivationOp, ClampOp, ImportProblem, UnaryOp};
use crate::popops::elementwise::{BinaryOpType, UnaryOpType};
use crate::shape::TensorId;

pub(super) const OPS: &[OpBuilder] = &[
    modelled("Clip", clip),
    modelled("FastGelu", |node| activation(node, ActivationOp::GELU)),
    modelled("Gelu", gelu),
    composed("HardSigmoid", |node| {
        let x = node.input(0)?;
        let y = hard_sigmoid(node, x, 0.2)?;
        node.set(0, y)
    }),
    composed("HardSwish", hard_swish),
    composed("InvertedMask", inverted_mask),
    composed("LeakyRelu", leaky_relu),
    modelled("Relu", |node| activation(node, ActivationOp::RELU)),
    modelled("Sigmoid", |node| activation(node, ActivationOp::SIGMOID)),
    modelled("Swish", |node| activation(node, ActivationOp::SWISH)),
    modelled("Tanh", |node| activation(node, ActivationOp::TANH)),
];

/// GELU by the error function, or by the hyperbolic tangent if the node requests it.
fn gelu(node: &mut NodeImport) -> Result<(), GraphError> {
    if node.text("approximate", "none")? == "tanh" {
        return activation(node, ActivationOp::GELU);
    }
    let x = node.input(0)?;
    let y = node.apply("", UnaryOp(UnaryOpType::GeluErf), &[x])?;
    node.set(0, y)
}

fn activation(node: &mut NodeImport, function: ActivationOp) -> Result<(), GraphError> {
    let x = node.input(0)?;
    let y = node.apply("", function, &[x])?;
    node.set(0, y)
}

/// `(1 - mask) . constant`, as the product with the constant and its sum.
fn inverted_mask(node: &mut NodeImport) -> Result<(), GraphError> {
    let x = node.input(0)?;
    let by = node.known_scalar(1);
    let by = by.ok_or_else(|| node.refuse(ImportProblem::MaskWithoutConstant))?;
    let scaled = node.scale("scale", x, -by)?;
    let y = node.with_scalar("", BinaryOpType::Add, scaled, by)?;
    node.set(0, y)
}

/// Clips to two constants, which are attributes before opset 11 and inputs from then on.
fn clip(node: &mut NodeImport) -> Result<(), GraphError> {
    let x = node.input(0)?;
    let low = known_bound(node, "min", 1, f64::from(f32::MIN))?;
    let high = known_bound(node, "max", 2, f64::from(f32::MAX))?;
    if let (Some(low), Some(high)) = (low, high) {
        let y = node.apply("", ClampOp::new(low, high), &[x])?;
        return node.set(0, y);
    }
    let mut y = x;
    for (operation, input) in [(BinaryOpType::Maximum, 1), (BinaryOpType::Minimum, 2)] {
        if let Some(bound) = node.optional(input)? {
            y = node.binary("", operation, [y, bound])?;
        }
    }
    node.set(0, y)
}

/// A bound of a clip, from an input if there is one, and otherwise from an attribute. `None` for an
/// input that is not known.
fn known_bound(
    node: &NodeImport,
    name: &str,
    input: usize,
    default: f64,
) -> Result<Option<f64>, GraphError> {
    if node.value(input).is_some() {
        Ok(node.known_scalar(input))
    } else {
        node.float(name, default).map(Some)
    }
}

/// `alpha x + beta`, clipped to 0 and 1.
fn hard_sigmoid(
    node: &mut NodeImport,
    x: TensorId,
    default_slope: f64,
) -> Result<TensorId, GraphError> {
    let slope = node.float("alpha", default_slope)?;
    let shift = node.float("beta", 0.5)?;
    let y = node.scale("slope", x, slope)?;
    let y = node.with_scalar("shift", BinaryOpType::Add, y, shift)?;
    node.apply("clip", ClampOp::new(0.0, 1.0), &[y])
}

/// `x` times its hard sigmoid with slope 1/6.
fn hard_swish(node: &mut NodeImport) -> Result<(), GraphError> {
    let x = node.input(0)?;
    let gate = hard_sigmoid(node, x, 1.0 / 6.0)?;
    let y = node.binary("", BinaryOpType::Multiply, [gate, x])?;
    node.set(0, y)
}

/// `max(x, alpha x)`, or the minimum if the slope is larger than 1.
fn leaky_relu(node: &mut NodeImport) -> Result<(), GraphError> {
    let slope = node.float("alpha", 0.01)?;
    let x = node.input(0)?;
    let below = node.scale("slope", x, slope)?;
    let operation = if slope <= 1.0 { BinaryOpType::Maximum } else { BinaryOpType::Minimum };
    let y = node.binary("", operation, [below, x])?;
    node.set(0, y)
}
