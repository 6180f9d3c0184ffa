//! Random numbers, and dropout.

use super::{OpBuilder, modelled};
use crate::graph::GraphError;
use crate::onnx::node_import::NodeImport;
use crate::operators::{DropoutOp, RandomDistribution, RandomOp};
use crate::shape::{DType, TensorInfo};

pub(super) const OPS: &[OpBuilder] = &[
    modelled("Bernoulli", |node| random(node, RandomDistribution::Bernoulli)),
    modelled("Dropout", dropout),
    modelled("RandomNormal", |node| random(node, RandomDistribution::Normal)),
    modelled("RandomNormalLike", |node| random(node, RandomDistribution::Normal)),
    modelled("RandomUniform", |node| random(node, RandomDistribution::Uniform)),
    modelled("RandomUniformLike", |node| random(node, RandomDistribution::Uniform)),
];

/// Builds dropout, which is active if the model is trained. From opset 12 on the node itself states
/// if it is active.
fn dropout(node: &mut NodeImport) -> Result<(), GraphError> {
    let x = node.input(0)?;
    let says_so = node.known_ints(2).is_some_and(|flag| flag.first() == Some(&1));
    let active = node.importer.settings.training && (node.node.opset < 12 || says_so);
    let y = if active { node.apply("", DropoutOp, &[x])? } else { x };
    node.set(0, y)
}

fn random(node: &mut NodeImport, distribution: RandomDistribution) -> Result<(), GraphError> {
    let dtype = node.output_type(0).unwrap_or(DType::Float);
    let ty = TensorInfo::new(node.output_dims(0)?, dtype);
    let y = node.apply("", RandomOp { distribution, ty }, &[])?;
    node.set(0, y)
}
