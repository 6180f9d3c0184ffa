//! Softmax and its logarithm.

use super::{OpBuilder, modelled};
use crate::graph::GraphError;
use crate::onnx::node_import::NodeImport;
use crate::operators::SoftmaxOp;

pub(super) const OPS: &[OpBuilder] = &[
    modelled("LogSoftmax", |node| softmax(node, true)),
    modelled("Softmax", |node| softmax(node, false)),
];

/// Builds a softmax over one axis from opset 13 on. Before, it runs over all axes from `axis` on,
/// merged into one.
fn softmax(node: &mut NodeImport, log: bool) -> Result<(), GraphError> {
    let x = node.input(0)?;
    let shape = node.shape(x);
    let of_one_axis = node.node.opset >= 13;
    let axis = node.axis(node.int("axis", if of_one_axis { -1 } else { 1 })?, shape.len())?;
    let (x, axis) = if of_one_axis || axis + 1 == shape.len() {
        (x, axis)
    } else {
        let (rows, columns) = shape.split_at(axis);
        let matrix = [rows.iter().product(), columns.iter().product()];
        (node.reshape("rows", x, &matrix)?, 1)
    };
    let y = node.apply("", SoftmaxOp { axis, log }, &[x])?;
    node.set(0, y)
}
