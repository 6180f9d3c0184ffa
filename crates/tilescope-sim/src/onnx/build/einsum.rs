//! Sums of products, defined by an equation of index letters.

use super::{OpBuilder, composed};
use crate::graph::GraphError;
use crate::operators::composed::einsum;

pub(super) const OPS: &[OpBuilder] = &[composed("Einsum", |node| {
    let equation = node.text("equation", "")?;
    let operands = (0..node.node.inputs.len()).map(|input| node.input(input));
    let operands = operands.collect::<Result<Vec<_>, GraphError>>()?;
    let y = node.compose("", |graph, name| einsum(graph, name, &equation, &operands))?;
    node.set(0, y)
})];
