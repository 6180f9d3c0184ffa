//! Tests of the whole path from bytes to a graph.

mod collection;
mod files;
mod folding;
mod hostile;
mod loops;
mod shapes;
mod structure;

use crate::{DimValues, OnnxError, OnnxFile, OnnxGraph};
use std::io::Cursor;
use tilescope_fixtures::onnx_file::{Message, Node, OnnxFileBuilder, graph};

/// Reads a model and gives all its dimensions values.
fn resolved(model: &OnnxFileBuilder) -> Result<OnnxGraph, OnnxError> {
    decided(model, DimValues::default())
}

/// The graph of a model with decisions on its dimensions, branches and loops.
fn decided(model: &OnnxFileBuilder, given: DimValues) -> Result<OnnxGraph, OnnxError> {
    OnnxFile::read(Cursor::new(model.bytes()))?.resolve(&given)
}

/// The error message for a model that cannot be read.
fn refusal(model: &OnnxFileBuilder) -> String {
    resolved(model).expect_err("a model that cannot be read").to_string()
}

/// Shape of an output of a model of one node and, if they are known, its values.
fn dims_of_output(model: &OnnxFileBuilder, at: usize) -> Vec<u64> {
    let graph = resolved(model).unwrap_or_else(|error| panic!("{error}"));
    graph.value(graph.outputs[at]).dims.clone()
}

/// A branch with one operator on a tensor from outside.
fn branch(op: &str, operand: &str) -> Message {
    graph(&[Node::new(op, &[operand], &["b"])], &[], &[], &["b"])
}
