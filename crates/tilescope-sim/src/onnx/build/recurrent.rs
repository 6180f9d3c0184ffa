//! Recurrent layers.

use super::{OpBuilder, composed, modelled};
use crate::graph::GraphError;
use crate::onnx::node_import::NodeImport;
use crate::operators::composed::{SimpleRnn, simple_rnn};
use crate::operators::{BinaryOp, ConcatOp, ImportProblem, RnnOp, SliceOp, TakeOp};
use crate::popnn::rnn::RnnCellType;
use crate::shape::{TensorId, TensorInfo};

pub(super) const OPS: &[OpBuilder] = &[
    modelled("GRU", |node| layer(node, RnnCellType::Gru)),
    modelled("LSTM", |node| layer(node, RnnCellType::Lstm)),
    composed("RNN", simple),
];

/// The directions in which a layer processes its sequence: true for backwards.
fn directions(node: &NodeImport) -> Result<Vec<bool>, GraphError> {
    match node.text("direction", "forward")?.as_str() {
        "forward" => Ok(vec![false]),
        "reverse" => Ok(vec![true]),
        "bidirectional" => Ok(vec![false, true]),
        other => Err(node.refuse(ImportProblem::Direction(other.to_owned()))),
    }
}

/// The sizes of a layer, in the terms of the standard.
#[derive(Clone, Copy)]
struct LayerSizes {
    directions: u64,
    input: u64,
    hidden: u64,
    /// The number of values of a cell for each of its outputs.
    units: u64,
}

impl LayerSizes {
    /// Rows of the weights of one direction: those of its input, and those of its own outputs.
    fn rows(self) -> u64 {
        self.input + self.hidden
    }

    /// Returns the weights of inputs, then of outputs, as
    /// `[directions x (input + hidden), units x hidden]`. Weights of the file are written in this
    /// form. Weights that the graph computes are transposed and joined first.
    fn weights(self, node: &mut NodeImport) -> Result<TensorId, GraphError> {
        let columns = self.units * self.hidden;
        if node.is_own_weight(1) && node.is_own_weight(2) {
            let value = node.required(1)?;
            let dims = [self.directions * self.rows(), columns];
            return node.importer.tensor_stored_as(value, &dims);
        }
        let mut parts = Vec::new();
        for (part, input) in [("weights/input", 1), ("weights/state", 2)] {
            let weight = node.input(input)?;
            parts.push(node.transpose(part, weight, vec![0, 2, 1])?);
        }
        let both = node.apply("weights/all", ConcatOp { axis: 1 }, &parts)?;
        node.reshape("weights/rows", both, &[self.directions * self.rows(), columns])
    }

    /// Returns the biases as `[directions x units, hidden]`. The two biases of the standard are
    /// added before they are written, or by the graph that computes them.
    fn biases(self, node: &mut NodeImport) -> Result<Option<TensorId>, GraphError> {
        let Some(value) = node.value(3) else { return Ok(None) };
        let dims = [self.directions * self.units, self.hidden];
        if node.is_own_weight(3) {
            return node.importer.tensor_stored_as(value, &dims).map(Some);
        }
        let biases = node.input(3)?;
        let half = self.units * self.hidden;
        let mut parts = Vec::new();
        for (part, range) in [("biases/input", 0..half), ("biases/state", half..2 * half)] {
            parts.push(node.apply(part, SliceOp { axis: 1, range }, &[biases])?);
        }
        let sum = node.apply("biases/sum", BinaryOp::ADD, &parts)?;
        node.reshape("biases/rows", sum, &dims).map(Some)
    }
}

/// Returns a sequence, reversed if a layer processes it backwards.
fn in_direction(
    node: &mut NodeImport,
    part: &str,
    x: TensorId,
    backwards: bool,
) -> Result<TensorId, GraphError> {
    let steps = node.shape(x)[0];
    if backwards {
        node.apply(part, TakeOp::stepped(0, steps.max(1) - 1, -1, steps), &[x])
    } else {
        Ok(x)
    }
}

/// The part of a tensor that belongs to one direction.
fn own_part(
    node: &mut NodeImport,
    part: &str,
    of: TensorId,
    (at, directions): (u64, u64),
) -> Result<TensorId, GraphError> {
    let size = node.shape(of)[0] / directions.max(1);
    let range = at * size..(at + 1) * size;
    if directions == 1 { Ok(of) } else { node.apply(part, SliceOp { axis: 0, range }, &[of]) }
}

