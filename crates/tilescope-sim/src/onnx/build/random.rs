//! Dropout.

use super::{OpBuilder, modelled};
use crate::graph::GraphError;
use crate::onnx::node_import::NodeImport;
use crate::operators::DropoutOp;

pub(super) const OPS: &[OpBuilder] = &[modelled("Dropout", dropout)];

/// Active where the model is trained: from opset 12 on a node says itself whether it is.
fn dropout(node: &mut NodeImport) -> Result<(), GraphError> {
    let x = node.input(0)?;
    let says_so = node.known_ints(2).is_some_and(|flag| flag.first() == Some(&1));
    let active = node.importer.settings.training && (node.node.opset < 12 || says_so);
    let y = if active { node.apply("", DropoutOp, &[x])? } else { x };
    node.set(0, y)
}
