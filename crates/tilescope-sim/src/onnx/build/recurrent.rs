//! Recurrent layers.

use super::{OpBuilder, composed, modelled};
use crate::graph::GraphError;
use crate::onnx::node_import::NodeImport;
use crate::operators::composed::{SimpleRnn, simple_rnn};
use crate::operators::{ConcatOp, RnnOp, SliceOp};
use crate::popnn::rnn::RnnCellType;
use crate::shape::{TensorId, TensorInfo};

pub(super) const OPS: &[OpBuilder] = &[
    modelled("GRU", |node| layer(node, RnnCellType::Gru)),
    modelled("LSTM", |node| layer(node, RnnCellType::Lstm)),
    composed("RNN", simple),
];

/// A layer of simple cells over a sequence in one direction.
fn simple(node: &mut NodeImport) -> Result<(), GraphError> {
    if node.text("direction", "forward")? != "forward" {
        return Err(node.refuse("only layers in the forward direction are modelled"));
    }
    let sequence = node.input(0)?;
    let [_, batch, input] = node.shape(sequence)[..] else {
        return Err(node.refuse("[steps, batch, input] is expected"));
    };
    let hidden = node.count("hidden_size")?;
    let [of_input, of_state] = [node.required(1)?, node.required(2)?];
    let input_weights = node.importer.tensor_stored_as(of_input, &[input, hidden])?;
    let recurrent_weights = node.importer.tensor_stored_as(of_state, &[hidden, hidden])?;
    let bias = match node.value(3) {
        // The two biases of the standard are added before they are written.
        Some(bias) => Some(node.importer.tensor_stored_as(bias, &[hidden])?),
        None => None,
    };
    let initial = match node.optional(5)? {
        Some(initial) => Some(node.reshape("initial", initial, &[batch, hidden])?),
        None => None,
    };
    let relu = node.node.attributes.texts("activations").ok().flatten();
    let relu = relu.is_some_and(|names| names.first().is_some_and(|name| name == "Relu"));
    let layer = SimpleRnn { sequence, input_weights, recurrent_weights, bias, initial, relu };
    let all = node.compose("", |graph, name| simple_rnn(graph, name, layer))?;
    let steps = node.shape(all)[0];
    node.set(0, all)?;
    last_states(node, all, steps)
}

/// One layer over a sequence in one or both directions. The weights of inputs and of states are one
/// matrix, as popnn keeps them; the two biases of the standard are added before they are written.
fn layer(node: &mut NodeImport, cell: RnnCellType) -> Result<(), GraphError> {
    let x = node.input(0)?;
    let [steps, batch, input] = node.shape(x)[..] else {
        return Err(node.refuse("[steps, batch, input] is expected"));
    };
    let hidden = node.count("hidden_size")?;
    let directions = if node.text("direction", "forward")? == "bidirectional" { 2 } else { 1 };
    let units = cell.units();
    let rows = input + hidden;
    let dtype = node.ty(x).dtype;
    let parameter = |node: &mut NodeImport, at: usize, dims: [u64; 2]| {
        let value = node.required(at)?;
        node.importer.tensor_stored_as(value, &dims)
    };
    let weights = parameter(node, 1, [directions * rows, units * hidden])?;
    let biases = match node.value(3) {
        Some(_) => parameter(node, 3, [directions * units, hidden])?,
        None => node.resident("bias", TensorInfo::new([directions * units, hidden], dtype)),
    };
    let mut outputs = Vec::new();
    for direction in 0..directions {
        let own = |size: u64| SliceOp { axis: 0, range: direction * size..(direction + 1) * size };
        let [of_weights, of_biases] = [own(rows), own(units)];
        let (weights, biases) = match directions {
            1 => (weights, biases),
            _ => (
                node.apply("weights", of_weights, &[weights])?,
                node.apply("biases", of_biases, &[biases])?,
            ),
        };
        let keeps_intermediates = node.importer.settings.training;
        let operator = RnnOp { cell, output: hidden, keeps_intermediates };
        let made = node.apply_all("", operator, &[x, weights, biases])?[0];
        outputs.push(node.reshape("direction", made, &[steps, 1, batch, hidden])?);
    }
    let all = match outputs[..] {
        [only] => only,
        _ => node.apply("directions", ConcatOp { axis: 1 }, &outputs)?,
    };
    node.set(0, all)?;
    last_states(node, all, steps)
}

/// The states after the last step, of which the cell state of an LSTM has the size of its output.
fn last_states(node: &mut NodeImport, all: TensorId, steps: u64) -> Result<(), GraphError> {
    for output in 1..node.node.outputs.len() {
        if node.has_output(output) {
            let last = SliceOp { axis: 0, range: steps - 1..steps };
            let last = node.apply("last", last, &[all])?;
            node.set(output, last)?;
        }
    }
    Ok(())
}