/// Joins the outputs of all directions, and sets the states after the last steps.
fn finish(
    node: &mut NodeImport,
    outputs: &[TensorId],
    backwards: &[bool],
) -> Result<(), GraphError> {
    let all = match outputs[..] {
        [only] => only,
        _ => node.apply("directions", ConcatOp { axis: 1 }, outputs)?,
    };
    node.set(0, all)?;
    // The cell state of an LSTM has the size of its output.
    for output in 1..node.node.outputs.len() {
        if !node.has_output(output) {
            continue;
        }
        let mut last = Vec::new();
        for (of, backwards) in outputs.iter().zip(backwards) {
            let steps = node.shape(*of)[0];
            let at = if *backwards { 0 } else { steps - 1 };
            last.push(node.apply("last", SliceOp { axis: 0, range: at..at + 1 }, &[*of])?);
        }
        let last = match last[..] {
            [only] => only,
            _ => node.apply("last/directions", ConcatOp { axis: 1 }, &last)?,
        };
        node.set(output, last)?;
    }
    Ok(())
}

/// Builds layers of simple cells over a sequence.
fn simple(node: &mut NodeImport) -> Result<(), GraphError> {
    let x = node.input(0)?;
    let [steps, batch, input] = node.shape(x)[..] else {
        return Err(node.refuse(ImportProblem::Operand("[steps, batch, input]")));
    };
    let backwards = directions(node)?;
    let directions = backwards.len() as u64;
    let hidden = node.count("hidden_size")?;
    let sizes = LayerSizes { directions, input, hidden, units: 1 };
    let apart = if directions == 1 && node.is_own_weight(1) && node.is_own_weight(2) {
        let [of_input, of_state] = [node.required(1)?, node.required(2)?];
        let of_input = node.importer.tensor_stored_as(of_input, &[input, hidden])?;
        Some([of_input, node.importer.tensor_stored_as(of_state, &[hidden, hidden])?])
    } else {
        None
    };
    let weights = if apart.is_none() { Some(sizes.weights(node)?) } else { None };
    let biases = sizes.biases(node)?;
    let initial = node.optional(5)?;
    let relu = node.node.attributes.texts("activations").ok().flatten();
    let relu = relu.is_some_and(|names| names.first().is_some_and(|name| name == "Relu"));
    let mut outputs = Vec::new();
    for (at, backwards) in (0..).zip(&backwards) {
        let place = (at, directions);
        let [input_weights, recurrent_weights] = match (apart, weights) {
            (Some(apart), _) => apart,
            (None, Some(weights)) => {
                let own = own_part(node, "weights/direction", weights, place)?;
                let of_input = SliceOp { axis: 0, range: 0..input };
                let of_input = node.apply("inputWeights", of_input, &[own])?;
                let of_state = SliceOp { axis: 0, range: input..sizes.rows() };
                [of_input, node.apply("stateWeights", of_state, &[own])?]
            }
            (None, None) => return Err(node.refuse(ImportProblem::NoWeights)),
        };
        let bias = match biases {
            Some(biases) => {
                let own = own_part(node, "biases/direction", biases, place)?;
                Some(node.reshape("biases/cell", own, &[hidden])?)
            }
            None => None,
        };
        let initial = match initial {
            Some(initial) => {
                let own = own_part(node, "initial/direction", initial, place)?;
                Some(node.reshape("initial", own, &[batch, hidden])?)
            }
            None => None,
        };
        let sequence = in_direction(node, "backwards", x, *backwards)?;
        let layer = SimpleRnn { sequence, input_weights, recurrent_weights, bias, initial, relu };
        let made = node.compose("", |graph, name| simple_rnn(graph, name, layer))?;
        let made = in_direction(node, "forwards", made, *backwards)?;
        outputs.push(node.reshape("direction", made, &[steps, 1, batch, hidden])?);
    }
    finish(node, &outputs, &backwards)
}

/// Builds one layer over a sequence in one or both directions. The weights of inputs and of states
/// form one matrix, as popnn keeps them.
fn layer(node: &mut NodeImport, cell: RnnCellType) -> Result<(), GraphError> {
    let x = node.input(0)?;
    let [steps, batch, input] = node.shape(x)[..] else {
        return Err(node.refuse(ImportProblem::Operand("[steps, batch, input]")));
    };
    let backwards = directions(node)?;
    let directions = backwards.len() as u64;
    let hidden = node.count("hidden_size")?;
    let units = cell.units();
    let sizes = LayerSizes { directions, input, hidden, units };
    let dtype = node.ty(x).dtype;
    let weights = sizes.weights(node)?;
    let biases = match sizes.biases(node)? {
        Some(biases) => biases,
        None => node.resident("bias", TensorInfo::new([directions * units, hidden], dtype)),
    };
    let mut outputs = Vec::new();
    for at in 0..directions {
        let weights = own_part(node, "weights", weights, (at, directions))?;
        let biases = own_part(node, "biases", biases, (at, directions))?;
        let keeps_intermediates = node.importer.settings.training;
        let operator = RnnOp { cell, output: hidden, keeps_intermediates };
        // popnn processes a sequence from either end.
        let made = node.apply_all("", operator, &[x, weights, biases])?[0];
        outputs.push(node.reshape("direction", made, &[steps, 1, batch, hidden])?);
    }
    finish(node, &outputs, &backwards)
}
