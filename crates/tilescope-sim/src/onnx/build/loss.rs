//! Losses that are nodes of a file.

use super::{OpBuilder, modelled};
use crate::graph::GraphError;
use crate::onnx::node_import::NodeImport;
use crate::operators::{CrossEntropyOp, ImportProblem, NllOp};
use crate::shape::{DType, TensorId};

pub(super) const OPS: &[OpBuilder] = &[
    modelled("NegativeLogLikelihoodLoss", |node| {
        let operands = labelled_rows(node)?;
        let loss = node.apply("", NllOp, &operands)?;
        node.set_loss(loss);
        Ok(())
    }),
    modelled("SoftmaxCrossEntropyLoss", |node| {
        let operands = labelled_rows(node)?;
        let outputs = node.apply_all("", CrossEntropyOp, &operands)?;
        node.set_loss(outputs[0]);
        Ok(())
    }),
];

/// Values `[rows, classes]` and labels `[rows]`. Classes are axis 1 of the node's input, and the
/// axes after it are additional rows.
fn labelled_rows(node: &mut NodeImport) -> Result<[TensorId; 2], GraphError> {
    let values = node.input(0)?;
    let labels = node.input(1)?;
    let shape = node.shape(values);
    let Some(classes) = shape.get(1).copied() else {
        return Err(node.refuse(ImportProblem::Operands("values [rows, classes, ..]")));
    };
    let last = (0..shape.len()).filter(|axis| *axis != 1).chain([1]).collect();
    let values = node.transpose("classes", values, last)?;
    let rows = shape.iter().product::<u64>() / classes.max(1);
    let values = node.reshape("rows", values, &[rows, classes])?;
    let labels = node.cast("labels/type", labels, DType::Int)?;
    Ok([values, node.reshape("labels", labels, &[rows])?])
}
